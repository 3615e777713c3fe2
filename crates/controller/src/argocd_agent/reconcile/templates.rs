//! The AddOnTemplates of GitOpsClusters. The name of a template contains the hash of its content, which has some tens of
//! kilobytes, and every reconciliation needs the name, so the cache keeps it.

use crate::argocd_agent as agent;
use crate::argocd_agent::DesiredAgent;
use crate::assignment::GitOpsClusterRef;
use crate::reconcile::Context;
use serde_json::Value;

/// Returns the AddOnTemplate of a GitOpsCluster.
pub(super) fn template(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> Value {
    agent::template(
        gitops.namespace_and_name(),
        desired,
        &context.settings.images,
        gitops.cache.argocd(),
    )
}

/// Returns the name of the AddOnTemplate of a GitOpsCluster with these argocd-agent settings, which are its own.
pub(super) fn template_name(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> Box<str> {
    let name = gitops.cache.template_name(gitops.object_ref, || {
        let template = template(gitops, desired, context);
        template["metadata"]["name"].as_str().unwrap_or_default().into()
    });
    (*name).clone()
}
