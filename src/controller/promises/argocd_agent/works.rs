//! What one managed cluster is brought beside the add-on: the authorities that its agent trusts, which change otherwise than
//! versions do, and the ArgoCD of an operator there. It also takes over what argocd-pull-integration has installed.

use super::{ABOUT, NAME, NEEDS, asking, gone, issued, management, of_gitops, pair, server, so};
use crate::agent::state;
use crate::agent::{self, names};
use crate::cluster_secret::{ClusterSecret, MANAGED_BY};
use crate::controller::action::{Action, Write};
use crate::controller::index::{Index, Sort};
use crate::controller::promises::gitopscluster::{gives_up, has_agent};
use crate::controller::promises::{Moment, Promise, never};
use crate::controller::resources::{ADDONS, WORKS};
use crate::controller::seen::{GitOpsCluster, Object, Place, TlsSecret};
use crate::controller::watches::Kept;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use std::time::Duration;

pub(in crate::controller::promises) const PROMISE: Promise = Promise {
    name: NAME,
    about: ABOUT,
    of: Sort::Cluster,
    needs: NEEDS,
    pause: Duration::from_millis(500),
    desired,
    again: never,
};

/// The annotation in which earlier versions listed the agent's certificates.
const OLD_LIST: &str = "argocd-ocm-cmp.github.io/agent-certificates";

/// What argocd-pull-integration calls itself.
const PEER: &str = "argocd-pull-integration";

fn desired(index: &Index, cluster: &Place, moment: &Moment<'_>) -> Option<Action> {
    let (argocd, cluster) = (&*moment.settings.argocd, &*cluster.name);
    let of_it = asking(index, argocd).find(|(place, it, _)| has_agent(index, place, it, cluster, argocd));
    match of_it {
        Some((place, it, _)) => {
            let writes: Vec<_> = wanted(index, place, it, cluster)
                .into_iter()
                .chain(adopted(index, cluster))
                .chain(issued::claim(index, place, cluster, argocd))
                .collect();
            (!writes.is_empty()).then(|| of_gitops(place, it, writes))
        }
        None => unwanted(index, cluster, argocd),
    }
}

/// The works that a cluster lacks.
fn wanted(index: &Index, place: &Place, it: &GitOpsCluster, cluster: &str) -> Vec<Write> {
    let (Some(wanted), Some(ca)) = (&it.spec.agent, index.certificate(names::CA_SECRET)) else {
        return Vec::new();
    };
    if ca.leaf().is_none() {
        return Vec::new();
    }
    let mut authorities = agent::ca_work(cluster, &wanted.namespace, &ca.text, &place.to_string());
    // Earlier versions listed certificates there, where the cluster's agent may write.
    let before = index.object(Kept::Works, &Place::new(cluster, names::CA_WORK));
    if before.is_some_and(|work| !work.object["metadata"]["annotations"][OLD_LIST].is_null()) {
        authorities["metadata"]["annotations"][OLD_LIST] = Value::Null;
    }
    let argocd = wanted.is_operated().then_some(()).and_then(|()| {
        let server = server(index, wanted).ok()?;
        Some(agent::argocd_work(pair(place), cluster, wanted, &server))
    });
    // While it is not known where the principal is, it is not known either what is obsolete.
    let is_known = argocd.is_some() == wanted.is_operated();
    let all: Vec<_> = [Some(authorities), argocd].into_iter().flatten().collect();
    let names: Vec<_> = all
        .iter()
        .filter_map(|work| work["metadata"]["name"].as_str())
        .collect();
    let obsolete = is_known.then(|| obsolete(index, cluster, &names)).flatten();
    let lacking = all.iter().zip(&names).filter_map(|(work, name)| {
        let there = index.object(Kept::Works, &Place::new(cluster, name));
        so(&WORKS, work.clone(), there)
    });
    lacking.chain(obsolete).collect()
}

/// A work that we have brought to a cluster and that is none of these: nobody asks for its ArgoCD any more, or another GitOpsCluster
/// does by now. It goes when these are applied, so that OCM finds another owner of what is in both.
fn obsolete(index: &Index, cluster: &str, names: &[&str]) -> Option<Write> {
    let is_there = |name: &&str| {
        let work = index.object(Kept::Works, &Place::new(cluster, name));
        work.is_some_and(is_applied)
    };
    if !names.iter().all(is_there) {
        return None;
    }
    let mut others = index
        .objects(Kept::Works)
        .filter(|(at, work)| *at.namespace == *cluster && !names.contains(&&*at.name) && work.owner().is_some());
    others.find_map(|(at, work)| gone(&WORKS, at, work))
}

/// The works of a GitOpsCluster with an ArgoCD that the operator of its add-on has to take away. Kubernetes does not let it go without
/// the operator, because of a finalizer of that.
pub(super) fn operated<'i>(index: &'i Index, place: &Place) -> impl Iterator<Item = (&'i Place, &'i Object)> {
    let name = names::argocd_work(&place.namespace, &place.name);
    let all = index.objects(Kept::Works).filter(move |(at, _)| *at.name == *name);
    all.filter(move |(_, work)| {
        let annotation = &work.object["metadata"]["annotations"][names::OPERATED];
        annotation == "true" && work.owner().as_ref() == Some(place)
    })
}

/// What argocd-pull-integration has configured of an add-on is taken away, for it to take what the GitOpsCluster says.
fn adopted(index: &Index, cluster: &str) -> Option<Write> {
    let place = Place::new(cluster, names::ADDON);
    let addon = index.object(Kept::AddOns, &place).filter(|it| !it.deleting)?;
    let is_theirs = addon.object["metadata"]["labels"][MANAGED_BY] == PEER;
    (is_theirs && management(index)?.is_ours()).then(|| Write::Patch {
        resource: &ADDONS,
        place,
        body: json!({
            "metadata": {"resourceVersion": addon.version, "labels": {MANAGED_BY: null}},
            "spec": {"configs": []},
        }),
    })
}

/// The works of a cluster that nobody brings an agent to any more.
fn unwanted(index: &Index, cluster: &str, argocd: &str) -> Option<Action> {
    let all = index.objects(Kept::Works).filter(|(at, _)| *at.namespace == *cluster);
    let mut obsolete = all.filter_map(|(at, work)| {
        let owner = work.owner()?;
        let it = index.gitops_cluster(&owner)?;
        let write = gone(&WORKS, at, work)?;
        gives_up(index, &owner, it, cluster, argocd).then_some((owner, it, write))
    });
    let (owner, it, write) = obsolete.next()?;
    let writes = [write].into_iter().chain(obsolete.map(|(_, _, write)| write));
    Some(of_gitops(&owner, it, writes.collect()))
}

/// Whether a cluster has these authorities, and who asks for what runs there.
pub(super) fn has(index: &Index, cluster: &str, ca: &TlsSecret) -> bool {
    let Some(work) = index.object(Kept::Works, &Place::new(cluster, names::CA_WORK)) else {
        return false;
    };
    is_applied(work) && has_text(&work.object, &ca.text) && registered(index, cluster).all(|secret| secret.trusts(ca))
}

/// Whether the agent of the cluster has applied it as it is.
fn is_applied(work: &Object) -> bool {
    let applied = state::condition(&work.object, "Applied");
    applied["status"] == "True" && applied["observedGeneration"] == work.object["metadata"]["generation"]
}

fn has_text(work: &Value, text: &str) -> bool {
    let manifests = work["spec"]["workload"]["manifests"].as_array();
    let wanted = json!(ByteString(text.as_bytes().to_vec()));
    manifests
        .into_iter()
        .flatten()
        .any(|it| it["data"]["ca.crt"] == wanted || it["stringData"]["ca.crt"] == text)
}

/// Whether all that Argo CD knows a cluster by was issued by the one that signs.
pub(super) fn is_registered_by(index: &Index, cluster: &str, ca: &TlsSecret) -> bool {
    registered(index, cluster).all(|secret| secret.is_issued_by(ca))
}

/// What we have told Argo CD of the agent of a cluster: nothing, where somebody else's Secret is in the way.
fn registered<'i>(index: &'i Index, cluster: &str) -> impl Iterator<Item = &'i ClusterSecret> {
    let secrets = index.secrets_of(cluster).map(|(_, secret)| secret);
    secrets.filter(|secret| secret.owner().is_some() && secret.has_credential())
}
