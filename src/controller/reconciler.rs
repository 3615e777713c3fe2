//! The loop: takes in what the watches tell, looks at what is due, and starts to write what is not as it should be.

use super::action::{Action, Telling};
use super::index::{Index, Touched};
use super::metrics::{Metrics, Reason};
use super::promises::{Moment, Promise, Settings};
use super::queue::{Due, Outcome, Queue};
use super::readiness::Readiness;
use super::watches::{self, Kind, Said, What};
use super::writer::Writer;
use super::{Clocks, Options};
use crate::status::Verdict;
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
        /// Which of the promises.
        promise: usize,
        due: Due,
        outcome: Outcome,
        action: Action,
    },
    Told,
}

/// The state of the controller, and what it does with what happens.
pub(super) struct Reconciler {
    watches: BoxStream<'static, Said>,
    index: Index,
    /// What the hub does not have, which is said once.
    missing: BTreeSet<Kind>,
    queues: Vec<(&'static Promise, Queue)>,
    writes: JoinSet<Done>,
    /// What is to be told when nothing else is to be written.
    untold: VecDeque<Telling>,
    at_once: usize,
    leader: watch::Receiver<bool>,
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
        leader: watch::Receiver<bool>,
        ready: Arc<Readiness>,
        metrics: Metrics,
        clocks: Clocks,
    ) -> Self {
        let promises = options.promises.iter();
        let mut index = Index::new(&options.settings.argocd);
        if options.needs().contains(&Kind::Reports) {
            index = index.with_reports();
        }
        Self {
            watches: watches::all(client, &options.settings.argocd, &options.needs(), clocks.time),
            index,
            missing: BTreeSet::new(),
            queues: promises.map(|promise| (*promise, Queue::new(promise.pause))).collect(),
            writes: JoinSet::new(),
            untold: VecDeque::new(),
            at_once: options.concurrent_writes,
            leader,
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
            let leads = *self.leader.borrow_and_update();
            self.metrics.leading(leads);
            for verdict in Verdict::ALL {
                self.metrics.works(verdict, self.index.count(verdict));
            }
            let works = leads && self.ready.check().is_ok();
            if works {
                self.start_writes();
            }
            self.start_telling();
            let next = works.then(|| self.next()).flatten();
            let flip = self.next_flip();
            tokio::select! {
                said = self.watches.next() => match said {
                    Some(said) => self.hear(said),
                    None => return,
                },
                Some(done) = self.writes.join_next(), if !self.writes.is_empty() => self.note(done),
                changed = self.leader.changed(), if elected => elected = changed.is_ok(),
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
        let (promise, due, outcome, action) = match done {
            Ok(Done::Written {
                promise,
                due,
                outcome,
                action,
            }) => (promise, due, outcome, action),
            Ok(Done::Told) => return,
            // A mistake of ours: who starts us again does better than we with what it has left behind.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => panic::resume_unwind(panic),
                Err(_) => return,
            },
        };
        let (name, queue) = (self.queues[promise].0.name, &mut self.queues[promise].1);
        queue.done(&due, &outcome, (self.clocks.elapsed)(), fastrand::f64());
        if matches!(outcome, Outcome::Written { .. }) {
            let room = UNTOLD.saturating_sub(self.untold.len());
            self.untold.extend(action.told(name).take(room));
        }
    }

    fn hear(&mut self, said: Said) {
        let kind = said.kind.resource().plural;
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
                self.metrics.watch_failed(kind, Reason::Other);
                warn!(kind, %place, %why, "cannot be understood, and stays as it was");
            }
            What::Failed(error) => {
                let why = watches::reason(&error);
                self.metrics.watch_failed(kind, why);
                // What is not there need not be waited for.
                if said.kind.may_be_missing() && watches::is_not_there(&error) {
                    if self.missing.insert(said.kind) {
                        info!(kind, "the hub does not have them");
                    }
                    self.is_synced(said.kind);
                } else {
                    warn!(
                        kind,
                        why = watches::told(&error),
                        "cannot be watched, and is tried again"
                    );
                }
            }
        }
    }

    /// Shows in the metrics what there is now of a kind, where they show it.
    fn measure(&self, kind: Kind) {
        match kind {
            Kind::GitOpsClusters => self.metrics.gitops_clusters(self.index.gitops_clusters()),
            Kind::Certificates => self.metrics.certificates(self.index.certificates_until()),
            _ => {}
        }
    }

    fn is_synced(&mut self, kind: Kind) {
        self.metrics.synced(kind.resource().plural, true);
        if self.ready.synced(kind) {
            info!("ready: all there is on the hub is known");
        }
    }

    fn touch(&mut self, touched: Vec<Touched>) {
        let now = (self.clocks.elapsed)();
        for touched in touched {
            let of_it = self.queues.iter_mut().filter(|(promise, _)| promise.of == touched.sort);
            for (_, queue) in of_it {
                queue.touch(&touched.place, touched.noticed, now);
            }
        }
    }

    /// Looks at what is due, and starts to write what is not as it should be.
    fn start_writes(&mut self) {
        let now = (self.clocks.elapsed)();
        for (at, (promise, queue)) in self.queues.iter_mut().enumerate() {
            while self.writes.len() < self.at_once {
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
                    Done::Written {
                        promise: at,
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
    fn next(&self) -> Option<Instant> {
        if self.writes.len() >= self.at_once {
            return None;
        }
        self.queues.iter().filter_map(|(_, queue)| queue.next()).min()
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
