//! The model of the hub's objects: only the fields that the controllers need. The works of a fleet contain every manifest; of
//! those only the health is kept.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod app_project;
mod application;
mod application_set;
mod assignment;
mod certificate_request;
mod cluster;
mod cluster_hold;
mod desired_agent;
mod generated;
mod gitops_cluster;
mod images;
mod kind;
mod labels;
mod object;
mod placement_decision;
#[cfg(test)]
mod properties;
mod secret_kind;
mod tls_secret;
mod work;

pub use app_project::AppProject;
pub use application::{Application, Condition};
pub use application_set::ApplicationSet;
pub use assignment::{Assignment, Blocked};
pub use certificate_request::{CertificateRequest, RequestSpec, RequestStatus, Requester};
pub use cluster::{ACM_HUB, Availability, Cluster};
pub use cluster_hold::ClusterHold;
pub use desired_agent::{DesiredAgent, Mode};
pub use generated::Generated;
pub use gitops_cluster::{GitOpsCluster, OPEN, PUSH, Placement, Spec, is_open};
pub use images::{Images, have_same_version, shipped};
pub use kind::Kind;
pub use labels::Labels;
pub use object::{Content, IssuedCertificate, Object};
pub use placement_decision::PlacementDecision;
pub use secret_kind::SecretKind;
pub use tls_secret::{PROMOTED, TlsSecret};
pub use work::{Work, WorkKind, WorkState};

use crate::pull::namespaces::{NAMESPACES, Namespaces};
use ocm::tracking::Tracking;
use runtime::invalid_object::InvalidObject;
use runtime::metadata::Metadata;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The fields that are read from any object.
#[derive(Deserialize)]
struct Text<S> {
    metadata: Metadata,
    #[serde(default = "nothing")]
    status: Option<S>,
}

fn nothing<T>() -> Option<T> {
    None
}

fn parse<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, InvalidObject> {
    serde_json::from_str(text).map_err(|error| InvalidObject::json(&error))
}

/// Reads the namespaces of Applications from the JSON of the ConfigMap with Argo CD's parameters.
///
/// # Errors
///
/// Returns an error if the JSON or a field is invalid.
pub fn namespaces(text: &str) -> Result<Namespaces, InvalidObject> {
    let data = parse::<Config>(text)?.data.unwrap_or_default();
    Ok(data
        .get(NAMESPACES)
        .map(|list| Namespaces::configured(list))
        .unwrap_or_default())
}

#[derive(Deserialize)]
struct Config {
    data: Option<BTreeMap<String, String>>,
}

/// Reads how Argo CD tracks resources from the JSON of its ConfigMap.
///
/// # Errors
///
/// Returns an error if the JSON or a field is invalid.
pub fn tracking(text: &str) -> Result<Tracking, InvalidObject> {
    let data = parse::<Config>(text)?.data.unwrap_or_default();
    Ok(Tracking::configured(|key| data.get(key).map(String::as_str)))
}
