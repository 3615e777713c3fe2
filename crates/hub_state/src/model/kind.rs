//! The kinds of objects that the controllers watch.

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Applications,
    Works,
    /// ManifestWorkReplicaSets, which older versions of OCM do not have.
    ReplicaSets,
    Clusters,
    /// The ConfigMap `argocd-cm`, which configures resource tracking.
    Config,
    /// The ConfigMap with the parameters of Argo CD.
    Parameters,
    /// The namespaces of managed clusters on hold.
    Holds,
    Decisions,
    Projects,
    /// The cluster Secrets of Argo CD.
    Secrets,
    /// ApplicationSets, which not every Argo CD installs.
    ApplicationSets,
    /// The reports of ApplicationSets, if installed.
    Reports,
    /// GitOpsClusters, if installed.
    GitOpsClusters,
    Placements,
    /// The namespace of Argo CD.
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
