//! Property tests of policies against a simple model.

use super::{DeliveredObject, Executor, Policy, violations};
use manifest::key::ObjectKey;
use manifest::kinds::GroupKind;
use manifest::yaml;
use ocm::glob::Glob;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::{BoxedStrategy, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};
use testing::{holds, hostile_json, hostile_text, is_plain_line, mutated};

/// The list fields of an entry, with example globs.
const LISTS: &[(&str, &[&str])] = &[
    (
        "names",
        &["team-a", "team-b", "team-*", "t*a", "shop", "{shop,team-b}", "*"],
    ),
    ("clusters", &["eu1", "eu2", "us1", "eu*", "[eu]*1", "*"]),
    ("placements", &["fleet/eu", "fleet/*", "ops/all", "*/eu", "*"]),
    ("namespaces", &["shop", "shop-x", "shop-*", "?hop", "kube-system", "*"]),
    ("kinds", KINDS),
    ("deniedKinds", KINDS),
];

const KINDS: &[&str] = &[
    "ConfigMap",
    "Secret",
    "Namespace",
    "Deployment.apps",
    "*.apps",
    "ClusterRole.rbac.authorization.k8s.io",
    "Widget.example.com",
    "*.example.com",
    "[A-C]*",
    "?*",
    "*",
];

/// A request to check against a policy.
#[derive(Clone, Debug)]
struct Question {
    project: String,
    cluster: String,
    placement: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    allow_secrets: bool,
    executor: Option<(String, String)>,
}

/// The decisions of a policy: the cluster, the placement, the object, a created Namespace, and the executor.
#[derive(Debug, PartialEq)]
struct Answer {
    allowed: [bool; 4],
    executor: Result<Option<(String, String)>, ()>,
}

const NOTHING: Answer = Answer {
    allowed: [false; 4],
    executor: Err(()),
};

fn questions() -> impl Strategy<Value = Question> {
    const EXACT: &[&str] = &["team-a", "team-b", "shop", "other"];
    let text = |texts: &'static [&'static str]| {
        let exact = select(texts).prop_map(str::to_owned);
        prop_oneof![9 => exact, 1 => hostile_text().prop_map(|text| text.chars().take(9).collect())]
    };
    let kinds = select(
        &[
            "ConfigMap",
            "Secret",
            "Namespace",
            "Deployment.apps",
            "ClusterRole.rbac.authorization.k8s.io",
        ][..],
    );
    let kinds =
        prop_oneof![3 => kinds, 1 => select(&["Widget.example.com", "Secret.example.com", "Gadget.example.com"][..])];
    let namespaces = &["shop", "shop-x", "kube-system", "default"][..];
    let works = (
        text(&["eu1", "eu2", "us1"]),
        text(&["fleet/eu", "fleet/us", "ops/all"]),
        executors(),
    );
    (
        text(EXACT),
        works,
        kinds,
        weighted(0.8, text(namespaces)),
        text(namespaces),
        any::<bool>(),
    )
        .prop_map(
            |(project, (cluster, placement, executor), kind, namespace, name, allow_secrets)| Question {
                project,
                cluster,
                placement,
                kind: kind.to_owned(),
                namespace,
                name,
                allow_secrets,
                executor,
            },
        )
}

fn executors() -> impl Strategy<Value = Option<(String, String)>> {
    let one = (select(&["shop", "ops"][..]), select(&["deployer", "robot"][..]));
    weighted(
        0.4,
        one.prop_map(|(namespace, name)| (namespace.to_owned(), name.to_owned())),
    )
}

/// Generates entries as JSON, most of them valid.
fn entries() -> BoxedStrategy<Vec<Value>> {
    let list = |texts: &'static [&'static str]| vec(select(texts), 0..4).prop_map(|list| json!(list));
    let some = |texts| weighted(0.4, list(texts));
    let lists = (
        some(LISTS[1].1),
        some(LISTS[2].1),
        some(LISTS[3].1),
        some(LISTS[4].1),
        some(LISTS[5].1),
    );
    let flags = (weighted(0.5, any::<bool>()), weighted(0.5, any::<bool>()));
    let entry = (weighted(0.98, list(LISTS[0].1)), lists, flags, executors());
    let entry = entry.prop_map(
        |(names, (clusters, placements, namespaces, kinds, denied), (scoped, secrets), executor)| {
            let executor = executor.map(|(namespace, name)| json!({"namespace": namespace, "name": name}));
            let fields = [
                ("names", names),
                ("clusters", clusters),
                ("placements", placements),
                ("namespaces", namespaces),
                ("kinds", kinds),
                ("deniedKinds", denied),
                ("clusterScoped", scoped.map(Value::from)),
                ("secrets", secrets.map(Value::from)),
                ("executor", executor),
            ];
            let fields = fields
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(fields.collect::<Map<_, _>>())
        },
    );
    vec(entry, 0..4).boxed()
}

/// Returns the text of a policy with these entries.
fn write_policy(entries: &[Value]) -> String {
    let policy = json!({"apiVersion": "argocd-ocm-cmp.github.io/v1alpha1", "kind": "Policy", "projects": entries});
    let json = policy.to_string();
    // A number may be too large for YAML.
    yaml::json(&json).map_or_else(|_| json.clone(), |policy| yaml::write(&policy))
}

fn parse(entries: &[Value]) -> Option<Policy> {
    Policy::parse(&write_policy(entries), "policy.yaml").ok()
}

/// Returns the decisions of the policy.
fn answer(policy: &Policy, question: &Question) -> Answer {
    let Ok(rules) = policy.rules_for(Some(&question.project)) else {
        return NOTHING;
    };
    let kind: GroupKind = question.kind.parse().expect("a kind");
    let built_in = kind.built_in().map(|known| known.scope);
    let key = ObjectKey {
        kind,
        namespace: question.namespace.as_deref().map(Into::into),
        name: question.name.as_str().into(),
    };
    let objects = [DeliveredObject {
        key: &key,
        built_in,
        unknown_field: None,
        has_values: true,
        location: "a.yaml",
    }];
    let none: [DeliveredObject<'_, &str>; 0] = [];
    let requested = question.executor.as_ref();
    let requested = requested.map(|(namespace, name)| Executor::new(namespace, name).expect("a ServiceAccount"));
    let executor = rules.executor(requested).map_err(|_| ());
    Answer {
        allowed: [
            violations(Some(rules), question.allow_secrets, [&question.cluster], none).is_empty(),
            rules.against_placement(&question.placement).is_none(),
            violations(Some(rules), question.allow_secrets, [""; 0], objects).is_empty(),
            rules.against_created_namespace(&question.name).is_none(),
        ],
        executor: executor.map(|executor| executor.map(|executor| (executor.namespace, executor.name))),
    }
}

/// Returns the globs of a list, if present.
fn list<'e>(entry: &'e Value, name: &str) -> Option<Vec<&'e str>> {
    let items = entry.get(name)?.as_array().expect("a list");
    Some(items.iter().map(|item| item.as_str().expect("a text")).collect())
}

fn any_matches(list: &[&str], text: &str) -> bool {
    list.iter().any(|glob| Glob::new(glob).expect("a glob").matches(text))
}

/// Returns the decisions according to the documentation.
fn model(entries: &[Value], question: &Question) -> Answer {
    let is_of_project =
        |entry: &&Value| any_matches(&list(entry, "names").expect("the names of an entry"), &question.project);
    let Some(entry) = entries
        .iter()
        .find(is_of_project)
        .filter(|_| !question.project.is_empty())
    else {
        return NOTHING;
    };
    let is_within = |name, text: &str| list(entry, name).is_none_or(|list| any_matches(&list, text));
    let is_denied = |kind| list(entry, "deniedKinds").is_some_and(|list| any_matches(&list, kind));
    let is_set = |name: &str| entry.get(name) == Some(&json!(true));
    let kind = &*question.kind;
    let is_kind_allowed = |kind| !is_denied(kind) && is_within("kinds", kind);

    let has_scope = if is_set("clusterScoped") {
        true
    } else if kind.ends_with(".example.com") {
        question.namespace.is_some() && list(entry, "kinds").is_some_and(|kinds| kinds.contains(&kind))
    } else {
        question.namespace.is_some() && !["Namespace", "ClusterRole.rbac.authorization.k8s.io"].contains(&kind)
    };
    let namespace = if kind == "Namespace" {
        Some(&question.name)
    } else {
        question.namespace.as_ref()
    };
    let is_there_allowed = namespace.is_none_or(|namespace| is_within("namespaces", namespace));
    let is_secret_allowed = kind != "Secret" || (is_set("secrets") && question.allow_secrets);
    let has_placement = if entry.get("placements").is_some() {
        is_within("placements", &question.placement)
    } else {
        entry.get("clusters").is_none()
    };
    let text = |field| entry["executor"][field].as_str().map(str::to_owned);
    let executor = match (text("namespace").zip(text("name")), question.executor.clone()) {
        (Some(forced), Some(requested)) if forced != requested => Err(()),
        (Some(forced), _) => Ok(Some(forced)),
        (None, requested) => Ok(requested),
    };
    Answer {
        allowed: [
            is_within("clusters", &question.cluster),
            has_placement,
            is_kind_allowed(kind) && has_scope && is_there_allowed && is_secret_allowed,
            is_kind_allowed("Namespace") && is_within("namespaces", &question.name),
        ],
        executor,
    }
}

/// Returns true if no entry has an empty list or repeats the name of an earlier entry.
fn is_valid(entries: &[Value]) -> bool {
    let mut earlier: Vec<&str> = Vec::new();
    for entry in entries {
        let has_empty = LISTS
            .iter()
            .any(|(name, _)| list(entry, name).is_some_and(|list| list.is_empty()));
        let Some(names) = list(entry, "names").filter(|_| !has_empty) else {
            return false;
        };
        let is_literal = |name: &str| !name.contains(['*', '?', '[', '{']);
        let is_covered = |name: &&str| {
            earlier.contains(name) || earlier.contains(&"*") || (is_literal(name) && any_matches(&earlier, name))
        };
        if names.iter().any(is_covered) {
            return false;
        }
        earlier.extend(names);
    }
    !entries.is_empty()
}

#[test]
fn random_policy_agrees_with_the_model() {
    holds(
        2500,
        || (entries(), vec(questions(), 1..6)),
        |(entries, questions)| {
            let policy = parse(&entries);
            assert_eq!(policy.is_some(), is_valid(&entries), "{}", write_policy(&entries));
            for question in policy.iter().flat_map(|_| &questions) {
                let policy = policy.as_ref().expect("a valid policy");
                assert_eq!(
                    answer(policy, question),
                    model(&entries, question),
                    "{question:?}\n{}",
                    write_policy(&entries)
                );
            }
        },
    );
}

/// Misspells a field or changes its type.
fn corrupt(fields: &mut Map<String, Value>, field: &str, how: usize) {
    let value = fields.remove(field).expect("the field");
    let name = match how {
        0 => field.to_uppercase(),
        1 => format!("{field}s"),
        2 => field[..field.len() - 1].to_owned(),
        3 => format!("{field} "),
        4 => field.replace(|char: char| char.is_uppercase(), "-x"),
        _ => field.to_owned(),
    };
    let values = [
        json!(null),
        json!(7),
        json!("x"),
        json!({}),
        json!([]),
        json!([1]),
        json!([null]),
        json!([""]),
        json!([["a"]]),
    ];
    let value = if name == field {
        values[how % values.len()].clone()
    } else {
        value
    };
    fields.insert(name, value);
}

#[test]
fn refuses_misspelled_limits() {
    let inputs = || (entries(), any::<Index>(), 0..40_usize);
    holds(1500, inputs, |(mut entries, at, how)| {
        if !is_valid(&entries) {
            return;
        }
        let entry = at.index(entries.len());
        let fields = entries[entry].as_object_mut().expect("a mapping");
        let names: Vec<String> = fields.keys().cloned().collect();
        corrupt(fields, &names[at.index(names.len())], how);
        assert!(parse(&entries).is_none(), "{}", write_policy(&entries));
    });
}

#[test]
fn every_policy_error_line_names_the_file() {
    let inputs = || {
        let changed = entries().prop_flat_map(|entries| mutated(vec![write_policy(&entries)]));
        let strange = vec(hostile_json(), 1..3).prop_map(|entries| write_policy(&entries).into_bytes());
        prop_oneof![4 => changed, 2 => strange, 1 => hostile_text().prop_map(String::into_bytes)]
    };
    holds(1500, inputs, |bytes| {
        let text = String::from_utf8_lossy(&bytes);
        if let Err(problems) = Policy::parse(&text, "policy.yaml") {
            let message = problems.to_string();
            assert!(message.ends_with('\n'));
            for line in message[..message.len() - 1].split('\n') {
                assert!(
                    line.starts_with("error: policy.yaml:") && is_plain_line(line),
                    "{line:?}"
                );
            }
        }
    });
}
