//! What one GitOpsCluster wants of the add-on: a template of what runs on its clusters, how it is configured there, and which
//! clusters these are.
//!
//! OCM installs an add-on where decisions of a Placement name a cluster, and takes it away where none does any more, at once. So it
//! is given a Placement of ours that it does not schedule, with decisions that are written here: what is empty, half written or
//! in contradiction on the user's side changes nothing, and a cluster that is not heard of keeps what it has.

use super::templates::{template, template_name};
use super::{ABOUT, NAME, NEEDS, asking, gone, management, of_gitops, pair, rollout, server, so, wanted, works};
use crate::agent::{self, Entry, Wanted, names};
use crate::controller::action::{Action, Write};
use crate::controller::index::{Index, Sort};
use crate::controller::promises::gitopscluster::{agents_of, gives_up, has_agent, is_anothers};
use crate::controller::promises::{Moment, Promise};
use crate::controller::resources::{ADDON_CONFIGS, DECISION_STATUSES, DECISIONS, PLACEMENTS, Resource, TEMPLATES};
use crate::controller::seen::{GitOpsCluster, Object, Place};
use crate::controller::watches::Kept;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

pub(in crate::controller::promises) const PROMISE: Promise = Promise {
    name: NAME,
    about: ABOUT,
    of: Sort::GitOpsCluster,
    needs: NEEDS,
    pause: Duration::from_millis(500),
    desired,
    again: rollout::again,
};

/// What is made for a GitOpsCluster, in the order in which it goes.
const MADE: [(Kept, &Resource); 4] = [
    (Kept::Decisions, &DECISIONS),
    (Kept::Placements, &PLACEMENTS),
    (Kept::AddOnConfigs, &ADDON_CONFIGS),
    (Kept::Templates, &TEMPLATES),
];

/// What a GitOpsCluster wants of the add-on.
pub(super) struct Wish {
    place: Place,
    template: String,
    /// What some of its clusters have already, while there is a rollout.
    next: Option<String>,
}

impl Wish {
    /// It, as it is written there.
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry {
            goc: pair(&self.place),
            template: &self.template,
            next: self.next.as_deref(),
        }
    }
}

fn desired(index: &Index, place: &Place, moment: &Moment<'_>) -> Option<Action> {
    let it = index.gitops_cluster(place)?;
    let argocd = &*moment.settings.argocd;
    let writes = match wanted(index, place, it, argocd) {
        Some(wanted) => writes(index, place, it, wanted, moment),
        None if is_anothers(place, it, argocd) => Vec::new(),
        None if it.deleting || !it.spec.may_have_agent() => leftovers(index, place),
        // It is not served, for now.
        None => Vec::new(),
    };
    (!writes.is_empty()).then(|| of_gitops(place, it, writes))
}

/// What is not as a GitOpsCluster wants it.
fn writes(index: &Index, place: &Place, it: &GitOpsCluster, wanted: &Wanted, moment: &Moment<'_>) -> Vec<Write> {
    let (argocd, goc) = (&*moment.settings.argocd, pair(place));
    let there = |kind, object: &Value| {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
        index.object(kind, &Place::new(text("namespace"), text("name")))
    };
    let mut writes = Vec::new();
    // A template is never changed: OCM would bring the change to all clusters at once.
    let name = template_name(place, wanted, moment);
    if index.object(Kept::Templates, &Place::new("", &name)).is_none() {
        writes.extend(so(&TEMPLATES, template(place, wanted, moment), None));
    }
    if let Ok(server) = server(index, wanted) {
        let config = agent::deployment_config(goc, wanted, &server);
        let before = there(Kept::AddOnConfigs, &config);
        writes.extend(so(&ADDON_CONFIGS, config, before));
    }
    let placement = agent::placement(goc);
    let before = there(Kept::Placements, &placement);
    writes.extend(so(&PLACEMENTS, placement, before));
    writes.extend(decisions(index, place, it, argocd));
    writes.extend(rollout::writes(index, place, it, &name, moment));
    writes.extend(outdated(index, place, &name));
    writes
}

/// What there is of a kind that was made for a GitOpsCluster.
pub(super) fn of<'i>(index: &'i Index, kind: Kept, place: &Place) -> impl Iterator<Item = (&'i Place, &'i Object)> {
    let all = index.objects(kind);
    all.filter(move |(_, it)| it.owner().as_ref() == Some(place))
}

/// The decisions that were written for a GitOpsCluster, of which clusters have the add-on.
fn decisions_of<'i>(index: &'i Index, place: &Place) -> impl Iterator<Item = (&'i Place, &'i Object)> {
    let all = of(index, Kept::Decisions, place);
    all.filter(|(at, _)| names::next_decision_number(&place.name, &at.name).is_none())
}

/// Those for a rollout, of which have another version.
pub(super) fn next_decisions_of<'i>(index: &'i Index, place: &Place) -> impl Iterator<Item = (&'i Place, &'i Object)> {
    let all = of(index, Kept::Decisions, place);
    all.filter(|(at, _)| names::next_decision_number(&place.name, &at.name).is_some())
}

/// What such decisions name, by their numbers.
pub(super) fn present(
    place: &Place,
    there: &[(&Place, &Object)],
    number: fn(&str, &str) -> Option<usize>,
) -> agent::decisions::Present {
    let held = there.iter().filter_map(|(at, it)| {
        let number = number(&place.name, &at.name)?;
        Some((number, it.decided().map(Into::into).collect()))
    });
    held.collect()
}

/// The decisions of which clusters have the add-on.
fn decisions(index: &Index, place: &Place, it: &GitOpsCluster, argocd: &str) -> Vec<Write> {
    let there: Vec<_> = decisions_of(index, place).collect();
    let mut clusters = agents_of(index, place, it, argocd);
    clusters.extend(handed_over(index, place, argocd));
    clusters.extend(operated(index, place, argocd));
    let held = present(place, &there, names::decision_number);
    let wanted = agent::decisions(pair(place), &clusters, &held);
    write_decisions(place, wanted, there)
}

/// The clusters that this one has and gives up, and where its operator still has an ArgoCD to take away.
fn operated<'i>(index: &'i Index, place: &Place, argocd: &str) -> BTreeSet<&'i str> {
    let mut clusters: BTreeSet<_> = works::operated(index, place).map(|(at, _)| &*at.namespace).collect();
    let present = clusters_of(index, place);
    let is_taken =
        |cluster: &str| asking(index, argocd).any(|(place, it, _)| has_agent(index, place, it, cluster, argocd));
    clusters.retain(|cluster| present.contains(cluster) && !is_taken(cluster));
    clusters
}

/// The clusters that another GitOpsCluster takes over and has not named yet: OCM would take the add-on off them meanwhile.
fn handed_over<'i>(index: &'i Index, place: &Place, argocd: &str) -> Vec<&'i str> {
    let others: Vec<_> = asking(index, argocd).filter(|(other, ..)| *other != place).collect();
    let is_taken = |cluster: &&str| {
        let mut others = others.iter();
        others.any(|(other, it, _)| has_agent(index, other, it, cluster, argocd) && !index.is_listed(other, cluster))
    };
    if others.is_empty() {
        return Vec::new();
    }
    clusters_of(index, place).into_iter().filter(is_taken).collect()
}

/// What is to be written for these decisions to be there, and no other of those that are.
pub(super) fn write_decisions(place: &Place, wanted: Vec<Value>, there: Vec<(&Place, &Object)>) -> Vec<Write> {
    let mut writes = Vec::new();
    let mut stay = BTreeSet::new();
    for mut decision in wanted {
        let status = decision["status"].take();
        let at = Place::new(
            &place.namespace,
            decision["metadata"]["name"].as_str().unwrap_or_default(),
        );
        let before = there.iter().find(|(other, _)| **other == at).map(|(_, it)| *it);
        if let Some(object) = decision.as_object_mut() {
            object.remove("status");
        }
        writes.extend(so(&DECISIONS, decision, before));
        // What they say is a resource of its own, which is written when they are there.
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

/// Templates that no cluster has and none is to get.
fn outdated(index: &Index, place: &Place, current: &str) -> Vec<Write> {
    let all = of(index, Kept::Templates, place);
    let mut old = all.filter(|(_, it)| !it.deleting).peekable();
    if old.peek().is_none() {
        return Vec::new();
    }
    let texts = index
        .objects(Kept::AddOns)
        .map(|(_, it)| &it.object["status"]["configReferences"]);
    let texts = texts.chain(management(index).map(|it| &it.object["spec"]));
    let used: BTreeSet<&str> = texts.flat_map(names_in).collect();
    let unused = old.filter(|(at, _)| *at.name != *current && !used.contains(&*at.name));
    unused.filter_map(|(at, it)| gone(&TEMPLATES, at, it)).collect()
}

/// Everything in a value that is called a name.
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

/// What was made for a GitOpsCluster that wants it no more, once OCM has taken the add-on off its clusters.
fn leftovers(index: &Index, place: &Place) -> Vec<Write> {
    let is_named = management(index).is_some_and(|there| agent::is_named(pair(place), &there.object));
    let clusters = clusters_of(index, place);
    let others = index
        .objects(Kept::Decisions)
        .filter(|(_, it)| it.owner().as_ref() != Some(place));
    let others: BTreeSet<_> = others.flat_map(|(_, it)| it.decided()).collect();
    let mut addons = index.objects(Kept::AddOns).map(|(at, _)| &*at.namespace);
    if is_named || addons.any(|cluster| clusters.contains(cluster) && !others.contains(cluster)) {
        return Vec::new();
    }
    let all = MADE.into_iter().flat_map(|(kind, resource)| {
        let there = of(index, kind, place);
        there.filter_map(move |(at, it)| gone(resource, at, it))
    });
    all.collect()
}

/// Whether anything is left that was made for a GitOpsCluster.
pub(super) fn is_left(index: &Index, place: &Place) -> bool {
    let kinds = MADE.into_iter().map(|(kind, _)| kind).chain([Kept::Works]);
    kinds.into_iter().any(|kind| of(index, kind, place).next().is_some())
}

/// The clusters that the decisions name that were written for a GitOpsCluster, whichever version they have.
pub(in crate::controller::promises) fn clusters_of<'i>(index: &'i Index, place: &Place) -> BTreeSet<&'i str> {
    decisions_of(index, place).flat_map(|(_, it)| it.decided()).collect()
}

/// The clusters that an entry of the add-on names.
pub(super) fn named<'i>(index: &'i Index, entry: &Wish) -> BTreeSet<&'i str> {
    clusters_of(index, &entry.place)
}

/// Whether whoever has brought the add-on to a cluster certainly wants it there no more.
pub(super) fn is_given_up(index: &Index, cluster: &str, argocd: &str) -> bool {
    let mut owners = index.listing(cluster).peekable();
    owners.peek().is_some()
        && owners.all(|owner| match index.gitops_cluster(&owner) {
            Some(it) => gives_up(index, &owner, it, cluster, argocd),
            None => index.has_gitops_cluster_gone(&owner),
        })
}

/// What a GitOpsCluster wants of the add-on, once all that is named there is there.
pub(super) fn entry(index: &Index, place: &Place, it: &GitOpsCluster, moment: &Moment<'_>) -> Option<Wish> {
    let wanted = it.spec.agent.as_ref()?;
    let at = |name: &str| Place::new(&place.namespace, name);
    let template = template_name(place, wanted, moment);
    index.object(Kept::Templates, &Place::new("", &template))?;
    index.object(Kept::Placements, &at(&names::placement(&place.name)))?;
    index.object(Kept::AddOnConfigs, &at(&names::deployment_config(&place.name)))?;
    // Before all clusters are named that have the add-on, OCM would take it off the rest.
    let clusters = agents_of(index, place, it, &moment.settings.argocd);
    let is_named = clusters.is_subset(&clusters_of(index, place));
    is_named.then(|| {
        let plan = rollout::plan(index, place, it, &template, moment);
        Wish {
            place: place.clone(),
            template: plan.first.to_owned(),
            next: rollout::next(index, place, &plan),
        }
    })
}

/// What a GitOpsCluster wanted of the add-on, as it is written there.
pub(super) fn entry_before(place: &Place, management: &Value) -> Option<Wish> {
    Some(Wish {
        place: place.clone(),
        template: agent::present_template(pair(place), management)?.to_owned(),
        next: agent::next_template(pair(place), management).map(str::to_owned),
    })
}
