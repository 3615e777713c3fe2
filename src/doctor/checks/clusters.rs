//! Checks that the managed clusters with works accept them.

use super::{Check, refused};
use crate::diagnosis::DiagnosedCluster;
use crate::doctor::hub_state::{HubState, HubWork, Lookup, is_late};
use crate::doctor::message::{Finding, Message, list_names};
use jiff::{SignedDuration, Timestamp};
use manifest::text::count;
use ocm::health::OVERDUE;
use std::collections::BTreeMap;

pub(super) static CHECK: Check = Check {
    name: "clusters",
    messages: &[
        &NO_CLUSTERS,
        &NOT_REGISTERED,
        &NOT_JOINED,
        &LEASE_NOT_RENEWED,
        &API_SERVER_UNHEALTHY,
        &NO_AGENT,
        &AGENT_LATE,
        &UNAVAILABLE_WITHOUT_WORKS,
        &OK,
    ],
    run,
};

static NO_CLUSTERS: Message = Message::warning(
    "clusters-none",
    "the hub has no managed clusters",
    "register one, such as with clusteradm join",
);
static NOT_REGISTERED: Message = Message::error(
    "clusters-unknown",
    "works exist for {clusters} not registered on the hub: {names}",
    "register them under these names, or correct the clusters of the Applications",
);
static NOT_JOINED: Message = Message::error(
    "clusters-not-joined",
    "works exist for {clusters} not accepted or not joined: {names}",
    "accept them, such as with clusteradm accept --clusters, and check that their registration agents run",
);
static LEASE_NOT_RENEWED: Message = Message::error(
    "clusters-silent",
    "works exist for {clusters} whose registration agents no longer renew their Leases: {names}",
    "check that they can reach the hub, and that the Pods in their namespace open-cluster-management-agent run",
);
static API_SERVER_UNHEALTHY: Message = Message::error(
    "clusters-unwell",
    "works exist for {clusters} whose agents report an unhealthy API server: {names}",
    "see the condition ManagedClusterConditionAvailable of these ManagedClusters",
);
static NO_AGENT: Message = Message::error(
    "clusters-without-work-agent",
    "works exist for {clusters} whose work agents have not reported on any: {names}",
    "check that klusterlet-work-agent runs there, in namespace open-cluster-management-agent, and read its log",
);
static AGENT_LATE: Message = Message::error(
    "clusters-with-late-work-agent",
    "works have waited for more than 2 minutes for the work agents of {clusters}: {names}",
    "check that klusterlet-work-agent runs there, in namespace open-cluster-management-agent, and read its log",
);
static UNAVAILABLE_WITHOUT_WORKS: Message = Message::warning(
    "clusters-idle",
    "{clusters} without works not joined or not available: {names}",
    "see the conditions of these ManagedClusters",
);
static OK: Message = Message::ok(
    "clusters",
    "managed clusters: {all}; with works, and available: {clusters}",
);

/// The time within which an agent reports on a change, or removes the objects of a work.
const AGENT_MAX: SignedDuration = SignedDuration::from_secs(OVERDUE);

fn run(hub_state: &HubState, now: Timestamp) -> Vec<Finding> {
    let clusters = match &hub_state.clusters {
        Lookup::Found(clusters) => clusters,
        // Another check reports that the hub does not serve them.
        Lookup::NotFound => return Vec::new(),
        Lookup::Refused(why) => return refused("ManagedClusters", why),
    };
    // Another check reports works that cannot be read.
    let mut by_cluster: BTreeMap<&str, Vec<&HubWork>> = BTreeMap::new();
    for work in hub_state.works.found().into_iter().flatten() {
        by_cluster.entry(&work.cluster).or_default().push(work);
    }
    if clusters.is_empty() && by_cluster.is_empty() {
        return vec![NO_CLUSTERS.finding(&[])];
    }
    let mut by_message: Vec<(&'static Message, Vec<&str>)> = Vec::new();
    let mut add = |message: &'static Message, name| match by_message.iter_mut().find(|group| group.0.id == message.id) {
        Some((_, names)) => names.push(name),
        None => by_message.push((message, vec![name])),
    };
    for (name, works) in &by_cluster {
        if let Some(message) = problem(clusters.get(*name), works, now) {
            add(message, name);
        }
    }
    for (name, cluster) in clusters {
        let is_available = cluster.joined && cluster.available == Some(true);
        if !is_available && !by_cluster.contains_key(&**name) {
            add(&UNAVAILABLE_WITHOUT_WORKS, name);
        }
    }
    let mut findings: Vec<_> = by_message
        .into_iter()
        .map(|(message, names)| {
            let number = count(names.len(), "managed cluster");
            message.finding(&[("clusters", &number), ("names", &list_names(names))])
        })
        .collect();
    findings.sort_by_key(|finding| {
        CHECK
            .messages
            .iter()
            .position(|message| message.id == finding.message.id)
    });
    if findings.is_empty() {
        findings.push(OK.finding(&[("clusters", &by_cluster.len()), ("all", &clusters.len())]));
    }
    findings
}

/// Returns the problem of a cluster that has works, if any.
fn problem(cluster: Option<&DiagnosedCluster>, works: &[&HubWork], now: Timestamp) -> Option<&'static Message> {
    let Some(cluster) = cluster else {
        return Some(&NOT_REGISTERED);
    };
    match cluster.available {
        _ if !cluster.joined => Some(&NOT_JOINED),
        None => Some(&LEASE_NOT_RENEWED),
        Some(false) => Some(&API_SERVER_UNHEALTHY),
        Some(true) => {
            let is_silent = works.iter().all(|work| !work.has_status);
            if is_silent && works.iter().any(|work| is_late(work.created, now)) {
                return Some(&NO_AGENT);
            }
            let is_late = |since: Timestamp| now.duration_since(since) > AGENT_MAX;
            let mut outstanding = works.iter().filter_map(|work| work.outstanding_since);
            outstanding.any(is_late).then_some(&AGENT_LATE)
        }
    }
}
