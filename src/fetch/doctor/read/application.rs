//! The kept fields of Applications.

use super::{Condition, Metadata, plain};
use crate::doctor;
use crate::doctor::PLUGIN;
use serde::Deserialize;

/// The maximum number of kept texts of an Application.
const TEXTS_MAX: usize = 8;

/// An Application of Argo CD.
#[derive(Deserialize)]
pub(crate) struct Application {
    metadata: Metadata,
    #[serde(default)]
    spec: ApplicationSpec,
    #[serde(default)]
    status: ApplicationStatus,
}

#[derive(Deserialize, Default)]
struct ApplicationSpec {
    #[serde(default)]
    project: String,
    source: Option<Source>,
    sources: Option<Vec<Source>>,
}

#[derive(Deserialize)]
struct Source {
    plugin: Option<Plugin>,
}

#[derive(Deserialize)]
struct Plugin {
    #[serde(default)]
    name: String,
    parameters: Option<Vec<Named>>,
    env: Option<Vec<Named>>,
}

/// A parameter, with its value in `string`, or an environment variable, with its value in `value`.
#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
    #[serde(alias = "string")]
    value: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ApplicationStatus {
    conditions: Option<Vec<Condition>>,
    operation_state: Option<Operation>,
    controller_namespace: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    #[serde(default)]
    phase: String,
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
    /// Returns the Application if it belongs to the Argo CD in this namespace and names the plugin, or leaves the choice of a
    /// plugin to Argo CD.
    pub(crate) fn of_argo_cd(self, argocd: &str) -> Option<doctor::Application> {
        let Self { metadata, spec, status } = self;
        // An Application in another namespace names its Argo CD after the first reconciliation.
        if metadata.namespace != argocd && status.controller_namespace.as_deref() != Some(argocd) {
            return None;
        }
        let sources = spec.source.into_iter().chain(spec.sources.into_iter().flatten());
        let plugins = sources.filter_map(|it| it.plugin);
        let plugins: Vec<_> = plugins.filter(|it| it.name.is_empty() || it.name == PLUGIN).collect();
        if plugins.is_empty() {
            return None;
        }
        let conditions = status.conditions.into_iter().flatten();
        let errors = conditions.filter(|it| it.kind.ends_with("Error")).map(|it| it.message);
        let failed = status
            .operation_state
            .filter(|it| it.phase == "Failed" || it.phase == "Error");
        let synced = failed.and_then(|it| it.sync_result?.resources).unwrap_or_default();
        let refused = synced
            .into_iter()
            .filter(|it| it.status == "SyncFailed")
            .map(|it| it.message);
        Some(doctor::Application {
            qualified_name: format!("{}/{}", metadata.namespace, metadata.name),
            project: if spec.project.is_empty() {
                "default".to_owned()
            } else {
                spec.project
            },
            placement: plugins.iter().any(Plugin::names_a_placement),
            sources_share_works: (1..plugins.len())
                .any(|at| plugins[..at].iter().any(|it| it.work_name() == plugins[at].work_name())),
            errors: errors.chain(refused).take(TEXTS_MAX).map(|it| plain(&it)).collect(),
        })
    }
}

impl Plugin {
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

    fn reduced(namespace: &str, spec: &Value, status: &Value) -> Option<doctor::Application> {
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
                "conditions": [{"type": "ComparisonError", "message": "one"}, {"type": "SharedResourceWarning", "message": "two"}],
                "operationState": {"phase": phase, "syncResult": {"resources": [
                    {"status": "SyncFailed", "message": "three"},
                    {"status": "Synced", "message": "four"},
                ]}},
            })
        };
        let errors = |phase| reduced("argocd", &ours, &status(phase)).map(|it| it.errors);
        assert_eq!(
            errors("Failed").as_deref(),
            Some(&["one".to_owned(), "three".to_owned()][..])
        );
        assert_eq!(errors("Succeeded").as_deref(), Some(&["one".to_owned()][..]));
    }
}
