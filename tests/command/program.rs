//! The binary as a user runs it: its own folder, and an environment with nothing in it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

/// The program, to be run in `folder`.
pub(crate) fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    command.current_dir(folder).env_clear();
    command
}

/// The program with `words`, of which those like `NAME=value` that stand first are its environment.
pub(crate) fn program_with<'a>(folder: &Path, words: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = program(folder);
    let mut env = true;
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if env => {
                command.env(name, value);
            }
            _ => {
                env = false;
                command.arg(word);
            }
        }
    }
    command
}

/// What is said where nothing can be told, as the exit code tells.
pub(crate) fn refused(folder: &Path, words: &[&str]) -> String {
    let output = program_with(folder, words.iter().copied()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    assert!(output.stdout.is_empty(), "{}", transcript(&output));
    String::from_utf8(output.stderr).expect("text")
}

/// A kubeconfig whose one context `a` leads to where nobody answers.
pub(crate) const NOBODY: &str = "{apiVersion: v1, kind: Config, clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], \
                                 users: [{name: a, user: {}}], contexts: [{name: a, context: {cluster: a, user: a}}]}";

/// What a run left behind, in one text.
pub(crate) fn transcript(output: &Output) -> String {
    let mut text = format!(
        "exit code: {}\n",
        output.status.code().map_or("none".to_owned(), |code| code.to_string())
    );
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        write!(text, "----- {name} -----\n{}", String::from_utf8_lossy(bytes)).expect("a String takes all");
    }
    text
}

/// A printed work, in either form, with only a mark where `manifestConfigs` stands: how the agent treats each kind is long, the
/// same everywhere, and tested by itself.
pub(crate) fn without_configs(works: &str) -> String {
    let mut kept = String::new();
    let mut within = false;
    for line in works.lines() {
        let json = line.split_once(r#""manifestConfigs":["#);
        match json.and_then(|(before, rest)| Some((before, rest.split_once(r#"],"workload":{"#)?.1))) {
            Some((before, after)) => {
                writeln!(kept, r#"{before}"manifestConfigs":[…],"workload":{{{after}"#).expect("a String takes all");
                continue;
            }
            None if line == "  manifestConfigs:" => {
                within = true;
                kept.push_str("  manifestConfigs: …\n");
            }
            None if line == "  workload:" => within = false,
            None => {}
        }
        if !within {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
