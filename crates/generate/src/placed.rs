//! Assigns each object its phase, wave and role in a sync, and its namespace on the cluster.

use super::annotations::Phase;
use super::hooks::{self, Role};
use super::namespaces;
use super::object::{self, Object};
use super::order;
use manifest::kinds::{GroupKind, Scope};
use std::collections::HashMap;

/// An object with its phase, wave and role in a sync, and with its namespace on the cluster.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The object, without a namespace if its kind is cluster-scoped.
    pub object: Box<Object>,
    /// The phase of a sync in which it is applied.
    pub phase: Phase,
    /// The wave in that phase.
    pub wave: i32,
    /// The role in that phase.
    pub role: Role,
    /// The scope of its kind.
    pub scope: Scope,
}

impl Placed {
    /// Returns a Namespace that is in no file.
    #[must_use]
    pub fn namespace(name: &str) -> Self {
        Self {
            object: Box::new(object::namespace(name)),
            phase: Phase::Sync,
            wave: 0,
            role: Role::Ordinary,
            scope: Scope::Cluster,
        }
    }

    /// Returns true if its kind needs a namespace, and neither the object nor the Application names one.
    #[must_use]
    pub fn lacks_namespace(&self) -> bool {
        self.scope == Scope::Namespaced && self.object.key.namespace.is_none()
    }
}

/// Assigns phases and namespaces to the objects of a folder: `cluster_scoped` are kinds besides the built-in ones and those whose CRD is in the folder,
/// `namespace` is the default.
#[must_use]
pub fn placed(objects: Vec<Box<Object>>, cluster_scoped: &[GroupKind], namespace: Option<&str>) -> Vec<Placed> {
    let mut placed = namespaces::in_namespaces(hooks::in_phases(objects), cluster_scoped, namespace);
    creators_first(&mut placed);
    placed
}

/// Moves each Namespace and CRD to the phase and wave of the first object that needs it.
fn creators_first(all: &mut [Placed]) {
    let mut namespaces: HashMap<Box<str>, (Phase, i32)> = HashMap::new();
    let mut kinds: HashMap<GroupKind, (Phase, i32)> = HashMap::new();
    for Placed {
        object, phase, wave, ..
    } in &*all
    {
        if order::is_namespace(object) {
            namespaces.insert(object.key.name.clone(), (*phase, *wave));
        } else if let Some(defined) = &object.defines {
            kinds.insert(defined.kind.clone(), (*phase, *wave));
        }
    }
    if namespaces.is_empty() && kinds.is_empty() {
        return;
    }
    for Placed {
        object, phase, wave, ..
    } in &*all
    {
        let when = (*phase, *wave);
        if let Some(first) = kinds.get_mut(&object.key.kind) {
            *first = when.min(*first);
        }
        let namespace = object.key.namespace.as_deref();
        if let Some(first) = namespace.and_then(|name| namespaces.get_mut(name)) {
            *first = when.min(*first);
        }
    }
    for placed in all {
        let object = &placed.object;
        let first = if order::is_namespace(object) {
            namespaces.get(&object.key.name)
        } else {
            object.defines.as_ref().and_then(|defined| kinds.get(&defined.kind))
        };
        if let Some(&first) = first {
            (placed.phase, placed.wave) = first;
            if placed.phase == Phase::PreSync {
                placed.role = Role::Hook;
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Parses objects from YAML and assigns phases and namespaces, without a default namespace, for the tests of later stages.
    pub(crate) fn placed(yaml: &[&str]) -> Vec<Placed> {
        let objects = yaml.iter().map(|yaml| Box::new(object::tests::object(yaml)));
        super::placed(objects.collect(), &[], None)
    }
}
