//! Tests of TLS 1.3 handshakes with certificates on both sides, as between argocd-agent and its principal.

use super::*;
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use std::sync::Arc;
use std::time::Duration;

/// A certificate and its key, in PEM.
type Identity<'a> = (&'a [u8], &'a [u8]);

fn parse_pem((certificate, key): Identity<'_>) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = CertificateDer::pem_slice_iter(certificate).map(Result::unwrap);
    (chain.collect(), PrivateKeyDer::from_pem_slice(key).unwrap())
}

/// A clock that shows the time of the test.
#[derive(Debug)]
struct Clock(Timestamp);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.as_second()).unwrap();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

fn trusted(bundle: &[u8]) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    Arc::new(roots)
}

/// Runs a handshake between a server and a client that both trust the CAs of the bundle.
fn meet(bundle: &[u8], server: Identity<'_>, client: Identity<'_>, name: &str, now: Timestamp) -> Result<(), String> {
    let provider: Arc<CryptoProvider> = default_provider().into();
    let clock = || Arc::new(Clock(now));
    let verifier = WebPkiClientVerifier::builder_with_provider(trusted(bundle), Arc::clone(&provider))
        .build()
        .unwrap();
    let (chain, key) = parse_pem(server);
    let serving = ServerConfig::builder_with_details(Arc::clone(&provider), clock())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .unwrap();
    let (chain, key) = parse_pem(client);
    let mut connecting = ClientConfig::builder_with_details(provider, clock())
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(trusted(bundle))
        .with_client_auth_cert(chain, key)
        .unwrap();
    connecting.resumption = Resumption::disabled();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(Arc::new(connecting), name).unwrap();
    let mut server = ServerConnection::new(Arc::new(serving)).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut wire.as_slice()).unwrap();
        server
            .process_new_packets()
            .map_err(|error| format!("the server: {error}"))?;
        let mut wire = Vec::new();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut wire.as_slice()).unwrap();
        client
            .process_new_packets()
            .map_err(|error| format!("the client: {error}"))?;
    }
    Ok(())
}

#[test]
fn server_and_requested_client_connect_over_tls_1_3() {
    let data = data_of(&AUTHORITY);
    let bundle = part(&AUTHORITY, TLS_CERTIFICATE);
    let made = make(&server(), Some(&data)).unwrap();
    let server = (part(&made, TLS_CERTIFICATE), part(&made, TLS_KEY));
    for options in [
        "EC -pkeyopt ec_paramgen_curve:P-256",
        "RSA -pkeyopt rsa_keygen_bits:2048",
        "ED25519",
    ] {
        let key = openssl(&format!("genpkey -algorithm {options}"), b"");
        let signed = make(&sign(request(&key, AGENT)), Some(&data)).unwrap();
        let client = (part(&signed, "certificate"), &*key);
        for name in ["principal.argocd.svc", "hub.example.com", "10.0.0.1", "::1"] {
            assert_eq!(meet(bundle, server, client, name, at(1)), Ok(()), "{options}: {name}");
        }
        let refused = |name, now| meet(bundle, server, client, name, now).unwrap_err();
        assert!(
            refused("example.org", at(1)).contains("not valid for name"),
            "{options}"
        );
        assert!(refused("10.0.0.1", at(3)).contains("expired"), "{options}");
        // A client certificate is not valid for a server.
        assert!(meet(bundle, client, client, "cluster1", at(1)).is_err(), "{options}");
    }
}

#[test]
fn refuses_certificates_of_another_ca_with_the_same_name() {
    let other = new_authority();
    let bundle = part(&AUTHORITY, TLS_CERTIFICATE);
    let made = make(&server(), Some(&data_of(&AUTHORITY))).unwrap();
    let server = (part(&made, TLS_CERTIFICATE), part(&made, TLS_KEY));
    let key = openssl("genpkey -algorithm ED25519", b"");
    let signed = make(&sign(request(&key, AGENT)), Some(&data_of(&other))).unwrap();
    let client = part(&signed, "certificate");
    let refusal = meet(bundle, server, (client, &key), "10.0.0.1", at(1)).unwrap_err();
    assert!(refusal.contains("the server: invalid peer certificate"), "{refusal}");
    let certificate = only(client);
    assert!(!certificate.is_issued_by(&only(bundle)));
    assert!(certificate.is_issued_by(&only(part(&other, TLS_CERTIFICATE))));
}
