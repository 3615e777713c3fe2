//! The layers of this crate: what the modules of a folder must not use. Between crates, Cargo refuses a cycle.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the source files below a path, without those of tests.
fn sources(path: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    let folder = path.with_extension("");
    if folder.is_dir() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            all.extend(sources(&entry.path()));
        }
    }
    all.extend(path.is_file().then(|| path.to_owned()));
    all.retain(|path| path.file_stem().is_none_or(|name| name != "tests" && name != "played"));
    all.sort();
    all.dedup();
    all
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
fn the_runtime_uses_nothing_else_of_this_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = sources(&root.join("runtime.rs"));
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        for name in used(&file) {
            assert!(name.starts_with("runtime::"), "{} uses {name}", file.display());
        }
    }
}
