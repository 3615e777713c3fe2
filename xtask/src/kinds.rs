//! Writes the custom kinds whose plural and scope `generate` knows, from folders with the CRDs of public operators.

use crate::root;
use anyhow::{Context, Result};
use manifest::kinds::{GroupKind, KnownCustom, Scope, custom_kinds};
use manifest::value::{Map, Value};
use manifest::yaml;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The file with the kinds, in the repository.
const FILE: &str = "crates/manifest/src/kinds/custom.txt";

/// The group and the name of a kind.
type KindName = (Box<str>, Box<str>);

/// The kinds by group and name.
type Kinds = BTreeMap<KindName, KnownCustom>;

/// Adds the kinds that the CRDs in the folders define, or replaces them, and writes the file.
pub(crate) fn run(folders: &[String]) -> Result<()> {
    let mut known_kinds = Kinds::new();
    let mut contradicted = Vec::new();
    for folder in folders {
        read_folder(Path::new(folder), &mut known_kinds, &mut contradicted)?;
    }
    let mut kinds: Kinds = custom_kinds()
        .map(|(kind, known)| ((kind.group, kind.kind), known))
        .collect();
    kinds.extend(known_kinds);
    for kind in contradicted {
        eprintln!(
            "{}.{}: left out, because its CRDs contradict each other",
            kind.1, kind.0
        );
        kinds.remove(&kind);
    }
    let path = root()?.join(FILE);
    std::fs::write(&path, format_kinds(&kinds)).with_context(|| format!("cannot write {}", path.display()))
}

fn read_folder(folder: &Path, kinds: &mut Kinds, contradicted: &mut Vec<KindName>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            read_folder(&path, kinds, contradicted)?;
            continue;
        }
        let extension = path
            .extension()
            .and_then(|extension| extension.to_str())
            .unwrap_or_default();
        if !["yaml", "yml", "json", "tpl"].contains(&extension) {
            continue;
        }
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        // Templates of charts are no YAML, but hardly any template has an action in the lines that count.
        let text: String = String::from_utf8_lossy(&text)
            .lines()
            .filter(|line| !line.contains("{{"))
            .flat_map(|line| [line, "\n"])
            .collect();
        for document in yaml::documents(&text) {
            let Ok(document) = document else {
                eprintln!("{}: not YAML", path.display());
                break;
            };
            for (kind, known) in definitions(&document.value) {
                match kinds.get(&kind) {
                    Some(other) if *other != known => contradicted.push(kind),
                    _ => drop(kinds.insert(kind, known)),
                }
            }
        }
    }
    Ok(())
}

/// Returns the kinds that a CRD, or each CRD in a list, defines.
fn definitions(value: &Value<'_>) -> Vec<(KindName, KnownCustom)> {
    let Some(fields) = value.as_map() else {
        return Vec::new();
    };
    match fields.get("items") {
        Some(Value::List(items)) => items.iter().flat_map(definitions).collect(),
        _ => definition(fields).into_iter().collect(),
    }
}

fn definition(fields: &Map<'_>) -> Option<(KindName, KnownCustom)> {
    if fields.get("kind")?.as_str()? != "CustomResourceDefinition" {
        return None;
    }
    let spec = fields.get("spec")?.as_map()?;
    let names = spec.get("names")?.as_map()?;
    let text = |fields: &Map<'_>, key| Some(Box::<str>::from(fields.get(key)?.as_str()?));
    let (group, kind) = (text(spec, "group")?, text(names, "kind")?);
    let is_sample = ["example", "test", "my.domain"].iter().any(|word| group.contains(word));
    let scope = match spec.get("scope").and_then(Value::as_str) {
        Some("Cluster") => Scope::Cluster,
        _ => Scope::Namespaced,
    };
    let plural = text(names, "plural")?.into_string().into();
    (!is_sample && is_name(&group) && is_name(&kind)).then_some(((group, kind), KnownCustom { plural, scope }))
}

/// Returns true if the text can be an API group or a kind.
fn is_name(text: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-');
    !text.is_empty() && text.chars().all(is_part)
}

/// Returns the text of the file: one line for each group.
fn format_kinds(kinds: &Kinds) -> String {
    let mut text = String::new();
    let mut last = "";
    for ((group, kind), KnownCustom { plural, scope }) in kinds {
        if last != &**group {
            text += if last.is_empty() { "" } else { "\n" };
            text += group;
            last = group;
        }
        let name = GroupKind {
            group: group.clone(),
            kind: kind.clone(),
        };
        let star = if *scope == Scope::Cluster { "*" } else { "" };
        let _ = write!(text, " {kind}{star}");
        if *plural != name.guessed_plural() {
            let _ = write!(text, "={plural}");
        }
    }
    text + "\n"
}
