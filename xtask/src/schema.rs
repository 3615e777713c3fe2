//! Writes the fields of Kubernetes' built-in kinds, which `generate` compares manifests with, from the `OpenAPI` documents
//! that Kubernetes publishes with each release.

use crate::{output, root};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The newest patch of each minor version in the file.
const RELEASES: [&str; 9] = [
    "1.29.15", "1.30.14", "1.31.14", "1.32.13", "1.33.9", "1.34.2", "1.35.5", "1.36.3", "1.37.0",
];

/// The file with the fields, in the repository.
const FILE: &str = "crates/generate/src/schema/kubernetes.txt";

/// Downloads the `OpenAPI` documents and writes the file.
pub(crate) fn run() -> Result<()> {
    let all = (minor(RELEASES[0])?, minor(RELEASES[RELEASES.len() - 1])?);
    let mut api = Api { all, ..Api::default() };
    for release in RELEASES {
        eprintln!("reading Kubernetes {release}");
        let document = open_api(release).with_context(|| format!("Kubernetes {release}"))?;
        api.add(minor(release)?, &document)?;
    }
    let path = root()?.join(FILE);
    std::fs::write(&path, api.format_schema()?).with_context(|| format!("cannot write {}", path.display()))
}

fn minor(release: &str) -> Result<u8> {
    let minor = release.split('.').nth(1).context("a release is MAJOR.MINOR.PATCH")?;
    Ok(minor.parse()?)
}

/// Returns the `OpenAPI` document of a release, from its Go module.
fn open_api(release: &str) -> Result<Value> {
    let module = format!("k8s.io/kubernetes@v{release}");
    let downloaded = output(Command::new("go").args(["mod", "download", "-json", &module]))?;
    let downloaded: Value = serde_json::from_str(&downloaded)?;
    let folder = downloaded["Dir"].as_str().context("go names no folder")?;
    let file = Path::new(folder).join("api/openapi-spec/swagger.json");
    let text = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(serde_json::from_slice(&text)?)
}

/// The first and the last minor version that have something.
type Range = (u8, u8);

/// A field: its type, and the versions that have it.
type Fields = BTreeMap<String, (String, Range)>;

/// The kinds and types of all releases.
#[derive(Default)]
struct Api {
    /// By `GROUP/VERSION KIND`.
    kinds: BTreeMap<String, (Fields, Range)>,
    types: BTreeMap<String, Fields>,
    /// The oldest and the newest release.
    all: Range,
}

impl Api {
    fn add(&mut self, version: u8, document: &Value) -> Result<()> {
        let definitions = document["definitions"].as_object().context("no definitions")?;
        for (name, definition) in definitions {
            let fields = fields(definition, definitions)?;
            for kind in kinds(definition) {
                let (known, range) = self
                    .kinds
                    .entry(kind)
                    .or_insert_with(|| (Fields::new(), (version, version)));
                range.1 = version;
                // Lists are split into their items, and their own fields are of no use.
                if definition["properties"]["items"].is_null() {
                    merge(known, &fields, version).with_context(|| name.clone())?;
                }
            }
            let known = self.types.entry(short(name)).or_default();
            merge(known, &fields, version).with_context(|| name.clone())?;
        }
        Ok(())
    }

    /// Returns the text of the file: the kinds, and the types that they use.
    fn format_schema(&self) -> Result<String> {
        let mut used = BTreeSet::new();
        let mut kinds = String::new();
        for (kind, (fields, range)) in &self.kinds {
            // Other checks cover these, and OCM does not apply the status.
            let of_all = ["apiVersion", "kind", "metadata", "status"];
            let fields: Fields = fields
                .iter()
                .filter(|(name, _)| !of_all.contains(&name.as_str()))
                .map(|(name, field)| (name.clone(), field.clone()))
                .collect();
            self.collect(&fields, &mut used);
            writeln!(kinds, "{kind}{}{}", self.versions(*range), self.line(&fields, *range))?;
        }
        let mut types = String::new();
        for name in used {
            let fields = &self.types[&name];
            let ranges = || fields.values().map(|(_, range)| *range);
            let range = (
                ranges().map(|range| range.0).min().unwrap_or_default(),
                ranges().map(|range| range.1).max().unwrap_or_default(),
            );
            writeln!(types, "{name}{}", self.line(fields, range))?;
        }
        let (oldest, newest) = self.all;
        Ok(format!("{oldest} {newest}\n{kinds}\n{types}"))
    }

    /// Adds the types that `fields` use, and the types that these use.
    fn collect(&self, fields: &Fields, used: &mut BTreeSet<String>) {
        for (of, _) in fields.values() {
            let name = of.trim_start_matches(['[', '{']);
            if let Some(inner) = self.types.get(name)
                && used.insert(name.to_owned())
            {
                self.collect(inner, used);
            }
        }
    }

    /// Returns the fields as text; versions that are those of the whole are left out.
    fn line(&self, fields: &Fields, whole: Range) -> String {
        let text = |(name, (of, range)): (&String, &(String, Range))| {
            let since = if range.0 == whole.0 { self.all.0 } else { range.0 };
            let until = if range.1 == whole.1 { self.all.1 } else { range.1 };
            format!(" {name}:{of}{}", self.versions((since, until)))
        };
        fields.iter().map(text).collect()
    }

    /// Returns the versions as text: `+31` for 1.31 and later, `-33` for 1.33 and earlier, and nothing for all.
    fn versions(&self, (since, until): Range) -> String {
        let mark = |mark, version, is_needed: bool| is_needed.then(|| format!("{mark}{version}"));
        let marks = [
            mark('+', since, since > self.all.0),
            mark('-', until, until < self.all.1),
        ];
        marks.into_iter().flatten().collect()
    }
}

/// Returns the kinds with a definition, as `GROUP/VERSION KIND`. Requests and events of every group are no manifests.
fn kinds(definition: &Value) -> impl Iterator<Item = String> {
    let kinds = definition["x-kubernetes-group-version-kind"].as_array();
    kinds.into_iter().flatten().filter_map(|value| {
        let [group, version, kind] = ["group", "version", "kind"].map(|key| value[key].as_str().unwrap_or_default());
        let separator = if group.is_empty() { "" } else { "/" };
        (!matches!(kind, "DeleteOptions" | "WatchEvent")).then(|| format!("{group}{separator}{version} {kind}"))
    })
}

fn fields(definition: &Value, definitions: &serde_json::Map<String, Value>) -> Result<BTreeMap<String, String>> {
    let properties = definition["properties"].as_object();
    let properties = properties.into_iter().flatten();
    properties
        .map(|(name, property)| Ok((name.clone(), type_of(property, definitions)?)))
        .collect()
}

/// Returns the type as text, in the format of generate's module `schema`.
fn type_of(property: &Value, definitions: &serde_json::Map<String, Value>) -> Result<String> {
    if let Some(reference) = property["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        let definition = definitions.get(name).with_context(|| format!("no definition {name}"))?;
        return match short(name).as_str() {
            "resource.Quantity" => Ok("quantity".to_owned()),
            name if definition["properties"].is_object() => Ok(name.to_owned()),
            _ => type_of(definition, definitions),
        };
    }
    Ok(match (property["type"].as_str(), property["format"].as_str()) {
        (Some("array"), _) => format!("[{}", type_of(&property["items"], definitions)?),
        (Some("object"), _) if property["additionalProperties"].is_object() => {
            format!("{{{}", type_of(&property["additionalProperties"], definitions)?)
        }
        (Some("object") | None, _) => "*".to_owned(),
        (Some("string"), Some("byte")) => "base64".to_owned(),
        (Some("string"), Some("int-or-string")) => "intOrString".to_owned(),
        (Some(other), _) => other.to_owned(),
    })
}

/// Returns the name of a definition without what all have in common: `apps.v1.Deployment` for `io.k8s.api.apps.v1.Deployment`.
fn short(name: &str) -> String {
    let name = name.strip_prefix("io.k8s.").unwrap_or(name);
    let after = |mark| name.split_once(mark).map(|(_, rest)| rest);
    let rest = after("pkg.apis.")
        .or_else(|| after("pkg.api."))
        .or_else(|| name.strip_prefix("api."));
    rest.unwrap_or(name).to_owned()
}

fn merge(known: &mut Fields, fields: &BTreeMap<String, String>, version: u8) -> Result<()> {
    for (name, of) in fields {
        let (known, range) = known
            .entry(name.clone())
            .or_insert_with(|| (of.clone(), (version, version)));
        ensure!(
            known == of,
            "{name} was {known} and is {of} in 1.{version}: the file cannot say that"
        );
        range.1 = version;
    }
    Ok(())
}
