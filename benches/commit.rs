//! Measures the time from a commit until the works of all managed clusters carry it, for each way to address a fleet.
//!
//! ```text
//! cargo bench --bench commit               # 1,000 managed clusters, with 6 objects and with 60 on each
//! cargo bench --bench commit -- 200        # another number of clusters
//! cargo bench --bench commit -- 200 6      # with so many objects only
//! cargo bench --bench commit -- 200 6 set  # and one way to address them only
//! cargo bench --bench commit -- --sync-option Validate=false
//! cargo bench --bench commit -- --resync 3600  # Argo CD compares unchanged Applications so rarely, in seconds
//! ```
//!
//! The real Argo CD, API server and OCM controllers share the machine. There are no agents, so the time ends when the last work on
//! the hub has changed. The time begins with the refresh of the Applications, as a webhook of the Git server requests it. In the
//! pull model, the hub does not read Git, so it begins with another revision in the ApplicationSet.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod fleet;

use anyhow::{Context, Result, ensure};
use fleet::{
    Controller, Followed, Latest, Load, Program, Requests, Table, cpu_of, follow, lock, numbers, seconds, set,
    start_argocd, values_of,
};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::{ArgoCd, GitRepository, Hub, ObjectRef};

/// The number of managed clusters.
const CLUSTERS: usize = 1000;

/// The number of clusters of each Application that lists a part of them.
const GROUP: usize = 50;

/// Argo CD's own interval of comparing an Application, with its jitter, in seconds.
const RESYNC: u32 = 180;

/// The time without a change of any work after which Argo CD counts as broken.
const PATIENCE: Duration = Duration::from_secs(1200);

/// The programs whose CPU time is measured. Linux shortens their names to 15 characters.
const PROGRAMS: [(&str, &str); 7] = [
    ("  CPU of Argo CD's controllers, s", "argocd-applicat"),
    ("  of repo-server, s", "argocd-repo-ser"),
    ("  of the plugin, s", "argocd-cmp-serv"),
    ("  of the controller, s", "argocd-ocm-cmp"),
    ("  of OCM's work controller, s", "work"),
    ("  of the API server, s", "kube-apiserver"),
    ("  of etcd, s", "etcd"),
];

/// The ways to address the fleet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// An Application that lists all clusters.
    Clusters,
    /// An ApplicationSet with an Application for each 50 clusters, which lists them.
    Groups,
    /// An Application with a Placement.
    Placement,
    /// An ApplicationSet with an Application for each cluster.
    ApplicationSet,
    /// The same in the pull model.
    Pull,
}

const SHAPES: [(&str, Shape); 5] = [
    ("clusters", Shape::Clusters),
    ("groups", Shape::Groups),
    ("placement", Shape::Placement),
    ("set", Shape::ApplicationSet),
    ("pull", Shape::Pull),
];

/// A run of the benchmark.
struct Run {
    shape: Shape,
    clusters: usize,
    objects: usize,
    sync_options: Vec<String>,
    /// The seconds after which Argo CD compares an unchanged Application.
    resync: u32,
}

#[tokio::main]
async fn main() -> Result<()> {
    let resync = values_of("--resync");
    let resync = resync.first().map_or(Ok(RESYNC), |seconds| seconds.parse())?;
    let numbers = numbers();
    let clusters = numbers.first().copied().unwrap_or(CLUSTERS);
    let objects = numbers.get(1).map_or(vec![6, 60], |&objects| vec![objects]);
    let is_named = |name: &str| std::env::args().any(|argument| argument == name);
    let all = !SHAPES.iter().any(|(name, _)| is_named(name));
    let mut table = Table::default();
    for objects in objects {
        for (name, shape) in SHAPES.into_iter().filter(|(name, _)| all || is_named(name)) {
            table.begin(&format!("{name} {objects}"));
            let run = Run {
                shape,
                clusters,
                objects,
                sync_options: values_of("--sync-option"),
                resync,
            };
            let measured = run.measure(&mut table).await;
            measured.with_context(|| format!("{name} with {objects} objects"))?;
        }
    }
    std::io::stdout().write_all(table.to_string().as_bytes())?;
    Ok(())
}

impl Run {
    async fn measure(&self, table: &mut Table) -> Result<()> {
        let scratch = TempDir::new()?;
        let hub = Hub::start().await?;
        let load = Load::new(hub.client().await?, (self.clusters, self.clusters));
        load.create_clusters().await?;
        let argocd = ArgoCd {
            resync: self.resync,
            application_sets: true,
            // Argo CD's default; tests read uncompressed values.
            environment: vec![("REDIS_COMPRESSION".to_owned(), "gzip".to_owned())],
            ..ArgoCd::default()
        };
        start_argocd(&hub, scratch.path(), argocd).await?;
        if self.shape == Shape::Placement {
            hub.start_ocm_controllers().await?;
            hub.bind_global_cluster_set().await?;
            hub.create(&ObjectRef::placement("all").with(json!({"spec": {"tolerations": [{"operator": "Exists"}]}})))
                .await?;
        }
        let _controller = if self.shape == Shape::Pull {
            let log = scratch.path().join("controller.log");
            Some(Controller::start(&Program::Ours(&["--controllers=pull"]), hub.kubeconfig_path(), log).await?)
        } else {
            None
        };
        let git = GitRepository::new()?;
        let works = Works::watch(&hub, self.shape).await?;
        commit(&git, self.objects, "before")?;
        self.create(&hub, &git).await?;
        let first = Instant::now();
        works.until_all_have("before", self.clusters).await?;
        table.note("first delivery, s", seconds(first.elapsed()));
        // Argo CD compares once more what it has applied.
        works.until_quiet().await;

        let client = hub.client().await?;
        let requests = Requests::fetch(&client).await?;
        let cpu = PROGRAMS.map(|(_, program)| cpu_of(program).unwrap_or_default());
        commit(&git, self.objects, "after")?;
        let started = Instant::now();
        if self.shape == Shape::Pull {
            let revision = r#"{"spec":{"template":{"spec":{"source":{"targetRevision":"after"}}}}}"#;
            let patch = ["patch", "applicationset", "shop", "--type=merge", "--patch", revision];
            hub.kubectl(&[&["-n", "argocd"], &patch[..]].concat())?;
        } else {
            let refresh = "argocd.argoproj.io/refresh=normal";
            hub.kubectl(&["-n", "argocd", "annotate", "applications", "--all", refresh])?;
        }
        let changed = works.until_all_have("after", self.clusters).await?;
        table.note("commit in all works, s", seconds(changed.last - started));
        table.note("  in half of them, s", seconds(changed.half - started));
        works.until_quiet().await;
        let after = Requests::fetch(&client).await?.since(&requests);
        table.note("writes to the API server", after.writes().to_string());
        for ((row, program), before) in PROGRAMS.into_iter().zip(cpu) {
            let figure = cpu_of(program).unwrap_or_default() - before;
            table.note(row, format!("{figure:.1}"));
        }
        table.note("memory of Redis, MB", redis_memory(&hub)?);
        let stored = hub.works().await?;
        let bytes: usize = stored.iter().map(|work| work.to_string().len()).sum();
        table.note("bytes of a work on the hub", (bytes / stored.len().max(1)).to_string());
        let applications = hub.list("argoproj.io/v1alpha1", "Application").await?;
        let is_synced = |app: &&Value| app["status"]["sync"]["status"] == "Synced";
        let others = applications.len() - applications.iter().filter(is_synced).count();
        table.note("Applications that are not Synced", others.to_string());
        Ok(())
    }

    /// Creates the Applications.
    async fn create(&self, hub: &Hub, git: &GitRepository) -> Result<()> {
        let names: Vec<String> = (0..self.clusters).map(|at| format!("cluster-{at}")).collect();
        let application = |source: Value| {
            json!({
                "project": "default",
                "source": source,
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
                "syncPolicy": {"automated": {"prune": true}, "syncOptions": self.sync_options},
            })
        };
        let with = |target: Value| {
            let plugin = json!({"name": "argocd-ocm-cmp", "parameters": [target]});
            application(json!({"repoURL": git.url(), "path": "shop", "plugin": plugin}))
        };
        let object = |kind: &str, spec: Value| {
            ObjectRef::namespaced("argoproj.io/v1alpha1", kind, "argocd", "shop").with(json!({"spec": spec}))
        };
        let of_each = if self.shape == Shape::Groups { GROUP } else { 1 };
        let set_of = |template: Value| {
            let parts = names.chunks(of_each).enumerate();
            let elements: Vec<Value> = parts
                .map(|(at, part)| json!({"at": at.to_string(), "clusters": part.join(",")}))
                .collect();
            let spec = json!({
                "goTemplate": true,
                "generators": [{"list": {"elements": elements}}],
                "template": template,
            });
            object("ApplicationSet", spec)
        };
        let created = match self.shape {
            Shape::Clusters => object("Application", with(json!({"name": "clusters", "array": names}))),
            Shape::Placement => object(
                "Application",
                with(json!({"name": "placement", "string": "argocd/all"})),
            ),
            Shape::Groups | Shape::ApplicationSet => set_of(json!({
                "metadata": {"name": "shop-{{.at}}"},
                "spec": with(json!({"name": "clusters", "array": ["{{.clusters}}"]})),
            })),
            Shape::Pull => set_of(json!({
                "metadata": {
                    "name": "shop-{{.at}}",
                    "labels": {"apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "true"},
                    "annotations": {
                        "apps.open-cluster-management.io/ocm-managed-cluster": "{{.clusters}}",
                        "argocd.argoproj.io/skip-reconcile": "true",
                    },
                },
                "spec": application(json!({"repoURL": git.url(), "path": "shop", "targetRevision": "before"})),
            })),
        };
        hub.create(&created).await.map(drop)
    }
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

/// The works of managed clusters, which a watch updates.
struct Works {
    /// The values that they carry, by namespace and name.
    values: Latest<(String, String), String>,
    last_event: Arc<Mutex<Option<Instant>>>,
    _watch: Followed,
}

/// The times at which works changed.
struct Changed {
    half: Instant,
    last: Instant,
}

impl Works {
    async fn watch(hub: &Hub, shape: Shape) -> Result<Self> {
        let values: Latest<_, _> = Arc::default();
        let last_event: Arc<Mutex<Option<Instant>>> = Arc::default();
        let (seen, seen_at) = (Arc::clone(&values), Arc::clone(&last_event));
        let watch = follow(hub, "work.open-cluster-management.io/v1/ManifestWork", move |work| {
            let manifest = &work.data["spec"]["workload"]["manifests"][0];
            let value = if shape == Shape::Pull {
                &manifest["spec"]["source"]["targetRevision"]
            } else {
                &manifest["metadata"]["labels"]["commit"]
            };
            let value = value.as_str().unwrap_or_default().to_owned();
            *lock(&seen_at) = Some(Instant::now());
            let key = [work.metadata.namespace, work.metadata.name].map(Option::unwrap_or_default);
            set(&seen, key.into(), value);
        })
        .await?;
        Ok(Self {
            values,
            last_event,
            _watch: watch,
        })
    }

    async fn until_all_have(&self, value: &str, clusters: usize) -> Result<Changed> {
        let begun = Instant::now();
        loop {
            let (mut times, all, reached): (Vec<Instant>, _, _) = {
                let values = lock(&self.values);
                let of_value = || values.iter().filter(|(_, (label, _))| label == value);
                let reached: HashSet<_> = of_value().map(|((namespace, _), _)| namespace).collect();
                (
                    of_value().map(|(_, (_, since))| *since).collect(),
                    values.len(),
                    reached.len(),
                )
            };
            if times.len() == all && reached == clusters {
                times.sort_unstable();
                return Ok(Changed {
                    half: times[all / 2],
                    last: times[all - 1],
                });
            }
            let last = lock(&self.last_event).map_or(begun, |last| last.max(begun));
            ensure!(
                last.elapsed() < PATIENCE,
                "{reached} of {clusters} have {value}, and no work has changed for {PATIENCE:?}"
            );
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
