//! The templates of OCM's operator for its manifests, filled in as in a default installation.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::control_plane::ControlPlane;

/// Returns the manifests of files with templates.
pub(crate) fn render(files: &[PathBuf], variables: &[(&str, &str)]) -> Result<Vec<String>> {
    let of_file = |file: &PathBuf| {
        let template = fs::read_to_string(file).with_context(|| format!("failed to read {}", file.display()))?;
        Ok(fill_in(&template, variables))
    };
    files.iter().map(of_file).collect()
}

/// Applies manifests as the operator does.
pub(crate) fn apply(plane: &ControlPlane, manifests: &[String]) -> Result<()> {
    let arguments = ["apply", "--server-side", "--validate=false", "--filename", "-"];
    plane
        .kubectl_with_input(&arguments, &manifests.join("\n---\n"))
        .map(drop)
}

/// Fills in one template: every condition in them is about labels or features that are off by default, so the conditional parts
/// are removed.
fn fill_in(template: &str, variables: &[(&str, &str)]) -> String {
    let mut open = 0;
    let mut rendered = String::new();
    for line in template.lines() {
        let action = line.trim().strip_prefix("{{").map(str::trim_start).unwrap_or_default();
        if action.starts_with("if ") || action.starts_with("range ") {
            open += 1;
        } else if action.starts_with("end") {
            open -= 1;
        } else if open == 0 {
            rendered.push_str(line);
            rendered.push('\n');
        }
    }
    variables.iter().fold(rendered, |text, (name, value)| {
        text.replace(&format!("{{{{ .{name} }}}}"), value)
    })
}
