//! One Kubernetes object as Git has it, in canonical form: what a work embeds.
//!
//! Canonical means that nothing is changed in it on its way into the hub, else Argo CD would see a difference for ever. The
//! API server passes the `metadata` of embedded objects through its own type, which drops empty mappings and unknown fields;
//! kubectl's apply, which Argo CD uses, drops every field that is null, at any depth. Whatever they would drop is dropped here
//! already, or refused.

use super::kinds::{GroupKind, Scope};
use super::problem::Place;
use super::strategy::Strategy;
use super::wishes::{self, Phase, Wishes};
use super::{canonical, hooks, order};
use crate::json;
use crate::value::{Map, Value};
use crate::yaml;
use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

/// What an object is called: no two objects of an Application share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// Its API group and kind; the version does not distinguish objects.
    pub kind: GroupKind,
    /// Its namespace, where it has one; most objects of a folder share theirs.
    pub namespace: Option<Arc<str>>,
    /// Its name.
    pub name: Box<str>,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

/// Where in the folder an object comes from. Compact, because a folder may hold very many.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The file, by its place in the list of files.
    pub file: u32,
    /// The line on which its document begins, from 1.
    pub line: u32,
    /// Its document in the file, from 1.
    pub document: u32,
    /// Its place in the document's list, from 1, where the document is one.
    pub item: Option<NonZeroU32>,
}

impl Source {
    /// A document of a file. What counts beyond four thousand million stays there.
    #[must_use]
    pub fn document(file: usize, line: usize, document: usize) -> Self {
        let short = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            file: short(file),
            line: short(line),
            document: short(document),
            item: None,
        }
    }

    /// An item of the document, counted from 0.
    #[must_use]
    pub fn item(self, at: usize) -> Self {
        Self {
            item: u32::try_from(at + 1).ok().and_then(NonZeroU32::new),
            ..self
        }
    }

    /// The place, for people; `path` is the name of the file.
    #[must_use]
    pub fn place(self, path: &str) -> Place<'_> {
        Place {
            path,
            line: self.line,
            document: self.document,
            item: self.item,
        }
    }
}

/// The kind that a CRD defines.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The kind.
    pub kind: GroupKind,
    /// Its resource.
    pub plural: Option<Box<str>>,
    /// Whether it has namespaces.
    pub scope: Scope,
}

/// What an object is in a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// An object of the Application.
    Ordinary,
    /// A hook that is there from its phase on.
    Hook,
    /// A hook that runs: see [`hooks`].
    Run,
}

/// An object in canonical form.
#[derive(Clone, Debug)]
pub struct Object {
    /// What it is called. The namespace may be set until the object is printed.
    pub key: ObjectKey,
    /// Its sync wave, as Argo CD reads it.
    pub wave: i32,
    /// Its kind's place in the order of kinds.
    pub rank: u8,
    /// What it defines, where it is a CRD.
    pub defines: Option<Box<Definition>>,
    /// The scope of its kind, where that is one of Kubernetes' own.
    pub scope: Option<Scope>,
    /// Whether every cluster serves its kind in its version, so that the agent can always tell its resource.
    pub everywhere: bool,
    /// Whether an apply patch cannot carry it: the API server reads that as YAML, which changes some text and numbers.
    pub awkward: bool,
    /// What its annotations ask for.
    pub wishes: Option<Box<Wishes>>,
    /// When in a sync it is applied.
    pub phase: Phase,
    /// What it is in that.
    pub role: Role,
    /// The hash of its content that it bears as an annotation: see [`fresh`](super::fresh).
    pub content: Option<Box<String>>,
    /// Where it comes from.
    pub source: Source,
    /// How many bytes the text has when Go encodes it; what is larger than a `u32` fits nowhere.
    length: u32,
    /// Its JSON without the namespace.
    text: Box<str>,
    /// Where in the text the namespace belongs: behind the name.
    namespace_at: u32,
}

/// Why a value is not an object that can be wrapped.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A field that every object has is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field holds another type of value than it must.
    #[error("{field} is {is}, not {wanted}{}", way_out(wanted, is))]
    Type {
        /// Its path.
        field: String,
        /// What it holds.
        is: &'static str,
        /// What it must hold.
        wanted: &'static str,
    },
    /// An apiVersion with more than one `/`, or with an empty part.
    #[error("apiVersion {0:?} is neither VERSION nor GROUP/VERSION")]
    ApiVersion(String),
    /// A name that cannot be part of a URL.
    #[error("metadata.name {0:?} must not hold '/' or '%', nor be '.' or '..'")]
    Name(String),
    /// A namespace that Kubernetes does not allow. A policy's globs would match more than the namespace that is meant.
    #[error("metadata.namespace {0}")]
    Namespace(super::names::Error),
    /// The name of a Namespace that Kubernetes does not allow.
    #[error("metadata.name {0}")]
    NameOfNamespace(super::names::Error),
    /// OCM refuses generateName.
    #[error(
        "metadata.generateName is only possible for a hook: OCM applies the same object again and again, which needs one name; set \
         metadata.name"
    )]
    GenerateName,
    /// A sync wave that leaves no room for phases.
    #[error("sync wave {0} is beyond ±{max}: use a smaller number", max = order::WAVE_MAX)]
    Wave(i64),
    /// An annotation that cannot be understood.
    #[error(transparent)]
    Annotation(#[from] wishes::Fault),
    /// A field that `metadata` does not have.
    #[error("metadata.{0} is not a field of Kubernetes metadata: correct or remove it")]
    UnknownMetadata(String),
    /// Larger than a work can ever be.
    #[error("it has more than two gigabytes: leave it out with exclude")]
    Huge,
    /// It cannot be printed for Argo CD.
    #[error(transparent)]
    Unprintable(#[from] json::Error),
}

fn way_out(wanted: &str, is: &str) -> &'static str {
    if wanted == "text" && matches!(is, "a number" | "true or false") {
        ": put it in quotes"
    } else {
        ""
    }
}

/// Beyond this many bytes, an object's places could not be kept.
const HUGE: usize = 1 << 31;

/// What stands before the namespace, in quotes, in the JSON of an object.
const NAMESPACE: &str = r#","namespace":"#;

/// About what an update strategy and an orphaning rule of its own take in a work, without the object's names.
const ALONE: u64 = 400;

impl Object {
    /// Makes the canonical object of a document's value.
    ///
    /// # Errors
    /// When it is not an object that can be wrapped.
    pub fn new(mut fields: Map<'_>, source: Source) -> Result<Self, Fault> {
        let kind = required_text(&fields, "kind")?.into();
        let api_version = required_text(&fields, "apiVersion")?;
        let (group, version) = match api_version.split_once('/') {
            None => ("", api_version),
            Some((group, version)) if !group.is_empty() && !version.is_empty() && !version.contains('/') => {
                (group, version)
            }
            Some(_) => return Err(Fault::ApiVersion(api_version.to_owned())),
        };
        let kind = GroupKind {
            group: group.into(),
            kind,
        };
        let built_in = kind.built_in();
        let everywhere = built_in.is_some_and(|known| known.everywhere.contains(&version));
        fields.remove("status");
        canonical::drop_nulls(&mut fields);
        if kind.is("", "Secret") {
            canonical::fold_string_data(&mut fields);
        }
        let mut metadata = match fields.remove("metadata") {
            Some(Value::Map(metadata)) => metadata,
            None => return Err(Fault::Missing("metadata.name")),
            Some(other) => return Err(wrong_type("metadata", &other, "a mapping")),
        };
        let wishes = wishes::wishes(&metadata)?;
        if wishes.as_ref().is_some_and(|wishes| !wishes.hooks.is_empty()) {
            hooks::prepare(&kind.kind, &mut metadata, &mut fields)?;
        }
        canonical::metadata(&mut metadata)?;
        let namespace = match metadata.remove("namespace") {
            None => None,
            Some(Value::String(namespace)) => Some(namespace).filter(|namespace| !namespace.is_empty()),
            Some(other) => return Err(wrong_type("metadata.namespace", &other, "text")),
        };
        let name: Box<str> = match metadata.get("name") {
            Some(Value::String(name)) if !name.is_empty() => name.as_ref().into(),
            None | Some(Value::String(_)) => return Err(Fault::Missing("metadata.name")),
            Some(other) => return Err(wrong_type("metadata.name", other, "text")),
        };
        if !is_path_segment(&name) {
            return Err(Fault::Name(name.into()));
        }
        if let Some(namespace) = &namespace {
            super::names::namespace(namespace).map_err(Fault::Namespace)?;
        }
        if kind.is("", "Namespace") {
            super::names::namespace(&name).map_err(Fault::NameOfNamespace)?;
        }
        let wave = wishes::wave(&metadata);
        let near = i32::try_from(wave).ok().filter(|near| near.abs() <= order::WAVE_MAX);
        let wave = near.ok_or(Fault::Wave(wave))?;
        let defines = defines(&kind, &fields);
        let (text, namespace_at) = text(&fields, &metadata)?;
        if text.len() > HUGE {
            return Err(Fault::Huge);
        }
        let passage = json::passage(&text);
        Ok(Self {
            rank: order::rank(&kind.kind),
            everywhere,
            scope: built_in.map(|known| known.scope),
            awkward: passage.awkward,
            length: offset(passage.length),
            wishes: wishes.map(Box::new),
            phase: Phase::Sync,
            role: Role::Ordinary,
            content: None,
            key: ObjectKey {
                kind,
                namespace: namespace.map(Arc::from),
                name,
            },
            wave,
            defines,
            source,
            text: text.into_boxed_str(),
            namespace_at: offset(namespace_at),
        })
    }

    /// Its canonical JSON in three pieces, of which the middle one is the namespace.
    #[must_use]
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

    /// Gives it another name, under which it is applied.
    pub(super) fn rename(&mut self, name: &str) {
        let (mut old, mut new) = (String::new(), String::new());
        json::write_text(&self.key.name, &mut old);
        json::write_text(name, &mut new);
        // Where the name is: the namespace would follow it.
        let end = self.namespace_at as usize;
        let start = end - old.len();
        let text = [&self.text[..start], &new, &self.text[end..]].concat();
        self.namespace_at = offset(start + new.len());
        self.length = offset(json::passage(&text).length);
        self.text = text.into_boxed_str();
        self.key.name = name.into();
    }

    /// Gives it one more annotation.
    pub(super) fn annotate(&mut self, name: &str, text: &str) {
        let fields = yaml::json(&self.text).expect("what was written is JSON");
        let Value::Map(mut fields) = fields else { return };
        let Some(Value::Map(mut metadata)) = fields.remove("metadata") else {
            return;
        };
        let mut annotations = match metadata.remove("annotations") {
            Some(Value::Map(annotations)) => annotations,
            _ => Map::from_entries(Vec::new()),
        };
        annotations.insert(name.to_owned(), Value::String(text.to_owned().into()));
        metadata.insert("annotations", Value::Map(annotations));
        let (text, namespace_at) = self::text(&fields, &metadata).expect("what was read back can be written again");
        self.length = offset(json::passage(&text).length);
        self.text = text.into_boxed_str();
        self.namespace_at = offset(namespace_at);
    }

    /// How many bytes it adds to a work: itself, and what the work says about it alone.
    #[must_use]
    pub fn weight(&self) -> u64 {
        let alone = self.wishes.is_some() || self.awkward || self.defines.is_some() || order::is_namespace(self);
        self.size() as u64 + if alone { ALONE } else { 0 }
    }

    /// How many bytes OCM's admission webhook counts for it as one manifest of a work.
    #[must_use]
    pub fn size(&self) -> usize {
        // A namespace has nothing in it that Go escapes.
        let namespace = self
            .key
            .namespace
            .as_ref()
            .map_or(0, |name| NAMESPACE.len() + name.len() + 2);
        json::webhook_size(self.length as usize + namespace)
    }
}

/// A Namespace that no file has. Its source is the first file, which no message about it names.
#[must_use]
pub fn namespace(name: &str) -> Object {
    let entries = |entries: &[(&'static str, &str)]| {
        let entry = |&(key, text): &(&'static str, &str)| (key.into(), Value::String(text.to_owned().into()));
        Map::from_entries(entries.iter().map(entry).collect())
    };
    let mut fields = entries(&[("apiVersion", "v1"), ("kind", "Namespace")]);
    fields.insert("metadata", Value::Map(entries(&[("name", name)])));
    let mut namespace = Object::new(fields, Source::document(0, 0, 0)).expect("a Namespace with a checked name");
    // Other Applications may have the same one, with labels that nothing here knows of.
    namespace.wishes = Some(Box::new(Wishes {
        keep: true,
        strategy: Some(Strategy::CreateOnly),
        ..Wishes::default()
    }));
    namespace
}

fn required_text<'a>(fields: &'a Map<'_>, name: &'static str) -> Result<&'a str, Fault> {
    match fields.get(name) {
        None | Some(Value::Null) => Err(Fault::Missing(name)),
        Some(Value::String(text)) if text.is_empty() => Err(Fault::Missing(name)),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(wrong_type(name, other, "text")),
    }
}

pub(super) fn wrong_type(field: &str, value: &Value<'_>, wanted: &'static str) -> Fault {
    Fault::Type {
        field: field.to_owned(),
        is: value.type_name(),
        wanted,
    }
}

/// A place in a text that is not [`Fault::Huge`], or about its length. Compact, as a folder may hold very many objects.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn is_path_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

fn defines(kind: &GroupKind, fields: &Map<'_>) -> Option<Box<Definition>> {
    if !kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
        return None;
    }
    let spec = fields.get("spec")?.as_map()?;
    let names = spec.get("names")?.as_map()?;
    Some(Box::new(Definition {
        kind: GroupKind {
            group: spec.get("group")?.as_str()?.into(),
            kind: names.get("kind")?.as_str()?.into(),
        },
        plural: names.get("plural").and_then(Value::as_str).map(Box::from),
        scope: match spec.get("scope")?.as_str()? {
            "Cluster" => Scope::Cluster,
            _ => Scope::Namespaced,
        },
    }))
}

/// The JSON of an object whose `metadata` stands apart, and where in it the namespace belongs.
fn text(fields: &Map<'_>, metadata: &Map<'_>) -> Result<(String, usize), Fault> {
    let mut out = String::with_capacity(1024);
    let mut namespace_at = 0;
    let mut write_metadata = |out: &mut String| -> Result<(), Fault> {
        out.push_str("\"metadata\":{");
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
        Ok(())
    };
    out.push('{');
    let mut metadata_written = false;
    for (key, value) in fields.iter() {
        if !metadata_written && key > "metadata" {
            write_metadata(&mut out)?;
            out.push(',');
            metadata_written = true;
        }
        json::write_key(key, &mut out)?;
        json::write(value, &mut out)?;
        out.push(',');
    }
    if metadata_written {
        out.pop();
    } else {
        write_metadata(&mut out)?;
    }
    out.push('}');
    Ok((out, namespace_at))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The object of a YAML text, for tests of any stage.
    pub(crate) fn object(yaml: &str) -> Object {
        try_object(yaml).expect(yaml)
    }

    fn try_object(yaml: &str) -> Result<Object, Fault> {
        let document = crate::yaml::documents(yaml)
            .next()
            .expect("a document")
            .expect("valid YAML");
        let Value::Map(fields) = document.value else {
            panic!("not a mapping: {yaml}");
        };
        Object::new(fields, Source::document(0, document.line, document.number))
    }

    fn fault(yaml: &str) -> String {
        try_object(yaml).expect_err(yaml).to_string()
    }

    #[test]
    fn metadata_keeps_only_what_the_api_server_keeps() {
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
    fn the_texts_of_a_secret_become_its_data() {
        let secret = |fields: &str| {
            object(&format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: a}}, {fields}}}"
            ))
            .pieces()
            .concat()
        };
        assert!(secret("data: {a: eA==, b: eA==}, stringData: {b: foo}").contains(r#""data":{"a":"eA==","b":"Zm9v"}"#));
        assert!(secret("stringData: {b: foo}").contains(r#""data":{"b":"Zm9v"}"#));
        assert!(!secret("stringData: {b: foo}").contains("stringData"));
        assert!(secret("stringData: {b: 1}").contains(r#""stringData":{"b":1}"#));
    }

    #[test]
    fn the_namespace_stands_behind_the_name_whatever_follows() {
        let mut object = object(
            "{apiVersion: v1, kind: Pod, spec: {}, metadata: {name: web, ownerReferences: [{name: x}], labels: {a: b}}}",
        );
        object.key.namespace = Some("shop".into());
        assert_eq!(
            object.pieces().concat(),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":"b"},"name":"web","namespace":"shop","ownerReferences":[{"name":"x"}]},"spec":{}}"#
        );
    }

    #[test]
    fn refuses_namespaces_that_are_no_dns_label() {
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
            let told = fault(&format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: a, namespace: \"{namespace}\"}}}}"
            ));
            assert!(
                told.starts_with("metadata.namespace \"") && told.contains("is not a namespace name"),
                "{told}"
            );
        }
        let told = fault("{apiVersion: v1, kind: Namespace, metadata: {name: 'shop-x '}}");
        assert!(
            told.starts_with("metadata.name \"shop-x \" is not a namespace name"),
            "{told}"
        );
    }

    #[test]
    fn what_is_no_object_is_refused_with_the_reason() {
        for (yaml, wanted) in [
            ("{kind: Pod, metadata: {name: a}}", "apiVersion is missing"),
            (
                "{apiVersion: 1, kind: Pod, metadata: {name: a}}",
                "apiVersion is a number, not text: put it in quotes",
            ),
            (
                "{apiVersion: a/b/c, kind: Pod, metadata: {name: a}}",
                "apiVersion \"a/b/c\" is neither VERSION nor GROUP/VERSION",
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
                "metadata.name \"a/b\" must not hold '/' or '%', nor be '.' or '..'",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, namespase: b}}",
                "metadata.namespase is not a field of Kubernetes metadata: correct or remove it",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {on: yes}}}",
                "metadata.labels[true] is true or false, not text: put it in quotes",
            ),
            (
                "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: [b]}}",
                "metadata.labels is a list, not a mapping",
            ),
        ] {
            assert_eq!(fault(yaml), wanted);
        }
        assert!(
            fault("{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}")
                .contains("generateName is only possible for a hook")
        );
    }
}
