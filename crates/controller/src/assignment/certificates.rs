//! The record of certificates issued to agents: one Secret for each cluster in Argo CD's namespace, where no managed cluster may
//! write.
//!
//! The controller writes a certificate to this Secret first and returns it to the agent from there, so it knows every unexpired
//! certificate that an agent can have. The Secret also names the GitOpsCluster that last ran the agent: only that one can revoke
//! it.

use super::{GitOpsClusterRef, ServingState};
use crate::cache::Cache;
use crate::model::{AgentResource, Blocked, IssuedCertificate, Object};
use jiff::Timestamp;
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;

/// Returns the Secret with the certificates of a cluster's agent.
pub(crate) fn record<'i>(cache: &'i Cache, cluster: &str) -> Option<&'i Object> {
    cache.object(
        AgentResource::IssuedCertificates,
        &ObjectRef::new(cache.argocd(), &names::issued(cluster)),
    )
}

/// Returns all these Secrets with the names of their clusters.
pub(crate) fn records(cache: &Cache) -> impl Iterator<Item = (&str, &ObjectRef, &Object)> {
    let all = cache.objects(AgentResource::IssuedCertificates);
    all.filter_map(|(object_ref, it)| Some((names::cluster_of_issued(&object_ref.name)?, object_ref, it)))
}

/// Returns the certificates of a record that have not expired.
pub(crate) fn unexpired(record: &Object, now: Timestamp) -> impl Iterator<Item = &IssuedCertificate> {
    record.certificates().iter().filter(move |it| it.not_after > now)
}

/// Returns the time when the last certificate of a cluster's agent expires.
pub(crate) fn last_expiry(cache: &Cache, cluster: &str) -> Option<Timestamp> {
    record(cache, cluster)?
        .certificates()
        .iter()
        .map(|it| it.not_after)
        .max()
}

/// Returns the GitOpsCluster that last ran the agent, if it revokes it. A GitOpsCluster in deletion still revokes the agent.
pub(crate) fn revoked_by_owner(cache: &Cache, record: &Object, cluster: &str) -> Option<ObjectRef> {
    let owner = record.owner()?;
    let gitops = GitOpsClusterRef::get(cache, &owner)?;
    let agent = gitops.object.spec.agent.as_ref();
    let is_revoked = agent.is_some_and(|agent| agent.revoked.contains(cluster));
    let is_elsewhere = matches!(gitops.serving_state(), ServingState::Elsewhere(_));
    (is_revoked && !is_elsewhere).then_some(owner)
}

/// Returns the reason why the certificates of a cluster's agent are refused, if they are; `is_served` is true if a GitOpsCluster runs
/// the agent. An agent counts as uninstalled only if that is certain: its GitOpsCluster has certainly released the cluster, no
/// other one runs the agent, and the add-on is deleted.
pub(super) fn blocked(cache: &Cache, cluster: &str, record: &Object, is_served: bool) -> Option<Blocked> {
    if revoked_by_owner(cache, record, cluster).is_some() {
        return Some(Blocked::Revoked);
    }
    let addon = cache.object(AgentResource::AddOns, &ObjectRef::new(cluster, names::ADDON));
    if addon.is_some_and(|it| !it.deleting) {
        return None;
    }
    let owner = record.owner()?;
    let has_released = match GitOpsClusterRef::get(cache, &owner) {
        Some(gitops) => gitops.has_released_agent(cluster),
        None => cache.is_gitops_cluster_deleted(&owner),
    };
    ((has_released || cache.is_deleted(cluster)) && !is_served).then_some(Blocked::Uninstalled)
}
