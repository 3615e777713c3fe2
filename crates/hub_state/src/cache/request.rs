//! The objects to reconcile.

use crate::model::Kind;
use primitives::object_ref::ObjectRef;
use runtime::queue::Refresh;
use std::sync::Arc;

/// An object to reconcile because of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconcileRequest {
    /// The kind of the object.
    pub kind: Kind,
    /// The namespace and name of the object.
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

    /// Returns the request for a CertificateSigningRequest.
    pub fn request(object_ref: ObjectRef) -> Self {
        Self::new(Kind::Requests, object_ref)
    }

    /// Returns the request for a ManagedCluster.
    pub fn cluster(name: &Arc<str>) -> Self {
        Self::cluster_scoped(Kind::Clusters, name)
    }

    /// Returns the request for a GitOpsCluster.
    pub fn gitops(object_ref: ObjectRef) -> Self {
        Self::new(Kind::GitOpsClusters, object_ref)
    }

    /// Returns the requests for these GitOpsClusters.
    pub fn gitops_all<'p>(object_refs: impl IntoIterator<Item = &'p ObjectRef>) -> impl Iterator<Item = Self> {
        object_refs.into_iter().cloned().map(Self::gitops)
    }

    /// Returns the request for an ApplicationSet.
    pub fn set(object_ref: ObjectRef) -> Self {
        Self::new(Kind::ApplicationSets, object_ref)
    }
}
