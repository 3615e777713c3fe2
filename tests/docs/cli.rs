//! Checks docs/cli.md, which is generated from the command line: every command with its usage, arguments, flags and examples.

use crate::generated::compare_page;
use argocd_ocm_cmp::cli::Cli;
use clap::{Arg, Command, CommandFactory as _};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const HEAD: &str = "\
# Command line

For everyone who runs the program: all commands and their flags. `argocd-ocm-cmp COMMAND --help` prints the same. In Argo CD, the flags of `generate`
are [plugin parameters](settings.md).

This page is generated from the program: `REWRITE=1 cargo test --test docs cli` writes it.
";

#[test]
fn page_lists_every_command() {
    compare_page("docs/cli.md", &page_text());
}

/// Returns the page: a table of all commands, and a section for each.
fn page_text() -> String {
    let mut program = Cli::command();
    program.build();
    let commands = runnable(&program);
    let mut page = format!("{HEAD}\n| Command | Purpose |\n|---|---|\n");
    for command in &commands {
        let (name, link) = (name(command), name(command).replace(' ', "-"));
        writeln!(page, "| [`{name}`](#{link}) | {} |", about(command)).expect("writing to a String never fails");
    }
    let mut groups = Vec::new();
    for command in commands {
        page += &section(command, &mut groups);
    }
    page
}

/// Returns the commands that can be run, without those that only have subcommands.
fn runnable(command: &Command) -> Vec<&Command> {
    let subcommands = command
        .get_subcommands()
        .filter(|subcommand| subcommand.get_name() != "help");
    let lists = subcommands.map(|subcommand| {
        if subcommand.has_subcommands() {
            runnable(subcommand)
        } else {
            vec![subcommand]
        }
    });
    lists.flatten().collect()
}

/// Returns the words of a command after the program, such as `policy check`.
fn name(command: &Command) -> &str {
    let words = command.get_bin_name().and_then(|words| words.split_once(' '));
    words.expect("a subcommand").1
}

fn about(command: &Command) -> String {
    escaped(&command.get_about().expect("a description").to_string())
}

/// A table of flags that commands share.
struct Group {
    title: String,
    table: String,
    command: String,
}

/// Returns the section of a command. Instead of the tables that an earlier command has too, it names that command.
fn section(command: &Command, groups: &mut Vec<Group>) -> String {
    let name = name(command);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let mut section = format!("\n## `{name}`\n\n{}.\n\n```text\n{usage}\n```\n", about(command));
    let mut shared: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (title, arguments) in grouped(command) {
        let table = table(&arguments);
        if let Some(same) = groups.iter().find(|group| group.title == title && group.table == table) {
            shared.entry(same.command.clone()).or_default().push(title);
        } else {
            write!(section, "\n**{title}**\n\n{table}").expect("writing to a String never fails");
            let command = name.to_owned();
            groups.push(Group { title, table, command });
        }
    }
    for (other, titles) in shared {
        let titles = titles.join("**, **");
        let link = other.replace(' ', "-");
        writeln!(section, "\n**{titles}**: as for [`{other}`](#{link})").expect("writing to a String never fails");
    }
    if let Some(more) = command.get_after_help() {
        writeln!(section, "\n```text\n{more}\n```").expect("writing to a String never fails");
    }
    section
}

/// Returns the arguments below their headings, in the order of the help.
fn grouped(command: &Command) -> Vec<(String, Vec<&Arg>)> {
    let mut groups: Vec<(String, Vec<&Arg>)> = vec![("Arguments".into(), vec![]), ("Options".into(), vec![])];
    let is_shown = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help";
    for argument in command.get_arguments().filter(is_shown) {
        let heading = if argument.is_positional() {
            "Arguments"
        } else {
            "Options"
        };
        let heading = argument.get_help_heading().unwrap_or(heading);
        match groups.iter_mut().find(|(title, _)| title == heading) {
            Some((_, arguments)) => arguments.push(argument),
            None => groups.push((heading.to_owned(), vec![argument])),
        }
    }
    groups.retain(|(_, arguments)| !arguments.is_empty());
    groups
}

/// Returns a table, with a column of environment variables if an argument has one.
fn table(arguments: &[&Arg]) -> String {
    let has_variables = arguments.iter().any(|argument| argument.get_env().is_some());
    let mut table = if has_variables {
        "| Name | Environment | Default | Meaning |\n|---|---|---|---|\n".to_owned()
    } else {
        "| Name | Default | Meaning |\n|---|---|---|\n".to_owned()
    };
    for argument in arguments {
        let variable = argument.get_env().map(|variable| code(&variable.to_string_lossy()));
        let variable = has_variables.then(|| format!(" {} |", variable.unwrap_or_default()));
        let (default, meaning) = meaning(argument);
        let (names, variable) = (names(argument), variable.unwrap_or_default());
        writeln!(table, "| {names} |{variable} {default} | {meaning} |").expect("writing to a String never fails");
    }
    table
}

/// Returns the names of an argument, the last with its value: `` `-o`, `--output OUTPUT` ``.
fn names(argument: &Arg) -> String {
    let value = argument.get_value_names().unwrap_or_default().join(" ");
    let Some(long) = argument.get_long() else {
        return code(&value);
    };
    let is_optional = argument.get_num_args().is_some_and(|range| range.min_values() == 0);
    let value = match argument.get_action().takes_values() {
        true if is_optional => format!("[={value}]"),
        true => format!(" {value}"),
        false => String::new(),
    };
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let aliases = argument.get_visible_aliases().unwrap_or_default();
    let aliases = aliases.into_iter().map(|alias| format!("--{alias}"));
    let names = short.into_iter().chain(aliases).chain([format!("--{long}{value}")]);
    names.map(|name| code(&name)).collect::<Vec<_>>().join(", ")
}

/// Returns the default and the meaning of an argument. The help has a default in words at its end: `[default: all]`.
fn meaning(argument: &Arg) -> (String, String) {
    let help = argument.get_help().expect("help").to_string();
    let (help, default) = match help.split_once(" [default: ") {
        Some((help, default)) => (help, escaped(default.trim_end_matches(']'))),
        None => (&*help, String::new()),
    };
    let values: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    let takes_value = argument.get_action().takes_values();
    let default = if values.is_empty() || !takes_value {
        default
    } else {
        code(&values.join(","))
    };
    let mut meaning = escaped(help);
    let values = argument.get_possible_values();
    let is_boolean = values.iter().any(|value| value.get_name() == "true");
    if values.is_empty() || is_boolean || argument.is_hide_possible_values_set() {
        return (default, meaning);
    }
    if values.iter().all(|value| value.get_help().is_none()) {
        let values: Vec<String> = values.iter().map(|value| code(value.get_name())).collect();
        return (default, format!("{meaning}: {}", values.join(", ")));
    }
    for value in values {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        let (name, help) = (code(value.get_name()), escaped(&help));
        write!(meaning, "<br>{name}: {help}").expect("writing to a String never fails");
    }
    (default, meaning)
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Escapes what Markdown reads in the plain text of the help.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if "|*<".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
