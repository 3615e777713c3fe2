//! What is seen of a managed cluster.

use super::{Text, read};
use crate::cluster_secret::Labels;
use serde::Deserialize;

/// Whether the hub hears from a managed cluster, as OCM says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Its agent is heard.
    Heard,
    /// Its agent is silent.
    Silent,
    /// Its agent says that its API server is not well.
    Unwell,
}

/// A managed cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
    /// Whether the hub hears from it.
    pub reach: Reach,
    /// Its labels.
    pub labels: Labels,
    /// Whether it is going.
    pub deleting: bool,
}

impl Reach {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Heard, Self::Silent, Self::Unwell];
}

impl Cluster {
    /// Reads a ManagedCluster's JSON. One that has never been heard of has not joined, which is not silence.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Status {
            conditions: Option<Vec<Available>>,
        }
        #[derive(Deserialize)]
        struct Available {
            #[serde(rename = "type")]
            kind: String,
            status: String,
        }
        let Text { metadata, status } = read::<Text<Status>>(text)?;
        let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
        let mut conditions = conditions.iter();
        let available = conditions.find(|condition| condition.kind == "ManagedClusterConditionAvailable");
        Ok(Self {
            uid: metadata.uid,
            reach: match available.map(|available| &*available.status) {
                Some("Unknown") => Reach::Silent,
                Some("False") => Reach::Unwell,
                _ => Reach::Heard,
            },
            labels: Labels::of(&metadata.labels.unwrap_or_default()),
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }
}
