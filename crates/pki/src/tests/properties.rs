//! Property tests with arbitrary and modified requests and certificates.

use super::*;
use crate::certificate::to_pem;
use crate::issue::{Draft, Purpose};
use crate::key::{Key, NewKey, pem_text};
use der::asn1::{Any, AnyRef, ObjectIdentifier, SetOfVec};
use der::oid::db::rfc4519::{COMMON_NAME, COUNTRY_NAME, ORGANIZATION_NAME, ORGANIZATIONAL_UNIT_NAME};
use der::{Decode, Encode, Tag};
use ocm::argocd_agent::{groups, user};
use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, prop_oneof};
use proptest::sample::select;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use testing::{holds, hostile_text, is_plain_line, mutated};
use x509_cert::attr::{AttributeTypeAndValue, Attributes};
use x509_cert::request::Version;

/// A CA that signs fast, valid from the 2020s to the 2090s.
struct Fast {
    key: NewKey,
    certificate: Certificate,
    data: AuthorityData,
}

static FAST: LazyLock<Fast> = LazyLock::new(|| {
    let key = NewKey::p256().unwrap();
    let draft = Draft::new(Purpose::Authority, "one", at(0)..at(365 * 70));
    let pem = draft.issue(key.key.public(), None, &key.key).unwrap();
    let data = secret(&[(TLS_CERTIFICATE, &pem), (TLS_KEY, &key.pem)]);
    Fast {
        certificate: only(&pem),
        key,
        data,
    }
});

/// The attributes of a subject: those of one inner list are in one RDN.
type SubjectParts = Vec<Vec<(ObjectIdentifier, Tag, String)>>;

/// Returns a request in DER with this subject, signed with its own key.
fn request_of(key: &Key, subject: &SubjectParts) -> Vec<u8> {
    let sets = subject.iter().map(|part| {
        let mut set = SetOfVec::new();
        for (oid, tag, text) in part {
            let value = Any::new(*tag, text.as_bytes()).unwrap();
            // A DER set cannot contain the same attribute twice.
            let _ = set.insert(AttributeTypeAndValue { oid: *oid, value });
        }
        set
    });
    let subject = sets.collect::<Vec<_>>().to_der().unwrap();
    let body = request::CertificationRequestInfo {
        version: Version::V1,
        subject: AnyRef::from_der(&subject).unwrap(),
        key: AnyRef::from_der(key.public()).unwrap(),
        attributes: Attributes::default(),
    };
    let body = body.to_der().unwrap();
    issue::sign(&body, key).unwrap()
}

fn as_pem(label: &'static str, der: &[u8]) -> Vec<u8> {
    pem_text(label, der).unwrap()
}

/// Returns a valid subject for the agent of `eu1`.
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

/// Returns the common name and the organizations of a subject that has no other attributes.
fn plain(subject: &SubjectParts) -> Option<(&str, BTreeSet<&str>)> {
    let of = |oid| {
        let attributes = subject.iter().flatten().filter(move |attribute| attribute.0 == oid);
        attributes.map(|attribute| attribute.2.as_str()).collect::<Vec<_>>()
    };
    let (names, organizations) = (of(COMMON_NAME), of(ORGANIZATION_NAME));
    let is_plain = subject.iter().flatten().count() == organizations.len() + names.len() && names.len() == 1;
    is_plain.then(|| (names[0], organizations.into_iter().collect()))
}

#[test]
fn signs_plain_subjects_for_clients_only() {
    holds(600, subjects, |subject| {
        let is_repeated = |part: &Vec<_>| part.len() == 2 && part[0] == part[1];
        if subject.iter().any(is_repeated) {
            return;
        }
        let key = NewKey::p256().unwrap();
        let text = as_pem("CERTIFICATE REQUEST", &request_of(&key.key, &subject));
        let read = read_request(&text);
        // In other encodings, the bytes are different text.
        if subject.iter().flatten().any(|attribute| attribute.1 != Tag::Utf8String) {
            return;
        }
        let Some((common_name, organizations)) = plain(&subject) else {
            assert!(read.is_err(), "{read:?}");
            return;
        };
        if subject == own_subject() {
            assert!(read.is_ok(), "{read:?}");
        }
        // Text that readers interpret differently is rejected.
        let Ok(read) = read else { return };
        assert_eq!(&*read.common_name, common_name);
        let all: BTreeSet<&str> = read.organizations.iter().map(|organization| &**organization).collect();
        assert_eq!(all, organizations);
        let request = String::from_utf8(text).unwrap();
        let recipe = Recipe::Sign {
            key: "certificate".into(),
            request,
            validity: at(1)..at(2),
            authority: authority(),
        };
        let made = make(&recipe, Some(&FAST.data)).unwrap();
        let certificate = only(part(&made, "certificate"));
        assert!(!certificate.serves && !certificate.is_authority);
        assert!(certificate.is_issued_by(&FAST.certificate) && certificate.has_key(&key.key.id()));
        assert_eq!((&*certificate.common_name, certificate.names.len()), (common_name, 0));
        let all: BTreeSet<&str> = certificate
            .organizations
            .iter()
            .map(|organization| &**organization)
            .collect();
        assert_eq!(all, organizations);
        assert_eq!((certificate.not_before, certificate.not_after), (at(1), at(2)));
    });
}

/// Returns every variant of the bytes with one flipped bit.
fn flipped(der: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..der.len() * 8).map(|bit| {
        let mut changed = der.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        changed
    })
}

#[test]
fn changed_request_is_refused() {
    let der = request_of(&FAST.key.key, &own_subject());
    let pem = as_pem("CERTIFICATE REQUEST", &der);
    let whole = read_request(&pem).unwrap();
    for (bit, changed) in flipped(&der).enumerate() {
        let read = read_request(&as_pem("CERTIFICATE REQUEST", &changed));
        assert!(read.is_err(), "bit {bit}: {read:?}");
    }
    let texts = || mutated(vec![pem.clone()]);
    holds(1500, texts, |text| match read_request(&text) {
        Ok(read) => assert_eq!(read, whole),
        Err(error) => assert!(is_plain_line(&error.to_string()), "{error}"),
    });
}

fn issued_by_fast(draft: &Draft<'_>) -> Result<Vec<u8>, Error> {
    draft.issue(FAST.key.key.public(), Some(&FAST.certificate), &FAST.key.key)
}

/// Returns a certificate issued by the CA, in DER; its dates have four-digit years.
fn issued() -> Vec<u8> {
    let draft = Draft {
        names: &names(&["a.example.com", "10.0.0.1"]),
        ..Draft::new(Purpose::Server, "one", at(365 * 30)..at(365 * 60))
    };
    let pem = issued_by_fast(&draft).unwrap();
    CertificateDer::from_pem_slice(&pem).unwrap().to_vec()
}

#[test]
fn changed_certificate_has_no_issuer() {
    let whole = issued();
    assert!(only(&as_pem("CERTIFICATE", &whole)).is_issued_by(&FAST.certificate));
    for changed in flipped(&whole) {
        if let Ok(read) = Certificate::read_all(&as_pem("CERTIFICATE", &changed)) {
            assert!(!read[0].is_issued_by(&FAST.certificate), "{:?}", read[0]);
        }
    }
    let bundle = [
        as_pem("CERTIFICATE", &whole),
        to_pem(std::slice::from_ref(&FAST.certificate)).unwrap(),
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
    #[rustfmt::skip]
    const DATES: &[&str] = &[
        "00000101000000Z", "00010101000000Z", "19491231235959Z", "19691231235959Z", "19700101000000Z",
        "20240229000000Z", "20230229000000Z", "20500101000000Z", "99991230235959Z", "99991231235959Z",
        "99991231235960Z", "20501301000000Z", "20500101240000Z",
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
            // A time at the end of the calendar may be one day earlier.
            assert!(
                certificate.not_after >= Timestamp::MAX || dates[1].starts_with(&years[1]),
                "{dates:?} {years:?}"
            );
        },
    );
}

#[test]
fn issued_certificate_matches_the_recipe_or_fails() {
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
            names: &names,
            ..Draft::new(Purpose::Server, &common_name, not_before..not_after)
        };
        let pem = match issued_by_fast(&draft) {
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
fn key_errors_never_show_the_key() {
    holds(
        1000,
        || mutated(vec![FAST.key.pem.clone()]),
        |key| {
            if let Err(error) = key_of(&key) {
                let message = error.to_string();
                assert!(
                    is_plain_line(&message) && message.len() < 300 && !message.contains("PRIVATE KEY-"),
                    "{message}"
                );
            }
        },
    );
}
