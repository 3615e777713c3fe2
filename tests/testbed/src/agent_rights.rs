//! What the work agent may do on a managed cluster: the roles that OCM's operator installs for it.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::control_plane::{ControlPlane, client_of};
use crate::managed_cluster::AGENT_NAMESPACE;
use crate::wait::{self, DEADLINE};

/// The name that a Klusterlet has unless a user gives it another.
const KLUSTERLET: &str = "klusterlet";

/// The service account that the operator runs the work agent as.
const SERVICE_ACCOUNT: &str = "klusterlet-work-sa";

/// What the agent has once every role is aggregated: an edit, a view and an administrator's right of the role `admin`,
/// which Kubernetes aggregates, and one of the role that OCM does. Verb, group, resource.
const AGGREGATED: [(&str, &str, &str); 4] = [
    ("create", "apps", "deployments"),
    ("list", "apps", "deployments"),
    ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
];

/// Gives the work agent what OCM gives it, and returns the kubeconfig that it then runs with.
pub(crate) async fn grant(cluster: &ControlPlane) -> Result<PathBuf> {
    let mut manifests = Vec::new();
    for file in cluster.bench.parts.work_agent_manifests()? {
        let template = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        manifests.push(render(&template));
    }
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
    cluster.kubectl_with_input(
        &["apply", "--server-side", "--validate=false", "--filename", "-"],
        &manifests.join("\n---\n"),
    )?;
    let kubeconfig = cluster.service_account_kubeconfig(AGENT_NAMESPACE, SERVICE_ACCOUNT)?;

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

/// Fills in one of the operator's templates, for a Klusterlet without labels of its own that joins by certificates:
/// every condition in them asks for labels or another way to join, so what they guard goes.
fn render(template: &str) -> String {
    let mut open = 0;
    let mut rendered = String::new();
    for line in template.lines() {
        let action = line.trim();
        if action.starts_with("{{ if ") || action.starts_with("{{ range ") {
            open += 1;
        } else if action == "{{ end }}" {
            open -= 1;
        } else if open == 0 {
            rendered.push_str(line);
            rendered.push('\n');
        }
    }
    let variables = [
        ("KlusterletName", KLUSTERLET),
        ("KlusterletNamespace", AGENT_NAMESPACE),
        ("AgentNamespace", AGENT_NAMESPACE),
        ("WorkServiceAccount", SERVICE_ACCOUNT),
    ];
    variables.into_iter().fold(rendered, |text, (name, value)| {
        text.replace(&format!("{{{{ .{name} }}}}"), value)
    })
}

#[cfg(test)]
mod tests {
    use super::render;

    #[test]
    fn conditions_go_and_variables_are_filled_in() {
        let template = "metadata:\n  name: {{ .KlusterletName }}-work\n  labels:\n    a: b\n    \
                        {{ if gt (len .Labels) 0 }}\n    {{ range $key, $value := .Labels }}\n    \
                        \"{{ $key }}\": \"{{ $value }}\"\n    {{ end }}\n    {{ end }}\nrules: []\n";
        assert_eq!(
            render(template),
            "metadata:\n  name: klusterlet-work\n  labels:\n    a: b\nrules: []\n"
        );
    }
}
