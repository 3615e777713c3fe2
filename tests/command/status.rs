//! Tests of `status` and `gitopscluster status` without a hub: they print the error in one line.

use crate::program::{UNREACHABLE_KUBECONFIG, assert_needs_a_hub, assert_refused, refused};
use std::fs;
use tempfile::TempDir;

#[test]
fn fails_without_a_hub() {
    // `--wait` does not wait for a hub that never answered.
    let variants: [&[&str]; 4] = [&["--wait"], &["--watch"], &["--wait", "--timeout=1h"], &["-o", "json"]];
    assert_needs_a_hub(&["status", "shop"], &variants);
    assert_needs_a_hub(&["gitopscluster", "status"], &[&["fleet"], &["-A"], &[]]);
}

#[test]
fn kubeconfig_variable_selects_the_hub() {
    let folder = TempDir::new().expect("a scratch folder");
    fs::write(folder.path().join("config"), UNREACHABLE_KUBECONFIG).expect("a file");
    for (context, printed) in [
        (
            "a",
            "error: the hub at http://127.0.0.1:1/ cannot be reached: connection refused\n",
        ),
        (
            "b",
            "error: no hub to read from: the kubeconfig has no context b: set --kubeconfig or --context\n",
        ),
    ] {
        assert_eq!(
            refused(
                folder.path(),
                &["KUBECONFIG=config", "status", "shop", "--context", context]
            ),
            printed
        );
    }
}

#[test]
fn refuses_invalid_arguments() {
    assert_refused(&[
        (&["status"], "<APP>"),
        (&["status", "shop", "--timeout=5m"], "--wait"),
        (
            &["status", "shop", "--wait", "--timeout=5"],
            "\"5\" is not a duration: write it like 90s, 10m or 2h",
        ),
        (
            &["status", "shop", "--wait", "--timeout=99999999999h"],
            "is not a duration",
        ),
        (&["status", "shop", "--wait", "--timeout=1ä"], "is not a duration"),
        (
            &["status", "shop", "-o", "xml"],
            "possible values: table, wide, json, yaml, name",
        ),
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
