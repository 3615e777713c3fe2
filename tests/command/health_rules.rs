//! Tests of rules for custom kinds: `health check`, and what `generate` makes of the rules of the user and of CRDs.

use crate::program::{failed, folder, program_with, run, transcript};
use std::fs;
use std::path::Path;

const RULES: &str = "\
Widget.example.com:
  Degraded Failed=True
  Suspended .spec.paused=true
  Healthy .status.phase=Ready
  message .status.error
  report Phase=.status.phase
Certificate.cert-manager.io: Healthy {has(object.status)}
";

const OBJECTS: &str = "\
{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: shop}, status: {phase: Ready}}
---
{apiVersion: example.com/v1, kind: Widget, metadata: {name: b, namespace: shop}, spec: {paused: true}}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: c, namespace: shop}}
---
{apiVersion: cert-manager.io/v1, kind: Issuer, metadata: {name: d, namespace: shop}}
---
{apiVersion: example.com/v1, kind: Other, metadata: {name: e, namespace: shop}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: f, namespace: shop}}
---
{apiVersion: v1, kind: Pod, metadata: {name: g, namespace: shop}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: h, namespace: shop}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: example.com/v1, kind: Widget, metadata: {name: i}, status: {phase: Ready}}
- {apiVersion: example.com/v1, kind: Widget, metadata: {name: \"j\\e]0;x\\a\"}}
";

#[test]
fn check_describes_the_rules_and_the_health_of_objects() {
    let folder = folder(&[("health.txt", RULES), ("objects.yaml", OBJECTS)]);
    insta::assert_snapshot!(run(folder.path(), &["health", "check", "health.txt"]), @r#"
    exit code: 0
    ----- stdout -----
    Widget.example.com: Degraded Suspended Healthy otherwise Progressing; reports Phase
    Certificate.cert-manager.io: Healthy otherwise Progressing
    ----- stderr -----
    "#);
    insta::assert_snapshot!(run(folder.path(), &["health", "check", "health.txt", "objects.yaml"]), @r#"
    exit code: 0
    ----- stdout -----
    Widget.example.com shop/a: Healthy (statement 3 of line 1)
    Widget.example.com shop/b: Suspended (statement 2 of line 1)
    Certificate.cert-manager.io shop/c: Progressing, unless a CEL expression of line 7 holds, which only the agent evaluates
    Issuer.cert-manager.io shop/d: Progressing (no test of the built-in rule holds)
    Other.example.com shop/e: no rule: by its conditions Ready, Available, Stalled and Failed
    Deployment.apps shop/f: its rule is built in, and cannot be tried here
    Pod shop/g: its rule is built in, and cannot be tried here
    ConfigMap shop/h: no rule: Healthy when it is applied
    Widget.example.com i: Healthy (statement 3 of line 1)
    Widget.example.com j�]0;x�: Progressing (no test of line 1 holds)
    ----- stderr -----
    "#);
}

#[test]
fn check_refuses_invalid_rules_by_line() {
    let config_map = "{kind: ConfigMap, data: {health.txt: \"Widget.example.com: Healthy\\nGadget: Healthy\\n\"}}";
    let folder = folder(&[("rules.yaml", config_map)]);
    assert_eq!(
        run(folder.path(), &["health", "check", "rules.yaml"]),
        failed(1, r#"rules.yaml: line 2: "Gadget" has no group: write `Kind.group`"#)
    );
}

#[test]
fn example_is_valid_and_the_page_shows_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).expect(path);
    assert!(read("docs/custom-resources.md").contains(&read("examples/health/health.txt")));
    let words = ["health", "check", "health.txt", "widget.yaml"];
    insta::assert_snapshot!(run(&root.join("examples/health"), &words), @r#"
    exit code: 0
    ----- stdout -----
    Widget.example.com shop/sample: Healthy (statement 3 of line 1)
    ----- stderr -----
    "#);
}

/// Generates the works of a folder with a Widget, with these rules of the user.
fn works(rules: &str, objects: &str) -> String {
    let source = folder(&[("objects.yaml", objects)]);
    let rules_folder = folder(&[("health.txt", rules)]);
    let words = ["generate", "--cluster=cluster1", "--name=shop", "--namespace=shop"];
    let mut command = program_with(source.path(), words);
    command.env("ARGOCD_OCM_CMP_HEALTH_FILE", rules_folder.path().join("health.txt"));
    let printed = transcript(&command.output().expect("the program runs"));
    printed.replace(&*rules_folder.path().to_string_lossy(), "/rules")
}

const WIDGET: &str = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}";

#[test]
fn rules_of_the_user_reach_the_agent_and_an_invalid_one_is_a_warning() {
    let printed = works(RULES, WIDGET);
    assert!(
        printed.contains("object.?status.?phase.orValue('')!='Ready'"),
        "{printed}"
    );
    assert!(printed.contains("path: \".status.phase\""), "{printed}");
    assert!(printed.contains("condition: Suspended"), "{printed}");
    let printed = works(
        "Gadget.example.com: Fine\nWidget.example.com: Healthy .status.phase=Up\n",
        WIDGET,
    );
    assert!(printed.contains("orValue('')!='Up'"), "{printed}");
    assert!(
        printed.contains("/rules/health.txt: line 1: \"Fine\" is no verdict"),
        "{printed}"
    );
    let without = works("# none\n", WIDGET);
    assert!(!without.contains("phase"), "{without}");
}

#[test]
fn kind_whose_crd_has_a_status_waits_for_it() {
    let crd = |status: &str, subresources: &str| {
        format!(
            "{WIDGET}\n---\n{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: widgets.example.com}}, \
             spec: {{group: example.com, scope: Namespaced, names: {{kind: Widget, plural: widgets}}, versions: [{{name: v1, served: true, \
             storage: true, schema: {{openAPIV3Schema: {{type: object, properties: {{status: {{type: object{status}}}}}}}}}{subresources}}}]}}}}"
        )
    };
    let waits = |status, subresources| works("", &crd(status, subresources)).contains("!has(object.status)||");
    let subresource = ", subresources: {status: {}}";
    assert!(waits(", properties: {phase: {type: string}}", subresource));
    assert!(waits(", x-kubernetes-preserve-unknown-fields: true", subresource));
    assert!(!waits(", properties: {failures: {type: object}}", subresource));
    assert!(!waits("", subresource));
    assert!(!waits(", properties: {phase: {type: string}}", ""));
}
