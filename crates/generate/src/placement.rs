//! A placement as the target: OCM decides, by a `ManifestWorkReplicaSet`, which clusters receive a ManifestWork and in which
//! order they change.

use manifest::value::{Map, Value};
use ocm::names;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::str::FromStr;

/// A placement and the rollout across its clusters.
#[derive(Clone, Debug)]
pub struct PlacementTarget {
    /// The namespace of the placement and of the `ManifestWorkReplicaSet`s.
    pub namespace: String,
    /// The name of the placement.
    pub name: String,
    /// The rollout across the clusters.
    pub rollout: RolloutStrategy,
}

impl FromStr for PlacementTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || format!("{text:?} is not a placement: write it as NAMESPACE/NAME, like argocd/europe");
        let (namespace, name) = text.split_once('/').ok_or_else(malformed)?;
        if !names::is_dns_subdomain(name) {
            return Err(malformed());
        }
        Ok(Self {
            namespace: names::namespace(namespace).map_err(|error| error.to_string())?,
            name: name.to_owned(),
            rollout: RolloutStrategy::default(),
        })
    }
}

impl Display for PlacementTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl PlacementTarget {
    /// Returns the maximum length of the names of `ManifestWorkReplicaSet`s in its namespace.
    pub(crate) fn name_max(&self) -> usize {
        names::set_name_max(&self.namespace)
    }

    /// Returns the reasons why an Application cannot be delivered with this placement, one line each.
    pub(crate) fn objections(&self, overlays: &BTreeMap<String, String>, condition_rules: bool) -> Vec<String> {
        let mut lines = Vec::new();
        if self.name_max() < names::SET_NAME_MIN {
            lines.push(format!(
                "placement {self}: its namespace is too long for OCM's label with namespace and name, which has at most {} characters: \
                 use a namespace of at most {} characters",
                names::LABEL_MAX,
                names::LABEL_MAX - 1 - names::SET_NAME_MIN
            ));
        }
        if !overlays.is_empty() {
            lines.push(
                "overlays: a placement gives the same objects to every cluster that it selects: leave overlays out, or set clusters \
                 instead of placement"
                    .to_owned(),
            );
        }
        if self.rollout.is_progressive() && !condition_rules {
            lines.push(format!(
                "rollout {}: without condition rules OCM never completes a cluster, and the rollout stops at the first: set \
                 condition-rules to true, or rollout to All",
                self.rollout.kind.name()
            ));
        }
        lines.extend(self.rollout.objections());
        lines
    }

    /// Returns the entry in `placementRefs`, including the defaults of OCM's CRD, so that Argo CD shows no difference.
    pub fn reference(&self) -> Map<'static> {
        Map::from_fields([
            ("name", Value::from_text(&self.name)),
            ("rolloutStrategy", Value::Map(self.rollout.strategy())),
        ])
    }
}

/// The rollout across the clusters: OCM's `RolloutStrategy`.
#[derive(Clone, Debug, Default)]
pub struct RolloutStrategy {
    /// The order of the clusters.
    pub kind: RolloutKind,
    /// The maximum number of clusters that change at a time; `None` for all of a group, or all clusters.
    pub max_concurrency: Option<ClusterCount>,
    /// The number of clusters that may fail; `None` for zero.
    pub max_failures: Option<ClusterCount>,
    /// The soak time: how long a cluster must stay healthy; `None` for the default.
    pub min_success_time: Option<Time>,
    /// The time after which a cluster that has not succeeded counts as failed; `None` for never.
    pub progress_deadline: Option<Time>,
    /// The decision groups that come first.
    pub mandatory_groups: Vec<DecisionGroup>,
}

/// The default soak time: how long a cluster must stay healthy before the next one changes. OCM's agent evaluates the existing
/// objects slightly before the objects that a change adds; without a pause the rollout would continue in between.
const DEFAULT_SOAK: &str = "10s";

impl RolloutStrategy {
    /// Returns true if some clusters wait for others.
    pub(crate) fn is_progressive(&self) -> bool {
        self.kind != RolloutKind::All
    }

    /// Returns the reasons why the strategy has settings without effect, or never ends, one line each.
    fn objections(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let only_for = |setting: &str, kinds: &str| {
            format!(
                "{setting} has no effect with rollout {}: leave it out, or set rollout to {kinds}",
                self.kind.name()
            )
        };
        if self.max_concurrency.is_some() && self.kind != RolloutKind::Progressive {
            lines.push(only_for("rollout-max-concurrency", "Progressive"));
        }
        let is_zero = |count| {
            matches!(
                count,
                &None | &Some(ClusterCount::Number(0) | ClusterCount::Percentage(0))
            )
        };
        if self.kind == RolloutKind::Progressive && is_zero(&self.max_concurrency) {
            lines.push(
                "rollout Progressive: OCM changes all clusters at once without rollout-max-concurrency: set it to a number from 1, or to \
                 a percentage"
                    .to_owned(),
            );
        }
        if self.is_progressive() && !is_zero(&self.max_failures) && self.progress_deadline.is_none() {
            lines.push(
                "rollout-max-failures: no cluster counts as failed without a deadline: set rollout-progress-deadline too"
                    .to_owned(),
            );
        }
        if self.is_progressive() && !is_zero(&self.max_failures) && !self.mandatory_groups.is_empty() {
            lines.push(
                "rollout-max-failures has no effect with rollout-groups, with which OCM tolerates no failure: leave one of the two out"
                    .to_owned(),
            );
        }
        if self.kind == RolloutKind::All {
            let given = [
                ("rollout-max-failures", self.max_failures.is_some()),
                ("rollout-min-success-time", self.min_success_time.is_some()),
                ("rollout-progress-deadline", self.progress_deadline.is_some()),
                ("rollout-groups", !self.mandatory_groups.is_empty()),
            ];
            for (setting, _) in given.into_iter().filter(|(_, given)| *given) {
                lines.push(only_for(setting, "Progressive or ProgressivePerGroup"));
            }
        }
        lines
    }

    fn strategy(&self) -> Map<'static> {
        let time = |time: &Option<Time>, none| Value::from_text(time.as_ref().map_or(none, |Time(time)| time.as_str()));
        let count = |count: &Option<ClusterCount>| count.as_ref().map_or(Value::Int(0), ClusterCount::to_value);
        let mut fields = Vec::new();
        if self.is_progressive() && !self.mandatory_groups.is_empty() {
            let groups = self.mandatory_groups.iter().map(DecisionGroup::to_value).collect();
            fields.push(("mandatoryDecisionGroups", Value::List(groups)));
        }
        if let Some(at_a_time) = &self.max_concurrency {
            fields.push(("maxConcurrency", at_a_time.to_value()));
        }
        fields.push(("maxFailures", count(&self.max_failures)));
        let soak = if self.is_progressive() { DEFAULT_SOAK } else { "0" };
        fields.push(("minSuccessTime", time(&self.min_success_time, soak)));
        fields.push(("progressDeadline", time(&self.progress_deadline, "None")));
        Map::from_fields([
            (self.kind.field(), Value::map(fields)),
            ("type", Value::from_text(self.kind.name())),
        ])
    }
}

/// The order in which a change reaches the clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RolloutKind {
    /// All clusters at once.
    #[default]
    All,
    /// A limited number of clusters at a time.
    Progressive,
    /// One decision group of the placement after the other.
    ProgressivePerGroup,
}

impl RolloutKind {
    /// Returns the name in OCM.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Progressive => "Progressive",
            Self::ProgressivePerGroup => "ProgressivePerGroup",
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Progressive => "progressive",
            Self::ProgressivePerGroup => "progressivePerGroup",
        }
    }
}

impl FromStr for RolloutKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::All, Self::Progressive, Self::ProgressivePerGroup]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("{text:?} is not a rollout type: use All, Progressive or ProgressivePerGroup"))
    }
}

/// A number or a percentage of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterCount {
    Number(u32),
    Percentage(u8),
}

impl ClusterCount {
    fn to_value(&self) -> Value<'static> {
        match self {
            Self::Number(number) => Value::Int(i64::from(*number)),
            Self::Percentage(percentage) => Value::from_text(format!("{percentage}%")),
        }
    }
}

impl FromStr for ClusterCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || format!("{text:?} is not a number of clusters: write it like 3 or 25%");
        match text.strip_suffix('%') {
            Some(percentage) => match percentage.parse() {
                Ok(percentage @ 0..=100) => Ok(Self::Percentage(percentage)),
                _ => Err(malformed()),
            },
            None => text.parse().map(Self::Number).map_err(|_| malformed()),
        }
    }
}

/// A duration in OCM's format: a number and one of `h`, `m`, `s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time(String);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix(['h', 'm', 's']);
        if number.is_some_and(|number| (1..=6).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit())) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("{text:?} is not a duration: write it like 90s, 10m or 2h"))
        }
    }
}

/// A decision group of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionGroup {
    /// The index, from 0.
    Index(u32),
    Name(String),
}

impl DecisionGroup {
    fn to_value(&self) -> Value<'static> {
        match self {
            Self::Index(index) => Value::map([("groupIndex", Value::Int(i64::from(*index)))]),
            Self::Name(name) => Value::map([("groupName", Value::from_text(name))]),
        }
    }
}

impl FromStr for DecisionGroup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(index) = text.parse() {
            return Ok(Self::Index(index));
        }
        // OCM uses the name as the value of a label.
        if text.len() <= names::LABEL_MAX
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        {
            Ok(Self::Name(text.to_owned()))
        } else {
            Err(format!("{text:?} is not a decision group: give its name or index"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::json;

    fn placement(rollout: RolloutStrategy) -> PlacementTarget {
        PlacementTarget {
            rollout,
            .."argocd/europe".parse().unwrap()
        }
    }

    fn reference(rollout: RolloutStrategy) -> String {
        let mut out = String::new();
        json::write_map(&placement(rollout).reference(), &mut out).unwrap();
        out
    }

    #[test]
    fn placement_reference_has_every_default_of_the_crd() {
        assert_eq!(
            reference(RolloutStrategy::default()),
            r#"{"name":"europe","rolloutStrategy":{"all":{"maxFailures":0,"minSuccessTime":"0","progressDeadline":"None"},"type":"All"}}"#
        );
        let progressive = RolloutStrategy {
            kind: RolloutKind::Progressive,
            max_concurrency: Some("25%".parse().unwrap()),
            max_failures: Some("2".parse().unwrap()),
            min_success_time: Some("5m".parse().unwrap()),
            progress_deadline: Some("1h".parse().unwrap()),
            mandatory_groups: vec!["canary".parse().unwrap(), "0".parse().unwrap()],
        };
        assert_eq!(
            reference(progressive),
            r#"{"name":"europe","rolloutStrategy":{"progressive":{"mandatoryDecisionGroups":[{"groupName":"canary"},{"groupIndex":0}],"maxConcurrency":"25%","maxFailures":2,"minSuccessTime":"5m","progressDeadline":"1h"},"type":"Progressive"}}"#
        );
        let per_group = RolloutStrategy {
            kind: RolloutKind::ProgressivePerGroup,
            ..RolloutStrategy::default()
        };
        assert_eq!(
            reference(per_group),
            r#"{"name":"europe","rolloutStrategy":{"progressivePerGroup":{"maxFailures":0,"minSuccessTime":"10s","progressDeadline":"None"},"type":"ProgressivePerGroup"}}"#
        );
    }

    #[test]
    fn refuses_rollouts_that_ocm_rejects() {
        for bad in ["europe", "/europe", "argocd/", "argocd/a/b", "Argocd/a", "a.b/c"] {
            assert!(bad.parse::<PlacementTarget>().is_err(), "{bad}");
        }
        for bad in ["", "5", "10mx", "None", "1.5h", "-1s", "1h30m"] {
            assert!(bad.parse::<Time>().is_err(), "{bad}");
        }
        for bad in ["", "-1", "101%", "1.5", "%", "three"] {
            assert!(bad.parse::<ClusterCount>().is_err(), "{bad}");
        }
        let none = BTreeMap::new();
        let progressive = |rollout: RolloutStrategy| {
            let rollout = RolloutStrategy {
                kind: RolloutKind::Progressive,
                ..rollout
            };
            placement(rollout).objections(&none, true).join("; ")
        };
        let one_by_one = RolloutStrategy {
            max_concurrency: Some(ClusterCount::Number(1)),
            ..RolloutStrategy::default()
        };
        assert_eq!(progressive(one_by_one), "");
        assert!(progressive(RolloutStrategy::default()).contains("all clusters at once"));
        let zero = RolloutStrategy {
            max_concurrency: Some(ClusterCount::Percentage(0)),
            ..RolloutStrategy::default()
        };
        assert!(progressive(zero).contains("all clusters at once"));
        let endless = RolloutStrategy {
            max_failures: Some(ClusterCount::Number(1)),
            ..RolloutStrategy::default()
        };
        assert!(progressive(endless.clone()).contains("set rollout-progress-deadline"));
        let intolerant = RolloutStrategy {
            mandatory_groups: vec![DecisionGroup::Index(0)],
            ..endless
        };
        assert!(progressive(intolerant).contains("has no effect with rollout-groups"));
        let mut long: PlacementTarget = placement(RolloutStrategy::default());
        long.namespace = "a".repeat(40);
        assert!(long.objections(&none, true)[0].contains("use a namespace of at most 32 characters"));
        let overlays = [("eu1".to_owned(), "eu".to_owned())].into();
        assert!(placement(RolloutStrategy::default()).objections(&overlays, false)[0].contains("leave overlays out"));
    }
}
