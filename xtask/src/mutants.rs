//! Makes mistakes in the code, one after the other, and checks that a unit test finds each: those in `xtask/mutants.txt`, or a sample of
//! all places where an operator can be exchanged.

use crate::root;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const LIST: &str = include_str!("../mutants.txt");

/// The exchanges of a sample.
const EXCHANGES: [(&str, &str); 16] = [
    (" == ", " != "),
    (" != ", " == "),
    (" && ", " || "),
    (" || ", " && "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" + ", " - "),
    (" - ", " + "),
    (".any(", ".all("),
    (".all(", ".any("),
    (".is_some()", ".is_none()"),
    (".is_none()", ".is_some()"),
    (".min(", ".max("),
    (".max(", ".min("),
];

/// A mistake: another text at a place in a file.
#[derive(Debug)]
struct Mutant<'t> {
    file: &'t str,
    before: &'t str,
    after: &'t str,
    /// The place in the file, unless its text is there only once.
    at: Option<usize>,
}

/// Parses the list: the path of a file, then pairs of lines that begin with `- ` and `+ `.
fn read_list(list: &str) -> Result<Vec<Mutant<'_>>> {
    let (mut all, mut file, mut before) = (Vec::new(), None, None);
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(text) = line.strip_prefix("- ") {
            before = Some(text);
        } else if let Some(after) = line.strip_prefix("+ ") {
            all.push(Mutant {
                file: file.context("no file before the first pair")?,
                before: before.take().with_context(|| format!("no line with - before {line}"))?,
                after,
                at: None,
            });
        } else {
            file = Some(line);
        }
    }
    Ok(all)
}

/// Returns the mistakes that can be made in the text of a file, outside of its tests, comments and texts.
fn mutants_of<'t>(file: &'t str, text: &str) -> Vec<Mutant<'t>> {
    let code = text.split_once("#[cfg(test)]\n").map_or(text, |(code, _)| code);
    let mut mutants = Vec::new();
    let mut start = 0;
    for line in code.split_inclusive('\n') {
        let is_code = !["//", "use ", "#[", "where"]
            .iter()
            .any(|other| line.trim_start().starts_with(other));
        for (before, after) in EXCHANGES.into_iter().filter(|_| is_code) {
            let places = line.match_indices(before).map(|(place, _)| place);
            let outside_texts = places.filter(|place| line[..*place].matches('"').count() % 2 == 0);
            mutants.extend(outside_texts.map(|place| Mutant {
                file,
                before,
                after,
                at: Some(start + place),
            }));
        }
        start += line.len();
    }
    mutants
}

/// Returns this number of items, evenly spread.
fn sample<T>(items: Vec<T>, number: usize) -> Vec<T> {
    let step = items.len().div_ceil(number.max(1)).max(1);
    items.into_iter().step_by(step).collect()
}

impl Mutant<'_> {
    fn place(&self, text: &str) -> Result<usize> {
        let mut places = text.match_indices(self.before).map(|(place, _)| place);
        match (self.at, places.next(), places.next()) {
            (Some(at), ..) | (None, Some(at), None) => Ok(at),
            _ => bail!(
                "{} must have {:?} once: update xtask/mutants.txt",
                self.file,
                self.before
            ),
        }
    }
}

/// A changed file, whose text is restored at the end.
struct MutatedFile {
    path: PathBuf,
    text: String,
}

impl MutatedFile {
    fn apply(root: &Path, mutant: &Mutant<'_>) -> Result<Self> {
        let path = root.join(mutant.file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", mutant.file))?;
        let at = mutant.place(&text)?;
        fs::write(
            &path,
            [&text[..at], mutant.after, &text[at + mutant.before.len()..]].concat(),
        )?;
        Ok(Self { path, text })
    }
}

impl Drop for MutatedFile {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, &self.text) {
            eprintln!("cannot restore {}: {error}: restore it with Git", self.path.display());
        }
    }
}

/// Tests the mutants in files whose path contains `part`, or all.
pub(crate) fn run(part: Option<&str>) -> Result<()> {
    let root = root()?;
    let all = read_list(LIST)?;
    let chosen: Vec<_> = all
        .iter()
        .filter(|mutant| part.is_none_or(|part| mutant.file.contains(part)))
        .collect();
    ensure!(!chosen.is_empty(), "no file in xtask/mutants.txt contains {part:?}");
    let survivors = survivors(root, &chosen)?;
    ensure!(survivors.is_empty(), "no test finds:\n{}", survivors.join("\n"));
    Ok(())
}

/// Tests about `number` mutants of each of these files, and prints the survivors.
pub(crate) fn run_sample(number: usize, files: &[String]) -> Result<()> {
    let root = root()?;
    let mut chosen = Vec::new();
    for file in files {
        let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        chosen.extend(sample(mutants_of(file, &text), number));
    }
    ensure!(!chosen.is_empty(), "name files with operators");
    let survivors = survivors(root, &chosen.iter().collect::<Vec<_>>())?;
    eprintln!("{}", survivors.join("\n"));
    Ok(())
}

/// Tests these mutants, prints how many are killed, and returns the others. Mutants that do not compile do not count.
fn survivors(root: &Path, chosen: &[&Mutant<'_>]) -> Result<Vec<String>> {
    let passes = tests_pass(root, chosen[0])?;
    ensure!(passes == Some(true), "the tests fail without a mutant");
    let (mut survivors, mut tested) = (Vec::new(), 0);
    for (number, mutant) in chosen.iter().enumerate() {
        let changed = MutatedFile::apply(root, mutant)?;
        let at = mutant.place(&changed.text)?;
        let line = changed.text[..at].lines().count().max(1);
        let what = format!(
            "{}:{line}: {} for {}",
            mutant.file,
            mutant.after.trim(),
            mutant.before.trim()
        );
        let passes = tests_pass(root, mutant)?;
        drop(changed);
        let result = match passes {
            None if mutant.at.is_none() => bail!("{what}: it does not compile: update xtask/mutants.txt"),
            None => "does not compile",
            Some(true) => "SURVIVES",
            Some(false) => "killed",
        };
        eprintln!("{result} ({} of {}) {what}", number + 1, chosen.len());
        tested += usize::from(passes.is_some());
        survivors.extend((passes == Some(true)).then_some(what));
    }
    eprintln!("=== {} of {tested} killed", tested - survivors.len());
    Ok(survivors)
}

/// Returns the packages whose unit tests cover a package: the simulated hub, on which several controllers run, is in
/// `controller`.
fn packages_with_tests_of(package: &str) -> Vec<&str> {
    match package {
        "argocd_agent" | "assignment" | "gitopscluster" => vec![package, "controller"],
        _ => vec![package],
    }
}

/// Runs the unit tests of the file's crate, except random histories. Returns false if one fails, and `None` if they do not compile.
fn tests_pass(root: &Path, mutant: &Mutant<'_>) -> Result<Option<bool>> {
    let package = match mutant.file.strip_prefix("crates/") {
        Some(path) => path.split('/').next().context("a file of a crate")?,
        None => "argocd-ocm-cmp",
    };
    let packages = packages_with_tests_of(package);
    let run = |more: &[&str]| {
        // A mistake may cause an endless loop.
        let mut command = Command::new("timeout");
        command
            .args(["1200", env!("CARGO"), "test", "--quiet", "--lib"])
            .args(packages.iter().flat_map(|package| ["--package", package]))
            .args(more)
            .current_dir(root);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.context("cannot run cargo").map(|status| status.success())
    };
    if !run(&["--no-run"])? {
        return Ok(None);
    }
    run(&["--", "--skip", "random_events"]).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_changes_one_place() {
        let root = root().expect("the root");
        for mutant in read_list(LIST).expect("a list") {
            let text = fs::read_to_string(root.join(mutant.file)).expect(mutant.file);
            mutant.place(&text).expect("it is there once");
            assert_ne!(mutant.before, mutant.after);
        }
    }

    #[test]
    fn exchanges_operators_of_code_only() {
        let text = "use a;\n// a == b\nlet c = a == b && \"x || y\" != d;\n#[cfg(test)]\nmod tests { 1 < 2 }\n";
        let mutants: Vec<_> = mutants_of("a.rs", text)
            .iter()
            .map(|mutant| {
                (
                    mutant.before,
                    &text[mutant.at.expect("a place")..][..mutant.before.len()],
                )
            })
            .collect();
        assert_eq!(mutants, [(" == ", " == "), (" != ", " != "), (" && ", " && ")]);
    }

    #[test]
    fn samples_are_evenly_spread() {
        assert_eq!(sample((0..10).collect(), 3), [0, 4, 8]);
        assert_eq!(sample((0..2).collect(), 3), [0, 1]);
        assert_eq!(sample(Vec::<u8>::new(), 3), [0; 0]);
    }
}
