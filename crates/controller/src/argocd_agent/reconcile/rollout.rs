//! The rollout of a new version of the add-on to the clusters of one GitOpsCluster: applies the decisions of
//! [`rollout`](crate::argocd_agent::rollout) to the state of the hub, and maintains the second Placement that a rollout needs.

use super::addon::{next_decisions_of, present, write_decisions};
use super::templates::template_name;
use super::{gone, management, pair, so, wanted};
use crate::argocd_agent as agent;
use crate::argocd_agent::decisions;
use crate::argocd_agent::rollout::{Agent, Fleet, Moved, Plan, Strategy, plan as decide};
use crate::cache::Cache;
use crate::gitopscluster::membership::agents_of;
use crate::model::AgentResource;
use crate::model::{GitOpsCluster, Reach};
use crate::reconcile::Context;
use crate::runtime::action::Write;
use jiff::{SignedDuration, Timestamp};
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use ocm::resources::{DECISIONS, PLACEMENTS};
use serde_json::Value;

/// The interval of reconciliations during a rollout without watch events: it may also wait for more than a cluster becoming
/// reachable.
const LOOK: SignedDuration = SignedDuration::from_secs(30);

/// Returns the current ClusterManagementAddOn.
fn told(cache: &Cache) -> Option<&Value> {
    management(cache).map(|there| &there.object)
}

/// Returns the rollout plan of a GitOpsCluster whose clusters should have this template.
pub(super) fn plan<'a>(
    cache: &'a Cache,
    place: &ObjectRef,
    it: &GitOpsCluster,
    template: &'a str,
    context: &Context<'_>,
) -> Plan<'a> {
    let told = told(cache);
    let first = told.and_then(|there| agent::present_template(pair(place), there));
    let rollout = it.spec.agent.as_ref().and_then(|wanted| wanted.rollout.as_ref());
    let clusters = agents_of(cache, place, it, &context.settings.argocd).into_iter();
    let clusters = clusters.map(|cluster| {
        let addon = cache.object(AgentResource::AddOns, &ObjectRef::new(cluster, names::ADDON));
        let is_heard = cache.reach(cluster) == Reach::Heard;
        (cluster, Agent::read(addon.map(|addon| &addon.object), is_heard))
    });
    decide(&Fleet {
        wanted: first.filter(|_| is_held(cache, place, it)).unwrap_or(template),
        strategy: Strategy::read(rollout),
        first,
        read: progression(cache, &place.namespace, &names::placement(&place.name)).and_then(read),
        next: told.and_then(|there| agent::next_template(pair(place), there)),
        clusters: clusters.collect(),
        moved: moved(cache, place),
        now: context.now,
    })
}

/// Returns true if an operator that is no longer desired still has an ArgoCD resource to delete on a reachable cluster.
fn is_held(cache: &Cache, place: &ObjectRef, it: &GitOpsCluster) -> bool {
    let has_none = it.spec.agent.as_ref().is_some_and(|wanted| !wanted.is_operated());
    has_none && super::works::operated(cache, place).any(|(at, _)| cache.reach(&at.namespace) == Reach::Heard)
}

/// Returns OCM's status of an install strategy entry, which is what OCM acts on.
fn progression<'a>(cache: &'a Cache, namespace: &str, placement: &str) -> Option<&'a Value> {
    let all = told(cache)?["status"]["installProgressions"].as_array()?;
    let is_it = |it: &&Value| it["name"] == *placement && it["namespace"] == *namespace;
    all.iter().find(is_it)
}

/// Returns the template that OCM has read from the entry.
fn read(progression: &Value) -> Option<&str> {
    let configs = progression["configReferences"].as_array()?;
    let template = configs.iter().find(|it| it["resource"] == "addontemplates")?;
    template["desiredConfig"]["name"].as_str()
}

/// Returns the clusters that already have the next version.
fn moved<'a>(cache: &'a Cache, place: &ObjectRef) -> Moved<'a> {
    let decisions = next_decisions_of(cache, place).filter_map(|(_, it)| it.object["status"]["decisions"].as_array());
    let all = decisions.flatten();
    all.filter_map(|decision| Some((decision["clusterName"].as_str()?, decisions::since(decision))))
        .collect()
}

/// Returns the template that the second entry can have now: its Placement must exist first.
pub(super) fn next(cache: &Cache, place: &ObjectRef, plan: &Plan<'_>) -> Option<String> {
    let at = ObjectRef::new(&place.namespace, &names::next_placement(&place.name));
    let is_there = cache
        .object(AgentResource::Placements, &at)
        .is_some_and(|it| !it.deleting);
    let present = told(cache).and_then(|there| agent::next_template(pair(place), there));
    let next = plan.next?;
    if is_there { Some(next) } else { present }.map(str::to_owned)
}

/// Returns the writes that create, update or delete the second Placement and its PlacementDecisions.
pub(super) fn writes(
    cache: &Cache,
    place: &ObjectRef,
    it: &GitOpsCluster,
    template: &str,
    context: &Context<'_>,
) -> Vec<Write> {
    let plan = plan(cache, place, it, template, context);
    let placement = names::next_placement(&place.name);
    let is_named = told(cache).is_some_and(|there| agent::next_template(pair(place), there).is_some());
    let at = ObjectRef::new(&place.namespace, &placement);
    let before = cache.object(AgentResource::Placements, &at);
    let there: Vec<_> = next_decisions_of(cache, place).collect();
    if plan.next.is_some() || is_named {
        let mut writes: Vec<_> = so(&PLACEMENTS, agent::next_placement(pair(place)), before)
            .into_iter()
            .collect();
        let held = present(place, &there, names::next_decision_number);
        let wanted = agent::next_decisions(pair(place), &plan.moved, &held);
        writes.extend(write_decisions(place, wanted, there));
        return writes;
    }
    // OCM reads entries and PlacementDecisions independently: while it still knows the entry, the PlacementDecisions are in use.
    if progression(cache, &place.namespace, &placement).is_some() {
        return Vec::new();
    }
    let mut writes: Vec<_> = there
        .into_iter()
        .filter_map(|(at, it)| gone(&DECISIONS, at, it))
        .collect();
    if writes.is_empty() {
        writes.extend(before.and_then(|before| gone(&PLACEMENTS, &at, before)));
    }
    writes
}

/// Returns the time when a GitOpsCluster's rollout must be reconciled again without watch events.
pub(crate) fn requeue_after(cache: &Cache, place: &ObjectRef, context: &Context<'_>) -> Option<Timestamp> {
    let it = cache.gitops_cluster(place)?;
    let wanted = wanted(cache, place, it, &context.settings.argocd)?;
    if Strategy::read(wanted.rollout.as_ref()) == Strategy::All {
        return None;
    }
    let template = template_name(place, wanted, context);
    let plan = plan(cache, place, it, &template, context);
    plan.next?;
    plan.requeue_after
        .into_iter()
        .chain(context.now.checked_add(LOOK).ok())
        .min()
}
