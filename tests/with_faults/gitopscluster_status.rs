//! Tests of `gitopscluster status` against a real API server: its reads, and its output without some of the permissions.

use crate::gitopscluster_crd::{install, named, object};
use crate::stage::{Stage, stage};
use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use pki::Recipe;
use serde_json::{Map, Value, json};
use std::path::Path;
use testbed::proxy::Proxy;
use testbed::{ObjectRef, new_condition, process, wait};

const ADDON: &str = "argocd-agent-addon";
const OCM: &str = "cluster.open-cluster-management.io";
const CLUSTERS: [&str; 3] = ["gs-eu", "gs-new", "gs-us"];

/// The output and the exit code.
struct CommandResult {
    code: Option<i32>,
    out: String,
    err: String,
}

impl CommandResult {
    /// Checks the exit code, and that the output ends with this text: on standard output, or on standard error if there is none.
    fn ends_with(&self, code: i32, text: &str) -> Result<()> {
        let out = if self.out.is_empty() { &self.err } else { &self.out };
        ensure!(
            self.code == Some(code) && out.ends_with(text),
            "{text}: {:?} {}{}",
            self.code,
            self.out,
            self.err
        );
        Ok(())
    }

    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("{:?} {}", self.code, self.err))
    }
}

/// Runs `gitopscluster status` with a kubeconfig.
fn status(kubeconfig: &Path, words: &str) -> Result<CommandResult> {
    let home = tempfile::tempdir()?;
    let mut command = process::command(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), home.path());
    command
        .args(["gitopscluster", "status", "--kubeconfig"])
        .arg(kubeconfig);
    let output = command.args(words.split_whitespace()).output()?;
    Ok(CommandResult {
        code: output.status.code(),
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

fn condition(kind: &str, status: &str, message: &str) -> Value {
    new_condition(kind, status, message, &json!(1))
}

/// Creates a GitOpsCluster, and its status as the controller does.
async fn declare(stage: &Stage, name: &str, spec: &Value, status: &Value) -> Result<()> {
    let hub = &stage.hub;
    hub.create(&object("v1alpha1", name, spec)).await?;
    let status = json!({"status": status});
    hub.patch_status(&named("v1alpha1", name), &status).await.map(drop)
}

/// Creates a PlacementDecision as the controller writes it for OCM, for a GitOpsCluster.
async fn decide(stage: &Stage, name: &str, owner: &str, clusters: &[&str]) -> Result<()> {
    let decision = ObjectRef::placement_decision(name).with(json!({
        "metadata": {"labels": {"app.kubernetes.io/managed-by": "argocd-ocm-cmp"}, "annotations": {"argocd-ocm-cmp.github.io/gitopscluster": owner}},
    }));
    stage.hub.create(&decision).await?;
    let decisions: Vec<_> = clusters
        .iter()
        .map(|name| json!({"clusterName": name, "reason": ""}))
        .collect();
    let object_ref = ObjectRef::of(&decision);
    let status = json!({"status": {"decisions": decisions}});
    stage.hub.patch_status(&object_ref, &status).await.map(drop)
}

async fn addon(stage: &Stage, cluster: &str, name: &str, conditions: &[Value]) -> Result<()> {
    let addon = ObjectRef::managed_cluster_addon(cluster, name).with(json!({"spec": {}}));
    stage.hub.create(&addon).await?;
    let status = json!({"status": {"conditions": conditions}});
    stage.hub.patch_status(&ObjectRef::of(&addon), &status).await.map(drop)
}

/// Creates the Secret that lists the certificates of a cluster's agent, which expire at these times.
async fn issue(stage: &Stage, cluster: &str, all: [Timestamp; 2]) -> Result<()> {
    let mut data = Map::new();
    for (request, not_after) in all.into_iter().enumerate() {
        let not_before = not_after - SignedDuration::from_hours(1);
        let common_name = pki::authority_name(not_before);
        let recipe = Recipe::Authority {
            common_name,
            validity: not_before..not_after,
        };
        let mut made = pki::make(&recipe, None)?;
        let certificate = made.remove("tls.crt").flatten().context("a certificate")?;
        data.insert(request.to_string(), json!(ByteString(certificate)));
    }
    let secret = ObjectRef::secret("argocd", &format!("argocd-agent-issued-{cluster}"))
        .with(json!({"type": "argocd-ocm-cmp.github.io/agent-certificates", "data": data}));
    stage.hub.apply(&secret).await.map(drop)
}

/// Returns a hub with a GitOpsCluster whose agents are in three states, and one without agents.
async fn hub() -> Result<Stage> {
    let stage = stage(CLUSTERS[0]).await?;
    for cluster in &CLUSTERS[1..] {
        stage.hub.declare_managed_cluster(cluster).await?;
    }
    install(&stage).await?;
    clean(&stage)?;
    let fleet = json!({"placementRef": {"kind": "Placement", "name": "all"}, "argoCDAgentAddon": {}});
    let message = "AgentsConnected: 1 of 3 agents are connected, not connected: gs-eu";
    let status = json!({
        "conditions": [condition("Ready", "False", message)],
        "clusterStates": [{
            "name": "gs-eu", "state": "Disconnected", "message": "as it was", "certificateNotAfter": "2125-01-01T00:00:00Z",
        }],
        "clusterStatesCut": 2,
    });
    declare(&stage, "fleet", &fleet, &status).await?;
    let plain =
        json!({"placementRef": {"kind": "Placement", "name": "all"}, "argoServer": {"argoNamespace": "argocd"}});
    let status = json!({"conditions": [condition("Ready", "True", "all conditions are True")]});
    declare(&stage, "plain", &plain, &status).await?;
    // Two decisions of the GitOpsCluster, and unrelated ones.
    for (name, owner, clusters) in [
        (
            "fleet-argocd-agent-decision-1",
            "argocd/fleet",
            &["gs-us", "gs-new"][..],
        ),
        ("fleet-argocd-agent-decision-2", "argocd/fleet", &["gs-eu"]),
        ("others", "argocd/other", &["gs-other"]),
    ] {
        decide(&stage, name, owner, clusters).await?;
    }
    let applied = condition("ManifestApplied", "True", "");
    let refused = condition("Available", "False", "the principal refuses it");
    addon(&stage, "gs-eu", ADDON, &[applied.clone(), refused]).await?;
    addon(&stage, "gs-us", ADDON, &[applied, condition("Available", "True", "")]).await?;
    let broken = condition("Degraded", "True", "of another add-on");
    addon(&stage, "gs-us", "work-manager", &[broken]).await?;
    let until = ["2048-01-01T00:00:00Z".parse()?, "2049-06-01T00:00:00Z".parse()?];
    issue(&stage, "gs-us", until).await?;
    Ok(stage)
}

/// Deletes the objects, for the tests that follow.
fn clean(stage: &Stage) -> Result<()> {
    let gone = "gitopsclusters,placementdecisions.cluster.open-cluster-management.io,\
                managedclusteraddons.addon.open-cluster-management.io";
    stage
        .hub
        .kubectl(&["delete", "--all", "--all-namespaces", gone])
        .map(drop)
}

/// Returns the cluster, the state and the message of each agent.
fn agents(report: &Value) -> Vec<[&str; 3]> {
    let agents = report["agents"].as_array().into_iter().flatten();
    agents
        .map(|agent| ["cluster", "state", "message"].map(|key| agent[key].as_str().unwrap_or_default()))
        .collect()
}

#[tokio::test]
async fn lists_every_cluster_with_few_requests() -> Result<()> {
    let stage = hub().await?;
    let proxy = Proxy::start(&stage.hub).await?;
    let kubeconfig = proxy.kubeconfig(stage.hub.kubeconfig_path())?;

    let result = status(&kubeconfig, "fleet -o json")?;
    let report = result.json()?;
    ensure!(
        result.code == Some(1) && result.err.is_empty(),
        "{:?} {}",
        result.code,
        result.err
    );
    let expected = [
        ["gs-eu", "Disconnected", "the principal refuses it"],
        ["gs-new", "Pending", ""],
        ["gs-us", "Connected", ""],
    ];
    assert_eq!(agents(&report), expected);
    assert_eq!(report["agents"][2]["certificateNotAfter"], "2049-06-01T00:00:00Z");

    let mark = proxy.mark();
    status(&kubeconfig, "fleet")?.ends_with(1, "gs-new    Pending\ngs-us     Connected\n")?;
    let requests: Vec<_> = proxy.requests()[mark..].iter().map(ToString::to_string).collect();
    assert_eq!(requests.len(), 4, "{requests:#?}");
    assert!(
        !requests.iter().any(|request| request.contains("secrets")),
        "{requests:#?}"
    );

    // The hub no longer hears from one.
    let managed = ObjectRef::cluster(&format!("{OCM}/v1"), "ManagedCluster", "gs-eu");
    let silent = condition("ManagedClusterConditionAvailable", "Unknown", "");
    let silent = json!({"status": {"conditions": [silent]}});
    stage.hub.patch_status(&managed, &silent).await?;
    let result = status(&kubeconfig, "fleet -o wide")?;
    assert!(result.out.contains("gs-eu     Unreachable   -\n"), "{}", result.out);
    assert!(result.out.contains("(2049-06-01T00:00:00Z)\n"), "{}", result.out);

    assert_eq!(status(&kubeconfig, "-o name")?.out, "argocd/fleet\nargocd/plain\n");
    assert_eq!(
        status(&kubeconfig, "-n gs-eu argocd/fleet -o name")?.out,
        "argocd/fleet\n"
    );
    completes_names(&kubeconfig)?;

    // All of one namespace, all of every namespace, and one without agents.
    for words in ["-o json", "-A -o json"] {
        let report = status(&kubeconfig, words)?.json()?;
        let items = report["items"].as_array().context("a list")?;
        let names: Vec<_> = items.iter().map(|item| (&item["name"], agents(item).len())).collect();
        assert_eq!(names, [(&json!("fleet"), 3), (&json!("plain"), 0)]);
    }
    let mark = proxy.mark();
    let result = status(&kubeconfig, "plain -o wide")?;
    assert_eq!(result.code, Some(0), "{} {}", result.out, result.err);
    assert_eq!(proxy.requests().len() - mark, 1);
    clean(&stage)
}

/// Checks that a shell completes the names on the hub.
fn completes_names(kubeconfig: &Path) -> Result<()> {
    let completed = |words: &str, typed: &str| -> Result<String> {
        let home = tempfile::tempdir()?;
        let mut command = process::command(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), home.path());
        command.env("ARGOCD_OCM_CMP_COMPLETE", "fish");
        command.args(["--", "argocd-ocm-cmp"]).args(words.split(' '));
        let output = command
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(typed.split(' '))
            .output()?;
        ensure!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        Ok(String::from_utf8(output.stdout)?)
    };
    assert_eq!(completed("gitopscluster status", "f")?, "fleet\n");
    assert_eq!(
        completed("gitopscluster status -n other", "argocd/f")?,
        "argocd/fleet\n"
    );
    assert_eq!(completed("status shop", "--clusters gs-")?, "gs-eu\ngs-new\ngs-us\n");
    for command in ["generate shop", "status shop"] {
        let completed = completed(command, "--clusters gs-eu,gs-")?;
        assert_eq!(completed, "gs-eu,gs-new\ngs-eu,gs-us\n", "{command}");
    }
    Ok(())
}

#[tokio::test]
async fn forbidden_reads_are_reported_beside_known_data() -> Result<()> {
    let stage = hub().await?;
    let hub = &stage.hub;
    let account = "gs-reader";
    hub.kubectl(&["-n", "argocd", "create", "serviceaccount", account])?;
    let kubeconfig = hub.service_account_kubeconfig("argocd", account)?;
    let result = status(&kubeconfig, "fleet")?;
    assert_eq!((result.code, &*result.out), (Some(2), ""));
    assert!(
        result
            .err
            .contains("lacks the permission to get gitopsclusters.apps.open-cluster-management.io in namespace "),
        "{}",
        result.err
    );
    assert_eq!(result.err.lines().count(), 1, "{}", result.err);

    let resource = "--resource=gitopsclusters.apps.open-cluster-management.io";
    hub.kubectl(&["-n", "argocd", "create", "role", account, "--verb=get", resource])?;
    let who = format!("--serviceaccount=argocd:{account}");
    let role = format!("--role={account}");
    hub.kubectl(&["-n", "argocd", "create", "rolebinding", account, &role, &who])?;
    let may = async || {
        let result = status(&kubeconfig, "fleet -o json").ok()?;
        (result.code != Some(2)).then_some(result)
    };
    let result = wait::eventually("the permissions are effective", wait::DEADLINE, may).await?;
    let report = result.json()?;
    assert_eq!(result.code, Some(1));
    assert_eq!(agents(&report), [["gs-eu", "Disconnected", "as it was"]]);
    assert_eq!(report["unlisted"], 2);
    assert_eq!(report["agents"][0]["certificateNotAfter"], "2125-01-01T00:00:00Z");
    let warnings: Vec<_> = result.err.lines().collect();
    assert_eq!(warnings.len(), 2, "{}", result.err);
    let printed = "warning: showing the state of agents that the controller last wrote: user ";
    assert!(warnings[0].starts_with(printed), "{}", result.err);
    for (warning, resource) in warnings
        .iter()
        .zip(["placementdecisions.cluster.open-cluster-management.io", "secrets"])
    {
        let lacks = format!("lacks the permission to list {resource} in namespace argocd");
        assert!(warning.contains(&lacks), "{}", result.err);
    }
    status(&kubeconfig, "fleet")?.ends_with(1, "\n2 more clusters not listed in the status\n")?;

    // A missing GitOpsCluster.
    let line = "has no GitOpsCluster shop in the namespace argocd: pass another one with --namespace\n";
    status(hub.kubeconfig_path(), "shop")?.ends_with(2, line)?;
    let line = "has no GitOpsClusters in the namespace gs-eu: pass --all-namespaces to read all\n";
    status(hub.kubeconfig_path(), "-n gs-eu")?.ends_with(2, line)?;
    clean(&stage)
}
