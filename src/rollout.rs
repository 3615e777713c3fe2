//! Rollouts of ManifestWorkReplicaSets over the clusters of a Placement: their state, and the changes that continue them or take them
//! back.
//!
//! OCM keeps no history. The previous content is in the works that the rollout has not reached, and a stopped rollout goes on when its
//! strategy tolerates the clusters that stop it.

use crate::diff;
use crate::diff::{ComparedWork, DiffStyle};
use crate::list::List;
use crate::table;
use crate::workload::object_ref;
use hub_state::json::borrowed;
use jiff::{SignedDuration, Timestamp};
use manifest::text::count;
use ocm::duration;
use ocm::health::{HealthStatus, WorkStatus};
use ocm::hold::Hold;
use ocm::merge_patch;
use ocm::ownership::OF_REPLICA_SET;
use ocm::pull_model::LAST_APPLIED;
use ocm::work::{TEMPLATE, WORKLOAD, Work};
use ocm::zeros::remove_zeros;
use primitives::object_ref::ObjectRef;
use primitives::{hash, time_math};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const GROUP_NAME: &str = "cluster.open-cluster-management.io/decision-group-name";
const GROUP_INDEX: &str = "cluster.open-cluster-management.io/decision-group-index";

/// The annotation of a set with two hashes, separated by a blank: of the content that `rollout undo` has replaced, so that it is not taken
/// for the previous one, and of the content that it has restored, so that an interrupted command can be repeated.
const UNDONE: &str = "argocd-ocm-cmp.github.io/rollout-undone";

/// The state of a rollout on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum RolloutState {
    /// The cluster has the current content, and an object is broken, or its deadline has passed.
    Failed,
    /// The cluster has the current content, and its agent works on it.
    Updating,
    /// The cluster is on hold, and has another content.
    OnHold,
    /// The cluster has another content, or no work.
    Waiting,
    /// The cluster has the current content, and OCM counts it as done.
    Updated,
}

/// A managed cluster that the ManifestWorkReplicaSet selects, and how far the rollout is there.
#[derive(Clone, Debug)]
pub(crate) struct RolloutCluster {
    /// The managed cluster.
    pub(crate) name: String,
    /// The decision group of the Placement: its index, and its name, which may be empty.
    group: (u32, String),
    pub(crate) state: RolloutState,
    /// The reason for the state; empty if there is none.
    pub(crate) message: String,
    /// True if the agent has applied the current content. OCM waits for a cluster with other content, and never counts it as a failure.
    is_applied: bool,
    /// True if the cluster exceeded the progress deadline, so that OCM counts it as a failure. Its state is `Failed`.
    is_late: bool,
    /// The content of its work.
    spec: Option<Value>,
}

impl RolloutCluster {
    /// Describes a cluster for which OCM waits.
    fn describe_block(&self) -> String {
        let name = &self.name;
        if self.state == RolloutState::OnHold {
            return format!(
                "managed cluster {name} is on hold, and OCM waits for every cluster of a group: run argocd-ocm-cmp release {name}"
            );
        }
        format!(
            "managed cluster {name} has not applied the content, and OCM waits for every cluster of a group: repair it, or run \
             argocd-ocm-cmp rollout undo"
        )
    }
}

/// A ManifestWorkReplicaSet, and how far its rollout is on each cluster.
#[derive(Clone, Debug)]
pub(crate) struct Rollout {
    set: Value,
    /// The clusters, in the order of the groups.
    pub(crate) clusters: Vec<RolloutCluster>,
}

/// A change of a ManifestWorkReplicaSet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SetChange {
    /// The merge patch, for the version that was read.
    pub(crate) patch: Value,
    /// What it does, for people.
    pub(crate) summary: String,
    /// The content of a work that all clusters get.
    pub(crate) content: Option<Value>,
}

impl Rollout {
    /// Creates the rollout of a set from the works of its Application, the decisions of its Placement and the holds.
    pub(crate) fn new(
        set: Value,
        works: &[(Value, WorkStatus)],
        decisions: &[Value],
        holds: &[Hold],
        now: Timestamp,
    ) -> Self {
        let metadata = &set["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let label = format!("{}.{}", text(&metadata["namespace"]), text(&metadata["name"]));
        let of_set: BTreeMap<_, _> = works
            .iter()
            .filter(|(work, _)| work["metadata"]["labels"][OF_REPLICA_SET] == label)
            .map(|(work, status)| (text(&work["metadata"]["namespace"]), (work, status)))
            .collect();
        let mut rollout = Self {
            set,
            clusters: Vec::new(),
        };
        for decision in decisions {
            let labels = &decision["metadata"]["labels"];
            let index = labels[GROUP_INDEX].as_str().and_then(|text| text.parse().ok());
            let group = (index.unwrap_or_default(), text(&labels[GROUP_NAME]));
            for decided in decision["status"]["decisions"].as_array().into_iter().flatten() {
                let name = text(&decided["clusterName"]);
                let hold = holds.iter().find(|hold| hold.cluster == name);
                let work = of_set.get(&name).copied();
                rollout
                    .clusters
                    .push(rollout.cluster(name, group.clone(), work, hold, now));
            }
        }
        rollout
            .clusters
            .sort_by(|one, other| (&one.group, &one.name).cmp(&(&other.group, &other.name)));
        rollout
    }

    fn cluster(
        &self,
        name: String,
        group: (u32, String),
        work: Option<(&Value, &WorkStatus)>,
        hold: Option<&Hold>,
        now: Timestamp,
    ) -> RolloutCluster {
        let is_deleting = work.is_some_and(|(work, _)| !work["metadata"]["deletionTimestamp"].is_null());
        let spec = work.filter(|_| !is_deleting).map(|(work, _)| work["spec"].clone());
        let (mut is_applied, mut is_late) = (false, false);
        let (state, message) = match work {
            // OCM applies the content again when its agent has deleted the objects, and takes the rollout for complete until then.
            Some((_, status)) if is_deleting => (RolloutState::Updating, status.summary()),
            Some((work, status)) if is_same(&work["spec"], &self.set["spec"][TEMPLATE]) => {
                let progressing = Self::progressing(work);
                is_applied = progressing.is_some();
                is_late = progressing.is_some_and(|(is_progressing, since)| is_progressing && self.is_late(since, now));
                if progressing.is_some_and(|(is_progressing, _)| !is_progressing) {
                    (RolloutState::Updated, String::new())
                } else if is_late || matches!(status.health, HealthStatus::Degraded | HealthStatus::Missing) {
                    (RolloutState::Failed, status.summary())
                } else {
                    (RolloutState::Updating, status.summary())
                }
            }
            _ => match hold {
                Some(hold) => (RolloutState::OnHold, hold.state()),
                None => (RolloutState::Waiting, String::new()),
            },
        };
        RolloutCluster {
            name,
            group,
            state,
            message,
            is_applied,
            is_late,
            spec,
        }
    }

    /// Returns OCM's view of a work whose agent has seen the current content: if it is progressing, and since when.
    fn progressing(work: &Value) -> Option<(bool, Option<Timestamp>)> {
        let condition = |kind: &str| {
            let mut all = work["status"]["conditions"].as_array()?.iter();
            let entry = all.find(|value| value["type"] == kind)?;
            (entry["observedGeneration"] == work["metadata"]["generation"]).then_some(entry)
        };
        condition("Applied").filter(|condition| condition["status"] == "True")?;
        let progressing = condition("Progressing")?;
        let since = progressing["lastTransitionTime"]
            .as_str()
            .and_then(|time| time.parse().ok());
        Some((progressing["status"] != "False", since))
    }

    fn is_late(&self, since: Option<Timestamp>, now: Timestamp) -> bool {
        let deadline = self.strategy()["progressDeadline"].as_str();
        let deadline = deadline.and_then(|deadline| SignedDuration::try_from(duration::parse(deadline).ok()?).ok());
        let end = since
            .zip(deadline)
            .map(|(since, deadline)| time_math::after(since, deadline));
        end.is_some_and(|end| end <= now)
    }

    /// Returns the set as it was read.
    pub(crate) const fn set(&self) -> &Value {
        &self.set
    }

    /// Returns the namespace and the name of the set.
    pub(crate) fn object_ref(&self) -> ObjectRef {
        object_ref(&self.set)
    }

    fn kind(&self) -> &str {
        let kind = &self.set["spec"]["placementRefs"][0]["rolloutStrategy"]["type"];
        kind.as_str().unwrap_or("All")
    }

    /// Returns the field with the settings of the strategy.
    fn strategy_field(&self) -> &'static str {
        match self.kind() {
            "Progressive" => "progressive",
            "ProgressivePerGroup" => "progressivePerGroup",
            _ => "all",
        }
    }

    fn strategy(&self) -> &Value {
        &self.set["spec"]["placementRefs"][0]["rolloutStrategy"][self.strategy_field()]
    }

    fn with_state(&self, state: RolloutState) -> impl Iterator<Item = &RolloutCluster> {
        self.clusters.iter().filter(move |cluster| cluster.state == state)
    }

    /// Returns true if all clusters have the current content, and there are some: a Placement that selects none, does not exist, or
    /// is not decided yet, is no success.
    pub(crate) fn is_complete(&self) -> bool {
        !self.clusters.is_empty() && self.with_state(RolloutState::Updated).count() == self.clusters.len()
    }

    /// Returns true if a cluster has another content.
    pub(crate) fn is_open(&self) -> bool {
        !self.clusters.is_empty() && !self.is_complete()
    }

    /// Returns the numbers of failures and of all clusters, for each group whose failures OCM counts together.
    fn count_failures(&self, is_failure: impl Fn(&RolloutCluster) -> bool) -> Vec<(usize, usize)> {
        let is_by_group = self.kind() == "ProgressivePerGroup";
        let mut groups: BTreeMap<_, (usize, usize)> = BTreeMap::new();
        for cluster in &self.clusters {
            let (failures, all) = groups.entry(is_by_group.then_some(cluster.group.0)).or_default();
            *failures += usize::from(is_failure(cluster));
            *all += 1;
        }
        groups.into_values().collect()
    }

    /// Returns true if OCM changes no further cluster, because too many failed.
    fn is_stopped(&self) -> bool {
        let tolerated = if self.has_mandatory() {
            &Value::Null
        } else {
            &self.strategy()["maxFailures"]
        };
        let groups = self.count_failures(|cluster| cluster.is_late);
        self.kind() != "All" && !self.changes_mandatory() && are_too_many(&groups, tolerated)
    }

    /// Describes the state in one line.
    pub(crate) fn headline(&self) -> String {
        let (all, updated) = (self.clusters.len(), self.with_state(RolloutState::Updated).count());
        let numbers = format!("{updated} of {} updated", count(all, "cluster"));
        let blocking = || {
            let states = [RolloutState::Failed, RolloutState::Updating, RolloutState::OnHold];
            states.into_iter().find_map(|state| self.with_state(state).next())
        };
        match blocking() {
            _ if self.is_complete() => format!("complete, {numbers}"),
            Some(cluster) if self.is_stopped() => format!("stopped at {}, {numbers}", cluster.name),
            Some(cluster) => format!("waits for {}, {numbers}", cluster.name),
            None if self.clusters.is_empty() => {
                let placement = placement_of(&self.set);
                format!(
                    "its Placement {placement} selects no managed cluster: see the condition PlacementSatisfied of the Placement"
                )
            }
            None => format!("in progress, {numbers}"),
        }
    }

    /// Returns the change that lets a rollout go on without the clusters that stop it, with the settings that do the same; `None` if none
    /// stops it.
    pub(crate) fn resume(&self) -> Result<Option<SetChange>, String> {
        if self.with_state(RolloutState::Waiting).next().is_none() {
            return Ok(None);
        }
        let failed: Vec<_> = self.with_state(RolloutState::Failed).collect();
        let held = self.with_state(RolloutState::OnHold).count();
        let mandatory = |state| self.with_state(state).find(|cluster| self.is_mandatory(cluster));
        if let Some(cluster) = mandatory(RolloutState::Failed) {
            return Err(format!(
                "managed cluster {} is in one of rollout-groups, which must all succeed: repair it, or run argocd-ocm-cmp rollout undo",
                cluster.name
            ));
        }
        if let Some(cluster) = mandatory(RolloutState::OnHold) {
            return Err(cluster.describe_block());
        }
        let fields = if failed.is_empty() && held == 0 || self.changes_mandatory() {
            Vec::new()
        } else {
            self.tolerant_fields(&failed, held)?
        };
        if fields.is_empty() {
            return Ok(None);
        }
        let mut placements = self.set["spec"]["placementRefs"].clone();
        let mut settings = Vec::new();
        for (field, setting, value) in fields {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            settings.push(format!("{setting}={text}"));
            placements[0]["rolloutStrategy"][self.strategy_field()][field] = value;
        }
        Ok(Some(SetChange {
            patch: json!({"metadata": self.version(), "spec": {"placementRefs": placements}}),
            summary: settings.join(" "),
            content: None,
        }))
    }

    /// Returns true if clusters are in groups that must succeed before all others. OCM then searches all groups for failures, and tolerates
    /// none.
    fn has_mandatory(&self) -> bool {
        self.clusters.iter().any(|cluster| self.is_mandatory(cluster))
    }

    /// Returns true if the rollout stops for good when this cluster fails.
    fn is_mandatory(&self, cluster: &RolloutCluster) -> bool {
        let mandatory = self.strategy()["mandatoryDecisionGroups"].as_array();
        let has_cluster = |group: &Value| match group["groupName"].as_str() {
            Some(name) if !name.is_empty() => name == cluster.group.1,
            _ => group["groupIndex"].as_u64().unwrap_or_default() == u64::from(cluster.group.0),
        };
        mandatory.into_iter().flatten().any(has_cluster)
    }

    /// Returns true if OCM still changes clusters of the mandatory groups: none after the first group with a late cluster.
    fn changes_mandatory(&self) -> bool {
        let mut mandatory = self.clusters.iter().filter(|cluster| self.is_mandatory(cluster));
        let late = mandatory.clone().find(|cluster| cluster.is_late);
        mandatory.any(|cluster| match cluster.state {
            RolloutState::Updating => true,
            RolloutState::Waiting => late.is_none_or(|late| cluster.group.0 <= late.group.0),
            _ => false,
        })
    }

    /// Returns the fields of the strategy that must change to go on without the `failed` clusters, each with its setting and its value;
    /// `held` is the number of clusters on hold.
    fn tolerant_fields(
        &self,
        failed: &[&RolloutCluster],
        held: usize,
    ) -> Result<Vec<(&'static str, &'static str, Value)>, String> {
        let has_deadline = self.strategy()["progressDeadline"]
            .as_str()
            .is_some_and(|progress_deadline| progress_deadline != "None");
        let late = failed.iter().filter(|cluster| cluster.is_late).count();
        // A cluster without a deadline, or before it, keeps its place among those that change at a time.
        let blocking = failed.len() - late + held;
        let mut fields = Vec::new();
        // They have succeeded. As long as there are any, OCM waits for each cluster that it has changed, whatever it tolerates.
        let drops_groups = self.has_mandatory() && failed.iter().any(|cluster| cluster.is_applied);
        if drops_groups {
            fields.push(("mandatoryDecisionGroups", "rollout-groups", json!([])));
        }
        let tolerated = &self.strategy()["maxFailures"];
        let all = self.clusters.len();
        match self.kind() {
            "Progressive" => {
                let failures = if has_deadline { failed.len() } else { late };
                if failures > share(tolerated, all, 0) {
                    fields.push(("maxFailures", "rollout-max-failures", json!(failures)));
                }
                let at_a_time = share(&self.strategy()["maxConcurrency"], all, all);
                if blocking > 0 && at_a_time < all {
                    let at_a_time = (at_a_time + blocking).min(all);
                    fields.push(("maxConcurrency", "rollout-max-concurrency", json!(at_a_time)));
                }
            }
            "ProgressivePerGroup" if has_deadline => {
                let is_blocker = |cluster: &RolloutCluster| match cluster.state {
                    RolloutState::OnHold => true,
                    RolloutState::Failed => !cluster.is_applied,
                    _ => false,
                };
                let is_failure = |cluster: &RolloutCluster| cluster.state == RolloutState::Failed && cluster.is_applied;
                let count_up_to = |group: u32, is_counted: &dyn Fn(&RolloutCluster) -> bool| {
                    let counted = |cluster: &&RolloutCluster| cluster.group.0 <= group && is_counted(cluster);
                    self.clusters.iter().filter(counted).count()
                };
                // OCM subtracts the failures in a group and in those before it from the clusters for which it waits.
                let blocker = self.clusters.iter().find(|cluster| {
                    let group = cluster.group.0;
                    is_blocker(cluster) && count_up_to(group, &is_blocker) > count_up_to(group, &is_failure)
                });
                let next = self.with_state(RolloutState::Waiting).next();
                let is_before = |cluster: &&RolloutCluster| next.is_some_and(|next| cluster.group.0 <= next.group.0);
                if let Some(cluster) = blocker.filter(is_before) {
                    return Err(cluster.describe_block());
                }
                let groups = self.count_failures(|cluster| cluster.state == RolloutState::Failed);
                // A number above that of the clusters of a small group would count as 0 there. OCM rounds up, so this is the lowest
                // percentage that tolerates as many failures.
                let percent = groups.iter().map(|(failures, all)| {
                    let tolerable = share(tolerated, *all, 0).max(*failures);
                    tolerable.checked_sub(1).map_or(0, |fewer| 100 * fewer / all + 1)
                });
                if let Some(percent) = percent.max().filter(|_| are_too_many(&groups, tolerated)) {
                    fields.push(("maxFailures", "rollout-max-failures", json!(format!("{percent}%"))));
                }
            }
            "ProgressivePerGroup" => {
                return Err(
                    "without rollout-progress-deadline, OCM waits for every cluster of a group: set it in the Application".to_owned(),
                );
            }
            kind => {
                let name = self.object_ref();
                return Err(format!(
                    "ManifestWorkReplicaSet {name} has a rollout of the type {kind}, which never waits"
                ));
            }
        }
        if self.has_mandatory() && !drops_groups {
            // It would have no effect, and the plugin refuses it beside groups.
            fields.retain(|(field, ..)| *field != "maxFailures");
        }
        Ok(fields)
    }

    fn version(&self) -> Value {
        json!({"resourceVersion": self.set["metadata"]["resourceVersion"]})
    }

    /// Returns the change that gives all clusters the content that those have which the rollout has not reached, or that of one cluster;
    /// `None` while they return to the earlier content already.
    pub(crate) fn undo(&self, like: Option<&str>) -> Result<Option<SetChange>, String> {
        let name = self.object_ref();
        let template = &self.set["spec"][TEMPLATE];
        let undone = self.set["metadata"]["annotations"][UNDONE].as_str().unwrap_or_default();
        let (replaced, restored) = undone.split_once(' ').unwrap_or((undone, ""));
        // Each with the first cluster that has it.
        let mut contents: Vec<(&Value, &str)> = Vec::new();
        for cluster in self
            .clusters
            .iter()
            .filter(|cluster| like.is_none_or(|like| like == cluster.name))
        {
            let earlier = cluster
                .spec
                .as_ref()
                .filter(|spec| !is_same(spec, template) && hashed(spec) != replaced);
            if let Some(spec) = earlier
                && !contents.iter().any(|(content, _)| is_same(content, spec))
            {
                contents.push((spec, &cluster.name));
            }
        }
        let content = match (&contents[..], like) {
            ([(content, _)], _) => *content,
            ([], _) if hashed(template) == restored && self.is_open() => return Ok(None),
            ([], Some(like)) => {
                return Err(format!(
                    "managed cluster {like} has no earlier content of ManifestWorkReplicaSet {name}"
                ));
            }
            ([], None) => {
                return Err(format!(
                    "no managed cluster has an earlier content of ManifestWorkReplicaSet {name}: revert the commit in Git, or run argocd \
                     app rollback"
                ));
            }
            (several, _) => {
                let examples: Vec<_> = several.iter().map(|(_, cluster)| *cluster).collect();
                return Err(format!(
                    "managed clusters have {} different earlier contents of ManifestWorkReplicaSet {name}: choose one with --like {}",
                    several.len(),
                    examples.join(" or --like ")
                ));
            }
        };
        let mut metadata = self.version();
        metadata["annotations"] = json!({UNDONE: format!("{} {}", hashed(template), hashed(content))});
        if let Some(record) = self.record_as_applied(content) {
            metadata["annotations"][LAST_APPLIED] = record.into();
        }
        let changing = self
            .clusters
            .iter()
            .filter(|cluster| cluster.spec.as_ref().is_some_and(|spec| is_same(spec, template)))
            .count();
        Ok(Some(SetChange {
            patch: json!({"metadata": metadata, "spec": {TEMPLATE: merge_patch::between(template, content).unwrap_or_else(|| json!({}))}}),
            summary: format!("{} to take back", count(changing, "cluster")),
            content: Some(content.clone()),
        }))
    }

    /// Returns the record of the last client-side apply with the fields of a content, such as its executor: a later apply only removes
    /// recorded fields. Without a record, Argo CD applies server-side, and removes fields of the field manager of client-side applies.
    fn record_as_applied(&self, content: &Value) -> Option<String> {
        let record = self.set["metadata"]["annotations"][LAST_APPLIED].as_str()?;
        let mut record: Value = serde_json::from_str(record).ok()?;
        let template = record.get_mut("spec")?.get_mut(TEMPLATE)?.as_object_mut()?;
        let mut fields = essential(content).as_object_mut().map(std::mem::take)?;
        // Lists are replaced as a whole.
        fields.retain(|field, value| field != WORKLOAD && value.is_object());
        template.extend(fields);
        Some(record.to_string())
    }

    /// Formats the difference between the content of the set and another, as `diff` does.
    pub(crate) fn format_difference(&self, content: &Value) -> String {
        let with_content = |content: &Value| {
            let mut set = self.set.clone();
            set["spec"][TEMPLATE] = essential(content);
            set
        };
        let (before, after) = (with_content(&self.set["spec"][TEMPLATE]), with_content(content));
        let parse = |set| Work::new(borrowed(set)).ok().map(ComparedWork::from);
        let changes = match (parse(&before), parse(&after)) {
            (Some(before), Some(after)) => diff::compare(&[before], &[after], true),
            _ => Vec::new(),
        };
        let style = DiffStyle {
            colours: false,
            live: "hub".to_owned(),
            changed: "earlier",
        };
        diff::format_changes(&changes, &style)
    }
}

/// Returns the namespace and the name of the Placement of a ManifestWorkReplicaSet.
pub(crate) fn placement_of(set: &Value) -> ObjectRef {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = &set["spec"]["placementRefs"][0]["name"];
    ObjectRef::new(&text(&set["metadata"]["namespace"]), &text(name))
}

/// Returns true if OCM takes two contents for the same: it writes fields of works that have no value, and drops others.
fn is_same(one: &Value, other: &Value) -> bool {
    essential(one) == essential(other)
}

fn hashed(content: &Value) -> String {
    hash::hash([essential(content).to_string()], 16)
}

/// Returns a content without the fields that have no value. Objects stay as they are.
fn essential(content: &Value) -> Value {
    let mut essential = content.clone();
    let objects = essential.pointer_mut("/workload/manifests").map(Value::take);
    remove_zeros(&mut essential);
    essential["workload"] = json!({"manifests": objects});
    essential
}

/// Returns true if a group has more failures than are tolerated.
fn are_too_many(groups: &[(usize, usize)], tolerated: &Value) -> bool {
    groups
        .iter()
        .any(|(failures, all)| *failures > share(tolerated, *all, 0))
}

/// Returns a number of clusters that OCM reads as a number or a percentage; as for OCM, 0 and more than all mean the default. OCM rounds
/// floats up: 7 % of 100 clusters are 8.
fn share(value: &Value, all: usize, default: usize) -> usize {
    let percent = value
        .as_str()
        .and_then(|value| value.strip_suffix('%')?.parse::<f64>().ok());
    let number = match percent {
        Some(percent) => {
            let clusters = u32::try_from(all).unwrap_or(u32::MAX);
            let exact = percent / 100.0 * f64::from(clusters);
            (0..=clusters).position(|number| f64::from(number) >= exact)
        }
        None => value.as_u64().and_then(|number| usize::try_from(number).ok()),
    };
    number.filter(|number| (1..=all).contains(number)).unwrap_or(default)
}

impl List for [Rollout] {
    fn table(&self, _: bool, _: bool) -> String {
        let mut text = String::new();
        for rollout in self {
            let rows = rollout.clusters.iter().map(|cluster| {
                let group = if cluster.group.1.is_empty() {
                    cluster.group.0.to_string()
                } else {
                    cluster.group.1.clone()
                };
                [
                    cluster.name.clone(),
                    group,
                    format!("{:?}", cluster.state),
                    cluster.message.clone(),
                ]
            });
            if !text.is_empty() {
                text.push('\n');
            }
            let (name, headline) = (rollout.object_ref().to_string(), rollout.headline());
            text.extend(["ManifestWorkReplicaSet ", &name, ": ", &headline, "\n"]);
            text.push_str(&table::lines(&["CLUSTER", "GROUP", "STATE", "MESSAGE"], rows));
        }
        text
    }

    fn to_json(&self) -> Value {
        let cluster = |cluster: &RolloutCluster| {
            json!({
                "cluster": cluster.name,
                "group": cluster.group.1,
                "message": cluster.message,
                "state": cluster.state,
            })
        };
        let rollouts = self.iter().map(|rollout| {
            json!({
                "clusters": rollout.clusters.iter().map(cluster).collect::<Vec<_>>(),
                "complete": rollout.is_complete(),
                "name": rollout.object_ref().to_string(),
                "stopped": rollout.is_stopped(),
                "summary": rollout.headline(),
            })
        });
        rollouts.collect()
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|rollout| rollout.object_ref().to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ocm::health::{Clock, evaluate};

    const NOW: &str = "2026-06-01T12:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().expect("a time")
    }

    fn content(version: &str) -> Value {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "labels": {"version": version}}});
        let configs = json!([{"resourceIdentifier": {"name": "settings"}}]);
        let mut content = json!({"manifestConfigs": configs, "workload": {"manifests": [object]}});
        if version == "1" {
            content["executor"] = json!({"subject": {"type": "ServiceAccount"}});
        }
        content
    }

    /// Adds fields without a value, as OCM does.
    fn as_ocm_writes(mut content: Value) -> Value {
        content["manifestConfigs"] =
            json!([{"resourceIdentifier": {"group": "", "name": "settings"}, "feedbackRules": null}]);
        content
    }

    fn set(strategy: &Value) -> Value {
        json!({
            "metadata": {
                "namespace": "argocd", "name": "shop-x1", "resourceVersion": "7",
                "annotations": {LAST_APPLIED: json!({"spec": {TEMPLATE: content("2")}}).to_string()},
            },
            "spec": {
                TEMPLATE: content("2"),
                "placementRefs": [{"name": "fleet", "rolloutStrategy": {"type": "Progressive", "progressive": strategy}}],
            },
        })
    }

    /// Returns a rollout over three clusters, each with its version and the state of the condition `Progressing`, since 11:00. Without
    /// that state, the agent has not applied the version.
    fn rollout(strategy: &Value, clusters: [(&str, &str); 3], holds: &[Hold]) -> Rollout {
        let names = ["eu1", "eu2", "eu3"];
        let works = names.into_iter().zip(clusters).map(|(cluster, (version, progressing))| {
            let condition = |kind: &str, status: &str| {
                json!({"type": kind, "status": status, "observedGeneration": 1, "lastTransitionTime": "2026-06-01T11:00:00Z"})
            };
            let (applied, refused) = match progressing {
                "" => ("False", json!([{"conditions": [condition("Applied", "False")]}])),
                _ => ("True", json!([])),
            };
            let work = json!({
                "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
                "metadata": {
                    "namespace": cluster, "name": "shop-x1", "generation": 1, "labels": {OF_REPLICA_SET: "argocd.shop-x1"},
                },
                "spec": as_ocm_writes(content(version)),
                "status": {
                    "conditions": [condition("Applied", applied), condition("Progressing", progressing)],
                    "resourceStatus": {"manifests": refused},
                },
            });
            let status = evaluate(&work.to_string(), &Clock::at(now())).expect("a work");
            (work, status)
        });
        let works: Vec<_> = works.collect();
        let decided: Vec<_> = names.map(|name| json!({"clusterName": name})).into();
        let decision = json!({"metadata": {"labels": {GROUP_INDEX: "0"}}, "status": {"decisions": decided}});
        Rollout::new(set(strategy), &works, &[decision], holds, now())
    }

    fn hold(cluster: &str) -> Hold {
        Hold {
            cluster: cluster.to_owned(),
            until: None,
            reason: Some("audit".to_owned()),
        }
    }

    fn states(rollout: &Rollout) -> Vec<String> {
        rollout
            .clusters
            .iter()
            .map(|cluster| format!("{:?}", cluster.state))
            .collect()
    }

    /// Returns the settings with which `rollout resume` continues, or why it does not.
    fn resumed(rollout: &Rollout) -> String {
        match rollout.resume() {
            Ok(Some(change)) => change.summary,
            Ok(None) => "is not stopped".to_owned(),
            Err(line) => line,
        }
    }

    const CANARY_FAILS: [(&str, &str); 3] = [("2", "True"), ("1", "False"), ("1", "False")];

    #[test]
    fn resume_tolerates_the_clusters_that_stop_the_rollout() {
        let strategy = json!({"maxConcurrency": 1, "maxFailures": 0, "progressDeadline": "30m"});
        let stopped = rollout(&strategy, CANARY_FAILS, &[]);
        assert_eq!(states(&stopped), ["Failed", "Waiting", "Waiting"]);
        assert_eq!(stopped.headline(), "stopped at eu1, 0 of 3 clusters updated");
        let change = stopped.resume().expect("it is possible").expect("a change");
        assert_eq!(change.summary, "rollout-max-failures=1");
        let progressive = &change.patch["spec"]["placementRefs"][0]["rolloutStrategy"]["progressive"];
        assert_eq!(
            progressive,
            &json!({"maxConcurrency": 1, "maxFailures": 1, "progressDeadline": "30m"})
        );
        assert_eq!(change.patch["metadata"], json!({"resourceVersion": "7"}));

        let strategy = json!({"maxConcurrency": "34%", "maxFailures": 0, "progressDeadline": "None"});
        let waiting = rollout(
            &strategy,
            [("2", "False"), ("1", "False"), ("1", "False")],
            &[hold("eu2")],
        );
        assert_eq!(states(&waiting), ["Updated", "OnHold", "Waiting"]);
        assert_eq!(waiting.headline(), "waits for eu2, 1 of 3 clusters updated");
        assert_eq!(resumed(&waiting), "rollout-max-concurrency=3");
    }

    #[test]
    fn shares_are_those_of_ocm() {
        for (value, expected) in [
            (json!(7), 7),
            (json!("7%"), 8),
            (json!("12.5%"), 13),
            (json!("100%"), 100),
            (json!("0%"), 50),
            (json!("101%"), 50),
            (json!("-1%"), 50),
            (json!(101), 50),
            (json!("many"), 50),
        ] {
            assert_eq!(share(&value, 100, 50), expected, "{value}");
        }
    }

    #[test]
    fn resume_tolerates_no_less_than_before() {
        let of_groups = |max_failures: u32, clusters, holds: &[Hold]| {
            let strategy = json!({"maxFailures": max_failures, "progressDeadline": "30m"});
            let mut rollout = rollout(&strategy, clusters, holds);
            rollout.set["spec"]["placementRefs"][0]["rolloutStrategy"] =
                json!({"type": "ProgressivePerGroup", "progressivePerGroup": strategy});
            resumed(&rollout)
        };
        assert_eq!(of_groups(0, CANARY_FAILS, &[]), "rollout-max-failures=1%");
        assert_eq!(of_groups(2, CANARY_FAILS, &[]), "is not stopped");
        let eu2_held = [hold("eu2")];
        let waiting = [("2", "False"), ("1", "False"), ("1", "False")];
        assert!(of_groups(2, waiting, &eu2_held).ends_with("argocd-ocm-cmp release eu2"));
        // OCM reads a number above that of the clusters as all.
        let strategy = json!({"maxConcurrency": 10, "maxFailures": 0, "progressDeadline": "None"});
        assert_eq!(resumed(&rollout(&strategy, waiting, &eu2_held)), "is not stopped");
    }

    /// OCM's own code agrees for thousands of simulated rollouts.
    #[test]
    fn resume_knows_for_which_clusters_ocm_waits() {
        // With mandatory groups, OCM tolerates a late cluster in no group; without, it waits for each cluster of a group.
        for (mandatory, clusters, headline, expected) in [
            (true, "updated late waiting", "stopped at eu2", "rollout-groups=[]"),
            (
                true,
                "updated refused waiting",
                "waits for eu2",
                "rollout-max-concurrency=2",
            ),
            (
                true,
                "held waiting waiting",
                "waits for eu1",
                "argocd-ocm-cmp release eu1",
            ),
            (true, "waiting late waiting", "waits for eu2", "is not stopped"),
            (
                false,
                "refused waiting waiting",
                "waits for eu1",
                "eu1 has not applied the content",
            ),
            (
                false,
                "updated held waiting",
                "waits for eu2",
                "argocd-ocm-cmp release eu2",
            ),
            // Each failure that OCM tolerates lets it pass one cluster for which it waits.
            (false, "late held waiting", "waits for eu1", "is not stopped"),
        ] {
            let words: Vec<_> = clusters.split(' ').collect();
            let state = |at: usize| match words[at] {
                "updated" => ("2", "False"),
                "late" => ("2", "True"),
                "refused" => ("2", ""),
                _ => ("1", "False"),
            };
            let held = ["eu1", "eu2", "eu3"]
                .into_iter()
                .zip(&words)
                .filter(|(_, word)| **word == "held");
            let holds: Vec<_> = held.map(|(name, _)| hold(name)).collect();
            let mut strategy = json!({"maxConcurrency": 1, "maxFailures": "100%", "progressDeadline": "30m"});
            if mandatory {
                strategy["mandatoryDecisionGroups"] = json!([{"groupIndex": 0}]);
                strategy["maxFailures"] = 0.into();
            }
            let mut rollout = rollout(&strategy, [state(0), state(1), state(2)], &holds);
            if !mandatory {
                rollout.set["spec"]["placementRefs"][0]["rolloutStrategy"] =
                    json!({"type": "ProgressivePerGroup", "progressivePerGroup": strategy});
            }
            for (index, cluster) in (0..).zip(&mut rollout.clusters) {
                cluster.group.0 = index;
            }
            assert!(
                rollout.headline().starts_with(headline),
                "{clusters}: {}",
                rollout.headline()
            );
            let line = resumed(&rollout);
            assert!(line.contains(expected), "{clusters}: {line}");
            let raises_failures = line.contains("max-failures");
            assert!(
                !mandatory || !raises_failures || line.contains("groups"),
                "{clusters}: {line}"
            );
        }
    }

    #[test]
    fn rollout_over_no_cluster_is_not_complete() {
        let rollout = Rollout::new(set(&json!({})), &[], &[], &[], now());
        assert!(!rollout.is_complete());
        assert_eq!(
            rollout.headline(),
            "its Placement argocd/fleet selects no managed cluster: see the condition PlacementSatisfied of the Placement"
        );
    }

    /// Its cluster has left the Placement and returned, while its agent was away.
    #[test]
    fn a_work_that_is_being_deleted_has_no_current_content() {
        let complete = rollout(&json!({}), [("2", "False"); 3], &[]);
        let mut work = json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"namespace": "eu1", "name": "shop-x1", "deletionTimestamp": NOW},
            "spec": complete.set["spec"][TEMPLATE],
        });
        let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
        work["status"]["conditions"] = json!([condition("Applied", "True"), condition("Progressing", "False")]);
        let status = evaluate(&work.to_string(), &Clock::at(now())).expect("a work");
        let cluster = complete.cluster(
            "eu1".to_owned(),
            (0, String::new()),
            Some((&work, &status)),
            None,
            now(),
        );
        assert_eq!((cluster.state, cluster.spec), (RolloutState::Updating, None));
        assert!(
            cluster.message.contains("is removing its objects"),
            "{}",
            cluster.message
        );
    }

    #[test]
    fn resume_changes_nothing_that_is_not_stopped() {
        let strategy = json!({"maxConcurrency": 1, "maxFailures": 0, "progressDeadline": "2h"});
        let updating = rollout(&strategy, CANARY_FAILS, &[]);
        assert_eq!(states(&updating), ["Updating", "Waiting", "Waiting"]);
        assert_eq!(updating.resume(), Ok(None));
        let complete = rollout(&strategy, [("2", "False"); 3], &[]);
        assert!(complete.is_complete());
        assert_eq!(complete.resume(), Ok(None));
        let mandatory =
            json!({"maxFailures": 0, "progressDeadline": "30m", "mandatoryDecisionGroups": [{"groupIndex": 0}]});
        let mandatory = rollout(&mandatory, CANARY_FAILS, &[]);
        assert!(mandatory.resume().is_err_and(|line| line.contains("must all succeed")));
    }

    #[test]
    fn undo_returns_to_the_content_of_clusters_that_were_not_reached() {
        let strategy = json!({"maxConcurrency": 1});
        let undo = |rollout: &Rollout, like| {
            let change = rollout.undo(like).expect("it is possible").expect("a change");
            let mut undone = set(&strategy);
            testing::merge(&mut undone, &change.patch);
            undone
        };
        let undone = undo(&rollout(&strategy, CANARY_FAILS, &[]), None);
        assert!(is_same(&undone["spec"][TEMPLATE], &content("1")), "{undone}");
        // The next commit has no executor either: Argo CD removes only what it has recorded.
        let record = undone["metadata"]["annotations"][LAST_APPLIED]
            .as_str()
            .expect("a record");
        let record: Value = serde_json::from_str(record).expect("JSON");
        let recorded = &record["spec"][TEMPLATE];
        assert_eq!(recorded["executor"], content("1")["executor"]);
        assert_eq!(recorded["workload"], content("2")["workload"]);
        // A second time, the clusters that are still to be taken back have the content that was undone, if any is left.
        for clusters in [CANARY_FAILS, [("1", "True"), ("1", "False"), ("1", "False")]] {
            let mut again = rollout(&strategy, clusters, &[]);
            again.set = undone.clone();
            assert_eq!((again.undo(None), again.undo(Some("eu2"))), (Ok(None), Ok(None)));
        }
        let new = rollout(&strategy, [("2", "True"), ("2", "False"), ("2", "False")], &[]);
        assert!(
            new.undo(None)
                .is_err_and(|line| line.starts_with("no managed cluster has an earlier content"))
        );

        let several = rollout(&strategy, [("2", "True"), ("1", "False"), ("0", "False")], &[]);
        assert!(
            several
                .undo(None)
                .is_err_and(|line| line.ends_with("choose one with --like eu2 or --like eu3"))
        );
        let undone = undo(&several, Some("eu3"));
        assert!(is_same(&undone["spec"][TEMPLATE], &content("0")), "{undone}");
        assert!(
            several
                .undo(Some("eu1"))
                .is_err_and(|line| line.contains("eu1 has no earlier content"))
        );
    }
}
