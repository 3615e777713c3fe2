//! The hub in tests of promises about GitOpsClusters: what is written is there, and is told as by a watch.

pub(super) mod ocm;

use super::gitopscluster::{AGENT_SECRETS, PROMISE as GITOPS, SECRETS};
use super::{Moment, Promise, Settings};
use crate::agent::{Images, Wanted, names};
use crate::cluster_secret::ClusterSecret;
use crate::cluster_secret::tests::agents::put;
use crate::controller::action::Write;
use crate::controller::index::tests::now;
use crate::controller::index::{Change, Index, Sort, Touched};
use crate::controller::seen::{Cluster, Decision, GitOpsCluster, Place, Placement, TlsSecret};
use crate::controller::watches::Kind;
use crate::report::tests::merge;
use k8s_openapi::jiff::Timestamp;
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

    /// Somebody writes the spec of a GitOpsCluster.
    pub(super) fn write(&mut self, place: &Place, spec: &Value) {
        let object = self.objects.entry(place.clone()).or_insert_with(
            || json!({"metadata": {"namespace": &*place.namespace, "uid": place.to_string(), "generation": 0}}),
        );
        object["spec"] = spec.clone();
        let generation = object["metadata"]["generation"].as_i64().expect("a number");
        object["metadata"]["generation"] = json!(generation + 1);
        self.written(place);
    }

    pub(super) fn delete(&mut self, place: &Place) {
        let object = self.objects.get_mut(place).expect("it is there");
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!("2026-06-01T12:00:00Z");
            // The API server raises the generation of an object that waits for its finalizers, as it does for a change of the spec.
            let generation = object["metadata"]["generation"].as_i64().expect("a number");
            object["metadata"]["generation"] = json!(generation + 1);
        }
        self.written(place);
    }

    pub(super) fn written(&mut self, place: &Place) {
        self.versions += 1;
        let object = self.objects.get_mut(place).expect("it is there");
        object["metadata"]["resourceVersion"] = json!(self.versions.to_string());
        let nothing_is_left = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        let is_gone = object["metadata"]["deletionTimestamp"].is_string() && nothing_is_left;
        let mut it = GitOpsCluster::read(&object.to_string()).expect("a GitOpsCluster");
        if let Some(agent) = self.agents.get(place) {
            it.spec.agent = Some(agent.clone());
            it.spec.registers = false;
        }
        if is_gone {
            self.objects.remove(place);
        }
        self.apply(Change::GitOpsCluster(place.clone(), (!is_gone).then(|| Box::new(it))));
    }

    /// The Secret of the authority is so.
    pub(super) fn authority(&mut self, secret: &Value) {
        let seen = TlsSecret::read(&secret.to_string()).expect("a Secret");
        self.authority = Some(secret.clone());
        self.apply(Change::Certificate(names::CA_SECRET.into(), Some(seen)));
    }

    /// A Secret is so, or is gone.
    pub(super) fn secret(&mut self, name: &str, secret: Option<Value>) {
        self.versions += 1;
        let version = json!(self.versions.to_string());
        let seen = secret.map(|mut secret| {
            secret["metadata"]["resourceVersion"] = version;
            let seen = ClusterSecret::read(&secret.to_string()).expect("a Secret");
            self.secrets.insert(name.to_owned(), secret);
            seen
        });
        if seen.is_none() {
            self.secrets.remove(name);
        }
        self.apply(Change::Secret(name.into(), seen));
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

    pub(super) fn carry_out(&mut self, write: Write) -> String {
        let write = match self.carry_out_further(write) {
            Ok(written) => return written,
            Err(write) => write,
        };
        match write {
            Write::Create { place, object, .. } => {
                assert!(!self.secrets.contains_key(&*place.name), "{place} is there");
                self.secret(&place.name, Some(object));
                format!("create {}", place.name)
            }
            Write::Make {
                mut write,
                recipe,
                into,
            } => {
                let authority = self.authority.as_ref().expect("an authority");
                let wanted = recipe.authority().expect("it is of the authority");
                assert_eq!(authority["metadata"]["resourceVersion"], *wanted.version);
                assert_eq!(into, "data");
                if let Write::Create { object: body, .. } | Write::Patch { body, .. } = &mut *write {
                    put(&recipe, authority, body);
                }
                format!("{} with a certificate", self.carry_out(*write))
            }
            Write::Delete { place, version, .. } => {
                let there = self.secrets.get(&*place.name).expect("it is there");
                assert_eq!(there["metadata"]["resourceVersion"], *version);
                self.secret(&place.name, None);
                format!("delete {}", place.name)
            }
            Write::Patch { resource, place, body } if resource.kind == "Secret" => {
                let mut there = self.secrets[&*place.name].clone();
                assert_eq!(
                    there["metadata"]["resourceVersion"],
                    body["metadata"]["resourceVersion"]
                );
                merge(&mut there, &body);
                self.secret(&place.name, Some(there));
                format!("patch {}", place.name)
            }
            Write::Patch { resource, place, body } => {
                let there = self.objects.get_mut(&place).expect("it is there");
                assert_eq!(
                    there["metadata"]["resourceVersion"],
                    body["metadata"]["resourceVersion"]
                );
                // The subresource accepts the status only; the main resource ignores it.
                let before = there.clone();
                let is_of_status = resource.part == Some("status");
                let part = |patch: &Value| {
                    let mut patch = patch.clone();
                    let fields = patch.as_object_mut().expect("a patch is a map");
                    fields.retain(|key, _| (key == "status") == is_of_status);
                    patch
                };
                merge(there, &part(&body));
                let finalizers = |it: &Value| it["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
                assert!(
                    there["metadata"]["deletionTimestamp"].is_null() || finalizers(there) <= finalizers(&before),
                    "the API server refuses new finalizers on {place}, which is being deleted"
                );
                // A write that changes nothing leaves the resource version, and no watch hears of it.
                if *there != before {
                    self.written(&place);
                }
                format!("{} {place}", resource.part.unwrap_or("finalizers"))
            }
        }
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
            hub.secret(name, Some(secret.clone()));
        }
        for (place, object) in &self.objects {
            hub.objects.insert(place.clone(), object.clone());
            hub.written(place);
        }
        hub
    }
}
