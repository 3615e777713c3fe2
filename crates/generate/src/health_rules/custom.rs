//! Health rules of custom kinds: a table of one line per kind, from which the CEL expressions for OCM's agent are generated.
//!
//! ```text
//! custom/kinds.txt, a file of the user ─▶ parse ─▶ CustomRule ─▶ cel: expressions for the agent
//!                                                            └▶ evaluate: the same verdict, for `health check`
//! ```
//!
//! `custom/kinds.txt` explains the language. The first line that names a kind decides, and so does the first clause of it that
//! holds for an object.

mod cel;
mod evaluate;
mod file;
mod parse;

pub use evaluate::{Evaluation, evaluate};
pub use file::{CONFIG_MAP, CONFIG_MAP_KEY, check, load};
pub use parse::{RuleError, parse};

use super::{CUSTOM, CelRule, HEALTHY, KindHealth, PROGRESSING};
use manifest::value::Value;
use ocm::health::HealthStatus;
use std::cmp::Ordering;
use std::sync::{LazyLock, OnceLock};

/// The rules of the kinds of common operators.
static BUILT_IN: LazyLock<Vec<PreparedRule>> = LazyLock::new(|| prepare(parse(include_str!("custom/kinds.txt")).0));
/// The rules of the user, which take precedence.
static OF_USER: OnceLock<Vec<PreparedRule>> = OnceLock::new();

/// A rule, and what the agent gets of it once an object needs it.
struct PreparedRule {
    rule: CustomRule,
    kind_health: OnceLock<KindHealth>,
}

fn prepare(rules: Vec<CustomRule>) -> Vec<PreparedRule> {
    let prepare = |rule| PreparedRule {
        rule,
        kind_health: OnceLock::new(),
    };
    rules.into_iter().map(prepare).collect()
}

/// Returns all built-in rules.
pub fn rules() -> impl Iterator<Item = &'static CustomRule> {
    BUILT_IN.iter().map(|prepared| &prepared.rule)
}

/// Sets the rules of the user for this process; only the first call counts.
fn set_rules_of_user(rules: Vec<CustomRule>) {
    let _ = OF_USER.set(prepare(rules));
}

/// Returns the built-in rule of a kind.
pub fn find_rule(group: &str, kind: &str) -> Option<&'static CustomRule> {
    let prepared = BUILT_IN.iter().find(|prepared| prepared.rule.matches(group, kind));
    prepared.map(|prepared| &prepared.rule)
}

/// Returns the health rules of a custom kind that has a rule.
pub(super) fn find(group: &str, kind: &str) -> Option<&'static KindHealth> {
    let rules = OF_USER.get().into_iter().flatten().chain(BUILT_IN.iter());
    let prepared = rules.into_iter().find(|prepared| prepared.rule.matches(group, kind))?;
    Some(prepared.kind_health.get_or_init(|| kind_health(&prepared.rule)))
}

/// Returns what the agent gets. The texts live as long as the process, which uses a rule for all objects of a kind.
fn kind_health(rule: &CustomRule) -> KindHealth {
    let ([progressing, message, healthy], suspended) = rule.expressions();
    let leak = |text: String| -> &'static str { text.leak() };
    let rule_of = |condition, expression, message| CelRule {
        condition,
        expression: leak(expression),
        message: leak(message),
    };
    let feedback: Vec<(&str, &str)> = rule
        .feedback()
        .into_iter()
        .map(|(name, path)| (leak(name), leak(path)))
        .collect();
    KindHealth {
        rules: [
            rule_of(PROGRESSING, progressing, message),
            rule_of(HEALTHY, healthy, String::new()),
        ],
        suspended: suspended.map(leak),
        feedback: feedback.leak(),
    }
}

/// The rules of kinds without one whose CRD has a status: an object without it is not in its desired state.
pub(super) static REPORTS_STATUS: LazyLock<KindHealth> = LazyLock::new(|| {
    let [progressing, healthy] = CUSTOM.rules;
    let progressing = CelRule {
        expression: format!("!has(object.status)||{}", progressing.expression).leak(),
        ..progressing
    };
    KindHealth::new([progressing, healthy], CUSTOM.feedback)
});

/// The health that a clause may assign to an object.
const VERDICTS: [HealthStatus; 4] = [
    HealthStatus::Healthy,
    HealthStatus::Progressing,
    HealthStatus::Suspended,
    HealthStatus::Degraded,
];

const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// The rule of one or more kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomRule {
    /// The line in the file, from 1.
    pub line: usize,
    kinds: Vec<String>,
    group: String,
    clauses: Vec<Clause>,
    /// The verdict if no clause holds.
    otherwise: HealthStatus,
    /// Fields of the object that hold a message.
    messages: Vec<NestedField>,
    reports: Vec<(String, String)>,
}

impl CustomRule {
    /// Returns true if the rule is for this kind. `*Policy` matches kinds with this ending, and `*.example.com` subgroups.
    pub fn matches(&self, group: &str, kind: &str) -> bool {
        let is_group = match self.group.strip_prefix('*') {
            Some(parent) => group.ends_with(parent) && group.len() > parent.len(),
            None => self.group == group,
        };
        let is_kind = |pattern: &String| match pattern.strip_prefix('*') {
            Some(ending) => kind.ends_with(ending),
            None => pattern == kind,
        };
        is_group && self.kinds.iter().any(is_kind)
    }

    /// Returns the names of the rule's kinds, `Kind.group` each.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.kinds.iter().map(|kind| format!("{kind}.{}", self.group))
    }

    /// Returns the verdict that all objects have, whatever their status; `None` if the status decides.
    pub fn constant(&self) -> Option<HealthStatus> {
        self.clauses.is_empty().then_some(self.otherwise)
    }
}

/// A verdict, and the tests that lead to it: all tests of one of the alternatives.
#[derive(Clone, Debug, PartialEq)]
struct Clause {
    verdict: HealthStatus,
    alternatives: Vec<Vec<Term>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Term {
    Condition(ConditionTest),
    Field(FieldTest),
    /// The status refers to an earlier generation.
    Stale,
    /// A condition in these lists refers to an earlier generation.
    StaleCondition(ConditionList),
    /// A CEL expression of the file.
    Cel(String),
}

/// The field that has the conditions.
#[derive(Clone, Debug, PartialEq)]
struct ConditionList {
    owner: NestedField,
    owners: Owners,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owners {
    /// One mapping.
    One,
    /// A list of them.
    Many,
    /// Those of a list that have no condition of an earlier generation.
    Current,
}

impl ConditionList {
    fn of_status() -> Self {
        Self {
            owner: NestedField(vec!["status".to_owned()]),
            owners: Owners::One,
        }
    }
}

/// True if a condition exists, or with `negated` if none exists, that matches all of this.
#[derive(Clone, Debug, PartialEq)]
struct ConditionTest {
    negated: bool,
    list: ConditionList,
    /// Empty for any type.
    types: Vec<String>,
    statuses: Choice,
    reasons: Choice,
}

/// Some values, or all others; no values for any.
#[derive(Clone, Debug, Default, PartialEq)]
struct Choice {
    values: Vec<String>,
    except: bool,
}

impl Choice {
    fn is_any(&self) -> bool {
        self.values.is_empty()
    }

    fn allows(&self, value: &str) -> bool {
        self.is_any() || self.values.iter().any(|listed| listed == value) != self.except
    }
}

#[derive(Clone, Debug, PartialEq)]
struct NestedField(Vec<String>);

#[derive(Clone, Debug, PartialEq)]
struct FieldTest {
    negated: bool,
    /// The list to search for an item with the field; `None` for a field of the object.
    list: Option<NestedField>,
    path: NestedField,
    comparison: Comparison,
}

#[derive(Clone, Debug, PartialEq)]
enum Comparison {
    Present,
    /// One of these values.
    In(Vec<Value<'static>>),
    /// Present, and none of these values.
    NotIn(Vec<Value<'static>>),
    /// Compared with another number; missing numbers are 0.
    Number(Ordering, Operand),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(NestedField),
    Number(i64),
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::yaml;

    /// Returns a group that the rule matches.
    fn sample_group(rule: &CustomRule) -> String {
        rule.group
            .strip_prefix('*')
            .map_or_else(|| rule.group.clone(), |parent| format!("some{parent}"))
    }

    #[test]
    fn table_has_no_errors_and_no_rule_that_an_earlier_one_hides() {
        let (rules, errors) = parse(include_str!("custom/kinds.txt"));
        assert_eq!(errors, []);
        assert!(rules.len() > 200, "{}", rules.len());
        for rule in rules {
            for kind in &rule.kinds {
                let kind = kind.replace('*', "Some");
                let line = find_rule(&sample_group(&rule), &kind).map(|rule| rule.line);
                assert_eq!(line, Some(rule.line), "{kind}.{}", rule.group);
            }
        }
    }

    #[test]
    fn rules_of_custom_kinds_stay_small() {
        let mut sizes = Vec::new();
        for rule in rules() {
            let (rules, feedback) = super::super::tests::sizes(&kind_health(rule));
            // A Rollout before Argo Rollouts 1.1 has no phase: its health follows from many fields.
            let limit = if rule.kinds == ["Rollout"] { 3000 } else { 2200 };
            assert!(
                rules <= limit && feedback <= 500,
                "{:?}: {rules} and {feedback}",
                rule.kinds
            );
            sizes.push(rules);
        }
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!(mean <= 750, "{mean} bytes on average");
    }

    /// As their operators leave them: these objects are healthy in Argo CD, which has no health check of most.
    #[test]
    fn objects_that_report_no_readiness_do_not_wait() {
        for (kind, object) in [
            (
                "KafkaNodePool.kafka.strimzi.io",
                "{status: {nodeIds: [0], observedGeneration: 1}}",
            ),
            ("KafkaTopic.platform.confluent.io", "{status: {state: CREATED}}"),
            ("KeptnTaskDefinition.lifecycle.keptn.sh", "{status: {function: {}}}"),
            ("AWSClusterControllerIdentity.infrastructure.cluster.x-k8s.io", "{}"),
            (
                "InClusterIPPool.ipam.cluster.x-k8s.io",
                "{status: {ipAddresses: {free: 1}}}",
            ),
            (
                "ExtensionConfig.runtime.cluster.x-k8s.io",
                "{status: {conditions: [{type: Discovered, status: 'True'}]}}",
            ),
            ("CephCOSIDriver.ceph.rook.io", "{}"),
            (
                "AtlasBackupSchedule.atlas.mongodb.com",
                "{status: {conditions: [], deploymentID: [a]}}",
            ),
            ("HumioExternalCluster.core.humio.com", "{status: {state: Ready}}"),
            (
                "Subscription.operators.coreos.com",
                "{spec: {installPlanApproval: Manual}, status: {installedCSV: a, state: AtLatestKnown, conditions: \
                 [{type: InstallPlanPending, status: 'True', reason: RequiresApproval}]}}",
            ),
        ] {
            let (name, group) = kind.split_once('.').expect("a group");
            let object = yaml::documents(object).next().expect("a document").expect(object);
            let object = object.value.as_map().expect("a mapping");
            let verdict = find_rule(group, name).map(|rule| evaluate(rule, object).verdict);
            assert_eq!(
                verdict.unwrap_or(HealthStatus::Healthy),
                HealthStatus::Healthy,
                "{kind}"
            );
        }
    }

    #[test]
    fn wildcards_match_kinds_and_groups() {
        let line = |group: &str, kind: &str| find_rule(group, kind).map(|rule| rule.line);
        assert!(line("storage.cnrm.cloud.google.com", "StorageBucket").is_some());
        assert_eq!(line("cnrm.cloud.google.com", "StorageBucket"), None);
        assert_eq!(line("example.com", "Certificate"), None);
        assert_ne!(
            line("microgateway.airlock.com", "LimitsPolicy"),
            line("microgateway.airlock.com", "Limits")
        );
    }
}
