//! Removes fields that controllers on the managed cluster fill, and that a manifest only repeats as placeholders. Otherwise the agent
//! would take them back at each resync.

use manifest::kinds::GroupKind;
use manifest::text::decode_base64;
use manifest::value::{Map, Value};

/// The annotations or labels of objects into which cert-manager and OpenShift write a CA.
const INJECTORS: [&str; 5] = [
    "cert-manager.io/inject-apiserver-ca",
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "config.openshift.io/inject-trusted-cabundle",
    "service.beta.openshift.io/inject-cabundle",
];

pub(super) fn remove(kind: &GroupKind, metadata: &Map<'_>, fields: &mut Map<'_>) {
    let is_injected = ["annotations", "labels"].iter().any(|of| {
        let entries = metadata.get(of).and_then(Value::as_map);
        entries.is_some_and(|entries| INJECTORS.iter().any(|name| entries.get(name).is_some()))
    });
    match (&*kind.group, &*kind.kind) {
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            if let Some(Value::List(webhooks)) = fields.get_mut("webhooks") {
                for webhook in webhooks.iter_mut().filter_map(Value::as_map_mut) {
                    remove_ca_bundle(webhook.map_at_mut(&["clientConfig"]), is_injected);
                }
            }
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            remove_ca_bundle(
                fields.map_at_mut(&["spec", "conversion", "webhook", "clientConfig"]),
                is_injected,
            );
        }
        ("apiregistration.k8s.io", "APIService") => remove_ca_bundle(fields.map_at_mut(&["spec"]), is_injected),
        ("rbac.authorization.k8s.io", "ClusterRole") if fields.get("aggregationRule").is_some() => {
            fields.remove("rules");
        }
        ("", "ServiceAccount") => {
            for field in ["imagePullSecrets", "secrets"] {
                if fields.get(field).is_some_and(Value::is_empty_collection) {
                    fields.remove(field);
                }
            }
        }
        ("", "ConfigMap") if is_injected => {
            if let Some(data) = fields.map_at_mut(&["data"]) {
                data.retain(|key, value| {
                    let is_injected = matches!(key, "ca-bundle.crt" | "service-ca.crt");
                    !(is_injected && value.as_str().is_some_and(|text| text.trim().is_empty()))
                });
            }
        }
        ("", "PersistentVolume") => {
            if let Some(claim) = fields.map_at_mut(&["spec", "claimRef"]) {
                claim.retain(|key, _| !matches!(key, "uid" | "resourceVersion"));
            }
        }
        _ => {}
    }
}

/// Removes a CA that an injector replaces: of an object that names one, or a placeholder.
fn remove_ca_bundle(client_config: Option<&mut Map<'_>>, is_injected: bool) {
    let Some(config) = client_config else { return };
    let ca = config.get("caBundle").and_then(Value::as_str);
    let is_placeholder = ca
        .and_then(|text| decode_base64(text.trim()))
        .is_some_and(|decoded| decoded.trim_ascii().is_empty());
    if is_injected || is_placeholder {
        config.remove("caBundle");
    }
}

#[cfg(test)]
mod tests {
    use crate::object::tests::object;

    fn is_removed(field: &str, yaml: &str) -> bool {
        assert!(yaml.contains(field), "{yaml}");
        !object(yaml).pieces().concat().contains(field)
    }

    #[test]
    fn leaves_fields_to_the_controllers_that_fill_them() {
        let webhook = |metadata: &str, ca: &str| {
            format!(
                "{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {{name: a{metadata}}}, \
                 webhooks: [{{name: a.b.c, clientConfig: {{caBundle: {ca}}}}}]}}"
            )
        };
        let injected = ", annotations: {cert-manager.io/inject-ca-from: a/b}";
        let config_map = |label: &str, value: &str| {
            format!(
                "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, labels: {{{label}: 'true'}}}}, data: {{ca-bundle.crt: {value}}}}}"
            )
        };
        for (field, removed, counterexample) in [
            ("caBundle", webhook("", "Cg=="), webhook("", "Q0E=")),
            ("caBundle", webhook("", "''"), webhook(", annotations: {cert-manager.io/other: a}", "Q0E=")),
            ("caBundle", webhook(injected, "Q0E="), webhook("", "Q0E=")),
            (
                "caBundle",
                "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, spec: {caBundle: Cg==}}".to_owned(),
                "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, spec: {caBundle: Q0E=}}".to_owned(),
            ),
            (
                "caBundle",
                "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {webhook: \
                 {clientConfig: {caBundle: Cg==}}}}}"
                    .to_owned(),
                "{apiVersion: example.com/v1, kind: Custom, metadata: {name: a}, spec: {caBundle: Cg==}}".to_owned(),
            ),
            (
                "rules",
                "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {}, rules: []}".to_owned(),
                "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: []}".to_owned(),
            ),
            (
                "imagePullSecrets",
                "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: []}".to_owned(),
                "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: b}]}".to_owned(),
            ),
            (
                "ca-bundle.crt",
                config_map("config.openshift.io/inject-trusted-cabundle", "''"),
                config_map("config.openshift.io/other", "''"),
            ),
            (
                "uid",
                "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {claimRef: {name: b, uid: c}}}".to_owned(),
                "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {uid: c}}".to_owned(),
            ),
        ] {
            assert!(is_removed(field, &removed), "{removed}");
            assert!(!is_removed(field, &counterexample), "{counterexample}");
        }
    }
}
