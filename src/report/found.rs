//! The report that is there, as far as it must be known to see whether it is as it should be.

use super::text::Statuses;
use super::{CUT, HOSTING};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What tells a report from one that says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// A report that is there.
#[derive(Clone, Debug)]
pub struct Found {
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
    /// Which form of it this is.
    pub version: Box<str>,
    /// What it says; nothing where that is nothing that a report could say.
    pub fingerprint: Option<Fingerprint>,
    /// Its owners.
    pub owners: Vec<Value>,
    /// Whether it is going.
    pub deleting: bool,
}

impl Found {
    /// Reads a report's JSON.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Object<'t> {
            metadata: Metadata,
            #[serde(borrow)]
            statuses: Option<&'t serde_json::value::RawValue>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            #[serde(default)]
            uid: Box<str>,
            #[serde(default)]
            resource_version: Box<str>,
            deletion_timestamp: Option<serde::de::IgnoredAny>,
            labels: Option<BTreeMap<String, String>>,
            annotations: Option<BTreeMap<String, String>>,
            owner_references: Option<Vec<Value>>,
        }
        let Object { metadata, statuses } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let marked = |marks: &Option<BTreeMap<String, String>>, key| marks.as_ref()?.get(key).cloned();
        let hosting = marked(&metadata.labels, HOSTING);
        let cut = marked(&metadata.annotations, CUT);
        let statuses = statuses.map_or(Ok(Statuses::default()), |text| serde_json::from_str(text.get()));
        let fingerprint = |statuses| fingerprint(hosting.as_deref(), cut.as_deref(), &statuses);
        Ok(Self {
            uid: metadata.uid,
            version: metadata.resource_version,
            fingerprint: statuses.ok().map(fingerprint),
            owners: metadata.owner_references.unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// Whether it goes with what has this uid.
    pub(super) fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner["uid"] == uid)
    }
}

/// What a report says, by its label, its annotation and its statuses.
pub(super) fn fingerprint(hosting: Option<&str>, cut: Option<&str>, statuses: &Statuses<'_>) -> Fingerprint {
    let mut hasher = Hasher(Sha256::new());
    serde_json::to_writer(&mut hasher, &(hosting, cut, statuses)).expect("texts and lists of them are JSON");
    Fingerprint(hasher.0.finalize().into())
}

struct Hasher(Sha256);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
