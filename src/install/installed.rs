//! The features of an installation that share an object with other features: whoever applies the object for one feature must keep
//! the fields of the others, because the API server removes the fields that their manager no longer applies.

use super::features::Feature;
use super::settings::{CONTROLLER, CONTROLLERS, DIALECT};
use super::{ArgoCd, named};
use clap::ValueEnum;
use controller::pull::Dialect;
use serde_json::Value;
use std::collections::BTreeSet;

/// The names of what the features `plugin` and `ui` add to the Pods of Argo CD.
const SIDECAR: &str = "argocd-ocm-cmp";
const EXTENSION: &str = "argocd-ocm-cmp-ui";

/// The features of an installation, as far as they share objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The features.
    pub features: BTreeSet<Feature>,
    /// The dialect of the pull model, unless it is the default.
    pub pull_dialect: Option<Dialect>,
}

impl Installed {
    /// Reads the installation from the Deployments of Argo CD's namespace.
    #[must_use]
    pub fn among(workloads: &[Value], argo_cd: &ArgoCd) -> Self {
        let pod = |name: &str| named(workloads, name).map(|it| &it["spec"]["template"]["spec"]);
        let has = |name: &str, list: &str, entry: &str| {
            let entries = pod(name).and_then(|pod| pod[list].as_array());
            entries.into_iter().flatten().any(|it| it["name"] == entry)
        };
        let mut features = BTreeSet::new();
        if has(&argo_cd.repo_server, "containers", SIDECAR) {
            features.insert(Feature::Plugin);
        }
        if has(&argo_cd.server, "volumes", EXTENSION) {
            features.insert(Feature::Ui);
        }
        let env = pod(CONTROLLER).map(|pod| &pod["containers"][0]["env"]);
        let variable = |name: &str| {
            let mut variables = env?.as_array()?.iter();
            variables.find(|it| it["name"] == name)?["value"].as_str()
        };
        if env.is_some() {
            features.insert(Feature::Controller);
            let controllers: Vec<&str> = variable(CONTROLLERS)
                .unwrap_or_default()
                .split(',')
                .map(str::trim)
                .collect();
            let is_enabled = |feature: &Feature| feature.controller().is_some_and(|name| controllers.contains(&name));
            features.extend(Feature::ALL.iter().copied().filter(is_enabled));
        }
        Self {
            features,
            pull_dialect: variable(DIALECT).and_then(|name| Dialect::from_str(name, false).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{InstallOptions, Object, objects, with_implied};

    /// Returns the Deployments that an installation applies.
    fn deployments(features: &[Feature], pull_dialect: Dialect) -> Vec<Value> {
        let options = InstallOptions {
            features: features.iter().copied().collect(),
            pull_dialect,
            ..InstallOptions::everything("argocd")
        };
        let objects = objects(&options);
        let deployments = objects.iter().filter(|it| it.kind() == "Deployment").map(Object::json);
        deployments
            .map(|json| serde_json::from_str(&json).expect("JSON"))
            .collect()
    }

    #[test]
    fn finds_every_feature_that_shares_an_object() {
        let shares = [
            Feature::Plugin,
            Feature::Controller,
            Feature::Pull,
            Feature::ClusterSecrets,
            Feature::Report,
            Feature::GitOpsCluster,
            Feature::ArgocdAgent,
            Feature::Ui,
        ];
        for feature in shares {
            let installed = Installed::among(&deployments(&[feature], Dialect::default()), &ArgoCd::default());
            let mut expected = with_implied([feature]);
            expected.remove(&Feature::Policy);
            assert_eq!(installed.features, expected, "{feature:?}");
            assert_eq!(installed.pull_dialect, None);
        }
        let of_acm = deployments(&[Feature::Pull], Dialect::Acm);
        let installed = Installed::among(&of_acm, &ArgoCd::default());
        assert_eq!(installed.pull_dialect, Some(Dialect::Acm));
    }

    #[test]
    fn new_hub_has_no_features() {
        assert_eq!(Installed::among(&[], &ArgoCd::default()), Installed::default());
    }
}
