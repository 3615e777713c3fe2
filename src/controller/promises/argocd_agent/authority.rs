//! The authority that the principal and the agents trust, and the certificates that it has issued on the hub.
//!
//! All of its state is in one Secret: the certificate that signs is the first of `tls.crt`, and whoever reads that field, as the
//! principal does, trusts all that follow. It is renewed in three steps, so that nobody ever meets a certificate that it does not
//! trust: the next one is announced, signs when every cluster knows it, and the one before goes when nothing of it is in use.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::agent::names;
use crate::cluster_secret::{MANAGED_BY, OURS};
use crate::controller::action::Write;
use crate::controller::resources::SECRETS;
use crate::controller::seen::{PROMOTED, Place, TlsSecret};
use crate::pki::{Authority, Certificate, Recipe, authority_name};
use crate::status::time;
use crate::time_math::{after, before};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// How long an authority lasts, as argocd-pull-integration's does.
const LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
/// How long a certificate that is issued on the hub lasts, likewise.
pub(super) const LEAF: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How long a certificate of an agent lasts at most, as OCM's own signer has it.
pub(super) const AGENT: SignedDuration = SignedDuration::from_hours(24);
/// How far clocks may be apart.
pub(super) const SKEW: SignedDuration = SignedDuration::from_mins(5);
/// When the next one signs though a cluster has not been heard of: this long before the end.
const LAST: SignedDuration = SignedDuration::from_hours(15 * 24);

/// What the names of authorities begin with that argocd-pull-integration and we make; others are somebody's who renews them.
const MADE: &str = "argocd-agent-ca@";

/// How far its certificates have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spread {
    /// Whether every cluster has what is announced.
    pub(super) is_known: bool,
    /// Whether all that is issued on the hub is of the one that signs.
    pub(super) is_used: bool,
}

/// What is to be written next of the authority; `argocd` is Argo CD's namespace.
pub(super) fn next(ca: Option<&TlsSecret>, argocd: &str, spread: Spread, now: Timestamp) -> Option<Write> {
    let (not_before, not_after) = (before(now, SKEW), after(now, LIFE));
    let common_name = authority_name(not_before);
    let Some(ca) = ca else {
        let recipe = Recipe::Authority {
            common_name,
            not_before,
            not_after,
        };
        return Some(made(create(names::CA_SECRET, argocd), recipe));
    };
    let signer = ca.leaf()?;
    if ca.deleting || !is_renewed(signer) {
        return None;
    }
    let authority = of(ca, argocd);
    let next = ca.next.as_ref();
    let next = next.and_then(|key| ca.certificates.iter().find(|it| it.has_key(key)));
    let recipe = match next {
        Some(_) if spread.is_known || now >= before(signer.not_after, LAST) => {
            let mut write = patch(ca, names::CA_SECRET, argocd);
            if let Write::Patch { body, .. } = &mut write {
                body["metadata"]["annotations"] = json!({PROMOTED: time(now)});
            }
            return Some(made(write, Recipe::Promote { authority }));
        }
        None if now >= signer.renews_at() => Recipe::NextAuthority {
            common_name,
            not_before,
            not_after,
            authority,
        },
        None if ca.certificates.len() > 1 && is_past(ca, spread, now) => Recipe::Drop { authority },
        _ => return None,
    };
    Some(made(patch(ca, names::CA_SECRET, argocd), recipe))
}

/// When the authority is to be looked at though nothing happens.
pub(super) fn again(ca: &TlsSecret) -> Option<Timestamp> {
    let signer = ca.leaf().filter(|signer| is_renewed(signer))?;
    Some(match (&ca.next, &ca.certificates[1..]) {
        (Some(_), _) => before(signer.not_after, LAST),
        (None, []) => signer.renews_at(),
        (None, _) => signer.renews_at().min(forgotten(ca)),
    })
}

/// Whether it is one that we renew.
fn is_renewed(signer: &Certificate) -> bool {
    signer.common_name.starts_with(MADE)
}

/// Whether nothing is in use any more of the authorities before the one that signs. What agents have lasts a day, so that is waited
/// after the last certificate of theirs may have been issued.
fn is_past(ca: &TlsSecret, spread: Spread, now: Timestamp) -> bool {
    let mut previous = ca.certificates.iter().skip(1);
    let is_over = previous.all(|it| after(it.not_after, SKEW) < now);
    is_over || (spread.is_used && now >= forgotten(ca))
}

/// Since when the first certificate signs.
fn changed(ca: &TlsSecret) -> Timestamp {
    ca.promoted.unwrap_or(Timestamp::MAX)
}

/// Returns when the last certificate that the previous authority signed for an agent has expired.
fn forgotten(ca: &TlsSecret) -> Timestamp {
    after(after(changed(ca), AGENT), SKEW)
}

/// What a certificate of the hub's own is to be.
#[derive(Clone, Debug)]
pub(super) struct Leaf<'l> {
    /// The name of its Secret.
    pub(super) secret: &'static str,
    /// What it is for.
    pub(super) names: &'l BTreeSet<Box<str>>,
    /// What it is called.
    pub(super) common_name: &'l str,
}

/// What is to be written of a certificate of the hub's own.
pub(super) fn leaf(
    ca: &TlsSecret,
    there: Option<&TlsSecret>,
    wanted: &Leaf<'_>,
    argocd: &str,
    now: Timestamp,
) -> Option<Write> {
    let write = match there {
        None => create(wanted.secret, argocd),
        Some(there) if there.deleting || is_right(ca, there, wanted, now) || !is_of(ca, there) => return None,
        Some(there) => patch(there, wanted.secret, argocd),
    };
    let recipe = Recipe::Server {
        common_name: wanted.common_name.to_owned(),
        names: wanted.names.clone(),
        not_before: before(now, SKEW),
        not_after: after(now, LEAF),
        authority: of(ca, argocd),
    };
    Some(made(write, recipe))
}

/// Whether a certificate is as it shall be: nothing is issued without a reason.
fn is_right(ca: &TlsSecret, there: &TlsSecret, wanted: &Leaf<'_>, now: Timestamp) -> bool {
    let (Some(signer), Some(leaf)) = (ca.leaf(), there.leaf()) else {
        return false;
    };
    leaf.is_issued_by(signer) && leaf.serves && now < leaf.renews_at() && leaf.names == *wanted.names
}

/// Whether a certificate is ours to renew: it is of this authority, or in a Secret of ours, or none at all. Somebody may have brought
/// one from elsewhere.
pub(super) fn is_of(ca: &TlsSecret, there: &TlsSecret) -> bool {
    let is_issued_here = |leaf: &Certificate| ca.certificates.iter().any(|authority| leaf.is_issued_by(authority));
    there.is_ours || there.certificates.first().is_none_or(is_issued_here)
}

/// The authority as it was looked at.
pub(in crate::controller::promises) fn of(ca: &TlsSecret, argocd: &str) -> Authority {
    Authority {
        place: Place::new(argocd, names::CA_SECRET),
        version: ca.version.clone(),
    }
}

fn made(write: Write, recipe: Recipe) -> Write {
    Write::Make {
        write: Box::new(write),
        recipe,
        into: "data",
    }
}

/// A Secret that is not there.
fn create(name: &str, argocd: &str) -> Write {
    secret(name, argocd, "kubernetes.io/tls")
}

/// A Secret of this type that is not there.
pub(super) fn secret(name: &str, argocd: &str, kind: &str) -> Write {
    Write::Create {
        resource: &SECRETS,
        place: Place::new(argocd, name),
        object: json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": argocd, "labels": labels()},
            "type": kind,
            "data": {},
        }),
    }
}

/// The key by which the principal signs tokens, which is not there.
pub(super) fn token_key(argocd: &str) -> Write {
    made(secret(names::JWT_SECRET, argocd, "Opaque"), Recipe::Jwt)
}

fn patch(there: &TlsSecret, name: &str, argocd: &str) -> Write {
    Write::Patch {
        resource: &SECRETS,
        place: Place::new(argocd, name),
        body: json!({"metadata": {"resourceVersion": there.version, "labels": labels()}, "data": {}}),
    }
}

/// What Secrets of ours have of labels; Argo CD's tools list what is a part of it.
pub(super) fn labels() -> Value {
    json!({MANAGED_BY: OURS, "app.kubernetes.io/part-of": "argocd-agent"})
}
