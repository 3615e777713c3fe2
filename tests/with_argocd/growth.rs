//! Tests of Applications that outgrow one work and shrink again: everything arrives, and objects that stay in Git are never
//! deleted.

use crate::app;
use crate::delivery::{delivered, objects_in, objects_of, synced, syncs, works};
use crate::stage::stage;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use testbed::{GitRepository, ManagedCluster, ObjectRef, is_applied, is_synced, wait};

/// The size limit of a work in these tests.
const WORK_SIZE: usize = 200_000;

/// The limit of OCM's webhook.
const MANIFEST_LIMIT: usize = 512_000;

/// Returns text of that many bytes, different for every seed.
fn make_text(seed: &str, length: usize) -> String {
    let line = format!("{seed} ");
    line.repeat(length / line.len() + 1)[..length].to_owned()
}

fn config_map(name: &str, text: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}).to_string()
}

/// Waits until the `ConfigMap`s of a namespace are these, with these texts.
///
/// They are when the Application is healthy, with one exception: the agent applies every work again after four to six minutes,
/// and if it does so with a work that is about to be replaced, it writes the old text once more. It repairs that when it applies
/// the new work again.
async fn texts_are(cluster: &ManagedCluster, namespace: &str, expected: &BTreeMap<String, String>) -> Result<()> {
    let what = format!("the ConfigMaps of {namespace} are those in Git");
    wait::eventually(&what, Duration::from_secs(420), async || {
        let objects = objects_in(cluster, namespace, &[("v1", "ConfigMap")]).await.ok()?;
        let texts: BTreeMap<&str, &str> = objects
            .iter()
            .filter_map(|(name, object)| Some((name.strip_prefix("ConfigMap ")?, object["data"]["text"].as_str()?)))
            .collect();
        let same =
            texts.len() == expected.len() && expected.iter().all(|(name, text)| texts.get(&**name) == Some(&&**text));
        same.then_some(())
    })
    .await
}

/// A database, which must never be deleted and recreated.
const DATABASE: &str = "
apiVersion: v1
kind: Namespace
metadata:
  name: growing
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
spec:
  storageClassName: ''
  volumeName: growing
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data: {text: colour=green}
---
apiVersion: v1
kind: Service
metadata:
  name: database
spec:
  clusterIP: None
  selector: {app: database}
  ports: [{port: 5432}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: database
spec:
  serviceName: database
  replicas: 2
  selector: {matchLabels: {app: database}}
  template:
    metadata: {labels: {app: database}}
    spec:
      containers: [{name: database, image: postgres}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
";

const OF_THE_DATABASE: [(&str, &str); 5] = [
    ("v1", "ConfigMap"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("apps/v1", "StatefulSet"),
];

/// The number of fillers of 40,000 bytes in each commit: back to one work twice, and not only from one step to the other end.
/// `buckets` tests many more on values; a patch of the status of a large work costs the API server a fifth of a second.
const FILLERS: [usize; 5] = [7, 1, 28, 12, 0];

#[tokio::test]
async fn splitting_and_joining_works_loses_no_object() -> Result<()> {
    let stage = stage().await?;
    let (hub, cluster1) = (&stage.hub, &stage.cluster1);
    let name = "growing";
    let volume = ObjectRef::cluster("v1", "PersistentVolume", name).with(json!({"spec": {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/data"},
        "persistentVolumeReclaimPolicy": "Retain",
    }}));
    cluster1.create(&volume).await?;
    let git = GitRepository::new()?;
    let commit = git.commit(&[("growing/database.yaml", DATABASE)])?;
    app::create(stage, name, &git, |_| ()).await?;
    let app = delivered(hub, name, &commit).await?;
    let mut syncs_before = syncs(&app);
    let mut works_before: BTreeSet<String> = works(hub, name).await?.into_keys().collect();
    assert_eq!(works_before, BTreeSet::from([name.to_owned()]));
    let mut before = objects_in(cluster1, name, &OF_THE_DATABASE).await?;
    let keys: Vec<String> = before.keys().cloned().collect();
    let all = "ConfigMap settings, PersistentVolumeClaim data, Pod database-0, Pod database-1, Service database, StatefulSet database";
    for object in all.split(", ") {
        assert!(before.contains_key(object), "{object} is not among {keys:?}");
    }
    let namespace = ObjectRef::namespace(name);
    let namespace_before = cluster1.read(&namespace).await?;

    let mut counts = BTreeSet::new();
    for (round, fillers) in FILLERS.into_iter().enumerate() {
        let expected = fill(&git, round, fillers)?;
        let commit = git.commit(&[])?;
        let app = synced(hub, name, &commit).await?;
        assert_eq!(syncs(&app), syncs_before + 1, "round {round}: one sync for each commit");
        syncs_before = syncs(&app);
        // Compare before the objects are healthy: a deleted object may never become healthy again.
        let now = objects_in(cluster1, name, &OF_THE_DATABASE).await?;
        same_objects(round, &keys, &before, &now);
        delivered(hub, name, &commit).await?;

        let works = works(hub, name).await?;
        for work in works.values() {
            assert!(is_applied(work), "round {round}: {:#}", work["status"]);
        }
        let names: BTreeSet<String> = works.into_keys().collect();
        assert_ne!(names, works_before, "round {round} splits or joins works");
        if fillers < 3 {
            assert_eq!(names, BTreeSet::from([name.to_owned()]), "round {round}");
        }
        counts.insert(names.len());
        works_before = names;

        let after = objects_in(cluster1, name, &OF_THE_DATABASE).await?;
        same_objects(round, &keys, &before, &after);
        let database = "StatefulSet database";
        assert_eq!(
            after[database]["metadata"]["generation"], before[database]["metadata"]["generation"],
            "round {round}: the database was not restarted"
        );
        texts_are(cluster1, name, &expected).await?;
        before = after;
    }
    // The hashes decide the numbers of works, but there are always many different ones.
    assert!(
        counts.contains(&1) && counts.len() >= 3 && counts.last() >= Some(&7),
        "{counts:?}"
    );
    let namespace_after = cluster1.read(&namespace).await?;
    assert_eq!(namespace_after["metadata"]["uid"], namespace_before["metadata"]["uid"]);
    hub.delete(&ObjectRef::application(name)).await
}

/// Asserts that the objects before and after are the same, and that the kept ones exist.
fn same_objects(round: usize, names: &[String], before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) {
    for name in names {
        assert!(after.contains_key(name), "round {round}: {name} is gone");
    }
    for (name, then) in before {
        let Some(now) = after.get(name) else { continue };
        for field in ["uid", "creationTimestamp", "deletionTimestamp"] {
            let (then, now) = (&then["metadata"][field], &now["metadata"][field]);
            assert_eq!(now, then, "round {round}: {name}: {field}");
        }
    }
}

/// Writes that many fillers, every second one with a text of this round, and returns the expected objects.
fn fill(git: &GitRepository, round: usize, fillers: usize) -> Result<BTreeMap<String, String>> {
    let folder = git.path().join("growing/fillers");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let mut expected = BTreeMap::from([("settings".to_owned(), "colour=green".to_owned())]);
    for at in 0..fillers {
        let version = if at % 2 == 0 { 0 } else { round };
        let (filler, text) = (format!("filler-{at}"), make_text(&format!("{at} in {version}"), 40_000));
        std::fs::write(folder.join(format!("{filler}.json")), config_map(&filler, &text))?;
        expected.insert(filler, text);
    }
    Ok(expected)
}

#[tokio::test]
async fn object_too_large_for_client_side_apply_has_its_own_work() -> Result<()> {
    let name = "large";
    let stage = stage().await?;
    let (hub, cluster1) = (&stage.hub, &stage.cluster1);
    let git = GitRepository::new()?;
    let file = format!("{name}/large.json");
    let mut expected = BTreeMap::new();
    git.commit(&[(&format!("{name}/small.json"), &config_map("small", "small"))])?;
    expected.insert("small".to_owned(), "small".to_owned());
    let mut created = false;
    let mut uid = Value::Null;
    for length in [1_000, 490_000, 300_000, 2_000] {
        let text = make_text(&format!("one of {length}"), length);
        let commit = git.commit(&[(&file, &config_map("large", &text))])?;
        expected.insert("large".to_owned(), text);
        if !created {
            app::create(stage, name, &git, |_| ()).await?;
            created = true;
        }
        delivered(hub, name, &commit).await?;

        let before = works(hub, name).await?;
        let large = before
            .values()
            .find(|work| objects_of(work).contains("ConfigMap large"));
        let large = large.context("no work has the object")?;
        let is_large = length > WORK_SIZE;
        let alone = objects_of(large).len() == 1;
        assert_eq!(alone, is_large, "{length}");
        assert_eq!(before.len(), if is_large { 2 } else { 1 }, "{length}");
        let size = large["spec"]["workload"].to_string().len();
        assert!(size > length && size < MANIFEST_LIMIT, "{size}");
        let options = &large["metadata"]["annotations"]["argocd.argoproj.io/sync-options"];
        let server_side = if is_large { ",ServerSideApply=true" } else { "" };
        assert_eq!(*options, format!("PruneLast=true{server_side}"), "{length}");
        texts_are(cluster1, name, &expected).await?;
        let object = cluster1.read(&ObjectRef::config_map(name, "large")).await?;
        if uid.is_null() {
            uid = object["metadata"]["uid"].clone();
        }
        assert_eq!(object["metadata"]["uid"], uid, "{length}: the object was recreated");

        for refresh in 1..=3 {
            let refreshed = hub.refresh_application(name, "hard").await?;
            let status = &refreshed["status"];
            assert!(is_synced(&refreshed), "{length}, refresh {refresh}: {status:#}");
        }
        for (work, now) in works(hub, name).await? {
            assert_eq!(
                now["metadata"]["generation"], before[&work]["metadata"]["generation"],
                "{length}: {work} was written again"
            );
        }
    }
    hub.delete(&ObjectRef::application(name)).await
}
