//! Measures the controller `application-set-report` on the hub of a fleet: a real API server, ApplicationSets with an Application
//! on each managed cluster, and simulated statuses of the Applications.
//!
//! ```text
//! cargo bench --bench reports               # one ApplicationSet on 1,000 managed clusters, and ten of them
//! cargo bench --bench reports -- 2000 500   # 2,000 Applications, each set on 500 managed clusters
//! ```
//!
//! Has the prerequisites of the testbed.

#![allow(
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark measures time and prints figures"
)]

mod fleet;

use anyhow::{Context, Result, ensure};
use fleet::{
    APPLICATIONS, Controller, Load, Program, Size, Stage, Table, application_set, now, request, seconds, timed, writes,
};
use serde_json::{Value, json};

/// The numbers of Applications and of managed clusters.
const SIZES: [Size; 2] = [(1000, 1000), (10_000, 1000)];

const REPORTS: &str =
    "/apis/apps.open-cluster-management.io/v1alpha1/namespaces/argocd/multiclusterapplicationsetreports";

/// The plural of reports in paths.
const KIND: &str = "multiclusterapplicationsetreports";

/// The number of objects of an Application, which the report names.
const OBJECTS: usize = 6;

#[tokio::main]
async fn main() -> Result<()> {
    fleet::run(
        &SIZES,
        &[Program::Ours(&["--controllers=application-set-report"])],
        measure,
    )
    .await
}

async fn measure(program: &Program, size: Size, table: &mut Table) -> Result<()> {
    let stage = Stage::start(program, size).await?;
    let load = stage.load();
    let crd = format!("{KIND}.apps.open-cluster-management.io");
    load.install("deploy/report_crd.yaml", &crd).await?;
    load.create_clusters().await?;
    let fleet = Fleet::create(&stage, size).await?;
    let controller = stage.controller("first").await?;

    let create = |at| vec![request("POST", APPLICATIONS, &fleet.application(at))];
    fleet
        .measure(
            &controller,
            table,
            "Applications are created, s",
            [false, false],
            load.of_each(create),
        )
        .await?;
    let phases = [
        ("all are out of sync, s", [false, false]),
        ("all are synced and healthy, s", [true, true]),
    ];
    for (name, flags) in phases {
        let status = json!({"status": status(flags)});
        let report = |at| {
            let path = format!("{APPLICATIONS}/application-{at}");
            vec![request("PATCH", &path, &status)]
        };
        fleet
            .measure(&controller, table, name, flags, load.of_each(report))
            .await?;
    }
    let sizes = load.list_objects(REPORTS, |report| report.to_string().len()).await?;
    let largest = sizes.into_iter().max().context("a report")? as f64;
    table.note("the largest report, kB", format!("{:.0}", largest / 1000.0));
    stage
        .measure_idle_and_restarts(controller, fleet.sets.len() as f64, table)
        .await
}

/// ApplicationSets that have an Application on each cluster.
struct Fleet<'s> {
    load: &'s Load,
    clusters: usize,
    sets: Vec<Value>,
}

impl<'s> Fleet<'s> {
    async fn create(stage: &'s Stage<'_>, (applications, clusters): Size) -> Result<Self> {
        let mut sets = Vec::new();
        for at in 0..applications.div_ceil(clusters) {
            sets.push(stage.hub().create(&application_set(&format!("set-{at}"))).await?);
        }
        let load = stage.load();
        Ok(Self { load, clusters, sets })
    }

    /// Returns an Application as the ApplicationSet controller creates it.
    fn application(&self, at: usize) -> Value {
        let mut application = self.load.pulled_application(at, &self.sets[at / self.clusters]);
        application["spec"] = json!({
            "project": "default",
            "source": {"repoURL": "https://example.com/fleet/applications.git", "targetRevision": "HEAD", "path": "shop"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
        });
        application
    }

    /// Writes the statuses, and measures the time until the reports count all clusters as synced or not, and healthy or not.
    async fn measure(
        &self,
        controller: &Controller,
        table: &mut Table,
        name: &'static str,
        flags: [bool; 2],
        load: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let before = writes(&controller.metrics()?, KIND);
        let done = timed(load).await?;
        let sets = self.sets.len() as f64;
        let quiet = controller.quiet(|metrics| writes(metrics, KIND), before + sets).await?;
        self.check_reports(flags).await?;
        let each = (writes(&quiet.metrics, KIND) - before) / sets;
        table.note(name, seconds(done.took));
        table.note("  all reports are written after that, s", seconds(quiet.since(&done)));
        table.note("  writes of each report", format!("{each:.2}"));
        Ok(())
    }

    /// Asserts that each report counts all clusters with this status.
    async fn check_reports(&self, [synced, healthy]: [bool; 2]) -> Result<()> {
        let count = |flag: bool| if flag { self.clusters } else { 0 }.to_string();
        let expected = [self.clusters.to_string(), count(synced), count(healthy)];
        let read = |report: &Value| {
            let summary = &report["statuses"]["summary"];
            ["clusters", "synced", "healthy"].map(|key| summary[key].as_str().unwrap_or_default().to_owned())
        };
        let reports = self.load.list_objects(REPORTS, read).await?;
        ensure!(
            reports.len() == self.sets.len() && reports.iter().all(|report| *report == expected),
            "not {expected:?} in each of {}: {reports:?}",
            self.sets.len()
        );
        Ok(())
    }
}

/// Returns Argo CD's status of an Application that is synced or not, and healthy or not.
fn status([synced, healthy]: [bool; 2]) -> Value {
    let word = |flag: bool, yes, no| if flag { yes } else { no };
    let (sync, health) = (
        word(synced, "Synced", "OutOfSync"),
        word(healthy, "Healthy", "Progressing"),
    );
    let object = |at: usize| {
        json!({
            "group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": format!("web-{at}"),
            "status": sync, "health": {"status": health},
        })
    };
    json!({
        "sync": {"status": sync, "revision": "0123456789abcdef0123456789abcdef01234567"},
        "health": {"status": health, "lastTransitionTime": now()},
        "reconciledAt": now(),
        "resources": (0..OBJECTS).map(object).collect::<Vec<_>>(),
    })
}
