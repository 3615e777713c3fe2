//! Compares docs/custom-resources.md and the list of kinds with the result.

use crate::expected;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

const START: &str = "<!-- generated: REWRITE=1 cargo test --test health_data -->\n";
const END: &str = "<!-- end -->\n";

/// The result for a kind.
#[derive(Default)]
pub(crate) struct Kind {
    pub(crate) objects: usize,
    /// The reasons for objects that differ.
    pub(crate) reasons: Vec<&'static str>,
}

/// Compares the files with the result, or writes them if `REWRITE` is set.
pub(crate) fn compare(kinds: &BTreeMap<&str, Kind>) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut list = String::new();
    for (folder, kind) in kinds {
        let result = match kind.reasons.as_slice() {
            [] => "same".to_owned(),
            reasons => format!("different by design: {}", reasons.join("; ")),
        };
        writeln!(list, "{folder} ({} objects): {result}", kind.objects)?;
    }
    expected::compare(&root.join("tests/health_data/kinds.txt"), &list)?;
    let path = root.join("docs/custom-resources.md");
    let page = std::fs::read_to_string(&path).context("docs/custom-resources.md")?;
    let (before, rest) = page.split_once(START).context("the generated part")?;
    let (_, after) = rest.split_once(END).context("its end")?;
    expected::compare(&path, &format!("{before}{START}\n{}\n{END}{after}", table(kinds)))
}

fn table(kinds: &BTreeMap<&str, Kind>) -> String {
    let group = |folder: &&str| folder.split_once('/').map_or(*folder, |(group, _)| group).to_owned();
    let groups: BTreeSet<String> = kinds.keys().map(group).collect();
    let differs = |kind: &&Kind| !kind.reasons.is_empty();
    let different = kinds.values().filter(differs).count();
    let objects: usize = kinds.values().map(|kind| kind.objects).sum();
    let different_objects: usize = kinds.values().map(|kind| kind.reasons.len()).sum();
    let mut table = "| | groups | kinds | objects |\n| --- | ---: | ---: | ---: |\n".to_owned();
    let mut row = |name: &str, groups: usize, kinds: usize, objects: usize| {
        let _ = writeln!(table, "| {name} | {groups} | {kinds} | {objects} |");
    };
    let different_groups: BTreeSet<String> = kinds
        .iter()
        .filter(|(_, kind)| differs(kind))
        .map(|(folder, _)| group(folder))
        .collect();
    row(
        "same",
        groups.len() - different_groups.len(),
        kinds.len() - different,
        objects - different_objects,
    );
    row(
        "different by design",
        different_groups.len(),
        different,
        different_objects,
    );
    row("unknown", 0, 0, 0);
    for (folder, kind) in kinds.iter().filter(|(_, kind)| differs(kind)) {
        let _ = write!(table, "\n- `{folder}`: {}", kind.reasons.join("; "));
    }
    table.push('\n');
    table
}
