//! How properties are tested with random input.
//!
//! An ordinary run of the tests tries the same fixed number of inputs on every machine. `PROPTEST_CASES` sets another number for each
//! property, with a random seed unless `PROPTEST_RNG_SEED` sets one.

#![expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests chooses by the environment"
)]

mod inputs;

pub(crate) use inputs::{hostile_json, hostile_text, is_plain_line, mutated, tampered};

use crate::yaml;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::fmt::Debug;
use std::panic::resume_unwind;
use std::{env, thread};

/// The seed of ordinary runs.
const SEED: u64 = 19;

/// Returns the configuration of a property that ordinary runs try with `cases` inputs.
///
/// Inputs that fail are printed and not kept in a file: they become unit tests.
pub(crate) fn config(cases: u32) -> Config {
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

/// Tests that `property` does not panic for any input of a strategy, on a thread with the stack that reading YAML needs.
pub(crate) fn holds<S: Strategy>(
    cases: u32,
    strategy: impl FnOnce() -> S + Send,
    property: impl Fn(S::Value) + Send + Sync,
) where
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
        let thread = thread::Builder::new().stack_size(yaml::STACK);
        thread.spawn_scoped(scope, test).expect("a thread").join()
    });
    if let Err(panic) = result {
        resume_unwind(panic);
    }
}

/// Ordinary runs try the same inputs each time.
#[test]
fn ordinary_runs_are_deterministic() {
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
