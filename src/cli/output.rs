//! The output formats.

use clap::ValueEnum;
use generate::print;

/// The format of printed objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// One JSON object per line, as Argo CD reads it.
    Json,
    /// YAML documents.
    #[default]
    Yaml,
}

impl From<Output> for print::OutputFormat {
    fn from(output: Output) -> Self {
        match output {
            Output::Json => Self::Json,
            Output::Yaml => Self::Yaml,
        }
    }
}

/// The format of a list, as in `kubectl get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A table.
    Table,
    /// A table with more columns.
    Wide,
    /// One JSON object on a line.
    Json,
    /// A YAML document.
    Yaml,
    /// Only the names, one on a line.
    Name,
}

/// When lines have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
