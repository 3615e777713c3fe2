//! The CRDs of the kinds that Argo CD and the agent watch, for clusters without an Argo CD. They allow any content: an Argo CD
//! that is installed there brings its own, stricter schema.

use super::super::labels;
use super::context::STAYS;
use serde_json::{Value, json};

/// The kind, plural, version and short names, and true if the status is a subresource.
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

/// The additional kinds that argocd-operator watches, and without which it exits.
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

/// Returns the names of the CRDs in every template.
pub(super) fn names() -> [String; 3] {
    KINDS.map(name)
}

/// Returns the names of the additional CRDs that argocd-operator watches.
pub(super) fn names_of_the_operator() -> [String; 4] {
    OF_THE_OPERATOR.map(name)
}

/// Returns the CRDs of every template. They stay when the add-on is uninstalled.
pub(super) fn all() -> Vec<Value> {
    KINDS.map(crd).into()
}

/// Returns the additional CRDs that argocd-operator watches. They also stay when a later template does not contain them: an
/// object that stays has no owner, and OCM deletes only objects with one (`DeleteAppliedResources` in its `pkg/work/helper`).
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
            "annotations": {STAYS: ""},
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
