//! The objects that run this program beside Argo CD on a hub: the files of deploy/, with the flags applied. Pure functions;
//! `commands` prints or applies the result.
//!
//! The files are the single source of truth. `features` maps features to files, `merge` combines objects with the same name,
//! `namespace` moves them to the namespace of another Argo CD, `settings` applies the flags, and `argo_cd` adapts them to the
//! names of Argo CD's parts on the hub, or to the ArgoCD resource of an operator. `live_view` adds what no file has. `installed` finds
//! the features of an earlier installation. `ownership` decides about managers of fields of live objects, and `removal` about
//! uninstalling.

mod argo_cd;
mod features;
mod installed;
mod lasting;
mod live_view;
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
mod tuning;

pub use argo_cd::{APPLICATION_CONTROLLER, ArgoCd, REPO_SERVER, SERVER, Unknown, component_of};
pub use features::{Feature, with_implied};
pub use installed::{Installed, argocd_image};
pub use lasting::{keep_in_gitops, mounted_config_maps, required_config_maps};
pub use live_view::{
    AUTHORITY, AUTHORITY_KEY, AUTHORITY_SECRET, CLUSTER_PROXY_NAMESPACE, LIVE, LiveView, live_authority,
};
pub use object::ShippedObject;
pub use ownership::{
    PART_MANAGERS, belongs_to_another_argocd, conflicting_manager, is_our_manager, is_unchanged, merged_managers,
    other_namespace, owns_argocd_fields,
};
pub use policy::{
    POLICY, POLICY_KEY, PolicySource, decide, has_other_limits, is_open_project, is_own_policy, live_policy,
};
pub use principal::{
    CMD_PARAMS, PARAMS, PRINCIPALS, Principal, REDIS_PROXY, WrongSetting, drops_redis_proxy, find_redis_proxy,
    is_our_principal, maps_by_destination, needs_redis_proxy, other_redis, replaces_only_redis, serves_redis,
    unknown_redis, wrong_settings,
};
pub use removal::{
    LABELS, PROJECT, addition_to, belongs_to_added_controller, belongs_to_another_product, content_of_administrator,
    has_additions, helm_release, is_beside_installation, is_ours, our_managers, stuck_deletions,
};
pub use settings::CONTROLLER;
pub use tuning::keep_tuned;

use crate::embedded;
use clap::ValueEnum;
use generate::print::OutputFormat;
use hub_state::json::borrowed;
use hub_state::model::shipped;
use hub_state::pull::Dialect;
use manifest::problem::Problems;
use manifest::{json, yaml};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// The field manager of all applied objects. The controller writes with the same name, but uses updates and not applies.
pub const MANAGER: &str = controller::controllers::MANAGER;

/// True once releases are published: until then [`IMAGE`] does not exist, and an administrator builds an image.
pub const IS_PUBLISHED: bool = false;

/// The image of this program, of this release.
pub const IMAGE: &str = concat!("ghcr.io/argocd-ocm-cmp/argocd-ocm-cmp:", env!("CARGO_PKG_VERSION"));

/// The image of Argo CD on managed clusters, and in the printed sidecar, which has kustomize and helm from it.
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
    /// The images.
    pub images: InstallImages,
    /// The image pull secrets.
    pub image_pull_secrets: Vec<String>,
    /// The features named in the flags; see [`with_implied`].
    pub features: BTreeSet<Feature>,
    /// The number of replicas of the controller; `None` keeps the number in the file.
    pub replicas: Option<u16>,
    /// Further settings of the controller in its ConfigMap.
    pub settings: Vec<(String, String)>,
    /// The dialect of the pull model; `None` is the default.
    pub pull_dialect: Option<Dialect>,
    /// The source of the sidecar's policy, with the feature [`Feature::POLICY`].
    pub policy: PolicySource,
    /// The principal of the hub, with the feature [`Feature::ARGOCD_AGENT`].
    pub principal: Principal,
    /// The parts of the view into the clusters that no file has, with the feature [`Feature::LIVE`].
    pub live: LiveView,
    /// True if only the additions to Argo CD's own objects are installed.
    pub additions_only: bool,
}

/// The images of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallImages {
    /// This program in the controller, and beside argocd-agent on managed clusters.
    pub controller: String,
    /// This program in the sidecar.
    pub sidecar: String,
    /// Argo CD, from which the sidecar copies kustomize and helm.
    pub tools: String,
    /// Argo CD on managed clusters, for the add-on.
    pub argocd: String,
    /// The principal of argocd-agent.
    pub agent: String,
}

impl Default for InstallImages {
    /// Returns the images of this release.
    fn default() -> Self {
        Self {
            controller: IMAGE.to_owned(),
            sidecar: IMAGE.to_owned(),
            tools: ARGOCD_IMAGE.to_owned(),
            argocd: ARGOCD_IMAGE.to_owned(),
            agent: AGENT_IMAGE.to_owned(),
        }
    }
}

impl InstallOptions {
    /// Returns the options that install everything as shipped, beside the Argo CD in this namespace.
    pub fn everything(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            argo_cd: ArgoCd::default(),
            images: InstallImages::default(),
            image_pull_secrets: Vec::new(),
            features: Feature::all().iter().copied().collect(),
            replicas: None,
            settings: Vec::new(),
            pull_dialect: None,
            policy: PolicySource::Sample,
            principal: Principal::Ours { serves_redis: true },
            live: LiveView::default(),
            additions_only: false,
        }
    }

    /// Returns true if the flags name a feature, or one that implies it.
    pub fn has_feature(&self, feature: Feature) -> bool {
        with_implied(self.features.iter().copied()).contains(&feature)
    }

    /// Completes the options from the hub: with the parts of its Argo CD, and with what an earlier installation has and must keep.
    /// Returns that installation, and the features to apply. `workloads` are those of Argo CD's namespace, `settings` the ConfigMap of
    /// the controller, if it exists.
    ///
    /// # Errors
    /// Returns a line for each feature whose target on the hub is not known.
    pub fn adopt(
        &mut self,
        workloads: &[Json],
        settings: Option<&Json>,
    ) -> Result<(Installed, BTreeSet<Feature>), Problems> {
        self.argo_cd = ArgoCd::among(workloads);
        let requested = with_implied(self.features.iter().copied());
        Problems::or(self.argo_cd.target_problems(&requested, &self.namespace), ())?;
        let installed = Installed::among(workloads, settings, &self.argo_cd);
        self.pull_dialect = self.pull_dialect.or(installed.pull_dialect);
        self.replicas = self.replicas.or(installed.replicas);
        // With `additions_only`, the additions of features that are not named are removed.
        if !self.additions_only {
            self.features.extend(&installed.features);
        }
        self.settings = settings::others(settings);
        if self.image_pull_secrets.is_empty() {
            self.image_pull_secrets.clone_from(&installed.image_pull_secrets);
        }
        Ok((installed, requested))
    }
}

/// Returns the objects of these features, with the fields that the other features of `options` have in them.
pub fn objects_of(options: &InstallOptions, features: &BTreeSet<Feature>) -> Vec<ShippedObject> {
    let of_features = objects(&InstallOptions {
        features: features.clone(),
        ..options.clone()
    });
    let mut objects = objects(options);
    objects.retain(|object| of_features.iter().any(|feature| feature.is_same(object)));
    objects
}

/// Returns the objects in the order of their dependencies. Deterministic: the same `options` gives the same objects.
pub fn objects(options: &InstallOptions) -> Vec<ShippedObject> {
    let mut features = with_implied(options.features.iter().copied());
    match options.policy {
        PolicySource::Text(_) | PolicySource::ConfigMap(_) => features.extend(with_implied([Feature::POLICY])),
        PolicySource::None => {
            features.remove(&Feature::POLICY);
        }
        PolicySource::Sample => {}
    }
    let mut files: Vec<&'static str> = Vec::new();
    for file in features.iter().flat_map(|feature| feature.files()) {
        // Some features share a file.
        if !files.contains(&file) && !options.principal.leaves_out(file) {
            files.push(file);
        }
    }
    let mut objects: Vec<ShippedObject> = Vec::new();
    for mut object in files.into_iter().flat_map(parse_shipped_file) {
        namespace::relocate(&mut object, &options.namespace);
        options.argo_cd.rename(&mut object);
        // Under their final names: of two documents of one object, the second would remove the fields of the first.
        match objects.iter_mut().find(|other| other.is_same(&object)) {
            Some(other) => merge::merge(&mut other.value, object.value),
            None => objects.push(object),
        }
    }
    if features.contains(&Feature::LIVE) {
        objects.extend(options.live.authority(&options.namespace));
    }
    for object in &mut objects {
        settings::set(object, options, &features);
    }
    objects = options.argo_cd.with_resource(objects, &options.namespace);
    let is_others =
        |object: &ShippedObject| matches!(options.policy, PolicySource::ConfigMap(_)) && object.name() == POLICY;
    objects.retain(|object| (object.is_addition() || !options.additions_only) && !is_others(object));
    objects.sort_by_key(ShippedObject::rank);
    objects
}

fn parse_shipped_file(file: &str) -> impl Iterator<Item = ShippedObject> {
    embedded::shipped(file).into_iter().map(ShippedObject::new)
}

/// Returns the admission policies of a shipped file, and their bindings, for the Argo CD in this namespace.
pub fn admission_policies(file: &str, namespace: &str) -> Vec<ShippedObject> {
    let mut objects: Vec<_> = parse_shipped_file(file)
        .filter(ShippedObject::is_admission_policy)
        .collect();
    for object in &mut objects {
        namespace::relocate(object, namespace);
    }
    objects
}

/// Formats the objects for kubectl: YAML documents, or one JSON object a line.
pub fn format_objects(objects: &[ShippedObject], form: OutputFormat) -> String {
    let mut text = String::new();
    for (at, object) in objects.iter().enumerate() {
        let value = borrowed(&object.value);
        match form {
            OutputFormat::Yaml => {
                text.push_str(if at > 0 { "---\n" } else { "" });
                text.push_str(&yaml::write(&value));
            }
            OutputFormat::Json => {
                json::write(&value, &mut text).expect("the object is JSON");
                text.push('\n');
            }
        }
    }
    text
}

/// Returns the name of a value of a flag.
fn name_of(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}
