//! The enabled controllers and settings, from the Deployment of the controller.

use super::hub_state::HubState;
use crate::workload::{containers, item, setting};
use hub_state::reconcile::Controller;

/// The controller as installed.
#[derive(Debug)]
pub(crate) struct ControllerPod {
    pub(crate) account: String,
    /// The enabled controllers. A controller of several kinds is listed once per kind.
    pub(crate) controllers: Vec<&'static Controller>,
    /// The unknown names of controllers in its settings.
    pub(crate) unknown: Vec<String>,
    /// True if it uses leader election.
    pub(crate) elects: bool,
    pub(crate) image: String,
}

impl ControllerPod {
    /// Reads the Deployment and the ConfigMap with the settings; returns `None` if the controller is not installed.
    pub(crate) fn from_state(hub_state: &HubState) -> Option<Self> {
        let deployment = hub_state.controller()?;
        let pod = &deployment["spec"]["template"]["spec"];
        let container = item(&pod["containers"], "controller").or(containers(deployment).first())?;
        let setting = |flag: &str, variable: &str| setting(container, hub_state.settings.found(), flag, variable);
        let named = setting("--controllers", "ARGOCD_OCM_CMP_CONTROLLERS").unwrap_or("application-status");
        let (known, unknown): (Vec<&str>, Vec<&str>) = named
            .split(',')
            .map(str::trim)
            .partition(|name| controller::named([*name]).is_ok());
        Some(Self {
            account: pod["serviceAccountName"].as_str().unwrap_or("default").to_owned(),
            controllers: controller::named(known).unwrap_or_default(),
            unknown: unknown.into_iter().map(str::to_owned).collect(),
            elects: setting("--leader-elect", "ARGOCD_OCM_CMP_LEADER_ELECT") != Some("false"),
            image: container["image"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Returns the names of the enabled controllers, each once.
    pub(super) fn names(&self) -> Vec<&'static str> {
        controller::names(self.controllers.iter().copied())
    }

    /// Returns true if a controller is enabled that delivers, or registers clusters, without the plugin.
    pub(super) fn delivers_without_plugin(&self) -> bool {
        let without = ["pull", "cluster-secrets", "gitopscluster", "argocd-agent"];
        without.iter().any(|name| self.is_enabled(name))
    }

    pub(super) fn is_enabled(&self, name: &str) -> bool {
        self.controllers.iter().any(|controller| controller.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Lookup;
    use crate::embedded::shipped;
    use serde_json::{Value, json};

    #[test]
    fn reads_the_names_of_controllers() {
        let pod = |args: Value| {
            let mut deployment = shipped("deploy/deploy_controller.yaml").remove(0);
            deployment["spec"]["template"]["spec"]["containers"][0]["args"] = args;
            let hub_state = HubState {
                deployments: Lookup::Found(vec![deployment]),
                settings: Lookup::Found(shipped("deploy/deploy_pull.yaml").remove(0)),
                ..HubState::default()
            };
            ControllerPod::from_state(&hub_state).expect("the controller is installed")
        };
        let of_config_map = pod(json!([]));
        let all = ["application-status", "pull", "application-set-report"];
        assert_eq!((of_config_map.names(), of_config_map.elects), (all.to_vec(), true));
        assert_eq!(of_config_map.account, "argocd-ocm-cmp-controller");
        let of_flag = pod(json!(["--leader-elect=false", "--controllers", "pull, more,pull"]));
        assert_eq!((of_flag.names(), of_flag.elects), (vec!["pull"], false));
        assert_eq!(of_flag.unknown, ["more"]);
    }
}
