//! Changes as text, in the format of `diff -u`.

use super::list::grouped;
use super::{ObjectChange, Side, shown};
use crate::table::{BOLD, CYAN, END, GREEN, RED};
use manifest::text::printable;
use manifest::value::Value;
use manifest::yaml;
use similar::{ChangeTag, TextDiff};
use std::fmt::Write as _;
use std::time::Duration;

/// The style of the output.
#[derive(Clone, Debug)]
pub(crate) struct DiffStyle {
    /// True if lines have colours.
    pub(crate) colours: bool,
    /// The name of the live side.
    pub(crate) live: String,
    /// The name of the other side.
    pub(crate) changed: &'static str,
}

/// The number of context lines around a change.
const CONTEXT: usize = 3;

/// The time after which the differences of an object need not be the fewest: finding these takes time quadratic in its lines.
const FEWEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Formats changes; the same change for several clusters is shown once.
pub(crate) fn format_changes(changes: &[ObjectChange], style: &DiffStyle) -> String {
    let mut out = String::new();
    for group in grouped(changes) {
        let change = group.change;
        let header = format!("{} {}", group.targets(), change.what);
        style.line(BOLD, &printable(&header), &mut out);
        if change.before.is_some() || change.after.is_some() {
            unified(change, style, &mut out);
        }
    }
    out
}

/// Formats the changes of a live object as `kubectl diff` does, with values of Secrets masked; empty if there are none. `name` is
/// shown on both sides.
pub(crate) fn object_text(name: &str, live: &Value<'_>, changed: &Value<'_>, style: &DiffStyle) -> String {
    let mut out = String::new();
    let (Some(before), Some(after)) = shown::pair(Some(live), Some(changed)) else {
        return out;
    };
    if before != after {
        style.line(BOLD, &printable(&format!("--- {}: {name}", style.live)), &mut out);
        style.line(BOLD, &printable(&format!("+++ {}: {name}", style.changed)), &mut out);
        hunks(&yaml::write(&before), &yaml::write(&after), style, &mut out);
    }
    out
}

fn unified(change: &ObjectChange, style: &DiffStyle, out: &mut String) {
    let name = |side: &Option<Side>, whose: &str| {
        side.as_ref().map_or("/dev/null".to_owned(), |side| {
            printable(&format!("{whose}: {}", side.work))
        })
    };
    style.line(BOLD, &format!("--- {}", name(&change.before, &style.live)), out);
    style.line(BOLD, &format!("+++ {}", name(&change.after, style.changed)), out);
    let yaml = |side: &Option<Side>| side.as_ref().map_or(String::new(), |side| side.yaml.clone());
    hunks(&yaml(&change.before), &yaml(&change.after), style, out);
}

/// Writes the differences between two texts, without the names of their sides.
fn hunks(before: &str, after: &str, style: &DiffStyle, out: &mut String) {
    let diff = TextDiff::configure().timeout(FEWEST_TIMEOUT).diff_lines(before, after);
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        style.line(CYAN, &hunk.header().to_string(), out);
        for line in hunk.iter_changes() {
            let (mark, colour) = match line.tag() {
                ChangeTag::Equal => (' ', ""),
                ChangeTag::Delete => ('-', RED),
                ChangeTag::Insert => ('+', GREEN),
            };
            style.line(colour, &format!("{mark}{}", line.value().trim_end_matches('\n')), out);
        }
    }
}

impl DiffStyle {
    fn line(&self, colour: &str, line: &str, out: &mut String) {
        if self.colours && !colour.is_empty() {
            writeln!(out, "{colour}{line}{END}")
        } else {
            writeln!(out, "{line}")
        }
        .expect("writing to a String never fails");
    }
}
