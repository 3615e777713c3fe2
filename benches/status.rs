//! Measures `status --all` and `status --clusters` on the hub of a fleet: a real API server with Applications and five works on each
//! managed cluster. Nothing else runs there.
//!
//! ```text
//! cargo bench --bench status               # 2,000 managed clusters with 10,000 works of 2,000 Applications, and of 100
//! cargo bench --bench status -- 200 2000   # the same works of 200 Applications
//! ```
//!
//! Has the prerequisites of the testbed.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod fleet;

use anyhow::{Context, Result, ensure};
use fleet::{APPLICATIONS, Load, Program, Size, Stage, Table, WORKS, cpu_of, now, request};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testbed::{ObjectRef, tracked_work};

/// The numbers of Applications and of managed clusters.
const SIZES: [Size; 2] = [(2000, 2000), (100, 2000)];

/// The number of works on each managed cluster, each of another Application.
const WORKS_EACH: usize = 5;

/// The number of measured runs, after one that is not measured.
const RUNS: usize = 5;

#[tokio::main]
async fn main() -> Result<()> {
    fleet::run(&SIZES, &[Program::Ours(&[])], measure).await
}

async fn measure(program: &Program, size: Size, table: &mut Table) -> Result<()> {
    let stage = Stage::start(program, size).await?;
    let load = stage.load();
    load.create_clusters().await?;
    load.of_each(|at| {
        let clusters = clusters(load, at, size);
        let work = |cluster: &String| {
            request(
                "POST",
                &format!("{WORKS}/namespaces/{cluster}/manifestworks"),
                &work(at, cluster),
            )
        };
        let works = clusters.iter().map(work);
        let application = request("POST", APPLICATIONS, &application(at, &clusters));
        works.chain([application]).collect()
    })
    .await?;
    let sizes = load.list_objects(APPLICATIONS, |it| it.to_string().len()).await?;
    let kilobytes = sizes.iter().sum::<usize>() as f64 / 1000.0;
    table.note("size of all Applications, kB", format!("{kilobytes:.0}"));
    table.note("works", (size.1 * WORKS_EACH).to_string());
    for (name, arguments, lines) in [
        ("status --all, ms", "--all", size.0),
        (
            "status --clusters of one cluster, ms",
            "--clusters=cluster-7",
            WORKS_EACH,
        ),
    ] {
        let mut runs = Vec::new();
        for _ in 0..=RUNS {
            runs.push(run(&stage, arguments, lines)?);
        }
        runs.remove(0);
        let median = |of: fn(&Run) -> f64| {
            let mut figures: Vec<f64> = runs.iter().map(of).collect();
            figures.sort_by(f64::total_cmp);
            format!("{:.0}", figures[RUNS / 2])
        };
        table.note(name, median(|it| it.wall));
        table.note("  its CPU, ms", median(|it| it.cpu));
        table.note("  of the API server, ms", median(|it| it.api_server));
        table.note("  its peak memory, MiB", median(|it| it.peak / 1024.0));
    }
    Ok(())
}

/// The cost of a run: milliseconds, and kilobytes of memory.
struct Run {
    wall: f64,
    cpu: f64,
    api_server: f64,
    peak: f64,
}

/// Runs `status`, which must print this number of lines.
fn run(stage: &Stage<'_>, arguments: &str, lines: usize) -> Result<Run> {
    let (cpu, api_server) = (cpu_of_children()?, cpu_of("kube-apiserver")?);
    let started = Instant::now();
    let mut process = Command::new(testbed::program(env!("CARGO_BIN_EXE_argocd-ocm-cmp")))
        .args(["status", arguments, "-o", "name", "--kubeconfig"])
        .arg(stage.kubeconfig())
        .env_clear()
        .stdout(fs::File::create(stage.scratch().join("printed"))?)
        .stderr(Stdio::piped())
        .spawn()?;
    let mut peak = 0.0;
    while process.try_wait()?.is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line
            .and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
            .unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(1));
    }
    let wall = started.elapsed().as_secs_f64() * 1000.0;
    let printed = fs::read_to_string(stage.scratch().join("printed"))?;
    ensure!(
        printed.lines().count() == lines,
        "{arguments} prints {} lines: {:?}",
        printed.lines().count(),
        process.wait_with_output()?
    );
    Ok(Run {
        wall,
        cpu: (cpu_of_children()? - cpu) * 1000.0,
        api_server: (cpu_of("kube-apiserver")? - api_server) * 1000.0,
        peak,
    })
}

/// Returns the CPU time of all ended children, user and system, in seconds.
fn cpu_of_children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("the usage of children")?;
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(microseconds as f64 / 1e6)
}

fn name(at: usize) -> String {
    format!("application{at}")
}

/// Returns the managed clusters of an Application.
fn clusters(load: &Load, at: usize, (applications, clusters): Size) -> Vec<String> {
    let each = clusters * WORKS_EACH / applications;
    (0..each).map(|one| load.cluster(at * each + one)).collect()
}

/// Returns an Application as Argo CD leaves it after a sync.
fn application(at: usize, clusters: &[String]) -> Value {
    let name = name(at);
    let revision = "0123456789abcdef0123456789abcdef01234567";
    let source = json!({
        "repoURL": "https://example.com/fleet/applications.git",
        "targetRevision": "HEAD",
        "path": name,
        "plugin": {"name": "argocd-ocm-cmp", "parameters": [{"name": "clusters", "array": clusters}]},
    });
    let destination = json!({"server": "https://kubernetes.default.svc", "namespace": "shop"});
    let resource = |cluster: &String, more: &Value| {
        let mut resource = json!({
            "group": "work.open-cluster-management.io",
            "version": "v1",
            "kind": "ManifestWork",
            "namespace": cluster,
            "name": name,
            "status": "Synced",
        });
        if let (Some(resource), Some(more)) = (resource.as_object_mut(), more.as_object()) {
            resource.extend(more.clone());
        }
        resource
    };
    let synced = json!({
        "message": format!("manifestwork.work.open-cluster-management.io/{name} configured"),
        "hookPhase": "Running",
        "syncPhase": "Sync",
    });
    let all = |more: &Value| {
        clusters
            .iter()
            .map(|cluster| resource(cluster, more))
            .collect::<Vec<_>>()
    };
    let run = |id: usize| json!({"id": id, "revision": revision, "source": source, "deployedAt": now(), "deployStartedAt": now()});
    ObjectRef::application(&name).with(json!({
        "metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]},
        "spec": {"project": "managed-clusters", "source": source, "destination": destination, "syncPolicy": {"automated": {"prune": true}}},
        "status": {
            "sync": {"status": "Synced", "revision": revision, "comparedTo": {"source": source, "destination": destination}},
            "health": {"status": "Healthy", "lastTransitionTime": now()},
            "resourceHealthSource": "appTree",
            "resources": all(&json!({})),
            "conditions": [{
                "type": "ManifestWorkInfo",
                "message": format!("applied on {0} of {0} clusters, healthy on {0}; {1} objects in {0} works", clusters.len(), clusters.len() * 2),
                "lastTransitionTime": now(),
            }],
            "history": (0..10).map(run).collect::<Vec<_>>(),
            "operationState": {
                "phase": "Succeeded",
                "message": "successfully synced (all tasks run)",
                "operation": {"sync": {"revision": revision, "prune": true}},
                "startedAt": now(),
                "finishedAt": now(),
                "syncResult": {"revision": revision, "source": source, "resources": all(&synced)},
            },
            "reconciledAt": now(),
            "sourceType": "Plugin",
        },
    }))
}

/// Returns the work of an Application on a cluster.
fn work(at: usize, cluster: &str) -> Value {
    let name = name(at);
    let object =
        |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "shop", "namespace": name}});
    tracked_work(&name, cluster, &name, &[object("ConfigMap"), object("ServiceAccount")])
}
