//! The client certificate with which Argo CD authenticates to argocd-agent's resource proxy, in a cluster Secret.

use crate::model::TlsSecret;
use k8s_openapi::ByteString;
use pki::Certificate;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// The known facts of Argo CD's client credentials, without secret values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credential {
    /// The client certificate, if the Secret has its key and verification is enabled.
    pub certificate: Option<Certificate>,
    /// The hash of the CAs by which Argo CD verifies the resource proxy.
    pub authorities: [u8; 32],
    /// True if the configuration has a user name as well, as argocd-pull-integration and Red Hat ACM write it.
    pub has_user: bool,
}

impl Credential {
    /// Reads the credential from the value of `config` in a Secret; returns the default for an invalid value.
    pub(super) fn from_config(config: &RawValue) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Config {
            username: Option<String>,
            tls_client_config: Option<Tls>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Tls {
            #[serde(default)]
            insecure: bool,
            cert_data: Option<ByteString>,
            key_data: Option<ByteString>,
            ca_data: Option<ByteString>,
        }
        let config: Option<Config> = serde_json::from_str::<ByteString>(config.get())
            .ok()
            .and_then(|ByteString(text)| serde_json::from_slice(&text).ok());
        let Some(config) = config else {
            return Self::default();
        };
        let tls = config.tls_client_config.unwrap_or_default();
        let (certificate, key) = (tls.cert_data.unwrap_or_default(), tls.key_data.unwrap_or_default());
        let certificate = pki::key_of(&key.0).ok().and_then(|key| {
            let certificates = Certificate::read_all(&certificate.0).ok()?;
            let first = certificates.into_iter().next()?;
            (first.has_key(&key) && !tls.insecure).then_some(first)
        });
        Self {
            certificate,
            authorities: Sha256::digest(tls.ca_data.unwrap_or_default().0).into(),
            has_user: config.username.is_some_and(|name| !name.is_empty()),
        }
    }
}

pub fn hash_authorities(ca: &TlsSecret) -> [u8; 32] {
    Sha256::digest(ca.text.as_bytes()).into()
}
