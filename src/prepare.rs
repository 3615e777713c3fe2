//! What Argo CD needs on a managed cluster that nobody else makes there: of each Secret, what it lacks, as a pure function of what
//! it is.
//!
//! On a hub these are made by argocd-server and by an init container of Redis, neither of which runs beside an agent.

use crate::cluster_secret::{MANAGED_BY, OURS};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// The label of the Secrets that Argo CD reads the values of its settings from, where those name a key such as `$oidc.secret`
/// (`partOfArgoCDSelector` in its util/settings/settings.go). Its manifests set it on `argocd-secret`; it finds `server.secretkey`
/// there without it as well.
const PART_OF: &str = "app.kubernetes.io/part-of";

/// The value of that label.
const ARGO_CD: &str = "argocd";

/// A Secret that Argo CD needs, and the one key of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The Secret.
    pub secret: &'static str,
    /// The key.
    pub key: &'static str,
    /// Whether it also has to have the label `app.kubernetes.io/part-of`.
    is_labelled: bool,
}

/// What Argo CD needs. The application controller answers `server.secretkey is missing` to all without the first, and the Pods of
/// all its parts do not start without the second.
pub const NEEDS: [Need; 2] = [
    Need {
        secret: "argocd-secret",
        key: "server.secretkey",
        is_labelled: true,
    },
    Need {
        secret: "argocd-redis",
        key: "auth",
        is_labelled: false,
    },
];

/// How many random bytes a value is made of, as those that Argo CD makes itself.
pub const BYTES: usize = 32;

/// What is to be written. It has the value in it, so it is not to be shown.
#[derive(PartialEq, Eq)]
pub enum Write {
    /// The Secret is to be made.
    Create(Value),
    /// The Secret is to be completed by this merge patch, which the API server refuses when it has changed since.
    Patch(Value),
}

impl Need {
    /// What is to be written where the Secret is `found`, or is not there; nothing when it has all that is needed. `random` becomes
    /// the value of the key where that is not there: what is there is not touched, be it empty or another label than Argo CD's.
    #[must_use]
    pub fn lacking(&self, found: Option<&Value>, namespace: &str, random: &[u8; BYTES]) -> Option<Write> {
        // Text, as Argo CD makes it: a password for Redis is an argument of its command line.
        let text = json!(ByteString(random.to_vec()));
        let text = text.as_str().unwrap_or_default().as_bytes().to_vec();
        let data = json!({self.key: ByteString(text)});
        let Some(found) = found else {
            return Some(Write::Create(json!({
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
        let metadata = &found["metadata"];
        let is_lacking_label = self.is_labelled && metadata["labels"].get(PART_OF).is_none();
        let is_lacking_value = found["data"].get(self.key).is_none();
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
        Some(Write::Patch(patch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: [u8; BYTES] = [7; BYTES];
    /// In base64 twice: the value is text, and Secrets hold bytes.
    const VALUE: &str = "QndjSEJ3Y0hCd2NIQndjSEJ3Y0hCd2NIQndjSEJ3Y0hCd2NIQndjSEJ3Yz0=";

    fn lacking(need: Need, found: Option<&Value>) -> Option<Value> {
        let write = need.lacking(found, "argocd", &RANDOM)?;
        Some(match write {
            Write::Create(object) => json!({"create": object}),
            Write::Patch(patch) => json!({"patch": patch}),
        })
    }

    fn secret(labels: &Value, data: &Value) -> Value {
        json!({"metadata": {"resourceVersion": "5", "labels": labels}, "data": data})
    }

    #[test]
    fn what_is_not_there_is_made() {
        let [server, redis] = NEEDS;
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
        assert_eq!(lacking(server, None), Some(expected));
        let expected = created("argocd-redis", json!({"auth": VALUE}));
        assert_eq!(lacking(redis, None), Some(expected));
    }

    #[test]
    fn only_what_is_lacking_is_written() {
        let [server, redis] = NEEDS;
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
        for (found, expected) in [
            (secret(&labels, &data), None),
            (secret(&part_of("shop"), &data), None),
            (
                secret(&labels, &json!({"admin.password": "eA=="})),
                patch(None, Some(&value)),
            ),
            (secret(&json!({"a": "b"}), &data), patch(Some(&labels), None)),
            // Without labels and data at all.
            (secret(&Value::Null, &Value::Null), patch(Some(&labels), Some(&value))),
        ] {
            assert_eq!(lacking(server, Some(&found)), expected, "{found}");
        }
        let found = secret(&Value::Null, &json!({"auth": "eA=="}));
        assert_eq!(lacking(redis, Some(&found)), None);
        let found = secret(&Value::Null, &json!({"password": "eA=="}));
        assert_eq!(lacking(redis, Some(&found)), patch(None, Some(&json!({"auth": VALUE}))));
    }
}
