//! `controller`: the companion of the plugin on the hub.
//!
//! ```text
//! watches ─▶ index ─▶ queue ─▶ promises ─▶ actions ─▶ writer
//! ```
//!
//! The [`watches`] tell what is on the hub, and the [`index`] keeps what is needed of it and says which Applications, clusters and
//! ApplicationSets a change concerns. The [`queue`] says when to look at them; a promise ([`promises`]) says what should be written, of nothing but the index
//! and the time; the [`writer`] writes it, if this replica holds the Lease ([`lease`]). One thread does all, so that the index needs
//! no lock and what is decided is decided of one state.

pub mod action;
pub mod admin;
pub mod index;
pub mod lease;
pub mod metrics;
mod options;
pub mod promises;
pub mod queue;
mod readiness;
mod reconciler;
pub mod resources;
pub mod seen;
pub mod watches;
pub mod writer;

pub use options::Options;

use crate::generate::problem::plain;
use crate::hub;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use lease::Election;
use metrics::Metrics;
use readiness::Readiness;
use reconciler::Reconciler;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::info;

/// The name of the Lease that says which replica writes.
pub const LEASE: &str = "argocd-ocm-cmp-controller";

/// Where the time comes from.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// What time it is.
    pub time: fn() -> Timestamp,
    /// What a stopwatch shows, which nobody can set.
    pub elapsed: fn() -> Instant,
}

/// Runs until it is told to stop: by SIGTERM or SIGINT.
///
/// # Errors
/// With one plain line, when it cannot start.
pub async fn run(options: &Options, clocks: Clocks) -> Result<(), String> {
    let unheard = |error: io::Error| format!("signals cannot be heard: {error}");
    let mut terminated = signal(SignalKind::terminate()).map_err(unheard)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(unheard)?;
    let (client, url) = connect(options).await?;
    let unserved = |error: io::Error| format!("nothing can be served at {}: {}", options.address, plain(&error));
    let listener = TcpListener::bind(options.address).await.map_err(unserved)?;
    let address = listener.local_addr().map_err(unserved)?;
    let promises = options::names(options.promises.iter().copied());
    let (version, promises, dry_run) = (env!("CARGO_PKG_VERSION"), promises.join(","), options.dry_run);
    info!(version, %url, %address, promises, dry_run, "started");

    let (metrics, ready) = (Metrics::new(), Arc::new(Readiness::new(options.needs())));
    let is_ready = Arc::clone(&ready);
    let server = tokio::spawn(admin::serve(
        listener,
        metrics.clone(),
        move || is_ready.check(),
        || Ok(()),
    ));
    let (election, leader) = match &options.lease_namespace {
        Some(namespace) => {
            let identity = options.identity.clone();
            let (election, leader) = Election::start(client.clone(), namespace, LEASE, identity, fastrand::u64(..));
            (Some(election), leader)
        }
        None => (None, watch::channel(true).1),
    };
    let mut reconciler = Reconciler::new(options, &client, leader, ready, metrics, clocks);
    select! {
        () = reconciler.run() => {}
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    info!("stopping");
    reconciler.finish().await;
    if let Some(election) = election {
        election.release().await;
    }
    server.abort();
    info!("stopped");
    Ok(())
}

async fn connect(options: &Options) -> Result<(Client, String), String> {
    let mut config = hub::config(&options.hub).await?;
    config.read_timeout = Some(watches::PATIENCE);
    // Of a connection that lay idle, only the time since it is used again counts.
    config.reset_reader_on_write = true;
    // What fails is tried again by the queue, which counts it, and does not hold up the rest.
    config.default_retry = false;
    let url = config.cluster_url.to_string();
    match Client::try_from(config) {
        Ok(client) => Ok((client, url)),
        Err(error) => Err(format!("no connection to {url}: {}", hub::reason(&error))),
    }
}
