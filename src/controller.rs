//! `controller`: the companion of the plugin on the hub.
//!
//! ```text
//! watches ─▶ index ─▶ queue ─▶ promises ─▶ actions ─▶ writer
//! ```
//!
//! The [`watches`] tell what is on the hub, and the [`index`] keeps what is needed of it and says which Applications a change
//! concerns. The [`queue`] says when to look at them; a promise ([`promises`]) says what should be written, of nothing but the index
//! and the time; the [`writer`] writes it, if this replica holds the Lease ([`lease`]). One thread does all, so that the index needs
//! no lock and what is decided is decided of one state.

pub mod action;
pub mod admin;
pub mod index;
pub mod lease;
pub mod metrics;
pub mod promises;
pub mod queue;
pub mod seen;
pub mod watches;
pub mod writer;

use crate::cli::ControllerArgs;
use crate::generate::settings::Env;
use crate::hub;
use crate::status::Verdict;
use futures::stream::{BoxStream, StreamExt};
use index::{Index, Touched};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use lease::Election;
use metrics::{Metrics, Reason};
use promises::{Moment, PROMISES, Promise};
use queue::{Due, Outcome, Queue};
use std::collections::BTreeSet;
use std::future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};
use watches::{Kind, Said, What};
use writer::Writer;

/// What the controller is to do, and where.
#[derive(Debug)]
pub struct Options {
    hub: crate::cli::HubArgs,
    promises: Vec<&'static Promise>,
    argocd: String,
    /// Where the Lease is; none where nobody else writes.
    lease_namespace: Option<String>,
    identity: String,
    address: SocketAddr,
    dry_run: bool,
    concurrent_writes: usize,
}

/// Where the time comes from.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// What time it is.
    pub time: fn() -> Timestamp,
    /// What a stopwatch shows, which nobody can set.
    pub elapsed: fn() -> Instant,
}

impl Options {
    /// Puts together what was typed and what the Pod says of itself.
    ///
    /// # Errors
    /// With one plain line, when something is asked for that is not there.
    pub fn resolve(args: &ControllerArgs, env: &Env) -> Result<Self, String> {
        let known = || {
            PROMISES
                .iter()
                .map(|promise| promise.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut promises = Vec::new();
        for name in args.controllers.iter().map(|name| name.trim()) {
            let named = PROMISES.iter().filter(|promise| name == "*" || promise.name == name);
            let before = promises.len();
            promises.extend(named);
            if promises.len() == before {
                return Err(format!(
                    "there is no controller {name:?}: --controllers takes {} or '*'",
                    known()
                ));
            }
        }
        promises.dedup_by_key(|promise| promise.name);
        let of_pod = |name: &str| env.get(name).filter(|text| !text.is_empty()).cloned();
        let namespace = args
            .leader_election_namespace
            .clone()
            .or_else(|| of_pod("POD_NAMESPACE"));
        let pod = of_pod("POD_NAME").or_else(|| of_pod("HOSTNAME"));
        let namespace = namespace.unwrap_or_else(|| args.argocd_namespace.clone());
        Ok(Self {
            hub: args.hub.clone(),
            promises,
            lease_namespace: (args.leader_elect && !args.dry_run).then_some(namespace),
            argocd: args.argocd_namespace.clone(),
            identity: format!(
                "{}_{:08x}",
                pod.unwrap_or_else(|| "local".to_owned()),
                fastrand::u32(..)
            ),
            address: args.bind_address,
            dry_run: args.dry_run,
            concurrent_writes: args.concurrent_writes.into(),
        })
    }
}

/// Runs until it is told to stop: by SIGTERM or SIGINT.
///
/// # Errors
/// With one plain line, when it cannot start.
pub async fn run(options: &Options, clocks: Clocks) -> Result<(), String> {
    let cannot = |what: &str, error: &std::io::Error| format!("{what}: {error}");
    let mut stop = [SignalKind::terminate(), SignalKind::interrupt()]
        .map(|kind| signal(kind).map_err(|error| cannot("signals cannot be heard", &error)));
    let mut config = hub::config(&options.hub).await?;
    config.read_timeout = Some(watches::PATIENCE);
    // Of a connection that lay idle, only the time since it is used again counts.
    config.reset_reader_on_write = true;
    // What fails is tried again here, where it is counted, and does not hold up the rest.
    config.default_retry = false;
    let url = config.cluster_url.to_string();
    let client =
        Client::try_from(config).map_err(|error| format!("no connection to {url}: {}", hub::reason(&error)))?;
    let listener = TcpListener::bind(options.address).await;
    let listener =
        listener.map_err(|error| cannot(&format!("nothing can be served at {}", options.address), &error))?;
    let address = listener.local_addr().map_err(|error| cannot("no address", &error))?;
    let metrics = Metrics::new();
    let ready = Arc::new(Readiness::default());
    let promises: Vec<_> = options.promises.iter().map(|promise| promise.name).collect();
    let promises = promises.join(",");
    info!(version = env!("CARGO_PKG_VERSION"), %url, %address, promises, dry_run = options.dry_run, "started");
    let is_ready = Arc::clone(&ready);
    let server = admin::serve(listener, metrics.clone(), move || is_ready.check(), || Ok(()));
    let server = tokio::spawn(server);

    let (election, leader) = match &options.lease_namespace {
        Some(namespace) => {
            let identity = options.identity.clone();
            let (election, leader) = Election::start(client.clone(), namespace, LEASE, identity, fastrand::u64(..));
            (Some(election), leader)
        }
        None => (None, watch::channel(true).1),
    };
    let writer = Writer::new(
        client.clone(),
        metrics.clone(),
        options.identity.clone(),
        options.dry_run,
        clocks.time,
    );
    let mut controller = Controller {
        watches: watches::all(&client, &options.argocd, clocks.time),
        index: Index::new(&options.argocd),
        queues: options
            .promises
            .iter()
            .map(|promise| (*promise, Queue::default()))
            .collect(),
        writes: JoinSet::new(),
        at_once: options.concurrent_writes,
        leader,
        ready,
        metrics,
        writer,
        clocks,
    };
    let [terminated, interrupted] = &mut stop;
    let [terminated, interrupted] = [terminated.as_mut(), interrupted.as_mut()];
    let (terminated, interrupted) = (
        terminated.map_err(|why| why.clone())?,
        interrupted.map_err(|why| why.clone())?,
    );
    tokio::select! {
        () = controller.run() => {}
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    info!("stopping");
    controller.finish().await;
    if let Some(election) = election {
        election.release().await;
    }
    server.abort();
    info!("stopped");
    Ok(())
}

/// The name of the Lease that says which replica writes.
pub const LEASE: &str = "argocd-ocm-cmp-controller";

/// How long writes under way have to come to their end when the controller is told to stop.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// How long to sleep at most where it is time that is waited for: a clock that was set must not be waited for.
const NAP: Duration = Duration::from_secs(30);

struct Controller {
    watches: BoxStream<'static, Said>,
    index: Index,
    queues: Vec<(&'static Promise, Queue)>,
    writes: JoinSet<(usize, Due, Outcome)>,
    at_once: usize,
    leader: watch::Receiver<bool>,
    ready: Arc<Readiness>,
    metrics: Metrics,
    writer: Writer,
    clocks: Clocks,
}

impl Controller {
    async fn run(&mut self) {
        let mut elected = true;
        loop {
            let leads = *self.leader.borrow_and_update();
            self.metrics.leading(leads);
            let works = leads && self.ready.check().is_ok();
            if works {
                self.start_writes();
            }
            let next = works.then(|| self.next()).flatten();
            let flip = self.next_flip();
            tokio::select! {
                said = self.watches.next() => match said {
                    Some(said) => self.hear(said),
                    None => return,
                },
                Some(written) = self.writes.join_next(), if !self.writes.is_empty() => {
                    if let Ok((promise, due, outcome)) = written {
                        let now = (self.clocks.elapsed)();
                        self.queues[promise].1.done(&due, &outcome, now, fastrand::f64());
                    }
                }
                changed = self.leader.changed(), if elected => elected = changed.is_ok(),
                () = sleep_until(next) => {}
                () = sleep_until(flip) => {
                    let touched = self.index.tick((self.clocks.time)());
                    self.touch(touched);
                }
            }
        }
    }

    /// Lets the writes that are under way come to their end.
    async fn finish(&mut self) {
        let all = async { while self.writes.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST_WRITES, all).await.is_err() {
            warn!("some writes have not come to their end");
        }
    }

    fn hear(&mut self, said: Said) {
        let kind = said.kind.resource();
        match said.what {
            What::Changed(change, age) => {
                if let Some(age) = age {
                    self.metrics.lagged(kind, age);
                }
                let touched = self.index.apply(change);
                self.touch(touched);
            }
            What::Synced(change) => {
                let touched = self.index.apply(change);
                self.touch(touched);
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
                // OCM installs this kind since its version 0.8, and what is not there need not be waited for.
                if said.kind == Kind::Sets && watches::is_not_there(&error) {
                    debug!(kind, "the hub does not have them");
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

    fn is_synced(&mut self, kind: Kind) {
        self.metrics.synced(kind.resource(), true);
        if self.ready.synced(kind) {
            info!("ready: all there is on the hub is known");
        }
    }

    fn touch(&mut self, touched: Vec<Touched>) {
        let now = (self.clocks.elapsed)();
        for touched in touched {
            for (_, queue) in &mut self.queues {
                queue.touch(&touched.application, touched.noticed, now);
            }
        }
    }

    /// Looks at what is due, and starts to write what is not as it should be.
    fn start_writes(&mut self) {
        for verdict in Verdict::ALL {
            self.metrics.works(verdict, self.index.count(verdict));
        }
        let now = (self.clocks.elapsed)();
        for (at, (promise, queue)) in self.queues.iter_mut().enumerate() {
            while self.writes.len() < self.at_once {
                let Some(due) = queue.pop(now) else { break };
                self.metrics.reconciled(promise.name);
                let moment = Moment {
                    now: (self.clocks.time)(),
                    stale: due.stale,
                };
                let Some(action) = (promise.desired)(&self.index, &due.application, &moment) else {
                    queue.done(&due, &Outcome::AsItShouldBe, now, fastrand::f64());
                    continue;
                };
                let (writer, name) = (self.writer.clone(), promise.name);
                self.writes.spawn(async move {
                    let outcome = writer.write(name, action).await;
                    (at, due, outcome)
                });
            }
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

/// Which watches have not told yet what there is.
#[derive(Debug)]
struct Readiness {
    waiting: Mutex<BTreeSet<Kind>>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self {
            waiting: Mutex::new(Kind::ALL.into()),
        }
    }
}

impl Readiness {
    /// Notes that a watch has told all; whether it was the last.
    fn synced(&self, kind: Kind) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&kind) && waiting.is_empty()
    }

    fn check(&self) -> Result<(), String> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<_> = waiting.iter().map(|kind| kind.resource()).collect();
        if names.is_empty() {
            Ok(())
        } else {
            Err(format!("waiting for: {}", names.join(", ")))
        }
    }
}
