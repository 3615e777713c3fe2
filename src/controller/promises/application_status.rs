//! The state of the works comes back into the Application that Argo CD has reconciled to them: as conditions of types of our own,
//! as Events, and by asking Argo CD to look again where it shows what is no longer so.
//!
//! Never its sync, health, resources or operation: those are Argo CD's, which would take them back. Argo CD keeps conditions of
//! types that it does not know (`SetConditions` of its Application), but writes the list as a whole: a write of ours may be lost,
//! and is then made again, because the watch tells.

mod conditions;
mod events;

use super::{Moment, Promise};
use crate::controller::action::Action;
use crate::controller::index::Index;
use crate::controller::seen::{Condition, Place, Reach, WorkKind};
use crate::status::Verdict;
use k8s_openapi::jiff::Timestamp;
use std::collections::BTreeMap;

pub(super) const PROMISE: Promise = Promise {
    name: "application-status",
    about: "conditions and Events on Applications that the plugin generates, of how their works fare",
    desired,
};

fn desired(index: &Index, place: &Place, moment: &Moment) -> Option<Action> {
    let application = index.application(place)?;
    if !application.reconciled || application.deleting {
        return None;
    }
    let fleet = Fleet::of(index, place);
    let (own, others): (Vec<_>, Vec<_>) = application.conditions.iter().cloned().partition(conditions::is_own);
    let wanted = conditions::of(&fleet);
    let differs = !conditions::are_same(&own, &wanted);
    let refresh = moment.stale && !application.refreshing && !fleet.is_empty();
    if !differs && !refresh {
        return None;
    }
    let events = if differs {
        events::between(&own, &wanted)
    } else {
        Vec::new()
    };
    Some(Action {
        application: place.clone(),
        uid: application.uid.clone(),
        version: application.version.clone(),
        conditions: differs.then(|| merged(others, &own, wanted, moment.now)),
        refresh,
        events,
    })
}

/// All conditions, in the order in which Argo CD keeps them: it would put them in order again otherwise.
fn merged(others: Vec<Condition>, before: &[Condition], wanted: Vec<Condition>, now: Timestamp) -> Vec<Condition> {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let since = |condition: &Condition| {
        let same = before.iter().find(|other| conditions::is_same_state(other, condition));
        same.and_then(|same| same.last_transition_time.clone())
            .unwrap_or_else(|| now.clone())
    };
    let own = wanted.into_iter().map(|condition| Condition {
        last_transition_time: Some(since(&condition)),
        ..condition
    });
    let mut all: Vec<_> = others.into_iter().chain(own).collect();
    all.sort();
    all
}

/// How an Application fares on its clusters.
#[derive(Debug, Default)]
struct Fleet {
    clusters: BTreeMap<String, OnCluster>,
    /// What is said of its ManifestWorkReplicaSets, by the Placements' namespaces and their names.
    sets: BTreeMap<String, Told>,
    works: usize,
    objects: usize,
}

/// What is said of a ManifestWorkReplicaSet.
#[derive(Debug)]
struct Told {
    verdict: Verdict,
    message: String,
}

/// How it fares on a cluster.
#[derive(Debug)]
struct OnCluster {
    verdict: Verdict,
    reach: Reach,
    applied: bool,
    refused: Vec<String>,
    wrong: Vec<String>,
}

impl Fleet {
    fn of(index: &Index, application: &Place) -> Self {
        let mut fleet = Self::default();
        for (kind, place, work) in index.works_of(application) {
            let standing = &work.standing;
            fleet.works += 1;
            if kind == WorkKind::Set {
                let told = Told {
                    verdict: standing.verdict,
                    message: standing.message.clone(),
                };
                fleet.sets.insert(place.to_string(), told);
                continue;
            }
            fleet.objects += standing.objects;
            let cluster = fleet.clusters.entry(place.namespace.to_string());
            let cluster = cluster.or_insert_with(|| OnCluster {
                verdict: Verdict::Healthy,
                reach: index.reach(&place.namespace),
                applied: true,
                refused: Vec::new(),
                wrong: Vec::new(),
            });
            cluster.verdict = cluster.verdict.min(standing.verdict);
            cluster.applied &= standing.applied;
            cluster.refused.extend(standing.refused.clone());
            cluster.wrong.extend(standing.wrong.clone());
        }
        fleet
    }

    fn is_empty(&self) -> bool {
        self.works == 0
    }
}
