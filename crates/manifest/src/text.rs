//! Sanitizes texts of others before they are stored or displayed.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use base64::alphabet;
use base64::engine::{Engine, GeneralPurpose, GeneralPurposeConfig};
use std::borrow::Cow;
use std::collections::HashSet;

/// Returns true for characters that a terminal or a page does not display as themselves: control characters, line breaks, and
/// those that change the direction of the following text.
pub fn is_unprintable(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces unprintable characters, for a terminal: a name on the hub or in a file may contain any.
pub fn printable(text: &str) -> String {
    text.replace(is_unprintable, "\u{fffd}")
}

/// Decodes base64 as Go's `base64.StdEncoding`, and so Kubernetes and Helm: padded, with line breaks anywhere, and with any bits after the
/// last byte. Returns `None` for another text.
pub fn decode_base64(text: &str) -> Option<Vec<u8>> {
    const BASE64: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    if text.contains(['\n', '\r']) {
        BASE64.decode(text.replace(['\n', '\r'], "")).ok()
    } else {
        BASE64.decode(text).ok()
    }
}

/// A counter of lines, which usually moves forward: positions that ascend take one pass together.
#[derive(Debug)]
pub struct LineCounter<'a> {
    pub(crate) text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> LineCounter<'a> {
    /// Creates a counter at the start of a text.
    pub const fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// Returns the line of a position, from 1.
    ///
    /// # Panics
    /// If the position is beyond the end of the text.
    pub fn line_of(&mut self, at: usize) -> usize {
        if at < self.at {
            (self.at, self.line) = (0, 1);
        }
        let breaks = memchr::memchr_iter(b'\n', &self.text.as_bytes()[self.at..at]).count();
        self.line = self.line.saturating_add(breaks);
        self.at = at;
        self.line
    }
}

/// Returns the text in one line, with a blank for every unprintable character.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(is_unprintable) {
        text.replace(is_unprintable, " ").into()
    } else {
        text.into()
    }
}

/// Truncates a text to at most `max` bytes, including a mark if it was longer.
pub fn shortened(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let mut ends = (0..=max.saturating_sub('…'.len_utf8())).rev();
    let end = ends.find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    format!("{}…", &text[..end]).into()
}

/// Replaces the middle of a text by a mark if it has more than `max` bytes: both its start and its end are kept.
pub fn without_middle(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let budget = max.saturating_sub('…'.len_utf8());
    let is_boundary = |at: &usize| text.is_char_boundary(*at);
    let end = (0..=budget.div_ceil(2)).rev().find(is_boundary).unwrap_or(0);
    let start = text.len().saturating_sub(budget / 2);
    let start = (start..text.len()).find(is_boundary).unwrap_or(text.len());
    format!("{}…{}", &text[..end], &text[start..]).into()
}

/// Removes repeated texts, and keeps the order.
pub fn unique(mut texts: Vec<String>) -> Vec<String> {
    let mut known = HashSet::new();
    texts.retain(|text| known.insert(text.clone()));
    texts
}

/// Formats a count of a noun with a regular plural: `1 work`, `2 works`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Appends a reason to a text, which may be empty.
pub fn with_reason(text: &str, reason: &str) -> String {
    match reason {
        "" => text.to_owned(),
        reason => format!("{text}: {reason}"),
    }
}

/// Returns the end of a list of which only the first object is named: ` and 2 more objects`, or nothing.
pub fn and_more_objects(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!(" and {}", count(more, "more object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those of Go's `base64.StdEncoding`; `tests/go_parity` compares more.
    #[test]
    fn decodes_base64_like_go() {
        for text in ["QUI=", "QUJ=", "QU\nI\r\n=\n"] {
            assert_eq!(decode_base64(text).as_deref(), Some(&b"AB"[..]), "{text:?}");
        }
        for text in ["QUI", "QU I=", "QUI==", "QUI-"] {
            assert_eq!(decode_base64(text), None, "{text:?}");
        }
    }

    #[test]
    fn one_line_replaces_control_and_bidi_characters() {
        assert!(matches!(one_line("grüß 日本 e\u{301}"), Cow::Borrowed(_)));
        for char in [
            '\n', '\r', '\t', '\u{1b}', '\u{7f}', '\u{85}', '\u{2028}', '\u{2029}', '\u{202e}', '\u{2066}',
        ] {
            assert_eq!(one_line(&format!("a{char}b")), "a b", "{char:?}");
        }
    }

    #[test]
    fn one_is_singular() {
        let counts = [0, 1, 2].map(|number| count(number, "managed cluster"));
        assert_eq!(
            counts,
            ["0 managed clusters", "1 managed cluster", "2 managed clusters"]
        );
    }

    #[test]
    fn shortens_only_long_texts_between_characters() {
        assert_eq!(shortened("äöü", 6), "äöü");
        assert_eq!(shortened("äöüä", 6), "ä…");
        assert_eq!(shortened("abcdefg", 6), "abc…");
        assert!(matches!(shortened("abcdef", 6), Cow::Borrowed(_)));
    }

    #[test]
    fn without_middle_keeps_start_and_end_between_characters() {
        assert!(matches!(without_middle("abcdefg", 7), Cow::Borrowed(_)));
        assert_eq!(without_middle("abcdefgh", 7), "ab…gh");
        assert_eq!(without_middle("äöüäöü", 9), "ä…ü");
        assert_eq!(without_middle("abcdefgh", 0), "…");
    }
}
