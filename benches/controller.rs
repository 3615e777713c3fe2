//! `controller` on the hub of a fleet: a real API server with OCM's webhook, Applications, one work each, and managed clusters
//! whose agents are played here. Nothing else writes, so that what is counted is the controller's.
//!
//! ```text
//! cargo bench --bench controller               # 1,000, 3,000 and 10,000 Applications
//! cargo bench --bench controller -- 2000 200   # so many Applications on so many managed clusters
//! ```
//!
//! Needs what the testbed needs. The load and the controller share the machine with etcd and the API server; how long the load
//! itself takes is measured while the controller runs beside it. The works are what `generate` makes of six objects.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "figures for people, and time is what this measures"
)]

use anyhow::{Context, Result, bail, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use http::Request;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::Hub;

/// Applications and managed clusters.
const POINTS: [(usize, usize); 3] = [(1000, 100), (3000, 300), (10_000, 1000)];

/// How many requests of the load are under way at a time: agents do not wait for each other.
const AT_ONCE: usize = 16;

/// How often it is looked what the controller has counted.
const LOOK: Duration = Duration::from_millis(100);

/// After this long without another write it is done.
const QUIET: Duration = Duration::from_secs(3);

/// After this long without another write it is not going to.
const STUCK: Duration = Duration::from_secs(120);

/// How long it is watched doing nothing.
const IDLE: Duration = Duration::from_secs(60);

/// A row of the table.
struct Row {
    name: &'static str,
    figure: String,
    /// What argocd-pull-integration, the field's controller in Go, took on the same set-up with 1,000 Applications on 100
    /// managed clusters, and with 3,000 on 300.
    go: [&'static str; 2],
}

/// Where the other has no such figure.
const NONE: [&str; 2] = [""; 2];

#[tokio::main]
async fn main() -> Result<()> {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let points = match numbers[..] {
        [] => POINTS.to_vec(),
        [applications, clusters] if (1..=applications).contains(&clusters) => vec![(applications, clusters)],
        _ => bail!("give the number of Applications, and that of managed clusters, which is no greater"),
    };
    let mut columns = Vec::new();
    for point in points {
        columns.push(measure(point).await.with_context(|| format!("at {point:?}"))?);
    }
    print(&table(&columns));
    Ok(())
}

fn print(text: &str) {
    std::io::stdout().write_all(text.as_bytes()).expect("standard output");
}

fn table(columns: &[Vec<Row>]) -> String {
    let mut table = String::new();
    for (at, Row { name, go, .. }) in columns[0].iter().enumerate() {
        let figures = columns.iter().map(|column| column[at].figure.as_str());
        let mut line = format!("{name:<40}");
        for (width, figure) in figures.map(|figure| (12, figure)).chain(go.map(|figure| (15, figure))) {
            write!(line, "{figure:>width$}").expect("a String takes all");
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

async fn measure((applications, clusters): (usize, usize)) -> Result<Vec<Row>> {
    let hub = Hub::start().await?;
    let client = hub.client().await?;
    let scratch = TempDir::new()?;
    let fleet = Fleet {
        client: client.clone(),
        applications,
        clusters,
        work: work(scratch.path())?,
    };
    let mut rows = Vec::new();
    let mut note = |name, figure, go| rows.push(Row { name, figure, go });
    note("", format!("{applications}/{clusters}"), ["Go 1000/100", "Go 3000/300"]);
    let controller = Controller::start(hub.kubeconfig_path(), scratch.path().join("first.log")).await?;

    let load = timed(fleet.create()).await?;
    let quiet = controller.quiet(Counted::Writes, applications as f64).await?;
    fleet.all_have("healthy on 0").await?;
    note("Applications and works are created, s", seconds(load.took), NONE);
    note(THERE, seconds(quiet.since(&load)), NONE);
    // What the agents say, what conditions say then, and the other's figures: the load, what it took longer, writes.
    let phases = [
        (
            "agents tell that all is well, s",
            None,
            "healthy on 1",
            [["4.3", "10.0"], ["22.3", "41.2"], ["2 to 4", "2 to 4"]],
        ),
        (
            "agents tell that one is broken, s",
            Some("0 of 2 updated replicas are available"),
            "Deployment shop/web: 0 of 2",
            [NONE; 3],
        ),
    ];
    for (name, state, shown, [load_go, done_go, writes_go]) in phases {
        let before = writes(&controller.metrics()?);
        let load = timed(fleet.report(state)).await?;
        let quiet = controller
            .quiet(Counted::Writes, before[0] + applications as f64)
            .await?;
        fleet.all_have(shown).await?;
        let after = writes(&quiet.metrics);
        let each = |at: usize| format!("{:.2}", (after[at] - before[at]) / applications as f64);
        note(name, seconds(load.took), load_go);
        note(THERE, seconds(quiet.since(&load)), done_go);
        note("  writes of each Application", each(0), writes_go);
        note("  writes of Events on each", each(1), NONE);
    }
    note(
        "CPU of the controller until here, s",
        format!("{:.1}", controller.cpu()?),
        NONE,
    );

    let (requests, cpu) = (Requests::of(&client).await?, controller.cpu()?);
    tokio::time::sleep(IDLE).await;
    let idle = Requests::of(&client).await?.since(&requests);
    note("nothing happens for a minute: lists", idle.lists.to_string(), NONE);
    note("  writes, without the Lease", idle.writes.to_string(), NONE);
    note("  CPU, s", format!("{:.2}", controller.cpu()? - cpu), NONE);
    let [memory, warnings] = controller.stop()?;

    let requests = Requests::of(&client).await?;
    let started = Instant::now();
    let controller = Controller::start(hub.kubeconfig_path(), scratch.path().join("second.log")).await?;
    let quiet = controller.quiet(Counted::Looks, applications as f64).await?;
    let after = Requests::of(&client).await?.since(&requests);
    let looked = quiet.last.saturating_duration_since(started);
    note("restarted, it has looked at all after, s", seconds(looked), NONE);
    note(
        "  writes, without the Lease",
        after.writes.to_string(),
        ["3,443", "4,615"],
    );
    note("  lists", after.lists.to_string(), NONE);
    note("  CPU, s", format!("{:.1}", controller.cpu()?), NONE);
    let [memory_again, warnings_again] = controller.stop()?;
    note("peak memory, MiB", memory, ["106", "205"]);
    note("  of the restarted, MiB", memory_again, NONE);
    note("warnings in its log", format!("{warnings} + {warnings_again}"), NONE);
    Ok(rows)
}

/// How long after the load the last condition is there.
const THERE: &str = "  all conditions are there after that, s";

/// How many writes of Applications and of Events there have been.
fn writes(metrics: &Metrics) -> [f64; 2] {
    ["applications", "events"].map(|kind| metrics.sum("writes_total", &[&format!("resource=\"{kind}\"")]))
}

fn seconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}

/// How long something took, and when it was done.
struct Timed {
    took: Duration,
    ended: Instant,
}

async fn timed(work: impl Future<Output = Result<()>>) -> Result<Timed> {
    let started = Instant::now();
    work.await?;
    let ended = Instant::now();
    Ok(Timed {
        took: ended - started,
        ended,
    })
}

/// The work of an Application as `generate` makes it.
fn work(scratch: &Path) -> Result<Value> {
    const OBJECTS: &str = r"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {application.yaml: TEXT}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'example.com/web:1'}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
";
    let folder = scratch.join("source");
    fs::create_dir(&folder)?;
    fs::write(folder.join("all.yaml"), OBJECTS.replace("TEXT", &"setting".repeat(200)))?;
    let output = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"))
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

/// What is on the hub, and who writes there.
struct Fleet {
    client: Client,
    applications: usize,
    clusters: usize,
    work: Value,
}

const MERGE: &str = "application/merge-patch+json";
const CREATED: &str = "application/json";

impl Fleet {
    fn cluster(&self, application: usize) -> String {
        format!("cluster-{}", application % self.clusters)
    }

    async fn create(&self) -> Result<()> {
        let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": now()});
        self.each(self.clusters, |at| {
            let name = format!("cluster-{at}");
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let cluster = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1",
                "kind": "ManagedCluster",
                "metadata": {"name": name},
                "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 7200},
            });
            let conditions = [
                "HubAcceptedManagedCluster",
                "ManagedClusterJoined",
                "ManagedClusterConditionAvailable",
            ];
            let status = json!({"status": {"conditions": conditions.map(condition)}});
            let clusters = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
            vec![
                request("POST", "/api/v1/namespaces", &namespace),
                request("POST", clusters, &cluster),
                request("PATCH", &format!("{clusters}/{name}/status"), &status),
            ]
        })
        .await?;
        self.each(self.applications, |at| {
            let (application, work) = (self.application(at), self.work_of(at));
            vec![
                request(
                    "POST",
                    "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications",
                    &application,
                ),
                request("POST", &works(&self.cluster(at)), &work),
            ]
        })
        .await
    }

    /// An Application as Argo CD leaves it after a sync.
    fn application(&self, at: usize) -> Value {
        let (name, cluster) = (format!("application-{at}"), self.cluster(at));
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
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": name, "namespace": "argocd", "finalizers": ["resources-finalizer.argocd.argoproj.io"]},
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
        })
    }

    /// Its work as Argo CD applies it.
    fn work_of(&self, at: usize) -> Value {
        let (name, cluster) = (format!("application-{at}"), self.cluster(at));
        let mut work = self.work.clone();
        work["metadata"]["name"] = json!(name);
        work["metadata"]["namespace"] = json!(cluster);
        let id = format!("{name}:work.open-cluster-management.io/ManifestWork:{cluster}/{name}");
        work["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!(id);
        let applied = work.to_string();
        work["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = json!(applied);
        work
    }

    /// Every agent says how its works fare: well, or that their Deployments are broken.
    async fn report(&self, broken: Option<&str>) -> Result<()> {
        let status = json!({"status": self.status(broken)});
        self.each(self.applications, |at| {
            let path = format!("{}/application-{at}/status", works(&self.cluster(at)));
            vec![request("PATCH", &path, &status)]
        })
        .await
    }

    fn status(&self, broken: Option<&str>) -> Value {
        let condition = |kind: &str, is: bool, message: &str| {
            json!({
                "type": kind,
                "status": if is { "True" } else { "False" },
                // So the agent says where a rule of the work has told it.
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
            let text = |text: &Value| text.as_str().unwrap_or_default().to_owned();
            let (api, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
            let (group, version) = api.split_once('/').unwrap_or(("", &api));
            let plural = if kind == "Ingress" {
                "ingresses".to_owned()
            } else {
                format!("{}s", kind.to_lowercase())
            };
            let ill = broken.filter(|_| kind == "Deployment");
            let mut conditions = vec![
                condition("Applied", true, "Apply manifest complete"),
                condition("Available", true, "Resource is available"),
            ];
            let configured = self.work["spec"]["manifestConfigs"].as_array().into_iter().flatten();
            let has_rules = |config: &Value| {
                config["resourceIdentifier"]["resource"] == plural.as_str() && !config["conditionRules"].is_null()
            };
            if configured.into_iter().any(has_rules) {
                conditions.push(condition("Progressing", false, "2 of 2 updated replicas are available"));
                conditions.push(condition("Healthy", ill.is_none(), ill.unwrap_or("nothing is broken")));
            }
            let value =
                |name: &str, value: i64| json!({"name": name, "fieldValue": {"type": "Integer", "integer": value}});
            let values = match kind.as_str() {
                "Deployment" => vec![
                    value("ReadyReplicas", 2),
                    value("Replicas", 2),
                    value("DesiredReplicas", 2),
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

    /// Does what there is to do for each of so many, several at a time.
    async fn each(&self, all: usize, requests: impl Fn(usize) -> Vec<Request<Vec<u8>>>) -> Result<()> {
        let send = |at| {
            let (client, requests) = (self.client.clone(), requests(at));
            async move {
                for request in requests {
                    let what = request.uri().clone();
                    client.request_text(request).await.with_context(|| what.to_string())?;
                }
                Ok(())
            }
        };
        stream::iter(0..all)
            .map(send)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Makes sure that every Application has a condition that says this.
    async fn all_have(&self, words: &str) -> Result<()> {
        let applications = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications?limit=500";
        let (mut more, mut have, mut other) = (String::new(), 0, Value::Null);
        loop {
            let request = Request::get(format!("{applications}{more}")).body(Vec::new())?;
            let list: Value = self.client.request(request).await?;
            let items = list["items"].as_array().context("a list")?;
            for item in items {
                let conditions = item["status"]["conditions"].as_array().into_iter().flatten();
                let mut messages = conditions.filter_map(|condition| condition["message"].as_str());
                if messages.any(|message| message.contains(words)) {
                    have += 1;
                } else {
                    other = item["status"]["conditions"].clone();
                }
            }
            match list["metadata"]["continue"].as_str() {
                Some(at) if !at.is_empty() => more = format!("&continue={at}"),
                _ => break,
            }
        }
        ensure!(
            have == self.applications,
            "only {have} of {} Applications say {words:?}, and one says {other}",
            self.applications
        );
        Ok(())
    }
}

fn works(cluster: &str) -> String {
    format!("/apis/work.open-cluster-management.io/v1/namespaces/{cluster}/manifestworks")
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn request(method: &str, path: &str, body: &Value) -> Request<Vec<u8>> {
    let kind = if method == "PATCH" { MERGE } else { CREATED };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    request.body(body.to_string().into_bytes()).expect("a plain request")
}

/// The text in which Prometheus is told figures.
struct Metrics(String);

impl Metrics {
    /// The sum of the series whose name ends so and that have these labels.
    fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        let series = lines.filter_map(|line| line.rsplit_once(' '));
        let wanted = series.filter(|(series, _)| {
            let (of, set) = series.split_once('{').unwrap_or((series, ""));
            of.ends_with(name) && labels.iter().all(|label| set.contains(label))
        });
        wanted.filter_map(|(_, figure)| figure.parse::<f64>().ok()).sum()
    }
}

/// What the API server has been asked for about what the controller deals with.
struct Requests {
    lists: u64,
    writes: u64,
}

impl Requests {
    async fn of(client: &Client) -> Result<Self> {
        let metrics = Metrics(client.request_text(Request::get("/metrics").body(Vec::new())?).await?);
        let sum = |verbs: &[&str]| {
            let kinds = [
                "applications",
                "manifestworks",
                "manifestworkreplicasets",
                "managedclusters",
                "configmaps",
                "events",
            ];
            let all = verbs
                .iter()
                .flat_map(|verb| kinds.map(|kind| (format!("verb=\"{verb}\""), format!("resource=\"{kind}\""))));
            all.map(|(verb, kind)| metrics.sum("apiserver_request_total", &[&verb, &kind]))
                .sum::<f64>()
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are counted"
        )]
        Ok(Self {
            lists: sum(&["LIST"]) as u64,
            writes: sum(&["POST", "PUT", "PATCH", "APPLY", "DELETE"]) as u64,
        })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            lists: self.lists - before.lists,
            writes: self.writes - before.writes,
        }
    }
}

/// The controller, as a process.
struct Controller {
    process: Child,
    address: String,
    log: PathBuf,
}

/// What is waited for.
#[derive(Clone, Copy)]
enum Counted {
    /// Writes to Applications.
    Writes,
    /// Looks at Applications.
    Looks,
}

/// A controller that has come to the end of what there was to do.
struct Quiet {
    /// When it did the last of it.
    last: Instant,
    metrics: Metrics,
}

impl Quiet {
    fn since(&self, load: &Timed) -> Duration {
        self.last.saturating_duration_since(load.ended)
    }
}

impl Controller {
    async fn start(kubeconfig: &Path, log: PathBuf) -> Result<Self> {
        let process = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"))
            .args([
                "controller",
                "--bind-address=127.0.0.1:0",
                "--log-format=json",
                "--kubeconfig",
            ])
            .arg(kubeconfig)
            .env_clear()
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut controller = Self {
            process,
            address: String::new(),
            log,
        };
        let begun = Instant::now();
        while begun.elapsed() < STUCK {
            controller.address = controller.logged("address").unwrap_or_default();
            if !controller.address.is_empty() && controller.get("/readyz").is_ok() {
                return Ok(controller);
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!(
            "the controller does not get ready:\n{}",
            fs::read_to_string(&controller.log)?
        )
    }

    /// What is logged first of this name.
    fn logged(&self, name: &str) -> Option<String> {
        let log = fs::read_to_string(&self.log).ok()?;
        let (_, rest) = log.split_once(&format!("\"{name}\":\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    }

    fn get(&self, path: &str) -> Result<String> {
        let mut connection = TcpStream::connect(&self.address)?;
        connection
            .write_all(format!("GET {path} HTTP/1.1\r\nhost: controller\r\nconnection: close\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
        ensure!(head.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        Ok(body.to_owned())
    }

    fn metrics(&self) -> Result<Metrics> {
        self.get("/metrics").map(Metrics)
    }

    /// Waits until it has done so much, and then nothing for a while.
    async fn quiet(&self, counted: Counted, wanted: f64) -> Result<Quiet> {
        let (mut last, mut before) = (Instant::now(), 0.0);
        loop {
            let metrics = self.metrics()?;
            let now = match counted {
                Counted::Writes => writes(&metrics)[0],
                Counted::Looks => metrics.sum("reconciles_total", &[]),
            };
            if now > before {
                (last, before) = (Instant::now(), now);
            } else if before >= wanted && last.elapsed() > QUIET {
                return Ok(Quiet { last, metrics });
            }
            ensure!(
                last.elapsed() < STUCK,
                "it does no more after {before} of {wanted}:\n{}",
                metrics.0
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Seconds, of the user and the system.
    fn cpu(&self) -> Result<f64> {
        Ok(self.metrics()?.sum("process_cpu_seconds_total", &[]))
    }

    /// Has it end as a cluster would, and returns the most memory that it ever had, and how often it has warned.
    fn stop(mut self) -> Result<[String; 2]> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let peak = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .context("a peak")?;
        let peak: f64 = peak.trim().trim_end_matches(" kB").parse()?;
        Command::new("kill").arg(self.process.id().to_string()).status()?;
        let ended = self.process.wait()?;
        let log = fs::read_to_string(&self.log)?;
        let warns = |line: &&str| line.contains("\"WARN\"") || line.contains("\"ERROR\"");
        let warnings = log
            .lines()
            .take_while(|line| !line.contains("\"stopping\""))
            .filter(warns);
        ensure!(ended.success(), "{ended}:\n{log}");
        Ok([format!("{:.1}", peak / 1024.0), warnings.count().to_string()])
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).ok();
    }
}
