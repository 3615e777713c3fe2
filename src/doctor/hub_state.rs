//! The state of a hub as read: all of single objects, and the checked fields of kinds with many objects.

use super::controller::ControllerPod;
use super::rights::Permission;
use crate::diagnosis::{DiagnosedApplication, DiagnosedCluster};
use crate::install::{APPLICATION_CONTROLLER, CONTROLLER, LIVE, PRINCIPALS, REPO_SERVER, component_of};
use crate::workload::{item, name, named};
use jiff::{SignedDuration, Timestamp};
use manifest::text::one_line;
use primitives::resource::Resource;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The result of a lookup.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Lookup<T> {
    /// It exists.
    Found(T),
    /// It does not exist.
    #[default]
    NotFound,
    /// We are not permitted to read it, for this reason.
    Refused(String),
}

impl<T> Lookup<T> {
    /// Returns the value, if it exists.
    pub(crate) fn found(&self) -> Option<&T> {
        match self {
            Self::Found(value) => Some(value),
            Self::NotFound | Self::Refused(_) => None,
        }
    }

    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Lookup<U> {
        match self {
            Self::Found(value) => Lookup::Found(convert(value)),
            Self::NotFound => Lookup::NotFound,
            Self::Refused(why) => Lookup::Refused(why),
        }
    }
}

impl<T> Lookup<Vec<T>> {
    /// Returns the objects, as far as they exist and could be read.
    pub(crate) fn items(&self) -> &[T] {
        self.found().map_or(&[], Vec::as_slice)
    }
}

impl Lookup<Value> {
    /// Returns a text in the data of a ConfigMap, as far as it exists and could be read.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.found()?["data"][key].as_str()
    }
}

/// A node, as its kubelet describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HubNode {
    pub(crate) name: String,
    /// True if its operating system is Linux.
    pub(crate) is_linux: bool,
    /// The version of its kernel.
    pub(crate) kernel: String,
    /// The name of its distribution.
    pub(crate) system: String,
}

impl HubNode {
    /// Reads a Node. The kubelet may not have described it yet.
    pub(crate) fn from_object(node: &Value) -> Self {
        let info = &node["status"]["nodeInfo"];
        let text = |value: &Value| one_line(value.as_str().unwrap_or_default()).into_owned();
        Self {
            name: text(&node["metadata"]["name"]),
            is_linux: info["operatingSystem"] == "linux",
            kernel: text(&info["kernelVersion"]),
            system: text(&info["osImage"]),
        }
    }
}

/// The name of the plugin: of its ConfigMap, its container, and in Applications.
pub(crate) const PLUGIN: &str = "argocd-ocm-cmp";
/// The label of works for argocd-agent.
pub(crate) const AGENT_LABEL: &str = ocm::argocd_agent::WORK_LABEL;

/// The time that something may take before it is reported as missing, and the maximum clock skew.
pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// All state that was read.
#[derive(Debug, Default)]
pub(crate) struct HubState {
    /// Argo CD's namespace, from the arguments.
    pub(crate) namespace: String,
    /// The ConfigMap argocd-cm in that namespace.
    pub(crate) config: Lookup<Value>,
    /// The namespaces that have an argocd-cm, if this one has none.
    pub(crate) argocd_namespaces: Lookup<Vec<String>>,
    /// The Deployments in that namespace.
    pub(crate) deployments: Lookup<Vec<Value>>,
    /// The StatefulSets in that namespace.
    pub(crate) stateful_sets: Lookup<Vec<Value>>,
    /// The Pods in that namespace.
    pub(crate) pods: Lookup<Vec<Value>>,
    /// The Pods whose plugin has logged that it runs tools unconfined, and the resources that these can reach.
    pub(crate) unconfined: Lookup<BTreeMap<String, String>>,
    /// The nodes of the hub.
    pub(crate) nodes: Lookup<Vec<HubNode>>,
    /// The plugin's ConfigMap.
    pub(crate) plugin: Lookup<Value>,
    /// Our ConfigMaps that do not exist and without which Pods of Argo CD do not start, each after the name of the Deployment.
    pub(crate) missing_mounts: Vec<(String, String)>,
    /// The ConfigMap with the health rules of the user.
    pub(crate) health_rules: Lookup<Value>,
    /// The ConfigMap with the controller's settings.
    pub(crate) settings: Lookup<Value>,
    /// The Leases in that namespace.
    pub(crate) leases: Lookup<Vec<Value>>,
    /// The served resources of each API version, as named in paths.
    pub(crate) apis: BTreeMap<String, Lookup<BTreeSet<String>>>,
    /// The CRD of ManifestWorks.
    pub(crate) work_crd: Lookup<Value>,
    /// The ClusterManagers, which configure OCM's operator.
    pub(crate) cluster_managers: Lookup<Vec<Value>>,
    /// The Applications that use the plugin, or were meant to.
    pub(crate) applications: Lookup<Vec<DiagnosedApplication>>,
    /// The pairs of an Application of this Argo CD and one of another that list the same works.
    pub(crate) with_works_of_another: BTreeSet<String>,
    /// The AppProjects in Argo CD's namespace.
    pub(crate) projects: Lookup<BTreeMap<String, Project>>,
    /// The managed clusters.
    pub(crate) clusters: Lookup<BTreeMap<String, DiagnosedCluster>>,
    /// The works of Argo CD's Applications.
    pub(crate) works: Lookup<Vec<HubWork>>,
    /// The ManifestWorkReplicaSets of Argo CD's Applications.
    pub(crate) sets: Lookup<Vec<ReplicaSet>>,
    /// The Placements that select no managed cluster, with OCM's reasons.
    pub(crate) unsatisfied_placements: Lookup<BTreeMap<String, String>>,
    /// The ClusterManagementAddOn of argocd-agent.
    pub(crate) management: Lookup<Value>,
    /// The ConfigMap with the settings of argocd-agent's own manifests.
    pub(crate) agent_params: Lookup<Value>,
    /// The ConfigMap with the settings of Argo CD's processes.
    pub(crate) cmd_params: Lookup<Value>,
    /// The GitOpsClusters whose agents have another version than the principal, by namespace and name.
    pub(crate) other_versions: Lookup<BTreeSet<String>>,
    /// The managed clusters that have the add-on, with its availability.
    pub(crate) addons: Lookup<BTreeMap<String, bool>>,
    /// The admission policies of this program.
    pub(crate) policies: Lookup<Vec<Value>>,
    /// The bindings of these policies.
    pub(crate) bindings: Lookup<Vec<Value>>,
    /// The view into the clusters, if it is installed.
    pub(crate) live: Option<LiveState>,
    /// The needed permissions, with the result of their check; absent if none are needed.
    pub(crate) permissions: Lookup<Vec<(Permission, bool)>>,
}

/// The parts of the view into the clusters.
#[derive(Debug, Default)]
pub(crate) struct LiveState {
    /// True if the Secret of the service has a token for argocd-server.
    pub(crate) has_token: Lookup<bool>,
    /// The ConfigMap with the certificate of the service.
    pub(crate) certificate: Lookup<Value>,
    /// The ConfigMap with the certificate authority of cluster-proxy.
    pub(crate) authority: Lookup<Value>,
    /// The certificate authority in cluster-proxy's Secret.
    pub(crate) issued_authority: Lookup<String>,
    /// Argo CD's ConfigMap with the policies of users.
    pub(crate) rbac: Lookup<Value>,
    /// The managed clusters with the add-on cluster-proxy, with its availability.
    pub(crate) addons: Lookup<BTreeMap<String, bool>>,
    /// The managed clusters to which a work delivers its permissions.
    pub(crate) permitting: BTreeSet<String>,
}

/// The fields of an AppProject that decide if its Applications may write ManifestWorks and ManifestWorkReplicaSets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Project {
    /// The permitted namespaced kinds; `None` permits all.
    pub(crate) allowed: Option<Vec<(String, String)>>,
    /// The denied kinds.
    pub(crate) refused: Vec<(String, String)>,
}

/// The fields of a work that the checks read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HubWork {
    /// The managed cluster.
    pub(crate) cluster: Box<str>,
    pub(crate) name: Box<str>,
    /// The creation time.
    pub(crate) created: Option<Timestamp>,
    /// Its bytes, as OCM's webhook counts them.
    pub(crate) size: usize,
    /// The user with whose permissions it is applied; `None` for the agent's own.
    pub(crate) executor: Option<Box<str>>,
    /// True if an agent has reported a status.
    pub(crate) has_status: bool,
    /// True if its status is of an agent that is too old for it: OCM before 1.2 for a Placement, before 1.1 for any other.
    pub(crate) of_old_agent: bool,
    /// The time since which the agent has something to do: its last change, which it has not reported, or its deletion.
    pub(crate) outstanding_since: Option<Timestamp>,
    /// The Application that owns it, as Argo CD names it.
    pub(crate) application: Option<Box<str>>,
    /// Its objects, without Namespaces, which several Applications may create.
    pub(crate) objects: Vec<Box<str>>,
    /// The agent's message about the first object that it cannot apply, if there is one.
    pub(crate) refused: Option<Box<str>>,
    /// The kinds and namespaces of its objects that the agent watches.
    pub(crate) watched: BTreeSet<Box<str>>,
    /// The settings, as `Kind.group=resource`, of kinds that the managed cluster serves under another resource name than the plugin
    /// has assumed.
    pub(crate) other_resource_names: BTreeSet<Box<str>>,
}

impl HubWork {
    /// Its namespace and name.
    pub(super) fn qualified_name(&self) -> String {
        format!("{}/{}", self.cluster, self.name)
    }
}

/// A ManifestWorkReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplicaSet {
    /// Its namespace and name.
    pub(crate) qualified_name: String,
    /// The creation time.
    pub(crate) created: Option<Timestamp>,
    /// True if OCM has written a status.
    pub(crate) has_status: bool,
    /// The Application that owns it, as Argo CD names it.
    pub(crate) application: Box<str>,
    /// Its Placements, if they select no managed cluster.
    pub(crate) empty_placements: Vec<String>,
}

/// Returns true if something that exists since then should have been processed by now.
pub(super) fn is_late(created: Option<Timestamp>, now: Timestamp) -> bool {
    created.is_none_or(|created| now.duration_since(created) > GRACE)
}

impl HubState {
    /// Returns false if there is known to be no Argo CD: then its other parts are not reported as missing.
    pub(super) fn has_argo_cd(&self) -> bool {
        !matches!((&self.config, self.repo_server()), (Lookup::NotFound, None))
    }

    /// Returns false if nothing of the plugin is on the hub, and the controller delivers without it, such as by the pull model.
    pub(super) fn expects_plugin(&self) -> bool {
        let is_used = !self.applications.items().is_empty();
        let is_there = self.has_plugin_config() || self.sidecar().is_some();
        let delivers_without = ControllerPod::from_state(self).is_some_and(|pod| pod.delivers_without_plugin());
        is_used || is_there || !delivers_without
    }

    /// Returns true if the plugin's ConfigMap exists. Helm keeps it when the plugin leaves a release, but not the policy about sources.
    fn has_plugin_config(&self) -> bool {
        let Some(config) = self.plugin.found() else {
            return false;
        };
        let is_kept = config["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep";
        let policies = self.policies.found().filter(|_| is_kept);
        policies.is_none_or(|all| {
            all.iter()
                .any(|policy| name(policy).starts_with("argocd-ocm-cmp-sources."))
        })
    }

    pub(super) fn sidecar(&self) -> Option<&Value> {
        item(&self.repo_server()?["spec"]["template"]["spec"]["containers"], PLUGIN)
    }

    /// Returns true if the controller runs with this controller enabled.
    pub(super) fn is_enabled(&self, controller: &str) -> bool {
        ControllerPod::from_state(self).is_some_and(|pod| pod.is_enabled(controller))
    }

    /// Returns the Deployments of argocd-agent's principal.
    pub(super) fn principals(&self) -> impl Iterator<Item = &Value> {
        let deployments = self.deployments.items().iter();
        deployments.filter(|deployment| PRINCIPALS.contains(&name(deployment)))
    }

    /// Returns the Deployment of Argo CD's repo-server, under any name.
    pub(crate) fn repo_server(&self) -> Option<&Value> {
        component_of(self.deployments.items(), REPO_SERVER)
    }

    /// Returns the StatefulSet, or Deployment, of Argo CD's application controller.
    pub(crate) fn application_controller(&self) -> Option<&Value> {
        let mut all = [&self.stateful_sets, &self.deployments].into_iter();
        all.find_map(|all| component_of(all.items(), APPLICATION_CONTROLLER))
    }

    /// Returns true if a part of the view into the clusters is installed.
    pub(crate) fn has_live(&self) -> bool {
        self.config.text("extension.config.live").is_some() || self.deployment(LIVE).is_some()
    }

    pub(super) fn deployment(&self, wanted: &str) -> Option<&Value> {
        named(self.deployments.items(), wanted)
    }

    /// Returns the controller's Deployment.
    pub(crate) fn controller(&self) -> Option<&Value> {
        self.deployment(CONTROLLER)
    }

    /// Returns the Pods of a Deployment; `None` if we are not permitted to read Pods.
    pub(crate) fn pods_of(&self, deployment: &Value) -> Option<Vec<&Value>> {
        let labels = deployment["spec"]["selector"]["matchLabels"].as_object()?;
        let is_of_it = |pod: &&Value| {
            labels
                .iter()
                .all(|(key, value)| pod["metadata"]["labels"][key] == *value)
        };
        let is_there = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        Some(self.pods.found()?.iter().filter(is_of_it).filter(is_there).collect())
    }

    /// Returns true if the hub serves the kind; `None` if we are not permitted to ask.
    pub(super) fn serves(&self, resource: &Resource) -> Option<bool> {
        match self.apis.get(&resource.api_version())? {
            Lookup::Found(resources) => Some(resources.contains(resource.plural)),
            Lookup::NotFound => Some(false),
            Lookup::Refused(_) => None,
        }
    }
}
