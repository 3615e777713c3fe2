//! Works from a file: as `generate` prints them, or `kubectl get`.

use super::Ownership;
use crate::generate::problem::{Problems, plain};
use crate::value::{Map, Value};
use crate::works::Work;
use crate::yaml;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads the text of a file; `-` is standard input.
///
/// # Errors
/// When it cannot be read, or is not text.
pub fn read(file: &Path) -> Result<String, Problems> {
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

/// The works of the Application among those in `text`, which is called `name`.
///
/// # Errors
/// When it is not YAML or JSON, or holds anything but works.
pub fn works<'a>(text: &'a str, name: &str, ownership: &Ownership) -> Result<Vec<Work<'a>>, Problems> {
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

/// What a list of kubectl's holds, or the value itself.
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
