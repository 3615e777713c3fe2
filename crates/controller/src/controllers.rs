//! The controllers of the process, one folder each: each computes the desired state from the cache. CONTRIBUTING.md has
//! the steps to add one: a folder, and lines here and in `lib.rs` are the first.

use hub_state::reconcile::Controller;

/// All controllers. A controller that reconciles several kinds has one entry for each, under the same name.
pub static CONTROLLERS: &[Controller] = &[
    crate::application_status::CONTROLLER,
    crate::pull::reconcile::CONTROLLER,
    crate::cluster_secrets::reconcile::CONTROLLER,
    crate::application_set_report::reconcile::CONTROLLER,
    crate::gitopscluster::CONTROLLER,
    crate::gitopscluster::SECRETS,
    crate::gitopscluster::AGENT_SECRETS,
    crate::argocd_agent::reconcile::HUB,
    crate::argocd_agent::reconcile::ADDON,
    crate::argocd_agent::reconcile::WORKS,
    crate::argocd_agent::reconcile::REQUESTS,
];

/// The field manager of the writes of all controllers, and the source of their Events.
pub const MANAGER: &str = "argocd-ocm-cmp";

/// The name of the controller that installs argocd-agent on managed clusters.
pub const AGENTS: &str = crate::argocd_agent::reconcile::HUB.name;

#[cfg(test)]
mod tests;
