//! Tests of the decisions about the CA and its certificates.

use super::*;
use hub_state::testing::certificates::{authority, put};
use hub_state::testing::now;
use proptest::prelude::*;
use serde_json::Value;
use std::sync::LazyLock;

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

/// Returns every decision about a CA and a certificate of it, as the controller makes them.
fn decide_everything(ca: &TlsSecret, now: Timestamp) -> Vec<Option<Write>> {
    let spreads = [(false, false), (true, false), (false, true), (true, true)];
    let next =
        |ca, (is_distributed, has_issued_all)| next_write(ca, "argocd", |_| is_distributed, |_| has_issued_all, now);
    let mut writes: Vec<_> = spreads.map(|spread| next(Some(ca), spread)).into();
    writes.push(next(None, spreads[0]));
    for existing in [None, Some(ca)] {
        let names = [["principal.example.com".into()].into(), BTreeSet::new()];
        let name = (names::PRINCIPAL_TLS, "principal");
        writes.push(leaf(ca, existing, name, names, "argocd", now));
    }
    requeue_after(ca);
    writes
}

/// Returns a CA of ours with the previous CA certificate, both valid from now.
fn two_authorities(until: Timestamp) -> TlsSecret {
    let [mut ca, previous] = ["argocd-agent-ca@2", "argocd-agent-ca@1"].map(|name| {
        let secret = authority(name, until);
        TlsSecret::from_json(&secret.to_string()).expect("a Secret")
    });
    ca.certificates.extend(previous.certificates);
    ca
}

#[test]
fn keeps_and_signs_with_a_ca_without_expiry() {
    let ca = two_authorities(Timestamp::MAX);
    assert_eq!(ca.certificates[1].not_after.as_second(), Timestamp::MAX.as_second());
    assert!(requeue_after(&ca).is_some_and(|at| at > now()));
    let writes = decide_everything(&ca, now());
    assert_eq!(writes[1], None);
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

#[test]
fn chooses_the_next_step_of_a_ca_rotation() {
    let due = now() + days(293);
    let one = authority("argocd-agent-ca@1", now() + days(365));
    let made = |recipe: &Recipe, authority: &Value| {
        let mut secret = json!({"metadata": {}, "type": "kubernetes.io/tls"});
        put(recipe, authority, &mut secret);
        secret
    };
    let mut announced = made(
        &Recipe::NextAuthority {
            common_name: "argocd-agent-ca@2".into(),
            validity: due..due + days(365),
            authority: ca(),
        },
        &one,
    );
    announced["data"]["tls.key"] = one["data"]["tls.key"].clone();
    let mut promoted = made(&Recipe::Promote { authority: ca() }, &announced);
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
        // The clock has been set back: nothing that the CA signs is valid yet.
        (Some(&one), used, now() - days(2), "next"),
        (Some(&announced), unknown, now() - days(2), "promote"),
        (Some(&announced), known, due - days(1), ""),
        (Some(&announced), unknown, later(24), ""),
        (Some(&announced), known, later(1), "promote"),
        (Some(&announced), unknown, now() + days(351), "promote"),
        (Some(&promoted), used, later(24), ""),
        (Some(&promoted), used, later(25), "drop"),
        (Some(&promoted), known, later(100), ""),
        (Some(&promoted), known, now() + days(366), "drop"),
        (Some(&unsaid), used, later(100), ""),
        (Some(&broken), used, due, ""),
        (
            Some(&authority("corporate", now() + days(365))),
            used,
            due + days(60),
            "",
        ),
    ] {
        let seen = ca.map(|ca| TlsSecret::from_json(&ca.to_string()).expect("a Secret"));
        let write = next_write(seen.as_ref(), "argocd", |_| is_distributed, |_| has_issued_all, at);
        let did = match &write {
            None => "",
            Some(write) => match &write.recipe {
                Some(Recipe::Authority { .. }) => "authority",
                Some(Recipe::NextAuthority { .. }) => "next",
                Some(Recipe::Promote { .. }) => "promote",
                Some(Recipe::Drop { .. }) => "drop",
                other => panic!("{other:?}"),
            },
        };
        assert_eq!(did, expected, "{is_distributed} {has_issued_all} {at}");
    }
}

fn ca() -> Authority {
    Authority {
        object_ref: ObjectRef::new("argocd", names::CA_SECRET),
        version: "1".into(),
    }
}
