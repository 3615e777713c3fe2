//! Which replica writes: the holder of a Lease, by the rules of client-go's leader election.
//!
//! ```text
//! Lease ─▶ Candidate::next ─▶ Step ─▶ a conditional write ─▶ Candidate::written ─▶ leads until a deadline
//! ```
//!
//! [`Candidate`] decides, as a function of what it sees and when; an election asks the API server and keeps the time. Nobody's
//! wall clock is ever compared: a Lease of somebody else has expired when it has not changed for as long as it says, by our own
//! steady clock. We stop leading well before others may think so, also while the API server does not answer.
//!
//! Where there are several Leases, because the work is divided ([`super::shards`]), a [`Stance`] says what that changes.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod election;
#[cfg(test)]
pub(super) mod played;

pub(super) use election::{Election, Seat};

use crate::time_math;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

/// How long others must see our Lease unchanged before they take over.
const DURATION: Duration = Duration::from_secs(15);

/// How long we lead after we asked for the last renewal that was granted.
const DEADLINE: Duration = Duration::from_secs(10);

/// The annotation of a Lease by which another asks its holder to leave it.
const WISH: &str = "argocd-ocm-cmp.github.io/wanted-by";

/// A time, by the clock that is steady and by the one that people set.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// By which everything is decided.
    pub clock: Instant,
    /// Which is only written down.
    pub wall: Timestamp,
}

impl Moment {
    fn now() -> Self {
        Self {
            clock: Instant::now(),
            wall: Timestamp::now(),
        }
    }
}

/// What a candidate makes of it that others want as much as it has: nothing, where there is one Lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stance {
    /// How long a Lease that is free is left to others.
    pub patience: Duration,
    /// Whether its holder is asked to leave it.
    pub asks: bool,
    /// Whether it is left to who asks for it.
    pub leaves: bool,
}

/// What to do with the Lease.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// There is none: make this one.
    Create(Box<Lease>),
    /// Put this in its place, unless somebody else was faster.
    Replace(Box<Lease>),
    /// Somebody else holds it, until then if nothing is heard of them, or is to have it first.
    Respect(Instant),
    /// Somebody else holds it: put this in its place, which asks them to leave it.
    Ask(Box<Lease>),
    /// It is ours: finish what is under way, and leave it.
    Leave,
}

/// One of those who want to lead.
#[derive(Clone, Debug)]
pub struct Candidate {
    identity: String,
    /// What the Lease of somebody else says, and since when.
    observed: Option<(LeaseSpec, Instant)>,
    /// When we asked for the last renewal that was granted.
    renewed: Option<Instant>,
}

impl Candidate {
    /// Nobody else may have this identity, nor may this process after a restart.
    #[must_use]
    pub fn new(identity: String) -> Self {
        Self {
            identity,
            observed: None,
            renewed: None,
        }
    }

    /// Until when we lead; none when we do not.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.renewed.map(|at| plus(at, DEADLINE))
    }

    /// Whether we lead.
    #[must_use]
    pub fn leads(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now < deadline)
    }

    /// We do not lead.
    pub fn resign(&mut self) {
        self.renewed = None;
    }

    /// What to do about the Lease as it was seen.
    pub fn next(&mut self, seen: Option<&Lease>, stance: Stance, now: Moment) -> Step {
        let Some(lease) = seen else {
            self.resign();
            let (since, _) = self.observe(&LeaseSpec::default(), now.clock);
            let is_free = plus(since, stance.patience);
            if now.clock < is_free {
                return Step::Respect(is_free);
            }
            return Step::Create(Box::new(Lease {
                metadata: ObjectMeta::default(),
                spec: Some(self.held(LeaseSpec::default(), now.wall, 0)),
            }));
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let transitions = spec.lease_transitions.unwrap_or_default().max(0);
        let spec = match spec.holder_identity.as_deref().unwrap_or_default() {
            holder if holder == self.identity && stance.leaves => return Step::Leave,
            holder if holder == self.identity => {
                let acquired = spec.acquire_time.clone();
                let spec = self.held(spec, now.wall, transitions);
                LeaseSpec {
                    acquire_time: acquired.or(spec.acquire_time),
                    ..spec
                }
            }
            holder => {
                self.resign();
                let (since, lasts) = self.observe(&spec, now.clock);
                let is_free = if holder.is_empty() { since } else { plus(since, lasts) };
                if now.clock < is_free && stance.asks {
                    let mut lease = lease.clone();
                    let annotations = lease.metadata.annotations.get_or_insert_default();
                    annotations.insert(WISH.to_owned(), self.identity.clone());
                    return Step::Ask(Box::new(lease));
                }
                let is_ours_from = plus(is_free, stance.patience);
                if now.clock < is_ours_from {
                    return Step::Respect(is_ours_from);
                }
                self.held(spec, now.wall, transitions.saturating_add(1))
            }
        };
        let mut metadata = lease.metadata.clone();
        // A wish that is not granted is none any more: who still has it says it again.
        if let Some(annotations) = &mut metadata.annotations {
            annotations.remove(WISH);
        }
        Step::Replace(Box::new(Lease {
            metadata,
            spec: Some(spec),
        }))
    }

    /// A write that was asked for then was granted, and made the Lease this.
    pub fn written(&mut self, lease: &Lease, asked: Instant) {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref());
        self.renewed = (holder == Some(&self.identity)).then_some(asked);
    }

    /// The Lease to leave behind; none when it is not ours. Mirrors client-go's `ReleaseOnCancel`.
    #[must_use]
    pub fn released(&self, seen: &Lease, now: Moment) -> Option<Lease> {
        let spec = seen.spec.clone()?;
        let time = Some(MicroTime(now.wall));
        (spec.holder_identity.as_deref() == Some(&self.identity)).then(|| Lease {
            metadata: seen.metadata.clone(),
            spec: Some(LeaseSpec {
                holder_identity: Some(String::new()),
                lease_duration_seconds: Some(1),
                acquire_time: time.clone(),
                renew_time: time,
                ..spec
            }),
        })
    }

    /// Since when the Lease of somebody else is as it is now, and how long it is theirs from then on. One that does not say how
    /// long it lasts is given as long as ours.
    fn observe(&mut self, spec: &LeaseSpec, now: Instant) -> (Instant, Duration) {
        let since = match &self.observed {
            Some((known, since)) if known == spec => *since,
            _ => {
                self.observed = Some((spec.clone(), now));
                now
            }
        };
        let seconds = spec.lease_duration_seconds.and_then(|it| u64::try_from(it).ok());
        let seconds = seconds.filter(|seconds| *seconds > 0);
        (since, seconds.map_or(DURATION, Duration::from_secs))
    }

    fn held(&self, spec: LeaseSpec, now: Timestamp, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(transitions),
            ..spec
        }
    }
}

/// Returns the instant that is so much later, or one that no process lives to see: a Lease may say that it lasts for decades.
fn plus(at: Instant, duration: Duration) -> Instant {
    time_math::later(at.into_std(), duration).into()
}

/// Who holds a Lease; nobody where it says nobody.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref();
    holder.filter(|holder| !holder.is_empty())
}

/// Who asks for a Lease.
pub(super) fn wish(lease: &Lease) -> Option<&str> {
    lease.metadata.annotations.as_ref()?.get(WISH).map(String::as_str)
}

/// Who a replica is: its host's name, and what makes it another after a restart.
#[must_use]
pub fn identity(host: &str, random: u64) -> String {
    format!("{host}_{random:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn second(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A time that is not the start of everything, as steady clocks cannot go before that.
    fn start() -> Moment {
        Moment {
            clock: Instant::now() + second(1000),
            wall: "2026-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    impl Moment {
        /// So much later, by both clocks.
        fn after(self, seconds: u64) -> Self {
            Self {
                clock: self.clock + second(seconds),
                wall: self.wall + second(seconds),
            }
        }
    }

    fn lease(spec: &Value) -> Lease {
        let lease = json!({
            "metadata": {"name": "controller", "resourceVersion": "7", "labels": {"a": "b"}},
            "spec": spec,
        });
        serde_json::from_value(lease).unwrap()
    }

    fn of_other(renewed: &str) -> Lease {
        lease(&json!({
            "holderIdentity": "other",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": renewed,
            "leaseTransitions": 4,
        }))
    }

    fn me() -> Candidate {
        Candidate::new("me".to_owned())
    }

    fn written(step: Step) -> Lease {
        match step {
            Step::Create(lease) | Step::Replace(lease) => *lease,
            Step::Respect(_) | Step::Ask(_) | Step::Leave => panic!("{step:?}"),
        }
    }

    fn json(lease: &Lease) -> Value {
        serde_json::to_value(lease.spec.as_ref().unwrap()).unwrap()
    }

    const OLD: &str = "2025-12-31T23:59:59.000000Z";

    #[test]
    fn who_finds_no_lease_makes_one_and_leads_until_the_deadline() {
        let (mut me, now) = (me(), start());
        let step = me.next(None, Stance::default(), now);
        assert!(matches!(step, Step::Create(_)), "{step:?}");
        assert!(!me.leads(now.clock), "nothing is granted yet");
        let lease = written(step);
        let wanted = json!({
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        });
        assert_eq!(json(&lease), wanted);
        me.written(&lease, now.clock);
        assert!(me.leads(now.after(9).clock) && !me.leads(now.after(10).clock));
    }

    #[test]
    fn a_renewal_changes_its_time_alone_and_is_conditional() {
        let (mut me, now) = (me(), start());
        let mut lease = written(me.next(None, Stance::default(), now));
        lease.metadata.resource_version = Some("8".to_owned());
        me.written(&lease, now.clock);
        let step = me.next(Some(&lease), Stance::default(), now.after(2));
        assert!(matches!(step, Step::Replace(_)), "{step:?}");
        assert!(me.leads(now.after(2).clock), "it leads while it renews");
        let renewed = written(step);
        assert_eq!(renewed.metadata.resource_version.as_deref(), Some("8"));
        let mut wanted = json(&lease);
        wanted["renewTime"] = "2026-01-01T00:00:02.000000Z".into();
        assert_eq!(json(&renewed), wanted);
        me.written(&renewed, now.after(2).clock);
        assert!(me.leads(now.after(11).clock) && !me.leads(now.after(12).clock));
    }

    #[test]
    fn a_lease_of_another_is_respected_until_it_has_not_changed_for_as_long_as_it_says() {
        let (mut me, now) = (me(), start());
        // By the wall clock, this one expired long ago, or will never do.
        for time in ["1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"] {
            assert_eq!(
                me.next(Some(&of_other(time)), Stance::default(), now),
                Step::Respect(now.after(15).clock)
            );
            assert_eq!(
                me.next(Some(&of_other(time)), Stance::default(), now.after(14)),
                Step::Respect(now.after(15).clock)
            );
        }
        // It changed within that time: it counts from there.
        assert_eq!(
            me.next(Some(&of_other(OLD)), Stance::default(), now.after(14)),
            Step::Respect(now.after(29).clock)
        );
        assert_eq!(
            me.next(Some(&of_other(OLD)), Stance::default(), now.after(28)),
            Step::Respect(now.after(29).clock)
        );
        let taken = written(me.next(Some(&of_other(OLD)), Stance::default(), now.after(29)));
        let wanted = json!({
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:29.000000Z",
            "renewTime": "2026-01-01T00:00:29.000000Z",
            "leaseTransitions": 5,
        });
        assert_eq!(json(&taken), wanted);
        assert_eq!(taken.metadata, of_other(OLD).metadata);
    }

    #[test]
    fn a_wall_clock_that_jumps_changes_nothing() {
        let (mut me, now) = (me(), start());
        let jumped = |seconds, wall: &str| Moment {
            wall: wall.parse().unwrap(),
            ..now.after(seconds)
        };
        let until = Step::Respect(now.after(15).clock);
        assert_eq!(me.next(Some(&of_other(OLD)), Stance::default(), now), until);
        assert_eq!(
            me.next(
                Some(&of_other(OLD)),
                Stance::default(),
                jumped(2, "2199-01-01T00:00:00Z")
            ),
            until
        );
        assert_eq!(
            me.next(
                Some(&of_other(OLD)),
                Stance::default(),
                jumped(4, "1970-01-01T00:00:00Z")
            ),
            until
        );
        let lease = written(me.next(
            Some(&of_other(OLD)),
            Stance::default(),
            jumped(15, "1970-01-01T00:00:00Z"),
        ));
        me.written(&lease, now.after(15).clock);
        written(me.next(Some(&lease), Stance::default(), jumped(17, "2199-01-01T00:00:00Z")));
        assert!(me.leads(now.after(17).clock));
    }

    #[test]
    fn who_sees_another_holder_leads_no_more_at_once() {
        let (mut me, now) = (me(), start());
        let lease = written(me.next(None, Stance::default(), now));
        for seen in [
            Some(of_other(OLD)),
            Some(super::tests::lease(&json!({"holderIdentity": ""}))),
            None,
        ] {
            me.written(&lease, now.clock);
            assert!(me.leads(now.clock));
            me.next(seen.as_ref(), Stance::default(), now.after(1));
            assert!(!me.leads(now.after(1).clock), "{seen:?}");
        }
        me.written(&of_other(OLD), now.clock);
        assert!(
            !me.leads(now.clock),
            "a write that made another the holder is none of ours"
        );
    }

    #[test]
    fn what_was_asked_for_too_long_ago_gives_nothing() {
        let (mut me, now) = (me(), start());
        let lease = written(me.next(None, Stance::default(), now));
        me.written(&lease, now.clock);
        // The answer came after eleven seconds.
        assert!(!me.leads(now.after(11).clock));
        // Others may have waited by now, but have not taken it: it is renewed.
        let renewed = written(me.next(Some(&lease), Stance::default(), now.after(60)));
        assert_eq!(json(&renewed)["leaseTransitions"], 0);
        me.written(&renewed, now.after(60).clock);
        assert!(me.leads(now.after(61).clock));
    }

    #[test]
    fn a_released_lease_is_anybodys() {
        let (mut me, now) = (me(), start());
        let lease = Lease {
            metadata: of_other(OLD).metadata,
            ..written(me.next(None, Stance::default(), now))
        };
        let released = me.released(&lease, now.after(3)).unwrap();
        let wanted = json!({
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": "2026-01-01T00:00:03.000000Z",
            "renewTime": "2026-01-01T00:00:03.000000Z",
            "leaseTransitions": 0,
        });
        assert_eq!(json(&released), wanted);
        assert_eq!(released.metadata, lease.metadata);
        let mut other = Candidate::new("other".to_owned());
        let taken = json(&written(other.next(Some(&released), Stance::default(), now.after(3))));
        assert_eq!(
            (&taken["holderIdentity"], &taken["leaseTransitions"]),
            (&json!("other"), &json!(1))
        );
        assert_eq!(me.released(&of_other(OLD), now), None);
        assert_eq!(me.released(&super::tests::lease(&Value::Null), now), None);
    }

    #[test]
    fn a_malformed_lease_is_understood_as_far_as_it_goes() {
        let now = start();
        // Nobody holds these.
        for spec in [
            json!(null),
            json!({}),
            json!({"holderIdentity": null, "leaseTransitions": null}),
        ] {
            let taken = json(&written(me().next(Some(&lease(&spec)), Stance::default(), now)));
            assert_eq!(
                (&taken["holderIdentity"], &taken["leaseTransitions"]),
                (&json!("me"), &json!(1))
            );
        }
        // Somebody holds these, and does not say for how long.
        for duration in [json!(null), json!(0), json!(-1), json!(i32::MIN)] {
            let lease = lease(&json!({"holderIdentity": "other", "leaseDurationSeconds": duration}));
            let mut me = me();
            assert_eq!(
                me.next(Some(&lease), Stance::default(), now),
                Step::Respect(now.after(15).clock),
                "{duration}"
            );
            written(me.next(Some(&lease), Stance::default(), now.after(15)));
        }
        let forever = lease(&json!({"holderIdentity": "other", "leaseDurationSeconds": i32::MAX}));
        assert!(matches!(
            me().next(Some(&forever), Stance::default(), now),
            Step::Respect(_)
        ));
        for (count, next) in [(-5, 1), (i32::MAX, i32::MAX)] {
            let lease = lease(&json!({"holderIdentity": "", "leaseTransitions": count}));
            assert_eq!(
                json(&written(me().next(Some(&lease), Stance::default(), now)))["leaseTransitions"],
                next
            );
        }
        // Ours, without the time since when.
        let ours = lease(&json!({"holderIdentity": "me", "acquireTime": null}));
        assert_eq!(
            json(&written(me().next(Some(&ours), Stance::default(), now)))["acquireTime"],
            "2026-01-01T00:00:00.000000Z"
        );
    }

    #[test]
    fn who_wants_as_much_as_others_asks_for_it() {
        let (mut me, now) = (me(), start());
        let asks = Stance {
            asks: true,
            ..Stance::default()
        };
        let Step::Ask(asked) = me.next(Some(&of_other(OLD)), asks, now) else {
            panic!("it is held");
        };
        assert_eq!((holder(&asked), wish(&asked)), (Some("other"), Some("me")));
        assert_eq!(asked.spec, of_other(OLD).spec, "it stays theirs");
        // To be asked is no sign of life.
        let step = me.next(Some(&asked), Stance::default(), now.after(14));
        assert_eq!(step, Step::Respect(now.after(15).clock));
        let taken = written(me.next(Some(&asked), asks, now.after(15)));
        assert_eq!((holder(&taken), wish(&taken)), (Some("me"), None));
    }

    #[test]
    fn who_is_asked_leaves_it_or_says_no() {
        let (mut me, now) = (me(), start());
        let mut lease = written(me.next(None, Stance::default(), now));
        lease.metadata.annotations = Some([(WISH.to_owned(), "other".to_owned())].into());
        let leaves = Stance {
            leaves: true,
            ..Stance::default()
        };
        assert_eq!(me.next(Some(&lease), leaves, now), Step::Leave);
        let left = me.released(&lease, now).unwrap();
        assert_eq!((holder(&left), wish(&left)), (None, Some("other")));
        let renewed = written(me.next(Some(&lease), Stance::default(), now));
        assert_eq!((holder(&renewed), wish(&renewed)), (Some("me"), None));
    }

    #[test]
    fn what_is_free_is_left_to_others_for_a_while() {
        let now = start();
        let patient = Stance {
            patience: second(3),
            ..Stance::default()
        };
        let free = lease(&json!({"holderIdentity": "", "leaseDurationSeconds": 1}));
        for (seen, is_free) in [(None, 0), (Some(free), 0), (Some(of_other(OLD)), 15)] {
            let mut me = me();
            let at = Step::Respect(now.after(is_free + 3).clock);
            assert_eq!(me.next(seen.as_ref(), patient, now), at);
            assert_eq!(me.next(seen.as_ref(), patient, now.after(is_free + 2)), at);
            written(me.next(seen.as_ref(), patient, now.after(is_free + 3)));
        }
    }

    #[test]
    fn an_identity_names_the_host_and_differs_after_a_restart() {
        assert_eq!(identity("controller-0", 0x2a), "controller-0_000000000000002a");
    }
}
