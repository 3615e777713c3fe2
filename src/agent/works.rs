//! What we deliver to managed clusters beside the add-on.

mod argocd;

pub(super) use argocd::name as argocd_name;

use super::{Server, Wanted, labels, names, owner};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// The work with the CA's certificates, for the Namespace that it also makes. `owner` is the GitOpsCluster, `NAMESPACE/NAME`.
///
/// Both stay when it goes, and when another namespace is asked for: with a Namespace goes all that is in it, and the
/// certificates are public.
#[must_use]
pub fn ca_work(cluster: &str, namespace: &str, bundle_pem: &str, owner: &str) -> Value {
    let ca = ByteString(bundle_pem.as_bytes().to_vec());
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "namespace": cluster,
            "name": names::CA_WORK,
            "labels": work_labels("ca"),
            "annotations": {names::CA_ANNOTATION: "true", crate::cluster_secret::OWNER: owner},
        },
        "spec": {
            "workload": {"manifests": [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"namespace": namespace, "name": names::CA_SECRET, "labels": labels()},
                    "type": "Opaque",
                    "data": {"ca.crt": ca},
                },
            ]},
            "deleteOption": {"propagationPolicy": "Orphan"},
        },
    })
}

/// The work with what an argocd-operator on the managed cluster is given: what is said, else an ArgoCD with what the agent needs; and,
/// where the operator is somebody else's, with the right of OCM's agent to bring it.
///
/// Where an ArgoCD resource does not say where the principal is, it is told, in the place where argocd-pull-integration does
/// (`injectServerEndpoint`). The Secret with the agent's certificate is the one that OCM makes: argocd-pull-integration copies it
/// to another name, which is replaced.
#[must_use]
pub fn argocd_work(goc: (&str, &str), cluster: &str, wanted: &Wanted, server: &Server) -> Value {
    // With our operator the add-on brings it: OCM's agent forgets what it may not read any more, and an ArgoCD that goes takes time.
    let mut manifests = if wanted.operator { Vec::new() } else { vec![right()] };
    let said = wanted.argocd_manifests.clone();
    for mut manifest in said.unwrap_or_else(|| vec![argocd::default(wanted.mode)]) {
        if manifest["kind"] == "ArgoCD" {
            argocd::complete(&mut manifest, wanted, server);
        }
        manifests.push(manifest);
    }
    let mut annotations = owner(goc);
    if wanted.operator {
        annotations[names::OPERATED] = "true".into();
    }
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "namespace": cluster,
            "name": names::argocd_work(goc.0, goc.1),
            "labels": work_labels("argocd-cr"),
            "annotations": annotations,
        },
        "spec": {"workload": {"manifests": manifests}},
    })
}

fn work_labels(component: &str) -> Value {
    let mut labels = labels();
    labels[names::WORK_LABEL] = "true".into();
    labels["app.kubernetes.io/component"] = component.into();
    labels
}

/// OCM's agent gets what has this label; on its own it may do nothing with ArgoCD resources.
pub(super) fn right() -> Value {
    let mut labels = labels();
    labels["open-cluster-management.io/aggregate-to-work"] = "true".into();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "argocd-agent-addon:work-agent-argocds", "labels": labels},
        "rules": [{
            "apiGroups": ["argoproj.io"],
            "resources": ["argocds"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::argocd::COPIED_SECRET;
    use super::*;
    use crate::agent::Mode;

    fn server() -> Server {
        Server {
            address: "hub.example.com".into(),
            port: "443".into(),
        }
    }

    fn argocd(spec: &Value) -> Value {
        let manifest = json!({"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": {"name": "argocd"}, "spec": spec});
        let wanted = Wanted {
            argocd_manifests: Some(vec![manifest]),
            ..Wanted::default()
        };
        argocd_work(("argocd", "fleet"), "cluster1", &wanted, &server())["spec"]["workload"]["manifests"][1].clone()
    }

    #[test]
    fn the_ca_is_delivered_with_its_namespace_and_both_stay() {
        let work = ca_work("cluster1", "argocd", "PEM", "argocd/fleet");
        insta::assert_snapshot!(serde_json::to_string_pretty(&work).expect("it is JSON"), @r#"
        {
          "apiVersion": "work.open-cluster-management.io/v1",
          "kind": "ManifestWork",
          "metadata": {
            "annotations": {
              "apps.open-cluster-management.io/propagate-argocd-agent-ca": "true",
              "argocd-ocm-cmp.github.io/gitopscluster": "argocd/fleet"
            },
            "labels": {
              "app.kubernetes.io/component": "ca",
              "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
              "apps.open-cluster-management.io/gitopscluster": "true"
            },
            "name": "argocd-agent-ca-mw",
            "namespace": "cluster1"
          },
          "spec": {
            "deleteOption": {
              "propagationPolicy": "Orphan"
            },
            "workload": {
              "manifests": [
                {
                  "apiVersion": "v1",
                  "kind": "Namespace",
                  "metadata": {
                    "name": "argocd"
                  }
                },
                {
                  "apiVersion": "v1",
                  "data": {
                    "ca.crt": "UEVN"
                  },
                  "kind": "Secret",
                  "metadata": {
                    "labels": {
                      "app.kubernetes.io/managed-by": "argocd-ocm-cmp"
                    },
                    "name": "argocd-agent-ca",
                    "namespace": "argocd"
                  },
                  "type": "Opaque"
                }
              ]
            }
          }
        }
        "#);
    }

    #[test]
    fn an_argocd_resource_is_told_only_what_it_does_not_say() {
        let told = argocd(&json!({"argoCDAgent": {"agent": {"enabled": true}}}));
        assert_eq!(told["metadata"]["namespace"], "argocd");
        assert_eq!(
            told["spec"]["argoCDAgent"]["agent"],
            json!({
                "enabled": true,
                "client": {"principalServerAddress": "hub.example.com", "principalServerPort": "443"},
                "tls": {"secretName": names::CLIENT_SECRET, "rootCASecretName": "argocd-agent-ca"},
            })
        );
        let said = json!({"argoCDAgent": {"agent": {
            "client": {"principalServerAddress": "other", "principalServerPort": "1"},
            "tls": {"secretName": "mine", "rootCASecretName": "mine-too"},
        }}});
        assert_eq!(argocd(&said)["spec"], said);
        let copied = argocd(&json!({"argoCDAgent": {"agent": {"tls": {"secretName": COPIED_SECRET}}}}));
        assert_eq!(
            copied.pointer("/spec/argoCDAgent/agent/tls/secretName"),
            Some(&json!(names::CLIENT_SECRET))
        );
        assert_eq!(
            argocd(&json!({"extraConfig": {"agent.principal.server.port": "8443"}}))["spec"]["extraConfig"],
            json!({"agent.principal.server.address": "hub.example.com", "agent.principal.server.port": "8443"})
        );
    }

    #[test]
    fn our_operator_is_given_what_is_said_or_what_the_agent_needs() {
        let given = |mode, said: Option<Vec<Value>>| {
            let wanted = Wanted {
                mode,
                operator: true,
                argocd_manifests: said,
                ..Wanted::default()
            };
            let work = argocd_work(("argocd", "fleet"), "cluster1", &wanted, &server());
            assert_eq!(work["metadata"]["annotations"][names::OPERATED], "true");
            let manifests = work["spec"]["workload"]["manifests"].as_array();
            let [argocd] = &manifests.expect("a list")[..] else {
                panic!("{work}");
            };
            (argocd["metadata"].clone(), argocd["spec"].clone())
        };
        let (metadata, spec) = given(Mode::Managed, None);
        assert_eq!(metadata, json!({"name": "argocd", "namespace": "argocd"}));
        assert_eq!(
            spec,
            json!({
                "defaultClusterScopedRoleDisabled": true,
                "server": {"enabled": false},
                "controller": {"respectRBAC": "strict", "extraCommandArgs": ["--application-namespaces", "*"]},
                "argoCDAgent": {"agent": {
                    "enabled": true,
                    "creds": "mtls:client-certificate",
                    "allowedNamespaces": ["*"],
                    "client": {
                        "mode": "managed", "keepAliveInterval": "50s",
                        "principalServerAddress": "hub.example.com", "principalServerPort": "443",
                    },
                    "destinationBasedMapping": {"enabled": true, "createNamespace": true},
                    "tls": {"secretName": names::CLIENT_SECRET, "rootCASecretName": "argocd-agent-ca"},
                }},
            })
        );
        let (_, spec) = given(Mode::Autonomous, None);
        assert_eq!(spec["argoCDAgent"]["agent"].get("destinationBasedMapping"), None);
        assert_eq!(spec["argoCDAgent"]["agent"]["client"]["mode"], "autonomous");
        let said = json!({"kind": "ArgoCD", "metadata": {"name": "edge"}, "spec": {"defaultClusterScopedRoleDisabled": false}});
        let (metadata, spec) = given(Mode::Managed, Some(vec![said]));
        assert_eq!(metadata["name"], "edge");
        assert_eq!(spec["defaultClusterScopedRoleDisabled"], false);
    }

    #[test]
    fn what_cannot_be_told_is_left_as_it_is() {
        for spec in [
            json!("text"),
            json!({"argoCDAgent": {"agent": {"client": 1, "tls": []}}}),
        ] {
            assert_eq!(argocd(&spec)["spec"], spec);
        }
    }
}
