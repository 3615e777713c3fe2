//! Writes values as YAML for people, in a form that every YAML 1.1 and 1.2 reader parses to the same values.

use crate::json;
use crate::json::KEY_MAX;
use crate::text::is_unprintable;
use crate::value::{Map, Value};

/// Returns the YAML of a value, with a line break at its end.
///
/// Mappings have one entry per line, lists the indentation of the parent mapping (as in kubectl). Multi-line strings become
/// literal blocks if that is exact, and strings that any reader might misinterpret are quoted.
pub fn write(value: &Value<'_>) -> String {
    let mut out = String::new();
    match value {
        Value::Map(map) if !map.is_empty() => write_map(map, 0, &mut out),
        Value::List(items) if !items.is_empty() => write_list(items, 0, &mut out),
        other => {
            write_scalar(other, 0, &mut out);
            out.push('\n');
        }
    }
    out
}

/// Writes the entries, one per line, indented by `indent`; the first line is already indented.
fn write_map(map: &Map<'_>, indent: usize, out: &mut String) {
    for (at, (key, value)) in map.iter().enumerate() {
        if at > 0 {
            push_indent(indent, out);
        }
        write_key(key, indent, out);
        match value {
            Value::Map(map) if !map.is_empty() => {
                out.push('\n');
                push_indent(indent + 2, out);
                write_map(map, indent + 2, out);
            }
            Value::List(items) if !items.is_empty() => {
                out.push('\n');
                push_indent(indent, out);
                write_list(items, indent, out);
            }
            scalar => {
                out.push(' ');
                write_scalar(scalar, indent + 2, out);
                out.push('\n');
            }
        }
    }
}

/// Writes a key and its colon. Readers expect a colon within 1,024 characters, so a longer key has a question mark before it and
/// the colon on the next line.
fn write_key(key: &str, indent: usize, out: &mut String) {
    let start = out.len();
    write_text(key, None, out);
    if out.len() - start > KEY_MAX {
        out.insert_str(start, "? ");
        out.push('\n');
        push_indent(indent, out);
    }
    out.push(':');
}

/// Writes the items, each after a dash at `indent`; the first line is already indented.
fn write_list(items: &[Value<'_>], indent: usize, out: &mut String) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            push_indent(indent, out);
        }
        out.push_str("- ");
        match item {
            Value::Map(map) if !map.is_empty() => write_map(map, indent + 2, out),
            Value::List(items) if !items.is_empty() => write_list(items, indent + 2, out),
            scalar => {
                write_scalar(scalar, indent + 2, out);
                out.push('\n');
            }
        }
    }
}

/// Writes a value that needs no lines except those of a literal block at `indent`.
fn write_scalar(value: &Value<'_>, indent: usize, out: &mut String) {
    match value {
        Value::String(text) => write_text(text, Some(indent), out),
        Value::List(_) => out.push_str("[]"),
        Value::Map(_) => out.push_str("{}"),
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Int(int) => out.push_str(&int.to_string()),
        Value::Float(float) => json::write_float(*float, out),
    }
}

/// Writes a string plain, as a literal block at `block` if possible, or in JSON quotes.
fn write_text(text: &str, block: Option<usize>, out: &mut String) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    match block {
        // A block at the root would need indentation.
        Some(indent) if indent > 0 && is_literal(text) => write_literal(text, indent, out),
        _ => write_quoted(text, out),
    }
}

/// Writes a string in JSON quotes. A terminal would display characters that change the direction of text in another order, so they are
/// escaped.
fn write_quoted(text: &str, out: &mut String) {
    let start = out.len();
    json::write_text(text, out);
    if text.contains(is_unprintable) {
        let quoted = json::escape_unprintable(&out.split_off(start));
        out.push_str(&quoted);
    }
}

fn write_literal(text: &str, indent: usize, out: &mut String) {
    let body = text.strip_suffix('\n');
    out.push('|');
    if text.starts_with([' ', '\n']) {
        // The first line does not show the indentation of the block.
        out.push('2');
    }
    out.push_str(match body {
        None => "-",
        Some(body) if body.ends_with('\n') => "+",
        Some(_) => "",
    });
    // The caller writes the line break that ends the block.
    for line in body.unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            push_indent(indent, out);
            out.push_str(line);
        }
    }
}

/// Returns true if a string needs no quotes: it begins like a word or a path, contains no YAML syntax, and is not a boolean or
/// null of YAML 1.1. Numbers and dates begin otherwise.
fn is_plain(text: &str) -> bool {
    let begins =
        |first: char| first.is_ascii_alphabetic() || matches!(first, '/' | '_' | '(' | '$') || first.is_alphabetic();
    text.starts_with(begins)
        && text.chars().all(is_printable)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !is_yaml_word(text)
}

fn is_yaml_word(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns true if a literal block represents exactly this string.
fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && text.contains(|char| !matches!(char, ' ' | '\n' | '\t'))
        && !text.trim_start_matches([' ', '\n']).starts_with('\t')
        && text
            .chars()
            .all(|char| matches!(char, '\n' | '\t') || is_printable(char))
}

/// Returns true for characters that are valid unescaped in YAML, are neither line breaks nor invisible, and do not change the direction of
/// text.
fn is_printable(char: char) -> bool {
    !is_unprintable(char) && !matches!(char, '\u{a0}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn push_indent(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml_of(json: &str) -> String {
        let value = crate::yaml::json(json).expect(json);
        let written = write(&value);
        let read = crate::yaml::documents(&written)
            .next()
            .map(|read| read.expect(&written).value);
        assert_eq!(read.unwrap_or(Value::Null), value, "{written}");
        written
    }

    #[test]
    fn writes_yaml_like_kubectl() {
        assert_eq!(
            yaml_of(r#"{"a":{"b":[{"c":1,"d":[]},[2,[3]],"e"]},"f":{},"g":null,"h":true,"i":1.5}"#),
            "a:\n  b:\n  - c: 1\n    d: []\n  - - 2\n    - - 3\n  - e\nf: {}\ng: null\nh: true\ni: 1.5\n"
        );
    }

    /// A terminal would show `user\u{202e}nimda` as `useradmin`.
    #[test]
    fn escapes_characters_that_change_the_direction_of_text() {
        assert_eq!(
            yaml_of("{\"a\u{202e}\":\"b\u{2066}c\",\"d\":\"e\\nf\u{202a}\\n\"}"),
            "\"a\\u202e\": \"b\\u2066c\"\nd: \"e\\nf\\u202a\\n\"\n"
        );
    }

    #[test]
    fn quotes_ambiguous_text() {
        for text in "yes¦No¦on¦y¦N¦null¦NULL¦~¦true¦0644¦1e3¦1_000¦0x1f¦12:30:45¦2020-01-01¦.inf¦-¦- a¦\
            a: b¦a #b¦a:¦a ¦ a¦¦#a¦&a¦*a¦!a¦%a¦@a¦`a¦{a¦[a¦=¦<<¦'a'¦\"a\"¦?¦? a¦|¦>¦a\tb¦\u{85}¦a\u{a0}¦\
            \u{feff}a¦+1¦1,000¦---¦..."
            .split('¦')
        {
            let json = format!("{{{0}:{0}}}", quoted(text));
            let written = yaml_of(&json);
            assert!(written.starts_with('"'), "{written}");
        }
        for text in "web¦nginx:1.27¦/bin/sh¦a b¦$(VAR)¦_x¦grüß¦a,b¦a{b}¦nope¦yesterday¦a:b".split('¦') {
            assert_eq!(yaml_of(&format!("{{\"k\":{}}}", quoted(text))), format!("k: {text}\n"));
        }
    }

    #[test]
    fn writes_exact_literal_blocks_for_several_lines() {
        for (text, expected) in [
            ("a\nb", "k: |-\n  a\n  b\n"),
            ("a\nb\n", "k: |\n  a\n  b\n"),
            ("a\n\n  b\n\n", "k: |+\n  a\n\n    b\n\n"),
            ("a # b\n\tc: d", "k: |-\n  a # b\n  \tc: d\n"),
            ("---\n%a", "k: |-\n  ---\n  %a\n"),
            ("a\n \nb", "k: |-\n  a\n   \n  b\n"),
            (" a\nb", "k: |2-\n   a\n  b\n"),
            ("\na\n", "k: |2\n\n  a\n"),
            ("\n  a\n\n", "k: |2+\n\n    a\n\n"),
            ("  \na", "k: |2-\n    \n  a\n"),
        ] {
            assert_eq!(yaml_of(&format!("{{\"k\":{}}}", quoted(text))), expected);
            yaml_of(&format!("[{}]", quoted(text)));
            yaml_of(&format!("{{\"k\":[{0},{{\"a\":{0}}}],\"l\":1}}", quoted(text)));
        }
        for text in ["a\nb", "---\na\n"] {
            assert!(yaml_of(&quoted(text)).starts_with('"'), "the root is not indented");
        }
        for text in ["\ta\nb", "\n\ta", "a\r\nb", "a\u{7f}\n", "\n", " \n"] {
            assert!(yaml_of(&format!("{{\"k\":{}}}", quoted(text))).starts_with("k: \""));
        }
    }

    #[test]
    fn writes_long_keys_that_can_be_parsed() {
        let key = "k".repeat(KEY_MAX + 1);
        for value in [
            "1",
            r#"{"a":1}"#,
            "[1,[2]]",
            r#""a\nb""#,
            r#""\na\n""#,
            r#"{"a":[1],"b":2}"#,
        ] {
            let written = yaml_of(&format!(r#"{{"a":{{"{key}":{value},"x":1}}}}"#));
            assert!(written.starts_with(&format!("a:\n  ? {key}\n  :")), "{written}");
            yaml_of(&format!(r#"[{{"{key}":{value}}},[{{"{key}":{value},"x":1}}]]"#));
        }
        assert!(yaml_of(&format!(r#"{{"{}":1}}"#, &key[1..])).starts_with("kk"));
    }

    fn quoted(text: &str) -> String {
        let mut out = String::new();
        json::write_text(text, &mut out);
        out
    }
}
