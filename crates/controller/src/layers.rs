//! The layers of this crate, which refuse import cycles between its folders, as Cargo does between crates.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules from the bottom to the top: each may use those before it, and its own. The decisions of a controller that the model
/// or the cache needs are below these, and the rest of its folder above.
const LAYERS: [&str; 21] = [
    "annotations",
    "runtime",
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
        ["tests", "fake_api_server", "simulation", "api_server", "layers"].contains(&stem)
    };
    let paths = paths.filter(|path| !is_test(path));
    paths
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .collect()
}

/// Returns the modules of this crate that a file uses, such as `runtime::queue`, without those that its tests use.
#[expect(clippy::disallowed_methods, reason = "the sources are what is tested")]
fn used(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("a source file");
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let paths = lines.flat_map(|line| line.split("crate::").skip(1));
    let names = paths.map(|path| path.split(|it: char| !it.is_alphanumeric() && it != '_' && it != ':'));
    names.filter_map(|mut names| names.next().map(str::to_owned)).collect()
}

#[test]
fn a_module_uses_only_what_is_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = sources(&root);
    assert!(files.len() > 90, "{files:?}");
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
