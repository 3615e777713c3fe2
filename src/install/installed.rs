//! The features of an installation that share an object with other features: whoever applies the object for one feature must keep
//! the fields of the others, because the API server removes the fields that their manager no longer applies.

use super::argo_cd::{NAME, OURS, SIDECAR};
use super::features::Feature;
use super::settings::{CONTROLLER, CONTROLLERS, DIALECT};
use super::{ArgoCd, LIVE, MANAGER, PRINCIPALS, is_our_principal};
use crate::workload::{containers, item, items, named, setting};
use clap::ValueEnum;
use hub_state::pull::Dialect;
use serde_json::Value;
use std::collections::BTreeSet;

/// The volume that the feature `ui` adds to the Pods of argocd-server.
const EXTENSION: &str = "argocd-ocm-cmp-ui";

/// The container of the controller, and that of the view into the clusters, which runs the same image.
const CONTAINER: &str = "controller";
const LIVE_CONTAINER: &str = "live";

/// An installation, as far as another one must keep it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The features that share objects.
    pub features: BTreeSet<Feature>,
    /// The dialect of the pull model, unless it is the default.
    pub pull_dialect: Option<Dialect>,
    /// The image of the controller, or else of the view into the clusters.
    pub controller_image: Option<String>,
    /// The image of the sidecar.
    pub sidecar_image: Option<String>,
    /// The image of our principal.
    pub agent_image: Option<String>,
    /// The image of Argo CD on managed clusters; see [`argocd_image`].
    pub argocd_image: Option<String>,
    /// The number of replicas of the controller, unless someone has stopped it.
    pub replicas: Option<u16>,
    /// The image pull secrets that our field manager has set.
    pub image_pull_secrets: Vec<String>,
}

impl Installed {
    /// Reads the installation from the workloads of Argo CD's namespace, and from the ConfigMap with the controller's settings, if it
    /// exists.
    pub fn among<'v>(workloads: &'v [Value], settings: Option<&'v Value>, argo_cd: &ArgoCd) -> Self {
        let repo_server = named(workloads, &argo_cd.repo_server);
        let server = named(workloads, &argo_cd.server);
        let controller = named(workloads, CONTROLLER);
        let container =
            |workload: Option<&'v Value>, name: &str| item(&workload?["spec"]["template"]["spec"]["containers"], name);
        let image = |container: Option<&Value>| container?["image"].as_str().map(str::to_owned);
        let mut features = BTreeSet::new();
        let sidecar = container(repo_server, SIDECAR);
        if sidecar.is_some() {
            features.insert(Feature::PLUGIN);
        }
        for (feature, volume) in [(Feature::UI, EXTENSION), (Feature::LIVE, LIVE)] {
            if server.is_some_and(|server| item(&server["spec"]["template"]["spec"]["volumes"], volume).is_some()) {
                features.insert(feature);
            }
        }
        let program = container(controller, CONTAINER);
        let of_program = |flag: &str, variable: &str| setting(program?, settings, flag, variable);
        if controller.is_some() {
            features.insert(Feature::CONTROLLER);
            let controllers = of_program("--controllers", CONTROLLERS).unwrap_or_default();
            let is_named = |name: &str| controllers.split(',').any(|one| [name, "*"].contains(&one.trim()));
            let is_enabled = |feature: &Feature| feature.controller().is_some_and(is_named);
            features.extend(Feature::all().iter().copied().filter(is_enabled));
        }
        let principal = named(workloads, PRINCIPALS[0]).filter(|live| is_our_principal(live));
        let replicas = controller.and_then(|controller| controller["spec"]["replicas"].as_u64());
        Self {
            features,
            pull_dialect: of_program("--pull-dialect", DIALECT)
                .and_then(|name| Dialect::from_str(name, false).ok())
                .filter(|dialect| *dialect != Dialect::default()),
            controller_image: image(program).or_else(|| image(container(named(workloads, LIVE), LIVE_CONTAINER))),
            sidecar_image: image(sidecar),
            agent_image: image(container(principal, PRINCIPALS[0])),
            argocd_image: None,
            replicas: replicas
                .and_then(|number| u16::try_from(number).ok())
                .filter(|number| *number > 0),
            image_pull_secrets: [controller, repo_server]
                .into_iter()
                .flatten()
                .map(own_pull_secrets)
                .find(|names| !names.is_empty())
                .unwrap_or_default(),
        }
    }
}

/// Returns the image of Argo CD in our AddOnTemplate on the hub.
pub fn argocd_image(template: &Value) -> Option<String> {
    let manifests = items(&template["spec"]["agentSpec"]["workload"]["manifests"]).iter();
    let mut containers = manifests.flat_map(containers);
    let container = containers.find(|container| container["name"] == "argocd-repo-server")?;
    container["image"]
        .as_str()
        .filter(|_| template["metadata"]["labels"][NAME] == OURS)
        .map(str::to_owned)
}

/// Returns the image pull secrets of a workload that our field manager has set.
fn own_pull_secrets(workload: &Value) -> Vec<String> {
    let entries = items(&workload["metadata"]["managedFields"]).iter();
    let ours = entries.filter(|value| value["manager"] == MANAGER && value["operation"] == "Apply");
    let fields =
        ours.filter_map(|value| value["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:imagePullSecrets"].as_object());
    let keys = fields.flat_map(serde_json::Map::keys);
    let names = keys.filter_map(|key| serde_json::from_str::<Value>(key.strip_prefix("k:")?).ok());
    names
        .filter_map(|key| key["name"].as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{InstallImages, InstallOptions, objects, with_implied};

    /// Returns the Deployments that an installation applies.
    fn deployments(features: &[Feature], pull_dialect: Dialect) -> Vec<Value> {
        let options = InstallOptions {
            features: features.iter().copied().collect(),
            pull_dialect: Some(pull_dialect),
            ..InstallOptions::everything("argocd")
        };
        let deployments = objects(&options)
            .into_iter()
            .filter(|object| object.kind() == "Deployment");
        deployments.map(|object| object.value).collect()
    }

    #[test]
    fn finds_every_feature_that_shares_an_object() {
        let shares = [
            Feature::PLUGIN,
            Feature::CONTROLLER,
            Feature::PULL,
            Feature::CLUSTER_SECRETS,
            Feature::REPORT,
            Feature::GITOPS_CLUSTER,
            Feature::ARGOCD_AGENT,
            Feature::UI,
        ];
        for feature in shares {
            let installed = Installed::among(&deployments(&[feature], Dialect::default()), None, &ArgoCd::default());
            let mut expected = with_implied([feature]);
            expected.remove(&Feature::POLICY);
            assert_eq!(installed.features, expected, "{feature:?}");
            assert_eq!(installed.pull_dialect, None);
        }
        let of_acm = deployments(&[Feature::PULL], Dialect::Acm);
        let installed = Installed::among(&of_acm, None, &ArgoCd::default());
        assert_eq!(installed.pull_dialect, Some(Dialect::Acm));
    }

    /// kubectl installs the list of controllers as a ConfigMap; the environment is only in Deployments of `install`.
    #[test]
    fn finds_controllers_that_kubectl_installed() {
        let deployments = deployments(&[Feature::CONTROLLER], Dialect::default());
        let settings = serde_json::json!({"data": {CONTROLLERS: "application-status, pull,report", DIALECT: "acm"}});
        let installed = Installed::among(&deployments, Some(&settings), &ArgoCd::default());
        assert_eq!(installed.features, BTreeSet::from([Feature::CONTROLLER, Feature::PULL]));
        assert_eq!(installed.pull_dialect, Some(Dialect::Acm));
        let mut meshed = deployments.clone();
        let containers = &mut meshed[0]["spec"]["template"]["spec"]["containers"];
        containers
            .as_array_mut()
            .expect("containers")
            .insert(0, serde_json::json!({"name": "istio-proxy"}));
        let env = serde_json::json!([{"name": CONTROLLERS, "value": "application-status,gitopscluster"}]);
        containers[1]["env"] = env;
        let installed = Installed::among(&meshed, Some(&settings), &ArgoCd::default());
        let expected = BTreeSet::from([Feature::CONTROLLER, Feature::GITOPS_CLUSTER]);
        assert_eq!(installed.features, expected, "the environment overrides the ConfigMap");
        let all = serde_json::json!({"data": {CONTROLLERS: "*"}});
        let installed = Installed::among(&deployments, Some(&all), &ArgoCd::default());
        let mut controllers = Feature::all().iter().filter(|feature| feature.controller().is_some());
        assert!(
            controllers.all(|feature| installed.features.contains(feature)),
            "{installed:?}"
        );
    }

    #[test]
    fn finds_images_and_the_own_pull_secrets() {
        let mut deployments = deployments(&[Feature::PLUGIN, Feature::CONTROLLER], Dialect::default());
        let installed = Installed::among(&deployments, None, &ArgoCd::default());
        assert_eq!(installed.controller_image.as_deref(), Some(crate::install::IMAGE));
        assert_eq!(installed.sidecar_image, installed.controller_image);
        assert_eq!(installed.image_pull_secrets, [""; 0]);
        assert_eq!((installed.agent_image, installed.replicas), (None, Some(2)));
        let secrets = |name: &str| {
            let secret = serde_json::json!({(format!("k:{{\"name\":\"{name}\"}}")): {}});
            serde_json::json!({"f:spec": {"f:template": {"f:spec": {"f:imagePullSecrets": secret}}}})
        };
        deployments[0]["metadata"]["managedFields"] = serde_json::json!([
            {"manager": "helm", "operation": "Apply", "fieldsV1": secrets("theirs")},
            {"manager": MANAGER, "operation": "Apply", "fieldsV1": secrets("ours")},
        ]);
        let installed = Installed::among(&deployments, None, &ArgoCd::default());
        assert_eq!(installed.image_pull_secrets, ["ours"]);
    }

    #[test]
    fn finds_images_of_our_principal_and_add_on_only() {
        let options = InstallOptions {
            images: InstallImages {
                agent: "registry.example.com/agent:v1".to_owned(),
                argocd: "registry.example.com/argocd:v1".to_owned(),
                ..InstallImages::default()
            },
            ..InstallOptions::everything("argocd")
        };
        let mut all = objects(&options);
        all.retain(|object| object.name() == PRINCIPALS[0] || object.kind() == "AddOnTemplate");
        let live = |kind: &str, is_ours: bool| {
            let mut live = all
                .iter()
                .find(|object| object.kind() == kind)
                .expect(kind)
                .value
                .clone();
            if !is_ours {
                live["metadata"]["labels"][NAME] = "theirs".into();
            }
            live
        };
        for is_ours in [true, false] {
            let installed = Installed::among(&[live("Deployment", is_ours)], None, &ArgoCd::default());
            let found = [installed.agent_image, argocd_image(&live("AddOnTemplate", is_ours))];
            let expected = [options.images.agent.clone(), options.images.argocd.clone()];
            assert_eq!(found, expected.map(|image| is_ours.then_some(image)));
        }
    }

    /// A stopped controller is started again, which is a conflict with whoever has stopped it.
    #[test]
    fn replicas_of_a_stopped_controller_are_not_kept() {
        let mut deployments = deployments(&[Feature::CONTROLLER], Dialect::default());
        for (number, expected) in [(3, Some(3)), (0, None), (1 << 20, None)] {
            deployments[0]["spec"]["replicas"] = number.into();
            let installed = Installed::among(&deployments, None, &ArgoCd::default());
            assert_eq!(installed.replicas, expected);
        }
    }

    #[test]
    fn new_hub_has_no_features() {
        assert_eq!(Installed::among(&[], None, &ArgoCd::default()), Installed::default());
    }
}
