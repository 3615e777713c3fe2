//! The AddOnTemplates of GitOpsClusters. The name of a template contains the hash of its content, which has some tens of
//! kilobytes, and every reconciliation needs the name, so the cache keeps it.

use crate as agent;
use assignment::GitOpsClusterRef;
use hub_state::cache::Cache;
use hub_state::model::{DesiredAgent, Images, Kind};
use hub_state::reconcile::Context;
use ocm::argocd_agent as names;
use primitives::object_ref::ObjectRef;
use serde_json::Value;

/// Returns the AddOnTemplate of a GitOpsCluster.
pub(super) fn template(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> Value {
    agent::template(
        gitops.object_ref,
        desired,
        &default_images(gitops.cache, desired, context),
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

/// Returns the image of argocd-agent that a GitOpsCluster asks for.
pub fn agent_image(cache: &Cache, desired: &DesiredAgent, context: &Context<'_>) -> Option<Box<str>> {
    given_agent_image(cache, desired, context).or_else(|| Images::shipped().agent)
}

/// Returns the image of argocd-agent that a GitOpsCluster, the settings or the principal give; `None` if only [`Images::shipped`]
/// does.
pub(super) fn given_agent_image(cache: &Cache, desired: &DesiredAgent, context: &Context<'_>) -> Option<Box<str>> {
    desired.images.or(&default_images(cache, desired, context)).agent
}

/// Returns the images of a GitOpsCluster that sets none: those of the controller's settings, and the principal's for the agent.
fn default_images(cache: &Cache, desired: &DesiredAgent, context: &Context<'_>) -> Images {
    let principal = principal_image(cache).filter(|_| desired.follows_principal);
    context.settings.images.or(&Images {
        agent: principal.map(Into::into),
        ..Images::default()
    })
}

/// Returns the image of the principal of the hub.
pub fn principal_image(cache: &Cache) -> Option<&str> {
    names::PRINCIPAL_DEPLOYMENTS.into_iter().find_map(|name| {
        let deployment = cache.object(Kind::Deployments, &ObjectRef::new(cache.argocd(), name))?;
        let container = deployment.object.pointer("/spec/template/spec/containers/0")?;
        container["image"].as_str().filter(|image| !image.is_empty())
    })
}
