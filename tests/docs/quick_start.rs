//! Follows docs/quick-start.md as a newcomer does: from the start of the testbed to the deletion of the Application.

use crate::page::{pages, root};
use crate::shell::{Outcome, bash, programs};
use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use testbed::process::{self, Process};
use testbed::{GitRepository, wait};

/// The page.
const PAGE: &str = "docs/quick-start.md";

/// The last line of the output of `testbed up`.
const IS_UP: &str = "Ctrl-C stops everything";

#[tokio::test]
async fn quick_start_delivers_the_guestbook() -> Result<()> {
    if !testbed::available() {
        return Ok(());
    }
    let page = pages().into_iter().find(|page| page.path == PAGE).context(PAGE)?;
    let clone = clone()?;
    let testbed = start_testbed(clone.path())?;
    let shown = || fs::read_to_string(testbed.log()).unwrap_or_default();
    testbed
        .until_ready(async || shown().lines().any(|line| line == IS_UP))
        .await?;

    let blocks = page.blocks.iter().filter(|block| block.language == "sh");
    let blocks: Vec<String> = blocks
        .map(|block| with_kubeconfigs(&block.text, &shown()))
        .collect::<Result<_>>()?;
    let [create, see_on_hub, see_on_cluster, refresh, delete] = &blocks[..] else {
        bail!("{PAGE} has {} blocks of commands", blocks.len());
    };
    let hub = kubeconfig("hub", &shown())?;
    let path = [programs(&clone.path().join("target"))?];
    let attempt = |block: &str| bash(&format!("set -e\n{block}"), clone.path(), &path, Some(&hub));
    let run = |block: &str| {
        let outcome = attempt(block);
        ensure!(outcome.code == Some(0), "{block}\n{outcome:?}");
        Ok(outcome.stdout)
    };
    let see_until = async |what: &str, holds: fn(&Outcome) -> bool| {
        let check = async || Some(attempt(see_on_cluster)).filter(holds);
        wait::eventually(what, wait::DEADLINE, check).await
    };

    run(create)?;
    let seen = run(see_on_hub)?;
    let is_quoted = |line: &str| page.lines.iter().any(|it| it.contains(&format!("ends with `{line}`")));
    ensure!(
        seen.lines().any(is_quoted),
        "{PAGE} quotes none of these lines:\n{seen}"
    );
    ensure!(run(see_on_cluster)?.contains("guestbook-ui"), "no guestbook");

    let deployment = clone.path().join("guestbook/deployment.yaml");
    let text = fs::read_to_string(deployment)?;
    clone.commit(&[("guestbook/deployment.yaml", &text.replace("replicas: 1", "replicas: 2"))])?;
    run(refresh)?;
    see_until("the Deployment has two replicas", |it| it.stdout.contains("2/2")).await?;

    run(delete)?;
    see_until("the Deployment is deleted", |it| {
        it.stderr.contains(r#"deployments.apps "guestbook-ui" not found"#)
    })
    .await?;
    let status = testbed.terminate().await?;
    ensure!(status.success(), "the testbed ends with {status}: {}", shown());
    Ok(())
}

/// Creates what the page needs of a clone of the repository, and of `cargo build`.
fn clone() -> Result<GitRepository> {
    let git = GitRepository::new()?;
    for file in [".gitignore", "app.yaml", "plugin.yaml", "proj.yaml"] {
        fs::copy(root().join(file), git.path().join(file))?;
    }
    git.commit_folder(&root().join("guestbook"), "guestbook")?;
    let built = git.path().join("target/debug");
    fs::create_dir_all(&built)?;
    symlink(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), built.join("argocd-ocm-cmp"))?;
    Ok(git)
}

/// Starts the testbed as the page does, from the program that cargo has built with the tests of the workspace.
fn start_testbed(clone: &Path) -> Result<Process> {
    let program = Path::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp")).with_file_name("testbed");
    ensure!(
        program.exists(),
        "{} is missing: run cargo build -p testbed",
        program.display()
    );
    let mut command = process::command(program, clone);
    // Of the user, for the cache of built programs.
    command.env_remove("TMPDIR").envs(env::vars_os());
    command.args(["up", "--plugin-bin", "target/debug/argocd-ocm-cmp"]);
    command.current_dir(clone);
    Process::start("the testbed", command, &clone.join("target/testbed.log"))
}

/// Returns a block of the page with the paths that the testbed has printed.
fn with_kubeconfigs(block: &str, shown: &str) -> Result<String> {
    let lines = block.lines().map(|line| {
        let plane = line.split_once(r#"# as printed in the line ""#);
        match plane.and_then(|(_, name)| name.strip_suffix('"')) {
            Some(plane) => Ok(line.replace("PATH", &kubeconfig(plane, shown)?.display().to_string())),
            None => Ok(line.to_owned()),
        }
    });
    Ok(lines.collect::<Result<Vec<_>>>()?.join("\n"))
}

/// Returns the kubeconfig of the hub or of a cluster, from the output of the testbed.
fn kubeconfig(plane: &str, shown: &str) -> Result<PathBuf> {
    let mut lines = shown.lines().map(str::split_whitespace);
    let of_plane = lines.find_map(|mut words| (words.next() == Some(plane)).then(|| words.last())?);
    let path = of_plane.and_then(|word| word.strip_prefix("KUBECONFIG="));
    Ok(path.with_context(|| format!("no line {plane} in\n{shown}"))?.into())
}
