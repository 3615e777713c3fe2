//! The objects of argocd-agent and of its add-on.

/// The objects of argocd-agent, and of the add-on that installs it on managed clusters. They are cached as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentResource {
    /// The Secret with the key that the principal signs tokens with.
    TokenKey,
    /// The ConfigMap with the CA certificates.
    Bundle,
    /// The ConfigMap with the certificates that the principal rejects.
    Blocklist,
    /// The Secrets that list the certificates of agents.
    IssuedCertificates,
    /// The Services in the namespace of Argo CD.
    Services,
    /// The Routes in the namespace of Argo CD, which exist only on OpenShift.
    Routes,
    /// The Nodes of the hub, with the addresses for node ports.
    Nodes,
    /// The Deployments in the namespace of Argo CD.
    Deployments,
    /// The AddOnTemplates of the controller.
    Templates,
    /// The ClusterManagementAddOn of argocd-agent.
    ManagementAddOn,
    /// The AddOnDeploymentConfigs of the controller.
    AddOnConfigs,
    /// The ManagedClusterAddOns of argocd-agent.
    AddOns,
    /// The Placements of the controller.
    OwnPlacements,
    /// The PlacementDecisions of the controller.
    OwnDecisions,
    /// The ManifestWorks that deliver objects to managed clusters beside the add-on.
    AgentWorks,
    /// The CertificateSigningRequests of agents.
    Requests,
}
