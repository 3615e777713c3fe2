//! A fake API server in memory for unit tests. `tests/data/conformance` checks that a real API server gives the same responses.

mod call;
mod selector;
#[cfg(test)]
mod tests;

pub use call::Call;
pub use selector::selects;

use http::{Method, Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testing::merge;

/// The time of all creations and deletions.
const TIME: &str = "2026-06-01T12:00:00Z";

/// The response of the API server, and the stored object.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The body of the response.
    pub body: Value,
    /// The stored object after the request; none if it was deleted.
    pub stored: Option<Value>,
}

/// The rejection of a request.
struct Refused {
    code: u16,
    reason: &'static str,
    /// The reason and the field of the cause.
    cause: Option<(&'static str, String)>,
}

impl Refused {
    const NOT_FOUND: Self = Self::new(404, "NotFound");
    const CONFLICT: Self = Self::new(409, "Conflict");

    const fn new(code: u16, reason: &'static str) -> Self {
        Self {
            code,
            reason,
            cause: None,
        }
    }

    fn invalid(cause: &'static str, field: &str) -> Self {
        Self {
            cause: Some((cause, field.to_owned())),
            ..Self::new(422, "Invalid")
        }
    }

    fn body(&self) -> Value {
        let causes = self.cause.iter();
        let causes: Vec<_> = causes
            .map(|(reason, field)| json!({"reason": reason, "field": field}))
            .collect();
        json!({"kind": "Status", "status": "Failure", "code": self.code, "reason": self.reason, "details": {"causes": causes}})
    }
}

/// Responds to a read or a write of one object. A written object gets this resource version.
pub fn answer(call: &Call, existing: Option<&Value>, version: u64) -> Answer {
    execute(call, existing, version).unwrap_or_else(|refused| Answer {
        code: refused.code,
        body: refused.body(),
        stored: existing.cloned(),
    })
}

fn execute(call: &Call, existing: Option<&Value>, version: u64) -> Result<Answer, Refused> {
    if call
        .subresource
        .as_deref()
        .is_some_and(|subresource| !call.subresources().contains(&subresource))
    {
        return Err(Refused::NOT_FOUND);
    }
    let Some(existing) = existing else {
        return match call.method {
            Method::POST => Ok(create(call, version)),
            // A write with the UID of a deleted object would replace another object.
            Method::PUT if call.plural == "leases" && !call.body["metadata"]["uid"].is_null() => Err(Refused::CONFLICT),
            Method::PUT if call.plural == "leases" => Ok(create(call, version)),
            _ => Err(Refused::NOT_FOUND),
        };
    };
    match call.method {
        Method::GET => Ok(stored(200, existing.clone())),
        Method::POST => Err(Refused::new(409, "AlreadyExists")),
        Method::DELETE => delete(call, existing, version),
        Method::PUT => update(call, existing, call.body.clone(), version),
        _ => {
            let mut after = existing.clone();
            merge(&mut after, &call.body);
            update(call, existing, after, version)
        }
    }
}

fn stored(code: u16, object: Value) -> Answer {
    Answer {
        code,
        body: object.clone(),
        stored: Some(object),
    }
}

fn create(call: &Call, version: u64) -> Answer {
    let mut object = call.body.clone();
    if call.has_status() {
        object.as_object_mut().expect("an object").remove("status");
    }
    match &*call.plural {
        "secrets" if object["type"].is_null() => object["type"] = json!("Opaque"),
        "deployments" | "certificatesigningrequests" => object["status"] = json!({}),
        _ => {}
    }
    let metadata = &mut object["metadata"];
    if let Some(namespace) = &call.namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata["uid"] = json!(format!("uid-{version}"));
    metadata["creationTimestamp"] = json!(TIME);
    metadata["resourceVersion"] = json!(version.to_string());
    metadata.as_object_mut().expect("a map").remove("generation");
    if call.has_generation() {
        metadata["generation"] = json!(1);
    }
    tidy(call, &mut object);
    stored(201, object)
}

/// Removes empty fields, as the API server does.
fn tidy(call: &Call, object: &mut Value) {
    let is_empty = |value: &Value| match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        value => value.is_null(),
    };
    let metadata = object["metadata"].as_object_mut().expect("a map");
    metadata.retain(|_, value| !is_empty(value));
    if call.group.is_empty() {
        let fields = object.as_object_mut().expect("an object");
        fields.retain(|key, value| key != "data" || !is_empty(value));
    }
}

fn finalizers(object: &Value) -> Vec<&Value> {
    let all = object["metadata"]["finalizers"].as_array();
    all.into_iter().flatten().collect()
}

fn delete(call: &Call, existing: &Value, version: u64) -> Result<Answer, Refused> {
    let metadata = &existing["metadata"];
    for key in ["uid", "resourceVersion"] {
        let desired = &call.body["preconditions"][key];
        if !desired.is_null() && *desired != metadata[key] {
            return Err(Refused::CONFLICT);
        }
    }
    if finalizers(existing).is_empty() {
        let mut details = json!({"name": metadata["name"], "kind": call.plural, "uid": metadata["uid"]});
        if !call.group.is_empty() {
            details["group"] = json!(call.group);
        }
        return Ok(Answer {
            code: 200,
            body: json!({"kind": "Status", "metadata": {}, "status": "Success", "details": details}),
            stored: None,
        });
    }
    let mut after = existing.clone();
    if metadata["deletionTimestamp"].is_null() {
        let metadata = &mut after["metadata"];
        metadata["deletionTimestamp"] = json!(TIME);
        metadata["deletionGracePeriodSeconds"] = json!(0);
        metadata["resourceVersion"] = json!(version.to_string());
        if call.has_generation() {
            raise_generation(&mut after);
        }
    }
    Ok(stored(200, after))
}

fn raise_generation(object: &mut Value) {
    let generation = object["metadata"]["generation"].as_i64().unwrap_or_default();
    object["metadata"]["generation"] = json!(generation + 1);
}

/// Stores the result of a write.
fn update(call: &Call, before: &Value, mut after: Value, version: u64) -> Result<Answer, Refused> {
    check(call, before, &after)?;
    for key in [
        "uid",
        "namespace",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ] {
        after["metadata"][key] = before["metadata"][key].clone();
    }
    let mut after = match call.subresource.as_deref() {
        None if call.plural == "certificatesigningrequests" => with(after, before, &["spec", "status"]),
        None if call.has_status() => with(after, before, &["status"]),
        None => after,
        Some("approval") => approve(before, &after)?,
        Some(_) if call.plural == "certificatesigningrequests" => issue(before, &after)?,
        Some(_) => with(before.clone(), &after, &["status"]),
    };
    tidy(call, &mut after);
    let new = finalizers(&after);
    if before["metadata"]["deletionTimestamp"].is_string() && new.iter().any(|name| !finalizers(before).contains(name))
    {
        return Err(Refused::invalid("FieldValueForbidden", "metadata.finalizers"));
    }
    if call.has_generation() && call.content_of(before) != call.content_of(&after) {
        raise_generation(&mut after);
    }
    if after == *before {
        return Ok(stored(200, after));
    }
    if after["metadata"]["deletionTimestamp"].is_string() && finalizers(&after).is_empty() {
        return Ok(Answer {
            code: 200,
            body: after,
            stored: None,
        });
    }
    after["metadata"]["resourceVersion"] = json!(version.to_string());
    Ok(stored(200, after))
}

/// Rejects changes of immutable fields.
fn check(call: &Call, before: &Value, after: &Value) -> Result<(), Refused> {
    let (old, new) = (&before["metadata"], &after["metadata"]);
    let differs = |key: &str| !new[key].is_null() && new[key] != old[key];
    if differs("name") {
        return Err(Refused::new(400, "BadRequest"));
    }
    if new["resourceVersion"].is_null() && call.is_custom() {
        return Err(Refused::invalid("FieldValueInvalid", "metadata.resourceVersion"));
    }
    if differs("resourceVersion") {
        return Err(Refused::CONFLICT);
    }
    for key in ["uid", "deletionTimestamp"] {
        if differs(key) {
            return Err(Refused::invalid("FieldValueInvalid", &format!("metadata.{key}")));
        }
    }
    if call.plural == "secrets" && before["type"] != after["type"] {
        return Err(Refused::invalid("FieldValueInvalid", "type"));
    }
    Ok(())
}

/// Returns an object with some fields of another one.
fn with(mut object: Value, other: &Value, keys: &[&str]) -> Value {
    let fields = object.as_object_mut().expect("an object");
    for key in keys {
        match other.get(key) {
            Some(value) => fields.insert((*key).to_owned(), value.clone()),
            None => fields.remove(*key),
        };
    }
    object
}

fn conditions<'o>(request: &'o Value, kinds: &[&str]) -> Vec<&'o Value> {
    let all = request["status"]["conditions"].as_array().into_iter().flatten();
    all.filter(|condition| kinds.iter().any(|kind| condition["type"] == *kind))
        .collect()
}

const FORBIDDEN: &str = "FieldValueForbidden";

/// Updates the approval of a CertificateSigningRequest: only its conditions change, conditions of approval, denial or failure are
/// permanent, and no request is both approved and denied.
fn approve(before: &Value, after: &Value) -> Result<Value, Refused> {
    let lasting = ["Approved", "Denied", "Failed"];
    let now = conditions(after, &lasting);
    if conditions(before, &lasting)
        .iter()
        .any(|condition| !now.contains(condition))
    {
        return Err(Refused::invalid(FORBIDDEN, "status.conditions"));
    }
    if ["Approved", "Denied"]
        .iter()
        .all(|kind| !conditions(after, &[kind]).is_empty())
    {
        return Err(Refused::invalid("FieldValueInvalid", "status.conditions"));
    }
    let mut result = before.clone();
    result["status"]["conditions"] = after["status"]["conditions"].clone();
    Ok(result)
}

/// Updates the status of a CertificateSigningRequest: it cannot approve the request, and the certificate is permanent.
fn issue(before: &Value, after: &Value) -> Result<Value, Refused> {
    let decided = ["Approved", "Denied"];
    if conditions(before, &decided) != conditions(after, &decided) {
        return Err(Refused::invalid(FORBIDDEN, "status.conditions"));
    }
    let certificate = &before["status"]["certificate"];
    if !certificate.is_null() && *certificate != after["status"]["certificate"] {
        return Err(Refused::invalid(FORBIDDEN, "status.certificate"));
    }
    Ok(with(before.clone(), after, &["status"]))
}

/// A whole API server: objects by path.
#[derive(Clone, Debug, Default)]
pub struct ApiServer {
    /// The last resource version.
    pub version: u64,
    /// The objects by the path of each.
    pub objects: BTreeMap<String, Value>,
}

impl ApiServer {
    /// Carries out a request.
    pub fn send(&mut self, request: &Request<Vec<u8>>) -> (u16, Value) {
        let call = Call::from_request(request);
        let Some(path) = call.object_path() else {
            let all = self.objects.iter().filter(|(path, _)| call.is_of_list(path));
            return (200, call.list(all.map(|(_, object)| object)));
        };
        let Answer { code, body, stored } = answer(&call, self.objects.get(&path), self.version + 1);
        if self.objects.get(&path) != stored.as_ref() {
            self.version += 1;
        }
        match stored {
            Some(object) => self.objects.insert(path, object),
            None => self.objects.remove(&path),
        };
        (code, body)
    }
}
