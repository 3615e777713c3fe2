//! Naming an object, and reading one.

use std::fmt;

use serde_json::Value;

/// The name of an object: enough to find it on an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Such as `Deployment`.
    pub kind: String,
    /// The namespace; cluster-scoped objects have none.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ObjectRef {
    /// An object in a namespace.
    #[must_use]
    pub fn namespaced(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            namespace: Some(namespace.to_owned()),
            ..Self::cluster(api_version, kind, name)
        }
    }

    /// A cluster-scoped object.
    #[must_use]
    pub fn cluster(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// A Deployment.
    #[must_use]
    pub fn deployment(namespace: &str, name: &str) -> Self {
        Self::namespaced("apps/v1", "Deployment", namespace, name)
    }

    /// A `ConfigMap`.
    #[must_use]
    pub fn config_map(namespace: &str, name: &str) -> Self {
        Self::namespaced("v1", "ConfigMap", namespace, name)
    }

    /// The `ManifestWork` of that name for a managed cluster.
    #[must_use]
    pub fn manifest_work(cluster: &str, name: &str) -> Self {
        Self::namespaced("work.open-cluster-management.io/v1", "ManifestWork", cluster, name)
    }

    /// An Application in Argo CD's own namespace.
    #[must_use]
    pub fn application(name: &str) -> Self {
        Self::namespaced("argoproj.io/v1alpha1", "Application", "argocd", name)
    }

    /// The name of an object that is at hand.
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

/// Whether an object has the condition of that type with status `True`.
#[must_use]
pub fn is_true(object: &Value, condition: &str) -> bool {
    self::condition(object, condition).is_some_and(|condition| condition["status"] == "True")
}

/// The condition of that type in an object's status.
#[must_use]
pub fn condition<'a>(object: &'a Value, condition: &str) -> Option<&'a Value> {
    object["status"]["conditions"]
        .as_array()?
        .iter()
        .find(|candidate| candidate["type"] == condition)
}

/// Whether the work agent has applied every manifest of the `ManifestWork` as it is written now.
#[must_use]
pub fn is_applied(work: &Value) -> bool {
    condition(work, "Applied").is_some_and(|applied| {
        applied["status"] == "True" && applied["observedGeneration"] == work["metadata"]["generation"]
    })
}

/// Whether Argo CD has synced the Application and is not about to sync it again.
#[must_use]
pub fn is_synced(application: &Value) -> bool {
    application["status"]["sync"]["status"] == "Synced" && application["operation"].is_null()
}
