//! The configuration and the inputs of property tests.
//!
//! By default, the tests run the same fixed number of inputs on every machine. `PROPTEST_CASES` sets another number for each
//! property, with a random seed unless `PROPTEST_RNG_SEED` sets one.

#![expect(
    clippy::disallowed_methods,
    reason = "whoever runs the tests chooses by the environment"
)]

mod glob;
mod inputs;
pub mod status;
pub mod works;

pub use glob::glob_matches;
pub use inputs::{hostile_json, hostile_text, is_plain_line, mutated, tampered};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::fmt::Debug;
use std::panic::resume_unwind;
use std::{env, thread};

/// The number of bytes of stack of a property in [`holds`]: as much as `manifest::yaml` needs for the deepest document.
pub const STACK: usize = 64 << 20;

/// The default seed.
const SEED: u64 = 19;

/// Returns the configuration of a property that runs `cases` inputs by default.
///
/// Failing inputs are printed and not stored in a file: they become unit tests.
#[must_use]
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
