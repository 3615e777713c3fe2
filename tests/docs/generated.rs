//! Compares generated pages, and generated parts of pages, with the code. If the environment variable `REWRITE` is set, writes them
//! instead.

use crate::expected;
use crate::page::root;
use std::fs;

/// The line before a generated part of a page.
pub(crate) const START: &str = "<!-- generated: REWRITE=1 cargo test --test docs -->\n";
/// The line after it.
pub(crate) const END: &str = "<!-- end -->\n";

/// Compares a whole page, such as `docs/cli.md`, and panics with the difference.
pub(crate) fn compare_page(path: &str, text: &str) {
    if let Err(error) = expected::compare(&root().join(path), text) {
        panic!("{error:#}");
    }
}

/// Compares the generated parts of a page, in order, and panics with the difference.
pub(crate) fn compare_parts(path: &str, parts: &[String]) {
    let page = fs::read_to_string(root().join(path)).expect(path);
    compare_page(path, &with_parts(&page, parts));
}

/// Returns the generated parts of a page.
pub(crate) fn parts_of(page: &str) -> Vec<&str> {
    page.split(START)
        .skip(1)
        .map(|rest| rest.split_once(END).expect("an end of the generated part").0)
        .collect()
}

/// Returns the page with these generated parts.
fn with_parts(page: &str, parts: &[String]) -> String {
    assert_eq!(parts_of(page).len(), parts.len(), "the number of generated parts");
    let mut pieces = page.split(START);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for (piece, part) in pieces.zip(parts) {
        let (_, rest) = piece.split_once(END).expect("an end of the generated part");
        text.extend([START, "\n", part, "\n", END, rest]);
    }
    text
}
