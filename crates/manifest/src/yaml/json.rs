//! Reads JSON as Go's `encoding/json` does, with the numbers of Kubernetes.

use std::borrow::Cow;

use super::Fault;
use crate::value::{Map, Value};

/// The maximum nesting depth of lists and objects; Go's limit.
pub(super) const DEPTH: usize = 10_000;

#[derive(Debug)]
pub(super) struct JsonReader<'a> {
    text: &'a str,
    at: usize,
    /// The position of a number that exceeds the range of a float. Go reports it only after the whole value is valid JSON.
    overflow: Option<usize>,
    items: Vec<Value<'a>>,
    entries: Vec<(Cow<'a, str>, Value<'a>)>,
}

/// The result of reading one value of a stream.
#[derive(Debug)]
pub(super) enum Next<'a> {
    /// A value, with its position.
    Value(usize, Value<'a>),
    /// The end: only white space was left.
    End,
    Syntax(Fault),
    /// Valid JSON with a number out of range.
    Range(Fault),
}

impl<'a> JsonReader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            overflow: None,
            items: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Returns the end of the last value that was read.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Reads the next value; on failure the reader stays at the end of the previous one.
    pub(super) fn next_document(&mut self) -> Next<'a> {
        let end_of_last = self.at;
        self.skip_space();
        if self.at == self.text.len() {
            self.at = end_of_last;
            return Next::End;
        }
        let start = self.at;
        match self.read_value(0) {
            Ok(value) => match self.overflow.take() {
                None => Next::Value(start, value),
                Some(at) => Next::Range(Fault::new(at, "this number is too large")),
            },
            Err(fault) => {
                self.at = end_of_last;
                Next::Syntax(fault)
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn fail<T>(&self, message: &'static str) -> Result<T, Fault> {
        let message = if self.at == self.text.len() {
            "the JSON text ends in the middle of a value"
        } else {
            message
        };
        Err(Fault::new(self.at, message))
    }

    fn read_value(&mut self, depth: usize) -> Result<Value<'a>, Fault> {
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => self.fail("this is not a JSON value"),
        }
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, Fault> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.fail("this is not a JSON value");
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, Fault> {
        let base = self.entries.len();
        self.collection(depth, b'}', "a \",\" or \"}\" is missing in a JSON object", |reader| {
            if reader.peek() != Some(b'"') {
                return reader.fail("a key in double quotes is missing in a JSON object");
            }
            let key = reader.string()?;
            reader.skip_space();
            if reader.peek() != Some(b':') {
                return reader.fail("a \":\" is missing after the key of a JSON object");
            }
            reader.at += 1;
            reader.skip_space();
            let value = reader.read_value(depth)?;
            reader.entries.push((key, value));
            Ok(())
        })?;
        Ok(Value::Map(Map::from_entries(self.entries.drain(base..).collect())))
    }

    fn array(&mut self, depth: usize) -> Result<Value<'a>, Fault> {
        let base = self.items.len();
        self.collection(depth, b']', "a \",\" or \"]\" is missing in a JSON list", |reader| {
            let value = reader.read_value(depth)?;
            reader.items.push(value);
            Ok(())
        })?;
        Ok(Value::List(self.items.drain(base..).collect()))
    }

    /// Reads the entries between two brackets.
    fn collection(
        &mut self,
        depth: usize,
        close: u8,
        not_continued: &'static str,
        mut read_entry: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        if depth > DEPTH {
            return self.fail("lists and mappings are nested more than 10000 deep");
        }
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.skip_space();
            read_entry(self)?;
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => break,
                _ => return self.fail(not_continued),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<Value<'a>, Fault> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return self.fail("this is not a JSON number"),
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.some_digits()?;
        }
        let text = &self.text[start..self.at];
        if whole && let Ok(value) = text.parse() {
            return Ok(Value::Int(value));
        }
        let value: f64 = text.parse().unwrap_or(f64::INFINITY);
        if value.is_infinite() {
            self.overflow.get_or_insert(start);
        }
        Ok(Value::Float(value))
    }

    fn skip_digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), Fault> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.fail("this is not a JSON number");
        }
        self.skip_digits();
        Ok(())
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.at += 1;
        let start = self.at;
        self.plain_part();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
        }
        let mut text = self.text[start..self.at].to_owned();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return self.fail("a JSON string contains a control character"),
            }
            let part = self.at;
            self.plain_part();
            text.push_str(&self.text[part..self.at]);
        }
    }

    /// Advances to a quote, a backslash, a control character or the end.
    fn plain_part(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest
            .iter()
            .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\');
        self.at += length.unwrap_or(rest.len());
    }

    fn escape(&mut self) -> Result<char, Fault> {
        self.at += 1;
        let character = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let first = self.four_hex()?;
                return Ok(self.second_half(first));
            }
            _ => return self.fail("this escape is unknown in JSON"),
        };
        self.at += 1;
        Ok(character)
    }

    fn four_hex(&mut self) -> Result<u16, Fault> {
        let Some(value) = self.hex_at(self.at) else {
            return self.fail("four hexadecimal digits are missing after \"\\u\"");
        };
        self.at += 4;
        Ok(value)
    }

    fn hex_at(&self, at: usize) -> Option<u16> {
        let digits = self.text.as_bytes().get(at..at + 4)?;
        let text = std::str::from_utf8(digits)
            .ok()
            .filter(|_| digits.iter().all(u8::is_ascii_hexdigit))?;
        u16::from_str_radix(text, 16).ok()
    }

    /// Decodes an escape; an unpaired surrogate becomes U+FFFD.
    fn second_half(&mut self, first: u16) -> char {
        if let Some(character) = char::from_u32(u32::from(first)) {
            return character;
        }
        if self.text.as_bytes()[self.at..].starts_with(b"\\u")
            && let Some(second) = self.hex_at(self.at + 2)
            && let Some(Ok(character)) = char::decode_utf16([first, second]).next()
        {
            self.at += 6;
            return character;
        }
        char::REPLACEMENT_CHARACTER
    }
}
