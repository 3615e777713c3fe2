//! Tests of `status` on a terminal: the display during changes, and the screen that is left after Ctrl-C.

use crate::stage::{Stage, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use testbed::{ObjectRef, new_condition, wait};

/// A narrow terminal in which the program runs; created by `script` of util-linux, which every Debian has.
struct Terminal {
    script: Child,
    keys: Option<ChildStdin>,
    shown: Arc<Mutex<Vec<u8>>>,
}

/// The width: enough for the tables here, and not for every line of progress.
const COLUMNS: usize = 120;

impl Terminal {
    fn start(kubeconfig: &Path, words: &[&str]) -> Result<Self> {
        let program = env!("CARGO_BIN_EXE_argocd-ocm-cmp");
        let command = format!(
            "trap : INT; stty cols {COLUMNS} rows 40; echo before; '{program}' status {} --kubeconfig '{}'; echo \"ended with $?\"",
            words.join(" "),
            kubeconfig.display()
        );
        // Processes that were started in the background ignore Ctrl-C, and so would all their children.
        let mut script = Command::new("env")
            .args(["--default-signal=INT", "script"])
            .args(["--quiet", "--flush", "--command", &command, "/dev/null"])
            .env_remove("NO_COLOR")
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run script of util-linux")?;
        let keys = script.stdin.take();
        let mut output = script.stdout.take().context("a pipe")?;
        let shown = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&shown);
        thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut some) {
                into.lock()
                    .expect("no thread panics while it holds the lock")
                    .extend_from_slice(&some[..read]);
            }
        });
        Ok(Self { script, keys, shown })
    }

    fn bytes(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().expect("no thread panics while it holds the lock")).into_owned()
    }

    /// Returns the lines on the screen when they contain these words.
    async fn shows(&self, words: &[&str]) -> Result<Vec<String>> {
        let lines = wait::eventually("the screen shows the text", wait::DEADLINE, async || {
            let screen = screen(&self.bytes());
            let text = screen.join("\n");
            words.iter().all(|words| text.contains(words)).then_some(screen)
        });
        lines
            .await
            .with_context(|| format!("{words:?} is not on the screen:\n{}", screen(&self.bytes()).join("\n")))
    }

    fn press_ctrl_c(&mut self) -> Result<()> {
        let keys = self.keys.as_mut().context("a pipe")?;
        keys.write_all(b"\x03")?;
        Ok(keys.flush()?)
    }

    /// Returns all output to the terminal after the program has ended.
    async fn ended(mut self, with: &str) -> Result<(String, Vec<String>)> {
        let screen = self.shows(&[with]).await?;
        drop(self.keys.take());
        self.script.wait()?;
        Ok((self.bytes(), screen))
    }
}

impl Drop for Terminal {
    /// Closes the terminal, which ends the program too.
    fn drop(&mut self) {
        self.script.kill().and_then(|()| self.script.wait()).ok();
    }
}

/// Returns the screen after this output, by the subset of terminal codes that is needed. Unknown codes are shown as they are.
fn screen(sent: &str) -> Vec<String> {
    let mut lines = vec![Vec::new()];
    let (mut row, mut column, mut wraps) = (0, 0, true);
    let mut rest = sent.chars();
    while let Some(char) = rest.next() {
        match char {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                let code: String = rest.by_ref().take_while(|char| !char.is_ascii_alphabetic()).collect();
                let end = &sent[..sent.len() - rest.as_str().len()];
                match (code.as_str(), end.chars().last()) {
                    ("[", Some('H')) => (row, column) = (0, 0),
                    ("[2", Some('J')) => lines = vec![Vec::new()],
                    ("[", Some('K')) => lines[row].truncate(column),
                    ("[?7", Some(end)) => wraps = end == 'h',
                    (_, Some('m')) => {}
                    (code, end) => lines[row].extend(format!("ESC{code}{end:?}").chars()),
                }
            }
            char => {
                if column == COLUMNS && wraps {
                    (row, column) = (row + 1, 0);
                }
                if lines.len() <= row {
                    lines.resize(row + 1, Vec::new());
                }
                let at = column.min(COLUMNS - 1);
                if lines[row].len() <= at {
                    lines[row].resize(at + 1, ' ');
                }
                lines[row][at] = char;
                column = (column + 1).min(COLUMNS);
            }
        }
        if lines.len() <= row {
            lines.resize(row + 1, Vec::new());
        }
    }
    let lines = lines.into_iter().map(|line| line.into_iter().collect::<String>());
    let mut lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// A work without an agent: the tests write the agent's status.
struct Work<'h> {
    stage: &'h Stage,
    object_ref: ObjectRef,
    names: [&'static str; 2],
}

impl<'h> Work<'h> {
    async fn create(stage: &'h Stage, cluster: &str, name: &str) -> Result<Self> {
        stage.hub.declare_managed_cluster(cluster).await?;
        let names = ["first", "second"];
        let manifests = names.map(
            |name| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}),
        );
        let work =
            ObjectRef::manifest_work(cluster, name).with(json!({"spec": {"workload": {"manifests": manifests}}}));
        stage.hub.apply(&work).await?;
        let object_ref = ObjectRef::of(&work);
        Ok(Self {
            stage,
            object_ref,
            names,
        })
    }

    /// Reports all objects as applied, except the first if `but_for` is set.
    async fn is_applied(&self, but_for: Option<&str>) -> Result<()> {
        let condition = |kind: &str, message: Option<&str>| {
            let status = if message.is_some() { "False" } else { "True" };
            new_condition(kind, status, message.unwrap_or_default(), &json!(1))
        };
        let manifests: Vec<Value> = (0..)
            .zip(self.names)
            .map(|(at, name)| {
                let failure = but_for.filter(|_| at == 0);
                json!({
                    "resourceMeta": {"ordinal": at, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
                        "name": name, "namespace": "default"},
                    "conditions": [condition("Applied", failure), condition("Available", failure)],
                    "statusFeedback": {},
                })
            })
            .collect();
        let status = json!({
            "conditions": [condition("Applied", but_for), condition("Available", but_for)],
            "resourceStatus": {"manifests": manifests},
        });
        let patch = json!({"status": status});
        self.stage.hub.patch_status(&self.object_ref, &patch).await.map(drop)
    }

    async fn end(self) -> Result<()> {
        self.stage.hub.delete(&self.object_ref).await
    }
}

#[tokio::test]
async fn watched_table_is_redrawn_in_place() -> Result<()> {
    let stage = stage().await?;
    let (cluster, name) = ("watched-cluster", "watched-work");
    let work = Work::create(stage, cluster, name).await?;
    let mut terminal = Terminal::start(stage.hub.kubeconfig_path(), &[name, "--watch"])?;
    let headings = "CLUSTER           WORK           OBJECT";
    let waiting = terminal.shows(&[headings, "2 Waiting"]).await?;
    assert!(waiting[0].starts_with(headings), "{waiting:#?}");

    work.is_applied(None).await?;
    let healthy = terminal.shows(&["objects: 2 Healthy"]).await?;
    assert_eq!(healthy.len(), 5, "{healthy:#?}");
    assert!(healthy[0].starts_with(headings), "{healthy:#?}");
    assert!(healthy[1].contains("ConfigMap default/first"), "{healthy:#?}");

    work.is_applied(Some("no room")).await?;
    let unhealthy = terminal.shows(&["no room", "1 Healthy"]).await?;
    assert!(unhealthy[0].starts_with(headings), "{unhealthy:#?}");
    assert!(!unhealthy.join("\n").contains("2 Healthy"), "{unhealthy:#?}");

    terminal.press_ctrl_c()?;
    let (sent, remaining) = terminal.ended("ended with 130").await?;
    let screen = remaining.join("\n");
    // The last table, the echo of the key, and the next output of the shell.
    assert!(screen.starts_with(&unhealthy.join("\n")), "{screen}");
    assert_eq!(
        remaining.last().map(String::as_str),
        Some("^Cended with 130"),
        "{screen}"
    );
    assert_terminal_is_restored(&sent);
    work.end().await
}

#[tokio::test]
async fn progress_line_disappears_when_waiting_ends() -> Result<()> {
    let stage = stage().await?;
    let (cluster, name) = ("awaited-cluster", "awaited-work");
    let work = Work::create(stage, cluster, name).await?;
    let terminal = Terminal::start(stage.hub.kubeconfig_path(), &[name, "--wait"])?;
    let waiting = terminal.shows(&["0 of 1 cluster healthy"]).await?;
    assert_eq!((waiting.len(), waiting[0].as_str()), (2, "before"), "{waiting:#?}");

    // A long line is cut off, and replaces all of the earlier text.
    work.is_applied(Some(&"no room ".repeat(30))).await?;
    let unhealthy = terminal.shows(&["objects: 1 Degraded"]).await?;
    assert_eq!(
        (unhealthy.len(), unhealthy[0].as_str()),
        (2, "before"),
        "{unhealthy:#?}"
    );
    assert_eq!(unhealthy[1].len(), COLUMNS, "{unhealthy:#?}");

    work.is_applied(None).await?;
    let (sent, remaining) = terminal.ended("ended with 0").await?;
    assert_eq!(remaining[0], "before", "{remaining:#?}");
    assert!(remaining[1].starts_with("CLUSTER"), "{remaining:#?}");
    assert_eq!(remaining.len(), 7, "{remaining:#?}");
    assert_terminal_is_restored(&sent);
    work.end().await
}

/// Asserts that each changed mode was changed back, and that nothing else was left changed.
fn assert_terminal_is_restored(sent: &str) {
    assert_eq!(
        sent.matches("\x1b[?7l").count(),
        sent.matches("\x1b[?7h").count(),
        "{sent:?}"
    );
    assert_eq!(
        sent.matches("\x1b[?").count(),
        2 * sent.matches("\x1b[?7l").count(),
        "{sent:?}"
    );
    assert!(!sent.contains("\x1b[3J"), "the scrollback was cleared: {sent:?}");
    let colours: Vec<&str> = sent
        .split("\x1b[")
        .skip(1)
        .filter_map(|code| code.split_once('m'))
        .map(|(code, _)| code)
        .collect();
    let last = colours
        .into_iter()
        .rfind(|code| code.chars().all(|char| char.is_ascii_digit()));
    assert_eq!(last, Some("0"), "{sent:?}");
}
