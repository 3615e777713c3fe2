//! The argocd-agent controller: runs argocd-agent as an OCM add-on on every managed cluster that a GitOpsCluster selects.
//!
//! It has several parts, by the kind of object that they reconcile: [`hub`] maintains the shared objects in Argo CD's namespace
//! and the ClusterManagementAddOn, [`addon`] the objects of one GitOpsCluster, [`works`] the ManifestWorks of one managed
//! cluster, and [`requests`] the CertificateSigningRequests of agents. The cluster Secrets of agents are reconciled with the
//! other Secrets of GitOpsClusters.

mod addon;
mod authority;
mod blocklist;
mod hub;
mod issued;
mod mappers;
mod requests;
mod rollout;
pub(crate) mod shared;
mod works;

pub use addon::{CONTROLLER as ADDON, unserved_successors};
pub use authority::renewed_by_its_owner;
pub use hub::CONTROLLER as HUB;
pub use issued::{MAX_CERTIFICATES, revoked_but_run_by_others};
pub use requests::CONTROLLER as REQUESTS;
pub use rollout::requeue_after as rollout_requeue_after;
pub use shared::CONTROLLER;
pub use works::{CONTROLLER as WORKS, clusters_with_foreign_argocd, is_registered_by};

use crate::rollout::Progress;
use crate::template::template_name;
use assignment::GitOpsClusterRef;
use hub_state::{Context, DesiredAgent, Kind};
use jiff::Timestamp;
use ocm::argocd_agent::{self as names, AddonPlacement};
use primitives::object_ref::ObjectRef;
use shared::{installed_template, may_have_agents};
use std::collections::BTreeSet;

/// Returns the GitOpsClusters for which the last one with agents waits: they are missing without a deletion, and need what all share.
pub fn absent_owners(gitops: GitOpsClusterRef<'_>) -> BTreeSet<ObjectRef> {
    let absent = is_last(gitops).then(|| hub::absent_owners(gitops.cache));
    absent.unwrap_or_default()
}

/// Returns true if a GitOpsCluster is being deleted, and no other one has agents.
fn is_last(gitops: GitOpsClusterRef<'_>) -> bool {
    gitops.object.deleting
        && gitops.object.spec.may_have_agent()
        && !GitOpsClusterRef::all(gitops.cache).any(may_have_agents)
}

/// Returns true if objects of a GitOpsCluster are left. For the last GitOpsCluster with agents, shared objects count too.
pub fn is_left(gitops: GitOpsClusterRef<'_>, now: Timestamp) -> bool {
    !gitops.is_of_another_controller() && addon::is_left(gitops)
        || issued::is_pending(gitops, now)
        || is_last(gitops) && hub::is_left(gitops.cache)
}

/// The progress of the add-on of a GitOpsCluster.
pub struct AddonStatus {
    pub template: bool,
    pub config: bool,
    /// The clusters that delay the installation, because they have the add-on but no GitOpsCluster selects them; `None` if the
    /// ClusterManagementAddOn has the template.
    pub delayed_by: Option<Vec<String>>,
    pub progress: Progress,
}

pub fn addon_status(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> AddonStatus {
    let cache = gitops.cache;
    let name = template_name(gitops, desired, context);
    let config = names::deployment_config(gitops.object_ref, cache.argocd());
    // During a rollout the second entry has the desired version.
    let mut placements = [AddonPlacement::All, AddonPlacement::Next].into_iter();
    let is_installed = placements.any(|placement| installed_template(gitops, placement) == Some(&name));
    AddonStatus {
        template: cache.object(Kind::Templates, &ObjectRef::new("", &name)).is_some(),
        config: cache.object(Kind::AddOnConfigs, &config).is_some(),
        delayed_by: (!is_installed).then(|| hub::left_out(cache, &hub::entries(cache, context))),
        progress: rollout::plan(gitops, &name, context).progress,
    }
}
