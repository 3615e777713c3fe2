//! Converts verdicts to the condition rules of a placement: CEL over the object for the paths of the reported values.

use super::{CelRule, HEALTHY, PROGRESSING};
use ocm::health::HealthStatus;
use ocm::verdicts::{KindVerdicts, ReportedNumber, Test};

/// Returns the rules of a kind. They live as long as the program, because all kinds do.
pub(super) fn rules(verdicts: &KindVerdicts) -> [CelRule; 2] {
    let rule = |condition, expression: String| CelRule {
        condition,
        expression: expression.leak(),
        message: "",
    };
    let (mut progressing, mut healthy) = (progressing(verdicts), healthy(verdicts));
    if verdicts.kind == "CustomResourceDefinition" {
        // The API server writes null before the first condition. A search in it is an error, which `||` ignores if the other side is true.
        progressing += "||";
        progressing += NO_CONDITIONS;
        healthy = format!("{NO_CONDITIONS}||{healthy}");
    }
    [rule(PROGRESSING, progressing), rule(HEALTHY, healthy)]
}

const NO_CONDITIONS: &str = "!hasConditions(object.?status.orValue(''))";

/// Returns CEL that is true if any rule applies.
fn progressing(verdicts: &KindVerdicts) -> String {
    let rules: Vec<_> = verdicts.rules.iter().map(|rule| all(verdicts, rule.when)).collect();
    rules.join("||")
}

/// Returns CEL that is false if the first rule that applies means Degraded.
fn healthy(verdicts: &KindVerdicts) -> String {
    let mut expression = "true".to_owned();
    for rule in verdicts.rules.iter().rev() {
        let applies = all(verdicts, rule.when);
        expression = match (rule.health == HealthStatus::Degraded, &*expression) {
            (false, "true") => expression,
            (false, _) => format!("{applies}||{expression}"),
            (true, "true") => format!("!({applies})"),
            (true, _) => format!("!({applies})&&({expression})"),
        };
    }
    expression
}

fn all(verdicts: &KindVerdicts, tests: &[Test]) -> String {
    let tests: Vec<_> = tests.iter().map(|test| cel(verdicts, test)).collect();
    tests.join("&&")
}

fn cel(verdicts: &KindVerdicts, test: &Test) -> String {
    let path = |name: &str| {
        let value = verdicts.values.iter().find(|(known, _)| *known == name);
        JsonPath::parse(value.expect("a rule uses values of its kind").1)
    };
    let string = |name| format!("{}.orValue('')", path(name).object);
    let number = |number: &ReportedNumber| match *number {
        ReportedNumber::Of(name) => format!("{}.orValue(0)", path(name).object),
        ReportedNumber::Difference(name, other) => {
            format!("{}.orValue(0)-{}.orValue(0)", path(name).object, path(other).object)
        }
    };
    match *test {
        Test::Has(name) => path(name).exists(),
        Test::Lacks(name) => format!("!{}", path(name).exists()),
        Test::Is(name, constant) => path(name).is(constant),
        Test::IsNot(name, constant) => format!("!({})", path(name).is(constant)),
        Test::IsTrue(name) => format!("{}.orValue(false)", path(name).object),
        Test::IsNotTrue(name) => format!("!{}.orValue(false)", path(name).object),
        Test::Less(ref less, ref more) => format!("{}<{}", number(less), number(more)),
        Test::Earlier(early, late) => format!("{}&&{}<{}", path(early).exists(), string(early), string(late)),
        Test::Differs(one, other) => format!("{}!={}", path(one).object, path(other).object),
    }
}

/// A JSONPath: fields, and possibly a list with or without a filter, followed by one field of its items or several.
struct JsonPath<'p> {
    /// CEL for the optional value of the fields.
    object: String,
    /// The filter of the items in CEL, empty for none, and their fields.
    items: Option<(String, Vec<&'p str>)>,
}

impl<'p> JsonPath<'p> {
    fn parse(path: &'p str) -> Self {
        let (fields, rest) = path.split_once('[').unwrap_or((path, ""));
        let fields = fields.split('.').skip(1).map(|field| format!(".?{field}"));
        let object = format!("object{}", fields.collect::<String>());
        let items = rest.split_once(']').map(|(selection, fields)| {
            let fields = fields.trim_start_matches(['.', '[']).trim_end_matches(']');
            let fields = fields.split(',').map(|field| field.trim_matches('\'')).collect();
            (filter(selection), fields)
        });
        Self { object, items }
    }

    /// Returns CEL that is true if the value exists.
    fn exists(&self) -> String {
        match &self.items {
            None => format!("{}.hasValue()", self.object),
            Some((filter, fields)) if filter.is_empty() => {
                let has: Vec<_> = fields.iter().map(|field| format!("has(c.{field})")).collect();
                format!("{}.orValue([]).exists(c,{})", self.object, has.join("||"))
            }
            Some((filter, _)) => format!("{}.orValue([]).exists(c,{filter})", self.object),
        }
    }

    /// Returns CEL that is true if the value is this text.
    fn is(&self, constant: &str) -> String {
        match &self.items {
            None => format!("{}.orValue('')=='{constant}'", self.object),
            Some((filter, fields)) => {
                let list = &self.object;
                format!(
                    "{list}.orValue([]).exists(c,{filter}&&c.{}=='{constant}')",
                    fields.join(",")
                )
            }
        }
    }
}

/// Returns a JSONPath's filter in CEL. Conditions of built-in kinds always have `type` and `status`, and may lack `reason`; an item
/// without the field does not match.
fn filter(selection: &str) -> String {
    let Some(filter) = selection.strip_prefix("?(@.").and_then(|rest| rest.strip_suffix(')')) else {
        return String::new();
    };
    let filter = filter.replace('"', "'");
    match (filter.strip_prefix("reason"), filter.split_once("!=")) {
        (Some(comparison), None) => format!("c.?reason.orValue(''){comparison}"),
        (Some(comparison), Some((_, constant))) => format!("c.?reason.orValue({constant}){comparison}"),
        (None, _) => format!("c.{filter}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_cel() {
        for (path, exists, comparison) in [
            (
                ".status.phase",
                "object.?status.?phase.hasValue()",
                "object.?status.?phase.orValue('')=='A'",
            ),
            (
                r#".status.l[?(@.type=="Ready")].status"#,
                "object.?status.?l.orValue([]).exists(c,c.type=='Ready')",
                "object.?status.?l.orValue([]).exists(c,c.type=='Ready'&&c.status=='A')",
            ),
            (
                r#".status.l[?(@.reason!="B")].status"#,
                "object.?status.?l.orValue([]).exists(c,c.?reason.orValue('B')!='B')",
                "object.?status.?l.orValue([]).exists(c,c.?reason.orValue('B')!='B'&&c.status=='A')",
            ),
        ] {
            assert_eq!(JsonPath::parse(path).exists(), exists);
            assert_eq!(JsonPath::parse(path).is("A"), comparison);
        }
        let address = JsonPath::parse(".status.l[*]['ip','hostname']");
        assert_eq!(
            address.exists(),
            "object.?status.?l.orValue([]).exists(c,has(c.ip)||has(c.hostname))"
        );
    }
}
