//! The identity of an object: kind, namespace and name.

use crate::kinds::GroupKind;
use std::fmt;
use std::sync::Arc;

/// The identity of an object, unique within an Application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// The API group and kind; the version does not distinguish objects.
    pub kind: GroupKind,
    /// The namespace, if any; shared, because most objects of a folder have the same.
    pub namespace: Option<Arc<str>>,
    /// The name.
    pub name: Box<str>,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}
