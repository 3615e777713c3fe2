//! Manifests of the tests, and random changes to what identifies their objects.

use crate::make::Random;
use generate::documents::{self, ManifestText};
use generate::schema::FieldValidation;
use manifest::json;
use manifest::kinds::{BUILT_IN, Scope};
use manifest::value::Value;
use manifest::yaml;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// An unchanged manifest.
pub(crate) struct Seed {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) text: String,
    value: Node,
}

/// A value that may have a key several times.
#[derive(Clone)]
enum Node {
    /// A number, text, boolean or null.
    Scalar(Value<'static>),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// A generator of manifests.
pub(crate) struct Manifests {
    random: Random,
    pub(crate) seeds: Vec<Seed>,
}

/// The keys that identify an object, or that change how it is read.
#[rustfmt::skip]
const KEYS: &[&str] = &[
    "apiVersion", "kind", "metadata", "name", "namespace", "generateName", "items", "status", "spec", "annotations",
    "uid",
];

/// Texts that are another value without quotes, or that some reader could take for one.
#[rustfmt::skip]
const SCALARS: &[&str] = &["12", "0x1f", "1e3", "true", "null", "~", "2020-01-01", "", "<<", "..", "{}"];

/// Characters that some reader could drop, or take for another one.
#[rustfmt::skip]
const UNUSUAL: &[char] = &[
    '\u{0}', '\u{1}', '\t', '\n', '\r', ' ', '\u{7f}', '\u{85}', '\u{a0}', '\u{ad}', '\u{300}', '\u{34f}', '\u{200b}',
    '\u{200d}', '\u{2028}', '\u{2029}', '\u{202e}', '\u{2060}', '\u{e000}', '\u{fe0f}', '\u{feff}', '\u{fffd}',
    '\u{fffe}', '\u{ffff}', '\u{10ffff}', '.', '/', '%', '*', '\\', '"', '\'', '#', ':',
];

/// Characters that look like an ASCII letter, or become one in another case.
const LIKE: &[(char, &[char])] = &[
    ('a', &['A', 'а', 'ａ', 'α']),
    ('d', &['D', 'ԁ', 'ｄ']),
    ('e', &['E', 'е', 'é']),
    ('i', &['I', 'ı', 'İ', 'і', 'ｉ']),
    ('k', &['K', '\u{212a}', 'κ', 'ｋ']),
    ('m', &['M', 'ｍ']),
    ('n', &['N', 'ո', 'ｎ']),
    ('o', &['O', 'о', '0']),
    ('p', &['P', 'р']),
    ('s', &['S', '\u{17f}', 'ѕ', 'ß', 'ꜱ']),
    ('t', &['T', 'ｔ']),
    ('v', &['V', 'ν']),
];

impl Manifests {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            seeds: seeds(),
        }
    }

    /// Returns a changed manifest.
    pub(crate) fn mutated(&mut self) -> String {
        let at = self.random.below(self.seeds.len());
        let mut value = self.seeds[at].value.clone();
        for _ in 0..=self.random.below(3) {
            self.change(&mut value);
        }
        let mut text = String::new();
        // A third is written with escapes, and a third with keys that are not quoted.
        let style = self.random.below(3);
        self.write(&value, style, &mut text);
        text + "\n"
    }

    fn change(&mut self, value: &mut Node) {
        match self.random.below(20) {
            0 => {
                let kind = self.random.pick(&["List", "ConfigMapList", "PodList", "Secret"]);
                let inner = value.clone();
                let mut items = vec![inner];
                if self.random.one_in(3) {
                    items.push(self.donor());
                }
                *value = map([
                    ("apiVersion", text_node("v1")),
                    ("kind", text_node(kind)),
                    ("items", Node::List(items)),
                ]);
            }
            1 => {
                let items = Node::List(vec![self.donor()]);
                entries(value).push(("items".to_owned(), items));
            }
            2 => {
                // A key of YAML that merges another mapping.
                let donor = self.donor();
                let mapping = self.mapping(value);
                let at = mapping.len().min(1);
                mapping.insert(at, ("<<".to_owned(), donor));
            }
            3 => {
                let hook = self.random.pick(&["PreSync", "Sync", "PostDelete", "Skip"]);
                let annotations = map([("argocd.argoproj.io/hook", text_node(hook))]);
                let metadata = metadata(value);
                metadata.retain(|(key, _)| key != "annotations");
                metadata.push(("annotations".to_owned(), annotations));
            }
            4 => metadata(value).push(("generateName".to_owned(), text_node("other-"))),
            5 => self.add_rival(value),
            6..10 => self.add_key(value),
            10..13 => self.rename_key(value),
            _ => self.change_value(value),
        }
    }

    /// Adds keys like `kind` and `apiVersion`, with the kind and the fields of another manifest.
    fn add_rival(&mut self, value: &mut Node) {
        let at = self.random.below(self.seeds.len());
        let Node::Map(rival) = self.seeds[at].value.clone() else {
            return;
        };
        for (key, added) in rival {
            match key.as_str() {
                "kind" | "apiVersion" => {
                    let key = self.alike(&key);
                    entries(value).push((key, added));
                }
                "metadata" => {}
                _ => entries(value).push((key, added)),
            }
        }
    }

    /// Adds a key like another one, or one of another manifest.
    fn add_key(&mut self, value: &mut Node) {
        let donor = self.donor();
        let (mut key, mut added) = if self.random.one_in(3) {
            (self.random.pick(KEYS).to_owned(), text_node("other"))
        } else {
            let Node::Map(mut fields) = donor else { return };
            fields.swap_remove(self.random.below(fields.len()))
        };
        if self.random.one_in(4)
            && let Node::Map(metadata) = &added
            && let Some(inner) = metadata.first()
        {
            (key, added) = inner.clone();
        }
        if !self.random.one_in(3) {
            key = self.altered_key(&key);
        }
        let mapping = if self.random.one_in(3) {
            metadata(value)
        } else {
            self.mapping(value)
        };
        mapping.push((key, added));
    }

    fn rename_key(&mut self, value: &mut Node) {
        let mapping = if self.random.one_in(2) {
            metadata(value)
        } else {
            self.mapping(value)
        };
        if mapping.is_empty() {
            return;
        }
        let at = self.random.below(mapping.len());
        let key = self.altered_key(&mapping[at].0.clone());
        let mapping = if self.random.one_in(2) {
            metadata(value)
        } else {
            self.mapping(value)
        };
        if let Some(entry) = mapping.get_mut(at) {
            entry.0 = key;
        }
    }

    /// Changes the value of a key that identifies the object.
    fn change_value(&mut self, value: &mut Node) {
        let key = self.random.pick(&["apiVersion", "kind", "name", "namespace"]);
        let is_in_metadata = matches!(key, "name" | "namespace");
        let mapping = if is_in_metadata {
            metadata(value)
        } else {
            entries(value)
        };
        let old = mapping.iter().find_map(|(name, value)| match value {
            Node::Scalar(Value::String(text)) if name == key => Some(text.to_string()),
            _ => None,
        });
        let old = old.unwrap_or_else(|| "web".to_owned());
        let donor = &self.seeds[self.random.below(self.seeds.len())];
        let new = match self.random.below(12) {
            0 => Node::Scalar(Value::Int(12)),
            1 => Node::Scalar(Value::Float(1.5)),
            2 => Node::Scalar(Value::Bool(true)),
            3 => Node::Scalar(Value::Null),
            4 => Node::List(vec![text_node(&old)]),
            5 => text_node(self.random.pick(SCALARS)),
            6 => text_node(&old.to_lowercase()),
            7 => text_node(&format!("{old}List")),
            8 => text_node(&if donor.group.is_empty() {
                format!("{old}/v1")
            } else {
                format!("{old}.{}", donor.group)
            }),
            9 if key == "kind" => text_node(&donor.kind),
            10 if key == "apiVersion" => text_node(&donor.version),
            _ => text_node(&self.altered_text(&old)),
        };
        let mapping = if is_in_metadata {
            metadata(value)
        } else {
            entries(value)
        };
        if !self.random.one_in(4) {
            mapping.retain(|(name, _)| name != key);
        }
        mapping.push((key.to_owned(), new));
    }

    fn altered_key(&mut self, key: &str) -> String {
        match self.random.below(8) {
            0 => key.to_uppercase(),
            1 => key.to_lowercase(),
            2 => format!("metadata.{key}"),
            3 => key.to_owned(),
            4 => self.altered_text(key),
            _ => self.alike(key),
        }
    }

    /// Replaces some letters by others that look or fold alike.
    fn alike(&mut self, text: &str) -> String {
        let letters: Vec<char> = text.chars().collect();
        let changed = self.random.below(letters.len().max(1));
        let letter = |(at, char): (usize, char)| {
            let alike = LIKE.iter().find(|(letter, _)| *letter == char.to_ascii_lowercase());
            match alike {
                Some((_, alike)) if at == changed || self.random.one_in(6) => self.random.pick(alike),
                _ => char,
            }
        };
        letters.into_iter().enumerate().map(letter).collect()
    }

    /// Inserts an unusual character, or replaces letters.
    fn altered_text(&mut self, text: &str) -> String {
        if self.random.one_in(3) {
            return self.alike(text);
        }
        let mut letters: Vec<char> = text.chars().collect();
        let inside = self.random.below(letters.len() + 1);
        let at = self.random.pick(&[0, inside, letters.len()]);
        letters.insert(at, self.random.pick(UNUSUAL));
        letters.into_iter().collect()
    }

    fn donor(&mut self) -> Node {
        let at = self.random.below(self.seeds.len());
        self.seeds[at].value.clone()
    }

    /// Returns the root, or seldom a mapping below it.
    fn mapping<'n>(&mut self, value: &'n mut Node) -> &'n mut Vec<(String, Node)> {
        let fields = entries(value);
        let below: Vec<usize> = (0..fields.len())
            .filter(|&at| matches!(fields[at].1, Node::Map(_)))
            .collect();
        if below.is_empty() || !self.random.one_in(6) {
            return fields;
        }
        entries(&mut fields[self.random.pick(&below)].1)
    }

    fn write(&mut self, value: &Node, style: usize, out: &mut String) {
        match value {
            Node::Scalar(Value::String(text)) => self.write_text(text, style, out),
            Node::Scalar(scalar) => json::write(scalar, out).expect("a scalar"),
            Node::List(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    self.write(item, style, out);
                }
                out.push(']');
            }
            Node::Map(fields) => {
                out.push('{');
                for (at, (key, value)) in fields.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    if style == 2 && !key.is_empty() && key.chars().all(|char| char.is_alphanumeric() || char == '<') {
                        out.push_str(key);
                    } else {
                        self.write_text(key, style, out);
                    }
                    out.push_str(": ");
                    self.write(value, style, out);
                }
                out.push('}');
            }
        }
    }

    /// Writes a text in quotes. With style 1, some of its characters are escaped.
    fn write_text(&mut self, text: &str, style: usize, out: &mut String) {
        out.push('"');
        for char in text.chars() {
            let code = u32::from(char);
            if char.is_control()
                || "\"\\\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}".contains(char)
                || (style == 1 && self.random.one_in(3))
            {
                match code {
                    0..=0xff if style == 1 => write!(out, "\\x{code:02x}"),
                    0..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                }
                .expect("writing to a String never fails");
            } else {
                out.push(char);
            }
        }
        out.push('"');
    }
}

fn text_node(text: &str) -> Node {
    Node::Scalar(Value::from_text(text))
}

fn map<const N: usize>(fields: [(&str, Node); N]) -> Node {
    Node::Map(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Returns the entries of a mapping, which the value becomes if it is none.
fn entries(value: &mut Node) -> &mut Vec<(String, Node)> {
    if !matches!(value, Node::Map(_)) {
        *value = Node::Map(Vec::new());
    }
    match value {
        Node::Map(fields) => fields,
        _ => unreachable!("it is a mapping by now"),
    }
}

/// Returns the metadata, or the root if there is none.
fn metadata(value: &mut Node) -> &mut Vec<(String, Node)> {
    let fields = entries(value);
    let metadata = fields
        .iter()
        .position(|(key, value)| key == "metadata" && matches!(value, Node::Map(_)));
    match metadata {
        Some(at) => entries(&mut fields[at].1),
        None => fields,
    }
}

fn node(value: &Value<'_>) -> Node {
    match value {
        Value::List(items) => Node::List(items.iter().map(node).collect()),
        Value::Map(fields) => Node::Map(
            fields
                .iter()
                .map(|(key, value)| (key.to_owned(), node(value)))
                .collect(),
        ),
        Value::String(string) => text_node(string),
        Value::Int(int) => Node::Scalar(Value::Int(*int)),
        Value::Float(float) => Node::Scalar(Value::Float(*float)),
        Value::Bool(bool) => Node::Scalar(Value::Bool(*bool)),
        Value::Null => Node::Scalar(Value::Null),
    }
}

/// The largest manifest that is changed, in bytes of JSON: what identifies an object does not depend on its size.
const LARGEST: usize = 3_000;

/// Returns the objects in the files of the tests, and one of each kind of Kubernetes.
fn seeds() -> Vec<Seed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/data", "guestbook", "deploy", "examples"];
    let mut files: Vec<_> = folders
        .iter()
        .flat_map(|folder| testbed::files(&root.join(folder), &["yaml", "yml", "json"]).expect("the files"))
        .collect();
    files.sort();
    let mut texts: Vec<String> = files
        .iter()
        .filter_map(|file| Some(yaml::decode(&fs::read(file).ok()?).ok()?.into_owned()))
        .collect();
    texts.extend(BUILT_IN.iter().flat_map(|known| {
        let namespace = if known.scope == Scope::Namespaced {
            ", namespace: shop"
        } else {
            ""
        };
        known.always_served.iter().map(move |version| {
            let slash = if known.group.is_empty() { "" } else { "/" };
            format!(
                "{{apiVersion: {}{slash}{version}, kind: {}, metadata: {{name: web{namespace}}}}}\n",
                known.group, known.kind
            )
        })
    }));
    texts.push(BINDING.to_owned());
    let mut seeds: Vec<Seed> = texts.iter().flat_map(|text| of_text(text)).collect();
    seeds.sort_by(|a, b| a.text.cmp(&b.text));
    seeds.dedup_by(|a, b| a.text == b.text);
    seeds
}

/// A manifest that a tenant may try.
const BINDING: &str = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: takeover}, \
                       roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, \
                       subjects: [{kind: ServiceAccount, name: default, namespace: shop}]}\n";

fn of_text(text: &str) -> Vec<Seed> {
    let documents = yaml::documents(text).map_while(Result::ok);
    let flat = documents.flat_map(|document| match document.value {
        Value::Map(mut fields) => match fields.remove("items") {
            Some(Value::List(items)) => items,
            Some(other) => {
                fields.insert("items", other);
                vec![Value::Map(fields)]
            }
            None => vec![Value::Map(fields)],
        },
        _ => Vec::new(),
    });
    flat.filter_map(|value| {
        let mut text = String::new();
        json::write(&value, &mut text).ok().filter(|()| text.len() < LARGEST)?;
        let file = ManifestText {
            index: 0,
            name: "a.yaml",
            text: &text,
        };
        let read = documents::objects(file, FieldValidation::Ignore).ok()?;
        let object = read.objects.first()?;
        let api_version = value.as_map()?.get("apiVersion")?.as_str()?;
        let version = api_version.rsplit('/').next()?.to_owned();
        Some(Seed {
            group: object.key.kind.group.to_string(),
            version,
            kind: object.key.kind.kind.to_string(),
            value: node(&value),
            text,
        })
    })
    .collect()
}
