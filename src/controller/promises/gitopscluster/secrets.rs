//! The Secret of each managed cluster that a GitOpsCluster has, in either form: without a credential, or of its argocd-agent. That
//! is a promise for each form, of which that of the form that is wanted also takes away what was written in the other.

use super::membership::{Form, Whose, is_released, own, place_of, taker, whose};
use super::{ABOUT, NAME, NEEDS};
use crate::agent::{self, names};
use crate::cluster_secret::{self, Cluster, ClusterSecret, Decision, HUB, Issuer, Keeper, is_hub};
use crate::controller::action::{Action, Involved, Write};
use crate::controller::index::{Index, Sort};
use crate::controller::promises::{Moment, Promise, argocd_agent, never};
use crate::controller::resources::{CLUSTERS, GITOPS_CLUSTERS, Resource, SECRETS};
use crate::controller::seen::Place;
use crate::controller::watches::Kept;
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

pub(in crate::controller::promises) const PROMISE: Promise = Promise {
    name: NAME,
    about: ABOUT,
    of: Sort::Cluster,
    needs: NEEDS,
    pause: Duration::from_secs(1),
    desired: |index, cluster, moment| desired(Form::Blank, index, cluster, moment),
    again: never,
};

/// The part that is about clusters on which argocd-agent runs.
pub(in crate::controller::promises) const AGENTS: Promise = Promise {
    name: argocd_agent::NAME,
    about: argocd_agent::ABOUT,
    of: Sort::Cluster,
    needs: argocd_agent::NEEDS,
    pause: Duration::from_secs(1),
    desired: |index, cluster, moment| desired(Form::Agent, index, cluster, moment),
    again: renews,
};

/// The URL of argocd-agent's resource proxy for Argo CD.
fn resource_proxy(index: &Index, argocd: &str) -> String {
    let services = index.objects(Kept::Services).map(|(_, it)| &it.object);
    agent::resource_proxy(&services.collect::<Vec<_>>(), argocd).0
}

/// What is to be done for a managed cluster that this GitOpsCluster registers in this form, after this one; and the Secret of the
/// other form that goes with that, by its name. Without an issuer, nothing is written where argocd-agent runs.
pub(super) fn decide<'i>(
    form: Form,
    index: &'i Index,
    cluster: &str,
    (owner, before): (&str, Option<&str>),
    argocd: &str,
    issuer: Option<Issuer<'_>>,
) -> Option<(Decision, Option<(String, &'i ClusterSecret)>)> {
    let seen = index.cluster(cluster).filter(|seen| !seen.deleting)?;
    let proxy = resource_proxy(index, argocd);
    let keeper = match form {
        Form::Blank => Keeper::GitOps { owner, before },
        Form::Agent if is_hub(cluster, &seen.labels) => Keeper::Hub { owner, before },
        Form::Agent => Keeper::Agent {
            owner,
            before,
            proxy: &proxy,
        },
    };
    let decided = Cluster {
        name: cluster,
        labels: &seen.labels,
        argocd,
        tracking_label: index.tracking().label(),
        keeper,
        issuer,
    };
    let mut secrets: BTreeMap<_, _> = index.secrets_of(cluster).collect();
    if matches!(keeper, Keeper::Hub { .. }) {
        // Those that lead to the hub, under whichever name.
        secrets.extend(index.secrets_of(HUB));
    }
    let other = form.other();
    let replaced = own(other, index, cluster).filter(|secret| {
        let owner = secret.owner().unwrap_or_default();
        !secret.deleting && is_released(other, index, cluster, owner, argocd)
    });
    let replaced = replaced.map(|secret| (other.secret_name(cluster), secret));
    if let Some((name, _)) = &replaced {
        secrets.remove(&**name);
    }
    Some((cluster_secret::decide(&decided, secrets.into_iter()), replaced))
}

fn desired(form: Form, index: &Index, cluster: &Place, moment: &Moment<'_>) -> Option<Action> {
    let argocd = &moment.settings.argocd;
    let secret = own(form, index, &cluster.name);
    let owner = secret.and_then(ClusterSecret::owner);
    let goes = |unless_there| {
        let secret = secret.filter(|secret| !secret.deleting)?;
        let write = delete(&form.secret_name(&cluster.name), secret, argocd, unless_there);
        Some((place_of(owner?)?, Box::default(), vec![write]))
    };
    let seen = index.cluster(&cluster.name);
    let is_there = seen.is_some_and(|seen| !seen.deleting);
    let (place, uid, writes) = if !is_there && (seen.is_some() || index.has_gone(&cluster.name)) {
        goes(seen.is_none().then(|| (&CLUSTERS, cluster.clone())))?
    } else {
        match whose(form, index, &cluster.name, owner, argocd) {
            Whose::Kept => return None,
            Whose::Released if is_replaced(form, index, &cluster.name, owner?, argocd) => return None,
            Whose::Released => goes(None)?,
            Whose::Of(place, it, before) => {
                let owner = place.to_string();
                let authority = index.certificate(names::CA_SECRET);
                let issuer = authority.and_then(|secret| Issuer::of(secret, moment.now));
                let (decision, replaced) = decide(form, index, &cluster.name, (&owner, before), argocd, issuer)?;
                let new = write(form, &cluster.name, decision, argocd);
                // Argo CD never knows a cluster by two Secrets. It is without one as long as it takes to write the other, and what
                // there is stays where that cannot be written.
                let old = replaced.filter(|_| new.is_some() || secret.is_some());
                let old = old.map(|(name, secret)| delete(&name, secret, argocd, None));
                (place, it.uid.clone(), old.into_iter().chain(new).collect())
            }
        }
    };
    (!writes.is_empty()).then_some(Action {
        of: Involved {
            resource: &GITOPS_CLUSTERS,
            place,
            uid,
        },
        writes,
        refresh: false,
        events: Vec::new(),
    })
}

/// Whether the promise of the other form takes away the Secret of this one: once it writes its own. Nobody waits for that who is
/// going.
fn is_replaced(form: Form, index: &Index, cluster: &str, owner: &str, argocd: &str) -> bool {
    let owner = place_of(owner).and_then(|place| index.gitops_cluster(&place));
    owner.is_some_and(|it| !it.deleting) && taker(form.other(), index, cluster, argocd).is_some()
}

fn delete(name: &str, secret: &ClusterSecret, argocd: &str, unless_there: Option<(&'static Resource, Place)>) -> Write {
    Write::Delete {
        resource: &SECRETS,
        place: Place::new(argocd, name),
        uid: secret.uid.clone(),
        version: secret.version.clone(),
        unless_there,
    }
}

fn write(form: Form, cluster: &str, decision: Decision, argocd: &str) -> Option<Write> {
    let (resource, place) = (&SECRETS, Place::new(argocd, &form.secret_name(cluster)));
    let write = match decision.write? {
        cluster_secret::Write::Create(object) => Write::Create {
            resource,
            place,
            object,
        },
        cluster_secret::Write::Patch(body) => Write::Patch { resource, place, body },
    };
    Some(match decision.recipe {
        Some(recipe) => Write::Make {
            write: Box::new(write),
            recipe,
            into: "data",
        },
        None => write,
    })
}

/// When the certificate of a cluster is to be renewed. One that is due by now waits for something else, which will be told.
fn renews(index: &Index, cluster: &Place, moment: &Moment<'_>) -> Option<Timestamp> {
    let secret = own(Form::Agent, index, &cluster.name)?;
    secret.renews_at().filter(|at| *at > moment.now)
}
