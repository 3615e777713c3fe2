//! What was read of a hub: of single objects all there is, of those of which there may be many only what is asked of them.

use super::rights::Right;
use crate::controller::resources::Resource;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What came of looking for something.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Look<T> {
    /// It is there.
    There(T),
    /// It is not there.
    #[default]
    Absent,
    /// We may not look, for this reason.
    Refused(String),
}

impl<T> Look<T> {
    /// What is there.
    #[must_use]
    pub fn there(&self) -> Option<&T> {
        match self {
            Self::There(it) => Some(it),
            Self::Absent | Self::Refused(_) => None,
        }
    }

    /// What is made of it, where it is there.
    pub(crate) fn map<U>(self, made: impl FnOnce(T) -> U) -> Look<U> {
        match self {
            Self::There(it) => Look::There(made(it)),
            Self::Absent => Look::Absent,
            Self::Refused(why) => Look::Refused(why),
        }
    }
}

/// The plugin: its ConfigMap, its container, and what Applications call it.
pub(crate) const PLUGIN: &str = "argocd-ocm-cmp";
/// The companion: its Deployment, and the ConfigMap with its settings.
pub(crate) const CONTROLLER: &str = "argocd-ocm-cmp-controller";
/// What Argo CD's application controller is, in the label of its component and at the end of its name.
pub(super) const APPLICATION_CONTROLLER: &str = "application-controller";
/// The label of works that bring something to argocd-agent.
pub(crate) const AGENT_LABEL: &str = crate::agent::names::WORK_LABEL;

/// How long something may be under way before it is found missing, which is also how far clocks may differ.
pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(60);

/// All that was read.
#[derive(Debug, Default)]
pub struct Seen {
    /// Argo CD's namespace, as asked for.
    pub namespace: String,
    /// The ConfigMap argocd-cm there.
    pub config: Look<Value>,
    /// The namespaces that have one, where this has none.
    pub elsewhere: Look<Vec<String>>,
    /// The Deployments there.
    pub deployments: Look<Vec<Value>>,
    /// The StatefulSets there.
    pub stateful_sets: Look<Vec<Value>>,
    /// The pods there.
    pub pods: Look<Vec<Value>>,
    /// The pods there whose plugin has said in its log that it runs tools unconfined, and what these can reach.
    pub unconfined: Look<BTreeMap<String, String>>,
    /// The plugin's ConfigMap.
    pub plugin: Look<Value>,
    /// The ConfigMap with the companion's settings.
    pub settings: Look<Value>,
    /// The Leases there.
    pub leases: Look<Vec<Value>>,
    /// What is served of each version of an API, as it is called in paths.
    pub apis: BTreeMap<String, Look<BTreeSet<String>>>,
    /// The CRD of ManifestWorks.
    pub work_crd: Look<Value>,
    /// The ClusterManagers by which OCM's operator is told what to do.
    pub cluster_managers: Look<Vec<Value>>,
    /// The Applications that use the plugin.
    pub applications: Look<Vec<Application>>,
    /// The AppProjects in Argo CD's namespace.
    pub projects: Look<BTreeMap<String, Project>>,
    /// The managed clusters.
    pub clusters: Look<BTreeMap<String, Cluster>>,
    /// The works of Argo CD's Applications.
    pub works: Look<Vec<Work>>,
    /// The ManifestWorkReplicaSets of Argo CD's Applications.
    pub sets: Look<Vec<ReplicaSet>>,
    /// The ClusterManagementAddOn of argocd-agent.
    pub management: Look<Value>,
    /// The managed clusters that have the add-on, and whether it is available there.
    pub addons: Look<BTreeMap<String, bool>>,
    /// The rights that are needed, and whether they are given; absent where nobody was asked for any.
    pub rights: Look<Vec<(Right, bool)>>,
}

/// An Application that uses the plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Application {
    /// Its namespace and name.
    pub place: String,
    /// Its AppProject.
    pub project: String,
    /// Whether it is for the clusters of a Placement.
    pub placement: bool,
    /// What Argo CD says is wrong with it.
    pub errors: Vec<String>,
}

/// An AppProject, as far as works are concerned: whether it lets its Applications write ManifestWorks, and ManifestWorkReplicaSets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Project {
    /// The kinds of objects with a namespace that it lets in; all, where there is no list.
    pub allowed: Option<Vec<(String, String)>>,
    /// Those that it keeps out.
    pub refused: Vec<(String, String)>,
}

/// A managed cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Whether it has been accepted, and has joined.
    pub joined: bool,
    /// Whether the hub hears from it, and it says that it is well; nothing where it is silent.
    pub available: Option<bool>,
}

/// A work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The managed cluster.
    pub cluster: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Since when it is there.
    pub created: Option<Timestamp>,
    /// Its bytes, as OCM's webhook counts them.
    pub size: usize,
    /// Whether it is applied by the rights of an executor.
    pub executor: bool,
    /// Whether an agent has said anything of it.
    pub answered: bool,
    /// What the agent cannot apply, where it has said so.
    pub refused: Option<Refusal>,
}

impl Work {
    /// Its namespace and name.
    pub(super) fn place(&self) -> String {
        format!("{}/{}", self.cluster, self.name)
    }
}

/// What an agent cannot apply: the first of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub message: Box<str>,
}

/// A ManifestWorkReplicaSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Its namespace and name.
    pub place: String,
    /// Since when it is there.
    pub created: Option<Timestamp>,
    /// Whether OCM has said anything of it.
    pub answered: bool,
}

/// Whether something that is there since then should have been looked at by now.
pub(super) fn is_late(created: Option<Timestamp>, now: Timestamp) -> bool {
    created.is_none_or(|created| now.duration_since(created) > GRACE)
}

impl Seen {
    /// Whether there is an Argo CD at all, as far as is known: where there is none, nothing else of it is missed.
    pub(super) fn has_argo_cd(&self) -> bool {
        !matches!((&self.config, self.repo_server()), (Look::Absent, None))
    }

    /// The Deployment of Argo CD's repo-server, whatever it is called.
    #[must_use]
    pub fn repo_server(&self) -> Option<&Value> {
        part(self.deployments.there()?, "repo-server")
    }

    /// The StatefulSet, or Deployment, of Argo CD's application controller.
    #[must_use]
    pub fn application_controller(&self) -> Option<&Value> {
        let of = |all: &'_ Look<Vec<Value>>| -> Option<usize> {
            let all = all.there()?;
            let found = part(all, APPLICATION_CONTROLLER)?;
            all.iter().position(|it| std::ptr::eq(it, found))
        };
        if let Some(at) = of(&self.stateful_sets) {
            return self.stateful_sets.there()?.get(at);
        }
        self.deployments.there()?.get(of(&self.deployments)?)
    }

    /// The companion's Deployment.
    #[must_use]
    pub fn controller(&self) -> Option<&Value> {
        let mut all = self.deployments.there()?.iter();
        all.find(|it| name(it) == CONTROLLER)
    }

    /// The pods of a Deployment; nothing where we may not look at pods.
    pub(crate) fn pods_of(&self, deployment: &Value) -> Option<Vec<&Value>> {
        let labels = deployment["spec"]["selector"]["matchLabels"].as_object()?;
        let is_of_it = |pod: &&Value| {
            labels
                .iter()
                .all(|(key, value)| pod["metadata"]["labels"][key] == *value)
        };
        let is_there = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        Some(self.pods.there()?.iter().filter(is_of_it).filter(is_there).collect())
    }

    /// Whether the hub serves a kind of object; not known where we may not ask.
    pub(super) fn serves(&self, resource: &Resource) -> Option<bool> {
        match self.apis.get(&resource.api_version())? {
            Look::There(resources) => Some(resources.contains(resource.plural)),
            Look::Absent => Some(false),
            Look::Refused(_) => None,
        }
    }
}

/// A part of Argo CD: as its own manifests call it, as its labels say, or as operators and charts name it.
fn part<'v>(all: &'v [Value], component: &str) -> Option<&'v Value> {
    let find = |is_it: &dyn Fn(&Value) -> bool| all.iter().find(|it| is_it(it));
    find(&|it| name(it) == format!("argocd-{component}"))
        .or_else(|| find(&|it| it["metadata"]["labels"]["app.kubernetes.io/component"] == component))
        .or_else(|| find(&|it| name(it).ends_with(&format!("-{component}"))))
}

/// The name of an object.
pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// The items of a list; what is no list has none.
pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

/// The containers of a Deployment or StatefulSet.
pub(super) fn containers(workload: &Value) -> &[Value] {
    items(&workload["spec"]["template"]["spec"]["containers"])
}

/// The tag of an image, as in `registry:5000/name:tag@digest`.
pub(super) fn tag(image: &str) -> Option<&str> {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    let (_, tag) = image.rsplit_once(':')?;
    (!tag.contains('/') && !tag.is_empty()).then_some(tag)
}
