//! Resolves scalars by the rules of YAML 1.1, as far as go-yaml v2 follows them.

use super::number::{self, Number};
use base64::alphabet;
use base64::engine::{Engine, GeneralPurpose, GeneralPurposeConfig};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarStyle {
    Plain,
    Quoted,
    Block,
}

/// The tag of a scalar, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Null,
    Bool,
    Int,
    Float,
    Timestamp,
    Binary,
    Merge,
    /// `!`: not resolved, but counts as no tag for merge keys.
    NonSpecific,
    /// `!!str`, and tags unknown to go-yaml: the text is unchanged.
    Text,
}

impl Tag {
    pub(super) fn from_name(name: &[u8]) -> Self {
        match name {
            b"!" => Self::NonSpecific,
            b"tag:yaml.org,2002:null" => Self::Null,
            b"tag:yaml.org,2002:bool" => Self::Bool,
            b"tag:yaml.org,2002:int" => Self::Int,
            b"tag:yaml.org,2002:float" => Self::Float,
            b"tag:yaml.org,2002:timestamp" => Self::Timestamp,
            b"tag:yaml.org,2002:binary" => Self::Binary,
            b"tag:yaml.org,2002:merge" => Self::Merge,
            _ => Self::Text,
        }
    }
}

/// The resolved value of a scalar; `Text` is the scalar itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Plain {
    Null,
    Bool(bool),
    Number(Number),
    Text,
}

/// The resolved value of a scalar with its tag.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
}

/// Returns true if the text, written without quotes and tag, is read as a string. The context may still require quotes.
#[must_use]
pub fn is_text(text: &str) -> bool {
    plain(text) == Plain::Text
}

/// Resolves a scalar without quotes or tag.
pub(crate) fn plain(text: &str) -> Plain {
    let number = match text.as_bytes().first() {
        None => return Plain::Null,
        Some(b'0'..=b'9') => number::parse(text),
        Some(b'+' | b'-') => special_float(text).or_else(|| number::parse(text)),
        Some(b'.') => special_float(text).or_else(|| number::parse_fraction(text)),
        Some(b'~' | b'n' | b'N' | b'y' | b'Y' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') if text.len() <= 5 => {
            return word(text);
        }
        Some(_) => return Plain::Text,
    };
    number.map_or(Plain::Text, Plain::Number)
}

fn word(text: &str) -> Plain {
    match text {
        "~" | "null" | "Null" | "NULL" => Plain::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => Plain::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => Plain::Bool(false),
        _ => Plain::Text,
    }
}

fn special_float(text: &str) -> Option<Number> {
    let value = match text {
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => f64::INFINITY,
        "-.inf" | "-.Inf" | "-.INF" => f64::NEG_INFINITY,
        ".nan" | ".NaN" | ".NAN" => f64::NAN,
        _ => return None,
    };
    Some(Number::Float(value))
}

/// Resolves a scalar. A type tag applies even to a quoted text; it is an error if the text does not match the type.
pub(super) fn scalar(text: Cow<'_, str>, style: ScalarStyle, tag: Option<Tag>) -> Result<Scalar<'_>, &'static str> {
    let Some(tag) = tag else {
        if style != ScalarStyle::Plain {
            return Ok(Scalar::Text(text));
        }
        return Ok(match plain(&text) {
            Plain::Null => Scalar::Null,
            Plain::Bool(value) => Scalar::Bool(value),
            Plain::Number(value) => Scalar::Number(value),
            Plain::Text => Scalar::Text(text),
        });
    };
    match (tag, plain(&text)) {
        (Tag::Text | Tag::NonSpecific | Tag::Merge, _) => Ok(Scalar::Text(text)),
        // Go's decoder skips line breaks everywhere.
        (Tag::Binary, _) => BASE64
            .decode(text.replace(['\n', '\r'], ""))
            .map(|bytes| Scalar::Text(Cow::Owned(as_json_text(&bytes))))
            .map_err(|_| "the text after \"!!binary\" is not base64"),
        (Tag::Timestamp, _) if is_timestamp(&text) => Ok(Scalar::Text(text)),
        (Tag::Timestamp, _) => Err("the text after \"!!timestamp\" is not a date"),
        (Tag::Null, Plain::Null) => Ok(Scalar::Null),
        (Tag::Null, _) => Err("the text after \"!!null\" is not null"),
        (Tag::Bool, Plain::Bool(value)) => Ok(Scalar::Bool(value)),
        (Tag::Bool, _) => Err("the text after \"!!bool\" is not true or false"),
        (Tag::Int, Plain::Number(number @ (Number::Int(_) | Number::Large(_))))
        | (Tag::Float, Plain::Number(number @ Number::Float(_))) => Ok(Scalar::Number(number)),
        (Tag::Int, _) => Err("the text after \"!!int\" is not a whole number"),
        #[expect(clippy::cast_precision_loss, reason = "the tag requests a float")]
        (Tag::Float, Plain::Number(Number::Int(value))) => Ok(Scalar::Number(Number::Float(value as f64))),
        (Tag::Float, _) => Err("the text after \"!!float\" is not a number"),
    }
}

/// Base64 as Go's `base64.StdEncoding` decodes text without line breaks: padded, and with any bits after the last byte.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Returns bytes as Go's `encoding/json` prints them in strings: every byte that is not part of valid UTF-8 becomes U+FFFD.
fn as_json_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for part in bytes.utf8_chunks() {
        text.push_str(part.valid());
        text.extend(part.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Returns true for dates that go-yaml accepts after `!!timestamp`: `2006-1-2`, alone or with a time.
fn is_timestamp(text: &str) -> bool {
    let Some((date, time)) = split_date(text) else {
        return false;
    };
    match time.as_bytes() {
        [] => date,
        [b'T' | b't', ..] => date && clock(&time[1..]).is_some_and(is_zone),
        [b' ', ..] => date && clock(time.trim_start_matches(' ')).is_some_and(str::is_empty),
        _ => false,
    }
}

/// Returns true if the date exists in the calendar, and the text that follows it.
fn split_date(text: &str) -> Option<(bool, &str)> {
    let (year, rest) = number_field(text, 4, 4)?;
    let (month, rest) = number_field(rest.strip_prefix('-')?, 1, 2)?;
    let (day, rest) = number_field(rest.strip_prefix('-')?, 1, 2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    Some(((1..=days).contains(&day), rest))
}

/// Reads `15:4:5` and a fraction. Returns the text that follows.
fn clock(text: &str) -> Option<&str> {
    let (hour, rest) = number_field(text, 1, 2)?;
    let (minute, rest) = number_field(rest.strip_prefix(':')?, 1, 2)?;
    let (second, rest) = number_field(rest.strip_prefix(':')?, 1, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    match rest.strip_prefix(['.', ',']) {
        Some(fraction) if digits(fraction) > 0 => Some(&fraction[digits(fraction)..]),
        _ => Some(rest),
    }
}

fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            [h1, h2, m1, m2].iter().all(|digit| digit.is_ascii_digit())
                && (*h1, *h2) <= (b'2', b'4')
                && (*m1, *m2) <= (b'6', b'0')
        }
        _ => false,
    }
}

/// Reads a number of `least` to `most` digits.
fn number_field(text: &str, least: usize, most: usize) -> Option<(u32, &str)> {
    let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if digits < least {
        return None;
    }
    Some((text[..digits].parse().ok()?, &text[digits..]))
}
