//! GitOpsClusters: the managed clusters that a Placement selects are registered in Argo CD, and the status says how far that is.
//!
//! It is a promise in parts. This one is about GitOpsClusters, their finalizer and their status; [`secrets`] is about the Secret of
//! each managed cluster, so that one that changes costs no look at the others; [`membership`] is which clusters those are.
//!
//! Cluster Secrets are only written into the namespace that the controller serves: that is where it sees those that are there.

mod membership;
mod secrets;
mod status;

pub(super) use membership::{agents_of, gives_up, has_agent, is_wanted};
pub(super) use secrets::AGENTS as AGENT_SECRETS;
pub(super) use secrets::PROMISE as SECRETS;

use super::{Moment, Promise, argocd_agent};
use crate::cluster_secret::ClusterSecret;
use crate::controller::action::{Action, Event, Involved, Write};
use crate::controller::index::{Index, Selection, Sort};
use crate::controller::resources::{GITOPS_CLUSTER_STATUSES, GITOPS_CLUSTERS};
use crate::controller::seen::{GitOpsCluster, Place};
use crate::controller::watches::Kind;
use membership::{Form, own};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const NAME: &str = "gitopscluster";
const ABOUT: &str =
    "a cluster Secret of Argo CD's for each cluster that the Placement of a GitOpsCluster selects, and its status";
const NEEDS: &[Kind] = &[
    Kind::GitOpsClusters,
    Kind::Placements,
    Kind::Decisions,
    Kind::Clusters,
    Kind::Secrets,
    Kind::Namespace,
    Kind::Config,
];

/// What keeps a GitOpsCluster from being gone before its Secrets are.
pub const FINALIZER: &str = "argocd-ocm-cmp.github.io/gitopscluster";

pub(super) const PROMISE: Promise = Promise {
    name: NAME,
    about: ABOUT,
    of: Sort::GitOpsCluster,
    needs: NEEDS,
    // While a fleet is registered, its status counts along.
    pause: Duration::from_secs(2),
    desired,
    again: argocd_agent::rollout_again,
};

/// Whether a GitOpsCluster is served here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is.
    Served,
    /// Its Argo CD is in this other namespace.
    Elsewhere(String),
    /// It is not in Argo CD's namespace, which is not open to others.
    Unauthorised,
    /// Its Placement is said to be in this other namespace.
    WrongPlacement(String),
}

impl Standing {
    pub(super) fn of(index: &Index, place: &Place, it: &GitOpsCluster, argocd: &str) -> Self {
        let wanted = it.spec.argocd.as_deref().unwrap_or(&place.namespace);
        let placement = it.spec.placement_namespace.as_deref();
        if wanted != argocd {
            return Self::Elsewhere(wanted.to_owned());
        }
        if *place.namespace != *argocd && !index.is_open() {
            return Self::Unauthorised;
        }
        match placement.filter(|namespace| **namespace != *place.namespace) {
            Some(namespace) => Self::WrongPlacement(namespace.to_owned()),
            None => Self::Served,
        }
    }
}

pub(super) fn has_finalizer(it: &GitOpsCluster) -> bool {
    it.finalizers.iter().any(|finalizer| finalizer == FINALIZER)
}

/// Returns what a GitOpsCluster that is being deleted waits for. Secrets count by the names under which they are deleted: a copy of one
/// has the annotation too, and nobody deletes it.
fn left(index: &Index, place: &Place, it: &GitOpsCluster, moment: &Moment<'_>) -> Vec<String> {
    let argocd = &*moment.settings.argocd;
    let owner = place.to_string();
    let clusters: BTreeSet<&str> = index.secrets_owned_by(&owner).map(ClusterSecret::cluster).collect();
    let held = clusters.into_iter().flat_map(|cluster| {
        let of_it = Form::ALL.into_iter().filter(|form| {
            let secret = own(*form, index, cluster);
            secret.and_then(ClusterSecret::owner) == Some(&*owner)
        });
        of_it.map(|form| format!("Secret {argocd}/{}", form.secret_name(cluster)))
    });
    let mut left: Vec<_> = held.collect();
    if argocd_agent::is_left(index, place, it, moment) {
        left.push("what was made for its agents".to_owned());
    }
    left
}

fn desired(index: &Index, place: &Place, moment: &Moment<'_>) -> Option<Action> {
    let it = index.gitops_cluster(place)?;
    let standing = Standing::of(index, place, it, &moment.settings.argocd);
    // Another controller has answered it, and writes everything.
    if let Standing::Elsewhere(other) = &standing
        && status::is_answered(place, it, other)
    {
        return None;
    }
    let action = |resource, body, events| Action {
        of: Involved {
            resource: &GITOPS_CLUSTERS,
            place: place.clone(),
            uid: it.uid.clone(),
        },
        writes: vec![Write::Patch {
            resource,
            place: place.clone(),
            body,
        }],
        refresh: false,
        events,
    };
    let finalizers = |finalizers: Vec<&String>| {
        let body = json!({"metadata": {"resourceVersion": it.version, "finalizers": finalizers}});
        action(&GITOPS_CLUSTERS, body, Vec::new())
    };
    // All controllers share the name of the finalizer: of a GitOpsCluster for another Argo CD it is ours only while the status still
    // says that it was registered here. Without that, it is left to the other controller.
    let is_elsewhere = matches!(standing, Standing::Elsewhere(_));
    let is_ours = !is_elsewhere || status::names_argocd(place, it, &moment.settings.argocd);
    let is_held = is_ours && has_finalizer(it);
    if it.deleting && !is_held {
        return None;
    }
    if is_held && (it.deleting || is_elsewhere) {
        let left = left(index, place, it, moment);
        if left.is_empty() {
            let others = it.finalizers.iter().filter(|finalizer| *finalizer != FINALIZER);
            return Some(finalizers(others.collect()));
        }
        if !it.deleting {
            return None;
        }
        let status = status::deleting(it, &left, moment)?;
        let body = json!({"metadata": {"resourceVersion": it.version}, "status": status});
        return Some(action(&GITOPS_CLUSTER_STATUSES, body, Vec::new()));
    }
    let selects = !matches!(
        index.selection(&it.placement(place)),
        Selection::NoPlacement | Selection::Nothing
    );
    // Without the promise about them, agents are nothing to be waited for.
    let registers = it.spec.registers || it.spec.agent.is_some() && moment.settings.agents;
    if standing == Standing::Served && registers && selects && !has_finalizer(it) {
        let ours = FINALIZER.to_owned();
        return Some(finalizers(it.finalizers.iter().chain([&ours]).collect()));
    }
    let (status, told, refused) = status::wanted(index, place, it, &standing, moment)?;
    let body = json!({"metadata": {"resourceVersion": it.version}, "status": status});
    let warnings = [("ClusterSecretConflict", told), ("FieldRefused", refused)];
    let events = warnings.into_iter().filter_map(|(reason, message)| {
        Some(Event {
            warning: true,
            reason,
            message: message?,
        })
    });
    Some(action(&GITOPS_CLUSTER_STATUSES, body, events.collect()))
}

#[cfg(test)]
mod tests;
