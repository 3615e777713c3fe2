//! The permissions of OCM's agents on a managed cluster: the roles that OCM's operator installs for them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::control_plane::{ControlPlane, client_of};
use crate::managed_cluster::AGENT_NAMESPACE;
use crate::operator_templates::{apply, render};
use crate::wait::{self, DEADLINE};

/// The default name of a Klusterlet.
const KLUSTERLET: &str = "klusterlet";

/// The service accounts of the agents, as the operator sets them.
const WORK: &str = "klusterlet-work-sa";
const REGISTRATION: &str = "klusterlet-registration-sa";

/// The permissions that the work agent has once every role is aggregated: an edit, a view and an administrator's permission of
/// the role `admin`, which Kubernetes aggregates, and one of the role that OCM aggregates. Verb, group, resource.
const WORK_PERMISSIONS: [(&str, &str, &str); 4] = [
    ("create", "apps", "deployments"),
    ("list", "apps", "deployments"),
    ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
];

/// The permissions that the registration agent has once all of its roles are effective, those of its namespace and those of the
/// cluster. Verb, group, resource.
const REGISTRATION_PERMISSIONS: [(&str, &str, &str); 5] = [
    ("create", "", "configmaps"),
    ("create", "", "secrets"),
    ("update", "coordination.k8s.io", "leases"),
    ("list", "", "nodes"),
    ("list", "cluster.open-cluster-management.io", "clusterclaims"),
];

/// Grants the registration agent the permissions that OCM grants, and returns its kubeconfig.
pub(crate) async fn grant_registration(cluster: &ControlPlane) -> Result<PathBuf> {
    apply(cluster, &manifests(cluster, "registration")?)?;
    let kubeconfig = cluster.service_account_kubeconfig(AGENT_NAMESPACE, REGISTRATION)?;
    // The agent exits without a message if a request is denied before all permissions are effective.
    wait_for(
        &kubeconfig,
        "the registration agent has its permissions",
        &REGISTRATION_PERMISSIONS,
    )
    .await?;
    Ok(kubeconfig)
}

/// Grants the work agent the permissions that OCM grants, and returns its kubeconfig.
pub(crate) async fn grant_work(cluster: &ControlPlane) -> Result<PathBuf> {
    let mut manifests = manifests(cluster, "work")?;
    // The operator creates this one in code.
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

    // A controller aggregates roles with a delay. An agent that starts sooner would fail to apply, and each failure doubles its
    // backoff.
    wait_for(&kubeconfig, "the work agent has its permissions", &WORK_PERMISSIONS).await?;
    Ok(kubeconfig)
}

/// Waits until the API server grants all of these permissions to the user of the kubeconfig: verb, group, resource.
pub(crate) async fn wait_for(kubeconfig: &Path, what: &str, permissions: &[(&str, &str, &str)]) -> Result<()> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client_of(kubeconfig).await?);
    wait::eventually(what, DEADLINE, async || {
        for (verb, group, resource) in permissions {
            let attributes = json!({"verb": verb, "group": group, "resource": resource, "namespace": AGENT_NAMESPACE});
            let review = serde_json::from_value(json!({"spec": {"resourceAttributes": attributes}})).ok()?;
            let answer = reviews.create(&PostParams::default(), &review).await.ok()?;
            answer.status.filter(|status| status.allowed)?;
        }
        Some(())
    })
    .await
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
