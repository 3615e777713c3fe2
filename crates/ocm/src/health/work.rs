//! Evaluates the health of a ManifestWork object by object, by the rules of the health check in deploy/argocd_cm.yaml.

use super::conditions::{ReportedCondition, ReportedConditions, get_text, list, map, number};
use super::scopes;
use super::{Clock, HealthStatus, ObjectStatus, WorkStatus, text_of};
use crate::verdicts::{self, CONTENT_HASH, FeedbackValues, KindVerdicts, Reported};
use crate::work as works;
use manifest::value::{Map, Value};
use std::collections::{HashMap, HashSet};

/// OCM's message for a rule without one. The message of Progressing then also says why the object is broken.
const NO_MESSAGE: &str = "Manifest is not Healthy";

/// The maximum number of reported manifests besides those of the spec. An agent reports each once; those of a complete work may be of
/// an earlier spec.
const UNEXPECTED_MAX: usize = 1000;

/// The agent's status of a work.
struct EvaluatedWork<'m, 'a> {
    spec: &'m Map<'a>,
    configs: EvaluatedConfigs<'m>,
    generation: Option<i64>,
    conditions: ReportedConditions<'m>,
    /// The hub's time of the agent's last report, if known.
    reported_at: Option<&'m str>,
    /// The message for an object that waits to be applied.
    not_applied: String,
    not_checked: String,
    clock: &'m Clock,
    /// The managed cluster, for messages.
    cluster: String,
    /// True if the work is complete, so that the agent does not process it again.
    is_complete: bool,
    /// True if the plugin has created the work, with an entry for each object.
    of_plugin: bool,
}

pub(super) fn evaluate(fields: &Map<'_>, clock: &Clock) -> WorkStatus {
    let nothing = Map::default();
    let part = |key| map(fields, key).unwrap_or(&nothing);
    let (metadata, spec, status) = (part("metadata"), part("spec"), part("status"));
    let [namespace, name] = ["namespace", "name"].map(|key| text_of(metadata, key));
    let cluster = cluster(namespace);
    let manifests = map(status, "resourceStatus").map_or((&[][..], None), |of| list(of, "manifests"));
    let mut work = EvaluatedWork {
        spec,
        configs: EvaluatedConfigs::read(spec),
        generation: number(metadata, "generation"),
        conditions: ReportedConditions::read_conditions(status),
        reported_at: last_report(metadata),
        not_applied: format!("waiting for the agent of {cluster} to apply it"),
        not_checked: format!("waiting for the agent of {cluster} to report its status"),
        clock,
        cluster,
        is_complete: false,
        of_plugin: map(metadata, "labels").is_some_and(|labels| labels.get(works::APPLICATION_LABEL).is_some()),
    };
    let fault = fault(fields, status, &work.conditions, manifests.1);
    let manifests = manifests.0;
    let whole = |health, message| {
        let (health, message) = match (&fault, health) {
            (Some(fault), HealthStatus::Waiting) => (HealthStatus::Unknown, unreadable(fault)),
            _ => (health, message),
        };
        let objects = manifests_of(spec).map(|object| without_status(object, health, &message));
        WorkStatus {
            objects: objects.collect(),
            ..WorkStatus::whole(works::KIND, namespace, name, health, message.clone())
        }
    };

    if metadata.get("deletionTimestamp").is_some() {
        let message = removal(&work.cluster, &work.conditions, manifests);
        return whole(HealthStatus::Progressing, message);
    }

    let applied = work.conditions.get("Applied");
    let is_behind = applied.is_some_and(|applied| applied.is_behind(work.generation));
    work.is_complete = is_behind && has_run(&work, manifests);
    let applied = applied.filter(|applied| applied.is("True") || applied.is("False"));
    let Some(applied) = applied.filter(|_| !is_behind || work.is_complete) else {
        let why = if work.conditions.has("Complete", "True") {
            ", which it does not do while the work is complete"
        } else {
            ""
        };
        return whole(HealthStatus::Waiting, format!("{}{why}", work.not_applied));
    };

    let expected = manifests_of(spec).count().saturating_add(UNEXPECTED_MAX);
    if manifests.len() > expected {
        let fault = format!("it has {} manifests", manifests.len());
        return whole(HealthStatus::Unknown, unreadable(&fault));
    }

    let mut without_rules = 0;
    let mut objects: Vec<ObjectStatus> = manifests
        .iter()
        .enumerate()
        .filter_map(|(at, manifest)| work.object(at, manifest, &mut without_rules))
        .collect();
    let seen: HashSet<_> = objects.iter().map(ObjectStatus::key).collect();
    let more: Vec<_> = manifests_of(spec)
        .map(|object| without_status(object, HealthStatus::Waiting, &work.not_applied))
        .filter(|object| !seen.contains(&object.key()))
        .collect();
    objects.extend(more);

    let fault = fault.map(|fault| unreadable(&fault));
    let (health, message) = work.overall_health(&objects, applied, fault, without_rules > 0);
    WorkStatus {
        objects,
        as_a_whole: false,
        ..WorkStatus::whole(works::KIND, namespace, name, health, message)
    }
}

fn last_report<'m>(metadata: &'m Map<'_>) -> Option<&'m str> {
    let writes = metadata.maps("managedFields");
    let of_status = writes.filter(|entry| text_of(entry, "subresource") == "status");
    of_status.filter_map(|entry| get_text(entry, "time")).max()
}

/// Returns the message of a deleted work, with the objects that the agent still finds.
fn removal(cluster: &str, conditions: &ReportedConditions<'_>, manifests: &[Value<'_>]) -> String {
    let deleting = conditions.get("Deleting").and_then(|deleting| deleting.message);
    let more = deleting.map_or(String::new(), |message| format!(": {message}"));
    format!(
        "the agent of {cluster} is removing its objects{more}{}",
        left(manifests)
    )
}

fn left(manifests: &[Value<'_>]) -> String {
    const MAX_LISTED: usize = 3;
    let is_left = |manifest: &Map<'_>| ReportedConditions::read_conditions(manifest).has("Available", "True");
    let names: Vec<String> = manifests
        .iter()
        .enumerate()
        .filter_map(|(at, manifest)| Some((at, manifest.as_map()?)))
        .filter(|(_, manifest)| is_left(manifest))
        .map(|(at, manifest)| named(at, manifest).short_name())
        .collect();
    match names.len().saturating_sub(MAX_LISTED) {
        _ if names.is_empty() => String::new(),
        0 => format!("; left: {}", names.join(", ")),
        more => format!("; left: {}, and {more} more", names[..MAX_LISTED].join(", ")),
    }
}

fn cluster(namespace: &str) -> String {
    match namespace {
        "" => "managed cluster without a name".to_owned(),
        name => format!("managed cluster {name}"),
    }
}

/// Returns the message of a healthy work.
pub(super) fn healthy_message(objects: usize, namespace: &str) -> String {
    format!("{}healthy on {}", object_count(objects), cluster(namespace))
}

fn object_count(objects: usize) -> String {
    match objects {
        0 => String::new(),
        1 => "1 object is ".to_owned(),
        more => format!("{more} objects are "),
    }
}

fn unreadable(fault: &str) -> String {
    format!("its status is malformed: {fault}")
}

/// Returns a description of the part of the status that no agent writes.
fn fault(
    fields: &Map<'_>,
    status: &Map<'_>,
    conditions: &ReportedConditions<'_>,
    manifests: Option<String>,
) -> Option<String> {
    let not_a_mapping = |owner: &Map<'_>, key: &str| match owner.get(key) {
        None | Some(Value::Null | Value::Map(_)) => None,
        Some(other) => Some(format!("{key} is {}", other.type_name())),
    };
    not_a_mapping(fields, "status")
        .or_else(|| conditions.fault.as_ref().map(|fault| format!("status.{fault}")))
        .or_else(|| not_a_mapping(status, "resourceStatus").map(|fault| format!("status.{fault}")))
        .or_else(|| manifests.map(|fault| format!("status.resourceStatus.{fault}")))
}

fn manifests_of<'m, 'a>(spec: &'m Map<'a>) -> impl Iterator<Item = &'m Value<'a>> {
    let workload = map(spec, works::WORKLOAD);
    workload
        .map_or(&[][..], |workload| list(workload, "manifests").0)
        .iter()
}

/// Returns the state of an object of the spec without a valid status.
fn without_status(object: &Value<'_>, health: HealthStatus, message: &str) -> ObjectStatus {
    let key = works::key(object);
    ObjectStatus {
        group: key.kind.group.to_string(),
        kind: key.kind.kind.to_string(),
        namespace: key.namespace.as_deref().unwrap_or_default().to_owned(),
        name: key.name.to_string(),
        placeholder: "an object without a name".to_owned(),
        applied: None,
        available: None,
        health,
        message: message.to_owned(),
    }
}

impl ObjectStatus {
    fn key(&self) -> [String; 4] {
        [&self.group, &self.kind, &self.namespace, &self.name].map(String::clone)
    }
}

/// Returns the identity of an object from its status.
fn named(at: usize, manifest: &Map<'_>) -> ObjectStatus {
    let nothing = Map::default();
    let meta = map(manifest, "resourceMeta").unwrap_or(&nothing);
    let text = |key| text_of(meta, key).to_owned();
    let ordinal = number(meta, "ordinal");
    ObjectStatus {
        group: text("group"),
        kind: get_text(meta, "kind")
            .or_else(|| get_text(meta, "resource"))
            .unwrap_or_default()
            .to_owned(),
        namespace: text("namespace"),
        name: text("name"),
        placeholder: format!("manifests[{}]", ordinal.map_or(at.to_string(), |at| at.to_string())),
        applied: None,
        available: None,
        health: HealthStatus::Waiting,
        message: String::new(),
    }
}

/// Returns true if all objects of a complete work have run. The agent neither applies a complete work again nor reports that it
/// has seen a change: objects that have run stay complete, and only one that has not is missing.
fn has_run(work: &EvaluatedWork<'_, '_>, manifests: &[Value<'_>]) -> bool {
    let complete = work.conditions.get("Complete");
    if !complete.is_some_and(|complete| complete.is("True") && !complete.is_behind(work.generation)) {
        return false;
    }
    let mut done = HashMap::new();
    for (at, manifest) in manifests.iter().enumerate() {
        if let Some(manifest) = manifest.as_map() {
            let is_done = ReportedConditions::read_conditions(manifest).has("Complete", "True");
            done.insert(named(at, manifest).short_name(), is_done);
        }
    }
    manifests_of(work.spec).all(|object| {
        let name = without_status(object, HealthStatus::Waiting, "").short_name();
        done.get(&name).copied().unwrap_or(false)
    })
}

impl EvaluatedWork<'_, '_> {
    /// Returns the health of an applied work with these objects, and the reason if it is not that of an object. `fault` is the message
    /// about a status that cannot be read.
    fn overall_health(
        &self,
        objects: &[ObjectStatus],
        applied: ReportedCondition<'_>,
        fault: Option<String>,
        lacks_rules: bool,
    ) -> (HealthStatus, String) {
        let cluster = &self.cluster;
        let health = objects.iter().map(|object| object.health).min();
        let health = health.unwrap_or(HealthStatus::Healthy);
        if applied.is("False") && matches!(health, HealthStatus::Suspended | HealthStatus::Healthy) {
            let message = applied.message_or(&format!("the agent of {cluster} cannot apply it"));
            return (self.health_while_refused(applied), message);
        }
        match fault {
            _ if health != HealthStatus::Healthy => (health, String::new()),
            Some(fault) => (HealthStatus::Unknown, fault),
            None if lacks_rules => {
                let count = object_count(objects.len());
                let message = format!(
                    "{count}applied on {cluster}, whose agent does not report health, which OCM 1.0 and newer does"
                );
                (health, message)
            }
            None => (health, String::new()),
        }
    }

    /// Returns true if a condition may be transient. The cluster's clock may be hours ahead, so it is at least as old as the report.
    fn is_in_grace(&self, condition: ReportedCondition<'_>) -> bool {
        let since = condition.since;
        self.clock
            .is_in_grace(self.reported_at.map_or(since, |report| since.min(report)))
    }

    /// Returns the health of what the agent cannot apply: it may be able to soon.
    fn health_while_refused(&self, applied: ReportedCondition<'_>) -> HealthStatus {
        if self.is_in_grace(applied) {
            HealthStatus::Progressing
        } else {
            HealthStatus::Degraded
        }
    }

    /// Returns the state of an object, or `None` for the status of an earlier generation.
    fn object(&self, at: usize, manifest: &Value<'_>, without_rules: &mut usize) -> Option<ObjectStatus> {
        let nothing = Map::default();
        let fields = manifest.as_map().unwrap_or(&nothing);
        let conditions = ReportedConditions::read_conditions(fields);
        let mut object = named(at, fields);
        let known = |kind| match conditions.get(kind)?.status {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        };
        (object.applied, object.available) = (known("Applied"), known("Available"));
        let (health, message) = self.health(fields, &conditions, without_rules)?;
        let fault = match manifest {
            Value::Map(_) => conditions.fault,
            other => Some(format!("it is {}", other.type_name())),
        };
        (object.health, object.message) = match fault {
            Some(fault) if matches!(health, HealthStatus::Waiting | HealthStatus::Healthy) => {
                (HealthStatus::Unknown, unreadable(&fault))
            }
            _ => (health, message),
        };
        Some(object)
    }

    fn health(
        &self,
        manifest: &Map<'_>,
        conditions: &ReportedConditions<'_>,
        without_rules: &mut usize,
    ) -> Option<(HealthStatus, String)> {
        let (available, healthy) = (conditions.get("Available"), conditions.get("Healthy"));
        let waiting = || Some((HealthStatus::Waiting, self.not_checked.clone()));
        let degraded = |message: String| Some((HealthStatus::Degraded, message));
        let healthy_object = || Some((HealthStatus::Healthy, String::new()));
        let nothing = Map::default();
        let meta = map(manifest, "resourceMeta").unwrap_or(&nothing);
        let Some(applied) = conditions.get("Applied") else {
            return Some((HealthStatus::Waiting, self.not_applied.clone()));
        };
        if applied.generation.is_some() && applied.is_behind(self.generation) && !self.is_complete {
            return None;
        }
        if applied.is("False") {
            let message = applied.message_or("the agent cannot apply it");
            let message = scopes::with_remedy(message, text_of(meta, "group"), text_of(meta, "kind"));
            return Some((self.health_while_refused(applied), message));
        }
        let broken = healthy.filter(|healthy| healthy.evaluated_to("False"));
        let values = values(manifest);
        let configured = self.configured(manifest);
        // The agent ignores a complete object, which may even be deleted: its other conditions are outdated.
        if conditions.has("Complete", "True") {
            let verdict = configured.verdicts.map(|verdicts| verdicts.evaluate(&values));
            return match (verdict, broken) {
                (Some((HealthStatus::Degraded, message)), _) => degraded(message),
                (None, Some(broken)) => degraded(broken.message_or("it is broken")),
                _ => healthy_object(),
            };
        }
        match available {
            // Found missing, then applied, and not checked since.
            Some(available)
                if available.is("False") && applied.since >= available.since && self.is_in_grace(applied) =>
            {
                return waiting();
            }
            Some(available) if available.is("False") => {
                return Some((HealthStatus::Missing, available.message_or("it is not on the cluster")));
            }
            Some(available) if !available.is("True") => {
                return Some((HealthStatus::Unknown, available.message_or(&self.not_checked)));
            }
            _ => {}
        }
        if self.of_plugin
            && !configured.is_known
            && let (Some(kind), Some(resource)) = (get_text(meta, "kind"), get_text(meta, "resource"))
        {
            return degraded(scopes::wrong_resource_name(text_of(meta, "group"), kind, resource));
        }
        Some(self.evaluated(manifest, conditions, &configured, &values, without_rules))
    }

    /// Returns the health of an applied object that is on the cluster: by its values, or by the conditions of rules.
    fn evaluated(
        &self,
        manifest: &Map<'_>,
        conditions: &ReportedConditions<'_>,
        configured: &Configured<'_>,
        values: &FeedbackValues<'_>,
        without_rules: &mut usize,
    ) -> (HealthStatus, String) {
        let (healthy, progressing) = (conditions.get("Healthy"), conditions.get("Progressing"));
        let waiting = || (HealthStatus::Waiting, self.not_checked.clone());
        let healthy_object = || (HealthStatus::Healthy, String::new());
        let rules = configured.rules;
        let has_rule = |kind: &str| rules.contains(&kind);
        let feedback = conditions.get("StatusFeedbackSynced");
        // Values have no generation, nor have the results of rules of OCM 1.0. The agent writes both together with the work's Available.
        let work_available = self.conditions.get("Available");
        let is_current = work_available.is_some_and(|work_available| !work_available.is_behind(self.generation));
        let is_checked = is_current && conditions.get("Available").is_some() && feedback.is_some();
        let is_outdated = configured.reports_hash
            && is_checked
            && self
                .hash(manifest)
                .is_some_and(|hash| hash != values.get_text(CONTENT_HASH));
        if let Some(verdicts) = configured.verdicts {
            return match feedback.filter(|_| is_checked) {
                None => waiting(),
                // The agent does not know the rules.
                Some(feedback) if feedback.is("True") && feedback.reason == "NoStatusFeedbackSynced" => {
                    *without_rules = without_rules.saturating_add(1);
                    healthy_object()
                }
                Some(feedback) if feedback.is("True") && is_outdated => waits_for_change(),
                Some(feedback) if feedback.is("True") => verdicts.evaluate(values),
                Some(feedback) => unknown(feedback, "the agent cannot report it"),
            };
        }
        if healthy.is_none() && progressing.is_none() && (has_rule("Healthy") || has_rule("Progressing")) {
            if !is_checked {
                return waiting();
            }
            *without_rules = without_rules.saturating_add(1);
            return healthy_object();
        }
        if has_rule("Healthy") && healthy.is_none() || has_rule("Progressing") && progressing.is_none() {
            return waiting();
        }
        let conditions_of_rules = || healthy.into_iter().chain(progressing);
        let is_stale = |result: ReportedCondition<'_>| match result.generation {
            Some(_) => result.is_behind(self.generation),
            None => !is_current,
        };
        if conditions_of_rules().any(is_stale) {
            return waiting();
        }
        if is_outdated {
            return waits_for_change();
        }
        if let Some(broken) = healthy.filter(|healthy| healthy.evaluated_to("False")) {
            let reason = progressing.filter(|_| broken.message == Some(NO_MESSAGE));
            return (
                HealthStatus::Degraded,
                reason.unwrap_or(broken).message_or("it is broken"),
            );
        }
        if let Some(progressing) = progressing.filter(|progressing| progressing.evaluated_to("True")) {
            let is_waiting = |suspended: ReportedCondition<'_>| suspended.evaluated_to("True");
            let health = if values.is_true("Suspended") || conditions.get("Suspended").is_some_and(is_waiting) {
                HealthStatus::Suspended
            } else {
                HealthStatus::Progressing
            };
            return (health, progressing.message_or("it is not ready yet"));
        }
        match conditions_of_rules().find(|each| !each.evaluated_to("True") && !each.evaluated_to("False")) {
            Some(silent) => unknown(silent, "the rule gives no answer"),
            None => healthy_object(),
        }
    }

    /// Returns the configuration of an object in the spec; as for the agent, the first entry with rules and the first with feedback
    /// count. Wildcards inside a name are not supported here, but conditions set by such rules are used once they exist.
    fn configured(&self, manifest: &Map<'_>) -> Configured<'_> {
        let nothing = Map::default();
        let meta = map(manifest, "resourceMeta").unwrap_or(&nothing);
        let (mut rules, mut feedback, mut is_known) = (None, None, false);
        for config in self.configs.find(meta) {
            is_known = true;
            rules = rules.or((!config.rules.is_empty()).then_some(config));
            feedback = feedback.or((!config.feedback.is_empty()).then_some(config));
        }
        // Rules of the object's entry, before that of its kind, take precedence over the values.
        let is_overridden = rules
            .zip(feedback)
            .is_some_and(|(rules, feedback)| !std::ptr::eq(rules, feedback));
        let names = feedback.map_or(&[][..], |config| &config.feedback);
        let verdicts = verdicts::find(text_of(meta, "group"), text_of(meta, "kind"));
        Configured {
            is_known,
            rules: rules.map_or(&[][..], |config| &config.rules),
            verdicts: verdicts
                .filter(|verdicts| !is_overridden && verdicts.used_values().all(|name| names.contains(&name))),
            reports_hash: names.contains(&CONTENT_HASH),
        }
    }

    /// Returns the content hash of an object in the spec.
    fn hash(&self, manifest: &Map<'_>) -> Option<&str> {
        let ordinal = map(manifest, "resourceMeta").and_then(|meta| number(meta, "ordinal"));
        let manifests = list(map(self.spec, works::WORKLOAD)?, "manifests").0;
        let object = manifests.get(usize::try_from(ordinal?).ok()?)?.as_map()?;
        get_text(map(map(object, "metadata")?, "annotations")?, works::CONTENT_HASH)
    }
}

fn waits_for_change() -> (HealthStatus, String) {
    let message = "waiting for the agent to apply the change".to_owned();
    (HealthStatus::Progressing, message)
}

/// Returns the health of an object on which the agent could not report, with its message.
fn unknown(condition: ReportedCondition<'_>, otherwise: &str) -> (HealthStatus, String) {
    let why = condition.message_or(otherwise);
    (HealthStatus::Unknown, format!("its health is not known: {why}"))
}

/// The configuration of an object in the spec.
struct Configured<'m> {
    /// True if an entry applies to it.
    is_known: bool,
    /// The condition types that rules set.
    rules: &'m [&'m str],
    /// The verdicts on its kind, if the agent reports all values that they need.
    verdicts: Option<&'static KindVerdicts>,
    /// True if the agent reports the content hash.
    reports_hash: bool,
}

/// The fields that name the objects of an entry of `manifestConfigs`, and an object in the agent's status.
const IDENTIFIER: [&str; 4] = ["group", "resource", "namespace", "name"];

/// The entries of `manifestConfigs`, and their positions by the identifiers of their objects: an agent may report thousands of objects.
struct EvaluatedConfigs<'m> {
    all: Vec<EvaluatedConfig<'m>>,
    positions: HashMap<[&'m str; 4], Vec<usize>>,
}

impl<'m> EvaluatedConfigs<'m> {
    fn read(spec: &'m Map<'_>) -> Self {
        let (mut all, mut positions) = (Vec::new(), HashMap::<_, Vec<usize>>::new());
        for entry in spec.maps("manifestConfigs") {
            if let Some(identifier) = map(entry, "resourceIdentifier") {
                let identifier = IDENTIFIER.map(|key| text_of(identifier, key));
                positions.entry(identifier).or_default().push(all.len());
                all.push(EvaluatedConfig::from_entry(entry));
            }
        }
        Self { all, positions }
    }

    /// Returns the entries that apply to an object, in their order.
    fn find(&self, meta: &Map<'_>) -> impl Iterator<Item = &EvaluatedConfig<'m>> {
        let identifiers = works::config_identifiers(IDENTIFIER.map(|key| text_of(meta, key)));
        let lists = identifiers
            .iter()
            .filter_map(|identifier| self.positions.get(identifier));
        let mut positions: Vec<usize> = lists.flatten().copied().collect();
        positions.sort_unstable();
        positions.into_iter().filter_map(|position| self.all.get(position))
    }
}

/// An entry of `manifestConfigs`.
struct EvaluatedConfig<'m> {
    /// The condition types that its rules set.
    rules: Vec<&'m str>,
    /// The names of the values that the agent reports.
    feedback: Vec<&'m str>,
}

impl<'m> EvaluatedConfig<'m> {
    fn from_entry(config: &'m Map<'_>) -> Self {
        Self {
            rules: config
                .maps("conditionRules")
                .filter_map(|rule| get_text(rule, "condition"))
                .collect(),
            feedback: config
                .maps("feedbackRules")
                .flat_map(|rule| rule.maps("jsonPaths"))
                .filter_map(|path| get_text(path, "name"))
                .collect(),
        }
    }
}

/// Returns the values that the agent reports on an object.
fn values<'m>(manifest: &'m Map<'_>) -> FeedbackValues<'m> {
    let reported = |value: &'m Map<'_>| {
        let field = map(value, "fieldValue")?;
        let number = number(field, "integer").map(Reported::Number);
        // With its feature gate RawFeedbackJsonString, the agent reports several results of a path as a list in JSON.
        let text = || get_text(field, "string").or_else(|| get_text(field, "jsonRaw"));
        let text_value = || text().map(Reported::Text);
        let flag = || match field.get("boolean") {
            Some(Value::Bool(flag)) => Some(Reported::Flag(*flag)),
            _ => None,
        };
        Some((get_text(value, "name")?, number.or_else(text_value).or_else(flag)?))
    };
    let feedback = map(manifest, "statusFeedback");
    feedback
        .into_iter()
        .flat_map(|feedback| feedback.maps("values"))
        .filter_map(reported)
        .collect()
}
