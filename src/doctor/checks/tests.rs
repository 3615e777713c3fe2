use super::{CHECKS, REFUSED};
use crate::cli::ListFormat;
use crate::diagnosis::{ApplicationCondition, DiagnosedApplication, DiagnosedCluster, SyncOperation};
use crate::doctor::{
    CheckResult, Finding, HubNode, HubState, HubWork, LiveState, Lookup, Message, Permission, Project, ReplicaSet,
    Severity, about_nodes, examine, overall_result, required_permissions,
};
use crate::embedded::{self, shipped};
use crate::list;
use controller::controllers::CONTROLLERS;
use jiff::{SignedDuration, Timestamp};
use ocm::resources::{GITOPS_CLUSTERS, REPORTS, WORK_SETS};
use primitives::resource::Resource;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn now() -> Timestamp {
    "2026-11-22T10:00:00Z".parse().expect("a time")
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

fn deployment(file: &str, labels: &Value) -> Value {
    let mut deployment = shipped(file).remove(0);
    deployment["spec"]["selector"]["matchLabels"] = labels.clone();
    deployment
}

fn pod(name: &str, labels: &Value, container: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": container}]},
        "status": {"containerStatuses": [{"name": container, "ready": true, "restartCount": 0}]},
    })
}

fn work(cluster: &str, name: &str) -> HubWork {
    HubWork {
        cluster: cluster.into(),
        name: name.into(),
        created: Some(ago(3600)),
        size: 1000,
        has_status: true,
        ..HubWork::default()
    }
}

/// Returns a complete hub without problems.
fn healthy_hub() -> HubState {
    let [server, controller] = ["argocd-repo-server", "argocd-ocm-cmp-controller"];
    let labels = |name: &str| json!({"app.kubernetes.io/name": name});
    let mut repo_server = deployment("deploy_cmp.yaml", &labels(server));
    let containers = &mut repo_server["spec"]["template"]["spec"]["containers"];
    containers[0]["env"] =
        shipped("deploy/deploy_policy.yaml")[0]["spec"]["template"]["spec"]["containers"][0]["env"].clone();
    let argocd = json!({"name": server, "image": "quay.io/argoproj/argocd:v3.2.6"});
    containers.as_array_mut().expect("containers").insert(0, argocd);
    let mut deployed = deployment("deploy/deploy_controller.yaml", &labels(controller));
    deployed["status"] = json!({"readyReplicas": 2});
    let application_controller = json!({
        "metadata": {"name": "argocd-application-controller"},
        "spec": {"template": {"spec": {"serviceAccountName": "argocd-application-controller"}}},
    });
    let mut apis: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let settings = hub_state::reconcile::Settings::default();
    let used = CONTROLLERS
        .iter()
        .flat_map(|controller| controller.kinds(&settings))
        .map(hub_state::model::Kind::resource);
    for resource in used {
        apis.entry(resource.api_version())
            .or_default()
            .insert(resource.plural.to_owned());
    }
    let rules = json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {
        "manifestConfigs": {"items": {"properties": {"conditionRules": {}, "feedbackScrapeType": {}}}}
    }}}}}}]}});
    let lease = json!({
        "metadata": {"name": controller},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": ago(5).to_string()},
    });
    let cluster = DiagnosedCluster {
        accepted: true,
        joined: true,
        available: Some(true),
        ..DiagnosedCluster::default()
    };
    let application = DiagnosedApplication {
        qualified_name: "argocd/shop".to_owned(),
        project: "managed-clusters".to_owned(),
        plugins: vec!["argocd-ocm-cmp".to_owned()],
        ..DiagnosedApplication::default()
    };
    let mut hub_state = HubState {
        namespace: "argocd".to_owned(),
        config: Lookup::Found(shipped("deploy/argocd_cm.yaml").remove(0)),
        deployments: Lookup::Found(vec![repo_server, deployed]),
        stateful_sets: Lookup::Found(vec![application_controller]),
        pods: Lookup::Found(vec![
            pod("server-1", &labels(server), "argocd-ocm-cmp"),
            pod("controller-1", &labels(controller), "controller"),
        ]),
        plugin: Lookup::Found(shipped("cm_plugin.yaml").remove(0)),
        leases: Lookup::Found(vec![lease]),
        apis: apis.into_iter().map(|(api, all)| (api, Lookup::Found(all))).collect(),
        work_crd: Lookup::Found(rules),
        applications: Lookup::Found(vec![application]),
        projects: Lookup::Found([("managed-clusters".to_owned(), Project::default())].into()),
        clusters: Lookup::Found(["eu1", "us1"].map(|name| (name.to_owned(), cluster)).into()),
        works: Lookup::Found(vec![work("eu1", "shop")]),
        sets: Lookup::Found(Vec::new()),
        policies: admission("ValidatingAdmissionPolicy"),
        bindings: admission("ValidatingAdmissionPolicyBinding"),
        ..HubState::default()
    };
    grant(&mut hub_state);
    hub_state
}

/// Grants all permissions.
fn grant(hub: &mut HubState) {
    let permissions = required_permissions(hub).into_iter();
    hub.permissions = Lookup::Found(permissions.map(|permission| (permission, true)).collect());
}

fn value_of<T>(lookup: &mut Lookup<T>) -> &mut T {
    match lookup {
        Lookup::Found(value) => value,
        _ => panic!("the object does not exist"),
    }
}

/// Returns the containers of a Deployment.
fn containers<'s>(hub: &'s mut HubState, name: &str) -> &'s mut Vec<Value> {
    let mut all = value_of(&mut hub.deployments).iter_mut();
    let deployment = all.find(|value| value["metadata"]["name"] == name);
    let pod = &mut deployment.expect("the Deployment")["spec"]["template"]["spec"];
    pod["containers"].as_array_mut().expect("containers")
}

/// Returns Argo CD's own container of the repo-server.
fn repo_server(hub: &mut HubState) -> &mut Value {
    &mut containers(hub, "argocd-repo-server")[0]
}

/// Returns the plugin's container of the repo-server.
fn sidecar(hub: &mut HubState) -> &mut Value {
    &mut containers(hub, "argocd-repo-server")[1]
}

/// Sets the enabled controllers.
fn enable_controllers(hub: &mut HubState, controllers: &str) {
    let env = json!([{"name": "ARGOCD_OCM_CMP_CONTROLLERS", "value": controllers}]);
    containers(hub, "argocd-ocm-cmp-controller")[0]["env"] = env;
}

fn application(hub: &mut HubState) -> &mut DiagnosedApplication {
    &mut value_of(&mut hub.applications)[0]
}

fn first_work(hub: &mut HubState) -> &mut HubWork {
    &mut value_of(&mut hub.works)[0]
}

/// Returns the data of argocd-cm.
fn argocd_cm(hub: &mut HubState) -> &mut Value {
    &mut value_of(&mut hub.config)["data"]
}

/// Adds an error of Argo CD to the Application.
fn add_error(hub: &mut HubState, kind: &str, message: &str) {
    application(hub).conditions.push(ApplicationCondition {
        kind: kind.to_owned(),
        message: message.to_owned(),
    });
}

/// Sets the last sync of the Application, which failed.
fn fail_sync(hub: &mut HubState, message: &str) {
    application(hub).operation = Some(SyncOperation {
        phase: "Failed".to_owned(),
        message: message.to_owned(),
        failures: vec![message.to_owned()],
    });
}

fn refused<T>() -> Lookup<T> {
    Lookup::Refused("forbidden".to_owned())
}

fn names<T: FromIterator<String>>(names: &[&str]) -> T {
    names.iter().map(ToString::to_string).collect()
}

fn withhold(hub: &mut HubState, resource: &Resource) {
    value_of(hub.apis.get_mut(&resource.api_version()).expect("the API")).remove(resource.plural);
}

type Change = fn(&mut HubState);

/// The ids of the problems after a change to a hub without problems, separated by spaces.
type Row = (&'static str, Change);

fn check(rows: &[Row]) {
    for (at, (expected, change)) in rows.iter().enumerate() {
        assert_eq!(problems_after(change).join(" "), *expected, "row {at}");
    }
}

/// Returns the ids of the problems after this change to a hub without problems.
fn problems_after(change: impl FnOnce(&mut HubState)) -> Vec<&'static str> {
    let mut hub = healthy_hub();
    change(&mut hub);
    problem_ids(&examine(&hub, now()))
}

fn problem_ids(findings: &[Finding]) -> Vec<&'static str> {
    let problems = findings.iter().filter(|finding| finding.message.level != Severity::Ok);
    problems.map(|finding| finding.message.id).collect()
}

fn messages() -> impl Iterator<Item = &'static Message> {
    let of_checks = CHECKS.iter().flat_map(|check| check.messages).copied();
    of_checks.chain([&REFUSED])
}

fn printed(findings: &[Finding], format: ListFormat, colours: bool) -> String {
    list::format_coloured(findings, format, colours).expect("text")
}

#[test]
fn healthy_hub_has_no_errors() {
    let findings = examine(&healthy_hub(), now());
    assert_eq!(overall_result(&findings), CheckResult::Passed);
    insta::assert_snapshot!(printed(&findings, ListFormat::Table, false));
}

#[test]
fn errors_come_first_with_remediation() {
    let mut hub = healthy_hub();
    *argocd_cm(&mut hub) = json!({});
    hub.plugin = Lookup::NotFound;
    hub.pods = Lookup::Refused("pods is forbidden".to_owned());
    value_of(&mut hub.clusters).clear();
    let findings = examine(&hub, now());
    assert_eq!(overall_result(&findings), CheckResult::Failed);
    insta::assert_snapshot!(printed(&findings, ListFormat::Table, false));
    let all: Value = serde_json::from_str(&printed(&findings, ListFormat::Json, false)).expect("JSON");
    assert_eq!((&all["errors"], &all["warnings"]), (&json!(4), &json!(2)));
    let first = &all["findings"][0];
    assert_eq!(
        (&first["result"], &first["id"]),
        (&json!("error"), &json!("plugin-config-missing"))
    );
    let coloured = printed(&findings, ListFormat::Table, true);
    assert!(coloured.contains("\x1b[31merror\x1b[0m"), "{coloured}");
}

#[test]
fn forbidden_reads_are_findings() {
    let refusals: [Change; 16] = [
        |hub| hub.config = refused(),
        |hub| hub.deployments = refused(),
        |hub| hub.pods = refused(),
        |hub| hub.nodes = refused(),
        |hub| hub.plugin = refused(),
        |hub| hub.settings = refused(),
        |hub| hub.leases = refused(),
        |hub| hub.work_crd = refused(),
        |hub| hub.cluster_managers = refused(),
        |hub| hub.applications = refused(),
        |hub| hub.projects = refused(),
        |hub| hub.clusters = refused(),
        |hub| hub.works = refused(),
        |hub| hub.sets = refused(),
        |hub| hub.policies = refused(),
        |hub| hub.bindings = refused(),
    ];
    for (at, refuse) in refusals.into_iter().enumerate() {
        let mut hub = healthy_hub();
        refuse(&mut hub);
        let findings = examine(&hub, now());
        assert_eq!(overall_result(&findings), CheckResult::Unknown, "{at}: {findings:#?}");
        let ids = problem_ids(&findings);
        assert!(ids.iter().all(|id| *id == "cannot-read"), "{at}: {findings:#?}");
    }
    check(&[("rights-not-asked", |hub| hub.permissions = refused())]);
}

/// Returns the shipped admission policies, or their bindings, as an API server stores them.
fn admission(kind: &str) -> Lookup<Vec<Value>> {
    let files = [
        "deploy/plugin_sources.yaml",
        "deploy/admission_policy.yaml",
        "deploy/holds.yaml",
        "deploy/agent_admission.yaml",
        "deploy/principal_admission.yaml",
        "deploy/live_admission.yaml",
    ];
    let mut all: Vec<_> = files.into_iter().flat_map(shipped).collect();
    all.retain(|object| object["kind"] == kind);
    for spec in all.iter_mut().map(|object| &mut object["spec"]) {
        for field in ["matchConstraints", "matchResources"] {
            if let Some(constraints) = spec.get_mut(field).and_then(Value::as_object_mut) {
                for (key, default) in [
                    ("matchPolicy", json!("Equivalent")),
                    ("namespaceSelector", json!({})),
                    ("objectSelector", json!({})),
                ] {
                    constraints.entry(key).or_insert(default);
                }
            }
        }
        if kind == "ValidatingAdmissionPolicy" {
            for rule in spec["matchConstraints"]["resourceRules"].as_array_mut().expect("rules") {
                rule["scope"] = json!("*");
            }
        }
    }
    Lookup::Found(all)
}

/// Returns the spec of a policy or binding by the middle of its name.
fn spec<'s>(all: &'s mut Lookup<Vec<Value>>, name: &str) -> &'s mut Value {
    let name = format!("argocd-ocm-cmp-{name}.argocd");
    let mut all = value_of(all).iter_mut();
    let object = all.find(|object| object["metadata"]["name"] == *name);
    &mut object.expect("the object")["spec"]
}

fn remove_named(all: &mut Lookup<Vec<Value>>, name: &str) {
    value_of(all).retain(|object| object["metadata"]["name"] != *format!("argocd-ocm-cmp-{name}.argocd"));
}

#[test]
fn finds_admission_policies_that_do_not_limit() {
    check(&[
        ("admission-not-served", |hub| {
            (hub.policies, hub.bindings) = (Lookup::NotFound, Lookup::NotFound);
        }),
        ("admission-missing", |hub| remove_named(&mut hub.policies, "works")),
        ("admission-missing", |hub| remove_named(&mut hub.bindings, "sources")),
        ("admission-missing", |hub| {
            remove_named(&mut hub.bindings, "principal-applications");
        }),
        ("admission-missing", |hub| remove_named(&mut hub.policies, "live")),
        ("admission-not-enforced", |hub| {
            spec(&mut hub.bindings, "secrets")["validationActions"] = json!(["Audit", "Warn"]);
        }),
        ("admission-not-enforced", |hub| {
            spec(&mut hub.bindings, "works")["policyName"] = json!("argocd-ocm-cmp-secrets.argocd");
        }),
        ("admission-not-enforced", |hub| {
            spec(&mut hub.bindings, "clusters")["validationActions"] = json!(["Audit"]);
        }),
        // The selector is narrower, although it contains all that is shipped.
        ("admission-differs", |hub| {
            spec(&mut hub.bindings, "works")["matchResources"] =
                json!({"namespaceSelector": {"matchLabels": {"a": "b"}}});
        }),
        ("admission-differs", |hub| {
            spec(&mut hub.bindings, "timedholds")["paramRef"]["parameterNotFoundAction"] = json!("Allow");
        }),
        ("admission-differs", |hub| {
            spec(&mut hub.policies, "agents")["validations"][0]["expression"] = json!("true");
        }),
        ("admission-differs", |hub| {
            spec(&mut hub.policies, "agents")["validations"]
                .as_array_mut()
                .expect("a list")
                .pop();
        }),
        ("admission-differs", |hub| {
            spec(&mut hub.policies, "works")["failurePolicy"] = json!("Ignore");
        }),
        ("admission-differs", |hub| {
            spec(&mut hub.policies, "clusters")["matchConditions"] = json!([]);
        }),
        ("agent-admission-missing", |hub| {
            remove_named(&mut hub.policies, "clusters");
            remove_named(&mut hub.bindings, "clusters");
        }),
        // The documented commands of kubectl do not install holds.
        ("", |hub| {
            remove_named(&mut hub.policies, "holds");
            remove_named(&mut hub.bindings, "holds");
            remove_named(&mut hub.bindings, "timedholds");
        }),
        ("admission-missing", |hub| remove_named(&mut hub.policies, "holds")),
    ]);
    let mut hub = healthy_hub();
    value_of(&mut hub.bindings).clear();
    let findings = examine(&hub, now());
    let lines: Vec<_> = findings
        .iter()
        .map(Finding::line)
        .filter(|line| line.contains("do not exist"))
        .collect();
    assert_eq!(lines.len(), 6, "{lines:#?}");
    assert_eq!(
        lines[0],
        "admission policies of feature plugin do not exist: ValidatingAdmissionPolicyBinding \
         argocd-ocm-cmp-sources.argocd: run `argocd-ocm-cmp install --features plugin`, or upgrade the Helm release"
    );
}

/// Removes Argo CD from its namespace; others have one.
fn remove_argo_cd(hub: &mut HubState, argocd_namespaces: &[&str]) {
    hub.config = Lookup::NotFound;
    hub.argocd_namespaces = Lookup::Found(names(argocd_namespaces));
    hub.deployments = Lookup::Found(Vec::new());
    hub.permissions = Lookup::NotFound;
}

#[test]
fn finds_problems_of_argo_cd() {
    check(&[
        ("argo-cd-too-old", |hub| {
            repo_server(hub)["image"] = json!("argocd:v2.3.1");
        }),
        ("argo-cd-old", |hub| repo_server(hub)["image"] = json!("argocd:v2.14.0")),
        ("argo-cd-version-unknown", |hub| {
            repo_server(hub)["image"] = json!("argocd:latest");
        }),
        // Other parts of Argo CD are not reported.
        ("argo-cd-nowhere", |hub| remove_argo_cd(hub, &[])),
        ("argo-cd-elsewhere", |hub| remove_argo_cd(hub, &["gitops"])),
        ("argo-cd-without-repo-server", |hub| {
            value_of(&mut hub.deployments).remove(0);
        }),
        // A quota may allow no Pod at all.
        ("argo-cd-controller-not-ready", |hub| {
            let workload = &mut value_of(&mut hub.stateful_sets)[0];
            workload["spec"]["replicas"] = 1.into();
            workload["status"] = json!({"observedGeneration": 1, "replicas": 0});
        }),
        // Argo CD divides Applications by their destination clusters among its Pods, and the plugin's have one destination.
        ("argo-cd-controller-not-ready", |hub| {
            let workload = &mut value_of(&mut hub.stateful_sets)[0];
            workload["spec"]["replicas"] = 3.into();
            workload["status"] = json!({"observedGeneration": 1, "readyReplicas": 2});
        }),
        // It is scaled down.
        ("", |hub| {
            value_of(&mut hub.stateful_sets)[0]["spec"]["replicas"] = 0.into();
        }),
        ("argo-cd-mount-missing", |hub| {
            hub.missing_mounts = vec![("argocd-server".to_owned(), "argocd-ocm-cmp-ui".to_owned())];
        }),
        ("argo-cd-redis-missing", |hub| {
            let redis = json!({"data": {"redis.server": "argocd-agent-redis-proxy:6379"}});
            hub.cmd_params = Lookup::Found(redis);
            value_of(&mut hub.deployments).push(principal());
        }),
        ("", |hub| {
            let redis = json!({"data": {"redis.server": "argocd-agent-redis-proxy:6379"}});
            hub.cmd_params = Lookup::Found(redis);
            let mut ready = principal();
            ready["status"] = json!({"readyReplicas": 1});
            value_of(&mut hub.deployments).push(ready);
        }),
        ("", |hub| {
            hub.cmd_params = Lookup::Found(json!({"data": {"redis.server": "argocd-redis-ha-haproxy:6379"}}));
        }),
        // A service mesh has added a container.
        ("", |hub| {
            let proxy = json!({"name": "istio-proxy", "image": "istio/proxyv2:1.24.0"});
            containers(hub, "argocd-repo-server").insert(0, proxy);
        }),
        // As an operator installs it.
        ("", |hub| {
            let server = &mut value_of(&mut hub.deployments)[0]["metadata"];
            server["name"] = json!("openshift-gitops-repo-server");
            server["labels"] =
                json!({"app.kubernetes.io/component": "repo-server", "app.kubernetes.io/part-of": "argocd"});
        }),
    ]);
    for (version, arguments, expected) in [
        (
            "v3.6.1",
            json!(["/usr/local/bin/argocd-repo-server", "--disable-tls"]),
            "argo-cd-repo-server-without-tls",
        ),
        ("v3.5.7", json!(["--disable-tls"]), ""),
        ("v3.6.1", json!(["--disable-tls", "--client-ca-path="]), ""),
    ] {
        let ids = problems_after(|hub| {
            repo_server(hub)["image"] = format!("argocd:{version}").into();
            repo_server(hub)["args"] = arguments;
        });
        assert_eq!(ids.join(" "), expected);
    }
}

fn remove_plugin(hub: &mut HubState) {
    hub.plugin = Lookup::NotFound;
    hub.applications = Lookup::Found(Vec::new());
    *argocd_cm(hub) = json!({});
    containers(hub, "argocd-repo-server").remove(1);
}

/// Helm keeps the ConfigMap.
fn remove_plugin_from_release(hub: &mut HubState) {
    let mut kept = value_of(&mut hub.plugin).clone();
    kept["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    remove_plugin(hub);
    hub.plugin = Lookup::Found(kept);
    enable_controllers(hub, "application-status,pull");
    grant(hub);
}

#[test]
fn hub_without_the_plugin_needs_none_for_the_pull_model() {
    check(&[
        ("", |hub| {
            remove_plugin(hub);
            enable_controllers(hub, "application-status,pull");
            grant(hub);
        }),
        ("", |hub| {
            remove_plugin(hub);
            enable_controllers(hub, "pull");
            value_of(&mut hub.deployments).remove(0);
            grant(hub);
        }),
        ("", |hub| {
            remove_plugin_from_release(hub);
            remove_named(&mut hub.policies, "sources");
            remove_named(&mut hub.bindings, "sources");
        }),
    ]);
    let not_added = problems_after(remove_plugin_from_release);
    assert!(not_added.contains(&"plugin-sidecar-missing"), "{not_added:?}");
    let nothing = problems_after(remove_plugin);
    assert!(nothing.contains(&"plugin-sidecar-missing"), "{nothing:?}");
}

#[test]
fn finds_applications_with_errors() {
    let table = "
        rpc error: shop: app path does not exist => applications-source
        failed exit status 1: error: no target cluster => applications-setting
        failed exit status 1: error: a.yaml:1: it has no kind => applications-manifests
        failed exit status 1: error: the policy has no entry for project a => applications-policy
        connection refused => applications-error
        could not find cmp-server plugin with name \"argocd-ocm-cpm\" supporting the given repository => applications-plugin-name
        Failed to load target state: could not find plugin supporting the given repository => socket-not-found";
    for (message, expected) in testing::rows(table) {
        assert_eq!(
            problems_after(|hub| add_error(hub, "ComparisonError", message)),
            [expected]
        );
    }
    check(&[
        ("applications-destination", |hub| {
            add_error(hub, "InvalidSpecError", "there are no clusters with this name: eu1");
        }),
        ("applications-cluster", |hub| {
            application(hub).targets = names(&["nowhere"]);
        }),
        ("", |hub| application(hub).targets = names(&["eu1"])),
        ("applications-not-synced", |hub| fail_sync(hub, "denied")),
        ("works-refused-for-size", |hub| {
            fail_sync(
                hub,
                "the size of manifests is 600103 bytes which exceeds the 512000 limit",
            );
        }),
        ("works-of-several-sources", |hub| {
            application(hub).sources_share_works = true;
        }),
        ("works-of-several-argo-cds", |hub| {
            hub.with_works_of_another = names(&["argocd/shop and gitops/shop"]);
        }),
    ]);
}

/// Adds a set of that age that OCM has not processed.
fn add_idle_set(hub: &mut HubState, age: i64) {
    value_of(&mut hub.sets).push(ReplicaSet {
        qualified_name: "argocd/shop".to_owned(),
        created: Some(ago(age)),
        ..ReplicaSet::default()
    });
}

/// Sets the mode of a feature gate in the ClusterManager.
fn set_gate(hub: &mut HubState, feature: &str, mode: &str) {
    let gates = json!([{"feature": feature, "mode": mode}]);
    hub.cluster_managers = Lookup::Found(vec![json!({"spec": {"workConfiguration": {"featureGates": gates}}})]);
}

#[test]
fn finds_problems_of_ocm() {
    check(&[
        ("ocm-api-missing ocm-api-missing", |hub| hub.apis.clear()),
        ("", |hub| withhold(hub, &WORK_SETS)),
        ("ocm-api-missing", |hub| {
            application(hub).placement = true;
            withhold(hub, &WORK_SETS);
        }),
        ("ocm-without-condition-rules", |hub| {
            hub.work_crd = Lookup::Found(json!({}));
        }),
        ("ocm-without-rollouts", |hub| {
            add_idle_set(hub, 10);
            let versions = &mut value_of(&mut hub.work_crd)["spec"]["versions"];
            let spec = &mut versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
            spec["manifestConfigs"]["items"]["properties"] = json!({"conditionRules": {}});
        }),
        // Reported only after the grace period.
        ("", |hub| add_idle_set(hub, 10)),
        ("ocm-sets-idle", |hub| add_idle_set(hub, 100)),
        ("ocm-gate-off", |hub| {
            add_idle_set(hub, 100);
            set_gate(hub, "ManifestWorkReplicaSet", "Disable");
        }),
        ("ocm-sets-idle", |hub| {
            add_idle_set(hub, 100);
            set_gate(hub, "ManifestWorkReplicaSet", "Enable");
        }),
    ]);
}

#[test]
fn finds_problems_of_the_plugin() {
    check(&[
        ("plugin-config-missing", |hub| hub.plugin = Lookup::NotFound),
        ("plugin-config-differs", |hub| {
            hub.plugin = Lookup::Found(json!({"data": {"plugin.yaml": "kind: ConfigManagementPlugin"}}));
        }),
        // Comments do not count.
        ("", |hub| {
            let text = format!("# ours\n{}", embedded::text("plugin.yaml"));
            hub.plugin = Lookup::Found(json!({"data": {"plugin.yaml": text}}));
        }),
        ("plugin-sidecar-missing", |hub| *sidecar(hub) = json!({"name": "other"})),
        ("plugin-mount-missing", |hub| sidecar(hub)["volumeMounts"] = json!([])),
        // A folder of a file is mounted.
        ("", |hub| {
            let folders = ["/home/argocd/cmp-server/", "/var/run/argocd", "/tmp"];
            sidecar(hub)["volumeMounts"] = folders.map(|path| json!({"mountPath": path})).as_slice().into();
        }),
        ("plugin-memory-unlimited", |hub| {
            sidecar(hub)["resources"] = json!({"limits": {"cpu": "1"}});
        }),
        ("plugin-without-policy", |hub| sidecar(hub)["env"] = json!([])),
        ("plugin-version-differs", |hub| sidecar(hub)["image"] = json!("x:9.9.9")),
        ("plugin-version-differs", |hub| {
            sidecar(hub)["image"] = json!(concat!("x:", env!("CARGO_PKG_VERSION"), "0"));
        }),
    ]);
}

#[test]
fn finds_problems_of_the_plugins_pods() {
    check(&[
        ("socket-no-pods", |hub| {
            value_of(&mut hub.pods)[0]["metadata"]["labels"] = json!({});
        }),
        ("socket-pods-without-plugin", |hub| {
            value_of(&mut hub.pods)[0]["spec"]["containers"] = json!([]);
        }),
        ("socket-not-ready", |hub| {
            value_of(&mut hub.pods)[0]["status"] = json!({});
        }),
        ("socket-restarts", |hub| {
            value_of(&mut hub.pods)[0]["status"]["containerStatuses"][0]["restartCount"] = json!(9);
        }),
        ("", |hub| hub.unconfined = Lookup::Found(BTreeMap::new())),
        ("confinement-missing", |hub| {
            let pods = ["server-1", "server-2"].map(|pod| (pod.to_owned(), "the network".to_owned()));
            hub.unconfined = Lookup::Found(pods.into());
        }),
    ]);
}

#[test]
fn finds_nodes_whose_kernels_may_lack_landlock() {
    let node = |name: &str, info: Value| {
        HubNode::from_object(&json!({"metadata": {"name": name}, "status": {"nodeInfo": info}}))
    };
    let linux =
        |system: &str, kernel: &str| json!({"operatingSystem": "linux", "osImage": system, "kernelVersion": kernel});
    let new = node("a", linux("Ubuntu 22.04.5 LTS", "5.15.0-1053-aws"));
    let (old, unknown) = ("confinement-old-kernels", "confinement-unknown-kernels");
    for (other, expected) in [
        (linux("Debian GNU/Linux 12 (bookworm)", "6.1.0-18-amd64"), ""),
        (linux("Bottlerocket OS 1.44.0 (aws-k8s-1.33)", "5.13"), ""),
        (json!({"operatingSystem": "windows", "kernelVersion": "10.0.1"}), ""),
        (Value::Null, ""),
        (linux("Red Hat Enterprise Linux 8.10", "4.18.0-553.el8_10.x86_64"), old),
        (linux("Ubuntu 20.04.6 LTS", "5.4.0-216-generic"), old),
        (linux("CoreOS 418.94", "5.14.0-427.50.1.el9_4.x86_64"), unknown),
        (linux("Talos (v1.11.0)", "6.12.43-talos"), unknown),
        (linux("", ""), unknown),
    ] {
        let nodes = Lookup::Found(vec![new.clone(), node("b", other.clone())]);
        assert_eq!(problems_after(|hub| hub.nodes = nodes).join(" "), expected, "{other}");
    }
    let lines: Vec<_> = about_nodes(&[new]).iter().map(Finding::line).collect();
    let kernels = "1 node with Landlock in the kernel, which confines helm and kustomize: Linux 5.15.0-1053-aws";
    assert_eq!(lines, [kernels]);
}

#[test]
fn finds_problems_of_argocd_cm() {
    const HEALTH: &str = "resource.customizations.health.work.open-cluster-management.io_ManifestWork";
    check(&[
        ("argocd-cm-health-missing", |hub| {
            argocd_cm(hub).as_object_mut().expect("data").remove(HEALTH);
        }),
        ("argocd-cm-health-differs", |hub| {
            argocd_cm(hub)[HEALTH] = json!("return {}");
        }),
        ("argocd-cm-tracks-by-label", |hub| {
            argocd_cm(hub)["application.resourceTrackingMethod"] = json!("label");
        }),
    ]);
    for (key, filter, expected) in [
        (
            "exclusions",
            "- apiGroups: ['*.open-cluster-management.io']",
            "argocd-cm-hides",
        ),
        ("exclusions", "- kinds: [ManifestWork]", "argocd-cm-hides"),
        ("exclusions", "- clusters: ['*']", "argocd-cm-hides"),
        ("exclusions", "", ""),
        ("exclusions", "- kinds: [Event]", ""),
        ("exclusions", "- clusters: [https://10.0.0.1]", ""),
        ("exclusions", "no list", ""),
        ("inclusions", "- apiGroups: [apps]", "argocd-cm-hides"),
        ("inclusions", "- apiGroups: ['work.*']", ""),
        ("inclusions", "- kinds: ['*']", ""),
        ("inclusions", "- kinds: ['Manifest*']", "argocd-cm-hides"),
        (
            "selectors",
            "- {kinds: [ManifestWork], selector: team=a}",
            "argocd-cm-selects",
        ),
        ("selectors", "- {kinds: [Pod], selector: team=a}", ""),
        ("selectors", "- {selector: ' '}", ""),
    ] {
        let ids = problems_after(|hub| argocd_cm(hub)[format!("resource.{key}")] = json!(filter));
        assert_eq!(ids.join(" "), expected, "{key}: {filter}");
    }
    for (rules, expected) in [
        ("", "argocd-cm-health-without-rule"),
        ("Widget.example.com: Healthy .status.phase=Ready", ""),
    ] {
        let ids = problems_after(|hub| {
            for kind in [
                "example.com_Widget",
                "example.com_Unused",
                "cert-manager.io_Certificate",
            ] {
                argocd_cm(hub)[format!("resource.customizations.health.{kind}")] = json!("return {}");
            }
            let objects = ["Widget.example.com shop/a", "Certificate.cert-manager.io shop/a"];
            first_work(hub).objects = objects.map(Box::from).into();
            hub.health_rules = Lookup::Found(json!({"data": {"health.txt": rules}}));
        });
        assert_eq!(ids.join(" "), expected);
    }
}

/// Sets the kind that the AppProject permits, or refuses.
fn set_kind(hub: &mut HubState, is_permitted: bool, group: &str, kind: &str) {
    let kinds = vec![(group.to_owned(), kind.to_owned())];
    let project = if is_permitted {
        Project {
            allowed: Some(kinds),
            ..Project::default()
        }
    } else {
        Project {
            refused: kinds,
            ..Project::default()
        }
    };
    hub.projects = Lookup::Found([("managed-clusters".to_owned(), project)].into());
}

#[test]
fn finds_problems_of_projects() {
    check(&[
        ("projects-refuse-works", |hub| set_kind(hub, true, "apps", "*")),
        ("", |hub| {
            set_kind(hub, true, "work.open-cluster-management.io", "ManifestWork");
        }),
        ("", |hub| set_kind(hub, true, "*", "*")),
        ("projects-refuse-works", |hub| set_kind(hub, false, "*", "ManifestWork")),
        ("projects-missing", |hub| value_of(&mut hub.projects).clear()),
        ("", |hub| value_of(&mut hub.applications).clear()),
    ]);
}

#[test]
fn finds_problems_of_the_controller() {
    check(&[
        ("controller-missing", |hub| {
            value_of(&mut hub.deployments).pop();
            grant(hub);
        }),
        ("controller-unknown-controllers", |hub| enable_controllers(hub, "push")),
        ("controller-lease-missing", |hub| value_of(&mut hub.leases).clear()),
        ("controller-lease-not-renewed", |hub| {
            value_of(&mut hub.leases)[0]["spec"]["renewTime"] = json!(ago(200).to_string());
        }),
        ("controller-not-ready", |hub| {
            value_of(&mut hub.deployments)[1]["status"] = json!({"readyReplicas": 0});
        }),
        ("controller-some-not-ready", |hub| {
            value_of(&mut hub.deployments)[1]["status"] = json!({"readyReplicas": 1});
        }),
        ("controller-no-pods", |hub| {
            value_of(&mut hub.pods).pop();
        }),
        ("controller-version-differs", |hub| {
            containers(hub, "argocd-ocm-cmp-controller")[0]["image"] = json!("x:9.9");
        }),
        ("controller-crd-missing", |hub| {
            enable_controllers(hub, "gitopscluster");
            withhold(hub, &GITOPS_CLUSTERS);
        }),
        ("controller-crd-missing", |hub| {
            enable_controllers(hub, "application-set-report");
            withhold(hub, &REPORTS);
        }),
        ("", |hub| {
            enable_controllers(hub, "application-status");
            withhold(hub, &REPORTS);
        }),
    ]);
}

#[test]
fn finds_missing_permissions() {
    let without = |which: fn(&Permission) -> bool| {
        let mut hub = healthy_hub();
        enable_controllers(&mut hub, "*");
        hub.management = Lookup::Found(json!({}));
        grant(&mut hub);
        for (permission, is_granted) in value_of(&mut hub.permissions) {
            *is_granted = !which(permission);
        }
        let findings = examine(&hub, now());
        let errors = findings
            .iter()
            .filter(|finding| finding.message.level == Severity::Error);
        errors.map(Finding::line).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(without(|_| false), "");
    let lines = [
        without(|permission| permission.resource == "events"),
        without(|permission| permission.resource == "manifestworks" && permission.verb == "delete"),
        without(|_| true),
    ];
    insta::assert_snapshot!(lines.join("\n\n"));
}

#[test]
fn execute_as_is_checked_only_where_needed() {
    const DEPLOYER: &str = "system:serviceaccount:shop:deployer";
    let rows: [(Option<&str>, Change); 5] = [
        (None, |_| ()),
        (Some(DEPLOYER), |hub| first_work(hub).executor = Some(DEPLOYER.into())),
        (None, |hub| {
            first_work(hub).executor = Some(DEPLOYER.into());
            first_work(hub).application = None;
        }),
        (None, |hub| {
            first_work(hub).executor = Some(DEPLOYER.into());
            value_of(&mut hub.config)["data"]["application.sync.impersonation.enabled"] = "true".into();
        }),
        (Some("system:serviceaccount::klusterlet-work-sa"), |hub| {
            set_gate(hub, "NilExecutorValidating", "Enable");
        }),
    ];
    for (expected, change) in rows {
        let mut hub = healthy_hub();
        first_work(&mut hub).application = Some("shop".into());
        change(&mut hub);
        let permissions = required_permissions(&hub).into_iter();
        let asked: Vec<_> = permissions
            .filter(|permission| permission.verb == "execute-as")
            .map(|permission| (permission.name, permission.namespace))
            .collect();
        // An administrator may have named the executor, and bound the role on the cluster only.
        let expected = expected.map(|name| (name.to_owned(), "eu1".to_owned()));
        assert_eq!(asked, Vec::from_iter(expected));
    }
}

#[test]
fn finds_problems_of_clusters() {
    for (name, joined, available, expected) in [
        ("eu1", false, None, "clusters-not-joined"),
        ("eu1", true, None, "clusters-silent"),
        ("eu1", true, Some(false), "clusters-unwell"),
        ("us1", false, None, "clusters-idle"),
        ("us1", true, None, "clusters-idle"),
        ("us1", true, Some(false), "clusters-idle"),
    ] {
        let cluster = DiagnosedCluster {
            accepted: joined,
            joined,
            available,
            ..DiagnosedCluster::default()
        };
        let ids = problems_after(|hub| {
            value_of(&mut hub.clusters).insert(name.to_owned(), cluster);
        });
        assert_eq!(ids, [expected]);
    }
    check(&[
        ("clusters-unknown", |hub| {
            value_of(&mut hub.works).push(work("ap1", "shop"));
        }),
        ("clusters-without-work-agent", |hub| {
            first_work(hub).created = Some(ago(100));
            first_work(hub).has_status = false;
        }),
        // Reported only after the grace period.
        ("", |hub| {
            first_work(hub).created = Some(ago(10));
            first_work(hub).has_status = false;
        }),
        ("clusters-with-old-work-agent", |hub| {
            first_work(hub).of_old_agent = true;
        }),
        // One work with a status proves that the agent runs.
        ("", |hub| {
            first_work(hub).has_status = false;
            value_of(&mut hub.works).push(work("eu1", "other"));
        }),
        ("clusters-none", |hub| {
            value_of(&mut hub.clusters).clear();
            value_of(&mut hub.works).clear();
        }),
        // It usually takes seconds.
        ("", |hub| first_work(hub).outstanding_since = Some(ago(100))),
        ("clusters-with-late-work-agent", |hub| {
            first_work(hub).outstanding_since = Some(ago(130));
        }),
        // One reason is enough.
        ("clusters-silent", |hub| {
            first_work(hub).outstanding_since = Some(ago(130));
            value_of(&mut hub.clusters)
                .get_mut("eu1")
                .expect("it is registered")
                .available = None;
        }),
        ("clusters-with-wrong-clock", |hub| {
            let cluster = value_of(&mut hub.clusters).get_mut("eu1").expect("it is registered");
            (cluster.available, cluster.has_wrong_clock) = (None, true);
        }),
    ]);
}

/// Adds works that ask for this number of watches each.
fn add_watches(hub: &mut HubState, works: usize, each: usize) {
    let watches = |work: usize| (0..each).map(move |at| format!("deployments.apps/{work}-{at}").into_boxed_str());
    value_of(&mut hub.works).extend((0..works).map(|number| HubWork {
        watched: watches(number).collect(),
        ..work("eu1", &format!("w{number}"))
    }));
}

#[test]
fn finds_problems_of_works() {
    let table = "
        not allowed to apply the resource  configmaps, executor config => works-refused-by-executor
        secrets \"a\" is forbidden: User \"agent\" cannot get resource => works-refused-by-rights
        the server doesn't have a resource type \"Shop\" => works-unknown-kind
        the server could not find the requested resource: if the kind is cluster-scoped, set cluster-scoped-kinds to A.b => works-other-scope
        namespaces \"shop\" not found => works-without-namespace
        spec.selector: field is immutable => works-not-applied
        pods \"a\" is forbidden: exceeded quota: few => works-not-applied";
    for (message, expected) in testing::rows(table) {
        let message = format!("Failed to apply manifest: {message}").into();
        assert_eq!(
            problems_after(|hub| first_work(hub).refused = Some(message)),
            [expected]
        );
    }
    check(&[
        ("works-other-resource-name", |hub| {
            first_work(hub)
                .other_resource_names
                .insert("Tank.example.com=tanken".into());
        }),
        ("", |hub| first_work(hub).size = 512_000),
        ("works-over-limit", |hub| first_work(hub).size = 512_001),
        ("", |hub| add_watches(hub, 2, 25)),
        ("works-too-many-watches", |hub| add_watches(hub, 2, 26)),
    ]);
}

/// Enables argocd-agent, which has this add-on on managed clusters.
fn enable_agents(hub: &mut HubState, addons: &[(&str, bool)]) {
    enable_controllers(hub, "argocd-agent");
    hub.management = Lookup::Found(json!({}));
    let addons = addons.iter();
    let addons = addons.map(|(name, is_available)| ((*name).to_owned(), *is_available));
    hub.addons = Lookup::Found(addons.collect());
}

/// Returns the Deployment of our principal.
fn principal() -> Value {
    let shipped = shipped("deploy/deploy_principal.yaml");
    let principal = shipped.into_iter().find(|value| value["kind"] == "Deployment");
    principal.expect("the principal")
}

/// Enables argocd-agent, with our principal.
fn add_principal(hub: &mut HubState) -> &mut Value {
    enable_agents(hub, &[("eu1", true)]);
    let deployments = value_of(&mut hub.deployments);
    deployments.push(principal());
    deployments.last_mut().expect("the principal")
}

fn remove_limits_of_principal(hub: &mut HubState) {
    for name in ["principal-applications", "principal-projects"] {
        remove_named(&mut hub.policies, name);
        remove_named(&mut hub.bindings, name);
    }
}

#[test]
fn finds_problems_of_argocd_agent() {
    check(&[
        ("", |hub| enable_agents(hub, &[("eu1", true)])),
        ("argocd-agent-missing", |hub| {
            enable_agents(hub, &[]);
            hub.management = Lookup::NotFound;
        }),
        ("argocd-agent-not-available", |hub| {
            enable_agents(hub, &[("eu1", true), ("us1", false)]);
        }),
        ("", |hub| {
            enable_agents(hub, &[("eu1", true)]);
            hub.other_versions = Lookup::Found(BTreeSet::new());
        }),
        ("argocd-agent-other-version", |hub| {
            enable_agents(hub, &[("eu1", true)]);
            hub.other_versions = Lookup::Found(names(&["argocd/fleet"]));
        }),
        // Ours has the right settings.
        ("", |hub| {
            add_principal(hub);
            hub.cmd_params = Lookup::Found(json!({}));
        }),
        ("argocd-agent-redis-direct", |hub| {
            add_principal(hub)["status"] = json!({"readyReplicas": 1});
            hub.cmd_params = Lookup::Found(json!({}));
        }),
        ("argocd-agent-principal-setting argocd-agent-principal-setting", |hub| {
            add_principal(hub)["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["principal"]);
        }),
        ("admission-missing", |hub| {
            add_principal(hub);
            remove_limits_of_principal(hub);
        }),
        // Its limits are for a principal that maps by destination.
        ("argocd-agent-principal-setting", |hub| {
            let args = &mut add_principal(hub)["spec"]["template"]["spec"]["containers"][0]["args"];
            let args = args.as_array_mut().expect("a list");
            args.retain(|argument| argument != "--destination-based-mapping");
            remove_limits_of_principal(hub);
        }),
        ("", |hub| {
            enable_agents(hub, &[("eu1", true)]);
            remove_limits_of_principal(hub);
        }),
    ]);
}

#[test]
fn findings_of_a_large_fleet_are_short() {
    let mut hub = healthy_hub();
    let refused = |at: usize| HubWork {
        refused: Some(format!("namespaces \"n{at}\" not found").into()),
        ..work(&format!("c{}", at / 5), &format!("w{at}"))
    };
    value_of(&mut hub.works).extend((0..10_000).map(refused));
    let findings = examine(&hub, now());
    assert_eq!(problem_ids(&findings), ["clusters-unknown", "works-without-namespace"]);
    assert!(
        findings.iter().all(|finding| finding.line().len() < 500),
        "{findings:#?}"
    );
}

#[test]
fn every_message_has_a_unique_id_and_remediation() {
    let mut ids = BTreeSet::new();
    for message in messages() {
        assert!(ids.insert(message.id), "{}", message.id);
        assert_eq!(
            message.remediation.is_empty(),
            message.level == Severity::Ok,
            "{}",
            message.id
        );
        let braces = |text: &str| text.matches('{').count() == text.matches('}').count();
        assert!(braces(message.text) && braces(message.remediation), "{}", message.id);
    }
}

#[test]
fn finds_placements_that_select_no_cluster() {
    let mut hub = healthy_hub();
    value_of(&mut hub.sets).push(ReplicaSet {
        qualified_name: "fleet/shop-x".to_owned(),
        created: Some(ago(3600)),
        has_status: true,
        empty_placements: vec!["fleet/eu".to_owned()],
        ..ReplicaSet::default()
    });
    let why = "No valid ManagedClusterSetBindings found (NoManagedClusterSetBindings)".to_owned();
    hub.unsatisfied_placements = Lookup::Found([("fleet/eu".to_owned(), why)].into());
    let findings = examine(&hub, now());
    assert_eq!(problem_ids(&findings), ["works-without-clusters"]);
    let text = "no managed cluster is selected for 1 work of a Placement: fleet/shop-x: Placement fleet/eu: No valid \
                ManagedClusterSetBindings found (NoManagedClusterSetBindings)";
    assert!(findings.iter().any(|finding| finding.text == text), "{findings:?}");
    hub.unsatisfied_placements = Lookup::Refused("no".to_owned());
    assert_eq!(
        problem_ids(&examine(&hub, now())),
        ["works-without-clusters"],
        "the reason is optional"
    );
}

#[test]
fn finds_objects_of_several_applications() {
    let with = |application: &str, cluster: &str, name: &str| HubWork {
        application: Some(application.into()),
        objects: vec!["Deployment.apps shop/web".into()],
        ..work(cluster, name)
    };
    let findings = |works: Vec<HubWork>| {
        let mut hub = healthy_hub();
        hub.works = Lookup::Found(works);
        examine(&hub, now())
    };
    let apart = findings(vec![
        with("a", "eu1", "a"),
        with("b", "us1", "b"),
        with("a", "eu1", "a-2"),
    ]);
    assert_eq!(problem_ids(&apart), [""; 0]);
    let both = findings(vec![with("a", "eu1", "a"), with("b", "eu1", "b")]);
    assert_eq!(problem_ids(&both), ["works-shared-objects"]);
    let text =
        "several Applications deliver 1 object to the same managed cluster: Deployment.apps shop/web on eu1 (a and b)";
    assert!(both.iter().any(|finding| finding.text == text), "{both:?}");
}

/// Returns a hub with the view into the clusters, without problems.
fn hub_with_live() -> HubState {
    let mut hub = healthy_hub();
    let identity = live::identity::create("argocd", now()).expect("an identity");
    let certificate = live::identity::certificate(&identity).expect("a certificate");
    argocd_cm(&mut hub)["extension.config.live"] = "services: []".into();
    let deployments = value_of(&mut hub.deployments);
    let volumes = json!([{"name": "argocd-ocm-cmp-live", "configMap": {"name": "argocd-ocm-cmp-live"}}]);
    deployments.push(json!({
        "metadata": {"name": "argocd-server"}, "spec": {"template": {"spec": {"containers": [], "volumes": volumes}}},
    }));
    deployments.push(json!({"metadata": {"name": "argocd-ocm-cmp-live"}, "status": {"readyReplicas": 1}}));
    first_work(&mut hub).application = Some("argocd/shop".into());
    hub.live = Some(LiveState {
        has_token: Lookup::Found(true),
        certificate: Lookup::Found(json!({"data": {"tls.crt": certificate}})),
        authority: Lookup::Found(json!({"data": {"ca.crt": certificate}})),
        issued_authority: Lookup::Found(certificate),
        rbac: Lookup::Found(json!({"data": {"policy.csv": "p, role:team, extensions, invoke, live, allow"}})),
        addons: Lookup::Found([("eu1".to_owned(), true)].into()),
        permitting: ["eu1".to_owned()].into(),
    });
    hub
}

/// Returns the view into the clusters.
fn live_of(hub: &mut HubState) -> &mut LiveState {
    hub.live.as_mut().expect("the view")
}

#[test]
fn every_broken_hop_of_the_view_is_named() {
    let ids = |hub: &HubState, now| -> Vec<&str> {
        let findings = examine(hub, now).into_iter();
        findings
            .filter(|finding| finding.check == "live")
            .map(|finding| finding.message.id)
            .collect()
    };
    assert_eq!(ids(&healthy_hub(), now()), [""; 0], "it is not installed");
    let rows: [Row; 14] = [
        ("live", |_| ()),
        ("live-extension-missing", |hub| *argocd_cm(hub) = json!({})),
        ("live-deployment-missing", |hub| {
            value_of(&mut hub.deployments).truncate(3);
        }),
        ("live-not-ready", |hub| {
            value_of(&mut hub.deployments)[3]["status"] = json!({});
        }),
        ("live-token-missing", |hub| {
            live_of(hub).has_token = Lookup::Found(false);
        }),
        ("live-not-trusted", |hub| {
            live_of(hub).certificate = Lookup::Found(json!({}));
        }),
        ("live-not-trusted", |hub| {
            value_of(&mut hub.deployments)[2]["spec"]["template"]["spec"]["volumes"] = json!([]);
        }),
        ("live-not-permitted", |hub| {
            let policy = "p, role:team, extensions, invoke, live, deny\n# p, a, extensions, invoke, live, allow";
            live_of(hub).rbac = Lookup::Found(json!({"data": {"policy.csv": policy}}));
        }),
        ("live-authority-missing", |hub| {
            live_of(hub).authority = Lookup::NotFound;
        }),
        ("live-authority-differs", |hub| {
            live_of(hub).issued_authority = Lookup::Found("another".to_owned());
        }),
        ("live-cluster-proxy-missing", |hub| {
            value_of(&mut live_of(hub).addons).clear();
        }),
        ("live-cluster-proxy-not-available", |hub| {
            live_of(hub).addons = Lookup::Found([("eu1".to_owned(), false)].into());
        }),
        ("live-permissions-missing", |hub| live_of(hub).permitting.clear()),
        ("cannot-read", |hub| live_of(hub).has_token = refused()),
    ];
    for (id, change) in rows {
        let mut hub = hub_with_live();
        change(&mut hub);
        assert_eq!(ids(&hub, now()), [id]);
    }
    let in_eleven_years = now() + SignedDuration::from_hours(11 * 365 * 24);
    assert!(ids(&hub_with_live(), in_eleven_years).contains(&"live-authority-expired"));
}

/// Makes the Application leave ignored fields as they are on the hub; `key` of argocd-cm names the kind with these.
fn ignore_workload(hub: &mut HubState, key: &str) {
    application(hub).respects_ignored = true;
    argocd_cm(hub)[format!("resource.customizations.ignoreDifferences.{key}")] =
        json!("jqPathExpressions: [.spec.workload.manifests[].data]");
}

#[test]
fn finds_applications_with_harmful_sync_options() {
    check(&[
        ("applications-prune-early", |hub| application(hub).skips_synced = true),
        ("applications-freeze-works", |hub| {
            application(hub).ignores_works = true;
            application(hub).respects_ignored = true;
        }),
        ("applications-freeze-works", |hub| ignore_workload(hub, "all")),
        ("applications-freeze-works", |hub| {
            ignore_workload(hub, "work.open-cluster-management.io_ManifestWork");
        }),
        ("", |hub| ignore_workload(hub, "apps_Deployment")),
    ]);
}

/// Adds Applications that every commit to one repository renders.
fn add_applications(hub: &mut HubState, number: usize) {
    let first = application(hub).clone();
    let all = (0..number).map(|at| DiagnosedApplication {
        qualified_name: format!("argocd/shop-{at}"),
        rendered_by_every_commit: names(&["https://git.example.com/all.git"]),
        ..first.clone()
    });
    hub.applications = Lookup::Found(all.collect());
}

#[test]
fn finds_repositories_whose_commits_render_many_applications() {
    check(&[
        ("", |hub| add_applications(hub, 19)),
        ("applications-render-every-commit", |hub| add_applications(hub, 20)),
    ]);
}
