//! Works as text: JSON lines for Argo CD, YAML for people.

use super::wrap::Work;
use crate::cli::Output;
use crate::yaml;
use std::convert::Infallible;
use std::io::{self, Write};

/// Writes every work to `out`.
///
/// # Errors
/// When `out` takes no more.
pub fn works<'a>(works: impl Iterator<Item = Work<'a>>, output: Output, out: &mut impl Write) -> io::Result<()> {
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

/// A work in one piece.
#[must_use]
pub fn json(work: &Work<'_>) -> String {
    let mut json = String::new();
    let all: Result<(), Infallible> = work.each_piece(|piece| {
        json.push_str(piece);
        Ok(())
    });
    all.expect("a String takes all");
    json
}

fn as_yaml(work: &Work<'_>) -> String {
    let json = json(work);
    let value = yaml::json(&json).expect("what was written is JSON");
    yaml::write(&value)
}
