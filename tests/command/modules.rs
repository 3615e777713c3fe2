//! Checks the modules of the crates: no files use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates in which a file and those in its folder may use each other.
const WITH_CIRCLES: [&str; 4] = ["generate", "manifest", "ocm", "testing"];

/// The file names of modules that only tests use.
const TESTS: [&str; 6] = [
    "properties",
    "pull_works",
    "simulated_hub",
    "simulation",
    "testing",
    "tests",
];

/// Returns the folder with the sources of a crate.
pub(crate) fn folder(name: &str) -> PathBuf {
    crate::shipped_files::root().join("crates").join(name).join("src")
}

/// Returns the source files of a folder, without those of tests.
pub(crate) fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let paths = entries.map(|entry| entry.path());
    let is_test = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        TESTS.contains(&stem)
    };
    let paths = paths.filter(|path| !is_test(path));
    paths
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// Returns the path of a module in its crate, such as `cache::works`.
fn module(root: &Path, file: &Path) -> String {
    let path = file.strip_prefix(root).expect("below the root").with_extension("");
    path.to_str().expect("a text").replace('/', "::")
}

/// Returns the code of a file without its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source file");
    let tests = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\npub(crate) mod tests {"];
    let end = tests.iter().filter_map(|tests| text.find(tests)).min();
    let lines = text[..end.unwrap_or(text.len())].lines();
    let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Returns the paths in a file, without those of its tests and without what it only re-exports.
fn paths(path: &Path) -> Vec<Vec<String>> {
    let code = code(path);
    let mut all = Vec::new();
    for statement in code.split_inclusive([';', '{']) {
        let is_re_export = statement.trim_start().starts_with("pub") && statement.contains(" use ");
        let is_path = |char: char| char.is_alphanumeric() || char == '_' || char == ':';
        let texts = statement
            .split(|char: char| !is_path(char))
            .filter(|text| text.contains("::") && !text.ends_with("::") && !is_re_export);
        all.extend(texts.map(|text| {
            let names = text.split("::").filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        }));
    }
    for declaration in code.split("\nuse ").skip(1) {
        let declaration = declaration.split(';').next().unwrap_or_default();
        if let Some((prefix, names)) = declaration.split_once("::{") {
            let names = names.split(|char: char| !char.is_alphanumeric() && char != '_');
            let names = names.filter(|name| !name.is_empty() && *name != "self");
            all.extend(names.map(|name| prefix.split("::").chain([name]).map(str::to_owned).collect()));
        }
    }
    all
}

/// Returns the modules that each module of a crate uses. An item in no module is in that of the crate, `lib`.
fn graph(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let files = sources(root);
    let modules: BTreeSet<_> = files.iter().map(|file| module(root, file)).collect();
    let mut graph = BTreeMap::new();
    for file in &files {
        let module = module(root, file);
        let own_path: Vec<_> = module
            .split("::")
            .filter(|name| *name != "lib")
            .map(str::to_owned)
            .collect();
        let mut used = BTreeSet::new();
        for path in paths(file) {
            let supers = path.iter().take_while(|name| *name == "super").count();
            let (start, rest) = match path.first().map(String::as_str) {
                Some("crate") => (&[][..], &path[1..]),
                Some("super") => (&own_path[..own_path.len().saturating_sub(supers)], &path[supers..]),
                _ => (&*own_path, &path[..]),
            };
            let is_of_lib = start.is_empty() && rest.len() < path.len();
            let segments = [start, rest].concat();
            let prefixes = (1..=segments.len()).rev().map(|length| segments[..length].join("::"));
            let named = prefixes.into_iter().find(|prefix| modules.contains(prefix));
            used.extend(named.or_else(|| is_of_lib.then(|| "lib".to_owned())));
        }
        used.remove(&module);
        graph.insert(module, used);
    }
    graph
}

/// Values that several files need are in a file below all of them. A module uses its submodules, and they do not use it.
#[test]
fn no_files_use_each_other_in_a_circle() {
    let crates = fs::read_dir(crate::shipped_files::root().join("crates")).expect("a folder");
    let names = crates.map(|entry| entry.expect("a crate").file_name().into_string().expect("a name"));
    let mut total = 0;
    for name in names.filter(|name| !WITH_CIRCLES.contains(&name.as_str())) {
        let mut graph = graph(&folder(&name));
        total += graph.values().map(BTreeSet::len).sum::<usize>();
        // The files that use nothing are below all others: what remains without them is a circle.
        while let Some(lowest) = graph
            .iter()
            .find_map(|(module, used)| used.is_empty().then(|| module.clone()))
        {
            graph.remove(&lowest);
            for used in graph.values_mut() {
                used.remove(&lowest);
            }
        }
        let used: BTreeSet<_> = graph.values().flatten().cloned().collect();
        graph.retain(|module, _| used.contains(module));
        assert!(graph.is_empty(), "{name}: {graph:#?}");
    }
    assert!(total > 220, "the uses between files are found: {total}");
}
