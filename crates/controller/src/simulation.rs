//! A simulated hub for tests of controllers of GitOpsClusters: writes are stored and reported as watch events. Writes are the
//! requests that the writer sends, answered by the rules of [`api_server`](crate::api_server).

pub(super) mod fake_ocm;

use super::gitopscluster::{AGENT_SECRETS, CONTROLLER as GITOPS, SECRETS};
use crate::api_server::{Answer, Call, answer, selects};
use crate::application_set_report::tests::merge;
use crate::argocd_agent::{DesiredAgent, Images};
use crate::cache::tests::now;
use crate::cache::{Cache, Change, ReconcileKind, ReconcileRequest};
use crate::cluster_secrets::tests::agents::put;
use crate::controllers::CONTROLLERS;
use crate::model::{Cluster, Decision, Placement, TlsSecret};
use crate::reconcile::mappers;
use crate::reconcile::{Context, Controller, Settings};
use crate::runtime::action::Write;
use crate::runtime::table::Update;
use crate::runtime::writer;
use crate::watches::Kind;
use http::Request;
use jiff::Timestamp;
use kube::core::params::{DeleteParams, PostParams};
use kube::core::request;
use ocm::argocd_agent as names;
use ocm::object_ref::ObjectRef;
use ocm::resources::GITOPS_CLUSTERS;
use pki::Recipe;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
    pub(super) versions: u64,
    /// The objects to reconcile.
    pub(super) affected: Vec<(ReconcileKind, ObjectRef)>,
    pub(super) events: Vec<String>,
    /// The fake OCM and its add-on agents, in tests with agents.
    pub(super) ocm: Option<fake_ocm::Ocm>,
    /// All objects except GitOpsClusters and cluster Secrets, in tests with agents.
    pub(super) there: BTreeMap<(Kind, ObjectRef), Value>,
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
            versions: 0,
            affected: Vec::new(),
            events: Vec::new(),
            ocm: None,
            there: BTreeMap::new(),
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

    pub(super) fn apply(&mut self, change: Change) -> Vec<ReconcileRequest> {
        let affected = self.cache.apply(change);
        self.affected
            .extend(affected.iter().map(|it| (it.sort, it.place.clone())));
        affected
    }

    pub(super) fn cluster(&mut self, name: &str, labels: &Value) {
        let text = json!({"metadata": {"uid": name, "labels": labels}}).to_string();
        let cluster = Cluster::read(&text).expect("a cluster");
        self.apply(Change::Cluster(Update::Set(name.into(), cluster)));
    }

    pub(super) fn decide(&mut self, name: &str, clusters: Option<&[&str]>) {
        let decision = clusters.map(|clusters| Decision {
            placement: "some".into(),
            clusters: clusters.iter().map(|cluster| Arc::from(*cluster)).collect(),
        });
        self.apply(Change::Decision(Update::of(ObjectRef::new("argocd", name), decision)));
    }

    pub(super) fn says(&mut self, selected: Option<usize>) {
        let placement = Some(Placement { selected });
        self.apply(Change::Placement(Update::of(
            ObjectRef::new("argocd", "some"),
            placement,
        )));
    }

    pub(super) fn select(&mut self, clusters: &[&str]) {
        self.decide("some-decision-1", Some(clusters));
        self.says(Some(clusters.len()));
    }

    /// Returns a stored object.
    fn stored(&self, kind: Kind, place: &ObjectRef) -> Option<&Value> {
        match kind {
            Kind::GitOpsClusters => self.objects.get(place),
            Kind::Secrets => self.secrets.get(&*place.name),
            _ => self.there.get(&(kind, place.clone())),
        }
    }

    /// Stores or removes an object.
    fn store(&mut self, kind: Kind, place: &ObjectRef, object: Option<Value>) {
        self.hear(kind, place, object.as_ref());
        match (kind, object) {
            (Kind::GitOpsClusters, Some(object)) => self.objects.insert(place.clone(), object),
            (Kind::GitOpsClusters, None) => self.objects.remove(place),
            (Kind::Secrets, Some(object)) => self.secrets.insert(place.name.to_string(), object),
            (Kind::Secrets, None) => self.secrets.remove(&*place.name),
            (_, Some(object)) => self.there.insert((kind, place.clone()), object),
            (_, None) => self.there.remove(&(kind, place.clone())),
        };
    }

    /// Reports an object to the cache as a watch event: that it changed, was deleted, or does not match the selectors of the
    /// watch.
    fn hear(&mut self, kind: Kind, place: &ObjectRef, object: Option<&Value>) {
        let which = kind.which(self.argocd);
        let [labels, fields] = [&which.label_selector, &which.field_selector];
        let is_watched =
            |object: &&Value| selects(labels.as_deref().unwrap_or(""), fields.as_deref().unwrap_or(""), object);
        let text = object.filter(is_watched).map(Value::to_string);
        let change = kind.change(Update::of(place.clone(), text.as_deref()), self.now);
        let mut change = change.expect("it can be read");
        if let Change::GitOpsCluster(Update::Set(place, it)) = &mut change
            && let Some(agent) = self.agents.get(place)
        {
            it.spec.agent = Some(agent.clone());
            it.spec.registers = false;
        }
        self.apply(change);
    }

    /// Sends a request to the API server, and reports the result as a watch event.
    fn send(&mut self, kind: Kind, place: &ObjectRef, request: &Request<Vec<u8>>) -> Value {
        let before = self.stored(kind, place);
        let Answer { body, stored, .. } = answer(&Call::read(request), before, self.versions + 1);
        if stored.as_ref() != before {
            self.versions += 1;
            self.store(kind, place, stored);
        }
        body
    }

    /// Writes the spec of a GitOpsCluster as a user.
    pub(super) fn write(&mut self, place: &ObjectRef, spec: &Value) {
        let requests = request::Request::new(GITOPS_CLUSTERS.path(place));
        let mut object = json!({"metadata": {"name": &*place.name}});
        let is_there = self.objects.get(place).map(|there| object.clone_from(there)).is_some();
        object["spec"] = spec.clone();
        let (text, params) = (object.to_string().into_bytes(), PostParams::default());
        let request = if is_there {
            requests.replace(&place.name, &params, text)
        } else {
            requests.create(&params, text)
        };
        let before = self.versions;
        self.accepts(place, request);
        if self.versions == before {
            // A test may have changed the agent settings.
            let object = self.objects[place].clone();
            self.hear(Kind::GitOpsClusters, place, Some(&object));
        }
    }

    /// Deletes a GitOpsCluster as a user.
    pub(super) fn delete(&mut self, place: &ObjectRef) {
        let requests = request::Request::new(GITOPS_CLUSTERS.path(place));
        self.accepts(place, requests.delete(&place.name, &DeleteParams::default()));
    }

    fn accepts(&mut self, place: &ObjectRef, request: Result<Request<Vec<u8>>, request::Error>) {
        let answered = self.send(Kind::GitOpsClusters, place, &request.expect("a request"));
        assert_ne!(answered["status"], "Failure", "{place}: {answered}");
    }

    /// Reports a GitOpsCluster as a test has changed it, without access control.
    pub(super) fn written(&mut self, place: &ObjectRef) {
        self.versions += 1;
        let mut object = self.objects[place].clone();
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.versions.to_string());
        let nothing_is_left = metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
        let is_gone = metadata["deletionTimestamp"].is_string() && nothing_is_left;
        self.store(Kind::GitOpsClusters, place, (!is_gone).then_some(object));
    }

    /// Sets the Secret of the CA.
    pub(super) fn authority(&mut self, secret: &Value) {
        let seen = TlsSecret::read(&secret.to_string()).expect("a Secret");
        self.authority = Some(secret.clone());
        self.apply(Change::Certificate(Update::Set(names::CA_SECRET.into(), seen)));
    }

    /// Sets or removes a Secret.
    pub(super) fn secret(&mut self, name: &str, secret: Option<Value>) {
        self.put(Kind::Secrets, &ObjectRef::new("argocd", name), secret);
    }

    /// Sets or removes an object, without access control.
    pub(super) fn put(&mut self, kind: Kind, place: &ObjectRef, object: Option<Value>) {
        self.versions += 1;
        let version = self.versions.to_string();
        let before = self.stored(kind, place);
        let generation = before.map(|before| (before["metadata"]["generation"].as_i64(), before["spec"].clone()));
        let object = object.map(|mut object| {
            let generation = generation.map_or(1, |(generation, spec)| {
                generation.unwrap_or_default() + i64::from(spec != object["spec"])
            });
            let metadata = &mut object["metadata"];
            if metadata["uid"].is_null() {
                metadata["uid"] = json!(format!("uid-{version}"));
            }
            metadata["name"] = json!(&*place.name);
            metadata["namespace"] = json!(&*place.namespace);
            metadata["resourceVersion"] = json!(version);
            metadata["generation"] = json!(generation);
            object
        });
        self.store(kind, place, object);
    }

    /// Reconciles until nothing is queued, and returns the writes.
    pub(super) fn settle(&mut self) -> Vec<String> {
        let mut written = Vec::new();
        for _ in 0..5_000 {
            let Some((sort, place)) = self.affected.pop() else {
                return written;
            };
            written.extend(self.look(sort, &place));
            written.extend(self.look_further(sort, &place));
        }
        panic!("it goes on and on: {written:?}");
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            argocd: self.argocd.to_owned(),
            agents: true,
            images: Images {
                ours: Some("ours:1".into()),
                ..Images::shipped()
            },
            ..Settings::default()
        }
    }

    /// Reconciles one object, and returns the write.
    pub(super) fn look(&mut self, sort: ReconcileKind, place: &ObjectRef) -> Option<String> {
        let settings = self.settings();
        let context = Context {
            now: self.now,
            stale: false,
            settings: &settings,
        };
        let action = match sort {
            ReconcileKind::GitOpsCluster => (GITOPS.reconcile)(&self.cache, place, &context),
            ReconcileKind::Cluster => {
                let of_one = |controller: &Controller| (controller.reconcile)(&self.cache, place, &context);
                of_one(&SECRETS).or_else(|| of_one(&AGENT_SECRETS))
            }
            _ => None,
        }?;
        self.events.extend(action.events.into_iter().map(|event| event.message));
        let written: Vec<_> = action.writes.into_iter().map(|write| self.carry_out(write)).collect();
        assert!(!written.is_empty(), "an action without a write");
        Some(written.join(", "))
    }

    /// Carries out a write like the writer, and returns the result.
    pub(super) fn carry_out(&mut self, write: Write) -> String {
        let write = match write {
            Write::Make { write, recipe, into } => return self.make(*write, &recipe, into),
            write => write,
        };
        let (resource, place) = writer::object_of(&write);
        let kind = fake_ocm::kind_of(resource, place);
        let before = self.stored(kind, place).cloned().unwrap_or_default();
        let verb = match &write {
            Write::Create { .. } => "create",
            Write::Patch { body, .. } => {
                assert_eq!(body.get("status").is_some(), resource.part.is_some(), "{place}: {body}");
                resource.part.unwrap_or("patch")
            }
            _ => {
                let labels = &before["metadata"]["labels"];
                assert_eq!(labels["app.kubernetes.io/managed-by"], "argocd-ocm-cmp", "{place}");
                "delete"
            }
        };
        let request = writer::request(&write).expect("all of it is made").expect("a request");
        let answered = self.send(kind, place, &request);
        match answered["reason"].as_str() {
            Some("Conflict") => return format!("conflict {place}"),
            // The writer records an Event about the name conflict, and retries later.
            Some("AlreadyExists") => return format!("taken {place}"),
            _ => {}
        }
        assert!(answered["status"] != "Failure", "{verb} {place}: {answered}");
        let is_unchanged = answered["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"];
        match kind {
            Kind::GitOpsClusters if verb == "patch" => format!("finalizers {place}"),
            Kind::GitOpsClusters => format!("{verb} {place}"),
            _ if is_unchanged => panic!("a write that changes nothing: {write:?}"),
            Kind::Secrets => format!("{verb} {}", place.name),
            _ => self.wrote(verb, resource, place),
        }
    }

    /// Carries out a write with generated data, like the writer.
    fn make(&mut self, mut write: Write, recipe: &Recipe, into: &'static str) -> String {
        if self.ocm.is_some() {
            self.make_of(&mut write, recipe, into);
            return format!("{} with what is made", self.carry_out(write));
        }
        let authority = self.authority.as_ref().expect("an authority");
        let wanted = recipe.authority().expect("it is of the authority");
        assert_eq!(authority["metadata"]["resourceVersion"], *wanted.version);
        assert_eq!(into, "data");
        if let Write::Create { object: body, .. } | Write::Patch { body, .. } = &mut write {
            put(recipe, authority, body);
        }
        format!("{} with a certificate", self.carry_out(write))
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
    pub(super) fn says_of(&self, place: &ObjectRef, kind: &str) -> [&str; 3] {
        let conditions = self.objects[place]["status"]["conditions"].as_array();
        let found = conditions.into_iter().flatten().find(|it| it["type"] == kind);
        ["status", "reason", "message"].map(|key| found.and_then(|it| it[key].as_str()).unwrap_or_default())
    }

    pub(super) fn is(&self, kind: &str) -> [&str; 2] {
        let [status, reason, _] = self.says_of(&all(), kind);
        [status, reason]
    }

    /// Returns the same hub after a restart of the controller.
    pub(super) fn restarted(&self) -> Self {
        let mut hub = Self::new();
        hub.affected.clear();
        let named: BTreeSet<_> = self
            .cache
            .decided(&ObjectRef::new("argocd", "some"))
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
        for (place, object) in &self.objects {
            hub.store(Kind::GitOpsClusters, place, Some(object.clone()));
        }
        hub.versions = self.versions;
        hub
    }
}
