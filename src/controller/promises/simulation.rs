//! The hub in tests of promises about GitOpsClusters: what is written is there, and is told as by a watch. Writes are the requests that
//! the writer sends, and are answered by the rules of [`api_server`](crate::controller::api_server).

pub(super) mod ocm;

use super::gitopscluster::{AGENT_SECRETS, PROMISE as GITOPS, SECRETS};
use super::{Moment, Promise, Settings};
use crate::agent::{Images, Wanted, names};
use crate::cluster_secret::tests::agents::put;
use crate::controller::action::Write;
use crate::controller::api_server::{Answer, Call, answer, selects};
use crate::controller::index::tests::now;
use crate::controller::index::{Change, Index, Sort, Touched};
use crate::controller::resources::GITOPS_CLUSTERS;
use crate::controller::seen::{Cluster, Decision, Place, Placement, TlsSecret};
use crate::controller::watches::Kind;
use crate::controller::writer;
use crate::pki::Recipe;
use crate::report::tests::merge;
use http::Request;
use k8s_openapi::jiff::Timestamp;
use kube::core::params::{DeleteParams, PostParams};
use kube::core::request;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The hub, and the JSON of what is written.
pub(super) struct Hub {
    pub(super) index: Index,
    pub(super) argocd: &'static str,
    pub(super) objects: BTreeMap<Place, Value>,
    pub(super) secrets: BTreeMap<String, Value>,
    /// Where it is argocd-agent that a GitOpsCluster asks for.
    pub(super) agents: BTreeMap<Place, Wanted>,
    /// The Secret of the authority of its certificates.
    pub(super) authority: Option<Value>,
    pub(super) now: Timestamp,
    pub(super) versions: u64,
    /// What is to be looked at.
    pub(super) touched: Vec<(Sort, Place)>,
    pub(super) events: Vec<String>,
    /// What OCM does, where agents are brought, and the parts of theirs.
    pub(super) ocm: Option<ocm::Ocm>,
    /// All but GitOpsClusters and cluster Secrets, where agents are brought.
    pub(super) there: BTreeMap<(Kind, Place), Value>,
    /// What is looked at again though nothing happens.
    waits: BTreeMap<(usize, Place), Timestamp>,
}

pub(super) fn all() -> Place {
    Place::new("argocd", "all")
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
    /// With the managed clusters eu1, eu2 and eu3, of which a Placement selects the first two, and nothing else.
    pub(super) fn new() -> Self {
        let mut hub = Self {
            index: Index::new("argocd"),
            argocd: "argocd",
            objects: BTreeMap::new(),
            secrets: BTreeMap::new(),
            agents: BTreeMap::new(),
            authority: None,
            now: now(),
            versions: 0,
            touched: Vec::new(),
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

    /// With a GitOpsCluster of that Placement, of which all is written.
    pub(super) fn with_all() -> Self {
        let mut hub = Self::new();
        hub.write(&all(), &acm(&json!({})));
        hub.settle();
        hub
    }

    pub(super) fn apply(&mut self, change: Change) -> Vec<Touched> {
        let touched = self.index.apply(change);
        self.touched
            .extend(touched.iter().map(|it| (it.sort, it.place.clone())));
        touched
    }

    pub(super) fn cluster(&mut self, name: &str, labels: &Value) {
        let text = json!({"metadata": {"uid": name, "labels": labels}}).to_string();
        let cluster = Cluster::read(&text).expect("a cluster");
        self.apply(Change::Cluster(name.into(), Some(cluster)));
    }

    pub(super) fn decide(&mut self, name: &str, clusters: Option<&[&str]>) {
        let decision = clusters.map(|clusters| Decision {
            placement: "some".into(),
            clusters: clusters.iter().map(|cluster| Arc::from(*cluster)).collect(),
        });
        self.apply(Change::Decision(Place::new("argocd", name), decision));
    }

    pub(super) fn says(&mut self, selected: Option<usize>) {
        let placement = Some(Placement { selected });
        self.apply(Change::Placement(Place::new("argocd", "some"), placement));
    }

    pub(super) fn select(&mut self, clusters: &[&str]) {
        self.decide("some-decision-1", Some(clusters));
        self.says(Some(clusters.len()));
    }

    /// The object that is there.
    fn stored(&self, kind: Kind, place: &Place) -> Option<&Value> {
        match kind {
            Kind::GitOpsClusters => self.objects.get(place),
            Kind::Secrets => self.secrets.get(&*place.name),
            _ => self.there.get(&(kind, place.clone())),
        }
    }

    /// The object is so from now on, or is gone.
    fn store(&mut self, kind: Kind, place: &Place, object: Option<Value>) {
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

    /// A watch tells that an object is so, or is gone, or that it is not one of those that are watched.
    fn hear(&mut self, kind: Kind, place: &Place, object: Option<&Value>) {
        let which = kind.which(self.argocd);
        let [labels, fields] = [&which.label_selector, &which.field_selector];
        let is_watched =
            |object: &&Value| selects(labels.as_deref().unwrap_or(""), fields.as_deref().unwrap_or(""), object);
        let text = object.filter(is_watched).map(Value::to_string);
        let change = kind.change(place.clone(), text.as_deref(), self.now);
        let mut change = change.expect("it can be read");
        if let Change::GitOpsCluster(place, Some(it)) = &mut change
            && let Some(agent) = self.agents.get(place)
        {
            it.spec.agent = Some(agent.clone());
            it.spec.registers = false;
        }
        self.apply(change);
    }

    /// Sends a request to the API server, and has the watch tell what comes of it.
    fn send(&mut self, kind: Kind, place: &Place, request: &Request<Vec<u8>>) -> Value {
        let before = self.stored(kind, place);
        let Answer { body, stored, .. } = answer(&Call::read(request), before, self.versions + 1);
        if stored.as_ref() != before {
            self.versions += 1;
            self.store(kind, place, stored);
        }
        body
    }

    /// Somebody writes the spec of a GitOpsCluster.
    pub(super) fn write(&mut self, place: &Place, spec: &Value) {
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
            // A test may have changed which agents it asks for.
            let object = self.objects[place].clone();
            self.hear(Kind::GitOpsClusters, place, Some(&object));
        }
    }

    /// Somebody deletes a GitOpsCluster.
    pub(super) fn delete(&mut self, place: &Place) {
        let requests = request::Request::new(GITOPS_CLUSTERS.path(place));
        self.accepts(place, requests.delete(&place.name, &DeleteParams::default()));
    }

    fn accepts(&mut self, place: &Place, request: Result<Request<Vec<u8>>, request::Error>) {
        let answered = self.send(Kind::GitOpsClusters, place, &request.expect("a request"));
        assert_ne!(answered["status"], "Failure", "{place}: {answered}");
    }

    /// A GitOpsCluster is as a test has made it, whoever may write all that.
    pub(super) fn written(&mut self, place: &Place) {
        self.versions += 1;
        let mut object = self.objects[place].clone();
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.versions.to_string());
        let nothing_is_left = metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
        let is_gone = metadata["deletionTimestamp"].is_string() && nothing_is_left;
        self.store(Kind::GitOpsClusters, place, (!is_gone).then_some(object));
    }

    /// The Secret of the authority is so.
    pub(super) fn authority(&mut self, secret: &Value) {
        let seen = TlsSecret::read(&secret.to_string()).expect("a Secret");
        self.authority = Some(secret.clone());
        self.apply(Change::Certificate(names::CA_SECRET.into(), Some(seen)));
    }

    /// A Secret is so, or is gone.
    pub(super) fn secret(&mut self, name: &str, secret: Option<Value>) {
        self.put(Kind::Secrets, &Place::new("argocd", name), secret);
    }

    /// An object is so, or is gone, whoever may write all of it.
    pub(super) fn put(&mut self, kind: Kind, place: &Place, object: Option<Value>) {
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

    /// Looks at what is touched until nothing is, and says what is written.
    pub(super) fn settle(&mut self) -> Vec<String> {
        let mut written = Vec::new();
        for _ in 0..5_000 {
            let Some((sort, place)) = self.touched.pop() else {
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

    /// Looks at one object, and says what is written.
    pub(super) fn look(&mut self, sort: Sort, place: &Place) -> Option<String> {
        let settings = self.settings();
        let moment = Moment {
            now: self.now,
            stale: false,
            settings: &settings,
        };
        let action = match sort {
            Sort::GitOpsCluster => (GITOPS.desired)(&self.index, place, &moment),
            Sort::Cluster => {
                let of_one = |promise: &Promise| (promise.desired)(&self.index, place, &moment);
                of_one(&SECRETS).or_else(|| of_one(&AGENT_SECRETS))
            }
            _ => None,
        }?;
        self.events.extend(action.events.into_iter().map(|event| event.message));
        let written: Vec<_> = action.writes.into_iter().map(|write| self.carry_out(write)).collect();
        assert!(!written.is_empty(), "an action without a write");
        Some(written.join(", "))
    }

    /// Carries out a write as the writer does, and says what becomes of it.
    pub(super) fn carry_out(&mut self, write: Write) -> String {
        let write = match write {
            Write::Make { write, recipe, into } => return self.make(*write, &recipe, into),
            write => write,
        };
        let (resource, place) = writer::object_of(&write);
        let kind = ocm::kind_of(resource, place);
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
            // The writer tells that something else has the name, and tries again later.
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

    /// Carries out a write with what is made for it, as the writer does.
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

    /// The clusters that have a Secret of a GitOpsCluster.
    pub(super) fn registered(&self) -> Vec<&str> {
        let names = self.secrets.keys();
        names
            .filter_map(|name| name.strip_suffix("-application-manager-cluster-secret"))
            .collect()
    }

    pub(super) fn owner(&self, cluster: &str) -> &Value {
        &self.secrets[&secret_name(cluster)]["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"]
    }

    /// The status of a condition, its reason and its message.
    pub(super) fn says_of(&self, place: &Place, kind: &str) -> [&str; 3] {
        let conditions = self.objects[place]["status"]["conditions"].as_array();
        let found = conditions.into_iter().flatten().find(|it| it["type"] == kind);
        ["status", "reason", "message"].map(|key| found.and_then(|it| it[key].as_str()).unwrap_or_default())
    }

    pub(super) fn is(&self, kind: &str) -> [&str; 2] {
        let [status, reason, _] = self.says_of(&all(), kind);
        [status, reason]
    }

    /// The same hub after a restart of the controller.
    pub(super) fn restarted(&self) -> Self {
        let mut hub = Self::new();
        hub.touched.clear();
        let named: BTreeSet<_> = self
            .index
            .decided(&Place::new("argocd", "some"))
            .map(|it| &**it)
            .collect();
        hub.select(&named.into_iter().collect::<Vec<_>>());
        hub.agents.clone_from(&self.agents);
        if let Some(authority) = &self.authority {
            hub.authority(authority);
        }
        for (name, secret) in &self.secrets {
            hub.store(Kind::Secrets, &Place::new("argocd", name), Some(secret.clone()));
        }
        for (place, object) in &self.objects {
            hub.store(Kind::GitOpsClusters, place, Some(object.clone()));
        }
        hub.versions = self.versions;
        hub
    }
}
