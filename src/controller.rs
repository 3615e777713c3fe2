//! `controller`: the companion of the plugin on the hub.
//!
//! ```text
//! watches ─▶ index ─▶ queue ─▶ promises ─▶ actions ─▶ writer
//! ```
//!
//! The [`watches`] tell what is on the hub, and the [`index`] keeps what is needed of it and says which Applications, clusters and
//! ApplicationSets a change concerns. The [`queue`] says when to look at them; a promise ([`promises`]) says what should be written, of nothing but the index
//! and the time; [`slots`] says how many writes may be in progress for whom; the [`writer`] writes it, if this replica holds the Lease ([`lease`]) of the object's shard
//! ([`shards`]). One thread does all, so that the index needs no lock and what is decided is decided of one state.

pub mod action;
pub mod admin;
#[cfg(test)]
mod api_server;
pub mod index;
pub mod lease;
pub mod metrics;
mod options;
mod outbox;
mod panics;
pub mod promises;
pub mod queue;
mod readiness;
mod reconciler;
pub mod resources;
pub mod seen;
pub mod shards;
pub mod slots;
pub mod turns;
pub mod watches;
pub mod writer;

pub use options::Options;

use crate::generate::problem::plain;
use crate::hub;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use metrics::Metrics;
use readiness::Readiness;
use reconciler::Reconciler;
use shards::Shards;
use std::io;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::select;
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

/// The name of the Lease that says which replica writes, and the beginning of the names of the Leases of shards.
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
    panics::log();
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
    let shards = match &options.lease_namespace {
        Some(namespace) => Shards::stand(&client, namespace, &options.identity, options.shards, fastrand::u64(..)),
        None => Shards::alone(),
    };
    let mut reconciler = Reconciler::new(options, &client, &shards, ready, metrics, clocks);
    select! {
        () = reconciler.run() => {}
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    info!("stopping");
    reconciler.finish().await;
    shards.release().await;
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
    hub::client(config, watches::as_it_is_now)
}
