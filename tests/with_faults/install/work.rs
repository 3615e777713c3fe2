//! Tests that uninstalling deletes no work, and that objects that would wait forever for the controller block its removal.

use super::{application, installation, name, version};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::{ObjectRef, wait};

const FINALIZER: &str = "argocd-ocm-cmp.github.io/gitopscluster";

#[tokio::test]
async fn uninstall_keeps_delivered_works() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    installation.run_ok(&["install", "--features=plugin,project,pull,gitopscluster"])?;
    let work = ObjectRef::manifest_work("cluster1", "shop").with(json!({
        "metadata": {"labels": {"app.kubernetes.io/name": "argocd-ocm-cmp"}},
        "spec": {"workload": {"manifests": [crate::stage::config_map("web")]}},
    }));
    let secret = ObjectRef::secret("argocd", "cluster1-cluster-secret").with(json!({
        "metadata": {"labels": {"argocd.argoproj.io/secret-type": "cluster", "app.kubernetes.io/name": "argocd-ocm-cmp-controller"}},
    }));
    let clusters = ObjectRef::gitops_cluster("all").with(json!({
        "metadata": {"finalizers": [FINALIZER]},
        "spec": {"argoServer": {"argoNamespace": "argocd"}, "placementRef": {"name": "all"}},
    }));
    let mut pulled = application("pulled", "default");
    pulled["metadata"]["labels"] = json!({"apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "true"});
    pulled["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    let ours = [work, secret, clusters, pulled, application("shop", "managed-clusters")];
    let mut made = Vec::new();
    for object in &ours {
        made.push(hub.create(object).await?);
    }
    let [_, _, clusters, pulled, shop] = made
        .iter()
        .map(ObjectRef::of)
        .collect::<Vec<_>>()
        .try_into()
        .expect("five");

    hub.delete(&pulled).await?;
    let error = installation.run_err(&["uninstall"])?;
    let printed: Vec<_> = error.lines().collect();
    assert_eq!(printed.len(), 2, "{error}");
    assert!(
        printed[0].starts_with("error: GitOpsCluster argocd/all has the controller's finalizer"),
        "{error}"
    );
    assert!(
        printed[1].starts_with("error: Application argocd/pulled is being deleted"),
        "{error}"
    );
    hub.patch(&clusters, &json!({"metadata": {"finalizers": null}})).await?;
    hub.patch(&pulled, &json!({"metadata": {"finalizers": null}})).await?;
    hub.wait_gone(&pulled).await?;

    let lines = installation.run_ok(&["uninstall"])?;
    for line in [
        "appproject.argoproj.io/managed-clusters kept: it has 1 Application",
        "customresourcedefinition.apiextensions.k8s.io/gitopsclusters.apps.open-cluster-management.io kept: it has 1 object",
    ] {
        assert!(lines.lines().any(|printed| printed == line), "{line}: {lines}");
    }
    for was in made
        .iter()
        .filter(|object| ObjectRef::of(object) != pulled && ObjectRef::of(object) != clusters)
    {
        let object = hub.get(&ObjectRef::of(was)).await?.unwrap_or(Value::Null);
        assert_eq!(version(was), version(&object), "{}", name(was));
    }
    for object in made.iter().map(ObjectRef::of).filter(|object| *object != pulled) {
        hub.delete_and_wait(&object).await?;
    }
    assert!(hub.get(&shop).await?.is_none());
    installation.run_ok(&["uninstall"])?;
    installation.until_restored().await
}

#[tokio::test]
async fn uninstall_keeps_a_crd_whose_objects_cannot_be_listed() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    installation.run_ok(&["install", "--features=report"])?;
    let name = "multiclusterapplicationsetreports.apps.open-cluster-management.io";
    let crd = ObjectRef::crd(name);
    let mut versions = hub.read(&crd).await?["spec"]["versions"].take();
    versions[0]["served"] = json!(false);
    hub.patch(&crd, &json!({"spec": {"versions": versions}})).await?;
    let lines = installation.run_ok(&["uninstall"])?;
    let expected = format!(
        "customresourcedefinition.apiextensions.k8s.io/{name} kept: it is not served and may have objects: see its conditions"
    );
    assert!(lines.lines().any(|line| line == expected), "{lines}");
    versions[0]["served"] = json!(true);
    hub.patch(&crd, &json!({"spec": {"versions": versions}})).await?;
    let is_deleted = async || {
        let lines = installation.run_ok(&["uninstall"]).ok()?;
        lines.contains(&format!("{name} deleted")).then_some(())
    };
    wait::eventually("the CRD is served again and deleted", wait::DEADLINE, is_deleted).await?;
    installation.until_restored().await
}

#[tokio::test]
async fn uninstall_leaves_acms_crd_alone() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    let printed = super::printed("json", "--features=report")?;
    let mut crd: Value = serde_json::from_str(printed.lines().next().unwrap_or_default())?;
    crd["metadata"]["labels"] = json!({"of": "acm"});
    let made = hub.create(&crd).await?;
    let lines = installation.run_ok(&["install", "--features=report"])?;
    let shown = "customresourcedefinition.apiextensions.k8s.io/multiclusterapplicationsetreports.apps.open-cluster-management.io";
    assert!(lines.starts_with(&format!("{shown} kept\n")), "{lines}");
    let lines = installation.run_ok(&["uninstall"])?;
    assert!(!lines.contains(shown), "{lines}");
    let object = hub.get(&ObjectRef::of(&made)).await?.unwrap_or(Value::Null);
    assert_eq!(object["metadata"]["uid"], made["metadata"]["uid"]);
    hub.delete(&ObjectRef::of(&made)).await?;
    installation.until_restored().await
}
