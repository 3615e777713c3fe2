//! Decodes the bytes of a file to text.

use std::borrow::Cow;

use super::YamlError;

/// Decodes the bytes of a file as Argo CD's file loader does (`BOMOverride` of `golang.org/x/text`).
///
/// A byte order mark selects UTF-8 or UTF-16 and is dropped. Without one, every ill-formed part of the UTF-8 text becomes U+FFFD,
/// so that a comment in Latin-1 does no harm.
///
/// # Errors
///
/// Returns an error if the text is ill-formed after a UTF-8 byte order mark: nothing is replaced then.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, YamlError> {
    if let Some(rest) = bytes.strip_prefix(b"\xEF\xBB\xBF") {
        return match std::str::from_utf8(rest) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(error) => Err(YamlError {
                document: 1,
                line: 1 + memchr::memchr_iter(b'\n', &rest[..error.valid_up_to()]).count(),
                message: Cow::Borrowed("the file starts with a UTF-8 byte order mark but is not valid UTF-8 here"),
            }),
        };
    }
    if let Some(rest) = bytes.strip_prefix(b"\xFE\xFF") {
        return Ok(Cow::Owned(decode_utf16(rest, u16::from_be_bytes)));
    }
    if let Some(rest) = bytes.strip_prefix(b"\xFF\xFE") {
        return Ok(Cow::Owned(decode_utf16(rest, u16::from_le_bytes)));
    }
    Ok(std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed))
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair));
    let mut text: String = char::decode_utf16(units)
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    if !odd.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    text
}

/// Returns the position of the first character that go-yaml's reader refuses anywhere: control characters except tab, LF, CR and
/// NEL, and the two non-characters U+FFFE and U+FFFF.
pub(super) fn refused_character(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let is_refused = |at: usize| match bytes[at] {
        0xC2 => bytes[at + 1] < 0xA0 && bytes[at + 1] != 0x85,
        0xEF => bytes[at + 1] == 0xBF && bytes[at + 2] >= 0xBE,
        _ => true,
    };
    bytes
        .iter()
        .enumerate()
        .position(|(at, &byte)| SUSPECT[usize::from(byte)] && is_refused(at))
}

/// True for the bytes with which a refused character starts. A table, because each byte of a text is looked up, and nearly none is suspect.
static SUSPECT: [bool; 256] = {
    let mut suspect = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        suspect[byte] = !matches!(byte, 0x09 | 0x0A | 0x0D);
        byte += 1;
    }
    suspect[0x7F] = true;
    suspect[0xC2] = true;
    suspect[0xEF] = true;
    suspect
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_control_and_non_characters_wherever_they_are() {
        let is_refused = |char: char| {
            let may_be_control = matches!(char, '\t' | '\n' | '\r' | '\u{85}');
            char.is_control() && !may_be_control || matches!(char, '\u{fffe}' | '\u{ffff}')
        };
        let all = ('\0'..'\u{300}').chain('\u{e000}'..='\u{10010}');
        for char in all {
            for (before, after) in [(0, 0), (0, 9), (3, 4), (6, 6), (7, 1), (8, 0), (9, 9)] {
                let text = format!("{}{char}{}", "~".repeat(before), " ".repeat(after));
                assert_eq!(refused_character(&text), is_refused(char).then_some(before), "{text:?}");
            }
        }
    }
}
