//! `doctor` where no hub can be asked: what is wrong is said in a line.

use crate::program::{self, NOBODY, program_with};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn refused(folder: &Path, words: &[&str]) -> String {
    program::refused(folder, &[&["doctor"][..], words].concat())
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = TempDir::new().expect("a scratch folder");
    for (words, told) in [
        (&["shop"][..], "unexpected argument 'shop'"),
        (&["--namespace", ".."], "Kubernetes has no such names"),
        (&["--argocd-namespace=Team"], "Kubernetes has no such names"),
        (&["-o", "yaml"], "possible values: table, json"),
    ] {
        let line = refused(folder.path(), words);
        assert!(line.contains(told), "{words:?}: {line}");
    }
}

#[test]
fn without_a_hub_nothing_can_be_told() {
    let folder = TempDir::new().expect("a scratch folder");
    assert_eq!(
        refused(folder.path(), &["--kubeconfig=none"]),
        "error: no hub to read from: none: no such file or directory: set --kubeconfig or --context\n"
    );
    fs::write(folder.path().join("config"), NOBODY).expect("a file");
    for words in [&[][..], &["-o", "json"], &["-n", "gitops"]] {
        let words = [words, &["--kubeconfig=config", "--context=a"]].concat();
        assert_eq!(
            refused(folder.path(), &words),
            "error: the hub at http://127.0.0.1:1/ cannot be reached: connection refused\n"
        );
    }
}

#[test]
fn the_help_says_what_exit_codes_mean() {
    let output = program_with(Path::new("/"), ["doctor", "--help"])
        .output()
        .expect("it runs");
    let help = String::from_utf8(output.stdout).expect("text");
    for part in [
        "Exit code: 0 when nothing is wrong, 1 when something is, 2 when",
        "--argocd-namespace",
        "Examples:\n",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}
