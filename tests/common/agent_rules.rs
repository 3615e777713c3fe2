//! The health rules of a kind, in the form of a ManifestWork, and the answers of OCM's agent to them.

use crate::conversation::Conversation;
use anyhow::Result;
use generate::health_rules::{KindHealth, SUSPENDED};
use serde_json::{Value, json};

/// Returns the agent's answer about an object, by the rules of its kind.
pub(crate) fn ask(agent: &mut Conversation, object: &Value, kind_health: &KindHealth) -> Result<Value> {
    let question = json!({
        "object": object,
        "rules": condition_rules(kind_health),
        "feedbackRules": feedback_rules(kind_health),
    });
    Ok(serde_json::from_str(&agent.ask(&question)?)?)
}

pub(crate) fn condition_rules(kind_health: &KindHealth) -> Value {
    let rule = |condition: &str, expression: &str, message: &str| {
        let mut rule = json!({"condition": condition, "type": "CEL", "celExpressions": [expression]});
        if !message.is_empty() {
            rule["messageExpression"] = json!(message);
        }
        rule
    };
    let rules = kind_health.rules.iter();
    let rules = rules.map(|entry| rule(entry.condition, entry.expression, entry.message));
    rules
        .chain(kind_health.suspended.map(|expression| rule(SUSPENDED, expression, "")))
        .collect()
}

pub(crate) fn feedback_rules(kind_health: &KindHealth) -> Value {
    let paths = kind_health.feedback.iter();
    let paths: Vec<Value> = paths.map(|(name, path)| json!({"name": name, "path": path})).collect();
    if paths.is_empty() {
        return json!([]);
    }
    json!([{"type": "JSONPaths", "jsonPaths": paths}])
}

pub(crate) fn group_and_kind(object: &Value) -> (&str, &str) {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    (group, object["kind"].as_str().unwrap_or_default())
}
