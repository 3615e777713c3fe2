//! JSON of works with the status that OCM's agent reports.

/// Returns a work of generation 2 with these objects in its spec, as JSON, and this status.
pub fn work(cluster: &str, objects: &str, status: &str) -> String {
    format!(
        r#"{{"kind":"ManifestWork","metadata":{{"name":"shop","namespace":"{cluster}","generation":2}},"spec":{{"workload":{{"manifests":[{objects}]}}}},"status":{status}}}"#
    )
}

/// Returns a Deployment in the namespace `shop`.
pub fn object(name: &str) -> String {
    format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","namespace":"shop"}},"spec":{{}}}}"#
    )
}

/// Returns a condition since 11:00 on 2026-06-01.
pub fn condition(kind: &str, status: &str, message: &str, generation: u32) -> String {
    format!(
        r#"{{"type":"{kind}","status":"{status}","message":"{message}","reason":"ConditionRuleEvaluated","lastTransitionTime":"2026-06-01T11:00:00Z","observedGeneration":{generation}}}"#
    )
}

/// Returns the status of a Deployment with these conditions.
pub fn manifest(name: &str, conditions: &[String]) -> String {
    format!(
        r#"{{"resourceMeta":{{"group":"apps","kind":"Deployment","namespace":"shop","name":"{name}"}},"conditions":[{}]}}"#,
        conditions.join(",")
    )
}

/// Returns the status of a work: its condition Applied of this generation, and the status of its manifests.
pub fn status(applied: &str, generation: u32, manifests: &[String]) -> String {
    format!(
        r#"{{"conditions":[{}],"resourceStatus":{{"manifests":[{}]}}}}"#,
        condition("Applied", applied, "", generation),
        manifests.join(",")
    )
}

/// Returns the status of a healthy Deployment.
pub fn fine(name: &str) -> String {
    let conditions = ["Applied", "Available", "Healthy"].map(|kind| condition(kind, "True", "", 2));
    manifest(name, &conditions)
}

/// Returns the status of a Deployment that is applied, and not healthy.
pub fn broken(name: &str) -> String {
    let conditions = [
        condition("Applied", "True", "", 2),
        condition("Available", "True", "", 2),
        condition("Healthy", "False", "back-off pulling image", 2),
    ];
    manifest(name, &conditions)
}
