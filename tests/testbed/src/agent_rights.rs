//! What OCM's agents may do on a managed cluster: the roles that OCM's operator installs for them.

use std::path::{Path, PathBuf};

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

/// What the registration agent has once the API server has taken notice of all of its roles, those of its namespace and those of the
/// cluster. Verb, group, resource.
const NOTICED: [(&str, &str, &str); 5] = [
    ("create", "", "configmaps"),
    ("create", "", "secrets"),
    ("update", "coordination.k8s.io", "leases"),
    ("list", "", "nodes"),
    ("list", "cluster.open-cluster-management.io", "clusterclaims"),
];

/// Gives the registration agent what OCM gives it, and returns the kubeconfig that it then runs with.
pub(crate) async fn grant_registration(cluster: &ControlPlane) -> Result<PathBuf> {
    apply(cluster, &manifests(cluster, "registration")?)?;
    let kubeconfig = cluster.service_account_kubeconfig(AGENT_NAMESPACE, REGISTRATION)?;
    // It ends, without a word, when it is refused something before the API server has taken notice of all of that.
    wait_for(&kubeconfig, "the registration agent has its rights", &NOTICED).await?;
    Ok(kubeconfig)
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
    wait_for(&kubeconfig, "the work agent has its rights", &AGGREGATED).await?;
    Ok(kubeconfig)
}

/// Waits until the API server grants all of these rights to whom the kubeconfig is of: verb, group, resource.
pub(crate) async fn wait_for(kubeconfig: &Path, what: &str, rights: &[(&str, &str, &str)]) -> Result<()> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client_of(kubeconfig).await?);
    wait::eventually(what, DEADLINE, async || {
        for (verb, group, resource) in rights {
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
