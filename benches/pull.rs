//! Measures the controller `pull` on the hub of a fleet: a real API server with OCM's webhook, Applications of the basic pull
//! model as an ApplicationSet creates them, and managed clusters with simulated agents and Argo CDs.
//!
//! ```text
//! cargo bench --bench pull                    # 1,000, 3,000 and 10,000 Applications
//! cargo bench --bench pull -- 2000 200        # 2,000 Applications on 200 managed clusters
//! cargo bench --bench pull -- --peer PROGRAM  # the same of argocd-pull-integration, as `go build ./cmd` makes it there
//! ```
//!
//! Has the prerequisites of the testbed.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod fleet;

use anyhow::{Context, Result};
use fleet::{
    APPLICATIONS, Controller, Load, Program, Requests, Size, Stage, Table, WORKS, application_set, now, request,
    seconds, timed,
};
use serde_json::{Value, json};

/// The numbers of Applications and of managed clusters.
const SIZES: [Size; 3] = [(1000, 100), (3000, 300), (10_000, 1000)];

const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";

#[tokio::main]
async fn main() -> Result<()> {
    let mut programs = vec![Program::Ours(&["--controllers=pull"])];
    programs.extend(Program::peer("basic")?);
    fleet::run(&SIZES, &programs, measure).await
}

async fn measure(program: &Program, size: Size, table: &mut Table) -> Result<()> {
    let stage = Stage::start(program, size).await?;
    let load = stage.load();
    load.create_clusters().await?;
    let set = stage.hub().create(&application_set("fleet")).await?;
    let controller = stage.controller("first").await?;
    // The peer begins with a Secret for each cluster.
    controller.quiet(|metrics| program.written(metrics), 0.0).await?;

    let create = load.of_each(|at| vec![request("POST", APPLICATIONS, &application(load, at, &set))]);
    let created = phase(program, &controller, load, create).await?;
    if program.is_ours() {
        load.all_have(APPLICATIONS, "waiting", is("Unknown", "Progressing", ""))
            .await?;
    }
    let each = |writes: u64| format!("{:.2}", writes as f64 / load.applications());
    table.note("Applications are created, s", created.load);
    table.note("  all works exist after that, s", created.after);
    table.note(
        "  writes of works for each Application",
        each(created.requests.writes_of("manifestworks")),
    );
    table.note(
        "  writes of each Application",
        each(created.requests.writes_of("applications") - size.0 as u64),
    );
    // The status that the clusters report.
    let phases = [
        ("agents report OutOfSync, s", out_of_sync()),
        ("agents report Synced, s", synced()),
    ];
    for (name, status) in phases {
        let works = load
            .list_objects(&format!("{WORKS}/manifestworks"), Work::from_json)
            .await?;
        let works: Vec<Work> = works.into_iter().collect::<Result<_>>()?;
        let report = load.of_each(|at| vec![request("PATCH", &works[at].path, &works[at].report(&status))]);
        let reported = phase(program, &controller, load, report).await?;
        let text = |path| status.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let shown = is(
            text("/sync/status"),
            text("/health/status"),
            text("/operationState/phase"),
        );
        load.all_have(APPLICATIONS, "the status of their clusters", shown)
            .await?;
        table.note(name, reported.load);
        table.note("  all statuses are written after that, s", reported.after);
        table.note(
            "  writes of each Application",
            each(reported.requests.writes_of("applications")),
        );
        table.note(
            "  unnecessary writes of works for each",
            each(reported.requests.writes_of("manifestworks") - size.0 as u64),
        );
    }
    stage
        .measure_idle_and_restarts(controller, load.applications(), table)
        .await
}

/// The duration of a phase in seconds, and the requests in it, with those of the load.
struct Phase {
    load: String,
    /// From the end of the load to the controller's last write.
    after: String,
    requests: Requests,
}

/// Sends a load, and waits until the controller has written something for each Application, and writes no more.
async fn phase(
    program: &Program,
    controller: &Controller,
    load: &Load,
    requests: impl Future<Output = Result<()>>,
) -> Result<Phase> {
    let before = Requests::fetch(load.client()).await?;
    let expected = program.written(&controller.metrics()?) + load.applications();
    let sent = timed(requests).await?;
    let quiet = controller.quiet(|metrics| program.written(metrics), expected).await?;
    Ok(Phase {
        load: seconds(sent.took),
        after: seconds(quiet.since(&sent)),
        requests: Requests::fetch(load.client()).await?.since(&before),
    })
}

/// Returns a check of an Application's status: its sync status, its health, and the phase of its last operation, which is empty
/// or missing without one.
fn is<'s>(sync: &'s str, health: &'s str, phase: &'s str) -> impl Fn(&Value) -> bool {
    move |status| {
        let is_phase = status["operationState"]["phase"].as_str().unwrap_or_default() == phase;
        status["sync"]["status"] == sync && status["health"]["status"] == health && is_phase
    }
}

/// Returns an Application as the ApplicationSet controller creates it.
fn application(load: &Load, at: usize, set: &Value) -> Value {
    let mut application = load.pulled_application(at, set);
    application["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    application["spec"] = json!({
        "project": "default",
        "source": {
            "repoURL": "https://example.com/fleet/applications.git",
            "targetRevision": "HEAD",
            "path": format!("application-{at}"),
        },
        "destination": {"server": format!("https://{}-control-plane:6443", load.cluster(at)), "namespace": "shop"},
        "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]},
    });
    application
}

/// Returns the status of a cluster's Argo CD after the first comparison of an Application.
fn out_of_sync() -> Value {
    json!({
        "sync": {"status": "OutOfSync", "revision": REVISION},
        "health": {"status": "Progressing", "lastTransitionTime": now()},
        "reconciledAt": now(),
        "sourceType": "Kustomize",
    })
}

/// Returns the status after the sync.
fn synced() -> Value {
    json!({
        "sync": {"status": "Synced", "revision": REVISION},
        "health": {"status": "Healthy", "lastTransitionTime": now()},
        "operationState": {
            "phase": "Succeeded",
            "message": "successfully synced (all tasks run)",
            "startedAt": now(),
            "finishedAt": now(),
            "syncResult": {"revision": REVISION},
        },
        "reconciledAt": now(),
        "sourceType": "Kustomize",
    })
}

/// A work, as its agent sees it.
struct Work {
    /// The path of its status.
    path: String,
    generation: Value,
    /// The payload annotation, which identifies the version of the Application in it.
    payload: Value,
    /// Its name.
    name: Value,
    /// The feedback rules: the name of each value, and its path in the Application.
    rules: Vec<(String, String)>,
}

impl Work {
    fn from_json(work: &Value) -> Result<Self> {
        let text = |path| work.pointer(path).and_then(Value::as_str).context("a text");
        let (namespace, name) = (text("/metadata/namespace")?, text("/metadata/name")?);
        let payload = &work["spec"]["workload"]["manifests"][0]["metadata"];
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let rules = list(&work["spec"]["manifestConfigs"][0]["feedbackRules"]);
        let paths = rules.iter().flat_map(|rule| list(&rule["jsonPaths"]));
        let rule = |path: Value| {
            let text = |key: &str| path[key].as_str().map(ToOwned::to_owned);
            Some((text("name")?, text("path")?))
        };
        Ok(Self {
            path: format!("{WORKS}/namespaces/{namespace}/manifestworks/{name}/status"),
            generation: work["metadata"]["generation"].clone(),
            payload: payload["annotations"]["argocd-ocm-cmp.github.io/payload"].clone(),
            name: payload["name"].clone(),
            rules: paths.filter_map(rule).collect(),
        })
    }

    /// Returns the agent's status of the work for this status of the cluster's Argo CD.
    fn report(&self, status: &Value) -> Value {
        let condition = |kind: &str, reason: &str, generation: Option<&Value>| {
            let mut condition =
                json!({"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": now()});
            if let Some(generation) = generation {
                condition["observedGeneration"] = generation.clone();
            }
            condition
        };
        let generation = Some(&self.generation);
        let manifest = json!({
            "resourceMeta": {
                "ordinal": 0, "group": "argoproj.io", "version": "v1alpha1", "kind": "Application",
                "resource": "applications", "namespace": "argocd", "name": self.name,
            },
            "conditions": [
                condition("Applied", "AppliedManifestComplete", generation),
                condition("Available", "ResourceAvailable", None),
                condition("StatusFeedbackSynced", "StatusFeedbackSynced", None),
            ],
            "statusFeedback": {"values": self.values(status)},
        });
        json!({"status": {
            "conditions": [
                condition("Applied", "AppliedManifestWorkComplete", generation),
                condition("Available", "ResourcesAvailable", generation),
            ],
            "resourceStatus": {"manifests": [manifest]},
        }})
    }

    /// Returns the feedback values of the Application on the cluster. A path without a value is left out.
    fn values(&self, status: &Value) -> Vec<Value> {
        let value = |(name, path): &(String, String)| {
            let value = if path.ends_with("/payload']") {
                &self.payload
            } else {
                status.pointer(&path.strip_prefix(".status")?.replace('.', "/"))?
            };
            Some(json!({"name": name, "fieldValue": {"type": "String", "string": value.as_str()?}}))
        };
        self.rules.iter().filter_map(value).collect()
    }
}
