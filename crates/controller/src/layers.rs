//! The layers of this crate, which refuse import cycles between its folders and files, as Cargo does between crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules from the bottom to the top: each may use those before it, and its own. The decisions of a controller that the model
/// or the cache needs are below these, and the rest of its folder above.
const LAYERS: [&str; 20] = [
    "annotations",
    "json",
    "pull",
    "application_set_report",
    "argocd_agent",
    "model",
    "cluster_secrets",
    "cache",
    "watches",
    "metrics",
    "reconcile",
    "application_status",
    "cluster_secrets::mappers",
    "assignment",
    "argocd_agent::reconcile",
    "gitopscluster",
    "cluster_secrets::reconcile",
    "application_set_report::reconcile",
    "pull::reconcile",
    "controllers",
];

/// Returns the layer of a module or of an item in it; none for the program on top of all.
fn layer(path: &str) -> Option<usize> {
    let is_below = |name: &&str| {
        let rest = path.strip_prefix(*name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let all = LAYERS.iter().enumerate().filter(|(_, name)| is_below(name));
    all.max_by_key(|(_, name)| name.len()).map(|(at, _)| at)
}

/// Returns the source files of a folder, without those of tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let paths = entries.map(|entry| entry.path());
    let is_test = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        ["tests", "simulation", "layers"].contains(&stem)
    };
    let paths = paths.filter(|path| !is_test(path));
    paths
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .collect()
}

/// Returns the modules of this crate that a file uses, such as `runtime::queue`, without those that its tests use.
fn used(path: &Path) -> Vec<String> {
    let code = code(path);
    let paths = code.lines().flat_map(|line| line.split("crate::").skip(1));
    let names = paths.map(|path| path.split(|it: char| !it.is_alphanumeric() && it != '_' && it != ':'));
    names.filter_map(|mut names| names.next().map(str::to_owned)).collect()
}

#[test]
fn a_module_uses_only_what_is_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = sources(&root);
    assert!(files.len() > 70, "{files:?}");
    for file in files {
        let path = file.strip_prefix(&root).expect("below the root").with_extension("");
        let module = path.to_str().expect("a text").replace('/', "::");
        let own = layer(&module);
        for name in used(&file) {
            let is_below = own.is_none() || layer(&name).is_some_and(|it| Some(it) <= own);
            assert!(is_below, "{module} must not use {name}");
        }
    }
}

/// Returns the code of a file without its tests.
#[expect(clippy::disallowed_methods, reason = "the sources are what is tested")]
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
        let is_path = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
        let texts = statement
            .split(|it: char| !is_path(it))
            .filter(|it| it.contains("::") && !it.ends_with("::") && !is_re_export);
        all.extend(texts.map(|text| {
            text.split("::")
                .filter(|it| !it.is_empty())
                .map(str::to_owned)
                .collect()
        }));
    }
    for declaration in code.split("\nuse ").skip(1) {
        let declaration = declaration.split(';').next().unwrap_or_default();
        if let Some((prefix, names)) = declaration.split_once("::{") {
            let names = names.split(|it: char| !it.is_alphanumeric() && it != '_');
            let names = names.filter(|it| !it.is_empty() && *it != "self");
            all.extend(names.map(|name| prefix.split("::").chain([name]).map(str::to_owned).collect()));
        }
    }
    all
}

/// Returns the modules that the modules of the crate use, by name.
fn graph(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let name = |file: &Path| {
        let path = file.strip_prefix(root).expect("below the root").with_extension("");
        path.to_str().expect("a text").replace('/', "::")
    };
    let files = sources(root);
    let modules: BTreeSet<_> = files.iter().map(|file| name(file)).collect();
    let mut graph = BTreeMap::new();
    for file in &files {
        let module = name(file);
        let mut used = BTreeSet::new();
        for path in paths(file).into_iter().filter(|path| !path.is_empty()) {
            let supers = path.iter().take_while(|it| *it == "super").count();
            let own: Vec<_> = module.split("::").map(str::to_owned).collect();
            let segments = match path.first().map(String::as_str) {
                Some("crate") => path[1..].to_vec(),
                Some("super") => [&own[..own.len() - supers], &path[supers..]].concat(),
                _ => [own, path].concat(),
            };
            let prefixes = (1..=segments.len()).rev().map(|length| segments[..length].join("::"));
            used.extend(prefixes.into_iter().find(|prefix| modules.contains(prefix)));
        }
        used.remove(&module);
        graph.insert(module, used);
    }
    graph
}

/// Values that several files need are in a file below all of them. A module uses its submodules, and they do not use it.
#[test]
fn no_files_use_each_other_in_a_circle() {
    let mut graph = graph(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(graph.values().map(BTreeSet::len).sum::<usize>() > 250, "{graph:?}");
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
    assert!(graph.is_empty(), "{graph:#?}");
}
