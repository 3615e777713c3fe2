//! The command line: the arguments as typed, before any command runs.

mod agent;
mod cluster_proxy;
mod controller;
mod doctor;
mod gitopscluster;
mod hold;
mod images;
mod install;
mod live;
mod migrate;
mod namespace;
mod output;
mod process;
mod pull;
mod rollout;
mod status;
mod view;

pub use agent::{AgentCommand, InstallArgs, PrepareArgs, RestartArgs, RunArgs, TargetArgs};
pub use cluster_proxy::ClusterProxyArgs;
pub use controller::ControllerArgs;
pub use doctor::DoctorArgs;
pub use gitopscluster::{GitOpsClusterCommand, GitOpsClusterStatusArgs};
pub use hold::{HoldArgs, ReleaseArgs};
pub use images::ImageArgs;
pub use install::{HubInstallArgs, HubUninstallArgs};
pub use live::LiveArgs;
pub use migrate::{MigrateCommand, MigratePlanArgs};
pub use namespace::ArgoCdNamespace;
pub use output::{Color, ListFormat, Output};
pub use process::{LogArgs, ProcessNamespace};
pub use pull::PullArgs;
pub use rollout::{RolloutArgs, RolloutCommand, RolloutStatusArgs, RolloutUndoArgs};
pub use status::StatusArgs;
pub use view::{LogsArgs, ObjectsArgs, ViewArgs};

use crate::completion;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use generate::settings::{Arguments, FlagValues, SETTINGS, Setting, ValueType};
use generate::similar::is_typing_error;
use std::path::PathBuf;

/// GitOps by pull: Argo CD Applications delivered to managed clusters as Open Cluster Management ManifestWorks.
#[derive(Debug, Parser)]
#[command(name = "argocd-ocm-cmp", version, mut_subcommands(without_env_values))]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Parses the arguments of the process. Exits if they are invalid, or ask for help.
    pub fn from_process() -> Self {
        Self::try_parse().unwrap_or_else(|error| with_close_suggestions(error).exit())
    }
}

/// Hides the values of environment variables in the help, because some are secret.
fn without_env_values(command: clap::Command) -> clap::Command {
    command
        .mut_args(|flag| flag.hide_env_values(true))
        .mut_subcommands(without_env_values)
}

/// Removes suggestions that are no correction of a typing error: clap compares how words sound alike.
fn with_close_suggestions(mut error: clap::Error) -> clap::Error {
    for (typed, suggested) in [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let is_far = |suggestion: &str| match error.get(typed) {
            Some(ContextValue::String(typed)) => !is_typing_error(typed, suggestion),
            _ => false,
        };
        let is_far = match error.get(suggested) {
            Some(ContextValue::String(suggestion)) => is_far(suggestion),
            Some(ContextValue::Strings(suggestions)) => suggestions.iter().any(|suggestion| is_far(suggestion)),
            _ => false,
        };
        if is_far {
            error.remove(suggested);
        }
    }
    // An empty list would be an empty line.
    if matches!(error.get(ContextKind::Suggested), Some(ContextValue::StyledStrs(others)) if others.is_empty()) {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// The roles of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Wrap the manifests of a folder in one ManifestWork per managed cluster, and print them
    Generate(Box<PrintArgs>),
    /// Show what would change on the hub, object by object
    Diff(Box<DiffArgs>),
    /// Print roles with the permissions that the objects of a folder need on managed clusters
    Rights(Box<RightsArgs>),
    /// Show the health of an Application on its managed clusters, object by object
    Status(StatusArgs),
    /// Show delivered objects as they are on a managed cluster, and what they own
    #[command(after_help = view::GET_EXAMPLES)]
    Get(Box<ObjectsArgs>),
    /// Show the Events of delivered objects, and of what they own
    #[command(after_help = view::EVENTS_EXAMPLES)]
    Events(Box<ObjectsArgs>),
    /// Show the logs of the Pods of a delivered object
    Logs(Box<LogsArgs>),
    /// Work with the GitOpsClusters of a hub
    #[command(subcommand, name = "gitopscluster")]
    GitOpsCluster(GitOpsClusterCommand),
    /// Migrate from another controller of the pull model
    #[command(subcommand)]
    Migrate(MigrateCommand),
    /// Freeze managed clusters: what runs there stays as it is until the hold ends
    Hold(HoldArgs),
    /// End the holds of managed clusters
    Release(ReleaseArgs),
    /// Look at the rollout of a Placement, let it go on, or take it back
    #[command(subcommand)]
    Rollout(RolloutCommand),
    /// Check a hub for problems, and print what to do about each
    Doctor(DoctorArgs),
    /// Run the controllers of the hub, which report the state of works in Applications
    Controller(Box<ControllerArgs>),
    /// Serve the view into managed clusters to Argo CD's pages: live objects, Events, logs
    Live(LiveArgs),
    /// Install the plugin and the controller on a hub, or upgrade them
    Install(HubInstallArgs),
    /// Uninstall from a hub; delivered workloads stay
    Uninstall(HubUninstallArgs),
    /// Supervise argocd-agent on a managed cluster
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Print the parameters of an Application as Argo CD's UI shows them
    Parameters,
    /// Show which kernel isolation confines kustomize and helm here
    Confinement,
    /// Work with policies, which limit what each AppProject may deliver
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Work with health rules of custom kinds
    #[command(subcommand)]
    Health(HealthCommand),
    /// Print the completion script for a shell
    Completion(CompletionArgs),
    /// Print the manual page of the program or of a command
    Man(ManArgs),
    /// Print the version
    Version(VersionArgs),
}

/// The arguments of `version`.
#[derive(Debug, Args)]
pub struct VersionArgs {
    /// Output format [default: a line]
    #[arg(long, short, value_enum)]
    pub output: Option<Output>,
}

/// The commands for policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Validate a policy, and print what it lets each AppProject deliver
    Check(PolicyCheckArgs),
}

/// The arguments of `policy check`.
#[derive(Debug, Args)]
pub struct PolicyCheckArgs {
    /// The policy, or a ConfigMap with it as policy.yaml
    pub file: PathBuf,

    /// Print only what this AppProject may deliver; fails if it may deliver nothing
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
}

/// The commands for health rules.
#[derive(Debug, Subcommand)]
pub enum HealthCommand {
    /// Validate health rules, and print what they report, or the health of objects
    Check(HealthCheckArgs),
}

/// The arguments of `health check`.
#[derive(Debug, Args)]
pub struct HealthCheckArgs {
    /// The rules, or a ConfigMap with them as health.txt
    pub file: PathBuf,

    /// A file with objects, with their status, whose health to print
    pub object: Option<PathBuf>,
}

/// The arguments of `completion`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub struct CompletionArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  # In the current bash, and in every new one
  source <(argocd-ocm-cmp completion bash)
  mkdir -p ~/.local/share/bash-completion/completions
  argocd-ocm-cmp completion bash > ~/.local/share/bash-completion/completions/argocd-ocm-cmp

  # In every new zsh, if the folder is in its fpath
  mkdir -p ~/.zfunc
  argocd-ocm-cmp completion zsh > ~/.zfunc/_argocd-ocm-cmp

  # In the current fish, and in every new one
  argocd-ocm-cmp completion fish | source
  mkdir -p ~/.config/fish/completions
  argocd-ocm-cmp completion fish > ~/.config/fish/completions/argocd-ocm-cmp.fish";

/// The arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Command, such as 'status' or 'policy check' [default: all commands]
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

const MAN_EXAMPLES: &str = "\
Examples:
  # Read the page, or the part about one command
  argocd-ocm-cmp man | man -l -
  argocd-ocm-cmp man status | man -l -

  # Install the page for `man argocd-ocm-cmp`
  argocd-ocm-cmp man > ~/.local/share/man/man1/argocd-ocm-cmp.1";

const EXAMPLES: &str = "\
Examples:
  # Print the works for a managed cluster
  argocd-ocm-cmp generate guestbook --clusters cluster1 --name guestbook

  # The same for two clusters, without the tests, as JSON lines
  argocd-ocm-cmp generate shop --clusters eu1,us1 --name shop --exclude '*test*' --output json

  # Wrap the output of helm or kustomize
  argocd-ocm-cmp generate charts/shop --clusters eu1 --name shop --helm-value-files values-eu.yaml
  kustomize build overlays/eu | argocd-ocm-cmp generate - --clusters eu1 --name shop

  # Roll out to the clusters of a placement, one at a time
  argocd-ocm-cmp generate shop --placement argocd/europe --rollout Progressive --rollout-max-concurrency 1 --name shop

  # Print the works of a folder, and their sizes
  argocd-ocm-cmp generate shop --clusters eu1 --name shop --summary

  # Apply the works without Argo CD
  argocd-ocm-cmp generate shop --clusters eu1 --name shop | kubectl apply -f -

As an Argo CD plugin it runs without arguments: clusters come from the plugin env TARGET_CLUSTER or the
parameter clusters, the name and the namespace from the Application.";

/// The arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PrintArgs {
    #[command(flatten)]
    pub(crate) generate: GenerateArgs,

    /// Output format of the works, json or yaml, or of their summary [default: yaml, and table with --summary]
    #[arg(long, short, value_enum)]
    pub output: Option<ListFormat>,

    /// List the works instead, with the wave, the number of objects, and the bytes as OCM counts them
    #[arg(long)]
    pub summary: bool,
}

/// The arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    #[command(flatten)]
    pub(crate) generate: GenerateArgs,

    #[command(flatten)]
    pub(crate) hub: HubArgs,

    /// Compare with the works in a file from generate or kubectl get instead of a hub; '-' is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    pub file: Option<PathBuf>,

    /// List the changes instead of showing them as diff -u does
    #[arg(long, short, value_enum)]
    pub output: Option<ListFormat>,

    /// When to colour the output
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// The arguments of `rights`.
#[derive(Debug, Args)]
#[command(after_help = RIGHTS_EXAMPLES)]
pub struct RightsArgs {
    #[command(flatten)]
    pub(crate) generate: GenerateArgs,
}

const RIGHTS_EXAMPLES: &str = "\
The permissions are those for the agent itself, or for the executor that the settings or the policy name. An executor gets a Role in each
namespace, which must exist, and a ClusterRole for cluster-scoped objects only.
Without --clusters and --placement, overlays do not count. The default of --name is the name of the folder, if it can be one.

Examples:
  # Let OCM's agent on a managed cluster apply the folder
  argocd-ocm-cmp rights shop | kubectl --context eu1 apply -f -

  # Let an executor apply it
  argocd-ocm-cmp rights shop --executor shop/deployer | kubectl --context eu1 apply -f -";

/// The connection to the hub.
#[derive(Clone, Debug, Default, Args)]
pub struct HubArgs {
    /// Kubeconfig of the hub [default: as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::contexts))]
    pub context: Option<String>,
}

impl HubArgs {
    /// Returns the connection settings of the hub.
    pub fn connection(&self) -> hub::Connection {
        hub::Connection {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}

const DIFF_EXAMPLES: &str = "\
Exit code: 0 without differences, 1 with differences, 2 on errors.

Examples:
  # Show what the next sync would change
  argocd-ocm-cmp diff shop --clusters eu1 --name shop --context hub

  # List the changed objects, and the clusters of each
  argocd-ocm-cmp diff shop --clusters eu1,us1 --name shop --context hub -o wide

  # Compare two versions without a hub
  argocd-ocm-cmp generate shop --clusters eu1 --name shop > before.yaml
  argocd-ocm-cmp diff shop --clusters eu1 --name shop --file before.yaml

  # Compare with works listed by kubectl
  kubectl get manifestworks -A -o yaml | argocd-ocm-cmp diff shop --clusters eu1 --name shop --file -";

/// The arguments that select what to generate.
#[derive(Clone, Debug, Default, Args)]
pub struct GenerateArgs {
    /// Folder with the manifests, or - for manifests from standard input [default: the current folder]
    pub folder: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) given: SettingFlags,

    /// AppProject, for which --policy has an entry [default: as Argo CD passes it]
    #[arg(long, value_name = "NAME", help_heading = "Set by administrators inside Argo CD")]
    pub project: Option<String>,
}

impl From<GenerateArgs> for Arguments {
    fn from(args: GenerateArgs) -> Self {
        Self {
            folder: args.folder,
            given: args.given.0,
            project: args.project,
            launcher: None,
        }
    }
}

/// The flags of settings: one for each row of their table.
#[derive(Clone, Debug, Default)]
pub struct SettingFlags(FlagValues);

impl Args for SettingFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        SETTINGS
            .iter()
            .fold(command, |command, setting| command.arg(flag(setting)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for setting in SETTINGS {
            if let Some(texts) = matches.get_many::<String>(setting.name) {
                self.0.add(setting, texts.cloned());
            }
        }
        Ok(())
    }
}

/// Returns the heading in the help under which a setting is listed.
fn heading(setting: &Setting) -> &'static str {
    match setting.name {
        "clusters" | "name" | "namespace" | "overlays" => "Targets",
        name if name.starts_with("helm-") => "Helm",
        name if setting.parameter && name.starts_with("kustomize-") => "Kustomize",
        name if name == "placement" || name.starts_with("rollout") => "Placement and rollout",
        _ if !setting.parameter => "Set by administrators inside Argo CD",
        _ => "Manifests and updates",
    }
}

fn flag(setting: &Setting) -> Arg {
    // The table is in Markdown.
    let plain = |text: &str| text.replace('`', "");
    let help = match setting.default {
        "–" => plain(setting.about),
        default => format!("{} [default: {}]", plain(setting.about), plain(default)),
    };
    let flag = Arg::new(setting.name)
        .long(setting.name)
        .help(help)
        .help_heading(heading(setting));
    let flag = match setting.name {
        // Most users pass one cluster.
        "clusters" => flag
            .visible_alias("cluster")
            .add(ArgValueCompleter::new(completion::clusters)),
        // As in kubectl, the flag alone is strict.
        "validate" => flag
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("strict"),
        // Options, a list in YAML, and a suffix begin with dashes.
        "kustomize-options" | "kustomize-patches" | "kustomize-name-suffix" => flag.allow_hyphen_values(true),
        _ => flag,
    };
    match setting.value_type {
        ValueType::Flag => flag
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        ValueType::Text(value) => flag.value_name(value),
        ValueType::List(value) | ValueType::Map(value) => flag.value_name(value).action(ArgAction::Append),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use generate::settings::{Env, Settings};

    #[test]
    fn kustomize_options_may_begin_with_dashes() {
        let typed = "generate --kustomize-options --enable-helm --cluster cluster1 --name web";
        let typed = typed.split(' ');
        let Command::Generate(args) = Cli::try_parse_from(["argocd-ocm-cmp"].into_iter().chain(typed))
            .expect("it parses")
            .command
        else {
            panic!("not generate");
        };
        let settings = Settings::resolve(args.generate.into(), &Env::default()).expect("settings");
        assert_eq!(settings.source.kustomize.options, ["--enable-helm"]);
        assert_eq!(settings.name.to_string(), "web");
    }
}
