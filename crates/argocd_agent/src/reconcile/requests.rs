//! The controller for CertificateSigningRequests of agents: each agent gets a certificate for its own cluster, and no other.
//!
//! OCM's own signer for add-ons of templates signs any name that a registered cluster requests (`CustomerSignerCSRApprover` in
//! its `pkg/addon/templateagent`), so one cluster could impersonate another. Therefore OCM's signer signs nothing here. The
//! controller signs only requests of a cluster's agent for its own cluster.

use super::shared;
use super::{authority, issued};
use assignment::certificates::{record, unexpired};
use hub_state::{
    Cache, CertificateRequest, Context, Controller, IssuedCertificate, Kind, Object, RequestSpec, Requester,
};
use jiff::{SignedDuration, Timestamp};
use ocm::argocd_agent as names;
use ocm::resources::{REQUEST_APPROVALS, REQUEST_STATUSES, REQUESTS};
use pki::Recipe;
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use primitives::time_math::after;
use primitives::timestamp::format_time;
use runtime::action::{Action, Event, InvolvedObject, Write};
use runtime::text::bounded;
use serde_json::json;
use std::time::Duration;

pub const CONTROLLER: Controller = Controller {
    kind: Kind::Requests,
    min_write_interval: Duration::from_millis(200),
    reconcile,
    requeue_after,
    ..shared::CONTROLLER
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

/// A request without a decision or a certificate.
#[derive(Clone, Copy)]
struct OpenRequest<'c> {
    object_ref: &'c ObjectRef,
    object: &'c Object,
    request: &'c CertificateRequest,
}

impl<'c> OpenRequest<'c> {
    fn get(cache: &'c Cache, object_ref: &'c ObjectRef) -> Option<Self> {
        let object = cache.object(Kind::Requests, object_ref)?;
        let request = object
            .request
            .as_deref()
            .filter(|request| !object.deleting && request.is_open())?;
        Some(Self {
            object_ref,
            object,
            request,
        })
    }
}

fn reconcile(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Action> {
    let open = OpenRequest::get(cache, object_ref)?;
    let is_approved = open.request.has("Approved");
    let (write, event) = match evaluate(cache, open, context.now) {
        Ok(None) => return None,
        Ok(Some((cluster, owner))) if is_approved => (sign(cache, open, (cluster, &owner), context.now)?, None),
        Ok(Some(_)) => {
            let message = "the agent of the cluster requests its own certificate";
            let condition = ("Approved", "AgentOfCluster", message);
            (add_condition(&REQUEST_APPROVALS, open, condition, context.now), None)
        }
        Err((reason, why)) => {
            // The message repeats names from the request.
            let message = bounded(why);
            // A request that OCM's add-on manager has approved already can only be set to failed.
            let (resource, kind) = if is_approved {
                (&REQUEST_STATUSES, "Failed")
            } else {
                (&REQUEST_APPROVALS, "Denied")
            };
            let write = add_condition(resource, open, (kind, reason, &message), context.now);
            let event = Event::warning("CertificateRefused", message);
            (write, Some(event))
        }
    };
    Some(Action::new(
        InvolvedObject::new(&REQUESTS, object_ref.clone(), open.object.uid.clone()),
        vec![write],
        event,
    ))
}

fn requeue_after(cache: &Cache, object_ref: &ObjectRef, context: &Context<'_>) -> Option<Timestamp> {
    OpenRequest::get(cache, object_ref).map(|_| after(context.now, RETRY_INTERVAL))
}

/// Returns the cluster whose agent is granted the request and the GitOpsCluster that runs the agent, or `None` while that is
/// open. The error is the reason of the condition, and the message.
fn evaluate<'c>(
    cache: &Cache,
    open: OpenRequest<'c>,
    now: Timestamp,
) -> Result<Option<(&'c str, ObjectRef)>, (&'static str, String)> {
    let RequestSpec { requester, request } = &open.request.spec;
    // A cluster may join before the controller knows it: wait and retry. Until then its requests are not parsed, which takes longer.
    if requester.cluster().is_some_and(|cluster| {
        let assignment = assignment::for_cluster(cache, cluster);
        assignment.served_owner().is_none() && assignment.revoked_by.is_none()
    }) {
        return Ok(None);
    }
    if request.0.is_empty() {
        return Err((INVALID, "spec.request contains no certificate request".to_owned()));
    }
    let requested = pki::read_request(&request.0).map_err(|error| (INVALID, error.to_string()))?;
    if str::from_utf8(&request.0).is_err() {
        return Err((INVALID, "spec.request contains bytes that are not UTF-8".to_owned()));
    }
    let cluster = check(requester, &requested.common_name, &requested.organizations).map_err(|why| (FOREIGN, why))?;
    let assignment = assignment::for_cluster(cache, cluster);
    if let Some(owner) = &assignment.revoked_by {
        let why = format!(
            "the agent of ManagedCluster {cluster} is revoked: to readmit it, remove the cluster from revokedClusters \
             of GitOpsCluster {owner}"
        );
        return Err((REVOKED, why));
    }
    let Some(owner) = assignment.served_owner() else {
        return Ok(None);
    };
    let record = record(cache, cluster);
    if let Some(record) = record.filter(|record| recorded(record, open, now).is_none()) {
        let count = unexpired(record, now).count();
        let first = unexpired(record, now).map(|certificate| certificate.not_after).min();
        if let Some(first) = first.filter(|_| count >= issued::MAX_CERTIFICATES) {
            let why = format!(
                "the agent of ManagedCluster {cluster} has {count} unexpired certificates, and the limit is {}: find \
                 out why it requests so many; the first expires at {}",
                issued::MAX_CERTIFICATES,
                format_time(first)
            );
            return Err((TOO_MANY, why));
        }
    }
    Ok(Some((cluster, owner.clone())))
}

fn recorded<'r>(record: &'r Object, open: OpenRequest<'_>, now: Timestamp) -> Option<&'r IssuedCertificate> {
    unexpired(record, now).find(|certificate| certificate.request == open.object.uid)
}

/// Returns the next of two writes: first records the certificate in Argo CD's namespace, then returns it to the requester.
fn sign(cache: &Cache, open: OpenRequest<'_>, (cluster, owner): (&str, &ObjectRef), now: Timestamp) -> Option<Write> {
    let record = record(cache, cluster);
    if let Some(certificate) = record.and_then(|record| recorded(record, open, now)) {
        return Some(Write::patch(
            &REQUEST_STATUSES,
            open.object_ref.clone(),
            json!({
                "metadata": {"resourceVersion": open.object.version},
                "status": {"certificate": certificate.pem},
            }),
        ));
    }
    if record.is_some_and(|record| record.deleting) {
        return None;
    }
    let ca = authority::signing(cache)?;
    let recipe = Recipe::Sign {
        key: open.object.uid.clone(),
        request: String::from_utf8(open.request.spec.request.0.clone()).ok()?,
        validity: pki::validity(now, authority::AGENT_LIFETIME),
        authority: authority::reference(ca, cache.argocd()),
    };
    Some(issued::sign(record, cluster, owner, (cache.argocd(), now), recipe))
}

fn add_condition(
    resource: &'static Resource,
    open: OpenRequest<'_>,
    (kind, reason, message): (&str, &str, &str),
    now: Timestamp,
) -> Write {
    let mut conditions = open.request.status.conditions.clone();
    let now = format_time(now);
    conditions.push(json!({
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastUpdateTime": now,
        "lastTransitionTime": now,
    }));
    Write::patch(
        resource,
        open.object_ref.clone(),
        json!({"metadata": {"resourceVersion": open.object.version}, "status": {"conditions": conditions}}),
    )
}

/// Checks that the requester may have a certificate with this subject, and returns its cluster. Ignores requested DNS names,
/// which OCM's agents add and no certificate gets. The error names the wrong part of the subject, or the requester if it may
/// request none.
fn check<'r>(requester: &'r Requester, name: &str, groups: &[Box<str>]) -> Result<&'r str, String> {
    let Some(cluster) = requester.cluster() else {
        return Err(format!(
            "{} is not the registration agent of a managed cluster, and only that can request the certificate of its \
             agent: if this is the ServiceAccount of OCM's gRPC server, register the cluster with the driver csr",
            requester.user
        ));
    };
    let permitted = names::user(cluster);
    if name != permitted {
        return Err(format!(
            "the agent of ManagedCluster {cluster} requests the name {name}: only {permitted} is permitted"
        ));
    }
    let allowed = names::groups(cluster);
    if let Some(group) = groups
        .iter()
        .find(|group| !allowed.iter().any(|allowed_group| **allowed_group == ***group))
    {
        let permitted = allowed.join(", ");
        return Err(format!(
            "the agent of ManagedCluster {cluster} requests the group {group}: only {permitted} are permitted"
        ));
    }
    Ok(cluster)
}

#[cfg(test)]
mod properties {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{BoxedStrategy, Just, Strategy, prop_oneof};
    use proptest::sample::select;
    use testing::{holds, hostile_text};

    fn requesters() -> BoxedStrategy<(String, Vec<String>)> {
        const USERS: &[&str] = &[
            "system:open-cluster-management:eu1:agent",
            "system:open-cluster-management:eu2:agent",
            "system:open-cluster-management:eu1",
            "system:open-cluster-management:eu1:",
            "system:open-cluster-management::agent",
            "system:open-cluster-management:eu1:a:b",
            "system:open-cluster-management:eu1:agent:eu2",
            "system:serviceaccount:eu1:agent",
            "kubernetes-admin",
            "",
        ];
        const GROUPS: &[&str] = &[
            "system:open-cluster-management:eu1",
            "system:open-cluster-management:eu2",
            "system:open-cluster-management:",
            "system:masters",
            "system:open-cluster-management",
            "system:open-cluster-management:eu1:agent",
            "system:authenticated",
        ];
        let name = prop_oneof![6 => Just(USERS[0]), 2 => select(USERS)];
        let groups = prop_oneof![6 => Just(vec![GROUPS[0]]), 2 => vec(select(GROUPS), 0..4)];
        let known = (name, groups)
            .prop_map(|(name, groups)| (name.to_owned(), groups.into_iter().map(str::to_owned).collect()));
        prop_oneof![9 => known, 1 => (hostile_text(), vec(hostile_text(), 0..3))].boxed()
    }

    fn subjects() -> BoxedStrategy<(String, Vec<Box<str>>)> {
        let name = prop_oneof![
            6 => Just(names::user("eu1")),
            1 => Just(names::user("eu2")),
            1 => Just("system:masters".to_owned()),
            1 => hostile_text()
        ];
        let organization = prop_oneof![
            6 => select(names::groups("eu1").to_vec()),
            1 => select(names::groups("eu2").to_vec()),
            1 => Just("system:masters".to_owned()),
            1 => hostile_text()
        ];
        let organizations = vec(organization.prop_map(String::into_boxed_str), 0..4);
        (name, organizations).boxed()
    }

    /// Returns the cluster whose agent may have a certificate with this subject.
    fn entitled<'u>(user: &'u str, all: &[String], common_name: &str, organizations: &[Box<str>]) -> Option<&'u str> {
        let ["system", "open-cluster-management", cluster, agent] = user.split(':').collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_agent = !cluster.is_empty()
            && !agent.is_empty()
            && all.contains(&format!("system:open-cluster-management:{cluster}"));
        let groups = names::groups(cluster);
        let is_own = common_name == names::user(cluster)
            && organizations
                .iter()
                .all(|organization| groups.iter().any(|group| **group == **organization));
        (is_agent && is_own).then_some(cluster)
    }

    #[test]
    fn grants_an_agent_a_certificate_for_its_own_cluster_only() {
        holds(
            2000,
            || (requesters(), subjects()),
            |((user, all), (common_name, organizations))| {
                let requester = Requester {
                    user: user.as_str().into(),
                    groups: all.iter().map(|group| group.as_str().into()).collect(),
                };
                let checked = check(&requester, &common_name, &organizations);
                let entitled = entitled(&user, &all, &common_name, &organizations);
                assert_eq!(
                    checked.ok(),
                    entitled,
                    "{user:?} {all:?} {common_name:?} {organizations:?}"
                );
            },
        );
    }
}
