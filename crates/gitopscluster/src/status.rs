//! The status of a GitOpsCluster, in the condition types and reasons of the peer (Red Hat ACM or argocd-pull-integration) whose
//! API the GitOpsCluster uses.

mod agent;
mod condition;

use super::secrets;
use assignment::{GitOpsClusterRef, ServingState, owned_secret};
use condition::{ConditionStatus, Outcome, StatusCondition, condition, first_few, worst};
use hub_state::cluster_secret::ClusterSecret;
use hub_state::{Context, GitOpsCluster, Kind, OPEN, PUSH, SecretKind, Selection};
use jiff::Timestamp;
use manifest::text;
use ocm::argocd_agent as names;
use primitives::object_ref::ObjectRef;
use primitives::timestamp::format_time;
use runtime::action::Event;
use serde_json::{Value, json};

/// The message for requests to create push credentials, as Red Hat ACM does.
const NO_PUSH: &str = "push credentials are not implemented: set spec.createBlankClusterSecrets to true to register \
                       the clusters without credentials";

/// The condition that names the refused fields, present only while there are any.
const PERMITTED: &str = "SpecPermitted";

/// The condition that names the writes that the API server refuses, present only while there are any.
const WRITTEN: &str = "WritesAccepted";

/// The condition that is True if a controller serves the Argo CD. The type is our own, for both peers.
const SERVED: &str = "ArgoServerVerified";
const REGISTERED: [&str; 2] = ["ClustersRegistered", "ClustersImported"];

/// The counts of clusters, and the problems to report.
#[derive(Default)]
struct Count {
    selected: usize,
    registered: usize,
    /// The problems that an administrator has to solve.
    conflicts: Vec<String>,
    /// The clusters whose Secret is not written yet.
    pending: Vec<String>,
}

/// The field that names the Argo CD whose controller wrote the status.
const STATUS_WRITER: &str = "argoNamespace";

/// The reason of [`SERVED`] if the Argo CD belongs to another controller that has not written the status.
const NO_CONTROLLER: &str = "ArgoServerNotFound";

/// Returns true if the controller of this other Argo CD writes the status of a GitOpsCluster. The generation decides only if the
/// status does not name a controller: every change of the spec raises it before that controller can write again.
pub(super) fn is_status_of(gitops_cluster: &GitOpsCluster, other: &str) -> bool {
    match gitops_cluster.status.get(STATUS_WRITER) {
        Some(namespace) => namespace == other,
        None => condition(gitops_cluster, SERVED).is_some_and(|condition| {
            condition["reason"] != NO_CONTROLLER && condition["observedGeneration"] == gitops_cluster.generation
        }),
    }
}

/// Returns the desired status if it differs from the current one, with Events about new conflicts and refused fields.
pub(super) fn desired(
    gitops: GitOpsClusterRef<'_>,
    serving_state: &ServingState,
    context: &Context<'_>,
) -> Option<(Value, Vec<Event>)> {
    let (gitops_cluster, argocd) = (gitops.object, &**gitops.cache.argocd());
    let count = count(gitops, serving_state);
    let dialect = usize::from(gitops_cluster.spec.is_pull_integration);
    let mut conditions = vec![
        (
            ["PlacementResolved", "PlacementEvaluated"][dialect],
            placement(gitops, serving_state),
        ),
        (SERVED, served(gitops, serving_state)),
        (
            REGISTERED[dialect],
            registered(gitops, serving_state, &count, context.settings.agents),
        ),
        ("SpecImplemented", implemented(gitops_cluster)),
    ];
    let (agent_conditions, fields) = match &gitops_cluster.spec.agent {
        Some(desired) if *serving_state == ServingState::Served && context.settings.agents => {
            agent::status(gitops, desired, context)
        }
        _ => (Vec::new(), Value::Null),
    };
    conditions.extend(agent_conditions);
    let refused = permitted(gitops, serving_state);
    let refused_before = condition(gitops_cluster, PERMITTED).and_then(|condition| condition["message"].as_str());
    let new_refusal = refused.as_ref().map(|(_, outcome)| outcome.message.clone());
    let new_refusal = new_refusal.filter(|message| refused_before != Some(message));
    conditions.extend(refused);
    // Each controller has its own refused writes: in a GitOpsCluster that none of several controllers serves, the condition would
    // alternate.
    if !matches!(serving_state, ServingState::Elsewhere(_)) {
        conditions.extend(written(gitops, context));
    }
    let ready = ready(&conditions);
    let (message, is_ready) = (ready.message.clone(), ready.is == ConditionStatus::True);
    conditions.push(("Ready", ready));
    let now = format_time(context.now);
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(kind, outcome)| outcome.to_json(kind, gitops_cluster, &now))
        .collect();
    // Null removes a field that no longer has a value.
    let agents = &fields["clusters"];
    let mut status = json!({
        "conditions": conditions,
        "clusters": {
            "selected": count.selected,
            "registered": count.registered,
            "installed": agents["installed"],
            "connected": agents["connected"],
            "degraded": agents["degraded"],
        },
        "phase": if is_ready { "successful" } else { "failed" },
        "message": message,
        "server": fields["server"],
        "certificates": fields["certificates"],
        "clusterStates": fields["clusterStates"],
        "clusterStatesCut": fields["clusterStatesCut"],
    });
    let answering = match serving_state {
        ServingState::Elsewhere(_) => Value::Null,
        _ => json!(argocd),
    };
    // Red Hat ACM's CRD drops our own fields, so a missing one is no reason to write.
    let names_another = gitops_cluster
        .status
        .get(STATUS_WRITER)
        .is_some_and(|known| *known != answering);
    let has_own_fields = gitops_cluster.status.contains_key("clusters");
    let is_current = status.as_object().into_iter().flatten().all(|(key, value)| {
        let current = gitops_cluster.status.get(key);
        let is_dropped = current.is_none() && !has_own_fields && key != "conditions";
        is_dropped || argocd_agent::difference(value, current.unwrap_or(&Value::Null)).is_none()
    });
    if !names_another && is_current {
        return None;
    }
    status["lastUpdateTime"] = json!(now);
    status[STATUS_WRITER] = answering;
    let conflicts = (!count.conflicts.is_empty()).then(|| first_few(&count.conflicts));
    let reported_before =
        condition(gitops_cluster, REGISTERED[dialect]).and_then(|condition| condition["message"].as_str());
    let conflict = conflicts.filter(|conflict| reported_before.is_none_or(|before| !before.contains(conflict)));
    let warnings = [("ClusterSecretConflict", conflict), ("FieldRefused", new_refusal)].into_iter();
    let events = warnings.filter_map(|(reason, message)| Some(Event::warning(reason, message?)));
    Some((status, events.collect()))
}

fn count(gitops: GitOpsClusterRef<'_>, serving_state: &ServingState) -> Count {
    let GitOpsClusterRef { cache, object_ref, .. } = gitops;
    let mut count = Count::default();
    if *serving_state != ServingState::Served {
        return count;
    }
    let owner = object_ref.to_string();
    for cluster in cache.selected_by(&gitops.placement()) {
        if gitops.revokes(cluster) {
            continue;
        }
        count.selected = count.selected.saturating_add(1);
        let Some(secret_kind) = gitops.requested_secret() else {
            continue;
        };
        if let (SecretKind::Agent, Err(why)) = (secret_kind, names::check_agent(cluster, cache.argocd())) {
            count.conflicts.push(why);
            continue;
        }
        let owner_of = |secret_kind| owned_secret(secret_kind, cache, cluster).and_then(ClusterSecret::owner);
        let is_registered = match owner_of(secret_kind) {
            Some(other) if other != owner => {
                count
                    .conflicts
                    .push(format!("{cluster}: GitOpsCluster {other} already registers it"));
                continue;
            }
            other => other.is_some(),
        };
        count.registered = count.registered.saturating_add(usize::from(is_registered));
        match secrets::decide(secret_kind, gitops, cluster, None, None) {
            Some((decision, _)) => match decision.conflict {
                Some(conflict) => count.conflicts.push(format!("{cluster}: {conflict}")),
                // The cluster is registered even if its Secret needs a correction.
                None if !is_registered => count.pending.push(cluster.to_string()),
                None => {}
            },
            None => count.pending.push(format!("{cluster} (no accepted ManagedCluster)")),
        }
    }
    count
}

fn placement(gitops: GitOpsClusterRef<'_>, serving_state: &ServingState) -> Outcome {
    if let ServingState::WrongPlacement(namespace) = serving_state {
        let message = format!(
            "placementRef.namespace is {namespace}: set it to the namespace of the GitOpsCluster, where the Placement must be"
        );
        return Outcome::failure("InvalidConfiguration", message);
    }
    let placement = gitops.placement();
    match gitops.cache.selection(&placement) {
        Selection::NoPlacement => Outcome::failure(
            "PlacementNotFound",
            format!("Placement {placement} does not exist; registered clusters stay registered"),
        ),
        Selection::Empty => Outcome {
            is: if gitops.object.spec.is_pull_integration {
                ConditionStatus::True
            } else {
                ConditionStatus::False
            },
            reason: ["ManagedClustersNotFound", "NoClusters"],
            message: format!("Placement {placement} selects no cluster; registered clusters stay registered"),
        },
        Selection::Inconsistent { named, selected } => {
            let message = match selected {
                Some(selected) => format!(
                    "Placement {placement} selects {}, but its decisions name {named}: no cluster is removed while they \
                     differ",
                    text::count(selected, "cluster")
                ),
                None => format!(
                    "the decisions of Placement {placement} name {}, but its status has no \
                     numberOfSelectedClusters: no cluster is removed until it has",
                    text::count(named, "cluster")
                ),
            };
            Outcome::progress("Reconciling", message)
        }
        Selection::Consistent(number) => Outcome::success(format!(
            "Placement {placement} selects {}",
            text::count(number, "cluster")
        )),
    }
}

fn served(gitops: GitOpsClusterRef<'_>, serving_state: &ServingState) -> Outcome {
    let argocd = gitops.cache.argocd();
    match serving_state {
        ServingState::Served | ServingState::WrongPlacement(_) => {
            Outcome::success(format!("clusters are registered in the namespace {argocd}"))
        }
        ServingState::Elsewhere(namespace) => {
            let message = format!(
                "no controller registers clusters in the namespace {namespace}: run one with --argocd-namespace {namespace}"
            );
            Outcome::new(ConditionStatus::False, NO_CONTROLLER, message)
        }
        ServingState::Unauthorised => {
            let message = format!(
                "GitOpsClusters in Namespace {} have no effect: to permit them, set the label {OPEN} of Namespace \
                 {argocd} to true",
                gitops.object_ref.namespace
            );
            Outcome::failure("InvalidConfiguration", message)
        }
    }
}

fn registered(gitops: GitOpsClusterRef<'_>, serving_state: &ServingState, count: &Count, agents: bool) -> Outcome {
    let Count {
        selected,
        registered,
        conflicts,
        pending,
    } = count;
    let requested = gitops.requested_secret();
    if *serving_state != ServingState::Served {
        Outcome::progress("Skipped", "no cluster Secret is written")
    } else if requested.is_none() {
        let message = "the settings of argocd-agent are invalid; running agents stay unchanged";
        Outcome::failure("InvalidConfiguration", message)
    } else if requested == Some(SecretKind::Agent) && !agents {
        let message = "the controller argocd-agent is not enabled: add it to ARGOCD_OCM_CMP_CONTROLLERS, and apply \
                       deploy/deploy_argocd_agent.yaml";
        Outcome::failure("NotImplemented", message)
    } else if !conflicts.is_empty() {
        let conflicts = first_few(conflicts);
        let message = format!("{registered} of {selected} clusters are registered; {conflicts}");
        Outcome::failure("ClusterRegistrationFailed", message)
    } else if !pending.is_empty() {
        let pending = first_few(pending);
        let message = format!("{registered} of {selected} clusters are registered, pending: {pending}");
        Outcome::progress("Reconciling", message)
    } else if *selected == 0 {
        Outcome::progress("ManagedClustersNotFound", "no cluster is selected")
    } else {
        Outcome::success(format!("{} registered", text::count(*registered, "cluster")))
    }
}

fn implemented(gitops_cluster: &GitOpsCluster) -> Outcome {
    let all = gitops_cluster.spec.not_implemented.iter();
    let (push, fields): (Vec<&str>, Vec<&str>) = all.copied().partition(|field| *field == PUSH);
    let fields: Vec<_> = fields.iter().map(|field| format!("spec.{field}")).collect();
    let ignored = (!fields.is_empty()).then(|| format!("not implemented: {}", fields.join(", ")));
    let push = push.first().map(|_| NO_PUSH.to_owned());
    let all: Vec<_> = ignored.into_iter().chain(push).collect();
    if all.is_empty() {
        return Outcome::success("all fields of the spec are implemented");
    }
    Outcome::new(ConditionStatus::False, "NotImplemented", all.join("; "))
}

/// Returns the condition that names the fields that have no effect because this GitOpsCluster must not set them.
fn permitted(gitops: GitOpsClusterRef<'_>, serving_state: &ServingState) -> Option<StatusCondition> {
    let (gitops_cluster, argocd) = (gitops.object, gitops.cache.argocd());
    if *serving_state != ServingState::Served {
        return None;
    }
    let mut all = Vec::new();
    if !gitops_cluster.spec.refused.is_empty() {
        all.push(format!(
            "only a GitOpsCluster in the namespace {argocd} can set {}: set it there, or remove it here",
            gitops_cluster.spec.refused.join(", ")
        ));
    }
    let others = argocd_agent::reconcile::revoked_but_run_by_others(gitops);
    if !others.is_empty() {
        all.push(format!(
            "agent.revokedClusters has no effect on clusters of other GitOpsClusters, revoke them there: {}",
            first_few(&others)
        ));
    }
    let outcome = Outcome::new(ConditionStatus::False, "NotPermitted", all.join("; "));
    (!all.is_empty()).then_some((PERMITTED, outcome))
}

/// Returns the condition that names the writes for this GitOpsCluster that the API server refuses. A new leader keeps what its
/// predecessor wrote there, unless it finds a refusal that is not in it.
fn written(gitops: GitOpsClusterRef<'_>, context: &Context<'_>) -> Option<StatusCondition> {
    let cache = gitops.cache;
    let mut all = cache.refusals().of_gitops(gitops.object_ref);
    if gitops.object.spec.agent.is_some() && context.settings.agents {
        let argocd = ObjectRef::new("", cache.argocd());
        let agents = (argocd_agent::reconcile::CONTROLLER.name, Kind::Namespace, argocd);
        all.extend(cache.refusals().get(&agents));
    }
    let known = condition(gitops.object, WRITTEN).and_then(|known| known["message"].as_str());
    let known = known.filter(|known| context.new_leader_for.is_some() && all.iter().all(|why| known.contains(why)));
    let all: Vec<_> = all.into_iter().map(str::to_owned).collect();
    let message = known
        .map(str::to_owned)
        .or_else(|| (!all.is_empty()).then(|| first_few(&all)))?;
    Some((WRITTEN, Outcome::new(ConditionStatus::False, "WriteRefused", message)))
}

/// Returns when the status changes by time alone: a leader is no longer new, or a certificate that its owner renews is late.
pub(super) fn requeue_after(gitops: GitOpsClusterRef<'_>, context: &Context<'_>) -> Option<Timestamp> {
    let new_until = condition(gitops.object, WRITTEN).and(context.new_leader_for);
    let new_until = new_until.and_then(|left| context.now.checked_add(left).ok());
    let has_agents = gitops.object.spec.agent.is_some() && context.settings.agents;
    let late = has_agents
        .then(|| agent::requeue_after(gitops.cache, context.now))
        .flatten();
    new_until.into_iter().chain(late).min()
}

/// Returns true if the status names exactly the writes that the API server refuses.
pub(super) fn names_refusals(gitops: GitOpsClusterRef<'_>, context: &Context<'_>) -> bool {
    let desired = written(gitops, context).map(|(_, desired)| json!(desired.message));
    condition(gitops.object, WRITTEN).map(|condition| &condition["message"]) == desired.as_ref()
}

/// Returns the status of a GitOpsCluster that is being deleted, if it differs from the current one.
pub(super) fn deleting(
    gitops: GitOpsClusterRef<'_>,
    left: &[String],
    context: &Context<'_>,
) -> Option<(Value, Vec<Event>)> {
    let gitops_cluster = gitops.object;
    let waits = if left.is_empty() {
        "the removal of its finalizer".to_owned()
    } else {
        format!("the deletion of {}", first_few(left))
    };
    let written = written(gitops, context);
    let why = written
        .as_ref()
        .map_or_else(String::new, |(kind, outcome)| format!("; {kind}: {}", outcome.message));
    let message = format!("being deleted, waiting for {waits}{why}");
    let now = format_time(context.now);
    let to_json = |(kind, outcome): StatusCondition| outcome.to_json(kind, gitops_cluster, &now);
    let ready = to_json(("Ready", Outcome::new(ConditionStatus::False, "Deleting", message)));
    let written = written.map(to_json);
    let conditions = gitops_cluster.status.get("conditions").and_then(Value::as_array);
    let others = conditions
        .into_iter()
        .flatten()
        .filter(|condition| condition["type"] != "Ready" && condition["type"] != WRITTEN);
    let conditions: Vec<_> = others.chain(&written).chain([&ready]).cloned().collect();
    let is_unchanged = gitops_cluster
        .status
        .get("conditions")
        .is_some_and(|existing| *existing == json!(conditions));
    let status = json!({"conditions": conditions, "phase": "failed", "message": ready["message"]});
    (!is_unchanged).then(|| (status, Vec::new()))
}

/// Returns the outcome of Ready: True if all conditions are True, otherwise the worst status and the conditions that have it.
fn ready(conditions: &[StatusCondition]) -> Outcome {
    let Some(Outcome { is: status, reason, .. }) = worst(conditions.iter().map(|(_, outcome)| outcome)) else {
        return Outcome::success("all conditions are True");
    };
    let bad = conditions.iter().filter(|(_, outcome)| outcome.is == *status);
    let bad = bad.map(|(kind, outcome)| format!("{kind}: {}", outcome.message));
    Outcome {
        is: *status,
        reason: *reason,
        message: bad.collect::<Vec<_>>().join("; "),
    }
}
