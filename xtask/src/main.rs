//! Tasks of contributors: `cargo xtask test`, `setup`, `soak`, `mutants`, `conformance`, `docs`, `release`, `sbom`, `schema` and
//! `kinds`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use release::ReleaseDestination;

mod conformance;
mod docs;
mod kinds;
mod mutants;
mod release;
mod sbom;
mod schema;
mod setup;
mod soak;
mod suites;
mod test_run;

/// The program, and its package.
const PROGRAM: &str = "argocd-ocm-cmp";

/// Tasks of contributors.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Install what the tests need, build the real components, and run all tests
    Test {
        /// Only the tests without real components, which need neither Go nor Node.js
        #[arg(long)]
        quick: bool,
    },
    /// Install what the tests need: packages, Go and Node.js; print the PATH with them
    Setup,
    /// Run the tests with random input again and again, each time with other input, until one fails or it is stopped
    Soak {
        /// The time after which it stops
        minutes: Option<u64>,
    },
    /// Check that a unit test finds each mistake in xtask/mutants.txt, or those in files whose path contains PART
    Mutants {
        /// Exchange operators at NUMBER places of each FILE instead, and print how many of these mistakes are found
        #[arg(long, value_name = "NUMBER")]
        sample: Option<usize>,
        /// A part of a path, or files with --sample
        #[arg(value_name = "PART|FILE")]
        files: Vec<String>,
    },
    /// Render the charts, kustomizations and manifests of checkouts, and compare the objects with those of Argo CD's own code
    Conformance {
        /// The checkouts
        #[arg(required = true)]
        folders: Vec<String>,
    },
    /// Build the documentation as a site in target/docs, and install mdBook the first time
    Docs,
    /// Build programs for amd64 and arm64, the image, the chart, bills of materials and checksums, and push image and chart
    Release {
        /// Destination, such as oci://ghcr.io/argocd-ocm-cmp; all files are also in target/dist then
        #[arg(long, value_name = "FOLDER|oci://REGISTRY")]
        to: String,
        /// Existing programs, such as amd64/argocd-ocm-cmp, instead of compiling them
        #[arg(long, value_name = "FOLDER")]
        programs: Option<PathBuf>,
    },
    /// Print the bill of materials of the program, as CycloneDX 1.5 JSON
    Sbom {
        /// The target for which the program is built
        #[arg(long, value_name = "TRIPLE", default_value = "x86_64-unknown-linux-gnu")]
        target: String,
    },
    /// Write the fields of Kubernetes' kinds, with which generate compares manifests, from Kubernetes' OpenAPI
    Schema,
    /// Add the custom kinds that the CRDs in folders define to those whose plural and scope generate knows
    Kinds {
        /// The folders with CRDs
        #[arg(required = true)]
        folders: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Task::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Test { quick: false } => test_run::run(),
        Task::Test { quick: true } => test_run::run_quick(),
        Task::Setup => Ok(writeln!(io::stdout(), "{}", setup::everything()?.display())?),
        Task::Soak { minutes } => soak::run(minutes),
        Task::Mutants { sample: None, files } => mutants::run(files.first().map(String::as_str)),
        Task::Mutants {
            sample: Some(number),
            files,
        } => mutants::run_sample(number, &files),
        Task::Conformance { folders } => conformance::run(&folders),
        Task::Docs => docs::run(),
        Task::Release { to, programs } => release::run(&ReleaseDestination::new(&to), programs.as_deref()),
        Task::Sbom { target } => {
            let text = serde_json::to_string_pretty(&sbom::build_sbom(&target)?)?;
            Ok(writeln!(io::stdout(), "{text}")?)
        }
        Task::Schema => schema::run(),
        Task::Kinds { folders } => kinds::run(&folders),
    }
}

/// Returns the folder of the repository.
fn root() -> Result<&'static Path> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.context("the folder of xtask has a parent")
}

/// Returns the text of a key such as `version = "1.2.3"` in a TOML file, which is alone on its line.
fn toml_text<'t>(toml: &'t str, key: &str) -> Option<&'t str> {
    let mut lines = toml.lines();
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}

/// Runs a command, and returns its output without surrounding spaces, or an error if it fails.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", errors.trim());
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Runs a command, and returns an error if it fails.
fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}
