//! Reconciles a cluster Secret for every managed cluster, with the cluster's labels, so that generators can select on them. The
//! Secret holds no credentials and its server does not exist: in the pull model, Argo CD never connects to a cluster.

use crate::RegisteredCluster;
use assignment::{is_registered, mappers};
use hub_state::cluster_secret::SecretManager;
use hub_state::{Cache, Context, Controller, Kind, Watch, no_requeue};
use ocm::resources::CLUSTERS;
use primitives::object_ref::ObjectRef;
use runtime::action::{Action, Event, InvolvedObject, Verb};
use std::time::Duration;

pub const CONTROLLER: Controller = Controller {
    name: "cluster-secrets",
    about: "an Argo CD cluster Secret for each managed cluster, with its labels for ApplicationSet generators",
    kind: Kind::Clusters,
    watches: &[
        Watch::new(Kind::Clusters, mappers::cluster_alone),
        Watch::new(Kind::Secrets, mappers::secret_alone),
        Watch::new(Kind::Config, mappers::tracking),
    ],
    min_write_interval: Duration::from_secs(1),
    reconcile,
    requeue_after: no_requeue,
};

const MANAGER: SecretManager<'_> = SecretManager::Controller;

fn reconcile(cache: &Cache, cluster: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let argocd = &context.settings.argocd;
    let existing = cache.cluster(&cluster.name);
    let (write, conflict) = match existing.filter(|existing| !existing.deleting) {
        // Generators must not select a cluster by the labels that its own agent has chosen.
        Some(existing) if !existing.is_accepted => return None,
        Some(existing) => {
            let cluster = RegisteredCluster {
                name: &cluster.name,
                labels: &existing.labels,
                placement: None,
                argocd,
                tracking_label: cache.tracking().label(),
                manager: MANAGER,
                owner: None,
                before: None,
                ca: None,
            };
            let decision = crate::decide(&cluster, cache.secrets_of(cluster.name));
            let is_new = decision
                .write
                .as_ref()
                .is_some_and(|write| matches!(write.verb, Verb::Create(_)));
            // The GitOpsCluster controller creates the Secret; the watch event then triggers another reconcile.
            if is_new && is_registered(cache, cluster.name) {
                return None;
            }
            (decision.write, decision.conflict)
        }
        None if existing.is_some() || cache.is_deleted(&cluster.name) => {
            let name = MANAGER.name(&cluster.name);
            let (_, secret) = cache.secrets_of(&cluster.name).find(|(other, _)| *other == name)?;
            if secret.deleting || !secret.is_managed_by(MANAGER, [None; 2], &cluster.name) {
                return None;
            }
            let unless_exists = existing.is_none().then(|| (&CLUSTERS, cluster.clone()));
            let delete = crate::deletion(argocd, &name, secret, unless_exists);
            (Some(delete), None)
        }
        None => return None,
    };
    // The conflict persists; it is recorded after all writes are done.
    let conflict = conflict
        .filter(|_| write.is_none())
        .map(|message| Event::warning("ClusterSecretConflict", message));
    if write.is_none() && conflict.is_none() {
        return None;
    }
    Some(Action::new(
        InvolvedObject::new(
            &CLUSTERS,
            cluster.clone(),
            existing.map(|existing| existing.uid.clone()).unwrap_or_default(),
        ),
        write.into_iter().collect(),
        conflict,
    ))
}

#[cfg(test)]
mod tests;
