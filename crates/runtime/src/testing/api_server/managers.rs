//! Field managers and server-side apply. A list has one manager as a whole, except for finalizers.

use super::{Call, Refused};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The path of a field: the keys that lead to it, or for a finalizer the finalizer itself.
type Field = Vec<String>;

/// A field manager: its name, operation and subresource.
type Manager = (String, String, String);

/// The fields of each manager.
#[derive(Clone, Debug, Default)]
pub(super) struct Managers(BTreeMap<Manager, BTreeSet<Field>>);

impl Managers {
    pub(super) fn from_object(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        let all = entries.map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            let fields = serde_json::from_value(entry["fieldsV1"].clone()).expect("as it was put there");
            ((text("manager"), text("operation"), text("subresource")), fields)
        });
        Self(all.collect())
    }

    /// Writes `managedFields` into the object, in another format than a real API server.
    pub(super) fn put_into(&self, object: &mut Value) {
        let all = self.0.iter().filter(|(_, fields)| !fields.is_empty());
        let all: Vec<_> = all
            .map(|((manager, operation, subresource), fields)| {
                json!({"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields})
            })
            .collect();
        object["metadata"]["managedFields"] = json!(all);
    }

    /// Records which manager changed which fields by a write.
    pub(super) fn note(&mut self, call: &Call, before: &Value, after: &Value) {
        let (old, new) = (fields(before), fields(after));
        let changed = new.iter().filter(|(at, value)| old.get(*at) != Some(*value));
        let changed: BTreeSet<_> = changed.map(|(at, _)| at.clone()).collect();
        for others in self.0.values_mut() {
            others.retain(|at| new.contains_key(at) && !changed.contains(at));
        }
        self.0.entry(manager(call)).or_default().extend(changed);
    }

    /// Applies the body of a request, and returns the resulting object.
    pub(super) fn apply(&mut self, call: &Call, existing: &Value) -> Result<Value, Refused> {
        let mut desired = fields(&call.body);
        desired.retain(|at, _| match call.subresource.as_deref() {
            Some(subresource) => at[0] == subresource,
            None => at[0] != "status" || !call.has_status(),
        });
        let applier = manager(call);
        let live = fields(existing);
        let is_forced = call.query.get("force").is_some_and(|force| force == "true");
        let mut causes = Vec::new();
        for ((name, ..), others) in self.0.iter_mut().filter(|(other, _)| **other != applier) {
            let is_disputed = |at: &Field| {
                let desired = desired.get(at);
                desired.is_some() && desired != live.get(at)
            };
            for at in others.iter().filter(|at| !is_forced && is_disputed(at)) {
                let message = format!("conflict with {name:?}");
                causes.push(("FieldManagerConflict", format!(".{}", at.join(".")), message));
            }
            others.retain(|at| !is_disputed(at));
        }
        if !causes.is_empty() {
            return Err(Refused {
                causes,
                ..Refused::CONFLICT
            });
        }
        let before = self.0.insert(applier.clone(), desired.keys().cloned().collect());
        let mut after = existing.clone();
        for at in before.unwrap_or_default() {
            if !self.0.values().any(|fields| fields.contains(&at)) {
                remove(&mut after, &at);
            }
        }
        for (at, value) in desired {
            put(&mut after, &at, value.clone());
        }
        for key in ["uid", "resourceVersion"] {
            let value = &call.body["metadata"][key];
            if !value.is_null() {
                after["metadata"][key] = value.clone();
            }
        }
        Ok(after)
    }
}

fn manager(call: &Call) -> Manager {
    let name = call.query.get("fieldManager").map_or("unknown", String::as_str);
    let how = if call.content.contains("apply") {
        "Apply"
    } else {
        "Update"
    };
    let subresource = call.subresource.clone().unwrap_or_default();
    (name.to_owned(), how.to_owned(), subresource)
}

/// Returns the fields that can have a manager.
fn fields(object: &Value) -> BTreeMap<Field, &Value> {
    let mut all = BTreeMap::new();
    collect(object, &mut Vec::new(), &mut all);
    all.retain(|at, _| {
        let at: Vec<_> = at.iter().map(String::as_str).collect();
        match at[..] {
            ["metadata", key, ..] => ["labels", "annotations", "finalizers", "ownerReferences"].contains(&key),
            [key, ..] => !["apiVersion", "kind"].contains(&key),
            [] => false,
        }
    });
    all
}

fn collect<'o>(value: &'o Value, at: &mut Field, all: &mut BTreeMap<Field, &'o Value>) {
    let below: Vec<_> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(items) if is_finalizers(at) => {
            let name = |item: &Value| item.as_str().unwrap_or_default().to_owned();
            items.iter().map(|item| (name(item), item)).collect()
        }
        value => {
            all.insert(at.clone(), value);
            return;
        }
    };
    for (key, value) in below {
        at.push(key);
        collect(value, at, all);
        at.pop();
    }
}

fn is_finalizers(at: &[String]) -> bool {
    at.len() == 2 && at[0] == "metadata" && at[1] == "finalizers"
}

fn put(object: &mut Value, at: &[String], value: Value) {
    if at.len() == 3 && is_finalizers(&at[..2]) {
        let all = &mut object["metadata"]["finalizers"];
        if all.is_null() {
            *all = json!([]);
        }
        let all = all.as_array_mut().expect("a list");
        if !all.contains(&value) {
            all.push(value);
        }
        return;
    }
    *at.iter().fold(object, |object, key| &mut object[key]) = value;
}

/// Removes a field, and the maps that are empty without it.
fn remove(object: &mut Value, at: &[String]) {
    match (object, at) {
        (Value::Array(items), [last]) => items.retain(|item| item != last),
        (Value::Object(map), [last]) => {
            map.remove(last);
        }
        (object, [first, rest @ ..]) if !object[first].is_null() => {
            remove(&mut object[first], rest);
            if object[first] == json!({}) {
                remove(object, &at[..1]);
            }
        }
        _ => {}
    }
}
