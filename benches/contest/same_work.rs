//! Checks that all programs do the same work: the same objects, value for value, and one per document.

use super::contender::Contender;
use super::corpus::Corpus;
use manifest::json;
use manifest::value::{Map, Value};
use manifest::yaml;
use std::process::Command;

/// Runs each contender once, and compares the outputs.
///
/// # Panics
/// If an output differs.
pub(crate) fn check(contenders: &[Contender], corpus: &Corpus) {
    let mut first: Option<Vec<String>> = None;
    for contender in contenders {
        let Some(command) = &contender.command else { continue };
        let name = contender.name;
        let output = Command::new(&command[0])
            .args(&command[1..])
            .output()
            .expect("the program runs");
        assert!(output.status.success(), "{name} failed");
        if !contender.wraps {
            assert_eq!(output.stdout.len(), corpus.bytes, "{name} does not print every byte");
            continue;
        }
        let manifests = manifests(&String::from_utf8(output.stdout).expect("text"));
        assert_eq!(manifests.len(), corpus.documents, "{name} does not wrap every document");
        match &first {
            None => first = Some(manifests),
            Some(first) => {
                let other = first.iter().zip(&manifests).find(|(one, other)| one != other);
                assert!(other.is_none(), "{name} has another object: {other:?}");
            }
        }
    }
}

/// Returns the manifests of the works in a text, each as canonical JSON, sorted.
fn manifests(text: &str) -> Vec<String> {
    let mut manifests = Vec::new();
    for document in yaml::documents(text) {
        let mut work = document.expect("a work").value;
        let spec = field(&mut work, "spec");
        let Value::List(items) = field(field(spec, "workload"), "manifests") else {
            panic!("manifests is not a list");
        };
        manifests.extend(items.iter_mut().map(canonical));
    }
    manifests.sort_unstable();
    manifests
}

fn field<'v, 'a>(value: &'v mut Value<'a>, name: &str) -> &'v mut Value<'a> {
    fields(value).get_mut(name).expect(name)
}

fn fields<'v, 'a>(value: &'v mut Value<'a>) -> &'v mut Map<'a> {
    match value {
        Value::Map(fields) => fields,
        other => panic!("not a mapping: {}", other.type_name()),
    }
}

/// Removes the namespace that only our program adds to objects without one.
fn canonical(manifest: &mut Value<'_>) -> String {
    let metadata = fields(field(manifest, "metadata"));
    if metadata.get("namespace").and_then(Value::as_str) == Some("default") {
        metadata.remove("namespace");
    }
    let mut text = String::new();
    json::write(manifest, &mut text).expect("within the limits of the writer");
    text
}
