//! Asking the code of others: a program that answers every line with a line.

use anyhow::{Context, Result};
use serde::Serialize;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Such a program while it runs. It ends with this.
pub(crate) struct Conversation {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Conversation {
    pub(crate) fn start(program: &Path) -> Result<Self> {
        Self::with(Command::new(program))
    }

    pub(crate) fn with(mut program: Command) -> Result<Self> {
        let mut process = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let questions = process.stdin.take().context("its standard input")?;
        let answers = BufReader::new(process.stdout.take().context("its standard output")?);
        Ok(Self {
            process,
            questions,
            answers,
        })
    }

    /// Asks in a line of JSON, and returns the line that comes back.
    pub(crate) fn ask(&mut self, question: &impl Serialize) -> Result<String> {
        writeln!(self.questions, "{}", serde_json::to_string(question)?)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
