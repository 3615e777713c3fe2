//! Scans block scalars, after `|` or `>`.

use std::borrow::Cow;

use super::super::Fault;
use super::{Scanner, TAB};

/// The handling of final line breaks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Chomp {
    /// `-`: no line break is kept.
    Strip,
    /// One line break is kept.
    Clip,
    /// `+`: all line breaks are kept.
    Keep,
}

/// The initial capacity, enough for a scalar of a few lines.
const USUAL_LENGTH: usize = 256;

impl<'a> Scanner<'a> {
    pub(super) fn block_scalar(&mut self, literal: bool) -> Result<Cow<'a, str>, Fault> {
        self.at += 1;
        let (chomp, increment) = self.block_header()?;
        let mut indent = increment.map_or(0, |increment| self.margin.saturating_sub(1) + increment);
        let mut built = String::with_capacity(USUAL_LENGTH);
        let mut blank_lines = String::new();
        self.blank_lines(&mut indent, &mut blank_lines)?;
        let mut last_break = "";
        let mut after_blank = false;
        while self.at < self.bytes.len() && self.at - self.line_start == indent {
            let starts_blank = self.is_blank(self.at);
            let folds = !literal && last_break == "\n" && !after_blank && !starts_blank;
            if !folds {
                built.push_str(last_break);
            } else if blank_lines.is_empty() {
                built.push(' ');
            }
            built.push_str(&blank_lines);
            blank_lines.clear();
            after_blank = starts_blank;
            let start = self.at;
            self.skip_line();
            built.push_str(&self.text[start..self.at]);
            last_break = self.take_break().unwrap_or_default();
            self.blank_lines(&mut indent, &mut blank_lines)?;
        }
        if chomp != Chomp::Strip {
            built.push_str(last_break);
        }
        if chomp == Chomp::Keep {
            built.push_str(&blank_lines);
        }
        built.shrink_to_fit();
        Ok(Cow::Owned(built))
    }

    /// Reads the header after `|`: chomping and indentation in any order, and a comment.
    fn block_header(&mut self) -> Result<(Chomp, Option<usize>), Fault> {
        let mut chomp = None;
        let mut increment = None;
        loop {
            match self.byte() {
                Some(b'+') if chomp.is_none() => chomp = Some(Chomp::Keep),
                Some(b'-') if chomp.is_none() => chomp = Some(Chomp::Strip),
                Some(digit @ b'1'..=b'9') if increment.is_none() => increment = Some(usize::from(digit - b'0')),
                _ => break,
            }
            self.at += 1;
        }
        self.skip_blanks();
        if self.byte() == Some(b'#') {
            self.skip_line();
        }
        if self.take_break().is_none() && self.at < self.bytes.len() {
            return self.fault("after \"|\" or \">\" the text must start on the next line");
        }
        Ok((chomp.unwrap_or(Chomp::Clip), increment))
    }

    /// Advances past blank lines to the first text; determines its indentation if unknown (0).
    fn blank_lines(&mut self, indent: &mut usize, breaks: &mut String) -> Result<(), Fault> {
        let mut widest = 0;
        loop {
            while (*indent == 0 || self.at - self.line_start < *indent) && self.byte() == Some(b' ') {
                self.at += 1;
            }
            let column = self.at - self.line_start;
            widest = widest.max(column);
            if (*indent == 0 || column < *indent) && self.byte() == Some(b'\t') {
                return self.fault(TAB);
            }
            match self.take_break() {
                Some(line_break) => breaks.push_str(line_break),
                None => break,
            }
        }
        if *indent == 0 {
            *indent = widest.max(self.margin).max(1);
        }
        Ok(())
    }
}
