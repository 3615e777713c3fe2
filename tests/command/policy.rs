//! Tests of `policy check`: the feedback on a policy before Argo CD uses it.

use crate::program::{self, SILENT, failed, program, run, transcript};
use crate::shipped_files::{read_document, root};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};
use tempfile::TempDir;

fn folder(policy: &str) -> TempDir {
    program::folder(&[("policy.yaml", policy)])
}

fn check(folder: &Path, more: &[&str]) -> String {
    run(folder, &[&["policy", "check", "policy.yaml"], more].concat())
}

/// Returns the policy that is shipped in a ConfigMap.
fn sample() -> String {
    let config_map = read_document("deploy/policy_cm.yaml");
    config_map["data"]["policy.yaml"]
        .as_str()
        .expect("policy.yaml")
        .to_owned()
}

/// A policy for a team and for the platform.
const TEAMS: &str = r#"
apiVersion: argocd-ocm-cmp.github.io/v1alpha1
kind: Policy
projects:
- names: [shop, "shop-*"]
  clusters: ["eu-*"]
  namespaces: [shop, "shop-*"]
  kinds: ["*", Certificate.cert-manager.io, ExternalSecret.external-secrets.io]
  deniedKinds: [ResourceQuota, LimitRange, "*.rbac.authorization.k8s.io"]
  executor: {namespace: shop, name: deployer}
- names: [platform]
  clusterScoped: true
  secrets: true
"#;

#[test]
fn sample_policy_allows_little_more_than_the_quick_start() {
    insta::assert_snapshot!(check(folder(&sample()).path(), &[]), @r#"
    exit code: 0
    ----- stdout -----
    projects managed-clusters
      clusters        cluster1
      placements      none
      namespaces      default
      kinds           ConfigMap, Service, Deployment.apps
      cluster-scoped  no, and custom resources only of kinds named in full
      plain Secrets   no
      executor        the Application's choice
    any other project
      nothing
    ----- stderr -----
    "#);
}

#[test]
fn checks_a_policy_in_its_config_map() {
    let config_map = |data: &str| {
        folder(&format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\n{data}"
        ))
    };
    let policy = TEAMS.trim_start().replace('\n', "\n    ");
    let shipped = config_map(&format!("data:\n  policy.yaml: |\n    {policy}\n"));
    assert_eq!(check(shipped.path(), &[]), check(folder(TEAMS).path(), &[]));
    let wrong = config_map("data:\n  policy.yaml: 'kind: Deployment'\n");
    assert!(
        check(wrong.path(), &[]).contains("error: policy.yaml: data.policy.yaml: "),
        "{}",
        check(wrong.path(), &[])
    );
    for data in ["", "data: {policy: x}\n"] {
        assert_eq!(
            check(config_map(data).path(), &[]),
            failed(1, "policy.yaml: the ConfigMap has no policy: add it as policy.yaml")
        );
    }
}

/// Returns the output of `generate` in the sidecar of a new hub, for the guestbook of this project on this cluster, with another
/// manifest.
fn guestbook(project: &str, cluster: &str, more: &str) -> String {
    let folder = folder(&sample());
    let guestbook = folder.path().join("guestbook");
    fs::create_dir(&guestbook).expect("a folder");
    for file in ["deployment.yaml", "service.yaml"] {
        fs::copy(root().join("guestbook").join(file), guestbook.join(file)).expect("a file");
    }
    fs::write(guestbook.join("more.yaml"), more).expect("a file");
    let policy = folder.path().join("policy.yaml");
    let env = [
        ("ARGOCD_OCM_CMP_POLICY_FILE", policy.to_str().expect("a plain path")),
        ("ARGOCD_APP_PROJECT_NAME", project),
        ("ARGOCD_APP_NAME", "guestbook"),
        ("ARGOCD_APP_NAMESPACE", "default"),
        ("ARGOCD_ENV_TARGET_CLUSTER", cluster),
    ];
    let output = program(&guestbook).args(["generate", "-o", "json"]).envs(env).output();
    let output = output.expect("the program runs");
    let errors = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.stdout.is_empty(), !errors.is_empty(), "{errors}");
    errors.replace(folder.path().to_str().expect("a plain path"), "")
}

#[test]
fn sample_policy_permits_the_guestbook_and_explains_refusals() {
    assert_eq!(guestbook("managed-clusters", "cluster1", ""), "");
    assert!(guestbook("default", "cluster1", "").contains("add `- names: [default]`"));
    assert!(guestbook("managed-clusters", "us1", "").contains("add `us1` to `projects[0].clusters`"));
    for (object, change) in [
        ("v1, kind: Secret, metadata: {", "projects[0].secrets"),
        (
            "v1, kind: ConfigMap, metadata: {namespace: b, ",
            "projects[0].namespaces",
        ),
        ("apps/v1, kind: DaemonSet, metadata: {", "projects[0].kinds"),
        ("v1, kind: Namespace, metadata: {", "projects[0].clusterScoped"),
    ] {
        let errors = guestbook(
            "managed-clusters",
            "cluster1",
            &format!("{{apiVersion: {object}name: a}}}}"),
        );
        assert!(
            errors.lines().count() == 1 && errors.contains(change),
            "{change}: {errors}"
        );
    }
}

#[test]
fn missing_namespace_error_names_the_setting() {
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}";
    let folder = program::folder(&[("policy.yaml", &*sample()), ("shop/a.yaml", deployment)]);
    let env = ["ARGOCD_APP_NAME=shop", "ARGOCD_APP_PROJECT_NAME=managed-clusters"];
    let words = ["generate", "shop", "--cluster=cluster1", "--policy=policy.yaml"];
    let output = run(folder.path(), &[&env[..], &words].concat());
    insta::assert_snapshot!(output, @"
    exit code: 1
    ----- stdout -----
    ----- stderr -----
    error: a.yaml:1: document 1: Deployment.apps a: it names no namespace and the Application has none: set metadata.namespace, or spec.destination.namespace of the Application
    error: a.yaml:1: document 1: Deployment.apps a: the policy lets project managed-clusters deliver nothing without a namespace: to allow it, set its metadata.namespace
    ");
}

#[test]
fn looks_up_a_project_like_generate() {
    let folder = folder(TEAMS);
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
    let unknown = check(folder.path(), &["--project", "other"]);
    assert!(
        unknown.contains("error: the policy has no entry for project other"),
        "{unknown}"
    );
}

#[test]
fn duplicate_list_is_an_error() {
    let start = "apiVersion: argocd-ocm-cmp.github.io/v1alpha1\nkind: Policy\nprojects:\n- names: [team-a]\n";
    let twice = folder(&format!(
        "{start}  clusters: [eu1]\n  secrets: true\n  clusters: ['*']\n"
    ));
    assert_eq!(
        check(twice.path(), &[]),
        failed(1, r#"policy.yaml:7: duplicate key "clusters": remove one"#)
    );
    let json = r#"{"apiVersion": "argocd-ocm-cmp.github.io/v1alpha1", "kind": "Policy", "projects": [], "projects": [{"names": ["*"]}]}"#;
    assert!(check(folder(json).path(), &[]).contains("duplicate key \"projects\""));
    // The same key in another entry, or in a mapping that merges another, is valid.
    let once = folder(&format!(
        "{start}  clusters: &eu [eu1]\n- names: [team-b]\n  clusters: *eu\n"
    ));
    assert!(check(once.path(), &[]).starts_with("exit code: 0\n"));
}

#[test]
fn unreadable_policy_is_an_error() {
    let folder = TempDir::new().expect("a scratch folder");
    assert_eq!(
        check(folder.path(), &[]),
        failed(1, "policy.yaml: the policy cannot be read: no such file or directory")
    );
    fs::create_dir(folder.path().join("policy.yaml")).expect("a folder");
    assert_eq!(
        check(folder.path(), &[]),
        failed(1, "policy.yaml: the policy cannot be read: is a directory")
    );
    fs::remove_dir(folder.path().join("policy.yaml")).expect("no folder");
    fs::write(folder.path().join("policy.yaml"), " ".repeat((1 << 20) + 1)).expect("a file");
    assert_eq!(
        check(folder.path(), &[]),
        failed(
            1,
            "policy.yaml: the policy has more than 1048576 bytes, the limit of a ConfigMap: shorten it"
        )
    );
    fs::write(folder.path().join("policy.yaml"), "[".repeat(200_000)).expect("a file");
    assert!(
        check(folder.path(), &[]).starts_with("exit code: 1\n"),
        "nesting is bounded"
    );
}

#[test]
fn reads_a_policy_from_a_pipe() {
    let folder = folder(&sample());
    let mut child = program(folder.path())
        .args(["policy", "check", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin
        .write_all(sample().as_bytes())
        .expect("the program reads its input");
    drop(stdin);
    let output = transcript(&child.wait_with_output().expect("the program ends"));
    assert_eq!(output, check(folder.path(), &[]));
}

/// Runs the program with `words` under a policy that permits project `shop` everything.
fn under_policy(folder: &Path, words: &[&str]) -> Output {
    program(folder)
        .args(words)
        .args(["shop", "--cluster=eu1", "--namespace=shop"])
        .env("ARGOCD_APP_PROJECT_NAME", "shop")
        .output()
        .expect("the program runs")
}

/// Returns the namespaces and names of the printed works.
fn works(printed: &[u8]) -> Vec<String> {
    let printed = String::from_utf8(printed.to_vec()).expect("text");
    let name = |document: &str| {
        document
            .lines()
            .find_map(|line| line.strip_prefix("  name: ").map(str::to_owned))
    };
    printed.split("---\n").filter_map(name).collect()
}

#[test]
fn diff_recognizes_works_named_under_a_policy() {
    let late = "{argocd.argoproj.io/sync-wave: '5'}";
    let folder = program::folder(&[
        (
            "policy.yaml",
            "{apiVersion: argocd-ocm-cmp.github.io/v1alpha1, kind: Policy, projects: [{names: [shop]}]}",
        ),
        ("shop/a.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"),
        (
            "shop/b.yaml",
            &format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: b, annotations: {late}}}}}"),
        ),
    ]);
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    let policy = "--policy=policy.yaml";
    let printed = under_policy(folder.path(), &["generate", "--name=shop", policy]);
    assert!(printed.status.success(), "{}", transcript(&printed));
    let base = "shop.pzcipz5no3gazstnmhnzf24tefquuwqly";
    assert_eq!(works(&printed.stdout), [base.to_owned(), format!("{base}.part-wave5")]);
    let plain = under_policy(folder.path(), &["generate", "--name=shop"]);
    assert_eq!(works(&plain.stdout), ["shop", "shop.part-wave5"]);
    // An Application with the name of such a work gets another name, with and without a policy.
    for more in [&[policy][..], &[]] {
        let name = format!("--name={base}");
        let printed = under_policy(folder.path(), &[&["generate", name.as_str()], more].concat());
        let works = works(&printed.stdout);
        assert!(
            works.len() == 2 && works.iter().all(|work| work.starts_with(&format!("{base}."))),
            "{works:?}"
        );
    }

    // At a terminal without the policy, the works of the hub are compared under their names on the hub.
    file("works.yaml", std::str::from_utf8(&printed.stdout).expect("text"));
    for words in [
        &["diff", "--name=shop", "--file=works.yaml", policy][..],
        &["diff", "--name=shop", "--file=works.yaml"],
    ] {
        let output = transcript(&under_policy(folder.path(), words));
        assert_eq!(output, SILENT, "{words:?}");
    }
    // With the policy, existing works are renamed.
    file("works.yaml", std::str::from_utf8(&plain.stdout).expect("text"));
    let output = transcript(&under_policy(
        folder.path(),
        &["diff", "--name=shop", "--file=works.yaml", policy],
    ));
    insta::assert_snapshot!(output, @r"
    exit code: 1
    ----- stdout -----
    eu1 ManifestWork shop.pzcipz5no3gazstnmhnzf24tefquuwqly is new, with 1 object
    eu1 ManifestWork shop.pzcipz5no3gazstnmhnzf24tefquuwqly.part-wave5 is new, with 1 object
    eu1 ManifestWork shop is deleted
    eu1 ManifestWork shop.part-wave5 is deleted
    eu1 ConfigMap shop/a moves from work shop to shop.pzcipz5no3gazstnmhnzf24tefquuwqly
    eu1 ConfigMap shop/b moves from work shop.part-wave5 to shop.pzcipz5no3gazstnmhnzf24tefquuwqly.part-wave5
    ----- stderr -----
    ");
}

#[test]
fn generate_accepts_the_files_and_projects_of_policy_check() {
    let config_map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}}";
    let policy = TEAMS.replace('\n', "\n    ");
    let in_config_map =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  policy.yaml: |{policy}\n");
    let folder = program::folder(&[
        ("shop/settings.yaml", config_map),
        ("plain.yaml", TEAMS),
        ("config-map.yaml", &in_config_map),
    ]);
    let generate = |policy: &str, project: &str| {
        let words = ["generate", "shop", "--clusters=eu-1", "--name=shop"];
        run(
            folder.path(),
            &[&words[..], &["--policy", policy, "--project", project]].concat(),
        )
    };
    for policy in ["plain.yaml", "config-map.yaml"] {
        let permitted = generate(policy, "shop");
        assert!(permitted.starts_with("exit code: 0\n"), "{permitted}");
        let refused = generate(policy, "other");
        assert!(
            refused.contains("error: the policy has no entry for project other, "),
            "{refused}"
        );
    }
}
