//! Measures the view into the clusters: the time until a live object and the first line of a log arrive through the tunnel, and the memory
//! and CPU of the service with many streams of logs, and with none.
//!
//! ```text
//! cargo bench --bench live                                    # 50 reads
//! TESTBED_ARGOCD_AGENT=FOLDER cargo bench --bench live -- 20  # another number, beside argocd-agent's resource proxy
//! ```
//!
//! The hub has the real argocd-server and cluster-proxy, and the cluster the real agents, all on this machine. argocd-agent needs a Git
//! checkout, and the ports 6379 and 9090. Uses the testbed, and so needs Go the first time.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    clippy::print_stdout,
    dead_code,
    reason = "a benchmark measures time and prints figures, and shares parts of tests"
)]

#[path = "../tests/common/agent_controller.rs"]
mod agent_controller;
#[path = "../tests/with_argocd_agent/stage.rs"]
mod argocd_agent;
#[path = "../tests/with_live/stage.rs"]
mod stage;

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use stage::{OF_SHOP, Stage, WEB, stage};
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};
use testbed::wait::{self, DEADLINE};
use testbed::{ObjectRef, is_synced};

/// The number of reads of each kind.
const READS: usize = 50;

/// The pause between two reads: a cluster answers some five requests a second, and a log needs four.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of streams, and of users who open them.
const STREAMS: usize = 100;
const USERS: usize = 5;

/// The time without requests.
const IDLE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<()> {
    let number = std::env::args().find_map(|argument| argument.parse().ok());
    let number = number.unwrap_or(READS);
    let mut table = format!(
        "{number} reads, milliseconds to the first byte\n{:<38}{:>8}{:>8}{:>8}\n",
        "", "least", "median", "most"
    );
    let stage = stage().await?;
    for (name, path) in [
        ("live: object", "object?"),
        ("live: first line of a log", "logs?container=web&tail=1&"),
    ] {
        let path = format!("/api/v1/{path}{WEB}");
        let figures = first_bytes(number, async || open_body(stage, "ann", &path).await.map(drop)).await?;
        writeln!(table, "{name:<38}{figures}")?;
    }
    writeln!(
        table,
        "\nof the service{:>28}{:>12}{:>12}",
        "MiB", "CPU ms/s", "requests"
    )?;
    writeln!(table, "{:<28}{}", "idle for a minute", idle(stage).await?)?;
    writeln!(
        table,
        "{:<28}{}",
        format!("{STREAMS} streams of logs"),
        streams(stage).await?
    )?;
    if std::env::var_os("TESTBED_ARGOCD_AGENT").is_some() {
        writeln!(table, "\n{}", Box::pin(beside(number)).await?)?;
    }
    std::io::stdout().write_all(table.as_bytes())?;
    Ok(())
}

/// Sends a request, and returns the body after its first byte.
async fn open_body(stage: &Stage, user: &str, path: &str) -> Result<Body> {
    let headers = [
        OF_SHOP[0],
        OF_SHOP[1],
        ("Argocd-Username", user),
        ("Argocd-Ocm-Cmp-Live-Token", &*stage.token),
    ];
    let (status, mut body) = stage.open("GET", path, &headers).await?;
    ensure!(status == 200, "{path}: {status}");
    body.frame().await.context("a first byte")??;
    Ok(body)
}

/// Reads several times, one read after the other, and returns the milliseconds.
async fn first_bytes(number: usize, read: impl AsyncFn() -> Result<()>) -> Result<String> {
    let mut times = Vec::new();
    for _ in 0..number {
        let started = Instant::now();
        read().await?;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
        tokio::time::sleep(PAUSE).await;
    }
    times.sort_by(f64::total_cmp);
    let [least, median, most] = [0, times.len() / 2, times.len() - 1].map(|at| times[at]);
    Ok(format!("{least:>8.1}{median:>8.1}{most:>8.1}"))
}

/// Returns the figures of the service without requests, and the number of requests that it sends to the hub and to clusters.
async fn idle(stage: &Stage) -> Result<String> {
    let sent = || -> Result<f64> {
        // The hub reviews the token of each request for a cluster.
        let metrics = stage.hub.kubectl("get --raw /metrics")?;
        let series = metrics.lines().filter_map(|line| line.rsplit_once(' '));
        let reviews = series
            .filter(|(name, _)| name.starts_with("apiserver_request_total{") && name.contains("\"tokenreviews\""));
        let reviews: f64 = reviews.filter_map(|(_, count)| count.parse::<f64>().ok()).sum();
        Ok(stage.hub.requests_by(stage::NAME)?.len() as f64 + reviews)
    };
    let (before, usage) = (sent()?, Usage::measure(stage)?);
    tokio::time::sleep(IDLE).await;
    let figures = usage.until_now(stage, IDLE)?;
    Ok(format!("{figures}{:>12}", sent()? - before))
}

/// Opens the streams, and returns the figures of the service while each gets a line every second.
async fn streams(stage: &Stage) -> Result<String> {
    const LINES: u32 = 30;
    let path = format!("/api/v1/logs?{WEB}&container=web&follow=true");
    let mut bodies = Vec::new();
    // Each request follows two Pods.
    for at in 0..STREAMS / 2 {
        let user = format!("user{}", at % USERS);
        let opened = wait::eventually("the stream has its turn", DEADLINE, async || {
            open_body(stage, &user, &path).await.ok()
        });
        bodies.push(opened.await?);
    }
    let readers = bodies
        .into_iter()
        .map(|mut body| tokio::spawn(async move { while let Some(Ok(_)) = body.frame().await {} }));
    let readers: Vec<_> = readers.collect();
    let (usage, started) = (Usage::measure(stage)?, Instant::now());
    for _ in 0..LINES {
        stage.cluster1.log("another line of a log")?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let figures = usage.until_now(stage, started.elapsed())?;
    for reader in readers {
        ensure!(!reader.is_finished(), "a stream has ended");
        reader.abort();
    }
    Ok(format!("{figures}{:>12}", ""))
}

/// The processor time that the service has used.
struct Usage(Duration);

impl Usage {
    fn measure(stage: &Stage) -> Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", stage.service.id()))?;
        // After the name, which may have spaces, utime and stime are the 12th and 13th field, in hundredths of a second.
        let (_, fields) = stat.rsplit_once(") ").context("fields")?;
        let ticks: Result<Vec<u64>, _> = fields.split(' ').skip(11).take(2).map(str::parse).collect();
        Ok(Self(Duration::from_millis(10 * ticks?.iter().sum::<u64>())))
    }

    /// Returns the resident memory, and the processor time in a second since then.
    fn until_now(&self, stage: &Stage, elapsed: Duration) -> Result<String> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", stage.service.id()))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: f64 = resident.context("memory")?.trim().trim_end_matches(" kB").parse()?;
        let used = Self::measure(stage)?.0.saturating_sub(self.0).as_secs_f64() * 1000.0 / elapsed.as_secs_f64();
        Ok(format!("{:>14.1}{used:>12.1}", kilobytes / 1024.0))
    }
}

/// Returns the same times of argocd-agent's resource proxy.
async fn beside(number: usize) -> Result<String> {
    let stage = Box::pin(argocd_agent::Stage::start()).await?;
    let guestbook = argocd_agent::guestbook("guestbook", &stage.git, "cluster1");
    stage.hub.create_application(&guestbook).await?;
    stage
        .hub
        .wait_for(&ObjectRef::application("guestbook"), is_synced)
        .await?;
    let deployment = ObjectRef::deployment("guestbook", "guestbook-ui");
    let cluster = &stage.managed.cluster;
    cluster
        .wait_for(&deployment, |object| testbed::is_true(object, "Available"))
        .await?;
    let pods = cluster.list("v1", "Pod").await?;
    let pod = pods.iter().find(|pod| pod["metadata"]["namespace"] == "guestbook");
    let pod = pod.and_then(|pod| pod["metadata"]["name"].as_str()).context("a Pod")?;
    let client = stage.resource_proxy("cluster1").await?;
    let log = format!("/api/v1/namespaces/guestbook/pods/{pod}/log?container=guestbook-ui&tailLines=1");
    let mut table = String::new();
    for (name, path) in [
        (
            "argocd-agent: object",
            "/apis/apps/v1/namespaces/guestbook/deployments/guestbook-ui",
        ),
        ("argocd-agent: first line of a log", &log),
    ] {
        let figures = first_bytes(number, async || first_byte(&client, path).await).await?;
        writeln!(table, "{name:<38}{figures}")?;
    }
    Ok(table)
}

async fn first_byte(client: &Client, path: &str) -> Result<()> {
    let response = client.send(http::Request::get(path).body(Body::empty())?).await?;
    ensure!(response.status() == 200, "{path}: {}", response.status());
    response.into_body().frame().await.context("a first byte")??;
    Ok(())
}
