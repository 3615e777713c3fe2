//! Reads files of CEL expressions, and shortens them, because every ManifestWork carries them.
//!
//! A file has definitions `name = expression`, each from the start of a line, with indented lines that continue it. `$name` stands
//! for the expression of that name. Comments are lines that begin with `//`.

use std::collections::BTreeMap;

/// Definitions by name.
pub(crate) type Definitions = BTreeMap<String, String>;

/// Adds the definitions of a file, without spaces.
///
/// # Panics
/// If a line is neither a definition nor part of one.
pub(crate) fn read_definitions(file: &str, definitions: &mut Definitions) {
    let mut name = None;
    for line in file.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let text = if line.starts_with(' ') || line.is_empty() {
            line
        } else {
            let (defined, text) = line.split_once(" =").expect(line);
            name = Some(defined.to_owned());
            text
        };
        if !text.trim().is_empty() {
            let name = name.clone().expect(line);
            definitions.entry(name).or_default().push_str(&shorten(text));
        }
    }
}

/// Returns the expression of that name with the expressions of the names in it.
///
/// # Panics
/// If a name is not defined.
pub(crate) fn expand(name: &str, definitions: &Definitions) -> String {
    let mut expression = String::new();
    for (text, is_string) in strings(definitions.get(name).expect(name)) {
        if is_string {
            expression.push_str(text);
            continue;
        }
        let mut parts = text.split('$');
        expression.extend(parts.next());
        for part in parts {
            let end = part.find(|char: char| !char.is_ascii_lowercase() && char != '_');
            let (name, rest) = part.split_at(end.unwrap_or(part.len()));
            expression.push_str(&expand(name, definitions));
            expression.push_str(rest);
        }
    }
    expression
}

/// Removes the spaces outside of strings, except those around the operator `in`.
fn shorten(expression: &str) -> String {
    let mut shortened = String::new();
    for (text, is_string) in strings(expression) {
        if is_string {
            shortened.push_str(text);
            continue;
        }
        for word in text.split_whitespace() {
            shortened.push_str(if word == "in" { " in " } else { word });
        }
    }
    shortened
}

/// Splits an expression into its strings, with their quotes, and the texts between them.
fn strings(expression: &str) -> impl Iterator<Item = (&str, bool)> {
    // CEL escapes a quote in a string with a backslash: none of the strings has one.
    let mut rest = expression;
    let mut is_string = false;
    std::iter::from_fn(move || {
        let end = match (is_string, rest.find('\'')) {
            (true, Some(_)) => rest[1..].find('\'').map_or(rest.len(), |end| end + 2),
            (false, Some(start)) => start,
            (_, None) => rest.len(),
        };
        if rest.is_empty() {
            return None;
        }
        let (text, after) = rest.split_at(end);
        rest = after;
        let item = (text, is_string);
        is_string = !is_string;
        Some(item)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_lose_spaces_comments_and_names() {
        let file = "// A comment.\nlist = [ 'a b', 'c$d' ]\n\nis_in =\n  // Another.\n  x in $list\n    && y == '  '\n";
        let mut definitions = Definitions::new();
        read_definitions(file, &mut definitions);
        assert_eq!(expand("is_in", &definitions), "x in ['a b','c$d']&&y=='  '");
    }
}
