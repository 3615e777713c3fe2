//! Follows the remedies that messages of `generate` name: each must work.

use crate::program::{folder, program_with, run, tools, transcript};
use std::fs;

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n";
const CHART: &str = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
const KUSTOMIZATION: &str = "resources: [config.yaml]\ncommonAnnotations: {team: shop}\n";

/// A source that is refused, with the remedy in the message, and the arguments that follow it.
struct Case {
    files: Vec<(&'static str, String)>,
    arguments: &'static [&'static str],
    remedy: &'static str,
    corrected: &'static [&'static str],
}

fn case(
    files: &[(&'static str, &str)],
    arguments: &'static [&'static str],
    remedy: &'static str,
    corrected: &'static [&'static str],
) -> Case {
    Case {
        files: files.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(),
        arguments,
        remedy,
        corrected,
    }
}

/// Returns a CRD that is larger than a work because of its descriptions, one of which is that of a field named `description`.
fn large_crd() -> String {
    let long = "word ".repeat(130_000);
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: cats.example.com}}\nspec:\n  \
         group: example.com\n  scope: Namespaced\n  names: {{kind: Cat, plural: cats}}\n  versions:\n  - name: v1\n    served: true\n    \
         storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        description: {long}\n        properties:\n          \
         description: {{type: string, description: {long}}}\n"
    )
}

fn cases() -> Vec<Case> {
    let large = format!("{CONFIG}data: {{text: {}}}\n", "word ".repeat(130_000));
    let optional = format!(
        "{{{{ if .Values.large }}}}\n{large}{{{{ end }}}}\n---\n{}",
        CONFIG.replace("config", "b")
    );
    let encrypted = format!(
        "{}data: {{a: \"ENC[AES256_GCM,data:x]\"}}\nsops: {{version: 3.9.0}}\n",
        CONFIG.replace("config", "b")
    );
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n";
    let kustomization = [("kustomization.yaml", KUSTOMIZATION), ("config.yaml", CONFIG)];
    let chart = [("Chart.yaml", CHART), ("templates/config.yaml", CONFIG)];
    vec![
        case(
            &[("crd.yaml", &large_crd())],
            &[],
            "set strip-crd-descriptions",
            &["--strip-crd-descriptions"],
        ),
        case(
            &[("a.yaml", CONFIG), ("large.yaml", &large.replace("config", "b"))],
            &[],
            "exclude its file",
            &["--exclude=large.yaml"],
        ),
        case(
            &[
                ("Chart.yaml", CHART),
                ("values.yaml", "large: true\n"),
                ("templates/a.yaml", &optional),
            ],
            &[],
            "what renders it in the chart or kustomization",
            &["--helm-parameters=large=false"],
        ),
        case(
            &[
                ("a.yaml", CONFIG),
                ("apps/web/kustomization.yaml", KUSTOMIZATION),
                ("apps/web/config.yaml", CONFIG),
            ],
            &[],
            "exclude apps/web/*",
            &["--exclude=apps/web/*"],
        ),
        case(
            &[("a.yaml", CONFIG), ("b.jsonnet", "{}")],
            &[],
            "or exclude it",
            &["--exclude=b.jsonnet"],
        ),
        case(
            &[("a.yaml", CONFIG), ("b.yaml", &encrypted)],
            &["--validate=strict"],
            "exclude the file",
            &["--validate=strict", "--exclude=b.yaml"],
        ),
        case(&[("a.yaml", secret)], &[], "set allow-secrets", &["--allow-secrets"]),
        case(&[("a.txt", "")], &[], "set allow-empty", &["--allow-empty"]),
        case(
            &[("a.txt", ""), ("eu/a.yaml", CONFIG)],
            &["--clusters=us1", "--overlays=eu1=eu,us1=us", "--include=*.none"],
            "overlays: us: it cannot be read",
            &["--clusters=us1", "--overlays=eu1=eu", "--allow-empty"],
        ),
        case(&chart, &["--exclude=a"], "leave it out", &[]),
        case(&chart, &["--kustomize-images=a:1"], "leave it out", &[]),
        case(&kustomization, &["--helm-parameters=a=b"], "leave it out", &[]),
        case(
            &chart,
            &["--helm-value-files=none.yaml"],
            "set helm-ignore-missing-value-files",
            &["--helm-value-files=none.yaml", "--helm-ignore-missing-value-files"],
        ),
        case(
            &kustomization,
            &["--kustomize-common-annotations=team=other"],
            "set kustomize-force-common-annotations",
            &[
                "--kustomize-common-annotations=team=other",
                "--kustomize-force-common-annotations",
            ],
        ),
        case(
            &kustomization,
            &["--kustomize-common-labels=a=b", "--kustomize-label-include-templates"],
            "set kustomize-label-without-selector",
            &[
                "--kustomize-common-labels=a=b",
                "--kustomize-label-include-templates",
                "--kustomize-label-without-selector",
            ],
        ),
        case(
            &kustomization,
            &["--kustomize-patches={}"],
            "write it like - {path: patch.yaml}",
            &[
                "--kustomize-patches=- target: {kind: ConfigMap}\n  patch: |\n    - {op: add, path: /data, value: {a: b}}\n",
            ],
        ),
    ]
}

#[test]
fn remedies_in_messages_work() {
    let path = format!("PATH={}", tools().display());
    for Case {
        files,
        arguments,
        remedy,
        corrected,
    } in cases()
    {
        let folder = folder(&files);
        let run = |arguments: &[&'static str]| {
            let has_clusters = arguments.iter().any(|argument| argument.starts_with("--clusters"));
            let clusters = (!has_clusters).then_some("--clusters=eu1");
            let words = [&*path, "generate", "--name=shop"].into_iter().chain(clusters);
            let words = words.chain(arguments.iter().copied());
            let output = program_with(folder.path(), words).output().expect("the program runs");
            (output.status.code(), transcript(&output))
        };
        let (code, printed) = run(arguments);
        assert_eq!(code, Some(1), "{remedy}: {printed}");
        assert!(printed.contains(remedy), "{remedy}: {printed}");
        let (code, printed) = run(corrected);
        assert_eq!(code, Some(0), "{remedy}: {printed}");
    }
}

#[test]
fn stripped_crd_keeps_fields_named_description() {
    let folder = folder(&[("crd.yaml", large_crd())]);
    let words = [
        "generate",
        "--name=shop",
        "--clusters=eu1",
        "--strip-crd-descriptions",
        "--output=json",
    ];
    let output = program_with(folder.path(), words).output().expect("the program runs");
    let work: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let crd = &work["spec"]["workload"]["manifests"][0];
    assert_eq!(
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        serde_json::json!({"type": "object", "properties": {"description": {"type": "string"}}})
    );
}

#[test]
fn errors_about_missing_objects_name_the_cluster_or_the_overlay() {
    let folder = folder(&[("eu/config.yaml", CONFIG)]);
    fs::create_dir(folder.path().join("us")).expect("a folder");
    for (overlays, expected) in [
        ("--overlays=eu1=eu", "error: no manifests for cluster us1: "),
        (
            "--overlays=eu1=eu,us1=us",
            "error: overlays: us: it has no Kubernetes object ",
        ),
    ] {
        let words = ["generate", "--name=shop", "--clusters=eu1,us1", overlays];
        let printed = run(folder.path(), &words);
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn a_kustomization_changes_in_a_copy_even_if_temporary_files_are_in_the_repository() {
    let folder = folder(&[("kustomization.yaml", KUSTOMIZATION), ("config.yaml", CONFIG)]);
    fs::create_dir(folder.path().join("tmp")).expect("a folder");
    let path = format!("PATH={}", tools().display());
    let temporary = format!("TMPDIR={}", folder.path().join("tmp").display());
    let words = [
        &*path,
        &temporary,
        "generate",
        "--name=shop",
        "--clusters=eu1",
        "--kustomize-name-suffix=-blue",
    ];
    let printed = run(folder.path(), &words);
    assert!(printed.contains("name: config-blue"), "{printed}");
    let content = fs::read_to_string(folder.path().join("kustomization.yaml")).expect("a file");
    assert_eq!(content, KUSTOMIZATION);
}
