//! Checks that every link has an existing target.

use crate::page::{CONTENTS, Page, pages, parse_page, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path};

/// The pages for contributors, which are not in docs/.
const FOR_CONTRIBUTORS: [&str; 3] = ["CONTRIBUTING.md", "tests/README.md", "tests/data/README.md"];

#[test]
fn every_link_target_exists() {
    let mut pages = pages();
    pages.extend(FOR_CONTRIBUTORS.map(|path| parse_page(path, &fs::read_to_string(root().join(path)).expect(path))));
    let broken_links: Vec<String> = pages.iter().flat_map(|page| broken_links_of(page, &pages)).collect();
    assert!(broken_links.is_empty(), "{}", broken_links.join("\n"));
}

#[test]
fn table_of_contents_links_every_page_and_every_picture_is_used() {
    let pages = pages();
    let mut shown = BTreeSet::new();
    for page in &pages {
        shown.extend(page.links.iter().filter_map(|(_, target)| file(page, target)));
    }
    let linked_from = |path: &str| -> BTreeSet<String> {
        let page = pages.iter().find(|page| page.path == path).expect(path);
        page.links.iter().filter_map(|(_, target)| file(page, target)).collect()
    };
    assert!(
        linked_from("README.md").contains(CONTENTS),
        "README.md has no link to {CONTENTS}"
    );
    let listed = linked_from(CONTENTS);
    for page in pages.iter().filter(|page| page.path != CONTENTS) {
        assert!(listed.contains(&page.path), "{CONTENTS} has no link to {}", page.path);
    }
    for entry in fs::read_dir(root().join("docs/ui")).expect("docs/ui") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(
            shown.contains(&format!("docs/ui/{name}")),
            "no page shows docs/ui/{name}"
        );
    }
}

/// Returns the broken links of a page.
fn broken_links_of(page: &Page, pages: &[Page]) -> Vec<String> {
    let mut broken_links = Vec::new();
    for (line, target) in &page.links {
        let Some(path) = file(page, target) else { continue };
        let location = format!("{}:{line}: {target}", page.path);
        if !root().join(&path).exists() {
            broken_links.push(format!("{location}: {path} does not exist"));
        }
        let Some((_, anchor)) = target.split_once('#') else {
            continue;
        };
        let Some(target_page) = pages.iter().find(|page| page.path == path) else {
            broken_links.push(format!("{location}: {path} is not a page"));
            continue;
        };
        if !target_page.anchors.iter().any(|heading| heading == anchor) {
            broken_links.push(format!("{location}: {path} has no heading {anchor}"));
        }
    }
    broken_links
}

/// Returns the file in the repository that a link targets; `None` if the target is elsewhere.
fn file(page: &Page, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let path = target.split('#').next().unwrap_or_default();
    if path.is_empty() {
        return Some(page.path.clone());
    }
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let mut parts: Vec<String> = Vec::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    Some(parts.join("/"))
}

#[test]
fn reports_broken_links() {
    let page = parse_page(
        "docs/settings.md",
        "# A\n[b](#a) [c](#c) [d](none.md) [e](../README.md#none) [f](https://example.com/#x)\n",
    );
    let pages = [pages().remove(0), page];
    let problems = broken_links_of(&pages[1], &pages);
    assert_eq!(
        problems,
        [
            "docs/settings.md:2: #c: docs/settings.md has no heading c",
            "docs/settings.md:2: none.md: docs/none.md does not exist",
            "docs/settings.md:2: ../README.md#none: README.md has no heading none",
        ]
    );
}
