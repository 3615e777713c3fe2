//! Checks that Go's libraries parse our output to the same values: YAML as kubectl parses it, JSON lines as Argo CD does, which
//! parses the output of a plugin twice.

use manifest::value::{Map, Value};
use manifest::{json, yaml};
use std::fs;
use std::path::Path;

use crate::{answer, oracle, stack};

#[test]
fn go_parses_printed_yaml_and_json_to_the_same_values() {
    let (mut as_kubectl, mut as_argo_cd) = (oracle::Oracle::start("yaml"), oracle::Oracle::start("cmp"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in "tests/data/yaml-corpus tests/data/manifests tests/data/generate guestbook".split(' ') {
        files.extend(testbed::files(&root.join(folder), &["yaml", "yml"]).expect("the files"));
    }
    files.sort();
    let texts: Vec<String> = files
        .iter()
        .filter_map(|file| Some(yaml::decode(&fs::read(file).ok()?).ok()?.into_owned()))
        .collect();
    let compared = stack::with_stack(|| {
        let documents = texts
            .iter()
            .flat_map(|text| yaml::documents(text))
            .filter_map(Result::ok);
        let values: Vec<Value<'_>> = documents.map(|document| in_an_object(document.value)).collect();
        let mut lines = Vec::new();
        let mut readable = Vec::new();
        let mut printed = Vec::new();
        for value in values {
            let mut line = String::new();
            // The writer rejects values that Argo CD could not parse; other tests cover that.
            if json::write(&value, &mut line).is_ok() {
                lines.push(line + "\n");
                readable.push(yaml::write(&value));
                printed.push(value);
            }
        }
        for (which, texts, answers) in [
            ("JSON", &lines, as_argo_cd.ask(&lines)),
            ("YAML", &readable, as_kubectl.ask(&readable)),
        ] {
            for ((value, text), answer) in printed.iter().zip(texts).zip(answers) {
                let answer = answer::parse_answer(&answer);
                let documents = answer["documents"].as_array().expect("documents");
                let same = documents.len() == 1 && answer::is_same(value, &documents[0]);
                assert!(
                    same && answer["error"].is_null(),
                    "{which}:\n{text}\nis read as\n{answer}"
                );
            }
        }
        printed.len()
    });
    assert!(compared > 600, "{compared} documents");
}

/// Wraps the value in an object, because Argo CD accepts nothing else. A negative zero becomes zero, which is the same number.
fn in_an_object(value: Value<'_>) -> Value<'_> {
    Value::Map(Map::from_entries(vec![
        ("kind".into(), Value::String("Test".into())),
        ("apiVersion".into(), Value::String("v1".into())),
        ("value".into(), without_negative_zero(value)),
    ]))
}

fn without_negative_zero(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Float(0.0) => Value::Int(0),
        Value::List(items) => Value::List(items.into_iter().map(without_negative_zero).collect()),
        Value::Map(mut map) => {
            map.retain(|_, value| {
                let inner = std::mem::replace(value, Value::Null);
                *value = without_negative_zero(inner);
                true
            });
            Value::Map(map)
        }
        other => other,
    }
}
