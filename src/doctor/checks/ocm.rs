//! Checks that the hub serves the APIs of Open Cluster Management that are used.

use crate::doctor::controller::ControllerPod;
use crate::doctor::hub_state::{HubState, Lookup, is_late};
use crate::doctor::message::{CountedKind, Finding, check};
use crate::doctor::rights::gate;
use crate::workload::items;
use hub_state::reconcile::Settings;
use jiff::Timestamp;
use ocm::resources::{CLUSTERS, DECISIONS, WORK_SETS, WORKS};
use primitives::resource::Resource;
use serde_json::Value;

check! {
    "ocm"
    error NO_API "ocm-api-missing":
        "the hub does not serve {kind} of {api}",
        "install Open Cluster Management, or upgrade it to 1.0 or newer";
    error NO_RULES "ocm-without-condition-rules":
        "the hub's ManifestWorks have no condition rules, which report the health of objects",
        "upgrade Open Cluster Management to 1.0 or newer, or set condition-rules to false";
    error NO_ROLLOUTS "ocm-without-rollouts":
        "OCM before 1.2 on the hub does not wait for health in rollouts of {sets}: {names}",
        "upgrade Open Cluster Management to 1.2 or newer";
    error NO_GATE "ocm-gate-off":
        "OCM does not process {sets}, because feature gate ManifestWorkReplicaSet is not enabled in the ClusterManager: {names}",
        "enable it in spec.workConfiguration.featureGates of the ClusterManager";
    error SETS_NOT_PROCESSED "ocm-sets-idle":
        "OCM does not process {sets}: {names}",
        "check that its work manager runs with --feature-gates=ManifestWorkReplicaSet=true";
    ok OK "ocm":
        "the hub serves the required APIs of Open Cluster Management{gates}";
}

const SETS: CountedKind = ("sets", "ManifestWorkReplicaSet");

fn run(hub_state: &HubState, now: Timestamp) -> Vec<Finding> {
    let mut findings = Vec::new();
    for resource in needed(hub_state) {
        let api = resource.api_version();
        match hub_state.apis.get(&api) {
            Some(served @ Lookup::Refused(_)) => findings.extend(served.refusal(&format!("the API {api}"))),
            _ if hub_state.serves(resource) == Some(true) => {}
            _ => findings.push(NO_API.finding(&[("kind", &resource.kind), ("api", &api)])),
        }
    }
    let lacks = |setting: &str| {
        let crd = hub_state.work_crd.found();
        crd.is_some_and(|crd| !has_setting(crd, setting))
    };
    if lacks("conditionRules") {
        findings.push(NO_RULES.finding(&[]));
    }
    let sets = hub_state.sets.items().iter();
    // OCM has this setting since the version whose rollouts wait for health.
    if lacks("feedbackScrapeType") {
        let names = sets.clone().map(|set| &set.qualified_name);
        findings.extend(NO_ROLLOUTS.about(SETS, names, &[]));
    }
    findings.extend(
        hub_state
            .work_crd
            .refusal("the CustomResourceDefinition of ManifestWorks"),
    );
    findings.extend(
        hub_state
            .cluster_managers
            .refusal("the ClusterManagers of OCM's operator"),
    );
    findings.extend(hub_state.sets.refusal("ManifestWorkReplicaSets"));
    let has_cluster_manager = !hub_state.cluster_managers.items().is_empty();
    let message = if has_cluster_manager && gate(hub_state, "ManifestWorkReplicaSet") != Some(true) {
        &NO_GATE
    } else {
        &SETS_NOT_PROCESSED
    };
    let idle = sets.filter(|set| !set.has_status && is_late(set.created, now));
    let idle = idle.map(|set| &set.qualified_name);
    findings.extend(message.about(SETS, idle, &[]));
    let unknown = if has_cluster_manager {
        ""
    } else {
        "; there is no ClusterManager: see the flags --feature-gates of OCM's controllers for enabled feature gates"
    };
    OK.if_none(findings, &[("gates", &unknown)])
}

/// Returns the needed APIs of OCM: works and managed clusters, those for Applications with a Placement, and those that the
/// controller requires.
fn needed(hub_state: &HubState) -> Vec<&'static Resource> {
    let mut needed = vec![&WORKS, &CLUSTERS];
    let mut applications = hub_state.applications.items().iter();
    if applications.any(|application| application.placement) {
        needed.extend([&WORK_SETS, &DECISIONS]);
    }
    let controllers = ControllerPod::from_state(hub_state)
        .map(|pod| pod.controllers)
        .unwrap_or_default();
    let settings = Settings::default();
    for kind in controllers.iter().flat_map(|controller| controller.kinds(&settings)) {
        let resource = kind.resource();
        let is_ocm = resource.group.ends_with("open-cluster-management.io") && !kind.watched().may_be_missing;
        if is_ocm && !needed.contains(&resource) {
            needed.push(resource);
        }
    }
    needed
}

/// Returns true if the `manifestConfigs` of works, in the version that is used, have this setting.
fn has_setting(crd: &Value, setting: &str) -> bool {
    let versions = items(&crd["spec"]["versions"]).iter();
    let mut stored = versions.filter(|version| version["name"] == WORKS.version);
    stored.any(|version| {
        let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        !spec["manifestConfigs"]["items"]["properties"][setting].is_null()
    })
}
