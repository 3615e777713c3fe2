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
    #[must_use]
    pub fn namespaced(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..Self::cluster(api_version, kind, name)
        }
    }

    /// Names a cluster-scoped object.
    #[must_use]
    pub fn cluster(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// Names a Deployment.
    #[must_use]
    pub fn deployment(namespace: &str, name: &str) -> Self {
        Self::namespaced("apps/v1", "Deployment", namespace, name)
    }

    /// Names a `ConfigMap`.
    #[must_use]
    pub fn config_map(namespace: &str, name: &str) -> Self {
        Self::namespaced("v1", "ConfigMap", namespace, name)
    }

    /// Names a `Namespace`.
    #[must_use]
    pub fn namespace(name: &str) -> Self {
        Self::cluster("v1", "Namespace", name)
    }

    /// Names a `Secret`.
    #[must_use]
    pub fn secret(namespace: &str, name: &str) -> Self {
        Self::namespaced("v1", "Secret", namespace, name)
    }

    /// Names a `CustomResourceDefinition`.
    #[must_use]
    pub fn crd(name: &str) -> Self {
        Self::cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    }

    /// Names a `ManagedCluster`.
    #[must_use]
    pub fn managed_cluster(name: &str) -> Self {
        Self::cluster("cluster.open-cluster-management.io/v1", "ManagedCluster", name)
    }

    /// Names a `ClusterManagementAddOn`.
    #[must_use]
    pub fn cluster_management_addon(name: &str) -> Self {
        Self::cluster(
            "addon.open-cluster-management.io/v1alpha1",
            "ClusterManagementAddOn",
            name,
        )
    }

    /// Names the `ManagedClusterAddOn` of that name for a managed cluster.
    #[must_use]
    pub fn managed_cluster_addon(cluster: &str, name: &str) -> Self {
        Self::namespaced(
            "addon.open-cluster-management.io/v1alpha1",
            "ManagedClusterAddOn",
            cluster,
            name,
        )
    }

    /// Names the `ManifestWork` of that name for a managed cluster.
    #[must_use]
    pub fn manifest_work(cluster: &str, name: &str) -> Self {
        Self::namespaced("work.open-cluster-management.io/v1", "ManifestWork", cluster, name)
    }

    /// Names a `ServiceAccount`.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::namespaced("v1", "ServiceAccount", namespace, name)
    }

    /// Names a `Node`.
    #[must_use]
    pub fn node(name: &str) -> Self {
        Self::cluster("v1", "Node", name)
    }

    /// Names a `ClusterRole`.
    #[must_use]
    pub fn cluster_role(name: &str) -> Self {
        Self::cluster("rbac.authorization.k8s.io/v1", "ClusterRole", name)
    }

    /// Names a Placement in Argo CD's own namespace.
    #[must_use]
    pub fn placement(name: &str) -> Self {
        Self::namespaced(
            "cluster.open-cluster-management.io/v1beta1",
            "Placement",
            "argocd",
            name,
        )
    }

    /// Names an `ApplicationSet` in Argo CD's own namespace.
    #[must_use]
    pub fn application_set(name: &str) -> Self {
        Self::namespaced("argoproj.io/v1alpha1", "ApplicationSet", "argocd", name)
    }

    /// Names an `AppProject` in Argo CD's own namespace.
    #[must_use]
    pub fn app_project(name: &str) -> Self {
        Self::namespaced("argoproj.io/v1alpha1", "AppProject", "argocd", name)
    }

    /// Names an Application in Argo CD's own namespace.
    #[must_use]
    pub fn application(name: &str) -> Self {
        Self::namespaced("argoproj.io/v1alpha1", "Application", "argocd", name)
    }

    /// Returns the object with these fields, of which `metadata` has no name.
    #[must_use]
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
                        .for_each(|it| it.extend(more.clone()));
                }
                (_, value) => object[key] = value,
            }
        }
        object
    }

    /// Returns the identity of an object.
    #[must_use]
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

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// Returns a condition as a controller or an agent writes it, about this generation.
#[must_use]
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
#[must_use]
pub fn is_true(object: &Value, condition: &str) -> bool {
    self::condition(object, condition).is_some_and(|condition| condition["status"] == "True")
}

/// Returns the condition of that type in an object's status.
#[must_use]
pub fn condition<'a>(object: &'a Value, condition: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|candidate| candidate["type"] == condition)
}

/// Returns true if the work agent has applied every manifest in the current generation of the `ManifestWork`.
#[must_use]
pub fn is_applied(work: &Value) -> bool {
    condition(work, "Applied").is_some_and(|applied| {
        applied["status"] == "True" && applied["observedGeneration"] == work["metadata"]["generation"]
    })
}

/// Returns true if Argo CD has synced the Application and no further sync is pending.
#[must_use]
pub fn is_synced(application: &Value) -> bool {
    application["status"]["sync"]["status"] == "Synced" && application["operation"].is_null()
}
