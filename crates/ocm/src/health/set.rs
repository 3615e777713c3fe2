//! Evaluates the health of a ManifestWorkReplicaSet by the rules of its health check in deploy/argocd_cm.yaml, which explains
//! each rule.

use super::conditions::{ReportedCondition, ReportedConditions, get_text, map, number};
use super::overdue::last_change;
use super::{Clock, GRACE, HealthStatus, WorkStatus, text_of};
use crate::duration;
use crate::work::{SET_KIND, TEMPLATE};
use manifest::value::{Map, Value};

/// The maximum length of namespace and name together: OCM finds the works of a set by a label with both, joined by a dot.
const LABEL_MAX: usize = 62;

/// The reason of the condition `PlacementVerified` if no managed cluster is selected, or none has its work yet.
pub const NO_CLUSTER: &str = "PlacementDecisionEmpty";

/// The number of seconds for which a change may wait for OCM.
const OCM_GRACE: i64 = 30;

pub(super) fn evaluate(fields: &Map<'_>, clock: &Clock) -> WorkStatus {
    let nothing = Map::default();
    let part = |key| map(fields, key).unwrap_or(&nothing);
    let set = EvaluatedSet {
        metadata: part("metadata"),
        spec: part("spec"),
        status: part("status"),
        conditions: ReportedConditions::read_conditions(part("status")),
        clock,
    };
    let (health, message) = set.health();
    let [namespace, name] = ["namespace", "name"].map(|key| text_of(set.metadata, key));
    WorkStatus::whole(SET_KIND, namespace, name, health, message)
}

struct EvaluatedSet<'m, 'a> {
    metadata: &'m Map<'a>,
    spec: &'m Map<'a>,
    status: &'m Map<'a>,
    conditions: ReportedConditions<'m>,
    clock: &'m Clock,
}

impl EvaluatedSet<'_, '_> {
    fn health(&self) -> (HealthStatus, String) {
        let degraded = |message: String| (HealthStatus::Degraded, message);
        let progressing = |message: String| (HealthStatus::Progressing, message);
        if self.metadata.get("deletionTimestamp").is_some() {
            return progressing("OCM is removing its works".to_owned());
        }
        let get = |kind| self.conditions.get(kind);
        let (verified, applied, rollout) = (
            get("PlacementVerified"),
            get("ManifestworkApplied"),
            get("PlacementRolledOut"),
        );
        let rolled_out = self.conditions.has("PlacementRolledOut", "True");
        let changed = last_change(self.metadata);
        let (namespace, name) = (text_of(self.metadata, "namespace"), text_of(self.metadata, "name"));
        if namespace.len().saturating_add(name.len()) > LABEL_MAX {
            return degraded(format!(
                "OCM cannot deliver it: its namespace and name may have {LABEL_MAX} characters together"
            ));
        }
        let rolled = rollout.map(|rollout| rollout.since).filter(|since| !since.is_empty());
        if rolled_out && rolled.unwrap_or(changed) < changed && self.clock.is_younger(changed, OCM_GRACE) {
            let waiting = "waiting for OCM's work manager to look at the change";
            return (HealthStatus::Waiting, waiting.to_owned());
        }
        if let Some(applied) = applied.filter(|applied| applied.reason == "InvalidManifestWorkName") {
            return degraded(applied.message_or("its works cannot have the name that OCM would give them"));
        }
        if let Some(verified) = verified.filter(|verified| verified.is("False")) {
            return self.without_clusters(verified, rolled_out);
        }
        if !self.conditions.has("PlacementVerified", "True") || applied.is_none_or(|applied| applied.status.is_empty())
        {
            return match &self.conditions.fault {
                Some(fault) => (
                    HealthStatus::Unknown,
                    format!("its status is malformed: status.{fault}"),
                ),
                None => (
                    HealthStatus::Waiting,
                    "waiting for OCM's work manager; it needs the feature gate ManifestWorkReplicaSet".to_owned(),
                ),
            };
        }

        let [total, on_the_way, broken] = ["total", "progressing", "degraded"].map(|name| self.count(name));
        let mut message = format!("{} of {} clusters applied", self.count("applied"), self.selected().0);
        if on_the_way > 0 {
            message = format!("{message}, {on_the_way} progressing");
        }
        if broken > 0 {
            return degraded(format!("{message}, {broken} degraded"));
        }
        let incomplete = total.saturating_sub(self.count("available"));
        if incomplete > 0 {
            message = format!("{message}, {incomplete} without all objects");
        }
        let since = rolled.unwrap_or_default().max(changed);
        let over = |allowed| !rolled_out && !since.is_empty() && self.clock.is_older(since, allowed);
        if self.time_allowed().is_some_and(over) {
            return degraded(format!("{message}, the rollout exceeded its deadline"));
        }
        if !self.conditions.has("ManifestworkApplied", "True")
            || self.count("applied") < total
            || incomplete > 0
            || on_the_way > 0
        {
            return progressing(message);
        }
        let (has_rule, at_once) = (self.has_rule(), self.is_at_once());
        if rolled_out || at_once && !has_rule {
            return (HealthStatus::Healthy, message);
        }
        let needs = if has_rule {
            ""
        } else {
            " only with a condition rule Progressing in its works"
        };
        progressing(format!("{message}, the rollout continues{needs}"))
    }

    /// Returns the health if no cluster is selected or the selection is unknown.
    fn without_clusters(&self, verified: ReportedCondition<'_>, rolled_out: bool) -> (HealthStatus, String) {
        if verified.reason == NO_CLUSTER {
            return if rolled_out {
                // Suspended, because a user must act: Degraded would end a sync that waits for the first cluster.
                let placements = self.placement_names();
                let message =
                    format!("Placement {placements} selects no managed cluster: see its condition PlacementSatisfied");
                (HealthStatus::Suspended, message)
            } else {
                let message = "managed clusters are selected, but none has its work yet";
                (HealthStatus::Progressing, message.to_owned())
            };
        }
        let message = if verified.reason == "PlacementDecisionNotFound" {
            let names = self.placement_names();
            let namespace = get_text(self.metadata, "namespace").unwrap_or("without a name");
            format!("no such Placement in namespace {namespace}: {names}")
        } else {
            let reason = match verified.reason {
                "" => "no reason given",
                reason => reason,
            };
            verified.message_or(&format!("OCM cannot use its Placements: {reason}"))
        };
        // The same sync may still create the Placement.
        if self.clock.is_in_grace(verified.since) {
            (HealthStatus::Progressing, message)
        } else {
            (HealthStatus::Degraded, message)
        }
    }

    fn placement_names(&self) -> String {
        let names: Vec<&str> = self
            .placements()
            .filter_map(|placement| get_text(placement, "name"))
            .collect();
        names.join(" or ")
    }

    fn placements(&self) -> impl Iterator<Item = &Map<'_>> {
        self.spec.maps("placementRefs")
    }

    fn count(&self, name: &str) -> i64 {
        let summary = map(self.status, "summary");
        summary.and_then(|summary| number(summary, name)).unwrap_or(0)
    }

    /// Returns the number of selected clusters and of their groups. OCM reports them in a message, such as `2 (1 / 3 clusters
    /// applied)` for two groups. The counts in OCM's summary include only clusters that have the change.
    fn selected(&self) -> (i64, i64) {
        let (mut selected, mut groups) = (0_i64, 0_i64);
        for placement in self.status.maps("placementSummary") {
            let numbers = numbers(text_of(placement, "availableDecisionGroups"));
            groups = groups.saturating_add(*numbers.first().unwrap_or(&0));
            selected = selected.saturating_add(*numbers.get(2).unwrap_or(&0));
        }
        (selected.max(self.count("total")), groups)
    }

    /// Returns the maximum duration of the rollout so far, if known: each cluster that has the change may use up its deadline,
    /// and must stay healthy for the minimum time.
    fn time_allowed(&self) -> Option<i64> {
        let mut placements = self.placements();
        let strategy = map(placements.next()?, "rolloutStrategy")?;
        if placements.next().is_some() {
            return None;
        }
        let by_group = text_of(strategy, "type") == "ProgressivePerGroup";
        let key = if by_group { "progressivePerGroup" } else { "progressive" };
        let how = map(strategy, key)?;
        let deadline = seconds(text_of(how, "progressDeadline"))?;
        let (selected, groups) = self.selected();
        let mut turns = self.count("total");
        if by_group {
            turns = turns.min(groups);
        } else if how.maps("mandatoryDecisionGroups").next().is_none() {
            let at_a_time = match how.get("maxConcurrency") {
                Some(Value::Int(count)) => *count,
                Some(Value::String(share)) => {
                    let percent = numbers(share).first().copied();
                    percent.map_or(0, |percent| selected.saturating_mul(percent).saturating_add(99) / 100)
                }
                _ => 0,
            };
            let at_a_time = if at_a_time < 1 { selected } else { at_a_time };
            if turns > 0 {
                turns = turns
                    .saturating_add(at_a_time.saturating_sub(1))
                    .checked_div(at_a_time)
                    .unwrap_or(turns);
            }
        }
        let settle = seconds(text_of(how, "minSuccessTime")).unwrap_or(0);
        Some(
            turns
                .saturating_mul(deadline.saturating_add(settle))
                .saturating_add(GRACE),
        )
    }

    /// Returns true if a condition rule sets Progressing on the works: OCM needs it to call a rollout complete.
    fn has_rule(&self) -> bool {
        let Some(template) = map(self.spec, TEMPLATE) else {
            return false;
        };
        let rules = template
            .maps("manifestConfigs")
            .flat_map(|config| config.maps("conditionRules"));
        rules
            .into_iter()
            .any(|rule| text_of(rule, "condition") == "Progressing")
    }

    /// Returns true if the rollout updates all clusters at once.
    fn is_at_once(&self) -> bool {
        let kind = |placement| map(placement, "rolloutStrategy").and_then(|strategy| get_text(strategy, "type"));
        self.placements()
            .all(|placement| kind(placement).unwrap_or("All") == "All")
    }
}

fn numbers(text: &str) -> Vec<i64> {
    let digits = text.split(|char: char| !char.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

/// Returns the seconds of a duration in Go's format.
fn seconds(text: &str) -> Option<i64> {
    i64::try_from(duration::parse(text).ok()?.as_secs()).ok()
}
