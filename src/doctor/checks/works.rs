//! Checks that the works of Applications are applied, and not larger than OCM permits.

use crate::diagnosis::DiagnosedApplication;
use crate::doctor::hub_state::{HubState, HubWork};
use crate::doctor::message::{APPLICATIONS, CLUSTERS, Finding, Message, WORKS, check, list_names};
use jiff::Timestamp;
use manifest::text::{with_reason, without_middle};
use std::collections::{BTreeMap, BTreeSet};

check! {
    "works"
    error OVER_LIMIT "works-over-limit":
        "more than {limit} bytes are in {works}, so OCM's webhook rejects every change: {names}",
        "split the works of these Applications with a smaller work-size";
    error TOO_LARGE "works-refused-for-size":
        "OCM's webhook has rejected works as too large, of {applications}: {names}",
        "set manifest-limit to the limit of the webhook, or split an object that is larger";
    error SEVERAL_SOURCES "works-of-several-sources":
        "Argo CD applies only the works of the last source that uses the plugin, of {applications}: {names}",
        "set the setting name of each source, or create an Application for each source";
    error SEVERAL_ARGO_CDS "works-of-several-argo-cds":
        "two Argo CDs write or prune the same works, of {pairs} of Applications: {names}",
        "delete one of each pair without cascade, and create it with another name";
    error BY_EXECUTOR "works-refused-by-executor":
        "agents cannot apply {works}, because the executor lacks permissions: {names}: {why}",
        "grant them to the executor's ServiceAccount on the managed cluster, or set another executor";
    error BY_AGENT "works-refused-by-rights":
        "agents cannot apply {works}, because the agent lacks permissions: {names}: {why}",
        "grant them to the agent with a ClusterRole on the managed cluster that has the label \
         open-cluster-management.io/aggregate-to-work: \"true\"";
    error NO_KIND "works-unknown-kind":
        "agents cannot apply {works}, because the managed cluster does not serve the kind: {names}: {why}",
        "deliver its CustomResourceDefinition first, or correct the apiVersion";
    error OTHER_SCOPE "works-other-scope":
        "agents cannot apply {works}, because the scope of the kind is another one: {names}: {why}",
        "correct cluster-scoped-kinds of the Application";
    error OTHER_RESOURCE_NAME "works-other-resource-name":
        "objects in {works} have no health and are not applied as configured, because the managed cluster serves their kind under another \
         resource name: {names}",
        "set resource-names of the Application to {settings}";
    error NO_NAMESPACE "works-without-namespace":
        "agents cannot apply {works}, because the namespace does not exist: {names}: {why}",
        "deliver the Namespace too, or set create-namespace";
    error OTHER "works-not-applied":
        "agents cannot apply {works}: {names}: {why}",
        "see the objects with `argocd-ocm-cmp status` of the Application";
    error NO_CLUSTER "works-without-clusters":
        "no managed cluster is selected for {works} of a Placement: {names}: {why}",
        "correct the Placement, the ManagedClusterSetBindings in its namespace, or the labels and taints of the clusters";
    error SHARED "works-shared-objects":
        "several Applications deliver {objects} to the same managed cluster: {names}",
        "remove them from all but one of these Applications";
    warning TOO_MANY_WATCHES "works-too-many-watches":
        "works of {clusters} ask for more than {limit} watches, so the agent polls the rest: {names}",
        "set feedback to poll for some Applications, or raise --max-feedback-watch of the agent";
    ok OK "works":
        "works of Applications: {works}, none rejected by agents";
}

/// The default limit of OCM's webhook for the size of a work, in bytes as it counts them.
const LIMIT: usize = 500 * 1024;

/// The default limit of OCM's agent for its watches: one for each kind and namespace.
const WATCHES_MAX: usize = 50;

/// The maximum length of an agent's message in a finding, in bytes.
const MESSAGE_MAX: usize = 200;

fn run(hub_state: &HubState, _: Timestamp) -> Vec<Finding> {
    let Some(works) = hub_state.works.found() else {
        return hub_state.works.refusal("ManifestWorks");
    };
    let over = works.iter().filter(|work| work.size > LIMIT);
    let over = over.map(HubWork::qualified_name);
    let mut findings: Vec<_> = OVER_LIMIT
        .about(WORKS, over, &[("limit", &LIMIT)])
        .into_iter()
        .collect();
    let is_too_large = |error: &str| error.contains("the size of manifests is") && error.contains("which exceeds the");
    let mut about_applications = |message: &'static Message, has_problem: &dyn Fn(&DiagnosedApplication) -> bool| {
        let applications = hub_state.applications.items().iter();
        let names = applications.filter(|application| has_problem(application));
        findings.extend(message.about(APPLICATIONS, names.map(|application| &application.qualified_name), &[]));
    };
    about_applications(&TOO_LARGE, &|application| application.errors().any(is_too_large));
    about_applications(&SEVERAL_SOURCES, &|application| application.sources_share_works);
    findings.extend(SEVERAL_ARGO_CDS.about(("pairs", "pair"), &hub_state.with_works_of_another, &[]));
    for message in [&BY_EXECUTOR, &BY_AGENT, &NO_KIND, &OTHER_SCOPE, &NO_NAMESPACE, &OTHER] {
        let refused = works
            .iter()
            .filter_map(|work| Some((work.qualified_name(), work.refused.as_deref()?)));
        let mut of_it: Vec<_> = refused.filter(|(_, why)| reason(why).id == message.id).collect();
        of_it.sort_unstable();
        let Some((_, why)) = of_it.first() else { continue };
        let why = without_middle(why, MESSAGE_MAX);
        let names = of_it.iter().map(|(qualified_name, _)| qualified_name);
        findings.extend(message.about(WORKS, names, &[("why", &why)]));
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
    findings.extend(TOO_MANY_WATCHES.about(CLUSTERS, watched.keys(), &[("limit", &WATCHES_MAX)]));
    OK.if_none(findings, &[("works", &works.len())])
}

/// Returns the finding about works whose Placements select no managed cluster.
fn without_clusters(hub_state: &HubState) -> Option<Finding> {
    let sets = hub_state.sets.items().iter();
    let sets: Vec<_> = sets.filter(|set| !set.empty_placements.is_empty()).collect();
    let placements = hub_state.unsatisfied_placements.found();
    let placement = sets.first()?.empty_placements.first()?;
    let why = placements.and_then(|entries| entries.get(placement));
    let why = without_middle(why.map_or("", String::as_str), MESSAGE_MAX);
    let why = with_reason(&format!("Placement {placement}"), &why);
    NO_CLUSTER.about(WORKS, sets.iter().map(|set| &set.qualified_name), &[("why", &why)])
}

/// Returns the finding about kinds that managed clusters serve under another resource name.
fn other_resource_names(works: &[HubWork]) -> Option<Finding> {
    let works = || works.iter().filter(|work| !work.other_resource_names.is_empty());
    let settings: BTreeSet<_> = works().flat_map(|work| &work.other_resource_names).collect();
    let names = works().map(HubWork::qualified_name);
    OTHER_RESOURCE_NAME.about(WORKS, names, &[("settings", &list_names(settings))])
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
    let names = owners.iter().map(|((cluster, object), applications)| {
        let applications: Vec<_> = applications.iter().copied().collect();
        format!("{object} on {cluster} ({})", applications.join(" and "))
    });
    SHARED.about(("objects", "object"), names, &[])
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
