//! The assignment of managed clusters to GitOpsClusters: which GitOpsCluster registers a cluster, runs argocd-agent on it, or
//! revokes its agent. The first GitOpsCluster that selects a cluster keeps it, and releases it only when it certainly no longer
//! selects it: missing, empty or contradictory input never removes anything.
//!
//! [`for_cluster()`] computes the assignment of a cluster from the cache, which keeps it until one of its inputs changes. Cluster
//! Secrets, the add-on, its ManifestWorks, certificate requests and the status of GitOpsClusters all read it. [`GitOpsClusterRef`]
//! is one GitOpsCluster, with the rules that decide what it selects and has released.

pub mod certificates;
mod gitops;
pub mod mappers;

pub use gitops::{GitOpsClusterRef, ServingState, has_released_agent, owned_secret};

use hub_state::{Assignment, Blocked, Cache, SecretKind};
use ocm::argocd_agent as names;
use primitives::object_ref::ObjectRef;
use std::collections::BTreeSet;
use std::sync::Arc;

pub fn for_cluster(cache: &Cache, cluster: &str) -> Arc<Assignment> {
    cache.assignment(cluster, compute)
}

/// The relation of a managed cluster to the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubRole {
    /// The cluster is the hub itself: it gets the Secret with the hub's own server, and no agent.
    Hub,
    Remote,
    /// The cluster may be the hub, but the administrator has not named it. Nothing is written or installed for it.
    Unclear,
}

/// Returns the relation of a managed cluster to the hub. Only the administrator names the hub. What exists wins over that name and
/// over the cluster's labels, so neither changes a Secret of an agent into that of the hub, or the other way round.
pub fn hub_role(cache: &Cache, cluster: &str) -> HubRole {
    let is_known_as_hub = in_cluster_secret(cache, cluster).is_some();
    let secret = owned_secret(SecretKind::Agent, cache, cluster);
    let is_registered = || secret.is_some() || cache.gitops_with_decision(cluster).next().is_some();
    match cache.is_hub(cluster) {
        true if is_known_as_hub => HubRole::Hub,
        false if is_known_as_hub => HubRole::Unclear,
        true if secret.is_none_or(|secret| !secret.is_of_agent()) => HubRole::Hub,
        false if cache.may_be_hub(cluster) && !is_registered() => HubRole::Unclear,
        _ => HubRole::Remote,
    }
}

/// Returns the name of the Secret, by any writer, through which Argo CD reaches the hub itself under the name of this cluster.
pub fn in_cluster_secret<'c>(cache: &'c Cache, cluster: &str) -> Option<&'c str> {
    let mut secrets = cache.secrets_of(cluster);
    let secret = secrets.find(|(_, secret)| secret.cluster() == cluster && secret.is_in_cluster());
    secret.map(|(name, _)| name)
}

/// Computes the assignment of a managed cluster.
///
/// The cache must forget the result when an input changes. It forgets that of one cluster with the ManagedCluster, its cluster
/// Secrets, our PlacementDecisions that name it, its add-on and the record of its certificates. It forgets all with the settings,
/// deletion and finalizers of a GitOpsCluster, with Placements, their decisions and the time when these settle, and with the label of
/// Argo CD's Namespace.
pub fn compute(cache: &Cache, cluster: &str) -> Assignment {
    let all: Vec<_> = GitOpsClusterRef::all(cache).collect();
    // A GitOpsCluster that is not in the cache keeps the cluster that it has registered, or whose agent it has installed.
    let is_kept = absent_owners(cache, cluster).next().is_some();
    let agent_owner = agent_owner(cache, &all, cluster, is_kept);
    let is_served = agent_owner.is_some_and(|gitops| gitops.served_agent().is_some());
    let registrars = SecretKind::ALL.map(|secret_kind| {
        let first = all.iter().find(|gitops| gitops.registers(secret_kind, cluster));
        first.filter(|_| !is_kept).map(|gitops| gitops.object_ref.clone())
    });
    let record = certificates::record(cache, cluster);
    let revoked_by_owner = record.and_then(|record| certificates::revoked_by_owner(cache, record, cluster));
    let blocked = match (&revoked_by_owner, record) {
        (Some(_), _) => Some(Blocked::Revoked),
        (None, Some(record)) if !is_served && certificates::is_uninstalled(cache, cluster, record) => {
            Some(Blocked::Uninstalled)
        }
        _ => None,
    };
    let revoked_by = revoked_by_owner.or_else(|| {
        let revokes = |gitops: &&GitOpsClusterRef<'_>| gitops.served_agent().is_some() && gitops.revokes(cluster);
        let first = all.iter().filter(revokes).find(|gitops| gitops.is_selected(cluster));
        // An owner keeps its agents while its settings are invalid or it is not served: others cannot revoke them.
        first
            .filter(|_| agent_owner.is_none())
            .map(|gitops| gitops.object_ref.clone())
    });
    Assignment {
        registrars,
        agent_owner: agent_owner.map(|gitops| gitops.object_ref.clone()),
        is_served,
        revoked_by,
        blocked,
    }
}

/// Returns the GitOpsCluster that runs argocd-agent on a managed cluster.
///
/// The GitOpsCluster that owns the cluster's Secret runs the agent, if it wants or has one there. If it does neither, only a
/// GitOpsCluster that already has the agent there may keep it. Without such an owner, the first GitOpsCluster that has the agent
/// wins, preferably one that selects the cluster, then the first that wants it, by namespace and name. No GitOpsCluster runs an agent
/// on the hub itself, or installs one on a cluster that may be the hub.
fn agent_owner<'c>(
    cache: &'c Cache,
    all: &[GitOpsClusterRef<'c>],
    cluster: &str,
    is_kept: bool,
) -> Option<GitOpsClusterRef<'c>> {
    let role = hub_role(cache, cluster);
    let is_hub = cache.cluster(cluster).is_some() && role == HubRole::Hub;
    if cache.is_leaving(cluster) || is_hub || names::check_agent(cluster, cache.argocd()).is_err() {
        return None;
    }
    let wants_agent = |gitops: &&GitOpsClusterRef<'c>| gitops.object.spec.agent.is_some() && gitops.selects(cluster);
    let has_agent = |gitops: &GitOpsClusterRef<'c>| {
        !gitops.has_released_agent(cluster) && cache.has_written_decision(gitops.object_ref, cluster)
    };
    let first_with_agent = || {
        let with_agent = || all.iter().copied().filter(&has_agent);
        with_agent()
            .find(|gitops| gitops.is_selected(cluster))
            .or_else(|| with_agent().next())
    };
    let registrar = SecretKind::ALL.iter().find_map(|secret_kind| {
        let owner = ObjectRef::parse(owned_secret(*secret_kind, cache, cluster)?.owner()?)?;
        GitOpsClusterRef::get(cache, &owner).filter(|gitops| !gitops.has_released_secret(*secret_kind, cluster))
    });
    match registrar {
        _ if role == HubRole::Unclear => first_with_agent(),
        Some(registrar) if wants_agent(&&registrar) || has_agent(&registrar) => Some(registrar),
        Some(_) => first_with_agent(),
        None if is_kept => first_with_agent(),
        None => first_with_agent().or_else(|| all.iter().find(wants_agent).copied()),
    }
}

/// Returns the GitOpsClusters that are not in the cache and have registered a managed cluster or installed its agent. Absence is no
/// proof of deletion: one may be invalid, or not yet restored from a backup. Its finalizer prevents a deletion without a watch event.
pub fn absent_owners<'c>(cache: &'c Cache, cluster: &'c str) -> impl Iterator<Item = ObjectRef> + use<'c> {
    let secrets = SecretKind::ALL.into_iter();
    let owners =
        secrets.filter_map(|secret_kind| ObjectRef::parse(owned_secret(secret_kind, cache, cluster)?.owner()?));
    let owners = owners.chain(cache.gitops_with_decision(cluster));
    owners.filter(|owner| cache.gitops_cluster(owner).is_none() && !cache.is_gitops_cluster_deleted(owner))
}

impl<'c> GitOpsClusterRef<'c> {
    pub fn runs_agent(self, cluster: &str) -> bool {
        for_cluster(self.cache, cluster).agent_owner.as_ref() == Some(self.object_ref)
    }

    pub fn agent_clusters(self) -> BTreeSet<&'c str> {
        let selected = self.cache.selected_by(&self.placement()).map(|cluster| &**cluster);
        let mut all: BTreeSet<_> = selected.collect();
        all.extend(self.decided_clusters());
        all.retain(|cluster| self.runs_agent(cluster));
        all
    }
}

/// The owner that the Secret of a managed cluster has or gets.
pub enum SecretOwner<'c> {
    /// This GitOpsCluster owns it, after the given previous owner.
    GitOpsCluster(GitOpsClusterRef<'c>, Option<&'c str>),
    /// The previous owner has released it, and there is no new one.
    Released,
    Unchanged,
}

/// Returns the owner that the Secret of this kind of a managed cluster gets; `owner` is the current one.
pub fn secret_owner<'c>(
    secret_kind: SecretKind,
    cache: &'c Cache,
    cluster: &str,
    owner: Option<&'c str>,
) -> SecretOwner<'c> {
    let owner_ref = owner.and_then(ObjectRef::parse);
    let current = owner_ref.as_ref().and_then(|owner| GitOpsClusterRef::get(cache, owner));
    if let Some(gitops) = current.filter(|gitops| gitops.maintains(secret_kind, cluster)) {
        return SecretOwner::GitOpsCluster(gitops, None);
    }
    let is_released = owner.is_some_and(|owner| has_released_secret(secret_kind, cache, cluster, owner));
    if owner_ref.is_some() && !is_released {
        return SecretOwner::Unchanged;
    }
    let next = for_cluster(cache, cluster);
    match next
        .registrar(secret_kind)
        .and_then(|next| GitOpsClusterRef::get(cache, next))
    {
        Some(gitops) => SecretOwner::GitOpsCluster(gitops, owner),
        None if is_released => SecretOwner::Released,
        None => SecretOwner::Unchanged,
    }
}

/// Returns true if the owner of a Secret of this kind has certainly released the cluster. An owner that cannot be read has not.
pub fn has_released_secret(secret_kind: SecretKind, cache: &Cache, cluster: &str, owner: &str) -> bool {
    let has_released = |gitops: GitOpsClusterRef<'_>| gitops.has_released_secret(secret_kind, cluster);
    ObjectRef::parse(owner).is_some_and(|owner| gitops::has_owner_released(cache, &owner, has_released))
}

pub fn is_registered(cache: &Cache, cluster: &str) -> bool {
    GitOpsClusterRef::all(cache).any(|gitops| gitops.requested_secret().is_some() && gitops.selects(cluster))
}
