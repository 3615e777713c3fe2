//! Reconciles the report of an ApplicationSet: the state of its Applications on their clusters, however they are delivered.
//!
//! If Argo CD applied an Application as ManifestWorks, its state on a cluster is the health of its works there. If the pull model
//! carries the whole Application to a cluster, or an agent with its own Argo CD reconciles it, its state is that of its status.
//!
//! The controller never deletes anything: Kubernetes deletes a report with the ApplicationSet that owns it, and the controller
//! does not write Applications or works.

mod mappers;

use crate::{Line, Report};
use hub_state::condition_types::{APPLY_ERROR, DEGRADED, OVERDUE, UNREACHABLE, unreachable};
use hub_state::report::{ConditionEntry, Entry, Resource};
use hub_state::{Application, Cache, Context, Controller, Kind, Watch, no_requeue};
use ocm::health::HealthStatus;
use ocm::pull_model::is_own_condition;
use ocm::resources::{APPLICATION_SETS, REPORTS};
use primitives::object_ref::ObjectRef;
use runtime::action::{Action, InvolvedObject, Write};
use std::collections::BTreeMap;
use std::time::Duration;

pub const CONTROLLER: Controller = Controller {
    name: "application-set-report",
    about: "a MulticlusterApplicationSetReport for each ApplicationSet, with the health of its Applications by cluster",
    kind: Kind::ApplicationSets,
    watches: &[
        Watch::new(Kind::Applications, mappers::application),
        Watch::new(Kind::ApplicationSets, mappers::of_same_name),
        Watch::new(Kind::Reports, mappers::of_same_name),
        Watch::new(Kind::Works, mappers::work),
        Watch::new(Kind::ReplicaSets, mappers::work),
        Watch::new(Kind::Clusters, mappers::cluster),
        Watch::new(Kind::Config, mappers::of_owners),
    ],
    // Each change rewrites the whole report, even that of a large set.
    min_write_interval: Duration::from_secs(5),
    reconcile,
    requeue_after: no_requeue,
};

fn reconcile(cache: &Cache, object_ref: &ObjectRef, _: &Context<'_>) -> Option<Action> {
    let set = cache
        .object(Kind::ApplicationSets, object_ref)
        .filter(|set| !set.deleting)?;
    let existing = cache.reports()?.get(object_ref);
    if existing.is_some_and(|existing| existing.deleting) {
        return None;
    }
    let applications = cache.applications_of(object_ref);
    let lines: Vec<_> = applications
        .flat_map(|(object_ref, application)| lines(cache, object_ref, application))
        .collect();
    let report = Report::new(object_ref, &set.uid, &lines);
    let (resource, object_ref) = (&REPORTS, object_ref.clone());
    let write = match existing {
        None => Write::create(resource, object_ref.clone(), report.object()),
        Some(existing) => Write::patch(resource, object_ref.clone(), report.patch(existing)?),
    };
    Some(Action::new(
        InvolvedObject::new(&APPLICATION_SETS, object_ref, set.uid.clone()),
        vec![write],
        None,
    ))
}

/// Returns a line for each cluster of an Application.
fn lines<'i>(cache: &'i Cache, object_ref: &'i ObjectRef, application: &'i Application) -> Vec<Line<'i>> {
    let Some(generated) = application.generated.as_deref() else {
        return Vec::new();
    };
    let known = |text: &'i str| if text.is_empty() { "Unknown" } else { text }.into();
    let line = |cluster: &'i str, carrier, health: &'i str, conditions, resources| Line {
        entry: Entry {
            app: crate::app(&object_ref.namespace, &object_ref.name, carrier).into(),
            cluster: cluster.into(),
            conditions,
            health_status: known(health),
            operation_state_phase: (&*generated.phase).into(),
            operation_state_started_at: (&*generated.started_at).into(),
            sync_revision: (&*generated.revision).into(),
            sync_status: known(&generated.sync),
        },
        resources,
    };
    let on = clusters(cache, object_ref);
    if on.is_empty() {
        let cluster = named(cache, object_ref, application).unwrap_or_default();
        let mut conditions: Vec<_> = of_all(application).collect();
        // The same condition may already be present.
        let unreached =
            unreached(cache, cluster).filter(|condition| conditions.iter().all(|other| other.kind != condition.kind));
        conditions.extend(unreached);
        let carriers = cache.pull_works(object_ref);
        let mut works = carriers
            .iter()
            .filter(|carrier| *carrier.object_ref.namespace == *cluster);
        let carrier = works.next().map(|carrier| (cluster, &*carrier.object_ref.name));
        return vec![line(
            cluster,
            carrier,
            &generated.health,
            conditions,
            vec![&*generated.resources],
        )];
    }
    let line = |(cluster, mut on): (_, ClusterStatus<'i>)| {
        // Our conditions on an Application describe its clusters, which report them separately.
        let of_all = of_all(application).filter(|condition| !is_own_condition(&condition.kind));
        on.conditions.extend(of_all);
        line(cluster, None, on.health.in_argo_cd(), on.conditions, on.resources)
    };
    on.into_iter().map(line).collect()
}

/// The health of an Application's works on a cluster.
struct ClusterStatus<'i> {
    health: HealthStatus,
    conditions: Vec<ConditionEntry<'i>>,
    resources: Vec<&'i [Resource]>,
}

/// Returns the clusters on which an Application has works that Argo CD applied.
fn clusters<'i>(cache: &'i Cache, application: &ObjectRef) -> BTreeMap<&'i str, ClusterStatus<'i>> {
    let mut clusters = BTreeMap::new();
    for (_, object_ref, work) in cache.works_of(application).filter(|(kind, ..)| *kind == Kind::Works) {
        let cluster = clusters.entry(&*object_ref.namespace).or_insert_with(|| ClusterStatus {
            health: HealthStatus::Healthy,
            conditions: unreached(cache, &object_ref.namespace).into_iter().collect(),
            resources: Vec::new(),
        });
        let state = &work.state;
        cluster.health = cluster.health.min(state.health);
        for (kind, message) in [
            (APPLY_ERROR, state.refused.as_deref()),
            (DEGRADED, state.degraded.as_deref()),
            (OVERDUE, cache.overdue(object_ref, work)),
        ] {
            cluster
                .conditions
                .extend(message.map(|message| condition(kind, message)));
        }
        cluster.resources.push(&work.resources);
    }
    clusters
}

/// Returns the cluster that an Application names, or in whose namespace it is.
fn named<'i>(cache: &Cache, object_ref: &'i ObjectRef, application: &'i Application) -> Option<&'i str> {
    let is_cluster = |namespace: &&str| application.pull.is_none() && cache.accepted_cluster(namespace).is_some();
    let namespace = || Some(&*object_ref.namespace).filter(is_cluster);
    application.cluster().or_else(namespace)
}

fn condition<'i>(kind: &'i str, message: &'i str) -> ConditionEntry<'i> {
    let (kind, message) = (kind.into(), message.into());
    ConditionEntry { message, kind }
}

fn unreached(cache: &Cache, cluster: &str) -> Option<ConditionEntry<'static>> {
    Some(condition(UNREACHABLE, unreachable(cache.availability(cluster))?))
}

/// Returns the conditions that apply to an Application on all clusters.
fn of_all(application: &Application) -> impl Iterator<Item = ConditionEntry<'_>> {
    let all = application.conditions.iter();
    let bad = all.filter(|condition| condition.kind.ends_with("Error") || condition.kind.ends_with("Warning"));
    bad.map(|bad| condition(&bad.kind, &bad.message))
}

#[cfg(test)]
mod tests;
