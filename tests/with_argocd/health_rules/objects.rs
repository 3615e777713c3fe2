//! Objects in all possible states, and the expected results for some of them: tests/data/health/objects.yaml.

use super::{RuleConditions, conditions_of_health};
use crate::documents::documents;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use testing::merge;

/// Returns the entries of a section of the file: each with its first objects, of which `objects` is the pattern.
fn section(name: &str) -> Result<Vec<(Value, Vec<Value>)>> {
    let mut entries = Vec::new();
    for entry in file()?[name].as_array().with_context(|| name.to_owned())? {
        entries.push((entry.clone(), objects(&entry["objects"])));
    }
    Ok(entries)
}

fn file() -> Result<Value> {
    let mut documents = documents(include_str!("../../data/health/objects.yaml"))?;
    documents.pop().context("a document")
}

fn text_field(entry: &Value, field: &str) -> String {
    entry[field].as_str().unwrap_or_default().to_owned()
}

/// Returns objects of the kinds that Kubernetes serves: each combination of the values that their state depends on, and each of
/// them also during deletion or without its fields.
pub(super) fn of_kubernetes() -> Result<Vec<Value>> {
    let file = file()?;
    let mut all = Vec::new();
    for pattern in file["states"].as_array().context("states")? {
        let mut of_kind = objects(pattern);
        if pattern["kind"] == "Pod" {
            of_kind.extend(large_pods());
        }
        if pattern["kind"] == "CustomResourceDefinition" && testbed::argocd_version() != "3.2" {
            of_kind.extend(objects(&file["notEstablished"]));
        }
        all.extend(variants(of_kind));
    }
    Ok(all)
}

/// Returns Pods of many containers with long messages.
fn large_pods() -> Vec<Value> {
    let container = |at: usize| {
        let last = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "x".repeat(4000)}});
        let state = json!({"waiting": {"reason": "ContainerCreating", "message": "back-off 5m0s"}});
        json!({"name": format!("c{at}"), "image": "a:1", "state": state, "lastState": last})
    };
    let many: Vec<Value> = (0..20).map(container).collect();
    let conditions = json!({"any": [null, ["Ready True"]]});
    let status =
        json!({"phase": "Running", "containerStatuses": many, "initContainerStatuses": many, "conditions": conditions});
    objects(&json!({"apiVersion": "v1", "kind": "Pod", "spec": {"restartPolicy": "Always"}, "status": status}))
}

/// Returns the objects with the variants common to all: without spec, without status, and during deletion.
fn variants(mut objects: Vec<Value>) -> Vec<Value> {
    let typical = objects.last().cloned().unwrap_or_default();
    let with = |field: &str, value: Value| {
        let mut object = typical.clone();
        merge(&mut object, &json!({field: null}));
        merge(&mut object, &json!({field: value}));
        object
    };
    // Argo CD's Lua fails for a CronJob without a spec and a CRD without a status: the API server accepts neither. It writes the
    // status of every CronJob.
    if typical["kind"] != "CustomResourceDefinition" && typical["kind"] != "CronJob" {
        objects.push(with("status", Value::Null));
    }
    if typical["kind"] != "CronJob" {
        objects.push(with("spec", Value::Null));
    }
    objects.push(with("status", json!({})));
    let every_so_many = objects.len().div_ceil(9);
    let mut deleted: Vec<Value> = objects.iter().step_by(every_so_many).cloned().collect();
    for object in &mut deleted {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object["metadata"]["finalizers"] = json!(["example.com/slow"]);
    }
    objects.extend(deleted);
    objects
}

/// Returns the objects that a pattern of the file stands for.
fn objects(pattern: &Value) -> Vec<Value> {
    let mut objects = Vec::new();
    for fields in expanded(pattern) {
        let mut object = json!({
            "apiVersion": "example.com/v1",
            "kind": "Thing",
            "metadata": {"name": "web", "namespace": "shop", "generation": 2, "uid": "1"},
            "spec": {},
            "status": {},
        });
        merge(&mut object, &resolved(fields, objects.len()));
        remove_nulls(&mut object);
        if !write_conditions(&mut object) {
            continue;
        }
        if object["apiVersion"] == "autoscaling/v1" && !object["status"]["conditions"].is_null() {
            let conditions = as_kubernetes_writes(&object["status"]["conditions"].take());
            object["status"] = json!({"currentReplicas": 1});
            object["metadata"]["annotations"] =
                json!({"autoscaling.alpha.kubernetes.io/conditions": conditions, "other": "a"});
        }
        objects.push(object);
    }
    objects
}

/// Returns the values that a pattern stands for: one for each combination of its alternatives.
fn expanded(pattern: &Value) -> Vec<Value> {
    match pattern {
        Value::Object(fields) => {
            let mut all = vec![Value::Object(Map::new())];
            for (key, value) in fields {
                let alternatives = match key.as_str() {
                    "any" => value.as_array().into_iter().flatten().flat_map(expanded).collect(),
                    "cycle" => vec![json!({"cycle": value})],
                    _ => expanded(value).into_iter().map(|value| json!({key: value})).collect(),
                };
                if key == "any" && fields.len() == 1 {
                    return alternatives;
                }
                all = combinations(&all, &alternatives, |fields, more| {
                    let more = more.as_object().cloned().unwrap_or_default();
                    fields
                        .as_object_mut()
                        .into_iter()
                        .for_each(|fields| fields.extend(more.clone()));
                });
            }
            all
        }
        Value::Array(items) => {
            let mut all = vec![json!([])];
            for item in items {
                let push = |list: &mut Value, item: &Value| {
                    list.as_array_mut().into_iter().for_each(|list| list.push(item.clone()));
                };
                all = combinations(&all, &expanded(item), push);
            }
            all
        }
        Value::String(text) if text.contains('|') => alternatives_of(text).into_iter().map(Value::String).collect(),
        other => vec![other.clone()],
    }
}

/// Returns each value combined with each alternative.
fn combinations(values: &[Value], alternatives: &[Value], combine: impl Fn(&mut Value, &Value)) -> Vec<Value> {
    let mut all = Vec::new();
    for value in values {
        for alternative in alternatives {
            let mut value = value.clone();
            combine(&mut value, alternative);
            all.push(value);
        }
    }
    all
}

/// Splits the text of a condition, `TYPE STATUS REASON: MESSAGE`.
fn words_and_message(text: &str) -> (&str, Option<&str>) {
    text.split_once(": ")
        .map_or((text, None), |(words, message)| (words, Some(message)))
}

/// Returns the conditions that a text with `|` stands for.
fn alternatives_of(text: &str) -> Vec<String> {
    let (words, message) = words_and_message(text);
    let mut all = vec![String::new()];
    for word in words.split(' ') {
        let with = |start: &String| {
            word.split('|')
                .map(|word| format!("{start} {word}"))
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    let with_message = |words: &String| match message {
        Some(message) => format!("{}: {message}", words.trim_start()),
        None => words.trim_start().to_owned(),
    };
    all.iter().map(with_message).collect()
}

/// Returns a value with the alternatives of each `cycle` that the object of this index has.
fn resolved(value: Value, index: usize) -> Value {
    match value {
        Value::Object(mut fields) => {
            let cycle = fields.remove("cycle");
            let turn = cycle.map(|all| all[index % all.as_array().map_or(1, Vec::len)].clone());
            let resolved: Map<_, _> = fields
                .into_iter()
                .map(|(key, value)| (key, resolved(value, index)))
                .collect();
            match turn {
                Some(Value::Object(turn)) => resolved.into_iter().chain(turn).collect(),
                Some(other) => other,
                None => Value::Object(resolved),
            }
        }
        Value::Array(items) => items.into_iter().map(|item| resolved(item, index)).collect(),
        other => other,
    }
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// Replaces the texts in an object's conditions by what they stand for. Returns false if two of them have one type.
fn write_conditions(object: &mut Value) -> bool {
    let mut types = Vec::new();
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let Some(text) = condition.as_str().filter(|text| text.contains(' ')) else {
            continue;
        };
        let (words, message) = words_and_message(text);
        let words: Vec<&str> = words.split(' ').collect();
        types.push(words[0].to_owned());
        *condition = json!({
            "type": words[0],
            "status": words[1],
            "reason": words.get(2),
            "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        remove_nulls(condition);
    }
    types.sort();
    types.windows(2).all(|pair| pair[0] != pair[1])
}

/// Formats the conditions as Kubernetes writes them into an annotation: Go's JSON, fields in the order of the type.
fn as_kubernetes_writes(conditions: &Value) -> String {
    let written = conditions.as_array().into_iter().flatten().map(|condition| {
        let fields = ["type", "status", "lastTransitionTime", "reason", "message"]
            .iter()
            .filter(|field| !condition[**field].is_null())
            .map(|field| format!("\"{field}\":{}", condition[*field]));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    });
    format!("[{}]", written.collect::<Vec<_>>().join(","))
}

/// Returns the exceptions: the reason, an object, Argo CD's health and ours.
pub(super) fn differences() -> Result<Vec<(String, Value, String, RuleConditions)>> {
    let mut differences = Vec::new();
    for (entry, objects) in section("differences")? {
        let ours = conditions_of_health(&text_field(&entry, "ours"))?;
        let of_object = |object| (text_field(&entry, "reason"), object, text_field(&entry, "argocd"), ours);
        differences.extend(objects.into_iter().map(of_object));
    }
    if testbed::argocd_version() == "3.2" {
        let reason = "a CRD is established five seconds after its names are accepted, and a sync on the hub must not fail meanwhile";
        let waiting = conditions_of_health("Progressing")?;
        let of_crd = |crd| (reason.to_owned(), crd, "Degraded".to_owned(), waiting);
        differences.extend(objects(&file()?["notEstablished"]).into_iter().map(of_crd));
    }
    Ok(differences)
}

/// Returns custom resources, the expected conditions, and the message of the condition that decides.
pub(super) fn custom() -> Result<Vec<(Value, RuleConditions, String)>> {
    let mut custom = Vec::new();
    for (entry, objects) in section("custom")? {
        let expected = conditions_of_health(&text_field(&entry, "health"))?;
        custom.extend(
            objects
                .into_iter()
                .map(|object| (object, expected, text_field(&entry, "message"))),
        );
    }
    // More conditions than exist.
    for count in [50, 400] {
        let conditions: Vec<String> = (0..count).map(|at| format!("Type{at} False")).collect();
        let many = objects(&json!({"status": {"conditions": conditions}})).remove(0);
        custom.push((many, conditions_of_health("Healthy")?, "nothing to wait for".to_owned()));
    }
    Ok(custom)
}

/// Returns custom resources whose status violates the conventions, and the expected conditions.
pub(super) fn malformed() -> Result<Vec<(Value, RuleConditions)>> {
    let mut malformed = Vec::new();
    for (entry, objects) in section("malformed")? {
        let expected = conditions_of_health(&text_field(&entry, "health"))?;
        malformed.extend(objects.into_iter().map(|object| (object, expected)));
    }
    for field in ["/status", "/status/conditions"] {
        let mut object = objects(&json!({"status": {"conditions": []}})).remove(0);
        *object.pointer_mut(field).context("a field")? = Value::Null;
        malformed.push((object, conditions_of_health("Healthy")?));
    }
    // As the API server writes a new one.
    let mut crd =
        objects(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"})).remove(0);
    crd["status"]["conditions"] = Value::Null;
    malformed.push((crd, conditions_of_health("Progressing")?));
    Ok(malformed)
}

/// Returns objects that the agent evaluates, with the messages of Progressing and of Healthy.
pub(super) fn with_messages() -> Result<Vec<(Value, String, String)>> {
    let mut all = Vec::new();
    for (entry, objects) in section("messages")? {
        let of_object = |object| (object, text_field(&entry, "waiting"), text_field(&entry, "broken"));
        all.extend(objects.into_iter().map(of_object));
    }
    Ok(all)
}

/// Returns objects with their feedback values.
pub(super) fn with_feedback() -> Result<Vec<(Value, Value)>> {
    let mut all = Vec::new();
    for (entry, objects) in section("feedback")? {
        all.extend(objects.into_iter().map(|object| (object, entry["feedback"].clone())));
    }
    Ok(all)
}
