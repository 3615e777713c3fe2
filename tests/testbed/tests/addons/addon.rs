//! An add-on from templates: its objects on the hub, as a controller would write them.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::wait::{DEADLINE, eventually};
use testbed::{Hub, ManagedCluster, ObjectRef};

const ADDON: &str = "addon.open-cluster-management.io";
const PLACEMENT: &str = "cluster.open-cluster-management.io/v1beta1";

/// The namespace on the hub of an add-on's Placements and settings.
pub(crate) const NAMESPACE: &str = "argocd";

/// An add-on of that name, with a template, settings and Placements that are named after it.
pub(crate) struct AddOn<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) name: &'static str,
}

/// The signer with which all templates here register their agents. Only the tests sign for it.
pub(crate) const SIGNER: &str = "open-cluster-management.io/argocd-agent-addon";

impl AddOn<'_> {
    /// Returns the template's name: each has its own, because OCM looks templates up by name.
    pub(crate) fn template(&self, version: &str) -> String {
        format!("{}-{version}", self.name)
    }

    /// Creates a template with a namespace that outlives the add-on, two `ConfigMaps` and a Deployment, whose Pods run where the
    /// node selector permits.
    pub(crate) async fn write_template(&self, version: &str, node_selector: &Value, configs: &Value) -> Result<()> {
        let labels = json!({"app": self.name});
        let config_map = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "template"}, "data": data});
        let settings = json!({
            "version": version,
            "principal": "{{PRINCIPAL_ADDRESS}}:{{PRINCIPAL_PORT}}",
            "cluster": "{{CLUSTER_NAME}}",
            "namespace": "{{INSTALL_NAMESPACE}}",
            "unknown": "<{{UNKNOWN}}>",
        });
        let manifests = json!([
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "template", "annotations": {format!("{ADDON}/deletion-orphan"): ""}},
            },
            config_map("settings", settings),
            config_map("once", json!({"version": version})),
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "agent", "namespace": "template"},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": {"nodeSelector": node_selector, "containers": [{"name": "agent", "image": version}]},
                    },
                },
            },
        ]);
        let signing = json!({"name": "nobody-has-this", "namespace": NAMESPACE});
        let template = json!({
            "apiVersion": format!("{ADDON}/v1alpha1"),
            "kind": "AddOnTemplate",
            "metadata": {"name": self.template(version)},
            "spec": {
                "addonName": self.name,
                "agentSpec": {"workload": {"manifests": manifests}, "manifestConfigs": configs},
                "registration": [{"type": "CustomSigner", "customSigner": {"signerName": SIGNER, "signingCA": signing}}],
            },
        });
        self.hub.apply(&template).await.map(drop)
    }

    /// Creates the values of the templates' variables, and the namespace that replaces theirs.
    pub(crate) async fn write_settings(&self) -> Result<()> {
        let settings = json!({
            "apiVersion": format!("{ADDON}/v1alpha1"),
            "kind": "AddOnDeploymentConfig",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {
                "agentInstallNamespace": self.name,
                "customizedVariables": [
                    {"name": "PRINCIPAL_ADDRESS", "value": "hub.example.com"},
                    {"name": "PRINCIPAL_PORT", "value": "8443"},
                ],
            },
        });
        self.hub.apply(&settings).await.map(drop)
    }

    /// Creates a Placement that OCM does not schedule, and its decisions. The first Placement has the add-on's name.
    pub(crate) async fn decide(&self, placement: &str, clusters: &[&str]) -> Result<()> {
        self.hub
            .apply(&json!({
                "apiVersion": PLACEMENT,
                "kind": "Placement",
                "metadata": {
                    "name": placement,
                    "namespace": NAMESPACE,
                    "annotations": {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"},
                },
                "spec": {},
            }))
            .await?;
        let decision = json!({
            "apiVersion": PLACEMENT,
            "kind": "PlacementDecision",
            "metadata": {
                "name": format!("{placement}-decision-1"),
                "namespace": NAMESPACE,
                "labels": {
                    "cluster.open-cluster-management.io/placement": placement,
                    "cluster.open-cluster-management.io/decision-group-index": "0",
                    "cluster.open-cluster-management.io/decision-group-name": "",
                },
            },
        });
        self.hub.apply(&decision).await?;
        let decisions: Vec<_> = clusters
            .iter()
            .map(|cluster| json!({"clusterName": cluster, "reason": ""}))
            .collect();
        let status = json!({"status": {"decisions": decisions}});
        self.hub.patch_status(&ObjectRef::of(&decision), &status).await?;
        Ok(())
    }

    /// Creates the add-on itself: the versions of the template, by Placement, for one cluster after the other, and the default
    /// version.
    pub(crate) async fn install(&self, versions: &[(&str, &str)], default: &str) -> Result<()> {
        let config = |resource: &str, name: &str, namespace: &str| json!({"group": ADDON, "resource": resource, "name": name, "namespace": namespace});
        let placements: Vec<_> = versions
            .iter()
            .map(|(placement, version)| {
                json!({
                    "name": placement,
                    "namespace": NAMESPACE,
                    "configs": [
                        config("addontemplates", &self.template(version), ""),
                        config("addondeploymentconfigs", self.name, NAMESPACE),
                    ],
                    "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}},
                })
            })
            .collect();
        let addon = json!({
            "apiVersion": format!("{ADDON}/v1alpha1"),
            "kind": "ClusterManagementAddOn",
            "metadata": {"name": self.name},
            "spec": {
                "addOnMeta": {"displayName": self.name},
                "supportedConfigs": [
                    {"group": ADDON, "resource": "addontemplates", "defaultConfig": {"name": self.template(default)}},
                    {"group": ADDON, "resource": "addondeploymentconfigs"},
                ],
                "installStrategy": {"type": "Placements", "placements": placements},
            },
        });
        self.hub.apply(&addon).await.map(drop)
    }

    /// Returns the add-on on one cluster.
    pub(crate) fn on(&self, cluster: &str) -> ObjectRef {
        ObjectRef::namespaced(&format!("{ADDON}/v1alpha1"), "ManagedClusterAddOn", cluster, self.name)
    }

    /// Returns the work of the add-on.
    pub(crate) fn work(&self, cluster: &str) -> ObjectRef {
        ObjectRef::manifest_work(cluster, &format!("addon-{}-deploy-0", self.name))
    }

    /// Returns one of its objects on a cluster.
    pub(crate) fn config_map(&self, name: &str) -> ObjectRef {
        ObjectRef::config_map(self.name, name)
    }

    /// Waits until OCM reports that a version of the template is applied on a cluster.
    pub(crate) async fn wait_for_version(&self, cluster: &ManagedCluster, version: &str) -> Result<Value> {
        let template = self.template(version);
        self.hub
            .wait_for(&self.on(cluster.name()), |it| applied_template(it) == Some(&*template))
            .await
    }

    /// Returns the number of requests of the add-on on a cluster.
    pub(crate) async fn requests_of(&self, cluster: &str) -> Result<usize> {
        let requests = self.requests(cluster).await?;
        Ok(requests.len())
    }

    /// Waits for a certificate request of the add-on on a cluster that is not one of those.
    pub(crate) async fn wait_for_request(&self, cluster: &str, known: &[&Value]) -> Result<Value> {
        let known: Vec<_> = known.iter().map(|request| &request["metadata"]["name"]).collect();
        let found = eventually("the agent requests a certificate", DEADLINE, async || {
            let requests = self.requests(cluster).await.ok()?;
            requests
                .into_iter()
                .find(|request| !known.contains(&&request["metadata"]["name"]))
        });
        found.await.with_context(|| format!("{} on {cluster}", self.name))
    }

    async fn requests(&self, cluster: &str) -> Result<Vec<Value>> {
        let prefix = format!("addon-{cluster}-{}-", self.name);
        let (api_version, kind) = ("certificates.k8s.io/v1", "CertificateSigningRequest");
        let mut requests = self.hub.list(api_version, kind).await?;
        requests.retain(|request| {
            let name = request["metadata"]["name"].as_str();
            name.is_some_and(|name| name.starts_with(&prefix))
        });
        for request in &mut requests {
            // Items of a list have no apiVersion and kind.
            request["apiVersion"] = api_version.into();
            request["kind"] = kind.into();
        }
        Ok(requests)
    }
}

/// Returns the template that OCM reports as applied, of an add-on on a cluster.
pub(crate) fn applied_template(addon: &Value) -> Option<&str> {
    let references = addon["status"]["configReferences"].as_array()?;
    let template = references
        .iter()
        .find(|reference| reference["resource"] == "addontemplates")?;
    let (applied, desired) = (&template["lastAppliedConfig"], &template["desiredConfig"]);
    (applied == desired).then(|| applied["name"].as_str())?
}
