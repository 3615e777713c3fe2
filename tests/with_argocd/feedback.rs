//! Tests that the most important status values of every kind with feedback arrive on the hub.

use crate::app::{self, permit_agent};
use crate::health::deployment;
use crate::stage::{Stage, application, stage};
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::time::Duration;
use testbed::application::{has_health, is_healthy};
use testbed::{GitRepository, ManagedClusterOptions, ObjectRef, condition, is_synced, is_true};

/// One object of each kind. The Deployment `idle` is for the autoscaler, which has no metrics here and ignores Deployments scaled
/// to 0.
const OBJECTS: &str = r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'example.com/web:1'}, {name: side, image: 'example.com/side:2'}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: idle}
spec:
  replicas: 0
  paused: true
  selector: {matchLabels: {app: idle}}
  template:
    metadata: {labels: {app: idle}}
    spec: {containers: [{name: main, image: 'example.com/idle:1'}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: 'example.com/db:1'}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: log}
spec:
  selector: {matchLabels: {app: log}}
  template:
    metadata: {labels: {app: log}}
    spec: {containers: [{name: main, image: 'example.com/log:1'}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: old}
spec:
  selector: {matchLabels: {app: old}}
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: main, image: 'example.com/old:1'}]}
---
apiVersion: v1
kind: Pod
metadata: {name: one}
spec: {containers: [{name: main, image: 'example.com/one:1'}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: 'example.com/once:1'}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: often}
spec:
  schedule: '* * * * *'
  suspend: true
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: main, image: 'example.com/often:1'}]}
---
apiVersion: v1
kind: Service
metadata: {name: front}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: door}
spec: {defaultBackend: {service: {name: front, port: {number: 80}}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {storageClassName: '', accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: idle}
spec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: idle}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kettles.feedback.example.com}
spec:
  group: feedback.example.com
  scope: Namespaced
  names: {kind: Kettle, plural: kettles, singular: kettle, listKind: KettleList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: feedback.example.com/v1
kind: Kettle
metadata: {name: tea}
spec: {litres: 2}
";

const NAME: &str = "feedback";
const CUSTOM: &str = "feedback.part-kettle.feedback.example.com";

/// Values that only verdicts need.
const FOR_VERDICTS: &str = "Generation Observed Strategy Partition CurrentRevision UpdateRevision Active Type Condition Allowed Reason \
                            NamesAccepted NamesMessage Message";

/// Returns the feedback values of an object in a work's status, without those for verdicts.
fn values(work: &Value, kind: &str, name: &str) -> Option<Value> {
    let manifests = work["status"]["resourceStatus"]["manifests"].as_array()?;
    let manifest = manifests
        .iter()
        .find(|manifest| manifest["resourceMeta"]["kind"] == kind && manifest["resourceMeta"]["name"] == name)?;
    let mut values = Map::new();
    for value in manifest["statusFeedback"]["values"].as_array().into_iter().flatten() {
        let value_name = value["name"].as_str()?;
        if FOR_VERDICTS.split(' ').any(|of_verdict| of_verdict == value_name) {
            continue;
        }
        let mut field_values = value["fieldValue"]
            .as_object()?
            .iter()
            .filter(|(field, _)| *field != "type");
        values.insert(value_name.to_owned(), field_values.next()?.1.clone());
    }
    Some(Value::Object(values))
}

async fn wait_for_feedback(stage: &Stage, work: &str, kind: &str, name: &str, expected: &Value) -> Result<()> {
    let work = ObjectRef::manifest_work("cluster1", work);
    let mut last = None;
    let has_come = |work: &Value| {
        last = values(work, kind, name);
        last.as_ref() == Some(expected)
    };
    let came = stage.hub.wait_for(&work, has_come).await.map(drop);
    came.with_context(|| format!("{kind} {name}: {last:?}, not {expected}"))
}

/// Writes a status that only a cloud, or a controller of custom resources, writes.
async fn write_status(stage: &Stage, object: &ObjectRef, status: &Value) -> Result<()> {
    stage.cluster1.wait_for(object, |_| true).await?;
    let status = json!({"status": status});
    stage.cluster1.patch_status(object, &status).await.map(drop)
}

fn object_ref(api_version: &str, kind: &str, name: &str) -> ObjectRef {
    ObjectRef::namespaced(api_version, kind, NAME, name)
}

/// Creates the prerequisites on the cluster: the namespace, a volume for the claim, and the agent's permission for custom
/// resources.
async fn prepare(stage: &Stage) -> Result<()> {
    stage.cluster1.create_namespace(NAME).await?;
    let volume = ObjectRef::cluster("v1", "PersistentVolume", NAME).with(json!({"spec": {
        "capacity": {"storage": "2Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/nowhere"},
        "claimRef": {"namespace": NAME, "name": "disk"},
    }}));
    stage.cluster1.apply(&volume).await?;
    permit_agent(&stage.cluster1, NAME, &["feedback.example.com"]).await
}

/// The feedback of all objects but the custom resource: the kind, the name, and the values.
const FEEDBACK: &str = "\
Deployment web ReadyReplicas=2 Replicas=2 AvailableReplicas=2 UpdatedReplicas=2 DesiredReplicas=2 Image=example.com/web:1
Deployment idle DesiredReplicas=0 Image=example.com/idle:1 Suspended=true
StatefulSet db ReadyReplicas=2 Replicas=2 AvailableReplicas=2 UpdatedReplicas=2 DesiredReplicas=2 Image=example.com/db:1
DaemonSet log NumberReady=1 DesiredNumberScheduled=1 NumberAvailable=1 UpdatedNumberScheduled=1 Image=example.com/log:1
ReplicaSet old ReadyReplicas=1 Replicas=1 AvailableReplicas=1 DesiredReplicas=1 Image=example.com/old:1
Pod one PodReady=True PodPhase=Running Image=example.com/one:1
Job once JobComplete=True JobSucceeded=1 Suspended=false
CronJob often Suspended=true
Service front LoadBalancer=192.0.2.1
Ingress door LoadBalancer=door.example.com
PersistentVolumeClaim disk Phase=Bound Capacity=2Gi
HorizontalPodAutoscaler idle DesiredReplicas=0
PodDisruptionBudget web DisruptionsAllowed=1
ConfigMap settings
CustomResourceDefinition kettles.feedback.example.com Established=True";

/// Returns a value as JSON if it is a number or boolean, and as text otherwise.
fn parse_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

#[tokio::test]
async fn every_kind_has_feedback_and_no_rule_fails() -> Result<()> {
    let stage = stage().await?;
    prepare(stage).await?;
    let git = GitRepository::new()?;
    git.commit(&[(&format!("{NAME}/all.yaml"), OBJECTS)])?;
    app::create(stage, NAME, &git, |_| ()).await?;

    let address = |kind: &str, address: &str| json!({"loadBalancer": {"ingress": [{kind: address}]}});
    write_status(
        stage,
        &object_ref("v1", "Service", "front"),
        &address("ip", "192.0.2.1"),
    )
    .await?;
    let door = object_ref("networking.k8s.io/v1", "Ingress", "door");
    write_status(stage, &door, &address("hostname", "door.example.com")).await?;
    for line in FEEDBACK.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let values = words[2..].iter().filter_map(|word| word.split_once('='));
        let expected: Value = values
            .map(|(name, text)| (name.to_owned(), parse_value(text)))
            .collect();
        wait_for_feedback(stage, NAME, words[0], words[1], &expected).await?;
    }
    a_custom_resource_becomes_ready(stage).await?;

    for work in [NAME, CUSTOM] {
        let work = stage.hub.read(&ObjectRef::manifest_work("cluster1", work)).await?;
        let manifests = work["status"]["resourceStatus"]["manifests"].as_array();
        let manifests = manifests
            .filter(|manifests| !manifests.is_empty())
            .context("manifests")?;
        for manifest in manifests {
            let of_manifest = json!({"status": manifest});
            assert!(is_true(&of_manifest, "StatusFeedbackSynced"), "{manifest:#}");
            for rule in ["Healthy", "Progressing"] {
                let rule_condition = condition(&of_manifest, rule);
                let is_evaluated =
                    rule_condition.is_none_or(|rule_condition| rule_condition["reason"] == "ConditionRuleEvaluated");
                assert!(is_evaluated, "{manifest:#}");
            }
        }
    }
    stage.hub.delete(&ObjectRef::application(NAME)).await
}

/// Sets it to not ready, with a reason, and then to ready: Argo CD waits for it.
async fn a_custom_resource_becomes_ready(stage: &Stage) -> Result<()> {
    let hub = &stage.hub;
    let kettle = object_ref("feedback.example.com/v1", "Kettle", "tea");
    let ready = |status: &str, reason: &str| {
        let ready = json!({"type": "Ready", "status": status, "reason": reason, "message": "80 degrees"});
        json!({"conditions": [ready]})
    };
    let app = ObjectRef::application(NAME);

    write_status(stage, &kettle, &ready("False", "Boiling")).await?;
    let expected = json!({"Ready": "False", "ReadyReason": "Boiling"});
    wait_for_feedback(stage, CUSTOM, "Kettle", "tea", &expected).await?;
    let custom = ObjectRef::manifest_work("cluster1", CUSTOM);
    let message = "Ready: False: Boiling: 80 degrees";
    let waits = |work: &Value| {
        let of_kettle = json!({"status": work["status"]["resourceStatus"]["manifests"][0]});
        is_true(&of_kettle, "Healthy")
            && condition(&of_kettle, "Progressing")
                .is_some_and(|progress| progress["status"] == "True" && progress["message"] == message)
    };
    hub.wait_for(&custom, waits).await?;
    hub.wait_for(&app, |app| has_health(app, "Progressing")).await?;

    write_status(stage, &kettle, &ready("True", "Boiled")).await?;
    let expected = json!({"Ready": "True", "ReadyReason": "Boiled"});
    wait_for_feedback(stage, CUSTOM, "Kettle", "tea", &expected).await?;
    // The paused Deployment and the CronJob are Suspended all the time.
    hub.wait_for(&app, |app| has_health(app, "Suspended")).await.map(drop)
}

#[tokio::test]
async fn watched_object_reports_its_health_without_polling() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    let name = "feedback-watch";
    let options = ManagedClusterOptions {
        // Longer than this test: only a watch can report a change.
        status_sync_interval: Duration::from_secs(3600),
        ..ManagedClusterOptions::default()
    };
    let cluster = hub.add_managed_cluster("watched", options).await?;
    let git = GitRepository::new()?;
    // No node of the managed cluster accepts its Pods until one has the label.
    let waiting = deployment("web", "", "      nodeSelector: {disk: fast}\n");
    git.commit(&[("feedback-watch/web.yaml", &waiting)])?;
    let mut application = application(name, &git)?;
    application["spec"]["source"]["plugin"] = json!({
        "name": "argocd-ocm-cmp",
        "parameters": [{"name": "clusters", "array": ["watched"]}, {"name": "feedback", "string": "watch"}],
    });
    hub.create_application(&application).await?;
    let object_ref = ObjectRef::application(name);
    hub.wait_for(&object_ref, |app| is_synced(app) && has_health(app, "Progressing"))
        .await?;
    let is_waiting = |work: &Value| {
        values(work, "Deployment", "web")
            .is_some_and(|values| values["DesiredReplicas"] == 2 && values["Replicas"] == 2)
    };
    hub.wait_for(&ObjectRef::manifest_work("watched", name), is_waiting)
        .await?;
    cluster.kubectl("label nodes --all disk=fast")?;
    hub.wait_for(&object_ref, is_healthy).await?;
    Ok(())
}
