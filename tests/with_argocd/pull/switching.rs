//! Tests of the migration from argocd-pull-integration to the controller, and from the controller to other software, while
//! deployed objects keep running.

use super::{PLACEMENT, PULL, add_cluster, application, controller, own_by_set, runs, scale, serves, works_of};
use crate::controller::{ACCOUNT, Controller};
use crate::peers::{acms_secret, acms_work, peers_secret, peers_work};
use crate::stage::{run, shipped};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use testbed::{GitRepository, Hub, ManagedCluster, ObjectRef, is_applied, wait};

/// Returns a Deployment as other controllers have, of which only the command counts: nothing runs it.
fn peers_deployment((namespace, name, image): (&str, &str, &str), commands: &[&[&str]]) -> Value {
    let container = |(number, words): (usize, &&[&str])| json!({"name": format!("c{number}"), "image": image, "command": [words[0]], "args": &words[1..]});
    let containers: Vec<_> = commands.iter().enumerate().map(container).collect();
    let labels = json!({"app": name});
    ObjectRef::deployment(namespace, name).with(json!({"spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    }}))
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
        let image = "quay.io/open-cluster-management/argocd-pull-integration:latest";
        let deployment = ("argocd", "argocd-pull-integration", image);
        hub.create(&peers_deployment(deployment, &[&["/manager", "--mode=basic"]]))
            .await?;
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

/// Returns the rows of `migrate plan` for the hub, each with its columns, and the other lines.
fn planned(hub: &Hub, options: &str) -> Result<(Vec<Vec<String>>, Vec<String>)> {
    let words = format!("migrate plan {options}");
    let (code, text, errors) = run(Path::new("/"), Some(hub.kubeconfig_path()), &words)?;
    ensure!(code == Some(0), "{errors}");
    let (lines, rows): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.contains(": "));
    let columns = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    Ok((
        rows.into_iter().map(columns).collect(),
        lines.into_iter().map(str::to_owned).collect(),
    ))
}

#[tokio::test]
async fn takes_over_a_peers_works_in_place_and_leaves_them_to_others() -> Result<()> {
    let installation = PeerInstallation::start("switching").await?;
    let PeerInstallation { hub, commit, .. } = &installation;
    let before = installation.uids().await?;
    let untouched = hub.get(&installation.secret).await?;
    let (plan, lines) = planned(hub, "")?;
    for row in [
        ["Application", "1", "0", "1", "0"],
        ["ManifestWork", "1", "0", "1", "0"],
        ["Secret", "1", "0", "1", "0"],
    ] {
        assert!(plan.iter().any(|entry| *entry == row), "{row:?}: {plan:#?}");
    }
    assert_eq!(hub.get(&installation.secret).await?, untouched, "a plan writes nothing");
    let stop = lines.first().and_then(|line| line.split_once("run kubectl "));
    let (_, stop) = stop.context("a command")?;
    assert_eq!(lines.len(), 1, "{lines:?}");
    hub.kubectl(stop)?;
    assert_eq!(planned(hub, "")?.1, [""; 0], "nothing is to be stopped");
    let delivering = controller(hub, &[]).await?;
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
        let (plan, _) = planned(hub, "").ok()?;
        let mut writes = plan.iter().skip(1).flat_map(|row| &row[2..]);
        writes.all(|count| count == "0").then_some(())
    };
    wait::eventually("the plan is empty", wait::DEADLINE, nothing_is_left).await?;
    delivering.stop().await?;
    read_only_objects_stay_without_their_work(&installation).await
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

async fn read_only_objects_stay_without_their_work(installation: &PeerInstallation) -> Result<()> {
    let PeerInstallation { hub, cluster, work, .. } = installation;
    let before = installation.uids().await?;
    let _controller = make_read_only(installation).await?;

    // Neither controller deletes the work.
    let stays = |live: &Value| live["metadata"]["deletionTimestamp"].is_null();
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
    hub.delete_and_wait(work).await?;
    for (object, uid) in [
        (&installation.application, &before[2]),
        (&installation.guestbook, &before[3]),
    ] {
        let is_same = |live: &Value| stays(live) && live["metadata"]["uid"] == *uid;
        cluster.holds_for(object, a_while, is_same).await?;
    }
    let live = cluster.read(&installation.application).await?;
    assert!(runs(&live, &installation.commit), "{live:#}");
    Ok(())
}

const ACM_COMMANDS: &[&[&str]] = &[
    &["/usr/local/bin/gitopssyncresc"],
    &["/usr/local/bin/multiclusterstatusaggregation"],
    &["/usr/local/bin/propagation"],
];

/// The options of `migrate plan` for ACM.
const FROM_ACM: &str = "--pull-dialect=acm --controllers=pull,gitopscluster,application-set-report";

/// The permission that the pull model needs.
const CREATES_WORKS: &str = "create manifestworks.work.open-cluster-management.io --all-namespaces";

#[tokio::test]
async fn takes_over_works_that_acm_has_made_read_only() -> Result<()> {
    let hub = Hub::start().await?;
    let (cluster, ocm) = tokio::join!(add_cluster(&hub, "cluster1"), hub.start_ocm_controllers());
    let (cluster, ()) = (cluster?, ocm?);
    hub.apply_yaml(PLACEMENT)?;
    let name = "switch-acm";
    let git = GitRepository::new()?;
    let commit = git.commit_folder(&shipped("guestbook"), "guestbook")?;
    let mut object = application(name, &git);
    own_by_set(&hub, &mut object).await?;
    let object = hub.create(&object).await?;
    let project = ObjectRef::app_project("default");
    let project = cluster.read(&project).await?;
    let work = ObjectRef::of(&hub.create(&acms_work(&object, &project)?).await?);
    let secret = ObjectRef::of(&hub.create(&acms_secret("cluster1")).await?);
    hub.create_namespace("acm").await?;
    let deployment = (
        "acm",
        "multicluster-integrations",
        "quay.io/stolostron/multicloud-integrations:latest",
    );
    hub.create(&peers_deployment(deployment, ACM_COMMANDS)).await?;
    let setting = |is_disabled: bool| {
        let config = format!("pullModel:\n  basic:\n    disabled: {is_disabled}\n");
        let metadata = json!({"name": "multicluster-integrations-config", "namespace": "acm"});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": config}})
    };
    hub.apply(&setting(false)).await?;
    let application = ObjectRef::of(&object);
    let guestbook = ObjectRef::deployment(name, "guestbook-ui");
    cluster.wait_for(&application, |app| runs(app, &commit)).await?;
    serves(&cluster, &guestbook, 1).await?;
    let uids = async || {
        let on_hub = [uid(hub.get(&work).await?)?, uid(hub.get(&secret).await?)?];
        anyhow::Ok((
            on_hub,
            uid(cluster.get(&application).await?)?,
            uid(cluster.get(&guestbook).await?)?,
        ))
    };
    let before = uids().await?;
    for file in ["deploy/gitopscluster_crd.yaml", "deploy/report_crd.yaml"] {
        hub.apply_file(&shipped(file), &["--server-side"])?;
    }
    hub.wait_for_crds().await?;
    hub.create(&gitops_cluster()).await?;
    let (_, lines) = planned(&hub, FROM_ACM)?;
    let stop = "to stop: Deployment acm/multicluster-integrations writes the objects of application-set-report, pull: set \
                pullModel.basic.disabled: true in ConfigMap acm/multicluster-integrations-config, ";
    assert!(lines.len() == 1 && lines[0].starts_with(stop), "{lines:?}");

    // ACM makes its works read-only.
    hub.apply(&setting(true)).await?;
    let mut configs = hub.read(&work).await?["spec"]["manifestConfigs"].take();
    configs[0]["updateStrategy"] = json!({"type": "ReadOnly"});
    hub.patch(&work, &json!({"spec": {"manifestConfigs": configs}})).await?;
    hub.wait_for(&work, is_applied).await?;
    let (plan, lines) = planned(&hub, FROM_ACM)?;
    assert_eq!(lines, [""; 0], "nothing is to be stopped");
    assert!(
        plan.iter().any(|row| *row == ["ManifestWork", "1", "0", "1", "0"]),
        "{plan:#?}"
    );
    assert!(plan.iter().skip(1).all(|row| row[4] == "0"), "{plan:#?}");

    let files = "deploy/deploy_pull.yaml deploy/deploy_report.yaml deploy/deploy_gitopscluster.yaml";
    let controllers = "pull,gitopscluster,application-set-report";
    let settings = [
        ("ARGOCD_OCM_CMP_CONTROLLERS", controllers),
        ("ARGOCD_OCM_CMP_PULL_DIALECT", "acm"),
    ];
    let _controller = Controller::start_with(&hub, files, &settings, &[CREATES_WORKS]).await?;
    let is_adopted = |work: &Value| {
        let configs = work["spec"]["manifestConfigs"].as_array();
        let mut configs = configs.into_iter().flatten();
        configs.all(|config| config["updateStrategy"]["type"] != "ReadOnly") && is_applied(work)
    };
    hub.wait_for(&work, is_adopted).await?;
    let is_ours = |secret: &Value| secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "argocd-ocm-cmp";
    hub.wait_for(&secret, is_ours).await?;
    hub.wait_for(&application, |app| runs(app, &commit)).await?;
    assert_eq!(uids().await?, before, "nothing is recreated");
    assert_eq!(works_of(&hub, &application).await?.len(), 1);
    let commit = scale(&git, 2)?;
    hub.wait_for(&application, |app| runs(app, &commit)).await?;
    serves(&cluster, &guestbook, 2).await.map(drop)
}

/// Returns a GitOpsCluster as users of ACM's pull model have.
fn gitops_cluster() -> Value {
    ObjectRef::namespaced("apps.open-cluster-management.io/v1beta1", "GitOpsCluster", "argocd", "fleet").with(json!({"spec": {
        "argoServer": {"argoNamespace": "argocd"},
        "createBlankClusterSecrets": true,
        "placementRef": {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": "app-placement"},
    }}))
}
