//! A simulated hub for tests of controllers of GitOpsClusters: writes are stored and reported as watch events. Writes are the
//! requests that the writer sends, answered by the rules of [`api_server`](runtime::testing::api_server).

mod agents;
mod fake_ocm;
mod gitops;

use crate::controllers::{CONTROLLERS, MANAGER};
use gitopscluster::{AGENT_SECRETS, CONTROLLER as GITOPS, SECRETS};
use http::Request;
use hub_state::cache::{Cache, Cached, Change, ReconcileRequest};
use hub_state::model::{Cluster, GitOpsCluster, Kind, Placement, PlacementDecision, TlsSecret};
use hub_state::model::{DesiredAgent, Images};
use hub_state::reconcile::mappers;
use hub_state::reconcile::{Context, Controller, Settings};
use hub_state::testing::certificates::put;
use hub_state::testing::now;
use jiff::Timestamp;
use kube::core::params::{DeleteParams, PostParams};
use kube::core::request;
use ocm::argocd_agent as names;
use ocm::resources::GITOPS_CLUSTERS;
use pki::Recipe;
use primitives::object_ref::ObjectRef;
use runtime::action::{Verb, Write};
use runtime::store::Update;
use runtime::testing::api_server::{Answer, Call, answer, selects};
use runtime::writer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use testing::merge;

/// The hub, and the JSON of the written objects.
pub(super) struct Hub {
    pub(super) cache: Cache,
    pub(super) argocd: &'static str,
    pub(super) objects: BTreeMap<ObjectRef, Value>,
    pub(super) secrets: BTreeMap<String, Value>,
    /// The GitOpsClusters that ask for argocd-agent, with its settings.
    pub(super) agents: BTreeMap<ObjectRef, DesiredAgent>,
    /// The Secret of the CA.
    pub(super) authority: Option<Value>,
    pub(super) now: Timestamp,
    pub(super) new_leader_for: Option<Duration>,
    pub(super) versions: u64,
    /// The objects to reconcile.
    pub(super) affected: Vec<(Kind, ObjectRef)>,
    pub(super) events: Vec<String>,
    /// The fake OCM and its add-on agents, in tests with agents.
    pub(super) ocm: Option<fake_ocm::Ocm>,
    /// All objects except GitOpsClusters and cluster Secrets, in tests with agents.
    pub(super) existing: BTreeMap<(Kind, ObjectRef), Value>,
    /// The objects to reconcile later without a change.
    waits: BTreeMap<(usize, ObjectRef), Timestamp>,
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
    /// Creates a hub with the managed clusters eu1, eu2 and eu3, and a Placement that selects the first two.
    pub(super) fn new() -> Self {
        let mut hub = Self {
            cache: Cache::new("argocd").with_mappers(mappers(CONTROLLERS)),
            argocd: "argocd",
            objects: BTreeMap::new(),
            secrets: BTreeMap::new(),
            agents: BTreeMap::new(),
            authority: None,
            now: now(),
            new_leader_for: None,
            versions: 0,
            affected: Vec::new(),
            events: Vec::new(),
            ocm: None,
            existing: BTreeMap::new(),
            waits: BTreeMap::new(),
        };
        for cluster in ["eu1", "eu2", "eu3"] {
            hub.cluster(cluster, &json!({}));
        }
        hub.select(&["eu1", "eu2"]);
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
    pub(super) fn list_none<V: Cached>(&mut self, kind: Kind) -> Vec<ReconcileRequest> {
        self.apply(Change::objects::<V>(kind, Update::Listed(HashSet::new())))
    }

    pub(super) fn apply(&mut self, change: Change) -> Vec<ReconcileRequest> {
        let affected = self.cache.apply(change);
        for cluster in ["eu1", "eu2", "eu3"] {
            let (kept, computed) = (
                assignment::for_cluster(&self.cache, cluster),
                assignment::compute(&self.cache, cluster),
            );
            assert_eq!(*kept, computed, "{cluster}: the cache keeps an outdated assignment");
        }
        self.affected
            .extend(affected.iter().map(|it| (it.kind, it.object_ref.clone())));
        affected
    }

    pub(super) fn cluster(&mut self, name: &str, labels: &Value) {
        let text = json!({"metadata": {"uid": name, "labels": labels}}).to_string();
        let cluster = Cluster::from_json(&text).expect("a cluster");
        self.apply(Change::objects(Kind::Clusters, Update::Set(name.into(), cluster)));
    }

    pub(super) fn decide(&mut self, name: &str, clusters: Option<&[&str]>) {
        let decision = clusters.map(|clusters| PlacementDecision {
            placement: "some".into(),
            clusters: clusters.iter().map(|cluster| Arc::from(*cluster)).collect(),
        });
        self.apply(Change::objects(
            Kind::Decisions,
            Update::from_option(ObjectRef::new("argocd", name), decision),
        ));
    }

    pub(super) fn set_placement_status(&mut self, selected: Option<usize>) {
        let placement = Some(Placement { selected });
        self.apply(Change::objects(
            Kind::Placements,
            Update::from_option(ObjectRef::new("argocd", "some"), placement),
        ));
    }

    pub(super) fn select(&mut self, clusters: &[&str]) {
        self.decide("some-decision-1", Some(clusters));
        self.set_placement_status(Some(clusters.len()));
    }

    /// Returns a stored object.
    fn stored(&self, kind: Kind, object_ref: &ObjectRef) -> Option<&Value> {
        match kind {
            Kind::GitOpsClusters => self.objects.get(object_ref),
            Kind::Secrets => self.secrets.get(&*object_ref.name),
            _ => self.existing.get(&(kind, object_ref.clone())),
        }
    }

    /// Stores or removes an object.
    fn store(&mut self, kind: Kind, object_ref: &ObjectRef, object: Option<Value>) {
        self.handle_event(kind, object_ref, object.as_ref());
        match (kind, object) {
            (Kind::GitOpsClusters, Some(object)) => self.objects.insert(object_ref.clone(), object),
            (Kind::GitOpsClusters, None) => self.objects.remove(object_ref),
            (Kind::Secrets, Some(object)) => self.secrets.insert(object_ref.name.to_string(), object),
            (Kind::Secrets, None) => self.secrets.remove(&*object_ref.name),
            (_, Some(object)) => self.existing.insert((kind, object_ref.clone()), object),
            (_, None) => self.existing.remove(&(kind, object_ref.clone())),
        };
    }

    /// Reports an object to the cache as a watch event: that it changed, was deleted, or does not match the selectors of the
    /// watch.
    fn handle_event(&mut self, kind: Kind, object_ref: &ObjectRef, object: Option<&Value>) {
        let watch_config = kind.watch_config(self.argocd);
        let [labels, fields] = [&watch_config.label_selector, &watch_config.field_selector];
        let is_watched =
            |object: &&Value| selects(labels.as_deref().unwrap_or(""), fields.as_deref().unwrap_or(""), object);
        let text = object.filter(is_watched).map(Value::to_string);
        let agent = self.agents.get(object_ref).filter(|_| kind == Kind::GitOpsClusters);
        let change = if let (Some(agent), Some(text)) = (agent, &text) {
            let mut gitops = GitOpsCluster::from_json(text).expect("it can be read");
            gitops.spec.agent = Some(agent.clone());
            gitops.spec.creates_blank_secrets = false;
            Change::objects(kind, Update::Set(object_ref.clone(), gitops))
        } else {
            let change = kind.change(Update::from_option(object_ref.clone(), text.as_deref()), self.now);
            change.expect("it can be read")
        };
        self.apply(change);
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
        let requests = request::Request::new(GITOPS_CLUSTERS.path(object_ref));
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
        let before = self.versions;
        self.accepts(object_ref, request);
        if self.versions == before {
            // A test may have changed the agent settings.
            let object = self.objects[object_ref].clone();
            self.handle_event(Kind::GitOpsClusters, object_ref, Some(&object));
        }
    }

    /// Deletes a GitOpsCluster as a user.
    pub(super) fn delete(&mut self, object_ref: &ObjectRef) {
        let requests = request::Request::new(GITOPS_CLUSTERS.path(object_ref));
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

    /// Sets the Secret of the CA.
    pub(super) fn authority(&mut self, secret: &Value) {
        let ca = TlsSecret::from_json(&secret.to_string()).expect("a Secret");
        self.authority = Some(secret.clone());
        self.apply(Change::objects(
            Kind::Certificates,
            Update::Set(names::CA_SECRET.into(), ca),
        ));
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
        let generation = before.map(|before| (before["metadata"]["generation"].as_i64(), before["spec"].clone()));
        let object = object.map(|mut object| {
            let generation = generation.map_or(1, |(generation, spec)| {
                generation.unwrap_or_default() + i64::from(spec != object["spec"])
            });
            let metadata = &mut object["metadata"];
            if metadata["uid"].is_null() {
                metadata["uid"] = json!(format!("uid-{version}"));
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
            .extend(affected.into_iter().map(|it| (it.kind, it.object_ref)));
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
            written.extend(self.reconcile_agents(kind, &object_ref));
        }
        panic!("it goes on and on: {written:?}");
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

    /// Reconciles one object, and returns the write.
    pub(super) fn reconcile_one(&mut self, kind: Kind, object_ref: &ObjectRef) -> Option<String> {
        let settings = self.settings();
        let context = Context {
            now: self.now,
            stale: false,
            new_leader_for: self.new_leader_for,
            settings: &settings,
        };
        let action = match kind {
            Kind::GitOpsClusters => (GITOPS.reconcile)(&self.cache, object_ref, &context),
            Kind::Clusters => {
                let of_one = |controller: &Controller| (controller.reconcile)(&self.cache, object_ref, &context);
                of_one(&SECRETS).or_else(|| of_one(&AGENT_SECRETS))
            }
            _ => None,
        }?;
        self.events.extend(action.events.into_iter().map(|event| event.message));
        let written: Vec<_> = action.writes.into_iter().map(|write| self.execute(write)).collect();
        assert!(!written.is_empty(), "an action without a write");
        Some(written.join(", "))
    }

    /// Carries out a write like the writer, and returns the result.
    pub(super) fn execute(&mut self, mut write: Write) -> String {
        if let Some(recipe) = write.recipe.take() {
            return self.make(write, &recipe);
        }
        let Write {
            resource, object_ref, ..
        } = &write;
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
            Verb::Delete { .. } => {
                let labels = &before["metadata"]["labels"];
                assert_eq!(labels["app.kubernetes.io/managed-by"], "argocd-ocm-cmp", "{object_ref}");
                "delete"
            }
        };
        let request = writer::request(&write, MANAGER).expect("a request");
        let answered = self.send(kind, object_ref, &request);
        match answered["reason"].as_str() {
            Some("Conflict") => return format!("conflict {object_ref}"),
            // The writer records an Event about the name conflict, and retries later.
            Some("AlreadyExists") => return format!("taken {object_ref}"),
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

    /// Carries out a write with generated data, like the writer.
    fn make(&mut self, mut write: Write, recipe: &Recipe) -> String {
        if self.ocm.is_some() {
            self.make_of(&mut write, recipe);
            return format!("{} with what is made", self.execute(write));
        }
        let authority = self.authority.as_ref().expect("an authority");
        let desired = recipe.authority().expect("it is of the authority");
        assert_eq!(authority["metadata"]["resourceVersion"], *desired.version);
        if let Some(body) = write.body_mut() {
            put(recipe, authority, body);
        }
        format!("{} with a certificate", self.execute(write))
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
        let conditions = self.objects[object_ref]["status"]["conditions"].as_array();
        let found = conditions.into_iter().flatten().find(|it| it["type"] == kind);
        ["status", "reason", "message"].map(|key| found.and_then(|it| it[key].as_str()).unwrap_or_default())
    }

    pub(super) fn is(&self, kind: &str) -> [&str; 2] {
        let [status, reason, _] = self.condition_of(&all(), kind);
        [status, reason]
    }

    /// Returns the same hub after a restart of the controller.
    pub(super) fn restarted(&self) -> Self {
        let mut hub = Self::new();
        hub.affected.clear();
        let named: BTreeSet<_> = self
            .cache
            .selected_by(&ObjectRef::new("argocd", "some"))
            .map(|it| &**it)
            .collect();
        hub.select(&named.into_iter().collect::<Vec<_>>());
        hub.agents.clone_from(&self.agents);
        if let Some(authority) = &self.authority {
            hub.authority(authority);
        }
        for (name, secret) in &self.secrets {
            hub.store(Kind::Secrets, &ObjectRef::new("argocd", name), Some(secret.clone()));
        }
        for (object_ref, object) in &self.objects {
            hub.store(Kind::GitOpsClusters, object_ref, Some(object.clone()));
        }
        hub.versions = self.versions;
        hub
    }
}
