//! The basic pull model: an Application with the pull model's label becomes a ManifestWork for the managed cluster that it names,
//! whose own Argo CD runs it, and what that says of it comes back.
//!
//! As argocd-pull-integration and Red Hat ACM's multicloud-integrations do it, whose labels, annotations and names these are. What
//! is taken from an Application, and what of a work becomes its status, is in [`pull`](crate::pull); here is decided what is written.

use super::application_status::conditions::{APPLY_ERROR, UNREACHABLE, unreachable};
use super::{Moment, Promise, never};
use crate::cluster_secret::is_hub;
use crate::controller::action::{Action, Event, Involved, Write};
use crate::controller::index::{Carrying, Index, Sort};
use crate::controller::resources::{APPLICATIONS, Resource, WORKS};
use crate::controller::seen::{Application, Place, SKIP_RECONCILE, WorkKind};
use crate::controller::watches::Kind;
use crate::pull::requests::Taken;
use crate::pull::status::{Condition, Mirror, Situation};
use crate::pull::work::{Desired, Hold};
use crate::pull::{self, Carried, payload, requests, status, tenancy, work};
use serde_json::Value;
use std::time::Duration;

pub(super) const PROMISE: Promise = Promise {
    name: "pull",
    about: "a work for each Application of the basic pull model, and the status of the Application from it",
    of: Sort::Application,
    needs: &[
        Kind::Applications,
        Kind::Works,
        Kind::Clusters,
        Kind::Parameters,
        Kind::Projects,
    ],
    pause: Duration::from_secs(1),
    desired,
    again: never,
};

/// No work can be made of the Application.
const ERROR: &str = "ManifestWorkError";
/// The API server does not accept the work.
const WRITE_ERROR: &str = "ManifestWorkWriteError";
/// Argo CD on the hub runs it too.
const RUN_TWICE: &str = "ManifestWorkSkipReconcileWarning";

/// What is told in Events when it becomes so.
const REASONS: [(&str, &str); 4] = [
    (ERROR, "ManifestWorkRefused"),
    (APPLY_ERROR, "ManifestWorkApplyFailed"),
    (UNREACHABLE, "ManagedClusterUnreachable"),
    (RUN_TWICE, "ManifestWorkRunTwice"),
];

fn desired(index: &Index, place: &Place, moment: &Moment<'_>) -> Option<Action> {
    let works = index.carrying(place);
    let application = index.application(place);
    let writes = match application.map(|it| (it, it.pull.as_deref())) {
        // Where the hub shows no Application at all, it may be the hub that is wrong.
        None if !index.is_sure_of_applications() => Vec::new(),
        None => removed(&works, Some(place)),
        Some((_, None)) => removed(&works, None),
        // argocd-agent's principal copies the Applications of an autonomous agent there, with their labels.
        Some(_) if works.is_empty() && is_of_cluster(index, place, moment) => return None,
        Some((application, Some(pull))) if pull.deleting => ending(index, place, (application, pull), &works, moment),
        Some((_, Some(_))) if is_of_cluster(index, place, moment) => return None,
        Some((application, Some(pull))) => return alive(index, place, (application, pull), &works, moment),
    };
    if writes.is_empty() || moment.settings.pull.read_only {
        return None;
    }
    Some(action(place, application, writes))
}

/// Returns true if the namespace of an Application is a managed cluster's, and not Argo CD's.
fn is_of_cluster(index: &Index, place: &Place, moment: &Moment<'_>) -> bool {
    *place.namespace != *moment.settings.pull.argocd && index.cluster(&place.namespace).is_some()
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
    let staying = works.iter().filter(|it| !it.carried.deleting);
    let delete = |it: &Carrying<'_>| Write::Delete {
        resource: &WORKS,
        place: it.place.clone(),
        uid: it.carried.uid.clone(),
        version: it.carried.version.clone(),
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
    let mut writes = removed(works, None);
    let Some(kept) = believed(works, pull.cluster.as_deref()) else {
        writes.push(patch(&APPLICATIONS, place, release));
        return writes;
    };
    // What the agent says while it removes it, such as why it cannot.
    if writes.is_empty() || refused(index, place).is_some() {
        let wanted = wanted(
            index,
            (application, pull),
            (&kept.place.namespace, Some(kept.carried)),
            None,
            moment,
        );
        let body = pull.patch(Taken::default(), status::patch(&pull.current, &wanted));
        writes.splice(0..0, body.map(|body| patch(&APPLICATIONS, place, body)));
    }
    writes
}

/// Returns why the API server did not accept what was last to be written for an Application.
fn refused<'i>(index: &'i Index, place: &Place) -> Option<&'i str> {
    index.refused(PROMISE.name, PROMISE.of, place)
}

/// Returns the work whose status is believed, and for whose end a deletion waits: one on the cluster to which the Application goes, or
/// else one that is named as only its works are. Another cluster's agent may claim that a work of its own carries any Application.
fn believed<'w, 'i>(works: &'w [Carrying<'i>], cluster: Option<&str>) -> Option<&'w Carrying<'i>> {
    let is_there = |it: &&Carrying<'_>| Some(&*it.place.namespace) == cluster;
    let named = || works.iter().find(|it| it.is_named);
    works
        .iter()
        .filter(is_there)
        .min_by_key(|it| (it.carried.deleting, !it.is_named))
        .or_else(named)
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
            let name = name(index, place, pull, (cluster, works), &settings.argocd);
            let here = works.iter().filter(|it| *it.place.namespace == *cluster);
            let kept = here.min_by_key(|it| (it.carried.deleting, !it.is_named, *it.place.name != *name));
            let (requests, what) = requests::requests(pull, kept.map(|it| it.carried));
            let project = index.project(&pull.project);
            let hold = Hold::next(settings, kept.map(|it| it.carried));
            let desired = Desired::of(pull, (cluster, &name), settings, &requests, project, hold);
            writes.extend(delivered(&desired, &Place::new(cluster, &name), kept));
            taken = what;
            if !settings.read_only {
                let others = works.iter().filter(|it| kept.is_none_or(|kept| it.place != kept.place));
                writes.extend(removed(&others.copied().collect::<Vec<_>>(), None));
            }
            // What comes of a new work is told when it is there: by then its agent may have more to say.
            if kept.is_none() && refused(index, place).is_none() {
                return Some(action(place, Some(application), writes));
            }
            kept
        }
        // What runs goes on.
        Err(_) => believed(works, pull.cluster.as_deref()),
    };
    let cluster = kept.map_or(target.as_deref().unwrap_or_default(), |it| &it.place.namespace);
    let carried = kept.map(|it| it.carried);
    let wanted = wanted(
        index,
        (application, pull),
        (cluster, carried),
        target.as_ref().err(),
        moment,
    );
    let body = pull.patch(taken, status::patch(&pull.current, &wanted));
    let events = news(&pull.current, &wanted);
    let body = body.map(|body| patch(&APPLICATIONS, place, body));
    if refused(index, place).is_some() {
        // The work may be refused again, and then nothing behind it is written.
        writes.splice(0..0, body);
    } else {
        writes.extend(body);
    }
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
    tenancy::check_namespace(&place.namespace, settings, index.namespaces())?;
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
        Some(known) if is_hub(cluster, &known.labels) && is_itself(pull, settings) => Err(format!(
            "ManagedCluster {cluster} is the hub itself, whose agent would apply the Application onto itself: remove the label {}, \
             or name another cluster",
            pull::names::PULL
        )),
        Some(_) => {
            tenancy::check_project(pull, cluster, settings, index.project(pull.project_name())).map(|()| cluster)
        }
    }
}

/// Returns true if the Application in the work has the namespace of the one on the hub, and so its place.
fn is_itself(pull: &pull::Application, settings: &pull::Settings) -> bool {
    *pull.namespace == *payload::namespace(pull, settings)
}

/// Returns the name of a new work of an Application on a cluster, which no other work has. Where the short name is that of several
/// Applications, the one in Argo CD's namespace has it.
fn name(
    index: &Index,
    place: &Place,
    pull: &pull::Application,
    (cluster, works): (&str, &[Carrying<'_>]),
    argocd: &str,
) -> String {
    let name = work::name(pull);
    let at = Place::new(cluster, &name);
    let is_own = works.iter().any(|it| *it.place == at);
    let is_taken = !is_own && index.work(WorkKind::Work, &at).is_some();
    if is_taken || index.is_others_name(&name, place) && *place.namespace != *argocd {
        return work::other_name(pull);
    }
    name
}

/// What makes a work as it should be. One that is going is waited for, because the agent is taking away what it has applied.
fn delivered(desired: &Desired, place: &Place, kept: Option<&Carrying<'_>>) -> Option<Write> {
    match kept {
        None => Some(Write::Create {
            resource: &WORKS,
            place: place.clone(),
            object: desired.object(),
        }),
        Some(it) if it.carried.deleting || it.carried.fingerprint == desired.fingerprint() => None,
        Some(it) => Some(patch(&WORKS, it.place, desired.patch(&it.carried.version))),
    }
}

/// What an Application is to say of itself.
fn wanted(
    index: &Index,
    (application, pull): (&Application, &pull::Application),
    (cluster, carried): (&str, Option<&Carried>),
    no_target: Option<&String>,
    moment: &Moment<'_>,
) -> Mirror {
    let situation = Situation {
        application: Some(pull),
        cluster,
        carried,
        notes: &notes(
            index,
            application,
            &Place::new(&pull.namespace, &pull.name),
            cluster,
            no_target,
        ),
        read_only: moment.settings.pull.read_only,
        is_ours: !application.reconciled,
        now: moment.now,
    };
    status::wanted(&pull.current, &situation)
}

/// What is to be said of an Application besides what its cluster says.
fn notes(
    index: &Index,
    application: &Application,
    place: &Place,
    cluster: &str,
    no_target: Option<&String>,
) -> Vec<Condition> {
    let mut notes = Vec::new();
    let mut note = |kind: &str, message: String| {
        notes.push(Condition {
            kind: kind.into(),
            message: message.into(),
            since: None,
        });
    };
    if let Some(why) = no_target {
        note(ERROR, why.clone());
    }
    if let Some(why) = refused(index, place) {
        note(WRITE_ERROR, why.to_owned());
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
