//! The kinds of objects that the controllers watch.

use super::AgentResource;

/// A watched kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Applications.
    Applications,
    /// ManifestWorks.
    Works,
    /// ManifestWorkReplicaSets, which older versions of OCM do not have.
    ReplicaSets,
    /// ManagedClusters.
    Clusters,
    /// The ConfigMap `argocd-cm`, which configures resource tracking.
    Config,
    /// The ConfigMap with the parameters of Argo CD.
    Parameters,
    /// PlacementDecisions.
    Decisions,
    /// AppProjects.
    Projects,
    /// The cluster Secrets of Argo CD.
    Secrets,
    /// ApplicationSets, which not every Argo CD installs.
    ApplicationSets,
    /// The reports of ApplicationSets, if installed.
    Reports,
    /// GitOpsClusters, if installed.
    GitOpsClusters,
    /// Placements.
    Placements,
    /// The namespace of Argo CD.
    Namespace,
    /// The TLS Secrets in the namespace of Argo CD.
    Certificates,
    /// Objects that are cached without a model of their own.
    AgentResource(AgentResource),
}
