//! The certificate authority: its Secret, and the rotation from one CA to the next.

use super::Error;
use super::certificate::{Certificate, to_pem};
use super::issue::{Draft, Purpose};
use super::key::{Key, NewKey};
use aws_lc_rs::rsa::KeySize;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use primitives::object_ref::ObjectRef;
use std::collections::BTreeMap;
use std::ops::Range;

/// The key of the certificates in a Secret, as in `kubernetes.io/tls`. In the CA's Secret, the signing certificate is first,
/// followed by all others that are still trusted.
pub const TLS_CERTIFICATE: &str = "tls.crt";

/// The key of the private key of the first certificate in a Secret.
pub const TLS_KEY: &str = "tls.key";

/// The key of the private key of the next CA in the CA's Secret: its certificate is trusted but does not sign yet.
pub const NEXT_KEY: &str = "next.key";

/// Returns the common name of a CA with this start of validity, in the format of argocd-pull-integration.
pub fn authority_name(not_before: Timestamp) -> String {
    format!("argocd-agent-ca@{}", not_before.as_second())
}

/// The result of a recipe: raw bytes by their keys in a Secret's `data`; `None` removes the key.
pub(super) type Made = BTreeMap<&'static str, Option<Vec<u8>>>;

/// The version of a CA's Secret on which a decision is based.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The namespace and name of the Secret.
    pub object_ref: ObjectRef,
    /// The resource version of the Secret.
    pub version: Box<str>,
}

/// The content of a CA's Secret while a recipe is carried out. It is never shown.
pub struct AuthorityData {
    pub(super) bundle: Vec<u8>,
    key: Vec<u8>,
    next: Option<Vec<u8>>,
}

impl AuthorityData {
    /// Reads the `data` of the Secret.
    ///
    /// # Errors
    /// Returns an error if `tls.crt` or `tls.key` is missing. Their content is validated when they are used.
    pub fn new(mut data: BTreeMap<String, ByteString>) -> Result<Self, Error> {
        let mut take = |part| data.remove(part).map(|ByteString(bytes)| bytes);
        Ok(Self {
            // The bundle is published as trusted CAs.
            bundle: take(TLS_CERTIFICATE)
                .map(Certificate::without_keys)
                .ok_or_else(|| Error::Missing.within(TLS_CERTIFICATE))?,
            key: take(TLS_KEY).ok_or_else(|| Error::Missing.within(TLS_KEY))?,
            next: take(NEXT_KEY),
        })
    }

    fn certificates(&self) -> Result<Vec<Certificate>, Error> {
        Certificate::read_all(&self.bundle).map_err(|error| error.within(TLS_CERTIFICATE))
    }

    /// Returns the certificate that signs, and its key.
    pub(super) fn signer(&self) -> Result<(Certificate, Key), Error> {
        let certificate = self.certificates()?.swap_remove(0);
        if !certificate.is_authority {
            return Err(Error::NotAnAuthority.within(TLS_CERTIFICATE));
        }
        let key = Key::from_pem(&self.key).map_err(|error| error.within(TLS_KEY))?;
        if !certificate.has_key(&key.id()) {
            return Err(Error::OtherKey.within(TLS_KEY));
        }
        Ok((certificate, key))
    }
}

/// Creates a certificate of a new CA and its key, in PEM.
pub(super) fn create(common_name: &str, validity: &Range<Timestamp>) -> Result<(Vec<u8>, Vec<u8>), Error> {
    Draft::new(Purpose::Authority, common_name, validity.clone()).self_signed(NewKey::rsa(KeySize::Rsa3072)?)
}

pub(super) fn announce(
    authority: &AuthorityData,
    common_name: &str,
    validity: &Range<Timestamp>,
) -> Result<Made, Error> {
    if authority.next.is_some() {
        return Err(Error::AlreadyNext.within(NEXT_KEY));
    }
    let mut bundle = to_pem(&authority.certificates()?)?;
    let (certificate, key) = create(common_name, validity)?;
    bundle.extend(certificate);
    Ok(BTreeMap::from([(TLS_CERTIFICATE, Some(bundle)), (NEXT_KEY, Some(key))]))
}

pub(super) fn promote(authority: &AuthorityData) -> Result<Made, Error> {
    let mut certificates = authority.certificates()?;
    let key = authority.next.as_deref();
    let key = key.ok_or_else(|| Error::Missing.within(NEXT_KEY))?;
    let next = position(&certificates, key)?;
    certificates[..=next].rotate_right(1);
    Ok(BTreeMap::from([
        (TLS_CERTIFICATE, Some(to_pem(&certificates)?)),
        (TLS_KEY, Some(key.to_vec())),
        (NEXT_KEY, None),
    ]))
}

pub(super) fn drop_others(authority: &AuthorityData) -> Result<Made, Error> {
    let certificates = authority.certificates()?;
    // Without a valid signer, the other CAs stay trusted.
    let mut trusted = vec![authority.signer()?.0];
    if let Some(next) = &authority.next {
        trusted.push(certificates[position(&certificates, next)?].clone());
    }
    Ok(BTreeMap::from([(TLS_CERTIFICATE, Some(to_pem(&trusted)?))]))
}

/// Returns the position of the CA with the next key, which is never the signing one.
fn position(certificates: &[Certificate], next_key: &[u8]) -> Result<usize, Error> {
    let key = Key::from_pem(next_key).map_err(|error| error.within(NEXT_KEY))?;
    let mut others = certificates.iter().enumerate().skip(1);
    let next = others.find(|(_, certificate)| certificate.is_authority && certificate.has_key(&key.id()));
    next.map(|(position, _)| position)
        .ok_or_else(|| Error::NotAnnounced.within(NEXT_KEY))
}
