//! Applies changes to the cache: stores the objects, forgets outdated computed values, and maps each change to the objects to
//! reconcile.

use super::change::{Cached, Change, Changed, ObjectKey, Setting};
use super::store::{Indexed, Store, Update};
use super::{Cache, ReconcileRequest, Refusal, WorkBefore};
use crate::model::{Availability, Cluster, GitOpsCluster, Kind, parse, parse_data};
use crate::pull::namespaces::{self, NAMESPACES, Namespaces};
use crate::report::{ExistingReport, Resource};
use jiff::Timestamp;
use ocm::global_projects::GlobalProjects;
use ocm::hold::Hold;
use ocm::tracking::{CONFIG_MAP, Tracking};
use primitives::object_ref::ObjectRef;
use runtime::queue::Refresh;
use std::any::Any;
use std::collections::{BTreeSet, HashSet};
use std::iter;
use std::sync::Arc;

impl Cache {
    /// Advances the time, and returns the objects to reconcile because something changed by time alone.
    pub fn tick(&mut self, now: Timestamp) -> Vec<ReconcileRequest> {
        self.time = now;
        let mut affected = self.settle(now);
        for (kind, object_ref, before) in self.works.tick(now) {
            affected.extend(self.map(kind, &object_ref, Some(&before)));
        }
        affected
    }

    pub fn apply(&mut self, change: Change) -> Vec<ReconcileRequest> {
        (change.0)(self)
    }

    pub(super) fn put<V: Cached>(&mut self, kind: Kind, key: &V::Key, value: Option<V>) -> Vec<ReconcileRequest> {
        let (before, has_changed) = V::store(self, kind).put(key, value);
        if !has_changed {
            return Vec::new();
        }
        V::forget_computed(self, kind, key, before.as_ref());
        let object_ref = key.to_object_ref(&self.argocd);
        self.map(kind, &object_ref, before.as_ref().map(|before| before as &dyn Any))
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
                    .map(|request: &ReconcileRequest| (request.kind, &request.object_ref))
                    .collect();
                more.retain(|request| !known.contains(&(request.kind, &request.object_ref)));
            }
            affected.extend(more);
        }
        affected
    }

    /// Returns the Applications of the pull model whose works have the name of this one.
    pub(super) fn carried_by(&self, work: &ObjectRef) -> Vec<ReconcileRequest> {
        let applications = self.pull_applications_by_work_name(&work.name).cloned();
        applications.map(ReconcileRequest::application).collect()
    }

    /// Records whether the API server refused the last write of this part of a controller for an object. Returns the objects to
    /// reconcile.
    pub fn record_write(
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
            let with_agents = self.gitops_clusters().filter(|(_, gitops)| gitops.spec.agent.is_some());
            changed.extend(with_agents.map(|(object_ref, _)| object_ref.clone()));
        }
        let is_another =
            |request: &ReconcileRequest| (request.kind, &request.object_ref) != (affected.kind, &affected.object_ref);
        let mut all: Vec<_> = ReconcileRequest::gitops_all(&changed).filter(is_another).collect();
        all.push(affected);
        all
    }

    /// Interns a list, or drops it if reports are disabled.
    pub(super) fn keep(&mut self, list: &mut Arc<[Resource]>) {
        *list = match &mut self.resources {
            Some(resources) => resources.keep(std::mem::take(list)),
            None => Arc::default(),
        };
    }
}

impl Indexed for Cluster {
    type Key = Arc<str>;
    /// The number of clusters by reachability, in the order of [`Availability::ALL`].
    type Indices = [usize; Availability::ALL.len()];

    fn index(counts: &mut Self::Indices, _: &Arc<str>, before: Option<&Self>, after: Option<&Self>) {
        for (cluster, change) in [(before, -1), (after, 1)] {
            if let Some(cluster) = cluster {
                let count = &mut counts[cluster.availability as usize];
                *count = count.saturating_add_signed(change);
            }
        }
    }
}

impl Cached for Cluster {
    fn parse(_: Kind, _: &Arc<str>, text: &str, _: Timestamp) -> Result<Option<Self>, String> {
        Self::from_json(text).map(Some)
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.clusters
    }

    /// Returns all that depends on managed clusters if this is the first one after an empty list, which proves the deletion of all
    /// others, or the hub itself, so that no other cluster may be the hub.
    fn before_update(cache: &mut Cache, _: Kind, update: &Update<Arc<str>, Self>) -> Vec<ReconcileRequest> {
        let was_empty = cache.lists_no_cluster;
        cache.lists_no_cluster = match update {
            Update::Set(..) => false,
            Update::Deleted(_) => was_empty,
            Update::Listed(all) => all.is_empty(),
        };
        let hub = cache.hub_cluster();
        let was_hub_known = hub.is_some_and(|hub| cache.accepted_cluster(hub).is_some());
        let is_hub_known = match update {
            Update::Set(name, cluster) if cache.is_hub(name) => cluster.is_accepted,
            Update::Set(..) => was_hub_known,
            Update::Deleted(name) => was_hub_known && !cache.is_hub(name),
            Update::Listed(all) => was_hub_known && hub.is_some_and(|hub| all.contains(hub)),
        };
        let has_hub_changed = is_hub_known != was_hub_known;
        if cache.lists_no_cluster == was_empty && !has_hub_changed {
            return Vec::new();
        }
        cache.assignments.forget_all();
        let Update::Set(first, _) = update else {
            return Vec::new();
        };
        let others = cache.clusters_with_secrets().filter(|name| *name != first);
        let others = others.map(ReconcileRequest::cluster);
        let marked = cache
            .clusters
            .iter()
            .filter(|(name, cluster)| has_hub_changed && cluster.has_hub_mark(name));
        let marked = marked.flat_map(|(name, _)| {
            let pulled = cache.pull_applications_to(name).cloned();
            iter::once(ReconcileRequest::cluster(name)).chain(pulled.map(ReconcileRequest::application))
        });
        let others = others.chain(marked);
        let gitops = ReconcileRequest::gitops_all(cache.gitops.keys());
        let argocd = ReconcileRequest::argocd(&cache.argocd);
        others.chain(gitops).chain([argocd]).collect()
    }

    fn forget_computed(cache: &mut Cache, _: Kind, name: &Arc<str>, before: Option<&Self>) {
        cache.unsettle_cluster(name, before);
        cache.assignments.forget(&**name);
    }
}

impl Indexed for Hold {
    type Key = Arc<str>;
    type Indices = ();
}

impl Cached for Hold {
    fn parse(_: Kind, _: &Arc<str>, text: &str, _: Timestamp) -> Result<Option<Self>, String> {
        Ok(Self::from_namespace(&parse(text)?))
    }

    fn store(cache: &mut Cache, _: Kind) -> &mut Store<Self> {
        &mut cache.holds
    }
}

impl Indexed for GitOpsCluster {
    type Key = ObjectRef;
    type Indices = ();
}

impl Cached for GitOpsCluster {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, String> {
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

impl Indexed for ExistingReport {
    type Key = ObjectRef;
    type Indices = ();
}

impl Cached for ExistingReport {
    fn parse(_: Kind, _: &ObjectRef, text: &str, _: Timestamp) -> Result<Option<Self>, String> {
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
        let sets = cache.objects(Kind::ApplicationSets);
        sets.flat_map(|(set, _)| cache.map(Kind::ApplicationSets, set, None))
            .collect()
    }
}

/// The settings in Argo CD's main ConfigMap.
#[derive(Default)]
pub(super) struct ArgoCdConfig {
    tracking: Tracking,
    global_projects: GlobalProjects,
}

impl Setting for ArgoCdConfig {
    fn parse(text: &str) -> Result<Self, String> {
        let data = parse_data(text)?;
        let data = |key: &str| data.get(key).map(String::as_str);
        Ok(Self {
            tracking: Tracking::configured(data),
            global_projects: GlobalProjects::configured(data),
        })
    }

    fn put(cache: &mut Cache, value: Option<Self>) -> Vec<ReconcileRequest> {
        let value = value.unwrap_or_default();
        let is_tracked_as_before = *cache.tracking() == value.tracking;
        if is_tracked_as_before && cache.global_projects == value.global_projects {
            return Vec::new();
        }
        cache.global_projects = value.global_projects;
        let owners = if is_tracked_as_before {
            BTreeSet::new()
        } else {
            cache.works.set_tracking(value.tracking)
        };
        let before = WorkBefore {
            existed: true,
            owners,
            refresh: Refresh::Unchanged,
        };
        let config_map = ObjectRef::new(&cache.argocd, CONFIG_MAP);
        cache.map(Kind::Config, &config_map, Some(&before))
    }
}

impl Setting for Namespaces {
    fn parse(text: &str) -> Result<Self, String> {
        let data = parse_data(text)?;
        Ok(data
            .get(NAMESPACES)
            .map(|list| Self::configured(list))
            .unwrap_or_default())
    }

    fn put(cache: &mut Cache, value: Option<Self>) -> Vec<ReconcileRequest> {
        let namespaces = value.unwrap_or_default();
        if cache.namespaces == namespaces {
            return Vec::new();
        }
        cache.namespaces = namespaces;
        let config_map = ObjectRef::new(&cache.argocd, namespaces::CONFIG_MAP);
        cache.map(Kind::Parameters, &config_map, None)
    }
}
