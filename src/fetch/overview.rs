//! Reads the Applications of a hub, and the works on some of its managed clusters.

use super::application::{Plugin, Source};
use super::{Hub, Reader, describe_error};
use crate::status::overview::{OnCluster, Overview, Overviewed};
use hub::{explain, in_order, status};
use jiff::Timestamp;
use kube::Error;
use kube::core::params::ListParams;
use ocm::application_works::Application;
use ocm::health::{Clock, HealthStatus, WorkStatus};
use ocm::names::WorkName;
use ocm::object_ref::ObjectRef;
use ocm::ownership::{ListedWork, OF_REPLICA_SET};
use ocm::pull_model::{CLUSTER, INFO, OWN_CONDITIONS, PULL};
use ocm::resources::{APPLICATIONS, WORKS};
use ocm::work::{GROUP, KIND, SET_KIND};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

impl Reader {
    /// Reads the Applications of the Argo CD in this namespace that are delivered to managed clusters; if `clusters` are named,
    /// their works there. Returns the reads that failed too, one line each.
    ///
    /// # Errors
    /// One line, if the hub cannot be reached or does not permit the read.
    pub fn overview(&self, namespace: &str, clusters: &[String]) -> Result<(Overview, Vec<String>), String> {
        let Self { runtime, hub, .. } = self;
        let read = runtime.block_on(hub.overview(namespace, clusters));
        read.map_err(|error| describe_error(&error, &hub.url))
    }
}

/// The fields of an Application in a list that are shown, or lead to its clusters. A hub has thousands, and the others are most of
/// their bytes: they are skipped.
#[derive(Deserialize)]
struct ListedApplication {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    project: String,
    source: Option<Source>,
    sources: Option<Vec<Source>>,
    source_hydrator: Option<Hydrator>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Hydrator {
    dry_source: Option<Source>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Option<Vec<Condition>>,
    controller_namespace: Option<String>,
    health: State,
    operation_state: Option<Operation>,
    resources: Option<Vec<Resource>>,
    sync: State,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct State {
    status: String,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct Operation {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Resource {
    group: String,
    kind: String,
    namespace: String,
    name: String,
    status: String,
    hook: bool,
    requires_pruning: bool,
}

impl ListedApplication {
    /// Returns the settings of our plugin in its sources.
    fn plugins(&self) -> impl Iterator<Item = &Plugin> {
        let Spec { source, sources, .. } = &self.spec;
        let hydrated = self.spec.source_hydrator.as_ref().and_then(|it| it.dry_source.as_ref());
        let sources = source.iter().chain(hydrated).chain(sources.iter().flatten());
        sources.filter_map(|source| source.plugin.as_ref()).filter(|it| it.is_ours())
    }

    /// Returns true if it belongs to the Argo CD in this namespace. One in another namespace names its Argo CD after the first
    /// reconciliation.
    fn is_of(&self, argocd: &str) -> bool {
        self.metadata.namespace == argocd || self.status.controller_namespace.as_deref() == Some(argocd)
    }

    /// Returns true if Argo CD has compared it. Then its list of resources is complete, also with those that do not exist.
    fn is_compared(&self) -> bool {
        ["Synced", "OutOfSync"].contains(&&*self.status.sync.status)
    }

    /// Returns its works in Argo CD's list. Those that Argo CD would prune may only have the tracking mark, which the agent of a
    /// cluster may write. After a failed comparison these are all works; then their names decide.
    fn works(&self, argocd: &str) -> impl Iterator<Item = &Resource> {
        let full_name = format!("{}/{}", self.metadata.namespace, self.metadata.name);
        let mut names: Vec<WorkName> = self
            .plugins()
            .filter_map(|plugin| plugin.work_name()?.parse().ok())
            .collect();
        names.extend(Application::named(&full_name, argocd).map(|it| it.works));
        let resources = self.status.resources.iter().flatten();
        resources.filter(move |it| {
            let is_named = || match &*it.kind {
                SET_KIND => names.iter().any(|name| name.is_of_set(&it.name, &it.namespace)),
                _ => names.iter().any(|name| name.is_of(&it.name)),
            };
            it.group == GROUP && (!it.requires_pruning || it.status == "Unknown" && is_named())
        })
    }

    /// Returns the first reason why it is not healthy or not delivered.
    fn reason(&self) -> Option<&str> {
        let is_reason = |it: &&Condition| {
            it.kind != INFO
                && (it.kind.ends_with("Error") || OWN_CONDITIONS.iter().any(|own| it.kind.starts_with(own)))
        };
        let found = self.status.conditions.iter().flatten().find(is_reason);
        found.map(|it| &*it.message)
    }

    fn overviewed(&self, argocd: &str) -> Overviewed {
        let Metadata { name, namespace, .. } = &self.metadata;
        let totals = self.status.conditions.iter().flatten().find(|it| it.kind == INFO);
        Overviewed {
            name: if namespace == argocd {
                name.clone()
            } else {
                format!("{namespace}/{name}")
            },
            project: Some(&self.spec.project).filter(|it| !it.is_empty()).map_or("default", |it| it).to_owned(),
            sync: self.status.sync.status.clone(),
            health: self.status.health.status.clone(),
            totals: totals.map(|it| it.message.clone()),
            message: self.reason().unwrap_or_default().to_owned(),
        }
    }
}

/// An Application that is delivered to managed clusters.
struct Found {
    application: Overviewed,
    /// The managed cluster of the pull model.
    pulled_on: Option<String>,
    /// The clusters in question for which Argo CD lists works that should exist, or that its settings name if Argo CD has not
    /// compared it.
    expected_on: BTreeSet<String>,
    /// The message of an operation that failed.
    failure: Option<String>,
}

/// The Applications, and the positions of those that deliver a work to the clusters in question: by kind, namespace and name.
struct Applications<'c> {
    argocd: &'c str,
    clusters: BTreeSet<&'c str>,
    all: Vec<Found>,
    by_work: HashMap<ListedWork, usize>,
}

impl<'c> Applications<'c> {
    fn new(argocd: &'c str, clusters: &'c [String]) -> Self {
        Self {
            argocd,
            clusters: clusters.iter().map(|it| &**it).collect(),
            all: Vec::new(),
            by_work: HashMap::new(),
        }
    }

    /// Adds the Application with this JSON, if it is delivered to managed clusters.
    fn add(&mut self, json: &str) {
        let Ok(listed) = serde_json::from_str::<ListedApplication>(json) else {
            return;
        };
        let is_pulled = listed.metadata.labels.get(PULL).is_some_and(|it| it == "true");
        if !is_pulled && !(listed.is_of(self.argocd) && listed.plugins().next().is_some()) {
            return;
        }
        let position = self.all.len();
        let mut expected_on = BTreeSet::new();
        if !self.clusters.is_empty() {
            for work in listed.works(self.argocd) {
                let is_there = self.clusters.contains(&*work.namespace);
                if work.kind == KIND && is_there && !work.hook {
                    expected_on.insert(work.namespace.clone());
                }
                if work.kind == SET_KIND || is_there {
                    let key = (work.kind.clone(), work.namespace.clone(), work.name.clone());
                    self.by_work.insert(key, position);
                }
            }
            if !is_pulled && !listed.is_compared() {
                let targets = listed.plugins().flat_map(Plugin::clusters);
                expected_on.extend(targets.filter(|it| self.clusters.contains(&**it)));
            }
        }
        let failed = |it: &&Operation| it.phase == "Failed" || it.phase == "Error";
        self.all.push(Found {
            application: listed.overviewed(self.argocd),
            pulled_on: listed.metadata.annotations.get(CLUSTER).filter(|_| is_pulled).cloned(),
            expected_on,
            failure: listed.status.operation_state.as_ref().filter(failed).map(|it| it.message.clone()),
        });
    }

    /// Returns the position of the Application of a work. Only Argo CD's list counts: the agent of a cluster may write marks on its
    /// works.
    fn of_work(&self, work: &Value) -> Option<usize> {
        let metadata = &work["metadata"];
        let set = metadata["labels"][OF_REPLICA_SET].as_str();
        let (kind, namespace, name) = match set.and_then(|set| set.split_once('.')) {
            Some((namespace, name)) => (SET_KIND, namespace, name),
            None => (KIND, metadata["namespace"].as_str()?, metadata["name"].as_str()?),
        };
        let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        self.by_work.get(&key).copied()
    }

    /// Returns the states on a managed cluster with these works, also of the Applications without a work there.
    fn on_cluster(&self, cluster: &str, works: Vec<Value>, clock: &Clock) -> Vec<(Overviewed, WorkStatus)> {
        let mut states = Vec::new();
        let mut present = HashSet::new();
        for mut work in works {
            let Some(position) = self.of_work(&work) else { continue };
            // Objects of a list have no kind.
            work["kind"] = KIND.into();
            if let Ok(health) = ocm::health::evaluate(&work.to_string(), clock) {
                present.insert(position);
                states.push((self.all[position].application.clone(), health));
            }
        }
        for (position, found) in self.all.iter().enumerate() {
            if found.pulled_on.as_deref() == Some(cluster) {
                states.push((found.application.clone(), pulled_work(&found.application, cluster)));
            } else if found.expected_on.contains(cluster) && !present.contains(&position) {
                states.push((found.application.clone(), missing_work(found, cluster)));
            }
        }
        states
    }
}

impl Hub {
    async fn overview(&self, argocd: &str, clusters: &[String]) -> Result<(Overview, Vec<String>), Error> {
        let mut applications = Applications::new(argocd, clusters);
        let mut notices = Vec::new();
        let mut add = |json: Box<RawValue>| applications.add(json.get());
        match self
            .each(&APPLICATIONS, &ObjectRef::new("", ""), ListParams::default(), &mut add)
            .await
        {
            Ok(()) => {}
            Err(error) if status(&error) == Some(403) => {
                notices.push(format!(
                    "Applications outside the namespace {argocd} are not read: {}",
                    explain(&error)
                ));
                self.each(&APPLICATIONS, &ObjectRef::new(argocd, ""), ListParams::default(), &mut add)
                    .await?;
            }
            Err(error) => return Err(error),
        }
        if clusters.is_empty() {
            let all = applications.all.into_iter().map(|it| it.application).collect();
            return Ok((Overview::All(all), notices));
        }
        // Read last: an Application of the list has created its works by now.
        let reads = applications.clusters.iter().map(|cluster| async move {
            let mut works = Vec::new();
            self.each(&WORKS, &ObjectRef::new(*cluster, ""), ListParams::default(), |it: Value| works.push(it))
                .await?;
            Ok::<_, Error>((*cluster, works))
        });
        let clock = Clock::at(Timestamp::now());
        let states = in_order(reads).await?.into_iter();
        let states = states.flat_map(|(cluster, works)| applications.on_cluster(cluster, works, &clock));
        Ok((Overview::OnClusters(OnCluster::all(states)), notices))
    }
}

/// Returns the state of an Application of the pull model, which the controller mirrors from its cluster, as that of a work.
fn pulled_work(application: &Overviewed, cluster: &str) -> WorkStatus {
    let health = if application.health.is_empty() {
        HealthStatus::Waiting
    } else {
        application.health()
    };
    whole_work(cluster, &application.name, health, application.message.clone())
}

/// Returns the state of an Application that has no work on a managed cluster.
fn missing_work(found: &Found, cluster: &str) -> WorkStatus {
    let Overviewed { sync, message, .. } = &found.application;
    let health = if sync.is_empty() {
        HealthStatus::Waiting
    } else {
        HealthStatus::Missing
    };
    let message = Some(message.clone()).filter(|it| !it.is_empty());
    let message = message.or_else(|| found.failure.clone());
    let message = message.unwrap_or_else(|| "Argo CD has not created its work".to_owned());
    whole_work(cluster, "", health, message)
}

/// Returns the state of a work without objects.
fn whole_work(cluster: &str, name: &str, health: HealthStatus, message: String) -> WorkStatus {
    WorkStatus {
        kind: KIND,
        namespace: cluster.to_owned(),
        name: name.to_owned(),
        health,
        message,
        objects: Vec::new(),
        as_a_whole: true,
        overdue: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(kind: &str, namespace: &str, name: &str, status: &str) -> Value {
        json!({"group": GROUP, "kind": kind, "namespace": namespace, "name": name, "status": status})
    }

    fn pruned(name: &str, status: &str) -> Value {
        let mut resource = resource(KIND, "eu1", name, status);
        resource["requiresPruning"] = true.into();
        resource
    }

    fn plugin(clusters: &str) -> Value {
        json!({"project": "web", "source": {"plugin": {
            "name": "argocd-ocm-cmp",
            "parameters": [{"name": "clusters", "string": clusters}],
        }}})
    }

    fn object(name: &str, labels: &Value, spec: &Value, status: &Value) -> String {
        let metadata = json!({"namespace": "argocd", "name": name, "labels": labels, "annotations": {CLUSTER: "eu1"}});
        json!({"metadata": metadata, "spec": spec, "status": status}).to_string()
    }

    fn applications(clusters: &[String]) -> Applications<'_> {
        let mut all = Applications::new("argocd", clusters);
        let condition = |kind: &str, message: &str| json!({"type": kind, "message": message});
        let status = json!({
            "sync": {"status": "Synced"},
            "health": {"status": "Degraded"},
            "resources": [
                resource(KIND, "eu1", "shop", "Synced"),
                resource(KIND, "eu2", "shop", "OutOfSync"),
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
            ("shop", json!({}), plugin("eu1,eu2")),
            ("pulled", json!({PULL: "true"}), json!({"source": {}})),
            ("on-the-hub", json!({}), json!({"source": {"path": "a"}})),
        ] {
            all.add(&object(name, &labels, &spec, &status));
        }
        all
    }

    /// Returns the cluster, name, health and message of each state on these clusters without any works.
    fn without_works(all: &Applications<'_>) -> Vec<(String, HealthStatus, String)> {
        let clock = Clock::at(Timestamp::UNIX_EPOCH);
        let of = |cluster: &&str| all.on_cluster(cluster, Vec::new(), &clock);
        let states = all.clusters.iter().flat_map(of);
        states
            .map(|(application, work)| {
                let place = format!("{}/{}", work.namespace, application.name);
                (place, work.health, work.message)
            })
            .collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn only_applications_for_managed_clusters_are_kept() {
        let all = applications(&[]).all;
        let names: Vec<_> = all
            .iter()
            .map(|it| (&*it.application.name, it.pulled_on.as_deref()))
            .collect();
        assert_eq!(names, [("shop", None), ("pulled", Some("eu1"))]);
        assert_eq!(all[0].application.message, "eu1: it crashes");
        assert_eq!(all[0].application.project, "web");
        let totals = all[0].application.totals.as_deref();
        assert_eq!(totals, Some("applied on 1 of 1 clusters, healthy on 0; 2 objects in 1 work"));
    }

    #[test]
    fn work_belongs_to_the_application_that_lists_it() {
        let clusters = names(&["eu1"]);
        let all = applications(&clusters);
        let owner = |name: &str, labels: Value| {
            let marks =
                json!({"argocd.argoproj.io/tracking-id": "shop:work.open-cluster-management.io/ManifestWork:eu1/x"});
            let work = json!({"metadata": {"namespace": "eu1", "name": name, "labels": labels, "annotations": marks}});
            all.of_work(&work).is_some()
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
        let clusters = names(&["eu1"]);
        let mut all = Applications::new("argocd", &clusters);
        let works = ["shop", "shop.part-wave2", "shopping", "other"].map(|name| pruned(name, "Unknown"));
        let status = json!({"sync": {"status": "Unknown"}, "resources": works});
        all.add(&object("shop", &json!({}), &plugin(""), &status));
        let mut found: Vec<_> = all.by_work.keys().map(|(.., name)| &**name).collect();
        found.sort_unstable();
        assert_eq!(found, ["shop", "shop.part-wave2"]);
    }

    #[test]
    fn application_without_a_work_is_shown_with_the_reason() {
        let clusters = names(&["eu1", "eu2", "eu3"]);
        let all = applications(&clusters);
        let crashes = || "eu1: it crashes".to_owned();
        assert_eq!(
            without_works(&all),
            [
                ("eu1/shop".to_owned(), HealthStatus::Missing, crashes()),
                ("eu1/pulled".to_owned(), HealthStatus::Degraded, crashes()),
                ("eu2/shop".to_owned(), HealthStatus::Missing, crashes()),
            ]
        );

        let mut all = Applications::new("argocd", &clusters);
        let refused = json!([{"type": "ComparisonError", "message": "the policy does not allow Deployments"}]);
        let hook = json!({"group": GROUP, "kind": KIND, "namespace": "eu1", "name": "hook", "hook": true});
        for (name, status) in [
            ("new", json!({})),
            ("refused", json!({"sync": {"status": "Unknown"}, "conditions": refused})),
            ("elsewhere", json!({"sync": {"status": "Synced"}, "resources": [hook]})),
            (
                "failed",
                json!({
                    "sync": {"status": "OutOfSync"},
                    "operationState": {"phase": "Failed", "message": "eu3 is on hold"},
                    "resources": [resource(KIND, "eu3", "failed", "OutOfSync")],
                }),
            ),
        ] {
            all.add(&object(name, &json!({}), &plugin("eu3"), &status));
        }
        let state = |name: &str, health, message: &str| (format!("eu3/{name}"), health, message.to_owned());
        assert_eq!(
            without_works(&all),
            [
                state("new", HealthStatus::Waiting, "Argo CD has not created its work"),
                state("refused", HealthStatus::Missing, "the policy does not allow Deployments"),
                state("failed", HealthStatus::Missing, "eu3 is on hold"),
            ]
        );
    }
}
