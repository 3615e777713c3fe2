//! The model of a Secret with certificates and their key, without the private parts.

use jiff::Timestamp;
use k8s_openapi::ByteString;
use ocm::work::{MANAGED_BY, OURS};
use pki::{Certificate, KeyId};
use runtime::metadata::Metadata;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The annotation with the time from which the first certificate of a CA signs.
pub const PROMOTED: &str = "argocd-ocm-cmp.github.io/signs-since";

/// A Secret of type `kubernetes.io/tls`. Its keys are not kept, only the identifiers of their public keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSecret {
    pub uid: Box<str>,
    pub version: Box<str>,
    pub deleting: bool,
    pub is_ours: bool,
    /// The certificates, in order; empty if they cannot be parsed.
    pub certificates: Vec<Certificate>,
    /// The certificates in PEM.
    pub text: Box<str>,
    pub key: Option<KeyId>,
    /// The identifier of the next key, for the Secret of a CA.
    pub next: Option<KeyId>,
    /// The time from which the first certificate signs, if it replaced another.
    pub promoted: Option<Timestamp>,
    /// The digest of `tls.crt` and `tls.key`.
    pub digest: [u8; 32],
}

impl TlsSecret {
    /// The error quotes nothing of the Secret.
    pub fn from_json(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Secret {
            metadata: Metadata,
            data: Option<BTreeMap<String, ByteString>>,
        }
        let Secret { metadata, data } = serde_json::from_str(text).map_err(|_| "not a valid Secret".to_owned())?;
        let mut data = data.unwrap_or_default();
        // The certificates are sent to every cluster.
        let certificates = Certificate::without_keys(data.remove("tls.crt").unwrap_or_default().0);
        let key = |name| pki::key_of(&data.get(name)?.0).ok();
        let mut digest = Sha256::new_with_prefix(&certificates);
        digest.update(data.get("tls.key").map_or(&[][..], |key| &key.0));
        Ok(Self {
            uid: metadata.uid.clone(),
            version: metadata.resource_version.clone(),
            deleting: metadata.deletion_timestamp.is_some(),
            is_ours: metadata.label(MANAGED_BY) == Some(OURS),
            certificates: Certificate::read_all(&certificates).unwrap_or_default(),
            text: String::from_utf8_lossy(&certificates).into(),
            key: key("tls.key"),
            next: key("next.key"),
            promoted: metadata.annotation(PROMOTED).and_then(|at| at.parse().ok()),
            digest: digest.finalize().into(),
        })
    }

    /// Returns the first certificate if the key belongs to it, as Go's `tls.X509KeyPair` requires.
    pub fn leaf(&self) -> Option<&Certificate> {
        let first = self.certificates.first()?;
        first.has_key(self.key.as_ref()?).then_some(first)
    }
}
