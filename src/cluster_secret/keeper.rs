//! Who keeps the Secret of a cluster, and how it looks for that.

use super::{ACM, AGENT_NAME, CLUSTER_NAME, HUB, Labels};

/// Who keeps the Secret of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeper<'k> {
    /// The controller itself, for every managed cluster, as argocd-pull-integration does.
    Controller,
    /// A GitOpsCluster, for those that its Placement selects, as Red Hat ACM does without credentials.
    GitOps {
        /// Which one, as `NAMESPACE/NAME`.
        owner: &'k str,
        /// Which one kept it before, and does no longer.
        before: Option<&'k str>,
    },
    /// A GitOpsCluster, for those on which it has argocd-agent run, as argocd-agentctl does.
    Agent {
        /// Which one, as `NAMESPACE/NAME`.
        owner: &'k str,
        /// Which one kept it before, and does no longer.
        before: Option<&'k str>,
        /// The URL of argocd-agent's resource proxy, by which Argo CD looks into those clusters.
        proxy: &'k str,
    },
    /// A GitOpsCluster that has argocd-agent run on clusters, for the hub itself, which needs none.
    Hub {
        /// Which one, as `NAMESPACE/NAME`.
        owner: &'k str,
        /// Which one kept it before, and does no longer.
        before: Option<&'k str>,
    },
}

/// What stands around the name of a cluster in that of its Secret, and behind it in its server, which is nowhere.
struct Form {
    name: [&'static str; 2],
    server: Option<&'static str>,
}

const CONTROLLERS: Form = Form {
    name: ["", "-secret"],
    server: Some("-control-plane:6443"),
};
/// argocd-pull-integration gives the same server to those with an agent.
const GITOPS: Form = Form {
    name: ["", "-application-manager-cluster-secret"],
    server: Some(CONTROL_PLANE),
};
const AGENTS: Form = Form {
    name: ["cluster-", ""],
    server: None,
};

const CONTROL_PLANE: &str = "-control-plane";

/// What stands before the name of a cluster in its server.
const SCHEME: &str = "https://";

/// What stands before the name of an agent in the URL by which the resource proxy knows whose it is.
const AGENT: &str = "?agentName=";

/// Where the hub is for its own Argo CD (`KubernetesInternalAPIServerAddr` in its `common`).
const HUB_SERVER: &str = "https://kubernetes.default.svc";

/// How long the value of a label may be.
const LABEL_MAX: usize = 63;

/// Whether a managed cluster is the hub itself, as OCM's users and Red Hat ACM say it: by its name, or by a label where it has
/// another.
#[must_use]
pub fn is_hub(cluster: &str, labels: &Labels) -> bool {
    cluster == HUB || labels.get(HUB) == Some("true")
}

impl<'k> Keeper<'k> {
    fn form(self) -> &'static Form {
        match self {
            Self::Controller => &CONTROLLERS,
            Self::GitOps { .. } => &GITOPS,
            Self::Agent { .. } | Self::Hub { .. } => &AGENTS,
        }
    }

    /// The name of the Secret of this cluster.
    #[must_use]
    pub fn name(self, cluster: &str) -> String {
        let [before, behind] = self.form().name;
        format!("{before}{cluster}{behind}")
    }

    /// The server that Argo CD is told of this cluster.
    #[must_use]
    pub fn server(self, cluster: &str) -> String {
        match self {
            Self::Agent { proxy, .. } => format!("{proxy}{AGENT}{cluster}"),
            Self::Hub { .. } => HUB_SERVER.to_owned(),
            _ => format!("{SCHEME}{cluster}{}", self.form().server.unwrap_or_default()),
        }
    }

    /// Whether a server is that of this cluster, whatever the name that it is given.
    pub(super) fn is_server_of(self, server: &str, cluster: &str) -> bool {
        let is_its_agents = matches!(self, Self::Agent { .. }) && agent_of(server) == Some(cluster);
        is_its_agents || server == self.server(cluster)
    }

    /// Which GitOpsCluster it is.
    pub(super) fn owner(self) -> Option<&'k str> {
        match self {
            Self::Controller => None,
            Self::GitOps { owner, .. } | Self::Agent { owner, .. } | Self::Hub { owner, .. } => Some(owner),
        }
    }

    /// Which GitOpsCluster kept it before.
    pub(super) fn before(self) -> Option<&'k str> {
        match self {
            Self::Controller => None,
            Self::GitOps { before, .. } | Self::Agent { before, .. } | Self::Hub { before, .. } => before,
        }
    }

    /// Whether Argo CD is to show who it is where it connects to.
    pub(super) fn has_agent(self) -> bool {
        matches!(self, Self::Agent { .. })
    }

    /// Whether Argo CD is to leave the Applications of a cluster to somebody else.
    pub(super) fn skips(self) -> bool {
        !matches!(self, Self::Hub { .. })
    }

    /// What the label [`ACM`] says.
    pub(super) fn acm(self) -> Option<&'static str> {
        matches!(self, Self::GitOps { .. }).then_some("true")
    }

    /// The labels by which users of the peer select, and argocd-agent knows its own.
    pub(super) fn labels(self, cluster: &str) -> Vec<(&'static str, String)> {
        let name = (CLUSTER_NAME, cluster.to_owned());
        match self {
            Self::Controller => Vec::new(),
            Self::GitOps { .. } => {
                let mut server = format!("{cluster}{CONTROL_PLANE}");
                server.truncate(LABEL_MAX);
                server.truncate(server.trim_end_matches(['-', '.', '_']).len());
                vec![
                    (ACM, "true".to_owned()),
                    name,
                    ("apps.open-cluster-management.io/cluster-server", server),
                    ("apps.open-cluster-management.io/data-source", "blank".to_owned()),
                ]
            }
            Self::Agent { .. } => vec![(AGENT_NAME, cluster.to_owned()), name],
            Self::Hub { .. } => vec![name],
        }
    }

    /// The clusters whose Secret has this name, or this server, whoever keeps it.
    pub(super) fn clusters<'s>(name: &'s str, server: &'s str) -> impl Iterator<Item = &'s str> {
        let by_form = [CONTROLLERS, GITOPS, AGENTS].into_iter().flat_map(move |form| {
            let [before, behind] = form.name;
            let by_name = name.strip_prefix(before).and_then(|it| it.strip_suffix(behind));
            let host = server.strip_prefix(SCHEME);
            let by_server = host.zip(form.server).and_then(|(it, end)| it.strip_suffix(end));
            [by_name, by_server].into_iter().flatten()
        });
        let hub = (server == HUB_SERVER).then_some(HUB);
        by_form.chain(agent_of(server)).chain(hub)
    }
}

/// Which agent a server leads to by the resource proxy.
pub(super) fn agent_of(server: &str) -> Option<&str> {
    let (_, agent) = server.split_once(AGENT)?;
    agent.split(['&', '#']).next()
}
