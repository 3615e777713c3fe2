//! Configuration of the objects of a ManifestWork: update strategy, status feedback, condition rules and orphaning.
//!
//! One entry of `manifestConfigs` applies to all objects of a kind, by wildcards. For each setting, the first matching entry that
//! has it applies, so an object that differs has its own entry before the one of its kind. The way of feedback is the exception:
//! the agent takes it from the last matching entry.

use super::content_hash::{self, Embedded};
use super::feedback_watch::{ScrapeType, Share, Watched};
use super::health_rules::{self, CelRule, KindHealth};
use super::hooks::Role;
use super::ignored_fields::{self, FieldPath};
use super::object::Object;
use super::order;
use super::placement::RolloutKind;
use super::plurals::Plurals;
use super::policy::Executor;
use super::update_strategy::UpdateStrategy;
use manifest::kinds::GroupKind;
use manifest::value::{Map, Value};
use ocm::verdicts::{CONTENT_HASH, DELETED};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Options for all ManifestWorks of an Application, set by the Application or the platform.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub struct WorkOptions {
    /// The update strategy of objects that set none; `None` for the default of each object.
    pub strategy: Option<UpdateStrategy>,
    /// The fields of kinds that the agent leaves to other writers.
    pub ignored_fields: Vec<(GroupKind, FieldPath)>,
    /// True if Namespaces are deleted with the ManifestWork.
    pub delete_namespaces: bool,
    /// True if CRDs, and with them all their objects, are deleted with the ManifestWork.
    pub delete_crds: bool,
    /// True if health is evaluated: by the hub, or by condition rules, which OCM supports since v1.0.
    pub condition_rules: bool,
    /// The way in which agents notice that the health of an object has changed.
    pub feedback: ScrapeType,
    /// True if Argo CD applies all ManifestWorks server-side, not only large ones.
    pub server_side_apply: bool,
    /// The ServiceAccount of the managed cluster whose permissions limit what the agent applies.
    pub executor: Option<Executor>,
    /// The rollout across the clusters of a placement; `None` if the clusters are given by name.
    pub rollout: Option<RolloutKind>,
}

impl WorkOptions {
    /// Returns true if a rollout waits for a cluster to finish before it changes the next.
    pub(crate) fn is_progressive(&self) -> bool {
        self.rollout.is_some_and(|kind| kind != RolloutKind::All)
    }
}

/// Returns the fields of a ManifestWork's `spec` besides the workload.
///
/// With `defaults`, the fields include the defaults of OCM's CRD: without them, Argo CD shows a permanent difference for objects
/// that it applies server-side. Elsewhere they are omitted, because older versions of the CRD lack some of them.
pub(crate) fn fields(
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
            ("propagationPolicy", Value::from_text("SelectivelyOrphan")),
            (
                "selectivelyOrphans",
                Value::map([("orphaningRules", Value::List(orphans))]),
            ),
        ]);
        fields.push(("deleteOption", delete_option));
    }
    if let Some(Executor { namespace, name }) = &options.executor {
        let account = Value::map([
            ("name", Value::from_text(name)),
            ("namespace", Value::from_text(namespace)),
        ]);
        let subject = Value::map([
            ("serviceAccount", account),
            ("type", Value::from_text("ServiceAccount")),
        ]);
        fields.push(("executor", Value::map([("subject", subject)])));
    }
    let entries = entries(objects, plurals, watched, options);
    // OCM considers a cluster complete only if the ManifestWork reports that it is not progressing, so an entry reports that if
    // no object does.
    let reports_progress = entries.iter().any(ConfigEntry::has_health_rules);
    let progress_reporter =
        (options.rollout.is_some() && options.condition_rules && !reports_progress).then_some(entries.len());
    let configs = entries
        .into_iter()
        .zip(1..)
        .map(|(entry, count)| entry.into_value(options, defaults, Some(count) == progress_reporter))
        .collect();
    fields.push(("manifestConfigs", Value::List(configs)));
    Map::from_fields(fields)
}

/// Returns true if the object stays on the cluster when it leaves Git or the Application is deleted. Deleting a Namespace deletes
/// its contents, deleting a CRD deletes all objects of its kind, and both may have existed before.
fn is_kept(object: &Object, options: &WorkOptions) -> bool {
    let is_requested = object.annotations.as_ref().is_some_and(|annotations| annotations.keep);
    let is_crd = &*object.key.kind.group == "apiextensions.k8s.io";
    is_requested || is_crd && !options.delete_crds || order::is_namespace(object) && !options.delete_namespaces
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConditionRules {
    /// None: the entry of the kind has them.
    Inherited,
    /// Those of the kind.
    OfKind,
    /// Constant ones, because the object counts as healthy when it is applied.
    HealthIgnored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportedValues {
    /// None: another entry sets them.
    Inherited,
    /// Those of the kind.
    OfKind,
    /// Those of the kind, and the content hash.
    WithHash,
}

struct ConfigEntry<'a> {
    identifier: Value<'static>,
    kind: &'a GroupKind,
    strategy: UpdateStrategy,
    /// The feedback of the objects; of an object with an entry of its own, the entry of its kind sets it.
    feedback: ReportedValues,
    rules: ConditionRules,
    /// True if the objects run to completion: the agent does not update them, and the ManifestWork completes with them.
    runs: bool,
    /// The content hash with which the condition rules identify objects applied by this ManifestWork, if needed.
    hash: Option<&'a str>,
    /// The way in which the agent notices changes.
    mode: ScrapeType,
    /// True if the CRD of the kind has a status.
    has_status: bool,
    /// The fields that the agent leaves to other writers, as an entry of `ignoreFields`.
    ignored: Option<Value<'static>>,
}

/// Returns one entry for each object that differs from its kind, followed by one entry for each kind, and by one for each namespace
/// in which the agent watches a kind that it polls elsewhere.
fn entries<'a>(
    objects: &'a [Embedded],
    plurals: &Plurals,
    watched: &Watched,
    options: &WorkOptions,
) -> Vec<ConfigEntry<'a>> {
    let mut kinds: BTreeMap<&GroupKind, Vec<&Embedded>> = BTreeMap::new();
    // Nearly all objects of a kind are adjacent.
    for of_kind in objects.chunk_by(|one, other| one.kind() == other.kind()) {
        kinds.entry(of_kind[0].kind()).or_default().extend(of_kind);
    }
    let mut entries = Vec::new();
    let mut of_kinds = Vec::new();
    let mut of_namespaces = Vec::new();
    for (kind, objects) in kinds {
        let strategy = UpdateStrategy::of_kind(&objects[0].placed, options.strategy);
        let has_status = plurals.has_status(kind);
        let hash = objects.iter().find_map(|object| object.hash.as_deref());
        let rule_hash = hash.filter(|_| options.rollout.is_some());
        let kind_hash = rule_hash.filter(|_| strategy.applies());
        let has_health = objects
            .iter()
            .any(|object| content_hash::has_health(&object.placed, options));
        let ignored = options.ignored_fields.iter().filter(|(of, _)| of == kind);
        let ignored = ignored_fields::config(&ignored.map(|(_, field)| field).collect());
        let inheriting_entry = |identifier| ConfigEntry {
            identifier,
            kind,
            strategy,
            feedback: ReportedValues::Inherited,
            rules: ConditionRules::Inherited,
            runs: false,
            hash: None,
            mode: ScrapeType::Poll,
            has_status,
            ignored: ignored.clone(),
        };
        for Embedded { placed, hash } in &objects {
            let own_hash = rule_hash.and(hash.as_deref());
            let own_strategy = UpdateStrategy::choose(placed, options.strategy);
            let annotations = placed.object.annotations.as_ref();
            // A run counts as healthy when it has ended: its phase waits for that, as in Argo CD.
            let ignores_health = has_health
                && placed.role != Role::Run
                && annotations.is_some_and(|annotations| annotations.ignores_health);
            if own_strategy == strategy && !ignores_health && ignored_fields::own(&placed.object).is_empty() {
                continue;
            }
            let rules = if ignores_health {
                ConditionRules::HealthIgnored
            } else if own_hash != kind_hash {
                // An object that is not applied again, or without its annotations, does not carry the content hash of this ManifestWork.
                ConditionRules::OfKind
            } else {
                ConditionRules::Inherited
            };
            entries.extend(identifiers(&placed.object, plurals).map(|identifier| ConfigEntry {
                strategy: own_strategy,
                rules,
                runs: placed.role == Role::Run && rules != ConditionRules::Inherited,
                hash: own_hash,
                ignored: ignored_fields::config(&ignored_fields::find_ignored_fields(&placed.object, options)),
                ..inheriting_entry(identifier)
            }));
        }
        let names = plurals.list_plurals(kind);
        let plural = &names[0];
        let namespaces = objects
            .iter()
            .map(|object| object.placed.object.key.namespace.as_deref());
        let share = watched.find_watched_share(kind, namespaces.flatten());
        if let Share::Namespaces(chosen) = &share {
            of_namespaces.extend(chosen.iter().map(|namespace| ConfigEntry {
                mode: ScrapeType::Watch,
                ..inheriting_entry(identify(&kind.group, "*", namespace, plural))
            }));
        }
        // Under another plural than the likely one, the agent updates the objects in the same way, but the hub reports the wrong
        // guess: it only knows entries whose wildcard is one star.
        let other_plurals = names[1..].iter();
        of_kinds.extend(other_plurals.map(|name| inheriting_entry(identify(&kind.group, "*", "**", name))));
        of_kinds.push(ConfigEntry {
            feedback: match hash {
                _ if !has_health => ReportedValues::Inherited,
                Some(_) => ReportedValues::WithHash,
                None => ReportedValues::OfKind,
            },
            rules: ConditionRules::OfKind,
            runs: objects[0].placed.role == Role::Run,
            hash: kind_hash,
            mode: match share {
                Share::All => ScrapeType::Watch,
                _ => ScrapeType::Poll,
            },
            ..inheriting_entry(identify(&kind.group, "*", "*", plural))
        });
    }
    entries.extend(of_kinds);
    entries.extend(of_namespaces);
    entries
}

/// The CEL expression for a finished run of a Job, successful or not.
const JOB_COMPLETE: &str =
    "object.?status.?conditions.orValue([]).exists(c,c.type in ['Complete','Failed']&&c.status=='True')";
/// The CEL expression for a finished run of a Pod.
const POD_COMPLETE: &str = "object.?status.?phase.orValue('') in ['Succeeded','Failed']";

impl ConfigEntry<'_> {
    fn kind_health(&self) -> Option<&'static KindHealth> {
        if self.has_status && self.kind.built_in().is_none() {
            return Some(health_rules::of_kind_with_status(&self.kind.group, &self.kind.kind));
        }
        health_rules::of_kind(self.kind)
    }

    fn has_health_rules(&self) -> bool {
        self.rules != ConditionRules::Inherited && self.kind_health().is_some()
    }

    /// Returns true for a custom resource that runs. At first it has no status, and it has ended when it is healthy or broken.
    fn runs_with_status(&self) -> bool {
        self.runs && self.kind.built_in().is_none()
    }

    /// Returns the CEL expression for a finished run.
    fn completion(&self, rules: Option<&KindHealth>) -> Cow<'static, str> {
        if !self.runs_with_status() {
            return if &*self.kind.kind == "Pod" {
                POD_COMPLETE
            } else {
                JOB_COMPLETE
            }
            .into();
        }
        let mut rules = rules.iter().flat_map(|kind_health| &kind_health.rules);
        // Some custom resources report their end like a Job.
        match rules.find(|rule| rule.condition == health_rules::PROGRESSING) {
            Some(rule) => format!("{JOB_COMPLETE}||has(object.status)&&!({})", rule.expression).into(),
            None => JOB_COMPLETE.into(),
        }
    }

    /// Returns the condition rules: those of the kind, and what makes the ManifestWork complete.
    fn conditions(&self, rules: Option<&KindHealth>, has_conditions: bool, is_done: bool) -> Vec<Value<'static>> {
        let mut conditions: Vec<Value<'static>> = Vec::new();
        if self.runs && has_conditions {
            conditions.push(rule("Complete", &self.completion(rules), ""));
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
                    let otherwise = format!("!({is_applied})");
                    rule_after(
                        each,
                        (&is_applied, &otherwise),
                        "waiting for the agent to apply the change",
                    )
                }
                (_, None) if self.runs_with_status() && each.condition == health_rules::PROGRESSING => rule_after(
                    each,
                    ("has(object.status)", "!has(object.status)"),
                    "waiting for its status",
                ),
                (_, None) => rule(each.condition, each.expression, each.message),
            });
        }
        if let Some(suspended) = rules.and_then(|rules| rules.suspended)
            && self.rules == ConditionRules::OfKind
        {
            conditions.push(rule(health_rules::SUSPENDED, suspended, ""));
        }
        conditions
    }

    /// Returns the entry; with `is_done`, its objects count as complete as soon as they are applied.
    fn into_value(self, options: &WorkOptions, defaults: bool, is_done: bool) -> Value<'static> {
        let mut fields = Vec::new();
        let kind_health = self.kind_health();
        // The hub evaluates the values, except for a rollout across clusters, which OCM decides by the conditions.
        let is_on_hub = options.rollout.is_none()
            && self.rules == ConditionRules::OfKind
            && health_rules::is_evaluated_on_hub(&self.kind.group, &self.kind.kind);
        let has_rules = self.rules != ConditionRules::Inherited && options.condition_rules && !is_on_hub;
        let rules = kind_health.filter(|_| has_rules);
        let conditions = self.conditions(rules, options.condition_rules, is_done);
        if !conditions.is_empty() {
            fields.push(("conditionRules", Value::List(conditions)));
        }
        if let Some(kind_health) = kind_health.filter(|_| self.feedback != ReportedValues::Inherited) {
            let hash = (self.feedback == ReportedValues::WithHash).then_some((CONTENT_HASH, content_hash::PATH));
            // Without this value, the hub evaluates none.
            let is_reported = |(name, _): &(&str, &str)| options.condition_rules || *name != DELETED;
            let paths = kind_health.feedback.iter().copied().filter(is_reported).chain(hash);
            let paths = paths
                .map(|(name, path)| Value::map([("name", Value::from_text(name)), ("path", Value::from_text(path))]));
            let rule = Value::map([
                ("jsonPaths", Value::List(paths.collect())),
                ("type", Value::from_text("JSONPaths")),
            ]);
            fields.push(("feedbackRules", Value::List(vec![rule])));
        }
        if self.mode == ScrapeType::Watch {
            fields.push(("feedbackScrapeType", Value::from_text("Watch")));
        } else if defaults {
            fields.push(("feedbackScrapeType", Value::from_text("Poll")));
        }
        fields.push(("resourceIdentifier", self.identifier));
        let mut strategy = vec![("type", Value::from_text(self.strategy.name()))];
        if self.strategy == UpdateStrategy::ServerSideApply {
            let mut apply = vec![("force", Value::Bool(true))];
            if defaults {
                apply.push(("fieldManager", Value::from_text("work-agent")));
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

/// Returns a rule that counts once an expression is true, here with its negation; until then, its condition is True with the message
/// `waits`.
fn rule_after(each: &CelRule, (is_ready, is_not_ready): (&str, &str), waits: &str) -> Value<'static> {
    let message = match each.message {
        "" => String::new(),
        message => format!("{is_ready}?({message}):'{waits}'"),
    };
    rule(
        each.condition,
        &format!("{is_not_ready}||({})", each.expression),
        &message,
    )
}

fn rule(condition: &str, expression: &str, message: &str) -> Value<'static> {
    let expressions = Value::List(vec![Value::from_text(expression)]);
    let mut fields = vec![
        ("celExpressions", expressions),
        ("condition", Value::from_text(condition)),
    ];
    if !message.is_empty() {
        fields.push(("messageExpression", Value::from_text(message)));
    }
    fields.push(("type", Value::from_text("CEL")));
    Value::map(fields)
}

/// Returns the resource identifiers that an object may have; orphaning rules have the same fields.
fn identifiers<'a>(object: &'a Object, plurals: &'a Plurals) -> impl Iterator<Item = Value<'static>> + 'a {
    let key = &object.key;
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let names = plurals.list_plurals(&key.kind).into_iter();
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
    Value::map(fields.map(|(name, text)| (name, Value::from_text(text))))
}
