//! Which replica writes: the holder of a Lease, by the rules of client-go's leader election.
//!
//! ```text
//! Lease ─▶ Candidate::next ─▶ Step ─▶ a conditional write ─▶ Candidate::written ─▶ leads until a deadline
//! ```
//!
//! [`Candidate`] decides, as a function of what it sees and when; [`Election`] asks the API server and keeps the time. Nobody's
//! wall clock is ever compared: a Lease of somebody else has expired when it has not changed for as long as it says, by our own
//! steady clock. We stop leading well before others may think so, also while the API server does not answer.

use crate::hub::reason;
use fastrand::Rng;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client, Error};
use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;
use tokio::select;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

/// How long others must see our Lease unchanged before they take over.
const DURATION: Duration = Duration::from_secs(15);

/// How long we lead after we asked for the last renewal that was granted.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long from one look at the Lease to the next, at least.
const RETRY: Duration = Duration::from_secs(2);

/// By how many milliseconds more at most, so that replicas do not ask all at once.
const JITTER: u64 = 500;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(5);

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

/// What to do with the Lease.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// There is none: make this one.
    Create(Box<Lease>),
    /// Put this in its place, unless somebody else was faster.
    Replace(Box<Lease>),
    /// Somebody else holds it, until then if nothing is heard of them.
    Respect(Instant),
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
        self.renewed.map(|at| at + DEADLINE)
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
    pub fn next(&mut self, seen: Option<&Lease>, now: Moment) -> Step {
        let Some(lease) = seen else {
            // Anybody may have it next.
            self.resign();
            self.observed = None;
            return Step::Create(Box::new(Lease {
                metadata: ObjectMeta::default(),
                spec: Some(self.held(LeaseSpec::default(), now.wall, 0)),
            }));
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let transitions = spec.lease_transitions.unwrap_or_default().max(0);
        let spec = match spec.holder_identity.as_deref().unwrap_or_default() {
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
                let is_held = !holder.is_empty();
                let expires = self.observe(&spec, now.clock);
                if is_held && now.clock < expires {
                    return Step::Respect(expires);
                }
                self.held(spec, now.wall, transitions.saturating_add(1))
            }
        };
        Step::Replace(Box::new(Lease {
            metadata: lease.metadata.clone(),
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

    /// When the Lease of somebody else expires: so long after it was first seen as it is now. One that does not say how long
    /// it lasts is given as long as ours.
    fn observe(&mut self, spec: &LeaseSpec, now: Instant) -> Instant {
        let since = match &self.observed {
            Some((known, since)) if known == spec => *since,
            _ => {
                self.observed = Some((spec.clone(), now));
                now
            }
        };
        let seconds = spec.lease_duration_seconds.and_then(|it| u64::try_from(it).ok());
        let seconds = seconds.filter(|seconds| *seconds > 0);
        since + seconds.map_or(DURATION, Duration::from_secs)
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

/// Who a replica is: its host's name, and what makes it another after a restart.
#[must_use]
pub fn identity(host: &str, random: u64) -> String {
    format!("{host}_{random:016x}")
}

/// A candidacy that goes on in the background; who drops it stands back without a word, and others take over when the Lease
/// has expired.
pub struct Election {
    release: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Election {
    /// Stands for the Lease, in the runtime this is called in. What is returned tells whether we lead; where the task ends,
    /// for whatever reason, it says no. `random` spreads requests over time.
    #[must_use]
    pub fn start(
        client: Client,
        namespace: &str,
        name: &str,
        identity: String,
        random: u64,
    ) -> (Self, watch::Receiver<bool>) {
        let (leader, leads) = watch::channel(false);
        let (release, released) = oneshot::channel();
        let mut campaign = Campaign {
            leases: Api::namespaced(client, namespace),
            name: name.to_owned(),
            post: Post {
                lease: format!("{namespace}/{name}"),
                candidate: Candidate::new(identity),
                leaves: false,
                leader,
            },
            known: None,
            told: String::new(),
            random: Rng::with_seed(random),
        };
        let task = tokio::spawn(async move {
            let is_release = select! {
                never = campaign.run() => match never {},
                asked = released => asked.is_ok(),
            };
            if is_release {
                campaign.release().await;
            }
        });
        (Self { release, task }, leads)
    }

    /// Stops leading and leaves the Lease to others, if the API server answers in time. What we have to write must be written
    /// before.
    pub async fn release(self) {
        // It ends by itself only when it panics, and then nothing is left to do.
        if self.release.send(()).is_ok() {
            self.task.await.unwrap_or_default();
        }
    }
}

/// Whether we lead, and those who want to know.
struct Post {
    lease: String,
    candidate: Candidate,
    /// Whether we stand back of our own accord.
    leaves: bool,
    leader: watch::Sender<bool>,
}

impl Post {
    /// Tells whether we lead.
    fn publish(&self) {
        let leads = self.candidate.leads(Instant::now());
        let is_news = self.leader.send_if_modified(|it| std::mem::replace(it, leads) != leads);
        let Self { lease, candidate, .. } = self;
        match leads {
            true if is_news => info!(lease, identity = candidate.identity, "leading"),
            false if is_news && self.leaves => info!(lease, identity = candidate.identity, "left to others"),
            false if is_news => warn!(lease, identity = candidate.identity, "no longer leading"),
            _ => {}
        }
    }

    /// Does something that takes time; when we must stop leading meanwhile, that is told without waiting for it.
    async fn during<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        if let Some(deadline) = self.candidate.deadline() {
            select! {
                biased;
                () = sleep_until(deadline) => {
                    self.candidate.resign();
                    self.publish();
                }
                done = &mut work => return done,
            }
        }
        work.await
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        self.candidate.resign();
        self.publish();
    }
}

/// Why a look at the Lease came to nothing.
enum Trouble {
    Conflict,
    Other(String),
}

struct Campaign {
    leases: Api<Lease>,
    name: String,
    post: Post,
    /// The Lease as we wrote it last, if that was granted: most often nobody else has written since.
    known: Option<Lease>,
    /// What was last told of others and of troubles: it is told once, not every two seconds.
    told: String,
    random: Rng,
}

impl Campaign {
    async fn run(&mut self) -> Infallible {
        loop {
            let mut next = Instant::now() + self.pause();
            match self.look().await {
                Ok(None) => self.told.clear(),
                Ok(Some(expires)) => next = next.min(expires),
                Err(Trouble::Conflict) => debug!(lease = self.post.lease, "somebody else was faster"),
                Err(Trouble::Other(reason)) => {
                    if self.is_news(&reason) {
                        warn!(lease = self.post.lease, %reason, "the lease cannot be had");
                    }
                }
            }
            self.post.during(sleep_until(next)).await;
        }
    }

    /// Looks at the Lease and does what is to be done; says when it expires, if it is somebody else's.
    async fn look(&mut self) -> Result<Option<Instant>, Trouble> {
        if let Some(known) = self.known.take() {
            match self.advance(Some(known)).await {
                Err(Trouble::Conflict) => {}
                other => return other,
            }
        }
        let seen = self.post.during(in_time(self.leases.get_opt(&self.name))).await?;
        self.advance(seen).await
    }

    async fn advance(&mut self, seen: Option<Lease>) -> Result<Option<Instant>, Trouble> {
        let now = Moment::now();
        let step = self.post.candidate.next(seen.as_ref(), now);
        self.post.publish();
        let how = PostParams::default();
        let written = match step {
            Step::Respect(expires) => {
                let holder = seen.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
                if self.is_news(&holder) {
                    info!(lease = self.post.lease, holder, "another replica leads");
                }
                return Ok(Some(expires));
            }
            Step::Create(mut lease) => {
                lease.metadata.name = Some(self.name.clone());
                self.post.during(in_time(self.leases.create(&how, &lease))).await?
            }
            Step::Replace(lease) => {
                let replace = self.leases.replace(&self.name, &how, &lease);
                self.post.during(in_time(replace)).await?
            }
        };
        self.post.candidate.written(&written, now.clock);
        self.post.publish();
        self.known = Some(written);
        Ok(None)
    }

    async fn release(&mut self) {
        self.post.leaves = true;
        self.post.candidate.resign();
        self.post.publish();
        let (leases, candidate) = (&self.leases, &self.post.candidate);
        let how = PostParams::default();
        let left = timeout(PATIENCE, async {
            loop {
                // What we know may be old: a renewal that was under way may have been granted.
                let Some(seen) = leases.get_opt(&self.name).await? else {
                    return Ok(());
                };
                let Some(lease) = candidate.released(&seen, Moment::now()) else {
                    return Ok(());
                };
                match leases.replace(&self.name, &how, &lease).await {
                    Err(Error::Api(status)) if status.code == 409 => {}
                    done => return done.map(|_| ()),
                }
            }
        });
        let lease = &self.post.lease;
        match left.await {
            Ok(Ok(())) => debug!(lease, "the lease is left to others"),
            Ok(Err(error)) => warn!(lease, reason = reason(&error), "the lease is not released: it expires"),
            Err(_) => warn!(lease, reason = SILENCE, "the lease is not released: it expires"),
        }
    }

    fn is_news(&mut self, text: &str) -> bool {
        let is_news = self.told != text;
        text.clone_into(&mut self.told);
        is_news
    }

    fn pause(&mut self) -> Duration {
        RETRY + Duration::from_millis(self.random.u64(..=JITTER))
    }
}

const SILENCE: &str = "the API server does not answer";

async fn in_time<T>(request: impl Future<Output = Result<T, Error>>) -> Result<T, Trouble> {
    match timeout(PATIENCE, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Error::Api(status))) if status.code == 409 => Err(Trouble::Conflict),
        Ok(Err(error)) => Err(Trouble::Other(reason(&error))),
        Err(_) => Err(Trouble::Other(SILENCE.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use hyper::{Method, Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::sync::{Arc, Mutex};

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
            Step::Respect(_) => panic!("{step:?}"),
        }
    }

    fn json(lease: &Lease) -> Value {
        serde_json::to_value(lease.spec.as_ref().unwrap()).unwrap()
    }

    const OLD: &str = "2025-12-31T23:59:59.000000Z";

    #[test]
    fn who_finds_no_lease_makes_one_and_leads_until_the_deadline() {
        let (mut me, now) = (me(), start());
        let step = me.next(None, now);
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
        let mut lease = written(me.next(None, now));
        lease.metadata.resource_version = Some("8".to_owned());
        me.written(&lease, now.clock);
        let step = me.next(Some(&lease), now.after(2));
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
            assert_eq!(me.next(Some(&of_other(time)), now), Step::Respect(now.after(15).clock));
            assert_eq!(
                me.next(Some(&of_other(time)), now.after(14)),
                Step::Respect(now.after(15).clock)
            );
        }
        // It changed within that time: it counts from there.
        assert_eq!(
            me.next(Some(&of_other(OLD)), now.after(14)),
            Step::Respect(now.after(29).clock)
        );
        assert_eq!(
            me.next(Some(&of_other(OLD)), now.after(28)),
            Step::Respect(now.after(29).clock)
        );
        let taken = written(me.next(Some(&of_other(OLD)), now.after(29)));
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
        assert_eq!(me.next(Some(&of_other(OLD)), now), until);
        assert_eq!(me.next(Some(&of_other(OLD)), jumped(2, "2199-01-01T00:00:00Z")), until);
        assert_eq!(me.next(Some(&of_other(OLD)), jumped(4, "1970-01-01T00:00:00Z")), until);
        let lease = written(me.next(Some(&of_other(OLD)), jumped(15, "1970-01-01T00:00:00Z")));
        me.written(&lease, now.after(15).clock);
        written(me.next(Some(&lease), jumped(17, "2199-01-01T00:00:00Z")));
        assert!(me.leads(now.after(17).clock));
    }

    #[test]
    fn who_sees_another_holder_leads_no_more_at_once() {
        let (mut me, now) = (me(), start());
        let lease = written(me.next(None, now));
        for seen in [
            Some(of_other(OLD)),
            Some(super::tests::lease(&json!({"holderIdentity": ""}))),
            None,
        ] {
            me.written(&lease, now.clock);
            assert!(me.leads(now.clock));
            me.next(seen.as_ref(), now.after(1));
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
        let lease = written(me.next(None, now));
        me.written(&lease, now.clock);
        // The answer came after eleven seconds.
        assert!(!me.leads(now.after(11).clock));
        // Others may have waited by now, but have not taken it: it is renewed.
        let renewed = written(me.next(Some(&lease), now.after(60)));
        assert_eq!(json(&renewed)["leaseTransitions"], 0);
        me.written(&renewed, now.after(60).clock);
        assert!(me.leads(now.after(61).clock));
    }

    #[test]
    fn a_released_lease_is_anybodys() {
        let (mut me, now) = (me(), start());
        let lease = Lease {
            metadata: of_other(OLD).metadata,
            ..written(me.next(None, now))
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
        let taken = json(&written(other.next(Some(&released), now.after(3))));
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
            let taken = json(&written(me().next(Some(&lease(&spec)), now)));
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
                me.next(Some(&lease), now),
                Step::Respect(now.after(15).clock),
                "{duration}"
            );
            written(me.next(Some(&lease), now.after(15)));
        }
        let forever = lease(&json!({"holderIdentity": "other", "leaseDurationSeconds": i32::MAX}));
        assert!(matches!(me().next(Some(&forever), now), Step::Respect(_)));
        for (count, next) in [(-5, 1), (i32::MAX, i32::MAX)] {
            let lease = lease(&json!({"holderIdentity": "", "leaseTransitions": count}));
            assert_eq!(json(&written(me().next(Some(&lease), now)))["leaseTransitions"], next);
        }
        // Ours, without the time since when.
        let ours = lease(&json!({"holderIdentity": "me", "acquireTime": null}));
        assert_eq!(
            json(&written(me().next(Some(&ours), now)))["acquireTime"],
            "2026-01-01T00:00:00.000000Z"
        );
    }

    #[test]
    fn an_identity_names_the_host_and_differs_after_a_restart() {
        assert_eq!(identity("controller-0", 0x2a), "controller-0_000000000000002a");
    }

    /// How an API server treats somebody.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Manner {
        Well,
        Hangs,
        /// It does what is asked for, and does not say so.
        Silent,
        Fails(u16),
    }

    type Stored = Arc<Mutex<(u64, Option<Value>)>>;

    /// What an API server does with a Lease.
    fn answer(stored: &Stored, method: &Method, mut sent: Value) -> (u16, Value) {
        let mut stored = stored.lock().unwrap();
        let (version, lease) = &mut *stored;
        let status = |code, reason| {
            (
                code,
                json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}),
            )
        };
        match (method, &lease) {
            (&Method::GET, Some(lease)) => return (200, lease.clone()),
            (&Method::POST, Some(_)) => return status(409, "Conflict"),
            (&Method::GET | &Method::PUT, None) => return status(404, "NotFound"),
            (&Method::PUT, Some(lease))
                if sent["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] =>
            {
                return status(409, "Conflict");
            }
            _ => {}
        }
        *version += 1;
        sent["metadata"]["resourceVersion"] = version.to_string().into();
        *lease = Some(sent.clone());
        (200, sent)
    }

    struct Hub(Stored);

    impl Hub {
        fn new() -> Self {
            Self(Arc::default())
        }

        /// Somebody who stands, and how they are treated from now on.
        fn candidate(&self, name: &str, random: u64) -> (Election, watch::Receiver<bool>, Arc<Mutex<Manner>>) {
            let manner = Arc::new(Mutex::new(Manner::Well));
            let (stored, treated) = (Arc::clone(&self.0), Arc::clone(&manner));
            let service = tower::service_fn(move |request: Request<Body>| {
                let (stored, treated) = (Arc::clone(&stored), Arc::clone(&treated));
                async move {
                    let manner = *treated.lock().unwrap();
                    let (head, body) = request.into_parts();
                    let path = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases";
                    let rest = head.uri.path().strip_prefix(path).unwrap();
                    assert_eq!(rest, if head.method == Method::POST { "" } else { "/controller" });
                    let body = body.collect().await?.to_bytes();
                    let sent = serde_json::from_slice(&body).unwrap_or_default();
                    let (code, answer) = match manner {
                        Manner::Hangs => std::future::pending().await,
                        Manner::Fails(code) => (code, json!("no")),
                        Manner::Well | Manner::Silent => answer(&stored, &head.method, sent),
                    };
                    if manner == Manner::Silent && head.method != Method::GET {
                        std::future::pending::<()>().await;
                    }
                    let answer = Response::builder()
                        .status(code)
                        .body(Body::from(answer.to_string().into_bytes()));
                    Ok::<_, kube::Error>(answer.unwrap())
                }
            });
            let client = Client::new(service, "default");
            let (election, leads) = Election::start(client, "argocd", "controller", name.to_owned(), random);
            (election, leads, manner)
        }

        fn spec(&self) -> Value {
            self.0.lock().unwrap().1.as_ref().unwrap()["spec"].clone()
        }
    }

    /// How long it takes until it is said that somebody leads, or does not.
    async fn until(leads: &mut watch::Receiver<bool>, wanted: bool) -> Duration {
        let start = Instant::now();
        let told = timeout(second(60), leads.wait_for(|leads| *leads == wanted)).await;
        told.expect("within a minute").unwrap();
        start.elapsed()
    }

    async fn pass(time: Duration) {
        tokio::time::sleep(time).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_leads_goes_on_leading() {
        let hub = Hub::new();
        let (_election, mut leads, _) = hub.candidate("a", 1);
        until(&mut leads, true).await;
        let first = hub.spec();
        leads.mark_unchanged();
        pass(second(600)).await;
        assert!(*leads.borrow() && !leads.has_changed().unwrap());
        let last = hub.spec();
        assert_eq!(last["leaseTransitions"], 0);
        assert_eq!(last["acquireTime"], first["acquireTime"]);
        assert_ne!(last["renewTime"], first["renewTime"]);
        let writes = hub.0.lock().unwrap().0;
        assert!((240..=301).contains(&writes), "{writes} writes in 600 s");
    }

    #[tokio::test(start_paused = true)]
    async fn another_takes_over_from_one_that_is_gone_within_twenty_seconds() {
        let hub = Hub::new();
        for random in 0..20 {
            let (first, mut leads, _) = hub.candidate("a", random);
            until(&mut leads, true).await;
            let (second_one, mut next, _) = hub.candidate("b", random + 100);
            pass(Duration::from_millis(30_000 + 137 * random)).await;
            assert!(!*next.borrow());
            drop(first);
            until(&mut leads, false).await;
            let waited = until(&mut next, true).await;
            assert!(waited > second(12) && waited < second(18), "{waited:?}");
            second_one.release().await;
        }
        assert_eq!(hub.spec()["leaseTransitions"], 39);
    }

    #[tokio::test(start_paused = true)]
    async fn who_releases_leaves_the_lease_to_others_at_once() {
        let hub = Hub::new();
        let (first, mut leads, _) = hub.candidate("a", 1);
        until(&mut leads, true).await;
        let (_second, mut next, _) = hub.candidate("b", 2);
        pass(second(10)).await;
        first.release().await;
        assert!(!*leads.borrow());
        let spec = hub.spec();
        assert_eq!(
            (&spec["holderIdentity"], &spec["leaseDurationSeconds"]),
            (&json!(""), &json!(1))
        );
        let waited = until(&mut next, true).await;
        assert!(waited <= Duration::from_millis(2500), "{waited:?}");
        assert_eq!(hub.spec()["leaseTransitions"], 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_releases_what_another_holds_leaves_it_alone() {
        let hub = Hub::new();
        let (_first, mut leads, _) = hub.candidate("a", 1);
        until(&mut leads, true).await;
        let (second_one, _next, _) = hub.candidate("b", 2);
        pass(second(5)).await;
        second_one.release().await;
        assert_eq!(hub.spec()["holderIdentity"], "a");
    }

    #[tokio::test(start_paused = true)]
    async fn who_cannot_renew_stops_leading_before_others_may_start() {
        for manner in [
            Manner::Hangs,
            Manner::Silent,
            Manner::Fails(500),
            Manner::Fails(409),
            Manner::Fails(403),
        ] {
            let hub = Hub::new();
            let (_first, mut leads, treated) = hub.candidate("a", 1);
            until(&mut leads, true).await;
            pass(second(7)).await;
            *treated.lock().unwrap() = manner;
            // The last renewal was up to two and a half seconds ago; one that is applied and not answered does not count.
            let waited = until(&mut leads, false).await;
            assert!(
                waited >= Duration::from_millis(7500) && waited <= second(10),
                "{manner:?}: {waited:?}"
            );
            *treated.lock().unwrap() = Manner::Well;
            let waited = until(&mut leads, true).await;
            assert!(waited <= Duration::from_millis(7500), "{manner:?}: {waited:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_that_is_not_answered_is_given_up() {
        let hub = Hub::new();
        let (first, mut leads, treated) = hub.candidate("a", 1);
        until(&mut leads, true).await;
        *treated.lock().unwrap() = Manner::Hangs;
        let start = Instant::now();
        first.release().await;
        assert!(start.elapsed() <= PATIENCE + second(1), "{:?}", start.elapsed());
        assert!(!*leads.borrow());
    }

    #[tokio::test(start_paused = true)]
    async fn a_release_while_a_renewal_is_under_way_releases_that() {
        let hub = Hub::new();
        let (first, mut leads, treated) = hub.candidate("a", 1);
        until(&mut leads, true).await;
        *treated.lock().unwrap() = Manner::Silent;
        pass(second(3)).await;
        *treated.lock().unwrap() = Manner::Well;
        first.release().await;
        assert_eq!(hub.spec()["holderIdentity"], "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_deleted_is_made_again() {
        let hub = Hub::new();
        let (_first, mut leads, _) = hub.candidate("a", 1);
        until(&mut leads, true).await;
        hub.0.lock().unwrap().1 = None;
        pass(second(6)).await;
        assert!(*leads.borrow());
        assert_eq!(hub.spec()["holderIdentity"], "a");
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_never_two_leaders_however_the_api_server_behaves() {
        let mut rng = Rng::with_seed(42);
        let mut random = |below: u64| rng.u64(..below);
        let (mut led, mut changes) = ([0, 0], 0);
        let hub = Hub::new();
        let (_a, a, to_a) = hub.candidate("a", 1);
        let (_b, b, to_b) = hub.candidate("b", 2);
        let manners = [
            Manner::Well,
            Manner::Well,
            Manner::Hangs,
            Manner::Silent,
            Manner::Fails(500),
        ];
        let mut last = 2;
        for step in 0..20_000 {
            if step % 40 == 0 {
                for treated in [&to_a, &to_b] {
                    *treated.lock().unwrap() = manners[usize::try_from(random(5)).unwrap()];
                }
            }
            pass(Duration::from_millis(100 + random(400))).await;
            let (a, b) = (*a.borrow(), *b.borrow());
            assert!(!(a && b), "two leaders at step {step}");
            led[0] += i32::from(a);
            led[1] += i32::from(b);
            let now = i32::from(b);
            if (a || b) && now != last {
                (changes, last) = (changes + 1, now);
            }
        }
        assert!(led[0] > 1000 && led[1] > 1000 && changes > 20, "{led:?} {changes}");
    }
}
