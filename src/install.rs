//! The objects that run this program beside Argo CD on a hub: the files of deploy/, with the flags applied. Pure functions;
//! `commands` prints or applies the result.
//!
//! The files are the single source of truth. `features` maps features to files, `merge` combines objects with the same name,
//! `namespace` moves them to the namespace of another Argo CD, `settings` applies the flags, and `argo_cd` adapts them to the
//! names of Argo CD's parts on the hub, or to the ArgoCD resource of an operator. `installed` finds the features of an earlier
//! installation. `ownership` decides about
//! managers of fields of live objects, and `removal` about uninstalling.

mod argo_cd;
mod features;
mod installed;
mod merge;
mod namespace;
mod object;
mod ownership;
mod policy;
mod principal;
mod removal;
mod settings;
#[cfg(test)]
mod tests;

pub use argo_cd::{ArgoCd, arguments, component_of, named};
pub use features::{Feature, with_implied};
pub use installed::Installed;
pub use object::Object;
pub use ownership::{
    POLICY_MANAGER, belongs_to_another_argocd, conflicts, is_unchanged, merged_managers, other_namespace,
    owns_argocd_fields,
};
pub use policy::{POLICY, POLICY_KEY, PolicySource, decide, is_open_project, is_sample, live_policy};
pub use principal::{CMD_PARAMS, PARAMS, PRINCIPALS, Principal, WrongSetting, unknown_redis, wrong_settings};
pub use removal::{
    LABELS, PROJECT, has_additions, helm_release, is_ours, names_project, our_managers, stuck_deletions,
};

use controller::argocd_agent::shipped;
use controller::pull::Dialect;
use generate::print::Output;
use manifest::value::Value;
use manifest::{json, yaml};
use std::collections::BTreeSet;

/// The field manager of all applied objects. The controller writes with the same name, but uses updates and not applies.
pub const MANAGER: &str = controller::runtime::writer::MANAGER;

/// The image of this program, of this release.
pub const IMAGE: &str = concat!("ghcr.io/argocd-ocm-cmp/argocd-ocm-cmp:", env!("CARGO_PKG_VERSION"));

/// The image of Argo CD that provides kustomize and helm.
pub const ARGOCD_IMAGE: &str = shipped::ARGOCD;

/// The image of argocd-agent, which the principal and its agents run.
pub const AGENT_IMAGE: &str = shipped::AGENT;

/// The namespace in the shipped files.
const SHIPPED_NAMESPACE: &str = "argocd";

/// The options of an installation.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// The namespace of Argo CD.
    pub namespace: String,
    /// The parts of Argo CD on the hub.
    pub argo_cd: ArgoCd,
    /// The image of this program.
    pub image: String,
    /// The image of Argo CD on managed clusters, which also provides kustomize and helm to the sidecar.
    pub argocd_image: String,
    /// The image of argocd-agent, for the principal.
    pub agent_image: String,
    /// The image pull secrets.
    pub image_pull_secrets: Vec<String>,
    /// The features named in the flags; see [`with_implied`].
    pub features: BTreeSet<Feature>,
    /// The number of replicas of the controller; `None` keeps the number in the file.
    pub replicas: Option<u16>,
    /// The dialect of the pull model.
    pub pull_dialect: Dialect,
    /// The source of the sidecar's policy, with the feature [`Feature::Policy`].
    pub policy: PolicySource,
    /// The principal of the hub, with the feature [`Feature::ArgocdAgent`].
    pub principal: Principal,
    /// True if only the additions to Argo CD's own objects are installed.
    pub additions_only: bool,
}

impl InstallOptions {
    /// Returns the options that install everything as shipped, beside the Argo CD in this namespace.
    #[must_use]
    pub fn everything(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            argo_cd: ArgoCd::default(),
            image: IMAGE.to_owned(),
            argocd_image: ARGOCD_IMAGE.to_owned(),
            agent_image: AGENT_IMAGE.to_owned(),
            image_pull_secrets: Vec::new(),
            features: Feature::ALL.iter().copied().collect(),
            replicas: None,
            pull_dialect: Dialect::default(),
            policy: PolicySource::Sample,
            principal: Principal::Ours,
            additions_only: false,
        }
    }
}

/// Returns the objects in the order of their dependencies. Deterministic: the same `options` gives the same objects.
#[must_use]
pub fn objects(options: &InstallOptions) -> Vec<Object> {
    let mut features = with_implied(options.features.iter().copied().chain(settings::features(options)));
    if options.policy == PolicySource::None {
        features.remove(&Feature::Policy);
    }
    let mut objects: Vec<Object> = Vec::new();
    let mut files: Vec<&'static str> = Vec::new();
    for file in features.iter().flat_map(|feature| feature.files()) {
        let is_left_out = options.principal == Principal::Theirs && features::PRINCIPAL_FILES.contains(file);
        // Some features share a file.
        if !files.contains(file) && !is_left_out {
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
        namespace::relocate(object, &options.namespace);
        settings::set(object, options, &features);
        options.argo_cd.rename(object);
    }
    objects = options.argo_cd.with_resource(objects, &options.namespace);
    let is_others = |it: &Object| matches!(options.policy, PolicySource::ConfigMap(_)) && it.name() == POLICY;
    objects.retain(|object| (object.is_addition() || !options.additions_only) && !is_others(object));
    objects.sort_by_key(Object::rank);
    objects
}

/// Reads the objects of a shipped file.
fn read(file: &'static str) -> impl Iterator<Item = Object> {
    yaml::documents(file).map(|document| Object::new(document.expect("the shipped files are valid YAML").value))
}

/// Formats the objects for kubectl: YAML documents, or one JSON object a line.
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

/// Returns the canonical JSON of a value.
fn json_of(value: &Value<'_>) -> String {
    let mut text = String::new();
    json::write(value, &mut text).expect("the shipped files are valid JSON");
    text
}
