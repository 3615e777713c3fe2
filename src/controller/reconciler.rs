//! The loop: takes in what the watches tell, looks at what is due, and starts to write what is not as it should be.

mod measure;

use super::action::{Action, Telling};
use super::index::{Index, Touched};
use super::metrics::{Metrics, Reason};
use super::promises::{Moment, Promise, Settings};
use super::queue::{Due, Outcome, Queue};
use super::readiness::Readiness;
use super::shards::{self, Held, Shards, Team};
use super::watches::{self, Kind, Said, What};
use super::writer::Writer;
use super::{Clocks, Options};
use futures::stream::{BoxStream, StreamExt};
use kube::Client;
use std::collections::{BTreeSet, VecDeque};
use std::future;
use std::panic;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tracing::{debug, info, warn};

/// How long writes under way have to come to their end when the controller is told to stop.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// How long to sleep at most where it is time that is waited for: a clock that was set must not be waited for.
const NAP: Duration = Duration::from_secs(30);

/// The same where what is waited for is days away.
const LONG_NAP: Duration = Duration::from_secs(3600);

/// How long to wait at least where it is time that is waited for.
const BLINK: Duration = Duration::from_secs(10);

/// How many Events wait to be told at most: an API server that takes none must not fill our memory.
const UNTOLD: usize = 10_000;

/// What has come to its end.
enum Done {
    Written {
        /// Of which of the lanes.
        lane: usize,
        due: Due,
        outcome: Outcome,
        action: Action,
    },
    Told,
}

/// What is to be looked at for a promise, of the objects of a shard.
struct Lane {
    promise: &'static Promise,
    shard: usize,
    queue: Queue,
    /// Since when this replica writes for it.
    held: Option<Instant>,
}

/// The state of the controller, and what it does with what happens.
pub(super) struct Reconciler {
    watches: BoxStream<'static, Said>,
    index: Index,
    /// What the hub does not have, which is said once.
    missing: BTreeSet<Kind>,
    lanes: Vec<Lane>,
    writes: JoinSet<Done>,
    /// What is to be told when nothing else is to be written.
    untold: VecDeque<Telling>,
    at_once: usize,
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
        let lanes = options.promises.iter().flat_map(|promise| {
            (0..shards.count()).map(|shard| Lane {
                promise,
                shard,
                queue: Queue::new(promise.pause),
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
            watches: watches::all(client, &options.settings.argocd, &options.needs(), clocks.time),
            index,
            missing: BTreeSet::new(),
            lanes: lanes.collect(),
            writes: JoinSet::new(),
            untold: VecDeque::new(),
            at_once: options.concurrent_writes,
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
        loop {
            let held = *self.held.borrow_and_update();
            self.measure_works(held);
            let held = if self.ready.check().is_ok() {
                held
            } else {
                Held::default()
            };
            self.start_writes(held);
            self.start_telling();
            self.measure_lanes(held);
            let next = self.next(held);
            let flip = self.next_flip();
            tokio::select! {
                said = self.watches.next() => match said {
                    Some(said) => self.hear(said),
                    None => return,
                },
                Some(done) = self.writes.join_next(), if !self.writes.is_empty() => self.note(done),
                changed = self.held.changed(), if elected => elected = changed.is_ok(),
                () = sleep_until(next) => {}
                () = sleep_until(flip) => {
                    let touched = self.index.tick((self.clocks.time)());
                    self.touch(touched);
                }
            }
        }
    }

    /// Lets the writes that are under way come to their end, and tells what was written.
    pub(super) async fn finish(&mut self) {
        let all = async {
            loop {
                self.start_telling();
                match self.writes.join_next().await {
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
    fn note(&mut self, done: Result<Done, JoinError>) {
        let (lane, due, outcome, action) = match done {
            Ok(Done::Written {
                lane,
                due,
                outcome,
                action,
            }) => (lane, due, outcome, action),
            Ok(Done::Told) => return,
            // A mistake of ours: who starts us again does better than we with what it has left behind.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => panic::resume_unwind(panic),
                Err(_) => return,
            },
        };
        let Lane { promise, queue, .. } = &mut self.lanes[lane];
        queue.done(&due, &outcome, (self.clocks.elapsed)(), fastrand::f64());
        if matches!(outcome, Outcome::Written { .. }) {
            let room = UNTOLD.saturating_sub(self.untold.len());
            self.untold.extend(action.told(promise.name).take(room));
        }
    }

    fn hear(&mut self, said: Said) {
        let kind = said.kind.resource().plural;
        self.metrics.received(kind, said.bytes);
        match said.what {
            What::Changed(change, age) => {
                if let Some(age) = age {
                    self.metrics.lagged(kind, age);
                }
                let touched = self.index.apply(change);
                self.touch(touched);
                self.measure(said.kind);
            }
            What::Synced(change) => {
                let touched = self.index.apply(change);
                self.touch(touched);
                self.measure(said.kind);
                debug!(kind, "all are known");
                self.is_synced(said.kind);
            }
            What::Unreadable(place, why) => {
                self.metrics.watch_failed(kind, Reason::Unreadable);
                warn!(kind, %place, %why, "cannot be understood, and stays as it was");
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
            let of_it = |lane: &&mut Lane| lane.shard == shard && lane.promise.of == touched.sort;
            for lane in self.lanes.iter_mut().filter(of_it) {
                lane.queue.touch(&touched.place, touched.noticed, now);
            }
        }
    }

    /// Looks at what is due, and starts to write what is not as it should be.
    fn start_writes(&mut self, held: Held) {
        let now = (self.clocks.elapsed)();
        let lanes = self.lanes.iter_mut().enumerate();
        for (at, lane) in lanes.filter(|(_, lane)| held.has(lane.shard)) {
            let Lane {
                promise, shard, queue, ..
            } = lane;
            while self.writes.len() < self.at_once {
                let Some(ticket) = self.team.ticket(*shard) else { break };
                let Some(due) = queue.pop(now) else { break };
                self.metrics.reconciled(promise.name);
                let moment = Moment {
                    now: (self.clocks.time)(),
                    stale: due.stale,
                    settings: &self.settings,
                };
                let Some(action) = (promise.desired)(&self.index, &due.place, &moment) else {
                    queue.done(&due, &Outcome::AsItShouldBe, now, fastrand::f64());
                    if let Some(at) = (promise.again)(&self.index, &due.place, &moment) {
                        let wait = Duration::try_from(at.duration_since(moment.now)).unwrap_or_default();
                        queue.later(&due.place, now + wait.clamp(BLINK, LONG_NAP));
                    }
                    continue;
                };
                let (writer, name) = (self.writer.clone(), promise.name);
                self.writes.spawn(async move {
                    let outcome = writer.write(name, &action).await;
                    drop(ticket);
                    Done::Written {
                        lane: at,
                        due,
                        outcome,
                        action,
                    }
                });
            }
        }
    }

    /// Starts to tell what has been written, where nothing is left to be written first. Whoever writes by now: nobody else knows
    /// what was new.
    fn start_telling(&mut self) {
        while self.writes.len() < self.at_once {
            let Some(telling) = self.untold.pop_front() else { break };
            let writer = self.writer.clone();
            self.writes.spawn(async move {
                writer.tell(&telling).await;
                Done::Told
            });
        }
    }

    /// When something is due.
    fn next(&self, held: Held) -> Option<Instant> {
        if self.writes.len() >= self.at_once {
            return None;
        }
        let lanes = self.lanes.iter().filter(|lane| held.has(lane.shard));
        lanes.filter_map(|lane| lane.queue.next()).min()
    }

    /// When works next fare otherwise, by the stopwatch.
    fn next_flip(&self) -> Option<Instant> {
        let next = self.index.next()?;
        let wait = Duration::try_from(next.duration_since((self.clocks.time)())).unwrap_or_default();
        Some((self.clocks.elapsed)() + wait.min(NAP))
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => future::pending().await,
    }
}
