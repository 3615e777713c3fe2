//! What is seen of the hub's objects: the little that the promises need. A fleet's works carry every manifest; of those nothing
//! is kept but how they fare.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod application;
mod application_set;
mod cluster;
mod decision;
mod generated;
mod gitops_cluster;
mod object;
#[cfg(test)]
mod properties;
mod tls_secret;
mod work;

pub use application::{Application, Condition, REFRESH, SKIP_RECONCILE};
pub use application_set::ApplicationSet;
pub use cluster::{Cluster, Reach};
pub use decision::Decision;
pub use generated::Generated;
pub use gitops_cluster::{GitOpsCluster, OPEN, PUSH, Placement, Spec, is_open};
pub use object::Object;
pub use tls_secret::{PROMOTED, TlsSecret};
pub use work::{Standing, TEXT_MAX, Work, WorkKind, bounded};

use crate::pull::tenancy::{NAMESPACES, Namespaces};
use crate::tracking::Tracking;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where an object is on the hub; for one without a namespace, that is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name there.
    pub name: Arc<str>,
}

impl Place {
    /// The place of this namespace and name.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// What comes before all places of a namespace.
    #[must_use]
    pub fn first_of(namespace: &Arc<str>) -> Self {
        Self {
            namespace: Arc::clone(namespace),
            name: "".into(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    deletion_timestamp: Option<IgnoredAny>,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<Owner>>,
}

/// What an object goes with.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    api_version: String,
    kind: String,
    name: Box<str>,
}

impl Metadata {
    /// The ApplicationSet that has made it.
    fn application_set(&self) -> Option<&str> {
        let mut owners = self.owner_references.iter().flatten();
        let set = owners.find(|it| it.kind == "ApplicationSet" && it.api_version.starts_with("argoproj.io/"));
        set.map(|owner| &*owner.name)
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(name).map(String::as_str)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.as_ref()?.get(name).map(String::as_str)
    }
}

/// What is read of any object.
#[derive(Deserialize)]
struct Text<S> {
    metadata: Metadata,
    #[serde(default = "nothing")]
    status: Option<S>,
}

fn nothing<T>() -> Option<T> {
    None
}

fn read<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// As Go's `strconv.ParseBool` reads it, by which Argo CD does.
pub(crate) fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "TRUE" | "true" | "True")
}

/// Reads what is delivered of an AppProject from its JSON.
///
/// # Errors
/// With what is wrong with it, which the API server lets nobody write.
pub fn project(text: &str) -> Result<Value, String> {
    let mut project: Value = read(text)?;
    if let Some(project) = project.as_object_mut() {
        project.retain(|key, _| key != "status");
        if let Some(metadata) = project.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&&**key));
        }
    }
    Ok(project)
}

/// Reads the namespaces of Applications from the JSON of Argo CD's ConfigMap of parameters.
///
/// # Errors
/// With what is wrong with it, which the API server lets nobody write.
pub fn namespaces(text: &str) -> Result<Namespaces, String> {
    let data = read::<Config>(text)?.data.unwrap_or_default();
    Ok(data
        .get(NAMESPACES)
        .map(|list| Namespaces::configured(list))
        .unwrap_or_default())
}

#[derive(Deserialize)]
struct Config {
    data: Option<BTreeMap<String, String>>,
}

/// Reads how Argo CD tracks from the JSON of its ConfigMap.
///
/// # Errors
/// With what is wrong with it, which the API server lets nobody write.
pub fn tracking(text: &str) -> Result<Tracking, String> {
    let data = read::<Config>(text)?.data.unwrap_or_default();
    Ok(Tracking::configured(|key| data.get(key).map(String::as_str)))
}
