//! Unit tests of rollout plans.

use super::strategy::IntOrPercent;
use super::*;

const NOW: i64 = 1_800_000_000;

fn at(seconds_ago: i64) -> Timestamp {
    Timestamp::from_second(NOW - seconds_ago).expect("a time")
}

/// Returns an agent that has had a template for an hour and is healthy.
fn well(template: &'static str) -> Agent<'static> {
    Agent {
        is_available: true,
        assigned: Some(template),
        applied: Some(template),
        changed: Some(at(3600)),
        is_healthy: true,
        since: Some(at(3600)),
    }
}

/// Returns an agent that got a template so many seconds ago and is unhealthy since then.
fn ill(template: &'static str, seconds: i64) -> Agent<'static> {
    Agent {
        changed: Some(at(seconds)),
        is_healthy: false,
        since: Some(at(seconds)),
        ..well(template)
    }
}

fn silent(template: &'static str) -> Agent<'static> {
    Agent {
        is_available: false,
        is_healthy: false,
        ..well(template)
    }
}

fn limits(max_concurrency: usize, max_failures: usize) -> Limits {
    Limits {
        max_concurrency: IntOrPercent::Number(max_concurrency),
        max_failures: IntOrPercent::Number(max_failures),
        min_success_time: SignedDuration::ZERO,
        progress_deadline: None,
    }
}

/// Returns a fleet during a rollout of `new` after `old`, two at a time; these clusters were moved an hour ago.
fn fleet(clusters: &[(&'static str, Agent<'static>)], updated: &[&'static str]) -> RolloutInput<'static> {
    RolloutInput {
        desired: "new",
        limits: Some(limits(2, 0)),
        first: Some("old"),
        read: Some("old"),
        next: Some("new"),
        clusters: clusters.iter().copied().collect(),
        updated: updated.iter().map(|cluster| (*cluster, Some(at(3600)))).collect(),
        now: at(0),
    }
}

fn of_five(updated: &[(&'static str, Agent<'static>)]) -> RolloutInput<'static> {
    let mut fleet = fleet(&["a", "b", "c", "d", "e"].map(|cluster| (cluster, well("old"))), &[]);
    fleet.clusters.extend(updated.iter().copied());
    fleet.updated = updated.iter().map(|(cluster, _)| (*cluster, Some(at(3600)))).collect();
    fleet
}

/// Returns the templates of the two entries and the clusters of the second one.
fn entries(plan: &Plan<'_>) -> String {
    let updated: Vec<_> = plan.updated.keys().copied().collect();
    format!("{} {} [{}]", plan.first, plan.next.unwrap_or("-"), updated.join(" "))
}

fn progress(plan: &Plan<'_>) -> String {
    format!("{:?}: {}", plan.progress.state, plan.progress.message)
}

#[test]
fn next_clusters_start_when_the_first_are_healthy() {
    let first = plan(&of_five(&[]));
    assert_eq!(entries(&first), "old new [a b]");
    assert_eq!(first.updated["a"], Some(at(0)), "since now");
    let message = "InProgress: 0 of 5 clusters have the desired version, 2 at a time";
    assert_eq!(progress(&first), message);
    // a has had it for long enough, b is not healthy yet.
    let second = plan(&of_five(&[("a", well("new")), ("b", ill("new", 20))]));
    assert_eq!(entries(&second), "old new [a b c]");
    assert_eq!(second.updated["a"], Some(at(3600)), "it stays as it is");
    assert_eq!(second.requeue_after, Some(at(-100)), "then b has failed");
    assert_eq!(second.progress.state, State::InProgress);
}

#[test]
fn waits_after_a_change_because_ready_may_mean_the_old_pod() {
    let mut just = well("new");
    for (changed, min_success_time, is_next, requeue_after) in [
        (29, 0, false, Some(at(-1))),
        (30, 0, true, None),
        (30, 60, false, Some(at(-30))),
        (60, 60, true, None),
    ] {
        just.changed = Some(at(changed));
        let mut fleet = of_five(&[("a", just), ("b", just)]);
        fleet.limits = Some(Limits {
            min_success_time: SignedDuration::from_secs(min_success_time),
            ..limits(2, 0)
        });
        let plan = plan(&fleet);
        let planned = (plan.updated.len() > 2, plan.requeue_after);
        assert_eq!(planned, (is_next, requeue_after), "{changed} {min_success_time}");
    }
    // The agent is ready, but OCM reports another template as applied.
    let plan = plan(&of_five(&[("a", well("old")), ("b", well("old"))]));
    assert_eq!(entries(&plan), "old new [a b]");
}

#[test]
fn stops_at_too_many_failures_without_rollback() {
    let mut fleet = of_five(&[("a", ill("new", 120)), ("b", well("new"))]);
    let stopped = plan(&fleet);
    assert_eq!(entries(&stopped), "old new [a b]");
    let message = "Stopped: 1 of 5 clusters have the desired version, 2 at a time; stopped: 1 failed: a";
    assert_eq!(progress(&stopped), message);
    fleet.limits = Some(limits(2, 1));
    let goes_on = plan(&fleet);
    assert_eq!(
        entries(&goes_on),
        "old new [a b c d]",
        "one that has failed is not waited for"
    );
    assert!(goes_on.progress.message.ends_with("; 1 failed: a"));
}

#[test]
fn deadline_applies_to_versions_never_applied() {
    for (agent, progress_deadline, state) in [
        (well("old"), None, State::InProgress),
        (well("old"), Some(3599), State::Stopped),
        (well("old"), Some(3601), State::InProgress),
        (ill("new", 119), None, State::InProgress),
        (ill("new", 120), None, State::Stopped),
        (ill("new", 20), Some(20), State::Stopped),
        (ill("new", 200), Some(300), State::InProgress),
    ] {
        let mut fleet = of_five(&[("a", agent)]);
        fleet.limits = Some(Limits {
            progress_deadline: progress_deadline.map(SignedDuration::from_secs),
            ..limits(1, 0)
        });
        let planned = plan(&fleet).progress.state;
        assert_eq!(planned, state, "{agent:?} {progress_deadline:?}");
    }
}

#[test]
fn clock_of_a_cluster_that_is_far_ahead_delays_no_other() {
    let next_year = Some(at(-365 * 24 * 3600));
    for agent in [well("new"), ill("new", 3600)] {
        let ahead = Agent {
            changed: next_year,
            since: next_year,
            ..agent
        };
        let mut fleet = of_five(&[("a", ahead), ("b", well("new"))]);
        fleet.limits = Some(limits(2, 1));
        assert_eq!(entries(&plan(&fleet)), "old new [a b c d]", "{agent:?}");
    }
}

#[test]
fn rolling_back_is_immediate() {
    let mut fleet = of_five(&[("a", ill("new", 120)), ("b", well("new"))]);
    fleet.desired = "old";
    let plan = plan(&fleet);
    assert_eq!(entries(&plan), "old - []");
    let message = "InProgress: 3 of 5 clusters have the desired version; pending: a, b";
    assert_eq!(progress(&plan), message);
}

#[test]
fn completes_when_every_reachable_cluster_is_healthy() {
    let all = [
        ("a", well("new")),
        ("b", well("new")),
        ("c", silent("old")),
        ("d", silent("new")),
    ];
    let mut fleet = fleet(&all, &["a", "b", "d"]);
    let ended = plan(&fleet);
    // The clusters stay named until OCM has read that all have it.
    assert_eq!(entries(&ended), "new new [a b d]");
    assert_eq!(ended.progress.state, State::InProgress);
    fleet.first = Some("new");
    assert_eq!(entries(&plan(&fleet)), "new new [a b d]");
    fleet.read = Some("new");
    assert_eq!(entries(&plan(&fleet)), "new - [a b d]");
    fleet.next = None;
    let done = plan(&fleet);
    assert_eq!(entries(&done), "new - [a b d]");
    let message = "Done: 3 of 4 clusters have the desired version; unreachable: c";
    assert_eq!(progress(&done), message);
}

#[test]
fn does_not_complete_before_any_cluster_has_the_version() {
    let unreachable = [("a", silent("old")), ("b", silent("old"))];
    assert_eq!(entries(&plan(&fleet(&unreachable, &[]))), "old new []");
}

#[test]
fn handles_removed_silent_and_unhealthy_clusters() {
    let mut fleet = of_five(&[("a", silent("old")), ("b", silent("new")), ("gone", well("new"))]);
    fleet.clusters.remove("gone");
    fleet.clusters.insert("c", ill("old", 3600));
    // Unhealthy clusters come last, unreachable ones keep their version.
    assert_eq!(entries(&plan(&fleet)), "old new [b d e]");
}

#[test]
fn first_installation_and_strategy_all_wait_for_no_cluster() {
    let [mut first, mut all] = [of_five(&[]), of_five(&[])];
    (first.first, first.next, all.limits) = (None, None, None);
    for (fleet, expected) in [
        (first, "new - []"),
        (all, "new new []"),
        (fleet(&[], &[]), "new new []"),
    ] {
        assert_eq!(entries(&plan(&fleet)), expected);
    }
}

#[test]
fn rollout_starts_with_no_cluster_moved() {
    let mut fleet = of_five(&[("a", well("other"))]);
    fleet.next = None;
    assert_eq!(entries(&plan(&fleet)), "old - []", "a is left from another");
    fleet.updated.clear();
    assert_eq!(entries(&plan(&fleet)), "old new []");
}

#[test]
fn third_version_starts_with_clusters_that_failed_the_second() {
    let mut fleet = of_five(&[
        ("a", well("second")),
        ("b", ill("second", 60)),
        ("c", ill("second", 600)),
        ("d", ill("second", 600)),
    ]);
    (fleet.next, fleet.read) = (Some("second"), None);
    // OCM would give them what was before that.
    assert_eq!(plan(&fleet).updated, fleet.updated);
    fleet.read = Some("old");
    let less = plan(&fleet);
    assert_eq!(entries(&less), "old second [b c]");
    fleet.updated = less.updated;
    assert_eq!(
        plan(&fleet).next,
        Some("second"),
        "OCM has not taken it back from a and d"
    );
    fleet.clusters.extend([("a", well("old")), ("d", ill("old", 1))]);
    assert_eq!(entries(&plan(&fleet)), "old new [b c]");
}
