//! `live`: serves the view into the clusters until a signal ends it.

use super::Exit;
use crate::cli::LiveArgs;
use crate::runtime::runtime;
use jiff::Timestamp;
use live::identity;
use live::limits::STREAM_TIMEOUT;
use live::server::{LiveServer, serve};
use live::service::Service;
use live::tunnel::{Tunnel, TunnelOptions};
use manifest::problem::Problems;
use runtime::panics;
use runtime::signals::Signals;
use std::convert::{self, Infallible};

/// The ConfigMap with the certificate authority of cluster-proxy, as the Pod mounts it.
const MOUNTED_AUTHORITY: &str = "/etc/cluster-proxy/ca.crt";

pub(super) fn run(args: &LiveArgs) -> Result<Exit, Problems> {
    args.log.init();
    panics::log();
    runtime()?.block_on(until_signal(args))?;
    Ok(Exit::SUCCESS)
}

async fn until_signal(args: &LiveArgs) -> Result<(), String> {
    let mut signals = Signals::install()?;
    tokio::select! {
        served = start(args) => served.map(|never| match never {}),
        _ = signals.received() => Ok(()),
    }
}

/// Starts the server, and serves while it is polled.
async fn start(args: &LiveArgs) -> Result<Infallible, String> {
    let argo_cd = &args.argo_cd.argocd_namespace;
    let (hub, _) = hub::client(hub::config(&args.hub.connection()).await?, convert::identity)?;
    let tunnel = TunnelOptions {
        url: args.cluster_proxy.url()?,
        authority: args
            .cluster_proxy
            .cluster_proxy_ca
            .clone()
            .unwrap_or(MOUNTED_AUTHORITY.into()),
        namespace: argo_cd.clone(),
        account: args.cluster_account.clone(),
    };
    let tunnel = Tunnel::new(tunnel, hub.clone())?;
    let identity = identity::load(&hub, argo_cd, Timestamp::now()).await?;
    let listener = hub::listen(args.bind_address).await?;
    let server = LiveServer {
        service: Service::new(hub, tunnel, STREAM_TIMEOUT),
        identity,
        argo_cd: argo_cd.clone(),
    };
    Ok(serve(listener, server).await)
}
