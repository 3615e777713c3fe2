//! Measures `controller` on the hub of a fleet: a real API server with OCM's webhook, Applications, one work each, and managed
//! clusters with simulated agents.
//!
//! ```text
//! cargo bench --bench controller               # 1,000, 3,000 and 10,000 Applications
//! cargo bench --bench controller -- 2000 200   # 2,000 Applications on 200 managed clusters
//! ```
//!
//! Has the prerequisites of the testbed. The works are those of `generate` for six objects.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod fleet;

use anyhow::{Result, ensure};
use fleet::{APPLICATIONS, Load, Metrics, Program, Requests, Size, Stage, Table, WORKS, now, request, seconds, timed};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use testbed::ObjectRef;

/// The numbers of Applications and of managed clusters.
const SIZES: [Size; 3] = [(1000, 100), (3000, 300), (10_000, 1000)];

#[tokio::main]
async fn main() -> Result<()> {
    fleet::run(&SIZES, &[Program::Ours(&[])], measure).await
}

async fn measure(program: &Program, size: Size, table: &mut Table) -> Result<()> {
    let stage = Stage::start(program, size).await?;
    let load = stage.load();
    let fleet = Fleet {
        load,
        work: work(stage.scratch())?,
    };
    // A new API server refuses watches until it has read its storage.
    stage.controller("warm-up").await?.stop()?;
    let before = Requests::fetch(load.client()).await?;
    let controller = stage.controller("first").await?;
    let ready_after = controller.ready_after.as_millis().to_string();
    table.note("controller is ready after its start, ms", ready_after);
    // The controller asks for the most recent state of each kind, all at the same time.
    let waited = Requests::fetch(load.client()).await?.since(&before).longest_wait();
    table.note(
        "  of which it waits for the API server, ms",
        format!("{:.0}", waited * 1000.0),
    );

    let created = timed(fleet.create()).await?;
    let quiet = controller
        .quiet(|metrics| writes(metrics)[0], load.applications())
        .await?;
    fleet.all_have("healthy on 0").await?;
    table.note("Applications and works are created, s", seconds(created.took));
    table.note(CONDITIONS_WRITTEN, seconds(quiet.since(&created)));
    // The health that the agents report, and the text in the conditions.
    let phases = [
        ("agents report healthy objects, s", None, "healthy on 1"),
        (
            "agents report a broken object, s",
            Some("0 of 2 updated replicas are available"),
            "/web: ProgressDeadlineExceeded: 0 of 2",
        ),
    ];
    for (name, state, shown) in phases {
        let before = writes(&controller.metrics()?);
        let reported = timed(fleet.report(state)).await?;
        let expected = before[0] + load.applications();
        let quiet = controller.quiet(|metrics| writes(metrics)[0], expected).await?;
        fleet.all_have(shown).await?;
        let after = writes(&quiet.metrics);
        let each = |at: usize| format!("{:.2}", (after[at] - before[at]) / load.applications());
        table.note(name, seconds(reported.took));
        table.note(CONDITIONS_WRITTEN, seconds(quiet.since(&reported)));
        table.note("  writes of each Application", each(0));
        table.note("  writes of Events on each", each(1));
    }
    stage
        .measure_idle_and_restarts(controller, load.applications(), table)
        .await
}

/// The row with the time after the load until the last condition is written.
const CONDITIONS_WRITTEN: &str = "  all conditions are written after that, s";

/// Returns the name of an Application, and of its work: one that ends in `-` and five digits would be a name of the pull model.
fn application(at: usize) -> String {
    format!("application{at}")
}

/// Returns the numbers of writes of Applications and of Events.
fn writes(metrics: &Metrics) -> [f64; 2] {
    ["applications", "events"].map(|kind| fleet::writes(metrics, kind))
}

/// Returns the work of an Application as `generate` prints it.
fn work(scratch: &Path) -> Result<Value> {
    const OBJECTS: &str = include_str!("../tests/data/objects/everyday.yaml");
    let folder = scratch.join("source");
    fs::create_dir(&folder)?;
    fs::write(folder.join("all.yaml"), OBJECTS.replace("TEXT", &"setting".repeat(200)))?;
    let output = Command::new(testbed::program(env!("CARGO_BIN_EXE_argocd-ocm-cmp")))
        .args([
            "generate",
            ".",
            "--namespace=shop",
            "--cluster=cluster",
            "--name=name",
            "--output=json",
        ])
        .current_dir(&folder)
        .env_clear()
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The objects on the hub, and the client of the load.
struct Fleet<'s> {
    load: &'s Load,
    work: Value,
}

impl Fleet<'_> {
    async fn create(&self) -> Result<()> {
        self.load.create_clusters().await?;
        let create = |at| {
            let (application, work) = (self.application(at), self.work_of(at));
            vec![
                request("POST", APPLICATIONS, &application),
                request("POST", &works(&self.load.cluster(at)), &work),
            ]
        };
        self.load.of_each(create).await
    }

    /// Returns an Application as Argo CD leaves it after a sync.
    fn application(&self, at: usize) -> Value {
        let (name, cluster) = (application(at), self.load.cluster(at));
        let revision = "0123456789abcdef0123456789abcdef01234567";
        let source = json!({
            "repoURL": "https://example.com/fleet/applications.git",
            "targetRevision": "HEAD",
            "path": name,
            "plugin": {"name": "argocd-ocm-cmp", "env": [{"name": "TARGET_CLUSTER", "value": cluster}]},
        });
        let destination = json!({"server": "https://kubernetes.default.svc", "namespace": "shop"});
        let resource = json!({
            "group": "work.open-cluster-management.io",
            "version": "v1",
            "kind": "ManifestWork",
            "namespace": cluster,
            "name": name,
            "status": "Synced",
            "health": {"status": "Progressing", "message": "waiting for the agent"},
        });
        ObjectRef::application(&name).with(json!({
            "metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]},
            "spec": {"project": "managed-clusters", "source": source, "destination": destination, "syncPolicy": {"automated": {"prune": true}}},
            "status": {
                "sync": {"status": "Synced", "revision": revision, "comparedTo": {"source": source, "destination": destination}},
                "health": {"status": "Progressing", "lastTransitionTime": now()},
                "resources": [resource],
                "history": [{"id": 0, "revision": revision, "source": source, "deployedAt": now(), "deployStartedAt": now()}],
                "operationState": {
                    "phase": "Succeeded",
                    "message": "successfully synced (all tasks run)",
                    "operation": {"sync": {"revision": revision, "prune": true}},
                    "startedAt": now(),
                    "finishedAt": now(),
                    "syncResult": {"revision": revision, "source": source, "resources": [{
                        "group": "work.open-cluster-management.io",
                        "version": "v1",
                        "kind": "ManifestWork",
                        "namespace": cluster,
                        "name": name,
                        "status": "Synced",
                        "message": format!("manifestwork.work.open-cluster-management.io/{name} created"),
                        "hookPhase": "Running",
                        "syncPhase": "Sync",
                    }]},
                },
                "reconciledAt": now(),
                "sourceType": "Plugin",
            },
        }))
    }

    /// Returns its work as Argo CD applies it.
    fn work_of(&self, at: usize) -> Value {
        let (name, cluster) = (application(at), self.load.cluster(at));
        let mut work = self.work.clone();
        work["metadata"]["name"] = json!(name);
        work["metadata"]["namespace"] = json!(cluster);
        // No two Applications deliver the same object to a cluster.
        for object in work["spec"]["workload"]["manifests"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            object["metadata"]["namespace"] = json!(name);
        }
        let id = format!("{name}:work.open-cluster-management.io/ManifestWork:{cluster}/{name}");
        work["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!(id);
        let applied = work.to_string();
        work["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(applied);
        work
    }

    /// Makes every agent report its works: healthy, or with broken Deployments.
    async fn report(&self, broken: Option<&str>) -> Result<()> {
        let status = json!({"status": self.status(broken)});
        self.load
            .of_each(|at| {
                let path = format!("{}/{}/status", works(&self.load.cluster(at)), application(at));
                let mut status = status.clone();
                let manifests = status["status"]["resourceStatus"]["manifests"].as_array_mut();
                for manifest in manifests.into_iter().flatten() {
                    manifest["resourceMeta"]["namespace"] = json!(application(at));
                }
                vec![request("PATCH", &path, &status)]
            })
            .await
    }

    fn status(&self, broken: Option<&str>) -> Value {
        let condition = |kind: &str, status: bool, message: &str| {
            json!({
                "type": kind,
                "status": if status { "True" } else { "False" },
                // The reason that the agent sets for a condition rule of the work.
                "reason": "ConditionRuleEvaluated",
                "message": message,
                "lastTransitionTime": now(),
                "observedGeneration": 1,
            })
        };
        let manifests = self.work["spec"]["workload"]["manifests"]
            .as_array()
            .into_iter()
            .flatten();
        let manifests = (0..).zip(manifests).map(|(at, object)| {
            let field = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
            let (api, kind) = (field("apiVersion"), field("kind"));
            let (group, version) = api.split_once('/').unwrap_or(("", &api));
            let plural = if kind == "Ingress" {
                "ingresses".to_owned()
            } else {
                format!("{}s", kind.to_lowercase())
            };
            let broken_message = broken.filter(|_| kind == "Deployment");
            let mut conditions = vec![
                condition("Applied", true, "Apply manifest complete"),
                condition("Available", true, "Resource is available"),
            ];
            conditions.push(condition("StatusFeedbackSynced", true, ""));
            let number =
                |name: &str, value: i64| json!({"name": name, "fieldValue": {"type": "Integer", "integer": value}});
            let text =
                |name: &str, value: &str| json!({"name": name, "fieldValue": {"type": "String", "string": value}});
            let values = match kind.as_str() {
                "Deployment" => {
                    let names = [
                        "ReadyReplicas",
                        "Replicas",
                        "AvailableReplicas",
                        "UpdatedReplicas",
                        "DesiredReplicas",
                    ];
                    let mut values: Vec<_> = names.iter().map(|name| number(name, 2)).collect();
                    values.push(text("Image", "example.com/web:1"));
                    values.extend(["Generation", "Observed"].map(|name| number(name, 1)));
                    values.extend(broken_message.map(|message| text("Failed", message)));
                    values
                }
                "Ingress" => vec![text("LoadBalancer", "192.0.2.1")],
                "PodDisruptionBudget" => vec![
                    number("DisruptionsAllowed", 1),
                    text("Condition", "DisruptionAllowed"),
                    text("Allowed", "True"),
                    text("Reason", "SufficientPods"),
                ],
                _ => Vec::new(),
            };
            json!({
                "resourceMeta": {"ordinal": at, "group": group, "version": version, "kind": kind, "resource": plural,
                    "namespace": object["metadata"]["namespace"], "name": object["metadata"]["name"]},
                "conditions": conditions,
                "statusFeedback": {"values": values},
            })
        });
        json!({
            "conditions": [
                condition("Applied", true, "Apply manifest work complete"),
                condition("Available", true, "All resources are available"),
            ],
            "resourceStatus": {"manifests": manifests.collect::<Vec<_>>()},
        })
    }

    /// Asserts that every Application has a condition with this text.
    async fn all_have(&self, words: &str) -> Result<()> {
        let has = |status: &Value| {
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let mut messages = conditions.filter_map(|condition| condition["message"].as_str());
            messages.any(|message| message.contains(words))
        };
        self.load.all_have(APPLICATIONS, words, has).await
    }
}

fn works(cluster: &str) -> String {
    format!("{WORKS}/namespaces/{cluster}/manifestworks")
}
