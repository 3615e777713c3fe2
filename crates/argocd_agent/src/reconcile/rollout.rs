//! The rollout of a new version of the add-on to the clusters of one GitOpsCluster.
//!
//! Applies the decisions of [`rollout`](crate::rollout) to the state of the hub, and maintains the second Placement
//! that a rollout needs.

use super::shared::{ensure, ensure_absent, installed_template, management};
use crate as agent;
use crate::decisions;
use crate::rollout::{Agent, Limits, Plan, RolloutInput, UpdatedClusters, plan as decide, template_reference};
use crate::template::{agent_image, template_name};
use assignment::GitOpsClusterRef;
use hub_state::annotations::{AGENT_IMAGE, AGENT_NAMESPACE};
use hub_state::{Availability, Cache, Context, Kind, have_same_version};
use jiff::{SignedDuration, Timestamp};
use ocm::argocd_agent::{self as names, AddonPlacement};
use primitives::object_ref::ObjectRef;
use runtime::action::Write;
use serde_json::Value;

/// The interval of reconciliations during a rollout without watch events, for which OCM or an operator may have to act first.
const RESYNC_INTERVAL: SignedDuration = SignedDuration::from_secs(30);

/// The reasons for a rollout without a pace, at the end of a message.
const NEW_VERSION: &str = "; all at once, because the principal rejects agents of another version";
const NEW_NAMESPACE: &str = "; all at once, because the agents change their namespace";

/// Returns the rollout plan of a GitOpsCluster whose clusters should have this template.
pub(super) fn plan<'a>(gitops: GitOpsClusterRef<'a>, template: &'a str, context: &Context<'_>) -> Plan<'a> {
    let cache = gitops.cache;
    let first = installed_template(gitops, AddonPlacement::All);
    let agent = gitops.object.spec.agent.as_ref();
    let clusters = gitops.agent_clusters().into_iter().map(|cluster| {
        let addon = cache.object(Kind::AddOns, &ObjectRef::new(cluster, names::ADDON));
        let is_available = cache.availability(cluster) == Availability::Available;
        (
            cluster,
            Agent::from_addon(addon.map(|addon| &addon.object), is_available),
        )
    });
    let limits = Limits::from_json(agent.and_then(|agent| agent.rollout.as_ref()));
    let without_pace = limits.and_then(|_| reason_without_pace(gitops, first, context));
    let mut plan = decide(&RolloutInput {
        desired: first.filter(|_| waits_for_operator(gitops)).unwrap_or(template),
        limits: limits.filter(|_| without_pace.is_none()),
        first,
        read: progression(gitops, AddonPlacement::All)
            .and_then(|status| template_reference(status)["desiredConfig"]["name"].as_str()),
        next: installed_template(gitops, AddonPlacement::Next),
        clusters: clusters.collect(),
        updated: updated(gitops),
        now: context.now,
    });
    plan.progress.message.push_str(without_pace.unwrap_or_default());
    plan
}

/// Returns the reason why the clusters cannot change one after the other, if there is one. A paced rollout would keep agents
/// disconnected: a principal rejects agents of another version (`principal/apis/auth` in argocd-agent), and OCM moves the objects of
/// all templates to the namespace in the AddOnDeploymentConfig, where the previous template does not work.
fn reason_without_pace(
    gitops: GitOpsClusterRef<'_>,
    first: Option<&str>,
    context: &Context<'_>,
) -> Option<&'static str> {
    let template = gitops.cache.object(Kind::Templates, &ObjectRef::new("", first?))?;
    let annotation = |key| template.object["metadata"]["annotations"][key].as_str();
    let desired = gitops.object.spec.agent.as_ref()?;
    let image = agent_image(gitops.cache, desired, context);
    let is_other_version = |(before, after): (&str, Box<str>)| have_same_version(before, &after) != Some(true);
    if annotation(AGENT_IMAGE).zip(image).is_some_and(is_other_version) {
        return Some(NEW_VERSION);
    }
    let is_other_namespace = annotation(AGENT_NAMESPACE).is_some_and(|before| *before != *desired.namespace);
    is_other_namespace.then_some(NEW_NAMESPACE)
}

/// Returns true if an operator that is no longer desired still has an ArgoCD resource to delete on a reachable cluster.
fn waits_for_operator(gitops: GitOpsClusterRef<'_>) -> bool {
    let agent = gitops.object.spec.agent.as_ref();
    agent.is_some_and(|agent| !agent.is_operated())
        && super::works::with_operator_resource(gitops)
            .any(|(at, _)| gitops.cache.availability(&at.namespace) == Availability::Available)
}

/// Returns OCM's status of an install strategy entry, which is what OCM acts on.
fn progression(gitops: GitOpsClusterRef<'_>, placement: AddonPlacement) -> Option<&Value> {
    let ObjectRef { namespace, name } = gitops.object_ref;
    let placement = placement.name(name);
    let all = management(gitops.cache)?.object["status"]["installProgressions"].as_array()?;
    all.iter()
        .find(|entry| entry["name"] == *placement && entry["namespace"] == **namespace)
}

/// Returns the clusters that already have the next version.
pub(super) fn updated(gitops: GitOpsClusterRef<'_>) -> UpdatedClusters<'_> {
    let decisions = gitops
        .decisions(AddonPlacement::Next)
        .filter_map(|(_, decision)| decision.object["status"]["decisions"].as_array());
    let all = decisions.flatten();
    all.filter_map(|decision| Some((decision["clusterName"].as_str()?, decisions::since(decision))))
        .collect()
}

fn next_placement(gitops: GitOpsClusterRef<'_>) -> ObjectRef {
    let ObjectRef { namespace, name } = gitops.object_ref;
    ObjectRef::new(namespace, &AddonPlacement::Next.name(name))
}

/// Returns the template that the second entry can have now: its Placement must exist first.
pub(super) fn next_template(gitops: GitOpsClusterRef<'_>, plan: &Plan<'_>) -> Option<String> {
    let placement = gitops.cache.object(Kind::OwnPlacements, &next_placement(gitops));
    let next = plan.next?;
    let next = match placement {
        Some(placement) if !placement.deleting => Some(next),
        _ => installed_template(gitops, AddonPlacement::Next),
    };
    next.map(str::to_owned)
}

/// Returns the writes that create, update or delete the second Placement and its PlacementDecisions.
pub(super) fn writes(gitops: GitOpsClusterRef<'_>, template: &str, context: &Context<'_>) -> Vec<Write> {
    let cache = gitops.cache;
    let plan = plan(gitops, template, context);
    if plan.next.is_some() || installed_template(gitops, AddonPlacement::Next).is_some() {
        let placement = agent::placement(gitops.object_ref, AddonPlacement::Next);
        let placement = ensure(cache, Kind::OwnPlacements, placement);
        let decisions = decisions::writes(gitops, AddonPlacement::Next, &plan.updated);
        return placement.into_iter().chain(decisions).collect();
    }
    // OCM reads entries and PlacementDecisions independently: while it still knows the entry, the PlacementDecisions are in use.
    if progression(gitops, AddonPlacement::Next).is_some() {
        return Vec::new();
    }
    let existing = gitops.decisions(AddonPlacement::Next);
    let mut writes: Vec<_> = existing
        .filter_map(|(at, decision)| ensure_absent(Kind::OwnDecisions, at, decision))
        .collect();
    if writes.is_empty() {
        let at = next_placement(gitops);
        let before = cache.object(Kind::OwnPlacements, &at);
        writes.extend(before.and_then(|before| ensure_absent(Kind::OwnPlacements, &at, before)));
    }
    writes
}

/// Returns the time when a GitOpsCluster's rollout must be reconciled again without watch events.
pub fn requeue_after(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Timestamp> {
    let gitops = GitOpsClusterRef::get(cache, object_ref)?;
    let desired = gitops.served_agent()?;
    Limits::from_json(desired.rollout.as_ref())?;
    let template = template_name(gitops, desired, context);
    let plan = plan(gitops, &template, context);
    plan.next?;
    plan.requeue_after
        .into_iter()
        .chain(context.now.checked_add(RESYNC_INTERVAL).ok())
        .min()
}
