//! Runs the tests with random input again and again, each time with other input, until one fails.

use crate::root;
use anyhow::{Context, Result, bail};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The number of histories in one round.
const HISTORIES: u64 = 200;
/// The number of inputs of each property in one round.
const CASES: u64 = 2_000;

/// Runs rounds for these minutes, or until it is stopped.
pub(crate) fn run(minutes: Option<u64>) -> Result<()> {
    let limit = minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let started = Instant::now();
    let first = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() << 20;
    for round in 0.. {
        if limit.is_some_and(|limit| started.elapsed() >= limit) {
            break;
        }
        let seed = first + round * HISTORIES;
        step(&format!(
            "TEST_SEEDS={seed}..{} cargo test --profile soak -p controller --lib random_events",
            seed + HISTORIES
        ))?;
        step(&format!(
            "PROPTEST_CASES={CASES} PROPTEST_RNG_SEED={seed} cargo test --profile soak --workspace --lib -- --skip random_events"
        ))?;
        let passed = round + 1;
        eprintln!(
            "=== {} histories and {} inputs of each property passed (after {} s)",
            passed * HISTORIES,
            passed * CASES,
            started.elapsed().as_secs()
        );
    }
    Ok(())
}

/// Runs a command, which starts with its environment variables. If it fails, its last lines name the failing input.
fn step(command: &str) -> Result<()> {
    eprintln!("=== {command}");
    let status = Command::new("env")
        .args(command.split(' '))
        .current_dir(root()?)
        .status();
    let status = status.with_context(|| format!("cannot run {command}"))?;
    if !status.success() {
        bail!("failed; repeat it with: {command}");
    }
    Ok(())
}
