//! Tests of the pull model on a simulated hub that applies all writes, so that the tests compare final states.

use super::*;
use hub_state::annotations::REFRESH;
use hub_state::cache::{Change, ReconcileRequest, Refusal};
use hub_state::json::borrowed;
use hub_state::model::{Availability, Kind};
use hub_state::pull::namespaces::Namespaces;
use hub_state::reconcile::{Settings, mappers};
use hub_state::testing::pull::reported;
use hub_state::testing::{NOW, at, cluster, deleted, hold, listed, now, stored};
use ocm::argocd_agent::LAST_UPDATED;
use ocm::pull_model as names;
use runtime::action::Verb;
use runtime::queue::Refresh;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testing::merge;

/// A simulated hub with the managed clusters `eu1` and `eu2`, which applies every write.
struct Hub {
    cache: Cache,
    objects: BTreeMap<(&'static str, ObjectRef), Value>,
    version: u32,
    settings: Settings,
    /// The writes, in words.
    log: Vec<String>,
    events: Vec<Event>,
}

fn shop() -> ObjectRef {
    ObjectRef::new("argocd", "shop")
}

/// Returns an accepted ManagedCluster that is marked as the hub.
fn marked(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "labels": {"local-cluster": "true"}},
        "spec": {"hubAcceptsClient": true},
    })
}

impl Hub {
    fn new() -> Self {
        let mut hub = Self {
            cache: Cache::new("argocd").with_mappers(mappers([&CONTROLLER])),
            objects: BTreeMap::new(),
            version: 1,
            settings: Settings::default(),
            log: Vec::new(),
            events: Vec::new(),
        };
        for name in ["eu1", "eu2"] {
            hub.cache.apply(cluster(name, Availability::Available));
        }
        hub
    }

    /// Creates a hub where Argo CD serves Applications of all namespaces, in the project `default`.
    fn open() -> Self {
        let mut hub = Self::new();
        hub.namespaces("*");
        hub.project(&json!({"destinations": [{"name": "*", "namespace": "*"}], "sourceNamespaces": ["*"]}));
        hub
    }

    fn namespaces(&mut self, list: &str) -> Vec<ReconcileRequest> {
        self.cache.apply(Change::setting(Some(Namespaces::configured(list))))
    }

    /// Replaces the spec of the AppProject `default`.
    fn project(&mut self, spec: &Value) -> Vec<ReconcileRequest> {
        let project = json!({"metadata": {"name": "default", "namespace": "argocd"}, "spec": spec});
        self.cache.apply(stored(Kind::Projects, &project))
    }

    /// Writes labels and annotations of a work, as the agent of a cluster.
    fn mark(&mut self, name: &str, metadata: &Value) {
        let mut work = self.work(name).clone();
        merge(&mut work["metadata"], metadata);
        self.put("manifestworks", &at(name), Some(work));
    }

    /// Creates the same hub with an Application for `eu1`.
    fn with_shop() -> Self {
        let mut hub = Self::new();
        hub.application(&shop(), "0a1b2c3d-0000", |_| ());
        hub
    }

    fn application(&mut self, object_ref: &ObjectRef, uid: &str, change: impl FnOnce(&mut Value)) {
        let mut object = json!({
            "metadata": {
                "namespace": *object_ref.namespace,
                "name": *object_ref.name,
                "uid": uid,
                "labels": {names::PULL: "true"},
                "annotations": {names::CLUSTER: "eu1", SKIP_RECONCILE: "true"},
            },
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://example.com/shop", "path": "guestbook"},
                "destination": {"server": "https://eu1-control-plane:6443", "namespace": "guestbook"},
            },
        });
        change(&mut object);
        self.put("applications", object_ref, Some(object));
    }

    fn change(&mut self, object_ref: &ObjectRef, patch: &Value) {
        let mut object = self.objects[&("applications", object_ref.clone())].clone();
        merge(&mut object, patch);
        self.put("applications", object_ref, Some(object));
    }

    /// Changes the metadata of `argocd/shop`.
    fn change_metadata(&mut self, metadata: &Value) {
        self.change(&shop(), &json!({"metadata": metadata}));
    }

    fn put(&mut self, plural: &'static str, object_ref: &ObjectRef, object: Option<Value>) {
        let key = (plural, object_ref.clone());
        let object = object.map(|mut object| {
            self.version += 1;
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            object
        });
        let kind = match plural {
            "applications" => Kind::Applications,
            _ => Kind::Works,
        };
        self.cache.apply(match &object {
            Some(object) => stored(kind, object),
            None => deleted(kind, &object_ref.to_string()),
        });
        match object {
            Some(object) => self.objects.insert(key, object),
            None => self.objects.remove(&key),
        };
    }

    fn decide(&self, object_ref: &ObjectRef) -> Option<Action> {
        let context = hub_state::testing::context(now(), &self.settings);
        reconcile(&self.cache, object_ref, &context)
    }

    /// Reconciles an Application until nothing is left to write, and returns the writes in words.
    fn settle(&mut self, object_ref: &ObjectRef) -> Vec<String> {
        for _ in 0..10 {
            let Some(action) = self.decide(object_ref) else {
                return std::mem::take(&mut self.log);
            };
            self.events.extend(action.events);
            for write in action.writes {
                self.write(write);
            }
        }
        panic!("it never ends: {:?}", self.log);
    }

    fn write(&mut self, write: Write) {
        let Write {
            resource, object_ref, ..
        } = write;
        if let Some((other, object_ref)) = write.unless_exists {
            assert!(!self.objects.contains_key(&(other.plural, object_ref)), "it is there");
        }
        match write.verb {
            Verb::Create(mut object) => {
                self.log.push(format!("create {object_ref}"));
                object["metadata"]["uid"] = json!(format!("uid of {object_ref}"));
                object["metadata"]["generation"] = json!(1);
                self.put("manifestworks", &object_ref, Some(object));
            }
            Verb::Patch(body) => {
                let of_it = if resource.kind == "Application" {
                    "application"
                } else {
                    "work"
                };
                self.log.push(format!("patch {of_it} {object_ref}"));
                let mut object = self.objects[&(resource.plural, object_ref.clone())].clone();
                let version = &object["metadata"]["resourceVersion"];
                assert_eq!(&body["metadata"]["resourceVersion"], version, "of another form");
                assert!(of_it == "work" || body.get("spec").is_none(), "not ours: {body}");
                merge(&mut object, &body);
                if of_it == "work" {
                    let generation = object["metadata"]["generation"].as_u64().expect("it has one");
                    object["metadata"]["generation"] = json!(generation + 1);
                }
                self.put(resource.plural, &object_ref, Some(object));
            }
            Verb::JsonPatch(operations) => {
                self.log.push(format!("patch finalizers {object_ref}"));
                let mut work = self.work(&object_ref.to_string()).clone();
                let version = work["metadata"]["resourceVersion"].clone();
                apply_json_patch(&mut work, &operations);
                assert_eq!(work["metadata"]["resourceVersion"], version, "of another form");
                let generation = work["metadata"]["generation"].as_u64().expect("it has one");
                work["metadata"]["generation"] = json!(generation + 1);
                self.put("manifestworks", &object_ref, Some(work));
            }
            Verb::Delete { .. } => {
                self.log.push(format!("delete {object_ref}"));
                self.put(resource.plural, &object_ref, None);
            }
        }
    }

    /// Makes the API server reject the next write for an Application, or stop rejecting.
    fn refuse(&mut self, object_ref: &ObjectRef, why: Option<&str>) {
        self.refuse_write(object_ref, why, false);
    }

    /// Refuses the last write for an Application, which may have been one of the Application itself.
    fn refuse_write(&mut self, object_ref: &ObjectRef, why: Option<&str>, is_of_status: bool) {
        let affected = ReconcileRequest {
            kind: Kind::Applications,
            object_ref: object_ref.clone(),
            refresh: Refresh::Unchanged,
        };
        let refusal = why.map(|why| Refusal {
            why: why.into(),
            gitops: None,
            is_of_status,
        });
        let affected = self.cache.record_write(CONTROLLER.name, 0, affected, refusal);
        assert_eq!(affected.len(), 1, "it is looked at again");
    }

    /// Reconciles an Application up to the first write of a work, which the API server rejects.
    fn try_in_vain(&mut self, object_ref: &ObjectRef) {
        let action = self.decide(object_ref).expect("something is to be written");
        for write in action.writes {
            if write.resource.kind != "Application" {
                return;
            }
            self.write(write);
        }
        panic!("no work is written");
    }

    fn get_application(&self, object_ref: &ObjectRef) -> &Value {
        &self.objects[&("applications", object_ref.clone())]
    }

    fn works(&self) -> Vec<String> {
        let works = self.objects.keys().filter(|(plural, _)| *plural == "manifestworks");
        works.map(|(_, object_ref)| object_ref.to_string()).collect()
    }

    fn work(&self, name: &str) -> &Value {
        &self.objects[&("manifestworks", at(name))]
    }

    /// Reports that the agent applied the work, with this feedback of its Application.
    fn report(&mut self, name: &str, values: &[(&str, &str)]) {
        let mut work = self.work(name).clone();
        let payload = &work["spec"]["workload"]["manifests"][0]["metadata"];
        let form = payload["annotations"][names::PAYLOAD].as_str().expect("its form");
        let mut manifest = reported(&[values, &[("payload", form)]].concat());
        for key in ["namespace", "name"] {
            manifest["resourceMeta"][key] = payload[key].clone();
        }
        let generation = &work["metadata"]["generation"];
        let applied =
            json!([{"type": "Applied", "status": "True", "observedGeneration": generation, "lastTransitionTime": NOW}]);
        manifest["conditions"] = applied.clone();
        work["status"] = json!({"conditions": applied, "resourceStatus": {"manifests": [manifest]}});
        self.put("manifestworks", &at(name), Some(work));
    }

    /// Returns the health in the status of `argocd/shop`.
    fn health(&self) -> &str {
        self.get_application(&shop())["status"]["health"]["status"]
            .as_str()
            .unwrap_or_default()
    }

    fn conditions(&self, object_ref: &ObjectRef) -> Vec<(&str, &str)> {
        let conditions = self.get_application(object_ref)["status"]["conditions"].as_array();
        let conditions = conditions.into_iter().flatten();
        conditions
            .filter_map(|condition| Some((condition["type"].as_str()?, condition["message"].as_str()?)))
            .collect()
    }

    /// Panics if the Application has not these conditions, or the hub not these works.
    #[track_caller]
    fn has(&self, object_ref: &ObjectRef, conditions: &[(&str, &str)], works: &[&str]) {
        assert_eq!(self.conditions(object_ref), conditions);
        assert_eq!(self.works(), works);
    }
}

/// Applies a JSON patch (RFC 6902) that changes fields of mappings.
fn apply_json_patch(object: &mut Value, operations: &Value) {
    for operation in operations.as_array().expect("a list") {
        let (parent, key) = operation["path"]
            .as_str()
            .and_then(|path| path.rsplit_once('/'))
            .expect("a path");
        let fields = object
            .pointer_mut(parent)
            .and_then(Value::as_object_mut)
            .expect("a mapping");
        let key = key.replace("~1", "/");
        let before = match operation["op"].as_str() {
            Some("add") => fields.insert(key, operation["value"].clone()).or(Some(Value::Null)),
            Some("replace") => fields.insert(key, operation["value"].clone()),
            _ => fields.remove(&key),
        };
        assert!(before.is_some(), "the API server refuses it: {operation}");
    }
}

const WORK: &str = "eu1/shop-0a1b2";

const OPERATION: [(&str, &str); 4] = [
    ("operationStatePhase", "Succeeded"),
    ("operationStateStartedAt", NOW),
    ("operationStateFinishedAt", NOW),
    ("syncResultRevision", "abc"),
];

const WELL: [(&str, &str); 2] = [("healthStatus", "Healthy"), ("syncStatus", "Synced")];

#[test]
fn application_becomes_a_work_and_receives_its_status() {
    let mut hub = Hub::with_shop();
    assert_eq!(
        hub.settle(&shop()),
        [format!("create {WORK}"), "patch application argocd/shop".to_owned()]
    );
    assert_eq!(hub.health(), "Progressing", "no Argo CD runs it yet");
    hub.report(WORK, &WELL);
    assert_eq!(hub.settle(&shop()), ["patch application argocd/shop"]);
    let status = &hub.get_application(&shop())["status"];
    assert_eq!(
        (&status["health"]["status"], &status["sync"]["status"]),
        (&json!("Healthy"), &json!("Synced"))
    );
    hub.report(WORK, &WELL);
    assert_eq!(hub.settle(&shop()), [""; 0], "nothing is new");
    hub.change(&shop(), &json!({"spec": {"source": {"path": "other"}}}));
    assert_eq!(hub.settle(&shop()), [format!("patch work {WORK}")]);
    let server = &hub.get_application(&shop())["spec"]["destination"]["server"];
    assert_eq!(server, "https://eu1-control-plane:6443");
}

#[test]
fn application_whose_agent_has_stopped_is_not_healthy() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    hub.change(&shop(), &json!({"spec": {"source": {"targetRevision": "v2"}}}));
    hub.settle(&shop());
    hub.mark(WORK, &json!({"creationTimestamp": NOW}));
    hub.settle(&shop());
    assert_eq!(hub.health(), "Healthy", "it usually takes seconds");
    let next = hub.cache.next_deadline().expect("time alone changes the state");
    assert_eq!(hub.cache.tick(next), [ReconcileRequest::application(shop())]);
    hub.settle(&shop());
    let why = "waiting for the agent of managed cluster eu1 to apply it, for more than 2 minutes";
    let health = &hub.get_application(&shop())["status"]["health"];
    assert_eq!([&health["status"], &health["message"]], ["Progressing", why]);
    assert_eq!(
        hub.conditions(&shop()),
        [("ManifestWorkOverdueWarning", &*format!("eu1: {why}"))]
    );
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    assert_eq!(hub.health(), "Healthy");
    assert_eq!(hub.conditions(&shop()), []);
}

#[test]
fn works_of_a_cluster_on_hold_wait_for_its_end() {
    let on_hold = ("ManagedClusterOnHoldWarning", "eu1: on hold: storage migration");
    let mut hub = Hub::with_shop();
    hub.cache.apply(hold("eu1", None));
    assert_eq!(
        hub.settle(&shop()),
        ["patch application argocd/shop"],
        "a new work waits"
    );
    assert_eq!(hub.conditions(&shop()), [on_hold]);
    let release = || deleted(Kind::Holds, "eu1");
    assert_eq!(hub.cache.apply(release()), [ReconcileRequest::application(shop())]);
    assert_eq!(
        hub.settle(&shop()),
        [format!("create {WORK}"), "patch application argocd/shop".to_owned()]
    );
    assert_eq!(hub.conditions(&shop()), []);

    hub.cache.apply(hold("eu1", None));
    hub.settle(&shop());
    hub.change(&shop(), &json!({"spec": {"source": {"path": "other"}}}));
    assert_eq!(hub.settle(&shop()), [""; 0], "a change waits");
    hub.change_metadata(&json!({"deletionTimestamp": NOW, "finalizers": [names::CASCADE[0]]}));
    hub.settle(&shop());
    assert_eq!(hub.works(), [WORK], "a deletion waits");
    hub.put("applications", &shop(), None);
    assert_eq!(hub.settle(&shop()), [""; 0], "so does that of a missing Application");
    assert_eq!(hub.cache.apply(release()), [ReconcileRequest::application(shop())]);
    assert_eq!(hub.settle(&shop()), [format!("delete {WORK}")]);

    hub.application(&shop(), "0a1b2c3d-0000", |_| ());
    let end = "2026-06-01T12:00:05Z";
    hub.cache.apply(hold("eu1", Some(end)));
    let context = hub_state::testing::context(now(), &hub.settings);
    let next = (CONTROLLER.requeue_after)(&hub.cache, &shop(), &context);
    assert_eq!(next, Some(end.parse().expect("a time")));
    hub.cache.apply(hold("eu1", Some("2026-06-01T11:59:00Z")));
    assert_eq!(hub.settle(&shop()).len(), 2, "the hold is over");
}

#[test]
fn move_deletes_nothing_before_the_application_can_run_elsewhere() {
    let to = |cluster: &str| json!({"metadata": {"annotations": {names::CLUSTER: cluster}}});
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    hub.cache.apply(hold("eu2", None));
    hub.change(&shop(), &to("eu2"));
    assert_eq!(hub.settle(&shop()), ["patch application argocd/shop"]);
    assert_eq!(hub.works(), [WORK], "the other cluster is on hold");
    hub.cache.apply(deleted(Kind::Holds, "eu2"));
    let moved = WORK.replace("eu1/", "eu2/");
    let writes = [format!("create {moved}"), format!("delete {WORK}")];
    assert_eq!(hub.settle(&shop())[..2], writes);
    assert_eq!(hub.works(), [&*moved]);
    assert_eq!(hub.health(), "Progressing", "what the other said is past");

    // Its former work is still being deleted.
    let mut deleting = hub.work(&moved).clone();
    deleting["metadata"]["namespace"] = json!("eu1");
    deleting["metadata"]["deletionTimestamp"] = json!(NOW);
    hub.put("manifestworks", &at(WORK), Some(deleting));
    hub.change(&shop(), &to("eu1"));
    hub.settle(&shop());
    assert_eq!(hub.works(), [WORK, &*moved]);
    hub.put("manifestworks", &at(WORK), None);
    hub.settle(&shop());
    assert_eq!(hub.works(), [WORK]);
}

#[test]
fn application_without_a_project_is_of_the_project_default() {
    let mut hub = Hub::new();
    hub.settings.pull.project = true;
    hub.project(&json!({"destinations": [{"name": "*", "namespace": "*", "server": "*"}], "sourceRepos": ["*"]}));
    hub.application(&shop(), "0a1b2c3d-0000", |object| object["spec"]["project"] = json!(""));
    hub.settle(&shop());
    assert_eq!(hub.works(), [WORK], "{:?}", hub.conditions(&shop()));
}

#[test]
fn missing_target_cluster_keeps_the_work_on_the_old_one() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.change_metadata(&json!({"annotations": {names::CLUSTER: "eu3"}}));
    assert_eq!(hub.settle(&shop()), ["patch application argocd/shop"]);
    assert_eq!(hub.conditions(&shop()), [(ERROR, "ManagedCluster eu3 does not exist")]);
    assert_eq!(hub.events[0].reason, "ManifestWorkRefused");
    hub.change_metadata(&json!({"annotations": {names::CLUSTER: ""}}));
    hub.settle(&shop());
    let why = "the annotation apps.open-cluster-management.io/ocm-managed-cluster names no managed cluster";
    assert_eq!(hub.conditions(&shop()), [(ERROR, why)]);
    assert_eq!(hub.works(), [WORK]);
    let affected = hub.cache.apply(cluster("eu3", Availability::Available));
    assert!(affected.is_empty(), "no Application targets it now: {affected:?}");
    hub.change_metadata(&json!({"annotations": {names::CLUSTER: "eu4"}}));
    let affected = hub.cache.apply(cluster("eu4", Availability::Available));
    assert!(
        affected.iter().any(|request| request.object_ref == shop()),
        "it is refresh: {affected:?}"
    );
    hub.settle(&shop());
    hub.has(&shop(), &[], &["eu4/shop-0a1b2"]);
}

#[test]
fn text_of_a_user_in_a_condition_is_written_once() {
    for text in ["eu1\t".to_owned(), "\u{1b}[2J".to_owned(), "x".repeat(100_000)] {
        let mut hub = Hub::with_shop();
        hub.change_metadata(&json!({"annotations": {names::CLUSTER: text}}));
        assert_eq!(hub.settle(&shop()), ["patch application argocd/shop"]);
        let conditions = hub.conditions(&shop());
        let [(ERROR, message)] = conditions[..] else {
            panic!("{conditions:?}")
        };
        assert!(
            message.starts_with("ManagedCluster ") && message.ends_with(" does not exist"),
            "{message}"
        );
        assert!(
            !message.contains(char::is_control) && message.len() <= 4096,
            "{message}"
        );
        assert!(hub.events[0].message.len() < 5000);
    }
}

#[test]
fn namespace_may_use_clusters_selected_by_its_placements() {
    let mut hub = Hub::with_shop();
    hub.settings.pull.placement = true;
    let decide = |hub: &mut Hub, namespace: &str, names: &[&str]| {
        let all: Vec<_> = names.iter().map(|name| json!({"clusterName": name})).collect();
        let labels = json!({"cluster.open-cluster-management.io/placement": "all"});
        let metadata = json!({"namespace": namespace, "name": "d1", "labels": labels});
        let decision = json!({"metadata": metadata, "status": {"decisions": all}});
        hub.cache.apply(stored(Kind::Decisions, &decision))
    };
    assert_eq!(decide(&mut hub, "argocd-2", &["eu1"]), [], "another namespace");
    assert_eq!(decide(&mut hub, "argocd", &["eu2"]), [], "another cluster");
    hub.settle(&shop());
    let why = "no Placement in Namespace argocd selects ManagedCluster eu1";
    hub.has(&shop(), &[(ERROR, why)], &[]);
    let message = &hub.get_application(&shop())["status"]["health"]["message"];
    assert_eq!(*message, format!("not delivered: {why}"));
    let affected = decide(&mut hub, "argocd", &["eu2", "eu1"]);
    assert_eq!(affected.len(), 1, "a decision that comes later is refresh");
    hub.settle(&shop());
    hub.has(&shop(), &[], &[WORK]);
    decide(&mut hub, "argocd", &[]);
    hub.settle(&shop());
    hub.has(&shop(), &[(ERROR, why)], &[WORK]);
    hub.cache.apply(listed(Kind::Decisions, &[]));
    assert_eq!((hub.settle(&shop()), hub.works()), (vec![], vec![WORK.to_owned()]));
}

#[test]
fn deleted_application_deletes_its_work_except_on_an_empty_list() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.cache.apply(listed(Kind::Applications, &[]));
    assert_eq!(hub.decide(&shop()), None, "the hub shows no Application at all");
    hub.application(&ObjectRef::new("argocd", "cart"), "1", |_| ());
    let action = hub.decide(&shop()).expect("it is gone");
    let asked = matches!(&action.writes[0].unless_exists, Some((_, object_ref)) if *object_ref == shop());
    assert!(asked, "{action:?}");
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.put("applications", &shop(), None);
    assert_eq!(
        hub.settle(&shop()),
        [format!("delete {WORK}")],
        "the watch reported the deletion"
    );
}

#[test]
fn removes_cascade_finalizers_after_the_work() {
    for finalizer in names::CASCADE {
        let mut hub = Hub::with_shop();
        hub.change_metadata(&json!({"finalizers": [finalizer, "example.com/mine"]}));
        hub.settle(&shop());
        hub.change_metadata(&json!({"deletionTimestamp": NOW}));
        assert_eq!(
            hub.settle(&shop()),
            [format!("delete {WORK}"), "patch application argocd/shop".to_owned()]
        );
        assert_eq!(
            hub.get_application(&shop())["metadata"]["finalizers"],
            json!(["example.com/mine"])
        );
    }
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.change_metadata(&json!({"deletionTimestamp": NOW, "finalizers": ["example.com/mine"]}));
    assert_eq!(
        hub.settle(&shop()),
        [""; 0],
        "the finalizer of another controller stays"
    );
}

/// Returns a hub whose Application has these finalizers, and is on its cluster.
fn with_applied(finalizers: &[&str]) -> Hub {
    let mut hub = Hub::with_shop();
    hub.change_metadata(&json!({"finalizers": finalizers}));
    hub.settle(&shop());
    hub.mark(
        WORK,
        &json!({"finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"]}),
    );
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    hub
}

fn payload_finalizers(hub: &Hub) -> &Value {
    &hub.work(WORK)["spec"]["workload"]["manifests"][0]["metadata"]["finalizers"]
}

const PATCHED: &str = "patch finalizers eu1/shop-0a1b2";
const DELETED: &str = "delete eu1/shop-0a1b2";

#[test]
fn deletion_without_cascade_first_removes_the_finalizers_on_the_cluster() {
    let mut hub = with_applied(&[names::CASCADE[0]]);
    // `argocd app delete --cascade=false` removes the finalizers and deletes the Application, within milliseconds.
    hub.put("applications", &shop(), None);
    assert_eq!(hub.settle(&shop()), [PATCHED], "then its agent has to apply that");
    assert_eq!(*payload_finalizers(&hub), Value::Null);
    hub.report(WORK, &WELL);
    assert_eq!(hub.settle(&shop()), [DELETED]);
}

/// Such as one of Red Hat ACM's disabled pull model, during a migration.
#[test]
fn deletion_without_cascade_ends_the_observation_of_a_read_only_work() {
    let mut hub = with_applied(&[names::CASCADE[0]]);
    let mut work = hub.work(WORK).clone();
    work["spec"]["manifestConfigs"][0]["updateStrategy"] = json!({"type": "ReadOnly"});
    // Another kind of this name.
    let other = json!({"group": "app.k8s.io", "resource": "applications", "namespace": "team", "name": "shop"});
    let other = json!({"resourceIdentifier": other, "updateStrategy": {"type": "ReadOnly"}});
    let configs = work["spec"]["manifestConfigs"].as_array_mut().expect("a list");
    configs.insert(0, other);
    hub.put("manifestworks", &at(WORK), Some(work));
    hub.put("applications", &shop(), None);
    assert_eq!(hub.settle(&shop()), [PATCHED]);
    let configs = &hub.work(WORK)["spec"]["manifestConfigs"];
    assert_eq!(configs[0]["updateStrategy"]["type"], "ReadOnly");
    let strategy = &configs[1]["updateStrategy"];
    assert_eq!(
        strategy["type"], "ServerSideApply",
        "otherwise the cluster keeps the finalizer"
    );
    hub.report(WORK, &WELL);
    assert_eq!(hub.settle(&shop()), [DELETED]);
}

/// Red Hat ACM's runbook gives an Application to argocd-agent: it disables the pull model, removes the label, and keeps the work.
#[test]
fn application_handed_to_an_agent_keeps_its_read_only_work() {
    let mut hub = with_applied(&[names::CASCADE[0]]);
    let mut work = hub.work(WORK).clone();
    work["spec"]["manifestConfigs"][0]["updateStrategy"] = json!({"type": "ReadOnly"});
    hub.put("manifestworks", &at(WORK), Some(work.clone()));
    hub.change_metadata(&json!({"labels": null}));
    assert_eq!(hub.settle(&shop()), [""; 0]);
    // Later the Application is deleted, also on the cluster.
    let missing = json!({"type": "Available", "status": "False"});
    let manifest = &mut work["status"]["resourceStatus"]["manifests"][0];
    manifest["conditions"].as_array_mut().expect("a list").push(missing);
    hub.put("manifestworks", &at(WORK), Some(work));
    hub.put("applications", &shop(), None);
    assert_eq!(hub.settle(&shop()), [DELETED], "the agent creates it for no finalizers");
}

#[test]
fn deletion_with_cascade_first_adds_the_finalizer_on_the_cluster() {
    let mut hub = with_applied(&[]);
    hub.change_metadata(&json!({"finalizers": [names::CASCADE[0]], "deletionTimestamp": NOW}));
    assert_eq!(hub.settle(&shop()), [PATCHED]);
    assert_eq!(*payload_finalizers(&hub), json!([names::CASCADE[0]]));
    hub.report(WORK, &WELL);
    assert_eq!(hub.settle(&shop()), [DELETED, "patch application argocd/shop"]);
}

#[test]
fn deletion_does_not_wait_for_a_change_that_leaves_the_finalizers() {
    let mut hub = with_applied(&[names::CASCADE[0]]);
    hub.change(&shop(), &json!({"spec": {"source": {"path": "other"}}}));
    hub.settle(&shop());
    hub.change_metadata(&json!({"deletionTimestamp": NOW}));
    assert_eq!(hub.settle(&shop())[0], DELETED);
}

#[test]
fn deletion_does_not_wait_for_an_application_that_a_cluster_cannot_have() {
    let mut hub = with_applied(&[names::CASCADE[0]]);
    hub.change_metadata(&json!({"finalizers": null, "deletionTimestamp": NOW}));
    hub.put("applications", &shop(), None);
    assert_eq!(hub.settle(&shop()), [PATCHED]);
    let mut work = hub.work(WORK).clone();
    let failed = json!([{"type": "Applied", "status": "False", "observedGeneration": work["metadata"]["generation"]}]);
    work["status"]["resourceStatus"]["manifests"][0]["conditions"] = failed;
    hub.put("manifestworks", &at(WORK), Some(work.clone()));
    assert_eq!(hub.settle(&shop()), [""; 0], "it may be there, with its finalizer");
    work["status"]["resourceStatus"]["manifests"][0]["resourceMeta"]["resource"] = json!("");
    hub.put("manifestworks", &at(WORK), Some(work));
    assert_eq!(hub.settle(&shop()), [DELETED], "the cluster has no such kind");
}

/// With the finalizers of the new one, the cluster would delete what the deletion without cascade was to keep.
#[test]
fn application_created_again_elsewhere_keeps_what_the_earlier_one_deployed() {
    let cascade = [names::CASCADE[0]];
    for (labels, is_seen) in [
        (json!({names::PULL: "true"}), true),
        (json!({names::PULL: "true"}), false),
        (json!({}), true),
    ] {
        let mut hub = with_applied(&cascade);
        hub.put("applications", &shop(), None);
        if is_seen {
            assert_eq!(hub.settle(&shop()), [PATCHED], "its agent has yet to apply that");
        }
        hub.application(&shop(), "ffff0000-0000", |object| {
            object["metadata"]["finalizers"] = json!(cascade);
            object["metadata"]["labels"] = labels.clone();
            object["metadata"]["annotations"][names::CLUSTER] = json!("eu2");
        });
        hub.settle(&shop());
        assert_eq!(*payload_finalizers(&hub), Value::Null, "{labels}");
        hub.report(WORK, &WELL);
        assert_eq!(hub.settle(&shop())[0], DELETED);
    }
}

/// Otherwise the agent, which applies all of a changed payload, would run a sync again that is done.
#[test]
fn finalizers_reach_the_cluster_without_earlier_requests() {
    let mut hub = with_applied(&[names::CASCADE[0]]);
    let mut work = hub.work(WORK).clone();
    let manifests = work["spec"]["workload"]["manifests"].as_array_mut().expect("a list");
    let payload = manifests.iter_mut().find(|manifest| manifest["kind"] == "Application");
    let payload = payload.expect("an Application");
    payload["operation"] = json!({"info": [{"name": names::OPERATION, "value": "1"}], "sync": {}});
    let requests = json!({"argocd.argoproj.io/refresh": "hard", names::HYDRATE: "normal", names::REFRESH_REQUEST: "1"});
    merge(payload, &json!({"metadata": {"annotations": requests}}));
    hub.put("manifestworks", &at(WORK), Some(work));
    hub.change_metadata(&json!({"finalizers": null, "deletionTimestamp": NOW}));
    hub.put("applications", &shop(), None);
    assert_eq!(hub.settle(&shop()), [PATCHED]);
    let manifests = hub.work(WORK)["spec"]["workload"]["manifests"].to_string();
    for request in ["\"operation\"", "io/refresh\"", "io/hydrate\""] {
        assert!(!manifests.contains(request), "{manifests}");
    }
}

/// The admission policy would refuse a change of it.
#[test]
fn work_that_lost_its_marks_is_deleted_as_it_is() {
    let mut hub = with_applied(&[]);
    hub.mark(WORK, &json!({"labels": null, "annotations": null}));
    hub.change_metadata(&json!({"finalizers": [names::CASCADE[0]], "deletionTimestamp": NOW}));
    assert_eq!(hub.settle(&shop())[0], DELETED);
}

#[test]
fn label_and_finalizers_removed_together_keep_what_was_deployed() {
    let mut hub = with_applied(&[names::CASCADE[0]]);
    hub.change_metadata(&json!({"finalizers": null, "labels": null}));
    assert_eq!(hub.settle(&shop()), [PATCHED]);
    hub.change_metadata(&json!({"finalizers": [names::CASCADE[0]]}));
    assert_eq!(hub.settle(&shop()), [""; 0], "it is for the next way of delivery");
    hub.report(WORK, &WELL);
    assert_eq!(hub.settle(&shop()), [DELETED]);
    let mut hub = with_applied(&[names::CASCADE[0]]);
    hub.change_metadata(&json!({"labels": null}));
    assert_eq!(hub.settle(&shop()), [DELETED], "its finalizer is as it was");
}

#[test]
fn reports_errors_that_block_deletion() {
    let mut hub = Hub::with_shop();
    hub.change_metadata(&json!({"finalizers": [names::CASCADE[0]]}));
    hub.settle(&shop());
    hub.change_metadata(&json!({"deletionTimestamp": NOW}));
    let mut work = hub.work(WORK).clone();
    work["metadata"]["deletionTimestamp"] = json!(NOW);
    hub.put("manifestworks", &ObjectRef::new("eu1", "shop-0a1b2"), Some(work));
    hub.report(WORK, &[("DeletionError", "no such project")]);
    assert_eq!(hub.settle(&shop()), ["patch application argocd/shop"]);
    assert_eq!(hub.conditions(&shop()), [("DeletionError", "eu1: no such project")]);
}

#[test]
fn two_applications_of_one_name_have_separate_works() {
    let mut hub = Hub::open();
    hub.application(&shop(), "0a1b2c3d-0000", |_| ());
    let other = ObjectRef::new("team-b", "shop");
    hub.application(&other, "0a1b2fff-0000", |_| ());
    hub.settle(&shop());
    hub.settle(&other);
    let works = hub.works();
    assert_eq!((works.len(), works[0].as_str()), (2, WORK), "{works:?}");
    hub.put("applications", &other, None);
    hub.settle(&other);
    assert_eq!((hub.works(), hub.settle(&shop())), (vec![WORK.to_owned()], vec![]));
}

#[test]
fn adopts_a_work_of_a_peer_under_any_name() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    let mut work = hub.work(WORK).clone();
    hub.put("manifestworks", &ObjectRef::new("eu1", "shop-0a1b2"), None);
    work["metadata"]["name"] = json!("shop-99999");
    work["spec"]["manifestConfigs"] = json!([]);
    hub.put("manifestworks", &ObjectRef::new("eu1", "shop-99999"), Some(work));
    assert_eq!(hub.settle(&shop()), ["patch work eu1/shop-99999"]);
}

#[test]
fn read_only_mode_deletes_nothing() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.settings.pull.read_only = true;
    assert_eq!(hub.settle(&shop()), [format!("patch work {WORK}")]);
    let state = |hub: &Hub| {
        let spec = &hub.work(WORK)["spec"];
        let strategy = spec["manifestConfigs"][0]["updateStrategy"]["type"].clone();
        (spec["deleteOption"]["propagationPolicy"].clone(), strategy)
    };
    let loosening = (json!("Orphan"), json!("ServerSideApply"));
    assert_eq!(
        state(&hub),
        loosening,
        "the agent is to let go of what it owns, which a read-only one would not"
    );
    hub.report(WORK, &WELL);
    assert_eq!(
        hub.settle(&shop()),
        [format!("patch work {WORK}"), "patch application argocd/shop".to_owned()]
    );
    assert_eq!(state(&hub), (json!("Orphan"), json!("ReadOnly")), "it has");
    hub.change_metadata(&json!({"labels": null}));
    assert_eq!(hub.settle(&shop()), [""; 0]);
    hub.put("applications", &shop(), None);
    assert_eq!((hub.settle(&shop()), hub.works()), (vec![], vec![WORK.to_owned()]));
}

#[test]
fn clears_a_sync_request_after_the_work_carries_it() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    let refresh = json!({REFRESH: "hard"});
    hub.change(
        &shop(),
        &json!({"operation": {"sync": {"revision": "abc", "source": {"path": "earlier"}}}, "metadata": {"annotations": refresh}}),
    );
    assert_eq!(
        hub.settle(&shop()),
        [format!("patch work {WORK}"), "patch application argocd/shop".to_owned()]
    );
    let application = hub.get_application(&shop());
    assert!(application.get("operation").is_none() && application["metadata"]["annotations"].get(REFRESH).is_some());
    let payload = &hub.work(WORK)["spec"]["workload"]["manifests"][0];
    assert_eq!(payload["operation"]["sync"]["revision"], "abc");
    assert_eq!(payload["metadata"]["annotations"][REFRESH], "hard");
    let id = payload["operation"]["info"][0]["value"]
        .as_str()
        .expect("an ID")
        .to_owned();
    hub.report(WORK, &[&WELL[..], &OPERATION, &[("operationBegun", &*id)]].concat());
    hub.settle(&shop());
    let deployed = &hub.get_application(&shop())["status"]["history"][0];
    assert_eq!(deployed["source"], json!({"path": "earlier"}), "as of a rollback");
    let payload = &hub.work(WORK)["spec"]["workload"]["manifests"][0];
    assert!(payload.get("operation").is_none(), "it was done: {payload}");
}

#[test]
fn clears_a_refresh_after_its_result_is_on_the_hub() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    let compared_at = |time| [WELL[0], WELL[1], ("reconciledAt", time)];
    hub.report(WORK, &compared_at("2026-06-01T12:00:00Z"));
    hub.settle(&shop());
    hub.change_metadata(&json!({"annotations": {REFRESH: "normal"}}));
    hub.settle(&shop());
    hub.report(
        WORK,
        &[
            &compared_at("2026-06-01T12:00:00Z")[..],
            &[("refreshPending", "normal")],
        ]
        .concat(),
    );
    hub.settle(&shop());
    let is_pending = |hub: &Hub| {
        hub.get_application(&shop())["metadata"]["annotations"]
            .get(REFRESH)
            .is_some()
    };
    assert!(
        is_pending(&hub),
        "`argocd app get --refresh` would return the earlier state"
    );
    hub.report(WORK, &compared_at("2026-06-01T12:00:05Z"));
    // The reverse order would lose the result if the controller stopped between the writes.
    assert_eq!(
        hub.settle(&shop()),
        ["patch application argocd/shop".to_owned(), format!("patch work {WORK}")]
    );
    assert_eq!(
        hub.get_application(&shop())["status"]["reconciledAt"],
        "2026-06-01T12:00:05Z"
    );
    hub.report(WORK, &compared_at("2026-06-01T12:03:05Z"));
    assert_eq!(hub.settle(&shop()), [""; 0], "a comparison that was not requested");
    assert!(!is_pending(&hub));
    hub.change_metadata(&json!({"annotations": {REFRESH: "hard"}}));
    hub.cache.apply(cluster("eu1", Availability::Unknown));
    hub.settle(&shop());
    assert!(!is_pending(&hub), "the client would wait for ever");
}

/// Terraform's provider waits for it after each change.
#[test]
fn first_comparison_after_a_change_of_the_spec_is_on_the_hub() {
    let mut hub = Hub::with_shop();
    let report_at = |hub: &mut Hub, time: &str| {
        hub.settle(&shop());
        hub.report(WORK, &[WELL[0], WELL[1], ("reconciledAt", time)]);
        hub.settle(&shop());
        hub.get_application(&shop())["status"]["reconciledAt"].clone()
    };
    report_at(&mut hub, "2026-06-01T12:00:00Z");
    let written = json!([{"manager": "argocd-server", "time": "2026-06-01T12:01:00Z", "fieldsV1": {"f:spec": {}}}]);
    hub.change(
        &shop(),
        &json!({"metadata": {"managedFields": written}, "spec": {"revisionHistoryLimit": 3}}),
    );
    for (compared, shown) in [
        ("12:00:30", "12:00:00"),
        ("12:01:01", "12:01:01"),
        ("12:04:01", "12:01:01"),
    ] {
        let time = |time: &str| format!("2026-06-01T{time}Z");
        assert_eq!(report_at(&mut hub, &time(compared)), time(shown));
    }
}

#[test]
fn refresh_of_argo_cds_server_is_forwarded_whole_and_not_copied() {
    let refreshed = |stamp: &str| {
        json!({"metadata": {"annotations": {
            REFRESH: "hard", "argocd.argoproj.io/refresh-timestamp": stamp,
            "argocd.argoproj.io/hydrate": "hard", "argocd.argoproj.io/hydrate-timestamp": stamp,
        }}})
    };
    let requested = |annotations: &Value| {
        let annotations = annotations.as_object().expect("a mapping").keys();
        let mut requested: Vec<_> = annotations
            .filter_map(|name| name.strip_prefix("argocd.argoproj.io/"))
            .collect();
        requested.sort_unstable();
        requested.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut hub = Hub::with_shop();
    hub.change(&shop(), &json!({"operation": {"sync": {}}}));
    hub.settle(&shop());
    for stamp in ["1", "2"] {
        hub.change(&shop(), &refreshed(stamp));
        assert_eq!(hub.settle(&shop()), [""; 0], "it would run the operation again");
    }
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    let annotations = &hub.work(WORK)["spec"]["workload"]["manifests"][0]["metadata"]["annotations"];
    assert_eq!(requested(annotations), ["hydrate", "refresh"]);
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    let left = &hub.get_application(&shop())["metadata"]["annotations"];
    assert_eq!(requested(left), ["skip-reconcile"]);
    let annotations = &hub.work(WORK)["spec"]["workload"]["manifests"][0]["metadata"]["annotations"];
    assert_eq!(requested(annotations), [""; 0]);
}

#[test]
fn status_of_an_application_that_the_hub_ran_before_is_replaced() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    let before = json!({
        "resources": [{"kind": "Deployment", "name": "old", "status": "Synced"}],
        "summary": {"images": ["old:1"]},
        "sync": {"comparedTo": {"destination": {"namespace": "old"}}},
        "operationState": {
            "phase": "Succeeded", "startedAt": "2026-05-01T12:00:00Z", "syncResult": {"revision": "old", "resources": [{"name": "old"}]},
        },
    });
    hub.change(&shop(), &json!({"status": before}));
    hub.report(WORK, &[&WELL[..], &OPERATION].concat());
    hub.settle(&shop());
    let status = &hub.get_application(&shop())["status"];
    assert!(!status.to_string().contains("old"), "{status}");
    assert_eq!(
        (&status["sync"]["status"], &status["operationState"]["syncResult"]),
        (&json!("Synced"), &json!({"revision": "abc"}))
    );
    let history = status["history"].as_array().expect("it was deployed");
    assert_eq!((history.len(), &history[0]["revision"]), (1, &json!("abc")));
    // An Application without anything to show has this.
    hub.change(&shop(), &json!({"status": {"summary": {}}}));
    assert_eq!(hub.settle(&shop()), [""; 0]);
}

#[test]
fn application_also_run_by_the_hub_gets_only_a_condition() {
    let mut hub = Hub::with_shop();
    hub.change(
        &shop(),
        &json!({
            "metadata": {"annotations": {SKIP_RECONCILE: null, REFRESH: "normal"}, "finalizers": [names::CASCADE[0]]},
            "operation": {"sync": {}},
            "status": {"health": {"status": "Missing"}},
        }),
    );
    hub.settle(&shop());
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    assert_eq!((hub.health(), hub.conditions(&shop())[0].0), ("Missing", RUN_TWICE));
    let is_left = |hub: &Hub| {
        let application = hub.get_application(&shop());
        assert_eq!(application["operation"], json!({"sync": {}}));
        assert_eq!(application["metadata"]["annotations"][REFRESH], "normal");
        assert_eq!(application["metadata"]["finalizers"], json!([names::CASCADE[0]]));
    };
    is_left(&hub);
    hub.change_metadata(&json!({"deletionTimestamp": NOW}));
    assert_eq!(hub.settle(&shop()), [DELETED]);
    is_left(&hub);
}

#[test]
fn finalizers_of_an_application_of_another_argo_cd_stay() {
    let mut hub = Hub::new();
    let cart = with_cart(&mut hub);
    hub.change(
        &cart,
        &json!({"metadata": {"deletionTimestamp": NOW, "finalizers": [names::CASCADE[0]]}}),
    );
    assert_eq!(hub.settle(&cart), [""; 0]);
    hub.namespaces("team-a");
    assert_eq!(hub.settle(&cart), ["patch application team-a/cart"]);
}

#[test]
fn silent_cluster_sets_a_condition_and_keeps_the_last_status() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    let affected = hub.cache.apply(cluster("eu1", Availability::Unknown));
    assert!(affected.iter().any(|request| request.object_ref == shop()));
    hub.settle(&shop());
    assert_eq!(hub.conditions(&shop())[0].0, UNREACHABLE);
    assert_eq!(hub.health(), "Healthy");
    hub.cache.apply(cluster("eu1", Availability::Available));
    hub.settle(&shop());
    assert_eq!(hub.conditions(&shop()), []);
}

/// Returns the labels and annotations with which a work claims to carry an Application.
fn claim(application: &ObjectRef) -> Value {
    json!({
        "labels": {names::PULL: "true"},
        "annotations": {names::HUB_NAMESPACE: *application.namespace, names::HUB_NAME: *application.name},
    })
}

/// Returns a hub with `argocd/shop` on `eu1`, and with `team-b/shop` on `eu2`, whose agent is hostile.
fn with_neighbour() -> (Hub, ObjectRef, &'static str) {
    let mut hub = Hub::open();
    hub.application(&shop(), "0a1b2c3d-0000", |object| {
        object["metadata"]["finalizers"] = json!([names::CASCADE[0]]);
    });
    let other = ObjectRef::new("team-b", "shop");
    hub.application(&other, "77777777-0000", |object| {
        object["metadata"]["annotations"][names::CLUSTER] = json!("eu2");
    });
    hub.settle(&shop());
    hub.settle(&other);
    hub.report(WORK, &WELL);
    hub.settle(&shop());
    (hub, other, "eu2/shop-77777")
}

#[test]
fn cluster_cannot_report_for_an_application_on_another() {
    let (mut hub, other, stray) = with_neighbour();
    hub.mark(stray, &claim(&shop()));
    hub.report(
        stray,
        &[("healthStatus", "Degraded"), ("SyncError", "text of an attacker")],
    );
    assert_eq!(hub.settle(&shop()), [""; 0]);
    assert_eq!(hub.settle(&other)[0], format!("patch work {stray}"), "it is put right");
    assert_eq!(
        hub.work(stray)["metadata"]["annotations"][names::HUB_NAMESPACE],
        "team-b"
    );
    assert_eq!(hub.works(), [WORK, stray]);
}

#[test]
fn cluster_cannot_block_deletion_of_an_application_on_another() {
    let (mut hub, other, stray) = with_neighbour();
    // The same if no Application of the work's name exists on the hub any more.
    hub.put("applications", &other, None);
    let held =
        json!({"deletionTimestamp": NOW, "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"]});
    hub.mark(stray, &claim(&shop()));
    hub.mark(stray, &held);
    hub.change_metadata(&json!({"deletionTimestamp": NOW}));
    assert_eq!(
        hub.settle(&shop()),
        [format!("delete {WORK}"), "patch application argocd/shop".to_owned()]
    );
    assert_eq!(
        hub.get_application(&shop())["metadata"].get("finalizers"),
        Some(&json!([]))
    );
}

#[test]
fn finds_a_work_by_name_without_its_marks() {
    let mut hub = Hub::with_shop();
    hub.change_metadata(&json!({"finalizers": [names::CASCADE[0]]}));
    hub.settle(&shop());
    let bare = |hub: &mut Hub, name: &str| hub.mark(name, &json!({"labels": null, "annotations": null}));
    bare(&mut hub, WORK);
    assert_eq!(hub.settle(&shop()), [format!("patch work {WORK}")]);
    assert_eq!(hub.work(WORK)["metadata"]["labels"][names::PULL], "true");
    // For an Application that moved to another cluster, and for a deleted one.
    bare(&mut hub, WORK);
    hub.change_metadata(&json!({"annotations": {names::CLUSTER: "eu2"}}));
    let moved = ["create eu2/shop-0a1b2", "delete eu1/shop-0a1b2"];
    assert_eq!(hub.settle(&shop())[..2], moved);
    bare(&mut hub, "eu2/shop-0a1b2");
    hub.change_metadata(&json!({"deletionTimestamp": NOW}));
    assert_eq!(hub.settle(&shop())[0], "delete eu2/shop-0a1b2");
    assert_eq!(hub.works(), [""; 0]);
}

#[test]
fn recreated_application_adopts_or_deletes_old_works() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.application(&shop(), "99999999-0000", |_| ());
    let adopted = [format!("patch work {WORK}"), "patch application argocd/shop".to_owned()];
    assert_eq!(hub.settle(&shop()), adopted, "its work goes on under its old name");
    hub.application(&shop(), "88888888-0000", |object| {
        object["metadata"]["annotations"][names::CLUSTER] = json!("eu2");
    });
    let moved = ["create eu2/shop-88888", "delete eu1/shop-0a1b2"];
    assert_eq!(hub.settle(&shop())[..2], moved);
}

/// Adds the Application `team-a/cart` for `eu1`.
fn with_cart(hub: &mut Hub) -> ObjectRef {
    let cart = ObjectRef::new("team-a", "cart");
    hub.application(&cart, "cafe1234-0000", |_| ());
    cart
}

#[test]
fn application_elsewhere_needs_namespace_and_project_permission() {
    let mut hub = Hub::with_shop();
    let cart = with_cart(&mut hub);
    let refused = |hub: &mut Hub, why: &str| {
        hub.settle(&cart);
        assert_eq!(hub.conditions(&cart), [(ERROR, why)]);
        assert_eq!(hub.events.last().expect("an Event").reason, "ManifestWorkRefused");
    };
    refused(
        &mut hub,
        "Argo CD does not serve Applications in Namespace team-a: add it to `application.namespaces` of ConfigMap \
         argocd/argocd-cmd-params-cm",
    );
    assert_eq!(hub.namespaces("team-*").len(), 2, "both are looked at again");
    refused(&mut hub, "AppProject argocd/default does not exist");
    assert_eq!(hub.works(), [""; 0]);
    hub.project(&json!({"destinations": [{"name": "eu1", "namespace": "*"}], "sourceNamespaces": ["team-a"]}));
    hub.settle(&cart);
    hub.has(&cart, &[], &["eu1/cart-cafe1"]);
    // A later refusal leaves the running work unchanged.
    hub.cache.apply(Change::setting::<Namespaces>(None));
    hub.change(&cart, &json!({"spec": {"source": {"path": "other"}}}));
    assert_eq!(hub.settle(&cart), ["patch application team-a/cart"]);
    assert_eq!((hub.conditions(&cart).len(), hub.works().len()), (1, 1));
}

#[test]
fn ignores_applications_in_cluster_namespaces() {
    let mut hub = Hub::open();
    let mirrored = ObjectRef::new("eu2", "shop");
    hub.application(&mirrored, "e222e222-0000", |object| {
        object["metadata"]["finalizers"] = json!([names::CASCADE[0]]);
    });
    assert_eq!(hub.decide(&mirrored), None);
    hub.change(&mirrored, &json!({"metadata": {"deletionTimestamp": NOW}}));
    assert_eq!(hub.decide(&mirrored), None, "its finalizers are its agent's");
    let affected = hub.cache.apply(deleted(Kind::Clusters, "eu2"));
    assert!(
        affected.iter().any(|request| request.object_ref == mirrored),
        "{affected:?}"
    );
    // The agent of the deleted cluster has written it, so no other cluster may get it.
    let stamped = json!({"metadata": {"deletionTimestamp": null, "annotations": {LAST_UPDATED: NOW}}});
    hub.change(&mirrored, &stamped);
    assert_eq!(hub.decide(&mirrored), None);
}

#[test]
fn clusters_that_the_hub_has_not_accepted_do_not_count() {
    let joined = |name: &str, accepts: bool| {
        let object = json!({"metadata": {"name": name, "uid": name}, "spec": {"hubAcceptsClient": accepts}});
        stored(Kind::Clusters, &object)
    };
    let mut hub = Hub::open();
    let web = ObjectRef::new("team-a", "web");
    hub.application(&web, "911b911b-0000", |_| {});
    hub.cache.apply(joined("team-a", false));
    hub.settle(&web);
    hub.has(&web, &[], &["eu1/web-911b9"]);
    let affected = hub.cache.apply(joined("team-a", true));
    assert_eq!(affected, [ReconcileRequest::application(web.clone())]);
    assert_eq!(hub.decide(&web), None);
    // Nor do they receive Applications.
    hub.cache.apply(joined("eu3", false));
    hub.application(&shop(), "0a1b2c3d-0000", |object| {
        object["metadata"]["annotations"][names::CLUSTER] = json!("eu3");
    });
    hub.settle(&shop());
    let why = "ManagedCluster eu3 is not accepted: set its `hubAcceptsClient` to true";
    assert_eq!(hub.conditions(&shop()), [(ERROR, why)]);
    assert_eq!(
        hub.cache.apply(joined("eu3", true)),
        [ReconcileRequest::application(shop())]
    );
    hub.settle(&shop());
    assert_eq!(hub.conditions(&shop()), []);
    // Nor does one of the hub's name end the caution.
    hub.cache.name_hub(Some("ue1"));
    hub.cache.apply(stored(Kind::Clusters, &marked("eu2")));
    hub.cache.apply(joined("ue1", false));
    assert!(hub.cache.may_be_hub("eu2"));
    let to_eu2 = json!({"metadata": {"annotations": {names::CLUSTER: "eu2"}}});
    hub.change(&shop(), &to_eu2);
    hub.settle(&shop());
    let affected = hub.cache.apply(joined("ue1", true));
    assert!(
        affected.contains(&ReconcileRequest::application(shop())),
        "{affected:?}"
    );
    assert!(!hub.cache.may_be_hub("eu2"));
}

#[test]
fn refuses_to_deliver_an_application_onto_itself() {
    let mut hub = Hub::new();
    hub.application(&shop(), "0a1b2c3d-0000", |_| {});
    hub.cache.name_hub(Some("eu1"));
    hub.settle(&shop());
    let why = "ManagedCluster eu1 is the hub itself, whose agent would apply the Application onto itself: remove the \
               label apps.open-cluster-management.io/pull-to-ocm-managed-cluster, or name another cluster";
    hub.has(&shop(), &[(ERROR, why)], &[]);
    let elsewhere = json!({"metadata": {"annotations": {names::CLUSTER_NAMESPACE: "other"}}});
    hub.change(&shop(), &elsewhere);
    hub.settle(&shop());
    hub.has(&shop(), &[], &[WORK]);
}

#[test]
fn hub_gets_no_project_that_its_agent_would_restore() {
    let mut hub = Hub::new();
    hub.settings.pull.project = true;
    let project = |namespace: &str| {
        let spec = json!({"destinations": [{"name": "*", "namespace": namespace}]});
        json!({"metadata": {"name": "team-p", "namespace": "argocd"}, "spec": spec})
    };
    let kinds = |hub: &Hub| {
        let manifests = hub.work(WORK)["spec"]["workload"]["manifests"].as_array().cloned();
        let manifests = manifests.expect("the work has manifests").into_iter();
        let kinds = manifests.map(|manifest| manifest["kind"].as_str().unwrap_or_default().to_owned());
        kinds.collect::<Vec<_>>()
    };
    hub.cache.apply(stored(Kind::Projects, &project("*")));
    hub.application(&shop(), "0a1b2c3d-0000", |application| {
        application["metadata"]["annotations"][names::CLUSTER_NAMESPACE] = json!("other");
        application["spec"]["project"] = json!("team-p");
    });
    hub.settle(&shop());
    assert_eq!(kinds(&hub), ["AppProject", "Application"]);
    hub.cache.name_hub(Some("eu1"));
    hub.settle(&shop());
    assert_eq!(kinds(&hub), ["Application"]);
    hub.cache.apply(stored(Kind::Projects, &project("none")));
    hub.settle(&shop());
    assert_eq!(
        kinds(&hub),
        ["Application"],
        "the Application is refused, and the hub's project stays revoked"
    );
    hub.cache.apply(stored(Kind::Projects, &project("*")));
    hub.cache.name_hub(None);
    hub.settle(&shop());
    assert_eq!(kinds(&hub), ["AppProject", "Application"]);
    let affected = hub.cache.apply(stored(Kind::Clusters, &marked("eu1")));
    assert!(
        affected.contains(&ReconcileRequest::application(shop())),
        "{affected:?}"
    );
    hub.settle(&shop());
    assert_eq!(kinds(&hub), ["Application"]);
}

#[test]
fn global_projects_limit_applications_and_delivered_projects() {
    let mut hub = Hub::with_shop();
    hub.settings.pull.project = true;
    let project = |name: &str, spec: Value| json!({"metadata": {"name": name, "namespace": "argocd"}, "spec": spec});
    let own = project("team-p", json!({"destinations": [{"name": "*", "namespace": "*"}]}));
    hub.cache.apply(stored(Kind::Projects, &own));
    hub.change(&shop(), &json!({"spec": {"project": "team-p"}}));
    let data = json!({"globalProjects": "- projectName: global"});
    let config = json!({"metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": data});
    assert_eq!(hub.cache.apply(stored(Kind::Config, &config)).len(), 1);
    let refused = json!([{"group": "apps", "kind": "DaemonSet"}]);
    let global = project("global", json!({"namespaceResourceBlacklist": refused}));
    assert_eq!(hub.cache.apply(stored(Kind::Projects, &global)).len(), 1);
    hub.settle(&shop());
    let manifests = &hub.work(WORK)["spec"]["workload"]["manifests"];
    assert_eq!(manifests[0]["spec"]["namespaceResourceBlacklist"], refused);
    let denies = project("global", json!({"destinations": [{"name": "!eu1", "namespace": "*"}]}));
    hub.cache.apply(stored(Kind::Projects, &denies));
    hub.settle(&shop());
    assert_eq!(hub.conditions(&shop()).len(), 1);
}

#[test]
fn label_by_which_argo_cd_tracks_is_not_delivered() {
    let mut hub = Hub::with_shop();
    hub.change_metadata(&json!({"labels": {"app.kubernetes.io/instance": "root"}}));
    hub.settle(&shop());
    let labels = |hub: &Hub| hub.work(WORK)["spec"]["workload"]["manifests"][0]["metadata"]["labels"].clone();
    assert_eq!(labels(&hub), json!({"app.kubernetes.io/instance": "root"}));
    let data = json!({"application.resourceTrackingMethod": "label"});
    let config = json!({"metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": data});
    hub.cache.apply(stored(Kind::Config, &config));
    hub.settle(&shop());
    assert_eq!(labels(&hub), Value::Null);
}

#[test]
fn mark_of_the_hub_stops_only_new_applications() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.cache.apply(stored(Kind::Clusters, &marked("eu1")));
    hub.settle(&shop());
    hub.has(&shop(), &[], &[WORK]);
    let new = ObjectRef::new("argocd", "new");
    hub.application(&new, "1a1b2c3d-0000", |_| {});
    hub.settle(&new);
    let why = "ManagedCluster eu1 may be the hub itself, whose agent would apply the Application onto itself: name another \
               cluster, or set ARGOCD_OCM_CMP_HUB_CLUSTER to the name of the hub, or to none";
    hub.has(&new, &[(ERROR, why)], &[WORK]);
    // Nor does it take one over from another cluster.
    let other = ObjectRef::new("argocd", "other");
    hub.application(&other, "2a1b2c3d-0000", |application| {
        application["metadata"]["annotations"][names::CLUSTER] = json!("eu2");
    });
    hub.settle(&other);
    let works = hub.works();
    hub.change(&other, &json!({"metadata": {"annotations": {names::CLUSTER: "eu1"}}}));
    hub.settle(&other);
    assert_eq!((hub.conditions(&other), hub.works()), (vec![(ERROR, why)], works));
    hub.put("applications", &other, None);
    hub.settle(&other);
    // A misspelled name is none.
    hub.cache.name_hub(Some("ue1"));
    hub.settle(&new);
    hub.has(&new, &[(ERROR, why)], &[WORK]);
    hub.cache.name_hub(Some("none"));
    hub.settle(&new);
    assert_eq!((hub.conditions(&new), hub.works().len()), (vec![], 2));
}

#[test]
fn refused_work_sets_a_condition_until_it_is_accepted() {
    let mut hub = Hub::with_shop();
    let why = "ManifestWork eu1/shop-0a1b2 cannot be created: admission webhook \"w\" denied the request: no";
    hub.try_in_vain(&shop());
    assert_eq!(hub.conditions(&shop()), []);
    hub.refuse(&shop(), Some(why));
    hub.try_in_vain(&shop());
    assert_eq!(hub.conditions(&shop()), [("ManifestWorkWriteError", why)]);
    hub.log.clear();
    hub.try_in_vain(&shop());
    assert_eq!(hub.log, [""; 0], "it is said once");
    hub.refuse(&shop(), None);
    hub.settle(&shop());
    hub.has(&shop(), &[], &[WORK]);
    // The same for an update and for the deletion.
    hub.change(
        &shop(),
        &json!({"spec": {"source": {"path": "other"}}, "metadata": {"finalizers": [names::CASCADE[0]]}}),
    );
    hub.refuse(&shop(), Some("it cannot be changed"));
    hub.try_in_vain(&shop());
    assert_eq!(hub.conditions(&shop())[0].1, "it cannot be changed");
    hub.change_metadata(&json!({"deletionTimestamp": NOW}));
    hub.refuse(&shop(), Some("it cannot be deleted"));
    hub.try_in_vain(&shop());
    assert_eq!(hub.conditions(&shop())[0].1, "it cannot be deleted");
    assert_eq!(hub.works(), [WORK]);
}

#[test]
fn application_that_cannot_be_written_is_delivered_and_deleted() {
    let mut hub = Hub::with_shop();
    hub.settle(&shop());
    hub.refuse_write(&shop(), Some("Application argocd/shop cannot be changed: no"), true);
    hub.change(
        &shop(),
        &json!({"spec": {"source": {"path": "other"}}, "metadata": {"finalizers": [names::CASCADE[0]]}}),
    );
    let first = |hub: &mut Hub| {
        let action = hub.decide(&shop()).expect("something is to be written");
        (action.writes[0].resource.kind, action.writes[0].verb.name())
    };
    assert_eq!(first(&mut hub), ("ManifestWork", "patch"));
    hub.change_metadata(&json!({"deletionTimestamp": NOW}));
    assert_eq!(first(&mut hub), ("ManifestWork", "delete"));
}

#[test]
fn cluster_cannot_make_its_work_unreadable() {
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!({"f:a": deep});
    }
    let is_readable = |managed: &Value, spec: &Value| {
        let application = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "shop"}, "spec": spec});
        let work = json!({
            "metadata": {"managedFields": [{"fieldsV1": managed}]},
            "spec": {"workload": {"manifests": [application]}},
        });
        PullWork::from_json(&borrowed(&work)).is_ok()
    };
    assert!(is_readable(&deep, &json!({})));
    assert!(!is_readable(&json!({}), &deep), "only the hub writes the spec");
}

#[test]
fn work_that_cannot_be_read_is_neither_created_again_nor_forgotten() {
    let mut hub = Hub::with_shop();
    let unreadable = Change::unreadable_work(at(WORK), "values are nested too deep".into());
    assert_eq!(hub.cache.apply(unreadable), [ReconcileRequest::application(shop())]);
    assert_eq!(hub.settle(&shop()), ["patch application argocd/shop"]);
    let status = hub.objects[&("applications", shop())]["status"].to_string();
    assert!(
        status.contains("cannot be read: values are nested too deep"),
        "{status}"
    );

    let finalizers = json!(["resources-finalizer.argocd.argoproj.io"]);
    hub.change_metadata(&json!({"deletionTimestamp": NOW, "finalizers": finalizers}));
    hub.settle(&shop());
    hub.change_metadata(&json!({"annotations": {names::CLUSTER: "eu2"}}));
    hub.settle(&shop());
    assert_eq!(
        hub.objects[&("applications", shop())]["metadata"]["finalizers"],
        finalizers,
        "whatever cluster it names now"
    );
    assert_eq!(hub.works(), [""; 0]);
    let affected = hub.cache.apply(listed(Kind::Works, &[]));
    assert!(affected.iter().any(|request| request.object_ref == shop()));
    hub.settle(&shop());
    let released = hub.objects.get(&("applications", shop()));
    assert!(released.is_none_or(|application| {
        application["metadata"]["finalizers"]
            .as_array()
            .is_none_or(Vec::is_empty)
    }));
}
