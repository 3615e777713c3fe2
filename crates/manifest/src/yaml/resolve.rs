//! Resolves scalars by the rules of YAML 1.1, as far as go-yaml v2 follows them.

use super::number::{self, Number};
use crate::text::decode_base64;
use crate::value::Value;
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

/// The resolved value of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
}

impl<'a> Scalar<'a> {
    /// Returns the value in a manifest; `None` for NaN and the infinities.
    pub(super) fn into_value(self) -> Option<Value<'a>> {
        match self {
            Self::Null => Some(Value::Null),
            Self::Bool(value) => Some(Value::Bool(value)),
            Self::Number(number) => number::through_json(number),
            Self::Text(text) => Some(Value::String(text)),
        }
    }

    /// Returns the text of a key; `None` for null and too large a number, which cannot be keys.
    pub(super) fn into_key(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bool(value) => Some(if value { "true" } else { "false" }.into()),
            Self::Number(Number::Int(value)) => Some(value.to_string().into()),
            Self::Number(Number::Float(value)) => Some(number::key_text(value).into()),
            Self::Null | Self::Number(Number::Large(_)) => None,
        }
    }
}

/// Returns true if the text, written without quotes and tag, is read as a string. The context may still require quotes.
pub fn is_text(text: &str) -> bool {
    plain(text).is_none()
}

/// Resolves a scalar without quotes or tag; `None` for a text.
fn plain(text: &str) -> Option<Scalar<'static>> {
    let number = match text.as_bytes().first() {
        None => return Some(Scalar::Null),
        Some(b'0'..=b'9') => number::parse(text),
        Some(b'+' | b'-') => special_float(text).or_else(|| number::parse(text)),
        Some(b'.') => special_float(text).or_else(|| number::parse_fraction(text)),
        Some(b'~' | b'n' | b'N' | b'y' | b'Y' | b't' | b'T' | b'f' | b'F' | b'o' | b'O') if text.len() <= 5 => {
            return word(text);
        }
        Some(_) => None,
    };
    number.map(Scalar::Number)
}

fn word(text: &str) -> Option<Scalar<'static>> {
    match text {
        "~" | "null" | "Null" | "NULL" => Some(Scalar::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => Some(Scalar::Bool(true)),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => {
            Some(Scalar::Bool(false))
        }
        _ => None,
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
        let plain = if style == ScalarStyle::Plain {
            plain(&text)
        } else {
            None
        };
        return Ok(plain.unwrap_or(Scalar::Text(text)));
    };
    match (tag, plain(&text)) {
        (Tag::Text | Tag::NonSpecific | Tag::Merge, _) => Ok(Scalar::Text(text)),
        (Tag::Binary, _) => decode_base64(&text)
            .map(|bytes| Scalar::Text(Cow::Owned(as_json_text(&bytes))))
            .ok_or("the text after \"!!binary\" is not base64"),
        (Tag::Timestamp, _) if is_timestamp(&text) => Ok(Scalar::Text(text)),
        (Tag::Timestamp, _) => Err("the text after \"!!timestamp\" is not a date"),
        (Tag::Null, Some(scalar @ Scalar::Null))
        | (Tag::Bool, Some(scalar @ Scalar::Bool(_)))
        | (Tag::Int, Some(scalar @ Scalar::Number(Number::Int(_) | Number::Large(_))))
        | (Tag::Float, Some(scalar @ Scalar::Number(Number::Float(_)))) => Ok(scalar),
        (Tag::Null, _) => Err("the text after \"!!null\" is not null"),
        (Tag::Bool, _) => Err("the text after \"!!bool\" is not true or false"),
        (Tag::Int, _) => Err("the text after \"!!int\" is not a whole number"),
        #[expect(clippy::cast_precision_loss, reason = "the tag requests a float")]
        (Tag::Float, Some(Scalar::Number(Number::Int(value)))) => Ok(Scalar::Number(Number::Float(value as f64))),
        (Tag::Float, _) => Err("the text after \"!!float\" is not a number"),
    }
}

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
