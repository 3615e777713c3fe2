//! The Secrets that Argo CD needs on a managed cluster: the missing parts of each, as a pure function of its current state.
//!
//! On a hub, argocd-server and an init container of Redis create them; neither runs beside an agent.

use k8s_openapi::ByteString;
use ocm::work::{MANAGED_BY, OURS};
use serde_json::{Value, json};

/// The label of the Secrets from which Argo CD reads setting values that name a key such as `$oidc.secret`
/// (`partOfArgoCDSelector` in its util/settings/settings.go). Its manifests set it on `argocd-secret`; `server.secretkey` is
/// found without it as well.
const PART_OF: &str = "app.kubernetes.io/part-of";

/// The value of that label.
const ARGO_CD: &str = "argocd";

/// A Secret that Argo CD needs, with its one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredKey {
    /// The Secret.
    pub secret: &'static str,
    /// The key.
    pub key: &'static str,
    /// True if it also needs the label `app.kubernetes.io/part-of`.
    is_labelled: bool,
}

/// The Secrets that Argo CD needs. Without the first, the application controller answers every request with `server.secretkey is
/// missing`; without the second, no Pod of Argo CD starts.
pub const REQUIRED_KEYS: [RequiredKey; 2] = [
    RequiredKey {
        secret: "argocd-secret",
        key: "server.secretkey",
        is_labelled: true,
    },
    RequiredKey {
        secret: "argocd-redis",
        key: "auth",
        is_labelled: false,
    },
];

/// The number of random bytes of a value, as in values that Argo CD creates itself.
pub const BYTES: usize = 32;

/// A write of a Secret. It contains the value, so it must not be shown.
#[derive(PartialEq, Eq)]
pub enum SecretWrite {
    /// Create the Secret.
    Create(Value),
    /// Complete the Secret with this merge patch, which the API server rejects if the Secret has changed since it was read.
    Patch(Value),
}

impl RequiredKey {
    /// Returns the write that completes the Secret `existing`, which may not exist; `None` if it is complete. `random` becomes
    /// the value of a missing key. Existing values stay, even an empty one, or a label that differs from Argo CD's.
    pub fn missing_write(
        &self,
        existing: Option<&Value>,
        namespace: &str,
        random: &[u8; BYTES],
    ) -> Option<SecretWrite> {
        // Text, as Argo CD creates it: a password of Redis is an argument of its command line.
        let text = json!(ByteString(random.to_vec()));
        let text = text.as_str().unwrap_or_default().as_bytes().to_vec();
        let data = json!({self.key: ByteString(text)});
        let Some(secret) = existing else {
            return Some(SecretWrite::Create(json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": self.secret,
                    "namespace": namespace,
                    "labels": {PART_OF: ARGO_CD, MANAGED_BY: OURS},
                },
                "type": "Opaque",
                "data": data,
            })));
        };
        let metadata = &secret["metadata"];
        let is_lacking_label = self.is_labelled && metadata["labels"].get(PART_OF).is_none();
        let is_lacking_value = secret["data"].get(self.key).is_none();
        if !is_lacking_value && !is_lacking_label {
            return None;
        }
        let mut patch = json!({"metadata": {"resourceVersion": metadata["resourceVersion"]}});
        if is_lacking_label {
            patch["metadata"]["labels"] = json!({PART_OF: ARGO_CD});
        }
        if is_lacking_value {
            patch["data"] = data;
        }
        Some(SecretWrite::Patch(patch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: [u8; BYTES] = [7; BYTES];
    /// Encoded in base64 twice: the value is text, and Secrets contain bytes.
    const VALUE: &str = "QndjSEJ3Y0hCd2NIQndjSEJ3Y0hCd2NIQndjSEJ3Y0hCd2NIQndjSEJ3Yz0=";

    fn missing_write(required_key: RequiredKey, existing: Option<&Value>) -> Option<Value> {
        let write = required_key.missing_write(existing, "argocd", &RANDOM)?;
        Some(match write {
            SecretWrite::Create(object) => json!({"create": object}),
            SecretWrite::Patch(patch) => json!({"patch": patch}),
        })
    }

    fn secret(labels: &Value, data: &Value) -> Value {
        json!({"metadata": {"resourceVersion": "5", "labels": labels}, "data": data})
    }

    #[test]
    fn creates_missing_secrets() {
        let [server, redis] = REQUIRED_KEYS;
        let created = |name: &str, data: Value| {
            json!({"create": {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": name,
                    "namespace": "argocd",
                    "labels": {
                        "app.kubernetes.io/part-of": "argocd",
                        "app.kubernetes.io/managed-by": "argocd-ocm-cmp",
                    },
                },
                "type": "Opaque",
                "data": data,
            }})
        };
        let expected = created("argocd-secret", json!({"server.secretkey": VALUE}));
        assert_eq!(missing_write(server, None), Some(expected));
        let expected = created("argocd-redis", json!({"auth": VALUE}));
        assert_eq!(missing_write(redis, None), Some(expected));
    }

    #[test]
    fn patches_only_missing_keys() {
        let [server, redis] = REQUIRED_KEYS;
        let part_of = |what| json!({"app.kubernetes.io/part-of": what});
        let (labels, data) = (part_of("argocd"), json!({"server.secretkey": ""}));
        let patch = |labels: Option<&Value>, data: Option<&Value>| {
            let mut patch = json!({"metadata": {"resourceVersion": "5"}});
            if let Some(labels) = labels {
                patch["metadata"]["labels"] = labels.clone();
            }
            if let Some(data) = data {
                patch["data"] = data.clone();
            }
            Some(json!({"patch": patch}))
        };
        let value = json!({"server.secretkey": VALUE});
        for (existing, expected) in [
            (secret(&labels, &data), None),
            (secret(&part_of("shop"), &data), None),
            (
                secret(&labels, &json!({"admin.password": "eA=="})),
                patch(None, Some(&value)),
            ),
            (secret(&json!({"a": "b"}), &data), patch(Some(&labels), None)),
            // Without labels and data.
            (secret(&Value::Null, &Value::Null), patch(Some(&labels), Some(&value))),
        ] {
            assert_eq!(missing_write(server, Some(&existing)), expected, "{existing}");
        }
        let existing = secret(&Value::Null, &json!({"auth": "eA=="}));
        assert_eq!(missing_write(redis, Some(&existing)), None);
        let existing = secret(&Value::Null, &json!({"password": "eA=="}));
        assert_eq!(
            missing_write(redis, Some(&existing)),
            patch(None, Some(&json!({"auth": VALUE})))
        );
    }
}
