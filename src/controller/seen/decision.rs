//! What is seen of a PlacementDecision.

use super::{Text, read};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The label that says whose a PlacementDecision is.
const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";

/// A PlacementDecision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The Placement that it is of; it may be of none.
    pub placement: Arc<str>,
    /// The managed clusters that it names.
    pub clusters: BTreeSet<Arc<str>>,
}

impl Decision {
    /// Reads a PlacementDecision's JSON.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Status {
            decisions: Option<Vec<Named>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            #[serde(default)]
            cluster_name: String,
        }
        let Text { metadata, status } = read::<Text<Status>>(text)?;
        let decisions = status.and_then(|status| status.decisions).unwrap_or_default();
        let names = decisions.into_iter().map(|decision| decision.cluster_name);
        Ok(Self {
            placement: metadata.label(PLACEMENT).unwrap_or_default().into(),
            clusters: names.filter(|name| !name.is_empty()).map(Into::into).collect(),
        })
    }
}
