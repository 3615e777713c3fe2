//! Follows docs/kind.md: its commands of this project on a complete hub of the testbed. kind, clusteradm and Docker cannot run in a
//! test: of their commands, it checks the values that this project decides.

use crate::page::root;
use crate::quick_start::{Newcomer, check_quoted, clone_with_program, page};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use testbed::{CompleteHub, CompleteHubOptions, Hub, ObjectRef, Parts};

/// The page.
const PAGE: &str = "docs/kind.md";

/// The programs whose commands are not run.
const NOT_RUN: [&str; 3] = ["clusteradm", "docker", "kind"];

/// Returns the blocks of commands of a section.
fn block(section: &str) -> Result<String> {
    let page = page(PAGE)?;
    let mut blocks = page
        .blocks
        .iter()
        .filter(|block| block.language == "sh" && block.section == section);
    let block = blocks
        .next()
        .with_context(|| format!("{PAGE} has no commands in {section}"))?;
    Ok(block.text.clone())
}

/// Returns the word after a text.
fn word_after<'t>(text: &'t str, before: &str) -> Result<&'t str> {
    let (_, rest) = text
        .split_once(before)
        .with_context(|| format!("no {before} in {text}"))?;
    rest.split([' ', '\n', '/']).next().context("a word")
}

#[test]
fn kind_page_names_one_image_and_known_versions() -> Result<()> {
    let build = block("build-the-image")?;
    let image = word_after(&build, "--tag ")?;
    let install = block("install-the-plugin")?;
    for (block, flag) in [
        (&install, "--image "),
        (&install, "docker-image "),
        (&build, "--name argocd-ocm-cmp "),
    ] {
        ensure!(
            word_after(block, flag)? == image,
            "{PAGE} has another image after {flag}"
        );
    }
    let version = env!("CARGO_PKG_VERSION");
    ensure!(
        image == format!("argocd-ocm-cmp:{version}"),
        "{PAGE} has another version than {version}: {image}"
    );
    ensure!(
        word_after(&build, "VERSION=")? == version,
        "{PAGE} has another version than {version}"
    );
    let dockerfile = fs::read_to_string(root().join("Dockerfile"))?;
    for text in ["ARG VERSION=", "/usr/local/bin/argocd-ocm-cmp\n"] {
        ensure!(dockerfile.contains(text), "Dockerfile has no {text}");
    }
    let compatibility = page("docs/compatibility.md")?.lines.join("\n");
    let argo_cd = word_after(&block("install-argo-cd")?, "argo-cd/v")?.to_owned();
    let text = page(PAGE)?.lines.join("\n");
    let ocm = word_after(&text, "Open Cluster Management ")?;
    for tested in [&argo_cd, ocm] {
        ensure!(
            compatibility.contains(tested),
            "docs/compatibility.md has no results of version {tested}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn kind_page_delivers_the_guestbook() -> Result<()> {
    let argo_cd = word_after(&block("install-argo-cd")?, "argo-cd/v")?.to_owned();
    let clone = clone_with_program()?;
    symlink("target/debug/argocd-ocm-cmp", clone.path().join("argocd-ocm-cmp"))?;
    let mut hub = CompleteHub::start(&CompleteHubOptions {
        program: env!("CARGO_BIN_EXE_argocd-ocm-cmp").into(),
        clusters: 1,
        ocm_controllers: false,
        pull: false,
    })
    .await?;
    check_argo_cd_version(&argo_cd)?;
    let kubeconfig = clone.path().join("target/kubeconfig");
    fs::write(&kubeconfig, kubeconfig_of_kind(&hub)?)?;
    let shell = Newcomer::new(clone.path(), kubeconfig)?;
    for program in NOT_RUN {
        let file = shell.programs().join(program);
        fs::write(&file, "#!/bin/sh\n")?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    }

    // A hub with Argo CD alone.
    shell.run("./argocd-ocm-cmp uninstall --context kind-hub")?;
    hub.sync().await?;
    let installed = block("install-the-plugin")?;
    shell.run(&installed)?;
    hub.sync().await?;
    let printed = shell.run(&block("deliver-the-guestbook")?)?;
    ensure!(
        printed.contains("deployment.apps/guestbook-ui"),
        "no guestbook: {printed}"
    );
    check_quoted(&page(PAGE)?, &printed)?;

    let see = block("see-it-in-argo-cd")?;
    let (password, forward) = see.trim_end().split_once('\n').context("two commands")?;
    ensure!(
        shell.run(password)?.trim() == hub.admin_password().await?,
        "{password} prints another password"
    );
    check_port(&hub, forward).await
}

/// Checks that the testbed runs the Argo CD that the page installs.
fn check_argo_cd_version(version: &str) -> Result<()> {
    let manifests = fs::read_to_string(Parts::ensure()?.argocd_manifests().join("install.yaml"))?;
    let image = format!("quay.io/argoproj/argocd:v{version}\n");
    let is_other = testbed::argocd_version() != version.rsplit_once('.').context("a version")?.0;
    ensure!(
        is_other || manifests.contains(&image),
        "the testbed has another Argo CD than {version}"
    );
    Ok(())
}

/// Returns a kubeconfig with the contexts that kind creates.
fn kubeconfig_of_kind(hub: &CompleteHub) -> Result<String> {
    let file = tempfile::NamedTempFile::new()?;
    hub.write_kubeconfig(file.path())?;
    let mut kubeconfig: Value = serde_json::from_slice(&fs::read(file.path())?)?;
    for context in kubeconfig["contexts"].as_array_mut().context("contexts")? {
        let name = context["name"].as_str().context("a name")?;
        context["name"] = format!("kind-{name}").into();
    }
    kubeconfig["current-context"] = "kind-cluster1".into();
    Ok(kubeconfig.to_string())
}

/// Checks that the Service of a `kubectl port-forward` has its port.
async fn check_port(hub: &Hub, command: &str) -> Result<()> {
    let name = word_after(command, "service/")?;
    let port: u64 = command.rsplit_once(':').context("a port")?.1.parse()?;
    let service = hub.get(&ObjectRef::namespaced("v1", "Service", "argocd", name)).await?;
    let service = service.with_context(|| format!("no Service {name}"))?;
    let ports = service["spec"]["ports"].as_array().context("ports")?;
    ensure!(
        ports.iter().any(|entry| entry["port"] == port),
        "Service {name} has no port {port}"
    );
    Ok(())
}
