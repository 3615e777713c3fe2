//! Checks that every YAML and JSON file of some large projects is parsed as Go's libraries parse it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{answer, oracle, stack};

const MODULES: [&str; 4] = [
    "github.com/argoproj/argo-cd/v3@v3.2.6",
    "k8s.io/kubernetes@v1.36.3",
    "open-cluster-management.io/ocm@v1.2.1",
    "open-cluster-management.io/api@v1.2.0",
];

/// The maximum size of a file; larger files are left out.
const LARGEST: u64 = 8 << 20;

#[test]
fn real_files_agree_with_go() {
    let mut oracle = oracle::Oracle::start("yaml");
    let (mut agreeing, mut differing, mut bytes) = (0, 0, 0);
    for module in MODULES {
        let mut files = testbed::files(&folder_of(module), &["yaml", "yml", "json"]).expect("the files");
        files.retain(|file| fs::metadata(file).is_ok_and(|meta| meta.len() <= LARGEST));
        for files in files.chunks(200) {
            let inputs: Vec<Vec<u8>> = files
                .iter()
                .map(|file| fs::read(file).expect("the file can be read"))
                .collect();
            bytes += inputs.iter().map(Vec::len).sum::<usize>();
            let answers = oracle.ask(&inputs);
            stack::with_stack(|| {
                for ((file, input), answer) in files.iter().zip(&inputs).zip(&answers) {
                    match answer::difference(input, answer) {
                        None => agreeing += 1,
                        Some(difference) => {
                            differing += 1;
                            println!("{}:\n{difference}", file.display());
                        }
                    }
                }
            });
        }
    }
    println!("real files: {agreeing} agree, {differing} differ ({} MB)", bytes >> 20);
    assert!(agreeing > 0, "there are no files");
    assert_eq!(differing, 0, "files differ");
}

/// Returns the folder in which Go keeps the files of a module, which it downloads if needed.
pub(crate) fn folder_of(module: &str) -> PathBuf {
    let answer = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("Go runs");
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).expect("Go answers in JSON");
    PathBuf::from(
        answer["Dir"]
            .as_str()
            .unwrap_or_else(|| panic!("{module} cannot be loaded: {answer}")),
    )
}
