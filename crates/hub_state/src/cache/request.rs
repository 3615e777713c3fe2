//! The objects to reconcile.

use crate::model::Kind;
use primitives::object_ref::ObjectRef;
use runtime::queue::Refresh;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileRequest {
    pub kind: Kind,
    pub object_ref: ObjectRef,
    /// Argo CD's need to be asked for a refresh.
    pub refresh: Refresh,
}

impl ReconcileRequest {
    fn new(kind: Kind, object_ref: ObjectRef) -> Self {
        Self {
            kind,
            object_ref,
            refresh: Refresh::Unchanged,
        }
    }

    fn cluster_scoped(kind: Kind, name: &Arc<str>) -> Self {
        let (namespace, name) = ("".into(), Arc::clone(name));
        Self::new(kind, ObjectRef { namespace, name })
    }

    /// Returns the request for an Application whose state in Argo CD is up to date.
    pub fn application(object_ref: ObjectRef) -> Self {
        Self::new(Kind::Applications, object_ref)
    }

    /// Returns the request for the Argo CD of the hub.
    pub fn argocd(namespace: &Arc<str>) -> Self {
        Self::cluster_scoped(Kind::Namespace, namespace)
    }

    pub fn request(object_ref: ObjectRef) -> Self {
        Self::new(Kind::Requests, object_ref)
    }

    pub fn cluster(name: &Arc<str>) -> Self {
        Self::cluster_scoped(Kind::Clusters, name)
    }

    pub fn gitops(object_ref: ObjectRef) -> Self {
        Self::new(Kind::GitOpsClusters, object_ref)
    }

    pub fn gitops_all<'p>(object_refs: impl IntoIterator<Item = &'p ObjectRef>) -> impl Iterator<Item = Self> {
        object_refs.into_iter().cloned().map(Self::gitops)
    }

    pub fn set(object_ref: ObjectRef) -> Self {
        Self::new(Kind::ApplicationSets, object_ref)
    }
}
