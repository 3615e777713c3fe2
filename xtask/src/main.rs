//! Tasks of contributors: `cargo xtask test`, `setup`, `soak`, `mutants`, `conformance`, `docs`, `release`, `sbom`, `schema` and
//! `kinds`.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
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

const USAGE: &str = "\
usage: cargo xtask test [--quick]
       cargo xtask setup
       cargo xtask soak [MINUTES]
       cargo xtask mutants [PART]
       cargo xtask mutants --sample NUMBER FILE…
       cargo xtask conformance FOLDER…
       cargo xtask docs
       cargo xtask release --to FOLDER|oci://REGISTRY [--programs FOLDER]
       cargo xtask sbom [--target TRIPLE]
       cargo xtask schema
       cargo xtask kinds FOLDER...

test      installs what the tests need, builds the real components, and runs all tests
setup     installs what the tests need: packages, Go and Node.js; prints the PATH with them
soak      runs the tests with random input again and again, each time with other input, until one fails or it is stopped
mutants   checks that a unit test finds each mistake in xtask/mutants.txt, or those in files whose path contains PART;
          --sample exchanges operators at NUMBER places of each file instead, and prints how many of these mistakes are found
conformance
          renders the charts, kustomizations and manifests of checkouts, and compares the objects with those of Argo CD's own code
docs      builds the documentation as a site in target/docs, and installs mdBook the first time
release   builds programs for amd64 and arm64, the image, the chart, bills of materials and checksums, and pushes image and chart
sbom      prints the bill of materials of the program, as CycloneDX 1.5 JSON
schema    writes the fields of Kubernetes' kinds, with which generate compares manifests, from Kubernetes' OpenAPI
kinds     adds the custom kinds that the CRDs in folders define to those whose plural and scope generate knows

  --quick                      only the tests without real components, which need neither Go nor Node.js
  --to FOLDER|oci://REGISTRY   destination, such as oci://ghcr.io/argocd-ocm-cmp; all files are also in target/dist then
  --programs FOLDER            existing programs, such as amd64/argocd-ocm-cmp, instead of compiling them
  --target TRIPLE              for which the program is built (default: x86_64-unknown-linux-gnu)
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("test") => match arguments.next().as_deref() {
            None => test_run::run(),
            Some("--quick") => test_run::run_quick(),
            Some(option) => bail!("unknown option {option}\n{USAGE}"),
        },
        Some("setup") => Ok(writeln!(io::stdout(), "{}", setup::everything()?.display())?),
        Some("soak") => soak::run(arguments.next().as_deref()),
        Some("mutants") => match arguments.next().as_deref() {
            Some("--sample") => {
                let number = arguments.next().context("--sample needs a number")?;
                mutants::run_sample(&number, &arguments.collect::<Vec<_>>())
            }
            part => mutants::run(part),
        },
        Some("conformance") => conformance::run(&arguments.collect::<Vec<_>>()),
        Some("docs") => docs::run(),
        Some("release") => {
            let (mut to, mut programs) = (None, None);
            while let Some(option) = arguments.next() {
                match option.as_str() {
                    "--to" => to = arguments.next(),
                    "--programs" => programs = arguments.next(),
                    _ => bail!("unknown option {option}\n{USAGE}"),
                }
            }
            let to = to.context("--to needs a folder, or a registry as oci://REGISTRY")?;
            release::run(&ReleaseDestination::new(&to), programs.as_deref().map(Path::new))
        }
        Some("sbom") => {
            let mut target = "x86_64-unknown-linux-gnu".to_owned();
            while let Some(option) = arguments.next() {
                match option.as_str() {
                    "--target" => target = arguments.next().context("--target needs a triple")?,
                    _ => bail!("unknown option {option}\n{USAGE}"),
                }
            }
            let text = serde_json::to_string_pretty(&sbom::build_sbom(&target)?)?;
            Ok(writeln!(io::stdout(), "{text}")?)
        }
        Some("schema") => schema::run(),
        Some("kinds") => kinds::run(&arguments.collect::<Vec<_>>()),
        Some("help" | "--help" | "-h") => Ok(write!(io::stdout(), "{USAGE}")?),
        _ => bail!("no command\n{USAGE}"),
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
