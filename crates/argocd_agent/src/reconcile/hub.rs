//! The controller for the objects on the hub that all agents share: the CA, the certificates of the principal and of the resource
//! proxy, the key of its tokens, and the ClusterManagementAddOn. They exist as long as any GitOpsCluster requests agents, and are
//! deleted with the last one. What a principal needs to start stays until the principal is deleted.

use super::addon;
use super::shared::{self, ensure, ensure_absent, find_existing, management, may_have_agents};
use super::{authority, blocklist, issued, works};
use crate as agent;
use crate::discovery::{alternative_name, principal_names};
use crate::{Entry, server};
use assignment::GitOpsClusterRef;
use hub_state::{Cache, Context, Controller, Kind, Object, TlsSecret};
use jiff::Timestamp;
use ocm::argocd_agent as names;
use ocm::resources::{NAMESPACES, SECRETS};
use pki::Recipe;
use primitives::hash::hex;
use primitives::object_ref::ObjectRef;
use runtime::action::{Action, InvolvedObject, Write};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::time::Duration;

pub const CONTROLLER: Controller = Controller {
    kind: Kind::Namespace,
    min_write_interval: Duration::from_millis(200),
    reconcile,
    requeue_after,
    ..shared::CONTROLLER
};

/// The annotation of the principal's Pods with the hash of the certificates that they were started with. The principal reads
/// certificates only at start, so a changed value makes Kubernetes replace the Pods, once.
const STARTED_WITH: &str = "argocd-ocm-cmp.github.io/certificates";

fn reconcile(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    if object_ref.name != *cache.argocd() {
        return None;
    }
    // These writes are urgent.
    let certificates = blocklist::next_write(cache, context.now).or_else(|| issued::expired(cache, context.now));
    let write = if certificates.is_some() {
        certificates
    } else if GitOpsClusterRef::with_agents(cache).next().is_some() {
        desired(cache, context)
    } else if GitOpsClusterRef::all(cache).any(may_request_agents) {
        install(cache, context)
    } else {
        unwanted(cache)
    };
    Some(Action::new(
        InvolvedObject::new(&NAMESPACES, object_ref.clone(), Box::default()),
        vec![write?],
        None,
    ))
}

/// Returns true if a GitOpsCluster has or gets agents, served or not, or if its operators still have objects to delete.
fn may_request_agents(gitops: GitOpsClusterRef<'_>) -> bool {
    may_have_agents(gitops) || works::with_operator_resource(gitops).next().is_some()
}

fn requeue_after(cache: &Cache, _: &ObjectRef, context: &Context<'_>) -> Option<Timestamp> {
    let rollouts = GitOpsClusterRef::with_agents(cache)
        .filter_map(|(gitops, _)| super::rollout::requeue_after(cache, gitops.object_ref, context));
    rollouts
        .chain(renewal(cache, context.now))
        .chain(issued::requeue_after(cache, context.now))
        .chain(blocklist::requeue_after(cache, context.now))
        .min()
}

/// Returns the time when the next certificate must be renewed.
fn renewal(cache: &Cache, now: Timestamp) -> Option<Timestamp> {
    GitOpsClusterRef::with_agents(cache).next()?;
    let ca = cache.certificate(names::CA_SECRET)?;
    let leaves = [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS].map(|name| cache.certificate(name));
    let ours = leaves.into_iter().flatten().filter(|leaf| authority::is_of(ca, leaf));
    let leaves = ours.filter_map(|leaf| leaf.leaf()?.renewal(ca.leaf()?, now));
    leaves.chain(authority::requeue_after(ca)).min()
}

/// Returns the write for the first object that differs from the desired state: each object needs the previous ones.
fn desired(cache: &Cache, context: &Context<'_>) -> Option<Write> {
    let (argocd, now) = (&**cache.argocd(), context.now);
    let ca = cache.certificate(names::CA_SECRET);
    let is_distributed = |ca: &TlsSecret| {
        let clusters = clusters_with_agents(cache);
        clusters.iter().all(|cluster| works::has(cache, cluster, ca))
    };
    if let Some(write) = authority::next_write(ca, argocd, is_distributed, |ca| has_issued_all(cache, ca), now) {
        return Some(write);
    }
    let ca = authority::signing(cache)?;
    if cache.objects(Kind::TokenKey).next().is_none() {
        return Some(authority::secret(names::JWT_SECRET, argocd, None, Recipe::Jwt));
    }
    let bundle = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names::CA_BUNDLE, "namespace": argocd, "labels": authority::labels()},
        "data": {"ca-bundle.crt": &*ca.text},
    });
    ensure(cache, Kind::Bundle, bundle)
        .or_else(|| leaves(cache, ca, now))
        .or_else(|| restart(cache, ca))
        .or_else(|| install(cache, context))
}

/// Returns the write that issues the certificate of the principal or of the resource proxy, if one is due.
fn leaves(cache: &Cache, ca: &TlsSecret, now: Timestamp) -> Option<Write> {
    let argocd = &**cache.argocd();
    let servers = GitOpsClusterRef::with_agents(cache).filter_map(|(_, desired)| server(cache, desired).ok());
    let [mut principal, nodes] = principal_names(cache);
    principal.extend(servers.filter_map(|server| alternative_name(&server.address)));
    let (_, proxy) = agent::resource_proxy(cache);
    let all = [
        (names::PRINCIPAL_TLS, names::PRINCIPAL_SERVICES[0], [principal, nodes]),
        (
            names::RESOURCE_PROXY_TLS,
            names::RESOURCE_PROXY_SERVICES[0],
            [proxy, BTreeSet::new()],
        ),
    ];
    all.into_iter().find_map(|(secret, common_name, names)| {
        let existing = cache.certificate(secret);
        authority::leaf(ca, existing, (secret, common_name), names, argocd, now)
    })
}

/// Returns the write that restarts a principal that was started with other certificates.
fn restart(cache: &Cache, ca: &TlsSecret) -> Option<Write> {
    let mut digest = Sha256::new_with_prefix(&*ca.text);
    for name in [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS] {
        digest.update(cache.certificate(name)?.digest);
    }
    let digest = hex(&digest.finalize()[..16]);
    find_existing(cache, Kind::Deployments, names::PRINCIPAL_DEPLOYMENTS).find_map(|(name, _)| {
        let template = json!({"metadata": {"annotations": {STARTED_WITH: digest}}});
        let metadata = json!({"namespace": **cache.argocd(), "name": name});
        ensure(
            cache,
            Kind::Deployments,
            json!({"metadata": metadata, "spec": {"template": template}}),
        )
    })
}

fn has_issued_all(cache: &Cache, ca: &TlsSecret) -> bool {
    let mut leaves = [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS].into_iter();
    leaves.all(|name| {
        cache.certificate(name).is_some_and(|existing| {
            let leaf = existing.leaf().zip(ca.leaf());
            !authority::is_of(ca, existing) || leaf.is_some_and(|(leaf, signer)| leaf.is_issued_by(signer))
        })
    }) && clusters_with_agents(cache)
        .iter()
        .all(|cluster| works::is_registered_by(cache, cluster, ca))
}

/// Returns the managed clusters with agents. Those of a GitOpsCluster that is currently invalid or not served keep their agents.
fn clusters_with_agents(cache: &Cache) -> BTreeSet<&str> {
    let all = GitOpsClusterRef::all(cache).filter(|gitops| !gitops.object.deleting);
    let clusters = all.flat_map(|gitops| match gitops.served_agent() {
        Some(_) => gitops.agent_clusters(),
        None if gitops.object.spec.may_have_agent() => gitops.decided_clusters(),
        None => BTreeSet::new(),
    });
    clusters.collect()
}

/// Returns the write of the ClusterManagementAddOn, with the entries of all GitOpsClusters, once everything that it references
/// exists. OCM uninstalls the add-on from every cluster without an entry, so there is no write before every cluster with the
/// add-on is named.
fn install(cache: &Cache, context: &Context<'_>) -> Option<Write> {
    let existing = management(cache);
    let mut entries = entries(cache, context);
    // The operator of an ArgoCD of argocd-pull-integration and a new add-on would overwrite each other's objects.
    entries.retain(|entry| {
        GitOpsClusterRef::get(cache, &entry.gitops_cluster).is_none_or(|gitops| {
            let has_theirs = |desired| !works::clusters_with_foreign_argocd(gitops, desired).is_empty();
            addon::entry_before(gitops).is_some() || !gitops.served_agent().is_some_and(has_theirs)
        })
    });
    // Without any entry, removes those of earlier GitOpsClusters: their deletion waits for it.
    let is_needed = !entries.is_empty() || existing.is_some_and(Object::is_ours);
    if !is_needed || !left_out(cache, &entries).is_empty() {
        return None;
    }
    let desired = agent::management(&entries, existing.map(|existing| &existing.object));
    ensure(cache, Kind::ManagementAddOn, desired)
}

/// Returns the clusters with the add-on that these entries would lose, although no GitOpsCluster has released them.
pub(super) fn left_out(cache: &Cache, entries: &[Entry]) -> Vec<String> {
    let gitops = entries
        .iter()
        .filter_map(|entry| GitOpsClusterRef::get(cache, &entry.gitops_cluster));
    let named: BTreeSet<_> = gitops.flat_map(GitOpsClusterRef::decided_clusters).collect();
    let all = cache.objects(Kind::AddOns).filter(|(addon, object)| {
        let cluster = &*addon.namespace;
        // The new owner may not have named it yet.
        let is_taken = || assignment::for_cluster(cache, cluster).served_owner().is_some();
        let stays = || !addon::is_released_by_all(cache, cluster) || is_taken();
        !named.contains(cluster) && !object.deleting && stays()
    });
    all.map(|(addon, _)| addon.namespace.to_string()).collect()
}

/// Returns the entries of the GitOpsClusters. A GitOpsCluster with missing objects, or one that is currently not served, keeps
/// its previous entry. Those in Argo CD's namespace are last, where they count: in another namespace, its users can change the Placement of
/// an entry so that it selects clusters of others.
pub(super) fn entries(cache: &Cache, context: &Context<'_>) -> Vec<Entry> {
    let all = GitOpsClusterRef::all(cache).filter(|gitops| may_request_agents(*gitops));
    let entries = all.filter_map(|gitops| {
        let desired = gitops.served_agent();
        let entry = desired.and_then(|desired| addon::entry(gitops, desired, context));
        entry.or_else(|| addon::entry_before(gitops))
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort_by_key(|entry| *entry.gitops_cluster.namespace == **cache.argocd());
    entries
}

/// Returns the next deletion of shared objects once no GitOpsCluster requests agents. Deletes only while the last GitOpsCluster
/// that requested agents waits for it: an empty list of GitOpsClusters is no reason, and neither is a list without one that has agents.
fn unwanted(cache: &Cache) -> Option<Write> {
    let is_waiting = GitOpsClusterRef::all(cache).any(|gitops| {
        let is_last = gitops.object.deleting && gitops.object.spec.may_have_agent() && gitops.has_finalizer();
        !gitops.is_of_another_controller() && (is_last || addon::is_left(gitops))
    });
    if !is_waiting || !absent_owners(cache).is_empty() {
        return None;
    }
    let absent = |kind: Kind| {
        cache
            .objects(kind)
            .find_map(|(at, object)| ensure_absent(kind, at, object))
    };
    if management(cache).is_some() {
        return absent(Kind::ManagementAddOn);
    }
    if cache.objects(Kind::AddOns).next().is_some() || has_principal(cache) {
        return None;
    }
    absent(Kind::Bundle)
        .or_else(|| absent(Kind::TokenKey))
        .or_else(|| certificate(cache))
        .or_else(|| absent(Kind::IssuedCertificates))
}

/// Returns true if there is a principal. Its Pods mount the certificates and keys, and Argo CD may reach Redis only through it, so
/// without them Argo CD fails as soon as a Pod of the principal is replaced.
fn has_principal(cache: &Cache) -> bool {
    find_existing(cache, Kind::Deployments, names::PRINCIPAL_DEPLOYMENTS)
        .next()
        .is_some()
}

/// Returns the GitOpsClusters that are missing without a deletion, and whose clusters have agents or get them.
pub(super) fn absent_owners(cache: &Cache) -> BTreeSet<ObjectRef> {
    let decisions = cache.objects(Kind::OwnDecisions);
    let decided = decisions.flat_map(|(_, decision)| decision.decided_clusters());
    let with_addon = cache.objects(Kind::AddOns).map(|(addon, _)| &*addon.namespace);
    let clusters = decided.chain(with_addon);
    clusters
        .flat_map(|cluster| assignment::absent_owners(cache, cluster))
        .collect()
}

/// Returns the deletion of the first of our certificates that still exists. Deletes the CA last: if a GitOpsCluster requests
/// agents meanwhile, no certificate of a deleted CA is left, which agents and cluster Secrets of the next CA would not trust.
fn certificate(cache: &Cache) -> Option<Write> {
    names::CERTIFICATES.into_iter().rev().find_map(|name| {
        let existing = cache
            .certificate(name)
            .filter(|existing| existing.is_ours && !existing.deleting)?;
        Some(Write::delete(
            &SECRETS,
            ObjectRef::new(cache.argocd(), name),
            (&existing.uid, &existing.version),
        ))
    })
}

pub(super) fn is_left(cache: &Cache) -> bool {
    let has_ours = |kind| cache.objects(kind).any(|(_, object)| object.is_ours());
    let needed_by_principal = [Kind::Bundle, Kind::TokenKey, Kind::IssuedCertificates];
    let mut certificates = names::CERTIFICATES
        .into_iter()
        .filter_map(|name| cache.certificate(name));
    has_ours(Kind::ManagementAddOn)
        || !has_principal(cache)
            && (needed_by_principal.into_iter().any(has_ours) || certificates.any(|certificate| certificate.is_ours))
}
