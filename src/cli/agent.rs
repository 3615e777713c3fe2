//! The command line of `agent`.

use super::status::time;
use clap::builder::{NonEmptyStringValueParser, PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What is done for Argo CD's agent, in its Pod on a managed cluster.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Run a program, and restart it when files that it reads only at its start have changed
    Run(RunArgs),
    /// Have a Deployment start its Pods anew when files have changed that they read only at their start
    Restart(RestartArgs),
    /// Give Argo CD the two secrets that it does not start without, where it lacks them
    Prepare(PrepareArgs),
    /// Copy this program into a folder, for a container that does not have it
    Install(InstallArgs),
}

/// The arguments of `agent run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// A file whose content counts; give it again for more of them
    #[arg(long = "when-changed", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// How often the files are looked at, such as 10s or 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    pub interval: Duration,

    /// How long the program has to stop before it is killed
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = time)]
    pub grace_period: Duration,

    /// The program, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

const RUN_EXAMPLES: &str = "\
It starts the program when all the files are there and not empty. A file that goes away later is no reason to restart.

Exit code: that of the program, or 128 and the number of the signal that ended it.

Examples:
  # Argo CD's agent reads its certificate once, and OCM renews that
  argocd-ocm-cmp agent run --when-changed /tls/tls.crt --when-changed /tls/tls.key -- argocd-agent agent";

/// The arguments of `agent restart`.
#[derive(Debug, Args)]
#[command(after_help = RESTART_EXAMPLES)]
pub struct RestartArgs {
    /// A file whose content counts; give it again for more of them
    #[arg(long = "when-changed", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// How often the files are looked at, such as 10s or 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    pub interval: Duration,

    /// The managed cluster and the namespace
    #[command(flatten)]
    pub at: PlaceArgs,

    /// The Deployment
    #[arg(value_name = "DEPLOYMENT", value_parser = NonEmptyStringValueParser::new())]
    pub deployment: String,
}

const RESTART_EXAMPLES: &str = "\
It runs until it is asked to end. It writes an annotation of the Deployment's Pods when all the files are there, and when their content
has changed; what is right already is not written, and a Deployment that is not there is waited for.
Rights: patch for this Deployment.

Examples:
  # Beside an operator whose agent reads its certificate once
  argocd-ocm-cmp agent restart argocd-agent-agent --namespace argocd --when-changed /tls/tls.crt";

/// The arguments of `agent prepare`.
#[derive(Debug, Args)]
#[command(after_help = PREPARE_EXAMPLES)]
pub struct PrepareArgs {
    /// The managed cluster and the namespace
    #[command(flatten)]
    pub at: PlaceArgs,
}

/// A namespace on a managed cluster.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// The namespace of Argo CD
    #[arg(
        long,
        short,
        value_name = "NAME",
        default_value = "argocd",
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub namespace: String,

    /// Kubeconfig of the managed cluster [default: as kubectl finds it, or the Pod's ServiceAccount]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

const PREPARE_EXAMPLES: &str = "\
These are server.secretkey of the Secret argocd-secret, and auth of the Secret argocd-redis. What is there is never changed.
Rights: create secrets, and get and patch for these two names.

Examples:
  # In an init container, with the ServiceAccount of the Pod
  argocd-ocm-cmp agent prepare --namespace argocd";

/// The arguments of `agent install`.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
pub struct InstallArgs {
    /// The folder, which must be there
    #[arg(value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(named))]
    pub folder: PathBuf,
}

const INSTALL_EXAMPLES: &str = "\
Examples:
  # In an init container, into a volume that the agent's container has too
  argocd-ocm-cmp agent install /shared
  /shared/argocd-ocm-cmp agent run --when-changed /tls/tls.crt -- argocd-agent agent";

/// Reading files in a tight loop would occupy a processor.
fn interval(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("give at least 1s".to_owned()),
        interval => Ok(interval),
    }
}

fn named(folder: PathBuf) -> Result<PathBuf, &'static str> {
    if folder.as_os_str().is_empty() {
        return Err("give a folder");
    }
    Ok(folder)
}
