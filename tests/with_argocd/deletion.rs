//! Tests of the objects that are deleted from a managed cluster, and those that stay, when they leave Git or their Application is
//! deleted.

use crate::app::App;
use crate::health_check;
use crate::stage::{Stage, stage};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use testbed::application::has_health;
use testbed::{ControlPlane, ManagedClusterOptions, ObjectRef, is_applied, wait};

/// The objects of an Application in one file: a Namespace and a CRD that others also use, an object that is deleted, and some that
/// stay.
struct Set {
    /// The namespace of the Application.
    app: &'static str,
    /// A lower-case word that distinguishes it from the other set.
    word: &'static str,
}

const KEPT: [(&str, &str, &str); 5] = [
    ("not-pruned", "argocd.argoproj.io/sync-options", "Prune=false"),
    ("not-deleted", "argocd.argoproj.io/sync-options", "Delete=false"),
    ("prune-confirmed", "argocd.argoproj.io/sync-options", "Prune=confirm"),
    ("delete-confirmed", "argocd.argoproj.io/sync-options", "Delete=confirm"),
    ("kept-by-helm", "helm.sh/resource-policy", "keep"),
];

impl Set {
    fn file(&self) -> String {
        let Self { app, word } = self;
        let (namespace, group) = (self.namespace().name, format!("{app}.example.com"));
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            ObjectRef::crd(&format!("{word}s.{group}")).with(json!({"spec": {
                "group": group,
                "names": {"kind": word, "plural": format!("{word}s"), "singular": word, "listKind": format!("{word}list")},
                "scope": "Namespaced",
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            }})),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "goes", "namespace": namespace}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": word}}),
        ];
        objects.extend(KEPT.iter().map(|(name, annotation, text)| {
            let metadata = json!({"name": format!("{word}-{name}"), "annotations": {*annotation: text}});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        }));
        json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
    }

    fn namespace(&self) -> ObjectRef {
        ObjectRef::namespace(&format!("{}-{}", self.app, self.word))
    }

    fn crd(&self) -> ObjectRef {
        let name = format!("{}s.{}.example.com", self.word, self.app);
        ObjectRef::crd(&name)
    }

    /// Returns the objects that are always deleted.
    fn ordinary(&self) -> [ObjectRef; 2] {
        [
            ObjectRef::config_map(&self.namespace().name, "goes"),
            ObjectRef::config_map(self.app, self.word),
        ]
    }

    /// Returns the objects that always stay.
    fn kept(&self) -> Vec<ObjectRef> {
        let entries = KEPT.iter();
        entries
            .map(|(name, _, _)| ObjectRef::config_map(self.app, &format!("{}-{name}", self.word)))
            .collect()
    }

    /// Returns the objects of others: in the namespace, and of the CRD's kind.
    fn of_others(&self) -> [ObjectRef; 2] {
        let api_version = format!("{}.example.com/v1", self.app);
        [
            ObjectRef::config_map(&self.namespace().name, "theirs"),
            ObjectRef::namespaced(&api_version, self.word, self.app, "theirs"),
        ]
    }

    async fn create_objects_of_others(&self, cluster: &ControlPlane) -> Result<()> {
        for object in self.of_others() {
            let metadata = json!({"name": object.name, "namespace": object.namespace});
            cluster
                .create(&json!({"apiVersion": object.api_version, "kind": object.kind, "metadata": metadata}))
                .await?;
        }
        Ok(())
    }

    /// Waits until the deletable objects are deleted, and checks that the others exist.
    async fn check_remaining(&self, cluster: &ControlPlane, owned: bool) -> Result<()> {
        for object in self.ordinary() {
            cluster.wait_gone(&object).await?;
        }
        let shared = [self.namespace(), self.crd()];
        if owned {
            for object in shared {
                cluster.wait_gone(&object).await?;
            }
        } else {
            for object in shared.into_iter().chain(self.of_others()) {
                check_stays(cluster, &object).await?;
            }
        }
        for object in self.kept() {
            check_stays(cluster, &object).await?;
        }
        Ok(())
    }
}

async fn check_stays(cluster: &ControlPlane, object: &ObjectRef) -> Result<()> {
    let live = cluster.read(object).await?;
    ensure!(
        live["metadata"]["deletionTimestamp"].is_null(),
        "{object} is going: {live:#}"
    );
    Ok(())
}

/// Delivers two sets, removes one from Git, and then deletes the Application.
async fn check_deletion(name: &'static str, owned: bool) -> Result<()> {
    let stage = stage().await?;
    let cluster1 = &stage.cluster1;
    let [first, second] = ["tank", "pump"].map(|word| Set { app: name, word });
    let owns: &[&str] = if owned { &["true"] } else { &["false"] };
    let settings = [CREATE_NAMESPACE, ("delete-namespaces", owns), ("delete-crds", owns)];
    let files = [("tank.json", &*first.file()), ("pump.json", &*second.file())];
    let created_first = async {
        // Argo CD writes the work when the one with the namespace is healthy.
        let work = ObjectRef::manifest_work("cluster1", name);
        stage.hub.wait_for(&work, |_| true).await?;
        check_stays(cluster1, &ObjectRef::namespace(name)).await
    };
    let (app, created_first) = tokio::join!(App::start(stage, name, &settings, &files), created_first);
    created_first?;
    let app = app?;
    app.applied().await?;
    cluster1.wait_for_crds().await?;
    for set in [&first, &second] {
        set.create_objects_of_others(cluster1).await?;
    }

    app.remove(&["tank.json"]).await?;
    app.applied().await?;
    first.check_remaining(cluster1, owned).await?;
    for object in second.ordinary() {
        check_stays(cluster1, &object).await?;
    }

    app.end().await?;
    for set in [first, second] {
        set.check_remaining(cluster1, owned).await?;
    }
    // The namespace that was created for the Application, and is not in Git, must stay.
    check_stays(cluster1, &ObjectRef::namespace(name)).await
}

#[tokio::test]
async fn shared_namespace_and_crd_outlive_the_application() -> Result<()> {
    check_deletion("deletion-shared", false).await
}

#[tokio::test]
async fn owned_namespace_and_crd_are_deleted_with_the_application() -> Result<()> {
    check_deletion("deletion-owned", true).await
}

const CREATE_NAMESPACE: (&str, &[&str]) = ("create-namespace", &["true"]);

fn config(colour: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config\ndata:\n  colour: {colour}\n")
}

#[tokio::test]
async fn unreachable_cluster_blocks_deletion_but_no_other_cluster() -> Result<()> {
    let stage = stage().await?;
    let Stage { hub, cluster1, .. } = stage;
    let name = "deletion-lost";
    let mut lost = hub.add_managed_cluster(name, ManagedClusterOptions::default()).await?;
    for cluster in [cluster1, &lost] {
        cluster.create_namespace(name).await?;
    }
    let both: &[(&str, &[&str])] = &[("clusters", &["cluster1", name])];
    let app = App::start(stage, name, both, &[("config.yaml", &config("green"))]).await?;
    let (object, config_map) = (app.application(), ObjectRef::config_map(name, "config"));
    let lost_work = ObjectRef::manifest_work(name, name);
    for cluster in [cluster1, &lost] {
        cluster.wait_for_value(&config_map, "/data/colour", "green").await?;
    }
    hub.wait_for(&lost_work, is_applied).await?;

    lost.stop_agent();
    // A commit reaches the other cluster, and Argo CD shows the cluster that it waits for.
    let commit = app.push(&[("config.yaml", &config("blue"))]).await?;
    hub.wait_for(&object, |app| has_synced(app, &commit)).await?;
    cluster1.wait_for_value(&config_map, "/data/colour", "blue").await?;
    hub.wait_for(&object, |app| has_health(app, "Progressing")).await?;
    let waiting = hub.read(&lost_work).await?;
    let message = format!("waiting for the agent of managed cluster {name} to apply it");
    assert_eq!(health_check::health(&waiting)?, ("Progressing".to_owned(), message));

    // The unreachable cluster does not block its removal from the Application: its work is being deleted until the agent is back.
    app.set(&[("clusters", &["cluster1"])]).await?;
    for colour in ["red", "yellow"] {
        let commit = app.push(&[("config.yaml", &config(colour))]).await?;
        hub.wait_for(&object, |app| has_synced(app, &commit)).await?;
        cluster1.wait_for_value(&config_map, "/data/colour", colour).await?;
        hub.wait_for(&lost_work, |work| !work["metadata"]["deletionTimestamp"].is_null())
            .await?;
    }

    // The Application is deleted after all its works.
    hub.delete(&object).await?;
    hub.holds_for(&object, Duration::from_secs(3), |_| true).await?;
    assert!(hub.get(&lost_work).await?.is_some());
    assert!(lost.get(&config_map).await?.is_some());
    lost.start_agent().await?;
    hub.wait_gone(&object).await?;
    hub.wait_gone(&lost_work).await?;
    for cluster in [cluster1, &lost] {
        cluster.wait_gone(&config_map).await?;
    }
    Ok(())
}

/// On a restored hub, Argo CD creates the works again, and the agent adopts their objects. Meanwhile it keeps them.
#[tokio::test]
async fn restored_hub_adopts_the_objects_of_lost_works() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    let name = "deletion-restored";
    let mut cluster = hub.add_managed_cluster(name, ManagedClusterOptions::default()).await?;
    cluster.create_namespace(name).await?;
    let clusters: &[(&str, &[&str])] = &[("clusters", &[name])];
    let app = App::start(stage, name, clusters, &[("config.yaml", &config("green"))]).await?;
    let (work, config_map) = (
        ObjectRef::manifest_work(name, name),
        ObjectRef::config_map(name, "config"),
    );
    hub.wait_for(&work, is_applied).await?;
    let before = cluster.read(&config_map).await?;

    // The hub loses the work without the agent.
    cluster.stop_agent();
    hub.patch(&work, &json!({"metadata": {"finalizers": null}})).await?;
    hub.delete_and_wait(&work).await?;
    cluster.start_agent().await?;
    let evicted = "jsonpath={.items[*].status.evictionStartTime}";
    let eviction = async || {
        let times = cluster.kubectl(&["get", "appliedmanifestworks", "-o", evicted]);
        times.map(|times| times.trim().to_owned()).ok()
    };
    let what = "the agent misses the work";
    wait::eventually(what, wait::DEADLINE, async || {
        eviction().await.filter(|times| !times.is_empty())
    })
    .await?;
    assert!(cluster.get(&config_map).await?.is_some());

    app.push(&[("config.yaml", &config("blue"))]).await?;
    let after = cluster.wait_for_value(&config_map, "/data/colour", "blue").await?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    let what = "the agent does not delete the objects later";
    wait::eventually(what, wait::DEADLINE, async || eviction().await.filter(String::is_empty)).await?;
    app.end().await?;
    cluster.wait_gone(&config_map).await
}

/// Returns true if a sync of that commit has completed.
fn has_synced(app: &Value, commit: &str) -> bool {
    let operation = &app["status"]["operationState"];
    operation["phase"] == "Succeeded" && operation["syncResult"]["revision"] == commit
}
