//! Reads the MulticlusterApplicationSetReport of an ApplicationSet, as far as needed to compare it with the desired one.

mod statuses;

use crate::json::{own, text_at};
use manifest::value::Value as Borrowed;
use runtime::metadata::Metadata;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
pub use statuses::{ConditionEntry, Entry, ResourceEntry, Statuses, Summary};
use std::sync::Arc;

/// The label that names the ApplicationSet of a report, cut to the length of a label value.
pub const HOSTING: &str = ocm::pull_model::SET;
/// The annotation that describes what the report leaves out.
pub const TRUNCATED: &str = "argocd-ocm-cmp.github.io/truncated";

/// An object on a managed cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    pub name: Box<str>,
    pub kind: Box<str>,
    /// The namespace of the object on the cluster; empty for a cluster-scoped object.
    pub namespace: Box<str>,
    pub api_version: Box<str>,
}

impl Resource {
    /// Reads these objects, in the format of both an Application's status and a work's status, and sorts them.
    pub(crate) fn sorted<'v>(objects: impl Iterator<Item = &'v Borrowed<'v>>) -> Arc<[Self]> {
        let resources = objects.map(|object| {
            let text = |path| own(object, path).unwrap_or_default();
            Self {
                api_version: match text_at(object, "/group") {
                    None => text("/version"),
                    Some(group) => format!("{group}/{}", text("/version")).into(),
                },
                kind: text("/kind"),
                namespace: text("/namespace"),
                name: text("/name"),
            }
        });
        let mut resources: Vec<_> = resources.collect();
        resources.sort_unstable();
        resources.into()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExistingReport {
    pub uid: Box<str>,
    pub version: Box<str>,
    /// The fingerprint of the content; `None` if the content cannot be that of a report.
    pub fingerprint: Option<[u8; 32]>,
    pub owners: Vec<Value>,
    pub deleting: bool,
}

impl ExistingReport {
    pub fn from_json(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Object<'t> {
            metadata: Metadata,
            #[serde(borrow)]
            statuses: Option<&'t serde_json::value::RawValue>,
        }
        let Object { metadata, statuses } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let (hosting, cut) = (metadata.label(HOSTING), metadata.annotation(TRUNCATED));
        let statuses = statuses.map_or(Ok(Statuses::default()), |text| serde_json::from_str(text.get()));
        let fingerprint = |statuses| fingerprint(hosting, cut, &statuses);
        Ok(Self {
            fingerprint: statuses.ok().map(fingerprint),
            deleting: metadata.deletion_timestamp.is_some(),
            uid: metadata.uid,
            version: metadata.resource_version,
            owners: metadata.owner_references,
        })
    }

    /// Returns true if Kubernetes deletes the report with the owner of this UID.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner["uid"] == uid)
    }
}

/// Returns the fingerprint of a report's label, annotation and statuses.
pub fn fingerprint(hosting: Option<&str>, cut: Option<&str>, statuses: &Statuses<'_>) -> [u8; 32] {
    let text = serde_json::to_vec(&(hosting, cut, statuses)).expect("texts and lists of them are JSON");
    Sha256::digest(text).into()
}
