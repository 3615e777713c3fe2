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
use crate::gitopscluster::{SHARED_FINALIZER, finalizer, namespace_of_finalizer};
use membership::{Form, own};
use serde_json::{Value, json};
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
        let wanted = argocd_of(place, it);
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

/// Returns the namespace of the Argo CD that a GitOpsCluster is for.
fn argocd_of<'i>(place: &'i Place, it: &'i GitOpsCluster) -> &'i str {
    it.spec.argocd.as_deref().unwrap_or(&place.namespace)
}

/// Returns true if a GitOpsCluster has the finalizer of the controller for the Argo CD in this namespace.
fn has_own_finalizer(it: &GitOpsCluster, argocd: &str) -> bool {
    let mut namespaces = it.finalizers.iter().filter_map(|it| namespace_of_finalizer(it));
    namespaces.any(|namespace| namespace == argocd)
}

fn has_shared_finalizer(it: &GitOpsCluster) -> bool {
    it.finalizers.iter().any(|finalizer| finalizer == SHARED_FINALIZER)
}

/// Returns true if a GitOpsCluster waits for the controller of the Argo CD in this namespace before it is gone: by that controller's
/// finalizer, or by the shared one of earlier versions where it is for this Argo CD. Where it is for another, nobody knows whose the
/// shared one is, and it is left to the other's controller.
pub(super) fn is_held(place: &Place, it: &GitOpsCluster, argocd: &str) -> bool {
    has_own_finalizer(it, argocd) || has_shared_finalizer(it) && argocd_of(place, it) == argocd
}

/// Returns true if what was made for a GitOpsCluster outside of Argo CD's namespace is for another controller to remove: the
/// GitOpsCluster is for another Argo CD, and never was for this one, or has the finalizer of another controller by now.
pub(super) fn is_anothers(place: &Place, it: &GitOpsCluster, argocd: &str) -> bool {
    let mut namespaces = it.finalizers.iter().filter_map(|it| namespace_of_finalizer(it));
    let is_for_this = argocd_of(place, it) == argocd;
    !is_for_this && (!has_own_finalizer(it, argocd) || namespaces.any(|namespace| namespace != argocd))
}

/// Returns the finalizers of a GitOpsCluster with that of the controller for this Argo CD, which also replaces the shared one.
fn with_own_finalizer(it: &GitOpsCluster, argocd: &str) -> Vec<String> {
    let others = it.finalizers.iter().filter(|it| *it != SHARED_FINALIZER);
    let own = (!has_own_finalizer(it, argocd)).then(|| finalizer(argocd));
    others.cloned().chain(own).collect()
}

/// Returns the finalizers of a GitOpsCluster that are not for this controller to remove.
fn others_finalizers(place: &Place, it: &GitOpsCluster, argocd: &str) -> Vec<String> {
    let is_for_this = argocd_of(place, it) == argocd;
    let is_ours = |it: &&String| namespace_of_finalizer(it) == Some(argocd) || is_for_this && *it == SHARED_FINALIZER;
    it.finalizers.iter().filter(|it| !is_ours(it)).cloned().collect()
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
    let argocd = &*moment.settings.argocd;
    let standing = Standing::of(index, place, it, argocd);
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
    let status = |status: Value, events| {
        let body = json!({"metadata": {"resourceVersion": it.version}, "status": status});
        action(&GITOPS_CLUSTER_STATUSES, body, events)
    };
    let alive = || {
        let (wanted, told, refused) = status::wanted(index, place, it, &standing, moment)?;
        let warnings = [("ClusterSecretConflict", told), ("FieldRefused", refused)];
        let events = warnings.into_iter().filter_map(|(reason, message)| {
            Some(Event {
                warning: true,
                reason,
                message: message?,
            })
        });
        Some(status(wanted, events.collect()))
    };
    let finalizers = |finalizers: Vec<String>| {
        let body = json!({"metadata": {"resourceVersion": it.version, "finalizers": finalizers}});
        action(&GITOPS_CLUSTERS, body, Vec::new())
    };
    // What was refused may be refused again: the condition that says so does not wait for it.
    let is_told = status::names_refusals(index, place, it, moment);
    let is_held = is_held(place, it, argocd);
    if it.deleting {
        if !is_held {
            return None;
        }
        let left = left(index, place, it, moment);
        if left.is_empty() && is_told {
            return Some(finalizers(others_finalizers(place, it, argocd)));
        }
        return status::deleting(index, place, it, &left, moment).map(|wanted| status(wanted, Vec::new()));
    }
    if let Standing::Elsewhere(other) = &standing {
        if is_held && left(index, place, it, moment).is_empty() {
            return Some(finalizers(others_finalizers(place, it, argocd)));
        }
        // That controller writes the status.
        if has_own_finalizer(it, other) || status::is_answered(it, other) {
            return None;
        }
        return alive();
    }
    let selects = !matches!(
        index.selection(&it.placement(place)),
        Selection::NoPlacement | Selection::Nothing
    );
    // Without the promise about them, agents are nothing to be waited for.
    let registers = it.spec.registers || it.spec.agent.is_some() && moment.settings.agents;
    let is_lacking = standing == Standing::Served && registers && selects && !is_held;
    if is_told && (is_lacking || has_shared_finalizer(it)) {
        return Some(finalizers(with_own_finalizer(it, argocd)));
    }
    alive()
}

#[cfg(test)]
mod tests;
