//! The authority: its Secret, and how one follows another.

use super::Error;
use super::certificate::Certificate;
use super::issue::{Draft, Issuer, Purpose};
use super::key::{Key, KeyId, NewKey, pem_text};
use crate::controller::seen::Place;
use aws_lc_rs::rsa::KeySize;
use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Under which key a Secret has certificates, as `kubernetes.io/tls` says. The authority's has its own first, then all others that are
/// still trusted.
pub const TLS_CERTIFICATE: &str = "tls.crt";

/// Under which key a Secret has the private key of the first certificate.
pub const TLS_KEY: &str = "tls.key";

/// Under which key the authority's Secret has the private key of a certificate that is trusted, but does not sign yet.
pub const NEXT_KEY: &str = "next.key";

/// The common name of an authority that begins then, as argocd-pull-integration writes it.
#[must_use]
pub fn authority_name(not_before: Timestamp) -> String {
    format!("argocd-agent-ca@{}", not_before.as_second())
}

/// What is made: by its key in a Secret's `data`, bytes that are not yet in base64; `None` removes what is there.
pub(super) type Made = BTreeMap<&'static str, Option<Vec<u8>>>;

/// In which form of an authority's Secret something was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Where the Secret is.
    pub place: Place,
    /// Its resourceVersion.
    pub version: Box<str>,
}

/// An authority's Secret when something is made with it. It is never shown.
pub struct AuthorityData {
    bundle: Vec<u8>,
    key: Vec<u8>,
    next: Option<Vec<u8>>,
}

impl AuthorityData {
    /// The `data` of the Secret.
    ///
    /// # Errors
    /// That it has no `tls.crt` or no `tls.key`. What they are is seen when they are used.
    pub fn new(mut data: BTreeMap<String, ByteString>) -> Result<Self, Error> {
        let mut take = |part| data.remove(part).map(|ByteString(bytes)| bytes);
        Ok(Self {
            // It is what others are told to trust.
            bundle: take(TLS_CERTIFICATE)
                .map(Certificate::without_keys)
                .ok_or_else(|| Error::Missing.within(TLS_CERTIFICATE))?,
            key: take(TLS_KEY).ok_or_else(|| Error::Missing.within(TLS_KEY))?,
            next: take(NEXT_KEY),
        })
    }

    /// `tls.crt`.
    pub(super) fn bundle(&self) -> &[u8] {
        &self.bundle
    }

    fn certificates(&self) -> Result<Vec<Certificate>, Error> {
        Certificate::read_all(&self.bundle).map_err(|error| error.within(TLS_CERTIFICATE))
    }

    fn next(&self) -> Result<&[u8], Error> {
        self.next.as_deref().ok_or_else(|| Error::Missing.within(NEXT_KEY))
    }

    pub(super) fn signer(&self) -> Result<Signer, Error> {
        let certificate = self.certificates()?.swap_remove(0);
        if !certificate.is_authority {
            return Err(Error::NotAnAuthority.within(TLS_CERTIFICATE));
        }
        let key = Key::read(&self.key).map_err(|error| error.within(TLS_KEY))?;
        if !certificate.has_key(&key.id()) {
            return Err(Error::OtherKey.within(TLS_KEY));
        }
        Ok(Signer { certificate, key })
    }
}

/// An authority that can sign.
pub(super) struct Signer {
    certificate: Certificate,
    key: Key,
}

impl Signer {
    pub(super) fn sign(&self, draft: &Draft<'_>, public: &[u8]) -> Result<Vec<u8>, Error> {
        let issuer = Issuer {
            certificate: Some(&self.certificate),
            key: &self.key,
        };
        draft.issue(public, &issuer)
    }
}

/// A certificate of a new authority, and its key, in PEM.
pub(super) fn create(
    common_name: &str,
    not_before: Timestamp,
    not_after: Timestamp,
) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let key = NewKey::rsa(KeySize::Rsa3072)?;
    let draft = Draft {
        purpose: Purpose::Authority,
        common_name,
        organizations: &[],
        names: &BTreeSet::new(),
        not_before,
        not_after,
    };
    let issuer = Issuer {
        certificate: None,
        key: &key.key,
    };
    Ok((draft.issue(key.key.public(), &issuer)?, key.pem))
}

/// `Recipe::NextAuthority`.
pub(super) fn announce(
    authority: &AuthorityData,
    common_name: &str,
    not_before: Timestamp,
    not_after: Timestamp,
) -> Result<Made, Error> {
    if authority.next.is_some() {
        return Err(Error::AlreadyNext.within(NEXT_KEY));
    }
    let mut bundle = bundle(&authority.certificates()?)?;
    let (certificate, key) = create(common_name, not_before, not_after)?;
    bundle.extend(certificate);
    Ok(BTreeMap::from([(TLS_CERTIFICATE, Some(bundle)), (NEXT_KEY, Some(key))]))
}

/// `Recipe::Promote`.
pub(super) fn promote(authority: &AuthorityData) -> Result<Made, Error> {
    let mut certificates = authority.certificates()?;
    let key = authority.next()?;
    let next = position(&certificates, &next_id(key)?)?;
    certificates[..=next].rotate_right(1);
    Ok(BTreeMap::from([
        (TLS_CERTIFICATE, Some(bundle(&certificates)?)),
        (TLS_KEY, Some(key.to_vec())),
        (NEXT_KEY, None),
    ]))
}

/// `Recipe::Drop`.
pub(super) fn drop_others(authority: &AuthorityData) -> Result<Made, Error> {
    let certificates = authority.certificates()?;
    // What does not sign is no reason to trust nobody else.
    let mut kept = vec![authority.signer()?.certificate];
    if let Some(next) = &authority.next {
        kept.push(certificates[position(&certificates, &next_id(next)?)?].clone());
    }
    Ok(BTreeMap::from([(TLS_CERTIFICATE, Some(bundle(&kept)?))]))
}

fn next_id(key: &[u8]) -> Result<KeyId, Error> {
    let key = Key::read(key).map_err(|error| error.within(NEXT_KEY))?;
    Ok(key.id())
}

/// Where the authority with the next key is; it is not the one that signs.
fn position(certificates: &[Certificate], next: &KeyId) -> Result<usize, Error> {
    let is_next = |certificate: &Certificate| certificate.is_authority && certificate.has_key(next);
    let found = certificates.iter().skip(1).position(is_next);
    found
        .map(|found| found.saturating_add(1))
        .ok_or_else(|| Error::NotAnnounced.within(NEXT_KEY))
}

fn bundle(certificates: &[Certificate]) -> Result<Vec<u8>, Error> {
    let texts = certificates
        .iter()
        .map(|certificate| pem_text("CERTIFICATE", certificate.der()));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.concat())
}
