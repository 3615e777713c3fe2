//! Runs a testbed by hand.

use std::iter;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use testbed::{ArgoCd, Hub, ManagedClusterOptions, Parts, Plugin};

const USAGE: &str = "\
usage: testbed build
       testbed up [--clusters N] [--plugin-bin PROGRAM] [--plugin-config FOLDER] [--ocm-controllers] [--pull]

build   builds every program a testbed needs, a quarter of an hour the first time
up      starts a hub with Argo CD and managed clusters, until Ctrl-C

  --clusters N            number of managed clusters: cluster1, cluster2, … (default 1)
  --plugin-bin PROGRAM    the plugin's program; its folder comes first on the PATH of Argo CD's cmp-server
  --plugin-config FOLDER  the folder with plugin.yaml (default: the current folder)
  --ocm-controllers       also runs OCM's controllers of the hub: registration, placement, add-ons, work
  --pull                  also runs the parts that the pull model needs: an Argo CD on every managed cluster, and the hub's
                          ApplicationSet controller with RollingSync
";

/// The options of `up`.
struct Up {
    clusters: u32,
    plugin_bin: Option<PathBuf>,
    plugin_config: PathBuf,
    ocm_controllers: bool,
    pull: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("build") => build(),
        Some("up") => up(parse(arguments)?).await,
        Some("help" | "--help" | "-h") => {
            print!("{USAGE}");
            Ok(())
        }
        _ => bail!("no command\n{USAGE}"),
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Up> {
    let mut up = Up {
        clusters: 1,
        plugin_bin: None,
        plugin_config: PathBuf::from("."),
        ocm_controllers: false,
        pull: false,
    };
    while let Some(option) = arguments.next() {
        let switch = match option.as_str() {
            "--ocm-controllers" => Some(&mut up.ocm_controllers),
            "--pull" => Some(&mut up.pull),
            _ => None,
        };
        if let Some(switch) = switch {
            *switch = true;
            continue;
        }
        let value = arguments
            .next()
            .with_context(|| format!("{option} needs a value\n{USAGE}"))?;
        match option.as_str() {
            "--clusters" => up.clusters = value.parse().context("--clusters needs a number")?,
            "--plugin-bin" => up.plugin_bin = Some(value.into()),
            "--plugin-config" => up.plugin_config = value.into(),
            _ => bail!("unknown option {option}\n{USAGE}"),
        }
    }
    Ok(up)
}

fn build() -> Result<()> {
    can_run()?;
    Parts::ensure().map(drop)
}

async fn up(up: Up) -> Result<()> {
    can_run()?;
    let started = Instant::now();
    let hub = Hub::start().await?;
    let hub = &hub;
    let options = &ManagedClusterOptions {
        argocd: up.pull.then(ArgoCd::default),
        ..ManagedClusterOptions::default()
    };
    let clusters = (1..=up.clusters).map(|number| async move {
        let name = format!("cluster{number}");
        hub.add_managed_cluster(&name, options.clone()).await
    });
    let clusters = futures::future::try_join_all(clusters).await?;
    let mut argocd = ArgoCd::default();
    if up.pull {
        argocd = argocd.with_rolling_sync();
    }
    if let Some(path) = &up.plugin_bin {
        let program = path.canonicalize();
        let program = program.with_context(|| format!("no program at {}", path.display()))?;
        let folder = program.parent().context("a folder is not a program")?;
        argocd.plugins.push(Plugin::new(&up.plugin_config, folder));
    }
    hub.start_argocd(argocd).await?;
    if up.ocm_controllers {
        hub.start_ocm_controllers().await?;
    }

    println!("up after {:.1} s", started.elapsed().as_secs_f32());
    let planes = clusters.iter().map(|cluster| &**cluster);
    for plane in iter::once(&**hub).chain(planes) {
        println!(
            "{:<10} export KUBECONFIG={}",
            plane.name(),
            plane.kubeconfig_path().display()
        );
    }
    println!("logs       {}", hub.logs().display());
    let hub_kubeconfig = hub.kubeconfig_path().display();
    println!("\ntry");
    println!("  kubectl --kubeconfig {hub_kubeconfig} apply --filename proj.yaml --filename app.yaml");
    println!("  kubectl --kubeconfig {hub_kubeconfig} get applications,manifestworks --all-namespaces");
    if let Some(cluster) = clusters.first() {
        println!(
            "  kubectl --kubeconfig {} get deployments --all-namespaces",
            cluster.kubeconfig_path().display()
        );
    }
    println!("\nCtrl-C stops everything");
    wait_for_signal().await
}

async fn wait_for_signal() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

fn can_run() -> Result<()> {
    match testbed::missing() {
        Some(missing) => bail!("a testbed cannot run here: {missing}"),
        None => Ok(()),
    }
}
