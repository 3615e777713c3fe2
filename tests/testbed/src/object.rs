//! Names and conditions of objects.

use std::fmt;

use serde_json::{Value, json};

/// The identity of an object on an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// The API version, such as `apps/v1`.
    pub api_version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ObjectRef {
    /// Names an object in a namespace.
    pub fn namespaced(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..Self::cluster(api_version, kind, name)
        }
    }

    /// Names a cluster-scoped object.
    pub fn cluster(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// Returns the object with these fields, of which `metadata` has no name.
    pub fn with(&self, fields: Value) -> Value {
        let mut object = json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": self.name}});
        if let Some(namespace) = &self.namespace {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let Value::Object(fields) = fields else { return object };
        for (key, value) in fields {
            match (key.as_str(), value) {
                ("metadata", Value::Object(more)) => {
                    object["metadata"]
                        .as_object_mut()
                        .into_iter()
                        .for_each(|metadata| metadata.extend(more.clone()));
                }
                (_, value) => object[key] = value,
            }
        }
        object
    }

    /// Returns the identity of an object.
    pub fn of(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: object["metadata"]["namespace"].as_str().map(str::to_owned),
            name: text(&object["metadata"]["name"]),
        }
    }
}

/// Defines functions that name an object of a kind: in a namespace, in that of Argo CD, or without one.
macro_rules! kinds {
    (@ $function:ident namespaced $api_version:literal $kind:literal) => {
        #[doc = concat!("Names a ", $kind, " in a namespace.")]
        pub fn $function(namespace: &str, name: &str) -> Self {
            Self::namespaced($api_version, $kind, namespace, name)
        }
    };
    (@ $function:ident argocd $api_version:literal $kind:literal) => {
        #[doc = concat!("Names a ", $kind, " in Argo CD's own namespace.")]
        pub fn $function(name: &str) -> Self {
            Self::namespaced($api_version, $kind, "argocd", name)
        }
    };
    (@ $function:ident cluster $api_version:literal $kind:literal) => {
        #[doc = concat!("Names a ", $kind, ".")]
        pub fn $function(name: &str) -> Self {
            Self::cluster($api_version, $kind, name)
        }
    };
    ($($function:ident: $scope:ident $api_version:literal $kind:literal;)*) => {
        impl ObjectRef {
            $(kinds!(@ $function $scope $api_version $kind);)*
        }
    };
}

kinds! {
    app_project: argocd "argoproj.io/v1alpha1" "AppProject";
    application: argocd "argoproj.io/v1alpha1" "Application";
    application_set: argocd "argoproj.io/v1alpha1" "ApplicationSet";
    cluster_management_addon: cluster "addon.open-cluster-management.io/v1alpha1" "ClusterManagementAddOn";
    cluster_role: cluster "rbac.authorization.k8s.io/v1" "ClusterRole";
    config_map: namespaced "v1" "ConfigMap";
    crd: cluster "apiextensions.k8s.io/v1" "CustomResourceDefinition";
    deployment: namespaced "apps/v1" "Deployment";
    gitops_cluster: argocd "apps.open-cluster-management.io/v1alpha1" "GitOpsCluster";
    managed_cluster: cluster "cluster.open-cluster-management.io/v1" "ManagedCluster";
    managed_cluster_addon: namespaced "addon.open-cluster-management.io/v1alpha1" "ManagedClusterAddOn";
    manifest_work: namespaced "work.open-cluster-management.io/v1" "ManifestWork";
    namespace: cluster "v1" "Namespace";
    node: cluster "v1" "Node";
    placement: argocd "cluster.open-cluster-management.io/v1beta1" "Placement";
    placement_decision: argocd "cluster.open-cluster-management.io/v1beta1" "PlacementDecision";
    report: argocd "apps.open-cluster-management.io/v1alpha1" "MulticlusterApplicationSetReport";
    role_binding: namespaced "rbac.authorization.k8s.io/v1" "RoleBinding";
    secret: namespaced "v1" "Secret";
    service_account: namespaced "v1" "ServiceAccount";
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// Returns a work as Argo CD applies it for an Application in its own namespace.
pub fn tracked_work(application: &str, cluster: &str, name: &str, manifests: &[Value]) -> Value {
    let id = format!("{application}:work.open-cluster-management.io/ManifestWork:{cluster}/{name}");
    ObjectRef::manifest_work(cluster, name).with(json!({
        "metadata": {"annotations": {"argocd.argoproj.io/tracking-id": id}},
        "spec": {"workload": {"manifests": manifests}},
    }))
}

/// Returns a condition as a controller or an agent writes it, about this generation.
pub fn new_condition(kind: &str, status: &str, message: &str, generation: &Value) -> Value {
    json!({
        "type": kind,
        "status": status,
        "reason": "ConditionRuleEvaluated",
        "message": message,
        "lastTransitionTime": "2020-01-01T00:00:00Z",
        "observedGeneration": generation,
    })
}

/// Returns true if an object has the condition of that type with status `True`.
pub fn is_true(object: &Value, condition: &str) -> bool {
    self::condition(object, condition).is_some_and(|condition| condition["status"] == "True")
}

/// Returns the condition of that type in an object's status.
pub fn condition<'a>(object: &'a Value, condition: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|candidate| candidate["type"] == condition)
}

/// Returns true if the work agent has applied every manifest in the current generation of the `ManifestWork`.
pub fn is_applied(work: &Value) -> bool {
    condition(work, "Applied").is_some_and(|applied| {
        applied["status"] == "True" && applied["observedGeneration"] == work["metadata"]["generation"]
    })
}

/// Returns true if Argo CD has synced the Application and no further sync is pending.
pub fn is_synced(application: &Value) -> bool {
    application["status"]["sync"]["status"] == "Synced" && application["operation"].is_null()
}
