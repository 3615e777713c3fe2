//! Makes one object of two that are about the same one. Applied one after the other under one field manager, the second would take
//! away what the first has set.

use crate::value::{Map, Value};

/// Adds what `more` has to `into`; where both have a field, that of `more` counts. Items of lists are the same by the keys that
/// Kubernetes tells them apart by, as far as our files have such lists.
pub(super) fn merge<'a>(into: &mut Value<'a>, more: Value<'a>) {
    match (into, more) {
        (Value::Map(into), Value::Map(more)) => {
            for (key, value) in more.iter() {
                match into.get_mut(key) {
                    Some(held) => merge(held, value.clone()),
                    None => into.insert(key.to_owned(), value.clone()),
                }
            }
        }
        (Value::List(into), Value::List(more)) => {
            for item in more {
                let same = item.as_map().and_then(key_of);
                let held = into
                    .iter_mut()
                    .find(|held| same.is_some() && held.as_map().and_then(key_of) == same);
                match held {
                    Some(held) => merge(held, item),
                    None => into.push(item),
                }
            }
        }
        (into, more) => *into = more,
    }
}

/// What tells an item from the others of its list: mounts have their path, all else has a name.
fn key_of<'m>(item: &'m Map<'_>) -> Option<&'m str> {
    item.get("mountPath").or_else(|| item.get("name"))?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    #[test]
    fn items_are_the_same_by_their_keys() {
        let read = |text| yaml::json(text).expect("JSON");
        let mut one = read(
            r#"{"a":1,"containers":[{"name":"x","image":"i","volumeMounts":[{"mountPath":"/a","name":"v"}]}],"volumes":[{"name":"v"}]}"#,
        );
        let other = r#"{"a":2,"containers":[{"name":"x","env":[{"name":"E"}],"volumeMounts":[{"mountPath":"/b","name":"v"}]},{"name":"y"}]}"#;
        merge(&mut one, read(other));
        let wanted = r#"{"a":2,"containers":[{"name":"x","image":"i","env":[{"name":"E"}],
            "volumeMounts":[{"mountPath":"/a","name":"v"},{"mountPath":"/b","name":"v"}]},{"name":"y"}],"volumes":[{"name":"v"}]}"#;
        assert_eq!(one, read(wanted));
        let before = one.clone();
        merge(&mut one, before.clone());
        assert_eq!(one, before, "what is there already is not there twice");
    }
}
