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
    let suspect = bytes.iter().fold(false, |seen, &byte| {
        seen | is_refused_ascii(byte) | matches!(byte, 0xC2 | 0xEF)
    });
    if !suspect {
        return None;
    }
    bytes.iter().enumerate().position(|(at, &byte)| match byte {
        0xC2 => bytes[at + 1] < 0xA0 && bytes[at + 1] != 0x85,
        0xEF => bytes[at + 1] == 0xBF && bytes[at + 2] >= 0xBE,
        _ => is_refused_ascii(byte),
    })
}

fn is_refused_ascii(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\n' && byte != b'\r' && byte != b'\t') || byte == 0x7F
}
