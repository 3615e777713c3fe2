//! Splits a YAML stream into documents, as `YAMLReader` of apimachinery does before any YAML is read.

use super::fault::Fault;

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
        let end = match memchr::memmem::find(&self.text.as_bytes()[start..], b"\n---") {
            Some(offset) => start + offset + 1,
            None => self.text.len(),
        };
        if end == self.text.len() {
            self.at = end;
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
