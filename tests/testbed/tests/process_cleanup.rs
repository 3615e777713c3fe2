//! Tests that no process of a testbed outlives its test, however that ends.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use testbed::process::{self, Process};
use testbed::{Hub, ManagedClusterOptions};

/// The environment variable that marks this process as the one that is killed.
const VICTIM: &str = "TESTBED_VICTIM";

const POLL: Duration = Duration::from_millis(20);

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

    let started = Instant::now();
    drop((hub, cluster1));
    println!("stopped after {:?}", started.elapsed());
    // The children of the processes are killed with them, but the kernel needs a moment to reap them.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !processes_of(&folder).is_empty() {
        assert!(Instant::now() < deadline, "{:?}", processes_of(&folder));
        tokio::time::sleep(POLL).await;
    }
    assert!(!folder.exists());
    Ok(())
}

#[test]
fn killed_test_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    // Not with `process::command`: only the death of this process may end its child.
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "starts_a_process_and_waits", "--nocapture"]);
    command.env(VICTIM, folder.path());
    let test = Process::start("test", command, &log).unwrap();
    let child = loop {
        let printed = fs::read_to_string(&log).unwrap();
        if let Some((_, id)) = printed.split_once("child ")
            && let Some((id, _)) = id.split_once('\n')
            && command_line(id).starts_with("sleep")
        {
            break id.to_owned();
        }
        std::thread::sleep(POLL);
    };

    drop(test);
    let deadline = Instant::now() + Duration::from_secs(60);
    while command_line(&child).starts_with("sleep") {
        assert!(Instant::now() < deadline, "{child} is still running");
        std::thread::sleep(POLL);
    }
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
