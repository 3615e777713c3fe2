//! Evaluates a rule on an object, as the agent and the hub do with the generated expressions.

use super::{Comparison, ConditionList, ConditionTest, CustomRule, FieldTest, NestedField, Operand, Owners, Term};
use manifest::value::{Map, Value};
use ocm::health::HealthStatus;

/// The verdict on an object, and the clause that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The health.
    pub verdict: HealthStatus,
    /// The number of the clause, from 1; `None` if the object is being deleted or if no clause holds.
    pub clause: Option<usize>,
    /// True if a CEL expression, which only the agent evaluates, would have been asked first.
    pub depends_on_cel: bool,
}

/// Evaluates the health of an object.
pub fn evaluate(rule: &CustomRule, object: &Map<'_>) -> Evaluation {
    let mut evaluation = Evaluation {
        verdict: HealthStatus::Progressing,
        clause: None,
        depends_on_cel: false,
    };
    if object
        .at(&["metadata", "deletionTimestamp"])
        .and_then(Value::as_str)
        .is_some()
    {
        return evaluation;
    }
    for (clause, number) in rule.clauses.iter().zip(1..) {
        let mut is_unknown = false;
        for alternative in &clause.alternatives {
            let known: Vec<Option<bool>> = alternative.iter().map(|term| holds(term, object)).collect();
            if known.iter().all(|holds| *holds == Some(true)) {
                return Evaluation {
                    verdict: clause.verdict,
                    clause: Some(number),
                    ..evaluation
                };
            }
            is_unknown |= !known.contains(&Some(false));
        }
        evaluation.depends_on_cel |= is_unknown;
    }
    evaluation.verdict = rule.otherwise;
    evaluation
}

/// Returns true if the term holds; `None` for CEL.
fn holds(term: &Term, object: &Map<'_>) -> Option<bool> {
    Some(match term {
        Term::Cel(_) => return None,
        Term::Stale => is_stale(object.at(&["status", "observedGeneration"]), object),
        Term::StaleCondition(list) => {
            conditions(list, object).any(|each| is_stale(each.get("observedGeneration"), object))
        }
        Term::Condition(test) => conditions(&test.list, object).any(|each| matches(test, each)) != test.negated,
        Term::Field(test) => is_met(test, object) != test.negated,
    })
}

fn is_stale(observed: Option<&Value<'_>>, object: &Map<'_>) -> bool {
    let generation = number(object.at(&["metadata", "generation"]));
    matches!(observed, Some(Value::Int(observed)) if *observed < generation)
}

fn conditions<'m, 'a>(list: &ConditionList, object: &'m Map<'a>) -> impl Iterator<Item = &'m Map<'a>> {
    let owners = match (list.owners, field(object, &list.owner)) {
        (Owners::One, Some(owner @ Value::Map(_))) => std::slice::from_ref(owner),
        (Owners::Many | Owners::Current, Some(owners)) => owners.items(),
        _ => &[],
    };
    let is_current = |owner: &Map<'_>| {
        owner
            .maps("conditions")
            .all(|each| !is_stale(each.get("observedGeneration"), object))
    };
    let owners = owners.iter().filter_map(Value::as_map);
    let owners: Vec<&'m Map<'a>> = owners
        .filter(|owner| list.owners != Owners::Current || is_current(owner))
        .collect();
    owners.into_iter().flat_map(|owner| owner.maps("conditions"))
}

fn matches(test: &ConditionTest, condition: &Map<'_>) -> bool {
    let field = |key| condition.get(key).and_then(Value::as_str).unwrap_or_default();
    (test.types.is_empty() || test.types.iter().any(|kind| kind == field("type")))
        && test.statuses.allows(field("status"))
        && test.reasons.allows(field("reason"))
}

fn is_met(test: &FieldTest, object: &Map<'_>) -> bool {
    match &test.list {
        None => compare(test, object),
        Some(list) => {
            let items = field(object, list).map_or(&[][..], Value::items);
            items.iter().filter_map(Value::as_map).any(|item| compare(test, item))
        }
    }
}

fn compare(test: &FieldTest, fields: &Map<'_>) -> bool {
    let value = field(fields, &test.path);
    match &test.comparison {
        Comparison::Present => value.is_some(),
        Comparison::In(scalars) => {
            let empty = Value::from_text("");
            scalars.contains(value.unwrap_or(&empty))
        }
        Comparison::NotIn(scalars) => value.is_some_and(|value| !scalars.contains(value)),
        Comparison::Number(order, operand) => {
            let operand = match operand {
                Operand::Number(number) => *number,
                Operand::Path(path) => number(field(fields, path)),
            };
            number(value).cmp(&operand) == *order
        }
    }
}

fn field<'m, 'a>(fields: &'m Map<'a>, path: &NestedField) -> Option<&'m Value<'a>> {
    let names: Vec<&str> = path.0.iter().map(String::as_str).collect();
    fields.at(&names)
}

fn number(value: Option<&Value<'_>>) -> i64 {
    match value {
        Some(Value::Int(number)) => *number,
        _ => 0,
    }
}
