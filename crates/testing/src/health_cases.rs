//! The cases of `tests/data/health`, which the program, Argo CD and the UI must evaluate alike.

use serde_json::{Map, Value};

/// A ManifestWork or ManifestWorkReplicaSet, and its health.
#[derive(Debug)]
pub struct HealthCase {
    /// The state of the object, in a few words.
    pub name: String,
    /// The object, with times relative to now.
    pub object: Value,
    /// The health that the program shows.
    pub health: String,
    /// The message that the program shows.
    pub message: String,
    /// Kind, name, health and message of each object of a work; null for a set.
    pub objects: Value,
    /// The health and message that Argo CD shows; null if they follow from those of the program.
    pub argocd: Value,
}

/// Returns all cases. `time` returns the time this number of seconds ago, as Kubernetes writes it.
///
/// # Panics
/// Panics if the file is malformed.
pub fn health_cases(time: impl Fn(i64) -> String) -> Vec<HealthCase> {
    let mut text = include_str!("../../../tests/data/health/cases.json").to_owned();
    for seconds in [10, 20, 80] {
        text = text.replace(&format!("{seconds} seconds ago"), &time(seconds));
    }
    let mut file: Value = serde_json::from_str(&text).expect("JSON");
    let cases = file["cases"].take();
    let pieces = file["pieces"].as_object().expect("pieces");
    let case = |case: &Value| HealthCase {
        name: case["name"].as_str().expect("a name").to_owned(),
        object: build(&case["object"], pieces),
        health: case["health"].as_str().expect("a health").to_owned(),
        message: case["message"].as_str().expect("a message").to_owned(),
        objects: case["objects"].clone(),
        argocd: case["argocd"].clone(),
    };
    cases.as_array().expect("cases").iter().map(case).collect()
}

/// Replaces each `{"of": PIECE, POINTER: VALUE…}` by the piece with these values; null removes what is at the pointer.
fn build(value: &Value, pieces: &Map<String, Value>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| build(item, pieces)).collect(),
        Value::Object(fields) => match fields.get("of").and_then(Value::as_str) {
            Some(name) => {
                let mut piece = build(&pieces[name], pieces);
                for (pointer, value) in fields.iter().filter(|(pointer, _)| *pointer != "of") {
                    set(&mut piece, pointer, build(value, pieces));
                }
                piece
            }
            None => fields
                .iter()
                .map(|(key, value)| (key.clone(), build(value, pieces)))
                .collect(),
        },
        other => other.clone(),
    }
}

fn set(piece: &mut Value, pointer: &str, value: Value) {
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer begins with a slash");
    match (piece.pointer_mut(parent).expect(pointer), value) {
        (Value::Array(items), value) if last == "-" => items.push(value),
        (Value::Array(items), value) => items[last.parse::<usize>().expect("a number")] = value,
        (parent, Value::Null) => drop(parent.as_object_mut().expect("an object").remove(last)),
        (parent, value) => parent[last] = value,
    }
}
