//! Checks that the works of Applications are applied, and not larger than OCM permits.

use super::{Check, refused};
use crate::diagnosis::DiagnosedApplication;
use crate::doctor::hub_state::{HubState, HubWork, Lookup};
use crate::doctor::message::{Finding, Message, list_names};
use jiff::Timestamp;
use manifest::text::{count, without_middle};
use std::collections::{BTreeMap, BTreeSet};

pub(super) static CHECK: Check = Check {
    name: "works",
    messages: &[
        &OVER_LIMIT,
        &TOO_LARGE,
        &SEVERAL_SOURCES,
        &BY_EXECUTOR,
        &BY_AGENT,
        &NO_KIND,
        &OTHER_SCOPE,
        &OTHER_RESOURCE_NAME,
        &NO_NAMESPACE,
        &OTHER,
        &NO_CLUSTER,
        &SHARED,
        &TOO_MANY_WATCHES,
        &OK,
    ],
    run,
};

static OVER_LIMIT: Message = Message::error(
    "works-over-limit",
    "more than {limit} bytes are in {works}, so OCM's webhook rejects every change: {names}",
    "split the works of these Applications with a smaller work-size",
);
static TOO_LARGE: Message = Message::error(
    "works-refused-for-size",
    "OCM's webhook has rejected works as too large, of {applications}: {names}",
    "set manifest-limit to the limit of the webhook, or split an object that is larger",
);
static SEVERAL_SOURCES: Message = Message::error(
    "works-of-several-sources",
    "Argo CD applies only the works of the last source that uses the plugin, of {applications}: {names}",
    "create an Application for each source",
);
static BY_EXECUTOR: Message = Message::error(
    "works-refused-by-executor",
    "agents cannot apply {works}, because the executor lacks permissions: {names}: {why}",
    "grant them to the executor's ServiceAccount on the managed cluster, or set another executor",
);
static BY_AGENT: Message = Message::error(
    "works-refused-by-rights",
    "agents cannot apply {works}, because the agent lacks permissions: {names}: {why}",
    "grant them to the agent with a ClusterRole on the managed cluster that has the label \
     open-cluster-management.io/aggregate-to-work: \"true\"",
);
static NO_KIND: Message = Message::error(
    "works-unknown-kind",
    "agents cannot apply {works}, because the managed cluster does not serve the kind: {names}: {why}",
    "deliver its CustomResourceDefinition first, or correct the apiVersion",
);
static OTHER_SCOPE: Message = Message::error(
    "works-other-scope",
    "agents cannot apply {works}, because the scope of the kind is another one: {names}: {why}",
    "correct cluster-scoped-kinds of the Application",
);
static OTHER_RESOURCE_NAME: Message = Message::error(
    "works-other-resource-name",
    "objects in {works} have no health and are not applied as configured, because the managed cluster serves their kind under another \
     resource name: {names}",
    "set resource-names of the Application to {settings}",
);
static NO_NAMESPACE: Message = Message::error(
    "works-without-namespace",
    "agents cannot apply {works}, because the namespace does not exist: {names}: {why}",
    "deliver the Namespace too, or set create-namespace",
);
static OTHER: Message = Message::error(
    "works-not-applied",
    "agents cannot apply {works}: {names}: {why}",
    "see the objects with `argocd-ocm-cmp status` of the Application",
);
static NO_CLUSTER: Message = Message::error(
    "works-without-clusters",
    "no managed cluster is selected for {works} of a Placement: {names}: {why}",
    "correct the Placement, the ManagedClusterSetBindings in its namespace, or the labels and taints of the clusters",
);
static SHARED: Message = Message::error(
    "works-shared-objects",
    "several Applications deliver {objects} to the same managed cluster: {names}",
    "remove them from all but one of these Applications",
);
static TOO_MANY_WATCHES: Message = Message::warning(
    "works-too-many-watches",
    "works of {clusters} ask for more than {limit} watches, so the agent polls the rest: {names}",
    "set feedback to poll for some Applications, or raise --max-feedback-watch of the agent",
);
static OK: Message = Message::ok("works", "works of Applications: {works}, none rejected by agents");

/// The default limit of OCM's webhook for the size of a work, in bytes as it counts them.
const LIMIT: usize = 500 * 1024;

/// The default limit of OCM's agent for its watches: one for each kind and namespace.
const WATCHES_MAX: usize = 50;

/// The maximum length of an agent's message in a finding, in bytes.
const MESSAGE_MAX: usize = 200;

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let works = match &hub_state.works {
        Lookup::Found(works) => works,
        Lookup::NotFound => return Vec::new(),
        Lookup::Refused(why) => return refused("ManifestWorks", why),
    };
    let mut findings = Vec::new();
    let over: Vec<_> = works
        .iter()
        .filter(|work| work.size > LIMIT)
        .map(super::super::hub_state::HubWork::qualified_name)
        .collect();
    if !over.is_empty() {
        let number = count(over.len(), "work");
        findings.push(OVER_LIMIT.finding(&[("works", &number), ("limit", &LIMIT), ("names", &list_names(over))]));
    }
    let is_too_large = |error: &str| error.contains("the size of manifests is") && error.contains("which exceeds the");
    let mut about_applications = |message: &'static Message, has_problem: &dyn Fn(&DiagnosedApplication) -> bool| {
        let applications = hub_state.applications.found().into_iter().flatten();
        let names: Vec<_> = applications
            .filter(|application| has_problem(application))
            .map(|application| &application.qualified_name)
            .collect();
        if !names.is_empty() {
            let number = count(names.len(), "Application");
            findings.push(message.finding(&[("applications", &number), ("names", &list_names(names))]));
        }
    };
    about_applications(&TOO_LARGE, &|application| application.errors().any(is_too_large));
    about_applications(&SEVERAL_SOURCES, &|application| application.sources_share_works);
    for message in [&BY_EXECUTOR, &BY_AGENT, &NO_KIND, &OTHER_SCOPE, &NO_NAMESPACE, &OTHER] {
        let refused = works
            .iter()
            .filter_map(|work| Some((work.qualified_name(), &*work.refused.as_ref()?.message)));
        let mut of_it: Vec<_> = refused.filter(|(_, why)| reason(why).id == message.id).collect();
        of_it.sort_unstable();
        let Some((_, why)) = of_it.first() else { continue };
        let why = without_middle(why, MESSAGE_MAX);
        let number = count(of_it.len(), "work");
        let names = list_names(of_it.iter().map(|(qualified_name, _)| qualified_name));
        findings.push(message.finding(&[("works", &number), ("names", &names), ("why", &why)]));
    }
    findings.extend(other_resource_names(works));
    findings.extend(without_clusters(hub_state));
    findings.extend(shared(works));
    let mut watched: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for work in works {
        let of_cluster = watched.entry(&work.cluster).or_default();
        of_cluster.extend(work.watched.iter().map(|informer| &**informer));
    }
    watched.retain(|_, informers| informers.len() > WATCHES_MAX);
    if !watched.is_empty() {
        let number = count(watched.len(), "managed cluster");
        let names = list_names(watched.keys());
        findings.push(TOO_MANY_WATCHES.finding(&[("clusters", &number), ("limit", &WATCHES_MAX), ("names", &names)]));
    }
    if findings.is_empty() {
        findings.push(OK.finding(&[("works", &works.len())]));
    }
    findings
}

/// Returns the finding about works whose Placements select no managed cluster.
fn without_clusters(hub_state: &HubState) -> Option<Finding> {
    let sets = hub_state.sets.found()?.iter();
    let sets: Vec<_> = sets.filter(|set| !set.empty_placements.is_empty()).collect();
    let placements = hub_state.unsatisfied_placements.found();
    let placement = sets.first()?.empty_placements.first()?;
    let why = placements.and_then(|entries| entries.get(placement));
    let why = why.map_or(String::new(), |why| format!(": {}", without_middle(why, MESSAGE_MAX)));
    let why = format!("Placement {placement}{why}");
    let (number, names) = (
        count(sets.len(), "work"),
        list_names(sets.iter().map(|set| &set.qualified_name)),
    );
    Some(NO_CLUSTER.finding(&[("works", &number), ("names", &names), ("why", &why)]))
}

/// Returns the finding about kinds that managed clusters serve under another resource name.
fn other_resource_names(works: &[HubWork]) -> Option<Finding> {
    let works = || works.iter().filter(|work| !work.other_resource_names.is_empty());
    let settings: BTreeSet<_> = works().flat_map(|work| &work.other_resource_names).collect();
    let number = count(works().count(), "work");
    let names = list_names(works().map(HubWork::qualified_name));
    let settings = list_names(settings);
    let values: [(&str, &dyn std::fmt::Display); 3] = [("works", &number), ("names", &names), ("settings", &settings)];
    works().next().map(|_| OTHER_RESOURCE_NAME.finding(&values))
}

/// Returns the finding about objects that several Applications deliver to one cluster.
fn shared(works: &[HubWork]) -> Option<Finding> {
    let mut owners: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for work in works {
        let Some(application) = &work.application else { continue };
        for object in &work.objects {
            owners.entry((&work.cluster, object)).or_default().insert(application);
        }
    }
    owners.retain(|_, applications| applications.len() > 1);
    let names: Vec<_> = owners
        .iter()
        .map(|((cluster, object), applications)| {
            let applications: Vec<_> = applications.iter().copied().collect();
            format!("{object} on {cluster} ({})", applications.join(" and "))
        })
        .collect();
    let number = count(names.len(), "object");
    (!names.is_empty()).then(|| SHARED.finding(&[("objects", &number), ("names", &list_names(names))]))
}

/// Returns the kind of a rejection, from the wording of OCM's agent and of API servers.
fn reason(why: &str) -> &'static Message {
    let has = |text: &str| why.contains(text);
    if has("not allowed to apply the resource") || has("is not allowed to escalate") {
        &BY_EXECUTOR
    } else if has("is forbidden: User") {
        &BY_AGENT
    } else if has("doesn't have a resource type") || has("no matches for kind") {
        &NO_KIND
    } else if has("cluster-scoped-kinds") {
        &OTHER_SCOPE
    } else if has("namespaces \"") && has("not found") {
        &NO_NAMESPACE
    } else {
        &OTHER
    }
}
