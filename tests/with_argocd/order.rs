//! Tests of sync waves and hooks inside a folder, as in Argo CD: a later wave waits on the hub until the earlier one is healthy
//! on the cluster, and a hook runs once for each content.

use crate::app::{self, App, open_gate};
use crate::delivery::works_of;
use crate::stage::{Stage, stage};
use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use ocm::health::{self, Clock, HealthStatus};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testbed::application::is_healthy;
use testbed::wait::{DEADLINE, eventually};
use testbed::{GitRepository, ObjectRef, is_applied, is_true};

const WAVE: &str = "argocd.argoproj.io/sync-wave";
const HOOK: &str = "argocd.argoproj.io/hook";

/// Creates an Application with its first commit. A failed sync is retried up to `retries` times; meanwhile no other commit is
/// synced.
async fn start(name: &str, retries: u32, files: &[(&str, String)]) -> Result<(App<'static>, String)> {
    let stage = stage().await?;
    let app = App {
        hub: &stage.hub,
        git: GitRepository::new()?,
        name: name.to_owned(),
    };
    let files: Vec<_> = files.iter().map(|(file, content)| (*file, content.as_str())).collect();
    let commit = app.write(&files)?;
    let limit = |application: &mut Value| application["spec"]["syncPolicy"]["retry"] = json!({"limit": retries});
    app::create(stage, name, &app.git, limit).await?;
    Ok((app, commit))
}

impl App<'_> {
    /// Waits until the sync of a commit has completed, and asserts its `phase`.
    async fn wait_for_sync(&self, commit: &str, phase: &str) -> Result<Value> {
        let hub = self.hub;
        let ended = |app: &Value| {
            let operation = &app["status"]["operationState"];
            operation["syncResult"]["revision"] == commit
                && ["Succeeded", "Failed", "Error"].contains(&as_text(&operation["phase"]))
                && app["operation"].is_null()
        };
        loop {
            let app = hub.wait_for(&self.application(), ended).await?;
            let operation = &app["status"]["operationState"];
            // Argo CD gives a health check one second, which is not enough on a busy machine.
            if operation["phase"] == "Error" && as_text(&operation["message"]).ends_with("context deadline exceeded") {
                let again = json!({"operation": {"sync": {"prune": true, "revision": commit}}});
                hub.patch(&self.application(), &again).await?;
                continue;
            }
            assert_eq!(operation["phase"], phase, "{:#}", app["status"]);
            return Ok(app);
        }
    }

    /// Waits until one unhealthy work blocks the sync of a commit, according to both the agent and Argo CD.
    async fn wait_for_blocking_work(&self, commit: &str, work: &str) -> Result<()> {
        let message = format!("waiting for healthy state of work.open-cluster-management.io/ManifestWork/{work}");
        let waits = |app: &Value| {
            let operation = &app["status"]["operationState"];
            operation["phase"] == "Running"
                && operation["syncResult"]["revision"] == commit
                && operation["message"] == *message
        };
        let hub = self.hub;
        hub.wait_for(&self.application(), waits).await?;
        let is_unhealthy = |work: &Value| {
            let evaluated = health::evaluate(&work.to_string(), &Clock::at(Timestamp::now()));
            is_applied(work) && evaluated.is_ok_and(|work| work.health == HealthStatus::Progressing)
        };
        hub.wait_for(&ObjectRef::manifest_work("cluster1", work), is_unhealthy)
            .await?;
        let app = hub.refresh_application(&self.name, "normal").await?;
        assert!(waits(&app), "{:#}", app["status"]);
        Ok(())
    }

    /// Returns its works on the hub, by creation time.
    async fn works(&self) -> Result<Vec<Value>> {
        let mut works = works_of(self.hub, &self.name).await?;
        works.sort_by_key(|work| ["creationTimestamp", "name"].map(|key| as_text(&work["metadata"][key]).to_owned()));
        Ok(works)
    }

    /// Returns the Jobs in its namespace on the cluster: their uids by their names.
    async fn jobs(&self) -> Result<BTreeMap<String, String>> {
        let jobs = stage().await?.cluster1.list("batch/v1", "Job").await?;
        let ours = jobs.iter().filter(|job| job["metadata"]["namespace"] == self.name);
        let text = |job: &Value, key: &str| as_text(&job["metadata"][key]).to_owned();
        Ok(ours.map(|job| (text(job, "name"), text(job, "uid"))).collect())
    }

    /// Waits for the only Job on the cluster with this name prefix, until it has run.
    async fn has_run(&self, name: &str) -> Result<Value> {
        let prefix = format!("{name}-");
        let named = eventually(&format!("a Job {name}"), DEADLINE, async || {
            let mut named: Vec<String> = self.jobs().await.ok()?.into_keys().collect();
            named.retain(|job| job.starts_with(&prefix));
            (!named.is_empty()).then_some(named)
        })
        .await?;
        assert_eq!(named.len(), 1, "{named:?}");
        let cluster1 = &stage().await?.cluster1;
        cluster1
            .wait_for(&self.job(&named[0]), |job| is_true(job, "Complete"))
            .await
    }

    fn config_map(&self, name: &str) -> ObjectRef {
        ObjectRef::config_map(&self.name, name)
    }

    fn job(&self, name: &str) -> ObjectRef {
        ObjectRef::namespaced("batch/v1", "Job", &self.name, name)
    }
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the objects of a work: kinds and names.
fn content(work: &Value) -> Vec<String> {
    let manifests = work["spec"]["workload"]["manifests"].as_array();
    let manifests = manifests.into_iter().flatten();
    let named = |object: &Value| format!("{} {}", as_text(&object["kind"]), as_text(&object["metadata"]["name"]));
    manifests.map(named).collect()
}

fn settings(name: &str, annotations: &str, colour: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\ndata:\n  colour: {colour}\n"
    )
}

/// Returns a Deployment whose Pods run when the gate is open.
fn gated(name: &str, annotations: &str, gate: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  annotations: {{{annotations}}}\nspec:\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      \
         nodeSelector: {{gate: {gate}}}\n      tolerations: [{{key: gate, value: {gate}}}]\n      \
         containers: [{{name: main, image: example.com/main}}]\n"
    )
}

/// Returns a Job that runs `command`.
fn job(name: &str, annotations: &str, command: &str) -> String {
    let fails = if command == "fail" {
        "\n    metadata: {labels: {pod-container-running-failed.stage.kwok.x-k8s.io: 'true'}}"
    } else {
        ""
    };
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  {name}\n  annotations: {{{annotations}}}\nspec:\n  backoffLimit: 0\n  \
         template:{fails}\n    spec:\n      restartPolicy: Never\n      \
         containers: [{{name: main, image: example.com/main, args: [{command}]}}]\n"
    )
}

#[tokio::test]
async fn wave_waits_until_the_previous_one_is_healthy() -> Result<()> {
    let wave = |wave: &str| format!("{WAVE}: '{wave}'");
    let files = [
        ("a.yaml", settings("last", &wave("5"), "red")),
        ("b.yaml", settings("usual", "", "red")),
        ("c.yaml", gated("first", &wave("-1"), "waves-1")),
        ("d.yaml", settings("first", &wave("-1"), "red")),
    ];
    let (app, commit) = start("waves", 5, &files).await?;
    let Stage { hub, cluster1, .. } = stage().await?;
    let last = ObjectRef::manifest_work("cluster1", "waves.part-wave5");

    app.wait_for_blocking_work(&commit, "waves.part-wave-1").await?;
    let works = app.works().await?;
    assert_eq!(works.len(), 1, "{works:#?}");
    assert_eq!(content(&works[0]), ["ConfigMap first", "Deployment first"]);
    for later in ["usual", "last"] {
        assert_eq!(cluster1.get(&app.config_map(later)).await?, None);
    }

    open_gate(cluster1, "waves-1").await?;
    app.wait_for_sync(&commit, "Succeeded").await?;
    cluster1.wait_for(&app.config_map("last"), |_| true).await?;
    let works = app.works().await?;
    let described = |work: &Value| {
        let metadata = &work["metadata"];
        let wave = as_text(&metadata["annotations"][WAVE]);
        format!("{} {wave}: {}", as_text(&metadata["name"]), content(work).join(", "))
    };
    assert_eq!(
        works.iter().map(described).collect::<Vec<_>>(),
        [
            "waves.part-wave-1 -1: ConfigMap first, Deployment first",
            "waves : ConfigMap usual",
            "waves.part-wave5 5: ConfigMap last",
        ]
    );
    // Argo CD waits some seconds between waves.
    let times = works.iter().map(|work| as_text(&work["metadata"]["creationTimestamp"]));
    assert!(times.is_sorted_by(|one, other| one < other), "{works:#?}");

    // An update passes the same waves.
    let commit = app
        .push(&[
            ("a.yaml", &settings("last", &wave("5"), "green")),
            ("c.yaml", &gated("first", &wave("-1"), "waves-2")),
        ])
        .await?;
    app.wait_for_blocking_work(&commit, "waves.part-wave-1").await?;
    let held = hub.read(&last).await?;
    assert_eq!(held["spec"]["workload"]["manifests"][0]["data"]["colour"], "red");

    // The correction of a waiting sync is not processed before that sync is terminated, as by `argocd app terminate-op`.
    let correction = app.push(&[("c.yaml", &gated("first", &wave("-1"), "waves-1"))]).await?;
    app.wait_for_blocking_work(&commit, "waves.part-wave-1").await?;
    let terminated = json!({"status": {"operationState": {"phase": "Terminating"}}});
    hub.patch(&app.application(), &terminated).await?;
    app.wait_for_sync(&correction, "Succeeded").await?;
    cluster1
        .wait_for_value(&app.config_map("last"), "/data/colour", "green")
        .await?;
    hub.delete(&app.application()).await
}

#[tokio::test]
async fn hooks_run_before_during_and_after_the_sync() -> Result<()> {
    let helm = "helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: '3'";
    let files = [
        (
            "before.yaml",
            job("name: before", &format!("{HOOK}: PreSync"), "prepare"),
        ),
        ("helm.yaml", job("name: helm", helm, "migrate")),
        (
            "during.yaml",
            job("name: during", &format!("{HOOK}: Sync, {WAVE}: '-1'"), "copy"),
        ),
        ("after.yaml", job("name: after", &format!("{HOOK}: PostSync"), "tell")),
        ("web.yaml", gated("web", "", "hooks")),
        ("usual.yaml", settings("usual", "", "red")),
        ("skipped.yaml", settings("skipped", &format!("{HOOK}: Skip"), "red")),
        ("tested.yaml", settings("tested", "helm.sh/hook: test", "red")),
    ];
    let (app, commit) = start("hooks", 5, &files).await?;
    let Stage { hub, cluster1, .. } = stage().await?;

    app.wait_for_blocking_work(&commit, "hooks").await?;
    let mut ended = String::new();
    for name in ["before", "helm", "during"] {
        let job = app.has_run(name).await?;
        assert!(
            *ended <= *as_text(&job["metadata"]["creationTimestamp"]),
            "{ended}: {job:#}"
        );
        as_text(&job["status"]["completionTime"]).clone_into(&mut ended);
    }
    assert_eq!(app.jobs().await?.len(), 3);
    assert_eq!(app.works().await?.len(), 4);

    open_gate(cluster1, "hooks").await?;
    app.wait_for_sync(&commit, "Succeeded").await?;
    app.has_run("after").await?;
    hub.wait_for(&app.application(), is_healthy).await?;
    let jobs = app.jobs().await?;
    let job = |name: &str| {
        format!(
            "Job {}",
            jobs.keys()
                .find(|job| job.starts_with(name))
                .expect("a Job of the hook")
        )
    };
    let delivered = "ConfigMap usual, Deployment web".to_owned();
    assert_eq!(
        app.works()
            .await?
            .iter()
            .map(|work| content(work).join(", "))
            .collect::<Vec<_>>(),
        [job("before-"), job("helm-"), job("during-"), delivered, job("after-")]
    );
    for remaining_jobs in ["skipped", "tested"] {
        assert_eq!(cluster1.get(&app.config_map(remaining_jobs)).await?, None);
    }
    hub.delete(&app.application()).await
}

#[tokio::test]
async fn hook_reruns_only_when_its_content_changes() -> Result<()> {
    let before = |command| {
        // Argo CD would delete such a hook on the hub; here the Job stays.
        let annotations = format!("{HOOK}: PreSync, argocd.argoproj.io/hook-delete-policy: HookSucceeded");
        job("name: before", &annotations, command)
    };
    let after = |command| job("generateName: after-", &format!("{HOOK}: PostSync"), command);
    let files = [
        ("before.yaml", before("prepare")),
        ("after.yaml", after("tell")),
        ("usual.yaml", settings("usual", "", "red")),
    ];
    let (app, commit) = start("again", 5, &files).await?;
    let Stage { hub, cluster1, .. } = stage().await?;
    app.wait_for_sync(&commit, "Succeeded").await?;
    app.has_run("before").await?;
    app.has_run("after").await?;
    let first = app.jobs().await?;

    // Another commit, and a sync without a change.
    let commit = app.push(&[("usual.yaml", &settings("usual", "", "green"))]).await?;
    app.wait_for_sync(&commit, "Succeeded").await?;
    let is_green = async || {
        cluster1
            .wait_for_value(&app.config_map("usual"), "/data/colour", "green")
            .await
    };
    is_green().await?;
    sync_again(&app).await?;
    assert_eq!(app.jobs().await?, first);

    // A Job is deleted, and the agent applies all works again: it recreates only the required Jobs.
    let mut works = app.works().await?;
    works.sort_by_key(|work| work["metadata"]["name"] == app.name);
    for run in &works[..2] {
        hub.wait_for(&ObjectRef::of(run), |work| is_true(work, "Complete"))
            .await?;
    }
    let (cleaned_up, _) = first.first_key_value().context("a Job")?;
    for gone in [app.job(cleaned_up), app.config_map("usual")] {
        cluster1.delete_and_wait(&gone).await?;
    }
    for work in &works {
        let touched = json!({"metadata": {"labels": {"touched": "yes"}}});
        hub.patch(&ObjectRef::of(work), &touched).await?;
    }
    is_green().await?;
    sync_again(&app).await?;
    hub.wait_for(&app.application(), is_healthy).await?;
    let mut remaining_jobs = first.clone();
    remaining_jobs.remove(cleaned_up);
    assert_eq!(app.jobs().await?, remaining_jobs);

    // The content of one hook changes.
    let commit = app.push(&[("before.yaml", &before("prepare-more"))]).await?;
    app.wait_for_sync(&commit, "Succeeded").await?;
    let (former, _) = remaining_jobs.first_key_value().context("a Job")?;
    cluster1.wait_gone(&app.job(former)).await?;
    let work = format!("again.part-presync-{former}-again");
    hub.wait_gone(&ObjectRef::manifest_work("cluster1", &work)).await?;
    app.has_run("before").await?;
    assert_eq!(app.jobs().await?.len(), 1);
    hub.wait_for(&app.application(), is_healthy).await?;
    assert_eq!(app.works().await?.len(), 3);
    hub.delete(&app.application()).await
}

/// Syncs again without a change, after rendering again.
async fn sync_again(app: &App<'_>) -> Result<()> {
    let hub = app.hub;
    let before = hub.refresh_application(&app.name, "hard").await?;
    hub.patch(
        &app.application(),
        &json!({"operation": {"sync": {"prune": true}, "retry": {"limit": 5}}}),
    )
    .await?;
    let ended = |now: &Value| {
        let (now, before) = (&now["status"]["operationState"], &before["status"]["operationState"]);
        now["phase"] == "Succeeded" && now["startedAt"] != before["startedAt"]
    };
    hub.wait_for(&app.application(), ended).await.map(drop)
}

#[tokio::test]
async fn failed_hook_ends_the_sync_and_its_fix_continues() -> Result<()> {
    let check = |command| job("name: check", &format!("{HOOK}: PreSync"), command);
    let alarm = |command| job("name: alarm", &format!("{HOOK}: SyncFail"), command);
    let files = [
        ("check.yaml", check("fail")),
        ("alarm.yaml", alarm("ring")),
        ("usual.yaml", settings("usual", "", "red")),
    ];
    let (app, commit) = start("failed-hook", 0, &files).await?;
    let Stage { hub, cluster1, .. } = stage().await?;

    let failed = app.wait_for_sync(&commit, "Failed").await?;
    let operation = &failed["status"]["operationState"];
    assert_eq!(
        operation["message"],
        "one or more synchronization tasks completed unsuccessfully"
    );
    let resources = operation["syncResult"]["resources"]
        .as_array()
        .context("no sync result")?;
    let failed_work = resources.iter().find(|work| work["hookPhase"] == "Failed");
    let message = as_text(&failed_work.context("what failed")?["message"]);
    let reason = ": BackoffLimitExceeded: Job has reached the specified backoff limit";
    assert!(message.ends_with(reason), "{message}");
    assert_eq!(cluster1.get(&app.config_map("usual")).await?, None);
    app.has_run("alarm").await?;
    let first = app.jobs().await?;
    assert_eq!(first.len(), 2, "{first:?}");
    assert_eq!(app.works().await?.len(), 2);

    let commit = app.push(&[("check.yaml", &check("look"))]).await?;
    app.wait_for_sync(&commit, "Succeeded").await?;
    cluster1.wait_for(&app.config_map("usual"), |_| true).await?;
    let checked = first
        .keys()
        .find(|job| job.starts_with("check-"))
        .context("the hook created no Job")?;
    cluster1.wait_gone(&app.job(checked)).await?;
    app.has_run("check").await?;

    // The next failure runs the alarm again. A failure with a changed alarm replaces it.
    let alarm_of = |jobs: BTreeMap<String, String>| jobs.into_iter().find(|(name, _)| name.starts_with("alarm-"));
    let mut before = alarm_of(first);
    for (file, content) in [("check.yaml", check("fail")), ("alarm.yaml", alarm("shout"))] {
        let commit = app.push(&[(file, &content)]).await?;
        app.wait_for_sync(&commit, "Failed").await?;
        let job = app.has_run("alarm").await?;
        let now = alarm_of(app.jobs().await?);
        assert_ne!(now, before, "{file}");
        before = now;
        let command = &job["spec"]["template"]["spec"]["containers"][0]["args"][0];
        assert_eq!(command, if file == "alarm.yaml" { "shout" } else { "ring" });
    }
    hub.delete(&app.application()).await
}

/// The number of deletions. Argo CD 3.6.1 sometimes takes a hook that it has just created for completed, and leaves its work
/// (<https://github.com/argoproj/argo-cd/issues/29100>).
const DELETIONS: usize = 4;

#[tokio::test]
async fn post_delete_hook_runs_last_and_is_deleted() -> Result<()> {
    for deletion in 0..DELETIONS {
        if ends_with_hook(&format!("goodbye{deletion}")).await? {
            return Ok(());
        }
    }
    bail!("Argo CD has waited for no hook in {DELETIONS} deletions")
}

/// Deletes an Application with a hook, and returns false if Argo CD has not waited for the hook.
async fn ends_with_hook(name: &str) -> Result<bool> {
    let files = [
        (
            "goodbye.yaml",
            job("name: goodbye", &format!("{HOOK}: PostDelete"), "tidy-up"),
        ),
        ("usual.yaml", settings("usual", "", "red")),
    ];
    let (app, commit) = start(name, 5, &files).await?;
    let Stage { hub, cluster1, .. } = stage().await?;
    app.wait_for_sync(&commit, "Succeeded").await?;
    let usual = app.config_map("usual");
    cluster1.wait_for(&usual, |_| true).await?;
    let works = app.works().await?;
    assert_eq!(works.iter().map(content).collect::<Vec<_>>(), [["ConfigMap usual"]]);

    // An object on the cluster whose deletion takes a while.
    let held = |finalizers: &[&str]| json!({"metadata": {"finalizers": finalizers}});
    cluster1.patch(&usual, &held(&["example.com/held"])).await?;
    hub.delete(&app.application()).await?;
    hub.wait_for(&ObjectRef::of(&works[0]), |work| is_true(work, "Deleting"))
        .await?;
    assert_eq!(app.works().await?.len(), 1);
    cluster1.patch(&usual, &held(&[])).await?;
    hub.wait_gone(&app.application()).await?;

    // The Application ends after the work of the hook. The Job was deleted with it, and its result stays for a while.
    let left = app.works().await?;
    let has_run = async || {
        let events = cluster1.list("v1", "Event").await.ok()?;
        let mut events = events.iter();
        let is_result = |event: &Value| {
            event["reason"] == "Completed"
                && event["metadata"]["namespace"] == app.name
                && as_text(&event["involvedObject"]["name"]).starts_with("goodbye-")
        };
        events.any(is_result).then_some(())
    };
    eventually("the hook has run", DEADLINE, has_run).await?;
    for work in &left {
        hub.delete_and_wait(&ObjectRef::of(work)).await?;
    }
    for job in app.jobs().await?.keys() {
        cluster1.wait_gone(&app.job(job)).await?;
    }
    Ok(left.is_empty())
}
