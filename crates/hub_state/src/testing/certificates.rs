//! Secrets of CAs, and certificates that they issue.

use super::now;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use pki::Recipe;
use runtime::writer::read_authority;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Returns the Secrets of two CAs that are valid for a year from [`now`].
pub fn authorities() -> &'static [Value; 2] {
    static ALL: OnceLock<[Value; 2]> = OnceLock::new();
    ALL.get_or_init(|| ["one", "other"].map(|name| authority(name, now() + SignedDuration::from_hours(24 * 365))))
}

/// Returns the Secret of a CA that is valid until this time.
pub fn authority(name: &str, not_after: Timestamp) -> Value {
    let recipe = Recipe::Authority {
        common_name: name.to_owned(),
        validity: now()..not_after,
    };
    let made = pki::make(&recipe, None).expect("an authority");
    let data: BTreeMap<_, _> = made
        .into_iter()
        .map(|(key, value)| (key, value.map(ByteString)))
        .collect();
    json!({"metadata": {"uid": name, "resourceVersion": name}, "type": "kubernetes.io/tls", "data": data})
}

/// Returns the Secret of the first CA, which trusts the second one as well.
pub fn both(first: &Value, second: &Value) -> Value {
    let text = |secret: &Value| {
        let text: ByteString = serde_json::from_value(secret["data"]["tls.crt"].clone()).expect("a certificate");
        text.0
    };
    let mut both = first.clone();
    both["data"]["tls.crt"] = json!(ByteString([text(first), text(second)].concat()));
    both["metadata"]["resourceVersion"] = json!("both");
    both
}

/// Issues a certificate and puts it into a Secret's data, as the writer does.
pub fn put(recipe: &Recipe, authority: &Value, object: &mut Value) {
    let authority = read_authority(&authority.to_string()).expect("an authority").1;
    for (key, value) in pki::make(recipe, Some(&authority)).expect("it can be made") {
        object["data"][key] = json!(value.map(ByteString));
    }
}
