//! What OCM's agents may do on a managed cluster: the roles that OCM's operator installs for them.

use std::path::PathBuf;

use anyhow::Result;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::control_plane::{ControlPlane, client_of};
use crate::managed_cluster::AGENT_NAMESPACE;
use crate::operator_templates::{apply, render};
use crate::wait::{self, DEADLINE};

/// The name that a Klusterlet has unless a user gives it another.
const KLUSTERLET: &str = "klusterlet";

/// The service accounts that the operator runs the agents as.
const WORK: &str = "klusterlet-work-sa";
const REGISTRATION: &str = "klusterlet-registration-sa";

/// What the work agent has once every role is aggregated: an edit, a view and an administrator's right of the role `admin`,
/// which Kubernetes aggregates, and one of the role that OCM does. Verb, group, resource.
const AGGREGATED: [(&str, &str, &str); 4] = [
    ("create", "apps", "deployments"),
    ("list", "apps", "deployments"),
    ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
];

/// Gives the registration agent what OCM gives it, and returns the kubeconfig that it then runs with.
pub(crate) fn grant_registration(cluster: &ControlPlane) -> Result<PathBuf> {
    apply(cluster, &manifests(cluster, "registration")?)?;
    cluster.service_account_kubeconfig(AGENT_NAMESPACE, REGISTRATION)
}

/// Gives the work agent what OCM gives it, and returns the kubeconfig that it then runs with.
pub(crate) async fn grant_work(cluster: &ControlPlane) -> Result<PathBuf> {
    let mut manifests = manifests(cluster, "work")?;
    // The operator makes this one in code.
    let aggregate = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("open-cluster-management:{KLUSTERLET}-work:aggregate")},
        "aggregationRule": {"clusterRoleSelectors": [
            {"matchLabels": {"open-cluster-management.io/aggregate-to-work": "true"}},
        ]},
        "rules": [],
    });
    manifests.push(aggregate.to_string());
    apply(cluster, &manifests)?;
    let kubeconfig = cluster.service_account_kubeconfig(AGENT_NAMESPACE, WORK)?;

    // Roles are aggregated by a controller, a moment later. An agent that starts sooner would fail to apply, and each
    // failure doubles the time until it tries again.
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client_of(&kubeconfig).await?);
    wait::eventually("the work agent has its rights", DEADLINE, async || {
        for (verb, group, resource) in AGGREGATED {
            let attributes = json!({"verb": verb, "group": group, "resource": resource, "namespace": "default"});
            let review = serde_json::from_value(json!({"spec": {"resourceAttributes": attributes}})).ok()?;
            let answer = reviews.create(&PostParams::default(), &review).await.ok()?;
            answer.status.filter(|status| status.allowed)?;
        }
        Some(())
    })
    .await?;
    Ok(kubeconfig)
}

fn manifests(cluster: &ControlPlane, agent: &str) -> Result<Vec<String>> {
    let variables = [
        ("KlusterletName", KLUSTERLET),
        ("KlusterletNamespace", AGENT_NAMESPACE),
        ("AgentNamespace", AGENT_NAMESPACE),
        ("WorkServiceAccount", WORK),
        ("RegistrationServiceAccount", REGISTRATION),
    ];
    render(&cluster.bench.parts.agent_manifests(agent)?, &variables)
}
