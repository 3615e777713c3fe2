//! Problems of the input: one line each, and the same on every run.

use crate::text::{one_line, without_middle};
use std::fmt;
use std::io;

/// The maximum number of problems in a message; the others are counted.
const MAX_PROBLEMS: usize = 1000;

/// The maximum number of bytes of a problem. A name or a key in it may be as long as a file.
const LINE_MAX: usize = 4_000;

/// The number of bytes after which further problems are only counted. Argo CD stores the whole text in a condition of the Application,
/// and again in the result of a sync; both must fit in etcd with the rest of the Application, in 1.5 MiB.
const MESSAGE_MAX: usize = 250_000;

/// One or more problems, each a line without a line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Creates a single problem.
    pub fn one(line: impl fmt::Display) -> Self {
        Self(vec![line.to_string()])
    }

    /// Returns the lines.
    pub fn into_lines(self) -> Vec<String> {
        self.0
    }

    /// Returns `value` if there are no problems, else all of them.
    ///
    /// # Errors
    /// Returns an error if `lines` is not empty.
    pub fn or<T>(lines: Vec<String>, value: T) -> Result<T, Self> {
        if lines.is_empty() { Ok(value) } else { Err(Self(lines)) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed = 0;
        let mut bytes = 0;
        for line in self.0.iter().take(MAX_PROBLEMS) {
            // A name or key from a manifest may contain line breaks; each problem must stay one line.
            let line = without_middle(line, LINE_MAX);
            let line = one_line(&line);
            bytes += line.len();
            if bytes > MESSAGE_MAX {
                break;
            }
            writeln!(f, "error: {line}")?;
            printed += 1;
        }
        match self.0.len() - printed {
            0 => Ok(()),
            1 => writeln!(f, "error: and 1 more problem"),
            more => writeln!(f, "error: and {more} more problems"),
        }
    }
}

impl std::error::Error for Problems {}

impl From<String> for Problems {
    fn from(line: String) -> Self {
        Self::one(line)
    }
}

/// Formats an I/O error in the style of the other messages: without its number, in lowercase.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((plain, _)) => plain.to_lowercase(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_is_one_line_without_control_characters() {
        let problem = Problems::one("a\n\u{1b}[2Jb\u{2028}\u{202e}c");
        assert_eq!(problem.to_string(), "error: a  [2Jb  c\n");
    }

    #[test]
    fn long_problems_keep_their_start_and_their_end() {
        let name = "n".repeat(4_000_000);
        let message = Problems::one(format!("a.yaml:1: Pod {name}: it is wrong: remove it")).to_string();
        assert!(message.len() < 4_100, "{}", message.len());
        assert!(message.starts_with("error: a.yaml:1: Pod nnn"), "{message}");
        assert!(message.ends_with("nnn: it is wrong: remove it\n"), "{message}");
    }

    #[test]
    fn all_problems_together_fit_into_an_application() {
        let lines = vec!["\n".repeat(5_000); 100];
        let message = Problems::or(lines, ()).unwrap_err().to_string();
        assert!(message.len() < 260_000, "{}", message.len());
        assert!(
            message.ends_with("error: and 38 more problems\n"),
            "{}",
            &message[message.len() - 40..]
        );
    }

    #[test]
    fn lists_at_most_1000_problems_and_counts_the_rest() {
        let lines = |count: usize| (0..count).map(|n| format!("problem {n}")).collect();
        let message = |count: usize| Problems::or(lines(count), ()).unwrap_err().to_string();
        assert_eq!(message(2), "error: problem 0\nerror: problem 1\n");
        assert_eq!(message(20).lines().count(), 20);
        assert!(message(1001).ends_with("error: problem 999\nerror: and 1 more problem\n"));
        assert!(message(1025).ends_with("error: and 25 more problems\n"));
    }
}
