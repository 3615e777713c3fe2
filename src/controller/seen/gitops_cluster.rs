//! What is seen of a GitOpsCluster, in either dialect, and of the Placement that it names.

use super::{Text, read};
use crate::agent::Wanted;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// A GitOpsCluster.
#[derive(Clone, Debug, PartialEq)]
pub struct GitOpsCluster {
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
    /// Which form of it this is.
    pub version: Box<str>,
    /// Which form of what is asked for this is.
    pub generation: i64,
    /// Whether it is going.
    pub deleting: bool,
    /// What has to be done before it is gone.
    pub finalizers: Vec<String>,
    /// What is asked for.
    pub spec: Spec,
    /// What its status says, whoever wrote it.
    pub status: Map<String, Value>,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The name of the Placement.
    pub placement: Box<str>,
    /// Where the Placement is said to be.
    pub placement_namespace: Option<Box<str>>,
    /// Where Argo CD is said to be.
    pub argocd: Option<Box<str>>,
    /// Whether it is written as argocd-pull-integration has it, and not as Red Hat ACM has.
    pub is_of_pull: bool,
    /// Whether clusters shall be registered without a credential.
    pub registers: bool,
    /// What is asked for of argocd-agent, if it is.
    pub agent: Option<Wanted>,
    /// What is asked for and not done, by its fields.
    pub not_done: Vec<&'static str>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    spec: Asked,
    status: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    #[serde(default)]
    generation: i64,
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(default)]
    finalizers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    placement_ref: Reference,
    argo_server: Option<Server>,
    #[serde(rename = "argoCDAgentAddon")]
    agent_addon: Option<IgnoredAny>,
    gitops_addon: Option<Addon>,
    create_blank_cluster_secrets: Option<bool>,
    #[serde(default)]
    create_policy_template: bool,
    #[serde(default)]
    managed_service_account_ref: String,
}

#[derive(Deserialize)]
struct Reference {
    #[serde(default)]
    name: Box<str>,
    namespace: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Server {
    argo_namespace: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Addon {
    #[serde(default)]
    enabled: bool,
    #[serde(rename = "argoCDAgent")]
    agent: Option<Agent>,
}

#[derive(Deserialize)]
struct Agent {
    #[serde(default)]
    enabled: bool,
}

impl GitOpsCluster {
    /// Reads a GitOpsCluster's JSON.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str) -> Result<Self, String> {
        let Object { metadata, spec, status } = read(text)?;
        Ok(Self {
            uid: metadata.uid,
            version: metadata.resource_version,
            generation: metadata.generation,
            deleting: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers,
            spec: spec.into(),
            status: status.unwrap_or_default(),
        })
    }
}

impl From<Asked> for Spec {
    fn from(asked: Asked) -> Self {
        let some = |text: Box<str>| Some(text).filter(|text| !text.is_empty());
        let addon = asked.gitops_addon.as_ref().filter(|addon| addon.enabled);
        let by_addon = addon
            .and_then(|addon| addon.agent.as_ref())
            .is_some_and(|agent| agent.enabled);
        let wants_agent = asked.agent_addon.is_some() || by_addon;
        let not_done = [
            (asked.agent_addon.is_some(), "argoCDAgentAddon"),
            (asked.create_policy_template, "createPolicyTemplate"),
            (addon.is_some(), "gitopsAddon"),
            (
                !asked.managed_service_account_ref.is_empty(),
                "managedServiceAccountRef",
            ),
        ];
        Self {
            is_of_pull: asked.argo_server.is_none(),
            placement: asked.placement_ref.name,
            placement_namespace: asked.placement_ref.namespace.and_then(some),
            argocd: asked
                .argo_server
                .and_then(|server| server.argo_namespace)
                .and_then(some),
            registers: asked.create_blank_cluster_secrets.unwrap_or(!wants_agent) || !wants_agent,
            agent: None,
            not_done: not_done
                .into_iter()
                .filter_map(|(is_asked, field)| is_asked.then_some(field))
                .collect(),
        }
    }
}

/// A Placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// How many managed clusters it says that it selects; nothing as long as it does not say.
    pub selected: Option<usize>,
}

impl Placement {
    /// Reads a Placement's JSON.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Status {
            number_of_selected_clusters: Option<usize>,
        }
        let Text::<Status> { status, .. } = read(text)?;
        Ok(Self {
            selected: status.and_then(|status| status.number_of_selected_clusters),
        })
    }
}

/// Reads from the JSON of a Namespace whether GitOpsClusters of other namespaces may have cluster Secrets written there.
///
/// # Errors
/// With what is wrong with it, which the API server lets nobody write.
pub fn is_open(text: &str) -> Result<bool, String> {
    let Text::<IgnoredAny> { metadata, .. } = read(text)?;
    Ok(metadata.label(OPEN) == Some("true"))
}

/// The label by which an administrator lets GitOpsClusters of other namespaces have cluster Secrets written into one.
pub const OPEN: &str = "apps.open-cluster-management.io/gitops-argo-namespace";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(spec: &Value) -> Spec {
        let mut whole = json!({"placementRef": {"name": "all"}});
        for (key, value) in spec.as_object().expect("an object") {
            whole[key] = value.clone();
        }
        let text = json!({"metadata": {}, "spec": whole}).to_string();
        GitOpsCluster::read(&text).expect("a GitOpsCluster").spec
    }

    #[test]
    fn clusters_are_registered_where_no_agent_is_asked_for_or_it_is_asked_for() {
        let argocd = json!({"argoNamespace": "argocd"});
        let agent = |enabled: bool| json!({"enabled": enabled, "argoCDAgent": {"enabled": true}});
        for (registers, asked) in [
            (true, json!({"argoServer": argocd})),
            (true, json!({"argoServer": argocd, "createBlankClusterSecrets": false})),
            (true, json!({"argoServer": argocd, "gitopsAddon": {"enabled": true}})),
            (true, json!({"argoServer": argocd, "gitopsAddon": agent(false)})),
            (false, json!({"argoServer": argocd, "gitopsAddon": agent(true)})),
            (
                true,
                json!({"argoServer": argocd, "gitopsAddon": agent(true), "createBlankClusterSecrets": true}),
            ),
            (false, json!({"argoCDAgentAddon": {}})),
            (
                false,
                json!({"argoCDAgentAddon": {}, "createBlankClusterSecrets": false}),
            ),
            (true, json!({"argoCDAgentAddon": {}, "createBlankClusterSecrets": true})),
        ] {
            assert_eq!(spec(&asked).registers, registers, "{asked}");
        }
    }

    #[test]
    fn what_is_not_done_is_named_where_it_is_asked_for() {
        let off = json!({
            "createPolicyTemplate": false, "managedServiceAccountRef": "", "gitopsAddon": {"enabled": false},
            "argoServer": {"cluster": "notused"},
        });
        assert_eq!(spec(&off).not_done, [""; 0]);
        let on = json!({
            "createPolicyTemplate": true, "managedServiceAccountRef": "push", "gitopsAddon": {"enabled": true},
            "argoCDAgentAddon": {},
        });
        let all = [
            "argoCDAgentAddon",
            "createPolicyTemplate",
            "gitopsAddon",
            "managedServiceAccountRef",
        ];
        assert_eq!(spec(&on).not_done, all);
    }

    #[test]
    fn the_dialect_is_that_of_the_fields() {
        assert!(spec(&json!({"argoCDAgentAddon": {}})).is_of_pull);
        let acm = spec(&json!({"argoServer": {"argoNamespace": "gitops"}}));
        assert_eq!((acm.is_of_pull, acm.argocd.as_deref()), (false, Some("gitops")));
        assert_eq!(spec(&json!({"argoServer": {"argoNamespace": ""}})).argocd, None);
    }

    #[test]
    fn a_placement_that_has_not_said_yet_selects_nobody_knows_how_many() {
        for (selected, text) in [
            (None, r#"{"metadata":{}}"#),
            (None, r#"{"metadata":{},"status":{}}"#),
            (Some(0), r#"{"metadata":{},"status":{"numberOfSelectedClusters":0}}"#),
            (Some(3), r#"{"metadata":{},"status":{"numberOfSelectedClusters":3}}"#),
        ] {
            assert_eq!(Placement::read(text), Ok(Placement { selected }), "{text}");
        }
    }

    #[test]
    fn only_the_label_opens_a_namespace() {
        for (value, open) in [("true", true), ("false", false), ("", false)] {
            let text = json!({"metadata": {"labels": {OPEN: value}}}).to_string();
            assert_eq!(is_open(&text), Ok(open), "{value}");
        }
        assert_eq!(is_open(r#"{"metadata":{}}"#), Ok(false));
    }
}
