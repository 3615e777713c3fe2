//! Evaluates a rule on an object, as the agent and the hub do with the generated expressions.

use super::{
    Comparison, ConditionList, ConditionTest, CustomRule, FieldTest, NestedField, Operand, Order, Owners,
    ScalarLiteral, Term, Verdict,
};
use manifest::value::{Map, Value};

/// The verdict on an object, and the clause that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The health.
    pub verdict: Verdict,
    /// The number of the clause, from 1; `None` if the object is being deleted or if no clause holds.
    pub clause: Option<usize>,
    /// True if a CEL expression, which only the agent evaluates, would have been asked first.
    pub depends_on_cel: bool,
}

/// Evaluates the health of an object.
#[must_use]
pub fn evaluate(rule: &CustomRule, object: &Map<'_>) -> Evaluation {
    let mut evaluation = Evaluation {
        verdict: Verdict::Progressing,
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
    let owner = field(object, &list.owner);
    let owners: Vec<&'m Map<'a>> = match (list.owners, owner) {
        (Owners::One, Some(Value::Map(owner))) => vec![owner],
        (Owners::Many | Owners::Current, Some(Value::List(owners))) => {
            owners.iter().filter_map(Value::as_map).collect()
        }
        _ => Vec::new(),
    };
    let is_current = |owner: &Map<'_>| of_owner(owner).all(|each| !is_stale(each.get("observedGeneration"), object));
    let owners: Vec<&'m Map<'a>> = owners
        .into_iter()
        .filter(|owner| list.owners != Owners::Current || is_current(owner))
        .collect();
    owners.into_iter().flat_map(of_owner)
}

fn of_owner<'m, 'a>(owner: &'m Map<'a>) -> impl Iterator<Item = &'m Map<'a>> {
    let items = match owner.get("conditions") {
        Some(Value::List(items)) => items.as_slice(),
        _ => &[],
    };
    items.iter().filter_map(Value::as_map)
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
        Some(list) => match field(object, list) {
            Some(Value::List(items)) => items.iter().filter_map(Value::as_map).any(|item| compare(test, item)),
            _ => false,
        },
    }
}

fn compare(test: &FieldTest, fields: &Map<'_>) -> bool {
    let value = field(fields, &test.path);
    match &test.comparison {
        Comparison::Present => value.is_some(),
        Comparison::In(scalars) => {
            let empty = Value::from_text("");
            let value = value.unwrap_or(&empty);
            scalars.iter().any(|scalar| is_equal(scalar, value))
        }
        Comparison::NotIn(scalars) => value.is_some_and(|value| !scalars.iter().any(|scalar| is_equal(scalar, value))),
        Comparison::Number(order, operand) => {
            let operand = match operand {
                Operand::Number(number) => *number,
                Operand::Path(path) => number(field(fields, path)),
            };
            match order {
                Order::Less => number(value) < operand,
                Order::Greater => number(value) > operand,
                Order::Equal => number(value) == operand,
            }
        }
    }
}

fn is_equal(scalar: &ScalarLiteral, value: &Value<'_>) -> bool {
    match (scalar, value) {
        (ScalarLiteral::Text(one), Value::String(other)) => one == other,
        (ScalarLiteral::Number(one), Value::Int(other)) => one == other,
        (ScalarLiteral::Bool(one), Value::Bool(other)) => one == other,
        _ => false,
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
