//! Builds the documentation as a site with mdBook: the pages of `docs`, README.md and CONTRIBUTING.md.
//!
//! mdBook needs all pages in one folder. They are copied to `target/docs-src/src`; links to other files become links to the
//! repository on GitHub.

use crate::{root, succeed, toml_text};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of mdBook.
const MDBOOK: &str = "0.5.4";

/// The key of the repository's address in the settings of the book.
const REPOSITORY: &str = "git-repository-url";

/// The pages outside of `docs`, with their names in the book.
const OUTSIDE: [(&str, &str); 2] = [("README.md", "index.md"), ("CONTRIBUTING.md", "contributing.md")];

/// Builds the site in `target/docs`.
pub(crate) fn run() -> Result<()> {
    let root = root()?;
    let (docs, copy) = (root.join("docs"), root.join("target/docs-src"));
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    let pages = copy.join("src");
    fs::create_dir_all(pages.join("ui"))?;
    let settings = fs::read_to_string(docs.join("book.toml")).context("docs/book.toml")?;
    let repository = toml_text(&settings, REPOSITORY).context("docs/book.toml has no git-repository-url")?;
    for file in ["book.toml", "book.css"] {
        fs::copy(docs.join(file), copy.join(file)).context(file)?;
    }
    for entry in fs::read_dir(&docs)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let page = fs::read_to_string(&path)?;
            let name = path.file_name().unwrap_or_default();
            fs::write(pages.join(name), with_links(&page, "docs", repository, root))?;
        }
    }
    for (path, name) in OUTSIDE {
        let page = fs::read_to_string(root.join(path)).context(path)?;
        fs::write(pages.join(name), with_links(&page, "", repository, root))?;
    }
    for picture in fs::read_dir(docs.join("ui"))? {
        let picture = picture?;
        fs::copy(picture.path(), pages.join("ui").join(picture.file_name()))?;
    }
    succeed(Command::new(mdbook()?).arg("build").arg(&copy))
}

/// Returns the program mdBook, and installs it if it is missing.
fn mdbook() -> Result<PathBuf> {
    let home = std::env::home_dir().context("there is no home folder")?;
    let folder = home.join(format!(".cache/argocd-ocm-cmp-tools/mdbook-{MDBOOK}"));
    let program = folder.join("bin/mdbook");
    if !program.exists() {
        let mut install = Command::new(env!("CARGO"));
        install.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--debug"]);
        install.args(["--no-default-features", "--features", "search", "--root"]);
        succeed(install.arg(&folder))?;
    }
    Ok(program)
}

/// Returns a page of a folder with the links that it has in the book. Code stays as it is.
fn with_links(page: &str, folder: &str, repository: &str, root: &Path) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence {
            text += line;
        } else {
            // Every second piece is code.
            for (at, piece) in line.split('`').enumerate() {
                if at > 0 {
                    text.push('`');
                }
                if at % 2 == 1 {
                    text += piece;
                    continue;
                }
                let mut parts = piece.split("](");
                text += parts.next().unwrap_or_default();
                for part in parts {
                    let (target, rest) = part.split_once(')').unwrap_or((part, ""));
                    text.extend(["](", &link(target, folder, repository, root), ")", rest]);
                }
            }
        }
        text.push('\n');
    }
    text
}

/// Returns the target of a link in the book.
fn link(target: &str, folder: &str, repository: &str, root: &Path) -> String {
    if target.contains("://") || target.starts_with('#') {
        return target.to_owned();
    }
    let (path, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
    let path = match path.strip_prefix("../") {
        Some(path) => path.to_owned(),
        None => Path::new(folder).join(path).to_string_lossy().into_owned(),
    };
    let outside = OUTSIDE.iter().find(|(file, _)| *file == path).map(|(_, name)| *name);
    let in_docs = path.strip_prefix("docs/").filter(|name| *name != "SUMMARY.md");
    if let Some(name) = outside.or(in_docs) {
        return format!("{name}{anchor}");
    }
    let kind = if root.join(&path).is_dir() { "tree" } else { "blob" };
    format!("{repository}/{kind}/main/{path}{anchor}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_pages_stay_in_the_book_and_others_lead_to_the_repository() {
        let of = |target, folder| link(target, folder, "https://git.example.com/r", root().expect("a folder"));
        for (folder, target, expected) in [
            ("docs", "install.md#helm", "install.md#helm"),
            ("docs", "#helm", "#helm"),
            ("docs", "ui/work.png", "ui/work.png"),
            (
                "docs",
                "../README.md#quick-start-on-a-hub",
                "index.md#quick-start-on-a-hub",
            ),
            ("docs", "../app.yaml", "https://git.example.com/r/blob/main/app.yaml"),
            ("docs", "../chart", "https://git.example.com/r/tree/main/chart"),
            ("docs", "https://example.com/a.md", "https://example.com/a.md"),
            ("", "docs/ui.md", "ui.md"),
            (
                "",
                "docs/SUMMARY.md",
                "https://git.example.com/r/blob/main/docs/SUMMARY.md",
            ),
            ("", "CONTRIBUTING.md", "contributing.md"),
        ] {
            assert_eq!(of(target, folder), expected, "{target} in {folder:?}");
        }
    }

    #[test]
    fn changes_no_code() {
        let page = "[`a`](../README.md), `[b](../README.md)`\n```\n[c](../README.md)\n```\n";
        assert_eq!(
            with_links(page, "docs", "https://git.example.com/r", Path::new("/")),
            "[`a`](index.md), `[b](../README.md)`\n```\n[c](../README.md)\n```\n"
        );
    }

    #[test]
    fn reads_the_repository_of_the_book() {
        let settings = include_str!("../../docs/book.toml");
        assert!(toml_text(settings, REPOSITORY).is_some_and(|text| text.starts_with("https://github.com/")));
        assert_eq!(toml_text("title = \"a\"\n", REPOSITORY), None);
    }
}
