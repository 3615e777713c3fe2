//! How another version of the add-on goes through the clusters of one GitOpsCluster: what [`rollout`](crate::agent::rollout) decides,
//! from what is on the hub, and the second Placement that it needs meanwhile.

use super::addon::{next_decisions_of, present, write_decisions};
use super::templates::template_name;
use super::{gone, management, pair, so, wanted};
use crate::agent::rollout::{Agent, Fleet, Moved, Plan, Strategy, plan as decide};
use crate::agent::{self, decisions, names};
use crate::controller::action::Write;
use crate::controller::index::Index;
use crate::controller::promises::Moment;
use crate::controller::promises::gitopscluster::agents_of;
use crate::controller::resources::{DECISIONS, PLACEMENTS};
use crate::controller::seen::{GitOpsCluster, Place, Reach};
use crate::controller::watches::Kept;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// How often a rollout is looked at though nothing happens: that a cluster is heard of again is not all that it may wait for.
const LOOK: SignedDuration = SignedDuration::from_secs(30);

/// What OCM is told of the add-on.
fn told(index: &Index) -> Option<&Value> {
    management(index).map(|there| &there.object)
}

/// What OCM is to be told of a GitOpsCluster whose clusters shall have that template.
pub(super) fn plan<'a>(
    index: &'a Index,
    place: &Place,
    it: &GitOpsCluster,
    template: &'a str,
    moment: &Moment<'_>,
) -> Plan<'a> {
    let told = told(index);
    let first = told.and_then(|there| agent::present_template(pair(place), there));
    let rollout = it.spec.agent.as_ref().and_then(|wanted| wanted.rollout.as_ref());
    let clusters = agents_of(index, place, it, &moment.settings.argocd).into_iter();
    let clusters = clusters.map(|cluster| {
        let addon = index.object(Kept::AddOns, &Place::new(cluster, names::ADDON));
        let is_heard = index.reach(cluster) == Reach::Heard;
        (cluster, Agent::read(addon.map(|addon| &addon.object), is_heard))
    });
    decide(&Fleet {
        wanted: first.filter(|_| is_held(index, place, it)).unwrap_or(template),
        strategy: Strategy::read(rollout),
        first,
        read: progression(index, &place.namespace, &names::placement(&place.name)).and_then(read),
        next: told.and_then(|there| agent::next_template(pair(place), there)),
        clusters: clusters.collect(),
        moved: moved(index, place),
        now: moment.now,
    })
}

/// Whether an operator that shall be no more still has an ArgoCD to take away on a cluster that is heard of.
fn is_held(index: &Index, place: &Place, it: &GitOpsCluster) -> bool {
    let has_none = it.spec.agent.as_ref().is_some_and(|wanted| !wanted.is_operated());
    has_none && super::works::operated(index, place).any(|(at, _)| index.reach(&at.namespace) == Reach::Heard)
}

/// What OCM says of an entry, which is what it goes by.
fn progression<'a>(index: &'a Index, namespace: &str, placement: &str) -> Option<&'a Value> {
    let all = told(index)?["status"]["installProgressions"].as_array()?;
    let is_it = |it: &&Value| it["name"] == *placement && it["namespace"] == *namespace;
    all.iter().find(is_it)
}

/// The template that it has read there.
fn read(progression: &Value) -> Option<&str> {
    let configs = progression["configReferences"].as_array()?;
    let template = configs.iter().find(|it| it["resource"] == "addontemplates")?;
    template["desiredConfig"]["name"].as_str()
}

/// The clusters that have got another version already.
fn moved<'a>(index: &'a Index, place: &Place) -> Moved<'a> {
    let decisions = next_decisions_of(index, place).filter_map(|(_, it)| it.object["status"]["decisions"].as_array());
    let all = decisions.flatten();
    all.filter_map(|decision| Some((decision["clusterName"].as_str()?, decisions::since(decision))))
        .collect()
}

/// The template of the second entry, as it can be by now: its Placement comes first.
pub(super) fn next(index: &Index, place: &Place, plan: &Plan<'_>) -> Option<String> {
    let at = Place::new(&place.namespace, &names::next_placement(&place.name));
    let is_there = index.object(Kept::Placements, &at).is_some_and(|it| !it.deleting);
    let present = told(index).and_then(|there| agent::next_template(pair(place), there));
    let next = plan.next?;
    if is_there { Some(next) } else { present }.map(str::to_owned)
}

/// What is not there of the second Placement and its decisions, or should be no more.
pub(super) fn writes(
    index: &Index,
    place: &Place,
    it: &GitOpsCluster,
    template: &str,
    moment: &Moment<'_>,
) -> Vec<Write> {
    let plan = plan(index, place, it, template, moment);
    let placement = names::next_placement(&place.name);
    let is_named = told(index).is_some_and(|there| agent::next_template(pair(place), there).is_some());
    let at = Place::new(&place.namespace, &placement);
    let before = index.object(Kept::Placements, &at);
    let there: Vec<_> = next_decisions_of(index, place).collect();
    if plan.next.is_some() || is_named {
        let mut writes: Vec<_> = so(&PLACEMENTS, agent::next_placement(pair(place)), before)
            .into_iter()
            .collect();
        let held = present(place, &there, names::next_decision_number);
        let wanted = agent::next_decisions(pair(place), &plan.moved, &held);
        writes.extend(write_decisions(place, wanted, there));
        return writes;
    }
    // OCM reads the entries and the decisions each for themselves: while it still knows the entry, these make the difference.
    if progression(index, &place.namespace, &placement).is_some() {
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

/// When a GitOpsCluster's rollout is to be looked at again though nothing happens.
pub(in crate::controller::promises) fn again(index: &Index, place: &Place, moment: &Moment<'_>) -> Option<Timestamp> {
    let it = index.gitops_cluster(place)?;
    let wanted = wanted(index, place, it, &moment.settings.argocd)?;
    if Strategy::read(wanted.rollout.as_ref()) == Strategy::All {
        return None;
    }
    let template = template_name(place, wanted, moment);
    let plan = plan(index, place, it, &template, moment);
    plan.next?;
    plan.again.into_iter().chain(moment.now.checked_add(LOOK).ok()).min()
}
