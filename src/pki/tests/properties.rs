//! Requests and certificates that somebody has made up or changed.

use super::*;
use crate::agent::names::{groups, user};
use crate::agent::requests::{Requester, check};
use crate::pki::issue::{Draft, Issuer, Purpose};
use crate::pki::key::{Key, NewKey, pem_text};
use crate::pki::signed::Signed;
use crate::properties::{holds, hostile_json, hostile_text, is_plain_line, mutated};
use der::asn1::{Any, AnyRef, BitStringRef, ObjectIdentifier, SetOfVec};
use der::oid::db::rfc4519::{COMMON_NAME, COUNTRY_NAME, ORGANIZATION_NAME, ORGANIZATIONAL_UNIT_NAME};
use der::{Decode, Encode, Sequence, Tag};
use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use x509_cert::attr::{AttributeTypeAndValue, Attributes};
use x509_cert::request::Version;

/// An authority that signs fast, for the 2020s to 2090s.
struct Fast {
    key: NewKey,
    certificate: Certificate,
    data: AuthorityData,
}

static FAST: LazyLock<Fast> = LazyLock::new(|| {
    let key = NewKey::p256().unwrap();
    let draft = Draft {
        names: &BTreeSet::new(),
        ..draft(Purpose::Authority, at(0), at(365 * 70))
    };
    let pem = draft
        .issue(
            key.key.public(),
            &Issuer {
                certificate: None,
                key: &key.key,
            },
        )
        .unwrap();
    let data = secret(&[(TLS_CERTIFICATE, &pem), (TLS_KEY, &key.pem)]);
    Fast {
        certificate: only(&pem),
        key,
        data,
    }
});

static NO_NAMES: BTreeSet<Box<str>> = BTreeSet::new();

fn draft(purpose: Purpose, not_before: Timestamp, not_after: Timestamp) -> Draft<'static> {
    Draft {
        purpose,
        common_name: "one",
        organizations: &[],
        names: &NO_NAMES,
        not_before,
        not_after,
    }
}

#[derive(Sequence)]
struct RequestBody<'a> {
    version: Version,
    subject: AnyRef<'a>,
    key: AnyRef<'a>,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT")]
    attributes: Attributes,
}

/// Attributes of a subject: those of one set stand in one part of the name.
type SubjectParts = Vec<Vec<(ObjectIdentifier, Tag, String)>>;

/// A request in DER with this subject, signed with its own key.
fn request_of(key: &Key, subject: &SubjectParts) -> Vec<u8> {
    let sets = subject.iter().map(|part| {
        let mut set = SetOfVec::new();
        for (oid, tag, text) in part {
            let value = Any::new(*tag, text.as_bytes()).unwrap();
            // The same attribute twice in one part cannot be written.
            let _ = set.insert(AttributeTypeAndValue { oid: *oid, value });
        }
        set
    });
    let subject = sets.collect::<Vec<_>>().to_der().unwrap();
    let body = RequestBody {
        version: Version::V1,
        subject: AnyRef::from_der(&subject).unwrap(),
        key: AnyRef::from_der(key.public()).unwrap(),
        attributes: Attributes::default(),
    };
    let body = body.to_der().unwrap();
    let signature = key.sign(&body).unwrap();
    let signed = Signed {
        body: AnyRef::from_der(&body).unwrap(),
        algorithm: AnyRef::new(Tag::Sequence, key.algorithm().unwrap()).unwrap(),
        signature: BitStringRef::from_bytes(&signature).unwrap(),
    };
    signed.to_der().unwrap()
}

fn as_pem(label: &'static str, der: &[u8]) -> Vec<u8> {
    pem_text(label, der).unwrap()
}

/// A request by an agent of `eu1` as it should be.
fn own_subject() -> SubjectParts {
    let organizations = groups("eu1")
        .into_iter()
        .map(|group| vec![(ORGANIZATION_NAME, Tag::Utf8String, group)]);
    organizations
        .chain([vec![(COMMON_NAME, Tag::Utf8String, user("eu1"))]])
        .collect()
}

fn subjects() -> BoxedStrategy<SubjectParts> {
    let right = prop_oneof![
        8 => Just((COMMON_NAME, user("eu1"))),
        2 => Just((COMMON_NAME, user("eu2"))),
        4 => select(groups("eu1").to_vec()).prop_map(|group| (ORGANIZATION_NAME, group)),
        1 => select(groups("eu2").to_vec()).prop_map(|group| (ORGANIZATION_NAME, group)),
    ];
    let oids = [COMMON_NAME, ORGANIZATION_NAME, ORGANIZATIONAL_UNIT_NAME, COUNTRY_NAME];
    let texts = prop_oneof![
        Just("system:masters".to_owned()),
        Just("CN=eu2".to_owned()),
        hostile_text()
    ];
    let tags = prop_oneof![6 => Just(Tag::Utf8String), 1 => select(&[Tag::PrintableString, Tag::Ia5String, Tag::TeletexString, Tag::BmpString][..])];
    let other = (select(oids.to_vec()), tags, texts);
    let attribute = prop_oneof![8 => right.prop_map(|(oid, text)| (oid, Tag::Utf8String, text)), 1 => other];
    prop_oneof![1 => Just(own_subject()), 4 => vec(vec(attribute, 1..3), 0..4)].boxed()
}

fn requesters() -> BoxedStrategy<(String, Vec<String>)> {
    const USERS: &[&str] = &[
        "system:open-cluster-management:eu1:agent",
        "system:open-cluster-management:eu2:agent",
        "system:open-cluster-management:eu1",
        "system:open-cluster-management:eu1:",
        "system:open-cluster-management::agent",
        "system:open-cluster-management:eu1:a:b",
        "system:open-cluster-management:eu1:agent:eu2",
        "system:serviceaccount:eu1:agent",
        "kubernetes-admin",
        "",
    ];
    const GROUPS: &[&str] = &[
        "system:open-cluster-management:eu1",
        "system:open-cluster-management:eu2",
        "system:open-cluster-management:",
        "system:masters",
        "system:open-cluster-management",
        "system:open-cluster-management:eu1:agent",
        "system:authenticated",
    ];
    let name = prop_oneof![6 => Just(USERS[0]), 2 => select(USERS)];
    let groups = prop_oneof![6 => Just(vec![GROUPS[0]]), 2 => vec(select(GROUPS), 0..4)];
    let known =
        (name, groups).prop_map(|(name, groups)| (name.to_owned(), groups.into_iter().map(str::to_owned).collect()));
    prop_oneof![9 => known, 1 => (hostile_text(), vec(hostile_text(), 0..3))].boxed()
}

/// The cluster for whose agent the request is, if it is granted.
fn granted<'u>(requester: &'u str, all: &[String], subject: &SubjectParts) -> Option<&'u str> {
    let ["system", "open-cluster-management", cluster, agent] = requester.split(':').collect::<Vec<_>>()[..] else {
        return None;
    };
    let of = |oid| {
        let attributes = subject.iter().flatten().filter(move |it| it.0 == oid);
        attributes.map(|it| it.2.as_str()).collect::<Vec<_>>()
    };
    let organizations = of(ORGANIZATION_NAME);
    let is_own =
        !cluster.is_empty() && !agent.is_empty() && all.contains(&format!("system:open-cluster-management:{cluster}"));
    let is_plain = subject.iter().flatten().count() == organizations.len() + 1 && of(COMMON_NAME) == [user(cluster)];
    let is_allowed = organizations
        .iter()
        .all(|it| groups(cluster).iter().any(|group| group == it));
    (is_own && is_plain && is_allowed).then_some(cluster)
}

#[test]
fn a_request_is_granted_for_the_own_name_alone_and_gives_a_client_alone() {
    holds(
        600,
        || (requesters(), subjects()),
        |((user_name, all), subject)| {
            let is_repeated = |part: &Vec<_>| part.len() == 2 && part[0] == part[1];
            if subject.iter().any(is_repeated) {
                return;
            }
            let key = NewKey::p256().unwrap();
            let text = as_pem("CERTIFICATE REQUEST", &request_of(&key.key, &subject));
            let all_texts: Vec<&str> = all.iter().map(String::as_str).collect();
            let requester = Requester {
                user: &user_name,
                groups: &all_texts,
            };
            let read = read_request(&text);
            let is_granted = read.as_ref().is_ok_and(|request| check(requester, request).is_ok());
            let Some(cluster) = granted(&user_name, &all, &subject) else {
                return assert!(!is_granted, "{read:?}");
            };
            assert!(is_granted, "{read:?}");
            let request = String::from_utf8(text).unwrap();
            let recipe = Recipe::Sign {
                key: "certificate".into(),
                request,
                not_before: at(1),
                not_after: at(2),
                authority: authority(),
            };
            let made = make(&recipe, Some(&FAST.data)).unwrap();
            let certificate = only(part(&made, "certificate"));
            assert!(certificate.is_client && !certificate.serves && !certificate.is_authority);
            assert!(certificate.is_issued_by(&FAST.certificate) && certificate.has_key(&key.key.id()));
            assert_eq!(
                (&*certificate.common_name, certificate.names.len()),
                (&*user(cluster), 0)
            );
            assert!(
                certificate
                    .organizations
                    .iter()
                    .all(|it| groups(cluster).contains(&it.to_string()))
            );
            assert_eq!((certificate.not_before, certificate.not_after), (at(1), at(2)));
        },
    );
}

/// Changes single bits.
fn flipped(mut der: Vec<u8>, bits: &[(Index, u8)]) -> Vec<u8> {
    for (at, bit) in bits {
        let at = at.index(der.len());
        der[at] ^= 1 << (bit % 8);
    }
    der
}

fn bits() -> impl Strategy<Value = Vec<(Index, u8)>> {
    vec((any::<Index>(), any::<u8>()), 1..4)
}

#[test]
fn no_bit_of_a_request_can_be_changed() {
    let der = request_of(&FAST.key.key, &own_subject());
    assert!(read_request(&as_pem("CERTIFICATE REQUEST", &der)).is_ok());
    for bit in 0..der.len() * 8 {
        let mut changed = der.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let read = read_request(&as_pem("CERTIFICATE REQUEST", &changed));
        assert!(read.is_err(), "bit {} of byte {}: {read:?}", bit % 8, bit / 8);
    }
}

#[test]
fn a_request_that_was_changed_is_not_believed() {
    static REQUEST: LazyLock<Vec<u8>> = LazyLock::new(|| request_of(&FAST.key.key, &own_subject()));
    let whole = read_request(&as_pem("CERTIFICATE REQUEST", &REQUEST)).unwrap();
    holds(1500, bits, |bits| {
        let der = flipped(REQUEST.clone(), &bits);
        let read = read_request(&as_pem("CERTIFICATE REQUEST", &der));
        assert!(der == *REQUEST || read.is_err(), "{read:?}");
    });
    let texts = || mutated(vec![as_pem("CERTIFICATE REQUEST", &REQUEST)]);
    holds(1500, texts, |text| match read_request(&text) {
        Ok(read) => assert_eq!(read, whole),
        Err(error) => assert!(is_plain_line(&error.to_string()), "{error}"),
    });
}

/// A certificate that the authority has issued, in DER; its dates are written with four digits for the year.
fn issued() -> Vec<u8> {
    let issuer = Issuer {
        certificate: Some(&FAST.certificate),
        key: &FAST.key.key,
    };
    let names = names(&["a.example.com", "10.0.0.1"]);
    let draft = Draft {
        names: &names,
        ..draft(Purpose::Server, at(365 * 30), at(365 * 60))
    };
    let pem = draft.issue(FAST.key.key.public(), &issuer).unwrap();
    CertificateDer::from_pem_slice(&pem).unwrap().to_vec()
}

#[test]
fn a_certificate_that_was_changed_is_of_no_authority() {
    let whole = issued();
    assert!(only(&as_pem("CERTIFICATE", &whole)).is_issued_by(&FAST.certificate));
    holds(1500, bits, |bits| {
        let der = flipped(whole.clone(), &bits);
        if let Ok(read) = Certificate::read_all(&as_pem("CERTIFICATE", &der)) {
            assert_eq!(read[0].is_issued_by(&FAST.certificate), der == whole, "{:?}", read[0]);
        }
    });
    let bundle = [
        as_pem("CERTIFICATE", &whole),
        as_pem("CERTIFICATE", FAST.certificate.der()),
    ]
    .concat();
    holds(
        1500,
        || mutated(vec![bundle.clone()]),
        |text| match Certificate::read_all(&text) {
            Ok(read) => assert!(!read.is_empty()),
            Err(error) => assert!(is_plain_line(&error.to_string()), "{error}"),
        },
    );
}

#[test]
fn no_date_of_a_certificate_overflows() {
    const DATES: &[&str] = &[
        "00000101000000Z",
        "00010101000000Z",
        "19491231235959Z",
        "19691231235959Z",
        "19700101000000Z",
        "20240229000000Z",
        "20230229000000Z",
        "20500101000000Z",
        "99991230235959Z",
        "99991231235959Z",
        "99991231235960Z",
        "20501301000000Z",
        "20500101240000Z",
    ];
    let date = || {
        prop_oneof![
            select(DATES).prop_map(str::to_owned),
            "[0-9]{4}(0[1-9]|1[0-2])(0[1-9]|[12][0-9])[01][0-9][0-5][0-9][0-5][0-9]Z"
        ]
    };
    let whole = issued();
    let starts: Vec<usize> = (0..whole.len() - 17)
        .filter(|&at| whole[at..at + 2] == [0x18, 15] && whole[at + 16] == b'Z')
        .collect();
    assert_eq!(starts.len(), 2);
    holds(
        1500,
        || [date(), date()],
        |dates| {
            let mut der = whole.clone();
            for (start, date) in starts.iter().zip(&dates) {
                der[start + 2..start + 17].copy_from_slice(date.as_bytes());
            }
            let Ok(read) = Certificate::read_all(&as_pem("CERTIFICATE", &der)) else {
                return;
            };
            let [certificate] = &read[..] else { panic!("one") };
            let renews_at = certificate.renews_at();
            assert!(renews_at >= certificate.not_before);
            if certificate.not_before <= certificate.not_after {
                assert!(renews_at <= certificate.not_after);
            }
            let years = [certificate.not_before, certificate.not_after].map(|time| time.strftime("%Y").to_string());
            // A time at the end of the calendar may be the day before.
            assert!(
                certificate.not_after >= Timestamp::MAX || dates[1].starts_with(&years[1]),
                "{dates:?} {years:?}"
            );
        },
    );
}

#[test]
fn what_is_issued_is_what_was_asked_for_or_an_error() {
    let times = || {
        let seconds = Timestamp::MIN.as_second()..=Timestamp::MAX.as_second();
        let any = seconds.prop_map(|seconds| Timestamp::from_second(seconds).unwrap());
        let near = (0..365 * 80_i64).prop_map(at);
        prop_oneof![4 => near, 1 => any, 1 => select(&[Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH][..])]
    };
    let name = || {
        let good = select(
            &[
                "a.example.com",
                "*.example.com",
                "principal.argocd.svc",
                "10.0.0.1",
                "::1",
                "fe80::1",
                "localhost",
            ][..],
        );
        prop_oneof![9 => good.prop_map(str::to_owned), 1 => hostile_text()]
    };
    let inputs = move || (times(), times(), vec(name(), 0..4), hostile_text());
    holds(600, inputs, |(not_before, not_after, names, common_name)| {
        let names: BTreeSet<Box<str>> = names.into_iter().map(Into::into).collect();
        let draft = Draft {
            common_name: &common_name,
            names: &names,
            ..draft(Purpose::Server, not_before, not_after)
        };
        let issuer = Issuer {
            certificate: Some(&FAST.certificate),
            key: &FAST.key.key,
        };
        let pem = match draft.issue(FAST.key.key.public(), &issuer) {
            Ok(pem) => pem,
            Err(error) => {
                let is_in_vain =
                    not_before.as_second() >= not_after.as_second().min(FAST.certificate.not_after.as_second());
                match &error {
                    Error::Times => assert!(is_in_vain || not_before.as_second() < 0),
                    Error::Name(name) => assert!(names.contains(name)),
                    other => panic!("{other}"),
                }
                return assert!(is_plain_line(&error.to_string()), "{error}");
            }
        };
        let certificate = only(&pem);
        assert_eq!(*certificate.common_name, *common_name);
        assert_eq!(certificate.names, names);
        assert!(certificate.is_issued_by(&FAST.certificate) && certificate.serves && !certificate.is_authority);
        assert_eq!(certificate.not_before.as_second(), not_before.as_second());
        let end = not_after.min(FAST.certificate.not_after);
        assert_eq!(certificate.not_after.as_second(), end.as_second());
    });
}

#[test]
fn connections_are_read_or_refused_without_a_word_of_them() {
    let made = || {
        let recipe = Recipe::Client {
            common_name: "one".into(),
            organizations: Vec::new(),
            not_before: at(1),
            not_after: at(2),
            authority: authority(),
        };
        let made = make(&recipe, Some(&FAST.data)).unwrap();
        mutated(vec![part(&made, "config").to_vec()])
    };
    let strange = || hostile_json().prop_map(|tls| json!({"tlsClientConfig": tls}).to_string().into_bytes());
    holds(
        1000,
        || prop_oneof![3 => made(), 1 => strange()],
        |config| {
            if let Err(error) = ClientConfig::read(&config) {
                let told = error.to_string();
                assert!(
                    is_plain_line(&told) && told.len() < 300 && !told.contains("PRIVATE KEY-"),
                    "{told}"
                );
            }
            let _ = key_of(&config).map_err(|error| assert!(is_plain_line(&error.to_string())));
        },
    );
}
