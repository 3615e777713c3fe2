//! Compares the health rules with Argo CD's own tests: its health checks of custom resources (`health.lua`) come with objects and
//! the health that they expect. OCM's code evaluates the rules on each object, and the hub's code the resulting conditions.
//!
//! The data is read from the Go module of the testbed's Argo CD. docs/custom-resources.md has the result.

#![allow(
    clippy::disallowed_methods,
    reason = "clippy.toml restricts the program; tests may read files and the environment"
)]

#[path = "../common/agent_rules.rs"]
mod agent_rules;
#[path = "../common/conversation.rs"]
mod conversation;
mod data;
#[path = "../common/expected.rs"]
mod expected;
mod page;

use agent_rules::{condition_rules, feedback_rules, group_and_kind};
use anyhow::{Context, Result, ensure};
use conversation::Conversation;
use data::Case;
use generate::health_rules::custom;
use generate::health_rules::{self, KindHealth};
use manifest::kinds::GroupKind;
use manifest::yaml;
use ocm::health::{self, Clock, HealthStatus};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use testbed::{Part, Parts};

/// The objects on which the rules differ from Argo CD, with the reason.
const DIFFERENT: [(&str, &str, &str); 2] = [
    (
        "apps.kruise.io/DaemonSet",
        "no-update-strategy-partition.yaml",
        "a DaemonSet without nodes is healthy; Argo CD waits for a number that is missing",
    ),
    (
        "controlplane.cluster.x-k8s.io/AWSManagedControlPlane",
        "degraded.yaml",
        "a condition has no type, so the health is unknown",
    ),
];

/// The groups of operators on which many rely: no object of theirs may differ.
const RELIED_ON: &str = "acme.cert-manager.io cert-manager.io trust.cert-manager.io postgresql.cnpg.io argoproj.io \
                         helm.toolkit.fluxcd.io image.toolkit.fluxcd.io kustomize.toolkit.fluxcd.io \
                         notification.toolkit.fluxcd.io source.toolkit.fluxcd.io _.crossplane.io _.upbound.io \
                         pkg.crossplane.io kafka.strimzi.io external-secrets.io operator.knative.dev \
                         serving.knative.dev install.istio.io gateway.networking.k8s.io kyverno.io \
                         policies.kyverno.io velero.io monitoring.coreos.com keda.sh cassandra.rook.io ceph.rook.io \
                         beat.k8s.elastic.co elasticsearch.k8s.elastic.co logstash.k8s.elastic.co \
                         operators.coreos.com addons.cluster.x-k8s.io cluster.x-k8s.io tekton.dev \
                         kafka.banzaicloud.io rabbitmq.com psmdb.percona.com pxc.percona.com route.openshift.io \
                         apps.openshift.io bitnami.com";

/// The groups of kinds that Kubernetes serves itself.
const BUILT_IN: [&str; 3] = ["apiextensions.k8s.io", "batch", "policy"];

#[test]
fn rules_agree_with_the_data_of_argo_cd() -> Result<()> {
    let parts = Parts::ensure()?;
    let cases = data::read_cases(&parts.argocd_health_checks())?;
    ensure!(
        cases.len() > 1300 || testbed::argocd_version() != "3.6",
        "only {} objects",
        cases.len()
    );
    let mut agent = Conversation::start(Command::new(parts.program(Part::AgentRules)))?;
    let mut kinds: BTreeMap<&str, page::Kind> = BTreeMap::new();
    let mut differences = Vec::new();
    for case in &cases {
        let health = evaluate(&mut agent, case)?;
        let expected = in_argo_cd(&case.health);
        let kind = kinds.entry(&case.folder).or_default();
        kind.objects += 1;
        let file = case.file.trim_start_matches("testdata/");
        let known = DIFFERENT
            .iter()
            .find(|(folder, name, _)| (*folder, *name) == (&case.folder, file));
        match (health == expected, known) {
            (true, None) => {}
            (false, Some((.., reason))) => kind.reasons.push(reason),
            (true, Some(_)) => differences.push(format!("{} {file} no longer differs", case.folder)),
            (false, None) => differences.push(format!("{} {file}: {health}, Argo CD {}", case.folder, case.health)),
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    if testbed::argocd_version() != "3.6" {
        return Ok(());
    }
    assert_eq!(kinds.len(), 293);
    for (folder, kind) in &kinds {
        let group = folder.split_once('/').map_or(*folder, |(group, _)| group);
        let must_agree = RELIED_ON.split(' ').any(|relied_on| relied_on == group) || BUILT_IN.contains(&group);
        assert!(kind.reasons.is_empty() || !must_agree, "{folder}: {:?}", kind.reasons);
    }
    for group in RELIED_ON.split(' ') {
        let is_known = kinds.keys().any(|folder| folder.starts_with(&format!("{group}/")));
        assert!(is_known, "Argo CD has no health check of {group}");
    }
    page::compare(&kinds)
}

/// A failing rule would yield False, which a rollout across clusters takes for complete.
#[test]
fn no_rule_fails_for_objects_that_lack_fields() -> Result<()> {
    let parts = Parts::ensure()?;
    let mut agent = Conversation::start(Command::new(parts.program(Part::AgentRules)))?;
    let mut failures = Vec::new();
    for case in data::read_cases(&parts.argocd_health_checks())? {
        for removed in [&["status"][..], &["spec"], &["spec", "status"]] {
            let mut object = case.object.clone();
            let fields = object.as_object_mut().context("an object")?;
            fields.retain(|key, _| !removed.contains(&key.as_str()));
            let kind_health = rules_of(&object)?;
            let answer = agent_rules::ask(&mut agent, &object, kind_health)?;
            let conditions = answer["conditions"].as_array().context("conditions")?;
            let is_known = DIFFERENT.iter().any(|(folder, ..)| *folder == case.folder);
            let is_wrong = |set: &Value| {
                let message = set["message"].as_str().unwrap_or_default();
                set["reason"] != "ConditionRuleEvaluated" || message.is_empty() || message.starts_with("no such")
            };
            if !is_known && let Some(wrong) = conditions.iter().find(|set| is_wrong(set)) {
                failures.push(format!("{} without {removed:?}: {wrong}", case.folder));
            }
        }
    }
    failures.dedup();
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
    Ok(())
}

fn rules_of(object: &Value) -> Result<&'static KindHealth> {
    let (group, kind) = group_and_kind(object);
    let group_kind = GroupKind {
        group: group.into(),
        kind: kind.into(),
    };
    health_rules::find_kind_health(group, kind, group_kind.built_in().is_none()).context("no rules")
}

/// Returns the health that the hub shows for an object after the agent has evaluated the rules of its kind.
fn evaluate(agent: &mut Conversation, case: &Case) -> Result<String> {
    let object = &case.object;
    let kind_health = rules_of(object)?;
    let answer = agent_rules::ask(agent, object, kind_health)?;
    let hub = hub_health(object, kind_health, &answer)?;
    ensure!(
        answer["feedbackErrors"] == json!([]),
        "{} {}: {}",
        case.folder,
        case.file,
        answer["feedbackErrors"]
    );
    compare_with_local_evaluation(case, &hub)?;
    Ok(hub)
}

/// Checks that `health check`, which has no CEL, comes to the same verdict if the rule does not need it.
fn compare_with_local_evaluation(case: &Case, hub: &str) -> Result<()> {
    let (group, kind) = group_and_kind(&case.object);
    let Some(rule) = custom::find_rule(group, kind) else {
        return Ok(());
    };
    let text = case.object.to_string();
    let object = yaml::json(&text).map_err(|error| anyhow::anyhow!("{}", error.message))?;
    let evaluation = custom::evaluate(rule, object.as_map().context("an object")?);
    let is_known = DIFFERENT.iter().any(|(folder, ..)| *folder == case.folder);
    ensure!(
        evaluation.depends_on_cel || is_known || evaluation.verdict.name() == hub,
        "{} {}: here {}, on the hub {hub}",
        case.folder,
        case.file,
        evaluation.verdict.name()
    );
    Ok(())
}

/// Returns the health of the object in a ManifestWork, as the hub evaluates it.
fn hub_health(object: &Value, kind_health: &KindHealth, answer: &Value) -> Result<String> {
    let now = "2026-06-01T12:00:00Z";
    let (group, kind) = group_and_kind(object);
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "x", "message": "", "observedGeneration": 1, "lastTransitionTime": now});
    let mut conditions: Vec<Value> = vec![
        condition("Applied", "True"),
        condition("Available", "True"),
        condition("StatusFeedbackSynced", "True"),
    ];
    for set in answer["conditions"].as_array().context("conditions")? {
        let mut set = set.clone();
        set["observedGeneration"] = json!(1);
        conditions.push(set);
    }
    if answer["values"] != json!([]) {
        conditions[2]["reason"] = json!("StatusFeedbackSynced");
    }
    let meta = json!({"ordinal": 0, "group": group, "kind": kind, "resource": "things", "namespace": "", "name": "a"});
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": "a", "namespace": "cluster1", "generation": 1},
        "spec": {
            "workload": {"manifests": [{"apiVersion": object["apiVersion"], "kind": kind, "metadata": {"name": "a"}}]},
            "manifestConfigs": [{
                "resourceIdentifier": {"group": group, "resource": "things", "namespace": "*", "name": "*"},
                "conditionRules": condition_rules(kind_health),
                "feedbackRules": feedback_rules(kind_health),
            }],
        },
        "status": {
            "conditions": [condition("Applied", "True"), condition("Available", "True")],
            "resourceStatus": {"manifests": [
                {"resourceMeta": meta, "conditions": conditions, "statusFeedback": {"values": answer["values"]}},
            ]},
        },
    });
    let status = health::evaluate(&work.to_string(), &Clock::at(now.parse()?)).map_err(anyhow::Error::msg)?;
    Ok(status.objects[0].health.in_argo_cd().to_owned())
}

/// Returns the health that the hub shows for a health of Argo CD: an unknown one is waited for, and a missing object is an error.
fn in_argo_cd(health: &str) -> &str {
    match health {
        "Unknown" => HealthStatus::Progressing.name(),
        "Missing" => HealthStatus::Degraded.name(),
        // A script without a result.
        "" => HealthStatus::Healthy.name(),
        other => other,
    }
}
