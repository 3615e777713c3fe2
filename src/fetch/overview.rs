//! Reads the Applications of a hub, and the works on some of its managed clusters.

use super::application::{ApplicationMetadata, FetchedApplication, is_error, unsynced_clusters};
use super::{Hub, WorkReader, describe_error, why_forbidden};
use crate::diagnosis;
use crate::diagnosis::{ApplicationCondition, ProblemCause, SYNC_ERROR, cluster_problem};
use crate::doctor::Lookup;
use crate::status::overview::{OnCluster, Overview, Overviewed};
use hub::{WORK_PAGE, in_order};
use jiff::Timestamp;
use kube::Error;
use kube::core::params::ListParams;
use manifest::text::{count, with_reason};
use ocm::application_works::ApplicationName;
use ocm::health::{Clock, HealthStatus, WorkStatus};
use ocm::names;
use ocm::ownership::{ListedWork, OF_REPLICA_SET};
use ocm::pull_model::{CLUSTER, HUB_NAME, HUB_NAMESPACE, INFO, is_own_condition};
use ocm::resources::{APPLICATIONS, PROJECTS, WORK_SETS, WORKS};
use ocm::tracking::{INSTANCE, TRACKING_ID};
use ocm::work::{APPLICATION_LABEL, KIND, SET_KIND};
use primitives::resource::Resource;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeSet, HashMap, HashSet};

/// An overview, and the reads that failed, one line each.
type OverviewRead = (Overview, Vec<String>);

impl WorkReader {
    /// Reads the Applications of the Argo CD in this namespace that are delivered to managed clusters; if `clusters` are named,
    /// only those with works there.
    pub(crate) fn overview(&self, namespace: &str, clusters: &[String]) -> Result<OverviewRead, String> {
        let Self { runtime, hub, .. } = self;
        let read = runtime.block_on(async {
            if hub.tracking(namespace).await?.is_none() {
                return Ok(Err(hub.no_argo_cd(namespace).await?));
            }
            match clusters {
                [] => hub.overview(namespace).await.map(Ok),
                clusters => hub.overview_of_clusters(namespace, clusters).await,
            }
        });
        read.unwrap_or_else(|error| Err(describe_error(&error, &hub.url)))
    }

    /// Checks that these AppProjects exist, as far as the user may read them.
    pub(crate) fn check_projects(&self, namespace: &str, projects: &[String]) -> Result<(), String> {
        let Self { runtime, hub, .. } = self;
        for name in projects {
            let project = runtime.block_on(hub.get_text(&PROJECTS, namespace, name));
            let project = project.map_err(|error| describe_error(&error, &hub.url))?;
            if matches!(project, Lookup::NotFound) {
                return Err(format!(
                    "AppProject {namespace}/{name} does not exist: correct its name"
                ));
            }
        }
        Ok(())
    }
}

impl FetchedApplication {
    fn overviewed(&self, argocd: &str) -> Overviewed {
        let ApplicationMetadata { name, namespace, .. } = &self.metadata;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let unreported = [self.hydration_error(), self.sync_error()];
        let conditions = || {
            self.status
                .conditions
                .iter()
                .flatten()
                .chain(unreported.iter().flatten())
        };
        let message = |condition: &ApplicationCondition| condition.message.clone();
        let totals = conditions().find(|condition| condition.kind == INFO);
        // The first reason why it is not healthy or not delivered.
        let reason = conditions()
            .find(|ApplicationCondition { kind, .. }| kind != INFO && (is_error(kind) || is_own_condition(kind)));
        Overviewed {
            name: if namespace == argocd {
                name.clone()
            } else {
                format!("{namespace}/{name}")
            },
            project: self.project().to_owned(),
            sync: text(&self.status.sync["status"]),
            health: text(&self.status.health["status"]),
            totals: totals.map(message),
            message: reason.map(message).unwrap_or_default(),
            has_error: conditions().any(|condition| is_error(&condition.kind)),
        }
    }
}

/// A work on a managed cluster. Its objects remain JSON: they may be nested more deeply than serde_json parses.
#[derive(Deserialize, Serialize)]
struct WorkOnCluster {
    /// Objects of a list may have no kind.
    #[serde(skip_deserializing, default = "work_kind")]
    kind: &'static str,
    #[serde(deserialize_with = "read_metadata")]
    metadata: Value,
    spec: Option<Box<RawValue>>,
    status: Option<Box<RawValue>>,
}

/// Reads the metadata without `managedFields`, which may be nested as deeply.
fn read_metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    Ok(hub::parse_metadata(text.get()).unwrap_or_default())
}

fn work_kind() -> &'static str {
    KIND
}

/// An Application that is delivered to managed clusters.
struct DeliveredApplication {
    application: Overviewed,
    /// The managed cluster of the pull model.
    pulled_on: Option<String>,
    /// The namespaces and names of the works that Argo CD lists as not synced: they may not exist.
    unsynced: Vec<(String, String)>,
    /// The managed clusters with such works, if it is known which these are, and a failed sync is its only error.
    unreached: Option<BTreeSet<String>>,
    is_syncing: bool,
}

/// The Applications, and the positions of those that deliver a work: by kind, namespace and name.
#[derive(Default)]
struct Applications<'n> {
    /// The namespace of Argo CD.
    argocd: &'n str,
    all: Vec<DeliveredApplication>,
    by_work: HashMap<ListedWork, usize>,
    /// The number of those that could not be parsed.
    malformed: usize,
}

impl<'n> Applications<'n> {
    fn new(argocd: &'n str) -> Self {
        Self {
            argocd,
            ..Self::default()
        }
    }

    /// Returns a line if some could not be parsed.
    fn notice(&self) -> Option<String> {
        let number = count(self.malformed, "Application");
        (self.malformed > 0).then(|| format!("the hub answers with {number} of an unknown form, not shown here"))
    }

    /// Adds the Application with this JSON, if it is delivered to managed clusters.
    fn add(&mut self, json: &str) {
        let Ok(listed) = serde_json::from_str::<FetchedApplication>(json) else {
            self.malformed = self.malformed.saturating_add(1);
            return;
        };
        let is_pulled = listed.metadata.is_pulled();
        let uses_plugin = || listed.sources().any(|source| source.our_plugin().is_some());
        let is_delivered = is_pulled || listed.is_of(self.argocd) && uses_plugin();
        if !is_delivered {
            return;
        }
        let position = self.all.len();
        let mut unsynced = Vec::new();
        for work in listed.works(self.argocd) {
            if work.kind == KIND && work.is_unsynced() {
                unsynced.push((work.namespace.clone(), work.name.clone()));
            }
            self.by_work.insert(work.key(), position);
        }
        let hydration = listed.hydration_error();
        let mut conditions = listed.status.conditions.iter().flatten().chain(&hydration);
        let only_syncs_fail = conditions.all(|ApplicationCondition { kind, .. }| kind == SYNC_ERROR || !is_error(kind));
        self.all.push(DeliveredApplication {
            application: listed.overviewed(self.argocd),
            unreached: unsynced_clusters(listed.status.resources.as_deref()).filter(|_| only_syncs_fail),
            pulled_on: listed.metadata.annotations.get(CLUSTER).filter(|_| is_pulled).cloned(),
            unsynced,
            is_syncing: listed.last_sync().is_some_and(|sync| sync.is_running()),
        });
    }

    /// Returns the position of the Application of a work with this metadata. Only Argo CD's list counts: the agent of a cluster may write
    /// marks on its works.
    fn of_work(&self, metadata: &Value) -> Option<usize> {
        let (kind, namespace, name) = match set_of(metadata) {
            Some((namespace, name)) => (SET_KIND, namespace, name),
            None => (KIND, metadata["namespace"].as_str()?, metadata["name"].as_str()?),
        };
        let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        self.by_work.get(&key).copied()
    }

    /// Returns the states on a managed cluster with these works.
    fn on_cluster(&self, cluster: &str, works: &[WorkOnCluster], clock: &Clock) -> Vec<(Overviewed, WorkStatus)> {
        let mut states = Vec::new();
        let mut names = HashSet::new();
        for work in works {
            names.extend(work.metadata["name"].as_str());
            let Some(position) = self.of_work(&work.metadata) else {
                continue;
            };
            let json = serde_json::to_string(work).expect("JSON is JSON");
            if let Ok(health) = ocm::health::evaluate(&json, clock) {
                let delivered = &self.all[position];
                let mut application = delivered.application.clone();
                application.has_error &= delivered
                    .unreached
                    .as_ref()
                    .is_none_or(|clusters| clusters.contains(cluster));
                states.push((application, health));
            }
        }
        for delivered in &self.all {
            if delivered.pulled_on.as_deref() == Some(cluster) {
                states.push((
                    delivered.application.clone(),
                    pulled_work(&delivered.application, cluster),
                ));
            }
            let unsynced = delivered.unsynced.iter().filter(|(namespace, _)| namespace == cluster);
            for (_, name) in unsynced.filter(|(_, name)| !names.contains(&**name)) {
                states.push((delivered.application.clone(), missing_work(delivered, cluster, name)));
            }
        }
        states
    }
}

/// Returns the namespace and name of the ManifestWorkReplicaSet from which OCM has created a work.
fn set_of(metadata: &Value) -> Option<(&str, &str)> {
    metadata["labels"][OF_REPLICA_SET].as_str()?.split_once('.')
}

/// Returns the Applications, by namespace and name, to which a work or a ManifestWorkReplicaSet may belong by its labels, annotations
/// and name. They may be stale, or written by the agent of a cluster, which cannot change the name.
fn named_applications(metadata: &Value, argocd: &str) -> Vec<(String, String)> {
    let label = |key: &str| metadata["labels"][key].as_str();
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    let work = metadata["name"].as_str().unwrap_or_default();
    let tracked = annotation(TRACKING_ID).and_then(|id| id.split(':').next());
    let marks = [label(APPLICATION_LABEL), tracked, label(INSTANCE)];
    let mut applications: Vec<_> = marks
        .into_iter()
        .flatten()
        .filter_map(|mark| ApplicationName::named(mark, argocd).ok())
        .collect();
    if !applications.iter().any(|application| application.works.is_of(work)) {
        applications.extend(ApplicationName::named(names::application_of(work), argocd));
    }
    let pulled = annotation(HUB_NAMESPACE).zip(annotation(HUB_NAME));
    let pulled = pulled.filter(|(namespace, name)| {
        // They become a part of a path.
        ApplicationName::named(&format!("{namespace}/{name}"), argocd).is_ok()
    });
    let pulled = pulled.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
    let applications = applications
        .into_iter()
        .map(|application| (application.namespace, application.name));
    applications.chain(pulled).collect()
}

impl Hub {
    async fn overview(&self, argocd: &str) -> Result<OverviewRead, Error> {
        let mut applications = Applications::new(argocd);
        let mut notices = Vec::new();
        let mut add = |json: Box<RawValue>| applications.add(json.get());
        let read = self.each(&APPLICATIONS, "", ListParams::default(), &mut add).await;
        if let Some(why) = why_forbidden(read)? {
            notices.push(format!(
                "Applications outside the namespace {argocd} are not read: {why}"
            ));
            self.each(&APPLICATIONS, argocd, ListParams::default(), &mut add)
                .await?;
        }
        notices.extend(applications.notice());
        let all = applications.all.into_iter().map(|delivered| delivered.application);
        Ok((Overview::All(all.collect()), notices))
    }

    /// Reads the works on these clusters, and of the thousands of Applications of a hub only those that the works name. Argo CD's
    /// list of each then decides on its works. Returns one line if the user may read none.
    async fn overview_of_clusters(
        &self,
        argocd: &str,
        clusters: &[String],
    ) -> Result<Result<OverviewRead, String>, Error> {
        let names: BTreeSet<_> = clusters.iter().collect();
        let reads = names.into_iter().map(|cluster| async move {
            let mut works = Vec::new();
            let pages = ListParams::default().limit(WORK_PAGE);
            self.each(&WORKS, cluster, pages, |work: WorkOnCluster| works.push(work))
                .await?;
            Ok::<_, Error>((cluster, works))
        });
        let on_clusters = in_order(reads).await?;
        let (mut names, mut sets) = (BTreeSet::new(), BTreeSet::new());
        for work in on_clusters.iter().flat_map(|(_, works)| works) {
            match set_of(&work.metadata) {
                Some((namespace, name)) => {
                    // They become a part of a path.
                    sets.extend(
                        ApplicationName::named(&format!("{namespace}/{name}"), "")
                            .map(|application| (application.namespace, application.name)),
                    );
                }
                None => names.extend(named_applications(&work.metadata, argocd)),
            }
        }
        let mut refused = Vec::new();
        for set in self.find(&WORK_SETS, sets).await? {
            match set {
                Lookup::Found(set) => {
                    let set: Option<WorkOnCluster> = serde_json::from_str(&set).ok();
                    names.extend(set.iter().flat_map(|set| named_applications(&set.metadata, argocd)));
                }
                Lookup::NotFound => {}
                Lookup::Refused(why) => refused.push(why),
            }
        }
        let mut applications = Applications::new(argocd);
        for application in self.find(&APPLICATIONS, names).await? {
            match application {
                Lookup::Found(json) => applications.add(&json),
                Lookup::NotFound => {}
                Lookup::Refused(why) => refused.push(why),
            }
        }
        let notice = refused.first().map(|why| {
            let number = refused.len();
            format!("{number} of the Applications or ManifestWorkReplicaSets that works name cannot be read: {why}")
        });
        if let (Some(notice), true) = (&notice, applications.all.is_empty()) {
            return Ok(Err(format!("the hub at {} rejects the request: {notice}", self.url)));
        }
        let clock = Clock::at(Timestamp::now());
        let states = on_clusters.iter();
        let states = states.flat_map(|(cluster, works)| applications.on_cluster(cluster, works, &clock));
        let overview = Overview::OnClusters(OnCluster::all(states));
        let mut notices: Vec<_> = notice.into_iter().chain(applications.notice()).collect();
        let known = self.managed_clusters().await?;
        let without_works = on_clusters.iter().find(|(_, works)| works.is_empty());
        if let (Lookup::Refused(why), Some((cluster, _))) = (&known, without_works) {
            return Ok(Err(format!(
                "managed cluster {cluster} has no works, and may not be registered: managedclusters are not read: {why}"
            )));
        }
        for problem in clusters.iter().filter_map(|name| cluster_problem(name, known.found()?)) {
            if problem.cause == ProblemCause::ClusterUnknown {
                return Ok(Err(problem.line()));
            }
            notices.push(problem.line());
        }
        let unreachable = known.found().map(diagnosis::unreachable).unwrap_or_default();
        let shown = clusters.iter().filter(|name| unreachable.contains(*name));
        notices.extend(shown.map(|name| format!("{name} is unreachable: showing its last reported state")));
        Ok(Ok((overview, notices)))
    }

    /// Reads the JSON of objects of a kind by their namespaces and names, a bounded number at a time.
    async fn find(
        &self,
        resource: &'static Resource,
        names: BTreeSet<(String, String)>,
    ) -> Result<Vec<Lookup<String>>, Error> {
        let reads = names
            .into_iter()
            .map(|(namespace, name)| async move { self.get_text(resource, &namespace, &name).await });
        in_order(reads).await
    }
}

/// Returns the state of an Application of the pull model, which the controller mirrors from its cluster, as that of a work.
fn pulled_work(application: &Overviewed, cluster: &str) -> WorkStatus {
    let health = if application.health.is_empty() {
        HealthStatus::Waiting
    } else {
        application.health()
    };
    WorkStatus::whole(KIND, cluster, &application.name, health, application.message.clone())
}

/// Returns the state of a work that does not exist.
fn missing_work(delivered: &DeliveredApplication, cluster: &str, name: &str) -> WorkStatus {
    let health = if delivered.is_syncing {
        HealthStatus::Waiting
    } else {
        HealthStatus::Missing
    };
    let message = with_reason(
        &format!("Argo CD has not created the work {name}"),
        &delivered.application.message,
    );
    WorkStatus::whole(KIND, cluster, name, health, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocm::names::WorkName;
    use ocm::pull_model::PULL;
    use ocm::work::GROUP;
    use serde_json::json;

    fn resource(kind: &str, namespace: &str, name: &str, status: &str) -> Value {
        json!({"group": GROUP, "kind": kind, "namespace": namespace, "name": name, "status": status})
    }

    fn pruned(name: &str, status: &str) -> Value {
        let mut resource = resource(KIND, "eu1", name, status);
        resource["requiresPruning"] = true.into();
        resource
    }

    fn plugin() -> Value {
        json!({"project": "web", "source": {"plugin": {"name": "argocd-ocm-cmp"}}})
    }

    fn object(name: &str, labels: &Value, spec: &Value, status: &Value) -> String {
        let metadata = json!({"namespace": "argocd", "name": name, "labels": labels, "annotations": {CLUSTER: "eu1"}});
        json!({"metadata": metadata, "spec": spec, "status": status}).to_string()
    }

    fn applications() -> Applications<'static> {
        let mut all = Applications::new("argocd");
        let condition = |kind: &str, message: &str| json!({"type": kind, "message": message});
        let status = json!({
            "sync": {"status": "Synced"},
            "health": {"status": "Degraded"},
            "resources": [
                resource(KIND, "eu1", "shop", "Synced"),
                resource(SET_KIND, "fleet", "shop", "Synced"),
                pruned("old", "OutOfSync"),
            ],
            "conditions": [
                condition("OrphanedResourceWarning", "other"),
                condition("ManifestWorkDegradedWarning", "eu1: it crashes"),
                condition(INFO, "applied on 1 of 1 clusters, healthy on 0; 2 objects in 1 work"),
            ],
        });
        for (name, labels, spec) in [
            ("shop", json!({}), plugin()),
            ("pulled", json!({PULL: "True"}), json!({"source": {}})),
            ("on-the-hub", json!({}), json!({"source": {"path": "a"}})),
        ] {
            all.add(&object(name, &labels, &spec, &status));
        }
        all
    }

    #[test]
    fn only_applications_for_managed_clusters_are_kept() {
        let all = applications().all;
        let names: Vec<_> = all
            .iter()
            .map(|application| (&*application.application.name, application.pulled_on.as_deref()))
            .collect();
        assert_eq!(names, [("shop", None), ("pulled", Some("eu1"))]);
        assert_eq!(all[0].application.message, "eu1: it crashes");
        assert_eq!(all[0].application.project, "web");
        let totals = all[0].application.totals.as_deref();
        assert_eq!(
            totals,
            Some("applied on 1 of 1 clusters, healthy on 0; 2 objects in 1 work")
        );
    }

    #[test]
    fn only_errors_of_argo_cd_are_errors() {
        let has_error = |kind: &str| {
            let mut all = Applications::new("argocd");
            let status = json!({
                "health": {"status": "Healthy"},
                "resources": [resource(KIND, "eu1", "shop", "Synced")],
                "conditions": [{"type": kind, "message": "why"}],
            });
            all.add(&object("shop", &json!({}), &plugin(), &status));
            all.all[0].application.has_error
        };
        assert!(has_error("ComparisonError"));
        assert!(!has_error("ManifestWorkDegradedWarning") && !has_error("OrphanedResourceWarning"));
        let mut all = Applications::new("argocd");
        let hydrator = json!({"sourceHydrator": {"drySource": plugin()["source"]}});
        let failed = json!({"sourceHydrator": {"currentOperation": {"phase": "Failed", "message": "refused"}}});
        all.add(&object("shop", &json!({}), &hydrator, &failed));
        // Argo CD writes a condition only for an automated sync.
        for (sync, phase) in [
            ("OutOfSync", "Failed"),
            ("OutOfSync", "Succeeded"),
            ("Synced", "Failed"),
        ] {
            let operation = json!({"phase": phase, "message": "eu1 is on hold"});
            all.add(&object(
                "shop",
                &json!({}),
                &plugin(),
                &json!({"sync": {"status": sync}, "operationState": operation}),
            ));
        }
        let errors = all.all.iter().map(|delivered| &delivered.application);
        let errors: Vec<_> = errors
            .map(|application| (application.has_error, &*application.message))
            .collect();
        assert_eq!(
            errors,
            [(true, "refused"), (true, "eu1 is on hold"), (false, ""), (false, "")]
        );
    }

    #[test]
    fn applications_of_an_unknown_form_are_counted() {
        let mut all = applications();
        assert_eq!(all.notice(), None);
        all.add(r#"{"metadata": {"name": "shop"}, "status": {"resources": "none"}}"#);
        let notice = "the hub answers with 1 Application of an unknown form, not shown here";
        assert_eq!(all.notice().as_deref(), Some(notice));
    }

    #[test]
    fn work_belongs_to_the_application_that_lists_it() {
        let all = applications();
        let owner = |name: &str, labels: Value| {
            let marks = json!({TRACKING_ID: "shop:work.open-cluster-management.io/ManifestWork:eu1/x"});
            let metadata = json!({"namespace": "eu1", "name": name, "labels": labels, "annotations": marks});
            all.of_work(&metadata).is_some()
        };
        assert!(owner("shop", json!({})) && owner("any", json!({OF_REPLICA_SET: "fleet.shop"})));
        assert!(
            !owner("x", json!({})),
            "a mark that the cluster's agent may have written"
        );
        assert!(!owner("old", json!({})), "a work that would be pruned");
        assert!(!owner("shop", json!({OF_REPLICA_SET: "fleet.other"})));
    }

    #[test]
    fn works_are_found_by_name_after_a_failed_comparison() {
        let mut all = Applications::new("argocd");
        let works = ["shop", "shop.part-wave2", "shopping", "other"].map(|name| pruned(name, "Unknown"));
        let status = json!({"sync": {"status": "Unknown"}, "resources": works});
        all.add(&object("shop", &json!({}), &plugin(), &status));
        let mut names: Vec<_> = all.by_work.keys().map(|(.., name)| &**name).collect();
        names.sort_unstable();
        assert_eq!(names, ["shop", "shop.part-wave2"]);
    }

    #[test]
    fn works_name_applications_by_their_marks_or_else_by_their_names() {
        let named = |name: &str, labels: Value, annotations: Value| {
            let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
            let named = named_applications(&metadata, "argocd");
            let texts = named.iter().map(|(namespace, name)| format!("{namespace}/{name}"));
            texts.collect::<Vec<_>>().join(" ")
        };
        let id = |application: &str| json!({TRACKING_ID: format!("{application}:a/ManifestWork:eu1/x")});
        let label = |application: &str| json!({APPLICATION_LABEL: application});
        assert_eq!(named("shop.part-wave2", label("shop"), json!({})), "argocd/shop");
        assert_eq!(named("renamed", json!({}), id("team_shop")), "team/shop argocd/renamed");
        assert_eq!(named("x", json!({INSTANCE: "shop"}), json!({})), "argocd/shop argocd/x");
        // An agent has removed or changed the marks.
        let under_policy = "shop".parse::<WorkName>().expect("a name").under_policy().to_string();
        for work in ["shop", "shop.part-wave2", &under_policy] {
            assert_eq!(named(work, json!({}), json!({})), "argocd/shop");
            assert_eq!(named(work, label("other"), json!({})), "argocd/other argocd/shop");
        }
        let hub = |namespace: &str, name: &str| json!({HUB_NAMESPACE: namespace, HUB_NAME: name});
        assert_eq!(named("shop", label("shop"), hub("team", "a")), "argocd/shop team/a");
        // No path of another kind.
        for text in ["../x", "a/b/c", "", "a?b=c"] {
            assert_eq!(named("shop", label(text), hub(text, "x")), "argocd/shop", "{text}");
            assert_eq!(named("shop", label("shop"), hub("team", text)), "argocd/shop", "{text}");
        }
    }

    #[test]
    fn works_that_argo_cd_has_not_created_are_missing() {
        let clock = Clock::at(Timestamp::UNIX_EPOCH);
        let state = |operation: Value, works: &[WorkOnCluster]| {
            let mut all = Applications::new("argocd");
            let hook = json!({"group": GROUP, "kind": KIND, "namespace": "eu1", "name": "hook", "hook": true});
            let listed = [
                resource(KIND, "eu1", "shop", "Synced"),
                resource(KIND, "eu1", "shop.part-wave2", "OutOfSync"),
                resource(KIND, "eu2", "shop", "OutOfSync"),
                hook,
            ];
            let status = json!({"sync": {"status": "OutOfSync"}, "operationState": operation, "resources": listed});
            all.add(&object("shop", &json!({}), &plugin(), &status));
            let on_cluster = all.on_cluster("eu1", works, &clock).into_iter();
            on_cluster
                .map(|(_, work)| (work.name, work.health, work.message))
                .collect::<Vec<_>>()
        };
        let missing = |health, reason: &str| {
            let message = format!("Argo CD has not created the work shop.part-wave2{reason}");
            vec![("shop.part-wave2".to_owned(), health, message)]
        };
        assert_eq!(state(json!(null), &[]), missing(HealthStatus::Missing, ""));
        let failed = json!({"phase": "Failed", "message": "eu1 is on hold"});
        assert_eq!(state(failed, &[]), missing(HealthStatus::Missing, ": eu1 is on hold"));
        let running = json!({"phase": "Running"});
        assert_eq!(state(running, &[]), missing(HealthStatus::Waiting, ""));
        // A cluster on hold does not concern the others.
        let has_error = |cluster: &str| {
            let mut all = Applications::new("argocd");
            let listed = [
                resource(KIND, "eu1", "shop", "Synced"),
                resource(KIND, "eu2", "shop", "OutOfSync"),
            ];
            let operation = json!({"phase": "Failed", "message": "eu2 is on hold"});
            let status = json!({"sync": {"status": "OutOfSync"}, "operationState": operation, "resources": listed});
            all.add(&object("shop", &json!({}), &plugin(), &status));
            let work = json!({"metadata": {"namespace": cluster, "name": "shop"}});
            let on_cluster = all.on_cluster(cluster, &[serde_json::from_value(work).expect("a work")], &clock);
            on_cluster[0].0.has_error
        };
        assert_eq!(["eu1", "eu2"].map(has_error), [false, true]);
        // A manifest may be nested more deeply than serde_json parses.
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        let metadata = format!(r#"{{"namespace": "eu1", "name": "shop.part-wave2", "managedFields": [{deep}]}}"#);
        let work = format!(r#"{{"metadata": {metadata}, "spec": {{"workload": {{"manifests": [{deep}]}}}}}}"#);
        let states = state(json!(null), &[serde_json::from_str(&work).expect("a work")]);
        assert_eq!((states.len(), &*states[0].0), (1, "shop.part-wave2"));
    }
}
