//! The command lines of `install` and `uninstall`.

use super::namespace::name;
use super::{ArgoCdNamespace, HubArgs, Output};
use crate::install::{AGENT_IMAGE, ARGOCD_IMAGE, Feature};
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
use hub_state::pull::Dialect;
use ocm::{image, names};
use std::path::PathBuf;

/// The arguments of `install`.
#[derive(Debug, Args)]
#[command(after_help = INSTALL_EXAMPLES, mut_arg("namespace", |flag| flag.value_parser(names::namespace)))]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub struct HubInstallArgs {
    #[command(flatten)]
    pub(crate) argo_cd: ArgoCdNamespace,

    /// Features to install, with the features that they require
    #[arg(
        long,
        value_enum,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "plugin,project,controller,agent-admission"
    )]
    pub features: Vec<Feature>,

    /// The image of this program [default: the image of the installation; required on a new hub]
    #[arg(long, value_name = "IMAGE", value_parser = image())]
    pub image: Option<String>,

    /// The image of Argo CD for the sidecar's tools and for the add-on.
    #[arg(long, value_name = "IMAGE", value_parser = image(), help = argocd_image_help())]
    pub argocd_image: Option<String>,

    /// The image of argocd-agent for the principal, which the agents then run too.
    #[arg(long, value_name = "IMAGE", value_parser = image(), help = agent_image_help())]
    pub agent_image: Option<String>,

    /// Image pull secrets in the namespace of Argo CD
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = name)]
    pub image_pull_secrets: Vec<String>,

    /// Number of replicas of the controller [default: that of the installation, or 2]
    #[arg(
        long,
        value_name = "NUMBER",
        value_parser = clap::value_parser!(u16).range(1..=100),
        conflicts_with = "additions_only"
    )]
    pub replicas: Option<u16>,

    /// Conventions of the pull model: labels, names and defaults [default: those of the installation, or argocd-pull-integration]
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "additions_only")]
    pub pull_dialect: Option<Dialect>,

    /// Deliver only what the policy in this file allows [default: the existing policy of the hub, or a sample on a new hub]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["policy_configmap", "no_policy", "additions_only"])]
    pub policy: Option<PathBuf>,

    /// Deliver only what the policy in an existing ConfigMap allows, under its key policy.yaml
    #[arg(long, value_name = "NAME", value_parser = name, conflicts_with = "no_policy")]
    pub policy_configmap: Option<String>,

    /// Install the plugin without a policy: AppProjects may deliver anything but plain Secrets
    #[arg(long)]
    pub no_policy: bool,

    /// Install only the additions of the features to Argo CD's own objects, if a Helm chart has installed the rest, and remove those of
    /// others
    #[arg(long, requires = "features")]
    pub additions_only: bool,

    /// Print the objects instead of applying them, for kubectl apply --server-side or for Git
    #[arg(long, conflicts_with_all = ["kubeconfig", "context", "force_conflicts"])]
    pub print: bool,

    /// Show the objects that would be created, and the changes of Argo CD's own objects, without changing anything
    #[arg(long, conflicts_with = "print")]
    pub dry_run: bool,

    /// Output format of the objects
    #[arg(long, short, value_enum, default_value = "yaml", requires = "print")]
    pub output: Output,

    /// Take over fields that other field managers have set to other values
    #[arg(long)]
    pub force_conflicts: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

/// Returns the parser of the name of an image.
fn image() -> impl TypedValueParser<Value = String> {
    NonEmptyStringValueParser::new().try_map(|text| image::check(&text))
}

fn argocd_image_help() -> String {
    format!(
        "The image of Argo CD from which the sidecar copies kustomize and helm, and which the add-on installs [default: that of the \
         repo-server for the sidecar, and for the add-on that of the installation, or {ARGOCD_IMAGE}]"
    )
}

fn agent_image_help() -> String {
    format!(
        "The image of argocd-agent for the principal, which the agents then run too [default: that of the installation, or \
         {AGENT_IMAGE}]"
    )
}

const INSTALL_EXAMPLES: &str = "\
It applies all objects, or none if it finds a problem. It is idempotent, and upgrades an existing installation. Installed features that
are not in --features stay, except with --additions-only.
The feature plugin includes a policy. A new hub gets a sample, which allows only the quick start of the README. An existing policy is
never overwritten, and an existing sidecar without a policy stays open until you pass --policy or the feature policy.
Required permissions: those of an administrator of the hub.

Examples:
  # The plugin, the controller, and the limits on agents of managed clusters
  argocd-ocm-cmp install --image registry.example.com/argocd-ocm-cmp:TAG --context hub

  # Show what would change on the hub
  argocd-ocm-cmp install --image registry.example.com/argocd-ocm-cmp:TAG --dry-run --context hub

  # Install with kubectl
  argocd-ocm-cmp install --image registry.example.com/argocd-ocm-cmp:TAG --print |
    kubectl apply --server-side --field-manager argocd-ocm-cmp -f -

  # Add the pull model and the extension of Argo CD's pages to an installation, for an Argo CD in another namespace
  argocd-ocm-cmp install --namespace gitops --features pull,ui

  # Change to your own policy
  argocd-ocm-cmp install --policy policy.yaml";

/// The arguments of `uninstall`.
#[derive(Debug, Args)]
#[command(after_help = UNINSTALL_EXAMPLES, mut_arg("namespace", |flag| flag.value_parser(names::namespace)))]
pub struct HubUninstallArgs {
    #[command(flatten)]
    pub(crate) argo_cd: ArgoCdNamespace,

    /// Remove only the additions to Argo CD's own objects, before you uninstall a Helm release with the rest
    #[arg(long)]
    pub additions_only: bool,

    /// Show the objects that would be removed, and the changes of Argo CD's own objects, without changing anything
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

const UNINSTALL_EXAMPLES: &str = "\
Works, cluster Secrets, Applications and the workloads on managed clusters stay. A CRD stays while it has objects, and AppProject
managed-clusters while it has Applications.

Examples:
  # Print what would be removed
  argocd-ocm-cmp uninstall --dry-run --context hub

  # Remove it
  argocd-ocm-cmp uninstall --context hub";
