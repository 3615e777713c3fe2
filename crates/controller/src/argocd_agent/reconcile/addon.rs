//! The controller for the add-on objects of one GitOpsCluster: an AddOnTemplate, an AddOnDeploymentConfig, and the list of its
//! clusters.
//!
//! OCM installs an add-on on every cluster that the PlacementDecisions of a Placement name, and uninstalls it at once when none
//! names the cluster any more. Therefore OCM gets a Placement of ours that it does not schedule, with PlacementDecisions that
//! this controller writes: empty, incomplete or contradictory input of the user changes nothing, and an unreachable cluster keeps
//! its add-on.

use super::templates::{template, template_name};
use super::{ABOUT, NAME, WATCHES, asking, gone, management, of_gitops, pair, rollout, server, so, wanted, works};
use crate::argocd_agent as agent;
use crate::argocd_agent::{DesiredAgent, Entry};
use crate::cache::{Cache, ReconcileKind};
use crate::gitopscluster::membership::{agents_of, clusters_of, decisions_of, gives_up, has_agent};
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
    pause: Duration::from_millis(500),
    reconcile,
    requeue_after: rollout::requeue_after,
};

/// The kinds of objects created for a GitOpsCluster, in the order of their deletion.
const MADE: [(AgentResource, &Resource); 4] = [
    (AgentResource::Decisions, &DECISIONS),
    (AgentResource::Placements, &PLACEMENTS),
    (AgentResource::AddOnConfigs, &ADDON_CONFIGS),
    (AgentResource::Templates, &TEMPLATES),
];

/// The desired install strategy entries of a GitOpsCluster.
pub(super) struct Wish {
    place: ObjectRef,
    template: String,
    /// The template that some of its clusters already have, during a rollout.
    next: Option<String>,
}

impl Wish {
    /// Returns the entry for the ClusterManagementAddOn.
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry {
            goc: pair(&self.place),
            template: &self.template,
            next: self.next.as_deref(),
        }
    }
}

fn reconcile(cache: &Cache, place: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let it = cache.gitops_cluster(place)?;
    let argocd = &*context.settings.argocd;
    let writes = match wanted(cache, place, it, argocd) {
        Some(wanted) => writes(cache, place, it, wanted, context),
        None if is_anothers(place, it, argocd) => Vec::new(),
        None if it.deleting || !it.spec.may_have_agent() => leftovers(cache, place),
        // Currently not served.
        None => Vec::new(),
    };
    (!writes.is_empty()).then(|| of_gitops(place, it, writes))
}

/// Returns the writes that bring the objects of a GitOpsCluster to the desired state.
fn writes(
    cache: &Cache,
    place: &ObjectRef,
    it: &GitOpsCluster,
    wanted: &DesiredAgent,
    context: &Context<'_>,
) -> Vec<Write> {
    let (argocd, goc) = (&*context.settings.argocd, pair(place));
    let there = |kind, object: &Value| {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
        cache.object(kind, &ObjectRef::new(text("namespace"), text("name")))
    };
    let mut writes = Vec::new();
    // Templates are never changed: OCM would apply the change to all clusters at once.
    let name = template_name(place, wanted, context);
    if cache
        .object(AgentResource::Templates, &ObjectRef::new("", &name))
        .is_none()
    {
        writes.extend(so(&TEMPLATES, template(place, wanted, context), None));
    }
    if let Ok(server) = server(cache, wanted) {
        let config = agent::deployment_config(goc, wanted, &server);
        let before = there(AgentResource::AddOnConfigs, &config);
        writes.extend(so(&ADDON_CONFIGS, config, before));
    }
    let placement = agent::placement(goc);
    let before = there(AgentResource::Placements, &placement);
    writes.extend(so(&PLACEMENTS, placement, before));
    writes.extend(decisions(cache, place, it, argocd));
    writes.extend(rollout::writes(cache, place, it, &name, context));
    writes.extend(outdated(cache, place, &name));
    writes
}

/// Returns the objects of a kind that were created for a GitOpsCluster.
pub(super) fn of<'i>(
    cache: &'i Cache,
    kind: AgentResource,
    place: &ObjectRef,
) -> impl Iterator<Item = (&'i ObjectRef, &'i Object)> {
    let all = cache.objects(kind);
    all.filter(move |(_, it)| it.owner().as_ref() == Some(place))
}

/// Returns the PlacementDecisions of a GitOpsCluster that name the clusters with the next version, during a rollout.
pub(super) fn next_decisions_of<'i>(
    cache: &'i Cache,
    place: &ObjectRef,
) -> impl Iterator<Item = (&'i ObjectRef, &'i Object)> {
    let all = of(cache, AgentResource::Decisions, place);
    all.filter(|(at, _)| names::next_decision_number(&place.name, &at.name).is_some())
}

/// Returns the clusters in such PlacementDecisions, by the numbers of the objects.
pub(super) fn present(
    place: &ObjectRef,
    there: &[(&ObjectRef, &Object)],
    number: fn(&str, &str) -> Option<usize>,
) -> agent::decisions::Present {
    let held = there.iter().filter_map(|(at, it)| {
        let number = number(&place.name, &at.name)?;
        Some((number, it.decided().map(Into::into).collect()))
    });
    held.collect()
}

/// Returns the writes of the PlacementDecisions that name all clusters with the add-on.
fn decisions(cache: &Cache, place: &ObjectRef, it: &GitOpsCluster, argocd: &str) -> Vec<Write> {
    let there: Vec<_> = decisions_of(cache, place).collect();
    let mut clusters = agents_of(cache, place, it, argocd);
    clusters.extend(handed_over(cache, place, argocd));
    clusters.extend(operated(cache, place, argocd));
    let held = present(place, &there, names::decision_number);
    let wanted = agent::decisions(pair(place), &clusters, &held);
    write_decisions(place, wanted, there)
}

/// Returns the clusters that this GitOpsCluster has released, but whose operator still has an ArgoCD resource to delete.
fn operated<'i>(cache: &'i Cache, place: &ObjectRef, argocd: &str) -> BTreeSet<&'i str> {
    let mut clusters: BTreeSet<_> = works::operated(cache, place).map(|(at, _)| &*at.namespace).collect();
    let present = clusters_of(cache, place);
    let is_taken =
        |cluster: &str| asking(cache, argocd).any(|(place, it, _)| has_agent(cache, place, it, cluster, argocd));
    clusters.retain(|cluster| present.contains(cluster) && !is_taken(cluster));
    clusters
}

/// Returns the clusters that another GitOpsCluster takes over but has not named yet: OCM would uninstall the add-on meanwhile.
fn handed_over<'i>(cache: &'i Cache, place: &ObjectRef, argocd: &str) -> Vec<&'i str> {
    let others: Vec<_> = asking(cache, argocd).filter(|(other, ..)| *other != place).collect();
    let is_taken = |cluster: &&str| {
        let mut others = others.iter();
        others.any(|(other, it, _)| has_agent(cache, other, it, cluster, argocd) && !cache.is_listed(other, cluster))
    };
    if others.is_empty() {
        return Vec::new();
    }
    clusters_of(cache, place).into_iter().filter(is_taken).collect()
}

/// Returns the writes that create or update these PlacementDecisions and delete all others of those that exist.
pub(super) fn write_decisions(place: &ObjectRef, wanted: Vec<Value>, there: Vec<(&ObjectRef, &Object)>) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut stay = BTreeSet::new();
    for mut decision in wanted {
        let status = decision["status"].take();
        let at = ObjectRef::new(
            &place.namespace,
            decision["metadata"]["name"].as_str().unwrap_or_default(),
        );
        let before = there.iter().find(|(other, _)| **other == at).map(|(_, it)| *it);
        if let Some(object) = decision.as_object_mut() {
            object.remove("status");
        }
        writes.extend(so(&DECISIONS, decision, before));
        // The status is a subresource, which is written once the object exists.
        if let Some(before) = before.filter(|it| it.object["status"]["decisions"] != status["decisions"]) {
            writes.push(Write::Patch {
                resource: &DECISION_STATUSES,
                place: at.clone(),
                body: json!({"metadata": {"resourceVersion": before.version}, "status": status}),
            });
        }
        stay.insert(at);
    }
    let obsolete = there.into_iter().filter(|(at, _)| !stay.contains(*at));
    writes.extend(obsolete.filter_map(|(at, it)| gone(&DECISIONS, at, it)));
    writes
}

/// Returns the writes that delete templates that no cluster has or gets.
fn outdated(cache: &Cache, place: &ObjectRef, current: &str) -> Vec<Write> {
    let all = of(cache, AgentResource::Templates, place);
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
    unused.filter_map(|(at, it)| gone(&TEMPLATES, at, it)).collect()
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
fn leftovers(cache: &Cache, place: &ObjectRef) -> Vec<Write> {
    let is_named = management(cache).is_some_and(|there| agent::is_named(pair(place), &there.object));
    let clusters = clusters_of(cache, place);
    let others = cache
        .objects(AgentResource::Decisions)
        .filter(|(_, it)| it.owner().as_ref() != Some(place));
    let others: BTreeSet<_> = others.flat_map(|(_, it)| it.decided()).collect();
    let mut addons = cache.objects(AgentResource::AddOns).map(|(at, _)| &*at.namespace);
    if is_named || addons.any(|cluster| clusters.contains(cluster) && !others.contains(cluster)) {
        return Vec::new();
    }
    let all = MADE.into_iter().flat_map(|(kind, resource)| {
        let there = of(cache, kind, place);
        there.filter_map(move |(at, it)| gone(resource, at, it))
    });
    all.collect()
}

/// Returns true if any object created for a GitOpsCluster is left.
pub(super) fn is_left(cache: &Cache, place: &ObjectRef) -> bool {
    let kinds = MADE.into_iter().map(|(kind, _)| kind).chain([AgentResource::Works]);
    kinds.into_iter().any(|kind| of(cache, kind, place).next().is_some())
}

/// Returns the clusters that an entry of the add-on names.
pub(super) fn named<'i>(cache: &'i Cache, entry: &Wish) -> BTreeSet<&'i str> {
    clusters_of(cache, &entry.place)
}

/// Returns true if all GitOpsClusters that installed the add-on on a cluster have certainly released it.
pub(super) fn is_given_up(cache: &Cache, cluster: &str, argocd: &str) -> bool {
    let mut owners = cache.listing(cluster).peekable();
    owners.peek().is_some()
        && owners.all(|owner| match cache.gitops_cluster(&owner) {
            Some(it) => gives_up(cache, &owner, it, cluster, argocd),
            None => cache.has_gitops_cluster_gone(&owner),
        })
}

/// Returns the desired entries of a GitOpsCluster, once all objects that they reference exist.
pub(super) fn entry(cache: &Cache, place: &ObjectRef, it: &GitOpsCluster, context: &Context<'_>) -> Option<Wish> {
    let wanted = it.spec.agent.as_ref()?;
    let at = |name: &str| ObjectRef::new(&place.namespace, name);
    let template = template_name(place, wanted, context);
    cache.object(AgentResource::Templates, &ObjectRef::new("", &template))?;
    cache.object(AgentResource::Placements, &at(&names::placement(&place.name)))?;
    cache.object(AgentResource::AddOnConfigs, &at(&names::deployment_config(&place.name)))?;
    // OCM would uninstall the add-on from clusters that are not named yet.
    let clusters = agents_of(cache, place, it, &context.settings.argocd);
    let is_named = clusters.is_subset(&clusters_of(cache, place));
    is_named.then(|| {
        let plan = rollout::plan(cache, place, it, &template, context);
        Wish {
            place: place.clone(),
            template: plan.first.to_owned(),
            next: rollout::next(cache, place, &plan),
        }
    })
}

/// Returns the current entries of a GitOpsCluster from the ClusterManagementAddOn.
pub(super) fn entry_before(place: &ObjectRef, management: &Value) -> Option<Wish> {
    Some(Wish {
        place: place.clone(),
        template: agent::present_template(pair(place), management)?.to_owned(),
        next: agent::next_template(pair(place), management).map(str::to_owned),
    })
}
