//! The loop: takes in what the watches tell, looks at what is due, and starts to write what is not as it should be.
//!
//! It shares its thread with the Leases, the probes and the writes in progress, and so yields after [`BUDGET`] of computing. A panic
//! while one object is looked at or written is counted and logged, and the object is tried again as after a failed write.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod measure;
mod standby;
#[cfg(test)]
mod tests;

use super::action::{Action, Event, Involved, Telling};
use super::index::{Change, Index, Noticed, Refusal, Sort, Touched};
use super::metrics::{Metrics, Reason};
use super::outbox::{Outbox, Put};
use super::panics::guard;
use super::promises::{Moment, Promise, Settings};
use super::queue::{Due, Outcome, Queue};
use super::readiness::Readiness;
use super::resources::GITOPS_CLUSTERS;
use super::seen::Place;
use super::shards::{self, Held, Shards, Team};
use super::slots::Slots;
use super::watches::{self, Kind, Said, Watches, What};
use super::writer::{self, Writer};
use super::{Clocks, Options};
use crate::time_math::{later, until};
use kube::Client;
use standby::Sweep;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tracing::{debug, error, info, warn};

/// How long writes under way have to come to their end when the controller is told to stop.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// How long to sleep at most where it is time that is waited for: a clock that was set must not be waited for.
const NAP: Duration = Duration::from_secs(30);

/// The same where what is waited for is days away.
const LONG_NAP: Duration = Duration::from_secs(3600);

/// How long to wait at least where it is time that is waited for.
const BLINK: Duration = Duration::from_secs(10);

/// How long the loop computes before it yields to the Leases and the probes. A Lease is renewed every two seconds and lost after ten.
const BUDGET: Duration = Duration::from_millis(10);

/// How many objects are looked at without reading the clock.
const STRIDE: u32 = 16;

/// How long a kind is not listed again after a change of it panicked, at first and at most.
const RELIST: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(600)];

/// The pause of clock-driven work after it panicked.
const AFTER_PANIC: Duration = Duration::from_secs(60);

/// The reason of the Event on an object for which something cannot be written.
const WRITE_REFUSED: &str = "WriteRefused";

/// Why a write was given up, for people.
const LATE: &str =
    "the API server does not answer in time: look for an admission webhook that is slow or does not answer";

/// What has come to its end.
enum Done {
    Written(writer::Done, Box<Action>),
    Told,
}

/// A write in progress.
struct Running {
    /// Of which of the lanes, for what, and on which object Events are told of it; nothing for an Event.
    of: Option<(usize, Due, Involved)>,
    task: AbortHandle,
    /// Whether it was given up.
    is_given_up: bool,
}

/// What came of it that something may be looked at.
#[derive(PartialEq, Eq)]
enum Look {
    /// Nothing is due, or nothing that may be written.
    Nothing,
    /// It was looked at.
    Done,
}

/// What is to be looked at for a promise, of the objects of a shard.
struct Lane {
    promise: &'static Promise,
    /// Which of the promises it is: some share their name and what they look at.
    part: usize,
    shard: usize,
    /// The slots that it shares with those of the same name.
    group: usize,
    queue: Queue,
    /// Whether those come first next time whose last write was slow.
    is_slow_next: bool,
    /// Since when this replica writes for it.
    held: Option<Instant>,
}

/// The state of the controller, and what it does with what happens.
pub(super) struct Reconciler {
    watches: Watches,
    index: Index,
    /// Consecutive panics in the index, by kind.
    panics: BTreeMap<Kind, u32>,
    /// What the hub does not have, which is said once.
    missing: BTreeSet<Kind>,
    lanes: Vec<Lane>,
    /// The lane that has the next turn.
    turn: usize,
    writes: JoinSet<Done>,
    running: HashMap<task::Id, Running>,
    slots: Slots<task::Id>,
    /// The slots of Events.
    events: usize,
    outbox: Outbox,
    sweep: Sweep,
    /// When the passing of time is looked at next at the earliest.
    no_flip_before: Option<Instant>,
    held: watch::Receiver<Held>,
    team: Arc<Team>,
    ready: Arc<Readiness>,
    metrics: Metrics,
    writer: Writer,
    settings: Settings,
    clocks: Clocks,
}

impl Reconciler {
    pub(super) fn new(
        options: &Options,
        client: &Client,
        shards: &Shards,
        ready: Arc<Readiness>,
        metrics: Metrics,
        clocks: Clocks,
    ) -> Self {
        let mut names: Vec<_> = options.promises.iter().map(|promise| promise.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names.iter().copied().chain(["index", "events"]) {
            metrics.expect(name);
        }
        let lanes = options.promises.iter().enumerate().flat_map(|(part, promise)| {
            let group = names.binary_search(&promise.name).unwrap_or_default();
            (0..shards.count()).map(move |shard| Lane {
                promise,
                part,
                shard,
                group,
                queue: Queue::new(promise.pause),
                is_slow_next: false,
                held: None,
            })
        });
        for kind in options.needs() {
            metrics.synced(kind.resource().plural, false);
        }
        let mut index = Index::new(&options.settings.argocd);
        if options.needs().contains(&Kind::Reports) {
            index = index.with_reports();
        }
        Self {
            watches: Watches::new(client, &options.settings.argocd, &options.needs(), clocks.time),
            index,
            panics: BTreeMap::new(),
            missing: BTreeSet::new(),
            lanes: lanes.collect(),
            turn: 0,
            writes: JoinSet::new(),
            running: HashMap::new(),
            slots: Slots::new(options.concurrent_writes, names.len().saturating_add(1)),
            events: names.len(),
            outbox: Outbox::default(),
            sweep: Sweep::default(),
            no_flip_before: None,
            held: shards.held(),
            team: shards.team(),
            ready,
            writer: Writer::new(client.clone(), metrics.clone(), options, clocks.time),
            metrics,
            settings: options.settings.clone(),
            clocks,
        }
    }

    /// Goes on until it is dropped. What has begun goes on after that, to be finished.
    pub(super) async fn run(&mut self) {
        let mut elected = true;
        let mut rested = (self.clocks.elapsed)();
        loop {
            let held = *self.held.borrow_and_update();
            let is_more = self.work(held);
            if is_more || (self.clocks.elapsed)().saturating_duration_since(rested) >= BUDGET {
                task::yield_now().await;
                rested = (self.clocks.elapsed)();
            }
            let next = self.next(held);
            let flip = self.next_flip();
            tokio::select! {
                said = self.watches.next() => match said {
                    Some(said) => self.hear(said),
                    None => return,
                },
                Some(done) = self.writes.join_next_with_id(), if !self.writes.is_empty() => self.note(done),
                changed = self.held.changed(), if elected => elected = changed.is_ok(),
                () = future::ready(()), if is_more => {}
                () = sleep_until(next) => {}
                () = sleep_until(flip) => self.tick(),
            }
        }
    }

    /// Does what is to be done at once, for as long as its budget lasts. Returns true if something is left.
    fn work(&mut self, held: Held) -> bool {
        self.measure_works(held);
        let held = if self.ready.check().is_ok() {
            held
        } else {
            Held::default()
        };
        let mut is_more = self.start_writes(held);
        self.give_up_what_is_late(held);
        self.start_telling(!is_more);
        is_more |= self.sweep_standby(held);
        self.measure_lanes(held);
        is_more
    }

    /// Lets the writes that are under way come to their end, and tells what was written.
    pub(super) async fn finish(&mut self) {
        let all = async {
            loop {
                self.start_telling(true);
                match self.writes.join_next_with_id().await {
                    Some(done) => self.note(done),
                    None => return,
                }
            }
        };
        if tokio::time::timeout(LAST_WRITES, all).await.is_err() {
            warn!("some writes have not come to their end");
        }
    }

    /// Notes how a write went.
    fn note(&mut self, done: Result<(task::Id, Done), JoinError>) {
        let (id, done) = match done {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error)),
        };
        let now = (self.clocks.elapsed)();
        let is_answered = matches!(&done, Ok(Done::Written(it, _)) if matches!(it.outcome, Outcome::Written { .. }));
        let is_slow = self.slots.end(&id, is_answered, now);
        let Some(Running { of, is_given_up, .. }) = self.running.remove(&id) else {
            return;
        };
        let Some((lane, due, involved)) = of else {
            if done.is_err() {
                self.metrics.panicked("events");
                error!("panic while writing an Event; it is lost");
            }
            return;
        };
        let Lane {
            promise, part, queue, ..
        } = &mut self.lanes[lane];
        let (kind, place) = (promise.of.kind(), &due.place);
        let (outcome, refusal, action) = match done {
            Ok(Done::Written(it, action)) => (it.outcome, it.refusal, Some(action)),
            Ok(Done::Told) => return,
            Err(_) if is_given_up => {
                self.metrics.failed(promise.name, Reason::Timeout);
                warn!(controller = promise.name, kind, %place, "write is slow and others wait; retrying");
                let why = self.index.refused_of_part(promise.name, *part, promise.of, place);
                let why = why.unwrap_or(LATE);
                let refusal = writer::Refusal {
                    text: why.to_owned(),
                    is_final: false,
                    // It may have been.
                    is_of_status: promise.of == Sort::GitOpsCluster,
                };
                (Outcome::Failed { retry_after: None }, Some(refusal), None)
            }
            Err(_) => {
                self.metrics.panicked(promise.name);
                error!(controller = promise.name, kind, %place, "panic during a write; retrying");
                (Outcome::Failed { retry_after: None }, None, None)
            }
        };
        queue.note_slow(place, is_slow);
        queue.done(&due, &outcome, now, fastrand::f64());
        let refusal = refusal.filter(|it| it.is_final || queue.is_failing(place));
        let Some(action) = action.filter(|_| matches!(outcome, Outcome::Written { .. })) else {
            if let Some(refusal) = refusal {
                self.note_refusal(lane, &due.place, Some((refusal, involved)));
            }
            return;
        };
        for telling in action.told(promise.name) {
            self.put(telling);
        }
        self.note_refusal(lane, &due.place, None);
    }

    /// Has an Event written.
    fn put(&mut self, telling: Telling) {
        let promise = telling.promise;
        if telling.event.warning {
            self.metrics.warned(promise, telling.event.reason);
        }
        if let Put::Dropped { first } = self.outbox.put(telling) {
            self.metrics.event_dropped(promise);
            if first {
                let most = Outbox::room();
                warn!(most, "too many Events wait to be written; dropping some");
            }
        }
    }

    /// Notes whether the last write for an object was refused. An Event says so when it is new; decisions see it in the index.
    fn note_refusal(&mut self, lane: usize, place: &Place, refusal: Option<(writer::Refusal, Involved)>) {
        let Lane { promise, part, .. } = self.lanes[lane];
        let known = self.index.refused_of_part(promise.name, part, promise.of, place);
        if known == refusal.as_ref().map(|(it, _)| it.text.as_str()) {
            return;
        }
        let noted = refusal.as_ref().map(|(it, of)| Refusal {
            why: it.text.as_str().into(),
            gitops: (of.resource.kind == GITOPS_CLUSTERS.kind && !it.is_of_status).then(|| of.place.clone()),
        });
        // An Event on an object that is gone is of no use. The hub's Argo CD is known by its namespace alone.
        if let Some((refusal, of)) = refusal.filter(|(_, of)| !of.uid.is_empty() || promise.of == Sort::ArgoCd) {
            self.put(Telling {
                promise: promise.name,
                of,
                event: Event {
                    warning: true,
                    reason: WRITE_REFUSED,
                    message: refusal.text,
                },
                lasts: false,
            });
        }
        let touched = Touched {
            sort: promise.of,
            place: place.clone(),
            noticed: Noticed::Nothing,
        };
        let touched = self.index.apply(Change::Refused(promise.name, part, touched, noted));
        self.touch(touched);
    }

    fn hear(&mut self, said: Said) {
        let kind = said.kind.resource().plural;
        self.metrics.received(kind, said.bytes);
        match said.what {
            What::Changed(change, age) => {
                if let Some(age) = age {
                    self.metrics.lagged(kind, age);
                }
                self.apply(said.kind, change);
                self.measure(said.kind);
            }
            What::Synced(change) => {
                if self.apply(said.kind, change) {
                    self.panics.remove(&said.kind);
                }
                self.measure(said.kind);
                debug!(kind, "all are known");
                self.is_synced(said.kind);
            }
            What::Unreadable(place, why) => {
                self.metrics.watch_failed(kind, Reason::Unreadable);
                warn!(kind, %place, %why, "cannot be understood, and stays as it was");
            }
            What::Panicked(place) => {
                self.metrics.panicked("index");
                error!(kind, %place, "panic while reading an object; keeping the last known state");
            }
            What::Failed(error) => {
                // What is not there need not be waited for.
                if said.kind.may_be_missing() && watches::is_not_there(&error) {
                    self.metrics.watch_failed(kind, Reason::Missing);
                    if self.missing.insert(said.kind) {
                        info!(kind, "the hub does not have them");
                    }
                    self.is_synced(said.kind);
                } else {
                    if said.kind.may_be_forbidden() && watches::is_forbidden(&error) {
                        self.is_synced(said.kind);
                    }
                    self.metrics.watch_failed(kind, watches::reason(&error));
                    warn!(
                        kind,
                        why = watches::told(&error),
                        "cannot be watched, and is tried again"
                    );
                }
            }
        }
    }

    /// Takes a change into the index. Returns false if that panicked: the kind is then listed again, later and later.
    fn apply(&mut self, kind: Kind, change: Change) -> bool {
        let object = change.object();
        if let Ok(touched) = guard(|| self.index.apply(change)) {
            self.touch(touched);
            return true;
        }
        self.metrics.panicked("index");
        let failures = self.panics.entry(kind).or_default();
        let [first, last] = RELIST;
        let delay = first.saturating_mul(2_u32.saturating_pow(*failures)).min(last);
        *failures = failures.saturating_add(1);
        let (kind_name, object) = (kind.resource().kind, object.unwrap_or_default());
        let seconds = delay.as_secs();
        error!(
            kind = kind_name,
            object, seconds, "panic while indexing an object; listing the kind again"
        );
        self.watches.begin(kind, delay);
        false
    }

    /// Looks at what has changed because time has passed.
    fn tick(&mut self) {
        let now = (self.clocks.time)();
        if let Ok(touched) = guard(|| self.index.tick(now)) {
            self.touch(touched);
            return;
        }
        self.metrics.panicked("index");
        error!("panic while the state of works was updated; retrying");
        self.no_flip_before = Some(later((self.clocks.elapsed)(), AFTER_PANIC));
    }

    fn is_synced(&mut self, kind: Kind) {
        if self.ready.synced(kind) {
            info!("ready: all there is on the hub is known");
        }
        let plural = kind.resource().plural;
        self.metrics.synced(plural, !self.ready.waits_for(plural));
    }

    fn touch(&mut self, touched: Vec<Touched>) {
        let now = (self.clocks.elapsed)();
        for touched in touched {
            let shard = shards::of(&touched.place, self.team.shards());
            let whose = self.index.share(touched.sort, &touched.place);
            let of_it = |lane: &&mut Lane| lane.shard == shard && lane.promise.of == touched.sort;
            for lane in self.lanes.iter_mut().filter(of_it) {
                lane.queue.touch(&touched.place, whose.clone(), touched.noticed, now);
            }
        }
    }

    /// Looks at what is due, lanes in turns, and starts to write what is not as it should be. Returns true if its budget is used up.
    fn start_writes(&mut self, held: Held) -> bool {
        let begun = (self.clocks.elapsed)();
        self.slots.age(begun);
        let mut looks = 0_u32;
        loop {
            let mut has_looked = false;
            for _ in 0..self.lanes.len() {
                let at = self.turn;
                self.turn = at.saturating_add(1).checked_rem(self.lanes.len()).unwrap_or_default();
                if !held.has(self.lanes[at].shard) || self.look(at, begun) == Look::Nothing {
                    continue;
                }
                has_looked = true;
                looks = looks.wrapping_add(1);
                if looks.is_multiple_of(STRIDE) && (self.clocks.elapsed)().saturating_duration_since(begun) >= BUDGET {
                    return true;
                }
            }
            if !has_looked {
                return false;
            }
        }
    }

    /// Looks at the next object of a lane, if its write may begin.
    fn look(&mut self, at: usize, now: Instant) -> Look {
        let Lane {
            promise,
            shard,
            group,
            queue,
            is_slow_next,
            ..
        } = &mut self.lanes[at];
        let (group, slots) = (*group, &self.slots);
        let may = |slow: &bool| queue.is_due(*slow, now) && slots.may(group, *slow);
        let lines: Vec<bool> = [*is_slow_next, !*is_slow_next].into_iter().filter(may).collect();
        if lines.is_empty() {
            return Look::Nothing;
        }
        let Some(ticket) = self.team.ticket(*shard) else {
            return Look::Nothing;
        };
        let may_tenant = |namespace: &Arc<str>| slots.may_tenant(group, namespace);
        let mut lines = lines.into_iter();
        let Some(due) = lines.find_map(|slow| queue.pop(slow, now, may_tenant, |share| slots.may_share(group, share)))
        else {
            return Look::Nothing;
        };
        *is_slow_next = !due.slow;
        self.metrics.reconciled(promise.name);
        let moment = Moment {
            now: (self.clocks.time)(),
            stale: due.stale,
            settings: &self.settings,
        };
        let Ok(decision) = guard(|| decide(promise, &self.index, &due.place, &moment)) else {
            self.metrics.panicked(promise.name);
            let (kind, place) = (promise.of.kind(), &due.place);
            error!(controller = promise.name, kind, %place, "panic while reconciling; retrying");
            queue.done(&due, &Outcome::Failed { retry_after: None }, now, fastrand::f64());
            return Look::Done;
        };
        let action = match decision {
            Decision::Write(action) => action,
            Decision::AsItShouldBe(again) => {
                queue.done(&due, &Outcome::AsItShouldBe, now, fastrand::f64());
                if let Some(wait) = again {
                    queue.later(&due.place, later(now, wait));
                }
                self.note_refusal(at, &due.place, None);
                return Look::Done;
            }
        };
        let (writer, name) = (self.writer.clone(), promise.name);
        let share = due.share.clone();
        let is_slow = due.slow;
        let involved = action.of.clone();
        let task = self.writes.spawn(async move {
            let done = writer.write(name, &action).await;
            drop(ticket);
            Done::Written(done, action)
        });
        self.slots
            .begin(task.id(), group, share, is_slow, (self.clocks.elapsed)());
        let running = Running {
            of: Some((at, due, involved)),
            task,
            is_given_up: false,
        };
        self.running.insert(running.task.id(), running);
        Look::Done
    }

    /// Gives up writes that are not answered, beyond the share that these have, where others wait for their slots.
    fn give_up_what_is_late(&mut self, held: Held) {
        let now = (self.clocks.elapsed)();
        let mut late = self.slots.overdue(now).peekable();
        if late.peek().is_none() {
            return;
        }
        let waits = |lane: &Lane| {
            held.has(lane.shard) && lane.queue.is_due(false, now) && self.team.ticket(lane.shard).is_some()
        };
        if !self.lanes.iter().any(waits) {
            return;
        }
        for id in late {
            // An Event is not tried again: it has its time.
            if let Some(running) = self.running.get_mut(&id).filter(|running| running.of.is_some()) {
                running.is_given_up = true;
                running.task.abort();
            }
        }
    }

    /// Starts to write the Events of what has been written: in the slots reserved for that, and, if nothing else is left to be
    /// written, in all others. Whoever writes by now: nobody else knows what was new.
    fn start_telling(&mut self, is_idle: bool) {
        let now = (self.clocks.elapsed)();
        let is_idle = is_idle
            && !self
                .lanes
                .iter()
                .any(|lane| lane.held.is_some() && lane.queue.is_due(false, now));
        while if is_idle {
            self.slots.may(self.events, false)
        } else {
            self.slots.may_reserved(self.events)
        } {
            let (slots, events) = (&self.slots, self.events);
            let Some((share, telling)) = self.outbox.pop(|namespace| slots.may_tenant(events, namespace)) else {
                break;
            };
            let writer = self.writer.clone();
            let task = self.writes.spawn(async move {
                writer.tell(&telling).await;
                Done::Told
            });
            self.slots.begin(task.id(), self.events, share, false, now);
            let running = Running {
                of: None,
                task,
                is_given_up: false,
            };
            self.running.insert(running.task.id(), running);
        }
    }

    /// When something becomes due. What is due already waits for a slot, and so for the end of a write.
    fn next(&self, held: Held) -> Option<Instant> {
        let now = (self.clocks.elapsed)();
        let lanes = self.lanes.iter().filter(|lane| held.has(lane.shard));
        let due = lanes.filter_map(|lane| lane.queue.next_after(now));
        due.chain(self.slots.next(now)).chain(self.sweep.next(now)).min()
    }

    /// When works next fare otherwise, by the stopwatch.
    fn next_flip(&self) -> Option<Instant> {
        let next = self.index.next()?;
        let wait = until(next, (self.clocks.time)());
        let at = later((self.clocks.elapsed)(), wait.min(NAP));
        Some(self.no_flip_before.map_or(at, |earliest| at.max(earliest)))
    }
}

/// What is decided of an object.
enum Decision {
    Write(Box<Action>),
    /// Nothing is to be written; it is looked at again after that time.
    AsItShouldBe(Option<Duration>),
}

fn decide(promise: &Promise, index: &Index, place: &Place, moment: &Moment<'_>) -> Decision {
    if let Some(action) = (promise.desired)(index, place, moment) {
        return Decision::Write(Box::new(action));
    }
    let again = (promise.again)(index, place, moment);
    Decision::AsItShouldBe(again.map(|at| until(at, moment.now).clamp(BLINK, LONG_NAP)))
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => future::pending().await,
    }
}
