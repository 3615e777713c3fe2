//! Tests of the requests that the admission policies permit the view into the clusters, and the principal of argocd-agent.

use super::{ARGO_CDS, SECRET_TYPE, application, is_refused, refuses_patches};
use crate::stage::stage;
use anyhow::Result;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use testbed::{Account, Hub, ObjectRef, wait};

/// Applies shipped files, and returns a ServiceAccount in Argo CD's namespace once it has a permission and a policy denies that it
/// annotates this object.
async fn account(hub: &Hub, files: &[&str], name: &str, permission: &str, refused: &ObjectRef) -> Result<Account> {
    for file in files {
        let file = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        hub.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &file])?;
    }
    hub.wait_for_permissions("argocd", name, &[permission]).await?;
    let account = hub.account("argocd", name).await?;
    // Each attempt changes the object: no policy denies a patch without a change.
    let attempt = AtomicU32::new(0);
    let is_enforced = async || {
        let number = attempt.fetch_add(1, Ordering::Relaxed).to_string();
        let annotated = json!({"metadata": {"annotations": {"attempt": number}}});
        let error = account.patch(refused, &annotated).await.err()?;
        format!("{error:#}").contains("ValidatingAdmissionPolicy").then_some(())
    };
    wait::eventually("the policies are effective", wait::DEADLINE, is_enforced).await?;
    Ok(account)
}

#[tokio::test]
async fn view_may_only_fill_its_secret_and_config_map() -> Result<()> {
    let stage = stage("admission-view").await?;
    let hub = &stage.hub;
    let files = ["deploy/live.yaml", "deploy/live_admission.yaml"];
    let secret = ObjectRef::namespaced("v1", "Secret", "argocd", "argocd-ocm-cmp-live");
    let config = ObjectRef::namespaced("v1", "ConfigMap", "argocd", "argocd-ocm-cmp-live");
    let repository = json!({"metadata": {"labels": {SECRET_TYPE: "repository"}}});
    let permission = "patch secrets/argocd-ocm-cmp-live --namespace=argocd";
    let account = account(hub, &files, "argocd-ocm-cmp-live", permission, &secret).await?;
    let annotated = json!({"metadata": {"annotations": {"a": "b"}}});
    is_refused(account.patch(&secret, &repository).await, "only the data")?;
    for object in [&secret, &config] {
        is_refused(account.patch(object, &annotated).await, "only the data")?;
        is_refused(
            account.patch(object, &json!({"data": {"url": "eA=="}})).await,
            "while they are empty",
        )?;
    }
    let identity = json!({"data": {"tls.crt": "eA==", "tls.key": "eA==", "token": "eA=="}});
    account.patch(&secret, &identity).await?;
    account.patch(&config, &json!({"data": {"tls.crt": "x"}})).await?;
    for (object, other) in [(&secret, "eQ=="), (&config, "y")] {
        is_refused(
            account.patch(object, &json!({"data": {"tls.crt": other}})).await,
            "while they are empty",
        )?;
    }
    for object in [secret, config] {
        hub.patch(&object, &json!({"data": null})).await?;
    }
    Ok(())
}

/// Returns an Application with this destination.
fn bound_for(namespace: &str, name: &str, destination: &Value) -> Value {
    let mut application = application(name);
    application["metadata"]["namespace"] = json!(namespace);
    application["spec"]["destination"] = destination.clone();
    application
}

/// Returns the principal's account, which may not annotate this Application.
async fn principal(hub: &Hub, on_hub: &ObjectRef) -> Result<Account> {
    let files = ["deploy/deploy_principal.yaml", "deploy/principal_admission.yaml"];
    let permission = "patch applications.argoproj.io --all-namespaces";
    account(hub, &files, "argocd-agent-principal", permission, on_hub).await
}

/// Checks that the principal may report the syncs that Argo CD starts, and none of other content.
async fn check_operations(hub: &Hub, account: &Account, managed: &ObjectRef) -> Result<()> {
    let operation = |sync: Value| json!({"operation": {"sync": sync}});
    let root = ObjectRef::cluster_role("root").with(json!({"rules": []}));
    account.patch(managed, &operation(json!({"revision": "main"}))).await?;
    // As automated syncs of Argo CD do.
    let spec = json!({"source": {"directory": {"recurse": true, "exclude": ""}}});
    hub.patch(managed, &json!({"spec": spec})).await?;
    let source = json!({
        "repoURL": "https://example.com/git", "path": ".", "directory": {"recurse": true, "jsonnet": {}},
    });
    let other = json!({"repoURL": "https://example.com/other", "path": "."});
    let running = |sync: &Value, source: &Value| {
        let synced = json!({"revision": "abc", "source": source});
        let started = json!({
            "phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "operation": {"sync": sync}, "syncResult": synced,
        });
        json!({"operation": {"sync": {"revision": "abc"}}, "status": {"operationState": started}})
    };
    let automated = json!({"revision": "abc", "source": source});
    let without = |path: &str, field: &str| {
        let mut sync = automated.clone();
        let fields = sync.pointer_mut(path).and_then(Value::as_object_mut);
        fields.and_then(|fields| fields.remove(field)).expect("the field");
        running(&sync, &source)
    };
    let mut started = running(&automated, &source);
    started["operation"]["sync"] = automated.clone();
    account.patch(managed, &started).await?;
    account
        .patch(managed, &json!({"operation": null, "status": null}))
        .await?;
    // Argo CD leaves out a helm without values.
    let spec = json!({"source": {"helm": {"valueFiles": []}}});
    hub.patch(managed, &json!({"spec": spec})).await?;
    account.patch(managed, &running(&automated, &source)).await?;
    account.patch(managed, &json!({"status": null})).await?;
    for patch in [
        // Argo CD resumes it.
        running(&json!({"manifests": [root.to_string()]}), &source),
        running(&json!({"source": other}), &source),
        without("/source", "path"),
        without("/source", "directory"),
        without("/source/directory", "recurse"),
        running(&automated, &other),
        operation(json!({"manifests": [root.to_string()]})),
        operation(json!({"source": {"repoURL": "https://example.com/other"}})),
    ] {
        is_refused(account.patch(managed, &patch).await, "other manifests")?;
    }
    // As a progressive sync of an ApplicationSet does: the operation names no source, and its result has the first one besides all.
    let sources = json!([source, other]);
    let mut spec = json!({"source": null, "sources": sources});
    spec["sources"][0]["directory"]["exclude"] = json!("");
    hub.patch(managed, &json!({"spec": spec})).await?;
    let reported = |sources: &Value| {
        let mut started = running(&json!({}), &source);
        started["status"]["operationState"]["syncResult"]["sources"] = sources.clone();
        started
    };
    for sources in [json!([other, source]), json!([source]), json!([source, other, other])] {
        is_refused(account.patch(managed, &reported(&sources)).await, "other manifests")?;
    }
    account.patch(managed, &reported(&sources)).await?;
    // An unused source must not become that of a later operation.
    let unused = operation(json!({"revision": null, "sources": sources, "source": other}));
    account.patch(managed, &unused).await?;
    for later in [
        operation(json!({"sources": null, "source": other})),
        running(&json!({"source": other}), &other),
    ] {
        is_refused(account.patch(managed, &later).await, "other manifests")?;
    }
    Ok(())
}

#[tokio::test]
async fn principal_may_write_status_and_revision_of_applications_for_a_cluster() -> Result<()> {
    let stage = stage("admission-principal").await?;
    let (hub, cluster) = (&stage.hub, stage.cluster.as_str());
    let mut applications = Vec::new();
    for (name, destination) in [
        ("principal-hub", json!({"server": "https://kubernetes.default.svc"})),
        ("principal-in-cluster", json!({"name": "in-cluster"})),
        ("principal-local", json!({"name": "local-cluster"})),
        ("principal-managed", json!({"name": cluster})),
    ] {
        applications.push(ObjectRef::of(
            &hub.create(&bound_for("argocd", name, &destination)).await?,
        ));
    }
    let Some((managed, on_hub)) = applications.split_last() else {
        unreachable!("four Applications")
    };
    let synced = json!({"status": {"sync": {"status": "OutOfSync"}}});
    let account = principal(hub, &on_hub[0]).await?;

    let operation = |sync: Value| json!({"operation": {"sync": sync}});
    let root = ObjectRef::cluster_role("root").with(json!({"rules": []}));
    for application in on_hub {
        for patch in [
            &synced,
            &operation(json!({"manifests": [root.to_string()]})),
            &json!({"metadata": {"finalizers": null}}),
        ] {
            is_refused(account.patch(application, patch).await, "for a managed cluster")?;
        }
        is_refused(account.delete(application).await, "for a managed cluster")?;
    }
    account.patch(managed, &synced).await?;
    let refresh = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
    account.patch(managed, &refresh).await?;
    check_operations(hub, &account, managed).await?;
    let refused = r"
nothing of an Application but: [{spec: {project: other}}, {metadata: {labels: {a: b}}}]
for a managed cluster: [{spec: {destination: {name: in-cluster}}}]
being deleted: [{metadata: {finalizers: null}}]
";
    refuses_patches(&account, managed, refused).await?;
    is_refused(account.delete(managed).await, "only in the namespace of their cluster")?;
    hub.delete(managed).await?;
    hub.wait_for(managed, |object| !object["metadata"]["deletionTimestamp"].is_null())
        .await?;
    let without_finalizers = json!({"metadata": {"finalizers": null}});
    account.patch(managed, &without_finalizers).await?;
    hub.wait_gone(managed).await?;
    for application in on_hub {
        hub.patch(application, &without_finalizers).await?;
    }
    Ok(())
}

#[tokio::test]
async fn principal_may_write_all_of_autonomous_agents_in_their_namespace() -> Result<()> {
    let stage = stage("admission-autonomous").await?;
    let (hub, cluster) = (&stage.hub, stage.cluster.as_str());
    let destination = json!({"server": "https://kubernetes.default.svc"});
    let on_hub = bound_for("argocd", "principal-hub", &destination);
    let on_hub = ObjectRef::of(&hub.create(&on_hub).await?);
    let account = principal(hub, &on_hub).await?;
    let autonomous = bound_for(cluster, "principal-autonomous", &json!({"name": cluster}));
    for (namespace, destination, why) in [
        (
            "argocd",
            json!({"name": cluster}),
            "only in the namespace of their cluster",
        ),
        (
            cluster,
            json!({"server": "*", "name": cluster}),
            "for a managed cluster",
        ),
    ] {
        let other = bound_for(namespace, "principal-other", &destination);
        is_refused(account.create(&other).await, why)?;
    }
    account.create(&autonomous).await?;
    let autonomous = ObjectRef::of(&autonomous);
    let changed = json!({"metadata": {"finalizers": null}, "spec": {"project": "other"}});
    account.patch(&autonomous, &changed).await?;
    // The agent of another cluster, in the mode managed, can name it: the principal then writes its status and operation alone.
    let root = ObjectRef::cluster_role("root").with(json!({"rules": []}));
    let mut reported = json!({"operation": {"sync": {"manifests": [root.to_string()]}}});
    is_refused(account.patch(&autonomous, &reported).await, "other manifests")?;
    reported["metadata"] = json!({"annotations": {"argocd-agent.argoproj.io/last-updated": "2026-01-01T00:00:00Z"}});
    account.patch(&autonomous, &reported).await?;
    let without_finalizers = json!({"metadata": {"finalizers": null}});
    account.patch(&autonomous, &without_finalizers).await?;
    account.delete(&autonomous).await?;

    let project = |name: &str, namespaces: &[&str]| {
        let destinations = json!([{"name": namespaces[0], "server": "*", "namespace": "*"}]);
        let spec = json!({"sourceNamespaces": namespaces, "destinations": destinations});
        ObjectRef::app_project(name).with(json!({"spec": spec}))
    };
    let own = project(&format!("{cluster}-team"), &[cluster]);
    account.create(&own).await?;
    let own = ObjectRef::of(&own);
    let (described, why) = (json!({"spec": {"description": "x"}}), "write no AppProject but");
    account.patch(&own, &described).await?;
    let roles = json!({"spec": {"roles": [{"name": "all", "groups": ["everyone"]}]}});
    is_refused(account.patch(&own, &roles).await, why)?;
    let of_argocd = json!({"spec": {"sourceNamespaces": ["argocd"]}});
    is_refused(account.patch(&own, &of_argocd).await, why)?;
    account.delete(&own).await?;
    is_refused(account.create(&project("principal-team", &[cluster])).await, why)?;
    // Of the cluster CLUSTER-1.
    let neighbour = format!("{cluster}-1");
    let of_neighbour = project(&format!("{neighbour}-team"), &[&neighbour]);
    let of_neighbour = ObjectRef::of(&hub.create(&of_neighbour).await?);
    let of_ours = json!({"spec": {"sourceNamespaces": [cluster], "destinations": [{"name": cluster}]}});
    is_refused(account.patch(&of_neighbour, &of_ours).await, why)?;
    hub.delete(&of_neighbour).await?;
    let foreign = project(&format!("{cluster}-others"), &["team", cluster]);
    let foreign = ObjectRef::of(&hub.create(&foreign).await?);
    is_refused(account.patch(&foreign, &described).await, why)?;
    is_refused(account.delete(&foreign).await, why)?;
    hub.patch(&foreign, &json!({"metadata": {"finalizers": [ARGO_CDS]}}))
        .await?;
    account.patch(&foreign, &without_finalizers).await?;
    hub.delete(&foreign).await?;
    hub.patch(&on_hub, &without_finalizers).await.map(drop)
}
