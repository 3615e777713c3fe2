//! The YAML files that install the program, embedded in this version. Each describes itself at its start.

use manifest::{json, yaml};
use serde_json::Value;

pub(crate) const PLUGIN: &str = include_str!("../plugin.yaml");
pub(crate) const CM_PLUGIN: &str = include_str!("../cm_plugin.yaml");
pub(crate) const ARGOCD_CM: &str = include_str!("../deploy/argocd_cm.yaml");
pub(crate) const DEPLOY_CMP: &str = include_str!("../deploy_cmp.yaml");
pub(crate) const PLUGIN_SOURCES: &str = include_str!("../deploy/plugin_sources.yaml");
pub(crate) const PROJ: &str = include_str!("../proj.yaml");
pub(crate) const POLICY_CM: &str = include_str!("../deploy/policy_cm.yaml");
pub(crate) const DEPLOY_POLICY: &str = include_str!("../deploy/deploy_policy.yaml");
pub(crate) const APPSET_PLACEMENT: &str = include_str!("../deploy/appset_placement.yaml");
pub(crate) const ARGOCD_RBAC: &str = include_str!("../deploy/argocd_rbac.yaml");
pub(crate) const ARGOCD_ACTIONS: &str = include_str!("../deploy/argocd_actions.yaml");
pub(crate) const DEPLOY_CONTROLLER: &str = include_str!("../deploy/deploy_controller.yaml");
pub(crate) const REPORT_CRD: &str = include_str!("../deploy/report_crd.yaml");
pub(crate) const ADMISSION_POLICY: &str = include_str!("../deploy/admission_policy.yaml");
pub(crate) const HOLDS: &str = include_str!("../deploy/holds.yaml");
pub(crate) const AGENT_ADMISSION: &str = include_str!("../deploy/agent_admission.yaml");
pub(crate) const DEPLOY_CLUSTER_SECRETS: &str = include_str!("../deploy/deploy_cluster_secrets.yaml");
pub(crate) const DEPLOY_REPORT: &str = include_str!("../deploy/deploy_report.yaml");
pub(crate) const DEPLOY_PULL: &str = include_str!("../deploy/deploy_pull.yaml");
pub(crate) const ARGOCD_ADDON: &str = include_str!("../deploy/argocd_addon.yaml");
pub(crate) const GITOPSCLUSTER_CRD: &str = include_str!("../deploy/gitopscluster_crd.yaml");
pub(crate) const DEPLOY_GITOPSCLUSTER: &str = include_str!("../deploy/deploy_gitopscluster.yaml");
pub(crate) const DEPLOY_ARGOCD_AGENT: &str = include_str!("../deploy/deploy_argocd_agent.yaml");
pub(crate) const DEPLOY_PRINCIPAL: &str = include_str!("../deploy/deploy_principal.yaml");
pub(crate) const REDIS_PROXY: &str = include_str!("../deploy/redis_proxy.yaml");
pub(crate) const LIVE: &str = include_str!("../deploy/live.yaml");
pub(crate) const LIVE_ARGOCD: &str = include_str!("../deploy/live_argocd.yaml");
pub(crate) const DEPLOY_UI: &str = include_str!("../deploy/deploy_ui.yaml");

/// Returns the objects of a shipped file, or of a text from a user; none if it is not YAML.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let mut objects = Vec::new();
    for document in yaml::documents(text) {
        let Ok(document) = document else { return Vec::new() };
        let mut object = String::new();
        let written = json::write(&document.value, &mut object);
        let Some(object) = written.ok().and_then(|()| serde_json::from_str(&object).ok()) else {
            return Vec::new();
        };
        objects.push(object);
    }
    objects
}
