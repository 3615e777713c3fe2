//! Runs the binary as a user does: in a folder, and with an empty environment.

use std::path::Path;
use std::process::Command;

/// Returns the program, to be run in `folder`.
pub(crate) fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    command.current_dir(folder).env_clear();
    command
}

/// Returns the program with `words`: environment variables as `NAME=value`, then the arguments.
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
