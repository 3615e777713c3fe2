//! Checks in Git's index that every clone has the same files. `tests/docs` lets Argo CD read a clone as a source.

use crate::shipped_files::{read_file, root};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Returns the mode and the path of each entry of Git's index, which is what a clone of the next commit has.
fn tracked() -> Vec<(String, String)> {
    // The repository may belong to another user.
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "--stage", "-z"])
        .current_dir(root())
        .output()
        .expect("git");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let index = String::from_utf8(output.stdout).expect("UTF-8");
    let entries = index.split_terminator('\0').map(|entry| {
        let (fields, path) = entry.split_once('\t').expect("a path");
        let mode = fields.split(' ').next().expect("a mode");
        (mode.to_owned(), path.to_owned())
    });
    entries.collect()
}

#[test]
fn every_clone_has_the_same_files() {
    let mut spellings: BTreeMap<String, String> = BTreeMap::new();
    for (mode, path) in tracked() {
        // Argo CD clones submodules, with credentials that it may not have.
        assert!(
            ["100644", "100755", "120000"].contains(&mode.as_str()),
            "{path} is a submodule"
        );
        if mode != "120000" && fs::read(root().join(&path)).is_ok_and(|bytes| bytes.starts_with(b"#!")) {
            assert_eq!(mode, "100755", "{path} is a script: git update-index --chmod=+x");
        }
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for spelling in ends.map(|end| &path[..end]) {
            let first = spellings
                .entry(spelling.to_lowercase())
                .or_insert_with(|| spelling.to_owned());
            assert_eq!(first, spelling, "these differ only in case");
        }
        // No other line endings, no Git LFS, no filters: only the attributes of the root, which convert nothing.
        assert!(!path.ends_with("/.gitattributes"), "{path} may convert files");
    }
    let attributes = read_file(".gitattributes");
    let rules: Vec<&str> = attributes.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rules, ["* -text"]);
}
