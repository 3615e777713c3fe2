//! Validates names by the rules of Kubernetes and OCM, and derives the names of an Application's works.

use std::fmt;
use std::str::FromStr;

mod work;

use primitives::hash::{beginning, hash, with_hash};

pub use work::{LABEL_MAX, SET_NAME_MIN, WORK_NAME_MAX, WorkName, application_of, is_reserved, set_name_max};

/// The number of hex digits of the hash in the value of a label: 40 bits.
const LABEL_HASH_DIGITS: usize = 10;

/// The error of an invalid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
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
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, InvalidName> {
        label(name, "managed cluster").map(Self)
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the name of a namespace on the managed cluster: a DNS label.
///
/// # Errors
/// Returns an error if `name` is not one.
pub fn namespace(name: &str) -> Result<String, InvalidName> {
    label(name, "namespace")
}

fn label(name: &str, of: &'static str) -> Result<String, InvalidName> {
    let name = name.to_owned();
    if is_dns_label(&name) {
        Ok(name)
    } else {
        Err(InvalidName::Label(name, of))
    }
}

/// Returns a DNS subdomain; `whose` is its owner in the error, such as `a project's`.
///
/// # Errors
/// Returns an error if `name` is not one.
pub fn subdomain(name: &str, whose: &'static str) -> Result<String, InvalidName> {
    let name = name.to_owned();
    if is_dns_subdomain(&name) {
        Ok(name)
    } else {
        Err(InvalidName::Subdomain(name, whose))
    }
}

/// Returns the value of [`works::APPLICATION_LABEL`](crate::work::APPLICATION_LABEL) for an Application that Argo CD calls
/// `application`: this name, or its start and a hash if it is longer than a label value may be.
pub fn application_label(application: &str) -> String {
    if application.len() <= LABEL_MAX {
        return application.to_owned();
    }
    let hash = hash([application], LABEL_HASH_DIGITS);
    with_hash(application.to_owned(), "-", &hash, LABEL_MAX)
}

/// Returns true if `name` is a DNS label (RFC 1123).
pub fn is_dns_label(name: &str) -> bool {
    name.len() <= 63 && is_dns_part(name)
}

/// Returns true if `name` is a DNS subdomain (RFC 1123), as most Kubernetes names must be.
pub fn is_dns_subdomain(name: &str) -> bool {
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

    #[test]
    fn long_application_label_is_truncated_with_a_hash() {
        let longest = "a".repeat(63);
        for name in ["shop", "team-a_shop", &longest] {
            assert_eq!(application_label(name), name);
        }
        let [one, other] = ["b", "c"].map(|end| application_label(&format!("{}.{end}", "a".repeat(251))));
        assert_ne!(one, other);
        assert!(one.len() == 63 && one.starts_with("aaa"), "{one}");
        let dotted = application_label(&format!("team-a_{}.{}", "a".repeat(45), "b".repeat(63)));
        assert!(!dotted.contains(".-") && dotted.len() <= 63, "{dotted}");
    }

    #[test]
    fn refuses_cluster_names_that_are_not_dns_labels() {
        for invalid in ["", "a.b", "Cluster1", "-", &"a".repeat(64)] {
            assert!(invalid.parse::<ClusterName>().is_err(), "{invalid:?}");
        }
    }
}
