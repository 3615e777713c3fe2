//! Configuration of the objects of a ManifestWork: update strategy, status feedback, condition rules and orphaning.
//!
//! One entry of `manifestConfigs` applies to all objects of a kind, by wildcards. For each setting, the first matching entry that
//! has it applies, so an object that differs has its own entry before the one of its kind. The way of feedback is the exception:
//! the agent takes it from the last matching entry.

use super::content_hash::{self, Embedded};
use super::feedback_watch::{Feedback, Share, Watched};
use super::health_rules::{self, KindHealth};
use super::hooks::Role;
use super::ignored_fields::{self, FieldPath};
use super::object::Object;
use super::order;
use super::placement::RolloutKind;
use super::plurals::Plurals;
use super::policy::Executor;
use super::update_strategy::Strategy;
use manifest::kinds::GroupKind;
use manifest::value::{Map, Value};
use std::collections::BTreeMap;

/// Options for all ManifestWorks of an Application, set by the Application or the platform.
#[derive(Clone, Debug, Default)]
pub struct WorkOptions {
    /// The update strategy of objects that set none; `None` for the default of each object.
    pub strategy: Option<Strategy>,
    /// The fields of kinds that the agent leaves to other writers.
    pub ignored_fields: Vec<(GroupKind, FieldPath)>,
    /// True if Namespaces are deleted with the ManifestWork.
    pub delete_namespaces: bool,
    /// True if CRDs, and with them all their objects, are deleted with the ManifestWork.
    pub delete_crds: bool,
    /// True if the ManifestWorks carry condition rules, which OCM supports since v1.0.
    pub condition_rules: bool,
    /// The way in which agents notice that the health of an object has changed.
    pub feedback: Feedback,
    /// The ServiceAccount of the managed cluster whose permissions limit what the agent applies.
    pub executor: Option<Executor>,
    /// The rollout across the clusters of a placement; `None` if the clusters are given by name.
    pub rollout: Option<RolloutKind>,
}

impl WorkOptions {
    /// Returns true if a rollout waits for a cluster to finish before it changes the next.
    #[must_use]
    pub fn is_progressive(&self) -> bool {
        self.rollout.is_some_and(|kind| kind != RolloutKind::All)
    }
}

/// Returns the fields of a ManifestWork's `spec` besides the workload.
///
/// With `defaults`, the fields include the defaults of OCM's CRD: without them, Argo CD shows a permanent difference for objects
/// that it applies server-side. Elsewhere they are omitted, because older versions of the CRD lack some of them.
#[must_use]
pub fn fields(
    objects: &[Embedded],
    plurals: &Plurals,
    watched: &Watched,
    options: &WorkOptions,
    defaults: bool,
) -> Map<'static> {
    let mut fields = Vec::new();
    let orphans: Vec<Value<'static>> = objects
        .iter()
        .map(|embedded| &*embedded.placed.object)
        .filter(|object| is_kept(object, options))
        .flat_map(|object| identifiers(object, plurals))
        .collect();
    if !orphans.is_empty() {
        let delete_option = Value::map([
            ("propagationPolicy", Value::text("SelectivelyOrphan")),
            (
                "selectivelyOrphans",
                Value::map([("orphaningRules", Value::List(orphans))]),
            ),
        ]);
        fields.push(("deleteOption", delete_option));
    }
    if let Some(Executor { namespace, name }) = &options.executor {
        let account = Value::map([("name", Value::text(name)), ("namespace", Value::text(namespace))]);
        let subject = Value::map([("serviceAccount", account), ("type", Value::text("ServiceAccount"))]);
        fields.push(("executor", Value::map([("subject", subject)])));
    }
    let entries = entries(objects, plurals, watched, options);
    // OCM considers a cluster complete only if the ManifestWork reports that it is not progressing, so an entry reports that if
    // no object does.
    let reports_progress = entries.iter().any(Entry::has_health_rules);
    let progress_reporter =
        (options.rollout.is_some() && options.condition_rules && !reports_progress).then_some(entries.len());
    let configs = entries
        .into_iter()
        .zip(1..)
        .map(|(entry, count)| entry.value(options, defaults, Some(count) == progress_reporter))
        .collect();
    fields.push(("manifestConfigs", Value::List(configs)));
    Map::of(fields)
}

/// Returns true if the object stays on the cluster when it leaves Git or the Application is deleted. Deleting a Namespace deletes
/// its contents, deleting a CRD deletes all objects of its kind, and both may have existed before.
fn is_kept(object: &Object, options: &WorkOptions) -> bool {
    let is_requested = object.annotations.as_ref().is_some_and(|annotations| annotations.keep);
    let is_crd = &*object.key.kind.group == "apiextensions.k8s.io";
    is_requested || is_crd && !options.delete_crds || order::is_namespace(object) && !options.delete_namespaces
}

/// The condition rules of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConditionRules {
    /// None: the entry of the kind has them.
    Inherited,
    /// Those of the kind.
    OfKind,
    /// Constant ones, because the object counts as healthy when it is applied.
    HealthIgnored,
}

/// An entry of `manifestConfigs`.
struct Entry<'a> {
    identifier: Value<'static>,
    kind: &'a GroupKind,
    strategy: Strategy,
    /// True if it sets the feedback of the objects; otherwise the entry of the kind does.
    feedback: bool,
    rules: ConditionRules,
    /// True if the objects run to completion: the agent does not update them, and the ManifestWork completes with them.
    runs: bool,
    /// The content hash that identifies objects applied by this ManifestWork, if needed.
    content_test: Option<String>,
    /// The way in which the agent notices changes.
    mode: Feedback,
    /// The fields that the agent leaves to other writers, as an entry of `ignoreFields`.
    ignored: Option<Value<'static>>,
}

/// Returns one entry for each object that differs from its kind, followed by one entry for each kind, and by one for each namespace
/// in which the agent watches a kind that it polls elsewhere.
fn entries<'a>(objects: &'a [Embedded], plurals: &Plurals, watched: &Watched, options: &WorkOptions) -> Vec<Entry<'a>> {
    let mut kinds: BTreeMap<&GroupKind, Vec<&Embedded>> = BTreeMap::new();
    // Nearly all objects of a kind are adjacent.
    for of_kind in objects.chunk_by(|one, other| one.kind() == other.kind()) {
        kinds.entry(of_kind[0].kind()).or_default().extend(of_kind);
    }
    let mut entries = Vec::new();
    let mut of_kinds = Vec::new();
    let mut of_namespaces = Vec::new();
    for (kind, objects) in kinds {
        let strategy = Strategy::of_kind(&objects[0].placed, options.strategy);
        let content_test = content_hash::hash_matches_expression(&objects);
        for Embedded { placed, .. } in &objects {
            let own = Strategy::of(placed, options.strategy);
            let ignores_health = placed.object.annotations.as_ref().is_some_and(|it| it.ignores_health)
                && health_rules::of(&kind.group, &kind.kind, kind.built_in().is_none()).is_some();
            if own != strategy || ignores_health || !ignored_fields::own(&placed.object).is_empty() {
                entries.extend(identifiers(&placed.object, plurals).map(|identifier| Entry {
                    identifier,
                    kind,
                    strategy: own,
                    feedback: false,
                    // An object that is not applied again does not carry the content hash of this ManifestWork.
                    rules: if ignores_health {
                        ConditionRules::HealthIgnored
                    } else if content_test.is_some() {
                        ConditionRules::OfKind
                    } else {
                        ConditionRules::Inherited
                    },
                    runs: false,
                    content_test: content_test.clone().filter(|_| own.applies()),
                    mode: Feedback::Poll,
                    ignored: ignored_fields::config(&ignored_fields::of(&placed.object, options)),
                }));
            }
        }
        let ignored = options.ignored_fields.iter().filter(|(of, _)| of == kind);
        let ignored = ignored_fields::config(&ignored.map(|(_, field)| field).collect());
        let names = plurals.of(kind);
        let plural = &names[0];
        let share = watched.of(kind, namespaces(&objects));
        if let Share::Namespaces(chosen) = &share {
            of_namespaces.extend(chosen.iter().map(|namespace| Entry {
                identifier: identify(&kind.group, "*", namespace, plural),
                kind,
                strategy,
                feedback: false,
                rules: ConditionRules::Inherited,
                runs: false,
                content_test: None,
                mode: Feedback::Watch,
                ignored: ignored.clone(),
            }));
        }
        // Under another plural than the likely one, the agent updates the objects in the same way, but the hub reports the wrong
        // guess: it only knows entries whose wildcard is one star.
        of_kinds.extend(names[1..].iter().map(|name| Entry {
            identifier: identify(&kind.group, "*", "**", name),
            kind,
            strategy,
            feedback: false,
            rules: ConditionRules::Inherited,
            runs: false,
            content_test: None,
            mode: Feedback::Poll,
            ignored: ignored.clone(),
        }));
        of_kinds.push(Entry {
            identifier: identify(&kind.group, "*", "*", plural),
            kind,
            strategy,
            feedback: true,
            rules: ConditionRules::OfKind,
            runs: objects[0].placed.role == Role::Run,
            content_test: content_test.filter(|_| strategy.applies()),
            mode: if share == Share::All {
                Feedback::Watch
            } else {
                Feedback::Poll
            },
            ignored,
        });
    }
    entries.extend(of_kinds);
    entries.extend(of_namespaces);
    entries
}

fn namespaces<'a>(objects: &[&'a Embedded]) -> impl Iterator<Item = &'a str> {
    objects
        .iter()
        .filter_map(|embedded| embedded.placed.object.key.namespace.as_deref())
}

/// The CEL expression and message for a finished run, successful or not.
const COMPLETE: (&str, &str) = (
    "object.?status.?conditions.orValue([]).exists(c,c.type in ['Complete','Failed']&&c.status=='True')||\
     object.?status.?phase.orValue('') in ['Succeeded','Failed']",
    "result?'it has run and is not run again':'it has not come to its end'",
);

impl Entry<'_> {
    fn kind_health(&self) -> Option<&'static KindHealth> {
        health_rules::of(&self.kind.group, &self.kind.kind, self.kind.built_in().is_none())
    }

    fn has_health_rules(&self) -> bool {
        self.rules != ConditionRules::Inherited && self.kind_health().is_some()
    }

    /// Returns the entry; with `is_done`, its objects count as complete as soon as they are applied.
    fn value(self, options: &WorkOptions, defaults: bool, is_done: bool) -> Value<'static> {
        let mut fields = Vec::new();
        let kind_health = self.kind_health();
        let rules = kind_health.filter(|_| self.rules != ConditionRules::Inherited && options.condition_rules);
        let mut conditions: Vec<Value<'static>> = Vec::new();
        // A custom resource has come to its end when it is healthy or broken, and at first it has no status.
        let runs_with_status = self.runs && self.kind.built_in().is_none();
        if self.runs && options.condition_rules {
            let progressing = rules.and_then(|kind_health| {
                let mut rules = kind_health.rules.iter();
                rules.find(|rule| rule.condition == health_rules::PROGRESSING)
            });
            match progressing.filter(|_| runs_with_status) {
                Some(progressing) => {
                    let expression = format!("{}||has(object.status)&&!({})", COMPLETE.0, progressing.expression);
                    conditions.push(rule("Complete", &expression, COMPLETE.1));
                }
                None => conditions.push(rule("Complete", COMPLETE.0, COMPLETE.1)),
            }
        }
        if is_done {
            conditions.push(rule(health_rules::PROGRESSING, "false", "'it is applied'"));
        }
        for each in rules.iter().flat_map(|kind_health| &kind_health.rules) {
            if self.rules == ConditionRules::HealthIgnored {
                let verdict = if each.condition == health_rules::HEALTHY {
                    "true"
                } else {
                    "false"
                };
                conditions.push(rule(each.condition, verdict, "'its health is ignored'"));
                continue;
            }
            conditions.push(match &self.content_test {
                Some(content_test) => rule(
                    each.condition,
                    &format!("!({content_test})||({})", each.expression),
                    &format!(
                        "{content_test}?({}):'waiting for the agent to apply the change'",
                        each.message
                    ),
                ),
                None if runs_with_status && each.condition == health_rules::PROGRESSING => rule(
                    each.condition,
                    &format!("!has(object.status)||({})", each.expression),
                    &format!("has(object.status)?({}):'waiting for its status'", each.message),
                ),
                None => rule(each.condition, each.expression, each.message),
            });
        }
        if !conditions.is_empty() {
            fields.push(("conditionRules", Value::List(conditions)));
        }
        if let Some(kind_health) = kind_health.filter(|kind_health| self.feedback && !kind_health.feedback.is_empty()) {
            let path = |&(name, path): &(&'static str, &'static str)| {
                Value::map([("name", Value::text(name)), ("path", Value::text(path))])
            };
            let paths = Value::List(kind_health.feedback.iter().map(path).collect());
            let rule = Value::map([("jsonPaths", paths), ("type", Value::text("JSONPaths"))]);
            fields.push(("feedbackRules", Value::List(vec![rule])));
        }
        if self.mode == Feedback::Watch {
            fields.push(("feedbackScrapeType", Value::text("Watch")));
        } else if defaults {
            fields.push(("feedbackScrapeType", Value::text("Poll")));
        }
        fields.push(("resourceIdentifier", self.identifier));
        let mut strategy = vec![("type", Value::text(self.strategy.name()))];
        if self.strategy == Strategy::ServerSideApply {
            let mut apply = vec![("force", Value::Bool(true))];
            if defaults {
                apply.push(("fieldManager", Value::text("work-agent")));
            }
            if let Some(ignored) = self.ignored {
                apply.push(("ignoreFields", Value::List(vec![ignored])));
            }
            strategy.push(("serverSideApply", Value::map(apply)));
        }
        fields.push(("updateStrategy", Value::map(strategy)));
        Value::map(fields)
    }
}

fn rule(condition: &str, expression: &str, message: &str) -> Value<'static> {
    Value::map([
        ("celExpressions", Value::List(vec![Value::text(expression)])),
        ("condition", Value::text(condition)),
        ("messageExpression", Value::text(message)),
        ("type", Value::text("CEL")),
    ])
}

/// Returns the resource identifiers that an object may have; orphaning rules have the same fields.
fn identifiers<'a>(object: &'a Object, plurals: &'a Plurals) -> impl Iterator<Item = Value<'static>> + 'a {
    let key = &object.key;
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let names = plurals.of(&key.kind).into_iter();
    names.map(move |name| identify(&key.kind.group, &key.name, namespace, &name))
}

fn identify(group: &str, name: &str, namespace: &str, resource: &str) -> Value<'static> {
    let fields = [
        ("group", group),
        ("name", name),
        ("namespace", namespace),
        ("resource", resource),
    ];
    let fields = fields.into_iter().filter(|(_, text)| !text.is_empty());
    Value::map(fields.map(|(name, text)| (name, Value::text(text))))
}
