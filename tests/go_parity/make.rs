//! Generates texts that are nearly YAML.

/// A generator of pseudo-random numbers (`SplitMix64`).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next_number() % end as u64).expect("a number below a usize")
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Returns up to `longest` pieces.
    pub(crate) fn random_text(&mut self, pieces: &[&str], longest: usize) -> String {
        (0..self.below(longest + 1)).map(|_| self.pick(pieces)).collect()
    }

    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// A generator of texts.
pub(crate) struct Generator {
    random: Random,
    corpus: Vec<Vec<u8>>,
    only: Option<String>,
}

const GENERATORS: &[&str] = &[
    "scalar", "scalar", "soup", "soup", "lines", "flow", "flow", "mutate", "mutate", "splice", "anchors", "json",
    "bytes",
];

impl Generator {
    pub(crate) fn new(seed: u64, corpus: Vec<Vec<u8>>, only: Option<String>) -> Self {
        Self {
            random: Random(seed),
            corpus,
            only,
        }
    }

    pub(crate) fn next_input(&mut self) -> Vec<u8> {
        let way = self
            .only
            .clone()
            .unwrap_or_else(|| self.random.pick(GENERATORS).to_owned());
        let mut text = match way.as_str() {
            "scalar" => self.scalars().into_bytes(),
            "soup" => self.tokens(TOKENS, 24).into_bytes(),
            "lines" => self.lines().into_bytes(),
            "flow" => self.flow().into_bytes(),
            "splice" => self.splice(),
            "anchors" => self.tokens(ANCHORS, 40).into_bytes(),
            "json" => self.tokens(JSON, 24).into_bytes(),
            "bytes" => self.bytes(),
            _ => self.mutated(),
        };
        match self.random.below(120) {
            0..10 => {
                let line_break = self.random.pick(&["\r\n", "\r", "\r\r\n", "\u{85}", "\u{2028}"]);
                text = String::from_utf8_lossy(&text).replace('\n', line_break).into_bytes();
            }
            10..14 => text = self.utf16(&text),
            14..18 => drop(text.splice(0..0, *b"\xEF\xBB\xBF")),
            18..24 => self.pad(&mut text),
            24..30 => {
                for _ in 0..=self.random.below(3) {
                    let at = self.random.below(text.len() + 1);
                    let bytes = self.random.pick(ILL_FORMED);
                    text.splice(at..at, bytes.iter().copied());
                }
            }
            30..34 => {
                text.pop();
            }
            _ => {}
        }
        text
    }

    /// Returns arbitrary bytes.
    fn bytes(&mut self) -> Vec<u8> {
        let length = self.random.below(64);
        (0..length)
            .map(|_| self.random.next_number().to_le_bytes()[0])
            .collect()
    }

    fn utf16(&mut self, text: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(text);
        let little = self.random.one_in(2);
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        let mut bytes: Vec<u8> = units
            .flat_map(|unit| if little { unit.to_le_bytes() } else { unit.to_be_bytes() })
            .collect();
        for _ in 0..self.random.below(3) {
            let at = self.random.below(bytes.len() + 1);
            match self.random.below(3) {
                0 => bytes.truncate(at.max(2)),
                1 => bytes.insert(at.max(2), 0xD8),
                _ => bytes.push(b'a'),
            }
        }
        bytes
    }

    /// Pads the text to about the length of the buffers and limits of Go's parser.
    fn pad(&mut self, text: &mut Vec<u8>) {
        let length = self.random.pick(&[512, 1020, 1020, 1536, 4096]);
        let length = (length + self.random.below(16)).saturating_sub(self.random.below(12));
        let unit = self
            .random
            .pick(&["x", "\u{E9}", " ", "x ", "\u{1F680}", "- ", "[", "a: "]);
        let count = if unit == "- " || unit == "[" {
            length
        } else {
            length / unit.chars().count()
        };
        let padding = unit.repeat(count);
        let before = self.random.pick(&["", "# ", "\"", "'", "a: ", "k", "? "]);
        let after = self.random.pick(&["", "\n", "\"", "'", ": ", "\": v", ": v\n"]);
        let at = if self.random.one_in(2) {
            0
        } else {
            self.random.below(text.len() + 1)
        };
        let padding = [before, &padding, after].concat();
        text.splice(at..at, padding.into_bytes());
    }

    fn tokens(&mut self, words: &[&'static str], most: usize) -> String {
        let count = 1 + self.random.below(most);
        (0..count).map(|_| self.random.pick(words)).collect::<String>()
    }

    /// Generates scalars that look like another type, as key, value and item, with and without tag and quotes.
    fn scalars(&mut self) -> String {
        let scalar = match self.random.below(4) {
            0 => self.tokens(NUMBER, 9),
            1 => self.random.pick(WORDS).to_owned(),
            2 => self.tokens(DATE, 12),
            _ => {
                let word = self.random.pick(WORDS);
                let extra = self.tokens(NUMBER, 2);
                if self.random.one_in(2) {
                    format!("{word}{extra}")
                } else {
                    format!("{extra}{word}")
                }
            }
        };
        let quoted = match self.random.below(5) {
            0 => format!("\"{scalar}\""),
            1 => format!("'{scalar}'"),
            _ => scalar,
        };
        let tag = if self.random.one_in(3) {
            self.random.pick(TAGS)
        } else {
            ""
        };
        let scalar = format!("{tag}{quoted}");
        match self.random.below(5) {
            0 => format!("{scalar}: v\n"),
            1 => format!("- {scalar}\n"),
            2 => format!("v: [{scalar}, {scalar} ]\n"),
            3 => format!("{scalar}: {}\n{}: b\n", scalar, self.tokens(NUMBER, 4)),
            _ => format!("v: {scalar}\n"),
        }
    }

    /// Generates lines with random indentation.
    fn lines(&mut self) -> String {
        let mut text = String::new();
        let mut indent = 0;
        for _ in 0..=self.random.below(9) {
            match self.random.below(6) {
                0 => indent += 1 + self.random.below(3),
                1 => indent = self.random.below(indent + 1),
                2 => indent = 0,
                _ => {}
            }
            text.push_str(&" ".repeat(indent));
            let words = self.random.below(3);
            for _ in 0..=words {
                text.push_str(self.random.pick(LINE));
            }
            text.push_str(
                self.random
                    .pick(&["\n", "\n", "\n", "\n", "\n\n", " \n", "\t\n", " # c\n", ""]),
            );
        }
        text
    }

    /// Generates lists and mappings in brackets, mostly well-formed.
    fn flow(&mut self) -> String {
        let mut text = self
            .random
            .pick(&["", "a: ", "- ", "? ", "a:\n  ", "---\n", "a: &x ", "<<: "])
            .to_owned();
        self.bracket(&mut text, 0);
        text.push_str(self.random.pick(FLOW_ENDS));
        text
    }

    fn bracket(&mut self, text: &mut String, depth: usize) {
        let (open, close) = self
            .random
            .pick(&[("[", "]"), ("{", "}"), ("[ ", " ]"), ("{ ", " }"), ("[\n", "\n]")]);
        text.push_str(open);
        for number in 0..self.random.below(4) {
            if number > 0 {
                text.push_str(self.random.pick(&[",", ", ", ", ", ",\n  ", " , ", ",,", ""]));
            }
            if depth < 3 && self.random.one_in(4) {
                self.bracket(text, depth + 1);
                continue;
            }
            text.push_str(self.random.pick(FLOW));
            if self.random.one_in(2) {
                text.push_str(self.random.pick(&[":", ": ", " : ", ":\n ", " :", "\n: "]));
                text.push_str(self.random.pick(FLOW));
            }
        }
        text.push_str(if self.random.one_in(30) { "" } else { close });
    }

    fn mutated(&mut self) -> Vec<u8> {
        let index = self.random.below(self.corpus.len());
        let mut text = self.corpus[index].clone();
        for _ in 0..=self.random.below(4) {
            let at = self.random.below(text.len() + 1);
            let end = (at + self.random.below(6)).min(text.len());
            match self.random.below(6) {
                0 => drop(text.drain(at..end)),
                1 => drop(text.splice(at..at, self.random.pick(TOKENS).bytes())),
                2 => drop(text.splice(at..end, self.random.pick(TOKENS).bytes())),
                3 => {
                    let part = text[at..end].to_vec();
                    let to = self.random.below(text.len() + 1);
                    text.splice(to..to, part);
                }
                4 if at < text.len() => {
                    text[at] = self.random.pick(SIGNS);
                }
                _ => drop(text.splice(at..at, self.random.pick(LINE).bytes())),
            }
        }
        text
    }

    fn splice(&mut self) -> Vec<u8> {
        let (first, second) = (
            self.random.below(self.corpus.len()),
            self.random.below(self.corpus.len()),
        );
        let cut = self.random.below(self.corpus[first].len() + 1);
        let paste = self.random.below(self.corpus[second].len() + 1);
        let between = self
            .random
            .pick(&["", "\n", "---\n", "\n---\n", "  ", "- ", "? ", ": "]);
        [
            &self.corpus[first][..cut],
            between.as_bytes(),
            &self.corpus[second][paste..],
        ]
        .concat()
    }
}

#[rustfmt::skip]
const TOKENS: &[&str] = &[
    " ", " ", " ", "  ", "   ", "\t", "\n", "\n", "\n", "\n  ", "\n ", "\n\n", "\r\n", "\r", "a", "b", "a", "1",
    "0644", "y", "~", "null", "x y", ":", ": ", ": ", ":\n", "- ", "- ", "-", "-\n", "? ", "?", ",", ", ", "[", "]",
    "{", "}", "#", " #", "&a", "&a ", "*a", "*a ", "!", "!!str ", "!!int ", "!x ", "!<x> ", "!e!x ", "|", "|\n",
    ">\n", "|-\n", "|+\n", ">2\n", "|1-\n", "'", "\"", "''", "\"\"", "'a'", "\"b\"", "\\", "\\n", "\\\n", "\\x41",
    "%", "%YAML 1.1", "%YAML 1.1\n---\n", "%TAG !e! tag:yaml.org,2002:\n", "%TAG !! !\n", "!e!int ", "@", "`", "---",
    "\n---\n", "--- ", "...", "\n...\n", "<<", "<<: ", "é", "\u{85}", "\u{2028}", "\u{A0}", "=", "a: b\n", "- a\n",
    "\n- ", "\u{1F680}",
];

#[rustfmt::skip]
const LINE: &[&str] = &[
    "a: b", "b: c", "a:", "a: ", "- ", "- ", "- a", "- a: b", "-", "? ", "? a", ": b", ":", "a", "'a'", "\"b\"",
    "'a': ", "\"b\": ", "a: |", "a: >-", "a: |+", "|", ">", "- |", "- >2", "# c", "&x ", "*x", "!!str ", "!t ",
    "a: &x", "b: *x", "<<: *x", "[a]", "{a: b}", "a: [b", "]", "}", "\t", "a\tb", "a:\tb", "'a", "b'", "\"a", "b\"",
    "...",
];

#[rustfmt::skip]
const FLOW: &[&str] = &[
    "a", "b", "1", "~", "'a'", "\"b\"", "\"a b\"", "a b", "a:b", ":", "?", "? ", "? a", "-", "- a", "-a", "#",
    " #c\n", "&x a", "*x", "!!str a", "!!str", "!x", "<<", "http://a", "a?b", "a#b", "\"a\n  b\"", "a\n  b", "|", ">",
    "%", "é", "", "y", "*x ",
];

#[rustfmt::skip]
const FLOW_ENDS: &[&str] = &["", "\n", ": b\n", " : b\n", "\nb: c\n", " # c\n", "\n---\n{b: c}\n", "\n{b: c}\n"];

#[rustfmt::skip]
const ANCHORS: &[&str] = &[
    "a: ", "b: ", "c: ", "<<: ", "<<: ", "\n", "\n", "\n", "\n  ", "&x ", "&y ", "&x ", "*x", "*y", "*x", "{a: 1}",
    "{b: 2}", "[*x, *y]", "[{a: 3}]", "{<<: *x, a: 4}", "{a: 4, <<: *x}", "[", "]", "{", "}", ", ", "- ", "1",
    "\"<<\": ", "!!merge <<: ", "! <<: ", "? ", ": ", "*x : ",
];

#[rustfmt::skip]
const JSON: &[&str] = &[
    "{", "}", "{", "}", "[", "]", ",", ":", "{}", "{\"a\":1}", "{\"a\": 1}", "{\"b\": [1, 2]}", "\"a\"", "\"a\":",
    "\"b\": ", "1", "0", "-0", "-", "1.0", "1e3", "1E400", "01", "9223372036854775808", "true", "false", "null",
    "nul", " ", "\n", "\t", "\u{A0}", "\n\n", "---\n", "\n---\n", "\"\\u00e9\"", "\"\\ud83d\"", "\"\\ud83d\\ude80\"",
    "\"\\/\"", "\"\\x\"", "\"a\nb\"", "a: b\n", "x", "#c\n", "{a: 1}", "...", "\u{FFFD}", "\"\u{7F}\"", "{\"a\":1,}",
    "\"a\":{\"b\":null}",
];

#[rustfmt::skip]
const NUMBER: &[&str] = &[
    "0", "1", "2", "7", "8", "9", "0", "1", "5", "_", "-", "+", ".", "e", "E", "x", "o", "b", "B", "X", "f", "e5",
    "0x", "0b", "0o", "1e", "__", ":", "9223372036854775807", "18446744073709551615", "4503599627370497", "00",
    "123456789", "e-7", "e+21", "e308",
];

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "y", "Y", "yes", "Yes", "YES", "yEs", "n", "N", "no", "off", "OFF", "on", "On", "true", "TRUE", "tRUE", "False",
    "null", "NULL", "nULL", "~", ".inf", ".Inf", ".INF", "-.inf", "+.inf", ".nan", ".NaN", "nan", "inf", "<<", "=",
    "", "a", "abc", "aGk=", "////", "2020-01-01", "é", "-",
];

#[rustfmt::skip]
const DATE: &[&str] = &[
    "2020-01-01", "2020-1-1", "2020-02-30", "2019-02-29", "0000-00-00", "T", "t", " ", "12:30:45", "1:2:3",
    "24:00:00", "23:59:60", ".5", ".", ",5", "Z", "+01:00", "-23:59", "+25:00", "2", "-", "12:30",
];

#[rustfmt::skip]
const TAGS: &[&str] = &[
    "!!str ", "!!int ", "!!float ", "!!bool ", "!!null ", "!!timestamp ", "!!binary ", "!!merge ", "!!map ", "!x ",
    "! ", "!<tag:yaml.org,2002:int> ", "!<!> ", "!!timestamp ", "!!timestamp ", "!!%69nt ", "!e!x ", "!!", "!%c3%a9 ",
    "!%ff ", "&a ", "&a !!float ",
];

#[rustfmt::skip]
const ILL_FORMED: &[&[u8]] = &[
    b"\xE9", b"\xC3", b"\x80", b"\xFF", b"\xE2\x82", b"\xED\xA0\x80", b"\xF0\x9F", b"\xF4\x90\x80\x80", b"\xC0\x80",
    b"\xE0\x80\x80", b"\xF0\x9F\x98", b"\xC2\x81", b"\x01", b"\x7F", b"\xEF\xBF\xBE", b"\xEF\xBF\xBF",
    b"\xF0\x9F\xBF\xBE", b"\0", b"\xC2\x85", b"\xE2\x80\xA9", b"\xEF\xBB\xBF",
];

const SIGNS: &[u8] = b" \t\n\r:-?#&*!|>'\"%@`,[]{}~<=\\0a\x7f\x85\xC2\xE2\xFF";
