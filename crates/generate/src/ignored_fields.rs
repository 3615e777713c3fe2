//! Fields that the agent leaves to other writers on the managed cluster, in the spelling of Argo CD's `ignoreDifferences` and of OCM:
//! JSON pointers and jq path expressions.
//!
//! OCM before 1.3 knows only JSON paths, so a field that can be written as one is.

mod jq;

use self::jq::PathExpression;
use super::manifest_configs::WorkOptions;
use super::object::Object;
use super::placed::Placed;
use super::update_strategy::UpdateStrategy;
use manifest::kinds::GroupKind;
use manifest::value::Value;
use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;

/// The annotation with the fields of an object, one a line.
pub(crate) const IGNORE_FIELDS: &str = "argocd-ocm-cmp.github.io/ignore-fields";

/// Fields that the agent leaves to other writers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldPath {
    /// A JSON path, which OCM knows since 0.16.
    Path(String),
    /// A JSON pointer, which OCM knows since 1.3.
    Pointer(String),
    /// A jq path expression, which OCM knows since 1.3.
    Expression(PathExpression),
}

/// The fields that identify the object to the agent, with those that contain them. They cannot be left to others.
const IDENTITY: [&[&str]; 6] = [
    &[],
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
];

impl FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pointer = text.strip_prefix('/').filter(|keys| !keys.is_empty());
        let path = if let Some(keys) = pointer {
            let is_index = |key: &str| key.parse().is_ok_and(|at: u32| at.to_string() == key);
            json_path(keys.split('/').map(|key| {
                if is_index(key) {
                    (None, format!("[{key}]"))
                } else {
                    (Some(key), String::new())
                }
            }))
        } else {
            let keys = text.strip_prefix('.').unwrap_or_default();
            json_path(keys.split('.').map(|key| match key.strip_suffix("[]") {
                Some(list) => (Some(list), "[*]".to_owned()),
                None => (Some(key), String::new()),
            }))
        };
        let field = if let Some(path) = path {
            Self::Path(path)
        } else if pointer.is_some() {
            Self::Pointer(text.to_owned())
        } else if text.starts_with('.') || text.starts_with("select") {
            Self::Expression(jq::parse(text)?)
        } else {
            return Err(format!(
                "{text:?} is neither a JSON pointer such as /spec/replicas nor a jq path expression such as .spec.replicas"
            ));
        };
        if IDENTITY.iter().any(|keys| field.may_select(keys)) {
            return Err(format!(
                "{text:?} could remove the apiVersion, kind, name or namespace of the object: begin with another field, such as .spec"
            ));
        }
        Ok(field)
    }
}

impl FieldPath {
    /// Returns true if it can select the field at the end of these keys.
    fn may_select(&self, keys: &[&str]) -> bool {
        match self {
            Self::Path(path) => path.split('.').skip(1).eq(keys.iter().copied()),
            Self::Pointer(pointer) => {
                let unescaped = |key: &str| key.replace("~1", "/").replace("~0", "~");
                pointer.split('/').skip(1).map(unescaped).eq(keys.iter().copied())
            }
            Self::Expression(expression) => expression.may_select(keys),
        }
    }

    /// Returns the text for the agent.
    fn text(&self) -> &str {
        match self {
            Self::Path(text) | Self::Pointer(text) => text,
            Self::Expression(expression) => &expression.text,
        }
    }
}

/// Returns a JSON path as OCM's agent reads it; each step is a key and an index. `None` if a key has other characters, or if the path
/// does not end with a key.
fn json_path<'k>(steps: impl Iterator<Item = (Option<&'k str>, String)>) -> Option<String> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    let mut path = String::new();
    let mut ends_with_key = false;
    for (key, index) in steps {
        if let Some(key) = key {
            if key.is_empty() || !key.chars().all(is_plain) {
                return None;
            }
            path.push('.');
            path.push_str(key);
        }
        ends_with_key = key.is_some() && index.is_empty();
        path.push_str(&index);
    }
    (ends_with_key && path.starts_with('.')).then_some(path)
}

/// Parses an entry of the setting, `KIND.GROUP=FIELD`.
pub(super) fn of_kind(text: &str) -> Result<(GroupKind, FieldPath), String> {
    match text.split_once('=') {
        Some((kind, field)) => Ok((kind.parse()?, field.parse()?)),
        None => Err(format!(
            "{text:?} has no field: write it like Deployment.apps=/spec/replicas"
        )),
    }
}

/// Parses the annotation [`IGNORE_FIELDS`].
pub(super) fn of_object(text: &str) -> Result<Vec<FieldPath>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::parse).collect()
}

/// Returns the ignored fields of an object: those of its kind, and its own.
pub(super) fn find_ignored_fields<'p>(object: &'p Object, options: &'p WorkOptions) -> BTreeSet<&'p FieldPath> {
    let of_kind = options
        .ignored_fields
        .iter()
        .filter(|(kind, _)| *kind == object.key.kind);
    let of_kind = of_kind.map(|(_, field)| field);
    of_kind.chain(own(object)).collect()
}

/// The maximum number of ignored fields of an object. The agent searches it for each of them, while its other works wait.
const FIELDS_MAX: usize = 100;

/// The maximum number of jq path expressions among them: the agent may need a second for each.
const EXPRESSIONS_MAX: usize = 20;

/// The maximum length of these expressions together in bytes, which also bounds their regular expressions.
const EXPRESSIONS_LENGTH_MAX: usize = 2000;

/// Returns the problem of an object with more ignored fields than the agent can search for.
pub(super) fn excess(object: &Object, options: &WorkOptions) -> Option<String> {
    let fields = find_ignored_fields(object, options);
    let expressions = fields.iter().filter(|field| matches!(field, FieldPath::Expression(_)));
    let lengths: Vec<usize> = expressions.map(|field| field.text().len()).collect();
    let length: usize = lengths.iter().sum();
    let is_excess = fields.len() > FIELDS_MAX || lengths.len() > EXPRESSIONS_MAX || length > EXPRESSIONS_LENGTH_MAX;
    is_excess.then(|| {
        format!(
            "ignore-fields has {} fields, among them {} jq path expressions of {length} bytes, and the agent searches for {FIELDS_MAX} at \
             most, among them {EXPRESSIONS_MAX} expressions of {EXPRESSIONS_LENGTH_MAX} bytes: name fewer fields, or write expressions as \
             JSON pointers",
            fields.len(),
            lengths.len()
        )
    })
}

/// Returns true if the agent may apply an object without this annotation.
pub(super) fn may_ignore_annotation(object: &Object, name: &str, options: &WorkOptions) -> bool {
    let keys = ["metadata", "annotations", name];
    let fields = find_ignored_fields(object, options);
    fields
        .iter()
        .any(|field| field.may_select(&keys) || field.may_select(&keys[..2]))
}

/// Returns the ignored fields that an object itself names.
pub(super) fn own(object: &Object) -> &[FieldPath] {
    object
        .annotations
        .as_ref()
        .map_or(&[], |annotations| &annotations.ignored_fields)
}

/// Returns the entry of `ignoreFields` for the agent; `None` without fields.
pub(super) fn config(fields: &BTreeSet<&FieldPath>) -> Option<Value<'static>> {
    let mut lists = ["jqPathExpressions", "jsonPaths", "jsonPointers"].map(|name| (name, Vec::new()));
    for field in fields {
        let at = match field {
            FieldPath::Expression(_) => 0,
            FieldPath::Path(_) => 1,
            FieldPath::Pointer(_) => 2,
        };
        lists[at].1.push(Value::from_text(field.text()));
    }
    let lists = lists.into_iter().filter(|(_, texts)| !texts.is_empty());
    let lists = lists.map(|(name, texts)| (name, Value::List(texts)));
    let condition = ("condition", Value::from_text("OnSpokePresent"));
    (!fields.is_empty()).then(|| Value::map(std::iter::once(condition).chain(lists)))
}

/// Returns a warning for each object whose ignored fields have no effect, or only with a new OCM, and for each whose replicas an
/// autoscaler in the folder sets.
pub(super) fn warnings(objects: &[Placed], options: &WorkOptions) -> Vec<String> {
    let mut warnings = Vec::new();
    for placed in objects {
        let fields = find_ignored_fields(&placed.object, options);
        if fields.is_empty() {
            continue;
        }
        let key = &placed.object.key;
        let strategy = UpdateStrategy::choose(placed, options.strategy);
        if strategy != UpdateStrategy::ServerSideApply {
            warnings.push(format!(
                "{key}: ignore-fields has no effect with the update strategy {}: set it to ServerSideApply",
                strategy.name()
            ));
        }
        for field in fields.iter().filter(|field| !matches!(field, FieldPath::Path(_))) {
            warnings.push(format!(
                "{key}: only OCM 1.3 and newer can ignore {}: an older hub rejects the work or drops it, and an older agent writes the \
                 field: write it without special characters, filters and an index at the end",
                field.text()
            ));
        }
    }
    warnings.extend(autoscaled(objects, options));
    warnings
}

/// Returns a warning for each object with replicas that an autoscaler among the objects sets too.
fn autoscaled(objects: &[Placed], options: &WorkOptions) -> Vec<String> {
    let is_autoscaler = |placed: &&Placed| {
        let kind = &placed.object.key.kind;
        kind.is("autoscaling", "HorizontalPodAutoscaler") || kind.is("keda.sh", "ScaledObject")
    };
    let mut autoscalers = objects.iter().filter(is_autoscaler).peekable();
    if autoscalers.peek().is_none() {
        return Vec::new();
    }
    // Two kinds of two API groups may have one name: the first counts.
    let by_key: HashMap<_, _> = objects
        .iter()
        .rev()
        .map(|placed| {
            let key = &placed.object.key;
            ((&*key.kind.kind, &*key.name, key.namespace.as_deref()), placed)
        })
        .collect();
    let warning = |autoscaler: &Placed| {
        let value = autoscaler.object.to_value();
        let target = value.as_map()?.at(&["spec", "scaleTargetRef"])?.as_map()?;
        let text = |key| target.get(key).and_then(Value::as_str);
        let (kind, name) = (text("kind").unwrap_or("Deployment"), text("name")?);
        let scaled = by_key.get(&(kind, name, autoscaler.object.key.namespace.as_deref()))?;
        scaled.object.to_value().as_map()?.at(&["spec", "replicas"])?;
        let is_ignored =
            find_ignored_fields(&scaled.object, options).contains(&FieldPath::Path(".spec.replicas".to_owned()));
        let is_applied = UpdateStrategy::choose(scaled, options.strategy).applies();
        (is_applied && !is_ignored).then(|| {
            format!(
                "{}: the agent sets its replicas again about every five minutes, although {} scales it: remove spec.replicas, or set \
                 ignore-fields to {}=/spec/replicas",
                scaled.object.key, autoscaler.object.key, scaled.object.key.kind
            )
        })
    };
    autoscalers.filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::tests::object;
    use crate::placed::tests::placed;

    #[test]
    fn fields_that_older_agents_know_are_json_paths() {
        for (text, expected) in [
            ("/spec/replicas", FieldPath::Path(".spec.replicas".to_owned())),
            (".spec.replicas", FieldPath::Path(".spec.replicas".to_owned())),
            (
                "/webhooks/0/clientConfig/caBundle",
                FieldPath::Path(".webhooks[0].clientConfig.caBundle".to_owned()),
            ),
            (
                ".spec.template.spec.containers[].image",
                FieldPath::Path(".spec.template.spec.containers[*].image".to_owned()),
            ),
            (
                "/metadata/labels/a.b~1c",
                FieldPath::Pointer("/metadata/labels/a.b~1c".to_owned()),
            ),
            ("/webhooks/0", FieldPath::Pointer("/webhooks/0".to_owned())),
            ("/webhooks/+5/name", FieldPath::Pointer("/webhooks/+5/name".to_owned())),
            ("/a/007/b", FieldPath::Path(".a.007.b".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "/",
            ".",
            "spec.replicas",
            "$.spec",
            "/metadata",
            "/metadata/namespace",
            ".metadata.name",
            ".kind",
            ".zzz) | .metadata.name = \"other\" | del(.zzz",
        ] {
            assert!(wrong.parse::<FieldPath>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn refuses_more_fields_than_the_agent_can_search_for() {
        let excess = |own: &[String], of_kind: usize| {
            let fields = own.join("\\n");
            let object = object(&format!(
                "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, annotations: {{{IGNORE_FIELDS}: \"{fields}\"}}}}}}"
            ));
            let of_kind = (0..of_kind).map(|at| format!("/of/kind{at}").parse().expect("a field"));
            let kind = &object.key.kind;
            let options = WorkOptions {
                ignored_fields: of_kind.map(|field| (kind.clone(), field)).collect(),
                ..WorkOptions::default()
            };
            super::excess(&object, &options)
        };
        let expressions = |count: usize, length: usize| -> Vec<String> {
            let expression = |at: usize| format!(".a{at:03}{}?", "b".repeat(length - 6));
            (0..count).map(expression).collect()
        };
        let pointers: Vec<String> = (0..FIELDS_MAX).map(|at| format!("/a/b~1{at}")).collect();
        for (own, of_kind) in [
            (&pointers, 0),
            (&expressions(EXPRESSIONS_MAX, 100), 0),
            (&expressions(2, 1000), 0),
            (&expressions(2, 900), FIELDS_MAX - 2),
        ] {
            assert_eq!(excess(own, of_kind), None);
        }
        for (own, of_kind) in [
            (&pointers, 1),
            (&expressions(EXPRESSIONS_MAX + 1, 10), 0),
            (&expressions(3, 700), 0),
        ] {
            let message = excess(own, of_kind).unwrap_or_default();
            assert!(message.contains("the agent searches for 100 at most"), "{message}");
        }
    }

    #[test]
    fn warns_of_fields_that_are_not_ignored() {
        let deployment = |annotations: &str| {
            format!(
                "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: a, annotations: {{{annotations}}}}}, \
                 spec: {{replicas: 3}}}}"
            )
        };
        let autoscaler = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: a}, \
                          spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}";
        let warned = |annotations: &str| {
            warnings(
                &placed(&[&deployment(annotations), autoscaler]),
                &WorkOptions::default(),
            )
            .join("\n")
        };
        assert!(warned("").starts_with("Deployment.apps a/web: the agent sets its replicas again"));
        assert_eq!(warned(&format!("{IGNORE_FIELDS}: /spec/replicas")), "");
        let both = warned(&format!(
            "{IGNORE_FIELDS}: '.spec[\"replicas\"]?', argocd-ocm-cmp.github.io/update-strategy: CreateOnly"
        ));
        assert!(both.contains("no effect with the update strategy CreateOnly"), "{both}");
        assert!(
            both.contains("only OCM 1.3 and newer can ignore .spec.replicas?"),
            "{both}"
        );
    }
}
