//! Checks that each promise of docs/security.md names the tests that hold it.
//!
//! Below a heading, a comment that begins with `held by` has a line for each list item of the section, by its bold words; "The
//! section" stands for the rest. After the colon follow tests, or "none" and the reason why the item is no promise.

use crate::page::root;
use std::collections::BTreeMap;
use std::fs;

const START: &str = "<!-- held by";

/// The tests of each promise of a section.
type Promises = BTreeMap<String, String>;

/// Returns the text of the comment below each heading, and the bold words of the list items below it.
fn sections(text: &str) -> Vec<(String, Promises, Vec<String>)> {
    let mut sections = Vec::new();
    let mut is_code = false;
    let mut comment: Option<String> = None;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let heading = line
            .trim_start_matches('#')
            .strip_prefix(' ')
            .filter(|_| line.starts_with("##"));
        if let (Some(heading), false) = (heading, is_code) {
            sections.push((heading.to_owned(), Promises::new(), Vec::new()));
        }
        let Some((_, promises, items)) = sections.last_mut() else {
            continue;
        };
        match (&mut comment, line) {
            (None, START) => comment = Some(String::new()),
            (Some(names), "-->") => {
                let one_line = names.replace("\n  ", " ");
                let entries = one_line
                    .lines()
                    .map(|entry| entry.split_once(": ").expect("an item and its tests"));
                promises.extend(entries.map(|(item, tests)| (item.to_owned(), tests.to_owned())));
                comment = None;
            }
            (Some(names), line) => {
                names.push_str(line);
                names.push('\n');
            }
            (None, _) if !is_code => items.extend(bold(line)),
            (None, _) => {}
        }
    }
    sections
}

/// Returns the bold words at the start of a list item.
fn bold(line: &str) -> Option<String> {
    let (start, rest) = line.split_once(" **")?;
    let is_item = start == "-"
        || start
            .strip_suffix('.')
            .is_some_and(|number| number.parse::<u8>().is_ok());
    let (words, _) = rest.split_once("**").filter(|_| is_item)?;
    Some(words.replace('`', "").trim_end_matches(['.', ':']).to_owned())
}

/// Returns true if the test exists: `command/secrets::name` is in tests/command/secrets.rs, and `ocm/names::name` in a crate.
fn exists(test: &str) -> bool {
    let Some((file, name)) = test.split_once("::") else {
        return false;
    };
    let (first, rest) = file.split_once('/').unwrap_or((file, ""));
    let files = [format!("tests/{file}.rs"), format!("crates/{first}/src/{rest}.rs")];
    let texts = files
        .iter()
        .filter_map(|file| fs::read_to_string(root().join(file)).ok());
    texts.into_iter().any(|text| text.contains(&format!("fn {name}(")))
}

#[test]
fn every_promise_names_existing_tests() {
    let text = fs::read_to_string(root().join("docs/security.md")).expect("the page");
    let mut promised = 0;
    for (section, promises, items) in sections(&text) {
        for item in &items {
            assert!(
                promises.contains_key(item),
                "{section}: {item}: the comment names no test"
            );
        }
        for (item, tests) in &promises {
            assert!(
                items.contains(item) || item == "The section",
                "{section}: {item}: the section has no such item"
            );
            if tests.starts_with("none, ") {
                continue;
            }
            for test in tests.split(", ") {
                assert!(exists(test), "{section}: {item}: no test is named {test}");
            }
            promised += 1;
        }
    }
    assert!(promised > 35, "{promised}");
}

#[test]
fn finds_items_and_their_tests() {
    let text = "## A\n\n<!-- held by\nOne: a::b,\n  c::d\n-->\n\n- **One.** text\n1. **`Two`**\n```\n- **no**\n```\n";
    let [(section, promises, items)] = &sections(text)[..] else {
        panic!("one section");
    };
    assert_eq!(section, "A");
    assert_eq!(promises["One"], "a::b, c::d");
    assert_eq!(items, &["One", "Two"]);
    assert!(!exists("command/secrets::no_such_test"));
}
