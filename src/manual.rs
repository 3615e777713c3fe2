//! The manual: one page for all commands, or for one, generated from the command line.

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::io;

/// Returns the page in roff, as `man` reads it. `program` is the root command, and `words` name one of its commands, or none for all.
///
/// # Errors
/// Returns an error if there is no such command.
pub fn page(mut program: Command, words: &[String]) -> Result<String, String> {
    program.build();
    let command = words.iter().try_fold(&program, |command, word| {
        let subcommand = command.get_subcommands().find(|command| command.get_name() == word);
        subcommand.ok_or_else(|| {
            format!(
                "there is no command {:?}: `argocd-ocm-cmp help` lists all",
                words.join(" ")
            )
        })
    })?;
    Ok(page_of(command, &program))
}

fn page_of(command: &Command, program: &Command) -> String {
    // The title of a page has no spaces.
    let title = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    let man = Man::new(command.clone()).title(title);
    let mut page = render_text(|out| Roff::new().to_writer(out));
    let preamble = page.clone();
    let mut add = |part: String| page.push_str(part.strip_prefix(&preamble).unwrap_or(&part));
    add(render_text(|out| man.render_title(out)));
    add(render_text(|out| man.render_name_section(out)));
    add(roff(|roff| {
        roff.control("SH", ["SYNOPSIS"]);
        usage(command, roff);
        roff.control(
            "SH",
            [if command.has_subcommands() {
                "COMMANDS"
            } else {
                "DESCRIPTION"
            }],
        );
    }));
    if command.has_subcommands() {
        describe(command, &mut add);
    } else {
        describe_one(command, &mut add);
    }
    // Only the program has a version.
    add(render_text(|out| Man::new(program.clone()).render_version_section(out)));
    page
}

/// Adds a subsection for each command that can be run.
fn describe(command: &Command, add: &mut impl FnMut(String)) {
    for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
        if command.has_subcommands() {
            describe(command, add);
            continue;
        }
        add(roff(|roff| {
            roff.control("SS", [command.get_bin_name().unwrap_or_default()]);
        }));
        describe_one(command, add);
    }
}

fn describe_one(command: &Command, add: &mut impl FnMut(String)) {
    let man = Man::new(command.clone());
    add(body(|out| man.render_description_section(out)));
    add(roff(|roff| {
        roff.control("PP", []);
        usage(command, roff);
    }));
    add(body(|out| man.render_options_section(out)));
    if let Some(more) = command.get_after_help() {
        add(roff(|roff| verbatim(&more.to_string(), roff)));
    }
}

fn usage(command: &Command, roff: &mut Roff) {
    let usage = command.clone().render_usage().to_string();
    roff.text([bold(usage.trim_start_matches("Usage: "))]);
}

/// Adds text whose lines are not wrapped.
fn verbatim(text: &str, roff: &mut Roff) {
    roff.control("PP", []).control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

/// Returns the body of a section.
fn body(render: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let section = render_text(render);
    let (_, under) = section.split_once(".SH ").expect("a section has a heading");
    under
        .split_once('\n')
        .map_or(String::new(), |(_, body)| body.to_owned())
}

fn roff(write: impl FnOnce(&mut Roff)) -> String {
    let mut roff = Roff::new();
    write(&mut roff);
    render_text(|out| roff.to_writer(out))
}

fn render_text(render: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    render(&mut out).expect("writing to a Vec never fails");
    String::from_utf8(out).expect("the page is UTF-8")
}
