//! What every agent needs on the hub: the authority, the certificates of the principal and of the resource proxy, the key of its
//! tokens, and the add-on as OCM knows it. As long as any GitOpsCluster asks for agents it is there; with the last of them it goes.

use super::addon::Wish;
use super::authority::{self, Leaf, Spread};
use super::{ABOUT, NAME, NEEDS, asking, blocklist, gone, of_argocd, of_hub, server, so};
use crate::agent::{self, names};
use crate::controller::action::{Action, Write};
use crate::controller::index::{Index, Sort};
use crate::controller::promises::gitopscluster::{agents_of, has_agent, has_finalizer};
use crate::controller::promises::{Moment, Promise};
use crate::controller::resources::{CONFIG_MAPS, DEPLOYMENTS, MANAGEMENTS, SECRETS};
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
    let write = if asking(index, argocd).next().is_some() {
        wanted(index, moment)
    } else if index.gitops_clusters().any(|(_, it)| may_ask(it)) {
        management(index, moment)
    } else {
        unwanted(index, argocd)
    };
    Some(of_hub(argocd, vec![write?]))
}

/// Whether a GitOpsCluster asks for agents, served or not, or may do so.
fn may_ask(it: &GitOpsCluster) -> bool {
    !it.deleting && (it.spec.agent.is_some() || it.spec.agent_is_unclear)
}

fn again(index: &Index, _: &Place, moment: &Moment<'_>) -> Option<Timestamp> {
    let rollouts = asking(index, &moment.settings.argocd);
    let rollouts = rollouts.filter_map(|(place, _, _)| super::rollout::again(index, place, moment));
    rollouts.chain(renewal(index, &moment.settings.argocd)).min()
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
        .or_else(|| blocklist::next(index, argocd, now))
        .or_else(|| restart(index, ca, argocd))
        .or_else(|| management(index, moment))
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
    let mut clusters = asking(index, argocd).flat_map(|(place, it, _)| agents_of(index, place, it, argocd));
    let is_known = asking(index, argocd).all(|(place, it, _)| {
        let mut clusters = agents_of(index, place, it, argocd).into_iter();
        clusters.all(|cluster| super::works::has(index, cluster, ca))
    });
    Spread {
        is_known,
        is_used: [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS]
            .into_iter()
            .all(issued)
            && clusters.all(|cluster| super::works::is_registered_by(index, cluster, ca)),
    }
}

/// The add-on as OCM knows it: what each GitOpsCluster wants of it, once all that it names is there. OCM takes it off every cluster
/// that none of these name, so that nothing is said before every cluster that has it is named.
fn management(index: &Index, moment: &Moment<'_>) -> Option<Write> {
    let argocd = &*moment.settings.argocd;
    let place = Place::new("", names::ADDON);
    let there = index.object(Kept::Management, &place);
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
    let there = index.object(Kept::Management, &Place::new("", names::ADDON));
    left_out(index, &entries(index, moment, there), argocd)
}

/// What the GitOpsClusters want of the add-on. One of which something is not there yet, or that is not served for now, goes on to
/// want what it wanted.
fn entries(index: &Index, moment: &Moment<'_>, there: Option<&Object>) -> Vec<Wish> {
    let argocd = &*moment.settings.argocd;
    let asking = index.gitops_clusters().filter(|(_, it)| may_ask(it));
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
        let is_last = it.deleting && it.spec.agent.is_some() && has_finalizer(it);
        is_last || super::addon::is_left(index, place)
    });
    if !is_waiting {
        return None;
    }
    let management = Place::new("", names::ADDON);
    if let Some(there) = index.object(Kept::Management, &management) {
        return gone(&MANAGEMENTS, &management, there);
    }
    if index.objects(Kept::AddOns).next().is_some() {
        return None;
    }
    let bundle = Place::new(argocd, names::CA_BUNDLE);
    if let Some(write) = index
        .object(Kept::Bundle, &bundle)
        .and_then(|there| gone(&CONFIG_MAPS, &bundle, there))
    {
        return Some(write);
    }
    let key = Place::new(argocd, names::JWT_SECRET);
    if let Some(write) = index
        .object(Kept::TokenKey, &key)
        .and_then(|there| gone(&SECRETS, &key, there))
    {
        return Some(write);
    }
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
    let certificates = names::CERTIFICATES.into_iter();
    let management = index.object(Kept::Management, &Place::new("", names::ADDON));
    let bundle = index.object(Kept::Bundle, &Place::new(argocd, names::CA_BUNDLE));
    let key = index.object(Kept::TokenKey, &Place::new(argocd, names::JWT_SECRET));
    management.is_some_and(Object::is_ours)
        || key.is_some_and(Object::is_ours)
        || bundle.is_some_and(Object::is_ours)
        || certificates
            .filter_map(|name| index.certificate(name))
            .any(|it| it.is_ours)
}
