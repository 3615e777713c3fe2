//! Parses the objects of one file as Argo CD does: selects the documents that are manifests, and flattens lists.

use super::canonical;
use super::identity;
use super::likely_mistakes::{LikelyMistake, has_keys_of_object, likely_mistakes};
use super::object::{Object, ObjectFault, ObjectLocation};
use super::schema::{self, FieldValidation};
use manifest::value::{Map, Value};
use manifest::yaml::{self, Positions};
use std::fmt;
use std::path::Path;

/// The texts that mark a manifest: Argo CD requires a file that contains all of them to parse. Quoted keys escape this check, so text
/// that does not parse is searched for those, too.
const MANIFEST_MARKS: [&str; 3] = ["apiVersion:", "kind:", "metadata:"];

/// The objects of one file, in canonical form.
#[derive(Debug, Default)]
pub struct FileObjects {
    /// The objects, in the order of the file.
    pub objects: Vec<Box<Object>>,
    /// Warnings about kinds and fields, one line each.
    pub notices: Vec<String>,
}

/// The options for reading objects.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// The comparison of objects with Kubernetes' kinds and fields.
    pub validation: FieldValidation,
    /// True to remove the descriptions of fields from CRDs.
    pub strips_descriptions: bool,
}

impl From<FieldValidation> for ReadOptions {
    fn from(validation: FieldValidation) -> Self {
        Self {
            validation,
            strips_descriptions: false,
        }
    }
}

/// The text of a file.
#[derive(Clone, Copy, Debug)]
pub struct ManifestText<'a> {
    /// The index in the list of files.
    pub index: usize,
    /// The name, for messages.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

/// Parses the objects of a file.
///
/// In a YAML file a document is a manifest if it is a mapping with a `kind`. The first document that is not, or that does not
/// parse, is an error if a manifest precedes or follows it or if the text looks like one; otherwise the file is not a manifest
/// (values of a chart, a pipeline, a dashboard) and has no objects. A JSON file contains exactly one object.
///
/// # Errors
/// Returns one line for every invalid object, or for the location of a syntax error.
pub fn objects(file: ManifestText<'_>, options: impl Into<ReadOptions>) -> Result<FileObjects, Vec<String>> {
    let mut reading = DocumentReader::new(file, options.into());
    if Path::new(file.name)
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        reading.json();
    } else {
        let manifests = reading.yaml();
        reading.warn_of_likely_mistakes(manifests);
    }
    reading.done()
}

/// Parses the objects in the output of a tool: each document must be one.
///
/// # Errors
/// Returns one line for every invalid object, or for the location of a syntax error.
pub fn rendered(file: ManifestText<'_>, options: impl Into<ReadOptions>) -> Result<FileObjects, Vec<String>> {
    let mut reading = DocumentReader {
        may_be_no_manifest: false,
        ..DocumentReader::new(file, options.into())
    };
    reading.yaml();
    reading.done()
}

/// The number of documents in a file whose fields have their own lines in messages. Each costs a search from the start of the file,
/// and another parse.
const LOCATED_MAX: usize = 100;

struct DocumentReader<'a> {
    file: ManifestText<'a>,
    /// The document that was last parsed for the lines of its fields, and their positions.
    located: Option<(u32, Option<Positions<'a>>)>,
    /// The number of documents that were parsed for that.
    located_count: usize,
    options: ReadOptions,
    /// True if the file need not be a manifest.
    may_be_no_manifest: bool,
    /// True if the file has a document with an `apiVersion` and `metadata`, but without a `kind`.
    has_almost_an_object: bool,
    read: FileObjects,
    problems: Vec<String>,
}

impl<'a> DocumentReader<'a> {
    fn new(file: ManifestText<'a>, options: ReadOptions) -> Self {
        Self {
            file,
            located: None,
            located_count: 0,
            options,
            may_be_no_manifest: true,
            has_almost_an_object: false,
            read: FileObjects {
                // Most files contain one object, and all are kept until the last is read.
                objects: Vec::with_capacity(1),
                notices: Vec::new(),
            },
            problems: Vec::new(),
        }
    }

    fn done(self) -> Result<FileObjects, Vec<String>> {
        if self.problems.is_empty() {
            Ok(self.read)
        } else {
            Err(self.problems)
        }
    }

    fn json(&mut self) {
        match yaml::json(self.file.text) {
            Ok(value) => {
                let source = self.source(1, 1);
                match manifest(value) {
                    Ok(fields) => self.add(fields, source),
                    Err(NoManifest { why, .. }) => self.refuse(source, &why),
                }
            }
            Err(error) => self.refuse(self.source(error.line, error.document), &error.message),
        }
    }

    /// Returns the number of manifests.
    fn yaml(&mut self) -> usize {
        let text = self.file.text;
        let mut manifests = 0;
        let mut documents = yaml::documents(text);
        while let Some(document) = documents.next() {
            let (source, manifest) = match document {
                Ok(document) => (self.source(document.line, document.number), manifest(document.value)),
                Err(error) => {
                    let no_manifest = NoManifest {
                        why: error.message.into_owned(),
                        is_meant: has_keys_of_object(text),
                        is_almost: false,
                    };
                    (self.source(error.line, error.document), Err(no_manifest))
                }
            };
            match manifest {
                Ok(fields) => {
                    manifests += 1;
                    self.add(fields, source);
                }
                Err(NoManifest {
                    why,
                    is_meant,
                    is_almost,
                }) => {
                    let has_marks = is_meant || MANIFEST_MARKS.iter().all(|mark| text.contains(mark));
                    let is_no_manifest = self.may_be_no_manifest && manifests == 0 && !has_marks;
                    if !is_no_manifest || has_object(documents, text) {
                        self.refuse(source, &why);
                    }
                    self.has_almost_an_object = is_almost;
                    return manifests;
                }
            }
        }
        manifests
    }

    fn warn_of_likely_mistakes(&mut self, manifests: usize) {
        let is_refused = manifests == 0 && !self.problems.is_empty();
        if self.options.validation == FieldValidation::Ignore || is_refused {
            return;
        }
        for LikelyMistake { line, message } in likely_mistakes(self.file.text, manifests, self.has_almost_an_object) {
            let notice = format!("{}:{line}: {message}", self.file.name);
            if self.options.validation == FieldValidation::Strict {
                self.problems.push(notice);
            } else {
                self.read.notices.push(notice);
            }
        }
    }

    fn source(&self, line: usize, document: usize) -> ObjectLocation {
        ObjectLocation::document(self.file.index, line, document)
    }

    fn refuse(&mut self, source: ObjectLocation, why: &str) {
        self.problems
            .push(format!("{}: {why}", source.location(self.file.name)));
    }

    /// Adds the object, or the items of a list: any object with an `items` list, one level deep.
    fn add(&mut self, mut fields: Map<'_>, source: ObjectLocation) {
        let is_null_list = matches!(fields.get("items"), Some(Value::Null))
            && fields.get("spec").is_none()
            && fields.get("status").is_none();
        match fields.remove("items") {
            Some(Value::List(items)) => {
                if let Err(fault) = identity::check_list_keys(&fields) {
                    let source = self.at_field(source, &fault.path());
                    self.refuse(source, &fault.to_string());
                }
                for (at, item) in items.into_iter().enumerate() {
                    let source = source.item(at);
                    match manifest(item) {
                        Ok(fields) => self.add_one(fields, source),
                        Err(NoManifest { why, .. }) => self.refuse(source, &why),
                    }
                }
            }
            // Go's output for an empty list; Argo CD drops it.
            Some(Value::Null) if is_null_list => {}
            Some(other) => {
                fields.insert("items", other);
                self.add_one(fields, source);
            }
            None => self.add_one(fields, source),
        }
    }

    /// Returns the location with the line of a field. Only messages need it, so only for them the document is parsed again.
    fn at_field(&mut self, source: ObjectLocation, path: &str) -> ObjectLocation {
        if self
            .located
            .as_ref()
            .is_none_or(|(document, _)| *document != source.document)
        {
            self.located_count += 1;
            let positions = (self.located_count <= LOCATED_MAX)
                .then(|| Positions::locate_document(self.file.text, source.document as usize))
                .flatten();
            self.located = Some((source.document, positions));
        }
        let positions = self.located.as_mut().and_then(|(_, positions)| positions.as_mut());
        let line = positions.and_then(|positions| match source.item {
            Some(item) => positions.line_of(&format!("items[{}].{path}", item.get() - 1)),
            None => positions.line_of(path),
        });
        line.map_or(source, |line| source.at_line(line))
    }

    fn add_one(&mut self, mut fields: Map<'_>, source: ObjectLocation) {
        if self.options.strips_descriptions {
            canonical::strip_descriptions(&mut fields);
        }
        let called = name_of(&fields);
        let findings = match self.options.validation {
            FieldValidation::Ignore => Vec::new(),
            FieldValidation::Strict | FieldValidation::Warn => schema::check(&fields),
        };
        let object = Object::new(fields, source);
        let message = |reader: &mut Self, path: &str, why: &dyn fmt::Display| {
            let source = reader.at_field(source, path);
            format!("{}: {called}: {why}", source.location(reader.file.name))
        };
        for finding in findings {
            let line = message(self, &finding.path, &finding.message);
            if finding.refused && self.options.validation == FieldValidation::Strict {
                self.problems.push(line);
            } else {
                self.read.notices.push(line);
            }
        }
        match object {
            Ok(object) => self.read.objects.push(Box::new(object)),
            Err(fault) => {
                let line = message(self, &fault.path(), &fault);
                self.problems.push(line);
            }
        }
    }
}

/// Returns true if one of these documents of the text is an object, or was meant as one.
fn has_object(mut documents: yaml::Documents<'_>, text: &str) -> bool {
    documents.any(|document| match document {
        Ok(document) => manifest(document.value).is_ok_and(|fields| fields.get("apiVersion").is_some()),
        Err(_) => has_keys_of_object(text),
    })
}

/// The reason why a document is not a manifest.
struct NoManifest {
    why: String,
    /// True if it was certainly meant as one.
    is_meant: bool,
    /// True if it has an `apiVersion` and `metadata`.
    is_almost: bool,
}

impl NoManifest {
    fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            is_meant: false,
            is_almost: false,
        }
    }
}

fn manifest(value: Value<'_>) -> Result<Map<'_>, NoManifest> {
    let Value::Map(fields) = value else {
        let why = format!("it is {}, not a Kubernetes object", value.type_name());
        return Err(NoManifest::new(why));
    };
    match fields.get("kind") {
        Some(Value::String(kind)) if !kind.is_empty() => {}
        None | Some(Value::Null | Value::String(_)) => {
            let is_almost = fields.get("apiVersion").is_some() && fields.get("metadata").is_some();
            let list_keys = identity::check_list_keys(&fields);
            return Err(NoManifest {
                is_meant: is_almost && list_keys.is_err(),
                is_almost,
                why: list_keys.map_or_else(|fault| fault.to_string(), |_| ObjectFault::Missing("kind").to_string()),
            });
        }
        Some(other) => return Err(NoManifest::new(format!("kind is {}, not text", other.type_name()))),
    }
    let of_kustomize = |api_version: &str| api_version.starts_with("kustomize.config.k8s.io/");
    if fields
        .get("apiVersion")
        .and_then(Value::as_str)
        .is_some_and(of_kustomize)
    {
        return Err(NoManifest::new(
            "it is a file of Kustomize, which no cluster serves: exclude it",
        ));
    }
    Ok(fields)
}

/// Returns the identification of an object for messages, as far as it has one.
fn name_of(object: &Map<'_>) -> String {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or("object");
    let metadata = object.get("metadata").and_then(Value::as_map);
    let text = |name| metadata.and_then(|metadata| metadata.get(name)?.as_str());
    match (text("namespace"), text("name").or_else(|| text("generateName"))) {
        (Some(namespace), Some(name)) => format!("{kind} {namespace}/{name}"),
        (None, Some(name)) => format!("{kind} {name}"),
        (_, None) => kind.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file<'a>(name: &'a str, text: &'a str) -> ManifestText<'a> {
        ManifestText { index: 0, name, text }
    }

    fn names(name: &str, text: &str) -> Result<Vec<String>, Vec<String>> {
        let read = objects(file(name, text), FieldValidation::Warn)?;
        Ok(read.objects.iter().map(|object| object.key.name.to_string()).collect())
    }

    fn pod(name: &str) -> String {
        format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n")
    }

    #[test]
    fn file_without_a_manifest_has_no_objects() {
        assert_eq!(names("values.yaml", "replicas: 3\nimage: web\n"), Ok(vec![]));
        assert_eq!(
            names("chart.yaml", "{{ if .Values.on }}\nkind: Pod\n{{ end }}"),
            Ok(vec![])
        );
        assert_eq!(names("empty.yaml", ""), Ok(vec![]));
        assert_eq!(names("list.yaml", "- a\n- b\n"), Ok(vec![]));
    }

    #[test]
    fn a_broken_manifest_is_an_error() {
        let broken = format!("{}  labels: [\n", pod("a"));
        assert!(names("a.yaml", &broken).is_err());
        let values_after = format!("{}---\nreplicas: 3\n", pod("a"));
        assert_eq!(
            names("a.yaml", &values_after),
            Err(vec!["a.yaml:6: document 2: kind is missing".to_owned()])
        );
        let values_before = format!("replicas: 3\n---\n{}", pod("a"));
        assert_eq!(
            names("a.yaml", &values_before),
            Err(vec!["a.yaml:1: document 1: kind is missing".to_owned()])
        );
    }

    #[test]
    fn broken_or_later_manifests_with_other_spellings_of_keys_are_errors() {
        let json = r#"{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "b"}}"#;
        let refused = |text: &str| names("a.yaml", text).expect_err(text).join("\n");
        for (broken, line) in [
            (json.replace("}}", "}"), 1),
            (json.replace(r#""v1","#, r#""v1""#), 1),
            ("apiVersion : v1\nkind : Pod\nmetadata :\n  name: [b\n".to_owned(), 5),
            ("'apiVersion': v1\n'kind': Pod\n'metadata': {name: b\n".to_owned(), 4),
            (format!("# settings\nowner: team\n---\n{json}"), 2),
            (
                format!("owner: team\n---\nteam: a\n---\n{}", &json[..json.len() - 1]),
                1,
            ),
        ] {
            let message = refused(&broken);
            assert!(
                message.starts_with(&format!("a.yaml:{line}: document 1: ")),
                "{broken}: {message}"
            );
        }
        for other in [
            "values: |\n  {\"kind\": \"Pod\", \"apiVersion\": \"v1\", \"metadata\": {}}\n",
            "steps: a\n---\nkind: pipeline\nname: b\n",
            "replicas: 3\n---\nname: [\n",
        ] {
            assert_eq!(names("a.yaml", other), Ok(vec![]), "{other}");
        }
    }

    #[test]
    fn warns_of_what_is_not_read() {
        let notices = |text: &str| {
            objects(file("a.yaml", text), FieldValidation::Warn)
                .expect(text)
                .notices
        };
        let (json, after) = (
            r#"{kind: Pod, "apiVersion": "v1", "metadata": {"name": "b"}}"#,
            pod("a"),
        );
        let [read, almost] = [
            "text after the line ..., which ends a document, is not read: put --- in the place of that line",
            "it looks like an object, but has no apiVersion, kind and metadata, so it is not delivered: correct it, or exclude the \
             file",
        ];
        for (text, expected) in [
            (
                format!("{json}\n...\n# more\n{json}\n"),
                vec![format!("a.yaml:4: {read}")],
            ),
            (format!("{after}...\n{after}"), vec![format!("a.yaml:6: {read}")]),
            (format!("owner: team\n...\n{json}\n"), vec![format!("a.yaml:3: {read}")]),
            (format!("{after}...\n# end\n---\n{json}\n...\n"), vec![]),
            ("values: a\n...\nvalues: b\n".to_owned(), vec![]),
            (json.replace("kind", "knd"), vec![format!("a.yaml:1: {almost}")]),
            (
                "\"apiVersion\" : v1\n\"metadata\" : {}\n".to_owned(),
                vec![format!("a.yaml:1: {almost}")],
            ),
        ] {
            assert_eq!(notices(&text), expected, "{text}");
        }
    }

    #[test]
    fn every_rendered_document_must_be_a_manifest() {
        for text in ["replicas: 3\n", "metadata: {name: a}\n", "- a\n", "{{ if }}\n"] {
            assert!(
                rendered(file("templates/a.yaml", text), FieldValidation::Warn).is_err(),
                "{text}"
            );
        }
        for text in ["", "---\n# nothing\n---\n", "null\n"] {
            assert!(
                rendered(file("templates/a.yaml", text), FieldValidation::Warn)
                    .is_ok_and(|read| read.objects.is_empty()),
                "{text}"
            );
        }
    }

    #[test]
    fn flattens_lists_by_one_level() {
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n\
                    - {apiVersion: v1, kind: Pod, metadata: {name: b}}\n";
        assert_eq!(names("a.yaml", list), Ok(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(
            names("a.yaml", "{apiVersion: v1, kind: PodList, items: []}"),
            Ok(vec![])
        );
        assert_eq!(
            names("a.yaml", "{apiVersion: v1, kind: PodList, items: null}"),
            Ok(vec![])
        );
        assert_eq!(
            names(
                "a.yaml",
                "{apiVersion: v1, kind: List, items: [{apiVersion: v1, metadata: {name: a}}, text]}"
            ),
            Err(vec![
                "a.yaml:1: document 1, item 1: kind is missing".to_owned(),
                "a.yaml:1: document 1, item 2: it is text, not a Kubernetes object".to_owned(),
            ])
        );
    }

    #[test]
    fn json_file_contains_one_object() {
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}"#;
        assert_eq!(names("a.json", pod), Ok(vec!["a".to_owned()]));
        assert!(names("a.json", &format!("{pod}\n{pod}")).is_err());
        assert_eq!(
            names("a.json", "[1]"),
            Err(vec![
                "a.json:1: document 1: it is a list, not a Kubernetes object".to_owned()
            ])
        );
        assert!(names("package.json", r#"{"name": "x"}"#).is_err());
    }

    #[test]
    fn errors_name_the_object() {
        let two =
            "apiVersion: v1\nkind: Pod\nmetadata: {namespace: shop, name: 1}\n---\nkind: Pod\nmetadata: {name: b}\n";
        assert_eq!(
            names("a.yaml", two),
            Err(vec![
                "a.yaml:3: document 1: Pod: metadata.name is a number, not text: put it in quotes".to_owned(),
                "a.yaml:5: document 2: Pod b: apiVersion is missing".to_owned(),
            ])
        );
    }

    #[test]
    fn names_the_lines_of_fields() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespase: b\n---\napiVersion: v1\nkind: List\nitems:\n\
                    - apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: b}\n  data:\n    port: 8080\n";
        let refused = objects(file("a.yaml", text), FieldValidation::Strict).expect_err("two problems");
        assert_eq!(
            refused,
            [
                "a.yaml:5: document 1: ConfigMap a: metadata.namespase is not a field of Kubernetes metadata: did you mean namespace?",
                "a.yaml:14: document 2, item 1: ConfigMap b: data.port is a number, not text: put it in quotes",
            ]
        );
    }

    #[test]
    fn warns_of_what_strict_validation_refuses() {
        let text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dat: {}}";
        let read = |validation| objects(file("a.yaml", text), validation);
        let warned = read(FieldValidation::Warn).expect("one object");
        assert_eq!(warned.objects.len(), 1);
        let line =
            "a.yaml:1: document 1: ConfigMap a: dat is not a field of Kubernetes 1.29 to 1.37: correct or remove it";
        assert_eq!(warned.notices, [line]);
        assert_eq!(read(FieldValidation::Strict).expect_err("a problem"), [line]);
        let ignored = read(FieldValidation::Ignore).expect("one object");
        assert_eq!(ignored.notices, [""; 0]);
    }

    #[test]
    fn names_the_lines_of_fields_in_the_first_documents_only() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  x: b\n---\n".repeat(LOCATED_MAX + 1);
        let refused = objects(file("a.yaml", &text), FieldValidation::Warn).expect_err("problems");
        let line = |line: usize| format!("a.yaml:{line}: ");
        let last = refused.len() - 1;
        assert!(
            refused[last - 1].starts_with(&line((last - 1) * 6 + 5)),
            "{}",
            refused[last - 1]
        );
        assert!(refused[last].starts_with(&line(last * 6 + 1)), "{}", refused[last]);
    }
}
