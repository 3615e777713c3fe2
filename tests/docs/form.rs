//! Checks of the format of all pages.

use crate::generated::{END, START};
use crate::page::{CONTENTS, Page, pages};

/// The maximum number of lines of a page that is written by hand.
const LONGEST: usize = 400;
const README: usize = 150;
/// The generated pages, which are searched rather than read.
const GENERATED: [&str; 2] = ["docs/cli.md", "docs/messages.md"];

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
            path if GENERATED.contains(&path) => continue,
            _ => LONGEST,
        };
        let lines = page.lines.len();
        assert!(lines <= longest, "{} has {lines} lines: more than {longest}", page.path);
    }
}

/// An interactive zsh passes a comment to the command as arguments.
#[test]
fn no_command_has_a_comment_after_it() {
    for page in pages() {
        let mut shells = page.blocks.iter();
        let commented =
            shells.find(|block| ["console", "sh", "shell"].contains(&&*block.language) && block.text.contains(" # "));
        assert!(
            commented.is_none(),
            "{}: {}",
            page.path,
            commented.map_or("", |block| &block.text)
        );
    }
}

/// The maximum number of words of all pages, without code, tables' borders, and generated pages and parts.
const WORDS: usize = 29_700;

#[test]
fn all_pages_together_are_short() {
    let is_counted = |page: &&Page| page.path != CONTENTS && !GENERATED.contains(&&*page.path);
    let words: usize = pages().iter().filter(is_counted).map(words).sum();
    assert!(words < WORDS, "{words} words: shorten a page");
}

/// Counts the words of a page outside of code and generated parts.
fn words(page: &Page) -> usize {
    let (mut words, mut is_code, mut is_generated) = (0, false, false);
    for line in &page.lines {
        is_code ^= line.trim_start().starts_with("```");
        is_generated |= line == START.trim_end();
        if !is_code && !is_generated {
            let is_word = |word: &&str| word.contains(char::is_alphanumeric);
            words += line.split_whitespace().filter(is_word).count();
        }
        is_generated &= line != END.trim_end();
    }
    words
}

/// mdBook reads the table of contents: every other line is an error there, or a page without a link.
#[test]
fn table_of_contents_has_the_form_of_mdbook() {
    let pages = pages();
    let contents = pages.iter().find(|page| page.path == CONTENTS).expect(CONTENTS);
    for line in contents.lines.iter().filter(|line| !line.is_empty()) {
        let link = line.strip_prefix("- ").unwrap_or(line);
        let target = link
            .strip_prefix('[')
            .and_then(|link| link.strip_suffix(".md)"))
            .and_then(|link| link.split_once("]("));
        let is_link = target.is_some_and(|(_, target)| !target.contains(['(', '#']));
        assert!(is_link || line.starts_with("# "), "{CONTENTS}: {line}");
    }
}
