//! The parts of the view into the clusters that no file has: its identity, and the certificate authority of OCM's cluster-proxy.

pub use live::hub_reader::{AUTHORITY, AUTHORITY_KEY};

use super::ShippedObject;
use super::merge::merge;
use k8s_openapi::ByteString;
use manifest::value::{Map, Value};
use ocm::argocd_agent::hash;
use pki::Certificate;
use serde_json::Value as Json;

/// The name of the service, and of its objects.
pub const LIVE: &str = live::identity::NAME;

/// The namespace of OCM's cluster-proxy, and its Secret with its certificate authority under the same key.
pub const CLUSTER_PROXY_NAMESPACE: &str = "open-cluster-management-addon";
/// See [`CLUSTER_PROXY_NAMESPACE`].
pub const AUTHORITY_SECRET: &str = "proxy-server-ca";

/// The annotation of Pods with a hash of the certificates that they read only at their start. Its change restarts them.
const CERTIFICATE_HASH: &str = "argocd-ocm-cmp.github.io/live-certificate";

/// The parts of the view that no file has. Without them, the service creates its identity at its first start.
#[derive(Clone, Debug, Default)]
pub struct LiveView {
    /// The certificate authority of cluster-proxy, which the service trusts.
    pub authority: Option<String>,
    /// True if the ConfigMap with it is another's.
    pub is_authority_foreign: bool,
    /// The data of the Secret with the identity.
    pub identity: Option<Json>,
    /// The certificate of the service.
    pub certificate: Option<String>,
}

/// Returns the certificate authority in the Secret of cluster-proxy, if it is one.
#[must_use]
pub fn live_authority(secret: &Json) -> Option<String> {
    let ByteString(bytes) = serde_json::from_value(secret["data"][AUTHORITY_KEY].clone()).ok()?;
    Certificate::read_all(&bytes).ok()?;
    String::from_utf8(bytes).ok()
}

impl LiveView {
    /// Returns the ConfigMap with the certificate authority.
    pub(super) fn authority(&self, namespace: &str) -> Option<ShippedObject> {
        let authority = self.authority.as_deref().filter(|_| !self.is_authority_foreign)?;
        let labels = [
            ("app.kubernetes.io/name", LIVE),
            ("app.kubernetes.io/part-of", "argocd"),
        ];
        let metadata = [
            ("name", Value::from_text(AUTHORITY)),
            ("namespace", Value::from_text(namespace)),
            (
                "labels",
                Value::map(labels.map(|(key, value)| (key, Value::from_text(value)))),
            ),
        ];
        Some(ShippedObject::new(Value::map([
            ("apiVersion", Value::from_text("v1")),
            ("kind", Value::from_text("ConfigMap")),
            ("metadata", Value::map(metadata)),
            ("data", Value::map([(AUTHORITY_KEY, Value::from_text(authority))])),
        ])))
    }

    /// Adds the identity to the Secret, or the certificate to the ConfigMap that argocd-server mounts.
    pub(super) fn fill(&self, object: &mut ShippedObject) {
        let mut data = Map::from_fields([]);
        if object.kind() == "Secret" {
            for (key, value) in self.identity.iter().filter_map(Json::as_object).flatten() {
                data.insert(key.clone(), Value::from_text(value.as_str().unwrap_or_default()));
            }
        } else if let Some(certificate) = &self.certificate {
            data.insert("tls.crt", Value::from_text(certificate.as_str()));
        }
        if data.iter().next().is_some() {
            merge(object.value_mut(), Value::map([("data", Value::Map(data))]));
        }
    }

    /// Makes the Pods of argocd-server restart with another certificate of the service.
    pub(super) fn restart_server(&self, deployment: &mut ShippedObject) {
        if let Some(certificate) = &self.certificate {
            restart_with(deployment, certificate);
        }
    }

    /// Makes the Pods of the service restart with another certificate, or another certificate authority of cluster-proxy.
    pub(super) fn restart_service(&self, deployment: &mut ShippedObject) {
        if let Some(certificate) = &self.certificate {
            let authority = self.authority.as_deref().unwrap_or_default();
            restart_with(deployment, &format!("{certificate}{authority}"));
        }
    }
}

fn restart_with(deployment: &mut ShippedObject, certificates: &str) {
    let annotations = Value::map([(CERTIFICATE_HASH, Value::from_text(hash(certificates)))]);
    let path = ["annotations", "metadata", "template", "spec"];
    let nested = path
        .into_iter()
        .fold(annotations, |inner, key| Value::map([(key, inner)]));
    merge(deployment.value_mut(), nested);
}
