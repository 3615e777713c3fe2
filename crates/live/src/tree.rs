//! The objects below a delivered object: those that it owns by uid, and what these own. A name in an ownerReference proves nothing.

use crate::limits::NODES;
use manifest::kinds::GroupKind;
use manifest::text::{one_line, shortened};
use primitives::resource::Resource;
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The maximum length of a message, in bytes.
const MESSAGE_MAX: usize = 500;

const PODS: Resource = Resource::new("", "v1", "pods", "Pod");
const REPLICA_SETS: Resource = Resource::new("apps", "v1", "replicasets", "ReplicaSet");
const JOBS: Resource = Resource::new("batch", "v1", "jobs", "Job");
const SLICES: Resource = Resource::new("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice");

const DEPLOYMENTS: Resource = Resource::new("apps", "v1", "deployments", "Deployment");
const STATEFUL_SETS: Resource = Resource::new("apps", "v1", "statefulsets", "StatefulSet");
const DAEMON_SETS: Resource = Resource::new("apps", "v1", "daemonsets", "DaemonSet");
const CRON_JOBS: Resource = Resource::new("batch", "v1", "cronjobs", "CronJob");
const SERVICES: Resource = Resource::new("", "v1", "services", "Service");

/// Returns the kinds that an object of this kind may own, directly or not.
pub fn kinds_below(kind: &GroupKind) -> &'static [Resource] {
    match (&*kind.group, &*kind.kind) {
        ("apps", "Deployment") => &[REPLICA_SETS, PODS],
        ("batch", "CronJob") => &[JOBS, PODS],
        ("apps", "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") | ("", "ReplicationController") => {
            &[PODS]
        }
        ("", "Service") => &[SLICES],
        _ if kind.built_in().is_some() => &[],
        // The kinds that controllers of custom resources create.
        _ => &[
            DEPLOYMENTS,
            STATEFUL_SETS,
            DAEMON_SETS,
            REPLICA_SETS,
            CRON_JOBS,
            JOBS,
            SERVICES,
            PODS,
        ],
    }
}

/// Returns the selector that limits the objects below a workload: all of them have the labels of its Pods.
pub fn selector(kind: &GroupKind, live: &Value) -> Option<String> {
    let is_workload = matches!(
        (&*kind.group, &*kind.kind),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job")
    );
    let labels = live["spec"]["selector"]["matchLabels"].as_object()?;
    let is_safe = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte))
    };
    let pairs = labels.iter().map(|(key, value)| {
        let value = value.as_str().filter(|value| is_safe(value) && is_safe(key))?;
        // The user-server would read a path from a slash.
        Some(format!("{}%3D{value}", key.replace('/', "%2F")))
    });
    let pairs: Option<Vec<_>> = pairs.collect();
    pairs
        .filter(|list| is_workload && !list.is_empty())
        .map(|list| list.join("%2C"))
}

/// An object of the tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TreeNode {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The unique ID.
    pub uid: String,
    /// The unique ID of the owner in the tree.
    pub owner: Option<String>,
    /// The time of its creation.
    pub created: String,
    /// The state in one word, such as `Running`.
    pub status: String,
    /// More about the state.
    pub message: Option<String>,
    /// Ready containers or replicas, such as `1/2`.
    pub ready: Option<String>,
    /// The containers of a Pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
}

/// The parts of an object that a tree needs, if it may be below another one: the object takes many times its bytes.
#[derive(Debug)]
pub struct Candidate {
    node: TreeNode,
    owners: Vec<String>,
}

impl Candidate {
    /// Reduces an object; `None` if it cannot be below `root`, because it is in another namespace or without a uid.
    pub fn new(object: &Value, root: &Value) -> Option<Self> {
        let metadata = &object["metadata"];
        if metadata["namespace"] != root["metadata"]["namespace"] {
            return None;
        }
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        let owners = owners.filter_map(|owner| owner["uid"].as_str().map(str::to_owned));
        Some(Self {
            node: node(object)?,
            owners: owners.collect(),
        })
    }
}

/// A delivered object with all that it owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tree {
    /// The objects, owners first.
    pub nodes: Vec<TreeNode>,
    /// True if there are more.
    pub truncated: bool,
}

impl Tree {
    /// Builds the tree below `root` from the objects of [`kinds_below`] in its namespace.
    pub fn new(root: &Value, candidates: &[Candidate], truncated: bool) -> Self {
        let mut nodes: Vec<TreeNode> = node(root).into_iter().collect();
        let mut by_owner: HashMap<&str, Vec<&TreeNode>> = HashMap::new();
        for Candidate { node, owners } in candidates {
            for owner in owners {
                by_owner.entry(owner).or_default().push(node);
            }
        }
        let mut seen: HashSet<String> = nodes.iter().map(|node| node.uid.clone()).collect();
        let (mut at, mut truncated) = (0, truncated);
        while let Some(owner) = nodes.get(at).map(|node| node.uid.clone()) {
            at += 1;
            for owned in by_owner.get(&*owner).into_iter().flatten() {
                if !seen.insert(owned.uid.clone()) {
                    continue;
                }
                if nodes.len() >= NODES {
                    truncated = true;
                    break;
                }
                nodes.push(TreeNode {
                    owner: Some(owner.clone()),
                    ..(*owned).clone()
                });
            }
        }
        Self { nodes, truncated }
    }

    /// Returns the Pods.
    pub fn pods(&self) -> impl Iterator<Item = &TreeNode> {
        self.nodes
            .iter()
            .filter(|node| node.kind == "Pod" && node.group.is_empty())
    }
}

fn node(object: &Value) -> Option<TreeNode> {
    let text = |value: &Value| shortened(value.as_str().unwrap_or_default(), MESSAGE_MAX).into_owned();
    let metadata = &object["metadata"];
    let uid = metadata["uid"].as_str().filter(|uid| !uid.is_empty())?;
    let api_version = object["apiVersion"].as_str()?;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str()?;
    let state = state(group, kind, object);
    let deleted = metadata["deletionTimestamp"].is_string();
    Some(TreeNode {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
        uid: uid.to_owned(),
        owner: None,
        created: text(&metadata["creationTimestamp"]),
        status: if deleted { "Terminating".to_owned() } else { state.word },
        message: state
            .message
            .map(|message| shortened(&one_line(&message), MESSAGE_MAX).into_owned()),
        ready: state.ready,
        containers: containers(kind, object),
    })
}

/// The state of an object, as kubectl shows it.
#[derive(Default)]
struct ShownState {
    word: String,
    message: Option<String>,
    ready: Option<String>,
}

fn state(group: &str, kind: &str, object: &Value) -> ShownState {
    let status = &object["status"];
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let of_replicas = |desired: u64, ready: u64| ShownState {
        word: if ready >= desired && is_rolled_out(kind, object) {
            "Ready"
        } else {
            "Progressing"
        }
        .to_owned(),
        ready: Some(format!("{ready}/{desired}")),
        message: None,
    };
    match (group, kind) {
        ("", "Pod") => pod_state(object),
        ("apps", "DaemonSet") => of_replicas(count(&status["desiredNumberScheduled"]), count(&status["numberReady"])),
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") | ("", "ReplicationController") => {
            let desired = object["spec"]["replicas"].as_u64().unwrap_or(1);
            of_replicas(desired, count(&status["readyReplicas"]))
        }
        ("batch", "Job") => {
            let conditions = || status["conditions"].as_array().into_iter().flatten();
            let is_true = |kind: &str| conditions().find(|value| value["type"] == kind && value["status"] == "True");
            let mut words = ["Complete", "Failed", "Suspended"].into_iter();
            let shown = words.find_map(|kind| Some((kind, is_true(kind)?)));
            ShownState {
                word: shown.map_or("Running", |(kind, _)| kind).to_owned(),
                message: shown
                    .and_then(|(_, value)| value["message"].as_str())
                    .filter(|text| !text.is_empty())
                    .map(str::to_owned),
                ready: None,
            }
        }
        _ => ShownState {
            word: "Present".to_owned(),
            ..ShownState::default()
        },
    }
}

/// Returns true if all Pods of a workload are of its current version, as for `kubectl rollout status`: earlier ones may be ready, too.
fn is_rolled_out(kind: &str, workload: &Value) -> bool {
    let (spec, status) = (&workload["spec"], &workload["status"]);
    let count = |field: &str| status[field].as_u64().unwrap_or_default();
    let strategy = &spec["updateStrategy"];
    let is_by_hand = strategy["type"] == "OnDelete" || strategy["rollingUpdate"]["partition"].as_u64() > Some(0);
    status["observedGeneration"].as_i64() >= workload["metadata"]["generation"].as_i64()
        && match kind {
            "Deployment" => count("updatedReplicas") >= count("replicas"),
            "DaemonSet" => is_by_hand || count("updatedNumberScheduled") >= count("desiredNumberScheduled"),
            "StatefulSet" => is_by_hand || status["currentRevision"] == status["updateRevision"],
            _ => true,
        }
}

fn pod_state(pod: &Value) -> ShownState {
    let status = &pod["status"];
    let all = |list: &str| status[list].as_array().cloned().unwrap_or_default();
    let containers = all("containerStatuses");
    let total = pod["spec"]["containers"].as_array().map_or(0, Vec::len);
    let ready = containers.iter().filter(|container| container["ready"] == true).count();
    let waits_for_init = |value: &&Value| value["state"]["terminated"]["exitCode"] != 0 && value["ready"] != true;
    let init = all("initContainerStatuses");
    let init = init.iter().find(waits_for_init);
    let of_state = |container: &Value, field: &str| {
        let mut both = ["waiting", "terminated"].into_iter();
        let text = both.find_map(|state| container["state"][state][field].as_str());
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let failing = init.into_iter().chain(&containers).find(|container| {
        of_state(container, "reason").is_some_and(|word| word != "Completed" || status["phase"] != "Running")
    });
    let text = |value: &Value| value.as_str().filter(|value| !value.is_empty()).map(str::to_owned);
    let reason = failing
        .and_then(|container| of_state(container, "reason"))
        .or_else(|| text(&status["reason"]));
    ShownState {
        word: one_line(
            &reason
                .or_else(|| text(&status["phase"]))
                .unwrap_or_else(|| "Unknown".to_owned()),
        )
        .into_owned(),
        message: failing
            .and_then(|container| of_state(container, "message"))
            .or_else(|| text(&status["message"])),
        ready: Some(format!("{ready}/{total}")),
    }
}

fn containers(kind: &str, object: &Value) -> Vec<String> {
    if kind != "Pod" {
        return Vec::new();
    }
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let all = lists
        .into_iter()
        .flat_map(|list| object["spec"][list].as_array().into_iter().flatten());
    all.filter_map(|value| value["name"].as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(kind: &str, name: &str, uid: &str, owner: &str) -> Value {
        let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
        let owners = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": owner}]);
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "a", "uid": uid, "ownerReferences": owners}})
    }

    fn tree(root: &Value, objects: &[Value]) -> Tree {
        let candidates: Vec<_> = objects
            .iter()
            .filter_map(|object| Candidate::new(object, root))
            .collect();
        Tree::new(root, &candidates, false)
    }

    fn names(tree: &Tree) -> Vec<&str> {
        tree.nodes.iter().map(|node| &*node.name).collect()
    }

    #[test]
    fn contains_only_objects_that_are_owned_by_uid() {
        let root = object("Deployment", "web", "1", "0");
        let mut elsewhere = object("Pod", "elsewhere", "6", "2");
        elsewhere["metadata"]["namespace"] = json!("b");
        let mut nameless = object("Pod", "without-uid", "7", "2");
        nameless["metadata"]["ownerReferences"][0]
            .as_object_mut()
            .expect("an owner")
            .remove("uid");
        let candidates = [
            object("Pod", "web-1-x", "3", "2"),
            object("ReplicaSet", "web-1", "2", "1"),
            object("ReplicaSet", "other-1", "4", "9"),
            object("Pod", "pretends", "5", "11"),
            elsewhere,
            nameless,
            object("Pod", "no-uid", "", "2"),
            json!("nonsense"),
        ];
        let shown = tree(&root, &candidates);
        assert_eq!(names(&shown), ["web", "web-1", "web-1-x"]);
        assert_eq!(shown.nodes[2].owner.as_deref(), Some("2"));
        assert_eq!(shown.pods().count(), 1);
        assert_eq!(tree(&Value::Null, &candidates), Tree::default());
    }

    #[test]
    fn circular_owners_and_many_objects_are_bounded() {
        let root = object("ReplicaSet", "web-1", "1", "2");
        let circle = [
            object("Pod", "a", "2", "1"),
            object("ReplicaSet", "again", "1", "2"),
            object("Pod", "b", "2", "2"),
        ];
        assert_eq!(names(&tree(&root, &circle)), ["web-1", "a"]);
        let many: Vec<_> = (0..2_000)
            .map(|at| object("Pod", &at.to_string(), &format!("u{at}"), "1"))
            .collect();
        let shown = tree(&root, &many);
        assert_eq!((shown.nodes.len(), shown.truncated), (NODES, true));
    }

    #[test]
    fn shows_the_state_of_pods_as_kubectl_does() {
        let state = |status: Value| {
            let mut pod = object("Pod", "web", "1", "0");
            pod["spec"] = json!({"containers": [{"name": "web"}], "initContainers": [{"name": "init"}]});
            pod["status"] = status;
            let tree = Tree::new(&pod, &[], false);
            assert_eq!(tree.nodes[0].containers, ["init", "web"]);
            (
                tree.nodes[0].status.clone(),
                tree.nodes[0].ready.clone().expect("a count"),
            )
        };
        let expected = |word: &str, ready: &str| (word.to_owned(), ready.to_owned());
        let running = json!({"ready": true, "state": {"running": {}}});
        let crashing =
            json!({"ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}});
        let done = json!({"ready": true, "state": {"terminated": {"reason": "Completed", "exitCode": 0}}});
        assert_eq!(
            state(json!({"phase": "Running", "containerStatuses": [running], "initContainerStatuses": [done]})),
            expected("Running", "1/1")
        );
        assert_eq!(
            state(json!({"phase": "Running", "containerStatuses": [crashing]})),
            expected("CrashLoopBackOff", "0/1")
        );
        assert_eq!(state(json!({"phase": "Pending"})), expected("Pending", "0/1"));
        assert_eq!(
            state(json!({"phase": "Failed", "reason": "Evicted"})),
            expected("Evicted", "0/1")
        );
        assert_eq!(
            state(json!({"phase": 7, "containerStatuses": "x"})),
            expected("Unknown", "0/1")
        );
    }

    #[test]
    fn shows_a_job_as_complete_failed_or_suspended() {
        let state = |conditions: &[(&str, &str)]| {
            let conditions = conditions
                .iter()
                .map(|(kind, status)| json!({"type": kind, "status": status}));
            let conditions: Vec<_> = conditions.collect();
            let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "uid": "1"},
                "status": {"conditions": conditions}});
            Tree::new(&job, &[], false).nodes.remove(0).status
        };
        for (conditions, expected) in [
            (&[][..], "Running"),
            (&[("Suspended", "True")], "Suspended"),
            (&[("Suspended", "False"), ("FailureTarget", "True")], "Running"),
            (&[("Suspended", "True"), ("Failed", "True")], "Failed"),
            (&[("Suspended", "False"), ("Complete", "True")], "Complete"),
        ] {
            assert_eq!(state(conditions), expected);
        }
    }

    /// The Pods of the version before are ready while those of a broken one restart.
    #[test]
    fn workload_is_not_ready_before_its_rollout_ends() {
        let word = |kind: &str, spec: Value, status: Value| {
            let mut workload = object(kind, "web", "1", "0");
            workload["metadata"]["generation"] = json!(2);
            (workload["spec"], workload["status"]) = (spec, status);
            Tree::new(&workload, &[], false).nodes[0].status.clone()
        };
        let deployment = |generation: i64, replicas: u64| {
            let status = json!({"observedGeneration": generation, "replicas": replicas, "updatedReplicas": 1, "readyReplicas": 1});
            word("Deployment", json!({}), status)
        };
        assert_eq!(
            [(2, 1), (2, 2), (1, 1)].map(|(generation, replicas)| deployment(generation, replicas)),
            ["Ready", "Progressing", "Progressing"]
        );
        for (strategy, expected) in [
            (json!({"type": "RollingUpdate"}), "Progressing"),
            (
                json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
                "Ready",
            ),
            (json!({"type": "OnDelete"}), "Ready"),
        ] {
            let spec = json!({"updateStrategy": strategy});
            let status =
                json!({"observedGeneration": 2, "readyReplicas": 1, "currentRevision": "a", "updateRevision": "b"});
            assert_eq!(word("StatefulSet", spec.clone(), status), expected);
            let status = json!({"observedGeneration": 2, "desiredNumberScheduled": 1, "numberReady": 1});
            assert_eq!(word("DaemonSet", spec, status), expected);
        }
    }

    #[test]
    fn selects_by_the_labels_of_workloads_only() {
        let kind = |group: &str, kind: &str| GroupKind {
            group: group.into(),
            kind: kind.into(),
        };
        let labels = json!({"spec": {"selector": {"matchLabels": {"app.kubernetes.io/name": "web", "tier": "a"}}}});
        let deployment = kind("apps", "Deployment");
        assert_eq!(
            selector(&deployment, &labels).as_deref(),
            Some("app.kubernetes.io%2Fname%3Dweb%2Ctier%3Da")
        );
        assert_eq!(selector(&kind("example.com", "Rollout"), &labels), None);
        for odd in [json!({}), json!({"a": "x&y"}), json!({"a/../b#": "x"}), json!({"a": 1})] {
            assert_eq!(
                selector(&deployment, &json!({"spec": {"selector": {"matchLabels": odd}}})),
                None
            );
        }
    }
}
