//! A Kubernetes object from Git in canonical form, as a ManifestWork embeds it.
//!
//! The hub must store a canonical object unchanged, else Argo CD would show a permanent difference. The API server decodes the
//! `metadata` of embedded objects into its own type, which drops empty mappings and unknown fields; kubectl's apply, which Argo
//! CD uses, drops every null field at any depth. This module drops or refuses all of these beforehand.

use super::annotations::{self, Annotations};
use super::content_hash::CONTENT;
use super::update_strategy::UpdateStrategy;
use super::{canonical, fields_of_others, hooks, identity, list_keys, order, schema, validate};
use manifest::json;
use manifest::key::ObjectKey;
use manifest::kinds::{GroupKind, Scope};
use manifest::value::{Map, Value};
use manifest::yaml;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

/// The location of an object in the folder. Compact, because a folder may hold very many objects.
#[derive(Clone, Copy, Debug)]
pub struct ObjectLocation {
    /// The file, as an index into the list of files.
    pub file: u32,
    /// The first line of its document, from 1.
    pub line: u32,
    /// The number of its document in the file, from 1.
    pub document: u32,
    /// Its position in the document, from 1, if the document is a list.
    pub item: Option<NonZeroU32>,
}

impl ObjectLocation {
    /// Returns the location of a document in a file. Numbers saturate at `u32::MAX`.
    pub fn document(file: usize, line: usize, document: usize) -> Self {
        let short = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            file: short(file),
            line: short(line),
            document: short(document),
            item: None,
        }
    }

    /// Returns the location of an item of the document; `at` counts from 0.
    pub fn item(self, at: usize) -> Self {
        Self {
            item: u32::try_from(at + 1).ok().and_then(NonZeroU32::new),
            ..self
        }
    }

    /// Returns the location with the line of a field.
    pub(crate) fn at_line(self, line: usize) -> Self {
        Self {
            line: u32::try_from(line).unwrap_or(u32::MAX),
            ..self
        }
    }

    /// Returns the location for display, such as `deploy/web.yaml:12: document 2`; `path` is the name of the file.
    pub fn location(self, path: &str) -> Location<'_> {
        Location(path, self)
    }
}

/// A location with the name of the file.
#[derive(Clone, Copy, Debug)]
pub struct Location<'a>(&'a str, ObjectLocation);

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(path, location) = self;
        write!(f, "{path}:{}: document {}", location.line, location.document)?;
        location.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

/// The kind that a CRD defines.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The kind.
    pub kind: GroupKind,
    /// The resource name (plural).
    pub plural: Option<Box<str>>,
    /// The scope of the kind.
    pub scope: Scope,
    /// True if a version of the kind has the status subresource.
    pub has_status: bool,
}

/// An object in canonical form.
#[derive(Clone, Debug)]
pub struct Object {
    /// The identity of the object, with the namespace that it names.
    pub key: ObjectKey,
    /// The sync wave that its annotations set, as Argo CD reads it.
    pub wave: i32,
    /// The rank of its kind in the apply order.
    pub rank: u8,
    /// The definition, if the object is a CRD.
    pub defines: Option<Box<Definition>>,
    /// The scope of its kind, if the kind is built into Kubernetes.
    pub scope: Option<Scope>,
    /// A field that its kind does not have, if the kind is built into Kubernetes.
    pub unknown_field: Option<Box<str>>,
    /// A list with the same entry twice, which server-side apply refuses, and the entry.
    pub repeated: Option<Box<str>>,
    /// True for a Secret without values, which Kubernetes fills with the token of a ServiceAccount.
    pub is_token_request: bool,
    /// True if every cluster serves this version of its kind, so the agent can always map it to a resource.
    pub always_served: bool,
    /// True if an apply patch would corrupt it: the API server parses the patch as YAML, which changes some strings and numbers.
    pub unsafe_for_apply: bool,
    /// The options that its annotations set.
    pub annotations: Option<Box<Annotations>>,
    /// The location it was read from.
    pub source: ObjectLocation,
    /// The length in bytes in Go's JSON encoding. It saturates at `u32::MAX`, which exceeds every limit.
    length: u32,
    /// The JSON without the namespace.
    text: Box<str>,
    /// The insertion point of the annotation with a content hash; it precedes the name.
    hash_insertion: InsertionPoint,
    /// The offset in the JSON at which the namespace is inserted: after the name.
    namespace_at: u32,
}

/// A position in the JSON of an object at which the annotation [`CONTENT`] is inserted.
#[derive(Clone, Copy, Debug)]
struct InsertionPoint {
    start: u32,
    /// The end of the annotation with that name, if the object has one; else as `start`.
    end: u32,
    adjacent: Adjacent,
}

/// The entries adjacent to an inserted annotation.
#[derive(Clone, Copy, Debug)]
enum Adjacent {
    /// The object has no annotations.
    NoAnnotations,
    /// Another annotation follows.
    Next,
    /// It is the last of several.
    Previous,
    /// It replaces one with the same name.
    Same,
}

impl InsertionPoint {
    fn new(range: Range<usize>, adjacent: Adjacent) -> Self {
        Self {
            start: offset(range.start),
            end: offset(range.end),
            adjacent,
        }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the JSON to insert for a content hash.
    fn annotation(self, hash: &str) -> String {
        let (before, behind) = match self.adjacent {
            Adjacent::NoAnnotations => (r#""annotations":{"#, "},"),
            Adjacent::Next => ("", ","),
            Adjacent::Previous => (",", ""),
            Adjacent::Same => ("", ""),
        };
        format!(r#"{before}"{CONTENT}":"{hash}"{behind}"#)
    }
}

/// The reason why a value is not a valid object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectFault {
    /// A required field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field has the wrong type.
    #[error("{field} is {actual}, not {wanted}{}", remediation(wanted, actual))]
    Type {
        /// The path of the field.
        field: String,
        /// The actual type.
        actual: &'static str,
        /// The expected type.
        wanted: &'static str,
    },
    /// An invalid apiVersion.
    #[error("apiVersion {0:?} is neither VERSION nor GROUP/VERSION")]
    ApiVersion(String),
    /// A kind, key or list that another reader identifies differently.
    #[error(transparent)]
    Ambiguous(#[from] identity::IdentityFault),
    /// A name that is not a valid URL path segment.
    #[error("metadata.name {0:?} must not contain '/' or '%', nor be '.' or '..'")]
    Name(String),
    /// A namespace that Kubernetes rejects. Accepting it would let a policy's globs match more than the namespace in question.
    #[error("metadata.namespace {0}")]
    Namespace(ocm::names::InvalidName),
    /// The name of a Namespace that Kubernetes rejects.
    #[error("metadata.name {0}")]
    NameOfNamespace(ocm::names::InvalidName),
    /// A generateName, which OCM rejects.
    #[error(
        "metadata.generateName is only allowed for a hook, because OCM applies the same object repeatedly: set metadata.name"
    )]
    GenerateName,
    /// A hook with a generateName whose kind has no health.
    #[error(
        "metadata.generateName is only allowed for a hook that runs, and {0} has no health that shows its end: set metadata.name"
    )]
    HookWithoutHealth(String),
    /// A sync wave outside the range that leaves room for phases.
    #[error("sync wave {0} is out of range (±{max}): use a smaller number", max = order::WAVE_MAX)]
    Wave(i64),
    /// An invalid annotation.
    #[error(transparent)]
    Annotation(#[from] annotations::AnnotationFault),
    /// An unknown field of `metadata`.
    #[error(
        "metadata.{0} is not a field of Kubernetes metadata: {remedy}",
        remedy = schema::remedy(.0, canonical::METADATA.into_iter())
    )]
    UnknownMetadata(String),
    /// An object larger than any ManifestWork.
    #[error("it has more than two gigabytes: {}", validate::SMALLER)]
    Huge,
    /// An object that cannot be printed for Argo CD.
    #[error(transparent)]
    Unprintable(#[from] json::JsonError),
}

impl ObjectFault {
    /// Returns the path of the field that is invalid; empty for the object as a whole.
    pub fn path(&self) -> Cow<'_, str> {
        match self {
            Self::Type { field, .. } => field.into(),
            Self::ApiVersion(_) => "apiVersion".into(),
            Self::Ambiguous(fault) => fault.path(),
            Self::Name(_) | Self::NameOfNamespace(_) => "metadata.name".into(),
            Self::Namespace(_) => "metadata.namespace".into(),
            Self::GenerateName | Self::HookWithoutHealth(_) => "metadata.generateName".into(),
            Self::Wave(_) | Self::Annotation(_) => "metadata.annotations".into(),
            Self::UnknownMetadata(field) => format!("metadata.{field}").into(),
            Self::Missing(_) | Self::Huge | Self::Unprintable(_) => "".into(),
        }
    }
}

fn remediation(wanted: &str, actual: &str) -> &'static str {
    if wanted == "text" && matches!(actual, "a number" | "true or false") {
        ": put it in quotes"
    } else {
        ""
    }
}

/// The size in bytes from which offsets into an object do not fit their type.
const HUGE: usize = 1 << 31;

/// The JSON that precedes the quoted namespace of an object.
const NAMESPACE: &str = r#","namespace":"#;

/// The approximate number of bytes that an object's own update strategy and orphaning rule add to a ManifestWork, without the
/// object's names.
const ALONE: u64 = 400;

impl Object {
    /// Creates the canonical object from the value of a document.
    ///
    /// # Errors
    /// Returns an error if the value is not a valid object.
    pub fn new(mut fields: Map<'_>, source: ObjectLocation) -> Result<Self, ObjectFault> {
        identity::check_keys(&fields)?;
        let kind = required_text(&fields, "kind")?;
        let api_version = required_text(&fields, "apiVersion")?;
        let (group, version) =
            identity::api_version(api_version).ok_or_else(|| ObjectFault::ApiVersion(api_version.to_owned()))?;
        identity::check_kind(group, kind)?;
        let known_fields = schema::fields_of(api_version, kind);
        let kind = GroupKind {
            group: group.into(),
            kind: kind.into(),
        };
        let built_in = kind.built_in();
        let always_served = built_in.is_some_and(|known| known.always_served.contains(&version));
        fields.remove("status");
        canonical::drop_nulls(&mut fields);
        if kind.is("", "Secret") {
            canonical::fold_string_data(&mut fields);
        }
        let mut metadata = match fields.remove("metadata") {
            Some(Value::Map(metadata)) => metadata,
            None => return Err(ObjectFault::Missing("metadata.name")),
            Some(other) => return Err(wrong_type("metadata", &other, "a mapping")),
        };
        let mut annotations = annotations::annotations(&metadata)?;
        if let Some(annotations) = annotations.as_mut().filter(|annotations| annotations.is_hook()) {
            hooks::prepare(&kind, annotations, &mut metadata, &mut fields)?;
        }
        fields_of_others::remove(&kind, &metadata, &mut fields);
        canonical::metadata(&mut metadata)?;
        let key = object_key(kind, &mut metadata)?;
        let unknown_field = known_fields.and_then(|known| {
            let unknown = fields.iter().map(|(key, _)| key).find(|key| !known.contains(key))?;
            Some(unknown.into())
        });
        let wave = annotations::wave(&metadata);
        let wave = i32::try_from(wave)
            .ok()
            .filter(|wave| wave.abs() <= order::WAVE_MAX)
            .ok_or(ObjectFault::Wave(wave))?;
        let is_token = fields.get("type").and_then(Value::as_str) == Some("kubernetes.io/service-account-token");
        let has_values = ["data", "stringData"].iter().any(|field| fields.get(field).is_some());
        let is_token_request = key.kind.is("", "Secret") && is_token && !has_values;
        let (json, hash_insertion, namespace_at) = write_text(&fields, &metadata)?;
        if json.len() > HUGE {
            return Err(ObjectFault::Huge);
        }
        let passage = json::passage(&json);
        Ok(Self {
            rank: order::rank(&key.kind.kind),
            always_served,
            scope: built_in.map(|known| known.scope),
            unsafe_for_apply: passage.unsafe_for_apply,
            length: offset(passage.length),
            annotations: annotations.map(Box::new),
            defines: definition(&key.kind, &fields),
            repeated: list_keys::repeated(&key.kind, &fields).map(Into::into),
            key,
            wave,
            unknown_field,
            is_token_request,
            source,
            text: json.into_boxed_str(),
            hash_insertion,
            namespace_at: offset(namespace_at),
        })
    }

    /// Returns the canonical JSON in three parts; the second is the namespace.
    pub fn pieces(&self) -> [Cow<'_, str>; 3] {
        let (before, after) = self.text.split_at(self.namespace_at as usize);
        let namespace = self.key.namespace.as_ref().map_or(String::new(), |namespace| {
            let mut text = String::with_capacity(NAMESPACE.len() + namespace.len() + 2);
            text.push_str(NAMESPACE);
            json::write_text(namespace, &mut text);
            text
        });
        [before.into(), namespace.into(), after.into()]
    }

    /// Returns the same JSON with the annotation [`CONTENT`].
    pub(crate) fn pieces_with_hash(&self, hash: &str) -> [Cow<'_, str>; 5] {
        let range = self.hash_insertion.range();
        let [_, namespace, after] = self.pieces();
        [
            self.text[..range.start].into(),
            self.hash_insertion.annotation(hash).into(),
            self.text[range.end..self.namespace_at as usize].into(),
            namespace,
            after,
        ]
    }

    /// Parses the canonical JSON, and adds the namespace, and the annotation [`CONTENT`] if `hash` is given.
    pub fn to_value<'a>(&'a self, hash: Option<&'a str>) -> Value<'a> {
        let mut object = yaml::json(&self.text).expect("the text is JSON");
        let metadata = object
            .as_map_mut()
            .and_then(|fields| fields.get_mut("metadata")?.as_map_mut())
            .expect("every object has metadata");
        if let Some(namespace) = self.key.namespace.as_deref() {
            metadata.insert("namespace", Value::String(namespace.into()));
        }
        if let Some(hash) = hash {
            let mut annotations = match metadata.remove("annotations") {
                Some(Value::Map(annotations)) => annotations,
                _ => Map::default(),
            };
            annotations.insert(CONTENT, Value::String(hash.into()));
            metadata.insert("annotations", Value::Map(annotations));
        }
        object
    }

    pub(super) fn rename(&mut self, name: &str) {
        let (mut old, mut new) = (String::new(), String::new());
        json::write_text(&self.key.name, &mut old);
        json::write_text(name, &mut new);
        // The range of the name; the namespace would follow it.
        let end = self.namespace_at as usize;
        let start = end - old.len();
        let text = [&self.text[..start], &new, &self.text[end..]].concat();
        self.namespace_at = offset(start + new.len());
        self.length = offset(json::passage(&text).length);
        self.text = text.into_boxed_str();
        self.key.name = name.into();
    }

    /// Returns the number of bytes that the object adds to a ManifestWork: its size and that of its configuration entries.
    pub fn weight(&self) -> u64 {
        self.size() as u64 + self.entries_size(self.annotations.is_some())
    }

    /// Returns the weight without what keeps the object on the cluster. It decides on the ManifestWork of the object: if the commit that
    /// keeps an object also moved it, the old ManifestWork would delete it, and the new one would not own it.
    pub fn weight_unless_kept(&self) -> u64 {
        let annotations = self.annotations.as_deref();
        let keep_length = annotations.map_or(0, |annotations| annotations.keep_length) as usize;
        let size = json::webhook_size(self.length().saturating_sub(keep_length)) as u64;
        size + self.entries_size(annotations.is_some_and(Annotations::has_other_options))
    }

    fn entries_size(&self, has_options: bool) -> u64 {
        let alone = has_options || self.unsafe_for_apply || self.defines.is_some() || order::is_namespace(self);
        if alone { ALONE } else { 0 }
    }

    /// Returns the size of the object as a manifest, as OCM's admission webhook counts it.
    pub fn size(&self) -> usize {
        json::webhook_size(self.length())
    }

    /// Returns its size with the annotation [`CONTENT`].
    pub(crate) fn size_with_hash(&self, hash: &str) -> usize {
        let replaced = json::passage(&self.text[self.hash_insertion.range()]).length;
        json::webhook_size(self.length() - replaced + self.hash_insertion.annotation(hash).len())
    }

    /// Returns the length in bytes in Go's JSON encoding.
    fn length(&self) -> usize {
        // A namespace contains no characters that Go escapes.
        let namespace = self.key.namespace.as_ref();
        self.length as usize + namespace.map_or(0, |name| NAMESPACE.len() + name.len() + 2)
    }
}

/// Returns a Namespace that is in no file. Its source is the first file; messages about it do not mention the source.
pub fn namespace(name: &str) -> Object {
    let fields = Map::from_fields([
        ("apiVersion", Value::from_text("v1")),
        ("kind", Value::from_text("Namespace")),
        ("metadata", Value::map([("name", Value::from_text(name))])),
    ]);
    let mut namespace =
        Object::new(fields, ObjectLocation::document(0, 0, 0)).expect("a Namespace with a checked name");
    // Other Applications may share the Namespace and set labels that are unknown here.
    namespace.annotations = Some(Box::new(Annotations {
        keep: true,
        strategy: Some(UpdateStrategy::CreateOnly),
        ..Annotations::default()
    }));
    namespace
}

fn required_text<'a>(fields: &'a Map<'_>, name: &'static str) -> Result<&'a str, ObjectFault> {
    match fields.get(name) {
        None | Some(Value::Null) => Err(ObjectFault::Missing(name)),
        Some(Value::String(text)) if text.is_empty() => Err(ObjectFault::Missing(name)),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(wrong_type(name, other, "text")),
    }
}

pub(super) fn wrong_type(field: &str, value: &Value<'_>, wanted: &'static str) -> ObjectFault {
    ObjectFault::Type {
        field: field.to_owned(),
        actual: value.type_name(),
        wanted,
    }
}

/// Returns an offset into, or the approximate length of, a text that is not [`ObjectFault::Huge`]. Compact, because a folder may hold
/// very many objects.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Checks the name and the namespace of an object, and takes the namespace out of `metadata`.
fn object_key(kind: GroupKind, metadata: &mut Map<'_>) -> Result<ObjectKey, ObjectFault> {
    let namespace: Option<Arc<str>> = match metadata.remove("namespace") {
        None => None,
        Some(Value::String(namespace)) => Some(namespace).filter(|namespace| !namespace.is_empty()).map(Arc::from),
        Some(other) => return Err(wrong_type("metadata.namespace", &other, "text")),
    };
    let name: Box<str> = match metadata.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name.as_ref().into(),
        None | Some(Value::String(_)) => return Err(ObjectFault::Missing("metadata.name")),
        Some(other) => return Err(wrong_type("metadata.name", other, "text")),
    };
    if matches!(&*name, "." | "..") || name.contains(['/', '%']) {
        return Err(ObjectFault::Name(name.into()));
    }
    if let Some(namespace) = &namespace {
        ocm::names::namespace(namespace).map_err(ObjectFault::Namespace)?;
    }
    if kind.is("", "Namespace") {
        ocm::names::namespace(&name).map_err(ObjectFault::NameOfNamespace)?;
    }
    Ok(ObjectKey { kind, namespace, name })
}

fn definition(kind: &GroupKind, fields: &Map<'_>) -> Option<Box<Definition>> {
    if !kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        return None;
    }
    let spec = fields.get("spec")?.as_map()?;
    let names = spec.get("names")?.as_map()?;
    let mut versions = spec.maps("versions");
    Some(Box::new(Definition {
        kind: GroupKind {
            group: spec.get("group")?.as_str()?.into(),
            kind: names.get("kind")?.as_str()?.into(),
        },
        plural: names
            .get("plural")
            .and_then(Value::as_str)
            .filter(|plural| ocm::names::is_dns_label(plural))
            .map(Box::from),
        scope: match spec.get("scope")?.as_str()? {
            "Cluster" => Scope::Cluster,
            _ => Scope::Namespaced,
        },
        has_status: versions.any(|version| version.at(&["subresources", "status"]).is_some()),
    }))
}

/// Writes the JSON of an object whose `metadata` was removed from `fields`, without the namespace. Returns the insertion points of the
/// content hash and the namespace, too.
fn write_text(fields: &Map<'_>, metadata: &Map<'_>) -> Result<(String, InsertionPoint, usize), ObjectFault> {
    let mut out = String::with_capacity(1024);
    let mut insertion_points = None;
    out.push('{');
    for (key, value) in fields.iter() {
        if insertion_points.is_none() && key > "metadata" {
            insertion_points = Some(write_metadata(metadata, &mut out)?);
            out.push(',');
        }
        json::write_key(key, &mut out)?;
        json::write(value, &mut out)?;
        out.push(',');
    }
    let (hash_insertion, namespace_at) = match insertion_points {
        Some(insertion_points) => {
            out.pop();
            insertion_points
        }
        None => write_metadata(metadata, &mut out)?,
    };
    out.push('}');
    Ok((out, hash_insertion, namespace_at))
}

/// Writes `metadata`. Returns the insertion points of the content hash and the namespace.
fn write_metadata(metadata: &Map<'_>, out: &mut String) -> Result<(InsertionPoint, usize), ObjectFault> {
    out.push_str("\"metadata\":{");
    // Annotations come first among the fields of metadata that the API server keeps, and a name always follows.
    let mut hash_insertion = InsertionPoint::new(out.len()..out.len(), Adjacent::NoAnnotations);
    let mut namespace_at = out.len();
    for (at, (key, value)) in metadata.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        json::write_key(key, out)?;
        match (key, value) {
            ("annotations", Value::Map(annotations)) => hash_insertion = write_annotations(annotations, out)?,
            _ => json::write(value, out)?,
        }
        if key == "name" {
            namespace_at = out.len();
        }
    }
    out.push('}');
    Ok((hash_insertion, namespace_at))
}

/// Writes annotations, at least one. Returns the insertion point of the content hash.
fn write_annotations(annotations: &Map<'_>, out: &mut String) -> Result<InsertionPoint, ObjectFault> {
    out.push('{');
    let mut hash_insertion = None;
    for (at, (key, value)) in annotations.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let start = out.len();
        json::write_key(key, out)?;
        json::write(value, out)?;
        match key.cmp(CONTENT) {
            Ordering::Less => {}
            Ordering::Equal => hash_insertion = Some(InsertionPoint::new(start..out.len(), Adjacent::Same)),
            Ordering::Greater => {
                hash_insertion.get_or_insert(InsertionPoint::new(start..start, Adjacent::Next));
            }
        }
    }
    let end = out.len();
    out.push('}');
    Ok(hash_insertion.unwrap_or(InsertionPoint::new(end..end, Adjacent::Previous)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Parses an object from YAML, for the tests of any stage.
    pub(crate) fn object(yaml: &str) -> Object {
        try_object(yaml).expect(yaml)
    }

    pub(crate) fn try_object(yaml: &str) -> Result<Object, ObjectFault> {
        Object::new(fields(yaml), ObjectLocation::document(0, 1, 1))
    }

    /// Parses a mapping from YAML.
    pub(crate) fn fields(yaml: &str) -> Map<'_> {
        let document = yaml::documents(yaml).next().expect("a document").expect(yaml);
        document.value.as_map().expect(yaml).clone()
    }

    fn fault(yaml: &str) -> String {
        try_object(yaml).expect_err(yaml).to_string()
    }

    #[test]
    fn drops_metadata_that_the_api_server_sets() {
        let object = object(
            "apiVersion: v1\nkind: ConfigMap\nstatus: {a: 1}\ndata: {b: '', a: null, c: [null, {d: null}]}\nmetadata:\n  name: web\n  namespace: shop\n  \
             creationTimestamp: null\n  uid: 1234\n  generation: 3\n  labels: {}\n  annotations: {b: x, a: null, deployment.kubernetes.io/revision: '3'}\n  \
             finalizers: []\n  managedFields: [{manager: kubectl}]\n",
        );
        assert_eq!(
            object.pieces().concat(),
            r#"{"apiVersion":"v1","data":{"b":"","c":[null,{}]},"kind":"ConfigMap","metadata":{"annotations":{"b":"x"},"name":"web","namespace":"shop"}}"#
        );
    }

    #[test]
    fn converts_string_data_of_secrets_to_data() {
        let secret = |fields: &str| {
            object(&format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, {fields}}}"
            ))
            .pieces()
            .concat()
        };
        assert!(secret("data: {a: eA==, b: eA==}, stringData: {b: foo}").contains(r#""data":{"a":"eA==","b":"Zm9v"}"#));
        assert!(secret("stringData: {b: foo}").contains(r#""data":{"b":"Zm9v"}"#));
        assert!(secret("stringData: {b: \"f\u{ff}>\"}").contains(r#""data":{"b":"ZsO/Pg=="}"#));
        assert!(!secret("stringData: {b: foo}").contains("stringData"));
        assert!(secret("stringData: {b: 1}").contains(r#""stringData":{"b":1}"#));
    }

    #[test]
    fn a_secret_with_values_is_no_request_for_a_token() {
        for (fields, expected) in [
            ("", true),
            ("data: null", true),
            ("data: {}", false),
            ("data: {a: eA==}", false),
            ("stringData: {a: b}", false),
            ("stringData: {a: b, port: 1}", false),
        ] {
            let yaml = format!(
                "{{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {{name: a}}, {fields}}}"
            );
            assert_eq!(object(&yaml).is_token_request, expected, "{fields}");
        }
    }

    #[test]
    fn keeps_only_plurals_that_can_be_names_of_resources() {
        for (plural, expected) in [
            ("tanks", Some("tanks")),
            ("tanks]\\nverbs: [\\\"*\\\"]", None),
            ("Tanks", None),
            ("a.b", None),
        ] {
            let crd = object(&format!(
                "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: x}}, \
                 spec: {{group: example.com, scope: Namespaced, names: {{kind: Tank, plural: \"{plural}\"}}}}}}"
            ));
            assert_eq!(
                crd.defines.expect("a definition").plural.as_deref(),
                expected,
                "{plural}"
            );
        }
    }

    #[test]
    fn writes_the_namespace_after_the_name() {
        let mut object = object(
            "{apiVersion: v1, kind: Pod, spec: {}, metadata: {name: web, ownerReferences: [{name: x}], labels: {a: b}}}",
        );
        object.key.namespace = Some("shop".into());
        assert_eq!(
            object.pieces().concat(),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"},"name":"web","namespace":"shop","ownerReferences":[{"name":"x"}]},"spec":{}}"#
        );
        assert_eq!(
            object.to_value(None),
            yaml::json(&object.pieces().concat()).expect("JSON")
        );
    }

    #[test]
    fn the_content_hash_is_an_annotation_among_others() {
        for (annotations, expected) in [
            ("", "HASH"),
            ("annotations: {}, ", "HASH"),
            ("annotations: {a: x}, ", r#""a":"x",HASH"#),
            ("annotations: {a: x, b: z}, ", r#""a":"x",HASH,"b":"z""#),
            ("annotations: {b: z}, ", r#"HASH,"b":"z""#),
            (
                "annotations: {a: x, argocd-ocm-cmp.github.io/content-hash: '<old>', b: z}, ",
                r#""a":"x",HASH,"b":"z""#,
            ),
            (
                "annotations: {argocd-ocm-cmp.github.io/content-hash: \"\\x7f<\"}, ",
                "HASH",
            ),
        ] {
            let object = object(&format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{{annotations}labels: {{c: d}}, name: web, namespace: shop}}}}"
            ));
            let expected = expected.replace("HASH", r#""argocd-ocm-cmp.github.io/content-hash":"0123456789""#);
            let expected = format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"annotations":{{{expected}}},"labels":{{"c":"d"}},"name":"web","namespace":"shop"}}}}"#
            );
            assert_eq!(object.pieces_with_hash("0123456789").concat(), expected);
            assert_eq!(
                object.to_value(Some("0123456789")),
                yaml::json(&expected).expect("JSON")
            );
            let size = json::webhook_size(json::passage(&expected).length);
            assert_eq!(object.size_with_hash("0123456789"), size, "{annotations}");
        }
    }

    #[test]
    fn refuses_namespaces_that_are_not_dns_labels() {
        for namespace in [
            "shop-x/../kube-system",
            "shop-x ",
            " shop",
            "Shop",
            "shop.x",
            "shop-",
            "shop\\n",
            "-shop",
        ] {
            let message = fault(&format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: a, namespace: \"{namespace}\"}}}}"
            ));
            assert!(
                message.starts_with("metadata.namespace \"") && message.contains("is not a namespace name"),
                "{message}"
            );
        }
        let message = fault("{apiVersion: v1, kind: Namespace, metadata: {name: 'shop-x '}}");
        assert!(
            message.starts_with("metadata.name \"shop-x \" is not a namespace name"),
            "{message}"
        );
    }

    #[test]
    fn refuses_malformed_objects_with_the_reason() {
        for (yaml, expected) in [
            ("{kind: Pod, metadata: {name: a}}", "apiVersion is missing"),
            (
                "{apiVersion: 1, kind: Pod, metadata: {name: a}}",
                "apiVersion is a number, not text: put it in quotes",
            ),
            (
                "{apiVersion: a/b/c, kind: Pod, metadata: {name: a}}",
                "apiVersion \"a/b/c\" is neither VERSION nor GROUP/VERSION",
            ),
            (
                "{apiVersion: v1, kind: 5, metadata: {name: a}}",
                "kind is a number, not text: put it in quotes",
            ),
            ("{apiVersion: v1, kind: Pod}", "metadata.name is missing"),
            ("{apiVersion: v1, kind: Pod, metadata: {}}", "metadata.name is missing"),
            (
                "{apiVersion: v1, kind: Pod, metadata: []}",
                "metadata is a list, not a mapping",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: 12}}",
                "metadata.name is a number, not text: put it in quotes",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: {}}}",
                "metadata.namespace is a mapping, not text",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: []}}",
                "metadata.name is a list, not text",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a/b}}",
                "metadata.name \"a/b\" must not contain '/' or '%', nor be '.' or '..'",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, namespase: b}}",
                "metadata.namespase is not a field of Kubernetes metadata: did you mean namespace?",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {on: yes}}}",
                "metadata.labels[true] is true or false, not text: put it in quotes",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: [b]}}",
                "metadata.labels is a list, not a mapping",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}",
                "metadata.generateName is only allowed for a hook, because OCM applies the same object repeatedly: set metadata.name",
            ),
        ] {
            assert_eq!(fault(yaml), expected);
        }
    }
}
