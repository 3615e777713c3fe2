//! What is to be made, and the making of it.

use super::Error;
use super::certificate::Certificate;
use super::issue::{Draft, Issuer, Purpose};
use super::key::{Key, KeyId, NewKey, pem_text};
use super::request::read_request;
use crate::controller::seen::Place;
use aws_lc_rs::rsa::KeySize;
use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Under which key a Secret has certificates, as `kubernetes.io/tls` says. The authority's has its own first, then all others that are
/// still trusted.
pub const TLS_CERTIFICATE: &str = "tls.crt";

/// Under which key a Secret has the private key of the first certificate.
pub const TLS_KEY: &str = "tls.key";

/// Under which key the authority's Secret has the private key of a certificate that is trusted, but does not sign yet.
pub const NEXT_KEY: &str = "next.key";

/// Under which key the Secret of argocd-agent's principal has the key that it signs tokens with.
const JWT_KEY: &str = "jwt.key";

/// The common name of an authority that begins then, as argocd-pull-integration writes it.
#[must_use]
pub fn authority_name(not_before: Timestamp) -> String {
    format!("argocd-agent-ca@{}", not_before.as_second())
}

/// What is to be made when it is written: a decision without any secret in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// A key to sign tokens with: RSA-4096. Makes `jwt.key`.
    Jwt,
    /// A first authority: RSA-3072, because OCM's signer does not read other keys than RSA. Makes `tls.crt` and `tls.key`.
    Authority {
        /// Its common name: [`authority_name`].
        common_name: String,
        /// Before this it is not valid.
        not_before: Timestamp,
        /// After this it is not valid any more.
        not_after: Timestamp,
    },
    /// One more authority, which is trusted from now on and does not sign yet. Makes `tls.crt`, where it is last, and `next.key`.
    NextAuthority {
        /// Its common name: [`authority_name`].
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
    /// A client that has its key itself, by its request. Makes `certificate`, for the status of a CertificateSigningRequest. Of
    /// the request, it has the subject and the key, and nothing else.
    Sign {
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

/// In which form of an authority's Secret something was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// Where the Secret is.
    pub place: Place,
    /// Its resourceVersion.
    pub version: Box<str>,
}

/// An authority's Secret when something is made with it. It is never shown.
pub struct AuthorityData {
    bundle: Vec<u8>,
    key: Vec<u8>,
    next: Option<Vec<u8>>,
}

impl AuthorityData {
    /// The `data` of the Secret.
    ///
    /// # Errors
    /// That it has no `tls.crt` or no `tls.key`. What they are is seen when they are used.
    pub fn new(mut data: BTreeMap<String, ByteString>) -> Result<Self, Error> {
        let mut take = |part| data.remove(part).map(|ByteString(bytes)| bytes);
        Ok(Self {
            bundle: take(TLS_CERTIFICATE).ok_or_else(|| Error::Missing.within(TLS_CERTIFICATE))?,
            key: take(TLS_KEY).ok_or_else(|| Error::Missing.within(TLS_KEY))?,
            next: take(NEXT_KEY),
        })
    }

    fn certificates(&self) -> Result<Vec<Certificate>, Error> {
        Certificate::read_all(&self.bundle).map_err(|error| error.within(TLS_CERTIFICATE))
    }

    fn next(&self) -> Result<&[u8], Error> {
        self.next.as_deref().ok_or_else(|| Error::Missing.within(NEXT_KEY))
    }

    fn signer(&self) -> Result<Signer, Error> {
        let certificate = self.certificates()?.swap_remove(0);
        if !certificate.is_authority {
            return Err(Error::NotAnAuthority.within(TLS_CERTIFICATE));
        }
        let key = Key::read(&self.key).map_err(|error| error.within(TLS_KEY))?;
        if !certificate.has_key(&key.id()) {
            return Err(Error::OtherKey.within(TLS_KEY));
        }
        Ok(Signer { certificate, key })
    }
}

/// An authority that can sign.
struct Signer {
    certificate: Certificate,
    key: Key,
}

impl Signer {
    fn sign(&self, draft: &Draft<'_>, public: &[u8]) -> Result<Vec<u8>, Error> {
        let issuer = Issuer {
            certificate: Some(&self.certificate),
            key: &self.key,
        };
        draft.issue(public, &issuer)
    }
}

/// What is made: by its key in a Secret's `data`, bytes that are not yet in base64; `None` removes what is there.
type Made = BTreeMap<&'static str, Option<Vec<u8>>>;

/// Makes it. An RSA key takes up to a few seconds.
///
/// # Errors
/// What of the recipe or of the authority's Secret is not right. Nothing of a key is in it.
pub fn make(recipe: &Recipe, authority: Option<&AuthorityData>) -> Result<Made, Error> {
    let authority = || authority.ok_or(Error::NoAuthority);
    match recipe {
        Recipe::Jwt => Ok(BTreeMap::from([(JWT_KEY, Some(NewKey::rsa(KeySize::Rsa4096)?.pem))])),
        Recipe::Authority {
            common_name,
            not_before,
            not_after,
        } => {
            let (certificate, key) = new_authority(common_name, *not_before, *not_after)?;
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
        } => announce(authority()?, common_name, *not_before, *not_after),
        Recipe::Promote { .. } => promote(authority()?),
        Recipe::Drop { .. } => drop_others(authority()?),
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
            let (certificate, key) = new_leaf(&draft, authority()?)?;
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
            let authority = authority()?;
            let (certificate, key) = new_leaf(&draft, authority)?;
            Ok(BTreeMap::from([("config", Some(config(certificate, key, authority)))]))
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
            let certificate = authority()?.signer()?.sign(&draft, request.public())?;
            Ok(BTreeMap::from([("certificate", Some(certificate))]))
        }
    }
}

/// A certificate of a new authority, and its key, in PEM.
fn new_authority(common_name: &str, not_before: Timestamp, not_after: Timestamp) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let key = NewKey::rsa(KeySize::Rsa3072)?;
    let draft = Draft {
        purpose: Purpose::Authority,
        common_name,
        organizations: &[],
        names: &BTreeSet::new(),
        not_before,
        not_after,
    };
    let issuer = Issuer {
        certificate: None,
        key: &key.key,
    };
    Ok((draft.issue(key.key.public(), &issuer)?, key.pem))
}

/// A certificate with a new key, and that, in PEM.
fn new_leaf(draft: &Draft<'_>, authority: &AuthorityData) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let signer = authority.signer()?;
    let key = NewKey::p256()?;
    Ok((signer.sign(draft, key.key.public())?, key.pem))
}

fn announce(
    authority: &AuthorityData,
    common_name: &str,
    not_before: Timestamp,
    not_after: Timestamp,
) -> Result<Made, Error> {
    if authority.next.is_some() {
        return Err(Error::AlreadyNext.within(NEXT_KEY));
    }
    let mut bundle = bundle(&authority.certificates()?)?;
    let (certificate, key) = new_authority(common_name, not_before, not_after)?;
    bundle.extend(certificate);
    Ok(BTreeMap::from([(TLS_CERTIFICATE, Some(bundle)), (NEXT_KEY, Some(key))]))
}

fn promote(authority: &AuthorityData) -> Result<Made, Error> {
    let mut certificates = authority.certificates()?;
    let key = authority.next()?;
    let next = position(&certificates, &next_id(key)?)?;
    certificates[..=next].rotate_right(1);
    Ok(BTreeMap::from([
        (TLS_CERTIFICATE, Some(bundle(&certificates)?)),
        (TLS_KEY, Some(key.to_vec())),
        (NEXT_KEY, None),
    ]))
}

fn drop_others(authority: &AuthorityData) -> Result<Made, Error> {
    let certificates = authority.certificates()?;
    // What does not sign is no reason to trust nobody else.
    let mut kept = vec![authority.signer()?.certificate];
    if let Some(next) = &authority.next {
        kept.push(certificates[position(&certificates, &next_id(next)?)?].clone());
    }
    Ok(BTreeMap::from([(TLS_CERTIFICATE, Some(bundle(&kept)?))]))
}

fn next_id(key: &[u8]) -> Result<KeyId, Error> {
    let key = Key::read(key).map_err(|error| error.within(NEXT_KEY))?;
    Ok(key.id())
}

/// Where the authority with the next key is; it is not the one that signs.
fn position(certificates: &[Certificate], next: &KeyId) -> Result<usize, Error> {
    let is_next = |certificate: &Certificate| certificate.is_authority && certificate.has_key(next);
    let found = certificates.iter().skip(1).position(is_next);
    found
        .map(|found| found + 1)
        .ok_or_else(|| Error::NotAnnounced.within(NEXT_KEY))
}

fn bundle(certificates: &[Certificate]) -> Result<Vec<u8>, Error> {
    let texts = certificates
        .iter()
        .map(|certificate| pem_text("CERTIFICATE", certificate.der()));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.concat())
}

/// `config` of a cluster Secret of Argo CD's (its `ClusterConfig`).
fn config(certificate: Vec<u8>, key: Vec<u8>, authority: &AuthorityData) -> Vec<u8> {
    let config = json!({"tlsClientConfig": {
        "insecure": false,
        "certData": ByteString(certificate),
        "keyData": ByteString(key),
        "caData": ByteString(authority.bundle.clone()),
    }});
    config.to_string().into_bytes()
}
