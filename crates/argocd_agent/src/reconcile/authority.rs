//! The CA that the principal and the agents trust, and the certificates that it issues on the hub.
//!
//! All of its state is in one Secret. The first certificate in `tls.crt` signs; readers of that field, such as the principal,
//! trust all of its certificates. The controller rotates the CA in three steps, so that no component ever sees a certificate that
//! it does not trust: it announces the next certificate, lets it sign once every cluster has it, and drops the previous one once
//! no certificate of it is in use.

use hub_state::{Cache, PROMOTED, TlsSecret};
use jiff::{SignedDuration, Timestamp};
use ocm::argocd_agent as names;
use ocm::resources::SECRETS;
use ocm::work::{MANAGED_BY, OURS};
use pki::{Authority, CLOCK_SKEW, Certificate, Recipe, authority_name};
use primitives::object_ref::ObjectRef;
use primitives::time_math::{after, before};
use primitives::timestamp::format_time;
use runtime::action::Write;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The lifetime of a CA certificate, as in argocd-pull-integration.
const CA_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The lifetime of a certificate issued on the hub, as in argocd-pull-integration.
pub(super) const LEAF_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The maximum lifetime of an agent's certificate, as in OCM's own signer.
pub(super) const AGENT_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// The time before expiry when the next CA certificate signs even if some clusters do not have it.
const FORCE_ROTATION_BEFORE: SignedDuration = SignedDuration::from_hours(15 * 24);

/// The prefix of the names of CA certificates that argocd-pull-integration and we create. The owners of all others renew them.
const CA_NAME_PREFIX: &str = "argocd-agent-ca@";

/// Returns the next write of the CA Secret; `argocd` is Argo CD's namespace. `is_distributed` returns true if every cluster has all
/// announced CA certificates, and `has_issued_all` if the signing one issued all certificates.
pub(super) fn next_write(
    ca: Option<&TlsSecret>,
    argocd: &str,
    is_distributed: impl Fn(&TlsSecret) -> bool,
    has_issued_all: impl Fn(&TlsSecret) -> bool,
    now: Timestamp,
) -> Option<Write> {
    let validity = pki::validity(now, CA_LIFETIME);
    let common_name = authority_name(validity.start);
    let Some(ca) = ca else {
        let recipe = Recipe::Authority { common_name, validity };
        return Some(secret(names::CA_SECRET, argocd, None, recipe));
    };
    let signer = ca.leaf()?;
    if ca.deleting || !is_renewed(signer) {
        return None;
    }
    let authority = reference(ca, argocd);
    let next = ca.next.as_ref();
    let next = next.and_then(|key| ca.certificates.iter().find(|certificate| certificate.has_key(key)));
    // If the clock was ahead when the CA was created, no certificate that it signs is valid yet.
    let is_early = signer.not_before > now;
    let is_forced = is_early || now >= before(signer.not_after, FORCE_ROTATION_BEFORE);
    let recipe = match next {
        Some(next) if is_forced || next.not_before <= now && is_distributed(ca) => {
            let recipe = Recipe::Promote { authority };
            let mut write = secret(names::CA_SECRET, argocd, Some(&ca.version), recipe);
            if let Some(body) = write.body_mut() {
                body["metadata"]["annotations"] = json!({PROMOTED: format_time(now)});
            }
            return Some(write);
        }
        None if is_early || now >= signer.renews_at() => Recipe::NextAuthority {
            common_name,
            validity,
            authority,
        },
        None if ca.certificates.len() > 1 && is_previous_unused(ca, has_issued_all, now) => Recipe::Drop { authority },
        _ => return None,
    };
    Some(secret(names::CA_SECRET, argocd, Some(&ca.version), recipe))
}

/// Returns the time when the CA must be reconciled without watch events.
pub(super) fn requeue_after(ca: &TlsSecret) -> Option<Timestamp> {
    let signer = ca.leaf().filter(|signer| is_renewed(signer))?;
    Some(match (&ca.next, &ca.certificates[1..]) {
        (Some(_), _) => before(signer.not_after, FORCE_ROTATION_BEFORE),
        (None, []) => signer.renews_at(),
        (None, _) => signer.renews_at().min(previous_expires_at(ca)),
    })
}

fn is_renewed(signer: &Certificate) -> bool {
    signer.common_name.starts_with(CA_NAME_PREFIX)
}

/// Returns the certificate in a Secret of Argo CD's namespace if its owner has to renew it: that of a CA which is not ours, or one on
/// the hub which that CA has not issued.
pub fn renewed_by_its_owner<'c>(cache: &'c Cache, name: &str) -> Option<&'c Certificate> {
    let secret = cache.certificate(name)?;
    let certificate = secret.leaf()?;
    let is_ours = match cache.certificate(names::CA_SECRET) {
        Some(_) if name == names::CA_SECRET => is_renewed(certificate),
        Some(ca) => is_of(ca, secret),
        None => secret.is_ours,
    };
    (!is_ours).then_some(certificate)
}

pub(super) fn signing(cache: &Cache) -> Option<&TlsSecret> {
    cache.certificate(names::CA_SECRET).filter(|ca| ca.leaf().is_some())
}

/// Returns true if no certificate of the previous CA certificates is in use. Agents' certificates last a day, so this waits for a
/// day after the last one may have been issued.
fn is_previous_unused(ca: &TlsSecret, has_issued_all: impl Fn(&TlsSecret) -> bool, now: Timestamp) -> bool {
    let mut previous = ca.certificates.iter().skip(1);
    let is_over = previous.all(|certificate| after(certificate.not_after, CLOCK_SKEW) < now);
    is_over || now >= previous_expires_at(ca) && has_issued_all(ca)
}

/// Returns the time when the last agent certificate of the previous CA certificate has expired.
fn previous_expires_at(ca: &TlsSecret) -> Timestamp {
    after(after(ca.promoted.unwrap_or(Timestamp::MAX), AGENT_LIFETIME), CLOCK_SKEW)
}

/// Returns the write that creates or renews a certificate of the hub for these DNS names and IP addresses, if needed. A certificate
/// without the second ones, or with others, stays until its renewal, because a new one restarts the principal.
pub(super) fn leaf(
    ca: &TlsSecret,
    existing: Option<&TlsSecret>,
    (name, common_name): (&'static str, &str),
    [needed, others]: [BTreeSet<Box<str>>; 2],
    argocd: &str,
    now: Timestamp,
) -> Option<Write> {
    let version = match existing {
        None => None,
        Some(existing) if existing.deleting || is_up_to_date(ca, existing, &needed, now) || !is_of(ca, existing) => {
            return None;
        }
        Some(existing) => Some(&*existing.version),
    };
    let recipe = Recipe::Server {
        common_name: common_name.to_owned(),
        names: needed.into_iter().chain(others).collect(),
        validity: pki::validity(now, LEAF_LIFETIME),
        authority: reference(ca, argocd),
    };
    Some(secret(name, argocd, version, recipe))
}

/// Returns true if a certificate is as desired, so that none is issued without a reason.
fn is_up_to_date(ca: &TlsSecret, existing: &TlsSecret, needed: &BTreeSet<Box<str>>, now: Timestamp) -> bool {
    let (Some(signer), Some(leaf)) = (ca.leaf(), existing.leaf()) else {
        return false;
    };
    let is_due = leaf.renewal(signer, now).is_some_and(|at| at <= now);
    leaf.is_issued_by(signer) && leaf.serves && !is_due && leaf.names.is_superset(needed)
}

/// Returns true if we may renew a certificate: it is from this CA, or its Secret is ours or has no certificate. An administrator
/// may have installed one of another CA.
pub(super) fn is_of(ca: &TlsSecret, existing: &TlsSecret) -> bool {
    let is_issued_here = |leaf: &Certificate| ca.certificates.iter().any(|authority| leaf.is_issued_by(authority));
    existing.is_ours || existing.certificates.first().is_none_or(is_issued_here)
}

/// Returns the reference to the CA Secret in the version that was read.
pub(crate) fn reference(ca: &TlsSecret, argocd: &str) -> Authority {
    Authority {
        object_ref: ObjectRef::new(argocd, names::CA_SECRET),
        version: ca.version.clone(),
    }
}

/// Returns the write that puts the result of a recipe into a Secret of Argo CD's namespace: creates it, or patches this version of it.
pub(super) fn secret(name: &str, argocd: &str, version: Option<&str>, recipe: Recipe) -> Write {
    let object_ref = ObjectRef::new(argocd, name);
    let kind = match recipe {
        Recipe::Jwt => "Opaque",
        Recipe::Sign { .. } => names::ISSUED_TYPE,
        _ => "kubernetes.io/tls",
    };
    let write = match version {
        None => {
            let metadata = json!({"name": name, "namespace": argocd, "labels": labels()});
            let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": kind, "data": {}});
            Write::create(&SECRETS, object_ref, object)
        }
        Some(version) => {
            let metadata = json!({"resourceVersion": version, "labels": labels()});
            Write::patch(&SECRETS, object_ref, json!({"metadata": metadata, "data": {}}))
        }
    };
    Write {
        recipe: Some(recipe),
        ..write
    }
}

/// Returns the labels of our Secrets; Argo CD's tools list objects by `part-of`.
pub(super) fn labels() -> Value {
    json!({MANAGED_BY: OURS, "app.kubernetes.io/part-of": "argocd-agent"})
}

#[cfg(test)]
mod tests;
