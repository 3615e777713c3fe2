//! argocd-agent on every managed cluster that a GitOpsCluster selects, as an add-on of OCM's.
//!
//! A promise in parts, each about the objects that it writes for: [`hub`] is what all of them need in Argo CD's namespace, and the
//! add-on as OCM knows it, [`addon`] is what one GitOpsCluster wants of it, [`works`] is what one managed cluster is brought beside
//! it, and [`requests`] are the certificates that agents ask for. How Argo CD knows their clusters is with the other Secrets of
//! [GitOpsClusters](super::gitopscluster).

mod addon;
mod authority;
mod blocklist;
mod hub;
mod issued;
mod requests;
mod rollout;
mod templates;
mod works;

pub(super) use addon::{PROMISE as ADDON, clusters_of};
pub(super) use hub::PROMISE as HUB;
pub(super) use issued::of_others as revoked_of_others;
pub(super) use requests::PROMISE as REQUESTS;
pub(super) use rollout::again as rollout_again;
pub(super) use works::PROMISE as WORKS;

use super::Moment;
use super::gitopscluster::{Standing, is_anothers, is_held};
use crate::agent::rollout::Progress;
use crate::agent::{self, Server, Wanted, names};
use crate::controller::action::{Action, Involved, Write};
use crate::controller::index::Index;
use crate::controller::resources::{GITOPS_CLUSTERS, NAMESPACES, Resource};
use crate::controller::seen::{GitOpsCluster, Object, Place};
use crate::controller::watches::{Kept, Kind};
use serde_json::{Value, json};

pub(super) const NAME: &str = "argocd-agent";
pub(super) const ABOUT: &str = "argocd-agent on each cluster that the Placement of a GitOpsCluster selects, as an add-on of OCM's, and its \
                     certificates";
pub(super) const NEEDS: &[Kind] = &[
    Kind::GitOpsClusters,
    Kind::Placements,
    Kind::Decisions,
    Kind::Clusters,
    Kind::Secrets,
    Kind::Namespace,
    Kind::Config,
    Kind::Certificates,
    Kind::Kept(Kept::TokenKey),
    Kind::Kept(Kept::Bundle),
    Kind::Kept(Kept::Blocklist),
    Kind::Kept(Kept::Issued),
    Kind::Kept(Kept::Services),
    Kind::Kept(Kept::Routes),
    Kind::Kept(Kept::Nodes),
    Kind::Kept(Kept::Deployments),
    Kind::Kept(Kept::Templates),
    Kind::Kept(Kept::Management),
    Kind::Kept(Kept::AddOnConfigs),
    Kind::Kept(Kept::AddOns),
    Kind::Kept(Kept::Placements),
    Kind::Kept(Kept::Decisions),
    Kind::Kept(Kept::Works),
    Kind::Kept(Kept::Requests),
];

/// The GitOpsClusters that bring agents to the clusters of this Argo CD.
fn asking<'i>(index: &'i Index, argocd: &'i str) -> impl Iterator<Item = (&'i Place, &'i GitOpsCluster, &'i Wanted)> {
    let all = index.gitops_clusters();
    all.filter_map(move |(place, it)| Some((place, it, wanted(index, place, it, argocd)?)))
}

/// What a GitOpsCluster asks for of argocd-agent, as long as it does and is served.
fn wanted<'i>(index: &Index, place: &Place, it: &'i GitOpsCluster, argocd: &str) -> Option<&'i Wanted> {
    let is_served = Standing::of(index, place, it, argocd) == Standing::Served;
    let is_asking = is_served && !it.deleting && is_held(place, it, argocd);
    it.spec.agent.as_ref().filter(|_| is_asking)
}

/// The add-on as OCM knows it.
fn management(index: &Index) -> Option<&Object> {
    index.object(Kept::Management, &Place::new("", names::ADDON))
}

/// The namespace and name of a GitOpsCluster.
fn pair(place: &Place) -> (&str, &str) {
    (&place.namespace, &place.name)
}

/// The objects of a kind in Argo CD's namespace.
fn of_argocd(index: &Index, kind: Kept) -> Vec<&Value> {
    index.objects(kind).map(|(_, it)| &it.object).collect()
}

/// Where the agents of a GitOpsCluster find the principal.
///
/// # Errors
/// With what is lacking for that, and the way out.
pub(super) fn server(index: &Index, wanted: &Wanted) -> Result<Server, String> {
    wanted.server(|| {
        let [services, routes, nodes] = [Kept::Services, Kept::Routes, Kept::Nodes].map(|kind| of_argocd(index, kind));
        agent::discover(&services, &routes, &nodes)
    })
}

/// Writes on behalf of a GitOpsCluster.
fn of_gitops(place: &Place, it: &GitOpsCluster, writes: Vec<Write>) -> Action {
    Action {
        of: Involved {
            resource: &GITOPS_CLUSTERS,
            place: place.clone(),
            uid: it.uid.clone(),
        },
        writes,
        refresh: false,
        events: Vec::new(),
    }
}

/// Writes on behalf of the Argo CD of a namespace.
fn of_hub(argocd: &str, writes: Vec<Write>) -> Action {
    Action {
        of: Involved {
            resource: &NAMESPACES,
            place: Place::new("", argocd),
            uid: Box::default(),
        },
        writes,
        refresh: false,
        events: Vec::new(),
    }
}

/// What is to be written for an object to be so, if it is not. What others have put into it stays.
fn so(resource: &'static Resource, wanted: Value, there: Option<&Object>) -> Option<Write> {
    let text = |key: &str| wanted["metadata"][key].as_str().unwrap_or_default();
    let place = Place::new(text("namespace"), text("name"));
    match there {
        None => Some(Write::Create {
            resource,
            place,
            object: wanted,
        }),
        Some(there) if there.deleting => None,
        Some(there) => {
            let mut wanted = wanted;
            if let Some(fields) = wanted.as_object_mut() {
                // What the kinds of Kubernetes itself are is not said where they are listed.
                fields.retain(|key, _| !["apiVersion", "kind"].contains(&key.as_str()));
            }
            let mut body = agent::difference(&wanted, &there.object)?;
            body["metadata"]["resourceVersion"] = json!(there.version);
            Some(Write::Patch { resource, place, body })
        }
    }
}

/// What is to be written for an object of ours to be gone.
fn gone(resource: &'static Resource, place: &Place, there: &Object) -> Option<Write> {
    (there.is_ours() && !there.deleting).then(|| Write::Delete {
        resource,
        place: place.clone(),
        uid: there.uid.clone(),
        version: there.version.clone(),
        unless_there: None,
    })
}

/// Whether anything is left that was made for a GitOpsCluster, or, where it is the last that has asked for agents, for all.
pub(super) fn is_left(index: &Index, place: &Place, it: &GitOpsCluster, moment: &Moment<'_>) -> bool {
    let argocd = &*moment.settings.argocd;
    let mut others = index.gitops_clusters().filter(|(other, _)| *other != place);
    let is_last =
        it.deleting && it.spec.agent.is_some() && !others.any(|(_, it)| !it.deleting && it.spec.agent.is_some());
    !is_anothers(place, it, argocd) && addon::is_left(index, place)
        || issued::is_pending(index, place, argocd, moment.now)
        || is_last && hub::is_left(index, argocd)
}

/// How far the add-on of a GitOpsCluster is.
pub(super) struct Ready {
    /// Whether what runs on its clusters is written down.
    pub(super) template: bool,
    /// Whether how it is configured there is.
    pub(super) config: bool,
    /// Whether OCM knows of both, or which clusters have the add-on that nobody selects.
    pub(super) management: Result<bool, Vec<String>>,
    /// How far its clusters are on the way to that.
    pub(super) progress: Progress,
}

/// How far the add-on of a GitOpsCluster is.
pub(super) fn ready(index: &Index, place: &Place, it: &GitOpsCluster, wanted: &Wanted, moment: &Moment<'_>) -> Ready {
    let name = templates::template_name(place, wanted, moment);
    let config = Place::new(&place.namespace, &names::deployment_config(&place.name));
    let there = management(index).map(|it| &it.object);
    let is_told = |there: &Value| {
        // While there is a rollout it is the second entry that has the wanted version.
        let (first, next) = (
            agent::present_template(pair(place), there),
            agent::next_template(pair(place), there),
        );
        [first, next].contains(&Some(&name))
    };
    Ready {
        template: index.object(Kept::Templates, &Place::new("", &name)).is_some(),
        config: index.object(Kept::AddOnConfigs, &config).is_some(),
        management: match there.filter(|there| agent::is_named(pair(place), there)) {
            Some(there) => Ok(is_told(there)),
            None => match hub::strangers(index, moment) {
                strangers if strangers.is_empty() => Ok(false),
                strangers => Err(strangers),
            },
        },
        progress: rollout::plan(index, place, it, &name, moment).progress,
    }
}

/// Until when the certificate of the agent of a cluster is good.
pub(super) fn certificate_until<'i>(index: &'i Index, cluster: &str, argocd: &str) -> Option<&'i str> {
    issued::until(index, cluster, argocd)
}

#[cfg(test)]
mod tests;
