//! Reads and generates private keys.

use super::Error;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use der::pem::LineEnding;
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{AlgorithmIdentifier, PrivateKeyDer, alg_id};
use rustls::sign::SigningKey;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The ID of a key: the SHA-256 of the public key as in certificates (SubjectPublicKeyInfo).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 32]);

impl KeyId {
    pub(super) fn new(public: &[u8]) -> Self {
        Self(Sha256::digest(public).into())
    }
}

/// Returns the ID of a private key in PEM: PKCS#8, PKCS#1 for RSA or SEC 1 for elliptic curves, which Go programs and OpenSSL
/// write. The key is not kept.
///
/// # Errors
/// Returns an error if there is no private key, or none of a supported algorithm.
pub fn key_of(pem: &[u8]) -> Result<KeyId, Error> {
    Ok(Key::from_pem(pem)?.id())
}

/// The signature algorithms by key type, one for each, which all verifiers accept in certificates.
static SCHEMES: [(SignatureScheme, AlgorithmIdentifier); 5] = [
    (SignatureScheme::RSA_PKCS1_SHA256, alg_id::RSA_PKCS1_SHA256),
    (SignatureScheme::ECDSA_NISTP256_SHA256, alg_id::ECDSA_SHA256),
    (SignatureScheme::ECDSA_NISTP384_SHA384, alg_id::ECDSA_SHA384),
    (SignatureScheme::ECDSA_NISTP521_SHA512, alg_id::ECDSA_SHA512),
    (SignatureScheme::ED25519, alg_id::ED25519),
];

/// A private key for signing.
pub(super) struct Key {
    key: Arc<dyn SigningKey>,
    public: Box<[u8]>,
}

impl Key {
    pub(super) fn from_pem(pem: &[u8]) -> Result<Self, Error> {
        let private = PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
            pem::Error::NoItemsFound => Error::NoKey,
            _ => Error::Pem,
        })?;
        Self::new(&private)
    }

    fn new(private: &PrivateKeyDer<'_>) -> Result<Self, Error> {
        let key = any_supported_type(private).map_err(|_| Error::Key)?;
        let public = key.public_key().ok_or(Error::Key)?.as_ref().into();
        Ok(Self { key, public })
    }

    /// Returns the public key as a SubjectPublicKeyInfo in DER.
    pub(super) fn public(&self) -> &[u8] {
        &self.public
    }

    pub(super) fn id(&self) -> KeyId {
        KeyId::new(&self.public)
    }

    /// Returns the signature algorithm as the content of an AlgorithmIdentifier in DER.
    pub(super) fn algorithm(&self) -> Result<&'static [u8], Error> {
        SCHEMES
            .iter()
            .find(|(scheme, _)| self.key.choose_scheme(&[*scheme]).is_some())
            .map(|(_, algorithm)| algorithm.as_ref())
            .ok_or(Error::Key)
    }

    pub(super) fn sign(&self, body: &[u8]) -> Result<Vec<u8>, Error> {
        let signer = self.key.choose_scheme(&SCHEMES.each_ref().map(|(scheme, _)| *scheme));
        signer.ok_or(Error::Key)?.sign(body).map_err(|_| Error::Crypto("sign"))
    }
}

/// A new private key, with its PEM text in PKCS#8.
pub(super) struct NewKey {
    pub(super) key: Key,
    pub(super) pem: Vec<u8>,
}

impl NewKey {
    /// Generates an RSA key, which takes up to a few seconds for larger sizes.
    pub(super) fn rsa(size: KeySize) -> Result<Self, Error> {
        let made = RsaKeyPair::generate(size).and_then(|pair| pair.as_der());
        Self::new(made.map_err(|_| Error::Crypto("generate an RSA key"))?.as_ref())
    }

    pub(super) fn p256() -> Result<Self, Error> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
        Self::new(made.map_err(|_| Error::Crypto("generate an ECDSA key"))?.as_ref())
    }

    fn new(pkcs8: &[u8]) -> Result<Self, Error> {
        Ok(Self {
            key: Key::new(&PrivateKeyDer::Pkcs8(pkcs8.into()))?,
            pem: pem_text("PRIVATE KEY", pkcs8)?,
        })
    }
}

pub(super) fn pem_text(label: &'static str, der: &[u8]) -> Result<Vec<u8>, Error> {
    let text = der::pem::encode_string(label, LineEnding::LF, der);
    text.map(String::into_bytes).map_err(|_| Error::Pem)
}
