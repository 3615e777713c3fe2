//! The kinds that Argo CD and the agent watch, for clusters that have no Argo CD yet: with any content, because a stricter schema
//! is that of the Argo CD which brings it.

use super::super::labels;
use serde_json::{Value, json};

/// Kind, plural, version and short names; whether the status is a resource of its own.
type Kind = (&'static str, &'static str, &'static str, &'static [&'static str], bool);

const KINDS: [Kind; 3] = [
    ("Application", "applications", "v1alpha1", &["app", "apps"], false),
    ("AppProject", "appprojects", "v1alpha1", &["appproj", "appprojs"], false),
    (
        "ApplicationSet",
        "applicationsets",
        "v1alpha1",
        &["appset", "appsets"],
        true,
    ),
];

/// Those that argocd-operator watches besides, and without which it ends.
const OF_THE_OPERATOR: [Kind; 4] = [
    ("ArgoCD", "argocds", "v1beta1", &[], true),
    ("ArgoCDExport", "argocdexports", "v1alpha1", &[], true),
    ("NamespaceManagement", "namespacemanagements", "v1beta1", &[], true),
    (
        "NotificationsConfiguration",
        "notificationsconfigurations",
        "v1alpha1",
        &[],
        true,
    ),
];

/// What those are called that are in every template.
pub(super) fn names() -> [String; 3] {
    KINDS.map(name)
}

/// What those are called that argocd-operator watches besides.
pub(super) fn names_of_the_operator() -> [String; 4] {
    OF_THE_OPERATOR.map(name)
}

/// All that are in every template. They stay when the add-on goes.
pub(super) fn all() -> Vec<Value> {
    KINDS.map(crd).into()
}

/// Those that argocd-operator watches besides. They stay too, also when a template has them no more: what stays has no owner, and
/// OCM deletes only what has (`DeleteAppliedResources` in its `pkg/work/helper`).
pub(super) fn of_the_operator() -> [Value; 4] {
    OF_THE_OPERATOR.map(crd)
}

fn name((_, plural, ..): Kind) -> String {
    format!("{plural}.argoproj.io")
}

fn crd((kind, plural, version, short, has_status): Kind) -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut served = json!({
        "name": version,
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
        served["schema"]["openAPIV3Schema"]["properties"]["operation"] = any;
        served["additionalPrinterColumns"] = json!([
            {"name": "Sync Status", "type": "string", "jsonPath": ".status.sync.status"},
            {"name": "Health Status", "type": "string", "jsonPath": ".status.health.status"},
        ]);
    }
    if has_status {
        served["subresources"] = json!({"status": {}});
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
            "versions": [served],
        },
    })
}
