//! The limits of texts in conditions and Events.

use manifest::text::{is_unprintable, without_middle};
use std::borrow::Cow;

/// The maximum length of a text that is kept, in bytes.
pub const TEXT_MAX: usize = 512;

/// Shortens a text to the limit for a condition, and replaces line breaks and other unprintable characters.
pub fn bounded(text: String) -> String {
    let text = if text.contains(is_unprintable) {
        text.split(is_unprintable)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    } else {
        text
    };
    match without_middle(&text, TEXT_MAX) {
        Cow::Owned(shorter) => shorter,
        Cow::Borrowed(_) => text,
    }
}
