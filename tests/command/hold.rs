//! Tests of `hold` with a hub of fixed objects.

use crate::fake_hub::{FakeHub, objects};
use serde_json::json;

/// The policy has no other clock, and the Lease stays when the controller is gone.
#[test]
fn hold_with_an_end_needs_a_controller_that_renews_its_lease() {
    let mut objects = objects();
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let policy = "argocd-ocm-cmp-holds.argocd";
    let binding = json!({"spec": {"policyName": policy, "validationActions": ["Deny"]}});
    objects.insert(format!("{admission}/validatingadmissionpolicies/{policy}"), json!({}));
    objects.insert(
        format!("{admission}/validatingadmissionpolicybindings/argocd-ocm-cmp-timedholds.argocd"),
        binding,
    );
    let earlier = json!({"argocd-ocm-cmp.github.io/hold-reason": "storage migration"});
    let labels = json!({"argocd-ocm-cmp.github.io/hold": "until-released"});
    objects.insert(
        "/api/v1/namespaces/eu1".to_owned(),
        json!({"metadata": {"name": "eu1", "labels": labels, "annotations": earlier}}),
    );
    let lease = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases/argocd-ocm-cmp-controller";
    let hold = |renewed: &str| {
        let mut objects = objects.clone();
        objects.insert(
            lease.to_owned(),
            json!({"spec": {"leaseDurationSeconds": 15, "renewTime": renewed}}),
        );
        let hub = FakeHub::start(objects);
        (hub.run("hold eu1 --until 8h"), hub.changes().len())
    };
    let (printed, changes) = hold("2026-01-01T00:00:00.000000Z");
    let problem = "Lease argocd/argocd-ocm-cmp-controller is not renewed, so a hold would not end by itself";
    assert!(printed.contains(problem) && changes == 0, "{printed}");
    let (printed, changes) = hold("2099-01-01T00:00:00.000000Z");
    let line = printed
        .lines()
        .find(|line| line.starts_with("managed cluster eu1 is on hold until"));
    assert!(
        line.is_some_and(|line| line.ends_with(", before on hold: storage migration")) && changes == 1,
        "{printed}"
    );
}

/// Otherwise nothing explains why a sync fails.
#[test]
fn hold_is_shown_until_the_policy_ends_it() {
    let mut objects = objects();
    let annotations = json!({"argocd-ocm-cmp.github.io/hold-until": "2026-02-01T00:00:00Z"});
    let labels = json!({"argocd-ocm-cmp.github.io/hold": "until-time"});
    objects.insert(
        "/api/v1/namespaces/eu1".to_owned(),
        json!({"metadata": {"name": "eu1", "labels": labels, "annotations": annotations}}),
    );
    let lease = |renewed: &str| json!({"spec": {"renewTime": renewed}});
    let refused = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": 403});
    for (lease, is_shown) in [
        (Some(lease("2026-01-01T00:00:00Z")), true),
        (Some(lease("2026-02-01T00:00:00Z")), false),
        (None, true),
        (Some(refused), false),
    ] {
        let mut objects = objects.clone();
        let path = "/apis/coordination.k8s.io/v1/namespaces/argocd/leases/argocd-ocm-cmp-controller";
        objects.extend(lease.map(|lease| (path.to_owned(), lease)));
        let printed = FakeHub::start(objects).run("status shop");
        assert_eq!(printed.contains("eu1 is on hold until"), is_shown, "{printed}");
    }
}
