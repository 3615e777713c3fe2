//! The controller, or another one to compare it with, as a process.

use super::{Metrics, Timed, values_of};
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The interval of reading the controller's metrics.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The interval of asking a starting controller whether it is ready.
const READY_INTERVAL: Duration = Duration::from_millis(2);

/// The time without a write after which the controller has finished: longer than its delay between writes of a report.
const QUIET: Duration = Duration::from_secs(8);

/// The time without a write after which the controller is stuck.
const STUCK: Duration = Duration::from_secs(120);

/// Returns the number of writes of a kind.
pub(crate) fn writes(metrics: &Metrics, kind: &str) -> f64 {
    metrics.sum("writes_total", &[&format!("resource=\"{kind}\"")])
}

/// A controller that a benchmark measures.
pub(crate) enum Program {
    /// This project's, with these arguments.
    Ours(&'static [&'static str]),
    /// argocd-pull-integration, whose program is this file, in this mode.
    Peer { file: PathBuf, mode: &'static str },
}

impl Program {
    /// Returns the program in the option `--peer`, if it is set, in this mode.
    pub(crate) fn peer(mode: &'static str) -> Result<Option<Self>> {
        let files = values_of("--peer");
        let Some(file) = files.first() else {
            return Ok(None);
        };
        let file = fs::canonicalize(file).with_context(|| format!("no program of the peer at {file}"))?;
        Ok(Some(Self::Peer { file, mode }))
    }

    pub(crate) fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_))
    }

    /// Returns the command that runs it, and the address of its metrics if that is known before it runs.
    fn command(&self, kubeconfig: &Path) -> Result<(Command, String)> {
        let mut address = String::new();
        let mut command = Command::new(match self {
            Self::Ours(_) => testbed::program(env!("CARGO_BIN_EXE_argocd-ocm-cmp")),
            Self::Peer { file, .. } => file.clone(),
        });
        command.env_clear();
        match self {
            Self::Ours(arguments) => {
                command.args(["controller", "--bind-address=127.0.0.1:0", "--log-format=json"]);
                command.args(*arguments);
            }
            Self::Peer { mode, .. } => {
                address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
                command.args(["--health-probe-bind-address=0", "--metrics-secure=false"]);
                command.args([format!("--mode={mode}"), format!("--metrics-bind-address={address}")]);
                // The image of its add-on, which it requires.
                command.env("CONTROLLER_IMAGE", "example.com/peer:1");
            }
        }
        command.arg("--kubeconfig").arg(kubeconfig);
        Ok((command, address))
    }

    /// Returns the number of writes of Applications and works; of the peer, all writes, which are not counted by kind.
    pub(crate) fn written(&self, metrics: &Metrics) -> f64 {
        match self {
            Self::Ours(_) => writes(metrics, "applications") + writes(metrics, "manifestworks"),
            Self::Peer { .. } => {
                let of = |method| metrics.sum("rest_client_requests_total", &[&format!("method=\"{method}\"")]);
                ["POST", "PUT", "PATCH", "DELETE"].into_iter().map(of).sum()
            }
        }
    }

    /// Returns the number of its reconciliations.
    pub(super) fn reconciles(&self, metrics: &Metrics) -> f64 {
        metrics.sum(
            match self {
                Self::Ours(_) => "reconciles_total",
                Self::Peer { .. } => "controller_runtime_reconcile_total",
            },
            &[],
        )
    }
}

/// A running controller.
pub(crate) struct Controller {
    process: Child,
    address: String,
    log: PathBuf,
    /// The time from its start until it was ready.
    pub(crate) ready_after: Duration,
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
    pub(crate) async fn start(program: &Program, kubeconfig: &Path, log: PathBuf) -> Result<Self> {
        let (mut command, address) = program.command(kubeconfig)?;
        command.stdout(Stdio::null()).stderr(File::create(&log)?);
        let started = Instant::now();
        let mut controller = Self {
            process: command.spawn()?,
            address,
            log,
            ready_after: Duration::ZERO,
        };
        // The peer has no other page.
        let page = if program.is_ours() { "/readyz" } else { "/metrics" };
        while started.elapsed() < STUCK {
            if controller.address.is_empty() {
                controller.address = controller.logged("address").unwrap_or_default();
            }
            if !controller.address.is_empty() && controller.get(page).is_ok() {
                controller.ready_after = started.elapsed();
                return Ok(controller);
            }
            tokio::time::sleep(READY_INTERVAL).await;
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
            // HTTP 1.0 has no chunks.
            .write_all(format!("GET {path} HTTP/1.0\r\nhost: controller\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
        ensure!(head.starts_with("HTTP/1.0 200"), "{path}: {answer}");
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
    pub(crate) fn stop(mut self) -> Result<[String; 2]> {
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
