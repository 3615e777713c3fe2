//! The connection of Argo CD to a managed cluster: the `config` of a cluster Secret (its `ClusterConfig`).

use super::Error;
use super::certificate::Certificate;
use super::key::{KeyId, key_of};
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The public facts of such a configuration; its private key is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The client's certificate, the first of several.
    pub certificate: Certificate,
    /// The ID of the private key, which should be that of the certificate.
    pub key: KeyId,
    /// The SHA-256 of the trusted CA certificates in PEM; `None` if verification is disabled.
    trusted: Option<[u8; 32]>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClusterConfig {
    tls_client_config: TlsClientConfig,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TlsClientConfig {
    insecure: bool,
    cert_data: ByteString,
    key_data: ByteString,
    ca_data: ByteString,
}

impl ClientConfig {
    /// Reads the `config` of a cluster Secret.
    ///
    /// # Errors
    /// Returns an error if it has no certificate and private key. The error quotes nothing of the content.
    pub fn from_json(config: &[u8]) -> Result<Self, Error> {
        let config: ClusterConfig = serde_json::from_slice(config).map_err(|_| Error::Config)?;
        let tls = config.tls_client_config;
        let certificates = Certificate::read_all(&tls.cert_data.0).map_err(|error| error.within("certData"))?;
        Ok(Self {
            certificate: certificates.into_iter().next().ok_or(Error::NoCertificate)?,
            key: key_of(&tls.key_data.0).map_err(|error| error.within("keyData"))?,
            trusted: (!tls.insecure).then(|| Sha256::digest(&tls.ca_data.0).into()),
        })
    }

    /// Returns true if exactly the CAs of this bundle are trusted, compared by bytes.
    #[must_use]
    pub fn trusts(&self, bundle: &[u8]) -> bool {
        self.trusted
            .is_some_and(|trusted| trusted == <[u8; 32]>::from(Sha256::digest(bundle)))
    }
}

/// Writes a configuration with this certificate, its key and the trusted CAs, all in PEM.
pub(super) fn write(certificate: Vec<u8>, key: Vec<u8>, bundle: &[u8]) -> Vec<u8> {
    let tls_client_config = TlsClientConfig {
        insecure: false,
        cert_data: ByteString(certificate),
        key_data: ByteString(key),
        ca_data: ByteString(bundle.to_vec()),
    };
    serde_json::to_vec(&ClusterConfig { tls_client_config })
        .expect("the configuration contains only strings and booleans")
}
