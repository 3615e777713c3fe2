//! The binary as a user runs it, and its output.

#[path = "../common/program.rs"]
mod shared;

use flate2::Compression;
use flate2::write::GzEncoder;
pub(crate) use shared::{program, program_with};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::{Arguments, Parts};

/// Returns the folder of kustomize and Helm.
pub(crate) fn tools() -> PathBuf {
    let parts = Parts::ensure().expect("the tools can be built");
    parts.tools().to_owned()
}

/// Returns a packaged chart with entries: the type, the name, and the content or the target.
pub(crate) fn packed(entries: &[(tar::EntryType, &str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for &(kind, name, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        if kind.is_file() {
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content.as_bytes()).expect("an entry");
        } else {
            header.set_size(0);
            header.set_link_name_literal(content).expect("a target");
            header.set_cksum();
            builder.append(&header, std::io::empty()).expect("an entry");
        }
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(&builder.into_inner().expect("an archive"))
        .expect("bytes");
    encoder.finish().expect("bytes")
}

/// Creates a folder with these files.
pub(crate) fn folder(files: &[(impl AsRef<Path>, impl AsRef<[u8]>)]) -> TempDir {
    let folder = TempDir::new().expect("a scratch folder");
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, content).expect("a file");
    }
    folder
}

/// Runs the program with `words`, as [`program_with`] reads them, and formats its output.
pub(crate) fn run(folder: &Path, words: &(impl Arguments + ?Sized)) -> String {
    let output = program_with(folder, words.words()).output();
    transcript(&output.expect("the program runs"))
}

/// Runs a command that fails, checks its exit code, and returns its error.
pub(crate) fn refused(folder: &Path, words: &(impl Arguments + ?Sized)) -> String {
    let output = program_with(folder, words.words()).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    assert!(output.stdout.is_empty(), "{}", transcript(&output));
    String::from_utf8(output.stderr).expect("text")
}

/// A kubeconfig whose one context `a` has an address at which no server listens.
pub(crate) const UNREACHABLE_KUBECONFIG: &str = "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], \
                                 users: [{name: a, user: {}}], contexts: [{name: a, context: {cluster: a, user: a}}]}";

/// Asserts that the command `words`, with each of `variants` appended, fails with one line without a kubeconfig, and with a
/// kubeconfig at whose address no server listens.
pub(crate) fn assert_needs_a_hub(words: &str, variants: &[&str]) {
    let folder = TempDir::new().expect("a scratch folder");
    assert_eq!(
        refused(folder.path(), &format!("{words} --kubeconfig=none")),
        "error: no hub to read from: none: no such file or directory: set --kubeconfig or --context\n"
    );
    std::fs::write(folder.path().join("config"), UNREACHABLE_KUBECONFIG).expect("a file");
    for variant in variants {
        let words = format!("{words} {variant} --kubeconfig=config --context=a");
        assert_eq!(
            refused(folder.path(), &words),
            "error: the hub at http://127.0.0.1:1/ cannot be reached: connection refused\n",
            "{words}"
        );
    }
}

/// Asserts that each command fails with a line that contains the text.
pub(crate) fn assert_refused(cases: &[(&str, &str)]) {
    let folder = TempDir::new().expect("a scratch folder");
    for (words, text) in cases {
        let line = refused(folder.path(), words);
        assert!(line.contains(text), "{words}: {line}");
    }
}

/// Formats the output of a run as one text.
pub(crate) fn transcript(output: &Output) -> String {
    let mut text = format!(
        "exit code: {}\n",
        output.status.code().map_or("none".to_owned(), |code| code.to_string())
    );
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        write!(text, "----- {name} -----\n{}", String::from_utf8_lossy(bytes))
            .expect("writing to a String never fails");
    }
    text
}

/// The transcript of a command that succeeds and prints nothing.
pub(crate) const SILENT: &str = "exit code: 0\n----- stdout -----\n----- stderr -----\n";

/// Returns the transcript of a command that fails with one error.
pub(crate) fn failed(code: u8, error: &str) -> String {
    format!("exit code: {code}\n----- stdout -----\n----- stderr -----\nerror: {error}\n")
}

/// Waits until a condition holds, for at most two minutes.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(120),
            "not so in two minutes: {what}"
        );
        thread::sleep(Duration::from_millis(20));
    }
}
