//! The environment, as a value.

use std::collections::BTreeMap;

/// The environment variables of a process, by name.
pub type Env = BTreeMap<String, String>;
