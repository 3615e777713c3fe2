//! Follows docs/quick-start.md as a newcomer does: from the start of the testbed to the deletion of the Application.

use crate::page::{pages, root};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testbed::process::Process;
use testbed::{GitRepository, Part, Parts, wait};

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
    let blocks = page.blocks.iter().filter(|block| block.language == "sh");
    let blocks: Vec<&str> = blocks.map(|block| &*block.text).collect();
    let [create, see_on_hub, see_on_cluster, refresh, delete] = blocks[..] else {
        anyhow::bail!("{PAGE} has {} blocks of commands", blocks.len());
    };

    let clone = clone()?;
    let testbed = start_testbed(clone.path())?;
    let shown = || fs::read_to_string(testbed.log()).unwrap_or_default();
    testbed
        .until_ready(async || shown().lines().any(|line| line == IS_UP))
        .await?;
    let newcomer = Newcomer {
        clone: clone.path(),
        shown: shown(),
    };
    newcomer.run(create)?;
    let seen = newcomer.run(see_on_hub)?;
    let is_quoted = |line: &str| page.lines.iter().any(|it| it.contains(&format!("ends with `{line}`")));
    ensure!(
        seen.lines().any(is_quoted),
        "{PAGE} quotes none of these lines:\n{seen}"
    );
    ensure!(newcomer.run(see_on_cluster)?.contains("guestbook-ui"), "no guestbook");

    let deployment = clone.path().join("guestbook/deployment.yaml");
    let text = fs::read_to_string(deployment)?;
    clone.commit(&[("guestbook/deployment.yaml", &text.replace("replicas: 1", "replicas: 2"))])?;
    newcomer.run(refresh)?;
    newcomer
        .until("the Deployment has two replicas", see_on_cluster, |output| {
            String::from_utf8_lossy(&output.stdout).contains("2/2")
        })
        .await?;

    newcomer.run(delete)?;
    newcomer
        .until("the Deployment is deleted", see_on_cluster, |output| {
            String::from_utf8_lossy(&output.stderr).contains(r#"deployments.apps "guestbook-ui" not found"#)
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
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command.args(["up", "--plugin-bin", "target/debug/argocd-ocm-cmp"]);
    command.current_dir(clone);
    Process::start("the testbed", command, &clone.join("target/testbed.log"))
}

/// A user in a second terminal.
struct Newcomer<'a> {
    clone: &'a Path,
    /// The output of the testbed.
    shown: String,
}

impl Newcomer<'_> {
    /// Runs a block of the page, and returns its output.
    fn run(&self, block: &str) -> Result<String> {
        let output = self.output(block)?;
        ensure!(output.status.success(), "{block}\n{output:?}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Repeats a block of the page until its output is as described.
    async fn until(&self, what: &str, block: &str, holds: impl Fn(&Output) -> bool) -> Result<()> {
        let check = async || self.output(block).ok().filter(&holds);
        wait::eventually(what, wait::DEADLINE, check).await.map(drop)
    }

    /// Runs a block of the page in the clone, with the paths that the testbed has printed.
    fn output(&self, block: &str) -> Result<Output> {
        let mut script = format!("export KUBECONFIG={}\n", self.kubeconfig("hub")?.display());
        for line in block.lines() {
            let plane = line.split_once(r#"# as printed in the line ""#);
            let plane = plane.and_then(|(_, name)| name.strip_suffix('"'));
            let line = match plane {
                Some(plane) => line.replace("PATH", &self.kubeconfig(plane)?.display().to_string()),
                None => line.to_owned(),
            };
            script.push_str(&line);
            script.push('\n');
        }
        let parts = Parts::ensure()?;
        let tools = parts.program(Part::Kubectl).parent().context("a folder")?;
        let path = format!("{}:{}", tools.display(), std::env::var("PATH")?);
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", &script]).env("PATH", path);
        Ok(shell.current_dir(self.clone).output()?)
    }

    /// Returns the kubeconfig of the hub or of a cluster, from the output of the testbed.
    fn kubeconfig(&self, plane: &str) -> Result<PathBuf> {
        let mut lines = self.shown.lines().map(str::split_whitespace);
        let of_plane = lines.find_map(|mut words| (words.next() == Some(plane)).then(|| words.last())?);
        let path = of_plane.and_then(|word| word.strip_prefix("KUBECONFIG="));
        Ok(path
            .with_context(|| format!("no line {plane} in\n{}", self.shown))?
            .into())
    }
}
