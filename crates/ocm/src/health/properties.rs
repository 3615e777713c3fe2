//! Property tests for the health of works, whose status the agent of a managed cluster writes.

use super::{Clock, HealthStatus, evaluate, health_timeline};
use jiff::Timestamp;
use manifest::yaml;
use testing::holds;
use testing::works::texts;

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

#[test]
fn health_timeline_is_ordered_and_exact_with_a_reason() {
    holds(800, texts, |text| {
        let timeline = yaml::json(&text).map(|work| health_timeline(&work, now()));
        let Ok(Ok(timeline)) = timeline else {
            return;
        };
        assert!(
            timeline
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1)
        );
        for (at, status) in timeline {
            assert!(status.health == HealthStatus::Healthy || !status.summary().is_empty());
            assert_eq!(evaluate(&text, &Clock::at(at)), Ok(status));
        }
    });
}
