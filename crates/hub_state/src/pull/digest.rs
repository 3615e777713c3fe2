//! Hashes of texts, for names and markers.

use primitives::hash::hex;
use sha2::{Digest, Sha256};

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
