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
    hub.kubectl_with_input(&["apply", "-f", "-"], &permissions)?;
    let namespace = format!("--namespace={name}");
    hub.wait_for_permissions(name, "agent", &[&["create", "secrets", &namespace]])
        .await?;
    hub.service_account_kubeconfig(name, "agent")
}

async fn secret(stage: &Stage, namespace: &str, name: &str) -> Result<Value> {
    let secret = ObjectRef::secret(namespace, name);
    stage
        .hub
        .get(&secret)
        .await?
        .with_context(|| format!("{secret} does not exist"))
}

/// The length of a value of 32 bytes in base64, encoded in base64 again.
const LENGTH: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn creates_missing_secrets_of_argo_cd_once() -> Result<()> {
    let stage = stage("prepare").await?;
    let kubeconfig = namespace(&stage, "prepare-anew").await?;
    assert_eq!(
        stdout_of("prepare-anew", &kubeconfig)?,
        "Secret prepare-anew/argocd-secret: server.secretkey created\n\
         Secret prepare-anew/argocd-redis: auth created\n"
    );
    let made = [
        secret(&stage, "prepare-anew", "argocd-secret").await?,
        secret(&stage, "prepare-anew", "argocd-redis").await?,
    ];
    for (secret, key) in made.iter().zip(["server.secretkey", "auth"]) {
        assert_eq!(secret["metadata"]["labels"][PART_OF], "argocd");
        let data = secret["data"].as_object().context("data")?;
        assert_eq!(
            (data.len(), secret["data"][key].as_str().map(str::len)),
            (1, Some(LENGTH))
        );
    }
    assert_ne!(made[0]["data"]["server.secretkey"], made[1]["data"]["auth"]);
    assert_eq!(
        stdout_of("prepare-anew", &kubeconfig)?,
        "Secret prepare-anew/argocd-secret: server.secretkey exists\n\
         Secret prepare-anew/argocd-redis: auth exists\n"
    );
    for before in &made {
        let name = before["metadata"]["name"].as_str().context("a name")?;
        assert_eq!(&secret(&stage, "prepare-anew", name).await?, before);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn completes_existing_secrets_without_changing_keys() -> Result<()> {
    let stage = stage("prepare").await?;
    let kubeconfig = namespace(&stage, "prepare-half").await?;
    for (name, labels, data) in [
        ("argocd-secret", json!({"team": "a"}), json!({"admin.password": "eA=="})),
        ("argocd-redis", json!({}), json!({"auth": "eA=="})),
    ] {
        stage
            .hub
            .create(
                &ObjectRef::secret("prepare-half", name).with(json!({"metadata": {"labels": labels}, "data": data})),
            )
            .await?;
    }
    let redis = secret(&stage, "prepare-half", "argocd-redis").await?;
    // Simulates a concurrent writer repeatedly.
    let proxy = stage.proxy().await?;
    proxy.fault(Fault::Status(409), Times::Next(2), |request| {
        request.is("patch", "secrets")
    });
    assert_eq!(
        stdout_of("prepare-half", &proxy.kubeconfig(&kubeconfig)?)?,
        "Secret prepare-half/argocd-secret: server.secretkey completed\n\
         Secret prepare-half/argocd-redis: auth exists\n"
    );
    let requests = proxy.requests();
    let of = |verb: &str| requests.iter().filter(|request| request.is(verb, "secrets")).count();
    assert_eq!((of("get"), of("patch"), of("create")), (4, 3, 0));
    let completed = secret(&stage, "prepare-half", "argocd-secret").await?;
    assert_eq!(completed["metadata"]["labels"], json!({"team": "a", PART_OF: "argocd"}));
    assert_eq!(completed["data"]["admin.password"], "eA==");
    assert_eq!(
        completed["data"]["server.secretkey"].as_str().map(str::len),
        Some(LENGTH)
    );
    assert_eq!(secret(&stage, "prepare-half", "argocd-redis").await?, redis);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_one_line() -> Result<()> {
    let stage = stage("prepare").await?;
    let kubeconfig = namespace(&stage, "prepare-wrong").await?;
    let output = run("default", &kubeconfig)?;
    assert_eq!(
        (output.status.code(), &*String::from_utf8(output.stderr)?),
        (
            Some(1),
            "error: Secret default/argocd-secret cannot be read: secrets \"argocd-secret\" is forbidden: User \
             \"system:serviceaccount:prepare-wrong:agent\" cannot get resource \"secrets\" in API group \"\" in the namespace \
             \"default\"\n"
        )
    );
    let proxy = stage.proxy().await?;
    // Simulates another writer that is always faster, and whose object never appears.
    proxy.fault(Fault::Status(409), Times::Always, |request| {
        request.is("create", "secrets")
    });
    let output = run("prepare-wrong", &proxy.kubeconfig(&kubeconfig)?)?;
    assert_eq!(
        (output.status.code(), &*String::from_utf8(output.stderr)?),
        (
            Some(1),
            "error: Secret prepare-wrong/argocd-secret cannot be completed: it keeps changing\n"
        )
    );
    Ok(())
}
