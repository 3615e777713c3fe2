//! The YAML files that install the program, embedded in this version.

use manifest::{json, yaml};
use serde_json::Value;

/// The plugin itself.
pub(crate) const PLUGIN: &str = include_str!("../plugin.yaml");
/// The plugin, as Argo CD mounts it.
pub(crate) const CM_PLUGIN: &str = include_str!("../cm_plugin.yaml");
/// The health checks of works, and the actions on them.
pub(crate) const ARGOCD_CM: &str = include_str!("../deploy/argocd_cm.yaml");
/// The sidecar.
pub(crate) const DEPLOY_CMP: &str = include_str!("../deploy_cmp.yaml");
/// The admission policy that refuses Applications with sources that share works.
pub(crate) const PLUGIN_SOURCES: &str = include_str!("../deploy/plugin_sources.yaml");
/// An AppProject for Applications that deliver works.
pub(crate) const PROJ: &str = include_str!("../proj.yaml");
/// A sample of a policy.
pub(crate) const POLICY_CM: &str = include_str!("../deploy/policy_cm.yaml");
/// The policy in the sidecar.
pub(crate) const DEPLOY_POLICY: &str = include_str!("../deploy/deploy_policy.yaml");
/// Permissions of ApplicationSets to read Placements.
pub(crate) const APPSET_PLACEMENT: &str = include_str!("../deploy/appset_placement.yaml");
/// The permissions of Argo CD's application-controller.
pub(crate) const ARGOCD_RBAC: &str = include_str!("../deploy/argocd_rbac.yaml");
/// The permissions of argocd-server for actions on works.
pub(crate) const ARGOCD_ACTIONS: &str = include_str!("../deploy/argocd_actions.yaml");
/// The controller, with the permissions that it always needs.
pub(crate) const DEPLOY_CONTROLLER: &str = include_str!("../deploy/deploy_controller.yaml");
pub(crate) const REPORT_CRD: &str = include_str!("../deploy/report_crd.yaml");
/// The admission policy that limits the writes of the controller.
pub(crate) const ADMISSION_POLICY: &str = include_str!("../deploy/admission_policy.yaml");
/// The admission policy that keeps the works of managed clusters on hold.
pub(crate) const HOLDS: &str = include_str!("../deploy/holds.yaml");
/// The admission policy that limits the writes of managed clusters' agents.
pub(crate) const AGENT_ADMISSION: &str = include_str!("../deploy/agent_admission.yaml");
/// Its permissions for cluster Secrets.
pub(crate) const DEPLOY_CLUSTER_SECRETS: &str = include_str!("../deploy/deploy_cluster_secrets.yaml");
/// Its permissions for reports.
pub(crate) const DEPLOY_REPORT: &str = include_str!("../deploy/deploy_report.yaml");
/// Its permissions for the basic pull model.
pub(crate) const DEPLOY_PULL: &str = include_str!("../deploy/deploy_pull.yaml");
/// The OCM add-on that installs Argo CD on managed clusters.
pub(crate) const ARGOCD_ADDON: &str = include_str!("../deploy/argocd_addon.yaml");
pub(crate) const GITOPSCLUSTER_CRD: &str = include_str!("../deploy/gitopscluster_crd.yaml");
/// Its permissions for GitOpsClusters.
pub(crate) const DEPLOY_GITOPSCLUSTER: &str = include_str!("../deploy/deploy_gitopscluster.yaml");
/// Its permissions for argocd-agent.
pub(crate) const DEPLOY_ARGOCD_AGENT: &str = include_str!("../deploy/deploy_argocd_agent.yaml");
/// The principal of argocd-agent, on the hub.
pub(crate) const DEPLOY_PRINCIPAL: &str = include_str!("../deploy/deploy_principal.yaml");
/// Argo CD's settings for the principal.
pub(crate) const REDIS_PROXY: &str = include_str!("../deploy/redis_proxy.yaml");
/// The service of the view into the clusters.
pub(crate) const LIVE: &str = include_str!("../deploy/live.yaml");
/// Argo CD's settings for the view into the clusters.
pub(crate) const LIVE_ARGOCD: &str = include_str!("../deploy/live_argocd.yaml");
/// The extension of Argo CD's UI.
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
