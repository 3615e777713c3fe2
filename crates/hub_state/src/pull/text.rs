//! Times and bounded texts of a status, and hashes of texts.

use jiff::Timestamp;
use manifest::text::{is_unprintable, one_line, without_middle};
use primitives::hash::hex;
use sha2::{Digest, Sha256};

/// The maximum length of a stored text, in bytes.
pub const TEXT_MAX: usize = 4096;

/// The maximum length of a stored word or revision, in bytes.
pub(super) const WORD_MAX: usize = 512;

/// Truncates a text to the stored length. Line breaks stay; other control characters that affect a terminal are removed.
pub fn bounded(text: &str) -> Box<str> {
    let text = without_middle(text, TEXT_MAX);
    let is_odd = |char| char != '\n' && is_unprintable(char);
    if text.contains(is_odd) {
        text.replace(is_odd, " ").into()
    } else {
        text.into()
    }
}

/// Truncates a text in the same way, to a single line.
pub fn bounded_line(text: &str) -> Box<str> {
    one_line(&without_middle(text, TEXT_MAX)).into()
}

/// Truncates a short value in the same way.
pub(super) fn bounded_word(text: &str) -> Box<str> {
    one_line(&without_middle(text, WORD_MAX)).into()
}

/// Reads a time, or returns `None` for an invalid one, or one before year 0, which the API server would reject.
pub fn time(text: &str) -> Option<Timestamp> {
    let time = text.parse().ok().map(whole_seconds);
    time.filter(|_| !text.starts_with('-'))
}

/// Returns a time without the fraction of its second.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

pub(super) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Returns the first `digits`, an even number, of a hash of these texts, in hex. Different lists of texts have different hash
/// inputs.
pub fn hash(texts: &[&str], digits: usize) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    hex(&hash.finalize()[..digits / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_with_equal_concatenation_have_different_hashes() {
        assert_eq!(hash(&["ab", "c"], 10).len(), 10);
        assert_ne!(hash(&["ab", "c"], 10), hash(&["a", "bc"], 10));
    }
}
