//! The ManifestWorks that the controller delivers to managed clusters in addition to the add-on.

use super::manifests::{ARGOCD_RESOURCE, ARGOCD_RESOURCE_RIGHTS, Parameters};
use super::{Server, labels, metadata};
use hub_state::DesiredAgent;
use k8s_openapi::ByteString;
use ocm::argocd_agent as names;
use primitives::object_ref::ObjectRef;
use serde_json::{Value, json};

/// Returns the ManifestWork with the CA certificates and their Namespace.
///
/// Both objects stay on the cluster when the ManifestWork is deleted or the namespace changes: deleting a Namespace deletes all
/// of its contents, and the certificates are public.
pub fn ca_work(gitops_cluster: &ObjectRef, cluster: &str, namespace: &str, bundle_pem: &str) -> Value {
    let ca = ByteString(bundle_pem.as_bytes().to_vec());
    let spec = json!({
        "workload": {"manifests": [
            // OCM copies the image pull secret of its own images into Namespaces with this label.
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {"addon.open-cluster-management.io/namespace": "true"}},
            },
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"namespace": namespace, "name": names::CA_SECRET, "labels": labels()},
                "type": "Opaque",
                "data": {"ca.crt": ca},
            },
        ]},
        "deleteOption": {"propagationPolicy": "Orphan"},
    });
    let mut work = work(gitops_cluster, cluster, (names::CA_WORK, "ca"), &spec);
    work["metadata"]["annotations"][names::CA_ANNOTATION] = "true".into();
    work
}

/// Returns the ManifestWork for an argocd-operator on the managed cluster: the configured manifests, otherwise an ArgoCD resource
/// with the settings that the agent needs. For an operator that is not ours, it also contains the permission of OCM's agent to
/// apply the ArgoCD resource.
///
/// An ArgoCD resource without the address of the principal gets it in the same fields as with argocd-pull-integration
/// (`injectServerEndpoint`). The Secret with the agent's certificate is the one that OCM creates: argocd-pull-integration copies
/// it to another name, which is replaced. An agent without an image gets `image`, as with argocd-pull-integration; our operator
/// has it as its default.
pub fn argocd_work(
    gitops_cluster: &ObjectRef,
    cluster: &str,
    desired: &DesiredAgent,
    server: &Server,
    image: Option<&str>,
) -> Value {
    // With our operator the add-on contains the permission: OCM's agent stops tracking objects that it can no longer read, and
    // the deletion of an ArgoCD takes time.
    let parameters = Parameters::new(desired.mode);
    let mut manifests = if desired.operator {
        Vec::new()
    } else {
        parameters.manifests(ARGOCD_RESOURCE_RIGHTS)
    };
    let configured = desired.argocd_manifests.clone();
    for mut manifest in configured.unwrap_or_else(|| parameters.manifests(ARGOCD_RESOURCE)) {
        if manifest["kind"] == "ArgoCD" {
            complete(&mut manifest, desired, server, image);
        }
        manifests.push(manifest);
    }
    let name = names::argocd_work(&gitops_cluster.namespace, &gitops_cluster.name);
    let spec = json!({"workload": {"manifests": manifests}});
    let mut work = work(gitops_cluster, cluster, (&name, "argocd-cr"), &spec);
    if desired.operator {
        work["metadata"]["annotations"][names::OPERATOR_MANAGED] = "true".into();
    }
    work
}

fn work(gitops_cluster: &ObjectRef, cluster: &str, (name, component): (&str, &str), spec: &Value) -> Value {
    let mut metadata = metadata(gitops_cluster, cluster, name);
    metadata["labels"][names::WORK_LABEL] = "true".into();
    metadata["labels"]["app.kubernetes.io/component"] = component.into();
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": metadata,
        "spec": spec,
    })
}

/// Returns the name of the ArgoCD resource, which is part of the names of the ServiceAccounts that the operator creates.
pub(super) fn argocd_name(desired: &DesiredAgent) -> String {
    let mut manifests = desired.argocd_manifests.iter().flatten();
    let argocd = manifests.find(|manifest| manifest["kind"] == "ArgoCD");
    let name = argocd.and_then(|manifest| manifest["metadata"]["name"].as_str());
    name.unwrap_or(ARGOCD).to_owned()
}

/// The default name of the ArgoCD resource, as in argocd-pull-integration.
const ARGOCD: &str = "argocd";

/// The name of the Secret to which argocd-pull-integration's add-on copies the agent's certificate.
const COPIED_SECRET: &str = "argocd-agent-open-cluster-management.io-argocd-agent-addon-client-cert";

/// Adds the required settings that an ArgoCD resource does not have.
fn complete(argocd: &mut Value, desired: &DesiredAgent, server: &Server, image: Option<&str>) {
    let mut defaults = json!({"metadata": {"namespace": desired.namespace}, "spec": {}});
    if desired.operator {
        // Our operator may not grant all permissions, which the default cluster-scoped roles do.
        defaults["spec"]["defaultClusterScopedRoleDisabled"] = true.into();
    }
    if let Some(agent @ Value::Object(_)) = argocd.pointer_mut("/spec/argoCDAgent/agent") {
        if let Some(name) = agent
            .pointer_mut("/tls/secretName")
            .filter(|name| **name == COPIED_SECRET)
        {
            *name = Value::Null;
        }
        let mut settings = json!({
            "client": {"principalServerAddress": server.address, "principalServerPort": server.port},
            "tls": {"secretName": names::CLIENT_SECRET, "rootCASecretName": names::CA_SECRET},
        });
        if let Some(image) = image.filter(|_| !desired.operator) {
            settings["image"] = image.into();
        }
        defaults["spec"]["argoCDAgent"] = json!({"agent": settings});
    } else {
        defaults["spec"]["extraConfig"] = json!({
            "agent.principal.server.address": server.address,
            "agent.principal.server.port": server.port,
        });
    }
    fill(argocd, &defaults);
}

/// Sets fields that are missing, null or empty. Leaves fields of another type.
fn fill(value: &mut Value, defaults: &Value) {
    match (value, defaults) {
        (Value::Object(fields), Value::Object(defaults)) => {
            for (key, default) in defaults {
                fill(fields.entry(key.clone()).or_insert(Value::Null), default);
            }
        }
        (value, default) if value.is_null() || *value == "" => *value = default.clone(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hub_state::model::Mode;

    fn server() -> Server {
        Server {
            address: "hub.example.com".into(),
            port: "443".into(),
        }
    }

    fn fleet() -> ObjectRef {
        ObjectRef::new("argocd", "fleet")
    }

    fn argocd(spec: &Value) -> Value {
        let manifest = json!({"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "metadata": {"name": "argocd"}, "spec": spec});
        let desired = DesiredAgent {
            argocd_manifests: Some(vec![manifest]),
            ..DesiredAgent::default()
        };
        let image = Some("registry.example.com/agent:v1");
        argocd_work(&fleet(), "cluster1", &desired, &server(), image)["spec"]["workload"]["manifests"][1].clone()
    }

    #[test]
    fn ca_work_orphans_the_secret_and_its_namespace() {
        let work = ca_work(&fleet(), "cluster1", "argocd", "PEM");
        assert_eq!(
            work["metadata"],
            json!({
                "namespace": "cluster1",
                "name": "argocd-agent-ca-mw",
                "annotations": {
                    "apps.open-cluster-management.io/propagate-argocd-agent-ca": "true",
                    "argocd-ocm-cmp.github.io/gitopscluster": "argocd/fleet",
                },
                "labels": {
                    "app.kubernetes.io/component": "ca",
                    "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
                    "apps.open-cluster-management.io/gitopscluster": "true",
                },
            })
        );
        assert_eq!(work["spec"]["deleteOption"], json!({"propagationPolicy": "Orphan"}));
        let manifests = &work["spec"]["workload"]["manifests"];
        let labels = json!({"addon.open-cluster-management.io/namespace": "true"});
        assert_eq!(manifests[0]["metadata"], json!({"name": "argocd", "labels": labels}));
        assert_eq!(manifests[1]["data"], json!({"ca.crt": "UEVN"}));
    }

    #[test]
    fn completes_only_missing_fields_of_an_argocd_resource() {
        let resource = argocd(&json!({"argoCDAgent": {"agent": {"enabled": true}}}));
        assert_eq!(resource["metadata"]["namespace"], "argocd");
        assert_eq!(
            resource["spec"]["argoCDAgent"]["agent"],
            json!({
                "enabled": true,
                "image": "registry.example.com/agent:v1",
                "client": {"principalServerAddress": "hub.example.com", "principalServerPort": "443"},
                "tls": {"secretName": names::CLIENT_SECRET, "rootCASecretName": "argocd-agent-ca"},
            })
        );
        let configured = json!({"argoCDAgent": {"agent": {
            "image": "mine:v1",
            "client": {"principalServerAddress": "other", "principalServerPort": "1"},
            "tls": {"secretName": "mine", "rootCASecretName": "mine-too"},
        }}});
        assert_eq!(argocd(&configured)["spec"], configured);
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
    fn gives_our_operator_the_configured_or_a_default_argocd() {
        let given = |mode, configured: Option<Vec<Value>>| {
            let desired = DesiredAgent {
                mode,
                operator: true,
                argocd_manifests: configured,
                ..DesiredAgent::default()
            };
            let work = argocd_work(&fleet(), "cluster1", &desired, &server(), Some("agent:v1"));
            assert_eq!(work["metadata"]["annotations"][names::OPERATOR_MANAGED], "true");
            let manifests = work["spec"]["workload"]["manifests"].as_array();
            let [argocd] = &manifests.expect("a list")[..] else {
                panic!("{work}");
            };
            (argocd["metadata"].clone(), argocd["spec"].clone())
        };
        let (metadata, spec) = given(Mode::Managed, None);
        assert_eq!(metadata, json!({"name": "argocd", "namespace": "argocd"}));
        assert_eq!(spec["defaultClusterScopedRoleDisabled"], true);
        let agent = &spec["argoCDAgent"]["agent"];
        assert_eq!(agent["destinationBasedMapping"]["enabled"], true);
        assert_eq!(agent["client"]["mode"], "managed");
        assert_eq!(agent["client"]["principalServerAddress"], "hub.example.com");
        assert_eq!(agent["tls"]["rootCASecretName"], names::CA_SECRET);
        let (_, spec) = given(Mode::Autonomous, None);
        assert_eq!(spec["argoCDAgent"]["agent"].get("destinationBasedMapping"), None);
        assert_eq!(spec["argoCDAgent"]["agent"]["client"]["mode"], "autonomous");
        let configured = json!({"kind": "ArgoCD", "metadata": {"name": "edge"}, "spec": {"defaultClusterScopedRoleDisabled": false}});
        let (metadata, spec) = given(Mode::Managed, Some(vec![configured]));
        assert_eq!(metadata["name"], "edge");
        assert_eq!(spec["defaultClusterScopedRoleDisabled"], false);
    }

    #[test]
    fn leaves_malformed_argocd_specs_unchanged() {
        for spec in [
            json!("text"),
            json!({"argoCDAgent": {"agent": {"image": "mine:v1", "client": 1, "tls": []}}}),
        ] {
            assert_eq!(argocd(&spec)["spec"], spec);
        }
    }
}
