//! The controller for the add-on objects of one GitOpsCluster: an AddOnTemplate, an AddOnDeploymentConfig, and the list of its
//! clusters.
//!
//! OCM installs an add-on on every cluster that the PlacementDecisions of a Placement name, and uninstalls it at once when none
//! names the cluster any more. Therefore OCM gets a Placement of ours that it does not schedule, with PlacementDecisions that
//! this controller writes: empty, incomplete or contradictory input of the user changes nothing, and an unreachable cluster keeps
//! its add-on.

use super::shared::{self, ensure, ensure_absent, installed_template, management};
use super::{rollout, works};
use crate as agent;
use crate::Entry;
use crate::decisions;
use crate::rollout::UpdatedClusters;
use crate::server;
use crate::template::{desired_template, template_name};
use assignment::{GitOpsClusterRef, has_released_agent};
use hub_state::{Cache, Context, Controller, DesiredAgent, Kind};
use ocm::argocd_agent::{self as names, AddonPlacement};
use ocm::management_addon::is_named;
use primitives::object_ref::ObjectRef;
use runtime::action::{Action, Write};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub const CONTROLLER: Controller = Controller {
    kind: Kind::GitOpsClusters,
    reconcile,
    requeue_after: rollout::requeue_after,
    ..shared::CONTROLLER
};

/// The kinds of objects created for a GitOpsCluster, in the order of their deletion.
const OWNED_KINDS: [Kind; 4] = [
    Kind::OwnDecisions,
    Kind::OwnPlacements,
    Kind::AddOnConfigs,
    Kind::Templates,
];

fn reconcile(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let gitops = GitOpsClusterRef::get(cache, object_ref)?;
    let is_unwanted = gitops.object.deleting || !gitops.object.spec.may_have_agent();
    let writes = match gitops.served_agent() {
        Some(desired) => writes(gitops, desired, context),
        None if gitops.is_of_another_controller() => Vec::new(),
        None if is_unwanted => leftovers(gitops),
        // Currently not served.
        None => without_leaving(gitops),
    };
    gitops.action(writes)
}

/// Returns the writes that remove clusters whose ManagedCluster is being deleted from the PlacementDecisions.
fn without_leaving(gitops: GitOpsClusterRef<'_>) -> Vec<Write> {
    let decided = gitops.decided_clusters().into_iter();
    let all = decided.map(|cluster| (cluster, None)).collect();
    let both = [
        (AddonPlacement::All, all),
        (AddonPlacement::Next, rollout::updated(gitops)),
    ];
    let is_leaving =
        |(_, clusters): &(_, UpdatedClusters<'_>)| clusters.keys().any(|cluster| gitops.cache.is_in_deletion(cluster));
    let leaving = both.into_iter().filter(is_leaving);
    leaving
        .flat_map(|(placement, clusters)| decisions::writes(gitops, placement, &clusters))
        .collect()
}

fn writes(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> Vec<Write> {
    let (cache, object_ref) = (gitops.cache, gitops.object_ref);
    let mut writes = Vec::new();
    // Templates are never changed: OCM would apply the change to all clusters at once.
    let name = template_name(gitops, desired, context);
    if cache.object(Kind::Templates, &ObjectRef::new("", &name)).is_none() {
        writes.extend(ensure(
            cache,
            Kind::Templates,
            desired_template(gitops, desired, context),
        ));
    }
    if let Ok(server) = server(cache, desired) {
        let config = agent::deployment_config(object_ref, cache.argocd(), desired, &server);
        writes.extend(ensure(cache, Kind::AddOnConfigs, config));
    }
    let placement = agent::placement(object_ref, AddonPlacement::All);
    writes.extend(ensure(cache, Kind::OwnPlacements, placement));
    let mut clusters = gitops.agent_clusters();
    clusters.extend(clusters_to_hand_over(gitops));
    clusters.extend(clusters_with_operator(gitops));
    let clusters = clusters.into_iter().map(|cluster| (cluster, None)).collect();
    writes.extend(decisions::writes(gitops, AddonPlacement::All, &clusters));
    writes.extend(rollout::writes(gitops, &name, context));
    writes.extend(outdated(gitops, &name));
    writes
}

/// Returns the clusters that this GitOpsCluster has released, but whose operator still has an ArgoCD resource to delete.
fn clusters_with_operator(gitops: GitOpsClusterRef<'_>) -> BTreeSet<&str> {
    let mut clusters: BTreeSet<_> = works::with_operator_resource(gitops)
        .map(|(at, _)| &*at.namespace)
        .collect();
    let decided = gitops.decided_clusters();
    let is_taken = |cluster: &str| assignment::for_cluster(gitops.cache, cluster).served_owner().is_some();
    clusters.retain(|cluster| decided.contains(cluster) && !is_taken(cluster));
    clusters
}

/// Returns the clusters that another GitOpsCluster takes over but does not install the add-on on yet. They stay named until OCM reads
/// the other's decision: it would uninstall the add-on meanwhile.
fn clusters_to_hand_over(gitops: GitOpsClusterRef<'_>) -> Vec<&str> {
    let cache = gitops.cache;
    let installs = |other: &ObjectRef, cluster: &str| {
        cache.has_written_decision(other, cluster)
            && management(cache).is_none_or(|existing| is_named(other, &existing.object))
    };
    let is_taken = |cluster: &&str| {
        let assignment = assignment::for_cluster(cache, cluster);
        // It may no longer be served, and gets its entry once it is again.
        let other = assignment
            .agent_owner
            .as_ref()
            .filter(|other| *other != gitops.object_ref);
        other.is_some_and(|other| !installs(other, cluster))
    };
    gitops.decided_clusters().into_iter().filter(is_taken).collect()
}

/// Returns the GitOpsClusters that take over clusters of this one, but are currently not served.
pub fn unserved_successors(gitops: GitOpsClusterRef<'_>) -> BTreeSet<ObjectRef> {
    let next = gitops.decided_clusters().into_iter().filter_map(|cluster| {
        let assignment = assignment::for_cluster(gitops.cache, cluster);
        let next = assignment.agent_owner.as_ref().filter(|_| !assignment.is_served);
        next.filter(|next| *next != gitops.object_ref).cloned()
    });
    next.collect()
}

/// Returns the writes that delete templates and configurations that no cluster has or gets.
fn outdated(gitops: GitOpsClusterRef<'_>, template: &str) -> Vec<Write> {
    let cache = gitops.cache;
    let config = names::deployment_config(gitops.object_ref, cache.argocd());
    let all = [Kind::Templates, Kind::AddOnConfigs].into_iter();
    let all = all.flat_map(|kind| gitops.owned_objects(kind).map(move |(at, object)| (kind, at, object)));
    let old: Vec<_> = all
        .filter(|(_, at, _)| *at.name != *template && **at != config)
        .collect();
    if old.is_empty() {
        return Vec::new();
    }
    let addons = cache
        .objects(Kind::AddOns)
        .map(|(_, addon)| &addon.object["status"]["configReferences"]);
    let spec = management(cache).map_or(&Value::Null, |existing| &existing.object["spec"]);
    let entries = spec["installStrategy"]["placements"].as_array().into_iter().flatten();
    let entries = entries.map(|entry| &entry["configs"]);
    let texts = addons.chain(entries).chain([&spec["supportedConfigs"]]);
    let texts: Vec<_> = texts.map(Value::to_string).collect();
    let is_used = |name: &str| texts.iter().any(|text| text.contains(&json!(name).to_string()));
    let unused = old.into_iter().filter(|(_, at, _)| !is_used(&at.name));
    unused
        .filter_map(|(kind, at, object)| ensure_absent(kind, at, object))
        .collect()
}

/// Returns the writes that delete the objects of a GitOpsCluster that no longer wants the add-on, once OCM has uninstalled it.
fn leftovers(gitops: GitOpsClusterRef<'_>) -> Vec<Write> {
    let cache = gitops.cache;
    let is_named = management(cache).is_some_and(|existing| is_named(gitops.object_ref, &existing.object));
    let clusters = gitops.decided_clusters();
    let others = cache
        .objects(Kind::OwnDecisions)
        .filter(|(_, decision)| decision.owner().as_ref() != Some(gitops.object_ref));
    let others: BTreeSet<_> = others.flat_map(|(_, decision)| decision.decided_clusters()).collect();
    let mut addons = cache.objects(Kind::AddOns).map(|(at, _)| &*at.namespace);
    if is_named || addons.any(|cluster| clusters.contains(cluster) && !others.contains(cluster)) {
        return Vec::new();
    }
    let all = OWNED_KINDS.into_iter().flat_map(|kind| {
        let existing = gitops.owned_objects(kind);
        existing.filter_map(move |(at, object)| ensure_absent(kind, at, object))
    });
    all.collect()
}

/// Returns true if any object created for a GitOpsCluster is left.
pub(super) fn is_left(gitops: GitOpsClusterRef<'_>) -> bool {
    let mut kinds = OWNED_KINDS.into_iter().chain([Kind::AgentWorks]);
    kinds.any(|kind| gitops.owned_objects(kind).next().is_some())
}

/// Returns true if all GitOpsClusters that installed the add-on on a cluster have certainly released it.
pub(super) fn is_released_by_all(cache: &Cache, cluster: &str) -> bool {
    let mut owners = cache.gitops_with_decision(cluster).peekable();
    owners.peek().is_some() && owners.all(|owner| has_released_agent(cache, &owner, cluster))
}

/// Returns the desired entries of a GitOpsCluster with agents, once all objects that they reference exist.
pub(super) fn entry(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> Option<Entry> {
    let (cache, ObjectRef { namespace, name }) = (gitops.cache, gitops.object_ref);
    let template = template_name(gitops, desired, context);
    let placement = AddonPlacement::All.name(name);
    cache.object(Kind::Templates, &ObjectRef::new("", &template))?;
    cache.object(Kind::OwnPlacements, &ObjectRef::new(namespace, &placement))?;
    let config = names::deployment_config(gitops.object_ref, cache.argocd());
    cache.object(Kind::AddOnConfigs, &config)?;
    // OCM would uninstall the add-on from clusters that are not named yet.
    gitops.agent_clusters().is_subset(&gitops.decided_clusters()).then(|| {
        let plan = rollout::plan(gitops, &template, context);
        Entry {
            gitops_cluster: gitops.object_ref.clone(),
            config,
            template: plan.first.to_owned(),
            next: rollout::next_template(gitops, &plan),
        }
    })
}

/// Returns the current entries of a GitOpsCluster from the ClusterManagementAddOn.
pub(super) fn entry_before(gitops: GitOpsClusterRef<'_>) -> Option<Entry> {
    let (cache, object_ref) = (gitops.cache, gitops.object_ref);
    let config = agent::config_at(object_ref, &management(cache)?.object);
    Some(Entry {
        gitops_cluster: object_ref.clone(),
        config: config.unwrap_or_else(|| names::deployment_config(object_ref, cache.argocd())),
        template: installed_template(gitops, AddonPlacement::All)?.to_owned(),
        next: installed_template(gitops, AddonPlacement::Next).map(str::to_owned),
    })
}
