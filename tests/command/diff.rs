//! Tests of `diff --file`: the changes to previously printed works after a change in a folder.

use crate::fake_hub::{FakeHub, objects};
use crate::program::{SILENT, failed, folder, program_with, tools, transcript};
use serde_json::json;
use std::fs;
use std::process::{Output, Stdio};
use tempfile::TempDir;

const WEB: &str = include_str!("../data/objects/web.yaml");

const SETTINGS: &str = r"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  web.conf: |
    listen 80
    workers 4
";

/// Creates a folder with `shop` in it and its works, for two clusters, in `works.yaml`.
fn shop(files: &[(&str, &str)]) -> TempDir {
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (format!("shop/{name}"), text))
        .collect();
    let folder = folder(&files);
    let works = run(&folder, &["generate", "shop", "--cluster=eu1,us1"]);
    assert!(works.status.success(), "{}", transcript(&works));
    fs::write(folder.path().join("works.yaml"), works.stdout).expect("a file");
    folder
}

fn write(folder: &TempDir, file: &str, text: &str) {
    fs::write(folder.path().join("shop").join(file), text).expect("a file");
}

fn change(folder: &TempDir, file: &str, from: &str, to: &str) {
    let text = fs::read_to_string(folder.path().join("shop").join(file)).expect("a file");
    assert!(text.contains(from), "{text}");
    write(folder, file, &text.replace(from, to));
}

fn run(folder: &TempDir, words: &[&str]) -> Output {
    let words = words
        .iter()
        .copied()
        .chain(["--name=shop", "--namespace=shop", "--allow-secrets"]);
    program_with(folder.path(), words).output().expect("the program runs")
}

fn diff(folder: &TempDir, more: &[&str]) -> String {
    transcript(&run(folder, &[&["diff", "shop", "--file=works.yaml"], more].concat()))
}

const BOTH: &str = "--cluster=eu1,us1";

#[test]
fn unchanged_works_print_nothing() {
    let folder = shop(&[("web.yaml", WEB), ("settings.yaml", SETTINGS)]);
    assert_eq!(diff(&folder, &[BOTH]), SILENT);
    // The file of an object, the order and the format do not matter.
    let both = format!("# in one\n{SETTINGS}---\n{WEB}");
    write(&folder, "web.yaml", &both.replace("'web:1'", "\"web:1\""));
    fs::remove_file(folder.path().join("shop/settings.yaml")).expect("the file exists");
    assert_eq!(diff(&folder, &[BOTH, "--color=always"]), SILENT);
}

#[test]
fn lists_changes_in_the_formats_of_kubectl() {
    let folder = shop(&[("web.yaml", WEB), ("settings.yaml", SETTINGS)]);
    change(&folder, "web.yaml", "web:1", "web:2");
    fs::remove_file(folder.path().join("shop/settings.yaml")).expect("the file exists");
    let listed = |format: &str| diff(&folder, &[BOTH, "-o", format]);
    insta::assert_snapshot!(listed("table"), @r"
    exit code: 1
    ----- stdout -----
    RESULT    OBJECT                     CLUSTERS
    changed   Deployment.apps shop/web   2
    deleted   ConfigMap shop/settings    2
    ----- stderr -----
    ");
    assert!(
        listed("wide").contains("Deployment.apps shop/web   eu1,us1\n"),
        "{}",
        listed("wide")
    );
    assert!(
        listed("name").contains("\nDeployment.apps shop/web\nConfigMap shop/settings\n"),
        "{}",
        listed("name")
    );
    let json = listed("json");
    let line = json.lines().find(|line| line.starts_with('{')).expect("a line");
    let all: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let changed = &all["changes"][0];
    assert_eq!(changed["result"], "changed", "{all:#}");
    assert_eq!(changed["clusters"], serde_json::json!(["eu1", "us1"]));
    let image = |side: &str| changed[side]["object"]["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    assert_eq!([image("before"), image("after")], ["web:1", "web:2"], "{all:#}");
    assert!(listed("yaml").contains("\nchanges:\n"), "{}", listed("yaml"));
    // Without changes, a list for programs is empty, and nothing is printed for people.
    let unchanged = shop(&[("web.yaml", WEB)]);
    assert_eq!(diff(&unchanged, &[BOTH, "-o", "table"]), SILENT);
    assert!(diff(&unchanged, &[BOTH, "-o", "json"]).contains("{\"changes\":[]}"));
}

#[test]
fn same_change_on_several_clusters_is_printed_once() {
    let folder = shop(&[("web.yaml", WEB), ("settings.yaml", SETTINGS)]);
    change(&folder, "settings.yaml", "workers 4", "workers 8");
    insta::assert_snapshot!(diff(&folder, &[BOTH]), @r"
    exit code: 1
    ----- stdout -----
    eu1,us1 ConfigMap shop/settings
    --- works.yaml: shop
    +++ generated: shop
    @@ -2,7 +2,7 @@
     data:
       web.conf: |
         listen 80
    -    workers 4
    +    workers 8
     kind: ConfigMap
     metadata:
       name: settings
    ----- stderr -----
    ");
}

#[test]
fn added_and_removed_objects_are_printed_in_full() {
    let folder = shop(&[("web.yaml", WEB), ("settings.yaml", SETTINGS)]);
    fs::remove_file(folder.path().join("shop/settings.yaml")).expect("the file exists");
    write(
        &folder,
        "account.yaml",
        "{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}",
    );
    insta::assert_snapshot!(diff(&folder, &[BOTH]), @r"
    exit code: 1
    ----- stdout -----
    eu1,us1 ServiceAccount shop/web
    --- /dev/null
    +++ generated: shop
    @@ -0,0 +1,5 @@
    +apiVersion: v1
    +kind: ServiceAccount
    +metadata:
    +  name: web
    +  namespace: shop
    eu1,us1 ConfigMap shop/settings
    --- works.yaml: shop
    +++ /dev/null
    @@ -1,9 +0,0 @@
    -apiVersion: v1
    -data:
    -  web.conf: |
    -    listen 80
    -    workers 4
    -kind: ConfigMap
    -metadata:
    -  name: settings
    -  namespace: shop
    ----- stderr -----
    ");
}

#[test]
fn marks_objects_that_stay_on_the_cluster() {
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}";
    let folder = shop(&[("web.yaml", WEB), ("namespace.yaml", namespace)]);
    fs::remove_file(folder.path().join("shop/namespace.yaml")).expect("the file exists");
    let header = |printed: &str| {
        printed
            .lines()
            .find(|line| line.contains(" Namespace "))
            .map(str::to_owned)
    };
    let printed = diff(&folder, &[BOTH]);
    assert_eq!(
        header(&printed).as_deref(),
        Some("eu1,us1 Namespace shop (stays on the cluster)")
    );
    fs::write(folder.path().join("shop/namespace.yaml"), namespace).expect("a file");
    let works = run(&folder, &["generate", "shop", BOTH, "--delete-namespaces"]);
    fs::write(folder.path().join("works.yaml"), works.stdout).expect("a file");
    fs::remove_file(folder.path().join("shop/namespace.yaml")).expect("the file exists");
    let printed = diff(&folder, &[BOTH]);
    assert_eq!(header(&printed).as_deref(), Some("eu1,us1 Namespace shop"));
}

#[test]
fn secrets_are_masked() {
    let secret = "{apiVersion: v1, kind: Secret, metadata: {name: db}, stringData: {password: hunter2, user: shop}}";
    let folder = shop(&[("db.yaml", secret)]);
    change(&folder, "db.yaml", "hunter2", "hunter3");
    insta::assert_snapshot!(diff(&folder, &[BOTH]), @r#"
    exit code: 1
    ----- stdout -----
    eu1,us1 Secret shop/db
    --- works.yaml: shop
    +++ generated: shop
    @@ -1,6 +1,6 @@
     apiVersion: v1
     data:
    -  password: "*** (before)"
    +  password: "*** (after)"
       user: "***"
     kind: Secret
     metadata:
    ----- stderr -----
    "#);
    fs::remove_file(folder.path().join("shop/db.yaml")).expect("the file exists");
    let gone = diff(&folder, &[BOTH, "--allow-empty"]);
    assert!(
        gone.contains("-  password: \"***\"\n") && !gone.contains("aHVudGVy"),
        "{gone}"
    );
}

#[test]
fn compares_replica_sets_like_works() {
    let folder = shop(&[("web.yaml", WEB), ("settings.yaml", SETTINGS)]);
    let placement = [
        "--placement=fleet/europe",
        "--rollout=Progressive",
        "--rollout-max-concurrency=1",
    ];
    let works = run(&folder, &[&["generate", "shop"], &placement[..]].concat()).stdout;
    fs::write(folder.path().join("works.yaml"), works).expect("a file");
    assert_eq!(diff(&folder, &placement), SILENT);
    // The objects of such a rollout contain a hash of all objects, which is printed only for changed ones.
    change(&folder, "web.yaml", "web:1", "web:2");
    let printed = diff(&folder, &[&placement[..2], &["--rollout-max-concurrency=2"]].concat());
    let shown: Vec<_> = printed.lines().filter(|line| line.starts_with(['f', '+'])).collect();
    let work = "shop-x5395d8584ec7b1bae876";
    let expected = [
        &*format!("fleet/europe ManifestWorkReplicaSet {work}"),
        &*format!("+++ generated: {work}"),
        "+        maxConcurrency: 2",
        "fleet/europe Deployment.apps shop/web",
        &*format!("+++ generated: {work}"),
        "+      - image: web:2",
    ];
    assert_eq!(shown, expected, "{printed}");
}

#[test]
fn reports_works_that_differ_only_in_the_content_hash() {
    let late =
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, annotations: {argocd.argoproj.io/sync-wave: '1'}}}";
    let folder = shop(&[("web.yaml", WEB), ("late.yaml", late)]);
    let works = fs::read_to_string(folder.path().join("works.yaml")).expect("a file");
    let mark = "argocd-ocm-cmp.github.io/content-hash: \"";
    let (_, hash) = works.split_once(mark).expect("a mark");
    let hash = hash.split('"').next().expect("a hash");
    let other = works.replace(hash, "0123456789");
    fs::write(folder.path().join("works.yaml"), other).expect("a file");
    let printed = diff(&folder, &[BOTH]);
    let line = "eu1,us1 objects change only in annotation argocd-ocm-cmp.github.io/content-hash\n";
    assert_eq!(
        printed,
        format!("exit code: 1\n----- stdout -----\n{line}----- stderr -----\n")
    );
}

#[test]
fn colours_only_on_terminals_or_on_request() {
    let folder = shop(&[("web.yaml", WEB)]);
    change(&folder, "web.yaml", "web:1", "web:2");
    for plain in [&["--color=auto"][..], &["--color=never"], &[]] {
        assert!(!diff(&folder, &[&[BOTH], plain].concat()).contains('\x1b'), "{plain:?}");
    }
    let colourful = diff(&folder, &[BOTH, "--color=always"]);
    for line in [
        "\x1b[1meu1,us1 Deployment.apps shop/web\x1b[0m\n",
        "\x1b[36m@@ -14,5 +14,5 @@\x1b[0m\n",
        "\x1b[31m-      - image: web:1\x1b[0m\n",
        "\x1b[32m+      - image: web:2\x1b[0m\n",
        "\n         name: web\n",
    ] {
        assert!(colourful.contains(line), "{line:?}: {colourful}");
    }
}

#[test]
fn reads_works_in_every_printed_format() {
    let folder = shop(&[("web.yaml", WEB), ("settings.yaml", SETTINGS)]);
    let lines = run(&folder, &["generate", "shop", BOTH, "--output=json"]).stdout;
    let lines = String::from_utf8(lines).expect("text");
    let list = format!(
        r#"{{"apiVersion":"v1","kind":"List","metadata":{{}},"items":[{}]}}"#,
        lines.trim_end().replace('\n', ",")
    );
    for text in [&lines, &list] {
        fs::write(folder.path().join("works.yaml"), text).expect("a file");
        assert_eq!(diff(&folder, &[BOTH]), SILENT);
    }
    let words = ["diff", "shop", BOTH, "--file=-", "--name=shop", "--namespace=shop"];
    let piped = program_with(folder.path(), words)
        .stdin(Stdio::from(
            fs::File::open(folder.path().join("works.yaml")).expect("a file"),
        ))
        .output()
        .expect("the program runs");
    assert_eq!(transcript(&piped), SILENT);
    // Works of other Applications, which kubectl also lists, are ignored.
    let other = lines.replace(r#""name":"shop""#, r#""name":"other""#);
    fs::write(folder.path().join("works.yaml"), format!("{lines}{other}")).expect("a file");
    assert_eq!(diff(&folder, &[BOTH]), SILENT);
}

#[test]
fn invalid_input_is_a_one_line_error() {
    let folder = shop(&[("web.yaml", WEB)]);
    let printed = |words: &str| crate::program::run(folder.path(), &format!("{words} --name=shop"));
    let error = |line: &str| failed(2, line);
    fs::write(folder.path().join("config"), "{apiVersion: v1, kind: Config}").expect("a file");
    for (words, expected) in [
        (
            "diff shop --file=none.yaml",
            "none.yaml: the works cannot be read: no such file or directory",
        ),
        (
            "diff shop --file=shop/web.yaml",
            "shop/web.yaml:1: document 1: Deployment.apps web is not a ManifestWork",
        ),
        (
            "diff - --file=-",
            "standard input can be read only once: put the manifests or the works into a file",
        ),
    ] {
        assert_eq!(printed(&format!("{words} --cluster=eu1")), error(expected));
    }
    for (words, expected) in [
        ("diff shop --kubeconfig=none", "none: no such file or directory"),
        ("KUBECONFIG=config diff shop", "the kubeconfig has no current context"),
        (
            "diff shop --kubeconfig=config --context=hub",
            "the kubeconfig has no context hub",
        ),
    ] {
        let remedy = "set --kubeconfig or --context, or compare with a file with --file";
        let expected = error(&format!("no hub to compare with: {expected}: {remedy}"));
        assert_eq!(printed(&format!("{words} --cluster=eu1")), expected);
    }
    fs::write(folder.path().join("config"), "a: b: c\n- d").expect("a file");
    let broken = printed("diff shop --cluster=eu1 --kubeconfig=config");
    assert!(
        broken.starts_with("exit code: 2\n") && broken.lines().count() == 4,
        "{broken}"
    );
    let no_cluster = printed("diff shop --file=works.yaml");
    assert!(
        no_cluster.starts_with(error("no target cluster").trim_end()),
        "{no_cluster}"
    );
    let contradiction = printed("diff shop --cluster=eu1 --file=works.yaml --context=hub");
    assert!(contradiction.starts_with("exit code: 2\n"), "{contradiction}");
}

#[test]
fn charts_are_rendered_for_the_version_of_the_hub() {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {version: '{{ .Capabilities.KubeVersion }}'}\n";
    let chart = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
    let shared = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let folder = folder(&[
        ("shared.yaml", shared),
        ("eu/Chart.yaml", chart),
        ("eu/templates/a.yaml", template),
    ]);
    let mut objects = objects();
    objects.insert("/version".to_owned(), json!({"gitVersion": "v1.29.7+k3s1"}));
    let (hub, tools) = (FakeHub::start(objects), tools());
    for source in [" --overlays eu3=eu", "/eu"] {
        let folder = folder.path().display();
        let words = format!(
            "PATH={} diff {folder}{source} --clusters eu3 --name shop",
            tools.display()
        );
        let printed = hub.run(&words);
        assert!(printed.contains("+  version: v1.29.7\n"), "{source}: {printed}");
    }
}
