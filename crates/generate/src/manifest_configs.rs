//! Configuration of the objects of a ManifestWork: update strategy, status feedback, condition rules and orphaning.
//!
//! One entry of `manifestConfigs` applies to all objects of a kind, by wildcards. For each setting, the first matching entry that
//! has it applies, so an object that differs has its own entry before the one of its kind. The way of feedback is the exception:
//! the agent takes it from the last matching entry.

use super::content_hash::{self, Embedded};
use super::feedback_watch::{Feedback, Share, Watched};
use super::health_rules::{self, KindHealth};
use super::hooks::Role;
use super::object::Object;
use super::order;
use super::placed::Placed;
use super::placement::RolloutKind;
use super::policy::Executor;
use super::update_strategy::Strategy;
use manifest::kinds::GroupKind;
use manifest::value::{Map, Value};
use ocm::verdicts::{CONTENT_HASH, DELETED};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Options for all ManifestWorks of an Application, set by the Application or the platform.
#[derive(Clone, Debug, Default)]
pub struct WorkOptions {
    /// The update strategy of objects that set none; `None` for the default of each object.
    pub strategy: Option<Strategy>,
    /// True if Namespaces are deleted with the ManifestWork.
    pub delete_namespaces: bool,
    /// True if CRDs, and with them all their objects, are deleted with the ManifestWork.
    pub delete_crds: bool,
    /// True if health is evaluated: by the hub, or by condition rules, which OCM supports since v1.0.
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

/// The resource names (plurals) of kinds.
#[derive(Debug, Default)]
pub struct Plurals {
    names: HashMap<GroupKind, String>,
    /// The kinds whose CRD has a status.
    with_status: HashSet<GroupKind>,
}

impl Plurals {
    /// Collects plurals from `settings`, which take precedence, and from the CRDs among `objects`.
    #[must_use]
    pub fn new(objects: &[Placed], settings: &[(GroupKind, String)]) -> Self {
        let defined = objects
            .iter()
            .filter_map(|placed| placed.object.defines.as_deref())
            .filter_map(|defined| Some((defined.kind.clone(), defined.plural.as_deref()?.to_owned())));
        let definitions = objects.iter().filter_map(|placed| placed.object.defines.as_deref());
        Self {
            names: defined.chain(settings.iter().cloned()).collect(),
            with_status: definitions
                .filter(|defined| defined.has_status)
                .map(|defined| defined.kind.clone())
                .collect(),
        }
    }

    fn of(&self, kind: &GroupKind) -> String {
        match (self.names.get(kind), kind.built_in()) {
            (Some(plural), _) => plural.clone(),
            (None, Some(known)) => known.plural.to_owned(),
            (None, None) => kind.guessed_plural(),
        }
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
        .map(|object| identifier(object, plurals))
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

/// The values that the agent reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportedValues {
    /// None: another entry sets them.
    Inherited,
    /// Those of the kind.
    OfKind,
    /// Those of the kind, and the content hash.
    WithHash,
}

/// An entry of `manifestConfigs`.
struct Entry<'a> {
    identifier: Value<'static>,
    kind: &'a GroupKind,
    strategy: Strategy,
    /// The feedback of the objects; of an object with an entry of its own, the entry of its kind sets it.
    feedback: ReportedValues,
    rules: ConditionRules,
    /// True if the objects run to completion: the agent does not update them, and the ManifestWork completes with them.
    runs: bool,
    /// The content hash with which the condition rules identify objects applied by this ManifestWork, if needed.
    hash: Option<&'a str>,
    /// The way in which the agent notices changes.
    mode: Feedback,
    /// True if the CRD of the kind has a status.
    has_status: bool,
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
        let has_status = plurals.with_status.contains(kind);
        let hash = objects.iter().find_map(|object| object.hash.as_deref());
        let rule_hash = hash.filter(|_| options.rollout.is_some());
        let has_health = objects
            .iter()
            .any(|object| content_hash::has_health(&object.placed, options));
        for Embedded { placed, .. } in &objects {
            let own = Strategy::of(placed, options.strategy);
            let ignores_health = has_health && placed.object.annotations.as_ref().is_some_and(|it| it.ignores_health);
            if own != strategy || ignores_health {
                entries.push(Entry {
                    identifier: identifier(&placed.object, plurals),
                    kind,
                    strategy: own,
                    feedback: ReportedValues::Inherited,
                    rules: if ignores_health {
                        ConditionRules::HealthIgnored
                    } else if rule_hash.is_some() && own.applies() != strategy.applies() {
                        // An object that is not applied again does not carry the content hash of this ManifestWork.
                        ConditionRules::OfKind
                    } else {
                        ConditionRules::Inherited
                    },
                    runs: false,
                    hash: rule_hash.filter(|_| own.applies()),
                    mode: Feedback::Poll,
                    has_status,
                });
            }
        }
        let plural = plurals.of(kind);
        let share = watched.of(kind, namespaces(&objects));
        if let Share::Namespaces(chosen) = &share {
            of_namespaces.extend(chosen.iter().map(|namespace| Entry {
                identifier: identify(&kind.group, "*", namespace, &plural),
                kind,
                strategy,
                feedback: ReportedValues::Inherited,
                rules: ConditionRules::Inherited,
                runs: false,
                hash: None,
                mode: Feedback::Watch,
                has_status,
            }));
        }
        of_kinds.push(Entry {
            identifier: identify(&kind.group, "*", "*", &plural),
            kind,
            strategy,
            feedback: match hash {
                _ if !has_health => ReportedValues::Inherited,
                Some(_) => ReportedValues::WithHash,
                None => ReportedValues::OfKind,
            },
            rules: ConditionRules::OfKind,
            runs: objects[0].placed.role == Role::Run,
            hash: rule_hash.filter(|_| strategy.applies()),
            mode: if share == Share::All {
                Feedback::Watch
            } else {
                Feedback::Poll
            },
            has_status,
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

/// The CEL expression for a finished run of a Job, successful or not.
const JOB_COMPLETE: &str =
    "object.?status.?conditions.orValue([]).exists(c,c.type in ['Complete','Failed']&&c.status=='True')";
/// The CEL expression for a finished run of a Pod.
const POD_COMPLETE: &str = "object.?status.?phase.orValue('') in ['Succeeded','Failed']";

impl Entry<'_> {
    fn kind_health(&self) -> Option<&'static KindHealth> {
        if self.has_status && self.kind.built_in().is_none() {
            return Some(health_rules::of_kind_with_status(&self.kind.group, &self.kind.kind));
        }
        health_rules::of(&self.kind.group, &self.kind.kind, self.kind.built_in().is_none())
    }

    fn has_health_rules(&self) -> bool {
        self.rules != ConditionRules::Inherited && self.kind_health().is_some()
    }

    /// Returns the entry; with `is_done`, its objects count as complete as soon as they are applied.
    fn value(self, options: &WorkOptions, defaults: bool, is_done: bool) -> Value<'static> {
        let mut fields = Vec::new();
        let kind_health = self.kind_health();
        // The hub evaluates the values, except for a rollout across clusters, which OCM decides by the conditions.
        let is_on_hub = options.rollout.is_none()
            && self.rules == ConditionRules::OfKind
            && health_rules::is_evaluated_on_hub(&self.kind.group, &self.kind.kind);
        let has_rules = self.rules != ConditionRules::Inherited && options.condition_rules && !is_on_hub;
        let rules = kind_health.filter(|_| has_rules);
        let mut conditions: Vec<Value<'static>> = Vec::new();
        if self.runs && options.condition_rules {
            let expression = match &*self.kind.kind {
                "Job" => JOB_COMPLETE,
                _ => POD_COMPLETE,
            };
            conditions.push(rule("Complete", expression, ""));
        }
        if is_done {
            conditions.push(rule(health_rules::PROGRESSING, "false", ""));
        }
        for each in rules.iter().flat_map(|kind_health| &kind_health.rules) {
            conditions.push(match (self.rules, self.hash) {
                (ConditionRules::HealthIgnored, _) => {
                    let expression = (each.condition == health_rules::HEALTHY).to_string();
                    rule(each.condition, &expression, "")
                }
                (_, Some(hash)) => {
                    let is_applied = content_hash::hash_matches_expression(hash);
                    let message = match each.message {
                        "" => String::new(),
                        message => format!("{is_applied}?({message}):'waiting for the agent to apply the change'"),
                    };
                    rule(
                        each.condition,
                        &format!("!({is_applied})||({})", each.expression),
                        &message,
                    )
                }
                (_, None) => rule(each.condition, each.expression, each.message),
            });
        }
        if let Some(suspended) = rules
            .and_then(|rules| rules.suspended)
            .filter(|_| self.rules == ConditionRules::OfKind)
        {
            conditions.push(rule(health_rules::SUSPENDED, suspended, ""));
        }
        if !conditions.is_empty() {
            fields.push(("conditionRules", Value::List(conditions)));
        }
        if let Some(kind_health) = kind_health.filter(|_| self.feedback != ReportedValues::Inherited) {
            let hash = (self.feedback == ReportedValues::WithHash).then_some((CONTENT_HASH, content_hash::PATH));
            // Without this value, the hub evaluates none.
            let is_reported = |(name, _): &(&str, &str)| options.condition_rules || *name != DELETED;
            let paths = kind_health.feedback.iter().copied().filter(is_reported).chain(hash);
            let paths =
                paths.map(|(name, path)| Value::map([("name", Value::text(name)), ("path", Value::text(path))]));
            let rule = Value::map([
                ("jsonPaths", Value::List(paths.collect())),
                ("type", Value::text("JSONPaths")),
            ]);
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
            strategy.push(("serverSideApply", Value::map(apply)));
        }
        fields.push(("updateStrategy", Value::map(strategy)));
        Value::map(fields)
    }
}

fn rule(condition: &str, expression: &str, message: &str) -> Value<'static> {
    let expressions = Value::List(vec![Value::text(expression)]);
    let mut fields = vec![("celExpressions", expressions), ("condition", Value::text(condition))];
    if !message.is_empty() {
        fields.push(("messageExpression", Value::text(message)));
    }
    fields.push(("type", Value::text("CEL")));
    Value::map(fields)
}

/// Returns the resource identifier of an object; orphaning rules have the same fields.
fn identifier(object: &Object, plurals: &Plurals) -> Value<'static> {
    let key = &object.key;
    let namespace = key.namespace.as_deref().unwrap_or_default();
    identify(&key.kind.group, &key.name, namespace, &plurals.of(&key.kind))
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
