//! Checks a kustomization, and its bases, before kustomize reads them.
//!
//! kustomize restricts files to the folder of a kustomization by default, and restricts nothing else. Folders may be anywhere on
//! the machine, and every name of a file or folder may be an address to fetch. So this module checks every field that names a
//! file or folder: the target must be in the repository, or be an address that the administrator allows.
//!
//! Names are interpreted as kustomize does: field names ignore case, as in Go's `encoding/json`; paths are joined lexically
//! before links are followed; generators and transformers may be inline, in a file, or in a folder. A kustomization that cannot
//! be parsed here is refused.

use super::bounds::{self, Repository, Target, check_for_helm, joined, unfit_for_helm};
use super::chart;
use super::helm::{is_release_name, is_word};
use super::kustomize::FILES;
use super::remote::{Remotes, begins_with_a_server, is_remote_base, is_url, starts_as_remote};
use manifest::value::{Map, Value};
use manifest::yaml;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The maximum size of a file: many times what people write.
const SIZE: u64 = 16 << 20;

/// The maximum depth of kustomizations that build on one another.
const DEPTH: usize = 100;

/// The fields allowed in a kustomization that supplies generators or transformers: those that cannot change the files that these
/// name.
const PLAIN: [&str; 5] = ["apiversion", "kind", "metadata", "resources", "bases"];

/// kustomize's own generators and transformers that name no file.
const WITHOUT_FILES: [&str; 10] = [
    "AnnotationsTransformer",
    "HashTransformer",
    "IAMPolicyGenerator",
    "ImageTagTransformer",
    "LabelTransformer",
    "NamespaceTransformer",
    "PrefixSuffixTransformer",
    "PrefixTransformer",
    "ReplicaCountTransformer",
    "SuffixTransformer",
];

/// kustomize's own generators and transformers that name files.
const WITH_FILES: [&str; 8] = [
    "ConfigMapGenerator",
    "HelmChartInflationGenerator",
    "PatchJson6902Transformer",
    "PatchStrategicMergeTransformer",
    "PatchTransformer",
    "ReplacementTransformer",
    "SecretGenerator",
    "ValueAddTransformer",
];

/// Returns the problems of the kustomization in `folder` and of its bases, one line each: names that lead kustomize out of the
/// repository or to an address that is not allowed.
pub(super) fn problems(folder: &Path, repository: &Repository, remotes: &Remotes) -> Vec<String> {
    let mut walk = Walk {
        repository,
        remotes,
        visited: HashSet::new(),
        depth: 0,
        problems: Vec::new(),
    };
    match repository.follow(folder) {
        Ok(Target::Folder(folder)) => walk.folder(&folder, Purpose::Objects),
        // kustomize reports that the folder is missing.
        Ok(_) => {}
        Err(why) => walk.problems.push(format!("{}: {why}", repository.shown(folder))),
    }
    walk.problems
}

/// The use of the objects in a folder or file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Purpose {
    /// They are output.
    Objects,
    /// They configure generators or transformers, and so name files themselves.
    Plugins,
}

struct Walk<'a> {
    repository: &'a Repository,
    remotes: &'a Remotes,
    visited: HashSet<(PathBuf, Purpose)>,
    /// The number of kustomizations that lead to the current one.
    depth: usize,
    problems: Vec<String>,
}

/// A mapping in a file, and the base of its relative paths.
#[derive(Clone, Copy)]
struct Location<'p> {
    folder: &'p Path,
    /// The file and the field, for messages.
    shown: &'p str,
}

impl Walk<'_> {
    fn refuse(&mut self, shown: &str, why: &str) {
        let line = format!("{shown}: {why}");
        if !self.problems.contains(&line) {
            self.problems.push(line);
        }
    }

    /// Checks the kustomization in a folder.
    fn folder(&mut self, folder: &Path, purpose: Purpose) {
        if !self.visited.insert((folder.to_owned(), purpose)) {
            return;
        }
        if self.depth == DEPTH {
            let shown = self.repository.shown(folder);
            self.refuse(
                &shown,
                &format!("more than {DEPTH} kustomizations build on one another: leave some out"),
            );
            return;
        }
        self.depth += 1;
        for name in FILES {
            let path = folder.join(name);
            let shown = self.repository.shown(&path);
            match self.repository.follow(&path) {
                Ok(Target::File(file)) => {
                    let Some(text) = self.read(&file, &shown) else { continue };
                    self.documents(&text, &shown, |walk, value| {
                        if let Value::Map(fields) = value {
                            walk.kustomization(fields, Location { folder, shown: &shown }, purpose);
                        }
                    });
                }
                Ok(_) => {}
                Err(why) => self.refuse(&shown, &why),
            }
        }
        self.depth -= 1;
    }

    fn read(&mut self, file: &Path, shown: &str) -> Option<String> {
        let text = bounds::read(file, SIZE)
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8: save it as UTF-8".to_owned()));
        text.map_err(|why| self.refuse(shown, &why)).ok()
    }

    /// Parses all documents of a text; kustomize reads the first or all.
    fn documents(&mut self, text: &str, shown: &str, mut each: impl FnMut(&mut Self, &Value<'_>)) {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        // The first line makes it YAML even if it begins like JSON; kustomize always reads YAML.
        let text = format!("#\n{text}\n");
        for document in yaml::documents(&text) {
            match document {
                Ok(document) => each(self, &document.value),
                Err(error) => {
                    let line = error.line.saturating_sub(1);
                    self.refuse(&format!("{shown}:{line}"), &error.message);
                }
            }
        }
    }

    fn kustomization(&mut self, fields: &Map<'_>, location: Location<'_>, purpose: Purpose) {
        let fields = self.fields(fields, location);
        let home = chart_home(&fields);
        for Field { name, folded, value } in &fields {
            let shown = format!("{}: {name}", location.shown);
            let at = Location {
                shown: &shown,
                ..location
            };
            if purpose == Purpose::Plugins && !PLAIN.contains(&folded.as_str()) {
                self.refuse(
                    &shown,
                    "a kustomization of generators, transformers or validators can only list resources, because its changes to them \
                     cannot be checked: list their files instead",
                );
                continue;
            }
            match folded.as_str() {
                "resources" | "bases" | "components" => {
                    self.each(value, at, |walk, name, at| walk.base(name, at, purpose));
                }
                "generators" | "transformers" | "validators" => self.each(value, at, Self::plugin_source),
                "crds" | "configurations" => self.each(value, at, Self::file),
                "patchesstrategicmerge" => self.each(value, at, Self::file_or_text),
                "patches" | "patchesjson6902" | "replacements" => self.maps(value, at, Self::with_path),
                "openapi" => self.map(value, at, Self::with_path),
                "configmapgenerator" | "secretgenerator" => self.maps(value, at, Self::key_values),
                "helmglobals" => self.map(value, at, Self::helm_globals),
                "helmcharts" => self.maps(value, at, |walk, fields, at| walk.helm_chart(fields, home, at)),
                "helmchartinflationgenerator" => {
                    self.maps(value, at, Self::helm_globals);
                    self.maps(value, at, |walk, fields, at| walk.helm_chart(fields, home, at));
                }
                _ => {}
            }
        }
    }

    /// Returns the fields of a mapping under the names that Go's `encoding/json` maps them to.
    fn fields<'v>(&mut self, fields: &'v Map<'v>, location: Location<'_>) -> Vec<Field<'v>> {
        let fields: Vec<Field<'_>> = fields
            .iter()
            .map(|(name, value)| Field {
                name,
                folded: folded(name),
                value,
            })
            .collect();
        let mut names: Vec<&str> = fields.iter().map(|field| field.folded.as_str()).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            self.refuse(
                location.shown,
                "a field occurs twice, in upper and lower case: keep one",
            );
        }
        fields
    }

    /// Visits each string of a list.
    fn each(
        &mut self,
        value: &Value<'_>,
        location: Location<'_>,
        mut visit: impl FnMut(&mut Self, &str, Location<'_>),
    ) {
        if let Value::List(items) = value {
            for (at, item) in items.iter().enumerate() {
                if let Value::String(text) = item {
                    let shown = format!("{}[{at}]", location.shown);
                    visit(
                        self,
                        text,
                        Location {
                            shown: &shown,
                            ..location
                        },
                    );
                }
            }
        }
    }

    /// Visits each mapping of a list.
    fn maps(
        &mut self,
        value: &Value<'_>,
        location: Location<'_>,
        mut visit: impl FnMut(&mut Self, &[Field<'_>], Location<'_>),
    ) {
        if let Value::List(items) = value {
            for (at, item) in items.iter().enumerate() {
                let shown = format!("{}[{at}]", location.shown);
                self.map(
                    item,
                    Location {
                        shown: &shown,
                        ..location
                    },
                    &mut visit,
                );
            }
        }
    }

    fn map(
        &mut self,
        value: &Value<'_>,
        location: Location<'_>,
        mut visit: impl FnMut(&mut Self, &[Field<'_>], Location<'_>),
    ) {
        if let Value::Map(fields) = value {
            let fields = self.fields(fields, location);
            visit(self, &fields, location);
        }
    }

    /// Checks the name of a file: kustomize fetches it if it is a URL.
    fn file(&mut self, name: &str, location: Location<'_>) {
        if is_url(name) {
            self.address(name, location);
        } else {
            self.path(name, location);
        }
    }

    /// Checks an address on the network.
    fn address(&mut self, address: &str, location: Location<'_>) {
        if !self.remotes.allow(address) {
            let why = format!("kustomize would fetch it from the network: {}", Remotes::remedy());
            self.refuse(location.shown, &why);
        }
    }

    /// Checks a path, and returns its target.
    fn path(&mut self, name: &str, location: Location<'_>) -> Target {
        if name.starts_with('/') {
            self.refuse(
                location.shown,
                "it is an absolute path: write it relative to the kustomization",
            );
            return Target::Nothing;
        }
        let found = self.repository.follow(&joined(location.folder, name));
        found.unwrap_or_else(|why| {
            self.refuse(location.shown, &why);
            Target::Nothing
        })
    }

    /// Checks the name of a file or folder with objects.
    fn base(&mut self, name: &str, location: Location<'_>, purpose: Purpose) {
        if is_remote_base(name) {
            if !self.remotes.allow(name) {
                let why = format!(
                    "kustomize would fetch it from the network: {}; a folder of this repository that is named like a server is \
                     written with './' in front",
                    Remotes::remedy()
                );
                self.refuse(location.shown, &why);
            }
            return;
        }
        // It depends on the version of kustomize whether it fetches a missing path. kustomize itself reports a missing file.
        if !self.local(name, location, purpose) && begins_with_a_server(name) {
            self.address(name, location);
        }
    }

    /// Checks a path to a file or folder with objects. Returns false if nothing exists there.
    fn local(&mut self, name: &str, location: Location<'_>, purpose: Purpose) -> bool {
        match self.path(name, location) {
            Target::Folder(folder) => self.folder(&folder, purpose),
            Target::File(file) if purpose == Purpose::Plugins => self.plugin_file(&file, location),
            Target::File(_) => {}
            Target::Nothing => return false,
        }
        true
    }

    /// Checks a value that is inline text or, if kustomize cannot parse it, the name of a file.
    fn file_or_text(&mut self, text: &str, location: Location<'_>) {
        if starts_as_remote(text) {
            self.address(text, location);
        } else {
            self.path(text, location);
        }
    }

    /// Checks a value that is an inline generator or transformer, or the name of a file or folder with some.
    fn plugin_source(&mut self, text: &str, location: Location<'_>) {
        if starts_as_remote(text) {
            self.address(text, location);
            return;
        }
        let known = self.problems.len();
        let mut is_text = false;
        self.documents(text, location.shown, |walk, value| {
            if !matches!(value, Value::String(_)) {
                is_text = true;
                walk.plugin(value, location);
            }
        });
        if is_text {
            // If kustomize finds no object in it, it treats the text as a path.
            self.local(text, location, Purpose::Plugins);
        } else {
            if !text.contains(['\n', '{', ':']) {
                // A name that is not YAML.
                self.problems.truncate(known);
            }
            self.base(text, location, Purpose::Plugins);
        }
    }

    fn plugin_file(&mut self, file: &Path, location: Location<'_>) {
        let shown = self.repository.shown(file);
        if self.visited.insert((file.to_owned(), Purpose::Plugins))
            && let Some(text) = self.read(file, &shown)
        {
            let folder = location.folder;
            self.documents(&text, &shown, |walk, value| {
                walk.plugin(value, Location { folder, shown: &shown });
            });
        }
    }

    /// Checks the configuration of a generator or transformer.
    fn plugin(&mut self, value: &Value<'_>, location: Location<'_>) {
        let Value::Map(fields) = value else { return };
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = text("kind");
        if kind.ends_with("List")
            && let Some(Value::List(items)) = fields.get("items")
        {
            for item in items {
                self.plugin(item, location);
            }
        }
        let is_known = WITHOUT_FILES.contains(&kind) || WITH_FILES.contains(&kind);
        if text("apiVersion") == "builtin" && !is_known {
            self.refuse(
                location.shown,
                "its kind is not known, so what it reads cannot be checked: use one of kustomize's own generators and transformers",
            );
        }
        let fields = self.fields(fields, location);
        self.key_values(&fields, location);
        self.with_path(&fields, location);
        for Field { name, folded, value } in &fields {
            let shown = format!("{}: {name}", location.shown);
            let at = Location {
                shown: &shown,
                ..location
            };
            match (folded.as_str(), value) {
                ("paths", value) => self.each(value, at, Self::file_or_text),
                ("replacements", value) => self.maps(value, at, Self::with_path),
                ("targetfilepath", Value::String(name)) => self.file(name, at),
                _ => {}
            }
        }
        if kind == "HelmChartInflationGenerator" {
            let home = find(&fields, "charthome").unwrap_or(CHART_HOME);
            self.helm_globals(&fields, location);
            self.helm_chart(&fields, home, location);
        }
    }

    /// Checks a mapping whose field `path` names a file.
    fn with_path(&mut self, fields: &[Field<'_>], location: Location<'_>) {
        for Field { name, folded, value } in fields {
            if let ("path", Value::String(path)) = (folded.as_str(), value) {
                let shown = format!("{}.{name}", location.shown);
                self.file(
                    path,
                    Location {
                        shown: &shown,
                        ..location
                    },
                );
            }
        }
    }

    /// Checks the sources of a generated `ConfigMap` or Secret.
    fn key_values(&mut self, fields: &[Field<'_>], location: Location<'_>) {
        for Field { name, folded, value } in fields {
            let shown = format!("{}.{name}", location.shown);
            let at = Location {
                shown: &shown,
                ..location
            };
            match (folded.as_str(), value) {
                ("files", value) => self.each(value, at, |walk, text, at| {
                    // `KEY=PATH`, or a path alone.
                    let path = text.split_once('=').map_or(text, |(_, path)| path);
                    walk.file(path, at);
                }),
                ("envs", value) => self.each(value, at, Self::file),
                ("env", Value::String(path)) => self.file(path, at),
                _ => {}
            }
        }
    }

    /// Checks the settings of all charts.
    fn helm_globals(&mut self, fields: &[Field<'_>], location: Location<'_>) {
        for Field { name, folded, value } in fields {
            let is_given = !matches!(value, Value::Null) && value.as_str() != Some("") && !value.is_empty_collection();
            let shown = format!("{}.{name}", location.shown);
            match (folded.as_str(), value) {
                ("charthome", Value::String(path)) => {
                    self.path(
                        path,
                        Location {
                            shown: &shown,
                            ..location
                        },
                    );
                }
                ("confighome" | "helmhome" | "helmbin" | "extraargs", _) if is_given => {
                    self.refuse(&shown, "it could make Helm start programs: leave it out");
                }
                _ => {}
            }
        }
    }

    /// Checks a chart, in the current format or in that of kustomize 3.
    fn helm_chart(&mut self, fields: &[Field<'_>], home: &str, location: Location<'_>) {
        let text = |names: &[&str]| names.iter().find_map(|name| find(fields, name)).unwrap_or_default();
        let known = self.problems.len();
        let mut word = |names: &[&str], is_valid: fn(&str) -> bool, rule: &str| {
            let given = text(names);
            if !given.is_empty() && !is_valid(given) {
                self.refuse(&format!("{}.{}", location.shown, names[0]), rule);
            }
            given
        };
        let name = word(
            &["name", "chartname"],
            is_chart_name,
            "use letters, digits, '-', '_' and '.' in the name of a chart",
        );
        let version = word(
            &["version", "chartversion"],
            is_version,
            "it is not a version: write it like 1.4.2",
        );
        let release = "use at most 53 lower-case letters, digits, '-' and '.' in the name of a release";
        word(&["releasename"], is_release_name, release);
        word(&["nametemplate"], is_release_name, release);
        word(&["namespace"], is_word, "it is not a namespace");
        word(&["kubeversion"], is_word, "it is not a version: write it like 1.34.0");
        for Field { name, folded, value } in fields {
            let shown = format!("{}.{name}", location.shown);
            let at = Location {
                shown: &shown,
                ..location
            };
            match (folded.as_str(), value) {
                ("valuesfile" | "values", Value::String(path)) => self.file(path, at),
                ("additionalvaluesfiles", value) => self.each(value, at, |walk, path, at| {
                    if let Err(why) = check_for_helm(path) {
                        walk.refuse(at.shown, &why);
                    }
                    walk.file(path, at);
                }),
                ("apiversions", value) => self.each(value, at, |walk, version, at| {
                    if !is_word(version) {
                        walk.refuse(
                            at.shown,
                            "it is not an API version: write it like apps/v1 or apps/v1/Deployment",
                        );
                    }
                }),
                _ => {}
            }
        }
        if let Some(what) = unfit_for_helm(&location.folder.to_string_lossy()) {
            let why =
                format!("the path of its folder has {what}, which Helm does not accept in a name: rename the folder");
            self.refuse(location.shown, &why);
        }
        if name.is_empty() || self.problems.len() > known {
            return;
        }
        let repo = text(&["repo", "chartrepourl"]);
        let folder = if version.is_empty() || repo.is_empty() {
            format!("{home}/{name}")
        } else {
            format!("{home}/{name}-{version}/{name}")
        };
        match self.path(&folder, location) {
            Target::Folder(folder) => {
                let check = chart::Check {
                    repository: self.repository,
                    remotes: self.remotes,
                    schemas: true,
                };
                for why in check.problems(&folder) {
                    let shown = self.repository.shown(&folder);
                    self.refuse(location.shown, &format!("{shown}: {why}"));
                }
            }
            _ if repo.is_empty() || self.problems.len() > known => {}
            _ => {
                let shown = format!("{}.repo", location.shown);
                self.address(
                    &format!("{}/{name}", repo.trim_end_matches('/')),
                    Location {
                        shown: &shown,
                        ..location
                    },
                );
            }
        }
    }
}

/// A field of a mapping.
struct Field<'v> {
    name: &'v str,
    /// The name, case-folded.
    folded: String,
    value: &'v Value<'v>,
}

/// The default folder of charts.
const CHART_HOME: &str = "charts";

/// Returns the folder of a kustomization's charts.
fn chart_home<'v>(fields: &[Field<'v>]) -> &'v str {
    let of = |name: &str| {
        fields
            .iter()
            .find(|field| field.folded == name)
            .map(|field| field.value)
    };
    let home = |fields: &'v Map<'v>| {
        let field = fields.iter().find(|(name, _)| folded(name) == "charthome");
        field
            .and_then(|(_, value)| value.as_str())
            .filter(|home| !home.is_empty())
    };
    let home = match (of("helmglobals"), of("helmchartinflationgenerator")) {
        (Some(Value::Map(globals)), _) => home(globals),
        (_, Some(Value::List(charts))) => charts.iter().rev().filter_map(Value::as_map).find_map(home),
        _ => None,
    };
    home.unwrap_or(CHART_HOME)
}

/// Returns the text of a field, unless it is empty.
fn find<'v>(fields: &[Field<'v>], name: &str) -> Option<&'v str> {
    let field = fields.iter().find(|field| field.folded == name)?;
    field.value.as_str().filter(|text| !text.is_empty())
}

/// Returns a name as Go's `encoding/json` compares it: case-folded, including non-ASCII letters that fold to ASCII.
fn folded(name: &str) -> String {
    name.chars()
        .map(|char| match char {
            'ſ' => 's',
            '\u{212A}' => 'k',
            char => char.to_ascii_lowercase(),
        })
        .collect()
}

/// Returns true if the name is a folder below that of charts, and a single argument of Helm.
fn is_chart_name(name: &str) -> bool {
    name.split('/').all(|part| {
        part.starts_with(|char: char| char.is_ascii_alphanumeric())
            && part
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || "._-".contains(char))
    })
}

/// Returns true for a version or a range of versions.
fn is_version(version: &str) -> bool {
    version
        .chars()
        .all(|char| char.is_ascii_alphanumeric() || "._-+~^*<>=| ".contains(char))
        && !version.starts_with('-')
        && !version.contains("..")
}
