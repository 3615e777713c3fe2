//! Measures commands as whole processes.

use super::contender::Contender;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The argument with which the benchmark starts itself to measure one command: only then do the operating system's figures for
/// finished children belong to that command alone.
pub(crate) const MEASURE: &str = "--measure";

/// The resources of a finished command: seconds of wall time, seconds of CPU, and KiB of memory at its peak.
pub(crate) type Usage = [f64; 3];

/// Runs the contenders in turn, so that a drift of the machine's speed affects all of them. One run of each comes first, to warm
/// the page cache, and does not count.
pub(crate) fn in_turn(contenders: &[Contender], runs: usize) -> Vec<Vec<Usage>> {
    let mut usages = vec![Vec::new(); contenders.len()];
    for run in 0..=runs {
        for (contender, usages) in contenders.iter().zip(&mut usages) {
            let usage = contender.command.as_deref().map(by_itself);
            usages.extend(usage.filter(|_| run > 0));
        }
    }
    usages
}

/// Measures a command in a separate process.
fn by_itself(command: &[String]) -> Usage {
    let myself = std::env::current_exe().expect("this program");
    let output = Command::new(myself)
        .arg(MEASURE)
        .args(command)
        .output()
        .expect("the program runs");
    let failure = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {failure}");
    let figures = String::from_utf8_lossy(&output.stdout);
    let mut figures = figures
        .split_whitespace()
        .map(|figure| figure.parse().expect("a number"));
    std::array::from_fn(|_| figures.next().expect("three figures"))
}

/// Runs a command to its end, reading its output through a pipe as Argo CD does.
pub(crate) fn measure(command: &[String]) -> Usage {
    let start = Instant::now();
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut buffer = vec![0; 1 << 16];
    while stdout.read(&mut buffer).expect("its output") > 0 {}
    assert!(child.wait().expect("the command ends").success(), "{command:?} failed");
    let wall = start.elapsed().as_secs_f64();
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("its usage");
    let seconds =
        |time: TimeVal| Duration::new(time.tv_sec().unsigned_abs(), 0).as_secs_f64() + time.tv_usec() as f64 / 1e6;
    let cpu = seconds(usage.user_time()) + seconds(usage.system_time());
    [wall, cpu, usage.max_rss() as f64]
}
