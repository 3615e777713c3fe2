//! Scans text to tokens as go-yaml v2's scanner does, including its errors.
//!
//! YAML distinguishes a mapping from a scalar only by the `:` after the key. So the scanner records each token that may start a
//! key, and holds it back until a `:` follows or is no longer possible: a key ends on the line it starts on, and within 1,024
//! characters.

mod block;
mod key;
mod plain;
mod property;
mod quoted;

use std::collections::VecDeque;

use super::Fault;
use super::json::DEPTH;
use super::resolve::ScalarStyle;
use super::token::{Token, TokenKind};
use key::KeyLevel;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate state")]
pub(super) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line_start: usize,
    /// A byte position in the current line, and the number of characters before it on that line.
    counted: (usize, usize),
    ascii: bool,
    /// True if LF is the only line break in this text.
    simple_lines: bool,
    /// True if a final line break is still to be added. Go adds one to a text without it.
    break_to_come: bool,
    queue: VecDeque<Token<'a>>,
    /// The number of tokens taken.
    taken: usize,
    /// The first column of the innermost block; 0 outside of all blocks.
    margin: usize,
    margins: Vec<usize>,
    /// One entry for the block context and one for every open bracket.
    levels: Vec<KeyLevel>,
    /// True if a key may start here.
    key_allowed: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let ascii = bytes.is_ascii();
        let odd_break = |text| memchr::memmem::find(bytes, text).is_some();
        let simple_lines = memchr::memchr(b'\r', bytes).is_none()
            && (ascii || !(odd_break(b"\xC2\x85") || odd_break(b"\xE2\x80\xA8") || odd_break(b"\xE2\x80\xA9")));
        Self {
            text,
            bytes,
            at: 0,
            line_start: 0,
            counted: (0, 0),
            ascii,
            simple_lines,
            break_to_come: !bytes.ends_with(b"\n"),
            queue: VecDeque::with_capacity(8),
            taken: 0,
            margin: 0,
            margins: Vec::with_capacity(16),
            levels: vec![KeyLevel {
                candidate: None,
                last: 0,
            }],
            key_allowed: true,
        }
    }

    #[inline]
    pub(super) fn peek(&mut self) -> Result<&TokenKind<'a>, Fault> {
        if self.queue.front().is_none_or(|token| token.key_level > 0) {
            self.fill()?;
        }
        Ok(&self.queue[0].kind)
    }

    /// Reads tokens until it is known whether the first starts a key.
    fn fill(&mut self) -> Result<(), Fault> {
        loop {
            if let Some(token) = self.queue.front() {
                let level = token.key_level.checked_sub(1).and_then(|level| self.levels.get(level));
                match level.and_then(|level| level.candidate) {
                    Some(candidate)
                        if candidate.number == self.taken && candidate.kept_back && self.is_valid(candidate)? => {}
                    _ => return Ok(()),
                }
            }
            self.fetch()?;
        }
    }

    /// Takes the next token, which must have been peeked.
    pub(super) fn take(&mut self) -> Token<'a> {
        self.taken += 1;
        self.queue.pop_front().unwrap_or(Token {
            at: self.at,
            kind: TokenKind::End,
            key_level: 0,
        })
    }

    /// Returns the position of the next token.
    pub(super) fn position(&self) -> usize {
        self.queue.front().map_or(self.at, |token| token.at)
    }

    fn fault<T>(&self, message: &'static str) -> Result<T, Fault> {
        Err(Fault::new(self.at, message))
    }

    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn in_flow(&self) -> bool {
        self.levels.len() > 1
    }

    /// Returns the column: the number of characters before the current position on its line.
    fn column(&mut self) -> usize {
        if self.ascii {
            return self.at - self.line_start;
        }
        let (from, before) = if self.counted.0 >= self.line_start {
            self.counted
        } else {
            (self.line_start, 0)
        };
        let column = before + characters(&self.bytes[from..self.at]);
        self.counted = (self.at, column);
        column
    }

    /// Returns the length in bytes of the line break at a position; 0 if there is none.
    ///
    /// A CR before CR LF has no effect: the splitter drops one CR, and go-yaml reads the other two as one break.
    fn break_length(&self, at: usize) -> usize {
        match self.bytes.get(at) {
            Some(b'\n') => 1,
            Some(b'\r') => match self.bytes[at + 1..] {
                [b'\n', ..] => 2,
                [b'\r', b'\n', ..] => 3,
                _ => 1,
            },
            Some(0xC2) if self.bytes[at + 1] == 0x85 => 2,
            Some(0xE2) if self.bytes[at + 1] == 0x80 && matches!(self.bytes[at + 2], 0xA8 | 0xA9) => 3,
            _ => 0,
        }
    }

    /// Advances past a line break, if there is one. Returns the text that a scalar keeps of it.
    fn take_break(&mut self) -> Option<&'a str> {
        let length = self.break_length(self.at);
        if length == 0 {
            if self.at == self.bytes.len() && self.break_to_come {
                self.break_to_come = false;
                self.line_start = self.at;
                return Some("\n");
            }
            return None;
        }
        let start = self.at;
        self.at += length;
        self.line_start = self.at;
        if self.at == self.bytes.len() && self.bytes[start] == b'\r' {
            self.break_to_come = false;
        }
        Some(if self.bytes[start] == 0xE2 {
            &self.text[start..self.at]
        } else {
            "\n"
        })
    }

    fn is_blank(&self, at: usize) -> bool {
        matches!(self.bytes.get(at), Some(b' ' | b'\t'))
    }

    /// Returns true if white space or the end is at a position.
    fn is_space(&self, at: usize) -> bool {
        match self.bytes.get(at) {
            None | Some(b' ' | b'\t' | b'\n' | b'\r') => true,
            Some(0xC2 | 0xE2) => self.break_length(at) > 0,
            _ => false,
        }
    }

    /// Returns true if `---` or `...` is alone at the start of this line.
    fn at_document_mark(&self) -> bool {
        self.at == self.line_start
            && matches!(self.bytes.get(self.at..self.at + 3), Some(b"---" | b"..."))
            && self.is_space(self.at + 3)
    }

    fn skip_blanks(&mut self) {
        while self.is_blank(self.at) {
            self.at += 1;
        }
    }

    /// Advances to the end of this line, but not past its break.
    fn skip_line(&mut self) {
        if self.simple_lines {
            let rest = &self.bytes[self.at..];
            self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        } else {
            while self.at < self.bytes.len() && self.break_length(self.at) == 0 {
                self.at += 1;
            }
        }
    }

    /// Advances past white space and comments.
    fn skip_to_token(&mut self) {
        loop {
            match self.byte() {
                Some(b' ') => self.at += 1,
                Some(b'\t') if self.in_flow() || !self.key_allowed => self.at += 1,
                Some(b'#') => self.skip_line(),
                Some(b'\n' | b'\r' | 0xC2 | 0xE2) => {
                    let length = self.break_length(self.at);
                    if length == 0 {
                        return;
                    }
                    self.at += length;
                    self.line_start = self.at;
                    if !self.in_flow() {
                        self.key_allowed = true;
                    }
                }
                _ => return,
            }
        }
    }

    fn push(&mut self, at: usize, kind: TokenKind<'a>) {
        self.queue.push_back(Token { at, kind, key_level: 0 });
    }

    /// Reads one token, and adds the block tokens that it implies.
    fn fetch(&mut self) -> Result<(), Fault> {
        self.skip_to_token();
        let at = self.at;
        let column = if self.in_flow() { 0 } else { self.column() };
        self.close_blocks(column + 1);
        let Some(byte) = self.byte() else {
            self.close_blocks(0);
            self.drop_candidate()?;
            self.key_allowed = false;
            // After the end, no recorded token can become a key.
            self.line_start = usize::MAX;
            self.push(at, TokenKind::End);
            return Ok(());
        };
        if at == self.line_start {
            if byte == b'%' {
                return self.fetch_directive();
            }
            if self.at_document_mark() {
                self.close_blocks(0);
                self.drop_candidate()?;
                self.key_allowed = false;
                self.at += 3;
                self.push(
                    at,
                    if byte == b'-' {
                        TokenKind::DocumentStart
                    } else {
                        TokenKind::DocumentEnd
                    },
                );
                return Ok(());
            }
        }
        match byte {
            b'[' => self.open_bracket(TokenKind::FlowList, column),
            b'{' => self.open_bracket(TokenKind::FlowMap, column),
            b']' => self.close_bracket(TokenKind::FlowListEnd),
            b'}' => self.close_bracket(TokenKind::FlowMapEnd),
            b',' => {
                self.drop_candidate()?;
                self.key_allowed = true;
                self.at += 1;
                self.push(at, TokenKind::Comma);
                Ok(())
            }
            b'-' if self.is_space(at + 1) => self.fetch_dash(column),
            b'?' if self.in_flow() || self.is_space(at + 1) => self.fetch_key(column),
            b':' if self.in_flow() || self.is_space(at + 1) => self.fetch_value(column),
            b'*' | b'&' => {
                self.note_candidate(column)?;
                let name = self.anchor_name()?;
                self.push_noted(
                    at,
                    if byte == b'*' {
                        TokenKind::Alias(name)
                    } else {
                        TokenKind::Anchor(name)
                    },
                );
                Ok(())
            }
            b'!' => {
                self.note_candidate(column)?;
                let tag = self.tag()?;
                self.push_noted(at, TokenKind::Tag(Box::new(tag)));
                Ok(())
            }
            b'|' | b'>' if !self.in_flow() => {
                self.drop_candidate()?;
                self.key_allowed = true;
                let text = self.block_scalar(byte == b'|')?;
                self.push(at, TokenKind::Scalar(text, ScalarStyle::Block));
                Ok(())
            }
            b'\'' | b'"' => {
                self.note_candidate(column)?;
                let text = self.quoted_scalar(byte)?;
                self.push_scalar(at, TokenKind::Scalar(text, ScalarStyle::Quoted))
            }
            b'#' | b'%' | b'@' | b'`' | b'|' | b'>' | b'\t' => self.fault(cannot_start(byte)),
            _ => {
                self.note_candidate(column)?;
                let text = self.plain_scalar()?;
                self.push_scalar(at, TokenKind::Scalar(text, ScalarStyle::Plain))
            }
        }
    }

    /// Closes the blocks that are indented too far for a token at `margin - 1`.
    fn close_blocks(&mut self, margin: usize) {
        if self.in_flow() {
            return;
        }
        while self.margin > margin {
            self.margin = self.margins.pop().unwrap_or_default();
            self.push(self.at, TokenKind::BlockEnd);
        }
    }

    /// Opens a block at a column if it is indented further than the enclosing one. The token is inserted at the given position in
    /// the queue.
    fn open_block(&mut self, column: usize, index: usize, at: usize, kind: TokenKind<'a>) -> Result<(), Fault> {
        if self.in_flow() || self.margin > column {
            return Ok(());
        }
        self.margins.push(self.margin);
        self.margin = column + 1;
        if self.margins.len() > DEPTH {
            return self.fault(TOO_DEEP);
        }
        self.queue.insert(index, Token { at, kind, key_level: 0 });
        Ok(())
    }

    fn open_bracket(&mut self, kind: TokenKind<'a>, column: usize) -> Result<(), Fault> {
        let at = self.at;
        self.note_candidate(column)?;
        self.push_noted(at, kind);
        self.levels.push(KeyLevel {
            candidate: None,
            last: self.taken + self.queue.len() - 1,
        });
        if self.levels.len() > DEPTH + 1 {
            return self.fault(TOO_DEEP);
        }
        self.key_allowed = true;
        self.at += 1;
        Ok(())
    }

    fn close_bracket(&mut self, kind: TokenKind<'a>) -> Result<(), Fault> {
        self.drop_candidate()?;
        if self.in_flow() {
            let inner = self.levels.pop().map(|level| level.last);
            if let Some(candidate) = self.levels.last_mut().and_then(|level| level.candidate.as_mut()) {
                candidate.kept_back &= inner != Some(candidate.number);
            }
        }
        self.key_allowed = false;
        self.push(self.at, kind);
        self.at += 1;
        Ok(())
    }

    fn fetch_dash(&mut self, column: usize) -> Result<(), Fault> {
        if !self.in_flow() {
            if !self.key_allowed {
                return self.fault("a list entry (\"- \") cannot start here");
            }
            self.open_block(column, self.queue.len(), self.at, TokenKind::BlockList)?;
        }
        self.drop_candidate()?;
        self.key_allowed = true;
        self.push(self.at, TokenKind::Dash);
        self.at += 1;
        Ok(())
    }
}

const TAB: &str = "a tab is used where only spaces may be used for indentation";

pub(super) const TOO_DEEP: &str = "lists and mappings are nested more than 10000 deep";

fn cannot_start(byte: u8) -> &'static str {
    match byte {
        b'\t' => TAB,
        b'@' => "a text that starts with \"@\" must be quoted",
        b'%' => "a text that starts with \"%\" must be quoted",
        b'`' => "a text that starts with \"`\" must be quoted",
        b'|' | b'>' => "a block text (\"|\" or \">\") is not allowed inside brackets",
        _ => "this character cannot start a value",
    }
}

/// Returns the number of characters in UTF-8 bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}
