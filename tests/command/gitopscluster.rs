//! `gitopscluster status` where no hub can be asked: what is wrong is said in a line.

use crate::program::{self, NOBODY};
use std::path::Path;
use tempfile::TempDir;

fn refused(folder: &Path, words: &[&str]) -> String {
    program::refused(folder, &[&["gitopscluster", "status"][..], words].concat())
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = TempDir::new().expect("a scratch folder");
    for (words, told) in [
        (&["argocd/fleet"][..], "Kubernetes has no such names"),
        (&[""], "Kubernetes has no such names"),
        (&[".."], "Kubernetes has no such names"),
        (&["fleet", "-n", "Team"], "Kubernetes has no such names"),
        (&["fleet", "-A"], "cannot be used with"),
        (&["-n", "team", "--all-namespaces"], "cannot be used with"),
        (&["-o", "xml"], "possible values: table, wide, json, yaml"),
    ] {
        let line = refused(folder.path(), words);
        assert!(line.contains(told), "{words:?}: {line}");
    }
}

#[test]
fn without_a_hub_nothing_can_be_told() {
    let folder = TempDir::new().expect("a scratch folder");
    assert_eq!(
        refused(folder.path(), &["fleet", "--kubeconfig=none"]),
        "error: no hub to read from: none: no such file or directory: set --kubeconfig or --context\n"
    );
    std::fs::write(folder.path().join("config"), NOBODY).expect("a file");
    for words in [&["fleet"][..], &["-A"], &[]] {
        let words = [words, &["--kubeconfig=config", "--context=a"]].concat();
        assert_eq!(
            refused(folder.path(), &words),
            "error: the hub at http://127.0.0.1:1/ cannot be reached: connection refused\n"
        );
    }
}
