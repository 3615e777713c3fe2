//! Detects keys: a token that may start a key is recorded, and becomes a key when its `:` follows.

use std::collections::VecDeque;

use super::super::Fault;
use super::super::token::{Token, TokenKind};
use super::{Scanner, characters};

/// The maximum number of characters between the start of a key and its colon.
const KEY_LENGTH: usize = 1_024;

const NO_COLON: &str = "a \":\" is missing after this key";
/// A token that becomes a key if a `:` follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyCandidate {
    /// The index among all tokens of the text.
    pub(super) number: usize,
    pub(super) at: usize,
    pub(super) line_start: usize,
    pub(super) column: usize,
    /// True if only a key is allowed here.
    pub(super) required: bool,
    /// True if its token is held back. go-yaml loses track of an empty pair of brackets, which therefore is never a key.
    pub(super) kept_back: bool,
}

/// The state of the block context or of a bracket.
#[derive(Debug)]
pub(super) struct KeyLevel {
    pub(super) candidate: Option<KeyCandidate>,
    /// The index of the last recorded token, initially that of the bracket.
    pub(super) last: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn fetch_key(&mut self, column: usize) -> Result<(), Fault> {
        if !self.in_flow() {
            if !self.key_allowed {
                return self.fault("a key (\"? \") cannot start here");
            }
            self.open_block(column, self.queue.len(), self.at, TokenKind::BlockMap)?;
        }
        self.drop_candidate()?;
        self.key_allowed = !self.in_flow();
        self.push(self.at, TokenKind::Key);
        self.at += 1;
        Ok(())
    }

    pub(super) fn fetch_value(&mut self, column: usize) -> Result<(), Fault> {
        let at = self.at;
        let candidate = match self.levels.last().and_then(|level| level.candidate) {
            Some(candidate) if self.is_valid(candidate)? => Some(candidate),
            _ => None,
        };
        if let Some(candidate) = candidate {
            // A token that was not held back may have been taken.
            let index = candidate.number.checked_sub(self.taken);
            let index_or_end = |queue: &VecDeque<_>| index.unwrap_or(queue.len());
            self.queue.insert(
                index_or_end(&self.queue),
                Token {
                    at: candidate.at,
                    kind: TokenKind::Key,
                    key_level: 0,
                },
            );
            self.open_block(
                candidate.column,
                index_or_end(&self.queue),
                candidate.at,
                TokenKind::BlockMap,
            )?;
            self.forget_candidate();
            self.key_allowed = false;
        } else {
            if !self.in_flow() {
                if !self.key_allowed {
                    return self.fault(
                        "a mapping cannot start here: quote a text that contains \": \", or put the mapping on separate lines",
                    );
                }
                self.open_block(column, self.queue.len(), at, TokenKind::BlockMap)?;
            }
            self.key_allowed = !self.in_flow();
        }
        self.push(at, TokenKind::Value);
        self.at += 1;
        Ok(())
    }

    /// Records that the next token may start a key.
    pub(super) fn note_candidate(&mut self, column: usize) -> Result<(), Fault> {
        if !self.key_allowed {
            return Ok(());
        }
        self.drop_candidate()?;
        let candidate = KeyCandidate {
            number: self.taken + self.queue.len(),
            at: self.at,
            line_start: self.line_start,
            column,
            required: !self.in_flow() && self.margin == column + 1,
            kept_back: true,
        };
        if let Some(level) = self.levels.last_mut() {
            level.candidate = Some(candidate);
            level.last = candidate.number;
        }
        Ok(())
    }

    /// Adds the token recorded by [`Self::note_candidate`].
    pub(super) fn push_noted(&mut self, at: usize, kind: TokenKind<'a>) {
        let noted = self.levels.last().and_then(|level| level.candidate);
        let is_noted = noted.is_some_and(|candidate| candidate.number == self.taken + self.queue.len());
        let key_level = if is_noted { self.levels.len() } else { 0 };
        self.queue.push_back(Token { at, kind, key_level });
    }

    /// Adds a scalar, and if it is obviously a key, the tokens of a key too. [`Self::fetch_value`] would do the same one step
    /// later.
    pub(super) fn push_scalar(&mut self, at: usize, kind: TokenKind<'a>) -> Result<(), Fault> {
        let number = self.taken + self.queue.len();
        let noted = self.levels.last().and_then(|level| level.candidate);
        let Some(candidate) = noted.filter(|candidate| candidate.number == number) else {
            self.push(at, kind);
            return Ok(());
        };
        let is_key = self.byte() == Some(b':')
            && (self.in_flow() || self.is_space(self.at + 1))
            && candidate.line_start == self.line_start
            && self.at - at <= KEY_LENGTH;
        if !is_key {
            self.queue.push_back(Token {
                at,
                kind,
                key_level: self.levels.len(),
            });
            return Ok(());
        }
        self.open_block(candidate.column, self.queue.len(), at, TokenKind::BlockMap)?;
        self.push(at, TokenKind::Key);
        self.push(at, kind);
        self.push(self.at, TokenKind::Value);
        self.forget_candidate();
        self.key_allowed = false;
        self.at += 1;
        Ok(())
    }

    fn forget_candidate(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.candidate = None;
        }
    }

    /// Discards the candidate at this level.
    pub(super) fn drop_candidate(&mut self) -> Result<(), Fault> {
        match self.levels.last_mut().and_then(|level| level.candidate.take()) {
            Some(candidate) if candidate.required => Err(Fault::new(candidate.at, NO_COLON)),
            _ => Ok(()),
        }
    }

    /// Returns true if the candidate would be a key if a `:` followed now.
    pub(super) fn is_valid(&self, candidate: KeyCandidate) -> Result<bool, Fault> {
        let near = candidate.line_start == self.line_start && {
            let length = self.at - candidate.at;
            length <= KEY_LENGTH
                || (length <= 4 * KEY_LENGTH && characters(&self.bytes[candidate.at..self.at]) <= KEY_LENGTH)
        };
        if !near && candidate.required {
            return Err(Fault::new(candidate.at, NO_COLON));
        }
        Ok(near)
    }
}
