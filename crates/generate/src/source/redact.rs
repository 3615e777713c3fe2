//! Removes the values of Secrets from the messages of helm and kustomize.
//!
//! A tool quotes what it fails on: a value as a template passes it to `fail`, a literal of a generator, a node of a patch. Users who
//! see the Application's message need not be able to read the repository. So this module collects the texts from which a Secret of
//! the source may get its values, and replaces each of them in the message: as it is, in base64, with the escapes of Go, JSON and
//! URLs, and with other white space. It cannot recognize what a template computes from a value.

use crate::discover::KUSTOMIZATION_FILES;
use base64::engine::{Engine, general_purpose::STANDARD as BASE64};
use flate2::read::MultiGzDecoder;
use manifest::text::{decode_base64, shortened};
use manifest::value::Value;
use manifest::yaml;
use memchr::memmem;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::hash::BuildHasher as _;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// The text in place of a value.
const HIDDEN: &str = "[hidden]";

/// The message of a tool whose source is too large to search.
const TOO_LARGE: &str = "its message is hidden, because the source is too large to find values of Secrets in it: run the tool in a checkout";

/// The maximum number of bytes of all files and values.
const MAX_SIZE: usize = 64 << 20;

/// The maximum number of bytes of a message: more than are shown.
const MAX_MESSAGE: usize = 16 << 10;

/// The maximum product of the bytes of a message and the number of values that may be in it: each is searched in the whole message.
const MAX_COMPARISONS: usize = 200 << 20;

/// The minimum length of a value, in letters and digits.
const MIN_LENGTH: usize = 3;

/// The length from which a value, or the start of one, is recognized within a word.
const MIN_START: usize = 8;

/// The length from which any part of a value is recognized.
const MIN_PART: usize = 12;

/// The first bytes of a compressed file.
const GZIP: &[u8] = &[0x1f, 0x8b, 8];
/// The maximum number of archives within archives. A chart has some; a hostile one would have a mark every three bytes, of which each
/// is a header to read.
const MAX_ARCHIVES: usize = 1_000;

/// The number of levels of packaged charts in a packaged chart that are searched.
const ARCHIVES: u8 = 3;

/// The keys whose values are names.
const PUBLIC_KEYS: [&str; 14] = [
    "apiVersion",
    "kind",
    "name",
    "namespace",
    "nameSuffix",
    "namePrefix",
    "type",
    "op",
    "path",
    "from",
    "fieldPath",
    "group",
    "version",
    "behavior",
];

/// Words of the messages of both tools. A value that is one of them is not recognized.
const VOCABULARY: &str = include_str!("tool_words.txt");

/// The functions of templates whose literal arguments are messages or names of templates.
const PUBLIC_FUNCTIONS: [&str; 6] = ["block", "define", "fail", "include", "required", "template"];

pub(super) struct Inputs {
    pub(super) folder: PathBuf,
    pub(super) repository: PathBuf,
    /// The folder of fetched bases and charts.
    pub(super) fetched: Option<PathBuf>,
    /// Its arguments, among them value files and parameters.
    pub(super) arguments: Vec<OsString>,
    /// Its standard input.
    pub(super) input: Option<String>,
}

/// Returns the message of a tool without values of Secrets.
pub(super) fn without_secrets(message: &str, inputs: &Inputs) -> String {
    if message.trim().is_empty() {
        return message.to_owned();
    }
    let message = &*shortened(message, MAX_MESSAGE);
    let searched = without_nodes(message);
    let mut texts = Texts::of_message(&searched);
    texts.read_inputs(inputs);
    if texts.is_too_large() {
        return TOO_LARGE.to_owned();
    }
    if !texts.has_secrets {
        return message.to_owned();
    }
    if texts.has_too_many_values() {
        return TOO_LARGE.to_owned();
    }
    let message = searched;
    let ranges = texts.found_in(&message);
    let mut safe = String::with_capacity(message.len());
    let mut at = 0;
    for range in ranges {
        safe.push_str(&message[at..range.start]);
        safe.push_str(HIDDEN);
        at = range.end;
    }
    safe.push_str(&message[at..]);
    safe
}

/// Returns kustomize's message without the text of a YAML node, which a transformer may have computed from a Secret.
fn without_nodes(message: &str) -> String {
    const NODE: &str = "node contents:";
    match message.find(NODE) {
        Some(at) => format!("{} {HIDDEN}\n", &message[..at + NODE.len()]),
        None => message.to_owned(),
    }
}

/// The texts that may be values of Secrets.
#[derive(Default)]
struct Texts {
    /// Those that may be in the message, each once.
    values: Vec<String>,
    /// The hashes of all of them, to search each once: very many texts of a large source are in no message.
    known: HashSet<u64>,
    /// The message that they are searched in.
    message: MessageIndex,
    /// Names and keys, in lower case, by their letters and digits.
    public: HashSet<String>,
    has_secrets: bool,
    size: usize,
    /// The number of archives within archives.
    archives: usize,
}

impl Texts {
    /// Creates the texts to search in this message.
    fn of_message(message: &str) -> Self {
        Self {
            message: MessageIndex::new(message),
            ..Self::default()
        }
    }

    fn read_inputs(&mut self, inputs: &Inputs) {
        self.public.extend(VOCABULARY.split_whitespace().map(str::to_owned));
        let mut files = HashSet::new();
        let fetched = inputs.fetched.as_ref().and_then(|folder| folder.canonicalize().ok());
        let mut folders: Vec<_> = fetched.iter().chain([&inputs.folder]).cloned().collect();
        // The folder itself, if the repository is not known: never the root of the file system, with devices that are never read to the
        // end.
        let repository = inputs
            .repository
            .canonicalize()
            .ok()
            .filter(|root| root.parent().is_some());
        let Some(repository) = repository.or_else(|| inputs.folder.canonicalize().ok()) else {
            return;
        };
        for argument in &inputs.arguments {
            let text = argument.to_string_lossy();
            let value = text.split_once('=').map(|(_, value)| value);
            let path = inputs.folder.join(value.unwrap_or(&text));
            if path.is_file() && is_inside(&path, &repository) {
                self.file(&path, &mut files, &mut folders);
            } else if let Some(value) = value {
                self.add_lines(value, false);
            }
        }
        if let Some(input) = &inputs.input {
            self.add_file_text("values.yaml", input);
        }
        let mut walked = HashSet::new();
        while let Some(folder) = folders.pop() {
            let Ok(folder) = folder.canonicalize() else { continue };
            let is_walked = folder.ancestors().any(|above| walked.contains(above));
            let mut roots = fetched.iter().chain([&repository]);
            if is_walked || !roots.any(|root| folder.starts_with(root)) {
                continue;
            }
            let entries = WalkDir::new(&folder).into_iter();
            for entry in entries.filter_entry(|entry| entry.file_name() != ".git").flatten() {
                if entry.path().is_file() {
                    self.file(entry.path(), &mut files, &mut folders);
                } else if entry.path_is_symlink() {
                    folders.push(entry.into_path());
                }
            }
            walked.insert(folder);
        }
    }

    /// Reads a file once, and notes the folders that it names if it is a kustomization.
    fn file(&mut self, path: &Path, files: &mut HashSet<PathBuf>, folders: &mut Vec<PathBuf>) {
        let Ok(path) = path.canonicalize() else { return };
        if self.is_too_large() || !files.insert(path.clone()) {
            return;
        }
        for part in &path {
            self.add_public(&part.to_string_lossy());
        }
        let Ok(mut file) = File::open(&path) else { return };
        let name = path.to_string_lossy();
        if name.ends_with(".tgz") {
            return self.archive(&mut file, ARCHIVES);
        }
        let Some(text) = self.content(&mut file) else { return };
        self.add_file_text(&name, &text);
        if KUSTOMIZATION_FILES.iter().any(|file| path.ends_with(file)) {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let is_between_words = |char: char| char.is_whitespace() || "[]{},\"'=".contains(char);
            let names = text.split(is_between_words).filter(|word| word.contains(".."));
            for named in names.map(|word| folder.join(word)) {
                if named.is_dir() {
                    folders.push(named);
                } else if named.is_file() {
                    // Its folder may hold the files that it names in turn.
                    folders.extend(named.parent().map(Path::to_owned));
                }
            }
        }
    }

    /// Reads the texts of a packaged chart, and of `depth` levels of charts in it. It does not read the archive as Helm does: texts are
    /// what is between NUL bytes, which pad the headers and the ends of files. So no form of an archive hides a file. Helm reports an
    /// archive that is not one.
    fn archive(&mut self, packed: &mut dyn Read, depth: u8) {
        let mut bytes = Vec::new();
        // An error, as at the end of an archive within another, leaves what was read before it.
        let _ = MultiGzDecoder::new(packed).take(self.rest()).read_to_end(&mut bytes);
        self.size += bytes.len();
        if depth > 0 {
            for at in memmem::find_iter(&bytes, GZIP) {
                self.archives += 1;
                if self.is_too_large() {
                    break;
                }
                self.archive(&mut &bytes[at..], depth - 1);
            }
        }
        if self.is_too_large() {
            return;
        }
        for text in bytes.split(|byte| *byte == 0) {
            let text = String::from_utf8_lossy(text);
            if text.contains('\n') {
                self.has_secrets |= mentions_secrets(&text);
                self.document(&text, true);
                self.document(&text, false);
            }
        }
    }

    /// Returns the text of a file; `None` for a binary file, or for one that is too large.
    fn content(&mut self, file: &mut impl Read) -> Option<String> {
        let mut bytes = Vec::new();
        let read: io::Result<usize> = file.take(self.rest()).read_to_end(&mut bytes);
        if read.is_err() || memchr::memchr(0, &bytes).is_some() {
            return None;
        }
        self.size += bytes.len();
        (!self.is_too_large()).then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the number of bytes to read: one more than are searched.
    fn rest(&self) -> u64 {
        (MAX_SIZE + 1).saturating_sub(self.size) as u64
    }

    fn is_too_large(&self) -> bool {
        self.size > MAX_SIZE || self.archives > MAX_ARCHIVES
    }

    fn has_too_many_values(&self) -> bool {
        self.values.len().saturating_mul(self.message.length) > MAX_COMPARISONS
    }

    /// Adds the values in the text of a file.
    fn add_file_text(&mut self, path: &str, text: &str) {
        let name = path.rsplit('/').next().unwrap_or(path);
        if matches!(name, "Chart.yaml" | "Chart.lock" | "values.schema.json") || is_documentation(name) {
            if name == "Chart.yaml" {
                self.add_names(text);
            }
            return;
        }
        self.has_secrets |= mentions_secrets(text);
        let is_template = path.contains("templates/");
        let is_yaml = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        let is_manifest = |text: &str| {
            text.lines()
                .any(|line| line.trim_start_matches(['-', ' ', '{', '"']).starts_with("kind"))
        };
        let is_kustomization = KUSTOMIZATION_FILES.contains(&name);
        if !(is_template || is_kustomization || is_yaml && is_manifest(text)) {
            if !is_yaml {
                self.add(text);
            }
            return self.document(text, false);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let end = memmem::find(rest.as_bytes(), b"\n---").map_or(rest.len(), |at| at + 1);
            let (document, after) = rest.split_at(end);
            if is_kustomization || document.contains("Secret") || (is_template && !is_manifest(document)) {
                self.document(document, is_template);
            } else {
                self.add_names(document);
            }
            rest = after;
        }
    }

    fn document(&mut self, text: &str, is_template: bool) {
        self.add_names(text);
        self.add_lines(text, is_template);
        if !is_template {
            for document in yaml::documents(text).map_while(Result::ok) {
                self.add_value(&document.value);
            }
        }
    }

    /// Adds the keys of all lines, and the values of keys that are names.
    fn add_names(&mut self, text: &str) {
        for line in text.lines() {
            if let Some((key, value)) = key_and_value(line) {
                self.add_public(key);
                if PUBLIC_KEYS.contains(&key) {
                    self.add_public(value);
                }
            }
        }
    }

    fn add_public(&mut self, name: &str) {
        self.public.insert(letters(name));
    }

    /// Adds the values of each line. The text need not be YAML, and may be a template.
    fn add_lines(&mut self, text: &str, is_template: bool) {
        for line in text.lines() {
            let mut rest = line;
            while is_template && let Some((before, after)) = rest.split_once("{{") {
                self.add_line(before);
                let (action, after) = after.split_once("}}").unwrap_or((after, ""));
                self.add_literals(action);
                rest = after;
            }
            self.add_line(rest);
        }
    }

    fn add_line(&mut self, line: &str) {
        let line = line.trim();
        if line.starts_with('#') {
            return;
        }
        let value = match key_and_value(line) {
            Some((key, _)) if PUBLIC_KEYS.contains(&key) => return,
            Some((_, value)) => value,
            None => line.trim_start_matches("- "),
        };
        for value in [Some(value), value.split_once(" #").map(|(value, _)| value)]
            .into_iter()
            .flatten()
        {
            self.add(value);
            if let Some((_, value)) = value.split_once('=') {
                self.add(value);
            }
        }
        // The entries of a mapping or list on one line, and the parts of text that look like a password.
        for part in value.split(['{', '}', '[', ']', ',', '"', '\'']) {
            let part = part.split_once(": ").map_or(part, |(_, value)| value);
            self.add(part);
        }
        for word in value.split([' ', ',', ';', '=', ':', '@', '/', '"', '\'']) {
            if is_random(word) {
                self.add(word);
            }
        }
    }

    /// Adds the literals in an action of a template.
    fn add_literals(&mut self, action: &str) {
        let has = |function: &str| {
            action
                .split(|char: char| !char.is_alphanumeric())
                .any(|word| word == function)
        };
        if PUBLIC_FUNCTIONS.iter().any(|function| has(function)) {
            for name in action.split(['"', '`']).skip(1).step_by(2) {
                self.add_public(name);
            }
            return;
        }
        action
            .split(['"', '`', '\''])
            .skip(1)
            .step_by(2)
            .for_each(|literal| self.add(literal));
    }

    fn add_value(&mut self, value: &Value<'_>) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Int(number) => self.add(&number.to_string()),
            Value::Float(number) => self.add(&number.to_string()),
            Value::String(text) => {
                self.add(text);
                if text.lines().count() > 1 {
                    self.add_lines(text, false);
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.add_value(item)),
            Value::Map(fields) => fields
                .iter()
                .filter(|(key, _)| !PUBLIC_KEYS.contains(key))
                .for_each(|(_, value)| self.add_value(value)),
        }
    }

    /// Adds a value, and the text that it encodes.
    fn add(&mut self, value: &str) {
        let value = value.trim().trim_matches(['"', '\'']);
        if value.len() < MIN_LENGTH || self.is_too_large() || !self.known.insert(self.known.hasher().hash_one(value)) {
            return;
        }
        self.size += value.len();
        if !self.has_too_many_values() && self.message.may_have(value) {
            self.values.push(value.to_owned());
        }
        let decoded = decode_base64(value).and_then(|bytes| String::from_utf8(bytes).ok());
        if let Some(text) = decoded
            && !text.contains(|char: char| char.is_control() && !char.is_whitespace())
        {
            self.add(&text);
            self.add_lines(&text, false);
        }
    }

    /// Returns the ranges of the message with values, in order and apart.
    fn found_in(&self, message: &str) -> Vec<Range<usize>> {
        let messages = [Skeleton::from_text(message, false), Skeleton::from_text(message, true)];
        let mut wanted = HashSet::new();
        let mut ranges = Vec::new();
        for value in &self.values {
            let forms = [letters(value), Skeleton::from_text(value, true).text];
            if forms[0].is_empty() {
                ranges.extend(
                    message
                        .match_indices(value.as_str())
                        .map(|(at, matched)| at..at + matched.len()),
                );
            }
            // A number of few digits is as likely a line or a port.
            let is_short_number = value.len() < 4 && value.bytes().all(|byte| byte.is_ascii_digit());
            if is_short_number || forms.iter().any(|form| self.public.contains(form)) {
                continue;
            }
            wanted.extend(forms);
            wanted.extend(in_base64(value));
        }
        wanted.retain(|form| form.chars().nth(MIN_LENGTH - 1).is_some());
        for skeleton in &messages {
            let parts = skeleton.find_parts(&wanted);
            ranges.extend(parts.into_iter().filter(|range| !self.is_public(message, range)));
            for form in &wanted {
                let matches = skeleton.find(form, message).into_iter();
                ranges.extend(matches.filter(|range| {
                    let words = words_around(message, range);
                    words == *range || !self.is_public(message, &words)
                }));
            }
        }
        ranges.extend(self.parts_in(message, &wanted));
        let mut ranges: Vec<_> = ranges
            .into_iter()
            .map(|range| with_punctuation(message, range))
            .collect();
        ranges.sort_by_key(|range| range.start);
        let mut apart: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match apart.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => apart.push(range),
            }
        }
        apart
    }

    /// Returns true if all words of the message in a range are names, keys or words of the tools. So a name that begins like a value
    /// is shown, as in a list of missing charts.
    fn is_public(&self, message: &str, range: &Range<usize>) -> bool {
        let words = message[words_around(message, range)].split(|char| !is_of_word(char));
        let mut skeletons = words.map(letters).filter(|text| !text.is_empty());
        skeletons.all(|text| self.public.contains(&text))
    }

    /// Returns the ranges of words that are parts of a value: shortened ones, and lines of base64.
    fn parts_in(&self, message: &str, wanted: &HashSet<String>) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        for (at, word) in words_of_values(message) {
            let Skeleton { text, ranges: letters } = Skeleton::from_text(word, false);
            let is_part = || {
                wanted
                    .iter()
                    .any(|form| form.len() > text.len() && form.contains(&text))
            };
            if !self.public.contains(&text) && is_part() {
                ranges.push(at + letters[0].start..at + letters[letters.len() - 1].end);
            }
        }
        ranges
    }
}

/// Returns the words of a message that may be parts of values, with their positions: shortened ones, and those that look like passwords.
fn words_of_values(message: &str) -> impl Iterator<Item = (usize, &str)> {
    let words = message.split_whitespace();
    let words = words.map(|word| (word.as_ptr() as usize - message.as_ptr() as usize, word));
    words.filter(|(_, word)| {
        let is_shortened = word.contains("...") || word.contains('…');
        is_random(word) || is_shortened && letters(word).len() >= MIN_LENGTH
    })
}

/// The short sequences of bytes in a message. A text that has none of them is not in the message, as most texts of a source.
#[derive(Default)]
struct MessageIndex {
    /// The number of bytes of the message.
    length: usize,
    /// The sequences of [`MIN_LENGTH`] to [`MIN_START`] bytes of the message, and of its letters and digits.
    sequences: HashSet<u64>,
    /// The short words of it that may be parts of values.
    words: HashSet<u64>,
}

impl MessageIndex {
    fn new(message: &str) -> Self {
        let mut index = Self {
            length: message.len(),
            ..Self::default()
        };
        for text in [message, &letters(message), &Skeleton::from_text(message, true).text] {
            for length in MIN_LENGTH..=MIN_START {
                index.sequences.extend(text.as_bytes().windows(length).map(pack_bytes));
            }
        }
        let words = words_of_values(message).map(|(_, word)| letters(word));
        let words = words.filter(|word| word.len() < MIN_START);
        index.words = words.map(|word| pack_bytes(word.as_bytes())).collect();
        index
    }

    /// Returns false if the message certainly has neither the value nor a part of it, in any form.
    fn may_have(&self, value: &str) -> bool {
        let plain = letters(value);
        if plain.is_empty() {
            return self.has_start(value.as_bytes());
        }
        let decoded = || {
            value
                .contains(['\\', '%'])
                .then(|| Skeleton::from_text(value, true).text)
        };
        self.has_part(&plain)
            || decoded().is_some_and(|form| self.has_part(&form))
            || in_base64(value).iter().any(|form| self.has_part(form))
    }

    /// Returns true if the message has the start of a text, or a short text as a whole.
    fn has_start(&self, text: &[u8]) -> bool {
        self.sequences.contains(&pack_bytes(&text[..text.len().min(MIN_START)]))
    }

    /// Returns true if the message has a part of a form of a value that [`Texts::found_in`] recognizes.
    fn has_part(&self, form: &str) -> bool {
        let form = form.as_bytes();
        let has_sequence = form.len() < MIN_START && self.has_start(form)
            || form
                .windows(MIN_START)
                .any(|part| self.sequences.contains(&pack_bytes(part)));
        let mut lengths = 1..MIN_START;
        has_sequence
            || !self.words.is_empty()
                && lengths.any(|length| form.windows(length).any(|part| self.words.contains(&pack_bytes(part))))
    }
}

/// Returns at most eight bytes as a number.
fn pack_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Returns the letters and digits of a text, in lower case: as its [`Skeleton`], without the ranges, which need far more memory.
fn letters(text: &str) -> String {
    let letters = text.chars().filter(|char| char.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

fn mentions_secrets(text: &str) -> bool {
    text.to_ascii_lowercase().contains("secret")
}

/// The letters and digits of a text, in lower case.
struct Skeleton {
    text: String,
    /// The range of the original text for each byte.
    ranges: Vec<Range<usize>>,
}

impl Skeleton {
    /// `decode` replaces the escapes of Go, JSON and URLs.
    fn from_text(original: &str, decode: bool) -> Self {
        let mut skeleton = Self {
            text: String::new(),
            ranges: Vec::new(),
        };
        let mut at = 0;
        while let Some(char) = original[at..].chars().next() {
            let (char, length) = match decode.then(|| escape(&original[at..])).flatten() {
                Some(decoded) => decoded,
                None => (char, char.len_utf8()),
            };
            if char.is_alphanumeric() {
                skeleton.text.extend(char.to_lowercase());
                skeleton.ranges.resize(skeleton.text.len(), at..at + length);
            }
            at += length;
        }
        skeleton
    }

    /// Returns the ranges of the original text with the letters and digits of `form`: a short one as a whole word.
    fn find(&self, form: &str, original: &str) -> Vec<Range<usize>> {
        let is_word = |range: &Range<usize>| {
            let before = original[..range.start].chars().next_back();
            let after = original[range.end..].chars().next();
            let is_escape =
                original[..range.start].ends_with(['n', 't', 'r']) && original[..range.start - 1].ends_with('\\');
            (is_escape || !before.is_some_and(char::is_alphanumeric)) && !after.is_some_and(char::is_alphanumeric)
        };
        memmem::find_iter(self.text.as_bytes(), form)
            .map(|at| self.ranges[at].start..self.ranges[at + form.len() - 1].end)
            .filter(|range| form.len() >= MIN_START || is_word(range))
            .collect()
    }

    fn find_parts(&self, forms: &HashSet<String>) -> Vec<Range<usize>> {
        let mut parts: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for length in [MIN_START, MIN_PART] {
            for (at, part) in self.text.as_bytes().windows(length).enumerate() {
                parts.entry(part).or_default().push(at);
            }
        }
        let mut ranges = Vec::new();
        for form in forms.iter().map(String::as_bytes) {
            let start = form.get(..MIN_START).filter(|_| form.len() > MIN_START);
            for part in start.into_iter().chain(form.windows(MIN_PART)) {
                // Many values may have the same part.
                for at in parts.remove(part).into_iter().flatten() {
                    ranges.push(self.ranges[at].start..self.ranges[at + part.len() - 1].end);
                }
            }
        }
        ranges
    }
}

/// Returns the character of the escape at the start of the text, and its length.
fn escape(text: &str) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    let number = |digits: Range<usize>| u32::from_str_radix(text.get(digits)?, 16).ok();
    match (bytes[0], bytes.get(1)?) {
        (b'%', _) => {
            let mut decoded = Vec::new();
            while decoded.len() < 4 && bytes.get(decoded.len() * 3) == Some(&b'%') {
                let start = decoded.len() * 3;
                decoded.push(u8::try_from(number(start + 1..start + 3)?).ok()?);
                if let Ok(text) = std::str::from_utf8(&decoded) {
                    return Some((text.chars().next()?, decoded.len() * 3));
                }
            }
            None
        }
        (b'\\', b'x') => Some((char::from_u32(number(2..4)?)?, 4)),
        (b'\\', b'u') => Some((char::from_u32(number(2..6)?)?, 6)),
        (b'\\', b'U') => Some((char::from_u32(number(2..10)?)?, 10)),
        (b'\\', b'n' | b't' | b'r' | b'a' | b'b' | b'f' | b'v' | b'0') => Some((' ', 2)),
        (b'\\', _) => Some(('\\', 1)),
        _ => None,
    }
}

/// Returns the letters and digits of the value in base64, at each of the three positions in a longer text.
fn in_base64(value: &str) -> Vec<String> {
    let encoded = |before: usize| {
        let bytes = [&[0; 2][..before], value.as_bytes()].concat();
        let text = BASE64.encode(&bytes);
        // The first and last characters depend on the adjacent bytes.
        let end = if before == 0 { text.len() } else { bytes.len() / 3 * 4 };
        let start = [0, 2, 3][before].min(end);
        letters(&text[start..end])
    };
    let whole_groups = letters(&BASE64.encode(&value.as_bytes()[..value.len() / 3 * 3]));
    [encoded(0), encoded(1), encoded(2), whole_groups]
        .into_iter()
        .filter(|form| form.len() >= 4)
        .collect()
}

/// Returns the key and the value of a line of YAML or JSON, or of `KEY=value`.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_start_matches("- ").trim_start_matches('{');
    let end = line
        .find(": ")
        .or_else(|| line.strip_suffix(':').map(str::len))
        .or_else(|| line.find('='))?;
    let key = line[..end].trim().trim_matches(['"', '\'']);
    let is_name = |char: char| char.is_alphanumeric() || "-_./$".contains(char);
    key.chars().all(is_name).then(|| (key, line[end + 1..].trim()))
}

/// Returns true if the word looks like a password: letters and digits mixed.
fn is_random(word: &str) -> bool {
    let has = |class: fn(char) -> bool| word.contains(class);
    word.len() >= 6 && has(char::is_numeric) && has(char::is_alphabetic)
}

/// Returns true for a character of a name.
fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || "-_.".contains(char)
}

/// Returns the range of the whole words that a range of a message is in.
fn words_around(message: &str, range: &Range<usize>) -> Range<usize> {
    let before = message[..range.start].trim_end_matches(is_of_word);
    let after = message[range.end..].trim_start_matches(is_of_word);
    before.len()..message.len() - after.len()
}

fn is_documentation(name: &str) -> bool {
    matches!(name, "LICENSE" | ".helmignore") || Path::new(name).extension().is_some_and(|extension| extension == "md")
}

fn is_inside(path: &Path, repository: &Path) -> bool {
    path.canonicalize().is_ok_and(|path| path.starts_with(repository))
}

/// Extends a range by adjacent characters that may belong to a value, such as `!`.
fn with_punctuation(message: &str, mut range: Range<usize>) -> Range<usize> {
    let belongs =
        |char: &char| !char.is_alphanumeric() && !char.is_whitespace() && !"'\"`()[]{}<>,;:.\\".contains(*char);
    while let Some(char) = message[..range.start].chars().next_back().filter(belongs) {
        range.start -= char.len_utf8();
    }
    while let Some(char) = message[range.end..].chars().next().filter(belongs) {
        let escaped = escape(&message[range.end..]).filter(|(decoded, _)| !decoded.is_alphanumeric());
        range.end += escaped.map_or(char.len_utf8(), |(_, length)| length);
    }
    range
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    fn texts(files: &[(&str, &str)], message: &str) -> Texts {
        let mut texts = Texts::of_message(message);
        texts.public.extend(VOCABULARY.split_whitespace().map(str::to_owned));
        for (file, text) in files {
            texts.add_file_text(file, text);
        }
        texts
    }

    fn hidden(files: &[(&str, &str)], message: &str) -> String {
        let texts = texts(files, message);
        let mut safe = message.to_owned();
        for range in texts.found_in(message).into_iter().rev() {
            safe.replace_range(range, HIDDEN);
        }
        safe
    }

    #[test]
    fn hides_a_value_in_each_form() {
        let files = [("values.yaml", "db: {password: 'pä<s$ w0rd!'}\npin: abc\n")];
        for (message, expected) in [
            ("bad: pä<s$ w0rd!", "bad: [hidden]"),
            ("bad: \"pä\\u003cs$ w0rd!\"", "bad: \"[hidden]\""),
            ("bad: p%C3%A4%3Cs%24+w0rd%21.", "bad: [hidden]."),
            ("bad: PÄ<S$\n  W0RD! x", "bad: [hidden] x"),
            ("bad: cMOkPHMkIHcwcmQh", "bad: [hidden]"),
            ("bad: abc, abcd", "bad: [hidden], abcd"),
            ("bad: \"x\\nabc\"", "bad: \"x\\n[hidden]\""),
        ] {
            assert_eq!(hidden(&files, message), expected);
        }
    }

    #[test]
    fn hides_parts_of_long_values() {
        let value = "x1".repeat(100);
        let files = [("token.txt", &*value)];
        let lines: Vec<String> = BASE64
            .encode(&value)
            .as_bytes()
            .chunks(70)
            .map(|line| String::from_utf8_lossy(line).into())
            .collect();
        assert!(!hidden(&files, &lines.join("\n  ")).contains("eDF4"), "wrapped base64");
        assert_eq!(
            hidden(&files, "cannot unmarshal !!str `x1x1x1x...` into int"),
            "cannot unmarshal !!str `[hidden]...` into int"
        );
        let secret = format!("kind: Secret\ndata:\n  a: |\n    {}", lines.join("\n    "));
        assert_eq!(
            hidden(&[("secret.yaml", &*secret)], &value),
            "[hidden]",
            "wrapped base64"
        );
        let user = BASE64.encode(format!("user:{value}"));
        assert!(
            !hidden(&files, &user).contains("eDF4eDF4eDF4"),
            "{}",
            hidden(&files, &user)
        );
    }

    #[test]
    fn archive_of_many_marks_of_archives_is_too_large() {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed
            .write_all(&GZIP.repeat(MAX_ARCHIVES + 1))
            .expect("it is in memory");
        let packed = packed.finish().expect("it is in memory");
        let mut texts = Texts::default();
        texts.archive(&mut &*packed, 3);
        assert!(texts.is_too_large());
    }

    #[test]
    fn reads_no_more_than_can_be_searched() {
        let mut texts = Texts {
            size: MAX_SIZE - 6,
            ..Texts::of_message("password")
        };
        assert_eq!(texts.content(&mut &b"secret"[..]).as_deref(), Some("secret"));
        assert!(!texts.is_too_large());
        assert_eq!(texts.content(&mut &b"secret"[..]), None);
        assert!(texts.is_too_large());
        texts.add("password");
        assert!(texts.values.is_empty());
    }

    /// Very many values would take the time and the memory of all renderings.
    #[test]
    fn compares_only_values_that_may_be_in_the_message() {
        let lines = |prefix: &str| {
            (0..20_000)
                .map(|at| format!("- {prefix}{at}\n"))
                .collect::<Vec<_>>()
                .concat()
        };
        let message = "abcdefgh ".repeat(1_000);
        let others = lines("other-word-");
        assert!(texts(&[("values.yaml", &others)], &message).values.is_empty());
        let folder = tempfile::TempDir::new().expect("a scratch folder");
        std::fs::write(folder.path().join("secret.yaml"), lines("abcdefgh")).expect("a file");
        let inputs = Inputs {
            fetched: None,
            folder: folder.path().to_owned(),
            repository: folder.path().to_owned(),
            arguments: Vec::new(),
            input: Some("secret: abcdefgh".to_owned()),
        };
        assert_eq!(without_secrets(&message.repeat(3), &inputs), TOO_LARGE);
        assert_eq!(without_secrets("bad: abcdefgh7", &inputs), "bad: [hidden]");
    }

    #[test]
    fn reads_bases_that_are_links_or_fetched() {
        let scratch = tempfile::TempDir::new().expect("a scratch folder");
        let [app, base, fetched] = ["repository/app", "repository/base", "fetched/base"].map(|path| {
            let folder = scratch.path().join(path);
            std::fs::create_dir_all(&folder).expect("a folder");
            folder
        });
        std::os::unix::fs::symlink("../base", app.join("link")).expect("a link");
        std::fs::write(
            base.join("secret.yaml"),
            "kind: Secret\nstringData: {a: of-the-base-7}\n",
        )
        .expect("a file");
        std::fs::write(
            fetched.join("secret.yaml"),
            "kind: Secret\nstringData: {a: fetched-value-8}\n",
        )
        .expect("a file");
        let inputs = Inputs {
            fetched: Some(scratch.path().join("fetched")),
            folder: app,
            repository: scratch.path().join("repository"),
            arguments: Vec::new(),
            input: None,
        };
        assert_eq!(
            without_secrets("bad: of-the-base-7 fetched-value-8", &inputs),
            "bad: [hidden] [hidden]"
        );
    }

    #[test]
    fn keeps_names_keys_and_words_of_the_tools() {
        let template = "kind: Secret\nmetadata: {}\nname: shop\nstringData:\n  password: shop\n  a: string\n  b: {{ required \"set auth.password\" .Values.x }}\n";
        let message = "execution error at (shop/templates/secret.yaml:7:8): set auth.password: got string";
        assert_eq!(hidden(&[("templates/secret.yaml", template)], message), message);
    }

    #[test]
    fn keeps_a_name_that_begins_like_a_value() {
        let values = "secret: shop-api-controller-x\nother: shop-api\n";
        let chart = "dependencies:\n- name: shop-api-server\n  version: 1.0.0\n";
        let files = [("values.yaml", values), ("Chart.yaml", chart)];
        assert_eq!(
            hidden(&files, "missing: shop-api-server, shop-api-contro, shop-api"),
            "missing: shop-api-server, [hidden], [hidden]"
        );
    }

    #[test]
    fn hides_literals_of_templates() {
        let template = "kind: Secret\nstringData:\n  a: tiger-{{ \"lion\" | upper }}\n";
        assert_eq!(
            hidden(&[("templates/secret.yaml", template)], "at <\"lion\">: tiger-LION"),
            "at <\"[hidden]\">: [hidden]"
        );
    }
}
