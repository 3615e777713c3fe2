//! The hub, its clusters, and the controller as shipped.

use crate::agent_controller::ACCOUNT;
use crate::agent_writes;
use crate::controller;
use crate::discovery;
use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testbed::process::Process;
use testbed::{Arguments, Hub, ManagedCluster, ObjectRef, wait};

/// The address of the principal.
pub(crate) const ADDRESS: &str = "192.0.2.7";
pub(crate) const PORT: &str = "443";

const ADDONS: &str = "addon.open-cluster-management.io/v1alpha1";

pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) cluster1: ManagedCluster,
    pub(crate) cluster2: ManagedCluster,
    controller: Process,
}

impl Stage {
    /// Starts all.
    pub(crate) async fn start() -> Result<Self> {
        let (hub, cluster1, cluster2) = joined_hub().await?;
        for name in ["cluster1", "cluster2"] {
            hub.patch(
                &ObjectRef::managed_cluster(name),
                &json!({"metadata": {"labels": {"env": "test"}}}),
            )
            .await?;
        }
        hub.bind_global_cluster_set().await?;
        hub.create(&placement_named("test-clusters", &placement_spec())).await?;
        assign_users(&cluster2).await?;
        hub.create(&discovery::routes()).await?;
        hub.create(&principal_service()).await?;
        balance(&hub).await?;
        hub.create(&principal_deployment()).await?;
        let controller = controller::start(&hub, &[]).await?;
        Ok(Self {
            hub,
            cluster1,
            cluster2,
            controller,
        })
    }

    pub(crate) fn clusters(&self) -> [&ManagedCluster; 2] {
        [&self.cluster1, &self.cluster2]
    }

    /// Changes the spec of the GitOpsCluster.
    pub(crate) async fn patch(&self, spec: &Value) -> Result<()> {
        self.hub.patch(&fleet(), &json!({"spec": spec})).await?;
        Ok(())
    }

    /// Checks that no request of the controller was denied, and that it has used every kind of permission that
    /// deploy/deploy_argocd_agent.yaml grants.
    pub(crate) fn check_permissions(&self) -> Result<()> {
        let log = std::fs::read_to_string(self.controller.log())?;
        ensure!(!log.contains("forbidden"), "{log}");
        let requests = self.hub.requests_by(ACCOUNT)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let used: BTreeSet<(String, String)> = requests
            .iter()
            .map(|event| {
                let object = &event["objectRef"];
                let part = object["subresource"].as_str().map(|part| format!("/{part}"));
                (
                    text(&object["resource"]) + &part.unwrap_or_default(),
                    text(&event["verb"]),
                )
            })
            .collect();
        let text = include_str!("../../deploy/deploy_argocd_agent.yaml");
        let objects = self
            .hub
            .kubectl_with_input("create --dry-run=client -o json -f -", text)?;
        let objects: Vec<Value> = serde_json::Deserializer::from_str(&objects)
            .into_iter()
            .collect::<Result<_, _>>()?;
        let rules = objects.iter().filter_map(|object| object["rules"].as_array()).flatten();
        for rule in rules {
            let list = |key: &str| rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            for resource in list("resources").filter(|resource| *resource != "signers") {
                // On API servers without streaming lists, the client lists instead.
                for verb in list("verbs").filter(|verb| *verb != "list") {
                    // These tests neither adopt objects nor repair changes by others, and OCM approves most requests before the
                    // controller does.
                    let put_right = "managedclusteraddons placements placementdecisions addondeploymentconfigs \
                                     certificatesigningrequests/approval";
                    let is_of_another = verb == "patch" && put_right.split(' ').any(|kind| kind == resource);
                    let is_used = used.contains(&(resource.to_owned(), verb.to_owned()));
                    ensure!(is_used || is_of_another, "not used: {verb} {resource}");
                }
            }
        }
        Ok(())
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.controller.terminate().await?;
        Ok(())
    }
}

/// Starts a hub that limits what agents may change, and two clusters that join it under these limits.
pub(crate) async fn joined_hub() -> Result<(Hub, ManagedCluster, ManagedCluster)> {
    let hub = Hub::start().await?;
    agent_writes::limit(&hub).await?;
    let (cluster1, cluster2) = hub.join_clusters().await?;
    Ok((hub, cluster1, cluster2))
}

/// Returns the Placement of this name, which selects clusters once [`Hub::bind_global_cluster_set`] allows it.
pub(crate) fn placement_named(name: &str, spec: &Value) -> Value {
    ObjectRef::placement(name).with(json!({"spec": spec}))
}

/// Runs our program against the hub, and returns its output.
pub(crate) fn run(hub: &Hub, arguments: &(impl Arguments + ?Sized)) -> Result<String> {
    hub.run(env!("CARGO_BIN_EXE_argocd-ocm-cmp"), arguments)
}

/// Makes a cluster assign the users of Pods, as OpenShift does, and waits until it refuses Pods that name their own.
pub(crate) async fn assign_users(cluster: &ManagedCluster) -> Result<()> {
    for object in assigned_users() {
        cluster.create(&object).await?;
    }
    cluster
        .wait_for(&ObjectRef::service_account("default", "default"), |_| true)
        .await?;
    let container = json!({"name": "it", "image": "example.com/it:v1", "securityContext": {"runAsUser": 999}});
    let pod = ObjectRef::namespaced("v1", "Pod", "default", "it").with(json!({"spec": {"containers": [container]}}));
    wait::eventually("Pods must not name their user", wait::DEADLINE, async || {
        let created = cluster.kubectl_with_input("create --dry-run=server -f -", &pod.to_string());
        created
            .is_err_and(|error| error.to_string().contains(USERS_ARE_ASSIGNED))
            .then_some(())
    })
    .await
}

const USERS_ARE_ASSIGNED: &str = "users-are-assigned";

/// Returns the rule of OpenShift about the users of Pods: only a Pod whose ServiceAccount may use `nonroot-v2` names its user.
fn assigned_users() -> [Value; 3] {
    let may_choose = "authorizer.serviceAccount(object.metadata.namespace, object.spec.serviceAccountName)\
                      .group('security.openshift.io').resource('securitycontextconstraints').name('nonroot-v2').check('use').allowed()";
    let users = "has(object.spec.securityContext) && (has(object.spec.securityContext.runAsUser) || has(object.spec.securityContext.runAsGroup) || has(object.spec.securityContext.fsGroup)) || \
                 (object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])).exists(it, \
                 has(it.securityContext) && (has(it.securityContext.runAsUser) || has(it.securityContext.runAsGroup)))";
    let name = USERS_ARE_ASSIGNED;
    [
        ObjectRef::cluster_role("system:openshift:scc:nonroot-v2").with(json!({
            "rules": [{
                "apiGroups": ["security.openshift.io"],
                "resources": ["securitycontextconstraints"],
                "resourceNames": ["nonroot-v2"],
                "verbs": ["use"],
            }],
        })),
        ObjectRef::cluster("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", name).with(json!({"spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
            ]},
            "validations": [{"expression": format!("!({users}) || {may_choose}")}],
        }})),
        ObjectRef::cluster(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
            name,
        )
        .with(json!({"spec": {"policyName": name, "validationActions": ["Deny"]}})),
    ]
}

fn placement_spec() -> Value {
    let selector = json!({"labelSelector": {"matchLabels": {"env": "test"}}});
    json!({"predicates": [{"requiredClusterSelector": selector}]})
}

pub(crate) fn service() -> ObjectRef {
    ObjectRef::namespaced("v1", "Service", "argocd", "argocd-agent-principal")
}

/// Gives the principal's Service the address of a load balancer.
pub(crate) async fn balance(hub: &Hub) -> Result<()> {
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}});
    hub.patch_status(&service(), &status).await.map(drop)
}

fn principal_service() -> Value {
    service().with(json!({
        "spec": {"type": "LoadBalancer", "ports": [{"name": "https", "port": 443, "targetPort": 8443}]},
    }))
}

fn principal_deployment() -> Value {
    let labels = json!({"app.kubernetes.io/name": "argocd-agent-principal"});
    let container = json!({"name": "argocd-agent-principal", "image": "example.com/argocd-agent:v1"});
    principal().with(json!({"spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }}))
}

/// Returns the GitOpsCluster of these tests.
pub(crate) fn gitops_cluster() -> Value {
    let placement = json!({"kind": "Placement", "name": "test-clusters"});
    fleet().with(json!({"spec": {"placementRef": placement, "argoCDAgentAddon": {}}}))
}

pub(crate) fn fleet() -> ObjectRef {
    ObjectRef::gitops_cluster("fleet")
}

pub(crate) fn placement() -> ObjectRef {
    ObjectRef::placement("test-clusters")
}

pub(crate) fn addon(cluster: &str) -> ObjectRef {
    ObjectRef::managed_cluster_addon(cluster, "argocd-agent-addon")
}

pub(crate) fn management() -> ObjectRef {
    ObjectRef::cluster_management_addon("argocd-agent-addon")
}

pub(crate) fn template(name: &str) -> ObjectRef {
    ObjectRef::cluster(ADDONS, "AddOnTemplate", name)
}

pub(crate) fn principal() -> ObjectRef {
    ObjectRef::deployment("argocd", "argocd-agent-principal")
}

/// Returns the Deployment of the agent on a managed cluster.
pub(crate) fn agent() -> ObjectRef {
    ObjectRef::deployment("argocd", "argocd-agent-agent")
}

/// Returns the image of the agent.
pub(crate) fn image(deployment: &Value) -> &str {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let mut images = containers
        .into_iter()
        .flatten()
        .filter_map(|container| container["image"].as_str());
    images.next().unwrap_or_default()
}

/// Returns a value of a Secret.
pub(crate) fn data(secret: &Value, key: &str) -> Result<String> {
    let value = ByteString::deserialize(&secret["data"][key]).with_context(|| format!("no {key}"))?;
    Ok(String::from_utf8(value.0)?)
}
