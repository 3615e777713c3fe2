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
    assert!(
        printed.contains("managed cluster eu1 is on hold until") && changes == 1,
        "{printed}"
    );
}
