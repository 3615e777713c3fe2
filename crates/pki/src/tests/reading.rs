//! Tests of reading input from other tools, and invalid input.

use super::*;
use crate::key::pem_text;

/// Creates a self-signed certificate with that key, by OpenSSL.
fn self_signed(key: &[u8], options: &str) -> Vec<u8> {
    openssl(&format!("req -x509 -key /dev/stdin -days 400 {options}"), key)
}

#[test]
fn reads_keys_in_every_common_format() {
    let rsa = openssl("genrsa -traditional 2048", b"");
    let curve = openssl("ecparam -genkey -name prime256v1", b"");
    assert!(rsa.starts_with(b"-----BEGIN RSA PRIVATE KEY"));
    assert!(curve.starts_with(b"-----BEGIN EC PARAMETERS"));
    for key in [&rsa, &curve, &openssl("ecparam -genkey -noout -name secp384r1", b"")] {
        let pkcs8 = openssl("pkcs8 -topk8 -nocrypt", key);
        assert!(pkcs8.starts_with(b"-----BEGIN PRIVATE KEY"));
        let id = key_of(key).unwrap();
        assert_eq!(key_of(&pkcs8), Ok(id.clone()));
        let certificate = only(&self_signed(key, "-subj /CN=x"));
        assert!(certificate.has_key(&id) && certificate.is_authority && certificate.is_issued_by(&certificate));
    }
    assert_ne!(key_of(&rsa), key_of(&curve));
    assert_eq!(
        key_of(&openssl("pkcs8 -topk8 -passout pass:secret", &rsa)),
        Err(Error::NoKey)
    );
    assert_eq!(key_of(b""), Err(Error::NoKey));
    assert_eq!(key_of(&openssl("genpkey -algorithm X25519", b"")), Err(Error::Key));
    assert_eq!(key_of(&rsa[..rsa.len() / 2]), Err(Error::Pem));
    assert_eq!(key_of(&openssl("genrsa 1024", b"")), Err(Error::Key));
}

#[test]
fn reads_a_certificate_like_openssl() {
    let key = openssl("genpkey -algorithm ED25519", b"");
    let pem = self_signed(
        &key,
        "-subj /O=one/O=two/CN=first/CN=last -addext subjectAltName=DNS:a.example.com,IP:10.0.0.1,IP:fe80::1 \
         -addext extendedKeyUsage=serverAuth -addext basicConstraints=CA:false",
    );
    let certificate = only(&pem);
    assert_eq!(&*certificate.common_name, "last");
    assert_eq!(*certificate.organizations, ["one".into(), "two".into()]);
    assert_eq!(certificate.names, names(&["a.example.com", "10.0.0.1", "fe80::1"]));
    assert!(certificate.serves);
    let printed = |option| {
        openssl_text(&format!("x509 -noout {option}"), &pem)
            .trim()
            .to_lowercase()
    };
    let fingerprint = printed("-fingerprint -sha256").replace(':', "");
    assert_eq!(fingerprint.split_once('=').unwrap().1, certificate.fingerprint());
    let dates = |option| printed(option).split_once('=').unwrap().1.to_uppercase();
    let written = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
    assert_eq!(dates("-startdate -dateopt iso_8601"), written(certificate.not_before));
    assert_eq!(dates("-enddate -dateopt iso_8601"), written(certificate.not_after));
    assert_eq!(
        certificate.renews_at().duration_since(certificate.not_before).as_secs(),
        320 * DAY
    );
}

#[test]
fn only_a_ca_counts_as_issuer() {
    let key = openssl("genpkey -algorithm ED25519", b"");
    for (extension, is_authority) in [
        ("basicConstraints=critical,CA:true", true),
        ("basicConstraints=critical,CA:false", false),
        ("keyUsage=keyCertSign", true),
        ("keyUsage=digitalSignature", false),
    ] {
        let certificate = only(&self_signed(&key, &format!("-subj /CN=x -addext {extension}")));
        assert_eq!(certificate.is_authority, is_authority, "{extension}");
        assert_eq!(certificate.is_issued_by(&certificate), is_authority, "{extension}");
    }
}

#[test]
fn reads_every_certificate_of_a_bundle_or_none() {
    let one = self_signed(&openssl("genpkey -algorithm ED25519", b""), "-subj /CN=one");
    let text = openssl("x509 -text", part(&AUTHORITY, TLS_CERTIFICATE));
    let both = [one.as_slice(), b"\r\n", &text].concat();
    let read = Certificate::read_all(&both).unwrap();
    assert_eq!(read[0], only(&one));
    assert_eq!(read[1], only(part(&AUTHORITY, TLS_CERTIFICATE)));
    assert_eq!(read.len(), 2);

    assert_eq!(Certificate::read_all(b"no PEM"), Err(Error::NoCertificate));
    assert_eq!(Certificate::read_all(&both[..both.len() - 40]), Err(Error::Pem));
    let broken = [
        one.as_slice(),
        b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
    ]
    .concat();
    assert!(matches!(Certificate::read_all(&broken), Err(Error::Certificate(2, _))));
}

#[test]
fn strips_keys_from_trust_bundles() {
    let (certificate, key) = (part(&AUTHORITY, TLS_CERTIFICATE), part(&AUTHORITY, TLS_KEY));
    assert_eq!(Certificate::without_keys(certificate.to_vec()), certificate);
    for both in [[certificate, key].concat(), [key, b"\n", certificate].concat()] {
        assert_eq!(Certificate::without_keys(both.clone()), certificate);
        let authority = secret(&[(TLS_CERTIFICATE, &both), (TLS_KEY, key)]);
        assert_eq!(authority.bundle, certificate);
    }
    assert_eq!(Certificate::without_keys(key.to_vec()), b"");
}

#[test]
fn accepts_requests_only_with_valid_signature_and_subject() {
    let key = openssl("ecparam -genkey -noout -name prime256v1", b"");
    let csr = request(&key, &format!("{AGENT} -addext subjectAltName=DNS:hub,email:a@b.c"));
    let request_read = read_request(&csr).unwrap();
    assert_eq!(&*request_read.common_name, "cluster1");
    assert_eq!(
        *request_read.organizations,
        [
            "system:open-cluster-management:cluster1".into(),
            "system:authenticated".into()
        ]
    );
    assert_eq!(*request_read.public, *openssl("pkey -pubout -outform DER", &key));

    for subject in [
        "/O=x",
        "/CN=a/CN=b",
        "/serialNumber=CN=cluster2/CN=cluster1",
        "/OU=x/CN=a",
    ] {
        assert_eq!(read_request(&request(&key, subject)), Err(Error::Subject), "{subject}");
    }
    assert_eq!(read_request(&[csr.as_slice(), &csr].concat()), Err(Error::NoRequest));
    assert_eq!(read_request(&key), Err(Error::NoRequest));

    // The same request for another name, with the signature of the first.
    let mut der = openssl("req -outform DER", &csr);
    let name = der.windows(8).position(|bytes| bytes == b"cluster1").unwrap();
    der[name + 7] = b'2';
    let forged = pem_text("CERTIFICATE REQUEST", &der).unwrap();
    assert_eq!(read_request(&forged), Err(Error::Unproven));
}
