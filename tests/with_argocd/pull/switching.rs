//! Tests of the migration from argocd-pull-integration to the controller, and from the controller to other software, while
//! deployed objects keep running.

use super::{
    CLUSTER, HUB_NAME, HUB_NAMESPACE, PULL, SKIP_RECONCILE, add_cluster, application, controller, runs, serves,
    works_of,
};
use crate::controller::{ACCOUNT, Controller};
use crate::stage::shipped;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use testbed::{GitRepository, Hub, ManagedCluster, ObjectRef, is_applied, wait};

/// Returns the work that argocd-pull-integration creates for an Application of the hub.
fn peers_work(application: &Value) -> Result<Value> {
    let metadata = &application["metadata"];
    let name = metadata["name"].as_str().context("a name")?;
    let uid = metadata["uid"].as_str().context("a UID")?;
    let mut labels = metadata["labels"].clone();
    let mut annotations = metadata["annotations"].clone();
    labels.as_object_mut().context("labels")?.remove(PULL);
    let annotations_left = annotations.as_object_mut().context("annotations")?;
    let cluster = annotations_left.remove(CLUSTER).context("a cluster")?;
    annotations_left.remove(SKIP_RECONCILE);
    let mut spec = application["spec"].clone();
    spec["destination"]["name"] = json!("");
    let feedback = [
        ("healthStatus", ".status.health.status"),
        ("syncStatus", ".status.sync.status"),
        ("operationStateStartedAt", ".status.operationState.startedAt"),
        ("operationStatePhase", ".status.operationState.phase"),
        ("syncRevision", ".status.sync.revision"),
    ];
    let feedback =
        feedback.map(|(name, path)| json!({"type": "JSONPaths", "jsonPaths": [{"name": name, "path": path}]}));
    Ok(json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": format!("{name}-{}", &uid[..5]),
            "namespace": cluster,
            "labels": {PULL: "true"},
            "annotations": {HUB_NAMESPACE: metadata["namespace"], HUB_NAME: name},
        },
        "spec": {
            "workload": {"manifests": [{
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Application",
                "metadata": {
                    "name": name,
                    "namespace": metadata["namespace"],
                    "labels": labels,
                    "annotations": annotations,
                    "finalizers": metadata["finalizers"],
                },
                "spec": spec,
            }]},
            "manifestConfigs": [{
                "resourceIdentifier": {
                    "group": "argoproj.io",
                    "resource": "applications",
                    "namespace": metadata["namespace"],
                    "name": name,
                },
                "feedbackRules": feedback,
                "updateStrategy": {
                    "type": "ServerSideApply",
                    "serverSideApply": {
                        "force": true,
                        "ignoreFields": [{"condition": "OnSpokeChange", "jsonPaths": [".operation"]}],
                    },
                },
            }],
        },
    }))
}

/// Returns the cluster Secret that it creates.
fn peers_secret(cluster: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": format!("{cluster}-secret"),
            "namespace": "argocd",
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "type": "Opaque",
        "stringData": {"name": cluster, "server": format!("https://{cluster}-control-plane:6443")},
    })
}

/// A hub on which argocd-pull-integration has delivered an Application to a cluster, where it runs.
struct PeerInstallation {
    hub: Hub,
    cluster: ManagedCluster,
    commit: String,
    application: ObjectRef,
    work: ObjectRef,
    secret: ObjectRef,
    guestbook: ObjectRef,
    _git: GitRepository,
}

impl PeerInstallation {
    async fn start(name: &str) -> Result<Self> {
        let hub = Hub::start().await?;
        let cluster = add_cluster(&hub, "cluster1").await?;
        let git = GitRepository::new()?;
        let commit = git.commit_folder(&shipped("guestbook"), "guestbook")?;
        let on_hub = hub.create(&application(name, &git)).await?;
        let work = hub.create(&peers_work(&on_hub)?).await?;
        let secret = hub.create(&peers_secret("cluster1")).await?;
        let installation = Self {
            application: ObjectRef::of(&on_hub),
            work: ObjectRef::of(&work),
            secret: ObjectRef::of(&secret),
            guestbook: ObjectRef::deployment(name, "guestbook-ui"),
            hub,
            cluster,
            commit,
            _git: git,
        };
        installation
            .cluster
            .wait_for(&installation.application, |app| runs(app, &installation.commit))
            .await?;
        serves(&installation.cluster, &installation.guestbook, 1).await?;
        Ok(installation)
    }

    /// Returns the UIDs, which distinguish the objects from recreated ones.
    async fn uids(&self) -> Result<[Value; 4]> {
        let (hub, cluster) = (&self.hub, &self.cluster);
        Ok([
            uid(hub.get(&self.work).await?)?,
            uid(hub.get(&self.secret).await?)?,
            uid(cluster.get(&self.application).await?)?,
            uid(cluster.get(&self.guestbook).await?)?,
        ])
    }
}

/// Returns the UID of an object that must stay.
fn uid(object: Option<Value>) -> Result<Value> {
    let object = object.context("the object does not exist")?;
    ensure!(
        object["metadata"]["deletionTimestamp"].is_null(),
        "the object is being deleted: {object:#}"
    );
    Ok(object["metadata"]["uid"].clone())
}

/// Returns the rows of `migrate plan` for the hub, each with its columns.
fn planned(hub: &Hub) -> Result<Vec<Vec<String>>> {
    let output = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"))
        .args(["migrate", "plan", "--kubeconfig"])
        .arg(hub.kubeconfig_path())
        .output()?;
    ensure!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout)?;
    let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    Ok(text.lines().map(columns).collect())
}

#[tokio::test]
async fn takes_over_a_peers_works_in_place() -> Result<()> {
    let installation = PeerInstallation::start("switch-to").await?;
    let PeerInstallation { hub, commit, .. } = &installation;
    let before = installation.uids().await?;
    let untouched = hub.get(&installation.secret).await?;
    let plan = planned(hub)?;
    for row in [
        ["Application", "1", "0", "1", "0"],
        ["ManifestWork", "1", "0", "1", "0"],
        ["Secret", "1", "0", "1", "0"],
    ] {
        assert!(plan.iter().any(|it| *it == row), "{row:?}: {plan:#?}");
    }
    assert_eq!(hub.get(&installation.secret).await?, untouched, "a plan writes nothing");
    let _controller = controller(hub, &[]).await?;
    let now = hub.wait_for(&installation.application, |app| runs(app, commit)).await?;
    assert!(
        now["status"]["reconciledAt"].is_string(),
        "the peer does not report it: {now:#}"
    );
    let is_ours = |secret: &Value| secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "argocd-ocm-cmp";
    hub.wait_for(&installation.secret, is_ours).await?;
    hub.wait_for(&installation.work, is_applied).await?;
    assert_eq!(installation.uids().await?, before);
    assert_eq!(works_of(hub, &installation.application).await?.len(), 1);
    let mut writes = hub.requests_by(ACCOUNT)?;
    writes.retain(|event| {
        let verb = event["verb"].as_str().unwrap_or_default();
        event["objectRef"]["resource"] == "manifestworks" && !["list", "watch"].contains(&verb)
    });
    let verbs: Vec<_> = writes.iter().map(|event| &event["verb"]).collect();
    assert_eq!(verbs, ["patch"], "{writes:#?}");

    let nothing_is_left = async || {
        let plan = planned(hub).ok()?;
        let mut writes = plan.iter().skip(1).flat_map(|row| &row[2..]);
        writes.all(|count| count == "0").then_some(())
    };
    wait::eventually("the plan is empty", wait::DEADLINE, nothing_is_left).await
}

/// Starts a controller that makes all works read-only, and waits until the agent has stopped writing.
async fn make_read_only(installation: &PeerInstallation) -> Result<Controller> {
    let PeerInstallation { hub, work, .. } = installation;
    let controller = controller(hub, &[("ARGOCD_OCM_CMP_PULL_READ_ONLY", "true")]).await?;
    let is_frozen = |work: &Value| {
        let configs = work["spec"]["manifestConfigs"].as_array();
        let mut configs = configs.into_iter().flatten();
        configs.all(|config| config["updateStrategy"]["type"] == "ReadOnly") && is_applied(work)
    };
    hub.wait_for(work, is_frozen).await?;
    Ok(controller)
}

#[tokio::test]
async fn read_only_objects_stay_on_the_cluster_without_their_work() -> Result<()> {
    let installation = PeerInstallation::start("switch-from").await?;
    let PeerInstallation { hub, cluster, work, .. } = &installation;
    let delivering = controller(hub, &[]).await?;
    hub.wait_for(&installation.application, |app| runs(app, &installation.commit))
        .await?;
    delivering.stop().await?;
    let before = installation.uids().await?;
    let _controller = make_read_only(&installation).await?;

    // Neither controller deletes the work.
    let stays = |it: &Value| it["metadata"]["deletionTimestamp"].is_null();
    let a_while = Duration::from_secs(5);
    for label in ["false", "true"] {
        let label = json!({"metadata": {"labels": {PULL: label}}});
        hub.patch(&installation.application, &label).await?;
        hub.holds_for(work, a_while, stays).await?;
    }
    let without_finalizers = json!({"metadata": {"finalizers": null}});
    hub.patch(&installation.application, &without_finalizers).await?;
    let name = installation.application.name.as_str();
    hub.kubectl(&["delete", "application", name, "-n=argocd", "--cascade=orphan"])?;
    hub.wait_gone(&installation.application).await?;
    hub.holds_for(work, a_while, stays).await?;
    assert_eq!(installation.uids().await?, before);

    // The deletion of the work deletes no object on the cluster.
    hub.delete(work).await?;
    hub.wait_gone(work).await?;
    for (object, uid) in [
        (&installation.application, &before[2]),
        (&installation.guestbook, &before[3]),
    ] {
        let is_same = |it: &Value| stays(it) && it["metadata"]["uid"] == *uid;
        cluster.holds_for(object, a_while, is_same).await?;
    }
    let live = cluster
        .get(&installation.application)
        .await?
        .context("the object does not exist")?;
    assert!(runs(&live, &installation.commit), "{live:#}");
    Ok(())
}
