//! Matches globs as Argo CD reads `directory.include` and `directory.exclude`: the syntax of `gobwas/glob`, without separators.
//!
//! `*` and `**` match any text, including `/`; `?` matches one character; `[abc]` one of these, `[a-c]` one of a single range,
//! `[!…]` any other; `{a,b}` one of several patterns; `\` escapes the next character. The pattern must match the complete path.

/// A compiled glob.
#[derive(Clone, Debug)]
pub struct Glob {
    program: Vec<GlobStep>,
}

/// The error of a malformed glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// A `[` without its `]`, or an empty list.
    #[error("a '[' is not closed by ']'")]
    OpenClass,
    /// More than one range, or a range and characters, in one `[…]`.
    #[error("'[…]' contains either characters or one range such as 'a-z'")]
    MixedClass,
    /// A range from a later to an earlier character.
    #[error("a range in '[…]' runs from a later to an earlier character")]
    BackwardRange,
    /// A `{` without its `}`.
    #[error("a '{{' is not closed by '}}'")]
    OpenAlternatives,
    /// A `\` at the end.
    #[error("a '\\' at the end escapes nothing")]
    OpenEscape,
    /// More than [`DEPTH_MAX`] levels of `{`.
    #[error("'{{' is nested more than {DEPTH_MAX} levels deep")]
    TooDeep,
}

/// The maximum nesting depth of `{…}`. The compiler recurses, and the controller reads the patterns of all AppProjects.
const DEPTH_MAX: usize = 100;

/// A step of the matcher: a nondeterministic automaton that follows all alternatives at once, so that no pattern is slow.
#[derive(Clone, Debug)]
enum GlobStep {
    Char(char),
    Any,
    Class { negated: bool, class: Class },
    Fork(usize, usize),
    Jump(usize),
    Match,
}

#[derive(Clone, Debug)]
enum Class {
    List(Vec<char>),
    Range(char, char),
}

/// Returns true if a text matches a pattern; as in Argo CD, a malformed pattern matches nothing.
pub fn matches(pattern: &str, text: &str) -> bool {
    Glob::new(pattern).is_ok_and(|glob| glob.matches(text))
}

impl Glob {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// Returns an error if the pattern is malformed. Argo CD lets such a pattern match nothing and logs a warning; for an exclude
    /// that would deploy the files to exclude, so this function rejects it.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        let mut compiler = Compiler {
            rest: pattern.chars().peekable(),
            program: Vec::new(),
            depth: 0,
        };
        compiler.sequence(false)?;
        compiler.program.push(GlobStep::Match);
        Ok(Self {
            program: compiler.program,
        })
    }

    /// Returns true if the pattern matches all of `text`.
    pub fn matches(&self, text: &str) -> bool {
        let mut now = Threads::new(self.program.len());
        let mut next = Threads::new(self.program.len());
        now.start(&self.program, 0);
        for char in text.chars() {
            for &at in &now.steps {
                let continues = match &self.program[at] {
                    GlobStep::Char(expected) => *expected == char,
                    GlobStep::Any => true,
                    GlobStep::Class { negated, class } => class.contains(char) != *negated,
                    GlobStep::Fork(..) | GlobStep::Jump(_) | GlobStep::Match => false,
                };
                if continues {
                    next.start(&self.program, at + 1);
                }
            }
            std::mem::swap(&mut now, &mut next);
            next.clear();
        }
        now.steps.iter().any(|&at| matches!(self.program[at], GlobStep::Match))
    }
}

impl Class {
    fn contains(&self, char: char) -> bool {
        match self {
            Self::List(chars) => chars.contains(&char),
            Self::Range(low, high) => (*low..=*high).contains(&char),
        }
    }
}

/// The active steps, each once.
struct Threads {
    steps: Vec<usize>,
    alive: Vec<bool>,
}

impl Threads {
    fn new(len: usize) -> Self {
        Self {
            steps: Vec::new(),
            alive: vec![false; len],
        }
    }

    fn start(&mut self, program: &[GlobStep], at: usize) {
        let mut pending = vec![at];
        while let Some(at) = pending.pop() {
            if std::mem::replace(&mut self.alive[at], true) {
                continue;
            }
            match program[at] {
                GlobStep::Jump(to) => pending.push(to),
                GlobStep::Fork(one, other) => pending.extend([one, other]),
                _ => self.steps.push(at),
            }
        }
    }

    fn clear(&mut self) {
        self.steps.clear();
        self.alive.fill(false);
    }
}

struct Compiler<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    program: Vec<GlobStep>,
    depth: usize,
}

impl Compiler<'_> {
    /// Compiles up to the end, or inside `{…}` up to the `,` or `}` that ends this alternative, which is not consumed.
    fn sequence(&mut self, inside: bool) -> Result<(), GlobError> {
        while let Some(&char) = self.rest.peek() {
            if inside && matches!(char, ',' | '}') {
                return Ok(());
            }
            self.rest.next();
            match char {
                '*' => {
                    let fork = self.program.len();
                    self.program.push(GlobStep::Fork(fork + 1, fork + 3));
                    self.program.push(GlobStep::Any);
                    self.program.push(GlobStep::Jump(fork));
                }
                '?' => self.program.push(GlobStep::Any),
                '[' => self.class()?,
                '{' => self.alternatives()?,
                '\\' => {
                    let escaped = self.rest.next().ok_or(GlobError::OpenEscape)?;
                    self.program.push(GlobStep::Char(escaped));
                }
                plain => self.program.push(GlobStep::Char(plain)),
            }
        }
        Ok(())
    }

    fn alternatives(&mut self) -> Result<(), GlobError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(GlobError::TooDeep);
        }
        let mut ends = Vec::new();
        loop {
            let fork = self.program.len();
            self.program.push(GlobStep::Fork(fork + 1, fork + 1));
            self.sequence(true)?;
            match self.rest.next() {
                Some(',') => {
                    ends.push(self.program.len());
                    self.program.push(GlobStep::Jump(0));
                    self.program[fork] = GlobStep::Fork(fork + 1, self.program.len());
                }
                Some(_) => break,
                None => return Err(GlobError::OpenAlternatives),
            }
        }
        let end = self.program.len();
        for jump in ends {
            self.program[jump] = GlobStep::Jump(end);
        }
        self.depth -= 1;
        Ok(())
    }

    fn class(&mut self) -> Result<(), GlobError> {
        let negated = self.rest.next_if_eq(&'!').is_some();
        let low = self.rest.next().ok_or(GlobError::OpenClass)?;
        let class = if self.rest.next_if_eq(&'-').is_some() {
            let high = self.rest.next().ok_or(GlobError::OpenClass)?;
            match self.rest.next() {
                Some(']') => {}
                Some(_) => return Err(GlobError::MixedClass),
                None => return Err(GlobError::OpenClass),
            }
            if high < low {
                return Err(GlobError::BackwardRange);
            }
            Class::Range(low, high)
        } else {
            Class::List(self.listed(low)?)
        };
        self.program.push(GlobStep::Class { negated, class });
        Ok(())
    }

    fn listed(&mut self, first: char) -> Result<Vec<char>, GlobError> {
        let mut chars = Vec::new();
        let mut next = Some(first);
        loop {
            match next {
                None => return Err(GlobError::OpenClass),
                Some(']') if chars.is_empty() => return Err(GlobError::OpenClass),
                Some(']') => return Ok(chars),
                Some('\\') => chars.push(self.rest.next().ok_or(GlobError::OpenClass)?),
                Some(char) => chars.push(char),
            }
            next = self.rest.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Glob::new(pattern).expect(pattern).matches(text)
    }

    /// `tests/go_parity` compares random globs with `gobwas/glob`.
    #[test]
    fn matches_the_complete_path() {
        for (glob, matching, others) in [
            ("*.yaml", &["deep/er/web.yaml", ".yaml"][..], &["web.yml"][..]),
            ("prod/*", &["prod/a/b.yaml"], &["prod"]),
            ("web", &["web"], &["web.yaml"]),
            ("a**?", &["ab", "a/é"], &["a"]),
            ("", &[""], &["a"]),
            (
                "{a,b-{1,2},}.yaml",
                &["a.yaml", "b-1.yaml", "b-2.yaml", ".yaml"],
                &["b-.yaml"],
            ),
            ("{a*,}b,", &["ab,", "b,"], &["c,"]),
            ("[a-c]", &["b"], &["d", "-"]),
            ("[!a-c]", &["d", "é"], &["b", ""]),
            ("[xy\\]]", &["y", "]"], &["z", "\\"]),
            ("[!x]", &["y"], &["x"]),
            (r"\*\{", &["*{"], &["a{", r"\*\{"]),
            ("a}]-!,", &["a}]-!,"], &["a"]),
        ] {
            assert!(matching.iter().all(|text| matches(glob, text)), "{glob}");
            assert!(!others.iter().any(|text| matches(glob, text)), "{glob}");
        }
    }

    #[test]
    fn refuses_malformed_globs() {
        assert_eq!(Glob::new("[a-z0-9]").unwrap_err(), GlobError::MixedClass);
        assert_eq!(Glob::new("[a").unwrap_err(), GlobError::OpenClass);
        assert_eq!(Glob::new("[z-a]").unwrap_err(), GlobError::BackwardRange);
        assert_eq!(Glob::new("{a,b").unwrap_err(), GlobError::OpenAlternatives);
        assert_eq!(Glob::new(r"a\").unwrap_err(), GlobError::OpenEscape);
        let nested = |depth| format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        assert_eq!(Glob::new(&nested(1_000_000)).unwrap_err(), GlobError::TooDeep);
        assert!(matches(&nested(DEPTH_MAX).repeat(2), "aa"));
    }

    #[test]
    fn many_stars_match_quickly() {
        let pattern = "*a".repeat(60);
        assert!(!matches(&pattern, &"a".repeat(59)));
        assert!(matches(&pattern, &"a".repeat(4000)));
    }
}
