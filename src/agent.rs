//! argocd-agent as an add-on of Open Cluster Management: what stands on the hub and what managed clusters are to run for it, as
//! pure functions from what a GitOpsCluster asks for to objects. Nothing here reads or writes.
//!
//! [`template()`] is what a managed cluster runs, [`management`] and its neighbours tell OCM where that goes, [`works`] are what we
//! deliver beside it, [`discovery`] is where managed clusters reach the hub. [`difference()`] says what is still to be done.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod decisions;
pub mod discovery;
pub mod names;
pub mod requests;
pub mod rollout;
pub mod state;
pub mod works;

mod addon;
mod difference;
mod images;
mod template;
mod wanted;

pub use addon::{
    Entry, deployment_config, is_named, management, next_placement, next_template, placement, present_template,
};
pub use decisions::{decisions, next_decisions};
pub use difference::difference;
pub use discovery::{Server, discover, principal_names, resource_proxy};
pub use images::{Images, shipped};
pub use template::{WITHOUT_OURS, WITHOUT_OURS_BESIDE_AN_OPERATOR, template};
pub use wanted::{Mode, Wanted};
pub use works::{argocd_work, ca_work};

use serde_json::{Value, json};

/// What is written on all that is ours.
fn labels() -> Value {
    json!({ crate::cluster_secret::MANAGED_BY: crate::cluster_secret::OURS })
}

/// The annotation that says of which GitOpsCluster an object is.
fn owner((namespace, name): (&str, &str)) -> Value {
    json!({ crate::cluster_secret::OWNER: format!("{namespace}/{name}") })
}
