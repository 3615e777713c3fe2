//! The kept fields of works.

use super::{OcmCondition, ReadMetadata, plain};
use crate::doctor;
use crate::doctor::{AGENT_LABEL, ReplicaSet};
use manifest::json::webhook_size;
use manifest::key::ObjectKey;
use manifest::kinds::GroupKind;
use ocm::health::{NO_CLUSTER, resource_name_setting, with_remedy};
use ocm::ownership::OF_REPLICA_SET;
use ocm::pull_model::HUB_NAME;
use ocm::tracking::{INSTALLATION_ID, ObjectIdentity, TRACKING_ID, Tracking, TrackingMarks};
use ocm::work as works;
use primitives::object_ref::ObjectRef;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A ManifestWork, or a ManifestWorkReplicaSet.
#[derive(Deserialize)]
pub(crate) struct ReadWork {
    metadata: ReadMetadata,
    #[serde(default)]
    spec: WorkSpec,
    #[serde(default)]
    status: ReadWorkStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct WorkSpec {
    workload: Option<Workload>,
    executor: Option<Value>,
    manifest_configs: Option<Vec<ManifestConfig>>,
    /// The Placements of a ManifestWorkReplicaSet.
    placement_refs: Option<Vec<PlacementName>>,
}

impl WorkSpec {
    /// Returns the JSON of each object.
    fn manifests(&self) -> impl Iterator<Item = &str> {
        let workload = self.workload.iter();
        let manifests = workload.flat_map(|workload| workload.manifests.iter().flatten());
        manifests.map(|manifest| manifest.get())
    }
}

#[derive(Deserialize)]
struct PlacementName {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestConfig {
    resource_identifier: ResourceIdentifier,
    #[serde(default)]
    feedback_scrape_type: String,
}

/// An object as OCM names it; in a ManifestConfig, name and namespace may be `*`.
#[derive(Deserialize)]
struct ResourceIdentifier {
    #[serde(default)]
    group: String,
    /// The kind; empty in a ManifestConfig.
    #[serde(default)]
    kind: String,
    #[serde(default)]
    resource: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

impl ResourceIdentifier {
    fn names(&self) -> [&str; 4] {
        [&self.group, &self.resource, &self.namespace, &self.name]
    }
}

/// The ManifestConfigs of a work, by the objects that they name. An agent may report thousands of objects.
struct ManifestConfigs<'c>(HashMap<[&'c str; 4], (usize, &'c ManifestConfig)>);

impl<'c> ManifestConfigs<'c> {
    fn new(configs: &'c [ManifestConfig]) -> Self {
        let entries = configs.iter().enumerate();
        Self(
            entries
                .map(|entry| (entry.1.resource_identifier.names(), entry))
                .collect(),
        )
    }

    /// Returns the ManifestConfig that applies to an object: as for the agent, the last of several.
    fn find(&self, object: &ResourceIdentifier) -> Option<&'c ManifestConfig> {
        let entries = works::config_identifiers(object.names()).map(|names| self.0.get(&names));
        let last = entries.into_iter().flatten().max_by_key(|(position, _)| *position);
        last.map(|(_, config)| *config)
    }
}

#[derive(Deserialize)]
struct Workload {
    manifests: Option<Vec<Box<RawValue>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ReadWorkStatus {
    conditions: Option<Vec<OcmCondition>>,
    resource_status: Option<ResourceStatus>,
}

#[derive(Deserialize)]
struct ResourceStatus {
    manifests: Option<Vec<Manifest>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    conditions: Option<Vec<OcmCondition>>,
    resource_meta: Option<ResourceIdentifier>,
}

/// Returns true if conditions of objects have no generation. Agents write it since OCM 1.1 to the results of rules, and since 1.2 to
/// Applied; never again to those of a work that was complete before.
fn is_of_old_agent(manifests: &[Manifest], is_of_set: bool) -> bool {
    let mut conditions = manifests
        .iter()
        .filter_map(|manifest| manifest.conditions.as_ref())
        .flatten();
    conditions.any(|condition| {
        condition.observed_generation == 0
            && (condition.reason.starts_with("ConditionRule") || is_of_set && condition.kind == "Applied")
    })
}

/// Returns the kinds and namespaces of the objects that the agent watches.
fn watched(manifests: &[Manifest], configs: &ManifestConfigs<'_>) -> BTreeSet<Box<str>> {
    let is_watched = |object: &&ResourceIdentifier| {
        let config = configs.find(object);
        config.is_some_and(|config| config.feedback_scrape_type == "Watch")
    };
    let objects = manifests.iter().filter_map(|manifest| manifest.resource_meta.as_ref());
    let informer = |object: &ResourceIdentifier| {
        let ResourceIdentifier {
            group,
            resource,
            namespace,
            ..
        } = object;
        format!("{resource}.{group}/{namespace}").into()
    };
    objects.filter(is_watched).map(informer).collect()
}

/// Returns the settings of the resource names of objects to which no ManifestConfig applies, as `Kind.group=resource`.
fn other_resource_names(manifests: &[Manifest], configs: &ManifestConfigs<'_>) -> BTreeSet<Box<str>> {
    let objects = manifests.iter().filter_map(|manifest| manifest.resource_meta.as_ref());
    let others = objects
        .filter(|object| !object.kind.is_empty() && !object.resource.is_empty() && configs.find(object).is_none());
    let setting = |object: &ResourceIdentifier| {
        let setting = resource_name_setting(&object.group, &object.kind, &object.resource);
        setting.map_or_else(|| "KIND.GROUP=RESOURCE".into(), Into::into)
    };
    others.map(setting).collect()
}

/// Returns the user as which the agent applies the objects of a work with this executor.
fn executor_user(executor: &Value) -> Box<str> {
    let account = &executor["subject"]["serviceAccount"];
    let text = |key: &str| account[key].as_str().unwrap_or_default();
    format!("system:serviceaccount:{}:{}", text("namespace"), text("name")).into()
}

/// Returns the name of an object, unless it is a Namespace.
fn object_name(text: &str) -> Option<Box<str>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ManifestHead {
        api_version: String,
        kind: String,
        metadata: ManifestName,
    }
    #[derive(Deserialize)]
    struct ManifestName {
        name: String,
        namespace: Option<String>,
    }
    let ManifestHead {
        api_version,
        kind,
        metadata,
    } = serde_json::from_str(text).ok()?;
    let key = ObjectKey {
        kind: GroupKind::from_api_version(&api_version, &kind),
        namespace: metadata.namespace.map(Into::into),
        name: metadata.name.into(),
    };
    (!key.kind.is("", "Namespace")).then(|| key.to_string().into())
}

impl ReadWork {
    /// Returns the Placements of a ManifestWorkReplicaSet that selects no managed cluster.
    pub(crate) fn empty_placements(&self) -> Vec<ObjectRef> {
        let mut conditions = self.status.conditions.iter().flatten();
        let is_empty =
            conditions.any(|condition| condition.kind == "PlacementVerified" && condition.reason == NO_CLUSTER);
        let placements = self.spec.placement_refs.iter().flatten().filter(|_| is_empty);
        placements
            .map(|placement| ObjectRef::new(&self.metadata.namespace, &placement.name))
            .collect()
    }

    /// Returns it as a ManifestWorkReplicaSet, if it belongs to an Application.
    pub(crate) fn set(self, tracking: &Tracking) -> Option<ReplicaSet> {
        let application = self.application(works::SET_KIND, tracking)?.into();
        Some(ReplicaSet {
            application,
            empty_placements: self.empty_placements().iter().map(ObjectRef::to_string).collect(),
            qualified_name: format!("{}/{}", self.metadata.namespace, self.metadata.name),
            created: self.metadata.creation_timestamp,
            has_status: self.status.conditions.is_some_and(|all| !all.is_empty()),
        })
    }

    /// Returns its managed cluster if it delivers an object that names this user, such as a ClusterRoleBinding.
    pub(crate) fn cluster_with_binding(&self, user: &str) -> Option<String> {
        let mut manifests = self.spec.manifests();
        let is_bound = self.metadata.deletion_timestamp.is_none() && manifests.any(|manifest| manifest.contains(user));
        is_bound.then(|| self.metadata.namespace.clone())
    }

    /// Returns it as a ManifestWork, if it belongs to an Application or to one of these sets, or is for argocd-agent.
    pub(crate) fn work(self, tracking: &Tracking, sets: &BTreeMap<String, Box<str>>) -> Option<doctor::HubWork> {
        let application: Option<Box<str>> = match self.label(OF_REPLICA_SET) {
            Some(set) => sets.get(set).cloned(),
            None => self.application(works::KIND, tracking).map(Into::into),
        };
        let is_of_controller = self.annotation(HUB_NAME).is_some() || self.label(AGENT_LABEL) == Some("true");
        if application.is_none() && (self.label(OF_REPLICA_SET).is_some() || !is_of_controller) {
            return None;
        }
        let is_of_set = self.label(OF_REPLICA_SET).is_some();
        let of_plugin = self.label(works::APPLICATION_LABEL).is_some();
        let conditions = self.status.conditions.unwrap_or_default();
        let applied = conditions.iter().find(|condition| condition.kind == "Applied");
        let manifests = self
            .status
            .resource_status
            .and_then(|status| status.manifests)
            .unwrap_or_default();
        let is_complete = conditions
            .iter()
            .any(|condition| condition.kind == "Complete" && condition.status == "True");
        let of_old_agent = !is_complete && is_of_old_agent(&manifests, is_of_set);
        let configs = ManifestConfigs::new(self.spec.manifest_configs.as_deref().unwrap_or_default());
        let watched = watched(&manifests, &configs);
        let other_resource_names = if of_plugin {
            other_resource_names(&manifests, &configs)
        } else {
            BTreeSet::new()
        };
        let mut refused = manifests.into_iter().filter_map(|manifest| {
            let conditions = manifest.conditions?.into_iter();
            let applied = conditions.into_iter().find(|condition| condition.kind == "Applied")?;
            (applied.status == "False").then_some((manifest.resource_meta, applied.message))
        });
        let is_deleting = self.metadata.deletion_timestamp.is_some();
        let is_behind = applied.is_none_or(|condition| condition.observed_generation < self.metadata.generation);
        let of_work = applied.filter(|condition| condition.status == "False" && !is_behind && !is_deleting);
        let refusal = of_work.map(|of_work| {
            let message = match refused.next() {
                Some((Some(object), message)) => with_remedy(message, &object.group, &object.kind),
                Some((None, message)) => message,
                None => of_work.message.clone(),
            };
            plain(&message).into()
        });
        let changed = self.metadata.last_change().filter(|_| is_behind);
        Some(doctor::HubWork {
            outstanding_since: self.metadata.deletion_timestamp.or(changed),
            objects: if is_deleting {
                Vec::new()
            } else {
                self.spec.manifests().filter_map(object_name).collect()
            },
            application,
            cluster: self.metadata.namespace.into(),
            name: self.metadata.name.into(),
            created: self.metadata.creation_timestamp,
            // The API server encodes it in the same way for the webhook.
            size: self.spec.manifests().map(|manifest| webhook_size(manifest.len())).sum(),
            executor: self.spec.executor.as_ref().map(executor_user),
            has_status: applied.is_some(),
            of_old_agent,
            refused: refusal,
            watched,
            other_resource_names,
        })
    }

    /// Returns the Application that owns it, as Argo CD names it.
    fn application(&self, kind: &str, tracking: &Tracking) -> Option<&str> {
        let claim = TrackingMarks {
            tracking_id: self.annotation(TRACKING_ID),
            installation_id: self.annotation(INSTALLATION_ID),
            label: self.label(tracking.label()),
        };
        let identity = ObjectIdentity {
            group: works::GROUP,
            kind,
            namespace: &self.metadata.namespace,
            name: &self.metadata.name,
        };
        tracking.application(&claim, &identity)
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn work(change: impl FnOnce(&mut Value)) -> ReadWork {
        let mut work = json!({
            "metadata": {
                "name": "shop",
                "namespace": "eu1",
                "annotations": {TRACKING_ID: "shop:work.open-cluster-management.io/ManifestWork:eu1/shop"},
            },
            "spec": {"workload": {"manifests": [{"kind": "A"}, {"kind": "B"}]}},
        });
        change(&mut work);
        serde_json::from_str(&work.to_string()).expect("a work")
    }

    fn reduced(change: impl FnOnce(&mut Value), sets: &[&str]) -> Option<doctor::HubWork> {
        let sets = sets.iter().map(|set| (set.to_string(), "shop".into())).collect();
        work(change).work(&Tracking::configured(|_| None), &sets)
    }

    #[test]
    fn a_time_of_the_agent_hides_no_work() {
        let odd = reduced(
            |value| {
                value["metadata"]["generation"] = json!(2);
                value["metadata"]["creationTimestamp"] = json!("2026-06-01T10:00:00Z");
                value["metadata"]["managedFields"] =
                    json!([{"time": "9999-12-31T23:59:59Z", "fieldsV1": {"f:spec": {}}}, {"time": "soon"}]);
            },
            &[],
        );
        let created = "2026-06-01T10:00:00Z".parse().ok();
        assert_eq!(odd.expect("a work").outstanding_since, created, "the time is unknown");
    }

    #[test]
    fn keeps_works_of_argo_cd_replica_sets_and_the_controller() {
        assert!(reduced(|_| (), &[]).is_some());
        let others = |value: &mut Value| value["metadata"]["annotations"] = Value::Null;
        assert!(reduced(others, &[]).is_none());
        let of_set = |value: &mut Value| value["metadata"]["labels"] = json!({OF_REPLICA_SET: "argocd.shop"});
        assert!(reduced(of_set, &["argocd.shop"]).is_some());
        assert!(
            reduced(of_set, &["argocd.other"]).is_none(),
            "the work belongs to another set"
        );
        let pulled = |value: &mut Value| value["metadata"]["annotations"] = json!({HUB_NAME: "shop"});
        assert!(reduced(pulled, &[]).is_some());
        let of_agent = |value: &mut Value| value["metadata"] = json!({"name": "ca", "labels": {AGENT_LABEL: "true"}});
        assert!(reduced(of_agent, &[]).is_some());
    }

    #[test]
    fn recognizes_agents_that_are_too_old_by_conditions_without_a_generation() {
        let is_old = |of_set: bool, condition: &Value, complete: &str| {
            let change = |value: &mut Value| {
                if of_set {
                    value["metadata"]["labels"] = json!({OF_REPLICA_SET: "argocd.shop"});
                }
                value["status"] = json!({
                    "conditions": [{"type": "Complete", "status": complete}],
                    "resourceStatus": {"manifests": [{"conditions": [condition]}]},
                });
            };
            reduced(change, &["argocd.shop"]).expect("a work").of_old_agent
        };
        let applied = json!({"type": "Applied", "status": "True"});
        let rule = json!({"type": "Healthy", "status": "True", "reason": "ConditionRuleEvaluated"});
        for (condition, of_set, of_other) in [(&applied, true, false), (&rule, true, true)] {
            assert_eq!(is_old(true, condition, "False"), of_set, "{condition}");
            assert_eq!(is_old(false, condition, "False"), of_other, "{condition}");
            let mut newer = condition.clone();
            newer["observedGeneration"] = json!(1);
            assert!(!is_old(true, &newer, "False"), "{newer}");
            assert!(
                !is_old(true, condition, "True"),
                "{condition}: written before an upgrade"
            );
        }
    }

    #[test]
    fn keeps_the_owner_the_objects_and_what_is_outstanding() {
        let time = |text: &str| text.parse().ok();
        let work = |deleting: bool, observed: u32| {
            let change = |value: &mut Value| {
                value["metadata"]["generation"] = json!(2);
                value["metadata"]["creationTimestamp"] = json!("2026-06-01T10:00:00Z");
                value["metadata"]["managedFields"] = json!([
                    {"time": "2026-06-01T11:00:00Z", "fieldsV1": {"f:spec": {}}},
                    {"time": "2026-06-01T12:00:00Z", "fieldsV1": {"f:status": {}}},
                    {"time": "9999-12-31T23:59:59Z", "fieldsV1": {"f:spec": {}}},
                ]);
                if deleting {
                    value["metadata"]["deletionTimestamp"] = json!("2026-06-01T13:00:00Z");
                }
                value["spec"]["workload"]["manifests"] = json!([
                    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
                    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}},
                    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a"}},
                ]);
                value["status"]["conditions"] =
                    json!([{"type": "Applied", "status": "True", "observedGeneration": observed}]);
            };
            let work = reduced(change, &[]).expect("a work of Argo CD");
            assert_eq!(work.application.as_deref(), Some("shop"));
            let objects: Vec<_> = work.objects.iter().map(ToString::to_string).collect();
            (work.outstanding_since, objects.join(", "))
        };
        let objects = "Deployment.apps shop/web".to_owned();
        assert_eq!(work(false, 2), (None, objects.clone()));
        assert_eq!(work(false, 1), (time("2026-06-01T11:00:00Z"), objects));
        assert_eq!(work(true, 2), (time("2026-06-01T13:00:00Z"), String::new()));
    }

    #[test]
    fn finds_the_binding_of_the_view_in_any_work() {
        let file = include_str!("../../../../deploy/live_cluster_rbac.yaml");
        let documents = manifest::yaml::documents(file).map(|result| result.expect("valid YAML").value);
        let manifests: Vec<Value> = documents
            .map(|document| {
                let mut text = String::new();
                manifest::json::write(&document, &mut text).expect("valid JSON");
                serde_json::from_str(&text).expect("valid JSON")
            })
            .collect();
        let cluster = |namespace: &str, manifests: &[Value], deleted: Value| {
            let work = work(|value| {
                value["metadata"]["annotations"] = Value::Null;
                value["metadata"]["deletionTimestamp"] = deleted;
                value["spec"]["workload"]["manifests"] = json!(manifests);
            });
            work.cluster_with_binding(&live::tunnel::cluster_user(namespace))
        };
        assert_eq!(cluster("argocd", &manifests, Value::Null).as_deref(), Some("eu1"));
        assert_eq!(cluster("argocd", &manifests[..1], Value::Null), None, "the role alone");
        assert_eq!(
            cluster("gitops", &manifests, Value::Null),
            None,
            "the user of another namespace"
        );
        assert_eq!(cluster("argocd", &manifests, json!("2026-06-01T13:00:00Z")), None);
    }

    #[test]
    fn keeps_the_kinds_and_namespaces_that_the_agent_watches() {
        let config = |resource: &str, namespace: &str, mode: &str| {
            json!({
                "resourceIdentifier": {"group": "apps", "resource": resource, "namespace": namespace, "name": "*"},
                "feedbackScrapeType": mode,
            })
        };
        let object = |resource: &str, namespace: &str, name: &str| json!({"resourceMeta": {"group": "apps", "resource": resource, "namespace": namespace, "name": name}});
        let work = |value: &mut Value| {
            value["spec"]["manifestConfigs"] = json!([
                config("deployments", "*", "Poll"),
                config("daemonsets", "*", "Watch"),
                config("deployments", "one", "Watch"),
            ]);
            value["status"]["resourceStatus"]["manifests"] = json!([
                object("deployments", "one", "a"),
                object("deployments", "one", "b"),
                object("deployments", "two", "c"),
                object("daemonsets", "two", "d"),
                object("statefulsets", "two", "e"),
                {},
            ]);
        };
        let watched = reduced(work, &[]).expect("a work of Argo CD").watched;
        assert_eq!(
            watched.iter().map(|informer| &**informer).collect::<Vec<_>>(),
            ["daemonsets.apps/two", "deployments.apps/one"]
        );
    }

    #[test]
    fn keeps_resource_names_that_no_manifest_config_has() {
        let of_plugin = |value: &mut Value| {
            value["metadata"]["labels"] = json!({works::APPLICATION_LABEL: "shop"});
            let config = |resource: &str, namespace: &str| json!({"resourceIdentifier": {"group": "example.com", "resource": resource, "namespace": namespace, "name": "*"}});
            value["spec"]["manifestConfigs"] = json!([config("tank", "**"), config("tanks", "*")]);
            let object = |kind: &str, resource: &str| json!({"resourceMeta": {"group": "example.com", "kind": kind, "resource": resource, "name": "a"}});
            value["status"]["resourceStatus"]["manifests"] = json!([
                object("Tank", "tanks"),
                object("Tank", "tank"),
                object("Tank", "tanken"),
                object("Tank", "tanks; reboot"),
                object("Pump", "")
            ]);
        };
        let of_other = |value: &mut Value| {
            of_plugin(value);
            value["metadata"]["labels"] = json!({});
        };
        let names = |change: &dyn Fn(&mut Value)| {
            let names = reduced(change, &[]).expect("a work of Argo CD").other_resource_names;
            names.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            names(&of_plugin),
            [
                "KIND.GROUP=RESOURCE",
                "Tank.example.com=tank",
                "Tank.example.com=tanken"
            ]
        );
        assert_eq!(names(&of_other), [""; 0]);
    }

    #[test]
    fn keeps_the_first_apply_error_and_the_webhook_size() {
        let new_work = reduced(|_| (), &[]).expect("a work of Argo CD");
        assert_eq!((new_work.has_status, &new_work.refused), (false, &None));
        assert_eq!(new_work.size, 2 * (r#"{"kind":"A"}"#.len() + 2));
        let applied = |status: &str, message: &str| json!([{"type": "Applied", "status": status, "message": message}]);
        let status = json!({
            "conditions": applied("False", "Failed to apply manifest work"),
            "resourceStatus": {"manifests": [
                {"conditions": applied("True", "")},
                {"conditions": applied("False", "first\nof all")},
                {"conditions": applied("False", "second")},
                {},
            ]},
        });
        let refused = reduced(|value| value["status"] = status.clone(), &[]).expect("a work of Argo CD");
        assert!(refused.has_status);
        assert_eq!(refused.refused.as_deref(), Some("first of all"));
        let repaired = reduced(
            |value| {
                value["status"] = status.clone();
                value["status"]["conditions"] = applied("True", "");
            },
            &[],
        );
        assert_eq!(
            repaired.and_then(|work| work.refused),
            None,
            "an earlier error is not reported"
        );
        for later in [
            json!({"generation": 2}),
            json!({"deletionTimestamp": "2026-06-01T10:00:00Z"}),
        ] {
            let change = |value: &mut Value| {
                value["status"] = status.clone();
                let (name, field) = later
                    .as_object()
                    .and_then(|fields| fields.iter().next())
                    .expect("a field");
                value["metadata"][name] = field.clone();
            };
            assert_eq!(reduced(change, &[]).and_then(|work| work.refused), None, "{later}");
        }
    }
}
