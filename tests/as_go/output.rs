//! What is printed reads back to the same values through Go's libraries: YAML as kubectl reads it, JSON lines as Argo CD
//! does, which reads what a plugin prints twice.

use argocd_ocm_cmp::value::{Map, Value};
use argocd_ocm_cmp::{json, yaml};
use std::fs;
use std::path::{Path, PathBuf};

use crate::{answer, oracle, stack};

#[test]
fn what_is_printed_reads_back_the_same() {
    let (Some(mut as_kubectl), Some(mut as_argo_cd)) = (oracle::Oracle::start("yaml"), oracle::Oracle::start("cmp"))
    else {
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["tests/yaml-corpus", "tests/manifests", "tests/folders", "guestbook"] {
        collect(&root.join(folder), &mut files);
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
            // What Argo CD could not read is refused, which has its own tests.
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
                let answer = answer::read(&answer);
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

/// The same value within an object, because Argo CD takes nothing else. A negative zero comes back as zero, which is the same
/// number.
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

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            files.push(path);
        }
    }
}
