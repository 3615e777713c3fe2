//! Tests of argocd-agent's principal: a hub without one gets ours, and another's stays and is checked.

use super::installation;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::{Hub, ObjectRef};

const FEATURE: &str = "--features=argocd-agent";

fn principal() -> ObjectRef {
    ObjectRef::deployment("argocd", "argocd-agent-principal")
}

fn params() -> ObjectRef {
    ObjectRef::config_map("argocd", "argocd-cmd-params-cm")
}

#[tokio::test]
async fn hub_gets_a_principal_and_argo_cds_settings_for_it() -> Result<()> {
    let installation = installation().await?;
    let lines = installation.run_ok(&["install", FEATURE, "--agent-image=example.com/agent:v2"])?;
    for line in [
        "deployment.apps/argocd-agent-principal created\n",
        "ConfigMap argocd/argocd-cmd-params-cm: redis.server kept: the principal is not ready: install again when",
    ] {
        assert!(lines.contains(line), "{lines}");
    }
    let hub = &installation.hub;
    let live = hub.read(&principal()).await?;
    let container = &live["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "example.com/agent:v2");
    // Neither this nor another feature puts Argo CD's Redis behind a principal that does not run.
    installation.run_ok(&["install", "--features=live"])?;
    assert!(hub.read(&params()).await?["data"]["redis.server"].is_null());
    make_ready(hub).await?;
    let lines = installation.run_ok(&["install", FEATURE])?;
    for line in [
        "configmap/argocd-cmd-params-cm configured\n",
        "deployment.apps/argocd-server configured\n",
    ] {
        assert!(lines.contains(line), "{lines}");
    }
    let redis = hub.read(&params()).await?["data"]["redis.server"].clone();
    assert_eq!(redis, "argocd-agent-redis-proxy:6379");

    check_network(hub).await?;

    // Another Redis is not lost: the principal must know it first.
    let redis = |server: &str| json!({"data": {"redis.server": server}});
    hub.patch(&params(), &redis("argocd-redis-ha-haproxy:6379")).await?;
    let error = installation.run_err(&["install", FEATURE])?;
    let expected = "error: ConfigMap argocd/argocd-cmd-params-cm: redis.server is argocd-redis-ha-haproxy:6379, which the principal";
    assert!(error.starts_with(expected), "{error}");
    hub.create(
        &ObjectRef::config_map("argocd", "argocd-agent-params")
            .with(json!({"data": {"principal.redis.server.address": "argocd-redis-ha-haproxy:6379"}})),
    )
    .await?;
    installation.run_ok(&["install", FEATURE])?;

    let again = installation.run_ok(&["install", FEATURE])?;
    assert!(
        again.contains("image example.com/agent:v2 kept: to upgrade it, pass --agent-image\n"),
        "{again}"
    );
    assert!(!again.contains("created") && !again.contains("configured"), "{again}");
    // Another feature keeps the ConfigMap.
    installation.run_ok(&["install", "--features=live"])?;
    let lines = installation.run_ok(&["install", "--additions-only", "--features=live"])?;
    let restored = "configmap/argocd-cmd-params-cm configured, with redis.server argocd-redis-ha-haproxy:6379\n";
    assert!(lines.contains(restored), "{lines}");
    let restart = "\nrestart Argo CD's application-controller and repo-server, which use Service argocd-agent-redis-proxy until then\n";
    assert!(lines.contains(restart), "{lines}");
    installation.run_ok(&["install", FEATURE])?;
    let lines = installation.run_ok(&["uninstall"])?;
    let restored = "configmap/argocd-cmd-params-cm restored, with redis.server argocd-redis-ha-haproxy:6379\n";
    assert!(lines.contains(restored), "{lines}");
    let data = json!({"redis.server": "argocd-redis-ha-haproxy:6379"});
    assert_eq!(hub.read(&params()).await?["data"], data, "Argo CD has its Redis again");
    hub.patch(&params(), &json!({"data": null})).await?;
    hub.delete(&ObjectRef::config_map("argocd", "argocd-agent-params"))
        .await?;
    installation.until_restored().await
}

/// Reports a ready Pod of the principal, which nothing runs here.
pub(super) async fn make_ready(hub: &Hub) -> Result<()> {
    let status = json!({"status": {"replicas": 1, "readyReplicas": 1}});
    hub.patch_status(&principal(), &status).await.map(drop)
}

/// Checks that the NetworkPolicies select the Pods of Argo CD's own manifests: those that use the proxies, and Redis.
async fn check_network(hub: &Hub) -> Result<()> {
    let names = async |policy: &str, selector: &str| -> Result<Vec<Value>> {
        let policy = ObjectRef::namespaced("networking.k8s.io/v1", "NetworkPolicy", "argocd", policy);
        let policy = hub.read(&policy).await?;
        let names = policy
            .pointer(selector)
            .and_then(|pod_selector| pod_selector["matchExpressions"][0]["values"].as_array());
        names.cloned().with_context(|| format!("{selector} in {policy}"))
    };
    let users = names("argocd-agent-principal", "/spec/ingress/1/from/0/podSelector").await?;
    let redis = names("argocd-agent-principal-redis", "/spec/podSelector").await?;
    let of_redis = names("argocd-agent-principal-redis", "/spec/ingress/0/from/0/podSelector").await?;
    assert!(
        users.iter().all(|user| of_redis.contains(user)),
        "{users:?} {of_redis:?}"
    );
    for (kind, name, selected) in [
        ("Deployment", "argocd-server", &users),
        ("Deployment", "argocd-repo-server", &users),
        ("StatefulSet", "argocd-application-controller", &users),
        ("Deployment", "argocd-redis", &redis),
    ] {
        let workload = ObjectRef::namespaced("apps/v1", kind, "argocd", name);
        let workload = hub.get(&workload).await?.context(name)?;
        let label = &workload["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"];
        assert!(selected.contains(label), "{name}: {label} is not in {selected:?}");
    }
    Ok(())
}

#[tokio::test]
async fn principal_of_another_stays_and_its_settings_are_checked() -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    // Reduced from argocd-agent's own manifests.
    let variable = |name: &str, key: &str| {
        let from = json!({"name": "argocd-agent-params", "key": key, "optional": true});
        json!({"name": name, "valueFrom": {"configMapKeyRef": from}})
    };
    let labels = json!({"app.kubernetes.io/name": "argocd-agent-principal"});
    let container = json!({
        "name": "argocd-agent-principal",
        "image": "example.com/agent:v1",
        "args": ["principal"],
        "env": [
            variable("ARGOCD_PRINCIPAL_LISTEN_HOST", "principal.listen.host"),
            variable("ARGOCD_PRINCIPAL_AUTH", "principal.auth"),
            variable("ARGOCD_PRINCIPAL_DESTINATION_BASED_MAPPING", "principal.destination-based-mapping"),
        ],
    });
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
    let theirs = ObjectRef::deployment("argocd", "argocd-agent-principal").with(json!({
        "metadata": {"labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }));
    let settings = ObjectRef::config_map("argocd", "argocd-agent-params")
        .with(json!({"data": {"principal.listen.host": "127.0.0.1", "principal.auth": "mtls:CN=([^,]+)"}}));
    for object in [&theirs, &settings] {
        hub.create(object).await?;
    }
    let before = installation.all()?;
    let spec = hub.read(&principal()).await?["spec"].clone();

    let lines = installation.run_ok(&["install", FEATURE])?;
    assert!(
        lines.contains("deployment.apps/argocd-agent-principal kept: it is the principal of this hub\n"),
        "{lines}"
    );
    for problem in [
        "it does not take the names of clusters from their certificates: set --auth, ARGOCD_PRINCIPAL_AUTH, or principal.auth in ",
        "it cannot be reached from outside its Pod: set --listen-host, ",
        "in the mode managed, it finds no cluster by spec.destination.name: set --destination-based-mapping, ",
    ] {
        let line = format!("\nDeployment argocd/argocd-agent-principal: {problem}");
        assert!(lines.contains(&line), "{line} is missing in\n{lines}");
    }
    assert_eq!(hub.read(&principal()).await?["spec"], spec);
    for ours in ["argocd-agent-redis-proxy", "argocd-agent-principal"] {
        let service = ObjectRef::namespaced("v1", "Service", "argocd", ours);
        assert_eq!(hub.get(&service).await?, None, "{ours} is theirs");
    }
    let redis = &hub.read(&params()).await?["data"]["redis.server"];
    assert!(redis.is_null(), "Argo CD's settings stay");
    let limits = installation
        .all()?
        .into_iter()
        .any(|(name, _)| name.contains("argocd-ocm-cmp-principal-"));
    assert!(!limits, "its agents may have Applications with any destination");

    installation.run_ok(&["uninstall"])?;
    installation.until(&before).await?;
    for object in [&theirs, &settings] {
        hub.delete(&ObjectRef::of(object)).await?;
    }
    hub.wait_gone(&principal()).await
}
