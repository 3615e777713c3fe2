//! Measures the time until Argo CD on the hub shows a change of health on a managed cluster, with each way of feedback.
//!
//! ```text
//! cargo bench --bench feedback       # 20 Applications a cluster
//! cargo bench --bench feedback -- 5  # another number
//! ```
//!
//! Three managed clusters have OCM's real agent: it polls every 10 seconds as by default, polls every 60 seconds as in a klusterlet
//! with one replica, or watches. Each Application has a Deployment with three replicas. Its Pods fit no node until the node gets a
//! label; later they lose it. The time begins when the cluster's API server sends the Deployment's new status, and ends when the
//! hub's sends the Application's new health. Uses the testbed, and so needs Go the first time.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod fleet;

use anyhow::{Context, Result, ensure};
use fleet::{Followed, Latest, follow, lock, set, start_argocd};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::{ArgoCd, GitRepository, Hub, ManagedCluster, ManagedClusterOptions, ObjectRef};

/// The number of Applications on each cluster.
const APPLICATIONS: usize = 20;

/// The time between two changes.
const BETWEEN: Duration = Duration::from_millis(500);

/// The time in which all changes must arrive: several intervals of the slowest agent.
const DEADLINE: Duration = Duration::from_secs(600);

/// The managed clusters: name, way of feedback, and the agent's interval in seconds.
const CLUSTERS: [(&str, &str, u64); 3] = [("poll-10", "poll", 10), ("poll-60", "poll", 60), ("watch", "watch", 10)];

#[tokio::main]
async fn main() -> Result<()> {
    let number = std::env::args().find_map(|argument| argument.parse().ok());
    let number = number.unwrap_or(APPLICATIONS);
    let scratch = TempDir::new()?;
    let hub = Hub::start().await?;
    start_argocd(&hub, scratch.path(), ArgoCd::default()).await?;
    let git = GitRepository::new()?;
    let files: Vec<_> = (0..number)
        .map(|at| (format!("{at}/web.yaml"), deployment(at)))
        .collect();
    git.commit(
        &files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect::<Vec<_>>(),
    )?;

    let mut table = format!(
        "{number} Applications each, seconds; writes of works for each change\n{:<10}{:<10}{:>9}{:>9}{:>9}{:>9}\n",
        "feedback", "change", "least", "median", "most", "writes"
    );
    for (name, feedback, interval) in CLUSTERS {
        let options = ManagedClusterOptions {
            status_sync_interval: Duration::from_secs(interval),
            ..ManagedClusterOptions::default()
        };
        let cluster = hub.add_managed_cluster(name, options).await?;
        let stage = Stage::start(&hub, &cluster, name).await?;
        for at in 0..number {
            hub.create_application(&application(&git, name, feedback, at)).await?;
        }
        for (change, node_label, health) in [("recover", "on", "Healthy"), ("break", "off", "Progressing")] {
            stage.wait_until_all_differ(number, health).await?;
            let figures = stage.measure(&cluster, number, node_label, health).await?;
            writeln!(table, "{name:<10}{change:<10}{figures}")?;
            std::io::stderr().write_all(format!("{name} {change} {figures}\n").as_bytes())?;
        }
    }
    std::io::stdout().write_all(table.as_bytes())?;
    Ok(())
}

fn deployment(at: usize) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web-{at}}}\nspec:\n  replicas: 3\n  \
         selector: {{matchLabels: {{app: web-{at}}}}}\n  template:\n    metadata: {{labels: {{app: web-{at}}}}}\n    \
         spec:\n      nodeSelector: {{slot-{at}: 'on'}}\n      containers: [{{name: web, image: nginx}}]\n"
    )
}

fn application(git: &GitRepository, cluster: &str, feedback: &str, at: usize) -> Value {
    ObjectRef::application(&format!("{cluster}-{at}")).with(json!({"spec": {
        "project": "default",
        "source": {"repoURL": git.url(), "path": at.to_string(), "plugin": {
            "name": "argocd-ocm-cmp",
            "parameters": [{"name": "clusters", "array": [cluster]}, {"name": "feedback", "string": feedback}],
        }},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }}))
}

/// The observed state of the Applications of a cluster, which watches update.
struct Stage {
    /// By the number of the Application: whether the Deployment is available on the cluster, and since when.
    on_cluster: Latest<usize, bool>,
    /// The health that the Application shows, and since when.
    on_hub: Latest<usize, String>,
    /// The number of changes of works.
    writes: Arc<Mutex<usize>>,
    _watches: [Followed; 3],
}

impl Stage {
    async fn start(hub: &Hub, cluster: &ManagedCluster, name: &str) -> Result<Self> {
        let on_cluster: Latest<usize, bool> = Arc::default();
        let on_hub: Latest<usize, String> = Arc::default();
        let writes: Arc<Mutex<usize>> = Arc::default();
        let prefix = format!("{name}-");
        let deployments = follow(cluster, "apps/v1/Deployment", {
            let latest = Arc::clone(&on_cluster);
            move |object| {
                if let Some(at) = number_of(&object, "web-") {
                    set(&latest, at, object.data["status"]["availableReplicas"] == 3);
                }
            }
        });
        let applications = follow(hub, "argoproj.io/v1alpha1/Application", {
            let latest = Arc::clone(&on_hub);
            move |object| {
                let health = object.data["status"]["health"]["status"].as_str().unwrap_or_default();
                if let Some(at) = number_of(&object, &prefix) {
                    set(&latest, at, health.to_owned());
                }
            }
        });
        let works = follow(hub, "work.open-cluster-management.io/v1/ManifestWork", {
            let (writes, cluster) = (Arc::clone(&writes), name.to_owned());
            move |object| {
                if object.metadata.namespace.as_ref() == Some(&cluster) {
                    *lock(&writes) += 1;
                }
            }
        });
        let watches = [deployments.await?, applications.await?, works.await?];
        Ok(Self {
            on_cluster,
            on_hub,
            writes,
            _watches: watches,
        })
    }

    /// Waits until every Application has a health, other than this one.
    async fn wait_until_all_differ(&self, number: usize, health: &str) -> Result<()> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let differing = |(state, _): &(String, Instant)| !state.is_empty() && state != health && state != "Missing";
            let count = lock(&self.on_hub).values().filter(|value| differing(value)).count();
            if count == number {
                // The agents have settled.
                tokio::time::sleep(Duration::from_secs(5)).await;
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "{count} of {number} are not {health}: {:?}",
                lock(&self.on_hub)
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Changes one Deployment after the other, and returns the seconds until the Applications have this health, and the writes.
    async fn measure(&self, cluster: &ManagedCluster, number: usize, label: &str, health: &str) -> Result<String> {
        let before = *lock(&self.writes);
        for at in 0..number {
            cluster.kubectl(&["label", "--overwrite", "nodes", "--all", &format!("slot-{at}={label}")])?;
            if label == "off" {
                cluster.kubectl(&["delete", "pods", "--wait=false", "-l", &format!("app=web-{at}")])?;
            }
            tokio::time::sleep(BETWEEN).await;
        }
        let deadline = Instant::now() + DEADLINE;
        while lock(&self.on_hub).values().filter(|(state, _)| state == health).count() < number {
            ensure!(
                Instant::now() < deadline,
                "not all are {health}: {:?}",
                lock(&self.on_hub)
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let on_cluster = lock(&self.on_cluster).clone();
        let mut seconds: Vec<f64> = Vec::new();
        for (at, (_, shown)) in lock(&self.on_hub).iter() {
            let (_, changed) = on_cluster.get(at).context("a Deployment")?;
            seconds.push(shown.saturating_duration_since(*changed).as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        let writes = (*lock(&self.writes) - before) as f64 / number as f64;
        let [least, median, most] = [0, seconds.len() / 2, seconds.len() - 1].map(|at| seconds[at]);
        Ok(format!("{least:>9.2}{median:>9.2}{most:>9.2}{writes:>9.1}"))
    }
}

fn number_of(object: &DynamicObject, prefix: &str) -> Option<usize> {
    object.metadata.name.as_ref()?.strip_prefix(prefix)?.parse().ok()
}
