use super::{CHECKS, REFUSED};
use crate::cli::ListFormat;
use crate::diagnosis::{ApplicationCondition, DiagnosedApplication, DiagnosedCluster, SyncOperation};
use crate::doctor::shipped;
use crate::doctor::shipped::objects;
use crate::doctor::{
    ApplyError, CheckResult, Finding, FindingList, HubNode, HubState, HubWork, LiveState, Lookup, Message, Permission,
    Project, ReplicaSet, Severity, about_nodes, agent_policy, examine, overall_result, required_permissions,
};
use crate::embedded;
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
    let mut deployment = objects(file).remove(0);
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
    let mut repo_server = deployment(embedded::DEPLOY_CMP, &labels(server));
    let containers = &mut repo_server["spec"]["template"]["spec"]["containers"];
    containers[0]["env"] =
        objects(embedded::DEPLOY_POLICY)[0]["spec"]["template"]["spec"]["containers"][0]["env"].clone();
    let argocd = json!({"name": server, "image": "quay.io/argoproj/argocd:v3.2.6"});
    containers.as_array_mut().expect("containers").insert(0, argocd);
    let mut deployed = deployment(shipped::CONTROLLER.text, &labels(controller));
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
        "manifestConfigs": {"items": {"properties": {"conditionRules": {}}}}
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
        config: Lookup::Found(objects(embedded::ARGOCD_CM).remove(0)),
        deployments: Lookup::Found(vec![repo_server, deployed]),
        stateful_sets: Lookup::Found(vec![application_controller]),
        pods: Lookup::Found(vec![
            pod("server-1", &labels(server), "argocd-ocm-cmp"),
            pod("controller-1", &labels(controller), "controller"),
        ]),
        plugin: Lookup::Found(objects(include_str!("../../../cm_plugin.yaml")).remove(0)),
        leases: Lookup::Found(vec![lease]),
        apis: apis.into_iter().map(|(api, all)| (api, Lookup::Found(all))).collect(),
        work_crd: Lookup::Found(rules),
        applications: Lookup::Found(vec![application]),
        projects: Lookup::Found([("managed-clusters".to_owned(), Project::default())].into()),
        clusters: Lookup::Found(["eu1", "us1"].map(|name| (name.to_owned(), cluster)).into()),
        works: Lookup::Found(vec![work("eu1", "shop")]),
        sets: Lookup::Found(Vec::new()),
        agent_admission: Lookup::Found(objects(embedded::AGENT_ADMISSION).remove(1)),
        ..HubState::default()
    };
    grant(&mut hub_state);
    hub_state
}

/// Grants all permissions.
fn grant(hub_state: &mut HubState) {
    hub_state.permissions = Lookup::Found(
        required_permissions(hub_state)
            .into_iter()
            .map(|permission| (permission, true))
            .collect(),
    );
}

fn value_of<T>(lookup: &mut Lookup<T>) -> &mut T {
    match lookup {
        Lookup::Found(it) => it,
        _ => panic!("the object does not exist"),
    }
}

/// Returns the Pod template of a Deployment.
fn template<'s>(hub_state: &'s mut HubState, name: &str) -> &'s mut Value {
    let mut all = value_of(&mut hub_state.deployments).iter_mut();
    let deployment = all
        .find(|value| value["metadata"]["name"] == name)
        .expect("the Deployment");
    &mut deployment["spec"]["template"]["spec"]
}

/// Sets the enabled controllers.
fn enable_controllers(hub_state: &mut HubState, controllers: &str) {
    let container = &mut template(hub_state, "argocd-ocm-cmp-controller")["containers"][0];
    container["env"] = json!([{"name": "ARGOCD_OCM_CMP_CONTROLLERS", "value": controllers}]);
}

/// Adds an error of Argo CD to the Application.
fn has_error(hub_state: &mut HubState, kind: &str, message: &str) {
    value_of(&mut hub_state.applications)[0]
        .conditions
        .push(ApplicationCondition {
            kind: kind.to_owned(),
            message: message.to_owned(),
        });
}

fn withhold(hub_state: &mut HubState, resource: &Resource) {
    value_of(hub_state.apis.get_mut(&resource.api_version()).expect("the API")).remove(resource.plural);
}

/// Returns the ids of the findings after this change to a hub without problems.
fn problems_after(break_it: impl FnOnce(&mut HubState)) -> Vec<&'static str> {
    let mut hub_state = healthy_hub();
    break_it(&mut hub_state);
    problem_ids(&examine(&hub_state, now()))
}

fn problem_ids(findings: &[Finding]) -> Vec<&'static str> {
    let problems = findings.iter().filter(|finding| finding.message.level != Severity::Ok);
    problems.map(|finding| finding.message.id).collect()
}

fn messages() -> impl Iterator<Item = &'static Message> {
    let of_checks = CHECKS.iter().flat_map(|check| check.messages).copied();
    of_checks.chain([&REFUSED])
}

fn printed(findings: &[Finding], format: ListFormat) -> String {
    let colours = false;
    list::format_list(&FindingList { findings, colours }, format).expect("text")
}

#[test]
fn healthy_hub_has_no_errors() {
    let findings = examine(&healthy_hub(), now());
    assert_eq!(overall_result(&findings), CheckResult::Passed);
    insta::assert_snapshot!(printed(&findings, ListFormat::Table));
}

#[test]
fn errors_come_first_with_remediation() {
    let mut hub_state = healthy_hub();
    value_of(&mut hub_state.config)["data"] = json!({});
    hub_state.plugin = Lookup::NotFound;
    hub_state.pods = Lookup::Refused("pods is forbidden".to_owned());
    value_of(&mut hub_state.clusters).clear();
    let findings = examine(&hub_state, now());
    assert_eq!(overall_result(&findings), CheckResult::Failed);
    insta::assert_snapshot!(printed(&findings, ListFormat::Table));
    let text = printed(&findings, ListFormat::Json);
    let all: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&all["errors"], &all["warnings"]), (&json!(4), &json!(2)));
    let first = &all["findings"][0];
    assert_eq!(
        (&first["result"], &first["id"]),
        (&json!("error"), &json!("plugin-config-missing"))
    );
    let colours = true;
    let findings = &findings;
    let coloured = list::format_list(&FindingList { findings, colours }, ListFormat::Table).expect("a table");
    assert!(coloured.contains("\x1b[31merror\x1b[0m"), "{coloured}");
}

#[test]
fn forbidden_reads_are_findings() {
    let why = || "forbidden".to_owned();
    let refusals: [fn(&mut HubState, String); 14] = [
        |hub_state, why| hub_state.config = Lookup::Refused(why),
        |hub_state, why| hub_state.deployments = Lookup::Refused(why),
        |hub_state, why| hub_state.pods = Lookup::Refused(why),
        |hub_state, why| hub_state.plugin = Lookup::Refused(why),
        |hub_state, why| hub_state.settings = Lookup::Refused(why),
        |hub_state, why| hub_state.leases = Lookup::Refused(why),
        |hub_state, why| hub_state.work_crd = Lookup::Refused(why),
        |hub_state, why| hub_state.cluster_managers = Lookup::Refused(why),
        |hub_state, why| hub_state.applications = Lookup::Refused(why),
        |hub_state, why| hub_state.projects = Lookup::Refused(why),
        |hub_state, why| hub_state.clusters = Lookup::Refused(why),
        |hub_state, why| hub_state.works = Lookup::Refused(why),
        |hub_state, why| hub_state.sets = Lookup::Refused(why),
        |hub_state, why| hub_state.agent_admission = Lookup::Refused(why),
    ];
    for (at, refuse) in refusals.into_iter().enumerate() {
        let mut hub_state = healthy_hub();
        refuse(&mut hub_state, why());
        let findings = examine(&hub_state, now());
        assert_eq!(overall_result(&findings), CheckResult::Unknown, "{at}: {findings:#?}");
        assert!(
            problem_ids(&findings)
                .iter()
                .all(|problem_id| *problem_id == "cannot-read"),
            "{at}: {findings:#?}"
        );
    }
    assert_eq!(
        problems_after(|hub_state| hub_state.permissions = Lookup::Refused(why())),
        ["rights-not-asked"]
    );
}

#[test]
fn finds_agents_without_limits() {
    let with = |binding| problems_after(|hub_state| hub_state.agent_admission = binding);
    assert_eq!(with(Lookup::NotFound), ["agent-admission-missing"]);
    let audits = json!({"spec": {"validationActions": ["Audit", "Warn"]}});
    assert_eq!(with(Lookup::Found(audits)), ["agent-admission-not-enforced"]);
    let name = objects(embedded::AGENT_ADMISSION).remove(1)["metadata"]["name"].clone();
    assert_eq!(name, agent_policy("argocd"));
}

#[test]
fn finds_problems_of_argo_cd() {
    let image = |image: &'static str| {
        problems_after(|hub_state| template(hub_state, "argocd-repo-server")["containers"][0]["image"] = image.into())
    };
    assert_eq!(image("argocd:v2.3.1"), ["argo-cd-too-old"]);
    assert_eq!(image("argocd:v2.14.0"), ["argo-cd-old"]);
    assert_eq!(image("argocd:latest"), ["argo-cd-version-unknown"]);
    let arguments = |version: &str, arguments: Value| {
        problems_after(|hub_state| {
            let container = &mut template(hub_state, "argocd-repo-server")["containers"][0];
            container["image"] = format!("argocd:{version}").into();
            container["args"] = arguments;
        })
    };
    let without_tls = json!(["/usr/local/bin/argocd-repo-server", "--disable-tls"]);
    assert_eq!(
        arguments("v3.6.1", without_tls.clone()),
        ["argo-cd-repo-server-without-tls"]
    );
    assert!(arguments("v3.5.7", without_tls).is_empty());
    assert!(arguments("v3.6.1", json!(["--disable-tls", "--client-ca-path="])).is_empty());
    let gone = |argocd_namespaces: &[&str]| {
        problems_after(|hub_state| {
            hub_state.config = Lookup::NotFound;
            hub_state.argocd_namespaces = Lookup::Found(argocd_namespaces.iter().map(ToString::to_string).collect());
            hub_state.deployments = Lookup::Found(Vec::new());
            hub_state.permissions = Lookup::NotFound;
        })
    };
    assert_eq!(gone(&[]), ["argo-cd-nowhere"]);
    assert_eq!(
        gone(&["gitops"]),
        ["argo-cd-elsewhere"],
        "other parts of Argo CD are not reported"
    );
    let only_config = problems_after(|hub_state| {
        value_of(&mut hub_state.deployments).remove(0);
    });
    assert_eq!(only_config, ["argo-cd-without-repo-server"]);
    let by_operator = problems_after(|hub_state| {
        let server = &mut value_of(&mut hub_state.deployments)[0]["metadata"];
        server["name"] = json!("openshift-gitops-repo-server");
        server["labels"] = json!({"app.kubernetes.io/component": "repo-server", "app.kubernetes.io/part-of": "argocd"});
    });
    assert!(by_operator.is_empty(), "{by_operator:?}");
}

#[test]
fn hub_without_the_plugin_needs_none_for_the_pull_model() {
    let without_plugin = |hub_state: &mut HubState| {
        hub_state.plugin = Lookup::NotFound;
        hub_state.applications = Lookup::Found(Vec::new());
        value_of(&mut hub_state.config)["data"] = json!({});
        let containers = &mut template(hub_state, "argocd-repo-server")["containers"];
        containers
            .as_array_mut()
            .expect("containers")
            .retain(|container| container["name"] != "argocd-ocm-cmp");
    };
    let pull = problems_after(|hub_state| {
        without_plugin(hub_state);
        enable_controllers(hub_state, "application-status,pull");
        grant(hub_state);
    });
    assert_eq!(pull, [""; 0]);
    let no_repo_server = problems_after(|hub_state| {
        without_plugin(hub_state);
        enable_controllers(hub_state, "pull");
        value_of(&mut hub_state.deployments).remove(0);
        grant(hub_state);
    });
    assert_eq!(no_repo_server, [""; 0]);
    let nothing = problems_after(without_plugin);
    assert!(nothing.contains(&"plugin-sidecar-missing"), "{nothing:?}");
}

#[test]
fn finds_applications_with_errors() {
    let error = |message: &str| problems_after(|hub_state| has_error(hub_state, "ComparisonError", message));
    assert_eq!(
        error("rpc error: shop: app path does not exist"),
        ["applications-source"]
    );
    assert_eq!(
        error("failed exit status 1: error: no target cluster"),
        ["applications-setting"]
    );
    assert_eq!(
        error("failed exit status 1: error: a.yaml:1: it has no kind"),
        ["applications-manifests"]
    );
    assert_eq!(
        error("failed exit status 1: error: the policy has no entry for project a"),
        ["applications-policy"]
    );
    assert_eq!(error("connection refused"), ["applications-error"]);
    let named = "could not find cmp-server plugin with name \"argocd-ocm-cpm\" supporting the given repository";
    assert_eq!(error(named), ["applications-plugin-name"]);
    let invalid = "there are no clusters with this name: eu1";
    let destination = problems_after(|hub_state| has_error(hub_state, "InvalidSpecError", invalid));
    assert_eq!(destination, ["applications-destination"]);
    let target = |name: &str| {
        problems_after(|hub_state| {
            value_of(&mut hub_state.applications)[0].targets.insert(name.to_owned());
        })
    };
    assert_eq!(target("nowhere"), ["applications-cluster"]);
    assert!(target("eu1").is_empty());
    let failed = problems_after(|hub_state| {
        value_of(&mut hub_state.applications)[0].operation = Some(SyncOperation {
            phase: "Failed".to_owned(),
            message: "denied".to_owned(),
            failures: Vec::new(),
        });
    });
    assert_eq!(failed, ["applications-not-synced"]);
}

#[test]
fn finds_problems_of_ocm() {
    assert_eq!(
        problems_after(|hub_state| hub_state.apis.clear()),
        ["ocm-api-missing"; 2]
    );
    for (placement, expected) in [(false, &[][..]), (true, &["ocm-api-missing"])] {
        let ids = problems_after(|hub_state| {
            value_of(&mut hub_state.applications)[0].placement = placement;
            withhold(hub_state, &WORK_SETS);
        });
        assert_eq!(ids, expected);
    }
    assert_eq!(
        problems_after(|hub_state| hub_state.work_crd = Lookup::Found(json!({}))),
        ["ocm-without-condition-rules"]
    );
    let set = |created| ReplicaSet {
        qualified_name: "argocd/shop".to_owned(),
        created: Some(created),
        has_status: false,
        ..ReplicaSet::default()
    };
    assert!(
        problems_after(|hub_state| value_of(&mut hub_state.sets).push(set(ago(10)))).is_empty(),
        "reported only after the grace period"
    );
    assert_eq!(
        problems_after(|hub_state| value_of(&mut hub_state.sets).push(set(ago(100)))),
        ["ocm-sets-idle"]
    );
    let manager = |mode: &str| {
        let gates = json!([{"feature": "ManifestWorkReplicaSet", "mode": mode}]);
        Lookup::Found(vec![json!({"spec": {"workConfiguration": {"featureGates": gates}}})])
    };
    for (mode, expected) in [("Disable", "ocm-gate-off"), ("Enable", "ocm-sets-idle")] {
        let ids = problems_after(|hub_state| {
            value_of(&mut hub_state.sets).push(set(ago(100)));
            hub_state.cluster_managers = manager(mode);
        });
        assert_eq!(ids, [expected]);
    }
}

#[test]
fn finds_problems_of_the_plugin() {
    assert_eq!(
        problems_after(|hub_state| hub_state.plugin = Lookup::NotFound),
        ["plugin-config-missing"]
    );
    let other = json!({"data": {"plugin.yaml": "kind: ConfigManagementPlugin"}});
    assert_eq!(
        problems_after(|hub_state| hub_state.plugin = Lookup::Found(other)),
        ["plugin-config-differs"]
    );
    let same = json!({"data": {"plugin.yaml": format!("# ours\n{}", embedded::PLUGIN)}});
    assert!(
        problems_after(|hub_state| hub_state.plugin = Lookup::Found(same)).is_empty(),
        "comments do not count"
    );
    let sidecar = |change: fn(&mut Value)| {
        problems_after(|hub_state| change(&mut template(hub_state, "argocd-repo-server")["containers"]))
    };
    assert_eq!(
        sidecar(|all| all[1] = json!({"name": "other"})),
        ["plugin-sidecar-missing"]
    );
    assert_eq!(
        sidecar(|all| all[1]["volumeMounts"] = json!([])),
        ["plugin-mount-missing"]
    );
    assert_eq!(
        sidecar(|all| all[1]["resources"] = json!({"limits": {"cpu": "1"}})),
        ["plugin-memory-unlimited"]
    );
    assert_eq!(sidecar(|all| all[1]["env"] = json!([])), ["plugin-without-policy"]);
    assert_eq!(
        sidecar(|all| all[1]["image"] = json!("x:9.9.9")),
        ["plugin-version-differs"]
    );
    assert_eq!(
        sidecar(|all| all[1]["image"] = json!(concat!("x:", env!("CARGO_PKG_VERSION"), "0"))).len(),
        1
    );
    let folder =
        json!([{"mountPath": "/home/argocd/cmp-server/"}, {"mountPath": "/var/run/argocd"}, {"mountPath": "/tmp"}]);
    let in_a_folder =
        problems_after(|hub_state| template(hub_state, "argocd-repo-server")["containers"][1]["volumeMounts"] = folder);
    assert!(in_a_folder.is_empty(), "{in_a_folder:?}");
}

#[test]
fn finds_pods_without_confinement() {
    let reached = |pods: &[(&str, &str)]| {
        let pods = pods
            .iter()
            .map(|(pod, reached)| ((*pod).to_owned(), (*reached).to_owned()));
        let pods = Lookup::Found(pods.collect());
        problems_after(|hub_state| hub_state.unconfined = pods)
    };
    assert!(reached(&[]).is_empty());
    assert_eq!(
        reached(&[("server-1", "the network"), ("server-2", "the network")]),
        ["confinement-missing"]
    );
}

#[test]
fn finds_nodes_whose_kernels_may_lack_landlock() {
    let node = |name: &str, system: &str, kernel: &str| {
        let info = json!({"operatingSystem": "linux", "osImage": system, "kernelVersion": kernel});
        HubNode::from_object(&json!({"metadata": {"name": name}, "status": {"nodeInfo": info}}))
    };
    let windows = json!({"metadata": {"name": "w"}, "status": {"nodeInfo": {"operatingSystem": "windows", "kernelVersion": "10.0.1"}}});
    let new = node("a", "Ubuntu 22.04.5 LTS", "5.15.0-1053-aws");
    for (other, expected) in [
        (node("b", "Debian GNU/Linux 12 (bookworm)", "6.1.0-18-amd64"), &[][..]),
        (node("b", "Bottlerocket OS 1.44.0 (aws-k8s-1.33)", "5.13"), &[]),
        (HubNode::from_object(&windows), &[]),
        (HubNode::from_object(&json!({"metadata": {"name": "new"}})), &[]),
        (
            node("b", "Red Hat Enterprise Linux 8.10 (Ootpa)", "4.18.0-553.el8_10.x86_64"),
            &["confinement-old-kernels"],
        ),
        (
            node("b", "Ubuntu 20.04.6 LTS", "5.4.0-216-generic"),
            &["confinement-old-kernels"],
        ),
        (
            node(
                "b",
                "Red Hat Enterprise Linux CoreOS 418.94",
                "5.14.0-427.50.1.el9_4.x86_64",
            ),
            &["confinement-unknown-kernels"],
        ),
        (
            node("b", "Talos (v1.11.0)", "6.12.43-talos"),
            &["confinement-unknown-kernels"],
        ),
        (node("b", "", ""), &["confinement-unknown-kernels"]),
    ] {
        let nodes = Lookup::Found(vec![new.clone(), other.clone()]);
        assert_eq!(
            problems_after(|hub_state| hub_state.nodes = nodes),
            expected,
            "{other:?}"
        );
    }
    // Without permission, the other checks go on.
    let refused = Lookup::Refused("nodes is forbidden".to_owned());
    assert_eq!(problems_after(|hub_state| hub_state.nodes = refused), ["cannot-read"]);
    let lines: Vec<_> = about_nodes(&[new]).iter().map(Finding::line).collect();
    let kernels = "1 node with Landlock in the kernel, which confines helm and kustomize: Linux 5.15.0-1053-aws";
    assert_eq!(lines, [kernels]);
}

#[test]
fn finds_problems_of_the_plugins_pods() {
    let pod = |change: fn(&mut Value)| problems_after(|hub_state| change(&mut value_of(&mut hub_state.pods)[0]));
    assert_eq!(pod(|value| value["metadata"]["labels"] = json!({})), ["socket-no-pods"]);
    assert_eq!(
        pod(|value| value["spec"]["containers"] = json!([])),
        ["socket-pods-without-plugin"]
    );
    assert_eq!(pod(|value| value["status"] = json!({})), ["socket-not-ready"]);
    assert_eq!(
        pod(|value| value["status"]["containerStatuses"][0]["restartCount"] = json!(9)),
        ["socket-restarts"]
    );
    let error = "Failed to load target state: could not find plugin supporting the given repository";
    let lost = problems_after(|hub_state| has_error(hub_state, "ComparisonError", error));
    assert_eq!(lost, ["socket-not-found"]);
}

#[test]
fn finds_problems_of_argocd_cm() {
    let data = |key: &'static str, value: Value| {
        problems_after(
            |hub_state| match value_of(&mut hub_state.config)["data"].as_object_mut() {
                Some(data) if value.is_null() => drop(data.remove(key)),
                Some(data) => drop(data.insert(key.to_owned(), value)),
                None => panic!("no data"),
            },
        )
    };
    let health = "resource.customizations.health.work.open-cluster-management.io_ManifestWork";
    assert_eq!(data(health, Value::Null), ["argocd-cm-health-missing"]);
    assert_eq!(data(health, json!("return {}")), ["argocd-cm-health-differs"]);
    let with_widget = |rules: &str| {
        problems_after(|hub_state| {
            let data = &mut value_of(&mut hub_state.config)["data"];
            for kind in [
                "example.com_Widget",
                "example.com_Unused",
                "cert-manager.io_Certificate",
            ] {
                data[format!("resource.customizations.health.{kind}")] = json!("return {}");
            }
            let objects = ["Widget.example.com shop/a", "Certificate.cert-manager.io shop/a"];
            value_of(&mut hub_state.works)[0].objects = objects.map(Box::from).into();
            hub_state.health_rules = Lookup::Found(json!({"data": {"health.txt": rules}}));
        })
    };
    assert_eq!(with_widget(""), ["argocd-cm-health-without-rule"]);
    assert!(with_widget("Widget.example.com: Healthy .status.phase=Ready").is_empty());
    assert_eq!(
        data("application.resourceTrackingMethod", json!("label")),
        ["argocd-cm-tracks-by-label"]
    );
    let filter = |key, text: &str| data(key, json!(text));
    for hides in [
        "- apiGroups: ['*.open-cluster-management.io']",
        "- kinds: [ManifestWork]",
        "- clusters: ['*']",
    ] {
        assert_eq!(filter("resource.exclusions", hides), ["argocd-cm-hides"], "{hides}");
    }
    for leaves in ["", "- kinds: [Event]", "- clusters: [https://10.0.0.1]", "no list"] {
        assert!(filter("resource.exclusions", leaves).is_empty(), "{leaves}");
    }
    assert_eq!(
        filter("resource.inclusions", "- apiGroups: [apps]"),
        ["argocd-cm-hides"]
    );
    assert!(filter("resource.inclusions", "- apiGroups: ['work.*']").is_empty());
}

#[test]
fn finds_problems_of_projects() {
    let project = |project: Project| {
        problems_after(|hub_state| {
            hub_state.projects = Lookup::Found([("managed-clusters".to_owned(), project)].into());
        })
    };
    let kinds = |group: &str, kind: &str| vec![(group.to_owned(), kind.to_owned())];
    let only = |group, kind| Project {
        allowed: Some(kinds(group, kind)),
        refused: Vec::new(),
    };
    assert_eq!(project(only("apps", "*")), ["projects-refuse-works"]);
    assert!(project(only("work.open-cluster-management.io", "ManifestWork")).is_empty());
    assert!(project(only("*", "*")).is_empty());
    let refused = Project {
        refused: kinds("*", "ManifestWork"),
        ..Project::default()
    };
    assert_eq!(project(refused), ["projects-refuse-works"]);
    assert_eq!(
        problems_after(|hub_state| value_of(&mut hub_state.projects).clear()),
        ["projects-missing"]
    );
    assert!(problems_after(|hub_state| value_of(&mut hub_state.applications).clear()).is_empty());
}

#[test]
fn finds_problems_of_the_controller() {
    let gone = problems_after(|hub_state| {
        value_of(&mut hub_state.deployments).pop();
        grant(hub_state);
    });
    assert_eq!(gone, ["controller-missing"]);
    assert_eq!(
        problems_after(|hub_state| enable_controllers(hub_state, "push")),
        ["controller-unknown-controllers"]
    );
    assert_eq!(
        problems_after(|hub_state| value_of(&mut hub_state.leases).clear()),
        ["controller-lease-missing"]
    );
    let old = |hub_state: &mut HubState| {
        value_of(&mut hub_state.leases)[0]["spec"]["renewTime"] = json!(ago(200).to_string());
    };
    assert_eq!(problems_after(old), ["controller-lease-not-renewed"]);
    let ready = |ready: u64| {
        problems_after(|hub_state| value_of(&mut hub_state.deployments)[1]["status"] = json!({"readyReplicas": ready}))
    };
    assert_eq!(
        (ready(0), ready(1)),
        (vec!["controller-not-ready"], vec!["controller-some-not-ready"])
    );
    let no_pods = problems_after(|hub_state| {
        value_of(&mut hub_state.pods).pop();
    });
    assert_eq!(no_pods, ["controller-no-pods"]);
    let image = |hub_state: &mut HubState| {
        template(hub_state, "argocd-ocm-cmp-controller")["containers"][0]["image"] = json!("x:9.9");
    };
    assert_eq!(problems_after(image), ["controller-version-differs"]);
    for (controllers, resource, expected) in [
        ("gitopscluster", &GITOPS_CLUSTERS, &["controller-crd-missing"][..]),
        ("application-set-report", &REPORTS, &["controller-crd-missing"]),
        ("application-status", &REPORTS, &[]),
    ] {
        let ids = problems_after(|hub_state| {
            enable_controllers(hub_state, controllers);
            withhold(hub_state, resource);
        });
        assert_eq!(ids, expected, "{controllers}");
    }
}

#[test]
fn finds_missing_permissions() {
    let without = |which: fn(&Permission) -> bool| {
        let mut hub_state = healthy_hub();
        enable_controllers(&mut hub_state, "*");
        hub_state.management = Lookup::Found(json!({}));
        grant(&mut hub_state);
        for (permission, is_granted) in value_of(&mut hub_state.permissions) {
            *is_granted = !which(permission);
        }
        let findings = examine(&hub_state, now());
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
    let needs_execute_as = |hub_state: &HubState| {
        required_permissions(hub_state)
            .iter()
            .any(|permission| permission.verb == "execute-as")
    };
    let mut hub_state = healthy_hub();
    assert!(!needs_execute_as(&hub_state));
    value_of(&mut hub_state.works)[0].executor = true;
    assert!(needs_execute_as(&hub_state));
    let mut hub_state = healthy_hub();
    let gates = json!([{"feature": "NilExecutorValidating", "mode": "Enable"}]);
    hub_state.cluster_managers = Lookup::Found(vec![json!({"spec": {"workConfiguration": {"featureGates": gates}}})]);
    assert!(needs_execute_as(&hub_state));
}

#[test]
fn finds_problems_of_clusters() {
    let cluster = |name: &'static str, joined, available| {
        problems_after(|hub_state| {
            value_of(&mut hub_state.clusters).insert(
                name.to_owned(),
                DiagnosedCluster {
                    accepted: joined,
                    joined,
                    available,
                    ..DiagnosedCluster::default()
                },
            );
        })
    };
    assert_eq!(cluster("eu1", false, None), ["clusters-not-joined"]);
    assert_eq!(cluster("eu1", true, None), ["clusters-silent"]);
    assert_eq!(cluster("eu1", true, Some(false)), ["clusters-unwell"]);
    for state in [(false, None), (true, None), (true, Some(false))] {
        assert_eq!(cluster("us1", state.0, state.1), ["clusters-idle"]);
    }
    assert_eq!(
        problems_after(|hub_state| value_of(&mut hub_state.works).push(work("ap1", "shop"))),
        ["clusters-unknown"]
    );
    let unanswered = |created| {
        problems_after(|hub_state| {
            let work = HubWork {
                has_status: false,
                created: Some(created),
                ..work("us1", "shop")
            };
            value_of(&mut hub_state.works).push(work);
        })
    };
    assert_eq!(unanswered(ago(100)), ["clusters-without-work-agent"]);
    assert!(unanswered(ago(10)).is_empty(), "reported only after the grace period");
    let one_of_two = problems_after(|hub_state| {
        let unanswered = HubWork {
            has_status: false,
            ..work("eu1", "other")
        };
        value_of(&mut hub_state.works).push(unanswered);
    });
    assert!(
        one_of_two.is_empty(),
        "one work with a status proves that the agent runs: {one_of_two:?}"
    );
    let none = problems_after(|hub_state| {
        value_of(&mut hub_state.clusters).clear();
        value_of(&mut hub_state.works).clear();
    });
    assert_eq!(none, ["clusters-none"]);
}

#[test]
fn finds_problems_of_works() {
    let refused = |message: &str| {
        problems_after(|hub_state| {
            let message = message.into();
            value_of(&mut hub_state.works)[0].refused = Some(ApplyError { message });
        })
    };
    for (message, expected) in [
        (
            "not allowed to apply the resource  configmaps, executor config",
            "works-refused-by-executor",
        ),
        (
            "secrets \"a\" is forbidden: User \"agent\" cannot get resource",
            "works-refused-by-rights",
        ),
        ("the server doesn't have a resource type \"Shop\"", "works-unknown-kind"),
        (
            "the server could not find the requested resource: if the kind is cluster-scoped, set cluster-scoped-kinds to A.b",
            "works-other-scope",
        ),
        ("namespaces \"shop\" not found", "works-without-namespace"),
        ("spec.selector: field is immutable", "works-not-applied"),
        ("pods \"a\" is forbidden: exceeded quota: few", "works-not-applied"),
    ] {
        assert_eq!(refused(&format!("Failed to apply manifest: {message}")), [expected]);
    }
    let other_name = |hub_state: &mut HubState| {
        let names = &mut value_of(&mut hub_state.works)[0].other_resource_names;
        names.insert("Tank.example.com=tanken".into());
    };
    assert_eq!(problems_after(other_name), ["works-other-resource-name"]);
    assert!(problems_after(|hub_state| value_of(&mut hub_state.works)[0].size = 512_000).is_empty());
    assert_eq!(
        problems_after(|hub_state| value_of(&mut hub_state.works)[0].size = 512_001),
        ["works-over-limit"]
    );
    let watches = |works: usize, each: usize| {
        problems_after(|hub_state| {
            let informers = |work: usize| {
                (0..each)
                    .map(|at| format!("deployments.apps/{work}-{at}").into_boxed_str())
                    .collect()
            };
            let all = value_of(&mut hub_state.works);
            all.extend((0..works).map(|number| HubWork {
                watched: informers(number),
                ..work("eu1", &format!("w{number}"))
            }));
        })
    };
    assert!(watches(2, 25).is_empty());
    assert_eq!(watches(2, 26), ["works-too-many-watches"]);
    let error = "the size of manifests is 600103 bytes which exceeds the 512000 limit";
    let too_large = problems_after(|hub_state| {
        value_of(&mut hub_state.applications)[0].operation = Some(SyncOperation {
            phase: "Failed".to_owned(),
            message: error.to_owned(),
            failures: vec![error.to_owned()],
        });
    });
    assert_eq!(too_large, ["works-refused-for-size"]);
    let same = problems_after(|hub_state| value_of(&mut hub_state.applications)[0].sources_share_works = true);
    assert_eq!(same, ["works-of-several-sources"]);
}

#[test]
fn finds_problems_of_argocd_agent() {
    let agents = |management: Lookup<Value>, addons: &[(&str, bool)]| {
        problems_after(|hub_state| {
            enable_controllers(hub_state, "argocd-agent");
            hub_state.management = management;
            hub_state.addons = Lookup::Found(addons.iter().map(|(name, is)| ((*name).to_owned(), *is)).collect());
        })
    };
    let is_there = || Lookup::Found(json!({}));
    assert!(agents(is_there(), &[("eu1", true)]).is_empty());
    assert_eq!(agents(Lookup::NotFound, &[]), ["argocd-agent-missing"]);
    assert_eq!(
        agents(is_there(), &[("eu1", true), ("us1", false)]),
        ["argocd-agent-not-available"]
    );
    let others = |change: &dyn Fn(&mut HubState)| {
        problems_after(|hub_state| {
            enable_controllers(hub_state, "argocd-agent");
            hub_state.management = is_there();
            hub_state.addons = Lookup::Found(BTreeMap::from([("eu1".to_owned(), true)]));
            change(hub_state);
        })
    };
    let of = |names: &[&str]| Lookup::Found(names.iter().map(|name| (*name).to_owned()).collect());
    assert!(others(&|hub_state| hub_state.other_versions = of(&[])).is_empty());
    assert_eq!(
        others(&|hub_state| hub_state.other_versions = of(&["argocd/fleet"])),
        ["argocd-agent-other-version"]
    );
    let principal = |hub_state: &mut HubState| {
        let shipped = objects(embedded::DEPLOY_PRINCIPAL);
        let found = shipped.into_iter().find(|value| value["kind"] == "Deployment");
        value_of(&mut hub_state.deployments).push(found.expect("the principal"));
    };
    assert!(others(&principal).is_empty(), "ours has the right settings");
    let settings = others(&|hub_state| {
        principal(hub_state);
        let last = value_of(&mut hub_state.deployments).last_mut().expect("the principal");
        last["spec"]["template"]["spec"]["containers"][0]["args"] = json!(["principal"]);
    });
    assert_eq!(settings, ["argocd-agent-principal-setting"; 2]);
}

#[test]
fn findings_of_a_large_fleet_are_short() {
    let mut hub_state = healthy_hub();
    let refused = |at: usize| HubWork {
        refused: Some(ApplyError {
            message: format!("namespaces \"n{at}\" not found").into(),
        }),
        ..work(&format!("c{}", at / 5), &format!("w{at}"))
    };
    value_of(&mut hub_state.works).extend((0..10_000).map(refused));
    let findings = examine(&hub_state, now());
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
fn finds_agents_that_do_nothing_although_their_cluster_is_available() {
    let outstanding = |since: Timestamp, available: bool| {
        problems_after(|hub_state| {
            value_of(&mut hub_state.works)[0].outstanding_since = Some(since);
            let cluster = value_of(&mut hub_state.clusters)
                .get_mut("eu1")
                .expect("it is registered");
            cluster.available = available.then_some(true);
        })
    };
    assert_eq!(outstanding(ago(100), true), [""; 0], "it usually takes seconds");
    assert_eq!(outstanding(ago(130), true), ["clusters-with-late-work-agent"]);
    assert_eq!(
        outstanding(ago(130), false),
        ["clusters-silent"],
        "one reason is enough"
    );
}

#[test]
fn finds_placements_that_select_no_cluster() {
    let mut hub_state = healthy_hub();
    value_of(&mut hub_state.sets).push(ReplicaSet {
        qualified_name: "fleet/shop-x".to_owned(),
        created: Some(ago(3600)),
        has_status: true,
        empty_placements: vec!["fleet/eu".to_owned()],
        ..ReplicaSet::default()
    });
    let why = "No valid ManagedClusterSetBindings found (NoManagedClusterSetBindings)".to_owned();
    hub_state.unsatisfied_placements = Lookup::Found([("fleet/eu".to_owned(), why)].into());
    let findings = examine(&hub_state, now());
    assert_eq!(problem_ids(&findings), ["works-without-clusters"]);
    let text = "no managed cluster is selected for 1 work of a Placement: fleet/shop-x: Placement fleet/eu: No valid \
                ManagedClusterSetBindings found (NoManagedClusterSetBindings)";
    assert!(findings.iter().any(|finding| finding.text == text), "{findings:?}");
    hub_state.unsatisfied_placements = Lookup::Refused("no".to_owned());
    assert_eq!(
        problem_ids(&examine(&hub_state, now())),
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
        let mut hub_state = healthy_hub();
        hub_state.works = Lookup::Found(works);
        examine(&hub_state, now())
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
    let mut hub_state = healthy_hub();
    let identity = live::identity::create("argocd", now()).expect("an identity");
    let certificate = live::identity::certificate(&identity).expect("a certificate");
    let Lookup::Found(config) = &mut hub_state.config else {
        panic!("argocd-cm")
    };
    config["data"]["extension.config.live"] = "services: []".into();
    let Lookup::Found(deployments) = &mut hub_state.deployments else {
        panic!("Deployments")
    };
    let volumes = json!([{"name": "argocd-ocm-cmp-live", "configMap": {"name": "argocd-ocm-cmp-live"}}]);
    deployments.push(json!({
        "metadata": {"name": "argocd-server"}, "spec": {"template": {"spec": {"containers": [], "volumes": volumes}}},
    }));
    deployments.push(json!({"metadata": {"name": "argocd-ocm-cmp-live"}, "status": {"readyReplicas": 1}}));
    let Lookup::Found(works) = &mut hub_state.works else {
        panic!("works")
    };
    works[0].application = Some("argocd/shop".into());
    hub_state.live = Some(LiveState {
        has_token: Lookup::Found(true),
        certificate: Lookup::Found(json!({"data": {"tls.crt": certificate}})),
        authority: Lookup::Found(json!({"data": {"ca.crt": certificate}})),
        issued_authority: Lookup::Found(certificate),
        rbac: Lookup::Found(json!({"data": {"policy.csv": "p, role:team, extensions, invoke, live, allow"}})),
        addons: Lookup::Found([("eu1".to_owned(), true)].into()),
        permitting: ["eu1".to_owned()].into(),
    });
    hub_state
}

type Break = fn(&mut HubState, &mut LiveState);

#[test]
fn every_broken_hop_of_the_view_is_named() {
    let ids = |hub_state: &HubState, now| -> Vec<&str> {
        let found = examine(hub_state, now).into_iter();
        found
            .filter(|finding| finding.check == "live")
            .map(|finding| finding.message.id)
            .collect()
    };
    assert_eq!(ids(&hub_with_live(), now()), ["live"]);
    assert_eq!(ids(&healthy_hub(), now()), [""; 0], "it is not installed");
    let broken: [(&str, Break); 13] = [
        ("live-extension-missing", |hub_state, _| {
            hub_state.config = Lookup::Found(json!({"data": {}}));
        }),
        ("live-deployment-missing", |hub_state, _| {
            hub_state.deployments = Lookup::Found(hub_state.deployments.found().expect("them")[..3].to_vec());
        }),
        ("live-not-ready", |hub_state, _| {
            let Lookup::Found(all) = &mut hub_state.deployments else {
                return;
            };
            all[3]["status"] = json!({});
        }),
        ("live-token-missing", |_, live| live.has_token = Lookup::Found(false)),
        ("live-not-trusted", |_, live| {
            live.certificate = Lookup::Found(json!({}));
        }),
        ("live-not-trusted", |hub_state, _| {
            let Lookup::Found(all) = &mut hub_state.deployments else {
                return;
            };
            all[2]["spec"]["template"]["spec"]["volumes"] = json!([]);
        }),
        ("live-not-permitted", |_, live| {
            let policy = "p, role:team, extensions, invoke, live, deny\n# p, a, extensions, invoke, live, allow";
            live.rbac = Lookup::Found(json!({"data": {"policy.csv": policy}}));
        }),
        ("live-authority-missing", |_, live| live.authority = Lookup::NotFound),
        ("live-authority-differs", |_, live| {
            live.issued_authority = Lookup::Found("another".to_owned());
        }),
        ("live-cluster-proxy-missing", |_, live| {
            live.addons = Lookup::Found(BTreeMap::new());
        }),
        ("live-cluster-proxy-not-available", |_, live| {
            live.addons = Lookup::Found([("eu1".to_owned(), false)].into());
        }),
        ("live-permissions-missing", |_, live| live.permitting.clear()),
        ("cannot-read", |_, live| {
            live.has_token = Lookup::Refused("forbidden".to_owned());
        }),
    ];
    for (id, break_it) in broken {
        let mut hub_state = hub_with_live();
        let mut live = hub_state.live.take().expect("the view");
        break_it(&mut hub_state, &mut live);
        hub_state.live = Some(live);
        assert_eq!(ids(&hub_state, now()), [id]);
    }
    let in_eleven_years = now() + SignedDuration::from_hours(11 * 365 * 24);
    assert!(ids(&hub_with_live(), in_eleven_years).contains(&"live-authority-expired"));
}

#[test]
fn finds_applications_that_freeze_their_works() {
    let application = |ignores_works: bool| DiagnosedApplication {
        ignores_works,
        respects_ignored: true,
        ..value_of(&mut healthy_hub().applications)[0].clone()
    };
    let found = |ignores_works: bool, key: &str| {
        problems_after(|hub_state| {
            value_of(&mut hub_state.applications)[0] = application(ignores_works);
            value_of(&mut hub_state.config)["data"][key] =
                json!("jqPathExpressions: [.spec.workload.manifests[].data]");
        })
    };
    let key = |kind: &str| format!("resource.customizations.ignoreDifferences.{kind}");
    assert_eq!(found(true, "other"), ["applications-freeze-works"]);
    assert_eq!(found(false, &key("all")), ["applications-freeze-works"]);
    let of_works = key("work.open-cluster-management.io_ManifestWork");
    assert_eq!(found(false, &of_works), ["applications-freeze-works"]);
    assert!(found(false, &key("apps_Deployment")).is_empty());
}

#[test]
fn finds_repositories_whose_commits_render_many_applications() {
    let found = |number: usize| {
        problems_after(|hub_state| {
            let applications = value_of(&mut hub_state.applications);
            let first = applications[0].clone();
            *applications = (0..number)
                .map(|number| DiagnosedApplication {
                    qualified_name: format!("argocd/shop-{number}"),
                    rendered_by_every_commit: BTreeSet::from(["https://git.example.com/all.git".to_owned()]),
                    ..first.clone()
                })
                .collect();
        })
    };
    assert!(found(19).is_empty());
    assert_eq!(found(20), ["applications-render-every-commit"]);
}
