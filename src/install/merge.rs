//! Merges two objects with the same identity. If they were applied one after the other with one field manager, the second would
//! remove the fields of the first.

use manifest::value::{Map, Value};

/// Merges `more` into `into`; a field in both gets the value of `more`. Items of lists match by Kubernetes' merge keys, for the
/// lists that our files contain.
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

/// Returns the merge key of an item: the path of mounts, the name of all others.
fn key_of<'m>(item: &'m Map<'_>) -> Option<&'m str> {
    item.get("mountPath").or_else(|| item.get("name"))?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::yaml;

    #[test]
    fn merges_list_items_by_key() {
        let read = |text| yaml::json(text).expect("JSON");
        let mut one = read(
            r#"{"a":1,"containers":[{"name":"x","image":"i","volumeMounts":[{"mountPath":"/a","name":"v"}]}],"volumes":[{"name":"v"}]}"#,
        );
        let other = r#"{"a":2,"containers":[{"name":"x","env":[{"name":"E"}],"volumeMounts":[{"mountPath":"/b","name":"v"}]},{"name":"y"}]}"#;
        merge(&mut one, read(other));
        let expected = r#"{"a":2,"containers":[{"name":"x","image":"i","env":[{"name":"E"}],
            "volumeMounts":[{"mountPath":"/a","name":"v"},{"mountPath":"/b","name":"v"}]},{"name":"y"}],"volumes":[{"name":"v"}]}"#;
        assert_eq!(one, read(expected));
        let before = one.clone();
        merge(&mut one, before.clone());
        assert_eq!(one, before, "equal items are not duplicated");
    }
}
