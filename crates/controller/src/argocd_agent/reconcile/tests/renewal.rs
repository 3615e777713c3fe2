//! Tests of the renewal of the CA and its certificates over the years.

use super::*;
use crate::argocd_agent::reconcile::authority::{CaDistribution, Leaf, leaf, next, requeue_after};
use hub_state::model::TlsSecret;
use hub_state::testing::now;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use pki::{Authority, Certificate, Recipe, make};
use proptest::prelude::*;
use runtime::action::Write;
use runtime::writer::read_authority;
use std::sync::LazyLock;

/// The day on which a CA certificate of a year, created at [`now`], is renewed.
pub(super) const DUE: i64 = 292;

fn secret(recipe: &Recipe, authority: Option<&Value>) -> Value {
    let authority = authority.map(|it| read_authority(&it.to_string()).expect("an authority").1);
    let made = make(recipe, authority.as_ref()).expect("it can be made");
    let data: serde_json::Map<_, _> = made
        .into_iter()
        .map(|(key, value)| (key.to_owned(), json!(value.map(ByteString))))
        .collect();
    json!({"metadata": {}, "type": "kubernetes.io/tls", "data": data})
}

fn authority_called(name: &str) -> Value {
    authority_until(name, now() + days(365))
}

fn authority_until(name: &str, not_after: Timestamp) -> Value {
    let recipe = Recipe::Authority {
        common_name: name.to_owned(),
        not_before: now(),
        not_after,
    };
    secret(&recipe, None)
}

/// Returns every decision about a CA and a certificate of it, as the controller makes them.
fn decide_everything(ca: &TlsSecret, now: Timestamp) -> Vec<Option<Write>> {
    let names = ["principal.example.com".into()].into();
    let desired = Leaf {
        secret: names::PRINCIPAL_TLS,
        names: &names,
        common_name: "principal",
    };
    let spreads = [(false, false), (true, false), (false, true), (true, true)];
    let spreads = spreads.map(|(is_distributed, has_issued_all)| CaDistribution {
        is_distributed,
        has_issued_all,
    });
    let mut writes: Vec<_> = spreads
        .map(|distribution| next(Some(ca), "argocd", distribution, now))
        .into();
    writes.push(next(None, "argocd", spreads[0], now));
    writes.push(leaf(ca, None, &desired, "argocd", now));
    writes.push(leaf(ca, Some(ca), &desired, "argocd", now));
    requeue_after(ca);
    writes
}

/// Returns a CA of ours with the previous CA certificate, both valid from now.
fn two_authorities(until: Timestamp) -> TlsSecret {
    let [mut ca, previous] = ["argocd-agent-ca@2", "argocd-agent-ca@1"].map(|name| {
        let secret = authority_until(name, until);
        TlsSecret::read(&secret.to_string()).expect("a Secret")
    });
    ca.certificates.extend(previous.certificates);
    ca
}

#[test]
fn keeps_and_signs_with_a_ca_without_expiry() {
    let ca = two_authorities(Timestamp::MAX);
    assert_eq!(ca.certificates[1].not_after.as_second(), Timestamp::MAX.as_second());
    assert!(requeue_after(&ca).is_some_and(|at| at > now()));
    let distribution = CaDistribution {
        is_distributed: true,
        has_issued_all: false,
    };
    assert_eq!(next(Some(&ca), "argocd", distribution, now()), None);
    let writes = decide_everything(&ca, now());
    assert!(writes[5].is_some(), "it signs a certificate of the principal");
}

proptest! {
    #![proptest_config(testing::config(256))]

    #[test]
    fn no_time_in_a_certificate_or_annotation_overflows(
        times in prop::array::uniform6(Timestamp::MIN.as_second()..=Timestamp::MAX.as_second()),
        extremes in prop::array::uniform6(0..4_u8),
        has_next in any::<bool>(),
    ) {
        static CA: LazyLock<TlsSecret> = LazyLock::new(|| two_authorities(now() + days(365)));
        let at = |number: usize| match extremes[number] {
            0 => Timestamp::MIN,
            1 => Timestamp::MAX,
            _ => Timestamp::from_second(times[number]).expect("it is in range"),
        };
        let mut ca = CA.clone();
        for (number, certificate) in ca.certificates.iter_mut().enumerate() {
            (certificate.not_before, certificate.not_after) = (at(2 * number), at(2 * number + 1));
        }
        ca.promoted = Some(at(4));
        ca.next = ca.key.clone().filter(|_| has_next);
        decide_everything(&ca, at(5));
    }
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
        not_before: at,
        not_after: at + days(lasts),
        authority: Authority {
            object_ref: of_argocd(names::CA_SECRET),
            version: "1".into(),
        },
    };
    secret(&recipe, Some(authority))
}

impl Hub {
    /// Lets days pass one by one.
    fn pass(&mut self, number: i64) -> Vec<String> {
        let all = (0..number).flat_map(|_| self.advance_to(self.now + days(1)));
        all.collect()
    }

    pub(super) fn stuck(&mut self, cluster: &str, is_stuck: bool) {
        let ocm = self.ocm.as_mut().expect("it plays");
        if is_stuck {
            ocm.stuck.insert(cluster.to_owned());
        } else {
            ocm.stuck.remove(cluster);
        }
        self.play();
    }

    fn restarts(&self) -> usize {
        self.ocm.as_ref().expect("it plays").restarts
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
        let clusters = ["eu1", "eu2"].map(|cluster| works::is_registered_by(&self.cache, cluster, &ca));
        let all: Vec<_> = leaves.into_iter().chain(clusters).collect();
        (all.iter().filter(|is| **is).count(), all.len())
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

#[test]
fn chooses_the_next_step_of_a_ca_rotation() {
    let due = now() + days(DUE + 1);
    let one = authority_called("argocd-agent-ca@1");
    let mut announced = secret(
        &Recipe::NextAuthority {
            common_name: "argocd-agent-ca@2".into(),
            not_before: due,
            not_after: due + days(365),
            authority: authority(&one),
        },
        Some(&one),
    );
    announced["data"]["tls.key"] = one["data"]["tls.key"].clone();
    let mut promoted = secret(
        &Recipe::Promote {
            authority: authority(&announced),
        },
        Some(&announced),
    );
    promoted["metadata"]["annotations"] = json!({hub_state::model::PROMOTED: due.to_string()});
    let mut unsaid = promoted.clone();
    unsaid["metadata"]["annotations"] = json!({});
    let broken = json!({"metadata": {}, "data": {"tls.crt": one["data"]["tls.crt"]}});
    let later = |hours| due + SignedDuration::from_hours(hours);
    let [unknown, known, used] = [(false, false), (true, false), (true, true)];
    for (ca, (is_distributed, has_issued_all), at, expected) in [
        (None, unknown, now(), "authority"),
        (Some(&one), used, now(), ""),
        (Some(&one), unknown, due, "next"),
        (Some(&announced), unknown, later(24), ""),
        (Some(&announced), known, later(1), "promote"),
        (Some(&announced), unknown, now() + days(351), "promote"),
        (Some(&promoted), used, later(24), ""),
        (Some(&promoted), used, later(25), "drop"),
        (Some(&promoted), known, later(100), ""),
        (Some(&promoted), known, now() + days(366), "drop"),
        (Some(&unsaid), used, later(100), ""),
        (Some(&broken), used, due, ""),
        (Some(&other_authority()), used, due + days(60), ""),
    ] {
        let seen = ca.map(|ca| TlsSecret::read(&ca.to_string()).expect("a Secret"));
        let write = next(
            seen.as_ref(),
            "argocd",
            CaDistribution {
                is_distributed,
                has_issued_all,
            },
            at,
        );
        let did = match &write {
            None => "",
            Some(Write::Generate { recipe, .. }) => match recipe {
                Recipe::Authority { .. } => "authority",
                Recipe::NextAuthority { .. } => "next",
                Recipe::Promote { .. } => "promote",
                Recipe::Drop { .. } => "drop",
                other => panic!("{other:?}"),
            },
            Some(other) => panic!("{other:?}"),
        };
        assert_eq!(did, expected, "{is_distributed} {has_issued_all} {at}");
    }
}

fn authority(_: &Value) -> Authority {
    Authority {
        object_ref: of_argocd(names::CA_SECRET),
        version: "1".into(),
    }
}

#[test]
fn leaves_a_foreign_principal_certificate_alone() {
    let mut hub = Hub::with_ocm();
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
        let mut hub = Hub::with_ocm();
        hub.put(Kind::Certificates, &of_argocd(names::CA_SECRET), Some(broken));
        hub.write(&all(), &bringing("some", &[]));
        let written = hub.settle();
        assert!(written.iter().all(|write| !write.contains("Secret")), "{written:#?}");
        let [status, _, message] = hub.condition_of(&all(), "CertificatesReady");
        assert_eq!(status, "False");
        assert!(
            message.contains("argocd/argocd-agent-ca has no certificate that matches its key"),
            "{message}"
        );
        hub.is_at_rest();
        hub.put(Kind::Certificates, &of_argocd(names::CA_SECRET), None);
        hub.settle();
        assert_eq!(hub.with_addon(), ["eu1", "eu2"]);
    }
}

#[test]
fn reports_and_keeps_a_ca_secret_of_another_type() {
    let mut hub = Hub::with_ocm();
    let mut opaque = authority_called("argocd-agent-ca@1");
    opaque["type"] = json!("Opaque");
    let existing = of_argocd(names::CA_SECRET);
    hub.put(Kind::Certificates, &existing, Some(opaque));
    hub.write(&all(), &bringing("some", &[]));
    let written = hub.settle();
    let taken = "taken argocd/argocd-agent-ca";
    assert!(written.iter().any(|write| write.starts_with(taken)), "{written:#?}");
    assert_eq!(
        hub.get(Kind::Certificates, &existing).map(|it| &it["type"]),
        Some(&json!("Opaque"))
    );
    let [status, _, message] = hub.condition_of(&all(), "CertificatesReady");
    assert_eq!(status, "Unknown");
    assert!(
        message.contains("argocd/argocd-agent-ca of type kubernetes.io/tls does not exist yet: delete a Secret"),
        "{message}"
    );
}

#[test]
fn renews_only_cas_of_argocd_pull_integration() {
    for (name, is_renewed) in [("argocd-agent-ca@1780000000", true), ("corporate", false)] {
        let mut hub = Hub::with_ocm();
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
    let mut hub = Hub::with_ocm();
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
