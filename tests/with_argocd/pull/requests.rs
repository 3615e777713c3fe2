//! Tests of the actions of the hub's Argo CD: Sync, Rollback, Refresh. Their fields in the Application are carried to the
//! cluster, executed there once, and removed on the hub.

use super::{FINALIZER, PulledApplication, REFRESH, health, runs, serves, stage};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::{Recording, wait};

const HYDRATE: &str = "argocd.argoproj.io/hydrate";

/// Returns the fields that Argo CD's API server writes for a sync to a revision.
fn sync(revision: &str) -> Value {
    json!({"operation": {
        "initiatedBy": {"username": "admin"},
        "info": [{"name": "Reason", "value": "by hand"}],
        "retry": {},
        "sync": {
            "revision": revision,
            "prune": true,
            "syncOptions": ["CreateNamespace=true"],
            "syncStrategy": {"hook": {}},
        },
    }})
}

/// Returns the number of times that something appeared on an Application.
fn times(recording: &Recording, is_there: impl Fn(&Value) -> bool) -> usize {
    let mut times = 0;
    let mut before = false;
    for state in recording.states() {
        let now = is_there(&state);
        times += usize::from(now && !before);
        before = now;
    }
    times
}

fn has_operation(application: &Value) -> bool {
    application["operation"].is_object()
}

impl PulledApplication<'_> {
    /// Waits until the hub shows the Application as not synced to this commit.
    async fn is_out_of_sync(&self, commit: &str) -> Result<()> {
        let differs = |app: &Value| {
            let sync = &app["status"]["sync"];
            sync["status"] == "OutOfSync" && sync["revision"] == commit
        };
        self.stage.hub.wait_for(&self.application(), differs).await.map(drop)
    }

    /// Waits until the work carries no request.
    async fn has_no_requests(&self) -> Result<()> {
        let has_none = |work: &Value| {
            let payload = &work["spec"]["workload"]["manifests"][0];
            payload["kind"] == "Application"
                && payload["operation"].is_null()
                && payload["metadata"]["annotations"][REFRESH].is_null()
        };
        self.stage.hub.wait_for(&self.work().await?, has_none).await.map(drop)
    }

    /// Changes another field, and waits until the cluster has it.
    async fn change(&self, label: &str) -> Result<()> {
        self.patch(&json!({"metadata": {"labels": {label: "true"}}})).await?;
        let changed = |app: &Value| app["metadata"]["labels"][label] == "true";
        self.stage
            .cluster1
            .wait_for(&self.application(), changed)
            .await
            .map(drop)
    }
}

#[tokio::test]
async fn sync_and_rollback_run_once_and_are_cleared() -> Result<()> {
    let stage = stage().await?;
    let app = PulledApplication::new(&stage, "pull-sync")?.by_hand();
    app.create().await?;
    app.is_out_of_sync(&app.commit).await?;
    let missing = app.on_hub().await?;
    assert_eq!(health(&missing), "Missing", "{missing:#}");

    let cluster1 = app.record(&stage.cluster1).await?;
    app.patch(&sync(&app.commit)).await?;
    let synced = |application: &Value| runs(application, &app.commit) && !has_operation(application);
    stage.hub.wait_for(&app.application(), synced).await?;
    serves(&stage.cluster1, &app.guestbook(), 1).await?;
    app.has_no_requests().await?;
    let live = stage.cluster1.get(&app.application()).await?.unwrap_or_default();
    let operation = &live["status"]["operationState"]["operation"];
    assert_eq!(operation["initiatedBy"]["username"], "admin", "{live:#}");
    assert_eq!(operation["info"][0], json!({"name": "Reason", "value": "by hand"}));
    assert_eq!(operation["sync"]["prune"], true);
    app.change("after-sync").await?;

    // A manual sync to the next commit, and a rollback.
    let second = app.scale(3)?;
    app.is_out_of_sync(&second).await?;
    app.patch(&sync(&second)).await?;
    app.runs(&second).await?;
    serves(&stage.cluster1, &app.guestbook(), 3).await?;
    app.change("before-rollback").await?;
    // Argo CD's API server rolls back to an entry of the history on the hub.
    let history = app.on_hub().await?["status"]["history"].clone();
    let revisions = [&history[0]["revision"], &history[1]["revision"]];
    assert_eq!(revisions, [app.commit.as_str(), second.as_str()], "{history:#}");
    let mut rollback = sync(&app.commit);
    rollback["operation"]["sync"]["source"] = history[0]["source"].clone();
    app.patch(&rollback).await?;
    let rolled_back = |application: &Value| {
        let status = &application["status"];
        status["sync"]["status"] == "OutOfSync"
            && status["sync"]["revision"] == second.as_str()
            && status["operationState"]["syncResult"]["revision"] == app.commit.as_str()
            && status["operationState"]["phase"] == "Succeeded"
            && !has_operation(application)
    };
    stage.hub.wait_for(&app.application(), rolled_back).await?;
    serves(&stage.cluster1, &app.guestbook(), 1).await?;
    app.has_no_requests().await?;
    app.change("after-rollback").await?;

    // Argo CD records no sync of selected resources, such as a self-heal.
    let mut selected = sync(&second);
    selected["operation"]["sync"]["resources"] =
        json!([{"group": "apps", "kind": "Deployment", "name": "guestbook-ui"}]);
    app.patch(&selected).await?;
    app.runs(&second).await?;
    let revisions = |application: &Value| -> Vec<Value> {
        let history = application["status"]["history"].as_array().into_iter().flatten();
        history.map(|entry| entry["revision"].clone()).collect()
    };
    let live = stage.cluster1.read(&app.application()).await?;
    assert_eq!(revisions(&app.on_hub().await?), revisions(&live));
    assert_eq!(revisions(&live), [&*app.commit, &second, &app.commit]);
    assert_eq!(times(&cluster1, has_operation), 4);
    app.end().await
}

#[tokio::test]
async fn refresh_runs_once_and_is_cleared() -> Result<()> {
    let stage = stage().await?;
    let app = PulledApplication::new(&stage, "pull-refresh")?.start().await?;
    let cluster1 = app.record(&stage.cluster1).await?;
    for how in ["normal", "hard"] {
        let has_refresh = |app: &Value| app["metadata"]["annotations"][REFRESH] == how;
        let compared = |app: &Value| app["status"]["reconciledAt"].to_string();
        let before = stage.cluster1.wait_for(&app.application(), |_| true).await?;
        // Argo CD's server also requests hydration. Its clients wait until the refresh is removed.
        let requests = json!({REFRESH: how, HYDRATE: how, format!("{HYDRATE}-timestamp"): how});
        let patch = json!({"metadata": {"annotations": requests}});
        stage.hub.patch(&app.application(), &patch).await?;
        let is_taken = |app: &Value| app["metadata"]["annotations"][REFRESH].is_null();
        let taken = stage.hub.wait_for(&app.application(), is_taken).await?;
        assert!(compared(&taken) > compared(&before), "the result that clients read");
        let done = async || {
            let states = cluster1.states();
            let requested_at = states.iter().position(has_refresh)?;
            let done = states[requested_at..].iter().find(|app| !has_refresh(app))?;
            (compared(done) > compared(&before)).then_some(())
        };
        wait::eventually("the cluster's Argo CD compares again", wait::DEADLINE, done).await?;
        app.has_no_requests().await?;
        app.change(how).await?;
        assert_eq!(times(&cluster1, has_refresh), 1, "{how}");
        for application in [app.on_hub().await?, stage.cluster1.read(&app.application()).await?] {
            assert!(
                !application["metadata"]["annotations"].to_string().contains(HYDRATE),
                "{application:#}"
            );
        }
    }
    let now = app.on_hub().await?;
    assert!(runs(&now, &app.commit), "{now:#}");
    assert_eq!(now["metadata"]["finalizers"], json!([FINALIZER]));
    app.end().await
}
