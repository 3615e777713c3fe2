//! Checks that the managed clusters with works accept them.

use super::{Check, refused};
use crate::doctor::hub_state::{Cluster, HubState, Lookup, Work, is_late};
use crate::doctor::message::{Finding, Message, count, some};
use jiff::Timestamp;
use std::collections::BTreeMap;

pub(super) static CHECK: Check = Check {
    name: "clusters",
    messages: &[&NONE, &UNKNOWN, &NOT_JOINED, &SILENT, &UNWELL, &NO_AGENT, &IDLE, &OK],
    run,
};

static NONE: Message = Message::warning(
    "clusters-none",
    "the hub has no managed clusters",
    "register one, such as with clusteradm join",
);
static UNKNOWN: Message = Message::error(
    "clusters-unknown",
    "works exist for {clusters} not registered on the hub: {names}",
    "register them under these names, or correct the clusters of the Applications",
);
static NOT_JOINED: Message = Message::error(
    "clusters-not-joined",
    "works exist for {clusters} not accepted or not joined: {names}",
    "accept them, such as with clusteradm accept --clusters, and check that their registration agents run",
);
static SILENT: Message = Message::error(
    "clusters-silent",
    "works exist for {clusters} whose registration agents no longer renew their Leases: {names}",
    "check that they can reach the hub, and that the Pods in their namespace open-cluster-management-agent run",
);
static UNWELL: Message = Message::error(
    "clusters-unwell",
    "works exist for {clusters} whose agents report an unhealthy API server: {names}",
    "see the condition ManagedClusterConditionAvailable of these ManagedClusters",
);
static NO_AGENT: Message = Message::error(
    "clusters-without-work-agent",
    "works exist for {clusters} whose work agents have not reported on any: {names}",
    "check that klusterlet-work-agent runs there, in namespace open-cluster-management-agent, and read its log",
);
static IDLE: Message = Message::warning(
    "clusters-idle",
    "{clusters} without works not joined or not available: {names}",
    "see the conditions of these ManagedClusters",
);
static OK: Message = Message::ok(
    "clusters",
    "managed clusters: {all}; with works, and available: {clusters}",
);

fn run(hub_state: &HubState, now: Timestamp) -> Vec<Finding> {
    let clusters = match &hub_state.clusters {
        Lookup::Found(clusters) => clusters,
        // Another check reports that the hub does not serve them.
        Lookup::NotFound => return Vec::new(),
        Lookup::Refused(why) => return refused("ManagedClusters", why),
    };
    // Another check reports works that cannot be read.
    let mut by_cluster: BTreeMap<&str, Vec<&Work>> = BTreeMap::new();
    for work in hub_state.works.found().into_iter().flatten() {
        by_cluster.entry(&work.cluster).or_default().push(work);
    }
    if clusters.is_empty() && by_cluster.is_empty() {
        return vec![NONE.of(&[])];
    }
    let mut of_message: Vec<(&'static Message, Vec<&str>)> = Vec::new();
    let mut add = |message: &'static Message, name| match of_message.iter_mut().find(|it| it.0.id == message.id) {
        Some((_, names)) => names.push(name),
        None => of_message.push((message, vec![name])),
    };
    for (name, works) in &by_cluster {
        if let Some(message) = wrong(clusters.get(*name), works, now) {
            add(message, name);
        }
    }
    for (name, cluster) in clusters {
        let is_well = cluster.joined && cluster.available == Some(true);
        if !is_well && !by_cluster.contains_key(&**name) {
            add(&IDLE, name);
        }
    }
    let mut findings: Vec<_> = of_message
        .into_iter()
        .map(|(message, names)| {
            let number = count(names.len(), "managed cluster");
            message.of(&[("clusters", &number), ("names", &some(names))])
        })
        .collect();
    findings.sort_by_key(|it| CHECK.messages.iter().position(|message| message.id == it.message.id));
    if findings.is_empty() {
        findings.push(OK.of(&[("clusters", &by_cluster.len()), ("all", &clusters.len())]));
    }
    findings
}

/// Returns the problem of a cluster that has works, if any.
fn wrong(cluster: Option<&Cluster>, works: &[&Work], now: Timestamp) -> Option<&'static Message> {
    let Some(cluster) = cluster else {
        return Some(&UNKNOWN);
    };
    match cluster.available {
        _ if !cluster.joined => Some(&NOT_JOINED),
        None => Some(&SILENT),
        Some(false) => Some(&UNWELL),
        Some(true) => {
            let is_silent = works.iter().all(|work| !work.answered);
            let is_late = works.iter().any(|work| is_late(work.created, now));
            (is_silent && is_late).then_some(&NO_AGENT)
        }
    }
}
