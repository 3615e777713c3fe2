//! The certificate authority of a testbed, and its certificates.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// The name of an API server in its own cluster.
const IN_CLUSTER: &str = "kubernetes.default.svc";

/// The certificate authority of one testbed: it signs the serving certificates of API servers and the webhook, and the hub's
/// kube-controller-manager signs agents' certificates with it.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    certificate: PathBuf,
    key: PathBuf,
}

/// A certificate and its key, as files.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) folder: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The key pair that signs an API server's service account tokens, as files.
#[derive(Debug)]
pub(crate) struct TokenKeys {
    pub(crate) public: PathBuf,
    pub(crate) private: PathBuf,
}

/// Returns a request (PKCS#10) in PEM for a certificate of this name, with a discarded key.
pub fn certificate_request(common_name: &str) -> Result<String> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common_name);
    Ok(params.serialize_request(&KeyPair::generate()?)?.pem()?)
}

impl Authority {
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "testbed");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let keys = KeyPair::generate()?;
        let pem = params.self_signed(&keys)?.pem();
        let (certificate, key) = (folder.join("ca.crt"), folder.join("ca.key"));
        fs::write(&certificate, &pem)?;
        fs::write(&key, keys.serialize_pem())?;
        Ok(Self {
            issuer: Issuer::new(params, keys),
            pem,
            certificate,
            key,
        })
    }

    /// Returns the authority's own certificate, PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the file with the authority's own certificate.
    pub(crate) fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Returns the file with the authority's private key.
    pub(crate) fn key(&self) -> &Path {
        &self.key
    }

    /// Creates a serving certificate for 127.0.0.1 in `folder`, as tls.crt and tls.key. Peers in a tunnel use it as clients too.
    pub(crate) fn serving(&self, folder: PathBuf) -> Result<Identity> {
        let names = [
            "127.0.0.1",
            "localhost",
            IN_CLUSTER,
            "*.open-cluster-management.proxy",
            "cluster-proxy-addon-user.open-cluster-management-addon.svc",
        ];
        let mut params = CertificateParams::new(names.map(str::to_owned))?;
        params.distinguished_name.push(DnType::CommonName, "127.0.0.1");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let keys = KeyPair::generate()?;
        let (certificate, key) = (folder.join("tls.crt"), folder.join("tls.key"));
        fs::write(&certificate, params.signed_by(&keys, &self.issuer)?.pem())?;
        fs::write(&key, keys.serialize_pem())?;
        Ok(Identity {
            folder,
            certificate,
            key,
        })
    }
}

/// Creates keys for service account tokens in `folder`.
pub(crate) fn token_keys(folder: &Path) -> Result<TokenKeys> {
    let keys = KeyPair::generate()?;
    let (public, private) = (folder.join("tokens.pub"), folder.join("tokens.key"));
    fs::write(&public, keys.public_key_pem())?;
    fs::write(&private, keys.serialize_pem())?;
    Ok(TokenKeys { public, private })
}
