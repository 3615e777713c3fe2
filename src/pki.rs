//! Certificates: what is known of one, and how one is made.
//!
//! Nothing here reads or writes anything, or looks at a clock: times are arguments, and chance comes from the crypto library
//! inside of [`make`]. What is decided is a [`Recipe`], which has no secret in it, so that a decision can be compared, kept and
//! shown; private keys are there only while it is carried out. What is remembered of a key that somebody has is its [`KeyId`].
//!
//! Those who have to accept the certificates are Go's `crypto/x509` (argocd-agent, Argo CD, OCM) and rustls. RFC 5280 is what they
//! agree on.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod authority;
mod certificate;
mod client_config;
mod issue;
mod key;
mod recipe;
mod request;
mod signed;
#[cfg(test)]
mod tests;

pub use authority::{Authority, AuthorityData, NEXT_KEY, TLS_CERTIFICATE, TLS_KEY, authority_name};
pub use certificate::Certificate;
pub use client_config::ClientConfig;
pub use key::{KeyId, key_of};
pub use recipe::{Recipe, make};
pub use request::{Request, read_request};

/// Why something cannot be read or made. None of them has anything of a key in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// One of what a Secret has, or should have.
    #[error("{0}: {1}")]
    In(&'static str, Box<Error>),
    /// A Secret lacks it.
    #[error("it is not there")]
    Missing,
    /// The text around or inside of a PEM block.
    #[error("its PEM text is broken")]
    Pem,
    /// No block says CERTIFICATE.
    #[error("it has no certificate")]
    NoCertificate,
    /// The one of this number, which counts from 1.
    #[error("its certificate {0} cannot be read: {1}")]
    Certificate(usize, Box<str>),
    /// No block says PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY.
    #[error("it has no private key that is not encrypted")]
    NoKey,
    /// Nothing that we could sign with.
    #[error("its private key is none of RSA with 2048 to 8192 bits, ECDSA on P-256, P-384 or P-521, and Ed25519")]
    Key,
    /// No block says CERTIFICATE REQUEST, or more than one does.
    #[error("a request for a certificate is one block of PEM, CERTIFICATE REQUEST")]
    NoRequest,
    /// What is in the block.
    #[error("the request for a certificate cannot be read: {0}")]
    Request(Box<str>),
    /// Whoever sent it has not shown that the key is theirs.
    #[error("the request for a certificate is not signed with the key that it is for")]
    Unproven,
    /// Those who authenticate by the text of a subject could find another name in it than the one that was checked.
    #[error("the subject of the request for a certificate is not one common name, and organizations")]
    Subject,
    /// Of a cluster Secret of Argo CD's.
    #[error("it is not the JSON of a connection by TLS: {{\"tlsClientConfig\": {{…}}}}")]
    Config,
    /// The recipe needs an authority.
    #[error("there is no certificate authority to sign with")]
    NoAuthority,
    /// Of the first certificate of the authority's bundle.
    #[error("its first certificate is not one of a certificate authority")]
    NotAnAuthority,
    /// The key and the first certificate of the authority's bundle.
    #[error("it is not the key of the first certificate of tls.crt")]
    OtherKey,
    /// A next authority has been announced before.
    #[error("there is one already")]
    AlreadyNext,
    /// The next authority has not been announced.
    #[error("no certificate of tls.crt is of this key")]
    NotAnnounced,
    /// Of a server.
    #[error("{0:?} is neither a DNS name nor an IP address")]
    Name(Box<str>),
    /// It would never be valid, or a date cannot be written in a certificate.
    #[error("a certificate cannot end before it begins, and it ends no later than its authority")]
    Times,
    /// The crypto library. Its errors do not say why.
    #[error("the crypto library failed to {0}")]
    Crypto(&'static str),
}

impl Error {
    fn within(self, part: &'static str) -> Self {
        Self::In(part, Box::new(self))
    }
}
