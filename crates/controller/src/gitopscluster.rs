//! The GitOpsCluster controller: registers the managed clusters that a Placement selects in Argo CD, and reports the progress in
//! the status.
//!
//! The controller has three parts. This module reconciles GitOpsClusters, their finalizer and their status. [`secrets`]
//! reconciles the cluster Secret of each managed cluster separately, so that a change of one cluster does not reconcile the
//! others. [`membership`] decides which managed clusters belong to a GitOpsCluster.
//!
//! The controller writes cluster Secrets only into the namespace that it serves, because its cache holds the Secrets of that
//! namespace only.

pub(crate) mod mappers;
pub(crate) mod membership;
pub(crate) mod ownership;
mod secrets;
mod status;

pub(super) use secrets::AGENTS as AGENT_SECRETS;
pub(super) use secrets::CONTROLLER as SECRETS;

use crate::argocd_agent::reconcile as argocd_agent;
use crate::cache::{Cache, ReconcileKind, Selection};
use crate::cluster_secrets::ClusterSecret;
use crate::model::GitOpsCluster;
use crate::reconcile::{Context, Controller, Watch};
use crate::runtime::action::{Action, Event, InvolvedObject, Write};
use crate::watches::Kind;
use membership::{SecretKind, owned_secret};
use ocm::gitops_cluster::{SHARED_FINALIZER, finalizer, namespace_of_finalizer};
use ocm::object_ref::ObjectRef;
use ocm::resources::{GITOPS_CLUSTER_STATUSES, GITOPS_CLUSTERS};
use ownership::{Ownership, argocd_of, has_own_finalizer, has_shared_finalizer, is_held};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const NAME: &str = "gitopscluster";
const ABOUT: &str =
    "Argo CD cluster Secrets for the clusters that a GitOpsCluster's Placement selects, and the GitOpsCluster's status";
const WATCHES: &[Watch] = &[
    Watch::mapped(Kind::GitOpsClusters, mappers::gitops_cluster),
    Watch::mapped(Kind::Placements, mappers::placement),
    Watch::mapped(Kind::Decisions, mappers::decision),
    Watch::cached(Kind::Clusters),
    Watch::mapped(Kind::Secrets, mappers::secret),
    Watch::mapped(Kind::Namespace, mappers::namespace),
    Watch::cached(Kind::Config),
];

pub(super) const CONTROLLER: Controller = Controller {
    name: NAME,
    about: ABOUT,
    kind: ReconcileKind::GitOpsCluster,
    watches: WATCHES,
    // The counts in the status change often while a fleet is registered.
    min_write_interval: Duration::from_secs(2),
    reconcile,
    requeue_after: argocd_agent::rollout_again,
};

/// Returns the finalizers of a GitOpsCluster plus that of the controller of this Argo CD, which also replaces the shared one.
fn with_own_finalizer(it: &GitOpsCluster, argocd: &str) -> Vec<String> {
    let others = it.finalizers.iter().filter(|it| *it != SHARED_FINALIZER);
    let own = (!has_own_finalizer(it, argocd)).then(|| finalizer(argocd));
    others.cloned().chain(own).collect()
}

/// Returns the finalizers of a GitOpsCluster that this controller must not remove.
fn others_finalizers(object_ref: &ObjectRef, it: &GitOpsCluster, argocd: &str) -> Vec<String> {
    let is_for_this = argocd_of(object_ref, it) == argocd;
    let is_ours = |it: &&String| namespace_of_finalizer(it) == Some(argocd) || is_for_this && *it == SHARED_FINALIZER;
    it.finalizers.iter().filter(|it| !is_ours(it)).cloned().collect()
}

/// Returns descriptions of the objects that delay the deletion of a GitOpsCluster. Counts only Secrets with the names under which
/// the controller deletes them: a copy of such a Secret has the annotation too, and the controller never deletes it.
fn left(cache: &Cache, object_ref: &ObjectRef, it: &GitOpsCluster, context: &Context<'_>) -> Vec<String> {
    let argocd = &*context.settings.argocd;
    let owner = object_ref.to_string();
    let clusters: BTreeSet<&str> = cache.secrets_owned_by(&owner).map(ClusterSecret::cluster).collect();
    let held = clusters.into_iter().flat_map(|cluster| {
        let of_it = SecretKind::ALL.into_iter().filter(|secret_kind| {
            let secret = owned_secret(*secret_kind, cache, cluster);
            secret.and_then(ClusterSecret::owner) == Some(&*owner)
        });
        of_it.map(|secret_kind| format!("Secret {argocd}/{}", secret_kind.secret_name(cluster)))
    });
    let mut left: Vec<_> = held.collect();
    if argocd_agent::is_left(cache, object_ref, it, context) {
        left.push("the objects of its agents".to_owned());
    }
    left
}

fn reconcile(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let it = cache.gitops_cluster(object_ref)?;
    let argocd = &*context.settings.argocd;
    let ownership = Ownership::of(cache, object_ref, it, argocd);
    let action = |resource, body, events| Action {
        involved_object: InvolvedObject {
            resource: &GITOPS_CLUSTERS,
            object_ref: object_ref.clone(),
            uid: it.uid.clone(),
        },
        writes: vec![Write::Patch {
            resource,
            object_ref: object_ref.clone(),
            body,
        }],
        refresh: false,
        events,
    };
    let status = |status: Value, events| {
        let body = json!({"metadata": {"resourceVersion": it.version}, "status": status});
        action(&GITOPS_CLUSTER_STATUSES, body, events)
    };
    let write_status = || {
        let (desired, conflicts, refused) = status::desired(cache, object_ref, it, &ownership, context)?;
        let warnings = [("ClusterSecretConflict", conflicts), ("FieldRefused", refused)];
        let events = warnings.into_iter().filter_map(|(reason, message)| {
            Some(Event {
                warning: true,
                reason,
                message: message?,
            })
        });
        Some(status(desired, events.collect()))
    };
    let finalizers = |finalizers: Vec<String>| {
        let body = json!({"metadata": {"resourceVersion": it.version, "finalizers": finalizers}});
        action(&GITOPS_CLUSTERS, body, Vec::new())
    };
    // Report refused writes in the status before writing finalizers: the API server may refuse that write again.
    let is_told = status::names_refusals(cache, object_ref, it, context);
    let is_held = is_held(object_ref, it, argocd);
    if it.deleting {
        if !is_held {
            return None;
        }
        let left = left(cache, object_ref, it, context);
        if left.is_empty() && is_told {
            return Some(finalizers(others_finalizers(object_ref, it, argocd)));
        }
        return status::deleting(cache, object_ref, it, &left, context).map(|desired| status(desired, Vec::new()));
    }
    if let Ownership::Elsewhere(other) = &ownership {
        if is_held && left(cache, object_ref, it, context).is_empty() {
            return Some(finalizers(others_finalizers(object_ref, it, argocd)));
        }
        // The controller of the other Argo CD writes the status.
        if has_own_finalizer(it, other) || status::is_status_of(it, other) {
            return None;
        }
        return write_status();
    }
    let selects = !matches!(
        cache.selection(&it.placement(object_ref)),
        Selection::NoPlacement | Selection::Empty
    );
    // Without the argocd-agent controller there are no agents to wait for.
    let registers = it.spec.registers || it.spec.agent.is_some() && context.settings.agents;
    let is_lacking = ownership == Ownership::Served && registers && selects && !is_held;
    if is_told && (is_lacking || has_shared_finalizer(it)) {
        return Some(finalizers(with_own_finalizer(it, argocd)));
    }
    write_status()
}

#[cfg(test)]
mod tests;
