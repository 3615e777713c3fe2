//! The model of an object that is compared with its desired state.

use super::{Text, read};
use crate::annotations::OWNER;
use crate::model::AgentResource;
use k8s_openapi::ByteString;
use ocm::health::time;
use ocm::object_ref::ObjectRef;
use ocm::work::{MANAGED_BY, OURS};
use pki::Certificate;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// An object with only the fields that are compared or read.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The UID, which distinguishes it from an earlier object of the same name.
    pub uid: Box<str>,
    /// The resource version.
    pub version: Box<str>,
    /// True if the object has a deletion timestamp.
    pub deleting: bool,
    /// The object, without unused fields.
    pub object: Value,
}

impl Object {
    /// Reads the JSON of an object.
    ///
    /// # Errors
    ///
    /// Returns an error that describes the invalid JSON or field; the API server accepts no such object.
    pub fn read(kind: AgentResource, text: &str) -> Result<Self, String> {
        let Text::<IgnoredAny> { metadata, .. } = read(text)?;
        Ok(Self {
            object: bare(kind, read(text)?),
            uid: metadata.uid,
            version: metadata.resource_version,
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// Returns true if the controller manages the object.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.object["metadata"]["labels"][MANAGED_BY] == OURS
    }

    /// Returns the GitOpsCluster of the object, if the controller manages it and it has one.
    #[must_use]
    pub fn owner(&self) -> Option<ObjectRef> {
        let owner = self.object["metadata"]["annotations"][OWNER].as_str()?;
        let (namespace, name) = owner.split_once('/')?;
        self.is_ours().then(|| ObjectRef::new(namespace, name))
    }

    /// Returns the managed clusters in the object, if it is a PlacementDecision.
    pub fn decided(&self) -> impl Iterator<Item = &str> {
        let all = self.object["status"]["decisions"].as_array().into_iter().flatten();
        all.filter_map(|it| it["clusterName"].as_str())
            .filter(|it| !it.is_empty())
    }
}

/// Reads the certificates of an agent once for all readers. Values that are not certificates are omitted.
fn issued(data: Option<&Value>) -> Value {
    let all = data.and_then(Value::as_object).into_iter().flatten();
    let read = all.filter_map(|(request, value)| {
        let text = ByteString::deserialize(value).ok()?;
        let [certificate] = &Certificate::read_all(&text.0).ok()?[..] else {
            return None;
        };
        let entry = json!({
            "fingerprint": certificate.fingerprint().to_ascii_uppercase(),
            "until": time(certificate.not_after),
            "certificate": value,
        });
        Some((request.clone(), entry))
    });
    Value::Object(read.collect())
}

/// Returns the fields of an object that are kept.
fn bare(kind: AgentResource, object: Value) -> Value {
    let Value::Object(mut object) = object else {
        return Value::Null;
    };
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.retain(|key, _| {
            [
                "name",
                "namespace",
                "labels",
                "annotations",
                "generation",
                "finalizers",
                "creationTimestamp",
            ]
            .contains(&key.as_str())
        });
    }
    match kind {
        // Only the name, the addresses and the readiness of a Node are kept.
        AgentResource::Nodes => {
            let status = object.remove("status").unwrap_or_default();
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let ready: Vec<_> = conditions
                .filter(|condition| condition["type"] == "Ready")
                .map(|condition| json!({"type": "Ready", "status": condition["status"]}))
                .collect();
            let metadata = json!({"name": object["metadata"]["name"]});
            json!({"metadata": metadata, "status": {"addresses": status["addresses"], "conditions": ready}})
        }
        AgentResource::Deployments => {
            let annotations = object
                .get("spec")
                .map(|spec| &spec["template"]["metadata"]["annotations"]);
            let spec = json!({"template": {"metadata": {"annotations": annotations}}});
            json!({"metadata": object["metadata"], "spec": spec})
        }
        AgentResource::Issued => json!({"metadata": object["metadata"], "certificates": issued(object.get("data"))}),
        // Only the existence of the Secret matters.
        AgentResource::TokenKey => json!({"metadata": object["metadata"]}),
        _ => Value::Object(object),
    }
}
