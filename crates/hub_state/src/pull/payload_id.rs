//! The ID of a payload, which is the Application in a work: a hash of its finalizers after a hash of all else. The cluster reports
//! the ID of the payload that it has, and so which finalizers its Application has.

use super::text::hash;

/// The number of digits of the first hash: 80 bits.
const DIGITS: usize = 20;

/// The number of digits of the hash of the finalizers: 32 bits.
const FINALIZERS_DIGITS: usize = 8;

const SEPARATOR: char = '-';

pub fn finalizers_hash(finalizers: &[&str]) -> String {
    hash(finalizers, FINALIZERS_DIGITS)
}

/// Returns the ID of a payload with these finalizers; `rest` is all else in it.
pub fn payload_id(rest: &str, finalizers: &[&str]) -> String {
    replace_finalizers(&hash(&[rest], DIGITS), finalizers)
}

/// Returns the ID of the same payload with other finalizers.
pub fn replace_finalizers(id: &str, finalizers: &[&str]) -> String {
    let rest = id.split_once(SEPARATOR).map_or(id, |(rest, _)| rest);
    format!("{rest}{SEPARATOR}{}", finalizers_hash(finalizers))
}

/// Returns the hash of the finalizers in an ID; `None` if an earlier version wrote it.
pub fn finalizers_in(id: &str) -> Option<&str> {
    id.split_once(SEPARATOR).map(|(_, finalizers)| finalizers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_shows_the_finalizers_apart_from_the_rest() {
        let [none, one] = [&[][..], &["a"]].map(|finalizers| payload_id("rest", finalizers));
        assert_ne!(finalizers_in(&none), finalizers_in(&one));
        assert_eq!(finalizers_in(&one), Some(&*finalizers_hash(&["a"])));
        assert_eq!(replace_finalizers(&none, &["a"]), one);
        assert_ne!(payload_id("other", &[]), none);
        assert_eq!(finalizers_in("0a1b2c3d0a1b2c3d0a1b"), None, "of an earlier version");
    }
}
