//! Tests of the renewal of the CA and its certificates over the years.

use super::*;
use argocd_agent::reconcile::is_registered_by;
use hub_state::testing::certificates;
use pki::{Authority, Certificate};
use std::sync::LazyLock;

/// The day on which a CA certificate of a year, created at [`now`], is renewed.
pub(super) const DUE: i64 = 292;

/// Returns the Secret of a CA that is valid for a year.
fn authority_called(name: &str) -> Value {
    certificates::authority(name, now() + days(365))
}

/// Returns a CA that no controller here owns.
pub(super) fn other_authority() -> Value {
    static ONE: LazyLock<Value> = LazyLock::new(|| authority_called("corporate"));
    ONE.clone()
}

/// Returns a server certificate of that CA.
pub(super) fn server(authority: &Value, at: Timestamp, lasts: i64) -> Value {
    let recipe = Recipe::Server {
        common_name: "principal".to_owned(),
        names: ["principal.example.com".into()].into(),
        validity: at..at + days(lasts),
        authority: Authority {
            object_ref: of_argocd(names::CA_SECRET),
            version: "1".into(),
        },
    };
    let mut secret = json!({"metadata": {}, "type": "kubernetes.io/tls"});
    certificates::put(&recipe, authority, &mut secret);
    secret
}

impl Hub {
    /// Lets days pass one by one.
    fn pass(&mut self, number: i64) -> Vec<String> {
        let all = (0..number).flat_map(|_| self.advance_to(self.now + days(1)));
        all.collect()
    }

    pub(super) fn stuck(&mut self, cluster: &str, is_stuck: bool) {
        let ocm = &mut self.ocm;
        if is_stuck {
            ocm.stuck.insert(cluster.to_owned());
        } else {
            ocm.stuck.remove(cluster);
        }
        self.play();
    }

    fn restarts(&self) -> usize {
        self.ocm.restarts
    }

    /// Returns the number of certificates on the hub that a CA certificate issued, and their total number.
    fn issued_by(&self, authority: &Certificate) -> (usize, usize) {
        let ca = TlsSecret {
            certificates: vec![authority.clone()],
            ..self.ca().clone()
        };
        let leaves = [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS].map(|name| self.cache.certificate(name));
        let leaves = leaves.into_iter().flatten().filter_map(TlsSecret::leaf);
        let leaves: Vec<_> = leaves.map(|leaf| leaf.is_issued_by(authority)).collect();
        let clusters = ["eu1", "eu2"].map(|cluster| is_registered_by(&self.cache, cluster, &ca));
        let all: Vec<_> = leaves.into_iter().chain(clusters).collect();
        (all.iter().filter(|is_issued| **is_issued).count(), all.len())
    }
}

#[test]
fn rotates_the_ca_without_any_agent_losing_trust() {
    let mut hub = Hub::with_all_agents();
    hub.pass(DUE - 1);
    let first = hub.ca().certificates[0].clone();
    assert_eq!(
        (hub.ca().certificates.len(), hub.restarts() > 1),
        (1, true),
        "leaves were renewed"
    );
    // The next CA is announced, and one cluster does not apply it.
    hub.stuck("eu2", true);
    let restarts = hub.restarts();
    hub.pass(2);
    assert_eq!((hub.ca().certificates.len(), hub.ca().next.is_some()), (2, true));
    assert_eq!(hub.restarts(), restarts + 1);
    hub.pass(20);
    assert_eq!(hub.ca().certificates[0], first, "not every cluster knows the next one");
    assert_eq!(hub.issued_by(&first), (4, 4));
    // Every cluster has it: everything is issued again, once.
    hub.stuck("eu2", false);
    let restarts = hub.restarts();
    let written = hub.settle();
    let second = hub.ca().certificates[0].clone();
    assert!(second != first && hub.ca().certificates[1] == first && hub.ca().next.is_none());
    assert_eq!(hub.issued_by(&second), (4, 4));
    for name in [
        "argocd-agent-principal-tls",
        "argocd-agent-resource-proxy-tls",
        "cluster-eu1",
        "cluster-eu2",
    ] {
        let times = written.iter().filter(|write| write.contains(name)).count();
        assert_eq!(times, 1, "{name}: {written:#?}");
    }
    assert_eq!(hub.restarts(), restarts + 1, "once, with all that is new");
    hub.is_at_rest();
    // Certificates of agents last a day.
    let promoted = hub.now;
    hub.advance_to(promoted + days(1));
    assert_eq!(hub.ca().certificates.len(), 2);
    hub.advance_to(promoted + days(1) + SignedDuration::from_mins(6));
    assert_eq!(hub.ca().certificates, [second]);
    hub.is_at_rest();
}

#[test]
fn promotes_the_next_ca_before_expiry_despite_a_stuck_cluster() {
    let mut hub = Hub::with_all_agents();
    hub.stuck("eu2", true);
    let first = hub.ca().certificates[0].clone();
    hub.pass(349);
    assert_eq!((&hub.ca().certificates[0], hub.ca().certificates.len()), (&first, 2));
    hub.pass(2);
    assert_eq!((&hub.ca().certificates[1], hub.ca().certificates.len()), (&first, 2));
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
}

/// Otherwise an autoscaler restarts the principal, and interrupts all agents and Argo CD's access to Redis.
#[test]
fn only_a_node_to_which_agents_connect_needs_a_new_certificate() {
    let mut hub = Hub::with_all_agents();
    let node = |number: u8, ready: &str| {
        json!({"metadata": {}, "status": {
            "addresses": [{"type": "InternalIP", "address": format!("192.0.2.{number}")}],
            "conditions": [{"type": "Ready", "status": ready}],
        }})
    };
    let [one, two] = ["one", "two"].map(|name| ObjectRef::new("", name));
    let service = json!({"metadata": {}, "spec": {"type": "NodePort", "ports": [{"port": 443, "nodePort": 30443}]}});
    hub.put(Kind::Nodes, &one, Some(node(1, "True")));
    hub.put(Kind::Services, &of_argocd(names::PRINCIPAL_SERVICES[0]), Some(service));
    hub.settle();
    let before = hub.restarts();
    for added in [Some(node(2, "True")), None, Some(node(3, "True"))] {
        hub.put(Kind::Nodes, &two, added);
        hub.settle();
        assert_eq!(hub.restarts(), before);
    }
    hub.put(Kind::Nodes, &one, Some(node(1, "False")));
    hub.settle();
    assert_eq!(hub.restarts(), before + 1);
}

#[test]
fn leaves_a_foreign_principal_certificate_alone() {
    let mut hub = Hub::new();
    let theirs = server(&other_authority(), hub.now, 60);
    hub.put(Kind::Certificates, &of_argocd(names::PRINCIPAL_TLS), Some(theirs));
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    let existing = |hub: &Hub| hub.get(Kind::Certificates, &of_argocd(names::PRINCIPAL_TLS)).cloned();
    let before = existing(&hub);
    hub.pass(70);
    assert_eq!(existing(&hub), before);
    assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    // The owners renew it, and the principal is restarted.
    let (restarts, theirs) = (hub.restarts(), server(&other_authority(), hub.now, 60));
    hub.put(Kind::Certificates, &of_argocd(names::PRINCIPAL_TLS), Some(theirs));
    hub.settle();
    assert_eq!(hub.restarts(), restarts + 1);
    hub.is_at_rest();
}

#[test]
fn reports_and_keeps_an_unusable_ca() {
    let one = authority_called("argocd-agent-ca@1");
    let mut other_key = one.clone();
    other_key["data"]["tls.key"] = other_authority()["data"]["tls.key"].clone();
    let mut without_key = one.clone();
    without_key["data"]["tls.key"] = json!("");
    let mut empty = without_key.clone();
    empty["data"]["tls.crt"] = json!("");
    for broken in [other_key, without_key, empty] {
        let mut hub = Hub::new();
        hub.put(Kind::Certificates, &of_argocd(names::CA_SECRET), Some(broken));
        hub.write(&all(), &bringing("some", &[]));
        let written = hub.settle();
        assert!(written.iter().all(|write| !write.contains("Secret")), "{written:#?}");
        hub.says(
            &all(),
            "CertificatesReady",
            ["False", ""],
            "argocd/argocd-agent-ca has no certificate that matches its key",
        );
        hub.is_at_rest();
        hub.put(Kind::Certificates, &of_argocd(names::CA_SECRET), None);
        hub.settle();
        assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    }
}

#[test]
fn reports_and_keeps_a_ca_secret_of_another_type() {
    let mut hub = Hub::new();
    let mut opaque = authority_called("argocd-agent-ca@1");
    opaque["type"] = json!("Opaque");
    let existing = of_argocd(names::CA_SECRET);
    hub.put(Kind::Certificates, &existing, Some(opaque));
    hub.write(&all(), &bringing("some", &[]));
    let written = hub.settle();
    let taken = "taken argocd/argocd-agent-ca";
    assert!(written.iter().any(|write| write.starts_with(taken)), "{written:#?}");
    assert_eq!(
        hub.get(Kind::Certificates, &existing).map(|secret| &secret["type"]),
        Some(&json!("Opaque"))
    );
    hub.says(
        &all(),
        "CertificatesReady",
        ["Unknown", ""],
        "argocd/argocd-agent-ca of type kubernetes.io/tls does not exist yet: delete a Secret",
    );
}

#[test]
fn renews_only_cas_of_argocd_pull_integration() {
    for (name, is_renewed) in [("argocd-agent-ca@1780000000", true), ("corporate", false)] {
        let mut hub = Hub::new();
        hub.put(
            Kind::Certificates,
            &of_argocd(names::CA_SECRET),
            Some(authority_called(name)),
        );
        hub.write(&all(), &bringing("some", &[]));
        hub.settle();
        let first = hub.ca().certificates[0].clone();
        assert_eq!(hub.issued_by(&first), (4, 4), "{name}");
        hub.pass(DUE + 4);
        assert_eq!(hub.ca().certificates[0] != first, is_renewed, "{name}");
        assert_eq!(hub.ca().certificates.len(), 1, "{name}");
    }
}

#[test]
fn certificates_as_old_as_an_own_ca_are_not_renewed() {
    let mut hub = Hub::new();
    let corporate = authority_called("corporate");
    hub.put(Kind::Certificates, &of_argocd(names::CA_SECRET), Some(corporate));
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    hub.pass(365 - 35);
    let (restarts, end) = (hub.restarts(), hub.ca().certificates[0].not_after);
    hub.pass(34);
    assert!(hub.restarts() <= restarts + 2, "{} restarts", hub.restarts() - restarts);
    let restarts = hub.restarts();
    for seconds in [3_600, 70, 60, 1] {
        hub.advance_to(end - SignedDuration::from_secs(seconds));
        assert_eq!(hub.reconcile_all(), [""; 0], "{seconds} s before the end");
    }
    assert_eq!(hub.restarts(), restarts);
}

#[test]
fn reports_certificates_that_their_owner_should_have_renewed() {
    let mut hub = Hub::new();
    hub.put(
        Kind::Certificates,
        &of_argocd(names::CA_SECRET),
        Some(other_authority()),
    );
    hub.write(&all(), &bringing("some", &[]));
    hub.settle();
    let ready = |hub: &Hub| hub.condition_of(&all(), "CertificatesReady").map(str::to_owned);
    // 80 % of a year.
    hub.pass(DUE - 1);
    assert!(!ready(&hub)[2].contains("is valid until"), "{:?}", ready(&hub));
    hub.pass(1);
    let [status, _, message] = ready(&hub);
    assert_eq!(status, "False");
    let late = "the certificate corporate in Secret argocd/argocd-agent-ca is valid until 2";
    assert!(message.starts_with(late), "{message}");
}
