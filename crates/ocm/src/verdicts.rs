//! Verdicts on objects: the health of the built-in kinds from the values that OCM's agent reports of them.
//!
//! One table has, for each kind, the values that the agent reports (`feedbackRules` of a ManifestWork) and the rules that turn them
//! into a health and a message. All who show health use it: `status`, `diff`, `doctor` and the controller evaluate it here; the
//! health check in deploy/argocd_cm.yaml and the data of the UI extension are generated from it, and so are the CEL rules of
//! placements, whose rollout OCM decides. A change of a rule therefore changes no ManifestWork for a named cluster.
//!
//! Pods, HorizontalPodAutoscalers and custom resources are not in the table, because JSONPaths cannot express their state: the
//! agent evaluates CEL for them.

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test reads and writes generated files")]
mod generated;
mod table;

use crate::health::HealthStatus;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The name of the value with an object's content hash, where health counts only for the present content.
pub const CONTENT_HASH: &str = "ContentHash";

/// The name of the value with the time of deletion. The rules of all kinds use it.
pub const DELETED: &str = "Deleted";

/// The values to report on the objects of a kind, and the rules that evaluate them.
#[derive(Debug)]
pub struct KindVerdicts {
    /// The API group, in any version.
    pub group: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The values that the agent reports: unique names, and JSONPaths. The agent omits those that an object lacks.
    pub values: &'static [(&'static str, &'static str)],
    /// The rules. The first rule that applies decides; an object to which none applies is healthy.
    pub rules: &'static [Rule],
}

/// A rule: the health of objects that meet all conditions.
#[derive(Debug)]
pub struct Rule {
    /// The health: Degraded, Progressing or Suspended.
    pub health: HealthStatus,
    /// The conditions, all of which must hold.
    pub when: &'static [Test],
    /// The message: `{Name}` stands for a text, `{#Name}` for a number, `{#Name-Other}` for a difference.
    pub message: &'static str,
}

/// A condition on reported values, by their names.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// The value is reported.
    Has(&'static str),
    /// The value is not reported.
    Lacks(&'static str),
    /// The value is this text.
    Is(&'static str, &'static str),
    /// The value is not this text, or not reported.
    IsNot(&'static str, &'static str),
    /// The value is true.
    IsTrue(&'static str),
    /// The value is not true, or not reported.
    IsNotTrue(&'static str),
    /// The first number is less than the second.
    Less(ReportedNumber, ReportedNumber),
    /// Both texts are reported, and the first sorts before the second, as times do.
    Earlier(&'static str, &'static str),
    /// The values differ, or only one of them is reported.
    Differs(&'static str, &'static str),
}

/// A number from reported values; one that is not reported counts as zero.
#[derive(Clone, Copy, Debug)]
pub enum ReportedNumber {
    /// The value.
    Of(&'static str),
    /// The first value without the second.
    Difference(&'static str, &'static str),
}

/// A piece of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'m> {
    /// A constant text.
    Constant(&'m str),
    /// The text of this value.
    Text(&'m str),
    /// The number of this value.
    Number(&'m str),
    /// The first number without the second.
    Difference(&'m str, &'m str),
}

/// A value that the agent reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported<'m> {
    /// An integer.
    Number(i64),
    /// A text that is not empty.
    Text(&'m str),
    /// A boolean.
    Flag(bool),
}

/// The values that the agent reports on an object, by name.
#[derive(Clone, Debug, Default)]
pub struct FeedbackValues<'m>(BTreeMap<&'m str, Reported<'m>>);

impl<'m> FromIterator<(&'m str, Reported<'m>)> for FeedbackValues<'m> {
    fn from_iter<I: IntoIterator<Item = (&'m str, Reported<'m>)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl<'m> FeedbackValues<'m> {
    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the text of a value; empty if there is none.
    pub fn get_text(&self, name: &str) -> &'m str {
        match self.0.get(name) {
            Some(Reported::Text(text)) => text,
            _ => "",
        }
    }

    fn number(&self, name: &str) -> i64 {
        match self.0.get(name) {
            Some(Reported::Number(number)) => *number,
            _ => 0,
        }
    }

    fn difference(&self, name: &str, other: &str) -> i64 {
        self.number(name).saturating_sub(self.number(other))
    }

    /// Returns true if the value is true.
    pub fn is_true(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Reported::Flag(true))
    }
}

/// Returns all kinds of the table.
pub fn kinds() -> &'static [KindVerdicts] {
    &table::KINDS
}

/// Returns the verdicts on a kind in any version; `None` if the table does not have it.
pub fn find(group: &str, kind: &str) -> Option<&'static KindVerdicts> {
    kinds().iter().find(|known| (known.group, known.kind) == (group, kind))
}

impl KindVerdicts {
    /// Evaluates the values of an object. A healthy object has no message.
    pub fn evaluate(&self, values: &FeedbackValues<'_>) -> (HealthStatus, String) {
        let rule = self
            .rules
            .iter()
            .find(|rule| rule.when.iter().all(|test| test.holds(values)));
        rule.map_or((HealthStatus::Healthy, String::new()), |rule| {
            (rule.health, rule.message(values))
        })
    }

    /// Returns the names of the values that the rules use, in the order of the table.
    pub fn used_values(&self) -> impl Iterator<Item = &'static str> {
        let tests = self.rules.iter().flat_map(|rule| rule.when).flat_map(Test::names);
        let pieces = self
            .rules
            .iter()
            .flat_map(|rule| pieces(rule.message))
            .flat_map(Piece::names);
        let used: Vec<&str> = tests.chain(pieces).collect();
        self.values
            .iter()
            .map(|(name, _)| *name)
            .filter(move |name| used.contains(name))
    }
}

impl Rule {
    fn message(&self, values: &FeedbackValues<'_>) -> String {
        let mut message = String::new();
        for piece in pieces(self.message) {
            let written = match piece {
                Piece::Constant(text) => message.write_str(text),
                Piece::Text(name) => message.write_str(values.get_text(name)),
                Piece::Number(name) => write!(message, "{}", values.number(name)),
                Piece::Difference(name, other) => write!(message, "{}", values.difference(name, other)),
            };
            written.expect("a String accepts any text");
        }
        message
    }
}

impl Test {
    fn holds(&self, values: &FeedbackValues<'_>) -> bool {
        let number = |number: &ReportedNumber| match number {
            ReportedNumber::Of(name) => values.number(name),
            ReportedNumber::Difference(name, other) => values.difference(name, other),
        };
        match self {
            Self::Has(name) => values.has(name),
            Self::Lacks(name) => !values.has(name),
            Self::Is(name, text) => values.get_text(name) == *text,
            Self::IsNot(name, text) => values.get_text(name) != *text,
            Self::IsTrue(name) => values.is_true(name),
            Self::IsNotTrue(name) => !values.is_true(name),
            Self::Less(less, more) => number(less) < number(more),
            Self::Earlier(early, late) => values.has(early) && values.get_text(early) < values.get_text(late),
            Self::Differs(one, other) => values.0.get(one) != values.0.get(other),
        }
    }

    fn names(&self) -> Vec<&'static str> {
        let of = |number: &ReportedNumber| match *number {
            ReportedNumber::Of(name) => vec![name],
            ReportedNumber::Difference(name, other) => vec![name, other],
        };
        match self {
            Self::Has(name)
            | Self::Lacks(name)
            | Self::Is(name, _)
            | Self::IsNot(name, _)
            | Self::IsTrue(name)
            | Self::IsNotTrue(name) => vec![name],
            Self::Less(less, more) => [of(less), of(more)].concat(),
            Self::Earlier(one, other) | Self::Differs(one, other) => vec![one, other],
        }
    }
}

impl<'m> Piece<'m> {
    fn names(self) -> Vec<&'m str> {
        match self {
            Self::Constant(_) => vec![],
            Self::Text(name) | Self::Number(name) => vec![name],
            Self::Difference(name, other) => vec![name, other],
        }
    }
}

/// Splits the message of a rule.
pub fn pieces(message: &str) -> impl Iterator<Item = Piece<'_>> {
    // Texts are outside of the braces, and values inside.
    message
        .split(['{', '}'])
        .enumerate()
        .filter(|(_, text)| !text.is_empty())
        .map(|(at, text)| match (at % 2, text.strip_prefix('#')) {
            (0, _) => Piece::Constant(text),
            (_, None) => Piece::Text(text),
            (_, Some(number)) => match number.split_once('-') {
                Some((name, other)) => Piece::Difference(name, other),
                None => Piece::Number(number),
            },
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn evaluate(group: &str, kind: &str, values: &[(&'static str, Reported<'static>)]) -> (HealthStatus, String) {
        find(group, kind)
            .expect("a kind")
            .evaluate(&values.iter().copied().collect())
    }

    #[test]
    fn first_rule_decides() {
        let late = ("Failed", Reported::Text("timed out"));
        let paused = ("Suspended", Reported::Flag(true));
        let deleted = ("Deleted", Reported::Text("2026-01-01T00:00:00Z"));
        let health = |values: &[(&'static str, Reported<'static>)]| evaluate("apps", "Deployment", values).0;
        assert_eq!(health(&[late]), HealthStatus::Degraded);
        assert_eq!(health(&[late, paused]), HealthStatus::Suspended);
        assert_eq!(health(&[late, paused, deleted]), HealthStatus::Progressing);
    }

    #[test]
    fn values_of_other_types_count_as_none() {
        let text = |name| (name, Reported::Text("9"));
        let values = [
            ("Generation", Reported::Number(1)),
            text("Observed"),
            text("UpdatedReplicas"),
        ];
        let message = "waiting for its new spec to be observed".to_owned();
        assert_eq!(
            evaluate("apps", "Deployment", &values),
            (HealthStatus::Progressing, message)
        );
    }

    #[test]
    fn rules_use_only_reported_values() {
        for verdicts in kinds() {
            assert!(verdicts.used_values().any(|name| name == DELETED), "{}", verdicts.kind);
            let names: HashSet<&str> = verdicts.values.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), verdicts.values.len(), "{}", verdicts.kind);
            for rule in verdicts.rules {
                let tested = rule.when.iter().flat_map(Test::names);
                for name in tested.chain(pieces(rule.message).flat_map(Piece::names)) {
                    assert!(names.contains(name), "{}: {name}", verdicts.kind);
                }
                assert!(
                    !rule.when.is_empty() && rule.health != HealthStatus::Healthy,
                    "{}",
                    verdicts.kind
                );
            }
        }
    }

    #[test]
    fn messages_are_split_into_pieces() {
        let expected = [
            Piece::Number("A"),
            Piece::Constant(" of "),
            Piece::Difference("B", "C"),
            Piece::Constant(": "),
            Piece::Text("D"),
        ];
        assert_eq!(pieces("{#A} of {#B-C}: {D}").collect::<Vec<_>>(), expected);
    }
}
