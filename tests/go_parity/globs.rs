//! Checks that globs match as in `gobwas/glob` v1, which Argo CD 3.6 uses, over random patterns and paths. Its earlier version accepts
//! some malformed patterns, and contradicts itself.

use crate::make::Random;
use crate::oracle::Oracle;
use ocm::glob::Glob;
use serde_json::{Value, json};

/// The pieces of patterns, between spaces.
const PATTERN_PIECES: &str =
    r"a b c - é .yaml / * * ** ? {a,b} {,a} {a*,b} {b/,{c,d}.yaml} [abc] [!a] [a-c] [é] \* } ]";
const BROKEN_PIECES: [&str; 10] = ["a", "[", "]", "{", "}", "!", "-", ",", "\\", "*"];
const PATH_PIECES: [&str; 12] = ["a", "b", "c", "d", "é", "/", ".yaml", "-", "*", ",", "}", "]"];

#[test]
fn globs_match_like_argo_cd() {
    let mut oracle = Oracle::start("glob");
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let pieces: Vec<&str> = PATTERN_PIECES.split(' ').collect();
    let mut questions = Vec::new();
    for number in 0..8000 {
        let pattern = if number % 8 == 0 {
            random.random_text(&BROKEN_PIECES, 5)
        } else {
            random.random_text(&pieces, 5)
        };
        let paths: Vec<String> = (0..12).map(|_| random.random_text(&PATH_PIECES, 4)).collect();
        questions.push(json!({"pattern": pattern, "texts": paths}));
    }
    let inputs: Vec<String> = questions.iter().map(Value::to_string).collect();
    let mut matched = 0;
    let mut refused = 0;
    for (question, answer) in questions.iter().zip(oracle.ask(&inputs)) {
        let answer: Value = serde_json::from_str(&answer).expect("an answer");
        let pattern = question["pattern"].as_str().expect("a pattern");
        let Ok(glob) = Glob::new(pattern) else {
            refused += 1;
            assert!(!answer["error"].is_null(), "{pattern:?} is refused, {answer}");
            continue;
        };
        assert!(answer["error"].is_null(), "{pattern:?} is taken, {answer}");
        let paths = question["texts"].as_array().expect("paths");
        for (path, theirs) in paths.iter().zip(answer["matches"].as_array().expect("matches")) {
            let path = path.as_str().expect("a path");
            let ours = glob.matches(path);
            assert_eq!(Some(ours), theirs.as_bool(), "{pattern:?} on {path:?}");
            matched += usize::from(ours);
        }
    }
    assert!(
        matched > 500 && refused > 100,
        "{matched} matched, {refused} refused: too few to compare"
    );
}
