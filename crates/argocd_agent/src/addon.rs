//! The objects that configure the installation of the add-on in OCM: our own Placements, a configuration for each GitOpsCluster,
//! and the ClusterManagementAddOn.

use super::{Server, labels, metadata};
use hub_state::DesiredAgent;
use ocm::argocd_agent::{self as names, AddonPlacement};
use ocm::management_addon::strategy_at;
use primitives::object_ref::ObjectRef;
use serde_json::{Value, json};

const GROUP: &str = "addon.open-cluster-management.io";
const API_VERSION: &str = "addon.open-cluster-management.io/v1alpha1";
const TEMPLATES: &str = "addontemplates";
const CONFIGS: &str = "addondeploymentconfigs";

/// Returns a Placement of a GitOpsCluster that OCM's scheduler ignores: its PlacementDecisions are ours. So a gap in the decisions
/// of the user's Placement uninstalls nothing, and the user's Placement does not need changes.
pub fn placement(gitops_cluster: &ObjectRef, placement: AddonPlacement) -> Value {
    let namespace = &gitops_cluster.namespace;
    let mut metadata = metadata(gitops_cluster, namespace, &placement.name(&gitops_cluster.name));
    metadata["annotations"]["cluster.open-cluster-management.io/experimental-scheduling-disable"] = "true".into();
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": metadata,
        "spec": {},
    })
}

/// Returns the AddOnDeploymentConfig of a GitOpsCluster: the namespace into which OCM installs the add-on, and the address of the
/// principal. It may change in place: the address is the same for all clusters during a rollout.
pub fn deployment_config(gitops_cluster: &ObjectRef, argocd: &str, desired: &DesiredAgent, server: &Server) -> Value {
    let ObjectRef { namespace, name } = names::deployment_config(gitops_cluster, argocd);
    json!({
        "apiVersion": API_VERSION,
        "kind": "AddOnDeploymentConfig",
        "metadata": metadata(gitops_cluster, &namespace, &name),
        "spec": {
            "agentInstallNamespace": desired.namespace,
            "customizedVariables": [
                {"name": "PRINCIPAL_ADDRESS", "value": server.address},
                {"name": "PRINCIPAL_PORT", "value": server.port},
            ],
        },
    })
}

/// The installation of the add-on for one GitOpsCluster: its install strategy entries.
#[derive(Clone, Debug)]
pub struct Entry {
    pub gitops_cluster: ObjectRef,
    pub config: ObjectRef,
    /// The name of its AddOnTemplate.
    pub template: String,
    /// The name of the AddOnTemplate that some of its clusters already have, during a [rollout](super::rollout).
    pub next: Option<String>,
}

/// Returns the ClusterManagementAddOn for these GitOpsClusters, given the current one. Keeps the settings of others: the display
/// name, other kinds of configuration, and other Placements. For a cluster of two GitOpsClusters the later entry wins (OCM's
/// rule).
pub fn management(entries: &[Entry], existing: Option<&Value>) -> Value {
    let existing = |path: &str| existing.and_then(|existing| existing.pointer(path));
    let list = |path: &str| existing(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut placements = list("/spec/installStrategy/placements");
    placements.retain(|placement| !is_ours(placement));
    placements.extend(entries.iter().flat_map(strategies));
    let mut configs = list("/spec/supportedConfigs");
    // The first one of Argo CD's namespace, whose entries are last, if it has any.
    let preferred = entries.last().map(|entry| &entry.gitops_cluster.namespace);
    let is_preferred = |entry: &&Entry| Some(&entry.gitops_cluster.namespace) == preferred;
    if let Some(first) = entries.iter().find(is_preferred) {
        let ObjectRef { namespace, name } = &first.config;
        configs.retain(|config| {
            let is_resource = |resource| config["group"] == GROUP && config["resource"] == resource;
            !is_resource(TEMPLATES) && !is_resource(CONFIGS)
        });
        // OCM reads manifestConfigs and the registration from the default template only. Its API v1beta1, since OCM 1.3, needs a
        // default for every type of configuration.
        let config = json!({"namespace": **namespace, "name": **name});
        let ours = [
            json!({"group": GROUP, "resource": TEMPLATES, "defaultConfig": {"name": first.template}}),
            json!({"group": GROUP, "resource": CONFIGS, "defaultConfig": config}),
        ];
        configs.splice(0..0, ours);
    }
    let mut spec = json!({
        "supportedConfigs": configs,
        "installStrategy": {"type": "Placements", "placements": placements},
    });
    if existing("/spec/addOnMeta").is_none() {
        spec["addOnMeta"] = json!({
            "displayName": "argocd-agent",
            "description": "Argo CD on managed clusters, connected to the hub's by argocd-agent.",
        });
    }
    json!({
        "apiVersion": API_VERSION,
        "kind": "ClusterManagementAddOn",
        "metadata": {
            "name": names::ADDON,
            "labels": labels(),
            // Any other value disables OCM's add-on manager for this add-on.
            "annotations": {"addon.open-cluster-management.io/lifecycle": "addon-manager"},
        },
        "spec": spec,
    })
}

/// Returns the AddOnTemplate that a ClusterManagementAddOn has for a Placement of a GitOpsCluster now. An [`Entry`] keeps its
/// template while the desired one is unknown, because OCM uninstalls the add-on if the entry is missing.
pub fn template_at<'v>(gitops: &ObjectRef, placement: AddonPlacement, existing: &'v Value) -> Option<&'v str> {
    template_names(strategy_at(gitops, placement, existing)?).next()
}

/// Returns the AddOnDeploymentConfig that a ClusterManagementAddOn has for a GitOpsCluster now. Earlier versions created it in the
/// namespace of the GitOpsCluster: OCM keeps it until the one in Argo CD's namespace exists.
pub fn config_at(gitops: &ObjectRef, existing: &Value) -> Option<ObjectRef> {
    let configs = strategy_at(gitops, AddonPlacement::All, existing)?["configs"].as_array()?;
    let config = configs.iter().find(|config| config["resource"] == CONFIGS)?;
    Some(ObjectRef::new(config["namespace"].as_str()?, config["name"].as_str()?))
}

/// Returns true if we wrote an install strategy entry, for a GitOpsCluster that may no longer exist.
fn is_ours(placement: &Value) -> bool {
    let prefix = format!("{}-", names::ADDON);
    template_names(placement).any(|name| name.starts_with(&prefix))
}

fn template_names(placement: &Value) -> impl Iterator<Item = &str> {
    let configs = placement["configs"].as_array().into_iter().flatten();
    configs
        .filter(|config| config["resource"] == TEMPLATES)
        .filter_map(|config| config["name"].as_str())
}

/// Returns the install strategy entries of a GitOpsCluster. For a cluster of both the later entry wins (OCM's rule).
fn strategies(entry: &Entry) -> impl Iterator<Item = Value> {
    let (ObjectRef { namespace, name }, config) = (&entry.gitops_cluster, &entry.config);
    let all = (AddonPlacement::All, Some(&entry.template));
    let next = (AddonPlacement::Next, entry.next.as_ref());
    [all, next].into_iter().filter_map(move |(placement, template)| {
        Some(json!({
            "namespace": **namespace,
            "name": placement.name(name),
            "configs": [
                {"group": GROUP, "resource": TEMPLATES, "name": template?},
                {"group": GROUP, "resource": CONFIGS, "namespace": *config.namespace, "name": *config.name},
            ],
            // We control the pace: OCM's strategies do not wait for the health of the add-on.
            "rolloutStrategy": {"type": "All"},
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference;

    /// Returns the entry of a GitOpsCluster with these numbers of its templates.
    fn entry(name: &str, template: u8, next: Option<u8>) -> Entry {
        let template_of = |number| format!("argocd-agent-addon-argocd-{name}-{number}");
        let gitops_cluster = ObjectRef::new("argocd", name);
        Entry {
            config: names::deployment_config(&gitops_cluster, "argocd"),
            gitops_cluster,
            template: template_of(template),
            next: next.map(template_of),
        }
    }

    #[test]
    fn patches_the_add_on_only_for_changes() {
        let entries = [entry("a", 1, None), entry("b", 1, Some(2))];
        let written = management(&entries, None);
        assert_eq!(difference(&management(&entries, Some(&written)), &written), None);
        let strategies = written.pointer("/spec/installStrategy/placements");
        let strategies = strategies.and_then(Value::as_array).expect("they are there");
        let names: Vec<_> = strategies.iter().map(|strategy| &strategy["name"]).collect();
        // The later counts.
        assert_eq!(names, ["a-argocd-agent", "b-argocd-agent", "b-argocd-agent-next"]);
        let all = json!({"type": "All"});
        assert!(strategies.iter().all(|strategy| strategy["rolloutStrategy"] == all));
        for (namespace, name, first, next) in [
            ("argocd", "a", Some("argocd-agent-addon-argocd-a-1"), None),
            (
                "argocd",
                "b",
                Some("argocd-agent-addon-argocd-b-1"),
                Some("argocd-agent-addon-argocd-b-2"),
            ),
            ("other", "b", None, None),
        ] {
            let templates = [AddonPlacement::All, AddonPlacement::Next]
                .map(|placement| template_at(&ObjectRef::new(namespace, name), placement, &written));
            assert_eq!(templates, [first, next]);
        }
        let newer = management(&[entry("a", 2, None)], Some(&written));
        let patch = difference(&newer, &written).expect("a template and a place less");
        let placements = patch.pointer("/spec/installStrategy/placements");
        assert_eq!(placements.and_then(Value::as_array).map(Vec::len), Some(1));
        let template = patch.pointer("/spec/supportedConfigs/0/defaultConfig/name");
        assert_eq!(template, Some(&json!("argocd-agent-addon-argocd-a-2")));
    }

    #[test]
    fn every_type_of_configuration_has_a_default() {
        let written = management(&[entry("a", 1, None)], None);
        let expected = json!([
            {"group": GROUP, "resource": TEMPLATES, "defaultConfig": {"name": "argocd-agent-addon-argocd-a-1"}},
            {"group": GROUP, "resource": CONFIGS, "defaultConfig": {"namespace": "argocd", "name": "a-argocd-agent"}},
        ]);
        assert_eq!(written["spec"]["supportedConfigs"], expected);
        let mut of_tenant = entry("t", 1, None);
        of_tenant.gitops_cluster = ObjectRef::new("team", "t");
        let both = management(&[of_tenant, entry("a", 1, None)], None);
        assert_eq!(
            both["spec"]["supportedConfigs"], expected,
            "that of Argo CD's namespace"
        );
        let last = management(&[], Some(&written));
        assert_eq!(last["spec"]["supportedConfigs"], expected, "without GitOpsClusters");
    }

    #[test]
    fn keeps_fields_that_others_added_to_the_add_on() {
        let elsewhere = json!({"namespace": "argocd", "name": "placement", "rolloutStrategy": {"type": "All"}});
        let existing = json!({
            "metadata": {"annotations": {"addon.open-cluster-management.io/lifecycle": "self", "theirs": "1"}},
            "spec": {
                "addOnMeta": {"displayName": "Argo CD Agent"},
                "supportedConfigs": [
                    {"group": GROUP, "resource": TEMPLATES, "defaultConfig": {"name": "theirs"}},
                    {"group": "example.com", "resource": "settings"},
                ],
                "installStrategy": {"type": "Placements", "placements": [elsewhere]},
            },
        });
        let management = management(&[entry("a", 1, None)], Some(&existing));
        assert_eq!(management.pointer("/spec/addOnMeta"), None);
        assert_eq!(
            management.pointer("/spec/installStrategy/placements/0"),
            Some(&elsewhere)
        );
        assert_eq!(
            management.pointer("/spec/supportedConfigs/2/resource"),
            Some(&json!("settings"))
        );
        let patch = difference(&management, &existing).expect("much");
        assert_eq!(patch.pointer("/metadata/annotations/theirs"), None);
    }

    #[test]
    fn deployment_config_contains_the_principals_address() {
        let server = Server {
            address: "hub.example.com".into(),
            port: "443".into(),
        };
        let desired = DesiredAgent {
            namespace: "gitops".into(),
            ..DesiredAgent::default()
        };
        let config = deployment_config(&ObjectRef::new("argocd", "fleet"), "argocd", &desired, &server);
        assert_eq!(
            config["spec"],
            json!({
                "agentInstallNamespace": "gitops",
                "customizedVariables": [
                    {"name": "PRINCIPAL_ADDRESS", "value": "hub.example.com"},
                    {"name": "PRINCIPAL_PORT", "value": "443"},
                ],
            })
        );
    }
}
