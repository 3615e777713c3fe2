//! The objects to reconcile after a change of an object of argocd-agent or of its add-on.

use assignment::mappers::{agents, clusters};
use hub_state::{Cache, Changed, Kind, Object, ReconcileRequest};
use ocm::argocd_agent as names;
use ocm::work::MANAGED_BY;
use primitives::object_ref::ObjectRef;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn management(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let mut affected = agents(cache, changed);
    // argocd-pull-integration is taken over after its add-on is installed; OCM labels none of its add-ons.
    let labelled = cache
        .objects(Kind::AddOns)
        .filter(|(_, addon)| addon.object["metadata"]["labels"][MANAGED_BY].is_string());
    affected.extend(labelled.map(|(object_ref, _)| ReconcileRequest::cluster(&object_ref.namespace)));
    affected
}

/// Everything may contain a CA certificate, the address of the resource proxy, or the address and the image of the principal.
pub(super) fn shared_objects(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let mut affected = agents(cache, changed);
    affected.extend(clusters(cache).iter().map(ReconcileRequest::cluster));
    affected
}

/// The addresses of Nodes matter only to Services of type NodePort.
pub(super) fn nodes(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let mut services = cache.objects(Kind::Services);
    if services.any(|(_, service)| service.object["spec"]["type"] == "NodePort") {
        return shared_objects(cache, changed);
    }
    Vec::new()
}

/// Returns a changed object before and after the change.
fn both<'c>(cache: &'c Cache, changed: &Changed<'c>) -> impl Iterator<Item = &'c Object> {
    let after = cache.object(changed.kind, changed.object_ref);
    let before = changed.before::<Object>();
    before.into_iter().chain(after)
}

/// Returns the GitOpsClusters for which an object was created, before the change and after it.
fn owners_of(cache: &Cache, changed: &Changed<'_>) -> BTreeSet<ObjectRef> {
    both(cache, changed).filter_map(Object::owner).collect()
}

pub(super) fn owners(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let mut affected = vec![ReconcileRequest::argocd(cache.argocd())];
    affected.extend(ReconcileRequest::gitops_all(&owners_of(cache, changed)));
    affected
}

/// Returns all GitOpsClusters with agents: after one decision names a cluster, another may omit it. The clusters that it names or
/// omits may have another GitOpsCluster now.
pub(super) fn decisions(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let mut affected = agents(cache, changed);
    let named = both(cache, changed).map(|decision| decision.decided_clusters().collect());
    let moved = named.fold(BTreeSet::new(), |before, after| &before ^ &after);
    affected.extend(
        moved
            .into_iter()
            .map(|cluster| ReconcileRequest::cluster(&cluster.into())),
    );
    affected.extend(ReconcileRequest::gitops_all(&owners_of(cache, changed)));
    affected
}

pub(super) fn objects_of_cluster(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    of_cluster(cache, changed, &changed.object_ref.namespace)
}

pub(super) fn requests(_: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    vec![ReconcileRequest::request(changed.object_ref.clone())]
}

pub(super) fn issued(cache: &Cache, changed: &Changed<'_>) -> Vec<ReconcileRequest> {
    let Some(cluster) = names::cluster_of_issued(&changed.object_ref.name) else {
        return Vec::new();
    };
    let mut affected = of_cluster(cache, changed, &cluster.into());
    affected.extend(cache.requests_of(cluster).cloned().map(ReconcileRequest::request));
    affected
}

/// Returns Argo CD, a managed cluster, its GitOpsClusters, and those for which an object of the cluster was created: a GitOpsCluster
/// that installed the add-on may no longer select the cluster, and waits until the add-on is deleted.
fn of_cluster(cache: &Cache, changed: &Changed<'_>, cluster: &Arc<str>) -> Vec<ReconcileRequest> {
    let mut gitops = owners_of(cache, changed);
    gitops.extend(cache.gitops_of(cluster));
    let itself = [
        ReconcileRequest::argocd(cache.argocd()),
        ReconcileRequest::cluster(cluster),
    ];
    itself
        .into_iter()
        .chain(ReconcileRequest::gitops_all(&gitops))
        .collect()
}
