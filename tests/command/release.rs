//! Checks that `Cargo.toml` is the only source of the data about a release.

use crate::shipped_files::{read_file, root};
use hub_state::model::shipped;
use serde_json::Value;
use std::fs;
use std::path::Path;

const VERSION: &str = env!("CARGO_PKG_VERSION");
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");
const LICENSE: &str = env!("CARGO_PKG_LICENSE");

#[test]
fn image_tags_match_the_programs_version() {
    const IMAGE: &str = "ghcr.io/argocd-ocm-cmp/argocd-ocm-cmp:";
    let mut named = 0;
    for folder in ["", "docs"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder") {
            let file = entry.expect("an entry").path();
            if !file.extension().is_some_and(|end| end == "yaml" || end == "md") || file.ends_with("CHANGELOG.md") {
                continue;
            }
            let text = fs::read_to_string(&file).expect("a text");
            for rest in text.split(IMAGE).skip(1) {
                let is_of_tag = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                let tag = &rest[..rest.find(|c| !is_of_tag(c)).unwrap_or(rest.len())];
                assert_eq!(tag.trim_end_matches('.'), VERSION, "{}", file.display());
                named += 1;
            }
        }
    }
    assert!(named >= 3, "{named}");
}

#[test]
fn images_have_the_versions_that_the_testbed_builds() {
    for (image, module, package) in [
        (shipped::ARGOCD, "argocd", "github.com/argoproj/argo-cd/v3"),
        (
            shipped::OPERATOR,
            "operator",
            "github.com/argoproj-labs/argocd-operator",
        ),
    ] {
        let requirements = read_file(&format!("tests/testbed/go/{module}/go.mod"));
        let mut lines = requirements.lines().map(str::trim);
        let version = lines.find_map(|line| line.strip_prefix(package)?.split_whitespace().next());
        assert_eq!(tag(image), version, "{image}");
    }
    // `with_faults` compares Redis with that of Argo CD's own manifests.
    assert_eq!(tag(shipped::AGENT), Some(testbed::ARGOCD_AGENT_VERSION));
}

fn tag(image: &str) -> Option<&str> {
    image.rsplit_once(':').map(|(_, tag)| tag)
}

#[test]
fn files_and_pages_name_one_version_of_each_image() {
    for image in [shipped::ARGOCD, shipped::OPERATOR, shipped::AGENT, shipped::REDIS] {
        let (name, tag) = image.rsplit_once(':').expect("a tag");
        let start = format!("{name}:{}", if tag.starts_with('v') { "v" } else { "" });
        for file in files_with(name) {
            let text = read_file(&file);
            let others: Vec<_> = text.lines().filter(|line| line.contains(&start)).collect();
            assert!(others.iter().all(|line| line.contains(image)), "{file}: {others:?}");
        }
    }
}

/// Returns the shipped files and pages that name an image.
fn files_with(image: &str) -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["", "deploy", "chart", "docs"] {
        for entry in fs::read_dir(root().join(folder)).expect("a folder") {
            let file = entry.expect("an entry").file_name();
            let name = Path::new(folder).join(file).to_str().expect("a name").to_owned();
            let is_text = [".yaml", ".md"].iter().any(|end| name.ends_with(end));
            if is_text && read_file(&name).contains(image) {
                files.push(name);
            }
        }
    }
    assert!(!files.is_empty(), "no file names {image}");
    files
}

#[test]
fn the_changelog_begins_with_this_version() {
    let changelog = read_file("CHANGELOG.md");
    let first = changelog.lines().find_map(|line| line.strip_prefix("## ["));
    let (version, date) = first
        .and_then(|line| line.split_once("] - "))
        .expect("a version and its date");
    assert_eq!(version, VERSION);
    let is_date = date.len() == 10 && date.split('-').all(|part| part.parse::<u16>().is_ok());
    assert!(date == "Unreleased" || is_date, "{date}");
}

#[test]
fn testbed_and_ui_match_version_rust_and_license() {
    let testbed = read_file("tests/testbed/Cargo.toml");
    for line in [
        format!("version = \"{VERSION}\""),
        format!("rust-version = \"{RUST}\""),
        format!("license = \"{LICENSE}\""),
    ] {
        assert!(
            testbed.lines().any(|entry| entry == line),
            "tests/testbed/Cargo.toml: {line}"
        );
    }
    let ui: Value = serde_json::from_str(&read_file("ui/package.json")).expect("JSON");
    assert_eq!(ui["license"], LICENSE);
    assert_eq!(ui["version"], Value::Null, "the extension is released with the program");
}

#[test]
fn readme_and_contributing_name_the_minimum_rust() {
    for page in ["README.md", "CONTRIBUTING.md"] {
        assert!(read_file(page).contains(&format!("Rust {RUST} or newer")), "{page}");
    }
}
