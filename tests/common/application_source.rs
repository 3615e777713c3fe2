//! Calls Argo CD's own code for the objects of a source.

use super::conversation::Conversation;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use testbed::{Part, Parts};

/// A question: the objects of a folder of a repository.
#[derive(Debug, Serialize)]
pub(crate) struct Question<'a> {
    pub(crate) root: &'a Path,
    pub(crate) folder: &'a Path,
    /// The Application's name and destination namespace.
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
    /// The fields of its source other than the path.
    pub(crate) source: Value,
    /// The destination's version of Kubernetes.
    pub(crate) kube_version: &'a str,
    /// Argo CD's setting `kustomize.buildOptions`.
    pub(crate) kustomize_build_options: &'a str,
}

#[derive(Deserialize)]
struct Answer {
    manifests: Vec<String>,
    error: String,
}

/// The program that calls Argo CD's code.
pub(crate) struct ApplicationSource(Conversation);

impl ApplicationSource {
    /// Starts the program, which runs kustomize and Helm of the folder `tools`.
    pub(crate) fn start(parts: &Parts, tools: &Path) -> Result<Self> {
        let mut program = Command::new(parts.program(Part::ApplicationSource));
        // Argo CD logs every run of a tool to standard error with a separate logger.
        program.env("PATH", tools).env("ARGOCD_LOG_LEVEL", "panic");
        Conversation::start(program).map(Self)
    }

    /// Returns the objects as JSON, or the error of Argo CD.
    pub(crate) fn manifests(&mut self, question: &Question<'_>) -> Result<Result<Vec<String>, String>> {
        let answer: Answer = serde_json::from_str(&self.0.ask(question)?)?;
        Ok(if answer.error.is_empty() {
            Ok(answer.manifests)
        } else {
            Err(answer.error)
        })
    }
}
