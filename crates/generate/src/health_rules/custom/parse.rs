//! Parses the language of rules for custom kinds.

use super::{
    Choice, Clause, Comparison, ConditionList, ConditionTest, CustomRule, FieldTest, NestedField, Operand, Owners,
    STATUSES, Term, VERDICTS,
};
use manifest::value::Value;
use ocm::health::HealthStatus;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;

/// An invalid rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The line in the file, from 1.
    pub line: usize,
    /// The fault and its remedy.
    pub message: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Parses a file of rules. An invalid rule is left out and reported.
pub fn parse(text: &str) -> (Vec<CustomRule>, Vec<RuleError>) {
    let (mut rules, mut errors): (Vec<CustomRule>, Vec<RuleError>) = (Vec::new(), Vec::new());
    let mut shapes: HashMap<String, Vec<RuleToken>> = HashMap::new();
    for (line, entry) in entries(text) {
        match parse_entry(&entry, line, &mut shapes) {
            Ok(rule) => rules.extend(rule),
            Err(message) => errors.push(RuleError { line, message }),
        }
    }
    (rules, errors)
}

/// Joins each line with the indented lines after it, and numbers them.
fn entries(text: &str) -> Vec<(usize, String)> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        match entries.last_mut() {
            Some((_, entry)) if line.starts_with([' ', '\t']) => {
                // The name ends with a colon; a line without a semicolon is a statement as well.
                entry.push_str(if entry.ends_with([':', ';']) { " " } else { "; " });
                entry.push_str(content);
            }
            _ => entries.push((number, content.to_owned())),
        }
    }
    entries
}

#[derive(Clone, Debug, PartialEq)]
enum RuleToken {
    /// A word without quotes, or a symbol.
    Word(String),
    Quoted(String),
    /// A CEL expression in braces.
    Cel(String),
    Symbol(char),
}

impl fmt::Display for RuleToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(text) => write!(f, "{text}"),
            Self::Quoted(text) => write!(f, "{text:?}"),
            Self::Cel(text) => write!(f, "{{{text}}}"),
            Self::Symbol(symbol) => write!(f, "{symbol}"),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<RuleToken>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(&next) = rest.peek() {
        match next {
            ' ' | '\t' => {
                rest.next();
                tokens.push(RuleToken::Symbol(' '));
            }
            '"' => {
                rest.next();
                let mut is_closed = false;
                let text = rest.by_ref().take_while(|&next| {
                    is_closed = next == '"';
                    !is_closed
                });
                tokens.push(RuleToken::Quoted(text.collect()));
                if !is_closed {
                    return Err("a quote is not closed: end the text with `\"`".to_owned());
                }
            }
            '{' => tokens.push(RuleToken::Cel(braces(&mut rest)?)),
            ':' | ';' | ',' | '|' | '=' | '!' | '<' | '>' | '(' | ')' | '@' | '[' | ']' => {
                rest.next();
                tokens.push(RuleToken::Symbol(next));
            }
            _ => {
                let is_of_word = |next: &char| !" \t\"{:;,|=!<>()@[]".contains(*next);
                let word = std::iter::from_fn(|| rest.next_if(is_of_word));
                tokens.push(RuleToken::Word(word.collect()));
            }
        }
    }
    Ok(tokens)
}

/// Reads a CEL expression in balanced braces; braces within its strings do not count.
fn braces(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<String, String> {
    let (mut depth, mut quote, mut expression) = (0_usize, None, String::new());
    for next in rest.by_ref() {
        match (quote, next) {
            (Some(open), _) if next == open => quote = None,
            (None, '\'' | '"') => quote = Some(next),
            (None, '{') => depth += 1,
            (None, '}') => depth -= 1,
            _ => {}
        }
        expression.push(next);
        if depth == 0 {
            return Ok(expression[1..expression.len() - 1].trim().to_owned());
        }
    }
    Err("a brace is not closed: end the CEL expression with `}`".to_owned())
}

fn parse_entry(
    entry: &str,
    line: usize,
    shapes: &mut HashMap<String, Vec<RuleToken>>,
) -> Result<Option<CustomRule>, String> {
    let Some((name, body)) = entry.split_once(':') else {
        return Err(format!(
            "{entry:?} has no colon: write `Kind.group: Healthy Ready=True`"
        ));
    };
    let mut body = tokens(body)?;
    if let Some(name) = name.strip_prefix('@') {
        shapes.insert(name.trim().to_owned(), body);
        return Ok(None);
    }
    body = expand(body, shapes)?;
    let Some((kinds, group)) = name.trim().split_once('.') else {
        return Err(format!("{name:?} has no group: write `Kind.group`"));
    };
    let mut rule = CustomRule {
        line,
        kinds: kinds.split('|').map(|kind| kind.trim().to_owned()).collect(),
        group: group.to_owned(),
        clauses: Vec::new(),
        otherwise: HealthStatus::Progressing,
        messages: Vec::new(),
        reports: Vec::new(),
    };
    if rule.kinds.iter().any(String::is_empty) || group.is_empty() || group.contains(['|', ' ', '/']) {
        return Err(format!("{name:?} is no kind: write `Kind.group`, or `Kind|Kind.group`"));
    }
    let mut is_decided = false;
    for statement in body.split(|token| *token == RuleToken::Symbol(';')) {
        let mut reader = TokenReader { rest: statement };
        reader.skip_spaces();
        if !reader.rest.is_empty() {
            parse_statement(&mut reader, &mut rule, &mut is_decided)?;
        }
    }
    if rule.clauses.is_empty() && !is_decided {
        return Err(format!("{name} has no verdict: add `Healthy Ready=True` for example"));
    }
    Ok(Some(rule))
}

/// Parses a statement into the rule; `is_decided` is true after a verdict without a test.
fn parse_statement(reader: &mut TokenReader<'_>, rule: &mut CustomRule, is_decided: &mut bool) -> Result<(), String> {
    let word = reader.word("a verdict")?;
    reader.skip_spaces();
    if let Some(verdict) = VERDICTS.into_iter().find(|verdict| verdict.name() == word) {
        if reader.rest.is_empty() {
            (rule.otherwise, *is_decided) = (verdict, true);
        } else if *is_decided {
            return Err(format!(
                "{word} after a verdict without a test, which decides: remove one of the two"
            ));
        } else {
            let alternatives = reader.alternatives()?;
            rule.clauses.push(Clause { verdict, alternatives });
        }
    } else if word == "message" {
        rule.messages.push(reader.path()?);
    } else if word == "report" {
        let name = reader.word("a name")?;
        reader.symbol('=')?;
        let path = reader.take_rest();
        if !path.starts_with('.') {
            return Err(format!("{path:?} is no JSONPath: write `report {name}=.status.field`"));
        }
        rule.reports.push((name, path.trim().to_owned()));
        return Ok(());
    } else {
        return Err(format!(
            "{word:?} is no verdict: use Healthy, Progressing, Suspended, Degraded, `message` or `report`"
        ));
    }
    reader.skip_spaces();
    if reader.rest.is_empty() {
        Ok(())
    } else {
        Err(format!("{:?} is unexpected", reader.take_rest()))
    }
}

/// Replaces `@NAME` by the shape of this name at the beginning of a statement.
fn expand(body: Vec<RuleToken>, shapes: &HashMap<String, Vec<RuleToken>>) -> Result<Vec<RuleToken>, String> {
    let mut expanded = Vec::new();
    let mut is_start = true;
    let mut tokens = body.into_iter();
    while let Some(token) = tokens.next() {
        if is_start && token == RuleToken::Symbol('@') {
            let name = tokens.next().map(|name| name.to_string()).unwrap_or_default();
            let shape = shapes.get(&name);
            expanded.extend_from_slice(
                shape.ok_or_else(|| format!("@{name} is not defined: add a line `@{name}: …` above"))?,
            );
            continue;
        }
        is_start = matches!(token, RuleToken::Symbol(';')) || is_start && token == RuleToken::Symbol(' ');
        expanded.push(token);
    }
    Ok(expanded)
}

struct TokenReader<'t> {
    rest: &'t [RuleToken],
}

impl<'t> TokenReader<'t> {
    fn next_token(&mut self) -> Option<&'t RuleToken> {
        self.rest.split_off_first()
    }

    fn take_rest(&mut self) -> String {
        let rest = std::mem::take(&mut self.rest);
        rest.iter().map(ToString::to_string).collect()
    }

    /// Consumes the token, if it is next.
    fn take_token(&mut self, token: &RuleToken) -> bool {
        let is_next = self.rest.first() == Some(token);
        if is_next {
            self.next_token();
        }
        is_next
    }

    fn take(&mut self, symbol: char) -> bool {
        self.take_token(&RuleToken::Symbol(symbol))
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.take_token(&RuleToken::Word(word.to_owned()))
    }

    fn skip_spaces(&mut self) {
        while self.take(' ') {}
    }

    fn symbol(&mut self, symbol: char) -> Result<(), String> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(format!(
                "{:?} is unexpected: write `{symbol}` before it",
                self.take_rest()
            ))
        }
    }

    fn word(&mut self, expected: &str) -> Result<String, String> {
        match self.next_token() {
            Some(RuleToken::Word(word) | RuleToken::Quoted(word)) => Ok(word.clone()),
            Some(other) => Err(format!("{:?} is not {expected}", other.to_string())),
            None => Err(format!("{expected} is missing")),
        }
    }

    fn alternatives(&mut self) -> Result<Vec<Vec<Term>>, String> {
        let mut alternatives = Vec::new();
        let mut terms = Vec::new();
        loop {
            self.skip_spaces();
            terms.push(self.term()?);
            self.skip_spaces();
            if self.take(',') {
                alternatives.push(std::mem::take(&mut terms));
            } else if self.rest.is_empty() {
                alternatives.push(terms);
                return Ok(alternatives);
            }
        }
    }

    fn term(&mut self) -> Result<Term, String> {
        if let Some(RuleToken::Cel(expression)) = self.rest.first() {
            self.next_token();
            return Ok(Term::Cel(expression.clone()));
        }
        let negated = self.take('!');
        if self.take_word("stale") {
            return Ok(Term::Stale);
        }
        if self.take_word("stale-condition") {
            return Ok(Term::StaleCondition(self.list()?));
        }
        match self.rest.first() {
            Some(RuleToken::Word(word)) if word.starts_with('.') => self.field(negated),
            _ => self.condition(negated),
        }
    }

    fn list(&mut self) -> Result<ConditionList, String> {
        if !self.take('@') {
            return Ok(ConditionList::of_status());
        }
        let owner = self.path()?;
        let mut owners = Owners::One;
        if self.take('[') {
            owners = if self.take_word("current") {
                Owners::Current
            } else {
                Owners::Many
            };
            self.symbol(']')?;
        }
        Ok(ConditionList { owner, owners })
    }

    /// Reads a test of conditions: `Ready=True`, `Ready!=True(Reason)`, `*=False@.status.parents[]`.
    fn condition(&mut self, negated: bool) -> Result<Term, String> {
        let mut types = vec![self.word("a condition or a field")?];
        while self.take('|') {
            types.push(self.word("a condition")?);
        }
        if types == ["*"] {
            types.clear();
        }
        let except = self.take('!');
        let statuses = if self.take('=') {
            let values = self.words("True, False or Unknown")?;
            if let Some(value) = values.iter().find(|value| !STATUSES.contains(&value.as_str())) {
                return Err(format!(
                    "{value:?} is no status of a condition: use True, False or Unknown"
                ));
            }
            Choice { values, except }
        } else if except {
            return Err("`=` is missing after `!`".to_owned());
        } else {
            Choice::default()
        };
        let mut reasons = Choice::default();
        if self.take('(') {
            reasons.except = self.take('!');
            reasons.values = self.words("a reason")?;
            self.symbol(')')?;
        }
        Ok(Term::Condition(ConditionTest {
            negated,
            types,
            statuses,
            reasons,
            list: self.list()?,
        }))
    }

    fn words(&mut self, expected: &str) -> Result<Vec<String>, String> {
        let mut words = vec![self.word(expected)?];
        while self.take('|') {
            words.push(self.word(expected)?);
        }
        Ok(words)
    }

    /// Reads a test of a field: `.status.phase=Ready|Running`, `.status.nodes[].ready=false`, `.status.ready<.spec.replicas`.
    fn field(&mut self, negated: bool) -> Result<Term, String> {
        let mut path = self.path()?;
        let mut list = None;
        if self.take('[') {
            self.symbol(']')?;
            list = Some(path);
            path = self.path()?;
        }
        let comparison = if self.take('=') {
            if self.take('=') {
                Comparison::Number(Ordering::Equal, self.operand()?)
            } else {
                Comparison::In(self.scalars()?)
            }
        } else if self.take('!') {
            self.symbol('=')?;
            Comparison::NotIn(self.scalars()?)
        } else if self.take('<') {
            Comparison::Number(Ordering::Less, self.operand()?)
        } else if self.take('>') {
            Comparison::Number(Ordering::Greater, self.operand()?)
        } else {
            Comparison::Present
        };
        Ok(Term::Field(FieldTest {
            negated,
            list,
            path,
            comparison,
        }))
    }

    fn operand(&mut self) -> Result<Operand, String> {
        if let Some(RuleToken::Word(word)) = self.rest.first()
            && let Ok(number) = word.parse()
        {
            self.next_token();
            return Ok(Operand::Number(number));
        }
        self.path().map(Operand::Path)
    }

    fn scalars(&mut self) -> Result<Vec<Value<'static>>, String> {
        let mut scalars = Vec::new();
        loop {
            scalars.push(match self.next_token() {
                Some(RuleToken::Quoted(text)) => Value::from_text(text),
                Some(RuleToken::Word(word)) => match (word.parse(), word.as_str()) {
                    (Ok(number), _) => Value::Int(number),
                    (_, "true") => Value::Bool(true),
                    (_, "false") => Value::Bool(false),
                    _ => Value::from_text(word),
                },
                Some(other) => return Err(format!("{:?} is not a value", other.to_string())),
                None => return Err("a value is missing after `=`".to_owned()),
            });
            if !self.take('|') {
                return Ok(scalars);
            }
        }
    }

    /// Reads the path of a field: `.status.phase`, `.metadata.labels["example.com/state"]`.
    fn path(&mut self) -> Result<NestedField, String> {
        let word = self.word("a field")?;
        let Some(names) = word.strip_prefix('.') else {
            return Err(format!("{word:?} is no field: write `.status.phase` for example"));
        };
        let mut path: Vec<String> = names.split('.').map(str::to_owned).collect();
        while let [RuleToken::Symbol('['), RuleToken::Quoted(name), rest @ ..] = self.rest {
            path.push(name.clone());
            self.rest = rest;
            self.symbol(']')?;
        }
        if path.iter().any(String::is_empty) {
            return Err(format!("{word:?} has an empty name"));
        }
        Ok(NestedField(path))
    }
}
