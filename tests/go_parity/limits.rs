//! Checks that no text makes the parser run long, and where documents and errors begin.

use std::time::{Duration, Instant};

use manifest::value::Value;
use manifest::yaml;

use crate::stack;

#[test]
fn parses_large_and_odd_texts_in_time() {
    const TIMES: usize = 200_000;
    let numbered = |each: fn(usize) -> String| (0..TIMES).map(each).collect::<String>();
    let texts = [
        ("open lists", "[".repeat(TIMES)),
        ("open mappings", "{a: ".repeat(TIMES)),
        ("open quote", format!("a: \"{}", "x y\n".repeat(TIMES))),
        (
            "one line",
            format!("é: [{}]", numbered(|number| format!("é{number}, "))),
        ),
        ("one scalar", format!("a: {}\n", "word ".repeat(TIMES))),
        ("folded lines", format!("a:\n{}", "  word\n".repeat(TIMES))),
        ("one literal", format!("a: |\n{}", "  text\n".repeat(TIMES))),
        ("many escapes", format!("a: \"{}\"\n", "\\n\\\"".repeat(TIMES))),
        (
            "many keys",
            numbered(|number| format!("k{}: v\n", number * 7919 % TIMES)),
        ),
        ("many numbers as keys", numbered(|number| format!("{number}: v\n"))),
        ("one key many times", "a: 1\n".repeat(TIMES)),
        ("many anchors", numbered(|number| format!("- &a{number} x\n"))),
        (
            "nested anchors",
            numbered(|number| {
                if number < 9000 {
                    format!("&a{number} [")
                } else {
                    String::new()
                }
            }) + &"]".repeat(9000),
        ),
        (
            "merged mappings",
            "a: &a {x: 1}\n".to_owned() + &numbered(|number| format!("b{number}: {{<<: *a}}\n")),
        ),
        ("question marks", format!("a: [{}]", "? ".repeat(TIMES))),
        ("blank lines", format!("a: 1\n{}", "\n".repeat(TIMES))),
        ("long tag", format!("a: !{} 1\n", "x".repeat(TIMES))),
        ("long number", format!("a: 1{}\n", "_".repeat(TIMES))),
        ("long base64", format!("a: !!binary {}\n", "QUFB".repeat(TIMES))),
        ("many documents", "a: 1\n---\n".repeat(TIMES)),
        ("open JSON", "{\"a\":[".repeat(TIMES)),
        ("much JSON", "{\"a\":1}".repeat(TIMES)),
    ];
    for (name, text) in &texts {
        let start = Instant::now();
        stack::with_stack(|| drop(yaml::documents(text).collect::<Vec<_>>()));
        // Far above the needed time, and far below quadratic time.
        assert!(
            start.elapsed() < Duration::from_secs(180),
            "{name}: {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn documents_and_errors_have_number_and_line() {
    let text = "# one\n---\na: 1\n---\n# nothing\n---\n\n\n&x\nb: 2\n---\nc: [\n";
    let documents: Vec<_> = yaml::documents(text).collect();
    let places: Vec<_> = documents
        .iter()
        .flatten()
        .map(|document| (document.number, document.line))
        .collect();
    assert_eq!(places, [(2, 3), (4, 9)]);
    let error = documents[2].as_ref().expect_err("the last document is invalid");
    assert_eq!((error.document, error.line), (5, 13));
    assert_eq!(
        error.to_string(),
        "line 13: a value is missing or cannot start like this"
    );

    let text = "{\"a\": 1}\nnull\n\n{\"b\": 2}\n";
    let places: Vec<_> = yaml::documents(text)
        .flatten()
        .map(|document| (document.number, document.line))
        .collect();
    assert_eq!(places, [(1, 1), (3, 4)]);
}

#[test]
fn json_file_contains_one_value() {
    let numbers = vec![
        Value::Int(1),
        Value::Float(1.0),
        Value::Float(9_223_372_036_854_775_808.0),
    ];
    assert_eq!(yaml::json(" [1, 1.0, 9223372036854775808]\n"), Ok(Value::List(numbers)));
    for text in ["", " ", "{}{}", "{} x", "{\"a\":1,}", "[1e999]", "{a: 1}", "\u{A0}{}"] {
        assert!(yaml::json(text).is_err(), "{text}");
    }
    assert_eq!(yaml::json("{}\n\n]").map_err(|error| error.line), Err(3));
}

#[test]
fn recognizes_text_that_yaml_would_read_otherwise() {
    for text in ["", "~", "yes", "n", "0644", "1_0", "1e3", ".5", "-.inf", "0b-1", "NULL"] {
        assert!(!yaml::resolve::is_text(text), "{text}");
    }
    for text in "a yEs 1e 0o9 190:20:30 2020-01-01 + . 1Ki tRUE 1e309".split(' ') {
        assert!(yaml::resolve::is_text(text), "{text}");
    }
}
