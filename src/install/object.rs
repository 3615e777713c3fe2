//! An object to install, with its API path.

use super::CMD_PARAMS;
use ocm::tracking::CONFIG_MAP;
use serde_json::{Value, json};
use std::fmt;

/// Argo CD's own objects, to which we only add fields. They must exist.
const ARGO_CDS: [(&str, &str); 4] = [
    ("ConfigMap", CONFIG_MAP),
    ("ConfigMap", CMD_PARAMS),
    ("Deployment", "argocd-repo-server"),
    ("Deployment", "argocd-server"),
];

/// Returns the items of the list at a JSON pointer; none if there is no such list.
pub(super) fn items_mut<'v>(value: &'v mut Value, pointer: &str) -> impl Iterator<Item = &'v mut Value> + use<'v> {
    value
        .pointer_mut(pointer)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// An object of our files.
#[derive(Clone, Debug, PartialEq)]
pub struct ShippedObject {
    pub(crate) value: Value,
    is_addition: bool,
}

impl ShippedObject {
    pub(super) fn new(value: Value) -> Self {
        let mut object = Self::addition(value);
        object.is_addition = ARGO_CDS.contains(&(object.kind(), object.name()));
        object
    }

    /// Creates an addition to an object of Argo CD.
    pub(super) fn addition(value: Value) -> Self {
        Self {
            value,
            is_addition: true,
        }
    }

    /// Returns its JSON.
    pub fn json(&self) -> String {
        self.value.to_string()
    }

    /// Returns its `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.value["apiVersion"].as_str().unwrap_or_default()
    }

    /// Returns its kind.
    pub fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Returns its namespace; `None` if its kind is cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        self.value["metadata"]["namespace"].as_str()
    }

    /// Returns the value of one of its labels.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.value["metadata"]["labels"][name].as_str()
    }

    /// Returns the API path of its kind and namespace.
    pub fn path(&self) -> String {
        let api = match self.api_version() {
            "v1" => "/api/v1".to_owned(),
            other => format!("/apis/{other}"),
        };
        let namespace = self
            .namespace()
            .map_or(String::new(), |text| format!("/namespaces/{text}"));
        // This holds for every kind in our files.
        let kind = self.kind().to_lowercase();
        let plural = kind
            .strip_suffix('y')
            .map_or(format!("{kind}s"), |stem| format!("{stem}ies"));
        format!("{api}{namespace}/{plural}")
    }

    /// Returns true if it is one of Argo CD's own objects, to which we add fields, and not an object of ours.
    pub fn is_addition(&self) -> bool {
        self.is_addition
    }

    /// Returns true if it is the ArgoCD resource of an operator.
    pub fn is_argo_cd(&self) -> bool {
        self.kind() == "ArgoCD"
    }

    /// Returns true if it limits writes on the hub, which only Kubernetes 1.30 and later can check.
    pub fn is_admission_policy(&self) -> bool {
        ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"].contains(&self.kind())
    }

    /// Returns the object with only its apiVersion, kind, name and namespace.
    pub fn bare(&self) -> Self {
        let mut metadata = json!({"name": self.name()});
        if let Some(namespace) = self.namespace() {
            metadata["namespace"] = namespace.into();
        }
        Self {
            value: json!({"apiVersion": self.api_version(), "kind": self.kind(), "metadata": metadata}),
            is_addition: self.is_addition,
        }
    }

    /// Adds the UID of the live object to an addition. Otherwise the API server creates an object with only our fields if Argo CD's was
    /// deleted since it was read (`applyPatch` in its `patch.go`).
    pub fn of_live(mut self, live: &Value) -> Self {
        if self.is_addition && live["metadata"]["uid"].is_string() {
            self.value["metadata"]["uid"] = live["metadata"]["uid"].clone();
        }
        self
    }

    /// Returns its position in the order of applies: objects that others need first, workloads last.
    pub(super) fn rank(&self) -> usize {
        const FIRST: [&str; 3] = ["CustomResourceDefinition", "AppProject", "ConfigMap"];
        const BEFORE_THE_LAST: usize = FIRST.len() + 1;
        match self.kind() {
            "Deployment" => BEFORE_THE_LAST + 1,
            // Roles before bindings.
            kind if kind.ends_with("Binding") => BEFORE_THE_LAST,
            kind => FIRST.iter().position(|first| *first == kind).unwrap_or(FIRST.len()),
        }
    }

    /// Returns true if both are the same object of a hub, whatever their content.
    pub fn is_same(&self, other: &Self) -> bool {
        self.kind() == other.kind()
            && self.name() == other.name()
            && self.namespace() == other.namespace()
            && self.api_version() == other.api_version()
    }
}

/// Formats the object as kubectl does: `deployment.apps/argocd-repo-server`.
impl fmt::Display for ShippedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind().to_lowercase())?;
        if let Some((group, _)) = self.api_version().split_once('/') {
            write!(f, ".{group}")?;
        }
        write!(f, "/{}", self.name())
    }
}
