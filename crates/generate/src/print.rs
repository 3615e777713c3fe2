//! Prints ManifestWorks: JSON lines for Argo CD, YAML for people.

use super::manifestwork::ManifestWork;
use manifest::yaml;
use std::convert::Infallible;
use std::io::{self, Write};

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// One JSON object per line: the fastest format for Argo CD, read without reinterpretation.
    Json,
    /// YAML documents for people and kubectl.
    #[default]
    Yaml,
}

/// Writes all ManifestWorks to `out`.
///
/// # Errors
/// Returns an error if writing to `out` fails.
pub fn works<'a>(
    works: impl Iterator<Item = ManifestWork<'a>>,
    output: Output,
    out: &mut impl Write,
) -> io::Result<()> {
    for (at, work) in works.enumerate() {
        match output {
            Output::Json => {
                work.each_piece(|piece| out.write_all(piece.as_bytes()))?;
                out.write_all(b"\n")?;
            }
            Output::Yaml => {
                if at > 0 {
                    out.write_all(b"---\n")?;
                }
                out.write_all(as_yaml(&work).as_bytes())?;
            }
        }
    }
    out.flush()
}

/// Returns the JSON of a ManifestWork.
#[must_use]
pub fn json(work: &ManifestWork<'_>) -> String {
    let mut json = String::new();
    let all: Result<(), Infallible> = work.each_piece(|piece| {
        json.push_str(piece);
        Ok(())
    });
    all.expect("a String takes all");
    json
}

fn as_yaml(work: &ManifestWork<'_>) -> String {
    let json = json(work);
    let value = yaml::json(&json).expect("what was written is JSON");
    yaml::write(&value)
}
