//! Runs a testbed by hand.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser};
use testbed::{CompleteHub, CompleteHubOptions, Part, Parts};

/// The program that `cargo build` creates.
const PROGRAM: &str = "target/debug/argocd-ocm-cmp";

/// The file for kubectl.
const KUBECONFIG: &str = "target/testbed.kubeconfig";

/// The interval at which changed Deployments and `ConfigMaps` are followed.
const SYNC_INTERVAL: Duration = Duration::from_secs(3);

/// Run a hub with Argo CD, OCM and managed clusters on this machine, without containers
#[derive(Parser)]
#[command(name = "testbed")]
enum Testbed {
    /// Build all programs of a testbed, which takes 20 minutes the first time
    Build,
    /// Print the program that renders sources by Argo CD's code, and the folder of kustomize and Helm
    Paths,
    /// Start a hub with everything installed, and managed clusters, until Ctrl-C
    Up(Up),
}

#[derive(Args)]
#[command(after_help = "\
Run it in a clone of the repository. Argo CD, kube-apiserver and OCM's agents run as processes. Pods are empty: Deployments become
available, but no container runs.

argocd-server runs from Argo CD's released command line `argocd` if it is on the PATH in the version of the testbed. Otherwise it
has only the API, because Argo CD's Go module does not contain the pages.")]
struct Up {
    /// Number of managed clusters: cluster1, cluster2, …
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    clusters: u32,

    /// The argocd-ocm-cmp program to install [default: target/debug/argocd-ocm-cmp, built if it is missing]
    #[arg(long, value_name = "PROGRAM")]
    plugin_bin: Option<PathBuf>,

    /// Run OCM's controllers of the hub too: registration, placement, add-ons, work
    #[arg(long)]
    ocm_controllers: bool,

    /// Install the pull model, with an Argo CD on every managed cluster and progressive syncs on the hub
    #[arg(long)]
    pull: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Testbed::parse() {
        Testbed::Build => build(),
        Testbed::Paths => paths(),
        Testbed::Up(up) => up.run().await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<()> {
    can_run()?;
    Parts::ensure().map(drop)
}

fn paths() -> Result<()> {
    let parts = Parts::ensure()?;
    println!(
        "{}\n{}",
        parts.program(Part::ApplicationSource).display(),
        parts.tools().display()
    );
    Ok(())
}

impl Up {
    async fn run(self) -> Result<()> {
        can_run()?;
        let program = program(self.plugin_bin.as_deref())?;
        let started = Instant::now();
        let options = CompleteHubOptions {
            program: program.canonicalize()?,
            clusters: self.clusters,
            ocm_controllers: self.ocm_controllers,
            pull: self.pull,
        };
        let mut hub = CompleteHub::start(&options).await?;
        hub.write_kubeconfig(KUBECONFIG.as_ref())?;
        println!("up after {:.1} s\n", started.elapsed().as_secs_f32());
        println!(
            "UI     {}, user admin, password {}",
            hub.ui(),
            hub.admin_password().await?
        );
        if !hub.has_pages() {
            println!("       only the API: see testbed up --help for the pages");
        }
        println!("logs   {}", hub.logs().display());
        println!("\nContinue in another terminal:\n");
        println!("  export KUBECONFIG=$PWD/{KUBECONFIG}");
        println!("  sed \"s|repoURL: .*|repoURL: file://$PWD|\" app.yaml | kubectl apply -f -");
        println!("  {} status guestbook --wait", program.display());
        println!("\nCtrl-C stops everything");
        tokio::select! {
            never = follow(&mut hub) => match never {},
            signal = wait_for_signal() => signal,
        }
    }
}

/// Returns the program to install, and builds the default one if it is missing.
fn program(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        ensure!(path.is_file(), "no program at {}", path.display());
        return Ok(path.to_owned());
    }
    let path = PathBuf::from(PROGRAM);
    if !path.is_file() {
        let status = Command::new("cargo")
            .arg("build")
            .status()
            .context("cannot run cargo build")?;
        ensure!(status.success(), "cargo build failed: {status}");
        ensure!(
            path.is_file(),
            "cargo build has created no {PROGRAM}: run this in a clone of the repository, or pass --plugin-bin"
        );
    }
    Ok(path)
}

/// Follows the changes of the hub. Prints each error once: the hub may be in the middle of a change.
async fn follow(hub: &mut CompleteHub) -> Infallible {
    let mut last = String::new();
    loop {
        tokio::time::sleep(SYNC_INTERVAL).await;
        let error = hub
            .sync()
            .await
            .err()
            .map(|error| format!("{error:#}"))
            .unwrap_or_default();
        if error != last && !error.is_empty() {
            eprintln!("testbed: {error}");
        }
        last = error;
    }
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
