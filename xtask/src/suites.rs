//! Runs the suites of the workspace side by side: most of them mostly wait for real components.

use crate::root;
use crate::test_run::{NO_COMPONENTS, QUICK, WITH_COMPONENTS, left_out};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The number of suites that run at the same time, beside those in [`SPARE`]. More would only wait for the two cores of a usual CI
/// machine.
const LANES: usize = 2;

/// The suites that compute, in their order. They run one after the other, and use what the suites in the [`LANES`], which mostly wait,
/// leave of the processors. The first ones need no real component, and run while these are built.
const SPARE: &[&str] = &[UNIT_TESTS, "generate_cases", "go_parity", "render_cases", "health_data"];

/// The number of suites in [`SPARE`] that do not wait for the components.
const WITHOUT_COMPONENTS: usize = 2;

/// The niceness of the suites in [`SPARE`]. A higher one would not leave enough to tests with deadlines of seconds.
const SPARE_NICENESS: &str = "5";

/// The suites that take longest, which start first, with the number of their tests that run at the same time; `None` for the number of
/// cores.
const LONGEST: &[(&str, Option<usize>)] = &[
    ("with_argocd", Some(4)),
    ("with_faults", Some(4)),
    ("with_agents", None),
    ("docs", None),
];

/// The time between two lines about the progress.
const PROGRESS: Duration = Duration::from_secs(60);

/// The suite of all unit tests.
const UNIT_TESTS: &str = "unit tests";

/// A program of integration tests, or the programs of all unit tests.
#[derive(Debug)]
struct Suite {
    name: String,
    programs: Vec<TestProgram>,
}

/// A compiled program of tests, or a part of its tests.
#[derive(Clone, Debug)]
struct TestProgram {
    path: PathBuf,
    /// The folder of its package, in which cargo runs it.
    package: PathBuf,
    /// The names of tests to run, or to leave out.
    arguments: Vec<&'static str>,
    /// If false, its tests pass without the real components.
    has_components: bool,
}

impl TestProgram {
    /// Returns the part of `cargo xtask test --quick`, and the rest.
    fn split(self, name: &str) -> Vec<Self> {
        // It has one test for each case, and its harness takes no list of names.
        if name == "generate_cases" {
            return vec![Self {
                has_components: false,
                ..self
            }];
        }
        let quick = Self {
            arguments: left_out().collect(),
            has_components: false,
            ..self.clone()
        };
        let arguments = WITH_COMPONENTS.to_vec();
        vec![quick, Self { arguments, ..self }]
    }
}

impl Suite {
    /// Returns its position in [`LONGEST`].
    fn position(&self) -> usize {
        let position = LONGEST.iter().position(|(name, _)| *name == self.name);
        position.unwrap_or(LONGEST.len())
    }

    /// Returns its position in [`SPARE`].
    fn spare_position(&self) -> Option<usize> {
        SPARE.iter().position(|name| *name == self.name)
    }
}

/// A message of a lane.
enum SuiteEvent {
    Started(String),
    Ended(SuiteResult),
}

#[derive(Debug)]
struct SuiteResult {
    name: String,
    has_passed: bool,
    seconds: u64,
    log: String,
}

/// The compiled tests of the workspace.
#[derive(Debug)]
pub(crate) struct Suites {
    suites: Vec<Suite>,
    /// The program that builds the real components.
    pub(crate) testbed: PathBuf,
}

impl Suites {
    /// Compiles all tests of the workspace with this cargo.
    pub(crate) fn compile(mut cargo: Command) -> Result<Self> {
        cargo.args([
            "test",
            "--workspace",
            "--no-run",
            "--message-format=json-render-diagnostics",
        ]);
        let mut child = cargo.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("the output of cargo is no pipe")?;
        let (mut suites, mut unit_tests, mut testbed) = (Vec::new(), Vec::new(), None);
        for line in BufReader::new(stdout).lines() {
            let message: Value = serde_json::from_str(&line?)?;
            let target = &message["target"];
            let texts = [&target["name"], &message["executable"], &message["manifest_path"]].map(Value::as_str);
            let [Some(name), Some(path), Some(manifest)] = texts else {
                continue;
            };
            let path = PathBuf::from(path);
            if message["profile"]["test"] == false {
                testbed = testbed.or((name == "testbed").then_some(path));
                continue;
            }
            let package = Path::new(manifest)
                .parent()
                .context("a manifest is in a folder")?
                .to_owned();
            let is_unit_test = target["kind"][0] != "test";
            let program = TestProgram {
                path,
                package,
                arguments: Vec::new(),
                has_components: !is_unit_test,
            };
            if is_unit_test {
                unit_tests.push(program);
                continue;
            }
            let is_quick = QUICK.contains(&name);
            suites.push(Suite {
                name: name.to_owned(),
                programs: if is_quick { program.split(name) } else { vec![program] },
            });
        }
        ensure!(child.wait()?.success(), "the tests do not compile");
        suites.push(Suite {
            name: UNIT_TESTS.to_owned(),
            programs: unit_tests,
        });
        suites.sort_by_key(|suite| (suite.spare_position(), suite.position(), suite.name.clone()));
        Ok(Self {
            suites,
            testbed: testbed.context("cargo has not compiled the program testbed")?,
        })
    }

    /// Runs all suites, prints the output of each when it ends, and at the end a table. Those in [`SPARE`] begin before `build`, which
    /// builds the components. `variables` are added to the environment.
    ///
    /// # Errors
    /// The names of all suites that fail.
    pub(crate) fn run(self, variables: &[(&str, &OsStr)], build: impl FnOnce() -> Result<()>) -> Result<()> {
        let logs = root()?.join("target/suites");
        fs::create_dir_all(&logs)?;
        let mut results: Vec<SuiteResult> = Vec::new();
        let (spare, others): (Vec<_>, Vec<_>) = self
            .suites
            .into_iter()
            .partition(|suite| suite.spare_position().is_some());
        let [spare, others] = [spare, others].map(|suites| Mutex::new(suites.into_iter()));
        let (sender, receiver) = channel();
        let (completed, components) = channel();
        thread::scope(|scope| -> Result<()> {
            let start_lane = |suites, components: Option<Receiver<()>>| {
                let (sender, logs) = (sender.clone(), &logs);
                scope.spawn(move || {
                    while let Some(suite) = take_suite(suites) {
                        let waits = suite.spare_position() == Some(WITHOUT_COMPONENTS);
                        // An error: the components could not be built.
                        if waits && components.as_ref().is_some_and(|components| components.recv().is_err()) {
                            return;
                        }
                        let _ = sender.send(Ok(SuiteEvent::Started(suite.name.clone())));
                        let _ = sender.send(run_suite(&suite, variables, logs).map(SuiteEvent::Ended));
                    }
                });
            };
            start_lane(&spare, Some(components));
            let result = build();
            if result.is_ok() {
                let _ = completed.send(());
                for _ in 0..LANES {
                    start_lane(&others, None);
                }
            }
            drop((sender, completed));
            let mut running = Vec::new();
            loop {
                match receiver.recv_timeout(PROGRESS) {
                    Ok(event) => match event? {
                        SuiteEvent::Started(name) => running.push(name),
                        SuiteEvent::Ended(result) => {
                            let verdict = if result.has_passed { "passed" } else { "FAILED" };
                            eprintln!(
                                "\n{}--- {} {verdict} after {} s",
                                result.log, result.name, result.seconds
                            );
                            running.retain(|name| *name != result.name);
                            results.push(result);
                        }
                    },
                    Err(RecvTimeoutError::Timeout) => eprintln!("{}", progress(&running, &logs)),
                    Err(RecvTimeoutError::Disconnected) => return result,
                }
            }
        })?;
        results.sort_by_key(|result| Reverse(result.seconds));
        eprint!("\n{}", table(&results));
        for result in &results {
            eprint!("{}", failures(&result.log));
        }
        let failed: Vec<_> = results.iter().filter(|result| !result.has_passed).collect();
        let names: Vec<_> = failed.iter().map(|result| result.name.as_str()).collect();
        ensure!(names.is_empty(), "failed: {}", names.join(", "));
        Ok(())
    }
}

fn take_suite(suites: &Mutex<std::vec::IntoIter<Suite>>) -> Option<Suite> {
    suites.lock().unwrap_or_else(PoisonError::into_inner).next()
}

fn log_of(suite: &str, logs: &Path) -> PathBuf {
    logs.join(format!("{}.log", suite.replace(' ', "-")))
}

/// Returns a line with the number of tests that have ended in each running suite.
fn progress(running: &[String], logs: &Path) -> String {
    let counts = running.iter().map(|name| {
        let log = fs::read(log_of(name, logs)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let ended = log
            .lines()
            .filter(|line| line.ends_with(" ... ok") || line.ends_with(" ... FAILED"));
        format!("{name} ({} tests done)", ended.count())
    });
    format!("running: {}", counts.collect::<Vec<_>>().join(", "))
}

/// Runs the programs of a suite as cargo does, with their output in a file of `logs`. It does not use cargo, which would wait for other
/// commands that compile, such as clippy.
fn run_suite(suite: &Suite, variables: &[(&str, &OsStr)], logs: &Path) -> Result<SuiteResult> {
    let started = Instant::now();
    let path = log_of(&suite.name, logs);
    let log = File::create(&path)?;
    let mut has_passed = true;
    for program in &suite.programs {
        let niceness = suite.spare_position().map_or("0", |_| SPARE_NICENESS);
        let mut command = Command::new("nice");
        command
            .args(["-n", niceness])
            .arg(&program.path)
            .current_dir(&program.package)
            .env("CARGO_MANIFEST_DIR", &program.package);
        command.args(&program.arguments).envs(variables.iter().copied());
        if !program.has_components {
            command.envs([NO_COMPONENTS]);
        }
        if let Some((_, Some(threads))) = LONGEST.get(suite.position()) {
            command.env("RUST_TEST_THREADS", threads.to_string());
        }
        let status = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .status();
        has_passed &= status.with_context(|| format!("cannot run {command:?}"))?.success();
    }
    Ok(SuiteResult {
        name: suite.name.clone(),
        has_passed,
        seconds: started.elapsed().as_secs(),
        log: String::from_utf8_lossy(&fs::read(&path)?).into_owned(),
    })
}

/// Returns a line for each suite, the total, and the ignored tests with their reasons.
fn table(results: &[SuiteResult]) -> String {
    let mut text = format!("{:>7}  {:>6}  {:>7}  suite\n", "seconds", "passed", "ignored");
    let mut total = [0, 0];
    for result in results {
        let [passed, ignored] = ["passed", "ignored"].map(|what| count_tests(&result.log, what));
        total = [total[0] + passed, total[1] + ignored];
        let note = if result.has_passed { "" } else { " FAILED" };
        let _ = writeln!(
            text,
            "{:>7}  {passed:>6}  {ignored:>7}  {}{note}",
            result.seconds, result.name
        );
    }
    let _ = writeln!(text, "{:>7}  {:>6}  {:>7}  all", "", total[0], total[1]);
    for result in results {
        for line in result.log.lines().filter(|line| line.contains(" ... ignored")) {
            let _ = writeln!(text, "{}: {line}", result.name);
        }
    }
    text
}

/// Returns the name of each failed test with its error, without the logs before it and the frames of its backtrace.
fn failures(log: &str) -> String {
    const LINES: usize = 8;
    let mut text = String::new();
    let mut left = 0;
    for line in log.lines() {
        if line.starts_with("---- ") && line.ends_with(" stdout ----") {
            left = 1;
        } else if line.starts_with("Error: ") || line.starts_with("thread '") {
            left = LINES;
        } else if ["Stack backtrace:", "stack backtrace:", "failures:"].contains(&line.trim()) {
            left = 0;
        }
        if left > 0 && !line.trim().is_empty() {
            let _ = writeln!(text, "{line}");
            left -= 1;
        }
    }
    text
}

/// Returns the sum of a number such as `141 passed` in the results of a suite's programs.
fn count_tests(log: &str, what: &str) -> usize {
    let results = log.lines().filter(|line| line.starts_with("test result: "));
    let numbers = results.flat_map(|line| line.split([';', '.'])).filter_map(|part| {
        let (number, word) = part.trim().split_once(' ')?;
        (word == what).then(|| number.parse::<usize>().ok())?
    });
    numbers.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_repeated_without_backtraces() {
        let log = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\n---- etcd\nready\nError: timed out\n\n\
                   Stack backtrace:\n   0: anyhow\n---- c stdout ----\n\nthread 'c' panicked at order.rs:1:\nno Job\n\nfailures:\n    b\n    c\n";
        assert_eq!(
            failures(log),
            "---- b stdout ----\nError: timed out\n---- c stdout ----\nthread 'c' panicked at order.rs:1:\nno Job\n"
        );
    }

    #[test]
    fn table_counts_passed_and_ignored_tests_of_each_suite() {
        let log = "test a ... ok\ntest b ... ignored, needs a checkout\n\
                   test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                   test result: ok. 41 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 1.00s\n";
        let result = |name: &str, has_passed, seconds| SuiteResult {
            name: name.to_owned(),
            has_passed,
            seconds,
            log: log.to_owned(),
        };
        assert_eq!(
            table(&[result("with_agents", true, 281), result("docs", false, 95)]),
            "seconds  passed  ignored  suite\n\
             \x20   281      42        1  with_agents\n\
             \x20    95      42        1  docs FAILED\n\
             \x20            84        2  all\n\
             with_agents: test b ... ignored, needs a checkout\n\
             docs: test b ... ignored, needs a checkout\n"
        );
    }
}
