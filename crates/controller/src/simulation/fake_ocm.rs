//! A fake Open Cluster Management and argocd-agent for tests: creates add-ons on the clusters in the decisions of the Placements
//! of the ClusterManagementAddOn, deletes others at once, and applies works. It panics if the add-on is removed from a cluster
//! that was not given up for certain.

use super::Hub;
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use der::asn1::BitString;
use der::oid::db::rfc5912::ECDSA_WITH_SHA_256;
use der::pem::{LineEnding, encode_string};
use der::{Decode, Encode};
use hub_state::model::{Availability, GitOpsCluster, Kind};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use ocm::argocd_agent as names;
use pki::{NEXT_KEY, Recipe, TLS_CERTIFICATE, TLS_KEY};
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use runtime::action::Write;
use runtime::writer::read_authority;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{LazyLock, Mutex};
use x509_cert::attr::Attributes;
use x509_cert::request::{CertReq, CertReqInfo, Version};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

/// The fake OCM and its counters.
#[derive(Default)]
pub(crate) struct Ocm {
    /// The GitOpsClusters that installed the add-on on each cluster, according to the decisions.
    had: BTreeMap<String, BTreeSet<ObjectRef>>,
    /// The clusters from which the add-on was removed, in order.
    pub(crate) taken: Vec<String>,
    /// The number of restarts of the principal.
    pub(crate) restarts: usize,
    /// The number of CAs that were created because there was none.
    authorities: usize,
    /// The number of writes of each object since the last check.
    pub(crate) writes: BTreeMap<String, usize>,
    /// The clusters that apply no works at present.
    pub(crate) stuck: BTreeSet<String>,
}

/// The generated data, by the keys of a Secret.
type Generated = BTreeMap<&'static str, Option<Vec<u8>>>;

/// The generated data that takes long to compute, once for each time of generation.
static GENERATED: LazyLock<Mutex<HashMap<String, Generated>>> = LazyLock::new(Mutex::default);

/// The validity of a generated CA begins at a multiple of this time, so that few CAs are generated for many histories.
const CA_GRID: SignedDuration = SignedDuration::from_hours(10 * 24);

/// Returns a new CA, as [`pki::make`] generates it, at a time of the grid; `number` tells the CAs of a history apart.
fn authority_on_grid(validity: &Range<Timestamp>, number: usize) -> Generated {
    let Range {
        start: not_before,
        end: not_after,
    } = *validity;
    let early = not_before.as_second() % CA_GRID.as_secs() + i64::try_from(number).expect("a small number");
    let early = SignedDuration::from_secs(early);
    let (not_before, not_after) = (not_before - early, not_after - early);
    generate_once(&Recipe::Authority {
        common_name: pki::authority_name(not_before),
        validity: not_before..not_after,
    })
}

/// Returns the next CA beside the one in a Secret.
fn next_authority(validity: &Range<Timestamp>, secret: &Value) -> Generated {
    let mut made = authority_on_grid(validity, 0);
    let mut bundle = ByteString::deserialize(&secret["data"][TLS_CERTIFICATE])
        .expect("a CA")
        .0;
    bundle.extend(made.remove(TLS_CERTIFICATE).flatten().expect("a certificate"));
    let key = made.remove(TLS_KEY).expect("a key");
    [(TLS_CERTIFICATE, Some(bundle)), (NEXT_KEY, key)].into()
}

fn generate_once(recipe: &Recipe) -> Generated {
    let mut all = GENERATED.lock().expect("no test panics while it holds the lock");
    let made = all.entry(format!("{recipe:?}"));
    made.or_insert_with(|| pki::make(recipe, None).expect("it can be made"))
        .clone()
}

/// Returns the watched kind of an object.
pub(super) fn kind_of(resource: &Resource, object_ref: &ObjectRef) -> Kind {
    let name = &*object_ref.name;
    match resource.kind {
        "Secret" if names::CERTIFICATES.contains(&name) => Kind::Certificates,
        "Secret" if name == names::JWT_SECRET => Kind::TokenKey,
        "Secret" if names::cluster_of_issued(name).is_some() => Kind::IssuedCertificates,
        "Secret" => Kind::Secrets,
        "GitOpsCluster" => Kind::GitOpsClusters,
        "ConfigMap" if name == names::CA_BUNDLE => Kind::Bundle,
        "ConfigMap" if name == names::BLOCKLIST => Kind::Blocklist,
        "Deployment" => Kind::Deployments,
        "AddOnTemplate" => Kind::Templates,
        "ClusterManagementAddOn" => Kind::ManagementAddOn,
        "AddOnDeploymentConfig" => Kind::AddOnConfigs,
        "ManagedClusterAddOn" => Kind::AddOns,
        "Placement" => Kind::OwnPlacements,
        "PlacementDecision" => Kind::OwnDecisions,
        "ManifestWork" => Kind::AgentWorks,
        "CertificateSigningRequest" => Kind::Requests,
        other => panic!("unexpected write of {other} {object_ref}"),
    }
}

pub(crate) fn of_argocd(name: &str) -> ObjectRef {
    ObjectRef::new("argocd", name)
}

pub(crate) fn some() -> ObjectRef {
    of_argocd("some")
}

pub(crate) fn addon_of(cluster: &str) -> ObjectRef {
    ObjectRef::new(cluster, names::ADDON)
}

pub(crate) fn management() -> ObjectRef {
    ObjectRef::new("", names::ADDON)
}

impl Hub {
    /// Creates a hub with agents on the clusters of that Placement, completely reconciled.
    pub(crate) fn with_all_agents() -> Self {
        let mut hub = Self::new();
        hub.write(&super::all(), &bringing("some", &[]));
        hub.settle();
        hub
    }

    /// Deletes a managed cluster. OCM deletes the ManifestWorks in its namespace too.
    pub(crate) fn leave(&mut self, cluster: &str) {
        self.put(Kind::Clusters, &ObjectRef::new("", cluster), None);
        let kind = Kind::AgentWorks;
        let works = self
            .existing
            .keys()
            .filter(|(of, at)| *of == kind && *at.namespace == *cluster);
        for (_, object_ref) in works.cloned().collect::<Vec<_>>() {
            self.put(kind, &object_ref, None);
        }
        self.play();
    }

    /// Returns the clusters with the add-on.
    pub(crate) fn with_addon(&self) -> Vec<&str> {
        self.kept(Kind::AddOns)
            .into_iter()
            .map(|(object_ref, _)| &*object_ref.namespace)
            .collect()
    }

    /// Counts a write, and simulates the reaction of OCM.
    pub(super) fn count_write(&mut self, what: &str, resource: &Resource, object_ref: &ObjectRef) -> String {
        let text = format!("{what} {} {object_ref}", resource.kind);
        self.ocm.restarts += usize::from(resource.kind == "Deployment");
        *self.ocm.writes.entry(text.clone()).or_default() += 1;
        self.play();
        text
    }

    /// Adds the generated data to a write, like the writer.
    pub(super) fn make(&mut self, write: &mut Write, recipe: &Recipe) {
        let authorities = &mut self.ocm.authorities;
        let number = *authorities;
        *authorities += usize::from(matches!(recipe, Recipe::Authority { .. }));
        let secret = self.get(Kind::Certificates, &of_argocd(names::CA_SECRET));
        let made = match (recipe, recipe.authority(), secret) {
            // Generating a key takes long, and histories create their first CA at the same time.
            (Recipe::Authority { validity, .. }, ..) if number > 0 => authority_on_grid(validity, number),
            (_, None, _) => generate_once(recipe),
            (_, Some(authority), Some(secret)) => {
                assert_eq!(secret["metadata"]["resourceVersion"], *authority.version);
                if let Recipe::NextAuthority { validity, .. } = recipe {
                    next_authority(validity, secret)
                } else {
                    let authority = read_authority(&secret.to_string()).expect("an authority").1;
                    pki::make(recipe, Some(&authority)).expect("it can be made")
                }
            }
            (_, Some(_), None) => panic!("there is no authority"),
        };
        if let Some(body) = write.body_mut() {
            for (key, value) in made {
                body["data"][recipe.key(key)] = json!(value.map(ByteString));
            }
        }
    }

    /// Simulates the work of OCM.
    pub(crate) fn play(&mut self) {
        let desired = self.desired_addons();
        if let Some(desired) = &desired {
            for (cluster, configs) in desired {
                let object_ref = addon_of(cluster);
                let references: Vec<_> = configs
                    .iter()
                    .map(|name| json!({"resource": "addontemplates", "desiredConfig": {"name": name}}))
                    .collect();
                let status = json!({"configReferences": references});
                let existing = self.get(Kind::AddOns, &object_ref);
                let mut addon = existing.cloned().unwrap_or_else(|| json!({"metadata": {}, "spec": {}}));
                if existing.is_none() || addon["status"] != status {
                    addon["status"] = status;
                    self.put(Kind::AddOns, &object_ref, Some(addon));
                }
            }
            let gone: Vec<ObjectRef> = self
                .kept(Kind::AddOns)
                .into_iter()
                .map(|(object_ref, _)| object_ref.clone())
                .collect();
            for object_ref in gone
                .iter()
                .filter(|object_ref| !desired.contains_key(&*object_ref.namespace))
            {
                self.is_certain(&object_ref.namespace);
                self.put(Kind::AddOns, object_ref, None);
                self.ocm.taken.push(object_ref.namespace.to_string());
            }
        }
        self.note_who_has();
        self.apply_works();
    }

    /// Returns the clusters of the add-on with their templates; none if OCM leaves the installation to others.
    fn desired_addons(&self) -> Option<BTreeMap<String, Vec<String>>> {
        let mut desired: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let Some(management) = self.get(Kind::ManagementAddOn, &management()) else {
            return Some(desired);
        };
        let strategy = &management["spec"]["installStrategy"];
        if strategy["type"] != "Placements" {
            return None;
        }
        for entry in strategy["placements"].as_array().into_iter().flatten() {
            let text = |key: &str| entry[key].as_str().unwrap_or_default();
            let placement = ObjectRef::new(text("namespace"), text("name"));
            let ours = self.kept(Kind::OwnDecisions).into_iter().filter(|(at, decision)| {
                let label = &decision["metadata"]["labels"]["cluster.open-cluster-management.io/placement"];
                at.namespace == placement.namespace && *label == *placement.name
            });
            let ours = ours.flat_map(|(_, decision)| clusters_of(decision));
            let theirs = self.cache.selected_by(&placement).map(ToString::to_string);
            let configs = entry["configs"].as_array().into_iter().flatten();
            let templates = configs.filter(|config| config["resource"] == "addontemplates");
            let templates: Vec<_> = templates
                .filter_map(|config| Some(config["name"].as_str()?.to_owned()))
                .collect();
            for cluster in ours.chain(theirs) {
                if self.get(Kind::Clusters, &ObjectRef::new("", &cluster)).is_some() {
                    desired.insert(cluster, templates.clone());
                }
            }
        }
        Some(desired)
    }

    /// Panics if any GitOpsCluster may still request the add-on on a cluster.
    fn is_certain(&self, cluster: &str) {
        let existing = self.get(Kind::Clusters, &ObjectRef::new("", cluster));
        if existing.is_none_or(|existing| existing["metadata"]["deletionTimestamp"].is_string()) {
            return;
        }
        let none = BTreeSet::new();
        let had = self.ocm.had.get(cluster).unwrap_or(&none);
        for object_ref in had {
            let is_known =
                self.cache.gitops_cluster(object_ref).is_some() || self.cache.is_gitops_cluster_deleted(object_ref);
            assert!(is_known, "{cluster}: {object_ref} is not listed");
        }
        assert!(
            !had.is_empty(),
            "{cluster}: who has the add-on there has not given it up"
        );
        let is_available = self.cache.availability(cluster) == Availability::Available;
        for (object_ref, object) in &self.objects {
            let gitops_cluster = GitOpsCluster::from_json(&object.to_string()).expect("a GitOpsCluster");
            let has = had.contains(object_ref);
            let revoked = gitops_cluster
                .spec
                .agent
                .as_ref()
                .is_some_and(|agent| agent.revoked.contains(cluster));
            // A GitOpsCluster gets no clusters before it has the finalizer. One with invalid agent settings keeps its clusters
            // and gets no more.
            let may_take = has || !gitops_cluster.finalizers.is_empty() && gitops_cluster.spec.agent.is_some();
            if !may_take
                || gitops_cluster.deleting
                || revoked
                || gitops_cluster.spec.agent.is_none() && !gitops_cluster.spec.is_agent_invalid
            {
                continue;
            }
            let placement = gitops_cluster.placement(object_ref);
            let is_served = *object_ref.namespace == *"argocd" || self.cache.allows_other_namespaces();
            let decided: Vec<_> = self.cache.selected_by(&placement).collect();
            let is_decided = decided.iter().any(|name| ***name == *cluster);
            let says = self.get(Kind::Placements, &placement);
            let says = says.map(|placement| &placement["status"]["numberOfSelectedClusters"]);
            let is_sure = !decided.is_empty() && says.is_some_and(|says| *says == decided.len());
            let wants = if is_served && is_sure && is_available {
                is_decided
            } else {
                has
            };
            assert!(!wants, "{cluster}: {object_ref} has not given it up");
        }
    }

    fn note_who_has(&mut self) {
        let mut had: BTreeMap<String, BTreeSet<ObjectRef>> = BTreeMap::new();
        for (_, decision) in self.kept(Kind::OwnDecisions) {
            let owner = &decision["metadata"]["annotations"]["argocd-ocm-cmp.github.io/gitopscluster"];
            let owner = owner.as_str().and_then(|owner| owner.split_once('/'));
            let (namespace, name) = owner.expect("ours are of one");
            for cluster in clusters_of(decision) {
                had.entry(cluster).or_default().insert(ObjectRef::new(namespace, name));
            }
        }
        self.ocm.had = had;
    }

    fn apply_works(&mut self) {
        let stuck = &self.ocm.stuck;
        let works = self.kept(Kind::AgentWorks).into_iter().filter_map(|(object_ref, work)| {
            let condition =
                json!([{"type": "Applied", "status": "True", "observedGeneration": work["metadata"]["generation"]}]);
            let is_available = self.cache.availability(&object_ref.namespace) == Availability::Available && !stuck.contains(&*object_ref.namespace);
            (is_available && work["status"]["conditions"] != condition).then(|| (object_ref.clone(), condition))
        });
        for (object_ref, conditions) in works.collect::<Vec<_>>() {
            self.edit(
                Kind::AgentWorks,
                &object_ref,
                &json!({"status": {"conditions": conditions}}),
            );
        }
    }
}

fn clusters_of(decision: &Value) -> Vec<String> {
    let all = decision["status"]["decisions"].as_array().into_iter().flatten();
    all.filter_map(|entry| Some(entry["clusterName"].as_str()?.to_owned()))
        .collect()
}

/// Returns a spec in Red Hat ACM's dialect that installs agents on the clusters of a Placement.
pub(crate) fn bringing(placement: &str, revoked: &[&str]) -> Value {
    super::acm(&json!({
        "placementRef": {"name": placement},
        "gitopsAddon": {"enabled": true, "argoCDAgent": {"enabled": true}},
        "agent": {"revokedClusters": revoked},
    }))
}

/// Returns a CertificateSigningRequest of a user in a group, with the label of a cluster.
pub(crate) fn agent_request((user, group): (&str, &str), cluster: &str, subject: &str, is_approved: bool) -> Value {
    static TEXTS: LazyLock<Mutex<HashMap<String, Vec<u8>>>> = LazyLock::new(Mutex::default);
    let mut texts = TEXTS.lock().expect("no test panics while it holds the lock");
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

/// Returns a PEM certificate request with its own key. The `openssl` command cannot create one for names as long as those of
/// agents.
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
