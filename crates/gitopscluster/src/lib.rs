//! The GitOpsCluster controller: registers the managed clusters that a Placement selects in Argo CD, and reports the progress in
//! the status.
//!
//! The controller has two parts. This module reconciles GitOpsClusters, their finalizer and their status. [`secrets`] reconciles
//! the cluster Secret of each managed cluster separately, so that a change of one cluster does not reconcile the others.
//! [`assignment`] decides which managed clusters belong to a GitOpsCluster.
//!
//! The controller writes cluster Secrets only into the namespace that it serves, because its cache holds the Secrets of that
//! namespace only.

mod secrets;
mod status;

pub use secrets::{AGENTS as AGENT_SECRETS, CONTROLLER as SECRETS};

use assignment::{GitOpsClusterRef, ServingState, owned_secret};
use hub_state::cluster_secret::ClusterSecret;
use hub_state::{Cache, Context, Controller, Kind, SecretKind, Selection};
use jiff::Timestamp;
use ocm::gitops_cluster::{SHARED_FINALIZER, finalizer, namespace_of_finalizer};
use ocm::resources::{GITOPS_CLUSTER_STATUSES, GITOPS_CLUSTERS};
use primitives::object_ref::ObjectRef;
use runtime::action::{Action, Event, Write};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

pub const CONTROLLER: Controller = Controller {
    kind: Kind::GitOpsClusters,
    // The counts in the status change often while a fleet is registered.
    min_write_interval: Duration::from_secs(2),
    reconcile,
    requeue_after,
    ..SECRETS
};

fn requeue_after(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Timestamp> {
    let gitops = GitOpsClusterRef::get(cache, object_ref)?;
    let rollout = argocd_agent::reconcile::rollout_requeue_after(cache, object_ref, context);
    rollout.into_iter().chain(status::requeue_after(gitops, context)).min()
}

/// Returns descriptions of the objects that delay the deletion of a GitOpsCluster. Counts only Secrets with the names under which
/// the controller deletes them: a copy of such a Secret has the annotation too, and the controller never deletes it.
fn left(gitops: GitOpsClusterRef<'_>, context: &Context<'_>) -> Vec<String> {
    let (cache, owner) = (gitops.cache, gitops.object_ref.to_string());
    let clusters: BTreeSet<&str> = cache.secrets_owned_by(&owner).map(ClusterSecret::cluster).collect();
    let secrets = clusters.into_iter().flat_map(|cluster| {
        let of_it = SecretKind::ALL.into_iter().filter(|secret_kind| {
            let secret = owned_secret(*secret_kind, cache, cluster);
            secret.and_then(ClusterSecret::owner) == Some(&*owner)
        });
        of_it.map(|secret_kind| format!("Secret {}/{}", cache.argocd(), secret_kind.secret_name(cluster)))
    });
    let mut left: Vec<_> = secrets.collect();
    if argocd_agent::reconcile::is_left(gitops, context.now) {
        left.push("the objects of its agents".to_owned());
        let next = argocd_agent::reconcile::unserved_successors(gitops);
        left.extend(
            next.iter()
                .map(|next| format!("the handover of its clusters to GitOpsCluster {next}, which is not served")),
        );
        let absent = argocd_agent::reconcile::absent_owners(gitops);
        left.extend(
            absent
                .iter()
                .map(|absent| format!("GitOpsCluster {absent}, which is missing without a deletion")),
        );
    }
    left
}

fn reconcile(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let gitops = GitOpsClusterRef::get(cache, object_ref)?;
    let gitops_cluster = gitops.object;
    let serving_state = gitops.serving_state();
    // Report refused writes in the status before writing finalizers: the API server may refuse that write again.
    let names_refusals = status::names_refusals(gitops, context);
    if gitops_cluster.deleting {
        if !gitops.has_finalizer() {
            return None;
        }
        let left = left(gitops, context);
        if left.is_empty() && names_refusals {
            return write_finalizers(gitops, None);
        }
        return write_status(gitops, status::deleting(gitops, &left, context)?);
    }
    if let ServingState::Elsewhere(other) = &serving_state {
        if gitops.has_finalizer() && left(gitops, context).is_empty() {
            return write_finalizers(gitops, None);
        }
        // The controller of the other Argo CD writes the status.
        if gitops.has_finalizer_of(other) || status::is_status_of(gitops_cluster, other) {
            return None;
        }
        return write_status(gitops, status::desired(gitops, &serving_state, context)?);
    }
    let selects = !matches!(
        cache.selection(&gitops.placement()),
        Selection::NoPlacement | Selection::Empty
    );
    // Without the argocd-agent controller there are no agents to wait for.
    let registers =
        gitops_cluster.spec.creates_blank_secrets || gitops_cluster.spec.agent.is_some() && context.settings.agents;
    let needs_finalizer = serving_state == ServingState::Served && registers && selects && !gitops.has_finalizer();
    if names_refusals && (needs_finalizer || gitops.has_shared_finalizer()) {
        return write_finalizers(gitops, Some(&finalizer(cache.argocd())));
    }
    write_status(gitops, status::desired(gitops, &serving_state, context)?)
}

fn write_status(gitops: GitOpsClusterRef<'_>, (status, events): (Value, Vec<Event>)) -> Option<Action> {
    let write = Write::patch(
        &GITOPS_CLUSTER_STATUSES,
        gitops.object_ref.clone(),
        json!({"metadata": {"resourceVersion": gitops.object.version}, "status": status}),
    );
    let action = gitops.action(vec![write])?;
    Some(Action { events, ..action })
}

/// Adds the finalizer of this controller, or removes it, and keeps those of others.
fn write_finalizers(gitops: GitOpsClusterRef<'_>, ours: Option<&str>) -> Option<Action> {
    let argocd = Some(&**gitops.cache.argocd());
    let is_shared = |name: &String| gitops.is_for_this_argocd() && name == SHARED_FINALIZER;
    let all = gitops.object.finalizers.iter();
    let others = all.filter(|name| namespace_of_finalizer(name) != argocd && !is_shared(name));
    let finalizers: Vec<_> = others.map(String::as_str).chain(ours).collect();
    gitops.action(vec![Write::patch(
        &GITOPS_CLUSTERS,
        gitops.object_ref.clone(),
        json!({"metadata": {"resourceVersion": gitops.object.version, "finalizers": finalizers}}),
    )])
}
