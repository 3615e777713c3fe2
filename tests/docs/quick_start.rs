//! Follows docs/quick-start.md as a newcomer does: from the clone and the start of the testbed to the deletion of the Application.

use crate::page::{Page, pages, root};
use crate::shell::{Outcome, bash, programs};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;
use testbed::process::{self, Process};
use testbed::{GitRepository, wait};

/// The page.
const PAGE: &str = "docs/quick-start.md";

/// The last line of the output of `testbed up`.
const IS_UP: &str = "Ctrl-C stops everything";

/// A cluster that the hub has never accepted, and an Application for it.
const NOT_ACCEPTED: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
    {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": "cluster9"},
     "spec": {"hubAcceptsClient": false}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cluster9"}}]}"#;

#[tokio::test]
async fn quick_start_delivers_the_guestbook() -> Result<()> {
    let page = page(PAGE)?;
    let started = Instant::now();
    let clone = clone_with_program()?;
    let testbed = start_testbed(clone.path())?;
    let printed = || fs::read_to_string(testbed.log()).unwrap_or_default();
    testbed
        .until_ready(async || printed().lines().any(|line| line == IS_UP))
        .await?;

    let blocks = page.blocks.iter().filter(|block| block.language == "sh");
    let blocks: Vec<&str> = blocks.map(|block| &*block.text).collect();
    let [deliver, look, change, delete] = blocks[..] else {
        bail!("{PAGE} has {} blocks of commands", blocks.len());
    };
    check_hint(&printed(), deliver)?;
    let kubeconfig = clone.path().join("target/testbed.kubeconfig");
    let shell = Newcomer::new(clone.path(), kubeconfig)?;

    check_quoted(&page, &shell.run(deliver)?)?;
    println!(
        "{:.1} s from the clone to a healthy guestbook",
        started.elapsed().as_secs_f32()
    );
    ensure!(shell.run(look)?.contains("guestbook-ui"), "no guestbook");
    allow_all_clusters(&shell)?;
    check_doctor(&shell).await?;
    check_ui(&printed()).await?;
    check_unaccepted_cluster(&shell).await?;

    shell.run(change)?;
    let objects = look.lines().last().context("a command")?;
    let has_two = |outcome: &Outcome| outcome.stdout.contains("2/2");
    shell.until("the Deployment has two replicas", objects, has_two).await?;
    shell.run(delete)?;
    let is_gone = |outcome: &Outcome| outcome.stderr.contains(r#"deployments.apps "guestbook-ui" not found"#);
    shell.until("the Deployment is deleted", objects, is_gone).await?;
    let status = testbed.terminate().await?;
    ensure!(status.success(), "the testbed ends with {status}: {}", printed());
    Ok(())
}

/// A shell of a newcomer in a clone of the repository.
pub(crate) struct Newcomer {
    folder: PathBuf,
    path: [PathBuf; 1],
    kubeconfig: PathBuf,
}

impl Newcomer {
    /// Creates a shell with kubectl, in a clone with the folder `target`.
    pub(crate) fn new(clone: &Path, kubeconfig: PathBuf) -> Result<Self> {
        Ok(Self {
            folder: clone.to_owned(),
            path: [programs(&clone.join("target"))?],
            kubeconfig,
        })
    }

    /// Returns the folder with programs that is first on the `PATH`.
    pub(crate) fn programs(&self) -> &Path {
        &self.path[0]
    }

    /// Runs a block of a page until a command fails.
    pub(crate) fn attempt(&self, block: &str) -> Outcome {
        let script = format!("set -e\n{block}");
        bash(&script, &self.folder, &self.path, Some(&self.kubeconfig))
    }

    /// Runs a block of a page, and returns its output.
    pub(crate) fn run(&self, block: &str) -> Result<String> {
        let outcome = self.attempt(block);
        ensure!(outcome.code == Some(0), "{block}\n{outcome:?}");
        Ok(outcome.stdout)
    }

    /// Runs a block until its outcome is the expected one.
    pub(crate) async fn until(&self, what: &str, block: &str, holds: impl Fn(&Outcome) -> bool) -> Result<Outcome> {
        let check = async || Some(self.attempt(block)).filter(&holds);
        wait::eventually(what, wait::DEADLINE, check).await
    }
}

/// Checks that the page quotes a line of an output.
pub(crate) fn check_quoted(page: &Page, output: &str) -> Result<()> {
    let text = page.lines.join(" ");
    let is_quoted = |line: &str| text.contains(&format!("ends with `{line}`"));
    ensure!(
        output.lines().any(is_quoted),
        "{} quotes none of these lines:\n{output}",
        page.path
    );
    Ok(())
}

/// Returns a page.
pub(crate) fn page(path: &str) -> Result<Page> {
    pages()
        .into_iter()
        .find(|page| page.path == path)
        .with_context(|| path.to_owned())
}

/// Clones the repository, with the program that `cargo build` creates there.
pub(crate) fn clone_with_program() -> Result<GitRepository> {
    let clone = GitRepository::clone_of(&root())?;
    let built = clone.path().join("target/debug");
    fs::create_dir_all(&built)?;
    symlink(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), built.join("argocd-ocm-cmp"))?;
    // The page commits as its reader.
    for setting in ["user.name=newcomer", "user.email=newcomer@localhost"] {
        let (key, value) = setting.split_once('=').context("a setting")?;
        let status = process::command("git", clone.path())
            .current_dir(clone.path())
            .args(["config", key, value])
            .status()?;
        ensure!(status.success(), "git config failed: {status}");
    }
    Ok(clone)
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
    command.arg("up").current_dir(clone);
    Process::start("the testbed", command, &clone.join("target/testbed.log"))
}

/// Checks that the testbed prints the commands of the page.
fn check_hint(printed: &str, block: &str) -> Result<()> {
    let hint = printed
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .map(str::trim);
    let commands: Vec<&str> = hint.filter(|line| !line.starts_with("only the API")).collect();
    ensure!(
        commands == block.lines().collect::<Vec<_>>(),
        "the hint is\n{commands:#?}\nand the page has\n{block}"
    );
    Ok(())
}

/// Checks that `doctor` reports no problem.
async fn check_doctor(shell: &Newcomer) -> Result<()> {
    let doctor = "target/debug/argocd-ocm-cmp doctor -o json";
    let has_none = |outcome: &Outcome| {
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let findings = report["findings"].as_array();
        outcome.code == Some(0) && findings.is_some_and(|all| all.iter().all(|finding| finding["result"] == "ok"))
    };
    let reported = shell.until("doctor reports no problem", doctor, has_none).await;
    reported.map(drop).with_context(|| shell.attempt(doctor).stdout)
}

/// Checks that the printed address and password open Argo CD, with the Application and the extension.
async fn check_ui(printed: &str) -> Result<()> {
    let line = printed.lines().find_map(|line| line.strip_prefix("UI "));
    let line = line.context("no line UI")?.trim();
    let (url, password) = line.split_once(", user admin, password ").context("no password")?;
    let login = json!({"username": "admin", "password": password}).to_string();
    let header = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", login.len());
    let session: Value = serde_json::from_str(&ask(url, "POST /api/v1/session", &header, &login)?)?;
    let token = session["token"]
        .as_str()
        .with_context(|| format!("no token: {session}"))?;
    let header = format!("Authorization: Bearer {token}\r\n");
    let what = "Argo CD's API shows the Application as healthy";
    wait::eventually(what, wait::DEADLINE, async || {
        let answer = ask(url, "GET /api/v1/applications/guestbook", &header, "").ok()?;
        let application: Value = serde_json::from_str(&answer).ok()?;
        (application["status"]["health"]["status"] == "Healthy").then_some(())
    })
    .await?;
    let extension = ask(url, "GET /extensions.js", "", "")?;
    ensure!(extension.contains("MANAGED CLUSTERS"), "no extension at {url}");
    let index = ask(url, "GET /applications", "Accept: text/html\r\n", "")?;
    ensure!(
        index.to_lowercase().contains("<!doctype html>"),
        "no page at {url}: {index}"
    );
    Ok(())
}

/// Sends a request to an HTTP server, and returns the body of its answer.
fn ask(url: &str, request: &str, headers: &str, body: &str) -> Result<String> {
    let mut server = TcpStream::connect(url.trim_start_matches("http://"))?;
    write!(server, "{request} HTTP/1.0\r\n{headers}\r\n{body}")?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("an HTTP answer")?;
    Ok(body.to_owned())
}

/// Lets the policy allow all clusters: that of a new hub allows only `cluster1`.
fn allow_all_clusters(shell: &Newcomer) -> Result<()> {
    shell.run(
        "kubectl -n argocd get configmap argocd-ocm-cmp-policy -o yaml | sed 's/clusters: .cluster1./clusters: [\"*\"]/' |
         kubectl apply --server-side --force-conflicts --field-manager newcomer -f - 2>&1",
    ).map(drop)
}

/// Checks that an Application on a cluster that was never accepted is not Healthy.
async fn check_unaccepted_cluster(shell: &Newcomer) -> Result<()> {
    shell.run(&format!("kubectl apply -f - <<'END'\n{NOT_ACCEPTED}\nEND"))?;
    shell.run(
        "sed \"s|repoURL: .*|repoURL: file://$PWD|; s/name: guestbook/name: nowhere/; s/value: cluster1/value: cluster9/\" app.yaml |
         kubectl apply -f -",
    )?;
    let read = "kubectl -n argocd get application nowhere -o json";
    let is_synced = |outcome: &Outcome| {
        let application: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let status = &application["status"];
        status["sync"]["status"] == "Synced" && status["health"]["status"].is_string()
    };
    let outcome = shell.until("the Application is Synced", read, is_synced).await?;
    let application: Value = serde_json::from_str(&outcome.stdout)?;
    ensure!(
        application["status"]["health"]["status"] == "Progressing",
        "{}",
        application["status"]
    );
    shell.run("kubectl -n argocd delete application nowhere").map(drop)
}
