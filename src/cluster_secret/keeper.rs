//! Who keeps the Secret of a cluster, and how it looks for that.

use super::ACM;

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
}

/// What stands behind the name of a cluster in that of its Secret, and in its server, which is nowhere.
struct Form {
    name: &'static str,
    server: &'static str,
}

const CONTROLLERS: Form = Form {
    name: "-secret",
    server: "-control-plane:6443",
};
const GITOPS: Form = Form {
    name: "-application-manager-cluster-secret",
    server: "-control-plane",
};

/// What stands before the name of a cluster in its server.
const SCHEME: &str = "https://";

/// How long the value of a label may be.
const LABEL_MAX: usize = 63;

impl<'k> Keeper<'k> {
    fn form(self) -> &'static Form {
        match self {
            Self::Controller => &CONTROLLERS,
            Self::GitOps { .. } => &GITOPS,
        }
    }

    /// The name of the Secret of this cluster.
    #[must_use]
    pub fn name(self, cluster: &str) -> String {
        format!("{cluster}{}", self.form().name)
    }

    /// The server that Argo CD is told of this cluster.
    #[must_use]
    pub fn server(self, cluster: &str) -> String {
        format!("{SCHEME}{cluster}{}", self.form().server)
    }

    /// Which GitOpsCluster it is.
    pub(super) fn owner(self) -> Option<&'k str> {
        match self {
            Self::Controller => None,
            Self::GitOps { owner, .. } => Some(owner),
        }
    }

    /// What the label [`ACM`] says.
    pub(super) fn acm(self) -> Option<&'static str> {
        self.owner().map(|_| "true")
    }

    /// The labels by which users of the peer select.
    pub(super) fn labels(self, cluster: &str) -> Vec<(&'static str, String)> {
        if self == Self::Controller {
            return Vec::new();
        }
        let mut server = format!("{cluster}{}", GITOPS.server);
        server.truncate(LABEL_MAX);
        server.truncate(server.trim_end_matches(['-', '.', '_']).len());
        vec![
            (ACM, "true".to_owned()),
            ("apps.open-cluster-management.io/cluster-name", cluster.to_owned()),
            ("apps.open-cluster-management.io/cluster-server", server),
            ("apps.open-cluster-management.io/data-source", "blank".to_owned()),
        ]
    }

    /// The clusters whose Secret has this name, or this server, whoever keeps it.
    pub(super) fn clusters<'s>(name: &'s str, server: &'s str) -> impl Iterator<Item = &'s str> {
        [CONTROLLERS, GITOPS].into_iter().flat_map(move |form| {
            let by_server = server.strip_prefix(SCHEME).and_then(|it| it.strip_suffix(form.server));
            [name.strip_suffix(form.name), by_server].into_iter().flatten()
        })
    }
}
