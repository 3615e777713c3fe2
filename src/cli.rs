//! The command line: what was typed, nothing done with it.

use clap::{Args, Parser, Subcommand, ValueEnum};
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
    Generate(Box<GenerateArgs>),
    /// Work with the file that says what each AppProject may deliver
    #[command(subcommand)]
    Policy(PolicyCommand),
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

const EXAMPLES: &str = "\
Examples:
  # See what a managed cluster would be given
  argocd-ocm-cmp generate guestbook --cluster cluster1 --name guestbook

  # The same for two clusters, without the tests, as JSON lines
  argocd-ocm-cmp generate shop --cluster eu1,us1 --name shop --exclude '*test*' --output json

  # Deliver by hand
  argocd-ocm-cmp generate shop --cluster eu1 --name shop | kubectl apply -f -

As an Argo CD plugin it runs without arguments: clusters come from the plugin env TARGET_CLUSTER or the
parameter clusters, the name and the namespace from the Application.";

/// The arguments of `generate`. All are optional here: see [`crate::generate::settings`] for where else values come from.
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub struct GenerateArgs {
    /// Folder with the manifests [default: the current folder]
    pub folder: Option<PathBuf>,

    /// Managed cluster to wrap for; repeat it or separate by commas
    #[arg(long = "cluster", value_name = "NAME")]
    pub clusters: Vec<String>,

    /// Name of the Application, after which the work is named
    #[arg(long)]
    pub name: Option<String>,

    /// Namespace on the managed cluster for objects that name none [default: "default"]
    #[arg(long)]
    pub namespace: Option<String>,

    /// Whether to read sub-folders [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub recurse: Option<String>,

    /// Read only the files that match; '*' crosses '/', '{a,b}' is either
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,

    /// Leave out the files that match
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,

    /// Kind of custom resource without namespace, as Kind.group, where its CRD is not in the folder
    #[arg(long, value_name = "KIND.GROUP")]
    pub cluster_scoped: Vec<String>,

    /// Resource of a custom kind, as Kind.group=resource, where a regular plural would be wrong and its CRD is not in the folder
    #[arg(long, value_name = "KIND.GROUP=RESOURCE")]
    pub plurals: Vec<String>,

    /// Create the namespace for objects that name none, as Argo CD's CreateNamespace does for its own clusters
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub create_namespace: Option<String>,

    /// Delete Namespaces, and all that is in them, when they leave Git or the Application is removed; else they stay
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub delete_namespaces: Option<String>,

    /// Delete CRDs, and all objects of their kinds, when they leave Git or the Application is removed; else they stay
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub delete_crds: Option<String>,

    /// How the agent updates objects: ServerSideApply, Update, CreateOnly or ReadOnly [default: what suits each]
    #[arg(long, value_name = "STRATEGY")]
    pub update_strategy: Option<String>,

    /// Whether works carry the rules by which the agent judges health, which OCM knows from v1.0 on [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub condition_rules: Option<String>,

    /// ServiceAccount on the managed cluster by whose rights the agent applies [default: the agent's own]
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub executor: Option<String>,

    /// Deliver Secrets as they are, although everyone who sees the Application in Argo CD can read them
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub allow_secrets: Option<String>,

    /// Print nothing, and succeed, when there are no manifests: Argo CD then removes what was there
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub allow_empty: Option<String>,

    /// Most bytes that all files together may have, as a quantity such as 10M; 0 is no limit [default: 10M]
    #[arg(long, value_name = "QUANTITY")]
    pub max_size: Option<String>,

    /// Most bytes of manifests in one work that OCM takes, as its webhook counts them; 0 is no limit [default: 512000]
    #[arg(long, value_name = "BYTES")]
    pub manifest_limit: Option<String>,

    /// Most bytes of objects together in one work, beyond which it is split; 0 is no limit [default: 200000]
    #[arg(long, value_name = "BYTES")]
    pub work_size: Option<String>,

    /// File that says what each AppProject may deliver
    #[arg(long, value_name = "FILE")]
    pub policy: Option<String>,

    /// How to print the works: JSON lines for Argo CD, or YAML to read
    #[arg(long, short, value_enum, default_value = "yaml")]
    pub output: Output,
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
