//! Follows the remedies that messages of `generate` name: each must work.

use crate::program::{folder, program_with, run, tools};
use std::fs;

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\n";
const CHART: &str = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";
const KUSTOMIZATION: &str = "resources: [config.yaml]\ncommonAnnotations: {team: shop}\n";

type Files<'f> = &'f [(&'f str, &'f str)];

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

#[test]
fn remedies_in_messages_work() {
    let large = format!("{CONFIG}data: {{text: {}}}\n", "word ".repeat(130_000));
    let other = CONFIG.replace("config", "b");
    let optional = format!("{{{{ if .Values.large }}}}\n{large}{{{{ end }}}}\n---\n{other}");
    let encrypted = format!("{other}data: {{a: \"ENC[AES256_GCM,data:x]\"}}\nsops: {{version: 3.9.0}}\n");
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n";
    let (crd, large) = (large_crd(), large.replace("config", "b"));
    let (crd, large) = ([("crd.yaml", &*crd)], [("a.yaml", CONFIG), ("large.yaml", &*large)]);
    let optional = [
        ("Chart.yaml", CHART),
        ("values.yaml", "large: true\n"),
        ("templates/a.yaml", &*optional),
    ];
    let nested = [
        ("a.yaml", CONFIG),
        ("apps/web/kustomization.yaml", KUSTOMIZATION),
        ("apps/web/config.yaml", CONFIG),
    ];
    let (jsonnet, encrypted) = (
        [("a.yaml", CONFIG), ("b.jsonnet", "{}")],
        [("a.yaml", CONFIG), ("b.yaml", &*encrypted)],
    );
    let (secret, empty) = ([("a.yaml", secret)], [("a.txt", "")]);
    let overlay = [("a.txt", ""), ("eu/a.yaml", CONFIG)];
    let kustomization = [("kustomization.yaml", KUSTOMIZATION), ("config.yaml", CONFIG)];
    let chart = [("Chart.yaml", CHART), ("templates/config.yaml", CONFIG)];
    // A source with arguments that is refused, with the remedy in the message, and the arguments that follow it.
    let cases: [(Files<'_>, &str, &str, &str); 16] = [
        (&crd, "", "set strip-crd-descriptions", "--strip-crd-descriptions"),
        (&large, "", "exclude its file", "--exclude=large.yaml"),
        (
            &optional,
            "",
            "what renders it in the chart or kustomization",
            "--helm-parameters=large=false",
        ),
        (&nested, "", "exclude apps/web/*", "--exclude=apps/web/*"),
        (&jsonnet, "", "or exclude it", "--exclude=b.jsonnet"),
        (
            &encrypted,
            "--validate=strict",
            "exclude the file",
            "--validate=strict --exclude=b.yaml",
        ),
        (&secret, "", "set allow-secrets", "--allow-secrets"),
        (&empty, "", "set allow-empty", "--allow-empty"),
        (
            &overlay,
            "--clusters=us1 --overlays=eu1=eu,us1=us --include=*.none",
            "overlays: us: it cannot be read",
            "--clusters=us1 --overlays=eu1=eu --allow-empty",
        ),
        (&chart, "--exclude=a", "leave it out", ""),
        (&chart, "--kustomize-images=a:1", "leave it out", ""),
        (&kustomization, "--helm-parameters=a=b", "leave it out", ""),
        (
            &chart,
            "--helm-value-files=none.yaml",
            "set helm-ignore-missing-value-files",
            "--helm-value-files=none.yaml --helm-ignore-missing-value-files",
        ),
        (
            &kustomization,
            "--kustomize-common-annotations=team=other",
            "set kustomize-force-common-annotations",
            "--kustomize-common-annotations=team=other --kustomize-force-common-annotations",
        ),
        (
            &kustomization,
            "--kustomize-common-labels=a=b --kustomize-label-include-templates",
            "set kustomize-label-without-selector",
            "--kustomize-common-labels=a=b --kustomize-label-include-templates --kustomize-label-without-selector",
        ),
        (
            &kustomization,
            "--kustomize-patches={}",
            "write it like - {path: patch.yaml}",
            "--kustomize-patches=[{'target':{'kind':'ConfigMap'},'patch':'[{\"op\":\"add\",\"path\":\"/data\",\"value\":{\"a\":\"b\"}}]'}]",
        ),
    ];
    for (files, arguments, remedy, corrected) in cases {
        let folder = folder(files);
        for (arguments, code, text) in [(arguments, "1", remedy), (corrected, "0", "")] {
            let clusters = if arguments.contains("--clusters") {
                ""
            } else {
                "--clusters=eu1"
            };
            let words = format!("PATH={} generate --name=shop {clusters} {arguments}", tools().display());
            let printed = run(folder.path(), &words);
            let ended = format!("exit code: {code}\n");
            assert!(
                printed.starts_with(&ended) && printed.contains(text),
                "{remedy}: {arguments}: {printed}"
            );
        }
    }
}

#[test]
fn stripped_crd_keeps_fields_named_description() {
    let folder = folder(&[("crd.yaml", large_crd())]);
    let words = "generate --name=shop --clusters=eu1 --strip-crd-descriptions --output=json";
    let output = program_with(folder.path(), words.split(' '))
        .output()
        .expect("the program runs");
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
        ("eu1=eu", "error: no manifests for cluster us1: "),
        ("eu1=eu,us1=us", "error: overlays: us: it has no Kubernetes object "),
    ] {
        let words = format!("generate --name=shop --clusters=eu1,us1 --overlays={overlays}");
        let printed = run(folder.path(), &words);
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn a_kustomization_changes_in_a_copy_even_if_temporary_files_are_in_the_repository() {
    let folder = folder(&[("kustomization.yaml", KUSTOMIZATION), ("config.yaml", CONFIG)]);
    fs::create_dir(folder.path().join("tmp")).expect("a folder");
    let words = format!(
        "PATH={} TMPDIR={} generate --name=shop --clusters=eu1 --kustomize-name-suffix=-blue",
        tools().display(),
        folder.path().join("tmp").display()
    );
    let printed = run(folder.path(), &words);
    assert!(printed.contains("name: config-blue"), "{printed}");
    let content = fs::read_to_string(folder.path().join("kustomization.yaml")).expect("a file");
    assert_eq!(content, KUSTOMIZATION);
}
