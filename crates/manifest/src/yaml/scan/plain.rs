//! Scans scalars without quotes.

use std::borrow::Cow;

use super::super::Fault;
use super::{Scanner, TAB};

/// The white space between two parts of a multi-line scalar.
#[derive(Debug, Default)]
pub(super) struct Fold<'a> {
    first: &'a str,
    more: String,
}

impl<'a> Fold<'a> {
    pub(super) fn add(&mut self, line_break: &'a str, is_first: bool) {
        if is_first {
            self.first = line_break;
        } else {
            self.more.push_str(line_break);
        }
    }

    /// Appends the folded line breaks: one becomes a space; of several the first is dropped. Unicode separators are kept.
    pub(super) fn append_to(&self, text: &mut String) {
        match self.first {
            "\n" if self.more.is_empty() => text.push(' '),
            "\n" => text.push_str(&self.more),
            separator => {
                text.push_str(separator);
                text.push_str(&self.more);
            }
        }
    }
}

impl<'a> Scanner<'a> {
    /// Scans a scalar without quotes, including its continuation lines and trailing white space.
    pub(super) fn plain_scalar(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.key_allowed = false;
        let mut built = String::new();
        let mut part = self.at;
        let mut end = self.at;
        let mut fold: Option<Fold<'a>> = None;
        loop {
            if self.byte() == Some(b'#') || self.at_document_mark() {
                break;
            }
            let start = self.at;
            self.plain_run();
            if self.at > start {
                if let Some(fold) = fold.take() {
                    built.push_str(&self.text[part..end]);
                    fold.append_to(&mut built);
                    part = start;
                }
                end = self.at;
            }
            if self.at == self.bytes.len() || !self.is_space(self.at) {
                break;
            }
            self.skip_folded(&mut fold, self.margin)?;
            if !self.in_flow() && self.column() < self.margin {
                break;
            }
        }
        if fold.is_some() {
            self.key_allowed = true;
        }
        if built.is_empty() {
            return Ok(Cow::Borrowed(&self.text[part..end]));
        }
        built.push_str(&self.text[part..end]);
        Ok(Cow::Owned(built))
    }

    /// Advances past white space, and adds its line breaks to the fold. In lines after the first, a tab before the column `margin` is a
    /// fault.
    pub(super) fn skip_folded(&mut self, fold: &mut Option<Fold<'a>>, margin: usize) -> Result<(), Fault> {
        while self.at < self.bytes.len() {
            if self.is_blank(self.at) {
                if fold.is_some() && self.bytes[self.at] == b'\t' && self.at - self.line_start < margin {
                    return self.fault(TAB);
                }
                self.at += 1;
                continue;
            }
            if self.break_length(self.at) == 0 {
                break;
            }
            let is_first = fold.is_none();
            if let Some(line_break) = self.take_break() {
                fold.get_or_insert_default().add(line_break, is_first);
            }
        }
        Ok(())
    }

    /// Advances to the white space or indicator that ends a word.
    fn plain_run(&mut self) {
        let may_end = if self.in_flow() { ANYWHERE | IN_FLOW } else { ANYWHERE };
        loop {
            let rest = &self.bytes[self.at..];
            let length = rest.iter().position(|&byte| ENDS[usize::from(byte)] & may_end != 0);
            self.at += length.unwrap_or(rest.len());
            match self.byte() {
                Some(b':') if !self.is_space(self.at + 1) => {}
                Some(0xC2 | 0xE2) if self.break_length(self.at) == 0 => {}
                _ => return,
            }
            self.at += 1;
        }
    }
}

/// The flag of bytes that may end a word in any context.
const ANYWHERE: u8 = 1;
/// The flag of bytes that end a word inside brackets.
const IN_FLOW: u8 = 2;

/// The flags of each byte.
const ENDS: [u8; 256] = {
    let mut ends = [0; 256];
    let (anywhere, in_flow) = (b" \t\n\r:\xC2\xE2", b",?[]{}");
    let mut at = 0;
    while at < anywhere.len() {
        ends[anywhere[at] as usize] = ANYWHERE;
        at += 1;
    }
    at = 0;
    while at < in_flow.len() {
        ends[in_flow[at] as usize] = IN_FLOW;
        at += 1;
    }
    ends
};
