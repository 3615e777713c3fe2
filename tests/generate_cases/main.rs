//! Runs `generate` in each folder of `tests/data/generate` and compares its output with the files beside the input.
//!
//! Each folder is a test: `cargo test --test generate_cases hooks` runs those with `hooks` in their names, and with `--exact`
//! after `--` only that one. `tests/data/README.md` describes the files of a case.

#![allow(
    clippy::disallowed_methods,
    reason = "the walls are around the program; tests read what they like"
)]

mod differences;
#[path = "../common/expected.rs"]
mod expected;
#[path = "../common/folder.rs"]
mod folder;
#[path = "../common/program.rs"]
mod program;
#[path = "../common/works.rs"]
mod works;

use anyhow::{Context, Result, ensure};
use differences::print_differences;
use expected::compare;
use folder::entries;
use libtest_mimic::{Arguments, Failed, Trial};
use program::program_with;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use works::without_configs;

fn main() -> Result<ExitCode> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let cases = entries(&data.join("generate"))?;
    ensure!(cases.len() > 60, "only {} cases", cases.len());
    let mut trials: Vec<Trial> = cases.into_iter().map(trial).collect();
    trials.push(Trial::test("the_readme_lists_each_folder_of_data", move || {
        readme_lists_each_folder(&data).map_err(failed)
    }));
    Ok(libtest_mimic::run(&Arguments::from_args(), trials).exit_code())
}

fn trial(folder: PathBuf) -> Trial {
    let name = name_of(&folder);
    Trial::test(name, move || run(&folder).map_err(failed))
}

/// Converts an error with its context.
#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn failed(error: anyhow::Error) -> Failed {
    format!("{error:#}").into()
}

fn run(case: &Path) -> Result<()> {
    let name = name_of(case);
    let command = fs::read_to_string(case.join("command.txt")).context("command.txt")?;
    let input = case.join("input");
    let run = || program_with(&input, command.lines()).output();
    let output = run()?;
    ensure!(output == run()?, "a second run printed something else");
    let (stdout, stderr) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    let is_error = name.starts_with("error-");
    let code = output.status.code();
    ensure!(code == Some(i32::from(is_error)), "exit code {code:?}:\n{stderr}");
    ensure!(
        stdout.is_empty() || !is_error,
        "an error must leave standard output empty:\n{stdout}"
    );

    let (stdout_file, stdout) = if command.lines().any(|word| word == "json") {
        ("expected.jsonl", without_configs(&stdout))
    } else if name.starts_with("yaml-") {
        ("expected.yaml", without_configs(&stdout))
    } else {
        let differences = print_differences(&stdout, &input, name.starts_with("configs-"))?;
        ("expected.txt", differences)
    };
    let errors = compare(&case.join("expected.err"), &stderr);
    compare(&case.join(stdout_file), &stdout)?;
    errors?;
    for path in entries(case)? {
        let file = name_of(&path);
        ensure!(
            ["command.txt", "input", "expected.err", stdout_file].contains(&file.as_str()),
            "{file} is not a file of a case"
        );
    }
    Ok(())
}

fn readme_lists_each_folder(data: &Path) -> Result<()> {
    let readme = fs::read_to_string(data.join("README.md"))?;
    for path in entries(data)? {
        let name = name_of(&path);
        ensure!(
            name == "README.md" || readme.contains(&format!("| `{name}` |")),
            "tests/data/README.md has no row for {name}"
        );
    }
    Ok(())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
