//! What is seen of a PlacementDecision.

use super::read;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Reads which managed clusters a PlacementDecision names from its JSON.
///
/// # Errors
/// With what is wrong with it, which the API server lets nobody write.
pub fn decision(text: &str) -> Result<BTreeSet<Arc<str>>, String> {
    #[derive(Deserialize)]
    struct Object {
        status: Option<Status>,
    }
    #[derive(Deserialize)]
    struct Status {
        decisions: Option<Vec<Decision>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Decision {
        #[serde(default)]
        cluster_name: String,
    }
    let status = read::<Object>(text)?.status;
    let decisions = status.and_then(|status| status.decisions).unwrap_or_default();
    let names = decisions.into_iter().map(|decision| decision.cluster_name);
    Ok(names.filter(|name| !name.is_empty()).map(Into::into).collect())
}
