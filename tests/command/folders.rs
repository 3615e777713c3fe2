//! What `generate` prints for every folder in `tests/folders`: its exit code, standard output and standard error.
//!
//! A case is a folder with `files`, in which the program runs, and `words`: the environment and the arguments, one a line. What
//! the agent is told about each kind is left out, except where the case is about it: its name then begins with `configs-`.

use crate::program::{program_with, transcript, without_configs};
use std::fs;
use std::path::PathBuf;

#[test]
fn every_folder_is_wrapped_or_refused_as_before() {
    let folders = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/folders");
    let mut cases: Vec<PathBuf> = fs::read_dir(folders)
        .expect("the cases")
        .map(|case| case.expect("a case").path())
        .collect();
    cases.sort();
    assert!(cases.len() > 40, "{} cases", cases.len());
    for path in cases {
        let case = path.file_name().expect("a name").to_string_lossy().into_owned();
        let words = fs::read_to_string(path.join("words")).expect("words");
        let run = || {
            program_with(&path.join("files"), words.lines())
                .output()
                .expect("it runs")
        };
        let output = run();
        if case.starts_with("error-") {
            assert_eq!(output.status.code(), Some(1), "{case}");
            assert!(
                output.stdout.is_empty(),
                "{case}: an error must leave standard output empty"
            );
        } else {
            assert_eq!(output.status.code(), Some(0), "{case}");
        }
        assert_eq!(transcript(&output), transcript(&run()), "{case}: the same on every run");
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            let transcript = transcript(&output);
            let shown = if case.starts_with("configs-") { transcript } else { without_configs(&transcript) };
            insta::assert_snapshot!(case, shown);
        });
    }
}
