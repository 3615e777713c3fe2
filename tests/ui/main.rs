//! Tests of the extension of Argo CD's UI in a real browser. Its unit tests check that it shows the health that the program computes.
//!
//! Without a browser, or Node.js to build with, the test fails and names what is missing.

#![allow(
    clippy::disallowed_methods,
    reason = "clippy.toml restricts the program; tests may read files and the environment"
)]

use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use testbed::{CompleteHub, CompleteHubOptions, ObjectRef};

/// The programs that its tests need.
const PROGRAMS: [&str; 4] = ["node", "npm", "chromium", "chromedriver"];

fn is_installed(program: &str) -> bool {
    let mut version = Command::new(program);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

#[test]
fn ui_tests_pass() -> Result<()> {
    run_tests(&[], &[])
}

/// The tabs that ask a cluster send their requests through the real argocd-server, to a fake of the extension's back end. The page of a
/// cluster reads the Applications of that argocd-server.
#[tokio::test]
async fn live_tabs_work_through_argocd_server() -> Result<()> {
    let hub = CompleteHub::start(&CompleteHubOptions {
        program: env!("CARGO_BIN_EXE_argocd-ocm-cmp").into(),
        clusters: 0,
        ocm_controllers: false,
        pull: false,
    })
    .await?;
    let port = testbed::ports::free()?.to_string();
    let extension = json!({"extensions": [{
        "name": "live",
        "backend": {"services": [{"url": format!("http://127.0.0.1:{port}")}]},
    }]});
    let config = json!({"data": {"extension.config": extension.to_string()}});
    hub.patch(&ObjectRef::config_map("argocd", "argocd-cm"), &config)
        .await?;
    // Argo CD's own policy does not allow extensions, not even to its administrator.
    let policy = json!({"data": {"policy.csv": "p, role:admin, extensions, invoke, live, allow\n"}});
    hub.patch(&ObjectRef::config_map("argocd", "argocd-rbac-cm"), &policy)
        .await?;
    hub.create_application(&json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "shop"},
        "spec": {
            "project": "default",
            "source": {
                "repoURL": "https://git.example.com/shop.git",
                "path": ".",
                "plugin": {"name": "argocd-ocm-cmp", "parameters": [{"name": "clusters", "array": ["cluster2"]}]},
            },
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "cluster2"},
        },
    }))
    .await?;
    let server = hub.argocd_server().context("argocd-server runs")?;
    let password = hub.admin_password().await?;
    let variables = [
        ("ARGOCD_SERVER", server),
        ("ARGOCD_PASSWORD", password.trim()),
        ("LIVE_PORT", &port),
    ];
    run_tests(&["live"], &variables)
}

/// Runs the tests of the extension in these folders, or all.
fn run_tests(folders: &[&str], variables: &[(&str, &str)]) -> Result<()> {
    // Both install packages and write the built tests.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|program| !is_installed(program)).collect();
    ensure!(
        missing.is_empty(),
        "not on the PATH: {}: run `cargo xtask setup` with the PATH that it prints",
        missing.join(", ")
    );
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/ui/test.sh"))
        .args(folders)
        .envs(variables.iter().copied())
        .output()?;
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    ensure!(
        output.status.success(),
        "ui/test.sh: {}\n{}",
        output.status,
        text.concat()
    );
    Ok(())
}
