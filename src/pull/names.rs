//! What things are called: the peers' names, Argo CD's, and our own.

/// The label of an Application that is to go to a managed cluster, and of its work.
pub const PULL: &str = "apps.open-cluster-management.io/pull-to-ocm-managed-cluster";

/// The annotation of an Application with the managed cluster to which it is to go.
pub const CLUSTER: &str = "apps.open-cluster-management.io/ocm-managed-cluster";

/// The annotation with the namespace that the Application has on the managed cluster, if it is another than on the hub.
pub const CLUSTER_NAMESPACE: &str = "apps.open-cluster-management.io/ocm-managed-cluster-app-namespace";

/// The annotation with the name of the cluster to which the managed cluster's Argo CD deploys, if that is not its own.
pub const DESTINATION_NAME: &str = "apps.open-cluster-management.io/destination-name";

/// The same with the cluster's address.
pub const DESTINATION_SERVER: &str = "apps.open-cluster-management.io/destination-server";

/// The label of a work, and of what it carries, that an ApplicationSet has made.
pub const OF_SET: &str = "apps.open-cluster-management.io/application-set";

/// The label of a work with a hash of its ApplicationSet's namespace and name.
pub const SET_HASH: &str = "apps.open-cluster-management.io/application-set-hash";

/// The annotation with the namespace and name of the ApplicationSet, with a slash between them.
pub const SET: &str = "apps.open-cluster-management.io/hosting-applicationset";

/// The annotation of a work with the namespace of the hub's Application.
pub const HUB_NAMESPACE: &str = "apps.open-cluster-management.io/hub-application-namespace";

/// The annotation of a work with the name of the hub's Application.
pub const HUB_NAME: &str = "apps.open-cluster-management.io/hub-application-name";

/// What the names of our own annotations begin with.
pub const OWN: &str = "argocd-ocm-cmp.github.io/";

/// The annotation of what is carried with a hash of all the rest of it. It comes back with the feedback, and tells of which form
/// that is.
pub const PAYLOAD: &str = "argocd-ocm-cmp.github.io/payload";

/// The annotation of what is carried that tells one request to refresh from another.
pub const REFRESH_REQUEST: &str = "argocd-ocm-cmp.github.io/refresh-request";

/// The name of the item in an operation's `info` that tells one operation from another.
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

/// By what name the controller of ApplicationSets asks for operations.
pub const SET_CONTROLLER: &str = "applicationset-controller";

/// The kind of ApplicationSets.
pub const SET_KIND: &str = "ApplicationSet";

/// The AppProject that every Argo CD makes for itself, in its own namespace.
pub const DEFAULT_PROJECT: &str = "default";

/// How an Argo CD calls the cluster on which it runs.
pub const IN_CLUSTER: &str = "https://kubernetes.default.svc";

/// Where `kubectl apply` keeps what it has applied.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Where Argo CD's notifications keep what they have told.
pub const NOTIFIED: &str = "notified.notifications.argoproj.io";

/// The annotation by which Argo CD 3.6 and later tell one request to refresh from another.
pub const REFRESH_TIMESTAMP: &str = "argocd.argoproj.io/refresh-timestamp";

/// The label by which Argo CD is often told to track instead of by `app.kubernetes.io/instance`.
pub const ARGO_CD_INSTANCE: &str = "argocd.argoproj.io/instance";

/// The label that tells the OpenShift GitOps operator which Argo CD may use a namespace.
pub const MANAGED_BY: &str = "argocd.argoproj.io/managed-by";

/// The annotation with which Argo CD is told how to apply an object, and whether to delete it.
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// The finalizers of Argo CD that make it delete what an Application has deployed.
pub const CASCADE: [&str; 3] = [
    "resources-finalizer.argocd.argoproj.io",
    "resources-finalizer.argocd.argoproj.io/foreground",
    "resources-finalizer.argocd.argoproj.io/background",
];

/// The finalizers of Argo CD that make it run hooks around a deletion; each also comes with `/cleanup` behind it.
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

/// The type of the condition that says why the managed cluster's agent could not apply the Application.
pub const APPLY_ERROR: &str = "ManifestWorkApplyError";

/// What the types of our own conditions on an Application begin with.
pub const OWN_CONDITIONS: [&str; 2] = ["ManifestWork", "ManagedCluster"];

/// Whether a finalizer is one of Argo CD's.
#[must_use]
pub fn is_argo_cds(finalizer: &str) -> bool {
    let of_hooks = |name: &&str| matches!(finalizer.strip_prefix(name), Some("" | "/cleanup"));
    CASCADE.contains(&finalizer) || DELETION_HOOKS.iter().any(of_hooks)
}
