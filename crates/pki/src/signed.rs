//! The signed structure that certificates and certificate requests share.

use der::asn1::{Any, AnyRef, BitStringRef, ObjectIdentifier};
use der::oid::AssociatedOid;
use der::oid::db::rfc4519::{COMMON_NAME, ORGANIZATION_NAME};
use der::{Encode, Sequence, Tag, Tagged};
use rustls::crypto::aws_lc_rs::default_provider;
use std::collections::BTreeSet;
use std::net::IpAddr;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::{DirectoryString, GeneralName};
use x509_cert::name::Name;

/// A certificate or certificate request: a body with its signature.
#[derive(Clone, Copy, Sequence)]
pub(super) struct Signed<'a> {
    pub(super) body: AnyRef<'a>,
    pub(super) algorithm: AnyRef<'a>,
    pub(super) signature: BitStringRef<'a>,
}

/// A public key, as a SubjectPublicKeyInfo.
#[derive(Clone, Copy, Sequence)]
pub(super) struct PublicKey<'a> {
    algorithm: AnyRef<'a>,
    key: BitStringRef<'a>,
}

impl<'a> PublicKey<'a> {
    /// Returns the key itself, in the encoding of its algorithm.
    pub(super) fn bits(&self) -> &'a [u8] {
        self.key.raw_bytes()
    }
}

impl Signed<'_> {
    pub(super) fn is_signed_by(&self, key: AnyRef<'_>) -> bool {
        let (Ok(key), Ok(body)) = (key.decode_as::<PublicKey<'_>>(), self.body.to_der()) else {
            return false;
        };
        let algorithms = default_provider().signature_verification_algorithms.all;
        let mut matching = algorithms.iter().filter(|algorithm| {
            let (signature, public) = (algorithm.signature_alg_id(), algorithm.public_key_alg_id());
            signature.as_ref() == self.algorithm.value() && public.as_ref() == key.algorithm.value()
        });
        // Go accepts no other bit counts and no other types.
        let Some(signature) = self
            .signature
            .as_bytes()
            .filter(|_| self.algorithm.tag() == Tag::Sequence)
        else {
            return false;
        };
        matching.any(|algorithm| algorithm.verify_signature(key.bits(), &body, signature).is_ok())
    }
}

pub(super) struct Subject {
    pub(super) common_name: Box<str>,
    pub(super) organizations: Box<[Box<str>]>,
    /// True if the subject has exactly one common name and otherwise only organizations.
    pub(super) is_plain: bool,
}

impl Subject {
    pub(super) fn from_name(name: AnyRef<'_>) -> der::Result<Self> {
        let name: Name = name.decode_as()?;
        let all = |oid: ObjectIdentifier| {
            name.iter()
                .filter(move |part| part.oid == oid)
                .map(|part| decode_text(&part.value))
        };
        let organizations: Box<[_]> = all(ORGANIZATION_NAME).collect();
        let names = all(COMMON_NAME).count();
        Ok(Self {
            // Of several, Go uses the last one.
            common_name: all(COMMON_NAME).last().unwrap_or_default(),
            is_plain: names == 1 && name.iter().count() == names.saturating_add(organizations.len()),
            organizations,
        })
    }
}

fn decode_text(value: &Any) -> Box<str> {
    match DirectoryString::try_from(value) {
        Ok(text) => text.value().into(),
        // A type that names may not have, or invalid characters for the type.
        Err(_) => String::from_utf8_lossy(value.value()).into(),
    }
}

pub(super) fn extension<T>(extensions: &[Extension]) -> der::Result<Option<T>>
where
    T: AssociatedOid + for<'a> der::Decode<'a, Error = der::Error>,
{
    let matching = extensions.iter().find(|extension| extension.extn_id == T::OID);
    matching
        .map(|extension| T::from_der(extension.extn_value.as_bytes()))
        .transpose()
}

/// Returns the alternative names among the extensions: DNS names, IP addresses, mail addresses and URIs as text. Other kinds have
/// no text form and are not used for TLS.
pub(super) fn names(extensions: &[Extension]) -> der::Result<BTreeSet<Box<str>>> {
    let names = extension::<SubjectAltName>(extensions)?.map_or_else(Vec::new, |names| names.0);
    Ok(names.iter().filter_map(name).collect())
}

pub(super) fn name(name: &GeneralName) -> Option<Box<str>> {
    match name {
        GeneralName::DnsName(text) | GeneralName::Rfc822Name(text) | GeneralName::UniformResourceIdentifier(text) => {
            Some(text.as_str().into())
        }
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_canonical().to_string().into())
        }
        _ => None,
    }
}
