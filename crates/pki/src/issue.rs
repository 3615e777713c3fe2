//! Builds and signs certificates.

use super::Error;
use super::certificate::{Certificate, TbsCertificate};
use super::key::{Key, NewKey, pem_text};
use super::signed::{PublicKey, Signed};
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
        let algorithm = key.algorithm()?;
        let mut serial = [0; 16];
        aws_lc_rs::rand::fill(&mut serial).map_err(|_| Error::Crypto("generate a serial number"))?;
        // Verifiers reject a serial number of zero.
        serial[15] |= 1;
        let unwritten = |_| Error::Crypto("encode or sign a certificate");
        let body = self
            .body(public, issuer, &serial, algorithm, validity, names)
            .map_err(unwritten)?;
        let signature = key.sign(&body)?;
        let certificate = signed(&body, algorithm, &signature).map_err(unwritten)?;
        pem_text("CERTIFICATE", &certificate)
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
        let signed = issuer.map(Certificate::signed).transpose()?;
        let authority = signed
            .map(|signed| signed.body.decode_as::<TbsCertificate>())
            .transpose()?;
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
            extensions: Some(self.extensions(public, issuer, names)?),
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
        issuer: Option<&Certificate>,
        names: Vec<GeneralName>,
    ) -> der::Result<Vec<Extension>> {
        let key_id = key_identifier(public)?;
        let authority = match issuer {
            Some(certificate) => certificate.key_identifier()?.map(|identifier| identifier.0),
            None => Some(key_id.0.clone()),
        };
        let is_authority = matches!(self.purpose, Purpose::Authority);
        let usage = match self.purpose {
            Purpose::Authority => KeyUsages::KeyCertSign | KeyUsages::CRLSign,
            Purpose::Server | Purpose::Client => KeyUsages::DigitalSignature.into(),
        };
        let purposes: &[ObjectIdentifier] = match self.purpose {
            Purpose::Authority => &[],
            Purpose::Server => &[ID_KP_SERVER_AUTH, ID_KP_CLIENT_AUTH],
            Purpose::Client => &[ID_KP_CLIENT_AUTH],
        };
        let constraints = BasicConstraints {
            ca: is_authority,
            path_len_constraint: is_authority.then_some(0),
        };
        let mut extensions = vec![extension(true, &constraints)?, extension(true, &KeyUsage(usage))?];
        if !purposes.is_empty() {
            extensions.push(extension(false, &ExtendedKeyUsage(purposes.to_vec()))?);
        }
        extensions.push(extension(false, &key_id)?);
        if authority.is_some() {
            let identifier = AuthorityKeyIdentifier {
                key_identifier: authority,
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

fn signed(body: &[u8], algorithm: &[u8], signature: &[u8]) -> der::Result<Vec<u8>> {
    let signed = Signed {
        body: AnyRef::from_der(body)?,
        algorithm: AnyRef::new(Tag::Sequence, algorithm)?,
        signature: BitStringRef::from_bytes(signature)?,
    };
    signed.to_der()
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

fn general_name(name: &str) -> Result<GeneralName, Error> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(address.to_canonical().into());
    }
    let unnamed = || Error::Name(name.into());
    // A wildcard matches the first label only.
    DnsName::try_from(name.strip_prefix("*.").unwrap_or(name)).map_err(|_| unnamed())?;
    Ok(GeneralName::DnsName(Ia5String::new(name).map_err(|_| unnamed())?))
}
