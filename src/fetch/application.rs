//! Reads the fields of an Application that `status` and `doctor` need.

use crate::diagnosis;
use crate::diagnosis::{ApplicationCondition, SYNC_ERROR, SyncOperation, is_our_plugin};
use crate::workload::items;
use manifest::text::without_middle;
use ocm::application_works::ApplicationName;
use ocm::boolean::is_true;
use ocm::glob;
use ocm::ownership::{ListedResource, ListedWork, own_names};
use ocm::pull_model::{DEFAULT_PROJECT, PULL, is_own_condition};
use ocm::source_plugin;
use ocm::source_plugin::SourcePlugin;
use ocm::work::{GROUP, KIND, SET_KIND};
use ocm::zeros::remove_zeros;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashSet};

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
    /// The sync that is requested or running; Argo CD removes it afterwards.
    operation: Option<IgnoredAny>,
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
        self.labels.get(PULL).is_some_and(|value| is_true(value))
    }
}

#[derive(Deserialize)]
pub(super) struct FetchedSource {
    #[serde(rename = "repoURL", default)]
    repository: String,
    chart: Option<String>,
    plugin: Option<SourcePlugin>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FetchedStatus {
    pub(super) conditions: Option<Vec<ApplicationCondition>>,
    operation_state: Option<FetchedOperation>,
    controller_namespace: Option<String>,
    pub(super) resources: Option<Vec<ListedResource>>,
    pub(super) sync: Value,
    pub(super) health: Value,
    source_hydrator: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FetchedOperation {
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

/// The works in the lists of Applications, each with its Application.
#[derive(Default)]
pub(super) struct WorksOfArgoCds {
    /// Those of the Argo CD that is examined.
    ours: BTreeMap<ListedWork, String>,
    others: BTreeMap<ListedWork, String>,
}

impl WorksOfArgoCds {
    /// Returns the pairs of Applications of two Argo CDs that list the same works.
    pub(super) fn pairs(&self) -> BTreeSet<String> {
        let pair = |(work, ours): (&ListedWork, &String)| Some(format!("{ours} and {}", self.others.get(work)?));
        self.ours.iter().filter_map(pair).collect()
    }
}

impl FetchedApplication {
    /// Returns the Application if it belongs to the Argo CD in this namespace and is meant for the plugin, or leaves the choice of a
    /// plugin to Argo CD.
    pub(crate) fn of_argo_cd(self, argocd: &str) -> Option<diagnosis::DiagnosedApplication> {
        let application = self.is_of(argocd).then(|| self.reduced());
        application.filter(|application| !application.plugins.is_empty())
    }

    /// Returns true if it belongs to the Argo CD in this namespace. One in another namespace names its Argo CD after the first
    /// comparison; before, any Argo CD may have reported an error in its spec.
    pub(super) fn is_of(&self, argocd: &str) -> bool {
        let has_error = || !self.status.sync["status"].is_null();
        let controller = self.status.controller_namespace.as_deref();
        self.metadata.namespace == argocd || controller.map_or_else(has_error, |namespace| namespace == argocd)
    }

    /// Adds the works in Argo CD's list.
    pub(super) fn add_works(&self, works: &mut WorksOfArgoCds, argocd: &str) {
        // The list of the pull model is that of a managed cluster, which may be a hub.
        let is_listed = |resource: &&ListedResource| resource.group == GROUP && !self.metadata.is_pulled();
        let listed = self.status.resources.iter().flatten().filter(is_listed);
        let qualified_name = format!("{}/{}", self.metadata.namespace, self.metadata.name);
        let side = if self.is_of(argocd) {
            &mut works.ours
        } else {
            &mut works.others
        };
        side.extend(listed.map(|work| (work.key(), qualified_name.clone())));
    }

    /// Returns its AppProject.
    pub(super) fn project(&self) -> &str {
        let project = self.spec["project"].as_str().filter(|project| !project.is_empty());
        project.unwrap_or(DEFAULT_PROJECT)
    }

    /// Returns its works in Argo CD's list.
    pub(super) fn works(&self, argocd: &str) -> impl Iterator<Item = &ListedResource> {
        let full_name = format!("{}/{}", self.metadata.namespace, self.metadata.name);
        let application = ApplicationName::named(&full_name, argocd).ok();
        let names = application.map(|application| own_names(&application.works, &self.spec));
        let resources = self.status.resources.iter().flatten();
        resources.filter(move |resource| resource.is_work(names.as_deref().unwrap_or_default()))
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = FetchedSource> {
        source_plugin::sources(&self.spec).filter_map(|source| FetchedSource::deserialize(source).ok())
    }

    /// Returns the last sync. A requested one is running: until Argo CD starts it, the status has the one before.
    pub(super) fn last_sync(&self) -> Option<SyncOperation> {
        if self.waits_for_sync() {
            return Some(SyncOperation {
                phase: "Running".to_owned(),
                ..SyncOperation::default()
            });
        }
        self.status.operation_state.as_ref().map(FetchedOperation::reduced)
    }

    /// Returns true if Argo CD has not started a requested sync.
    fn waits_for_sync(&self) -> bool {
        let running = self.status.operation_state.as_ref();
        self.operation.is_some() && running.is_none_or(|operation| operation.phase != "Running")
    }

    /// Returns the error of a failed hydration. Argo CD reports it in no condition, and keeps it when the Application leaves the
    /// hydrator.
    pub(super) fn hydration_error(&self) -> Option<ApplicationCondition> {
        let operation = &self.status.source_hydrator["currentOperation"];
        let has_failed = !self.spec["sourceHydrator"].is_null() && operation["phase"] == "Failed";
        has_failed.then(|| ApplicationCondition {
            kind: "HydrationError".to_owned(),
            message: operation["message"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Returns the error of a failed sync. Argo CD reports it in a condition only if the sync was automated, and keeps it when a later
    /// commit is what the sync has delivered.
    pub(super) fn sync_error(&self) -> Option<ApplicationCondition> {
        let failed = self.last_sync().filter(SyncOperation::has_failed)?;
        (self.status.sync["status"] != "Synced").then_some(ApplicationCondition {
            kind: SYNC_ERROR.to_owned(),
            message: failed.message,
        })
    }

    /// Returns true if Argo CD has not committed the manifests that the hydrator makes of the spec.
    fn waits_for_hydration(&self) -> bool {
        let operation = &self.status.source_hydrator["currentOperation"];
        let hydrator = &self.spec["sourceHydrator"];
        !hydrator.is_null() && (operation["phase"] == "Hydrating" || is_other(hydrator, &operation["sourceHydrator"]))
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
        let operation = self.last_sync();
        let stale = annotations.contains_key(REFRESH)
            || is_other_source(&self.spec, &self.status.sync["comparedTo"])
            || self.waits_for_hydration()
            || self.waits_for_sync();
        let hydration = self.hydration_error();
        let Self {
            metadata, spec, status, ..
        } = self;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let sync_options = items(&spec["syncPolicy"]["syncOptions"]);
        let has_option = |wanted: &str| sync_options.iter().any(|sync_option| sync_option == wanted);
        let conditions = status.conditions.into_iter().flatten().chain(hydration);
        let conditions = conditions.filter(|condition| is_error(&condition.kind)).take(TEXTS_MAX);
        diagnosis::DiagnosedApplication {
            qualified_name: format!("{}/{}", metadata.namespace, metadata.name),
            project,
            placement: plugins.iter().any(SourcePlugin::names_a_placement),
            unsynced: unsynced_clusters(status.resources.as_deref()),
            sources_share_works: share_works(&plugins, &metadata.name),
            targets: plugins.iter().flat_map(SourcePlugin::clusters).collect(),
            plugins: plugins.into_iter().map(|plugin| plugin.name).collect(),
            ignores_works: items(&spec["ignoreDifferences"]).iter().any(ignores_works),
            respects_ignored: has_option("RespectIgnoreDifferences=true"),
            skips_synced: has_option("ApplyOutOfSyncOnly=true"),
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
            operation,
        }
    }
}

/// Returns the managed clusters with works that are not synced; `None` if Argo CD lists nothing, or a work for the clusters of a
/// Placement is among them.
pub(super) fn unsynced_clusters(resources: Option<&[ListedResource]>) -> Option<BTreeSet<String>> {
    let resources = resources.filter(|resources| !resources.is_empty())?;
    let unsynced = resources
        .iter()
        .filter(|resource| resource.group == GROUP && resource.is_unsynced());
    unsynced
        .map(|work| (work.kind == KIND).then(|| work.namespace.clone()))
        .collect()
}

impl FetchedOperation {
    fn reduced(&self) -> SyncOperation {
        let result = self.sync_result.as_ref();
        let synced = result
            .and_then(|result| result.resources.as_ref())
            .into_iter()
            .flatten();
        let failed = synced.filter(|object| object.status == "SyncFailed");
        SyncOperation {
            phase: self.phase.clone(),
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
    let has_several = |value: &Value| value["sources"].as_array().is_some_and(|sources| !sources.is_empty());
    let has_compared_one = compared["source"]["repoURL"]
        .as_str()
        .is_some_and(|url| !url.is_empty());
    let field = if has_several(spec) { "sources" } else { "source" };
    if spec[field].is_null() || !has_compared_one && !has_several(compared) {
        return false;
    }
    is_other(&spec[field], &compared[field])
}

/// Returns true if a part of the status differs from that of the spec. Argo CD writes no fields without a value.
fn is_other(of_spec: &Value, of_status: &Value) -> bool {
    let [mut of_spec, mut of_status] = [of_spec, of_status].map(Value::clone);
    remove_zeros(&mut of_spec);
    remove_zeros(&mut of_status);
    of_spec != of_status
}

/// Returns true if an entry of `ignoreDifferences` matches the manifests in works.
fn ignores_works(entry: &Value) -> bool {
    let matches = |field: &str, text: &str| glob::matches(entry[field].as_str().unwrap_or_default(), text);
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
    pub(super) fn our_plugin(self) -> Option<SourcePlugin> {
        self.plugin.filter(is_ours)
    }
}

/// Returns true if a plugin is meant for this program, whose name may be misspelled.
fn is_ours(plugin: &SourcePlugin) -> bool {
    is_our_plugin(&plugin.name) || !plugin.texts("clusters", &["TARGET_CLUSTER"]).is_empty()
}

/// Returns true if two sources make a work of the same name in one namespace, of which Argo CD keeps that of the last source.
fn share_works(plugins: &[SourcePlugin], application: &str) -> bool {
    let mut all = HashSet::new();
    plugins.iter().any(|plugin| {
        let name = plugin.work_name().unwrap_or(application);
        let mut locations = plugin.work_locations().into_iter();
        locations.any(|location| !all.insert((location, name)))
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
    fn finds_works_in_the_lists_of_two_argo_cds() {
        let mut works = WorksOfArgoCds::default();
        for (namespace, name, clusters, label) in [
            ("argocd", "shop", ["eu1", "us1"], "false"),
            ("gitops", "shop", ["eu1", "ap1"], "false"),
            ("gitops", "pulled", ["us1", "ap1"], "true"),
        ] {
            let resources = clusters.map(|cluster| {
                json!({"group": GROUP, "kind": KIND, "namespace": cluster, "name": "shop", "requiresPruning": cluster == "eu1"})
            });
            let application = json!({
                "metadata": {"namespace": namespace, "name": name, "labels": {(PULL): label}},
                "status": {"controllerNamespace": namespace, "resources": resources},
            });
            let read: FetchedApplication = serde_json::from_value(application).expect("an Application");
            read.add_works(&mut works, "argocd");
        }
        let pairs: Vec<_> = works.pairs().into_iter().collect();
        assert_eq!(pairs, ["argocd/shop and gitops/shop"]);
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
        let refused = json!({"sync": {"status": "Unknown"}, "conditions": [{"type": "InvalidSpecError", "message": "no project"}]});
        assert!(
            reduced("team", &ours, &refused).is_some(),
            "Argo CD does not name itself"
        );
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
    fn requested_sync_is_running_and_hides_the_one_before() {
        let application = |phase: &str, operation: Value| {
            let application = json!({
                "metadata": {"name": "shop", "namespace": "argocd"}, "operation": operation,
                "spec": {"source": {"plugin": {"name": "argocd-ocm-cmp"}}},
                "status": {"operationState": {"phase": phase, "message": "text"}},
            });
            let read: FetchedApplication = serde_json::from_value(application).expect("an Application");
            let reduced = read.reduced();
            let operation = reduced.operation.expect("a sync");
            (operation.phase, operation.message, reduced.stale)
        };
        let requested = json!({"sync": {"revision": "abc"}});
        let expected = |phase: &str, message: &str, stale| (phase.to_owned(), message.to_owned(), stale);
        assert_eq!(application("Failed", requested.clone()), expected("Running", "", true));
        assert_eq!(application("Running", requested), expected("Running", "text", false));
        assert_eq!(application("Failed", Value::Null), expected("Failed", "text", false));
    }

    #[test]
    fn application_is_stale_until_argo_cd_has_compared_its_source() {
        let is_stale = |source: &Value, compared: &Value| {
            is_other_source(&json!({"source": source}), &json!({"source": compared}))
        };
        let compared =
            json!({"repoURL": "https://git/a", "targetRevision": "v1", "plugin": {"name": "argocd-ocm-cmp"}});
        assert!(!is_stale(&compared, &compared));
        let mut source = compared.clone();
        source["plugin"]["parameters"] = json!([]);
        source["path"] = "".into();
        assert!(!is_stale(&source, &compared), "Argo CD drops empty fields");
        source["targetRevision"] = "v2".into();
        assert!(is_stale(&source, &compared));
        assert!(!is_stale(&source, &json!({"repoURL": ""})), "the spec is wrong");
        let (one, several) = (
            json!({"source": compared}),
            json!({"source": {"repoURL": ""}, "sources": [compared]}),
        );
        let changed = [(&one, &several), (&several, &one)];
        assert!(changed.iter().all(|(spec, compared)| is_other_source(spec, compared)));
        assert!(!is_other_source(&several, &several));
        assert!(!is_other_source(&json!({"sourceHydrator": {}}), &one));
    }

    #[test]
    fn application_is_stale_until_its_spec_is_hydrated() {
        let hydrator = |revision: &str| {
            let plugin = json!({"name": "argocd-ocm-cmp"});
            json!({"drySource": {"targetRevision": revision, "plugin": plugin}})
        };
        let state = |spec: Value, phase: &str| {
            let operation = json!({"phase": phase, "message": "wrong", "sourceHydrator": hydrator("v1")});
            let status = json!({"sync": {"status": "Synced"}, "sourceHydrator": {"currentOperation": operation}});
            let application = reduced("argocd", &spec, &status).expect("it uses the plugin");
            (application.stale, application.errors().count())
        };
        let with = |revision: &str| json!({"sourceHydrator": hydrator(revision)});
        assert_eq!(state(with("v1"), "Hydrated"), (false, 0));
        assert_eq!(state(with("v1"), "Hydrating"), (true, 0));
        assert_eq!(state(with("v2"), "Hydrated"), (true, 0));
        assert_eq!(state(with("v1"), "Failed"), (false, 1));
        let without = json!({"source": {"plugin": {"name": "argocd-ocm-cmp"}}});
        assert_eq!(state(without, "Failed"), (false, 0), "Argo CD keeps the old status");
    }

    #[test]
    fn finds_the_clusters_whose_works_are_not_synced() {
        let unsynced = |resources: Value| {
            let resources: Vec<ListedResource> = serde_json::from_value(resources).expect("resources");
            unsynced_clusters(Some(&resources)).map(|clusters| clusters.into_iter().collect::<Vec<_>>())
        };
        let listed = |kind: &str, namespace: &str, status: &str| json!({"group": GROUP, "kind": kind, "namespace": namespace, "status": status});
        let [synced, out] =
            [("eu1", "Synced"), ("eu2", "OutOfSync")].map(|(cluster, status)| listed(KIND, cluster, status));
        let hook = json!({"group": GROUP, "kind": KIND, "namespace": "eu3", "hook": true});
        let other = json!({"kind": "ConfigMap", "namespace": "eu4", "status": "OutOfSync"});
        assert_eq!(
            unsynced(json!([synced, out, hook, other])),
            Some(vec!["eu2".to_owned()])
        );
        assert_eq!(unsynced(json!([synced, listed(SET_KIND, "fleet", "OutOfSync")])), None);
        assert_eq!(unsynced(json!([])), None);
    }

    #[test]
    fn finds_ignored_differences_of_works() {
        let ignores = |entry: Value| {
            let spec = json!({
                "source": {"plugin": {"name": "argocd-ocm-cmp"}},
                "ignoreDifferences": [entry],
                "syncPolicy": {"syncOptions": ["RespectIgnoreDifferences=true", "ApplyOutOfSyncOnly=true"]},
            });
            let application = reduced("argocd", &spec, &json!({})).expect("it uses the plugin");
            assert!(application.respects_ignored && application.skips_synced);
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
