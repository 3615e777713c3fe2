//! Property tests of the parsers of works, whose status the agent of a managed cluster writes, and of Secrets and
//! CertificateSigningRequests.

use super::{Object, TlsSecret, Work, WorkState};
use crate::model::Kind;
use jiff::Timestamp;
use proptest::prelude::{BoxedStrategy, Strategy};
use runtime::text::TEXT_MAX;
use runtime::writer::read_authority;
use serde_json::json;
use testing::works::{tampered_status, texts, work};
use testing::{holds, is_plain_line, tampered};

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

#[track_caller]
fn assert_bounded(state: &WorkState) {
    let texts = [Some(&state.message), state.refused.as_ref(), state.degraded.as_ref()];
    for text in texts.into_iter().flatten() {
        assert!(text.len() <= TEXT_MAX && is_plain_line(text), "{text:?}");
    }
}

#[test]
fn state_of_a_work_is_short_and_on_one_line() {
    holds(1500, texts, |text| {
        let Ok(Some(work)) = Work::from_json(&text, now()) else {
            return;
        };
        assert_bounded(&work.state);
        let mut before = now();
        for (at, state) in &work.health_changes {
            assert!(*at > before);
            assert_bounded(state);
            before = *at;
        }
    });
}

#[test]
fn unreported_work_is_neither_applied_nor_healthy() {
    holds(1500, tampered_status, |work| {
        let text = work.to_string();
        // The API server rejects names that are not strings.
        let Ok(read) = Work::from_json(&text, now()) else {
            return;
        };
        let state = read.expect("it is tracked").state;
        let conditions = work["status"]["conditions"].as_array().into_iter().flatten();
        let mut applied = conditions.filter(|condition| condition["type"] == "Applied");
        let is_available = applied.any(|condition| condition["status"].is_string());
        if !is_available {
            assert!(
                !state.applied && state.health != ocm::health::HealthStatus::Healthy,
                "{state:?}"
            );
        }
    });
}

#[test]
fn work_with_a_malformed_status_is_not_applied() {
    let mut work = work();
    work["status"] = json!({"conditions": [null]});
    let read = Work::from_json(&work.to_string(), now())
        .expect("it is read")
        .expect("it is tracked");
    assert_eq!(
        (read.state.health, read.state.applied),
        (ocm::health::HealthStatus::Unknown, false)
    );
}

/// Returns Secrets and CertificateSigningRequests as OCM and we write them, some with values that are not certificates.
fn objects() -> BoxedStrategy<String> {
    let secret = json!({
        "metadata": {"name": "argocd-agent-ca", "uid": "u", "resourceVersion": "1", "labels": {"app.kubernetes.io/managed-by": "argocd-ocm-cmp"},
            "annotations": {"argocd-ocm-cmp.github.io/signs-since": "2026-06-01T12:00:00Z"}},
        "type": "kubernetes.io/tls",
        "data": {"tls.crt": "LS0tLS1CRUdJTg==", "tls.key": "c2VjcmV0LWtleS1ieXRlcw==", "next.key": "bmV4dA=="},
    });
    let request = json!({
        "metadata": {"name": "csr", "uid": "u", "resourceVersion": "1"},
        "spec": {"username": "system:open-cluster-management:eu1:agent", "groups": ["system:authenticated"], "request": "LS0tLS1CRUdJTg==",
            "usages": ["digital signature"], "signerName": "open-cluster-management.io/argocd-agent-addon"},
        "status": {"conditions": [{"type": "Approved", "status": "True"}]},
    });
    tampered(vec![secret, request])
        .prop_map(|object| object.to_string())
        .boxed()
}

#[test]
fn debug_output_and_errors_never_show_keys() {
    holds(1000, objects, |text| {
        let shown = format!("{:?}", TlsSecret::from_json(&text));
        let error = read_authority(&text).err().unwrap_or_default();
        for secret in ["secret-key-bytes", "c2VjcmV0LWtleS1ieXRlcw"] {
            assert!(!shown.contains(secret) && !error.contains(secret), "{shown} {error}");
        }
        for kind in [Kind::Requests, Kind::IssuedCertificates, Kind::TokenKey] {
            let object = Object::from_json(kind, &text);
            if matches!(kind, Kind::IssuedCertificates | Kind::TokenKey) {
                assert!(!format!("{object:?}").contains("c2VjcmV0LWtleS1ieXRlcw"), "{object:?}");
            }
        }
    });
}
