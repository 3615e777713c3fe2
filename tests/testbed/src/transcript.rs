//! Transcripts of requests to an API server with the answers, as readable text: `tests/data/conformance` has some, and explains
//! the format.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, mem};

use anyhow::{Context, Result, ensure};
use http::Request;
use serde_json::{Map, Value};

/// The verbs of a transcript, each with its method and the type of its body.
const VERBS: [(&str, &str, &str); 6] = [
    ("GET", "GET", ""),
    ("POST", "POST", "application/json"),
    ("PUT", "PUT", "application/json"),
    ("DELETE", "DELETE", "application/json"),
    ("MERGE", "PATCH", "application/merge-patch+json"),
    ("JSON", "PATCH", "application/json-patch+json"),
];

/// A request and its answer.
#[derive(Debug, Default)]
struct Step {
    /// The comment before it, verbatim.
    comment: String,
    /// The verb and the path.
    line: String,
    body: String,
    /// The recorded answer, in lines.
    answer: String,
}

/// A transcript that is replayed.
#[derive(Debug)]
pub struct Transcript {
    path: PathBuf,
    /// The definitions, whose names begin with `@`.
    definitions: Vec<(String, String)>,
    steps: Vec<Step>,
    /// The answers so far.
    answers: Vec<String>,
    /// The number of names assigned for each kind of value.
    counts: BTreeMap<&'static str, usize>,
    /// The names of values that are different in each run.
    names: BTreeMap<String, String>,
    /// The last version and uid in the answers, by their names.
    latest: BTreeMap<&'static str, String>,
}

impl Transcript {
    /// Reads all transcripts of a folder, in the order of their names.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
            paths.push(entry?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        paths.sort();
        ensure!(!paths.is_empty(), "no transcripts in {}", folder.display());
        paths.into_iter().map(Self::read).collect()
    }

    fn read(path: PathBuf) -> Result<Self> {
        let text = fs::read_to_string(&path)?;
        let (mut definitions, mut steps) = (Vec::new(), Vec::new());
        let mut step = Step::default();
        for line in text.lines() {
            if let Some(answer) = line.strip_prefix("< ") {
                writeln!(step.answer, "{answer}")?;
                continue;
            }
            if !step.answer.is_empty() || line.is_empty() {
                steps.push(mem::take(&mut step));
            }
            match line {
                "" => {}
                comment if comment.starts_with(['#', '@']) => {
                    writeln!(step.comment, "{comment}")?;
                    if let Some((name, value)) = comment.split_once(' ').filter(|(name, _)| name.starts_with('@')) {
                        definitions.push((name.to_owned(), value.to_owned()));
                    }
                }
                line if step.line.is_empty() => line.clone_into(&mut step.line),
                line => writeln!(step.body, "{line}")?,
            }
        }
        if !step.line.is_empty() {
            steps.push(step);
        }
        steps.retain(|step| !step.comment.is_empty() || !step.line.is_empty());
        Ok(Self {
            path,
            definitions,
            steps,
            answers: Vec::new(),
            counts: BTreeMap::new(),
            names: BTreeMap::new(),
            latest: BTreeMap::new(),
        })
    }

    /// Returns the next request, or `None` after the last one. Fills in the names `@…` and `<…>`.
    pub fn next_request(&mut self) -> Result<Option<Request<Vec<u8>>>> {
        let Some(step) = self.steps.get(self.answers.len()) else {
            return Ok(None);
        };
        if step.line.is_empty() {
            self.answers.push(String::new());
            return self.next_request();
        }
        let at = || format!("{}: {}", self.path.display(), step.line);
        let (verb, path) = step.line.split_once(' ').with_context(at)?;
        let (_, method, content) = VERBS.into_iter().find(|(name, ..)| *name == verb).with_context(at)?;
        let (mut path, mut body) = (path.to_owned(), step.body.clone());
        for (name, value) in &self.definitions {
            path = path.replace(name, value);
            body = body.replace(name, value);
        }
        for (value, name) in &self.names {
            body = body.replace(name, value);
        }
        for (name, value) in &self.latest {
            body = body.replace(name, value);
        }
        let mut request = Request::builder().method(method).uri(path);
        if !content.is_empty() {
            request = request.header("Content-Type", content);
        }
        Ok(Some(request.body(body.into_bytes())?))
    }

    /// Records the answer to the last request.
    pub fn answered(&mut self, code: u16, body: &str) -> Result<()> {
        let mut answer: Value = serde_json::from_str(body).with_context(|| format!("not JSON: {body}"))?;
        let mut text = format!("{code} {}\n", title(&answer));
        if answer["status"] == "Failure" {
            // The API server lists some causes twice.
            let causes = answer["details"]["causes"].as_array().into_iter().flatten();
            for line in causes.map(cause_line).collect::<BTreeSet<_>>() {
                writeln!(text, "{line}")?;
            }
        } else {
            self.normalize(&mut answer, "");
            for (key, value) in answer.as_object().into_iter().flatten() {
                if !["apiVersion", "kind"].contains(&key.as_str()) {
                    writeln!(text, "{key} {value}")?;
                }
            }
        }
        for (name, value) in &self.definitions {
            text = text.replace(value, name);
        }
        self.answers.push(text);
        Ok(())
    }

    /// Replaces values that are different in each run by names, and removes irrelevant fields.
    fn normalize(&mut self, value: &mut Value, key: &str) {
        match value {
            Value::Object(fields) => {
                if key == "metadata" {
                    // The conflicts contain the field managers.
                    fields.remove("managedFields");
                }
                if fields.contains_key("signerName") {
                    for requester in ["username", "groups", "uid", "extra"] {
                        fields.remove(requester);
                    }
                }
                if fields.get("items").is_some_and(Value::is_array) {
                    fields.retain(|key, _| key == "items" || key == "kind");
                    let Some(Value::Array(items)) = fields.get_mut("items") else {
                        return;
                    };
                    for item in items {
                        *item = only(&item["metadata"], &["name", "namespace", "resourceVersion"]);
                    }
                }
                for (at, value) in fields.iter_mut() {
                    match (at.as_str(), &mut *value) {
                        ("resourceVersion", Value::String(text)) => *text = self.name(("v", "<v>"), text),
                        ("uid", Value::String(text)) if ["metadata", "details"].contains(&key) => {
                            *text = self.name(("uid", "<uid>"), text);
                        }
                        ("creationTimestamp" | "deletionTimestamp", Value::String(text)) => "<time>".clone_into(text),
                        (at, value) => self.normalize(value, at),
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.normalize(item, "");
                }
            }
            _ => {}
        }
    }

    fn name(&mut self, (kind, latest): (&'static str, &'static str), value: &str) -> String {
        self.latest.insert(latest, value.to_owned());
        if let Some(name) = self.names.get(value) {
            return name.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let name = format!("<{kind}{count}>");
        self.names.insert(value.to_owned(), name.clone());
        name
    }

    /// Compares the answers with the recorded ones, or records them.
    pub fn finish(self, rewrite: bool) -> Result<()> {
        if rewrite {
            return Ok(fs::write(&self.path, self.to_text())?);
        }
        let mut different = String::new();
        for (step, answer) in self.steps.iter().zip(&self.answers) {
            if step.answer != *answer {
                let Step {
                    comment, line, body, ..
                } = step;
                writeln!(
                    different,
                    "{comment}{line}\n{body}recorded:\n{}answered:\n{answer}",
                    step.answer
                )?;
            }
        }
        ensure!(
            different.is_empty(),
            "the answers differ from {}:\n\n{different}",
            self.path.display()
        );
        Ok(())
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        for (step, answer) in self.steps.iter().zip(&self.answers) {
            for part in [&step.comment, &step.line] {
                text.push_str(part);
            }
            if !step.line.is_empty() {
                text.push('\n');
            }
            text.push_str(&step.body);
            for line in answer.lines() {
                text.push_str("< ");
                text.push_str(line);
                text.push('\n');
            }
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }
}

/// Returns the kind of an object, or the reason of a failure.
fn title(answer: &Value) -> &str {
    let key = if answer["status"] == "Failure" {
        "reason"
    } else {
        "kind"
    };
    answer[key].as_str().unwrap_or("without a reason")
}

fn cause_line(cause: &Value) -> String {
    let [reason, field, message] = ["reason", "field", "message"].map(|key| cause[key].as_str().unwrap_or_default());
    match reason {
        // The rest is a time and a version.
        "FieldManagerConflict" => {
            let message = message.split(" using ").next().unwrap_or_default();
            format!("cause {reason} {field} {message}")
        }
        _ => format!("cause {reason} {field}"),
    }
}

fn only(fields: &Value, keys: &[&str]) -> Value {
    let all = fields.as_object().into_iter().flatten();
    let some: Map<_, _> = all
        .filter(|(key, _)| keys.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Value::Object(some)
}
