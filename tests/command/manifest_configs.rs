//! Tests of the size of works: how much configuration they carry beside their objects.

use crate::program::{folder, program_with};
use serde_json::{Value, json};
use std::path::Path;

/// The objects of the works of `cargo bench --bench controller`.
const EVERYDAY: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/objects/everyday.yaml"));

/// Returns the works of a folder for one cluster, as the program prints them.
fn generate(folder: &Path, more: &[&str]) -> Vec<Value> {
    let words = ["generate", "--name=shop", "--namespace=shop", "--output=json"];
    let output = program_with(folder, words.into_iter().chain(more.iter().copied())).output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("text");
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Returns the works of a folder with these manifests.
fn works(manifests: &str, more: &[&str]) -> Vec<Value> {
    generate(folder(&[("all.yaml", manifests)]).path(), more)
}

fn configs(work: &Value) -> &Value {
    match &work["spec"]["manifestConfigs"] {
        Value::Null => &work["spec"]["manifestWorkTemplate"]["manifestConfigs"],
        configs => configs,
    }
}

fn size(works: &[Value]) -> usize {
    works.iter().map(|work| configs(work).to_string().len()).sum()
}

/// Returns manifests separated as YAML documents.
fn documents(objects: &[Value]) -> String {
    let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}

fn job(name: &str, annotations: &Value) -> Value {
    let pod =
        json!({"restartPolicy": "Never", "containers": [{"name": name, "image": "alpine", "command": ["sleep", "2"]}]});
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": annotations},
        "spec": {"template": {"spec": pod}},
    })
}

fn tier(name: &str, wave: &str) -> [Value; 2] {
    let metadata = json!({"name": name, "annotations": {"argocd.argoproj.io/sync-wave": wave}});
    let labels = json!({"tier": name});
    let pod = json!({"containers": [{"name": "main", "image": "nginx"}]});
    [
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata,
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        }),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": labels, "ports": [{"port": 80}]}}),
    ]
}

#[test]
fn works_carry_their_objects_and_little_else() {
    let guestbook = generate(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("guestbook"),
        &["--cluster=eu1"],
    );
    let hook = |kind: &str, wave: &str| json!({"argocd.argoproj.io/hook": kind, "argocd.argoproj.io/sync-wave": wave});
    let mut waves = vec![
        job("upgrade-schema", &hook("PreSync", "0")),
        job("page-up", &hook("Sync", "1")),
        job("page-down", &hook("Sync", "3")),
    ];
    waves.extend(tier("backend", "0").into_iter().chain(tier("frontend", "2")));
    let helm = |hook: &str, weight: &str| json!({"helm.sh/hook": hook, "helm.sh/hook-weight": weight});
    let mut hooks = vec![
        job("upgrade-schema", &helm("pre-install", "-2")),
        job("page-up", &helm("pre-install", "-1")),
        job("page-down", &helm("post-install", "0")),
    ];
    hooks.extend(tier("frontend", "0"));
    for (name, works, max) in [
        ("guestbook", guestbook, 1200),
        ("everyday objects", works(EVERYDAY, &["--cluster=eu1"]), 2600),
        ("sync waves", works(&documents(&waves), &["--cluster=eu1"]), 5600),
        ("Helm hooks", works(&documents(&hooks), &["--cluster=eu1"]), 4600),
    ] {
        let size = size(&works);
        assert!(size <= max, "{name}: {size} bytes: {works:#?}");
    }
}

/// The agent takes the condition rules of the first entry that has some. Without `Complete`, it would create a Job again that its time to
/// live has deleted.
#[test]
fn hook_that_runs_completes_its_work_whatever_its_annotations() {
    let annotations = json!({
        "argocd.argoproj.io/hook": "PreSync",
        "argocd.argoproj.io/ignore-healthcheck": "true",
        "argocd-ocm-cmp.github.io/update-strategy": "Update",
    });
    let hook = job("migrate", &annotations).to_string();
    let progressive = [
        "--placement=fleet/all",
        "--rollout=Progressive",
        "--rollout-max-concurrency=1",
    ];
    for target in [&["--cluster=eu1"][..], &progressive[..1], &progressive] {
        let works = works(&hook, target);
        let entries = configs(&works[0]).as_array().expect("a list");
        let mut rules = entries.iter().filter_map(|entry| entry["conditionRules"].as_array());
        let conditions: Vec<&Value> = rules
            .next()
            .expect("rules")
            .iter()
            .map(|rule| &rule["condition"])
            .collect();
        assert!(conditions.contains(&&json!("Complete")), "{target:?}: {entries:#?}");
        let is_constant =
            |rule: &Value| rule["celExpressions"] == json!(["false"]) || rule["celExpressions"] == json!(["true"]);
        assert!(
            !entries.iter().any(|entry| entry["conditionRules"]
                .as_array()
                .is_some_and(|rules| rules.iter().any(is_constant))),
            "{entries:#?}"
        );
    }
}

/// The hub evaluates these kinds, so a change of a verdict or a message changes no work.
#[test]
fn works_for_clusters_carry_no_rules_of_the_table() {
    let works = works(EVERYDAY, &["--cluster=eu1"]);
    let expected: Vec<Value> = ocm::verdicts::kinds()
        .iter()
        .filter(|verdicts| ["Deployment", "Ingress", "PodDisruptionBudget"].contains(&verdicts.kind))
        .filter(|verdicts| verdicts.group != "extensions")
        .map(|verdicts| {
            verdicts
                .values
                .iter()
                .map(|(name, path)| json!({"name": name, "path": path}))
                .collect()
        })
        .collect();
    let configs = configs(&works[0]).as_array().expect("a list");
    let paths = configs.iter().filter(|config| !config["feedbackRules"].is_null());
    let paths: Vec<&Value> = paths.map(|config| &config["feedbackRules"][0]["jsonPaths"]).collect();
    assert_eq!(paths.len(), expected.len(), "{configs:#?}");
    assert!(expected.iter().all(|values| paths.contains(&values)), "{paths:#?}");
    assert!(
        configs.iter().all(|config| config["conditionRules"].is_null()),
        "{configs:#?}"
    );
}

#[test]
fn work_grows_linearly_with_the_objects_of_a_kind() {
    let service = |at: usize| {
        let annotations = json!({
            "argocd-ocm-cmp.github.io/update-strategy": "Update", "argocd.argoproj.io/sync-wave": "-1",
        });
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("service-{at:03}"), "annotations": annotations},
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        })
    };
    let late = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}});
    let placement: &[&str] = &["--placement=argocd/all"];
    for target in [&["--cluster=eu1"][..], placement] {
        let weight = |count: usize| -> usize {
            let objects: Vec<Value> = (0..count).map(service).chain([late.clone()]).collect();
            let works = works(&documents(&objects), target);
            works.iter().map(|work| work.to_string().len()).sum()
        };
        let [one, two, three] = [100, 200, 300].map(weight);
        assert!((three - two).abs_diff(two - one) <= 100, "{one}, {two}, {three}");
    }
}

#[test]
fn works_fit_into_etcd_with_their_status() {
    let objects: Vec<Value> = (0..2400)
        .map(|at| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{at}")}}))
        .collect();
    let manifests = documents(&objects);
    let counts: Vec<usize> = works(&manifests, &["--cluster=eu1"])
        .iter()
        .map(|work| work["spec"]["workload"]["manifests"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(counts.iter().sum::<usize>(), 2400);
    assert!(counts.iter().all(|&count| count <= 1000), "{counts:?}");

    let folder = folder(&[("all.yaml", manifests)]);
    let rollout = [
        "--placement=argocd/all",
        "--rollout=Progressive",
        "--rollout-max-concurrency=1",
    ];
    let words = ["generate", "--name=shop", "--namespace=shop"]
        .into_iter()
        .chain(rollout);
    let output = program_with(folder.path(), words).output().expect("the program runs");
    let refused = String::from_utf8(output.stderr).expect("text");
    assert!(refused.starts_with("error: a work of 2400 objects has "), "{refused}");
    assert!(refused.contains("etcd accepts at most 1500000"), "{refused}");
    assert!(output.stdout.is_empty());
}

#[test]
fn server_side_apply_names_every_default_of_the_crd() {
    for (setting, options) in [
        ("--server-side-apply=false", "PruneLast=true"),
        ("--server-side-apply", "PruneLast=true,ServerSideApply=true"),
    ] {
        for work in works(EVERYDAY, &["--cluster=eu1", setting]) {
            assert_eq!(
                work["metadata"]["annotations"]["argocd.argoproj.io/sync-options"],
                options
            );
            for config in configs(&work).as_array().expect("a list") {
                let is_server_side = options != "PruneLast=true";
                assert_eq!(config["feedbackScrapeType"] == "Poll", is_server_side, "{config:#}");
                let manager = &config["updateStrategy"]["serverSideApply"]["fieldManager"];
                assert_eq!(manager == "work-agent", is_server_side, "{config:#}");
            }
        }
    }
}
