//! The kinds that Argo CD and the agent watch, for clusters that have no Argo CD yet: with any content, because a stricter schema
//! is that of the Argo CD which brings it.

use super::super::labels;
use serde_json::{Value, json};

/// Kind, plural and short names; whether the status is a resource of its own.
const KINDS: [(&str, &str, [&str; 2], bool); 3] = [
    ("Application", "applications", ["app", "apps"], false),
    ("AppProject", "appprojects", ["appproj", "appprojs"], false),
    ("ApplicationSet", "applicationsets", ["appset", "appsets"], true),
];

/// What they are called.
pub(super) fn names() -> [String; 3] {
    KINDS.map(|(_, plural, ..)| format!("{plural}.argoproj.io"))
}

/// All of them. They stay when the add-on goes.
pub(super) fn all() -> Vec<Value> {
    KINDS.map(crd).into()
}

fn crd((kind, plural, short, has_status): (&str, &str, [&str; 2], bool)) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut version = json!({
        "name": "v1alpha1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": {
            "type": "object",
            "required": ["metadata", "spec"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": any,
                "status": any,
            },
        }},
    });
    if kind == "Application" {
        version["schema"]["openAPIV3Schema"]["properties"]["operation"] = any;
        version["additionalPrinterColumns"] = json!([
            {"name": "Sync Status", "type": "string", "jsonPath": ".status.sync.status"},
            {"name": "Health Status", "type": "string", "jsonPath": ".status.health.status"},
        ]);
    }
    if has_status {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.argoproj.io"),
            "labels": labels(),
            "annotations": {super::STAYS: ""},
        },
        "spec": {
            "group": "argoproj.io",
            "scope": "Namespaced",
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase(), "shortNames": short,
            },
            "versions": [version],
        },
    })
}
