//! `status` where no hub can be asked: what is wrong is said in a line.

use crate::program::{NOBODY, refused};
use std::fs;
use tempfile::TempDir;

#[test]
fn what_is_no_application_is_refused() {
    let folder = TempDir::new().expect("a scratch folder");
    for name in ["", "Shop", "a/b/c", "team/", "a_b_c"] {
        assert_eq!(
            refused(folder.path(), &["status", name]),
            format!(
                "error: {name:?} is not the name of an Application: give NAME, or NAMESPACE/NAME outside Argo CD's namespace\n"
            )
        );
    }
}

#[test]
fn without_a_hub_nothing_can_be_told() {
    let folder = TempDir::new().expect("a scratch folder");
    let way_out = "set --kubeconfig or --context\n";
    assert_eq!(
        refused(folder.path(), &["status", "shop", "--kubeconfig=none"]),
        format!("error: no hub to read from: none: no such file or directory: {way_out}")
    );
    fs::write(folder.path().join("config"), NOBODY).expect("a file");
    assert_eq!(
        refused(
            folder.path(),
            &["KUBECONFIG=config", "status", "shop", "--context", "b"]
        ),
        format!("error: no hub to read from: the kubeconfig has no context b: {way_out}")
    );
    // It is not waited for what never was there.
    for more in [
        &["--wait"][..],
        &["--watch"],
        &["--wait", "--timeout=1h"],
        &["-o", "json"],
    ] {
        let words = ["KUBECONFIG=config", "status", "shop", "--context", "a"];
        let words: Vec<&str> = words.iter().chain(more).copied().collect();
        assert_eq!(
            refused(folder.path(), &words),
            "error: the hub at http://127.0.0.1:1/ cannot be reached: connection refused\n"
        );
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let folder = TempDir::new().expect("a scratch folder");
    for (words, told) in [
        (&["status"][..], "<APP>"),
        (&["status", "shop", "--timeout=5m"], "--wait"),
        (
            &["status", "shop", "--wait", "--timeout=5"],
            "\"5\" is not a time: give a whole number and s, m or h",
        ),
        (&["status", "shop", "--wait", "--timeout=99999999999h"], "is not a time"),
        (&["status", "shop", "--wait", "--timeout=1ä"], "is not a time"),
        (&["status", "shop", "-o", "xml"], "possible values: table, json, yaml"),
    ] {
        let line = refused(folder.path(), words);
        assert!(line.contains(told), "{line}");
    }
}
