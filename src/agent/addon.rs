//! What tells OCM where the add-on goes: Placements of our own, a configuration for each GitOpsCluster, and the add-on itself.

use super::{Server, Wanted, labels, names, owner};
use serde_json::{Map, Value, json};

const GROUP: &str = "addon.open-cluster-management.io";
const API_VERSION: &str = "addon.open-cluster-management.io/v1alpha1";
const TEMPLATES: &str = "addontemplates";
const CONFIGS: &str = "addondeploymentconfigs";

/// The Placement of a GitOpsCluster that OCM's scheduler leaves alone: its decisions are [`super::decisions()`]. So no gap in the
/// decisions of the user's Placement uninstalls anything, and that one need not be rewritten.
#[must_use]
pub fn placement(goc: (&str, &str)) -> Value {
    let mut annotations = owner(goc);
    annotations["cluster.open-cluster-management.io/experimental-scheduling-disable"] = "true".into();
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": {
            "namespace": goc.0, "name": names::placement(goc.1), "labels": labels(), "annotations": annotations,
        },
        "spec": {},
    })
}

/// Into which namespace OCM brings a GitOpsCluster's add-on, and where its agents find the principal. This may change in place: an
/// address is true for all clusters at once, whatever the rollout.
#[must_use]
pub fn deployment_config(goc: (&str, &str), wanted: &Wanted, server: &Server) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "AddOnDeploymentConfig",
        "metadata": {
            "namespace": goc.0, "name": names::deployment_config(goc.1), "labels": labels(), "annotations": owner(goc),
        },
        "spec": {
            "agentInstallNamespace": wanted.namespace,
            "customizedVariables": [
                {"name": "PRINCIPAL_ADDRESS", "value": server.address},
                {"name": "PRINCIPAL_PORT", "value": server.port},
            ],
        },
    })
}

/// The add-on for one GitOpsCluster.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The GitOpsCluster's namespace and name.
    pub goc: (&'a str, &'a str),
    /// The name of its AddOnTemplate.
    pub template: &'a str,
    /// Its `rolloutStrategy`, as OCM has it.
    pub rollout: Option<&'a Value>,
}

/// The ClusterManagementAddOn, for these GitOpsClusters, given the one that is there. What others have put there stays: how it is
/// displayed, kinds of configuration that are not ours, and where else it is installed. For a cluster of two GitOpsClusters the
/// later counts (OCM's rule).
#[must_use]
pub fn management(entries: &[Entry<'_>], there: Option<&Value>) -> Value {
    let there = |path: &str| there.and_then(|there| there.pointer(path));
    let list = |path: &str| there(path).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut placements = list("/spec/installStrategy/placements");
    placements.retain(|placement| !is_ours(placement));
    placements.extend(entries.iter().map(strategy));
    let mut templates = json!({"group": GROUP, "resource": TEMPLATES});
    if let Some(first) = entries.first() {
        // OCM takes how to apply manifests and whose certificates there are from this one only.
        templates["defaultConfig"] = json!({"name": first.template});
    }
    let mut configs = vec![templates, json!({"group": GROUP, "resource": CONFIGS})];
    configs.extend(list("/spec/supportedConfigs").into_iter().filter(|config| {
        let is = |resource| config["group"] == GROUP && config["resource"] == resource;
        !is(TEMPLATES) && !is(CONFIGS)
    }));
    let mut spec = json!({
        "supportedConfigs": configs,
        "installStrategy": {"type": "Placements", "placements": placements},
    });
    if there("/spec/addOnMeta").is_none() {
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
            // Another value takes it out of the hands of OCM's add-on manager.
            "annotations": {"addon.open-cluster-management.io/lifecycle": "addon-manager"},
        },
        "spec": spec,
    })
}

/// The AddOnTemplate that a ClusterManagementAddOn has for a GitOpsCluster now: what its [`Entry`] keeps for as long as it is not known
/// what else it should be, because one that is left out is uninstalled.
#[must_use]
pub fn present_template<'v>((namespace, name): (&str, &str), there: &'v Value) -> Option<&'v str> {
    let placements = there.pointer("/spec/installStrategy/placements")?.as_array()?;
    let placement = names::placement(name);
    let is_its = |it: &&Value| it["namespace"] == namespace && it["name"] == *placement;
    template_names(placements.iter().find(is_its)?).next()
}

/// Whether somewhere the add-on is installed is so by us, for a GitOpsCluster that may be gone by now.
fn is_ours(placement: &Value) -> bool {
    let prefix = format!("{}-", names::ADDON);
    template_names(placement).any(|name| name.starts_with(&prefix))
}

/// The AddOnTemplates that it has there.
fn template_names(placement: &Value) -> impl Iterator<Item = &str> {
    let configs = placement["configs"].as_array().into_iter().flatten();
    configs
        .filter(|config| config["resource"] == TEMPLATES)
        .filter_map(|config| config["name"].as_str())
}

/// Where and how the add-on is installed for a GitOpsCluster.
fn strategy(entry: &Entry<'_>) -> Value {
    let (namespace, name) = entry.goc;
    json!({
        "namespace": namespace,
        "name": names::placement(name),
        "configs": [
            {"group": GROUP, "resource": TEMPLATES, "name": entry.template},
            {"group": GROUP, "resource": CONFIGS, "namespace": namespace, "name": names::deployment_config(name)},
        ],
        "rolloutStrategy": rollout(entry.rollout),
    })
}

/// A rollout strategy with what the API server adds to it (the defaults in OCM's CRD), so that it is recognised afterwards.
fn rollout(strategy: Option<&Value>) -> Value {
    let mut strategy: Map<String, Value> = strategy.and_then(Value::as_object).cloned().unwrap_or_default();
    strategy.entry("type").or_insert_with(|| "All".into());
    for part in ["all", "progressive", "progressivePerGroup"] {
        let Some(Value::Object(part)) = strategy.get_mut(part) else {
            continue;
        };
        part.entry("maxFailures").or_insert_with(|| 0.into());
        part.entry("minSuccessTime").or_insert_with(|| "0".into());
        part.entry("progressDeadline").or_insert_with(|| "None".into());
    }
    strategy.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::difference;

    fn entry<'a>(name: &'a str, template: &'a str, rollout: Option<&'a Value>) -> Entry<'a> {
        Entry {
            goc: ("argocd", name),
            template,
            rollout,
        }
    }

    #[test]
    fn the_add_on_is_written_once_and_again_only_for_what_changes() {
        let progressive = json!({"type": "Progressive", "progressive": {"maxConcurrency": 5}});
        let entries = [
            entry("a", "argocd-agent-addon-argocd-a-1", None),
            entry("b", "argocd-agent-addon-argocd-b-1", Some(&progressive)),
        ];
        let written = management(&entries, None);
        assert_eq!(difference(&management(&entries, Some(&written)), &written), None);
        let strategies = written
            .pointer("/spec/installStrategy/placements")
            .expect("they are there");
        assert_eq!(strategies[0]["rolloutStrategy"], json!({"type": "All"}));
        assert_eq!(
            strategies[1]["rolloutStrategy"],
            json!({"type": "Progressive", "progressive": {
                "maxConcurrency": 5, "maxFailures": 0, "minSuccessTime": "0", "progressDeadline": "None",
            }})
        );
        assert_eq!(
            present_template(("argocd", "b"), &written),
            Some("argocd-agent-addon-argocd-b-1")
        );
        assert_eq!(present_template(("other", "b"), &written), None);
        let newer = [entry("a", "argocd-agent-addon-argocd-a-2", None)];
        let patch = difference(&management(&newer, Some(&written)), &written).expect("a template and a place less");
        assert_eq!(
            patch
                .pointer("/spec/installStrategy/placements")
                .and_then(Value::as_array)
                .map(Vec::len),
            Some(1)
        );
        assert_eq!(
            patch.pointer("/spec/supportedConfigs/0/defaultConfig/name"),
            Some(&json!("argocd-agent-addon-argocd-a-2"))
        );
    }

    #[test]
    fn what_others_have_put_there_stays() {
        let elsewhere = json!({"namespace": "argocd", "name": "placement", "rolloutStrategy": {"type": "All"}});
        let there = json!({
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
        let management = management(&[entry("a", "argocd-agent-addon-argocd-a-1", None)], Some(&there));
        assert_eq!(management.pointer("/spec/addOnMeta"), None);
        assert_eq!(
            management.pointer("/spec/installStrategy/placements/0"),
            Some(&elsewhere)
        );
        assert_eq!(
            management.pointer("/spec/supportedConfigs/2/resource"),
            Some(&json!("settings"))
        );
        let patch = difference(&management, &there).expect("much");
        assert_eq!(patch.pointer("/metadata/annotations/theirs"), None);
    }

    #[test]
    fn a_deployment_config_says_where_the_principal_is() {
        let server = Server {
            address: "hub.example.com".into(),
            port: "443".into(),
        };
        let wanted = Wanted {
            namespace: "gitops".into(),
            ..Wanted::default()
        };
        let config = deployment_config(("argocd", "fleet"), &wanted, &server);
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
