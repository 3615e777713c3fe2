//! Splits a YAML stream into documents, as `YAMLReader` of apimachinery does before any YAML is read.

use super::fault::Fault;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// Where a document ends. To make ready for the search takes as long as to search some documents.
static SEPARATOR: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\n---"));

/// One document's text and where it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

/// The documents of `text` from a byte on.
#[derive(Clone, Debug)]
pub(super) struct Chunks<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    /// A line that starts with `---` ends a document; where none has started, it becomes the first line of the next.
    pub(super) fn next(&mut self) -> Option<Result<Chunk<'a>, Fault>> {
        let start = self.at;
        if start == self.text.len() {
            return None;
        }
        if self.text[start..].starts_with("---")
            && let Err(fault) = check_separator(self.text, start)
        {
            return Some(Err(fault));
        }
        let end = match SEPARATOR.find(&self.text.as_bytes()[start..]) {
            Some(offset) => start + offset + 1,
            None => self.text.len(),
        };
        if end == self.text.len() {
            self.at = end;
            if let Some(at) = lost_line(&self.text[start..]) {
                return Some(Err(Fault::new(start + at, LOST_LINE)));
            }
        } else {
            if let Err(fault) = check_separator(self.text, end) {
                return Some(Err(fault));
            }
            self.at = end_of_line(self.text, end);
        }
        Some(Ok(Chunk {
            text: &self.text[start..end],
            start,
        }))
    }
}

const LOST_LINE: &str = "the last line has no line break at its end and just the length (4096 bytes or a multiple) at which \
                         Kubernetes' reader loses it without a word: add a line break";

/// Where the last line starts if Go would lose it: its line reader takes an unfinished line that ends just where its
/// buffer does for the end of the text. To read it all the same would be to differ from Argo CD, so we refuse it.
fn lost_line(text: &str) -> Option<usize> {
    const BUFFER: usize = 4096;
    let bytes = text.as_bytes();
    let start = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
    let mut at = start;
    while bytes.len() - at >= BUFFER {
        // A CR at the end of the buffer is put back, for an LF may follow.
        at += BUFFER - usize::from(bytes[at + BUFFER - 1] == b'\r');
    }
    (at == bytes.len() && at > start).then_some(start)
}

fn end_of_line(text: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |offset| at + offset + 1)
}

fn check_separator(text: &str, at: usize) -> Result<(), Fault> {
    let rest = text[at + 3..end_of_line(text, at)].trim();
    if rest.is_empty() || rest.starts_with('#') {
        return Ok(());
    }
    Err(Fault::new(
        at,
        "only a comment may follow the document separator \"---\" on its line",
    ))
}
