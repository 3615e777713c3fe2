//! An index of the Applications of the basic pull model by managed cluster and by the stem of their works' names.

use crate::model::Application;
use crate::pull::work;
use crate::runtime::table::{Index, shared};
use ocm::object_ref::ObjectRef;
use std::sync::Arc;

/// The Applications of the basic pull model.
#[derive(Debug, Default)]
pub(super) struct PullApplications {
    /// The Applications by destination cluster.
    to: Index<Box<str>, ObjectRef>,
    /// The Applications by the stem of their works' names.
    by_stem: Index<Arc<str>, ObjectRef>,
}

impl PullApplications {
    /// Records a change of an Application.
    pub(super) fn index_change(
        &mut self,
        object_ref: &ObjectRef,
        before: Option<&Application>,
        after: Option<&Application>,
    ) {
        let [was, is] = [before, after].map(|it| it?.pull.as_deref()?.cluster.as_deref());
        if was != is {
            if let Some(cluster) = was {
                self.to.remove(cluster, object_ref);
            }
            if let Some(cluster) = is {
                self.to.insert(cluster.into(), object_ref.clone());
            }
        }
        let [was, is] = [before, after].map(|it| it.is_some_and(|application| application.pull.is_some()));
        let stem = work::stem_of(&object_ref.name);
        if is && !was {
            self.by_stem.insert(shared(stem, &object_ref.name), object_ref.clone());
        } else if was && !is {
            self.by_stem.remove(stem, object_ref);
        }
    }

    /// Returns the Applications whose works' names have this stem.
    pub(super) fn with_stem(&self, stem: &str) -> impl Iterator<Item = &ObjectRef> {
        self.by_stem.get(stem)
    }

    /// Returns the Applications whose destination is a managed cluster.
    pub(super) fn to(&self, cluster: &str) -> impl Iterator<Item = &ObjectRef> {
        self.to.get(cluster)
    }
}
