//! What certificates and requests for them have in common: a body, signed.

use der::asn1::{Any, AnyRef, BitStringRef, ObjectIdentifier};
use der::oid::AssociatedOid;
use der::oid::db::rfc4519::{COMMON_NAME, ORGANIZATION_NAME};
use der::{Encode, Sequence, Tag, Tagged};
use rustls::crypto::aws_lc_rs::default_provider;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::{DirectoryString, GeneralName};
use x509_cert::name::Name;

/// A body, signed: a certificate, or a request for one.
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
    /// The key itself, as its algorithm writes it.
    pub(super) fn bits(&self) -> &'a [u8] {
        self.key.raw_bytes()
    }
}

impl Signed<'_> {
    /// Whether this key has signed it.
    pub(super) fn is_signed_by(&self, key: AnyRef<'_>) -> bool {
        let (Ok(key), Ok(body)) = (key.decode_as::<PublicKey<'_>>(), self.body.to_der()) else {
            return false;
        };
        let ways = default_provider().signature_verification_algorithms.all;
        let mut fitting = ways.iter().filter(|way| {
            let (signature, public) = (way.signature_alg_id(), way.public_key_alg_id());
            signature.as_ref() == self.algorithm.value() && public.as_ref() == key.algorithm.value()
        });
        // Go takes neither other numbers of bits nor other types.
        let Some(signature) = self
            .signature
            .as_bytes()
            .filter(|_| self.algorithm.tag() == Tag::Sequence)
        else {
            return false;
        };
        fitting.any(|way| way.verify_signature(key.bits(), &body, signature).is_ok())
    }
}

/// Who is meant by a subject.
pub(super) struct Subject {
    pub(super) common_name: Box<str>,
    pub(super) organizations: Box<[Box<str>]>,
    /// Whether it says no more than those, and not two common names.
    pub(super) is_plain: bool,
}

impl Subject {
    pub(super) fn read(name: AnyRef<'_>) -> der::Result<Self> {
        let name: Name = name.decode_as()?;
        let all = |oid: ObjectIdentifier| {
            name.iter()
                .filter(move |part| part.oid == oid)
                .map(|part| text(&part.value))
        };
        let organizations: Box<[_]> = all(ORGANIZATION_NAME).collect();
        let names = all(COMMON_NAME).count();
        Ok(Self {
            // Of several, Go means the last one.
            common_name: all(COMMON_NAME).last().unwrap_or_default(),
            is_plain: names == 1 && name.iter().count() == names.saturating_add(organizations.len()),
            organizations,
        })
    }
}

fn text(value: &Any) -> Box<str> {
    match DirectoryString::try_from(value) {
        Ok(text) => text.value().into(),
        // Of a type that is not for names, or with what its type does not allow.
        Err(_) => String::from_utf8_lossy(value.value()).into(),
    }
}

/// What one of the extensions says, if it is there.
pub(super) fn extension<T>(extensions: &[Extension]) -> der::Result<Option<T>>
where
    T: AssociatedOid + for<'a> der::Decode<'a, Error = der::Error>,
{
    let found = extensions.iter().find(|extension| extension.extn_id == T::OID);
    found.map(|found| T::from_der(found.extn_value.as_bytes())).transpose()
}

/// The alternative names among extensions: DNS names, IP addresses, mail addresses and URIs as text. There is no text for the other
/// kinds, which nobody uses for TLS.
pub(super) fn names(extensions: &[Extension]) -> der::Result<BTreeSet<Box<str>>> {
    let names = extension::<SubjectAltName>(extensions)?.map_or_else(Vec::new, |names| names.0);
    Ok(names.iter().filter_map(name).collect())
}

fn name(name: &GeneralName) -> Option<Box<str>> {
    match name {
        GeneralName::DnsName(text) | GeneralName::Rfc822Name(text) | GeneralName::UniformResourceIdentifier(text) => {
            Some(text.as_str().into())
        }
        GeneralName::IpAddress(bytes) => {
            let (four, six) = (
                <[u8; 4]>::try_from(bytes.as_bytes()),
                <[u8; 16]>::try_from(bytes.as_bytes()),
            );
            let address = four.map(|bytes| IpAddr::V4(Ipv4Addr::from(bytes)));
            let address = address.or_else(|_| six.map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes))));
            address.ok().map(|address| address.to_canonical().to_string().into())
        }
        _ => None,
    }
}
