//! Runs the election: reads and writes the Lease, keeps the time, and publishes whether this replica leads.

use super::{Candidate, LeaseTime, holder, plus};
use fastrand::Rng;
use hub::reason;
use k8s_openapi::api::coordination::v1::Lease;
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

/// The minimum interval between two reads of the Lease.
const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// The maximum jitter of the interval in milliseconds, so that replicas do not send requests at the same time.
const JITTER: u64 = 500;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A candidacy that runs in the background. Dropping it does not release the Lease: others take over when it has expired.
pub struct Election {
    release: oneshot::Sender<()>,
    task: JoinHandle<()>,
    /// The number of times that the API server had an older state than before.
    pub restores: watch::Receiver<u64>,
}

impl Election {
    /// Starts a candidacy in the current runtime. `leads` is true while this replica holds the Lease; when the task ends, for
    /// whatever reason, `leads` is false. `random` spreads requests over time.
    pub fn start(
        client: Client,
        namespace: &str,
        name: &str,
        identity: String,
        leads: watch::Sender<bool>,
        random: u64,
    ) -> Self {
        let (release, released) = oneshot::channel();
        let (publisher, restores) = watch::channel(0);
        let mut campaign = ElectionLoop {
            leases: Api::namespaced(client, namespace),
            name: name.to_owned(),
            leadership: Leadership {
                lease: format!("{namespace}/{name}"),
                candidate: Candidate::new(identity),
                is_released: false,
                leads,
            },
            known: None,
            newest: 0,
            restored: publisher,
            last_logged: String::new(),
            random: Rng::with_seed(random),
        };
        let task = tokio::spawn(async move {
            let is_release = select! {
                never = campaign.run() => match never {},
                requested = released => requested.is_ok(),
            };
            if is_release {
                campaign.release().await;
            }
        });
        Self {
            release,
            task,
            restores,
        }
    }

    /// Returns when the task has ended by itself, which it does only if it panics: this replica can never lead again.
    pub async fn ended(&mut self) {
        // The process logs the panic.
        let _ = (&mut self.task).await;
    }

    /// Stops leading and releases the Lease, if the API server responds in time. All writes must be finished before.
    pub async fn release(self) {
        // The task ends early only if it panics, and then there is no Lease to release.
        if self.release.send(()).is_ok() {
            self.task.await.unwrap_or_default();
        }
    }
}

struct Leadership {
    lease: String,
    candidate: Candidate,
    /// True if this replica has released the Lease itself.
    is_released: bool,
    leads: watch::Sender<bool>,
}

impl Leadership {
    fn publish(&self) {
        let leads = self.candidate.leads(Instant::now());
        let has_changed = self
            .leads
            .send_if_modified(|known| std::mem::replace(known, leads) != leads);
        let Self { lease, candidate, .. } = self;
        match leads {
            true if has_changed => info!(lease, identity = candidate.identity, "leading"),
            false if has_changed && self.is_released => {
                info!(lease, identity = candidate.identity, "released the Lease");
            }
            false if has_changed => warn!(lease, identity = candidate.identity, "no longer leading"),
            _ => {}
        }
    }

    /// Awaits a future; if leadership ends meanwhile, publishes that without waiting for the future.
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

impl Drop for Leadership {
    fn drop(&mut self) {
        self.candidate.resign();
        self.publish();
    }
}

enum ElectionError {
    Conflict,
    Other(String),
}

struct ElectionLoop {
    leases: Api<Lease>,
    name: String,
    leadership: Leadership,
    /// The Lease as this replica last wrote it: most often no other replica has written since.
    known: Option<Lease>,
    /// The newest known revision of the hub's etcd: the resource version of the Lease.
    newest: u64,
    restored: watch::Sender<u64>,
    /// The last log message about other replicas and failures: each is logged once, not every two seconds.
    last_logged: String,
    random: Rng,
}

impl ElectionLoop {
    async fn run(&mut self) -> Infallible {
        loop {
            let mut next = plus(Instant::now(), self.pause());
            match self.poll().await {
                Ok(None) => self.last_logged.clear(),
                Ok(Some(expires)) => next = next.min(expires),
                Err(ElectionError::Conflict) => debug!(lease = self.leadership.lease, "another replica was faster"),
                Err(ElectionError::Other(reason)) => {
                    if self.is_new_message(&reason) {
                        warn!(lease = self.leadership.lease, %reason, "cannot acquire the Lease");
                    }
                }
            }
            self.leadership.during(sleep_until(next)).await;
        }
    }

    /// Reads the Lease and takes the next step; returns when the Lease expires if another replica holds it.
    async fn poll(&mut self) -> Result<Option<Instant>, ElectionError> {
        if let Some(known) = self.known.take() {
            match self.advance(Some(known)).await {
                Err(ElectionError::Conflict) => {}
                other => return other,
            }
        }
        let lease = self.leadership.during(in_time(self.leases.get_opt(&self.name))).await?;
        self.advance(lease).await
    }

    async fn advance(&mut self, lease: Option<Lease>) -> Result<Option<Instant>, ElectionError> {
        self.check_revision(lease.as_ref());
        let now = LeaseTime::now();
        let step = self.leadership.candidate.next_step(lease.as_ref(), now);
        self.leadership.publish();
        let how = PostParams::default();
        let written = match step {
            Err(expires) => {
                let holder = lease.as_ref().and_then(holder).unwrap_or_default();
                if !holder.is_empty() && self.is_new_message(holder) {
                    info!(lease = self.leadership.lease, holder, "another replica leads");
                }
                return Ok(Some(expires));
            }
            Ok(mut new) if lease.is_none() => {
                new.metadata.name = Some(self.name.clone());
                self.leadership.during(in_time(self.leases.create(&how, &new))).await?
            }
            Ok(new) => {
                let replace = self.leases.replace(&self.name, &how, &new);
                self.leadership.during(in_time(replace)).await?
            }
        };
        self.check_revision(Some(&written));
        self.leadership.candidate.written(&written, now.clock);
        self.leadership.publish();
        self.known = Some(written);
        Ok(None)
    }

    /// Publishes that the hub has an older state than before: its etcd was restored in place. All watches continue after a revision
    /// that does not exist yet, so they would miss all changes until it does.
    fn check_revision(&mut self, lease: Option<&Lease>) {
        let revision = lease.and_then(|lease| lease.metadata.resource_version.as_ref()?.parse::<u64>().ok());
        let Some(revision) = revision else { return };
        if revision < self.newest {
            self.restored
                .send_modify(|restores| *restores = restores.wrapping_add(1));
        }
        self.newest = revision;
    }

    async fn release(&mut self) {
        self.leadership.is_released = true;
        self.leadership.candidate.resign();
        self.leadership.publish();
        let (leases, candidate) = (&self.leases, &self.leadership.candidate);
        let how = PostParams::default();
        let left = timeout(REQUEST_TIMEOUT, async {
            loop {
                // The known Lease may be outdated: a renewal in flight may have succeeded.
                let Some(existing) = leases.get_opt(&self.name).await? else {
                    return Ok(());
                };
                let Some(lease) = candidate.released(&existing, LeaseTime::now()) else {
                    return Ok(());
                };
                match leases.replace(&self.name, &how, &lease).await {
                    Err(Error::Api(status)) if status.code == 409 => {}
                    done => return done.map(|_| ()),
                }
            }
        });
        let lease = &self.leadership.lease;
        let reason = match left.await {
            Ok(Ok(())) => return debug!(lease, "Lease released"),
            Ok(Err(error)) => reason(&error),
            Err(_) => NO_ANSWER.to_owned(),
        };
        warn!(lease, reason, "cannot release the Lease; it expires by itself");
    }

    fn is_new_message(&mut self, text: &str) -> bool {
        let is_new_message = self.last_logged != text;
        text.clone_into(&mut self.last_logged);
        is_new_message
    }

    fn pause(&mut self) -> Duration {
        RETRY_PERIOD.saturating_add(Duration::from_millis(self.random.u64(..=JITTER)))
    }
}

const NO_ANSWER: &str = "the API server does not answer";

async fn in_time<T>(request: impl Future<Output = Result<T, Error>>) -> Result<T, ElectionError> {
    match timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Error::Api(status))) if status.code == 409 => Err(ElectionError::Conflict),
        Ok(Err(error)) => Err(ElectionError::Other(reason(&error))),
        Err(_) => Err(ElectionError::Other(NO_ANSWER.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::leases::{Fault, Hub};
    use serde_json::json;
    use std::sync::{Arc, Mutex};
    use tokio::time::sleep;

    fn second(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Starts a candidate. Returns its election, whether it leads, and the setting for how the API server treats it.
    fn candidate(hub: &Hub, name: &str, random: u64) -> (Election, watch::Receiver<bool>, Arc<Mutex<Fault>>) {
        let (client, fault) = hub.client();
        let (sender, leads) = watch::channel(false);
        let election = Election::start(client, "argocd", LEASE, name.to_owned(), sender, random);
        (election, leads, fault)
    }

    /// Starts the candidate `a`, and waits until it leads.
    async fn leader(hub: &Hub, random: u64) -> (Election, watch::Receiver<bool>, Arc<Mutex<Fault>>) {
        let (election, mut leads, fault) = candidate(hub, "a", random);
        until(&mut leads, true).await;
        (election, leads, fault)
    }

    const LEASE: &str = "controller";

    /// Returns the time until leadership is gained or lost.
    async fn until(leads: &mut watch::Receiver<bool>, desired: bool) -> Duration {
        let start = Instant::now();
        let last_logged = timeout(second(60), leads.wait_for(|leads| *leads == desired)).await;
        last_logged.expect("within a minute").unwrap();
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn leader_stays_leader() {
        let hub = Hub::default();
        let (_election, mut leads, _) = leader(&hub, 1).await;
        let first = hub.spec(LEASE);
        leads.mark_unchanged();
        sleep(second(600)).await;
        assert!(*leads.borrow() && !leads.has_changed().unwrap());
        let last = hub.spec(LEASE);
        assert_eq!(last["leaseTransitions"], 0);
        assert_eq!(last["acquireTime"], first["acquireTime"]);
        assert_ne!(last["renewTime"], first["renewTime"]);
        let writes = hub.writes();
        assert!((240..=301).contains(&writes), "{writes} writes in 600 s");
    }

    #[tokio::test(start_paused = true)]
    async fn leader_and_standby_notice_an_older_state_of_the_hub() {
        let hub = Hub::default();
        let (leader, _, _) = leader(&hub, 1).await;
        let (standby, ..) = candidate(&hub, "b", 2);
        sleep(second(10)).await;
        let backup = hub.state();
        sleep(second(600)).await;
        assert_eq!((*leader.restores.borrow(), *standby.restores.borrow()), (0, 0));
        hub.restore(backup);
        sleep(second(10)).await;
        assert_eq!((*leader.restores.borrow(), *standby.restores.borrow()), (1, 1));
        sleep(second(600)).await;
        assert_eq!((*leader.restores.borrow(), *standby.restores.borrow()), (1, 1), "once");
    }

    #[tokio::test(start_paused = true)]
    async fn end_of_the_task_is_noticed() {
        let hub = Hub::default();
        let (mut election, mut leads, _) = candidate(&hub, "a", 1);
        until(&mut leads, true).await;
        assert!(timeout(second(600), election.ended()).await.is_err(), "it leads");
        election.task.abort();
        timeout(second(60), election.ended()).await.expect("it has ended");
        until(&mut leads, false).await;
        election.release().await;
    }

    #[tokio::test(start_paused = true)]
    async fn standby_takes_over_from_a_dead_leader_within_20_seconds() {
        let hub = Hub::default();
        for random in 0..20 {
            let (first, mut leads, _) = leader(&hub, random).await;
            let (second_one, mut next, _) = candidate(&hub, "b", random + 100);
            sleep(Duration::from_millis(30_000 + 137 * random)).await;
            assert!(!*next.borrow());
            drop(first);
            until(&mut leads, false).await;
            let waited = until(&mut next, true).await;
            assert!(waited > second(12) && waited < second(18), "{waited:?}");
            second_one.release().await;
        }
        assert_eq!(hub.spec(LEASE)["leaseTransitions"], 39);
    }

    #[tokio::test(start_paused = true)]
    async fn releasing_hands_the_lease_over_immediately() {
        let hub = Hub::default();
        let (first, leads, _) = leader(&hub, 1).await;
        let (_second, mut next, _) = candidate(&hub, "b", 2);
        sleep(second(10)).await;
        first.release().await;
        assert!(!*leads.borrow());
        let spec = hub.spec(LEASE);
        assert_eq!(
            (&spec["holderIdentity"], &spec["leaseDurationSeconds"]),
            (&json!(""), &json!(1))
        );
        let waited = until(&mut next, true).await;
        assert!(waited <= Duration::from_millis(2500), "{waited:?}");
        assert_eq!(hub.spec(LEASE)["leaseTransitions"], 1);
    }

    #[tokio::test(start_paused = true)]
    async fn leader_that_cannot_renew_stops_before_others_may_start() {
        for fault in [
            Fault::Hangs,
            Fault::NoAnswer,
            Fault::Fails(500),
            Fault::Fails(409),
            Fault::Fails(403),
        ] {
            let hub = Hub::default();
            let (_first, mut leads, current_fault) = leader(&hub, 1).await;
            sleep(second(7)).await;
            *current_fault.lock().unwrap() = fault;
            // The last renewal was up to two and a half seconds ago; one that is applied but not answered does not count.
            let waited = until(&mut leads, false).await;
            assert!(
                waited >= Duration::from_millis(7500) && waited <= second(10),
                "{fault:?}: {waited:?}"
            );
            *current_fault.lock().unwrap() = Fault::None;
            let waited = until(&mut leads, true).await;
            assert!(waited <= Duration::from_millis(7500), "{fault:?}: {waited:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn release_without_a_response_times_out() {
        let hub = Hub::default();
        let (first, leads, current_fault) = leader(&hub, 1).await;
        *current_fault.lock().unwrap() = Fault::Hangs;
        let start = Instant::now();
        first.release().await;
        assert!(start.elapsed() <= REQUEST_TIMEOUT + second(1), "{:?}", start.elapsed());
        assert!(!*leads.borrow());
    }

    #[tokio::test(start_paused = true)]
    async fn release_during_a_renewal_releases_the_renewed_lease() {
        let hub = Hub::default();
        let (first, _, current_fault) = leader(&hub, 1).await;
        *current_fault.lock().unwrap() = Fault::NoAnswer;
        sleep(second(3)).await;
        *current_fault.lock().unwrap() = Fault::None;
        first.release().await;
        assert_eq!(hub.spec(LEASE)["holderIdentity"], "");
    }

    #[tokio::test(start_paused = true)]
    async fn recreates_a_deleted_lease() {
        let hub = Hub::default();
        let (_first, leads, _) = leader(&hub, 1).await;
        hub.clear();
        sleep(second(6)).await;
        assert!(*leads.borrow());
        assert_eq!(hub.spec(LEASE)["holderIdentity"], "a");
    }

    #[tokio::test(start_paused = true)]
    async fn never_has_two_leaders_however_the_api_server_behaves() {
        let mut rng = Rng::with_seed(42);
        let mut random = |below: u64| rng.u64(..below);
        let (mut led, mut changes) = ([0, 0], 0);
        let hub = Hub::default();
        let (_a, a, to_a) = candidate(&hub, "a", 1);
        let (_b, b, to_b) = candidate(&hub, "b", 2);
        let faults = [
            Fault::None,
            Fault::None,
            Fault::Hangs,
            Fault::NoAnswer,
            Fault::Fails(500),
        ];
        let mut last = 2;
        for step in 0..20_000 {
            if step % 40 == 0 {
                for current_fault in [&to_a, &to_b] {
                    *current_fault.lock().unwrap() = faults[usize::try_from(random(5)).unwrap()];
                }
            }
            sleep(Duration::from_millis(100 + random(400))).await;
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
