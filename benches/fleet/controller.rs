//! The controller, as a process.

use super::{Metrics, Timed};
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The interval of reading the controller's metrics.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The time without a write after which the controller has finished: longer than its delay between writes of a report.
const QUIET: Duration = Duration::from_secs(8);

/// The time without a write after which the controller is stuck.
const STUCK: Duration = Duration::from_secs(120);

/// Returns the number of writes of a kind.
pub(crate) fn writes(metrics: &Metrics, kind: &str) -> f64 {
    metrics.sum("writes_total", &[&format!("resource=\"{kind}\"")])
}

/// A running controller.
pub(crate) struct Controller {
    process: Child,
    address: String,
    log: PathBuf,
}

/// A controller that has completed its work.
pub(crate) struct Quiet {
    /// The time of its last write.
    pub(super) last: Instant,
    /// Its metrics at that time.
    pub(crate) metrics: Metrics,
}

impl Quiet {
    pub(crate) fn since(&self, load: &Timed) -> Duration {
        self.last.saturating_duration_since(load.ended)
    }
}

impl Controller {
    pub(super) async fn start(kubeconfig: &Path, arguments: &[&str], log: PathBuf) -> Result<Self> {
        let process = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"))
            .args([
                "controller",
                "--bind-address=127.0.0.1:0",
                "--log-format=json",
                "--kubeconfig",
            ])
            .arg(kubeconfig)
            .args(arguments)
            .env_clear()
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let mut controller = Self {
            process,
            address: String::new(),
            log,
        };
        let started = Instant::now();
        while started.elapsed() < STUCK {
            controller.address = controller.logged("address").unwrap_or_default();
            if !controller.address.is_empty() && controller.get("/readyz").is_ok() {
                return Ok(controller);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        bail!(
            "the controller does not become ready:\n{}",
            fs::read_to_string(&controller.log)?
        )
    }

    /// Returns the first value of this name in the log.
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

    /// Reads its metrics.
    pub(crate) fn metrics(&self) -> Result<Metrics> {
        self.get("/metrics").map(Metrics)
    }

    /// Waits until the counted value has reached `expected`, and then does not change for a while.
    pub(crate) async fn quiet(&self, counted: impl Fn(&Metrics) -> f64, expected: f64) -> Result<Quiet> {
        let (mut last, mut before) = (Instant::now(), 0.0);
        loop {
            let metrics = self.metrics()?;
            let now = counted(&metrics);
            if now > before {
                (last, before) = (Instant::now(), now);
            } else if before >= expected && last.elapsed() > QUIET {
                return Ok(Quiet { last, metrics });
            }
            ensure!(
                last.elapsed() < STUCK,
                "the controller stopped after {before} of {expected}:\n{}",
                metrics.0
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns its CPU time in seconds, user and system.
    pub(super) fn cpu(&self) -> Result<f64> {
        Ok(self.metrics()?.sum("process_cpu_seconds_total", &[]))
    }

    /// Stops it as a cluster would, and returns its peak memory and its number of warnings.
    pub(super) fn stop(mut self) -> Result<[String; 2]> {
        let peak = self.peak()?;
        Command::new("kill").arg(self.process.id().to_string()).status()?;
        let ended = self.process.wait()?;
        let log = fs::read_to_string(&self.log)?;
        ensure!(ended.success(), "{ended}:\n{log}");
        Ok([peak, warnings(&log)?])
    }

    /// Kills it as on a lost node, and returns its peak memory and its number of warnings.
    pub(super) fn kill(mut self) -> Result<[String; 2]> {
        let peak = self.peak()?;
        self.process.kill()?;
        self.process.wait()?;
        Ok([peak, warnings(&fs::read_to_string(&self.log)?)?])
    }

    /// Returns its peak memory, in MiB.
    fn peak(&self) -> Result<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak: f64 = peak.context("a peak")?.trim().trim_end_matches(" kB").parse()?;
        Ok(format!("{:.1}", peak / 1024.0))
    }
}

/// Returns the CPU time of a program that this benchmark started and of its ended children, user and system, in seconds.
pub(crate) fn cpu_of(program: &str) -> Result<f64> {
    /// The number of clock ticks per second in `/proc`.
    const TICKS: f64 = 100.0;
    let ours = std::process::id().to_string();
    let mut ticks = 0.0;
    for process in fs::read_dir("/proc")? {
        // A process may end meanwhile.
        let Ok(stat) = fs::read_to_string(process?.path().join("stat")) else {
            continue;
        };
        let Some((name, fields)) = stat.rsplit_once(") ") else {
            continue;
        };
        let fields: Vec<&str> = fields.split(' ').collect();
        if name.ends_with(&format!("({program}")) && fields[1] == ours {
            for field in &fields[11..15] {
                ticks += field.parse::<f64>()?;
            }
        }
    }
    Ok(ticks / TICKS)
}

/// Counts the warnings in a log before the controller stops, and prints them.
fn warnings(log: &str) -> Result<String> {
    let warns = |line: &&str| line.contains("\"WARN\"") || line.contains("\"ERROR\"");
    let lines = log.lines().take_while(|line| !line.contains("\"stopping\""));
    let warnings: Vec<_> = lines.filter(warns).collect();
    for warning in &warnings {
        writeln!(std::io::stderr(), "{warning}")?;
    }
    Ok(warnings.len().to_string())
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.process.kill().and_then(|()| self.process.wait()).ok();
    }
}
