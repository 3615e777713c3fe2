//! The shared parts of the controller benchmarks: a real API server with OCM's webhook, the managed clusters of a fleet with
//! simulated agents, and the controller as a process. There are no other writers, so all counted writes are the controller's.
//!
//! The load and the controller share the machine with etcd and the API server; the time of the load itself is measured while the
//! controller runs beside it.

#![allow(dead_code, unused_imports, reason = "each benchmark uses a part of it")]

mod argocd;
mod controller;
mod load;
mod metrics;
mod table;

pub(crate) use argocd::{Followed, Latest, follow, lock, set, start_argocd};
pub(crate) use controller::{Controller, Program, cpu_of, writes};
pub(crate) use load::{APPLICATIONS, Load, WORKS, application_set, now, request};
pub(crate) use metrics::{Metrics, Requests};
pub(crate) use table::Table;

use anyhow::{Context, Result, bail};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::Hub;

/// The numbers of Applications and of managed clusters.
pub(crate) type Size = (usize, usize);

/// The time for which the idle controller is measured.
const IDLE: Duration = Duration::from_secs(60);

/// Measures the programs with each of the requested sizes, or else with these, and prints the table with a column for each.
pub(crate) async fn run(
    sizes: &[Size],
    programs: &[Program],
    measure: impl AsyncFn(&Program, Size, &mut Table) -> Result<()>,
) -> Result<()> {
    let numbers = numbers();
    let sizes = match numbers[..] {
        [] => sizes.to_vec(),
        [all] if all > 0 && sizes.iter().all(|(all, clusters)| all == clusters) => vec![(all, all)],
        [applications, clusters] if (1..=applications).contains(&clusters) => vec![(applications, clusters)],
        _ => bail!("pass the number of Applications and the number of managed clusters, which must not be greater"),
    };
    let mut table = Table::default();
    for program in programs {
        for &size @ (applications, clusters) in &sizes {
            let column = if program.is_ours() { "" } else { "peer " };
            let column = format!("{column}{applications}/{clusters}");
            table.begin(&column);
            let measured = measure(program, size, &mut table).await;
            measured.with_context(|| format!("at {column}"))?;
        }
    }
    std::io::stdout().write_all(table.to_string().as_bytes())?;
    Ok(())
}

/// Returns the arguments that are numbers, without the values of options.
pub(crate) fn numbers() -> Vec<usize> {
    let arguments: Vec<String> = std::env::args().collect();
    // cargo adds `--bench`, which has no value.
    let is_value = |before: &str| before.starts_with("--") && before != "--bench";
    let plain = arguments.windows(2).filter(|pair| !is_value(&pair[0]));
    plain.filter_map(|pair| pair[1].parse().ok()).collect()
}

/// Returns the values of an option in the arguments.
pub(crate) fn values_of(option: &str) -> Vec<String> {
    let arguments: Vec<String> = std::env::args().collect();
    let pairs = arguments.windows(2).filter(|pair| pair[0] == option);
    pairs.map(|pair| pair[1].clone()).collect()
}

/// A hub, and the start of the controller there.
pub(crate) struct Stage<'p> {
    hub: Hub,
    load: Load,
    scratch: TempDir,
    program: &'p Program,
}

impl<'p> Stage<'p> {
    /// Starts an empty hub, for this controller and a fleet of this size.
    pub(crate) async fn start(program: &'p Program, size: Size) -> Result<Self> {
        let hub = Hub::start().await?;
        Ok(Self {
            load: Load::new(hub.client().await?, size),
            hub,
            scratch: TempDir::new()?,
            program,
        })
    }

    /// Returns the hub.
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Returns the load of the hub.
    pub(crate) fn load(&self) -> &Load {
        &self.load
    }

    /// Returns the temporary folder.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Starts the controller, whose log has this name.
    pub(crate) async fn controller(&self, name: &str) -> Result<Controller> {
        let log = self.scratch().join(name).with_extension("log");
        Controller::start(self.program, self.hub.kubeconfig_path(), log).await
    }

    /// Measures the idle controller, the takeover by another replica of ours, and a restart, which reconciles `all` objects.
    pub(crate) async fn measure_idle_and_restarts(
        &self,
        controller: Controller,
        all: f64,
        table: &mut Table,
    ) -> Result<()> {
        let of_ours = |figure: String| if self.program.is_ours() { figure } else { String::new() };
        if self.program.is_ours() {
            // Events are written after all else.
            controller.quiet(|metrics| writes(metrics, "events"), 0.0).await?;
        }
        let brought = controller.metrics()?.sum("watch_bytes_total", &[]);
        let brought = format!("{:.1}", brought / 1000.0 / self.load.applications());
        table.note("data of watches, for each, kB", of_ours(brought));
        let cpu = format!("{:.1}", controller.cpu()?);
        table.note("CPU of the controller so far, s", cpu);
        for (row, program) in [("  of the API server, s", "kube-apiserver"), ("  of etcd, s", "etcd")] {
            table.note(row, format!("{:.1}", controller::cpu_of(program)?));
        }
        let client = self.load.client();
        let reconciles = |metrics: &Metrics| self.program.reconciles(metrics);
        let (requests, cpu) = (Requests::fetch(client).await?, controller.cpu()?);
        tokio::time::sleep(IDLE).await;
        let idle = Requests::fetch(client).await?.since(&requests);
        table.note("idle for a minute: lists", idle.lists.to_string());
        table.note("  writes, without the Lease", idle.writes().to_string());
        table.note("  CPU, s", format!("{:.2}", controller.cpu()? - cpu));
        let mut took_over = [const { String::new() }; 3];
        let mut warnings_of_standby = String::new();
        let [memory, warnings] = if self.program.is_ours() {
            let standby = self.controller("standby").await?;
            let requests = Requests::fetch(client).await?;
            let killed = Instant::now();
            let ended = controller.kill()?;
            let quiet = standby.quiet(reconciles, all).await?;
            let after = Requests::fetch(client).await?.since(&requests);
            let duration = quiet.last.saturating_duration_since(killed);
            took_over = [seconds(duration), after.writes().to_string(), after.lists.to_string()];
            [_, warnings_of_standby] = standby.stop()?;
            ended
        } else {
            controller.kill()?
        };
        let [duration, writes, lists] = took_over;
        table.note("killed: standby has reconciled all after, s", duration);
        table.note("  writes, without the Lease", writes);
        table.note("  lists", lists);

        let (requests, of_api_server) = (Requests::fetch(client).await?, controller::cpu_of("kube-apiserver")?);
        let started = Instant::now();
        let controller = self.controller("restarted").await?;
        let quiet = controller.quiet(reconciles, all).await?;
        let after = Requests::fetch(client).await?.since(&requests);
        let duration = quiet.last.saturating_duration_since(started);
        table.note("restarted: has reconciled all after, s", seconds(duration));
        table.note("  writes, without the Lease", after.writes().to_string());
        table.note("  lists", after.lists.to_string());
        table.note("  CPU, s", format!("{:.1}", controller.cpu()?));
        let of_api_server = controller::cpu_of("kube-apiserver")? - of_api_server;
        table.note("  of the API server, s", format!("{of_api_server:.1}"));
        let [memory_again, warnings_again] = controller.stop()?;
        table.note("peak memory, MiB", memory);
        table.note("  after the restart, MiB", memory_again);
        let warnings = format!("{warnings} + {warnings_of_standby} + {warnings_again}");
        table.note("warnings in the log", of_ours(warnings));
        Ok(())
    }
}

/// The duration of a step, and its end.
pub(crate) struct Timed {
    pub(crate) took: Duration,
    ended: Instant,
}

pub(crate) async fn timed(work: impl Future<Output = Result<()>>) -> Result<Timed> {
    let started = Instant::now();
    work.await?;
    let ended = Instant::now();
    Ok(Timed {
        took: ended - started,
        ended,
    })
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}
