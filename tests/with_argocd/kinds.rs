//! Tests of custom kinds whose CRD is only on the cluster, of fields that other writers on the cluster set, and of custom hooks.

use crate::app::{self, App, permit_agent};
use crate::stage::{Stage, stage};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::application::{APPLY_ERROR, DEGRADED, has_health, messages};
use testbed::wait::{DEADLINE, eventually};
use testbed::{GitRepository, ManagedCluster, ObjectRef};

/// The CA that another writer sets, in base64.
const INJECTED: &str = "Q0E=";

fn crd(group: &str, kind: &str, plural: &str, scope: &str) -> Value {
    let mut crd = app::crd(group, kind, plural, scope);
    crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    crd
}

fn custom(group: &str, kind: &str) -> String {
    json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "a"}, "spec": {"size": 1}})
        .to_string()
}

/// Returns true if the object was last written by a server-side apply.
fn is_applied_server_side(object: &Value) -> bool {
    let managers = object["metadata"]["managedFields"].as_array();
    managers.is_some_and(|all| {
        all.iter()
            .any(|manager| manager["operation"] == "Apply" && manager["fieldsV1"].get("f:spec").is_some())
    })
}

#[tokio::test]
async fn kinds_of_public_operators_are_known_and_wrong_guesses_are_visible() -> Result<()> {
    let stage = stage().await?;
    let (hub, cluster1) = (&stage.hub, &stage.cluster1);
    let (name, group) = ("kinds", "kinds.example.com");
    permit_agent(cluster1, group, &[group, "cert-manager.io", "k8s.cni.cncf.io"]).await?;
    let attachment = "NetworkAttachmentDefinition";
    for (group, kind, plural, scope) in [
        ("cert-manager.io", "ClusterIssuer", "clusterissuers", "Cluster"),
        (
            "k8s.cni.cncf.io",
            attachment,
            "network-attachment-definitions",
            "Namespaced",
        ),
        (group, "Meter", "meters", "Cluster"),
        (group, "Tank", "tanken", "Namespaced"),
        (group, "Pump", "pump", "Namespaced"),
    ] {
        cluster1.create(&crd(group, kind, plural, scope)).await?;
    }
    cluster1.wait_for_crds().await?;
    let git = GitRepository::new()?;
    git.commit(&[
        ("kinds/issuer.json", &custom("cert-manager.io", "ClusterIssuer")),
        ("kinds/attachment.json", &custom("k8s.cni.cncf.io", attachment)),
        ("kinds/meter.json", &custom(group, "Meter")),
        ("kinds/tank.json", &custom(group, "Tank")),
        ("kinds/pump.json", &custom(group, "Pump")),
    ])?;
    app::create(stage, name, &git, |_| ()).await?;

    let issuer = ObjectRef::cluster("cert-manager.io/v1", "ClusterIssuer", "a");
    cluster1.wait_for(&issuer, is_applied_server_side).await?;
    let attachment = ObjectRef::namespaced("k8s.cni.cncf.io/v1", attachment, name, "a");
    cluster1.wait_for(&attachment, is_applied_server_side).await?;
    // Its resource name is the second guess, so only its health is missing.
    let pump = ObjectRef::namespaced(&format!("{group}/v1"), "Pump", name, "a");
    cluster1.wait_for(&pump, is_applied_server_side).await?;

    let app = ObjectRef::application(name);
    let says = |app: &Value, kind: &str, texts: &[&str]| {
        let mut all = messages(app, kind).into_iter();
        all.any(|message| texts.iter().all(|text| message.contains(text)))
    };
    let names = [
        "set resource-names to Tank.kinds.example.com=tanken",
        "set resource-names to Pump.kinds.example.com=pump",
    ];
    hub.wait_for(&app, |app| {
        has_health(app, "Degraded")
            && says(app, DEGRADED, &names)
            && says(
                app,
                APPLY_ERROR,
                &["set cluster-scoped-kinds to Meter.kinds.example.com"],
            )
    })
    .await?;

    let parameters = json!([
        {"name": "resource-names", "array": [format!("Tank.{group}=tanken"), format!("Pump.{group}=pump")]},
        {"name": "cluster-scoped-kinds", "array": [format!("Meter.{group}")]},
    ]);
    hub.patch(
        &app,
        &json!({"spec": {"source": {"plugin": {"parameters": parameters}}}}),
    )
    .await?;
    let meter = ObjectRef::cluster(&format!("{group}/v1"), "Meter", "a");
    cluster1.wait_for(&meter, is_applied_server_side).await?;
    // Known kinds with a status are progressing until they report it.
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    cluster1.patch_status(&issuer, &ready).await?;
    hub.wait_for(&app, |app| has_health(app, "Healthy")).await?;
    hub.delete(&app).await
}

/// Makes the agent apply the work again, and waits until it has repaired the ConfigMap that is its last object.
async fn apply_again(stage: &Stage, app: &App<'_>) -> Result<()> {
    let last = ObjectRef::config_map(&app.name, "z-last");
    let by_hand = json!({"data": {"colour": "by-hand"}});
    stage.cluster1.patch(&last, &by_hand).await?;
    app.reconcile().await?;
    stage
        .cluster1
        .wait_for_value(&last, "/data/colour", "green")
        .await
        .map(drop)
}

#[tokio::test]
async fn fields_of_other_writers_stay_when_the_agent_applies_again() -> Result<()> {
    let stage = stage().await?;
    let cluster1 = &stage.cluster1;
    let name = "other-writers";
    cluster1.create_namespace(name).await?;
    permit_agent(cluster1, name, &["admissionregistration.k8s.io"]).await?;
    let webhooks = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: other-writers}
webhooks:
- name: other.writers.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {url: "https://127.0.0.1:1/", caBundle: Cg==}
  rules: [{apiGroups: [other.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]
"#;
    let roles = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: other-writers}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {other-writers: "true"}}]}
rules: []
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: other-writers-part, labels: {other-writers: "true"}}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
"#;
    let deployment = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: scaled, annotations: {argocd-ocm-cmp.github.io/ignore-fields: /spec/replicas}}
spec:
  replicas: 2
  selector: {matchLabels: {app: scaled}}
  template: {metadata: {labels: {app: scaled}}, spec: {containers: [{name: a, image: busybox}]}}
";
    let last = "{apiVersion: v1, kind: ConfigMap, metadata: {name: z-last}, data: {colour: green}}";
    let files = [
        ("webhooks.yaml", webhooks),
        ("roles.yaml", roles),
        ("scaled.yaml", deployment),
        ("last.yaml", last),
    ];
    let app = App::start(stage, name, &[], &files).await?;

    let rbac = |name: &str| ObjectRef::cluster("rbac.authorization.k8s.io/v1", "ClusterRole", name);
    let webhooks = ObjectRef::cluster(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        name,
    );
    let scaled = ObjectRef::namespaced("apps/v1", "Deployment", name, "scaled");
    let is_aggregated = |role: &Value| role["rules"].to_string().contains("configmaps");
    cluster1.wait_for(&webhooks, |_| true).await?;
    cluster1.wait_for(&rbac(name), is_aggregated).await?;
    cluster1.wait_for_value(&scaled, "/spec/replicas", 2).await?;
    cluster1
        .wait_for(&ObjectRef::config_map(name, "z-last"), |_| true)
        .await?;
    let injected = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": INJECTED}]);
    let patch = ["patch", "validatingwebhookconfiguration", name, "--type=json", "-p"];
    cluster1.kubectl(&[&patch[..], &[&injected.to_string()]].concat())?;
    cluster1.kubectl(&["-n", name, "scale", "deployment/scaled", "--replicas=5"])?;

    for _ in 1..=2 {
        apply_again(stage, &app).await?;
        let live = cluster1.read(&webhooks).await?;
        assert_eq!(live["webhooks"][0]["clientConfig"]["caBundle"], INJECTED);
        assert!(is_aggregated(&cluster1.read(&rbac(name)).await?));
        assert_eq!(cluster1.read(&scaled).await?["spec"]["replicas"], 5);
    }
    // A new image arrives, and the replicas of the other writer stay.
    app.commit(&[("scaled.yaml", &deployment.replace("busybox", "nginx"))])
        .await?;
    let image = "/spec/template/spec/containers/0/image";
    let changed = cluster1.wait_for_value(&scaled, image, "nginx").await?;
    assert_eq!(changed["spec"]["replicas"], 5);
    stage.hub.delete(&app.application()).await
}

#[tokio::test]
async fn custom_hook_with_a_generated_name_runs_again_and_its_failure_stops_the_sync() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    let cluster1 = &stage.cluster1;
    let (name, group) = ("custom-hook", "hooks.example.com");
    permit_agent(cluster1, group, &[group]).await?;
    cluster1.create(&crd(group, "Check", "checks", "Namespaced")).await?;
    cluster1.wait_for_crds().await?;
    let hook = |size: u8| {
        let annotations = json!({"argocd.argoproj.io/hook": "PreSync"});
        let metadata = json!({"generateName": "check-", "annotations": annotations});
        json!({"apiVersion": format!("{group}/v1"), "kind": "Check", "metadata": metadata, "spec": {"size": size}})
            .to_string()
    };
    let settings = |colour: &str| {
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{colour: {colour}}}}}")
    };
    let git = GitRepository::new()?;
    git.commit(&[
        ("custom-hook/hook.json", &hook(1)),
        ("custom-hook/settings.yaml", &settings("green")),
    ])?;
    let names = json!([{"name": "resource-names", "array": [format!("Check.{group}=checks")]}]);
    app::create(stage, name, &git, |app| {
        app["spec"]["source"]["plugin"]["parameters"] = names;
        app["spec"]["syncPolicy"]["retry"] = json!({"limit": 0});
    })
    .await?;

    // The sync waits for the hook, which first has no status.
    let first = check_of_size(cluster1, group, 1).await?;
    let work = ObjectRef::manifest_work("cluster1", &format!("{name}.part-presync-{}-{name}", first.name));
    let waits = |work: &Value| {
        work["status"]["resourceStatus"]
            .to_string()
            .contains("waiting for its status")
    };
    hub.wait_for(&work, waits).await?;
    let config_map = ObjectRef::config_map(name, "a");
    assert!(cluster1.get(&config_map).await?.is_none(), "the sync has not waited");
    report(cluster1, &first, "True").await?;
    cluster1.wait_for(&config_map, |_| true).await?;

    // Changed content runs again, and its failure stops the sync.
    git.commit(&[
        ("custom-hook/hook.json", &hook(2)),
        ("custom-hook/settings.yaml", &settings("blue")),
    ])?;
    hub.refresh_application(name, "hard").await?;
    let second = check_of_size(cluster1, group, 2).await?;
    assert_ne!(first.name, second.name);
    report(cluster1, &second, "False").await?;
    let application = ObjectRef::application(name);
    hub.wait_for_value(&application, "/status/operationState/phase", "Failed")
        .await?;
    let live = cluster1.read(&config_map).await?;
    assert_eq!(live["data"]["colour"], "green");
    hub.delete(&application).await
}

/// Returns the hook of this size, once it exists.
async fn check_of_size(cluster1: &ManagedCluster, group: &str, size: u8) -> Result<ObjectRef> {
    let api_version = format!("{group}/v1");
    eventually("the hook exists", DEADLINE, async || {
        let checks = cluster1.list(&api_version, "Check").await.ok()?;
        let check = checks.into_iter().find(|check| check["spec"]["size"] == size)?;
        let text = |key: &str| check["metadata"][key].as_str();
        Some(ObjectRef::namespaced(
            &api_version,
            "Check",
            text("namespace")?,
            text("name")?,
        ))
    })
    .await
}

/// Writes the condition Failed or Ready of a hook.
async fn report(cluster1: &ManagedCluster, check: &ObjectRef, ready: &str) -> Result<()> {
    let failed = if ready == "True" { "False" } else { "True" };
    let conditions = json!([{"type": "Ready", "status": ready}, {"type": "Failed", "status": failed}]);
    let status = json!({"status": {"conditions": conditions}});
    cluster1.patch_status(check, &status).await.map(drop)
}
