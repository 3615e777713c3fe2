//! The argocd-agent part of the status of a GitOpsCluster: the readiness of the hub, and the health of the clusters' agents.

use super::condition::{ConditionStatus, StatusCondition, first_few};
use argocd_agent::reconcile::AddonStatus;
use argocd_agent::rollout;
use argocd_agent::rollout::Progress;
use argocd_agent::state;
use argocd_agent::state::{AgentStatus, State};
use argocd_agent::{Server, WITHOUT_OURS, WITHOUT_OURS_BESIDE_AN_OPERATOR};
use assignment::{GitOpsClusterRef, certificates::last_expiry};
use hub_state::cache::Cache;
use hub_state::model::{Availability, DesiredAgent, Kind, have_same_version};
use hub_state::reconcile::{Context, Settings};
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

/// A cluster and the health of its agent.
struct Member<'i> {
    name: &'i str,
    status: AgentStatus<'i>,
    /// The time when the agent's certificate expires.
    not_after: Option<Timestamp>,
}

/// The argocd-agent part of the status.
#[derive(Default)]
pub(super) struct Agents {
    pub(super) conditions: Vec<StatusCondition>,
    /// Additional fields of the status.
    pub(super) fields: Value,
    /// Additional counts of `status.clusters`.
    pub(super) counts: Value,
}

/// Returns the status of the agents that a GitOpsCluster asks for.
pub(super) fn status(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> Agents {
    let cache = gitops.cache;
    let server = argocd_agent::reconcile::server(cache, desired);
    let clusters = gitops.agent_clusters();
    let mut members: Vec<_> = clusters.iter().map(|cluster| member(cache, cluster)).collect();
    members.sort_unstable_by_key(|member| (member.status.state, member.name));
    let ready = argocd_agent::reconcile::addon_status(gitops, desired, context);
    let mut conditions = prerequisites(gitops, desired, server.as_ref(), &clusters, &ready, context);
    conditions.push(connected(&members));
    conditions.push(up_to_date(ready.progress, &members));
    conditions.extend(version_mismatch(cache, desired, context));
    let count = |is: fn(&Member<'_>) -> bool| members.iter().filter(|member| is(member)).count();
    let listed: Vec<_> = members.iter().take(MAX_LISTED).map(Member::to_json).collect();
    let server = server.ok().map(|it| json!({"address": it.address, "port": it.port}));
    Agents {
        conditions,
        fields: json!({
            "server": server,
            "certificates": certificates(cache),
            "clusterStates": listed,
            "clusterStatesCut": members.len().saturating_sub(MAX_LISTED),
        }),
        counts: json!({
            "installed": count(|member| member.status.is_installed),
            "connected": count(|member| member.status.state == State::Connected),
            "degraded": count(|member| member.status.state == State::Degraded),
        }),
    }
}

/// Returns the names and expiry times of the certificates on the hub.
fn certificates(cache: &Cache) -> Vec<Value> {
    let all = cache.certificates_until();
    all.map(|(name, until)| json!({"name": name, "notAfter": format_time(until)}))
        .collect()
}

/// Returns a cluster and the health of its agent.
fn member<'i>(cache: &'i Cache, cluster: &'i str) -> Member<'i> {
    let addon = cache.object(Kind::AddOns, &ObjectRef::new(cluster, names::ADDON));
    let is_silent = cache.availability(cluster) == Availability::Unknown;
    Member {
        name: cluster,
        status: state::agent_status(addon.map(|addon| &addon.object), is_silent),
        not_after: last_expiry(cache, cluster),
    }
}

impl Member<'_> {
    fn to_json(&self) -> Value {
        let mut text = json!({"name": self.name, "state": self.status.state.name()});
        if !self.status.message.is_empty() {
            text["message"] = json!(without_middle(&one_line(self.status.message), 200));
        }
        if let Some(not_after) = self.not_after {
            text["certificateNotAfter"] = json!(format_time(not_after));
        }
        text
    }
}

/// Returns the condition that is True if the agents of all reachable clusters are connected.
fn connected(members: &[Member<'_>]) -> StatusCondition {
    if members.is_empty() {
        let message = "no cluster has an agent".to_owned();
        return StatusCondition::new("AgentsConnected", ConditionStatus::Unknown, "NoClusters", message);
    }
    let of = |is: &dyn Fn(State) -> bool| -> Vec<String> {
        let those = members.iter().filter(|member| is(member.status.state));
        those.map(|member| member.name.to_owned()).collect()
    };
    let unwell = of(&|state| matches!(state, State::Degraded | State::Disconnected));
    let coming = of(&|state| matches!(state, State::Pending | State::Installing));
    let silent = of(&|state| state == State::Unreachable);
    let connected = of(&|state| state == State::Connected).len();
    let all = format!("{connected} of {} agents are connected", members.len());
    let (is, reason, mut message) = if !unwell.is_empty() {
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
    StatusCondition::new("AgentsConnected", is, reason, message)
}

/// Returns the condition that is True if all reachable clusters have the desired version.
fn up_to_date(progress: Progress, members: &[Member<'_>]) -> StatusCondition {
    let Progress { state, message } = progress;
    let (is, reason) = match state {
        _ if members.is_empty() => (ConditionStatus::Unknown, "NoClusters"),
        rollout::State::Done => (ConditionStatus::True, "Success"),
        rollout::State::InProgress => (ConditionStatus::Unknown, "InProgress"),
        rollout::State::Stopped => (ConditionStatus::False, "RolloutStopped"),
    };
    StatusCondition::new("AgentsUpToDate", is, reason, message)
}

/// Returns the condition that names different versions of the principal and the agents; `None` if they agree or are not known.
fn version_mismatch(cache: &Cache, desired: &DesiredAgent, context: &Context<'_>) -> Option<StatusCondition> {
    // The images of another operator are not ours.
    if !desired.brings_argocd() {
        return None;
    }
    let principal = argocd_agent::reconcile::principal_image(cache)?;
    let agent = argocd_agent::reconcile::agent_image(cache, desired, context)?;
    (have_same_version(&agent, principal) == Some(false)).then(|| {
        let message = format!(
            "agents have {agent}, and the principal has {principal}, which rejects agents of another version: remove the image from \
             spec.agent.images and from --agent-image, or set the same version"
        );
        StatusCondition::new("AgentVersionMatches", ConditionStatus::False, "VersionMismatch", message)
    })
}

/// The message of a prerequisite that is ready, or the status and the reason why it is not.
type Prerequisite = Result<String, (ConditionStatus, String)>;

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
    let coming = |what: &str| Err((ConditionStatus::Unknown, format!("{what} does not exist yet")));
    let exists_or_missing = |exists, what: &str| {
        if exists {
            Ok(format!("{what} exists"))
        } else {
            coming(what)
        }
    };
    let applied = |name: &str| {
        let is_applied = |cluster: &&&str| {
            let work = cache.object(Kind::AgentWorks, &ObjectRef::new(cluster, name));
            work.is_some_and(|it| {
                it.owner().as_ref() == Some(object_ref) && state::condition(&it.object, "Applied")["status"] == "True"
            })
        };
        let applied = clusters.iter().filter(is_applied).count();
        let message = format!("{applied} of {} clusters have applied the ManifestWork", clusters.len());
        if applied < clusters.len() {
            Err((ConditionStatus::Unknown, message))
        } else {
            Ok(message)
        }
    };
    let server = match server {
        Ok(Server { address, port }) => Ok(format!("agents connect to {address}:{port}")),
        Err(why) => Err((ConditionStatus::False, why.clone())),
    };
    let token_key = exists_or_missing(cache.objects(Kind::TokenKey).next().is_some(), "the token key");
    let authority = not_late(cache, names::CA_SECRET, now).and_then(|()| authority(cache));
    let [principal, proxy] = [names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS].map(|name| leaf(cache, name, now));
    let template = if is_unattended(desired, context.settings) {
        let why = if desired.operator {
            WITHOUT_OURS_BESIDE_AN_OPERATOR
        } else {
            WITHOUT_OURS
        };
        Err((ConditionStatus::False, why.to_owned()))
    } else {
        exists_or_missing(ready.template, "the AddOnTemplate")
    };
    let config = exists_or_missing(ready.config, "the AddOnDeploymentConfig");
    let management = match &ready.management {
        Ok(true) => Ok("OCM installs the add-on on the selected clusters".to_owned()),
        Ok(false) => coming("the ClusterManagementAddOn"),
        Err(clusters) => Err((
            ConditionStatus::False,
            format!(
                "no GitOpsCluster selects {}, which have the add-on: select them, or delete their ManagedClusterAddOn {}",
                first_few(clusters),
                names::ADDON
            ),
        )),
    };
    let works = applied(names::CA_WORK);
    let argocd = if desired.is_operated() {
        applied(&names::argocd_work(&object_ref.namespace, &object_ref.name))
    } else {
        Ok("the add-on includes Argo CD".to_owned())
    };
    if !gitops.object.spec.is_pull_integration {
        return vec![
            condition("ArgoCDAgentPrereqsReady", worst([server, token_key])),
            condition("CertificatesReady", worst([authority, principal, proxy])),
            condition("AddOnTemplateReady", template),
            condition("AddOnDeploymentConfigsReady", config),
            condition("ManagedClusterAddOnsReady", management),
            condition("ManifestWorksApplied", worst([works, argocd])),
        ];
    }
    let rights = "OCM's add-on manager needs no permissions here: this controller signs the certificates";
    let tolerations = "unreachable clusters keep their agents, whatever the Placement tolerates";
    vec![
        condition("RBACReady", Ok(rights.to_owned())),
        condition("ServerDiscovered", server),
        condition("JWTSecretReady", token_key),
        condition("CACertificateReady", authority),
        condition("PrincipalCertificateReady", principal),
        condition("ResourceProxyCertificateReady", proxy),
        condition("PlacementTolerationConfigured", Ok(tolerations.to_owned())),
        condition("AddOnTemplateReady", template),
        condition("AddonConfigured", worst([config, management])),
        condition("ManifestWorkCreated", works),
        condition("ArgoCDCRDelivered", argocd),
    ]
}

/// Returns true if no image of this program is set, so that agents are not restarted when their certificates are renewed.
fn is_unattended(desired: &DesiredAgent, settings: &Settings) -> bool {
    desired.brings_argocd() && desired.images.or(&settings.images).ours.is_none()
}

/// Returns the first prerequisite with the worst status, or the joined messages if all prerequisites are ready.
fn worst<const N: usize>(prerequisites: [Prerequisite; N]) -> Prerequisite {
    let is = |is: ConditionStatus| move |prerequisite: &&Prerequisite| matches!(prerequisite, Err((other, _)) if *other == is);
    let bad = [ConditionStatus::False, ConditionStatus::Unknown]
        .into_iter()
        .find_map(|it| prerequisites.iter().find(is(it)));
    if let Some(bad) = bad {
        return bad.clone();
    }
    let all: Vec<_> = prerequisites.into_iter().flatten().collect();
    Ok(all.join("; "))
}

fn condition(kind: &'static str, prerequisite: Prerequisite) -> StatusCondition {
    let (is, reason, message) = match prerequisite {
        Ok(message) => (ConditionStatus::True, ["Success"; 2], message),
        Err((ConditionStatus::False, message)) if kind == "ServerDiscovered" => (
            ConditionStatus::False,
            ["ArgoCDAgentFailed", "ServerNotDiscovered"],
            message,
        ),
        Err((ConditionStatus::False, message)) => (ConditionStatus::False, ["ArgoCDAgentFailed", "Failed"], message),
        Err((is, message)) => (is, ["Reconciling", "InProgress"], message),
    };
    StatusCondition {
        kind,
        is,
        reason,
        message,
    }
}

/// Returns the certificate in a Secret of Argo CD's namespace if its owner has to renew it.
fn renewed_by_its_owner<'i>(cache: &'i Cache, name: &str) -> Option<&'i Certificate> {
    argocd_agent::reconcile::renewed_by_its_owner(cache.certificate(names::CA_SECRET), cache.certificate(name)?)
}

/// Returns the reason why a certificate that this controller does not renew is not ready: little of its lifetime is left.
fn not_late(cache: &Cache, name: &str, now: Timestamp) -> Result<(), (ConditionStatus, String)> {
    let Some(late) = renewed_by_its_owner(cache, name).filter(|it| it.renews_at() <= now) else {
        return Ok(());
    };
    let (argocd, common_name, end) = (cache.argocd(), &late.common_name, format_time(late.not_after));
    Err((
        ConditionStatus::False,
        format!(
            "the certificate {common_name} in Secret {argocd}/{name} is valid until {end}, and this controller does not renew it: replace it"
        ),
    ))
}

/// Returns when the next certificate that its owner has to renew is late.
pub(super) fn requeue_after(cache: &Cache, now: Timestamp) -> Option<Timestamp> {
    [names::CA_SECRET, names::PRINCIPAL_TLS, names::RESOURCE_PROXY_TLS]
        .into_iter()
        .filter_map(|name| renewed_by_its_owner(cache, name).map(Certificate::renews_at))
        .filter(|at| *at > now)
        .min()
}

fn authority(cache: &Cache) -> Prerequisite {
    let argocd = cache.argocd();
    let name = names::CA_SECRET;
    let Some(ca) = cache.certificate(name) else {
        return Err((
            ConditionStatus::Unknown,
            format!(
                "Secret {argocd}/{name} of type kubernetes.io/tls does not exist yet: delete a Secret of another type \
                 if it has this name"
            ),
        ));
    };
    match ca.leaf() {
        None => Err((
            ConditionStatus::False,
            format!(
                "Secret {argocd}/{name} has no certificate that matches its key: correct it, or delete it to replace \
                 the CA of all agents"
            ),
        )),
        Some(signer) => Ok(match (&ca.next, ca.certificates.len()) {
            (Some(_), _) => format!(
                "{} signs; the next CA is being distributed to the clusters",
                signer.common_name
            ),
            (None, 1) => format!("{} signs", signer.common_name),
            (None, _) => format!(
                "{} signs; the certificates of the previous CA are being replaced",
                signer.common_name
            ),
        }),
    }
}

fn leaf(cache: &Cache, name: &str, now: Timestamp) -> Prerequisite {
    not_late(cache, name, now)?;
    let Some(certificate) = cache.certificate(name) else {
        let message = "the certificate does not exist yet".to_owned();
        return Err((ConditionStatus::Unknown, message));
    };
    let authorities = cache.certificate(names::CA_SECRET).map(|ca| &ca.certificates[..]);
    let mut authorities = authorities.unwrap_or_default().iter();
    let is_issuer = |it: &&Certificate| certificate.leaf().is_some_and(|leaf| leaf.is_issued_by(it));
    Ok(match authorities.find(is_issuer) {
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
        let member = |message| Member {
            name: "eu1",
            status: AgentStatus {
                state: State::Degraded,
                is_installed: true,
                message,
            },
            not_after: None,
        };
        let shown = |message| {
            member(message).to_json()["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(shown("no\nconnection"), "no connection");
        assert!(shown(&long).starts_with(" [31mxxx") && shown(&long).len() <= 200);
    }
}
