//! Computes the health of an Application on its clusters for `status` and the controller, by ManifestWork and by object.
//!
//! ```text
//! hub ─▶ works ─▶ work::evaluate, set::evaluate ─▶ Report ─▶ table, JSON or YAML
//! ```
//!
//! The results equal those of the health checks in argocd_cm.yaml, so that `status` never contradicts Argo CD. Some states of
//! Argo CD are divided further, such as `Progressing`. All functions are pure functions of the hub's objects and of the time.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod conditions;
mod overdue;
#[cfg(test)]
mod properties;
mod scopes;
mod set;
mod work;

use crate::work as works;
use conditions::get_text;
use jiff::{SignedDuration, Timestamp};
use manifest::text::without_middle;
use manifest::value::{Map, Value};
use manifest::yaml;
pub use overdue::OVERDUE;
use primitives::timestamp::format_time;
pub use scopes::{resource_name_setting, with_remedy};
use serde::Serialize;
pub use set::NO_CLUSTER;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

/// The health of an object, work or Application, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum HealthStatus {
    /// Broken, or cannot be applied.
    Degraded,
    /// Applied, but not on the cluster.
    Missing,
    /// The status is invalid or cannot be read.
    Unknown,
    /// The agent has not processed the current generation.
    Waiting,
    /// Not yet in the desired state.
    Progressing,
    /// Waiting for a user.
    Suspended,
    /// In the desired state.
    Healthy,
}

impl HealthStatus {
    /// All health values.
    pub const ALL: [Self; 7] = [
        Self::Degraded,
        Self::Missing,
        Self::Unknown,
        Self::Waiting,
        Self::Progressing,
        Self::Suspended,
        Self::Healthy,
    ];

    /// Returns the name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Degraded => "Degraded",
            Self::Missing => "Missing",
            Self::Unknown => "Unknown",
            Self::Waiting => "Waiting",
            Self::Progressing => "Progressing",
            Self::Suspended => "Suspended",
            Self::Healthy => "Healthy",
        }
    }

    /// Returns the name in the health checks of argocd_cm.yaml.
    pub fn in_argo_cd(self) -> &'static str {
        match self {
            Self::Degraded | Self::Missing => "Degraded",
            Self::Unknown | Self::Waiting | Self::Progressing => "Progressing",
            Self::Suspended => "Suspended",
            Self::Healthy => "Healthy",
        }
    }
}

impl fmt::Display for HealthStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The health of an object of a work, as `status -o json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectStatus {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace on the cluster; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The position in the work, for an object without a name.
    #[serde(skip)]
    pub placeholder: String,
    /// True if the agent has applied it; `None` if it has not tried.
    pub applied: Option<bool>,
    /// True if it is on the cluster; `None` if the agent has not checked.
    pub available: Option<bool>,
    /// The health.
    pub health: HealthStatus,
    /// The reason; may be empty.
    pub message: String,
}

impl ObjectStatus {
    /// Returns the name as in the health checks: `Deployment shop/web`.
    pub fn short_name(&self) -> String {
        match (self.kind.as_str(), self.namespace.as_str(), self.name.as_str()) {
            ("", _, _) | (_, _, "") => self.placeholder.clone(),
            (kind, "", name) => format!("{kind} {name}"),
            (kind, namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }

    /// Returns the name with its API group: `Deployment.apps shop/web`.
    pub fn full_name(&self) -> String {
        let name = self.short_name();
        match (self.group.as_str(), name.strip_prefix(&self.kind)) {
            ("", _) | (_, None) => name,
            (group, Some(rest)) => format!("{}.{group}{rest}", self.kind),
        }
    }
}

/// The health of a work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkStatus {
    /// `ManifestWork` or `ManifestWorkReplicaSet`.
    pub kind: &'static str,
    /// The namespace on the hub: the managed cluster, or the namespace of the Placement.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The health.
    pub health: HealthStatus,
    /// The message about the work as a whole; empty if those of its objects suffice.
    pub message: String,
    /// The objects, in the order of the work; empty for a ManifestWorkReplicaSet.
    pub objects: Vec<ObjectStatus>,
    /// True if the health is that of the work as a whole, so that its objects add no information.
    pub as_a_whole: bool,
    /// The step that has been outstanding for minutes, although it usually takes seconds: the agent may not run.
    pub overdue: Option<String>,
}

impl WorkStatus {
    /// Creates the health of a work as a whole, without objects.
    pub fn whole(kind: &'static str, namespace: &str, name: &str, health: HealthStatus, message: String) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            health,
            message,
            objects: Vec::new(),
            as_a_whole: true,
            overdue: None,
        }
    }

    /// Returns the managed cluster, or `None` for a ManifestWorkReplicaSet.
    pub fn cluster(&self) -> Option<&str> {
        (self.kind == works::KIND).then_some(&*self.namespace)
    }

    /// Returns the reason for the health, with a few objects, in the text of the health checks.
    pub fn summary(&self) -> String {
        if !self.message.is_empty() {
            return self.message.clone();
        }
        let class = self.health.in_argo_cd();
        let alike = |object: &&ObjectStatus| object.health.in_argo_cd() == class;
        if self.health == HealthStatus::Healthy {
            return work::healthy_message(self.objects.iter().filter(alike).count(), &self.namespace);
        }
        self.listed(ObjectStatus::short_name, usize::MAX, alike)
            .unwrap_or_default()
    }

    /// Returns the first of the selected objects with their messages and the number of further ones, or `None` if there are none.
    /// The messages together have at most `max` bytes; longer ones lose their middle, because the cause is often at the end.
    pub fn listed(
        &self,
        name: impl Fn(&ObjectStatus) -> String,
        max: usize,
        which: impl Fn(&&ObjectStatus) -> bool,
    ) -> Option<String> {
        const MAX_LISTED: usize = 3;
        let objects: Vec<_> = self.objects.iter().filter(which).collect();
        let max = max.checked_div(objects.len().min(MAX_LISTED)).unwrap_or(max);
        let messages = objects
            .iter()
            .take(MAX_LISTED)
            .map(|object| format!("{}: {}", name(object), without_middle(&object.message, max)));
        let messages = messages.collect::<Vec<_>>().join("; ");
        match objects.len().saturating_sub(MAX_LISTED) {
            _ if objects.is_empty() => None,
            0 => Some(messages),
            more => Some(format!("{messages}; and {more} more")),
        }
    }
}

/// The time of an evaluation; records when a result may change by time alone.
#[derive(Clone, Debug)]
pub struct Clock {
    now: Timestamp,
    next: Cell<Option<Timestamp>>,
}

impl Clock {
    /// Creates a clock at this time.
    pub fn at(now: Timestamp) -> Self {
        Self {
            now,
            next: Cell::new(None),
        }
    }

    /// Returns the first time at which the same evaluation has another result, or `None` if time changes nothing.
    pub fn next_change(&self) -> Option<Timestamp> {
        self.next.get()
    }

    /// Returns true if a time in Kubernetes' format is less than this number of seconds ago.
    fn is_younger(&self, since: &str, seconds: i64) -> bool {
        let younger = since > self.ago(seconds).as_str();
        if younger {
            self.note_deadline(since, seconds);
        }
        younger
    }

    /// Returns true if a time is more than this number of seconds ago.
    fn is_older(&self, since: &str, seconds: i64) -> bool {
        let older = since < self.ago(seconds).as_str();
        if !older {
            self.note_deadline(since, seconds.saturating_add(1));
        }
        older
    }

    /// Returns the time this number of seconds ago in Kubernetes' format; such strings sort by time.
    fn ago(&self, seconds: i64) -> String {
        let then = self.now.checked_sub(SignedDuration::from_secs(seconds));
        then.map_or(String::new(), format_time)
    }

    fn note_deadline(&self, since: &str, seconds: i64) {
        let Ok(since) = since.parse::<Timestamp>() else { return };
        let Ok(then) = since.checked_add(SignedDuration::from_secs(seconds)) else {
            return;
        };
        let next = self.next.get().map_or(then, |next| next.min(then));
        self.next.set(Some(next));
    }

    /// Returns true while a failure may be transient. The agent retries: a custom resource waits for its CRD, an object for its
    /// namespace.
    fn is_in_grace(&self, since: &str) -> bool {
        self.is_younger(since, GRACE)
    }
}

/// The number of seconds during which a failure counts as transient.
const GRACE: i64 = 60;

/// Evaluates the health of a work from its JSON.
///
/// # Errors
/// Returns a description of the value if it is not a work.
pub fn evaluate(text: &str, clock: &Clock) -> Result<WorkStatus, String> {
    evaluate_work(&fields(text)?, clock)
}

/// Returns the present health of a work and its future changes by time alone: a failure that lasts, a rollout that exceeds its
/// deadline.
///
/// # Errors
/// Returns a description of the value if it is not a work.
pub fn health_timeline(work: &Value<'_>, now: Timestamp) -> Result<Vec<(Timestamp, WorkStatus)>, String> {
    /// An upper bound for the number of changes by time alone.
    const CHANGES: usize = 8;
    let Value::Map(fields) = work else {
        return Err(not_a_work(work));
    };
    let mut timeline: Vec<(Timestamp, WorkStatus)> = Vec::new();
    let mut then = Some(now);
    for _ in 0..CHANGES {
        let Some(at) = then else { break };
        let clock = Clock::at(at);
        let status = evaluate_work(fields, &clock)?;
        if timeline.last().is_none_or(|(_, before)| *before != status) {
            timeline.push((at, status));
        }
        then = clock.next_change().filter(|&next| next > at);
    }
    Ok(timeline)
}

fn fields(text: &str) -> Result<Map<'_>, String> {
    match yaml::json(text) {
        Ok(Value::Map(fields)) => Ok(fields),
        Ok(other) => Err(not_a_work(&other)),
        Err(error) => Err(format!("a work that is not JSON: {}", error.message)),
    }
}

fn not_a_work(value: &Value<'_>) -> String {
    format!("a work that is {}", value.type_name())
}

fn evaluate_work(fields: &Map<'_>, clock: &Clock) -> Result<WorkStatus, String> {
    let mut status = match text_of(fields, "kind") {
        works::KIND => work::evaluate(fields, clock),
        works::SET_KIND => set::evaluate(fields, clock),
        other => return Err(format!("a {other} is not a work")),
    };
    status.overdue = overdue::evaluate(fields, &status, clock);
    Ok(status)
}

fn text_of<'m>(fields: &'m Map<'_>, key: &str) -> &'m str {
    get_text(fields, key).unwrap_or_default()
}

/// The health of an Application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthReport {
    /// The name in Argo CD.
    pub application: String,
    /// The works, worst health first.
    pub works: Vec<WorkStatus>,
    /// The clusters that the hub does not hear from; their health is the last reported one.
    pub unreachable: Vec<String>,
    /// Argo CD's message about a running sync, which may add works.
    pub syncing: Option<String>,
}

impl HealthReport {
    /// Builds a report; `silent` are the clusters that the hub does not hear from.
    pub fn new(
        application: &str,
        mut works: Vec<WorkStatus>,
        silent: &BTreeSet<String>,
        syncing: Option<String>,
    ) -> Self {
        works.sort_by_cached_key(|work| {
            let is_of_cluster = work.cluster().is_some();
            (work.health, is_of_cluster, work.namespace.clone(), work.name.clone())
        });
        let clusters: BTreeSet<&str> = works.iter().filter_map(WorkStatus::cluster).collect();
        let unreachable = clusters
            .into_iter()
            .filter(|cluster| silent.contains(*cluster))
            .map(str::to_owned)
            .collect();
        Self {
            application: application.to_owned(),
            works,
            unreachable,
            syncing,
        }
    }

    /// Returns the worst health of the works, or `Unknown` if there are none. While Argo CD syncs, it is at most `Progressing`.
    pub fn health(&self) -> HealthStatus {
        let worst = self.works.iter().map(|work| work.health).min();
        match worst.unwrap_or(HealthStatus::Unknown) {
            HealthStatus::Healthy if self.syncing.is_some() => HealthStatus::Progressing,
            worst => worst,
        }
    }

    /// Returns the number of clusters, and of those on which all works are healthy.
    pub fn clusters(&self) -> (usize, usize) {
        let all: BTreeSet<_> = self.works.iter().filter_map(WorkStatus::cluster).collect();
        let unhealthy = self.works.iter().filter(|work| work.health != HealthStatus::Healthy);
        let unhealthy: BTreeSet<_> = unhealthy.filter_map(WorkStatus::cluster).collect();
        (all.len(), all.len().saturating_sub(unhealthy.len()))
    }

    /// Returns the number of objects with this health.
    pub fn objects(&self, health: HealthStatus) -> usize {
        let objects = self.works.iter().flat_map(|work| &work.objects);
        objects.filter(|object| object.health == health).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use testing::status::{condition, fine, manifest, object, status, work};

    const NOW: &str = "2026-06-01T12:00:00Z";

    fn clock() -> Clock {
        Clock::at(NOW.parse().expect("a time"))
    }

    fn evaluated(text: &str) -> WorkStatus {
        evaluate(text, &clock()).expect("a work")
    }

    #[test]
    fn message_about_a_wrong_scope_has_the_setting() {
        let message = |text: &str| with_remedy(format!("Failed to apply manifest: {text}"), "example.com", "Tank");
        let not_found = message("the server could not find the requested resource");
        assert!(
            not_found.ends_with("set cluster-scoped-kinds to Tank.example.com"),
            "{not_found}"
        );
        let not_allowed = message("the server does not allow this method on the requested resource");
        assert!(
            not_allowed.ends_with("remove Tank.example.com from cluster-scoped-kinds"),
            "{not_allowed}"
        );
        assert_eq!(message("forbidden"), "Failed to apply manifest: forbidden");
        // A managed cluster reports the kind.
        let hostile = with_remedy(
            "the server could not find the requested resource".to_owned(),
            "b",
            "A; reboot",
        );
        assert_eq!(hostile, "the server could not find the requested resource");
    }

    /// The cases below have no `applied` and `available`.
    #[test]
    fn objects_are_applied_and_available_as_far_as_known() {
        let refused = [("Applied", "False"), ("Available", "False")];
        let gone = [("Applied", "True"), ("Available", "False")];
        let unlooked = [("Applied", "True"), ("Available", "Unknown")];
        let manifests = [("a", refused), ("b", gone), ("c", unlooked)]
            .map(|(name, conditions)| manifest(name, &conditions.map(|(kind, value)| condition(kind, value, "", 2))));
        let objects = ["a", "b", "c", "d"].map(object).join(",");
        let work = evaluated(&work("eu1", &objects, &status("False", 2, &manifests)));
        let known: Vec<_> = work
            .objects
            .iter()
            .map(|object| [object.applied, object.available])
            .collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(known, [[no, no], [yes, no], [yes, None], [None, None]]);
        assert_eq!(work.objects[3].full_name(), "Deployment.apps shop/d");
        assert_eq!(work.cluster(), Some("eu1"));
    }

    fn rows(work: &WorkStatus) -> serde_json::Value {
        let objects = work.objects.iter();
        objects
            .map(|object| json!([object.kind, object.name, object.health.name(), object.message]))
            .collect()
    }

    /// Argo CD and the UI evaluate the same cases: see `tests/data`.
    #[test]
    fn evaluates_the_cases_of_argo_cd_and_the_ui() {
        let now: Timestamp = NOW.parse().expect("a time");
        for case in testing::health_cases(|seconds| (now - SignedDuration::from_secs(seconds)).to_string()) {
            let work = evaluated(&case.object.to_string());
            assert_eq!(
                (work.health.name(), work.summary()),
                (&*case.health, case.message),
                "{}",
                case.name
            );
            if !case.objects.is_null() {
                assert_eq!(rows(&work), case.objects, "{}", case.name);
            }
        }
    }

    #[test]
    fn evaluates_the_values_that_argo_cd_and_the_ui_evaluate() {
        let cases = include_str!("../../../ui/test/verdict_cases.json");
        let cases: serde_json::Value = serde_json::from_str(cases).expect("JSON");
        let cases = cases["works"].as_array().expect("works");
        assert!(cases.len() > 60);
        for case in cases {
            let work = evaluated(&case["work"].to_string());
            assert_eq!(
                (work.health.name(), &rows(&work)),
                (case["health"].as_str().expect("a health"), &case["objects"])
            );
        }
    }

    #[test]
    fn predicts_when_a_pending_failure_becomes_degraded() {
        let refused = |since: &str| {
            let condition = condition("Applied", "False", "no match", 2).replace("2026-06-01T11:00:00Z", since);
            work("eu1", &object("a"), &status("True", 2, &[manifest("a", &[condition])]))
        };
        let foreseen = |text: &str| -> Vec<(String, HealthStatus)> {
            let work = yaml::json(text).expect("JSON");
            let timeline = health_timeline(&work, NOW.parse().expect("a time")).expect("a work");
            let messages = timeline.iter().map(|(at, work)| (at.to_string(), work.health));
            messages.collect()
        };
        let now = NOW.to_owned();
        assert_eq!(
            foreseen(&refused("2026-06-01T11:59:30Z")),
            [
                (now.clone(), HealthStatus::Progressing),
                ("2026-06-01T12:00:30Z".to_owned(), HealthStatus::Degraded)
            ]
        );
        assert_eq!(
            foreseen(&refused("2026-06-01T11:00:00Z")),
            [(now.clone(), HealthStatus::Degraded)]
        );
        let fine = work("eu1", &object("a"), &status("True", 2, &[fine("a")]));
        assert_eq!(foreseen(&fine), [(now, HealthStatus::Healthy)]);
    }

    #[test]
    fn malformed_status_is_unknown_with_a_reason() {
        let unknown = |status: &str, why: &str| {
            let work = evaluated(&work("eu1", "", status));
            assert_eq!(work.health, HealthStatus::Unknown, "{status}");
            assert!(work.summary().contains(why), "{status}: {}", work.summary());
        };
        let applied = condition("Applied", "True", "", 2);
        let with = |rest: &str| format!(r#"{{"conditions":[{applied}],{rest}}}"#);
        unknown(r#"{"conditions":"x"}"#, "status.conditions is text");
        unknown(&with(r#""resourceStatus":[]"#), "status.resourceStatus is a list");
        unknown(
            &with(r#""resourceStatus":{"manifests":{}}"#),
            "status.resourceStatus.manifests is a mapping",
        );
        unknown(
            &with(r#""resourceStatus":{"manifests":[{"conditions":true}]}"#),
            "conditions is true or false",
        );
        let many = vec!["{}"; 1001].join(",");
        unknown(
            &with(&format!(r#""resourceStatus":{{"manifests":[{many}]}}"#)),
            "it has 1001 manifests",
        );
        for nonsense in ["", "[]", "7", r#"{"kind":"Pod"}"#, r#"{"kind":["ManifestWork"]}"#] {
            evaluate(nonsense, &clock()).expect_err(nonsense);
        }
    }

    #[test]
    fn application_is_progressing_while_argo_cd_syncs() {
        let works = || vec![evaluated(&work("eu1", &object("a"), &status("True", 2, &[fine("a")])))];
        let health = |syncing| HealthReport::new("shop", works(), &BTreeSet::new(), syncing).health();
        assert_eq!(health(None), HealthStatus::Healthy);
        assert_eq!(health(Some(String::new())), HealthStatus::Progressing);
        let nothing = HealthReport::new("shop", Vec::new(), &BTreeSet::new(), None);
        assert_eq!(nothing.health(), HealthStatus::Unknown);
    }
}
