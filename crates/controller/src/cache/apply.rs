//! Applies changes to the cache: stores the objects, keeps the indices, forgets outdated computed values, and maps each change to
//! the objects to reconcile.

use super::change::{Before, Change, Changed, ClusterBefore, TrackingBefore};
use super::{Cache, ReconcileKind, ReconcileRequest};
use crate::application_set_report::Resource;
use crate::cluster_secrets::ClusterSecret;
use crate::model::{
    AgentResource, Application, Cluster, GitOpsCluster, Kind, Object, Placement, PlacementDecision, TlsSecret, Work,
    WorkKind,
};
use crate::pull::tenancy;
use crate::pull::tenancy::Namespaces;
use crate::runtime::table::Update;
use jiff::Timestamp;
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use ocm::tracking::{CONFIG_MAP, Tracking};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;

impl Cache {
    /// Advances the time, and returns the objects whose health changed by time alone.
    pub fn tick(&mut self, now: Timestamp) -> Vec<ReconcileRequest> {
        let changed = self.works.tick(now);
        let all = changed.iter().flat_map(|(kind, object_ref, before)| {
            let kind = kind_of(*kind);
            self.map(kind, object_ref, Some(Before::Work(before)))
        });
        all.collect()
    }

    /// Applies a change and returns the objects to reconcile.
    pub fn apply(&mut self, change: Change) -> Vec<ReconcileRequest> {
        match change {
            Change::Application(update) => {
                match &update {
                    Update::Set(..) => {}
                    Update::Deleted(_) => self.has_seen_deletion = true,
                    Update::Listed(_) => self.has_seen_deletion = false,
                }
                self.each(self.applications.changes(update), Self::put_application)
            }
            Change::Work(kind, update) => {
                let mut affected = self.forget_unreadable(kind, &update);
                let changes = self.works.changes(kind, update);
                affected.extend(self.each(changes, |cache, object_ref, work| {
                    cache.put_work(kind, object_ref, work)
                }));
                affected
            }
            Change::UnreadableWork(object_ref, why) => {
                let affected = self.carried_by(&object_ref);
                self.unreadable_works.insert(object_ref, why);
                affected
            }
            Change::Cluster(update) => {
                if let Update::Listed(all) = &update {
                    self.set_lists_no_cluster(all.is_empty());
                }
                self.each(self.clusters.changes(update), Self::put_cluster)
            }
            Change::PlacementDecision(update) => self.each(self.decisions.changes(update), Self::put_decision),
            Change::Placement(update) => self.each(self.gitops.placement_changes(update), Self::put_placement),
            Change::GitOpsCluster(update) => {
                if let Update::Deleted(object_ref) = &update {
                    self.gitops.record_deletion(object_ref);
                    self.assignments.forget_all();
                }
                self.each(self.gitops.changes(update), Self::put_gitops_cluster)
            }
            Change::Project(update) => self.each(self.projects.changes(update), Self::put_project),
            Change::Secret(update) => self.each(self.secrets.changes(update), Self::put_secret),
            Change::ApplicationSet(update) => {
                let changed = self.application_sets.update(update);
                self.map_all(Kind::ApplicationSets, &changed)
            }
            Change::Report(update) => {
                let (changed, sets) = self.application_sets.update_reports(update);
                let mut affected = self.map_all(Kind::Reports, &changed);
                affected.extend(self.map_all(Kind::ApplicationSets, &sets));
                affected
            }
            Change::Certificate(update) => self.each(self.agents.certificate_changes(update), Self::put_certificate),
            Change::Object(kind, update) => {
                let changes = self.agents.changes(kind, update);
                self.each(changes, |cache, object_ref, object| {
                    cache.put_object(kind, object_ref, object)
                })
            }
            Change::AllowOtherNamespaces(update) => self.set(update, Self::put_allows_other_namespaces),
            Change::Tracking(update) => self.set(update, |cache, tracking| {
                cache.set_tracking(tracking.unwrap_or_else(|| Tracking::configured(|_| None)))
            }),
            Change::Namespaces(update) => self.set(update, Self::put_namespaces),
            Change::WriteOutcome(controller, part, affected, refusal) => {
                let object = (controller, affected.kind, affected.object_ref.clone());
                let mut changed = self.refusals.put(&object, part, refusal);
                if affected.kind == ReconcileKind::ArgoCd {
                    // Every GitOpsCluster with agents uses the values in this object.
                    let with_agents = self.gitops.all().filter(|(_, it)| it.spec.agent.is_some());
                    changed.extend(with_agents.map(|(object_ref, _)| object_ref.clone()));
                }
                let is_another =
                    |it: &ReconcileRequest| (it.kind, &it.object_ref) != (affected.kind, &affected.object_ref);
                let mut all: Vec<_> = ReconcileRequest::gitops_all(&changed).filter(is_another).collect();
                all.push(affected);
                all
            }
            #[cfg(test)]
            Change::Panic => panic!("as asked for"),
        }
    }

    /// Applies the changes of single objects, one after the other, and returns the objects to reconcile.
    fn each<K, V>(
        &mut self,
        changes: impl Iterator<Item = (K, Option<V>)>,
        put: impl Fn(&mut Self, &K, Option<V>) -> Vec<ReconcileRequest>,
    ) -> Vec<ReconcileRequest> {
        changes.flat_map(|(key, value)| put(self, &key, value)).collect()
    }

    /// Returns the objects to reconcile after a change, by the mappers of controllers: what several return, once.
    fn map(&self, kind: Kind, object_ref: &ObjectRef, before: Option<Before<'_>>) -> Vec<ReconcileRequest> {
        let changed = Changed {
            kind,
            object_ref,
            before,
        };
        let mut affected = Vec::new();
        for map in self.mappers.get(&kind).into_iter().flatten() {
            let mut more = map(self, &changed);
            if !affected.is_empty() && !more.is_empty() {
                let known: HashSet<_> = affected
                    .iter()
                    .map(|it: &ReconcileRequest| (it.kind, &it.object_ref))
                    .collect();
                more.retain(|it| !known.contains(&(it.kind, &it.object_ref)));
            }
            affected.extend(more);
        }
        affected
    }

    fn map_all(&self, kind: Kind, changed: &[ObjectRef]) -> Vec<ReconcileRequest> {
        changed
            .iter()
            .flat_map(|object_ref| self.map(kind, object_ref, None))
            .collect()
    }

    /// Returns the reference to an object in the namespace of Argo CD.
    fn of_argocd(&self, name: &Arc<str>) -> ObjectRef {
        ObjectRef {
            namespace: Arc::clone(&self.argocd),
            name: Arc::clone(name),
        }
    }

    /// Applies the update of a setting, and returns the objects to reconcile.
    fn set<V>(
        &mut self,
        update: Update<(), V>,
        put: impl Fn(&mut Self, Option<V>) -> Vec<ReconcileRequest>,
    ) -> Vec<ReconcileRequest> {
        update.single().map(|value| put(self, value)).unwrap_or_default()
    }

    fn put_application(
        &mut self,
        object_ref: &ObjectRef,
        mut application: Option<Application>,
    ) -> Vec<ReconcileRequest> {
        if let Some(application) = &mut application {
            match &mut application.generated {
                Some(generated) if self.resources.is_some() => self.keep(&mut generated.resources),
                generated => *generated = None,
            }
        }
        let before = self.applications.put(object_ref, application);
        let after = self.applications.get(object_ref);
        self.pull_applications.index_change(object_ref, before.as_ref(), after);
        self.application_sets.index_change(object_ref, before.as_ref(), after);
        self.map(Kind::Applications, object_ref, before.as_ref().map(Before::Application))
    }

    fn put_work(&mut self, kind: WorkKind, object_ref: &ObjectRef, mut work: Option<Work>) -> Vec<ReconcileRequest> {
        if let Some(work) = &mut work {
            self.keep(&mut work.resources);
        }
        let before = self.works.put(kind, object_ref, work);
        self.map(kind_of(kind), object_ref, Some(Before::Work(&before)))
    }

    /// Forgets the unreadable works that can be read now, or no longer exist. Returns the Applications to reconcile.
    fn forget_unreadable(&mut self, kind: WorkKind, update: &Update<ObjectRef, Work>) -> Vec<ReconcileRequest> {
        if kind != WorkKind::Work || self.unreadable_works.is_empty() {
            return Vec::new();
        }
        let is_over = |object_ref: &ObjectRef| match update {
            Update::Set(changed, _) | Update::Deleted(changed) => changed == object_ref,
            Update::Listed(all) => !all.contains(object_ref),
        };
        let over: Vec<_> = self.unreadable_works.keys().filter(|it| is_over(it)).cloned().collect();
        for object_ref in &over {
            self.unreadable_works.remove(object_ref);
        }
        over.iter().flat_map(|object_ref| self.carried_by(object_ref)).collect()
    }

    /// Returns the Applications of the pull model whose works have the name of this one.
    fn carried_by(&self, work: &ObjectRef) -> Vec<ReconcileRequest> {
        let applications = self.pull_applications_by_work_name(&work.name).cloned();
        applications.map(ReconcileRequest::application).collect()
    }

    /// Interns a list, or drops it if reports are disabled.
    fn keep(&mut self, list: &mut Arc<[Resource]>) {
        *list = match &mut self.resources {
            Some(resources) => resources.keep(std::mem::take(list)),
            None => Arc::default(),
        };
    }

    fn put_decision(&mut self, object_ref: &ObjectRef, decision: Option<PlacementDecision>) -> Vec<ReconcileRequest> {
        let (before, has_changed) = self.decisions.put(object_ref, decision);
        if !has_changed {
            return Vec::new();
        }
        self.assignments.forget_all();
        self.map(
            Kind::Decisions,
            object_ref,
            before.as_ref().map(Before::PlacementDecision),
        )
    }

    fn put_placement(&mut self, object_ref: &ObjectRef, placement: Option<Placement>) -> Vec<ReconcileRequest> {
        if !self.gitops.put_placement(object_ref, placement) {
            return Vec::new();
        }
        self.assignments.forget_all();
        self.map(Kind::Placements, object_ref, None)
    }

    fn put_gitops_cluster(&mut self, object_ref: &ObjectRef, it: Option<Box<GitOpsCluster>>) -> Vec<ReconcileRequest> {
        let before = self.gitops.put(object_ref, it);
        if before.as_deref().map(GitOpsCluster::inputs) != self.gitops.get(object_ref).map(GitOpsCluster::inputs) {
            self.assignments.forget_all();
            self.template_names.forget(object_ref);
        }
        self.map(
            Kind::GitOpsClusters,
            object_ref,
            before.as_deref().map(Before::GitOpsCluster),
        )
    }

    fn put_allows_other_namespaces(&mut self, open: Option<bool>) -> Vec<ReconcileRequest> {
        if !self.gitops.put_allows_other_namespaces(open.unwrap_or_default()) {
            return Vec::new();
        }
        self.assignments.forget_all();
        let object_ref = ReconcileRequest::argocd(&self.argocd).object_ref;
        self.map(Kind::Namespace, &object_ref, None)
    }

    fn put_secret(&mut self, name: &Arc<str>, secret: Option<ClusterSecret>) -> Vec<ReconcileRequest> {
        let (before, has_changed) = self.secrets.put(name, secret);
        if !has_changed {
            return Vec::new();
        }
        for secret in before.iter().chain(self.secrets.get(name)) {
            for cluster in secret.concerns(name) {
                self.assignments.forget(cluster);
            }
        }
        self.map(
            Kind::Secrets,
            &self.of_argocd(name),
            before.as_ref().map(Before::Secret),
        )
    }

    fn put_certificate(&mut self, name: &Arc<str>, secret: Option<TlsSecret>) -> Vec<ReconcileRequest> {
        if !self.agents.put_certificate(name, secret) {
            return Vec::new();
        }
        self.map(Kind::Certificates, &self.of_argocd(name), None)
    }

    fn put_object(
        &mut self,
        kind: AgentResource,
        object_ref: &ObjectRef,
        object: Option<Object>,
    ) -> Vec<ReconcileRequest> {
        let (before, has_changed) = self.agents.put(kind, object_ref, object);
        if !has_changed {
            return Vec::new();
        }
        match kind {
            // The image of the principal is part of the templates.
            AgentResource::Deployments if names::PRINCIPAL_DEPLOYMENTS.contains(&&*object_ref.name) => {
                self.template_names.forget_all();
            }
            AgentResource::OwnDecisions => {
                for it in before.iter().chain(self.agents.get(kind, object_ref)) {
                    it.decided_clusters()
                        .for_each(|cluster| self.assignments.forget(cluster));
                }
            }
            AgentResource::AddOns => self.assignments.forget(&*object_ref.namespace),
            AgentResource::IssuedCertificates => {
                if let Some(cluster) = names::cluster_of_issued(&object_ref.name) {
                    self.assignments.forget(cluster);
                }
            }
            _ => {}
        }
        self.map(
            Kind::AgentResource(kind),
            object_ref,
            before.as_ref().map(Before::Object),
        )
    }

    fn put_project(&mut self, name: &Arc<str>, project: Option<Value>) -> Vec<ReconcileRequest> {
        let before = self.projects.put(name, project);
        if self.projects.get(name) == before.as_ref() {
            return Vec::new();
        }
        self.map(Kind::Projects, &self.of_argocd(name), None)
    }

    fn put_namespaces(&mut self, namespaces: Option<Namespaces>) -> Vec<ReconcileRequest> {
        let namespaces = namespaces.unwrap_or_default();
        if self.namespaces == namespaces {
            return Vec::new();
        }
        self.namespaces = namespaces;
        self.map(Kind::Parameters, &self.of_argocd(&tenancy::CONFIG_MAP.into()), None)
    }

    fn set_tracking(&mut self, tracking: Tracking) -> Vec<ReconcileRequest> {
        let label = self.tracking().label().to_owned();
        let owners = self.works.set_tracking(tracking);
        let before = TrackingBefore { label, owners };
        self.map(
            Kind::Config,
            &self.of_argocd(&CONFIG_MAP.into()),
            Some(Before::Tracking(&before)),
        )
    }

    fn set_lists_no_cluster(&mut self, lists_no_cluster: bool) {
        if std::mem::replace(&mut self.lists_no_cluster, lists_no_cluster) != lists_no_cluster {
            self.assignments.forget_all();
        }
    }

    fn put_cluster(&mut self, name: &Arc<str>, cluster: Option<Cluster>) -> Vec<ReconcileRequest> {
        let was_list_empty = cluster.is_some() && self.lists_no_cluster;
        if was_list_empty {
            self.set_lists_no_cluster(false);
        }
        let before = self.clusters.put(name, cluster);
        let after = self.clusters.get(name);
        if let Some(before) = &before {
            let count = &mut self.cluster_counts[before.availability as usize];
            *count = count.saturating_sub(1);
        }
        if let Some(after) = after {
            let count = &mut self.cluster_counts[after.availability as usize];
            *count = count.saturating_add(1);
        }
        if after == before.as_ref() && !was_list_empty {
            return Vec::new();
        }
        self.assignments.forget(&**name);
        let object_ref = ReconcileRequest::cluster(name).object_ref;
        let before = ClusterBefore {
            cluster: before,
            was_list_empty,
        };
        self.map(Kind::Clusters, &object_ref, Some(Before::Cluster(&before)))
    }
}

/// Returns the watched kind of works of this kind.
fn kind_of(kind: WorkKind) -> Kind {
    match kind {
        WorkKind::Work => Kind::Works,
        WorkKind::Set => Kind::ReplicaSets,
    }
}
