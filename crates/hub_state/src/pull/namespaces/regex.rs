//! Matches the regular expressions that Argo CD's namespace lists use: those of .NET (`dlclark/regexp2`), as far as
//! `fancy_regex` reads them in the same way: without lookbehind, backreferences, options, word boundaries and named classes.
//!
//! Any other expression does not compile and so permits nothing. The steps of a match are limited, because lookahead requires
//! backtracking; beyond the limit nothing matches.

use fancy_regex::{Regex, RegexBuilder};
use std::sync::LazyLock;

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
    if expression.len() > LENGTH_MAX || !is_common(expression) {
        return None;
    }
    let mut builder = RegexBuilder::new(expression);
    builder.backtrack_limit(STEPS_MAX).delegate_size_limit(SIZE_MAX);
    builder.build().ok()
}

/// A part of an expression that both read in the same way.
static PART: LazyLock<Regex> = LazyLock::new(|| {
    // `fancy_regex` reads `\<` and `\>` as word boundaries.
    let part = r"(?x) ^ (?:
        \( (?: \?[!=:] )?                                                       # the start of a group
        | \|
        | (?: \\ (?: [dswDSW] | [[:punct:]&&[^<>]] )                            # an escape
            | \[ \^?+ (?<class> (?: \] | ITEM ) ITEM* ) \]
            | [^\\\[(|*+?{] )                                                   # another character, or the end of a group
          (?: (?: [*+?] | \{ (?<min> [0-9]+ ) (?: , (?<max> [0-9]* ) )? \} ) \?? )?
    )";
    let item = r"(?: \\ (?: [dsw] | [[:punct:]&&[^<>]] ) | [^\\\[\]] )";
    Regex::new(&part.replace("ITEM", item)).expect("a valid expression")
});

/// Returns true for an expression that the two read in the same way, and that is not too expensive.
fn is_common(expression: &str) -> bool {
    let (mut rest, mut repetitions) = (expression, 1_usize);
    while !rest.is_empty() {
        let Ok(Some(part)) = PART.captures(rest) else {
            return false;
        };
        let text = |name| part.name(name).map(|text| text.as_str());
        // Operations on sets.
        let is_operation = |class: &str| ["&&", "--", "~~"].iter().any(|operator| class.contains(operator));
        if text("class").is_some_and(is_operation) {
            return false;
        }
        if let Some(min) = text("min") {
            let max = text("max").filter(|max| !max.is_empty()).unwrap_or(min);
            let (Ok(min), Ok(max)) = (min.parse::<usize>(), max.parse::<usize>()) else {
                return false;
            };
            repetitions = repetitions.saturating_mul(max.max(1));
            if max < min || repetitions > REPETITIONS_MAX {
                return false;
            }
        }
        rest = &rest[part.get(0).map_or(0, |part| part.end())..];
    }
    true
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
        for expression in "( ) * a** [ [] [^] [b-a] a{2 a{3,2} (?<name>a) (?<=a)b (?i)a \\1 \\b [a-\\d] \
            [[:alpha:]] [a-z-[aeiou]] [a-z&&b] [a-z--b] [a-z~~b] a++ a*+ a{,3} a{2}{3} (*FAIL) (?>a) \
            (?#a) a\\> \\Aa\\z \\x61 \\p{L}"
            .split(' ')
        {
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
