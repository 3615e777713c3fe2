//! Decides what to write for a cluster, and which conflict to report.

use hub_state::annotations::{OWNER, SKIP_RECONCILE};
use hub_state::cluster_secret::{
    CLUSTER, CONFIG, COPIED, ClusterSecret, IDENTITY_LABELS, NAME, PLACEMENT_NAME, PLAIN, SECRET_TYPE, SERVER,
    SecretManager, WRITTEN_BY,
};
use hub_state::{Labels, TlsSecret};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use ocm::argocd_agent as names;
use ocm::names::LABEL_MAX;
use ocm::resources::SECRETS;
use ocm::work::{MANAGED_BY, OURS};
use pki::{Authority, Certificate, Recipe};
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use runtime::action::Write;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Argo CD's name for the hub, unless a Secret gives it another name.
const IN_CLUSTER: &str = "in-cluster";

/// The value of [`WRITTEN_BY`] on Secrets of clusters with an agent.
const AGENTS: &str = "argocd-agent";

/// The lifetime of a client certificate for argocd-agent's resource proxy, the same as in argocd-pull-integration.
const CERTIFICATE_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A managed cluster that needs a cluster Secret.
#[derive(Clone, Copy, Debug)]
pub struct RegisteredCluster<'c> {
    pub name: &'c str,
    pub labels: &'c Labels,
    /// The Placement that selects the cluster, if the Secret names it as argocd-pull-integration does.
    pub placement: Option<&'c str>,
    pub argocd: &'c str,
    /// The label with which Argo CD may track applied objects. It is not copied: Argo CD would consider the Secret removed from
    /// Git and delete it.
    pub tracking_label: &'c str,
    pub manager: SecretManager<'c>,
    /// The GitOpsCluster that registers the cluster, as `NAMESPACE/NAME`.
    pub owner: Option<&'c str>,
    /// The former owner, which no longer keeps the Secret.
    pub before: Option<&'c str>,
    /// The CA with which the principal verifies its agents. It issues the client certificate with which Argo CD authenticates to the
    /// resource proxy of a cluster with argocd-agent; and the current time. While it cannot sign, nothing is written for such a
    /// cluster.
    pub ca: Option<(&'c TlsSecret, Timestamp)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecretUpdate {
    /// The write to perform, if any. A new certificate goes into the `data` of the Secret.
    pub write: Option<Write>,
    /// The conflict that a user must resolve.
    pub conflict: Option<String>,
}

/// Decides on the Secret of a cluster; `secrets` are those that [concern](ClusterSecret::concerns) it, with their names.
pub fn decide<'s>(
    cluster: &RegisteredCluster<'_>,
    secrets: impl Iterator<Item = (&'s str, &'s ClusterSecret)>,
) -> SecretUpdate {
    let (argocd, manager) = (cluster.argocd, cluster.manager);
    let own_name = cluster.secret_name();
    let (mut own_secret, mut taken, mut others) = (None, false, Vec::new());
    let mut is_in_the_way = false;
    for (name, secret) in secrets {
        let is_its_own = name == own_name;
        let is_managed = || secret.is_managed_by(manager, [cluster.owner, cluster.before], cluster.name);
        if is_its_own && (is_managed() || secret.is_from_peer_integration(cluster.name, manager)) {
            own_secret = Some(secret);
        } else if *secret.cluster() == *cluster.name || manager.is_server_of(secret.server(), cluster.name) {
            is_in_the_way |= is_its_own && manager.has_agent();
            others.push(format!("{argocd}/{name}"));
        } else {
            taken |= is_its_own;
        }
    }
    others.sort_unstable();
    let others = others.join(" and ");
    match own_secret {
        Some(secret) => SecretUpdate {
            conflict: (!others.is_empty()).then(|| {
                format!(
                    "Argo CD knows this cluster by Secret {others} as well as by {argocd}/{own_name}: delete all but \
                     one; until then, ApplicationSets and destinations that name the cluster fail"
                )
            }),
            ..cluster.desired_write(Some(secret))
        },
        None if !others.is_empty() => {
            let way_out = if is_in_the_way {
                format!(": delete it, or hand {argocd}/{own_name} over by the label {MANAGED_BY}={OURS}")
            } else {
                String::new()
            };
            SecretUpdate::conflict(format!(
                "Argo CD knows this cluster by Secret {others}, which stays unchanged, so the controller creates no \
                 other{way_out}"
            ))
        }
        None if taken => SecretUpdate::conflict(format!(
            "Secret {argocd}/{own_name} is not managed by the controller and stays unchanged, so Argo CD does not know \
             this cluster: delete it, or hand it over by the label {MANAGED_BY}={OURS}"
        )),
        None if cluster.name == IN_CLUSTER => SecretUpdate::conflict(format!(
            "Argo CD uses the name {IN_CLUSTER} for the hub: register this cluster with OCM under another name to get \
             a cluster Secret"
        )),
        None => cluster.desired_write(None),
    }
}

/// Returns the write that deletes a cluster Secret of this name, unless the other object exists.
pub fn deletion(
    argocd: &str,
    name: &str,
    secret: &ClusterSecret,
    unless_exists: Option<(&'static Resource, ObjectRef)>,
) -> Write {
    let version = (&*secret.uid, &*secret.version);
    Write::delete(&SECRETS, ObjectRef::new(argocd, name), version).unless_exists(unless_exists)
}

impl SecretUpdate {
    /// Returns the decision to write nothing, for a reason that a user must resolve.
    pub fn conflict(what: String) -> Self {
        Self {
            conflict: Some(what),
            ..Self::default()
        }
    }
}

impl<'c> RegisteredCluster<'c> {
    /// Returns the decision to create the Secret, or to patch the given one.
    fn desired_write(&self, secret: Option<&ClusterSecret>) -> SecretUpdate {
        let mut recipe = None;
        if self.manager.has_agent() {
            let Some((ca, now)) = self.ca.filter(|(ca, now)| can_sign(ca, *now)) else {
                return SecretUpdate::default();
            };
            recipe = (!secret.is_some_and(|secret| self.has_certificate(secret, ca, now))).then(|| Recipe::Client {
                common_name: self.name.to_owned(),
                validity: pki::validity(now, CERTIFICATE_LIFETIME),
                authority: Authority {
                    object_ref: ObjectRef::new(self.argocd, names::CA_SECRET),
                    version: ca.version.clone(),
                },
            });
        }
        let name = self.secret_name();
        let object_ref = ObjectRef::new(self.argocd, &name);
        let [labels, annotations, mut data] = self.missing(secret.unwrap_or(&ClusterSecret::default()));
        let write = match secret {
            Some(_) if labels.is_empty() && annotations.is_empty() && data.is_empty() && recipe.is_none() => None,
            Some(secret) => {
                let metadata = json!({"resourceVersion": secret.version, "labels": labels, "annotations": annotations});
                let body = json!({"metadata": metadata, "data": data});
                Some(Write::patch(&SECRETS, object_ref, body))
            }
            None => {
                if !self.manager.skips() {
                    data.insert(CONFIG.to_owned(), encoded(PLAIN));
                }
                let metadata =
                    json!({"name": name, "namespace": self.argocd, "labels": labels, "annotations": annotations});
                let object = json!({
                    "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data,
                });
                Some(Write::create(&SECRETS, object_ref, object))
            }
        };
        SecretUpdate {
            write: write.map(|write| Write { recipe, ..write }),
            conflict: None,
        }
    }

    /// Returns true if Argo CD's client certificate is for this cluster, issued and trusted by this CA, and not due for renewal.
    fn has_certificate(&self, secret: &ClusterSecret, ca: &TlsSecret, now: Timestamp) -> bool {
        let certificate = secret
            .credential
            .as_ref()
            .and_then(|credential| credential.certificate.as_ref());
        let is_valid = |(certificate, signer): (&Certificate, &Certificate)| {
            let renewal = certificate.renewal(signer, now);
            renewal.is_none_or(|at| at > now)
                && *certificate.common_name == *self.name
                && certificate.is_issued_by(signer)
        };
        certificate.zip(ca.leaf()).is_some_and(is_valid) && secret.trusts(ca)
    }

    fn secret_name(&self) -> String {
        self.manager.name(self.name)
    }

    /// Returns the labels of the Secret and the value of [`COPIED`].
    fn labels_and_copied(&self) -> (BTreeMap<&'c str, String>, String) {
        let is_copied = |key: &str| {
            let domain = key.split_once('/').map_or("", |(domain, _)| domain);
            let is_somebodys = [
                "argocd.argoproj.io",
                "argocd-agent.argoproj-labs.io",
                "argocd-ocm-cmp.github.io",
            ]
            .contains(&domain);
            !is_somebodys && !IDENTITY_LABELS.contains(&key) && key != MANAGED_BY && key != self.tracking_label
        };
        let copied: Vec<_> = self.labels.iter().filter(|(key, _)| is_copied(key)).collect();
        let keys: Vec<_> = copied.iter().map(|(key, _)| *key).collect();
        let marks = [(SECRET_TYPE, CLUSTER), (MANAGED_BY, OURS)];
        let labels = copied
            .into_iter()
            .chain(marks)
            .map(|(key, value)| (key, value.to_owned()));
        let placement = self.placement.filter(|placement| placement.len() <= LABEL_MAX);
        let placement = placement.map(|placement| (PLACEMENT_NAME, placement.to_owned()));
        let labels = labels.chain(placement).chain(self.manager.labels(self.name));
        (labels.collect(), keys.join(","))
    }

    /// Returns the labels, annotations and data to set; fields that others added stay.
    fn missing(&self, secret: &ClusterSecret) -> [Map<String, Value>; 3] {
        let (desired, copied) = self.labels_and_copied();
        let existing_labels: BTreeMap<_, _> = secret.labels.iter().collect();
        let mut labels = Map::new();
        for (key, value) in &desired {
            if existing_labels.get(key) != Some(&value.as_str()) {
                labels.insert((*key).to_owned(), json!(value));
            }
        }
        for key in secret.copied.split(',') {
            if existing_labels.contains_key(key) && !desired.contains_key(key) {
                labels.insert(key.to_owned(), Value::Null);
            }
        }
        let mut annotations = Map::new();
        if *secret.copied != *copied {
            let copied = Some(copied).filter(|copied| !copied.is_empty());
            annotations.insert(COPIED.to_owned(), json!(copied));
        }
        if let Some(owner) = self.owner.filter(|owner| **owner != *secret.owner_annotation) {
            annotations.insert(OWNER.to_owned(), json!(owner));
        }
        if self.manager.skips() && !secret.skips {
            annotations.insert(SKIP_RECONCILE.to_owned(), json!("true"));
        }
        // Argo CD's API server writes another value there, which needs no patch.
        if self.manager.has_agent() && !secret.has_writer_annotation {
            annotations.insert(WRITTEN_BY.to_owned(), json!(AGENTS));
        }
        let mut data = Map::new();
        for (key, existing, desired) in [
            (NAME, secret.cluster(), self.name),
            (SERVER, secret.server(), &self.manager.server(self.name)),
        ] {
            if existing != desired {
                data.insert(key.to_owned(), encoded(desired));
            }
        }
        [labels, annotations, data]
    }
}

/// Returns true if the first certificate of a Secret is a CA certificate, has not expired, and its key is in the Secret.
fn can_sign(ca: &TlsSecret, now: Timestamp) -> bool {
    let is_usable = |signer: &Certificate| signer.is_authority && signer.not_after > now;
    !ca.deleting && ca.leaf().is_some_and(is_usable)
}

fn encoded(text: &str) -> Value {
    json!(ByteString(text.as_bytes().to_vec()))
}
