//! Matches the regular expressions that Argo CD's namespace lists use: those of .NET (`dlclark/regexp2`) without lookbehind,
//! backreferences, options and word boundaries.
//!
//! An unsupported expression does not compile and so permits nothing. The matcher backtracks, as lookahead requires; the number
//! of its steps is limited, and beyond the limit nothing matches.

use std::cell::Cell;

/// The maximum length of an expression, in characters.
const LENGTH_MAX: usize = 1000;

/// The maximum nesting depth of groups.
const DEPTH_MAX: usize = 20;

/// The maximum number of steps of a match.
const STEPS_MAX: u32 = 20_000;

/// The maximum recursion depth of a match, which bounds the stack.
const NESTED_MAX: u32 = 1000;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Regex(Node);

#[derive(Debug)]
enum Node {
    Start,
    End,
    Class { negated: bool, ranges: Vec<(char, char)> },
    Sequence(Vec<Node>),
    Either(Vec<Node>),
    Repeat { of: Box<Node>, min: usize, max: usize },
    Ahead { negated: bool, of: Box<Node> },
}

impl Regex {
    /// Compiles an expression; returns `None` for a malformed or unsupported one.
    pub(super) fn new(expression: &str) -> Option<Self> {
        let chars: Vec<char> = expression.chars().collect();
        if chars.len() > LENGTH_MAX {
            return None;
        }
        let mut parser = Parser { chars: &chars, at: 0 };
        let node = parser.either(0)?;
        (parser.at == chars.len()).then_some(Self(node))
    }

    /// Returns true if the expression matches anywhere in this short text.
    pub(super) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let run = Run {
            text: &text,
            steps: Cell::new(STEPS_MAX),
            nested: Cell::new(0),
        };
        let has = (0..=text.len()).any(|at| run.node(&self.0, at, &mut |_| true));
        has && run.steps.get() > 0
    }
}

/// The state of a running match.
struct Run<'t> {
    text: &'t [char],
    /// The number of remaining steps. At zero, the match is undecided.
    steps: Cell<u32>,
    nested: Cell<u32>,
}

impl Run<'_> {
    /// Matches a node at this position, and then what follows it.
    fn node(&self, node: &Node, at: usize, after: &mut dyn FnMut(usize) -> bool) -> bool {
        let Some(left) = self.steps.get().checked_sub(1) else {
            return false;
        };
        let nested = self.nested.get();
        self.steps.set(if nested < NESTED_MAX { left } else { 0 });
        self.nested.set(nested.saturating_add(1));
        let matches = left > 0 && nested < NESTED_MAX && self.step(node, at, after);
        self.nested.set(nested);
        matches
    }

    fn step(&self, node: &Node, at: usize, after: &mut dyn FnMut(usize) -> bool) -> bool {
        match node {
            Node::Start => at == 0 && after(at),
            Node::End => at == self.text.len() && after(at),
            Node::Class { negated, ranges } => {
                let has = |char: &char| ranges.iter().any(|(low, high)| (low..=high).contains(&char)) != *negated;
                self.text.get(at).is_some_and(has) && after(at.saturating_add(1))
            }
            Node::Sequence(nodes) => self.sequence(nodes, at, after),
            Node::Either(nodes) => nodes.iter().any(|node| self.node(node, at, after)),
            Node::Repeat { of, min, max } => self.repeat((of, *min, *max), at, after),
            Node::Ahead { negated, of } => self.node(of, at, &mut |_| true) != *negated && after(at),
        }
    }

    fn sequence(&self, nodes: &[Node], at: usize, after: &mut dyn FnMut(usize) -> bool) -> bool {
        match nodes.split_first() {
            None => after(at),
            Some((first, rest)) => self.node(first, at, &mut |at| self.sequence(rest, at, after)),
        }
    }

    fn repeat(&self, (of, min, max): (&Node, usize, usize), at: usize, after: &mut dyn FnMut(usize) -> bool) -> bool {
        let requeue_after = max > 0
            && self.node(of, at, &mut |next| {
                // Another empty iteration changes nothing.
                (next > at || min > 0) && self.repeat((of, min.saturating_sub(1), max.saturating_sub(1)), next, after)
            });
        requeue_after || min == 0 && after(at)
    }
}

struct Parser<'c> {
    chars: &'c [char],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.at = self.at.saturating_add(1);
        Some(char)
    }

    fn next_if(&mut self, desired: &str) -> bool {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let is_next = desired
            .chars()
            .enumerate()
            .all(|(at, char)| rest.get(at) == Some(&char));
        if is_next {
            self.at = self.at.saturating_add(desired.chars().count());
        }
        is_next
    }

    fn either(&mut self, depth: usize) -> Option<Node> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut all = vec![self.sequence(depth)?];
        while self.next_if("|") {
            all.push(self.sequence(depth)?);
        }
        Some(Node::Either(all))
    }

    fn sequence(&mut self, depth: usize) -> Option<Node> {
        let mut nodes = Vec::new();
        while let Some(char) = self.peek().filter(|char| !matches!(char, '|' | ')')) {
            self.at = self.at.saturating_add(1);
            let node = match char {
                '^' => Node::Start,
                '$' => Node::End,
                '.' => class(&[], true),
                '(' => self.group(depth)?,
                '[' => self.list()?,
                '\\' => self.escaped()?,
                '*' | '+' | '?' | '{' => return None,
                plain => class(&[(plain, plain)], false),
            };
            nodes.push(self.repeated(node)?);
        }
        Some(Node::Sequence(nodes))
    }

    fn group(&mut self, depth: usize) -> Option<Node> {
        let ahead = if self.next_if("?!") {
            Some(true)
        } else if self.next_if("?=") {
            Some(false)
        } else {
            if !self.next_if("?:") && self.peek() == Some('?') {
                return None;
            }
            None
        };
        let inside = self.either(depth.saturating_add(1))?;
        if !self.next_if(")") {
            return None;
        }
        Some(match ahead {
            Some(negated) => Node::Ahead {
                negated,
                of: Box::new(inside),
            },
            None => inside,
        })
    }

    /// Parses the quantifier after a node. Lazy and greedy are equivalent here.
    fn repeated(&mut self, node: Node) -> Option<Node> {
        let (min, max) = match self.peek() {
            Some('*') => (0, usize::MAX),
            Some('+') => (1, usize::MAX),
            Some('?') => (0, 1),
            Some('{') => return self.counted(node),
            _ => return Some(node),
        };
        self.next();
        self.next_if("?");
        Some(repeat(node, min, max))
    }

    fn counted(&mut self, node: Node) -> Option<Node> {
        self.next();
        let min = self.number()?;
        let max = match self.next()? {
            '}' => min,
            ',' if self.next_if("}") => usize::MAX,
            ',' => {
                let max = self.number()?;
                if !self.next_if("}") || max < min {
                    return None;
                }
                max
            }
            _ => return None,
        };
        self.next_if("?");
        Some(repeat(node, min, max))
    }

    fn number(&mut self) -> Option<usize> {
        let mut digits = String::new();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            digits.push(digit);
            self.next();
        }
        digits.parse().ok()
    }

    fn escaped(&mut self) -> Option<Node> {
        match self.next()? {
            char if char.is_ascii_alphanumeric() => {
                let ranges = known(char.to_ascii_lowercase())?;
                Some(class(ranges, char.is_ascii_uppercase()))
            }
            char => Some(class(&[(char, char)], false)),
        }
    }

    fn list(&mut self) -> Option<Node> {
        let negated = self.next_if("^");
        let mut ranges = Vec::new();
        loop {
            let low = match self.next()? {
                ']' if !ranges.is_empty() => return Some(Node::Class { negated, ranges }),
                '\\' => match self.next()? {
                    char if char.is_ascii_alphanumeric() => {
                        ranges.extend(known(char)?);
                        continue;
                    }
                    char => char,
                },
                // Class subtraction and named classes.
                '[' => return None,
                char => char,
            };
            if self.peek() == Some('-') && self.chars.get(self.at.saturating_add(1)) != Some(&']') {
                self.next();
                let high = self.next().filter(|high| *high >= low && !matches!(high, '\\' | '['))?;
                ranges.push((low, high));
            } else {
                ranges.push((low, low));
            }
        }
    }
}

/// Returns the characters of `\d`, `\w` and `\s` that a namespace can contain.
fn known(letter: char) -> Option<&'static [(char, char)]> {
    match letter {
        'd' => Some(&[('0', '9')]),
        'w' => Some(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        's' => Some(&[('\t', '\r'), (' ', ' ')]),
        _ => None,
    }
}

fn class(ranges: &[(char, char)], negated: bool) -> Node {
    Node::Class {
        negated,
        ranges: ranges.to_vec(),
    }
}

fn repeat(node: Node, min: usize, max: usize) -> Node {
    Node::Repeat {
        of: Box::new(node),
        min,
        max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(expression: &str, text: &str) -> bool {
        Regex::new(expression).is_some_and(|regex| regex.matches(text))
    }

    #[test]
    fn matches_like_argo_cd() {
        for (expression, text, desired) in [
            ("team", "my-team-a", true),
            ("^team$", "my-team-a", false),
            ("^team-[a-c]{2,3}$", "team-abc", true),
            ("^team-[a-c]{2}$", "team-abc", false),
            ("^(?:dev|test)-\\w+?$", "dev-1", true),
            ("^(dev|test|)$", "", true),
            ("^[^k].*", "kube-system", false),
            ("^(?!kube-)(?=.*-x$).+$", "team-x", true),
            ("^(?!kube-).+$", "kube-system", false),
            ("^((?!not-allowed).)*$", "this-is-not-allowed", false),
            ("^[\\d-]+$", "1-2", true),
            ("^\\D+$", "abc", true),
            ("a.c", "a-c", true),
            ("a\\.c", "a-c", false),
            ("^(a*)*$", "aaab", false),
        ] {
            assert_eq!(matches(expression, text), desired, "{expression} {text}");
        }
    }

    #[test]
    fn refuses_unsupported_expressions() {
        for expression in [
            "(",
            ")",
            "*",
            "a**",
            "[",
            "[]",
            "[b-a]",
            "a{2",
            "a{3,2}",
            "(?<name>a)",
            "(?<=a)b",
            "(?i)a",
            "\\1",
            "\\b",
            "[a-\\d]",
            "[[:alpha:]]",
        ] {
            assert!(Regex::new(expression).is_none(), "{expression}");
        }
        assert!(Regex::new(&"(".repeat(500)).is_none());
        assert!(Regex::new(&"a".repeat(LENGTH_MAX + 1)).is_none());
    }

    #[test]
    fn gives_up_on_expensive_expressions() {
        assert!(!matches("^(a+)+$", &format!("{}b", "a".repeat(62))));
        assert!(!matches("^(){1000000}a$", "a"));
        assert!(!matches(
            &format!("^{}$", "(a|aa)*".repeat(20)),
            &format!("{}b", "a".repeat(62))
        ));
    }
}
