//! How Argo CD connects to a managed cluster: `config` of a cluster Secret (its `ClusterConfig`).

use super::Error;
use super::certificate::Certificate;
use super::key::{KeyId, key_of};
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What is known of such a configuration; its key is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The client's certificate, the first of those that are there.
    pub certificate: Certificate,
    /// Of the private key that goes with it, or should.
    pub key: KeyId,
    /// The SHA-256 of the certificates of those who are trusted, in PEM; nothing where everybody is.
    trusted: Option<[u8; 32]>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    tls_client_config: Tls,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tls {
    insecure: bool,
    cert_data: ByteString,
    key_data: ByteString,
    ca_data: ByteString,
}

impl ClientConfig {
    /// Reads `config` of a cluster Secret.
    ///
    /// # Errors
    /// That it is not one with a certificate and a private key. Nothing of it is repeated.
    pub fn read(config: &[u8]) -> Result<Self, Error> {
        let config: Config = serde_json::from_slice(config).map_err(|_| Error::Config)?;
        let tls = config.tls_client_config;
        let certificates = Certificate::read_all(&tls.cert_data.0).map_err(|error| error.within("certData"))?;
        Ok(Self {
            certificate: certificates.into_iter().next().ok_or(Error::NoCertificate)?,
            key: key_of(&tls.key_data.0).map_err(|error| error.within("keyData"))?,
            trusted: (!tls.insecure).then(|| Sha256::digest(&tls.ca_data.0).into()),
        })
    }

    /// Whether those of this bundle are trusted, to the byte, and nobody else.
    #[must_use]
    pub fn trusts(&self, bundle: &[u8]) -> bool {
        self.trusted
            .is_some_and(|trusted| trusted == <[u8; 32]>::from(Sha256::digest(bundle)))
    }
}

/// A configuration with this certificate, its key, and those who are trusted, all in PEM.
pub(super) fn write(certificate: Vec<u8>, key: Vec<u8>, bundle: &[u8]) -> Vec<u8> {
    let tls_client_config = Tls {
        insecure: false,
        cert_data: ByteString(certificate),
        key_data: ByteString(key),
        ca_data: ByteString(bundle.to_vec()),
    };
    serde_json::to_vec(&Config { tls_client_config }).expect("it is texts in known places")
}
