//! What is to be made, and the making of it.

use super::Error;
use super::authority::{self, Authority, AuthorityData, Made, TLS_CERTIFICATE, TLS_KEY};
use super::client_config;
use super::issue::{Draft, Purpose};
use super::key::NewKey;
use super::request::read_request;
use aws_lc_rs::rsa::KeySize;
use k8s_openapi::jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Under which key the Secret of argocd-agent's principal has the key that it signs tokens with.
const JWT_KEY: &str = "jwt.key";

/// What is to be made when it is written: a decision without any secret in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// A key to sign tokens with: RSA-4096. Makes `jwt.key`.
    Jwt,
    /// A first authority: RSA-3072, because OCM's signer does not read other keys than RSA. Makes `tls.crt` and `tls.key`.
    Authority {
        /// Its common name: [`authority_name`](super::authority_name).
        common_name: String,
        /// Before this it is not valid.
        not_before: Timestamp,
        /// After this it is not valid any more.
        not_after: Timestamp,
    },
    /// One more authority, which is trusted from now on and does not sign yet. Makes `tls.crt`, where it is last, and `next.key`.
    NextAuthority {
        /// Its common name: [`authority_name`](super::authority_name).
        common_name: String,
        /// Before this it is not valid.
        not_before: Timestamp,
        /// After this it is not valid any more.
        not_after: Timestamp,
        /// The one that signs until then.
        authority: Authority,
    },
    /// The next authority signs from now on, and the others are still trusted. Makes `tls.crt`, where it is first, and `tls.key`; removes
    /// `next.key`.
    Promote {
        /// The one that signs until then.
        authority: Authority,
    },
    /// Nobody is trusted any more but the authority that signs, and the next one, if there is one. Makes `tls.crt`.
    Drop {
        /// The one that stays.
        authority: Authority,
    },
    /// A server, with a key on P-256. It may also be a client. Makes `tls.crt` and `tls.key`.
    Server {
        /// The common name.
        common_name: String,
        /// Where it is reached: DNS names, and IP addresses as text.
        names: BTreeSet<Box<str>>,
        /// Before this it is not valid.
        not_before: Timestamp,
        /// After this it is not valid any more. It ends no later than the authority.
        not_after: Timestamp,
        /// Who signs it.
        authority: Authority,
    },
    /// A client, with a key on P-256, for a cluster Secret of Argo CD. Makes `config`: how Argo CD connects, and whom it trusts.
    Client {
        /// The common name.
        common_name: String,
        /// The organizations.
        organizations: Vec<Box<str>>,
        /// Before this it is not valid.
        not_before: Timestamp,
        /// After this it is not valid any more. It ends no later than the authority.
        not_after: Timestamp,
        /// Who signs it.
        authority: Authority,
    },
    /// A client that has its key itself, by its request. Makes `certificate`, for a CertificateSigningRequest. Of
    /// the request, it has the subject and the key, and nothing else.
    Sign {
        /// Under which key it is put, instead of `certificate`.
        key: Box<str>,
        /// The request (PKCS#10) in PEM.
        request: String,
        /// Before this it is not valid.
        not_before: Timestamp,
        /// After this it is not valid any more. It ends no later than the authority.
        not_after: Timestamp,
        /// Who signs it.
        authority: Authority,
    },
}

impl Recipe {
    /// Returns the key under which something that was made is put.
    #[must_use]
    pub fn key<'r>(&'r self, made: &'r str) -> &'r str {
        match self {
            Self::Sign { key, .. } => key,
            _ => made,
        }
    }

    /// The authority that it needs. What is made is good only if that is still in this version.
    #[must_use]
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

/// Makes it. An RSA key takes up to a few seconds.
///
/// # Errors
/// What of the recipe or of the authority's Secret is not right. Nothing of a key is in it.
pub fn make(recipe: &Recipe, authority: Option<&AuthorityData>) -> Result<Made, Error> {
    let given = || authority.ok_or(Error::NoAuthority);
    match recipe {
        Recipe::Jwt => Ok(BTreeMap::from([(JWT_KEY, Some(NewKey::rsa(KeySize::Rsa4096)?.pem))])),
        Recipe::Authority {
            common_name,
            not_before,
            not_after,
        } => {
            let (certificate, key) = authority::create(common_name, *not_before, *not_after)?;
            Ok(BTreeMap::from([
                (TLS_CERTIFICATE, Some(certificate)),
                (TLS_KEY, Some(key)),
            ]))
        }
        Recipe::NextAuthority {
            common_name,
            not_before,
            not_after,
            ..
        } => authority::announce(given()?, common_name, *not_before, *not_after),
        Recipe::Promote { .. } => authority::promote(given()?),
        Recipe::Drop { .. } => authority::drop_others(given()?),
        Recipe::Server {
            common_name,
            names,
            not_before,
            not_after,
            ..
        } => {
            let draft = Draft {
                purpose: Purpose::Server,
                common_name,
                organizations: &[],
                names,
                not_before: *not_before,
                not_after: *not_after,
            };
            let (certificate, key) = new_leaf(&draft, given()?)?;
            Ok(BTreeMap::from([
                (TLS_CERTIFICATE, Some(certificate)),
                (TLS_KEY, Some(key)),
            ]))
        }
        Recipe::Client {
            common_name,
            organizations,
            not_before,
            not_after,
            ..
        } => {
            let draft = Draft {
                purpose: Purpose::Client,
                common_name,
                organizations,
                names: &BTreeSet::new(),
                not_before: *not_before,
                not_after: *not_after,
            };
            let authority = given()?;
            let (certificate, key) = new_leaf(&draft, authority)?;
            let config = client_config::write(certificate, key, authority.bundle());
            Ok(BTreeMap::from([("config", Some(config))]))
        }
        Recipe::Sign {
            request,
            not_before,
            not_after,
            ..
        } => {
            let request = read_request(request.as_bytes())?;
            let draft = Draft {
                purpose: Purpose::Client,
                common_name: &request.common_name,
                organizations: &request.organizations,
                names: &BTreeSet::new(),
                not_before: *not_before,
                not_after: *not_after,
            };
            let certificate = given()?.signer()?.sign(&draft, request.public())?;
            Ok(BTreeMap::from([("certificate", Some(certificate))]))
        }
    }
}

/// A certificate with a new key, and that, in PEM.
fn new_leaf(draft: &Draft<'_>, authority: &AuthorityData) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let signer = authority.signer()?;
    let key = NewKey::p256()?;
    Ok((signer.sign(draft, key.key.public())?, key.pem))
}
