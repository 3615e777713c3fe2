//! Generators of hostile input for property tests.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use serde_json::{Map, Number, Value};

/// Texts with a special meaning to a terminal, to YAML, to JSON, to a shell or to Unicode.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "a", "Z", "0", "9", " ", "  ", "\n", "\r", "\r\n", "\t", "\0", "\u{1b}[2J", "\u{7f}", "\u{85}", "\u{a0}",
    "\u{2028}", "\u{2029}", "\u{202e}", "\u{2066}", "\u{2069}", "\u{feff}", "\u{fffe}", "\u{fffd}", "\u{10ffff}", "é",
    "日本", "😀", "e\u{301}", ":", ": ", "-", "- ", "---", "...", "#", " #", "&", "*", "!", "!!", "|", ">", "%", "@", "`",
    "\"", "'", "\\", "\\n", "{", "}", "[", "]", ",", "=", "$", "${A}", "/", "..", "../", "~", "<<", "null", "true",
    "yes", "NaN", ".inf", "1e999", "0x", "0644", "9223372036854775808", "-9223372036854775809", "12:30:45",
    "2020-01-01", "file://", "http://", "(", ")", "?", "+", "^", ";",
];

/// Generates texts of a few such pieces, or of any characters.
pub fn hostile_text() -> impl Strategy<Value = String> + Clone {
    let pieces = vec(select(PIECES), 0..8).prop_map(|pieces| pieces.concat());
    let long = (select(PIECES), 1..3000_usize).prop_map(|(piece, count)| piece.repeat(count));
    prop_oneof![8 => pieces, 4 => any::<String>(), 1 => long]
}

/// Generates small JSON values of any shape.
pub fn hostile_json() -> impl Strategy<Value = Value> + Clone {
    let numbers = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(&["1e999", "-1e999", "1e-999", "123456789012345678901234567890", "-0"][..])
            .prop_map(|text| Value::Number(text.parse::<Number>().expect("a number"))),
    ];
    let leaves = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        numbers,
        hostile_text().prop_map(Value::from)
    ];
    leaves.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((hostile_text(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A change to a JSON value: replaces or removes the value at an existing path.
type Change = (Index, Option<Value>);

/// Generates one of these values with up to five changes.
pub fn tampered(values: Vec<Value>) -> impl Strategy<Value = Value> {
    let change = (any::<Index>(), proptest::option::weighted(0.8, hostile_json()));
    (select(values), vec(change, 0..5)).prop_map(|(mut value, changes): (Value, Vec<Change>)| {
        for (at, other) in changes {
            let mut paths = Vec::new();
            collect_paths(&value, String::new(), &mut paths);
            let path = &paths[at.index(paths.len())];
            match (other, path.rsplit_once('/')) {
                (Some(other), _) => *value.pointer_mut(path).expect("the path of a value") = other,
                (None, Some((parent, last))) => match value.pointer_mut(parent) {
                    Some(Value::Object(fields)) => {
                        fields.remove(&last.replace("~1", "/").replace("~0", "~"));
                    }
                    Some(Value::Array(items)) => {
                        items.remove(last.parse().expect("a number"));
                    }
                    _ => unreachable!("it has something in it"),
                },
                (None, None) => {}
            }
        }
        value
    })
}

fn collect_paths(value: &Value, path: String, paths: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect_paths(item, format!("{path}/{at}"), paths);
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect_paths(field, format!("{path}/{key}"), paths);
            }
        }
        _ => {}
    }
    paths.push(path);
}

/// Returns true if a text is one line that a terminal displays unchanged.
pub fn is_plain_line(text: &str) -> bool {
    !text.contains(|char: char| {
        char.is_control() || matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

/// A change to the bytes of a file.
#[derive(Clone, Debug)]
enum Edit {
    Flip(Index, u8),
    Insert(Index, String),
    Remove(Index, usize),
    Repeat(Index, usize, Index),
    Cut(Index),
}

/// Generates one of these files with up to a dozen changes, possibly none.
pub fn mutated(files: Vec<impl Into<Vec<u8>>>) -> impl Strategy<Value = Vec<u8>> {
    let edit = prop_oneof![
        2 => (any::<Index>(), any::<u8>()).prop_map(|(at, mask)| Edit::Flip(at, mask)),
        6 => (any::<Index>(), hostile_text()).prop_map(|(at, text)| Edit::Insert(at, text)),
        4 => (any::<Index>(), 1..20_usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        4 => (any::<Index>(), 1..60_usize, any::<Index>()).prop_map(|(at, length, to)| Edit::Repeat(at, length, to)),
        1 => any::<Index>().prop_map(Edit::Cut),
    ];
    let files: Vec<Vec<u8>> = files.into_iter().map(Into::into).collect();
    (select(files), vec(edit, 0..12)).prop_map(|(mut bytes, edits)| {
        for edit in edits {
            apply(edit, &mut bytes);
        }
        bytes
    })
}

fn apply(edit: Edit, bytes: &mut Vec<u8>) {
    // The end is a valid position too.
    let position = |at: Index| at.index(bytes.len() + 1);
    let range = |at: Index, length: usize| position(at)..(position(at) + length).min(bytes.len());
    match edit {
        Edit::Flip(at, mask) if position(at) < bytes.len() => {
            let at = position(at);
            bytes[at] ^= mask;
        }
        Edit::Flip(..) => {}
        Edit::Insert(at, text) => {
            let at = position(at);
            bytes.splice(at..at, text.into_bytes());
        }
        Edit::Remove(at, length) => {
            let range = range(at, length);
            bytes.drain(range);
        }
        Edit::Repeat(at, length, to) => {
            let (range, to) = (range(at, length), position(to));
            let copy = bytes[range].to_vec();
            bytes.splice(to..to, copy);
        }
        Edit::Cut(at) => {
            let at = position(at);
            bytes.truncate(at);
        }
    }
}
