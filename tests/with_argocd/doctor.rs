//! Tests of `doctor` against real hubs: a correct installation, and one with each part broken in turn. No other tests use these
//! hubs.

use crate::controller::Controller;
use crate::stage::{apply, apply_server_side, argocd, hub_with, run, shipped, shipped_object};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Mutex;
use testbed::{GitRepository, Hub, ManagedClusterOptions, ObjectRef, is_applied, new_condition, tracked_work, wait};

/// The findings where no Pods run.
const WITHOUT_PODS: [&str; 2] = ["socket-no-pods", "controller-no-pods"];

/// The result of a run: its exit code, and the ids of the findings.
#[derive(Debug, PartialEq)]
struct DoctorResult {
    code: Option<i32>,
    found: Vec<String>,
}

impl DoctorResult {
    /// Returns the result on a hub without Pods with these findings.
    fn with_findings(findings: &[&str]) -> Self {
        Self {
            code: Some(i32::from(!findings.is_empty())),
            found: findings.iter().chain(&WITHOUT_PODS).map(ToString::to_string).collect(),
        }
    }
}

fn doctor(kubeconfig: &Path, words: &[&str]) -> Result<(Option<i32>, String)> {
    let (code, stdout, stderr) = run(Path::new("/"), Some(kubeconfig), &[&["doctor"], words].concat())?;
    assert!(stderr.is_empty(), "{stderr}");
    Ok((code, stdout))
}

fn printed(kubeconfig: &Path, words: &[&str]) -> Result<(DoctorResult, String)> {
    let (code, text) = doctor(kubeconfig, &[&["-o", "json"], words].concat())?;
    let report: Value = serde_json::from_str(&text)?;
    let findings = report["findings"].as_array().context("findings")?.iter();
    let problems = findings.filter(|finding| finding["result"] != "ok");
    let ids = problems
        .filter_map(|problem| problem["id"].as_str().map(str::to_owned))
        .collect();
    Ok((DoctorResult { code, found: ids }, text))
}

fn doctor_result(hub: &Hub) -> Result<(DoctorResult, String)> {
    printed(hub.kubeconfig_path(), &[])
}

/// Waits until there are exactly these findings, and returns the output.
async fn wait_for_findings(hub: &Hub, findings: &[&str]) -> Result<String> {
    let expected = DoctorResult::with_findings(findings);
    let last = Mutex::new(String::new());
    let found_it = wait::eventually("exactly these findings are reported", wait::DEADLINE, async || {
        let (printed, text) = doctor_result(hub).ok()?;
        let is_it = printed == expected;
        last.lock().ok()?.clone_from(&text);
        is_it.then_some(text)
    })
    .await;
    found_it.with_context(|| format!("{findings:?} are wanted, not {last:?}"))
}

/// Creates a hub with the plugin and the controller.
async fn installed() -> Result<(Hub, Controller)> {
    let hub = hub_with("proj.yaml cm_plugin.yaml deploy/policy_cm.yaml").await?;
    apply_server_side(&hub, "deploy_cmp.yaml")?;
    apply(
        &hub,
        "deploy/plugin_sources.yaml deploy/holds.yaml deploy/agent_admission.yaml",
    )?;
    let policy = ["--server-side", "--field-manager=argocd-ocm-cmp-policy"];
    hub.apply_file(&shipped("deploy/deploy_policy.yaml"), &policy)?;
    let controller = Controller::start(&hub).await?;
    Ok((hub, controller))
}

/// Returns a work as Argo CD writes it for its Application `shop`.
fn work(cluster: &str, name: &str, data: &str) -> Value {
    let config_map = ObjectRef::config_map("b", "a").with(json!({"data": {"a": data}}));
    tracked_work("shop", cluster, name, &[config_map])
}

/// Writes the status of an agent that has applied a work.
async fn answer(hub: &Hub, work: &Value) -> Result<()> {
    let condition = new_condition("Applied", "True", "", &json!(1));
    let status = json!({"conditions": [condition]});
    hub.patch_status(&ObjectRef::of(work), &json!({"status": status}))
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn finds_every_broken_part_and_nothing_else() -> Result<()> {
    let (hub, controller) = installed().await?;
    hub.declare_managed_cluster("cluster1").await?;
    wait_for_findings(&hub, &[]).await?;
    let (code, table) = doctor(hub.kubeconfig_path(), &[])?;
    assert_eq!(code, Some(0), "{table}");
    for line in ["ok        argo-cd ", "ok        rights ", "\n\n2 warnings\n"] {
        assert!(table.contains(line), "{line}: {table}");
    }
    assert_eq!(doctor(hub.kubeconfig_path(), &[])?.1, table, "the same on every run");

    break_clusters_and_works(&hub).await?;
    check_user_with_few_permissions(&hub).await?;
    break_the_plugin(&hub).await?;
    break_the_controller(&hub).await?;
    let other_namespace = printed(hub.kubeconfig_path(), &["--namespace=default"])?.0;
    assert_eq!(
        (other_namespace.code, &*other_namespace.found),
        (Some(1), &["argo-cd-elsewhere".to_owned()][..])
    );

    controller.stop().await?;
    wait_for_findings(&hub, &["controller-lease-missing"]).await.map(drop)
}

async fn break_the_plugin(hub: &Hub) -> Result<()> {
    let config = ObjectRef::config_map("argocd", "argocd-cm");
    let key = "resource.customizations.health.work.open-cluster-management.io_ManifestWork";
    hub.patch(&config, &json!({"data": {key: null}})).await?;
    wait_for_findings(hub, &["argocd-cm-health-missing"]).await?;
    apply_server_side(hub, "deploy/argocd_cm.yaml")?;
    let filter = "- {apiGroups: ['*.open-cluster-management.io'], kinds: ['*']}";
    hub.patch(&config, &json!({"data": {"resource.exclusions": filter}}))
        .await?;
    wait_for_findings(hub, &["argocd-cm-hides"]).await?;
    hub.patch(&config, &json!({"data": {"resource.exclusions": null}}))
        .await?;

    hub.delete(&ObjectRef::config_map("argocd", "argocd-ocm-cmp")).await?;
    wait_for_findings(hub, &["argo-cd-mount-missing", "plugin-config-missing"]).await?;
    apply(hub, "cm_plugin.yaml")?;

    // Argo CD's error about an Application without its plugin.
    hub.create(&shipped_object("app.yaml")?).await?;
    let guestbook = ObjectRef::application("guestbook");
    let message =
        "rpc error: could not find cmp-server plugin with name \"argocd-ocm-cmp\" supporting the given repository";
    let condition = json!({"type": "ComparisonError", "message": message});
    hub.patch(&guestbook, &json!({"status": {"conditions": [condition]}}))
        .await?;
    let text = wait_for_findings(hub, &["socket-not-found"]).await?;
    assert!(text.contains("for 1 Application: argocd/guestbook"), "{text}");
    // Without its finalizer, as no Argo CD runs here.
    hub.patch(&guestbook, &json!({"metadata": {"finalizers": null}}))
        .await?;
    hub.delete(&guestbook).await?;
    wait_for_findings(hub, &[]).await.map(drop)
}

async fn break_the_controller(hub: &Hub) -> Result<()> {
    let binding = ObjectRef::cluster(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding",
        "argocd-ocm-cmp-works.argocd",
    );
    hub.patch(&binding, &json!({"spec": {"validationActions": ["Audit"]}}))
        .await?;
    wait_for_findings(hub, &["admission-not-enforced"]).await?;
    hub.delete(&binding).await?;
    wait_for_findings(hub, &["admission-missing"]).await?;
    apply(hub, "deploy/admission_policy.yaml")?;
    wait_for_findings(hub, &[]).await?;

    let role = ObjectRef::cluster_role("argocd-ocm-cmp-controller");
    let mut rules = hub.read(&role).await?["rules"].clone();
    let events = |rule: &Value| rule["resources"] == json!(["events"]);
    rules.as_array_mut().context("rules")?.retain(|rule| !events(rule));
    hub.patch(&role, &json!({"rules": rules})).await?;
    let text = wait_for_findings(hub, &["rights-missing"]).await?;
    let permissions = "ServiceAccount argocd/argocd-ocm-cmp-controller is missing permissions from deploy/deploy_controller.yaml: create \
                  events, get events, patch events";
    assert!(text.contains(permissions), "{text}");
    apply(hub, "deploy/deploy_controller.yaml")?;
    wait_for_findings(hub, &[]).await?;

    let describe = |what: &str| {
        let deployment = "deployment/argocd-ocm-cmp-controller";
        hub.kubectl(&["set", "env", "-n", "argocd", deployment, what]).map(drop)
    };
    describe("ARGOCD_OCM_CMP_CONTROLLERS=application-status,gitopscluster")?;
    wait_for_findings(hub, &["controller-crd-missing", "rights-missing"]).await?;
    apply_server_side(hub, "deploy/gitopscluster_crd.yaml")?;
    apply(hub, "deploy/deploy_gitopscluster.yaml")?;
    wait_for_findings(hub, &[]).await?;

    // All controllers, with the permissions that are shipped for them.
    let files = "deploy/report_crd.yaml deploy/deploy_pull.yaml deploy/deploy_cluster_secrets.yaml \
                 deploy/deploy_report.yaml deploy/deploy_argocd_agent.yaml deploy/principal_admission.yaml";
    apply(hub, files)?;
    describe("ARGOCD_OCM_CMP_CONTROLLERS=*")?;
    let found = WITHOUT_PODS
        .iter()
        .chain(&["argocd-agent-missing"])
        .map(ToString::to_string);
    let (code, found) = (Some(0), found.collect());
    let expected = DoctorResult { code, found };
    wait::eventually("the account has all permissions", wait::DEADLINE, async || {
        (doctor_result(hub).ok()?.0 == expected).then_some(())
    })
    .await?;
    describe("ARGOCD_OCM_CMP_CONTROLLERS=application-status")?;
    wait_for_findings(hub, &[]).await.map(drop)
}

async fn break_clusters_and_works(hub: &Hub) -> Result<()> {
    // An available cluster on which no agent runs, and a work that is not Argo CD's.
    let shop = work("cluster1", "shop", "b");
    let mut others = work("cluster1", "others", "b");
    others["metadata"]["annotations"] = json!({});
    for work in [&shop, &others] {
        hub.create(work).await?;
    }
    wait_for_findings(hub, &["clusters-without-work-agent"]).await?;
    answer(hub, &shop).await?;
    wait_for_findings(hub, &[]).await?;

    // A work that OCM's webhook would reject.
    let large = work("cluster1", "large", &"<".repeat(90_000));
    hub.kubectl("delete validatingwebhookconfigurations --all")?;
    wait::eventually("the webhook is not called", wait::DEADLINE, async || {
        hub.create(&large).await.ok()
    })
    .await?;
    let text = wait_for_findings(hub, &["works-over-limit"]).await?;
    assert!(text.contains("more than 512000 bytes are in 1 work"), "{text}");
    hub.delete(&ObjectRef::of(&large)).await?;
    wait_for_findings(hub, &[]).await?;

    let node = ObjectRef::node("old").with(json!({
        "status": {"nodeInfo": {
            "operatingSystem": "linux", "osImage": "Ubuntu 20.04.6 LTS", "kernelVersion": "5.4.0-216-generic", "architecture": "",
            "bootID": "", "containerRuntimeVersion": "", "kubeProxyVersion": "", "kubeletVersion": "", "machineID": "", "systemUUID": "",
        }},
    }));
    hub.create(&node).await?;
    hub.patch_status(&ObjectRef::of(&node), &node).await?;
    let text = wait::eventually("the old kernel is reported", wait::DEADLINE, async || {
        let (printed, text) = printed(hub.kubeconfig_path(), &["--pre"]).ok()?;
        (printed.found == ["confinement-old-kernels"]).then_some(text)
    })
    .await?;
    assert!(text.contains("old (Linux 5.4.0-216-generic)"), "{text}");
    for object in [&node, &shop, &others] {
        hub.delete(&ObjectRef::of(object)).await?;
    }
    wait_for_findings(hub, &[]).await.map(drop)
}

/// A user with few permissions gets findings about that, and about the readable objects.
async fn check_user_with_few_permissions(hub: &Hub) -> Result<()> {
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "few", "namespace": "default"}});
    hub.create(&account).await?;
    let kubeconfig = hub.service_account_kubeconfig("default", "few")?;
    let role = ObjectRef::cluster_role("few").with(json!({
        "rules": [{"apiGroups": ["", "apps"], "resources": ["configmaps", "deployments", "statefulsets"], "verbs": ["get", "list"]}],
    }));
    hub.create(&role).await?;
    hub.kubectl("create clusterrolebinding few --clusterrole=few --serviceaccount=default:few")?;
    let (printed, text) = wait::eventually("the permissions are effective", wait::DEADLINE, async || {
        let (printed, text) = printed(&kubeconfig, &[]).ok()?;
        (!text.contains("cannot get resource \\\"configmaps")).then_some((printed, text))
    })
    .await?;
    assert_eq!(printed.code, Some(2), "{text}");
    let is_blind = |id: &&String| ["cannot-read", "rights-not-asked"].contains(&&***id);
    assert!(printed.found.iter().all(|id| is_blind(&id)), "{text}");
    for thing in "ManifestWorks, ManagedClusters, Applications, the Nodes, the Pods in namespace argocd".split(", ") {
        assert!(text.contains(&format!("cannot read {thing}: ")), "{thing}: {text}");
    }
    let report: Value = serde_json::from_str(&text)?;
    let findings = report["findings"].as_array().context("findings")?.iter();
    for finding in findings.filter(|finding| finding["id"] == "cannot-read") {
        let message = finding["message"].as_str().unwrap_or_default();
        let lacks = "user system:serviceaccount:default:few lacks the permission to ";
        assert!(message.contains(lacks), "{message}");
    }
    assert!(text.contains("argocd-cm has the health checks"), "{text}");
    Ok(())
}

/// Tests with the real Argo CD and the real agent, whose reasons for rejections are distinguished.
#[tokio::test(flavor = "multi_thread")]
async fn classifies_apply_errors_by_reason() -> Result<()> {
    let (hub, _controller) = installed().await?;
    let argocd = argocd(&hub, "plugin-for-doctor").await?;
    let cluster1 = hub.add_managed_cluster("cluster1", ManagedClusterOptions::default());
    let (cluster1, argocd) = tokio::join!(cluster1, hub.start_argocd(argocd));
    let (_cluster1, ()) = (cluster1?, argocd?);
    let git = GitRepository::new()?;
    git.commit_folder(&shipped("guestbook"), "guestbook")?;
    let mut app = shipped_object("app.yaml")?;
    app["spec"]["source"]["repoURL"] = json!(git.url());
    hub.create(&app).await?;
    hub.wait_for(&ObjectRef::manifest_work("cluster1", "guestbook"), is_applied)
        .await?;
    let text = wait_for_findings(&hub, &[]).await?;
    assert!(
        text.contains("works of Applications: 1, none rejected by agents"),
        "{text}"
    );

    let with = |name: &str, manifest: Value| {
        let mut work = work("cluster1", name, "");
        work["spec"]["workload"]["manifests"] = json!([manifest]);
        work
    };
    let class = ObjectRef::cluster("storage.k8s.io/v1", "StorageClass", "fast")
        .with(json!({"provisioner": "example.com/none"}));
    let shop =
        json!({"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a", "namespace": "default"}});
    let lost = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "nowhere"}});
    let mut by_executor = work("cluster1", "by-executor", "");
    let account = json!({"namespace": "default", "name": "nobody"});
    by_executor["spec"]["executor"] = json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}});
    for work in [
        by_executor,
        with("class", class),
        with("unknown", shop),
        with("lost", lost),
    ] {
        hub.create(&work).await?;
    }
    let findings = [
        "works-refused-by-executor",
        "works-refused-by-rights",
        "works-unknown-kind",
        "works-without-namespace",
    ];
    let text = wait_for_findings(&hub, &findings).await?;
    for name in ["by-executor", "class", "unknown", "lost"] {
        assert!(text.contains(&format!("cluster1/{name}: Failed to apply")), "{text}");
    }
    Ok(())
}
