//! Generates the CRD of the types: `schemars` derives their schema, this module adds the requirements of Kubernetes.

use super::{Field, GitOpsCluster};
use manifest::yaml;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::path::Path;

const HEAD: &str = "\
# Registers the managed clusters that a Placement selects in an Argo CD, if the controller gitopscluster runs.
#
#   kubectl apply --server-side -f deploy/gitopscluster_crd.yaml
#
# Both versions have one schema, the union of argocd-pull-integration's v1alpha1 and Red Hat ACM's v1beta1, so an object written
# in one version is read in the other without loss. It replaces the CRD of either integration; existing objects stay.
#
# It is generated from the types in crates/ocm/src/gitops_cluster.rs.
";

const FILE: &str = "deploy/gitopscluster_crd.yaml";
/// The environment variable that makes the test write the file.
const REWRITE: &str = "REWRITE";

impl<T: JsonSchema> JsonSchema for Field<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Returns the CEL rules for a value, each with the message for a violation.
pub(super) fn rules(rules: &[(&str, &str)]) -> Value {
    let all = rules
        .iter()
        .map(|(rule, message)| json!({"rule": rule, "message": message}));
    all.collect()
}

/// Returns the schema of any Kubernetes object.
pub(super) fn object() -> Value {
    json!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Returns the schema of a number or percentage of clusters, in a format that OCM's rollouts read.
fn share(minimum: u8, percentage: &str) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true,
        "minimum": minimum,
        "maximum": 999_999,
        "pattern": percentage,
    })
}

pub(super) fn any_share(_: &mut SchemaGenerator) -> Schema {
    share(0, "^(100|[0-9]{1,2})%$")
}

pub(super) fn some_share(_: &mut SchemaGenerator) -> Schema {
    share(1, "^(100|[1-9][0-9]?)%$")
}

/// Removes `null` from optional fields, as for Go's types.
fn without_null(schema: &mut Schema) {
    let is_null = |schema: &Value| schema["type"] == "null";
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        let only = types.pop();
        schema.insert("type".to_owned(), only.expect("a type"));
    }
    if let Some(Value::Array(any)) = schema.remove("anyOf") {
        let only = any.into_iter().find(|schema| !is_null(schema));
        for (key, value) in only.as_ref().and_then(Value::as_object).expect("a schema") {
            schema
                .ensure_object()
                .entry(key.clone())
                .or_insert_with(|| value.clone());
        }
    }
}

/// Removes number formats that only Rust has and Kubernetes does not know.
fn without_formats(schema: &mut Schema) {
    let is_of_rust = |format: &Value| format.as_str().is_some_and(|format| format.starts_with("uint"));
    if schema.get("format").is_some_and(is_of_rust) {
        schema.remove("format");
    }
}

fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<GitOpsCluster>();
    RecursiveTransform(without_null).transform(&mut schema);
    RecursiveTransform(without_formats).transform(&mut schema);
    schema.remove("title");
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    properties.expect("an object").extend([
        ("apiVersion".to_owned(), json!({"type": "string"})),
        ("kind".to_owned(), json!({"type": "string"})),
        ("metadata".to_owned(), json!({"type": "object"})),
    ]);
    schema.to_value()
}

/// Returns the columns of `kubectl get`, some of them only for `-o wide`.
fn columns() -> Value {
    let column = |name: &str, kind: &str, path: &str, priority: u8| {
        let mut column = Map::from_iter([
            ("name".to_owned(), json!(name)),
            ("type".to_owned(), json!(kind)),
            ("jsonPath".to_owned(), json!(path)),
        ]);
        if priority > 0 {
            column.insert("priority".to_owned(), json!(priority));
        }
        Value::Object(column)
    };
    json!([
        column("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#, 0),
        column("Clusters", "integer", ".status.clusters.selected", 0),
        column("Registered", "integer", ".status.clusters.registered", 0),
        column("Installed", "integer", ".status.clusters.installed", 0),
        column("Connected", "integer", ".status.clusters.connected", 0),
        column("Age", "date", ".metadata.creationTimestamp", 0),
        column("Degraded", "integer", ".status.clusters.degraded", 1),
        column("Placement", "string", ".spec.placementRef.name", 1),
        column("Server", "string", ".status.server.address", 1),
        column("Message", "string", ".status.message", 1),
    ])
}

fn crd() -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name,
            "served": true,
            "storage": storage,
            "subresources": {"status": {}},
            "additionalPrinterColumns": columns(),
            "schema": {"openAPIV3Schema": schema()},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "gitopsclusters.apps.open-cluster-management.io",
            "labels": {"app.kubernetes.io/name": "argocd-ocm-cmp", "app.kubernetes.io/part-of": "argocd"},
        },
        "spec": {
            "group": "apps.open-cluster-management.io",
            "scope": "Namespaced",
            "names": {
                "kind": "GitOpsCluster",
                "listKind": "GitOpsClusterList",
                "plural": "gitopsclusters",
                "singular": "gitopscluster",
                "shortNames": ["goc"],
            },
            "conversion": {"strategy": "None"},
            "versions": [version("v1alpha1", false), version("v1beta1", true)],
        },
    })
}

fn file() -> String {
    let crd = crd().to_string();
    let crd = yaml::json(&crd).expect("JSON");
    format!("{HEAD}{}", yaml::write(&crd))
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the caller of the test sets REWRITE")]
fn crd_matches_the_types() {
    let generated = file();
    if std::env::var_os(REWRITE).is_some() {
        std::fs::write(
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FILE),
            &generated,
        )
        .expect("the file is writable");
        return;
    }
    let shipped = include_str!("../../../../deploy/gitopscluster_crd.yaml");
    let diff = similar::TextDiff::from_lines(shipped, &generated);
    let diff = diff.unified_diff().context_radius(2).to_string();
    assert!(
        diff.is_empty(),
        "{FILE} does not match the types:\n{diff}\nRegenerate it with\n\n    {REWRITE}=1 cargo test -p ocm crd_matches_the_types\n"
    );
}
