//! Runs the tests on a fresh machine: all of them, with the real components and the image, or only those that need no component.

use crate::suites::Suites;
use crate::{root, setup, succeed};
use anyhow::Result;
use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Go's settings for the real components: they need a fifth less time if their memory is cleaned up less often.
const MORE_MEMORY: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "1GiB")];

/// The integration tests of which most need no real component.
pub(crate) const QUICK: [&str; 3] = ["command", "docs", "generate_cases"];

/// Those of their tests that run real components, or tools that no other test needs. The full run forbids the others the components.
pub(crate) const WITH_COMPONENTS: &[&str] = &[
    "applications_of_the_pages",
    "chart::",
    "charts_are_rendered_for_the_version_of_the_hub",
    "confinement::",
    "every_annotation_of_argo_cd",
    "every_option_of_argo_cd",
    "fetching::",
    "hostile_sources::",
    "hub::hub_commands",
    "kind_page_delivers",
    "monitoring::",
    "no_message_of_a_tool_has_a_value_of_a_secret",
    "pictures::",
    "quick_start::",
    "remedies::",
];

/// The setting of the testbed that forbids the real components.
pub(crate) const NO_COMPONENTS: (&str, &str) = ("TESTBED_COMPONENTS", "none");

/// Installs what is missing, and runs all tests of the workspace, and of the image as root.
pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    let step = |name: &str| eprintln!("\n=== {name} (after {} s)", started.elapsed().as_secs());
    step("packages and toolchains");
    let path = setup::everything()?;
    step("compile the tests");
    let suites = Suites::compile(cargo(&[], &path)?)?;
    step("examples of the documentation");
    succeed(&mut cargo(&["test", "--workspace", "--doc"], &path)?)?;
    let is_root = setup::is_root()?;
    let testbed = suites.testbed.clone();
    let mut program = None;
    let build = || {
        // The tests would build them too, but without showing the progress.
        step("real components: Kubernetes, OCM, Argo CD (about 20 minutes if nothing is cached), and unit tests");
        succeed(Command::new(&testbed).arg("build").env("PATH", &path).envs(MORE_MEMORY))?;
        step("tests");
        program = is_root.then(|| start_build_for_the_image(&path)).transpose()?;
        Ok(())
    };
    let mut variables = vec![
        ("CI", OsStr::new("true")),
        ("CARGO", OsStr::new(env!("CARGO"))),
        ("PATH", &path),
    ];
    variables.extend(MORE_MEMORY.map(|(name, value)| (name, OsStr::new(value))));
    let result = suites.run(&variables, build);
    if let Some(program) = &mut program {
        if result.is_err() {
            program.kill()?;
        }
        program.wait()?;
    }
    result?;
    if is_root {
        step("image");
        succeed(Command::new(root()?.join(".ci/image")).env("PATH", &path))?;
        step("all tests passed");
    } else {
        // As root, it would leave files in the target folder that its owner cannot change.
        step("all tests passed, without those of the image, which need root: run .ci/image as root");
    }
    Ok(())
}

/// Starts the build of the program that `.ci/image` needs after the tests, which mostly wait. It prints nothing, because `.ci/image`
/// prints its errors.
fn start_build_for_the_image(path: &OsStr) -> Result<Child> {
    let mut command = Command::new("nice");
    command.args(["-n", "19", "image/static", "cargo", "build", "--release", "--locked"]);
    command
        .current_dir(root()?)
        .env("PATH", path)
        .env("CARGO_INCREMENTAL", "0");
    Ok(command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?)
}

/// Runs the tests that need no real component, neither Go nor Node.js.
pub(crate) fn run_quick() -> Result<()> {
    let started = Instant::now();
    setup::quick()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let test = |words: &[&str]| succeed(cargo(&[&["test"], words].concat(), &path)?.envs([NO_COMPONENTS]));
    test(&["--workspace", "--lib", "--bins"])?;
    let programs = QUICK.iter().flat_map(|name| ["--test", name]);
    test(&programs.chain(["--"]).chain(left_out()).collect::<Vec<_>>())?;
    let seconds = started.elapsed().as_secs();
    eprintln!("\n=== passed in {seconds} s, without the tests that run real components: cargo xtask test");
    Ok(())
}

/// Returns the arguments that leave out the tests with real components.
pub(crate) fn left_out() -> impl Iterator<Item = &'static str> {
    WITH_COMPONENTS.iter().flat_map(|name| ["--skip", name])
}

/// Returns cargo at the root of the repository. With `CI=true`, tests fail where they would otherwise skip what a tool is missing for.
fn cargo(words: &[&str], path: &OsStr) -> Result<Command> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(words)
        .current_dir(root()?)
        .env("CI", "true")
        .env("PATH", path);
    Ok(command)
}
