//! One Kubernetes object as Git has it, in canonical form: what a work embeds.
//!
//! Canonical means that nothing is changed in it on its way into the hub, else Argo CD would see a difference for ever. The
//! API server passes the `metadata` of embedded objects through its own type, which drops empty mappings and unknown fields;
//! kubectl's apply, which Argo CD uses, drops every field that is null, at any depth. Whatever they would drop is dropped here
//! already, or refused.

use super::place::{GroupKind, Scope};
use super::problem::Place;
use super::{canonical, order};
use crate::json;
use crate::value::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;

/// What an object is called: no two objects of an Application share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ObjectKey {
    /// Its API group and kind; the version does not distinguish objects.
    pub kind: GroupKind,
    /// Its namespace, where it has one.
    pub namespace: Option<Box<str>>,
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

/// An object in canonical form.
#[derive(Clone, Debug)]
pub struct Object {
    /// What it is called. The namespace may be set until the object is printed.
    pub key: ObjectKey,
    /// Its sync wave, as Argo CD reads it.
    pub wave: i64,
    /// Its kind's place in the order of kinds.
    pub rank: u8,
    /// The kind that it defines and the scope of that kind, where it is a CRD.
    pub defines: Option<Box<(GroupKind, Scope)>>,
    /// Where it comes from.
    pub source: Source,
    /// Its JSON without the namespace.
    text: Box<str>,
    /// Where in the text the namespace belongs: behind the name.
    namespace_at: usize,
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
    /// OCM refuses generateName.
    #[error(
        "metadata.generateName is not possible: OCM applies the same object again and again, which needs one name; set metadata.name"
    )]
    GenerateName,
    /// A field that `metadata` does not have.
    #[error("metadata.{0} is not a field of Kubernetes metadata: correct or remove it")]
    UnknownMetadata(String),
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

impl Object {
    /// Makes the canonical object of a document's value.
    ///
    /// # Errors
    /// When it is not an object that can be wrapped.
    pub fn new(mut fields: Map<'_>, source: Source) -> Result<Self, Fault> {
        let kind = required_text(&fields, "kind")?.into();
        let api_version = required_text(&fields, "apiVersion")?;
        let group = match api_version.split_once('/') {
            None => "",
            Some((group, version)) if !group.is_empty() && !version.is_empty() && !version.contains('/') => group,
            Some(_) => return Err(Fault::ApiVersion(api_version.to_owned())),
        };
        let kind = GroupKind {
            group: group.into(),
            kind,
        };
        fields.remove("status");
        canonical::drop_nulls(&mut fields);
        let mut metadata = match fields.remove("metadata") {
            Some(Value::Map(metadata)) => metadata,
            None => return Err(Fault::Missing("metadata.name")),
            Some(other) => return Err(wrong_type("metadata", &other, "a mapping")),
        };
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
        let wave = order::wave(&metadata);
        let defines = defines(&kind, &fields);
        let (text, namespace_at) = text(&fields, &metadata)?;
        Ok(Self {
            rank: order::rank(&kind.kind),
            key: ObjectKey {
                kind,
                namespace: namespace.map(Box::from),
                name,
            },
            wave,
            defines,
            source,
            text: text.into_boxed_str(),
            namespace_at,
        })
    }

    /// Its canonical JSON in three pieces, of which the middle one is the namespace.
    #[must_use]
    pub fn pieces(&self) -> [Cow<'_, str>; 3] {
        let (before, after) = self.text.split_at(self.namespace_at);
        let namespace = self.key.namespace.as_ref().map_or(String::new(), |namespace| {
            let mut text = String::from(",\"namespace\":");
            json::write_text(namespace, &mut text);
            text
        });
        [before.into(), namespace.into(), after.into()]
    }

    /// How many bytes OCM's admission webhook counts for it as one manifest of a work.
    #[must_use]
    pub fn size(&self) -> usize {
        json::webhook_size(self.pieces().iter().map(|piece| json::go_length(piece)).sum())
    }
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

fn is_path_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

fn defines(kind: &GroupKind, fields: &Map<'_>) -> Option<Box<(GroupKind, Scope)>> {
    if &*kind.group != "apiextensions.k8s.io" || &*kind.kind != "CustomResourceDefinition" {
        return None;
    }
    let spec = fields.get("spec")?.as_map()?;
    let scope = match spec.get("scope")?.as_str()? {
        "Cluster" => Scope::Cluster,
        _ => Scope::Namespaced,
    };
    let defined = GroupKind {
        group: spec.get("group")?.as_str()?.into(),
        kind: spec.get("names")?.as_map()?.get("kind")?.as_str()?.into(),
    };
    Some(Box::new((defined, scope)))
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
             creationTimestamp: null\n  uid: 1234\n  generation: 3\n  labels: {}\n  annotations: {b: x, a: null}\n  \
             finalizers: []\n  managedFields: [{manager: kubectl}]\n",
        );
        assert_eq!(
            object.pieces().concat(),
            r#"{"apiVersion":"v1","data":{"b":"","c":[null,{}]},"kind":"ConfigMap","metadata":{"annotations":{"b":"x"},"name":"web","namespace":"shop"}}"#
        );
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
    fn the_sync_wave_is_read_as_argo_cd_reads_it() {
        for (annotations, wave) in [
            ("{argocd.argoproj.io/sync-wave: '-5'}", -5),
            ("{argocd.argoproj.io/sync-wave: '+5'}", 5),
            ("{argocd.argoproj.io/sync-wave: five, helm.sh/hook-weight: '2'}", 2),
            ("{argocd.argoproj.io/sync-wave: ' 5'}", 0),
            ("{}", 0),
        ] {
            let yaml = format!("{{apiVersion: v1, kind: Pod, metadata: {{name: a, annotations: {annotations}}}}}");
            assert_eq!(object(&yaml).wave, wave, "{annotations}");
        }
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
            fault("{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}").contains("generateName is not possible")
        );
    }
}
