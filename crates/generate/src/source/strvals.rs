//! Escapes single values for Helm's `--set`, `--set-string` and `--set-file`, so that each sets exactly one key.
//!
//! The rules are those of Helm's package `strvals`: `,` ends a value, `.` and `[` separate the parts of a key, `\` escapes the
//! next character, and a value that begins with `{` is a list up to the first `}`.

/// The maximum number of nested lists in a key. Helm has no such limit, and allocates a list up to each index.
const INDICES: usize = 30;

/// The highest index, as in Helm.
const INDEX: usize = 65_536;

/// Checks that Helm reads a key as one key.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    let mut chars = key.chars();
    let (mut indices, mut after_index) = (0, false);
    while let Some(char) = chars.next() {
        if after_index && !matches!(char, '[' | '.') {
            return Err("after an index follows '.', another index, or nothing".to_owned());
        }
        after_index = false;
        match char {
            '\\' if chars.next().is_none() => {
                return Err("a key cannot end in a backslash, which would escape the '='".to_owned());
            }
            ',' => return Err(r"a comma ends a key: write \, for a comma in the key".to_owned()),
            '[' => {
                let rest = chars.as_str();
                let Some((index, behind)) = rest.split_once(']') else {
                    return Err(r"an index ends with ']': write \[ for a bracket in the key".to_owned());
                };
                let number: Option<usize> = index.parse().ok().filter(|&number| number <= INDEX);
                if !index.bytes().all(|byte| byte.is_ascii_digit()) || number.is_none() {
                    return Err(format!("an index is a number up to {INDEX}"));
                }
                indices += 1;
                chars = behind.chars();
                after_index = true;
            }
            char if char.is_control() => return Err("a key cannot have a control character".to_owned()),
            _ => {}
        }
    }
    if indices > INDICES {
        return Err(format!("a key can have {INDICES} indices at most"));
    }
    Ok(())
}

/// Returns a value with its commas escaped; lists stay unchanged. As in Argo CD, an existing `\,` stays unchanged.
///
/// # Errors
/// Returns an error with the reason if the value begins like a list and is not one: Helm would read the rest as another key.
pub(super) fn escape_commas(value: &str) -> Result<String, String> {
    if value.contains('\0') {
        return Err("it contains a NUL character, which cannot be passed to a program".to_owned());
    }
    if let Some(items) = value.strip_prefix('{') {
        return match end_of_list(items) {
            Some("") => Ok(value.to_owned()),
            _ => Err("a value that begins with a brace is a list for Helm, and must end with its first closing brace: put a \
                      backslash before the brace of a text"
                .to_owned()),
        };
    }
    let mut escaped = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => {
                escaped.push('\\');
                escaped.extend(chars.next());
            }
            ',' => escaped.push_str(r"\,"),
            char => escaped.push(char),
        }
    }
    Ok(escaped)
}

/// Returns the text after the end of a list; `None` if the list has no end.
fn end_of_list(items: &str) -> Option<&str> {
    let mut chars = items.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            '}' => return Some(chars.as_str()),
            _ => {}
        }
    }
    None
}

/// Returns the absolute path of a file as a value of `--set-file` that names exactly this file.
pub(super) fn file(path: &str) -> String {
    path.replace('\\', r"\\").replace(',', r"\,")
}

/// Returns a text as one element of an option that Helm reads as comma-separated values, such as `--values`.
pub(super) fn element(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn accepts_keys_that_helm_can_parse() {
        for key in [
            "image.tag",
            "containers[0].args[1]",
            "matrix[0][1]",
            r"annotations.example\.com/two",
            r"a\,b",
            r"a\[b\]",
            "with space",
            "",
        ] {
            assert_eq!(check_key(key), Ok(()), "{key}");
        }
        let deep = format!("a{}", "[65536]".repeat(31));
        for key in [
            "a,b",
            r"a\",
            r"a\\\",
            "list[x]",
            "list[0",
            "list[0]x",
            "list[-1]",
            "list[65537]",
            "list[+1]",
            "a\nb",
            &deep,
        ] {
            assert!(check_key(key).is_err(), "{key}");
        }
    }

    #[test]
    fn escapes_commas_in_values_but_not_in_lists() {
        for (given, expected) in [
            ("a,b", r"a\,b"),
            (r"a\,b,,c", r"a\,b\,\,c"),
            (r"a\\,leak=1", r"a\\\,leak=1"),
            ("{a,b}", "{a,b}"),
            ("{}", "{}"),
            (r"{a\},b}", r"{a\},b}"),
            (r"\{a,b", r"\{a\,b"),
            ("a{b},c", r"a{b}\,c"),
        ] {
            assert_eq!(escape_commas(given).as_deref(), Ok(expected), "{given}");
        }
        for given in [
            "{a},leak=1",
            "{a}leak=1,b=2",
            "{a},leak={b}",
            "{a",
            r"{a\}",
            "{{a}}",
            "a\0",
        ] {
            assert!(escape_commas(given).is_err(), "{given}");
        }
    }

    #[test]
    fn escapes_paths_for_helm() {
        assert_eq!(file(r"/a\,b=/c"), r"/a\\\,b=/c");
        assert_eq!(element("/a,b"), r#""/a,b""#);
        assert_eq!(element(r#"/a"b"#), r#""/a""b""#);
        assert_eq!(element("/a b"), "/a b");
    }

    /// Returns the text that Helm would read after one value: nothing, or a second key.
    fn rest_for_helm(text: &str) -> &str {
        if let Some(items) = text.strip_prefix('{') {
            return end_of_list(items).unwrap_or("no end");
        }
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match char {
                '\\' => drop(chars.next()),
                ',' => return chars.as_str(),
                _ => {}
            }
        }
        ""
    }

    proptest! {
        #![proptest_config(testing::config(256))]

        #[test]
        fn no_value_sets_a_second_key(text in any::<String>(), parts in proptest::collection::vec("[\\\\,{}=a]", 0..12)) {
            for given in [text, parts.concat()] {
                if let Ok(written) = escape_commas(&given) {
                    assert_eq!(rest_for_helm(&written), "", "{given}");
                }
                assert_eq!(rest_for_helm(&file(&format!("/{given}"))), "", "{given}");
            }
        }
    }
}
