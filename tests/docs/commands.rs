//! The commands of all pages, and the test that runs each: a quick test, a test with a hub of the testbed, or, for a reason, none.

use crate::page::{Page, pages, root};
use argocd_ocm_cmp::cli::Cli;
use argocd_ocm_cmp::install::IS_PUBLISHED;
use clap::Parser as _;
use std::fs;

/// A command in a page.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    /// The location, such as `README.md:24`.
    pub(crate) location: String,
    /// The section, such as `README.md#two-commands`.
    pub(crate) section: String,
    /// The typed text.
    pub(crate) text: String,
    /// The output that the page shows; empty if it shows none.
    pub(crate) output: Vec<String>,
}

/// The test that runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runs {
    /// The quick tests, without a cluster.
    Locally,
    /// The test with a hub.
    OnHub,
    /// No test of the documentation.
    Never,
}

/// The commands that the tests of the documentation do not run, below the reasons.
const NOT_RUN: &str = include_str!("not_run.txt");

/// Returns the commands in [`NOT_RUN`], with their reasons.
fn not_run() -> impl Iterator<Item = (&'static str, &'static str)> {
    let groups = NOT_RUN.split("# ").filter_map(|group| group.split_once('\n'));
    groups.flat_map(|(reason, commands)| {
        // A command continues on the next line after a backslash.
        let mut rest = commands.trim_end();
        std::iter::from_fn(move || {
            let end = rest.match_indices('\n').find(|(at, _)| !rest[..*at].ends_with('\\'));
            let command = end.map_or(rest, |(at, _)| &rest[..at]);
            rest = rest[command.len()..].trim_start_matches('\n');
            (!command.is_empty()).then_some((command, reason))
        })
    })
}

/// The subcommands that need a hub, unless a file is given.
const NEEDS_HUB: &str = "diff doctor gitopscluster hold install migrate release status uninstall";

/// Returns the commands of all pages, in order.
pub(crate) fn commands() -> Vec<Shown> {
    pages().iter().flat_map(of_page).collect()
}

/// Returns the commands of a page: the lines with `$` in its console blocks.
fn of_page(page: &Page) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for block in page.blocks.iter().filter(|block| block.language == "console") {
        let before = all.len();
        let mut continues = false;
        for (number, line) in (block.line + 1..).zip(block.text.lines()) {
            if let Some(text) = line.strip_prefix("$ ") {
                all.push(Shown {
                    location: format!("{}:{number}", page.path),
                    section: format!("{}#{}", page.path, block.section),
                    text: text.to_owned(),
                    output: Vec::new(),
                });
            } else {
                let last = all[before..]
                    .last_mut()
                    .unwrap_or_else(|| panic!("{}:{number}: a command is missing", page.path));
                if continues {
                    last.text.push('\n');
                    last.text.push_str(line);
                } else {
                    last.output.push(line.to_owned());
                    continue;
                }
            }
            continues = line.ends_with('\\') || line.ends_with('|');
        }
        assert!(
            all.len() > before,
            "{}:{}: a console without a command",
            page.path,
            block.line
        );
    }
    all
}

/// Returns the test that runs a command; `None` if the command is not classified.
pub(crate) fn runs(text: &str) -> Option<Runs> {
    let of_program: Vec<&str> = text
        .split("argocd-ocm-cmp ")
        .skip(1)
        .filter_map(|rest| rest.split(' ').next())
        .collect();
    let needs_hub = NEEDS_HUB.split(' ').any(|word| of_program.contains(&word)) && !text.contains(" --file ");
    if not_run().any(|(command, _)| command == text) {
        Some(Runs::Never)
    } else if text.contains("kubectl ") || needs_hub {
        Some(Runs::OnHub)
    } else {
        (!of_program.is_empty()).then_some(Runs::Locally)
    }
}

#[test]
fn every_command_is_run_or_excluded_with_a_reason() {
    let all = commands();
    let unknown: Vec<String> = all
        .iter()
        .filter(|command| runs(&command.text).is_none())
        .map(|command| format!("{}: {}", command.location, command.text))
        .collect();
    assert!(
        unknown.is_empty(),
        "commands that no test runs or excludes:\n{}",
        unknown.join("\n")
    );
    for (text, reason) in not_run() {
        assert!(
            all.iter().any(|command| command.text == text),
            "no page has {text}, which is excluded because {reason}"
        );
    }
}

#[test]
fn kubectl_installs_the_files_of_the_default_features() {
    let applied: Vec<String> = commands()
        .into_iter()
        .filter(|command| command.section == "docs/install.md#install-with-kubectl")
        .map(|command| command.text)
        .collect();
    let table = fs::read_to_string(root().join("chart/features.yaml")).expect("the table of features");
    for feature in ["plugin", "project", "policy", "controller", "agent-admission"] {
        let row = table
            .split("\n- name: ")
            .find(|row| row.lines().next() == Some(feature));
        let words = row.expect(feature).split([' ', '[', ',', ']', '\n']);
        for file in words.filter(|word| word.strip_suffix(".yaml").is_some()) {
            let is_applied = applied.iter().any(|text| text.contains(&format!(" -f {file}")));
            assert!(is_applied, "docs/install.md does not apply {file} of {feature}");
        }
    }
}

/// No release is published, and the page of this section tells to write an image into the files first.
#[test]
fn no_command_deploys_the_image_of_a_release() {
    const WITH_IMAGE: [&str; 4] = [
        "deploy_cmp.yaml",
        "deploy_controller.yaml",
        "live.yaml",
        "helm install ",
    ];
    for Shown { section, text, .. } in commands() {
        let is_of_release = WITH_IMAGE.iter().any(|part| text.contains(part)) && !text.contains(" image.repository=");
        assert!(
            IS_PUBLISHED || !is_of_release || section == "docs/install.md#install-with-kubectl",
            "{section}: {text}"
        );
    }
}

#[test]
fn program_parses_every_documented_command() {
    for command in commands() {
        for part in command.text.replace("\\\n", " ").replace(['(', ')'], "|").split('|') {
            let part = [" #", " 2>", ">"]
                .into_iter()
                .fold(part, |part, mark| part.split(mark).next().unwrap_or_default());
            let Some((_, words)) = part
                .split_once("argocd-ocm-cmp ")
                .filter(|(before, _)| !before.contains("kubectl"))
            else {
                continue;
            };
            if runs(&command.text) == Some(Runs::Never) && !part.trim_start().starts_with("argocd-ocm-cmp") {
                continue;
            }
            let words = words.replace("$REGISTRY", "registry.example.com");
            let words = words.split_whitespace().map(|word| word.trim_matches(['\'', '"']));
            if let Err(error) = Cli::try_parse_from(["argocd-ocm-cmp"].into_iter().chain(words)) {
                panic!("{}: {part}: {error}", command.location);
            }
        }
    }
}
