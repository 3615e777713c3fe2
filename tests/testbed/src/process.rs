//! Processes that end with us, each with a log of its own.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How often a process that is starting is asked whether it is ready.
const POLL: Duration = Duration::from_millis(50);

/// How long a process may take to become ready. Only reached when something is broken.
const START_DEADLINE: Duration = Duration::from_secs(180);

/// How long a process may take to end that is asked to.
const END_DEADLINE: Duration = Duration::from_secs(60);

/// A running program. Dropping it kills the program and waits until it is gone.
#[derive(Debug)]
pub struct Process {
    name: String,
    log: PathBuf,
    child: Mutex<Child>,
}

/// A command that runs `program` with an environment of our making, and that the kernel kills when we die.
///
/// Nothing of the user's environment gets in but `PATH`: `home` stands in for the home and the temporary folder, so
/// that no kubeconfig, Git configuration or credential of the person who runs the tests is seen.
pub fn command(program: impl AsRef<OsStr>, home: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command.env_clear();
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.envs([("HOME", home), ("TMPDIR", home)]);
    command
}

impl Process {
    /// Starts `command`, made by [`command`], with everything it prints in `log`.
    pub fn start(name: &str, mut command: Command, log: &Path) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        // In a group of its own, so that Ctrl-C on a terminal reaches only us and we decide what ends when.
        command.process_group(0);
        let child = spawn(command).with_context(|| format!("failed to start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            log: log.to_owned(),
            child: Mutex::new(child),
        })
    }

    /// The file that has everything the process printed.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The id of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    /// Waits until `probe` says yes. Fails at once, with the end of the log, when the process ends instead.
    pub async fn until_ready(&self, probe: impl AsyncFn() -> bool) -> Result<()> {
        let started = Instant::now();
        while !probe().await {
            if let Some(status) = self.ended()? {
                bail!("{} ended with {status}:\n{}", self.name, tail(&self.log, 20)?);
            }
            if started.elapsed() > START_DEADLINE {
                bail!(
                    "{} is not ready after {START_DEADLINE:?}:\n{}",
                    self.name,
                    tail(&self.log, 20)?
                );
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Waits until something listens on `port` of 127.0.0.1.
    pub async fn until_listening(&self, port: u16) -> Result<()> {
        self.until_ready(async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok())
            .await
    }

    /// Asks the process to end, as Kubernetes does, by SIGTERM, and waits until it has.
    pub async fn terminate(&self) -> Result<ExitStatus> {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        // One that has ended keeps its id for as long as nobody has asked how it ended, as here.
        kill_process(id.context("a process has an id")?, Signal::TERM)?;
        let asked = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if asked.elapsed() > END_DEADLINE {
                bail!(
                    "{} has not ended after {END_DEADLINE:?}:\n{}",
                    self.name,
                    tail(&self.log, 20)?
                );
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn ended(&self) -> io::Result<Option<ExitStatus>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(PoisonError::into_inner);
        // One that has ended already is left alone: its id may be somebody else's by now.
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        // Killed, not asked: what these processes would tidy up is thrown away, and an API server that is asked takes
        // seconds. The group includes what the process itself started, such as a plugin in the middle of its work.
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
    }
}

/// Starts a process from a thread that lives as long as we do.
///
/// The kernel sends the death signal when the *thread* that started a process ends, and a test's threads end with the
/// test while a hub that several tests share has to go on.
fn spawn(command: Command) -> io::Result<Child> {
    type Request = (Command, mpsc::Sender<io::Result<Child>>);
    static SPAWNER: OnceLock<mpsc::Sender<Request>> = OnceLock::new();

    let spawner = SPAWNER.get_or_init(|| {
        let (requests, inbox) = mpsc::channel::<Request>();
        thread::spawn(move || {
            for (mut command, reply) in inbox {
                let _ = reply.send(command.spawn());
            }
        });
        requests
    });
    let (reply, answer) = mpsc::channel();
    spawner.send((command, reply)).map_err(io::Error::other)?;
    answer.recv().map_err(io::Error::other)?
}

/// The last `lines` lines of a log, each cut to what one reads.
pub(crate) fn tail(log: &Path, lines: usize) -> io::Result<String> {
    const ENOUGH: i64 = 64 * 1024;
    const LEGIBLE: usize = 500;
    let mut file = File::open(log)?;
    if file.metadata()?.len() > ENOUGH.unsigned_abs() {
        file.seek(SeekFrom::End(-ENOUGH))?;
    }
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end);
    let all: Vec<String> = end.lines().map(|line| line.chars().take(LEGIBLE).collect()).collect();
    Ok(all[all.len().saturating_sub(lines)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_process_is_gone_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut command = command("sh", folder.path());
        command.args(["-c", "sleep 1000 & echo $!; wait"]);
        let process = Process::start("sh", command, &log).unwrap();
        let child = loop {
            if let Ok(id) = tail(&log, 1).unwrap().trim().parse::<u32>() {
                break id;
            }
            thread::sleep(POLL);
        };
        let ids = [process.id(), child];
        drop(process);
        // The child is killed with its parent, but it is not ours to wait for: the kernel needs a moment to bury it.
        let deadline = Instant::now() + START_DEADLINE;
        let is_alive = |id: u32| {
            let command_line = std::fs::read_to_string(format!("/proc/{id}/cmdline"));
            command_line.is_ok_and(|line| !line.is_empty())
        };
        while let Some(id) = ids.into_iter().find(|&id| is_alive(id)) {
            assert!(Instant::now() < deadline, "{id} is alive");
            thread::sleep(POLL);
        }
    }

    #[tokio::test]
    async fn a_process_that_is_asked_to_end_says_how() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut command = command("sh", folder.path());
        command.args(["-c", "trap 'exit 3' TERM; echo up; while :; do sleep 0.1; done"]);
        let process = Process::start("sh", command, &log).unwrap();
        process
            .until_ready(async || tail(&log, 1).is_ok_and(|line| line == "up"))
            .await
            .unwrap();
        assert_eq!(process.terminate().await.unwrap().code(), Some(3));
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let (home, log) = (folder.path().to_owned(), folder.path().join("log"));
        let process = thread::spawn(move || {
            let mut command = command("sleep", &home);
            command.arg("1000");
            Process::start("sleep", command, &log).unwrap()
        });
        let process = process.join().unwrap();
        thread::sleep(POLL);
        assert!(process.ended().unwrap().is_none());
    }
}
