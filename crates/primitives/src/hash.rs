//! Hashes in hex, and names that end in one.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Returns a name of at most `max` bytes that ends in a mark and a hash.
pub fn with_hash(mut name: String, mark: &str, hash: &str, max: usize) -> String {
    name.truncate(beginning(&name, max.saturating_sub(mark.len() + hash.len())).len());
    name + mark + hash
}

/// Returns the whole characters in the first `max` bytes of a name, without the separators at their end.
pub fn beginning(name: &str, max: usize) -> &str {
    let mut ends = (0..=max.min(name.len())).rev();
    let first = ends.find_map(|end| name.get(..end)).unwrap_or_default();
    without_separator(first)
}

/// Returns a name without the separators at its end, which Kubernetes does not allow there.
pub fn without_separator(name: &str) -> &str {
    name.trim_end_matches(['.', '-'])
}

/// Returns the first `digits`, an even number, of the SHA-256 of the concatenated texts, in hex.
pub fn hash<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, digits: usize) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.as_ref());
    }
    hex(&hash.finalize()[..digits / 2])
}

/// Formats bytes in hex.
pub fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(hex, "{byte:02x}").expect("writing to a String never fails");
    }
    hex
}
