//! The command line: the arguments as typed, before any command runs.

mod agent;
mod controller;
mod doctor;
mod gitopscluster;
mod images;
mod install;
mod pull;
mod status;

pub use agent::{AgentCommand, InstallArgs, PlaceArgs, PrepareArgs, RestartArgs, RunArgs};
pub use controller::ControllerArgs;
pub use doctor::{DoctorArgs, DoctorFormat};
pub use gitopscluster::{FleetFormat, GitOpsClusterCommand, GitOpsClusterStatusArgs};
pub use images::ImageArgs;
pub use install::{HubInstallArgs, HubUninstallArgs};
pub use pull::PullArgs;
pub use status::{Format, StatusArgs};

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};
use generate::print;
use generate::settings::{Arguments, Form, Given, SETTINGS, Setting};
use std::path::PathBuf;

/// GitOps by pull: Argo CD Applications delivered to managed clusters as Open Cluster Management ManifestWorks.
#[derive(Debug, Parser)]
#[command(name = "argocd-ocm-cmp", version, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The roles of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Wrap the manifests of a folder in one ManifestWork per managed cluster, and print them
    Generate(Box<PrintArgs>),
    /// Show what would change on the hub, object by object
    Diff(Box<DiffArgs>),
    /// Show how an Application fares on its managed clusters, object by object
    Status(StatusArgs),
    /// Work with the GitOpsClusters of a hub
    #[command(subcommand, name = "gitopscluster")]
    GitOpsCluster(GitOpsClusterCommand),
    /// Check a hub: what is wrong with it, and what to do about that
    Doctor(DoctorArgs),
    /// Run beside Argo CD on the hub, and bring the state of the works back into Applications
    Controller(Box<ControllerArgs>),
    /// Install what a hub needs beside its Argo CD, or upgrade it
    Install(HubInstallArgs),
    /// Uninstall from a hub; delivered workloads stay
    Uninstall(HubUninstallArgs),
    /// Look after Argo CD's agent on a managed cluster
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Print what Argo CD's UI shows of the parameters of an Application
    Parameters,
    /// Show which walls of the kernel confine kustomize and helm here
    Confinement,
    /// Work with the file that says what each AppProject may deliver
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Print what completes the program's commands and flags in a shell
    Completion(CompletionArgs),
    /// Print the manual page
    #[command(after_help = MAN_EXAMPLES)]
    Man,
}

/// What can be done with a policy.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Say what a policy lets projects deliver, or everything that is wrong with it
    Check(PolicyCheckArgs),
}

/// The arguments of `policy check`.
#[derive(Debug, Args)]
pub struct PolicyCheckArgs {
    /// The policy
    pub file: PathBuf,

    /// Only what this AppProject may deliver; it is an error when that is nothing
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
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
  # In this bash, and in every one to come
  source <(argocd-ocm-cmp completion bash)
  argocd-ocm-cmp completion bash > ~/.local/share/bash-completion/completions/argocd-ocm-cmp

  # In every zsh, whose fpath must have the folder
  argocd-ocm-cmp completion zsh > ~/.zfunc/_argocd-ocm-cmp

  # In every fish
  argocd-ocm-cmp completion fish > ~/.config/fish/completions/argocd-ocm-cmp.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  # Read it once
  argocd-ocm-cmp man | man -l -

  # Have `man argocd-ocm-cmp` find it
  argocd-ocm-cmp man > ~/.local/share/man/man1/argocd-ocm-cmp.1";

const EXAMPLES: &str = "\
Examples:
  # See what a managed cluster would be given
  argocd-ocm-cmp generate guestbook --clusters cluster1 --name guestbook

  # The same for two clusters, without the tests, as JSON lines
  argocd-ocm-cmp generate shop --clusters eu1,us1 --name shop --exclude '*test*' --output json

  # What kustomize or helm make of a folder is wrapped like plain manifests
  argocd-ocm-cmp generate charts/shop --clusters eu1 --name shop --helm-value-files values-eu.yaml
  kustomize build overlays/eu | argocd-ocm-cmp generate - --clusters eu1 --name shop

  # Every cluster of a placement, one after the other
  argocd-ocm-cmp generate shop --placement argocd/europe --rollout Progressive --rollout-max-concurrency 1 --name shop

  # See into what works a folder is cut, and how large they are
  argocd-ocm-cmp generate shop --clusters eu1 --name shop --summary

  # Deliver by hand
  argocd-ocm-cmp generate shop --clusters eu1 --name shop | kubectl apply -f -

As an Argo CD plugin it runs without arguments: clusters come from the plugin env TARGET_CLUSTER or the
parameter clusters, the name and the namespace from the Application.";

/// The arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PrintArgs {
    /// What to generate.
    #[command(flatten)]
    pub generate: GenerateArgs,

    /// How to print the works: JSON lines for Argo CD, or YAML to read
    #[arg(long, short, value_enum, default_value = "yaml")]
    pub output: Output,

    /// Print a table of the works instead: wave, objects, and bytes as OCM counts them
    #[arg(long, conflicts_with = "output")]
    pub summary: bool,
}

/// The arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// What to generate.
    #[command(flatten)]
    pub generate: GenerateArgs,

    /// The hub to compare with.
    #[command(flatten)]
    pub hub: HubArgs,

    /// Compare with the works in this file instead of a hub's, as generate or kubectl get print them; '-' is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    pub file: Option<PathBuf>,

    /// Whether lines have colours
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

/// How to get to the hub.
#[derive(Clone, Debug, Default, Args)]
pub struct HubArgs {
    /// Kubeconfig of the hub [default: as kubectl finds it]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl HubArgs {
    /// Returns the connection settings of the hub.
    #[must_use]
    pub fn connection(&self) -> hub::Connection {
        hub::Connection {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
        }
    }
}

impl From<Output> for print::Output {
    fn from(output: Output) -> Self {
        match output {
            Output::Json => Self::Json,
            Output::Yaml => Self::Yaml,
        }
    }
}

/// When lines have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

const DIFF_EXAMPLES: &str = "\
Exit code: 0 when there is no difference, 1 when there is one, 2 when that cannot be told.

Examples:
  # What would the next sync change?
  argocd-ocm-cmp diff shop --clusters eu1 --name shop --context hub

  # What does a change do, without a hub?
  argocd-ocm-cmp generate shop --clusters eu1 --name shop > before.yaml
  argocd-ocm-cmp diff shop --clusters eu1 --name shop --file before.yaml

  # The same from what kubectl sees
  kubectl get manifestworks -A -o yaml | argocd-ocm-cmp diff shop --clusters eu1 --name shop --file -";

/// What to generate.
#[derive(Debug, Default, Args)]
pub struct GenerateArgs {
    /// Folder with the manifests, or - for manifests from standard input [default: the current folder]
    pub folder: Option<PathBuf>,

    /// What was typed for settings, which have other sources too.
    #[command(flatten)]
    pub given: SettingFlags,
}

impl From<GenerateArgs> for Arguments {
    fn from(args: GenerateArgs) -> Self {
        Self {
            folder: args.folder,
            given: args.given.0,
            launcher: None,
        }
    }
}

/// The flags of settings: one for each row of their table.
#[derive(Debug, Default)]
pub struct SettingFlags(Given);

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

fn flag(setting: &Setting) -> Arg {
    // The table is in Markdown.
    let plain = |text: &str| text.replace('`', "");
    let help = match setting.default {
        "–" => plain(setting.about),
        default => format!("{} [default: {}]", plain(setting.about), plain(default)),
    };
    let flag = Arg::new(setting.name).long(setting.name).help(help);
    let flag = match setting.name {
        // One is what most people give.
        "clusters" => flag.visible_alias("cluster"),
        // Its value consists of options.
        "kustomize-options" => flag.allow_hyphen_values(true),
        _ => flag,
    };
    match setting.form {
        Form::Flag => flag
            .value_name("BOOL")
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        Form::Text(value) => flag.value_name(value),
        Form::List(value) | Form::Map(value) => flag.value_name(value).action(ArgAction::Append),
    }
}

/// The form of the printed works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// One JSON object a line: what Argo CD reads fastest, and without any reinterpretation.
    Json,
    /// YAML documents for people and kubectl.
    #[default]
    Yaml,
}

#[cfg(test)]
mod tests {
    use super::*;
    use generate::settings::{Env, Settings};

    #[test]
    fn options_of_kustomize_are_a_value() {
        let typed = "generate --kustomize-options --enable-helm --cluster cluster1 --name web";
        let typed = typed.split(' ');
        let Command::Generate(args) = Cli::try_parse_from(["argocd-ocm-cmp"].into_iter().chain(typed))
            .expect("it parses")
            .command
        else {
            panic!("not generate");
        };
        let settings = Settings::resolve(args.generate.into(), &Env::default()).expect("settings");
        assert_eq!(settings.source.kustomize_options, ["--enable-helm"]);
        assert_eq!(settings.name.to_string(), "web");
    }
}
