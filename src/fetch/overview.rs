//! Reads the Applications of a hub, and the works on some of its managed clusters.

use super::{Hub, Reader, application, describe_error};
use crate::diagnosis::cluster_problem;
use crate::status::overview::{OnCluster, Overview, Overviewed};
use hub::{explain, status};
use jiff::Timestamp;
use kube::Error;
use kube::core::params::ListParams;
use ocm::health::{Clock, HealthStatus, WorkStatus};
use ocm::object_ref::ObjectRef;
use ocm::ownership::{ListedWork, OF_REPLICA_SET, listed_works};
use ocm::pull_model::{CLUSTER, INFO, OWN_CONDITIONS, PULL};
use ocm::resources::{APPLICATIONS, WORKS};
use ocm::work::{KIND, SET_KIND};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

impl Reader {
    /// Reads the Applications of the Argo CD in this namespace that are delivered to managed clusters; if `clusters` are named,
    /// their works there. Returns the reads that failed too, one line each.
    ///
    /// # Errors
    /// One line, if the hub cannot be reached or does not permit the read.
    pub fn overview(&self, namespace: &str, clusters: &[String]) -> Result<(Overview, Vec<String>), String> {
        let Self { runtime, hub, .. } = self;
        let read = runtime.block_on(hub.overview(namespace, clusters));
        read.map_err(|error| describe_error(&error, &hub.url))?
    }
}

/// An Application with what leads from a work to it.
struct Found {
    application: Overviewed,
    /// The managed cluster of the pull model.
    pulled_on: Option<String>,
}

/// The Applications, and the positions of those that deliver a work: by kind, namespace and name.
#[derive(Default)]
struct Applications {
    all: Vec<Found>,
    by_work: HashMap<ListedWork, usize>,
}

impl Applications {
    fn add(&mut self, object: Value, argocd: &str) {
        let status = &object["status"];
        let pulled_on = object["metadata"]["annotations"][CLUSTER].as_str().map(str::to_owned);
        let works: Vec<_> = listed_works(&object).collect();
        let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let is_reason = |condition: &&Value| {
            let kind = condition["type"].as_str().unwrap_or_default();
            kind != INFO && (kind.ends_with("Error") || OWN_CONDITIONS.iter().any(|own| kind.starts_with(own)))
        };
        let reason = conditions.iter().find(is_reason);
        let message = reason
            .and_then(|it| it["message"].as_str())
            .unwrap_or_default()
            .to_owned();
        let totals = conditions.iter().find(|it| it["type"] == INFO);
        let totals = totals.and_then(|it| it["message"].as_str()).map(str::to_owned);
        let is_pulled = object["metadata"]["labels"][PULL] == "true";
        let Ok(application) = serde_json::from_value::<application::Application>(object) else {
            return;
        };
        let application = match (is_pulled, application) {
            (true, application) => Some(application.reduced()),
            (false, application) => application.of_argo_cd(argocd),
        };
        let Some(application) = application else { return };
        let own = application.qualified_name.strip_prefix(&format!("{argocd}/"));
        let application = Overviewed {
            name: own.unwrap_or(&application.qualified_name).to_owned(),
            project: application.project,
            sync: application.sync,
            health: application.health,
            totals,
            message,
        };
        let position = self.all.len();
        self.by_work.extend(works.into_iter().map(|work| (work, position)));
        self.all.push(Found {
            application,
            pulled_on: pulled_on.filter(|_| is_pulled),
        });
    }

    /// Returns the Application of a work. Only Argo CD's list counts: the agent of a cluster may write marks on its works.
    fn of_work(&self, work: &Value) -> Option<&Overviewed> {
        let metadata = &work["metadata"];
        let set = metadata["labels"][OF_REPLICA_SET].as_str();
        let (kind, namespace, name) = match set.and_then(|set| set.split_once('.')) {
            Some((namespace, name)) => (SET_KIND, namespace, name),
            None => (KIND, metadata["namespace"].as_str()?, metadata["name"].as_str()?),
        };
        let key = (kind.to_owned(), namespace.to_owned(), name.to_owned());
        let position = self.by_work.get(&key)?;
        self.all.get(*position).map(|it| &it.application)
    }
}

impl Hub {
    /// Reads the Applications and their works. Returns one line if there is no Argo CD.
    async fn overview(
        &self,
        argocd: &str,
        clusters: &[String],
    ) -> Result<Result<(Overview, Vec<String>), String>, Error> {
        if self.tracking(argocd).await?.is_none() {
            return Ok(Err(self.no_argo_cd(argocd).await?));
        }
        let mut applications = Applications::default();
        let mut notices = Vec::new();
        let everywhere = ObjectRef::new("", "");
        match self
            .each(&APPLICATIONS, &everywhere, ListParams::default(), |it| {
                applications.add(it, argocd);
            })
            .await
        {
            Ok(()) => {}
            Err(error) if status(&error) == Some(403) => {
                notices.push(format!(
                    "Applications outside the namespace {argocd} are not read: {}",
                    explain(&error)
                ));
                let own = ObjectRef::new(argocd, "");
                self.each(&APPLICATIONS, &own, ListParams::default(), |it| {
                    applications.add(it, argocd);
                })
                .await?;
            }
            Err(error) => return Err(error),
        }
        if clusters.is_empty() {
            let all = applications.all.into_iter().map(|it| it.application).collect();
            return Ok(Ok((Overview::All(all), notices)));
        }
        let known = self.clusters().await?;
        let problem = |name: &String| cluster_problem(name, known.as_ref()?);
        notices.extend(clusters.iter().filter_map(problem).map(|it| it.line()));
        let clock = Clock::at(Timestamp::now());
        let mut works = Vec::new();
        for cluster in clusters.iter().collect::<BTreeSet<_>>() {
            let keep = |mut work: Value| {
                let Some(application) = applications.of_work(&work).cloned() else {
                    return;
                };
                // Objects of a list have no kind.
                work["kind"] = KIND.into();
                if let Ok(health) = ocm::health::evaluate(&work.to_string(), &clock) {
                    works.push((application, health));
                }
            };
            self.each(&WORKS, &ObjectRef::new(cluster, ""), ListParams::default(), keep)
                .await?;
            let pulled = applications
                .all
                .iter()
                .filter(|it| it.pulled_on.as_ref() == Some(cluster));
            works.extend(pulled.map(|it| (it.application.clone(), pulled_work(&it.application, cluster))));
        }
        Ok(Ok((Overview::OnClusters(OnCluster::all(works)), notices)))
    }
}

/// Returns the state of an Application of the pull model, which the controller mirrors from its cluster, as that of a work.
fn pulled_work(application: &Overviewed, cluster: &str) -> WorkStatus {
    WorkStatus {
        kind: KIND,
        namespace: cluster.to_owned(),
        name: application.name.clone(),
        health: if application.health.is_empty() {
            HealthStatus::Waiting
        } else {
            application.health()
        },
        message: application.message.clone(),
        objects: Vec::new(),
        as_a_whole: true,
        overdue: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocm::work::GROUP;
    use serde_json::json;

    fn applications() -> Applications {
        let mut all = Applications::default();
        let resource = |kind: &str, namespace: &str, name: &str| json!({"group": GROUP, "kind": kind, "namespace": namespace, "name": name});
        let pruned = json!({"group": GROUP, "kind": KIND, "namespace": "eu1", "name": "old", "requiresPruning": true});
        let condition = |kind: &str, message: &str| json!({"type": kind, "message": message});
        let plugin = json!({"project": "web", "source": {"plugin": {"name": "argocd-ocm-cmp"}}});
        let status = json!({
            "sync": {"status": "Synced"},
            "health": {"status": "Degraded"},
            "resources": [resource(KIND, "eu1", "shop"), resource(SET_KIND, "fleet", "shop"), pruned],
            "conditions": [
                condition("OrphanedResourceWarning", "other"),
                condition("ManifestWorkDegradedWarning", "eu1: it crashes"),
                condition(INFO, "applied on 1 of 1 clusters, healthy on 0; 2 objects in 1 work"),
            ],
        });
        for (name, labels, spec) in [
            ("shop", json!({}), plugin),
            ("pulled", json!({PULL: "true"}), json!({"source": {}})),
            ("on-the-hub", json!({}), json!({"source": {"path": "a"}})),
        ] {
            let metadata =
                json!({"namespace": "argocd", "name": name, "labels": labels, "annotations": {CLUSTER: "eu1"}});
            all.add(json!({"metadata": metadata, "spec": spec, "status": status}), "argocd");
        }
        all
    }

    #[test]
    fn only_applications_for_managed_clusters_are_kept() {
        let all = applications().all;
        let names: Vec<_> = all
            .iter()
            .map(|it| (&*it.application.name, it.pulled_on.as_deref()))
            .collect();
        assert_eq!(names, [("shop", None), ("pulled", Some("eu1"))]);
        assert_eq!(all[0].application.message, "eu1: it crashes");
    }

    #[test]
    fn work_belongs_to_the_application_that_lists_it() {
        let all = applications();
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
}
