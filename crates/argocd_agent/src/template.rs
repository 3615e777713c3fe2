//! The AddOnTemplate: the manifests that OCM installs on each managed cluster of a GitOpsCluster.
//!
//! Only the agent is a Deployment. OCM mounts the agent's certificate and key into every Deployment and DaemonSet of a template,
//! and does not start them before these exist (`volumeDecorator` in OCM's `pkg/addon/templateagent`). As a further effect, OCM
//! derives the health of the add-on from the agent alone, and the agent is ready when it is connected to the hub.
//!
//! If argocd-operator is chosen, the add-on installs the operator, and a ManifestWork delivers to each cluster the ArgoCD
//! resource from which it creates an Argo CD and an agent.
//!
//! The Namespace is not in this template but in the ManifestWork with the CA: here OCM would delete it with all of its contents
//! when the namespace setting changes. Every template contains the CRDs of Argo CD, even if an operator installs it. They must
//! not be deleted with the add-on or with a template, because deleting a CRD deletes all Applications.

use super::manifests::{self, Parameters, WITHOUT_AN_OPERATOR};
use super::reconcile::shared::find_existing;
use super::{labels, owner, works};
use assignment::GitOpsClusterRef;
use hub_state::annotations::{AGENT_IMAGE, AGENT_NAMESPACE};
use hub_state::{Cache, Context, DesiredAgent, Images, Kind};
use ocm::argocd_agent as names;
use ocm::pull_model::DEFAULT_PROJECT;
use primitives::object_ref::ObjectRef;
use serde_json::{Value, json};

/// The message for a missing image of this program.
pub const WITHOUT_OURS: &str = "no image of argocd-ocm-cmp is set for managed clusters: set --agent-supervisor-image, \
                                or restart the agent's Pod there by hand for each new certificate, and create the \
                                Secrets argocd-redis (auth) and argocd-secret (server.secretkey) by hand";

/// The message for a missing image of this program if argocd-operator is chosen, which creates these Secrets.
pub const WITHOUT_OURS_BESIDE_AN_OPERATOR: &str = "no image of argocd-ocm-cmp is set for managed clusters: set \
                                                   --agent-supervisor-image, or restart the agent's Pod there by hand \
                                                   for each new certificate";

/// Returns the AddOnTemplate of a GitOpsCluster with the configured images, else these defaults, else [`Images::shipped`];
/// `argocd` is the namespace of Argo CD on the hub. Its name contains the hash of its content (see [`names::template`]), so an
/// existing template with that name is correct. Do not compare the content: OCM's CRD adds defaults inside lists.
pub fn template(gitops_cluster: &ObjectRef, desired: &DesiredAgent, defaults: &Images, argocd: &str) -> Value {
    let images = desired.images.or(defaults).or(&Images::shipped());
    let spec = json!({
        "addonName": names::ADDON,
        "agentSpec": {
            "workload": {"manifests": manifests(desired, &images)},
            "manifestConfigs": configs(desired),
        },
        "registration": [{
            "type": "CustomSigner",
            "customSigner": {
                "signerName": names::SIGNER,
                "signingCA": {"name": names::NO_CA_SECRET, "namespace": argocd},
            },
        }],
    });
    // The hash covers the owner: two GitOpsClusters never share a template, so each may delete its own.
    let hash = names::hash(&format!("{gitops_cluster}\n{spec}"));
    let mut annotations = owner(gitops_cluster);
    annotations[AGENT_IMAGE] = json!(images.agent);
    annotations[AGENT_NAMESPACE] = json!(desired.namespace);
    json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1",
        "kind": "AddOnTemplate",
        "metadata": {"name": names::template(gitops_cluster, &hash), "labels": labels(), "annotations": annotations},
        "spec": spec,
    })
}

/// Returns the manifests for the managed cluster. OCM 1.3 and later apply them in an order of their own, older versions in this
/// order.
fn manifests(desired: &DesiredAgent, images: &Images) -> Vec<Value> {
    let [controller, agent] = if desired.operator {
        // The names that argocd-operator gives to the ServiceAccounts.
        let argocd = works::argocd_name(desired);
        ["argocd-application-controller", "agent-agent"].map(|name| format!("{argocd}-{name}"))
    } else {
        ["argocd-application-controller", "argocd-agent-agent"].map(str::to_owned)
    };
    let mut parameters = Parameters::new(desired.mode);
    let accounts = [("ARGOCD_ACCOUNT", &*controller), ("AGENT_ACCOUNT", &*agent)];
    let images_by_name = [
        ("ARGOCD_IMAGE", &images.argocd),
        ("REDIS_IMAGE", &images.redis),
        ("AGENT_IMAGE", &images.agent),
        ("OPERATOR_IMAGE", &images.operator),
        ("PROGRAM_IMAGE", &images.ours),
    ];
    let given = images_by_name
        .into_iter()
        .filter_map(|(name, image)| Some((name, image.as_deref()?)));
    parameters.values.push(("NAMESPACE", &*desired.namespace));
    parameters.values.extend(accounts.into_iter().chain(given));
    // Without an image of this program, nothing restarts the agent for new certificates.
    parameters.cases.push(match images.ours {
        Some(_) => "with a supervisor",
        None => "without a supervisor",
    });
    let files: &[&str] = if desired.operator {
        &[
            manifests::CRDS,
            manifests::OPERATOR_CRDS,
            manifests::OPERATOR_RIGHTS,
            manifests::RIGHTS,
            manifests::ARGOCD_RESOURCE_RIGHTS,
            manifests::OPERATOR,
            manifests::DEFAULT_PROJECT,
        ]
    } else if desired.brings_argocd() {
        parameters.cases.push(WITHOUT_AN_OPERATOR);
        &[
            manifests::CRDS,
            manifests::RIGHTS,
            manifests::ARGOCD,
            manifests::AGENT,
            manifests::DEFAULT_PROJECT,
        ]
    } else {
        &[manifests::CRDS]
    };
    files.iter().flat_map(|file| parameters.manifests(file)).collect()
}

/// Returns the manifestConfigs, for objects that OCM's agent must not just update. OCM reads them only from the add-on's default
/// template, for all namespaces, so all templates have the same. Templates with an operator have additional ones, for CRDs that
/// another operator has installed; these apply only if the default template has an operator.
fn configs(desired: &DesiredAgent) -> Vec<Value> {
    let config = |mut identifier: Value, name: String, strategy: &Value| {
        identifier["name"] = name.into();
        json!({"resourceIdentifier": identifier, "updateStrategy": strategy})
    };
    // Keep the CRDs of an existing Argo CD, which are better, and an existing AppProject, which belongs to the owner of the
    // Applications.
    let create_only = json!({"type": "CreateOnly"});
    let crds = |file| {
        let crd = json!({"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions"});
        let names = manifests::names(file, "CustomResourceDefinition").into_iter();
        names
            .map(|name| config(crd.clone(), name, &create_only))
            .collect::<Vec<_>>()
    };
    let mut configs = crds(manifests::CRDS);
    let project = json!({"group": "argoproj.io", "resource": "appprojects", "namespace": "*"});
    configs.push(config(project, DEFAULT_PROJECT.to_owned(), &create_only));
    // Server-side apply keeps the keys that others set, and the GPG keys that the agent sets.
    let apply = json!({"type": "ServerSideApply", "serverSideApply": {"force": true, "fieldManager": "work-agent"}});
    let shared = json!({"group": "", "resource": "configmaps", "namespace": "*"});
    let names = manifests::names(manifests::ARGOCD, "ConfigMap").into_iter();
    configs.extend(names.map(|name| config(shared.clone(), name, &apply)));
    if desired.operator {
        configs.extend(crds(manifests::OPERATOR_CRDS));
    }
    configs
}

pub(crate) fn desired_template(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> Value {
    let defaults = default_images(gitops.cache, desired, context);
    template(gitops.object_ref, desired, &defaults, gitops.cache.argocd())
}

/// Returns the name of that AddOnTemplate. It contains the hash of the content, which has some tens of kilobytes, and every
/// reconciliation needs the name, so the cache keeps it.
pub(crate) fn template_name(gitops: GitOpsClusterRef<'_>, desired: &DesiredAgent, context: &Context<'_>) -> Box<str> {
    let name = gitops.cache.template_name(gitops.object_ref, || {
        let template = desired_template(gitops, desired, context);
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
pub(crate) fn given_agent_image(cache: &Cache, desired: &DesiredAgent, context: &Context<'_>) -> Option<Box<str>> {
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

pub fn principal_image(cache: &Cache) -> Option<&str> {
    find_existing(cache, Kind::Deployments, names::PRINCIPAL_DEPLOYMENTS).find_map(|(_, deployment)| {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        container["image"].as_str().filter(|image| !image.is_empty())
    })
}

#[cfg(test)]
mod tests;
