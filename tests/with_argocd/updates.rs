//! Tests that objects on a managed cluster follow Git, with the agent's permissions for each kind, and no others.

use crate::app::App;
use crate::stage::{Stage, stage};
use anyhow::{Result, ensure};
use jiff::Timestamp;
use ocm::health::{self, Clock, HealthStatus};
use serde_json::{Value, json};
use std::time::Duration;
use testbed::{ManagedCluster, ObjectRef, is_true};
use testing::merge;

/// An object in Git, with its changes.
struct Case {
    object: Value,
    /// A manual change on the cluster, as a JSON merge patch, and the state after the agent has applied the object again.
    by_hand: Value,
    then: fn(&Value) -> bool,
    /// A change in Git, as a JSON merge patch, and the state after it has arrived.
    in_git: Value,
    at_last: fn(&Value) -> bool,
}

const STRATEGY: &str = "argocd-ocm-cmp.github.io/update-strategy";
const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";

/// The namespace of the objects here, and the name of their Application.
const NAMESPACE: &str = "updates";

fn config_map(name: &str, annotations: &Value, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations}, "data": data})
}

fn metadata() -> Case {
    Case {
        object: ObjectRef::cluster("v1", "ServiceAccount", "marked").with(json!({
            "metadata": {"labels": {"kept": "a", "dropped": "a"}, "annotations": {"kept": "a", "dropped": "a"}},
        })),
        by_hand: json!({"metadata": {"labels": {"kept": "b", "theirs": "b"}}}),
        then: |object| object["metadata"]["labels"] == json!({"kept": "a", "dropped": "a", "theirs": "b"}),
        in_git: json!({"metadata": {"labels": {"dropped": null}, "annotations": {"dropped": null}}}),
        at_last: |object| {
            object["metadata"]["labels"] == json!({"kept": "a", "theirs": "b"})
                && object["metadata"]["annotations"] == json!({"kept": "a"})
        },
    }
}

fn service() -> Case {
    let port = |port: u16| json!({"name": "http", "protocol": "TCP", "port": port, "targetPort": 8080});
    Case {
        object: ObjectRef::cluster("v1", "Service", "web")
            .with(json!({"spec": {"selector": {"app": "web"}, "ports": [port(80)]}})),
        by_hand: json!({"spec": {"ports": [
            {"name": "http", "protocol": "TCP", "port": 80, "targetPort": 9999},
        ]}}),
        then: |object| object["spec"]["ports"][0]["targetPort"] == 8080,
        in_git: json!({"spec": {"ports": [port(81)]}}),
        at_last: |object| {
            let ports = object["spec"]["ports"].as_array().map(Vec::as_slice);
            matches!(ports, Some([only]) if only["port"] == 81 && only["targetPort"] == 8080)
        },
    }
}

fn data() -> Case {
    Case {
        object: config_map("settings", &json!({}), &json!({"kept": "a", "dropped": "a"})),
        by_hand: json!({"data": {"kept": "b", "theirs": "b"}}),
        then: |object| object["data"] == json!({"kept": "a", "dropped": "a", "theirs": "b"}),
        in_git: json!({"data": {"dropped": null, "new": "a"}}),
        at_last: |object| object["data"] == json!({"kept": "a", "theirs": "b", "new": "a"}),
    }
}

fn secret() -> Case {
    Case {
        object: ObjectRef::cluster("v1", "Secret", "password")
            .with(json!({"stringData": {"kept": "a", "dropped": "a"}})),
        by_hand: json!({"stringData": {"kept": "b"}}),
        then: |object| object["data"] == json!({"kept": "YQ==", "dropped": "YQ=="}),
        in_git: json!({"stringData": {"dropped": null}}),
        at_last: |object| object["data"] == json!({"kept": "YQ=="}),
    }
}

fn pod_template(name: &str, image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "it", "image": image}]},
    })
}

/// Returns a Deployment whose replicas are not set by Git: its autoscaler requires at least two, and a user requests more.
fn scaled() -> Case {
    Case {
        object: ObjectRef::cluster("apps/v1", "Deployment", "scaled").with(json!({
            "spec": {"selector": {"matchLabels": {"app": "scaled"}}, "template": pod_template("scaled", "web:1")},
        })),
        by_hand: json!({"spec": {"replicas": 4}}),
        then: |object| object["spec"]["replicas"] == 4,
        in_git: json!({"spec": {"template": pod_template("scaled", "web:2")}}),
        at_last: |object| {
            object["spec"]["replicas"] == 4 && object["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"
        },
    }
}

fn autoscaler() -> Case {
    Case {
        object: ObjectRef::cluster("autoscaling/v2", "HorizontalPodAutoscaler", "scaled").with(json!({"spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"},
            "minReplicas": 2,
            "maxReplicas": 5,
            "metrics": [{
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }],
        }})),
        by_hand: json!({"spec": {"maxReplicas": 9}}),
        then: |object| object["spec"]["maxReplicas"] == 5,
        in_git: json!({"spec": {"maxReplicas": 6}}),
        at_last: |object| object["spec"]["maxReplicas"] == 6,
    }
}

/// Returns a Job: the API server completes its selector and template, and rejects every change of them.
fn job() -> Case {
    Case {
        object: ObjectRef::cluster("batch/v1", "Job", "once").with(json!({
            "metadata": {"labels": {"kept": "a"}},
            "spec": {"template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "it", "image": "once:1"}]},
            }},
        })),
        by_hand: json!({"metadata": {"labels": {"kept": "b"}}}),
        then: |object| object["metadata"]["labels"]["kept"] == "a",
        in_git: json!({"metadata": {"labels": {"kept": "c"}}}),
        at_last: |object| object["metadata"]["labels"]["kept"] == "c" && is_true(object, "Complete"),
    }
}

/// Returns a claim: the cluster writes its volume into it, which is immutable then.
fn claim() -> Case {
    Case {
        object: ObjectRef::cluster("v1", "PersistentVolumeClaim", "data").with(json!({
            "metadata": {"labels": {"kept": "a"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        })),
        by_hand: json!({"metadata": {"labels": {"kept": "b"}}}),
        then: |object| object["metadata"]["labels"]["kept"] == "a",
        in_git: json!({"metadata": {"labels": {"kept": "c"}}}),
        at_last: |object| {
            object["metadata"]["labels"]["kept"] == "c"
                && object["spec"]["volumeName"] == VOLUME
                && object["status"]["phase"] == "Bound"
        },
    }
}

/// The volume that the claim is bound to; no other claim on the cluster may use it.
const VOLUME: &str = "updates-data";

fn volume() -> Value {
    ObjectRef::cluster("v1", "PersistentVolume", VOLUME).with(json!({"spec": {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": NAMESPACE, "name": "data"},
    }}))
}

fn crd() -> Case {
    let version = |name: &str, fields: Value| {
        let spec = json!({"type": "object", "properties": fields});
        json!({
            "name": name,
            "served": true,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    let text = || json!({"type": "string"});
    let first = version("v1", json!({"size": text()}));
    Case {
        object: ObjectRef::crd("tanks.updates.example.com").with(json!({"spec": {
            "group": "updates.example.com",
            "names": {"kind": "Tank", "plural": "tanks", "singular": "tank", "listKind": "TankList"},
            "scope": "Namespaced",
            "versions": [first],
        }})),
        by_hand: json!({"spec": {"versions": [version("v1", json!({"size": text(), "theirs": text()}))]}}),
        then: |object| *schema(object, 0) == json!({"size": {"type": "string"}}),
        in_git: json!({"spec": {"versions": [
            version("v1", json!({"size": text(), "colour": text()})),
            version("v2", json!({"colour": text()})),
        ]}}),
        at_last: |object| {
            *schema(object, 0) == json!({"size": {"type": "string"}, "colour": {"type": "string"}})
                && *schema(object, 1) == json!({"colour": {"type": "string"}})
        },
    }
}

/// Returns the fields of `spec` in a CRD's version.
fn schema(crd: &Value, version: usize) -> &Value {
    &crd["spec"]["versions"][version]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
}

/// Returns an object with the strategy CreateOnly.
fn created_only() -> Case {
    Case {
        object: config_map("created-only", &json!({STRATEGY: "CreateOnly"}), &json!({"kept": "a"})),
        by_hand: json!({"data": {"kept": "b"}}),
        then: |object| object["data"]["kept"] == "b",
        in_git: json!({"data": {"kept": "c"}}),
        at_last: |object| object["data"]["kept"] == "b",
    }
}

/// Returns an object that is replaced as a whole, so that additions by others are removed.
fn replaced(name: &str, annotations: &Value) -> Case {
    Case {
        object: config_map(name, annotations, &json!({"kept": "a"})),
        by_hand: json!({"data": {"theirs": "b"}}),
        then: |object| object["data"] == json!({"kept": "a"}),
        in_git: json!({"data": {"kept": "c"}}),
        at_last: |object| object["data"] == json!({"kept": "c"}),
    }
}

/// Returns an object with the sync options of Argo CD that are the agent's default.
fn by_default() -> Case {
    let options = "Replace=false,ServerSideApply=true,SkipDryRunOnMissingResource=true,ApplyOutOfSyncOnly=false";
    Case {
        object: config_map("by-default", &json!({SYNC_OPTIONS: options}), &json!({"kept": "a"})),
        by_hand: json!({"data": {"kept": "b", "theirs": "b"}}),
        then: |object| object["data"] == json!({"kept": "a", "theirs": "b"}),
        in_git: json!({"data": {"kept": "c"}}),
        at_last: |object| object["data"] == json!({"kept": "c", "theirs": "b"}),
    }
}

/// Returns a claim that no volume satisfies, and that its Application ignores.
fn ignored() -> Case {
    let mut case = claim();
    case.object["metadata"]["name"] = json!("unbound");
    case.object["metadata"]["annotations"] = json!({"argocd.argoproj.io/ignore-healthcheck": "true"});
    case.at_last = |object| object["metadata"]["labels"]["kept"] == "c" && object["status"]["phase"] == "Pending";
    case
}

/// Returns an object that is read-only: it belongs to others.
fn read_only() -> Case {
    Case {
        object: config_map("looked-at", &json!({STRATEGY: "ReadOnly"}), &json!({"kept": "a"})),
        by_hand: json!({"data": {"kept": "b"}}),
        then: |object| object["data"]["kept"] == "b",
        in_git: json!({"data": {"kept": "c"}}),
        at_last: |object| object["data"]["kept"] == "b",
    }
}

/// Returns an object with characters that an apply patch would change.
fn unsafe_for_apply() -> Case {
    Case {
        object: config_map("awkward", &json!({}), &json!({"text": AWKWARD, "kept": "a"})),
        by_hand: json!({"data": {"kept": "b"}}),
        then: |object| object["data"] == json!({"text": AWKWARD, "kept": "a"}),
        in_git: json!({"data": {"kept": "c"}}),
        at_last: |object| object["data"] == json!({"text": AWKWARD, "kept": "c"}),
    }
}

const AWKWARD: &str = "next line \u{85}, delete \u{7f}, noncharacter \u{ffff}";

/// Returns the last object that the agent applies: when it is repaired, all others have been processed.
fn last() -> Case {
    Case {
        object: ObjectRef::cluster("batch/v1", "CronJob", "last").with(json!({
            "metadata": {"labels": {"turn": "0"}},
            "spec": {
                "schedule": "0 0 1 1 *",
                "jobTemplate": {"spec": {"template": {
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "it", "image": "last:1"}]},
                }}},
            },
        })),
        by_hand: json!({"metadata": {"labels": {"turn": "1"}}}),
        then: |object| object["metadata"]["labels"]["turn"] == "0",
        in_git: json!({"metadata": {"labels": {"turn": "2"}}}),
        at_last: |object| object["metadata"]["labels"]["turn"] == "2",
    }
}

fn cases() -> Vec<Case> {
    vec![
        metadata(),
        service(),
        data(),
        secret(),
        scaled(),
        autoscaler(),
        job(),
        claim(),
        ignored(),
        crd(),
        created_only(),
        replaced("replaced", &json!({STRATEGY: "Update"})),
        replaced("replaced-by-option", &json!({SYNC_OPTIONS: "Replace=true"})),
        by_default(),
        read_only(),
        unsafe_for_apply(),
        last(),
    ]
}

impl Case {
    /// Returns the identity of the object on the cluster.
    fn on_cluster(&self) -> ObjectRef {
        let mut object = ObjectRef::of(&self.object);
        if object.kind != "CustomResourceDefinition" {
            object.namespace = Some(NAMESPACE.to_owned());
        }
        object
    }

    /// Returns the values that change when the object does; separate for its status if it has its own generation.
    async fn version(&self, cluster: &ManagedCluster) -> Result<(String, Value, Value)> {
        let object = self.on_cluster();
        let live = cluster.read(&object).await?;
        let metadata = &live["metadata"];
        let changes = [&metadata["generation"], &metadata["resourceVersion"]];
        let changes = changes.into_iter().find(|version| !version.is_null());
        Ok((
            object.to_string(),
            metadata["uid"].clone(),
            changes.cloned().unwrap_or_default(),
        ))
    }
}

/// Formats the objects as a file of the repository. Characters that YAML does not permit are escaped.
fn file(cases: &[Case]) -> String {
    let objects: Vec<&Value> = cases.iter().map(|case| &case.object).collect();
    let text = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let escaped = |char: char| match char {
        '\u{7f}' | '\u{85}' | '\u{ffff}' => format!("\\u{:04x}", u32::from(char)),
        other => other.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Returns true if the agent has applied all of a work.
fn is_applied_or_pending(work: &Value) -> bool {
    let manifests = work["status"]["resourceStatus"]["manifests"].as_array();
    let applied = |owner: &Value| {
        owner["conditions"].as_array().is_none_or(|all| {
            all.iter()
                .all(|condition| condition["type"] != "Applied" || condition["status"] == "True")
        })
    };
    applied(&work["status"]) && manifests.is_none_or(|all| all.iter().all(applied))
}

#[tokio::test]
async fn objects_follow_git_and_stay_healthy_while_updated() -> Result<()> {
    let stage = stage().await?;
    let cluster1 = &stage.cluster1;
    cluster1.create_namespace(NAMESPACE).await?;
    cluster1.create(&volume()).await?;
    let mut theirs = read_only().object;
    theirs["metadata"]["namespace"] = json!(NAMESPACE);
    cluster1.create(&theirs).await?;

    let cases = cases();
    let settings: &[(&str, &[&str])] = &[("allow-secrets", &["true"])];
    let app = App::start(stage, NAMESPACE, settings, &[("all.json", &file(&cases))]).await?;
    let work = app.work();
    stage.hub.wait_for(&work, |_| true).await?;
    tokio::select! {
        // Longer than the rest of the test can take.
        failure = stage.hub.holds_for(&work, Duration::from_secs(3600), is_applied_or_pending) => failure,
        done = follow(stage, &app, cases) => done,
    }?;
    app.end().await?;
    cluster1
        .delete(&ObjectRef::cluster("v1", "PersistentVolume", VOLUME))
        .await
}

async fn follow(stage: &Stage, app: &App<'_>, mut cases: Vec<Case>) -> Result<()> {
    let cluster1 = &stage.cluster1;
    app.applied().await?;
    cluster1
        .wait_for(&claim().on_cluster(), |object| object["status"]["phase"] == "Bound")
        .await?;
    cluster1
        .wait_for(&job().on_cluster(), |object| is_true(object, "Complete"))
        .await?;
    cluster1
        .wait_for(&scaled().on_cluster(), |object| {
            object["spec"]["replicas"] == 2 && object["status"]["availableReplicas"] == 2
        })
        .await?;

    // Nothing has changed, so nothing is written.
    let last = last();
    let quiet = || async {
        let mut versions = Vec::new();
        for case in cases.iter().filter(|case| case.on_cluster() != last.on_cluster()) {
            versions.push(case.version(cluster1).await?);
        }
        anyhow::Ok(versions)
    };
    let before = quiet().await?;
    for _ in 0..3 {
        again(cluster1, app, &last).await?;
    }
    assert_eq!(quiet().await?, before);

    for case in &cases {
        cluster1.patch(&case.on_cluster(), &case.by_hand).await?;
    }
    again(cluster1, app, &last).await?;
    for case in &cases {
        cluster1.wait_for(&case.on_cluster(), case.then).await?;
    }
    // Permitted manual changes stay, also after all other objects were applied again.
    again(cluster1, app, &last).await?;
    for case in &cases {
        check_stays(cluster1, case, case.then).await?;
    }

    for case in &mut cases {
        merge(&mut case.object, &case.in_git);
    }
    app.commit(&[("all.json", &file(&cases))]).await?;
    app.applied().await?;
    for case in &cases {
        check_stays(cluster1, case, case.at_last).await?;
    }
    // The agent reports the state of the objects after it has applied all of them.
    let is_ignored = |work: &Value| {
        let work = health::evaluate(&work.to_string(), &Clock::at(Timestamp::now()));
        work.is_ok_and(|work| {
            let mut objects = work.objects.iter();
            objects.any(|object| object.name == "unbound" && object.health == HealthStatus::Healthy)
        })
    };
    stage.hub.wait_for(&app.work(), is_ignored).await.map(drop)
}

/// Makes the agent apply everything again, and waits until it has.
async fn again(cluster1: &ManagedCluster, app: &App<'_>, last: &Case) -> Result<()> {
    cluster1.patch(&last.on_cluster(), &last.by_hand).await?;
    app.reconcile().await?;
    cluster1.wait_for(&last.on_cluster(), last.then).await.map(drop)
}

async fn check_stays(cluster: &ManagedCluster, case: &Case, condition: fn(&Value) -> bool) -> Result<()> {
    let object = case.on_cluster();
    let live = cluster.read(&object).await?;
    ensure!(condition(&live), "{object} does not meet the condition:\n{live:#}");
    Ok(())
}
