//! Tests of failures of the API server: unaffected objects are served, failed requests are retried with backoff and counted, and
//! after the recovery the state is as if there had been no failure.

use crate::stage::{RETRIES, Replica, Stage, WorkHealth, backs_off, config_map, lists, stage, writes_of};
use anyhow::{Context, Result, ensure};
use ocm::names::{WorkName, set_name_max};
use serde_json::json;
use std::time::{Duration, Instant};
use testbed::ObjectRef;
use testbed::application::{APPLY_ERROR, DEGRADED, INFO, messages};
use testbed::proxy::{Fault, RecordedRequest, Times};

const ERRORS: &str = "argocd_ocm_cmp_reconcile_errors_total";
const FAILING: &str = "argocd_ocm_cmp_failing";
const CLUSTERS: &str = "argocd_ocm_cmp_managed_clusters{available=\"true\"}";
const WATCH_ERRORS: &str = "argocd_ocm_cmp_watch_errors_total";

fn error(reason: &str) -> String {
    format!("{ERRORS}{{controller=\"application-status\",reason=\"{reason}\"}}")
}

fn watch_error(kind: &str, reason: &str) -> String {
    format!("{WATCH_ERRORS}{{kind=\"{kind}\",reason=\"{reason}\"}}")
}

#[tokio::test]
async fn refused_write_is_retried_with_backoff_and_blocks_no_other() -> Result<()> {
    let stage = stage("refused-writes").await?;
    let faults = [
        ("conflict", Fault::Status(409), "conflict"),
        ("throttled", Fault::Status(429), "throttled"),
        ("failing", Fault::Status(500), "server"),
        ("busy", Fault::Status(503), "server"),
        ("lost", Fault::AnswerLost, "server"),
    ];
    let proxy = stage.proxy().await?;
    let mut applications = Vec::new();
    for (name, fault, _) in faults {
        applications.push(stage.application(name, WorkHealth::Healthy).await?);
        let times = if fault == Fault::AnswerLost {
            Times::Next(1)
        } else {
            Times::Always
        };
        proxy.fault(fault, times, move |request| {
            request.is("patch", "applications") && request.name.as_deref() == Some(name)
        });
    }
    let controller = stage.controller(&proxy).await?;
    let refused = &applications[..4];
    let tried = |requests: &[RecordedRequest]| {
        refused
            .iter()
            .all(|application| writes_of(requests, application).len() >= RETRIES)
    };
    proxy.until("each write was retried several times", tried).await?;
    let fine = stage.application("fine", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&fine).await?;
    for application in refused {
        backs_off(writes_of(&proxy.requests(), application))?;
    }
    for (_, fault, reason) in &faults[..4] {
        assert!(
            controller.metric(&error(reason)).await? >= RETRIES as u64 - 1,
            "{fault:?}"
        );
    }
    // A `Retry-After` of one second is respected at the first retry, where our maximum backoff is half a second.
    let requests = proxy.requests();
    let throttled = writes_of(&requests, &refused[1]);
    assert!(throttled[1].at - throttled[0].at >= Duration::from_secs(1));

    assert_eq!(controller.metric(FAILING).await?, 4);

    proxy.heal();
    for application in &applications {
        stage.wait_until_healthy(application).await?;
        stage
            .report_health(&application.name, WorkHealth::Degraded("it is broken"))
            .await?;
        let updated = stage.wait_for_condition(application, DEGRADED, "it is broken").await?;
        // Each Application is created, and written once for each state, also if a response was lost: the watch delivers the
        // result.
        assert_eq!(updated["metadata"]["generation"], 3, "{updated:#}");
    }
    controller.until_metric(FAILING, |count| count == 0).await
}

#[tokio::test]
async fn waits_for_an_api_server_that_fails_at_startup() -> Result<()> {
    let stage = stage("refused-lists").await?;
    let proxy = stage.proxy().await?;
    for (resource, code) in [("manifestworks", 500), ("managedclusters", 429), ("applications", 410)] {
        proxy.fault(Fault::Status(code), Times::Always, move |request| {
            request.resource == resource
        });
    }
    proxy.fault(Fault::Hang, Times::Always, |request| request.resource == "configmaps");
    let fine = stage.application("fine", WorkHealth::Healthy).await?;
    let controller = stage.replica("controller", &proxy).await?;
    let of = |requests: &[RecordedRequest], resource: &str| -> Vec<RecordedRequest> {
        requests
            .iter()
            .filter(|request| request.is_initial_list() && request.resource == resource)
            .cloned()
            .collect()
    };
    let failing = ["manifestworks", "managedclusters", "applications"];
    let tried = |requests: &[RecordedRequest]| failing.iter().all(|resource| of(requests, resource).len() >= RETRIES);
    proxy.until("each was listed several times", tried).await?;
    for resource in failing {
        backs_off(&of(&proxy.requests(), resource))?;
    }
    for (kind, reason) in [
        ("manifestworks", "server"),
        ("managedclusters", "throttled"),
        ("applications", "expired"),
    ] {
        assert!(controller.metric(&watch_error(kind, reason)).await? >= 1, "{kind}");
    }
    let (code, why) = controller.get("/readyz").await?;
    assert_eq!(code, 503);
    assert!(failing.iter().all(|kind| why.contains(kind)), "{why}");
    assert_eq!(synced_kinds(&controller, &failing).await?, 0);
    assert_eq!(controller.get("/healthz").await?.0, 200);
    assert_eq!(writes_of(&proxy.requests(), &fine).len(), 0);
    proxy.heal();
    controller.until_ready().await?;
    assert_eq!(synced_kinds(&controller, &failing).await?, 3);
    ensure!(controller.metric(CLUSTERS).await? >= 1, "no managed cluster is counted");
    stage.wait_until_healthy(&fine).await?;
    Ok(())
}

/// Returns the number of these kinds whose cache is synced.
async fn synced_kinds(controller: &Replica, kinds: &[&str]) -> Result<u64> {
    let mut synced_kinds = 0;
    for kind in kinds {
        let synced = format!("argocd_ocm_cmp_watch_synced{{kind=\"{kind}\"}}");
        synced_kinds += controller.metric(&synced).await?;
    }
    Ok(synced_kinds)
}

/// Changes the health of an Application repeatedly, and waits each time until the condition reports it.
async fn keeps_reporting(stage: &Stage, application: &ObjectRef) -> Result<()> {
    for _ in 0..3 {
        stage
            .report_health(&application.name, WorkHealth::Degraded("it is broken"))
            .await?;
        stage.wait_for_condition(application, DEGRADED, "it is broken").await?;
        stage
            .report_health(&application.name, WorkHealth::ApplyFailed("it is refused"))
            .await?;
        let updated = stage
            .wait_for_condition(application, APPLY_ERROR, "it is refused")
            .await?;
        ensure!(messages(&updated, DEGRADED).is_empty(), "{updated:#}");
        stage.report_health(&application.name, WorkHealth::Healthy).await?;
        stage.wait_until_healthy(application).await?;
    }
    Ok(())
}

async fn breaks(stage: &Stage, application: &str) -> Result<()> {
    stage
        .report_health(application, WorkHealth::Degraded("it is broken"))
        .await
}

/// Returns the number of watches of a resource.
fn watches(requests: &[RecordedRequest], resource: &str) -> usize {
    requests.iter().filter(|request| request.is("watch", resource)).count()
}

#[tokio::test]
async fn watches_that_end_or_break_every_second_resume_without_a_list() -> Result<()> {
    let stage = stage("ending-watches").await?;
    let proxy = stage.proxy().await?;
    let controller = stage.controller(&proxy).await?;
    let application = stage.application("shop", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&application).await?;
    let (mark, started) = (proxy.mark(), Instant::now());
    proxy.fault(Fault::EndAfter(Duration::from_secs(1)), Times::Always, |_| true);
    keeps_reporting(&stage, &application).await?;
    let requests = proxy.requests();
    // Watches that were open at the start end at once.
    let most = usize::try_from(started.elapsed().as_secs())? + 2;
    for kind in "applications manifestworks manifestworkreplicasets managedclusters configmaps".split(' ') {
        assert!(watches(&requests[mark..], kind) <= most, "{kind}");
    }
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    assert_eq!(controller.metric(ERRORS).await?, 0);
    proxy.heal();

    let mark = proxy.mark();
    proxy.fault(Fault::ResetAfter(Duration::from_secs(1)), Times::Always, |_| true);
    breaks(&stage, "shop").await?;
    stage.wait_for_condition(&application, DEGRADED, "it is broken").await?;
    let rewatched = |requests: &[RecordedRequest]| watches(&requests[mark..], "manifestworks") >= RETRIES;
    proxy.until("the watch was restarted several times", rewatched).await?;
    let requests = proxy.requests();
    backs_off(
        requests[mark..]
            .iter()
            .filter(|request| request.is("watch", "manifestworks")),
    )?;
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    assert!(controller.metric(&watch_error("manifestworks", "server")).await? >= RETRIES as u64 - 1);
    proxy.heal();
    keeps_reporting(&stage, &application).await
}

#[tokio::test]
async fn expired_watch_relists_and_loses_nothing() -> Result<()> {
    let stage = stage("expired-watches").await?;
    let hub = &stage.hub;
    let proxy = stage.proxy().await?;
    let controller = stage.controller(&proxy).await?;
    let [unchanged, deleted] = [
        stage.application("kept", WorkHealth::Healthy).await?,
        stage.application("going", WorkHealth::Healthy).await?,
    ];
    stage.wait_until_healthy(&unchanged).await?;
    stage.wait_until_healthy(&deleted).await?;
    let mark = proxy.mark();
    // Changes while no watch is open: an update, a creation, and a deletion.
    let now = Instant::now();
    let is_open = move |request: &RecordedRequest| request.verb == "watch" && request.at < now;
    proxy.fault(Fault::Expired, Times::Always, is_open);
    breaks(&stage, "kept").await?;
    let new = stage
        .application("new", WorkHealth::ApplyFailed("it is refused"))
        .await?;
    hub.delete(&ObjectRef::manifest_work(&stage.cluster, "going")).await?;
    stage.wait_for_condition(&unchanged, DEGRADED, "it is broken").await?;
    stage.wait_for_condition(&new, APPLY_ERROR, "it is refused").await?;
    hub.wait_for(&deleted, |application| messages(application, INFO).is_empty())
        .await?;
    let requests = proxy.requests();
    let of_works = |request: &&RecordedRequest| request.is_initial_list() && request.resource == "manifestworks";
    assert_eq!(
        requests[mark..].iter().filter(of_works).count(),
        1,
        "one list replaces all missed events"
    );
    assert_eq!(controller.metric(&watch_error("manifestworks", "expired")).await?, 1);
    proxy.heal();
    keeps_reporting(&stage, &unchanged).await
}

#[tokio::test]
async fn waits_for_a_frozen_api_server() -> Result<()> {
    let stage = stage("frozen").await?;
    let proxy = stage.proxy().await?;
    let controller = stage.controller(&proxy).await?;
    let application = stage.application("shop", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&application).await?;
    let mark = proxy.mark();
    proxy.fault(Fault::Hang, Times::Always, |_| true);
    breaks(&stage, "shop").await?;
    // A Lease that cannot be renewed is lost: another replica may have acquired it.
    controller
        .until_metric("argocd_ocm_cmp_leader", |leads| leads == 0)
        .await?;
    assert_eq!(controller.get("/healthz").await?.0, 200);
    proxy.heal();
    stage.wait_for_condition(&application, DEGRADED, "it is broken").await?;
    let requests = proxy.requests();
    assert_eq!(writes_of(&requests[mark..], &application).len(), 1);
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    Ok(())
}

#[tokio::test]
async fn falls_back_to_paged_lists_without_streaming() -> Result<()> {
    let stage = stage("no-streams").await?;
    let proxy = stage.proxy().await?;
    let is_stream = |request: &RecordedRequest| request.query.contains("sendInitialEvents");
    // The answers of Kubernetes before streaming lists, and where they are switched off.
    proxy.fault(Fault::Status(422), Times::Always, is_stream);
    proxy.fault(Fault::Status(403), Times::Always, |request| request.path == "/version");
    let before = stage.application("before", WorkHealth::Healthy).await?;
    let _controller = stage.controller(&proxy).await?;
    stage.wait_until_healthy(&before).await?;
    let after = stage.application("after", WorkHealth::Degraded("it is broken")).await?;
    stage.wait_for_condition(&after, DEGRADED, "it is broken").await?;
    keeps_reporting(&stage, &before).await?;
    let requests = proxy.requests();
    let counts = |resource: &str| {
        let of_it = requests
            .iter()
            .filter(|request| request.resource == resource && request.is_initial_list());
        let (streams, lists): (Vec<_>, Vec<_>) = of_it.partition(|request| is_stream(request));
        [streams.len(), lists.len()]
    };
    for resource in ["applications", "manifestworks", "managedclusters"] {
        assert_eq!(counts(resource), [1, 1], "{resource}");
    }
    Ok(())
}

const SETS: &str = "customresourcedefinition/manifestworkreplicasets.work.open-cluster-management.io";

#[tokio::test]
async fn removed_crd_blocks_nothing_and_is_watched_again_later() -> Result<()> {
    let stage = stage("kind-taken-away").await?;
    let crd = stage.hub.kubectl(&["get", SETS, "-o", "json"])?;
    let proxy = stage.proxy().await?;
    let watching = stage.controller(&proxy).await?;
    let application = stage.application("shop", WorkHealth::Healthy).await?;
    stage.wait_until_healthy(&application).await?;
    stage.hub.kubectl(&["delete", SETS])?;
    let taken_away = async {
        watching
            .until_metric(&watch_error("manifestworkreplicasets", "missing"), |count| count >= 1)
            .await?;
        keeps_reporting(&stage, &application).await?;
        watching.stop().await?;

        // A controller that starts now does not wait for kinds that the hub does not serve, and seldom retries them.
        let proxy = stage.proxy().await?;
        let controller = stage.controller(&proxy).await?;
        let of_kind =
            |request: &&RecordedRequest| request.is_initial_list() && request.resource == "manifestworkreplicasets";
        let listed_kinds = |requests: &[RecordedRequest]| requests.iter().filter(of_kind).cloned().collect::<Vec<_>>();
        let was_listed = |requests: &[RecordedRequest]| listed_kinds(requests).len() >= RETRIES;
        proxy.until("the kind was listed several times", was_listed).await?;
        backs_off(&listed_kinds(&proxy.requests()))?;
        keeps_reporting(&stage, &application).await?;
        // Both controllers write into one log.
        let log = controller.log()?;
        let (_, log) = log
            .rsplit_once("controller: started")
            .context("the start of the second")?;
        let logged = log.matches("not served by the hub; continuing without it").count();
        ensure!(logged == 1, "logged {logged} times:\n{log}");
        anyhow::Ok((proxy, controller))
    };
    let taken_away = taken_away.await;
    // Also after a failure: other tests need the CRD.
    stage.hub.kubectl_with_input("create -f -", &without_history(&crd)?)?;
    stage.hub.wait_for_crds().await?;
    let (_proxy, _controller) = taken_away?;

    // The name that `generate` gives to a work of this Application.
    let name = "shop"
        .parse::<WorkName>()?
        .set_part("", "argocd/all", set_name_max("argocd"));
    let group = "work.open-cluster-management.io";
    let id = format!("shop:{group}/ManifestWorkReplicaSet:argocd/{name}");
    let set = ObjectRef::namespaced(&format!("{group}/v1alpha1"), "ManifestWorkReplicaSet", "argocd", &name);
    let set = set.with(json!({
        "metadata": {"annotations": {"argocd.argoproj.io/tracking-id": id}},
        "spec": {
            "placementRefs": [{"name": "all"}],
            "manifestWorkTemplate": {"workload": {"manifests": [config_map("web")]}},
        },
    }));
    stage.hub.create(&set).await?;
    let message = format!("argocd/{name}");
    stage.wait_for_condition(&application, INFO, &message).await.map(drop)
}

/// Returns an object without the history of its writes.
fn without_history(object: &str) -> Result<String> {
    let mut object: serde_json::Value = serde_json::from_str(object)?;
    object["status"] = json!({});
    object["metadata"] = json!({"name": object["metadata"]["name"], "annotations": object["metadata"]["annotations"]});
    Ok(object.to_string())
}
