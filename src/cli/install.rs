//! The command lines of `install` and `uninstall`.

use super::gitopscluster::name;
use super::{HubArgs, Output};
use crate::install::{ARGOCD_IMAGE, Feature, IMAGE};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use controller::pull::Dialect;
use ocm::names;
use std::path::PathBuf;

/// The arguments of `install`.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct HubInstallArgs {
    /// The namespace of Argo CD
    #[arg(long, short, value_name = "NAME", default_value = "argocd", value_parser = names::namespace)]
    pub namespace: String,

    /// What to install: names; what they need comes with them
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "plugin,project,controller"
    )]
    pub features: Vec<Feature>,

    /// The image of this program
    #[arg(long, value_name = "IMAGE", default_value = IMAGE, value_parser = NonEmptyStringValueParser::new())]
    pub image: String,

    /// The image of Argo CD from which the sidecar takes kustomize and helm: use the one that you run
    #[arg(long, value_name = "IMAGE", default_value = ARGOCD_IMAGE, value_parser = NonEmptyStringValueParser::new())]
    pub argocd_image: String,

    /// Secrets of that namespace by which the images are pulled
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name)]
    pub image_pull_secrets: Vec<String>,

    /// How many replicas the controller has [default: 2]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub replicas: Option<u16>,

    /// Conventions of the pull model: labels, names and defaults
    #[arg(long, value_enum, value_name = "NAME", default_value = "argocd-pull-integration")]
    pub pull_dialect: Dialect,

    /// Deliver only what the policy in this file allows [default: the policy of the hub, on a new hub a sample]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy_configmap", "no_policy"])]
    pub policy: Option<PathBuf>,

    /// Deliver only what the policy in this ConfigMap of yours allows, under its key policy.yaml
    #[arg(long, value_name = "NAME", value_parser = name, conflicts_with = "no_policy")]
    pub policy_configmap: Option<String>,

    /// Install the plugin without a policy: AppProjects may deliver anything but plain Secrets
    #[arg(long)]
    pub no_policy: bool,

    /// Only what is added to Argo CD's own objects, beside a Helm chart that has brought the rest
    #[arg(long)]
    pub additions_only: bool,

    /// Print the objects instead, for kubectl apply --server-side or for Git
    #[arg(long, conflicts_with_all = ["kubeconfig", "context", "force_conflicts"])]
    pub print: bool,

    /// How to print them: YAML documents, or a JSON object a line
    #[arg(long, short, value_enum, default_value = "yaml", requires = "print")]
    pub output: Output,

    /// Take over fields that somebody else has set otherwise
    #[arg(long)]
    pub force_conflicts: bool,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,
}

const INSTALL_EXAMPLES: &str = "\
It applies all or, where it finds something in the way, nothing. What is right already is not written, so it can be done again at any
time, and it is the upgrade too. Features that are left out are not taken away.
With the plugin comes a policy. A new hub gets a sample, which allows only the quick start of the README; a policy that is there is
never overwritten, and a sidecar that is there without one stays open until you pass --policy or the feature policy.
Rights: those of an administrator of the hub.

Examples:
  # The plugin and the controller
  argocd-ocm-cmp install --context hub

  # See it first
  argocd-ocm-cmp install --print

  # The same by kubectl
  argocd-ocm-cmp install --print | kubectl apply --server-side --field-manager argocd-ocm-cmp -f -

  # With the pull model and the extension of Argo CD's pages, for an Argo CD in another namespace
  argocd-ocm-cmp install --namespace gitops --features plugin,project,pull,ui

  # With your own policy
  argocd-ocm-cmp install --policy policy.yaml

  # From a registry of one's own
  argocd-ocm-cmp install --image registry.example.com/argocd-ocm-cmp:TAG --argocd-image registry.example.com/argocd:TAG";

/// The arguments of `uninstall`.
#[derive(Debug, Args)]
#[command(after_help = UNINSTALL_EXAMPLES)]
pub struct HubUninstallArgs {
    /// The namespace of Argo CD
    #[arg(long, short, value_name = "NAME", default_value = "argocd", value_parser = names::namespace)]
    pub namespace: String,

    /// Only what is added to Argo CD's own objects, before a Helm release with the rest is uninstalled
    #[arg(long)]
    pub additions_only: bool,

    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// The hub.
    #[command(flatten)]
    pub hub: HubArgs,
}

const UNINSTALL_EXAMPLES: &str = "\
Works, cluster Secrets and Applications stay as they are, and so does all that runs on managed clusters. A CRD stays while there are
objects of it, and the AppProject managed-clusters while there are Applications of it.

Examples:
  # See what would go
  argocd-ocm-cmp uninstall --dry-run --context hub

  # Have it go
  argocd-ocm-cmp uninstall --context hub";
