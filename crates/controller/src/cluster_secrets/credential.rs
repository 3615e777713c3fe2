//! Client certificates with which Argo CD authenticates to argocd-agent's resource proxy: one for each cluster, issued by the CA
//! by which the principal verifies its agents.

use crate::model::TlsSecret;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use ocm::argocd_agent as names;
use pki;
use pki::{Authority, Certificate, Recipe};
use primitives::object_ref::ObjectRef;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// The time by which a certificate's validity starts in the past, because clocks differ.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// The lifetime of a certificate, the same as in argocd-pull-integration.
const CERTIFICATE_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The known facts of Argo CD's client credentials, without secret values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credential {
    /// The client certificate, if the Secret has its key and verification is enabled.
    certificate: Option<Certificate>,
    /// The hash of the CAs by which Argo CD verifies the resource proxy.
    authorities: [u8; 32],
    /// True if the configuration has a user name as well, as argocd-pull-integration and Red Hat ACM write it.
    pub(super) has_user: bool,
}

impl Credential {
    /// Reads the credential from the value of `config` in a Secret; returns the default for an invalid value.
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

    /// Returns the renewal time of the certificate.
    pub(super) fn renews_at(&self) -> Option<Timestamp> {
        Some(self.certificate.as_ref()?.renews_at())
    }

    /// Returns true if the signing CA has issued the certificate.
    pub(super) fn is_issued_by(&self, ca: &TlsSecret) -> bool {
        let pair = self.certificate.as_ref().zip(ca.certificates.first());
        pair.is_some_and(|(certificate, signer)| certificate.is_issued_by(signer))
    }

    /// Returns true if the credential trusts exactly these CAs.
    pub(super) fn trusts(&self, ca: &TlsSecret) -> bool {
        self.authorities == digest(ca)
    }

    /// Returns true if the certificate is for this cluster, issued and trusted by these CAs, and not due for renewal.
    fn is_valid(&self, cluster: &str, issuer: &Issuer<'_>) -> bool {
        let is_valid = |certificate: &Certificate| {
            let renewal = certificate.renewal(issuer.signer);
            renewal.is_none_or(|at| at > issuer.now)
                && *certificate.common_name == *cluster
                && certificate.is_issued_by(issuer.signer)
        };
        self.certificate.as_ref().is_some_and(is_valid) && self.authorities == issuer.authorities
    }
}

/// Returns the hash of all CAs of a Secret.
fn digest(ca: &TlsSecret) -> [u8; 32] {
    Sha256::digest(ca.text.as_bytes()).into()
}

/// The CA that issues client certificates for Argo CD, and the current time.
#[derive(Clone, Copy, Debug)]
pub struct Issuer<'i> {
    signer: &'i Certificate,
    /// The hash of all trusted CAs, one of which is the signer.
    authorities: [u8; 32],
    /// The resource version of the CA's Secret.
    version: &'i str,
    now: Timestamp,
}

impl<'i> Issuer<'i> {
    /// Returns the CA of the Secret [`names::CA_SECRET`] if it can sign now: its first certificate is a CA certificate, has not
    /// expired, and its key is in the Secret.
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

    /// Returns the recipe of a new certificate for a cluster in Argo CD's namespace, or `None` if the present one is valid.
    pub(super) fn renews(&self, is: Option<&Credential>, cluster: &str, argocd: &str) -> Option<Recipe> {
        if is.is_some_and(|is| is.is_valid(cluster, self)) {
            return None;
        }
        Some(Recipe::Client {
            common_name: cluster.to_owned(),
            organizations: Vec::new(),
            not_before: self.now.saturating_sub(CLOCK_SKEW).unwrap_or(self.now),
            not_after: self.now.saturating_add(CERTIFICATE_LIFETIME).unwrap_or(Timestamp::MAX),
            authority: Authority {
                object_ref: ObjectRef::new(argocd, names::CA_SECRET),
                version: self.version.into(),
            },
        })
    }
}
