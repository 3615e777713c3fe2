//! Checks the Helm chart with the real Helm: it renders the objects that `install --print` prints.
//!
//! If Helm cannot be built (no Go …), the tests fail and name what is missing.

use crate::install::{assert_same, name, objects, printed};
use crate::shipped_files::{read_file, root};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;
use testbed::{Part, Parts};

fn helm() -> &'static Path {
    static PARTS: OnceLock<Parts> = OnceLock::new();
    PARTS
        .get_or_init(|| Parts::ensure().expect("Helm can be built"))
        .program(Part::Helm)
}

fn run(words: &[&str]) -> Output {
    let home = TempDir::new().expect("a scratch folder");
    let mut command = Command::new(helm());
    command.env_clear().env("HOME", home.path()).current_dir(root());
    command.args(words).output().expect("Helm runs")
}

fn stdout_of(words: &[&str]) -> String {
    let output = run(words);
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Renders the chart with these values, without what has no counterpart in the output of `install`: the test of the release, and labels
/// that only charts have.
fn rendered(chart: &str, namespace: &str, values: &[&str]) -> Vec<Value> {
    let mut words = vec!["template", "ours", chart, "--namespace", namespace];
    words.extend(values.iter().flat_map(|value| ["--set", value]));
    let mut objects = objects(&stdout_of(&words));
    objects.retain(|object| object["metadata"]["annotations"]["helm.sh/hook"] != "test");
    for object in &mut objects {
        remove_labels(object);
        if outlives_the_release(object) {
            let annotations = object["metadata"]["annotations"].as_object_mut();
            let annotations = annotations.expect("an annotation, or Helm deletes it");
            assert_eq!(annotations.remove("helm.sh/resource-policy"), Some(json!("keep")));
        }
    }
    objects
}

/// Returns true if Helm must not delete the object: others have objects of a CRD, or Applications of the AppProject, a user may have
/// changed the policy, Pods of Argo CD mount a ConfigMap, and clusters would lose their add-on.
fn outlives_the_release(object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let mounted = ["argocd-ocm-cmp", "argocd-ocm-cmp-policy", "argocd-ocm-cmp-ui"];
    object["kind"] == "CustomResourceDefinition"
        || object["kind"] == "AppProject"
        || object["kind"] == "ConfigMap" && mounted.iter().any(|name| object["metadata"]["name"] == *name)
        || api_version.starts_with("addon.open-cluster-management.io/")
}

/// The labels that only charts have.
const LABELS: [&str; 5] = [
    "app.kubernetes.io/component",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
];

/// Removes these labels, and those that the chart adds to objects that have none.
fn remove_labels(object: &mut Value) {
    let added = [
        ("app.kubernetes.io/name", "argocd-ocm-cmp"),
        ("app.kubernetes.io/part-of", "argocd"),
    ];
    for pointer in ["/metadata", "/spec/template/metadata"] {
        let Some(Value::Object(metadata)) = object.pointer_mut(pointer) else {
            continue;
        };
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            labels.retain(|name, value| {
                !LABELS.contains(&&**name) && !added.iter().any(|label| label.0 == name && label.1 == value)
            });
            if labels.is_empty() {
                metadata.remove("labels");
            }
        }
    }
}

/// Returns what `install --print` prints with these flags, without labels that the chart sets differently.
fn installed(flags: &str) -> Vec<Value> {
    let mut objects = objects(&printed(flags));
    objects.iter_mut().for_each(remove_labels);
    objects
}

const ADDITIONS: &str = "additions=true";

#[test]
fn chart_renders_the_same_as_install_print() {
    for (flags, values) in [
        ("", ""),
        ("-n gitops", ""),
        ("--no-policy", "policy.enabled=false"),
        ("--policy-configmap theirs", "policy.existingConfigMap=theirs"),
        ("--features plugin -n gitops", "features={plugin}"),
        ("--features ui,policy,project", "features={ui,policy,project}"),
        ("--features pull -n gitops", "features={pull}"),
        ("--features live", "features={live}"),
        // As with --reuse-values from a chart without this value.
        (
            "--features argocd-agent",
            "features={argocd-agent} principal.limits=null",
        ),
        ("--features argocd-addon", "features={argocd-addon}"),
        ("--features cluster-secrets", "features={cluster-secrets}"),
        ("--features gitopscluster,report", "features={gitopscluster,report}"),
        (
            "--features pull --pull-dialect acm --replicas 3",
            "features={pull} pull.dialect=acm controller.replicas=3",
        ),
        (
            "--features plugin,controller,ui --image-pull-secrets a,b",
            "features={plugin,controller,ui} imagePullSecrets[0].name=a imagePullSecrets[1].name=b",
        ),
        (
            "-n openshift-gitops --image example.com/a/b:v2 --argocd-image example.com/argocd:v3 --agent-image example.com/agent:v4 \
             --features plugin,project,policy,applicationset,argocd-rbac,pull,argocd-addon,gitopscluster,argocd-agent,live",
            "features={plugin,project,policy,applicationset,argocd-rbac,pull,argocd-addon,gitopscluster,argocd-agent,live} \
             image.repository=example.com/a/b image.tag=v2 argocdImage=example.com/argocd:v3 agentImage=example.com/agent:v4",
        ),
    ] {
        let values: Vec<_> = values.split_whitespace().chain([ADDITIONS]).collect();
        let mut words = flags.split_whitespace().skip_while(|word| *word != "-n").skip(1);
        let namespace = words.next().unwrap_or("argocd");
        assert_same(&rendered("chart", namespace, &values), &installed(flags));
    }
}

#[test]
fn additions_to_argo_cd_are_rendered_only_on_request() {
    let features = "features={plugin,policy,ui,controller}";
    let all = rendered("chart", "argocd", &[features, ADDITIONS]);
    let without = rendered("chart", "argocd", &[features]);
    let additions = installed("--features plugin,policy,ui,controller --additions-only");
    assert_eq!(additions.len(), 3);
    let mut together = [without, additions].concat();
    together.sort_by_key(name);
    assert_same(&together, &all);
}

/// The Job removes the fields of features that the release no longer has.
#[test]
fn release_without_additions_has_the_jobs_too() {
    for (values, features) in [
        ("features={controller}", "controller"),
        // The hub's own principal may have another name or not exist yet: the program would add fields for ours.
        (
            "features={argocd-agent},principal.enabled=false",
            "controller,gitopscluster",
        ),
    ] {
        let values = format!("additionsJob.enabled=true,{values}");
        let objects = objects(&stdout_of(&["template", "ours", "chart", "--set", &values]));
        let jobs: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "Job").collect();
        assert_eq!(jobs.len(), 2);
        let hooks = &jobs[0]["metadata"]["annotations"]["helm.sh/hook"];
        assert_eq!(hooks, "post-install,post-upgrade,post-rollback");
        let command = jobs[0]["spec"]["template"]["spec"]["containers"][0]["command"].to_string();
        let expected = format!(r#""--additions-only","--namespace","default","--features","{features}","#);
        assert!(command.contains(&expected), "{command}");
    }
}

#[test]
fn packaged_chart_renders_the_same_without_warnings() {
    let folder = TempDir::new().expect("a scratch folder");
    let path = folder.path().to_str().expect("a plain path");
    stdout_of(&["package", "chart", "--destination", path]);
    let package = format!("{path}/argocd-ocm-cmp-{}.tgz", env!("CARGO_PKG_VERSION"));
    let all = &["features={plugin,policy,ui,argocd-addon,argocd-agent}", ADDITIONS];
    assert_same(&rendered(&package, "argocd", all), &rendered("chart", "argocd", all));
    let output = run(&["template", "ours", &package]);
    assert!(output.stderr.is_empty(), "{output:?}");
    // Helm keeps a release in a Secret, which is limited to 1 MiB.
    assert!(fs::metadata(&package).expect("a file").len() < 1 << 19);
}

#[test]
fn chart_is_linted_and_refuses_unknown_values() {
    stdout_of(&["lint", "--strict", "chart"]);
    let unknown = "feature={plugin} features={push} image=x image.pullPolicy=Sometimes image.digest=sha256:1 policy=x policy.file=x \
                   policy.existingConfigMap=A/b pull.dialect=other imagePullSecrets={registry} controller.replicas=0 controller.env={A} \
                   controller.resources.request.cpu=1 controller.podLabels.a.b=c metrics.serviceMonitor.interval=soon \
                   networkPolicy.from=x additionsJob.deployments={}";
    for value in unknown.split_whitespace() {
        let output = run(&["template", "ours", "chart", "--set", value]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains("values don't meet the specifications"),
            "{value}: {stderr}"
        );
    }
}

#[test]
fn refuses_values_that_contradict_each_other() {
    let contradictions = "\
policy.text=x,policy.existingConfigMap=y: policy.text and policy.existingConfigMap exclude each other
policy.enabled=false,policy.text=x: policy.enabled=false and a policy contradict each other
policy.enabled=false,features={plugin,policy}: policy.enabled=false and a policy contradict each other
additions=true,additionsJob.enabled=true: additionsJob.enabled and additions exclude each other
controller.env[0].name=ARGOCD_OCM_CMP_CONTROLLERS,features={pull}: controller.env sets ARGOCD_OCM_CMP_CONTROLLERS, which other values set";
    for line in contradictions.lines() {
        let (values, expected) = line.split_once(": ").expect("values and an error");
        let output = run(&["template", "ours", "chart", "--set", values]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains(expected),
            "{values}: {stderr}"
        );
    }
}

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn values_configure_the_pods() {
    let values = json!({
        "additions": true,
        "features": ["plugin", "controller"],
        "image": {"digest": DIGEST},
        "imagePullSecrets": [{"name": "registry"}],
        "controller": {
            "resources": {"limits": {"memory": "1Gi"}},
            "affinity": {"nodeAffinity": {}},
            "priorityClassName": "high",
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            "env": [{"name": "ARGOCD_OCM_CMP_LOG_FORMAT", "value": "json"}],
            "podAnnotations": {"example.com/a": "1"},
            "serviceAccount": {"annotations": {"example.com/c": "3"}},
            "flowSchemas": false,
        },
        "sidecar": {"resources": {"requests": {"cpu": "1"}}},
        "policy": {"text": "kind: Policy\n"},
    });
    let objects = rendered_with(&values);
    let deployments: Vec<_> = objects.iter().filter(|object| object["kind"] == "Deployment").collect();
    let [controller, repo_server] = deployments[..] else {
        panic!("{deployments:?}");
    };
    let pod = &controller["spec"]["template"]["spec"];
    let settings = &values["controller"];
    assert_eq!(pod["containers"][0]["resources"], settings["resources"]);
    for part in "affinity priorityClassName topologySpreadConstraints".split(' ') {
        assert_eq!(pod[part], settings[part], "{part}");
    }
    let container = &pod["containers"][0];
    let image = container["image"].as_str().expect("an image");
    assert!(
        image.ends_with(&format!(":{}@{DIGEST}", env!("CARGO_PKG_VERSION"))),
        "{image}"
    );
    let env = container["env"].as_array().expect("a list");
    assert!(env.contains(&settings["env"][0]), "{env:?}");
    let metadata = &controller["spec"]["template"]["metadata"];
    assert_eq!(metadata["annotations"], settings["podAnnotations"]);
    let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
    let account = of_kind("ServiceAccount").expect("an account");
    assert_eq!(
        account["metadata"]["annotations"],
        settings["serviceAccount"]["annotations"]
    );
    assert_eq!(of_kind("FlowSchema"), None);
    let repo_server = &repo_server["spec"]["template"]["spec"];
    assert_eq!(
        repo_server["containers"][0]["resources"],
        values["sidecar"]["resources"]
    );
    assert_eq!(repo_server["imagePullSecrets"], values["imagePullSecrets"]);
    let is_policy = |object: &&Value| object["metadata"]["name"] == "argocd-ocm-cmp-policy";
    let policy = objects.iter().find(is_policy).expect("a policy");
    assert_eq!(policy["data"]["policy.yaml"], "kind: Policy\n");
}

/// A hub may refuse Pods without some labels or limits, or load balancers with a public address, and have nodes for others.
#[test]
fn values_configure_every_pod_and_the_service_of_the_principal() {
    let resources = |cpu: &str| json!({"limits": {"cpu": cpu}});
    let values = json!({
        "features": ["plugin", "argocd-agent", "live"],
        "image": {"pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
        "controller": {
            "resources": resources("1"),
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "x", "operator": "Exists"}],
            "podLabels": {"example.com/b": "2", "app.kubernetes.io/name": "other"},
        },
        "live": {"resources": resources("2")},
        "principal": {
            "resources": resources("3"),
            "service": {"annotations": {"internal": "true"}, "spec": {"type": "NodePort"}},
        },
        "additionsJob": {"enabled": true, "resources": resources("4"), "podAnnotations": {"linkerd.io/inject": "disabled"}},
    });
    let mut limits = Vec::new();
    for object in rendered_with(&values) {
        let template = match object["kind"].as_str() {
            Some("Deployment" | "Job") => &object["spec"]["template"],
            Some("Pod") => &object,
            Some("Service") if object["metadata"]["name"] == "argocd-agent-principal" => {
                assert_eq!(object["metadata"]["annotations"], json!({"internal": "true"}));
                assert_eq!(object["spec"]["type"], "NodePort");
                assert_eq!(object["spec"]["ports"][0]["port"], 443);
                continue;
            }
            _ => continue,
        };
        let (labels, pod) = (&template["metadata"]["labels"], &template["spec"]);
        let is_injected = template["metadata"]["annotations"]["linkerd.io/inject"] != "disabled";
        assert_eq!(is_injected, object["kind"] == "Deployment", "{}", name(&object));
        assert_eq!(labels["example.com/b"], "2", "{}", name(&object));
        let selector = object["spec"]["selector"]["matchLabels"].as_object();
        for (name, value) in selector.into_iter().flatten() {
            assert_eq!(&labels[name], value, "the Deployment selects its Pods");
        }
        assert_eq!(
            pod["nodeSelector"],
            json!({"a": "b", "kubernetes.io/os": "linux"}),
            "{}",
            name(&object)
        );
        assert_eq!(
            pod["tolerations"],
            values["controller"]["tolerations"],
            "{}",
            name(&object)
        );
        assert_eq!(pod["imagePullSecrets"], values["imagePullSecrets"], "{}", name(&object));
        let container = &pod["containers"][0];
        assert_eq!(container["imagePullPolicy"], "Always", "{}", name(&object));
        limits.push(
            container["resources"]["limits"]["cpu"]
                .as_str()
                .expect("a limit")
                .to_owned(),
        );
    }
    limits.sort();
    assert_eq!(limits, ["1", "2", "3", "4", "4", "4"]);
}

#[test]
fn values_add_objects_for_the_metrics() {
    let values = json!({
        "metrics": {
            "serviceMonitor": {"enabled": true, "labels": {"release": "stack"}, "interval": "15s"},
            "prometheusRule": {"enabled": true, "labels": {"release": "stack"}},
        },
        "networkPolicy": {"enabled": true, "from": [{"namespaceSelector": {}}]},
    });
    let objects = rendered_with(&values);
    let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == kind).expect(kind);
    for kind in ["ServiceMonitor", "PrometheusRule"] {
        assert_eq!(of_kind(kind)["metadata"]["labels"]["release"], "stack", "{kind}");
    }
    assert_eq!(of_kind("ServiceMonitor")["spec"]["endpoints"][0]["interval"], "15s");
    let policy = &of_kind("NetworkPolicy")["spec"];
    assert_eq!(policy["ingress"][0]["from"], values["networkPolicy"]["from"]);
    let port = &policy["ingress"][0]["ports"][0]["port"];
    let ports = &of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"];
    let ports = ports.as_array().expect("ports");
    assert!(ports.iter().any(|entry| entry["name"] == *port), "{ports:?}");
}

/// Renders the chart with these values.
fn rendered_with(values: &Value) -> Vec<Value> {
    let folder = TempDir::new().expect("a scratch folder");
    let file = folder.path().join("values.yaml");
    fs::write(&file, values.to_string()).expect("a file");
    let file = file.to_str().expect("a plain path");
    let words = ["template", "ours", "chart", "-n", "argocd", "--values", file];
    objects(&stdout_of(&words))
}

#[test]
fn objects_have_the_recommended_labels() {
    let features = "features={plugin,policy,project,pull,argocd-addon,cluster-secrets,report,argocd-agent,ui}";
    let set = format!("{features},additionsJob.enabled=true");
    for object in objects(&stdout_of(&["template", "ours", "chart", "--set", &set])) {
        let labels = &object["metadata"]["labels"];
        let names = ["app.kubernetes.io/name", "app.kubernetes.io/part-of"];
        for label in LABELS.iter().chain(&names) {
            assert!(labels[label].is_string(), "{} has no label {label}", name(&object));
        }
        assert_eq!(labels["app.kubernetes.io/instance"], "ours");
    }
}

#[test]
fn argo_cds_own_objects_get_no_labels() {
    let only = ["--show-only", "templates/additions.yaml"];
    let additions = objects(&stdout_of(
        &[&["template", "ours", "chart", "--set", ADDITIONS], &only[..]].concat(),
    ));
    assert!(!additions.is_empty());
    for object in additions {
        assert!(
            !object["metadata"].to_string().contains("helm.sh/chart"),
            "{}",
            name(&object)
        );
    }
}

#[test]
fn chart_version_is_the_programs_version() {
    let chart = &objects(&read_file("chart/Chart.yaml"))[0];
    for part in ["version", "appVersion"] {
        assert_eq!(chart[part], env!("CARGO_PKG_VERSION"), "{part}");
    }
}
