//! Parses numbers as go-yaml does and prints them as Go does.

use std::borrow::Cow;

use crate::json;
use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    /// A number that fits `i64`.
    Int(i64),
    /// A number that fits `u64` only.
    Large(u64),
    /// Any other number; may be infinite or NaN.
    Float(f64),
}

/// Parses a text that starts with a digit or a sign.
pub(super) fn parse(text: &str) -> Option<Number> {
    let plain: Cow<'_, str> = if text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text)
    };
    integer(&plain)
        .or_else(|| decimal(&plain))
        .or_else(|| signed_binary(&plain))
}

/// Parses a text that starts with a point; underscores are only allowed between digits.
pub(super) fn parse_fraction(text: &str) -> Option<Number> {
    let bytes = text.as_bytes();
    let between_digits =
        |at: usize| at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    if !text.contains('_') {
        return decimal(text);
    }
    if memchr::memchr_iter(b'_', bytes).all(between_digits) {
        decimal(&text.replace('_', ""))
    } else {
        None
    }
}

/// Parses Go's integers with a base prefix; a lone leading zero means octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (digits, base) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&unsigned[2..], 16),
        [b'0', b'o' | b'O', ..] => (&unsigned[2..], 8),
        [b'0', b'b' | b'B', ..] => (&unsigned[2..], 2),
        [b'0', _, ..] => (&unsigned[1..], 8),
        _ => (unsigned, 10),
    };
    // `from_str_radix` would accept a second sign.
    if !digits.as_bytes().first()?.is_ascii_alphanumeric() {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Number::Int);
    }
    match i64::try_from(magnitude) {
        Ok(value) => Some(Number::Int(value)),
        // Go parses unsigned integers only without a sign.
        Err(_) if text.len() == unsigned.len() => Some(Number::Large(magnitude)),
        Err(_) => None,
    }
}

/// Parses `[-+]?(\.d+|d+(\.d*)?)([eE][-+]?d+)?` if it is finite.
fn decimal(text: &str) -> Option<Number> {
    fn digits(bytes: &[u8]) -> usize {
        bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }
    let bytes = text.as_bytes();
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let whole = digits(&bytes[at..]);
    at += whole;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(&bytes[at + 1..]);
        if whole + fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    } else if whole == 0 {
        return None;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(&bytes[at.min(bytes.len())..]);
        if exponent == 0 {
            return None;
        }
        at += exponent;
    }
    if at != bytes.len() {
        return None;
    }
    text.parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .map(Number::Float)
}

/// Mirrors go-yaml's last attempt: after `0b` (or `-0b`) a sign may follow.
fn signed_binary(text: &str) -> Option<Number> {
    i64::from_str_radix(text.strip_prefix("0b")?, 2).ok().map(Number::Int)
}

/// Returns the value of a number after Go has written it as JSON and Kubernetes has parsed that.
///
/// Go prints the shortest digits that distinguish a float from its neighbours, without an exponent between 1e-6 and 1e21, so a
/// whole number becomes an integer. Returns `None` for NaN and the infinities, which JSON does not support.
pub(super) fn through_json<'a>(number: Number) -> Option<Value<'a>> {
    /// The limit up to which every whole `f64` prints its exact value.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number {
        Number::Int(value) => Some(Value::Int(value)),
        #[expect(clippy::cast_precision_loss, reason = "Kubernetes rounds it just so")]
        Number::Large(value) => Some(Value::Float(value as f64)),
        Number::Float(value) if !value.is_finite() => None,
        Number::Float(value) if value.fract() != 0.0 || value.abs() >= 1e21 => Some(Value::Float(value)),
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
        Number::Float(value) if value.abs() <= EXACT => Some(Value::Int(value as i64)),
        Number::Float(value) => {
            let mut digits = String::new();
            json::write_float(value, &mut digits);
            Some(digits.parse().map_or(Value::Float(value), Value::Int))
        }
    }
}

/// Returns the text of a float mapping key, as sigs.k8s.io/yaml prints it: `%g` after rounding to 32 bits.
pub(super) fn key_text(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "Go does so too")]
    let value = value as f32;
    if value.is_nan() {
        ".nan".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        // For `%g` with the shortest digits, Go's strconv assumes a precision of 6.
        json::format_like_go(value, -4..6, 2)
    }
}
