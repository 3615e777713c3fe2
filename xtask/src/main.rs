//! Tasks of contributors: `cargo xtask test`, `cargo xtask sbom`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

mod sbom;
mod test_run;

const USAGE: &str = "\
usage: cargo xtask test
       cargo xtask sbom [--target TRIPLE]

test   installs the packages that the tests need, builds the real components, and runs all tests
sbom   prints the bill of materials of the program, as CycloneDX 1.5 JSON

  --target TRIPLE   for which the program is built (default: x86_64-unknown-linux-gnu)
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
        Some("test") => test_run::run(),
        Some("sbom") => {
            let mut target = "x86_64-unknown-linux-gnu".to_owned();
            while let Some(option) = arguments.next() {
                match option.as_str() {
                    "--target" => target = arguments.next().context("--target needs a triple")?,
                    _ => bail!("unknown option {option}\n{USAGE}"),
                }
            }
            let text = serde_json::to_string_pretty(&sbom::of(&target)?)?;
            Ok(writeln!(io::stdout(), "{text}")?)
        }
        Some("help" | "--help" | "-h") => Ok(write!(io::stdout(), "{USAGE}")?),
        _ => bail!("no command\n{USAGE}"),
    }
}
