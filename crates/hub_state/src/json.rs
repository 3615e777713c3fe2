//! Reads fields of JSON values, which may be missing or have any type.
//!
//! The objects of the hub borrow their keys and strings from the text that the API server sends: owned ones need an allocation for
//! each, which takes longer than parsing them. The objects that the controller builds are owned.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use manifest::value::Value as Borrowed;
use manifest::yaml;
use runtime::invalid_object::InvalidObject;
use serde::{Serialize, Serializer};
use serde_json::Value as Owned;

/// A JSON value.
pub trait Json: Sized {
    /// Returns a field of an object.
    fn field(&self, key: &str) -> Option<&Self>;

    /// Returns a string.
    fn as_text(&self) -> Option<&str>;

    /// Returns an integer.
    fn as_integer(&self) -> Option<i64>;

    /// Returns the elements of a list.
    fn as_elements(&self) -> Option<&[Self]>;

    /// Returns the fields of an object, in the order of their names.
    fn as_fields(&self) -> Option<impl Iterator<Item = (&str, &Self)>>;

    /// Writes a value that is neither a list nor an object: the same bytes for an owned and a borrowed value.
    ///
    /// # Errors
    ///
    /// Returns the error of the serializer.
    fn serialize_scalar<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

impl Json for Owned {
    fn field(&self, key: &str) -> Option<&Self> {
        self.get(key)
    }

    fn as_text(&self) -> Option<&str> {
        self.as_str()
    }

    fn as_integer(&self) -> Option<i64> {
        self.as_i64()
    }

    fn as_elements(&self) -> Option<&[Self]> {
        self.as_array().map(Vec::as_slice)
    }

    fn as_fields(&self) -> Option<impl Iterator<Item = (&str, &Self)>> {
        let fields = self.as_object()?.iter();
        Some(fields.map(|(key, value)| (&**key, value)))
    }

    fn serialize_scalar<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.as_i64(), self.as_f64()) {
            (Some(integer), _) => serializer.serialize_i64(integer),
            (None, Some(float)) => serializer.serialize_f64(float),
            (None, None) => self.serialize(serializer),
        }
    }
}

impl Json for Borrowed<'_> {
    fn field(&self, key: &str) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    fn as_text(&self) -> Option<&str> {
        self.as_str()
    }

    fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Int(integer) => Some(*integer),
            _ => None,
        }
    }

    fn as_elements(&self) -> Option<&[Self]> {
        match self {
            Self::List(elements) => Some(elements),
            _ => None,
        }
    }

    fn as_fields(&self) -> Option<impl Iterator<Item = (&str, &Self)>> {
        Some(self.as_map()?.iter())
    }

    fn serialize_scalar<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(bool) => serializer.serialize_bool(*bool),
            Self::Int(integer) => serializer.serialize_i64(*integer),
            Self::Float(float) => serializer.serialize_f64(*float),
            Self::String(text) => serializer.serialize_str(text),
            Self::Null | Self::List(_) | Self::Map(_) => serializer.serialize_unit(),
        }
    }
}

/// A value to write as JSON, without some of its fields at any depth.
pub struct Written<'v, V> {
    value: &'v V,
    is_left_out: fn(&str, &V) -> bool,
}

impl<'v, V: Json> Written<'v, V> {
    /// Writes all of a value.
    pub fn whole(value: &'v V) -> Self {
        Self::without(value, |_, _| false)
    }

    /// Writes a value without these fields.
    pub fn without(value: &'v V, is_left_out: fn(&str, &V) -> bool) -> Self {
        Self { value, is_left_out }
    }
}

impl<V: Json> Serialize for Written<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_left_out = self.is_left_out;
        let written = |value| Written { value, is_left_out };
        if let Some(fields) = self.value.as_fields() {
            let fields = fields.filter(|(key, value)| !is_left_out(key, value));
            return serializer.collect_map(fields.map(|(key, value)| (key, written(value))));
        }
        match self.value.as_elements() {
            Some(elements) => serializer.collect_seq(elements.iter().map(written)),
            None => self.value.serialize_scalar(serializer),
        }
    }
}

/// Returns the JSON of a value.
pub fn to_string(value: &impl Json) -> String {
    serde_json::to_string(&Written::whole(value)).expect("JSON is written as JSON")
}

/// Parses an object of the hub.
///
/// # Errors
///
/// Returns an error if the text is not JSON.
pub fn parse(text: &str) -> Result<Borrowed<'_>, InvalidObject> {
    yaml::json(text).map_err(|error| InvalidObject::new(&error.message))
}

/// The maximum number of lists and objects around a value, as in serde_json.
const DEPTH: usize = 127;

/// Refuses an object with too deep values, which cannot be [written](Written) because that recurses.
///
/// # Errors
///
/// Returns an error if a list or object is in 127 others.
pub fn check_depth(object: &impl Json) -> Result<(), InvalidObject> {
    if is_deeper(object, DEPTH) {
        return Err(InvalidObject::new("values are nested more than 127 levels deep"));
    }
    Ok(())
}

fn is_deeper<V: Json>(value: &V, depth: usize) -> bool {
    let (elements, fields) = (value.as_elements(), value.as_fields());
    let Some(depth) = depth.checked_sub(1) else {
        return elements.is_some() || fields.is_some();
    };
    elements.into_iter().flatten().any(|element| is_deeper(element, depth))
        || fields.into_iter().flatten().any(|(_, field)| is_deeper(field, depth))
}

/// Returns the value at a path of field names, each after a slash.
pub fn at<'v, V: Json>(value: &'v V, path: &str) -> Option<&'v V> {
    path.split('/').skip(1).try_fold(value, |value, key| value.field(key))
}

/// Returns the non-empty string at this path of an object.
pub fn text_at<'v>(object: &'v impl Json, path: &str) -> Option<&'v str> {
    at(object, path)?.as_text().filter(|text| !text.is_empty())
}

/// Returns an owned copy of the non-empty string at this path of an object.
pub fn own(object: &impl Json, path: &str) -> Option<Box<str>> {
    text_at(object, path).map(Into::into)
}

/// Returns the elements of the list at this path.
pub fn items<'v, V: Json>(object: &'v V, path: &str) -> &'v [V] {
    at(object, path).and_then(V::as_elements).unwrap_or_default()
}

/// Returns the annotation or label of this name, which may contain any characters.
pub fn entry<'v>(object: &'v impl Json, map: &str, name: &str) -> Option<&'v str> {
    object.field("metadata")?.field(map)?.field(name)?.as_text()
}

/// Returns the annotation of this name if it is not empty.
pub fn annotation<'v>(object: &'v impl Json, name: &str) -> Option<&'v str> {
    entry(object, "annotations", name).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn owned_and_borrowed_values_are_written_alike() {
        let text =
            r#"{"b":[null,true,"a\"\n",{}],"a":{"c":[-1,1.5,1e3,9223372036854775807,18446744073709551615],"":""}}"#;
        let owned: Owned = serde_json::from_str(text).expect("JSON");
        let written = to_string(&owned);
        assert_eq!(to_string(&parse(text).expect("JSON")), written);
        let read: Owned = serde_json::from_str(&written).expect("JSON");
        assert_eq!(read["b"], owned["b"]);
        let without = Written::without(&owned, |key, _| key == "c");
        assert_eq!(
            serde_json::to_value(without).expect("JSON"),
            json!({"a": {"": ""}, "b": owned["b"]})
        );
    }

    #[test]
    fn missing_and_wrong_fields_are_none() {
        let text = r#"{"a": {"b": ["x"], "c": 1, "": "y", "d": ""}}"#;
        let value = parse(text).expect("JSON");
        assert_eq!(
            (super::text_at(&value, "/a/"), super::text_at(&value, "/a/d")),
            (Some("y"), None)
        );
        assert_eq!(items(&value, "/a/b").len(), 1);
        assert_eq!(at(&value, "/a/c").and_then(Json::as_integer), Some(1));
        for path in ["/a/b", "/a/c", "/a/x", "/a/b/0", "/a/c/x"] {
            assert_eq!(super::text_at(&value, path), None, "{path}");
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
