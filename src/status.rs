//! `status`: how an Application fares on its clusters, work by work and object by object.
//!
//! ```text
//! hub ─▶ works ─▶ work::judge, set::judge ─▶ Report ─▶ table, JSON or YAML
//! ```
//!
//! The verdicts are those of the health checks in argocd_cm.yaml, so that it never contradicts Argo CD; where Argo CD has one
//! word for several states, as for all that is not yet as asked for, they are told apart here. All here is a pure function of
//! what the hub has and of the time.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod conditions;
pub mod gitopscluster;
mod owned;
mod print;
mod set;
mod table;
mod work;

pub use owned::{Application, Owned};
pub use print::value;
pub(crate) use table::{BOLD, END, GREEN, RED, YELLOW, clean};
pub use table::{progress, table};

use crate::value::{Map, Value};
use crate::{works, yaml};
use conditions::text;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

/// How something fares; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It is broken, or cannot be applied.
    Degraded,
    /// It was applied and is not on the cluster.
    Missing,
    /// What is said of it cannot be understood, or it cannot be looked at.
    Unknown,
    /// The agent has not come to it in its present form.
    Waiting,
    /// It is on its way.
    Progressing,
    /// It waits for somebody.
    Suspended,
    /// It is as asked for.
    Healthy,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 7] = [
        Self::Degraded,
        Self::Missing,
        Self::Unknown,
        Self::Waiting,
        Self::Progressing,
        Self::Suspended,
        Self::Healthy,
    ];

    /// What people read.
    #[must_use]
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

    /// What the health checks in argocd_cm.yaml call it.
    #[must_use]
    pub fn in_argo_cd(self) -> &'static str {
        match self {
            Self::Degraded | Self::Missing => "Degraded",
            Self::Unknown | Self::Waiting | Self::Progressing => "Progressing",
            Self::Suspended => "Suspended",
            Self::Healthy => "Healthy",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An object of a work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectStatus {
    /// Its API group.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace on the cluster; empty for none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it is called where its name is not known: its place in the work.
    pub place: String,
    /// Whether the agent has applied it, where it has tried.
    pub applied: Option<bool>,
    /// Whether it is on the cluster, where the agent has looked.
    pub available: Option<bool>,
    /// How it fares.
    pub verdict: Verdict,
    /// Why; empty where nothing is to be said.
    pub message: String,
}

impl ObjectStatus {
    /// What the health checks call it: `Deployment shop/web`.
    #[must_use]
    pub fn short_name(&self) -> String {
        match (self.kind.as_str(), self.namespace.as_str(), self.name.as_str()) {
            ("", _, _) | (_, _, "") => self.place.clone(),
            (kind, "", name) => format!("{kind} {name}"),
            (kind, namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }

    /// The same with its API group: `Deployment.apps shop/web`.
    #[must_use]
    pub fn full_name(&self) -> String {
        let name = self.short_name();
        match (self.group.as_str(), name.strip_prefix(&self.kind)) {
            ("", _) | (_, None) => name,
            (group, Some(rest)) => format!("{}.{group}{rest}", self.kind),
        }
    }
}

/// A work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkStatus {
    /// `ManifestWork` or `ManifestWorkReplicaSet`.
    pub kind: &'static str,
    /// Its namespace on the hub: the managed cluster, or where the Placement is.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How it fares.
    pub verdict: Verdict,
    /// What is to be said of the work as a whole; empty where its objects tell it all.
    pub message: String,
    /// Its objects, in its order; a ManifestWorkReplicaSet has none.
    pub objects: Vec<ObjectStatus>,
    /// Whether the verdict is on the work as a whole, so that those on its objects add nothing.
    pub as_a_whole: bool,
}

impl WorkStatus {
    /// The managed cluster; none for a ManifestWorkReplicaSet.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        (self.kind == works::KIND).then_some(&*self.namespace)
    }

    /// Why it fares so, in one text of few objects: what the health checks say.
    #[must_use]
    pub fn summary(&self) -> String {
        if !self.message.is_empty() {
            return self.message.clone();
        }
        let class = self.verdict.in_argo_cd();
        let alike = |object: &&ObjectStatus| object.verdict.in_argo_cd() == class;
        if self.verdict == Verdict::Healthy {
            return work::all_is_well(self.objects.iter().filter(alike).count(), &self.namespace);
        }
        self.listed(ObjectStatus::short_name, alike).unwrap_or_default()
    }

    /// Some of its objects with what is said of them, and how many more there are; nothing when there are none.
    #[must_use]
    pub fn listed(
        &self,
        name: impl Fn(&ObjectStatus) -> String,
        which: impl Fn(&&ObjectStatus) -> bool,
    ) -> Option<String> {
        const TOLD: usize = 3;
        let objects: Vec<_> = self.objects.iter().filter(which).collect();
        let told = objects
            .iter()
            .take(TOLD)
            .map(|it| format!("{}: {}", name(it), it.message));
        let told = told.collect::<Vec<_>>().join("; ");
        match objects.len().saturating_sub(TOLD) {
            _ if objects.is_empty() => None,
            0 => Some(told),
            more => Some(format!("{told}; and {more} more")),
        }
    }
}

/// The time, as far as a verdict depends on it; remembers when a verdict that it was asked for may be another.
#[derive(Clone, Debug)]
pub struct Clock {
    now: Timestamp,
    next: Cell<Option<Timestamp>>,
}

impl Clock {
    /// It is this late.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self {
            now,
            next: Cell::new(None),
        }
    }

    /// The first moment at which the same questions have another answer; none when time changes nothing.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        self.next.get()
    }

    /// Whether what is so since a time, as Kubernetes writes it, is so for less than these seconds.
    fn is_younger(&self, since: &str, seconds: i64) -> bool {
        let younger = since > self.ago(seconds).as_str();
        if younger {
            self.ask_again(since, seconds);
        }
        younger
    }

    /// Whether it is so for longer than these seconds.
    fn is_older(&self, since: &str, seconds: i64) -> bool {
        let older = since < self.ago(seconds).as_str();
        if !older {
            self.ask_again(since, seconds.saturating_add(1));
        }
        older
    }

    /// So long ago, as Kubernetes writes it; such texts compare as their times do.
    fn ago(&self, seconds: i64) -> String {
        let then = self.now.checked_sub(SignedDuration::from_secs(seconds));
        then.map_or(String::new(), time)
    }

    fn ask_again(&self, since: &str, seconds: i64) {
        let Ok(since) = since.parse::<Timestamp>() else { return };
        let Ok(then) = since.checked_add(SignedDuration::from_secs(seconds)) else {
            return;
        };
        let next = self.next.get().map_or(then, |next| next.min(then));
        self.next.set(Some(next));
    }

    /// The agent tries again what it could not apply: a custom resource waits for its CRD, an object for its namespace. So a
    /// failure counts as one only when it lasts.
    fn is_in_grace(&self, since: &str) -> bool {
        self.is_younger(since, GRACE)
    }
}

/// A time as Kubernetes writes it: in UTC, to the second.
#[must_use]
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// How many seconds a failure has to mend itself.
const GRACE: i64 = 60;

/// How a work fares, of its JSON as the hub has it.
///
/// # Errors
/// With what it is instead, in words.
pub fn judge(text: &str, clock: &Clock) -> Result<WorkStatus, String> {
    judge_work(&fields(text)?, clock)
}

/// How a work fares now, and, where nothing else happens, from when on it fares otherwise: a failure that lasts becomes one, a
/// rollout runs out of its time.
///
/// # Errors
/// With what it is instead, in words.
pub fn forecast(text: &str, now: Timestamp) -> Result<Vec<(Timestamp, WorkStatus)>, String> {
    /// More changes than time alone can bring about.
    const CHANGES: usize = 8;
    let fields = fields(text)?;
    let mut forecast: Vec<(Timestamp, WorkStatus)> = Vec::new();
    let mut then = Some(now);
    for _ in 0..CHANGES {
        let Some(at) = then else { break };
        let clock = Clock::at(at);
        let status = judge_work(&fields, &clock)?;
        if forecast.last().is_none_or(|(_, before)| *before != status) {
            forecast.push((at, status));
        }
        then = clock.next().filter(|&next| next > at);
    }
    Ok(forecast)
}

fn fields(text: &str) -> Result<Map<'_>, String> {
    match yaml::json(text) {
        Ok(Value::Map(fields)) => Ok(fields),
        Ok(other) => Err(format!("a work that is {}", other.type_name())),
        Err(error) => Err(format!("a work that is not JSON: {}", error.message)),
    }
}

fn judge_work(fields: &Map<'_>, clock: &Clock) -> Result<WorkStatus, String> {
    match text_of(fields, "kind") {
        works::KIND => Ok(work::judge(fields, clock)),
        works::SET_KIND => Ok(set::judge(fields, clock)),
        other => Err(format!("a {other} is not a work")),
    }
}

fn text_of<'m>(fields: &'m Map<'_>, key: &str) -> &'m str {
    text(fields, key).unwrap_or_default()
}

/// How an Application fares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What Argo CD calls it.
    pub application: String,
    /// Its works: those that fare worst first.
    pub works: Vec<WorkStatus>,
    /// Those of its clusters that the hub does not hear from: what is told of them is what was last heard.
    pub unreachable: Vec<String>,
    /// What Argo CD says of a sync that goes on: works may be missing that it brings.
    pub syncing: Option<String>,
}

impl Report {
    /// Puts together what was found; `silent` are the clusters that the hub does not hear from.
    #[must_use]
    pub fn new(
        application: &str,
        mut works: Vec<WorkStatus>,
        silent: &BTreeSet<String>,
        syncing: Option<String>,
    ) -> Self {
        works.sort_by(|one, other| {
            let place = |work: &WorkStatus| (work.verdict, work.cluster().is_some());
            let key = |work: &'_ WorkStatus| (work.namespace.clone(), work.name.clone());
            place(one).cmp(&place(other)).then_with(|| key(one).cmp(&key(other)))
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

    /// The worst that is among the works; unknown where there is none. It is not yet healthy while Argo CD syncs.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let worst = self.works.iter().map(|work| work.verdict).min();
        match worst.unwrap_or(Verdict::Unknown) {
            Verdict::Healthy if self.syncing.is_some() => Verdict::Progressing,
            worst => worst,
        }
    }

    /// How many clusters it is on, and on how many of them all works are healthy.
    #[must_use]
    pub fn clusters(&self) -> (usize, usize) {
        let of = |works: &mut dyn Iterator<Item = &WorkStatus>| -> BTreeSet<String> {
            works.filter_map(WorkStatus::cluster).map(str::to_owned).collect()
        };
        let all = of(&mut self.works.iter());
        let ill = of(&mut self.works.iter().filter(|work| work.verdict != Verdict::Healthy));
        (all.len(), all.len().saturating_sub(ill.len()))
    }

    /// How many objects fare so.
    #[must_use]
    pub fn objects(&self, verdict: Verdict) -> usize {
        let objects = self.works.iter().flat_map(|work| &work.objects);
        objects.filter(|object| object.verdict == verdict).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-06-01T12:00:00Z";

    fn clock() -> Clock {
        Clock::at(NOW.parse().expect("a time"))
    }

    fn judged(text: &str) -> WorkStatus {
        judge(text, &clock()).expect("a work")
    }

    /// A work of generation 2 with these objects in its spec, as JSON, and this status.
    fn work(cluster: &str, objects: &str, status: &str) -> String {
        format!(
            r#"{{"kind":"ManifestWork","metadata":{{"name":"shop","namespace":"{cluster}","generation":2}},"spec":{{"workload":{{"manifests":[{objects}]}}}},"status":{status}}}"#
        )
    }

    fn object(name: &str) -> String {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","namespace":"shop"}},"spec":{{}}}}"#
        )
    }

    fn condition(kind: &str, status: &str, message: &str, generation: u32) -> String {
        format!(
            r#"{{"type":"{kind}","status":"{status}","message":"{message}","reason":"ConditionRuleEvaluated","lastTransitionTime":"2026-06-01T11:00:00Z","observedGeneration":{generation}}}"#
        )
    }

    fn manifest(name: &str, conditions: &[String]) -> String {
        format!(
            r#"{{"resourceMeta":{{"group":"apps","kind":"Deployment","namespace":"shop","name":"{name}"}},"conditions":[{}]}}"#,
            conditions.join(",")
        )
    }

    fn status(applied: &str, generation: u32, manifests: &[String]) -> String {
        format!(
            r#"{{"conditions":[{}],"resourceStatus":{{"manifests":[{}]}}}}"#,
            condition("Applied", applied, "", generation),
            manifests.join(",")
        )
    }

    fn fine(name: &str) -> String {
        let conditions = ["Applied", "Available", "Healthy"].map(|kind| condition(kind, "True", "", 2));
        manifest(name, &conditions)
    }

    fn broken(name: &str) -> String {
        let conditions = [
            condition("Applied", "True", "", 2),
            condition("Available", "True", "", 2),
            condition("Healthy", "False", "back-off pulling image", 2),
        ];
        manifest(name, &conditions)
    }

    /// An object: whether it is applied and there, how it fares, and why.
    type Told<'w> = (String, [Option<bool>; 2], Verdict, &'w str);

    fn told(work: &WorkStatus) -> Vec<Told<'_>> {
        let objects = work.objects.iter();
        objects
            .map(|it| (it.full_name(), [it.applied, it.available], it.verdict, &*it.message))
            .collect()
    }

    #[test]
    fn each_object_has_its_own_verdict() {
        let refused = [
            condition("Applied", "False", "namespaces \\\"shop\\\" not found", 2),
            condition("Available", "False", "", 2),
        ];
        let gone = [
            condition("Applied", "True", "", 2),
            condition("Available", "False", "", 2),
        ];
        let unlooked = [
            condition("Applied", "True", "", 2),
            condition("Available", "True", "", 2),
            condition("Healthy", "True", "", 1),
        ];
        let manifests = [
            fine("a"),
            broken("b"),
            manifest("c", &refused),
            manifest("d", &gone),
            manifest("e", &unlooked),
        ];
        let objects = ["a", "b", "c", "d", "e", "f"].map(object).join(",");
        let work = judged(&work("eu1", &objects, &status("False", 2, &manifests)));
        let (yes, no) = (Some(true), Some(false));
        let name = |name: &str| format!("Deployment.apps shop/{name}");
        let waits = "waiting for the agent of managed cluster eu1 to look at it";
        assert_eq!(
            told(&work),
            [
                (name("a"), [yes, yes], Verdict::Healthy, ""),
                (name("b"), [yes, yes], Verdict::Degraded, "back-off pulling image"),
                (name("c"), [no, no], Verdict::Degraded, "namespaces \"shop\" not found"),
                (name("d"), [yes, no], Verdict::Missing, "it is not on the cluster"),
                (name("e"), [yes, yes], Verdict::Waiting, waits),
                (
                    name("f"),
                    [None, None],
                    Verdict::Unknown,
                    "the agent says nothing of it"
                ),
            ]
        );
        assert_eq!((work.verdict, work.cluster()), (Verdict::Degraded, Some("eu1")));
        assert_eq!(
            work.summary(),
            "Deployment shop/b: back-off pulling image; Deployment shop/c: namespaces \"shop\" not found; \
             Deployment shop/d: it is not on the cluster"
        );
    }

    #[test]
    fn a_failure_is_foreseen_to_become_one() {
        let refused = |since: &str| {
            let condition = condition("Applied", "False", "no match", 2).replace("2026-06-01T11:00:00Z", since);
            work("eu1", &object("a"), &status("True", 2, &[manifest("a", &[condition])]))
        };
        let foreseen = |text: &str| -> Vec<(String, Verdict)> {
            let forecast = forecast(text, NOW.parse().expect("a time")).expect("a work");
            let told = forecast.iter().map(|(at, work)| (at.to_string(), work.verdict));
            told.collect()
        };
        let now = NOW.to_owned();
        assert_eq!(
            foreseen(&refused("2026-06-01T11:59:30Z")),
            [
                (now.clone(), Verdict::Progressing),
                ("2026-06-01T12:00:30Z".to_owned(), Verdict::Degraded)
            ]
        );
        assert_eq!(
            foreseen(&refused("2026-06-01T11:00:00Z")),
            [(now.clone(), Verdict::Degraded)]
        );
        let fine = work("eu1", &object("a"), &status("True", 2, &[fine("a")]));
        assert_eq!(foreseen(&fine), [(now, Verdict::Healthy)]);
    }

    #[test]
    fn what_was_said_of_an_earlier_generation_is_not_believed() {
        let stale = judged(&work("eu1", &object("a"), &status("True", 1, &[fine("a")])));
        assert_eq!(stale.verdict, Verdict::Waiting);
        assert_eq!(
            stale.message,
            "waiting for the agent of managed cluster eu1 to apply it"
        );
        assert_eq!(stale.objects[0].verdict, Verdict::Waiting);
        assert_eq!(stale.objects[0].applied, None);
        let new = judged(&work("eu1", &object("a"), "{}"));
        assert_eq!(new.verdict, Verdict::Waiting);
        assert_eq!(
            judged(&work("eu1", &object("a"), &status("True", 2, &[fine("a")]))).verdict,
            Verdict::Healthy
        );
    }

    #[test]
    fn what_cannot_be_understood_is_unknown_and_said() {
        let unknown = |status: &str, why: &str| {
            let work = judged(&work("eu1", "", status));
            assert_eq!(work.verdict, Verdict::Unknown, "{status}");
            assert!(work.summary().contains(why), "{status}: {}", work.summary());
        };
        let applied = condition("Applied", "True", "", 2);
        let with = |rest: &str| format!(r#"{{"conditions":[{applied}],{rest}}}"#);
        unknown("7", "its status cannot be understood: status is a number");
        unknown(r#"{"conditions":"x"}"#, "status.conditions is text");
        unknown(
            r#"{"conditions":[null,{"type":3}]}"#,
            "status.conditions[0] is not a condition",
        );
        unknown(&with(r#""resourceStatus":[]"#), "status.resourceStatus is a list");
        unknown(
            &with(r#""resourceStatus":{"manifests":{}}"#),
            "status.resourceStatus.manifests is a mapping",
        );
        unknown(
            &with(r#""resourceStatus":{"manifests":[3]}"#),
            "manifests[0]: its status cannot be understood: it is a number",
        );
        unknown(
            &with(r#""resourceStatus":{"manifests":[{"conditions":true}]}"#),
            "conditions is true or false",
        );
        let set = r#"{"kind":"ManifestWorkReplicaSet","status":{"conditions":[1]}}"#;
        assert_eq!(judged(set).verdict, Verdict::Unknown);
        for nonsense in ["", "[]", "7", r#"{"kind":"Pod"}"#, r#"{"kind":["ManifestWork"]}"#] {
            judge(nonsense, &clock()).expect_err(nonsense);
        }
    }

    #[test]
    fn whatever_stands_anywhere_there_is_a_verdict() {
        let values = [
            "null",
            "true",
            "-9223372036854775808",
            "9223372036854775807",
            "1e300",
            r#""""#,
            r#""9223372036854775807h""#,
            r#""ä""#,
            "[]",
            "{}",
            "[[]]",
        ];
        let set = r#"{"kind":"ManifestWorkReplicaSet","metadata":{"name":N,"namespace":"b","managedFields":[{"time":"2026-06-01T11:00:00Z","fieldsV1":{"f:spec":{}}},N]},"spec":{"placementRefs":[{"name":"p","rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":N,"progressDeadline":N,"minSuccessTime":"1s","mandatoryDecisionGroups":N}}}]},"status":{"conditions":[{"type":"PlacementVerified","status":"True"},{"type":"ManifestworkApplied","status":"True","message":N},{"type":"PlacementRolledOut","status":"False","lastTransitionTime":"2026-06-01T11:00:00Z"}],"summary":{"total":N,"available":N,"applied":N},"placementSummary":[{"availableDecisionGroups":"9223372036854775807 (1 / 9223372036854775807)"},{"availableDecisionGroups":"1 (1 / 9)"},N]}}"#;
        let work = r#"{"kind":"ManifestWork","metadata":{"name":"a","namespace":N,"generation":N,"deletionTimestamp":D},"spec":{"workload":{"manifests":[N]},"manifestConfigs":[{"resourceIdentifier":N,"conditionRules":[N]}]},"status":{"conditions":[{"type":"Applied","status":"True","observedGeneration":N},N],"resourceStatus":{"manifests":[{"resourceMeta":{"ordinal":N,"kind":N,"name":N},"statusFeedback":{"values":[N]},"conditions":[{"type":"Applied","status":N},{"type":"Available","status":"False","message":N,"lastTransitionTime":N},N]},N]}}}"#;
        let deadline = set.replacen("\"progressDeadline\":N", "\"progressDeadline\":\"10s\"", 1);
        let percent = deadline.replacen("\"maxConcurrency\":N", "\"maxConcurrency\":\"50%\"", 1);
        for value in values {
            for text in [set, work, &deadline, &percent] {
                let texts = [
                    text.replace(",\"deletionTimestamp\":D", "")
                        .replace(":N", &format!(":{value}")),
                    text.replace(":D", ":\"x\"").replace(":N", ":1"),
                ];
                for text in texts.map(|text| text.replace(",N]", &format!(",{value}]")).replace("[N]", "[1]")) {
                    let status = judged(&text);
                    assert!(
                        status.verdict == Verdict::Healthy || !status.summary().is_empty(),
                        "{text}"
                    );
                    let report = Report::new("shop", vec![status], &BTreeSet::new(), None);
                    assert!(table(&report, false).lines().all(|line| line == line.trim_end()));
                }
            }
        }
    }

    #[test]
    fn what_is_told_of_a_huge_work_is_short() {
        let names: Vec<String> = (0..5000).map(|at| format!("web-{at}")).collect();
        let objects: Vec<String> = names.iter().map(|name| object(name)).collect();
        let manifests: Vec<String> = names.iter().map(|name| broken(name)).collect();
        let work = judged(&work("eu1", &objects.join(","), &status("True", 2, &manifests)));
        assert_eq!((work.verdict, work.objects.len()), (Verdict::Degraded, 5000));
        assert!(work.summary().ends_with("; and 4997 more"), "{}", work.summary());
        let report = Report::new("shop", vec![work], &BTreeSet::new(), None);
        assert_eq!(report.objects(Verdict::Degraded), 5000);
        assert_eq!(table(&report, false).lines().count(), 5003);
    }

    fn report() -> Report {
        let works = [
            work("eu2", &object("a"), "{}"),
            work("eu1", &object("a"), &status("True", 2, &[fine("a")])),
            work("eu3", "", &status("True", 2, &[fine("a"), broken("b\\n\\u001b[31m")])),
            r#"{"kind":"ManifestWorkReplicaSet","metadata":{"name":"shop-x","namespace":"fleet"}}"#.to_owned(),
        ];
        let works = works.iter().map(|text| judged(text)).collect();
        let silent = ["eu2", "other"].map(str::to_owned).into();
        Report::new(
            "team_shop",
            works,
            &silent,
            Some("waiting for\nhealthy state".to_owned()),
        )
    }

    #[test]
    fn the_table_has_the_worst_first_and_the_totals_last() {
        let text = table(&report(), false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "CLUSTER   WORK           OBJECT                         APPLIED   AVAILABLE   HEALTH     MESSAGE",
                "eu3       shop           Deployment.apps shop/b \u{fffd}[31m   yes       yes         Degraded   back-off pulling image",
                "-         fleet/shop-x   -                              -         -           Waiting    \
                 waiting for OCM's work manager; it needs the feature gate ManifestWorkReplicaSet",
                "eu2       shop           1 object                       -         -           Waiting    \
                 waiting for the agent of managed cluster eu2 to apply it",
                "eu1       shop           Deployment.apps shop/a         yes       yes         Healthy",
                "eu3       shop           Deployment.apps shop/a         yes       yes         Healthy",
                "",
                "team_shop is Degraded: 1 of 3 clusters healthy; objects: 1 Degraded, 1 Waiting, 2 Healthy",
                "Argo CD is syncing it: waiting for healthy state",
                "eu2 cannot be reached: what is told of it is what it said last",
            ]
        );
        let coloured = table(&report(), true);
        let mut plain = coloured.clone();
        for code in ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"] {
            assert!(plain.contains(code), "{coloured}");
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, text);
    }

    #[test]
    fn it_is_not_healthy_while_argo_cd_syncs() {
        let works = || vec![judged(&work("eu1", &object("a"), &status("True", 2, &[fine("a")])))];
        let verdict = |syncing| Report::new("shop", works(), &BTreeSet::new(), syncing).verdict();
        assert_eq!(verdict(None), Verdict::Healthy);
        assert_eq!(verdict(Some(String::new())), Verdict::Progressing);
        let nothing = Report::new("shop", Vec::new(), &BTreeSet::new(), None);
        assert_eq!(nothing.verdict(), Verdict::Unknown);
    }

    #[test]
    fn programs_are_told_the_same() {
        let printed = yaml::write(&value(&report()));
        for line in [
            "application: team_shop\n",
            "clusters:\n  healthy: 1\n  total: 3\n",
            "health: Degraded\nobjects:\n  Degraded: 1\n  Healthy: 2\n  Waiting: 1\nsyncing: true\nunreachable:\n",
            "  - applied: null\n    available: null\n    group: apps\n    health: Waiting\n",
        ] {
            assert!(printed.contains(line), "{line} is not in\n{printed}");
        }
    }
}
