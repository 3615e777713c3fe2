//! Applies changes to the cache: stores the objects, forgets outdated computed values, and maps each change to the objects to
//! reconcile.

use super::change::{Cached, Change, Changed, ClusterBefore, ObjectKey, Setting, TrackingBefore};
use super::{Cache, ReconcileRequest, Refusal};
use crate::cluster_secret::ClusterSecret;
use crate::model;
use crate::model::{
    AppProject, Application, ApplicationSet, Availability, Cluster, ClusterHold, GitOpsCluster, Kind, Object,
    Placement, PlacementDecision, TlsSecret, Work, WorkKind,
};
use crate::pull::namespaces;
use crate::pull::namespaces::Namespaces;
use crate::report::{ExistingReport, Resource};
use jiff::Timestamp;
use ocm::argocd_agent as names;
use ocm::tracking::{CONFIG_MAP, Tracking};
use primitives::object_ref::ObjectRef;
use runtime::invalid_object::InvalidObject;
use runtime::store::{Indexed, Store, Update};
use std::any::Any;
use std::collections::HashSet;
use std::sync::Arc;

impl Cache {
    /// Advances the time, and returns the objects to reconcile because something changed by time alone.
    pub fn tick(&mut self, now: Timestamp) -> Vec<ReconcileRequest> {
        self.time = now;
        let mut affected = self.settle(now);
        for (kind, object_ref, before) in self.works.tick(now) {
            affected.extend(self.map(kind_of(kind), &object_ref, Some(&before)));
        }
        affected
    }

    /// Applies a change and returns the objects to reconcile.
    pub fn apply(&mut self, change: Change) -> Vec<ReconcileRequest> {
        (change.apply)(self)
    }

    /// Stores or deletes an object, and returns the objects to reconcile.
    pub(super) fn put<V: Cached>(&mut self, kind: Kind, key: &V::Key, value: Option<V>) -> Vec<ReconcileRequest> {
        let (before, has_changed) = V::store(self, kind).put(key, value);
        if !has_changed {
            return Vec::new();
        }
        V::forget_computed(self, kind, key, before.as_ref());
        let object_ref = key.to_object_ref(&self.argocd);
        self.map(kind, &object_ref, before.as_ref().map(|before| before as &dyn Any))
    }

    /// Returns all objects of a kind.
    pub fn object_refs<V: Cached>(&mut self, kind: Kind) -> Vec<ObjectRef> {
        let namespace = Arc::clone(&self.argocd);
        let keys = V::store(self, kind).keys();
        keys.map(|key| key.to_object_ref(&namespace)).collect()
    }

    /// Returns the objects to reconcile for an object, as if it were new.
    pub fn affected_by<V: Cached>(&self, kind: Kind, object_ref: ObjectRef) -> Vec<ReconcileRequest> {
        V::affected_by(self, kind, &V::Key::from_object_ref(object_ref))
    }

    /// Returns the objects to reconcile after a change, by the mappers of controllers: what several return, once.
    pub(super) fn map(&self, kind: Kind, object_ref: &ObjectRef, previous: Option<&dyn Any>) -> Vec<ReconcileRequest> {
        let changed = Changed {
            kind,
            object_ref,
            previous,
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

    /// Returns the objects to reconcile after a change of the ConfigMap or Namespace with a setting.
    fn map_setting(&self, kind: Kind, name: &str, previous: Option<&dyn Any>) -> Vec<ReconcileRequest> {
        let object_ref = ObjectRef {
            namespace: Arc::clone(&self.argocd),
            name: name.into(),
        };
        self.map(kind, &object_ref, previous)
    }

    /// Forgets the unreadable works that can be read now, or no longer exist. Returns the Applications to reconcile.
    fn forget_unreadable(&mut self, update: &Update<ObjectRef, Work>) -> Vec<ReconcileRequest> {
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
    pub(super) fn carried_by(&self, work: &ObjectRef) -> Vec<ReconcileRequest> {
        let applications = self.pull_applications_by_work_name(&work.name).cloned();
        applications.map(ReconcileRequest::application).collect()
    }

    /// Records whether the API server refused the last write of this part of a controller for an object. Returns the objects to
    /// reconcile.
    pub(super) fn record_write(
        &mut self,
        controller: &'static str,
        part: usize,
        affected: ReconcileRequest,
        refusal: Option<Refusal>,
    ) -> Vec<ReconcileRequest> {
        let object = (controller, affected.kind, affected.object_ref.clone());
        let mut changed = self.refusals.put(&object, part, refusal);
        if affected.kind == Kind::Namespace {
            // Every GitOpsCluster with agents uses the values in this object.
            let with_agents = self.gitops_clusters().filter(|(_, it)| it.spec.agent.is_some());
            changed.extend(with_agents.map(|(object_ref, _)| object_ref.clone()));
        }
        let is_another = |it: &ReconcileRequest| (it.kind, &it.object_ref) != (affected.kind, &affected.object_ref);
        let mut all: Vec<_> = ReconcileRequest::gitops_all(&changed).filter(is_another).collect();
        all.push(affected);
        all
    }

    /// Interns a list, or drops it if reports are disabled.
    fn keep(&mut self, list: &mut Arc<[Resource]>) {
        *list = match &mut self.resources {
            Some(resources) => resources.keep(std::mem::take(list)),
            None => Arc::default(),
        };
    }

    fn set_lists_no_cluster(&mut self, lists_no_cluster: bool) {
        if std::mem::replace(&mut self.lists_no_cluster, lists_no_cluster) != lists_no_cluster {
            self.assignments.forget_all();
        }
    }
}

impl Cached for Application {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.applications
    }

    fn before_update(cache: &mut Cache, _: Kind, update: &Update<ObjectRef, Self>) -> Vec<ReconcileRequest> {
        match update {
            Update::Set(..) => {}
            Update::Deleted(_) => cache.has_seen_deletion = true,
            Update::Listed(_) => cache.has_seen_deletion = false,
        }
        Vec::new()
    }

    fn put(cache: &mut Cache, kind: Kind, key: &ObjectRef, mut value: Option<Self>) -> Vec<ReconcileRequest> {
        if let Some(application) = &mut value {
            match &mut application.generated {
                Some(generated) if cache.resources.is_some() => cache.keep(&mut generated.resources),
                generated => *generated = None,
            }
        }
        cache.put(kind, key, value)
    }
}

impl Indexed for Work {
    type Key = ObjectRef;
    /// The indices of works also need the resource tracking: see [`Works`](super::works::Works).
    type Indices = ();

    fn is_same(_: Option<&Self>, _: Option<&Self>) -> bool {
        false
    }
}

impl Cached for Work {
    fn parse(_: Kind, _: &ObjectRef, text: &str, now: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text, now)
    }

    fn store(cache: &mut Cache, kind: Kind) -> &mut Store<Self> {
        cache.works.store(work_kind(kind))
    }

    fn before_update(cache: &mut Cache, kind: Kind, update: &Update<ObjectRef, Self>) -> Vec<ReconcileRequest> {
        if kind != Kind::Works || cache.unreadable_works.is_empty() {
            return Vec::new();
        }
        cache.forget_unreadable(update)
    }

    fn put(cache: &mut Cache, kind: Kind, key: &ObjectRef, mut value: Option<Self>) -> Vec<ReconcileRequest> {
        if let Some(work) = &mut value {
            cache.keep(&mut work.resources);
        }
        let before = cache.works.put(work_kind(kind), key, value);
        cache.map(kind, key, Some(&before))
    }

    fn affected_by(cache: &Cache, kind: Kind, key: &ObjectRef) -> Vec<ReconcileRequest> {
        cache.map(kind, key, Some(&cache.works.as_new(work_kind(kind), key)))
    }
}

impl Indexed for Cluster {
    type Key = Arc<str>;
    /// The number of clusters by reachability, in the order of [`Availability::ALL`].
    type Indices = [usize; Availability::ALL.len()];

    fn is_same(before: Option<&Self>, after: Option<&Self>) -> bool {
        before == after
    }

    fn index(counts: &mut Self::Indices, _: &Arc<str>, before: Option<&Self>, after: Option<&Self>) {
        if let Some(before) = before {
            let count = &mut counts[before.availability as usize];
            *count = count.saturating_sub(1);
        }
        if let Some(after) = after {
            let count = &mut counts[after.availability as usize];
            *count = count.saturating_add(1);
        }
    }
}

impl Cached for Cluster {
    fn parse(_: Kind, _: &Arc<str>, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.clusters
    }

    fn before_update(cache: &mut Cache, _: Kind, update: &Update<Arc<str>, Self>) -> Vec<ReconcileRequest> {
        if let Update::Listed(all) = update {
            cache.set_lists_no_cluster(all.is_empty());
        }
        Vec::new()
    }

    fn put(cache: &mut Cache, kind: Kind, key: &Arc<str>, value: Option<Self>) -> Vec<ReconcileRequest> {
        let was_list_empty = value.is_some() && cache.lists_no_cluster;
        if was_list_empty {
            cache.set_lists_no_cluster(false);
        }
        let (before, has_changed) = cache.clusters.put(key, value);
        if !has_changed && !was_list_empty {
            return Vec::new();
        }
        cache.assignments.forget(&**key);
        let before = ClusterBefore {
            cluster: before,
            was_list_empty,
        };
        cache.map(kind, &ReconcileRequest::cluster(key).object_ref, Some(&before))
    }

    fn affected_by(cache: &Cache, kind: Kind, key: &Arc<str>) -> Vec<ReconcileRequest> {
        let before = ClusterBefore {
            cluster: None,
            was_list_empty: false,
        };
        cache.map(kind, &ReconcileRequest::cluster(key).object_ref, Some(&before))
    }
}

impl Indexed for ClusterHold {
    type Key = Arc<str>;
    type Indices = ();

    fn is_same(before: Option<&Self>, after: Option<&Self>) -> bool {
        before == after
    }
}

impl Cached for ClusterHold {
    fn parse(_: Kind, _: &Arc<str>, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.holds
    }
}

impl Cached for PlacementDecision {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.decisions
    }

    fn forget_computed(cache: &mut Cache, _: Kind, object_ref: &ObjectRef, before: Option<&Self>) {
        let both = before.into_iter().chain(cache.decisions.get(object_ref));
        let placements: Vec<_> = both.map(|it| it.placement(object_ref)).collect();
        for placement in placements {
            cache.unsettle(placement);
        }
        cache.assignments.forget_all();
    }
}

impl Indexed for Placement {
    type Key = ObjectRef;
    type Indices = ();

    fn is_same(before: Option<&Self>, after: Option<&Self>) -> bool {
        before == after
    }
}

impl Cached for Placement {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.placements
    }

    fn forget_computed(cache: &mut Cache, _: Kind, object_ref: &ObjectRef, _: Option<&Self>) {
        cache.unsettle(object_ref.clone());
        cache.assignments.forget_all();
    }
}

impl Indexed for GitOpsCluster {
    type Key = ObjectRef;
    type Indices = ();

    /// Returns false: the status of others may differ.
    fn is_same(_: Option<&Self>, _: Option<&Self>) -> bool {
        false
    }
}

impl Cached for GitOpsCluster {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.gitops
    }

    fn before_update(cache: &mut Cache, _: Kind, update: &Update<ObjectRef, Self>) -> Vec<ReconcileRequest> {
        match update {
            Update::Set(object_ref, _) => drop(cache.deleted_gitops.remove(object_ref)),
            Update::Deleted(object_ref) => {
                cache.deleted_gitops.insert(object_ref.clone());
                cache.assignments.forget_all();
            }
            Update::Listed(_) => {}
        }
        Vec::new()
    }

    fn forget_computed(cache: &mut Cache, _: Kind, object_ref: &ObjectRef, before: Option<&Self>) {
        if before.map(Self::inputs) != cache.gitops.get(object_ref).map(Self::inputs) {
            cache.assignments.forget_all();
            cache.template_names.forget(object_ref);
        }
    }
}

impl Indexed for AppProject {
    type Key = Arc<str>;
    type Indices = ();

    fn is_same(before: Option<&Self>, after: Option<&Self>) -> bool {
        before == after
    }
}

impl Cached for AppProject {
    fn parse(_: Kind, _: &Arc<str>, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.projects
    }
}

impl Cached for ClusterSecret {
    fn parse(_: Kind, _: &Arc<str>, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.secrets
    }

    fn forget_computed(cache: &mut Cache, _: Kind, name: &Arc<str>, before: Option<&Self>) {
        for secret in before.into_iter().chain(cache.secrets.get(name)) {
            for cluster in secret.concerns(name) {
                cache.assignments.forget(cluster);
            }
        }
    }
}

impl Indexed for ApplicationSet {
    type Key = ObjectRef;
    type Indices = ();

    fn is_same(before: Option<&Self>, after: Option<&Self>) -> bool {
        before == after
    }
}

impl Cached for ApplicationSet {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.application_sets
    }
}

impl Indexed for ExistingReport {
    type Key = ObjectRef;
    type Indices = ();

    /// Returns false: a write must name the current version.
    fn is_same(_: Option<&Self>, _: Option<&Self>) -> bool {
        false
    }
}

impl Cached for ExistingReport {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.reports
    }

    /// Returns the ApplicationSets, which can have reports from the first complete list on: the hub serves their kind.
    fn before_update(cache: &mut Cache, _: Kind, update: &Update<ObjectRef, Self>) -> Vec<ReconcileRequest> {
        let is_list = matches!(update, Update::Listed(_));
        if !is_list || std::mem::replace(&mut cache.are_reports_served, true) {
            return Vec::new();
        }
        let sets = cache.application_sets.keys();
        sets.flat_map(|set| cache.map(Kind::ApplicationSets, set, None))
            .collect()
    }
}

impl Cached for TlsSecret {
    fn parse(_: Kind, name: &Arc<str>, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        let is_known = names::CERTIFICATES.contains(&&**name);
        is_known.then(|| Self::from_json(text)).transpose()
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.certificates
    }
}

impl Cached for Object {
    fn parse(kind: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, InvalidObject> {
        Self::from_json(kind, text).map(Some)
    }

    fn store(cache: &mut Cache, kind: Kind) -> &mut Store<Self> {
        cache.objects.entry(kind).or_default()
    }

    fn forget_computed(cache: &mut Cache, kind: Kind, object_ref: &ObjectRef, before: Option<&Self>) {
        match kind {
            // The image of the principal is part of the templates.
            Kind::Deployments if names::PRINCIPAL_DEPLOYMENTS.contains(&&*object_ref.name) => {
                cache.template_names.forget_all();
            }
            Kind::OwnDecisions => {
                let after = cache.objects.get(&kind).and_then(|objects| objects.get(object_ref));
                let clusters = before.into_iter().chain(after).flat_map(Self::decided_clusters);
                clusters.for_each(|cluster| cache.assignments.forget(cluster));
            }
            Kind::AddOns => cache.assignments.forget(&*object_ref.namespace),
            Kind::IssuedCertificates => {
                if let Some(cluster) = names::cluster_of_issued(&object_ref.name) {
                    cache.assignments.forget(cluster);
                }
            }
            _ => {}
        }
    }
}

impl Setting for Tracking {
    fn parse(text: &str) -> Result<Self, InvalidObject> {
        model::tracking(text)
    }

    fn put(cache: &mut Cache, value: Option<Self>) -> Vec<ReconcileRequest> {
        let label = cache.tracking().label().to_owned();
        let tracking = value.unwrap_or_else(|| Self::configured(|_| None));
        let owners = cache.works.set_tracking(tracking);
        let before = TrackingBefore { label, owners };
        cache.map_setting(Kind::Config, CONFIG_MAP, Some(&before))
    }
}

impl Setting for Namespaces {
    fn parse(text: &str) -> Result<Self, InvalidObject> {
        model::namespaces(text)
    }

    fn put(cache: &mut Cache, value: Option<Self>) -> Vec<ReconcileRequest> {
        let namespaces = value.unwrap_or_default();
        if cache.namespaces == namespaces {
            return Vec::new();
        }
        cache.namespaces = namespaces;
        cache.map_setting(Kind::Parameters, namespaces::CONFIG_MAP, None)
    }
}

/// True if GitOpsClusters of other namespaces may have cluster Secrets in the namespace of Argo CD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowsOtherNamespaces(pub bool);

impl Setting for AllowsOtherNamespaces {
    fn parse(text: &str) -> Result<Self, InvalidObject> {
        model::is_open(text).map(Self)
    }

    fn put(cache: &mut Cache, value: Option<Self>) -> Vec<ReconcileRequest> {
        let allows = value.unwrap_or_default();
        if std::mem::replace(&mut cache.allows_other_namespaces, allows) == allows {
            return Vec::new();
        }
        cache.assignments.forget_all();
        cache.map(
            Kind::Namespace,
            &ReconcileRequest::argocd(&cache.argocd).object_ref,
            None,
        )
    }
}

/// Returns the watched kind of works of this kind.
fn kind_of(kind: WorkKind) -> Kind {
    match kind {
        WorkKind::Work => Kind::Works,
        WorkKind::Set => Kind::ReplicaSets,
    }
}

fn work_kind(kind: Kind) -> WorkKind {
    match kind {
        Kind::ReplicaSets => WorkKind::Set,
        _ => WorkKind::Work,
    }
}
