//! Tests of `install --print`: the shipped files with the flags applied; and of `uninstall` and `install` without a hub.

use crate::fake_hub::{self, FakeHub};
use crate::program::{program_with, transcript};
use crate::shipped_files::{parse_documents, read_file};
use argocd_ocm_cmp::install::Feature;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// The image in our files, which is not published.
const IMAGE: &str = concat!(
    "--image=ghcr.io/argocd-ocm-cmp/argocd-ocm-cmp:",
    env!("CARGO_PKG_VERSION")
);

/// Returns the output of `install --print` with these flags, by default with the image in our files.
pub(crate) fn printed(flags: &str) -> String {
    let image = (!flags.contains("--image ")).then_some(IMAGE);
    let words = ["install", "--print"]
        .into_iter()
        .chain(image)
        .chain(flags.split_whitespace());
    let output = program_with(Path::new("/"), words).output().expect("the program runs");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        transcript(&output)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the objects of a text in sorted order.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let mut objects = parse_documents(text);
    objects.sort_by_key(name);
    objects
}

pub(crate) fn name(object: &Value) -> String {
    let metadata = &object["metadata"];
    format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
}

/// Asserts that two lists of objects are equal, and prints the difference otherwise.
pub(crate) fn assert_same(one: &[Value], other: &[Value]) {
    let names = |objects: &[Value]| objects.iter().map(name).collect::<Vec<_>>();
    assert_eq!(names(one), names(other));
    for (one, other) in one.iter().zip(other) {
        assert_eq!(one, other, "{}", name(one));
    }
}

fn shipped(files: &[&str]) -> Vec<Value> {
    let mut objects: Vec<_> = files
        .iter()
        .flat_map(|file| parse_documents(&read_file(file)))
        .collect();
    objects.sort_by_key(name);
    // Two files contain the repo-server: deploy/deploy_policy.yaml adds to the sidecar of deploy_cmp.yaml.
    let is_repo_server = |object: &&mut Value| object["metadata"]["name"] == "argocd-repo-server";
    if let [sidecar, policy] = &mut objects.iter_mut().filter(is_repo_server).collect::<Vec<_>>()[..] {
        let [sidecar, policy] = [sidecar, policy].map(|deployment| &mut deployment["spec"]["template"]["spec"]);
        for list in ["/containers/0/env", "/containers/0/volumeMounts", "/volumes"] {
            let more = policy.pointer_mut(list).and_then(Value::as_array_mut).expect("a list");
            let all = sidecar.pointer_mut(list).and_then(Value::as_array_mut).expect("a list");
            all.append(more);
        }
        objects.dedup_by_key(|object| name(object));
    }
    objects
}

/// Returns the printed objects without the annotations for Argo CD and Flux, which the files lack.
fn as_shipped(flags: &str) -> Vec<Value> {
    let mut objects = objects(&printed(flags));
    for object in &mut objects {
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
            continue;
        };
        annotations.retain(|name, _| {
            name != "argocd.argoproj.io/sync-options" && !name.starts_with("kustomize.toolkit.fluxcd.io/")
        });
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    objects
}

const PLUGIN: &str = "cm_plugin.yaml deploy/argocd_cm.yaml deploy_cmp.yaml deploy/plugin_sources.yaml";
const POLICY: &str = "deploy/policy_cm.yaml deploy/deploy_policy.yaml";
const CONTROLLER: &str = "deploy/deploy_controller.yaml deploy/admission_policy.yaml deploy/holds.yaml";
const PULL: &str = "deploy/report_crd.yaml deploy/deploy_pull.yaml deploy/deploy_report.yaml";
const AGENT: &str = "deploy/gitopscluster_crd.yaml deploy/deploy_gitopscluster.yaml deploy/deploy_argocd_agent.yaml \
                     deploy/deploy_principal.yaml deploy/principal_admission.yaml deploy/redis_proxy.yaml";

/// Returns the files in these lists.
fn files<'l>(lists: &[&'l str]) -> Vec<&'l str> {
    lists.iter().flat_map(|list| list.split_whitespace()).collect()
}

#[test]
fn default_prints_the_quick_start_and_the_controller() {
    let files = files(&["proj.yaml", PLUGIN, POLICY, CONTROLLER, "deploy/agent_admission.yaml"]);
    assert_same(&as_shipped(""), &shipped(&files));
    assert_eq!(
        printed(""),
        printed("--features agent-admission,controller,project,plugin -o yaml"),
        "the order of the objects"
    );
    assert_same(&as_shipped("-o json"), &shipped(&files));
}

#[test]
fn each_feature_prints_its_files() {
    let sets = "deploy/appset_placement.yaml deploy/argocd_rbac.yaml deploy/argocd_actions.yaml";
    for (flags, lists) in [
        ("--features project", &["proj.yaml"][..]),
        ("--features plugin", &[PLUGIN, POLICY]),
        ("--features plugin --no-policy", &[PLUGIN]),
        ("--features ui", &["deploy/argocd_cm.yaml deploy/deploy_ui.yaml"]),
        ("--features agent-admission", &["deploy/agent_admission.yaml"]),
        ("--features applicationset,argocd-rbac", &[sets]),
        ("--features controller", &[CONTROLLER]),
    ] {
        assert_same(&as_shipped(flags), &shipped(&files(lists)));
    }
    // The Deployment of the controller contains the settings.
    for (flags, lists) in [
        ("--features pull", &[CONTROLLER, PULL][..]),
        (
            "--features argocd-addon",
            &[CONTROLLER, PULL, "deploy/argocd_addon.yaml"],
        ),
        ("--features argocd-agent", &[CONTROLLER, AGENT]),
    ] {
        let mut printed = as_shipped(flags);
        let is_controller = |object: &&mut Value| {
            object["metadata"]["name"] == "argocd-ocm-cmp-controller" && object["kind"] == "Deployment"
        };
        for deployment in printed.iter_mut().filter(is_controller) {
            let env = &mut deployment["spec"]["template"]["spec"]["containers"][0]["env"];
            env.as_array_mut()
                .expect("env")
                .retain(|entry| entry["name"].as_str().is_some_and(|name| name.starts_with("POD_")));
        }
        // The name of the template contains a hash of its content.
        if let Some(template) = printed.iter_mut().find(|object| object["kind"] == "AddOnTemplate") {
            let name = std::mem::replace(&mut template["metadata"]["name"], json!("argocd-addon"));
            let management = printed
                .iter_mut()
                .find(|object| object["kind"] == "ClusterManagementAddOn");
            let default = &mut management.expect("it")["spec"]["supportedConfigs"][0]["defaultConfig"]["name"];
            assert_eq!(std::mem::replace(default, json!("argocd-addon")), name);
        }
        assert_same(&printed, &shipped(&files(lists)));
    }
}

/// Commands that are refused, and their errors.
const REFUSED: &str = r#"
$ install --print (exit code 1)
error: --image is not set, and no release is published yet: build and push an image with cargo xtask release --to oci://REGISTRY, then pass --image REGISTRY/argocd-ocm-cmp:VERSION
$ install --print --features push (exit code 2)
error: invalid value 'push' for '--features <NAMES>'
  [possible values: FEATURES]
$ install --print --namespace Argo_CD (exit code 2)
error: invalid value 'Argo_CD' for '--namespace <NAME>': "Argo_CD" is not a namespace name: use at most 63 lower-case letters, digits and '-', beginning and ending with a letter or digit
$ install --print --replicas 0 (exit code 2)
error: invalid value '0' for '--replicas <NUMBER>': 0 is not in 1..=100
$ install --print --image= (exit code 2)
error: a value is required for '--image <IMAGE>' but none was supplied
$ install --print --image=Registry/x (exit code 2)
error: invalid value 'Registry/x' for '--image <IMAGE>': "Registry/x" is not an image: write it like registry.example.com/argocd-ocm-cmp:1.2.3
$ install --print --argocd-image=x:{y (exit code 2)
error: invalid value 'x:{y' for '--argocd-image <IMAGE>': "x:{y" is not an image: write it like registry.example.com/argocd-ocm-cmp:1.2.3
$ install --print --agent-image=x: (exit code 2)
error: invalid value 'x:' for '--agent-image <IMAGE>': "x:" is not an image: write it like registry.example.com/argocd-ocm-cmp:1.2.3
$ install --additions-only (exit code 2)
error: the following required arguments were not provided:
  --features <NAMES>
$ install --additions-only --features plugin --policy policy.yaml (exit code 2)
error: the argument '--additions-only' cannot be used with '--policy <FILE>'
$ install --print --no-policy --policy policy.yaml (exit code 2)
error: the argument '--no-policy' cannot be used with '--policy <FILE>'
$ install --print --no-policy --policy-configmap theirs (exit code 2)
error: the argument '--no-policy' cannot be used with '--policy-configmap <NAME>'
$ install --print --policy-configmap theirs --policy policy.yaml (exit code 2)
error: the argument '--policy-configmap <NAME>' cannot be used with '--policy <FILE>'
$ install --print --policy-configmap Theirs (exit code 2)
error: invalid value 'Theirs' for '--policy-configmap <NAME>': not a Kubernetes name: use lower-case letters, digits, '-' and '.'
$ install --print --no-policy --features plugin,policy (exit code 1)
error: --no-policy and the feature policy contradict each other: leave one of the two out
$ install --print --policy /nowhere/policy.yaml (exit code 1)
error: /nowhere/policy.yaml: the policy cannot be read: no such file or directory
$ install --print --kubeconfig x (exit code 2)
error: the argument '--print' cannot be used with '--kubeconfig <FILE>'
$ install -o json (exit code 2)
error: the following required arguments were not provided:
  --print
$ install --kubeconfig /nowhere/kubeconfig (exit code 1)
error: no hub: /nowhere/kubeconfig: no such file or directory: set --kubeconfig or --context
$ uninstall --kubeconfig /nowhere/kubeconfig (exit code 1)
error: no hub: /nowhere/kubeconfig: no such file or directory: set --kubeconfig or --context
$ uninstall --features plugin (exit code 2)
error: unexpected argument '--features' found
"#;

#[test]
fn invalid_arguments_are_one_line_errors() {
    let mut errors = "\n".to_owned();
    let commands = REFUSED
        .lines()
        .filter_map(|line| line.strip_prefix("$ ")?.split_once(" ("));
    for (words, _) in commands {
        let output = program_with(Path::new("/"), words.split(' '))
            .output()
            .expect("the program runs");
        assert!(output.stdout.is_empty() && !output.status.success(), "{words}");
        let code = output.status.code().expect("an exit code");
        let printed = String::from_utf8(output.stderr).expect("text");
        // clap adds the usage and a hint.
        let error = printed
            .trim_end()
            .trim_end_matches("\n\nFor more information, try '--help'.");
        let (error, _) = error.split_once("\n\nUsage: ").unwrap_or((error, ""));
        writeln!(errors, "$ {words} (exit code {code})\n{error}").expect("writing to a String never fails");
    }
    let features: Vec<_> = Feature::all().iter().map(|feature| feature.name()).collect();
    let errors = errors.replace(&features.join(", "), "FEATURES");
    assert_eq!(errors.replace(env!("CARGO_PKG_VERSION"), "VERSION"), REFUSED);
}

#[test]
fn documentation_lists_every_feature() {
    let docs = read_file("docs/install.md");
    let rows: Vec<_> = docs.lines().filter(|line| line.starts_with("| `")).collect();
    for feature in Feature::all() {
        let start = format!("| `{}` |", feature.name());
        assert!(rows.iter().any(|row| row.starts_with(&start)), "{start}");
    }
}

/// Otherwise the API server creates an object with only our fields, if Argo CD is removed at the same time.
#[test]
fn uninstall_changes_no_object_but_the_one_that_it_has_read() {
    let mut hub = fake_hub::objects();
    let config_map = hub
        .get_mut("/api/v1/namespaces/argocd/configmaps/argocd-cm")
        .expect("a ConfigMap");
    config_map["metadata"]["uid"] = json!("u1");
    config_map["metadata"]["managedFields"] = json!([{"manager": "argocd-ocm-cmp", "operation": "Apply"}]);
    let hub = FakeHub::start(hub);
    let printed = hub.run("uninstall --additions-only");
    let changes = hub.changes();
    assert!(
        printed.contains("argocd-cm restored") && changes.len() == 1 && changes[0].contains(r#""uid":"u1""#),
        "{printed}{changes:?}"
    );
}
