//! A certificate that somebody has.

use super::Error;
use super::key::{KeyId, pem_text};
use super::signed::{self, Signed, Subject};
use crate::generate::names::hex;
use crate::time_math;
use der::asn1::{AnyRef, BitStringRef, ObjectIdentifier};
use der::oid::db::rfc5280::ANY_EXTENDED_KEY_USAGE;
use der::oid::db::rfc5912::{ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH};
use der::{Decode, Encode, Sequence};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use memchr::memmem;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt;
use x509_cert::Version;
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectKeyIdentifier};
use x509_cert::serial_number::SerialNumber;
use x509_cert::time::{Time, Validity};

/// What is known of a certificate. All of it is public.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The common name of its subject; empty if it has none. Of several, the last one, as Go has it.
    pub common_name: Box<str>,
    /// The organizations of its subject, in its order; Go writes several in an order of its own.
    pub organizations: Box<[Box<str>]>,
    /// Whom else it is of: DNS names, and IP addresses as text.
    pub names: BTreeSet<Box<str>>,
    /// Before this it is not valid, to the second.
    pub not_before: Timestamp,
    /// After this it is not valid any more, to the second.
    pub not_after: Timestamp,
    /// Its serial number in hex, without zeros in front, as Go's `%x` prints it.
    pub serial: Box<str>,
    /// Whether it may sign others.
    pub is_authority: bool,
    /// Whether a TLS server may use it. One that restricts nothing may be used for everything, as in Go.
    pub serves: bool,
    /// Whether a TLS client may use it.
    pub is_client: bool,
    key: KeyId,
    fingerprint: Box<str>,
    der: Box<[u8]>,
}

/// The body of a certificate (TBSCertificate).
#[derive(Sequence)]
pub(super) struct Body<'a> {
    #[asn1(context_specific = "0", default = "Default::default")]
    pub(super) version: Version,
    pub(super) serial: SerialNumber,
    pub(super) algorithm: AnyRef<'a>,
    // As they are written: whoever looks for an issuer compares the bytes.
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
    /// Reads every certificate of a PEM text, in its order. There is at least one.
    ///
    /// # Errors
    /// That one of them cannot be read, or that there is none: what is only half understood is not taken for less than it is.
    pub fn read_all(pem: &[u8]) -> Result<Vec<Self>, Error> {
        let mut certificates = Vec::new();
        for block in CertificateDer::pem_slice_iter(pem) {
            let block = block.map_err(|_| Error::Pem)?;
            let certificate = Self::read(block.as_ref());
            let unread =
                |error: der::Error| Error::Certificate(certificates.len().saturating_add(1), error.to_string().into());
            certificates.push(certificate.map_err(unread)?);
        }
        if certificates.is_empty() {
            return Err(Error::NoCertificate);
        }
        Ok(certificates)
    }

    /// Returns a PEM text of certificates without any private key, which may be shown to everybody: where there is one, only the
    /// certificates remain, or nothing if they cannot be read.
    #[must_use]
    pub fn without_keys(pem: Vec<u8>) -> Vec<u8> {
        if memmem::find(&pem, b"PRIVATE KEY").is_none() {
            return pem;
        }
        let certificates = Self::read_all(&pem).unwrap_or_default();
        let texts = certificates
            .iter()
            .map(|certificate| pem_text("CERTIFICATE", &certificate.der));
        texts.collect::<Result<Vec<_>, _>>().unwrap_or_default().concat()
    }

    fn read(bytes: &[u8]) -> der::Result<Self> {
        let signed = Signed::from_der(bytes)?;
        let body: Body = signed.body.decode_as()?;
        if body.algorithm != signed.algorithm {
            // RFC 5280, 4.1.1.2. Go does not read such a one either.
            return Err(der::ErrorKind::Failed.into());
        }
        let extensions = body.extensions.as_deref().unwrap_or_default();
        let constraints: Option<BasicConstraints> = signed::extension(extensions)?;
        let usage: Option<KeyUsage> = signed::extension(extensions)?;
        let purposes: Option<ExtendedKeyUsage> = signed::extension(extensions)?;
        let is_for = |purpose: ObjectIdentifier| {
            let fits = |one: &ObjectIdentifier| *one == purpose || *one == ANY_EXTENDED_KEY_USAGE;
            purposes.as_ref().is_none_or(|purposes| purposes.0.iter().any(fits))
        };
        let subject = Subject::read(body.subject)?;
        Ok(Self {
            common_name: subject.common_name,
            organizations: subject.organizations,
            names: signed::names(extensions)?,
            not_before: timestamp(body.validity.not_before),
            not_after: timestamp(body.validity.not_after),
            serial: serial(&body.serial),
            is_authority: constraints.is_some_and(|constraints| constraints.ca)
                && usage.is_none_or(|usage| usage.key_cert_sign()),
            serves: is_for(ID_KP_SERVER_AUTH),
            is_client: is_for(ID_KP_CLIENT_AUTH),
            key: KeyId::new(&body.key.to_der()?),
            fingerprint: hex(&Sha256::digest(bytes)).into(),
            der: bytes.into(),
        })
    }

    /// Whether that authority has signed it, with the key of that certificate. Neither one's dates count. If the names fit, the
    /// signature is checked, which takes about 0.1 ms.
    #[must_use]
    pub fn is_issued_by(&self, authority: &Self) -> bool {
        let (Ok(signed), Ok(theirs)) = (self.signed(), authority.signed()) else {
            return false;
        };
        let (Ok(body), Ok(theirs)) = (signed.body.decode_as::<Body>(), theirs.body.decode_as::<Body>()) else {
            return false;
        };
        authority.is_authority && body.issuer == theirs.subject && signed.is_signed_by(theirs.key)
    }

    /// Whether this is its key.
    #[must_use]
    pub fn has_key(&self, key: &KeyId) -> bool {
        self.key == *key
    }

    /// When 80 % of its life are over: from then on it is to be renewed.
    #[must_use]
    pub fn renews_at(&self) -> Timestamp {
        let life = self.not_after.duration_since(self.not_before).max(SignedDuration::ZERO);
        let after = SignedDuration::from_secs(life.as_secs().saturating_mul(4) / 5);
        time_math::after(self.not_before, after)
    }

    /// The SHA-256 of the certificate in DER, in hex.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The certificate in DER.
    pub(super) fn der(&self) -> &[u8] {
        &self.der
    }

    pub(super) fn signed(&self) -> der::Result<Signed<'_>> {
        Signed::from_der(&self.der)
    }

    /// By what others name its key (SubjectKeyIdentifier), if it says so.
    pub(super) fn key_identifier(&self) -> der::Result<Option<SubjectKeyIdentifier>> {
        let body: Body = self.signed()?.body.decode_as()?;
        signed::extension(body.extensions.as_deref().unwrap_or_default())
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Certificate");
        shown.field("common_name", &self.common_name);
        shown
            .field("organizations", &self.organizations)
            .field("names", &self.names);
        shown
            .field("not_before", &self.not_before)
            .field("not_after", &self.not_after);
        shown
            .field("serial", &self.serial)
            .field("is_authority", &self.is_authority);
        shown.field("serves", &self.serves).field("is_client", &self.is_client);
        shown.field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

/// A date that has no end, as certificates write it, is a day after the last one that we know.
fn timestamp(time: Time) -> Timestamp {
    let seconds = i64::try_from(time.to_unix_duration().as_secs()).ok();
    seconds
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .unwrap_or(Timestamp::MAX)
}

fn serial(serial: &SerialNumber) -> Box<str> {
    let digits = hex(serial.as_bytes());
    match digits.trim_start_matches('0') {
        "" => "0".into(),
        digits => digits.into(),
    }
}
