//! Checks that a real Prometheus accepts the exposed metrics, and every expression of the dashboard.

use super::dashboard::queries;
use super::exposed::{exposed, metrics_with_values};
use super::root;
use anyhow::{Context as _, Result, ensure};
use runtime::admin;
use std::collections::BTreeSet;
use std::fs;
use testbed::process::{Process, command};
use testbed::{ports, wait};
use tokio::net::TcpListener;

/// Returns the answer of the Prometheus at this port to `promtool`.
fn answer(port: u16, expression: &str) -> Result<String> {
    let mut promtool = std::process::Command::new("promtool");
    promtool.args(["query", "instant", &format!("http://127.0.0.1:{port}"), expression]);
    let output = promtool.output().context("promtool, of Debian's package prometheus")?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{expression}: {why}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns the names of all scraped metrics.
fn scraped(port: u16) -> Result<BTreeSet<String>> {
    let answer = answer(port, r#"count by (__name__) ({job="controller"})"#)?;
    let names = answer.lines().filter_map(|line| line.split([' ', '{']).next());
    let is_ours = |name: &&str| name.starts_with("argocd_ocm_cmp_") || name.starts_with("process_");
    Ok(names.filter(is_ours).map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_all_metrics_and_answers_dashboard_queries() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let target = listener.local_addr()?;
    let server = tokio::spawn(admin::serve(listener, metrics_with_values(), || Ok(())));
    let folder = tempfile::tempdir()?;
    let rules = root().join("monitoring/rules.yaml");
    let config = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{rules:?}]\n\
         scrape_configs:\n- job_name: controller\n  honor_labels: true\n  \
         static_configs: [{{targets: ['{target}'], labels: {{namespace: argocd}}}}]\n"
    );
    fs::write(folder.path().join("prometheus.yml"), config)?;
    let port = ports::free()?;
    let mut prometheus = command("prometheus", folder.path());
    prometheus.current_dir(folder.path());
    prometheus.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"]);
    prometheus.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    let log = folder.path().join("prometheus.log");
    let running = Process::start("prometheus", prometheus, &log)?;
    running.until_listening(port).await?;

    let expected: BTreeSet<String> = exposed()
        .iter()
        .filter(|(name, _)| *name != "argocd_ocm_cmp_memory_limit_bytes")
        .flat_map(|(name, metric)| match &*metric.kind {
            "histogram" => vec![format!("{name}_bucket"), format!("{name}_count"), format!("{name}_sum")],
            _ => vec![name.clone()],
        })
        .collect();
    let has_all = async || scraped(port).ok()?.is_superset(&expected).then_some(());
    wait::eventually("Prometheus has scraped everything", wait::DEADLINE, has_all).await?;
    let recorded = async || {
        let works = answer(port, "state:argocd_ocm_cmp_works:max").ok()?;
        works.contains(r#"namespace="argocd", state="Healthy""#).then_some(())
    };
    wait::eventually("Prometheus has recorded works", wait::DEADLINE, recorded).await?;
    let fleet = answer(port, "argocd_ocm_cmp_gitopscluster_clusters")?;
    ensure!(fleet.contains(r#"name="fleet", namespace="team""#), "{fleet}");
    for expression in queries() {
        answer(port, &expression)?;
    }
    server.abort();
    Ok(())
}
