//! `policy check`: what a platform team is told about its policy, before Argo CD is.

use crate::program::{program, program_with, transcript};
use argocd_ocm_cmp::value::Value;
use argocd_ocm_cmp::yaml;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use tempfile::TempDir;

fn folder(policy: &str) -> TempDir {
    let folder = TempDir::new().expect("a scratch folder");
    fs::write(folder.path().join("policy.yaml"), policy).expect("a file");
    folder
}

fn check(folder: &Path, more: &[&str]) -> String {
    let words = ["policy", "check", "policy.yaml"]
        .into_iter()
        .chain(more.iter().copied());
    transcript(&program_with(folder, words).output().expect("it runs"))
}

/// The policy that is shipped in a ConfigMap.
fn sample() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("policy_cm.yaml");
    let text = fs::read_to_string(path).expect("policy_cm.yaml");
    let documents: Vec<_> = yaml::documents(&text)
        .map(|document| document.expect("YAML").value)
        .collect();
    let [config_map] = documents.as_slice() else {
        panic!("not one document");
    };
    let data = config_map.as_map().and_then(|fields| fields.get("data")?.as_map());
    let policy = data.and_then(|data| data.get("policy.yaml")).and_then(Value::as_str);
    policy.expect("policy.yaml").to_owned()
}

#[test]
fn the_sample_is_a_policy_that_can_be_read() {
    insta::assert_snapshot!(check(folder(&sample()).path(), &[]), @r#"
    exit code: 0
    ----- stdout -----
    projects shop, shop-*
      clusters        eu-*
      placements      none
      namespaces      shop, shop-*
      kinds           *, Certificate.cert-manager.io, ExternalSecret.external-secrets.io; not ResourceQuota, LimitRange, *.rbac.authorization.k8s.io
      cluster-scoped  no, and custom resources only of kinds named in full
      plain Secrets   no
      executor        shop/deployer
    projects platform
      clusters        all
      placements      all
      namespaces      all
      kinds           all
      cluster-scoped  yes
      plain Secrets   yes, where the Application sets allow-secrets
      executor        the Application's choice
    any other project
      nothing
    ----- stderr -----
    "#);
}

#[test]
fn a_project_is_looked_up_as_generate_does() {
    let folder = folder(&sample());
    insta::assert_snapshot!(check(folder.path(), &["--project", "shop-eu"]), @r#"
    exit code: 0
    ----- stdout -----
    project shop-eu, by the entry for shop, shop-*
      clusters        eu-*
      placements      none
      namespaces      shop, shop-*
      kinds           *, Certificate.cert-manager.io, ExternalSecret.external-secrets.io; not ResourceQuota, LimitRange, *.rbac.authorization.k8s.io
      cluster-scoped  no, and custom resources only of kinds named in full
      plain Secrets   no
      executor        shop/deployer
    ----- stderr -----
    "#);
    insta::assert_snapshot!(check(folder.path(), &["--project", "other"]), @r#"
    exit code: 1
    ----- stdout -----
    ----- stderr -----
    error: the policy has no entry for project other, so it may deliver nothing: those who keep the policy can add one
    "#);
    insta::assert_snapshot!(check(folder.path(), &["--project", ""]), @r#"
    exit code: 1
    ----- stdout -----
    ----- stderr -----
    error: there is a policy, but no project to look up in it: Argo CD sets ARGOCD_APP_PROJECT_NAME from version 3.0 on; elsewhere, set it to the name of an AppProject
    "#);
}

#[test]
fn everything_wrong_is_told_and_nothing_else() {
    let folder = folder(
        "apiVersion: argocd-ocm-cmp.github.io/v1\nkind: Policy\nprojects:\n- names: [team-a]\n  executer: {}\n  secrets: never\n",
    );
    insta::assert_snapshot!(check(folder.path(), &[]), @r#"
    exit code: 1
    ----- stdout -----
    ----- stderr -----
    error: policy.yaml: projects[0].executer is not a field of an entry: the fields are names, clusters, placements, namespaces, kinds, deniedKinds, clusterScoped, secrets, executor
    error: policy.yaml: projects[0].secrets is text, not true or false
    "#);
}

#[test]
fn a_policy_that_cannot_be_read_is_an_error() {
    let folder = TempDir::new().expect("a scratch folder");
    insta::assert_snapshot!(check(folder.path(), &[]), @r#"
    exit code: 1
    ----- stdout -----
    ----- stderr -----
    error: policy.yaml: the policy cannot be read: no such file or directory
    "#);
    fs::create_dir(folder.path().join("policy.yaml")).expect("a folder");
    insta::assert_snapshot!(check(folder.path(), &[]), @r#"
    exit code: 1
    ----- stdout -----
    ----- stderr -----
    error: policy.yaml: the policy cannot be read: is a directory
    "#);
    fs::remove_dir(folder.path().join("policy.yaml")).expect("no folder");
    fs::write(folder.path().join("policy.yaml"), " ".repeat((1 << 20) + 1)).expect("a file");
    insta::assert_snapshot!(check(folder.path(), &[]), @r#"
    exit code: 1
    ----- stdout -----
    ----- stderr -----
    error: policy.yaml: the policy has more than 1048576 bytes, which no ConfigMap holds
    "#);
    fs::write(folder.path().join("policy.yaml"), "[".repeat(200_000)).expect("a file");
    assert!(
        check(folder.path(), &[]).starts_with("exit code: 1\n"),
        "nesting is bounded"
    );
}

#[test]
fn a_policy_may_come_through_a_pipe() {
    let folder = folder(&sample());
    let mut child = program(folder.path())
        .args(["policy", "check", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(sample().as_bytes()).expect("it reads");
    drop(stdin);
    let told = transcript(&child.wait_with_output().expect("it ends"));
    assert_eq!(told, check(folder.path(), &[]));
}
