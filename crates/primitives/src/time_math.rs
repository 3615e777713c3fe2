//! Adds and subtracts times and durations from external input: the result stays within the range of its type.
//!
//! A certificate without an expiry date, a timestamp at the end of the calendar or a huge duration is legal input. The operators
//! `+` and `-` of [`Timestamp`] and [`Instant`] panic on overflow; these functions return the nearest representable time instead.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use jiff::{SignedDuration, Timestamp};
use std::time::{Duration, Instant};

/// The offset for a monotonic clock if the requested time is out of its range: 30 years.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns the time that is `duration` after `time`, or the last (first) representable time.
pub fn after(time: Timestamp, duration: SignedDuration) -> Timestamp {
    // An addition of seconds fails only by leaving the range; then it saturates.
    let limit = if duration.is_negative() {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    time.saturating_add(duration).unwrap_or(limit)
}

/// Returns the time that is `duration` before `time`, or the first (last) representable time.
pub fn before(time: Timestamp, duration: SignedDuration) -> Timestamp {
    let limit = if duration.is_negative() {
        Timestamp::MAX
    } else {
        Timestamp::MIN
    };
    time.saturating_sub(duration).unwrap_or(limit)
}

/// Returns the duration from `now` to `then`; zero if that is past.
pub fn until(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or_default()
}

/// Returns the instant that is `duration` after `instant`, or one that no process reaches.
pub fn later(instant: Instant, duration: Duration) -> Instant {
    instant
        .checked_add(duration)
        .or_else(|| instant.checked_add(FAR))
        .unwrap_or(instant)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests need an instant to add to")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times() -> impl Strategy<Value = Timestamp> {
        let seconds = Timestamp::MIN.as_second()..=Timestamp::MAX.as_second();
        let any = seconds.prop_map(|seconds| Timestamp::from_second(seconds).expect("seconds in range"));
        prop_oneof![
            any,
            Just(Timestamp::MIN),
            Just(Timestamp::MAX),
            Just(Timestamp::UNIX_EPOCH)
        ]
    }

    fn durations() -> impl Strategy<Value = SignedDuration> {
        let any = (any::<i64>(), -999_999_999..=999_999_999_i32);
        let any = any.prop_filter_map("not a duration", |(seconds, nanos)| {
            (seconds.checked_abs()? < i64::MAX).then(|| SignedDuration::new(seconds, nanos))
        });
        prop_oneof![
            any,
            Just(SignedDuration::MIN),
            Just(SignedDuration::MAX),
            Just(SignedDuration::ZERO)
        ]
    }

    proptest! {
        #![proptest_config(testing::config(256))]

        #[test]
        fn sums_of_extreme_times_stay_in_range_and_in_order(time in times(), duration in durations(), other in times()) {
            let (sum, difference) = (after(time, duration), before(time, duration));
            if duration.is_negative() {
                prop_assert!(sum <= time && difference >= time);
            } else {
                prop_assert!(sum >= time && difference <= time);
            }
            prop_assert_eq!(until(time, other).is_zero(), time <= other);
        }

        #[test]
        fn later_never_returns_an_earlier_instant(seconds in any::<u64>(), nanos in 0..1_000_000_000_u32) {
            let now = Instant::now();
            let longest = Duration::MAX;
            prop_assert!(later(now, Duration::new(seconds, nanos)) >= now);
            prop_assert!(later(later(now, longest), longest) >= later(now, longest));
        }
    }
}
