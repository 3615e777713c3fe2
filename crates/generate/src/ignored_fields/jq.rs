//! The part of jq that can only select fields of one object.
//!
//! From version 1.3 on, OCM's agent runs an expression as the jq program `del(EXPRESSION)`. It applies the result under the namespace and
//! name *in the result*, with its own permissions, after it has checked those of the executor. With all of jq, whoever can annotate an
//! object could close the parenthesis and write any object of the cluster. So an expression is parsed, and the agent gets only what is
//! written anew from the parsed form.
//!
//! ```text
//! .spec.template.spec.containers[] | select(.name == "proxy" and (.image | test("envoy"))).image, .resources
//! ╰───────────── Path ───────────╯   ╰──────────────────── Path: Select, Key ────────────────────╯  ╰─ Path ─╯
//! ```
//!
//! An expression selects each part of an object at most once for each of its last paths, so the agent's work is bounded by the sizes of
//! both: commas are only supported at the end, `..` once, and conditions have no iteration.

use manifest::json;
use std::fmt::{self, Display, Formatter};

/// The maximum length in bytes. It also bounds regular expressions: Go runs them in time proportional to their length times that of the
/// text. See [`has_count`].
const LENGTH_MAX: usize = 1000;

/// The maximum depth of parentheses in a condition.
const DEPTH_MAX: usize = 16;

/// The operators of conditions, from the one that binds least, as in jq.
const OPERATORS: [&[&str]; 5] = [&["|"], &["//"], &["or"], &["and"], COMPARISONS];
const COMPARISONS: &[&str] = &["==", "!=", "<=", ">=", "<", ">"];

/// The functions of conditions, each with the maximum number of arguments; those with arguments need one.
const FUNCTIONS: [(&str, usize); 11] = [
    ("ascii_downcase", 0),
    ("contains", 1),
    ("endswith", 1),
    ("has", 1),
    ("length", 0),
    ("not", 0),
    ("startswith", 1),
    ("test", 2),
    ("tonumber", 0),
    ("tostring", 0),
    ("type", 0),
];

const CONSTANTS: [&str; 5] = ["null", "true", "false", "[]", "{}"];

/// An expression: stages between `|`, of which the last may have several paths between commas.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathExpression {
    /// The expression, written anew. Works list expressions in the order of their texts.
    pub text: String,
    stages: Vec<Path>,
    last: Vec<Path>,
}

/// The path of a stage: `.` and its steps.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// `.key`
    Key(String),
    /// `[2]`
    Index(i32),
    /// `[]`
    Each,
    /// `..`
    Recurse,
    /// `?`
    Optional,
    /// `select(CONDITION)`
    Select(Condition),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Condition {
    /// A path with keys, indexes and `?`.
    Path(Path),
    /// A constant, as jq writes it.
    Constant(String),
    /// A function with constants as arguments.
    Call(&'static str, Vec<String>),
    Binary(Box<Self>, &'static str, Box<Self>),
    /// `CONDITION?`
    Optional(Box<Self>),
}

/// Parses an expression.
///
/// # Errors
/// Returns an error with the problem and the remedy.
pub(super) fn parse(text: &str) -> Result<PathExpression, String> {
    if text.len() > LENGTH_MAX {
        return Err(format!(
            "a jq path expression of {} bytes is too long: write at most {LENGTH_MAX} bytes, or several expressions",
            text.len()
        ));
    }
    let mut parser = Parser {
        rest: text,
        depth: 0,
        has_recursion: false,
    };
    let expression = parser.expression().filter(|_| parser.rest.is_empty());
    let (stages, last) = expression.ok_or_else(|| {
        format!(
            "{text:?} is not a supported jq path expression, from {:?} on: write keys, indexes, [], ?, one .., commas only at the end, and \
             select with paths without [], constants, parentheses, comparisons, and, or, // and {}, and no count such as {{2}} in the \
             pattern of test",
            parser.rest,
            FUNCTIONS.map(|(name, _)| name).join(", ")
        )
    })?;
    let paths: Vec<String> = last.iter().map(Path::to_string).collect();
    let mut written: Vec<String> = stages.iter().map(Path::to_string).collect();
    written.push(paths.join(", "));
    Ok(PathExpression {
        text: written.join(" | "),
        stages,
        last,
    })
}

impl PathExpression {
    /// Returns true if it can select the field at the end of these keys.
    pub(super) fn may_select(&self, keys: &[&str]) -> bool {
        self.last.iter().any(|last| {
            let steps: Vec<&Step> = self.stages.iter().chain([last]).flat_map(|path| &path.0).collect();
            may_select(&steps, keys)
        })
    }
}

/// Returns true if the steps can lead from an object to the field at the end of the keys.
fn may_select(steps: &[&Step], keys: &[&str]) -> bool {
    let Some((step, steps)) = steps.split_first() else {
        return keys.is_empty();
    };
    match step {
        Step::Key(key) => keys
            .split_first()
            .is_some_and(|(first, keys)| key == first && may_select(steps, keys)),
        Step::Each => keys.split_first().is_some_and(|(_, keys)| may_select(steps, keys)),
        Step::Index(_) => false,
        Step::Recurse => (0..=keys.len()).any(|depth| may_select(steps, &keys[depth..])),
        Step::Optional | Step::Select(_) => may_select(steps, keys),
    }
}

/// A parser of the text that is left. Its functions return `None` where the text is not supported.
struct Parser<'t> {
    rest: &'t str,
    depth: usize,
    has_recursion: bool,
}

impl Parser<'_> {
    /// Parses the stages before the last one, and the paths of the last one.
    fn expression(&mut self) -> Option<(Vec<Path>, Vec<Path>)> {
        let mut stages = Vec::new();
        let mut last = vec![self.path()?];
        while self.take("|") {
            stages.append(&mut last);
            last.push(self.path()?);
        }
        while self.take(",") {
            last.push(self.path()?);
        }
        self.skip_spaces();
        Some((stages, last))
    }

    fn path(&mut self) -> Option<Path> {
        self.skip_spaces();
        let mut first = Vec::new();
        if !self.has_recursion && self.take("..") {
            self.has_recursion = true;
            first.push(Step::Recurse);
        } else if self.take("select") {
            self.expect("(")?;
            first.push(Step::Select(self.condition(0)?));
            self.expect(")")?;
        } else if !self.rest.starts_with('.') {
            return None;
        }
        self.steps(first, true)
    }

    /// Parses the steps that follow the first ones; `.` without a step is the value itself.
    fn steps(&mut self, mut steps: Vec<Step>, iterates: bool) -> Option<Path> {
        let mut is_start = steps.is_empty();
        loop {
            self.skip_spaces();
            let has_point = self.take(".");
            if has_point && let Some(key) = self.identifier() {
                steps.push(Step::Key(key));
            } else if has_point && self.rest.starts_with('"') {
                steps.push(Step::Key(self.string()?));
            } else if (has_point || !is_start) && self.take("[") {
                steps.push(self.bracket(iterates)?);
            } else if !has_point && !is_start && self.take("?") {
                steps.push(Step::Optional);
            } else if has_point && !is_start {
                return None;
            } else {
                return Some(Path(steps));
            }
            is_start = false;
        }
    }

    /// Parses what follows `[`.
    fn bracket(&mut self, iterates: bool) -> Option<Step> {
        self.skip_spaces();
        let step = if self.rest.starts_with(']') {
            iterates.then_some(Step::Each)?
        } else if self.rest.starts_with('"') {
            Step::Key(self.string()?)
        } else {
            Step::Index(self.take_number()?.parse().ok()?)
        };
        self.expect("]")?;
        Some(step)
    }

    /// Parses a condition with the operators from `level` on.
    fn condition(&mut self, level: usize) -> Option<Condition> {
        let Some(operators) = OPERATORS.get(level) else {
            return self.term();
        };
        let left = self.condition(level + 1)?;
        let Some(operator) = operators.iter().find(|operator| self.take(operator)) else {
            return Some(left);
        };
        // jq has no chains of comparisons.
        let right = self.condition(level + usize::from(*operators == COMPARISONS))?;
        Some(Condition::Binary(Box::new(left), operator, Box::new(right)))
    }

    fn term(&mut self) -> Option<Condition> {
        self.skip_spaces();
        let mut term = if self.take("(") {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return None;
            }
            let inner = self.condition(0)?;
            self.depth -= 1;
            self.expect(")")?;
            inner
        } else if self.rest.starts_with('.') && !self.rest.starts_with("..") {
            Condition::Path(self.steps(Vec::new(), false)?)
        } else if let Some(&(name, arguments_max)) = FUNCTIONS.iter().find(|(name, _)| self.take(name)) {
            let arguments = self.arguments(arguments_max)?;
            if name == "test" && has_count(&arguments[0]) {
                return None;
            }
            Condition::Call(name, arguments)
        } else {
            Condition::Constant(self.constant()?)
        };
        while self.take("?") {
            term = Condition::Optional(Box::new(term));
        }
        Some(term)
    }

    fn arguments(&mut self, max: usize) -> Option<Vec<String>> {
        if max == 0 {
            return Some(Vec::new());
        }
        self.expect("(")?;
        let mut arguments = vec![self.constant()?];
        while arguments.len() < max && self.take(";") {
            arguments.push(self.constant()?);
        }
        self.expect(")")?;
        Some(arguments)
    }

    fn constant(&mut self) -> Option<String> {
        self.skip_spaces();
        if self.rest.starts_with('"') {
            return self.string().map(|text| quoted(&text));
        }
        let constant = CONSTANTS.into_iter().find(|constant| self.take(constant));
        constant.map(str::to_owned).or_else(|| self.take_number())
    }

    fn take_number(&mut self) -> Option<String> {
        let end = self
            .rest
            .find(|char: char| !char.is_ascii_digit() && !matches!(char, '-' | '.'))
            .unwrap_or(self.rest.len());
        let number = &self.rest[..end];
        // Rust also reads `1.`, `.1` and names such as `inf`.
        let is_plain = number.starts_with(|char: char| char.is_ascii_digit() || char == '-') && !number.ends_with('.');
        (is_plain && number.parse::<f64>().is_ok()).then(|| {
            self.rest = &self.rest[end..];
            number.to_owned()
        })
    }

    fn identifier(&mut self) -> Option<String> {
        let end = self.rest.find(|char| !is_identifier(char)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        is_word(name).then(|| {
            self.rest = rest;
            name.to_owned()
        })
    }

    /// Parses a string, whose escapes are those of JSON. jq's `\(` would run another expression.
    fn string(&mut self) -> Option<String> {
        let mut strings = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        let text = strings.next()?.ok()?;
        self.rest = &self.rest[strings.byte_offset()..];
        Some(text)
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips spaces, and consumes the token if it is next; a word only if it ends there.
    fn take(&mut self, token: &str) -> bool {
        self.skip_spaces();
        let rest = self.rest.strip_prefix(token);
        let rest = rest.filter(|rest| !(token.ends_with(is_identifier) && rest.starts_with(is_identifier)));
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, token: &str) -> Option<()> {
        self.take(token).then_some(())
    }
}

/// Returns true if a regular expression may have a repetition such as `{2}`. Go writes out each of them, so that a short expression would
/// run for minutes, and the agent cannot interrupt it.
fn has_count(pattern: &str) -> bool {
    let mut behind_braces = pattern.split('{').skip(1);
    behind_braces.any(|rest| rest.starts_with(|char: char| char.is_ascii_digit()))
}

fn is_identifier(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// Returns true if jq reads `.text` as a key.
fn is_word(text: &str) -> bool {
    text.chars().all(is_identifier) && text.starts_with(|char: char| !char.is_ascii_digit())
}

fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    json::write_text(text, &mut quoted);
    quoted
}

impl Display for Path {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let begins_with_point = matches!(self.0.first(), None | Some(Step::Index(_) | Step::Each));
        out.write_str(if begins_with_point { "." } else { "" })?;
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if is_word(key) => write!(out, ".{key}"),
                Step::Key(key) if at == 0 => write!(out, ".[{}]", quoted(key)),
                Step::Key(key) => write!(out, "[{}]", quoted(key)),
                Step::Index(index) => write!(out, "[{index}]"),
                Step::Each => out.write_str("[]"),
                Step::Recurse => out.write_str(".."),
                Step::Optional => out.write_str("?"),
                Step::Select(condition) => write!(out, "select({condition})"),
            }?;
        }
        Ok(())
    }
}

impl Display for Condition {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(out, "{path}"),
            Self::Constant(constant) => out.write_str(constant),
            Self::Call(name, arguments) if arguments.is_empty() => out.write_str(name),
            Self::Call(name, arguments) => write!(out, "{name}({})", arguments.join("; ")),
            Self::Binary(left, operator, right) => {
                let operand = |side: &Self| match side {
                    Self::Binary(..) => format!("({side})"),
                    _ => side.to_string(),
                };
                write!(out, "{} {operator} {}", operand(left), operand(right))
            }
            // Without parentheses, only the last step of a path would be optional.
            Self::Optional(condition) => write!(out, "({condition})?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ignored_fields::FieldPath;

    fn rewritten(text: &str) -> String {
        parse(text).unwrap_or_else(|error| panic!("{error}")).text
    }

    #[test]
    fn writes_the_usual_expressions_of_argo_cd_as_they_are() {
        for text in [
            r#".spec.template.spec.initContainers[] | select(.name == "injected-init-container")"#,
            r#".spec.template.spec.containers[] | select(.name == "proxy").image"#,
            r#".metadata.annotations["linkerd.io/proxy-version"]"#,
            ".webhooks[]?.clientConfig.caBundle",
            ".webhooks[0].clientConfig.caBundle",
            ".spec.tiers[-1]",
            ".status?.conditions[]?.lastTransitionTime",
            r#".data["A-KEY"], .data["B-KEY"], .stringData["A-KEY"]"#,
            ".spec.ports[] | select(.nodePort != null) | .nodePort",
            r#"select(.metadata.labels.controlledByLeader == "true").spec.suspend"#,
            r#".spec.template.spec.containers[] | select(.image | endswith(":latest"))"#,
            r#".spec.template.spec.volumes[]? | select(.name | test("^kube-api-"; "i")) | .projected, .secret"#,
            r#"select((.metadata.annotations // {}) | has("vault.hashicorp.com/path")) | .data"#,
            r#".spec.rules[] | select((.weight >= 1.5) or ((.name? | test("a"))? and (.kind | not)))"#,
            ".. | .caBundle?",
            ".spec | .. | select(type == \"string\")",
            "...creationTimestamp?",
            r#".spec.urls[] | select(test("^https?://[^/]+/{id}$"))"#,
        ] {
            assert_eq!(rewritten(text), text);
        }
    }

    #[test]
    fn writes_other_spellings_anew() {
        for (text, expected) in [
            (r#".metadata.annotations."a.b/c""#, r#".metadata.annotations["a.b/c"]"#),
            (r#".["spec"].["replicas"]"#, ".spec.replicas"),
            (r#". ["a b"] [ ] . ["c\u0064"]"#, r#".["a b"][].cd"#),
            (".spec|.replicas", ".spec | .replicas"),
            (".spec.replicas | .", ".spec.replicas | ."),
            (
                r#".a[]|select(.b=="x" and .c!=1 or .d)"#,
                r#".a[] | select(((.b == "x") and (.c != 1)) or .d)"#,
            ),
            (
                r#".a[] | select(.b // "x" == "y")"#,
                r#".a[] | select(.b // ("x" == "y"))"#,
            ),
            (".a[]|select((.b.c)? == 1)", ".a[] | select((.b.c)? == 1)"),
            (r#".spec | .["\\(.x)"]"#, r#".spec | .["\\(.x)"]"#),
        ] {
            assert_eq!(rewritten(text), expected);
            assert_eq!(rewritten(expected), expected);
        }
    }

    /// The agent applies the result of `del(EXPRESSION)` under the name and namespace in it, whatever they are.
    #[test]
    fn refuses_all_that_does_more_than_select() {
        let deep = format!(".a | select({}.b{})", "(".repeat(200), ")".repeat(200));
        let long = format!(".a{}", ".a".repeat(1000));
        for text in [
            r#".zzz) | .metadata.namespace = "kube-system" | del(.zzz"#,
            ".a) , (.b",
            ".a = 1",
            ".a |= 1",
            ".a | .b //= 1",
            r#".["\(.a)"]"#,
            r#".a[] | select(.name == "\(env)")"#,
            ".a # comment",
            ".a\n| .b",
            ".a;.b",
            "def f: f; f",
            ".a as $x | .b",
            ".[.a]",
            ".a[1:2]",
            "env",
            "$ENV.a",
            "input",
            "recurse",
            "range(9)",
            ".a | select(.b == env)",
            ".a | select(.b[] == 1)",
            ".a | select(..)",
            ".a | select(.b == .c == .d)",
            ".a | select(test(.b))",
            r#".a | select(.b | test("(.{0,999}b)?z"))"#,
            r#".a | select(.b | test("a\u007b999}"; "i"))"#,
            ".a | select(true",
            ".a | selectx(true)",
            ".. | ..",
            ".a, .b | .c",
            ".a..b",
            ". a",
            "",
            &deep,
            &long,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    /// Without its name or namespace, the agent cannot find the object.
    #[test]
    fn refuses_to_remove_the_identity() {
        for text in [
            ".",
            "..",
            ".[]",
            "select(true)",
            ".[\"kind\"]",
            ".metadata[]",
            ".metadata | .name?",
            ".spec, .[\"metadata\"]",
            ".. | .namespace?",
            ".metadata | .. | select(type == \"string\")",
            &format!(".metadata | select({}.a) | .name", ".a and ".repeat(40)),
        ] {
            let error = text.parse::<FieldPath>().expect_err(text);
            assert!(error.contains("could remove"), "{text}: {error}");
        }
        for text in [".metadata.labels[]", ".spec.template.metadata.name", ".[][][]?"] {
            assert!(text.parse::<FieldPath>().is_ok(), "{text}");
        }
    }
}
