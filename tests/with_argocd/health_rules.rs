//! Tests that the health rules for OCM's agent agree with Argo CD's own health checks: both run on the same
//! objects.

mod objects;

use crate::agent_rules::{self, condition_rules, feedback_rules, group_and_kind};
use crate::conversation::Conversation;
use crate::health_check;
use crate::stage::{run, stage};
use anyhow::{Context, Error, Result, ensure};
use generate::health_rules;
use generate::health_rules::{HEALTHY, KindHealth, PROGRESSING};
use jiff::Timestamp;
use ocm::health::{self, Clock, HealthStatus};
use ocm::verdicts::{self, Reported};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use tempfile::TempDir;
use testbed::{ObjectRef, Part, Parts};

/// The agent's two conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RuleConditions {
    progressing: bool,
    healthy: bool,
}

impl RuleConditions {
    const fn new(progressing: bool, healthy: bool) -> Self {
        Self { progressing, healthy }
    }
}

const COMPLETE: RuleConditions = RuleConditions::new(false, true);
const WAITING: RuleConditions = RuleConditions::new(true, true);
const BROKEN: RuleConditions = RuleConditions::new(true, false);

/// Returns the conditions that correspond to a health of Argo CD. An unknown health is neither done nor broken.
fn conditions_of_health(health: &str) -> Result<RuleConditions> {
    Ok(match health {
        "Healthy" => COMPLETE,
        "Progressing" | "Suspended" | "Unknown" => WAITING,
        "Degraded" => BROKEN,
        other => anyhow::bail!("unknown health of Argo CD: {other:?}"),
    })
}

#[test]
fn every_kind_with_rules_has_cases() -> Result<()> {
    let cases = kubernetes_and_custom()?;
    for (group, kind) in health_rules::kinds() {
        assert!(
            cases.iter().any(|object| group_and_kind(object) == (group, kind)),
            "{kind} of group {group:?} has no case: add its states to tests/data/health/objects.yaml"
        );
    }
    Ok(())
}

/// Returns the objects of Kubernetes and the custom resources.
fn kubernetes_and_custom() -> Result<Vec<Value>> {
    let mut objects = objects::of_kubernetes()?;
    objects.extend(objects::custom()?.into_iter().map(|(object, ..)| object));
    Ok(objects)
}

#[test]
fn agent_evaluates_built_in_kinds_like_argo_cd() -> Result<()> {
    let parts = Parts::ensure()?;
    let mut agent = Agent::start(&parts)?;
    let mut argo_cd = ArgoCd::start(&parts)?;
    let mut differences = Vec::new();
    let mut seen: BTreeMap<(String, String), [usize; 3]> = BTreeMap::new();
    for object in objects::of_kubernetes()? {
        let evaluation = agent.evaluate(&object)?;
        let health = argo_cd.health(&object)?;
        let theirs = conditions_of_health(&health)?;
        // The rules for HorizontalPodAutoscalers follow Argo CD 3.6.
        let is_known = object["kind"] == "HorizontalPodAutoscaler" && testbed::argocd_version() == "3.2";
        if evaluation.rule_conditions != theirs && !is_known {
            differences.push(format!("{:?}, Argo CD {health}: {object}", evaluation.rule_conditions));
        }
        let (group, kind) = group_and_kind(&object);
        if let Some((on_hub, _)) = evaluation.verdict(&object)
            && on_hub.name() != health.replace("Unknown", "Progressing")
        {
            differences.push(format!("{on_hub} on the hub, Argo CD {health}: {object}"));
        }
        let at = [COMPLETE, WAITING, BROKEN]
            .iter()
            .position(|rule_conditions| *rule_conditions == theirs);
        seen.entry((group.to_owned(), kind.to_owned())).or_default()[at.context("one of the three")?] += 1;
    }
    let count = differences.len();
    differences.truncate(5);
    assert!(count == 0, "{count} differences:\n{}", differences.join("\n"));
    // Every kind occurred in every possible state.
    assert!(seen.values().flatten().sum::<usize>() > 1000, "{seen:?}");
    for ((group, kind), [fine, waiting, broken]) in &seen {
        let [_, healthy] = &kind_health(group, kind)?.rules;
        assert!(*fine > 0 && *waiting > 0, "{kind}: {seen:?}");
        assert_eq!(*broken == 0, healthy.expression == "true", "{kind}: {seen:?}");
    }
    Ok(())
}

#[test]
fn every_difference_from_argo_cd_has_a_reason() -> Result<()> {
    let parts = Parts::ensure()?;
    let mut agent = Agent::start(&parts)?;
    let mut argo_cd = ArgoCd::start(&parts)?;
    for (reason, object, health, ours) in objects::differences()? {
        assert_eq!(argo_cd.health(&object)?, health, "{reason}: {object}");
        let evaluation = agent.evaluate(&object)?;
        let evaluated = match evaluation.verdict(&object) {
            Some((on_hub, _)) => conditions_of_health(on_hub.name())?,
            None => evaluation.rule_conditions,
        };
        assert_eq!(evaluated, ours, "{reason}: {object}");
        assert_ne!(conditions_of_health(&health)?, ours, "{reason}: {object}");
    }
    Ok(())
}

#[test]
fn agent_evaluates_custom_resources_by_conditions() -> Result<()> {
    let mut agent = Agent::start(&Parts::ensure()?)?;
    for (object, expected, message) in objects::custom()? {
        let evaluation = agent.evaluate(&object)?;
        assert_eq!(evaluation.rule_conditions, expected, "{object}");
        let Evaluation { broken, waiting, .. } = evaluation;
        assert_eq!(if expected == BROKEN { broken } else { waiting }, message, "{object}");
    }
    Ok(())
}

/// Only feedback may fail for these: a JSONPath cannot check a type before it compares.
#[test]
fn malformed_conditions_are_no_error() -> Result<()> {
    let mut agent = Agent::start(&Parts::ensure()?)?;
    for (object, expected) in objects::malformed()? {
        assert_eq!(agent.evaluate_any(&object)?.rule_conditions, expected, "{object}");
    }
    Ok(())
}

#[test]
fn waiting_and_broken_messages_name_the_cause() -> Result<()> {
    let mut agent = Agent::start(&Parts::ensure()?)?;
    for (object, waiting, broken) in objects::with_messages()? {
        let evaluation = agent.evaluate(&object)?;
        assert_eq!([evaluation.waiting, evaluation.broken], [waiting, broken], "{object}");
    }
    Ok(())
}

/// Each rule of the table decides about one of the objects; Argo CD runs the Lua for it.
#[test]
fn lua_on_the_hub_agrees_with_the_table() -> Result<()> {
    let mut agent = Agent::start(&Parts::ensure()?)?;
    let mut seen = BTreeSet::new();
    for object in objects::of_kubernetes()? {
        let (group, kind) = group_and_kind(&object);
        let evaluation = agent.evaluate(&object)?;
        let Some((health, message)) = evaluation.verdict(&object) else {
            continue;
        };
        let texts = message.replace(|letter: char| letter.is_ascii_digit(), "");
        if !seen.insert((group.to_owned(), kind.to_owned(), health, texts)) {
            continue;
        }
        let paths = kind_health_of(&object)?.feedback;
        let work = reported(&object, &json!([]), paths, &evaluation.feedback);
        let by_argo_cd = health_check::health(&work)?;
        let status = health::evaluate(&work.to_string(), &Clock::at(Timestamp::now())).map_err(Error::msg)?;
        assert_eq!(
            by_argo_cd,
            (health.in_argo_cd().to_owned(), status.summary()),
            "{object}"
        );
        let of_object = &status.objects[0];
        assert_eq!((of_object.health, &of_object.message), (health, &message), "{object}");
    }
    assert!(seen.len() > 45, "{seen:?}");
    Ok(())
}

/// Returns a work with one object, which the agent has applied, and on which it reports these values.
fn reported(
    object: &Value,
    manifests: &Value,
    paths: &[(&str, &str)],
    values: &serde_json::Map<String, Value>,
) -> Value {
    let (group, kind) = group_and_kind(object);
    let resource = format!("{}s", kind.to_lowercase());
    let paths: Value = paths
        .iter()
        .map(|(name, path)| json!({"name": name, "path": path}))
        .collect();
    let condition = |kind: &str, reason: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let values: Value = values
        .iter()
        .map(|(name, value)| {
            let (of_type, field) = match value {
                Value::Bool(_) => ("Boolean", "boolean"),
                Value::Number(_) => ("Integer", "integer"),
                _ => ("String", "string"),
            };
            json!({"name": name, "fieldValue": {"type": of_type, field: value}})
        })
        .collect();
    ObjectRef::manifest_work("cluster1", "shop").with(json!({
        "metadata": {"generation": 1},
        "spec": {
            "workload": {"manifests": manifests},
            "manifestConfigs": [{
                "resourceIdentifier": {"group": group, "resource": resource, "name": "*", "namespace": "*"},
                "feedbackRules": [{"type": "JSONPaths", "jsonPaths": paths}],
            }],
        },
        "status": {
            "conditions": [condition("Applied", "AppliedManifestWorkComplete"), condition("Available", "ResourcesAvailable")],
            "resourceStatus": {"manifests": [{
                "resourceMeta": {"ordinal": 0, "group": group, "version": "v1", "kind": kind, "resource": resource,
                    "name": object["metadata"]["name"], "namespace": "shop"},
                "conditions": [
                    condition("Applied", "AppliedManifestComplete"),
                    condition("Available", "ResourceAvailable"),
                    condition("StatusFeedbackSynced", "StatusFeedbackSynced"),
                ],
                "statusFeedback": {"values": values},
            }]},
        },
    }))
}

#[test]
fn feedback_has_the_expected_values() -> Result<()> {
    let mut agent = Agent::start(&Parts::ensure()?)?;
    for (object, expected) in objects::with_feedback()? {
        assert_eq!(Value::Object(agent.evaluate(&object)?.feedback), expected, "{object}");
    }
    Ok(())
}

#[tokio::test]
async fn hub_accepts_the_rules_of_every_kind() -> Result<()> {
    let stage = stage().await?;
    let namespace = "rules-of-every-kind";
    stage.hub.create_namespace(namespace).await?;
    let mut configs = Vec::new();
    for object in kubernetes_and_custom()? {
        let (group, kind) = group_and_kind(&object);
        let identifier =
            json!({"group": group, "resource": format!("{}s", kind.to_lowercase()), "name": "*", "namespace": "*"});
        let kind_health = kind_health_of(&object)?;
        let config = json!({
            "resourceIdentifier": identifier,
            "conditionRules": condition_rules(kind_health),
            "feedbackRules": feedback_rules(kind_health),
        });
        if !configs.contains(&config) {
            configs.push(config);
        }
    }
    let work = ObjectRef::manifest_work(namespace, "rules").with(json!({"spec": {
        "workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}]},
        "manifestConfigs": configs,
    }}));
    let create = "create --validate=strict --dry-run=server -o json -f -";
    let created: Value = serde_json::from_str(&stage.hub.kubectl_with_input(create, &work.to_string())?)?;
    let stored = created["spec"]["manifestConfigs"].as_array().context("configs")?;
    assert!(stored.len() >= 15, "{}", stored.len());
    for (stored, printed) in stored.iter().zip(&configs) {
        assert_eq!(stored["conditionRules"], printed["conditionRules"]);
        assert_eq!(stored["feedbackRules"], printed["feedbackRules"]);
    }
    Ok(())
}

/// Returns the works of a folder with these objects, as the program prints them.
fn works(objects: &[Value]) -> Result<Vec<Value>> {
    let folder = TempDir::new()?;
    for (at, object) in objects.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{at}.json")), object.to_string())?;
    }
    let words = "generate --cluster=cluster1 --name=shop --namespace=shop --output=json";
    let (code, lines, errors) = run(folder.path(), None, words)?;
    ensure!(code == Some(0), "{errors}");
    lines.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Returns the conditions of a work's only manifest, when its object has this state on the cluster.
fn conditions(agent: &mut Agent, work: &Value, object: &Value) -> Result<BTreeMap<String, (String, String)>> {
    let question = json!({
        "object": object,
        "rules": work["spec"]["manifestConfigs"][0]["conditionRules"],
        "feedbackRules": [],
    });
    let answer: Answer = serde_json::from_str(&agent.0.ask(&question)?)?;
    let conditions = answer.conditions.into_iter().map(|condition| {
        ensure!(condition.reason == "ConditionRuleEvaluated", "{condition:?}");
        Ok((condition.r#type, (condition.status, condition.message)))
    });
    conditions.collect()
}

#[test]
fn later_wave_waits_for_the_change_to_be_applied() -> Result<()> {
    let mut agent = Agent::start(&Parts::ensure()?)?;
    let claim = |size: &str| {
        ObjectRef::cluster("v1", "PersistentVolumeClaim", "data").with(json!({
            "metadata": {"annotations": {"argocd.argoproj.io/sync-wave": "-1"}},
            "spec": {"resources": {"requests": {"storage": size}}},
        }))
    };
    let late = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}});
    let before = works(&[claim("1Gi"), late.clone()])?.remove(0);
    let after = works(&[claim("2Gi"), late])?.remove(0);
    let on_the_cluster = |work: &Value, phase: &str| {
        let mut object = work["spec"]["workload"]["manifests"][0].clone();
        object["status"] = json!({"phase": phase});
        object
    };
    let stale = ("Progressing", "waiting for the agent to apply the change");
    for (live, expected) in [
        (on_the_cluster(&after, "Bound"), ("Healthy", "")),
        (on_the_cluster(&after, "Lost"), ("Degraded", "it lost its volume")),
        (on_the_cluster(&before, "Bound"), stale),
        (on_the_cluster(&before, "Lost"), stale),
        (claim("2Gi"), stale),
    ] {
        let config = &after["spec"]["manifestConfigs"][0];
        assert!(config["conditionRules"].is_null(), "{config}");
        let answer = agent.ask(&live, &json!([]), &config["feedbackRules"])?;
        let paths = config["feedbackRules"][0]["jsonPaths"].as_array().context("paths")?;
        let texts = paths
            .iter()
            .map(|path| Some((path["name"].as_str()?, path["path"].as_str()?)));
        let paths: Vec<_> = texts.collect::<Option<_>>().context("texts")?;
        let manifests = &after["spec"]["workload"]["manifests"];
        let work = reported(&live, manifests, &paths, &feedback_of(answer.values)?);
        let status = health::evaluate(&work.to_string(), &Clock::at(Timestamp::now())).map_err(Error::msg)?;
        let object = status.objects.iter().find(|object| object.applied.is_some());
        let object = object.context("an object")?;
        assert_eq!((object.health.name(), &*object.message), expected, "{live}");
        let (by_argo_cd, _) = health_check::health(&work)?;
        assert_eq!(by_argo_cd, expected.0, "{live}");
    }
    Ok(())
}

#[test]
fn ended_hook_run_is_complete() -> Result<()> {
    let mut agent = Agent::start(&Parts::ensure()?)?;
    let hook = |api_version: &str, kind: &str| {
        ObjectRef::cluster(api_version, kind, "migrate")
            .with(json!({"metadata": {"annotations": {"argocd.argoproj.io/hook": "PreSync"}}}))
    };
    let job = |condition: &str, status: &str| json!({"conditions": [{"type": condition, "status": status}]});
    for (object, status, complete) in [
        (hook("batch/v1", "Job"), job("Complete", "True"), "True"),
        (hook("batch/v1", "Job"), job("Failed", "True"), "True"),
        (hook("batch/v1", "Job"), job("Complete", "False"), "False"),
        (hook("batch/v1", "Job"), json!({"active": 1}), "False"),
        (hook("batch/v1", "Job"), Value::Null, "False"),
        (hook("v1", "Pod"), json!({"phase": "Succeeded"}), "True"),
        (hook("v1", "Pod"), json!({"phase": "Failed"}), "True"),
        (hook("v1", "Pod"), json!({"phase": "Running"}), "False"),
    ] {
        let work = works(std::slice::from_ref(&object))?.remove(0);
        let mut live = object;
        live["status"] = status;
        assert_eq!(conditions(&mut agent, &work, &live)?["Complete"].0, complete, "{live}");
    }
    Ok(())
}

/// The groups of this test's objects that Kubernetes does not serve itself.
const CUSTOM_GROUPS: [&str; 2] = ["example.com", "cert-manager.io"];

fn kind_health_of(object: &Value) -> Result<&'static KindHealth> {
    let (group, kind) = group_and_kind(object);
    kind_health(group, kind)
}

fn kind_health(group: &str, kind: &str) -> Result<&'static KindHealth> {
    health_rules::find_kind_health(group, kind, CUSTOM_GROUPS.contains(&group))
        .with_context(|| format!("{kind} has no health rules"))
}

/// The agent's report on an object.
#[derive(Debug)]
struct Evaluation {
    rule_conditions: RuleConditions,
    /// The message of Progressing.
    waiting: String,
    /// The message of Healthy.
    broken: String,
    feedback: serde_json::Map<String, Value>,
    feedback_errors: Vec<String>,
}

impl Evaluation {
    /// Returns the health and message on the hub; `None` for kinds that the agent evaluates.
    fn verdict(&self, object: &Value) -> Option<(HealthStatus, String)> {
        let (group, kind) = group_and_kind(object);
        let values = self
            .feedback
            .iter()
            .filter_map(|(name, value)| {
                let reported = match value {
                    Value::Bool(flag) => Reported::Flag(*flag),
                    Value::Number(number) => Reported::Number(number.as_i64()?),
                    Value::String(text) => Reported::Text(text),
                    _ => return None,
                };
                Some((name.as_str(), reported))
            })
            .collect();
        Some(verdicts::find(group, kind)?.evaluate(&values))
    }
}

fn feedback_of(values: Vec<Feedback>) -> Result<serde_json::Map<String, Value>> {
    let value = |value: Feedback| {
        let of_type = value.field_value.into_iter().find(|(name, _)| name != "type");
        Ok((value.name, of_type.context("a value")?.1))
    };
    values.into_iter().map(value).collect()
}

/// The program that runs the code of OCM's agent.
struct Agent(Conversation);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    conditions: Vec<Condition>,
    values: Vec<Feedback>,
    feedback_errors: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    name: String,
    field_value: serde_json::Map<String, Value>,
}

impl Agent {
    fn start(parts: &Parts) -> Result<Self> {
        Conversation::start(Command::new(parts.program(Part::AgentRules))).map(Self)
    }

    fn ask(&mut self, object: &Value, rules: &Value, feedback_rules: &Value) -> Result<Answer> {
        let question = json!({"object": object, "rules": rules, "feedbackRules": feedback_rules});
        Ok(serde_json::from_str(&self.0.ask(&question)?)?)
    }

    /// Evaluates an object like [`Self::evaluate_any`], and checks that no feedback fails either.
    fn evaluate(&mut self, object: &Value) -> Result<Evaluation> {
        let evaluation = self.evaluate_any(object)?;
        ensure!(
            evaluation.feedback_errors.is_empty(),
            "{:?}: {object}",
            evaluation.feedback_errors
        );
        Ok(evaluation)
    }

    /// Evaluates an object by the rules of its kind. Checks that no rule fails for any object, and that both conditions have a
    /// message, that of the agent if the hub has one.
    fn evaluate_any(&mut self, object: &Value) -> Result<Evaluation> {
        let kind_health = kind_health_of(object)?;
        let answer: Answer = serde_json::from_value(agent_rules::ask(&mut self.0, object, kind_health)?)?;
        let has_messages = !kind_health.rules[0].message.is_empty();
        let [progressing, healthy] = answer.conditions.as_slice() else {
            anyhow::bail!("{:?}: {object}", answer.conditions);
        };
        ensure!((progressing.r#type.as_str(), healthy.r#type.as_str()) == (PROGRESSING, HEALTHY));
        // A rule without a message leaves it to the other one.
        let has_message = !kind_health.rules[1].message.is_empty();
        for condition in [progressing, healthy].into_iter().take(if has_message { 2 } else { 1 }) {
            let message = &condition.message;
            ensure!(
                condition.reason == "ConditionRuleEvaluated"
                    && ["True", "False"].contains(&condition.status.as_str())
                    && (1..1300).contains(&message.len())
                    && has_messages != message.contains("Manifest is")
                    && !["no such key", "no such overload", "undefined", "budget"]
                        .iter()
                        .any(|text| message.contains(text))
                    && !message.ends_with([' ', ':']),
                "{condition:?}: {object}"
            );
        }
        Ok(Evaluation {
            rule_conditions: RuleConditions::new(progressing.status == "True", healthy.status == "True"),
            waiting: progressing.message.clone(),
            broken: if has_message { healthy } else { progressing }.message.clone(),
            feedback: feedback_of(answer.values)?,
            feedback_errors: answer.feedback_errors,
        })
    }
}

/// The program that runs the code of Argo CD.
struct ArgoCd(Conversation);

impl ArgoCd {
    fn start(parts: &Parts) -> Result<Self> {
        Conversation::start(Command::new(parts.program(Part::ObjectHealth))).map(Self)
    }

    fn health(&mut self, object: &Value) -> Result<String> {
        let health: Value = serde_json::from_str(&self.0.ask(object)?)?;
        Ok(health["status"].as_str().unwrap_or_default().to_owned())
    }
}
