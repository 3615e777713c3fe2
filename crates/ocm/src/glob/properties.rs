//! Property tests of globs against a matcher that tries all possibilities.

use super::{Glob, GlobError};
use proptest::collection::vec;
use proptest::prelude::Strategy;
use proptest::prop_oneof;
use proptest::sample::select;
use testing::{glob_matches, holds, hostile_text};

fn globs() -> impl Strategy<Value = String> {
    const PIECES: &[&str] = &[
        "a",
        "b",
        "é",
        "/",
        "*",
        "**",
        "?",
        "[ab]",
        "[!ab]",
        "[a-c]",
        "[!b-c]",
        "[",
        "]",
        "!",
        "-",
        "{",
        "}",
        ",",
        "{a,b}",
        "{,a*}",
        "{a{b,?},}",
        "\\",
        "\\*",
        "\\{",
        "[\\]]",
        "[a",
        "[b-a]",
        "[a-",
        "[]",
    ];
    vec(select(PIECES), 0..7).prop_map(|pieces| pieces.concat())
}

fn texts() -> impl Strategy<Value = String> {
    vec(
        select(&["a", "b", "c", "é", "/", "*", "{", "]", ",", "-", "!"][..]),
        0..7,
    )
    .prop_map(|pieces| pieces.concat())
}

#[test]
fn globs_match_like_a_brute_force_matcher() {
    let inputs = || {
        let globs = prop_oneof![9 => globs(), 1 => hostile_text().prop_map(|text| text.chars().take(12).collect())];
        (globs, vec(texts(), 1..8))
    };
    holds(3000, inputs, |(glob, texts)| {
        let compiled = Glob::new(&glob);
        for text in &texts {
            let found = compiled.as_ref().ok().map(|compiled| compiled.matches(text));
            assert_eq!(found, glob_matches(&glob, text), "{text:?}");
        }
        if let Err(error) = compiled {
            assert!(
                glob.contains(if error == GlobError::OpenAlternatives { '{' } else { '[' }),
                "{error}"
            );
        }
    });
}
