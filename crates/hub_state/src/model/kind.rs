//! The kinds of objects that the controllers watch. [`Kind::watched`] has their resources and selectors.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Applications,
    Works,
    ReplicaSets,
    Clusters,
    Config,
    Parameters,
    Holds,
    Decisions,
    Projects,
    Secrets,
    ApplicationSets,
    Reports,
    GitOpsClusters,
    Placements,
    Namespace,
    /// The TLS Secrets in the namespace of Argo CD.
    Certificates,
    /// The Secret with the key that the principal of argocd-agent signs tokens with.
    TokenKey,
    /// The ConfigMap with the CA certificates.
    Bundle,
    /// The ConfigMap with the certificates that the principal rejects.
    Blocklist,
    /// The Secrets that list the certificates of agents.
    IssuedCertificates,
    Services,
    Routes,
    Nodes,
    Deployments,
    Templates,
    ManagementAddOn,
    AddOnConfigs,
    AddOns,
    OwnPlacements,
    OwnDecisions,
    /// The ManifestWorks that deliver objects to managed clusters beside the add-on.
    AgentWorks,
    Requests,
}
