//! Runs the commands that need no cluster, and compares their output with the pages.

use crate::commands::{Runs, commands, runs};
use crate::shell::Shell;
use crate::shown::is_shown;

#[test]
fn local_commands_print_the_documented_output() {
    let shell = Shell::new("https://git.example.com/guestbook.git");
    let mut compared = 0;
    for command in commands() {
        if runs(&command.text) != Some(Runs::Locally) {
            continue;
        }
        let outcome = shell.run(&command.text);
        assert!(
            outcome.has_succeeded(&command.text),
            "{}: {}\n{outcome:?}",
            command.location,
            command.text
        );
        if !command.output.is_empty() {
            compared += 1;
            let printed = &outcome.stdout;
            let shown = command.output.join("\n");
            assert!(
                is_shown(&command.output, printed),
                "{}: {}\nshows\n{shown}\nand prints\n{printed}",
                command.location,
                command.text
            );
        }
    }
    assert!(compared > 3, "only {compared} outputs are shown");
}
