//! The controller for the objects on the hub that all agents share: the CA, the certificates of the principal and of the resource
//! proxy, the key of its tokens, and the ClusterManagementAddOn. They exist as long as any GitOpsCluster requests agents, and are
//! deleted with the last one.

use super::addon::DesiredEntry;
use super::authority::{self, CaDistribution, Leaf};
use super::shared::{ABOUT, NAME, WATCHES, ensure, ensure_absent, management, may_have_agents, of_argocd, server};
use super::{blocklist, issued, works};
use crate as agent;
use assignment::GitOpsClusterRef;
use hub_state::cache::Cache;
use hub_state::model::{Kind, Object, TlsSecret};
use hub_state::reconcile::{Context, Controller};
use jiff::Timestamp;
use ocm::argocd_agent as names;
use ocm::resources::{CONFIG_MAPS, DEPLOYMENTS, MANAGEMENTS, NAMESPACES, SECRETS};
use primitives::hash::hex;
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use runtime::action::{Action, InvolvedObject, Write};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::time::Duration;

/// The controller of the objects on the hub that all agents share.
pub const CONTROLLER: Controller = Controller {
    name: NAME,
    about: ABOUT,
    kind: Kind::Namespace,
    watches: WATCHES,
    min_write_interval: Duration::from_millis(200),
    reconcile,
    requeue_after,
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
    if let Some(write) = authority::next_write(ca, argocd, distribution(cache), now) {
        return Some(write);
    }
    let ca = ca.filter(|ca| ca.leaf().is_some())?;
    let named = |kind, name| cache.object(kind, &ObjectRef::new(argocd, name));
    if named(Kind::TokenKey, names::JWT_SECRET).is_none() {
        return Some(authority::token_key(argocd));
    }
    let bundle = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names::CA_BUNDLE, "namespace": argocd, "labels": authority::labels()},
        "data": {"ca-bundle.crt": &*ca.text},
    });
    if let Some(write) = ensure(&CONFIG_MAPS, bundle, named(Kind::Bundle, names::CA_BUNDLE)) {
        return Some(write);
    }
    leaves(cache, ca, now)
        .or_else(|| restart(cache, ca))
        .or_else(|| install(cache, context))
}

/// Returns the write that issues the certificate of the principal or of the resource proxy, if one is due.
fn leaves(cache: &Cache, ca: &TlsSecret, now: Timestamp) -> Option<Write> {
    let argocd = &**cache.argocd();
    let [services, routes, nodes] = [Kind::Services, Kind::Routes, Kind::Nodes].map(|kind| of_argocd(cache, kind));
    let servers = GitOpsClusterRef::with_agents(cache).filter_map(|(_, desired)| server(cache, desired).ok());
    let mut addresses: Vec<_> = servers.map(|server| Some(server.address)).collect();
    addresses.push(None);
    let names = addresses
        .iter()
        .flat_map(|address| agent::principal_names(&services, &routes, &nodes, argocd, address.as_deref()));
    let principal: BTreeSet<Box<str>> = names.map(Into::into).collect();
    let (_, proxy) = agent::resource_proxy(&services, argocd);
    let proxy = proxy.into_iter().map(Into::into).collect();
    let all = [
        (names::PRINCIPAL_TLS, &principal, names::PRINCIPAL_SERVICES[0]),
        (names::RESOURCE_PROXY_TLS, &proxy, names::RESOURCE_PROXY_SERVICES[0]),
    ];
    all.into_iter().find_map(|(secret, names, common_name)| {
        let desired = Leaf {
            secret,
            names,
            common_name,
        };
        authority::leaf(ca, cache.certificate(secret), &desired, argocd, now)
    })
}

/// Returns the write that restarts a principal that was started with other certificates.
fn restart(cache: &Cache, ca: &TlsSecret) -> Option<Write> {
    let mut digest = Sha256::new_with_prefix(&*ca.text);
    for name in [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS] {
        digest.update(cache.certificate(name)?.digest);
    }
    let digest = hex(&digest.finalize()[..16]);
    names::PRINCIPAL_DEPLOYMENTS.into_iter().find_map(|name| {
        let object_ref = ObjectRef::new(cache.argocd(), name);
        let existing = cache.object(Kind::Deployments, &object_ref)?;
        let annotations = &existing.object["spec"]["template"]["metadata"]["annotations"];
        (annotations[STARTED_WITH] != *digest).then(|| {
            Write::patch(
                &DEPLOYMENTS,
                object_ref,
                json!({
                    "metadata": {"resourceVersion": existing.version},
                    "spec": {"template": {"metadata": {"annotations": {STARTED_WITH: digest}}}},
                }),
            )
        })
    })
}

/// Checks the progress of a CA rotation: whether every cluster has all CA certificates, and whether the first one issued all
/// certificates.
fn distribution(cache: &Cache) -> CaDistribution {
    let Some(ca) = cache.certificate(names::CA_SECRET) else {
        return CaDistribution {
            is_distributed: false,
            has_issued_all: false,
        };
    };
    // Checking every certificate takes time, and is not needed with only one CA certificate.
    if ca.next.is_none() && ca.certificates.len() < 2 {
        return CaDistribution {
            is_distributed: true,
            has_issued_all: true,
        };
    }
    let issued = |name| {
        let existing = cache.certificate(name);
        existing.is_some_and(|existing| {
            let is_ours = authority::is_of(ca, existing);
            let leaf = existing.leaf().zip(ca.leaf());
            !is_ours || leaf.is_some_and(|(leaf, signer)| leaf.is_issued_by(signer))
        })
    };
    let mut clusters: BTreeSet<_> = GitOpsClusterRef::with_agents(cache)
        .flat_map(|(gitops, _)| gitops.agent_clusters())
        .collect();
    // Clusters of a GitOpsCluster that is currently invalid or not served keep their agents, and need the next CA too.
    let kept = GitOpsClusterRef::all(cache).filter(|gitops| {
        !gitops.object.deleting && gitops.object.spec.may_have_agent() && gitops.served_agent().is_none()
    });
    clusters.extend(kept.flat_map(GitOpsClusterRef::decided_clusters));
    let leaves = [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS];
    CaDistribution {
        is_distributed: clusters.iter().all(|cluster| works::has(cache, cluster, ca)),
        has_issued_all: leaves.into_iter().all(issued)
            && clusters
                .iter()
                .all(|cluster| works::is_registered_by(cache, cluster, ca)),
    }
}

/// Returns the write of the ClusterManagementAddOn, with the entries of all GitOpsClusters, once everything that it references
/// exists. OCM uninstalls the add-on from every cluster without an entry, so there is no write before every cluster with the
/// add-on is named.
fn install(cache: &Cache, context: &Context<'_>) -> Option<Write> {
    let existing = management(cache);
    let entries = entries(cache, context, existing);
    // Without any entry, removes those of earlier GitOpsClusters: their deletion waits for it.
    let is_needed = !entries.is_empty() || existing.is_some_and(Object::is_ours);
    if !is_needed || !left_out(cache, &entries).is_empty() {
        return None;
    }
    ensure(
        &MANAGEMENTS,
        agent::management(
            &entries.iter().map(DesiredEntry::entry).collect::<Vec<_>>(),
            existing.map(|existing| &existing.object),
        ),
        existing,
    )
}

/// Returns the clusters with the add-on that these entries would lose, although no GitOpsCluster has released them.
fn left_out(cache: &Cache, entries: &[DesiredEntry]) -> Vec<String> {
    let named: BTreeSet<_> = entries
        .iter()
        .flat_map(|entry| super::addon::named(cache, entry))
        .collect();
    let all = cache.objects(Kind::AddOns).filter(|(addon, it)| {
        let cluster = &*addon.namespace;
        // The new owner may not have named it yet.
        let is_taken = || assignment::for_cluster(cache, cluster).served_owner().is_some();
        let stays = || !super::addon::is_released_by_all(cache, cluster) || is_taken();
        !named.contains(cluster) && !it.deleting && stays()
    });
    all.map(|(addon, _)| addon.namespace.to_string()).collect()
}

/// Returns the clusters that have the add-on and that no GitOpsCluster selects, although none has released them.
pub(super) fn unselected_clusters(cache: &Cache, context: &Context<'_>) -> Vec<String> {
    left_out(cache, &entries(cache, context, management(cache)))
}

/// Returns the entries of the GitOpsClusters. A GitOpsCluster with missing objects, or one that is currently not served, keeps
/// its previous entry.
fn entries(cache: &Cache, context: &Context<'_>, existing: Option<&Object>) -> Vec<DesiredEntry> {
    let all = GitOpsClusterRef::all(cache).filter(|gitops| may_request_agents(*gitops));
    all.filter_map(|gitops| {
        let desired = gitops.served_agent();
        let entry = desired.and_then(|desired| super::addon::entry(gitops, desired, context));
        entry.or_else(|| super::addon::entry_before(gitops, &existing?.object))
    })
    .collect()
}

/// Returns the next deletion of shared objects once no GitOpsCluster requests agents. Deletes only while the last GitOpsCluster
/// that requested agents waits for it: an empty list of GitOpsClusters is no reason.
fn unwanted(cache: &Cache) -> Option<Write> {
    let is_waiting = GitOpsClusterRef::all(cache).any(|gitops| {
        let is_last = gitops.object.deleting && gitops.object.spec.may_have_agent() && gitops.has_finalizer();
        !gitops.is_of_another_controller() && (is_last || super::addon::is_left(gitops))
    });
    if !is_waiting {
        return None;
    }
    if let Some(existing) = management(cache) {
        return ensure_absent(&MANAGEMENTS, &ObjectRef::new("", names::ADDON), existing);
    }
    if cache.objects(Kind::AddOns).next().is_some() {
        return None;
    }
    let shared_objects = shared_objects(cache)
        .find_map(|(resource, object_ref, existing)| ensure_absent(resource, &object_ref, existing));
    let records = || {
        let mut all = cache.objects(Kind::IssuedCertificates);
        all.find_map(|(object_ref, existing)| ensure_absent(&SECRETS, object_ref, existing))
    };
    shared_objects.or_else(|| certificate(cache)).or_else(records)
}

/// Returns the shared objects other than certificates.
fn shared_objects(cache: &Cache) -> impl Iterator<Item = (&'static Resource, ObjectRef, &Object)> {
    let all = [
        (Kind::Bundle, &CONFIG_MAPS, names::CA_BUNDLE),
        (Kind::TokenKey, &SECRETS, names::JWT_SECRET),
    ];
    all.into_iter().filter_map(move |(kind, resource, name)| {
        let object_ref = ObjectRef::new(cache.argocd(), name);
        let existing = cache.object(kind, &object_ref)?;
        Some((resource, object_ref, existing))
    })
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
            None,
        ))
    })
}

/// Returns true if any of our shared objects is left.
pub(super) fn is_left(cache: &Cache) -> bool {
    let mut certificates = names::CERTIFICATES
        .into_iter()
        .filter_map(|name| cache.certificate(name));
    management(cache).is_some_and(Object::is_ours)
        || shared_objects(cache).any(|(_, _, existing)| existing.is_ours())
        || certificates.any(|it| it.is_ours)
        || cache.objects(Kind::IssuedCertificates).any(|(_, it)| it.is_ours())
}
