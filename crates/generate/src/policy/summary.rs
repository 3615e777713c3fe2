//! Summaries of policies for `policy check`.

use super::{Policy, PolicyEntry, Rules};
use std::fmt::Write as _;

pub(super) fn of_policy(policy: &Policy) -> String {
    let mut text = String::new();
    for entry in &policy.entries {
        writeln!(text, "projects {}", entry.names).expect("writing to a String never fails");
        describe(entry, &mut text);
    }
    if !policy.entries.iter().any(|entry| entry.names.are_all()) {
        text.push_str("any other project\n  nothing\n");
    }
    text
}

pub(super) fn of_project(rules: &Rules<'_>) -> String {
    let mut text = format!("project {}, by the entry for {}\n", rules.project, rules.entry.names);
    describe(rules.entry, &mut text);
    text
}

fn describe(entry: &PolicyEntry, out: &mut String) {
    let list = |list: &Option<super::Patterns>| list.as_ref().map_or("all".to_owned(), ToString::to_string);
    let mut kinds = list(&entry.kinds);
    if let Some(denied) = &entry.denied_kinds {
        write!(kinds, "; not {denied}").expect("writing to a String never fails");
    }
    let cluster_scoped = if entry.cluster_scoped {
        "yes"
    } else {
        "no, and custom resources only of kinds named in full"
    };
    let secrets = if entry.secrets {
        "yes, where the Application sets allow-secrets"
    } else {
        "no"
    };
    let executor = entry
        .executor
        .as_ref()
        .map_or("the Application's choice".to_owned(), ToString::to_string);
    let placements = match (&entry.placements, &entry.clusters) {
        (None, Some(_)) => "none".to_owned(),
        (placements, _) => list(placements),
    };
    for (what, value) in [
        ("clusters", list(&entry.clusters)),
        ("placements", placements),
        ("namespaces", list(&entry.namespaces)),
        ("kinds", kinds),
        ("cluster-scoped", cluster_scoped.to_owned()),
        ("plain Secrets", secrets.to_owned()),
        ("executor", executor),
    ] {
        writeln!(out, "  {what:<16}{value}").expect("writing to a String never fails");
    }
}
