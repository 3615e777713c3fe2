//! The indices of Applications: of the basic pull model by managed cluster and by the stem of their works' names, and of those that
//! an ApplicationSet generated.

use crate::model::Application;
use crate::pull::work_name;
use primitives::object_ref::ObjectRef;
use runtime::store::{Index, Indexed, shared};
use std::sync::Arc;

/// The indices of Applications.
#[derive(Debug, Default)]
pub struct ApplicationIndices {
    /// The Applications of the basic pull model by destination cluster.
    pub(super) pulled_to: Index<Box<str>, ObjectRef>,
    /// The Applications of the basic pull model by the stem of their works' names.
    pub(super) by_stem: Index<Arc<str>, ObjectRef>,
    /// The Applications that each ApplicationSet generated.
    pub(super) by_set: Index<ObjectRef, ObjectRef>,
    /// The generated Applications by the managed cluster in their destination, or else by their namespace.
    pub(super) generated_on: Index<Arc<str>, ObjectRef>,
}

impl Indexed for Application {
    type Key = ObjectRef;
    type Indices = ApplicationIndices;

    /// Returns false: conditions of others and every field of the pull model may differ.
    fn is_same(_: Option<&Self>, _: Option<&Self>) -> bool {
        false
    }

    fn index(indices: &mut ApplicationIndices, object_ref: &ObjectRef, before: Option<&Self>, after: Option<&Self>) {
        let [old, new] = [before, after].map(|it| it?.pull.as_deref()?.cluster.as_deref());
        if old != new {
            if let Some(cluster) = old {
                indices.pulled_to.remove(cluster, object_ref);
            }
            if let Some(cluster) = new {
                indices.pulled_to.insert(cluster.into(), object_ref.clone());
            }
        }
        let [was_pulled, is_pulled] = [before, after].map(|it| it.is_some_and(|it| it.pull.is_some()));
        let stem = work_name::stem_of(&object_ref.name);
        if is_pulled && !was_pulled {
            indices
                .by_stem
                .insert(shared(stem, &object_ref.name), object_ref.clone());
        } else if was_pulled && !is_pulled {
            indices.by_stem.remove(stem, object_ref);
        }
        let [old, new] = [before, after].map(|it| generated(object_ref, it?));
        if old == new {
            return;
        }
        if let Some((set, cluster)) = old {
            indices.by_set.remove(&set, object_ref);
            indices.generated_on.remove(&cluster, object_ref);
        }
        if let Some((set, cluster)) = new {
            indices.by_set.insert(set, object_ref.clone());
            indices.generated_on.insert(cluster, object_ref.clone());
        }
    }
}

/// Returns the ApplicationSet of a generated Application, and its managed cluster or else its namespace.
fn generated(object_ref: &ObjectRef, application: &Application) -> Option<(ObjectRef, Arc<str>)> {
    let set = application.set(object_ref)?;
    let cluster = application.cluster().map(Arc::from);
    Some((set, cluster.unwrap_or_else(|| Arc::clone(&object_ref.namespace))))
}
