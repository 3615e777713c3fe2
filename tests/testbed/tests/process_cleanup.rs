//! Tests that no process of a testbed outlives its test, however that ends.

use std::fs;
use std::path::Path;
use std::process::Command;

use testbed::process::{self, Process};
use testbed::{Hub, ManagedClusterOptions, wait};

/// The environment variable that marks this process as the one that is killed.
const VICTIM: &str = "TESTBED_VICTIM";

#[tokio::test]
async fn dropped_hub_leaves_no_process_or_folder() -> anyhow::Result<()> {
    let hub = Hub::start().await?;
    let cluster1 = hub
        .add_managed_cluster("cluster1", ManagedClusterOptions::default())
        .await?;
    let folder = hub
        .logs()
        .parent()
        .expect("logs are in the testbed's folder")
        .to_owned();
    let running = processes_of(&folder);
    assert!(running.len() >= 8, "{running:?}");

    drop((hub, cluster1));
    // The children of the processes are killed with them, but the kernel needs a moment to reap them.
    let ended = async || processes_of(&folder).is_empty().then_some(());
    wait::eventually("no process is left", wait::DEADLINE, ended).await?;
    assert!(!folder.exists());
    Ok(())
}

#[tokio::test]
async fn killed_test_leaves_no_process() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("log");
    // Not with `process::command`: only the death of this process may end its child.
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--exact", "starts_a_process_and_waits", "--nocapture"]);
    command.env(VICTIM, folder.path());
    let test = Process::start("test", command, &log)?;
    let started = async || {
        let printed = fs::read_to_string(&log).ok()?;
        let (id, _) = printed.split_once("child ")?.1.split_once('\n')?;
        command_line(id).starts_with("sleep").then(|| id.to_owned())
    };
    let child = wait::eventually("the child runs", wait::DEADLINE, started).await?;

    drop(test);
    let ended = async || (!command_line(&child).starts_with("sleep")).then_some(());
    wait::eventually("the child has ended", wait::DEADLINE, ended).await
}

#[test]
fn starts_a_process_and_waits() {
    let Some(folder) = std::env::var_os(VICTIM) else {
        return;
    };
    let folder = Path::new(&folder);
    let mut command = process::command("sleep", folder);
    command.arg("1000");
    let child = Process::start("sleep", command, &folder.join("sleep.log")).unwrap();
    println!("child {}", child.id());
    loop {
        std::thread::park();
    }
}

fn command_line(id: &str) -> String {
    fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default()
}

/// Returns the command lines of all processes that name the folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_string_lossy();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok())
        .filter(|line| line.contains(&*folder))
        .collect()
}
