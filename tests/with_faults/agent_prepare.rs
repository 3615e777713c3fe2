//! Tests of `agent prepare` on a real API server: it creates the missing Secrets of Argo CD on a managed cluster and changes
//! nothing else, with only the permissions in its help.

use crate::stage::{Stage, stage};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;
use testbed::ObjectRef;
use testbed::process;
use testbed::proxy::{Fault, Times};

const NAMESPACE: &str = "prepare-argocd";
const PART_OF: &str = "app.kubernetes.io/part-of";

/// Runs it for this namespace, and returns its output.
fn run(namespace: &str, kubeconfig: &Path) -> Result<Output> {
    let home = tempfile::tempdir()?;
    let mut command = process::command(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), home.path());
    command.args(["agent", "prepare", "--namespace", namespace, "--kubeconfig"]);
    Ok(command.arg(kubeconfig).output()?)
}

fn stdout_of(namespace: &str, kubeconfig: &Path) -> Result<String> {
    let output = run(namespace, kubeconfig)?;
    let error = String::from_utf8(output.stderr)?;
    ensure!(output.status.success() && error.is_empty(), "{error}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Creates a namespace, and returns the kubeconfig of a ServiceAccount there with only the permissions in the help.
async fn namespace(stage: &Stage, name: &str) -> Result<std::path::PathBuf> {
    let hub = &stage.hub;
    hub.create_namespace(name).await?;
    let permissions = format!(
        r#"
apiVersion: v1
kind: ServiceAccount
metadata: {{name: agent, namespace: {name}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: agent, namespace: {name}}}
rules:
- {{apiGroups: [""], resources: [secrets], verbs: [create]}}
- {{apiGroups: [""], resources: [secrets], verbs: [get, patch], resourceNames: [argocd-secret, argocd-redis]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: agent, namespace: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: agent}}
subjects:
- {{kind: ServiceAccount, name: agent, namespace: {name}}}
"#
    );
    hub.kubectl_with_input("apply -f -", &permissions)?;
    let permission = format!("create secrets --namespace={name}");
    hub.wait_for_permissions(name, "agent", &[&permission]).await?;
    hub.service_account_kubeconfig(name, "agent")
}

async fn secret(stage: &Stage, name: &str) -> Result<Value> {
    stage.hub.read(&ObjectRef::secret(NAMESPACE, name)).await
}

/// The length of a value of 32 bytes in base64, encoded in base64 again.
const LENGTH: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn completes_the_secrets_of_argo_cd_once_with_its_permissions() -> Result<()> {
    let stage = stage("prepare").await?;
    let hub = &stage.hub;
    let kubeconfig = namespace(&stage, NAMESPACE).await?;
    let labels = json!({"team": "a"});
    hub.create(
        &ObjectRef::secret(NAMESPACE, "argocd-secret")
            .with(json!({"metadata": {"labels": labels}, "data": {"admin.password": "eA=="}})),
    )
    .await?;
    // Simulates a concurrent writer repeatedly.
    let proxy = stage.proxy().await?;
    proxy.fault(Fault::Status(409), Times::Next(2), |request| {
        request.is("patch", "secrets")
    });
    assert_eq!(
        stdout_of(NAMESPACE, &proxy.kubeconfig(&kubeconfig)?)?,
        "Secret prepare-argocd/argocd-secret: server.secretkey completed\nSecret prepare-argocd/argocd-redis: auth created\n"
    );
    let requests = proxy.requests();
    let of = |verb: &str| requests.iter().filter(|request| request.is(verb, "secrets")).count();
    assert_eq!((of("patch"), of("create")), (3, 1));
    let made = [
        secret(&stage, "argocd-secret").await?,
        secret(&stage, "argocd-redis").await?,
    ];
    assert_eq!(made[0]["metadata"]["labels"], json!({"team": "a", PART_OF: "argocd"}));
    assert_eq!(made[1]["metadata"]["labels"][PART_OF], "argocd");
    assert_eq!(made[0]["data"]["admin.password"], "eA==");
    let keys = [&made[0]["data"]["server.secretkey"], &made[1]["data"]["auth"]];
    assert_eq!(keys.map(|key| key.as_str().map(str::len)), [Some(LENGTH); 2]);
    assert_ne!(keys[0], keys[1]);

    assert_eq!(
        stdout_of(NAMESPACE, &kubeconfig)?,
        "Secret prepare-argocd/argocd-secret: server.secretkey exists\nSecret prepare-argocd/argocd-redis: auth exists\n"
    );
    for before in &made {
        let name = before["metadata"]["name"].as_str().context("a name")?;
        assert_eq!(&secret(&stage, name).await?, before);
    }

    let output = run("default", &kubeconfig)?;
    assert_eq!(
        (output.status.code(), &*String::from_utf8(output.stderr)?),
        (
            Some(1),
            "error: Secret default/argocd-secret cannot be read: secrets \"argocd-secret\" is forbidden: User \
             \"system:serviceaccount:prepare-argocd:agent\" cannot get resource \"secrets\" in API group \"\" in the namespace \
             \"default\"\n"
        )
    );
    // Simulates another writer that is always faster, and whose change never appears.
    hub.delete(&ObjectRef::secret(NAMESPACE, "argocd-redis")).await?;
    proxy.fault(Fault::Status(409), Times::Always, |request| {
        request.is("create", "secrets")
    });
    let output = run(NAMESPACE, &proxy.kubeconfig(&kubeconfig)?)?;
    assert_eq!(
        (output.status.code(), &*String::from_utf8(output.stderr)?),
        (
            Some(1),
            "error: Secret prepare-argocd/argocd-redis cannot be completed: it keeps changing\n"
        )
    );
    Ok(())
}
