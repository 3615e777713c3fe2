//! Tests that no process of a testbed outlives its test, however that ends.

use std::fs;
use std::path::Path;
use std::process::Command;

use testbed::process::{self, Process};
use testbed::wait;

/// The environment variable that marks this process as the one that is killed.
const VICTIM: &str = "TESTBED_VICTIM";

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
