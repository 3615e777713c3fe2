//! The objects to reconcile after a change that concerns GitOpsClusters or cluster Secrets. The requests for managed clusters are for
//! their cluster Secrets and the ManifestWorks of their agents.

use super::certificates::records;
use hub_state::cluster_secret::ClusterSecret;
use hub_state::{Cache, Changed, Cluster, GitOpsCluster, Kind, Object, PlacementDecision, ReconcileRequest};
use ocm::argocd_agent as names;
use ocm::management_addon::is_named;
use primitives::object_ref::ObjectRef;
use std::collections::BTreeSet;
use std::sync::Arc;

pub fn gitops_cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let object_ref = changed.object_ref;
    let before = changed.before::<GitOpsCluster>();
    let after = cache.gitops_cluster(object_ref);
    let mut affected = vec![ReconcileRequest::gitops(object_ref.clone())];
    // The deletion of a GitOpsCluster that was not in the cache releases its clusters, too.
    if after.is_none() || before.map(GitOpsCluster::inputs) != after.map(GitOpsCluster::inputs) {
        let both = before.into_iter().chain(after);
        let mut clusters = held(cache, object_ref);
        clusters.extend(both.flat_map(|gitops| cache.selected_by(&gitops.placement(object_ref)).cloned()));
        affected.extend(clusters.iter().map(ReconcileRequest::cluster));
        affected.extend(agents(cache, changed));
    } else {
        affected.push(ReconcileRequest::argocd(cache.argocd()));
    }
    affected
}

pub fn cluster_alone(_: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    vec![ReconcileRequest::cluster(&changed.object_ref.name)]
}

/// Maps a change of Argo CD's resource tracking to all managed clusters: no Secret may have its label.
pub fn tracking(cache: &Cache, _: &Changed<'_>) -> Vec<ReconcileRequest> {
    cache.clusters().map(ReconcileRequest::cluster).collect()
}

/// Maps a change of a cluster Secret to the managed clusters that it concerns, whatever GitOpsClusters say.
pub fn secret_alone(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    clusters_of(cache, changed)
        .iter()
        .map(ReconcileRequest::cluster)
        .collect()
}

/// Returns the managed clusters that a changed cluster Secret concerns or has concerned.
fn clusters_of(cache: &Cache, changed: &Changed<'_>) -> BTreeSet<Arc<str>> {
    let name = &changed.object_ref.name;
    let all = both(cache, changed).flat_map(|secret| {
        let hub = cache.hub_cluster().filter(|_| secret.is_in_cluster());
        secret.concerns(name).into_iter().chain(hub)
    });
    all.map(Into::into).collect()
}

/// Returns a changed cluster Secret before and after the change.
fn both<'c>(cache: &'c Cache, changed: &Changed<'c>) -> impl Iterator<Item = &'c ClusterSecret> {
    let before = changed.before::<ClusterSecret>();
    before.into_iter().chain(cache.secret(&changed.object_ref.name))
}

/// Maps a change of a managed cluster to itself, and to the GitOpsClusters that it concerns. A cluster that is reachable again may
/// have left a Placement meanwhile, which GitOpsClusters without an entry in the add-on may wait for.
pub fn cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let name = &changed.object_ref.name;
    let mut affected = vec![ReconcileRequest::cluster(name)];
    let can_have_agent = |cluster: &Cluster| cluster.is_accepted && !cluster.deleting && !cluster.has_hub_mark(name);
    let (before, after) = (changed.before::<Cluster>(), cache.cluster(name));
    let has_changed = after.is_some_and(can_have_agent) != before.is_some_and(can_have_agent);
    if has_changed || changed.has_availability_changed(cache) {
        let mut gitops = cache.gitops_of(name);
        gitops.extend(without_entry(cache));
        affected.extend(ReconcileRequest::gitops_all(&gitops));
        let has_gitops = cache.gitops_clusters().next().is_some();
        affected.extend(has_gitops.then(|| ReconcileRequest::argocd(cache.argocd())));
    }
    affected
}

pub fn placement(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let mut affected = of_placement(cache, changed.object_ref);
    if !affected.is_empty() {
        affected.extend(agents(cache, changed));
    }
    affected
}

pub fn decision(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let object_ref = changed.object_ref;
    let before = changed.before::<PlacementDecision>();
    let after = cache.decision(object_ref);
    let placements: BTreeSet<_> = before
        .into_iter()
        .chain(after)
        .map(|decision| decision.placement(object_ref))
        .collect();
    let mut affected: Vec<_> = placements
        .iter()
        .flat_map(|placement| of_placement(cache, placement))
        .collect();
    if !affected.is_empty() {
        affected.extend(changed.moved_clusters(cache).iter().map(ReconcileRequest::cluster));
        affected.extend(agents(cache, changed));
    }
    affected
}

/// Maps a change of Argo CD's namespace, which can allow GitOpsClusters of other namespaces.
pub fn namespace(cache: &Cache, _: &Changed<'_>) -> Vec<ReconcileRequest> {
    let clusters = clusters(cache);
    let clusters = clusters.iter().map(ReconcileRequest::cluster);
    let gitops = cache.gitops_clusters().map(|(object_ref, _)| object_ref.clone());
    let all = clusters.chain(gitops.map(ReconcileRequest::gitops));
    all.chain([ReconcileRequest::argocd(cache.argocd())]).collect()
}

pub fn secret(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let clusters = clusters_of(cache, changed);
    if clusters.is_empty() {
        return Vec::new();
    }
    let owners = both(cache, changed).filter_map(|secret| ObjectRef::parse(secret.owner()?));
    let (mut gitops, absent): (BTreeSet<_>, BTreeSet<_>) =
        owners.partition(|object_ref| cache.gitops_cluster(object_ref).is_some());
    gitops.extend(clusters.iter().flat_map(|cluster| cache.gitops_of(cluster)));
    let mut affected: Vec<_> = clusters.iter().map(ReconcileRequest::cluster).collect();
    affected.extend(ReconcileRequest::gitops_all(&gitops));
    if !absent.is_empty() {
        // The deletion of what all agents share waits for GitOpsClusters that are missing.
        affected.push(ReconcileRequest::argocd(cache.argocd()));
    }
    affected
}

/// Returns the GitOpsClusters of a Placement, and the clusters that they may release.
fn of_placement(cache: &Cache, placement: &ObjectRef) -> Vec<ReconcileRequest> {
    let all = cache.gitops_clusters();
    let of_it = all.filter(|(object_ref, gitops)| gitops.placement(object_ref) == *placement);
    let affected = of_it.flat_map(|(object_ref, _)| {
        let mut affected = vec![ReconcileRequest::gitops(object_ref.clone())];
        affected.extend(held(cache, object_ref).iter().map(ReconcileRequest::cluster));
        affected
    });
    affected.collect()
}

/// Returns the clusters that a GitOpsCluster has registered, or whose agent it has installed or may revoke. Its Placement may no
/// longer select them.
fn held(cache: &Cache, object_ref: &ObjectRef) -> BTreeSet<Arc<str>> {
    let is_owner = |object: &Object| object.owner().as_ref() == Some(object_ref);
    let owner = object_ref.to_string();
    let registered = cache.secrets_owned_by(&owner).map(ClusterSecret::cluster);
    let decisions = cache.objects(Kind::OwnDecisions);
    let decisions = decisions.filter(|(_, decision)| is_owner(decision));
    let decided = decisions.flat_map(|(_, decision)| decision.decided_clusters());
    let records = records(cache).filter(|(_, _, record)| is_owner(record));
    let recorded = records.map(|(cluster, _, _)| cluster);
    registered.chain(decided).chain(recorded).map(Into::into).collect()
}

/// Returns the managed clusters that a GitOpsCluster selects, has registered or has an agent on.
pub fn clusters(cache: &Cache) -> BTreeSet<Arc<str>> {
    let mut clusters = BTreeSet::new();
    for (object_ref, gitops) in cache.gitops_clusters() {
        clusters.extend(held(cache, object_ref));
        clusters.extend(cache.selected_by(&gitops.placement(object_ref)).cloned());
    }
    clusters
}

/// Returns Argo CD, and every GitOpsCluster that installs agents for it, or that did and waits for their removal. What one of them
/// releases, another may install.
pub fn agents(cache: &Cache, _: &Changed<'_>) -> Vec<ReconcileRequest> {
    let asking = cache
        .gitops_clusters()
        .filter(|(_, gitops)| gitops.spec.may_have_agent());
    let mut all: BTreeSet<_> = asking.map(|(object_ref, _)| object_ref.clone()).collect();
    let decisions = cache.objects(Kind::OwnDecisions).map(|(_, decision)| decision);
    let records = records(cache).map(|(_, _, record)| record);
    all.extend(decisions.chain(records).filter_map(Object::owner));
    let argocd = ReconcileRequest::argocd(cache.argocd());
    ReconcileRequest::gitops_all(&all).chain([argocd]).collect()
}

/// Returns the GitOpsClusters with agents that the ClusterManagementAddOn does not name yet. Clusters of others may delay that.
fn without_entry(cache: &Cache) -> impl Iterator<Item = ObjectRef> {
    let management = cache.object(Kind::ManagementAddOn, &ObjectRef::new("", names::ADDON));
    let asking = cache
        .gitops_clusters()
        .filter(|(_, gitops)| gitops.spec.agent.is_some());
    let without = asking.filter(move |(at, _)| management.is_none_or(|existing| !is_named(at, &existing.object)));
    without.map(|(object_ref, _)| object_ref.clone())
}
