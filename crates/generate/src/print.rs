//! Prints ManifestWorks: JSON lines for Argo CD, from the JSON that the objects are kept as; YAML for people, from the values of one
//! ManifestWork at a time.

use super::manifestwork::ManifestWork;
use manifest::yaml;
use std::io::{self, Write};

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat {
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
    output: OutputFormat,
    out: &mut impl Write,
) -> io::Result<()> {
    for (at, work) in works.enumerate() {
        match output {
            OutputFormat::Json => {
                work.each_piece(|piece| out.write_all(piece.as_bytes()))?;
                out.write_all(b"\n")?;
            }
            OutputFormat::Yaml => {
                if at > 0 {
                    out.write_all(b"---\n")?;
                }
                out.write_all(yaml::write(&work.to_value()).as_bytes())?;
            }
        }
    }
    out.flush()
}
