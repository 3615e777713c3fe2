//! Finds parts of a file that are probably not delivered as they are meant. kubectl and Argo CD say nothing about them.

use manifest::text::LineCounter;
use memchr::memmem::Finder;
use std::sync::LazyLock;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct LikelyMistake {
    pub(super) line: usize,
    /// The description, and what to do.
    pub(super) message: &'static str,
}

const GLUED: &str = "the line ends with ---, which does not end a document, so the next object replaces this one: put --- on a line of \
                     its own";
const NOT_SEPARATED: &str = "a second object begins without --- above it, and replaces the first: add ---";
const NOT_READ: &str = "text after the line ..., which ends a document, is not read: put --- in the place of that line";
const TEMPLATE: &str =
    "it is a template of a chart, but delivered as it is: name the chart's folder as the source, or exclude the file";
const NO_TEMPLATE: &str =
    "it is a template of a chart, so it is not delivered: name the chart's folder as the source, or exclude the file";
const ENCRYPTED: &str = "it is encrypted by SOPS, and delivered as it is: deliver a SealedSecret or an ExternalSecret instead, or exclude \
                         the file";
const NOT_AN_OBJECT: &str = "it looks like an object, but has no apiVersion, kind and metadata, so it is not delivered: correct it, or \
                             exclude the file";

/// The objects that only templates of charts have.
const OF_CHARTS: [&str; 4] = [".Values.", ".Release.", ".Chart.", ".Capabilities."];

/// Returns the position of the first action of a template that has an object of charts. It is searched in one pass: what follows `{{` up
/// to the next `}}` contains each `{{` between them.
fn find_action_of_chart(text: &str) -> Option<usize> {
    static ACTION: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("{{"));
    static END: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("}}"));
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(at) = ACTION.find(&bytes[from..]).map(|at| from + at) {
        let end = END.find(&bytes[at..]).map_or(text.len(), |end| at + end);
        if OF_CHARTS.iter().any(|name| text[at..end].contains(name)) {
            return Some(at);
        }
        from = end;
    }
    None
}

/// The keys that every object has.
const KEYS_OF_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Returns the start of each key in the text that ends with `name`: with a colon behind it, after a closing quote and blanks if it has
/// them.
fn keys<'t>(text: &'t str, name: &'t Finder<'_>) -> impl Iterator<Item = usize> + 't {
    let length = name.needle().len();
    name.find_iter(text.as_bytes()).filter_map(move |at| {
        let quote = text[..at].chars().next_back().filter(|before| "\"'".contains(*before));
        let after = &text[at + length..];
        let after = quote.map_or(Some(after), |quote| after.strip_prefix(quote))?;
        let is_key = after.trim_start_matches([' ', '\t']).starts_with(':');
        is_key.then_some(at - quote.map_or(0, char::len_utf8))
    })
}

/// Returns true if the text contains each key that an object has, in any spelling.
pub(super) fn has_keys_of_object(text: &str) -> bool {
    KEYS_OF_OBJECT
        .iter()
        .all(|name| keys(text, &Finder::new(name)).next().is_some())
}

fn starts_line(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

/// Returns the first text that is not read because it follows a line `...`, if the text before or after it contains an object.
fn find_text_after_end(text: &str, manifests: usize) -> Option<usize> {
    static END: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\n..."));
    let mut at = END.find(text.as_bytes())? + 1;
    let mut is_after_end = false;
    for line in text[at..].split_inclusive('\n') {
        if line.starts_with("---") {
            is_after_end = false;
        } else if line.split_whitespace().next() == Some("...") {
            is_after_end |= line.starts_with("...");
        } else if is_after_end && !line.trim().is_empty() && !line.starts_with(['#', '%']) {
            // A line that starts with % is a directive for the next document.
            return (manifests > 0 || has_keys_of_object(&text[at..])).then_some(at);
        }
        at += line.len();
    }
    None
}

/// Returns the probable mistakes in the text of a file, from which this number of manifests was read. `has_almost_an_object` is true if
/// it has a document that lacks only the `kind`.
pub(super) fn likely_mistakes(text: &str, manifests: usize, has_almost_an_object: bool) -> Vec<LikelyMistake> {
    static API_VERSION: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("apiVersion"));
    static SOPS: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("\nsops:"));
    let bytes = text.as_bytes();
    let mut lines = LineCounter::new(text);
    let mut mistakes = Vec::new();
    let mut add = |at: usize, message| {
        let line = lines.line_of(at);
        mistakes.push(LikelyMistake { line, message });
    };
    if let Some(at) = find_action_of_chart(text) {
        add(at, if manifests == 0 { NO_TEMPLATE } else { TEMPLATE });
    } else if manifests == 0 {
        let starts_a_line = |name: &&&str| keys(text, &Finder::new(name)).any(|at| starts_line(text, at));
        if has_almost_an_object || KEYS_OF_OBJECT.iter().filter(starts_a_line).count() > 1 {
            add(0, NOT_AN_OBJECT);
        }
    }
    if let Some(at) = find_text_after_end(text, manifests) {
        add(at, NOT_READ);
    }
    if manifests > 0 {
        let mut searched = 0;
        let mut has_another = false;
        // Lines of JSON without indentation begin with keys of nested objects.
        let is_json = text.trim_start().starts_with('{');
        for at in keys(text, &API_VERSION).filter(|&at| starts_line(text, at) && !is_json) {
            let between = &text[searched..at];
            has_another &= !between.contains("\n---") && !between.contains("\n...");
            if has_another {
                let last = between.trim_end();
                if last.ends_with("---") {
                    add(searched + last.len() - 1, GLUED);
                } else {
                    add(at, NOT_SEPARATED);
                }
            }
            has_another = true;
            searched = at;
        }
        if let Some(at) = SOPS.find(bytes).filter(|&at| text[..at].contains("ENC[")) {
            add(at + 1, ENCRYPTED);
        }
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

    fn mistakes(text: &str, objects: usize) -> Vec<(usize, &'static str)> {
        let mistakes = likely_mistakes(text, objects, false).into_iter();
        mistakes.map(|mistake| (mistake.line, mistake.message)).collect()
    }

    #[test]
    fn finds_objects_that_replace_others() {
        let good = CONFIG_MAP.repeat(2).replacen("name: a\n", "name: a\n---\n", 1);
        assert_eq!(mistakes(&good, 2), []);
        let glued = good.replacen("name: a\n---\n", "name: a---\n", 1);
        assert_eq!(mistakes(&glued, 1), [(4, GLUED)]);
        assert_eq!(mistakes(&format!("---\n{glued}"), 1), [(5, GLUED)]);
        assert_eq!(mistakes(&CONFIG_MAP.repeat(2), 1), [(5, NOT_SEPARATED)]);
        let quoted = CONFIG_MAP.replace("apiVersion:", "\"apiVersion\" :");
        assert_eq!(mistakes(&quoted.repeat(2), 1), [(5, NOT_SEPARATED)]);
        let json =
            "{\n\"kind\": \"List\",\n\"items\": [\n{\n\"apiVersion\": \"v1\"\n},\n{\n\"apiVersion\": \"v1\"\n}\n]\n}\n";
        assert_eq!(mistakes(json, 2), []);
        let text_of_an_object = format!("{CONFIG_MAP}data:\n  a: |\n    apiVersion: v1\n    kind: x---\n");
        assert_eq!(mistakes(&text_of_an_object, 1), []);
    }

    #[test]
    fn finds_templates_of_charts_only() {
        let template = format!("{CONFIG_MAP}data:\n  a: {{{{ .Values.a }}}}\n");
        assert_eq!(mistakes(&template, 0), [(6, NO_TEMPLATE)]);
        assert_eq!(
            mistakes(&template.replace("{{", "\"{{").replace("}}", "}}\""), 1),
            [(6, TEMPLATE)]
        );
        for other in ["{{ $labels.pod }}", "{{inputs.parameters.a}}", "{{ .name }} .Values.a"] {
            assert_eq!(mistakes(&template.replace("{{ .Values.a }}", other), 1), []);
        }
    }

    #[test]
    fn finds_encrypted_objects() {
        let encrypted = format!("{CONFIG_MAP}data:\n  a: ENC[AES256_GCM,data:x]\nsops:\n  mac: x\n");
        assert_eq!(mistakes(&encrypted, 1), [(7, ENCRYPTED)]);
        assert_eq!(mistakes(&encrypted.replace("ENC[", "["), 1), []);
    }

    #[test]
    fn finds_text_that_was_meant_as_an_object() {
        assert_eq!(
            mistakes("apiVersion: v1\nkind: Pod\nmetadat:\n  name: a\n", 0),
            [(1, NOT_AN_OBJECT)]
        );
        for other in [
            "kind: Deployment\nreplicas: 1\n",
            "apiVersion: v2\nname: web\n",
            "a:\n  kind: x\n  metadata: {}\n",
        ] {
            assert_eq!(mistakes(other, 0), []);
        }
    }
}
