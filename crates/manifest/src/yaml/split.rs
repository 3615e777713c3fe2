//! Splits a YAML stream into documents, as apimachinery's `YAMLReader` does before parsing.

use super::Fault;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// The searcher for the end of a document. Static, because creating it takes as long as searching some documents.
static SEPARATOR: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\n---"));

/// The text of one document and its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

/// An iterator over the documents of `text` from a byte on.
#[derive(Clone, Debug)]
pub(super) struct Chunks<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    /// Returns the next document. A line that starts with `---` ends a document; if none has started, it becomes the first line
    /// of the next.
    pub(super) fn next_chunk(&mut self) -> Option<Result<Chunk<'a>, Fault>> {
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

const LOST_LINE: &str = "the last line has no line break at its end and just the length (4096 bytes or a multiple) at which Kubernetes' \
                         reader silently drops it: add a line break";

/// Returns the start of the last line if Go would lose it: Go's line reader mistakes an unfinished line that ends exactly at the
/// end of its buffer for the end of the text. To read it anyway would differ from Argo CD, so the text is refused.
fn lost_line(text: &str) -> Option<usize> {
    const BUFFER: usize = 4096;
    let bytes = text.as_bytes();
    let start = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
    let mut at = start;
    while bytes.len() - at >= BUFFER {
        // A CR at the end of the buffer is put back, because an LF may follow.
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
