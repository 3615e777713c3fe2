//! Reads the fields of an Application that `status` and `doctor` need.

use crate::diagnosis;
use crate::diagnosis::{Condition, Operation, is_our_plugin};
use manifest::text::without_middle;
use ocm::pull_model::{OWN_CONDITIONS, PULL};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of kept texts of an Application, and the maximum length of each, in bytes.
const TEXTS_MAX: usize = 8;
const TEXT_MAX: usize = 2048;

/// The annotation with which a user requests a comparison; Argo CD removes it afterwards.
const REFRESH: &str = "argocd.argoproj.io/refresh";

/// An Application of Argo CD.
#[derive(Deserialize)]
pub(crate) struct Application {
    metadata: Metadata,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    status: ApplicationStatus,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Source {
    plugin: Option<Plugin>,
}

#[derive(Deserialize)]
struct Plugin {
    #[serde(default)]
    name: String,
    parameters: Option<Vec<Parameter>>,
    env: Option<Vec<Parameter>>,
}

/// A parameter, with its value in `string` or `array`, or an environment variable, with its value in `value`.
#[derive(Deserialize)]
struct Parameter {
    #[serde(default)]
    name: String,
    #[serde(alias = "string")]
    value: Option<String>,
    array: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ApplicationStatus {
    conditions: Option<Vec<ReadCondition>>,
    operation_state: Option<OperationState>,
    controller_namespace: Option<String>,
    #[serde(default)]
    sync: Value,
    #[serde(default)]
    health: Value,
}

#[derive(Deserialize)]
struct ReadCondition {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperationState {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    message: String,
    sync_result: Option<SyncResult>,
}

#[derive(Deserialize)]
struct SyncResult {
    resources: Option<Vec<Synced>>,
}

#[derive(Deserialize)]
struct Synced {
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
}

impl Application {
    /// Returns the Application if it belongs to the Argo CD in this namespace and is meant for the plugin, or leaves the choice of a
    /// plugin to Argo CD.
    pub(crate) fn of_argo_cd(self, argocd: &str) -> Option<diagnosis::Application> {
        // An Application in another namespace names its Argo CD after the first reconciliation.
        if self.metadata.namespace != argocd && self.status.controller_namespace.as_deref() != Some(argocd) {
            return None;
        }
        Some(self.reduced()).filter(|it| !it.plugins.is_empty())
    }

    /// Returns the fields that matter for a diagnosis.
    pub(crate) fn reduced(self) -> diagnosis::Application {
        let Self { metadata, spec, status } = self;
        let source = spec.get("source").into_iter();
        let sources = source.chain(spec.get("sources").and_then(Value::as_array).into_iter().flatten());
        let plugins = sources.filter_map(|it| Source::deserialize(it).ok()?.plugin);
        let plugins: Vec<_> = plugins.filter(Plugin::is_ours).collect();
        let stale = metadata.annotations.is_some_and(|it| it.contains_key(REFRESH))
            || is_other_source(&spec, &status.sync["comparedTo"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let conditions = status.conditions.into_iter().flatten();
        let conditions = conditions.filter(|it| is_error(&it.kind)).take(TEXTS_MAX);
        let project = text(&spec["project"]);
        diagnosis::Application {
            qualified_name: format!("{}/{}", metadata.namespace, metadata.name),
            project: if project.is_empty() {
                "default".to_owned()
            } else {
                project
            },
            placement: plugins.iter().any(Plugin::names_a_placement),
            sources_share_works: (1..plugins.len())
                .any(|at| plugins[..at].iter().any(|it| it.work_name() == plugins[at].work_name())),
            targets: plugins.iter().flat_map(Plugin::clusters).collect(),
            plugins: plugins.into_iter().map(|it| it.name).collect(),
            pull: metadata
                .labels
                .is_some_and(|it| it.get(PULL).is_some_and(|value| value == "true")),
            stale,
            sync: text(&status.sync["status"]),
            health: text(&status.health["status"]),
            conditions: conditions
                .map(|it| Condition {
                    message: bounded(&it.message),
                    kind: it.kind,
                })
                .collect(),
            operation: status.operation_state.map(OperationState::reduced),
        }
    }
}

impl OperationState {
    fn reduced(self) -> Operation {
        let synced = self.sync_result.and_then(|it| it.resources).unwrap_or_default();
        let failed = synced.iter().filter(|it| it.status == "SyncFailed");
        Operation {
            phase: self.phase,
            message: bounded(&self.message),
            failures: failed.take(TEXTS_MAX).map(|it| bounded(&it.message)).collect(),
        }
    }
}

/// Returns true if a condition is an error of Argo CD. The controller's conditions are about works, which `status` shows.
fn is_error(kind: &str) -> bool {
    kind.ends_with("Error") && !OWN_CONDITIONS.iter().any(|own| kind.starts_with(own))
}

/// Returns true if Argo CD has compared another source than that of the spec. An error of the spec itself leaves `comparedTo` empty.
fn is_other_source(spec: &Value, compared: &Value) -> bool {
    let of_one = compared["source"]["repoURL"]
        .as_str()
        .is_some_and(|url| !url.is_empty());
    let of_several = compared["sources"].is_array();
    of_one && spec["source"].is_object() && spec["source"] != compared["source"]
        || of_several && spec["sources"] != compared["sources"]
}

/// Shortens a text. The words of the plugin are at the end of Argo CD's.
fn bounded(message: &str) -> String {
    const OF_PLUGIN: &str = "failed exit status ";
    match message.rfind(OF_PLUGIN) {
        Some(at) if message.len() > TEXT_MAX => {
            without_middle(message.get(at..).unwrap_or(message), TEXT_MAX).into_owned()
        }
        _ => without_middle(message, TEXT_MAX).into_owned(),
    }
}

impl Plugin {
    /// Returns true if it is meant for this program, whose name may be misspelled.
    fn is_ours(&self) -> bool {
        is_our_plugin(&self.name) || self.setting("clusters", "TARGET_CLUSTER").is_some()
    }

    /// Returns the managed clusters that it sets.
    fn clusters(&self) -> BTreeSet<String> {
        let parameters = self.parameters.iter().flatten().filter(|it| it.name == "clusters");
        let variables = self.env.iter().flatten();
        let variables = variables.filter(|it| it.name == "CLUSTERS" || it.name == "TARGET_CLUSTER");
        let texts = |it: &'_ Parameter| -> Vec<String> {
            let array = it.array.iter().flatten().cloned();
            array.chain(it.value.clone()).collect()
        };
        let texts = parameters.chain(variables).flat_map(texts);
        let names = texts.flat_map(|text| text.split(',').map(|it| it.trim().to_owned()).collect::<Vec<_>>());
        names.filter(|it| !it.is_empty()).collect()
    }

    /// Returns true if it sets a placement, rather than clusters.
    fn names_a_placement(&self) -> bool {
        self.setting("placement", "PLACEMENT").is_some()
    }

    /// Returns the name that it sets for its works instead of that of the Application.
    fn work_name(&self) -> Option<&str> {
        self.setting("name", "NAME")
    }

    /// Returns the value of a setting, of a parameter or of an environment variable.
    fn setting(&self, parameter: &str, variable: &str) -> Option<&str> {
        let parameters = self.parameters.iter().flatten().map(|it| (it, parameter));
        let variables = self.env.iter().flatten().map(|it| (it, variable));
        let (found, _) = parameters.chain(variables).find(|(it, name)| it.name == *name)?;
        Some(found.value.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn reduced(namespace: &str, spec: &Value, status: &Value) -> Option<diagnosis::Application> {
        let metadata = json!({"name": "shop", "namespace": namespace});
        let application = json!({"metadata": metadata, "spec": spec, "status": status});
        let read: Application = serde_json::from_value(application).expect("an Application");
        read.of_argo_cd("argocd")
    }

    #[test]
    fn applications_that_use_the_plugin_are_kept() {
        let ours = json!({"project": "a", "source": {"plugin": {"name": "argocd-ocm-cmp", "parameters": []}}});
        let application = reduced("argocd", &ours, &json!({})).expect("the Application uses the plugin");
        assert_eq!(
            (&*application.qualified_name, &*application.project),
            ("argocd/shop", "a")
        );
        assert!(!application.placement);
        let unnamed = json!({"sources": [{"path": "a"}, {"plugin": {"parameters": [{"name": "placement"}]}}]});
        let application = reduced("argocd", &unnamed, &json!({})).expect("Argo CD chooses the plugin");
        assert_eq!((&*application.project, application.placement), ("default", true));
        assert!(!application.sources_share_works);
        let plugin = |name: &str| json!({"plugin": {"env": [{"name": "NAME", "value": name}]}});
        for (sources, is_expected) in [
            ([json!({"plugin": {}}), json!({"plugin": {"parameters": null}})], true),
            (
                [
                    plugin("a"),
                    json!({"plugin": {"parameters": [{"name": "name", "string": "a"}]}}),
                ],
                true,
            ),
            ([plugin("a"), plugin("b")], false),
            ([plugin("a"), json!({"plugin": {"name": "other"}})], false),
        ] {
            let application = reduced("argocd", &json!({"sources": sources}), &json!({})).expect("it uses the plugin");
            assert_eq!(application.sources_share_works, is_expected, "{sources:?}");
        }
        let by_env = json!({"source": {"plugin": {"env": [{"name": "PLACEMENT", "value": "a/b"}]}}});
        assert!(reduced("argocd", &by_env, &json!({})).is_some_and(|it| it.placement));
        for other in [
            json!({"source": {"path": "a"}}),
            json!({"source": {"plugin": {"name": "other"}}}),
        ] {
            assert_eq!(reduced("argocd", &other, &json!({})), None);
        }
        assert_eq!(reduced("team", &ours, &json!({})), None);
        assert_eq!(
            reduced("team", &ours, &json!({"controllerNamespace": "gitops"})),
            None,
            "it belongs to another Argo CD"
        );
        assert!(reduced("team", &ours, &json!({"controllerNamespace": "argocd"})).is_some());
    }

    #[test]
    fn keeps_argo_cds_errors_of_an_application() {
        let ours = json!({"source": {"plugin": {"name": "argocd-ocm-cmp"}}});
        let status = |phase: &str| {
            json!({
                "conditions": [{"type": "ComparisonError", "message": "one"}, {"type": "SharedResourceWarning", "message": "two"},
                    {"type": "ManifestWorkApplyError", "message": "of the controller"}],
                "operationState": {"phase": phase, "syncResult": {"resources": [
                    {"status": "SyncFailed", "message": "three"},
                    {"status": "Synced", "message": "four"},
                ]}},
            })
        };
        let errors = |phase| {
            let application = reduced("argocd", &ours, &status(phase)).expect("the Application uses the plugin");
            application.errors().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(errors("Failed"), ["one", "three"]);
        assert_eq!(errors("Succeeded"), ["one"]);
    }
}
