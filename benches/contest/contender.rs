//! The compared programs, and their command lines.

use super::corpus::Corpus;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The maximum number of files for the shell loop, which starts a process for each and takes minutes beyond that.
const SHELL_MAX: usize = 3000;

/// A program that wraps the manifests of a folder, or only reads them.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// The command line; `None` if it would take too long.
    pub(crate) command: Option<Vec<String>>,
    /// True if it prints a work, and not the files as they are.
    pub(crate) wraps: bool,
}

/// The programs that the benchmark compares with.
pub(crate) struct Baseline {
    go: PathBuf,
    shell: PathBuf,
}

impl Baseline {
    /// Builds the programs that need a build.
    pub(crate) fn build() -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/baseline");
        let go = Path::new(env!("CARGO_TARGET_TMPDIR")).join("baseline");
        let built = Command::new("go")
            .args(["build", "-o"])
            .arg(&go)
            .arg(".")
            .current_dir(&sources)
            .status()
            .expect("the baseline is built with Go, which must be on the PATH");
        assert!(built.success(), "the baseline does not build");
        Self {
            go,
            shell: sources.join("loop.sh"),
        }
    }
}

/// Returns all programs that are compared over these manifests, ours first.
pub(crate) fn contenders(corpus: &Corpus, baseline: &Baseline) -> [Contender; 4] {
    let folder = corpus.folder().to_str().expect("a plain path");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let path = |path: &Path| path.to_str().expect("a plain path").to_owned();
    let floor = format!("find {folder} -type f -print0 | xargs -0 cat");
    [
        Contender {
            name: "argocd-ocm-cmp generate",
            command: Some(words(&[
                env!("CARGO_BIN_EXE_argocd-ocm-cmp"),
                "generate",
                folder,
                "--cluster=cluster1",
                "--name=bench",
                "--output=json",
                "--max-size=0",
                "--manifest-limit=0",
            ])),
            wraps: true,
        },
        Contender {
            name: "shell loop",
            command: (corpus.files <= SHELL_MAX).then(|| words(&[&path(&baseline.shell), folder, "cluster1", "bench"])),
            wraps: true,
        },
        Contender {
            name: "Go, apimachinery",
            command: Some(words(&[&path(&baseline.go), folder, "cluster1", "bench"])),
            wraps: true,
        },
        Contender {
            name: "find | xargs cat",
            command: Some(words(&["sh", "-c", &floor])),
            wraps: false,
        },
    ]
}
