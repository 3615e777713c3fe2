//! The controllers of the hub.
//!
//! All of them run on one thread, so that the cache needs no lock and each decision uses one state.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod controllers;
pub mod metrics;
mod options;
mod reconciler;
#[cfg(test)]
mod simulation;
mod watches;

pub use options::{Clocks, Options, named, names};

use futures::future::OptionFuture;
use kube::Client;
use manifest::problem::plain;
use reconciler::Reconciler;
use runtime::lease::Election;
use runtime::plan::Plan;
use runtime::signals::Signals;
use std::sync::Arc;
use std::time::Duration;
use tokio::select;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::info;

/// The name of the Lease that the leading replica holds.
pub const LEASE: &str = "argocd-ocm-cmp-controller";

/// Runs the controllers until SIGTERM or SIGINT.
pub async fn run(options: &Options, clocks: Clocks) -> Result<(), String> {
    runtime::panics::log();
    let mut signals = Signals::install()?;
    let (client, url) = connect(options).await?;
    let listener = hub::listen(options.address).await?;
    let address = listener.local_addr().map_err(|error| plain(&error))?;
    let controllers = options::names(options.controllers.iter().copied());
    let (version, controllers, dry_run) = (env!("CARGO_PKG_VERSION"), controllers.join(","), options.dry_run);
    info!(version, %url, %address, controllers, dry_run, "started");

    let ((metrics, hub_metrics), ready) = (metrics::metrics(), Arc::new(options.readiness()));
    let is_ready = Arc::clone(&ready);
    let server = tokio::spawn(runtime::admin::serve(listener, metrics.clone(), move || {
        is_ready.check()
    }));
    // Without a Lease, this is the only replica.
    let (sender, leads) = watch::channel(options.lease_namespace.is_none());
    let mut election = options.lease_namespace.as_ref().map(|namespace| {
        let (client, identity) = (client.clone(), options.identity.clone());
        Election::start(client, namespace, LEASE, identity, sender, fastrand::u64(..))
    });
    let mut reconciler = Reconciler::new(options, &client, leads, ready, (metrics, hub_metrics), clocks);
    reconciler.restores = election.as_ref().map(|election| election.restores.clone());
    let has_election_ended = select! {
        () = reconciler.run() => false,
        _ = signals.received() => false,
        Some(()) = OptionFuture::from(election.as_mut().map(Election::ended)) => true,
    };
    info!("stopping");
    reconciler.finish().await;
    if let Some(election) = election {
        election.release().await;
    }
    server.abort();
    info!("stopped");
    if has_election_ended {
        return Err("the leader election has ended unexpectedly: see the panic in the log".to_owned());
    }
    Ok(())
}

/// The time after which a hub that does not list its objects is an error.
const PLAN_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the writes of the controllers, from one look at the hub. Nothing is written.
pub async fn plan(mut options: Options, clocks: Clocks) -> Result<Plan, String> {
    options.dry_run = true;
    let (client, url) = connect(&options).await?;
    let ready = Arc::new(options.readiness());
    let (_sender, leads) = watch::channel(true);
    let mut reconciler = Reconciler::new(&options, &client, leads, Arc::clone(&ready), metrics::metrics(), clocks);
    let planned = timeout(PLAN_TIMEOUT, reconciler.run_once()).await;
    planned.map_err(|_| {
        let reason = ready
            .check()
            .err()
            .map_or(String::new(), |waiting| format!(" ({waiting})"));
        format!(
            "{url} was not read within {} seconds{reason}: check that you may list and watch these resources",
            PLAN_TIMEOUT.as_secs()
        )
    })
}

async fn connect(options: &Options) -> Result<(Client, String), String> {
    let mut config = hub::config(&options.hub).await?;
    config.read_timeout = Some(watches::IDLE_TIMEOUT);
    // On an idle connection, the timeout starts again when the connection is used.
    config.reset_reader_on_write = true;
    // The workqueue retries and counts failed requests without delaying other objects.
    config.default_retry = false;
    hub::client(config, hub::as_it_is_now)
}
