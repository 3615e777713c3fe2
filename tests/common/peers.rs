//! The objects that other controllers of the pull model have on a hub, as they write them.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::ObjectRef;
use testbed::application::{CLUSTER, HUB_NAME, HUB_NAMESPACE, PULL, SKIP_RECONCILE};

/// Returns the work that argocd-pull-integration creates for an Application of the hub.
pub(crate) fn peers_work(application: &Value) -> Result<Value> {
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
    Ok(ObjectRef::manifest_work(cluster.as_str().context("a cluster")?, &format!("{name}-{}", &uid[..5])).with(json!({
        "metadata": {"labels": {PULL: "true"}, "annotations": {HUB_NAMESPACE: metadata["namespace"], HUB_NAME: name}},
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
    })))
}

/// Returns the cluster Secret that it creates.
pub(crate) fn peers_secret(cluster: &str) -> Value {
    ObjectRef::secret("argocd", &format!("{cluster}-secret")).with(json!({
        "metadata": {"labels": {"argocd.argoproj.io/secret-type": "cluster"}},
        "type": "Opaque",
        "stringData": {"name": cluster, "server": format!("https://{cluster}-control-plane:6443")},
    }))
}

/// Returns what ACM makes of a work of argocd-pull-integration: of an ApplicationSet, with the Namespace and the AppProject.
pub(crate) fn acms_work(application: &Value, project: &Value) -> Result<Value> {
    let mut work = peers_work(application)?;
    let namespace = ObjectRef::namespace("argocd").with(json!({
        "metadata": {"labels": {"argocd.argoproj.io/managed-by": "openshift-gitops"}, "annotations": {"argocd.argoproj.io/sync-options": "Delete=false"}},
    }));
    let project = ObjectRef::app_project("default").with(json!({"spec": project["spec"]}));
    let manifests = work["spec"]["workload"]["manifests"]
        .as_array_mut()
        .context("manifests")?;
    manifests.splice(0..0, [namespace, project]);
    work["metadata"]["labels"] = json!({
        "apps.open-cluster-management.io/application-set": "true",
        // Of "argocd/appset-1".
        "apps.open-cluster-management.io/application-set-hash": "b208dbecfe0a5f65581d608faac0e95c9a302b34",
    });
    work["metadata"]["annotations"]["apps.open-cluster-management.io/hosting-applicationset"] =
        json!("argocd/appset-1");
    let ignored = json!([".operation", r#".metadata.annotations["argocd.argoproj.io/refresh"]"#]);
    let strategy = &mut work["spec"]["manifestConfigs"][0]["updateStrategy"]["serverSideApply"];
    strategy["ignoreFields"][0]["jsonPaths"] = ignored;
    work["spec"]["deleteOption"] = json!({
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": {"orphaningRules": [
            {"group": "", "resource": "namespaces", "namespace": "", "name": "argocd"},
            {"group": "argoproj.io", "resource": "appprojects", "namespace": "argocd", "name": "default"},
        ]},
    });
    Ok(work)
}

/// Returns the cluster Secret that ACM creates without credentials.
pub(crate) fn acms_secret(cluster: &str) -> Value {
    let mut secret = peers_secret(cluster);
    let metadata = &mut secret["metadata"];
    metadata["name"] = json!(format!("{cluster}-application-manager-cluster-secret"));
    for (key, value) in [
        ("acm-cluster", "true"),
        ("cluster-name", cluster),
        ("cluster-server", &format!("{cluster}-control-plane")),
        ("data-source", "blank"),
    ] {
        metadata["labels"][format!("apps.open-cluster-management.io/{key}")] = json!(value);
    }
    secret["stringData"]["server"] = json!(format!("https://{cluster}-control-plane"));
    secret
}
