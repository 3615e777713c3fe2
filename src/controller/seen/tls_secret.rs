//! What is seen of a Secret with certificates and their key: the public half of it.

use super::{Text, read};
use crate::cluster_secret::{MANAGED_BY, OURS};
use crate::pki::{self, AuthorityData, Certificate, KeyId};
use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The annotation that says since when the first certificate of an authority signs.
pub const PROMOTED: &str = "argocd-ocm-cmp.github.io/signs-since";

/// A Secret of Kubernetes' type for certificates. Its keys are not kept, only which certificates they are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSecret {
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
    /// Which form of it this is.
    pub version: Box<str>,
    /// Whether it is going.
    pub deleting: bool,
    /// Whether it is ours.
    pub is_ours: bool,
    /// Its certificates, in their order; none where they cannot be read.
    pub certificates: Vec<Certificate>,
    /// The text of them.
    pub text: Box<str>,
    /// Whose key it has.
    pub key: Option<KeyId>,
    /// Whose key it has for later, where it is that of an authority.
    pub next: Option<KeyId>,
    /// Since when its first certificate signs, where it took over from another.
    pub promoted: Option<Timestamp>,
    /// What differs when any of it differs.
    pub digest: [u8; 32],
}

#[derive(Deserialize)]
struct Data {
    data: Option<Values>,
}

#[derive(Deserialize, Default)]
struct Values {
    #[serde(rename = "tls.crt")]
    certificates: Option<ByteString>,
    #[serde(rename = "tls.key")]
    key: Option<ByteString>,
    #[serde(rename = "next.key")]
    next: Option<ByteString>,
}

impl TlsSecret {
    /// Reads a Secret's JSON.
    ///
    /// # Errors
    /// That it cannot be understood, which the API server lets nobody write. Nothing of it is repeated.
    pub fn read(text: &str) -> Result<Self, String> {
        let unreadable = || "it is not a Secret as Kubernetes has them".to_owned();
        let Text::<serde::de::IgnoredAny> { metadata, .. } = read(text).map_err(|_| unreadable())?;
        let Data { data } = serde_json::from_str(text).map_err(|_| unreadable())?;
        let data = data.unwrap_or_default();
        // Their text goes to every cluster.
        let certificates = Certificate::without_keys(data.certificates.unwrap_or_default().0);
        let key = |key: Option<ByteString>| pki::key_of(&key?.0).ok();
        let mut digest = Sha256::new_with_prefix(&certificates);
        digest.update(data.key.as_ref().map_or(&[][..], |key| &key.0));
        Ok(Self {
            uid: metadata.uid.clone(),
            version: metadata.resource_version.clone(),
            deleting: metadata.deletion_timestamp.is_some(),
            is_ours: metadata.label(MANAGED_BY) == Some(OURS),
            certificates: Certificate::read_all(&certificates).unwrap_or_default(),
            text: String::from_utf8_lossy(&certificates).into(),
            key: key(data.key),
            next: key(data.next),
            promoted: metadata.annotation(PROMOTED).and_then(|at| at.parse().ok()),
            digest: digest.finalize().into(),
        })
    }

    /// What certificates are made by of an authority's Secret, from its JSON. It is not to be kept.
    ///
    /// # Errors
    /// That there is none in it. Nothing of it is repeated.
    pub fn authority(text: &str) -> Result<AuthorityData, String> {
        #[derive(Deserialize)]
        struct Secret {
            data: Option<BTreeMap<String, ByteString>>,
        }
        let Secret { data } = serde_json::from_str(text).map_err(|_| "it is not a Secret as Kubernetes has them")?;
        AuthorityData::new(data.unwrap_or_default()).map_err(|error| error.to_string())
    }

    /// The certificate that its key is of, where it is the first, as Go's `tls.X509KeyPair` wants it.
    #[must_use]
    pub fn leaf(&self) -> Option<&Certificate> {
        let first = self.certificates.first()?;
        first.has_key(self.key.as_ref()?).then_some(first)
    }
}
