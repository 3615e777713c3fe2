//! Derives the names of the works that carry an Application.
//!
//! A name is a base, optionally with a part: `BASE`, `BASE.part-SUFFIX`. A base never contains `.part-`, so the base of a name is
//! unambiguous, and every base belongs to one Application:
//!
//! | Base | Application |
//! |---|---|
//! | `shop` | `shop`, without a policy |
//! | `team-a.shop.x` and 20 hexadecimal digits | `team-a_shop`, without a policy: its name cannot be a base |
//! | `shop.p` and 32 base32 digits | `shop`, under a policy |
//! | `shop.front.p` and 32 base32 digits | `shop`, under a policy, whose source sets the name `front` |
//!
//! An Application whose name looks like one of the last three, or like a work of OCM, of an add-on or of the controller, has a base
//! with a hash also without a policy.

use super::{InvalidName, beginning, hash, is_dns_label, is_dns_subdomain, with_hash};
use crate::argocd_agent::CA_WORK;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// The maximum length of a work's name: the agent names its AppliedManifestWork `<64 hex digits>-<work name>`, and the managed
/// cluster rejects names over 253 characters without a visible error.
pub const WORK_NAME_MAX: usize = 253 - 64 - 1;

/// The number of hex digits of the hash at the end of a derived work name: 80 bits exclude accidental and deliberate collisions.
const HASH_DIGITS: usize = 20;

/// The minimum useful length of a `ManifestWorkReplicaSet` name: a hash and a readable part.
pub const SET_NAME_MIN: usize = 30;

/// The maximum length of a label value. OCM's controller finds the works of a `ManifestWorkReplicaSet` by a label with its
/// namespace and name, joined by a dot.
pub const LABEL_MAX: usize = 63;

/// The separator before the part suffix, which distinguishes the works of an Application.
const PART_MARK: &str = ".part-";

/// The separator before the hash in a derived work name, so that no ordinary Application name looks like one.
const HASH_MARK: &str = ".x";

/// The separator before the hash in the name of a set.
const SET_MARK: &str = "-x";

/// The separator before the Application's hash in a base under a policy.
const POLICY_MARK: &str = ".p";

/// The number of base32 digits of that hash: 160 bits.
const POLICY_DIGITS: usize = 32;

/// The maximum length of a base under a policy, which leaves 62 characters for a part.
const POLICY_BASE_MAX: usize = 120;

/// The maximum length of a base without a policy to which a part of any length can be added: a longer name ends in [`HASH_MARK`]
/// and a hash, and keeps one character of its suffix.
const PLAIN_BASE_MAX: usize = WORK_NAME_MAX - HASH_MARK.len() - HASH_DIGITS - PART_MARK.len() - 1;

/// The prefix of the names of works with ArgoCD resources.
const ARGOCD_WORK: &str = "argocd-agent-cr-";

/// Returns the maximum length of a `ManifestWorkReplicaSet` name in a namespace, in characters.
pub fn set_name_max(namespace: &str) -> usize {
    LABEL_MAX.saturating_sub(namespace.len().saturating_add(1))
}

/// The name of the work that carries an Application: valid for OCM, and different for different Applications.
///
/// Argo CD calls an Application of its own namespace by its name, and one of another namespace `<namespace>_<name>`. Without a
/// policy the first kind keeps its name. If that is impossible — `_` is not allowed in a name, OCM accepts at most
/// [`WORK_NAME_MAX`] characters, or the name looks like a derived one or like a work of OCM, of an add-on or of the controller —
/// the name consists of the readable part and a hash of the whole. Under a policy it always does, see [`WorkName::under_policy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkName {
    /// The name of the Application in Argo CD.
    application: String,
    /// The name without a part.
    base: String,
    is_under_policy: bool,
    /// True if one of several sources of the Application has this name.
    is_of_source: bool,
}

impl FromStr for WorkName {
    type Err = InvalidName;

    fn from_str(application: &str) -> Result<Self, InvalidName> {
        let (namespace, name) = match application.split_once('_') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, application),
        };
        if !is_dns_subdomain(name) || !namespace.is_none_or(is_dns_label) {
            return Err(InvalidName::Subdomain(application.to_owned(), "an Application's"));
        }
        Ok(Self {
            application: application.to_owned(),
            base: plain(application).into_owned(),
            is_under_policy: false,
            is_of_source: false,
        })
    }
}

impl WorkName {
    /// Returns the name under a policy: the Application's name as far as it fits, and 160 bits of a SHA-256 of its name in Argo
    /// CD, `NAME` or `NAMESPACE_NAME`. Namespaces and names contain no `_`, so different Applications have different texts.
    ///
    /// No other work has such a name: without a policy an Application of that name gets another one, parts contain `.part-`, and
    /// works of OCM, of add-ons, of the controller and of the pull model end differently. An attacker who can choose Application
    /// names needs about 2^160 attempts to hit the work of a given one, and about 2^80 to find two of their own names that share
    /// a work.
    pub fn under_policy(self) -> Self {
        Self {
            base: policy_base(&self.application),
            is_under_policy: true,
            ..self
        }
    }

    /// Returns the name under a policy of the works of a source that sets `name`, for one of several sources of the Application; `None`
    /// if both are too long together. The hash includes both, so the works of no other Application have such a name.
    pub fn of_source(&self, name: &str) -> Option<Self> {
        let base = source_base(&self.application, name);
        self.has_source_base(&base).then(|| Self {
            application: self.application.clone(),
            base,
            is_under_policy: true,
            is_of_source: true,
        })
    }

    /// Returns true if this is the base of a source of the Application under a policy.
    fn has_source_base(&self, base: &str) -> bool {
        let start = format!("{}.", readable_under_policy(&self.application));
        let readable = base.rsplit_once(POLICY_MARK).map(|(readable, _)| readable);
        let name = readable.and_then(|readable| readable.strip_prefix(&start));
        name.is_some_and(|name| source_base(&self.application, name) == base)
    }

    /// Returns true if it is the name of one of several sources of an Application.
    pub fn is_of_source(&self) -> bool {
        self.is_of_source
    }

    /// Returns true if it is the name under a policy.
    pub fn is_under_policy(&self) -> bool {
        self.is_under_policy
    }

    /// Returns the name of the Application in Argo CD.
    pub fn application(&self) -> &str {
        &self.application
    }

    /// Returns the name of the work that carries a part of the Application; with an empty `suffix`, that of the Application
    /// itself.
    pub fn part(&self, suffix: &str) -> String {
        part(&self.application, &self.base, suffix)
    }

    /// Returns the name of the `ManifestWorkReplicaSet` that carries a part of the Application to the clusters of a Placement,
    /// `NAMESPACE/NAME`, of at most `max` characters, at least [`SET_NAME_MIN`]. Sets of hooks that Argo CD starts itself have one name for all
    /// Placements of a namespace: pass `NAMESPACE`. The name is the same under a policy and without one, unless it is of a source.
    ///
    /// OCM gives the works in the clusters' namespaces the same name, and adopts any existing work of that name. So no other set
    /// and no work that is delivered to clusters by name may have the name: it consists of the readable part and a hash of the
    /// whole with the Placement. A set of the same name for another Placement would lose the works of all clusters, because OCM deletes
    /// those of a Placement that a set no longer names. It has no dots, because OCM finds the works by a label of namespace and name
    /// with one dot in it. That label leaves room for 80 bits: about 2^80 attempts to hit the set of a given Application.
    pub fn set_part(&self, suffix: &str, placement: &str, max: usize) -> String {
        let plain = plain(&self.application);
        let base = if self.is_of_source { &*self.base } else { &*plain };
        let whole = part(&self.application, base, suffix);
        let hash = hash([placement, "/", &whole], HASH_DIGITS);
        let mut readable = without_hash(&whole).to_owned();
        if self.is_of_source {
            readable = readable.replacen(base, application_of(base), 1);
        }
        with_hash(readable.replace('.', "-"), SET_MARK, &hash, max)
    }

    /// Returns true if a work of this name carries the Application or a part of it, under a policy or without one: an Application
    /// has works of both while it changes from one to the other. No other Application has a work of such a name.
    pub fn is_of(&self, work: &str) -> bool {
        let base = base_of(work);
        if self.is_of_source {
            return base == self.base;
        }
        base == self.base
            || base == plain(&self.application)
            || base == policy_base(&self.application)
            || self.has_source_base(base)
    }

    /// Returns true if a work of this name carries the Application or a part of it, and was created under a policy.
    pub fn is_of_under_policy(&self, work: &str) -> bool {
        let base = base_of(work);
        if self.is_of_source {
            base == self.base
        } else {
            base == policy_base(&self.application)
        }
    }

    /// Returns true if a `ManifestWorkReplicaSet` of this name in `namespace` may carry the Application or a part of it; `placement` is
    /// the name of its Placement, if known. Otherwise, and of a long part, only the beginning of the name can be compared, so others may
    /// share it: among users who may write sets, Argo CD's tracking marks decide on the owner; the clusters' agents may not write sets.
    pub fn is_of_set(&self, set: &str, namespace: &str, placement: Option<&str>) -> bool {
        let Some((readable, _)) = set.rsplit_once(SET_MARK).filter(|(_, digits)| is_hash(digits)) else {
            return false;
        };
        let max = set_name_max(namespace);
        let room = max.saturating_sub(SET_MARK.len() + HASH_DIGITS);
        let plain = plain(&self.application);
        let base = if self.is_of_source {
            application_of(&self.base)
        } else {
            &plain
        };
        let is_whole = match placement {
            Some(placement) => set == self.set_part("", &format!("{namespace}/{placement}"), max),
            None => readable == beginning(&without_hash(base).replace('.', "-"), room),
        };
        if is_whole {
            return true;
        }
        let start = format!("{base}{PART_MARK}").replace('.', "-");
        if start.len() < room {
            return readable.starts_with(&start);
        }
        readable == beginning(&start, room)
    }

    /// Returns true if a `ManifestWorkReplicaSet` of this name may carry a source of the Application under a policy. Sets of other
    /// Applications may begin like it: Argo CD's tracking marks must name the Application.
    pub fn may_be_set_of_source(&self, set: &str) -> bool {
        let start = format!("{}-", readable_under_policy(&self.application).replace('.', "-"));
        set.rsplit_once(SET_MARK)
            .is_some_and(|(readable, digits)| is_hash(digits) && readable.starts_with(&start))
    }
}

impl fmt::Display for WorkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

/// Returns the base of an Application's works without a policy.
fn plain(application: &str) -> Cow<'_, str> {
    let is_usable = !application.contains('_') && application.len() <= WORK_NAME_MAX;
    if is_usable && !looks_derived(application) && !is_reserved(application) {
        return Cow::Borrowed(application);
    }
    let hash = hash([application], HASH_DIGITS);
    Cow::Owned(with_hash(readable(application), HASH_MARK, &hash, WORK_NAME_MAX))
}

/// Returns the base of an Application's works under a policy.
fn policy_base(application: &str) -> String {
    with_policy_hash(readable_under_policy(application), &[application])
}

/// Returns the base of the works under a policy of a source of an Application. Names contain no `/`, so no Application has this hash.
fn source_base(application: &str, source: &str) -> String {
    with_policy_hash(
        readable_under_policy(&format!("{application}.{source}")),
        &[application, "/", source],
    )
}

fn with_policy_hash(readable: String, hashed: &[&str]) -> String {
    let mut hash = Sha256::new();
    // No other hash of this program has an input with this prefix.
    hash.update("argocd-ocm-cmp/application/");
    for text in hashed {
        hash.update(text);
    }
    let digits = base32(&hash.finalize()[..POLICY_DIGITS * 5 / 8]);
    with_hash(readable, POLICY_MARK, &digits, POLICY_BASE_MAX)
}

/// Returns the readable part of an Application's name. It contains no part separator, so the base of a name ends before the first
/// one.
fn readable(application: &str) -> String {
    application.replace('_', ".").replace(PART_MARK, "-part-")
}

/// Returns the readable part under a policy. The author of a GitOpsCluster chooses the end of a name with the prefix of its works.
fn readable_under_policy(application: &str) -> String {
    let readable = readable(application);
    match readable.strip_prefix(ARGOCD_WORK) {
        Some(rest) => format!("argocd-agent-cr.{rest}"),
        None => readable,
    }
}

/// Returns the name of a part of an Application's works.
fn part(application: &str, base: &str, suffix: &str) -> String {
    if suffix.is_empty() {
        return base.to_owned();
    }
    let name = format!("{base}{PART_MARK}{suffix}");
    if name.len() <= WORK_NAME_MAX && is_dns_subdomain(&name) {
        return name;
    }
    if base.len() > PLAIN_BASE_MAX {
        // The base must stay complete to identify the work's owner.
        return part(application, &policy_base(application), suffix);
    }
    let hash = hash([&name], HASH_DIGITS);
    let name = format!("{base}{PART_MARK}{}", readable_suffix(suffix));
    with_hash(name, HASH_MARK, &hash, WORK_NAME_MAX)
}

/// Returns a suffix of characters that are valid in names; those of a kind or group may not be.
fn readable_suffix(suffix: &str) -> String {
    let letter = |char: char| {
        if char.is_ascii_lowercase() || char.is_ascii_digit() || char == '.' {
            char
        } else {
            '-'
        }
    };
    let suffix: String = suffix.chars().map(letter).collect();
    let parts = suffix.split('.').map(|part| part.trim_matches('-'));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return "x".to_owned();
    }
    parts.join(".")
}

/// Returns the part of a work's name before the part separator.
fn base_of(work: &str) -> &str {
    work.split_once(PART_MARK).map_or(work, |(base, _)| base)
}

/// Returns the name in Argo CD of the Application that a work carries, as far as the work's name shows it: exactly without a policy, and
/// for a short name of Argo CD's own namespace also under one.
pub fn application_of(work: &str) -> &str {
    let base = base_of(work);
    let derived = base.rsplit_once(POLICY_MARK);
    match derived.filter(|(_, digits)| digits.len() == POLICY_DIGITS) {
        Some((readable, _)) => readable,
        None => without_hash(base),
    }
}

/// Returns the readable part of a name.
fn without_hash(name: &str) -> &str {
    let derived = name.rsplit_once(HASH_MARK).filter(|(_, digits)| is_hash(digits));
    derived.map_or(name, |(readable, _)| readable)
}

fn looks_derived(name: &str) -> bool {
    let ends_in_hash = |mark| name.rsplit_once(mark).is_some_and(|(_, digits)| is_hash(digits));
    let is_under_policy = name
        .rsplit_once(POLICY_MARK)
        .is_some_and(|(_, digits)| digits.len() == POLICY_DIGITS && digits.bytes().all(|byte| BASE32.contains(&byte)));
    name.contains(PART_MARK) || ends_in_hash(HASH_MARK) || ends_in_hash(SET_MARK) || is_under_policy
}

/// Returns true if OCM, an add-on or the controller may have a work of this name in a cluster's namespace. Argo CD would adopt
/// such a work for an Application of that name, and the agent would delete the objects that it delivered before.
///
/// Sources of the names:
/// - OCM and ACM import a cluster with the works `<cluster>-klusterlet` and `<cluster>-klusterlet-crds`.
/// - OCM's add-on manager has `addon-<name>-deploy-<n>`, `addon-<name>-deploy-hosting-…` and `addon-<name>-pre-delete`.
/// - The controller has [`CA_WORK`] and `argocd-agent-cr-…` for agents, as argocd-pull-integration does.
/// - The pull model has `<name>-<first 5 digits of a UID>`, as argocd-pull-integration does, and `<name>-<10 digits of a hash>`.
pub fn is_reserved(name: &str) -> bool {
    let is_klusterlet = name.ends_with("-klusterlet") || name.ends_with("-klusterlet-crds");
    let addon = name.strip_prefix("addon-").unwrap_or_default();
    let is_addon = addon.contains("-deploy") || addon.contains("-pre-delete");
    let is_agent = name == CA_WORK || name.starts_with(ARGOCD_WORK);
    let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    let is_pull = name
        .rsplit_once('-')
        .is_some_and(|(_, end)| matches!(end.len(), 5 | 10) && end.bytes().all(is_hex));
    is_klusterlet || is_addon || is_agent || is_pull
}

fn is_hash(digits: &str) -> bool {
    digits.len() == HASH_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The digits of base32 (RFC 4648) in lower case.
const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Encodes bytes, whose number is a multiple of 5, in base32.
fn base32(bytes: &[u8]) -> String {
    let digits = bytes.chunks(5).flat_map(|chunk| {
        let bits = chunk.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        (0..8)
            .rev()
            .map(move |at| BASE32[usize::try_from(bits >> (5 * at) & 31).unwrap_or_default()])
    });
    digits.map(char::from).collect()
}

#[cfg(test)]
mod tests;
