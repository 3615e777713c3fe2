//! The indices of Applications: of the basic pull model by managed cluster and by the stem of their works' names, and of those that
//! an ApplicationSet generated.

use super::store::{Index, Indexed, Store, Update, shared};
use super::{Cache, Cached, ReconcileRequest};
use crate::model::{Application, Kind};
use crate::pull::work_name;
use jiff::Timestamp;
use primitives::object_ref::ObjectRef;
use std::sync::Arc;

#[derive(Debug, Default)]
pub struct ApplicationIndices {
    pub(super) pulled_to: Index<Box<str>, ObjectRef>,
    /// The Applications of the basic pull model by the stem of their works' names.
    pub(super) by_stem: Index<Arc<str>, ObjectRef>,
    pub(super) by_set: Index<ObjectRef, ObjectRef>,
    /// The generated Applications by the managed cluster in their destination, or else by their namespace.
    pub(super) generated_on: Index<Arc<str>, ObjectRef>,
}

impl Indexed for Application {
    type Key = ObjectRef;
    type Indices = ApplicationIndices;

    fn index(indices: &mut ApplicationIndices, object_ref: &ObjectRef, before: Option<&Self>, after: Option<&Self>) {
        let [old, new] = [before, after].map(|application| application?.pull.as_deref()?.cluster.clone());
        indices.pulled_to.replace(object_ref, old, new);
        let stem = work_name::stem_of(&object_ref.name);
        let [old, new] = [before, after].map(|application| {
            let name = application?.pull.as_ref().map(|_| &object_ref.name)?;
            Some(shared(stem, name))
        });
        indices.by_stem.replace(object_ref, old, new);
        let [old, new] = [before, after].map(|application| application?.set(object_ref));
        indices.by_set.replace(object_ref, old, new);
        let [old, new] = [before, after].map(|application| generated_on(object_ref, application?));
        indices.generated_on.replace(object_ref, old, new);
    }
}

impl Cached for Application {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, String> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.applications
    }

    fn before_update(cache: &mut Cache, _: Kind, update: &Update<ObjectRef, Self>) -> Vec<ReconcileRequest> {
        match update {
            Update::Set(..) => {}
            Update::Deleted(_) => cache.has_seen_deletion = true,
            Update::Listed(_) => cache.has_seen_deletion = false,
        }
        Vec::new()
    }

    fn put(cache: &mut Cache, kind: Kind, key: &ObjectRef, mut value: Option<Self>) -> Vec<ReconcileRequest> {
        if let Some(application) = &mut value {
            match &mut application.generated {
                Some(generated) if cache.resources.is_some() => cache.keep(&mut generated.resources),
                generated => *generated = None,
            }
        }
        cache.put(kind, key, value)
    }
}

fn generated_on(object_ref: &ObjectRef, application: &Application) -> Option<Arc<str>> {
    application.generated.as_ref()?;
    let cluster = application.cluster().map(Arc::from);
    Some(cluster.unwrap_or_else(|| Arc::clone(&object_ref.namespace)))
}
