//! The controller for the ManifestWorks of one managed cluster: the CA certificates that its agent trusts, which change
//! independently of versions, and the ArgoCD resource of an operator. It also adopts the installations of
//! argocd-pull-integration.

use super::shared::{self, ensure, ensure_absent, management};
use super::{authority, issued};
use crate as agent;
use crate::server;
use crate::state;
use crate::template::given_agent_image;
use assignment::GitOpsClusterRef;
use hub_state::cluster_secret::ClusterSecret;
use hub_state::{Cache, Context, Controller, DesiredAgent, Kind, Object, TlsSecret};
use k8s_openapi::ByteString;
use ocm::argocd_agent as names;
use ocm::work::MANAGED_BY;
use primitives::object_ref::ObjectRef;
use runtime::action::{Action, Write};
use serde_json::{Value, json};

pub const CONTROLLER: Controller = Controller {
    reconcile,
    ..shared::CONTROLLER
};

/// The annotation in which earlier versions listed the agent's certificates.
const OLD_LIST: &str = "argocd-ocm-cmp.github.io/agent-certificates";

/// The managed-by label of argocd-pull-integration.
const PEER: &str = "argocd-pull-integration";

fn reconcile(cache: &Cache, cluster: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let cluster = &*cluster.name;
    let assignment = assignment::for_cluster(cache, cluster);
    let Some(gitops) = assignment
        .served_owner()
        .and_then(|owner| GitOpsClusterRef::get(cache, owner))
    else {
        return unwanted(cache, cluster);
    };
    let writes = desired(gitops, cluster, context).into_iter();
    let writes = writes
        .chain(adopted(cache, cluster))
        .chain(issued::claim(gitops, cluster));
    gitops.action(writes.collect())
}

/// Returns the writes for missing, outdated and obsolete ManifestWorks of a cluster.
fn desired(gitops: GitOpsClusterRef<'_>, cluster: &str, context: &Context<'_>) -> Vec<Write> {
    let (cache, object_ref) = (gitops.cache, gitops.object_ref);
    let (Some(desired), Some(ca)) = (gitops.served_agent(), authority::signing(cache)) else {
        return Vec::new();
    };
    let mut authorities = agent::ca_work(object_ref, cluster, &desired.namespace, &ca.text);
    // Remove the list of earlier versions: the cluster's agent may write to it.
    let before = cache.object(Kind::AgentWorks, &ObjectRef::new(cluster, names::CA_WORK));
    if before.is_some_and(|work| !work.object["metadata"]["annotations"][OLD_LIST].is_null()) {
        authorities["metadata"]["annotations"][OLD_LIST] = Value::Null;
    }
    let server = desired.is_operated().then(|| server(cache, desired).ok());
    let argocd = server.iter().flatten().map(|server| {
        let image = given_agent_image(cache, desired, context);
        agent::argocd_work(object_ref, cluster, desired, server, image.as_deref())
    });
    let all: Vec<_> = [authorities].into_iter().chain(argocd).collect();
    // While the address of the principal is unknown, it is also unknown which ManifestWorks are obsolete.
    let is_known = server != Some(None);
    let names: Vec<_> = all
        .iter()
        .filter_map(|work| work["metadata"]["name"].as_str())
        .collect();
    let obsolete = is_known.then(|| obsolete(cache, cluster, &names)).flatten();
    let lacking = all
        .iter()
        .filter_map(|work| ensure(cache, Kind::AgentWorks, work.clone()));
    lacking.chain(obsolete).collect()
}

/// Returns the write that deletes one of our ManifestWorks on a cluster that has none of these names: its ArgoCD is no longer
/// requested, or another GitOpsCluster requests it now. Waits until the named ones are applied, so that OCM finds another owner
/// of objects in both.
fn obsolete(cache: &Cache, cluster: &str, names: &[&str]) -> Option<Write> {
    let is_work_applied = |name: &&str| {
        let work = cache.object(Kind::AgentWorks, &ObjectRef::new(cluster, name));
        work.is_some_and(is_applied)
    };
    if !names.iter().all(is_work_applied) {
        return None;
    }
    let mut others = cache
        .objects_in(Kind::AgentWorks, cluster)
        .filter(|(at, work)| !names.contains(&&*at.name) && work.owner().is_some());
    others.find_map(|(at, work)| ensure_absent(Kind::AgentWorks, at, work))
}

/// Returns the ManifestWorks of a GitOpsCluster with an ArgoCD resource that the add-on's operator has to delete: Kubernetes does
/// not delete it without the operator, which has set a finalizer.
pub(super) fn with_operator_resource(gitops: GitOpsClusterRef<'_>) -> impl Iterator<Item = (&ObjectRef, &Object)> {
    let ObjectRef { namespace, name } = gitops.object_ref;
    let name = names::argocd_work(namespace, name);
    let all = gitops.owned_objects(Kind::AgentWorks);
    all.filter(move |(at, work)| {
        *at.name == *name && work.object["metadata"]["annotations"][names::OPERATOR_MANAGED] == "true"
    })
}

/// Returns the clusters to which argocd-pull-integration delivers an ArgoCD for a GitOpsCluster whose add-on brings Argo CD itself. The
/// operator there and the add-on would fight over objects of the same names.
pub fn clusters_with_foreign_argocd(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent) -> Vec<String> {
    if desired.is_operated() {
        return Vec::new();
    }
    let ObjectRef { namespace, name } = gitops.object_ref;
    let name = names::argocd_work(namespace, name);
    let has_theirs = |cluster: &&str| {
        let work = gitops.cache.object(Kind::AgentWorks, &ObjectRef::new(cluster, &name));
        work.is_some_and(|work| work.owner().is_none())
    };
    let clusters = gitops.agent_clusters().into_iter().filter(has_theirs);
    clusters.map(str::to_owned).collect()
}

/// Returns the write that removes argocd-pull-integration's configuration of an add-on, so that the one of the GitOpsCluster
/// applies.
fn adopted(cache: &Cache, cluster: &str) -> Option<Write> {
    let addon = cache.object(Kind::AddOns, &ObjectRef::new(cluster, names::ADDON))?;
    let is_theirs = addon.object["metadata"]["labels"][MANAGED_BY] == PEER;
    if !is_theirs || !management(cache)?.is_ours() {
        return None;
    }
    let metadata = json!({"namespace": cluster, "name": names::ADDON, "labels": {MANAGED_BY: null}});
    ensure(
        cache,
        Kind::AddOns,
        json!({"metadata": metadata, "spec": {"configs": []}}),
    )
}

/// Returns the action that deletes the ManifestWorks of a cluster on which no GitOpsCluster runs an agent any more.
fn unwanted(cache: &Cache, cluster: &str) -> Option<Action> {
    let all = cache.objects_in(Kind::AgentWorks, cluster);
    let mut obsolete = all.filter_map(|(at, work)| {
        let gitops = GitOpsClusterRef::get(cache, &work.owner()?)?;
        let write = ensure_absent(Kind::AgentWorks, at, work)?;
        gitops.has_released_agent(cluster).then_some((gitops, write))
    });
    let (gitops, write) = obsolete.next()?;
    let writes = [write].into_iter().chain(obsolete.map(|(_, write)| write));
    gitops.action(writes.collect())
}

/// Returns true if a cluster and its cluster Secrets have these CA certificates.
pub(super) fn has(cache: &Cache, cluster: &str, ca: &TlsSecret) -> bool {
    let Some(work) = cache.object(Kind::AgentWorks, &ObjectRef::new(cluster, names::CA_WORK)) else {
        return false;
    };
    is_applied(work) && has_text(&work.object, &ca.text) && registered(cache, cluster).all(|secret| secret.trusts(ca))
}

/// Returns true if the cluster's agent has applied the current generation of a ManifestWork.
fn is_applied(work: &Object) -> bool {
    let applied = state::condition(&work.object, "Applied");
    applied["status"] == "True" && applied["observedGeneration"] == work.object["metadata"]["generation"]
}

fn has_text(work: &Value, text: &str) -> bool {
    let manifests = work["spec"]["workload"]["manifests"].as_array();
    let desired = json!(ByteString(text.as_bytes().to_vec()));
    manifests
        .into_iter()
        .flatten()
        .any(|manifest| manifest["data"]["ca.crt"] == desired || manifest["stringData"]["ca.crt"] == text)
}

/// Returns true if the current CA issued all credentials by which Argo CD connects to a cluster.
pub fn is_registered_by(cache: &Cache, cluster: &str, ca: &TlsSecret) -> bool {
    registered(cache, cluster).all(|secret| secret.is_issued_by(ca))
}

/// Returns our cluster Secrets with a credential for a cluster's agent; none if a Secret of another owner is in the way.
fn registered<'i>(cache: &'i Cache, cluster: &str) -> impl Iterator<Item = &'i ClusterSecret> {
    let secrets = cache.secrets_of(cluster).map(|(_, secret)| secret);
    secrets.filter(|secret| secret.owner().is_some() && secret.credential.is_some())
}
