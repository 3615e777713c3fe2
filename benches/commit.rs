//! Measures the time from a commit until the works of all managed clusters carry it, for each way to address a fleet.
//!
//! ```text
//! cargo bench --bench commit            # 1,000 managed clusters, with 6 objects and with 60 on each
//! cargo bench --bench commit -- 200     # another number of clusters
//! cargo bench --bench commit -- 200 6   # with so many objects only
//! ```
//!
//! The real Argo CD, API server and OCM controllers share the machine. There are no agents, so the time ends when the last work on
//! the hub has changed. The time begins with the refresh of the Applications, as a webhook of the Git server requests it.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod fleet;

use anyhow::{Context, Result, ensure};
use fleet::{Latest, Load, Requests, Table, cpu_of, follow, lock, seconds, set, start_argocd};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::{ArgoCd, GitRepository, Hub};

/// The number of managed clusters.
const CLUSTERS: usize = 1000;

/// The time in which a commit must reach all works.
const DEADLINE: Duration = Duration::from_secs(3600);

/// The programs whose CPU time is measured. Linux shortens their names to 15 characters.
const PROGRAMS: [(&str, &str); 6] = [
    ("  CPU of application-controller, s", "argocd-applicat"),
    ("  of repo-server, s", "argocd-repo-ser"),
    ("  of the plugin, s", "argocd-cmp-serv"),
    ("  of OCM's work controller, s", "work"),
    ("  of the API server, s", "kube-apiserver"),
    ("  of etcd, s", "etcd"),
];

/// The ways to address the fleet.
#[derive(Clone, Copy)]
enum Shape {
    /// An Application that lists all clusters.
    Clusters,
    /// An Application with a Placement.
    Placement,
    /// An ApplicationSet with an Application for each cluster.
    ApplicationSet,
}

#[tokio::main]
async fn main() -> Result<()> {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let clusters = numbers.first().copied().unwrap_or(CLUSTERS);
    let objects = numbers.get(1).map_or(vec![6, 60], |&objects| vec![objects]);
    let mut table = Table::alone();
    for objects in objects {
        for (shape, name) in [
            (Shape::Clusters, "clusters"),
            (Shape::Placement, "placement"),
            (Shape::ApplicationSet, "set"),
        ] {
            table.begin(&format!("{name} {objects}"));
            let measured = measure(shape, clusters, objects, &mut table).await;
            measured.with_context(|| format!("{name} with {objects} objects"))?;
        }
    }
    std::io::stdout().write_all(table.to_string().as_bytes())?;
    Ok(())
}

async fn measure(shape: Shape, clusters: usize, objects: usize, table: &mut Table) -> Result<()> {
    let scratch = TempDir::new()?;
    let hub = Hub::start().await?;
    let load = Load::new(hub.client().await?, (clusters, clusters));
    load.create_clusters().await?;
    let argocd = ArgoCd {
        resync: 180,
        application_sets: true,
        ..ArgoCd::default()
    };
    start_argocd(&hub, scratch.path(), argocd).await?;
    if matches!(shape, Shape::Placement) {
        hub.start_ocm_controllers().await?;
        hub.bind_global_cluster_set().await?;
        hub.create(&json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "Placement",
            "metadata": {"name": "all", "namespace": "argocd"},
            "spec": {"tolerations": [{"operator": "Exists"}]},
        }))
        .await?;
    }
    let git = GitRepository::new()?;
    let works = Works::watch(&hub).await?;
    commit(&git, objects, "before")?;
    create(shape, &hub, &git, clusters).await?;
    let first = Instant::now();
    works.until_all_have("before", clusters).await?;
    table.note("first delivery, s", seconds(first.elapsed()), fleet::NONE);
    // Argo CD compares once more what it has applied.
    works.until_quiet().await;

    let client = hub.client().await?;
    let requests = Requests::of(&client).await?;
    let cpu = PROGRAMS.map(|(_, program)| cpu_of(program).unwrap_or_default());
    commit(&git, objects, "after")?;
    let started = Instant::now();
    hub.kubectl(&[
        "-n",
        "argocd",
        "annotate",
        "applications",
        "--all",
        "argocd.argoproj.io/refresh=normal",
    ])?;
    let changed = works.until_all_have("after", clusters).await?;
    table.note("commit in all works, s", seconds(changed.last - started), fleet::NONE);
    table.note("  in half of them, s", seconds(changed.half - started), fleet::NONE);
    works.until_quiet().await;
    let after = Requests::of(&client).await?.since(&requests);
    table.note("writes to the API server", after.writes.to_string(), fleet::NONE);
    for ((row, program), before) in PROGRAMS.into_iter().zip(cpu) {
        let figure = cpu_of(program).unwrap_or_default() - before;
        table.note(row, format!("{figure:.1}"), fleet::NONE);
    }
    table.note("memory of Redis, MB", redis_memory(&hub)?, fleet::NONE);
    Ok(())
}

/// Commits a folder of Deployments, Services and ConfigMaps that all have a value.
fn commit(git: &GitRepository, objects: usize, value: &str) -> Result<()> {
    let text: String = (0..objects)
        .map(|at| {
            let labels = format!("{{app: web-{at}, commit: {value}}}");
            match at % 3 {
                0 => format!(
                    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web-{at}, labels: {labels}}}\nspec:\n  replicas: 3\n  \
                     selector: {{matchLabels: {{app: web-{at}}}}}\n  template:\n    metadata: {{labels: {{app: web-{at}}}}}\n    \
                     spec:\n      containers:\n      - name: web\n        image: registry.example.com/web:1.2.3\n        \
                     ports: [{{containerPort: 8080, name: http}}]\n        resources: {{requests: {{cpu: 100m, memory: 128Mi}}}}\n"
                ),
                1 => format!(
                    "apiVersion: v1\nkind: Service\nmetadata: {{name: web-{at}, labels: {labels}}}\nspec:\n  \
                     selector: {{app: web-{at}}}\n  ports: [{{port: 80, targetPort: http}}]\n"
                ),
                _ => format!(
                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web-{at}, labels: {labels}}}\ndata:\n  settings: |\n    \
                     log: info\n    replicas: 3\n"
                ),
            }
        })
        .collect::<Vec<_>>()
        .join("---\n");
    git.commit(&[("shop/all.yaml", &text)]).map(drop)
}

/// Creates the Applications.
async fn create(shape: Shape, hub: &Hub, git: &GitRepository, clusters: usize) -> Result<()> {
    let names: Vec<String> = (0..clusters).map(|at| format!("cluster-{at}")).collect();
    let application = |target: Value| {
        json!({
            "project": "default",
            "source": {"repoURL": git.url(), "path": "shop", "plugin": {"name": "argocd-ocm-cmp", "parameters": [target]}},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": {"automated": {"prune": true}},
        })
    };
    let spec = match shape {
        Shape::Clusters => application(json!({"name": "clusters", "array": names})),
        Shape::Placement => application(json!({"name": "placement", "string": "argocd/all"})),
        Shape::ApplicationSet => {
            let elements: Vec<Value> = names.iter().map(|name| json!({"cluster": name})).collect();
            hub.create(&json!({
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "ApplicationSet",
                "metadata": {"name": "shop", "namespace": "argocd"},
                "spec": {
                    "goTemplate": true,
                    "generators": [{"list": {"elements": elements}}],
                    "template": {
                        "metadata": {"name": "shop-{{.cluster}}"},
                        "spec": application(json!({"name": "clusters", "array": ["{{.cluster}}"]})),
                    },
                },
            }))
            .await?;
            return Ok(());
        }
    };
    let application = json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "shop", "namespace": "argocd"},
        "spec": spec,
    });
    hub.create(&application).await.map(drop)
}

/// The works of managed clusters, which a watch updates.
#[derive(Default)]
struct Works {
    /// The values that they carry, by namespace.
    values: Latest<String, String>,
    last_event: Arc<Mutex<Option<Instant>>>,
}

/// The times at which works changed.
struct Changed {
    half: Instant,
    last: Instant,
}

impl Works {
    async fn watch(hub: &Hub) -> Result<Self> {
        let works = Self::default();
        let (values, last_event) = (Arc::clone(&works.values), Arc::clone(&works.last_event));
        follow(hub, "work.open-cluster-management.io/v1/ManifestWork", move |work| {
            let labels = &work.data["spec"]["workload"]["manifests"][0]["metadata"]["labels"];
            let value = labels["commit"].as_str().unwrap_or_default().to_owned();
            *lock(&last_event) = Some(Instant::now());
            set(&values, work.metadata.namespace.unwrap_or_default(), value);
        })
        .await?;
        Ok(works)
    }

    async fn until_all_have(&self, value: &str, clusters: usize) -> Result<Changed> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let mut times: Vec<Instant> = {
                let values = lock(&self.values);
                let of_value = values.values().filter(|(it, _)| it == value);
                of_value.map(|(_, since)| *since).collect()
            };
            if times.len() == clusters {
                times.sort_unstable();
                return Ok(Changed {
                    half: times[clusters / 2],
                    last: times[clusters - 1],
                });
            }
            ensure!(Instant::now() < deadline, "{} of {clusters} have {value}", times.len());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until no work has changed for some time.
    async fn until_quiet(&self) {
        const QUIET: Duration = Duration::from_secs(15);
        loop {
            let last = *lock(&self.last_event);
            if last.is_none_or(|last| last.elapsed() > QUIET) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Returns the memory that Redis uses, in megabytes.
fn redis_memory(hub: &Hub) -> Result<String> {
    let mut redis = TcpStream::connect(hub.redis().context("Redis")?)?;
    redis.write_all(b"INFO memory\r\nQUIT\r\n")?;
    let mut text = String::new();
    redis.read_to_string(&mut text)?;
    let used = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    let bytes: f64 = used.context("used_memory")?.trim().parse()?;
    Ok(format!("{:.1}", bytes / 1e6))
}
