//! Works from a file: as printed by `generate`, or `kubectl get`.

use manifest::problem::{Problems, plain};
use manifest::value::{Map, Value};
use manifest::yaml;
use ocm::ownership::Ownership;
use ocm::work::Work;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads the text of a file; `-` is standard input.
pub(crate) fn read_input(file: &Path) -> Result<String, Problems> {
    let mut bytes = Vec::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    let name = file.display();
    read.map_err(|error| Problems::one(format!("{name}: the works cannot be read: {}", plain(&error))))?;
    match yaml::decode(&bytes) {
        Ok(text) => Ok(text.into_owned()),
        Err(error) => Err(Problems::one(format!("{name}:{}: {}", error.line, error.message))),
    }
}

/// Returns the works of the Application in `text`, which has the name `name`.
pub(crate) fn works<'a>(text: &'a str, name: &str, ownership: &Ownership) -> Result<Vec<Work<'a>>, Problems> {
    let mut works = Vec::new();
    let mut problems = Vec::new();
    for document in yaml::documents(text) {
        let document = match document {
            Ok(document) => document,
            Err(error) => return Err(Problems::one(format!("{name}:{}: {}", error.line, error.message))),
        };
        let (line, number) = (document.line, document.number);
        for value in items(document.value) {
            match Work::new(value) {
                Ok(work)
                    if work
                        .metadata()
                        .is_some_and(|metadata| ownership.owns(work.kind(), metadata)) =>
                {
                    works.push(work);
                }
                Ok(_) => {}
                Err(reason) => problems.push(format!("{name}:{line}: document {number}: {reason}")),
            }
        }
    }
    Problems::or(problems, works)
}

/// Returns the items of a `List` of kubectl, or the value itself.
fn items(value: Value<'_>) -> Vec<Value<'_>> {
    let is_list = |fields: &Map<'_>| {
        let kind = fields.get("kind").and_then(Value::as_str);
        kind.is_some_and(|kind| kind.ends_with("List"))
    };
    match value {
        Value::Map(mut fields) if is_list(&fields) => match fields.remove("items") {
            Some(Value::List(items)) => items,
            _ => Vec::new(),
        },
        other => vec![other],
    }
}
