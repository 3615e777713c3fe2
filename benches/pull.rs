//! Measures the controller `pull` on the hub of a fleet: a real API server with OCM's webhook, Applications of the basic pull
//! model as an ApplicationSet creates them, and managed clusters with simulated agents and Argo CDs.
//!
//! ```text
//! cargo bench --bench pull              # 1,000, 3,000 and 10,000 Applications
//! cargo bench --bench pull -- 2000 200  # 2,000 Applications on 200 managed clusters
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
use fleet::{Load, Metrics, NONE, Size, Stage, Table, WORKS, now, request, seconds, timed, writes};
use serde_json::{Value, json};

/// The numbers of Applications and of managed clusters.
const SIZES: [Size; 3] = [(1000, 100), (3000, 300), (10_000, 1000)];

const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";

/// The path of the Applications.
const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";

/// The name of the ApplicationSet, and its path.
const SET: &str = "fleet";
const SETS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets";

#[tokio::main]
async fn main() -> Result<()> {
    fleet::run(&SIZES, Table::beside_go(), measure).await
}

async fn measure(size: Size, table: &mut Table) -> Result<()> {
    let stage = Stage::start(size, &["--controllers=pull"]).await?;
    let load = stage.load();
    load.create_clusters().await?;
    let set = load.client().request(request("POST", SETS, &set())).await?;
    let controller = stage.controller("first").await?;

    let create = |at| vec![request("POST", APPLICATIONS, &application(load, at, &set))];
    let created = timed(load.of_each(create)).await?;
    let quiet = controller.quiet(written, load.applications()).await?;
    load.all_have(APPLICATIONS, "waiting", is("Unknown", "Progressing", &Value::Null))
        .await?;
    let each = |metrics: &Metrics, kind| format!("{:.2}", writes(metrics, kind) / load.applications());
    table.note("Applications are created, s", seconds(created.took), ["3.2", "4.2"]);
    table.note(
        "  all works exist after that, s",
        seconds(quiet.since(&created)),
        ["9.3", "16.9"],
    );
    table.note(
        "  writes of works for each Application",
        each(&quiet.metrics, "manifestworks"),
        NONE,
    );
    table.note(
        "  writes of each Application",
        each(&quiet.metrics, "applications"),
        NONE,
    );
    // The status that the clusters report, and the results of the Go controller: the load, the extra time, writes of Applications
    // and of works.
    let phases = [
        (
            "agents report OutOfSync, s",
            out_of_sync(),
            [
                ["4.3", "10.0"],
                ["22.3", "41.2"],
                ["2 to 4", "2 to 4"],
                ["1.3 to 1.5", "1.3 to 1.5"],
            ],
        ),
        ("agents report Synced, s", synced(), [NONE; 4]),
    ];
    for (name, status, [load_go, done_go, applications_go, works_go]) in phases {
        let works = load.read(&format!("{WORKS}/manifestworks"), Work::read).await?;
        let works: Vec<Work> = works.into_iter().collect::<Result<_>>()?;
        let before = controller.metrics()?;
        let report = |at: usize| vec![request("PATCH", &works[at].path, &works[at].report(&status))];
        let reported = timed(load.of_each(report)).await?;
        let expected = written(&before) + load.applications();
        let quiet = controller.quiet(written, expected).await?;
        let text = |path| status.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let phase = status.pointer("/operationState/phase").unwrap_or(&Value::Null);
        let shown = is(text("/sync/status"), text("/health/status"), phase);
        load.all_have(APPLICATIONS, "the status of their clusters", shown)
            .await?;
        let each = |kind| {
            let more = writes(&quiet.metrics, kind) - writes(&before, kind);
            format!("{:.2}", more / load.applications())
        };
        table.note(name, seconds(reported.took), load_go);
        table.note(
            "  all statuses are written after that, s",
            seconds(quiet.since(&reported)),
            done_go,
        );
        table.note("  writes of each Application", each("applications"), applications_go);
        table.note(
            "  unnecessary writes of works for each",
            each("manifestworks"),
            works_go,
        );
    }
    stage
        .measure_idle_and_restarts(controller, load.applications(), table)
        .await
}

/// Returns the number of writes of Applications and works.
fn written(metrics: &Metrics) -> f64 {
    writes(metrics, "applications") + writes(metrics, "manifestworks")
}

/// Returns a check of an Application's status: its sync status, its health, and the phase of its last operation.
fn is<'s>(sync: &'s str, health: &'s str, phase: &'s Value) -> impl Fn(&Value) -> bool {
    move |status| {
        status["sync"]["status"] == sync
            && status["health"]["status"] == health
            && status["operationState"]["phase"] == *phase
    }
}

/// Returns the common fields of the set's Applications.
fn source(name: &str) -> Value {
    json!({"repoURL": "https://example.com/fleet/applications.git", "targetRevision": "HEAD", "path": name})
}

/// Returns an ApplicationSet, which only owns its Applications.
fn set() -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": SET, "namespace": "argocd"},
        "spec": {
            "generators": [{"clusterDecisionResource": {"configMapRef": "ocm-placement-generator", "requeueAfterSeconds": 30}}],
            "template": {
                "metadata": {"name": "{{name}}"},
                "spec": {"project": "default", "source": source("{{name}}"), "destination": {"server": "{{server}}"}},
            },
        },
    })
}

/// Returns an Application as the ApplicationSet controller creates it.
fn application(load: &Load, at: usize, set: &Value) -> Value {
    let (name, cluster) = (format!("application-{at}"), load.cluster(at));
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": "argocd",
            "labels": {"apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "true"},
            "annotations": {
                "apps.open-cluster-management.io/ocm-managed-cluster": cluster,
                "argocd.argoproj.io/skip-reconcile": "true",
            },
            "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            "ownerReferences": [{
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "ApplicationSet",
                "name": SET,
                "uid": set["metadata"]["uid"],
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "project": "default",
            "source": source(&name),
            "destination": {"server": format!("https://{cluster}-control-plane:6443"), "namespace": "shop"},
            "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": ["CreateNamespace=true"]},
        },
    })
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
    fn read(work: &Value) -> Result<Self> {
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
