//! Defines recipes for certificates and keys, and carries them out.

use super::Error;
use super::authority::{self, Authority, AuthorityData, Made, TLS_CERTIFICATE, TLS_KEY};
use super::issue::{Draft, Purpose};
use super::key::NewKey;
use super::request::read_request;
use aws_lc_rs::rsa::KeySize;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use primitives::time_math::{after, before};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The largest difference of clocks that is expected: the validity of a certificate starts so long before it is issued.
pub const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Returns the validity of a certificate that is issued now.
pub fn validity(now: Timestamp, lifetime: SignedDuration) -> Range<Timestamp> {
    before(now, CLOCK_SKEW)..after(now, lifetime)
}

/// The key in the Secret of argocd-agent's principal that holds the signing key of its tokens.
const JWT_KEY: &str = "jwt.key";

/// A certificate or key to create when a write is carried out: a decision without secrets.
///
/// A certificate ends at most with the CA that issues it. The common name of a CA is its [`authority_name`](super::authority_name).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// A signing key for tokens: RSA-4096. Makes `jwt.key`.
    Jwt,
    /// A first CA: RSA-3072, because OCM's signer reads only RSA keys. Makes `tls.crt` and `tls.key`.
    Authority {
        common_name: String,
        validity: Range<Timestamp>,
    },
    /// An additional CA, which is trusted from now on and does not sign yet. Makes `tls.crt`, with the new CA last, and
    /// `next.key`.
    NextAuthority {
        common_name: String,
        validity: Range<Timestamp>,
        authority: Authority,
    },
    /// The promotion of the next CA, which signs from now on while the others are still trusted. Makes `tls.crt`, with the next
    /// CA first, and `tls.key`; removes `next.key`.
    Promote { authority: Authority },
    /// The end of trust in all CAs but the signing one and the next one, if any. Makes `tls.crt`.
    Drop { authority: Authority },
    /// A server certificate with a P-256 key, valid for clients as well. Makes `tls.crt` and `tls.key`.
    Server {
        common_name: String,
        /// The names of the server: DNS names, and IP addresses as text.
        names: BTreeSet<Box<str>>,
        validity: Range<Timestamp>,
        authority: Authority,
    },
    /// A client certificate with a P-256 key, for a cluster Secret of Argo CD. Makes `config`: the connection with its trusted
    /// CAs.
    Client {
        common_name: String,
        validity: Range<Timestamp>,
        authority: Authority,
    },
    /// A client certificate for a request whose sender has the key. Makes `certificate`, for a CertificateSigningRequest. It
    /// copies only the subject and the public key of the request.
    Sign {
        /// The key under which the certificate is stored, instead of `certificate`.
        key: Box<str>,
        /// The request (PKCS#10) in PEM.
        request: String,
        validity: Range<Timestamp>,
        authority: Authority,
    },
}

impl Recipe {
    /// Returns the key under which a result is stored.
    pub fn key<'r>(&'r self, made: &'r str) -> &'r str {
        match self {
            Self::Sign { key, .. } => key,
            _ => made,
        }
    }

    /// Returns the CA that the recipe needs. The result is valid only if the CA's Secret still has this resource version.
    pub fn authority(&self) -> Option<&Authority> {
        match self {
            Self::Jwt | Self::Authority { .. } => None,
            Self::NextAuthority { authority, .. }
            | Self::Promote { authority }
            | Self::Drop { authority }
            | Self::Server { authority, .. }
            | Self::Client { authority, .. }
            | Self::Sign { authority, .. } => Some(authority),
        }
    }
}

/// Carries out a recipe. Generating an RSA key takes up to a few seconds.
///
/// # Errors
/// Returns the problem of the recipe or of the CA's Secret, without any part of a key.
pub fn make(recipe: &Recipe, authority: Option<&AuthorityData>) -> Result<Made, Error> {
    let given = || authority.ok_or(Error::NoAuthority);
    let tls = |(certificate, key)| BTreeMap::from([(TLS_CERTIFICATE, Some(certificate)), (TLS_KEY, Some(key))]);
    match recipe {
        Recipe::Jwt => Ok(BTreeMap::from([(JWT_KEY, Some(NewKey::rsa(KeySize::Rsa4096)?.pem))])),
        Recipe::Authority { common_name, validity } => Ok(tls(authority::create(common_name, validity)?)),
        Recipe::NextAuthority {
            common_name, validity, ..
        } => authority::announce(given()?, common_name, validity),
        Recipe::Promote { .. } => authority::promote(given()?),
        Recipe::Drop { .. } => authority::drop_others(given()?),
        Recipe::Server {
            common_name,
            names,
            validity,
            ..
        } => {
            let draft = Draft {
                names,
                ..Draft::new(Purpose::Server, common_name, validity.clone())
            };
            Ok(tls(new_leaf(&draft, given()?)?))
        }
        Recipe::Client {
            common_name, validity, ..
        } => {
            let authority = given()?;
            let (certificate, key) = new_leaf(&Draft::new(Purpose::Client, common_name, validity.clone()), authority)?;
            // Argo CD's `ClusterConfig`.
            let config = json!({"tlsClientConfig": {
                "insecure": false,
                "certData": ByteString(certificate),
                "keyData": ByteString(key),
                "caData": ByteString(authority.bundle.clone()),
            }});
            Ok(BTreeMap::from([("config", Some(config.to_string().into_bytes()))]))
        }
        Recipe::Sign { request, validity, .. } => {
            let request = read_request(request.as_bytes())?;
            let draft = Draft {
                organizations: &request.organizations,
                ..Draft::new(Purpose::Client, &request.common_name, validity.clone())
            };
            let (issuer, key) = given()?.signer()?;
            let certificate = draft.issue(&request.public, Some(&issuer), &key)?;
            Ok(BTreeMap::from([("certificate", Some(certificate))]))
        }
    }
}

/// Creates a server certificate with a P-256 key that signs itself, and returns both in PEM. A client trusts it for these names alone:
/// it is no CA.
///
/// # Errors
/// Returns the problem of a name or of the validity.
pub fn self_signed(
    common_name: &str,
    names: &BTreeSet<Box<str>>,
    validity: Range<Timestamp>,
) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let draft = Draft {
        names,
        ..Draft::new(Purpose::Server, common_name, validity)
    };
    draft.self_signed(NewKey::p256()?)
}

/// Issues a certificate for a new key, and returns both in PEM.
fn new_leaf(draft: &Draft<'_>, authority: &AuthorityData) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let (issuer, issuer_key) = authority.signer()?;
    let NewKey { key, pem } = NewKey::p256()?;
    Ok((draft.issue(key.public(), Some(&issuer), &issuer_key)?, pem))
}
