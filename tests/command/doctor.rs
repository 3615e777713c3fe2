//! Tests of `doctor` without a hub: it prints the error in one line.

use crate::program::{assert_needs_a_hub, assert_refused, program_with};
use std::path::Path;

#[test]
fn refuses_invalid_arguments() {
    assert_refused(&[
        (&["doctor", "work"], "a similar value exists: 'works'"),
        (&["doctor", "--namespace", ".."], "not a Kubernetes name"),
        (&["doctor", "--argocd-namespace=Team"], "not a Kubernetes name"),
        (&["doctor", "-o", "wide"], "possible values: table, json, yaml"),
    ]);
}

#[test]
fn fails_without_a_hub() {
    assert_needs_a_hub(
        &["doctor"],
        &[&[], &["-o", "json"], &["-n", "gitops"], &["works", "ocm"]],
    );
}

#[test]
fn help_explains_exit_codes() {
    let output = program_with(Path::new("/"), ["doctor", "--help"])
        .output()
        .expect("the program runs");
    let help = String::from_utf8(output.stdout).expect("text");
    for part in [
        "Exit code: 0 without errors, 1 with errors, 2 without errors if",
        "--argocd-namespace",
        "Examples:\n",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
}
