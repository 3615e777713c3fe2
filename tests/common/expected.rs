//! Compares an output with the file that holds the expected output.

use anyhow::{Context, Result, bail};
use similar::TextDiff;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Compares `actual` with the content of `file`; an empty output has no file. If the environment variable `REWRITE` is set,
/// writes or removes the file instead.
pub(crate) fn compare(file: &Path, actual: &str) -> Result<()> {
    let expected = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        read => Some(read.with_context(|| file.display().to_string())?),
    };
    let actual = Some(actual).filter(|text| !text.is_empty());
    if expected.as_deref() == actual {
        return Ok(());
    }
    if std::env::var_os("REWRITE").is_some() {
        return match actual {
            Some(text) => fs::write(file, text),
            None => fs::remove_file(file),
        }
        .with_context(|| file.display().to_string());
    }
    let (before, now) = (expected.unwrap_or_default(), actual.unwrap_or_default());
    let diff = TextDiff::from_lines(before.as_str(), now);
    bail!(
        "the output differs from {}: if the new output is right, run this test with REWRITE=1 and review the change\n{}",
        file.display(),
        diff.unified_diff().header("expected", "actual")
    );
}
