//! The table of controllers: each computes the desired state from the cache. CONTRIBUTING.md has the steps to add one: a crate, and
//! a line here, are the first.

use hub_state::Controller;

/// All controllers. A controller that reconciles several kinds has one entry for each, under the same name.
pub static CONTROLLERS: &[Controller] = &[
    application_status::CONTROLLER,
    pull::reconcile::CONTROLLER,
    cluster_secrets::reconcile::CONTROLLER,
    application_set_report::reconcile::CONTROLLER,
    gitopscluster::CONTROLLER,
    gitopscluster::SECRETS,
    gitopscluster::AGENT_SECRETS,
    argocd_agent::reconcile::HUB,
    argocd_agent::reconcile::ADDON,
    argocd_agent::reconcile::WORKS,
    argocd_agent::reconcile::REQUESTS,
];

/// The field manager of the writes of all controllers, and the source of their Events.
pub const MANAGER: &str = "argocd-ocm-cmp";

/// The name of the controller that installs argocd-agent on managed clusters.
pub const AGENTS: &str = argocd_agent::reconcile::HUB.name;

#[cfg(test)]
mod tests;
