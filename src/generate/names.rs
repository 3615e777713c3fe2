//! Names as Kubernetes and OCM allow them, checked where they enter; and the names of an Application's works.

use sha2::{Digest, Sha256};
use std::fmt::{self, Write as _};
use std::str::FromStr;

mod work;

pub use work::{LABEL_MAX, SET_NAME_MIN, WORK_NAME_MAX, WorkName, is_reserved, set_name_max};

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

    #[test]
    fn refuses_names_that_are_no_dns_label() {
        for bad in ["", "a.b", "Cluster1", "-", &"a".repeat(64)] {
            assert!(bad.parse::<ClusterName>().is_err(), "{bad:?}");
        }
    }
}
