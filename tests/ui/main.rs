//! Tests of the extension of Argo CD's UI: its own tests in a real browser, and a check that it shows the health of a work that
//! the program computes.
//!
//! Without a browser, or Node.js to build with, the test fails and names what is missing.

#![allow(
    clippy::disallowed_methods,
    reason = "clippy.toml restricts the program; tests may read files and the environment"
)]

use anyhow::{Context, Result, ensure};
use ocm::health::{Clock, evaluate};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// The programs that its tests need.
const PROGRAMS: [&str; 4] = ["node", "npm", "chromium", "chromedriver"];

fn is_installed(program: &str) -> bool {
    let mut version = Command::new(program);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

#[test]
fn ui_tests_pass() -> Result<()> {
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|program| !is_installed(program)).collect();
    ensure!(
        missing.is_empty(),
        "not on the PATH: {}: run `cargo xtask setup` with the PATH that it prints",
        missing.join(", ")
    );
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/ui/test.sh")).output()?;
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    ensure!(
        output.status.success(),
        "ui/test.sh: {}\n{}",
        output.status,
        text.concat()
    );
    Ok(())
}

#[test]
fn ui_and_program_agree_on_health() -> Result<()> {
    agree(include_str!("../../ui/test/health_cases.json"))?;
    agree(include_str!("../../ui/test/verdict_cases.json"))
}

fn agree(cases: &str) -> Result<()> {
    let case: Value = serde_json::from_str(cases)?;
    let at = case["at"].as_str().context("a time")?.parse()?;
    let works = case["works"].as_array().context("works")?;
    assert!(works.len() >= 40);
    for case in works {
        let work = &case["work"];
        let evaluated = evaluate(&work.to_string(), &Clock::at(at)).map_err(anyhow::Error::msg)?;
        let name = &work["metadata"]["name"];
        assert_eq!(evaluated.health.name(), case["health"], "{name}");
        let objects = evaluated
            .objects
            .iter()
            .map(|it| json!([it.kind, it.name, it.health.name(), it.message]));
        assert_eq!(objects.collect::<Value>(), case["objects"], "{name}");
    }
    Ok(())
}
