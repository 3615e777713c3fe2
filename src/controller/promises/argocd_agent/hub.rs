//! What every agent needs on the hub: the authority, the certificates of the principal and of the resource proxy, the key of its
//! tokens, and the add-on as OCM knows it. As long as any GitOpsCluster asks for agents it is there; with the last of them it goes.

use super::addon::Wish;
use super::authority::{self, Leaf, Spread};
use super::{ABOUT, NAME, NEEDS, asking, blocklist, gone, issued, management, of_argocd, of_hub, server, so, works};
use crate::agent::{self, names};
use crate::controller::action::{Action, Write};
use crate::controller::index::{Index, Sort};
use crate::controller::promises::gitopscluster::{agents_of, has_agent, is_anothers, is_held};
use crate::controller::promises::{Moment, Promise};
use crate::controller::resources::{CONFIG_MAPS, DEPLOYMENTS, MANAGEMENTS, Resource, SECRETS};
use crate::controller::seen::{GitOpsCluster, Object, Place, TlsSecret};
use crate::controller::watches::Kept;
use crate::generate::names::hex;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::time::Duration;

pub(in crate::controller::promises) const PROMISE: Promise = Promise {
    name: NAME,
    about: ABOUT,
    of: Sort::ArgoCd,
    needs: NEEDS,
    pause: Duration::from_millis(200),
    desired,
    again,
};

/// The annotation of the principal's Pods that says which certificates they were started with: it reads them once, so that another
/// value, which makes Kubernetes start others, is what a change of them needs, once.
const STARTED_WITH: &str = "argocd-ocm-cmp.github.io/certificates";

fn desired(index: &Index, place: &Place, moment: &Moment<'_>) -> Option<Action> {
    let argocd = &*moment.settings.argocd;
    if *place.name != *argocd {
        return None;
    }
    // What must not be delayed comes first.
    let lists = blocklist::next(index, argocd, moment.now).or_else(|| issued::expired(index, argocd, moment.now));
    let write = if lists.is_some() {
        lists
    } else if asking(index, argocd).next().is_some() {
        wanted(index, moment)
    } else if index.gitops_clusters().any(|(place, it)| may_ask(index, place, it)) {
        install(index, moment)
    } else {
        unwanted(index, argocd)
    };
    Some(of_hub(argocd, vec![write?]))
}

/// Whether a GitOpsCluster asks for agents, served or not, or may do so, or its operators still have something to take away.
fn may_ask(index: &Index, place: &Place, it: &GitOpsCluster) -> bool {
    !it.deleting && it.spec.may_have_agent() || works::operated(index, place).next().is_some()
}

fn again(index: &Index, _: &Place, moment: &Moment<'_>) -> Option<Timestamp> {
    let rollouts = asking(index, &moment.settings.argocd);
    let rollouts = rollouts.filter_map(|(place, _, _)| super::rollout::again(index, place, moment));
    rollouts
        .chain(renewal(index, &moment.settings.argocd))
        .chain(issued::again(index, moment.now))
        .min()
}

/// When a certificate is to be renewed.
fn renewal(index: &Index, argocd: &str) -> Option<Timestamp> {
    asking(index, argocd).next()?;
    let ca = index.certificate(names::CA_SECRET)?;
    let leaves = [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS].map(|name| index.certificate(name));
    let ours = leaves.into_iter().flatten().filter(|leaf| authority::is_of(ca, leaf));
    let leaves = ours.filter_map(|leaf| Some(leaf.leaf()?.renews_at()));
    leaves.chain(authority::again(ca)).min()
}

/// The first that is not as it shall be: each needs what comes before it.
fn wanted(index: &Index, moment: &Moment<'_>) -> Option<Write> {
    let (argocd, now) = (&*moment.settings.argocd, moment.now);
    let ca = index.certificate(names::CA_SECRET);
    if let Some(write) = authority::next(ca, argocd, spread(index, argocd), now) {
        return Some(write);
    }
    let ca = ca.filter(|ca| ca.leaf().is_some())?;
    let named = |kind, name| index.object(kind, &Place::new(argocd, name));
    if named(Kept::TokenKey, names::JWT_SECRET).is_none() {
        return Some(authority::token_key(argocd));
    }
    let bundle = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names::CA_BUNDLE, "namespace": argocd, "labels": authority::labels()},
        "data": {"ca-bundle.crt": &*ca.text},
    });
    if let Some(write) = so(&CONFIG_MAPS, bundle, named(Kept::Bundle, names::CA_BUNDLE)) {
        return Some(write);
    }
    leaves(index, ca, argocd, now)
        .or_else(|| restart(index, ca, argocd))
        .or_else(|| install(index, moment))
}

/// The certificates of the principal and of the resource proxy.
fn leaves(index: &Index, ca: &TlsSecret, argocd: &str, now: Timestamp) -> Option<Write> {
    let [services, routes, nodes] = [Kept::Services, Kept::Routes, Kept::Nodes].map(|kind| of_argocd(index, kind));
    let servers = asking(index, argocd).filter_map(|(_, _, wanted)| server(index, wanted).ok());
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
        let wanted = Leaf {
            secret,
            names,
            common_name,
        };
        authority::leaf(ca, index.certificate(secret), &wanted, argocd, now)
    })
}

/// Starts a principal anew that was started with other certificates.
fn restart(index: &Index, ca: &TlsSecret, argocd: &str) -> Option<Write> {
    let mut digest = Sha256::new_with_prefix(&*ca.text);
    for name in [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS] {
        digest.update(index.certificate(name)?.digest);
    }
    let digest = hex(&digest.finalize()[..16]);
    names::PRINCIPAL_DEPLOYMENTS.into_iter().find_map(|name| {
        let place = Place::new(argocd, name);
        let there = index.object(Kept::Deployments, &place)?;
        let annotations = &there.object["spec"]["template"]["metadata"]["annotations"];
        (annotations[STARTED_WITH] != *digest).then(|| Write::Patch {
            resource: &DEPLOYMENTS,
            place,
            body: json!({
                "metadata": {"resourceVersion": there.version},
                "spec": {"template": {"metadata": {"annotations": {STARTED_WITH: digest}}}},
            }),
        })
    })
}

/// Whether every cluster knows the authorities, and whether all that is issued is of the first.
fn spread(index: &Index, argocd: &str) -> Spread {
    let Some(ca) = index.certificate(names::CA_SECRET) else {
        return Spread {
            is_known: false,
            is_used: false,
        };
    };
    // To look at every certificate takes time, and where there is only one authority nobody asks.
    if ca.next.is_none() && ca.certificates.len() < 2 {
        return Spread {
            is_known: true,
            is_used: true,
        };
    }
    let issued = |name| {
        let there = index.certificate(name);
        there.is_some_and(|there| {
            let is_ours = authority::is_of(ca, there);
            let leaf = there.leaf().zip(ca.leaf());
            !is_ours || leaf.is_some_and(|(leaf, signer)| leaf.is_issued_by(signer))
        })
    };
    let mut clusters: BTreeSet<_> = asking(index, argocd)
        .flat_map(|(place, it, _)| agents_of(index, place, it, argocd))
        .collect();
    // What is not understood for now keeps its agents, and they are to know the next authority like all others.
    let kept = index.gitops_clusters().filter(|(place, it)| {
        !it.deleting && it.spec.may_have_agent() && super::wanted(index, place, it, argocd).is_none()
    });
    clusters.extend(kept.flat_map(|(place, _)| super::addon::clusters_of(index, place)));
    let leaves = [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS];
    Spread {
        is_known: clusters.iter().all(|cluster| works::has(index, cluster, ca)),
        is_used: leaves.into_iter().all(issued)
            && clusters
                .iter()
                .all(|cluster| works::is_registered_by(index, cluster, ca)),
    }
}

/// The add-on as OCM knows it: what each GitOpsCluster wants of it, once all that it names is there. OCM takes it off every cluster
/// that none of these name, so that nothing is said before every cluster that has it is named.
fn install(index: &Index, moment: &Moment<'_>) -> Option<Write> {
    let argocd = &*moment.settings.argocd;
    let there = management(index);
    let entries = entries(index, moment, there);
    if entries.is_empty() || !left_out(index, &entries, argocd).is_empty() {
        return None;
    }
    so(
        &MANAGEMENTS,
        agent::management(
            &entries.iter().map(Wish::entry).collect::<Vec<_>>(),
            there.map(|there| &there.object),
        ),
        there,
    )
}

/// The clusters that have the add-on and that these do not name, though nobody has given them up.
fn left_out(index: &Index, entries: &[Wish], argocd: &str) -> Vec<String> {
    let named: BTreeSet<_> = entries
        .iter()
        .flat_map(|entry| super::addon::named(index, entry))
        .collect();
    let all = index.objects(Kept::AddOns).filter(|(addon, it)| {
        let cluster = &*addon.namespace;
        // Who takes it over may not have named it yet.
        let is_taken = || asking(index, argocd).any(|(place, it, _)| has_agent(index, place, it, cluster, argocd));
        let stays = || !super::addon::is_given_up(index, cluster, argocd) || is_taken();
        !named.contains(cluster) && !it.deleting && stays()
    });
    all.map(|(addon, _)| addon.namespace.to_string()).collect()
}

/// The clusters that have the add-on and that no GitOpsCluster selects, though nobody has given them up.
pub(super) fn strangers(index: &Index, moment: &Moment<'_>) -> Vec<String> {
    let argocd = &*moment.settings.argocd;
    left_out(index, &entries(index, moment, management(index)), argocd)
}

/// What the GitOpsClusters want of the add-on. One of which something is not there yet, or that is not served for now, goes on to
/// want what it wanted.
fn entries(index: &Index, moment: &Moment<'_>, there: Option<&Object>) -> Vec<Wish> {
    let argocd = &*moment.settings.argocd;
    let asking = index.gitops_clusters().filter(|(place, it)| may_ask(index, place, it));
    asking
        .filter_map(|(place, it)| {
            let is_served = super::wanted(index, place, it, argocd).is_some();
            let now = is_served
                .then(|| super::addon::entry(index, place, it, moment))
                .flatten();
            now.or_else(|| super::addon::entry_before(place, &there?.object))
        })
        .collect()
}

/// What is left when nobody asks for agents any more: it goes while the last GitOpsCluster that has asked for them waits for that.
/// That none is listed is no reason.
fn unwanted(index: &Index, argocd: &str) -> Option<Write> {
    let is_waiting = index.gitops_clusters().any(|(place, it)| {
        let is_last = it.deleting && it.spec.agent.is_some() && is_held(place, it, argocd);
        !is_anothers(place, it, argocd) && (is_last || super::addon::is_left(index, place))
    });
    if !is_waiting {
        return None;
    }
    if let Some(there) = management(index) {
        return gone(&MANAGEMENTS, &Place::new("", names::ADDON), there);
    }
    if index.objects(Kept::AddOns).next().is_some() {
        return None;
    }
    let beside = beside(index, argocd).find_map(|(resource, place, there)| gone(resource, &place, there));
    let lists = || {
        let mut all = index.objects(Kept::Issued);
        all.find_map(|(place, there)| gone(&SECRETS, place, there))
    };
    beside.or_else(|| outdated(index, argocd)).or_else(lists)
}

/// What there is beside the certificates: what kind it is, and where.
fn beside<'i>(index: &'i Index, argocd: &str) -> impl Iterator<Item = (&'static Resource, Place, &'i Object)> {
    let all = [
        (Kept::Bundle, &CONFIG_MAPS, names::CA_BUNDLE),
        (Kept::TokenKey, &SECRETS, names::JWT_SECRET),
    ];
    all.into_iter().filter_map(move |(kind, resource, name)| {
        let place = Place::new(argocd, name);
        let there = index.object(kind, &place)?;
        Some((resource, place, there))
    })
}

/// The first of the certificates of ours that is still there.
fn outdated(index: &Index, argocd: &str) -> Option<Write> {
    names::CERTIFICATES.into_iter().find_map(|name| {
        let there = index
            .certificate(name)
            .filter(|there| there.is_ours && !there.deleting)?;
        Some(Write::Delete {
            resource: &SECRETS,
            place: Place::new(argocd, name),
            uid: there.uid.clone(),
            version: there.version.clone(),
            unless_there: None,
        })
    })
}

/// Whether anything of ours is left of what every agent needs.
pub(super) fn is_left(index: &Index, argocd: &str) -> bool {
    let mut certificates = names::CERTIFICATES
        .into_iter()
        .filter_map(|name| index.certificate(name));
    management(index).is_some_and(Object::is_ours)
        || beside(index, argocd).any(|(_, _, there)| there.is_ours())
        || certificates.any(|it| it.is_ours)
        || index.objects(Kept::Issued).any(|(_, it)| it.is_ours())
}
