//! Evaluates the health of a ManifestWork object by object, by the rules of the health check in deploy/argocd_cm.yaml.

use super::conditions::{Conditions, list, map, maps, number, text};
use super::scopes;
use super::{Clock, HealthStatus, ObjectStatus, WorkStatus, text_of};
use crate::work as works;
use manifest::value::{Map, Value};
use std::collections::{HashMap, HashSet};

const NOT_REPORTED: &str = "the agent has not reported on it";

/// The agent's status of a work.
struct Work<'m, 'a> {
    spec: &'m Map<'a>,
    generation: Option<i64>,
    conditions: Conditions<'m>,
    /// The message for an object that waits to be applied.
    not_applied: String,
    not_checked: String,
    clock: &'m Clock,
    /// True if the work is complete, so that the agent does not process it again.
    is_complete: bool,
    /// True if the plugin has created the work, with an entry for each object.
    of_plugin: bool,
}

pub(super) fn evaluate(fields: &Map<'_>, clock: &Clock) -> WorkStatus {
    let nothing = Map::default();
    let part = |key| map(fields, key).unwrap_or(&nothing);
    let (metadata, spec, status) = (part("metadata"), part("spec"), part("status"));
    let cluster = cluster(text_of(metadata, "namespace"));
    let manifests = map(status, "resourceStatus").map_or((&[][..], None), |of| list(of, "manifests"));
    let mut work = Work {
        spec,
        generation: number(metadata, "generation"),
        conditions: Conditions::of(status),
        not_applied: format!("waiting for the agent of {cluster} to apply it"),
        not_checked: format!("waiting for the agent of {cluster} to report its status"),
        clock,
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
        WorkStatus {
            kind: works::KIND,
            namespace: text_of(metadata, "namespace").to_owned(),
            name: text_of(metadata, "name").to_owned(),
            objects: manifests_of(spec)
                .map(|object| without_status(object, health, &message))
                .collect(),
            health,
            message,
            as_a_whole: true,
            overdue: None,
        }
    };

    if metadata.get("deletionTimestamp").is_some() {
        let deleting = work.conditions.get("Deleting").and_then(|deleting| deleting.message);
        let more = deleting.map_or(String::new(), |message| format!(": {message}"));
        let message = format!("the agent of {cluster} is removing its objects{more}");
        return whole(HealthStatus::Progressing, message);
    }

    let applied = work.conditions.get("Applied");
    let is_behind = applied.is_some_and(|applied| applied.is_behind(work.generation));
    work.is_complete = is_behind && has_run(&work, manifests);
    let applied = applied.filter(|applied| applied.is("True") || applied.is("False"));
    let Some(applied) = applied.filter(|_| !is_behind || work.is_complete) else {
        let complete = work
            .conditions
            .get("Complete")
            .is_some_and(|complete| complete.is("True"));
        let why = if complete {
            ", which it does not do while the work is complete"
        } else {
            ""
        };
        return whole(HealthStatus::Waiting, format!("{}{why}", work.not_applied));
    };

    let mut without_rules = 0;
    let mut objects: Vec<ObjectStatus> = manifests
        .iter()
        .enumerate()
        .filter_map(|(at, manifest)| work.object(at, manifest, &mut without_rules))
        .collect();
    let seen: HashSet<_> = objects.iter().map(ObjectStatus::key).collect();
    let more: Vec<_> = manifests_of(spec)
        .map(|object| without_status(object, HealthStatus::Unknown, NOT_REPORTED))
        .filter(|object| !seen.contains(&object.key()))
        .collect();
    objects.extend(more);

    let mut health = objects
        .iter()
        .map(|it| it.health)
        .min()
        .unwrap_or(HealthStatus::Healthy);
    let mut message = String::new();
    if applied.is("False") && matches!(health, HealthStatus::Suspended | HealthStatus::Healthy) {
        let is_in_grace = clock.is_in_grace(applied.since);
        health = if is_in_grace {
            HealthStatus::Progressing
        } else {
            HealthStatus::Degraded
        };
        message = applied.message_or(&format!("the agent of {cluster} cannot apply it"));
    } else if let Some(fault) = fault.filter(|_| health == HealthStatus::Healthy) {
        (health, message) = (HealthStatus::Unknown, unreadable(&fault));
    } else if health == HealthStatus::Healthy && without_rules > 0 {
        let count = object_count(objects.len());
        message =
            format!("{count}applied on {cluster}, whose agent does not report health, which OCM 1.0 and newer does");
    }
    WorkStatus {
        kind: works::KIND,
        namespace: text_of(metadata, "namespace").to_owned(),
        name: text_of(metadata, "name").to_owned(),
        health,
        message,
        objects,
        as_a_whole: false,
        overdue: None,
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
fn fault(fields: &Map<'_>, status: &Map<'_>, conditions: &Conditions<'_>, manifests: Option<String>) -> Option<String> {
    let not_a_mapping = |owner: &Map<'_>, key: &str| match owner.get(key) {
        None | Some(Value::Null | Value::Map(_)) => None,
        Some(other) => Some(format!("{key} is {}", other.type_name())),
    };
    not_a_mapping(fields, "status")
        .or_else(|| conditions.fault.as_ref().map(|fault| format!("status.{fault}")))
        .or_else(|| not_a_mapping(status, "resourceStatus").map(|fault| format!("status.{fault}")))
        .or_else(|| manifests.map(|fault| format!("status.resourceStatus.{fault}")))
}

/// Returns the objects in the spec.
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
    fn key(&self) -> (String, String, String, String) {
        let own = |text: &str| text.to_owned();
        (own(&self.group), own(&self.kind), own(&self.namespace), own(&self.name))
    }
}

/// Returns the identity of an object from its status.
fn named(at: usize, manifest: &Map<'_>) -> ObjectStatus {
    let nothing = Map::default();
    let meta = map(manifest, "resourceMeta").unwrap_or(&nothing);
    let own = |key| text_of(meta, key).to_owned();
    let ordinal = number(meta, "ordinal");
    ObjectStatus {
        group: own("group"),
        kind: text(meta, "kind")
            .or_else(|| text(meta, "resource"))
            .unwrap_or_default()
            .to_owned(),
        namespace: own("namespace"),
        name: own("name"),
        placeholder: format!("manifests[{}]", ordinal.map_or(at.to_string(), |at| at.to_string())),
        applied: None,
        available: None,
        health: HealthStatus::Waiting,
        message: String::new(),
    }
}

/// Returns true if all objects of a complete work have run. The agent neither applies a complete work again nor reports that it
/// has seen a change: objects that have run stay complete, and only one that has not is missing.
fn has_run(work: &Work<'_, '_>, manifests: &[Value<'_>]) -> bool {
    let complete = work.conditions.get("Complete");
    if !complete.is_some_and(|complete| complete.is("True") && !complete.is_behind(work.generation)) {
        return false;
    }
    let mut done = HashMap::new();
    for (at, manifest) in manifests.iter().enumerate() {
        if let Some(manifest) = manifest.as_map() {
            let complete = Conditions::of(manifest).get("Complete");
            let is_done = complete.is_some_and(|complete| complete.is("True"));
            done.insert(named(at, manifest).short_name(), is_done);
        }
    }
    manifests_of(work.spec).all(|object| {
        let name = without_status(object, HealthStatus::Waiting, "").short_name();
        done.get(&name).copied().unwrap_or(false)
    })
}

impl<'m, 'a> Work<'m, 'a> {
    /// Returns the state of an object, or `None` for the status of an earlier generation.
    fn object(&self, at: usize, manifest: &Value<'_>, without_rules: &mut usize) -> Option<ObjectStatus> {
        let nothing = Map::default();
        let fields = manifest.as_map().unwrap_or(&nothing);
        let conditions = Conditions::of(fields);
        let mut object = named(at, fields);
        let known = |kind| {
            let condition = conditions.get(kind)?;
            match condition.status {
                "True" => Some(true),
                "False" => Some(false),
                _ => None,
            }
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
        conditions: &Conditions<'_>,
        without_rules: &mut usize,
    ) -> Option<(HealthStatus, String)> {
        let (available, healthy, progressing) = (
            conditions.get("Available"),
            conditions.get("Healthy"),
            conditions.get("Progressing"),
        );
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
        let is_in_grace = || self.clock.is_in_grace(applied.since);
        if applied.is("False") {
            let health = if is_in_grace() {
                HealthStatus::Progressing
            } else {
                HealthStatus::Degraded
            };
            let message = applied.message_or("the agent cannot apply it");
            return Some((
                health,
                scopes::with_remedy(message, text_of(meta, "group"), text_of(meta, "kind")),
            ));
        }
        let broken = healthy.filter(|healthy| healthy.evaluated_to("False"));
        // The agent ignores a complete object, which may even be deleted: its other conditions are outdated.
        if conditions.get("Complete").is_some_and(|complete| complete.is("True")) {
            return match broken {
                Some(broken) => degraded(broken.message_or("it is broken")),
                None => healthy_object(),
            };
        }
        match available {
            // Found missing, then applied, and not checked since.
            Some(available) if available.is("False") && applied.since >= available.since && is_in_grace() => {
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

        let configs = self.configs_of(meta);
        if self.of_plugin
            && configs.is_empty()
            && let (Some(kind), Some(resource)) = (text(meta, "kind"), text(meta, "resource"))
        {
            return degraded(scopes::wrong_resource_name(text_of(meta, "group"), kind, resource));
        }
        let rules = rules_of(&configs);
        let has_rule = |kind| rules.contains(kind);
        if healthy.is_none() && progressing.is_none() && (has_rule("Healthy") || has_rule("Progressing")) {
            let work_available = self.conditions.get("Available");
            let is_checked = work_available.is_some_and(|work_available| !work_available.is_behind(self.generation));
            if available.is_none() || !is_checked || conditions.get("StatusFeedbackSynced").is_none() {
                return waiting();
            }
            *without_rules = without_rules.saturating_add(1);
            return healthy_object();
        }
        if has_rule("Healthy") && healthy.is_none() || has_rule("Progressing") && progressing.is_none() {
            return waiting();
        }
        let conditions_of_rules = || healthy.into_iter().chain(progressing);
        if conditions_of_rules().any(|each| each.is_behind(self.generation)) {
            return waiting();
        }
        if let Some(broken) = broken {
            return degraded(broken.message_or("it is broken"));
        }
        if let Some(progressing) = progressing.filter(|progressing| progressing.evaluated_to("True")) {
            let health = if is_suspended(manifest) {
                HealthStatus::Suspended
            } else {
                HealthStatus::Progressing
            };
            return Some((health, progressing.message_or("it is not ready yet")));
        }
        match conditions_of_rules().find(|each| !each.evaluated_to("True") && !each.evaluated_to("False")) {
            Some(silent) => {
                let why = silent.message_or("the rule gives no answer");
                Some((HealthStatus::Unknown, format!("its health is not known: {why}")))
            }
            None => healthy_object(),
        }
    }

    /// Returns the entries that apply to an object. Wildcards inside a name are not supported here.
    fn configs_of(&self, meta: &Map<'_>) -> Vec<&'m Map<'a>> {
        let applies = |config: &&Map<'_>| {
            map(config, "resourceIdentifier").is_some_and(|which| {
                let same = |key| text_of(which, key) == text_of(meta, key);
                let any = |key| text_of(which, key) == "*" || same(key);
                same("resource") && same("group") && any("namespace") && any("name")
            })
        };
        maps(self.spec, "manifestConfigs").filter(applies).collect()
    }
}

/// Returns the condition types that the rules of an object's entries set; the first entry with rules counts. Conditions set by other
/// rules are used once they exist.
fn rules_of<'m>(configs: &[&'m Map<'_>]) -> HashSet<&'m str> {
    let rules = configs.iter().map(|config| list(config, "conditionRules").0);
    let rules = rules.into_iter().find(|rules| !rules.is_empty()).unwrap_or_default();
    let rules = rules.iter().filter_map(Value::as_map);
    rules.filter_map(|rule| text(rule, "condition")).collect()
}

/// Returns true if the object reports that it waits for a user.
fn is_suspended(manifest: &Map<'_>) -> bool {
    let Some(feedback) = map(manifest, "statusFeedback") else {
        return false;
    };
    let value = maps(feedback, "values").find(|value| text_of(value, "name") == "Suspended");
    let value = value.and_then(|value| map(value, "fieldValue")?.get("boolean"));
    matches!(value, Some(Value::Bool(true)))
}
