//! Every YAML and JSON file of some large projects is read as Go's libraries read it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{answer, oracle, stack};

const MODULES: [&str; 4] = [
    "github.com/argoproj/argo-cd/v3@v3.2.6",
    "k8s.io/kubernetes@v1.36.3",
    "open-cluster-management.io/ocm@v1.2.1",
    "open-cluster-management.io/api@v1.2.0",
];

/// Larger files are left out.
const LARGEST: u64 = 8 << 20;

#[test]
fn real_files_agree_with_go() {
    let Some(mut oracle) = oracle::Oracle::start("yaml") else {
        return;
    };
    let (mut agreeing, mut differing, mut bytes) = (0, 0, 0);
    for module in MODULES {
        let mut files = Vec::new();
        collect(&folder_of(module), &mut files);
        files.sort();
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

/// Where Go keeps the files of a module, which it loads if need be.
fn folder_of(module: &str) -> PathBuf {
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

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let entry = entry.expect("the folder can be read");
        let (path, kind) = (entry.path(), entry.file_type().expect("the entry has a type"));
        let wanted = || {
            path.extension()
                .is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
        };
        if kind.is_dir() {
            collect(&path, files);
        } else if kind.is_file() && wanted() && entry.metadata().is_ok_and(|meta| meta.len() <= LARGEST) {
            files.push(path);
        }
    }
}
