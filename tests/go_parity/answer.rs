//! Compares our parsed values with those of Go's libraries.

use manifest::value::Value;
use manifest::yaml;
use serde::Deserialize;
use serde_json::Value as Json;

/// Parses an answer of the oracle, which may be nested deeply.
pub(crate) fn parse_answer(answer: &str) -> Json {
    let mut reader = serde_json::Deserializer::from_str(answer);
    reader.disable_recursion_limit();
    Json::deserialize(&mut reader).expect("the answer is JSON")
}

/// Compares our parse of a file's bytes with an answer of `oracle yaml`; returns the difference, if any.
pub(crate) fn difference(input: &[u8], answer: &str) -> Option<String> {
    let answer = parse_answer(answer);
    let expected = answer["documents"].as_array().expect("there are documents");
    let must_fail = !answer["error"].is_null();
    let text = yaml::decode(input);
    let mut error = text.as_ref().err().map(ToString::to_string);
    let mut documents = Vec::new();
    for document in text.iter().flat_map(|text| yaml::documents(text)) {
        match document {
            Ok(document) => documents.push(document.value),
            Err(reason) => error = Some(reason.to_string()),
        }
    }
    let agree = documents.len() == expected.len()
        && documents
            .iter()
            .zip(expected)
            .all(|(ours, theirs)| is_same(ours, theirs))
        && error.is_some() == must_fail;
    if agree {
        return None;
    }
    let ours = format!("{documents:?}, error {error:?}");
    let theirs = format!("{}, error {}", answer["documents"], answer["error"]);
    Some(format!(
        "    ours:   {}\n    theirs: {}",
        shorten(&ours),
        shorten(&theirs)
    ))
}

pub(crate) fn is_same(ours: &Value<'_>, theirs: &Json) -> bool {
    match (ours, theirs) {
        (Value::Null, Json::Null) => true,
        (Value::Bool(ours), Json::Bool(theirs)) => ours == theirs,
        (Value::String(ours), Json::String(theirs)) => ours == theirs,
        (Value::List(ours), Json::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| is_same(ours, theirs))
        }
        (Value::Map(ours), Json::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .all(|(key, ours)| theirs.get(key).is_some_and(|theirs| is_same(ours, theirs)))
        }
        (Value::Int(_) | Value::Float(_), Json::Number(theirs)) => is_same_number(ours, theirs.as_str()),
        _ => false,
    }
}

/// Returns true if a number of the answer equals ours. Both are parsed from text as Kubernetes parses numbers, because Go prints a
/// float with an integral value without a decimal point.
fn is_same_number(ours: &Value<'_>, theirs: &str) -> bool {
    let ours = match ours {
        Value::Float(float) if float.fract() == 0.0 && float.abs() < 1e21 => {
            format!("{float}").parse().map_or(Value::Float(*float), Value::Int)
        }
        other => other.clone(),
    };
    let theirs = match theirs.parse() {
        Ok(whole) => Value::Int(whole),
        Err(_) => Value::Float(theirs.parse().expect("a number")),
    };
    ours == theirs
}

fn shorten(text: &str) -> String {
    const LENGTH: usize = 600;
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
