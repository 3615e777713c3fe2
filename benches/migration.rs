//! Measures a migration to the controllers `pull` and `cluster-secrets` on the hub of a fleet: a real API server with OCM's webhook,
//! and the Applications, works and cluster Secrets of argocd-pull-integration.
//!
//! ```text
//! cargo bench --bench migration               # 300 Applications on 30 managed clusters
//! cargo bench --bench migration -- 3000 300   # 3,000 Applications on 300 managed clusters
//! ```
//!
//! Has the prerequisites of the testbed.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod fleet;
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../tests/common/peers.rs"]
mod peers;

use anyhow::{Context, Result, ensure};
use fleet::{APPLICATIONS, Load, Program, Size, Stage, Table, WORKS, request, seconds, timed, writes};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Instant;

/// The numbers of Applications and of managed clusters.
const SIZES: [Size; 1] = [(300, 30)];

#[tokio::main]
async fn main() -> Result<()> {
    let programs = [Program::Ours(&["--controllers=pull,cluster-secrets"])];
    fleet::run(&SIZES, &programs, measure).await
}

async fn measure(program: &Program, size: Size, table: &mut Table) -> Result<()> {
    let stage = Stage::start(program, size).await?;
    let load = stage.load();
    load.create_clusters().await?;
    load.of_each(|at| vec![request("POST", APPLICATIONS, &application(load, at))])
        .await?;
    let works = load.list_objects(APPLICATIONS, peers::peers_work).await?;
    let works: Vec<Value> = works.into_iter().collect::<Result<_>>()?;
    let objects = |at: usize| {
        let work = &works[at];
        let namespace = work["metadata"]["namespace"].as_str().unwrap_or_default();
        let mut requests = vec![request(
            "POST",
            &format!("{WORKS}/namespaces/{namespace}/manifestworks"),
            work,
        )];
        if at < size.1 {
            let secret = peers::peers_secret(&load.cluster(at));
            requests.push(request("POST", "/api/v1/namespaces/argocd/secrets", &secret));
        }
        requests
    };
    load.of_each(objects).await?;

    let (applications, clusters) = (size.0.to_string(), size.1.to_string());
    let [none, all, of_clusters] = ["0", &*applications, &*clusters];
    let adoption = [
        ["ManifestWork", all, none, all, none],
        ["Secret", of_clusters, none, of_clusters, none],
    ];
    table.note("a plan, s", plan(&stage, &adoption)?);
    let started = timed(async { Ok(()) }).await?;
    let controller = stage.controller("first").await?;
    let expected = 2.0 * load.applications();
    let works = controller.quiet(|metrics| program.written(metrics), expected).await?;
    let secrets = controller
        .quiet(|metrics| writes(metrics, "secrets"), size.1 as f64)
        .await?;
    let adopted = works.since(&started).max(secrets.since(&started));
    table.note("the start and the adoption of all, s", seconds(adopted));
    let after = [
        ["ManifestWork", all, none, none, none],
        ["Secret", of_clusters, none, none, none],
    ];
    table.note("the plan that verifies it, s", plan(&stage, &after)?);
    controller.stop()?;
    Ok(())
}

/// Runs `migrate plan`, and returns its duration in seconds. Its table must have these rows.
fn plan(stage: &Stage<'_>, rows: &[[&str; 5]]) -> Result<String> {
    let started = Instant::now();
    let output = Command::new(testbed::program(env!("CARGO_BIN_EXE_argocd-ocm-cmp")))
        .args(["migrate", "plan", "--controllers=pull,cluster-secrets", "--kubeconfig"])
        .arg(stage.kubeconfig())
        .output()
        .context("migrate plan does not run")?;
    let took = started.elapsed();
    let text = String::from_utf8(output.stdout)?;
    for row in rows {
        let has = text.lines().any(|line| line.split_whitespace().eq(row.iter().copied()));
        ensure!(has, "no {row:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(seconds(took))
}

/// Returns an Application of the basic pull model.
fn application(load: &Load, at: usize) -> Value {
    let mut application = load.pulled_application(at, None);
    application["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    application["spec"] = json!({
        "project": "default",
        "source": {
            "repoURL": "https://example.com/fleet/applications.git",
            "targetRevision": "HEAD",
            "path": format!("application-{at}"),
        },
        "destination": {"server": format!("https://{}-control-plane:6443", load.cluster(at)), "namespace": "shop"},
        "syncPolicy": {"automated": {"prune": true}},
    });
    application
}
