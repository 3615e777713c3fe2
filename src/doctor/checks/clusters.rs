//! Checks that the managed clusters with works accept them.

use crate::diagnosis::DiagnosedCluster;
use crate::doctor::hub_state::{HubState, HubWork, is_late};
use crate::doctor::message::{CLUSTERS, Finding, Message, check};
use jiff::{SignedDuration, Timestamp};
use ocm::health::OVERDUE;
use std::collections::BTreeMap;

check! {
    "clusters"
    warning NO_CLUSTERS "clusters-none":
        "the hub has no managed clusters",
        "register one, such as with clusteradm join";
    error NOT_REGISTERED "clusters-unknown":
        "works exist for {clusters} not registered on the hub: {names}",
        "register them under these names, or correct the clusters of the Applications";
    error WRONG_CLOCK "clusters-with-wrong-clock":
        "works exist for {clusters} whose clocks differ from the hub's by minutes: {names}",
        "synchronize them: OCM may take such clusters for unreachable";
    error NOT_JOINED "clusters-not-joined":
        "works exist for {clusters} not accepted or not joined: {names}",
        "accept them, such as with clusteradm accept --clusters, and check that their registration agents run";
    error LEASE_NOT_RENEWED "clusters-silent":
        "works exist for {clusters} whose registration agents no longer renew their Leases: {names}",
        "check that they can reach the hub, and that the Pods in their namespace open-cluster-management-agent run";
    error API_SERVER_UNHEALTHY "clusters-unwell":
        "works exist for {clusters} whose agents report an unhealthy API server: {names}",
        "see the condition ManagedClusterConditionAvailable of these ManagedClusters";
    error NO_AGENT "clusters-without-work-agent":
        "works exist for {clusters} whose work agents have not reported on any: {names}",
        "check that klusterlet-work-agent runs there, in namespace open-cluster-management-agent, and read its log";
    error AGENT_LATE "clusters-with-late-work-agent":
        "works have waited for more than 2 minutes for the work agents of {clusters}: {names}",
        "check that klusterlet-work-agent runs there, in namespace open-cluster-management-agent, and read its log";
    error OLD_AGENT "clusters-with-old-work-agent":
        "agents before OCM 1.2 report works of Placements as healthy too early, and before 1.1 run hooks and actions again, on {clusters}: \
         {names}",
        "upgrade Open Cluster Management there";
    warning UNAVAILABLE_WITHOUT_WORKS "clusters-idle":
        "{clusters} without works not joined or not available: {names}",
        "see the conditions of these ManagedClusters";
    ok OK "clusters":
        "managed clusters: {all}; with works, and available: {clusters}";
}

/// The time within which an agent reports on a change, or removes the objects of a work.
const AGENT_MAX: SignedDuration = SignedDuration::from_secs(OVERDUE);

fn run(hub_state: &HubState, now: Timestamp) -> Vec<Finding> {
    // Another check reports that the hub does not serve them.
    let Some(clusters) = hub_state.clusters.found() else {
        return hub_state.clusters.refusal("ManagedClusters");
    };
    // Another check reports works that cannot be read.
    let mut by_cluster: BTreeMap<&str, Vec<&HubWork>> = BTreeMap::new();
    for work in hub_state.works.items() {
        by_cluster.entry(&work.cluster).or_default().push(work);
    }
    if clusters.is_empty() && by_cluster.is_empty() {
        return vec![NO_CLUSTERS.finding(&[])];
    }
    let mut problems: Vec<(&str, &'static Message)> = Vec::new();
    for (name, works) in &by_cluster {
        problems.extend(problem(clusters.get(*name), works, now).map(|message| (*name, message)));
    }
    for (name, cluster) in clusters {
        let is_available = cluster.joined && cluster.available == Some(true);
        if !is_available && !by_cluster.contains_key(&**name) {
            problems.push((name, &UNAVAILABLE_WITHOUT_WORKS));
        }
    }
    let about = |message: &&'static Message| {
        let of_message = problems.iter().filter(|(_, problem)| problem.id == message.id);
        message.about(CLUSTERS, of_message.map(|(name, _)| name), &[])
    };
    let findings: Vec<_> = CHECK.messages.iter().filter_map(about).collect();
    OK.if_none(findings, &[("clusters", &by_cluster.len()), ("all", &clusters.len())])
}

/// Returns the problem of a cluster that has works, if any.
fn problem(cluster: Option<&DiagnosedCluster>, works: &[&HubWork], now: Timestamp) -> Option<&'static Message> {
    let Some(cluster) = cluster else {
        return Some(&NOT_REGISTERED);
    };
    match cluster.available {
        _ if cluster.has_wrong_clock => Some(&WRONG_CLOCK),
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
            if outstanding.any(is_late) {
                return Some(&AGENT_LATE);
            }
            works.iter().any(|work| work.of_old_agent).then_some(&OLD_AGENT)
        }
    }
}
