//! The basic pull model: an Application with the pull model's label becomes a ManifestWork for the managed cluster that it names,
//! whose own Argo CD runs it, and what that says of it comes back.
//!
//! As argocd-pull-integration and Red Hat ACM's multicloud-integrations do it, whose labels, annotations and names these are. What
//! is taken from an Application, and what of a work becomes its status, is in [`pull`](crate::pull); here is decided what is written.

use super::application_status::conditions::{APPLY_ERROR, UNREACHABLE, unreachable};
use super::{Moment, Promise, never};
use crate::controller::action::{Action, Event, Involved, Write};
use crate::controller::index::{Index, Sort};
use crate::controller::resources::{APPLICATIONS, Resource, WORKS};
use crate::controller::seen::{Application, Place, SKIP_RECONCILE, WorkKind};
use crate::controller::watches::Kind;
use crate::pull::requests::Taken;
use crate::pull::status::{Condition, Mirror, Situation};
use crate::pull::work::{Desired, Hold};
use crate::pull::{self, Carried, requests, status, work};
use serde_json::Value;
use std::time::Duration;

pub(super) const PROMISE: Promise = Promise {
    name: "pull",
    about: "a work for each Application of the basic pull model, and the status of the Application from it",
    of: Sort::Application,
    needs: &[Kind::Applications, Kind::Works, Kind::Clusters],
    pause: Duration::from_secs(1),
    desired,
    again: never,
};

/// No work can be made of the Application.
const ERROR: &str = "ManifestWorkError";
/// Argo CD on the hub runs it too.
const RUN_TWICE: &str = "ManifestWorkSkipReconcileWarning";

/// What is told in Events when it becomes so.
const REASONS: [(&str, &str); 4] = [
    (ERROR, "ManifestWorkRefused"),
    (APPLY_ERROR, "ManifestWorkApplyFailed"),
    (UNREACHABLE, "ManagedClusterUnreachable"),
    (RUN_TWICE, "ManifestWorkRunTwice"),
];

/// A work that carries the Application.
type Carrying<'i> = (&'i Place, &'i Carried);

fn desired(index: &Index, place: &Place, moment: &Moment<'_>) -> Option<Action> {
    let works = index.carrying(place);
    let works: Vec<Carrying<'_>> = works
        .filter_map(|(place, work)| Some((place, work.carried.as_deref()?)))
        .collect();
    let application = index.application(place);
    let writes = match application.map(|it| (it, it.pull.as_deref())) {
        // Where the hub shows no Application at all, it may be the hub that is wrong.
        None if !index.is_sure_of_applications() => Vec::new(),
        None => removed(&works, Some(place)),
        Some((_, None)) => removed(&works, None),
        Some((application, Some(pull))) if pull.deleting => ending(index, place, (application, pull), &works, moment),
        Some((application, Some(pull))) => return alive(index, place, (application, pull), &works, moment),
    };
    if writes.is_empty() || moment.settings.pull.read_only {
        return None;
    }
    Some(action(place, application, writes))
}

fn action(place: &Place, application: Option<&Application>, writes: Vec<Write>) -> Action {
    Action {
        of: Involved {
            resource: &APPLICATIONS,
            place: place.clone(),
            uid: application.map_or_else(|| "".into(), |application| application.uid.clone()),
        },
        writes,
        refresh: false,
        events: Vec::new(),
    }
}

/// The works that are to go, unless the Application is there after all.
fn removed(works: &[Carrying<'_>], unless_there: Option<&Place>) -> Vec<Write> {
    let staying = works.iter().filter(|(_, carried)| !carried.deleting);
    let delete = |(place, carried): &Carrying<'_>| Write::Delete {
        resource: &WORKS,
        place: (*place).clone(),
        uid: carried.uid.clone(),
        version: carried.version.clone(),
        unless_there: unless_there.map(|place| (&APPLICATIONS, place.clone())),
    };
    staying.map(delete).collect()
}

/// What is done while an Application is being deleted: with one of Argo CD's finalizers it stays until the managed cluster has
/// deleted what it has deployed, as it would if Argo CD here had deployed it. Without, there is nothing to wait for.
fn ending(
    index: &Index,
    place: &Place,
    (application, pull): (&Application, &pull::Application),
    works: &[Carrying<'_>],
    moment: &Moment<'_>,
) -> Vec<Write> {
    let Some(release) = pull.release() else {
        return Vec::new();
    };
    let Some(kept) = works.first() else {
        return vec![patch(&APPLICATIONS, place, release)];
    };
    let mut writes = removed(works, None);
    // What the agent says while it removes it, such as why it cannot.
    if writes.is_empty() {
        let wanted = wanted(
            index,
            (application, pull),
            (&kept.0.namespace, Some(kept.1)),
            None,
            moment,
        );
        let body = pull.patch(Taken::default(), status::patch(&pull.current, &wanted));
        writes.extend(body.map(|body| patch(&APPLICATIONS, place, body)));
    }
    writes
}

fn patch(resource: &'static Resource, place: &Place, body: Value) -> Write {
    Write::Patch {
        resource,
        place: place.clone(),
        body,
    }
}

/// What is written of an Application that is not going.
fn alive(
    index: &Index,
    place: &Place,
    (application, pull): (&Application, &pull::Application),
    works: &[Carrying<'_>],
    moment: &Moment<'_>,
) -> Option<Action> {
    let settings = &moment.settings.pull;
    let target = target(index, place, pull, settings);
    let mut writes = Vec::new();
    let mut taken = Taken::default();
    let kept = match target {
        Ok(cluster) => {
            let name = name(index, place, pull, cluster);
            let here = works.iter().filter(|(at, _)| *at.namespace == *cluster);
            let kept = here.min_by_key(|(at, carried)| (carried.deleting, *at.name != *name));
            let (requests, what) = requests::requests(pull, kept.map(|(_, carried)| *carried));
            let project = index.project(&pull.project);
            let hold = Hold::next(settings, kept.map(|(_, carried)| *carried));
            let desired = Desired::of(pull, (cluster, &name), settings, &requests, project, hold);
            writes.extend(delivered(&desired, &Place::new(cluster, &name), kept));
            taken = what;
            if !settings.read_only {
                let others = works.iter().filter(|(at, _)| kept.is_none_or(|(kept, _)| at != kept));
                writes.extend(removed(&others.copied().collect::<Vec<_>>(), None));
            }
            // What comes of a new work is told when it is there: by then its agent may have more to say.
            if kept.is_none() {
                return Some(action(place, Some(application), writes));
            }
            kept
        }
        // What runs goes on.
        Err(_) => works.first(),
    };
    let cluster = kept.map_or(target.as_deref().unwrap_or_default(), |(at, _)| &at.namespace);
    let carried = kept.map(|(_, carried)| *carried);
    let wanted = wanted(
        index,
        (application, pull),
        (cluster, carried),
        target.as_ref().err(),
        moment,
    );
    let body = pull.patch(taken, status::patch(&pull.current, &wanted));
    let events = news(&pull.current, &wanted);
    writes.extend(body.map(|body| patch(&APPLICATIONS, place, body)));
    if writes.is_empty() {
        return None;
    }
    Some(Action {
        events,
        ..action(place, Some(application), writes)
    })
}

/// The managed cluster to which an Application goes, or why there is none.
fn target<'p>(
    index: &Index,
    place: &Place,
    pull: &'p pull::Application,
    settings: &pull::Settings,
) -> Result<&'p str, String> {
    let cluster = pull.cluster.as_deref().ok_or_else(|| {
        let annotation = pull::names::CLUSTER;
        format!("the annotation {annotation} names no managed cluster")
    })?;
    match index.cluster(cluster) {
        None => Err(format!("there is no ManagedCluster {cluster}")),
        Some(known) if known.deleting => Err(format!("the ManagedCluster {cluster} is being deleted")),
        Some(_) if settings.placement && !index.is_selected(&place.namespace, cluster) => Err(format!(
            "no Placement in the namespace {} selects the ManagedCluster {cluster}",
            place.namespace
        )),
        Some(_) if settings.project && index.project(&pull.project).is_none() => Err(format!(
            "there is no AppProject {} in the namespace {}",
            pull.project, settings.argocd
        )),
        Some(_) => Ok(cluster),
    }
}

/// The name of the work of an Application on a cluster, which no work of somebody else has.
fn name(index: &Index, place: &Place, pull: &pull::Application, cluster: &str) -> String {
    let name = work::name(pull);
    let taken = index.work(WorkKind::Work, &Place::new(cluster, &name));
    let is_of_it =
        |carried: &Carried| (&*carried.application.0, &*carried.application.1) == (&*place.namespace, &*place.name);
    match taken {
        Some(work) if !work.carried.as_deref().is_some_and(is_of_it) => work::other_name(pull),
        _ => name,
    }
}

/// What makes a work as it should be. One that is going is waited for, because the agent is taking away what it has applied.
fn delivered(desired: &Desired, place: &Place, kept: Option<&Carrying<'_>>) -> Option<Write> {
    match kept {
        None => Some(Write::Create {
            resource: &WORKS,
            place: place.clone(),
            object: desired.object(),
        }),
        Some((_, carried)) if carried.deleting || carried.fingerprint == desired.fingerprint() => None,
        Some((at, carried)) => Some(patch(&WORKS, at, desired.patch(&carried.version))),
    }
}

/// What an Application is to say of itself.
fn wanted(
    index: &Index,
    (application, pull): (&Application, &pull::Application),
    (cluster, carried): (&str, Option<&Carried>),
    refused: Option<&String>,
    moment: &Moment<'_>,
) -> Mirror {
    let situation = Situation {
        application: Some(pull),
        cluster,
        carried,
        notes: &notes(index, application, cluster, refused),
        read_only: moment.settings.pull.read_only,
        is_ours: !application.reconciled,
        now: moment.now,
    };
    status::wanted(&pull.current, &situation)
}

/// What is to be said of an Application besides what its cluster says.
fn notes(index: &Index, application: &Application, cluster: &str, refused: Option<&String>) -> Vec<Condition> {
    let mut notes = Vec::new();
    let mut note = |kind: &str, message: String| {
        notes.push(Condition {
            kind: kind.into(),
            message: message.into(),
            since: None,
        });
    };
    if let Some(why) = refused {
        note(ERROR, why.clone());
    }
    if let Some(why) = unreachable(index.reach(cluster)) {
        note(UNREACHABLE, format!("{cluster}: {why}"));
    }
    if application.reconciled {
        note(
            RUN_TWICE,
            format!("it has no annotation {SKIP_RECONCILE}: \"true\", so that Argo CD on the hub runs it as well"),
        );
    }
    notes
}

/// What is newly the matter.
fn news(before: &Mirror, after: &Mirror) -> Vec<Event> {
    let is_known = |condition: &Condition| {
        let mut before = before.conditions.iter();
        before.any(|it| it.kind == condition.kind && it.message == condition.message)
    };
    let new = after.conditions.iter().filter(|condition| !is_known(condition));
    let event = |condition: &Condition| {
        let (_, reason) = REASONS.iter().find(|(kind, _)| **kind == *condition.kind)?;
        Some(Event {
            warning: true,
            reason,
            message: condition.message.to_string(),
        })
    };
    new.filter_map(event).collect()
}

#[cfg(test)]
mod tests;
