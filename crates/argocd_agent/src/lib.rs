//! argocd-agent as an OCM add-on: the objects on the hub and on managed clusters that a GitOpsCluster asks for, computed by pure
//! functions without input or output.
//!
//! [`template()`] is the content that runs on a managed cluster, [`management`] and the other functions of its module configure
//! OCM's installation of it, [`works`] are the ManifestWorks that we deliver in addition, and [`discovery`] finds the address
//! where managed clusters reach the hub. [`difference()`] computes the patch from the current object to the desired one.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod decisions;
pub mod discovery;
pub mod requests;
pub mod rollout;
pub mod state;
pub mod works;

mod addon;
mod difference;
mod manifests;
pub mod reconcile;
mod template;

pub use addon::{Entry, deployment_config, management, next_placement, next_template, placement, present_template};
pub use decisions::{decisions, next_decisions};
pub use difference::difference;
pub use discovery::{DiscoveryError, Server, configured_server, discover, principal_names, resource_proxy};
pub use template::{WITHOUT_OURS, WITHOUT_OURS_BESIDE_AN_OPERATOR, template};
pub use works::{argocd_work, ca_work};

use serde_json::{Value, json};

/// Returns the labels of all objects that the controller creates.
fn labels() -> Value {
    json!({ ocm::work::MANAGED_BY: ocm::work::OURS })
}

/// Returns the annotation that names the GitOpsCluster that owns an object.
fn owner((namespace, name): (&str, &str)) -> Value {
    json!({ hub_state::annotations::OWNER: format!("{namespace}/{name}") })
}
