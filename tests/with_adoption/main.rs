//! Checks that an installation of argocd-agent by argocd-pull-integration is taken over: a real API server with the objects that
//! its controller leaves behind, and the controller as shipped, with its own ServiceAccount. Only this test uses the hub.
//!
//! If the testbed is not available (no Go …), the tests fail and name what is missing.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "clippy.toml restricts the program; tests may read files and the clock, and print"
)]

#[path = "../common/agent_controller.rs"]
mod agent_controller;
#[path = "../with_agents/controller.rs"]
mod controller;
mod peer;

use agent_controller::ACCOUNT;
use anyhow::{Context, Result, ensure};
use peer::{addon, decoded, management, secret, work};
use serde_json::{Value, json};
use testbed::{Hub, ObjectRef, is_true};
use testing::read_condition;

const CLUSTERS: [&str; 3] = ["eu1", "eu2", "eu3"];

fn fleet() -> ObjectRef {
    ObjectRef::gitops_cluster("fleet")
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "the steps depend on each other")]
async fn takes_over_argocd_pull_integration_unchanged() -> Result<()> {
    let hub = Hub::start().await?;
    for cluster in CLUSTERS {
        hub.declare_managed_cluster(cluster).await?;
    }
    peer::install(&hub, &CLUSTERS).await?;
    hub.select("fleet", &["eu1", "eu2"]).await?;
    let read = async |object: &ObjectRef| hub.get(object).await?.with_context(|| format!("{object:?} is there"));
    let mut kept_objects = Vec::new();
    for name in ["argocd-agent-ca", "argocd-agent-jwt"] {
        kept_objects.push((secret(name), read(&secret(name)).await?));
    }
    let mut theirs = vec![(peer::template(), read(&peer::template()).await?)];
    for cluster in CLUSTERS {
        for object in [
            secret(&format!("argocd-cluster-client-{cluster}")),
            peer::config(cluster),
        ] {
            theirs.push((object.clone(), read(&object).await?));
        }
    }
    let untouched = async |objects: &[(ObjectRef, Value)]| {
        for (object, before) in objects {
            let now = read(object).await?;
            ensure!(now == *before, "{object:?} is another: {now:#}");
        }
        Ok(())
    };
    let not_selected = [
        management(),
        addon("eu1"),
        addon("eu2"),
        addon("eu3"),
        work("eu3"),
        secret("cluster-eu3"),
    ];
    let mut waiting = Vec::new();
    for object in not_selected {
        waiting.push((object.clone(), read(&object).await?));
    }
    let mut before = Vec::new();
    for cluster in CLUSTERS {
        before.push((
            read(&secret(&format!("cluster-{cluster}"))).await?,
            read(&work(cluster)).await?,
        ));
    }

    let running = controller::start(&hub, &["--leader-elect=false"]).await?;
    let gitops = fleet().with(json!({"spec": {
        "placementRef": {"kind": "Placement", "name": "fleet"},
        "argoCDAgentAddon": {"principalServerAddress": "192.0.2.7", "principalServerPort": "443", "mode": "managed"},
    }}));
    hub.create(&gitops).await?;
    // A cluster that is not selected blocks the adoption, and the condition names it.
    let updated = hub
        .wait_for(&fleet(), |fleet| {
            read_condition(fleet, "AddonConfigured")[2].contains("eu3")
        })
        .await?;
    assert_eq!(read_condition(&updated, "AddonConfigured")[0], "False", "{updated:#}");
    let is_proxy = |cluster: &str| {
        let server = format!("https://argocd-agent-resource-proxy:9090?agentName={cluster}");
        move |secret: &Value| decoded(&secret["data"]["server"]).is_ok_and(|text| text == server)
    };
    for cluster in ["eu1", "eu2"] {
        hub.wait_for(&secret(&format!("cluster-{cluster}")), is_proxy(cluster))
            .await?;
    }
    untouched(&waiting).await?;

    hub.select("fleet", &CLUSTERS).await?;
    let is_ours =
        |management: &Value| management["spec"]["installStrategy"]["placements"][0]["name"] == "fleet-argocd-agent";
    let adopted = hub.wait_for(&management(), is_ours).await?;
    assert_eq!(adopted["metadata"]["uid"], waiting[0].1["metadata"]["uid"]);
    for (cluster, (known, brought)) in CLUSTERS.into_iter().zip(&before) {
        let is_released = |addon: &Value| addon["spec"]["configs"].as_array().is_none_or(Vec::is_empty);
        let released = hub.wait_for(&addon(cluster), is_released).await?;
        let labels = &released["metadata"]["labels"];
        assert_eq!(
            labels["app.kubernetes.io/managed-by"],
            Value::Null,
            "OCM manages it now"
        );
        let now = hub
            .wait_for(&secret(&format!("cluster-{cluster}")), is_proxy(cluster))
            .await?;
        assert_eq!(now["metadata"]["uid"], known["metadata"]["uid"]);
        assert_eq!(
            now["data"]["config"], known["data"]["config"],
            "a valid certificate is kept"
        );
        let owner = &now["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"];
        assert_eq!(owner, "argocd/fleet");
        let brings_it = |work: &Value| {
            let manifests = work["spec"]["workload"]["manifests"].as_array().into_iter().flatten();
            let theirs = &brought["spec"]["workload"]["manifests"][0]["data"]["ca.crt"];
            let is_owned = work["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"] == "argocd/fleet";
            is_owned
                && manifests
                    .into_iter()
                    .any(|manifest| manifest["data"]["ca.crt"] == *theirs)
        };
        let work = hub.wait_for(&work(cluster), brings_it).await?;
        assert_eq!(work["metadata"]["uid"], brought["metadata"]["uid"]);
    }
    hub.wait_for(&fleet(), |fleet| is_true(fleet, "AddonConfigured"))
        .await?;
    untouched(&kept_objects).await?;
    untouched(&theirs).await?;
    running.terminate().await?;
    let log = std::fs::read_to_string(hub.logs().join("controller.log"))?;
    ensure!(!log.contains("forbidden"), "{log}");
    let requests = hub.requests_by(ACCOUNT)?;
    let deleted: Vec<_> = requests
        .iter()
        .filter(|request| request["verb"] == "delete")
        .map(|request| &request["objectRef"])
        .collect();
    assert_eq!(deleted, [&Value::Null; 0]);
    Ok(())
}
