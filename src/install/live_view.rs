//! The parts of the view into the clusters that no file has: its identity, and the certificate authority of OCM's cluster-proxy.

pub use live::hub_reader::{AUTHORITY, AUTHORITY_KEY};

use super::ShippedObject;
use super::merge::merge;
use k8s_openapi::ByteString;
use ocm::argocd_agent::hash;
use pki::Certificate;
use serde_json::{Value, json};

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
    pub identity: Option<Value>,
    /// The certificate of the service.
    pub certificate: Option<String>,
}

/// Returns the certificate authority in the Secret of cluster-proxy, if it is one.
pub fn live_authority(secret: &Value) -> Option<String> {
    let ByteString(bytes) = serde_json::from_value(secret["data"][AUTHORITY_KEY].clone()).ok()?;
    Certificate::read_all(&bytes).ok()?;
    String::from_utf8(bytes).ok()
}

impl LiveView {
    /// Returns the ConfigMap with the certificate authority.
    pub(super) fn authority(&self, namespace: &str) -> Option<ShippedObject> {
        let authority = self.authority.as_deref().filter(|_| !self.is_authority_foreign)?;
        Some(ShippedObject::new(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": AUTHORITY,
                "namespace": namespace,
                "labels": {"app.kubernetes.io/name": LIVE, "app.kubernetes.io/part-of": "argocd"},
            },
            "data": {AUTHORITY_KEY: authority},
        })))
    }

    /// Adds the identity to the Secret, or the certificate to the ConfigMap that argocd-server mounts.
    pub(super) fn fill(&self, object: &mut ShippedObject) {
        let data = match object.kind() {
            "Secret" => self.identity.clone(),
            _ => self
                .certificate
                .as_ref()
                .map(|certificate| json!({"tls.crt": certificate})),
        };
        if let Some(data) = data {
            merge(&mut object.value, json!({"data": data}));
        }
    }

    /// Makes the Pods of a Deployment restart with another certificate of the service, and the Pods of the service also with another
    /// certificate authority of cluster-proxy.
    pub(super) fn restart(&self, deployment: &mut ShippedObject) {
        let Some(certificate) = &self.certificate else { return };
        let authority = self.authority.as_deref().filter(|_| deployment.name() == LIVE);
        let hash = hash(&format!("{certificate}{}", authority.unwrap_or_default()));
        deployment.value["spec"]["template"]["metadata"]["annotations"][CERTIFICATE_HASH] = hash.into();
    }
}
