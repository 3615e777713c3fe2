//! The pages, with the parts of Markdown that the tests need: headings, links, and code blocks.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The table of contents.
pub(crate) const CONTENTS: &str = "docs/SUMMARY.md";

/// A page.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its path in the repository, such as `docs/settings.md`.
    pub(crate) path: String,
    /// Its lines.
    pub(crate) lines: Vec<String>,
    /// The anchors of its headings, in order.
    pub(crate) anchors: Vec<String>,
    /// The targets of its links and pictures, each with its line.
    pub(crate) links: Vec<(usize, String)>,
    /// Its code blocks.
    pub(crate) blocks: Vec<Block>,
}

/// A code block.
#[derive(Debug)]
pub(crate) struct Block {
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    /// The anchor of the heading above it.
    pub(crate) section: String,
    /// The language after the fence, such as `console`.
    pub(crate) language: String,
    /// Its content, without the indentation.
    pub(crate) text: String,
}

/// Returns README.md and all pages of docs/, by name.
pub(crate) fn pages() -> Vec<Page> {
    let mut paths = vec!["README.md".to_owned()];
    let folder = fs::read_dir(root().join("docs")).expect("docs/");
    let names = folder.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| is_page(name)).collect();
    names.sort();
    paths.extend(names.into_iter().map(|name| format!("docs/{name}")));
    paths.iter().map(|path| page(path)).collect()
}

fn is_page(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "md")
}

fn page(path: &str) -> Page {
    parse_page(path, &fs::read_to_string(root().join(path)).expect(path))
}

/// Parses the text of a page.
pub(crate) fn parse_page(path: &str, text: &str) -> Page {
    let mut page = Page {
        path: path.to_owned(),
        lines: text.lines().map(str::to_owned).collect(),
        anchors: Vec::new(),
        links: Vec::new(),
        blocks: Vec::new(),
    };
    let mut open: Option<(usize, Block)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(language)) => {
                let block = Block {
                    line: number,
                    section: page.anchors.last().cloned().unwrap_or_default(),
                    language: language.to_owned(),
                    text: String::new(),
                };
                open = Some((line.len() - line.trim_start().len(), block));
            }
            (Some(_), Some(_)) => page.blocks.extend(open.take().map(|(_, block)| block)),
            (Some((indent, block)), None) => {
                block.text.push_str(line.get(*indent..).unwrap_or_default());
                block.text.push('\n');
            }
            (None, None) => {
                if let Some(heading) = heading(line) {
                    let anchor = anchor(heading);
                    let again = page.anchors.iter().filter(|entry| **entry == anchor).count();
                    assert_eq!(again, 0, "{path}:{number}: a heading with this anchor exists");
                    page.anchors.push(anchor);
                }
                page.links.extend(targets(line).map(|target| (number, target)));
            }
        }
    }
    assert!(open.is_none(), "{path}: a block of code is not closed");
    page
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len()).then(|| text.strip_prefix(' '))?
}

/// Returns the anchor that GitHub derives from a heading.
fn anchor(heading: &str) -> String {
    let anchor = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then(|| c.to_lowercase().next().unwrap_or(c)),
    });
    anchor.collect()
}

/// Returns the targets of links and pictures in a line, without those in code.
fn targets(line: &str) -> impl Iterator<Item = String> {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let parts: Vec<String> = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
        .collect();
    parts.into_iter()
}
