//! The record of certificates issued to agents: one Secret for each cluster in Argo CD's namespace, where no managed cluster may
//! write.
//!
//! The controller writes a certificate to this Secret first and returns it to the agent from there, so it knows every unexpired
//! certificate that an agent can have. The Secret also names the GitOpsCluster that last ran the agent: only that one can revoke
//! it.

use super::gitops::{GitOpsClusterRef, has_released_agent};
use hub_state::{Cache, IssuedCertificate, Kind, Object};
use jiff::Timestamp;
use ocm::argocd_agent as names;
use pki::CLOCK_SKEW;
use primitives::object_ref::ObjectRef;
use primitives::time_math::before;

/// Returns the Secret with the certificates of a cluster's agent.
pub fn record<'i>(cache: &'i Cache, cluster: &str) -> Option<&'i Object> {
    cache.object(
        Kind::IssuedCertificates,
        &ObjectRef::new(cache.argocd(), &names::issued(cluster)),
    )
}

/// Returns all these Secrets with the names of their clusters.
pub fn records(cache: &Cache) -> impl Iterator<Item = (&str, &ObjectRef, &Object)> {
    let all = cache.objects(Kind::IssuedCertificates);
    all.filter_map(|(object_ref, record)| Some((names::cluster_of_issued(&object_ref.name)?, object_ref, record)))
}

/// Returns true if a certificate has expired by every clock: that of a principal may be behind ours.
pub fn is_expired(certificate: &IssuedCertificate, now: Timestamp) -> bool {
    certificate.not_after <= before(now, CLOCK_SKEW)
}

pub fn unexpired(record: &Object, now: Timestamp) -> impl Iterator<Item = &IssuedCertificate> {
    record
        .certificates
        .iter()
        .filter(move |certificate| !is_expired(certificate, now))
}

/// Returns the GitOpsCluster that last ran the agent, if it revokes it. A GitOpsCluster in deletion still revokes the agent.
pub fn revoked_by_owner(cache: &Cache, record: &Object, cluster: &str) -> Option<ObjectRef> {
    let owner = record.owner()?;
    let gitops = GitOpsClusterRef::get(cache, &owner)?;
    (gitops.revokes(cluster) && !gitops.has_moved()).then_some(owner)
}

/// Returns true if the agent of a cluster that no GitOpsCluster runs any more was certainly uninstalled: its GitOpsCluster has
/// released it or the cluster was deleted, and the add-on is deleted.
pub(super) fn is_uninstalled(cache: &Cache, cluster: &str, record: &Object) -> bool {
    let addon = cache.object(Kind::AddOns, &ObjectRef::new(cluster, names::ADDON));
    let has_released = |owner| has_released_agent(cache, &owner, cluster) || cache.is_deleted(cluster);
    addon.is_none_or(|addon| addon.deleting) && record.owner().is_some_and(has_released)
}
