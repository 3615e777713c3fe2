//! Builds and signs certificates.

use super::Error;
use super::certificate::{Certificate, TbsCertificate};
use super::key::{Key, NewKey, pem_text};
use super::signed::{self, PublicKey, Signed};
use der::asn1::{Any, AnyRef, BitStringRef, Ia5String, ObjectIdentifier, OctetString, SetOfVec};
use der::oid::AssociatedOid;
use der::oid::db::rfc4519::{COMMON_NAME, ORGANIZATION_NAME};
use der::oid::db::rfc5912::{ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH};
use der::{DateTime, Decode, Encode, Tag};
use jiff::Timestamp;
use rustls::pki_types::DnsName;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;
use x509_cert::Version;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName,
    SubjectKeyIdentifier,
};
use x509_cert::serial_number::SerialNumber;
use x509_cert::time::{Time, Validity};

pub(super) enum Purpose {
    /// A CA that signs leaf certificates only.
    Authority,
    /// A TLS server that may also be a client.
    Server,
    /// A TLS client.
    Client,
}

pub(super) struct Draft<'a> {
    pub(super) purpose: Purpose,
    pub(super) common_name: &'a str,
    pub(super) organizations: &'a [Box<str>],
    pub(super) names: &'a BTreeSet<Box<str>>,
    pub(super) validity: Range<Timestamp>,
}

static NO_NAMES: BTreeSet<Box<str>> = BTreeSet::new();

impl<'a> Draft<'a> {
    /// Returns a draft without organizations and alternative names.
    pub(super) fn new(purpose: Purpose, common_name: &'a str, validity: Range<Timestamp>) -> Self {
        Self {
            purpose,
            common_name,
            organizations: &[],
            names: &NO_NAMES,
            validity,
        }
    }

    /// Issues the certificate for a new key that signs itself, and returns both in PEM.
    pub(super) fn self_signed(&self, NewKey { key, pem }: NewKey) -> Result<(Vec<u8>, Vec<u8>), Error> {
        Ok((self.issue(key.public(), None, &key)?, pem))
    }

    /// Issues the certificate for a public key, in PEM, signed with the key of the issuer, or its own if there is none. It expires no
    /// later than the issuer.
    pub(super) fn issue(&self, public: &[u8], issuer: Option<&Certificate>, key: &Key) -> Result<Vec<u8>, Error> {
        let validity = self.validity(issuer)?;
        let names = self
            .names
            .iter()
            .map(|name| general_name(name))
            .collect::<Result<Vec<_>, _>>()?;
        let mut serial = [0; 16];
        aws_lc_rs::rand::fill(&mut serial).map_err(|_| Error::Crypto("generate a serial number"))?;
        // Verifiers reject a serial number of zero.
        serial[15] |= 1;
        let body = self
            .body(public, issuer, &serial, key.algorithm()?, validity, names)
            .map_err(unwritten)?;
        pem_text("CERTIFICATE", &sign(&body, key)?)
    }

    fn validity(&self, issuer: Option<&Certificate>) -> Result<Validity, Error> {
        let Range { start, end } = self.validity;
        let end = issuer.map_or(end, |issuer| issuer.not_after.min(end));
        let time = |timestamp: Timestamp| {
            let seconds = u64::try_from(timestamp.as_second()).map_err(|_| Error::Times)?;
            DateTime::from_unix_duration(Duration::from_secs(seconds))
                .map(Time::from)
                .map_err(|_| Error::Times)
        };
        if start.as_second() >= end.as_second() {
            return Err(Error::Times);
        }
        Ok(Validity::new(time(start)?, time(end)?))
    }

    fn body(
        &self,
        public: &[u8],
        issuer: Option<&Certificate>,
        serial: &[u8],
        algorithm: &[u8],
        validity: Validity,
        names: Vec<GeneralName>,
    ) -> der::Result<Vec<u8>> {
        let subject = self.subject()?;
        let authority = issuer.map(Certificate::signed).transpose()?.map(|(_, body)| body);
        let body = TbsCertificate {
            version: Version::V3,
            serial: SerialNumber::new(serial)?,
            algorithm: AnyRef::new(Tag::Sequence, algorithm)?,
            issuer: match &authority {
                Some(authority) => authority.subject,
                None => AnyRef::from_der(&subject)?,
            },
            validity,
            subject: AnyRef::from_der(&subject)?,
            key: AnyRef::from_der(public)?,
            issuer_id: None,
            subject_id: None,
            extensions: Some(self.extensions(public, authority.as_ref(), names)?),
        };
        body.to_der()
    }

    fn subject(&self) -> der::Result<Vec<u8>> {
        let organizations = self
            .organizations
            .iter()
            .map(|organization| (ORGANIZATION_NAME, &**organization));
        let parts = organizations
            .chain([(COMMON_NAME, self.common_name)])
            .map(|(oid, text)| {
                let value = Any::new(Tag::Utf8String, text.as_bytes())?;
                SetOfVec::try_from([AttributeTypeAndValue { oid, value }])
            });
        parts.collect::<der::Result<Vec<_>>>()?.to_der()
    }

    fn extensions(
        &self,
        public: &[u8],
        issuer: Option<&TbsCertificate<'_>>,
        names: Vec<GeneralName>,
    ) -> der::Result<Vec<Extension>> {
        let key_id = key_identifier(public)?;
        let authority = match issuer {
            Some(issuer) => signed::extension(issuer.extensions.as_deref().unwrap_or_default())?,
            None => Some(key_id.clone()),
        };
        let (usage, purposes): (_, &[ObjectIdentifier]) = match self.purpose {
            Purpose::Authority => (KeyUsages::KeyCertSign | KeyUsages::CRLSign, &[]),
            Purpose::Server => (
                KeyUsages::DigitalSignature.into(),
                &[ID_KP_SERVER_AUTH, ID_KP_CLIENT_AUTH],
            ),
            Purpose::Client => (KeyUsages::DigitalSignature.into(), &[ID_KP_CLIENT_AUTH]),
        };
        let is_authority = purposes.is_empty();
        let constraints = BasicConstraints {
            ca: is_authority,
            path_len_constraint: is_authority.then_some(0),
        };
        let mut extensions = vec![extension(true, &constraints)?, extension(true, &KeyUsage(usage))?];
        if !purposes.is_empty() {
            extensions.push(extension(false, &ExtendedKeyUsage(purposes.to_vec()))?);
        }
        extensions.push(extension(false, &key_id)?);
        if let Some(SubjectKeyIdentifier(key_identifier)) = authority {
            let identifier = AuthorityKeyIdentifier {
                key_identifier: Some(key_identifier),
                ..AuthorityKeyIdentifier::default()
            };
            extensions.push(extension(false, &identifier)?);
        }
        if !names.is_empty() {
            extensions.push(extension(false, &SubjectAltName(names))?);
        }
        Ok(extensions)
    }
}

/// Signs the body of a certificate or of a certificate request, and returns both in DER.
pub(super) fn sign(body: &[u8], key: &Key) -> Result<Vec<u8>, Error> {
    let signature = key.sign(body)?;
    let signed = Signed {
        body: AnyRef::from_der(body).map_err(unwritten)?,
        algorithm: AnyRef::new(Tag::Sequence, key.algorithm()?).map_err(unwritten)?,
        signature: BitStringRef::from_bytes(&signature).map_err(unwritten)?,
    };
    signed.to_der().map_err(unwritten)
}

fn unwritten(_: der::Error) -> Error {
    Error::Crypto("encode or sign a certificate")
}

fn extension<T: AssociatedOid + Encode>(critical: bool, value: &T) -> der::Result<Extension> {
    Ok(Extension {
        extn_id: T::OID,
        critical,
        extn_value: OctetString::new(value.to_der()?)?,
    })
}

/// Returns the identifier of a key: a part of its SHA-256, as in RFC 7093 and newer versions of Go.
fn key_identifier(public: &[u8]) -> der::Result<SubjectKeyIdentifier> {
    let hash = Sha256::digest(PublicKey::from_der(public)?.bits());
    Ok(SubjectKeyIdentifier(OctetString::new(&hash[..20])?))
}

/// Returns a name as certificates contain it: a DNS name, or an IP address in its canonical form. `None` if no certificate can
/// contain it.
pub fn alternative_name(name: &str) -> Option<Box<str>> {
    signed::name(&general_name(name).ok()?)
}

fn general_name(name: &str) -> Result<GeneralName, Error> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(address.to_canonical().into());
    }
    let unnamed = || Error::Name(name.into());
    // A wildcard matches the first label only.
    DnsName::try_from(name.strip_prefix("*.").unwrap_or(name)).map_err(|_| unnamed())?;
    Ok(GeneralName::DnsName(Ia5String::new(name).map_err(|_| unnamed())?))
}
