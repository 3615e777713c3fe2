//! Tests of reading the works that the controller writes.

use super::tests::{payload, work};
use hub_state::json::borrowed;
use hub_state::pull::PullWork;
use hub_state::pull::forwarded::Requests;
use hub_state::pull::pull_work::ApplyState;
use hub_state::testing::pull::{application, read_work, reported};
use ocm::pull_model as names;
use primitives::object_ref::ObjectRef;
use serde_json::{Value, json};

fn work_with_feedback(reported: Option<Value>) -> Value {
    work(&application(|_| ()), &Requests::default(), reported)
}

#[test]
fn reads_only_works_of_the_pull_model() {
    let pull_work = read_work(&work_with_feedback(None));
    assert_eq!(pull_work.claim, Some(ObjectRef::new("argocd", "shop")));
    assert_eq!(
        (&*pull_work.uid, &*pull_work.version, pull_work.deleting),
        ("w", "41", false)
    );
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut work = work_with_feedback(None);
        change(&mut work);
        PullWork::from_json(&borrowed(&work)).expect("it is not deep")
    };
    let unclaimed: [&dyn Fn(&mut Value); 5] = [
        &|work| work["metadata"]["labels"] = json!({}),
        &|work| work["metadata"]["labels"][names::PULL] = json!("no"),
        &|work| work["metadata"]["annotations"][names::HUB_NAME] = json!(""),
        &|work| work["metadata"]["annotations"][names::HUB_NAME] = json!("another than the spec has"),
        &|work| work["metadata"]["annotations"][names::HUB_NAMESPACE] = Value::Null,
    ];
    for change in unclaimed {
        let pull_work = changed(change).expect("the spec has an Application");
        assert_eq!((&*pull_work.name, pull_work.claim), ("shop", None));
    }
    let acms = changed(&|work| {
        work["metadata"]["labels"] = json!({names::OF_SET: "true"});
        work["metadata"]["annotations"][names::SET] = json!("argocd/fleet");
    });
    assert_eq!(acms.expect("it is ACM's").set.as_deref(), Some("argocd/fleet"));
    let empty = changed(&|work| work["spec"] = Value::Null).expect("it claims to have one");
    assert_eq!((&*empty.name, empty.claim.is_some()), ("shop", true));
    let neither = changed(&|work| (work["spec"], work["metadata"]["labels"]) = (Value::Null, json!({})));
    assert!(neither.is_none());
}

#[test]
fn reads_empty_and_reordered_statuses() {
    let hash = payload(&application(|_| ()), &Requests::default());
    let ours = reported(&[("payload", &hash), ("healthStatus", "Healthy")]);
    let mut namespace = reported(&[("healthStatus", "Degraded")]);
    namespace["resourceMeta"] = json!({"ordinal": 0, "group": "", "resource": "namespaces", "name": "shop"});
    let mut other = reported(&[("healthStatus", "Missing")]);
    other["resourceMeta"]["name"] = json!("other");
    for (manifests, is_current) in [
        (json!([namespace, other, ours]), true),
        (json!([null, {"conditions": []}, ours, other]), true),
        (json!([namespace, other]), false),
        (json!([]), false),
        (Value::Null, false),
    ] {
        let mut work = work_with_feedback(None);
        work["status"]["resourceStatus"]["manifests"] = manifests;
        let pull_work = read_work(&work);
        assert_eq!(pull_work.is_current(), is_current, "{work}");
        assert_eq!(pull_work.applied == ApplyState::Unknown, !is_current, "{work}");
        let health = pull_work.feedback.reported.health.status;
        assert_eq!(health.as_deref(), is_current.then_some("Healthy"));
    }
    assert_eq!(read_work(&work_with_feedback(None)).applied, ApplyState::Unknown);
}

#[test]
fn reads_the_apply_error_of_an_unknown_kind() {
    let mut refused = reported(&[]);
    refused["resourceMeta"]["resource"] = json!("");
    refused["conditions"] = json!([
        {"type": "Applied", "status": "False", "message": "no such kind", "observedGeneration": 2},
    ]);
    let pull_work = read_work(&work_with_feedback(Some(refused.clone())));
    assert_eq!(pull_work.refused(), Some("no such kind"));
    refused["conditions"][0]["observedGeneration"] = json!(1);
    let pull_work = read_work(&work_with_feedback(Some(refused)));
    assert_eq!(pull_work.applied, ApplyState::Pending, "of an earlier form of the work");
}

#[test]
fn feedback_of_a_work_of_a_peer_is_current() {
    let mut peers = work_with_feedback(Some(reported(&[("healthStatus", "Healthy")])));
    assert!(!read_work(&peers).is_current(), "feedback of another payload");
    peers["spec"]["workload"]["manifests"][0]["metadata"]["annotations"] = json!({});
    assert!(read_work(&peers).is_current());
}
