//! Reads the fields of an Application that `status` and `doctor` need.

use crate::diagnosis;
use crate::diagnosis::{ApplicationCondition, SyncOperation, is_our_plugin};
use crate::doctor::items;
use manifest::text::without_middle;
use ocm::glob::Glob;
use ocm::pull_model::{DEFAULT_PROJECT, PULL, is_own_condition};
use ocm::work::{GROUP, KIND, SET_KIND};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::iter;

/// The maximum number of kept texts of an Application, and the maximum length of each, in bytes.
const TEXTS_MAX: usize = 8;
const TEXT_MAX: usize = 2048;

/// The annotation with which a user requests a comparison; Argo CD removes it afterwards.
const REFRESH: &str = "argocd.argoproj.io/refresh";

/// The annotation that names the paths from which an Application is made: a commit to others does not render it.
const GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";

/// An Application of Argo CD. A hub has thousands, and the fields that are skipped here are most of their bytes.
#[derive(Deserialize)]
pub(crate) struct FetchedApplication {
    pub(super) metadata: ApplicationMetadata,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    pub(super) status: FetchedStatus,
}

#[derive(Deserialize)]
pub(super) struct ApplicationMetadata {
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl ApplicationMetadata {
    /// Returns true if it has the label of the pull model.
    pub(super) fn is_pulled(&self) -> bool {
        self.labels.get(PULL).is_some_and(|value| value == "true")
    }
}

#[derive(Deserialize)]
pub(super) struct FetchedSource {
    #[serde(rename = "repoURL", default)]
    repository: String,
    chart: Option<String>,
    plugin: Option<Plugin>,
}

/// The settings of the plugin in a source.
#[derive(Deserialize)]
pub(super) struct Plugin {
    #[serde(default)]
    name: String,
    parameters: Option<Vec<SourceParameter>>,
    env: Option<Vec<SourceParameter>>,
}

/// A parameter, with its value in `string` or `array`, or an environment variable, with its value in `value`.
#[derive(Deserialize)]
struct SourceParameter {
    #[serde(default)]
    name: String,
    #[serde(alias = "string")]
    value: Option<String>,
    array: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FetchedStatus {
    pub(super) conditions: Option<Vec<ReadCondition>>,
    pub(super) operation_state: Option<FetchedOperation>,
    controller_namespace: Option<String>,
    pub(super) resources: Option<Vec<ListedResource>>,
    pub(super) sync: Value,
    pub(super) health: Value,
    source_hydrator: Value,
}

/// An object in Argo CD's list.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListedResource {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) status: String,
    pub(super) hook: bool,
    pub(super) requires_pruning: bool,
}

#[derive(Deserialize)]
pub(super) struct ReadCondition {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FetchedOperation {
    #[serde(default)]
    pub(super) phase: String,
    #[serde(default)]
    pub(super) message: String,
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

impl FetchedApplication {
    /// Returns the Application if it belongs to the Argo CD in this namespace and is meant for the plugin, or leaves the choice of a
    /// plugin to Argo CD.
    pub(crate) fn of_argo_cd(self, argocd: &str) -> Option<diagnosis::DiagnosedApplication> {
        let application = self.is_of(argocd).then(|| self.reduced());
        application.filter(|application| !application.plugins.is_empty())
    }

    /// Returns true if it belongs to the Argo CD in this namespace. One in another namespace names its Argo CD after the first
    /// reconciliation.
    pub(super) fn is_of(&self, argocd: &str) -> bool {
        self.metadata.namespace == argocd || self.status.controller_namespace.as_deref() == Some(argocd)
    }

    /// Returns its AppProject.
    pub(super) fn project(&self) -> &str {
        let project = self.spec["project"].as_str().filter(|project| !project.is_empty());
        project.unwrap_or(DEFAULT_PROJECT)
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = FetchedSource> {
        let source = [self.spec.get("source"), self.spec.pointer("/sourceHydrator/drySource")];
        let sources = source.into_iter().flatten().chain(items(&self.spec["sources"]));
        sources.filter_map(|source| FetchedSource::deserialize(source).ok())
    }

    /// Returns the fields that matter for a diagnosis.
    pub(crate) fn reduced(self) -> diagnosis::DiagnosedApplication {
        let annotations = &self.metadata.annotations;
        let mut rendered_by_every_commit = BTreeSet::new();
        let mut plugins = Vec::new();
        for mut source in self.sources() {
            let repository = std::mem::take(&mut source.repository);
            let is_git = source.chart.is_none() && !repository.starts_with("oci://");
            let Some(plugin) = source.our_plugin() else { continue };
            plugins.push(plugin);
            if is_git && !annotations.contains_key(GENERATE_PATHS) {
                rendered_by_every_commit.insert(repository);
            }
        }
        let project = self.project().to_owned();
        let Self { metadata, spec, status } = self;
        let annotations = &metadata.annotations;
        let stale = annotations.contains_key(REFRESH) || is_other_source(&spec, &status.sync["comparedTo"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let hydration = &status.source_hydrator["currentOperation"];
        let hydration = (hydration["phase"] == "Failed").then(|| ReadCondition {
            kind: "HydrationError".to_owned(),
            message: text(&hydration["message"]),
        });
        let conditions = status.conditions.into_iter().flatten().chain(hydration);
        let conditions = conditions.filter(|condition| is_error(&condition.kind)).take(TEXTS_MAX);
        diagnosis::DiagnosedApplication {
            qualified_name: format!("{}/{}", metadata.namespace, metadata.name),
            project,
            placement: plugins.iter().any(Plugin::names_a_placement),
            sources_share_works: share_works(&plugins, &metadata.name),
            targets: plugins.iter().flat_map(Plugin::clusters).collect(),
            plugins: plugins.into_iter().map(|plugin| plugin.name).collect(),
            ignores_works: items(&spec["ignoreDifferences"]).iter().any(ignores_works),
            respects_ignored: items(&spec["syncPolicy"]["syncOptions"])
                .iter()
                .any(|sync_option| sync_option == "RespectIgnoreDifferences=true"),
            rendered_by_every_commit,
            pull: metadata.is_pulled(),
            stale,
            sync: text(&status.sync["status"]),
            health: text(&status.health["status"]),
            conditions: conditions
                .map(|condition| ApplicationCondition {
                    message: bounded(&condition.message),
                    kind: condition.kind,
                })
                .collect(),
            operation: status.operation_state.map(FetchedOperation::reduced),
        }
    }
}

impl FetchedOperation {
    fn reduced(self) -> SyncOperation {
        let synced = self.sync_result.and_then(|result| result.resources).unwrap_or_default();
        let failed = synced.iter().filter(|object| object.status == "SyncFailed");
        SyncOperation {
            phase: self.phase,
            message: bounded(&self.message),
            failures: failed.take(TEXTS_MAX).map(|object| bounded(&object.message)).collect(),
        }
    }
}

/// Returns true if a condition is an error of Argo CD. The controller's conditions are about works, which `status` shows.
pub(super) fn is_error(kind: &str) -> bool {
    kind.ends_with("Error") && !is_own_condition(kind)
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

/// Returns true if an entry of `ignoreDifferences` matches the manifests in works.
fn ignores_works(entry: &Value) -> bool {
    let pattern = |field: &str| Glob::new(entry[field].as_str().unwrap_or_default());
    let matches = |field: &str, text: &str| pattern(field).is_ok_and(|glob| glob.matches(text));
    let paths = items(&entry["jsonPointers"])
        .iter()
        .chain(items(&entry["jqPathExpressions"]));
    let mut paths = paths.filter_map(Value::as_str);
    matches("group", GROUP)
        && (matches("kind", KIND) || matches("kind", SET_KIND))
        && paths.any(|path| path.contains("workload") || path == "/spec" || path == ".spec")
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

impl FetchedSource {
    /// Returns the plugin if it is meant for this program.
    pub(super) fn our_plugin(self) -> Option<Plugin> {
        self.plugin.filter(Plugin::is_ours)
    }
}

impl Plugin {
    /// Returns true if it is meant for this program, whose name may be misspelled.
    fn is_ours(&self) -> bool {
        is_our_plugin(&self.name) || !self.texts("clusters", &["TARGET_CLUSTER"]).is_empty()
    }

    /// Returns the managed clusters that it sets.
    fn clusters(&self) -> BTreeSet<String> {
        let texts = self.texts("clusters", &["CLUSTERS", "TARGET_CLUSTER"]);
        let names = texts.iter().flat_map(|text| text.split(','));
        let names = names.map(|name| name.trim().to_owned());
        names.filter(|name| !name.is_empty()).collect()
    }

    /// Returns where its works are: in the namespaces of its managed clusters or, as ManifestWorkReplicaSets, in that of its
    /// Placement. Of these two settings, a parameter precedes a variable. Empty if the sidecar's environment decides.
    fn work_locations(&self) -> BTreeSet<WorkLocation> {
        let has_parameter = |name: &str| !texts_of(self.parameters.as_ref(), name).is_empty();
        let clusters = self.clusters();
        if has_parameter("placement") && !has_parameter("clusters") || clusters.is_empty() {
            let placement = self.texts("placement", &["PLACEMENT"]);
            let namespaces = placement.iter().filter_map(|text| text.trim().split('/').next());
            return namespaces
                .map(|name| WorkLocation::Placement(name.to_owned()))
                .collect();
        }
        clusters.into_iter().map(WorkLocation::Cluster).collect()
    }

    /// Returns true if it sets a placement, rather than clusters.
    fn names_a_placement(&self) -> bool {
        !self.texts("placement", &["PLACEMENT"]).is_empty()
    }

    /// Returns the name that it sets for its works instead of that of the Application.
    pub(super) fn work_name(&self) -> Option<&str> {
        self.texts("name", &["NAME"]).pop()
    }

    /// Returns the texts of a setting as the plugin reads them: those of the parameter, else of the first of these variables that is not
    /// blank.
    fn texts(&self, parameter: &str, variables: &[&str]) -> Vec<&str> {
        let of_parameter = texts_of(self.parameters.as_ref(), parameter);
        let of_variables = variables.iter().map(|variable| texts_of(self.env.as_ref(), variable));
        let mut given = iter::once(of_parameter).chain(of_variables);
        given.find(|texts| !texts.is_empty()).unwrap_or_default()
    }
}

/// Returns the texts of the entries of this name that are not blank.
fn texts_of<'p>(entries: Option<&'p Vec<SourceParameter>>, name: &str) -> Vec<&'p str> {
    let entries = entries.into_iter().flatten().filter(|entry| entry.name == name);
    let texts = entries.flat_map(|entry| entry.array.iter().flatten().chain(&entry.value));
    texts
        .map(String::as_str)
        .filter(|text| !text.trim().is_empty())
        .collect()
}

/// Where the works of a source are.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum WorkLocation {
    /// A managed cluster.
    Cluster(String),
    /// The namespace of a Placement.
    Placement(String),
    /// That of the sidecar's environment.
    Default,
}

/// Returns true if two sources make a work of the same name in one namespace, of which Argo CD keeps that of the last source.
fn share_works(plugins: &[Plugin], application: &str) -> bool {
    let mut all = HashSet::new();
    plugins.iter().any(|plugin| {
        let name = plugin.work_name().unwrap_or(application);
        let mut locations = plugin.work_locations();
        if locations.is_empty() {
            locations.insert(WorkLocation::Default);
        }
        locations.into_iter().any(|location| !all.insert((location, name)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn reduced(namespace: &str, spec: &Value, status: &Value) -> Option<diagnosis::DiagnosedApplication> {
        let metadata = json!({"name": "shop", "namespace": namespace});
        let application = json!({"metadata": metadata, "spec": spec, "status": status});
        let read: FetchedApplication = serde_json::from_value(application).expect("an Application");
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
        let unnamed =
            json!({"sources": [{"path": "a"}, {"plugin": {"parameters": [{"name": "placement", "string": "a/b"}]}}]});
        let application = reduced("argocd", &unnamed, &json!({})).expect("Argo CD chooses the plugin");
        assert_eq!((&*application.project, application.placement), ("default", true));
        assert!(!application.sources_share_works);
        let plugin = |name: &str| json!({"plugin": {"env": [{"name": "NAME", "value": name}]}});
        let on = |mut clusters: Value| {
            clusters["name"] = "clusters".into();
            json!({"plugin": {"parameters": [clusters]}})
        };
        let selected_by =
            |placement: &str| json!({"plugin": {"parameters": [{"name": "placement", "string": placement}]}});
        let selected_by_instead_of = |placement: &str, cluster: &str| {
            let mut source = selected_by(placement);
            source["plugin"]["env"] = json!([{"name": "TARGET_CLUSTER", "value": cluster}]);
            source
        };
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
            ([plugin("shop"), plugin(" ")], true),
            ([on(json!({"string": "eu1,us1"})), on(json!({"array": ["us1"]}))], true),
            (
                [on(json!({"string": "eu1", "array": []})), on(json!({"array": ["us1"]}))],
                false,
            ),
            ([plugin("a"), json!({"plugin": {"name": "other"}})], false),
            ([selected_by("fleet/eu"), selected_by("other/us")], false),
            ([selected_by("fleet/eu"), selected_by("fleet/us")], true),
            ([selected_by("fleet/eu"), on(json!({"string": "fleet"}))], false),
            // The parameter precedes the variable of the other setting.
            (
                [
                    selected_by_instead_of("fleet/eu", "eu1"),
                    selected_by_instead_of("other/us", "eu1"),
                ],
                false,
            ),
            (
                [selected_by_instead_of("fleet/eu", "eu1"), selected_by("fleet/us")],
                true,
            ),
        ] {
            let application = reduced("argocd", &json!({"sources": sources}), &json!({})).expect("it uses the plugin");
            assert_eq!(application.sources_share_works, is_expected, "{sources:?}");
        }
        let dry = json!({"sourceHydrator": {"drySource": ours["source"].clone()}});
        let failed = json!({"sourceHydrator": {"currentOperation": {"phase": "Failed", "message": "wrong"}}});
        let application = reduced("argocd", &dry, &failed).expect("its dry source uses the plugin");
        assert_eq!(application.errors().collect::<Vec<_>>(), ["wrong"]);
        let by_env = json!({"source": {"plugin": {"env": [{"name": "PLACEMENT", "value": "a/b"}]}}});
        assert!(reduced("argocd", &by_env, &json!({})).is_some_and(|application| application.placement));
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

    #[test]
    fn finds_ignored_differences_of_works() {
        let ignores = |entry: Value| {
            let spec = json!({
                "source": {"plugin": {"name": "argocd-ocm-cmp"}},
                "ignoreDifferences": [entry],
                "syncPolicy": {"syncOptions": ["RespectIgnoreDifferences=true"]},
            });
            let application = reduced("argocd", &spec, &json!({})).expect("it uses the plugin");
            assert!(application.respects_ignored);
            application.ignores_works
        };
        let works = |paths: Value| json!({"group": GROUP, "kind": KIND, "jqPathExpressions": paths});
        let of = |group: &str, path: &str| json!({"group": group, "kind": "*", "jsonPointers": [path]});
        assert!(ignores(works(json!([".spec.workload.manifests[].spec.replicas"]))));
        assert!(ignores(of("*", "/spec")));
        for other in [
            of("*", "/spec/replicas"),
            of("apps", "/spec"),
            of(GROUP, "/metadata/labels"),
            json!("text"),
        ] {
            assert!(!ignores(other));
        }
    }

    #[test]
    fn finds_repositories_of_which_every_commit_renders() {
        let repositories = |source: Value, annotations: Value| {
            let application = json!({
                "metadata": {"name": "shop", "namespace": "argocd", "annotations": annotations},
                "spec": {"source": source},
            });
            let read: FetchedApplication = serde_json::from_value(application).expect("an Application");
            read.reduced().rendered_by_every_commit
        };
        let plugin = json!({"name": "argocd-ocm-cmp"});
        let git = json!({"repoURL": "https://git/a", "plugin": plugin});
        assert_eq!(repositories(git.clone(), json!({})).len(), 1);
        assert!(repositories(git, json!({GENERATE_PATHS: "."})).is_empty());
        for other in [
            json!({"repoURL": "https://charts", "chart": "shop", "plugin": plugin}),
            json!({"repoURL": "oci://registry/shop", "plugin": plugin}),
            json!({"repoURL": "https://git/a"}),
        ] {
            assert!(repositories(other, json!({})).is_empty());
        }
    }
}
