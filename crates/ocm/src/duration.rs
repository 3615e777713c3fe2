//! Parses durations in the formats that Go and OCM share.

use std::time::Duration;

/// Parses a duration in one unit: `90s`, `10m`, `2h`.
///
/// # Errors
/// Returns one line if the text has another format or the duration is too long to be added to any time.
pub fn parse(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let seconds: Option<u64> = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let number: Option<u32> = number.parse().ok();
    seconds
        .zip(number)
        .map(|(seconds, number)| Duration::from_secs(u64::from(number).saturating_mul(seconds)))
        .ok_or_else(|| format!("{text:?} is not a duration: write it like 90s, 10m or 2h"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requires_a_unit_for_durations() {
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7200)));
        for invalid in ["", "90", "s", "1m30s", "-1s", "1.5h", "99999999999999999999h"] {
            assert!(parse(invalid).is_err(), "{invalid}");
        }
    }
}
