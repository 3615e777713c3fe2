//! Tests of what a managed cluster's agent can write on the hub, with the credentials that OCM's registration gave it:
//! `deploy/agent_admission.yaml` refuses all that OCM's agents never write, and without it nothing of what the agent writes gives it
//! authority.

use crate::stage::{self, Stage};
use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use testbed::{Account, Arguments, Hub, ObjectRef, is_applied, is_true, wait};
use testing::merge;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/agent_admission.yaml");
/// The prefix of labels and annotations of the pull model.
const PULL: &str = "apps.open-cluster-management.io/";
const CLEANUP: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";
const DEFAULT_SET: &str = "cluster.open-cluster-management.io/clusterset";

/// An add-on's agent, by its user name, and an agent with an AWS IAM role, by its group. Both may do everything by RBAC.
const PRIVILEGED: [[&str; 3]; 2] = [
    [
        "--as=system:open-cluster-management:cluster:cluster2:addon:a:agent:b",
        "--as-group=system:open-cluster-management:cluster:cluster2:addon:a",
        "--as-group=system:masters",
    ],
    [
        "--as=arn:aws:sts::1:assumed-role/cluster2",
        "--as-group=open-cluster-management:cluster2",
        "--as-group=system:masters",
    ],
];

fn own_cluster() -> ObjectRef {
    ObjectRef::managed_cluster("cluster2")
}

fn own_work() -> ObjectRef {
    ObjectRef::manifest_work("cluster2", "argocd-agent-ca-mw")
}

fn work_named(name: &str, namespace: &str) -> Value {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    ObjectRef::manifest_work(namespace, name).with(json!({"spec": {"workload": {"manifests": [config]}}}))
}

/// Installs the admission policy, and waits until the API server enforces it.
pub(crate) async fn limit(hub: &Hub) -> Result<()> {
    hub.kubectl(&["apply", "-f", FILE])?;
    wait::eventually("the admission policy is effective", wait::DEADLINE, async || {
        let created = create_as(hub, &PRIVILEGED[0], &work_named("probe", "argocd"));
        created
            .is_err_and(|error| format!("{error:#}").contains("nothing of a ManifestWork"))
            .then_some(())
    })
    .await
}

/// Creates an object as another user, without storing it.
fn create_as(hub: &Hub, user: &[&str], object: &Value) -> Result<()> {
    let arguments = [&["create", "--dry-run=server", "-f", "-"], user].concat();
    hub.kubectl_with_input(&arguments, &object.to_string()).map(drop)
}

/// Checks that the admission policy refuses a write, and says what is allowed.
fn is_refused(what: &Value, written: Result<()>, allowed: &str) -> Result<()> {
    let refused = written.err().with_context(|| format!("the policy permits {what}"))?;
    let text = format!("{refused:#}");
    ensure!(
        text.contains("ValidatingAdmissionPolicy 'argocd-ocm-cmp-clusters.argocd'") && text.contains(allowed),
        "{what}: {text}"
    );
    Ok(())
}

/// Returns an owner reference to the Namespace of Argo CD.
async fn owners(hub: &Hub) -> Result<Value> {
    let namespace = hub.read(&ObjectRef::namespace("argocd")).await?;
    let uid = &namespace["metadata"]["uid"];
    Ok(json!([{"apiVersion": "v1", "kind": "Namespace", "name": "argocd", "uid": uid}]))
}

/// Checks that the agent may write what OCM's agents write, and nothing else.
pub(crate) async fn check_limits(stage: &Stage) -> Result<()> {
    let Stage { hub, cluster2, .. } = stage;
    let (agent, owners) = (cluster2.hub_account().await?, owners(hub).await?);
    let of_cluster = "nothing of its ManagedCluster but the status, spec.managedClusterClientConfigs, and annotations that start with \
                      agent.open-cluster-management.io/";
    for change in [
        json!({"metadata": {"labels": {"env": "prod"}}}),
        json!({"metadata": {"labels": {"local-cluster": "true"}}}),
        json!({"metadata": {"labels": {DEFAULT_SET: "prod"}}}),
        json!({"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}}}),
        json!({"metadata": {"ownerReferences": owners}}),
        json!({"metadata": {"finalizers": ["example.com/stay"]}}),
        json!({"metadata": {"finalizers": []}}),
        json!({"spec": {"hubAcceptsClient": false}}),
        json!({"spec": {"leaseDurationSeconds": 3600}}),
        json!({"spec": {"taints": [{"key": "gpu", "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"}]}}),
    ] {
        let written = agent.update(&own_cluster(), |cluster| merge(cluster, &change)).await;
        is_refused(&change, written, of_cluster)?;
    }
    let removed = agent
        .update(&own_cluster(), |cluster| cluster["metadata"]["labels"] = json!({}))
        .await;
    is_refused(&json!("labels are removed"), removed, of_cluster)?;
    let configs = json!([{"url": cluster2.url()}, {"url": "https://other.example.com"}]);
    let registers = json!({
        "metadata": {"annotations": {"agent.open-cluster-management.io/region": "eu"}},
        "spec": {"managedClusterClientConfigs": configs},
    });
    agent
        .update(&own_cluster(), |cluster| merge(cluster, &registers))
        .await?;

    let of_works = format!("nothing of a ManifestWork but the status and the finalizer {CLEANUP}");
    let tracking = "shop:work.open-cluster-management.io/ManifestWork:cluster2/argocd-agent-ca-mw";
    for change in [
        json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": tracking}}}),
        json!({"metadata": {"labels": {"app.kubernetes.io/instance": "shop"}}}),
        json!({"metadata": {"ownerReferences": owners}}),
        json!({"metadata": {"finalizers": [CLEANUP, "example.com/stay"]}}),
        json!({"spec": {"deleteOption": {"propagationPolicy": "Foreground"}}}),
    ] {
        is_refused(&change, agent.patch(&own_work(), &change).await, &of_works)?;
    }
    // The work agent adds it again.
    agent
        .patch(&own_work(), &json!({"metadata": {"finalizers": []}}))
        .await?;
    hub.wait_for_value(&own_work(), "/metadata/finalizers", json!([CLEANUP]))
        .await?;

    // A write of the status changes nothing else, whatever it contains.
    let before = hub.read(&own_cluster()).await?["metadata"]["labels"].clone();
    let hidden = json!({"metadata": {"labels": {"env": "prod"}}, "status": {"version": {"kubernetes": "v9"}}});
    agent.patch_status(&own_cluster(), &hidden).await?;
    let after = hub.read(&own_cluster()).await?;
    assert_eq!(after["metadata"]["labels"], before);

    check_other_identities(hub, of_cluster, &of_works)?;
    // Administrators and OCM's controllers are not limited.
    hub.patch(&own_cluster(), &json!({"metadata": {"labels": {"tier": "gold"}}}))
        .await?;
    hub.patch(&own_cluster(), &json!({"metadata": {"labels": {"tier": null}}}))
        .await?;
    check_claims(stage).await
}

/// Checks the limits of other identities of managed clusters, which have all permissions by RBAC, and the creation and deletion of
/// objects.
fn check_other_identities(hub: &Hub, of_cluster: &str, of_works: &str) -> Result<()> {
    let addon = ObjectRef::managed_cluster_addon("cluster2", "a").with(json!({"spec": {}}));
    let cluster = |labels: Value, accepted: bool| {
        ObjectRef::managed_cluster("cluster3").with(json!({
            "metadata": {"labels": labels},
            "spec": {"hubAcceptsClient": accepted, "leaseDurationSeconds": 60},
        }))
    };
    let addon_agent = stage::addon("cluster2");
    for user in PRIVILEGED {
        for (object, allowed) in [
            (work_named("new", "cluster2"), of_works),
            (addon.clone(), "nothing of a ManagedClusterAddOn but the status"),
            (cluster(json!({"env": "prod"}), false), of_cluster),
            (cluster(json!({}), true), of_cluster),
        ] {
            is_refused(&object, create_as(hub, &user, &object), allowed)?;
        }
        create_as(hub, &user, &cluster(json!({DEFAULT_SET: "default"}), false))?;
        for (kind, name, allowed) in [
            ("manifestwork", "argocd-agent-ca-mw", of_works),
            (
                "managedclusteraddon",
                &*addon_agent.name,
                "nothing of a ManagedClusterAddOn",
            ),
        ] {
            for what in [format!("delete {kind} {name}"), format!("annotate {kind} {name} a=b")] {
                let words = [&what.words()[..], &["--dry-run=server", "--namespace=cluster2"], &user].concat();
                is_refused(&json!(what), hub.kubectl(&words).map(drop), allowed)?;
            }
        }
    }
    Ok(())
}

/// Checks that a claim of a cluster reaches the hub.
async fn check_claims(stage: &Stage) -> Result<()> {
    let Stage { hub, cluster1, .. } = stage;
    let claim = ObjectRef::cluster(
        "cluster.open-cluster-management.io/v1alpha1",
        "ClusterClaim",
        "region.example.com",
    )
    .with(json!({"spec": {"value": "eu"}}));
    cluster1.create(&claim).await?;
    let is_claimed = |cluster: &Value| {
        let claims = cluster["status"]["clusterClaims"].as_array();
        claims.is_some_and(|all| {
            all.iter()
                .any(|claim| claim["name"] == "region.example.com" && claim["value"] == "eu")
        })
    };
    hub.wait_for(&ObjectRef::managed_cluster("cluster1"), is_claimed)
        .await?;
    Ok(())
}

/// Labels of a ManagedCluster that no Secret may copy: they identify a cluster, its manager or its purpose.
const IDENTITY: [(&str, &str); 7] = [
    ("apps.open-cluster-management.io/acm-cluster", "true"),
    ("apps.open-cluster-management.io/cluster-name", "cluster1"),
    ("apps.open-cluster-management.io/data-source", "push"),
    ("app.kubernetes.io/managed-by", "another"),
    ("app.kubernetes.io/instance", "shop"),
    ("argocd.argoproj.io/secret-type", "repository"),
    ("argocd-agent.argoproj-labs.io/agent-name", "cluster1"),
];

/// The labels that the hostile agent adds and that its own Secret copies. The last one shows that the controller has seen them.
const COPIED: [(&str, &str); 2] = [("local-cluster", "true"), ("hostile", "done")];

/// Writes the status of the add-on, the Lease, and an Event about another object.
async fn write_hostile_status(agent: &Account) -> Result<()> {
    let available = |status: &str| {
        json!([{
            "type": "Available", "status": status, "reason": "Hostile", "message": "\u{1b}[31mcluster1 is revoked",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }])
    };
    let references = json!([{
        "group": "addon.open-cluster-management.io", "resource": "addontemplates", "name": "evil",
        "lastObservedGeneration": 1, "desiredConfig": {"name": "evil", "specHash": "0"},
        "lastAppliedConfig": {"name": "evil", "specHash": "0"},
    }]);
    let status = json!({"status": {"conditions": available("False"), "configReferences": references}});
    agent.patch_status(&stage::addon("cluster2"), &status).await?;

    let lease = ObjectRef::namespaced("coordination.k8s.io/v1", "Lease", "cluster2", "managed-cluster-lease");
    agent
        .update(&lease, |lease| lease["spec"]["holderIdentity"] = json!("cluster1"))
        .await?;
    let event = ObjectRef::namespaced("events.k8s.io/v1", "Event", "cluster2", "evil").with(json!({
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Warning",
        "reason": "Revoked",
        "action": "Revoke",
        "note": "cluster1 is revoked",
        "reportingController": "argocd-ocm-cmp",
        "reportingInstance": "evil",
        "regarding": {"kind": "ManagedCluster", "name": "cluster1", "namespace": "cluster2"},
    }));
    agent.create(&event).await?;
    Ok(())
}

/// Writes labels, annotations, owners, finalizers, spec and status of the work with the CA.
async fn write_hostile_work(agent: &Account, owners: &Value) -> Result<()> {
    let grants = ObjectRef::cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "evil").with(json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    }));
    let work = json!({
        "metadata": {
            "annotations": {
                "argocd-ocm-cmp.github.io/gitopscluster": "cluster2/evil",
                "argocd.argoproj.io/tracking-id": "shop:work.open-cluster-management.io/ManifestWork:cluster1/shop",
                format!("{PULL}hub-application-namespace"): "argocd",
                format!("{PULL}hub-application-name"): "shop",
            },
            "labels": {"app.kubernetes.io/instance": "shop", format!("{PULL}application-set"): "true"},
            "ownerReferences": owners,
            "finalizers": [CLEANUP, "example.com/stay"],
        },
        "spec": {"workload": {"manifests": [grants]}},
    });
    agent.patch(&own_work(), &work).await?;
    let conditions = json!([{
        "type": "Applied", "status": "False", "reason": "Hostile", "message": "x".repeat(30_000), "observedGeneration": 99,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let resources = json!({"manifests": [{
        "resourceMeta": {"ordinal": 0, "kind": "Secret", "name": "cluster-cluster1", "namespace": "argocd"},
        "conditions": conditions,
        "statusFeedback": {"values": [{"name": "health", "fieldValue": {"type": "String", "string": "Healthy"}}]},
    }]});
    let status = json!({"status": {"conditions": conditions, "resourceStatus": resources}});
    agent.patch_status(&own_work(), &status).await?;
    Ok(())
}

/// Writes the status of the cluster, then its labels, annotations, owners and spec, and returns these.
async fn write_hostile_cluster(agent: &Account, owners: &Value) -> Result<Value> {
    let claims = json!([{"name": "name", "value": "cluster1"}, {"name": "local-cluster", "value": "true"}]);
    let status = json!({"status": {
        "clusterClaims": claims,
        "version": {"kubernetes": "v9\u{1b}[31m"},
        "conditions": [{
            "type": "ManagedClusterConditionAvailable", "status": "True", "reason": "Hostile", "message": "x".repeat(30_000),
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }});
    agent.patch_status(&own_cluster(), &status).await?;
    let labels: Map<String, Value> = IDENTITY
        .iter()
        .chain(&COPIED)
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    let cluster = json!({
        "metadata": {
            "labels": labels,
            "annotations": {
                "argocd-ocm-cmp.github.io/gitopscluster": "cluster2/evil",
                "argocd-ocm-cmp.github.io/labels": "argocd.argoproj.io/secret-type",
                "argocd.argoproj.io/skip-reconcile": "false",
            },
            "ownerReferences": owners,
        },
        "spec": {
            "managedClusterClientConfigs": [{"url": "https://kubernetes.default.svc", "caBundle": "ZXZpbA=="}],
            "leaseDurationSeconds": 61,
            "taints": [{"key": "evil", "effect": "PreferNoSelect", "timeAdded": "2026-01-01T00:00:00Z"}],
        },
    });
    agent.update(&own_cluster(), |object| merge(object, &cluster)).await?;
    Ok(cluster)
}

/// Writes hostile values into every field that OCM's roles let the agent of `cluster2` write, without the admission policy, and
/// checks that nothing on the hub changes but the copied labels of its own Secret.
pub(crate) async fn check_hostile_values(stage: &Stage) -> Result<()> {
    let Stage { hub, cluster2, .. } = stage;
    let (agent, owners) = (cluster2.hub_account().await?, owners(hub).await?);
    hub.kubectl("delete validatingadmissionpolicybinding argocd-ocm-cmp-clusters.argocd")?;
    wait::eventually("the admission policy has no effect", wait::DEADLINE, async || {
        create_as(hub, &PRIVILEGED[0], &work_named("probe", "argocd")).ok()
    })
    .await?;
    let secret = ObjectRef::secret("argocd", "cluster-cluster2");
    let is_ready = |fleet: &Value| is_true(fleet, "Ready");
    hub.wait_for(&stage::fleet(), is_ready).await?;
    let before = snapshot(hub).await?;
    let cluster_before = hub.read(&own_cluster()).await?;

    write_hostile_status(&agent).await?;
    write_hostile_work(&agent, &owners).await?;
    let cluster = write_hostile_cluster(&agent, &owners).await?;

    let has_seen = |secret: &Value| {
        COPIED
            .iter()
            .all(|(key, value)| secret["metadata"]["labels"][key] == *value)
    };
    let copied = hub.wait_for(&secret, has_seen).await?;
    for (key, value) in IDENTITY {
        assert_ne!(copied["metadata"]["labels"][key], value, "{key} is copied");
    }
    // The controller repairs its work, the add-on's agent reports again, and all is as before.
    let is_repaired = async || {
        let after = snapshot(hub).await.ok()?;
        (after == before).then_some(())
    };
    let repaired = wait::eventually("the hub is as before", wait::DEADLINE, is_repaired).await;
    if repaired.is_err() {
        assert_eq!(snapshot(hub).await?, before);
    }
    let fleet = hub.read(&stage::fleet()).await?;
    ensure!(is_ready(&fleet), "{:#}", fleet["status"]);

    let fields = ["labels", "annotations"].map(|field| {
        let now = cluster["metadata"][field].as_object().into_iter().flatten();
        let undone = now.map(|(key, _)| (key.clone(), cluster_before["metadata"][field][key].clone()));
        (field.to_owned(), Value::Object(undone.collect()))
    });
    let mut metadata = Map::from_iter(fields);
    metadata.insert("ownerReferences".to_owned(), Value::Null);
    let spec =
        json!({"taints": null, "managedClusterClientConfigs": cluster_before["spec"]["managedClusterClientConfigs"]});
    hub.patch(&own_cluster(), &json!({"metadata": metadata, "spec": spec}))
        .await?;
    let undone = json!({"metadata": {
        "labels": {"app.kubernetes.io/instance": null, format!("{PULL}application-set"): null},
        "annotations": {
            "argocd.argoproj.io/tracking-id": null,
            format!("{PULL}hub-application-namespace"): null,
            format!("{PULL}hub-application-name"): null,
        },
        "ownerReferences": null,
        "finalizers": [CLEANUP],
    }});
    hub.patch(&own_work(), &undone).await?;
    hub.wait_for(&secret, |secret| secret["metadata"]["labels"]["hostile"].is_null())
        .await?;
    hub.wait_for(&own_cluster(), |cluster| {
        is_true(cluster, "ManagedClusterConditionAvailable")
    })
    .await?;
    limit(hub).await
}

/// Returns what an agent must not change: all Secrets, Applications and permissions of the hub, the works and the add-on of the
/// other cluster, the content of its own work, and the conditions of the GitOpsCluster.
async fn snapshot(hub: &Hub) -> Result<BTreeMap<String, Value>> {
    let mut all = BTreeMap::new();
    for (api_version, kind) in [
        ("v1", "Secret"),
        ("argoproj.io/v1alpha1", "Application"),
        ("argoproj.io/v1alpha1", "AppProject"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("work.open-cluster-management.io/v1", "ManifestWork"),
        ("addon.open-cluster-management.io/v1alpha1", "ManagedClusterAddOn"),
        ("addon.open-cluster-management.io/v1alpha1", "ClusterManagementAddOn"),
        ("cluster.open-cluster-management.io/v1beta1", "PlacementDecision"),
    ] {
        for mut object in hub.list(api_version, kind).await? {
            let metadata = object["metadata"].as_object_mut().context("metadata")?;
            let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let at = format!("{kind} {}/{}", text("namespace"), text("name"));
            let is_own_work = kind == "ManifestWork" && text("namespace") == "cluster2";
            metadata.retain(|key, _| ["uid", "labels", "annotations", "ownerReferences"].contains(&&**key));
            if at == "Secret argocd/cluster-cluster2" {
                for (key, _) in COPIED {
                    object["metadata"]["labels"]
                        .as_object_mut()
                        .context("labels")?
                        .remove(key);
                }
                let annotations = object["metadata"]["annotations"]
                    .as_object_mut()
                    .context("annotations")?;
                annotations.remove("argocd-ocm-cmp.github.io/labels");
            } else if is_own_work {
                object["metadata"] = object["metadata"]["uid"].clone();
            }
            if kind != "PlacementDecision" {
                object.as_object_mut().context("an object")?.remove("status");
            }
            all.insert(at, object);
        }
    }
    let fleet = hub.read(&stage::fleet()).await?;
    let conditions = fleet["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let states = conditions.iter().map(|condition| {
        json!([
            condition["type"],
            condition["status"],
            condition["reason"],
            condition["message"]
        ])
    });
    all.insert("conditions".to_owned(), states.collect());
    Ok(all)
}

/// Checks that a cluster can leave the hub: its works are deleted, on the hub and on the cluster.
pub(crate) async fn check_detaching(stage: &Stage) -> Result<()> {
    let Stage { hub, cluster2, .. } = stage;
    let work = ObjectRef::of(&hub.create(&work_named("leaving", "cluster2")).await?);
    hub.wait_for(&work, is_applied).await?;
    let delivered = ObjectRef::config_map("default", "leaving");
    ensure!(cluster2.get(&delivered).await?.is_some(), "the work is applied");
    hub.delete_and_wait(&own_cluster()).await?;
    hub.wait_gone(&work).await?;
    cluster2.wait_gone(&delivered).await
}
