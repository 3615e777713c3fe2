//! Checks of the format of all pages.

use crate::page::{CONTENTS, pages};

/// The maximum number of lines of a page that is written by hand.
const LONGEST: usize = 400;
const README: usize = 150;

#[test]
fn every_page_names_its_audience() {
    for page in pages()[1..].iter().filter(|page| page.path != CONTENTS) {
        assert!(page.lines[0].starts_with("# "), "{} begins with its title", page.path);
        let first = &page.lines[2];
        assert!(
            first.starts_with("For "),
            "{} begins with its audience: {first}",
            page.path
        );
    }
}

#[test]
fn every_page_is_short() {
    for page in pages() {
        let longest = match page.path.as_str() {
            "README.md" => README,
            // This page is searched, and not read.
            "docs/messages.md" => continue,
            _ => LONGEST,
        };
        let lines = page.lines.len();
        assert!(lines <= longest, "{} has {lines} lines: more than {longest}", page.path);
    }
}
