//! Checks that the jq path expressions that `ignore-fields` accepts delete what they delete in the jq of OCM's agent, and nothing else.

use crate::make::Random;
use crate::oracle::Oracle;
use generate::ignored_fields::FieldPath;
use serde_json::{Value, json};

/// The pieces of expressions, each list between bars.
const PIECES: [&str; 4] = [
    r#".spec¦.spec¦.a¦.b¦.list¦.metadata¦.name¦."b"¦["a"]¦[]¦[]¦[0]¦[-1]¦?¦?¦.¦..¦ | ¦ | ¦|¦, ¦select("#,
    "select((.a.b)? == ¦(.b.a)?¦select(.b == ¦select(.a == 1)¦select(.a | ¦(¦)¦)¦)¦ == ¦ != ¦ < ¦ >= ¦ and ¦ or ",
    r#" // ¦test("x")¦test("X"; "i")¦has("a")¦startswith("x")¦contains("x")¦length¦type¦not¦tostring¦"x"¦"\u0078\(1)""#,
    "1¦-1.5¦null¦true¦[]¦{}¦ = ¦#¦env",
];

#[test]
fn accepted_jq_paths_delete_the_same_in_go() {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Tank",
        "metadata": {"name": "x", "namespace": "shop", "labels": {"a": "1"}},
        "spec": {"a": 1, "b": "x", "list": [{"a": 1, "b": "xy"}, {"a": 2, "b": "z", "list": ["x", null]}, "x"], "name": "x"},
    });
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let pieces: Vec<&str> = PIECES.iter().flat_map(|list| list.split('¦')).collect();
    let beginnings = ".spec¦.spec.list[]¦.. | .a?¦select(.spec)¦.spec.list[] | select(";
    let beginnings: Vec<_> = beginnings.split('¦').collect();
    let expressions = (0..40_000).map(|at: usize| beginnings[at % 5].to_owned() + &random.random_text(&pieces, 9));
    let accepted: Vec<(String, String)> = expressions
        .filter_map(|text| match text.parse() {
            Ok(FieldPath::Expression(written)) => Some((text, written.text)),
            _ => None,
        })
        .collect();
    let (texts, written): (Vec<&String>, Vec<&String>) = accepted.iter().map(|(text, written)| (text, written)).unzip();
    let inputs = [texts, written].map(|expressions| json!({"object": object, "expressions": expressions}).to_string());
    let answers = Oracle::start("delete").ask(&inputs);
    let [theirs, ours] = [0, 1].map(|at| serde_json::from_str::<Vec<String>>(&answers[at]).expect("answers"));
    let mut deleted = 0;
    for ((text, written), (theirs, ours)) in accepted.iter().zip(theirs.iter().zip(&ours)) {
        assert!(!theirs.starts_with("syntax"), "{text}: {theirs}");
        assert_eq!(theirs, ours, "{text} is written as {written}");
        let Ok(left) = serde_json::from_str::<Value>(ours) else {
            continue;
        };
        deleted += usize::from(left != object);
        for identity in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"] {
            assert_eq!(left.pointer(identity), object.pointer(identity), "{text}");
        }
    }
    assert!(deleted > 300, "{deleted} of {} expressions", accepted.len());
}
