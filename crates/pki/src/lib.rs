//! Reads and issues certificates.
//!
//! This crate does no I/O and reads no clock: times are arguments, and randomness comes from the crypto library inside of
//! [`make`]. A decision is a [`Recipe`] without secrets, so that it can be compared, kept and shown; private keys exist only
//! while it is carried out. An existing key is represented by its [`KeyId`].
//!
//! The certificates are verified by Go's `crypto/x509` (argocd-agent, Argo CD, OCM) and rustls, which both follow RFC 5280.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod authority;
mod certificate;
mod issue;
mod key;
mod recipe;
mod request;
mod signed;
#[cfg(test)]
mod tests;

pub use authority::{Authority, AuthorityData, NEXT_KEY, TLS_CERTIFICATE, TLS_KEY, authority_name};
pub use certificate::Certificate;
pub use issue::alternative_name;
pub use key::{KeyId, key_of};
pub use recipe::{CLOCK_SKEW, Recipe, make, self_signed, validity};
pub use request::{SigningRequest, read_request};

/// The error of reading or issuing. No variant contains any part of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An error in a named field of a Secret.
    #[error("{0}: {1}")]
    In(&'static str, Box<Error>),
    #[error("missing")]
    Missing,
    #[error("invalid PEM")]
    Pem,
    #[error("contains no certificate")]
    NoCertificate,
    /// An invalid certificate, with its number counted from 1.
    #[error("certificate {0} is invalid: {1}")]
    Certificate(usize, Box<str>),
    #[error("contains no unencrypted private key")]
    NoKey,
    #[error("unsupported private key: use RSA with 2048 to 8192 bits, ECDSA on P-256, P-384 or P-521, or Ed25519")]
    Key,
    #[error("a certificate request must be one PEM block, CERTIFICATE REQUEST")]
    NoRequest,
    #[error("the certificate request is invalid: {0}")]
    Request(Box<str>),
    #[error("the certificate request is not signed with its own key")]
    Unproven,
    /// A subject with other attributes: verifiers that match the text of a subject could find another name in it than the checked
    /// one.
    #[error("the subject of the certificate request must be one common name and organizations")]
    Subject,
    #[error("no CA to sign with")]
    NoAuthority,
    #[error("the first certificate is not a CA certificate")]
    NotAnAuthority,
    #[error("does not match the first certificate of tls.crt")]
    OtherKey,
    #[error("already exists")]
    AlreadyNext,
    #[error("no certificate of tls.crt matches this key")]
    NotAnnounced,
    #[error("{0:?} is neither a DNS name nor an IP address")]
    Name(Box<str>),
    #[error("invalid validity period: a certificate must expire after it becomes valid, and no later than its CA")]
    Times,
    #[error("the crypto library failed to {0}")]
    Crypto(&'static str),
}

impl Error {
    fn within(self, part: &'static str) -> Self {
        Self::In(part, Box::new(self))
    }
}
