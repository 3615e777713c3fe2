//! The command line of `agent`.

use clap::builder::{NonEmptyStringValueParser, PathBufValueParser, TypedValueParser};
use clap::{Args, Subcommand};
use ocm::duration;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The commands of `agent`, which run in the Pod of Argo CD's agent.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Run a program, and restart it when files change that it reads only at its start
    Run(RunArgs),
    /// Restart the Pods of a Deployment when files change that they read only at their start
    Restart(RestartArgs),
    /// Create the two secrets that Argo CD needs to start, if they are missing
    Prepare(PrepareArgs),
    /// Copy this program into a folder for another container
    Install(InstallArgs),
}

/// The arguments of `agent run`.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// File to watch for changes; repeat the flag for more files
    #[arg(long = "when-changed", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Interval between reads of the files, such as 10s or 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    pub interval: Duration,

    /// Time for the program to stop before it is killed
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = duration::parse)]
    pub grace_period: Duration,

    /// Program to run, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

const RUN_EXAMPLES: &str = "\
The program starts when all files exist and are not empty. Deleting a file later does not restart it.

Exit code: that of the program, or 128 plus the number of the signal that ended it.

Examples:
  # Restart argocd-agent when OCM renews its certificate
  argocd-ocm-cmp agent run --when-changed /tls/tls.crt --when-changed /tls/tls.key -- argocd-agent agent";

/// The arguments of `agent restart`.
#[derive(Debug, Args)]
#[command(after_help = RESTART_EXAMPLES)]
pub struct RestartArgs {
    /// File to watch for changes; repeat the flag for more files
    #[arg(long = "when-changed", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// Interval between reads of the files, such as 10s or 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    pub interval: Duration,

    #[command(flatten)]
    pub(crate) at: TargetArgs,

    /// Deployment to restart
    #[arg(value_name = "DEPLOYMENT", value_parser = NonEmptyStringValueParser::new())]
    pub deployment: String,
}

const RESTART_EXAMPLES: &str = "\
It runs until it is terminated. It sets an annotation in the Deployment's Pod template when all files exist, and again when their content
changes; Pods do not restart while the annotation is up to date. It waits for a Deployment that does not exist yet.
Required permissions: patch for this Deployment.

Examples:
  # Restart an agent that an operator has installed
  argocd-ocm-cmp agent restart argocd-agent-agent --namespace argocd --when-changed /tls/tls.crt";

/// The arguments of `agent prepare`.
#[derive(Debug, Args)]
#[command(after_help = PREPARE_EXAMPLES)]
pub struct PrepareArgs {
    #[command(flatten)]
    pub(crate) at: TargetArgs,
}

/// A namespace on a managed cluster.
#[derive(Debug, Args)]
pub struct TargetArgs {
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
The two are server.secretkey in Secret argocd-secret, and auth in Secret argocd-redis. Existing values are never changed.
Required permissions: create secrets, and get and patch for these two names.

Examples:
  # In an init container, with the ServiceAccount of the Pod
  argocd-ocm-cmp agent prepare --namespace argocd";

/// The arguments of `agent install`.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
pub struct InstallArgs {
    /// Folder, which must exist
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
    match duration::parse(text)? {
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
