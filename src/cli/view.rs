//! The command lines of `get`, `events` and `logs`.

use super::namespace::name;
use super::{ArgoCdNamespace, ClusterProxyArgs, HubArgs, ListFormat};
use crate::completion;
use crate::view::ObjectName;
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use ocm::duration;
use std::time::Duration;

/// The arguments that `get`, `events` and `logs` share.
#[derive(Debug, Args)]
pub struct ViewArgs {
    /// The Application: NAME, or NAMESPACE/NAME when it is outside Argo CD's namespace
    #[arg(value_name = "APP", add = ArgValueCompleter::new(completion::applications))]
    pub application: String,

    /// The managed cluster [default: that of the Application, if it has one]
    #[arg(long, value_name = "NAME", value_parser = name, add = ArgValueCompleter::new(completion::clusters))]
    pub cluster: Option<String>,

    #[command(flatten)]
    pub(crate) argo_cd: ArgoCdNamespace,

    #[command(flatten)]
    pub(crate) hub: HubArgs,

    /// Token of the hub or of the managed cluster, which the cluster receives
    #[arg(long, env = "ARGOCD_OCM_CMP_TOKEN", value_name = "TOKEN")]
    pub token: Option<String>,

    /// Send the token of the kubeconfig: whoever rules the managed cluster can then act as you on the hub
    #[arg(long, env = "ARGOCD_OCM_CMP_SEND_MY_TOKEN")]
    pub send_my_token: bool,

    #[command(flatten)]
    pub(crate) cluster_proxy: ClusterProxyArgs,
}

/// The arguments of `get` and `events`.
#[derive(Debug, Args)]
pub struct ObjectsArgs {
    #[command(flatten)]
    pub(crate) view: ViewArgs,

    /// The object: KIND/NAME or KIND/NAMESPACE/NAME [default: all]
    #[arg(value_name = "KIND/NAME", add = ArgValueCompleter::new(completion::objects))]
    pub object: Option<ObjectName>,

    /// Output format
    #[arg(long, short, value_enum, default_value = "table")]
    pub output: ListFormat,
}

pub(super) const GET_EXAMPLES: &str = "\
The cluster receives a token of the hub, or one of its own, through the tunnel of OCM's cluster-proxy. Values of Secrets are masked.
Required permissions: on the hub, to get the Application, its works, and the ConfigMaps of Argo CD, and to forward a port of cluster-proxy's Pod;
on the cluster, to get the object, and to list what it owns.

Examples:
  # A Deployment, its ReplicaSets and its Pods
  argocd-ocm-cmp get guestbook deployment/guestbook-ui --cluster cluster1

  # The live object
  argocd-ocm-cmp get guestbook deploy/guestbook-ui --cluster cluster1 -o yaml

  # All objects that the Application delivers to the cluster
  argocd-ocm-cmp get guestbook --cluster cluster1";

pub(super) const EVENTS_EXAMPLES: &str = "\
Examples:
  # Events of a Deployment, its ReplicaSets and its Pods, the newest last
  argocd-ocm-cmp events guestbook deployment/guestbook-ui --cluster cluster1";

/// The arguments of `logs`.
#[derive(Debug, Args)]
#[command(after_help = LOGS_EXAMPLES)]
pub struct LogsArgs {
    #[command(flatten)]
    pub(crate) view: ViewArgs,

    /// The object: KIND/NAME or KIND/NAMESPACE/NAME
    #[arg(value_name = "KIND/NAME", add = ArgValueCompleter::new(completion::objects))]
    pub object: ObjectName,

    /// Continue with new lines
    #[arg(long, short)]
    pub follow: bool,

    /// Number of last lines of each container
    #[arg(
        long,
        value_name = "LINES",
        default_value_t = live::limits::TAIL,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(live::limits::TAIL_MAX))
    )]
    pub tail: u32,

    /// Show only lines of this time until now, such as 90s, 5m or 1h
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub since: Option<Duration>,

    /// Show the log of the container before its last restart
    #[arg(long, short)]
    pub previous: bool,

    /// Show only this container
    #[arg(long, short, value_name = "NAME")]
    pub container: Option<String>,

    /// Show only this Pod; repeat the flag for more
    #[arg(long = "pod", value_name = "NAME")]
    pub pods: Vec<String>,
}

const LOGS_EXAMPLES: &str = "\
Examples:
  # Follow the Pods of a Deployment
  argocd-ocm-cmp logs guestbook deployment/guestbook-ui --cluster cluster1 -f

  # Why did a container restart?
  argocd-ocm-cmp logs guestbook deploy/guestbook-ui --cluster cluster1 -p -c web --tail 50";
