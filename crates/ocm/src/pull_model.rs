//! Names, labels and annotations of the pull model: those of the peer integrations, of Argo CD, and our own.

/// The label of an Application that is delivered to a managed cluster, and of its ManifestWork.
pub const PULL: &str = "apps.open-cluster-management.io/pull-to-ocm-managed-cluster";

/// The annotation of an Application that names the managed cluster.
pub const CLUSTER: &str = "apps.open-cluster-management.io/ocm-managed-cluster";

/// The annotation with the namespace of the Application on the managed cluster, if different from that on the hub.
pub const CLUSTER_NAMESPACE: &str = "apps.open-cluster-management.io/ocm-managed-cluster-app-namespace";

/// The annotation with the name of the cluster to which the managed cluster's Argo CD deploys, if not its own.
pub const DESTINATION_NAME: &str = "apps.open-cluster-management.io/destination-name";

/// The annotation with the server of that cluster.
pub const DESTINATION_SERVER: &str = "apps.open-cluster-management.io/destination-server";

/// The label of a work, and of its manifests, for an Application from an ApplicationSet.
pub const OF_SET: &str = "apps.open-cluster-management.io/application-set";

/// The label of a work with a hash of its ApplicationSet's namespace and name.
pub const SET_HASH: &str = "apps.open-cluster-management.io/application-set-hash";

/// The annotation with the namespace and name of the ApplicationSet, joined by a slash.
pub const SET: &str = "apps.open-cluster-management.io/hosting-applicationset";

/// The annotation of a work with the namespace of the hub's Application.
pub const HUB_NAMESPACE: &str = "apps.open-cluster-management.io/hub-application-namespace";

/// The annotation of a work with the name of the hub's Application.
pub const HUB_NAME: &str = "apps.open-cluster-management.io/hub-application-name";

/// The annotation of a work with the UID of the hub's Application.
pub const HUB_UID: &str = "argocd-ocm-cmp.github.io/application-uid";

/// The prefix of our own annotations.
pub const OWN: &str = "argocd-ocm-cmp.github.io/";

/// The annotation of the delivered Application with a hash of the rest of it. The status feedback includes it, to identify the
/// payload.
pub const PAYLOAD: &str = "argocd-ocm-cmp.github.io/payload";

/// The annotation of the delivered Application with the ID of a refresh request.
pub const REFRESH_REQUEST: &str = "argocd-ocm-cmp.github.io/refresh-request";

/// The name of the item with the ID of an operation in its `info`.
pub const OPERATION: &str = "argocd-ocm-cmp.github.io/operation";

/// The API group of Applications.
pub const GROUP: &str = "argoproj.io";

/// The `apiVersion` of Applications and AppProjects.
pub const API_VERSION: &str = "argoproj.io/v1alpha1";

/// The kind of Applications.
pub const KIND: &str = "Application";

/// The plural of Applications.
pub const PLURAL: &str = "applications";

/// The kind of AppProjects.
pub const PROJECT_KIND: &str = "AppProject";

/// The plural of AppProjects.
pub const PROJECT_PLURAL: &str = "appprojects";

/// The user name in operations that the ApplicationSet controller starts.
pub const SET_CONTROLLER: &str = "applicationset-controller";

/// The kind of ApplicationSets.
pub const SET_KIND: &str = "ApplicationSet";

/// The OCM add-on that installs Argo CD on managed clusters, with the name that argocd-pull-integration gave it.
pub const ADDON: &str = "argocd";

/// The AppProject that every Argo CD creates in its own namespace.
pub const DEFAULT_PROJECT: &str = "default";

/// The server with which an Argo CD addresses its own cluster.
pub const IN_CLUSTER: &str = "https://kubernetes.default.svc";

/// The annotation in which `kubectl apply` stores the applied configuration.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The annotation in which Argo CD's notifications store their state.
pub const NOTIFIED: &str = "notified.notifications.argoproj.io";

/// The annotation with which Argo CD 3.6 and later distinguish refresh requests.
pub const REFRESH_TIMESTAMP: &str = "argocd.argoproj.io/refresh-timestamp";

/// The annotation that requests the hydration of a source, which Argo CD's server writes with each request for a refresh.
pub const HYDRATE: &str = "argocd.argoproj.io/hydrate";

/// The annotation with which Argo CD 3.6 and later distinguish requests for a hydration.
pub const HYDRATE_TIMESTAMP: &str = "argocd.argoproj.io/hydrate-timestamp";

/// A label that Argo CD is often configured to use for tracking instead of `app.kubernetes.io/instance`.
pub const ARGO_CD_INSTANCE: &str = "argocd.argoproj.io/instance";

/// The label from which the OpenShift GitOps operator reads the Argo CD that may use a namespace.
pub const MANAGED_BY: &str = "argocd.argoproj.io/managed-by";

/// The annotation that configures how Argo CD applies an object, and if it deletes it.
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// The finalizers of Argo CD that make it delete the deployed objects of an Application.
pub const CASCADE: [&str; 3] = [
    "resources-finalizer.argocd.argoproj.io",
    "resources-finalizer.argocd.argoproj.io/foreground",
    "resources-finalizer.argocd.argoproj.io/background",
];

/// The finalizers of Argo CD that make it run hooks around a deletion; each also exists with the suffix `/cleanup`.
pub const DELETION_HOOKS: [&str; 2] = [
    "post-delete-finalizer.argocd.argoproj.io",
    "pre-delete-finalizer.argocd.argoproj.io",
];

/// The types of the conditions that Argo CD sets on an Application: those of its `ApplicationCondition` constants.
pub const CONDITIONS: [&str; 9] = [
    "ComparisonError",
    "DeletionError",
    "ExcludedResourceWarning",
    "InvalidSpecError",
    "OrphanedResourceWarning",
    "RepeatedResourceWarning",
    "SharedResourceWarning",
    "SyncError",
    "UnknownError",
];

/// The type of the condition for an Application that the managed cluster's agent could not apply.
pub const APPLY_ERROR: &str = "ManifestWorkApplyError";

/// The type of the condition with the totals over the managed clusters of an Application.
pub const INFO: &str = "ManifestWorkInfo";

/// The prefixes of the types of our own conditions on an Application.
pub const OWN_CONDITIONS: [&str; 2] = ["ManifestWork", "ManagedCluster"];

/// Returns true if a condition of an Application is one of our own. As in Argo CD, the type ends with its severity.
pub fn is_own_condition(kind: &str) -> bool {
    OWN_CONDITIONS.iter().any(|prefix| kind.starts_with(prefix))
        && ["Info", "Warning", "Error"]
            .iter()
            .any(|severity| kind.ends_with(severity))
}

/// Returns true if a finalizer is one of Argo CD's.
pub fn is_argo_cds(finalizer: &str) -> bool {
    CASCADE.contains(&finalizer) || is_for_deletion_hooks(finalizer)
}

/// Returns true if Argo CD runs hooks before it removes the finalizer.
pub fn is_for_deletion_hooks(finalizer: &str) -> bool {
    let is_it = |name: &&str| matches!(finalizer.strip_prefix(name), Some("" | "/cleanup"));
    DELETION_HOOKS.iter().any(is_it)
}
