//! Argo CD knows every managed cluster by a Secret that carries the cluster's labels, so that generators can select on them. It
//! holds no credential, and nothing listens at its server: for the pull model, in which Argo CD never connects to a cluster.

use super::{Moment, Promise, gitopscluster, never};
use crate::cluster_secret::{self, Cluster, Keeper};
use crate::controller::action::{Action, Event, Involved, Write};
use crate::controller::index::{Index, Sort};
use crate::controller::resources::{CLUSTERS, SECRETS};
use crate::controller::seen::Place;
use crate::controller::watches::Kind;
use std::time::Duration;

pub(super) const PROMISE: Promise = Promise {
    name: "cluster-secrets",
    about: "a cluster Secret of Argo CD's for each managed cluster, with its labels, for generators to select on",
    of: Sort::Cluster,
    needs: &[Kind::Clusters, Kind::Secrets, Kind::Config],
    pause: Duration::from_secs(1),
    desired,
    again: never,
};

pub(super) fn desired(index: &Index, cluster: &Place, moment: &Moment<'_>) -> Option<Action> {
    let argocd = &moment.settings.argocd;
    let place = Place::new(argocd, &Keeper::Controller.name(&cluster.name));
    let secrets = index.secrets_of(&cluster.name);
    let seen = index.cluster(&cluster.name);
    let (write, told) = match seen.filter(|seen| !seen.deleting) {
        Some(seen) => {
            let cluster = Cluster {
                name: &cluster.name,
                labels: &seen.labels,
                argocd,
                tracking_label: index.tracking().label(),
                keeper: Keeper::Controller,
                issuer: None,
            };
            let decision = cluster_secret::decide(&cluster, secrets);
            let is_new = matches!(decision.write, Some(cluster_secret::Write::Create(_)));
            // It gets one of that, which is told of when it is there.
            if is_new && gitopscluster::is_wanted(index, cluster.name, argocd) {
                return None;
            }
            let write = decision.write.map(|write| match write {
                cluster_secret::Write::Create(object) => Write::Create {
                    resource: &SECRETS,
                    place,
                    object,
                },
                cluster_secret::Write::Patch(body) => Write::Patch {
                    resource: &SECRETS,
                    place,
                    body,
                },
            });
            (write, decision.told)
        }
        None if seen.is_some() || index.has_gone(&cluster.name) => {
            let obsolete = cluster_secret::obsolete(Keeper::Controller, &cluster.name, secrets)?;
            let delete = Write::Delete {
                resource: &SECRETS,
                place,
                uid: obsolete.uid.clone(),
                version: obsolete.version.clone(),
                unless_there: seen.is_none().then(|| (&CLUSTERS, cluster.clone())),
            };
            (Some(delete), None)
        }
        None => return None,
    };
    // What is told lasts, and is told when nothing is left to be written.
    let told = told.filter(|_| write.is_none()).map(|message| Event {
        warning: true,
        reason: "ClusterSecretConflict",
        message,
    });
    if write.is_none() && told.is_none() {
        return None;
    }
    Some(Action {
        of: Involved {
            resource: &CLUSTERS,
            place: cluster.clone(),
            uid: seen.map(|seen| seen.uid.clone()).unwrap_or_default(),
        },
        writes: write.into_iter().collect(),
        refresh: false,
        events: told.into_iter().collect(),
    })
}

#[cfg(test)]
mod tests;
