//! The lists of a policy: globs, of which any may match.

use ocm::glob::{Glob, GlobError};
use std::fmt;

/// A glob, or a literal text.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    /// The glob; `None` for a literal text.
    glob: Option<Glob>,
}

impl Pattern {
    pub(super) fn new(text: &str) -> Result<Self, GlobError> {
        let glob = if text.contains(['*', '?', '[', '{', '\\']) {
            Some(Glob::new(text)?)
        } else {
            None
        };
        Ok(Self {
            text: text.to_owned(),
            glob,
        })
    }

    pub(super) fn is_literal(&self) -> bool {
        self.glob.is_none()
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        match &self.glob {
            Some(glob) => glob.matches(text),
            None => self.text == text,
        }
    }

    /// Returns true if the pattern certainly matches everything that `other` matches.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.text == "*" || self.text == other.text || (other.is_literal() && self.matches(&other.text))
    }
}

/// A list of patterns, of which any may match.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns(pub(super) Vec<Pattern>);

impl Patterns {
    pub(super) fn matches(&self, text: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(text))
    }

    /// Returns true if one of them matches everything.
    pub(super) fn are_all(&self) -> bool {
        self.0.iter().any(|pattern| pattern.text == "*")
    }

    /// Returns true if the list contains `text` literally.
    pub(super) fn name(&self, text: &str) -> bool {
        self.0
            .iter()
            .any(|pattern| pattern.is_literal() && pattern.text == text)
    }
}

impl fmt::Display for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, pattern) in self.0.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{}", pattern.text)?;
        }
        Ok(())
    }
}
