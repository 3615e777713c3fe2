//! Tests of `gitopscluster status` without a hub: it prints the error in one line.

use crate::program::{assert_needs_a_hub, assert_refused};

#[test]
fn refuses_invalid_arguments() {
    assert_refused(&[
        (&["gitopscluster", "status", "a/b/c"], "not a Kubernetes name"),
        (&["gitopscluster", "status", ""], "not a Kubernetes name"),
        (&["gitopscluster", "status", ".."], "not a Kubernetes name"),
        (
            &["gitopscluster", "status", "fleet", "-n", "Team"],
            "not a Kubernetes name",
        ),
        (&["gitopscluster", "status", "fleet", "-A"], "cannot be used with"),
        (
            &["gitopscluster", "status", "-n", "team", "--all-namespaces"],
            "cannot be used with",
        ),
        (
            &["gitopscluster", "status", "-o", "xml"],
            "possible values: table, wide, json, yaml, name",
        ),
    ]);
}

#[test]
fn fails_without_a_hub() {
    let command = ["gitopscluster", "status"];
    assert_needs_a_hub(&command, &[&["fleet"], &["-A"], &[]]);
    assert_needs_a_hub(&[&command[..], &["fleet"]].concat(), &[&[]]);
}
