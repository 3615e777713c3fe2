//! The tunnel itself, without this program.

use anyhow::{Context, Result, ensure};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use testbed::wait::{self, DEADLINE};
use testbed::{ClusterProxy, Hub, ManagedClusterOptions};

#[tokio::test]
async fn carries_requests_with_the_identity_of_a_hub_account() -> Result<()> {
    let hub = Hub::start().await?;
    let cluster = hub
        .add_managed_cluster("cluster1", ManagedClusterOptions::default())
        .await?;
    let proxy = ClusterProxy::start(&hub, &[&cluster]).await?;
    hub.apply(
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer", "namespace": "argocd"}}),
    )
    .await?;
    let kubeconfig = Kubeconfig::read_from(hub.service_account_kubeconfig("argocd", "viewer")?)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.cluster_url = proxy.url().parse()?;
    config.root_cert_file = Some(proxy.authority().to_owned());
    let client = Client::try_from(config)?;
    let get = async |path: &str| {
        let request = http::Request::get(format!("/cluster1{path}")).body(Vec::new())?;
        Ok::<Value, anyhow::Error>(client.request(request).await?)
    };

    let refused = get("/api/v1/namespaces/default/pods")
        .await
        .err()
        .context("it has no rights")?;
    let user = "cluster:hub:system:serviceaccount:argocd:viewer";
    ensure!(refused.to_string().contains(user), "{refused}");
    cluster.kubectl(&[
        "create",
        "clusterrolebinding",
        "viewer",
        "--clusterrole=view",
        &format!("--user={user}"),
    ])?;
    let pods = async || get("/api/v1/namespaces/default/pods").await.ok();
    let pods = wait::eventually("the account may read Pods", DEADLINE, pods).await?;
    ensure!(pods["kind"] == "PodList", "{pods}");
    Ok(())
}
