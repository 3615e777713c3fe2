//! The cluster Secrets that GitOpsClusters own, in both forms: without a credential, and of argocd-agent. There is one controller
//! for each form. The controller of the requested form also deletes the Secret of the other form.

use assignment::{
    GitOpsClusterRef, HubRole, SecretOwner, has_released_secret, hub_role, in_cluster_secret, mappers, owned_secret,
    secret_owner,
};
use cluster_secrets::{RegisteredCluster, SecretUpdate, deletion};
use hub_state::cluster_secret::{ClusterSecret, SecretManager};
use hub_state::{ACM_HUB, Cache, Context, Controller, Kind, SecretKind, TlsSecret, Watch, no_requeue};
use jiff::Timestamp;
use ocm::argocd_agent as names;
use ocm::resources::{CLUSTERS, GITOPS_CLUSTERS, WORKS};
use primitives::object_ref::ObjectRef;
use runtime::action::{Action, InvolvedObject};
use std::collections::BTreeMap;
use std::time::Duration;

pub const CONTROLLER: Controller = Controller {
    name: "gitopscluster",
    about: "Argo CD cluster Secrets for the clusters that a GitOpsCluster's Placement selects, and the GitOpsCluster's status",
    kind: Kind::Clusters,
    watches: &[
        Watch::new(Kind::GitOpsClusters, mappers::gitops_cluster),
        Watch::new(Kind::Placements, mappers::placement),
        Watch::new(Kind::Decisions, mappers::decision),
        Watch::new(Kind::Clusters, mappers::cluster),
        Watch::new(Kind::Secrets, mappers::secret),
        Watch::new(Kind::Namespace, mappers::namespace),
        Watch::new(Kind::Config, mappers::tracking),
    ],
    min_write_interval: Duration::from_secs(1),
    reconcile: |cache, cluster, context| reconcile(SecretKind::Blank, cache, cluster, context),
    requeue_after: no_requeue,
};

pub const AGENTS: Controller = Controller {
    min_write_interval: Duration::from_secs(1),
    reconcile: |cache, cluster, context| reconcile(SecretKind::Agent, cache, cluster, context),
    requeue_after: renews,
    ..argocd_agent::reconcile::CONTROLLER
};

/// The setting that names the hub.
const HUB_CLUSTER: &str = "ARGOCD_OCM_CMP_HUB_CLUSTER";

/// Returns the decision about the Secret of a managed cluster that a GitOpsCluster registers with this kind (`before` is the previous
/// owner), and the Secret of the other kind that it replaces, with its name. Without a CA, writes nothing for clusters with
/// argocd-agent.
pub(super) fn decide<'i>(
    secret_kind: SecretKind,
    gitops: GitOpsClusterRef<'i>,
    cluster: &str,
    before: Option<&str>,
    ca: Option<(&TlsSecret, Timestamp)>,
) -> Option<(SecretUpdate, Option<(String, &'i ClusterSecret)>)> {
    let cache = gitops.cache;
    let owner = &*gitops.object_ref.to_string();
    let existing = cache.accepted_cluster(cluster).filter(|existing| !existing.deleting)?;
    let (proxy, _) = argocd_agent::resource_proxy(cache);
    let role = hub_role(cache, cluster);
    let manager = match secret_kind {
        SecretKind::Blank => SecretManager::GitOps,
        SecretKind::Agent if role == HubRole::Hub => SecretManager::Hub,
        SecretKind::Agent => SecretManager::Agent { proxy: &proxy },
    };
    let decided = RegisteredCluster {
        name: cluster,
        labels: &existing.labels,
        placement: placement_label(secret_kind, gitops),
        argocd: cache.argocd(),
        tracking_label: cache.tracking().label(),
        manager,
        owner: Some(owner),
        before,
        ca,
    };
    let mut secrets: BTreeMap<_, _> = cache.secrets_of(cluster).collect();
    if manager == SecretManager::Hub {
        // Secrets with the URL of the hub, under any name.
        secrets.extend(cache.secrets_of(ACM_HUB));
    }
    let other = secret_kind.other();
    let replaced = owned_secret(other, cache, cluster).filter(|secret| {
        let owner = secret.owner().unwrap_or_default();
        !secret.deleting && has_released_secret(other, cache, cluster, owner)
    });
    let replaced = replaced.map(|secret| (other.secret_name(cluster), secret));
    if let Some((name, _)) = &replaced {
        secrets.remove(&**name);
    }
    if secret_kind == SecretKind::Agent && role == HubRole::Unclear {
        return Some((SecretUpdate::conflict(unclear(cache, cluster)), replaced));
    }
    let mut decision = cluster_secrets::decide(&decided, secrets.into_iter());
    if secret_kind == SecretKind::Agent && role == HubRole::Remote && cache.is_hub(cluster) {
        let name = secret_kind.secret_name(cluster);
        decision.conflict = Some(format!(
            "{HUB_CLUSTER} names this cluster, but Secret {}/{name} is that of an agent, which never becomes that of the \
             hub: delete it if the cluster is the hub, otherwise correct {HUB_CLUSTER}",
            cache.argocd()
        ));
    }
    Some((decision, replaced))
}

/// Returns the Placement in the label of a Secret. Only argocd-pull-integration sets it, on the Secrets of agents.
fn placement_label(secret_kind: SecretKind, gitops: GitOpsClusterRef<'_>) -> Option<&str> {
    let spec = &gitops.object.spec;
    (secret_kind == SecretKind::Agent && spec.is_pull_integration).then_some(&*spec.placement)
}

/// Returns why nothing is written for a cluster that may be the hub itself.
fn unclear(cache: &Cache, cluster: &str) -> String {
    if let Some(name) = in_cluster_secret(cache, cluster) {
        return format!(
            "Secret {}/{name} reaches the hub itself, and stays unchanged because {HUB_CLUSTER} does not name this \
             cluster: if it is the hub, set {HUB_CLUSTER}={cluster} for the controller, otherwise delete the Secret",
            cache.argocd()
        );
    }
    format!(
        "the cluster may be the hub itself, so it gets no Secret and no agent: if it is, set {HUB_CLUSTER}={cluster} for \
         the controller, otherwise set {HUB_CLUSTER} to the name of the hub, or to none"
    )
}

fn reconcile(secret_kind: SecretKind, cache: &Cache, cluster: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let argocd = cache.argocd();
    let secret = owned_secret(secret_kind, cache, &cluster.name);
    let owner = secret.and_then(ClusterSecret::owner);
    let delete = |unless_exists| {
        let secret = secret.filter(|secret| !secret.deleting)?;
        let write = deletion(argocd, &secret_kind.secret_name(&cluster.name), secret, unless_exists);
        let involved_object = InvolvedObject::new(&GITOPS_CLUSTERS, ObjectRef::parse(owner?)?, Box::default());
        Some(Action::new(involved_object, vec![write], None))
    };
    let gitops = || GitOpsClusterRef::get(cache, &ObjectRef::parse(owner?)?);
    let loses_agent =
        |gitops: &GitOpsClusterRef<'_>| secret_kind == SecretKind::Agent && loses_agent(*gitops, &cluster.name);
    let delete_after_work = || {
        let mut action = delete(Some((&WORKS, ObjectRef::new(&cluster.name, names::ADDON_WORK))))?;
        action.writes[0].waits = true;
        Some(action)
    };
    let is_revoked = || gitops().is_some_and(|gitops| gitops.revokes(&cluster.name));
    let delete_after_agent = || match gitops().filter(loses_agent) {
        Some(gitops) if has_add_on(gitops, &cluster.name) => None,
        // Kubernetes deletes OCM's work with the agent some time after the add-on.
        Some(_) => delete_after_work(),
        // The GitOpsCluster is absent, or of another controller.
        None if secret_kind == SecretKind::Agent && cache.is_leaving(&cluster.name) && !is_revoked() => {
            delete_after_work()
        }
        None => delete(None),
    };
    if cache.is_leaving(&cluster.name) {
        let is_gone = cache.cluster(&cluster.name).is_none();
        return if is_gone {
            delete(Some((&CLUSTERS, cluster.clone())))
        } else {
            delete_after_agent()
        };
    }
    match secret_owner(secret_kind, cache, &cluster.name, owner) {
        SecretOwner::Unchanged => None,
        SecretOwner::Released => {
            if gitops().is_some_and(|gitops| is_replaced(secret_kind, gitops, &cluster.name)) {
                None
            } else {
                delete_after_agent()
            }
        }
        SecretOwner::GitOpsCluster(gitops, before) => {
            let ca = cache.certificate(names::CA_SECRET).map(|ca| (ca, context.now));
            let (decision, replaced) = decide(secret_kind, gitops, &cluster.name, before, ca)?;
            let new = decision.write;
            // ApplicationSets delete the Applications of a cluster without a Secret, so the old Secret stays until the new one is
            // written. Argo CD reports a duplicate name for the moment in which there are two, and deletes nothing.
            let old = replaced.filter(|_| new.is_some() || secret.is_some());
            let old = old.map(|(name, secret)| deletion(argocd, &name, secret, None));
            gitops.action(new.into_iter().chain(old).collect())
        }
    }
}

/// Returns true if the controller of the other kind deletes the Secret of this kind once it writes its own. A GitOpsCluster in
/// deletion does not wait for that.
fn is_replaced(secret_kind: SecretKind, gitops: GitOpsClusterRef<'_>, cluster: &str) -> bool {
    let assignment = assignment::for_cluster(gitops.cache, cluster);
    !gitops.object.deleting && assignment.registrar(secret_kind.other()).is_some()
}

/// Returns true if OCM uninstalls the agent of a cluster that its GitOpsCluster has released. The Secret stays until then:
/// ApplicationSets delete the Applications of a cluster without a Secret, and a connected agent would delete what they deployed. A
/// revoked cluster loses its Secret at once, because a principal newer than 0.9.0 then disconnects the agent. An agent that another
/// GitOpsCluster takes over is not uninstalled.
fn loses_agent(gitops: GitOpsClusterRef<'_>, cluster: &str) -> bool {
    gitops.has_released_agent(cluster)
        && assignment::for_cluster(gitops.cache, cluster).agent_owner.is_none()
        && !gitops.revokes(cluster)
}

fn has_add_on(gitops: GitOpsClusterRef<'_>, cluster: &str) -> bool {
    let addon = ObjectRef::new(cluster, names::ADDON);
    let mut works = gitops.cache.objects_in(Kind::AgentWorks, cluster);
    gitops.cache.object(Kind::AddOns, &addon).is_some()
        || works.any(|(_, work)| work.owner().as_ref() == Some(gitops.object_ref))
}

/// Returns when the certificate of a cluster must be renewed. A renewal that is already due waits for a watch event instead.
fn renews(cache: &Cache, cluster: &ObjectRef, context: &Context<'_>) -> Option<Timestamp> {
    let secret = owned_secret(SecretKind::Agent, cache, &cluster.name)?;
    secret.renews_at().filter(|at| *at > context.now)
}
