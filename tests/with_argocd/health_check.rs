//! Tests of the health checks of works in deploy/argocd_cm.yaml, with the real Argo CD, one object at a time, without a hub.

#![allow(clippy::too_many_lines, reason = "the tables of cases are long")]

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use ocm::health;
use ocm::verdicts;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};
use testbed::{Part, Parts};

use crate::stage::shipped;

/// An object, and the health that Argo CD must show.
struct Case {
    name: &'static str,
    object: Value,
    status: &'static str,
    message: &'static str,
}

fn case(name: &'static str, object: Value, status: &'static str, message: &'static str) -> Case {
    Case {
        name,
        object,
        status,
        message,
    }
}

/// The generation of all works here; a status of generation 1 is out of date.
const GENERATION: u64 = 2;

/// The transition time of conditions, unless it matters.
const LONG_AGO: &str = "2026-01-01T00:00:00Z";
/// Times inside and outside of the grace period of a failure; replaced by real times when Argo CD runs.
const INSIDE_GRACE: &str = "10 seconds ago";
const BEFORE_INSIDE_GRACE: &str = "20 seconds ago";
const OUTSIDE_GRACE: &str = "80 seconds ago";

const HEALTHY_MESSAGE: &str = "1 object is healthy on managed cluster cluster1";
const REMOVING: &str = "the agent of managed cluster cluster1 is removing its objects; left: Deployment shop/web";
const NOT_APPLIED: &str = "waiting for the agent of managed cluster cluster1 to apply it";
const NOT_CHECKED: &str = "Deployment shop/web: waiting for the agent of managed cluster cluster1 to report its status";

/// Returns a condition as the agent sets it, for the current generation if it has one.
fn condition(kind: &str, status: &str, message: &str) -> Value {
    let mut condition = json!({
        "type": kind,
        "status": status,
        "reason": "ConditionRuleEvaluated",
        "message": message,
        "lastTransitionTime": LONG_AGO,
        "observedGeneration": GENERATION,
    });
    if kind == "Available" || kind == "StatusFeedbackSynced" {
        condition["reason"] = json!("ResourceAvailable");
        condition
            .as_object_mut()
            .expect("an object")
            .remove("observedGeneration");
    }
    condition
}

/// Returns a manifest in a work's status. All kinds except ConfigMaps and Namespaces have rules.
fn manifest(kind: &str, name: &str, conditions: &[Value]) -> Value {
    let (group, resource) = match kind {
        "Deployment" => ("apps", "deployments"),
        "Job" => ("batch", "jobs"),
        "Namespace" => ("", "namespaces"),
        _ => ("", "configmaps"),
    };
    let namespace = if kind == "Namespace" { "" } else { "shop" };
    json!({
        "resourceMeta": {
            "ordinal": 0, "group": group, "version": "v1", "kind": kind, "resource": resource, "name": name, "namespace": namespace,
        },
        "statusFeedback": {},
        "conditions": conditions,
    })
}

/// Returns the agent's conditions of an object that it has applied and found.
fn found_conditions() -> Vec<Value> {
    vec![
        condition("Applied", "True", "Apply manifest complete"),
        condition("Available", "True", "Resource is available"),
        condition("StatusFeedbackSynced", "True", ""),
    ]
}

/// Returns an available Deployment with these results of its rules.
fn deployment(name: &str, healthy: (&str, &str), progressing: (&str, &str)) -> Value {
    let mut conditions = found_conditions();
    conditions.push(condition("Healthy", healthy.0, healthy.1));
    conditions.push(condition("Progressing", progressing.0, progressing.1));
    manifest("Deployment", name, &conditions)
}

fn healthy_deployment(name: &str) -> Value {
    deployment(
        name,
        ("True", "it is not broken"),
        ("False", "2 of 2 replicas are ready"),
    )
}

fn rolling_deployment(name: &str) -> Value {
    deployment(name, ("True", ""), ("True", "1 of 2 replicas is ready"))
}

fn broken_deployment(name: &str) -> Value {
    deployment(
        name,
        ("False", "back-off restarting failed container"),
        ("True", "0 of 2 replicas are ready"),
    )
}

fn suspended_deployment(name: &str) -> Value {
    let paused = json!([
        {"name": "Image", "fieldValue": {"type": "String", "string": "nginx"}},
        {"name": "Suspended", "fieldValue": {"type": "Boolean", "boolean": true}},
    ]);
    let manifest = deployment(name, ("True", ""), ("True", "the rollout is paused"));
    with(manifest, "/statusFeedback/values", paused)
}

/// Adds a condition that a rule has set to True.
fn with_condition(mut manifest: Value, kind: &str) -> Value {
    let conditions = manifest["conditions"].as_array_mut().expect("conditions");
    conditions.push(condition(kind, "True", ""));
    manifest
}

fn config_map() -> Value {
    manifest("ConfigMap", "settings", &found_conditions())
}

/// Returns the agent's status of an object that it cannot apply, since a time.
fn refused(kind: &str, name: &str, since: &str) -> Value {
    let message = "Failed to apply manifest: namespaces \"shop\" not found";
    let mut applied = condition("Applied", "False", message);
    applied["lastTransitionTime"] = json!(since);
    let mut available = condition("Available", "False", "Resource is not available");
    available["lastTransitionTime"] = json!(since);
    manifest(kind, name, &[applied, available])
}

/// Returns a work with rules for its Deployments and Jobs whose manifests are in this state; it is applied unless one is not.
fn work(manifests: &[Value]) -> Value {
    let refused = |manifest: &Value| manifest["conditions"][0]["status"] == "False";
    let (applied, message) = if manifests.iter().any(refused) {
        ("False", "Failed to apply manifest work")
    } else {
        ("True", "Apply manifest work complete")
    };
    let mut available = condition("Available", "True", "All resources are available");
    available["observedGeneration"] = json!(GENERATION);
    let rules = |group: &str, resource: &str, types: &[&str]| {
        let rules: Vec<_> = types
            .iter()
            .map(|condition| json!({"condition": condition, "type": "CEL", "celExpressions": ["true"]}))
            .collect();
        json!({
            "resourceIdentifier": {"group": group, "resource": resource, "namespace": "*", "name": "*"},
            "conditionRules": rules,
        })
    };
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": "shop", "namespace": "cluster1", "generation": GENERATION},
        "spec": {
            "workload": {"manifests": []},
            "manifestConfigs": [
                {"resourceIdentifier": {"resource": "configmaps", "namespace": "*", "name": "*"}},
                rules("apps", "deployments", &["Progressing", "Healthy"]),
                rules("batch", "jobs", &["Progressing", "Healthy", "Complete"]),
            ],
        },
        "status": {
            "conditions": [condition("Applied", applied, message), available],
            "resourceStatus": {"manifests": manifests},
        },
    })
}

/// Returns the object with another value at a path, whose parent exists.
fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer starts with a slash");
    match object.pointer_mut(parent).expect(pointer) {
        Value::Array(items) => items[last.parse::<usize>().expect("a number")] = value,
        parent => parent[last] = value,
    }
    object
}

fn without(mut object: Value, pointer: &str) -> Value {
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer starts with a slash");
    match object.pointer_mut(parent).expect(pointer) {
        Value::Array(items) => drop(items.remove(last.parse().expect("a number"))),
        parent => drop(parent.as_object_mut().expect("an object").remove(last)),
    }
    object
}

/// Returns the time `seconds` ago, in Kubernetes' format.
fn seconds_ago(seconds: u64) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    let then = now - seconds;
    let (mut day, second) = (then / 86400, then % 86400);
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", day + 1)
}

/// Returns the object with its times relative to now.
fn with_real_times(object: &Value) -> String {
    let mut text = object.to_string();
    for seconds in [10, 20, 80] {
        text = text.replace(&format!("{seconds} seconds ago"), &seconds_ago(seconds));
    }
    text
}

/// Returns cases before and while the agent applies the work.
fn applying() -> Vec<Case> {
    let new = without(work(&[]), "/status");
    let deleted = with(
        work(&[healthy_deployment("web")]),
        "/metadata/deletionTimestamp",
        json!(LONG_AGO),
    );
    // Before 3.6, Argo CD does not check objects that are being deleted, unless they are hooks.
    let deleted_hook = with(
        deleted.clone(),
        "/metadata/finalizers",
        json!(["argocd.argoproj.io/hook-finalizer"]),
    );
    let deleting = condition("Deleting", "True", "ManifestWork is being deleted");
    let pending = if testbed::argocd_version() == "3.2" {
        "Pending deletion"
    } else {
        REMOVING
    };
    vec![
        case("a new work has no status", new.clone(), "Progressing", NOT_APPLIED),
        case(
            "an empty status",
            with(new, "/status", json!({})),
            "Progressing",
            NOT_APPLIED,
        ),
        case(
            "no condition yet",
            with(work(&[]), "/status/conditions", json!([])),
            "Progressing",
            NOT_APPLIED,
        ),
        case(
            "Applied is of an earlier generation",
            with(
                work(&[healthy_deployment("web")]),
                "/status/conditions/0/observedGeneration",
                json!(1),
            ),
            "Progressing",
            NOT_APPLIED,
        ),
        case(
            "Applied has no observedGeneration",
            without(
                work(&[healthy_deployment("web")]),
                "/status/conditions/0/observedGeneration",
            ),
            "Progressing",
            NOT_APPLIED,
        ),
        case(
            "Applied is unknown",
            with(
                work(&[healthy_deployment("web")]),
                "/status/conditions/0/status",
                json!("Unknown"),
            ),
            "Progressing",
            NOT_APPLIED,
        ),
        case(
            "the earlier generation failed, and its correction is not applied yet",
            with(
                work(&[broken_deployment("web")]),
                "/status/conditions/0/observedGeneration",
                json!(1),
            ),
            "Progressing",
            NOT_APPLIED,
        ),
        case(
            "the work is complete, and its Job was replaced",
            complete_and_changed("other"),
            "Progressing",
            "waiting for the agent of managed cluster cluster1 to apply it, which it does not do while the work is complete",
        ),
        case(
            "no generation",
            without(work(&[healthy_deployment("web")]), "/metadata/generation"),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case("the work is being deleted", deleted, "Progressing", pending),
        case("a hook is being deleted", deleted_hook.clone(), "Progressing", REMOVING),
        case(
            "a hook is being deleted, with a message of the agent",
            with(deleted_hook, "/status/conditions/1", deleting),
            "Progressing",
            "the agent of managed cluster cluster1 is removing its objects: ManifestWork is being deleted; \
             left: Deployment shop/web",
        ),
        case(
            "an object cannot be applied yet",
            work(&[refused("Deployment", "web", INSIDE_GRACE)]),
            "Progressing",
            "Deployment shop/web: Failed to apply manifest: namespaces \"shop\" not found",
        ),
        case(
            "an object cannot be applied",
            work(&[
                healthy_deployment("web"),
                refused("ConfigMap", "settings", OUTSIDE_GRACE),
            ]),
            "Degraded",
            "ConfigMap shop/settings: Failed to apply manifest: namespaces \"shop\" not found",
        ),
        case(
            "a cluster-scoped object cannot be applied",
            work(&[refused("Namespace", "shop", LONG_AGO)]),
            "Degraded",
            "Namespace shop: Failed to apply manifest: namespaces \"shop\" not found",
        ),
        case(
            "the work failed long ago, an object just now",
            work(&[
                healthy_deployment("web"),
                refused("ConfigMap", "settings", INSIDE_GRACE),
            ]),
            "Progressing",
            "ConfigMap shop/settings: Failed to apply manifest: namespaces \"shop\" not found",
        ),
        case(
            "one object failed long ago, one just now",
            work(&[
                refused("ConfigMap", "new", INSIDE_GRACE),
                refused("ConfigMap", "old", OUTSIDE_GRACE),
            ]),
            "Degraded",
            "ConfigMap shop/old: Failed to apply manifest: namespaces \"shop\" not found",
        ),
        case(
            "five objects cannot be applied",
            work(&["a", "b", "c", "d", "e"].map(|name| short(refused("ConfigMap", name, LONG_AGO)))),
            "Degraded",
            "ConfigMap shop/a: no; ConfigMap shop/b: no; ConfigMap shop/c: no; and 2 more",
        ),
        case(
            "three objects cannot be applied",
            work(&["a", "b", "c"].map(|name| short(refused("ConfigMap", name, LONG_AGO)))),
            "Degraded",
            "ConfigMap shop/a: no; ConfigMap shop/b: no; ConfigMap shop/c: no",
        ),
        case(
            "the work is not applied, and no manifest has the reason",
            with(
                work(&[healthy_deployment("web")]),
                "/status/conditions/0/status",
                json!("False"),
            ),
            "Degraded",
            "Apply manifest work complete",
        ),
        case(
            "a kind that the cluster does not serve",
            work(&[with(
                short(refused("Gadget", "g", LONG_AGO)),
                "/resourceMeta/resource",
                json!(""),
            )]),
            "Degraded",
            "Gadget shop/g: no",
        ),
        case(
            "a manifest with only its ordinal",
            work(&[with(
                short(refused("ConfigMap", "a", LONG_AGO)),
                "/resourceMeta",
                json!({"ordinal": 7}),
            )]),
            "Degraded",
            "manifests[7]: no",
        ),
        case(
            "a broken object is worse than one that is not applied yet",
            work(&[refused("ConfigMap", "settings", INSIDE_GRACE), broken_deployment("web")]),
            "Degraded",
            "Deployment shop/web: back-off restarting failed container",
        ),
    ]
}

/// Returns a manifest whose Applied condition has a short message.
fn short(manifest: Value) -> Value {
    with(manifest, "/conditions/0/message", json!("no"))
}

/// Returns cases of existing and missing objects.
fn available() -> Vec<Case> {
    let available =
        |status: &str, message: &str| with(config_map(), "/conditions/1", condition("Available", status, message));
    let gone = available("False", "Resource is not available");
    let applied_since = with(
        gone.clone(),
        "/conditions/0/lastTransitionTime",
        json!(BEFORE_INSIDE_GRACE),
    );
    let missing_since = with(
        applied_since.clone(),
        "/conditions/1/lastTransitionTime",
        json!(INSIDE_GRACE),
    );
    let applied_long_since = with(gone.clone(), "/conditions/0/lastTransitionTime", json!(OUTSIDE_GRACE));
    let leftover = with(gone.clone(), "/conditions/0/observedGeneration", json!(1));
    let lie = with(
        work(std::slice::from_ref(&gone)),
        "/status/conditions/1",
        condition("Available", "True", ""),
    );
    let gone_message = "ConfigMap shop/settings: Resource is not available";
    vec![
        case(
            "a kind without rules",
            work(&[config_map()]),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "a kind without rules that the agent has not checked yet",
            work(&[manifest("ConfigMap", "settings", &found_conditions()[..1])]),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "an object was deleted on the cluster",
            work(&[gone]),
            "Degraded",
            gone_message,
        ),
        case(
            "the condition Available of the work is ignored",
            lie,
            "Degraded",
            gone_message,
        ),
        case(
            "an object was missing and has been applied since",
            work(&[applied_since]),
            "Progressing",
            "ConfigMap shop/settings: waiting for the agent of managed cluster cluster1 to report its status",
        ),
        case(
            "an object was deleted right after it was applied",
            work(&[missing_since]),
            "Degraded",
            gone_message,
        ),
        case(
            "an object never appeared",
            work(&[applied_long_since]),
            "Degraded",
            gone_message,
        ),
        case(
            "an object cannot be read",
            work(&[available("Unknown", "Failed to fetch resource: forbidden")]),
            "Progressing",
            "ConfigMap shop/settings: Failed to fetch resource: forbidden",
        ),
        case(
            "a status of an earlier generation is ignored",
            work(&[leftover, healthy_deployment("web")]),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "a work without objects",
            work(&[]),
            "Healthy",
            "healthy on managed cluster cluster1",
        ),
    ]
}

/// Returns cases of rule results.
fn rules() -> Vec<Case> {
    let error = |pointer: &str, status: &str, reason: &str| {
        let broken_rule = with(
            with(healthy_deployment("web"), &format!("{pointer}/reason"), json!(reason)),
            &format!("{pointer}/message"),
            json!("no such key: status"),
        );
        work(&[with(broken_rule, &format!("{pointer}/status"), json!(status))])
    };
    let unknown = "Deployment shop/web: its health is not known: no such key: status";
    let without_rules = manifest("Deployment", "web", &found_conditions());
    let not_checked = manifest("Deployment", "web", &found_conditions()[..1]);
    let one_name = |name: &str| {
        let work = work(std::slice::from_ref(&without_rules));
        with(work, "/spec/manifestConfigs/1/resourceIdentifier/name", json!(name))
    };
    let old_agent = "1 object is applied on managed cluster cluster1, whose agent does not report health, which OCM 1.0 and newer does";
    vec![
        case("fine", work(&[healthy_deployment("web")]), "Healthy", HEALTHY_MESSAGE),
        case(
            "several healthy objects",
            work(&[healthy_deployment("web"), healthy_deployment("api"), config_map()]),
            "Healthy",
            "3 objects are healthy on managed cluster cluster1",
        ),
        case(
            "rolling out",
            work(&[healthy_deployment("api"), rolling_deployment("web")]),
            "Progressing",
            "Deployment shop/web: 1 of 2 replicas is ready",
        ),
        case(
            "broken and also Progressing",
            work(&[healthy_deployment("api"), broken_deployment("web")]),
            "Degraded",
            "Deployment shop/web: back-off restarting failed container",
        ),
        case(
            "broken without a message",
            work(&[deployment("web", ("False", ""), ("True", ""))]),
            "Degraded",
            "Deployment shop/web: it is broken",
        ),
        case(
            "broken and rolling out: only the worst objects are in the message",
            work(&[
                rolling_deployment("api"),
                suspended_deployment("old"),
                broken_deployment("web"),
                healthy_deployment("new"),
            ]),
            "Degraded",
            "Deployment shop/web: back-off restarting failed container",
        ),
        case(
            "rolling out is worse than suspended",
            work(&[suspended_deployment("old"), rolling_deployment("web")]),
            "Progressing",
            "Deployment shop/web: 1 of 2 replicas is ready",
        ),
        case(
            "suspended",
            work(&[healthy_deployment("web"), suspended_deployment("old")]),
            "Suspended",
            "Deployment shop/old: the rollout is paused",
        ),
        case(
            "suspended by a rule",
            work(&[with_condition(rolling_deployment("old"), "Suspended")]),
            "Suspended",
            "Deployment shop/old: 1 of 2 replicas is ready",
        ),
        case(
            "broken by a rule without a message",
            work(&[deployment(
                "web",
                ("False", "Manifest is not Healthy"),
                ("True", "Ready: no Secret"),
            )]),
            "Degraded",
            "Deployment shop/web: Ready: no Secret",
        ),
        case(
            "no longer suspended",
            work(&[with(
                suspended_deployment("web"),
                "/statusFeedback/values/1/fieldValue/boolean",
                json!(false),
            )]),
            "Progressing",
            "Deployment shop/web: the rollout is paused",
        ),
        case(
            "four are rolling out",
            work(&["a", "b", "c", "d"].map(rolling_deployment)),
            "Progressing",
            "Deployment shop/a: 1 of 2 replicas is ready; Deployment shop/b: 1 of 2 replicas is ready; \
             Deployment shop/c: 1 of 2 replicas is ready; and 1 more",
        ),
        case(
            "Healthy is of an earlier generation",
            work(&[with(
                healthy_deployment("web"),
                "/conditions/3/observedGeneration",
                json!(1),
            )]),
            "Progressing",
            NOT_CHECKED,
        ),
        case(
            "Progressing is of an earlier generation",
            work(&[with(
                healthy_deployment("web"),
                "/conditions/4/observedGeneration",
                json!(1),
            )]),
            "Progressing",
            NOT_CHECKED,
        ),
        case(
            "broken in an earlier generation",
            work(&[with(
                broken_deployment("web"),
                "/conditions/3/observedGeneration",
                json!(1),
            )]),
            "Progressing",
            NOT_CHECKED,
        ),
        case(
            "one of two conditions is missing",
            work(&[without(healthy_deployment("web"), "/conditions/4")]),
            "Progressing",
            NOT_CHECKED,
        ),
        case(
            "applied and not checked",
            work(&[not_checked]),
            "Progressing",
            NOT_CHECKED,
        ),
        case(
            "an agent without condition rules",
            work(std::slice::from_ref(&without_rules)),
            "Healthy",
            old_agent,
        ),
        case(
            "the rules are newer than the last check of the agent",
            with(
                work(std::slice::from_ref(&without_rules)),
                "/status/conditions/1/observedGeneration",
                json!(1),
            ),
            "Progressing",
            NOT_CHECKED,
        ),
        case("a rule for exactly this name", one_name("web"), "Healthy", old_agent),
        case("a rule for another name", one_name("api"), "Healthy", HEALTHY_MESSAGE),
        case(
            "a rule for all names with a prefix",
            with(
                work(&[rolling_deployment("web")]),
                "/spec/manifestConfigs/1/resourceIdentifier/name",
                json!("w*"),
            ),
            "Progressing",
            "Deployment shop/web: 1 of 2 replicas is ready",
        ),
        case(
            "the first matching entry with rules applies, as in the agent",
            with(
                work(std::slice::from_ref(&without_rules)),
                "/spec/manifestConfigs/1/conditionRules",
                json!([{"condition": "Ready"}]),
            ),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "the rule Healthy cannot be evaluated",
            error("/conditions/3", "False", "ConditionRuleExpressionError"),
            "Progressing",
            unknown,
        ),
        case(
            "the rule Healthy fails in the agent",
            error("/conditions/3", "Unknown", "ConditionRuleInternalError"),
            "Progressing",
            unknown,
        ),
        case(
            "the rule Progressing cannot be evaluated",
            error("/conditions/4", "False", "ConditionRuleExpressionError"),
            "Progressing",
            unknown,
        ),
        case(
            "the rule Progressing has an unknown type",
            error("/conditions/4", "Unknown", "ConditionRuleInvalid"),
            "Progressing",
            unknown,
        ),
    ]
}

/// Returns a Deployment on which the agent reports these values; unless they say otherwise, its rollout is complete.
fn deployment_with(values: &[(&str, Value)]) -> Value {
    let names = [
        "DesiredReplicas",
        "Replicas",
        "UpdatedReplicas",
        "AvailableReplicas",
        "Generation",
        "Observed",
    ];
    let complete = names.iter().map(|name| (*name, json!(3)));
    let values = complete.chain(values.iter().cloned()).map(|(name, value)| {
        let field = match value {
            Value::Number(_) => "integer",
            Value::Bool(_) => "boolean",
            _ => "string",
        };
        json!({"name": name, "fieldValue": {field: value}})
    });
    with(
        manifest("Deployment", "web", &found_conditions()),
        "/statusFeedback/values",
        values.collect(),
    )
}

/// Returns a work whose agent reports the values of Deployments, and no conditions by rules.
fn work_with_values(manifest: Value) -> Value {
    let values = verdicts::find("apps", "Deployment").expect("a kind").values.iter();
    let hash = ("ContentHash", "of the annotation");
    let paths: Value = values
        .chain([&hash])
        .map(|(name, path)| json!({"name": name, "path": path}))
        .collect();
    let configs = json!([{
        "resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": "*", "name": "*"},
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": paths}],
    }]);
    with(work(&[manifest]), "/spec/manifestConfigs", configs)
}

/// Returns cases of kinds that the hub evaluates.
fn values() -> Vec<Case> {
    const SYNCED: &str = "/status/resourceStatus/manifests/0/conditions/2";
    let healthy = || work_with_values(deployment_with(&[]));
    let rolling = || work_with_values(deployment_with(&[("AvailableReplicas", json!(1))]));
    let late = ("Failed", json!("it timed out"));
    let broken = || work_with_values(deployment_with(std::slice::from_ref(&late)));
    let hashed = |values: &[(&str, Value)]| {
        let hash = json!({"argocd-ocm-cmp.github.io/content-hash": "0123456789"});
        let metadata = json!({"name": "web", "namespace": "shop", "annotations": hash});
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata});
        with(
            work_with_values(deployment_with(values)),
            "/spec/workload/manifests",
            json!([object]),
        )
    };
    let ran = |values: &[(&str, Value)]| {
        let mut run = work_with_values(deployment_with(values));
        let conditions = run.pointer_mut("/status/resourceStatus/manifests/0/conditions");
        let conditions = conditions.and_then(Value::as_array_mut).expect("conditions");
        conditions.push(condition("Complete", "True", "it has run"));
        conditions[1]["status"] = json!("False");
        run
    };
    let with_rules = |condition_of_rules: Value, name: &str| {
        let mut ruled = broken();
        let own = json!({
            "resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": "*", "name": name},
            "conditionRules": [{"condition": "Healthy"}],
        });
        ruled["spec"]["manifestConfigs"]
            .as_array_mut()
            .expect("a list")
            .insert(0, own);
        let conditions = ruled.pointer_mut("/status/resourceStatus/manifests/0/conditions");
        conditions
            .and_then(Value::as_array_mut)
            .expect("conditions")
            .push(condition_of_rules);
        ruled
    };
    let mut unread = condition("StatusFeedbackSynced", "False", "no such path");
    unread["reason"] = json!("StatusFeedbackSyncFailed");
    let mut unconfigured = condition("StatusFeedbackSynced", "True", "");
    unconfigured["reason"] = json!("NoStatusFeedbackSynced");
    let rolls_out = "Deployment shop/web: waiting for rollout to finish: 1 of 3 updated replicas are available";
    let times_out = "Deployment shop/web: ProgressDeadlineExceeded: it timed out";
    let outdated = "Deployment shop/web: waiting for the agent to apply the change";
    vec![
        case("the values are complete", healthy(), "Healthy", HEALTHY_MESSAGE),
        case("a rollout goes on", rolling(), "Progressing", rolls_out),
        case("a rollout timed out", broken(), "Degraded", times_out),
        case(
            "a rollout is paused",
            work_with_values(deployment_with(&[("Suspended", json!(true))])),
            "Suspended",
            "Deployment shop/web: it is paused",
        ),
        case(
            "the values are of an earlier generation of the work",
            with(healthy(), "/status/conditions/1/observedGeneration", json!(1)),
            "Progressing",
            NOT_CHECKED,
        ),
        case(
            "no value is reported yet",
            without(healthy(), SYNCED),
            "Progressing",
            NOT_CHECKED,
        ),
        case(
            "the agent cannot read a value",
            with(healthy(), SYNCED, unread),
            "Progressing",
            "Deployment shop/web: its health is not known: no such path",
        ),
        case(
            "the agent does not know wildcards",
            with(healthy(), SYNCED, unconfigured),
            "Healthy",
            "1 object is applied on managed cluster cluster1, whose agent does not report health, which OCM 1.0 and newer does",
        ),
        case(
            "values of other rules",
            with(
                rolling(),
                "/spec/manifestConfigs/0/feedbackRules/0/jsonPaths/0/name",
                json!("Other"),
            ),
            "Progressing",
            rolls_out,
        ),
        case(
            "a value is missing in the rules",
            with(
                rolling(),
                "/spec/manifestConfigs/0/feedbackRules/0/jsonPaths/1/name",
                json!("Other"),
            ),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "the object has the content of the work",
            hashed(&[("ContentHash", json!("0123456789"))]),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "the object has another content",
            hashed(&[("ContentHash", json!("abcdef0123"))]),
            "Progressing",
            outdated,
        ),
        case("the object has no hash", hashed(&[]), "Progressing", outdated),
        case(
            "a degraded object has another content",
            hashed(&[late.clone(), ("ContentHash", json!("abcdef0123"))]),
            "Progressing",
            outdated,
        ),
        case("it has run and is gone", ran(&[]), "Healthy", HEALTHY_MESSAGE),
        case(
            "it has run and failed",
            ran(std::slice::from_ref(&late)),
            "Degraded",
            times_out,
        ),
        case(
            "rules of the object's entry take precedence",
            with_rules(condition("Healthy", "True", ""), "web"),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "conditions of rules that another object has do not count",
            with_rules(condition("Healthy", "True", ""), "other"),
            "Degraded",
            times_out,
        ),
    ]
}

/// Returns a work that was complete before it was changed, and now contains the Job of this name. The agent has not reported the
/// change.
fn complete_and_changed(name: &str) -> Value {
    let done = with(
        manifest("Job", "migrate", &found_conditions()),
        "/conditions/0/observedGeneration",
        json!(1),
    );
    let done = with(done, "/conditions/2", condition("Complete", "True", "Job is finished"));
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "shop"}});
    let work = with(work(&[done]), "/spec/workload/manifests", json!([job]));
    let work = with(work, "/status/conditions/0/observedGeneration", json!(1));
    with(work, "/status/conditions/1", condition("Complete", "True", ""))
}

/// Returns cases of Jobs that the agent ignores once they are complete.
fn complete() -> Vec<Case> {
    let job = |complete: &str, available: &str, healthy: &str, progressing: &str| {
        manifest(
            "Job",
            "migrate",
            &[
                condition("Applied", "True", ""),
                condition("Available", available, "Resource is not available"),
                condition("StatusFeedbackSynced", "True", ""),
                condition("Healthy", healthy, "BackoffLimitExceeded"),
                condition("Progressing", progressing, "it runs"),
                condition("Complete", complete, "Job is finished"),
            ],
        )
    };
    let older = |job: Value| {
        let mut job = job;
        for pointer in [3, 4, 5] {
            job["conditions"][pointer]["observedGeneration"] = json!(1);
        }
        job
    };
    vec![
        case(
            "a Job runs",
            work(&[job("False", "True", "True", "True")]),
            "Progressing",
            "Job shop/migrate: it runs",
        ),
        case(
            "a Job is complete",
            work(&[job("True", "True", "True", "False")]),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "a Job is complete and deleted",
            work(&[job("True", "False", "True", "False")]),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "a Job was complete and deleted before the work changed",
            work(&[older(job("True", "False", "True", "False"))]),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "a Job is complete, and only the rules of its work were changed",
            complete_and_changed("migrate"),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "a Job failed, and only the rules of its work were changed",
            with(
                complete_and_changed("migrate"),
                "/status/resourceStatus/manifests/0/conditions/1",
                condition("Healthy", "False", "BackoffLimitExceeded"),
            ),
            "Degraded",
            "Job shop/migrate: BackoffLimitExceeded",
        ),
        case(
            "a Job was deleted before it was complete",
            work(&[job("False", "False", "True", "True")]),
            "Degraded",
            "Job shop/migrate: Resource is not available",
        ),
        case(
            "a Job failed: it is complete, and the agent creates no other",
            work(&[job("True", "True", "False", "True")]),
            "Degraded",
            "Job shop/migrate: BackoffLimitExceeded",
        ),
        case(
            "a Job failed before the work changed, and was deleted",
            work(&[older(job("True", "False", "False", "True"))]),
            "Degraded",
            "Job shop/migrate: BackoffLimitExceeded",
        ),
    ]
}

/// Returns objects that no agent writes: any answer is fine, but there must be one.
fn malformed() -> Vec<Case> {
    let bare = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork", "metadata": {"name": "shop"}});
    let nonsense = json!([null, 1, "text", [], {}, {"type": 1}, {"type": "Healthy"}]);
    let unnamed_cluster = "waiting for the agent of managed cluster without a name to apply it";
    vec![
        case("only a name", bare.clone(), "Progressing", unnamed_cluster),
        case(
            "strings instead of objects",
            with(with(bare.clone(), "/spec", json!("a")), "/status", json!("b")),
            "Progressing",
            unnamed_cluster,
        ),
        case(
            "invalid conditions",
            with(work(&[]), "/status/conditions", nonsense.clone()),
            "Progressing",
            NOT_APPLIED,
        ),
        case(
            "invalid manifests",
            with(work(&[]), "/status/resourceStatus/manifests", json!([1, "a"])),
            "Progressing",
            "manifests[?]: waiting for the agent of managed cluster cluster1 to apply it; \
             manifests[?]: waiting for the agent of managed cluster cluster1 to apply it",
        ),
        case(
            "a manifest with invalid conditions",
            work(&[with(
                healthy_deployment("web"),
                "/conditions",
                json!([1, "a", {}, {"type": []}]),
            )]),
            "Progressing",
            "Deployment shop/web: waiting for the agent of managed cluster cluster1 to apply it",
        ),
        case(
            "a rule condition and nothing else",
            work(&[json!({"conditions": [
                {"type": "Applied", "status": "True"},
                {"type": "Healthy", "observedGeneration": GENERATION},
                {"type": "Progressing", "status": 3, "observedGeneration": GENERATION},
            ]})]),
            "Progressing",
            "manifests[?]: its health is not known: the rule gives no answer",
        ),
        case(
            "numbers instead of strings, and the reverse",
            with(
                work(&[with(
                    with(refused("ConfigMap", "a", LONG_AGO), "/conditions/0/message", json!(1)),
                    "/conditions/0/lastTransitionTime",
                    json!(2),
                )]),
                "/status/conditions/0/observedGeneration",
                json!(GENERATION),
            ),
            "Degraded",
            "ConfigMap shop/a: the agent cannot apply it",
        ),
        case(
            "missing times",
            work(&[with(
                without(config_map(), "/conditions/0/lastTransitionTime"),
                "/conditions/1",
                json!({"type": "Available", "status": "False"}),
            )]),
            "Degraded",
            "ConfigMap shop/settings: it is not on the cluster",
        ),
        case(
            "invalid rules",
            with(
                work(&[healthy_deployment("web")]),
                "/spec/manifestConfigs",
                json!([1, {}, {"conditionRules": [1, {}]}, {"conditionRules": "a"}]),
            ),
            "Healthy",
            HEALTHY_MESSAGE,
        ),
        case(
            "invalid feedback",
            work(&[with(
                rolling_deployment("web"),
                "/statusFeedback",
                json!({"values": [1, {"name": "Suspended"}]}),
            )]),
            "Progressing",
            "Deployment shop/web: 1 of 2 replicas is ready",
        ),
    ]
}

/// Returns a ManifestWorkReplicaSet for three clusters, all of them done; `rollout` is the type of its rollout.
fn replica_set(rollout: &str) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": "shop", "namespace": "apps", "generation": GENERATION},
        "spec": {
            "placementRefs": [{"name": "shops", "rolloutStrategy": {"type": rollout}}],
            "manifestWorkTemplate": {
                "workload": {"manifests": []},
                "manifestConfigs": [{"conditionRules": [{"condition": "Progressing"}]}],
            },
        },
        "status": {
            "conditions": [
                {"type": "PlacementVerified", "status": "True", "reason": "AsExpected", "lastTransitionTime": LONG_AGO},
                {"type": "PlacementRolledOut", "status": "True", "reason": "Complete", "lastTransitionTime": LONG_AGO},
                {"type": "ManifestworkApplied", "status": "True", "reason": "AsExpected", "lastTransitionTime": LONG_AGO},
            ],
            "placementSummary": [{"name": "shops", "availableDecisionGroups": "1 (3 / 3 clusters applied)"}],
            "summary": {"total": 3, "applied": 3, "available": 3, "progressing": 0, "degraded": 0},
        },
    })
}

fn replica_sets() -> Vec<Case> {
    let all = || replica_set("All");
    let with_condition = |condition: usize, status: &str, reason: &str| {
        let object = with(all(), &format!("/status/conditions/{condition}/status"), json!(status));
        with(object, &format!("/status/conditions/{condition}/reason"), json!(reason))
    };
    let counts = |object: Value, applied: u64, available: u64, progressing: u64, degraded: u64| {
        let summary = json!({
            "total": 3, "applied": applied, "available": available, "progressing": progressing, "degraded": degraded,
        });
        with(object, "/status/summary", summary)
    };
    let no_rules = |object| with(object, "/spec/manifestWorkTemplate/manifestConfigs", json!([]));
    let unfinished = |object| with(object, "/status/conditions/1/status", json!("False"));
    let no_placement = with_condition(0, "False", "PlacementDecisionNotFound");
    let waiting = "waiting for OCM's work manager; it needs the feature gate ManifestWorkReplicaSet";
    let processing = || with_condition(2, "False", "Processing");
    let not_as_expected = || with_condition(2, "False", "NotAsExpected");
    vec![
        case("set: no status yet", without(all(), "/status"), "Progressing", waiting),
        case(
            "set: invalid conditions",
            with(all(), "/status/conditions", json!([1, {}, "a"])),
            "Progressing",
            waiting,
        ),
        case("set: everywhere", all(), "Healthy", "3 of 3 clusters applied"),
        case(
            "set: without rules OCM never reports it as complete",
            no_rules(unfinished(all())),
            "Healthy",
            "3 of 3 clusters applied",
        ),
        case(
            "set: the rollout continues",
            unfinished(all()),
            "Progressing",
            "3 of 3 clusters applied, the rollout continues",
        ),
        case(
            "set: a rollout in steps never ends without rules",
            no_rules(unfinished(replica_set("Progressive"))),
            "Progressing",
            "3 of 3 clusters applied, the rollout continues only with a condition rule Progressing in its works",
        ),
        case(
            "set: not applied everywhere",
            counts(not_as_expected(), 2, 3, 0, 0),
            "Progressing",
            "2 of 3 clusters applied",
        ),
        case(
            "set: works were just created, which OCM reports as NotAsExpected",
            counts(not_as_expected(), 0, 0, 0, 0),
            "Progressing",
            "0 of 3 clusters applied, 3 without all objects",
        ),
        case(
            "set: some are progressing",
            counts(processing(), 3, 3, 1, 0),
            "Progressing",
            "3 of 3 clusters applied, 1 progressing",
        ),
        case(
            "set: one is degraded",
            counts(not_as_expected(), 2, 3, 1, 1),
            "Degraded",
            "2 of 3 clusters applied, 1 progressing, 1 degraded",
        ),
        case(
            "set: one cluster lacks objects",
            counts(not_as_expected(), 3, 2, 0, 0),
            "Progressing",
            "3 of 3 clusters applied, 1 without all objects",
        ),
        case(
            "set: no cluster is selected",
            with_condition(0, "False", "PlacementDecisionEmpty"),
            "Suspended",
            "Placement shops selects no managed cluster: see its condition PlacementSatisfied",
        ),
        case(
            "set: clusters are selected and have no works",
            unfinished(with_condition(0, "False", "PlacementDecisionEmpty")),
            "Progressing",
            "managed clusters are selected, but none has its work yet",
        ),
        case(
            "set: no such placement",
            no_placement.clone(),
            "Degraded",
            "no such Placement in namespace apps: shops",
        ),
        case(
            "set: no such placement yet",
            with(
                no_placement,
                "/status/conditions/0/lastTransitionTime",
                json!(INSIDE_GRACE),
            ),
            "Progressing",
            "no such Placement in namespace apps: shops",
        ),
        case(
            "set: the placements cannot be used",
            with_condition(0, "False", "NotAsExpected"),
            "Degraded",
            "OCM cannot use its Placements: NotAsExpected",
        ),
        case(
            "set: no work can have that name",
            with(
                with_condition(2, "False", "InvalidManifestWorkName"),
                "/status/conditions/2/message",
                json!("a name of 300 bytes"),
            ),
            "Degraded",
            "a name of 300 bytes",
        ),
    ]
}

/// Returns sets whose rollouts are in progress over three clusters, or appear to be.
fn rollouts() -> Vec<Case> {
    let rolled_out = |object: Value, status: &str, when: &str| {
        let object = with(object, "/status/conditions/1/status", json!(status));
        with(object, "/status/conditions/1/lastTransitionTime", json!(when))
    };
    let changed = |object: Value, when: &str, fields: &str| {
        let entries = json!([
            {"manager": "argocd-controller", "time": when, "fieldsV1": {fields: {}}},
            {"manager": "work", "subresource": "status", "time": INSIDE_GRACE, "fieldsV1": {"f:status": {}}},
            {"manager": "odd"},
        ]);
        with(object, "/metadata/managedFields", entries)
    };
    // This number of clusters has the change, and the last one has not completed it.
    let at = |total: u64| {
        let object = rolled_out(replica_set("Progressive"), "False", OUTSIDE_GRACE);
        let object = with(object, "/status/conditions/2/status", json!("False"));
        let summary = json!({"total": total, "applied": total, "available": total, "progressing": 1, "degraded": 0});
        with(object, "/status/summary", summary)
    };
    let strategy = |object: Value, kind: &str, field: &str, strategy: Value| {
        let strategy = json!({"type": kind, field: strategy});
        with(object, "/spec/placementRefs/0/rolloutStrategy", strategy)
    };
    let one_by_one = |object: Value, deadline: &str| {
        let fields = json!({"maxConcurrency": 1, "minSuccessTime": "1s", "progressDeadline": deadline});
        strategy(object, "Progressive", "progressive", fields)
    };
    let progressive = |object: Value, fields: Value| strategy(object, "Progressive", "progressive", fields);
    let over = |done: &str| format!("{done}, 1 progressing, the rollout exceeded its deadline").leak() as &str;
    let (one, two, three) = (
        "1 of 3 clusters applied",
        "2 of 3 clusters applied",
        "3 of 3 clusters applied",
    );
    let waiting = "waiting for OCM's work manager to look at the change";
    let no_label = "OCM cannot deliver it: its namespace and name may have 62 characters together";
    vec![
        case(
            "rollout: one of three",
            at(1),
            "Progressing",
            "1 of 3 clusters applied, 1 progressing",
        ),
        case(
            "rollout: the number of selected clusters is unknown",
            without(at(1), "/status/placementSummary"),
            "Progressing",
            "1 of 1 clusters applied, 1 progressing",
        ),
        case(
            "rollout: a change that OCM has not processed",
            changed(
                rolled_out(replica_set("Progressive"), "True", BEFORE_INSIDE_GRACE),
                INSIDE_GRACE,
                "f:spec",
            ),
            "Progressing",
            waiting,
        ),
        case(
            "rollout: a change that OCM has completed",
            changed(
                rolled_out(replica_set("Progressive"), "True", INSIDE_GRACE),
                BEFORE_INSIDE_GRACE,
                "f:spec",
            ),
            "Healthy",
            three,
        ),
        case(
            "rollout: completed within a second",
            changed(
                rolled_out(replica_set("Progressive"), "True", INSIDE_GRACE),
                INSIDE_GRACE,
                "f:spec",
            ),
            "Healthy",
            three,
        ),
        case(
            "rollout: a change without a rollout",
            changed(
                rolled_out(replica_set("Progressive"), "True", LONG_AGO),
                OUTSIDE_GRACE,
                "f:spec",
            ),
            "Healthy",
            three,
        ),
        case(
            "rollout: a change of other fields",
            changed(
                rolled_out(replica_set("Progressive"), "True", BEFORE_INSIDE_GRACE),
                INSIDE_GRACE,
                "f:metadata",
            ),
            "Healthy",
            three,
        ),
        case(
            "rollout: the first exceeded its deadline",
            one_by_one(at(1), "10s"),
            "Degraded",
            over(one),
        ),
        case(
            "rollout: the first has time left",
            one_by_one(at(1), "2m"),
            "Progressing",
            "1 of 3 clusters applied, 1 progressing",
        ),
        case(
            "rollout: the first may have used its time, the second not",
            one_by_one(at(2), "30s"),
            "Progressing",
            "2 of 3 clusters applied, 1 progressing",
        ),
        case(
            "rollout: the second exceeded its deadline",
            one_by_one(at(2), "8s"),
            "Degraded",
            over(two),
        ),
        case(
            "rollout: the time runs from the last change",
            changed(one_by_one(at(1), "10s"), BEFORE_INSIDE_GRACE, "f:spec"),
            "Progressing",
            "1 of 3 clusters applied, 1 progressing",
        ),
        case(
            "rollout: a complete one does not exceed its deadline",
            one_by_one(rolled_out(replica_set("Progressive"), "True", LONG_AGO), "1s"),
            "Healthy",
            three,
        ),
        case(
            "rollout: deadline exceeded without a failure, as for an unreachable cluster",
            with(
                with(one_by_one(at(2), "8s"), "/status/summary/progressing", json!(0)),
                "/status/conditions/2/status",
                json!("True"),
            ),
            "Degraded",
            "2 of 3 clusters applied, the rollout exceeded its deadline",
        ),
        case(
            "rollout: two at a time, in half the time",
            progressive(at(2), json!({"maxConcurrency": 2, "progressDeadline": "15s"})),
            "Degraded",
            over(two),
        ),
        case(
            "rollout: a percentage at a time",
            progressive(at(3), json!({"maxConcurrency": "34%", "progressDeadline": "15s"})),
            "Progressing",
            "3 of 3 clusters applied, 1 progressing",
        ),
        case(
            "rollout: all at a time",
            progressive(at(3), json!({"progressDeadline": "15s"})),
            "Degraded",
            over(three),
        ),
        case(
            "rollout: mandatory groups one by one in the worst case",
            progressive(
                at(3),
                json!({"mandatoryDecisionGroups": [{"groupName": "canary"}], "progressDeadline": "15s"}),
            ),
            "Progressing",
            "3 of 3 clusters applied, 1 progressing",
        ),
        case(
            "rollout: by groups, one group",
            strategy(
                at(3),
                "ProgressivePerGroup",
                "progressivePerGroup",
                json!({"progressDeadline": "15s"}),
            ),
            "Degraded",
            over(three),
        ),
        case(
            "rollout: by groups, two groups",
            with(
                strategy(
                    at(3),
                    "ProgressivePerGroup",
                    "progressivePerGroup",
                    json!({"progressDeadline": "15s"}),
                ),
                "/status/placementSummary/0/availableDecisionGroups",
                json!("2 (3 / 3 clusters applied)"),
            ),
            "Progressing",
            "3 of 3 clusters applied, 1 progressing",
        ),
        case(
            "rollout: invalid durations",
            progressive(
                at(1),
                json!({"maxConcurrency": "x", "progressDeadline": "None", "minSuccessTime": 1}),
            ),
            "Progressing",
            "1 of 3 clusters applied, 1 progressing",
        ),
        case(
            "rollout: a name too long for a label with the namespace",
            with(replica_set("All"), "/metadata/name", json!("n".repeat(59))),
            "Degraded",
            no_label,
        ),
        case(
            "rollout: the longest name",
            with(replica_set("All"), "/metadata/name", json!("n".repeat(58))),
            "Healthy",
            three,
        ),
    ]
}

/// Argo CD's command line, which needs no running Argo CD.
struct ArgoCd {
    parts: Parts,
    folder: tempfile::TempDir,
}

/// Evaluates the shipped health checks for an object as it is on the hub.
pub(crate) fn health(object: &Value) -> Result<(String, String)> {
    ArgoCd::new()?.health(0, object, "UTC")
}

impl ArgoCd {
    fn new() -> Result<Self> {
        Ok(Self {
            parts: Parts::ensure()?,
            folder: tempfile::tempdir()?,
        })
    }

    fn health(&self, index: usize, object: &Value, zone: &str) -> Result<(String, String)> {
        let file = self.folder.path().join(format!("{index}.json"));
        fs::write(&file, with_real_times(object))?;
        let output = Command::new(self.parts.program(Part::ArgoCd))
            .args(["admin", "settings", "resource-overrides", "health"])
            .arg(&file)
            .arg("--argocd-cm-path")
            .arg(shipped("deploy/argocd_cm.yaml"))
            .env_clear()
            .env("ARGOCD_BINARY_NAME", "argocd")
            .env("HOME", self.folder.path())
            .env("TZ", zone)
            .output()?;
        let (stdout, stderr) = (
            String::from_utf8(output.stdout)?,
            String::from_utf8_lossy(&output.stderr),
        );
        // The last line has the error, those before it the steps.
        ensure!(output.status.success(), "{}", stderr.lines().last().unwrap_or_default());
        let (status, message) = stdout
            .strip_prefix("STATUS: ")
            .and_then(|rest| rest.trim_end_matches('\n').split_once("\nMESSAGE: "))
            .with_context(|| format!("no health: {stdout}"))?;
        Ok((status.to_owned(), message.to_owned()))
    }

    /// Returns the error in the answer to a case, in one line.
    fn mismatch(&self, index: usize, case: &Case) -> Option<String> {
        // Argo CD's own time zone must not matter.
        let zone = ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago"][index % 3];
        match self.health(index, &case.object, zone) {
            Ok((status, message)) if status == case.status && message == case.message => None,
            Ok((status, message)) => Some(format!("{}, {zone}: {status}: {message}", case.name)),
            Err(error) => Some(format!("{}, {zone}: {error:#}", case.name)),
        }
    }
}

#[test]
fn lua_health_checks_handle_every_status() -> Result<()> {
    let argo_cd = ArgoCd::new()?;
    let cases: Vec<Case> = [
        applying(),
        available(),
        rules(),
        values(),
        complete(),
        malformed(),
        replica_sets(),
        rollouts(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut mistakes = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(index) else { return mistakes };
            mistakes.extend(argo_cd.mismatch(index, case));
        }
    };
    let mistakes: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("the thread does not panic"))
            .collect()
    });
    assert!(
        mistakes.is_empty(),
        "of {} cases:\n{}",
        cases.len(),
        mistakes.join("\n")
    );
    Ok(())
}

/// The program and the UI extension have the same cases.
#[test]
fn lua_evaluates_values_as_the_program_does() -> Result<()> {
    let argo_cd = ArgoCd::new()?;
    let cases: Value = serde_json::from_str(include_str!("../../ui/test/verdict_cases.json"))?;
    for (at, case) in cases["works"].as_array().context("works")?.iter().enumerate() {
        let work = &case["work"];
        let (status, message) = argo_cd.health(at, work, "UTC")?;
        let now = health::Clock::at(Timestamp::now());
        let evaluated = health::evaluate(&work.to_string(), &now).map_err(anyhow::Error::msg)?;
        assert_eq!(status, evaluated.health.in_argo_cd(), "{work}");
        let is_deleted_in_old_argo_cd = message.starts_with("Pending deletion");
        assert!(
            message == evaluated.summary() || is_deleted_in_old_argo_cd,
            "{message}: {work}"
        );
    }
    Ok(())
}

#[test]
fn status_command_agrees_with_argo_cd() {
    let evaluated = |case: &Case| {
        let now = health::Clock::at(Timestamp::now());
        let work = health::evaluate(&with_real_times(&case.object), &now).expect("a work");
        (work.health.in_argo_cd(), work.summary())
    };
    let cases = [
        applying(),
        available(),
        rules(),
        values(),
        complete(),
        replica_sets(),
        rollouts(),
    ];
    for case in cases.into_iter().flatten() {
        let (health, message) = evaluated(&case);
        assert_eq!(health, case.status, "{}: {message}", case.name);
        // Argo CD itself writes this message for deletions; and a malformed status is reported as such.
        if case.message != "Pending deletion" && !message.starts_with("its status is malformed: ") {
            assert_eq!(message, case.message, "{}", case.name);
        }
    }
    for case in malformed() {
        let (health, message) = evaluated(&case);
        assert_eq!(health, case.status, "{}: {message}", case.name);
    }
}
