//! Tests of a hub and one managed cluster: works are validated, applied, rolled out and reported on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::{Hub, ManagedClusterOptions, ObjectRef, condition, is_applied, is_true};

fn work(name: &str, manifests: &Value) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"namespace": "cluster1", "name": name},
        "spec": {
            "workload": {"manifests": manifests},
            "manifestConfigs": [{
                "resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": "*", "name": "*"},
                "feedbackRules": [{"type": "WellKnownStatus"}],
            }],
        },
    })
}

fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "default", "name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]},
            },
        },
    })
}

#[tokio::test]
async fn work_is_applied_and_reported_and_an_invalid_one_refused() -> anyhow::Result<()> {
    testbed::Parts::ensure()?;
    let started = Instant::now();
    let hub = Hub::start().await?;
    println!("hub up after {:?}", started.elapsed());
    let cluster1 = hub
        .add_managed_cluster("cluster1", ManagedClusterOptions::default())
        .await?;
    let up = started.elapsed();
    println!("hub and cluster up after {up:?}");

    hub.create(&work("web", &json!([deployment(2)]))).await?;
    let web = ObjectRef::deployment("default", "web");
    cluster1
        .wait_for(&web, |web| {
            is_true(web, "Available") && web["status"]["readyReplicas"] == 2
        })
        .await?;
    println!("rolled out after {:?}", started.elapsed());
    let name = ObjectRef::manifest_work("cluster1", "web");
    let reported = |work: &Value| {
        let values = &work["status"]["resourceStatus"]["manifests"][0]["statusFeedback"]["values"];
        let ready = values
            .as_array()
            .into_iter()
            .flatten()
            .find(|value| value["name"] == "ReadyReplicas");
        is_applied(work) && ready.is_some_and(|ready| ready["fieldValue"]["integer"] == 2)
    };
    hub.wait_for(&name, reported).await?;
    println!("reported after {:?}", started.elapsed());

    let nameless = json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default"}}]);
    let refused = hub
        .create(&work("nameless", &nameless))
        .await
        .expect_err("a nameless manifest is refused");
    assert!(
        refused.to_string().contains("name must be set in manifest"),
        "{refused}"
    );

    hub.delete(&name).await?;
    hub.wait_gone(&name).await?;
    cluster1.wait_gone(&web).await?;
    println!("removed after {:?}", started.elapsed());
    Ok(())
}

#[tokio::test]
async fn rollout_can_fail_and_the_agent_can_stop() -> anyhow::Result<()> {
    let hub = Hub::start().await?;
    let mut cluster1 = hub
        .add_managed_cluster("cluster1", ManagedClusterOptions::default())
        .await?;
    let mut broken = deployment(1);
    broken["spec"]["progressDeadlineSeconds"] = json!(3);
    broken["spec"]["template"]["spec"]["nodeSelector"] = json!({"no": "such-node"});
    hub.create(&work("web", &json!([broken]))).await?;
    let web = ObjectRef::deployment("default", "web");
    let past_deadline =
        |web: &Value| condition(web, "Progressing").is_some_and(|it| it["reason"] == "ProgressDeadlineExceeded");
    cluster1.wait_for(&web, past_deadline).await?;

    cluster1.stop_agent();
    let name = ObjectRef::manifest_work("cluster1", "web");
    hub.delete(&name).await?;
    cluster1.holds_for(&web, Duration::from_secs(3), |_| true).await?;
    cluster1.start_agent().await?;
    hub.wait_gone(&name).await?;
    cluster1.wait_gone(&web).await
}

#[tokio::test]
async fn agent_has_ocms_permissions_and_labelled_cluster_roles() -> anyhow::Result<()> {
    let hub = Hub::start().await?;
    let options = ManagedClusterOptions::default();
    let all_rights = ManagedClusterOptions {
        cluster_admin: true,
        ..options.clone()
    };
    let (cluster1, cluster2) = tokio::try_join!(
        hub.add_managed_cluster("cluster1", options),
        hub.add_managed_cluster("cluster2", all_rights)
    )?;
    let class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "disks.example.com",
    });
    let mut work = work("fast", &json!([class]));
    hub.create(&work).await?;
    let name = ObjectRef::of(&work);
    let refused = |work: &Value| {
        let applied = &work["status"]["resourceStatus"]["manifests"][0]["conditions"][0];
        let message = applied["message"].as_str().unwrap_or_default();
        applied["status"] == "False" && message.contains("open-cluster-management-agent:klusterlet-work-sa")
    };
    hub.wait_for(&name, refused).await?;
    assert!(cluster1.get(&ObjectRef::of(&class)).await?.is_none());

    cluster1
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": "work-on-storage",
                "labels": {"open-cluster-management.io/aggregate-to-work": "true"},
            },
            "rules": [{"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["*"]}],
        }))
        .await?;
    // Each failure has doubled the agent's backoff; a change of the labels makes it retry now.
    hub.patch(&name, &json!({"metadata": {"labels": {"try": "again"}}}))
        .await?;
    hub.wait_for(&name, is_applied).await?;

    work["metadata"]["namespace"] = json!("cluster2");
    hub.create(&work).await?;
    cluster2.wait_for(&ObjectRef::of(&class), |_| true).await.map(drop)
}

#[tokio::test]
async fn service_account_has_only_its_permissions() -> anyhow::Result<()> {
    let hub = Hub::start().await?;
    hub.apply_yaml("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reader}\n")?;
    hub.kubectl(&[
        "create",
        "clusterrole",
        "reader",
        "--verb=list",
        "--resource=manifestworks",
    ])?;
    let bind = ["create", "clusterrolebinding", "reader", "--clusterrole=reader"];
    hub.kubectl(&[&bind[..], &["--serviceaccount=default:reader"]].concat())?;
    let kubeconfig = hub.service_account_kubeconfig("default", "reader")?;
    let kubeconfig = kubeconfig.to_str().expect("a UTF-8 path");

    let list = |what| hub.kubectl(&["get", what, "--all-namespaces", "--kubeconfig", kubeconfig]);
    list("manifestworks")?;
    let refused = list("secrets").expect_err("no role permits it");
    assert!(
        refused.to_string().contains("system:serviceaccount:default:reader"),
        "{refused}"
    );
    Ok(())
}
