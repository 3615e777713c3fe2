//! The model of a managed cluster's namespace.

use super::parse;
use ocm::hold::Hold;
use runtime::invalid_object::InvalidObject;

/// The hold of a managed cluster, from the annotations of its namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterHold(pub Hold);

impl ClusterHold {
    /// Reads the hold from the JSON of a namespace; none if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if the JSON is invalid.
    pub fn from_json(text: &str) -> Result<Option<Self>, InvalidObject> {
        Ok(Hold::from_namespace(&parse(text)?).map(Self))
    }
}
