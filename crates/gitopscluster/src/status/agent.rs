//! The argocd-agent part of the status of a GitOpsCluster: the readiness of the hub, and the health of the clusters' agents.

use super::condition::{ConditionStatus, Outcome, StatusCondition, first_few, worst};
use argocd_agent::reconcile::{AddonStatus, renewed_by_its_owner};
use argocd_agent::rollout::{self, Progress};
use argocd_agent::state::{self, AgentStatus, State};
use argocd_agent::{Server, WITHOUT_OURS, WITHOUT_OURS_BESIDE_AN_OPERATOR};
use assignment::GitOpsClusterRef;
use assignment::certificates::record;
use hub_state::{Availability, Cache, Context, DesiredAgent, Kind, Object, have_same_version};
use jiff::Timestamp;
use manifest::text::{one_line, without_middle};
use ocm::argocd_agent as names;
use pki::Certificate;
use primitives::object_ref::ObjectRef;
use primitives::timestamp::format_time;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The maximum number of clusters in the list of the status.
const MAX_LISTED: usize = 100;

type Member<'i> = (&'i str, AgentStatus<'i>);

/// Returns the conditions of the agents that a GitOpsCluster asks for, and the additional fields of its status.
pub(super) fn status(
    gitops: GitOpsClusterRef<'_>,
    desired: &DesiredAgent,
    context: &Context<'_>,
) -> (Vec<StatusCondition>, Value) {
    let cache = gitops.cache;
    let server = argocd_agent::server(cache, desired);
    let clusters = gitops.agent_clusters();
    let mut members: Vec<Member<'_>> = Vec::new();
    for cluster in &clusters {
        let addon = cache.object(Kind::AddOns, &ObjectRef::new(cluster, names::ADDON));
        let is_silent = cache.availability(cluster) == Availability::Unknown;
        members.push((
            cluster,
            state::agent_status(addon.map(|addon| &addon.object), is_silent),
        ));
    }
    members.sort_unstable_by_key(|(name, status)| (status.state, *name));
    let ready = argocd_agent::reconcile::addon_status(gitops, desired, context);
    let mut conditions = prerequisites(gitops, desired, server.as_ref(), &clusters, &ready, context);
    conditions.push(("AgentsConnected", connected(&members)));
    conditions.push(("AgentsUpToDate", up_to_date(ready.progress, &members)));
    conditions.extend(version_mismatch(cache, desired, context));
    let count = |check: fn(&AgentStatus<'_>) -> bool| members.iter().filter(|(_, status)| check(status)).count();
    let listed: Vec<_> = members
        .iter()
        .take(MAX_LISTED)
        .map(|member| listed(cache, member))
        .collect();
    let server = server
        .ok()
        .map(|server| json!({"address": server.address, "port": server.port}));
    let certificates = cache.certificates_until();
    let certificates = certificates.map(|(name, until)| json!({"name": name, "notAfter": format_time(until)}));
    let fields = json!({
        "server": server,
        "certificates": certificates.collect::<Vec<_>>(),
        "clusterStates": listed,
        "clusterStatesCut": members.len().saturating_sub(MAX_LISTED),
        "clusters": {
            "installed": count(|status| status.is_installed),
            "connected": count(|status| status.state == State::Connected),
            "degraded": count(|status| status.state == State::Degraded),
        },
    });
    (conditions, fields)
}

fn listed(cache: &Cache, (name, status): &Member<'_>) -> Value {
    let mut text = json!({"name": name, "state": status.state});
    if !status.message.is_empty() {
        text["message"] = json!(without_middle(&one_line(status.message), 200));
    }
    if let Some(not_after) = record(cache, name).and_then(Object::last_expiry) {
        text["certificateNotAfter"] = json!(format_time(not_after));
    }
    text
}

/// Returns the condition that is True if the agents of all reachable clusters are connected.
fn connected(members: &[Member<'_>]) -> Outcome {
    if members.is_empty() {
        return Outcome::new(ConditionStatus::Unknown, "NoClusters", "no cluster has an agent");
    }
    let of = |check: &dyn Fn(State) -> bool| -> Vec<String> {
        let those = members.iter().filter(|(_, status)| check(status.state));
        those.map(|(name, _)| (*name).to_owned()).collect()
    };
    let unwell = of(&|state| matches!(state, State::Degraded | State::Disconnected));
    let coming = of(&|state| matches!(state, State::Pending | State::Installing));
    let silent = of(&|state| state == State::Unreachable);
    let connected = of(&|state| state == State::Connected).len();
    let all = format!("{connected} of {} agents are connected", members.len());
    let (status, reason, mut message) = if !unwell.is_empty() {
        let what = format!("not connected: {}", first_few(&unwell));
        (ConditionStatus::False, "NotConnected", format!("{all}, {what}"))
    } else if !coming.is_empty() {
        let what = format!("pending: {}", first_few(&coming));
        (ConditionStatus::Unknown, "InProgress", format!("{all}, {what}"))
    } else {
        (ConditionStatus::True, "Success", all)
    };
    if !silent.is_empty() {
        message = format!("{message}; unreachable: {}", first_few(&silent));
    }
    Outcome::new(status, reason, message)
}

/// Returns the condition that is True if all reachable clusters have the desired version.
fn up_to_date(progress: Progress, members: &[Member<'_>]) -> Outcome {
    let Progress { state, message } = progress;
    let (status, reason) = match state {
        _ if members.is_empty() => (ConditionStatus::Unknown, "NoClusters"),
        rollout::State::Done => (ConditionStatus::True, "Success"),
        rollout::State::InProgress => (ConditionStatus::Unknown, "InProgress"),
        rollout::State::Stopped => (ConditionStatus::False, "RolloutStopped"),
    };
    Outcome::new(status, reason, message)
}

/// Returns the condition that names different versions of the principal and the agents; `None` if they agree or are not known.
fn version_mismatch(cache: &Cache, desired: &DesiredAgent, context: &Context<'_>) -> Option<StatusCondition> {
    // The images of another operator are not ours.
    if !desired.brings_argocd() {
        return None;
    }
    let principal = argocd_agent::principal_image(cache)?;
    let agent = argocd_agent::agent_image(cache, desired, context)?;
    (have_same_version(&agent, principal) == Some(false)).then(|| {
        let message = format!(
            "agents have {agent}, and the principal has {principal}, which rejects agents of another version: remove the image from \
             spec.agent.images and from --agent-image, or set the same version"
        );
        let outcome = Outcome::new(ConditionStatus::False, "VersionMismatch", message);
        ("AgentVersionMatches", outcome)
    })
}

fn failed(message: impl Into<String>) -> Outcome {
    Outcome::failure("ArgoCDAgentFailed", message)
}

fn coming(message: impl Into<String>) -> Outcome {
    Outcome::progress("Reconciling", message)
}

/// Returns the conditions of the prerequisites of agents, as the peer groups them whose API the GitOpsCluster uses.
fn prerequisites(
    gitops: GitOpsClusterRef<'_>,
    desired: &DesiredAgent,
    server: Result<&Server, &String>,
    clusters: &BTreeSet<&str>,
    ready: &AddonStatus,
    context: &Context<'_>,
) -> Vec<StatusCondition> {
    let (cache, object_ref, now) = (gitops.cache, gitops.object_ref, context.now);
    let missing = |what: &str| coming(format!("{what} does not exist yet"));
    let exists_or_missing = |exists, what: &str| {
        if exists {
            Outcome::success(format!("{what} exists"))
        } else {
            missing(what)
        }
    };
    let applied = |name: &str| {
        let is_applied = |cluster: &&&str| {
            let work = cache.object(Kind::AgentWorks, &ObjectRef::new(cluster, name));
            work.is_some_and(|work| {
                work.owner().as_ref() == Some(object_ref)
                    && state::condition(&work.object, "Applied")["status"] == "True"
            })
        };
        let applied = clusters.iter().filter(is_applied).count();
        let message = format!("{applied} of {} clusters have applied the ManifestWork", clusters.len());
        if applied < clusters.len() {
            coming(message)
        } else {
            Outcome::success(message)
        }
    };
    let server = match server {
        Ok(Server { address, port }) => Outcome::success(format!("agents connect to {address}:{port}")),
        Err(why) => Outcome {
            reason: ["ArgoCDAgentFailed", "ServerNotDiscovered"],
            ..failed(why)
        },
    };
    let token_key = exists_or_missing(cache.objects(Kind::TokenKey).next().is_some(), "the token key");
    let authority = late(cache, names::CA_SECRET, now).unwrap_or_else(|| authority(cache));
    let [principal, proxy] = [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS].map(|name| leaf(cache, name, now));
    // Without an image of this program, agents are not restarted when their certificates are renewed.
    let has_supervisor = desired.images.or(&context.settings.images).ours.is_some();
    let template = if desired.brings_argocd() && !has_supervisor {
        failed(if desired.operator {
            WITHOUT_OURS_BESIDE_AN_OPERATOR
        } else {
            WITHOUT_OURS
        })
    } else {
        exists_or_missing(ready.template, "the AddOnTemplate")
    };
    let config = exists_or_missing(ready.config, "the AddOnDeploymentConfig");
    let management = match ready.delayed_by.as_deref() {
        None => Outcome::success("OCM installs the add-on on the selected clusters"),
        Some([]) => missing("the ClusterManagementAddOn"),
        Some(clusters) => failed(format!(
            "no GitOpsCluster selects {}, which have the add-on: select them, or delete their ManagedClusterAddOn {}",
            first_few(clusters),
            names::ADDON
        )),
    };
    let works = applied(names::CA_WORK);
    let argocd_work = names::argocd_work(&object_ref.namespace, &object_ref.name);
    let theirs = argocd_agent::reconcile::clusters_with_foreign_argocd(gitops, desired);
    let argocd = if desired.is_operated() {
        applied(&argocd_work)
    } else if theirs.is_empty() {
        Outcome::success("the add-on includes Argo CD")
    } else {
        failed(format!(
            "ManifestWork {argocd_work} of {} delivers an ArgoCD whose operator would fight with the add-on: delete the \
             ManifestWork, or set argoCDAgentAddon.argoCDCRManifestWork",
            first_few(&theirs)
        ))
    };
    if !gitops.object.spec.is_pull_integration {
        return vec![
            ("ArgoCDAgentPrereqsReady", joined([server, token_key])),
            ("CertificatesReady", joined([authority, principal, proxy])),
            ("AddOnTemplateReady", template),
            ("AddOnDeploymentConfigsReady", config),
            ("ManagedClusterAddOnsReady", management),
            ("ManifestWorksApplied", joined([works, argocd])),
        ];
    }
    let rights = "OCM's add-on manager needs no permissions here: this controller signs the certificates";
    let tolerations = "unreachable clusters keep their agents, whatever the Placement tolerates";
    vec![
        ("RBACReady", Outcome::success(rights)),
        ("ServerDiscovered", server),
        ("JWTSecretReady", token_key),
        ("CACertificateReady", authority),
        ("PrincipalCertificateReady", principal),
        ("ResourceProxyCertificateReady", proxy),
        ("PlacementTolerationConfigured", Outcome::success(tolerations)),
        ("AddOnTemplateReady", template),
        ("AddonConfigured", joined([config, management])),
        ("ManifestWorkCreated", works),
        ("ArgoCDCRDelivered", argocd),
    ]
}

/// Returns the first outcome with the worst status, or the joined messages if all are ready.
fn joined<const N: usize>(outcomes: [Outcome; N]) -> Outcome {
    worst(outcomes.iter()).cloned().unwrap_or_else(|| {
        let all = outcomes.map(|outcome| outcome.message);
        Outcome::success(all.join("; "))
    })
}

/// Returns the outcome of a certificate that this controller does not renew, if little of its lifetime is left.
fn late(cache: &Cache, name: &str, now: Timestamp) -> Option<Outcome> {
    let late = renewed_by_its_owner(cache, name).filter(|certificate| certificate.renews_at() <= now)?;
    let (argocd, common_name, end) = (cache.argocd(), &late.common_name, format_time(late.not_after));
    Some(failed(format!(
        "the certificate {common_name} in Secret {argocd}/{name} is valid until {end}, and this controller does not renew it: replace it"
    )))
}

/// Returns when the next certificate that its owner has to renew is late.
pub(super) fn requeue_after(cache: &Cache, now: Timestamp) -> Option<Timestamp> {
    names::CERTIFICATES
        .into_iter()
        .filter_map(|name| renewed_by_its_owner(cache, name).map(Certificate::renews_at))
        .filter(|at| *at > now)
        .min()
}

fn authority(cache: &Cache) -> Outcome {
    let argocd = cache.argocd();
    let name = names::CA_SECRET;
    let Some(ca) = cache.certificate(name) else {
        return coming(format!(
            "Secret {argocd}/{name} of type kubernetes.io/tls does not exist yet: delete a Secret of another type \
             if it has this name"
        ));
    };
    let Some(signer) = ca.leaf() else {
        return failed(format!(
            "Secret {argocd}/{name} has no certificate that matches its key: restore it from a backup, or delete it for a \
             new CA, with which agents cannot connect for up to a day"
        ));
    };
    let state = match (&ca.next, ca.certificates.len()) {
        (Some(_), _) => "; the next CA is being distributed to the clusters",
        (None, 1) => "",
        (None, _) => "; the certificates of the previous CA are being replaced",
    };
    Outcome::success(format!("{} signs{state}", signer.common_name))
}

fn leaf(cache: &Cache, name: &str, now: Timestamp) -> Outcome {
    if let Some(late) = late(cache, name, now) {
        return late;
    }
    let Some(certificate) = cache.certificate(name) else {
        return coming("the certificate does not exist yet");
    };
    let authorities = cache.certificate(names::CA_SECRET).map(|ca| &ca.certificates[..]);
    let mut authorities = authorities.unwrap_or_default().iter();
    let is_issuer = |authority: &&Certificate| certificate.leaf().is_some_and(|leaf| leaf.is_issued_by(authority));
    Outcome::success(match authorities.find(is_issuer) {
        Some(authority) => format!("issued by {}", authority.common_name),
        None => "issued externally; not renewed by this controller".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_an_agent_is_short_and_on_one_line() {
        let long = "\u{1b}[31m".to_owned() + &"x".repeat(1000);
        let shown = |message| {
            let status = AgentStatus {
                state: State::Degraded,
                is_installed: true,
                message,
            };
            let member = listed(&Cache::new("argocd"), &("eu1", status));
            assert_eq!(member["state"], "Degraded");
            member["message"].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(shown("no\nconnection"), "no connection");
        assert!(shown(&long).starts_with(" [31mxxx") && shown(&long).len() <= 200);
    }
}
