//! The enabled controllers and settings, from the Deployment of the controller.

use super::hub_state::HubState;
use crate::workload::{containers, item, setting};
use controller::controllers::CONTROLLERS;
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
        let mut controllers: Vec<&'static Controller> = Vec::new();
        let mut unknown = Vec::new();
        for name in named.split(',').map(str::trim) {
            let mut of_it = CONTROLLERS
                .iter()
                .filter(|controller| name == "*" || controller.name == name)
                .peekable();
            if of_it.peek().is_none() {
                unknown.push(name.to_owned());
            }
            for controller in of_it {
                if controllers.iter().all(|other| !std::ptr::eq(*other, controller)) {
                    controllers.push(controller);
                }
            }
        }
        Some(Self {
            account: pod["serviceAccountName"].as_str().unwrap_or("default").to_owned(),
            controllers,
            unknown,
            elects: setting("--leader-elect", "ARGOCD_OCM_CMP_LEADER_ELECT") != Some("false"),
            image: container["image"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Returns the names of the enabled controllers, each once.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.controllers.iter().map(|controller| controller.name).collect();
        names.dedup();
        names
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

    fn pod(change: impl FnOnce(&mut Value), settings: Lookup<Value>) -> ControllerPod {
        let mut deployment = shipped("deploy/deploy_controller.yaml").remove(0);
        change(&mut deployment["spec"]["template"]["spec"]["containers"][0]);
        let hub_state = HubState {
            deployments: Lookup::Found(vec![deployment]),
            settings,
            ..HubState::default()
        };
        ControllerPod::from_state(&hub_state).expect("the controller is installed")
    }

    #[test]
    fn arguments_override_env_and_env_overrides_config_map() {
        let default = pod(|_| (), Lookup::NotFound);
        assert_eq!(default.names(), ["application-status"]);
        assert!(default.elects);
        assert_eq!(default.account, "argocd-ocm-cmp-controller");

        let settings = || Lookup::Found(shipped("deploy/deploy_pull.yaml").remove(0));
        let all = ["application-status", "pull", "application-set-report"];
        assert_eq!(pod(|_| (), settings()).names(), all);

        let env = json!([{"name": "ARGOCD_OCM_CMP_CONTROLLERS", "value": "pull, more"}]);
        let parsed = pod(|value| value["env"] = env.clone(), settings());
        assert_eq!(
            (parsed.names(), parsed.unknown),
            (vec!["pull"], vec!["more".to_owned()])
        );

        let words = json!(["--leader-elect=false", "--controllers", "gitopscluster"]);
        let parsed = pod(
            |value| {
                value["env"] = env;
                value["args"] = words;
            },
            settings(),
        );
        assert_eq!((parsed.names(), parsed.elects), (vec!["gitopscluster"], false));
    }
}
