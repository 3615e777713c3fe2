//! Reads fields of JSON values, which may be missing or have any type.
//!
//! The objects of the hub borrow their keys and strings from the text that the API server sends: owned ones need an allocation for
//! each, which takes longer than parsing them.

use manifest::value::{Map, Value};
use manifest::yaml;
use serde::{Serialize, Serializer};
use serde_json::{Value as Owned, json};
use std::borrow::Cow;

/// Borrows an object that the controller builds.
pub fn borrowed(value: &Owned) -> Value<'_> {
    match value {
        Owned::Null => Value::Null,
        Owned::Bool(bool) => Value::Bool(*bool),
        Owned::Number(number) => match number.as_i64() {
            Some(integer) => Value::Int(integer),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Owned::String(text) => Value::String(Cow::Borrowed(text)),
        Owned::Array(elements) => Value::List(elements.iter().map(borrowed).collect()),
        Owned::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.into(), borrowed(value)));
            Value::Map(Map::from_entries(fields.collect()))
        }
    }
}

/// Returns an object without the fields that are null, or an empty object or list. The elements of lists stay as they are.
pub fn without_empty(mut value: Owned) -> Owned {
    if let Owned::Object(fields) = &mut value {
        for field in fields.values_mut() {
            *field = without_empty(field.take());
        }
        fields.retain(|_, field| ![Owned::Null, json!({}), json!([])].contains(field));
    }
    value
}

/// A value to write as JSON, without some of its fields at any depth.
pub struct Written<'v, 't> {
    value: &'v Value<'t>,
    is_left_out: fn(&str, &Value<'_>) -> bool,
}

impl<'v, 't> Written<'v, 't> {
    pub fn whole(value: &'v Value<'t>) -> Self {
        Self::without(value, |_, _| false)
    }

    /// Writes a value without these fields.
    pub fn without(value: &'v Value<'t>, is_left_out: fn(&str, &Value<'_>) -> bool) -> Self {
        Self { value, is_left_out }
    }
}

impl Serialize for Written<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_left_out = self.is_left_out;
        let written = |value| Written { value, is_left_out };
        match self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(bool) => serializer.serialize_bool(*bool),
            Value::Int(integer) => serializer.serialize_i64(*integer),
            Value::Float(float) => serializer.serialize_f64(*float),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(elements) => serializer.collect_seq(elements.iter().map(written)),
            Value::Map(fields) => {
                let fields = fields.iter().filter(|(key, value)| !is_left_out(key, value));
                serializer.collect_map(fields.map(|(key, value)| (key, written(value))))
            }
        }
    }
}

pub fn to_string(value: &Value<'_>) -> String {
    serde_json::to_string(&Written::whole(value)).expect("JSON is written as JSON")
}

/// Parses an object of the hub.
pub fn parse(text: &str) -> Result<Value<'_>, String> {
    yaml::json(text).map_err(|error| error.message.into_owned())
}

/// The maximum number of lists and objects around a value, as in serde_json.
const DEPTH: usize = 127;

/// Refuses an object with too deep values, which cannot be [written](Written) because that recurses.
pub fn check_depth(object: &Value<'_>) -> Result<(), String> {
    if is_deeper(object, DEPTH) {
        return Err("values are nested more than 127 levels deep".to_owned());
    }
    Ok(())
}

fn is_deeper(value: &Value<'_>, depth: usize) -> bool {
    let rest = depth.checked_sub(1);
    let is_below = |value| rest.is_none_or(|depth| is_deeper(value, depth));
    match value {
        Value::List(elements) => rest.is_none() || elements.iter().any(is_below),
        Value::Map(fields) => rest.is_none() || fields.iter().any(|(_, field)| is_below(field)),
        _ => false,
    }
}

/// Returns the value at a path of field names, each after a slash.
pub fn at<'v, 't>(value: &'v Value<'t>, path: &str) -> Option<&'v Value<'t>> {
    let mut keys = path.split('/').skip(1);
    keys.try_fold(value, |value, key| value.as_map()?.get(key))
}

pub fn integer_at(object: &Value<'_>, path: &str) -> Option<i64> {
    match at(object, path)? {
        Value::Int(integer) => Some(*integer),
        _ => None,
    }
}

/// Returns the non-empty string at this path of an object.
pub fn text_at<'v>(object: &'v Value<'_>, path: &str) -> Option<&'v str> {
    at(object, path)?.as_str().filter(|text| !text.is_empty())
}

/// Returns an owned copy of the non-empty string at this path of an object.
pub fn own(object: &Value<'_>, path: &str) -> Option<Box<str>> {
    text_at(object, path).map(Into::into)
}

pub fn items<'v, 't>(object: &'v Value<'t>, path: &str) -> &'v [Value<'t>] {
    at(object, path).map(Value::items).unwrap_or_default()
}

/// Returns the annotation or label of this name, which may contain any characters.
pub fn entry<'v>(object: &'v Value<'_>, map: &str, name: &str) -> Option<&'v str> {
    object.as_map()?.at(&["metadata", map, name])?.as_str()
}

/// Returns the labels of an object, sorted by key.
pub fn labels<'v>(object: &'v Value<'_>) -> impl Iterator<Item = (&'v str, &'v str)> {
    let labels = at(object, "/metadata/labels").and_then(Value::as_map);
    let labels = labels.into_iter().flat_map(Map::iter);
    labels.filter_map(|(key, value)| Some((key, value.as_str()?)))
}

/// Returns the annotation of this name if it is not empty.
pub fn annotation<'v>(object: &'v Value<'_>, name: &str) -> Option<&'v str> {
    entry(object, "annotations", name).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_and_borrowed_values_are_written_alike() {
        let text =
            r#"{"b":[null,true,"a\"\n",{}],"a":{"c":[-1,1.5,1e3,9223372036854775807,18446744073709551615],"":""}}"#;
        let owned: Owned = serde_json::from_str(text).expect("JSON");
        let written = to_string(&borrowed(&owned));
        assert_eq!(to_string(&parse(text).expect("JSON")), written);
        let read: Owned = serde_json::from_str(&written).expect("JSON");
        assert_eq!(read["b"], owned["b"]);
        let value = borrowed(&owned);
        let without = Written::without(&value, |key, _| key == "c");
        assert_eq!(
            serde_json::to_value(without).expect("JSON"),
            json!({"a": {"": ""}, "b": owned["b"]})
        );
    }

    #[test]
    fn missing_and_wrong_fields_are_none() {
        let text = r#"{"a": {"b": ["x"], "c": 1, "": "y", "d": ""}}"#;
        let value = parse(text).expect("JSON");
        assert_eq!((text_at(&value, "/a/"), text_at(&value, "/a/d")), (Some("y"), None));
        assert_eq!(items(&value, "/a/b").len(), 1);
        assert_eq!(
            (integer_at(&value, "/a/c"), integer_at(&value, "/a/d")),
            (Some(1), None)
        );
        for path in ["/a/b", "/a/c", "/a/x", "/a/b/0", "/a/c/x"] {
            assert_eq!(text_at(&value, path), None, "{path}");
        }
        assert!(items(&value, "/a/c").is_empty());
    }

    #[test]
    fn objects_have_a_maximum_depth() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            for depth in [1, 127, 128, 1000] {
                let text = format!("{}{}{}", open.repeat(depth), "1", close.repeat(depth));
                let value = parse(&text).expect("JSON");
                assert_eq!(check_depth(&value).is_ok(), depth <= DEPTH, "{depth}");
            }
        }
    }
}
