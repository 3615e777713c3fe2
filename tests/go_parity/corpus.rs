//! Checks that every case of the corpus is parsed as Go's libraries parse it.
//!
//! A case is `NAME.yaml` and, in `NAME.json`, Go's result. The environment variable `YAML_CORPUS` names further folders of cases,
//! separated by `:`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{answer, stack};

#[test]
fn corpus_agrees_with_go() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/yaml-corpus")];
    if let Ok(more) = std::env::var("YAML_CORPUS") {
        folders.extend(more.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from));
    }
    let mut cases: Vec<PathBuf> = folders.iter().flat_map(|folder| cases_in(folder)).collect();
    cases.sort();
    assert!(!cases.is_empty(), "there are no cases");
    let differing = stack::with_stack(|| cases.iter().filter(|case| !agrees(case)).count());
    // Not with `println!`, whose output the test harness hides if the test passes.
    writeln!(
        io::stdout(),
        "yaml corpus: {} agree, {differing} differ",
        cases.len() - differing
    )
    .expect("standard output");
    assert_eq!(differing, 0, "cases differ");
}

fn cases_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect()
}

fn agrees(case: &Path) -> bool {
    let input = fs::read(case).expect("the case can be read");
    let expected = fs::read_to_string(case.with_extension("json")).expect("the case has an answer");
    match answer::difference(&input, &expected) {
        None => true,
        Some(difference) => {
            println!("{}:\n{difference}", case.display());
            false
        }
    }
}
