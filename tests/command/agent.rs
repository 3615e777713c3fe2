//! Tests of `agent`: a program that is restarted when its files change, as kubelet changes them, and the copy of the program.

use crate::program::{SILENT, failed, folder, program, run, wait_for};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// The interval of reads in these tests, and the time without an action after which none is expected.
const INTERVAL: &str = "--interval=1s";
const QUIET_TIME: Duration = Duration::from_secs(4);

/// A program that logs its start with the contents of the files, and the signal that stops it.
const CHILD: &str = "\
trap 'echo stopped >> log; exit 7' TERM
echo started $(cat tls/tls.crt tls/tls.key) >> log
while :; do sleep 0.05; done";

/// A running `agent run`, in a folder with the files `tls/tls.crt` and `tls/tls.key`.
struct Running {
    folder: TempDir,
    supervisor: Child,
}

impl Running {
    fn start(files: &[(&str, &str)], flags: &[&str], script: &str) -> Self {
        let files: Vec<_> = files.iter().map(|(name, text)| (format!("tls/{name}"), text)).collect();
        Self::start_in(folder(&files), flags, script)
    }

    fn start_in(folder: TempDir, flags: &[&str], script: &str) -> Self {
        let supervisor = program(folder.path())
            .args(["agent", "run", INTERVAL, "--when-changed=tls/tls.crt"])
            .arg("--when-changed=tls/tls.key")
            .args(flags)
            .args(["--", "/bin/sh", "-c", script])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("the program runs");
        Self { folder, supervisor }
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).expect("a file");
    }

    fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    fn wait_for_log(&self, lines: &[&str]) {
        wait_for(&format!("{lines:?}"), || self.log().len() >= lines.len());
        assert_eq!(self.log(), lines);
    }

    fn check_log_stays(&self, lines: &[&str]) {
        thread::sleep(QUIET_TIME);
        assert_eq!(self.log(), lines);
    }

    fn id(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.supervisor.id()).expect("an id"))
    }

    fn send(&self, signal: Signal) {
        kill(self.id(), signal).expect("the program runs");
    }

    /// Waits until it has ended, and returns its exit code and its output.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut output = String::new();
        wait_for("the program has ended", || {
            self.supervisor.try_wait().expect("a child").is_some()
        });
        let status = self.supervisor.wait().expect("a child");
        assert_eq!(status.signal(), None);
        let stderr = self.supervisor.stderr.take();
        stderr.expect("piped").read_to_string(&mut output).expect("text");
        (status.code(), output)
    }

    /// Sends this signal, and waits for the end.
    fn end(self, signal: Signal) -> (Option<i32>, String) {
        self.send(signal);
        self.ended()
    }
}

/// Kills the processes of a failed test.
impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.supervisor.try_wait(), Ok(None)) {
            let _ = killpg(self.id(), Signal::SIGKILL);
            let _ = self.supervisor.wait();
        }
    }
}

const BOTH: [(&str, &str); 2] = [("tls.crt", "a"), ("tls.key", "1")];

#[test]
fn changed_content_restarts_once_and_nothing_else_does() {
    let running = Running::start(&[("tls.crt", "a "), ("tls.key", "1")], &[], CHILD);
    running.wait_for_log(&["started a 1"]);
    // An empty file, and for a while none.
    running.write("tls/tls.key", "");
    fs::remove_file(running.path("tls/tls.crt")).expect("a file");
    running.check_log_stays(&["started a 1"]);
    running.write("tls/tls.key", "1");
    running.write("tls/tls.crt", "b ");
    let lines = ["started a 1", "stopped", "started b 1"];
    running.wait_for_log(&lines);
    running.check_log_stays(&lines);
    let (code, output) = running.end(Signal::SIGTERM);
    assert_eq!((code, &*output), (Some(7), "restarting /bin/sh: tls/tls.crt changed\n"));
}

/// Writes a folder as kubelet does: all files in a new folder, and then swaps a link to it.
fn publish(folder: &Path, version: &str, files: &[(&str, &str)]) {
    let before = fs::read_link(folder.join("..data")).ok();
    let new = format!("..{version}");
    fs::create_dir(folder.join(&new)).expect("a folder");
    for (name, text) in files {
        fs::write(folder.join(&new).join(name), text).expect("a file");
        if before.is_none() {
            symlink(Path::new("..data").join(name), folder.join(name)).expect("a link");
        }
    }
    symlink(&new, folder.join("..data_tmp")).expect("a link");
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).expect("a link");
    if let Some(before) = before {
        fs::remove_dir_all(folder.join(before)).expect("a folder");
    }
}

#[test]
fn kubelet_swap_restarts_once() {
    let folder = TempDir::new().expect("a scratch folder");
    let tls = folder.path().join("tls");
    fs::create_dir(&tls).expect("a folder");
    publish(&tls, "1", &[("tls.crt", "a "), ("tls.key", "1")]);
    let running = Running::start_in(folder, &[], CHILD);
    running.wait_for_log(&["started a 1"]);
    publish(&tls, "2", &[("tls.crt", "b "), ("tls.key", "2")]);
    let lines = ["started a 1", "stopped", "started b 2"];
    running.wait_for_log(&lines);
    // The same contents in a new folder: another key of the Secret has changed.
    publish(&tls, "3", &[("tls.crt", "b "), ("tls.key", "2")]);
    running.check_log_stays(&lines);
    let (code, output) = running.end(Signal::SIGTERM);
    let expected = "restarting /bin/sh: tls/tls.crt, tls/tls.key changed\n";
    assert_eq!((code, &*output), (Some(7), expected));
}

#[test]
fn waits_for_missing_files_and_reports_each_once() {
    let running = Running::start(&[("tls.crt", "a ")], &[], CHILD);
    running.check_log_stays(&[]);
    running.write("tls/tls.key", "");
    running.check_log_stays(&[]);
    running.write("tls/tls.key", "1");
    running.wait_for_log(&["started a 1"]);
    let (code, output) = running.end(Signal::SIGTERM);
    let waited = "waiting for tls/tls.key: no such file or directory\nwaiting for tls/tls.key: empty\n";
    assert_eq!((code, &*output), (Some(7), waited));

    let waiting = Running::start(&[("tls.crt", "a")], &[], CHILD);
    fs::create_dir(waiting.path("tls/tls.key")).expect("a folder");
    waiting.check_log_stays(&[]);
    assert_eq!(waiting.end(Signal::SIGTERM).0, Some(128 + 15));
}

#[test]
fn exits_with_the_programs_code_and_forwards_signals() {
    assert_eq!(Running::start(&BOTH, &[], "exit 3").ended(), (Some(3), String::new()));
    let (code, _) = Running::start(&BOTH, &[], "kill -KILL $$").ended();
    assert_eq!(code, Some(128 + 9));
    let script = "trap 'exit 5' INT; echo started >> log; while :; do sleep 0.05; done";
    let running = Running::start(&BOTH, &[], script);
    running.wait_for_log(&["started"]);
    assert_eq!(running.end(Signal::SIGINT).0, Some(5));
}

#[test]
fn kills_a_program_that_ignores_sigterm() {
    let script = "trap 'echo asked >> log' TERM; echo started >> log; while :; do sleep 0.05; done";
    let running = Running::start(&BOTH, &["--grace-period=1s"], script);
    running.wait_for_log(&["started"]);
    running.write("tls/tls.key", "2");
    running.wait_for_log(&["started", "asked", "started"]);
    let (code, output) = running.end(Signal::SIGTERM);
    let killed = "killed after 1s: it did not stop\n";
    let restarted = "restarting /bin/sh: tls/tls.key changed\n";
    assert_eq!((code, output), (Some(128 + 9), format!("{restarted}{killed}{killed}")));
}

#[test]
fn second_sigterm_during_a_restart_ends_the_program() {
    let script = "trap 'echo asked >> log' TERM; echo started >> log; while :; do sleep 0.05; done";
    let running = Running::start(&BOTH, &["--grace-period=3s"], script);
    running.wait_for_log(&["started"]);
    running.write("tls/tls.key", "2");
    running.wait_for_log(&["started", "asked"]);
    running.send(Signal::SIGTERM);
    running.wait_for_log(&["started", "asked", "asked"]);
    assert_eq!(running.ended().0, Some(128 + 9));
}

#[test]
fn reports_programs_that_cannot_start_and_bad_arguments() {
    let folder = TempDir::new().expect("a scratch folder");
    fs::write(folder.path().join("file"), "a").expect("a file");
    let run = |words: &[&str]| {
        let output = program(folder.path())
            .args(["agent", "run"])
            .args(words)
            .output()
            .expect("the program runs");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let missing = "error: /no/program cannot be started: no such file or directory\n";
    let started = run(&["--interval=1s", "--when-changed=file", "--", "/no/program"]);
    assert_eq!(started, (Some(1), missing.to_owned()));
    for words in [
        &["--", "/bin/true"][..],
        &["--when-changed=file"],
        &["--when-changed=file", "--interval=0s", "--", "/bin/true"],
    ] {
        let (code, output) = run(words);
        assert!(code == Some(2) && output.starts_with("error: "), "{words:?}: {output}");
    }
}

#[test]
fn agent_install_copies_the_program() {
    let folder = TempDir::new().expect("a scratch folder");
    let shared = folder.path().join("shared");
    let install = || run(folder.path(), &["agent", "install", "shared"]);
    assert_eq!(
        install(),
        failed(1, "shared/argocd-ocm-cmp cannot be written: no such file or directory")
    );
    fs::create_dir(&shared).expect("a folder");
    // Neither a file of an interrupted run nor an older copy matters.
    fs::write(shared.join(".argocd-ocm-cmp.unfinished"), "half").expect("a file");
    fs::write(shared.join("argocd-ocm-cmp"), "old").expect("a file");
    assert_eq!(install(), SILENT);
    let copy = shared.join("argocd-ocm-cmp");
    let mode = fs::metadata(&copy).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let version = Command::new(&copy).arg("--version").output().expect("the program runs");
    assert!(
        version.status.success() && version.stdout.starts_with(b"argocd-ocm-cmp "),
        "{version:?}"
    );
    let files: Vec<_> = fs::read_dir(&shared)
        .expect("a folder")
        .map(|file| file.expect("one").file_name())
        .collect();
    assert_eq!(files, ["argocd-ocm-cmp"]);
}
