//! Tests of failures of the API server: unaffected objects are served, failed requests are retried with backoff and counted, and
//! after the recovery the state is as if there had been no failure.

use crate::stage::{
    APPLY_ERROR, DEGRADED, Fares, INFO, Replica, Stage, TRIES, backs_off, config_map, lists, messages, stage, writes_of,
};
use anyhow::{Result, ensure};
use ocm::names::{WorkName, set_name_max};
use serde_json::json;
use std::time::{Duration, Instant};
use testbed::ObjectRef;
use testbed::proxy::{Fault, Seen, Times};

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
async fn cluster_cannot_report_for_an_application_by_marking_a_work() -> Result<()> {
    let Some(stage) = stage("fault-marks").await? else {
        return Ok(());
    };
    let proxy = stage.proxy().await?;
    let _controller = stage.controller(&proxy).await?;
    let [victim, _own] = [
        stage.application("shop", Fares::Well).await?,
        stage.application("own", Fares::Badly("text of an attacker")).await?,
    ];
    stage.until_well(&victim).await?;
    let tracking = "shop:work.open-cluster-management.io/ManifestWork:fault-marks/own";
    let marks = json!({"metadata": {
        "annotations": {"argocd.argoproj.io/tracking-id": tracking},
        "labels": {"app.kubernetes.io/instance": "shop"},
    }});
    stage
        .hub
        .patch(&ObjectRef::manifest_work(&stage.cluster, "own"), &marks)
        .await?;
    // A later status is reported, and nothing else is written with it.
    stage.says("shop", Fares::Refused("a reason of its own")).await?;
    let now = stage.until_told(&victim, APPLY_ERROR, "a reason of its own").await?;
    assert_eq!(messages(&now, DEGRADED), [""; 0], "{now:#}");
    Ok(())
}

#[tokio::test]
async fn refused_write_is_retried_with_backoff_and_blocks_no_other() -> Result<()> {
    let Some(stage) = stage("refused-writes").await? else {
        return Ok(());
    };
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
        applications.push(stage.application(name, Fares::Well).await?);
        let times = if fault == Fault::AnswerLost {
            Times::Next(1)
        } else {
            Times::Always
        };
        proxy.fault(fault, times, move |seen| {
            seen.is("patch", "applications") && seen.name.as_deref() == Some(name)
        });
    }
    let controller = stage.controller(&proxy).await?;
    let refused = &applications[..4];
    let tried = |requests: &[Seen]| refused.iter().all(|it| writes_of(requests, it).len() >= TRIES);
    proxy.until("each was tried several times", tried).await?;
    let fine = stage.application("fine", Fares::Well).await?;
    stage.until_well(&fine).await?;
    for application in refused {
        backs_off(writes_of(&proxy.requests(), application))?;
    }
    for (_, fault, reason) in &faults[..4] {
        assert!(
            controller.metric(&error(reason)).await? >= TRIES as u64 - 1,
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
        stage.until_well(application).await?;
        stage.says(&application.name, Fares::Badly("it is broken")).await?;
        let updated = stage.until_told(application, DEGRADED, "it is broken").await?;
        // It is created, and written once for each state, even if the answer was lost: the watch delivers the result.
        assert_eq!(updated["metadata"]["generation"], 3, "{updated:#}");
    }
    controller.until_metric(FAILING, |count| count == 0).await
}

#[tokio::test]
async fn hanging_write_times_out_and_blocks_no_other() -> Result<()> {
    let Some(stage) = stage("hanging-writes").await? else {
        return Ok(());
    };
    let proxy = stage.proxy().await?;
    proxy.fault(Fault::Hang, Times::Always, |seen| {
        seen.is("patch", "applications") && seen.name.as_deref() == Some("hanging")
    });
    let hanging = stage.application("hanging", Fares::Well).await?;
    let controller = stage.controller(&proxy).await?;
    proxy
        .until("it hangs", |requests| !writes_of(requests, &hanging).is_empty())
        .await?;
    let fine = stage.application("fine", Fares::Well).await?;
    stage.until_well(&fine).await?;
    assert_eq!(controller.metric(&error("timeout")).await?, 0);
    let hung = writes_of(&proxy.requests(), &hanging)[0].at;
    controller.until_metric(&error("timeout"), |count| count >= 1).await?;
    let took = hung.elapsed();
    assert!(took < Duration::from_secs(90), "it was given up after {took:?}");
    proxy.heal();
    stage.until_well(&hanging).await?;
    Ok(())
}

#[tokio::test]
async fn waits_for_an_api_server_that_fails_at_startup() -> Result<()> {
    let Some(stage) = stage("refused-lists").await? else {
        return Ok(());
    };
    let proxy = stage.proxy().await?;
    for (resource, code) in [("manifestworks", 500), ("managedclusters", 429), ("applications", 410)] {
        proxy.fault(Fault::Status(code), Times::Always, move |seen| {
            seen.resource == resource
        });
    }
    proxy.fault(Fault::Hang, Times::Always, |seen| seen.resource == "configmaps");
    let fine = stage.application("fine", Fares::Well).await?;
    let controller = stage.replica("controller", &proxy).await?;
    let of = |requests: &[Seen], resource: &str| -> Vec<Seen> {
        requests
            .iter()
            .filter(|seen| seen.brings_all() && seen.resource == resource)
            .cloned()
            .collect()
    };
    let failing = ["manifestworks", "managedclusters", "applications"];
    let tried = |requests: &[Seen]| failing.iter().all(|resource| of(requests, resource).len() >= TRIES);
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
    assert_eq!(known(&controller, &failing).await?, 0);
    assert_eq!(controller.get("/healthz").await?.0, 200);
    assert_eq!(writes_of(&proxy.requests(), &fine).len(), 0);
    proxy.heal();
    controller.until_ready().await?;
    assert_eq!(known(&controller, &failing).await?, 3);
    ensure!(controller.metric(CLUSTERS).await? >= 1, "no managed cluster is counted");
    stage.until_well(&fine).await?;
    Ok(())
}

/// Returns the number of these kinds whose cache is synced.
async fn known(controller: &Replica, kinds: &[&str]) -> Result<u64> {
    let mut known = 0;
    for kind in kinds {
        let synced = format!("argocd_ocm_cmp_watch_synced{{kind=\"{kind}\"}}");
        known += controller.metric(&synced).await?;
    }
    Ok(known)
}

/// Changes the health of an Application again and again, and waits each time until the condition shows it.
async fn goes_on(stage: &Stage, application: &ObjectRef) -> Result<()> {
    for _ in 0..3 {
        stage.says(&application.name, Fares::Badly("it is broken")).await?;
        stage.until_told(application, DEGRADED, "it is broken").await?;
        stage.says(&application.name, Fares::Refused("it is refused")).await?;
        let told_so = stage.until_told(application, APPLY_ERROR, "it is refused").await?;
        ensure!(messages(&told_so, DEGRADED).is_empty(), "{told_so:#}");
        stage.says(&application.name, Fares::Well).await?;
        stage.until_well(application).await?;
    }
    Ok(())
}

/// Returns the number of watches of a resource.
fn watches(requests: &[Seen], resource: &str) -> usize {
    requests.iter().filter(|seen| seen.is("watch", resource)).count()
}

#[tokio::test]
async fn watches_ending_every_second_cause_no_relist() -> Result<()> {
    let Some(stage) = stage("ending-watches").await? else {
        return Ok(());
    };
    let proxy = stage.proxy().await?;
    let controller = stage.controller(&proxy).await?;
    let application = stage.application("shop", Fares::Well).await?;
    stage.until_well(&application).await?;
    let (mark, started) = (proxy.mark(), Instant::now());
    proxy.fault(Fault::EndAfter(Duration::from_secs(1)), Times::Always, |_| true);
    goes_on(&stage, &application).await?;
    let requests = proxy.requests();
    // Watches that were open at the start end at once.
    let most = usize::try_from(started.elapsed().as_secs())? + 2;
    for kind in [
        "applications",
        "manifestworks",
        "manifestworkreplicasets",
        "managedclusters",
        "configmaps",
    ] {
        assert!(watches(&requests[mark..], kind) <= most, "{kind}");
    }
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    assert_eq!(controller.metric(ERRORS).await?, 0);
    Ok(())
}

#[tokio::test]
async fn watches_breaking_every_second_resume_where_they_ended() -> Result<()> {
    let Some(stage) = stage("breaking-watches").await? else {
        return Ok(());
    };
    let proxy = stage.proxy().await?;
    let controller = stage.controller(&proxy).await?;
    let application = stage.application("shop", Fares::Well).await?;
    stage.until_well(&application).await?;
    let mark = proxy.mark();
    proxy.fault(Fault::ResetAfter(Duration::from_secs(1)), Times::Always, |_| true);
    stage.says("shop", Fares::Badly("it is broken")).await?;
    stage.until_told(&application, DEGRADED, "it is broken").await?;
    let begun = |requests: &[Seen]| watches(&requests[mark..], "manifestworks") >= TRIES;
    proxy.until("its watch was begun several times", begun).await?;
    let requests = proxy.requests();
    backs_off(requests[mark..].iter().filter(|seen| seen.is("watch", "manifestworks")))?;
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    assert!(controller.metric(&watch_error("manifestworks", "server")).await? >= TRIES as u64 - 1);
    proxy.heal();
    goes_on(&stage, &application).await
}

#[tokio::test]
async fn expired_watch_relists_and_loses_nothing() -> Result<()> {
    let Some(stage) = stage("expired-watches").await? else {
        return Ok(());
    };
    let proxy = stage.proxy().await?;
    let controller = stage.controller(&proxy).await?;
    let [kept, going] = [
        stage.application("kept", Fares::Well).await?,
        stage.application("going", Fares::Well).await?,
    ];
    stage.until_well(&kept).await?;
    stage.until_well(&going).await?;
    let mark = proxy.mark();
    // Changes while no watch is open: an update, a creation, and a deletion.
    let now = Instant::now();
    let is_open = move |seen: &Seen| seen.verb == "watch" && seen.at < now;
    proxy.fault(Fault::Expired, Times::Always, is_open);
    stage.says("kept", Fares::Badly("it is broken")).await?;
    let new = stage.application("new", Fares::Refused("it is refused")).await?;
    stage
        .hub
        .delete(&ObjectRef::manifest_work(&stage.cluster, "going"))
        .await?;
    stage.until_told(&kept, DEGRADED, "it is broken").await?;
    stage.until_told(&new, APPLY_ERROR, "it is refused").await?;
    stage.hub.wait_for(&going, |it| messages(it, INFO).is_empty()).await?;
    let requests = proxy.requests();
    let of_works = |seen: &&Seen| seen.brings_all() && seen.resource == "manifestworks";
    assert_eq!(
        requests[mark..].iter().filter(of_works).count(),
        1,
        "once for all that was missed"
    );
    assert_eq!(controller.metric(&watch_error("manifestworks", "expired")).await?, 1);
    proxy.heal();
    goes_on(&stage, &kept).await
}

#[tokio::test]
async fn waits_for_a_frozen_api_server() -> Result<()> {
    let Some(stage) = stage("frozen").await? else {
        return Ok(());
    };
    let proxy = stage.proxy().await?;
    let controller = stage.controller(&proxy).await?;
    let application = stage.application("shop", Fares::Well).await?;
    stage.until_well(&application).await?;
    let mark = proxy.mark();
    proxy.fault(Fault::Hang, Times::Always, |_| true);
    stage.says("shop", Fares::Badly("it is broken")).await?;
    // A Lease that cannot be renewed is lost: another replica may have acquired it.
    controller
        .until_metric("argocd_ocm_cmp_leader", |leads| leads == 0)
        .await?;
    assert_eq!(controller.get("/healthz").await?.0, 200);
    proxy.heal();
    stage.until_told(&application, DEGRADED, "it is broken").await?;
    let requests = proxy.requests();
    assert_eq!(writes_of(&requests[mark..], &application).len(), 1);
    assert_eq!(lists(&requests[mark..]), [""; 0]);
    Ok(())
}

#[tokio::test]
async fn falls_back_to_paged_lists_without_streaming() -> Result<()> {
    let Some(stage) = stage("no-streams").await? else {
        return Ok(());
    };
    let proxy = stage.proxy().await?;
    let is_stream = |seen: &Seen| seen.query.contains("sendInitialEvents");
    // The answer of Kubernetes before streaming lists, and where they are switched off.
    proxy.fault(Fault::Status(422), Times::Always, is_stream);
    let before = stage.application("before", Fares::Well).await?;
    let _controller = stage.controller(&proxy).await?;
    stage.until_well(&before).await?;
    let after = stage.application("after", Fares::Badly("it is broken")).await?;
    stage.until_told(&after, DEGRADED, "it is broken").await?;
    goes_on(&stage, &before).await?;
    let requests = proxy.requests();
    let counts = |resource: &str| {
        let of_it = requests
            .iter()
            .filter(|seen| seen.resource == resource && seen.brings_all());
        let (streams, lists): (Vec<_>, Vec<_>) = of_it.partition(|seen| is_stream(seen));
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
    let Some(stage) = stage("kind-taken-away").await? else {
        return Ok(());
    };
    let crd = stage.hub.kubectl(&["get", SETS, "-o", "json"])?;
    let proxy = stage.proxy().await?;
    let watching = stage.controller(&proxy).await?;
    let application = stage.application("shop", Fares::Well).await?;
    stage.until_well(&application).await?;
    stage.hub.kubectl(&["delete", SETS])?;
    let taken_away = async {
        watching
            .until_metric(&watch_error("manifestworkreplicasets", "missing"), |count| count >= 1)
            .await?;
        goes_on(&stage, &application).await?;
        watching.stop().await?;

        // A controller that starts now does not wait for kinds that this hub does not serve, and does not retry them all the
        // time.
        let proxy = stage.proxy().await?;
        let controller = stage.controller(&proxy).await?;
        let asked = |requests: &[Seen]| -> Vec<Seen> {
            requests
                .iter()
                .filter(|seen| seen.brings_all() && seen.resource == "manifestworkreplicasets")
                .cloned()
                .collect()
        };
        proxy
            .until("it was asked for several times", |requests| {
                asked(requests).len() >= TRIES
            })
            .await?;
        backs_off(&asked(&proxy.requests()))?;
        goes_on(&stage, &application).await?;
        anyhow::Ok((proxy, controller))
    };
    let taken_away = taken_away.await;
    // In any case: other tests need it.
    stage
        .hub
        .kubectl_with_input(&["create", "-f", "-"], &without_history(&crd)?)?;
    stage.hub.wait_for_crds().await?;
    let (_proxy, _controller) = taken_away?;

    // The name that `generate` gives to a work of this Application.
    let name = "shop"
        .parse::<WorkName>()?
        .set_part("", "argocd", set_name_max("argocd"));
    let set = json!({
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": {
            "namespace": "argocd",
            "name": name,
            "annotations": {"argocd.argoproj.io/tracking-id":
                format!("shop:work.open-cluster-management.io/ManifestWorkReplicaSet:argocd/{name}")},
        },
        "spec": {
            "placementRefs": [{"name": "all"}],
            "manifestWorkTemplate": {"workload": {"manifests": [config_map()]}},
        },
    });
    stage.hub.create(&set).await?;
    stage.until_told(&application, INFO, &format!("argocd/{name}")).await?;
    Ok(())
}

/// Returns an object without the history of its writes.
fn without_history(object: &str) -> Result<String> {
    let mut object: serde_json::Value = serde_json::from_str(object)?;
    object["status"] = json!({});
    object["metadata"] = json!({"name": object["metadata"]["name"], "annotations": object["metadata"]["annotations"]});
    Ok(object.to_string())
}
