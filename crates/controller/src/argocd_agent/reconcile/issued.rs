//! The record of certificates issued to agents: one Secret for each cluster in Argo CD's namespace, where no managed cluster may
//! write.
//!
//! The controller writes a certificate to this Secret first and returns it to the agent from there, so it knows every unexpired
//! certificate that an agent can have. The Secret also names the GitOpsCluster that last ran the agent: only that one can revoke
//! it.

use super::{authority, blocklist, gitops_with_agents};
use crate::cache::Cache;
use crate::cluster_secrets::OWNER;
use crate::gitopscluster::membership::{has_agent, has_given_up};
use crate::gitopscluster::ownership::Ownership;
use crate::model::AgentResource;
use crate::model::{GitOpsCluster, Object};
use crate::runtime::action::Write;
use jiff::Timestamp;
use ocm::argocd_agent as names;
use ocm::health::time;
use ocm::object_ref::ObjectRef;
use ocm::resources::SECRETS;
use pki::Recipe;
use serde_json::{Map, Value, json};

/// The maximum number of unexpired certificates of one cluster. An agent renews its certificate about every 19 hours, so it has
/// two.
pub(super) const MAX_CERTIFICATES: usize = 20;

/// A certificate that was issued to an agent.
pub(super) struct Issued<'i> {
    /// The UID of the request.
    pub(super) request: &'i str,
    /// The SHA-256 of the certificate in upper-case hex, as in argocd-agent.
    pub(super) fingerprint: &'i str,
    /// The time when it expires, in RFC 3339: such texts compare as times do.
    pub(super) until: &'i str,
    /// The certificate in base64 of PEM.
    pub(super) certificate: &'i Value,
}

/// Returns the Secret with the certificates of a cluster's agent.
pub(super) fn record<'i>(cache: &'i Cache, cluster: &str, argocd: &str) -> Option<&'i Object> {
    cache.object(AgentResource::Issued, &ObjectRef::new(argocd, &names::issued(cluster)))
}

/// Returns the certificates that such a Secret lists.
pub(super) fn certificates(record: &Object) -> impl Iterator<Item = Issued<'_>> {
    let all = record.object["certificates"].as_object().into_iter().flatten();
    all.filter_map(|(request, it)| {
        Some(Issued {
            request,
            fingerprint: it["fingerprint"].as_str()?,
            until: it["until"].as_str()?,
            certificate: &it["certificate"],
        })
    })
}

/// Returns the certificates that have not expired.
pub(super) fn unexpired(record: &Object, now: Timestamp) -> impl Iterator<Item = Issued<'_>> {
    let now = time(now);
    certificates(record).filter(move |it| *it.until > *now)
}

/// Returns when the last certificate of a cluster's agent expires.
pub(super) fn last_expiry<'i>(cache: &'i Cache, cluster: &str, argocd: &str) -> Option<&'i str> {
    certificates(record(cache, cluster, argocd)?).map(|it| it.until).max()
}

/// Returns the write that signs a request into the Secret of its cluster. The `resourceVersion` of the Secret keeps the limit
/// exact.
pub(super) fn sign(
    record: Option<&Object>,
    cluster: &str,
    owner: &ObjectRef,
    (argocd, now): (&str, Timestamp),
    recipe: Recipe,
) -> Write {
    let name = names::issued(cluster);
    let object_ref = ObjectRef::new(argocd, &name);
    let annotations = json!({OWNER: owner.to_string()});
    let write = match record {
        None => {
            let mut write = authority::secret(&name, argocd, names::ISSUED_TYPE);
            if let Write::Create { object, .. } = &mut write {
                object["metadata"]["annotations"] = annotations;
            }
            write
        }
        Some(record) => {
            let now = time(now);
            let expired = certificates(record).filter(|it| *it.until <= *now);
            let data: Map<_, _> = expired.map(|it| (it.request.to_owned(), Value::Null)).collect();
            let metadata = json!({
                "resourceVersion": record.version, "annotations": annotations, "labels": authority::labels(),
            });
            Write::Patch {
                resource: &SECRETS,
                object_ref,
                body: json!({"metadata": metadata, "data": data}),
            }
        }
    };
    Write::Generate {
        write: Box::new(write),
        recipe,
        into: "data",
    }
}

/// Returns the write that makes the GitOpsCluster that runs the agent now the one that can revoke it. Does not replace a
/// GitOpsCluster that already revokes it.
pub(super) fn claim(cache: &Cache, object_ref: &ObjectRef, cluster: &str, argocd: &str) -> Option<Write> {
    let record = record(cache, cluster, argocd).filter(|it| it.is_ours() && !it.deleting)?;
    let is_right = record.owner().as_ref() == Some(object_ref);
    (!is_right && revoked_by_owner(cache, record, cluster, argocd).is_none()).then(|| Write::Patch {
        resource: &SECRETS,
        object_ref: ObjectRef::new(argocd, &names::issued(cluster)),
        body: json!({
            "metadata": {"resourceVersion": record.version, "annotations": {OWNER: object_ref.to_string()}},
        }),
    })
}

/// Returns the GitOpsCluster that revokes the agent of a cluster: the one that last ran the agent, also during its deletion, or,
/// if no agent has ever had a certificate, one that selects the cluster while no other one runs its agent.
pub(super) fn revoker(cache: &Cache, cluster: &str, argocd: &str) -> Option<ObjectRef> {
    let record = record(cache, cluster, argocd);
    if let Some(owner) = record.and_then(|record| revoked_by_owner(cache, record, cluster, argocd)) {
        return Some(owner);
    }
    let mut all = gitops_with_agents(cache, argocd);
    if gitops_with_agents(cache, argocd).any(|(object_ref, it, _)| has_agent(cache, object_ref, it, cluster, argocd)) {
        return None;
    }
    let found = all.find(|(object_ref, it, desired)| {
        desired.revoked.contains(cluster) && cache.is_selected_by(&it.placement(object_ref), cluster)
    });
    found.map(|(object_ref, ..)| object_ref.clone())
}

/// Returns the GitOpsCluster that last ran the agent, if it revokes it.
fn revoked_by_owner(cache: &Cache, record: &Object, cluster: &str, argocd: &str) -> Option<ObjectRef> {
    let owner = record.owner()?;
    let it = cache.gitops_cluster(&owner)?;
    let is_revoked = it.spec.agent.as_ref().is_some_and(|it| it.revoked.contains(cluster));
    let is_elsewhere = matches!(Ownership::of(cache, &owner, it, argocd), Ownership::Elsewhere(_));
    (is_revoked && !is_elsewhere).then_some(owner)
}

/// The reason why the certificates of a cluster's agent are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blocked {
    /// The agent is revoked.
    Revoked,
    /// The agent was uninstalled from the cluster.
    Left,
}

/// Returns the reason why the certificates of a cluster's agent are refused, if they are. An agent counts as uninstalled only if
/// that is certain: its GitOpsCluster has certainly released the cluster, no other one runs the agent, and the add-on is deleted.
pub(super) fn blocked(cache: &Cache, cluster: &str, record: &Object, argocd: &str) -> Option<Blocked> {
    if revoked_by_owner(cache, record, cluster, argocd).is_some() {
        return Some(Blocked::Revoked);
    }
    let addon = cache.object(AgentResource::AddOns, &ObjectRef::new(cluster, names::ADDON));
    if addon.is_some_and(|it| !it.deleting) {
        return None;
    }
    let owner = record.owner()?;
    let is_given_up = match cache.gitops_cluster(&owner) {
        Some(it) => has_given_up(cache, &owner, it, cluster, argocd),
        None => cache.is_gitops_cluster_deleted(&owner),
    };
    let is_had = || {
        gitops_with_agents(cache, argocd).any(|(object_ref, it, _)| has_agent(cache, object_ref, it, cluster, argocd))
    };
    ((is_given_up || cache.is_deleted(cluster)) && !is_had()).then_some(Blocked::Left)
}

/// Returns all these Secrets with the names of their clusters.
pub(super) fn all(cache: &Cache) -> impl Iterator<Item = (&str, &ObjectRef, &Object)> {
    let all = cache.objects(AgentResource::Issued);
    all.filter_map(|(object_ref, it)| Some((names::cluster_of_issued(&object_ref.name)?, object_ref, it)))
}

/// Returns true if unexpired certificates that a GitOpsCluster leaves behind are not on the blocklist yet.
pub(super) fn is_pending(cache: &Cache, object_ref: &ObjectRef, argocd: &str, now: Timestamp) -> bool {
    let mut of_it = all(cache).filter(|(_, _, it)| it.owner().as_ref() == Some(object_ref));
    of_it.any(|(cluster, _, record)| {
        let is_open = unexpired(record, now).any(|it| !blocklist::has(cache, argocd, it.fingerprint));
        is_open && blocked(cache, cluster, record, argocd).is_some()
    })
}

/// Returns the write that deletes a Secret with only expired certificates. Keeps it while it shows who revokes the agent.
pub(super) fn expired(cache: &Cache, argocd: &str, now: Timestamp) -> Option<Write> {
    let mut old = all(cache).filter(|(cluster, _, record)| {
        unexpired(record, now).next().is_none() && revoked_by_owner(cache, record, cluster, argocd).is_none()
    });
    old.find_map(|(_, object_ref, record)| super::ensure_absent(&SECRETS, object_ref, record))
}

/// Returns the time when the first of these Secrets has only expired certificates, and so can be deleted.
pub(super) fn requeue_after(cache: &Cache, now: Timestamp) -> Option<Timestamp> {
    let until = all(cache).filter_map(|(_, _, record)| unexpired(record, now).map(|it| it.until).max());
    until.min()?.parse().ok()
}

/// Returns the clusters that a GitOpsCluster lists as revoked although another one runs the agent there.
pub(crate) fn revoked_but_run_by_others(
    cache: &Cache,
    object_ref: &ObjectRef,
    it: &GitOpsCluster,
    argocd: &str,
) -> Vec<String> {
    let revoked = it.spec.agent.iter().flat_map(|desired| &desired.revoked);
    let all = revoked.filter_map(|cluster| {
        let (owner, ..) = gitops_with_agents(cache, argocd)
            .find(|(object_ref, it, _)| has_agent(cache, object_ref, it, cluster, argocd))?;
        let had = record(cache, cluster, argocd).and_then(Object::owner);
        (owner != object_ref && had.as_ref() != Some(object_ref))
            .then(|| format!("{cluster} (of GitOpsCluster {owner})"))
    });
    all.collect()
}
