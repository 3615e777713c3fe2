//! The writes of the Secrets that record the certificates issued to agents.

use super::shared::{ensure, ensure_absent};
use super::{authority, blocklist};
use assignment::GitOpsClusterRef;
use assignment::certificates::{is_expired, record, records, revoked_by_owner, unexpired};
use hub_state::annotations::OWNER;
use hub_state::{Cache, Kind, Object};
use jiff::Timestamp;
use ocm::argocd_agent as names;
use pki::{CLOCK_SKEW, Recipe};
use primitives::object_ref::ObjectRef;
use primitives::time_math::after;
use runtime::action::Write;
use serde_json::{Value, json};

/// The maximum number of unexpired certificates of one cluster. An agent renews its certificate about every 19 hours, so it has
/// two.
pub const MAX_CERTIFICATES: usize = 20;

/// Returns the write that signs a request into the Secret of its cluster. The `resourceVersion` of the Secret keeps the limit
/// exact.
pub(super) fn sign(
    record: Option<&Object>,
    cluster: &str,
    owner: &ObjectRef,
    (argocd, now): (&str, Timestamp),
    recipe: Recipe,
) -> Write {
    let version = record.map(|record| &*record.version);
    let mut write = authority::secret(&names::issued(cluster), argocd, version, recipe);
    if let Some(object) = write.body_mut() {
        object["metadata"]["annotations"] = json!({OWNER: owner.to_string()});
        let all = record.into_iter().flat_map(|record| &record.certificates);
        let expired = all.filter(|certificate| is_expired(certificate, now));
        expired.for_each(|certificate| object["data"][&*certificate.request] = Value::Null);
    }
    write
}

/// Returns the write that makes this GitOpsCluster, which runs the agent, the one that can revoke it, unless the recorded one
/// already revokes it.
pub(super) fn claim(gitops: GitOpsClusterRef<'_>, cluster: &str) -> Option<Write> {
    let (cache, object_ref) = (gitops.cache, gitops.object_ref);
    let record = record(cache, cluster).filter(|record| record.is_ours())?;
    let is_recorded = record.owner().as_ref() == Some(object_ref);
    let claim = (!is_recorded && revoked_by_owner(cache, record, cluster).is_none()).then(|| {
        let annotations = json!({OWNER: object_ref.to_string()});
        let name = names::issued(cluster);
        json!({"metadata": {"namespace": **cache.argocd(), "name": name, "annotations": annotations}})
    });
    ensure(cache, Kind::IssuedCertificates, claim?)
}

/// Returns true if unexpired certificates that a GitOpsCluster leaves behind are not on the blocklist yet.
pub(super) fn is_pending(gitops: GitOpsClusterRef<'_>, now: Timestamp) -> bool {
    let cache = gitops.cache;
    let mut of_it = records(cache).filter(|(_, _, record)| record.owner().as_ref() == Some(gitops.object_ref));
    of_it.any(|(cluster, _, record)| {
        let is_open = unexpired(record, now).any(|certificate| !blocklist::has(cache, &certificate.fingerprint));
        is_open && assignment::for_cluster(cache, cluster).blocked.is_some()
    })
}

/// Returns the write that deletes a Secret with only expired certificates. Keeps it while it shows who revokes the agent.
pub(super) fn expired(cache: &Cache, now: Timestamp) -> Option<Write> {
    let mut old = records(cache).filter(|(cluster, _, record)| {
        unexpired(record, now).next().is_none() && revoked_by_owner(cache, record, cluster).is_none()
    });
    old.find_map(|(_, object_ref, record)| ensure_absent(Kind::IssuedCertificates, object_ref, record))
}

/// Returns the time when the first of these Secrets has only expired certificates, and so can be deleted.
pub(super) fn requeue_after(cache: &Cache, now: Timestamp) -> Option<Timestamp> {
    let last = records(cache)
        .filter_map(|(_, _, record)| unexpired(record, now).map(|certificate| certificate.not_after).max());
    last.min().map(|at| after(at, CLOCK_SKEW))
}

/// Returns the clusters that a GitOpsCluster lists as revoked although another one runs the agent there.
pub fn revoked_but_run_by_others(gitops: GitOpsClusterRef<'_>) -> Vec<String> {
    let revoked = gitops.object.spec.agent.iter().flat_map(|desired| &desired.revoked);
    let all = revoked.filter_map(|cluster| {
        let assignment = assignment::for_cluster(gitops.cache, cluster);
        let owner = assignment.agent_owner.as_ref()?;
        let had = record(gitops.cache, cluster).and_then(Object::owner);
        (owner != gitops.object_ref && had.as_ref() != Some(gitops.object_ref))
            .then(|| format!("{cluster} (of GitOpsCluster {owner})"))
    });
    all.collect()
}
