//! What a hub is given, to run this program beside its Argo CD: the files at the root of the repository, with what was asked for set
//! in them. Pure functions of values; `commands` prints or applies what comes of them.
//!
//! The files are the one truth. `features` says which of them make up what a user asks for, `merge` makes one object of those that are
//! about the same, `namespace` puts them beside an Argo CD in another namespace, and `settings` sets what flags say. `ownership` is
//! about who manages which field of what is there already, and `removal` about taking it all away.

mod features;
mod merge;
mod namespace;
mod object;
mod ownership;
mod policy;
mod removal;
mod settings;
#[cfg(test)]
mod tests;

pub use features::{Feature, with_implied};
pub use object::Object;
pub use ownership::{EARLIER, conflicts, elsewhere, is_of_another, is_robbed, taken_over};
pub use policy::{POLICY, POLICY_KEY, PolicySource, decide, is_open_project, is_sample, live_policy};
pub use removal::{LABELS, PROJECT, hanging, is_helms, is_left, is_ours, leases, names_project, of_managers};

use crate::agent::shipped;
use crate::cli::Output;
use crate::pull::Dialect;
use crate::value::Value;
use crate::{json, yaml};
use std::collections::BTreeSet;

/// The field manager of all that is applied. The controller writes by the same name, but it updates and does not apply.
pub const MANAGER: &str = crate::controller::writer::MANAGER;

/// The image of this program, of this release.
pub const IMAGE: &str = concat!("ghcr.io/argocd-ocm-cmp/argocd-ocm-cmp:", env!("CARGO_PKG_VERSION"));

/// The image of Argo CD that kustomize and helm are taken from.
pub const ARGOCD_IMAGE: &str = shipped::ARGOCD;

/// The namespace that the files are written for.
const SHIPPED_NAMESPACE: &str = "argocd";

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The namespace of Argo CD.
    pub namespace: String,
    /// The image of this program.
    pub image: String,
    /// The image of Argo CD that brings kustomize and helm.
    pub argocd_image: String,
    /// The Secrets by which these images are pulled.
    pub image_pull_secrets: Vec<String>,
    /// What is asked for by name; see [`with_implied`].
    pub features: BTreeSet<Feature>,
    /// How many replicas the controller has, if not as many as the file says.
    pub replicas: Option<u16>,
    /// Into how many shards its work is divided.
    pub shards: Option<u16>,
    /// Whose conventions the pull model follows.
    pub pull_dialect: Dialect,
    /// Where the policy of the sidecar comes from, with the feature [`Feature::Policy`].
    pub policy: PolicySource,
    /// Whether only what is added to Argo CD's own objects is wanted.
    pub additions_only: bool,
}

impl Wanted {
    /// All that there is, as it is shipped, beside the Argo CD of this namespace.
    #[must_use]
    pub fn everything(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            image: IMAGE.to_owned(),
            argocd_image: ARGOCD_IMAGE.to_owned(),
            image_pull_secrets: Vec::new(),
            features: Feature::ALL.iter().copied().collect(),
            replicas: None,
            shards: None,
            pull_dialect: Dialect::default(),
            policy: PolicySource::Sample,
            additions_only: false,
        }
    }
}

/// The objects to apply, in an order in which each finds what it needs. The same for the same `wanted`, always.
#[must_use]
pub fn objects(wanted: &Wanted) -> Vec<Object> {
    let mut features = with_implied(wanted.features.iter().copied().chain(settings::features(wanted)));
    if wanted.policy == PolicySource::None {
        features.remove(&Feature::Policy);
    }
    let mut objects: Vec<Object> = Vec::new();
    let mut files: Vec<&'static str> = Vec::new();
    for file in features.iter().flat_map(|feature| feature.files()) {
        // Some features share a file.
        if !files.contains(file) {
            files.push(file);
        }
    }
    for object in files.into_iter().flat_map(read) {
        match objects.iter_mut().find(|other| other.is_same(&object)) {
            Some(other) => merge::merge(other.value_mut(), object.into_value()),
            None => objects.push(object),
        }
    }
    for object in &mut objects {
        namespace::relocate(object, &wanted.namespace);
        settings::set(object, wanted, &features);
    }
    let is_others = |it: &Object| matches!(wanted.policy, PolicySource::ConfigMap(_)) && it.name() == POLICY;
    objects.retain(|object| (object.is_addition() || !wanted.additions_only) && !is_others(object));
    objects.sort_by_key(Object::rank);
    objects
}

/// The objects of a file of ours.
fn read(file: &'static str) -> impl Iterator<Item = Object> {
    yaml::documents(file).map(|document| Object::new(document.expect("a test reads all of them").value))
}

/// The objects as text, for kubectl: YAML documents, or one JSON object a line.
#[must_use]
pub fn text(objects: &[Object], form: Output) -> String {
    let mut text = String::new();
    for (at, object) in objects.iter().enumerate() {
        match form {
            Output::Yaml => {
                text.push_str(if at > 0 { "---\n" } else { "" });
                text.push_str(&yaml::write(object.value()));
            }
            Output::Json => {
                text.push_str(&object.json());
                text.push('\n');
            }
        }
    }
    text
}

/// The canonical JSON of a value.
fn json_of(value: &Value<'_>) -> String {
    let mut text = String::new();
    json::write(value, &mut text).expect("a test prints all of them");
    text
}
