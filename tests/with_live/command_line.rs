//! Tests of `get`, `events` and `logs` with the identity of a user, and of the command that `status` names.

use crate::stage::{Stage, stage};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testbed::ObjectRef;
use testbed::process;
use testbed::wait::{self, DEADLINE};
use tokio::sync::OnceCell;

/// The user, a ServiceAccount of the hub with the permissions that `get --help` names.
const USER: &str = "ann";

/// Returns the kubeconfig of the user.
async fn kubeconfig(stage: &Stage) -> Result<&'static Path> {
    static KUBECONFIG: OnceCell<PathBuf> = OnceCell::const_new();
    let created = KUBECONFIG.get_or_try_init(async || {
        stage.proxy.create_pod(&stage.hub).await?;
        let account = json!({"name": USER, "namespace": "argocd"});
        let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        let group = "rbac.authorization.k8s.io";
        let api_version = format!("{group}/v1");
        let rules = [
            rule("argoproj.io", &["applications"], &["get"]),
            rule("work.open-cluster-management.io", &["manifestworks", "manifestworkreplicasets"], &["get", "list"]),
            rule("cluster.open-cluster-management.io", &["managedclusters"], &["get", "list"]),
            rule("addon.open-cluster-management.io", &["managedclusteraddons"], &["get"]),
            rule("", &["configmaps", "services"], &["get"]),
            rule("", &["pods"], &["list"]),
            rule("", &["pods/portforward"], &["get", "create"]),
        ];
        let metadata = json!({"name": "of-ann"});
        stage.hub.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})).await?;
        stage
            .hub
            .apply(&json!({"apiVersion": api_version, "kind": "ClusterRole", "metadata": metadata, "rules": rules}))
            .await?;
        stage
            .hub
            .apply(&json!({
                "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": metadata,
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "of-ann"},
                "subjects": [{"kind": "ServiceAccount", "name": USER, "namespace": "argocd"}],
            }))
            .await?;
        let authority = std::fs::read_to_string(stage.proxy.authority())?;
        stage
            .hub
            .apply(&ObjectRef::config_map("argocd", "argocd-ocm-cmp-cluster-proxy").with(json!({"data": {"ca.crt": authority}})))
            .await?;
        let forwards = [
            "create pods --subresource=portforward --namespace=open-cluster-management-addon",
            "get managedclusteraddons.addon.open-cluster-management.io --all-namespaces",
        ];
        stage.hub.wait_for_permissions("argocd", USER, &forwards).await?;
        let user = format!("--user=cluster:hub:system:serviceaccount:argocd:{USER}");
        stage
            .cluster1
            .kubectl(&["create", "clusterrolebinding", USER, "--clusterrole=view", &user])?;
        stage.hub.service_account_kubeconfig("argocd", USER)
    });
    created.await.map(PathBuf::as_path)
}

/// Returns a command of the program, for the Application `shop`.
fn program(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = process::command(
        env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
        env!("CARGO_TARGET_TMPDIR").as_ref(),
    );
    command.arg(arguments[0]).arg("shop").args(&arguments[1..]);
    command.arg("--kubeconfig").arg(kubeconfig);
    command.env("ARGOCD_OCM_CMP_SEND_MY_TOKEN", "true");
    command
}

/// Runs a command, and returns its exit code with its output.
fn run(command: &mut Command) -> Result<(i32, String, String)> {
    let output = command.output()?;
    let code = output.status.code().context("an exit code")?;
    Ok((
        code,
        String::from_utf8(output.stdout)?,
        String::from_utf8(output.stderr)?,
    ))
}

/// Runs a command until the cluster, which all tests ask, has answered it.
async fn printed(kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
    wait::eventually(&format!("{arguments:?} succeeds"), DEADLINE, async || {
        match run(&mut program(kubeconfig, arguments)).ok()? {
            (0, text, _) => Some(text),
            _ => None,
        }
    })
    .await
}

#[tokio::test]
async fn shows_objects_through_a_forwarded_port() -> Result<()> {
    let stage = stage().await?;
    let kubeconfig = kubeconfig(stage).await?;
    let tree = printed(kubeconfig, &["get", "deploy/web", "--cluster=cluster1"]).await?;
    let lines: Vec<&str> = tree.lines().collect();
    let starts = [
        "NAME ",
        "deployment.apps/web ",
        "└─replicaset.apps/web-",
        "  ├─pod/web-",
        "  └─pod/web-",
    ];
    ensure!(lines.len() == starts.len(), "{tree}");
    for (line, start) in lines.iter().zip(starts) {
        ensure!(line.starts_with(start), "{start}: {tree}");
    }
    ensure!(
        lines[0].split_whitespace().eq(["NAME", "READY", "STATUS", "AGE"]),
        "{tree}"
    );
    ensure!(lines[3].contains("1/1") && lines[3].contains("Running"), "{tree}");

    let live = printed(
        kubeconfig,
        &["get", "deployment/shop/web", "--cluster=cluster1", "-o", "json"],
    )
    .await?;
    let live: Value = serde_json::from_str(&live)?;
    ensure!(
        live["metadata"]["uid"].is_string() && live["metadata"]["managedFields"].is_null(),
        "{live}"
    );

    let events = printed(kubeconfig, &["events", "deployment/web", "--cluster=cluster1"]).await?;
    ensure!(
        events.starts_with("LAST SEEN ") && events.contains("ScalingReplicaSet"),
        "{events}"
    );

    // The role `view` does not permit Secrets.
    let (code, all, errors) = run(&mut program(kubeconfig, &["get", "--cluster=cluster1"]))?;
    ensure!(
        code == 1 && errors.starts_with("error: ") && errors.contains("ask an administrator of the cluster"),
        "{code}: {errors}"
    );
    for line in [
        "deployment.apps/changed ",
        "deployment.apps/web ",
        "namespace/shop ",
        "secret/key ",
    ] {
        ensure!(all.lines().any(|printed| printed.starts_with(line)), "{line}: {all}");
    }
    let secret = all
        .lines()
        .find(|line| line.starts_with("secret/key"))
        .unwrap_or_default();
    ensure!(secret.contains("Forbidden"), "{all}");
    Ok(())
}

#[tokio::test]
async fn prints_and_follows_logs() -> Result<()> {
    let stage = stage().await?;
    let kubeconfig = kubeconfig(stage).await?;
    let text = printed(
        kubeconfig,
        &["logs", "deployment/web", "--cluster=cluster1", "--tail=1"],
    )
    .await?;
    ensure!(text.lines().count() == 2 && text.contains(" web] "), "{text}");

    let pods = printed(
        kubeconfig,
        &["get", "deployment/web", "--cluster=cluster1", "-o", "name"],
    )
    .await?;
    let pod = pods
        .lines()
        .find_map(|line| line.strip_prefix("pod/"))
        .context("a Pod")?;
    let follow = format!("logs deployment/web --cluster=cluster1 -f --tail=0 -c web --pod {pod}");
    let mut command = program(kubeconfig, &follow.split(' ').collect::<Vec<_>>());
    let mut followed = command.stdout(Stdio::piped()).spawn()?;
    let (sender, lines) = std::sync::mpsc::channel();
    let out = BufReader::new(followed.stdout.take().context("an output")?);
    std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let seen = wait::eventually("the new line is printed", DEADLINE, async || {
        stage.cluster1.log("a new line").ok()?;
        lines.try_recv().ok()
    })
    .await;
    followed.kill()?;
    followed.wait()?;
    ensure!(seen? == "a new line");
    Ok(())
}

#[tokio::test]
async fn refuses_what_cannot_be_shown() -> Result<()> {
    let stage = stage().await?;
    let kubeconfig = kubeconfig(stage).await?;
    for (arguments, reason) in [
        (
            &["get", "deployment/web"][..],
            "is on 2 clusters: choose one with --cluster: cluster1, cluster2",
        ),
        (&["get", "--cluster=cluster3"], "has no works on cluster cluster3"),
        (
            &["get", "deployment/chagned", "--cluster=cluster1"],
            "did you mean deployment.apps/shop/changed?",
        ),
        (
            &["get", "configmap/of-another", "--cluster=cluster1"],
            "is not in its works",
        ),
        (
            &["events", "secret/key", "--cluster=cluster1"],
            "ask an administrator of the cluster for this permission",
        ),
        (
            &["logs", "pod/stranger", "--cluster=cluster1"],
            "name the object that owns it",
        ),
        (
            &["get", "deployment/web", "--cluster=cluster2"],
            "cluster cluster2 cannot be reached",
        ),
        (&["get", "--cluster=cluster1", "--token=x"], "does not accept the token"),
        (
            &[
                "get",
                "--cluster=cluster1",
                "--cluster-proxy=https://none.argocd.svc:9092",
            ],
            "Service argocd/none of cluster-proxy cannot be reached",
        ),
        (
            &["get", "--cluster=cluster1", "--cluster-proxy=http://127.0.0.1:1"],
            "is not a URL with https",
        ),
    ] {
        let (code, out, error) = run(&mut program(kubeconfig, arguments))?;
        ensure!(code == 1 && out.is_empty(), "{arguments:?}: {code}: {out}");
        ensure!(
            error.starts_with("error: ") && error.lines().count() == 1,
            "{arguments:?}: {error}"
        );
        ensure!(error.contains(reason), "{arguments:?}: {error}");
    }
    let mut unasked = program(kubeconfig, &["get", "--cluster=cluster1"]);
    let (code, _, error) = run(unasked.env_remove("ARGOCD_OCM_CMP_SEND_MY_TOKEN"))?;
    ensure!(code == 1 && error.contains("--send-my-token"), "{code}: {error}");
    let certificate = stage.hub.logs().join("certificate.kubeconfig");
    let mut user: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
    user["users"][0]["user"] = json!({"client-certificate": "/none", "client-key": "/none"});
    std::fs::write(&certificate, user.to_string())?;
    let (code, _, error) = run(&mut program(&certificate, &["get", "--cluster=cluster1"]))?;
    ensure!(
        code == 1 && error.contains("pass a token with --token"),
        "{code}: {error}"
    );
    Ok(())
}

/// Creates a ServiceAccount of the managed cluster that may view namespace `shop` there. Returns its token as the Secret of a
/// `ManagedServiceAccount` holds it on the hub.
async fn token_of_the_cluster(stage: &Stage) -> Result<String> {
    let hub = &stage.hub;
    let cluster = &stage.cluster1;
    let (name, namespace) = ("reader", "open-cluster-management-agent-addon");
    let account = json!({"name": name, "namespace": namespace});
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}))
        .await?;
    let group = "rbac.authorization.k8s.io";
    cluster
        .apply(
            &ObjectRef::namespaced(&format!("{group}/v1"), "RoleBinding", "shop", name).with(json!({
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            })),
        )
        .await?;
    let token = cluster.kubectl(&["create", "token", name, "--namespace", namespace])?;
    hub.apply(&ObjectRef::secret("cluster1", name).with(json!({"stringData": {"token": token.trim()}})))
        .await?;
    let template = "--template={{.data.token | base64decode}}";
    hub.kubectl(&["get", "secret", name, "--namespace=cluster1", template])
}

#[tokio::test]
async fn tokens_of_the_cluster_show_objects_and_are_of_no_use_on_the_hub() -> Result<()> {
    let stage = stage().await?;
    let kubeconfig = kubeconfig(stage).await?;
    let token = token_of_the_cluster(stage).await?;
    let with_token = |arguments: &[&str]| {
        let mut command = program(kubeconfig, arguments);
        command.env("ARGOCD_OCM_CMP_TOKEN", &token);
        command.env_remove("ARGOCD_OCM_CMP_SEND_MY_TOKEN");
        run(&mut command)
    };
    let tree = wait::eventually("the token shows the object", DEADLINE, async || {
        let (code, tree, _) = with_token(&["get", "deployment/web", "--cluster=cluster1"]).ok()?;
        (code == 0).then_some(tree)
    })
    .await?;
    ensure!(tree.contains("pod/web-"), "{tree}");

    let refused = stage.hub.kubectl(&["auth", "whoami", "--token", &token]);
    let refused = refused.err().context("the hub accepts the token")?.to_string();
    ensure!(
        refused.contains("Unauthorized") || refused.contains("logged in"),
        "{refused}"
    );

    // It may not read Secrets, and Events of the Namespace are in namespace `default`.
    let errors = wait::eventually("the Events in its namespace are shown", DEADLINE, async || {
        let (code, events, errors) = with_token(&["events", "--cluster=cluster1"]).ok()?;
        (code == 1 && events.contains("ScalingReplicaSet")).then_some(errors)
    })
    .await?;
    let user = "system:serviceaccount:open-cluster-management-agent-addon:reader";
    for forbidden in ["cannot get resource \"secrets\"", "cannot list resource \"events\""] {
        let line = errors
            .lines()
            .find(|line| line.contains(forbidden))
            .context(forbidden)?;
        ensure!(line.starts_with("error: ") && line.contains(user), "{line}");
    }
    ensure!(errors.lines().count() == 2, "{errors}");
    Ok(())
}

#[tokio::test]
async fn completes_objects_of_the_application() -> Result<()> {
    let stage = stage().await?;
    let kubeconfig = kubeconfig(stage).await?;
    let complete = || {
        let mut called = process::command(
            env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
            env!("CARGO_TARGET_TMPDIR").as_ref(),
        );
        called.env("ARGOCD_OCM_CMP_COMPLETE", "bash");
        called.envs([
            ("_CLAP_COMPLETE_INDEX", "5"),
            ("_CLAP_IFS", "\n"),
            ("_CLAP_COMPLETE_COMP_TYPE", "9"),
        ]);
        called.args(["--", "argocd-ocm-cmp", "get", "--kubeconfig"]);
        called.arg(kubeconfig).args(["shop", "deployment"]);
        called
    };
    let completed = wait::eventually("the hub answers in time", DEADLINE, async || {
        let (_, text, _) = run(&mut complete()).ok()?;
        text.contains("deployment").then_some(text)
    })
    .await?;
    ensure!(
        completed == "deployment.apps/changed\ndeployment.apps/web",
        "{completed}"
    );
    Ok(())
}

#[tokio::test]
async fn status_names_the_command_for_a_degraded_object() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    let kubeconfig = kubeconfig(stage).await?;
    let status = async || run(&mut program(kubeconfig, &["status", "--clusters=cluster2"])).map(|(_, text, _)| text);
    let works = ObjectRef::manifest_work("cluster2", "shop");
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "x", "message": "broken", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let meta = json!({"ordinal": 1, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments",
        "namespace": "shop", "name": "web"});
    let failed = json!({"status": {
        "conditions": [condition("Applied", "False")],
        "resourceStatus": {"manifests": [{"resourceMeta": meta, "conditions": [condition("Applied", "False")]}]},
    }});
    hub.patch_status(&works, &failed).await?;
    let without = status().await?;
    ensure!(
        without.contains("Degraded") && !without.contains("argocd-ocm-cmp get"),
        "{without}"
    );

    let addon = ObjectRef::namespaced(
        "addon.open-cluster-management.io/v1alpha1",
        "ManagedClusterAddOn",
        "cluster2",
        "cluster-proxy",
    );
    hub.apply(&ObjectRef::managed_cluster_addon("cluster2", "cluster-proxy").with(json!({"spec": {}})))
        .await?;
    let available = json!({"status": {"conditions": [condition("Available", "True")]}});
    hub.patch_status(&addon, &available).await?;
    let with = status().await?;
    let expected = "argocd-ocm-cmp get shop deployment.apps/shop/web --cluster cluster2";
    ensure!(with.contains(expected), "{with}");
    Ok(())
}
