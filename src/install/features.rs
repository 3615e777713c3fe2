//! The features that can be installed by name, and their files.

use super::name_of;
use crate::embedded;
use clap::ValueEnum;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A feature that can be installed, in the order in which their files are applied. `chart/features.yaml` describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Feature {
    /// The sidecar of argocd-repo-server that wraps manifests into works, its policies, and the health checks for works
    Plugin,
    /// The AppProject managed-clusters, whose Applications may write works and nothing else
    Project,
    /// The policy of the sidecar, which limits what AppProjects may deliver; also for an installation without one
    Policy,
    /// The settings and permissions that ApplicationSets need to generate from Placements
    #[value(name = "applicationset")]
    ApplicationSet,
    /// Permissions for actions on works, and for an Argo CD without permissions for the whole cluster to write works
    ArgocdRbac,
    /// The controller, which reports the health of works as conditions and Events on Applications, and the policy for holds
    #[value(alias = "application-status")]
    Controller,
    /// Limits on what the agents of managed clusters may change on the hub
    AgentAdmission,
    /// The controller's basic pull model: Applications that run in the Argo CD of the managed clusters
    Pull,
    /// The OCM add-on argocd, which installs Argo CD on managed clusters, for the basic pull model
    #[value(name = "argocd-addon")]
    ArgocdAddOn,
    /// An Argo CD cluster Secret for each managed cluster
    ClusterSecrets,
    /// A report for each ApplicationSet
    #[value(alias = "application-set-report")]
    Report,
    /// GitOpsClusters: the clusters of a Placement, registered in Argo CD
    #[value(name = "gitopscluster")]
    GitOpsCluster,
    /// argocd-agent on the clusters of GitOpsClusters, and its principal on the hub
    ArgocdAgent,
    /// The extension of Argo CD's UI
    Ui,
    /// The view into the clusters: live objects, Pods, Events and logs in Argo CD's UI, through OCM's cluster-proxy
    Live,
}

/// A row of the table of features, which the chart reads too.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    #[serde(default)]
    requires: Vec<String>,
    controller: Option<String>,
    extends: Option<String>,
    permissions: Option<String>,
    #[serde(default)]
    files: Vec<String>,
}

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let rows = embedded::shipped("chart/features.yaml").remove(0);
    serde_json::from_value(rows).expect("the table of features has only the fields of a row")
});

impl Feature {
    fn row(self) -> &'static Row {
        let name = name_of(&self);
        let row = TABLE.iter().find(|row| row.name == name);
        row.expect("every feature is in the table")
    }

    fn required(self) -> impl Iterator<Item = Self> {
        let names = self.row().requires.iter();
        names.map(|name| Self::from_str(name, false).expect("a feature requires features"))
    }

    /// Returns the component of Argo CD that the feature extends.
    pub(super) fn component(self) -> Option<&'static str> {
        self.row().extends.as_deref()
    }

    /// Returns the file with the permissions that the feature grants.
    pub(crate) fn permissions(self) -> Option<&'static str> {
        self.row().permissions.as_deref()
    }

    pub(super) fn files(self) -> impl Iterator<Item = &'static str> {
        self.permissions()
            .into_iter()
            .chain(self.row().files.iter().map(String::as_str))
    }

    /// Returns the controller that the feature enables.
    pub(crate) fn controller(self) -> Option<&'static str> {
        self.row().controller.as_deref()
    }
}

/// Returns the features with all features that they imply.
pub fn with_implied(requested: impl IntoIterator<Item = Feature>) -> BTreeSet<Feature> {
    let mut all = BTreeSet::new();
    let mut open: Vec<_> = requested.into_iter().collect();
    while let Some(feature) = open.pop() {
        if all.insert(feature) {
            open.extend(feature.required());
        }
    }
    all
}
