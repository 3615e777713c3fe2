//! A simulated hub for tests of controllers of GitOpsClusters, with a fake OCM and argocd-agent: writes are stored and reported as watch
//! events. Writes are the requests that the writer sends, answered by the rules of [`api_server`](runtime::testing::api_server).

mod agents;
mod fake_ocm;
mod gitops;

use crate::controllers::{CONTROLLERS, MANAGER};
use argocd_agent::reconcile::{ADDON, HUB, REQUESTS, WORKS};
use fake_ocm::{of_argocd, some};
use gitopscluster::{AGENT_SECRETS, CONTROLLER as GITOPS, SECRETS};
use http::Request;
use hub_state::cache::Update;
use hub_state::cache::{Cache, Change, ReconcileRequest};
use hub_state::model::{Availability, Images, Kind, OPEN, TlsSecret};
use hub_state::reconcile::mappers;
use hub_state::reconcile::{Context, Controller, Settings};
use hub_state::testing::{listed, now};
use jiff::Timestamp;
use kube::core::params::{DeleteParams, PostParams};
use kube::core::request;
use ocm::argocd_agent as names;
use ocm::resources::GITOPS_CLUSTERS;
use pki::Recipe;
use primitives::object_ref::ObjectRef;
use runtime::action::{Verb, Write};
use runtime::testing::api_server::{Answer, Call, answer, selects};
use runtime::writer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::time::Duration;
use testing::merge;

static SIMULATED: [&Controller; 7] = [&GITOPS, &SECRETS, &HUB, &ADDON, &WORKS, &REQUESTS, &AGENT_SECRETS];

/// The managed clusters.
const CLUSTERS: [&str; 3] = ["eu1", "eu2", "eu3"];

/// The hub, and the JSON of its objects.
pub(super) struct Hub {
    pub(super) cache: Cache,
    pub(super) argocd: &'static str,
    /// The GitOpsClusters.
    pub(super) objects: BTreeMap<ObjectRef, Value>,
    /// The cluster Secrets.
    pub(super) secrets: BTreeMap<String, Value>,
    pub(super) existing: BTreeMap<(Kind, ObjectRef), Value>,
    pub(super) now: Timestamp,
    pub(super) new_leader_for: Option<Duration>,
    pub(super) versions: u64,
    /// The objects to reconcile.
    pub(super) affected: Vec<(Kind, ObjectRef)>,
    pub(super) events: Vec<String>,
    pub(super) ocm: fake_ocm::Ocm,
    /// The objects to reconcile later without a change, by the index of the controller.
    waits: BTreeMap<(usize, ObjectRef), Timestamp>,
    /// The watch events of kinds whose watches are late.
    late: BTreeMap<Kind, Vec<(ObjectRef, Option<Value>)>>,
    /// The objects whose writes were in conflict while watches were late.
    retries: Vec<(Kind, ObjectRef)>,
}

pub(super) fn all() -> ObjectRef {
    ObjectRef::new("argocd", "all")
}

pub(super) fn acm(more: &Value) -> Value {
    let mut spec = json!({"placementRef": {"kind": "Placement", "name": "some"}, "argoServer": {"argoNamespace": "argocd"},
            "createBlankClusterSecrets": more["gitopsAddon"].is_null()});
    merge(&mut spec, more);
    spec
}

pub(super) fn secret_name(cluster: &str) -> String {
    format!("{cluster}-application-manager-cluster-secret")
}

impl Hub {
    /// Creates a hub with the managed clusters eu1, eu2 and eu3, a Placement that selects the first two, and the principal.
    pub(super) fn new() -> Self {
        let mut hub = Self {
            cache: Cache::new("argocd").with_mappers(mappers(CONTROLLERS)),
            argocd: "argocd",
            objects: BTreeMap::new(),
            secrets: BTreeMap::new(),
            existing: BTreeMap::new(),
            now: now(),
            new_leader_for: None,
            versions: 0,
            affected: Vec::new(),
            events: Vec::new(),
            ocm: fake_ocm::Ocm::default(),
            waits: BTreeMap::new(),
            late: BTreeMap::new(),
            retries: Vec::new(),
        };
        for cluster in CLUSTERS {
            hub.cluster(cluster, &json!({}));
        }
        hub.select(&["eu1", "eu2"]);
        let principal = of_argocd(names::PRINCIPAL_DEPLOYMENTS[0]);
        let service = json!({"metadata": {}, "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "hub.example.com"}]}}});
        hub.put(Kind::Services, &principal, Some(service));
        let deployment = json!({"metadata": {}, "spec": {"template": {"metadata": {}}}});
        hub.put(Kind::Deployments, &principal, Some(deployment));
        hub.affected.clear();
        hub
    }

    /// Creates a hub with a GitOpsCluster of that Placement, completely reconciled.
    pub(super) fn with_all() -> Self {
        let mut hub = Self::new();
        hub.write(&all(), &acm(&json!({})));
        hub.settle();
        hub
    }

    /// Reconciles as the controller of the Argo CD in this namespace from now on.
    pub(super) fn serve(&mut self, argocd: &'static str) {
        self.argocd = argocd;
        self.cache.serve(argocd);
    }

    /// Applies a complete list of a kind that has no object.
    pub(super) fn list_none(&mut self, kind: Kind) {
        self.apply(listed(kind, &[]));
    }

    pub(super) fn apply(&mut self, change: Change) -> Vec<ReconcileRequest> {
        let affected = self.cache.apply(change);
        for cluster in CLUSTERS {
            let (cached, computed) = (
                assignment::for_cluster(&self.cache, cluster),
                assignment::compute(&self.cache, cluster),
            );
            assert_eq!(*cached, computed, "{cluster}: the cache keeps an outdated assignment");
        }
        self.affected.extend(
            affected
                .iter()
                .map(|request| (request.kind, request.object_ref.clone())),
        );
        affected
    }

    /// Creates a managed cluster or changes its labels; it is reachable.
    pub(super) fn cluster(&mut self, name: &str, labels: &Value) {
        self.join(name, labels, Availability::Available);
    }

    /// Sets the reachability of a managed cluster without labels.
    pub(super) fn availability(&mut self, cluster: &str, availability: Availability) {
        self.join(cluster, &json!({}), availability);
    }

    fn join(&mut self, cluster: &str, labels: &Value, availability: Availability) {
        let status = match availability {
            Availability::Available => "True",
            Availability::Unknown => "Unknown",
            Availability::Unavailable => "False",
        };
        let condition = json!({"type": "ManagedClusterConditionAvailable", "status": status});
        let object = json!({
            "metadata": {"labels": labels},
            "spec": {"hubAcceptsClient": true},
            "status": {"conditions": [condition]},
        });
        self.put(Kind::Clusters, &ObjectRef::new("", cluster), Some(object));
    }

    /// Sets a decision of a Placement of users, independent of its status.
    pub(super) fn decide(&mut self, placement: &ObjectRef, number: u8, clusters: Option<&[&str]>) {
        let object_ref = ObjectRef::new(&placement.namespace, &format!("{}-decision-{number}", placement.name));
        let decision = clusters.map(|clusters| {
            let all: Vec<_> = clusters.iter().map(|cluster| json!({"clusterName": cluster})).collect();
            let labels = json!({"cluster.open-cluster-management.io/placement": &*placement.name});
            json!({"metadata": {"labels": labels}, "status": {"decisions": all}})
        });
        self.put(Kind::Decisions, &object_ref, decision);
    }

    /// Sets the number of clusters in the status of a Placement of users, or deletes it.
    pub(super) fn set_selected_count(&mut self, placement: &ObjectRef, selected: Option<usize>) {
        let object = selected.map(|selected| json!({"metadata": {}, "status": {"numberOfSelectedClusters": selected}}));
        self.put(Kind::Placements, placement, object);
    }

    pub(super) fn select_for(&mut self, placement: &ObjectRef, clusters: &[&str]) {
        self.decide(placement, 1, Some(clusters));
        self.set_selected_count(placement, Some(clusters.len()));
    }

    pub(super) fn select(&mut self, clusters: &[&str]) {
        self.select_for(&some(), clusters);
    }

    pub(super) fn kept(&self, kind: Kind) -> Vec<(&ObjectRef, &Value)> {
        let all = self.existing.iter();
        all.filter(|((other, _), _)| *other == kind)
            .map(|((_, object_ref), object)| (object_ref, object))
            .collect()
    }

    pub(super) fn get(&self, kind: Kind, object_ref: &ObjectRef) -> Option<&Value> {
        self.existing.get(&(kind, object_ref.clone()))
    }

    /// Changes an object by a merge patch.
    pub(super) fn edit(&mut self, kind: Kind, object_ref: &ObjectRef, patch: &Value) {
        let mut object = self.get(kind, object_ref).expect("it is there").clone();
        merge(&mut object, patch);
        self.put(kind, object_ref, Some(object));
    }

    /// Returns the certificates in the CA's Secret.
    pub(super) fn ca(&self) -> &TlsSecret {
        self.cache.certificate(names::CA_SECRET).expect("it is there")
    }

    fn stored(&self, kind: Kind, object_ref: &ObjectRef) -> Option<&Value> {
        match kind {
            Kind::GitOpsClusters => self.objects.get(object_ref),
            Kind::Secrets => self.secrets.get(&*object_ref.name),
            _ => self.get(kind, object_ref),
        }
    }

    /// Stores or removes an object.
    fn store(&mut self, kind: Kind, object_ref: &ObjectRef, object: Option<Value>) {
        match self.late.get_mut(&kind) {
            Some(events) => events.push((object_ref.clone(), object.clone())),
            None => self.handle_event(kind, object_ref, object.as_ref()),
        }
        match (kind, object) {
            (Kind::GitOpsClusters, Some(object)) => self.objects.insert(object_ref.clone(), object),
            (Kind::GitOpsClusters, None) => self.objects.remove(object_ref),
            (Kind::Secrets, Some(object)) => self.secrets.insert(object_ref.name.to_string(), object),
            (Kind::Secrets, None) => self.secrets.remove(&*object_ref.name),
            (_, Some(object)) => self.existing.insert((kind, object_ref.clone()), object),
            (_, None) => self.existing.remove(&(kind, object_ref.clone())),
        };
    }

    /// Withholds the watch events of these kinds from the cache, so that the controller does not know its own writes.
    pub(super) fn delay(&mut self, kinds: impl IntoIterator<Item = Kind>) {
        for kind in kinds {
            self.late.entry(kind).or_default();
        }
    }

    /// Reports all late watch events.
    pub(super) fn catch_up(&mut self) {
        for (kind, events) in mem::take(&mut self.late) {
            for (object_ref, object) in events {
                self.handle_event(kind, &object_ref, object.as_ref());
            }
        }
        self.affected.append(&mut self.retries);
    }

    /// Reports an object to the cache as a watch event: that it changed, was deleted, or does not match the selectors of the
    /// watch.
    fn handle_event(&mut self, kind: Kind, object_ref: &ObjectRef, object: Option<&Value>) {
        let watch_config = kind.watch_config(self.argocd);
        let [labels, fields] = [&watch_config.label_selector, &watch_config.field_selector];
        let is_watched =
            |object: &&Value| selects(labels.as_deref().unwrap_or(""), fields.as_deref().unwrap_or(""), object);
        let text = object.filter(is_watched).map(Value::to_string);
        let change = kind.change(Update::from_option(object_ref.clone(), text.as_deref()), self.now);
        self.apply(change.expect("it can be read"));
    }

    /// Sends a request to the API server, and reports the result as a watch event.
    fn send(&mut self, kind: Kind, object_ref: &ObjectRef, request: &Request<Vec<u8>>) -> Value {
        let before = self.stored(kind, object_ref);
        let Answer { body, stored, .. } = answer(&Call::from_request(request), before, self.versions + 1);
        if stored.as_ref() != before {
            self.versions += 1;
            self.store(kind, object_ref, stored);
        }
        body
    }

    /// Writes the spec of a GitOpsCluster as a user.
    pub(super) fn write(&mut self, object_ref: &ObjectRef, spec: &Value) {
        let requests = request::Request::new(GITOPS_CLUSTERS.path(&object_ref.namespace));
        let mut object = json!({"metadata": {"name": &*object_ref.name}});
        let exists = self
            .objects
            .get(object_ref)
            .map(|existing| object.clone_from(existing))
            .is_some();
        object["spec"] = spec.clone();
        let (text, params) = (object.to_string().into_bytes(), PostParams::default());
        let request = if exists {
            requests.replace(&object_ref.name, &params, text)
        } else {
            requests.create(&params, text)
        };
        self.accepts(object_ref, request);
    }

    /// Deletes a GitOpsCluster as a user.
    pub(super) fn delete(&mut self, object_ref: &ObjectRef) {
        let requests = request::Request::new(GITOPS_CLUSTERS.path(&object_ref.namespace));
        self.accepts(object_ref, requests.delete(&object_ref.name, &DeleteParams::default()));
    }

    fn accepts(&mut self, object_ref: &ObjectRef, request: Result<Request<Vec<u8>>, request::Error>) {
        let answered = self.send(Kind::GitOpsClusters, object_ref, &request.expect("a request"));
        assert_ne!(answered["status"], "Failure", "{object_ref}: {answered}");
    }

    /// Reports a GitOpsCluster as a test has changed it, without access control.
    pub(super) fn written(&mut self, object_ref: &ObjectRef) {
        self.versions += 1;
        let mut object = self.objects[object_ref].clone();
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.versions.to_string());
        let nothing_is_left = metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
        let is_gone = metadata["deletionTimestamp"].is_string() && nothing_is_left;
        self.store(Kind::GitOpsClusters, object_ref, (!is_gone).then_some(object));
    }

    /// Sets the finalizers of a GitOpsCluster.
    pub(super) fn finalize(&mut self, object_ref: &ObjectRef, finalizers: &[&str]) {
        self.objects.get_mut(object_ref).expect("it is there")["metadata"]["finalizers"] = json!(finalizers);
        self.written(object_ref);
    }

    /// Opens Argo CD's namespace to GitOpsClusters of other namespaces, or closes it.
    pub(super) fn open(&mut self, is_open: bool) {
        let namespace = json!({"metadata": {"labels": {OPEN: is_open.to_string()}}});
        self.put(Kind::Namespace, &ObjectRef::new("", self.argocd), Some(namespace));
    }

    /// Writes a CA that can issue nothing.
    pub(super) fn break_ca(&mut self) {
        let broken = json!({"metadata": {}, "type": "kubernetes.io/tls", "data": {"tls.crt": "", "tls.key": ""}});
        self.put(Kind::Certificates, &of_argocd(names::CA_SECRET), Some(broken));
    }

    /// Sets or removes a Secret.
    pub(super) fn secret(&mut self, name: &str, secret: Option<Value>) {
        self.put(Kind::Secrets, &ObjectRef::new("argocd", name), secret);
    }

    /// Sets or removes an object, without access control.
    pub(super) fn put(&mut self, kind: Kind, object_ref: &ObjectRef, object: Option<Value>) {
        self.versions += 1;
        let version = self.versions.to_string();
        let before = self.stored(kind, object_ref);
        let object = object.map(|mut object| {
            let generation = before.map_or(1, |before| {
                before["metadata"]["generation"].as_i64().unwrap_or_default()
                    + i64::from(before["spec"] != object["spec"])
            });
            let uid = before.map_or_else(
                || json!(format!("uid-{version}")),
                |before| before["metadata"]["uid"].clone(),
            );
            let metadata = &mut object["metadata"];
            if metadata["uid"].is_null() {
                metadata["uid"] = uid;
            }
            metadata["name"] = json!(&*object_ref.name);
            metadata["namespace"] = json!(&*object_ref.namespace);
            metadata["resourceVersion"] = json!(version);
            metadata["generation"] = json!(generation);
            object
        });
        self.store(kind, object_ref, object);
    }

    /// Reconciles until nothing is queued and nothing changes by time alone, and returns the writes.
    pub(super) fn settle(&mut self) -> Vec<String> {
        let mut written = self.settle_at_once();
        while self.tick() {
            written.extend(self.settle_at_once());
        }
        written
    }

    /// Advances the time of the cache to its next deadline. Returns false if there is none.
    pub(super) fn tick(&mut self) -> bool {
        let Some(next) = self.cache.next_deadline() else {
            return false;
        };
        let affected = self.cache.tick(next);
        self.affected
            .extend(affected.into_iter().map(|request| (request.kind, request.object_ref)));
        true
    }

    /// Reconciles until nothing is queued, and returns the writes.
    pub(super) fn settle_at_once(&mut self) -> Vec<String> {
        let mut written = Vec::new();
        for _ in 0..5_000 {
            let Some((kind, object_ref)) = self.affected.pop() else {
                return written;
            };
            written.extend(self.reconcile_one(kind, &object_ref));
        }
        panic!("it goes on and on: {written:?}");
    }

    /// Reconciles this number of queued objects.
    pub(super) fn settle_steps(&mut self, looks: usize) {
        for _ in 0..looks {
            if let Some((kind, object_ref)) = self.affected.pop() {
                self.reconcile_one(kind, &object_ref);
            }
        }
    }

    /// Advances the time and reconciles what is due.
    pub(super) fn advance_to(&mut self, now: Timestamp) -> Vec<String> {
        self.now = now;
        let due = self.waits.iter().filter(|(_, at)| **at <= now);
        let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
        for (controller, object_ref) in due {
            self.waits.remove(&(controller, object_ref.clone()));
            self.affected.push((SIMULATED[controller].kind, object_ref));
        }
        self.settle()
    }

    /// Starts another controller on the hub.
    pub(super) fn restart_controller(&mut self) -> Vec<String> {
        self.forget_all();
        self.reconcile_all()
    }

    /// Replaces the cache by that of another controller, which has read all objects.
    pub(super) fn forget_all(&mut self) {
        self.cache = Cache::new(self.argocd).with_mappers(mappers(CONTROLLERS));
        self.waits.clear();
        self.affected.clear();
        self.late.clear();
        self.retries.clear();
        for ((kind, object_ref), object) in self.existing.clone() {
            self.handle_event(kind, &object_ref, Some(&object));
        }
        for (name, secret) in self.secrets.clone() {
            self.handle_event(Kind::Secrets, &of_argocd(&name), Some(&secret));
        }
        for (object_ref, object) in self.objects.clone() {
            self.handle_event(Kind::GitOpsClusters, &object_ref, Some(&object));
        }
    }

    /// Reconciles all objects, as may happen at any time, until nothing changes by time alone.
    pub(super) fn reconcile_all(&mut self) -> Vec<String> {
        let mut written = self.reconcile_all_at_once();
        written.extend(self.settle());
        written
    }

    /// Reconciles all objects without advancing the time.
    pub(super) fn reconcile_all_at_once(&mut self) -> Vec<String> {
        self.affected.push((Kind::Namespace, ObjectRef::new("", "argocd")));
        let gitops = self.objects.keys();
        self.affected
            .extend(gitops.map(|object_ref| (Kind::GitOpsClusters, object_ref.clone())));
        let others = self.existing.keys();
        let others = others.filter(|(kind, _)| [Kind::Clusters, Kind::Requests].contains(kind));
        self.affected.extend(others.cloned());
        self.settle_at_once()
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            argocd: self.argocd.to_owned(),
            agents: true,
            images: Images {
                ours: Some("ours:1".into()),
                ..Images::default()
            },
            ..Settings::default()
        }
    }

    /// Returns the next writes of a controller for an object, without executing them.
    pub(super) fn next_writes(&self, controller: &Controller, object_ref: &ObjectRef) -> Vec<Write> {
        let settings = self.settings();
        let context = hub_state::testing::context(self.now, &settings);
        let action = (controller.reconcile)(&self.cache, object_ref, &context);
        action.map_or_else(Vec::new, |action| action.writes)
    }

    /// Reconciles one object with each of its controllers, and returns the writes.
    pub(super) fn reconcile_one(&mut self, kind: Kind, object_ref: &ObjectRef) -> Vec<String> {
        let mut written = Vec::new();
        let settings = self.settings();
        let context = Context {
            new_leader_for: self.new_leader_for,
            ..hub_state::testing::context(self.now, &settings)
        };
        let controllers = SIMULATED.iter().enumerate();
        for (number, controller) in controllers.filter(|(_, controller)| controller.kind == kind) {
            let Some(action) = (controller.reconcile)(&self.cache, object_ref, &context) else {
                let key = (number, object_ref.clone());
                match (controller.requeue_after)(&self.cache, object_ref, &context) {
                    Some(at) => self.waits.insert(key, at),
                    None => self.waits.remove(&key),
                };
                continue;
            };
            self.events.extend(action.events.into_iter().map(|event| event.message));
            patch_each_version_once(&action.writes);
            for write in action.writes {
                let text = self.execute(write);
                let [conflicts, is_taken, is_gone] = ["conflict", "taken", "gone"].map(|start| text.starts_with(start));
                written.push(text);
                if conflicts {
                    // After a conflict, the object is reconciled again and the rest is not written.
                    let queue = if self.late.is_empty() {
                        &mut self.affected
                    } else {
                        &mut self.retries
                    };
                    queue.push((kind, object_ref.clone()));
                }
                if conflicts || is_taken || is_gone {
                    break;
                }
            }
        }
        written
    }

    /// Carries out a write like the writer, and returns the result.
    pub(super) fn execute(&mut self, mut write: Write) -> String {
        if let Some(recipe) = write.recipe.take() {
            if !self.make(&mut write, &recipe) {
                return format!("conflict {}", write.object_ref);
            }
            return format!("{} with a certificate", self.execute(write));
        }
        let Write {
            resource, object_ref, ..
        } = &write;
        if let Some((resource, other)) = &write.unless_exists
            && self.stored(fake_ocm::kind_of(resource, other), other).is_some()
        {
            return format!("conflict {object_ref}");
        }
        let kind = fake_ocm::kind_of(resource, object_ref);
        let before = self.stored(kind, object_ref).cloned().unwrap_or_default();
        let verb = match &write.verb {
            Verb::Create(_) => "create",
            Verb::Patch(body) => {
                assert_eq!(
                    body.get("status").is_some(),
                    resource.subresource.is_some(),
                    "{object_ref}: {body}"
                );
                resource.subresource.unwrap_or("patch")
            }
            Verb::JsonPatch(_) => "patch",
            Verb::Delete { .. } => {
                let labels = &before["metadata"]["labels"];
                let is_ours = labels["app.kubernetes.io/managed-by"] == "argocd-ocm-cmp";
                assert!(is_ours || before.is_null(), "{object_ref}");
                "delete"
            }
        };
        let request = writer::request(&write, MANAGER).expect("a request");
        let answered = self.send(kind, object_ref, &request);
        match answered["reason"].as_str() {
            Some("Conflict") => return format!("conflict {object_ref}"),
            // The writer records an Event about the name conflict, and retries later.
            Some("AlreadyExists") => return format!("taken {object_ref}"),
            Some("NotFound") if verb == "delete" => return format!("absent {object_ref}"),
            Some("NotFound") => return format!("gone {object_ref}"),
            _ => {}
        }
        assert!(answered["status"] != "Failure", "{verb} {object_ref}: {answered}");
        let is_unchanged = answered["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"];
        match kind {
            Kind::GitOpsClusters if verb == "patch" => format!("finalizers {object_ref}"),
            Kind::GitOpsClusters => format!("{verb} {object_ref}"),
            _ if is_unchanged => panic!("a write that changes nothing: {write:?}"),
            Kind::Secrets => format!("{verb} {}", object_ref.name),
            _ => self.count_write(verb, resource, object_ref),
        }
    }

    /// Returns the clusters with a Secret of a GitOpsCluster.
    pub(super) fn registered(&self) -> Vec<&str> {
        let names = self.secrets.keys();
        names
            .filter_map(|name| name.strip_suffix("-application-manager-cluster-secret"))
            .collect()
    }

    pub(super) fn owner(&self, cluster: &str) -> &Value {
        &self.secrets[&secret_name(cluster)]["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"]
    }

    /// Returns the status, the reason and the message of a condition.
    pub(super) fn condition_of(&self, object_ref: &ObjectRef, kind: &str) -> [&str; 3] {
        testing::read_condition(&self.objects[object_ref], kind)
    }

    /// Panics if a condition has not this status and reason (empty for any), or not this part in its message.
    #[track_caller]
    pub(super) fn says(&self, object_ref: &ObjectRef, kind: &str, state: [&str; 2], part: &str) {
        let [status, reason, message] = self.condition_of(object_ref, kind);
        assert!(state == [status, reason] || state == [status, ""], "{status} {reason}");
        assert!(message.contains(part), "{message}");
    }

    pub(super) fn is(&self, kind: &str) -> [&str; 2] {
        let [status, reason, _] = self.condition_of(&all(), kind);
        [status, reason]
    }
}

/// Panics if two patches are of one version of an object: the API server would refuse the second.
fn patch_each_version_once(writes: &[Write]) {
    let mut versions = BTreeSet::new();
    for write in writes {
        if let Verb::Patch(body) = &write.verb {
            let version = body["metadata"]["resourceVersion"].as_str();
            let version = (write.resource.kind, &write.object_ref, version);
            assert!(versions.insert(version), "two patches of one version: {writes:#?}");
        }
    }
}
