//! What the status of a GitOpsCluster says, in the words of the peer in whose dialect it is written.

mod agent;

use super::membership::{Form, own};
use super::{Standing, secrets};
use crate::agent::names;
use crate::cluster_secret::ClusterSecret;
use crate::controller::index::{Index, Selection, Sort};
use crate::controller::promises::Moment;
use crate::controller::promises::argocd_agent;
use crate::controller::seen::{GitOpsCluster, OPEN, PUSH, Place};
use crate::status::time;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The message where Red Hat ACM would make credentials to push with.
const NO_PUSH: &str = "this version writes no credentials to push with: set spec.createBlankClusterSecrets to true to register the \
                       clusters without";

/// The condition that names what is refused, present only while something is.
const PERMITTED: &str = "SpecPermitted";

/// The condition that names writes that the API server refuses, present only while it refuses one.
const WRITTEN: &str = "WritesAccepted";

/// How many clusters a message names.
const NAMED: usize = 3;

/// Whether the Argo CD is one that a controller serves; it is ours whose type both peers' readers may meet.
const SERVED: &str = "ArgoServerVerified";
const REGISTERED: [&str; 2] = ["ClustersRegistered", "ClustersImported"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    True,
    False,
    Unknown,
}

/// A condition before it is known since when it is so.
struct Condition {
    kind: &'static str,
    is: Is,
    /// Why, in Red Hat ACM's words and in argocd-pull-integration's.
    reason: [&'static str; 2],
    message: String,
}

/// How many clusters there are, and what is to be said of them.
#[derive(Default)]
struct Count {
    selected: usize,
    registered: usize,
    /// What somebody has to see to.
    conflicts: Vec<String>,
    /// Those whose Secret is to come.
    pending: Vec<String>,
}

/// The field that names the Argo CD whose controller wrote the status.
const ANSWERED: &str = "argoNamespace";

/// The reason of [`SERVED`] where the Argo CD is that of another controller, which has not answered.
const UNANSWERED: &str = "ArgoServerNotFound";

/// Returns true if the controller for this other Argo CD writes the status of a GitOpsCluster. The generation decides only where the
/// status does not name a controller: every change of the spec raises it before that controller can write again.
pub(super) fn is_answered(it: &GitOpsCluster, other: &str) -> bool {
    match it.status.get(ANSWERED) {
        Some(namespace) => namespace == other,
        None => condition(it, SERVED)
            .is_some_and(|found| found["reason"] != UNANSWERED && found["observedGeneration"] == it.generation),
    }
}

/// What the status shall be, if that is not what it is, and what is to be told with it.
pub(super) fn wanted(
    index: &Index,
    place: &Place,
    it: &GitOpsCluster,
    standing: &Standing,
    moment: &Moment<'_>,
) -> Option<(Value, Option<String>, Option<String>)> {
    let argocd = &*moment.settings.argocd;
    let count = count(index, place, it, standing, argocd);
    let dialect = usize::from(it.spec.is_of_pull);
    let mut conditions = vec![
        placement(index, place, it, standing),
        served(place, standing, argocd),
        registered(it, standing, &count, moment.settings.agents),
        implemented(it),
    ];
    let agents = match &it.spec.agent {
        Some(wanted) if *standing == Standing::Served && moment.settings.agents => {
            Some(agent::told(index, place, it, wanted, moment))
        }
        _ => None,
    };
    let (more, fields, counts) = agents.map_or_else(Default::default, |it| (it.conditions, it.fields, it.counts));
    conditions.extend(more);
    let refused = permitted(index, place, it, standing, argocd);
    let said_before = condition(it, PERMITTED).and_then(|found| found["message"].as_str());
    let news = refused
        .as_ref()
        .map(|it| &it.message)
        .filter(|message| said_before != Some(message));
    let news = news.cloned();
    conditions.extend(refused);
    // Each of several controllers has its own refusals: those of a GitOpsCluster that none of them serves would alternate.
    if !matches!(standing, Standing::Elsewhere(_)) {
        conditions.extend(written(index, place, it, moment));
    }
    let ready = ready(&conditions);
    let (message, is_ready) = (ready.message.clone(), ready.is == Is::True);
    conditions.push(ready);
    let now = time(moment.now);
    let conditions: Vec<_> = conditions
        .iter()
        .map(|condition| condition.text(it, dialect, &now))
        .collect();
    let mut clusters = counts;
    clusters.insert("selected".to_owned(), json!(count.selected));
    clusters.insert("registered".to_owned(), json!(count.registered));
    // A merge patch takes away only what it names.
    for key in it
        .status
        .get("clusters")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
    {
        clusters.entry(key).or_insert(Value::Null);
    }
    let mut status = Map::from_iter([
        ("conditions".to_owned(), json!(conditions)),
        ("clusters".to_owned(), Value::Object(clusters)),
        (
            "phase".to_owned(),
            json!(if is_ready { "successful" } else { "failed" }),
        ),
        ("message".to_owned(), json!(message)),
    ]);
    // What is not said any more is taken away.
    for key in ["server", "certificates", "clusterStates", "clusterStatesCut"] {
        let said = fields.get(key).cloned().unwrap_or_default();
        if !said.is_null() || it.status.contains_key(key) {
            status.insert(key.to_owned(), said);
        }
    }
    let answered = match standing {
        Standing::Elsewhere(_) => Value::Null,
        _ => json!(argocd),
    };
    // Where the CRD does not have the field, it is dropped: that it is missing is no reason to write.
    let names_another = it.status.get(ANSWERED).is_some_and(|known| *known != answered);
    let is_so = !names_another && status.iter().all(|(key, value)| it.status.get(key) == Some(value));
    if is_so {
        return None;
    }
    status.insert("lastUpdateTime".to_owned(), json!(now));
    status.insert(ANSWERED.to_owned(), answered);
    let conflicts = (!count.conflicts.is_empty()).then(|| few(&count.conflicts));
    let told_before = condition(it, REGISTERED[dialect]).and_then(|found| found["message"].as_str());
    let told = conflicts.filter(|told| told_before.is_none_or(|before| !before.contains(told)));
    Some((Value::Object(status), told, news))
}

/// A condition that is there.
fn condition<'i>(it: &'i GitOpsCluster, kind: &str) -> Option<&'i Value> {
    let conditions = it.status.get("conditions")?.as_array()?;
    conditions.iter().find(|found| found["type"] == kind)
}

impl Condition {
    fn text(&self, it: &GitOpsCluster, dialect: usize, now: &str) -> Value {
        let status = match self.is {
            Is::True => "True",
            Is::False => "False",
            Is::Unknown => "Unknown",
        };
        let found = condition(it, self.kind).filter(|found| found["status"] == status);
        let since = found.and_then(|found| found["lastTransitionTime"].as_str());
        json!({
            "type": self.kind,
            "status": status,
            "reason": self.reason[dialect],
            "message": self.message,
            "observedGeneration": it.generation,
            "lastTransitionTime": since.unwrap_or(now),
        })
    }
}

fn count(index: &Index, place: &Place, it: &GitOpsCluster, standing: &Standing, argocd: &str) -> Count {
    let mut count = Count::default();
    if *standing != Standing::Served {
        return count;
    }
    let owner = place.to_string();
    let revoked = it.spec.agent.as_ref().map(|agent| &agent.revoked);
    for cluster in index.decided(&it.placement(place)) {
        if revoked.is_some_and(|revoked| revoked.contains(&**cluster)) {
            continue;
        }
        count.selected = count.selected.saturating_add(1);
        let Some(form) = Form::of(it) else { continue };
        if let (Form::Agent, Err(why)) = (form, names::check_agent(cluster, argocd)) {
            count.conflicts.push(why);
            continue;
        }
        let owner_of = |form| own(form, index, cluster).and_then(ClusterSecret::owner);
        let is_registered = match owner_of(form) {
            Some(other) if other != owner => {
                count
                    .conflicts
                    .push(format!("{cluster}: the GitOpsCluster {other} has registered it"));
                continue;
            }
            other => other.is_some(),
        };
        count.registered = count.registered.saturating_add(usize::from(is_registered));
        match secrets::decide(form, index, cluster, (&owner, None), argocd, None) {
            Some((decision, _)) => match decision.told {
                Some(told) => count.conflicts.push(format!("{cluster}: {told}")),
                // What it has may be put right: it is registered all the same.
                None if !is_registered => count.pending.push(cluster.to_string()),
                None => {}
            },
            None => count
                .pending
                .push(format!("{cluster} (there is no such ManagedCluster)")),
        }
    }
    count
}

fn placement(index: &Index, place: &Place, it: &GitOpsCluster, standing: &Standing) -> Condition {
    let placement = it.placement(place);
    let selection = index.selection(&placement);
    let (is, reason, message) = match (standing, selection) {
        (Standing::WrongPlacement(namespace), _) => (
            Is::False,
            ["InvalidConfiguration", "Failed"],
            format!("placementRef.namespace is {namespace}, and a Placement must be where its GitOpsCluster is"),
        ),
        (_, Selection::NoPlacement) => (
            Is::False,
            ["PlacementNotFound", "Failed"],
            format!("there is no Placement {placement}; what is registered stays so"),
        ),
        (_, Selection::Nothing) => (
            if it.spec.is_of_pull { Is::True } else { Is::False },
            ["ManagedClustersNotFound", "NoClusters"],
            format!("the Placement {placement} selects no cluster; what is registered stays so"),
        ),
        (_, Selection::Unsure { named, selected }) => (
            Is::Unknown,
            ["Reconciling", "InProgress"],
            match selected {
                Some(selected) => format!(
                    "the Placement {placement} selects {selected} clusters, and its decisions name {named}: nothing is taken away \
                     as long as they differ"
                ),
                None => format!(
                    "the decisions of the Placement {placement} name {named} clusters, and it does not say how many it selects: \
                     nothing is taken away until it does"
                ),
            },
        ),
        (_, Selection::Sure(number)) => (
            Is::True,
            ["Success"; 2],
            format!("the Placement {placement} selects {number} clusters"),
        ),
    };
    Condition {
        kind: if it.spec.is_of_pull {
            "PlacementEvaluated"
        } else {
            "PlacementResolved"
        },
        is,
        reason,
        message,
    }
}

fn served(place: &Place, standing: &Standing, argocd: &str) -> Condition {
    let (is, reason, message) = match standing {
        Standing::Served | Standing::WrongPlacement(_) => (
            Is::True,
            ["Success"; 2],
            format!("clusters are registered in the namespace {argocd}"),
        ),
        Standing::Elsewhere(namespace) => (
            Is::False,
            [UNANSWERED; 2],
            format!(
                "no controller registers clusters in the namespace {namespace}: run one with --argocd-namespace {namespace}"
            ),
        ),
        Standing::Unauthorised => (
            Is::False,
            ["InvalidConfiguration", "Failed"],
            format!(
                "the namespace {argocd} takes no clusters from {}: its label {OPEN} is not true",
                place.namespace
            ),
        ),
    };
    Condition {
        kind: SERVED,
        is,
        reason,
        message,
    }
}

fn registered(it: &GitOpsCluster, standing: &Standing, count: &Count, agents: bool) -> Condition {
    let Count {
        selected,
        registered,
        conflicts,
        pending,
    } = count;
    let (is, reason, message) = if *standing != Standing::Served {
        (Is::Unknown, ["Skipped", "InProgress"], "nothing is written".to_owned())
    } else if Form::of(it).is_none() {
        (
            Is::False,
            ["InvalidConfiguration", "Failed"],
            "what is asked for of argocd-agent cannot be understood, and what runs stays as it is".to_owned(),
        )
    } else if Form::of(it) == Some(Form::Agent) && !agents {
        (
            Is::False,
            ["NotImplemented", "Failed"],
            "this controller brings no agents: name argocd-agent in its OCM_CONTROLLERS, and apply deploy_argocd_agent.yaml".to_owned(),
        )
    } else if !conflicts.is_empty() {
        let message = format!("{registered} of {selected} clusters are registered. {}", few(conflicts));
        (Is::False, ["ClusterRegistrationFailed", "Failed"], message)
    } else if !pending.is_empty() {
        let message = format!(
            "{registered} of {selected} clusters are registered, not yet {}",
            few(pending)
        );
        (Is::Unknown, ["Reconciling", "InProgress"], message)
    } else if *selected == 0 {
        (
            Is::Unknown,
            ["ManagedClustersNotFound", "InProgress"],
            "no cluster is selected".to_owned(),
        )
    } else {
        (
            Is::True,
            ["Success"; 2],
            format!("{registered} clusters are registered"),
        )
    };
    Condition {
        kind: REGISTERED[usize::from(it.spec.is_of_pull)],
        is,
        reason,
        message,
    }
}

fn implemented(it: &GitOpsCluster) -> Condition {
    let fields = it.spec.not_done.iter().filter(|field| **field != PUSH);
    let fields: Vec<_> = fields.map(|field| format!("spec.{field}")).collect();
    let ignored = (!fields.is_empty()).then(|| format!("this version does nothing of {}", fields.join(", ")));
    let push = it.spec.not_done.contains(&PUSH).then(|| NO_PUSH.to_owned());
    let all: Vec<_> = ignored.into_iter().chain(push).collect();
    let (is, reason, message) = if all.is_empty() {
        (Is::True, "Success", "all that is asked for is done".to_owned())
    } else {
        (Is::False, "NotImplemented", all.join("; "))
    };
    Condition {
        kind: "SpecImplemented",
        is,
        reason: [reason; 2],
        message,
    }
}

/// Returns the condition that names what has no effect because this GitOpsCluster must not decide it.
fn permitted(index: &Index, place: &Place, it: &GitOpsCluster, standing: &Standing, argocd: &str) -> Option<Condition> {
    if *standing != Standing::Served {
        return None;
    }
    let mut all = Vec::new();
    if !it.spec.refused.is_empty() {
        all.push(format!(
            "only a GitOpsCluster in the namespace {argocd} can set {}: set it there, or remove it here",
            it.spec.refused.join(", ")
        ));
    }
    let others = argocd_agent::revoked_of_others(index, place, it, argocd);
    if !others.is_empty() {
        all.push(format!(
            "agent.revokedClusters has no effect on clusters that another GitOpsCluster has: revoke them there: {}",
            few(&others)
        ));
    }
    (!all.is_empty()).then(|| Condition {
        kind: PERMITTED,
        is: Is::False,
        reason: ["NotPermitted"; 2],
        message: all.join("; "),
    })
}

/// Returns the condition that names the writes for this GitOpsCluster that the API server refuses.
fn written(index: &Index, place: &Place, it: &GitOpsCluster, moment: &Moment<'_>) -> Option<Condition> {
    let mut all = index.refused_of_gitops(place);
    if it.spec.agent.is_some() && moment.settings.agents {
        let argocd = Place::new("", &moment.settings.argocd);
        all.extend(index.refused(argocd_agent::NAME, Sort::ArgoCd, &argocd));
    }
    let all: Vec<_> = all.into_iter().map(str::to_owned).collect();
    (!all.is_empty()).then(|| Condition {
        kind: WRITTEN,
        is: Is::False,
        reason: ["WriteRefused"; 2],
        message: few(&all),
    })
}

/// Returns true if the status names the writes that the API server refuses, or none where it refuses none.
pub(super) fn names_refusals(index: &Index, place: &Place, it: &GitOpsCluster, moment: &Moment<'_>) -> bool {
    let wanted = written(index, place, it, moment).map(|wanted| json!(wanted.message));
    condition(it, WRITTEN).map(|found| &found["message"]) == wanted.as_ref()
}

/// Returns the status of a GitOpsCluster that waits to be deleted, if it does not say so yet.
pub(super) fn deleting(
    index: &Index,
    place: &Place,
    it: &GitOpsCluster,
    left: &[String],
    moment: &Moment<'_>,
) -> Option<Value> {
    let waits = if left.is_empty() {
        "its finalizer is removed".to_owned()
    } else {
        format!("these are gone: {}", few(left))
    };
    let written = written(index, place, it, moment);
    let why = written.as_ref().map(|it| format!("; {}: {}", it.kind, it.message));
    let ready = Condition {
        kind: "Ready",
        is: Is::False,
        reason: ["Deleting"; 2],
        message: format!("being deleted, waits until {waits}{}", why.unwrap_or_default()),
    };
    let (dialect, now) = (usize::from(it.spec.is_of_pull), time(moment.now));
    let ready = ready.text(it, dialect, &now);
    let written = written.map(|it_is| it_is.text(it, dialect, &now));
    let conditions = it.status.get("conditions").and_then(Value::as_array);
    let others = conditions
        .into_iter()
        .flatten()
        .filter(|found| found["type"] != "Ready" && found["type"] != WRITTEN);
    let conditions: Vec<_> = others.chain(&written).chain([&ready]).cloned().collect();
    let is_so = it
        .status
        .get("conditions")
        .is_some_and(|there| *there == json!(conditions));
    (!is_so).then(|| json!({"conditions": conditions, "phase": "failed", "message": ready["message"]}))
}

/// All is well when every condition is True; otherwise the worst is told.
fn ready(conditions: &[Condition]) -> Condition {
    let worst = [Is::False, Is::Unknown]
        .into_iter()
        .find_map(|is| conditions.iter().find(|condition| condition.is == is));
    let Some(worst) = worst else {
        return Condition {
            kind: "Ready",
            is: Is::True,
            reason: ["Success"; 2],
            message: "all that is asked for is done".to_owned(),
        };
    };
    let bad = conditions.iter().filter(|condition| condition.is == worst.is);
    let bad: Vec<_> = bad
        .map(|condition| format!("{}: {}", condition.kind, condition.message))
        .collect();
    Condition {
        kind: "Ready",
        is: worst.is,
        reason: worst.reason,
        message: bad.join("; "),
    }
}

/// The first of many.
fn few(all: &[String]) -> String {
    let first = all.iter().take(NAMED).map(String::as_str);
    let mut text = first.collect::<Vec<_>>().join("; ");
    if all.len() > NAMED {
        let _ = write!(text, " ({} in total)", all.len());
    }
    text
}
