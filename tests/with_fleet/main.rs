//! Tests of argocd-agent for a fleet with one GitOpsCluster, on a real API server: the cost of a cluster is its own writes, and
//! an unchanged state costs nothing, also after a restart of the controller. The test simulates OCM. Only this test uses the hub: the
//! objects of others would be counted too.
//!
//! If the testbed is not available (no Go …), the tests fail and name what is missing.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "clippy.toml restricts the program; tests may read files and the clock, and print"
)]

mod stage;

use anyhow::{Context, Result};
use serde_json::Value;
use stage::{Controller, change, decided, each, goc, install, management, secret};
use std::time::Instant;
use testbed::proxy::RecordedRequest;

/// The number of clusters in three decisions.
const CLUSTERS: usize = 300;

/// The maximum number of list requests at the start of a controller: one or two for each kind.
const LISTS: usize = 40;

/// Returns the requests with this verb and resource; Secrets of the hub have that name. On a slow machine the watch event of a
/// creation may arrive after a second attempt to create, which is rejected.
fn counted(requests: &[RecordedRequest], what: &str) -> Vec<String> {
    let is_it = |request: &&RecordedRequest| {
        let name = request
            .body
            .as_ref()
            .map_or(&Value::Null, |body| &body["metadata"]["name"]);
        let is_of_hub = name.as_str().is_some_and(|name| name.starts_with("argocd-agent-"));
        let is_secret = request.resource == "secrets";
        let of = if is_secret && is_of_hub { " of the hub" } else { "" };
        request.answer != Some(409) && format!("{} {}{of}", request.verb, request.resource) == what
    };
    requests.iter().filter(is_it).map(RecordedRequest::to_string).collect()
}

/// Returns the requests for one object; recording an Event reads it.
fn single_reads(requests: &[RecordedRequest]) -> Vec<String> {
    let is_one =
        |request: &&RecordedRequest| request.verb == "get" && !["", "events"].contains(&request.resource.as_str());
    requests.iter().filter(is_one).map(RecordedRequest::to_string).collect()
}

/// Returns the requests for all objects of a kind.
fn lists(requests: &[RecordedRequest]) -> Vec<String> {
    // A kind that the hub does not serve is retried every minute.
    let is_served = |request: &RecordedRequest| request.answer != Some(404);
    let lists = requests
        .iter()
        .filter(|request| request.is_initial_list() && is_served(request));
    lists.map(RecordedRequest::to_string).collect()
}

/// Asserts that only the Secret of this cluster was written, once.
fn assert_only(cluster: &str, requests: &[RecordedRequest]) {
    let written: Vec<_> = requests
        .iter()
        .filter(|request| request.is_write())
        .map(RecordedRequest::to_string)
        .collect();
    // The watch event may arrive before the answer.
    let paths: Vec<_> = written
        .iter()
        .filter_map(|request| Some(request.rsplit_once(": ")?.0))
        .collect();
    let secret = format!("patch /api/v1/namespaces/argocd/secrets/cluster-{cluster}");
    assert_eq!(paths, [&secret], "{written:#?}");
}

#[tokio::test]
async fn large_fleet_costs_one_write_per_object_and_none_afterwards() -> Result<()> {
    let clusters: Vec<_> = (0..CLUSTERS).map(|at| format!("fleet-{at:03}")).collect();
    let hub = stage::start(&clusters).await?;
    let started = Instant::now();
    let note = |what: &str| println!("{what} after {:.1?}", started.elapsed());
    hub.create(&stage::gitops_cluster()).await?;
    let running = Controller::start(&hub, "first").await?;
    let known = hub.wait_for(&management(), |_| true).await?;
    let template = &known["spec"]["installStrategy"]["placements"][0]["configs"][0]["name"];
    let template = template.as_str().context("a template")?;
    each(&clusters, async |cluster| {
        install(&hub, cluster, template).await?;
        let has_credential = |secret: &Value| secret["data"]["config"].is_string();
        hub.wait_for(&secret(cluster), has_credential).await.map(drop)
    })
    .await?;
    let is_ready = |gitops_cluster: &Value| {
        let conditions = gitops_cluster["status"]["conditions"].as_array().into_iter().flatten();
        let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
        ready.any(|condition| condition["status"] == "True")
            && gitops_cluster["status"]["clusters"]["connected"] == CLUSTERS
    };
    hub.wait_for(&goc(), is_ready).await?;
    assert_eq!(decided(&hub).await?, clusters.iter().cloned().collect());
    note("every agent is ready");

    let decisions = CLUSTERS.div_ceil(100);
    for (what, times) in [
        ("create secrets", CLUSTERS),
        ("create manifestworks", CLUSTERS),
        ("create placementdecisions", decisions),
        ("patch placementdecisions/status", decisions),
        ("create addontemplates", 1),
        ("create clustermanagementaddons", 1),
        // On the hub: the authority, two certificates of it, and the key for tokens.
        ("create secrets of the hub", 4),
        ("patch secrets", 0),
        ("patch manifestworks", 0),
    ] {
        let done = counted(&running.proxy.requests(), what);
        assert_eq!(done.len(), times, "{what}: {done:#?}");
    }
    // Certificates are created in bursts, each of which reads the authority.
    let (signing, others): (Vec<_>, Vec<_>) = single_reads(&running.proxy.requests())
        .into_iter()
        .partition(|request| request.contains("/secrets/argocd-agent-ca:"));
    assert!(
        signing.len() <= CLUSTERS / 2,
        "the authority was read {} times",
        signing.len()
    );
    assert_eq!(others, [""; 0]);

    // Without changes there are no requests, and a change of one cluster is a write.
    let mark = running.proxy.mark();
    change(&hub, "fleet-007", "1").await?;
    change(&hub, "fleet-007", "2").await?;
    let requests = running.proxy.requests().split_off(mark);
    assert_eq!(
        requests.iter().filter(|request| request.is_write()).count(),
        2,
        "{requests:#?}"
    );
    assert_eq!((lists(&requests), single_reads(&requests)), (vec![], vec![]));
    running.stop().await?;

    let again = Controller::start(&hub, "second").await?;
    change(&hub, "fleet-008", "1").await?;
    // The Secrets of all others follow by name, and the GitOpsCluster is reconciled after its clusters.
    change(&hub, "fleet-299", "1").await?;
    let mut requests = again.stop().await?;
    let of_last = |request: &RecordedRequest| request.is_write() && request.to_string().contains("cluster-fleet-299");
    requests.retain(|request| !of_last(request));
    assert_only("fleet-008", &requests);
    assert_eq!(single_reads(&requests), [""; 0]);
    let listed = lists(&requests);
    assert!(listed.len() < LISTS, "each kind is listed once or twice: {listed:#?}");
    note("a restart wrote nothing");

    // All objects are deleted with the GitOpsCluster, after OCM has removed the add-on.
    let running = Controller::start(&hub, "third").await?;
    hub.delete(&goc()).await?;
    hub.wait_gone(&management()).await?;
    each(&clusters, async |cluster| hub.delete(&stage::addon(cluster)).await).await?;
    hub.wait_gone(&goc()).await?;
    stage::wait_until_nothing_is_decided(&hub).await?;
    assert_eq!(hub.get(&secret("fleet-007")).await?, None);
    let requests = running.stop().await?;
    assert_eq!(
        counted(&requests, "delete secrets").len(),
        CLUSTERS + 4,
        "one deletion for each Secret"
    );
    note("every object is deleted");
    Ok(())
}
