//! Compares manifests with the kinds and fields that Kubernetes has, as `kubectl --validate` does, but without an API server.
//!
//! OCM's agent applies without strict validation: an API server drops an unknown field silently, and refuses a value of the wrong
//! type only on the cluster. The kinds and fields come from the `OpenAPI` documents of several minor versions of Kubernetes, which
//! `cargo xtask schema` writes to `schema/kubernetes.txt`, because the versions of the clusters are unknown here. Custom resources
//! are not checked. Nor are the values of enumerations, the presence of required fields, `status`, and `metadata` of the object
//! itself, which [`canonical`](super::canonical) checks.
//!
//! The first line of the file has the oldest and the newest minor version. Then follow the kinds, an empty line, and the types that
//! they use, each sorted and with its fields:
//!
//! ```text
//! apps/v1 Deployment spec:apps.v1.DeploymentSpec
//! core.v1.PodOS name:string
//! ```
//!
//! `[` is a list and `{` a mapping of what follows, and `*` is anything. `+31` behind a kind or field means that only 1.31 and newer
//! have it, and `-33` that only 1.33 and older have it.

use super::object::wrong_type;
use super::similar::similar;
use manifest::kinds::{BUILT_IN, built_in};
use manifest::text::decode_base64;
use manifest::value::{Map, Value};
use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, OnceLock};

/// The handling of objects that do not match Kubernetes' kinds and fields, as in `kubectl --validate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Errors for what no supported Kubernetes accepts, and warnings for what only some versions know.
    Strict,
    /// Warnings.
    #[default]
    Warn,
    /// No check.
    Ignore,
}

impl FromStr for FieldValidation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        // The synonyms are kubectl's.
        match name {
            "strict" | "true" => Ok(Self::Strict),
            "warn" => Ok(Self::Warn),
            "ignore" | "false" => Ok(Self::Ignore),
            _ => Err(format!(
                "{name:?} is not a way of validation: set strict, warn or ignore"
            )),
        }
    }
}

/// A difference between an object and Kubernetes' kinds and fields.
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaFinding {
    /// The path of the field, such as `spec.ports[0].port`.
    pub path: String,
    /// The description, and what to do.
    pub message: String,
    /// True if no supported version of Kubernetes accepts it.
    pub refused: bool,
}

/// The maximum number of findings of an object; the others are counted.
const FINDINGS_MAX: usize = 10;

/// Compares an object, with its `apiVersion` and `kind`, with the kinds and fields that Kubernetes has.
pub fn check(object: &Map<'_>) -> Vec<SchemaFinding> {
    let text = |name| object.get(name).and_then(Value::as_str);
    let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else {
        return Vec::new();
    };
    let schema = &*SCHEMA;
    let mut findings = Findings::default();
    match schema.kind(api_version, kind) {
        Some(line) => {
            if let Some(range) = line.versions.range() {
                findings.add(ValuePath::Key(&ValuePath::Root, "apiVersion"), false, || {
                    format!("only Kubernetes {range} has {api_version} {kind}: other clusters refuse it")
                });
            }
            schema.fields(line, object, ValuePath::Root, &mut findings);
        }
        None if group(api_version) == "work.open-cluster-management.io" => {
            findings.add(ValuePath::Key(&ValuePath::Root, "kind"), false, || {
                format!("the cluster must be a hub of OCM itself, because only hubs have {kind}: otherwise remove it")
            });
        }
        None => schema.unknown_kind(api_version, kind, &mut findings),
    }
    findings.done()
}

/// Returns the names of the fields of a kind, with those of every object; `None` if the kind is not one of Kubernetes. A version that
/// Kubernetes does not have is taken to have the fields of all others.
pub(super) fn fields_of(api_version: &str, kind: &str) -> Option<Vec<&'static str>> {
    let group = group(api_version);
    let lines: Vec<&SchemaLine> = match SCHEMA.kind(api_version, kind) {
        Some(line) => vec![line],
        None if built_in(group, kind).is_some() => {
            let lines = SCHEMA.kinds.iter();
            lines
                .filter(|line| line.name == kind && line.group() == group)
                .collect()
        }
        None => return None,
    };
    // Kinds of groups that Kubernetes has removed.
    let spec = lines.is_empty().then_some("spec");
    let own_fields = lines.into_iter().flat_map(|line| SCHEMA.parsed(line));
    let own_fields = own_fields.map(|field| field.name).chain(spec);
    Some(own_fields.chain(["apiVersion", "kind", "metadata"]).collect())
}

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::new(include_str!("schema/kubernetes.txt")));

/// The kinds and fields of Kubernetes. Lines are parsed when first used: most manifests need few of them.
struct Schema {
    /// The oldest and the newest minor version.
    range: (u8, u8),
    kinds: Vec<SchemaLine>,
    types: Vec<SchemaLine>,
}

/// A line of the file: a kind or a type.
struct SchemaLine {
    /// The API version, such as `apps/v1`, if it is a kind.
    api_version: &'static str,
    /// The name of the kind or type.
    name: &'static str,
    versions: Versions,
    text: &'static str,
    fields: OnceLock<Vec<SchemaField>>,
}

/// The first and the last minor version, where they are not those of the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Versions {
    since: Option<u8>,
    until: Option<u8>,
}

impl Versions {
    /// Returns the versions, for messages, if they are not those of the schema.
    fn range(self) -> Option<String> {
        match (self.since, self.until) {
            (None, None) => None,
            (Some(since), None) => Some(format!("1.{since} and newer")),
            (None, Some(until)) => Some(format!("1.{until} and older")),
            (Some(since), Some(until)) if since == until => Some(format!("1.{since}")),
            (Some(since), Some(until)) => Some(format!("1.{since} to 1.{until}")),
        }
    }
}

struct SchemaField {
    name: &'static str,
    versions: Versions,
    of: Type,
}

enum Type {
    Any,
    Boolean,
    Integer,
    Number,
    Text,
    Base64,
    IntOrString,
    Quantity,
    List(Box<Type>),
    Map(Box<Type>),
    /// The index of a line in [`Schema::types`].
    Fields(usize),
}

impl Schema {
    fn new(text: &'static str) -> Self {
        let (range, rest) = text.split_once('\n').expect("the versions are on the first line");
        let (oldest, newest) = range.split_once(' ').expect("two versions");
        let minor = |text: &str| text.parse().expect("a minor version");
        let (kinds, types) = rest.split_once("\n\n").expect("the types follow the kinds");
        Self {
            range: (minor(oldest), minor(newest)),
            kinds: kinds.lines().map(SchemaLine::of_kind).collect(),
            types: types.lines().map(|line| SchemaLine::new("", line)).collect(),
        }
    }

    fn kind(&self, api_version: &str, kind: &str) -> Option<&SchemaLine> {
        // The file is in the order of the bytes, and a space sorts before all other characters of names.
        let at = self
            .kinds
            .binary_search_by(|line| (line.api_version, line.name).cmp(&(api_version, kind)));
        at.ok().map(|at| &self.kinds[at])
    }

    fn line_of_type(&self, name: &str) -> usize {
        let at = self.types.binary_search_by(|line| line.name.cmp(name));
        at.expect("the file has all types that it uses")
    }

    fn parsed<'s>(&'s self, line: &'s SchemaLine) -> &'s [SchemaField] {
        line.fields.get_or_init(|| {
            let field = |text: &'static str| {
                let (name, of) = text.split_once(':').expect("a field has a type");
                let (of, versions) = with_versions(of);
                let of = self.type_of(of);
                SchemaField { name, versions, of }
            };
            line.text.split_ascii_whitespace().map(field).collect()
        })
    }

    fn type_of(&self, text: &str) -> Type {
        match text {
            "*" => Type::Any,
            "boolean" => Type::Boolean,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "string" => Type::Text,
            "base64" => Type::Base64,
            "intOrString" => Type::IntOrString,
            "quantity" => Type::Quantity,
            _ => match text.split_at(1) {
                ("[", of) => Type::List(Box::new(self.type_of(of))),
                ("{", of) => Type::Map(Box::new(self.type_of(of))),
                _ => Type::Fields(self.line_of_type(text)),
            },
        }
    }

    /// Compares the entries of a mapping with fields. Both are sorted.
    fn fields(&self, line: &SchemaLine, entries: &Map<'_>, path: ValuePath<'_>, findings: &mut Findings) {
        let fields = self.parsed(line);
        let is_root = matches!(path, ValuePath::Root);
        let mut rest = fields.iter().peekable();
        for (key, value) in entries.iter() {
            if *value == Value::Null || (is_root && matches!(key, "apiVersion" | "kind" | "metadata" | "status")) {
                continue;
            }
            while rest.next_if(|field| field.name < key).is_some() {}
            let path = ValuePath::Key(&path, key);
            let Some(field) = rest.next_if(|field| field.name == key) else {
                findings.add(path, true, || {
                    let remedy = remedy(key, fields.iter().map(|field| field.name));
                    format!("{path} is not a field of Kubernetes {}: {remedy}", self.all())
                });
                continue;
            };
            if let Some(range) = field.versions.range() {
                findings.add(path, false, || {
                    format!("only Kubernetes {range} has {path}: other clusters drop it silently")
                });
            }
            self.validate_value(&field.of, value, path, findings);
        }
    }

    fn validate_value(&self, of: &Type, value: &Value<'_>, path: ValuePath<'_>, findings: &mut Findings) {
        let wanted = match (of, value) {
            (Type::Any, _)
            | (_, Value::Null)
            | (Type::Boolean, Value::Bool(_))
            | (Type::Integer | Type::Number | Type::IntOrString | Type::Quantity, Value::Int(_))
            | (Type::Number | Type::Quantity, Value::Float(_))
            | (Type::Text | Type::IntOrString | Type::Quantity, Value::String(_)) => return,
            (Type::Integer, Value::Float(number)) if number.fract() == 0.0 => return,
            (Type::Base64, Value::String(text)) => {
                if decode_base64(text).is_none() {
                    findings.add(path, true, || {
                        format!("{path} is not base64: encode it, or use stringData of a Secret")
                    });
                }
                return;
            }
            (Type::List(of), Value::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.validate_value(of, item, ValuePath::Item(&path, at), findings);
                }
                return;
            }
            (Type::Map(of), Value::Map(entries)) => {
                for (key, value) in entries.iter() {
                    self.validate_value(of, value, ValuePath::Key(&path, key), findings);
                }
                return;
            }
            (Type::Fields(line), Value::Map(entries)) => {
                self.fields(&self.types[*line], entries, path, findings);
                return;
            }
            (Type::Boolean, _) => "true or false",
            (Type::Integer, Value::Float(_)) => "an integer",
            (Type::Integer | Type::Number, _) => "a number",
            (Type::Text | Type::Base64, _) => "text",
            (Type::IntOrString | Type::Quantity, _) => "a number or text",
            (Type::List(_), _) => "a list",
            (Type::Map(_) | Type::Fields(_), _) => "a mapping",
        };
        findings.add(path, true, || wrong_type(&path.to_string(), value, wanted).to_string());
    }

    /// Adds the finding of a kind that is not in the file, unless its group is not one of Kubernetes.
    fn unknown_kind(&self, api_version: &str, kind: &str, findings: &mut Findings) {
        let group = group(api_version);
        let of_group = || self.kinds.iter().filter(|line| line.group() == group);
        if of_group().next().is_none() && BUILT_IN.iter().all(|known| known.group != group) {
            return;
        }
        let same_kind = || self.kinds.iter().filter(|line| line.name == kind);
        let mut served: Vec<&str> = same_kind()
            .filter(|line| line.group() == group)
            .map(|line| line.api_version)
            .collect();
        if served.is_empty() {
            served = same_kind().map(|line| line.api_version).collect();
        }
        let (path, remedy) = if served.is_empty() {
            ("kind", remedy(kind, of_group().map(|line| line.name)))
        } else {
            ("apiVersion", format!("use {}", served.join(" or ")))
        };
        findings.add(ValuePath::Key(&ValuePath::Root, path), true, || {
            format!("Kubernetes {} has no {api_version} {kind}: {remedy}", self.all())
        });
    }

    /// Returns the versions, for messages.
    fn all(&self) -> String {
        format!("1.{} to 1.{}", self.range.0, self.range.1)
    }
}

impl SchemaLine {
    fn of_kind(line: &'static str) -> Self {
        let (api_version, line) = line.split_once(' ').expect("the kind follows its API version");
        Self::new(api_version, line)
    }

    fn new(api_version: &'static str, line: &'static str) -> Self {
        let (name, text) = line.split_at(line.find(' ').unwrap_or(line.len()));
        let (name, versions) = with_versions(name);
        Self {
            api_version,
            name,
            versions,
            text,
            fields: OnceLock::new(),
        }
    }

    fn group(&self) -> &'static str {
        group(self.api_version)
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Splits a name or type from the versions that follow it.
fn with_versions(text: &'static str) -> (&'static str, Versions) {
    let end = text.find(['+', '-']).unwrap_or(text.len());
    let (name, versions) = text.split_at(end);
    let number = |mark| {
        let (_, rest) = versions.split_once(mark)?;
        rest.split(['+', '-']).next()?.parse().ok()
    };
    let versions = Versions {
        since: number('+'),
        until: number('-'),
    };
    (name, versions)
}

/// Returns what to do about a name that is none of the candidates.
pub(super) fn remedy<'c>(name: &str, candidates: impl Iterator<Item = &'c str> + Clone) -> String {
    let same = candidates
        .clone()
        .find(|candidate| candidate.eq_ignore_ascii_case(name));
    let meant = same.or_else(|| similar(name, candidates));
    meant.map_or("correct or remove it".to_owned(), |name| {
        format!("did you mean {name}?")
    })
}

/// The position of a value in an object. It is text only when something is found.
#[derive(Clone, Copy)]
enum ValuePath<'p> {
    Root,
    Key(&'p ValuePath<'p>, &'p str),
    Item(&'p ValuePath<'p>, usize),
}

/// The number of characters of a key that messages show.
const SHOWN_MAX: usize = 100;

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValuePath::Root => Ok(()),
            ValuePath::Key(parent, key) => {
                let dot = if matches!(parent, ValuePath::Root) { "" } else { "." };
                match key.char_indices().nth(SHOWN_MAX) {
                    Some((end, _)) => write!(f, "{parent}{dot}{}…", &key[..end]),
                    None => write!(f, "{parent}{dot}{key}"),
                }
            }
            ValuePath::Item(parent, at) => write!(f, "{parent}[{at}]"),
        }
    }
}

#[derive(Default)]
struct Findings {
    some: Vec<SchemaFinding>,
    more: usize,
}

impl Findings {
    fn add(&mut self, path: ValuePath<'_>, refused: bool, message: impl FnOnce() -> String) {
        if self.some.len() < FINDINGS_MAX {
            self.some.push(SchemaFinding {
                path: path.to_string(),
                message: message(),
                refused,
            });
        } else {
            self.more += 1;
        }
    }

    fn done(mut self) -> Vec<SchemaFinding> {
        if self.more > 0 {
            self.some.push(SchemaFinding {
                path: String::new(),
                message: format!("{} more values do not match Kubernetes {}", self.more, SCHEMA.all()),
                refused: false,
            });
        }
        self.some
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::tests::fields;
    use crate::settings::SETTINGS;

    fn findings(text: &str) -> Vec<SchemaFinding> {
        check(&fields(text))
    }

    fn messages(text: &str) -> Vec<String> {
        findings(text).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn every_line_of_the_file_is_valid() {
        assert!(SCHEMA.kinds.is_sorted_by_key(|line| (line.api_version, line.name)));
        assert!(SCHEMA.types.is_sorted_by_key(|line| line.name));
        for line in SCHEMA.kinds.iter().chain(&SCHEMA.types) {
            assert!(
                SCHEMA.parsed(line).is_sorted_by_key(|field| field.name),
                "{}",
                line.name
            );
        }
    }

    #[test]
    fn setting_describes_the_versions() {
        let setting = SETTINGS.iter().find(|setting| setting.name == "validate");
        assert!(setting.is_some_and(|setting| setting.about.contains(&SCHEMA.all())));
    }

    #[test]
    fn accepts_what_kubernetes_accepts() {
        for text in [
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3.0, template: {spec: {containers: [{name: a, \
             ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: http}}, resources: {limits: {cpu: 0.5, memory: 1Gi}}}]}}}}",
            "{apiVersion: v1, kind: Secret, data: {a: \"aGVs\\nbG8=\", b: null}, stringData: {c: d}}",
            "{apiVersion: v1, kind: Service, spec: {ports: [{port: 80, targetPort: http}, {port: 81, targetPort: 8080}]}, status: {x: 1}}",
            "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{schema: {openAPIV3Schema: {type: \
             object, properties: {a: {default: {b: 1}, items: {type: string}, additionalProperties: false}}}}}]}}",
            "{apiVersion: cert-manager.io/v1, kind: Certificate, spec: {anything: 1}}",
            "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, spec: {anything: 1}}",
        ] {
            assert_eq!(messages(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn finds_unknown_fields_and_what_they_mean() {
        let table = "
            apps/v1, kind: Deployment, spec: {replica: 3} => spec.replica ...: did you mean replicas?
            v1, kind: Pod, spec: {containers: [{name: a}, {imagepullpolicy: Always}]} => spec.containers[1].imagepullpolicy ...: did you mean imagePullPolicy?
            v1, kind: ConfigMap, spec: {} => spec ...: correct or remove it
            apps/v1, kind: Deployment, spec: {template: {metadata: {label: {}}}} => spec.template.metadata.label ...: correct or remove it";
        for (fields, expected) in testing::rows(table) {
            let expected = SchemaFinding {
                path: expected.split(' ').next().expect("a path").to_owned(),
                message: expected.replace("...", "is not a field of Kubernetes 1.29 to 1.37"),
                refused: true,
            };
            assert_eq!(findings(&format!("{{apiVersion: {fields}}}")), [expected]);
        }
    }

    #[test]
    fn finds_values_of_the_wrong_type() {
        let table = "
            {apiVersion: v1, kind: ConfigMap, data: {port: 8080}} => data.port is a number, not text: put it in quotes
            {apiVersion: v1, kind: Pod, spec: {containers: [{env: [{name: a, value: true}]}]}} => spec.containers[0].env[0].value is true or false, not text: put it in quotes
            {apiVersion: apps/v1, kind: Deployment, spec: {replicas: '3'}} => spec.replicas is text, not a number
            {apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1.5}} => spec.replicas is a number, not an integer
            {apiVersion: v1, kind: Service, spec: {ports: {port: 80}}} => spec.ports is a mapping, not a list
            {apiVersion: v1, kind: Service, spec: {ports: [{targetPort: [80]}]}} => spec.ports[0].targetPort is a list, not a number or text
            {apiVersion: v1, kind: Secret, data: {password: not base64}} => data.password is not base64: encode it, or use stringData of a Secret";
        for (text, message) in testing::rows(table) {
            assert_eq!(messages(text), [message]);
            assert!(findings(text)[0].refused);
        }
    }

    #[test]
    fn finds_unknown_kinds_of_kubernetes() {
        for (kind, path, message) in [
            (
                "apiVersion: apps/v1, kind: Deploymnt",
                "kind",
                "Kubernetes 1.29 to 1.37 has no apps/v1 Deploymnt: did you mean Deployment?",
            ),
            (
                "apiVersion: v1, kind: Deployment",
                "apiVersion",
                "Kubernetes 1.29 to 1.37 has no v1 Deployment: use apps/v1",
            ),
            (
                "apiVersion: extensions/v1beta1, kind: Ingress",
                "apiVersion",
                "Kubernetes 1.29 to 1.37 has no extensions/v1beta1 Ingress: use networking.k8s.io/v1",
            ),
            (
                "apiVersion: policy/v1beta1, kind: PodSecurityPolicy",
                "kind",
                "Kubernetes 1.29 to 1.37 has no policy/v1beta1 PodSecurityPolicy: correct or remove it",
            ),
        ] {
            let findings = findings(&format!("{{{kind}}}"));
            assert_eq!((&*findings[0].path, &*findings[0].message), (path, message));
        }
    }

    #[test]
    fn warns_of_what_only_some_versions_have() {
        let of_new_kinds = findings("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy}");
        assert_eq!(
            of_new_kinds[0].message,
            "only Kubernetes 1.30 and newer has admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy: other clusters refuse it"
        );
        assert!(!of_new_kinds[0].refused);
        let of_new_fields = "{apiVersion: v1, kind: Pod, spec: {hostnameOverride: a}}";
        assert_eq!(
            messages(of_new_fields),
            ["only Kubernetes 1.34 and newer has spec.hostnameOverride: other clusters drop it silently"]
        );
        let work = findings("{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork}");
        assert!(work.len() == 1 && !work[0].refused, "{work:?}");
    }

    #[test]
    fn shortens_long_keys() {
        let long = "k".repeat(1_000_000);
        let messages = messages(&format!("{{apiVersion: v1, kind: ConfigMap, data: {{? {long} : 1}}}}"));
        let shown = &long[..SHOWN_MAX];
        assert_eq!(
            messages,
            [format!("data.{shown}… is a number, not text: put it in quotes")]
        );
    }

    #[test]
    fn counts_further_findings() {
        let data: Vec<String> = (0..1000).map(|n| format!("k{n}: {n}")).collect();
        let messages = messages(&format!(
            "{{apiVersion: v1, kind: ConfigMap, data: {{{}}}}}",
            data.join(", ")
        ));
        assert_eq!(messages.len(), FINDINGS_MAX + 1);
        assert_eq!(
            messages[FINDINGS_MAX],
            "990 more values do not match Kubernetes 1.29 to 1.37"
        );
    }
}
