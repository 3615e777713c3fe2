//! Runs all tests on a fresh machine: installs the missing packages, builds the real components, and tests the image.

use crate::{output, root, succeed};
use anyhow::{Result, bail, ensure};
use std::process::Command;
use std::time::Instant;

/// The programs of toolchains, which packages of Linux distributions have in versions that are too old.
const TOOLCHAINS: &[(&str, &str)] = &[
    (
        "go",
        "Go 1.26 or newer: tests compare the program with the Go libraries of Kubernetes. It downloads Go 1.27, which Argo CD needs",
    ),
    (
        "node",
        "Node.js 20 or newer: it builds and tests the extension of Argo CD's pages",
    ),
    ("npm", "part of Node.js"),
];

/// The programs that tests run, each with its package on Debian and Ubuntu.
const PROGRAMS: &[(&str, &str)] = &[
    ("buildah", "buildah"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("docker-registry", "docker-registry"),
    ("git", "git"),
    ("jq", "jq"),
    ("openssl", "openssl"),
    ("promtool", "prometheus"),
    ("redis-server", "redis-server"),
    ("script", "bsdutils"),
    ("setpriv", "util-linux"),
    ("skopeo", "skopeo"),
];

/// Go's settings for the real components: they need a fifth less time if their memory is cleaned up less often.
const MORE_MEMORY: [(&str, &str); 2] = [("GOGC", "400"), ("GOMEMLIMIT", "1GiB")];

/// Installs what is missing, and runs all tests of the workspace, and of the image as root.
pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    let step = |name: &str| eprintln!("\n=== {name} (after {} s)", started.elapsed().as_secs());
    step("required programs");
    let absent: Vec<String> = TOOLCHAINS
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(program, about)| format!("missing: {program} ({about})"))
        .collect();
    ensure!(absent.is_empty(), "{}", absent.join("\n"));
    install(&missing_packages(is_installed))?;
    // The tests would build them too, but without showing the progress.
    step("real components: Kubernetes, OCM, Argo CD (about 20 minutes if nothing is cached)");
    succeed(&mut cargo(&["run", "--package", "testbed", "--", "build"])?)?;
    step("tests");
    succeed(cargo(&["test", "--workspace"])?.envs(MORE_MEMORY))?;
    if is_root()? {
        step("image");
        succeed(&mut Command::new(root()?.join(".ci/image")))?;
        step("all tests passed");
    } else {
        // As root, it would leave files in the target folder that its owner cannot change.
        step("all tests passed, without those of the image, which need root: run .ci/image as root");
    }
    Ok(())
}

/// Returns the packages of the programs that are missing.
fn missing_packages(is_installed: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let missing = PROGRAMS.iter().filter(|(program, _)| !is_installed(program));
    missing.map(|&(_, package)| package).collect()
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // setpriv and redis-server may be in a folder that is not on the PATH of every user.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).any(|file| file.is_file())
}

/// Installs packages on Debian and Ubuntu; elsewhere, names them.
fn install(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if !is_installed("apt-get") {
        bail!("install the programs of these Debian packages, and run this again: {list}");
    }
    let is_root = is_root()?;
    eprintln!(
        "installing with apt-get{}: {list}",
        if is_root { "" } else { ", by sudo" }
    );
    let apt_get = |words: &[&str]| {
        let mut command = Command::new(if is_root { "env" } else { "sudo" });
        if !is_root {
            command.arg("env");
        }
        succeed(command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(words))
    };
    apt_get(&["update", "-q"])?;
    apt_get(&[&["install", "-qy", "--no-install-recommends"], packages].concat())
}

fn is_root() -> Result<bool> {
    Ok(output(Command::new("id").arg("-u"))? == "0")
}

/// Returns cargo at the root of the repository. With `CI=true`, tests fail where they would otherwise skip what a tool is missing for.
fn cargo(words: &[&str]) -> Result<Command> {
    let mut command = Command::new(env!("CARGO"));
    command.args(words).current_dir(root()?).env("CI", "true");
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_packages_of_missing_programs_only() {
        assert_eq!(missing_packages(|_| true), [""; 0]);
        assert_eq!(
            missing_packages(|program| !["chromedriver", "promtool"].contains(&program)),
            ["chromium-driver", "prometheus"]
        );
    }

    #[test]
    fn finds_programs_on_the_path() {
        assert!(is_installed("env"));
        assert!(!is_installed("no-such-program"));
    }
}
