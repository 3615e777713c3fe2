//! What is done to texts that somebody else has written, before they are kept or shown.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use std::borrow::Cow;

/// The beginning of a text that has more than `max` bytes, marked as such; it has no more than that either.
#[must_use]
pub fn shortened(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let mut ends = (0..=max.saturating_sub('…'.len_utf8())).rev();
    let end = ends.find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_only_if_it_is_too_long() {
        assert_eq!(shortened("äöü", 6), "äöü");
        assert_eq!(shortened("äöüä", 6), "ä…");
        assert_eq!(shortened("abcdefg", 6), "abc…");
        assert!(matches!(shortened("abcdef", 6), Cow::Borrowed(_)));
    }
}
