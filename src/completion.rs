//! Shell completion for the commands and flags of the program.

use clap::Command;
use clap_complete::Shell;

/// Returns the script with which a shell completes `program`.
#[must_use]
pub fn script(shell: Shell, mut program: Command) -> String {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, &name, &mut script);
    let script = String::from_utf8(script).expect("the script is UTF-8");
    // For bash, clap_complete writes a name with hyphens in one form where it sets the current command, and in another where it
    // reads it: https://github.com/clap-rs/clap/issues/6421.
    script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
}
