//! Tests of `hold` and `release` with the admission policy on a real API server: works of a cluster on hold stay as they are.

use crate::stage::{WorkHealth, config_map, own_stage};
use anyhow::Result;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use testbed::{Arguments, Hub, ObjectRef, wait};

const POLICY: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/holds.yaml"));
const LEASE: &str = "argocd-ocm-cmp-controller";

fn run(hub: &Hub, words: &(impl Arguments + ?Sized)) -> Result<String> {
    hub.run(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), words)
}

/// Changes the manifest of a work, each time to another one.
async fn change(hub: &Hub, work: &ObjectRef) -> Result<()> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let manifest = config_map(&format!("changed-{number}"));
    let patch = json!({"spec": {"workload": {"manifests": [manifest]}}});
    hub.patch(work, &patch).await.map(drop)
}

/// Changes a work until that is refused, because a policy takes effect with a delay, and returns the message.
async fn until_refused(hub: &Hub, work: &ObjectRef) -> Result<String> {
    let refused = async || change(hub, work).await.err().map(|error| format!("{error:#}"));
    wait::eventually("a change is refused", wait::DEADLINE, refused).await
}

async fn until_permitted(hub: &Hub, work: &ObjectRef) -> Result<()> {
    let permitted = async || change(hub, work).await.ok();
    wait::eventually("a change is permitted", wait::DEADLINE, permitted).await
}

/// Not on a shared hub: after a failure, the hold would break later tests.
#[tokio::test]
async fn works_of_a_cluster_on_hold_stay_as_they_are() -> Result<()> {
    let stage = own_stage("warehouse").await?;
    let hub = &stage.hub;
    stage.application("kept", WorkHealth::Healthy).await?;
    let work = ObjectRef::manifest_work("warehouse", "kept");
    let without_policy = run(hub, "hold warehouse")
        .expect_err("the policy is missing")
        .to_string();
    assert!(without_policy.contains("the hub enforces no holds"), "{without_policy}");
    hub.apply_yaml(POLICY)?;
    let unknown = run(hub, "hold warehuose").expect_err("an unknown cluster").to_string();
    assert_eq!(
        unknown,
        "error: managed cluster warehuose is not registered: did you mean warehouse?"
    );

    assert_eq!(
        run(hub, &["hold", "warehouse", "--reason", "storage migration"])?,
        "managed cluster warehouse is on hold: storage migration\n"
    );
    let message = until_refused(hub, &work).await?;
    let expected = "managed cluster warehouse is on hold: storage migration; to end the hold, run: argocd-ocm-cmp release warehouse";
    assert!(message.contains(expected), "{message}");
    let new = ObjectRef::manifest_work("warehouse", "new")
        .with(json!({"spec": {"workload": {"manifests": [config_map("new")]}}}));
    let created = hub.create(&new).await.expect_err("a creation").to_string();
    let deleted = hub.delete(&work).await.expect_err("a deletion").to_string();
    assert!(
        created.contains(expected) && deleted.contains(expected),
        "{created}\n{deleted}"
    );

    // What OCM and Argo CD write without changing what is delivered.
    stage
        .report_health("kept", WorkHealth::Degraded("it is broken"))
        .await?;
    hub.patch(&work, &json!({"metadata": {"labels": {"a": "b"}}})).await?;
    let patch = r#"{"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}"#;
    let patch = format!("patch manifestwork kept --namespace=warehouse --type=merge --patch {patch}");
    hub.kubectl(&format!("{patch} --dry-run=server"))?;
    let emergency = "--as=someone --as-group=system:masters --as-group=argocd-ocm-cmp:break-glass";
    hub.kubectl(&format!("{patch} {emergency}"))?;

    let uninstall = run(hub, "uninstall").expect_err("it would end the hold").to_string();
    assert!(
        uninstall.contains("is on hold: storage migration, which its admission policy enforces"),
        "{uninstall}"
    );

    assert_eq!(run(hub, "release warehouse")?, "managed cluster warehouse released\n");
    until_permitted(hub, &work).await?;
    assert_eq!(
        run(hub, "release warehouse")?,
        "managed cluster warehouse was not on hold\n"
    );
    assert_eq!(run(hub, "hold")?, "no managed cluster is on hold\n");
    ends_at_its_time(hub, &work).await
}

async fn ends_at_its_time(hub: &Hub, work: &ObjectRef) -> Result<()> {
    let lease = ObjectRef::namespaced("coordination.k8s.io/v1", "Lease", "argocd", LEASE)
        .with(json!({"spec": {"renewTime": "2098-12-31T23:00:00.000000Z"}}));
    let lease = ObjectRef::of(&hub.create(&lease).await?);

    run(hub, "hold warehouse --until 2099-01-01T00:00:00Z --reason audit")?;
    let listed = run(hub, "hold -o json")?;
    let expected = r#"[{"cluster":"warehouse","over":false,"reason":"audit","until":"2099-01-01T00:00:00Z"}]"#;
    assert_eq!(listed.trim_end(), expected);
    let message = until_refused(hub, work).await?;
    assert!(
        message.contains("is on hold until 2099-01-01T00:00:00Z: audit"),
        "{message}"
    );

    // The controller renews its Lease every two seconds.
    hub.patch(&lease, &json!({"spec": {"renewTime": "2099-01-01T00:00:01.000000Z"}}))
        .await?;
    until_permitted(hub, work).await?;
    run(hub, "release warehouse")?;
    hub.delete(&lease).await
}
