//! What argocd-agent has on the hub, and Open Cluster Management with it: add-ons are where the decisions say that the
//! ClusterManagementAddOn names, and go at once where they do not; works are applied. It goes off where the add-on is taken from a
//! cluster that was not given up for certain.

use super::{AGENT_SECRETS, Hub, merge};
use crate::agent::names;
use crate::controller::action::Write;
use crate::controller::index::{Index, Sort};
use crate::controller::promises::argocd_agent::{ADDON, HUB, REQUESTS, WORKS};
use crate::controller::promises::{Moment, Promise};
use crate::controller::resources::Resource;
use crate::controller::seen::{GitOpsCluster, Place, Reach, TlsSecret};
use crate::controller::watches::{Kept, Kind};
use crate::pki::{self, Recipe};
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use der::asn1::BitString;
use der::oid::db::rfc5912::ECDSA_WITH_SHA_256;
use der::pem::{LineEnding, encode_string};
use der::{Decode, Encode};
use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex};
use x509_cert::attr::Attributes;
use x509_cert::request::{CertReq, CertReqInfo, Version};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

/// OCM, and what is counted.
#[derive(Default)]
pub(in crate::controller::promises) struct Ocm {
    /// By which GitOpsClusters clusters have had the add-on, by the decisions that were written.
    had: BTreeMap<String, BTreeSet<Place>>,
    /// The clusters that it was taken from, in this order.
    pub(in crate::controller::promises) taken: Vec<String>,
    /// How often the principal was started anew.
    pub(in crate::controller::promises) restarts: usize,
    /// How often an object was written since this was last looked at.
    pub(in crate::controller::promises) writes: BTreeMap<String, usize>,
    /// The clusters that apply no works for now.
    pub(in crate::controller::promises) stuck: BTreeSet<String>,
}

/// The promises about agents, besides their GitOpsClusters and Secrets.
static FURTHER: [&Promise; 5] = [&HUB, &ADDON, &WORKS, &REQUESTS, &AGENT_SECRETS];

/// What is made, by the keys of a Secret.
type Made = BTreeMap<&'static str, Option<Vec<u8>>>;

/// What takes long to make, once for each time at which it is made.
static MADE: LazyLock<Mutex<HashMap<String, Made>>> = LazyLock::new(Mutex::default);

fn made_once(recipe: &Recipe) -> Made {
    let mut all = MADE.lock().expect("nobody panics with it");
    let made = all.entry(format!("{recipe:?}"));
    made.or_insert_with(|| pki::make(recipe, None).expect("it can be made"))
        .clone()
}

/// What is watched of a kind of objects that this one is.
pub(super) fn kind_of(resource: &Resource, place: &Place) -> Kind {
    let name = &*place.name;
    Kind::Kept(match resource.kind {
        "Secret" if names::CERTIFICATES.contains(&name) => return Kind::Certificates,
        "Secret" if name == names::JWT_SECRET => Kept::TokenKey,
        "Secret" if names::cluster_of_issued(name).is_some() => Kept::Issued,
        "Secret" => return Kind::Secrets,
        "GitOpsCluster" => return Kind::GitOpsClusters,
        "ConfigMap" if name == names::CA_BUNDLE => Kept::Bundle,
        "ConfigMap" if name == names::BLOCKLIST => Kept::Blocklist,
        "Deployment" => Kept::Deployments,
        "AddOnTemplate" => Kept::Templates,
        "ClusterManagementAddOn" => Kept::Management,
        "AddOnDeploymentConfig" => Kept::AddOnConfigs,
        "ManagedClusterAddOn" => Kept::AddOns,
        "Placement" => Kept::Placements,
        "PlacementDecision" => Kept::Decisions,
        "ManifestWork" => Kept::Works,
        "CertificateSigningRequest" => Kept::Requests,
        other => panic!("nobody writes {other} {place}"),
    })
}

pub(in crate::controller::promises) fn of_argocd(name: &str) -> Place {
    Place::new("argocd", name)
}

pub(in crate::controller::promises) fn addon_of(cluster: &str) -> Place {
    Place::new(cluster, names::ADDON)
}

pub(in crate::controller::promises) fn management() -> Place {
    Place::new("", names::ADDON)
}

impl Hub {
    /// With the managed clusters eu1, eu2 and eu3, of which the Placement `some` selects the first two, the principal, and nothing
    /// else.
    pub(in crate::controller::promises) fn with_ocm() -> Self {
        let mut hub = Self::new();
        hub.index = Index::new("argocd");
        hub.touched.clear();
        hub.ocm = Some(Ocm::default());
        for cluster in ["eu1", "eu2", "eu3"] {
            hub.join(cluster, Reach::Heard);
        }
        hub.choose(&of_argocd("some"), &["eu1", "eu2"]);
        let principal = of_argocd(names::PRINCIPAL_DEPLOYMENTS[0]);
        let service = json!({"metadata": {}, "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "hub.example.com"}]}}});
        hub.put(Kind::Kept(Kept::Services), &principal, Some(service));
        let deployment = json!({"metadata": {}, "spec": {"template": {"metadata": {}}}});
        hub.put(Kind::Kept(Kept::Deployments), &principal, Some(deployment));
        hub
    }

    /// With agents on the clusters of that Placement, of which all is written.
    pub(in crate::controller::promises) fn with_all_agents() -> Self {
        let mut hub = Self::with_ocm();
        hub.write(&super::all(), &bringing("some", &[]));
        hub.settle();
        hub
    }

    /// What there is of a kind.
    pub(in crate::controller::promises) fn kept(&self, kind: Kept) -> Vec<(&Place, &Value)> {
        let all = self.there.iter();
        all.filter(|((other, _), _)| *other == Kind::Kept(kind))
            .map(|((_, place), it)| (place, it))
            .collect()
    }

    pub(in crate::controller::promises) fn get(&self, kind: Kind, place: &Place) -> Option<&Value> {
        self.there.get(&(kind, place.clone()))
    }

    /// Changes an object by a merge patch.
    pub(in crate::controller::promises) fn edit(&mut self, kind: Kind, place: &Place, patch: &Value) {
        let mut object = self.get(kind, place).expect("it is there").clone();
        merge(&mut object, patch);
        self.put(kind, place, Some(object));
    }

    /// A managed cluster is heard, or not.
    pub(in crate::controller::promises) fn join(&mut self, cluster: &str, reach: Reach) {
        let status = match reach {
            Reach::Heard => "True",
            Reach::Silent => "Unknown",
            Reach::Unwell => "False",
        };
        let condition = json!({"type": "ManagedClusterConditionAvailable", "status": status});
        let object = json!({"metadata": {"labels": {}}, "status": {"conditions": [condition]}});
        self.put(Kind::Clusters, &Place::new("", cluster), Some(object));
    }

    /// The decisions of a Placement of users' name these clusters, whatever it says.
    pub(in crate::controller::promises) fn decide_of(&mut self, placement: &Place, clusters: Option<&[&str]>) {
        let place = Place::new(&placement.namespace, &format!("{}-decision-1", placement.name));
        let decision = clusters.map(|clusters| {
            let all: Vec<_> = clusters.iter().map(|cluster| json!({"clusterName": cluster})).collect();
            let labels = json!({"cluster.open-cluster-management.io/placement": &*placement.name});
            json!({"metadata": {"labels": labels}, "status": {"decisions": all}})
        });
        self.put(Kind::Decisions, &place, decision);
    }

    /// A Placement of users' says that it selects so many, or is gone.
    pub(in crate::controller::promises) fn say_of(&mut self, placement: &Place, selected: Option<usize>) {
        let object = selected.map(|selected| json!({"metadata": {}, "status": {"numberOfSelectedClusters": selected}}));
        self.put(Kind::Placements, placement, object);
    }

    pub(in crate::controller::promises) fn choose(&mut self, placement: &Place, clusters: &[&str]) {
        self.decide_of(placement, Some(clusters));
        self.say_of(placement, Some(clusters.len()));
    }

    /// The clusters that have the add-on.
    pub(in crate::controller::promises) fn with_addon(&self) -> Vec<&str> {
        self.kept(Kept::AddOns)
            .into_iter()
            .map(|(place, _)| &*place.namespace)
            .collect()
    }

    /// The certificates that the authority's Secret has.
    pub(in crate::controller::promises) fn ca(&self) -> &TlsSecret {
        self.index.certificate(names::CA_SECRET).expect("it is there")
    }

    /// It is so late, and what is due is looked at.
    pub(in crate::controller::promises) fn pass_to(&mut self, now: Timestamp) -> Vec<String> {
        self.now = now;
        let due = self.waits.iter().filter(|(_, at)| **at <= now);
        let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
        for (promise, place) in due {
            self.waits.remove(&(promise, place.clone()));
            self.touched.push((FURTHER[promise].of, place));
        }
        self.settle()
    }

    /// Another controller begins with what there is on the hub.
    pub(in crate::controller::promises) fn start_anew(&mut self) -> Vec<String> {
        self.index = Index::new("argocd");
        self.waits.clear();
        self.touched.clear();
        for ((kind, place), object) in self.there.clone() {
            self.hear(kind, &place, Some(&object));
        }
        for (name, secret) in self.secrets.clone() {
            self.hear(Kind::Secrets, &of_argocd(&name), Some(&secret));
        }
        for (place, object) in self.objects.clone() {
            self.hear(Kind::GitOpsClusters, &place, Some(&object));
        }
        self.look_at_everything()
    }

    /// Looks at all there is, as it may be at any time.
    pub(in crate::controller::promises) fn look_at_everything(&mut self) -> Vec<String> {
        let mut all = vec![(Sort::ArgoCd, Place::new("", "argocd"))];
        all.extend(self.objects.keys().map(|place| (Sort::GitOpsCluster, place.clone())));
        for (kind, place) in self.there.keys() {
            match kind {
                Kind::Clusters => all.push((Sort::Cluster, place.clone())),
                Kind::Kept(Kept::Requests) => all.push((Sort::Request, place.clone())),
                _ => {}
            }
        }
        self.touched.extend(all);
        self.settle()
    }

    /// Looks at so many of what is touched.
    pub(in crate::controller::promises) fn settle_for(&mut self, looks: usize) {
        for _ in 0..looks {
            if let Some((sort, place)) = self.touched.pop() {
                self.look(sort, &place);
                self.look_further(sort, &place);
            }
        }
    }

    /// Looks at one object for the sake of its agents, and says what is written.
    pub(super) fn look_further(&mut self, sort: Sort, place: &Place) -> Vec<String> {
        let mut written = Vec::new();
        if self.ocm.is_none() {
            return written;
        }
        let settings = self.settings();
        let moment = Moment {
            now: self.now,
            stale: false,
            settings: &settings,
        };
        for (number, promise) in FURTHER.iter().enumerate().filter(|(_, promise)| promise.of == sort) {
            let Some(action) = (promise.desired)(&self.index, place, &moment) else {
                let key = (number, place.clone());
                match (promise.again)(&self.index, place, &moment) {
                    Some(at) => self.waits.insert(key, at),
                    None => self.waits.remove(&key),
                };
                continue;
            };
            self.events.extend(action.events.into_iter().map(|event| event.message));
            for write in action.writes {
                let text = self.carry_out(write);
                let [conflicts, is_taken] = ["conflict", "taken"].map(|it| text.starts_with(it));
                written.push(text);
                if conflicts {
                    // All is decided anew, and the rest is not written.
                    self.touched.push((sort, place.clone()));
                }
                if conflicts || is_taken {
                    break;
                }
            }
        }
        written
    }

    /// Counts a write, and has OCM do what it does then.
    pub(super) fn wrote(&mut self, what: &str, resource: &Resource, place: &Place) -> String {
        let text = format!("{what} {} {place}", resource.kind);
        let ocm = self.ocm.as_mut().expect("it plays");
        ocm.restarts += usize::from(resource.kind == "Deployment");
        *ocm.writes.entry(text.clone()).or_default() += 1;
        self.play();
        text
    }

    /// Puts what is made for a write into it, as the writer does.
    pub(super) fn make_of(&self, write: &mut Write, recipe: &Recipe, into: &'static str) {
        let secret = self.get(Kind::Certificates, &of_argocd(names::CA_SECRET));
        let made = match (recipe.authority(), secret) {
            (None, _) => made_once(recipe),
            (Some(authority), Some(secret)) => {
                assert_eq!(secret["metadata"]["resourceVersion"], *authority.version);
                let authority = TlsSecret::authority(&secret.to_string()).expect("an authority");
                pki::make(recipe, Some(&authority)).expect("it can be made")
            }
            (Some(_), None) => panic!("there is no authority"),
        };
        if let Write::Create { object: body, .. } | Write::Patch { body, .. } = write {
            for (key, value) in made {
                body[into][recipe.key(key)] = json!(value.map(ByteString));
            }
        }
    }

    /// What OCM does by now.
    pub(in crate::controller::promises) fn play(&mut self) {
        let wanted = self.wanted_of_ocm();
        if let Some(wanted) = &wanted {
            for (cluster, configs) in wanted {
                let place = addon_of(cluster);
                let references: Vec<_> = configs
                    .iter()
                    .map(|name| json!({"resource": "addontemplates", "desiredConfig": {"name": name}}))
                    .collect();
                let status = json!({"configReferences": references});
                let there = self.get(Kind::Kept(Kept::AddOns), &place);
                let mut addon = there.cloned().unwrap_or_else(|| json!({"metadata": {}, "spec": {}}));
                if there.is_none() || addon["status"] != status {
                    addon["status"] = status;
                    self.put(Kind::Kept(Kept::AddOns), &place, Some(addon));
                }
            }
            let gone: Vec<Place> = self
                .kept(Kept::AddOns)
                .into_iter()
                .map(|(place, _)| place.clone())
                .collect();
            for place in gone.iter().filter(|place| !wanted.contains_key(&*place.namespace)) {
                self.is_certain(&place.namespace);
                self.put(Kind::Kept(Kept::AddOns), place, None);
                let ocm = self.ocm.as_mut().expect("it plays");
                ocm.taken.push(place.namespace.to_string());
            }
        }
        self.note_who_has();
        self.apply_works();
    }

    /// The clusters that the add-on goes to, with the templates there; nothing where OCM leaves it to others.
    fn wanted_of_ocm(&self) -> Option<BTreeMap<String, Vec<String>>> {
        let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let Some(management) = self.get(Kind::Kept(Kept::Management), &management()) else {
            return Some(wanted);
        };
        let strategy = &management["spec"]["installStrategy"];
        if strategy["type"] != "Placements" {
            return None;
        }
        for entry in strategy["placements"].as_array().into_iter().flatten() {
            let text = |key: &str| entry[key].as_str().unwrap_or_default();
            let placement = Place::new(text("namespace"), text("name"));
            let ours = self.kept(Kept::Decisions).into_iter().filter(|(at, it)| {
                let label = &it["metadata"]["labels"]["cluster.open-cluster-management.io/placement"];
                at.namespace == placement.namespace && *label == *placement.name
            });
            let ours = ours.flat_map(|(_, it)| clusters_of(it));
            let theirs = self.index.decided(&placement).map(ToString::to_string);
            let configs = entry["configs"].as_array().into_iter().flatten();
            let templates = configs.filter(|config| config["resource"] == "addontemplates");
            let templates: Vec<_> = templates
                .filter_map(|config| Some(config["name"].as_str()?.to_owned()))
                .collect();
            for cluster in ours.chain(theirs) {
                if self.get(Kind::Clusters, &Place::new("", &cluster)).is_some() {
                    wanted.insert(cluster, templates.clone());
                }
            }
        }
        Some(wanted)
    }

    /// Goes off if any GitOpsCluster may want the add-on on a cluster.
    fn is_certain(&self, cluster: &str) {
        if self.get(Kind::Clusters, &Place::new("", cluster)).is_none() {
            return;
        }
        let nobody = BTreeSet::new();
        let had = self.ocm.as_ref().expect("it plays").had.get(cluster).unwrap_or(&nobody);
        for place in had {
            let is_known = self.index.gitops_cluster(place).is_some() || self.index.has_gitops_cluster_gone(place);
            assert!(is_known, "{cluster}: {place} is not listed");
        }
        assert!(
            !had.is_empty(),
            "{cluster}: who has the add-on there has not given it up"
        );
        let is_heard = self.index.reach(cluster) == Reach::Heard;
        for (place, object) in &self.objects {
            let it = GitOpsCluster::read(&object.to_string()).expect("a GitOpsCluster");
            let has = had.contains(place);
            let revoked = it
                .spec
                .agent
                .as_ref()
                .is_some_and(|agent| agent.revoked.contains(cluster));
            // It takes no cluster before it is noted that it has to be tidied up after.
            // One whose agent cannot be understood keeps what it has, and takes nothing.
            let may_take = has || !it.finalizers.is_empty() && it.spec.agent.is_some();
            if !may_take || it.deleting || revoked || it.spec.agent.is_none() && !it.spec.agent_is_unclear {
                continue;
            }
            let placement = it.placement(place);
            let is_served = *place.namespace == *"argocd" || self.index.is_open();
            let decided: Vec<_> = self.index.decided(&placement).collect();
            let is_decided = decided.iter().any(|it| ***it == *cluster);
            let says = self.get(Kind::Placements, &placement);
            let says = says.map(|it| &it["status"]["numberOfSelectedClusters"]);
            let is_sure = !decided.is_empty() && says.is_some_and(|says| *says == decided.len());
            let wants = if is_served && is_sure && is_heard {
                is_decided
            } else {
                has
            };
            assert!(!wants, "{cluster}: {place} has not given it up");
        }
    }

    fn note_who_has(&mut self) {
        let mut had: BTreeMap<String, BTreeSet<Place>> = BTreeMap::new();
        for (_, decision) in self.kept(Kept::Decisions) {
            let owner = &decision["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"];
            let owner = owner.as_str().and_then(|owner| owner.split_once('/'));
            let (namespace, name) = owner.expect("ours are of one");
            for cluster in clusters_of(decision) {
                had.entry(cluster).or_default().insert(Place::new(namespace, name));
            }
        }
        self.ocm.as_mut().expect("it plays").had = had;
    }

    fn apply_works(&mut self) {
        let stuck = &self.ocm.as_ref().expect("it plays").stuck;
        let works = self.kept(Kept::Works).into_iter().filter_map(|(place, work)| {
            let condition =
                json!([{"type": "Applied", "status": "True", "observedGeneration": work["metadata"]["generation"]}]);
            let is_heard = self.index.reach(&place.namespace) == Reach::Heard && !stuck.contains(&*place.namespace);
            (is_heard && work["status"]["conditions"] != condition).then(|| (place.clone(), condition))
        });
        for (place, conditions) in works.collect::<Vec<_>>() {
            self.edit(
                Kind::Kept(Kept::Works),
                &place,
                &json!({"status": {"conditions": conditions}}),
            );
        }
    }
}

fn clusters_of(decision: &Value) -> Vec<String> {
    let all = decision["status"]["decisions"].as_array().into_iter().flatten();
    all.filter_map(|it| Some(it["clusterName"].as_str()?.to_owned()))
        .collect()
}

/// What a GitOpsCluster of Red Hat ACM's dialect asks for that brings agents to the clusters of a Placement.
pub(in crate::controller::promises) fn bringing(placement: &str, revoked: &[&str]) -> Value {
    super::acm(&json!({
        "placementRef": {"name": placement},
        "gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true}},
        "agent": {"revokedClusters": revoked},
    }))
}

/// A request for a certificate by somebody of a group, with the label of a cluster.
pub(in crate::controller::promises) fn agent_request(
    (user, group): (&str, &str),
    cluster: &str,
    subject: &str,
    is_approved: bool,
) -> Value {
    static TEXTS: LazyLock<Mutex<HashMap<String, Vec<u8>>>> = LazyLock::new(Mutex::default);
    let mut texts = TEXTS.lock().expect("nobody panics with it");
    let text = texts.entry(subject.to_owned()).or_insert_with(|| request_of(subject));
    let conditions = if is_approved {
        json!([{"type": "Approved", "status": "True", "reason": "AutoApprovedByHubCSRApprovingController"}])
    } else {
        json!([])
    };
    json!({
        "metadata": {"labels": {"open-cluster-management.io/cluster-name": cluster}},
        "spec": {
            "signerName": names::SIGNER,
            "username": user,
            "groups": [group, "system:authenticated"],
            "request": ByteString(text.clone()),
        },
        "status": {"conditions": conditions},
    })
}

/// The text of a request with a key of its own. OpenSSL's command makes none for names as long as those of agents.
fn request_of(subject: &str) -> Vec<u8> {
    let parts: Vec<_> = subject.split('/').filter(|part| !part.is_empty()).rev().collect();
    if parts.is_empty() {
        return Vec::new();
    }
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).expect("a key");
    let public: PublicKeyX509Der<'_> = key.public_key().as_der().expect("a public key");
    let info = CertReqInfo {
        version: Version::V1,
        subject: parts.join(",").parse().expect("a name"),
        public_key: SubjectPublicKeyInfoOwned::from_der(public.as_ref()).expect("a public key"),
        attributes: Attributes::default(),
    };
    let text = info.to_der().expect("it can be written");
    let signature = key.sign(&SystemRandom::new(), &text).expect("it can be signed");
    let request = CertReq {
        info,
        algorithm: AlgorithmIdentifierOwned {
            oid: ECDSA_WITH_SHA_256,
            parameters: None,
        },
        signature: BitString::from_bytes(signature.as_ref()).expect("bits"),
    };
    let text = request.to_der().expect("it can be written");
    let text = encode_string("CERTIFICATE REQUEST", LineEnding::LF, &text);
    text.expect("it can be written").into_bytes()
}
