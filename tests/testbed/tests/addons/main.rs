//! Tests of OCM's add-ons from templates, with OCM's own controllers and agents: the behavior that the controller depends on.
//!
//! The tests share a hub and two clusters, and each has its own add-on.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::{Hub, ManagedCluster, ObjectRef, condition, is_true};
use tokio::sync::OnceCell;

mod addon;
mod signer;

use addon::{AddOn, NAMESPACE, SIGNER, applied_template};

struct Fleet {
    hub: Hub,
    cluster1: ManagedCluster,
    cluster2: ManagedCluster,
}

/// Never dropped: its processes end with this program.
static FLEET: OnceCell<Fleet> = OnceCell::const_new();

async fn fleet() -> Result<&'static Fleet> {
    let start = async || {
        let (hub, cluster1, cluster2) = Hub::start_with_joined_clusters().await?;
        Ok::<_, anyhow::Error>(Fleet {
            hub,
            cluster1,
            cluster2,
        })
    };
    FLEET.get_or_try_init(start).await
}

impl Fleet {
    /// Creates an add-on with a version 1 that works, on the given clusters.
    async fn addon(&self, name: &'static str, configs: &Value, clusters: &[&ManagedCluster]) -> Result<AddOn<'_>> {
        let addon = AddOn { hub: &self.hub, name };
        addon.write_template("v1", &json!({}), configs).await?;
        addon.write_settings().await?;
        let names: Vec<_> = clusters.iter().map(|cluster| cluster.name()).collect();
        addon.decide(name, &names).await?;
        addon.install(&[(name, "v1")], "v1").await?;
        for cluster in clusters {
            addon.wait_for_version(cluster, "v1").await?;
        }
        Ok(addon)
    }
}

/// Returns a node selector with which Pods run nowhere.
fn no_node() -> Value {
    json!({"kubernetes.io/hostname": "nowhere"})
}

#[tokio::test]
async fn add_on_follows_decisions_without_a_scheduler() -> Result<()> {
    let fleet = fleet().await?;
    let Fleet {
        hub,
        cluster1,
        cluster2,
    } = fleet;
    let addon = fleet.addon("follows", &json!([]), &[cluster1, cluster2]).await?;
    for cluster in [cluster1, cluster2] {
        hub.wait_for(&addon.on(cluster.name()), |it| is_true(it, "Available"))
            .await?;
        let settings = cluster.wait_for(&addon.config_map("settings"), |_| true).await?;
        let expected = json!({
            "version": "v1",
            "principal": "hub.example.com:8443",
            "cluster": cluster.name(),
            "namespace": "follows",
            "unknown": "<>",
        });
        assert_eq!(settings["data"], expected);
    }
    let placement = ObjectRef::namespaced(
        "cluster.open-cluster-management.io/v1beta1",
        "Placement",
        NAMESPACE,
        "follows",
    );
    let placement = hub.get(&placement).await?.context("the Placement was deleted")?;
    assert_eq!(placement["status"], Value::Null);

    addon.decide("follows", &["cluster1"]).await?;
    hub.wait_gone(&addon.work("cluster2")).await?;
    cluster2.wait_gone(&addon.config_map("settings")).await?;
    let namespace = ObjectRef::namespace("follows");
    let namespace = cluster2.get(&namespace).await?.context("the namespace was deleted")?;
    assert_eq!(namespace["metadata"]["deletionTimestamp"], Value::Null);
    assert!(hub.get(&addon.on("cluster1")).await?.is_some());

    addon.install(&[], "v1").await?;
    hub.wait_gone(&addon.on("cluster1")).await?;
    hub.wait_gone(&addon.work("cluster1")).await
}

#[tokio::test]
async fn any_signer_can_issue_the_add_ons_certificate() -> Result<()> {
    let fleet = fleet().await?;
    let Fleet { hub, cluster1, .. } = fleet;
    let addon = fleet.addon("signed", &json!([]), &[cluster1]).await?;
    let first = addon.wait_for_request("cluster1", &[]).await?;
    let spec = &first["spec"];
    assert_eq!(spec["signerName"], SIGNER);
    assert_eq!(
        spec["username"],
        "system:open-cluster-management:cluster1:cluster1-agent"
    );
    let groups = spec["groups"].as_array().context("no groups")?;
    assert!(groups.contains(&json!("system:open-cluster-management:cluster1")));
    assert_eq!(
        first["metadata"]["labels"],
        json!({"open-cluster-management.io/addon-name": "signed", "open-cluster-management.io/cluster-name": "cluster1"})
    );
    let approved = hub
        .wait_for(&ObjectRef::of(&first), |it| is_true(it, "Approved"))
        .await?;
    assert_eq!(approved["status"]["certificate"], Value::Null);

    // An agent waits for its request until the request is deleted, also after a failure.
    let failed = json!({"type": "Failed", "status": "True", "reason": "Test", "message": ""});
    let conditions = [approved["status"]["conditions"][0].clone(), failed];
    hub.patch_status(&ObjectRef::of(&first), &json!({"status": {"conditions": conditions}}))
        .await?;
    assert_eq!(addon.requests_of("cluster1").await?, 1);
    hub.delete(&ObjectRef::of(&first)).await?;
    let secret = "signed-open-cluster-management.io-argocd-agent-addon-client-cert";
    let secret = ObjectRef::secret("signed", secret);
    let mut requests = vec![first];
    let mut certificates = Vec::new();
    let issued = loop {
        let known: Vec<&Value> = requests.iter().collect();
        // The agent drops a certificate and requests another if it could not write the status of the add-on at once.
        let request = tokio::select! {
            issued = cluster1.wait_for(&secret, |_| true) => break issued?,
            request = addon.wait_for_request("cluster1", &known) => request?,
        };
        hub.wait_for(&ObjectRef::of(&request), |it| is_true(it, "Approved"))
            .await?;
        let certificate = signer::sign(&request)?;
        hub.patch_status(
            &ObjectRef::of(&request),
            &json!({"status": {"certificate": certificate}}),
        )
        .await?;
        certificates.push(json!(certificate));
        requests.push(request);
    };
    let data = issued["data"].as_object().context("an empty Secret")?;
    assert_eq!(data.keys().collect::<Vec<_>>(), ["cluster-name", "tls.crt", "tls.key"]);
    assert_eq!(Some(&data["tls.crt"]), certificates.last());
    hub.wait_for(&addon.on("cluster1"), |it| is_true(it, "ClusterCertificateRotated"))
        .await?;
    assert_eq!(addon.requests_of("cluster1").await?, certificates.len());

    // Without its certificate, an agent requests another.
    cluster1.delete(&secret).await?;
    let known: Vec<&Value> = requests.iter().collect();
    addon.wait_for_request("cluster1", &known).await?;
    Ok(())
}

#[tokio::test]
async fn add_on_rollout_does_not_wait_for_pods() -> Result<()> {
    let fleet = fleet().await?;
    let Fleet {
        hub,
        cluster1,
        cluster2,
    } = fleet;
    let addon = fleet.addon("rolled-out", &json!([]), &[cluster1, cluster2]).await?;
    addon.write_template("broken", &no_node(), &json!([])).await?;
    addon.install(&[("rolled-out", "broken")], "v1").await?;
    for cluster in [cluster1, cluster2] {
        let addon = addon.wait_for_version(cluster, "broken").await?;
        assert!(is_true(&addon, "Configured"));
        let progressing = condition(&addon, "Progressing").context("no condition Progressing")?;
        assert_eq!(progressing["reason"], "Completed");
        // The old Pods keep running, which is sufficient for OCM.
        let agent = ObjectRef::deployment("rolled-out", "agent");
        cluster
            .wait_for(&agent, |it| it["status"]["unavailableReplicas"] == 1)
            .await?;
    }
    // A rollback is a rollout with another name.
    addon.install(&[("rolled-out", "v1")], "v1").await?;
    for cluster in [cluster1, cluster2] {
        addon.wait_for_version(cluster, "v1").await?;
        let settings = addon.config_map("settings");
        cluster.wait_for(&settings, |it| it["data"]["version"] == "v1").await?;
    }
    hub.delete(&ObjectRef::cluster_management_addon("rolled-out")).await?;
    hub.wait_gone(&addon.work("cluster1")).await?;
    hub.wait_gone(&addon.work("cluster2")).await
}

#[tokio::test]
async fn later_decision_for_a_cluster_applies() -> Result<()> {
    let fleet = fleet().await?;
    let Fleet {
        hub,
        cluster1,
        cluster2,
    } = fleet;
    let addon = fleet.addon("paced", &json!([]), &[cluster1, cluster2]).await?;
    addon.write_template("v2", &json!({}), &json!([])).await?;
    addon.decide("paced-next", &[]).await?;
    addon.install(&[("paced", "v1"), ("paced-next", "v2")], "v1").await?;
    addon.decide("paced-next", &["cluster1"]).await?;
    addon.wait_for_version(cluster1, "v2").await?;
    let second = hub
        .get(&addon.on("cluster2"))
        .await?
        .context("the second cluster has no work")?;
    assert_eq!(applied_template(&second), Some("paced-v1"));

    addon.decide("paced-next", &["cluster1", "cluster2"]).await?;
    addon.wait_for_version(cluster2, "v2").await?;
    // A cluster that has moved stays as it is when the first entry follows.
    let before = hub.get(&addon.work("cluster1")).await?.context("no work")?;
    addon.install(&[("paced", "v2"), ("paced-next", "v2")], "v1").await?;
    // OCM reads entries and decisions separately: a decision that is deleted before the entry is read would move the cluster
    // back.
    let paced = ObjectRef::cluster_management_addon("paced");
    let second_version = addon.template("v2");
    hub.wait_for(&paced, |it| {
        let configs = it["status"]["installProgressions"][0]["configReferences"].as_array();
        let mut configs = configs.into_iter().flatten();
        configs.any(|config| config["desiredConfig"]["name"] == *second_version)
    })
    .await?;
    addon.decide("paced-next", &[]).await?;
    hub.wait_for(&paced, |it| {
        let first = &it["status"]["installProgressions"][0]["conditions"][0];
        first["reason"] == "Completed"
            && first["message"]
                .as_str()
                .is_some_and(|message| message.starts_with("2/2"))
    })
    .await?;
    let after = hub
        .get(&addon.work("cluster1"))
        .await?
        .context("the work was deleted")?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    Ok(())
}

#[tokio::test]
async fn default_template_decides_update_strategies() -> Result<()> {
    let fleet = fleet().await?;
    let Fleet { cluster1, .. } = fleet;
    let once = json!([{
        "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "once", "namespace": "*"},
        "updateStrategy": {"type": "CreateOnly"},
    }]);
    let addon = fleet.addon("configured", &once, &[cluster1]).await?;
    addon.write_template("v2", &json!({}), &json!([])).await?;
    addon.install(&[("configured", "v2")], "v1").await?;
    addon.wait_for_version(cluster1, "v2").await?;
    let settings = addon.config_map("settings");
    cluster1.wait_for(&settings, |it| it["data"]["version"] == "v2").await?;
    let once = cluster1
        .get(&addon.config_map("once"))
        .await?
        .context("no ConfigMap once")?;
    assert_eq!(once["data"]["version"], "v1");
    Ok(())
}
