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
use std::fmt;
use std::num::NonZeroU32;
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
    /// True if a version of the kind has a status that tells the state of an object.
    pub has_status: bool,
}

/// An object in canonical form.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent property")]
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
    /// True for a Service of the type LoadBalancer.
    pub is_load_balancer: bool,
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
    /// The offset in the JSON at which the namespace is inserted: after the name.
    namespace_at: u32,
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
        let known_fields = identity::check_keys(&fields)?;
        let kind = required_text(&fields, "kind")?;
        let api_version = required_text(&fields, "apiVersion")?;
        let (group, version) =
            identity::api_version(api_version).ok_or_else(|| ObjectFault::ApiVersion(api_version.to_owned()))?;
        let built_in = identity::check_kind(group, kind)?;
        let kind = GroupKind {
            group: group.into(),
            kind: kind.into(),
        };
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
        let is_load_balancer =
            key.kind.is("", "Service") && fields.at(&["spec", "type"]).and_then(Value::as_str) == Some("LoadBalancer");
        let (json, namespace_at) = write_text(&fields, &metadata)?;
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
            is_load_balancer,
            source,
            text: json.into_boxed_str(),
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

    /// Parses the canonical JSON, and adds the namespace.
    pub fn to_value(&self) -> Value<'_> {
        let mut object = yaml::json(&self.text).expect("the text is JSON");
        if let Some(namespace) = self.key.namespace.as_deref() {
            let metadata = object.as_map_mut().and_then(|fields| fields.map_at_mut(&["metadata"]));
            let metadata = metadata.expect("every object has metadata");
            metadata.insert("namespace", Value::String(namespace.into()));
        }
        object
    }

    /// Sets the annotation [`CONTENT`].
    pub(crate) fn set_content_hash(&mut self, hash: &str) {
        let Ok(Value::Map(mut fields)) = yaml::json(&self.text) else {
            unreachable!("the text is a JSON object");
        };
        let Some(Value::Map(mut metadata)) = fields.remove("metadata") else {
            unreachable!("every object has metadata");
        };
        let mut annotations = match metadata.remove("annotations") {
            Some(Value::Map(annotations)) => annotations,
            _ => Map::default(),
        };
        annotations.insert(CONTENT, Value::from_text(hash));
        metadata.insert("annotations", Value::Map(annotations));
        let (text, namespace_at) = write_text(&fields, &metadata).expect("it is as deep as before");
        self.set_text(text, namespace_at);
    }

    pub(super) fn rename(&mut self, name: &str) {
        let (mut old, mut new) = (String::new(), String::new());
        json::write_text(&self.key.name, &mut old);
        json::write_text(name, &mut new);
        // The range of the name; the namespace would follow it.
        let end = self.namespace_at as usize;
        let start = end - old.len();
        let text = [&self.text[..start], &new, &self.text[end..]].concat();
        self.set_text(text, start + new.len());
        self.key.name = name.into();
    }

    fn set_text(&mut self, text: String, namespace_at: usize) {
        self.namespace_at = offset(namespace_at);
        self.length = offset(json::passage(&text).length);
        self.text = text.into_boxed_str();
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
        has_status: versions.any(reports_state),
    }))
}

/// Returns true if objects of a version report their state. Code generators declare a status for all kinds; that of MetalLB's L2Advertisement
/// has no fields, that of OpenTelemetry's Instrumentation only one for failures.
fn reports_state(version: &Map<'_>) -> bool {
    const UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
    let has_any = |path: &[&str], fields: &[&str]| {
        let map = version.at(path).and_then(Value::as_map);
        map.is_some_and(|map| fields.iter().any(|field| map.get(field).is_some()))
    };
    let status = ["schema", "openAPIV3Schema", "properties", "status", "properties"];
    has_any(&["subresources"], &["status"])
        && (has_any(&status[..2], &[UNKNOWN])
            || has_any(&status[..4], &[UNKNOWN])
            || has_any(&status, &["conditions", "observedGeneration", "phase", "state"]))
}

/// Writes the JSON of an object whose `metadata` was removed from `fields`, without the namespace. Returns the offset at which that is
/// inserted, too.
fn write_text(fields: &Map<'_>, metadata: &Map<'_>) -> Result<(String, usize), ObjectFault> {
    let mut out = String::with_capacity(1024);
    let mut namespace_at = None;
    out.push('{');
    for (key, value) in fields.iter() {
        if namespace_at.is_none() && key > "metadata" {
            namespace_at = Some(write_metadata(metadata, &mut out)?);
            out.push(',');
        }
        json::write_key(key, &mut out)?;
        json::write(value, &mut out)?;
        out.push(',');
    }
    let namespace_at = match namespace_at {
        Some(namespace_at) => {
            out.pop();
            namespace_at
        }
        None => write_metadata(metadata, &mut out)?,
    };
    out.push('}');
    Ok((out, namespace_at))
}

/// Writes `metadata`. Returns the offset at which the namespace is inserted.
fn write_metadata(metadata: &Map<'_>, out: &mut String) -> Result<usize, ObjectFault> {
    out.push_str("\"metadata\":{");
    let mut namespace_at = out.len();
    for (at, (key, value)) in metadata.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        json::write_key(key, out)?;
        json::write(value, out)?;
        if key == "name" {
            namespace_at = out.len();
        }
    }
    out.push('}');
    Ok(namespace_at)
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
            "apiVersion: v1\nkind: ConfigMap\nstatus: {a: 1}\ndata: {b: '', a: null, c: [null, {d: null}]}\nmetadata:\n  name: web\n  generateName: we\n  namespace: shop\n  \
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
        assert_eq!(object.to_value(), yaml::json(&object.pieces().concat()).expect("JSON"));
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
            let mut object = object(&format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{{annotations}labels: {{c: d}}, name: web, namespace: shop}}}}"
            ));
            object.set_content_hash("0123456789");
            let expected = expected.replace("HASH", r#""argocd-ocm-cmp.github.io/content-hash":"0123456789""#);
            let expected = format!(
                r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"annotations":{{{expected}}},"labels":{{"c":"d"}},"name":"web","namespace":"shop"}}}}"#
            );
            assert_eq!(object.pieces().concat(), expected);
            let size = json::webhook_size(json::passage(&expected).length);
            assert_eq!(object.size(), size, "{annotations}");
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
        let table = "
            {kind: Pod, metadata: {name: a}} => apiVersion is missing
            {apiVersion: 1, kind: Pod, metadata: {name: a}} => apiVersion is a number, not text: put it in quotes
            {apiVersion: a/b/c, kind: Pod, metadata: {name: a}} => apiVersion \"a/b/c\" is neither VERSION nor GROUP/VERSION
            {apiVersion: v1, kind: 5, metadata: {name: a}} => kind is a number, not text: put it in quotes
            {apiVersion: v1, kind: Pod} => metadata.name is missing
            {apiVersion: v1, kind: Pod, metadata: {}} => metadata.name is missing
            {apiVersion: v1, kind: Pod, metadata: []} => metadata is a list, not a mapping
            {apiVersion: v1, kind: Pod, metadata: {name: 12}} => metadata.name is a number, not text: put it in quotes
            {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: {}}} => metadata.namespace is a mapping, not text
            {apiVersion: v1, kind: Pod, metadata: {name: []}} => metadata.name is a list, not text
            {apiVersion: v1, kind: Pod, metadata: {name: a/b}} => metadata.name \"a/b\" must not contain '/' or '%', nor be '.' or '..'
            {apiVersion: v1, kind: Pod, metadata: {name: a, namespase: b}} => metadata.namespase is not a field of Kubernetes metadata: did you mean namespace?
            {apiVersion: v1, kind: Pod, metadata: {name: a, labels: {on: yes}}} => metadata.labels[true] is true or false, not text: put it in quotes
            {apiVersion: v1, kind: Pod, metadata: {name: a, labels: [b]}} => metadata.labels is a list, not a mapping
            {apiVersion: v1, kind: Pod, metadata: {generateName: a-}} => metadata.generateName is only allowed for a hook, because OCM applies the same object repeatedly: set metadata.name";
        for (yaml, expected) in testing::rows(table) {
            assert_eq!(fault(yaml), expected);
        }
    }
}
