//! The report of an ApplicationSet: how its Applications fare on their clusters, whoever delivers them.
//!
//! What Argo CD applies as works fares on each cluster as its works there do. What is carried to a cluster as a whole, and what
//! an agent of Argo CD's own reconciles, fares as its status says.
//!
//! Nothing is ever deleted: a report goes with its ApplicationSet, which owns it, and Applications and works are none of its business.

use super::application_status::conditions::{APPLY_ERROR, DEGRADED, UNREACHABLE, is_own_type, unreachable};
use super::{Moment, Promise, never};
use crate::controller::action::{Action, Involved, Write};
use crate::controller::index::{Index, Sort};
use crate::controller::resources::{APPLICATION_SETS, REPORTS};
use crate::controller::seen::{Application, Place, WorkKind};
use crate::controller::watches::Kind;
use crate::report::{self, Condition, Line, Report, Resource, Set};
use crate::status::Verdict;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) const PROMISE: Promise = Promise {
    name: "application-set-report",
    about: "a MulticlusterApplicationSetReport for each ApplicationSet, of how its Applications fare on their clusters",
    of: Sort::ApplicationSet,
    needs: &[
        Kind::Applications,
        Kind::ApplicationSets,
        Kind::Reports,
        Kind::Works,
        Kind::Sets,
        Kind::Clusters,
        Kind::Config,
    ],
    // All that is said of a large set is written anew for each change.
    pause: Duration::from_secs(5),
    desired,
    again: never,
};

fn desired(index: &Index, place: &Place, _: &Moment<'_>) -> Option<Action> {
    let set = index.application_set(place).filter(|set| !set.deleting)?;
    let found = index.reports()?.get(place);
    if found.is_some_and(|found| found.deleting) {
        return None;
    }
    let applications = index.applications_of(place);
    let lines: Vec<_> = applications.flat_map(|(place, it)| lines(index, place, it)).collect();
    let which = Set {
        namespace: &place.namespace,
        name: &place.name,
        uid: &set.uid,
    };
    let report = Report::new(which, &lines);
    let (resource, place) = (&REPORTS, place.clone());
    let write = match found {
        None => Write::Create {
            resource,
            place: place.clone(),
            object: report.object(),
        },
        Some(found) => Write::Patch {
            resource,
            place: place.clone(),
            body: report.patch(found)?,
        },
    };
    Some(Action {
        of: Involved {
            resource: &APPLICATION_SETS,
            place,
            uid: set.uid.clone(),
        },
        writes: vec![write],
        refresh: false,
        events: Vec::new(),
    })
}

/// An Application on each of its clusters.
fn lines<'i>(index: &'i Index, place: &'i Place, application: &'i Application) -> Vec<Line<'i>> {
    let Some(generated) = application.generated.as_deref() else {
        return Vec::new();
    };
    let on = clusters(index, place);
    let line = |cluster, health, conditions: Vec<_>, resources| Line {
        cluster,
        app: report::app(&place.namespace, &place.name, None),
        sync: &generated.sync,
        health,
        started_at: &generated.started_at,
        phase: &generated.phase,
        revision: &generated.revision,
        conditions,
        resources,
    };
    if on.is_empty() {
        let cluster = named(index, place, application).unwrap_or_default();
        let mut conditions: Vec<_> = of_all(application).collect();
        // Which may have been said already.
        let unreached = unreached(index, cluster).filter(|it| conditions.iter().all(|other| other.kind != it.kind));
        conditions.extend(unreached);
        let resources = vec![&*generated.parts];
        let carriers = index.carrying(place);
        let mut here = carriers.iter().filter(|it| *it.place.namespace == *cluster);
        let carrier = here.next().map(|it| (cluster, &*it.place.name));
        return vec![Line {
            app: report::app(&place.namespace, &place.name, carrier),
            ..line(cluster, &generated.health, conditions, resources)
        }];
    }
    let line = |(cluster, mut on): (_, OnCluster<'i>)| {
        // What we say of its clusters is said of each.
        let of_all = of_all(application).filter(|it| !is_own_type(it.kind));
        on.conditions.extend(of_all);
        line(cluster, on.verdict.in_argo_cd(), on.conditions, on.resources)
    };
    on.into_iter().map(line).collect()
}

/// How an Application's works fare on a cluster.
struct OnCluster<'i> {
    verdict: Verdict,
    conditions: Vec<Condition<'i>>,
    resources: Vec<&'i [Resource]>,
}

/// Where an Application has works that Argo CD has applied.
fn clusters<'i>(index: &'i Index, application: &Place) -> BTreeMap<&'i str, OnCluster<'i>> {
    let mut clusters = BTreeMap::new();
    for (_, place, work) in index.works_of(application).filter(|(kind, ..)| *kind == WorkKind::Work) {
        let cluster = clusters.entry(&*place.namespace).or_insert_with(|| OnCluster {
            verdict: Verdict::Healthy,
            conditions: unreached(index, &place.namespace).into_iter().collect(),
            resources: Vec::new(),
        });
        let standing = &work.standing;
        cluster.verdict = cluster.verdict.min(standing.verdict);
        for (kind, message) in [(APPLY_ERROR, &standing.refused), (DEGRADED, &standing.wrong)] {
            cluster
                .conditions
                .extend(message.as_deref().map(|message| Condition { kind, message }));
        }
        cluster.resources.push(&work.parts);
    }
    clusters
}

/// The cluster that an Application names itself, or in whose namespace it is.
fn named<'i>(index: &Index, place: &'i Place, application: &'i Application) -> Option<&'i str> {
    let is_cluster = |namespace: &&str| application.pull.is_none() && index.cluster(namespace).is_some();
    let namespace = || Some(&*place.namespace).filter(is_cluster);
    application.cluster().or_else(namespace)
}

fn unreached(index: &Index, cluster: &str) -> Option<Condition<'static>> {
    let message = unreachable(index.reach(cluster))?;
    Some(Condition {
        kind: UNREACHABLE,
        message,
    })
}

/// What is wrong with an Application, wherever it is.
fn of_all(application: &Application) -> impl Iterator<Item = Condition<'_>> {
    let is_bad = |kind: &str| kind.ends_with("Error") || kind.ends_with("Warning");
    let bad = application.conditions.iter().filter(move |it| is_bad(&it.kind));
    bad.map(|it| Condition {
        kind: &it.kind,
        message: &it.message,
    })
}

#[cfg(test)]
mod tests;
