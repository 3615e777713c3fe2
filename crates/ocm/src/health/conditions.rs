//! Reads conditions from a status that may contain arbitrary values.

use manifest::value::{Map, Value};

/// A condition, with those fields that are strings.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedCondition<'m> {
    pub(super) status: &'m str,
    pub(super) reason: &'m str,
    pub(super) since: &'m str,
    /// The message; never empty.
    pub(super) message: Option<&'m str>,
    pub(super) generation: Option<i64>,
}

impl ReportedCondition<'_> {
    pub(super) fn is(&self, status: &str) -> bool {
        self.status == status
    }

    /// Returns true if a condition rule evaluated to this status. A rule that could not be evaluated also has status False, which
    /// says nothing about the object.
    pub(super) fn evaluated_to(&self, status: &str) -> bool {
        self.is(status) && self.reason == "ConditionRuleEvaluated"
    }

    /// Returns true if the condition is of an earlier generation.
    pub(super) fn is_behind(&self, generation: Option<i64>) -> bool {
        generation.is_some_and(|generation| self.generation.unwrap_or(0) < generation)
    }

    /// Returns the message, or this default.
    pub(super) fn message_or(&self, otherwise: &str) -> String {
        self.message.unwrap_or(otherwise).to_owned()
    }
}

/// The conditions of a work or of an object.
#[derive(Debug)]
pub(super) struct ReportedConditions<'m> {
    all: Vec<(&'m str, ReportedCondition<'m>)>,
    /// The description of an invalid condition.
    pub(super) fault: Option<String>,
}

impl<'m> ReportedConditions<'m> {
    pub(super) fn read_conditions(owner: &'m Map<'_>) -> Self {
        let (items, mut fault) = list(owner, "conditions");
        let mut all = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let fields = item.as_map();
            let kind = fields.and_then(|fields| get_text(fields, "type"));
            match fields.zip(kind) {
                Some((fields, kind)) => all.push((kind, condition(fields))),
                None => {
                    fault.get_or_insert_with(|| format!("conditions[{at}] is not a condition"));
                }
            }
        }
        Self { all, fault }
    }

    /// Returns true if the condition of this type has this status.
    pub(super) fn has(&self, kind: &str, status: &str) -> bool {
        self.get(kind).is_some_and(|condition| condition.is(status))
    }

    /// Returns the condition of this type, the last of several.
    pub(super) fn get(&self, kind: &str) -> Option<ReportedCondition<'m>> {
        let entry = self.all.iter().rev().find(|(known, _)| *known == kind);
        entry.map(|(_, condition)| *condition)
    }
}

fn condition<'m>(fields: &'m Map<'_>) -> ReportedCondition<'m> {
    let text = |key| get_text(fields, key);
    ReportedCondition {
        status: text("status").unwrap_or_default(),
        reason: text("reason").unwrap_or_default(),
        since: text("lastTransitionTime").unwrap_or_default(),
        message: text("message"),
        generation: number(fields, "observedGeneration"),
    }
}

/// Returns a non-empty string.
pub(super) fn get_text<'m>(fields: &'m Map<'_>, key: &str) -> Option<&'m str> {
    fields.get(key)?.as_str().filter(|text| !text.is_empty())
}

pub(super) fn number(fields: &Map<'_>, key: &str) -> Option<i64> {
    match fields.get(key) {
        Some(Value::Int(number)) => Some(*number),
        _ => None,
    }
}

/// Returns a mapping; other values count as missing.
pub(super) fn map<'m, 'a>(fields: &'m Map<'a>, key: &str) -> Option<&'m Map<'a>> {
    fields.get(key)?.as_map()
}

/// Returns a list, and a description of any other value in its place.
pub(super) fn list<'m, 'a>(fields: &'m Map<'a>, key: &str) -> (&'m [Value<'a>], Option<String>) {
    match fields.get(key) {
        Some(Value::List(items)) => (items, None),
        None | Some(Value::Null) => (&[], None),
        Some(other) => (&[], Some(format!("{key} is {}", other.type_name()))),
    }
}
