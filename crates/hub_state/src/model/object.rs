//! The model of an object that is compared with its desired state.

use super::parse;
use crate::annotations::OWNER;
use crate::model::{CertificateRequest, Kind, OPEN};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use ocm::work::{MANAGED_BY, OURS};
use pki::Certificate;
use primitives::object_ref::ObjectRef;
use runtime::metadata::Metadata;
use serde::Deserialize;
use serde_json::{Value, json};

/// An object with only the fields that are compared or read.
#[derive(Clone, Debug)]
pub struct Object {
    pub uid: Box<str>,
    pub version: Box<str>,
    pub deleting: bool,
    /// The fields that are compared with the desired state, as JSON: a merge patch keeps fields that others added.
    pub object: Value,
    /// The certificates in the object, if it is a record of issued certificates.
    pub certificates: Box<[IssuedCertificate]>,
    /// The CertificateSigningRequest, if the object is one.
    pub request: Option<Box<CertificateRequest>>,
}

/// Heartbeats and the status of others change the resource version alone, and leave the object equal.
impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            uid,
            version: _,
            deleting,
            object,
            certificates,
            request,
        } = self;
        (uid, *deleting, object) == (&other.uid, other.deleting, &other.object)
            && (certificates, request) == (&other.certificates, &other.request)
    }
}

/// A certificate that was issued to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// The UID of the request.
    pub request: Box<str>,
    /// The SHA-256 of the certificate in upper-case hex, as in argocd-agent.
    pub fingerprint: Box<str>,
    pub not_after: Timestamp,
    /// The certificate in PEM.
    pub pem: ByteString,
}

impl Object {
    pub fn from_json(kind: Kind, text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            metadata: Metadata,
        }
        let Head { metadata } = parse(text)?;
        // Only the UID and the deletion of an ApplicationSet matter.
        let object = if kind == Kind::ApplicationSets {
            Value::Null
        } else {
            parse(text)?
        };
        let data = (kind == Kind::IssuedCertificates).then(|| &object["data"]);
        Ok(Self {
            certificates: data.map(certificates).unwrap_or_default(),
            request: (kind == Kind::Requests).then(|| parse(text)).transpose()?,
            object: compared(kind, object),
            uid: metadata.uid,
            version: metadata.resource_version,
            deleting: metadata.deletion_timestamp.is_some(),
        })
    }

    pub fn is_ours(&self) -> bool {
        self.object["metadata"]["labels"][MANAGED_BY] == OURS
    }

    /// Returns the GitOpsCluster of the object, if the controller manages it and it has one.
    pub fn owner(&self) -> Option<ObjectRef> {
        let owner = self.object["metadata"]["annotations"][OWNER].as_str()?;
        ObjectRef::parse(owner).filter(|_| self.is_ours())
    }

    pub fn last_expiry(&self) -> Option<Timestamp> {
        self.certificates.iter().map(|certificate| certificate.not_after).max()
    }

    /// Returns the managed clusters in the object, if it is a PlacementDecision.
    pub fn decided_clusters(&self) -> impl Iterator<Item = &str> {
        let all = self.object["status"]["decisions"].as_array().into_iter().flatten();
        all.filter_map(|decision| decision["clusterName"].as_str())
            .filter(|name| !name.is_empty())
    }
}

/// Reads the data of a record of issued certificates. Omits values that are not one certificate.
fn certificates(data: &Value) -> Box<[IssuedCertificate]> {
    let all = data.as_object().into_iter().flatten();
    let certificates = all.filter_map(|(request, value)| {
        let pem = ByteString::deserialize(value).ok()?;
        let [certificate] = &Certificate::read_all(&pem.0).ok()?[..] else {
            return None;
        };
        Some(IssuedCertificate {
            request: request.as_str().into(),
            fingerprint: certificate.fingerprint().to_ascii_uppercase().into(),
            not_after: certificate.not_after,
            pem,
        })
    });
    certificates.collect()
}

fn compared(kind: Kind, object: Value) -> Value {
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
    // Tenants write these kinds in their namespaces, so an object belongs only to a GitOpsCluster of its own namespace.
    if let Kind::OwnPlacements | Kind::OwnDecisions = kind
        && let Some(metadata) = object.get_mut("metadata")
    {
        let owner = metadata["annotations"][OWNER].as_str().and_then(ObjectRef::parse);
        if owner.is_some_and(|owner| metadata["namespace"] != *owner.namespace) {
            metadata["annotations"][OWNER] = Value::Null;
        }
    }
    match kind {
        // Only the name, the addresses and the readiness of a Node are kept.
        Kind::Nodes => {
            let status = object.remove("status").unwrap_or_default();
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let ready: Vec<_> = conditions
                .filter(|condition| condition["type"] == "Ready")
                .map(|condition| json!({"type": "Ready", "status": condition["status"]}))
                .collect();
            let metadata = json!({"name": object["metadata"]["name"]});
            json!({"metadata": metadata, "status": {"addresses": status["addresses"], "conditions": ready}})
        }
        Kind::Deployments => {
            let template = &object.get("spec").unwrap_or(&Value::Null)["template"];
            let containers = template["spec"]["containers"].as_array().into_iter().flatten();
            let images: Vec<_> = containers
                .map(|container| json!({"image": container["image"]}))
                .collect();
            let annotations = json!({"annotations": template["metadata"]["annotations"]});
            let spec = json!({"template": {"metadata": annotations, "spec": {"containers": images}}});
            json!({"metadata": object["metadata"], "spec": spec})
        }
        // An agent also reports each object of a work. Only the condition matters that shows if it has applied the work.
        Kind::AgentWorks => {
            let status = object.remove("status").unwrap_or_default();
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let applied: Vec<_> = conditions.filter(|condition| condition["type"] == "Applied").collect();
            object.insert("status".to_owned(), json!({"conditions": applied}));
            object.into()
        }
        // Only the existence of the Secret with the token key matters; the others have separate fields.
        Kind::TokenKey | Kind::IssuedCertificates | Kind::Requests => {
            json!({"metadata": object["metadata"]})
        }
        // Only the label that permits GitOpsClusters of other namespaces matters.
        Kind::Namespace => (object["metadata"]["labels"][OPEN] == "true").into(),
        // Only the number of managed clusters that it selects matters; null before the status is set.
        Kind::Placements => {
            let selected = |status: &Value| status["numberOfSelectedClusters"].as_u64();
            object.get("status").and_then(selected).into()
        }
        // A change of the status also changes the generation.
        Kind::Projects => {
            object.remove("status");
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.retain(|key, _| !["generation", "finalizers", "creationTimestamp"].contains(&key.as_str()));
            }
            object.into()
        }
        _ => object.into(),
    }
}
