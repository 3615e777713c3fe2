//! The managers of the fields of live objects, from `metadata.managedFields`.
//!
//! Objects applied with kubectl have kubectl's field manager. To continue with ours, its entry is merged into ours, as `kubectl
//! apply --server-side` does for fields of `kubectl apply` (client-go's util/csaupgrade): then a field that the next version of a
//! file no longer has is removed, where it would otherwise stay for ever as kubectl's.

use super::{MANAGER, ShippedObject};
use crate::workload::{items, name};
use serde_json::{Map, Value, json};

/// The field managers with which kubectl applies files that change the same object of Argo CD as another file: with one manager,
/// the second would remove the fields of the first. They are for deploy/deploy_policy.yaml beside deploy_cmp.yaml, and for
/// deploy/redis_proxy.yaml and deploy/live_argocd.yaml beside deploy/deploy_ui.yaml.
pub const PART_MANAGERS: [&str; 3] = [
    "argocd-ocm-cmp-policy",
    "argocd-ocm-cmp-principal",
    "argocd-ocm-cmp-live",
];

/// Returns true if a field manager is ours, by `install` or by a file.
pub fn is_our_manager(manager: &Value) -> bool {
    *manager == MANAGER || PART_MANAGERS.iter().any(|part| *manager == **part)
}

/// The other field managers of our files, each with its operation: `kubectl apply`, and `kubectl apply --server-side` without
/// `--field-manager`.
const KUBECTL: [(&str, &str); 2] = [("kubectl-client-side-apply", "Update"), ("kubectl", "Apply")];

fn is_earlier(entry: &Value, is_addition: bool) -> bool {
    let is_by = |(name, operation): (&str, &str)| entry["manager"] == name && entry["operation"] == operation;
    let of_part = entry["subresource"].as_str().is_some_and(|part| !part.is_empty());
    let is_part = PART_MANAGERS.into_iter().any(|part| is_by((part, "Apply")));
    let is_one = is_part || !is_addition && KUBECTL.into_iter().any(is_by);
    is_one && !of_part
}

/// Returns the `managedFields` of an object after its earlier managers' entries are merged into ours; `None` if they have no
/// entries.
pub fn merged_managers(live: &Value, is_addition: bool) -> Option<Value> {
    let entries = items(&live["metadata"]["managedFields"]);
    let (earlier, mut others): (Vec<&Value>, Vec<&Value>) =
        entries.iter().partition(|entry| is_earlier(entry, is_addition));
    // Fields of another API version may have other names there.
    let version = &live["apiVersion"];
    let is_version = |entry: &&Value| entry["apiVersion"] == *version;
    if earlier.is_empty() || !earlier.iter().all(is_version) {
        return None;
    }
    let is_ours = |entry: &Value| entry["manager"] == MANAGER && entry["operation"] == "Apply";
    let ours = others
        .iter()
        .position(|entry| is_ours(entry))
        .map(|at| others.remove(at));
    let mut fields = json!({});
    for entry in earlier.iter().copied().chain(ours) {
        add_fields(&mut fields, &entry["fieldsV1"]);
    }
    let mut entry = ours.unwrap_or(earlier[0]).clone();
    entry["manager"] = MANAGER.into();
    entry["operation"] = "Apply".into();
    entry["fieldsV1"] = fields;
    Some(others.into_iter().cloned().chain([entry]).collect())
}

/// Returns true if our field manager alone owns Argo CD's own fields of one of its objects, so that they would be removed with
/// our additions. Detected by labels, of which we add none. kubectl causes this where Argo CD was installed by `kubectl apply`:
/// it moves all fields that it has applied to our field manager.
pub fn owns_argocd_fields(live: &Value) -> bool {
    is_ours_alone(live, "/f:metadata/f:labels")
}

/// Returns true if our field managers alone own a field, which is named by a pointer into `fieldsV1`.
pub(super) fn is_ours_alone(live: &Value, field: &str) -> bool {
    let entries = items(&live["metadata"]["managedFields"]).iter();
    let owners = entries.filter(|entry| entry["fieldsV1"].pointer(field).is_some());
    let mut managers = owners.map(|entry| &entry["manager"]).peekable();
    managers.peek().is_some() && managers.all(is_our_manager)
}

/// Adds the fields of another set. Each set is a tree: a leaf is a field, and a node with branches is a field only if it contains `.`.
fn add_fields(set: &mut Value, other: &Value) {
    for (key, branch) in other.as_object().into_iter().flatten() {
        let Some(held) = set.get_mut(key) else {
            set[key] = branch.clone();
            continue;
        };
        if is_leaf(held) != is_leaf(branch) {
            held["."] = json!({});
        }
        add_fields(held, branch);
    }
}

fn is_leaf(set: &Value) -> bool {
    set.as_object().is_none_or(Map::is_empty)
}

/// Returns true if only the status of the object changed. The API server can write the status of an object at any time, as it
/// does with each `FlowSchema`, also between our read and our write. So the resource version alone shows nothing.
pub fn is_unchanged(before: &Value, after: &Value) -> bool {
    without_status(before) == without_status(after)
}

fn without_status(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
            entries.retain(|entry| entry["subresource"].as_str().is_none_or(str::is_empty));
        }
    }
    object
}

/// Returns the other namespace that our cluster-wide binding is for: then its name is in use. A hub has one installation.
pub fn other_namespace<'v>(live: &'v Value, namespace: &str) -> Option<&'v str> {
    if live["kind"] != "ClusterRoleBinding" {
        return None;
    }
    let other = live["subjects"][0]["namespace"].as_str()?;
    (other != namespace).then_some(other)
}

/// Returns true if it is an admission policy, or the binding of one, for the controller beside an Argo CD in another namespace.
pub fn belongs_to_another_argocd(object: &ShippedObject, live: &Value, namespace: &str) -> bool {
    let end = name(live).rsplit_once('.').map(|(_, end)| end);
    object.is_admission_policy() && end != Some(namespace)
}

/// Returns the field manager in a message about a conflict, such as `conflict with "kubectl-edit" using v1`.
pub fn conflicting_manager(message: &str) -> &str {
    message.split('"').nth(1).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn live(entries: &[Value]) -> Value {
        json!({"apiVersion": "apps/v1", "metadata": {"managedFields": entries}})
    }

    #[test]
    fn takes_over_fields_applied_by_kubectl() {
        let scaled = entry("kubectl", "Update", &json!({"f:spec": {"f:replicas": {}}}));
        let applied = entry(
            "kubectl-client-side-apply",
            "Update",
            &json!({"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}}),
        );
        let ours = entry(
            MANAGER,
            "Apply",
            &json!({"f:spec": {"f:a": {".": {}, "f:d": {}}, "f:b": {}}}),
        );
        let merged = merged_managers(&live(&[applied.clone(), scaled.clone(), ours]), false)
            .expect("earlier managers have entries");
        let fields = json!({"f:spec": {"f:a": {".": {}, "f:d": {}}, "f:b": {".": {}, "f:c": {}}}});
        assert_eq!(merged, json!([scaled, entry(MANAGER, "Apply", &fields)]));
        let merged =
            merged_managers(&live(std::slice::from_ref(&applied)), false).expect("earlier managers have entries");
        assert_eq!(merged, json!([entry(MANAGER, "Apply", &applied["fieldsV1"])]));
        assert_eq!(
            merged_managers(&live(&[scaled]), false),
            None,
            "another manager set these fields on purpose"
        );
    }

    #[test]
    fn takes_over_only_added_fields_of_argo_cds_objects() {
        let argo_cds = entry("kubectl-client-side-apply", "Update", &json!({"f:spec": {"f:a": {}}}));
        assert_eq!(merged_managers(&live(std::slice::from_ref(&argo_cds)), true), None);
        let policy = entry(PART_MANAGERS[0], "Apply", &json!({"f:spec": {"f:b": {}}}));
        let merged =
            merged_managers(&live(&[argo_cds.clone(), policy.clone()]), true).expect("earlier managers have entries");
        assert_eq!(merged, json!([argo_cds, entry(MANAGER, "Apply", &policy["fieldsV1"])]));
    }

    #[test]
    fn detects_kubectl_fields_under_our_manager() {
        let labels = json!({"f:metadata": {"f:labels": {"f:app": {}}}});
        let [ours, theirs] = [entry(MANAGER, "Apply", &labels), entry("kubectl", "Apply", &labels)];
        assert!(owns_argocd_fields(&live(std::slice::from_ref(&ours))));
        assert!(
            !owns_argocd_fields(&live(&[ours, theirs])),
            "another manager owns the fields too"
        );
        assert!(!owns_argocd_fields(&live(&[entry(
            MANAGER,
            "Apply",
            &json!({"f:data": {}})
        )])));
    }

    #[test]
    fn leaves_fields_of_another_api_version_alone() {
        let mut applied = entry("kubectl-client-side-apply", "Update", &json!({"f:spec": {}}));
        applied["apiVersion"] = "apps/v1beta1".into();
        assert_eq!(merged_managers(&live(&[applied]), false), None);
    }

    #[test]
    fn status_write_is_no_change() {
        let object = |version: &str, rank: u8, status: &Value, writers: &[Value]| {
            let metadata = json!({"resourceVersion": version, "managedFields": writers});
            json!({"kind": "FlowSchema", "metadata": metadata, "spec": {"rank": rank}, "status": status})
        };
        let ours = entry(MANAGER, "Apply", &json!({"f:spec": {"f:rank": {}}}));
        let mut server = entry("api-priority-and-fairness-config-consumer-v1", "Apply", &json!({}));
        server["subresource"] = "status".into();
        let before = object("1", 5, &json!({}), std::slice::from_ref(&ours));
        let dangling = json!({"conditions": [{"type": "Dangling", "status": "False"}]});
        assert!(is_unchanged(
            &before,
            &object("2", 5, &dangling, &[ours.clone(), server])
        ));
        assert!(!is_unchanged(
            &before,
            &object("2", 6, &json!({}), std::slice::from_ref(&ours))
        ));
        let other = entry("kubectl", "Apply", &json!({"f:spec": {"f:rank": {}}}));
        assert!(!is_unchanged(&before, &object("2", 5, &json!({}), &[ours, other])));
    }

    #[test]
    fn detects_an_installation_in_another_namespace() {
        let bound = |namespace: &str| json!({"kind": "ClusterRoleBinding", "subjects": [{"namespace": namespace}]});
        assert_eq!(other_namespace(&bound("gitops"), "argocd"), Some("gitops"));
        assert_eq!(other_namespace(&bound("argocd"), "argocd"), None);
        assert_eq!(other_namespace(&json!({"kind": "ClusterRole"}), "argocd"), None);
    }

    #[test]
    fn a_conflict_names_the_manager() {
        let message = r#"conflict with "kubectl" with subresource "scale" using apps/v1"#;
        assert_eq!(conflicting_manager(message), "kubectl");
    }
}
