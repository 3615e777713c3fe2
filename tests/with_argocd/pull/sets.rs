//! Tests of ApplicationSets: their steps, and the objects that stay when they are deleted.

use super::delivery::{application_of, application_set, set_named};
use super::{CLUSTER, FINALIZER, REFRESH, SKIP_RECONCILE, health, runs, scale, serves, stage, works_of};
use crate::documents::documents;
use crate::fleet::placement::open;
use crate::stage::shipped;
use anyhow::Result;
use serde_json::{Value, json};
use testbed::{GitRepository, ObjectRef};

#[tokio::test]
async fn applications_that_outlive_their_set_keep_their_works() -> Result<()> {
    let stage = stage().await?;
    let (hub, cluster1, cluster2) = (&stage.hub, &stage.cluster1, &stage.cluster2);
    let name = "pull-preserved";
    let git = GitRepository::new()?;
    let commit = git.commit_folder(&shipped("guestbook"), "guestbook")?;
    hub.kubectl_with_input("apply -f -", &application_set(name, &git.url()))?;
    let guestbook = ObjectRef::deployment(name, "guestbook-ui");
    let mut before = Vec::new();
    for cluster in [cluster1, cluster2] {
        let application = application_of(name, cluster.name());
        hub.wait_for(&application, |app| runs(app, &commit)).await?;
        let served = serves(cluster, &guestbook, 1).await?;
        let works = works_of(hub, &application).await?;
        assert_eq!(works.len(), 1, "{works:#?}");
        before.push((cluster, works, served["metadata"]["uid"].clone()));
    }

    hub.kubectl(&format!(
        "delete applicationset {name} -n=argocd --cascade=orphan --wait=false"
    ))?;
    hub.wait_gone(&set_named(name)).await?;
    let commit = scale(&git, 2)?;
    for (cluster, works, uid) in before {
        let application = application_of(name, cluster.name());
        let is_alone = |app: &Value| app["metadata"]["ownerReferences"].is_null() && runs(app, &commit);
        hub.wait_for(&application, is_alone).await?;
        let served = serves(cluster, &guestbook, 2).await?;
        assert_eq!(served["metadata"]["uid"], uid);
        let now = works_of(hub, &application).await?;
        assert_eq!(now.len(), 1, "{now:#?}");
        assert_eq!(now[0]["metadata"]["uid"], works[0]["metadata"]["uid"]);
        assert!(now[0]["metadata"]["deletionTimestamp"].is_null());

        hub.delete_and_wait(&application).await?;
        cluster.wait_gone(&guestbook).await?;
    }
    Ok(())
}

/// The ApplicationSet controller removes Argo CD's plain finalizer from an Application whose destination is no longer known, before
/// it deletes it.
#[tokio::test]
async fn objects_are_deleted_after_the_cluster_secret_with_the_background_finalizer() -> Result<()> {
    let stage = stage().await?;
    let (hub, cluster1) = (&stage.hub, &stage.cluster1);
    let git = GitRepository::new()?;
    let commit = git.commit_folder(&shipped("guestbook"), "guestbook")?;
    let background = format!("{FINALIZER}/background");
    for (name, finalizer) in [("pull-orphaned", FINALIZER), ("pull-unregistered", &background)] {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": name, "namespace": "argocd", "labels": {"argocd.argoproj.io/secret-type": "cluster"},
                "annotations": {SKIP_RECONCILE: "true"},
            },
            "stringData": {"name": name, "server": format!("https://{name}"), "config": "{}"},
        });
        hub.apply(&secret).await?;
        let mut set = documents(&application_set(name, &git.url()))?.remove(0);
        let of = |elements: Value| json!([{"list": {"elements": elements}}]);
        set["spec"]["generators"] = of(json!([{"name": name, "server": format!("https://{name}")}]));
        let metadata = &mut set["spec"]["template"]["metadata"];
        metadata["annotations"][CLUSTER] = json!("cluster1");
        metadata["finalizers"] = json!([finalizer]);
        hub.apply(&set).await?;
        let application = application_of(name, name);
        hub.wait_for(&application, |app| runs(app, &commit)).await?;
        let guestbook = ObjectRef::deployment(name, "guestbook-ui");
        serves(cluster1, &guestbook, 1).await?;

        hub.delete(&ObjectRef::secret("argocd", name)).await?;
        // Nothing shows that the ApplicationSet controller has seen the deletion.
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        let none = json!({"spec": {"generators": of(json!([]))}});
        hub.patch(&set_named(name), &none).await?;
        hub.wait_gone(&application).await?;
        cluster1.wait_gone(&application).await?;
        if finalizer == FINALIZER {
            let kept = cluster1.read(&guestbook).await?;
            assert!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept}");
        } else {
            cluster1.wait_gone(&guestbook).await?;
        }
        hub.delete(&set_named(name)).await?;
    }
    Ok(())
}

/// Returns a Deployment whose Pods run only on nodes with this label.
fn deployment(only_on: &str) -> Result<String> {
    let manifest = std::fs::read_to_string(shipped("guestbook/deployment.yaml"))?;
    let changed = manifest.replace(
        "    spec:\n      containers:",
        &format!("    spec:\n      nodeSelector: {{{only_on}: 'true'}}\n      containers:"),
    );
    assert_ne!(changed, manifest);
    Ok(changed)
}

#[tokio::test]
async fn rolling_sync_proceeds_step_by_step() -> Result<()> {
    let stage = stage().await?;
    let (hub, cluster1, cluster2) = (&stage.hub, &stage.cluster1, &stage.cluster2);
    let name = "pull-rolling";
    let git = GitRepository::new()?;
    let first = git.commit_folder(&shipped("guestbook"), "guestbook")?;
    let step = |cluster: &str| json!({"matchExpressions": [{"key": "cluster", "operator": "In", "values": [cluster]}]});
    let steps = json!([step("cluster1"), step("cluster2")]);
    let strategy = json!({"type": "RollingSync", "rollingSync": {"steps": steps}});
    let set = application_set(name, &git.url());
    let set = set.replacen("spec:\n", &format!("spec:\n  strategy: {strategy}\n"), 1);
    hub.kubectl_with_input("apply -f -", &set)?;

    // The status of the Applications in the set, in the order of the steps.
    let step_statuses = |set: &Value, revision: &str| -> [String; 2] {
        ["cluster1", "cluster2"].map(|cluster| {
            let application = format!("{cluster}-{name}");
            let of_it =
                |entry: &&Value| entry["application"] == *application && entry["targetRevisions"][0] == revision;
            let mut all = set["status"]["applicationStatus"].as_array().into_iter().flatten();
            let status = all.find(of_it).and_then(|entry| entry["status"].as_str());
            status.unwrap_or_default().to_owned()
        })
    };
    let healthy = |set: &Value, revision: &str| step_statuses(set, revision) == ["Healthy", "Healthy"];
    let object = set_named(name);
    hub.wait_for(&object, |set| healthy(set, &first)).await?;

    // If the cluster of the second step were the first to see the commit, Argo CD would find the first step healthy and continue.
    // The test waits until cluster2 has refreshed, and then refreshes cluster1.
    let [one, two] = ["cluster1", "cluster2"].map(|cluster| application_of(name, cluster));
    let reconciled_at = |app: &Value| app["status"]["reconciledAt"].clone();
    let before = reconciled_at(&cluster2.read(&two).await?);
    cluster2.wait_for(&two, |app| reconciled_at(app) != before).await?;
    let second = git.commit(&[("guestbook/deployment.yaml", &deployment(name)?)])?;
    let refresh = json!({"metadata": {"annotations": {REFRESH: "normal"}}});
    hub.patch(&one, &refresh).await?;
    let rolls_out = |app: &Value| {
        let synced = &app["status"]["operationState"]["syncResult"]["revision"];
        health(app) == "Progressing" && *synced == second.as_str()
    };
    hub.wait_for(&one, rolls_out).await?;
    hub.wait_for(&object, |set| step_statuses(set, &second) == ["Progressing", "Waiting"])
        .await?;
    let guestbook = ObjectRef::deployment(name, "guestbook-ui");
    let later = cluster2.read(&guestbook).await?;
    assert!(
        later["spec"]["template"]["spec"]["nodeSelector"].is_null(),
        "the second step has not started"
    );

    open(cluster1, name).await?;
    hub.wait_for(&two, rolls_out).await?;
    let now = hub.wait_for(&one, |app| runs(app, &second)).await?;
    assert_eq!(health(&now), "Healthy");
    open(cluster2, name).await?;
    hub.wait_for(&object, |set| healthy(set, &second)).await?;
    serves(cluster1, &guestbook, 1).await?;
    serves(cluster2, &guestbook, 1).await?;

    hub.delete(&object).await?;
    for application in [one, two] {
        hub.wait_gone(&application).await?;
    }
    Ok(())
}
