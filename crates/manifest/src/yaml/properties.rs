//! Property tests of YAML with random changes to files of the corpus and of users, with generated tokens, and with documents
//! whose value is known beforehand.

#![expect(clippy::disallowed_methods, reason = "files to begin with")]

mod made;

use super::{Documents, documents, json, write};
use crate::value::Value;
use made::{known_documents, tokens};
use proptest::prelude::{BoxedStrategy, Just, Strategy};
use proptest::prop_oneof;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fs, iter};
use testing::{holds, hostile_json, hostile_text, is_plain_line, mutated};

// Property tests run on a stack that is large enough for the deepest document.
const _: () = assert!(testing::STACK >= super::STACK);

fn files() -> Vec<Vec<u8>> {
    static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut paths: Vec<PathBuf> = ["tests/data/yaml-corpus", "tests/data/manifests", "guestbook"]
            .iter()
            .flat_map(|folder| fs::read_dir(root.join(folder)).expect("a folder"))
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml"))
            .collect();
        paths.sort();
        let files = paths.iter().map(|path| fs::read(path).expect("a file"));
        files.filter(|file| file.len() < 4000).collect()
    });
    FILES.clone()
}

/// Generates texts, about as often valid as invalid.
fn texts() -> BoxedStrategy<String> {
    prop_oneof![
        4 => mutated(files()).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        3 => tokens(),
        2 => known_documents().prop_map(|known| known.text),
        1 => hostile_text(),
        1 => hostile_json().prop_map(|value| value.to_string()),
    ]
    .boxed()
}

/// Returns the values of a text, or `None` if a part of it is refused.
fn values(text: &str) -> Option<Vec<Value<'_>>> {
    documents(text).map(|document| Some(document.ok()?.value)).collect()
}

fn ending_with_a_line_break(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{end}")
}

#[test]
fn parses_generated_documents() {
    holds(2500, known_documents, |known| {
        let read: Vec<_> = documents(&known.text).collect();
        let [Ok(read)] = &read[..] else {
            panic!("one document: {read:?}\n{}", known.text)
        };
        assert_eq!(read.value, known.value, "{}", known.text);
    });
}

#[test]
fn written_yaml_and_json_parse_to_the_same_value() {
    holds(3000, texts, |text| {
        for value in documents(&text).map_while(Result::ok).map(|document| document.value) {
            let value = with_whole_floats_as_integers(value);
            let printed = write(&value);
            let read = values(&printed).unwrap_or_else(|| panic!("refused: {printed}"));
            assert_eq!(read, std::slice::from_ref(&value), "{printed}");
            let mut printed = String::new();
            if crate::json::write(&value, &mut printed).is_ok() {
                assert_eq!(json(&printed).as_ref(), Ok(&value), "{printed}");
                // As Argo CD's second parser reads it.
                assert_eq!(
                    values(&format!("x: {printed}\n")),
                    values(&format!("{{\"x\":{printed}}}"))
                );
            }
        }
    });
}

/// Converts whole floats to the integers that Go prints for them.
fn with_whole_floats_as_integers(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Float(float) => {
            let mut text = String::new();
            crate::json::write_float(float, &mut text);
            text.parse().map_or(value, Value::Int)
        }
        Value::List(items) => Value::List(items.into_iter().map(with_whole_floats_as_integers).collect()),
        Value::Map(mut map) => {
            map.retain(|_, value| {
                *value = with_whole_floats_as_integers(std::mem::replace(value, Value::Null));
                true
            });
            Value::Map(map)
        }
        other => other,
    }
}

#[test]
fn parse_error_is_one_line_and_ends_the_stream() {
    holds(4000, texts, |text| {
        let _ = json(&text);
        let read: Vec<_> = documents(&text).collect();
        assert_eq!(read, documents(&text).collect::<Vec<_>>(), "the same each time");
        let mut before = 0;
        for (at, document) in read.iter().enumerate() {
            let (number, line) = match document {
                Ok(document) => (document.number, document.line),
                Err(error) => {
                    assert_eq!(at + 1, read.len(), "something follows {error}");
                    assert!(is_plain_line(&error.message) && error.message.len() < 2000, "{error:?}");
                    (error.document, error.line)
                }
            };
            assert!(
                number > before && (1..=text.lines().count() + 1).contains(&line),
                "{document:?}"
            );
            before = number;
        }
        assert_no_more(&text, read.len());
    });
}

fn assert_no_more(text: &str, count: usize) {
    let mut documents: Documents<'_> = documents(text);
    let all = iter::repeat_with(|| documents.next()).take(count + 3);
    assert_eq!(all.flatten().count(), count);
}

#[test]
fn crlf_parses_like_lf() {
    holds(2500, texts, |text| {
        // In longer texts the other character reaches limits on the length of keys and lines in bytes, and the search for YAML in
        // text that begins like JSON.
        if text.len() > 900 || text.contains('\r') || text.trim_start().starts_with('{') {
            return;
        }
        let other = text.replace('\n', "\r\n");
        let documents = |text| documents(text).collect::<Result<Vec<_>, _>>();
        match (documents(&text), documents(&other)) {
            (Ok(one), Ok(other)) => assert_eq!(one, other),
            (Err(one), Err(other)) => assert_eq!((one.document, one.message), (other.document, other.message)),
            (one, other) => panic!("{one:?} but {other:?}"),
        }
    });
}

#[test]
fn documents_of_a_stream_are_independent() {
    holds(
        2500,
        || (texts(), texts()),
        |(one, other)| {
            let one = ending_with_a_line_break(&one);
            // Text that begins with a brace may be JSON as a whole.
            let begins_json = |text: &str| text.trim_start().starts_with('{');
            // The byte order mark of a file is not part of a document.
            if other.starts_with('\u{feff}') || begins_json(&one) || begins_json(&other) {
                return;
            }
            let (Some(first), Some(second)) = (values(&one), values(&other)) else {
                return;
            };
            let both = format!("{one}---\n{other}");
            assert_eq!(values(&both), Some([first, second].concat()), "{both}");
        },
    );
}

#[test]
fn limits_alias_expansion() {
    let inputs = || (1..14_usize, 1..14_usize, proptest::bool::ANY);
    holds(25, inputs, |(levels, width, is_map)| {
        let mut text = "a0: &a0 [x, y]\n".to_owned();
        for level in 1..levels {
            let before = level - 1;
            let items = (0..width).map(|item| {
                if is_map {
                    format!("k{item}: *a{before}")
                } else {
                    format!("*a{before}")
                }
            });
            let items = items.collect::<Vec<_>>().join(", ");
            let brackets = if is_map { ["{", "}"] } else { ["[", "]"] };
            writeln!(text, "a{level}: &a{level} {}{items}{}", brackets[0], brackets[1])
                .expect("writing to a String never fails");
        }
        let read = documents(&text).next().expect("a document");
        let expected: usize = (0..levels)
            .map(|level| 3 * width.saturating_pow(u32::try_from(level).expect("few")))
            .sum();
        match read {
            Ok(document) => assert!(count(&document.value) < 900_000, "{expected}"),
            Err(error) => assert!(
                expected > 1000 && error.message.contains("alias"),
                "{expected}: {error}"
            ),
        }
    });
}

fn count(value: &Value<'_>) -> usize {
    1 + match value {
        Value::List(items) => items.iter().map(count).sum::<usize>(),
        Value::Map(map) => map.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    }
}

#[test]
fn accepts_10000_levels_and_no_more_in_every_style() {
    let styles = [("[", "]"), ("{a: ", "}"), ("- ", ""), ("{\"a\":", "}"), ("&a [", "]")];
    holds(
        1,
        || Just(()),
        |()| {
            for (open, close) in styles {
                let nested = |levels| open.repeat(levels) + "1" + &close.repeat(levels);
                let text = nested(10_000);
                let read = values(&text).expect(open);
                assert_eq!(read.clone(), read, "{open}");
                let error = documents(&nested(10_001)).find_map(Result::err).expect(open);
                assert!(error.message.contains("nested more than 10000 deep"), "{error}");
            }
        },
    );
}
