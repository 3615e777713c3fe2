//! Tests of `generate --summary`: the table of the works that a folder is divided into.

use crate::program::{SILENT, failed, folder, run};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn summary(folder: &Path, more: &[&str]) -> String {
    run(folder, &[&["generate", "--name=shop", "--summary"], more].concat())
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/generate")
        .join(name)
        .join("input")
}

#[test]
fn prints_a_line_per_work() {
    insta::assert_snapshot!(summary(&case("waves"), &["--cluster=eu1", "--manifest-limit=4k"]), @r"
    exit code: 0
    ----- stdout -----
    WORK                              CLUSTER   WAVE      OBJECTS   BYTES   OF LIMIT
    shop.part-wave-999999             eu1       -999999   1         148     3%
    shop                              eu1       0         1         90      2%
    shop.part-wave2-b0                eu1       2         16        2795    69%
    shop.part-wave2-b1                eu1       2         14        2314    57%
    shop.part-crd-cats.example.com    eu1       4         1         311     7%
    shop.part-wave5-cat.example.com   eu1       5         1         199     4%
    shop.part-wave7                   eu1       7         1         135     3%
    ----- stderr -----
    ");
}

#[test]
fn wide_summary_has_the_kinds() {
    let printed = summary(&case("waves"), &["--cluster=eu1", "-o", "wide"]);
    let kinds = |work: &str| {
        let mut lines = printed.lines();
        let line = lines.find(|line| line.split_whitespace().next() == Some(work));
        line.and_then(|line| line.split_whitespace().last()).map(str::to_owned)
    };
    assert_eq!(kinds("WORK").as_deref(), Some("KINDS"), "{printed}");
    assert_eq!(
        kinds("shop.part-wave5-cat.example.com").as_deref(),
        Some("Cat.example.com"),
        "{printed}"
    );
}

#[test]
fn prints_the_names_of_works() {
    let folder = case("waves");
    let printed = summary(&folder, &["--cluster=eu1", "-o", "name"]);
    assert!(printed.contains("\neu1/shop.part-wave-999999\neu1/shop\n"), "{printed}");
    let refused = run(&folder, &["generate", "--name=shop", "--cluster=eu1", "-o", "name"]);
    assert_eq!(
        refused,
        failed(
            2,
            "works have no such format: use -o yaml or -o json, or list them with --summary"
        )
    );
}

#[test]
fn prints_names_of_phases_and_hooks() {
    insta::assert_snapshot!(summary(&case("hooks"), &["--cluster=eu1"]), @r"
    exit code: 0
    ----- stdout -----
    WORK                                                  CLUSTER   WAVE         OBJECTS   BYTES   OF LIMIT
    shop.part-presync-wave-5-prepare-12bccac7fb-default   eu1       PreSync -5   1         356     <1%
    shop.part-presync                                     eu1       PreSync      1         156     <1%
    shop.part-presync-migrate-d960c5f146-default          eu1       PreSync      1         328     <1%
    shop                                                  eu1       0            2         251     <1%
    shop.part-sync-wave2-copy-8211214b13-default          eu1       2            1         270     <1%
    shop.part-postsync                                    eu1       PostSync     1         146     <1%
    shop.part-postsync-tell-659da3f5a9-default            eu1       PostSync     1         276     <1%
    shop.part-syncfail-tell-879c345faa                    eu1       SyncFail     1         276     <1%
    shop.part-postdelete-tidy-up-f55954e9a1               eu1       PostDelete   1         275     <1%
    ----- stderr -----
    warning: Job.batch migrate: the annotation argocd.argoproj.io/hook-delete-policy: HookSucceeded has no effect: a hook stays until its content changes
    ");
}

#[test]
fn prints_a_list_for_programs() {
    insta::assert_snapshot!(summary(&case("json"), &["--cluster=eu1", "--output=json"]), @r#"
    exit code: 0
    ----- stdout -----
    {"works":[{"bytes":287,"cluster":"eu1","limit":512000,"name":"shop","objects":3,"phase":"Sync","wave":0}]}
    ----- stderr -----
    "#);
    assert!(summary(&case("json"), &["--placement=fleet/europe"]).contains(" PLACEMENT "));
    insta::assert_snapshot!(summary(&case("json"), &["--placement=fleet/europe", "-o=yaml", "--manifest-limit=0"]), @r"
    exit code: 0
    ----- stdout -----
    works:
    - bytes: 287
      name: shop-x5395d8584ec7b1bae876
      objects: 3
      phase: Sync
      placement: fleet/europe
      wave: 0
    ----- stderr -----
    ");
}

#[test]
fn without_works_prints_nothing() {
    let folder = TempDir::new().expect("a scratch folder");
    assert_eq!(summary(folder.path(), &["--cluster=eu1", "--allow-empty"]), SILENT);
}

#[test]
fn lines_have_no_trailing_spaces_and_webhook_sizes() {
    let manifest = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: '<'}}";
    let folder = folder(&[("a.yaml", manifest)]);
    // {"apiVersion":"v1","data":{"k":"\u003c"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}, two more.
    assert_eq!(
        summary(folder.path(), &["--cluster=eu1", "--manifest-limit=0"]),
        "exit code: 0\n----- stdout -----\n\
         WORK   CLUSTER   WAVE   OBJECTS   BYTES   OF LIMIT\n\
         shop   eu1       0      1         108     -\n\
         ----- stderr -----\n"
    );
}
