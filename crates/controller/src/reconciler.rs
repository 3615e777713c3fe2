//! The event loop: applies watch events to the cache, reconciles the objects that are due, and starts writes.
//!
//! It shares its thread with the Leases, the probes and the writes in progress, and so yields after [`YIELD_AFTER`] of computing. A
//! panic while an object is reconciled or written is counted and logged, and the object is retried as after a failed write.

mod gauges;
#[cfg(test)]
mod tests;

use super::metrics::HubMetrics;
use super::watches::{Received, Watches, request_error};
use crate::controllers::MANAGER;
use crate::options::{Clocks, Options};
use futures::StreamExt;
use futures::future::OptionFuture;
use hub_state::{Cache, Change, Context, Controller, Kind, ReconcileRequest, Refusal, Settings, Update, mappers};
use kube::runtime::watcher::{self, Event as WatchEvent};
use kube::{Client, Error};
use ocm::resources::{APPLICATIONS, GITOPS_CLUSTERS};
use primitives::object_ref::ObjectRef;
use primitives::time_math::{later, until};
use runtime::action::{Action, Event, InvolvedObject, RecordedEvent};
use runtime::fair_queue::FlowKey;
use runtime::metrics::{Metrics, Reason};
use runtime::outbox::{CAPACITY, Enqueued, Outbox};
use runtime::panics::{Panicked, guard};
use runtime::plan::{Plan, Totals};
use runtime::queue::{DEBOUNCE, Due, Outcome, Queue, Refresh};
use runtime::readiness::Readiness;
use runtime::slots::Slots;
use runtime::writer::{WriteRefusal, WriteResult, Writer};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::future;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{self, AbortHandle, JoinError, JoinSet};
use tracing::{Instrument, debug, error, error_span, info, warn};

/// The time that writes in progress have to finish at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The time that Events wait for the writes that they do not report. Longer than a burst of thousands of changes, and short enough
/// that an Event is still news.
const EVENTS_HELD_FOR: Duration = Duration::from_secs(60);

/// The time without an answer after which Events no longer wait for the writes in progress: those hang.
const HANGS_AFTER: Duration = Duration::from_millis(500);

/// The maximum sleep while waiting for a wall clock time: the clock may be set meanwhile.
const MAX_CLOCK_SLEEP: Duration = Duration::from_secs(30);

/// The maximum sleep while waiting for a time that is days away.
const MAX_REQUEUE_DELAY: Duration = Duration::from_secs(3600);

/// The minimum sleep while waiting for a wall clock time.
const MIN_REQUEUE_DELAY: Duration = Duration::from_secs(10);

/// The computing time after which the loop yields to the Leases and the probes. A Lease is renewed every two seconds and lost
/// after ten.
const YIELD_AFTER: Duration = Duration::from_millis(10);

/// The delays before a kind is listed again after a change of it panicked: the first and the last.
const RELIST_BACKOFF: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(600)];

/// The pause of time-driven work after a panic.
const PANIC_BACKOFF: Duration = Duration::from_secs(60);

/// The time for which a leader counts as new. Longer than a take-over of thousands of objects.
const NEW_LEADER_FOR: Duration = Duration::from_secs(120);

/// The time without a due object after which a dry run has reconciled every object. It is longer than the delay of a change.
const IDLE_FOR: Duration = Duration::from_secs(1);

/// The reason of the Event on an object for which a write fails.
const WRITE_REFUSED: &str = "WriteRefused";

/// The message about an aborted write, for people.
const WRITE_TIMED_OUT: &str =
    "the API server does not answer in time: look for a slow or unresponsive admission webhook";

struct Running {
    /// The index of the workqueue, the object, and its writes; none for an Event.
    reconciled: Option<(usize, Due, Arc<Action>)>,
    task: AbortHandle,
    is_aborted: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EventSlots {
    None,
    Reserved,
    All,
}

struct Workqueue {
    controller: &'static Controller,
    /// The group of slots, shared with controllers of the same name.
    group: usize,
    queue: Queue,
    /// True if the objects whose last write was slow come first next time.
    is_slow_next: bool,
}

pub(super) struct Reconciler {
    watches: Watches,
    cache: Cache,
    /// The objects of the lists that are not complete yet.
    listed: BTreeMap<Kind, HashSet<ObjectRef>>,
    panics: BTreeMap<Kind, u32>,
    /// The kinds that the hub does not serve; each is logged once.
    missing: BTreeSet<Kind>,
    workqueues: Vec<Workqueue>,
    next_workqueue: usize,
    writes: JoinSet<WriteResult>,
    running: HashMap<task::Id, Running>,
    slots: Slots<task::Id>,
    /// The group of slots for Events.
    events: usize,
    outbox: Outbox,
    /// The time since which Events wait for other writes.
    events_held_since: Option<Instant>,
    /// The time of the last answer to a write other than an Event.
    last_answer: Option<Instant>,
    /// True if this replica leads. On standby, it enqueues nothing.
    is_leading: bool,
    /// The objects that are not visited yet by a new leader, or after a panic.
    unvisited: Vec<(Kind, ObjectRef)>,
    /// The earliest next update of what changes by time alone.
    ticks_paused_until: Option<Instant>,
    leads: watch::Receiver<bool>,
    /// Changes when the API server has an older state than before; none without an election, which notices it. All kinds are then
    /// listed again.
    pub(super) restores: Option<watch::Receiver<u64>>,
    /// The time since which this replica leads and has read everything; none while it may not write.
    writes_since: Option<Instant>,
    plan: Plan,
    logged_totals: BTreeMap<&'static str, Totals>,
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
            queue: Queue::new(controller.min_write_interval),
            is_slow_next: false,
        });
        for kind in options.needs() {
            metrics.synced(kind.resource().plural, false);
        }
        let mappers = mappers(options.controllers.iter().copied());
        let is_leading = *leads.borrow();
        let mut cache = Cache::new(&options.settings.argocd).with_mappers(mappers);
        cache.name_hub(options.settings.hub_cluster.as_deref());
        cache.serve_agents(options.settings.agents);
        if options.needs().contains(&Kind::Reports) {
            cache = cache.with_reports();
        }
        if names.contains(&application_status::CONTROLLER.name) {
            cache = cache.with_shared_objects();
        }
        Self {
            watches: Watches::new(client, &options.settings.argocd, &options.needs()),
            cache,
            listed: BTreeMap::new(),
            panics: BTreeMap::new(),
            missing: BTreeSet::new(),
            workqueues: workqueues.collect(),
            next_workqueue: 0,
            writes: JoinSet::new(),
            running: HashMap::new(),
            slots: Slots::new(options.concurrent_writes, names.len().saturating_add(1)),
            events: names.len(),
            outbox: Outbox::default(),
            events_held_since: None,
            last_answer: None,
            is_leading,
            unvisited: Vec::new(),
            ticks_paused_until: None,
            restores: None,
            writes_since: None,
            plan: Plan::default(),
            logged_totals: BTreeMap::new(),
            ready,
            writer: Writer::new(
                client.clone(),
                metrics.clone(),
                MANAGER,
                options.identity.clone(),
                options.dry_run,
                clocks.time,
                leads.clone(),
            ),
            leads,
            metrics,
            hub_metrics,
            settings: options.settings.clone(),
            clocks,
        }
    }

    /// Runs the loop until it is dropped. Writes in progress survive that, so that shutdown can await them.
    pub(super) async fn run(&mut self) {
        self.run_until(|_| false).await;
    }

    /// Runs the loop until everything on the hub has been reconciled once, and returns the writes of the dry run.
    pub(super) async fn run_once(&mut self) -> Plan {
        self.run_until(Self::is_idle).await;
        for kind in self.watches.kinds() {
            let objects = kind.object_refs(&mut self.cache).len();
            if objects > 0 {
                self.plan.set_read(kind.resource().kind, objects);
            }
        }
        mem::take(&mut self.plan)
    }

    /// Returns true if all caches are synced, no write is in progress, and no object is due soon.
    fn is_idle(&self) -> bool {
        let soon = later((self.clocks.elapsed)(), IDLE_FOR);
        let mut due = self
            .workqueues
            .iter()
            .filter_map(|workqueue| workqueue.queue.next_due());
        self.writes.is_empty() && self.ready.check().is_ok() && due.all(|at| at > soon)
    }

    fn log_totals(&mut self) {
        let totals = self.plan.totals();
        for (kind, now) in &totals {
            if self.logged_totals.get(kind) != Some(now) {
                let (created, updated, deleted) = (now.created, now.updated, now.deleted);
                info!(kind, created, updated, deleted, "total of the dry run");
            }
        }
        self.logged_totals = totals;
    }

    /// Runs the loop until this is true while no work is left.
    async fn run_until(&mut self, is_done: fn(&Self) -> bool) {
        let mut elected = true;
        let mut last_yield = (self.clocks.elapsed)();
        loop {
            let leads = *self.leads.borrow_and_update();
            self.follow_election(leads);
            let since = (self.clocks.elapsed)();
            let has_more_work = self.work(leads);
            if !has_more_work && self.writer.is_dry_run() && self.is_idle() {
                self.log_totals();
            }
            if !has_more_work && is_done(self) {
                return;
            }
            if has_more_work || self.has_computed_since(last_yield) {
                task::yield_now().await;
                last_yield = (self.clocks.elapsed)();
            }
            let sleep_until = |at: Instant| tokio::time::sleep_until(at.into());
            let next = self.next_wake_at(leads, since).map(sleep_until);
            let deadline = self.next_deadline().map(sleep_until);
            let restored = OptionFuture::from(self.restores.as_mut().map(watch::Receiver::changed));
            tokio::select! {
                event = self.watches.events.next() => match event {
                    Some((kind, event)) => self.handle(kind, event),
                    None => return,
                },
                Some(done) = self.writes.join_next_with_id(), if !self.writes.is_empty() => self.finish_write(done),
                changed = self.leads.changed(), if elected => elected = changed.is_ok(),
                () = future::ready(()), if has_more_work => {}
                Some(()) = OptionFuture::from(next) => {}
                Some(()) = OptionFuture::from(deadline) => self.tick(),
                Some(Ok(())) = restored => self.list_again(),
            }
        }
    }

    fn has_computed_since(&self, begun: Instant) -> bool {
        (self.clocks.elapsed)().saturating_duration_since(begun) >= YIELD_AFTER
    }

    /// Lists all kinds again. The watches would report nothing until the API server has as many changes as before, and decisions
    /// would use objects that it no longer has.
    fn list_again(&mut self) {
        warn!("the API server has an older state than before, as after a restore of etcd: listing all kinds again");
        for kind in self.watches.kinds() {
            let plural = kind.resource().plural;
            self.ready.wait_for(kind, plural);
            self.metrics.synced(plural, false);
            self.watches.begin(kind, Duration::ZERO);
        }
    }

    /// Lets a new leader reconcile every object once. All that it must know is on the hub, as after a restart.
    fn follow_election(&mut self, leads: bool) {
        if leads == self.is_leading {
            return;
        }
        self.is_leading = leads;
        self.unvisited.clear();
        for workqueue in &mut self.workqueues {
            workqueue.queue.clear();
        }
        if leads {
            self.cache.forget_refusals();
            for kind in self.watches.kinds() {
                self.visit(kind);
            }
        }
    }

    /// Adds all objects of a kind to those that are not visited yet.
    fn visit(&mut self, kind: Kind) {
        let object_refs = kind.object_refs(&mut self.cache).into_iter();
        self.unvisited.extend(object_refs.map(|object_ref| (kind, object_ref)));
    }

    /// Enqueues the dependents of the objects that are not visited yet. Returns true if its budget is used up.
    fn enqueue_unvisited(&mut self) -> bool {
        let begun = (self.clocks.elapsed)();
        while let Some((kind, object_ref)) = self.unvisited.pop() {
            if let Ok(affected) = guard(|| kind.affected_by(&self.cache, object_ref.clone())) {
                self.enqueue(affected);
            } else {
                self.metrics.panicked("index");
                let kind = kind.resource().kind;
                error!(kind, object = %object_ref, "panic while looking for the objects that depend on an object");
            }
            if self.has_computed_since(begun) {
                return true;
            }
        }
        false
    }

    /// Does all work that is due, within its budget. Returns true if work is left.
    fn work(&mut self, leads: bool) -> bool {
        self.record_work_metrics(leads);
        let is_ready = self.ready.check().is_ok();
        let is_visiting = self.enqueue_unvisited();
        let may_write = leads && is_ready && !is_visiting;
        let now = (self.clocks.elapsed)();
        self.writes_since = may_write.then(|| self.writes_since.unwrap_or(now));
        let has_more_work = is_visiting || may_write && self.start_writes();
        if may_write {
            self.abort_slow_writes();
        }
        let slots = self.event_slots(has_more_work);
        self.start_event_writes(slots);
        self.record_queue_metrics(now);
        has_more_work
    }

    /// Awaits the writes in progress, and records their Events.
    pub(super) async fn finish(&mut self) {
        let all = async {
            loop {
                self.start_event_writes(EventSlots::All);
                match self.writes.join_next_with_id().await {
                    Some(done) => self.finish_write(done),
                    None => return,
                }
            }
        };
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, all).await.is_err() {
            warn!("some writes did not finish before shutdown");
        }
    }

    fn finish_write(&mut self, done: Result<(task::Id, WriteResult), JoinError>) {
        let (id, done) = match done {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error)),
        };
        let now = (self.clocks.elapsed)();
        let is_answered = matches!(&done, Ok(result) if matches!(result.outcome, Outcome::Written { .. }));
        if is_answered {
            self.last_answer = Some(now);
        }
        let is_slow = self.slots.end(&id, is_answered, now);
        let Some(Running {
            reconciled, is_aborted, ..
        }) = self.running.remove(&id)
        else {
            return;
        };
        let Some((workqueue, due, action)) = reconciled else {
            if done.is_err() {
                self.metrics.panicked("events");
                error!("panic while writing an Event; the Event is lost");
            }
            return;
        };
        let Workqueue { controller, queue, .. } = &mut self.workqueues[workqueue];
        let (kind, object_ref) = (controller.kind.resource().kind, &due.object_ref);
        let (outcome, refusal) = match done {
            Ok(WriteResult { outcome, refusal }) => (outcome, refusal),
            Err(_) if is_aborted => {
                self.metrics.failed(controller.name, Reason::Timeout);
                warn!(controller = controller.name, kind, object = %object_ref, "slow write aborted because others wait; retrying");
                let object = (controller.name, controller.kind, object_ref.clone());
                let why = self
                    .cache
                    .refusals()
                    .of_part(&object, workqueue)
                    .unwrap_or(WRITE_TIMED_OUT);
                let refusal = WriteRefusal {
                    text: why.to_owned(),
                    is_final: false,
                    // The aborted write may have been one of the status.
                    is_of_status: controller.kind == Kind::GitOpsClusters,
                    kind: "",
                };
                let cause = Some((controller.kind.resource().kind, Reason::Timeout.name()));
                let outcome = Outcome::Failed {
                    retry_after: None,
                    cause,
                    is_waiting: false,
                };
                (outcome, Some(refusal))
            }
            Err(_) => {
                self.metrics.panicked(controller.name);
                error!(controller = controller.name, kind, object = %object_ref, "panic during a write; retrying");
                (Outcome::FAILED, None)
            }
        };
        queue.set_slow(object_ref, is_slow);
        queue.done(&due, &outcome, now, fastrand::f64());
        let refusal = refusal.filter(|refusal| refusal.is_final || queue.is_failing(object_ref));
        if !matches!(outcome, Outcome::Written { .. }) {
            if let Some(refusal) = refusal {
                let involved_object = action.involved_object.clone();
                self.record_refusal(workqueue, &due.object_ref, Some((refusal, involved_object)));
            }
            return;
        }
        if self.writer.is_dry_run() {
            self.plan.add(&action);
        }
        for recorded in Arc::unwrap_or_clone(action).recorded_events(controller.name) {
            self.put(recorded);
        }
        self.record_refusal(workqueue, &due.object_ref, None);
    }

    fn put(&mut self, recorded: RecordedEvent) {
        let controller = recorded.controller;
        if recorded.event.warning {
            self.metrics.warned(controller, recorded.event.reason);
        }
        if let Enqueued::Dropped { first } = self.outbox.put(recorded) {
            self.metrics.event_dropped(controller);
            if first {
                warn!(most = CAPACITY, "too many Events wait to be written; dropping some");
            }
        }
    }

    /// Records whether the last write for an object was refused. A new reason is recorded as an Event; controllers read it from
    /// the cache.
    fn record_refusal(
        &mut self,
        workqueue: usize,
        object_ref: &ObjectRef,
        refusal: Option<(WriteRefusal, InvolvedObject)>,
    ) {
        let controller = self.workqueues[workqueue].controller;
        let object = (controller.name, controller.kind, object_ref.clone());
        let known = self.cache.refusals().of_part(&object, workqueue);
        if known == refusal.as_ref().map(|(refusal, _)| refusal.text.as_str()) {
            return;
        }
        let noted = refusal.as_ref().map(|(refusal, involved_object)| {
            // The status of an Application is no subresource, but a field that is written with it.
            let is_of_status = refusal.is_of_status || refusal.kind == APPLICATIONS.kind;
            Refusal {
                why: refusal.text.as_str().into(),
                gitops: (involved_object.resource.kind == GITOPS_CLUSTERS.kind && !is_of_status)
                    .then(|| involved_object.object_ref.clone()),
                is_of_status,
            }
        });
        // An Event on a deleted object is of no use. The hub's Argo CD has no UID, only a namespace.
        if let Some((refusal, involved_object)) =
            refusal.filter(|(_, involved_object)| !involved_object.uid.is_empty() || controller.kind == Kind::Namespace)
        {
            self.put(RecordedEvent {
                controller: controller.name,
                involved_object,
                event: Event::warning(WRITE_REFUSED, refusal.text),
                is_persistent: false,
            });
        }
        let affected = ReconcileRequest {
            kind: controller.kind,
            object_ref: object_ref.clone(),
            refresh: Refresh::Unchanged,
        };
        let affected = self.cache.record_write(controller.name, workqueue, affected, noted);
        self.enqueue(affected);
    }

    fn handle(&mut self, kind: Kind, event: Result<WatchEvent<Received>, watcher::Error>) {
        let plural = kind.resource().plural;
        if let Ok(WatchEvent::InitApply(object) | WatchEvent::Apply(object) | WatchEvent::Delete(object)) = &event {
            self.metrics.received(plural, object.text.get().len());
        }
        match event {
            Ok(WatchEvent::Init) => {
                self.listed.remove(&kind);
            }
            Ok(WatchEvent::InitApply(object)) => {
                let object_ref = object.object_ref();
                self.listed.entry(kind).or_default().insert(object_ref.clone());
                self.update(kind, Update::Set(object_ref, object.text.get()));
            }
            Ok(WatchEvent::InitDone) => {
                let all = self.listed.remove(&kind).unwrap_or_default();
                if self.update(kind, Update::Listed(all)) && self.panics.remove(&kind).is_some() {
                    // The list changes nothing in the cache if the panic came after an object was stored.
                    self.visit(kind);
                }
                debug!(kind = plural, "initial list complete");
                self.mark_synced(kind);
            }
            Ok(WatchEvent::Apply(object)) => {
                if let Some(age) = object.age((self.clocks.time)()) {
                    self.metrics.lagged(plural, age);
                }
                self.update(kind, Update::Set(object.object_ref(), object.text.get()));
            }
            Ok(WatchEvent::Delete(object)) => {
                self.update(kind, Update::Deleted(object.object_ref()));
            }
            Err(error) => self.handle_failure(kind, request_error(error).as_ref()),
        }
        self.record_object_metrics(kind);
    }

    /// Reads an update, whose value is the JSON of an object, and applies it. Returns false if the cache keeps its last known state.
    fn update(&mut self, kind: Kind, update: Update<ObjectRef, &str>) -> bool {
        let plural = kind.resource().plural;
        let object_ref = match &update {
            Update::Set(object_ref, _) | Update::Deleted(object_ref) => Some(object_ref.clone()),
            Update::Listed(_) => None,
        };
        let object = object_ref.as_ref().map(ToString::to_string).unwrap_or_default();
        let now = (self.clocks.time)();
        match guard(|| kind.change(update, now)) {
            Ok(Ok(change)) => return self.apply(kind, &object, change),
            Ok(Err(why)) => {
                self.metrics.watch_failed(plural, Reason::Unreadable);
                warn!(kind = plural, %object, %why, "parse error; keeping the last known state");
                if let Some(work) = object_ref.filter(|_| kind == Kind::Works) {
                    self.apply(kind, &object, Change::unreadable_work(work, why.into()));
                }
            }
            Err(Panicked) => {
                self.metrics.panicked("index");
                error!(kind = plural, %object, "panic while reading an object; keeping the last known state");
            }
        }
        false
    }

    /// Records that a watch failed. The loop does not wait for a kind that the hub need not serve, or need not let it read.
    fn handle_failure(&mut self, kind: Kind, error: Option<&Error>) {
        let (watched, plural) = (kind.watched(), kind.resource().plural);
        let has_code = |code| matches!(error, Some(Error::Api(status)) if status.code == code);
        if watched.may_be_missing && has_code(404) {
            self.metrics.watch_failed(plural, Reason::Missing);
            if self.missing.insert(kind) {
                info!(kind = plural, "not served by the hub; continuing without it");
            }
            return self.mark_synced(kind);
        }
        let reason = error.map_or(Reason::Other, Reason::from_error);
        if watched.may_be_forbidden && has_code(403) {
            self.mark_synced(kind);
        }
        self.metrics.watch_failed(plural, reason);
        let foreign = || "the response does not come from a Kubernetes API".to_owned();
        let why = error.map_or_else(foreign, hub::reason);
        warn!(kind = plural, why, "watch failed; retrying");
    }

    /// Applies a change to the cache. Returns false if that panicked: the kind is then listed again, with growing delays.
    fn apply(&mut self, kind: Kind, object: &str, change: Change) -> bool {
        if let Ok(affected) = guard(|| self.cache.apply(change)) {
            self.enqueue(affected);
            return true;
        }
        self.metrics.panicked("index");
        let failures = self.panics.entry(kind).or_default();
        let [first, last] = RELIST_BACKOFF;
        let delay = first.saturating_mul(2_u32.saturating_pow(*failures)).min(last);
        *failures = failures.saturating_add(1);
        let (kind_name, seconds) = (kind.resource().kind, delay.as_secs());
        error!(
            kind = kind_name,
            object, seconds, "panic while indexing an object; listing the kind again"
        );
        self.watches.begin(kind, delay);
        false
    }

    /// Updates what changes by time alone: the health of works, and the certainty of selections.
    fn tick(&mut self) {
        let now = (self.clocks.time)();
        if let Ok(affected) = guard(|| self.cache.tick(now)) {
            self.enqueue(affected);
            return;
        }
        self.metrics.panicked("index");
        error!("panic while updating what changes by time alone; retrying");
        self.ticks_paused_until = Some(later((self.clocks.elapsed)(), PANIC_BACKOFF));
    }

    fn mark_synced(&mut self, kind: Kind) {
        if self.ready.synced(&kind) {
            info!("ready: caches are synced");
        }
        let plural = kind.resource().plural;
        self.metrics.synced(plural, !self.ready.waits_for(plural));
    }

    fn enqueue(&mut self, affected: Vec<ReconcileRequest>) {
        if !self.is_leading {
            return;
        }
        let now = (self.clocks.elapsed)();
        for affected in affected {
            let flow = self.cache.flow(affected.kind, &affected.object_ref);
            let of_it = |workqueue: &&mut Workqueue| workqueue.controller.kind == affected.kind;
            for workqueue in self.workqueues.iter_mut().filter(of_it) {
                workqueue
                    .queue
                    .enqueue(&affected.object_ref, flow.clone(), affected.refresh, now);
            }
        }
    }

    /// Reconciles objects that are due, workqueues in turn, and starts their writes. Returns true if its budget is used up.
    fn start_writes(&mut self) -> bool {
        let begun = (self.clocks.elapsed)();
        self.slots.age(begun);
        let (workqueues, mut idle) = (self.workqueues.len(), 0_usize);
        while idle < workqueues {
            let at = self.next_workqueue;
            self.next_workqueue = at.saturating_add(1).checked_rem(workqueues).unwrap_or_default();
            if !self.reconcile_next(at, begun) {
                idle = idle.saturating_add(1);
                continue;
            }
            idle = 0;
            if self.has_computed_since(begun) {
                return true;
            }
        }
        false
    }

    /// Reconciles the next object of a workqueue. Returns false if no object is due, or none whose write may begin.
    fn reconcile_next(&mut self, at: usize, now: Instant) -> bool {
        let Workqueue {
            controller,
            group,
            queue,
            is_slow_next,
            ..
        } = &mut self.workqueues[at];
        let (group, slots) = (*group, &self.slots);
        let may_tenant = |namespace: &Arc<str>| slots.may_begin_for_namespace(group, namespace);
        let may_flow = |flow: &FlowKey| slots.may_begin_for_flow(group, flow);
        let due = [*is_slow_next, !*is_slow_next].into_iter().find_map(|slow| {
            let may_begin = queue.is_due(slow, now) && slots.may_begin(group, slow);
            may_begin.then(|| queue.pop(slow, now, may_tenant, may_flow))?
        });
        let Some(due) = due else { return false };
        *is_slow_next = !due.slow;
        self.metrics.reconciled(controller.name);
        let written_for = now.saturating_duration_since(self.writes_since.unwrap_or(now));
        let context = Context {
            now: (self.clocks.time)(),
            stale: due.stale,
            new_leader_for: NEW_LEADER_FOR.checked_sub(written_for).filter(|left| !left.is_zero()),
            settings: &self.settings,
        };
        let (kind, object_ref) = (controller.kind.resource().kind, &due.object_ref);
        let span =
            error_span!("reconcile", controller = controller.name, kind, object = %object_ref, attempt = due.attempt);
        let decide = || match (controller.reconcile)(&self.cache, object_ref, &context) {
            Some(action) => Ok(Arc::new(action)),
            None => Err((controller.requeue_after)(&self.cache, object_ref, &context)),
        };
        let action = match span.in_scope(|| guard(decide)) {
            Ok(Ok(action)) => action,
            Ok(Err(requeue_at)) => {
                queue.done(&due, &Outcome::Unchanged, now, fastrand::f64());
                if let Some(at) = requeue_at {
                    let wait = until(at, context.now).clamp(MIN_REQUEUE_DELAY, MAX_REQUEUE_DELAY);
                    queue.later(&due.object_ref, later(now, wait));
                }
                self.record_refusal(at, &due.object_ref, None);
                return true;
            }
            Err(Panicked) => {
                self.metrics.panicked(controller.name);
                error!(controller = controller.name, kind, object = %object_ref, "panic while reconciling; retrying");
                queue.done(&due, &Outcome::FAILED, now, fastrand::f64());
                return true;
            }
        };
        let (writer, name, attempt) = (self.writer.clone(), controller.name, due.attempt);
        let flow = due.flow.clone();
        let is_slow = due.slow;
        let requested = Arc::clone(&action);
        let write = async move { writer.write(name, &requested, attempt).await };
        let task = self.writes.spawn(write.instrument(span));
        self.slots
            .begin(task.id(), group, flow, is_slow, (self.clocks.elapsed)());
        let running = Running {
            reconciled: Some((at, due, action)),
            task,
            is_aborted: false,
        };
        self.running.insert(running.task.id(), running);
        true
    }

    /// Aborts unanswered writes beyond the share of slow writes, if others wait for their slots.
    fn abort_slow_writes(&mut self) {
        let now = (self.clocks.elapsed)();
        let mut workqueues = self.workqueues.iter();
        if !workqueues.any(|workqueue| workqueue.queue.is_due(false, now)) {
            return;
        }
        for id in self.slots.overdue(now) {
            // Events are not retried, and so not aborted: they have the timeout of requests.
            if let Some(running) = self.running.get_mut(&id).filter(|running| running.reconciled.is_some()) {
                running.is_aborted = true;
                running.task.abort();
            }
        }
    }

    /// Returns the slots in which Events may be written now. They come after all other writes: an Event costs the API server as much
    /// as the conditions that it reports. Writes that hang do not hold them up, and nothing does for longer than
    /// [`EVENTS_HELD_FOR`].
    fn event_slots(&mut self, has_more_work: bool) -> EventSlots {
        if self.outbox.is_empty() {
            self.events_held_since = None;
            return EventSlots::All;
        }
        let now = (self.clocks.elapsed)();
        let waits = |by: Instant| {
            let mut workqueues = self.workqueues.iter();
            self.writes_since.is_some() && workqueues.any(|workqueue| workqueue.queue.is_due(false, by))
        };
        let is_answered = self.last_answer.is_some_and(|at| now < later(at, HANGS_AFTER));
        // Changes that wait for further changes of the same object count too.
        let has_others = has_more_work || self.slots.are_others_busy(self.events) || waits(later(now, DEBOUNCE));
        let slots = match has_others {
            true if is_answered => EventSlots::None,
            true => EventSlots::Reserved,
            false => EventSlots::All,
        };
        if slots != EventSlots::None {
            self.events_held_since = None;
            return slots;
        }
        let since = *self.events_held_since.get_or_insert(now);
        if now < later(since, EVENTS_HELD_FOR) {
            EventSlots::None
        } else {
            EventSlots::Reserved
        }
    }

    /// Starts to write the Events of finished writes. A replica that no longer leads does this too: no other replica knows what it
    /// wrote.
    fn start_event_writes(&mut self, slots: EventSlots) {
        let now = (self.clocks.elapsed)();
        while match slots {
            EventSlots::None => false,
            EventSlots::Reserved => self.slots.may_begin_reserved(self.events),
            EventSlots::All => self.slots.may_begin(self.events, false),
        } {
            let (slots, events) = (&self.slots, self.events);
            let Some((flow, recorded)) = self
                .outbox
                .pop(|namespace| slots.may_begin_for_namespace(events, namespace))
            else {
                break;
            };
            let writer = self.writer.clone();
            let task = self.writes.spawn(async move {
                writer.record_event(&recorded).await;
                WriteResult {
                    outcome: Outcome::Unchanged,
                    refusal: None,
                }
            });
            self.slots.begin(task.id(), self.events, flow, false, now);
            let running = Running {
                reconciled: None,
                task,
                is_aborted: false,
            };
            self.running.insert(running.task.id(), running);
        }
    }

    /// Returns when the next object becomes due after `since`, the time at which the last work began. Objects that were due
    /// before wait for a slot, and so for the end of a write. An object that became due during that work was missed by it,
    /// so the loop must wake at once.
    fn next_wake_at(&self, leads: bool, since: Instant) -> Option<Instant> {
        let workqueues = if leads { &self.workqueues[..] } else { &[] };
        let due = workqueues
            .iter()
            .filter_map(|workqueue| workqueue.queue.next_due_after(since));
        let held = self.events_held_since.is_some();
        let hangs = self
            .last_answer
            .filter(|_| held)
            .map(|answer| later(answer, HANGS_AFTER));
        due.chain(self.slots.next_slow_at(since))
            .chain(hangs.filter(|at| *at > since))
            .min()
    }

    /// Returns, on the monotonic clock, when something in the cache next changes by time alone.
    fn next_deadline(&self) -> Option<Instant> {
        let next = self.cache.next_deadline()?;
        let wait = until(next, (self.clocks.time)());
        let at = later((self.clocks.elapsed)(), wait.min(MAX_CLOCK_SLEEP));
        Some(self.ticks_paused_until.map_or(at, |earliest| at.max(earliest)))
    }
}
