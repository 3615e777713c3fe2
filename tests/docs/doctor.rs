//! Checks the findings of docs/doctor.md: their texts are generated from the checks; the headings and the notes are written by hand.

use crate::generated::{compare_parts, parts_of};
use crate::page::root;
use argocd_ocm_cmp::doctor::{CHECKS, Message, REFUSED, Severity};
use std::collections::BTreeMap;
use std::fs;

/// The maximum length of a line.
const WIDTH: usize = 150;

#[test]
fn page_lists_every_problem() {
    let page = fs::read_to_string(root().join("docs/doctor.md")).expect("docs/doctor.md");
    let parts = parts_of(&page);
    let [part] = parts[..] else {
        panic!("one generated part")
    };
    let of_checks = CHECKS.iter().map(|check| (check.name, check.messages));
    let of_any_check = [&REFUSED];
    let all: Vec<_> = of_checks.chain([("any check", &of_any_check[..])]).collect();
    compare_parts("docs/doctor.md", &[findings(&all, &by_hand(part))]);
}

/// Returns the findings of each check, without those that need no action.
fn findings(checks: &[(&str, &[&Message])], by_hand: &BTreeMap<String, String>) -> String {
    let mut sections = Vec::new();
    for (check, messages) in checks {
        let heading = by_hand.get(*check).cloned();
        let mut section = heading.unwrap_or_else(|| format!("### Check `{check}` (`{check}`)")) + "\n\n";
        for message in messages.iter().filter(|message| message.level != Severity::Ok) {
            let (id, level) = (message.id, message.level.name());
            let (text, remediation) = (message.text, message.remediation);
            // `doctor` links to the anchor.
            section += &wrapped(&format!(
                "- <a id=\"{id}\"></a>`{id}` ({level}): **{text}: {remediation}**"
            ));
            if let Some(note) = by_hand.get(id).filter(|note| !note.is_empty()) {
                section.extend(["\\\n  ", note]);
            }
            section.push('\n');
        }
        sections.push(section);
    }
    sections.join("\n")
}

/// Returns the headings by check, with the text below them, and the notes by finding.
fn by_hand(part: &str) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut key = String::new();
    let mut is_generated = false;
    for line in part.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            let name = heading
                .rsplit_once(" (")
                .map_or(heading, |(_, name)| name.trim_end_matches(')'));
            name.trim_matches('`').clone_into(&mut key);
        } else if let Some((id, _)) = line.strip_prefix("- <a id=\"").and_then(|rest| rest.split_once('"')) {
            id.clone_into(&mut key);
            is_generated = true;
        }
        if !is_generated {
            texts.entry(key.clone()).or_default().extend([line, "\n"]);
        }
        is_generated &= !line.trim_end_matches('\\').ends_with("**");
    }
    let trimmed = texts.into_iter().map(|(key, text)| (key, text.trim().to_owned()));
    trimmed.collect()
}

/// Wraps the text of a list item.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            // The last column is for a backslash.
            Some(line) if line.len() + 1 + word.len() < WIDTH => line.extend([" ", word]),
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}
