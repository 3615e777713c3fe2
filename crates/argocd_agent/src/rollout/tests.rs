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

fn updated<'a>(plan: &Plan<'a>) -> Vec<&'a str> {
    plan.updated.keys().copied().collect()
}

#[test]
fn next_clusters_start_when_the_first_are_healthy() {
    let fleet = of_five(&[]);
    let first = plan(&fleet);
    assert_eq!(
        (first.first, first.next, updated(&first)),
        ("old", Some("new"), vec!["a", "b"])
    );
    assert_eq!(first.updated["a"], Some(at(0)), "since now");
    assert_eq!(
        first.progress.message,
        "0 of 5 clusters have the desired version, 2 at a time"
    );
    // a has had it for long enough, b is not healthy yet.
    let fleet = of_five(&[("a", well("new")), ("b", ill("new", 20))]);
    let second = plan(&fleet);
    assert_eq!(updated(&second), ["a", "b", "c"]);
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
        assert_eq!(
            (plan.updated.len() > 2, plan.requeue_after),
            (is_next, requeue_after),
            "{changed} {min_success_time}"
        );
    }
    // The agent is ready, but OCM reports another template as applied.
    let plan = plan(&of_five(&[("a", well("old")), ("b", well("old"))]));
    assert_eq!(updated(&plan), ["a", "b"]);
}

#[test]
fn stops_at_too_many_failures_without_rollback() {
    let fleet = of_five(&[("a", ill("new", 120)), ("b", well("new"))]);
    let stopped = plan(&fleet);
    assert_eq!(updated(&stopped), ["a", "b"]);
    assert_eq!((stopped.first, stopped.next), ("old", Some("new")));
    assert_eq!(stopped.progress.state, State::Stopped);
    assert_eq!(
        stopped.progress.message,
        "1 of 5 clusters have the desired version, 2 at a time; stopped: 1 failed: a"
    );
    let tolerant = RolloutInput {
        limits: Some(limits(2, 1)),
        ..fleet
    };
    let goes_on = plan(&tolerant);
    assert_eq!(
        updated(&goes_on),
        ["a", "b", "c", "d"],
        "one that has failed is not waited for"
    );
    assert!(goes_on.progress.message.ends_with("; 1 failed: a"));
}

#[test]
fn deadline_applies_to_versions_never_applied() {
    let fleet = |agent: Agent<'static>, progress_deadline: Option<i64>| RolloutInput {
        limits: Some(Limits {
            progress_deadline: progress_deadline.map(SignedDuration::from_secs),
            ..limits(1, 0)
        }),
        ..of_five(&[("a", agent)])
    };
    for (agent, progress_deadline, state) in [
        (well("old"), None, State::InProgress),
        (well("old"), Some(3599), State::Stopped),
        (well("old"), Some(3601), State::InProgress),
        (ill("new", 119), None, State::InProgress),
        (ill("new", 120), None, State::Stopped),
        (ill("new", 20), Some(20), State::Stopped),
        (ill("new", 200), Some(300), State::InProgress),
    ] {
        assert_eq!(
            plan(&fleet(agent, progress_deadline)).progress.state,
            state,
            "{agent:?} {progress_deadline:?}"
        );
    }
}

#[test]
fn rolling_back_is_immediate() {
    let fleet = RolloutInput {
        desired: "old",
        ..of_five(&[("a", ill("new", 120)), ("b", well("new"))])
    };
    let plan = plan(&fleet);
    assert_eq!((plan.first, plan.next, plan.updated.len()), ("old", None, 0));
    assert_eq!(
        (plan.progress.state, &*plan.progress.message),
        (
            State::InProgress,
            "3 of 5 clusters have the desired version; pending: a, b"
        )
    );
}

#[test]
fn completes_when_every_reachable_cluster_is_healthy() {
    let all = [
        ("a", well("new")),
        ("b", well("new")),
        ("c", silent("old")),
        ("d", silent("new")),
    ];
    let ended = plan(&fleet(&all, &["a", "b", "d"]));
    assert_eq!((ended.first, ended.next), ("new", Some("new")));
    let all_three = ["a", "b", "d"];
    assert_eq!(
        updated(&ended),
        all_three,
        "they stay named until OCM has read that all have it"
    );
    assert_eq!(ended.progress.state, State::InProgress);
    let mut fleet = RolloutInput {
        first: Some("new"),
        ..fleet(&all, &all_three)
    };
    assert_eq!(plan(&fleet).next, Some("new"));
    fleet.read = Some("new");
    assert_eq!((plan(&fleet).next, updated(&plan(&fleet))), (None, all_three.to_vec()));
    fleet.next = None;
    let rollout_plan = plan(&fleet);
    assert_eq!(
        (
            rollout_plan.first,
            rollout_plan.next,
            rollout_plan.progress.state,
            &*rollout_plan.progress.message
        ),
        (
            "new",
            None,
            State::Done,
            "3 of 4 clusters have the desired version; unreachable: c"
        )
    );
}

#[test]
fn does_not_complete_before_any_cluster_has_the_version() {
    let unreachable = [("a", silent("old")), ("b", silent("old"))];
    let waits = plan(&fleet(&unreachable, &[]));
    assert_eq!((waits.first, waits.next), ("old", Some("new")));
}

#[test]
fn handles_removed_silent_and_unhealthy_clusters() {
    let fleet = of_five(&[("a", silent("old")), ("b", silent("new")), ("gone", well("new"))]);
    let mut fleet = RolloutInput {
        updated: fleet.updated.clone(),
        ..fleet
    };
    fleet.clusters.remove("gone");
    fleet.clusters.insert("c", ill("old", 3600));
    let plan = plan(&fleet);
    assert_eq!(
        updated(&plan),
        ["b", "d", "e"],
        "unhealthy clusters come last, unreachable ones keep their version"
    );
}

#[test]
fn first_installation_and_strategy_all_wait_for_no_cluster() {
    let first = RolloutInput {
        first: None,
        next: None,
        ..of_five(&[])
    };
    let all = RolloutInput {
        limits: None,
        ..of_five(&[])
    };
    for (fleet, next) in [(first, None), (all, Some("new")), (fleet(&[], &[]), Some("new"))] {
        let plan = plan(&fleet);
        assert_eq!((plan.first, plan.next, plan.updated.len()), ("new", next, 0));
    }
}

#[test]
fn rollout_starts_with_no_cluster_moved() {
    let fleet = RolloutInput {
        next: None,
        ..of_five(&[("a", well("other"))])
    };
    let empties = plan(&fleet);
    assert_eq!(
        (empties.next, empties.updated.len()),
        (None, 0),
        "a is left from another"
    );
    let begins = plan(&RolloutInput {
        updated: UpdatedClusters::new(),
        ..fleet
    });
    assert_eq!((begins.next, begins.updated.len()), (Some("new"), 0));
}

#[test]
fn third_version_starts_with_clusters_that_failed_the_second() {
    let mut fleet = RolloutInput {
        next: Some("second"),
        ..of_five(&[
            ("a", well("second")),
            ("b", ill("second", 60)),
            ("c", ill("second", 600)),
            ("d", ill("second", 600)),
        ])
    };
    let early = RolloutInput {
        read: None,
        ..fleet.clone()
    };
    assert_eq!(
        plan(&early).updated,
        fleet.updated,
        "OCM would give them what was before that"
    );
    let less = plan(&fleet);
    assert_eq!(
        (less.first, less.next, updated(&less)),
        ("old", Some("second"), vec!["b", "c"])
    );
    fleet.updated = less.updated;
    let unread = plan(&fleet);
    assert_eq!(unread.next, Some("second"), "OCM has not taken it back from a and d");
    fleet.clusters.extend([("a", well("old")), ("d", ill("old", 1))]);
    let third = plan(&fleet);
    assert_eq!(
        (third.first, third.next, updated(&third)),
        ("old", Some("new"), vec!["b", "c"])
    );
}
