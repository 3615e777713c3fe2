//! A GitOpsCluster, and the rules that decide what it selects and has released.

use hub_state::cluster_secret::ClusterSecret;
use hub_state::{Cache, DesiredAgent, GitOpsCluster, Kind, Object, SecretKind, Selection};
use ocm::argocd_agent::{self as names, AddonPlacement};
use ocm::gitops_cluster::{SHARED_FINALIZER, namespace_of_finalizer};
use ocm::resources::GITOPS_CLUSTERS;
use primitives::object_ref::ObjectRef;
use runtime::action::{Action, InvolvedObject, Write};
use std::collections::BTreeSet;

#[derive(Clone, Copy)]
pub struct GitOpsClusterRef<'c> {
    pub cache: &'c Cache,
    pub object_ref: &'c ObjectRef,
    pub object: &'c GitOpsCluster,
}

/// The state of a GitOpsCluster for this controller: served, or the reason why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServingState {
    Served,
    /// Its Argo CD is in this other namespace.
    Elsewhere(String),
    /// It is outside Argo CD's namespace, and that namespace is not open to other namespaces.
    Unauthorised,
    /// Its Placement is in this other namespace, according to `placementRef`.
    WrongPlacement(String),
}

impl<'c> GitOpsClusterRef<'c> {
    pub fn get(cache: &'c Cache, object_ref: &ObjectRef) -> Option<Self> {
        let (object_ref, object) = cache.gitops_cluster_entry(object_ref)?;
        Some(Self {
            cache,
            object_ref,
            object,
        })
    }

    /// Returns all GitOpsClusters, sorted by namespace and name.
    pub fn all(cache: &'c Cache) -> impl Iterator<Item = Self> + 'c {
        cache.gitops_clusters().map(move |(object_ref, object)| Self {
            cache,
            object_ref,
            object,
        })
    }

    /// Returns the GitOpsClusters that request agents and are served, with the settings of the agents.
    pub fn with_agents(cache: &'c Cache) -> impl Iterator<Item = (Self, &'c DesiredAgent)> + 'c {
        Self::all(cache).filter_map(|gitops| Some((gitops, gitops.served_agent()?)))
    }

    /// Returns the argocd-agent settings, if the GitOpsCluster requests agents and is served.
    pub fn served_agent(self) -> Option<&'c DesiredAgent> {
        let is_served = self.is_served() && !self.object.deleting && self.has_finalizer();
        self.object.spec.agent.as_ref().filter(|_| is_served)
    }

    pub fn placement(self) -> ObjectRef {
        self.object.placement(self.object_ref)
    }

    /// Returns the action with these writes on behalf of the GitOpsCluster, if there are any.
    pub fn action(self, writes: Vec<Write>) -> Option<Action> {
        (!writes.is_empty()).then(|| {
            Action::new(
                InvolvedObject::new(&GITOPS_CLUSTERS, self.object_ref.clone(), self.object.uid.clone()),
                writes,
                None,
            )
        })
    }

    /// Returns the reason why this controller does not serve it, or that it does.
    pub fn serving_state(self) -> ServingState {
        let (desired, argocd) = (self.argocd(), &**self.cache.argocd());
        let placement = self.object.spec.placement_namespace.as_deref();
        let namespace = &*self.object_ref.namespace;
        if desired != argocd {
            return ServingState::Elsewhere(desired.to_owned());
        }
        if *namespace != *argocd && !self.cache.allows_other_namespaces() {
            return ServingState::Unauthorised;
        }
        match placement.filter(|placement| *placement != namespace) {
            Some(placement) => ServingState::WrongPlacement(placement.to_owned()),
            None => ServingState::Served,
        }
    }

    fn is_served(self) -> bool {
        self.serving_state() == ServingState::Served
    }

    /// Returns the namespace of the Argo CD that the GitOpsCluster is for.
    pub fn argocd(self) -> &'c str {
        self.object.spec.argocd.as_deref().unwrap_or(&self.object_ref.namespace)
    }

    pub fn is_for_this_argocd(self) -> bool {
        *self.argocd() == **self.cache.argocd()
    }

    /// Returns the namespaces of the Argo CDs whose controllers have a finalizer on the GitOpsCluster.
    fn finalizer_namespaces(self) -> impl Iterator<Item = &'c str> {
        self.object
            .finalizers
            .iter()
            .filter_map(|finalizer| namespace_of_finalizer(finalizer))
    }

    /// Returns true if the controller of the Argo CD in this namespace has a finalizer on the GitOpsCluster.
    pub fn has_finalizer_of(self, argocd: &str) -> bool {
        self.finalizer_namespaces().any(|namespace| namespace == argocd)
    }

    /// Returns true if the GitOpsCluster has the finalizer of earlier versions, which all controllers share.
    pub fn has_shared_finalizer(self) -> bool {
        self.object
            .finalizers
            .iter()
            .any(|finalizer| finalizer == SHARED_FINALIZER)
    }

    /// Returns true if the controller of any Argo CD has a finalizer on the GitOpsCluster.
    pub fn has_any_finalizer(self) -> bool {
        self.finalizer_namespaces().next().is_some() || self.has_shared_finalizer()
    }

    /// Returns true if the finalizer of this controller is on the GitOpsCluster. The shared finalizer of earlier versions counts
    /// only if the GitOpsCluster is for this Argo CD: otherwise its owner is unknown, and the other controller removes it.
    pub fn has_finalizer(self) -> bool {
        self.has_finalizer_of(self.cache.argocd()) || self.has_shared_finalizer() && self.is_for_this_argocd()
    }

    /// Returns true if the controller of another Argo CD must remove the objects outside Argo CD's namespace: the GitOpsCluster is
    /// for that Argo CD, and either this controller never had a finalizer on it or the other one already has.
    pub fn is_of_another_controller(self) -> bool {
        let argocd = &**self.cache.argocd();
        let is_finalized_elsewhere = self.finalizer_namespaces().any(|namespace| *namespace != *argocd);
        !self.is_for_this_argocd() && (!self.has_finalizer_of(argocd) || is_finalized_elsewhere)
    }

    /// Returns true if the GitOpsCluster is for another Argo CD, whose controller has taken it over. Without that controller, the
    /// namespace may be a typing error.
    pub fn has_moved(self) -> bool {
        !self.is_for_this_argocd() && self.has_finalizer_of(self.argocd())
    }

    pub fn is_selected(self, cluster: &str) -> bool {
        self.cache.is_selected_by(&self.placement(), cluster)
    }

    /// Returns true if the GitOpsCluster has a managed cluster: it is served, selects the cluster, which the hub has accepted, and has
    /// the finalizer of this controller.
    pub fn selects(self, cluster: &str) -> bool {
        self.has_finalizer()
            && !self.object.deleting
            && !self.revokes(cluster)
            && self.is_served()
            && self.is_selected(cluster)
            && self.cache.cluster(cluster).is_none_or(|cluster| cluster.is_accepted)
    }

    /// Returns the kind of Secret that the GitOpsCluster requests. If it requests both, that of an agent wins, as in Red Hat ACM, whose
    /// users add the agent to a GitOpsCluster of the pull model; unless its settings are invalid, or the controller of argocd-agent is disabled.
    pub fn requested_secret(self) -> Option<SecretKind> {
        let spec = &self.object.spec;
        let blank = Some(SecretKind::Blank).filter(|_| spec.creates_blank_secrets);
        let agent = spec.agent.as_ref().map(|_| SecretKind::Agent);
        if self.cache.serves_agents() {
            agent.or(blank)
        } else {
            blank.or(agent)
        }
    }

    pub fn registers(self, secret_kind: SecretKind, cluster: &str) -> bool {
        let is_name_allowed =
            secret_kind == SecretKind::Blank || names::check_agent(cluster, self.cache.argocd()).is_ok();
        self.requested_secret() == Some(secret_kind) && is_name_allowed && self.selects(cluster)
    }

    /// Returns true if the GitOpsCluster, which owns the Secret of this kind of a managed cluster, still maintains it. The Secret
    /// of an agent is renewed until the cluster is certainly released, because its certificate expires.
    pub fn maintains(self, secret_kind: SecretKind, cluster: &str) -> bool {
        self.registers(secret_kind, cluster)
            || secret_kind == SecretKind::Agent
                && self.requested_secret() == Some(secret_kind)
                && self.has_finalizer()
                && self.is_served()
                && !self.has_released(cluster)
    }

    /// Returns true if the GitOpsCluster has certainly released a managed cluster, so that what it has written for the cluster may
    /// be removed or get another owner. Nothing is certain while no controller serves the GitOpsCluster, its Placement's decisions
    /// contradict each other or have just changed, or the cluster is unavailable or has just returned. A ManagedCluster in deletion
    /// never returns.
    fn has_released(self, cluster: &str) -> bool {
        if self.object.deleting || self.revokes(cluster) || self.cache.is_in_deletion(cluster) {
            return true;
        }
        match self.serving_state() {
            ServingState::Elsewhere(_) => self.has_moved(),
            ServingState::Unauthorised | ServingState::WrongPlacement(_) => false,
            ServingState::Served if self.is_selected(cluster) => false,
            ServingState::Served => {
                let placement = self.placement();
                let is_consistent = matches!(self.cache.selection(&placement), Selection::Consistent(_));
                is_consistent && self.cache.is_settled(&placement) && self.cache.is_decided(cluster)
            }
        }
    }

    /// Returns true if the GitOpsCluster has certainly released the Secret of this kind of a managed cluster, which it has written:
    /// it has released the cluster, or registers it with the other kind.
    pub fn has_released_secret(self, secret_kind: SecretKind, cluster: &str) -> bool {
        // The Secret of an agent whose controller is disabled stays.
        let is_agent_kept = secret_kind == SecretKind::Agent && self.object.spec.may_have_agent();
        !is_agent_kept && self.registers(secret_kind.other(), cluster) || self.has_released(cluster)
    }

    /// Returns true if the GitOpsCluster has certainly released the agent of a managed cluster, which it has installed. Not while
    /// another controller must remove it: most of its objects are outside Argo CD's namespace, where both controllers watch them.
    pub fn has_released_agent(self, cluster: &str) -> bool {
        !self.is_of_another_controller() && (!self.object.spec.may_have_agent() || self.has_released(cluster))
    }

    pub fn revokes(self, cluster: &str) -> bool {
        let agent = self.object.spec.agent.as_ref();
        agent.is_some_and(|agent| agent.revoked.contains(cluster))
    }

    /// Returns the objects of a kind that were created for the GitOpsCluster. Its AddOnDeploymentConfig is in Argo CD's namespace,
    /// that of earlier versions in its own; users may forge others.
    pub fn owned_objects(self, kind: Kind) -> impl Iterator<Item = (&'c ObjectRef, &'c Object)> {
        let namespaces = [self.cache.argocd(), &self.object_ref.namespace];
        let all = self.cache.objects(kind);
        all.filter(move |(at, object)| {
            object.owner().as_ref() == Some(self.object_ref)
                && (kind != Kind::AddOnConfigs || namespaces.contains(&&at.namespace))
        })
    }

    /// Returns the PlacementDecisions that were written for one of the two Placements of the GitOpsCluster.
    pub fn decisions(self, placement: AddonPlacement) -> impl Iterator<Item = (&'c ObjectRef, &'c Object)> {
        let all = self.owned_objects(Kind::OwnDecisions);
        let is_next = move |name: &str| {
            AddonPlacement::Next
                .decision_number(&self.object_ref.name, name)
                .is_some()
        };
        all.filter(move |(at, _)| is_next(&at.name) == (placement == AddonPlacement::Next))
    }

    /// Returns the clusters in the PlacementDecisions that name all clusters with the add-on.
    pub fn decided_clusters(self) -> BTreeSet<&'c str> {
        let all = self.decisions(AddonPlacement::All);
        all.flat_map(|(_, decision)| decision.decided_clusters()).collect()
    }
}

/// Returns the Secret of this kind of a managed cluster, if any GitOpsCluster owns it.
pub fn owned_secret<'c>(secret_kind: SecretKind, cache: &'c Cache, cluster: &str) -> Option<&'c ClusterSecret> {
    let name = secret_kind.secret_name(cluster);
    let (_, secret) = cache.secrets_of(cluster).find(|(other, _)| *other == name)?;
    (secret.owner().is_some() && secret.is_of_cluster(&name, cluster)).then_some(secret)
}

/// Returns true if a GitOpsCluster has certainly released what it has written, by the given rule. A GitOpsCluster that is absent
/// has not until its deletion is certain: it may be invalid, or not yet restored from a backup.
pub(super) fn has_owner_released(
    cache: &Cache,
    owner: &ObjectRef,
    has_released: impl Fn(GitOpsClusterRef<'_>) -> bool,
) -> bool {
    match GitOpsClusterRef::get(cache, owner) {
        Some(gitops) => has_released(gitops),
        None => cache.is_gitops_cluster_deleted(owner),
    }
}

pub fn has_released_agent(cache: &Cache, owner: &ObjectRef, cluster: &str) -> bool {
    has_owner_released(cache, owner, |gitops| gitops.has_released_agent(cluster))
}
