//! Scans anchors, aliases, tags and directives.

use super::super::Fault;
use super::super::token::{TagPart, TokenKind};
use super::Scanner;

/// Returns true for bytes allowed in the names of anchors.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

impl<'a> Scanner<'a> {
    fn skip_name(&mut self) {
        while self.byte().is_some_and(is_name) {
            self.at += 1;
        }
    }

    /// Reads the name after `&` or `*`.
    pub(super) fn anchor_name(&mut self) -> Result<&'a str, Fault> {
        self.key_allowed = false;
        self.at += 1;
        let start = self.at;
        self.skip_name();
        let ends = self.is_space(self.at)
            || matches!(self.byte(), Some(b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`'));
        if start == self.at || !ends {
            return self.fault(
                "after \"&\" or \"*\" a name of letters, digits, \"-\" and \"_\" is expected: quote a text that starts so",
            );
        }
        Ok(&self.text[start..self.at])
    }

    /// Reads a tag: its handle, if any, and the rest.
    pub(super) fn tag(&mut self) -> Result<TagPart<'a>, Fault> {
        self.key_allowed = false;
        let start = self.at;
        let mut handle = "";
        let name;
        if self.bytes.get(start + 1) == Some(&b'<') {
            self.at += 2;
            name = self.tag_uri(Vec::new())?;
            if self.byte() != Some(b'>') {
                return self.fault("a \">\" is missing after this tag");
            }
            self.at += 1;
        } else {
            self.at += 1;
            self.skip_name();
            if self.byte() == Some(b'!') {
                self.at += 1;
                handle = &self.text[start..self.at];
                name = self.tag_uri(Vec::new())?;
            } else {
                // The supposed handle is the start of the name.
                let mut whole = self.tag_uri(self.bytes[start..self.at].to_vec())?;
                if whole.len() > 1 {
                    handle = "!";
                    whole.remove(0);
                }
                name = whole;
            }
        }
        if !self.is_space(self.at) {
            return self.fault("a space is missing after this tag");
        }
        Ok(TagPart { handle, name })
    }

    /// Reads the rest of a tag after the given start.
    fn tag_uri(&mut self, mut name: Vec<u8>) -> Result<Vec<u8>, Fault> {
        while let Some(byte) = self.byte() {
            if byte == b'%' {
                self.uri_escape(&mut name)?;
            } else if is_name(byte) || b";/?:@&=+$,.!~*'()[]".contains(&byte) {
                name.push(byte);
                self.at += 1;
            } else {
                break;
            }
        }
        if name.is_empty() {
            return self.fault("the name of this tag is missing");
        }
        Ok(name)
    }

    /// Reads one character in percent encoding: one `%` and two hexadecimal digits per byte.
    fn uri_escape(&mut self, name: &mut Vec<u8>) -> Result<(), Fault> {
        let mut left = 1;
        let mut is_first = true;
        while left > 0 {
            let digit = |at| self.bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
            let (Some(b'%'), Some(high), Some(low)) = (self.byte(), digit(self.at + 1), digit(self.at + 2)) else {
                return self.fault("two hexadecimal digits are missing after \"%\" in this tag");
            };
            let byte = u8::try_from(high << 4 | low).unwrap_or_default();
            if is_first {
                left = match byte {
                    0x00..=0x7F => 1,
                    0xC0..=0xDF => 2,
                    0xE0..=0xEF => 3,
                    0xF0..=0xF7 => 4,
                    _ => return self.fault("this tag is not valid UTF-8"),
                };
                is_first = false;
            } else if byte & 0xC0 != 0x80 {
                return self.fault("this tag is not valid UTF-8");
            }
            name.push(byte);
            self.at += 3;
            left -= 1;
        }
        Ok(())
    }

    /// Reads a line that starts with `%`.
    pub(super) fn fetch_directive(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.close_blocks(0);
        self.drop_candidate()?;
        self.key_allowed = false;
        self.at += 1;
        let name = self.at;
        self.skip_name();
        let kind = match &self.bytes[name..self.at] {
            b"YAML" if self.is_space(self.at) => {
                self.skip_blanks();
                let major = self.version_number()?;
                if self.byte() != Some(b'.') {
                    return self.fault("the version after \"%YAML\" is missing");
                }
                self.at += 1;
                TokenKind::Version(major, self.version_number()?)
            }
            b"TAG" if self.is_space(self.at) => self.tag_directive()?,
            _ => {
                return Err(Fault::new(
                    start,
                    "a line that starts with \"%\" is not a known directive",
                ));
            }
        };
        self.skip_blanks();
        if self.byte() == Some(b'#') {
            self.skip_line();
        }
        // The line break belongs to the directive: unlike other line breaks it does not forbid a tab after it.
        let line_break = self.break_length(self.at);
        if self.at < self.bytes.len() && line_break == 0 {
            return self.fault("unexpected text after a directive on its line");
        }
        self.at += line_break;
        self.line_start = self.at;
        self.push(start, kind);
        Ok(())
    }

    /// Reads one or two digits.
    fn version_number(&mut self) -> Result<u8, Fault> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        match self.text[start..self.at].parse() {
            Ok(number) if self.at - start <= 2 => Ok(number),
            _ => self.fault("the version after \"%YAML\" is missing or too long"),
        }
    }

    fn tag_directive(&mut self) -> Result<TokenKind<'a>, Fault> {
        self.skip_blanks();
        let start = self.at;
        if self.byte() != Some(b'!') {
            return self.fault("the handle after \"%TAG\" is missing");
        }
        self.at += 1;
        self.skip_name();
        if self.byte() == Some(b'!') {
            self.at += 1;
        } else if self.at > start + 1 {
            return self.fault("the handle after \"%TAG\" must end with \"!\"");
        }
        let handle = &self.text[start..self.at];
        if !self.is_blank(self.at) {
            return self.fault("a space is missing after the handle of \"%TAG\"");
        }
        self.skip_blanks();
        let name = self.tag_uri(Vec::new())?;
        if !self.is_space(self.at) {
            return self.fault("a space is missing after the prefix of \"%TAG\"");
        }
        Ok(TokenKind::TagHandle(Box::new(TagPart { handle, name })))
    }
}
