//! Reads certificates.

use super::Error;
use super::key::{KeyId, pem_text};
use super::signed::{self, Signed, Subject};
use der::asn1::{AnyRef, BitStringRef, ObjectIdentifier};
use der::oid::db::rfc5280::ANY_EXTENDED_KEY_USAGE;
use der::oid::db::rfc5912::ID_KP_SERVER_AUTH;
use der::{Decode, Encode, Sequence};
use jiff::{SignedDuration, Timestamp};
use memchr::memmem;
use primitives::hash::hex;
use primitives::time_math;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use x509_cert::Version;
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage};
use x509_cert::serial_number::SerialNumber;
use x509_cert::time::{Time, Validity};

/// The public facts of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The common name of the subject; empty if there is none. Of several, the last one, as in Go.
    pub common_name: Box<str>,
    /// The organizations of the subject, in its order; Go writes several in its own order.
    pub organizations: Box<[Box<str>]>,
    /// The alternative names: DNS names, and IP addresses as text.
    pub names: BTreeSet<Box<str>>,
    /// The start of validity, to the second.
    pub not_before: Timestamp,
    /// The end of validity, to the second.
    pub not_after: Timestamp,
    /// True if it is a CA certificate.
    pub is_authority: bool,
    /// True if a TLS server may use it. A certificate without restrictions may be used for everything, as in Go.
    pub serves: bool,
    key: KeyId,
    fingerprint: Box<str>,
    der: Box<[u8]>,
}

/// The body of a certificate (TBSCertificate).
#[derive(Sequence)]
pub(super) struct TbsCertificate<'a> {
    #[asn1(context_specific = "0", default = "Default::default")]
    pub(super) version: Version,
    pub(super) serial: SerialNumber,
    pub(super) algorithm: AnyRef<'a>,
    // Unparsed: issuers are compared by their bytes.
    pub(super) issuer: AnyRef<'a>,
    pub(super) validity: Validity,
    pub(super) subject: AnyRef<'a>,
    pub(super) key: AnyRef<'a>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true")]
    pub(super) issuer_id: Option<BitStringRef<'a>>,
    #[asn1(context_specific = "2", tag_mode = "IMPLICIT", optional = "true")]
    pub(super) subject_id: Option<BitStringRef<'a>>,
    #[asn1(context_specific = "3", optional = "true")]
    pub(super) extensions: Option<Extensions>,
}

impl Certificate {
    /// Reads all certificates of a PEM text, in order. There is at least one.
    ///
    /// # Errors
    /// Returns an error if there is none, or if one of them cannot be read: a partially read bundle would be mistaken for a
    /// smaller one.
    pub fn read_all(pem: &[u8]) -> Result<Vec<Self>, Error> {
        let mut certificates = Vec::new();
        for block in CertificateDer::pem_slice_iter(pem) {
            let block = block.map_err(|_| Error::Pem)?;
            let certificate = Self::from_der(block.as_ref());
            let unread =
                |error: der::Error| Error::Certificate(certificates.len().saturating_add(1), error.to_string().into());
            certificates.push(certificate.map_err(unread)?);
        }
        if certificates.is_empty() {
            return Err(Error::NoCertificate);
        }
        Ok(certificates)
    }

    /// Returns a PEM text of certificates without any private key, which may be published: if there is a key, only the
    /// certificates remain, or nothing if they cannot be read.
    pub fn without_keys(pem: Vec<u8>) -> Vec<u8> {
        if memmem::find(&pem, b"PRIVATE KEY").is_none() {
            return pem;
        }
        Self::read_all(&pem).and_then(|all| to_pem(&all)).unwrap_or_default()
    }

    fn from_der(bytes: &[u8]) -> der::Result<Self> {
        let signed = Signed::from_der(bytes)?;
        let body: TbsCertificate = signed.body.decode_as()?;
        if body.algorithm != signed.algorithm {
            // RFC 5280, 4.1.1.2. Go rejects such a certificate too.
            return Err(der::ErrorKind::Failed.into());
        }
        let extensions = body.extensions.as_deref().unwrap_or_default();
        let constraints: Option<BasicConstraints> = signed::extension(extensions)?;
        let usage: Option<KeyUsage> = signed::extension(extensions)?;
        let purposes: Option<ExtendedKeyUsage> = signed::extension(extensions)?;
        let fits = |purpose: &ObjectIdentifier| [ID_KP_SERVER_AUTH, ANY_EXTENDED_KEY_USAGE].contains(purpose);
        let subject = Subject::from_name(body.subject)?;
        Ok(Self {
            common_name: subject.common_name,
            organizations: subject.organizations,
            names: signed::names(extensions)?,
            not_before: timestamp(body.validity.not_before),
            not_after: timestamp(body.validity.not_after),
            is_authority: constraints.is_some_and(|constraints| constraints.ca)
                && usage.is_none_or(|usage| usage.key_cert_sign()),
            serves: purposes.is_none_or(|purposes| purposes.0.iter().any(fits)),
            key: KeyId::new(&body.key.to_der()?),
            fingerprint: hex(&Sha256::digest(bytes)).into(),
            der: bytes.into(),
        })
    }

    /// Returns true if that CA has signed it with the key of that certificate. Validity dates are ignored. If the names match,
    /// the signature is verified, which takes about 0.1 ms.
    pub fn is_issued_by(&self, authority: &Self) -> bool {
        let (Ok((signed, body)), Ok((_, theirs))) = (self.signed(), authority.signed()) else {
            return false;
        };
        authority.is_authority && body.issuer == theirs.subject && signed.is_signed_by(theirs.key)
    }

    /// Returns true if the certificate is for this key.
    pub fn has_key(&self, key: &KeyId) -> bool {
        self.key == *key
    }

    /// Returns the renewal time: 80 % of the lifetime.
    pub fn renews_at(&self) -> Timestamp {
        let life = self.not_after.duration_since(self.not_before).max(SignedDuration::ZERO);
        let after = SignedDuration::from_secs(life.as_secs().saturating_mul(4) / 5);
        time_math::after(self.not_before, after)
    }

    /// Returns the time when a new certificate of its issuer should replace it. Returns `None` if it already lasts as long as the
    /// issuer's: a new one would expire no later. A certificate that is not valid yet is due: the clock was ahead when it was issued.
    pub fn renewal(&self, issuer: &Self, now: Timestamp) -> Option<Timestamp> {
        if self.not_before > now {
            return Some(Timestamp::MIN);
        }
        (self.not_after < issuer.not_after).then(|| self.renews_at())
    }

    /// Returns the SHA-256 of the certificate in DER, in hex.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the signed structure, and its body.
    pub(super) fn signed(&self) -> der::Result<(Signed<'_>, TbsCertificate<'_>)> {
        let signed = Signed::from_der(&self.der)?;
        Ok((signed, signed.body.decode_as()?))
    }
}

/// Writes certificates as a PEM text.
pub(super) fn to_pem(certificates: &[Certificate]) -> Result<Vec<u8>, Error> {
    let texts = certificates
        .iter()
        .map(|certificate| pem_text("CERTIFICATE", &certificate.der));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Converts a time. The date for "no expiry" in certificates is one day after the last representable one.
fn timestamp(time: Time) -> Timestamp {
    let seconds = i64::try_from(time.to_unix_duration().as_secs()).ok();
    seconds
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .unwrap_or(Timestamp::MAX)
}
