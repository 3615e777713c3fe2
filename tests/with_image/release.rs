//! A release in a registry: it is pushed, and installed from there.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use testbed::process::{self, Process};
use testbed::{Hub, ObjectRef, Part, Parts, ports};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[tokio::test]
#[ignore = "needs the image that .ci/image builds"]
async fn a_release_is_installed_from_a_registry() -> Result<()> {
    let hub = Hub::start().await?;
    let folder = tempfile::tempdir()?;
    let port = ports::free()?;
    let registry = start_registry(folder.path(), port, &hub.logs().join("registry.log")).await?;
    let names = format!("localhost:{port}/ours");

    // The program of the image is that of this machine's architecture; the others are built only for a release.
    let program = std::env::var_os("TESTBED_PROGRAM").context("TESTBED_PROGRAM names no program of an image")?;
    let programs = folder.path().join("programs");
    let architecture = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "amd64"
    };
    fs::create_dir_all(programs.join(architecture))?;
    fs::copy(&program, programs.join(architecture).join("argocd-ocm-cmp"))?;
    let mut release = Command::new(env!("CARGO"));
    release.args(["xtask", "release", "--programs"]).arg(&programs);
    release.arg("--to").arg(format!("oci://{names}"));
    release
        .env("PATH", path_with_helm()?)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    let printed = output(&mut release)?;
    assert!(
        printed.contains(&format!(
            "argocd-ocm-cmp install --image {names}/argocd-ocm-cmp:{VERSION}"
        )),
        "{printed}"
    );
    check_files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("target/dist"),
        architecture,
        &fs::read(&program)?,
    )?;

    // The chart from the registry installs the controller, with the image from the registry.
    let image = format!("{names}/argocd-ocm-cmp");
    let mut helm = process::command(Parts::ensure()?.program(Part::Helm), folder.path());
    helm.arg("--kubeconfig").arg(hub.kubeconfig_path());
    helm.args([
        "install",
        "ours",
        &format!("oci://{names}/charts/argocd-ocm-cmp"),
        "--plain-http",
    ]);
    helm.args([
        "--version",
        VERSION,
        "--namespace",
        "argocd",
        "--set",
        &format!("image.repository={image}"),
    ]);
    output(&mut helm)?;
    let controller = ObjectRef::deployment("argocd", "argocd-ocm-cmp-controller");
    let controller = hub.read(&controller).await?;
    let installed = &controller["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(*installed, format!("{image}:{VERSION}"));
    let inspect = ["inspect", "--tls-verify=false", &format!("docker://{image}:{VERSION}")];
    let inspected: Value = serde_json::from_str(&output(process::command("skopeo", folder.path()).args(inspect))?)?;
    assert_eq!(inspected["Architecture"], architecture, "{inspected:#}");
    drop(registry);
    Ok(())
}

async fn start_registry(folder: &Path, port: u16, log: &Path) -> Result<Process> {
    let config = folder.join("registry.yml");
    let content = format!(
        "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '127.0.0.1:{port}'}}\n",
        folder.join("registry").display()
    );
    fs::write(&config, content)?;
    let mut command = process::command("docker-registry", folder);
    command.arg("serve").arg(&config);
    let registry = Process::start("registry", command, log)?;
    registry.until_listening(port).await?;
    Ok(registry)
}

/// Checks the checksums, and the content of the archive.
fn check_files(dist: &Path, architecture: &str, program: &[u8]) -> Result<()> {
    output(
        Command::new("sha256sum")
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(dist),
    )?;
    let archive = format!("argocd-ocm-cmp-{VERSION}-linux-{architecture}.tar.gz");
    let unpacked = tempfile::tempdir()?;
    output(
        Command::new("tar")
            .arg("--extract")
            .arg("--file")
            .arg(dist.join(&archive))
            .current_dir(unpacked.path()),
    )?;
    let file = |name: &str| fs::read(unpacked.path().join(name)).with_context(|| format!("{archive}: {name}"));
    assert!(file("argocd-ocm-cmp")? == program, "the archive has another program");
    for name in "LICENSE argocd-ocm-cmp.1 completions/argocd-ocm-cmp completions/_argocd-ocm-cmp".split(' ') {
        assert!(!file(name)?.is_empty(), "{name}");
    }
    let bill = fs::read_to_string(dist.join(archive.replace(".tar.gz", ".cdx.json")))?;
    let bill: Value = serde_json::from_str(&bill)?;
    assert_eq!(bill["bomFormat"], "CycloneDX");
    Ok(())
}

/// Returns a `PATH` on which Helm is the one of the tests.
fn path_with_helm() -> Result<String> {
    let parts = Parts::ensure()?;
    let folder = parts.program(Part::Helm).parent().context("a folder")?;
    let path = std::env::var("PATH").unwrap_or_default();
    Ok(format!("{}:{path}", folder.display()))
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}
