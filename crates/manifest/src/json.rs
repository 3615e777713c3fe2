//! Canonical JSON: equal values have equal text, which Argo CD reads unchanged.
//!
//! Argo CD reads a plugin's output twice, the second time with a YAML 1.1 parser (`kube.SplitYAML` in the repo-server). That
//! parser refuses unescaped control characters and a few others, so they are escaped here; it refuses surrogate escapes
//! (`\ud83d\ude00`), so all other characters are unescaped.

use crate::text::is_unprintable;
use crate::value::{Map, Value};
use std::fmt::Write as _;
use std::ops::Range;

/// The maximum length of a key, in characters of its JSON text, in Argo CD's second parser: it refuses a mapping key of more than
/// 1,024 characters, including quotes.
pub(crate) const KEY_MAX: usize = 1022;

/// The maximum nesting depth of a value: the same parser stops at 10,000 levels, and a ManifestWork adds a few levels around its
/// objects.
pub(crate) const DEPTH_MAX: usize = 9_990;

/// The reason why Argo CD cannot read a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// A key longer than [`KEY_MAX`].
    #[error("the key that begins with {0:?} has more than {KEY_MAX} characters, which Argo CD cannot read")]
    LongKey(String),
    /// A value deeper than [`DEPTH_MAX`].
    #[error("it is nested deeper than {DEPTH_MAX} levels, which Argo CD cannot read")]
    TooDeep,
}

/// Appends the canonical JSON of `value` to `out`.
///
/// # Errors
/// Returns an error if Argo CD could not read the text; `out` then contains a part of it.
pub fn write(value: &Value<'_>, out: &mut String) -> Result<(), JsonError> {
    write_at(value, 1, out)
}

/// Appends the canonical JSON of `map` to `out`.
///
/// # Errors
/// As [`write()`].
pub fn write_map(map: &Map<'_>, out: &mut String) -> Result<(), JsonError> {
    write_map_at(map, 1, out)
}

fn write_at(value: &Value<'_>, depth: usize, out: &mut String) -> Result<(), JsonError> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Int(int) => write!(out, "{int}").expect("writing to a String never fails"),
        Value::Float(float) => write_float(*float, out),
        Value::String(text) => write_text(text, out),
        Value::List(items) => {
            if depth > DEPTH_MAX {
                return Err(JsonError::TooDeep);
            }
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_at(item, depth + 1, out)?;
            }
            out.push(']');
        }
        Value::Map(map) => write_map_at(map, depth, out)?,
    }
    Ok(())
}

fn write_map_at(map: &Map<'_>, depth: usize, out: &mut String) -> Result<(), JsonError> {
    if depth > DEPTH_MAX {
        return Err(JsonError::TooDeep);
    }
    out.push('{');
    for (at, (key, value)) in map.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write_key(key, out)?;
        write_at(value, depth + 1, out)?;
    }
    out.push('}');
    Ok(())
}

/// Appends `"key":`.
///
/// # Errors
/// Returns an error if the key is too long for Argo CD.
pub fn write_key(key: &str, out: &mut String) -> Result<(), JsonError> {
    let start = out.len();
    write_text(key, out);
    // The number of bytes is an upper bound, so only the rare long key is counted.
    if out.len() - start > KEY_MAX + 2 && out[start..].chars().count() > KEY_MAX + 2 {
        return Err(JsonError::LongKey(key.chars().take(40).collect()));
    }
    out.push(':');
    Ok(())
}

/// Appends `text` as a JSON string.
pub fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if PLAIN[byte as usize] {
            at += 1;
            continue;
        }
        let char = text[at..].chars().next().expect("at is a boundary");
        if byte < 0x80 || is_unreadable(char) {
            out.push_str(&text[copied..at]);
            write_escape(char, out);
            copied = at + char.len_utf8();
        }
        at += char.len_utf8();
    }
    out.push_str(&text[copied..]);
    out.push('"');
}

/// The bytes to copy without looking ahead. The three excluded lead bytes begin U+0080–00BF, U+2000–2FFF and U+F000–FFFF, which
/// include the characters of [`is_unreadable`].
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < 0x20 {
        plain[byte] = false;
        byte += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain[0x7f] = false;
    plain[0xc2] = false;
    plain[0xe2] = false;
    plain[0xef] = false;
    plain
};

/// Returns true for unescaped characters above ASCII that Argo CD's second parser refuses or folds into white space.
fn is_unreadable(char: char) -> bool {
    matches!(
        char,
        '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

/// Returns JSON for a terminal, which displays it as it is: the same value, with [unprintable](is_unprintable) characters escaped. They can
/// only be in strings.
pub fn escape_unprintable(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for char in json.chars() {
        if is_unprintable(char) {
            write_escape(char, &mut out);
        } else {
            out.push(char);
        }
    }
    out
}

fn write_escape(char: char, out: &mut String) {
    match char {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        other => write!(out, "\\u{:04x}", u32::from(other)).expect("writing to a String never fails"),
    }
}

/// Appends a number as Go's `encoding/json` prints a float64: the shortest digits that round-trip, without an exponent from 1e-6
/// up to 1e21.
pub fn write_float(float: f64, out: &mut String) {
    out.push_str(&format_like_go(float, -6..21, 1));
}

/// Returns the shortest digits that distinguish a finite float from its neighbours, as Go's strconv formats them: without an exponent in
/// the range `plain`, and otherwise with one of at least `width` digits.
pub(crate) fn format_like_go(float: impl ryu::Float, plain: Range<i32>, width: usize) -> String {
    let mut buffer = ryu::Buffer::new();
    let text = buffer.format_finite(float);
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_start_matches('0');
    let leading = all.len() - digits.len();
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return format!("{sign}0");
    }
    let length = |length: usize| i32::try_from(length).expect("at most 17 digits");
    let exponent = exponent.parse::<i32>().expect("ryu's exponent") + length(whole.len()) - length(leading) - 1;
    if !plain.contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{dot}{rest}e{exponent_sign}{:0width$}", exponent.abs());
    }
    match usize::try_from(exponent + 1) {
        Ok(point) if (1..digits.len()).contains(&point) => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
        Ok(point) if point > 0 => format!("{sign}{digits:0<point$}"),
        _ => format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1)),
    }
}

/// Returns the number of bytes that OCM's admission webhook counts for one manifest whose JSON has `length` bytes in Go's
/// encoding: `RawExtension.Size()` adds one byte and the length of the length.
pub fn webhook_size(length: usize) -> usize {
    let varint = (usize::BITS - length.leading_zeros()).div_ceil(7).max(1) as usize;
    1 + varint + length
}

/// The changes to canonical JSON on its way through Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The number of bytes after Go encodes it again, as the API server does before it calls a webhook: `<`, `>` and `&` need six
    /// bytes each; other characters are unescaped except C0 controls and U+2028/9.
    pub length: usize,
    /// True if it contains a character that the API server changes or refuses in an apply patch, which it parses as YAML: U+007F
    /// to U+009F, U+FFFE and U+FFFF. Canonical JSON escapes all of them.
    pub unsafe_for_apply: bool,
}

/// Analyzes canonical JSON, or a piece of it, as Kubernetes will process it.
pub fn passage(json: &str) -> Passage {
    let bytes = json.as_bytes();
    let mut length = bytes.len() + 5 * memchr::memchr3_iter(b'<', b'>', b'&', bytes).count();
    let mut unsafe_for_apply = false;
    let mut rest = json;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let escape = &rest[at..];
        if escape.as_bytes()[1] == b'u' {
            let code = u32::from_str_radix(&escape[2..6], 16).unwrap_or_default();
            length -= match code {
                0x7f => 5,
                0x80..=0x9f => 4,
                0xfeff | 0xfffe | 0xffff => 3,
                _ => 0,
            };
            unsafe_for_apply |= matches!(code, 0x7f..=0x9f | 0xfffe | 0xffff);
        }
        rest = &escape[2..];
    }
    Passage {
        length,
        unsafe_for_apply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Argo CD compares the text that it stored, so works keep these characters.
    #[test]
    fn only_text_for_a_terminal_has_no_bidi_characters() {
        let mut text = String::new();
        write_text("a\u{202e}b\u{2069}", &mut text);
        assert_eq!(text, "\"a\u{202e}b\u{2069}\"");
        assert_eq!(escape_unprintable(&text), "\"a\\u202eb\\u2069\"");
        assert_eq!(escape_unprintable("{\"a\":\"b\\n\"}"), "{\"a\":\"b\\n\"}");
    }

    fn float(float: f64) -> String {
        let mut out = String::new();
        write_float(float, &mut out);
        out
    }

    fn encode_text(text: &str) -> String {
        let mut out = String::new();
        write_text(text, &mut out);
        out
    }

    #[test]
    fn formats_floats_like_go() {
        for (value, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.5, "0.5"),
            (-2.5, "-2.5"),
            (1234.5678, "1234.5678"),
            (0.000_001, "0.000001"),
            (0.000_000_1, "1e-7"),
            (1.25e-9, "1.25e-9"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (18_446_744_073_709_551_615.0, "18446744073709552000"),
            (67.563_995_361_328_12, "67.56399536132812"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (0.05, "0.05"),
        ] {
            assert_eq!(float(value), expected);
        }
    }

    #[test]
    fn escapes_characters_that_argo_cds_second_parser_refuses() {
        assert_eq!(encode_text("a\"\\\n\t\u{1}"), r#""a\"\\\n\t\u0001""#);
        assert_eq!(
            encode_text("\u{7f}\u{80}\u{85}\u{9f}\u{a0}"),
            "\"\\u007f\\u0080\\u0085\\u009f\u{a0}\""
        );
        assert_eq!(
            encode_text("\u{2027}\u{2028}\u{2029}\u{feff}\u{fffd}\u{ffff}"),
            "\"\u{2027}\\u2028\\u2029\\ufeff\u{fffd}\\uffff\""
        );
        assert_eq!(encode_text("grüß 😀 €"), "\"grüß 😀 €\"");
    }

    #[test]
    fn size_matches_the_webhook() {
        // Verified with the real webhook: it counts 600,103 bytes for a ConfigMap with 100,000 '<'.
        let config_map = format!(
            r#"{{"apiVersion":"v1","data":{{"k":"{}"}},"kind":"ConfigMap","metadata":{{"name":"big","namespace":"default"}}}}"#,
            "<".repeat(100_000)
        );
        let plain = config_map.len();
        assert_eq!(webhook_size(passage(&config_map).length), plain + 500_000 + 1 + 3);
        assert_eq!(webhook_size(passage("{}").length), 2 + 1 + 1);
        assert_eq!(passage(r#"{"a":"\u007f\\u\u0001"}"#).length, 18);
    }

    #[test]
    fn refuses_keys_too_long_for_argo_cd() {
        let mut out = String::new();
        assert_eq!(write_key(&"k".repeat(KEY_MAX), &mut out), Ok(()));
        assert_eq!(write_key(&"é".repeat(KEY_MAX), &mut out), Ok(()));
        assert!(write_key(&"k".repeat(KEY_MAX + 1), &mut out).is_err());
    }

    #[test]
    fn only_escapes_are_unsafe_for_apply() {
        for (text, unsafe_for_apply) in [
            (r"\u0085", true),
            (r"\u007f", true),
            (r"\uffff", true),
            (r"\u001f", false),
            (r"\ufeff", false),
            (r"\\u0085", false),
            (r"\\\u0085", true),
            (r"\n\\u008", false),
        ] {
            assert_eq!(passage(text).unsafe_for_apply, unsafe_for_apply, "{text}");
        }
    }
}
