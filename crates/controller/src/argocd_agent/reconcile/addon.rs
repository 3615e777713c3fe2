//! The controller for the add-on objects of one GitOpsCluster: an AddOnTemplate, an AddOnDeploymentConfig, and the list of its
//! clusters.
//!
//! OCM installs an add-on on every cluster that the PlacementDecisions of a Placement name, and uninstalls it at once when none
//! names the cluster any more. Therefore OCM gets a Placement of ours that it does not schedule, with PlacementDecisions that
//! this controller writes: empty, incomplete or contradictory input of the user changes nothing, and an unreachable cluster keeps
//! its add-on.

use super::templates::{template, template_name};
use super::{
    ABOUT, NAME, WATCHES, desired, ensure, ensure_absent, gitops_with_agents, management, namespace_and_name,
    of_gitops, rollout, server, works,
};
use crate::argocd_agent as agent;
use crate::argocd_agent::{DesiredAgent, Entry};
use crate::cache::{Cache, ReconcileKind};
use crate::gitopscluster::membership::{agents_of, clusters_of, decisions_of, has_agent, has_given_up};
use crate::gitopscluster::ownership::is_anothers;
use crate::model::AgentResource;
use crate::model::{GitOpsCluster, Object};
use crate::reconcile::{Context, Controller};
use crate::runtime::action::{Action, Write};
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use ocm::resources::{ADDON_CONFIGS, DECISION_STATUSES, DECISIONS, PLACEMENTS, Resource, TEMPLATES};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

pub(crate) const CONTROLLER: Controller = Controller {
    name: NAME,
    about: ABOUT,
    kind: ReconcileKind::GitOpsCluster,
    watches: WATCHES,
    min_write_interval: Duration::from_millis(500),
    reconcile,
    requeue_after: rollout::requeue_after,
};

/// The kinds of objects created for a GitOpsCluster, in the order of their deletion.
const OWNED_KINDS: [(AgentResource, &Resource); 4] = [
    (AgentResource::Decisions, &DECISIONS),
    (AgentResource::Placements, &PLACEMENTS),
    (AgentResource::AddOnConfigs, &ADDON_CONFIGS),
    (AgentResource::Templates, &TEMPLATES),
];

/// The desired install strategy entries of a GitOpsCluster.
pub(super) struct DesiredEntry {
    object_ref: ObjectRef,
    template: String,
    /// The template that some of its clusters already have, during a rollout.
    next: Option<String>,
}

impl DesiredEntry {
    /// Returns the entry for the ClusterManagementAddOn.
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry {
            gitops_cluster: namespace_and_name(&self.object_ref),
            template: &self.template,
            next: self.next.as_deref(),
        }
    }
}

fn reconcile(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let it = cache.gitops_cluster(object_ref)?;
    let argocd = &*context.settings.argocd;
    let writes = match desired(cache, object_ref, it, argocd) {
        Some(desired) => writes(cache, object_ref, it, desired, context),
        None if is_anothers(object_ref, it, argocd) => Vec::new(),
        None if it.deleting || !it.spec.may_have_agent() => leftovers(cache, object_ref),
        // Currently not served.
        None => Vec::new(),
    };
    (!writes.is_empty()).then(|| of_gitops(object_ref, it, writes))
}

/// Returns the writes that bring the objects of a GitOpsCluster to the desired state.
fn writes(
    cache: &Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    desired: &DesiredAgent,
    context: &Context<'_>,
) -> Vec<Write> {
    let (argocd, gitops_cluster) = (&*context.settings.argocd, namespace_and_name(object_ref));
    let existing = |kind, object: &Value| {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
        cache.object(kind, &ObjectRef::new(text("namespace"), text("name")))
    };
    let mut writes = Vec::new();
    // Templates are never changed: OCM would apply the change to all clusters at once.
    let name = template_name(object_ref, desired, context);
    if cache
        .object(AgentResource::Templates, &ObjectRef::new("", &name))
        .is_none()
    {
        writes.extend(ensure(&TEMPLATES, template(object_ref, desired, context), None));
    }
    if let Ok(server) = server(cache, desired) {
        let config = agent::deployment_config(gitops_cluster, desired, &server);
        let before = existing(AgentResource::AddOnConfigs, &config);
        writes.extend(ensure(&ADDON_CONFIGS, config, before));
    }
    let placement = agent::placement(gitops_cluster);
    let before = existing(AgentResource::Placements, &placement);
    writes.extend(ensure(&PLACEMENTS, placement, before));
    writes.extend(decisions(cache, object_ref, it, argocd));
    writes.extend(rollout::writes(cache, object_ref, it, &name, context));
    writes.extend(outdated(cache, object_ref, &name));
    writes
}

/// Returns the objects of a kind that were created for a GitOpsCluster.
pub(super) fn of<'i>(
    cache: &'i Cache,
    kind: AgentResource,
    object_ref: &ObjectRef,
) -> impl Iterator<Item = (&'i ObjectRef, &'i Object)> {
    let all = cache.objects(kind);
    all.filter(move |(_, it)| it.owner().as_ref() == Some(object_ref))
}

/// Returns the PlacementDecisions of a GitOpsCluster that name the clusters with the next version, during a rollout.
pub(super) fn next_decisions_of<'i>(
    cache: &'i Cache,
    object_ref: &ObjectRef,
) -> impl Iterator<Item = (&'i ObjectRef, &'i Object)> {
    let all = of(cache, AgentResource::Decisions, object_ref);
    all.filter(|(at, _)| names::next_decision_number(&object_ref.name, &at.name).is_some())
}

/// Returns the clusters in such PlacementDecisions, by the numbers of the objects.
pub(super) fn present(
    object_ref: &ObjectRef,
    existing: &[(&ObjectRef, &Object)],
    number: fn(&str, &str) -> Option<usize>,
) -> agent::decisions::Present {
    let held = existing.iter().filter_map(|(at, it)| {
        let number = number(&object_ref.name, &at.name)?;
        Some((number, it.decided().map(Into::into).collect()))
    });
    held.collect()
}

/// Returns the writes of the PlacementDecisions that name all clusters with the add-on.
fn decisions(cache: &Cache, object_ref: &ObjectRef, it: &GitOpsCluster, argocd: &str) -> Vec<Write> {
    let existing: Vec<_> = decisions_of(cache, object_ref).collect();
    let mut clusters = agents_of(cache, object_ref, it, argocd);
    clusters.extend(clusters_to_hand_over(cache, object_ref, argocd));
    clusters.extend(clusters_with_operator(cache, object_ref, argocd));
    let held = present(object_ref, &existing, names::decision_number);
    let desired = agent::decisions(namespace_and_name(object_ref), &clusters, &held);
    write_decisions(object_ref, desired, existing)
}

/// Returns the clusters that this GitOpsCluster has released, but whose operator still has an ArgoCD resource to delete.
fn clusters_with_operator<'i>(cache: &'i Cache, object_ref: &ObjectRef, argocd: &str) -> BTreeSet<&'i str> {
    let mut clusters: BTreeSet<_> = works::operated(cache, object_ref)
        .map(|(at, _)| &*at.namespace)
        .collect();
    let present = clusters_of(cache, object_ref);
    let is_taken = |cluster: &str| {
        gitops_with_agents(cache, argocd).any(|(object_ref, it, _)| has_agent(cache, object_ref, it, cluster, argocd))
    };
    clusters.retain(|cluster| present.contains(cluster) && !is_taken(cluster));
    clusters
}

/// Returns the clusters that another GitOpsCluster takes over but has not named yet: OCM would uninstall the add-on meanwhile.
fn clusters_to_hand_over<'i>(cache: &'i Cache, object_ref: &ObjectRef, argocd: &str) -> Vec<&'i str> {
    let others: Vec<_> = gitops_with_agents(cache, argocd)
        .filter(|(other, ..)| *other != object_ref)
        .collect();
    let is_taken = |cluster: &&str| {
        let mut others = others.iter();
        others.any(|(other, it, _)| {
            has_agent(cache, other, it, cluster, argocd) && !cache.has_written_decision(other, cluster)
        })
    };
    if others.is_empty() {
        return Vec::new();
    }
    clusters_of(cache, object_ref).into_iter().filter(is_taken).collect()
}

/// Returns the writes that create or update these PlacementDecisions and delete all others of those that exist.
pub(super) fn write_decisions(
    object_ref: &ObjectRef,
    desired: Vec<Value>,
    existing: Vec<(&ObjectRef, &Object)>,
) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut stay = BTreeSet::new();
    for mut decision in desired {
        let status = decision["status"].take();
        let at = ObjectRef::new(
            &object_ref.namespace,
            decision["metadata"]["name"].as_str().unwrap_or_default(),
        );
        let before = existing.iter().find(|(other, _)| **other == at).map(|(_, it)| *it);
        if let Some(object) = decision.as_object_mut() {
            object.remove("status");
        }
        writes.extend(ensure(&DECISIONS, decision, before));
        // The status is a subresource, which is written once the object exists.
        if let Some(before) = before.filter(|it| it.object["status"]["decisions"] != status["decisions"]) {
            writes.push(Write::Patch {
                resource: &DECISION_STATUSES,
                object_ref: at.clone(),
                body: json!({"metadata": {"resourceVersion": before.version}, "status": status}),
            });
        }
        stay.insert(at);
    }
    let obsolete = existing.into_iter().filter(|(at, _)| !stay.contains(*at));
    writes.extend(obsolete.filter_map(|(at, it)| ensure_absent(&DECISIONS, at, it)));
    writes
}

/// Returns the writes that delete templates that no cluster has or gets.
fn outdated(cache: &Cache, object_ref: &ObjectRef, current: &str) -> Vec<Write> {
    let all = of(cache, AgentResource::Templates, object_ref);
    let mut old = all.filter(|(_, it)| !it.deleting).peekable();
    if old.peek().is_none() {
        return Vec::new();
    }
    let texts = cache
        .objects(AgentResource::AddOns)
        .map(|(_, it)| &it.object["status"]["configReferences"]);
    let texts = texts.chain(management(cache).map(|it| &it.object["spec"]));
    let used: BTreeSet<&str> = texts.flat_map(names_in).collect();
    let unused = old.filter(|(at, _)| *at.name != *current && !used.contains(&*at.name));
    unused
        .filter_map(|(at, it)| ensure_absent(&TEMPLATES, at, it))
        .collect()
}

/// Collects all fields `name` in a value.
fn names_in(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(all) => all.iter().flat_map(names_in).collect(),
        Value::Object(fields) => {
            let name = fields.get("name").and_then(Value::as_str);
            name.into_iter().chain(fields.values().flat_map(names_in)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the writes that delete the objects of a GitOpsCluster that no longer wants the add-on, once OCM has uninstalled it.
fn leftovers(cache: &Cache, object_ref: &ObjectRef) -> Vec<Write> {
    let is_named =
        management(cache).is_some_and(|existing| agent::is_named(namespace_and_name(object_ref), &existing.object));
    let clusters = clusters_of(cache, object_ref);
    let others = cache
        .objects(AgentResource::Decisions)
        .filter(|(_, it)| it.owner().as_ref() != Some(object_ref));
    let others: BTreeSet<_> = others.flat_map(|(_, it)| it.decided()).collect();
    let mut addons = cache.objects(AgentResource::AddOns).map(|(at, _)| &*at.namespace);
    if is_named || addons.any(|cluster| clusters.contains(cluster) && !others.contains(cluster)) {
        return Vec::new();
    }
    let all = OWNED_KINDS.into_iter().flat_map(|(kind, resource)| {
        let existing = of(cache, kind, object_ref);
        existing.filter_map(move |(at, it)| ensure_absent(resource, at, it))
    });
    all.collect()
}

/// Returns true if any object created for a GitOpsCluster is left.
pub(super) fn is_left(cache: &Cache, object_ref: &ObjectRef) -> bool {
    let kinds = OWNED_KINDS
        .into_iter()
        .map(|(kind, _)| kind)
        .chain([AgentResource::Works]);
    kinds
        .into_iter()
        .any(|kind| of(cache, kind, object_ref).next().is_some())
}

/// Returns the clusters that an entry of the add-on names.
pub(super) fn named<'i>(cache: &'i Cache, entry: &DesiredEntry) -> BTreeSet<&'i str> {
    clusters_of(cache, &entry.object_ref)
}

/// Returns true if all GitOpsClusters that installed the add-on on a cluster have certainly released it.
pub(super) fn is_given_up(cache: &Cache, cluster: &str, argocd: &str) -> bool {
    let mut owners = cache.gitops_with_decision(cluster).peekable();
    owners.peek().is_some()
        && owners.all(|owner| match cache.gitops_cluster(&owner) {
            Some(it) => has_given_up(cache, &owner, it, cluster, argocd),
            None => cache.is_gitops_cluster_deleted(&owner),
        })
}

/// Returns the desired entries of a GitOpsCluster, once all objects that they reference exist.
pub(super) fn entry(
    cache: &Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    context: &Context<'_>,
) -> Option<DesiredEntry> {
    let desired = it.spec.agent.as_ref()?;
    let at = |name: &str| ObjectRef::new(&object_ref.namespace, name);
    let template = template_name(object_ref, desired, context);
    cache.object(AgentResource::Templates, &ObjectRef::new("", &template))?;
    cache.object(AgentResource::Placements, &at(&names::placement(&object_ref.name)))?;
    cache.object(
        AgentResource::AddOnConfigs,
        &at(&names::deployment_config(&object_ref.name)),
    )?;
    // OCM would uninstall the add-on from clusters that are not named yet.
    let clusters = agents_of(cache, object_ref, it, &context.settings.argocd);
    let is_named = clusters.is_subset(&clusters_of(cache, object_ref));
    is_named.then(|| {
        let plan = rollout::plan(cache, object_ref, it, &template, context);
        DesiredEntry {
            object_ref: object_ref.clone(),
            template: plan.first.to_owned(),
            next: rollout::next(cache, object_ref, &plan),
        }
    })
}

/// Returns the current entries of a GitOpsCluster from the ClusterManagementAddOn.
pub(super) fn entry_before(object_ref: &ObjectRef, management: &Value) -> Option<DesiredEntry> {
    Some(DesiredEntry {
        object_ref: object_ref.clone(),
        template: agent::present_template(namespace_and_name(object_ref), management)?.to_owned(),
        next: agent::next_template(namespace_and_name(object_ref), management).map(str::to_owned),
    })
}
