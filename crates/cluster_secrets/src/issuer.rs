//! Client certificates with which Argo CD authenticates to argocd-agent's resource proxy: one for each cluster, issued by the CA
//! with which the principal verifies its agents.

use hub_state::cluster_secret::{Credential, hash_authorities};
use hub_state::model::TlsSecret;
use jiff::{SignedDuration, Timestamp};
use ocm::argocd_agent as names;
use pki::{Authority, Certificate, Recipe};
use primitives::object_ref::ObjectRef;

/// The lifetime of a certificate, the same as in argocd-pull-integration.
const CERTIFICATE_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

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
    pub fn from_secret(secret: &'i TlsSecret, now: Timestamp) -> Option<Self> {
        let signer = secret.leaf()?;
        let is_usable = signer.is_authority && signer.not_after > now && !secret.deleting;
        is_usable.then(|| Self {
            signer,
            authorities: hash_authorities(secret),
            version: &secret.version,
            now,
        })
    }

    /// Returns the recipe of a new certificate for a cluster in Argo CD's namespace, or `None` if the present one is valid.
    pub(super) fn renews(&self, credential: Option<&Credential>, cluster: &str, argocd: &str) -> Option<Recipe> {
        if credential.is_some_and(|credential| self.is_valid(credential, cluster)) {
            return None;
        }
        Some(Recipe::Client {
            common_name: cluster.to_owned(),
            validity: pki::validity(self.now, CERTIFICATE_LIFETIME),
            authority: Authority {
                object_ref: ObjectRef::new(argocd, names::CA_SECRET),
                version: self.version.into(),
            },
        })
    }

    /// Returns true if the certificate is for this cluster, issued and trusted by these CAs, and not due for renewal.
    fn is_valid(&self, credential: &Credential, cluster: &str) -> bool {
        let is_valid = |certificate: &Certificate| {
            let renewal = certificate.renewal(self.signer, self.now);
            renewal.is_none_or(|at| at > self.now)
                && *certificate.common_name == *cluster
                && certificate.is_issued_by(self.signer)
        };
        credential.certificate.as_ref().is_some_and(is_valid) && credential.authorities == self.authorities
    }
}
