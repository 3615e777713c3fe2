//! Tests of the report on GitOpsClusters.

use super::print::to_json;
use super::table::table;
use super::*;
use jiff::Timestamp;
use serde_json::json;

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().expect("a time")
}

fn condition(kind: &str, status: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": "Because", "message": message, "observedGeneration": 2,
        "lastTransitionTime": "2026-11-21T11:00:00Z",
    })
}

/// Returns a GitOpsCluster in the dialect of argocd-pull-integration, with agents in every state.
fn fleet() -> Value {
    json!({
        "metadata": {"namespace": "argocd", "name": "fleet", "generation": 2},
        "spec": {"placementRef": {"name": "all"}, "argoCDAgentAddon": {"mode": "autonomous"}},
        "status": {
            "clusters": {"selected": 7, "registered": 6, "installed": 9, "connected": 9, "degraded": 9},
            "server": {"address": "hub.example.com", "port": "8443"},
            "certificates": [
                {"name": "argocd-agent-ca", "notAfter": "2027-11-20T12:00:00Z"},
                {"name": "argocd-agent-principal-tls", "notAfter": "2026-11-24T16:00:00Z"},
                {"name": "argocd-agent-resource-proxy-tls", "notAfter": "2026-11-21T11:30:30Z"},
            ],
            "conditions": [
                condition("RBACReady", "True", "no rights are needed"),
                condition("AgentsConnected", "False", "1 of 6 agents are connected, not connected: eu1; eu2"),
                condition("ManifestWorkCreated", "Unknown", "5 of 6 clusters\nhave applied the ManifestWork"),
                condition("Ready", "False", "AgentsConnected: 1 of 6 agents are connected, not connected: eu1; eu2"),
            ],
            "clusterStates": [
                {"name": "us1", "state": "Connected", "certificateNotAfter": "2026-12-01T12:00:00Z"},
                {"name": "eu1", "state": "Degraded", "message": "the image cannot be pulled"},
                {"name": "ap1", "state": "Hibernating"},
            ],
            "clusterStatesCut": 3,
        },
    })
}

fn addon(conditions: &[(&str, &str, &str)]) -> Value {
    let conditions = conditions.iter();
    let conditions: Vec<_> = conditions
        .map(|(kind, status, message)| condition(kind, status, message))
        .collect();
    json!({"status": {"conditions": conditions}})
}

/// Returns the state of those agents on the hub, and of one of another GitOpsCluster.
fn agents() -> AgentInputs {
    let (applied, available) = (("ManifestApplied", "True", ""), ("Available", "True", ""));
    let addons = [
        (
            "eu1",
            addon(&[applied, available, ("Degraded", "True", "the image cannot be pulled")]),
        ),
        (
            "eu2",
            addon(&[applied, ("Available", "False", "the principal refuses it")]),
        ),
        ("eu3", addon(&[("ManifestApplied", "False", "no such namespace")])),
        ("us1", addon(&[applied, available])),
        ("us2", addon(&[applied, available])),
        ("other", addon(&[("Degraded", "True", "of another GitOpsCluster")])),
    ];
    let members = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    AgentInputs {
        members: BTreeMap::from([
            (
                "argocd/fleet".to_owned(),
                members(&["us1", "us2", "eu1", "eu2", "eu3", "new"]),
            ),
            ("team/fleet".to_owned(), members(&["other"])),
        ]),
        addons: addons
            .into_iter()
            .map(|(name, addon)| (name.to_owned(), addon))
            .collect(),
        silent: members(&["us2"]),
    }
}

fn fleet_state() -> FleetState {
    let expiry = |name: &str, end: &str| (name.to_owned(), end.to_owned());
    FleetState {
        agents: Some(agents()),
        certificates: Some(BTreeMap::from([
            expiry("us1", "2026-12-21T12:00:00Z"),
            expiry("eu1", "2026-11-20T12:00:00Z"),
        ])),
        ..FleetState::default()
    }
}

fn shown(gitops_cluster: &Value, fleet: &FleetState, wide: bool) -> String {
    table(&GitOpsClusterReport::new(gitops_cluster, fleet), now(), wide, false)
}

#[test]
fn lists_unhealthy_agents_first_with_conditions() {
    insta::assert_snapshot!(shown(&fleet(), &fleet_state(), false), @r"
    GITOPSCLUSTER   argocd/fleet
    READY           False: AgentsConnected: 1 of 6 agents are connected, not connected: eu1; eu2
    PRINCIPAL       hub.example.com:8443
    MODE            autonomous
    PLACEMENT       all
    CLUSTERS        7 selected, 6 registered, 3 installed, 1 connected, 1 degraded

    CERTIFICATE                       UNTIL
    argocd-agent-ca                   364d (2027-11-20T12:00:00Z)
    argocd-agent-principal-tls        3d4h (2026-11-24T16:00:00Z)
    argocd-agent-resource-proxy-tls   ended 29m ago (2026-11-21T11:30:30Z)

    CONDITION             STATUS    MESSAGE
    AgentsConnected       False     1 of 6 agents are connected, not connected: eu1; eu2
    ManifestWorkCreated   Unknown   5 of 6 clusters have applied the ManifestWork

    CLUSTER   STATE          MESSAGE
    eu1       Degraded       the image cannot be pulled
    eu2       Disconnected   the principal refuses it
    eu3       Installing     no such namespace
    new       Pending
    us2       Unreachable
    us1       Connected
    ");
}

#[test]
fn without_access_to_add_ons_shows_the_status() {
    let text = shown(&fleet(), &FleetState::default(), true);
    let counts = "CLUSTERS        7 selected, 6 registered, 9 installed, 9 connected, 9 degraded\n";
    assert!(text.contains(counts), "{text}");
    let (_, clusters) = text.split_once("\nCLUSTER ").expect("the clusters");
    insta::assert_snapshot!(clusters, @r"
      STATE       CERTIFICATE-UNTIL            MESSAGE
    ap1       Unknown     -
    eu1       Degraded    -                            the image cannot be pulled
    us1       Connected   10d (2026-12-01T12:00:00Z)

    3 more clusters not listed in the status
    ");
}

#[test]
fn without_agents_shows_registered_clusters() {
    let registers = json!({
        "metadata": {"namespace": "team", "name": "fleet", "generation": 2},
        "spec": {"placementRef": {"name": "some"}, "gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": false}}},
        "status": {
            "clusters": {"selected": 3, "registered": 3},
            "conditions": [condition("Ready", "True", "all conditions are True")],
        },
    });
    assert!(GitOpsClusterReport::new(&registers, &fleet_state()).is_healthy());
    insta::assert_snapshot!(shown(&registers, &fleet_state(), true), @r"
    GITOPSCLUSTER   team/fleet
    READY           True: all conditions are True
    PLACEMENT       some
    CLUSTERS        3 selected, 3 registered
    ");
}

#[test]
fn outdated_or_missing_status_is_marked() {
    let mut one = fleet();
    one["metadata"]["generation"] = json!(3);
    let ready = |one: &Value| {
        let text = shown(one, &fleet_state(), false);
        let (_, ready) = text.split_once("READY").expect("a head");
        ready.lines().next().expect("a line").trim().to_owned()
    };
    assert!(ready(&one).starts_with("False, before its last change: AgentsConnected"));
    one["metadata"]["deletionTimestamp"] = json!("2026-11-21T11:00:00Z");
    assert!(ready(&one).starts_with("False, and it is being deleted: AgentsConnected"));
    one["status"] = json!({});
    assert!(ready(&one).starts_with("no controller has written its status"));
    for odd in [json!({}), json!({"spec": [], "status": 7, "metadata": null})] {
        assert!(ready(&odd).starts_with("no controller has written its status"));
    }
}

#[test]
fn healthy_only_if_ready_and_every_agent_is_healthy() {
    let mut one = fleet();
    one["status"]["conditions"] = json!([condition("Ready", "True", "")]);
    let with = |names: &[&str], generation: u8| {
        let mut one = one.clone();
        one["metadata"]["generation"] = json!(generation);
        let mut fleet = fleet_state();
        let agents = fleet.agents.as_mut().expect("agents");
        let names = names.iter().map(ToString::to_string).collect();
        agents.members.insert("argocd/fleet".to_owned(), names);
        GitOpsClusterReport::new(&one, &fleet).is_healthy()
    };
    assert!(with(&["us1", "us2"], 2));
    assert!(with(&[], 2));
    assert!(!with(&["us1", "us2"], 3), "the status is about an earlier generation");
    for unhealthy in ["eu1", "eu2", "eu3", "new"] {
        assert!(!with(&["us1", unhealthy], 2), "{unhealthy}");
    }
    assert!(!GitOpsClusterReport::new(&fleet(), &fleet_state()).is_healthy());
}

#[test]
fn both_dialects_request_an_agent() {
    let addon = |enabled: bool, agent: bool| json!({"enabled": enabled, "argoCDAgent": {"enabled": agent, "mode": ""}});
    for (expected, spec) in [
        (Some("managed"), json!({"argoCDAgentAddon": {}})),
        (Some("managed"), json!({"argoCDAgentAddon": {"mode": "managed"}})),
        (Some("managed"), json!({"gitopsAddon": addon(true, true)})),
        (None, json!({"gitopsAddon": addon(false, true)})),
        (None, json!({"gitopsAddon": addon(true, false)})),
        (None, json!({"gitopsAddon": {"enabled": true}})),
        (None, json!({"argoCDAgentAddon": null})),
        (None, json!({})),
    ] {
        assert_eq!(mode(&spec).as_deref(), expected, "{spec}");
    }
}

#[test]
fn json_output_is_complete() {
    let report = GitOpsClusterReport::new(&fleet(), &fleet_state());
    let value = to_json(&report);
    let head = json!({
        "namespace": "argocd", "name": "fleet", "healthy": false, "deleting": false, "current": true,
        "principal": "hub.example.com:8443", "mode": "autonomous", "placement": "all", "unlisted": 0,
        "clusters": {"selected": 7, "registered": 6, "installed": 3, "connected": 1, "degraded": 1},
    });
    for (key, expected) in head.as_object().expect("fields") {
        assert_eq!(&value[key], expected, "{key}");
    }
    let first = json!({"name": "argocd-agent-ca", "notAfter": "2027-11-20T12:00:00Z"});
    assert_eq!(value["certificates"][0], first);
    let agents = value["agents"].as_array().expect("agents");
    let states: Vec<_> = agents.iter().map(|agent| &agent["cluster"]).collect();
    assert_eq!(states, ["eu1", "eu2", "eu3", "new", "us2", "us1"]);
    let last = json!({
        "cluster": "us1", "state": "Connected", "certificateNotAfter": "2026-12-21T12:00:00Z", "message": "",
    });
    assert_eq!(agents[5], last);
    assert_eq!(agents[1]["certificateNotAfter"], Value::Null);
}

#[test]
fn states_have_colours() {
    let report = GitOpsClusterReport::new(&fleet(), &fleet_state());
    let coloured = table(&report, now(), true, true);
    for painted in [
        "\x1b[31mDegraded\x1b[0m",
        "\x1b[33mPending\x1b[0m",
        "\x1b[32mConnected\x1b[0m",
        "\x1b[31mFalse",
    ] {
        assert!(coloured.contains(painted), "{painted:?} in {coloured:?}");
    }
}
