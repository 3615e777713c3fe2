//! Tests of targets by Placement: OCM's real placement controller, and its rollouts over three clusters.

use super::{Fleet, fleet};
use crate::app::App;
use crate::health_check;
use crate::stage::{apply_shipped, run};
use crate::status;
use anyhow::{Context, Result, ensure};
use ocm::ownership::OF_REPLICA_SET;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use testbed::application::{self, messages};
use testbed::{ManagedCluster, ObjectRef, Recording, condition, is_applied, is_true, wait};

const CLUSTERS: [&str; 3] = ["cluster1", "second", "third"];

const NO_CLUSTER: &str = "ManifestWorkNoClusterWarning";

const WORK_VERSION: &str = "work.open-cluster-management.io/v1";

/// An Application that is delivered by a Placement of its name, which selects the clusters with its name as a label.
struct PlacedApplication<'f> {
    fleet: &'f Fleet,
    app: App<'f>,
}

/// Settings with which the clusters change one after the other, and each is observed for a while.
const ONE_BY_ONE: [(&str, &[&str]); 3] = [
    ("rollout", &["Progressive"]),
    ("rollout-max-concurrency", &["1"]),
    ("rollout-min-success-time", &["3s"]),
];

impl<'f> PlacedApplication<'f> {
    /// Creates the Placement and the Application, and returns when Argo CD has synced it.
    async fn start(fleet: &'f Fleet, name: &str, settings: &[(&str, &[&str])], files: &[(&str, &str)]) -> Result<Self> {
        prepare(fleet, name, &json!({})).await?;
        let placement = format!("argocd/{name}");
        let by_placement: &[&str] = &[&placement];
        let settings = [&[("placement", by_placement)], settings].concat();
        let app = App::start_on(&fleet.hub, name, &settings, files, false).await?;
        Ok(Self { fleet, app })
    }

    /// Returns its only ManifestWorkReplicaSet.
    async fn set(&self) -> Result<ObjectRef> {
        let kind = "ManifestWorkReplicaSet";
        let all = self
            .fleet
            .hub
            .list("work.open-cluster-management.io/v1alpha1", kind)
            .await?;
        let start = format!("{}-x", self.app.name);
        let ours = |set: &&Value| {
            set["metadata"]["name"]
                .as_str()
                .is_some_and(|name| name.starts_with(&start))
        };
        let mut ours = all.iter().filter(ours);
        let set = ours.next().context("the Application has no set")?;
        ensure!(ours.next().is_none(), "the Application has two sets");
        Ok(ObjectRef::of(&json!({
            "apiVersion": "work.open-cluster-management.io/v1alpha1", "kind": kind, "metadata": set["metadata"],
        })))
    }

    /// Returns its works, in the order of the clusters; `None` for a missing work. They have the name of the set up to OCM 1.2,
    /// and generated names from 1.3.
    async fn works(&self) -> Result<[Option<Value>; 3]> {
        let of_the_set = format!("argocd.{}", self.set().await?.name);
        let works = self.fleet.hub.works().await?;
        Ok(CLUSTERS.map(|cluster| {
            let is_it = |work: &&Value| {
                let metadata = &work["metadata"];
                metadata["namespace"] == cluster && metadata["labels"][OF_REPLICA_SET] == of_the_set
            };
            works.iter().find(is_it).cloned()
        }))
    }

    /// Returns the names of its works, which all exist, in the order of the clusters.
    async fn names_of_works(&self) -> Result<[ObjectRef; 3]> {
        let works = self.works().await?;
        ensure!(works.iter().all(Option::is_some), "not all works exist: {works:#?}");
        Ok(works.map(|work| {
            let metadata = &work.unwrap_or_default()["metadata"];
            let field = |name: &str| metadata[name].as_str().unwrap_or_default();
            ObjectRef::manifest_work(field("namespace"), field("name"))
        }))
    }

    /// Records all states of its works.
    async fn record(&self) -> Result<Recording> {
        let of_the_set = format!("{OF_REPLICA_SET}=argocd.{}", self.set().await?.name);
        self.fleet.hub.record(WORK_VERSION, "ManifestWork", &of_the_set).await
    }

    /// Waits until Argo CD shows this health and message of the set, and this health of the Application.
    async fn shows(&self, health: &str, message: &str) -> Result<()> {
        let expected = (health.to_owned(), message.to_owned());
        // Evaluated only when the set changes, because Argo CD's command is slow.
        let has_health = |set: &Value| health_check::health(set).is_ok_and(|health| health == expected);
        let set = self.set().await?;
        let shown = self.fleet.hub.wait_for(&set, has_health).await;
        shown.with_context(|| format!("{set} did not become {health}: {message}"))?;
        self.is(health).await
    }

    /// Waits until the Application has this health.
    async fn is(&self, health: &str) -> Result<()> {
        self.set_becomes(|app| application::has_health(app, health)).await
    }

    /// Waits until Argo CD has completed the sync of this commit, has pruned the rest, and the Application is healthy. It is
    /// healthy in between too: between two waves all objects that were applied so far exist.
    async fn wait_for_delivery(&self, commit: &str) -> Result<()> {
        let delivered = |app: &Value| {
            let status = &app["status"];
            application::is_healthy(app)
                && status["sync"]["revision"] == commit
                && status["operationState"]["syncResult"]["revision"] == commit
                && status["operationState"]["phase"] == "Succeeded"
        };
        self.set_becomes(delivered).await
    }

    async fn set_becomes(&self, condition: impl FnMut(&Value) -> bool) -> Result<()> {
        let application = self.app.application();
        self.fleet.hub.wait_for(&application, condition).await.map(drop)
    }

    /// Waits until the Application is healthy, and until the next change has a later time: times have whole seconds.
    async fn wait_until_settled(&self) -> Result<()> {
        self.is("Healthy").await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(())
    }

    /// Returns the versions of the works' first object, in the order of the clusters; `None` for a missing work.
    async fn versions(&self) -> Result<[Option<String>; 3]> {
        Ok(self.works().await?.map(|work| work.as_ref().map(version)))
    }

    fn config_map(&self) -> ObjectRef {
        ObjectRef::config_map(&self.app.name, "settings")
    }
}

/// Makes a Placement select all clusters, and creates the namespace of that name on them.
pub(crate) async fn prepare(fleet: &Fleet, name: &str, strategy: &Value) -> Result<()> {
    let selector = json!({"labelSelector": {"matchLabels": {name: "true"}}});
    let placement = ObjectRef::placement(name).with(json!({"spec": {
        "clusterSets": ["global"],
        "predicates": [{"requiredClusterSelector": selector}],
        "decisionStrategy": strategy,
    }}));
    fleet.hub.apply(&placement).await?;
    for cluster in fleet.clusters() {
        cluster.create_namespace(name).await?;
        fleet.label(cluster.name(), name, Some("true")).await?;
    }
    let selects_all = |placement: &Value| placement["status"]["numberOfSelectedClusters"] == 3;
    let placement = ObjectRef::of(&placement);
    fleet.hub.wait_for(&placement, selects_all).await.map(drop)
}

/// Returns the version in the objects of a work.
fn version(work: &Value) -> String {
    let manifest = &work["spec"]["workload"]["manifests"][0];
    manifest["metadata"]["labels"]["version"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn some<const N: usize>(versions: [&str; N]) -> [Option<String>; N] {
    versions.map(|version| Some(version.to_owned()))
}

fn config_map(version: &str) -> String {
    let metadata = json!({"name": "settings", "labels": {"version": version}});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"version": version}}).to_string()
}

/// Returns a Deployment whose Pods run only on nodes with this label, once there is one.
fn deployment(name: &str, version: &str, only_on: Option<&str>) -> String {
    let selector = only_on.map(|label| json!({label: "true"}));
    ObjectRef::cluster("apps/v1", "Deployment", name)
        .with(json!({
            "metadata": {"labels": {"version": version}},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name, "version": version}},
                    "spec": {"nodeSelector": selector, "containers": [{"name": "main", "image": "nginx"}]},
                },
            },
        }))
        .to_string()
}

/// Lets Pods run that wait for a node with this label.
pub(crate) async fn open(cluster: &ManagedCluster, label: &str) -> Result<()> {
    let node = ObjectRef::node("node-1");
    let label = json!({"metadata": {"labels": {label: "true"}}});
    cluster.patch(&node, &label).await.map(drop)
}

/// Returns true if OCM counts the cluster of a work as done, by OCM's own rule.
fn is_done(work: &Value) -> bool {
    let generation = &work["metadata"]["generation"];
    let progressing = condition(work, "Progressing");
    is_applied(work)
        && progressing
            .is_some_and(|progress| progress["status"] == "False" && progress["observedGeneration"] == *generation)
}

/// Checks that the version reached the clusters of a recording one after the other, and no cluster before the earlier ones were
/// done.
fn one_by_one(recording: &Recording, expected: &str) -> Result<()> {
    let mut reached: Vec<(String, bool)> = Vec::new();
    for work in recording.states() {
        if version(&work) != expected {
            continue;
        }
        let cluster = work["metadata"]["namespace"].as_str().context("a cluster")?;
        if let Some((_, done)) = reached.iter_mut().find(|(seen, _)| seen == cluster) {
            *done = is_done(&work);
            continue;
        }
        ensure!(
            reached.iter().all(|(_, done)| *done),
            "{cluster} while others were not done: {reached:?}"
        );
        reached.push((cluster.to_owned(), false));
    }
    let order: Vec<&str> = reached.iter().map(|(cluster, _)| cluster.as_str()).collect();
    ensure!(order == CLUSTERS, "not all clusters, or another order: {order:?}");
    Ok(())
}

#[tokio::test]
async fn an_application_is_healthy_when_every_cluster_is() -> Result<()> {
    let fleet = fleet().await?;
    let name = "at-once";
    let [cluster1, second, third] = fleet.clusters();
    let file = deployment("web", "1", Some(name));
    let placed = PlacedApplication::start(&fleet, name, &[], &[("web.json", &file)]).await?;
    let web = ObjectRef::deployment(name, "web");
    for cluster in [third, cluster1] {
        open(cluster, name).await?;
        cluster.wait_for(&web, |web| is_true(web, "Available")).await?;
    }
    placed
        .shows("Progressing", "3 of 3 clusters applied, 1 progressing")
        .await?;
    open(second, name).await?;
    placed.shows("Healthy", "3 of 3 clusters applied").await?;
    second.wait_for(&web, |web| is_true(web, "Available")).await?;
    placed.is("Healthy").await?;

    // The works that OCM has created lead to the Application, and the Application to them.
    let kubeconfig = fleet.hub.kubeconfig_path();
    let (_, stdout, stderr) = status::printed(kubeconfig, &["--clusters=second", "-o", "name"])?;
    assert!(
        stdout.lines().any(|line| line == format!("second/{name}")),
        "{stdout}{stderr}"
    );
    let (code, stdout, stderr) = status::printed(kubeconfig, &[name, "--wait"])?;
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let set = format!("argocd/{}", placed.set().await?.name);
    let rows: Vec<_> = status::cells(&stdout).iter().map(|cells| cells[0]).collect();
    assert_eq!(rows, ["CLUSTER", "-", "cluster1", "second", "third"], "{stdout}");
    assert_eq!(status::cells(&stdout)[1][1], set, "{stdout}");
    // Also without the set, for a user with access to one cluster only.
    let (_, stdout, _) = status::printed(kubeconfig, &[name, "--clusters=second"])?;
    assert_eq!(status::cells(&stdout).len(), 2, "{stdout}");

    // A cluster that leaves loses its work and its objects, one that joins gets them, and the others are unaffected.
    let [_, of_second, _] = placed.names_of_works().await?;
    let before = [cluster1.get(&web).await?, third.get(&web).await?];
    fleet.label("second", name, None).await?;
    fleet.hub.wait_gone(&of_second).await?;
    second.wait_gone(&web).await?;
    placed.shows("Healthy", "2 of 2 clusters applied").await?;
    fleet.label("second", name, Some("true")).await?;
    second.wait_for(&web, |web| is_true(web, "Available")).await?;
    placed.shows("Healthy", "3 of 3 clusters applied").await?;
    let uid = |object: Option<Value>| object.map(|live| live["metadata"]["uid"].clone());
    let after = [cluster1.get(&web).await?, third.get(&web).await?];
    assert_eq!(after.map(uid), before.map(uid));

    // A Placement that selects none is not healthy.
    for cluster in CLUSTERS {
        fleet.label(cluster, name, None).await?;
    }
    let nowhere = format!("Placement {name} selects no managed cluster: see its condition PlacementSatisfied");
    placed.shows("Suspended", &nowhere).await?;
    let is_warned = |app: &Value| {
        messages(app, NO_CLUSTER)
            .iter()
            .any(|message| message.ends_with(&nowhere))
    };
    fleet.hub.wait_for(&placed.app.application(), is_warned).await?;
    let (code, stdout, _) = status::printed(kubeconfig, &[name])?;
    let reason = format!("{name} waits: Placement argocd/{name} selects no managed cluster: ");
    let is_explained = stdout
        .lines()
        .any(|line| line.starts_with(&reason) && line.contains("(NoManagedClusterMatched)"));
    assert!(code == Some(1) && is_explained, "{stdout}");
    for cluster in CLUSTERS {
        fleet.label(cluster, name, Some("true")).await?;
    }
    placed.shows("Healthy", "3 of 3 clusters applied").await?;

    let works = placed.names_of_works().await?;
    placed.app.end().await?;
    for (cluster, work) in fleet.clusters().into_iter().zip(&works) {
        fleet.hub.wait_gone(work).await?;
        cluster.wait_gone(&web).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_change_that_breaks_stops_at_the_first_cluster() -> Result<()> {
    let fleet = fleet().await?;
    let name = "breaks";
    let first = ("a.json", &*deployment("a-web", "1", None));
    // Longer than a busy agent needs to see that the change breaks.
    let settings = [ONE_BY_ONE[0], ONE_BY_ONE[1], ("rollout-min-success-time", &["15s"][..])];
    let placed = PlacedApplication::start(&fleet, name, &settings, &[first]).await?;
    placed.wait_until_settled().await?;

    // A new object is harder than a changed one: the agent evaluates it later, and all other objects are healthy.
    let recording = placed.record().await?;
    let mut broken: Value = serde_json::from_str(&deployment("broken", "2", Some("no-such-node")))?;
    broken["spec"]["progressDeadlineSeconds"] = json!(1);
    placed.app.commit(&[("broken.json", &broken.to_string())]).await?;
    let [work, ..] = placed.names_of_works().await?;
    let is_broken = |work: &Value| condition(work, "Healthy").is_some_and(|health| health["status"] == "False");
    fleet.hub.wait_for(&work, is_broken).await?;
    placed
        .shows("Progressing", "1 of 3 clusters applied, 1 progressing")
        .await?;
    let has_it = |work: &Value| work["spec"]["workload"]["manifests"][1]["metadata"]["name"] == "broken";
    let spread = |recording: &Recording| -> Vec<Value> {
        let broken = recording.states().into_iter().filter(has_it);
        broken.map(|work| work["metadata"]["namespace"].clone()).collect()
    };
    assert!(spread(&recording).iter().all(|cluster| cluster == "cluster1"));

    // The fix in Git rolls out.
    let fixed = deployment("broken", "3", None);
    let first = deployment("a-web", "3", None);
    placed
        .app
        .commit(&[("a.json", &first), ("broken.json", &fixed)])
        .await?;
    placed.is("Healthy").await?;
    one_by_one(&recording, "3")?;
    for cluster in fleet.clusters() {
        let fixed = |live: &Value| live["metadata"]["labels"]["version"] == "3" && live["status"]["readyReplicas"] == 1;
        cluster.wait_for(&ObjectRef::deployment(name, "broken"), fixed).await?;
    }
    placed.app.end().await
}

/// Runs `rollout`, and checks its exit code and that its output contains these texts. Returns its standard output.
fn rollout_says(fleet: &Fleet, words: &str, code: i32, texts: &[&str]) -> Result<String> {
    let words = format!("rollout {words}");
    let (ended, stdout, stderr) = run(Path::new("/"), Some(fleet.hub.kubeconfig_path()), &words)?;
    let says = |text: &&str| stdout.contains(text) || stderr.contains(text);
    ensure!(
        ended == Some(code) && texts.iter().all(says),
        "{words}: {texts:?}: {ended:?} {stdout}{stderr}"
    );
    Ok(stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_rollout_is_shown_taken_back_and_continued() -> Result<()> {
    let fleet = fleet().await?;
    let name = "stopped";
    let settings = [
        ONE_BY_ONE[0],
        ONE_BY_ONE[1],
        ("rollout-progress-deadline", &["10s"][..]),
    ];
    let files = |version| {
        let mut broken: Value = serde_json::from_str(&deployment("broken", version, Some("no-such-node")))?;
        broken["spec"]["progressDeadlineSeconds"] = json!(1);
        anyhow::Ok([
            ("settings.json", config_map(version)),
            ("broken.json", broken.to_string()),
        ])
    };
    let mut kept: Value = serde_json::from_str(&config_map("1"))?;
    kept["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-options": "Prune=false"});
    let placed = PlacedApplication::start(&fleet, name, &settings, &[("settings.json", &kept.to_string())]).await?;
    placed.wait_until_settled().await?;
    let [first, second, _] = placed.names_of_works().await?;
    let push = async |version| {
        let files = files(version)?;
        placed
            .app
            .commit(&files.each_ref().map(|(file, text)| (*file, text.as_str())))
            .await?;
        let stopped = async || {
            let text = ": stopped at cluster1, 0 of 3 clusters updated\n";
            rollout_says(&fleet, "status stopped", 1, &[text]).ok()
        };
        wait::eventually("the rollout stops", wait::DEADLINE, stopped).await
    };
    let stdout = push("2").await?;
    let row = |cluster: &str| {
        stdout
            .lines()
            .find(|line| line.starts_with(cluster))
            .unwrap_or_default()
    };
    let failed = row("cluster1 ");
    ensure!(
        failed.contains(" Failed ") && failed.contains("Deployment stopped/broken"),
        "{stdout}"
    );
    ensure!(
        row("second ").ends_with("Waiting") && row("third ").ends_with("Waiting"),
        "{stdout}"
    );

    let heals = |value: Value| json!({"spec": {"syncPolicy": {"automated": {"selfHeal": value}}}});
    fleet.hub.patch(&placed.app.application(), &heals(json!(true))).await?;
    rollout_says(&fleet, "undo stopped", 1, &["argocd app set stopped --self-heal=false"])?;
    fleet.hub.patch(&placed.app.application(), &heals(Value::Null)).await?;
    rollout_says(
        &fleet,
        "undo stopped",
        1,
        &["agents of managed clusters may change works"],
    )?;
    apply_shipped(&fleet.hub, "deploy/agent_admission.yaml")?;
    let undone = [
        "\n+++ earlier: ",
        "returns to the earlier content; 1 cluster to take back",
    ];
    rollout_says(&fleet, "undo stopped", 0, &undone)?;
    fleet
        .hub
        .wait_for(&first, |work| version(work) == "1" && is_done(work))
        .await?;
    ensure!(
        placed.versions().await? == some(["1"; 3]),
        "all have the earlier content"
    );
    let is_other = |app: &Value| app["status"]["sync"]["status"] == "OutOfSync";
    placed.set_becomes(is_other).await?;
    let complete = async || {
        // Git has another version.
        rollout_says(&fleet, "status stopped", 1, &[": complete, ", "it is OutOfSync"]).ok()
    };
    wait::eventually("the rollout is complete", wait::DEADLINE, complete).await?;
    rollout_says(
        &fleet,
        "undo stopped",
        1,
        &["no managed cluster has an earlier content"],
    )?;

    push("3").await?;
    rollout_says(&fleet, "resume stopped", 0, &["rollout-max-failures=1"])?;
    // No field of the content that was taken back is left.
    let is_as_in_git = |work: &Value| version(work) == "3" && work["spec"]["deleteOption"].is_null();
    fleet.hub.wait_for(&second, is_as_in_git).await?;
    placed.app.end().await
}

#[tokio::test]
async fn decision_groups_change_one_after_the_other() -> Result<()> {
    let fleet = fleet().await?;
    let name = "by-group";
    // In the order of names it would be the last.
    fleet.label("third", "by-group-first", Some("true")).await?;
    let first = json!({"labelSelector": {"matchLabels": {"by-group-first": "true"}}});
    let groups = json!([{"groupName": "first", "groupClusterSelector": first}]);
    prepare(&fleet, name, &json!({"groupStrategy": {"decisionGroups": groups}})).await?;
    let settings: [(&str, &[&str]); 3] = [
        ("placement", &["argocd/by-group"]),
        ("rollout", &["ProgressivePerGroup"]),
        ("rollout-min-success-time", &["1s"]),
    ];
    let file = deployment("web", "1", Some(name));
    let app = App::start_on(&fleet.hub, name, &settings, &[("web.json", &file)], false).await?;
    let placed = PlacedApplication { fleet: &fleet, app };
    placed
        .shows("Progressing", "1 of 3 clusters applied, 1 progressing")
        .await?;
    assert_eq!(placed.versions().await?, [None, None, Some("1".to_owned())]);
    open(&fleet.third, name).await?;
    placed
        .shows("Progressing", "3 of 3 clusters applied, 2 progressing")
        .await?;
    for cluster in [&fleet.cluster1, &fleet.second] {
        open(cluster, name).await?;
    }
    placed.is("Healthy").await?;
    placed.app.end().await
}

#[tokio::test]
async fn moving_to_a_placement_and_back_keeps_objects() -> Result<()> {
    let fleet = fleet().await?;
    let (hub, name) = (&fleet.hub, "moves");
    prepare(&fleet, name, &json!({})).await?;
    prepare(&fleet, "moves-on", &json!({})).await?;
    let by_name: [(&str, &[&str]); 1] = [("clusters", &["cluster1"])];
    let by_placement: [(&str, &[&str]); 1] = [("placement", &["argocd/moves"])];
    let by_another: [(&str, &[&str]); 1] = [("placement", &["argocd/moves-on"])];
    let app = App::start_on(hub, name, &by_name, &[("settings.json", &config_map("1"))], false).await?;
    let placed = PlacedApplication { fleet: &fleet, app };
    let settings = placed.config_map();
    let at = async |cluster: &ManagedCluster, version: &str| {
        cluster.wait_for_value(&settings, "/data/version", version).await
    };
    let before = at(&fleet.cluster1, "1").await?;
    placed.is("Healthy").await?;

    placed.app.set(&by_placement).await?;
    placed.app.commit(&[("settings.json", &config_map("2"))]).await?;
    hub.wait_gone(&placed.app.work()).await?;
    let set = placed.set().await?;
    for cluster in fleet.clusters() {
        at(cluster, "2").await?;
    }
    // OCM deletes the works of a Placement that a set no longer names.
    placed.app.set(&by_another).await?;
    placed.app.commit(&[("settings.json", &config_map("3"))]).await?;
    hub.wait_gone(&set).await?;
    let set = placed.set().await?;
    let after = at(&fleet.cluster1, "3").await?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);

    placed.app.set(&by_name).await?;
    placed.app.commit(&[("settings.json", &config_map("4"))]).await?;
    hub.wait_gone(&set).await?;
    let after = at(&fleet.cluster1, "4").await?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    fleet.second.wait_gone(&settings).await?;
    fleet.third.wait_gone(&settings).await?;
    placed.app.end().await
}

#[tokio::test]
async fn waves_and_hooks_wait_for_every_cluster() -> Result<()> {
    let fleet = fleet().await?;
    let name = "by-wave";
    let job = |version: &str| {
        ObjectRef::cluster("batch/v1", "Job", "migrate")
            .with(json!({
                "metadata": {"labels": {"version": version}, "annotations": {"argocd.argoproj.io/hook": "PreSync"}},
                "spec": {"template": {"spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "busybox"}],
                }}},
            }))
            .to_string()
    };
    let later = |version: &str| -> Result<String> {
        let mut object: Value = serde_json::from_str(&config_map(version))?;
        object["metadata"]["annotations"] = json!({"argocd.argoproj.io/sync-wave": "1"});
        Ok(object.to_string())
    };
    let files = [
        ("job.json", &*job("1")),
        ("web.json", &*deployment("web", "1", None)),
        ("settings.json", &*later("1")?),
    ];
    let placed = PlacedApplication::start(&fleet, name, &[], &files).await?;
    placed.wait_until_settled().await?;
    let settings = placed.config_map();
    let has_run = async |cluster: &ManagedCluster, version: &str| -> Result<bool> {
        let jobs = cluster.list("batch/v1", "Job").await?;
        let ours =
            |job: &Value| job["metadata"]["namespace"] == name && job["metadata"]["labels"]["version"] == version;
        Ok(jobs.iter().any(|job| ours(job) && is_true(job, "Complete")))
    };

    let files = [
        ("job.json", &*job("2")),
        ("web.json", &*deployment("web", "2", Some(name))),
        ("settings.json", &*later("2")?),
    ];
    let commit = placed.app.push(&files).await?;
    for (at, cluster) in fleet.clusters().into_iter().enumerate() {
        let message = format!("3 of 3 clusters applied, {} progressing", 3 - at);
        placed.shows("Progressing", &message).await?;
        for other in fleet.clusters() {
            let settings = other.read(&settings).await?;
            assert_eq!(settings["data"]["version"], "1", "{}", other.name());
            assert!(has_run(other, "2").await?, "{}", other.name());
        }
        open(cluster, name).await?;
    }
    for cluster in fleet.clusters() {
        cluster.wait_for_value(&settings, "/data/version", "2").await?;
    }
    placed.wait_for_delivery(&commit).await?;
    placed.app.end().await
}
