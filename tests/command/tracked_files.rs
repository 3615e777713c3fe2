//! Checks in Git's index that Argo CD accepts this repository as a source, and that every clone has the same files.

use crate::shipped_files::{read_file, root};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// A tracked file or link.
struct Tracked {
    mode: String,
    blob: String,
    path: String,
}

/// Runs Git in the repository, which may belong to another user.
fn git(arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*"])
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("git");
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the entries of Git's index, which is what a clone of the next commit has.
fn tracked() -> Vec<Tracked> {
    let index = git(&["ls-files", "--stage", "-z"]);
    let entries = index.split_terminator('\0').map(|entry| {
        let (fields, path) = entry.split_once('\t').expect("a path");
        let fields: Vec<&str> = fields.split(' ').collect();
        Tracked {
            mode: fields[0].to_owned(),
            blob: fields[1].to_owned(),
            path: path.to_owned(),
        }
    });
    entries.collect()
}

/// Returns true if Argo CD refuses every source in a repository with this link, by the rule of its function
/// `CheckOutOfBoundsSymlinks`: the target is absolute, or a part of it leads out of the repository, even if the next part leads
/// back. Argo CD follows no link for that, so it accepts dangling links, loops, and links to the root.
fn is_out_of_bounds(link: &str, target: &str) -> bool {
    let mut depth = link.matches('/').count();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    target.starts_with('/')
}

#[test]
fn no_tracked_link_leads_out_of_the_repository() {
    let links: Vec<Tracked> = tracked().into_iter().filter(|it| it.mode == "120000").collect();
    assert!(!links.is_empty(), "the chart has links");
    for Tracked { path, blob, .. } in links {
        let target = git(&["cat-file", "blob", &blob]);
        assert!(
            !is_out_of_bounds(&path, &target),
            "{path} leads to {target}, so Argo CD refuses this repository: create the link in the test that needs it"
        );
    }
}

#[test]
fn out_of_bounds_links_are_those_that_argo_cd_refuses() {
    for (link, target) in [
        ("link", "/etc/hostname"),
        ("a/link", "/"),
        ("link", ".."),
        ("link", "../file"),
        ("a/link", "../../file"),
        ("a/link", "../../a/file"),
        ("a/link", "b/../../../a"),
        ("link", "./../file"),
    ] {
        assert!(is_out_of_bounds(link, target), "{link} -> {target}");
    }
    for (link, target) in [
        ("link", "link"),
        ("link", "gone"),
        ("link", "."),
        ("link", "a/.."),
        ("link", "..file"),
        ("a/link", ".."),
        ("a/link", "../file"),
        ("a/b/link", "../..//c/./d"),
    ] {
        assert!(!is_out_of_bounds(link, target), "{link} -> {target}");
    }
}

#[test]
fn every_clone_has_the_same_files() {
    let mut spellings: BTreeMap<String, String> = BTreeMap::new();
    for Tracked { mode, path, .. } in tracked() {
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
