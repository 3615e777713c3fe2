//! What is seen of an ApplicationSet.

use super::{Text, read};
use serde::de::IgnoredAny;

/// An ApplicationSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationSet {
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
    /// Whether it is going.
    pub deleting: bool,
}

impl ApplicationSet {
    /// Reads an ApplicationSet's JSON.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str) -> Result<Self, String> {
        let Text { metadata, .. } = read::<Text<IgnoredAny>>(text)?;
        Ok(Self {
            uid: metadata.uid,
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }
}
