//! The certificates that agents have been issued: a Secret for each cluster in Argo CD's namespace, where no managed cluster may write.
//!
//! A certificate is written there first and handed out from there, so that every certificate that an agent can have is known until it
//! expires. The Secret also says which GitOpsCluster had the agent last: only that one can revoke it.

use super::{asking, authority, blocklist};
use crate::agent::names;
use crate::cluster_secret::OWNER;
use crate::controller::action::Write;
use crate::controller::index::Index;
use crate::controller::promises::gitopscluster::{Standing, gives_up, has_agent};
use crate::controller::resources::SECRETS;
use crate::controller::seen::{GitOpsCluster, Object, Place};
use crate::controller::watches::Kept;
use crate::pki::Recipe;
use crate::status::time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The most certificates of one cluster that have not expired. An agent renews its own about once in 19 hours, so it has two.
pub(super) const LIMIT: usize = 20;

/// A certificate that was issued to an agent.
pub(super) struct Issued<'i> {
    /// The UID of the request.
    pub(super) request: &'i str,
    /// The SHA-256 of the certificate in upper-case hex, as argocd-agent has it.
    pub(super) fingerprint: &'i str,
    /// When it expires, in RFC 3339: such texts compare as times do.
    pub(super) until: &'i str,
    /// The certificate in base64 of PEM.
    pub(super) certificate: &'i Value,
}

/// Returns the Secret with the certificates of a cluster's agent.
pub(super) fn record<'i>(index: &'i Index, cluster: &str, argocd: &str) -> Option<&'i Object> {
    index.object(Kept::Issued, &Place::new(argocd, &names::issued(cluster)))
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
pub(super) fn good(record: &Object, now: Timestamp) -> impl Iterator<Item = Issued<'_>> {
    let now = time(now);
    certificates(record).filter(move |it| *it.until > *now)
}

/// Returns when the last certificate of a cluster's agent expires.
pub(super) fn until<'i>(index: &'i Index, cluster: &str, argocd: &str) -> Option<&'i str> {
    certificates(record(index, cluster, argocd)?).map(|it| it.until).max()
}

/// Returns the write that signs a request into the Secret of its cluster. Its `resourceVersion` keeps the limit exact.
pub(super) fn sign(
    record: Option<&Object>,
    cluster: &str,
    owner: &Place,
    (argocd, now): (&str, Timestamp),
    recipe: Recipe,
) -> Write {
    let name = names::issued(cluster);
    let place = Place::new(argocd, &name);
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
                place,
                body: json!({"metadata": metadata, "data": data}),
            }
        }
    };
    Write::Make {
        write: Box::new(write),
        recipe,
        into: "data",
    }
}

/// Returns the write by which the GitOpsCluster that has the agent now becomes the one that can revoke it. One that revokes it already
/// is not replaced.
pub(super) fn claim(index: &Index, place: &Place, cluster: &str, argocd: &str) -> Option<Write> {
    let record = record(index, cluster, argocd).filter(|it| it.is_ours() && !it.deleting)?;
    let is_right = record.owner().as_ref() == Some(place);
    (!is_right && revoked_by_owner(index, record, cluster, argocd).is_none()).then(|| Write::Patch {
        resource: &SECRETS,
        place: Place::new(argocd, &names::issued(cluster)),
        body: json!({
            "metadata": {"resourceVersion": record.version, "annotations": {OWNER: place.to_string()}},
        }),
    })
}

/// Returns the GitOpsCluster by which the agent of a cluster is revoked: the one that had the agent last, also while that is being
/// deleted, or, where no agent has ever got a certificate, one that selects the cluster while no other has it.
pub(super) fn revoker(index: &Index, cluster: &str, argocd: &str) -> Option<Place> {
    let record = record(index, cluster, argocd);
    if let Some(owner) = record.and_then(|record| revoked_by_owner(index, record, cluster, argocd)) {
        return Some(owner);
    }
    let mut all = asking(index, argocd);
    if asking(index, argocd).any(|(place, it, _)| has_agent(index, place, it, cluster, argocd)) {
        return None;
    }
    let found = all.find(|(place, it, wanted)| {
        wanted.revoked.contains(cluster) && index.is_decided(&it.placement(place), cluster)
    });
    found.map(|(place, ..)| place.clone())
}

/// Returns the GitOpsCluster that had the agent last, if it revokes it.
fn revoked_by_owner(index: &Index, record: &Object, cluster: &str, argocd: &str) -> Option<Place> {
    let owner = record.owner()?;
    let it = index.gitops_cluster(&owner)?;
    let is_revoked = it.spec.agent.as_ref().is_some_and(|it| it.revoked.contains(cluster));
    let is_elsewhere = matches!(Standing::of(index, &owner, it, argocd), Standing::Elsewhere(_));
    (is_revoked && !is_elsewhere).then_some(owner)
}

/// Why the certificates of a cluster's agent are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blocked {
    /// The agent is revoked.
    Revoked,
    /// The agent was taken off the cluster.
    Left,
}

/// Returns why the certificates of a cluster's agent are refused, if they are. A cluster has left only when that is certain: when its
/// GitOpsCluster gives it up for good, no other one has it, and the add-on is gone.
pub(super) fn blocked(index: &Index, cluster: &str, record: &Object, argocd: &str) -> Option<Blocked> {
    if revoked_by_owner(index, record, cluster, argocd).is_some() {
        return Some(Blocked::Revoked);
    }
    let addon = index.object(Kept::AddOns, &Place::new(cluster, names::ADDON));
    if addon.is_some_and(|it| !it.deleting) {
        return None;
    }
    let owner = record.owner()?;
    let is_given_up = match index.gitops_cluster(&owner) {
        Some(it) => gives_up(index, &owner, it, cluster, argocd),
        None => index.has_gitops_cluster_gone(&owner),
    };
    let is_had = || asking(index, argocd).any(|(place, it, _)| has_agent(index, place, it, cluster, argocd));
    ((is_given_up || index.has_gone(cluster)) && !is_had()).then_some(Blocked::Left)
}

/// Returns all such Secrets with the names of their clusters.
pub(super) fn all(index: &Index) -> impl Iterator<Item = (&str, &Place, &Object)> {
    let all = index.objects(Kept::Issued);
    all.filter_map(|(place, it)| Some((names::cluster_of_issued(&place.name)?, place, it)))
}

/// Returns true if certificates that a GitOpsCluster leaves behind are not refused yet.
pub(super) fn is_pending(index: &Index, place: &Place, argocd: &str, now: Timestamp) -> bool {
    let mut of_it = all(index).filter(|(_, _, it)| it.owner().as_ref() == Some(place));
    of_it.any(|(cluster, _, record)| {
        let is_open = good(record, now).any(|it| !blocklist::has(index, argocd, it.fingerprint));
        is_open && blocked(index, cluster, record, argocd).is_some()
    })
}

/// Returns the write that deletes a Secret of which all certificates have expired. It stays while it shows who revokes the agent.
pub(super) fn expired(index: &Index, argocd: &str, now: Timestamp) -> Option<Write> {
    let mut old = all(index).filter(|(cluster, _, record)| {
        good(record, now).next().is_none() && revoked_by_owner(index, record, cluster, argocd).is_none()
    });
    old.find_map(|(_, place, record)| super::gone(&SECRETS, place, record))
}

/// Returns when the first of these Secrets has only expired certificates left, and so can be deleted.
pub(super) fn again(index: &Index, now: Timestamp) -> Option<Timestamp> {
    let until = all(index).filter_map(|(_, _, record)| good(record, now).map(|it| it.until).max());
    until.min()?.parse().ok()
}

/// Returns the clusters that a GitOpsCluster names as revoked though the agent there is another one's.
pub(in crate::controller::promises) fn of_others(
    index: &Index,
    place: &Place,
    it: &GitOpsCluster,
    argocd: &str,
) -> Vec<String> {
    let revoked = it.spec.agent.iter().flat_map(|wanted| &wanted.revoked);
    let all = revoked.filter_map(|cluster| {
        let (owner, ..) = asking(index, argocd).find(|(place, it, _)| has_agent(index, place, it, cluster, argocd))?;
        let had = record(index, cluster, argocd).and_then(Object::owner);
        (owner != place && had.as_ref() != Some(place)).then(|| format!("{cluster} (of the GitOpsCluster {owner})"))
    });
    all.collect()
}
