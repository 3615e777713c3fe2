//! Tests that Argo CD and the controller write the same list of conditions and keep each other's conditions.

use super::of_argocd;
use crate::app::App;
use crate::policy::comparison_error;
use crate::stage::stage;
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testbed::application::{DEGRADED, INFO, messages};
use testbed::{Hub, ObjectRef, new_condition};

const NAME: &str = "controller-race";

/// A cluster without an agent: the test writes the status of works.
const CLUSTER: &str = "cluster-of-the-race";

const SETTINGS: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n";
const WRONG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong}\ndata: [\n";

/// The number of times that the folder is broken and repaired.
const ROUNDS: u32 = 10;

/// Writes the agent's status: the object is on the cluster, or is missing for this reason.
async fn write_status(hub: &Hub, missing: Option<&str>) -> Result<()> {
    let work = ObjectRef::manifest_work(CLUSTER, NAME);
    let generation = hub.read(&work).await?["metadata"]["generation"].clone();
    let condition = |kind: &str, message: Option<&str>| {
        let status = if message.is_none() { "True" } else { "False" };
        new_condition(kind, status, message.unwrap_or_default(), &generation)
    };
    let of_both = [condition("Applied", None), condition("Available", missing)];
    let meta = json!({
        "ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": NAME, "name": "settings",
    });
    let manifest = json!({"resourceMeta": meta, "conditions": of_both, "statusFeedback": {}});
    let status = json!({"conditions": of_both, "resourceStatus": {"manifests": [manifest]}});
    hub.patch_status(&work, &json!({"status": status})).await.map(drop)
}

/// Breaks and repairs the folder, and waits for Argo CD's condition each time.
async fn break_and_repair(hub: &Hub, app: &App<'_>) -> Result<()> {
    for _ in 0..ROUNDS {
        app.push(&[("wrong.yaml", WRONG)]).await?;
        hub.wait_for(&app.application(), |app| comparison_error(app).is_some())
            .await?;
        app.remove(&["wrong.yaml"]).await?;
        hub.wait_for(&app.application(), |app| comparison_error(app).is_none())
            .await?;
    }
    Ok(())
}

/// Changes the status of the work without end.
async fn write_statuses_forever(hub: &Hub) -> Result<()> {
    for round in 0_u64.. {
        let missing = format!("missing in round {round}");
        write_status(hub, (round % 3 != 0).then_some(&missing)).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Returns the fields of an object that the controller has written last, as paths.
fn written(application: &Value) -> BTreeSet<String> {
    let managers = application["metadata"]["managedFields"].as_array();
    let ours = managers
        .into_iter()
        .flatten()
        .filter(|fields| fields["manager"] == "argocd-ocm-cmp");
    ours.flat_map(|fields| leaves(&fields["fieldsV1"])).collect()
}

fn leaves(fields: &Value) -> Vec<String> {
    let Some(below) = fields.as_object().filter(|below| !below.is_empty()) else {
        return vec![String::new()];
    };
    let below = below.iter().filter(|(name, _)| *name != ".");
    let paths = below.flat_map(|(name, field)| {
        let name = name.trim_start_matches("f:").to_owned();
        leaves(field).into_iter().map(move |leaf| match leaf.as_str() {
            "" => name.clone(),
            leaf => format!("{name} {leaf}"),
        })
    });
    paths.collect()
}

#[tokio::test]
async fn concurrent_writers_keep_each_others_conditions() -> Result<()> {
    let stage = stage().await?;
    let hub = &stage.hub;
    hub.declare_managed_cluster(CLUSTER).await?;
    let settings: [(&str, &[&str]); 1] = [("clusters", &[CLUSTER])];
    let app = App::start_on(hub, NAME, &settings, &[("settings.yaml", SETTINGS)], false).await?;
    let label = json!({"metadata": {"labels": {NAME: "true"}}});
    hub.patch(&app.application(), &label).await?;
    let recording = hub.record("argoproj.io/v1alpha1", "Application", NAME).await?;

    tokio::select! {
        ended = break_and_repair(hub, &app) => ended?,
        ended = write_statuses_forever(hub) => ended?,
    }

    // At the end, each writer has its conditions, independently of the other.
    for (missing, broken) in [
        (Some("gone"), true),
        (None, true),
        (Some("missing at the end"), false),
        (None, false),
    ] {
        if broken {
            app.push(&[("wrong.yaml", WRONG)]).await?;
        } else if comparison_error(&hub.read(&app.application()).await?).is_some() {
            app.remove(&["wrong.yaml"]).await?;
        }
        write_status(hub, missing).await?;
        let warning = missing.map(|why| format!("{CLUSTER}: ConfigMap {NAME}/settings: {why}"));
        let both_conditions = |app: &Value| {
            comparison_error(app).is_some() == broken
                && messages(app, DEGRADED).first().copied() == warning.as_deref()
                && messages(app, INFO).len() == 1
        };
        hub.wait_for(&app.application(), both_conditions).await?;
    }

    let states = recording.states();
    let conditions_changed = |pair: &&[Value]| pair[0]["status"]["conditions"] != pair[1]["status"]["conditions"];
    let by_us: Vec<&[Value]> = states
        .windows(2)
        .filter(conditions_changed)
        .filter(|pair| written(&pair[1]).contains("status conditions"))
        .collect();
    ensure!(by_us.len() >= 5, "the controller wrote only {} times", by_us.len());
    for pair in by_us {
        assert_eq!(of_argocd(&pair[0]), of_argocd(&pair[1]), "they are Argo CD's");
        let (before, after) = (&pair[0]["status"], &pair[1]["status"]);
        for part in "sync health resources operationState summary history reconciledAt".split(' ') {
            assert_eq!(before[part], after[part], "{part} is Argo CD's");
        }
    }
    for state in &states {
        for path in written(state) {
            // The field list may contain parents without a field that the controller owns.
            let ours = ["status conditions", "metadata annotations argocd.argoproj.io/refresh"];
            assert!(
                ours.iter().any(|ours| ours.starts_with(&path)),
                "the controller wrote {path}"
            );
        }
    }
    app.end().await
}
