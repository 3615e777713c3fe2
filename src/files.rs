//! The YAML files at the root of the repository, by which the program is installed: as this version has them.

/// The plugin itself.
pub(crate) const PLUGIN: &str = include_str!("../plugin.yaml");
/// The plugin, as Argo CD mounts it.
pub(crate) const CM_PLUGIN: &str = include_str!("../cm_plugin.yaml");
/// The health checks of works.
pub(crate) const ARGOCD_CM: &str = include_str!("../argocd_cm.yaml");
/// The sidecar.
pub(crate) const DEPLOY_CMP: &str = include_str!("../deploy_cmp.yaml");
/// An AppProject for Applications that deliver works.
pub(crate) const PROJ: &str = include_str!("../proj.yaml");
/// A sample of a policy.
pub(crate) const POLICY_CM: &str = include_str!("../policy_cm.yaml");
/// The policy in the sidecar.
pub(crate) const DEPLOY_POLICY: &str = include_str!("../deploy_policy.yaml");
/// What lets ApplicationSets ask Placements.
pub(crate) const APPSET_PLACEMENT: &str = include_str!("../appset_placement.yaml");
/// The rights of Argo CD's application-controller.
pub(crate) const ARGOCD_RBAC: &str = include_str!("../argocd_rbac.yaml");
/// The controller, with the rights that it always needs.
pub(crate) const DEPLOY_CONTROLLER: &str = include_str!("../deploy_controller.yaml");
/// Its rights where its work is divided.
pub(crate) const DEPLOY_SHARDS: &str = include_str!("../deploy_shards.yaml");
/// The kind of reports.
pub(crate) const REPORT_CRD: &str = include_str!("../report_crd.yaml");
/// What it may write, for the API server to check.
pub(crate) const ADMISSION_POLICY: &str = include_str!("../admission_policy.yaml");
/// Its rights for cluster Secrets.
pub(crate) const DEPLOY_CLUSTER_SECRETS: &str = include_str!("../deploy_cluster_secrets.yaml");
/// Its rights for reports.
pub(crate) const DEPLOY_REPORT: &str = include_str!("../deploy_report.yaml");
/// Its rights for the basic pull model.
pub(crate) const DEPLOY_PULL: &str = include_str!("../deploy_pull.yaml");
/// The kind GitOpsCluster.
pub(crate) const GITOPSCLUSTER_CRD: &str = include_str!("../gitopscluster_crd.yaml");
/// Its rights for GitOpsClusters.
pub(crate) const DEPLOY_GITOPSCLUSTER: &str = include_str!("../deploy_gitopscluster.yaml");
/// Its rights for argocd-agent.
pub(crate) const DEPLOY_ARGOCD_AGENT: &str = include_str!("../deploy_argocd_agent.yaml");
/// The extension of Argo CD's pages.
pub(crate) const DEPLOY_UI: &str = include_str!("../deploy_ui.yaml");
