//! An object that is installed: what it is, and where an API server has it.

use super::json_of;
use crate::value::{Map, Value};
use std::fmt;

/// Argo CD's own objects, to which only something is added. The API server must have them.
const ARGO_CDS: [(&str, &str); 3] = [
    ("ConfigMap", "argocd-cm"),
    ("Deployment", "argocd-repo-server"),
    ("Deployment", "argocd-server"),
];

/// Returns true for the kinds of admission_policy.yaml.
pub(super) fn is_admission_policy(kind: &str) -> bool {
    ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"].contains(&kind)
}

/// An object of our files.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(Value<'static>);

impl Object {
    pub(super) fn new(value: Value<'static>) -> Self {
        Self(value)
    }

    /// All of it.
    #[must_use]
    pub fn value(&self) -> &Value<'static> {
        &self.0
    }

    pub(super) fn value_mut(&mut self) -> &mut Value<'static> {
        &mut self.0
    }

    pub(super) fn into_value(self) -> Value<'static> {
        self.0
    }

    /// Its canonical JSON.
    #[must_use]
    pub fn json(&self) -> String {
        json_of(&self.0)
    }

    /// Its `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata("name").unwrap_or_default()
    }

    /// Its namespace; none where its kind has none.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.metadata("namespace")
    }

    /// The value of one of its labels.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        let labels = self.0.as_map()?.get("metadata")?.as_map()?.get("labels")?;
        labels.as_map()?.get(name)?.as_str()
    }

    /// Where the API server has objects like this one: of the same kind, and in the same namespace.
    #[must_use]
    pub fn path(&self) -> String {
        let api = match self.api_version() {
            "v1" => "/api/v1".to_owned(),
            other => format!("/apis/{other}"),
        };
        let namespace = self.namespace().map_or(String::new(), |it| format!("/namespaces/{it}"));
        // So it is for every kind that we have.
        let kind = self.kind().to_lowercase();
        let plural = kind
            .strip_suffix('y')
            .map_or(format!("{kind}s"), |stem| format!("{stem}ies"));
        format!("{api}{namespace}/{plural}")
    }

    /// Whether it is one of Argo CD's own, to which something is added, and not an object of ours.
    #[must_use]
    pub fn is_addition(&self) -> bool {
        ARGO_CDS.contains(&(self.kind(), self.name()))
    }

    /// Returns true if it limits what the controller may write, which only Kubernetes 1.30 and later can check.
    #[must_use]
    pub fn is_admission_policy(&self) -> bool {
        is_admission_policy(self.kind())
    }

    /// Nothing of it but which one it is.
    #[must_use]
    pub fn bare(&self) -> Self {
        let text = |text: &str| Value::text(text);
        let mut metadata = Map::of([("name", text(self.name()))]);
        if let Some(namespace) = self.namespace() {
            metadata.insert("namespace", text(namespace));
        }
        Self(Value::map([
            ("apiVersion", text(self.api_version())),
            ("kind", text(self.kind())),
            ("metadata", Value::Map(metadata)),
        ]))
    }

    /// How early it is applied: what others are made of first, what runs last.
    pub(super) fn rank(&self) -> usize {
        const FIRST: [&str; 3] = ["CustomResourceDefinition", "AppProject", "ConfigMap"];
        const BEFORE_THE_LAST: usize = FIRST.len() + 1;
        match self.kind() {
            "Deployment" => BEFORE_THE_LAST + 1,
            // What one may do is said before who may.
            kind if kind.ends_with("Binding") => BEFORE_THE_LAST,
            kind => FIRST.iter().position(|first| *first == kind).unwrap_or(FIRST.len()),
        }
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        let key = |it: &Self| {
            [
                it.api_version(),
                it.kind(),
                it.name(),
                it.namespace().unwrap_or_default(),
            ]
            .map(str::to_owned)
        };
        key(self) == key(other)
    }

    fn text(&self, key: &str) -> &str {
        let value = self.0.as_map().and_then(|map| map.get(key)?.as_str());
        value.unwrap_or_default()
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        self.0.as_map()?.get("metadata")?.as_map()?.get(key)?.as_str()
    }
}

/// As kubectl calls it: `deployment.apps/argocd-repo-server`.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind().to_lowercase())?;
        if let Some((group, _)) = self.api_version().split_once('/') {
            write!(f, ".{group}")?;
        }
        write!(f, "/{}", self.name())
    }
}
