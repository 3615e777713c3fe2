//! Leader election: the replica that holds a Lease writes, by the rules of client-go's leader election.
//!
//! ```text
//! Lease ─▶ Candidate::next_step ─▶ a conditional write ─▶ Candidate::written ─▶ leads until a deadline
//! ```
//!
//! [`Candidate`] decides, as a pure function of the Lease and the time; an election sends the requests and keeps the time. Wall
//! clocks are never compared: the Lease of another replica has expired when it has not changed for its duration by our own
//! monotonic clock. We stop leading well before others may take over, also while the API server does not respond.

mod election;

pub use election::Election;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use primitives::time_math;
use std::time::Duration;
use tokio::time::Instant;

/// The time for which others must see our Lease unchanged before they take over.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// The time for which we lead after we requested the last successful renewal.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug)]
pub struct LeaseTime {
    /// The monotonic time, which all decisions use.
    pub clock: Instant,
    /// The wall clock time, which is only written to the Lease.
    pub wall_time: Timestamp,
}

impl LeaseTime {
    fn now() -> Self {
        Self {
            clock: Instant::now(),
            wall_time: Timestamp::now(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Candidate {
    identity: String,
    /// The Lease of another holder, and when it was first observed.
    observed: Option<(LeaseSpec, Instant)>,
    /// The time at which the last successful renewal was requested.
    renewed: Option<Instant>,
}

impl Candidate {
    /// Creates a candidate. No other process may have this identity, nor may this one after a restart.
    pub fn new(identity: String) -> Self {
        Self {
            identity,
            observed: None,
            renewed: None,
        }
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.renewed.map(|at| plus(at, RENEW_DEADLINE))
    }

    pub fn leads(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now < deadline)
    }

    pub fn resign(&mut self) {
        self.renewed = None;
    }

    /// Returns the Lease to create if none was read, or else to replace the one that was read by, unless another replica was
    /// faster. The error is the time until which another replica holds the Lease unless it renews it.
    pub fn next_step(&mut self, lease: Option<&Lease>, now: LeaseTime) -> Result<Lease, Instant> {
        let Some(lease) = lease else {
            self.resign();
            return Ok(Lease {
                metadata: ObjectMeta::default(),
                spec: Some(self.held(LeaseSpec::default(), now.wall_time, 0)),
            });
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let transitions = spec.lease_transitions.unwrap_or_default().max(0);
        let spec = match spec.holder_identity.as_deref().unwrap_or_default() {
            holder if holder == self.identity => {
                let acquired = spec.acquire_time.clone();
                let spec = self.held(spec, now.wall_time, transitions);
                LeaseSpec {
                    acquire_time: acquired.or(spec.acquire_time),
                    ..spec
                }
            }
            holder => {
                self.resign();
                let (since, lasts) = self.observe(&spec, now.clock);
                let expires = plus(since, lasts);
                if !holder.is_empty() && now.clock < expires {
                    return Err(expires);
                }
                self.held(spec, now.wall_time, transitions.saturating_add(1))
            }
        };
        Ok(Lease {
            metadata: lease.metadata.clone(),
            spec: Some(spec),
        })
    }

    /// Records that a write of this Lease, requested at that time, succeeded.
    pub fn written(&mut self, lease: &Lease, requested_at: Instant) {
        self.renewed = (holder(lease) == Some(&self.identity)).then_some(requested_at);
    }

    /// Returns the Lease that gives up leadership; none if it is not ours. Mirrors client-go's `ReleaseOnCancel`.
    pub fn released(&self, lease: &Lease, now: LeaseTime) -> Option<Lease> {
        let spec = lease.spec.clone()?;
        let time = Some(MicroTime(now.wall_time));
        (spec.holder_identity.as_deref() == Some(&self.identity)).then(|| Lease {
            metadata: lease.metadata.clone(),
            spec: Some(LeaseSpec {
                holder_identity: Some(String::new()),
                lease_duration_seconds: Some(1),
                acquire_time: time.clone(),
                renew_time: time,
                ..spec
            }),
        })
    }

    /// Returns when the Lease of another holder was first observed in its present form, and its duration. A Lease without a
    /// duration gets the duration of ours.
    fn observe(&mut self, spec: &LeaseSpec, now: Instant) -> (Instant, Duration) {
        let since = match &self.observed {
            Some((known, since)) if known == spec => *since,
            _ => {
                self.observed = Some((spec.clone(), now));
                now
            }
        };
        let seconds = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        let seconds = seconds.filter(|seconds| *seconds > 0);
        (since, seconds.map_or(LEASE_DURATION, Duration::from_secs))
    }

    fn held(&self, spec: LeaseSpec, now: Timestamp, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(transitions),
            ..spec
        }
    }
}

/// Adds a duration to an instant, saturating far in the future: a Lease may last for decades.
fn plus(at: Instant, duration: Duration) -> Instant {
    time_math::later(at.into_std(), duration).into()
}

fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref();
    holder.filter(|holder| !holder.is_empty())
}

/// Returns the identity of a replica: its host name and a random part that changes at each restart.
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

    /// Returns a start time with some margin, as monotonic clocks cannot be set before their origin.
    fn start() -> LeaseTime {
        LeaseTime {
            clock: Instant::now() + second(1000),
            wall_time: "2026-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    impl LeaseTime {
        /// Advances both clocks.
        fn after(self, seconds: u64) -> Self {
            Self {
                clock: self.clock + second(seconds),
                wall_time: self.wall_time + second(seconds),
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

    fn written(step: Result<Lease, Instant>) -> Lease {
        step.expect("no other replica holds it")
    }

    fn json(lease: &Lease) -> Value {
        serde_json::to_value(lease.spec.as_ref().unwrap()).unwrap()
    }

    const OLD: &str = "2025-12-31T23:59:59.000000Z";

    #[test]
    fn creates_a_missing_lease_and_leads_until_the_deadline() {
        let (mut me, now) = (me(), start());
        let lease = written(me.next_step(None, now));
        assert!(!me.leads(now.clock), "nothing is granted yet");
        let desired = json!({
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        });
        assert_eq!(json(&lease), desired);
        me.written(&lease, now.clock);
        assert!(me.leads(now.after(9).clock) && !me.leads(now.after(10).clock));
    }

    #[test]
    fn renewal_changes_only_its_time_and_is_conditional() {
        let (mut me, now) = (me(), start());
        let mut lease = written(me.next_step(None, now));
        lease.metadata.resource_version = Some("8".to_owned());
        me.written(&lease, now.clock);
        let renewed = written(me.next_step(Some(&lease), now.after(2)));
        assert!(me.leads(now.after(2).clock), "it leads while it renews");
        assert_eq!(renewed.metadata.resource_version.as_deref(), Some("8"));
        let mut desired = json(&lease);
        desired["renewTime"] = "2026-01-01T00:00:02.000000Z".into();
        assert_eq!(json(&renewed), desired);
        me.written(&renewed, now.after(2).clock);
        assert!(me.leads(now.after(11).clock) && !me.leads(now.after(12).clock));
    }

    #[test]
    fn respects_a_foreign_lease_until_its_duration_passes_unchanged() {
        let (mut me, now) = (me(), start());
        // By the wall clock, this Lease expired long ago or never expires.
        let until = |seconds| Err(now.after(seconds).clock);
        for time in ["1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"] {
            assert_eq!(me.next_step(Some(&of_other(time)), now), until(15));
            assert_eq!(me.next_step(Some(&of_other(time)), now.after(14)), until(15));
        }
        // The Lease changed within that time: the duration starts again.
        assert_eq!(me.next_step(Some(&of_other(OLD)), now.after(14)), until(29));
        assert_eq!(me.next_step(Some(&of_other(OLD)), now.after(28)), until(29));
        let taken = written(me.next_step(Some(&of_other(OLD)), now.after(29)));
        let desired = json!({
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:29.000000Z",
            "renewTime": "2026-01-01T00:00:29.000000Z",
            "leaseTransitions": 5,
        });
        assert_eq!(json(&taken), desired);
        assert_eq!(taken.metadata, of_other(OLD).metadata);
    }

    #[test]
    fn wall_clock_jumps_change_nothing() {
        let (mut me, now) = (me(), start());
        let jumped = |seconds, wall_time: &str| LeaseTime {
            wall_time: wall_time.parse().unwrap(),
            ..now.after(seconds)
        };
        let until = Err(now.after(15).clock);
        assert_eq!(me.next_step(Some(&of_other(OLD)), now), until);
        assert_eq!(
            me.next_step(Some(&of_other(OLD)), jumped(2, "2199-01-01T00:00:00Z")),
            until
        );
        assert_eq!(
            me.next_step(Some(&of_other(OLD)), jumped(4, "1970-01-01T00:00:00Z")),
            until
        );
        let lease = written(me.next_step(Some(&of_other(OLD)), jumped(15, "1970-01-01T00:00:00Z")));
        me.written(&lease, now.after(15).clock);
        written(me.next_step(Some(&lease), jumped(17, "2199-01-01T00:00:00Z")));
        assert!(me.leads(now.after(17).clock));
    }

    #[test]
    fn stops_leading_when_another_holder_is_seen() {
        let (mut me, now) = (me(), start());
        let lease = written(me.next_step(None, now));
        for existing in [
            Some(of_other(OLD)),
            Some(super::tests::lease(&json!({"holderIdentity": ""}))),
            None,
        ] {
            me.written(&lease, now.clock);
            assert!(me.leads(now.clock));
            let _step = me.next_step(existing.as_ref(), now.after(1));
            assert!(!me.leads(now.after(1).clock), "{existing:?}");
        }
        me.written(&of_other(OLD), now.clock);
        assert!(
            !me.leads(now.clock),
            "a write that made another the holder is none of ours"
        );
    }

    #[test]
    fn released_lease_can_be_acquired_by_anyone() {
        let (mut me, now) = (me(), start());
        let lease = Lease {
            metadata: of_other(OLD).metadata,
            ..written(me.next_step(None, now))
        };
        let released = me.released(&lease, now.after(3)).unwrap();
        let desired = json!({
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": "2026-01-01T00:00:03.000000Z",
            "renewTime": "2026-01-01T00:00:03.000000Z",
            "leaseTransitions": 0,
        });
        assert_eq!(json(&released), desired);
        assert_eq!(released.metadata, lease.metadata);
        let mut other = Candidate::new("other".to_owned());
        let taken = json(&written(other.next_step(Some(&released), now.after(3))));
        assert_eq!(
            (&taken["holderIdentity"], &taken["leaseTransitions"]),
            (&json!("other"), &json!(1))
        );
        assert_eq!(me.released(&of_other(OLD), now), None);
        assert_eq!(me.released(&super::tests::lease(&Value::Null), now), None);
    }

    #[test]
    fn tolerates_malformed_leases() {
        let now = start();
        // These Leases have no holder.
        for spec in [
            json!(null),
            json!({}),
            json!({"holderIdentity": null, "leaseTransitions": null}),
        ] {
            let taken = json(&written(me().next_step(Some(&lease(&spec)), now)));
            assert_eq!(
                (&taken["holderIdentity"], &taken["leaseTransitions"]),
                (&json!("me"), &json!(1))
            );
        }
        // These Leases have a holder and no valid duration.
        for duration in [json!(null), json!(0), json!(-1), json!(i32::MIN)] {
            let lease = lease(&json!({"holderIdentity": "other", "leaseDurationSeconds": duration}));
            let mut me = me();
            let until = Err(now.after(15).clock);
            assert_eq!(me.next_step(Some(&lease), now), until, "{duration}");
            written(me.next_step(Some(&lease), now.after(15)));
        }
        let forever = lease(&json!({"holderIdentity": "other", "leaseDurationSeconds": i32::MAX}));
        assert!(me().next_step(Some(&forever), now).is_err());
        for (count, next) in [(-5, 1), (i32::MAX, i32::MAX)] {
            let lease = lease(&json!({"holderIdentity": "", "leaseTransitions": count}));
            assert_eq!(
                json(&written(me().next_step(Some(&lease), now)))["leaseTransitions"],
                next
            );
        }
        // Our Lease, without an acquire time.
        let ours = lease(&json!({"holderIdentity": "me", "acquireTime": null}));
        assert_eq!(
            json(&written(me().next_step(Some(&ours), now)))["acquireTime"],
            "2026-01-01T00:00:00.000000Z"
        );
    }

    #[test]
    fn identity_names_the_host_and_is_unique_per_start() {
        assert_eq!(identity("controller-0", 0x2a), "controller-0_000000000000002a");
    }
}
