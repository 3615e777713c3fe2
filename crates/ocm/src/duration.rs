//! Parses durations in the format of Go, which OCM and Argo CD use too.

use std::time::Duration;

/// Parses a duration as Go's `time.ParseDuration`: `90s`, `10m`, `1m30s`, `1.5h`. Durations are not negative here, and end after 292
/// years, as in Go.
///
/// # Errors
/// Returns one line if the text has another format or the duration is negative or too long.
pub fn parse(text: &str) -> Result<Duration, String> {
    parsed(text).ok_or_else(|| format!("{text:?} is not a duration: write it like 90s, 10m or 2h"))
}

fn parsed(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut nanoseconds: u128 = 0;
    loop {
        let number;
        (number, rest) = rest.split_at(rest.bytes().take_while(|byte| b"0123456789.".contains(byte)).count());
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let unit;
        let is_of_unit = |c: &char| *c != '.' && !c.is_ascii_digit();
        (unit, rest) = rest.split_at(rest.chars().take_while(is_of_unit).map(char::len_utf8).sum());
        let unit = nanoseconds_of(unit)?;
        let digits = format!("{whole}{fraction}");
        let scale = 10_u128.checked_pow(fraction.len().try_into().ok()?)?;
        let part = digits.parse::<u128>().ok()?.checked_mul(unit)? / scale;
        nanoseconds = nanoseconds.checked_add(part)?;
        if rest.is_empty() {
            return Some(Duration::from_nanos(i64::try_from(nanoseconds).ok()?.unsigned_abs()));
        }
    }
}

/// Returns the nanoseconds of a unit. A microsecond has the micro sign or the Greek letter.
fn nanoseconds_of(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// Formats a duration so that [`parse`] reads it, in the largest unit that needs no fraction.
pub fn format(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds > 0 && seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        seconds if seconds > 0 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        seconds => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations_as_go() {
        for (text, milliseconds) in [
            ("90s", 90_000),
            ("2h", 7_200_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("+.5s", 500),
            ("1.s", 1_000),
            ("100ms", 100),
            ("1500\u{b5}s500000ns", 2),
            ("0", 0),
            ("0s0s1s", 1_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for invalid in ["", "90", "s", ".s", "-1s", "1m30", "1 s", "1d", "1..5s", "2562048h"] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
        assert!(parse("99999999999999999999h").is_err(), "its number is too large");
        for text in ["0s", "90s", "5m", "2h"] {
            assert_eq!(parse(text).map(format).as_deref(), Ok(text));
        }
    }
}
