//! Tests of `doctor` without a hub: it prints the error in one line.

use crate::program::{UNREACHABLE_KUBECONFIG, assert_needs_a_hub, assert_refused};
use std::fs;
use std::io::{BufReader, Read as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use tempfile::TempDir;

#[test]
fn refuses_invalid_arguments() {
    assert_refused(&[
        ("doctor work", "a similar value exists: 'works'"),
        ("doctor --namespace ..", "not a Kubernetes name"),
        ("doctor --argocd-namespace=Team", "not a Kubernetes name"),
        ("doctor -o xml", "possible values: table, wide, json, yaml, name"),
        ("doctor --pre works", "cannot be used with"),
    ]);
}

#[test]
fn fails_without_a_hub() {
    assert_needs_a_hub("doctor", &["", "-o json", "-n gitops", "works ocm", "--pre"]);
}

/// On a terminal, a hub that does not answer is not mistaken for a program that hangs.
#[test]
fn terminal_shows_progress() {
    let folder = TempDir::new().expect("a scratch folder");
    // It accepts connections, and answers none.
    let hub = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = hub.local_addr().expect("an address").port();
    let config = UNREACHABLE_KUBECONFIG.replace("127.0.0.1:1", &format!("127.0.0.1:{port}"));
    fs::write(folder.path().join("config"), config).expect("a file");
    let command = format!(
        "{} doctor --kubeconfig config --context a",
        env!("CARGO_BIN_EXE_argocd-ocm-cmp")
    );
    let mut terminal = Command::new("script")
        .args(["-qfec", &command, "/dev/null"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script of util-linux runs");
    let mut shown = String::new();
    let mut out = BufReader::new(terminal.stdout.take().expect("a pipe"));
    // Until the second update, or until the program gives up after half a minute.
    while !shown.contains("reading the hub … 3 s") {
        let mut bytes = vec![0; 1024];
        let length = out.read(&mut bytes).expect("output");
        assert!(length > 0, "{shown:?}");
        shown += &String::from_utf8_lossy(&bytes[..length]);
    }
    assert!(shown.contains("\r\u{1b}[Kreading the hub … 2 s\r\u{1b}[K"), "{shown:?}");
    terminal.kill().expect("it runs");
    terminal.wait().expect("it ends");
}
