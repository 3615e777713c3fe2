//! An object to install, with its API path.

use super::{CMD_PARAMS, json_of};
use manifest::value::{Map, Value};
use ocm::tracking::CONFIG_MAP;
use std::fmt;

/// Argo CD's own objects, to which we only add fields. They must exist.
const ARGO_CDS: [(&str, &str); 4] = [
    ("ConfigMap", CONFIG_MAP),
    ("ConfigMap", CMD_PARAMS),
    ("Deployment", "argocd-repo-server"),
    ("Deployment", "argocd-server"),
];

/// Returns true for the kinds of deploy/admission_policy.yaml.
pub(super) fn is_admission_policy(kind: &str) -> bool {
    ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"].contains(&kind)
}

/// An object of our files.
#[derive(Clone, Debug, PartialEq)]
pub struct ShippedObject {
    value: Value<'static>,
    is_addition: bool,
}

impl ShippedObject {
    pub(super) fn new(value: Value<'static>) -> Self {
        let mut object = Self {
            value,
            is_addition: false,
        };
        object.is_addition = ARGO_CDS.contains(&(object.kind(), object.name()));
        object
    }

    /// Creates an addition to an object of Argo CD.
    pub(super) fn addition(value: Value<'static>) -> Self {
        Self {
            value,
            is_addition: true,
        }
    }

    /// Returns the value.
    #[must_use]
    pub fn as_value(&self) -> &Value<'static> {
        &self.value
    }

    pub(super) fn value_mut(&mut self) -> &mut Value<'static> {
        &mut self.value
    }

    pub(super) fn into_value(self) -> Value<'static> {
        self.value
    }

    /// Returns its canonical JSON.
    #[must_use]
    pub fn json(&self) -> String {
        json_of(&self.value)
    }

    /// Returns its `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.get_text("apiVersion")
    }

    /// Returns its kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.get_text("kind")
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata("name").unwrap_or_default()
    }

    /// Returns its namespace; `None` if its kind is cluster-scoped.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.metadata("namespace")
    }

    /// Returns the value of one of its labels.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        let labels = self.value.as_map()?.get("metadata")?.as_map()?.get("labels")?;
        labels.as_map()?.get(name)?.as_str()
    }

    /// Returns the API path of its kind and namespace.
    #[must_use]
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
    #[must_use]
    pub fn is_addition(&self) -> bool {
        self.is_addition
    }

    /// Returns true if it is the ArgoCD resource of an operator.
    #[must_use]
    pub fn is_argo_cd(&self) -> bool {
        self.kind() == "ArgoCD"
    }

    /// Returns true if it limits writes on the hub, which only Kubernetes 1.30 and later can check.
    #[must_use]
    pub fn is_admission_policy(&self) -> bool {
        is_admission_policy(self.kind())
    }

    /// Returns the object with only its apiVersion, kind, name and namespace.
    #[must_use]
    pub fn bare(&self) -> Self {
        let text = |text: &str| Value::from_text(text);
        let mut metadata = Map::from_fields([("name", text(self.name()))]);
        if let Some(namespace) = self.namespace() {
            metadata.insert("namespace", text(namespace));
        }
        Self {
            value: Value::map([
                ("apiVersion", text(self.api_version())),
                ("kind", text(self.kind())),
                ("metadata", Value::Map(metadata)),
            ]),
            is_addition: self.is_addition,
        }
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
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let key = |object: &Self| {
            [
                object.api_version(),
                object.kind(),
                object.name(),
                object.namespace().unwrap_or_default(),
            ]
            .map(str::to_owned)
        };
        key(self) == key(other)
    }

    fn get_text(&self, key: &str) -> &str {
        let value = self.value.as_map().and_then(|map| map.get(key)?.as_str());
        value.unwrap_or_default()
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.value.as_map()?.get("metadata")?.as_map()?.get(key)?.as_str()
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
