//! The model of a GitOpsCluster, in either dialect.

use super::{DesiredAgent, Images, Mode, parse};
use crate::annotations::DISABLE_IMAGE_SYNC;
use ocm::gitops_cluster::{AgentImages, AgentSettings, AskedAgent, Field, GitOpsAddon, GitOpsClusterSpec};
use primitives::object_ref::ObjectRef;
use runtime::metadata::Metadata;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::num::NonZeroU16;
use std::sync::Arc;

/// The default namespace of Argo CD on managed clusters in argocd-pull-integration.
const ARGOCD: &str = "argocd";

/// The field whose absence asks Red Hat ACM for push credentials.
pub const PUSH: &str = "createBlankClusterSecrets";

#[derive(Clone, Debug, PartialEq)]
pub struct GitOpsCluster {
    pub uid: Box<str>,
    pub version: Box<str>,
    pub generation: i64,
    pub deleting: bool,
    pub finalizers: Vec<String>,
    pub spec: Spec,
    /// The status of all writers.
    pub status: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    pub placement: Box<str>,
    pub placement_namespace: Option<Box<str>>,
    pub argocd: Option<Box<str>>,
    /// True for the dialect of argocd-pull-integration, false for that of Red Hat ACM.
    pub is_pull_integration: bool,
    /// True if clusters are to be registered without credentials.
    pub creates_blank_secrets: bool,
    pub agent: Option<DesiredAgent>,
    /// True if argocd-agent is requested with invalid settings: an unusable mode or port, which an older CRD let through. The
    /// existing installation must then stay unchanged. The field is in [`Spec::not_implemented`].
    pub is_agent_invalid: bool,
    pub not_implemented: Vec<&'static str>,
    /// The fields that are allowed only in the namespace of Argo CD, but set in another one. They are ignored.
    pub refused: Vec<&'static str>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    spec: GitOpsClusterSpec,
    status: Option<Map<String, Value>>,
}

impl GitOpsCluster {
    pub fn placement(&self, object_ref: &ObjectRef) -> ObjectRef {
        ObjectRef {
            namespace: Arc::clone(&object_ref.namespace),
            name: (*self.spec.placement).into(),
        }
    }

    pub fn from_json(text: &str) -> Result<Self, String> {
        let Object { metadata, spec, status } = parse(text)?;
        let mut spec = Spec::from(spec);
        spec.confine(&metadata.namespace);
        if let Some(agent) = &mut spec.agent {
            let is_set = |key: &&str| metadata.annotation(key) == Some("true");
            agent.follows_principal = !DISABLE_IMAGE_SYNC.iter().any(is_set);
        }
        Ok(Self {
            uid: metadata.uid,
            version: metadata.resource_version,
            generation: metadata.generation,
            deleting: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers,
            spec,
            status: status.unwrap_or_default(),
        })
    }

    /// Returns the fields that decide about managed clusters.
    pub fn inputs(&self) -> (&Spec, bool, &[String]) {
        (&self.spec, self.deleting, &self.finalizers)
    }
}

impl Spec {
    /// Returns true if argocd-agent is requested or may be: invalid settings are no reason to remove anything.
    pub fn may_have_agent(&self) -> bool {
        self.agent.is_some() || self.is_agent_invalid
    }

    /// Resets the fields that a GitOpsCluster outside the namespace of Argo CD must not set: the address in the principal's
    /// certificate, and the images and components on clusters. The fields that had a value are listed in [`Spec::refused`].
    fn confine(&mut self, namespace: &str) {
        if self.argocd.as_deref().is_none_or(|argocd| *argocd == *namespace) {
            return;
        }
        let Some(agent) = &mut self.agent else { return };
        let default = DesiredAgent::default();
        let set = [
            (agent.address != default.address, "the principal's server address"),
            (agent.port != default.port, "the principal's server port"),
            (agent.images != default.images, "agent.images"),
            (agent.operator, "agent.operator"),
            (agent.namespace != default.namespace, "argoCDAgentAddon.agentNamespace"),
            (
                agent.argocd_manifests.is_some(),
                "argoCDAgentAddon.argoCDCRManifestWork",
            ),
        ];
        let set = set.into_iter().filter(|(is_set, _)| *is_set);
        self.refused = set.map(|(_, field)| field).collect();
        *agent = DesiredAgent {
            mode: agent.mode,
            rollout: agent.rollout.take(),
            revoked: std::mem::take(&mut agent.revoked),
            ..default
        };
    }
}

impl From<GitOpsClusterSpec> for Spec {
    fn from(requested: GitOpsClusterSpec) -> Self {
        let addon = requested.gitops_addon.as_ref().filter(|addon| is_true(&addon.enabled));
        let agent = requested.asked_agent();
        let agent = agent.map(|agent| desired_agent(agent, addon, requested.agent.as_ref()));
        let wants_agent = agent.is_some();
        let mut not_implemented = not_implemented(&requested, addon, wants_agent);
        not_implemented.extend(agent.as_ref().and_then(|desired| desired.as_ref().err()));
        not_implemented.sort_unstable();
        let server = requested.argo_server.as_ref();
        let placement = requested.placement_ref.as_ref();
        Self {
            is_pull_integration: server.is_none(),
            placement: placement
                .and_then(|placement| non_empty(&placement.name))
                .unwrap_or_default(),
            placement_namespace: placement.and_then(|placement| non_empty(&placement.namespace)),
            argocd: server.and_then(|server| non_empty(&server.argo_namespace)),
            creates_blank_secrets: requested.create_blank_cluster_secrets.unwrap_or(!wants_agent) || !wants_agent,
            is_agent_invalid: matches!(agent, Some(Err(_))),
            agent: agent.and_then(Result::ok),
            not_implemented,
            refused: Vec::new(),
        }
    }
}

fn is_true(field: &Field<bool>) -> bool {
    field.unwrap_or_default()
}

/// Returns the requested fields that are not implemented, except the agent's own fields.
fn not_implemented(requested: &GitOpsClusterSpec, addon: Option<&GitOpsAddon>, wants_agent: bool) -> Vec<&'static str> {
    let has = |field: &Field<String>| field.as_ref().is_some_and(|text| !text.is_empty());
    let operator = requested.agent_addon.as_ref();
    let operator = operator.filter(|addon| has(&addon.operator_namespace));
    let is_operator_elsewhere = operator.is_some_and(|addon| {
        // OCM creates all objects of a template in one namespace.
        let namespace = addon.agent_namespace.as_deref().unwrap_or(ARGOCD);
        addon.operator_namespace.as_deref() != Some(namespace) || !is_operator_chosen(requested.agent.as_ref())
    });
    // Red Hat ACM then creates credentials for Argo CD to push with, except with the add-on.
    let is_pushed = requested.argo_server.is_some() && !is_true(&requested.create_blank_cluster_secrets);
    let mut fields = vec![
        (is_operator_elsewhere, "argoCDAgentAddon.operatorNamespace"),
        (is_pushed && !wants_agent && addon.is_none(), PUSH),
        (is_true(&requested.create_policy_template), "createPolicyTemplate"),
        (has(&requested.managed_service_account_ref), "managedServiceAccountRef"),
    ];
    if let Some(addon) = addon {
        let agent = addon.agent.as_ref();
        let keeps_hub_ca = agent.is_some_and(|agent| agent.propagate_hub_ca.is_some_and(|propagates| !propagates));
        let has_image = agent.is_some_and(|agent| has(&agent.image));
        let has_olm = addon.olm_subscription.as_ref().is_some_and(|olm| is_true(&olm.enabled));
        let overrides = is_true(&addon.override_existing_configs);
        let operator_namespace = has(&addon.git_ops_operator_namespace);
        fields.extend([
            (!wants_agent, "gitopsAddon"),
            (keeps_hub_ca, "gitopsAddon.argoCDAgent.propagateHubCA"),
            (has_image, "gitopsAddon.argoCDAgent.image"),
            (has_olm, "gitopsAddon.olmSubscription"),
            (overrides, "gitopsAddon.overrideExistingConfigs"),
            (has(&addon.git_ops_image), "gitopsAddon.gitOpsImage"),
            (has(&addon.git_ops_namespace), "gitopsAddon.gitOpsNamespace"),
            (has(&addon.git_ops_operator_image), "gitopsAddon.gitOpsOperatorImage"),
            (operator_namespace, "gitopsAddon.gitOpsOperatorNamespace"),
            (has(&addon.reconcile_scope), "gitopsAddon.reconcileScope"),
            (has(&addon.redis_image), "gitopsAddon.redisImage"),
        ]);
    }
    let requested = fields.into_iter().filter(|(is_requested, _)| *is_requested);
    requested.map(|(_, field)| field).collect()
}

fn is_operator_chosen(besides: Option<&AgentSettings>) -> bool {
    let operator = besides.and_then(|settings| settings.operator.as_ref());
    operator.is_some_and(|operator| is_true(&operator.enabled))
}

/// Returns the desired settings of the agent. Returns the name of an invalid field as the error; one that requests to uninstall, as in
/// Red Hat ACM 2.15, contradicts the request for the agent, so it neither installs nor removes anything.
fn desired_agent(
    requested: AskedAgent<'_>,
    addon: Option<&GitOpsAddon>,
    besides: Option<&AgentSettings>,
) -> Result<DesiredAgent, &'static str> {
    let default = DesiredAgent::default();
    let (mut namespace, mut argocd_manifests) = (default.namespace, default.argocd_manifests);
    let (address, (mode, mode_field), (port, port_field)) = match requested {
        AskedAgent::Pull(agent) => {
            let manifests = agent.manifest_work.as_ref().and_then(|work| work.manifests.as_ref());
            argocd_manifests = manifests.filter(|manifests| !manifests.is_empty()).cloned();
            namespace = non_empty(&agent.agent_namespace).unwrap_or(namespace);
            let mode = (&agent.mode, "argoCDAgentAddon.mode");
            let port = (&agent.principal_server_port, "argoCDAgentAddon.principalServerPort");
            (&agent.principal_server_address, mode, port)
        }
        AskedAgent::Acm(_) if addon.is_some_and(|addon| is_true(&addon.uninstall)) => {
            return Err("gitopsAddon.uninstall");
        }
        AskedAgent::Acm(agent) if is_true(&agent.uninstall) => return Err("gitopsAddon.argoCDAgent.uninstall"),
        AskedAgent::Acm(agent) => {
            let mode = (&agent.mode, "gitopsAddon.argoCDAgent.mode");
            let port = (&agent.server_port, "gitopsAddon.argoCDAgent.serverPort");
            (&agent.server_address, mode, port)
        }
    };
    let mode = match non_empty(mode).as_deref() {
        None | Some("managed") => Mode::Managed,
        Some("autonomous") => Mode::Autonomous,
        Some(_) => return Err(mode_field),
    };
    let port = non_empty(port).map(|port| port.parse::<NonZeroU16>());
    let port = port.transpose().map_err(|_| port_field)?;
    let images = besides.and_then(|settings| settings.images.as_ref());
    let image = |of: fn(&AgentImages) -> &Field<Box<str>>| images.and_then(|images| non_empty(of(images)));
    let rollout = besides.and_then(|settings| settings.rollout_strategy.as_ref());
    let revoked = besides.and_then(|settings| settings.revoked_clusters.as_ref());
    Ok(DesiredAgent {
        mode,
        address: non_empty(address),
        port: port.map(|port| port.to_string().into()),
        namespace,
        images: Images {
            agent: image(|images| &images.agent),
            argocd: image(|images| &images.argocd),
            redis: image(|images| &images.redis),
            operator: image(|images| &images.operator),
            ours: image(|images| &images.supervisor),
        },
        rollout: rollout.map(|rollout| json!(rollout)),
        revoked: revoked.into_iter().flatten().cloned().collect(),
        operator: is_operator_chosen(besides),
        argocd_manifests,
        follows_principal: default.follows_principal,
    })
}

fn non_empty(field: &Field<Box<str>>) -> Option<Box<str>> {
    field.clone().into_option().filter(|text| !text.is_empty())
}

/// The label with which an administrator allows cluster Secrets of other namespaces' GitOpsClusters in a Namespace.
pub const OPEN: &str = "apps.open-cluster-management.io/gitops-argo-namespace";

#[cfg(test)]
mod tests;
