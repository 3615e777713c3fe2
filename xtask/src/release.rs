//! Builds a release: the programs, the image and the chart, with bills of materials, completions, the manual and checksums. Pushes image
//! and chart if a registry is given.

use crate::{PROGRAM, output, root, sbom, succeed, toml_text};
use anyhow::{Context, Result, ensure};
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An architecture of the image.
struct Architecture {
    /// Its name in images.
    name: &'static str,
    /// Its name in Rust and qemu.
    machine: &'static str,
    /// The compiler on machines of another architecture, with its package on Debian and Ubuntu.
    compiler: &'static str,
}

const ARCHITECTURES: [Architecture; 2] = [
    Architecture {
        name: "amd64",
        machine: "x86_64",
        compiler: "x86_64-linux-gnu-gcc",
    },
    Architecture {
        name: "arm64",
        machine: "aarch64",
        compiler: "aarch64-linux-gnu-gcc",
    },
];

impl Architecture {
    fn target(&self) -> String {
        format!("{}-unknown-linux-gnu", self.machine)
    }

    fn is_own(&self) -> bool {
        self.machine == ARCH
    }
}

/// Shells with completions, and the names of the files.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "argocd-ocm-cmp"),
    ("elvish", "argocd-ocm-cmp.elv"),
    ("fish", "argocd-ocm-cmp.fish"),
    ("powershell", "argocd-ocm-cmp.ps1"),
    ("zsh", "_argocd-ocm-cmp"),
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReleaseDestination {
    Folder(PathBuf),
    /// A registry with a path, such as `ghcr.io/argocd-ocm-cmp`.
    Registry(String),
}

impl ReleaseDestination {
    /// Parses a folder, or a registry as `oci://REGISTRY/PATH`.
    pub(crate) fn new(text: &str) -> Self {
        match text.strip_prefix("oci://") {
            Some(registry) => Self::Registry(registry.trim_end_matches('/').to_owned()),
            None => Self::Folder(text.into()),
        }
    }
}

/// Builds a release. `programs` has a folder for each architecture, such as `amd64/argocd-ocm-cmp`; without it, compiles all of them.
pub(crate) fn run(destination: &ReleaseDestination, programs: Option<&Path>) -> Result<()> {
    let root = root()?;
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let version = toml_text(&manifest, "version").context("Cargo.toml has no version")?;
    let folder = empty_folder(destination, root)?;
    let programs = match programs {
        Some(programs) => programs
            .canonicalize()
            .with_context(|| programs.display().to_string())?,
        None => compile_all(root, &root.join("target/programs"))?,
    };
    let architectures = of_programs(&programs)?;
    let parts = shared_parts(&folder, &programs, &architectures)?;
    let mut files = Vec::new();
    for architecture in architectures {
        let name = format!("{PROGRAM}-{version}-linux-{}", architecture.name);
        fs::copy(programs.join(architecture.name).join(PROGRAM), parts.join(PROGRAM))?;
        archive(&parts, &folder.join(format!("{name}.tar.gz")))?;
        let bill = serde_json::to_string_pretty(&sbom::build_sbom(&architecture.target())?)?;
        fs::write(folder.join(format!("{name}.cdx.json")), bill)?;
        files.extend([format!("{name}.tar.gz"), format!("{name}.cdx.json")]);
    }
    fs::remove_dir_all(&parts)?;
    succeed(
        Command::new("helm")
            .arg("package")
            .arg(root.join("chart"))
            .arg("--destination")
            .arg(&folder),
    )?;
    let chart = format!("{PROGRAM}-{version}.tgz");
    files.push(chart.clone());
    let layout = folder.join("image");
    succeed(Command::new(root.join("image/build")).arg(&programs).arg(&layout))?;
    let sums = output(Command::new("sha256sum").args(&files).current_dir(&folder))?;
    fs::write(folder.join("SHA256SUMS"), sums)?;
    if let ReleaseDestination::Registry(registry) = destination {
        push(&folder, registry, version, &chart)?;
    }
    Ok(())
}

/// Returns an empty folder for the files. Only `target/dist` is emptied: another folder may have more than an earlier release.
fn empty_folder(destination: &ReleaseDestination, root: &Path) -> Result<PathBuf> {
    let folder = match destination {
        ReleaseDestination::Folder(folder) => folder.clone(),
        ReleaseDestination::Registry(_) => {
            let folder = root.join("target/dist");
            if folder.exists() {
                fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
            }
            folder
        }
    };
    fs::create_dir_all(&folder)?;
    let is_empty = fs::read_dir(&folder)?.next().is_none();
    ensure!(is_empty, "{} is not empty: choose another folder", folder.display());
    Ok(folder.canonicalize()?)
}

/// Compiles the programs of all architectures, and returns the folder that they are in.
fn compile_all(root: &Path, programs: &Path) -> Result<PathBuf> {
    for architecture in &ARCHITECTURES {
        let target = architecture.target();
        let mut cargo = Command::new(root.join("image/static"));
        cargo
            .args(["cargo", "build", "--release", "--locked"])
            .current_dir(root);
        cargo.env("CARGO_BUILD_TARGET", &target);
        if !architecture.is_own() {
            let name = target.replace('-', "_").to_uppercase();
            cargo.env(format!("CARGO_TARGET_{name}_LINKER"), architecture.compiler);
            cargo.env(format!("CC_{}", target.replace('-', "_")), architecture.compiler);
        }
        succeed(&mut cargo).with_context(|| {
            format!(
                "for {}, install the target with `rustup target add {target}`, and the compiler {}",
                architecture.name, architecture.compiler
            )
        })?;
        let folder = programs.join(architecture.name);
        fs::create_dir_all(&folder)?;
        fs::copy(
            root.join("target").join(&target).join("release").join(PROGRAM),
            folder.join(PROGRAM),
        )?;
    }
    let own_architecture = ARCHITECTURES
        .iter()
        .find(|architecture| architecture.is_own())
        .context("no program runs on this machine")?;
    let expected = works(root, Command::new(programs.join(own_architecture.name).join(PROGRAM)))?;
    for architecture in ARCHITECTURES.iter().filter(|architecture| !architecture.is_own()) {
        let mut emulated = Command::new(format!("qemu-{}", architecture.machine));
        emulated.arg(programs.join(architecture.name).join(PROGRAM));
        let works_emulated = works(root, emulated).context("the package qemu-user has the emulators")?;
        ensure!(
            works_emulated == expected,
            "the program for {} prints other works",
            architecture.name
        );
    }
    Ok(programs.to_owned())
}

/// Returns the works of the example.
fn works(root: &Path, mut program: Command) -> Result<String> {
    let words = ["generate", "guestbook", "--clusters", "cluster1", "--name", "guestbook"];
    output(program.args(words).current_dir(root))
}

/// Returns the architectures that have a program.
fn of_programs(programs: &Path) -> Result<Vec<&'static Architecture>> {
    let has_program = |architecture: &&Architecture| programs.join(architecture.name).join(PROGRAM).is_file();
    let architectures: Vec<_> = ARCHITECTURES.iter().filter(has_program).collect();
    ensure!(
        !architectures.is_empty(),
        "{} has no amd64/{PROGRAM} or arm64/{PROGRAM}",
        programs.display()
    );
    Ok(architectures)
}

/// Writes what the archives of all architectures have in common into a folder, and returns that folder.
fn shared_parts(folder: &Path, programs: &Path, architectures: &[&Architecture]) -> Result<PathBuf> {
    let parts = folder.join("parts");
    fs::create_dir_all(parts.join("completions"))?;
    fs::copy(root()?.join("LICENSE"), parts.join("LICENSE"))?;
    let own_architecture = architectures.iter().find(|architecture| architecture.is_own());
    let own_architecture =
        own_architecture.context("no program runs on this machine, to print completions and the manual")?;
    let program = programs.join(own_architecture.name).join(PROGRAM);
    for (shell, file) in COMPLETIONS {
        let script = output(Command::new(&program).args(["completion", shell]))?;
        fs::write(parts.join("completions").join(file), script)?;
    }
    fs::write(
        parts.join(format!("{PROGRAM}.1")),
        output(Command::new(&program).arg("man"))?,
    )?;
    Ok(parts)
}

/// Packs a folder. The archive depends only on its content and on the time of the last commit.
fn archive(folder: &Path, file: &Path) -> Result<()> {
    let epoch = output(
        Command::new("git")
            .args(["log", "-1", "--format=%ct"])
            .current_dir(root()?),
    )?;
    let mut tar = Command::new("tar");
    tar.args([
        "--create",
        "--gzip",
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
    ]);
    tar.arg(format!("--mtime=@{}", epoch.trim())).arg("--file").arg(file);
    succeed(tar.arg("--directory").arg(folder).arg("."))
}

/// Pushes the image and the chart, and prints how to install from there.
fn push(folder: &Path, registry: &str, version: &str, chart: &str) -> Result<()> {
    let image = format!("{registry}/{PROGRAM}");
    let is_local = registry.starts_with("localhost:") || registry.starts_with("127.0.0.1:");
    let mut copy = Command::new("skopeo");
    copy.args(["copy", "--all", "--preserve-digests"]);
    if is_local {
        copy.arg("--dest-tls-verify=false");
    }
    copy.arg(format!("oci:{}:{version}", folder.join("image").display()));
    succeed(copy.arg(format!("docker://{image}:{version}")))?;
    let mut helm = Command::new("helm");
    helm.arg("push")
        .arg(folder.join(chart))
        .arg(format!("oci://{registry}/charts"));
    if is_local {
        helm.arg("--plain-http");
    }
    succeed(&mut helm)?;
    println!(
        "\nInstall from there with one of these commands:\n\n  \
         argocd-ocm-cmp install --image {image}:{version}\n  \
         helm install {PROGRAM} oci://{registry}/charts/{PROGRAM} --version {version} --namespace argocd --set image.repository={image}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_in_the_folder_of_a_user() {
        let folder = ReleaseDestination::Folder(concat!(env!("CARGO_MANIFEST_DIR"), "/src").into());
        let error = empty_folder(&folder, Path::new("/nowhere")).expect_err("it has files");
        assert!(
            error.to_string().ends_with("src is not empty: choose another folder"),
            "{error}"
        );
    }
}
