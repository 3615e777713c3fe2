//! argocd-agent for a fleet by one GitOpsCluster: what a cluster costs is what is written for it, and what is as it should be costs
//! nothing. OCM is played here.

use crate::gitopscluster::{hub, select, until};
use crate::gitopscluster_crd::{named, object};
use crate::stage::{Stage, lists, writes};
use anyhow::{Context, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testbed::proxy::Seen;
use testbed::{ObjectRef, wait};

const PROMISES: &str = "gitopscluster,argocd-agent";

const GOC: &str = "agents-fleet";

/// One more than are in one decision at most.
const CLUSTERS: usize = 101;

/// How many requests of the load are under way at a time.
const AT_ONCE: usize = 8;

const ADDON: &str = "argocd-agent-addon";
const CA_WORK: &str = "argocd-agent-ca-mw";

/// Does something for each cluster.
async fn each(clusters: &[String], work: impl AsyncFn(&str) -> Result<()>) -> Result<()> {
    let work = &work;
    let all = stream::iter(clusters).map(|cluster| async move { work(cluster).await.with_context(|| cluster.clone()) });
    all.buffer_unordered(AT_ONCE).try_collect().await
}

fn secret(cluster: &str) -> ObjectRef {
    ObjectRef::namespaced("v1", "Secret", "argocd", &format!("cluster-{cluster}"))
}

fn condition(kind: &str, generation: &Value) -> Value {
    json!({
        "type": kind,
        "status": "True",
        "reason": kind,
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    })
}

/// OCM installs the add-on on a cluster, whose agents do what they are told.
async fn install(stage: &Stage, cluster: &str, template: &str) -> Result<()> {
    let hub = stage.hub;
    let work = ObjectRef::manifest_work(cluster, CA_WORK);
    let generation = hub.wait_for(&work, |_| true).await?["metadata"]["generation"].clone();
    let applied = json!({"status": {"conditions": [condition("Applied", &generation)]}});
    hub.patch_status(&work, &applied).await?;
    let addon = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1",
        "kind": "ManagedClusterAddOn",
        "metadata": {"name": ADDON, "namespace": cluster},
        "spec": {},
    });
    let addon = ObjectRef::of(&hub.create(&addon).await?);
    let conditions = ["ManifestApplied", "Available"].map(|kind| condition(kind, &json!(1)));
    let form = json!({"name": template, "specHash": "1"});
    let reference = json!({
        "group": "addon.open-cluster-management.io",
        "resource": "addontemplates",
        "name": template,
        "lastObservedGeneration": 1,
        "desiredConfig": form,
        "lastAppliedConfig": form,
    });
    let status = json!({"status": {"conditions": conditions, "configReferences": [reference]}});
    hub.patch_status(&addon, &status).await.map(drop)
}

/// The requests that did this: the verb, and to what; Secrets of the hub are called so.
fn counted(requests: &[Seen], what: &str) -> Vec<String> {
    let is_it = |seen: &&Seen| {
        let name = &seen
            .body
            .as_ref()
            .map_or(&Value::Null, |body| &body["metadata"]["name"]);
        let is_of_hub = name.as_str().is_some_and(|name| name.starts_with("argocd-agent-"));
        let of = if seen.resource == "secrets" && is_of_hub {
            " of the hub"
        } else {
            ""
        };
        format!("{} {}{of}", seen.verb, seen.resource) == what
    };
    requests.iter().filter(is_it).map(Seen::to_string).collect()
}

/// The requests for one object; whoever holds the Lease asks for it, and whoever tells an Event.
fn asked(requests: &[Seen]) -> Vec<String> {
    let is_one = |seen: &&Seen| seen.verb == "get" && !["", "leases", "events"].contains(&seen.resource.as_str());
    requests.iter().filter(is_one).map(Seen::to_string).collect()
}

/// The clusters that the decisions name that were written for the add-on.
async fn decided(stage: &Stage) -> Result<BTreeSet<String>> {
    let api = "cluster.open-cluster-management.io/v1beta1";
    let all = stage.hub.list(api, "PlacementDecision").await?;
    let label = "cluster.open-cluster-management.io/placement";
    let ours = all
        .iter()
        .filter(|it| it["metadata"]["labels"][label] == format!("{GOC}-argocd-agent"));
    let decisions = ours.flat_map(|it| it["status"]["decisions"].as_array().into_iter().flatten());
    Ok(decisions
        .filter_map(|it| it["clusterName"].as_str().map(ToOwned::to_owned))
        .collect())
}

/// Changes a label of a cluster and waits until its Secret has it: what came before that is over.
async fn change(stage: &Stage, cluster: &str, value: &str) -> Result<()> {
    let managed = ObjectRef::cluster("cluster.open-cluster-management.io/v1", "ManagedCluster", cluster);
    let labels = json!({"metadata": {"labels": {"change": value}}});
    stage.hub.patch(&managed, &labels).await?;
    let has_it = |secret: &Value| secret["metadata"]["labels"]["change"] == value;
    stage.hub.wait_for(&secret(cluster), has_it).await.map(drop)
}

/// That nothing was written but the Secret of this cluster, once.
fn assert_only(cluster: &str, requests: &[Seen]) {
    let written = writes(requests);
    // The watch may tell of it before it is answered.
    let paths: Vec<_> = written
        .iter()
        .filter_map(|it| it.rsplit_once(": "))
        .map(|(it, _)| it)
        .collect();
    let secret = format!("patch /api/v1/namespaces/argocd/secrets/cluster-{cluster}");
    assert_eq!(paths, [&secret], "{written:#?}");
}

#[tokio::test]
async fn a_fleet_gets_agents_by_one_write_for_each_thing_and_costs_nothing_then_not_even_a_restart() -> Result<()> {
    let clusters: Vec<_> = (0..CLUSTERS).map(|at| format!("fleet-{at:03}")).collect();
    let Some(stage) = hub(&[&clusters[0]]).await? else {
        return Ok(());
    };
    let hub = stage.hub;
    each(&clusters[1..], async |cluster| {
        hub.declare_managed_cluster(cluster).await
    })
    .await?;
    let names: Vec<_> = clusters.iter().map(String::as_str).collect();
    select(&stage, GOC, &names).await?;
    let spec = json!({
        "placementRef": {"kind": "Placement", "name": GOC},
        "argoCDAgentAddon": {"principalServerAddress": "principal.example.com", "principalServerPort": "443"},
        "agent": {"images": {"supervisor": "example.com/argocd-ocm-cmp:v1"}},
    });
    hub.create(&object("v1alpha1", GOC, &spec)).await?;

    let proxy = stage.proxy().await?;
    let running = stage.controller_for(PROMISES, &proxy).await?;
    let management = ObjectRef::cluster(
        "addon.open-cluster-management.io/v1alpha1",
        "ClusterManagementAddOn",
        ADDON,
    );
    let known = hub.wait_for(&management, |_| true).await?;
    let template = &known["spec"]["installStrategy"]["placements"][0]["configs"][0]["name"];
    let template = template.as_str().context("a template")?;
    each(&clusters, async |cluster| {
        install(&stage, cluster, template).await?;
        let has_credential = |secret: &Value| secret["data"]["config"].is_string();
        hub.wait_for(&secret(cluster), has_credential).await.map(drop)
    })
    .await?;
    until(&stage, GOC, "Ready", "True", "").await?;
    assert_eq!(decided(&stage).await?, clusters.iter().cloned().collect());

    for (what, times) in [
        ("create secrets", CLUSTERS),
        ("create manifestworks", CLUSTERS),
        ("create placementdecisions", 2),
        ("patch placementdecisions/status", 2),
        ("create addontemplates", 1),
        ("create clustermanagementaddons", 1),
        // Of the hub: the authority, two certificates of it, and the key for tokens.
        ("create secrets of the hub", 4),
        ("patch secrets", 0),
        ("patch manifestworks", 0),
    ] {
        let done = counted(&proxy.requests(), what);
        assert_eq!(done.len(), times, "{what}: {done:#?}");
    }
    let invalid = proxy.requests().into_iter().filter(|seen| seen.answer == Some(422));
    assert_eq!(invalid.map(|seen| seen.to_string()).collect::<Vec<_>>(), [""; 0]);
    let all = asked(&proxy.requests());
    // Certificates are made in a burst, for which the authority is asked for.
    let (signing, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.contains("/secrets/argocd-agent-ca:"));
    assert!(signing.len() <= CLUSTERS / 2, "it is asked for {} times", signing.len());
    assert_eq!(others, [""; 0]);

    // Nothing is asked for at rest, and a change of one cluster is a write.
    let mark = proxy.mark();
    change(&stage, "fleet-007", "1").await?;
    assert_only("fleet-007", &proxy.requests()[mark..]);
    assert_eq!(lists(&proxy.requests()[mark..]), [""; 0]);
    running.stop().await?;

    let again = stage.proxy().await?;
    let running = stage.controller_for(PROMISES, &again).await?;
    running
        .until_metric("argocd_ocm_cmp_reconciles_total", |looks| looks >= 3 * CLUSTERS as u64)
        .await?;
    change(&stage, "fleet-008", "1").await?;
    assert_only("fleet-008", &again.requests());
    assert_eq!(asked(&again.requests()), [""; 0]);
    let listed = lists(&again.requests());
    assert!(listed.len() < 40, "each kind once or twice: {listed:#?}");

    // All of it goes with the GitOpsCluster, once OCM has taken the add-on away.
    hub.delete(&named("v1alpha1", GOC)).await?;
    hub.wait_gone(&management).await?;
    hub.kubectl(&["delete", "managedclusteraddons", "--all", "--all-namespaces"])?;
    hub.wait_gone(&named("v1alpha1", GOC)).await?;
    let left = async || (decided(&stage).await.ok()?.is_empty()).then_some(());
    wait::eventually("no decision is left", wait::DEADLINE, left).await?;
    assert_eq!(hub.get(&secret("fleet-007")).await?, None);
    running.stop().await
}
