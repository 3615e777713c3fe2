//! Runs a program that responds to each line of input with a line of output, to call the code of other projects.

use anyhow::{Context, Result};
use serde::Serialize;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The running program, which is killed when this is dropped.
pub(crate) struct Conversation {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Conversation {
    pub(crate) fn start(mut program: Command) -> Result<Self> {
        let mut process = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let questions = process.stdin.take().context("its standard input")?;
        let answers = BufReader::new(process.stdout.take().context("its standard output")?);
        Ok(Self {
            process,
            questions,
            answers,
        })
    }

    /// Sends a line of JSON, and returns the line of the answer.
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
