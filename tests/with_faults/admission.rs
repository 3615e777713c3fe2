//! Tests of the requests that the shipped roles and admission policies permit the controller's ServiceAccount on a real API
//! server. They limit the damage that its token allows.

mod agents;
mod components;

use crate::gitopscluster_crd::entries;
use crate::stage::stage;
use anyhow::{Context, Result, ensure};
use ocm::work::{MANAGED_BY, OURS};
use serde_json::{Value, json};
use testbed::application::{HUB_NAME, HUB_NAMESPACE, PULL};
use testbed::{Account, Hub, ObjectRef, wait};

const ACCOUNT: &str = "argocd-ocm-cmp-controller";
/// The option of kubectl with which it acts as this account.
const AS_ACCOUNT: &str = "--as=system:serviceaccount:argocd:argocd-ocm-cmp-controller";
const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";
const ARGO_CDS: &str = "resources-finalizer.argocd.argoproj.io";

/// Installs the controller's permissions from these files and its admission policies, and returns its account when they are
/// effective.
async fn account(hub: &Hub, files: &[&str]) -> Result<Account> {
    for file in ["deploy/deploy_controller.yaml", "deploy/admission_policy.yaml"]
        .iter()
        .chain(files)
    {
        let file = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        hub.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &file])?;
    }
    hub.wait_for_crds().await?;
    let permissions: [&str; 2] = [
        "patch applications.argoproj.io --all-namespaces",
        "create leases --namespace=argocd",
    ];
    hub.wait_for_permissions("argocd", ACCOUNT, &permissions).await?;
    let account = hub.account("argocd", ACCOUNT).await?;
    for policy in "applications secrets works gitopsclusters agents principals".split(' ') {
        let name = format!("argocd-ocm-cmp-{policy}.argocd");
        hub.kubectl(&format!("get validatingadmissionpolicybinding {name}"))?;
    }
    // The API server enforces policies with a short delay, all of them at once.
    let metadata = json!({"namespace": "argocd", "name": "admission"});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata});
    let counts = async || {
        let refused = account.create(&lease).await.err()?;
        refused.to_string().contains("under the names").then_some(())
    };
    wait::eventually("the policies are effective", wait::DEADLINE, counts).await?;
    hub.delete(&ObjectRef::of(&lease)).await?;
    Ok(account)
}

/// Checks that a policy denies a write, with these words in the reason.
fn is_refused(written: Result<()>, why: &str) -> Result<()> {
    let refused = written
        .err()
        .with_context(|| format!("the write was not denied: {why}"))?;
    let text = format!("{refused:#}");
    ensure!(
        text.contains("ValidatingAdmissionPolicy 'argocd-ocm-cmp-") && text.contains(why),
        "{text}"
    );
    Ok(())
}

/// Checks that a policy denies each patch of an object: lists of patches in YAML, by words in the reason.
async fn refuses_patches(account: &Account, object: &ObjectRef, patches: &str) -> Result<()> {
    for (why, patches) in entries(patches)? {
        for patch in patches.as_array().context("a list")? {
            is_refused(account.patch(object, patch).await, &why).with_context(|| format!("{object}: {patch}"))?;
        }
    }
    Ok(())
}

/// Checks that the roles deny a request.
fn is_forbidden(result: Result<()>) -> Result<()> {
    let text = format!("{:#}", result.err().context("the request was not denied")?);
    ensure!(
        text.contains("cannot") && !text.contains("ValidatingAdmissionPolicy"),
        "{text}"
    );
    Ok(())
}

fn application(name: &str) -> Value {
    ObjectRef::application(name).with(json!({
        "metadata": {"annotations": {"a": "b"}, "finalizers": [ARGO_CDS]},
        "spec": {"project": "default", "destination": {}, "source": {"repoURL": "https://example.com/git", "path": "."}},
        "status": {"sync": {"status": "Synced"}},
    }))
}

fn conditions() -> Value {
    json!([{"type": "ManifestWorkInfo", "message": "applied", "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}

#[tokio::test]
async fn status_controller_may_write_only_conditions_and_refreshes() -> Result<()> {
    let stage = stage("admission-applications").await?;
    let hub = &stage.hub;
    let account = account(hub, &[]).await?;
    let shop = ObjectRef::of(&hub.create(&application("admission-shop")).await?);
    let refused = r"
the spec of an Application:
- {spec: {source: {repoURL: https://evil.example.com}}}
- {spec: {destination: {name: eu1}}}
an operation of an Application:
- {operation: {sync: {revision: evil}}}
the labels or owners:
- {metadata: {labels: {apps.open-cluster-management.io/pull-to-ocm-managed-cluster: 'true'}}}
- {metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: none, uid: none}]}}
no annotation:
- {metadata: {annotations: {a: c}}}
- {metadata: {annotations: {a: null}}}
- {metadata: {annotations: {argocd.argoproj.io/refresh: hard}}}
only remove finalizers:
- {metadata: {finalizers: null}}
- {metadata: {finalizers: [resources-finalizer.argocd.argoproj.io, example.com/more]}}
nothing but conditions:
- {status: {sync: {status: OutOfSync}}}
- {status: {history: []}}
- {status: null}
";
    refuses_patches(&account, &shop, refused).await?;
    let reported = json!({"status": {"conditions": conditions()}});
    account.patch(&shop, &reported).await?;
    let refresh = json!({"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}});
    account.patch(&shop, &refresh).await?;
    account.patch(&shop, &json!({"status": {"conditions": null}})).await?;
    is_forbidden(account.delete(&shop).await)?;

    // Other users are not affected: the administrator, and an account of the same name elsewhere with the same permissions.
    let changed = json!({"spec": {"project": "other"}, "metadata": {"labels": {"team": "a"}}});
    hub.patch(&shop, &changed).await?;
    let namespace = "admission-other";
    hub.create_namespace(namespace).await?;
    hub.kubectl(&format!("create serviceaccount {ACCOUNT} -n {namespace}"))?;
    let subject = format!("{namespace}:{ACCOUNT}");
    hub.kubectl(&format!(
        "create clusterrolebinding {namespace} --clusterrole={ACCOUNT} --serviceaccount={subject}"
    ))?;
    let permission = "patch applications.argoproj.io --all-namespaces";
    hub.wait_for_permissions(namespace, ACCOUNT, &[permission]).await?;
    let other = hub.account(namespace, ACCOUNT).await?;
    other.patch(&shop, &json!({"spec": {"project": "default"}})).await?;
    hub.patch(&shop, &json!({"metadata": {"finalizers": null}})).await?;
    hub.kubectl("delete clusterrolebinding admission-other").map(drop)
}

#[tokio::test]
async fn pull_controller_may_not_change_spec_or_operation() -> Result<()> {
    let stage = stage("admission-pull").await?;
    let hub = &stage.hub;
    let account = account(hub, &["deploy/deploy_pull.yaml"]).await?;
    let mut pulled = application("admission-pulled");
    pulled["metadata"]["labels"] = json!({PULL: "true"});
    pulled["metadata"]["annotations"]["argocd.argoproj.io/refresh"] = json!("hard");
    pulled["metadata"]["finalizers"] = json!([ARGO_CDS, "example.com/theirs"]);
    pulled["operation"] = json!({"sync": {"revision": "main"}});
    let pulled = ObjectRef::of(&hub.create(&pulled).await?);
    let refused = r"
the spec of an Application: [{spec: {project: other}}]
an operation of an Application: [{operation: {sync: {revision: evil}}}]
the labels or owners: [{metadata: {labels: {apps.open-cluster-management.io/pull-to-ocm-managed-cluster: null}}}]
no annotation: [{metadata: {annotations: {a: null}}}]
only remove finalizers: [{metadata: {finalizers: [example.com/theirs]}}]
";
    refuses_patches(&account, &pulled, refused).await?;
    let theirs = json!({"metadata": {"finalizers": ["example.com/theirs"]}});
    let takeover = json!({
        "operation": null,
        "metadata": {"annotations": {"argocd.argoproj.io/refresh": null}},
        "status": {"health": {"status": "Healthy"}, "sync": {"status": "OutOfSync"}, "conditions": conditions()},
    });
    account.patch(&pulled, &takeover).await?;
    let again = json!({"operation": {"sync": {"revision": "main"}}});
    is_refused(account.patch(&pulled, &again).await, "an operation of an Application")?;

    hub.delete(&pulled).await?;
    let none = json!({"metadata": {"finalizers": null}});
    is_refused(account.patch(&pulled, &none).await, "only remove finalizers")?;
    account.patch(&pulled, &theirs).await?;
    hub.patch(&pulled, &none).await?;
    hub.wait_gone(&pulled).await
}

fn secret(name: &str, labels: &Value, data: &Value) -> Value {
    ObjectRef::secret("argocd", name).with(json!({"metadata": {"labels": labels}, "stringData": data}))
}

#[tokio::test]
async fn foreign_secrets_cannot_be_created_changed_or_deleted() -> Result<()> {
    let stage = stage("admission-secrets").await?;
    let hub = &stage.hub;
    let account = account(hub, &["deploy/deploy_cluster_secrets.yaml"]).await?;
    let plain = json!({"name": "eu1", "server": "https://eu1-control-plane:6443"});
    let cluster = |managed_by: &str| json!({SECRET_TYPE: "cluster", MANAGED_BY: managed_by});
    let push = json!({"name": "eu2", "server": "https://eu2", "config": "{\"bearerToken\":\"t\"}"});
    let foreign = [
        secret("admission-argocd-secret", &json!({}), &json!({"server.secretkey": "k"})),
        secret(
            "admission-repository",
            &json!({SECRET_TYPE: "repository"}),
            &json!({"url": "u"}),
        ),
        secret("admission-push", &json!({SECRET_TYPE: "cluster"}), &push),
        secret("admission-theirs", &cluster("another"), &plain),
        secret("argocd-agent-jwt", &json!({}), &json!({"jwt.key": "k"})),
    ];
    for secret in &foreign {
        let secret = ObjectRef::of(&hub.create(secret).await?);
        for patch in [
            json!({"data": {"server": "ZXZpbA=="}}),
            json!({"metadata": {"labels": {MANAGED_BY: OURS}}}),
            json!({"metadata": {"labels": {MANAGED_BY: OURS, SECRET_TYPE: "cluster"}}, "data": {"server": "ZXZpbA=="}}),
        ] {
            is_refused(account.patch(&secret, &patch).await, "change no Secrets but")
                .with_context(|| secret.to_string())?;
        }
        is_refused(account.delete(&secret).await, "delete no Secrets but").with_context(|| secret.to_string())?;
        hub.delete(&secret).await?;
    }
    // A token Secret of another ServiceAccount would give the controller the permissions of that account.
    let mut token = secret("admission-token", &cluster(OURS), &json!({}));
    token["type"] = json!("kubernetes.io/service-account-token");
    token["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "argocd-application-controller"});
    let repository = json!({SECRET_TYPE: "repository", MANAGED_BY: OURS});
    for object in [
        token,
        secret("admission-repository", &repository, &plain),
        secret("admission-creds", &json!({SECRET_TYPE: "repo-creds"}), &plain),
        secret("admission-cluster", &json!({SECRET_TYPE: "cluster"}), &plain),
        secret("admission-other", &json!({MANAGED_BY: OURS}), &plain),
        secret("argocd-agent-ca", &json!({MANAGED_BY: OURS}), &plain),
    ] {
        is_refused(account.create(&object).await, "create no Secrets but").with_context(|| object.to_string())?;
    }

    let ours = secret("admission-ours-secret", &cluster(OURS), &plain);
    account.create(&ours).await?;
    let ours = ObjectRef::of(&ours);
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    account.patch(&ours, &labels(json!({"env": "prod"}))).await?;
    for refused in [json!({SECRET_TYPE: "repository"}), json!({MANAGED_BY: null})] {
        is_refused(account.patch(&ours, &labels(refused)).await, "change no Secrets but")?;
    }
    account.delete(&ours).await?;
    // As argocd-pull-integration writes it, and Red Hat ACM for the hub itself.
    let mut hubs = plain.clone();
    hubs["config"] = json!("{}");
    for data in [plain, hubs] {
        let peers = secret("admission-peers-secret", &json!({SECRET_TYPE: "cluster"}), &data);
        let peers = ObjectRef::of(&hub.create(&peers).await?);
        account.patch(&peers, &labels(json!({MANAGED_BY: OURS}))).await?;
        account.delete(&peers).await?;
    }
    Ok(())
}

/// Returns the work of an Application in the pull model, with these manifests.
fn carrying(cluster: &str, name: &str, manifests: &Value) -> Value {
    ObjectRef::manifest_work(cluster, name).with(json!({
        "metadata": {"labels": {PULL: "true"}, "annotations": {HUB_NAMESPACE: "argocd", HUB_NAME: "shop"}},
        "spec": {"workload": {"manifests": manifests}},
    }))
}

/// Returns the account with the permissions of the feature pull, without those of argocd-agent.
async fn pull_account(hub: &Hub) -> Result<Account> {
    let binding = "argocd-ocm-cmp-argocd-agent";
    hub.kubectl(&["delete", "clusterrolebinding", binding, "--ignore-not-found"])?;
    let account = account(hub, &["deploy/deploy_pull.yaml"]).await?;
    let create = format!("auth can-i create addontemplates.addon.open-cluster-management.io {AS_ACCOUNT}");
    let is_denied = async || hub.kubectl(&create).is_err().then_some(());
    wait::eventually("the account installs no agents", wait::DEADLINE, is_denied).await?;
    Ok(account)
}

#[tokio::test]
async fn works_may_only_contain_applications() -> Result<()> {
    let stage = stage("admission-works").await?;
    let (hub, cluster) = (&stage.hub, stage.cluster.as_str());
    let account = pull_account(hub).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "argocd"}});
    let application = ObjectRef::application("shop").with(json!({
        "spec": {"project": "default", "destination": {}, "source": {"repoURL": "https://example.com/git", "path": "."}},
    }));
    let root = ObjectRef::cluster_role("root")
        .with(json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}));
    let deleting = carrying(cluster, "shop-1a2b3", &json!([namespace, application]));
    let orphans = json!([{"resource": "namespaces", "name": "argocd"}]);
    let mut allowed = deleting.clone();
    allowed["spec"]["deleteOption"] =
        json!({"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": orphans}});
    let mut unlabelled = allowed.clone();
    unlabelled["metadata"]["labels"] = json!({});
    let mut executed = allowed.clone();
    let executor = json!({"subject": {"type": "ServiceAccount", "serviceAccount": {"namespace": "a", "name": "b"}}});
    executed["spec"]["executor"] = executor.clone();
    let of_agents = |name: &str| {
        let mut work = carrying(cluster, name, &json!([root]));
        work["metadata"]["labels"] = json!({"apps.open-cluster-management.io/gitopscluster": "true", MANAGED_BY: OURS});
        work
    };
    let mut elsewhere = allowed.clone();
    elsewhere["spec"]["deleteOption"]["selectivelyOrphans"]["orphaningRules"][0]["namespace"] = json!("argocd");
    let mut owned = allowed.clone();
    owned["spec"]["workload"]["manifests"][0]["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "Node", "name": "none", "uid": "none"}]);
    let ignoring = |condition: &str| {
        let fields = json!([{"condition": condition, "jsonPaths": [".metadata.labels"]}]);
        let strategy = json!({"type": "ServerSideApply", "serverSideApply": {"ignoreFields": fields}});
        json!([{"resourceIdentifier": {"resource": "namespaces", "name": "argocd"}, "updateStrategy": strategy}])
    };
    let mut programmed = allowed.clone();
    programmed["spec"]["manifestConfigs"] = ignoring("OnSpokePresent");
    allowed["spec"]["manifestConfigs"] = ignoring("OnSpokeChange");
    for work in [
        carrying(cluster, "shop-1a2b3", &json!([root])),
        carrying(cluster, "shop-1a2b3", &json!([application, root])),
        carrying(cluster, "klusterlet", &json!([application])),
        deleting,
        unlabelled,
        of_agents("argocd-agent-ca-mw"),
        // Without the permissions of the feature argocd-agent.
        of_agents("argocd-agent-cr-1a2b3"),
        elsewhere,
        owned,
        programmed,
    ] {
        is_refused(account.create(&work).await, "create no ManifestWorks but").with_context(|| work.to_string())?;
    }
    is_refused(account.create(&executed).await, "no executor")?;
    // The agent reads these keys, too.
    for key in ["Kind", "\u{212a}ind", "apiVer\u{17f}ion"] {
        let mut respelled = namespace.clone();
        respelled[key] = json!("ClusterRoleBinding");
        let work = carrying(cluster, "shop-1a2b3", &json!([respelled]));
        is_refused(account.create(&work).await, "create no ManifestWorks but").with_context(|| work.to_string())?;
    }
    account.create(&allowed).await?;
    let ours = ObjectRef::of(&allowed);
    let delivers = json!({"spec": {"workload": {"manifests": [root]}}});
    is_refused(account.patch(&ours, &delivers).await, "change no ManifestWorks but")?;
    let executed = json!({"spec": {"executor": executor}});
    is_refused(account.patch(&ours, &executed).await, "no executor")?;
    let deletes = json!({"spec": {"deleteOption": {"propagationPolicy": "Foreground", "selectivelyOrphans": null}}});
    is_refused(account.patch(&ours, &deletes).await, "change no ManifestWorks but")?;
    hub.patch(&ours, &executed).await?;
    let by_agent = json!({"spec": {"executor": null}});
    is_refused(account.patch(&ours, &by_agent).await, "no executor")?;
    let of_application = json!({"spec": {"workload": {"manifests": [application]}}});
    account.patch(&ours, &of_application).await?;
    // Possible damage by the cluster's agent is repaired.
    let broken = json!({"metadata": {"labels": {PULL: null}, "annotations": {HUB_NAME: "other"}}});
    hub.patch(&ours, &broken).await?;
    let permission = json!({"metadata": {"labels": {PULL: "true"}, "annotations": {HUB_NAME: "shop"}}});
    account.patch(&ours, &permission).await?;
    account.delete(&ours).await?;

    let mut theirs = carrying(cluster, "payments", &json!([application]));
    (theirs["metadata"]["labels"], theirs["metadata"]["annotations"]) = (json!({}), json!({}));
    let theirs = ObjectRef::of(&hub.create(&theirs).await?);
    for patch in [delivers, permission] {
        is_refused(account.patch(&theirs, &patch).await, "change no ManifestWorks but")?;
    }
    is_refused(account.delete(&theirs).await, "delete no ManifestWorks but")
}

#[tokio::test]
async fn pull_model_grants_no_access_to_secrets() -> Result<()> {
    let stage = stage("admission-only-pull").await?;
    let hub = &stage.hub;
    for role in "argocd-ocm-cmp-cluster-secrets argocd-ocm-cmp-gitopscluster argocd-ocm-cmp-argocd-agent".split(' ') {
        hub.kubectl(&["delete", "role", role, "-n", "argocd", "--ignore-not-found"])?;
    }
    account(hub, &["deploy/deploy_pull.yaml", "deploy/deploy_report.yaml"]).await?;
    let secrets = hub.kubectl(&format!("get secrets -n argocd {AS_ACCOUNT}"));
    let refused = secrets.err().context("the account can read Secrets")?.to_string();
    assert!(refused.contains("cannot list resource \"secrets\""), "{refused}");
    for verb in ["get", "watch", "create", "update", "patch", "delete"] {
        let may = hub.kubectl(&format!("auth can-i {verb} secrets -n argocd {AS_ACCOUNT}"));
        assert!(may.is_err(), "the account may {verb} Secrets");
    }
    let works = "manifestworks.work.open-cluster-management.io";
    hub.kubectl(&format!("auth can-i create {works} -A {AS_ACCOUNT}"))
        .map(drop)
}
