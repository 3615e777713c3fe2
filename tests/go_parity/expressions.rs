//! Checks that the regular expressions for namespaces match as in `dlclark/regexp2`, which Argo CD uses, over random expressions.
//!
//! An expression that only Argo CD supports permits nothing. Whatever is supported must match the same namespaces.

use crate::make::Random;
use crate::oracle::Oracle;
use hub_state::pull::namespaces::Namespaces;
use serde_json::{Value, json};

/// The pieces of expressions, between spaces.
const PIECES: &str = r"a b - 1 . ^ $ ( ( ) ) (?: (?! (?= (?<= (?<n> (?i) (?> | * + ? {2} {1 } [ab] [^a-b] [ ] [a- && -- ~~ \d \w \W
\. \b \A \z \< \1 [\d-] [[:alpha:]]";
const NAMES: [&str; 6] = ["a", "b", "ab", "-", "1", "aa"];

#[test]
fn expressions_match_like_argo_cd() {
    let mut oracle = Oracle::start("expression");
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let pieces: Vec<&str> = PIECES.split_whitespace().collect();
    let questions: Vec<Value> = (0..5000)
        .map(|_| {
            let names: Vec<String> = (0..5).map(|_| random.random_text(&NAMES, 4)).collect();
            json!({"pattern": random.random_text(&pieces, 6), "texts": names})
        })
        // `//` is a glob.
        .filter(|question| question["pattern"] != "")
        .collect();
    let inputs: Vec<String> = questions.iter().map(Value::to_string).collect();
    let (mut matched, mut refused) = (0, 0);
    for (question, answer) in questions.iter().zip(oracle.ask(&inputs)) {
        let answer: Value = serde_json::from_str(&answer).expect("an answer");
        let expression = question["pattern"].as_str().expect("an expression");
        let namespaces = Namespaces::configured(&format!("/{expression}/"));
        let is_supported = Namespaces::configured(&format!("/{expression}|zzz/")).has("zzz");
        refused += usize::from(!is_supported);
        for (at, name) in question["texts"].as_array().expect("names").iter().enumerate() {
            let ours = namespaces.has(name.as_str().expect("a name"));
            let theirs = answer["matches"][at].as_bool().unwrap_or_default();
            assert!(
                ours == theirs || !is_supported && !ours,
                "{expression:?} on {name}: {ours}, {answer}"
            );
            matched += usize::from(ours);
        }
    }
    assert!(
        matched > 1000 && refused > 1000,
        "{matched} matched, {refused} refused: too few to compare"
    );
}
