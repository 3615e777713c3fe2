//! Applies the mistakes in `xtask/mutants.txt` to the code, one after the other, and checks that a unit test finds each.

use crate::root;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const LIST: &str = include_str!("../mutants.txt");

/// A mistake: another text at the only place of a text in a file.
struct Mutant {
    file: &'static str,
    before: &'static str,
    after: &'static str,
}

/// Parses the list: the path of a file, then pairs of lines that begin with `- ` and `+ `.
fn read_list(list: &'static str) -> Result<Vec<Mutant>> {
    let (mut all, mut file, mut before) = (Vec::new(), None, None);
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(text) = line.strip_prefix("- ") {
            before = Some(text);
        } else if let Some(after) = line.strip_prefix("+ ") {
            all.push(Mutant {
                file: file.context("no file before the first pair")?,
                before: before.take().with_context(|| format!("no line with - before {line}"))?,
                after,
            });
        } else {
            file = Some(line);
        }
    }
    Ok(all)
}

/// A changed file, whose text is restored at the end.
struct Changed {
    path: PathBuf,
    text: String,
}

impl Changed {
    fn apply(root: &Path, mutant: &Mutant) -> Result<Self> {
        let path = root.join(mutant.file);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", mutant.file))?;
        let count = text.matches(mutant.before).count();
        ensure!(
            count == 1,
            "{} has {count} times {:?}: update xtask/mutants.txt",
            mutant.file,
            mutant.before
        );
        fs::write(&path, text.replace(mutant.before, mutant.after))?;
        Ok(Self { path, text })
    }
}

impl Drop for Changed {
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
    ensure!(tests_pass(root, chosen[0])?, "the tests fail without a mutant");
    let mut survivors = Vec::new();
    for (number, mutant) in chosen.iter().enumerate() {
        let changed = Changed::apply(root, mutant)?;
        let survives = tests_pass(root, mutant)?;
        drop(changed);
        let result = if survives { "SURVIVES" } else { "killed" };
        eprintln!(
            "{result} ({} of {}) {}: {}",
            number + 1,
            chosen.len(),
            mutant.file,
            mutant.after
        );
        if survives {
            survivors.push(format!("{}: {}", mutant.file, mutant.after));
        }
    }
    eprintln!("=== {} of {} killed", chosen.len() - survivors.len(), chosen.len());
    if !survivors.is_empty() {
        bail!("no test finds:\n{}", survivors.join("\n"));
    }
    Ok(())
}

/// Runs the unit tests of the file's crate, except random histories. Returns false if one fails.
fn tests_pass(root: &Path, mutant: &Mutant) -> Result<bool> {
    let package = mutant.file.split('/').nth(1).context("a file of a crate")?;
    let run = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(["test", "--quiet", "--package", package, "--lib"])
            .args(more)
            .current_dir(root);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.context("cannot run cargo").map(|status| status.success())
    };
    ensure!(run(&["--no-run"])?, "it does not compile: update xtask/mutants.txt");
    run(&["--", "--skip", "random_events"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_changes_one_place() {
        let root = root().expect("the root");
        for mutant in read_list(LIST).expect("a list") {
            let text = fs::read_to_string(root.join(mutant.file)).expect(mutant.file);
            assert_eq!(
                text.matches(mutant.before).count(),
                1,
                "{}: {}",
                mutant.file,
                mutant.before
            );
            assert_ne!(mutant.before, mutant.after);
        }
    }
}
