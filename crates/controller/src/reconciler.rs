//! The event loop: applies watch events to the cache, reconciles the objects that are due, and starts writes.
//!
//! It shares its thread with the Leases, the probes and the writes in progress, and so yields after [`BUDGET`] of computing. A
//! panic while an object is reconciled or written is counted and logged, and the object is retried as after a failed write.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod measure;
mod standby;
#[cfg(test)]
mod tests;

use super::metrics::HubMetrics;
use super::watches::{self, Kind, WatchEvent, WatchUpdate, Watches};
use super::{Clocks, Options};
use crate::cache::{Cache, Change, ReconcileKind, ReconcileRequest, Refusal};
use crate::reconcile::{Context, Controller, Settings, mappers};
use crate::runtime::action::{Action, Event, Involved, RecordedEvent};
use crate::runtime::metrics::{Metrics, Reason};
use crate::runtime::outbox::{Outbox, Put};
use crate::runtime::panics::guard;
use crate::runtime::queue::{Due, Outcome, Queue, Refresh};
use crate::runtime::readiness::Readiness;
use crate::runtime::slots::Slots;
use crate::runtime::writer;
use crate::runtime::writer::Writer;
use kube::Client;
use ocm::object_ref::ObjectRef;
use ocm::resources::GITOPS_CLUSTERS;
use ocm::time_math::{later, until};
use standby::Sweep;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tracing::{Instrument, debug, error, error_span, info, warn};

/// The time that writes in progress have to finish at shutdown.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// The maximum sleep while waiting for a wall clock time: the clock may be set meanwhile.
const NAP: Duration = Duration::from_secs(30);

/// The maximum sleep while waiting for a time that is days away.
const LONG_NAP: Duration = Duration::from_secs(3600);

/// The minimum sleep while waiting for a wall clock time.
const BLINK: Duration = Duration::from_secs(10);

/// The computing time after which the loop yields to the Leases and the probes. A Lease is renewed every two seconds and lost
/// after ten.
const BUDGET: Duration = Duration::from_millis(10);

/// The number of objects that are reconciled between two readings of the clock.
const STRIDE: u32 = 16;

/// The delays before a kind is listed again after a change of it panicked: the first and the last.
const RELIST: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(600)];

/// The pause of time-driven work after a panic.
const AFTER_PANIC: Duration = Duration::from_secs(60);

/// The reason of the Event on an object for which a write fails.
const WRITE_REFUSED: &str = "WriteRefused";

/// The message about an aborted write, for people.
const LATE: &str = "the API server does not answer in time: look for a slow or unresponsive admission webhook";

/// A finished task.
enum Done {
    Written(writer::Done, Box<Action>),
    Told,
}

/// A write in progress.
struct Running {
    /// The index of the workqueue, the object, and the object on which Events are recorded; none for an Event.
    of: Option<(usize, Due, Involved)>,
    task: AbortHandle,
    /// True if the write was aborted.
    is_given_up: bool,
}

/// The result of an attempt to reconcile the next object.
#[derive(PartialEq, Eq)]
enum Look {
    /// No object is due, or none whose write may begin.
    Nothing,
    /// An object was reconciled.
    Done,
}

/// A workqueue and its controller.
struct Workqueue {
    controller: &'static Controller,
    /// The group of slots, shared with controllers of the same name.
    group: usize,
    queue: Queue,
    /// True if the objects whose last write was slow come first next time.
    is_slow_next: bool,
}

/// The state of the event loop.
pub(super) struct Reconciler {
    watches: Watches,
    cache: Cache,
    /// Consecutive panics in the cache, by kind.
    panics: BTreeMap<Kind, u32>,
    /// The kinds that the hub does not serve; each is logged once.
    missing: BTreeSet<Kind>,
    workqueues: Vec<Workqueue>,
    /// The index of the workqueue that has the next turn.
    turn: usize,
    writes: JoinSet<Done>,
    running: HashMap<task::Id, Running>,
    slots: Slots<task::Id>,
    /// The group of slots for Events.
    events: usize,
    outbox: Outbox,
    sweep: Sweep,
    /// The earliest next update of health by time alone.
    no_flip_before: Option<Instant>,
    leads: watch::Receiver<bool>,
    /// The time since which this replica leads.
    leads_since: Option<Instant>,
    ready: Arc<Readiness<Kind>>,
    metrics: Metrics,
    hub_metrics: HubMetrics,
    writer: Writer,
    settings: Settings,
    clocks: Clocks,
}

impl Reconciler {
    pub(super) fn new(
        options: &Options,
        client: &Client,
        leads: watch::Receiver<bool>,
        ready: Arc<Readiness<Kind>>,
        (metrics, hub_metrics): (Metrics, HubMetrics),
        clocks: Clocks,
    ) -> Self {
        let mut names: Vec<_> = options.controllers.iter().map(|controller| controller.name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names.iter().copied().chain(["index", "events"]) {
            metrics.expect(name);
        }
        let workqueues = options.controllers.iter().map(|controller| Workqueue {
            controller,
            group: names.binary_search(&controller.name).unwrap_or_default(),
            queue: Queue::new(controller.pause),
            is_slow_next: false,
        });
        for kind in options.needs() {
            metrics.synced(kind.resource().plural, false);
        }
        let mappers = mappers(options.controllers.iter().copied());
        let mut cache = Cache::new(&options.settings.argocd).with_mappers(mappers);
        if options.needs().contains(&Kind::Reports) {
            cache = cache.with_reports();
        }
        Self {
            watches: Watches::new(client, &options.settings.argocd, &options.needs(), clocks.time),
            cache,
            panics: BTreeMap::new(),
            missing: BTreeSet::new(),
            workqueues: workqueues.collect(),
            turn: 0,
            writes: JoinSet::new(),
            running: HashMap::new(),
            slots: Slots::new(options.concurrent_writes, names.len().saturating_add(1)),
            events: names.len(),
            outbox: Outbox::default(),
            sweep: Sweep::default(),
            no_flip_before: None,
            leads,
            leads_since: None,
            ready,
            writer: Writer::new(
                client.clone(),
                metrics.clone(),
                options.identity.clone(),
                options.dry_run,
                clocks.time,
            ),
            metrics,
            hub_metrics,
            settings: options.settings.clone(),
            clocks,
        }
    }

    /// Runs the loop until it is dropped. Writes in progress survive that, so that shutdown can await them.
    pub(super) async fn run(&mut self) {
        let mut elected = true;
        let mut rested = (self.clocks.elapsed)();
        loop {
            let leads = *self.leads.borrow_and_update();
            let since = (self.clocks.elapsed)();
            let is_more = self.work(leads);
            if is_more || (self.clocks.elapsed)().saturating_duration_since(rested) >= BUDGET {
                task::yield_now().await;
                rested = (self.clocks.elapsed)();
            }
            let next = self.next(leads, since);
            let flip = self.next_flip();
            tokio::select! {
                said = self.watches.next() => match said {
                    Some(said) => self.handle(said),
                    None => return,
                },
                Some(done) = self.writes.join_next_with_id(), if !self.writes.is_empty() => self.note(done),
                changed = self.leads.changed(), if elected => elected = changed.is_ok(),
                () = future::ready(()), if is_more => {}
                () = sleep_until(next) => {}
                () = sleep_until(flip) => self.tick(),
            }
        }
    }

    /// Does all work that is due, within its budget. Returns true if work is left.
    fn work(&mut self, leads: bool) -> bool {
        self.measure_works(leads);
        let is_ready = self.ready.check().is_ok();
        let may_write = leads && is_ready;
        let mut is_more = may_write && self.start_writes();
        if may_write {
            self.give_up_what_is_late();
        }
        self.start_telling(!is_more);
        is_more |= !leads && is_ready && self.sweep_standby();
        self.measure_lanes(may_write);
        is_more
    }

    /// Awaits the writes in progress, and records their Events.
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
            warn!("some writes did not finish before shutdown");
        }
    }

    /// Records the result of a write.
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
        let Some((workqueue, due, involved)) = of else {
            if done.is_err() {
                self.metrics.panicked("events");
                error!("panic while writing an Event; the Event is lost");
            }
            return;
        };
        let Workqueue { controller, queue, .. } = &mut self.workqueues[workqueue];
        let (kind, place) = (controller.kind.kind(), &due.place);
        let (outcome, refusal, action) = match done {
            Ok(Done::Written(it, action)) => (it.outcome, it.refusal, Some(action)),
            Ok(Done::Told) => return,
            Err(_) if is_given_up => {
                self.metrics.failed(controller.name, Reason::Timeout);
                warn!(controller = controller.name, kind, %place, "slow write aborted because others wait; retrying");
                let why = self
                    .cache
                    .refused_of_part(controller.name, workqueue, controller.kind, place);
                let why = why.unwrap_or(LATE);
                let refusal = writer::Refusal {
                    text: why.to_owned(),
                    is_final: false,
                    // The aborted write may have been one of the status.
                    is_of_status: controller.kind == ReconcileKind::GitOpsCluster,
                };
                (Outcome::Failed { retry_after: None }, Some(refusal), None)
            }
            Err(_) => {
                self.metrics.panicked(controller.name);
                error!(controller = controller.name, kind, %place, "panic during a write; retrying");
                (Outcome::Failed { retry_after: None }, None, None)
            }
        };
        queue.note_slow(place, is_slow);
        queue.done(&due, &outcome, now, fastrand::f64());
        let refusal = refusal.filter(|it| it.is_final || queue.is_failing(place));
        let Some(action) = action.filter(|_| matches!(outcome, Outcome::Written { .. })) else {
            if let Some(refusal) = refusal {
                self.note_refusal(workqueue, &due.place, Some((refusal, involved)));
            }
            return;
        };
        for recorded in action.told(controller.name) {
            self.put(recorded);
        }
        self.note_refusal(workqueue, &due.place, None);
    }

    /// Adds an Event to the outbox.
    fn put(&mut self, recorded: RecordedEvent) {
        let controller = recorded.controller;
        if recorded.event.warning {
            self.metrics.warned(controller, recorded.event.reason);
        }
        if let Put::Dropped { first } = self.outbox.put(recorded) {
            self.metrics.event_dropped(controller);
            if first {
                let most = Outbox::room();
                warn!(most, "too many Events wait to be written; dropping some");
            }
        }
    }

    /// Records whether the last write for an object was refused. A new reason is recorded as an Event; controllers read it from
    /// the cache.
    fn note_refusal(&mut self, workqueue: usize, place: &ObjectRef, refusal: Option<(writer::Refusal, Involved)>) {
        let controller = self.workqueues[workqueue].controller;
        let known = self
            .cache
            .refused_of_part(controller.name, workqueue, controller.kind, place);
        if known == refusal.as_ref().map(|(it, _)| it.text.as_str()) {
            return;
        }
        let noted = refusal.as_ref().map(|(it, of)| Refusal {
            why: it.text.as_str().into(),
            gitops: (of.resource.kind == GITOPS_CLUSTERS.kind && !it.is_of_status).then(|| of.place.clone()),
        });
        // An Event on a deleted object is of no use. The hub's Argo CD has no UID, only a namespace.
        if let Some((refusal, of)) =
            refusal.filter(|(_, of)| !of.uid.is_empty() || controller.kind == ReconcileKind::ArgoCd)
        {
            self.put(RecordedEvent {
                controller: controller.name,
                of,
                event: Event {
                    warning: true,
                    reason: WRITE_REFUSED,
                    message: refusal.text,
                },
                lasts: false,
            });
        }
        let affected = ReconcileRequest {
            sort: controller.kind,
            place: place.clone(),
            refresh: Refresh::Unchanged,
        };
        let affected = self
            .cache
            .apply(Change::Refused(controller.name, workqueue, affected, noted));
        self.touch(affected);
    }

    fn handle(&mut self, said: WatchEvent) {
        let kind = said.kind.resource().plural;
        self.metrics.received(kind, said.bytes);
        match said.what {
            WatchUpdate::Changed(change, age) => {
                if let Some(age) = age {
                    self.metrics.lagged(kind, age);
                }
                self.apply(said.kind, change);
                self.measure(said.kind);
            }
            WatchUpdate::Synced(change) => {
                if self.apply(said.kind, change) {
                    self.panics.remove(&said.kind);
                }
                self.measure(said.kind);
                debug!(kind, "initial list complete");
                self.is_synced(said.kind);
            }
            WatchUpdate::Unreadable(place, why) => {
                self.metrics.watch_failed(kind, Reason::Unreadable);
                warn!(kind, %place, %why, "parse error; keeping the last known state");
            }
            WatchUpdate::Panicked(place) => {
                self.metrics.panicked("index");
                error!(kind, %place, "panic while reading an object; keeping the last known state");
            }
            WatchUpdate::Failed(error) => {
                // The loop does not wait for a kind that the hub does not serve.
                if said.kind.may_be_missing() && watches::is_not_there(&error) {
                    self.metrics.watch_failed(kind, Reason::Missing);
                    if self.missing.insert(said.kind) {
                        info!(kind, "not served by the hub; continuing without it");
                    }
                    self.is_synced(said.kind);
                } else {
                    if said.kind.may_be_forbidden() && watches::is_forbidden(&error) {
                        self.is_synced(said.kind);
                    }
                    self.metrics.watch_failed(kind, watches::reason(&error));
                    warn!(kind, why = watches::told(&error), "watch failed; retrying");
                }
            }
        }
    }

    /// Applies a change to the cache. Returns false if that panicked: the kind is then listed again, with growing delays.
    fn apply(&mut self, kind: Kind, change: Change) -> bool {
        let object = change.object();
        if let Ok(affected) = guard(|| self.cache.apply(change)) {
            self.touch(affected);
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

    /// Updates the health that changes by time alone.
    fn tick(&mut self) {
        let now = (self.clocks.time)();
        if let Ok(affected) = guard(|| self.cache.tick(now)) {
            self.touch(affected);
            return;
        }
        self.metrics.panicked("index");
        error!("panic while updating the health of works; retrying");
        self.no_flip_before = Some(later((self.clocks.elapsed)(), AFTER_PANIC));
    }

    fn is_synced(&mut self, kind: Kind) {
        if self.ready.synced(&kind) {
            info!("ready: caches are synced");
        }
        let plural = kind.resource().plural;
        self.metrics.synced(plural, !self.ready.waits_for(plural));
    }

    fn touch(&mut self, affected: Vec<ReconcileRequest>) {
        let now = (self.clocks.elapsed)();
        for affected in affected {
            let whose = self.cache.share(affected.sort, &affected.place);
            let of_it = |workqueue: &&mut Workqueue| workqueue.controller.kind == affected.sort;
            for workqueue in self.workqueues.iter_mut().filter(of_it) {
                workqueue
                    .queue
                    .touch(&affected.place, whose.clone(), affected.refresh, now);
            }
        }
    }

    /// Reconciles objects that are due, workqueues in turn, and starts their writes. Returns true if its budget is used up.
    fn start_writes(&mut self) -> bool {
        let begun = (self.clocks.elapsed)();
        self.slots.age(begun);
        let mut looks = 0_u32;
        loop {
            let mut has_looked = false;
            for _ in 0..self.workqueues.len() {
                let at = self.turn;
                self.turn = at
                    .saturating_add(1)
                    .checked_rem(self.workqueues.len())
                    .unwrap_or_default();
                if self.look(at, begun) == Look::Nothing {
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

    /// Reconciles the next object of a workqueue, if its write may begin.
    fn look(&mut self, at: usize, now: Instant) -> Look {
        let Workqueue {
            controller,
            group,
            queue,
            is_slow_next,
            ..
        } = &mut self.workqueues[at];
        let (group, slots) = (*group, &self.slots);
        let may = |slow: &bool| queue.is_due(*slow, now) && slots.may(group, *slow);
        let lines: Vec<bool> = [*is_slow_next, !*is_slow_next].into_iter().filter(may).collect();
        if lines.is_empty() {
            return Look::Nothing;
        }
        let may_tenant = |namespace: &Arc<str>| slots.may_tenant(group, namespace);
        let mut lines = lines.into_iter();
        let Some(due) = lines.find_map(|slow| queue.pop(slow, now, may_tenant, |share| slots.may_share(group, share)))
        else {
            return Look::Nothing;
        };
        *is_slow_next = !due.slow;
        self.metrics.reconciled(controller.name);
        let context = Context {
            now: (self.clocks.time)(),
            stale: due.stale,
            settings: &self.settings,
        };
        let (kind, place) = (controller.kind.kind(), &due.place);
        let span = error_span!("reconcile", controller = controller.name, kind, object = %place, attempt = due.attempt);
        let decision = span.in_scope(|| guard(|| decide(controller, &self.cache, place, &context)));
        let Ok(decision) = decision else {
            self.metrics.panicked(controller.name);
            error!(controller = controller.name, kind, %place, "panic while reconciling; retrying");
            queue.done(&due, &Outcome::Failed { retry_after: None }, now, fastrand::f64());
            return Look::Done;
        };
        let action = match decision {
            Decision::Write(action) => action,
            Decision::AsItShouldBe(requeue_after) => {
                queue.done(&due, &Outcome::AsItShouldBe, now, fastrand::f64());
                if let Some(wait) = requeue_after {
                    queue.later(&due.place, later(now, wait));
                }
                self.note_refusal(at, &due.place, None);
                return Look::Done;
            }
        };
        let (writer, name) = (self.writer.clone(), controller.name);
        let share = due.share.clone();
        let is_slow = due.slow;
        let involved = action.of.clone();
        let write = async move {
            let done = writer.write(name, &action).await;
            Done::Written(done, action)
        };
        let task = self.writes.spawn(write.instrument(span));
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

    /// Aborts unanswered writes beyond the share of slow writes, if others wait for their slots.
    fn give_up_what_is_late(&mut self) {
        let now = (self.clocks.elapsed)();
        let mut late = self.slots.overdue(now).peekable();
        if late.peek().is_none() {
            return;
        }
        if !self
            .workqueues
            .iter()
            .any(|workqueue| workqueue.queue.is_due(false, now))
        {
            return;
        }
        for id in late {
            // Events are not retried, and so not aborted: they have the timeout of requests.
            if let Some(running) = self.running.get_mut(&id).filter(|running| running.of.is_some()) {
                running.is_given_up = true;
                running.task.abort();
            }
        }
    }

    /// Starts to write the Events of finished writes: in the slots reserved for Events and, if no other writes wait, in all
    /// slots. A replica that no longer leads does this too: no other replica knows what it wrote.
    fn start_telling(&mut self, is_idle: bool) {
        let now = (self.clocks.elapsed)();
        let is_idle = is_idle
            && !(self.leads_since.is_some()
                && self
                    .workqueues
                    .iter()
                    .any(|workqueue| workqueue.queue.is_due(false, now)));
        while if is_idle {
            self.slots.may(self.events, false)
        } else {
            self.slots.may_reserved(self.events)
        } {
            let (slots, events) = (&self.slots, self.events);
            let Some((share, recorded)) = self.outbox.pop(|namespace| slots.may_tenant(events, namespace)) else {
                break;
            };
            let writer = self.writer.clone();
            let task = self.writes.spawn(async move {
                writer.tell(&recorded).await;
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

    /// Returns when the next object becomes due after `since`, the time at which the last work began. Objects that were due
    /// before wait for a slot, and so for the end of a write. An object that became due since then may be in the past: it was too
    /// late for that work, and nothing else would wake the loop for it.
    fn next(&self, leads: bool, since: Instant) -> Option<Instant> {
        let workqueues = if leads { &self.workqueues[..] } else { &[] };
        let due = workqueues
            .iter()
            .filter_map(|workqueue| workqueue.queue.next_after(since));
        due.chain(self.slots.next(since)).chain(self.sweep.next(since)).min()
    }

    /// Returns, on the monotonic clock, when the health of a work next changes by time alone.
    fn next_flip(&self) -> Option<Instant> {
        let next = self.cache.next()?;
        let wait = until(next, (self.clocks.time)());
        let at = later((self.clocks.elapsed)(), wait.min(NAP));
        Some(self.no_flip_before.map_or(at, |earliest| at.max(earliest)))
    }
}

/// The result of reconciling an object.
enum Decision {
    Write(Box<Action>),
    /// No write is necessary; the object is reconciled again after that time.
    AsItShouldBe(Option<Duration>),
}

fn decide(controller: &Controller, cache: &Cache, place: &ObjectRef, context: &Context<'_>) -> Decision {
    if let Some(action) = (controller.reconcile)(cache, place, context) {
        return Decision::Write(Box::new(action));
    }
    let requeue_after = (controller.requeue_after)(cache, place, context);
    Decision::AsItShouldBe(requeue_after.map(|at| until(at, context.now).clamp(BLINK, LONG_NAP)))
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => future::pending().await,
    }
}
