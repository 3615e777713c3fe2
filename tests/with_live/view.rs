//! Tests of the views of a real cluster.

use crate::stage::{CHANGED, OF_SHOP, WEB, stage};
use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use testbed::ObjectRef;
use testbed::wait::{self, DEADLINE};

#[tokio::test]
async fn shows_live_object_and_its_difference() -> Result<()> {
    let stage = stage().await?;
    let shown = stage.json("object", CHANGED).await?;
    ensure!(shown["live"]["metadata"]["uid"].is_string(), "{shown}");
    ensure!(shown["live"]["metadata"]["managedFields"].is_null());
    ensure!(shown["sent"]["spec"]["replicas"] == 0, "{shown}");
    ensure!(shown["difference"] == json!([]), "{}", shown["difference"]);

    let namespace = stage
        .json("object", "cluster=cluster1&group=&kind=Namespace&namespace=&name=shop")
        .await?;
    ensure!(namespace["live"]["status"]["phase"] == "Active", "{namespace}");

    stage
        .cluster1
        .kubectl("--namespace=shop set image deployment/changed web=example.com/web:2")?;
    let shown = stage.json("object", CHANGED).await?;
    let expected = json!([{
        "path": "spec.template.spec.containers[web].image",
        "sent": "example.com/web:1",
        "live": "example.com/web:2",
    }]);
    ensure!(shown["difference"] == expected, "{}", shown["difference"]);
    Ok(())
}

#[tokio::test]
async fn secrets_are_not_readable_by_default_and_masked_otherwise() -> Result<()> {
    let stage = stage().await?;
    let secret = "cluster=cluster1&group=&kind=Secret&namespace=shop&name=key";
    let (status, text) = stage.get("object", secret, &OF_SHOP).await?;
    ensure!(
        status == 403 && text.contains("live_cluster_rbac.yaml"),
        "{status}: {text}"
    );

    let user = "--user=cluster:hub:system:serviceaccount:argocd:argocd-ocm-cmp-live-clusters";
    stage
        .cluster1
        .kubectl("create role secrets --namespace=shop --verb=get --resource=secrets")?;
    stage.cluster1.kubectl(&format!(
        "create rolebinding secrets --namespace=shop --role=secrets {user}"
    ))?;
    let shown = wait::eventually("the Secret is shown", DEADLINE, async || {
        stage.json("object", secret).await.ok()
    })
    .await?;
    ensure!(
        shown["live"]["data"]["a"] == "++++++++" && shown["sent"]["data"]["a"] == "++++++++",
        "{shown}"
    );
    ensure!(
        !shown.to_string().contains("aGlkZGVu") && !shown.to_string().contains("hidden"),
        "{shown}"
    );
    Ok(())
}

/// Returns the Pods of the tree.
fn pods(tree: &Value) -> Vec<String> {
    let nodes = tree["nodes"].as_array().into_iter().flatten();
    let pods = nodes.filter(|node| node["kind"] == "Pod" && node["status"] == "Running");
    pods.filter_map(|pod| pod["name"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn shows_owned_objects_and_their_events() -> Result<()> {
    let stage = stage().await?;
    // A Pod with the labels of the Deployment, which the ReplicaSet does not own.
    let stranger = ObjectRef::namespaced("v1", "Pod", "shop", "stranger").with(json!({
        "metadata": {"labels": {"app": "web", "pod-template-hash": "x"}},
        "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}],
            "nodeSelector": {"kubernetes.io/hostname": "none"}},
    }));
    stage.cluster1.apply(&stranger).await?;
    let tree = wait::eventually("the Pods run", DEADLINE, async || {
        let tree = stage.json("tree", WEB).await.ok()?;
        (pods(&tree).len() == 2 && tree["nodes"][0]["ready"] == "2/2").then_some(tree)
    })
    .await?;
    ensure!(!pods(&tree).contains(&"stranger".to_owned()), "{tree}");
    let nodes = tree["nodes"].as_array().context("nodes")?;
    ensure!(
        nodes[0]["kind"] == "Deployment" && nodes[0]["ready"] == "2/2" && nodes[0]["owner"].is_null(),
        "{tree}"
    );
    let set = nodes
        .iter()
        .find(|node| node["kind"] == "ReplicaSet")
        .context("a ReplicaSet")?;
    ensure!(set["owner"] == nodes[0]["uid"], "{tree}");
    let pod = nodes.iter().find(|node| node["kind"] == "Pod").context("a Pod")?;
    ensure!(pod["containers"] == json!(["web"]) && pod["ready"] == "1/1", "{tree}");

    let events = stage.json("events", WEB).await?;
    let has = |kind: &str, reason: &str| {
        let mut all = events["events"].as_array().into_iter().flatten();
        all.any(|event| event["kind"] == kind && event["reason"] == reason)
    };
    ensure!(
        has("Deployment", "ScalingReplicaSet") && has("Pod", "Scheduled"),
        "{events}"
    );
    Ok(())
}

#[tokio::test]
async fn streams_the_logs_of_several_pods() -> Result<()> {
    let stage = stage().await?;
    let names = wait::eventually("the Pods run", DEADLINE, async || {
        let names = pods(&stage.json("tree", WEB).await.ok()?);
        (names.len() == 2).then_some(names)
    })
    .await?;
    let (status, text) = stage.get("logs", WEB, &OF_SHOP).await?;
    ensure!(status == 200, "{status}: {text}");
    for name in &names {
        let line = format!("[{name} web] listening on :8080\n");
        ensure!(text.contains(&line), "{line:?} is not in {text}");
    }
    let one = format!("{WEB}&pod={}&container=web&tail=1&follow=true", names[0]);
    let token = &*stage.token;
    let headers = [&OF_SHOP[..], &[("Argocd-Ocm-Cmp-Live-Token", token)]].concat();
    let path = format!("/api/v1/logs?{one}");
    let opened = async || {
        stage
            .open("GET", &path, &headers)
            .await
            .ok()
            .filter(|(status, _)| *status == 200)
    };
    let (_, mut body) = wait::eventually("the stream begins", DEADLINE, opened).await?;
    let mut text = String::new();
    stage.cluster1.log("\u{1b}[31mred")?;
    while !text.ends_with("red\n") {
        let frame = body.frame().await.context("the stream continues")??;
        text += std::str::from_utf8(frame.data_ref().context("data")?)?;
    }
    ensure!(!text.contains('\u{1b}') && !text.contains("starting"), "{text:?}");
    Ok(())
}
