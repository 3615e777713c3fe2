//! Objects and Events in the formats of `-o`.

use super::{full_name, kubectl_name};
use crate::list::List;
use crate::table;
use crate::table::clean;
use jiff::{SignedDuration, Timestamp};
use live::events::ObjectEvent;
use live::request::ObjectId;
use live::tree::TreeNode;
use manifest::kinds::GroupKind;
use manifest::text::unique;
use serde_json::{Value, json};

/// A delivered object in a list.
#[derive(Debug)]
pub(crate) enum ObjectEntry {
    /// The object on the cluster, and the objects below it.
    Tree(Vec<TreeNode>),
    /// An object that was not read, and the reason in one word.
    Absent(ObjectId, &'static str),
}

/// Objects of a managed cluster.
#[derive(Debug)]
pub(crate) struct ObjectList {
    /// The delivered objects.
    pub(crate) objects: Vec<ObjectEntry>,
    /// The value that `-o json` and `-o yaml` print.
    pub(crate) json: Value,
    /// The current time.
    pub(crate) now: Timestamp,
}

impl List for ObjectList {
    fn table(&self, wide: bool, _: bool) -> String {
        let mut rows: Vec<Vec<String>> = Vec::new();
        for entry in &self.objects {
            match entry {
                ObjectEntry::Absent(object, why) => {
                    rows.push([&self.name(object), "-", *why, "-"].map(clean).into());
                }
                ObjectEntry::Tree(nodes) => {
                    rows.extend(branches(nodes).into_iter().map(|(node, branch)| {
                        vec![
                            branch + &clean(&self.name(&id(node))),
                            node.ready.clone().unwrap_or_else(|| "-".to_owned()),
                            node.status.clone(),
                            age(&node.created, self.now),
                            node.message.clone().unwrap_or_default(),
                        ]
                    }));
                }
            }
        }
        let columns = if wide { 5 } else { 4 };
        for row in &mut rows {
            row.truncate(columns);
        }
        table::lines(&["NAME", "READY", "STATUS", "AGE", "MESSAGE"][..columns], rows)
    }

    fn to_json(&self) -> Value {
        self.json.clone()
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: &ObjectEntry| match entry {
            ObjectEntry::Tree(nodes) => nodes.iter().map(|node| clean(&self.name(&id(node)))).collect(),
            ObjectEntry::Absent(object, _) => vec![clean(&self.name(object))],
        };
        unique(self.objects.iter().flat_map(name).collect())
    }
}

impl ObjectList {
    /// Returns the name of an object, with its namespace if the delivered objects are in several.
    fn name(&self, object: &ObjectId) -> String {
        let namespaces = self.objects.iter().map(|entry| match entry {
            ObjectEntry::Tree(nodes) => nodes.first().map_or("", |node| &node.namespace),
            ObjectEntry::Absent(object, _) => &object.namespace,
        });
        let mut namespaces = namespaces.filter(|namespace| !namespace.is_empty());
        let first = namespaces.next();
        if namespaces.all(|namespace| Some(namespace) == first) {
            kubectl_name(object)
        } else {
            full_name(object)
        }
    }
}

/// Returns the nodes of a tree in the order of their lines, each with the branch to draw before it.
fn branches(nodes: &[TreeNode]) -> Vec<(&TreeNode, String)> {
    let mut lines = Vec::new();
    let mut rest: Vec<(&TreeNode, String, String)> = nodes
        .iter()
        .filter(|node| node.owner.is_none())
        .map(|node| (node, String::new(), String::new()))
        .collect();
    while let Some((node, branch, below)) = rest.pop() {
        let mut owned: Vec<&TreeNode> = nodes
            .iter()
            .filter(|child| child.owner.as_ref() == Some(&node.uid) && child.uid != node.uid)
            .collect();
        owned.sort_by_key(|node| (&node.kind, &node.name));
        for (at, owned) in owned.into_iter().rev().enumerate() {
            let (corner, line) = if at == 0 { ("└─", "  ") } else { ("├─", "│ ") };
            rest.push((owned, format!("{below}{corner}"), format!("{below}{line}")));
        }
        lines.push((node, branch));
    }
    lines
}

fn id(node: &TreeNode) -> ObjectId {
    ObjectId {
        kind: GroupKind {
            group: node.group.as_str().into(),
            kind: node.kind.as_str().into(),
        },
        namespace: node.namespace.clone(),
        name: node.name.clone(),
    }
}

fn event_object(event: &ObjectEvent) -> String {
    clean(&format!("{}/{}", event.kind.to_ascii_lowercase(), event.name))
}

/// Events of a managed cluster, the oldest first.
#[derive(Debug)]
pub(crate) struct EventList {
    pub(crate) events: Vec<ObjectEvent>,
    /// The current time.
    pub(crate) now: Timestamp,
}

impl List for EventList {
    fn table(&self, _: bool, _: bool) -> String {
        let row = |event: &ObjectEvent| {
            let last = match event.count {
                0 | 1 => age(&event.last, self.now),
                count => format!(
                    "{} (x{count} over {})",
                    age(&event.last, self.now),
                    age(&event.first, self.now)
                ),
            };
            [
                last,
                event.level.clone(),
                event.reason.clone(),
                event_object(event),
                event.message.clone(),
            ]
        };
        let headings = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
        table::lines(&headings, self.events.iter().map(row))
    }

    fn to_json(&self) -> Value {
        json!({"events": self.events})
    }

    fn names(&self) -> Vec<String> {
        unique(self.events.iter().map(event_object).collect())
    }
}

/// Formats the time since a timestamp.
fn age(since: &str, now: Timestamp) -> String {
    let Ok(since) = since.parse::<Timestamp>() else {
        return "<unknown>".to_owned();
    };
    table::age(now.duration_since(since).max(SignedDuration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-10T00:00:00Z".parse().expect("a time")
    }

    fn node(kind: &str, name: &str, owner: Option<&str>, ready: Option<&str>) -> TreeNode {
        let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
        TreeNode {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            owner: owner.map(str::to_owned),
            created: "2026-01-09T23:00:00Z".to_owned(),
            status: "Ready".to_owned(),
            message: None,
            ready: ready.map(str::to_owned),
            containers: Vec::new(),
        }
    }

    #[test]
    fn draws_the_tree_below_an_object() {
        let mut failing = node("Pod", "web-1-b", Some("web-1"), Some("0/1"));
        failing.status = "CrashLoopBackOff".to_owned();
        failing.message = Some("back-off\u{1b}[31m".to_owned());
        let tree = vec![
            node("Deployment.apps", "web", None, Some("1/2")),
            node("ReplicaSet.apps", "web-2", Some("web"), Some("0/0")),
            node("ReplicaSet.apps", "web-1", Some("web"), Some("1/2")),
            failing,
            node("Pod", "web-1-a", Some("web-1"), Some("1/1")),
        ];
        let secret = ObjectId {
            kind: "Secret".parse().expect("a kind"),
            namespace: "shop".to_owned(),
            name: "key".to_owned(),
        };
        let list = ObjectList {
            objects: vec![ObjectEntry::Tree(tree), ObjectEntry::Absent(secret, "Forbidden")],
            json: Value::Null,
            now: now(),
        };
        assert_eq!(
            list.table(false, false),
            "\
NAME                      READY   STATUS             AGE
deployment.apps/web       1/2     Ready              60m
├─replicaset.apps/web-1   1/2     Ready              60m
│ ├─pod/web-1-a           1/1     Ready              60m
│ └─pod/web-1-b           0/1     CrashLoopBackOff   60m
└─replicaset.apps/web-2   0/0     Ready              60m
secret/key                -       Forbidden          -
"
        );
        let wide = list.table(true, false);
        assert!(wide.contains("back-off\u{fffd}[31m"), "{wide}");
        assert_eq!(list.names().first().map(String::as_str), Some("deployment.apps/web"));
    }

    #[test]
    fn objects_of_several_namespaces_are_named_with_them() {
        let config = |namespace: &str| ObjectId {
            kind: "ConfigMap".parse().expect("a kind"),
            namespace: namespace.to_owned(),
            name: "web".to_owned(),
        };
        let list = ObjectList {
            objects: vec![
                ObjectEntry::Absent(config("a"), "Missing"),
                ObjectEntry::Tree(vec![node("ConfigMap", "web", None, None)]),
            ],
            json: Value::Null,
            now: now(),
        };
        assert_eq!(list.names(), ["configmap/a/web", "configmap/shop/web"]);
        assert!(list.table(false, false).contains("\nconfigmap/a/web "));
    }

    #[test]
    fn age_of_an_odd_time_is_shown() {
        assert_eq!(age("2027-01-01T00:00:00Z", now()), "0s");
        assert_eq!(age("yesterday", now()), "<unknown>");
    }

    #[test]
    fn events_name_their_object_and_how_often_they_were_seen() {
        let event = ObjectEvent {
            level: "Warning".to_owned(),
            reason: "BackOff".to_owned(),
            message: "back-off".to_owned(),
            count: 7,
            first: "2026-01-09T23:00:00Z".to_owned(),
            last: "2026-01-09T23:59:00Z".to_owned(),
            kind: "Pod".to_owned(),
            name: "web".to_owned(),
        };
        let list = EventList {
            events: vec![event],
            now: now(),
        };
        let table = list.table(false, false);
        let row = table.lines().nth(1).expect("a row");
        assert_eq!(row, "60s (x7 over 60m)   Warning   BackOff   pod/web   back-off");
    }
}
