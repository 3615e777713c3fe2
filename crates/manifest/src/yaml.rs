//! Reads YAML and JSON exactly as `kubectl` and Argo CD do.
//!
//! "Exactly" means: it returns the same documents, value for value, and refuses the same files as apimachinery's
//! `YAMLOrJSONDecoder` with sigs.k8s.io/yaml (go-yaml v2, YAML 1.1). The tests compare it with these libraries.

mod build;
mod decode;
mod graph;
mod json;
mod number;
mod parse;
mod positions;
#[cfg(test)]
mod properties;
pub mod resolve;
mod scan;
mod split;
mod text;
mod token;
mod write;

use std::borrow::Cow;
use std::fmt;

pub use positions::Positions;
pub use text::decode;
pub use write::write;

use crate::text::LineCounter;
use crate::value::Value;
use build::Builder;
use graph::Graph;
use parse::Stop;
use scan::Scanner;
use split::{Chunk, Chunks};

/// The number of bytes of stack that a thread needs to read, clone and drop the deepest documents (10,000 levels).
pub const STACK: usize = 64 << 20;

/// The number of bytes in which apimachinery searches for a `{` that distinguishes JSON from YAML.
const JSON_SNIFF_BYTES: usize = 4096;

/// A document of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Document<'a> {
    /// The number of the document, from 1. It counts every part between separators, including empty ones; in a stream of JSON
    /// every value.
    pub number: usize,
    /// The line of the file at which the root node starts, from 1.
    pub line: usize,
    /// The value of the document; never null.
    pub value: Value<'a>,
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The number of the document, see [`Document::number`].
    pub document: usize,
    /// The line of the file, from 1.
    pub line: usize,
    /// The description of the error, in one line; the same whenever the same text is read.
    pub message: Cow<'static, str>,
}

impl fmt::Display for YamlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for YamlError {}

/// An error at a byte of the current text; it becomes an [`YamlError`] once the line is known.
#[derive(Clone, Debug)]
struct Fault {
    at: usize,
    message: Cow<'static, str>,
}

impl Fault {
    fn new(at: usize, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }
}

/// Returns the documents of a file in order, as apimachinery's `YAMLOrJSONDecoder` does.
///
/// Text that starts with `{` is a stream of JSON values; if it turns out to be invalid before the second value is complete, the
/// rest is read as YAML. Null documents are skipped. The iterator ends after an error.
///
/// Reading recurses with the depth of a document: run it with [`STACK`] bytes of stack.
pub fn documents(text: &str) -> Documents<'_> {
    let first = text.char_indices().find(|(_, character)| !character.is_whitespace());
    let source = match first {
        Some((at, '{')) if at < JSON_SNIFF_BYTES => DocumentSource::Json(json::JsonReader::new(text)),
        _ => DocumentSource::Yaml(Chunks::new(text, 0), None),
    };
    Documents {
        source,
        number: 0,
        lines: LineCounter::new(text),
    }
}

/// Returns the first repeated key in a mapping of the text. Kubernetes uses the last value; a reader of files that must be
/// unambiguous refuses both. [`documents`] must have read the text without an error.
pub fn repeated_key(text: &str) -> Option<YamlError> {
    let mut lines = LineCounter::new(text);
    let mut chunks = Chunks::new(text, 0);
    let mut number = 0;
    while let Some(Ok(chunk)) = chunks.next_chunk() {
        number += 1;
        let (graph, offset) = graph(&chunk)?;
        if let Some(mut fault) = graph.repeated_key() {
            fault.at += offset;
            return Some(lines.error(number, fault));
        }
    }
    None
}

/// Returns the single value of a JSON text, as Argo CD reads `*.json` files: only white space may follow it.
///
/// # Errors
///
/// Returns an error if Go's `encoding/json` rejects the text, or if a number exceeds the range of a float.
pub fn json(text: &str) -> Result<Value<'_>, YamlError> {
    let mut reader = json::JsonReader::new(text);
    let fault = match reader.next_document() {
        json::Next::Value(_, value) => {
            let more = match reader.next_document() {
                json::Next::End => return Ok(value),
                json::Next::Value(start, _) => start,
                json::Next::Syntax(fault) | json::Next::Range(fault) => fault.at,
            };
            Fault::new(more, "a JSON file must contain one value, but more follows")
        }
        json::Next::End => Fault::new(text.len(), "the file is empty"),
        json::Next::Syntax(fault) | json::Next::Range(fault) => fault,
    };
    Err(LineCounter::new(text).error(1, fault))
}

/// An iterator over documents: see [`documents`].
#[derive(Debug)]
pub struct Documents<'a> {
    source: DocumentSource<'a>,
    number: usize,
    lines: LineCounter<'a>,
}

#[derive(Debug)]
enum DocumentSource<'a> {
    Json(json::JsonReader<'a>),
    /// With the reason why the text is not JSON, until the first document is read.
    Yaml(Chunks<'a>, Option<Fault>),
    End,
}

impl<'a> Iterator for Documents<'a> {
    type Item = Result<Document<'a>, YamlError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let read = match &mut self.source {
                DocumentSource::End => return None,
                DocumentSource::Json(reader) => match reader.next_document() {
                    json::Next::End => {
                        self.source = DocumentSource::End;
                        return None;
                    }
                    json::Next::Value(start, value) => Ok(Some((start, value))),
                    json::Next::Range(fault) => Err(fault),
                    json::Next::Syntax(fault) => {
                        let start = yaml_start(self.lines.text, reader.position());
                        match start {
                            Some(start) if self.number <= 1 => {
                                self.source = DocumentSource::Yaml(Chunks::new(self.lines.text, start), Some(fault));
                                continue;
                            }
                            _ => Err(fault),
                        }
                    }
                },
                DocumentSource::Yaml(chunks, not_json) => {
                    let read = match chunks.next_chunk() {
                        None => {
                            self.source = DocumentSource::End;
                            return None;
                        }
                        Some(Ok(chunk)) => read_chunk(chunk),
                        Some(Err(fault)) => Err(fault),
                    };
                    // If the text is neither valid JSON nor valid YAML, report the error at the later position.
                    match not_json.take() {
                        Some(not_json) => read.map_err(|fault| if not_json.at > fault.at { not_json } else { fault }),
                        None => read,
                    }
                }
            };
            self.number += 1;
            match read {
                Ok(None | Some((_, Value::Null))) => {}
                Ok(Some((start, value))) => {
                    return Some(Ok(Document {
                        number: self.number,
                        line: self.lines.line_of(start),
                        value,
                    }));
                }
                Err(fault) => {
                    self.source = DocumentSource::End;
                    return Some(Err(self.lines.error(self.number, fault)));
                }
            }
        }
    }
}

impl std::iter::FusedIterator for Documents<'_> {}

/// Returns the position at which reading continues as YAML after JSON has failed: after white space up to the first line break.
///
/// apimachinery examines four bytes at a time; if fewer are left, it gives up.
fn yaml_start(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let rest = &text[at..];
        let character = rest.chars().next().filter(|_| rest.len() >= 4)?;
        match character {
            // apimachinery treats it as the sign of ill-formed text.
            char::REPLACEMENT_CHARACTER => return None,
            '\n' => return Some(at + 1),
            _ if character.is_whitespace() => at += character.len_utf8(),
            _ => return Some(at),
        }
    }
}

/// Returns the text of a document and its offset in the file. go-yaml drops a byte order mark at the start of a document.
fn without_mark<'a>(chunk: &Chunk<'a>) -> (&'a str, usize) {
    let text = chunk.text.strip_prefix('\u{FEFF}').unwrap_or(chunk.text);
    (text, chunk.start + chunk.text.len() - text.len())
}

/// Parses a document. Returns its nodes, and the offset in the file of their positions; `None` after an error.
fn graph<'a>(chunk: &Chunk<'a>) -> Option<(Graph<'a>, usize)> {
    let (text, offset) = without_mark(chunk);
    let mut graph = Graph::default();
    parse::document(Scanner::new(text), &mut graph).ok()?;
    Some((graph, offset))
}

/// Reads a document. Returns its value and the position of its root node.
fn read_chunk(chunk: Chunk<'_>) -> Result<Option<(usize, Value<'_>)>, Fault> {
    let (text, offset) = without_mark(&chunk);
    let in_file = |mut fault: Fault| {
        fault.at += offset;
        fault
    };
    if let Some(at) = text::refused_character(text) {
        return Err(in_file(Fault::new(at, "the text contains a control character")));
    }
    let read = read_text(text).map_err(in_file)?;
    Ok(read.map(|(start, value)| (offset + start, value)))
}

fn read_text(text: &str) -> Result<Option<(usize, Value<'_>)>, Fault> {
    let mut builder = Builder::new();
    match parse::document(Scanner::new(text), &mut builder) {
        Ok(start) => return Ok(start.zip(builder.finish())),
        Err(Stop::Fault(fault)) => return Err(fault),
        Err(Stop::NeedsGraph) => drop(builder),
    }
    let mut graph = Graph::default();
    match parse::document(Scanner::new(text), &mut graph) {
        Ok(Some(start)) => decode::decode(&graph).map(|value| Some((start, value))),
        Ok(None) | Err(Stop::NeedsGraph) => Ok(None),
        Err(Stop::Fault(fault)) => Err(fault),
    }
}

impl LineCounter<'_> {
    fn error(&mut self, document: usize, fault: Fault) -> YamlError {
        YamlError {
            document,
            line: self.line_of(fault.at),
            message: fault.message,
        }
    }
}
