//! Parses a policy from text, and reports all problems of the text.

use super::pattern::{Pattern, Patterns};
use super::{Executor, Policy, PolicyEntry};
use crate::placement::PlacementTarget;
use crate::similar::similar;
use manifest::kinds::{BUILT_IN, GroupKind, custom_kinds};
use manifest::problem::Problems;
use manifest::value::{Map, Value};
use manifest::yaml;
use ocm::names::{self, ClusterName};
use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

const API_VERSION: &str = "argocd-ocm-cmp.github.io/v1alpha1";
const KIND: &str = "Policy";

impl Policy {
    /// Parses a policy from the text of `file`.
    ///
    /// # Errors
    /// Returns an error with one line per problem. Nothing is guessed or ignored: a policy that is only partly understood would
    /// allow what it was written to refuse.
    pub fn parse(text: &str, file: &str) -> Result<Self, Problems> {
        let mut documents = yaml::documents(text);
        let value = match (documents.next(), documents.next()) {
            (Some(Ok(document)), None) => document.value,
            (None, _) => return Err(Problems::one(format!("{file}: the file is empty, not a policy"))),
            (Some(Ok(_)), Some(Ok(document))) => {
                return Err(Problems::one(format!(
                    "{file}:{}: a second document begins here: a policy is one document, with all entries in its list of projects",
                    document.line
                )));
            }
            (Some(Err(error)), _) | (_, Some(Err(error))) => {
                return Err(Problems::one(format!("{file}:{}: {}", error.line, error.message)));
            }
        };
        // A repeated key would override the earlier list, maybe with a wider one.
        if let Some(error) = yaml::repeated_key(text) {
            return Err(Problems::one(format!("{file}:{}: {}", error.line, error.message)));
        }
        let mut reader = PolicyReader {
            file,
            problems: Vec::new(),
        };
        let entries = reader.entries(&value);
        let file = file.to_owned();
        Problems::or(reader.problems, Self { entries, file })
    }
}

/// The state of parsing, with the problems found so far.
struct PolicyReader<'a> {
    file: &'a str,
    problems: Vec<String>,
}

impl PolicyReader<'_> {
    fn refuse(&mut self, what: &str) {
        self.problems.push(format!("{}: {what}", self.file));
    }

    fn wrong_type(&mut self, path: &str, value: &Value<'_>, wanted: &str) {
        let remedy = match (wanted, value) {
            ("text", Value::Bool(_) | Value::Int(_) | Value::Float(_)) => ": put it in quotes",
            (_, Value::Null) => ": give it a value or leave it out",
            _ => "",
        };
        self.refuse(&format!("{path} is {}, not {wanted}{remedy}", value.type_name()));
    }

    fn entries(&mut self, value: &Value<'_>) -> Vec<PolicyEntry> {
        let Value::Map(fields) = value else {
            self.refuse(&format!("it is {}, not a policy", value.type_name()));
            return Vec::new();
        };
        for (field, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            match fields.get(field) {
                None => self.refuse(&format!("{field} is missing: it must be {wanted}")),
                Some(Value::String(text)) if text == wanted => {}
                Some(Value::String(text)) => self.refuse(&format!("{field} is {text:?}: it must be {wanted}")),
                Some(other) => self.wrong_type(field, other, "text"),
            }
        }
        if !self.problems.is_empty() {
            // Another kind of object: its fields do not matter.
            return Vec::new();
        }
        self.unknown(fields, "", "a policy", &["apiVersion", "kind", "projects"]);
        let mut entries: Vec<PolicyEntry> = Vec::new();
        match fields.get("projects") {
            None => self.refuse("projects is missing: without an entry no project may deliver anything"),
            Some(Value::List(items)) if items.is_empty() => {
                self.refuse("projects is empty: without an entry no project may deliver anything");
            }
            Some(Value::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    let path = format!("projects[{at}]");
                    let entry = self.entry(item, &path);
                    self.unreachable(&entries, &entry, &path);
                    entries.push(entry);
                }
            }
            Some(other) => self.wrong_type("projects", other, "a list"),
        }
        entries
    }

    /// Reports an entry that never applies: its author meant something else.
    fn unreachable(&mut self, earlier: &[PolicyEntry], entry: &PolicyEntry, path: &str) {
        for (at, name) in entry.names.0.iter().enumerate() {
            let covers = |earlier: &PolicyEntry| earlier.names.0.iter().any(|pattern| pattern.covers(name));
            if let Some(first) = earlier.iter().position(covers) {
                self.refuse(&format!(
                    "{path}.names[{at}] {:?} has no effect: projects[{first}] comes first and matches it",
                    name.text
                ));
            }
        }
    }

    fn entry(&mut self, value: &Value<'_>, path: &str) -> PolicyEntry {
        let nothing = Map::default();
        let fields = if let Value::Map(fields) = value {
            self.unknown(fields, path, "an entry", FIELDS);
            if fields.get("names").is_none() {
                self.refuse(&format!(
                    "{path}.names is missing: name the AppProjects that the entry is for"
                ));
            }
            fields
        } else {
            self.wrong_type(path, value, "a mapping");
            &nothing
        };
        let mut list = |name, check: &dyn Fn(&Pattern) -> Result<(), String>| {
            let value = fields.get(name)?;
            Some(self.patterns(value, &format!("{path}.{name}"), check))
        };
        let project = literal(|name| names::subdomain(name, "a project's"));
        let names = list("names", &project).unwrap_or_default();
        let clusters = list("clusters", &literal(ClusterName::from_str));
        let placements = list("placements", &literal(PlacementTarget::from_str));
        let namespaces = list("namespaces", &literal(names::namespace));
        let kinds = list("kinds", &kind);
        let denied_kinds = list("deniedKinds", &kind);
        let mut boolean = |name| {
            let value = fields.get(name)?;
            if let Value::Bool(value) = value {
                return Some(*value);
            }
            self.wrong_type(&format!("{path}.{name}"), value, "true or false");
            None
        };
        PolicyEntry {
            names,
            clusters,
            placements,
            namespaces,
            kinds,
            denied_kinds,
            cluster_scoped: boolean("clusterScoped").unwrap_or(false),
            secrets: boolean("secrets").unwrap_or(false),
            executor: fields
                .get("executor")
                .and_then(|value| self.executor(value, &format!("{path}.executor"))),
        }
    }

    fn executor(&mut self, value: &Value<'_>, path: &str) -> Option<Executor> {
        let Value::Map(fields) = value else {
            self.wrong_type(path, value, "a mapping");
            return None;
        };
        self.unknown(fields, path, "an executor", &["namespace", "name"]);
        let mut text = |name: &str| match fields.get(name) {
            Some(Value::String(text)) => Some(text.as_ref()),
            Some(other) => {
                self.wrong_type(&format!("{path}.{name}"), other, "text");
                None
            }
            None => {
                self.refuse(&format!(
                    "{path}.{name} is missing: an executor is a ServiceAccount with both"
                ));
                None
            }
        };
        let (namespace, name) = (text("namespace"), text("name"));
        match Executor::new(namespace?, name?) {
            Ok(executor) => Some(executor),
            Err(faults) => {
                for (name, fault) in ["namespace", "name"].iter().zip(faults) {
                    if let Some(fault) = fault {
                        self.refuse(&format!("{path}.{name}: {fault}"));
                    }
                }
                None
            }
        }
    }

    fn patterns(&mut self, value: &Value<'_>, path: &str, check: &dyn Fn(&Pattern) -> Result<(), String>) -> Patterns {
        let mut patterns = Vec::new();
        match value {
            Value::List(items) if items.is_empty() => {
                self.refuse(&format!("{path} is empty, which is ambiguous: fill it or leave it out"));
            }
            Value::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    let path = format!("{path}[{at}]");
                    let Value::String(text) = item else {
                        self.wrong_type(&path, item, "text");
                        continue;
                    };
                    match pattern(text, check) {
                        Ok(pattern) => patterns.push(pattern),
                        Err(why) => self.refuse(&format!("{path}: {why}")),
                    }
                }
            }
            other => self.wrong_type(path, other, "a list"),
        }
        Patterns(patterns)
    }

    fn unknown(&mut self, fields: &Map<'_>, path: &str, of: &str, known: &[&str]) {
        let dot = if path.is_empty() { "" } else { "." };
        for (field, _) in fields.iter() {
            if !known.contains(&field) {
                self.refuse(&format!(
                    "{path}{dot}{field} is not a field of {of}: the fields are {}",
                    known.join(", ")
                ));
            }
        }
    }
}

const FIELDS: &[&str] = &[
    "names",
    "clusters",
    "placements",
    "namespaces",
    "kinds",
    "deniedKinds",
    "clusterScoped",
    "secrets",
    "executor",
];

fn pattern(text: &str, check: &dyn Fn(&Pattern) -> Result<(), String>) -> Result<Pattern, String> {
    if text.is_empty() {
        return Err("it is empty: remove it".to_owned());
    }
    if text.contains(|char: char| char.is_whitespace() || char.is_control()) {
        return Err(format!("{text:?} contains a space: list every name separately"));
    }
    if has_comma_outside_braces(text) {
        return Err(format!(
            "{text:?} contains a comma outside of {{}}: list every name separately"
        ));
    }
    let pattern = Pattern::new(text).map_err(|error| format!("{text:?} is not a glob: {error}"))?;
    check(&pattern)?;
    Ok(pattern)
}

/// Returns the check of a list whose items are names of this form, or globs.
fn literal<T, E: Display>(parse: impl Fn(&str) -> Result<T, E>) -> impl Fn(&Pattern) -> Result<(), String> {
    move |pattern| {
        if pattern.is_literal() {
            parse(&pattern.text).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Returns true if a comma of the glob does not separate alternatives: no name has a comma, so it would match nothing.
fn has_comma_outside_braces(text: &str) -> bool {
    let mut depth = 0_usize;
    text.bytes().any(|byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        byte == b',' && depth == 0
    })
}

/// The maximum number of steps to list the alternatives of a glob.
const ALTERNATIVES_MAX: usize = 1000;

/// Returns the globs without `{}` that match the same as this glob together; `None` if they are too many, or if a brace is not closed.
fn alternatives(text: &str) -> Option<Vec<String>> {
    let mut without_braces = Vec::new();
    let mut open = vec![text.to_owned()];
    let mut steps = 0;
    while let Some(text) = open.pop() {
        steps += 1;
        if steps > ALTERNATIVES_MAX {
            return None;
        }
        let Some((before, behind)) = text.split_once('{') else {
            without_braces.push(text);
            continue;
        };
        let (mut depth, mut start) = (0_usize, 0);
        let mut is_closed = false;
        let mut options = Vec::new();
        for (at, byte) in behind.bytes().enumerate() {
            if depth == 0 && matches!(byte, b',' | b'}') {
                options.push(&behind[start..at]);
                start = at + 1;
            }
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 0 => {
                    is_closed = true;
                    break;
                }
                b'}' => depth -= 1,
                _ => {}
            }
        }
        if !is_closed {
            return None;
        }
        let after = &behind[start..];
        open.extend(options.iter().rev().map(|option| format!("{before}{option}{after}")));
    }
    Some(without_braces)
}

/// Checks the spelling of a kind: a resource name, a version or a misspelled group would match nothing, and so deny nothing.
fn kind(pattern: &Pattern) -> Result<(), String> {
    let text = &pattern.text;
    if text.contains(['/', '\\']) {
        return Err(format!("{text:?} is not a kind: {KIND_REMEDY}"));
    }
    let alternatives =
        alternatives(text).ok_or_else(|| format!("{text:?} cannot be expanded: list every kind separately"))?;
    alternatives.iter().try_for_each(|text| kind_without_braces(text))
}

const KIND_REMEDY: &str = "write it as Kind.group, like Deployment.apps, and a core kind alone, like ConfigMap";

fn kind_without_braces(text: &str) -> Result<(), String> {
    let is_kind = text.starts_with(|first: char| first.is_ascii_uppercase() || "*?[".contains(first));
    if !is_kind {
        return Err(format!("{text:?} is not a kind: {KIND_REMEDY}"));
    }
    let group = text.split_once('.').map(|(_, group)| group);
    if group.is_some_and(|group| matches!(group, "" | "core") || starts_with_version(group)) {
        return Err(format!("{text:?} has no API group after the dot: {KIND_REMEDY}"));
    }
    let pattern = Pattern::new(text).map_err(|error| format!("{text:?} is not a glob: {error}"))?;
    let is_known = BUILT_IN
        .iter()
        .any(|known| pattern.matches(&full_name(known.kind, known.group)));
    if is_known {
        return Ok(());
    }
    if pattern.is_literal() {
        if group.is_none() {
            let other = BUILT_IN.iter().find(|known| known.kind == text);
            let remedy = other.map_or_else(
                || KIND_REMEDY.to_owned(),
                |known| format!("write {text}.{}", known.group),
            );
            return Err(format!("{text:?} is not a core kind of Kubernetes: {remedy}"));
        }
        if let Some(meant) = meant_kind(text) {
            return Err(format!(
                "{text:?} is not a kind of its API group: did you mean {meant}?"
            ));
        }
    } else {
        glob_of_kinds(&pattern, group)?;
    }
    let literal_group = group.filter(|group| !group.contains(['*', '?', '[']));
    literal_group.map_or(Ok(()), |group| known_group(text, group))
}

/// Returns true if a star stands for a part of the group, because it matches dots too.
fn has_open_group(text: &str) -> bool {
    let kind = text.split('.').next().unwrap_or_default();
    kind.contains(['*', '?'])
}

/// Checks a glob that matches no kind of Kubernetes. It may match custom kinds.
fn glob_of_kinds(pattern: &Pattern, group: Option<&str>) -> Result<(), String> {
    let text = &pattern.text;
    let is_of_custom_group = |known: &GroupKind| has_open_group(text) || group == Some(&*known.group);
    let custom: Vec<_> = custom_kinds().filter(|(known, _)| is_of_custom_group(known)).collect();
    if custom.iter().any(|(known, _)| pattern.matches(&known.to_string())) {
        return Ok(());
    }
    // Kinds and resource names in lower case.
    let of_any_case = Pattern::new(&text.to_lowercase()).map_err(|error| format!("{text:?} is not a glob: {error}"))?;
    let is_meant = |kind: &str, plural: &str, group: &str| {
        [kind, plural]
            .iter()
            .any(|name| of_any_case.matches(&full_name(name, group).to_lowercase()))
    };
    let built_in = BUILT_IN
        .iter()
        .find(|known| is_meant(known.kind, known.plural, known.group));
    let built_in = built_in.map(|known| full_name(known.kind, known.group).into_owned());
    let custom = || {
        custom
            .iter()
            .find(|(known, custom)| is_meant(&known.kind, &custom.plural, &known.group))
    };
    if let Some(meant) = built_in.or_else(|| custom().map(|(known, _)| known.to_string())) {
        return Err(format!(
            "{text:?} matches no kind: write kinds as in manifests, like {meant}"
        ));
    }
    match group {
        // Without a dot and a star it can match core kinds only.
        None if !text.contains('*') => Err(format!("{text:?} matches no core kind of Kubernetes: {KIND_REMEDY}")),
        Some(group) if BUILT_IN.iter().any(|known| known.group == group) => Err(format!(
            "{text:?} matches no kind of the API group {group}: correct the kind"
        )),
        _ => Ok(()),
    }
}

/// Checks that the API group is not a misspelled one of Kubernetes.
fn known_group(text: &str, group: &str) -> Result<(), String> {
    let is_custom = || custom_kinds().any(|(known, _)| &*known.group == group);
    let groups = || BUILT_IN.iter().map(|known| known.group);
    if groups().any(|known| known == group) {
        return Ok(());
    }
    // Groups of custom kinds have a dot.
    let is_short = !group.contains('.');
    let meant = groups()
        .find(|known| known.eq_ignore_ascii_case(group) || (is_short && known.split('.').next() == Some(group)))
        // Groups of x-k8s.io are those of SIGs, which have names of built-in groups.
        .or_else(|| similar(group, groups()).filter(|_| !group.ends_with("x-k8s.io")));
    match meant {
        Some(meant) if !is_custom() => Err(format!("{text:?} has an unknown API group: did you mean {meant}?")),
        None if is_short && !has_open_group(text) => Err(format!("{text:?} has an unknown API group: {KIND_REMEDY}")),
        _ => Ok(()),
    }
}

/// Returns the name of a kind in a policy: with its group, and a core kind without.
fn full_name<'n>(kind: &'n str, group: &str) -> Cow<'n, str> {
    if group.is_empty() {
        Cow::Borrowed(kind)
    } else {
        Cow::Owned(format!("{kind}.{group}"))
    }
}

/// Returns the known kind that a misspelled kind with a group means: in another case, as a resource name, or with a typing error.
/// Other unknown kinds may be those of an operator, or of a newer Kubernetes.
fn meant_kind(text: &str) -> Option<String> {
    let (kind, group) = text.split_once('.')?;
    let of_group = BUILT_IN.iter().filter(|known| known.group == group);
    let built_in = of_group.map(|known| (known.kind.to_owned(), Cow::Borrowed(known.plural)));
    let custom = custom_kinds().filter(|(known, _)| &*known.group == group);
    let custom = custom.map(|(known, properties)| (known.kind.to_string(), properties.plural));
    let known: Vec<_> = built_in.chain(custom).collect();
    if known.iter().any(|(known, _)| known == kind) {
        return None;
    }
    let is_meant = |name: &str| name.eq_ignore_ascii_case(kind);
    let other_case = known.iter().find(|(kind, plural)| is_meant(kind) || is_meant(plural));
    let meant = other_case.map(|(meant, _)| format!("{meant}.{group}"));
    meant.or_else(|| {
        let names: Vec<_> = BUILT_IN
            .iter()
            .map(|known| format!("{}.{}", known.kind, known.group))
            .collect();
        let meant = similar(text, names.iter().map(String::as_str))?;
        // ResourceClass, a kind of earlier versions, differs from ResourceClaim by two letters.
        (strsim::damerau_levenshtein(text, meant) == 1).then(|| meant.to_owned())
    })
}

/// Returns true if the group starts like `v1` or `v1beta1.apps`: kubectl parses that as a version.
fn starts_with_version(group: &str) -> bool {
    let first = group.split('.').next().unwrap_or(group);
    first
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        Policy::parse(text, "policy.yaml").expect_err(text).to_string()
    }

    fn error_of(projects: &str) -> String {
        message(&format!(
            "apiVersion: argocd-ocm-cmp.github.io/v1alpha1\nkind: Policy\nprojects: {projects}\n"
        ))
    }

    #[test]
    fn refuses_files_that_are_not_policies() {
        for (text, expected) in [
            ("", "policy.yaml: the file is empty, not a policy"),
            ("# nothing\n---\n", "policy.yaml: the file is empty, not a policy"),
            ("[]", "policy.yaml: it is a list, not a policy"),
            ("a: [", "policy.yaml:1: "),
            (
                "apiVersion: v1\nkind: ConfigMap\ndata: {}\n",
                "policy.yaml: apiVersion is \"v1\": it must be argocd-ocm-cmp.github.io/v1alpha1\nerror: policy.yaml: kind is \
                 \"ConfigMap\": it must be Policy\n",
            ),
            (
                "apiVersion: 1\n",
                "policy.yaml: apiVersion is a number, not text: put it in quotes\nerror: policy.yaml: kind is missing: it must \
                 be Policy\n",
            ),
            (
                "apiVersion: argocd-ocm-cmp.github.io/v1alpha1\nkind: Policy\nprojects: [{names: [a]}]\n---\nkind: Policy\n",
                "policy.yaml:5: a second document begins here: a policy is one document, with all entries in its list of projects",
            ),
            (
                "apiVersion: argocd-ocm-cmp.github.io/v1alpha1\nkind: Policy\nprojects: [{names: [a]}]\n---\nkind: {\n",
                "policy.yaml:",
            ),
        ] {
            let message = message(text);
            assert!(message.starts_with(&format!("error: {expected}")), "{message}");
        }
    }

    #[test]
    fn requires_projects() {
        for (projects, expected) in [
            (
                "[]",
                "projects is empty: without an entry no project may deliver anything",
            ),
            ("", "projects is null, not a list: give it a value or leave it out"),
            ("{names: [a]}", "projects is a mapping, not a list"),
            ("[a]", "projects[0] is text, not a mapping"),
            (
                "[{}]",
                "projects[0].names is missing: name the AppProjects that the entry is for",
            ),
            (
                "[{names: [a]}]\nproject: []",
                "project is not a field of a policy: the fields are apiVersion, kind, projects",
            ),
        ] {
            assert_eq!(error_of(projects), format!("error: policy.yaml: {expected}\n"));
        }
        assert_eq!(
            message("apiVersion: argocd-ocm-cmp.github.io/v1alpha1\nkind: Policy\n"),
            "error: policy.yaml: projects is missing: without an entry no project may deliver anything\n"
        );
    }

    #[test]
    fn reports_every_error_with_its_path() {
        let message = error_of(
            "[{names: [team-a, 12, '', Team, 'shop-[', 'a, b'], cluster: [eu1], clusters: eu1, namespaces: [], kinds: }, \
             {names: [b], namespaces: [Shop], clusters: [eu_1], secrets: 'true', clusterScoped: 1, executor: {namspace: shop, name: A_}}, \
             {names: [c], executor: shop/deployer}, {names: [d], executor: {namespace: true, name: x}}, \
             {names: [e], executor: {namespace: Shop, name: A_}}]",
        );
        assert_eq!(
            message,
            "error: policy.yaml: projects[0].cluster is not a field of an entry: the fields are names, clusters, placements, namespaces, kinds, deniedKinds, clusterScoped, secrets, executor
error: policy.yaml: projects[0].names[1] is a number, not text: put it in quotes
error: policy.yaml: projects[0].names[2]: it is empty: remove it
error: policy.yaml: projects[0].names[3]: \"Team\" is not a project's name: use at most 253 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit
error: policy.yaml: projects[0].names[4]: \"shop-[\" is not a glob: a '[' is not closed by ']'
error: policy.yaml: projects[0].names[5]: \"a, b\" contains a space: list every name separately
error: policy.yaml: projects[0].clusters is text, not a list
error: policy.yaml: projects[0].namespaces is empty, which is ambiguous: fill it or leave it out
error: policy.yaml: projects[0].kinds is null, not a list: give it a value or leave it out
error: policy.yaml: projects[1].clusters[0]: \"eu_1\" is not a managed cluster name: use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit
error: policy.yaml: projects[1].namespaces[0]: \"Shop\" is not a namespace name: use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit
error: policy.yaml: projects[1].clusterScoped is a number, not true or false
error: policy.yaml: projects[1].secrets is text, not true or false
error: policy.yaml: projects[1].executor.namspace is not a field of an executor: the fields are namespace, name
error: policy.yaml: projects[1].executor.namespace is missing: an executor is a ServiceAccount with both
error: policy.yaml: projects[2].executor is text, not a mapping
error: policy.yaml: projects[3].executor.namespace is true or false, not text: put it in quotes
error: policy.yaml: projects[4].executor.namespace: \"Shop\" is not a namespace name: use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit
error: policy.yaml: projects[4].executor.name: \"A_\" is not a ServiceAccount's name: use at most 253 lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit
"
        );
    }

    #[test]
    fn refuses_invalid_kinds() {
        let remedy = "write it as Kind.group, like Deployment.apps, and a core kind alone, like ConfigMap";
        for (kind, what) in [
            ("configmaps", "is not a kind"),
            ("apps/Deployment", "is not a kind"),
            ("Deployment.apps/v1", "is not a kind"),
            ("Deployment.v1.apps", "has no API group after the dot"),
            ("Pod.core", "has no API group after the dot"),
            ("Pod.", "has no API group after the dot"),
            ("ConfigMap.v1", "has no API group after the dot"),
            ("Widget", "is not a core kind of Kubernetes"),
        ] {
            for list in ["kinds", "deniedKinds"] {
                assert_eq!(
                    error_of(&format!("[{{names: [a], {list}: ['{kind}']}}]")),
                    format!("error: policy.yaml: projects[0].{list}[0]: {kind:?} {what}: {remedy}\n")
                );
            }
        }
        assert_eq!(
            error_of("[{names: [a], deniedKinds: [Deployment]}]"),
            "error: policy.yaml: projects[0].deniedKinds[0]: \"Deployment\" is not a core kind of Kubernetes: write Deployment.apps\n"
        );
        for (kind, meant) in [
            ("Rolebinding.rbac.authorization.k8s.io", "RoleBinding"),
            ("Roles.rbac.authorization.k8s.io", "Role"),
            ("Deploymnet.apps", "Deployment.apps"),
            (
                "ClusterRole.rbac.autorization.k8s.io",
                "ClusterRole.rbac.authorization.k8s.io",
            ),
            ("ClusterIssuers.cert-manager.io", "ClusterIssuer.cert-manager.io"),
        ] {
            let message = error_of(&format!("[{{names: [a], deniedKinds: [{kind}]}}]"));
            assert!(
                message.contains(&format!(
                    "{kind:?} is not a kind of its API group: did you mean {meant}"
                )),
                "{message}"
            );
        }
        for valid in [
            "ConfigMap",
            "{Secret,{Role,*Binding}.rbac.authorization.k8s.io}",
            "*issuer.example.com",
            "Widget*",
            "*.k8s.io",
            "*Issuer.cert-manager.io",
            "*.networking.istio.io",
            "IssuerOfLater.cert-manager.io",
            "Reservation.scheduling.k8s.io",
            "ResourceClass.resource.k8s.io",
            "*",
            "*.apps",
            "[A-C]*",
            "{Job,CronJob}.batch",
            "Volume.vmware.example.com",
        ] {
            let text = format!(
                "{{apiVersion: argocd-ocm-cmp.github.io/v1alpha1, kind: Policy, projects: [{{names: [a], kinds: ['{valid}']}}]}}"
            );
            assert!(Policy::parse(&text, "policy.yaml").is_ok(), "{valid}");
        }
    }

    #[test]
    fn refuses_globs_that_match_no_kind() {
        for (pattern, why) in [
            ("Secret,*.rbac.authorization.k8s.io", "contains a comma outside of {}"),
            (
                "*.rbac.authorizaton.k8s.io",
                "unknown API group: did you mean rbac.authorization.k8s.io",
            ),
            ("*.Rbac.authorization.k8s.io", "like "),
            (
                "Foo.rbac.authorizatn.k8s.io",
                "unknown API group: did you mean rbac.authorization.k8s.io",
            ),
            ("*.rbac", "unknown API group: did you mean rbac.authorization.k8s.io"),
            ("Role.rbac", "unknown API group: did you mean rbac.authorization.k8s.io"),
            (
                "Role?.rbac.authorization.k8s.io",
                "matches no kind: write kinds as in manifests, like Role.",
            ),
            (
                "R*s.rbac.authorization.k8s.io",
                "matches no kind: write kinds as in manifests, like Role",
            ),
            ("Z*.rbac.authorization.k8s.io", "matches no kind of the API group rbac"),
            (
                "*binding.rbac.authorization.k8s.io",
                "matches no kind: write kinds as in manifests, like ",
            ),
            (
                "*issuer.cert-manager.io",
                "matches no kind: write kinds as in manifests, like ClusterIssuer",
            ),
            ("[s]ecret", "matches no kind: write kinds as in manifests, like Secret"),
            ("Sxcret?", "matches no core kind"),
            ("{secret,roles.rbac.authorization.k8s.io}", "\"secret\" is not a kind"),
            ("Sec\\{ret", "is not a kind"),
            (
                "{Secret,Role.{apps,rbac.autorization.k8s.io}}",
                "\"Role.rbac.autorization.k8s.io\" is not a kind",
            ),
            (&"{A,B}".repeat(20), "cannot be expanded"),
        ] {
            let message = error_of(&format!("[{{names: [a], deniedKinds: ['{pattern}']}}]"));
            assert!(message.contains(why), "{pattern}: {message}");
        }
        assert!(error_of("[{names: ['a*,b']}]").contains("contains a comma outside of {}"));
        for pattern in [
            "*.com",
            "*secrets*",
            "ExternalSecret*.io",
            "*.scheduling.x-k8s.io",
            "PodGroup.scheduling.x-k8s.io",
        ] {
            let policy = format!(
                "apiVersion: argocd-ocm-cmp.github.io/v1alpha1\nkind: Policy\nprojects: [{{names: [a], deniedKinds: ['{pattern}']}}]\n"
            );
            let read = Policy::parse(&policy, "policy.yaml");
            assert!(read.is_ok(), "{pattern}: {read:?}");
        }
    }

    #[test]
    fn refuses_unreachable_entries() {
        assert_eq!(
            error_of(
                "[{names: ['team-*']}, {names: [x, team-a]}, {names: ['team-*']}, {names: ['*']}, {names: ['z?']}]"
            ),
            "error: policy.yaml: projects[1].names[1] \"team-a\" has no effect: projects[0] comes first and matches it\n\
             error: policy.yaml: projects[2].names[0] \"team-*\" has no effect: projects[0] comes first and matches it\n\
             error: policy.yaml: projects[4].names[0] \"z?\" has no effect: projects[3] comes first and matches it\n"
        );
        let text = "{apiVersion: argocd-ocm-cmp.github.io/v1alpha1, kind: Policy, \
                    projects: [{names: ['team-?', team-aa]}, {names: ['team-*', team-bb]}, {names: ['*']}]}";
        assert!(
            Policy::parse(text, "policy.yaml").is_ok(),
            "each of these has projects left"
        );
    }
}
