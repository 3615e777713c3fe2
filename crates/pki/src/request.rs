//! Reads certificate requests (PKCS#10).

use super::Error;
use super::signed::{Signed, Subject};
use der::asn1::AnyRef;
use der::{Decode, Encode, Sequence};
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use x509_cert::attr::Attributes;
use x509_cert::request::Version;

/// The content of a certificate request, whose sender has the private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningRequest {
    /// The common name of the subject, which has exactly one.
    pub common_name: Box<str>,
    /// The organizations of the subject, in its order; Go writes several in its own order. The subject has no other attributes.
    pub organizations: Box<[Box<str>]>,
    pub(super) public: Box<[u8]>,
}

/// The signed part of a request.
#[derive(Sequence)]
pub(super) struct CertificationRequestInfo<'a> {
    pub(super) version: Version,
    pub(super) subject: AnyRef<'a>,
    pub(super) key: AnyRef<'a>,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT")]
    pub(super) attributes: Attributes,
}

/// Reads a request in PEM.
///
/// The subject may contain only a common name and organizations: argocd-agent searches for names in the text of the whole
/// subject, where another attribute before the common name could look like one.
///
/// # Errors
/// Returns an error if the request cannot be read, is not signed with its own key, or has another subject.
pub fn read_request(pem: &[u8]) -> Result<SigningRequest, Error> {
    let mut blocks = CertificateSigningRequestDer::pem_slice_iter(pem);
    let (Some(Ok(block)), None) = (blocks.next(), blocks.next()) else {
        return Err(Error::NoRequest);
    };
    let unread = |error: der::Error| Error::Request(error.to_string().into());
    let signed = Signed::from_der(&block).map_err(unread)?;
    let body: CertificationRequestInfo = signed.body.decode_as().map_err(unread)?;
    if !signed.is_signed_by(body.key) {
        return Err(Error::Unproven);
    }
    let subject = Subject::from_name(body.subject).map_err(unread)?;
    if !subject.is_plain {
        return Err(Error::Subject);
    }
    Ok(SigningRequest {
        common_name: subject.common_name,
        organizations: subject.organizations,
        public: body.key.to_der().map_err(unread)?.into(),
    })
}
