//! Extracts the messages of a source file, without the texts that only programmers read.

use crate::page::root;
use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use syn::LitStr;

/// The messages of a source file.
#[derive(Debug, Default)]
pub(crate) struct Text {
    /// The first sentence of its documentation.
    pub(crate) about: String,
    /// Its messages, in order, each once.
    pub(crate) messages: Vec<String>,
    /// Its names of several words, such as the types of conditions.
    pub(crate) names: BTreeSet<String>,
    /// Its test modules.
    tests: Vec<String>,
}

/// The minimum number of words of a sentence.
const WORDS: usize = 3;

/// The attributes whose texts are not messages: documentation, the help of the command line, reasons for the compiler.
const ATTRIBUTES: [&str; 8] = ["doc", "arg", "command", "value", "allow", "expect", "must_use", "serde"];

/// The functions and macros with a text about an impossible state.
const IMPOSSIBLE: &str = "assert assert_eq assert_ne debug_assert expect expect_err panic unreachable";

/// The fields of tables from which the help of the command line is generated.
const HELP: [&str; 3] = ["about", "default", "title"];

/// The first words of noun phrases, adverbials and steps, which other texts insert: `the token key`, `in namespace NAMESPACE`, `reading the hub`.
const PHRASE_STARTS: [&str; 15] = [
    "a", "an", "any", "at", "changing", "in", "nothing", "of", "reading", "the", "to", "true", "with", "without",
    "writing",
];

/// The maximum number of words of such a phrase.
const PHRASE_WORDS: usize = 6;

/// The words that make a sentence of a phrase.
const VERBS: [&str; 18] = [
    "applies", "are", "cannot", "ended", "ends", "has", "have", "includes", "is", "lacks", "must", "needs", "not",
    "refuses", "replaces", "serves", "stays", "stopped",
];

/// The marks of a rule for the agent, in contrast to a sentence.
#[rustfmt::skip]
const RULE: [&str; 9] = [
    "object.", "self.", "self in", "?'", ":'", "'.format(", ".exists(", ".orValue(", ".map(",
];

/// Returns all sources with messages, by path, except those in `without`.
pub(crate) fn sources(without: &[(&str, &str)]) -> Vec<(String, Text)> {
    let mut files = Vec::new();
    for folder in ["src", "crates"] {
        collect(&root().join(folder), &mut files);
    }
    files.retain(|file| !file.starts_with(root().join("crates/testing")));
    files.sort();
    let mut sources: Vec<(String, Text)> = Vec::new();
    let mut tests: Vec<String> = Vec::new();
    for file in files {
        let path = file
            .strip_prefix(root())
            .expect("a path in the repository")
            .to_string_lossy()
            .into_owned();
        let source = fs::read_to_string(&file).expect("a source");
        let text = if file.extension().is_some_and(|extension| extension == "cel") {
            read_expressions(&source)
        } else {
            parse_source(&source)
        };
        let folder = match path.strip_suffix(".rs") {
            Some("src/main") | None => "src",
            Some(folder) => folder.strip_suffix("/lib").unwrap_or(folder),
        };
        tests.extend(text.tests.iter().map(|module| format!("{folder}/{module}")));
        sources.push((path, text));
    }
    for (path, reason) in without {
        let source = sources.iter().find(|(name, _)| name == path);
        assert!(
            source.is_some_and(|(_, text)| !text.messages.is_empty()),
            "{path} says nothing: {reason}"
        );
    }
    sources.retain(|(path, text)| {
        let is_test = tests
            .iter()
            .any(|module| path == &format!("{module}.rs") || path.starts_with(&format!("{module}/")));
        !is_test && !text.messages.is_empty() && !without.iter().any(|(excluded, _)| excluded == path)
    });
    sources
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "rs" || extension == "cel")
            && !path.ends_with("build.rs")
        {
            files.push(path);
        }
    }
}

/// Reads the messages of rules for the agent: the sentences among their strings.
fn read_expressions(source: &str) -> Text {
    let comment = source.lines().map_while(|line| line.strip_prefix("// "));
    let mut text = Text {
        about: comment.collect::<Vec<_>>().join(" "),
        ..Text::default()
    };
    let lines = source.lines().filter(|line| !line.starts_with("//"));
    for string in lines.flat_map(|line| line.split('\'').skip(1).step_by(2)) {
        if string.split_whitespace().count() >= WORDS && !text.messages.iter().any(|message| message == string) {
            text.messages.push(string.to_owned());
        }
    }
    text
}

fn parse_source(source: &str) -> Text {
    let head: Vec<&str> = source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim)
        .collect();
    let head = head.split(|line| line.is_empty()).next().unwrap_or_default().join(" ");
    let about = head.split_once(". ").map_or(head.as_str(), |(first, _)| first);
    let mut text = Text {
        about: about.trim_end_matches(['.', ':']).replace("[`", "`").replace("`]", "`"),
        ..Text::default()
    };
    text.scan(source.parse().expect("valid Rust"), WORDS);
    text
}

impl Text {
    /// Collects the texts with at least `words` words from a part of a source.
    fn scan(&mut self, tokens: TokenStream, words: usize) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    at += usize::from(is_punct(tokens.get(at), '!'));
                    let Some(TokenTree::Group(attribute)) = tokens.get(at) else {
                        continue;
                    };
                    at += 1;
                    if self.attribute(attribute) {
                        at += self.skip_item(&tokens[at..]);
                    }
                }
                TokenTree::Group(group) => self.scan(group.stream(), words),
                TokenTree::Literal(literal) => self.literal(literal, &values(&tokens[at..]), words),
                TokenTree::Ident(ident) => {
                    let name = ident.to_string();
                    let bang = usize::from(is_punct(tokens.get(at), '!'));
                    let is_call = matches!(
                        tokens.get(at + bang),
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis
                    );
                    let is_help =
                        is_punct(tokens.get(at), ':') && matches!(tokens.get(at + 1), Some(TokenTree::Literal(_)));
                    if is_call && IMPOSSIBLE.split(' ').any(|impossible| name == impossible) {
                        at += bang + 1;
                    } else if is_help && HELP.contains(&name.as_str()) {
                        at += 2;
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
    }

    /// Collects the texts of an attribute, and returns true if a test follows.
    fn attribute(&mut self, attribute: &Group) -> bool {
        let mut tokens = attribute.stream().into_iter();
        let name = tokens.next().map(|token| token.to_string()).unwrap_or_default();
        if name == "cfg" {
            return attribute.stream().to_string().contains("test");
        }
        if name == "error" {
            self.scan(tokens.collect(), 1);
        } else if !ATTRIBUTES.contains(&name.as_str()) {
            self.scan(tokens.collect(), WORDS);
        }
        name == "test"
    }

    /// Returns the number of tokens of an item, and records it if it is a module.
    fn skip_item(&mut self, tokens: &[TokenTree]) -> usize {
        for (number, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return number + 1,
                TokenTree::Punct(punct) if punct.as_char() == ';' => {
                    if let [.., TokenTree::Ident(module), TokenTree::Ident(name)] = &tokens[..number]
                        && module == "mod"
                    {
                        self.tests.push(name.to_string());
                    }
                    return number + 1;
                }
                _ => {}
            }
        }
        tokens.len()
    }

    /// Collects a text, into which these values are inserted where it names none.
    fn literal(&mut self, literal: &Literal, values: &[String], words: usize) {
        let Ok(text) = syn::parse_str::<LitStr>(&literal.to_string()) else {
            return;
        };
        let text = text.value();
        if is_name(&text) {
            self.names.insert(text);
            return;
        }
        // Help of the command line, with its examples.
        if text.contains("Examples:\n") || text.starts_with("Options of ") {
            return;
        }
        // In a rule for the agent, texts are in single quotes.
        let quoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        let is_rule =
            RULE.iter().any(|mark| text.contains(mark)) || quoted.is_some_and(|quoted| !quoted.contains('\''));
        let texts: Vec<&str> = if is_rule {
            text.split('\'').skip(1).step_by(2).collect()
        } else {
            vec![text.as_str()]
        };
        for text in texts.into_iter().filter(|text| is_whole(text)) {
            let as_printed = as_printed(text, values);
            let is_prose = as_printed
                .split(' ')
                .filter(|word| word.chars().filter(|letter| letter.is_lowercase()).count() > 1)
                .count();
            if as_printed.split(' ').count() >= words
                && is_prose > usize::from(words > 1)
                && !self.messages.contains(&as_printed)
            {
                self.messages.push(as_printed);
            }
        }
    }
}

/// Returns false for a part of a message: it continues another text, another one continues it, or another one inserts it.
fn is_whole(text: &str) -> bool {
    let continues = |c: char| c == ' ' || ",;:(".contains(c);
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_phrase = words.len() <= PHRASE_WORDS
        && words.first().is_some_and(|word| PHRASE_STARTS.contains(word))
        && !words.iter().any(|word| VERBS.contains(word));
    !text.starts_with(continues) && !text.ends_with(continues) && !text.starts_with(')') && !is_phrase
}

/// Returns the names of the values that follow a text in a macro, such as `path` for `path.display()`. A value without a name is
/// empty.
fn values(tokens: &[TokenTree]) -> Vec<String> {
    let all = tokens.split(|token| is_punct(Some(token), ','));
    all.skip(1).map(|value| name_of(value).unwrap_or_default()).collect()
}

/// Returns the last name in an expression that is not a function's.
fn name_of(value: &[TokenTree]) -> Option<String> {
    for (at, token) in value.iter().enumerate().rev() {
        let name = match token {
            TokenTree::Group(group) => name_of(&group.stream().into_iter().collect::<Vec<_>>()),
            TokenTree::Ident(ident) => {
                let is_called = matches!(value.get(at + 1), Some(TokenTree::Group(_)));
                Some(ident.to_string()).filter(|_| !is_called)
            }
            _ => None,
        };
        if name.is_some() {
            return name;
        }
    }
    None
}

/// Returns the placeholder for a value of this name: `FILE` for `file`, `…` for a name without a meaning.
fn placeholder(name: &str) -> String {
    let is_meaningful = name.len() > 2 && name.starts_with(char::is_alphabetic) && !["self", "text"].contains(&name);
    if is_meaningful {
        name.to_uppercase().replace('_', "-")
    } else {
        "…".to_owned()
    }
}

/// Returns a text as printed, with placeholders for inserted values.
fn as_printed(text: &str, values: &[String]) -> String {
    let (mut as_printed, mut values) = (String::new(), values.iter());
    let mut rest = text.replace("%d", "…");
    rest = rest.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let mut within: Option<String> = None;
    // Placeholders that follow each other would be one word.
    let mut end_of_placeholder = 0;
    for c in rest.chars() {
        match (c, &mut within) {
            ('{', _) => within = Some(String::new()),
            ('}', Some(name)) => {
                let name = name.split(':').next().unwrap_or_default();
                let next = || values.next().cloned().unwrap_or_default();
                let name = Some(name.to_owned())
                    .filter(|name| !name.is_empty())
                    .unwrap_or_else(next);
                let is_glued = as_printed.len() == end_of_placeholder && !as_printed.is_empty();
                let placeholder = if is_glued { "…".to_owned() } else { placeholder(&name) };
                as_printed += if as_printed.ends_with('…') { "" } else { &placeholder };
                end_of_placeholder = as_printed.len();
                within = None;
            }
            (c, Some(name)) => name.push(c),
            ('\u{1}', None) => as_printed.push('{'),
            ('\u{2}', None) => as_printed.push('}'),
            (c, None) if c.is_whitespace() => as_printed.push(' '),
            (c, None) => as_printed.push(c),
        }
    }
    as_printed
        .split(' ')
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns true for several words joined into one, such as `AgentsConnected`.
fn is_name(text: &str) -> bool {
    let capitals = text.chars().filter(char::is_ascii_uppercase).count();
    capitals > 1
        && text.starts_with(|letter: char| letter.is_ascii_uppercase())
        && text.chars().any(|letter| letter.is_ascii_lowercase())
        && text.chars().all(|letter| letter.is_ascii_alphabetic())
}

fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

#[test]
fn extracts_messages_from_a_source() {
    let source = r#"
        //! Reads a file. A second sentence.
        /// Documentation of this.
        #[derive(Error)]
        enum Fault {
            #[error("{0} is {{missing}}")]
            Missing(usize),
            #[error("empty")]
            Empty,
        }
        #[cfg(test)]
        mod tests;
        #[arg(help = "what a flag does")]
        fn f() {
            let it = g().expect("it never fails at all");
            let controller = Controller { about: "the help of a setting", name: "AgentsConnected" };
            format!("the file \"{it:?}\" cannot be\n  read: {}", "two words");
            format!("{} of {file} is not {}: {}", self.names.join(", "), explain(&error), it);
            format!("; a part of {}", "another message");
            format!("{count} files are {wanted}{more}");
            let also = " and it is a part of one";
            "object.a?'it is on its way':'it is %d of %d'"
        }
        #[cfg(test)]
        mod inline { const A: &str = "a text of a test"; }
    "#;
    let text = parse_source(source.replace("\n        ", "\n").trim_start());
    assert_eq!(text.about, "Reads a file");
    let expected = [
        "… is {missing}",
        "empty",
        "the file \"…\" cannot be read: …",
        "NAMES of FILE is not ERROR: …",
        "COUNT files are WANTED…",
        "it is on its way",
        "it is … of …",
    ];
    assert_eq!(text.messages, expected);
    assert_eq!(
        text.names.iter().map(String::as_str).collect::<Vec<_>>(),
        ["AgentsConnected"]
    );
    assert_eq!(text.tests, ["tests"]);
}
