//! Annotations that several controllers read or write.

/// The annotation that asks Argo CD to refresh an Application. Argo CD removes it afterwards.
pub const REFRESH: &str = "argocd.argoproj.io/refresh";

/// The annotation of Applications that Argo CD does not reconcile.
///
/// On a cluster Secret, it makes Argo CD ignore the Applications of the cluster and never connect to it, since 3.4
/// (`IsManagedCluster` in its `controller/sharding`). Older versions ignore it on a Secret: an Application for the cluster makes
/// the application-controller dial the server, even if the Application itself has the annotation. ApplicationSets ignore it in
/// all versions.
pub const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";

/// The annotation that names the GitOpsCluster for which the controller created an object as `NAMESPACE/NAME`: a label value is too
/// short for some names.
pub const OWNER: &str = "argocd-ocm-cmp.github.io/gitopscluster";

/// The annotation of an AddOnTemplate with the image of argocd-agent in it.
pub const AGENT_IMAGE: &str = "argocd-ocm-cmp.github.io/agent-image";

/// The annotation of an AddOnTemplate with the namespace of argocd-agent in it.
pub const AGENT_NAMESPACE: &str = "argocd-ocm-cmp.github.io/agent-namespace";

/// The annotations of a GitOpsCluster whose agents do not get the image of the principal: argocd-pull-integration's and Red Hat
/// ACM's.
pub const DISABLE_IMAGE_SYNC: [&str; 2] = [
    "apps.open-cluster-management.io/disable-agent-image-sync",
    "apps.open-cluster-management.io/skip-agent-version-heal",
];
