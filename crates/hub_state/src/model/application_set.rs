//! The model of an ApplicationSet.

use super::{Text, parse};
use runtime::invalid_object::InvalidObject;
use serde::de::IgnoredAny;

/// An ApplicationSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationSet {
    /// The UID, which distinguishes it from an earlier object of the same name.
    pub uid: Box<str>,
    /// True if the ApplicationSet has a deletion timestamp.
    pub deleting: bool,
}

impl ApplicationSet {
    /// Reads the JSON of an ApplicationSet.
    ///
    /// # Errors
    ///
    /// Returns an error if the JSON or a field is invalid.
    pub fn from_json(text: &str) -> Result<Self, InvalidObject> {
        let Text { metadata, .. } = parse::<Text<IgnoredAny>>(text)?;
        Ok(Self {
            uid: metadata.uid,
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }
}
