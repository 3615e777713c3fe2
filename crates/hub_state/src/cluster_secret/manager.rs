//! The manager of a cluster's Secret, and the name, server and labels that it uses.

use super::labels::{ACM, AGENT_NAME, CLUSTER_NAME, CLUSTER_SERVER, DATA_SOURCE};
use crate::model::{ACM_HUB, SecretKind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretManager<'k> {
    /// The controller itself, for every managed cluster, as in argocd-pull-integration.
    Controller,
    /// A GitOpsCluster, for the clusters that its Placement selects, as in Red Hat ACM without credentials.
    GitOps,
    /// A GitOpsCluster, for the clusters on which it installs argocd-agent, as in argocd-agentctl.
    Agent {
        /// The URL of argocd-agent's resource proxy, through which Argo CD reads live objects of those clusters.
        proxy: &'k str,
    },
    /// A GitOpsCluster that installs argocd-agent on clusters, for the hub itself, which needs no agent.
    Hub,
}

/// The prefix and suffix of the cluster's name in the Secret's name, and the suffix of its server, which does not exist.
struct SecretFormat {
    name: [&'static str; 2],
    server: Option<&'static str>,
}

const CONTROLLERS: SecretFormat = SecretFormat {
    name: ["", "-secret"],
    server: Some("-control-plane:6443"),
};
/// argocd-pull-integration uses the same server for clusters with an agent.
const GITOPS: SecretFormat = SecretFormat {
    name: ["", "-application-manager-cluster-secret"],
    server: Some(CONTROL_PLANE),
};
const AGENTS: SecretFormat = SecretFormat {
    name: ["cluster-", ""],
    server: None,
};

const CONTROL_PLANE: &str = "-control-plane";

/// The prefix of the cluster's name in its server.
const SCHEME: &str = "https://";

/// The query parameter that names the agent in the URL of the resource proxy.
const AGENT: &str = "?agentName=";

/// The server of the hub for its own Argo CD (`KubernetesInternalAPIServerAddr` in its `common`).
pub(super) const HUB_SERVER: &str = "https://kubernetes.default.svc";

const LABEL_MAX: usize = 63;

impl SecretManager<'_> {
    fn secret_format(self) -> &'static SecretFormat {
        match self {
            Self::Controller => &CONTROLLERS,
            Self::GitOps => &GITOPS,
            Self::Agent { .. } | Self::Hub => &AGENTS,
        }
    }

    pub fn name(self, cluster: &str) -> String {
        let [before, behind] = self.secret_format().name;
        format!("{before}{cluster}{behind}")
    }

    pub fn server(self, cluster: &str) -> String {
        match self {
            Self::Agent { proxy } => format!("{proxy}{AGENT}{cluster}"),
            Self::Hub => HUB_SERVER.to_owned(),
            _ => format!("{SCHEME}{cluster}{}", self.secret_format().server.unwrap_or_default()),
        }
    }

    /// Returns true if a server is that of this cluster, regardless of the cluster's name in the Secret.
    pub fn is_server_of(self, server: &str, cluster: &str) -> bool {
        let is_its_agents = matches!(self, Self::Agent { .. }) && agent_of(server) == Some(cluster);
        is_its_agents || server == self.server(cluster)
    }

    /// Returns true if Argo CD needs a client certificate for the server.
    pub fn has_agent(self) -> bool {
        matches!(self, Self::Agent { .. })
    }

    /// Returns true if Argo CD must skip the Applications of the cluster because another component reconciles them.
    pub fn skips(self) -> bool {
        self != Self::Hub
    }

    pub fn acm(self) -> Option<&'static str> {
        (self == Self::GitOps).then_some("true")
    }

    /// Returns the labels by which users of the peer integration select clusters and argocd-agent finds its Secrets.
    pub fn labels(self, cluster: &str) -> Vec<(&'static str, String)> {
        let name = (CLUSTER_NAME, cluster.to_owned());
        match self {
            Self::Controller => Vec::new(),
            Self::GitOps => {
                let mut server = format!("{cluster}{CONTROL_PLANE}");
                server.truncate(LABEL_MAX);
                server.truncate(server.trim_end_matches(['-', '.', '_']).len());
                vec![
                    (ACM, "true".to_owned()),
                    name,
                    (CLUSTER_SERVER, server),
                    (DATA_SOURCE, "blank".to_owned()),
                ]
            }
            Self::Agent { .. } => vec![(AGENT_NAME, cluster.to_owned()), name],
            Self::Hub => vec![name],
        }
    }

    /// Returns the clusters whose Secret has this name or server, for any manager. The hub's server concerns the name that Red Hat ACM
    /// gives the hub.
    pub(super) fn clusters<'s>(name: &'s str, server: &'s str) -> impl Iterator<Item = &'s str> {
        let by_secret_format = [CONTROLLERS, GITOPS, AGENTS]
            .into_iter()
            .flat_map(move |secret_format| {
                let [before, behind] = secret_format.name;
                let by_name = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
                let host = server.strip_prefix(SCHEME);
                let by_server = host
                    .zip(secret_format.server)
                    .and_then(|(host, end)| host.strip_suffix(end));
                [by_name, by_server].into_iter().flatten()
            });
        let hub = (server == HUB_SERVER).then_some(ACM_HUB);
        by_secret_format.chain(agent_of(server)).chain(hub)
    }
}

impl SecretKind {
    pub fn secret_name(self, cluster: &str) -> String {
        match self {
            Self::Blank => SecretManager::GitOps.name(cluster),
            Self::Agent => SecretManager::Hub.name(cluster),
        }
    }
}

/// Returns the agent in a server URL of the resource proxy.
pub(super) fn agent_of(server: &str) -> Option<&str> {
    let (_, agent) = server.split_once(AGENT)?;
    agent.split(['&', '#']).next()
}
