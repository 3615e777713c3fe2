//! The text of a log: whole lines, marked with their container, without what could control a terminal.

use crate::limits::LINE_BYTES;
use manifest::text::is_unprintable;
use std::ops::RangeInclusive;
use std::str::Chars;

/// Cuts the bytes of a log into lines.
#[derive(Debug, Default)]
pub(crate) struct LogLines {
    /// The mark at the start of each line; empty if the log has one container.
    mark: String,
    pending: Vec<u8>,
}

impl LogLines {
    /// Creates the lines of a container.
    pub(crate) fn new(mark: String) -> Self {
        Self {
            mark,
            pending: Vec::new(),
        }
    }

    /// Adds bytes, and returns the lines that are complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let mut out = String::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            for piece in piece.chunks(LINE_BYTES) {
                self.pending.extend_from_slice(piece);
                if piece.ends_with(b"\n") || self.pending.len() >= LINE_BYTES {
                    self.end_line(&mut out);
                }
            }
        }
        out
    }

    /// Returns the last line, if it is incomplete.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        if !self.pending.is_empty() {
            self.end_line(&mut out);
        }
        out
    }

    fn end_line(&mut self, out: &mut String) {
        out.push_str(&self.mark);
        clean(&String::from_utf8_lossy(&self.pending), out);
        out.push('\n');
        self.pending.clear();
    }
}

/// Appends a line without escape sequences and control characters.
fn clean(line: &str, out: &mut String) {
    let mut chars = line.trim_end_matches(['\n', '\r']).chars();
    while let Some(char) = chars.next() {
        match char {
            '\u{1b}' => skip_escape(&mut chars),
            '\t' => out.push(char),
            char if is_unprintable(char) => out.push(char::REPLACEMENT_CHARACTER),
            char => out.push(char),
        }
    }
}

/// Skips the rest of an escape sequence: of colours and the cursor (CSI), of titles and links (OSC), of character sets, or one character.
fn skip_escape(chars: &mut Chars<'_>) {
    let before = chars.clone();
    match chars.next() {
        Some('[') => skip_sequence(chars, '\u{20}'..='\u{3f}', '\u{40}'..='\u{7e}'),
        Some(']') => {
            let mut before = None;
            for char in chars.by_ref() {
                if char == '\u{7}' || char == '\\' && before == Some('\u{1b}') {
                    break;
                }
                before = Some(char);
            }
        }
        Some('\u{20}'..='\u{2f}') => skip_sequence(chars, '\u{20}'..='\u{2f}', '\u{30}'..='\u{7e}'),
        Some('\u{30}'..='\u{7e}') | None => {}
        // It is no escape sequence.
        Some(_) => *chars = before,
    }
}

/// Skips characters of the first range and one of the second. Another character ends the sequence, as on a terminal.
fn skip_sequence(chars: &mut Chars<'_>, inner: RangeInclusive<char>, last: RangeInclusive<char>) {
    let mut rest = chars.clone();
    while let Some(char) = rest.next() {
        let is_inner = inner.contains(&char);
        if is_inner || last.contains(&char) {
            *chars = rest.clone();
        }
        if !is_inner {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(mark: &str, pieces: &[&[u8]]) -> String {
        let mut lines = LogLines::new(mark.to_owned());
        let mut text: String = pieces.iter().map(|piece| lines.push(piece)).collect();
        text.push_str(&lines.finish());
        text
    }

    #[test]
    fn marks_whole_lines() {
        assert_eq!(
            all("[web-0 app] ", &[b"one\ntw", b"o\r\n\n", b"three"]),
            "[web-0 app] one\n[web-0 app] two\n[web-0 app] \n[web-0 app] three\n"
        );
        assert_eq!(all("", &[b"\xc3", b"\xa9\n"]), "é\n");
        assert_eq!(all("", &[b""]), "");
    }

    #[test]
    fn removes_escape_sequences_and_control_characters() {
        for (given, expected) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;http://x\u{1b}\\link", "link"),
            ("\u{1b}c\u{8}\tx", "\u{fffd}\tx"),
            ("\u{1b}[31", ""),
            ("a\u{1b}(Bb", "ab"),
            ("ok\u{1b}[日本 123 shown", "ok日本 123 shown"),
            ("ok\u{1b}日本", "ok日本"),
            ("\u{202e}abc\u{9b}31m", "\u{fffd}abc\u{fffd}31m"),
            ("a\rb", "a\u{fffd}b"),
        ] {
            assert_eq!(
                all("", &[given.as_bytes()]).trim_end_matches('\n'),
                expected,
                "{given:?}"
            );
        }
        assert_eq!(all("", &[b"\xff\xfe\n"]), "\u{fffd}\u{fffd}\n");
    }

    #[test]
    fn wraps_long_lines() {
        let long = vec![b'x'; 3 * LINE_BYTES + 5];
        let text = all("", &[&long]);
        assert_eq!(text.lines().count(), 4);
        assert!(text.lines().all(|line| line.len() <= LINE_BYTES));
    }

    proptest! {
        #[test]
        fn nothing_controls_a_terminal(bytes: Vec<u8>, cut in 0_usize..64) {
            let cut = cut.min(bytes.len());
            let text = all("", &[&bytes[..cut], &bytes[cut..]]);
            prop_assert!(!text.replace(['\n', '\t'], "").contains(is_unprintable));
        }
    }
}
