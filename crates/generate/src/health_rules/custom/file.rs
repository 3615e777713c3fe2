//! Reads the file with the rules of the user, and describes it.

use super::{CustomRule, Evaluation, RuleError, evaluate, find_rule, parse};
use crate::health_rules::find_kind_health;
use crate::policy::file::{self, MAX_SIZE, in_config_map};
use manifest::kinds::GroupKind;
use manifest::problem::{Problems, plain};
use manifest::text::printable;
use manifest::value::{Map, Value};
use manifest::yaml;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The ConfigMap with the rules of the user, which the sidecar mounts if it exists.
pub const CONFIG_MAP: &str = "argocd-ocm-cmp-health";
/// Its key.
pub const CONFIG_MAP_KEY: &str = "health.txt";

/// Reads the rules of the user for this process, and returns a warning for each invalid one. Without the file there are none.
///
/// # Errors
/// Returns an error if the file exists and cannot be read.
pub fn load(path: &Path) -> Result<Vec<String>, Problems> {
    let (rules, errors) = match read_rules(path) {
        Ok(text) => parse_of_user(&text),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(path, &error)),
    };
    super::set_rules_of_user(rules);
    let warning = |error: RuleError| format!("{}: {error}; the rule is ignored", path.display());
    Ok(errors.into_iter().map(warning).collect())
}

/// Validates the rules in a file, or in a ConfigMap, and returns their summary, or the health of the objects in another file.
///
/// # Errors
/// Returns an error for each invalid rule, and if a file cannot be read.
pub fn check(path: &Path, object: Option<&Path>) -> Result<String, Problems> {
    let text = read_rules(path).map_err(|error| unreadable(path, &error))?;
    let (rules, errors) = parse_of_user(&text);
    let problems = errors
        .iter()
        .map(|error| format!("{}: {error}", path.display()))
        .collect();
    let rules = Problems::or(problems, rules)?;
    let Some(object) = object else {
        return Ok(rules.iter().map(summary).collect());
    };
    let text = read_rules(object).map_err(|error| unreadable(object, &error))?;
    healths(&rules, &text, object)
}

/// Returns the text of a file, or the rules in the ConfigMap that it contains.
fn read_rules(path: &Path) -> io::Result<String> {
    let bytes = file::read_config_file(path)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(io::Error::other("it has more bytes than a ConfigMap may have"));
    }
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    let of_config_map = in_config_map(&text).and_then(|data| Some(data.get(CONFIG_MAP_KEY)?.as_str()?.to_owned()));
    Ok(of_config_map.unwrap_or(text))
}

fn unreadable(path: &Path, error: &io::Error) -> Problems {
    Problems::one(format!("{}: the file cannot be read: {}", path.display(), plain(error)))
}

/// Parses rules, which must not be for kinds that Kubernetes serves itself.
fn parse_of_user(text: &str) -> (Vec<CustomRule>, Vec<RuleError>) {
    let (mut rules, mut errors) = parse(text);
    rules.retain(|rule| {
        let is_built_in = |kind: &&String| {
            let kind = GroupKind {
                group: rule.group.as_str().into(),
                kind: kind.as_str().into(),
            };
            kind.built_in().is_some()
        };
        let Some(kind) = rule.kinds.iter().find(is_built_in) else {
            return true;
        };
        let message = format!(
            "{kind}.{} is a kind of Kubernetes, whose rule cannot be replaced",
            rule.group
        );
        errors.push(RuleError {
            line: rule.line,
            message,
        });
        false
    });
    errors.sort_by_key(|error| error.line);
    (rules, errors)
}

fn summary(rule: &CustomRule) -> String {
    let names: Vec<String> = rule.names().collect();
    let mut verdicts: Vec<&str> = rule.clauses.iter().map(|clause| clause.verdict.name()).collect();
    verdicts.dedup();
    verdicts.push("otherwise");
    verdicts.push(rule.otherwise.name());
    let mut line = format!("{}: {}", names.join(", "), verdicts.join(" "));
    let feedback = rule.feedback();
    if !feedback.is_empty() {
        let names: Vec<&str> = feedback.iter().map(|(name, _)| name.as_str()).collect();
        let _ = write!(line, "; reports {}", names.join(", "));
    }
    line.push('\n');
    line
}

/// Returns a line with the health of each object in a file, also of those in lists.
fn healths(rules: &[CustomRule], text: &str, path: &Path) -> Result<String, Problems> {
    let mut lines = String::new();
    for document in yaml::documents(text) {
        let document =
            document.map_err(|error| Problems::one(format!("{}:{}: {}", path.display(), error.line, error.message)))?;
        let items = match document.value.as_map().and_then(|fields| fields.get("items")) {
            Some(Value::List(items)) => items.as_slice(),
            _ => std::slice::from_ref(&document.value),
        };
        for object in items {
            let Some(fields) = object.as_map() else {
                return Err(Problems::one(format!(
                    "{}: {} is no object",
                    path.display(),
                    object.type_name()
                )));
            };
            let key = ocm::work::key(object);
            let line = format!("{key}: {}", health(rules, &key.kind, fields));
            let _ = writeln!(lines, "{}", printable(&line));
        }
    }
    Ok(lines)
}

fn health(rules: &[CustomRule], kind: &GroupKind, object: &Map<'_>) -> String {
    if find_kind_health(&kind.group, &kind.kind, false).is_some() {
        return "its rule is built in, and cannot be tried here".to_owned();
    }
    if kind.built_in().is_some() {
        return "no rule: Healthy when it is applied".to_owned();
    }
    let own_rule = rules.iter().find(|rule| rule.matches(&kind.group, &kind.kind));
    let Some((rule, origin)) = own_rule
        .map(|rule| (rule, format!("line {}", rule.line)))
        .or_else(|| Some((find_rule(&kind.group, &kind.kind)?, "the built-in rule".to_owned())))
    else {
        return "no rule: by its conditions Ready, Available, Stalled and Failed".to_owned();
    };
    let Evaluation {
        verdict,
        clause,
        depends_on_cel,
    } = evaluate(rule, object);
    let name = verdict.name();
    match clause {
        _ if depends_on_cel => {
            format!("{name}, unless a CEL expression of {origin} holds, which only the agent evaluates")
        }
        Some(clause) => format!("{name} (statement {clause} of {origin})"),
        None if object.at(&["metadata", "deletionTimestamp"]).is_some() => {
            format!("{name} (it is being deleted)")
        }
        None => format!("{name} (no test of {origin} holds)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let (_, errors) = parse_of_user(text);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn invalid_rule_names_its_line_and_harms_no_other() {
        let text = "Widget.example.com: Healthy Ready=True\n\
            Gadget.example.com: Fine Ready=True\n\
            # A comment.\n\
            Gizmo.example.com:\n  Healthy .status.phase=Ready\n  Degraded .status.phase=\n\
            Deployment.apps: Healthy\n";
        let (rules, _) = parse_of_user(text);
        assert_eq!(
            rules.iter().flat_map(CustomRule::names).collect::<Vec<_>>(),
            ["Widget.example.com"]
        );
        assert_eq!(
            problems(text),
            [
                "line 2: \"Fine\" is no verdict: use Healthy, Progressing, Suspended, Degraded, `message` or `report`",
                "line 4: a value is missing after `=`",
                "line 7: Deployment.apps is a kind of Kubernetes, whose rule cannot be replaced",
            ]
        );
    }

    #[test]
    fn hostile_text_is_an_error_and_never_panics() {
        let pieces = [
            "Widget.example.com:",
            "Healthy",
            "{",
            "}",
            "'",
            "\"",
            "@",
            "[",
            "]",
            ".a",
            "=",
            "!",
            "|",
            "(",
            ";",
            "\u{e9}",
            " ",
        ];
        for one in pieces {
            for two in pieces {
                for three in pieces {
                    let _ = parse_of_user(&format!(
                        "Widget.example.com: Healthy {one}{two}{three}\n{one}{two}{three}"
                    ));
                }
            }
        }
        assert_eq!(
            problems("Widget.example.com: Healthy {object.a\n"),
            ["line 1: a brace is not closed: end the CEL expression with `}`"]
        );
        assert_eq!(
            problems("Widget.example.com: Healthy .status.phase=\"In use\n"),
            ["line 1: a quote is not closed: end the text with `\"`"]
        );
    }

    #[test]
    fn object_is_evaluated_by_the_first_clause_that_holds() {
        let (rules, _) = parse_of_user(
            "Widget.example.com: Degraded Failed=True, .status.phase=Broken; Suspended .spec.paused=true; Healthy .status.phase=Ready",
        );
        let health = |status: &str| {
            let text = format!(
                "{{\"apiVersion\": \"example.com/v1\", \"kind\": \"Widget\", \"metadata\": {{\"name\": \"a\"}}, {status}}}"
            );
            healths(&rules, &text, Path::new("object.yaml")).expect("an object")
        };
        for (status, expected) in [
            (r#""status": {"phase": "Ready"}"#, "Healthy (statement 3 of line 1)"),
            (r#""status": {"phase": "Broken"}"#, "Degraded (statement 1 of line 1)"),
            (
                r#""spec": {"paused": true}, "status": {"phase": "Ready"}"#,
                "Suspended (statement 2 of line 1)",
            ),
            (
                r#""status": {"phase": "Ready", "conditions": [{"type": "Failed", "status": "True"}]}"#,
                "Degraded (statement 1 of line 1)",
            ),
            (r#""spec": {}"#, "Progressing (no test of line 1 holds)"),
        ] {
            assert_eq!(health(status), format!("Widget.example.com a: {expected}\n"));
        }
    }
}
