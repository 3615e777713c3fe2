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

pub(crate) use addon::CONTROLLER as ADDON;
pub(crate) use hub::CONTROLLER as HUB;
pub(crate) use issued::revoked_but_run_by_others;
pub(crate) use requests::CONTROLLER as REQUESTS;
pub(crate) use rollout::requeue_after as rollout_again;
pub(crate) use works::CONTROLLER as WORKS;

use crate::argocd_agent as agent;
use crate::argocd_agent::rollout::Progress;
use crate::argocd_agent::{DesiredAgent, Server};
use crate::cache::Cache;
use crate::gitopscluster::ownership::{Ownership, is_anothers, is_held};
use crate::model::AgentResource;
use crate::model::{GitOpsCluster, Object};
use crate::reconcile::{Context, Watch};
use crate::runtime::action::{Action, InvolvedObject, Write};
use crate::watches::Kind;
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use ocm::resources::{GITOPS_CLUSTERS, NAMESPACES, Resource};
use serde_json::{Value, json};

pub(crate) const NAME: &str = "argocd-agent";
pub(crate) const ABOUT: &str = "argocd-agent as an OCM add-on on each cluster that a GitOpsCluster's Placement \
                                selects, and its certificates";
pub(crate) const WATCHES: &[Watch] = &[
    Watch::mapped(Kind::GitOpsClusters, crate::gitopscluster::mappers::gitops_cluster),
    Watch::mapped(Kind::Placements, crate::gitopscluster::mappers::placement),
    Watch::mapped(Kind::Decisions, crate::gitopscluster::mappers::decision),
    Watch::cached(Kind::Clusters),
    Watch::mapped(Kind::Secrets, crate::gitopscluster::mappers::secret),
    Watch::mapped(Kind::Namespace, crate::gitopscluster::mappers::namespace),
    Watch::cached(Kind::Config),
    Watch::mapped(Kind::Certificates, mappers::certificates),
    Watch::mapped(Kind::AgentResource(AgentResource::TokenKey), mappers::agents),
    Watch::mapped(Kind::AgentResource(AgentResource::Bundle), mappers::agents),
    Watch::mapped(Kind::AgentResource(AgentResource::Blocklist), mappers::agents),
    Watch::mapped(Kind::AgentResource(AgentResource::Issued), mappers::issued),
    Watch::mapped(Kind::AgentResource(AgentResource::Services), mappers::addresses),
    Watch::mapped(Kind::AgentResource(AgentResource::Routes), mappers::addresses),
    Watch::mapped(Kind::AgentResource(AgentResource::Nodes), mappers::addresses),
    Watch::mapped(Kind::AgentResource(AgentResource::Deployments), mappers::agents),
    Watch::mapped(Kind::AgentResource(AgentResource::Templates), mappers::owners),
    Watch::mapped(Kind::AgentResource(AgentResource::Management), mappers::management),
    Watch::mapped(Kind::AgentResource(AgentResource::AddOnConfigs), mappers::owners),
    Watch::mapped(Kind::AgentResource(AgentResource::AddOns), mappers::objects_of_cluster),
    Watch::mapped(Kind::AgentResource(AgentResource::Placements), mappers::owners),
    Watch::mapped(Kind::AgentResource(AgentResource::Decisions), mappers::decisions),
    Watch::mapped(Kind::AgentResource(AgentResource::Works), mappers::objects_of_cluster),
    Watch::mapped(Kind::AgentResource(AgentResource::Requests), mappers::requests),
];

/// Returns the GitOpsClusters that request agents for the clusters of this Argo CD.
fn gitops_with_agents<'i>(
    cache: &'i Cache,
    argocd: &'i str,
) -> impl Iterator<Item = (&'i ObjectRef, &'i GitOpsCluster, &'i DesiredAgent)> {
    let all = cache.gitops_clusters();
    all.filter_map(move |(object_ref, it)| Some((object_ref, it, desired(cache, object_ref, it, argocd)?)))
}

/// Returns the argocd-agent settings of a GitOpsCluster, if it requests agents and is served.
fn desired<'i>(cache: &Cache, object_ref: &ObjectRef, it: &'i GitOpsCluster, argocd: &str) -> Option<&'i DesiredAgent> {
    let is_served = Ownership::of(cache, object_ref, it, argocd) == Ownership::Served;
    let is_asking = is_served && !it.deleting && is_held(object_ref, it, argocd);
    it.spec.agent.as_ref().filter(|_| is_asking)
}

/// Returns the ClusterManagementAddOn.
fn management(cache: &Cache) -> Option<&Object> {
    cache.object(AgentResource::Management, &ObjectRef::new("", names::ADDON))
}

/// Returns the namespace and name of a GitOpsCluster.
fn namespace_and_name(object_ref: &ObjectRef) -> (&str, &str) {
    (&object_ref.namespace, &object_ref.name)
}

/// Returns the objects of a kind in Argo CD's namespace.
fn of_argocd(cache: &Cache, kind: AgentResource) -> Vec<&Value> {
    cache.objects(kind).map(|(_, it)| &it.object).collect()
}

/// Returns the address where the agents of a GitOpsCluster reach the principal.
///
/// # Errors
/// Returns an error that names the missing object and the remediation.
pub fn server(cache: &Cache, desired: &DesiredAgent) -> Result<Server, String> {
    desired.server(|| {
        let [services, routes, nodes] =
            [AgentResource::Services, AgentResource::Routes, AgentResource::Nodes].map(|kind| of_argocd(cache, kind));
        agent::discover(&services, &routes, &nodes)
    })
}

/// Returns an action with writes on behalf of a GitOpsCluster.
fn of_gitops(object_ref: &ObjectRef, it: &GitOpsCluster, writes: Vec<Write>) -> Action {
    Action {
        involved_object: InvolvedObject {
            resource: &GITOPS_CLUSTERS,
            object_ref: object_ref.clone(),
            uid: it.uid.clone(),
        },
        writes,
        refresh: false,
        events: Vec::new(),
    }
}

/// Returns an action with writes on behalf of the Argo CD of a namespace.
fn of_hub(argocd: &str, writes: Vec<Write>) -> Action {
    Action {
        involved_object: InvolvedObject {
            resource: &NAMESPACES,
            object_ref: ObjectRef::new("", argocd),
            uid: Box::default(),
        },
        writes,
        refresh: false,
        events: Vec::new(),
    }
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

/// Returns true if any object created for a GitOpsCluster is left, or, if it is the last one that requested agents, any shared
/// object.
#[must_use]
pub fn is_left(cache: &Cache, object_ref: &ObjectRef, it: &GitOpsCluster, context: &Context<'_>) -> bool {
    let argocd = &*context.settings.argocd;
    let mut others = cache.gitops_clusters().filter(|(other, _)| *other != object_ref);
    let is_last =
        it.deleting && it.spec.agent.is_some() && !others.any(|(_, it)| !it.deleting && it.spec.agent.is_some());
    !is_anothers(object_ref, it, argocd) && addon::is_left(cache, object_ref)
        || issued::is_pending(cache, object_ref, argocd, context.now)
        || is_last && hub::is_left(cache, argocd)
}

/// The progress of the add-on of a GitOpsCluster.
pub struct AddonStatus {
    /// True if its AddOnTemplate exists.
    pub template: bool,
    /// True if its AddOnDeploymentConfig exists.
    pub config: bool,
    /// True if the ClusterManagementAddOn has the template; or the clusters that have the add-on but that no GitOpsCluster
    /// selects.
    pub management: Result<bool, Vec<String>>,
    /// The progress of the rollout to its clusters.
    pub progress: Progress,
}

/// Returns the progress of the add-on of a GitOpsCluster.
#[must_use]
pub fn addon_status(
    cache: &Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    desired: &DesiredAgent,
    context: &Context<'_>,
) -> AddonStatus {
    let name = templates::template_name(object_ref, desired, context);
    let config = ObjectRef::new(&object_ref.namespace, &names::deployment_config(&object_ref.name));
    let existing = management(cache).map(|it| &it.object);
    let is_told = |existing: &Value| {
        // During a rollout the second entry has the desired version.
        let (first, next) = (
            agent::present_template(namespace_and_name(object_ref), existing),
            agent::next_template(namespace_and_name(object_ref), existing),
        );
        [first, next].contains(&Some(&name))
    };
    AddonStatus {
        template: cache
            .object(AgentResource::Templates, &ObjectRef::new("", &name))
            .is_some(),
        config: cache.object(AgentResource::AddOnConfigs, &config).is_some(),
        management: match existing.filter(|existing| agent::is_named(namespace_and_name(object_ref), existing)) {
            Some(existing) => Ok(is_told(existing)),
            None => match hub::unselected_clusters(cache, context) {
                unselected_clusters if unselected_clusters.is_empty() => Ok(false),
                unselected_clusters => Err(unselected_clusters),
            },
        },
        progress: rollout::plan(cache, object_ref, it, &name, context).progress,
    }
}

/// Returns the time when the last certificate of a cluster's agent expires.
#[must_use]
pub fn certificate_until<'i>(cache: &'i Cache, cluster: &str, argocd: &str) -> Option<&'i str> {
    issued::last_expiry(cache, cluster, argocd)
}

#[cfg(test)]
mod tests;
