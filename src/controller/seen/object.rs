//! What is seen of an object that is compared with what it shall be.

use super::{Place, Text, read};
use crate::cluster_secret::{MANAGED_BY, OURS, OWNER};
use crate::controller::watches::Kept;
use crate::pki::Certificate;
use crate::status::time;
use k8s_openapi::ByteString;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// An object of which is kept what is compared or read.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// What distinguishes it from one of the same name before it.
    pub uid: Box<str>,
    /// Which form of it this is.
    pub version: Box<str>,
    /// Whether it is going.
    pub deleting: bool,
    /// It, without what nobody looks at here.
    pub object: Value,
}

impl Object {
    /// Reads an object's JSON.
    ///
    /// # Errors
    /// With what is wrong with it, which the API server lets nobody write.
    pub fn read(kind: Kept, text: &str) -> Result<Self, String> {
        let Text::<IgnoredAny> { metadata, .. } = read(text)?;
        Ok(Self {
            object: bare(kind, read(text)?),
            uid: metadata.uid,
            version: metadata.resource_version,
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    /// Whether it is ours.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.object["metadata"]["labels"][MANAGED_BY] == OURS
    }

    /// The GitOpsCluster that it is of, if it is ours and of one.
    #[must_use]
    pub fn owner(&self) -> Option<Place> {
        let owner = self.object["metadata"]["annotations"][OWNER].as_str()?;
        let (namespace, name) = owner.split_once('/')?;
        self.is_ours().then(|| Place::new(namespace, name))
    }

    /// The managed clusters that it names, if it is a PlacementDecision.
    pub fn decided(&self) -> impl Iterator<Item = &str> {
        let all = self.object["status"]["decisions"].as_array().into_iter().flatten();
        all.filter_map(|it| it["clusterName"].as_str())
            .filter(|it| !it.is_empty())
    }
}

/// Reads the certificates of an agent once, for all who look at them. A value that is no certificate is left out.
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

/// What is kept of an object.
fn bare(kind: Kept, object: Value) -> Value {
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
        // Of what runs on a node nothing is read but where it is.
        Kept::Nodes => {
            let status = object.remove("status").unwrap_or_default();
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let ready: Vec<_> = conditions
                .filter(|condition| condition["type"] == "Ready")
                .map(|condition| json!({"type": "Ready", "status": condition["status"]}))
                .collect();
            let metadata = json!({"name": object["metadata"]["name"]});
            json!({"metadata": metadata, "status": {"addresses": status["addresses"], "conditions": ready}})
        }
        Kept::Deployments => {
            let annotations = object
                .get("spec")
                .map(|spec| &spec["template"]["metadata"]["annotations"]);
            let spec = json!({"template": {"metadata": {"annotations": annotations}}});
            json!({"metadata": object["metadata"], "spec": spec})
        }
        Kept::Issued => json!({"metadata": object["metadata"], "certificates": issued(object.get("data"))}),
        // Whether it is there is all there is to know.
        Kept::TokenKey => json!({"metadata": object["metadata"]}),
        _ => Value::Object(object),
    }
}
