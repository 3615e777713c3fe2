//! Matches the regular expressions that Argo CD's namespace lists use: those of .NET (`dlclark/regexp2`), as far as
//! `fancy_regex` reads them in the same way: without lookbehind, backreferences, options, word boundaries and named classes.
//!
//! Any other expression does not compile and so permits nothing. The steps of a match are limited, because lookahead requires
//! backtracking; beyond the limit nothing matches.

use fancy_regex::{Regex, RegexBuilder};

/// The maximum length of an expression, in bytes.
const LENGTH_MAX: usize = 1000;

/// The maximum product of the counts of all repetitions, which are expanded when an expression is compiled.
const REPETITIONS_MAX: usize = 1000;

/// The maximum number of steps of a match.
const STEPS_MAX: usize = 20_000;

/// The maximum size of a compiled part of an expression, in bytes.
const SIZE_MAX: usize = 1 << 20;

/// Compiles an expression; returns `None` for a malformed or unsupported one.
pub(super) fn compile(expression: &str) -> Option<Regex> {
    if expression.len() > LENGTH_MAX {
        return None;
    }
    Syntax::new(expression).is_common()?;
    let mut builder = RegexBuilder::new(expression);
    builder.backtrack_limit(STEPS_MAX).delegate_size_limit(SIZE_MAX);
    builder.build().ok()
}

/// Reads an expression as far as .NET and `fancy_regex` may differ.
struct Syntax<'e> {
    rest: &'e str,
    repetitions: usize,
}

impl<'e> Syntax<'e> {
    fn new(expression: &'e str) -> Self {
        Self {
            rest: expression,
            repetitions: 1,
        }
    }

    fn next_char(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Returns none for an expression that the two read differently, or that is too expensive.
    fn is_common(&mut self) -> Option<()> {
        let mut may_repeat = false;
        while let Some(char) = self.next_char() {
            let is_repetition = matches!(char, '*' | '+' | '?' | '{');
            if is_repetition && !may_repeat {
                return None;
            }
            may_repeat = !is_repetition && !matches!(char, '(' | '|');
            match char {
                '\\' => self.escaped("dswDSW")?,
                '[' => self.class()?,
                '(' if self.skip("?") && !["!", "=", ":"].iter().any(|kind| self.skip(kind)) => return None,
                '{' => self.count()?,
                _ => {}
            }
            if is_repetition {
                self.skip("?");
            }
        }
        Some(())
    }

    /// Reads the rest of an escape: one of these classes, or a character for itself.
    fn escaped(&mut self, classes: &str) -> Option<()> {
        let char = self.next_char()?;
        // `fancy_regex` reads `\<` and `\>` as word boundaries.
        let is_itself = char.is_ascii_punctuation() && !matches!(char, '<' | '>');
        (is_itself || classes.contains(char)).then_some(())
    }

    /// Reads the rest of a class, without a class inside and without operations on sets.
    fn class(&mut self) -> Option<()> {
        self.skip("^");
        let mut is_empty = true;
        loop {
            if ["&&", "--", "~~"]
                .iter()
                .any(|operator| self.rest.starts_with(operator))
            {
                return None;
            }
            match self.next_char()? {
                ']' if !is_empty => return Some(()),
                '[' => return None,
                '\\' => self.escaped("dsw")?,
                _ => {}
            }
            is_empty = false;
        }
    }

    /// Reads the rest of a count, such as `2,3}`.
    fn count(&mut self) -> Option<()> {
        let (counts, rest) = self.rest.split_once('}')?;
        self.rest = rest;
        let number = |digits: &str| -> Option<usize> {
            let has_only_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            has_only_digits.then(|| digits.parse().ok()).flatten()
        };
        let (min, max) = counts.split_once(',').unwrap_or((counts, counts));
        let min = number(min)?;
        let count = if max.is_empty() { min } else { number(max)? };
        if count < min {
            return None;
        }
        self.repetitions = self.repetitions.saturating_mul(count.max(1));
        (self.repetitions <= REPETITIONS_MAX).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(expression: &str, text: &str) -> bool {
        compile(expression).is_some_and(|regex| regex.is_match(text).unwrap_or_default())
    }

    #[test]
    fn matches_like_argo_cd() {
        for (expression, text, desired) in [
            ("team", "my-team-a", true),
            ("^team$", "my-team-a", false),
            ("^team-[a-c]{2,3}$", "team-abc", true),
            ("^team-[a-c]{2}$", "team-abc", false),
            ("^(?:dev|test)-\\w+?$", "dev-1", true),
            ("^(dev|test|)$", "", true),
            ("^[^k].*", "kube-system", false),
            ("^(?!kube-)(?=.*-x$).+$", "team-x", true),
            ("^(?!kube-).+$", "kube-system", false),
            ("^((?!not-allowed).)*$", "this-is-not-allowed", false),
            ("^[\\d-]+$", "1-2", true),
            ("^\\D+$", "abc", true),
            ("a.c", "a-c", true),
            ("a\\.c", "a-c", false),
            ("^(a*)*$", "aaab", false),
        ] {
            assert_eq!(matches(expression, text), desired, "{expression} {text}");
        }
    }

    #[test]
    fn refuses_unsupported_expressions() {
        for expression in [
            "(",
            ")",
            "*",
            "a**",
            "[",
            "[]",
            "[b-a]",
            "a{2",
            "a{3,2}",
            "(?<name>a)",
            "(?<=a)b",
            "(?i)a",
            "\\1",
            "\\b",
            "[a-\\d]",
            "[[:alpha:]]",
            "[a-z-[aeiou]]",
            "[a-z&&b]",
            "[a-z--b]",
            "[a-z~~b]",
            "a++",
            "a*+",
            "a{,3}",
            "a{2}{3}",
            "(*FAIL)",
            "(?>a)",
            "(?#a)",
            "a\\>",
            "\\Aa\\z",
            "\\x61",
            "\\p{L}",
        ] {
            assert!(compile(expression).is_none(), "{expression}");
        }
        assert!(compile(&"(".repeat(500)).is_none());
        assert!(compile(&"a".repeat(LENGTH_MAX + 1)).is_none());
    }

    #[test]
    fn gives_up_on_expensive_expressions() {
        assert!(!matches("^(a+)+$", &format!("{}b", "a".repeat(62))));
        assert!(!matches("^(){1000000}a$", "a"));
        assert!(!matches("^(((?!b)a{100}){100}){100}$", "a"));
        assert!(!matches(
            &format!("^{}$", "(a|aa)*".repeat(20)),
            &format!("{}b", "a".repeat(62))
        ));
    }
}
