//! The certificates that agents ask for: each gets one for its own cluster, and no other.

use super::{ABOUT, NAME, NEEDS, asking, authority, issued};
use crate::agent::names;
use crate::agent::requests::{Requester, check};
use crate::agent::state;
use crate::controller::action::{Action, Event, Involved, Write};
use crate::controller::index::{Index, Sort};
use crate::controller::promises::gitopscluster::has_agent;
use crate::controller::promises::{Moment, Promise};
use crate::controller::resources::{REQUEST_APPROVALS, REQUEST_STATUSES, REQUESTS, Resource};
use crate::controller::seen::{Object, Place, bounded};
use crate::controller::watches::Kept;
use crate::pki::{self, Recipe};
use crate::status::time;
use crate::time_math::{after, before};
use k8s_openapi::ByteString;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

pub(in crate::controller::promises) const PROMISE: Promise = Promise {
    name: NAME,
    about: ABOUT,
    of: Sort::Request,
    needs: NEEDS,
    pause: Duration::from_millis(200),
    desired,
    again,
};

/// How soon a request is looked at again whose cluster is not known to have the add-on.
const PENDING: SignedDuration = SignedDuration::from_secs(10);

/// The reasons of the condition of a request that is refused: what it asks for is not its agent's.
const FOREIGN: &str = "NotOfThisCluster";
/// It is no request, or not one for an agent.
const INVALID: &str = "RequestInvalid";
/// A GitOpsCluster revokes the agent.
const REVOKED: &str = "AgentRevoked";
/// The cluster has as many certificates that have not expired as it can have.
const TOO_MANY: &str = "TooManyCertificates";

/// What becomes of a request.
enum Verdict {
    /// Nothing, or nothing yet.
    Wait,
    /// It is granted, to the agent of this cluster that this GitOpsCluster has.
    Grant(String, Place),
    /// It is refused: the reason in one word, and the message.
    Refuse(&'static str, String),
}

fn desired(index: &Index, place: &Place, moment: &Moment<'_>) -> Option<Action> {
    let request = index.object(Kept::Requests, place).filter(|it| is_open(it))?;
    let now = moment.now;
    let is_approved = has(request, "Approved");
    let (write, event) = match judge(index, request, moment) {
        Verdict::Wait => return None,
        Verdict::Grant(cluster, owner) if is_approved => {
            (sign(index, place, request, (&cluster, &owner), moment)?, None)
        }
        Verdict::Grant(..) => {
            let message = "the agent of the cluster asks for its own certificate";
            let write = condition(
                &REQUEST_APPROVALS,
                place,
                request,
                ("Approved", "AgentOfCluster", message),
                now,
            );
            (write, None)
        }
        Verdict::Refuse(reason, why) => {
            // It repeats names that somebody has asked for.
            let why = bounded(why);
            // What OCM's add-on manager has approved already can only be said to have failed.
            let (resource, kind) = if is_approved {
                (&REQUEST_STATUSES, "Failed")
            } else {
                (&REQUEST_APPROVALS, "Denied")
            };
            let write = condition(resource, place, request, (kind, reason, &why), now);
            let event = Event {
                warning: true,
                reason: "CertificateRefused",
                message: why,
            };
            (write, Some(event))
        }
    };
    Some(Action {
        of: Involved {
            resource: &REQUESTS,
            place: place.clone(),
            uid: request.uid.clone(),
        },
        writes: vec![write],
        refresh: false,
        events: event.into_iter().collect(),
    })
}

fn again(index: &Index, place: &Place, moment: &Moment<'_>) -> Option<Timestamp> {
    let is_open = index.object(Kept::Requests, place).is_some_and(is_open);
    is_open.then(|| after(moment.now, PENDING))
}

/// Whether nothing has become of it yet.
fn is_open(request: &Object) -> bool {
    let has_certificate = request.object["status"]["certificate"].is_string();
    !request.deleting && !has_certificate && !has(request, "Denied") && !has(request, "Failed")
}

fn has(request: &Object, kind: &str) -> bool {
    !state::condition(&request.object, kind).is_null()
}

/// The text of what is asked for.
fn asked(request: &Object) -> Option<Vec<u8>> {
    ByteString::deserialize(&request.object["spec"]["request"])
        .ok()
        .map(|it| it.0)
}

fn judge(index: &Index, request: &Object, moment: &Moment<'_>) -> Verdict {
    let argocd = &*moment.settings.argocd;
    let spec = &request.object["spec"];
    let groups = spec["groups"].as_array().into_iter().flatten();
    let groups: Vec<_> = groups.filter_map(Value::as_str).collect();
    let requester = Requester {
        user: spec["username"].as_str().unwrap_or_default(),
        groups: &groups,
    };
    let asked = asked(request).map(|text| pki::read_request(&text));
    let asked = match asked {
        Some(Ok(asked)) => asked,
        Some(Err(error)) => return Verdict::Refuse(INVALID, error.to_string()),
        None => return Verdict::Refuse(INVALID, "it has no request for a certificate in it".to_owned()),
    };
    if let Err(why) = check(requester, &asked) {
        return Verdict::Refuse(FOREIGN, why);
    }
    let cluster = requester.cluster().unwrap_or_default();
    if let Some(owner) = issued::revoker(index, cluster, argocd) {
        let why = format!(
            "the agent of the cluster {cluster} is revoked: remove the cluster from revokedClusters of the GitOpsCluster {owner} to let \
             it in again"
        );
        return Verdict::Refuse(REVOKED, why);
    }
    // Who has joined before the controller knows of it comes back.
    let mut all = asking(index, argocd);
    let Some((owner, ..)) = all.find(|(place, it, _)| has_agent(index, place, it, cluster, argocd)) else {
        return Verdict::Wait;
    };
    let record = issued::record(index, cluster, argocd);
    if let Some(record) = record.filter(|record| recorded(record, request, moment.now).is_none()) {
        let good = issued::good(record, moment.now);
        let (count, first) = good.fold((0_usize, None), |(count, first), it| {
            (
                count.saturating_add(1),
                Some(first.map_or(it.until, |first: &str| first.min(it.until))),
            )
        });
        if let Some(first) = first.filter(|_| count >= issued::LIMIT) {
            let why = format!(
                "the agent of the cluster {cluster} has {count} certificates that have not expired, and the limit is {}: find out why it \
                 asks so often; the first expires at {first}",
                issued::LIMIT
            );
            return Verdict::Refuse(TOO_MANY, why);
        }
    }
    Verdict::Grant(cluster.to_owned(), owner.clone())
}

/// Returns the certificate that was recorded for a request.
fn recorded<'r>(record: &'r Object, request: &Object, now: Timestamp) -> Option<&'r Value> {
    let mut good = issued::good(record, now);
    good.find(|it| *it.request == *request.uid).map(|it| it.certificate)
}

/// Returns the next of two writes: the certificate is recorded in Argo CD's namespace, and then given to whoever has asked.
fn sign(
    index: &Index,
    place: &Place,
    request: &Object,
    (cluster, owner): (&str, &Place),
    moment: &Moment<'_>,
) -> Option<Write> {
    let (argocd, now) = (&*moment.settings.argocd, moment.now);
    let record = issued::record(index, cluster, argocd);
    if let Some(certificate) = record.and_then(|record| recorded(record, request, now)) {
        return Some(Write::Patch {
            resource: &REQUEST_STATUSES,
            place: place.clone(),
            body: json!({
                "metadata": {"resourceVersion": request.version},
                "status": {"certificate": certificate},
            }),
        });
    }
    if record.is_some_and(|record| record.deleting) {
        return None;
    }
    let ca = index.certificate(names::CA_SECRET).filter(|ca| ca.leaf().is_some())?;
    let recipe = Recipe::Sign {
        key: request.uid.clone(),
        request: String::from_utf8(asked(request)?).ok()?,
        not_before: before(now, authority::SKEW),
        not_after: after(now, authority::AGENT),
        authority: authority::of(ca, argocd),
    };
    Some(issued::sign(record, cluster, owner, (argocd, now), recipe))
}

fn condition(
    resource: &'static Resource,
    place: &Place,
    request: &Object,
    (kind, reason, message): (&str, &str, &str),
    now: Timestamp,
) -> Write {
    let conditions = request.object["status"]["conditions"].as_array();
    let mut conditions = conditions.cloned().unwrap_or_default();
    let now = time(now);
    conditions.push(json!({
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
    }));
    Write::Patch {
        resource,
        place: place.clone(),
        body: json!({"metadata": {"resourceVersion": request.version}, "status": {"conditions": conditions}}),
    }
}
