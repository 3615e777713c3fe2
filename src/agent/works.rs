//! What we deliver to managed clusters beside the add-on.

use super::{Server, Wanted, labels, names, owner};
use k8s_openapi::ByteString;
use serde_json::{Map, Value, json};

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

/// The work with what an argocd-operator on the managed cluster is given, and with the right of OCM's agent to bring it.
///
/// Where an ArgoCD resource does not say where the principal is, it is told, in the place where argocd-pull-integration does
/// (`injectServerEndpoint`). The Secret with the agent's certificate is the one that OCM makes: argocd-pull-integration copies it
/// to another name, which is replaced.
#[must_use]
pub fn argocd_work(goc: (&str, &str), cluster: &str, wanted: &Wanted, server: &Server) -> Value {
    let mut manifests = vec![right()];
    for manifest in wanted.argocd_manifests.iter().flatten() {
        let mut manifest = manifest.clone();
        if manifest["kind"] == "ArgoCD" {
            complete(&mut manifest, &wanted.namespace, server);
        }
        manifests.push(manifest);
    }
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "namespace": cluster,
            "name": names::argocd_work(goc.0, goc.1),
            "labels": work_labels("argocd-cr"),
            "annotations": owner(goc),
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
fn right() -> Value {
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

/// Where argocd-pull-integration's add-on copies the agent's certificate to.
const COPIED_SECRET: &str = "argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert";

fn complete(argocd: &mut Value, namespace: &str, server: &Server) {
    if let Some(metadata) = child(argocd, "metadata") {
        fill(metadata, "namespace", namespace);
    }
    let Some(spec) = child(argocd, "spec") else { return };
    let agent = spec.get_mut("argoCDAgent").and_then(|agent| agent.get_mut("agent"));
    if let Some(agent @ Value::Object(_)) = agent {
        if let Some(client) = child(agent, "client") {
            fill(client, "principalServerAddress", &server.address);
            fill(client, "principalServerPort", &server.port);
        }
        if let Some(tls) = child(agent, "tls") {
            if tls.get("secretName").is_some_and(|name| name == COPIED_SECRET) {
                tls.remove("secretName");
            }
            fill(tls, "secretName", names::CLIENT_SECRET);
            fill(tls, "rootCASecretName", names::CA_SECRET);
        }
    } else if let Some(Value::Object(extra)) = Some(spec.entry("extraConfig").or_insert_with(|| json!({}))) {
        fill(extra, "agent.principal.server.address", &server.address);
        fill(extra, "agent.principal.server.port", &server.port);
    }
}

/// The object in a field, which is made if there is none; nothing where something else is.
fn child<'v>(value: &'v mut Value, field: &str) -> Option<&'v mut Map<String, Value>> {
    let fields = value.as_object_mut()?;
    fields.entry(field).or_insert_with(|| json!({})).as_object_mut()
}

/// Says what is not said.
fn fill(fields: &mut Map<String, Value>, field: &str, value: &str) {
    let is_said = fields.get(field).is_some_and(|said| !said.is_null() && said != "");
    if !is_said {
        fields.insert(field.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_cannot_be_told_is_left_as_it_is() {
        for spec in [
            json!("text"),
            json!({"argoCDAgent": {"agent": {"client": 1, "tls": []}}}),
        ] {
            assert_eq!(argocd(&spec)["spec"], spec);
        }
    }
}
