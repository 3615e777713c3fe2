//! Names as Kubernetes and OCM allow them, checked where they enter; and the name of an Application's work.

use crate::agent::names::CA_WORK;
use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::str::FromStr;

/// The longest work name that works: the agent names its own record `<64 hex digits>-<work name>`, and a name of more than
/// 253 characters is refused there, on the managed cluster, where nobody sees it.
pub const WORK_NAME_MAX: usize = 253 - 64 - 1;

/// How many hex digits of the hash a derived work name ends in: 80 bits, beyond collision by chance or by patience.
const HASH_DIGITS: usize = 20;

/// The shortest room for the name of a `ManifestWorkReplicaSet` that is worth having: a hash, and something to read.
pub const SET_NAME_MIN: usize = 30;

/// Starts what tells a work of an Application from its others.
const PART_MARK: &str = ".part-";

/// Starts the part of a work name that stands for a hash, so that no ordinary Application name looks like a derived one.
const HASH_MARK: &str = ".x";

/// Why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not a DNS label (RFC 1123).
    #[error(
        "{0:?} is not a {1} name: use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit"
    )]
    Label(String, &'static str),
    /// Not a DNS subdomain (RFC 1123).
    #[error(
        "{0:?} is not {1} name: use at most 253 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
    )]
    Subdomain(String, &'static str),
}

/// The name of a managed cluster, which is also its namespace on the hub: a DNS label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterName(String);

impl FromStr for ClusterName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        if is_dns_label(name) {
            Ok(Self(name.to_owned()))
        } else {
            Err(Error::Label(name.to_owned(), "managed cluster"))
        }
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A namespace on the managed cluster: a DNS label.
///
/// # Errors
/// When `name` is none.
pub fn namespace(name: &str) -> Result<String, Error> {
    if is_dns_label(name) {
        Ok(name.to_owned())
    } else {
        Err(Error::Label(name.to_owned(), "namespace"))
    }
}

/// The name of the work that carries an Application: valid for OCM, and different for different Applications.
///
/// Argo CD calls an Application of its own namespace by its name, and one of another namespace `<namespace>_<name>`.
/// The first kind keeps its name. Where that cannot be — `_` is not allowed in a name, OCM takes at most
/// [`WORK_NAME_MAX`] characters, or the name looks like a derived one or like a work of OCM, of an add-on or of the controller —
/// the name is made of the readable part and a hash of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkName(String);

impl FromStr for WorkName {
    type Err = Error;

    fn from_str(application: &str) -> Result<Self, Error> {
        let (namespace, name) = match application.split_once('_') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, application),
        };
        if !is_dns_subdomain(name) || !namespace.is_none_or(is_dns_label) {
            return Err(Error::Subdomain(application.to_owned(), "an Application's"));
        }
        if namespace.is_none() && name.len() <= WORK_NAME_MAX && !looks_derived(name) && !is_reserved(name) {
            return Ok(Self(name.to_owned()));
        }
        // Without the mark of a part, so that it is not taken for one.
        Ok(hashed(
            &application.replace('_', ".").replace(PART_MARK, "-part-"),
            application,
        ))
    }
}

impl WorkName {
    /// The name of the work that carries a part of the Application; that of the Application itself where `suffix` is empty.
    #[must_use]
    pub fn part(&self, suffix: &str) -> Self {
        if suffix.is_empty() {
            return self.clone();
        }
        let name = format!("{}{PART_MARK}{suffix}", self.0);
        if name.len() <= WORK_NAME_MAX && is_dns_subdomain(&name) {
            return Self(name);
        }
        // A kind or group may be of letters that a name must not have.
        let readable: String = name
            .chars()
            .map(|char| {
                if char.is_ascii_lowercase() || char.is_ascii_digit() || char == '.' {
                    char
                } else {
                    '-'
                }
            })
            .collect();
        let readable: Vec<&str> = readable
            .split('.')
            .map(|part| part.trim_matches('-'))
            .filter(|part| !part.is_empty())
            .collect();
        hashed(&readable.join("."), &name)
    }
}

impl WorkName {
    /// The name of the `ManifestWorkReplicaSet` in `namespace` that carries a part of the Application, of at most `max`
    /// characters, at least [`SET_NAME_MIN`].
    ///
    /// OCM gives the works in the clusters' namespaces the same name, and takes over whatever is called so there. So the name is
    /// one that no other set has, and no work that is delivered to clusters by name: the readable part, and a hash of the whole
    /// with the namespace. It has no dots, because OCM finds the works by a label of namespace and name with one dot in it.
    #[must_use]
    pub fn set_part(&self, suffix: &str, namespace: &str, max: usize) -> String {
        let whole = self.part(suffix).0;
        let hash = hash([namespace, "/", &whole], HASH_DIGITS);
        with_hash(without_hash(&whole).replace('.', "-"), SET_MARK, &hash, max)
    }

    /// Whether a work of this name carries the Application, or a part of it, as far as the name tells: one that is cut short
    /// does not.
    #[must_use]
    pub fn is_of(&self, work: &str) -> bool {
        let rest = work.strip_prefix(&self.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(PART_MARK))
    }

    /// The same of a `ManifestWorkReplicaSet`.
    #[must_use]
    pub fn is_of_set(&self, set: &str) -> bool {
        let Some((readable, _)) = set.rsplit_once(SET_MARK).filter(|(_, digits)| is_hash(digits)) else {
            return false;
        };
        let dashed = |name: &str| name.replace('.', "-");
        let part = readable.strip_prefix(&dashed(&self.0));
        readable == dashed(without_hash(&self.0)) || part.is_some_and(|part| part.starts_with(&dashed(PART_MARK)))
    }
}

/// The readable part of a name.
fn without_hash(name: &str) -> &str {
    let derived = name.rsplit_once(HASH_MARK).filter(|(_, digits)| is_hash(digits));
    derived.map_or(name, |(readable, _)| readable)
}

/// Starts the part of a set's name that stands for a hash.
const SET_MARK: &str = "-x";

/// A name of as much of the readable text as there is room for, and a hash of the whole.
fn hashed(readable: &str, whole: &str) -> WorkName {
    let hash = hash([whole], HASH_DIGITS);
    WorkName(with_hash(readable.to_owned(), HASH_MARK, &hash, WORK_NAME_MAX))
}

/// A name of at most `max` characters that ends in a hash, behind a mark.
pub(crate) fn with_hash(mut name: String, mark: &str, hash: &str, max: usize) -> String {
    name.truncate(max.saturating_sub(mark.len() + hash.len()));
    name.truncate(name.trim_end_matches(['.', '-']).len());
    name + mark + hash
}

/// The first `digits`, an even number, of the SHA-256 of texts in a row, in hex.
pub(super) fn hash<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, digits: usize) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.as_ref());
    }
    hex(&hash.finalize()[..digits / 2])
}

/// Bytes in hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(hex, "{byte:02x}").expect("a String takes all");
    }
    hex
}

impl fmt::Display for WorkName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn looks_derived(name: &str) -> bool {
    let ends_in_hash = |mark| name.rsplit_once(mark).is_some_and(|(_, digits)| is_hash(digits));
    name.contains(PART_MARK) || ends_in_hash(HASH_MARK) || ends_in_hash(SET_MARK)
}

/// Returns true if OCM, an add-on or the controller may have a work of this name in a cluster's namespace. Argo CD would adopt such a
/// work for an Application of that name, and the agent would delete what it delivered before.
///
/// Where the names come from:
/// - OCM and ACM import a cluster with the works `<cluster>-klusterlet` and `<cluster>-klusterlet-crds`.
/// - OCM's add-on manager has `addon-<name>-deploy-<n>`, `addon-<name>-deploy-hosting-…` and `addon-<name>-pre-delete`.
/// - The controller has [`CA_WORK`] and `argocd-agent-cr-…` for agents, as argocd-pull-integration does.
/// - The pull model has `<name>-<first 5 digits of a UID>`, as argocd-pull-integration does, and `<name>-<10 digits of a hash>`.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    let is_klusterlet = name.ends_with("-klusterlet") || name.ends_with("-klusterlet-crds");
    let addon = name.strip_prefix("addon-").unwrap_or_default();
    let is_addon = addon.contains("-deploy") || addon.contains("-pre-delete");
    let is_agent = name == CA_WORK || name.starts_with("argocd-agent-cr-");
    let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
    let is_pull = name
        .rsplit_once('-')
        .is_some_and(|(_, end)| matches!(end.len(), 5 | 10) && end.bytes().all(is_hex));
    is_klusterlet || is_addon || is_agent || is_pull
}

fn is_hash(digits: &str) -> bool {
    digits.len() == HASH_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_dns_label(name: &str) -> bool {
    name.len() <= 63 && is_dns_part(name)
}

/// Whether `name` is a DNS subdomain (RFC 1123), which most Kubernetes names must be.
pub(super) fn is_dns_subdomain(name: &str) -> bool {
    name.len() <= 253 && name.split('.').all(is_dns_part)
}

fn is_dns_part(part: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    bytes.first().is_some_and(|&first| alphanumeric(first))
        && bytes.last().is_some_and(|&last| alphanumeric(last))
        && bytes.iter().all(|&byte| alphanumeric(byte) || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(application: &str) -> String {
        application.parse::<WorkName>().expect(application).to_string()
    }

    #[test]
    fn an_application_of_argo_cds_namespace_keeps_its_name() {
        assert_eq!(work("guestbook"), "guestbook");
        assert_eq!(work("team-a.guestbook"), "team-a.guestbook");
    }

    #[test]
    fn an_application_of_another_namespace_gets_a_name_of_its_own() {
        let derived = work("team-a_guestbook");
        assert_eq!(derived, "team-a.guestbook.x27ba1e1fd0836c3a0ee1");
        assert_ne!(derived, work("team-a.guestbook"));
        assert_ne!(work("a_b.c"), work("a-b_c"));
        assert_ne!(work(&derived), derived, "nobody can take a derived name");
    }

    #[test]
    fn derives_names_that_ocm_add_ons_or_the_controller_use() {
        for application in [
            "eu-1-klusterlet",
            "eu-1-klusterlet-crds",
            "addon-application-manager-deploy-0",
            "addon-x-deploy-hosting-eu-1-0",
            "addon-x-pre-delete",
            CA_WORK,
            &crate::agent::names::argocd_work("argocd", "fleet"),
            &crate::agent::names::argocd_work("argocd", &"n".repeat(50)),
            "payments-1a2b3",
            "payments-faced",
            "payments-0123456789",
        ] {
            let derived = work(application);
            assert!(is_reserved(application), "{application}");
            assert!(derived.starts_with(&format!("{application}.x")), "{derived}");
            let name: WorkName = application.parse().unwrap();
            assert!(!name.is_of(application), "another's work is not {application}'s");
            assert!(name.is_of(&derived) && name.is_of(&name.part("wave5").to_string()));
        }
        for ordinary in [
            "klusterlet",
            "addon-shop",
            "argocd-agent",
            "shop-eu1",
            "shop-2024",
            "shop-1a2g3",
        ] {
            assert_eq!(work(ordinary), ordinary);
        }
    }

    #[test]
    fn a_long_name_is_cut_to_what_ocm_takes() {
        let long = "a".repeat(240);
        let one = work(&format!("{long}b"));
        let other = work(&format!("{long}c"));
        assert_eq!(one.len(), WORK_NAME_MAX);
        assert_ne!(one, other);
        let cut_at_dot = format!("{}{}", "a.".repeat(83), "b".repeat(60));
        assert!(is_dns_subdomain(&work(&cut_at_dot)));
        assert_eq!(work(&"a".repeat(WORK_NAME_MAX)), "a".repeat(WORK_NAME_MAX));
    }

    #[test]
    fn a_part_is_told_by_its_suffix_and_never_taken_for_an_application() {
        let work: WorkName = "shop".parse().unwrap();
        assert_eq!(work.part("").to_string(), "shop");
        assert_eq!(work.part("wave-5-b01").to_string(), "shop.part-wave-5-b01");
        assert_eq!(
            work.part("certificate.cert-manager.io").to_string(),
            "shop.part-certificate.cert-manager.io"
        );
        let application: WorkName = "shop.part-b01".parse().unwrap();
        assert_ne!(application.to_string(), "shop.part-b01");
        assert!(application.to_string().starts_with("shop-part-b01.x"), "{application}");
        for awkward in ["thing.-example_com", &"long.".repeat(60), "..", "Ä"] {
            let name = work.part(awkward).to_string();
            assert!(is_dns_subdomain(&name) && name.len() <= WORK_NAME_MAX, "{name}");
            assert_ne!(name, work.part(&format!("{awkward}x")).to_string());
        }
    }

    #[test]
    fn a_set_has_a_name_without_dots_that_nothing_else_has() {
        let set = |application: &str, suffix: &str, namespace: &str| {
            let name = application.parse::<WorkName>().unwrap().set_part(suffix, namespace, 52);
            assert!(name.len() <= 52 && is_dns_label(&name), "{name}");
            name
        };
        let shop = set("shop", "", "argocd");
        assert!(shop.starts_with("shop-x") && shop.len() == 26, "{shop}");
        assert_ne!(work(&shop), shop, "nobody can take a derived name");
        assert_ne!(shop, set("shop", "", "other"));
        assert!(set("shop.eu", "", "argocd").starts_with("shop-eu-x"));
        assert_ne!(set("shop.eu", "", "argocd"), set("shop-eu", "", "argocd"));
        assert!(set("shop", "wave5", "argocd").starts_with("shop-part-wave5-x"));
        assert!(set("team-a_shop", "", "argocd").starts_with("team-a-shop-x"));
        assert_eq!(set(&"a".repeat(100), "", "argocd").len(), 52);
        set("shop", &"certificate.".repeat(10), "argocd");
    }

    #[test]
    fn what_carries_an_application_is_known_by_its_name() {
        for application in ["shop", "shop.eu", "team-a_shop"] {
            let work: WorkName = application.parse().unwrap();
            for suffix in ["", "wave5", "certificate.cert-manager.io"] {
                let name = work.part(suffix).to_string();
                assert!(work.is_of(&name) && !work.is_of_set(&name), "{name}");
                let set = work.set_part(suffix, "argocd", 120);
                assert!(work.is_of_set(&set) && !work.is_of(&set), "{set}");
            }
        }
        let shop: WorkName = "shop".parse().unwrap();
        for other in ["shop2", "shop.eu", "shop-part-b0", "ashop"] {
            let other: WorkName = other.parse().unwrap();
            assert!(!shop.is_of(&other.to_string()), "{other}");
        }
        for other in ["shop-eu", "shops"] {
            let other: WorkName = other.parse().unwrap();
            assert!(!shop.is_of_set(&other.set_part("", "argocd", 52)), "{other}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bad in ["", "Guestbook", "a_b_c", "a b", "-a", "a.", "_a", "A_b", "a..b"] {
            assert!(bad.parse::<WorkName>().is_err(), "{bad:?}");
        }
        for bad in ["", "a.b", "Cluster1", "-", &"a".repeat(64)] {
            assert!(bad.parse::<ClusterName>().is_err(), "{bad:?}");
        }
    }
}
