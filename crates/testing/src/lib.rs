//! The configuration and the inputs of property tests.
//!
//! By default, the tests run the same fixed number of inputs on every machine. `PROPTEST_CASES` sets another number for each
//! property, with a random seed unless `PROPTEST_RNG_SEED` sets one. `TEST_SEEDS` sets the seeds of tests with random histories.

#![expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests chooses by the environment"
)]

mod health_cases;
mod inputs;
mod patch;
pub mod status;
pub mod works;

pub use health_cases::{HealthCase, health_cases};
pub use inputs::{hostile_json, hostile_text, is_plain_line, mutated, tampered};
pub use patch::{create_patch, merge};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::Value;
use std::fmt::Debug;
use std::ops::Range;
use std::panic::resume_unwind;
use std::{env, thread};

/// Returns the status, the reason and the message of a condition; each is empty if there is none.
pub fn read_condition<'o>(object: &'o Value, kind: &str) -> [&'o str; 3] {
    let conditions = object["status"]["conditions"].as_array();
    let condition = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == kind);
    ["status", "reason", "message"].map(|key| {
        condition
            .and_then(|condition| condition[key].as_str())
            .unwrap_or_default()
    })
}

/// The number of bytes of stack of a property in [`holds`]: as much as `manifest::yaml` needs for the deepest document.
pub const STACK: usize = 64 << 20;

/// The default seed.
const SEED: u64 = 19;

/// The environment variable with the seeds of tests with random histories: one such as `57`, or several such as `1000..2000`.
pub const SEEDS: &str = "TEST_SEEDS";

/// Returns the seeds of a test with random histories, which runs the first `count` by default.
///
/// # Panics
/// Panics if the environment variable has another form.
pub fn seeds(count: u64) -> Range<u64> {
    env::var(SEEDS).map_or(1..count + 1, |text| read_seeds(&text).expect("a seed, or FIRST..END"))
}

fn read_seeds(text: &str) -> Option<Range<u64>> {
    let (first, end) = match text.split_once("..") {
        Some((first, end)) => (first.parse().ok()?, end.parse().ok()?),
        None => (text.parse().ok()?, text.parse::<u64>().ok()?.checked_add(1)?),
    };
    Some(first..end)
}

/// Returns the configuration of a property that runs `cases` inputs by default.
///
/// Failing inputs are printed and not stored in a file: they become unit tests.
pub fn config(cases: u32) -> Config {
    let by_hand = Config {
        failure_persistence: None,
        ..Config::default()
    };
    if env::var_os("PROPTEST_CASES").is_some() {
        return by_hand;
    }
    Config {
        cases,
        rng_seed: RngSeed::Fixed(SEED),
        ..by_hand
    }
}

/// Returns the two cells of each line of a table, which are separated by `=>`.
pub fn rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    let rows = table.lines().filter(|line| !line.trim().is_empty());
    rows.map(|line| line.trim_start().split_once(" => ").expect("two cells"))
}

/// Checks that `property` does not panic for any input of a strategy, on a thread with the stack ([`STACK`]) that reading YAML
/// needs.
pub fn holds<S: Strategy>(cases: u32, strategy: impl FnOnce() -> S + Send, property: impl Fn(S::Value) + Send + Sync)
where
    S::Value: Debug,
{
    let test = || {
        let test = |input| {
            property(input);
            Ok(())
        };
        if let Err(error) = TestRunner::new(config(cases)).run(&strategy(), test) {
            panic!("{error}");
        }
    };
    let result = thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK);
        thread.spawn_scoped(scope, test).expect("a thread").join()
    });
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

#[test]
fn reads_one_seed_or_a_range() {
    let read = ["57", "1000..2000", "", "1..", "a"].map(read_seeds);
    assert_eq!(read, [Some(57..58), Some(1000..2000), None, None, None]);
}

/// Checks that default runs use the same inputs each time.
#[test]
fn default_runs_are_deterministic() {
    if env::var_os("PROPTEST_CASES").is_some() {
        return;
    }
    let inputs = || {
        let seen = std::sync::Mutex::new(Vec::new());
        holds(20, hostile_text, |text| seen.lock().expect("no panic").push(text));
        seen.into_inner().expect("no panic")
    };
    assert_eq!(inputs(), inputs());
    assert_eq!(inputs().len(), 20);
}
