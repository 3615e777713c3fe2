//! argocd-agent as an OCM add-on: the objects on the hub and on managed clusters that a GitOpsCluster asks for, computed by pure
//! functions without input or output.
//!
//! [`template()`] is the content that runs on a managed cluster, [`management`] and the other functions of its module configure
//! OCM's installation of it, [`works`] are the ManifestWorks that we deliver in addition, and [`discovery`] finds the address
//! where managed clusters reach the hub. [`difference()`] computes the patch from the current object to the desired one.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod rollout;
pub mod state;
pub mod works;

mod addon;
mod decisions;
mod difference;
mod discovery;
mod manifests;
pub mod reconcile;
mod template;

pub use addon::{Entry, config_at, deployment_config, management, placement, template_at};
pub use decisions::decision;
pub use difference::difference;
pub use discovery::{Server, resource_proxy, server};
pub use template::{WITHOUT_OURS, WITHOUT_OURS_BESIDE_AN_OPERATOR, agent_image, principal_image, template};
pub use works::{argocd_work, ca_work};

use primitives::object_ref::ObjectRef;
use serde_json::{Value, json};

/// Returns the labels of all objects that the controller creates.
fn labels() -> Value {
    json!({ ocm::work::MANAGED_BY: ocm::work::OURS })
}

fn owner(gitops_cluster: &ObjectRef) -> Value {
    json!({ hub_state::annotations::OWNER: gitops_cluster.to_string() })
}

fn metadata(gitops_cluster: &ObjectRef, namespace: &str, name: &str) -> Value {
    json!({"namespace": namespace, "name": name, "labels": labels(), "annotations": owner(gitops_cluster)})
}
