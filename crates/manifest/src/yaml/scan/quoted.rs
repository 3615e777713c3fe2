//! Scans scalars in quotes.

use std::borrow::Cow;

use super::super::Fault;
use super::Scanner;
use super::plain::Fold;

impl<'a> Scanner<'a> {
    pub(super) fn quoted_scalar(&mut self, quote: u8) -> Result<Cow<'a, str>, Fault> {
        self.key_allowed = false;
        let open = self.at;
        self.at += 1;
        let mut built = String::new();
        // The start of the part that is not yet in `built`.
        let mut part = self.at;
        loop {
            if self.at_document_mark() {
                return Err(Fault::new(
                    open,
                    "this quoted text is not closed before the document ends",
                ));
            }
            let mut fold: Option<Fold<'a>> = None;
            if self.quoted_run(quote, &mut built, &mut part)? {
                break;
            }
            if self.byte() == Some(b'\\') {
                // A backslash at the end of a line joins it with the next.
                self.at += 1;
                self.take_break();
                part = self.at;
                fold = Some(Fold::default());
                if self.byte() == Some(quote) {
                    break;
                }
            }
            let end = self.at;
            self.skip_folded(&mut fold, 0)?;
            if let Some(fold) = fold {
                built.push_str(&self.text[part..end]);
                fold.append_to(&mut built);
                part = self.at;
            }
            if self.at == self.bytes.len() {
                return Err(Fault::new(open, "this quoted text is never closed"));
            }
        }
        let last = &self.text[part..self.at];
        self.at += 1;
        if built.is_empty() {
            return Ok(Cow::Borrowed(last));
        }
        built.push_str(last);
        Ok(Cow::Owned(built))
    }

    /// Advances to white space, to a backslash before a line break, or to the closing quote. Returns true at the closing quote.
    fn quoted_run(&mut self, quote: u8, built: &mut String, part: &mut usize) -> Result<bool, Fault> {
        loop {
            match self.byte() {
                None | Some(b' ' | b'\t' | b'\n' | b'\r') => return Ok(false),
                Some(0xC2 | 0xE2) if self.break_length(self.at) > 0 => return Ok(false),
                Some(byte) if byte == quote => {
                    if quote == b'"' || self.bytes.get(self.at + 1) != Some(&b'\'') {
                        return Ok(true);
                    }
                    built.push_str(&self.text[*part..=self.at]);
                    self.at += 2;
                    *part = self.at;
                }
                Some(b'\\') if quote == b'"' => {
                    built.push_str(&self.text[*part..self.at]);
                    *part = self.at;
                    if self.break_length(self.at + 1) > 0 {
                        return Ok(false);
                    }
                    let character = self.escape()?;
                    built.push(character);
                    *part = self.at;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let character = match self.bytes.get(self.at + 1) {
            Some(b'0') => '\0',
            Some(b'a') => '\u{7}',
            Some(b'b') => '\u{8}',
            Some(b't' | b'\t') => '\t',
            Some(b'n') => '\n',
            Some(b'v') => '\u{B}',
            Some(b'f') => '\u{C}',
            Some(b'r') => '\r',
            Some(b'e') => '\u{1B}',
            Some(b' ') => ' ',
            Some(b'"') => '"',
            Some(b'\'') => '\'',
            Some(b'\\') => '\\',
            Some(b'N') => '\u{85}',
            Some(b'_') => '\u{A0}',
            Some(b'L') => '\u{2028}',
            Some(b'P') => '\u{2029}',
            Some(b'x') => return self.code(2),
            Some(b'u') => return self.code(4),
            Some(b'U') => return self.code(8),
            _ => return self.fault("this escape (\"\\\" and a character) is unknown in double quotes"),
        };
        self.at += 2;
        Ok(character)
    }

    fn code(&mut self, digits: usize) -> Result<char, Fault> {
        let mut code = 0_u32;
        for at in self.at + 2..self.at + 2 + digits {
            let digit = self.bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return self.fault("a hexadecimal digit is missing in this escape");
            };
            // Eight digits fit exactly.
            code = code << 4 | digit;
        }
        let Some(character) = char::from_u32(code) else {
            return self.fault("this escape is not the code of a character");
        };
        self.at += 2 + digits;
        Ok(character)
    }
}
