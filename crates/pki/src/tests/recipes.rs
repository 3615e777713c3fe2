//! Tests of the results of recipes with OpenSSL, and of recipes that fail.

use super::*;
use serde_json::Value;
use std::fs;

/// Verifies a certificate with these options against the bundle, by OpenSSL.
fn verify(bundle: &[u8], certificate: &[u8], options: &str) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle");
    fs::write(&file, bundle).unwrap();
    let arguments = format!("verify -x509_strict {options} -CAfile {}", file.display());
    try_openssl(&arguments, certificate)
}

fn verified(bundle: &[u8], certificate: &[u8], purpose: &str) -> Result<Vec<u8>, String> {
    verify(bundle, certificate, &format!("-no_check_time -purpose {purpose}"))
}

#[test]
fn certificate_is_valid_for_its_names_its_time_and_its_ca_only() {
    let bundle = part(&AUTHORITY, TLS_CERTIFICATE);
    let made = make(&server(), Some(&data_of(&AUTHORITY))).unwrap();
    for (option, days, refusal) in [
        ("-verify_hostname principal.argocd.svc", 1, None),
        ("-verify_hostname hub.example.com", 1, None),
        ("-verify_ip 10.0.0.1", 1, None),
        ("-verify_ip ::1", 30, None),
        ("-verify_hostname example.org", 1, Some("hostname mismatch")),
        ("-verify_ip 10.0.0.2", 1, Some("IP address mismatch")),
        ("-verify_ip ::1", 0, Some("not yet valid")),
        ("-verify_ip ::1", 32, Some("expired")),
    ] {
        let options = format!("-purpose sslserver -attime {} {option}", at(days).as_second());
        match (verify(bundle, part(&made, TLS_CERTIFICATE), &options), refusal) {
            (Ok(_), None) => {}
            (Err(error), Some(refusal)) => assert!(error.contains(refusal), "{options}: {error}"),
            (verified, _) => panic!("{options}: {verified:?}"),
        }
    }
    // Another CA with the same name.
    let other = new_authority();
    let made = make(&server(), Some(&data_of(&other))).unwrap();
    let certificate = part(&made, TLS_CERTIFICATE);
    verified(bundle, certificate, "sslserver").unwrap_err();
    assert!(!only(certificate).is_issued_by(&only(bundle)));
    assert!(only(certificate).is_issued_by(&only(part(&other, TLS_CERTIFICATE))));
}

#[test]
fn issued_certificates_conform_to_rfc_5280() {
    let bundle = part(&AUTHORITY, TLS_CERTIFICATE);
    let text = |pem| openssl_text("x509 -noout -text", pem);
    let authority = text(bundle);
    for line in [
        "Subject: CN = argocd-agent-ca@1767225600",
        "Public-Key: (3072 bit)",
        "Signature Algorithm: sha256WithRSAEncryption",
        "CA:TRUE, pathlen:0",
        "X509v3 Basic Constraints: critical",
        "X509v3 Key Usage: critical\n                Certificate Sign, CRL Sign",
    ] {
        assert!(
            authority.replace("CN=", "CN = ").contains(line),
            "{line} is not in {authority}"
        );
    }
    let data = data_of(&AUTHORITY);
    let served = make(&server(), Some(&data)).unwrap();
    let certificate = part(&served, TLS_CERTIFICATE);
    let shown = text(certificate);
    for line in [
        "ASN1 OID: prime256v1",
        "X509v3 Basic Constraints: critical\n                CA:FALSE",
        "X509v3 Key Usage: critical\n                Digital Signature\n",
        "TLS Web Server Authentication, TLS Web Client Authentication",
        "DNS:*.example.com, IP Address:10.0.0.1, IP Address:0:0:0:0:0:0:0:1, DNS:principal.argocd.svc",
    ] {
        assert!(shown.contains(line), "{line} is not in {shown}");
    }
    let read = only(certificate);
    assert!(read.is_issued_by(&only(bundle)) && read.has_key(&key_of(part(&served, TLS_KEY)).unwrap()));
    assert_eq!((read.not_before, read.not_after), (at(1), at(31)));
    assert_eq!(
        read.names,
        names(&["principal.argocd.svc", "*.example.com", "10.0.0.1", "::1"])
    );
    let serial = |pem| openssl("x509 -noout -serial", pem);
    let other = make(&server(), Some(&data)).unwrap();
    assert_ne!(serial(certificate), serial(part(&other, TLS_CERTIFICATE)));
    verified(bundle, certificate, "sslserver").unwrap();
    verified(bundle, certificate, "sslclient").unwrap();
}

#[test]
fn signs_with_cas_that_others_created() {
    let curve = openssl("ecparam -genkey -name secp384r1", b"");
    for key in [
        openssl("genrsa -traditional 2048", b""),
        openssl("genrsa 2048", b""),
        curve,
    ] {
        // Two organizations in one RDN, as Go writes them, and no key identifier.
        let options = "-multivalue-rdn -subj /O=one+O=two/CN=openshift@1 -addext subjectKeyIdentifier=none";
        let bundle = openssl(&format!("req -x509 -key /dev/stdin -days 400 {options}"), &key);
        let now = only(&bundle).not_before;
        let data = secret(&[(TLS_CERTIFICATE, &bundle), (TLS_KEY, &key)]);
        let recipe = Recipe::Server {
            common_name: "principal".into(),
            names: names(&["principal"]),
            validity: now..at(100_000),
            authority: authority(),
        };
        let made = make(&recipe, Some(&data)).unwrap();
        let certificate = part(&made, TLS_CERTIFICATE);
        assert!(only(certificate).is_issued_by(&only(&bundle)));
        assert_eq!(
            only(certificate).not_after,
            only(&bundle).not_after,
            "it ends no later than its authority"
        );
        // In strict mode, a CA must have a key identifier.
        let other = part(&AUTHORITY, TLS_CERTIFICATE);
        assert!(
            verified(other, certificate, "sslserver")
                .unwrap_err()
                .contains("unable to get local issuer")
        );
        let refusal = verified(&bundle, certificate, "sslserver").unwrap_err();
        assert!(refusal.contains("Subject Key Identifier"), "{refusal}");
    }
}

#[test]
fn signed_request_is_a_client_certificate_without_its_extensions() {
    for options in [
        "EC -pkeyopt ec_paramgen_curve:P-256",
        "RSA -pkeyopt rsa_keygen_bits:2048",
        "ED25519",
    ] {
        let key = openssl(&format!("genpkey -algorithm {options}"), b"");
        let extensions = "-addext basicConstraints=critical,CA:true -addext subjectAltName=DNS:hub -addext extendedKeyUsage=serverAuth";
        let csr = request(&key, &format!("{AGENT} {extensions}"));
        let made = make(&sign(csr), Some(&data_of(&AUTHORITY))).unwrap();
        let certificate = only(part(&made, "certificate"));
        assert_eq!(&*certificate.common_name, "cluster1");
        assert_eq!(
            *certificate.organizations,
            [
                "system:open-cluster-management:cluster1".into(),
                "system:authenticated".into()
            ]
        );
        assert!(!certificate.serves && !certificate.is_authority);
        assert!(certificate.names.is_empty() && certificate.has_key(&key_of(&key).unwrap()));
        let bundle = part(&AUTHORITY, TLS_CERTIFICATE);
        verified(bundle, part(&made, "certificate"), "sslclient").unwrap();
        assert!(verified(bundle, part(&made, "certificate"), "sslserver").is_err());
    }
}

#[test]
fn client_config_has_certificate_key_and_ca() {
    let recipe = Recipe::Client {
        common_name: "cluster1".into(),
        validity: at(1)..at(31),
        authority: authority(),
    };
    let made = make(&recipe, Some(&data_of(&AUTHORITY))).unwrap();
    let config: Value = serde_json::from_slice(part(&made, "config")).unwrap();
    let tls = config["tlsClientConfig"].as_object().unwrap();
    assert_eq!(tls["insecure"], false);
    let decoded = |key: &str| openssl("base64 -d -A", tls[key].as_str().unwrap().as_bytes());
    assert_eq!(decoded("caData"), part(&AUTHORITY, TLS_CERTIFICATE));
    let certificate = only(&decoded("certData"));
    assert!(certificate.has_key(&key_of(&decoded("keyData")).unwrap()));
    verified(&decoded("caData"), &decoded("certData"), "sslclient").unwrap();
}

#[test]
fn token_key_is_a_large_rsa_key() {
    let made = make(&Recipe::Jwt, None).unwrap();
    let key = part(&made, "jwt.key");
    assert!(key.starts_with(b"-----BEGIN PRIVATE KEY-----\n"));
    assert!(openssl_text("rsa -noout -text", key).contains("(4096 bit"));
}

#[test]
fn rotation_trusts_old_certificates_until_the_old_ca_is_dropped() {
    let first = written(BTreeMap::new(), &AUTHORITY);
    let data = |data: &BTreeMap<String, ByteString>| AuthorityData::new(data.clone()).unwrap();
    let bundle = |data: &BTreeMap<String, ByteString>| data[TLS_CERTIFICATE].0.clone();
    let leaf = |with: &BTreeMap<String, ByteString>| {
        part(&make(&server(), Some(&data(with))).unwrap(), TLS_CERTIFICATE).to_vec()
    };
    let trusted = |by: &BTreeMap<String, ByteString>, leaf: &[u8]| verified(&bundle(by), leaf, "sslserver").is_ok();
    let old = leaf(&first);

    let recipe = Recipe::NextAuthority {
        common_name: authority_name(at(292)),
        validity: at(292)..at(657),
        authority: authority(),
    };
    let announced = written(first.clone(), &make(&recipe, Some(&data(&first))).unwrap());
    assert_eq!(
        make(&recipe, Some(&data(&announced))),
        Err(Error::AlreadyNext.within(NEXT_KEY))
    );
    let [signer, next] = Certificate::read_all(&bundle(&announced)).unwrap().try_into().unwrap();
    assert!(next.has_key(&key_of(&announced[NEXT_KEY].0).unwrap()));
    assert_eq!(signer, only(part(&AUTHORITY, TLS_CERTIFICATE)));
    assert!(
        only(&leaf(&announced)).is_issued_by(&signer),
        "the next one does not sign yet"
    );

    let dropped = Recipe::Drop { authority: authority() };
    let parts = make(&dropped, Some(&data(&announced))).unwrap();
    assert_eq!(
        part(&parts, TLS_CERTIFICATE),
        bundle(&announced),
        "both stay as long as one is announced"
    );

    let promote = Recipe::Promote { authority: authority() };
    assert_eq!(
        make(&promote, Some(&data(&first))),
        Err(Error::Missing.within(NEXT_KEY))
    );
    let promoted = written(announced.clone(), &make(&promote, Some(&data(&announced))).unwrap());
    assert!(!promoted.contains_key(NEXT_KEY));
    assert_eq!(
        Certificate::read_all(&bundle(&promoted)).unwrap(),
        [next.clone(), signer]
    );
    let new = leaf(&promoted);
    assert!(only(&new).is_issued_by(&next));
    assert!(trusted(&promoted, &old) && trusted(&promoted, &new) && trusted(&announced, &new));
    assert!(!trusted(&first, &new));

    // The next one is promoted by its key, also after another CA.
    let announced = written(promoted.clone(), &make(&recipe, Some(&data(&promoted))).unwrap());
    let third = written(announced.clone(), &make(&promote, Some(&data(&announced))).unwrap());
    let [announced, third] = [announced, third].map(|data| Certificate::read_all(&bundle(&data)).unwrap());
    assert_eq!(third, [&announced[2..], &announced[..2]].concat());

    let done = written(promoted.clone(), &make(&dropped, Some(&data(&promoted))).unwrap());
    assert_eq!(only(&bundle(&done)), next);
    assert!(trusted(&done, &new) && !trusted(&done, &old));
}

#[test]
fn error_names_the_invalid_part() {
    let (bundle, key) = (part(&AUTHORITY, TLS_CERTIFICATE), part(&AUTHORITY, TLS_KEY));
    let error_of = |recipe: &Recipe, data: &AuthorityData| make(recipe, Some(data)).unwrap_err().to_string();
    let other = openssl("genpkey -algorithm ED25519", b"");
    let served = make(&server(), Some(&data_of(&AUTHORITY))).unwrap();
    let leaf = part(&served, TLS_CERTIFICATE);
    for (certificate, key, error) in [
        (
            bundle,
            &*other,
            "tls.key: does not match the first certificate of tls.crt",
        ),
        (bundle, b"", "tls.key: contains no unencrypted private key"),
        (bundle, &key[..400], "tls.key: invalid PEM"),
        (b"", key, "tls.crt: contains no certificate"),
        (
            leaf,
            part(&served, TLS_KEY),
            "tls.crt: the first certificate is not a CA certificate",
        ),
    ] {
        assert_eq!(
            error_of(&server(), &secret(&[(TLS_CERTIFICATE, certificate), (TLS_KEY, key)])),
            error
        );
    }
    let promote = Recipe::Promote { authority: authority() };
    for next in [&*other, key] {
        let data = secret(&[(TLS_CERTIFICATE, bundle), (TLS_KEY, key), (NEXT_KEY, next)]);
        assert_eq!(
            error_of(&promote, &data),
            "next.key: no certificate of tls.crt matches this key"
        );
    }
    let no_key = AuthorityData::new(BTreeMap::from([(TLS_CERTIFICATE.into(), ByteString(Vec::new()))]));
    assert_eq!(no_key.err().unwrap().to_string(), "tls.key: missing");
    assert_eq!(make(&server(), None), Err(Error::NoAuthority));

    let with = |name: &str, from, to| Recipe::Server {
        common_name: "principal".into(),
        names: names(&[name]),
        validity: at(from)..at(to),
        authority: authority(),
    };
    let data = data_of(&AUTHORITY);
    assert_eq!(
        error_of(&with("a b", 1, 2), &data),
        "\"a b\" is neither a DNS name nor an IP address"
    );
    assert_eq!(
        error_of(&with("a", 366, 400), &data),
        "invalid validity period: a certificate must expire after it becomes valid, and no later than its CA"
    );
    assert_eq!(make(&with("a", 2, 2), Some(&data)), Err(Error::Times));
    assert_eq!(make(&with("a", -30_000, 2), Some(&data)), Err(Error::Times));
}
