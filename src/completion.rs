//! What completes the program's commands and flags in a shell.

use clap::Command;
use clap_complete::Shell;

/// The script that a shell reads to complete `program`.
#[must_use]
pub fn script(shell: Shell, mut program: Command) -> String {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, &name, &mut script);
    let script = String::from_utf8(script).expect("it is made of text");
    // In bash, clap_complete writes a name with hyphens in one way where it says in which command the cursor stands, and in
    // another where it asks for that: https://github.com/clap-rs/clap/issues/6421.
    script.replace(&name.replace('-', "__subcmd__"), &name.replace('-', "__"))
}
