//! The Argo CD that a GitOpsCluster is for, and whether the controller of this Argo CD serves and holds it.

use crate::cache::Cache;
use crate::model::GitOpsCluster;
use ocm::gitops_cluster::{SHARED_FINALIZER, namespace_of_finalizer};
use ocm::object_ref::ObjectRef;

/// The state of a GitOpsCluster for this controller: served, or the reason why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The controller serves it.
    Served,
    /// Its Argo CD is in this other namespace.
    Elsewhere(String),
    /// It is outside Argo CD's namespace, and that namespace is not open to other namespaces.
    Unauthorised,
    /// Its Placement is in this other namespace, according to `placementRef`.
    WrongPlacement(String),
}

impl Ownership {
    pub(crate) fn of(cache: &Cache, object_ref: &ObjectRef, it: &GitOpsCluster, argocd: &str) -> Self {
        let desired = argocd_of(object_ref, it);
        let placement = it.spec.placement_namespace.as_deref();
        if desired != argocd {
            return Self::Elsewhere(desired.to_owned());
        }
        if *object_ref.namespace != *argocd && !cache.allows_other_namespaces() {
            return Self::Unauthorised;
        }
        match placement.filter(|namespace| **namespace != *object_ref.namespace) {
            Some(namespace) => Self::WrongPlacement(namespace.to_owned()),
            None => Self::Served,
        }
    }
}

/// Returns the namespace of the Argo CD that a GitOpsCluster is for.
pub(super) fn argocd_of<'i>(object_ref: &'i ObjectRef, it: &'i GitOpsCluster) -> &'i str {
    it.spec.argocd.as_deref().unwrap_or(&object_ref.namespace)
}

/// Returns true if a GitOpsCluster has the finalizer of the controller for the Argo CD in this namespace.
pub(super) fn has_own_finalizer(it: &GitOpsCluster, argocd: &str) -> bool {
    let mut namespaces = it.finalizers.iter().filter_map(|it| namespace_of_finalizer(it));
    namespaces.any(|namespace| namespace == argocd)
}

pub(super) fn has_shared_finalizer(it: &GitOpsCluster) -> bool {
    it.finalizers.iter().any(|finalizer| finalizer == SHARED_FINALIZER)
}

/// Returns true if the controller of the Argo CD in this namespace holds a GitOpsCluster by a finalizer: by its own one, or by
/// the shared one of earlier versions if the GitOpsCluster is for this Argo CD. If it is for another Argo CD, the owner of the
/// shared finalizer is unknown, and the controller of the other Argo CD removes it.
pub(crate) fn is_held(object_ref: &ObjectRef, it: &GitOpsCluster, argocd: &str) -> bool {
    has_own_finalizer(it, argocd) || has_shared_finalizer(it) && argocd_of(object_ref, it) == argocd
}

/// Returns true if another controller has to remove the objects created for a GitOpsCluster outside Argo CD's namespace: the
/// GitOpsCluster is for another Argo CD, and either never was for this one, or already has the finalizer of another controller.
pub(crate) fn is_anothers(object_ref: &ObjectRef, it: &GitOpsCluster, argocd: &str) -> bool {
    let mut namespaces = it.finalizers.iter().filter_map(|it| namespace_of_finalizer(it));
    let is_for_this = argocd_of(object_ref, it) == argocd;
    !is_for_this && (!has_own_finalizer(it, argocd) || namespaces.any(|namespace| namespace != argocd))
}
