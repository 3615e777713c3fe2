//! Generates the CEL expressions for OCM's agent from a rule.
//!
//! Works carry them, so they are short: a clause that cannot change the result is left out, conditions are compared as
//! `Type=Status`, and a list that is searched more than once is bound to a name.

use super::{
    Choice, Clause, Comparison, ConditionList, ConditionTest, CustomRule, FieldTest, NestedField, Operand, Owners,
    STATUSES, Term,
};
use manifest::json;
use manifest::value::Value;
use ocm::health::HealthStatus;
use std::cmp::Ordering;
use std::fmt::Write as _;

const DELETED: &str = "has(object.metadata.deletionTimestamp)";
const GENERATION: &str = "object.metadata.?generation.orValue(0)";

impl CustomRule {
    /// Returns the expressions for `Progressing` and its message, for `Healthy`, and for `Suspended` if the rule has this verdict.
    pub(super) fn expressions(&self) -> ([String; 3], Option<String>) {
        let message = format!(
            "{DELETED}?'waiting for its deletion':{}",
            self.build_message_expression()
        );
        let all: Vec<&Clause> = self.clauses.iter().collect();
        let is_not = |verdict| or(DELETED, &self.expression(&all, |other| other != verdict));
        let (progressing, healthy) = (is_not(HealthStatus::Healthy), is_not(HealthStatus::Degraded));
        // The hub asks whether an object is suspended only if it is neither healthy nor degraded.
        let decides = |clause: &&Clause| matches!(clause.verdict, HealthStatus::Suspended | HealthStatus::Progressing);
        let clauses: Vec<&Clause> = self.clauses.iter().filter(decides).collect();
        let suspended = self.expression(&clauses, |verdict| verdict == HealthStatus::Suspended);
        let suspended = (suspended != "false").then_some(suspended);
        ([progressing, message, healthy], suspended)
    }

    /// Returns the expression that yields whether `outcome` holds for the verdict of the object.
    fn expression(&self, clauses: &[&Clause], outcome: impl Fn(HealthStatus) -> bool) -> String {
        let otherwise = outcome(self.otherwise);
        // A clause matters only because of the clauses after it.
        let mut steps: Vec<(bool, &Clause)> = Vec::new();
        for &clause in clauses.iter().rev() {
            let value = outcome(clause.verdict);
            let mut later = steps.iter().filter(|(other, _)| *other != value);
            if value == otherwise && later.all(|(_, other)| clause.excludes(other)) {
                continue;
            }
            steps.insert(0, (value, clause));
        }
        let lists = Lists::from_clauses(steps.iter().map(|(_, clause)| *clause));
        let mut expression = otherwise.to_string();
        let mut merged: Vec<(bool, Vec<&[Term]>)> = Vec::new();
        for (value, clause) in steps {
            let alternatives = clause.alternatives.iter().map(Vec::as_slice);
            match merged.last_mut() {
                Some((last, terms)) if *last == value => terms.extend(alternatives),
                _ => merged.push((value, alternatives.collect())),
            }
        }
        for (value, alternatives) in merged.into_iter().rev() {
            let test = lists.any(&alternatives);
            expression = match (value, expression.as_str()) {
                (true, "false") => test,
                (false, "true") => not(&test),
                (true, _) => format!("{test}||{}", within_and(&expression)),
                (false, _) => format!("{}&&{}", not(&test), within_and(&expression)),
            };
        }
        lists.bind(expression)
    }

    /// Returns the expression for the first 300 characters of the message, the conditions that are not as they should be, or the
    /// state.
    fn build_message_expression(&self) -> String {
        let mut texts = Vec::new();
        let fields: Vec<String> = self
            .messages
            .iter()
            .map(|path| format!("?{}", path.optional("object")))
            .collect();
        let mut states: Vec<String> = Vec::new();
        let mut shown: Vec<(&ConditionList, ShownConditions)> = Vec::new();
        for clause in &self.clauses {
            for term in clause.alternatives.iter().flatten() {
                match term {
                    Term::Condition(test) if !test.negated => {
                        let at = shown
                            .iter()
                            .position(|(list, _)| **list == test.list)
                            .unwrap_or_else(|| {
                                shown.push((&test.list, ShownConditions::default()));
                                shown.len() - 1
                            });
                        shown[at].1.add(test, clause.verdict);
                    }
                    Term::Field(test) if test.is_state() => {
                        let state = format!("?{}", test.path.optional("object"));
                        if !states.contains(&state) {
                            states.push(state);
                        }
                    }
                    _ => {}
                }
            }
        }
        let may_be_empty =
            !fields.is_empty() || !states.is_empty() || shown.iter().any(|(list, _)| list.owners != Owners::One);
        if !fields.is_empty() {
            texts.push(format!("[{}]", fields.join(",")));
        }
        for (list, shown) in shown {
            if let Some(test) = shown.test() {
                let text = "[c.type,?c.?reason,?c.?message].join(': ')";
                let conditions = list.conditions();
                texts.push(if list.owners == Owners::One {
                    format!("{conditions}.filter(c,{test}).map(c,{text})")
                } else {
                    format!("{conditions}.map(m,m.filter(c,{test}).map(c,{text}).join('; '))")
                });
            }
        }
        if !states.is_empty() {
            texts.push(format!("[{}]", states.join(",")));
        }
        if texts.is_empty() {
            return "'no reason reported'".to_owned();
        }
        texts.push("['no reason reported']".to_owned());
        let first = if may_be_empty { ".filter(t,t!='')[0]" } else { "[0]" };
        format!("({}){first}.find('(?s)^.{{0,300}}')", texts.join("+"))
    }

    /// Returns the values that the agent reports: those of the rule, or else the states and the conditions that it tests.
    pub(super) fn feedback(&self) -> Vec<(String, String)> {
        if !self.reports.is_empty() {
            return self.reports.clone();
        }
        let mut feedback: Vec<(String, String)> = Vec::new();
        let mut add = |name: String, path: String| {
            if !feedback.iter().any(|(known, _)| *known == name) {
                feedback.push((name, path));
            }
        };
        for clause in self
            .clauses
            .iter()
            .filter(|clause| clause.verdict == HealthStatus::Healthy)
        {
            for term in clause.alternatives.iter().flatten() {
                match term {
                    Term::Field(test) if test.is_state() => {
                        let name = test.path.0.last().map_or("", String::as_str);
                        let mut letters = name.chars();
                        let first = letters.next().map(|first| first.to_ascii_uppercase());
                        add(first.into_iter().chain(letters).collect(), test.path.json_path());
                    }
                    Term::Condition(test) if test.list.is_of_status() => {
                        for kind in &test.types {
                            let of = format!(".status.conditions[?(@.type==\"{kind}\")]");
                            add(kind.clone(), format!("{of}.status"));
                            add(format!("{kind}Reason"), format!("{of}.reason"));
                        }
                    }
                    _ => {}
                }
            }
        }
        feedback.truncate(4);
        feedback
    }
}

#[derive(Default)]
struct ShownConditions {
    /// Any condition that is False.
    any_false: bool,
    /// The types to show unless they are True.
    not_true: Vec<String>,
    /// The conditions to show, as `Type=Status`.
    conditions: Vec<String>,
}

impl ShownConditions {
    fn add(&mut self, test: &ConditionTest, verdict: HealthStatus) {
        let is_shown = |status: &str| test.statuses.allows(status) != (verdict == HealthStatus::Healthy);
        if test.types.is_empty() {
            self.any_false |= is_shown("False");
            return;
        }
        for kind in &test.types {
            if (is_shown("False") || is_shown("Unknown")) && !self.not_true.contains(kind) {
                self.not_true.push(kind.clone());
            }
            let pair = format!("{kind}=True");
            if is_shown("True") && !self.conditions.contains(&pair) {
                self.conditions.push(pair);
            }
        }
    }

    fn test(&self) -> Option<String> {
        let mut tests = Vec::new();
        if self.any_false {
            tests.push("c.status=='False'".to_owned());
        }
        if let [kind] = self.not_true.as_slice() {
            tests.push(format!("c.type=={}&&c.status!='True'", quoted(kind)));
        } else if !self.not_true.is_empty() {
            tests.push(format!("c.type in {}&&c.status!='True'", list_of(&self.not_true)));
        }
        if !self.conditions.is_empty() {
            tests.push(format!("c.type+'='+c.status in {}", list_of(&self.conditions)));
        }
        (!tests.is_empty()).then(|| tests.join("||"))
    }
}

impl Clause {
    /// Returns true if no object can meet both clauses.
    fn excludes(&self, other: &Self) -> bool {
        self.alternatives.iter().all(|alternative| {
            let excludes = |theirs: &Vec<Term>| {
                alternative
                    .iter()
                    .any(|term| theirs.iter().any(|their| term.excludes(their)))
            };
            other.alternatives.iter().all(excludes)
        })
    }
}

impl Term {
    /// Returns true if the other term holds whenever this one does.
    fn implies(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Field(one), Self::Field(two)) if two.comparison == Comparison::Present => {
                let has_value = matches!(
                    one.comparison,
                    Comparison::In(_) | Comparison::NotIn(_) | Comparison::Present
                );
                let is_same = (&one.list, &one.path) == (&two.list, &two.path);
                self == other || is_same && has_value && !one.negated && !two.negated
            }
            _ => self == other,
        }
    }

    fn is_opposite_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Field(one), Self::Field(two)) => {
                one.negated != two.negated
                    && (&one.list, &one.path, &one.comparison) == (&two.list, &two.path, &two.comparison)
            }
            _ => false,
        }
    }

    fn excludes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Condition(one), Self::Condition(two)) => {
                !one.negated
                    && !two.negated
                    && one.list == two.list
                    && one.list.owners == Owners::One
                    && one.types.len() == 1
                    && one.types == two.types
                    && !STATUSES
                        .iter()
                        .any(|status| one.statuses.allows(status) && two.statuses.allows(status))
            }
            (Self::Field(one), Self::Field(two))
                if one.path == two.path && one.list.is_none() && two.list.is_none() =>
            {
                match ((one.negated, &one.comparison), (two.negated, &two.comparison)) {
                    ((false, Comparison::In(first)), (false, Comparison::In(second))) => {
                        !first.iter().any(|each| second.contains(each))
                    }
                    ((false, Comparison::In(_) | Comparison::NotIn(_)), (true, Comparison::Present))
                    | ((true, Comparison::Present), (false, Comparison::In(_) | Comparison::NotIn(_))) => true,
                    _ => false,
                }
            }
            _ => false,
        }
    }
}

/// The lists of conditions that an expression searches.
struct Lists<'r> {
    /// Each list, with the number of its searches.
    lists: Vec<(&'r ConditionList, usize)>,
    /// True if type and status suffice for the conditions in the status.
    as_text: bool,
}

impl<'r> Lists<'r> {
    fn from_clauses(clauses: impl Iterator<Item = &'r Clause>) -> Self {
        let mut lists = Self {
            lists: Vec::new(),
            as_text: true,
        };
        for term in clauses.flat_map(|clause| &clause.alternatives).flatten() {
            let (list, as_text) = match term {
                Term::Condition(test) => (
                    &test.list,
                    test.reasons.is_any() && !test.types.is_empty() && !test.statuses.is_any(),
                ),
                Term::StaleCondition(list) => (list, false),
                _ => continue,
            };
            lists.as_text &= as_text || !list.is_of_status();
            match lists.lists.iter_mut().find(|(known, _)| *known == list) {
                Some((_, count)) => *count += 1,
                None => lists.lists.push((list, 1)),
            }
        }
        lists
    }

    /// Returns the expression for the list, or its name if it is bound.
    fn list(&self, list: &ConditionList) -> String {
        let at = self
            .lists
            .iter()
            .position(|(known, count)| *known == list && *count > 1);
        at.map_or_else(|| self.build_list_expression(list), |at| format!("l{at}"))
    }

    fn build_list_expression(&self, list: &ConditionList) -> String {
        let conditions = list.conditions();
        if self.as_text && list.is_of_status() {
            format!("{conditions}.map(c,c.type+'='+c.status)")
        } else {
            conditions
        }
    }

    /// Binds the lists that the expression uses.
    fn bind(&self, mut expression: String) -> String {
        for (at, (list, _)) in self.lists.iter().enumerate() {
            let name = format!("l{at}");
            match expression.matches(&name).count() {
                0 => {}
                1 => expression = expression.replace(&name, &self.build_list_expression(list)),
                _ => expression = format!("[{}].exists({name},{expression})", self.build_list_expression(list)),
            }
        }
        expression
    }

    /// Returns the expression that is true if all terms of one of the alternatives are.
    fn any(&self, alternatives: &[&[Term]]) -> String {
        let mut all_pairs: Vec<String> = Vec::new();
        let mut tests: Vec<String> = Vec::new();
        for alternative in without_covered(alternatives) {
            match alternative.as_slice() {
                [Term::Condition(test)] if self.as_text && !test.negated && test.list.is_of_status() => {
                    all_pairs.extend(pairs(test));
                }
                [term] => tests.push(self.term(term)),
                terms => {
                    let terms: Vec<String> = terms.iter().map(|term| within_and(&self.term(term))).collect();
                    tests.push(terms.join("&&"));
                }
            }
        }
        if !all_pairs.is_empty() {
            tests.insert(0, self.contains(&all_pairs));
        }
        tests.join("||")
    }

    fn contains(&self, texts: &[String]) -> String {
        let list = self.list(&ConditionList::of_status());
        match texts {
            [text] => format!("{} in {list}", quoted(text)),
            texts => format!("{list}.exists(t,t in {})", list_of(texts)),
        }
    }

    fn term(&self, term: &Term) -> String {
        match term {
            Term::Condition(test) => {
                let search = if test.list.is_of_status() && self.as_text {
                    self.contains(&pairs(test))
                } else {
                    self.search(&test.list, &condition(test))
                };
                if test.negated { not(&search) } else { search }
            }
            Term::Field(test) => test.expression(),
            Term::Stale => stale("object.?status.?observedGeneration"),
            Term::StaleCondition(list) => self.search(list, &stale("c.?observedGeneration")),
            Term::Cel(expression) => format!("({expression})"),
        }
    }

    /// Returns the expression that is true if a condition `c` of the list passes the test.
    fn search(&self, list: &ConditionList, test: &str) -> String {
        let conditions = self.list(list);
        match list.owners {
            Owners::One => format!("{conditions}.exists(c,{test})"),
            Owners::Many | Owners::Current => format!("{conditions}.exists(m,m.exists(c,{test}))"),
        }
    }
}

fn stale(of: &str) -> String {
    format!("{of}.optMap(g,g<{GENERATION}).orValue(false)")
}

/// Returns the alternatives without those that another one makes superfluous: `.a=1` and `!.a b` beside `.a` are `.a` and `b`.
fn without_covered(alternatives: &[&[Term]]) -> Vec<Vec<Term>> {
    let single: Vec<&Term> = alternatives
        .iter()
        .filter_map(|terms| terms.first().filter(|_| terms.len() == 1))
        .collect();
    let mut reduced: Vec<Vec<Term>> = Vec::new();
    for terms in alternatives {
        let is_needed = |term: &&Term| terms.len() == 1 || !single.iter().any(|other| other.is_opposite_of(term));
        let terms: Vec<Term> = terms.iter().filter(is_needed).cloned().collect();
        let covers = |other: &Vec<Term>| other.iter().all(|their| terms.iter().any(|term| term.implies(their)));
        if !reduced.iter().any(covers) {
            reduced.retain(|other| !terms.iter().all(|term| other.iter().any(|their| their.implies(term))));
            reduced.push(terms);
        }
    }
    reduced
}

/// Returns the conditions that match, as `Type=Status`.
fn pairs(test: &ConditionTest) -> Vec<String> {
    let pairs = test.types.iter().flat_map(|kind| {
        let statuses = STATUSES.iter().filter(|status| test.statuses.allows(status));
        statuses.map(move |status| format!("{kind}={status}"))
    });
    pairs.collect()
}

fn condition(test: &ConditionTest) -> String {
    let types = Choice {
        values: test.types.clone(),
        except: false,
    };
    let tests = [
        ("c.type", &types),
        ("c.status", &test.statuses),
        ("c.?reason.orValue('')", &test.reasons),
    ];
    let tests: Vec<String> = tests
        .iter()
        .filter_map(|(value, choice)| choice.expression(value))
        .collect();
    if tests.is_empty() {
        return "true".to_owned();
    }
    tests.join("&&")
}

impl Choice {
    fn expression(&self, value: &str) -> Option<String> {
        match (self.values.as_slice(), self.except) {
            ([], _) => None,
            ([one], false) => Some(format!("{value}=={}", quoted(one))),
            ([one], true) => Some(format!("{value}!={}", quoted(one))),
            (many, false) => Some(format!("{value} in {}", list_of(many))),
            (many, true) => Some(format!("!({value} in {})", list_of(many))),
        }
    }
}

impl ConditionList {
    fn is_of_status(&self) -> bool {
        *self == Self::of_status()
    }

    /// Returns the expression for the conditions: a list, or for many owners a list of lists.
    fn conditions(&self) -> String {
        let owner = self.owner.optional("object");
        match self.owners {
            Owners::One => format!("{owner}.?conditions.orValue([])"),
            Owners::Many => format!("{owner}.orValue([]).map(e,e.?conditions.orValue([]))"),
            Owners::Current => format!(
                "{owner}.orValue([]).map(e,e.?conditions.orValue([])).filter(m,!m.exists(c,{}))",
                stale("c.?observedGeneration")
            ),
        }
    }
}

impl FieldTest {
    /// Returns true if the field is a state: its text is worth a message.
    fn is_state(&self) -> bool {
        let values = match &self.comparison {
            Comparison::In(values) | Comparison::NotIn(values) => values.as_slice(),
            _ => return false,
        };
        self.list.is_none()
            && self.path.0[0] == "status"
            && values.iter().all(|value| matches!(value, Value::String(_)))
    }

    fn expression(&self) -> String {
        let root = if self.list.is_some() { "e" } else { "object" };
        let field = self.path.optional(root);
        let equals = |values: &[Value<'_>], default: &str| match values {
            [one] => format!("{field}.orValue({default})=={}", literal(one)),
            many => {
                let values: Vec<String> = many.iter().map(literal).collect();
                format!("{field}.orValue({default}) in [{}]", values.join(","))
            }
        };
        let mut test = match &self.comparison {
            Comparison::Present => format!("{field}.hasValue()"),
            Comparison::In(values) => equals(values, "''"),
            Comparison::NotIn(values) => not(&equals(values, &literal(&values[0]))),
            Comparison::Number(order, operand) => {
                let order = match order {
                    Ordering::Less => "<",
                    Ordering::Greater => ">",
                    Ordering::Equal => "==",
                };
                let operand = match operand {
                    Operand::Number(number) => number.to_string(),
                    Operand::Path(path) => format!("{}.orValue(0)", path.optional(root)),
                };
                format!("{field}.orValue(0){order}{operand}")
            }
        };
        if let Some(list) = &self.list {
            test = format!("{}.orValue([]).exists(e,{test})", list.optional("object"));
        }
        if self.negated { not(&test) } else { test }
    }
}

impl NestedField {
    /// Returns the expression for the optional field of a value.
    fn optional(&self, root: &str) -> String {
        let mut expression = root.to_owned();
        for name in &self.0 {
            let is_plain = name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_');
            if is_plain && !name.starts_with(|first: char| first.is_ascii_digit()) {
                let _ = write!(expression, ".?{name}");
            } else {
                let _ = write!(expression, "[?{}]", quoted(name));
            }
        }
        expression
    }

    fn json_path(&self) -> String {
        self.0
            .iter()
            .fold(String::new(), |path, name| path + "." + &name.replace('.', "\\."))
    }
}

/// Returns a text, number or boolean in CEL.
fn literal(value: &Value<'_>) -> String {
    if let Value::String(text) = value {
        return quoted(text);
    }
    let mut text = String::new();
    json::write(value, &mut text).expect("it is neither long nor deep");
    text
}

/// Returns a CEL string.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn list_of(texts: &[String]) -> String {
    format!(
        "[{}]",
        texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(",")
    )
}

fn not(expression: &str) -> String {
    let comparison = expression
        .split_once("==")
        .filter(|_| !expression.contains([' ', '|', '&', '!', '<', '>']));
    if let Some((one, other)) = comparison.filter(|(one, other)| is_one_call(one) && !other.contains("==")) {
        return format!("{one}!={other}");
    }
    if is_one_call(expression) || is_one_group(expression) {
        format!("!{expression}")
    } else {
        format!("!({expression})")
    }
}

/// Returns true if the expression is a chain of calls that ends with the parenthesis that it opens last at the top.
fn is_one_call(expression: &str) -> bool {
    let mut depth = 0_i32;
    let mut quote = false;
    for each in expression.chars() {
        match each {
            '\'' => quote = !quote,
            _ if quote => {}
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ' ' | '=' | '|' | '&' | '<' | '>' | '!' if depth == 0 => return false,
            _ => {}
        }
    }
    depth == 0
}

fn is_one_group(expression: &str) -> bool {
    expression.starts_with('(') && {
        let inner = &expression[1..];
        let mut depth = 1;
        inner.char_indices().all(|(at, each)| {
            match each {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth > 0 || at == inner.len() - 1
        })
    }
}

fn or(one: &str, other: &str) -> String {
    match other {
        "false" => one.to_owned(),
        "true" => "true".to_owned(),
        _ => format!("{one}||{other}"),
    }
}

/// Returns the expression as an operand of `&&`.
fn within_and(expression: &str) -> String {
    if expression.contains("||") && !is_one_call(expression) && !is_one_group(expression) {
        format!("({expression})")
    } else {
        expression.to_owned()
    }
}
