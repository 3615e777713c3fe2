//! The model of the hub's objects: only the fields that the controllers need. The works of a fleet contain every manifest; of
//! those only the health is kept.

mod application;
mod assignment;
mod certificate_request;
mod cluster;
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

pub use application::{Application, Condition};
pub use assignment::{Assignment, Blocked};
pub use certificate_request::{CertificateRequest, RequestSpec, RequestStatus, Requester};
pub use cluster::{ACM_HUB, Availability, Cluster};
pub use desired_agent::{DesiredAgent, Mode};
pub use generated::Generated;
pub use gitops_cluster::{GitOpsCluster, OPEN, PUSH, Spec};
pub use images::{Images, have_same_version, shipped};
pub use kind::Kind;
pub use labels::Labels;
pub use object::{IssuedCertificate, Object};
pub use placement_decision::PlacementDecision;
pub use secret_kind::SecretKind;
pub use tls_secret::{PROMOTED, TlsSecret};
pub(crate) use work::Marks;
pub use work::{Work, WorkState};

use serde::Deserialize;
use std::collections::BTreeMap;

pub(crate) fn parse<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Reads the data of a ConfigMap from its JSON.
pub(crate) fn parse_data(text: &str) -> Result<BTreeMap<String, String>, String> {
    #[derive(Deserialize)]
    struct ConfigMap {
        data: Option<BTreeMap<String, String>>,
    }
    Ok(parse::<ConfigMap>(text)?.data.unwrap_or_default())
}
