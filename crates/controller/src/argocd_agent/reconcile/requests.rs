//! The controller for CertificateSigningRequests of agents: each agent gets a certificate for its own cluster, and no other.

use super::{ABOUT, NAME, WATCHES, authority, gitops_with_agents, issued};
use crate::argocd_agent::requests::{Requester, check};
use crate::argocd_agent::state;
use crate::cache::{Cache, ReconcileKind};
use crate::gitopscluster::membership::has_agent;
use crate::model::AgentResource;
use crate::model::Object;
use crate::reconcile::{Context, Controller};
use crate::runtime::action::{Action, Event, InvolvedObject, Write};
use crate::runtime::text::bounded;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use ocm::argocd_agent as names;
use ocm::health::time;
use ocm::object_ref::ObjectRef;
use ocm::resources::{REQUEST_APPROVALS, REQUEST_STATUSES, REQUESTS, Resource};
use ocm::time_math::{after, before};
use pki;
use pki::Recipe;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const CONTROLLER: Controller = Controller {
    name: NAME,
    about: ABOUT,
    kind: ReconcileKind::Request,
    watches: WATCHES,
    min_write_interval: Duration::from_millis(200),
    reconcile,
    requeue_after,
};

/// The interval of reconciliations of a request whose cluster is not known to have the add-on.
const RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(10);

/// The reason of the condition if the requested subject is not that of the cluster's agent.
const FOREIGN: &str = "NotOfThisCluster";
/// The reason if the request cannot be parsed, or is not for an agent.
const INVALID: &str = "RequestInvalid";
/// The reason if a GitOpsCluster revokes the agent.
const REVOKED: &str = "AgentRevoked";
/// The reason if the cluster has reached the limit of unexpired certificates.
const TOO_MANY: &str = "TooManyCertificates";

/// The decision about a request.
enum Approval {
    /// No decision, or not yet.
    Pending,
    /// Granted to the agent of this cluster, which this GitOpsCluster runs.
    Approve(String, ObjectRef),
    /// Refused, with the reason of the condition and the message.
    Deny(&'static str, String),
}

fn reconcile(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let request = cache
        .object(AgentResource::Requests, object_ref)
        .filter(|it| is_open(it))?;
    let now = context.now;
    let is_approved = has(request, "Approved");
    let (write, event) = match evaluate(cache, request, context) {
        Approval::Pending => return None,
        Approval::Approve(cluster, owner) if is_approved => {
            (sign(cache, object_ref, request, (&cluster, &owner), context)?, None)
        }
        Approval::Approve(..) => {
            let message = "the agent of the cluster requests its own certificate";
            let write = condition(
                &REQUEST_APPROVALS,
                object_ref,
                request,
                ("Approved", "AgentOfCluster", message),
                now,
            );
            (write, None)
        }
        Approval::Deny(reason, why) => {
            // The message repeats names from the request.
            let why = bounded(why);
            // A request that OCM's add-on manager has approved already can only be set to failed.
            let (resource, kind) = if is_approved {
                (&REQUEST_STATUSES, "Failed")
            } else {
                (&REQUEST_APPROVALS, "Denied")
            };
            let write = condition(resource, object_ref, request, (kind, reason, &why), now);
            let event = Event {
                warning: true,
                reason: "CertificateRefused",
                message: why,
            };
            (write, Some(event))
        }
    };
    Some(Action {
        involved_object: InvolvedObject {
            resource: &REQUESTS,
            object_ref: object_ref.clone(),
            uid: request.uid.clone(),
        },
        writes: vec![write],
        refresh: false,
        events: event.into_iter().collect(),
    })
}

fn requeue_after(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Timestamp> {
    let is_open = cache.object(AgentResource::Requests, object_ref).is_some_and(is_open);
    is_open.then(|| after(context.now, RETRY_INTERVAL))
}

/// Returns true if a request is neither signed, denied nor failed.
fn is_open(request: &Object) -> bool {
    let has_certificate = request.object["status"]["certificate"].is_string();
    !request.deleting && !has_certificate && !has(request, "Denied") && !has(request, "Failed")
}

fn has(request: &Object, kind: &str) -> bool {
    !state::condition(&request.object, kind).is_null()
}

/// Returns the PEM text of the request.
fn request_pem(request: &Object) -> Option<Vec<u8>> {
    ByteString::deserialize(&request.object["spec"]["request"])
        .ok()
        .map(|it| it.0)
}

fn evaluate(cache: &Cache, request: &Object, context: &Context<'_>) -> Approval {
    let argocd = &*context.settings.argocd;
    let spec = &request.object["spec"];
    let groups = spec["groups"].as_array().into_iter().flatten();
    let groups: Vec<_> = groups.filter_map(Value::as_str).collect();
    let requester = Requester {
        user: spec["username"].as_str().unwrap_or_default(),
        groups: &groups,
    };
    let asked = request_pem(request).map(|text| pki::read_request(&text));
    let asked = match asked {
        Some(Ok(asked)) => asked,
        Some(Err(error)) => return Approval::Deny(INVALID, error.to_string()),
        None => return Approval::Deny(INVALID, "spec.request contains no certificate request".to_owned()),
    };
    if let Err(why) = check(requester, &asked.common_name, &asked.organizations) {
        return Approval::Deny(FOREIGN, why);
    }
    let cluster = requester.cluster().unwrap_or_default();
    if let Some(owner) = issued::revoker(cache, cluster, argocd) {
        let why = format!(
            "the agent of ManagedCluster {cluster} is revoked: to readmit it, remove the cluster from revokedClusters \
             of GitOpsCluster {owner}"
        );
        return Approval::Deny(REVOKED, why);
    }
    // A cluster may join before the controller knows it: wait and retry.
    let mut all = gitops_with_agents(cache, argocd);
    let Some((owner, ..)) = all.find(|(object_ref, it, _)| has_agent(cache, object_ref, it, cluster, argocd)) else {
        return Approval::Pending;
    };
    let record = issued::record(cache, cluster, argocd);
    if let Some(record) = record.filter(|record| recorded(record, request, context.now).is_none()) {
        let good = issued::unexpired(record, context.now);
        let (count, first) = good.fold((0_usize, None), |(count, first), it| {
            (
                count.saturating_add(1),
                Some(first.map_or(it.until, |first: &str| first.min(it.until))),
            )
        });
        if let Some(first) = first.filter(|_| count >= issued::MAX_CERTIFICATES) {
            let why = format!(
                "the agent of ManagedCluster {cluster} has {count} unexpired certificates, and the limit is {}: find \
                 out why it requests so many; the first expires at {first}",
                issued::MAX_CERTIFICATES
            );
            return Approval::Deny(TOO_MANY, why);
        }
    }
    Approval::Approve(cluster.to_owned(), owner.clone())
}

/// Returns the certificate that was recorded for a request.
fn recorded<'r>(record: &'r Object, request: &Object, now: Timestamp) -> Option<&'r Value> {
    let mut good = issued::unexpired(record, now);
    good.find(|it| *it.request == *request.uid).map(|it| it.certificate)
}

/// Returns the next of two writes: first records the certificate in Argo CD's namespace, then returns it to the requester.
fn sign(
    cache: &Cache,
    object_ref: &ObjectRef,
    request: &Object,
    (cluster, owner): (&str, &ObjectRef),
    context: &Context<'_>,
) -> Option<Write> {
    let (argocd, now) = (&*context.settings.argocd, context.now);
    let record = issued::record(cache, cluster, argocd);
    if let Some(certificate) = record.and_then(|record| recorded(record, request, now)) {
        return Some(Write::Patch {
            resource: &REQUEST_STATUSES,
            object_ref: object_ref.clone(),
            body: json!({
                "metadata": {"resourceVersion": request.version},
                "status": {"certificate": certificate},
            }),
        });
    }
    if record.is_some_and(|record| record.deleting) {
        return None;
    }
    let ca = cache.certificate(names::CA_SECRET).filter(|ca| ca.leaf().is_some())?;
    let recipe = Recipe::Sign {
        key: request.uid.clone(),
        request: String::from_utf8(request_pem(request)?).ok()?,
        not_before: before(now, authority::CLOCK_SKEW),
        not_after: after(now, authority::AGENT_LIFETIME),
        authority: authority::of(ca, argocd),
    };
    Some(issued::sign(record, cluster, owner, (argocd, now), recipe))
}

fn condition(
    resource: &'static Resource,
    object_ref: &ObjectRef,
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
        object_ref: object_ref.clone(),
        body: json!({"metadata": {"resourceVersion": request.version}, "status": {"conditions": conditions}}),
    }
}
