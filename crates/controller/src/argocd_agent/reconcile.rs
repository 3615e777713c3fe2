//! The argocd-agent controller: runs argocd-agent as an OCM add-on on every managed cluster that a GitOpsCluster selects.
//!
//! It has several parts, by the kind of object that they reconcile: [`hub`] maintains the shared objects in Argo CD's namespace
//! and the ClusterManagementAddOn, [`addon`] the objects of one GitOpsCluster, [`works`] the ManifestWorks of one managed
//! cluster, and [`requests`] the CertificateSigningRequests of agents. The cluster Secrets of agents are reconciled with the
//! other Secrets of [GitOpsClusters](crate::gitopscluster).

mod addon;
mod authority;
mod blocklist;
mod hub;
mod issued;
mod mappers;
mod requests;
mod rollout;
mod templates;
mod works;

pub(crate) use addon::{CONTROLLER as ADDON, unserved_successors};
pub(crate) use hub::CONTROLLER as HUB;
pub(crate) use issued::revoked_but_run_by_others;
pub(crate) use requests::CONTROLLER as REQUESTS;
pub(crate) use rollout::requeue_after as rollout_requeue_after;
pub(crate) use templates::{agent_image, principal_image};
pub(crate) use works::CONTROLLER as WORKS;

use crate::argocd_agent as agent;
use crate::argocd_agent::rollout::Progress;
use crate::argocd_agent::{DesiredAgent, DiscoveryError, Server};
use crate::assignment::{GitOpsClusterRef, mappers as gitops};
use crate::cache::Cache;
use crate::cluster_secrets::mappers as cluster_secrets;
use crate::model::{Kind, Object};
use crate::reconcile::{Context, Watch};
use crate::runtime::action::Write;
use jiff::Timestamp;
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use ocm::resources::Resource;
use serde_json::{Value, json};

pub(crate) const NAME: &str = "argocd-agent";
pub(crate) const ABOUT: &str = "argocd-agent as an OCM add-on on each cluster that a GitOpsCluster's Placement \
                                selects, and its certificates";
pub(crate) const WATCHES: &[Watch] = &[
    Watch::new(Kind::GitOpsClusters, gitops::gitops_cluster),
    Watch::new(Kind::Placements, gitops::placement),
    Watch::new(Kind::Decisions, gitops::decision),
    Watch::new(Kind::Clusters, gitops::cluster),
    Watch::new(Kind::Secrets, gitops::secret),
    Watch::new(Kind::Namespace, gitops::namespace),
    Watch::new(Kind::Config, cluster_secrets::tracking),
    Watch::new(Kind::Certificates, mappers::certificates),
    Watch::new(Kind::TokenKey, mappers::agents),
    Watch::new(Kind::Bundle, mappers::agents),
    Watch::new(Kind::Blocklist, mappers::agents),
    Watch::new(Kind::IssuedCertificates, mappers::issued),
    Watch::new(Kind::Services, mappers::addresses),
    Watch::new(Kind::Routes, mappers::addresses),
    Watch::new(Kind::Nodes, mappers::addresses),
    Watch::new(Kind::Deployments, mappers::principals),
    Watch::new(Kind::Templates, mappers::owners),
    Watch::new(Kind::ManagementAddOn, mappers::management),
    Watch::new(Kind::AddOnConfigs, mappers::owners),
    Watch::new(Kind::AddOns, mappers::objects_of_cluster),
    Watch::new(Kind::OwnPlacements, mappers::owners),
    Watch::new(Kind::OwnDecisions, mappers::decisions),
    Watch::new(Kind::AgentWorks, mappers::objects_of_cluster),
    Watch::new(Kind::Requests, mappers::requests),
];

/// Returns the ClusterManagementAddOn.
fn management(cache: &Cache) -> Option<&Object> {
    cache.object(Kind::ManagementAddOn, &ObjectRef::new("", names::ADDON))
}

/// Returns the objects of a kind in Argo CD's namespace.
fn of_argocd(cache: &Cache, kind: Kind) -> Vec<&Value> {
    cache.objects(kind).map(|(_, it)| &it.object).collect()
}

/// Returns the address where the agents of a GitOpsCluster reach the principal.
///
/// # Errors
/// Returns the reason why there is no such address.
pub(crate) fn server(cache: &Cache, desired: &DesiredAgent) -> Result<Server, DiscoveryError> {
    desired.server(|| {
        let [services, routes, nodes] = [Kind::Services, Kind::Routes, Kind::Nodes].map(|kind| of_argocd(cache, kind));
        agent::discover(&services, &routes, &nodes)
    })
}

/// Returns the write that creates an object or patches it to the desired state, if needed. Keeps the fields that others set.
fn ensure(resource: &'static Resource, desired: Value, existing: Option<&Object>) -> Option<Write> {
    let text = |key: &str| desired["metadata"][key].as_str().unwrap_or_default();
    let object_ref = ObjectRef::new(text("namespace"), text("name"));
    match existing {
        None => Some(Write::Create {
            resource,
            object_ref,
            object: desired,
        }),
        Some(existing) if existing.deleting => None,
        Some(existing) => {
            let mut desired = desired;
            if let Some(fields) = desired.as_object_mut() {
                // Lists of built-in kinds omit these fields in their items.
                fields.retain(|key, _| !["apiVersion", "kind"].contains(&key.as_str()));
            }
            let mut body = agent::difference(&desired, &existing.object)?;
            body["metadata"]["resourceVersion"] = json!(existing.version);
            Some(Write::Patch {
                resource,
                object_ref,
                body,
            })
        }
    }
}

/// Returns the write that deletes an object of ours.
fn ensure_absent(resource: &'static Resource, object_ref: &ObjectRef, existing: &Object) -> Option<Write> {
    (existing.is_ours() && !existing.deleting).then(|| Write::Delete {
        resource,
        object_ref: object_ref.clone(),
        uid: existing.uid.clone(),
        version: existing.version.clone(),
        unless_exists: None,
    })
}

/// Returns true if a GitOpsCluster may have agents, and is not in deletion: it requests them, served or not, or has requested them
/// before its settings became invalid. It gets none before a controller has set a finalizer.
fn may_have_agents(gitops: GitOpsClusterRef<'_>) -> bool {
    !gitops.object.deleting && gitops.object.spec.may_have_agent() && gitops.has_any_finalizer()
}

/// Returns true if objects of a GitOpsCluster are left. For the last GitOpsCluster with agents, shared objects count too.
pub(crate) fn is_left(gitops: GitOpsClusterRef<'_>, now: Timestamp) -> bool {
    let is_last = gitops.object.deleting
        && gitops.object.spec.may_have_agent()
        && !GitOpsClusterRef::all(gitops.cache).any(may_have_agents);
    !gitops.is_of_another_controller() && addon::is_left(gitops)
        || issued::is_pending(gitops, now)
        || is_last && hub::is_left(gitops.cache)
}

/// The progress of the add-on of a GitOpsCluster.
pub(crate) struct AddonStatus {
    /// True if its AddOnTemplate exists.
    pub(crate) template: bool,
    /// True if its AddOnDeploymentConfig exists.
    pub(crate) config: bool,
    /// True if the ClusterManagementAddOn has the template; or the clusters that have the add-on but that no GitOpsCluster
    /// selects.
    pub(crate) management: Result<bool, Vec<String>>,
    /// The progress of the rollout to its clusters.
    pub(crate) progress: Progress,
}

/// Returns the progress of the add-on of a GitOpsCluster.
pub(crate) fn addon_status(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> AddonStatus {
    let cache = gitops.cache;
    let name = templates::template_name(gitops, desired, context);
    let config = ObjectRef::new(
        &gitops.object_ref.namespace,
        &names::deployment_config(&gitops.object_ref.name),
    );
    let existing = management(cache).map(|it| &it.object);
    let has_template = |existing: &Value| {
        // During a rollout the second entry has the desired version.
        let (first, next) = (
            agent::present_template(gitops.namespace_and_name(), existing),
            agent::next_template(gitops.namespace_and_name(), existing),
        );
        [first, next].contains(&Some(&name))
    };
    AddonStatus {
        template: cache.object(Kind::Templates, &ObjectRef::new("", &name)).is_some(),
        config: cache.object(Kind::AddOnConfigs, &config).is_some(),
        management: match existing.filter(|existing| agent::is_named(gitops.namespace_and_name(), existing)) {
            Some(existing) => Ok(has_template(existing)),
            None => match hub::unselected_clusters(cache, context) {
                unselected_clusters if unselected_clusters.is_empty() => Ok(false),
                unselected_clusters => Err(unselected_clusters),
            },
        },
        progress: rollout::plan(gitops, &name, context).progress,
    }
}

#[cfg(test)]
mod tests;
