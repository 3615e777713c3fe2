//! How Argo CD shows argocd-agent's resource proxy who it is: with a certificate for each cluster, of the authority by which the
//! principal knows its agents.

use crate::agent::names;
use crate::controller::seen::{Place, TlsSecret};
use crate::pki::{self, Authority, Certificate, Recipe};
use k8s_openapi::ByteString;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// How much earlier than now a certificate begins: clocks differ.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// How long a certificate lasts, as argocd-pull-integration's.
const LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What is known of how Argo CD shows who it is, and none of its secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credential {
    /// Its certificate, where it has the key of it, and uses both.
    certificate: Option<Certificate>,
    /// What distinguishes the authorities by which it knows the resource proxy.
    authorities: [u8; 32],
    /// Whether it has a user's name besides, as argocd-pull-integration and Red Hat ACM give it one.
    pub(super) has_user: bool,
}

impl Credential {
    /// Reads it of the value of `config`, as a Secret has it. What cannot be understood is none.
    pub(super) fn read(config: &RawValue) -> Self {
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

    /// When it is to be renewed, though nothing happens.
    pub(super) fn renews_at(&self) -> Option<Timestamp> {
        Some(self.certificate.as_ref()?.renews_at())
    }

    /// Whether the authority that signs has signed its certificate.
    pub(super) fn is_issued_by(&self, ca: &TlsSecret) -> bool {
        let pair = self.certificate.as_ref().zip(ca.certificates.first());
        pair.is_some_and(|(certificate, signer)| certificate.is_issued_by(signer))
    }

    /// Whether it has exactly these authorities.
    pub(super) fn trusts(&self, ca: &TlsSecret) -> bool {
        self.authorities == digest(ca)
    }

    /// Whether it is that of this cluster, of these authorities, and for a while yet. Nothing is gained where it lasts as long as who
    /// has signed it.
    fn is_good(&self, cluster: &str, issuer: &Issuer<'_>) -> bool {
        let is_good = |certificate: &Certificate| {
            let lasts = certificate.renews_at() > issuer.now || certificate.not_after >= issuer.signer.not_after;
            lasts && *certificate.common_name == *cluster && certificate.is_issued_by(issuer.signer)
        };
        self.certificate.as_ref().is_some_and(is_good) && self.authorities == issuer.authorities
    }
}

/// What distinguishes all authorities of a Secret.
fn digest(ca: &TlsSecret) -> [u8; 32] {
    Sha256::digest(ca.text.as_bytes()).into()
}

/// Who makes certificates for Argo CD, and when.
#[derive(Clone, Copy, Debug)]
pub struct Issuer<'i> {
    signer: &'i Certificate,
    /// What distinguishes all authorities that are trusted, of which the signer is one.
    authorities: [u8; 32],
    /// Which form of the Secret that is.
    version: &'i str,
    now: Timestamp,
}

impl<'i> Issuer<'i> {
    /// The authority of the Secret [`names::CA_SECRET`], where it can sign at this time: its first certificate is one of an
    /// authority, lasts, and has its key there.
    #[must_use]
    pub fn of(secret: &'i TlsSecret, now: Timestamp) -> Option<Self> {
        let signer = secret.leaf()?;
        let is_usable = signer.is_authority && signer.not_after > now && !secret.deleting;
        is_usable.then(|| Self {
            signer,
            authorities: digest(secret),
            version: &secret.version,
            now,
        })
    }

    /// What is to be made for a cluster in Argo CD's namespace, if what there is is not good.
    pub(super) fn renews(&self, is: Option<&Credential>, cluster: &str, argocd: &str) -> Option<Recipe> {
        if is.is_some_and(|is| is.is_good(cluster, self)) {
            return None;
        }
        Some(Recipe::Client {
            common_name: cluster.to_owned(),
            organizations: Vec::new(),
            not_before: self.now.saturating_sub(SKEW).unwrap_or(self.now),
            not_after: self.now.saturating_add(LIFE).unwrap_or(Timestamp::MAX),
            authority: Authority {
                place: Place::new(argocd, names::CA_SECRET),
                version: self.version.into(),
            },
        })
    }
}
