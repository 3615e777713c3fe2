//! Tests of `install` from several starting points: from each, the features are added one by one, in both orders, so that each comes
//! before and after each other one. What was there stays, a second run changes nothing, and `uninstall` gives back the starting point.

use super::{Installation, installation, read_shipped};
use crate::documents::documents;
use anyhow::{Context, Result, ensure};
use argocd_ocm_cmp::install::{Feature, MANAGER, with_implied};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use testbed::{ObjectRef, Parts};

const NAMESPACE: &str = "matrix";

/// The pods' container of the plugin.
const SIDECAR: &str = "argocd-ocm-cmp";

/// The kinds of Argo CD's own manifests that a starting point has.
const KINDS: [&str; 3] = ["ConfigMap", "Deployment", "StatefulSet"];

/// An object that was applied earlier: by server-side apply with our field manager, or by kubectl alone.
type Applied = (bool, Value);

/// An Argo CD on a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartingPoint {
    Core,
    Full,
    Operator,
    HandWrittenSidecar,
    InstalledByKubectl,
}

impl StartingPoint {
    /// Returns the objects of Argo CD.
    fn objects(self) -> Result<Vec<Value>> {
        let file = if self == Self::Core {
            "core-install.yaml"
        } else {
            "install.yaml"
        };
        let mut all = documents(&fs::read_to_string(Parts::ensure()?.argocd_manifests().join(file))?)?;
        all.retain(|object| KINDS.iter().any(|kind| object["kind"] == *kind));
        for object in &mut all {
            object["metadata"]["namespace"] = NAMESPACE.into();
            self.change(object);
            if self == Self::Operator && object["kind"] != "ConfigMap" {
                object["metadata"]["ownerReferences"] = json!([{
                    "apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "name": "cd", "uid": "",
                }]);
            }
        }
        Ok(all)
    }

    /// Returns the objects that kubectl has applied already, in order, and the features.
    fn installed(self) -> Result<(Vec<Applied>, BTreeSet<Feature>)> {
        let mut applied = Vec::new();
        if self != Self::InstalledByKubectl {
            return Ok((applied, BTreeSet::new()));
        }
        for (is_server_side, files) in [
            (
                false,
                &[
                    "cm_plugin.yaml",
                    "deploy/deploy_controller.yaml",
                    "deploy/report_crd.yaml",
                    "deploy/deploy_pull.yaml",
                    "deploy/deploy_report.yaml",
                ][..],
            ),
            (true, &["deploy/argocd_cm.yaml", "deploy_cmp.yaml"]),
        ] {
            for file in files {
                let text = read_shipped(file)?.replace("namespace: argocd\n", &format!("namespace: {NAMESPACE}\n"));
                let objects = documents(&text)?.into_iter();
                applied.extend(objects.map(|object| (is_server_side, object)));
            }
        }
        let mut features = with_implied([Feature::PLUGIN, Feature::PULL]);
        features.remove(&Feature::POLICY);
        Ok((applied, features))
    }

    /// Makes an object of Argo CD's own manifests one of this starting point.
    fn change(self, object: &mut Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(component) = name.strip_prefix("argocd-").filter(|_| object["kind"] != "ConfigMap") else {
            return;
        };
        let program = format!("/usr/local/bin/{name}");
        match self {
            Self::Operator => {
                object["metadata"]["name"] = format!("cd-{component}").into();
                object["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "argocd"});
                let main = &mut containers(object)[0];
                if main["args"][0] == program.as_str() {
                    main["command"] = json!(["uid_entrypoint.sh", name]);
                    main["args"] = json!(["--loglevel", "info"]);
                }
            }
            Self::HandWrittenSidecar if component == "repo-server" => {
                let image = super::IMAGE.trim_start_matches("--image=");
                let env = json!([{"name": "DEBUG", "value": "1"}]);
                let mounts = json!([{"name": "plugins", "mountPath": "/extra"}]);
                let ours = json!({"name": SIDECAR, "image": image, "env": env, "volumeMounts": mounts});
                let theirs = json!({"name": "their-plugin", "image": "example.com/plugin:1"});
                containers(object).extend([ours, theirs]);
            }
            _ => {}
        }
    }

    /// Returns the error for a feature that this Argo CD cannot have.
    fn refuses(self, feature: &str) -> Option<&'static str> {
        (self == Self::Core && ["ui", "live"].contains(&feature))
            .then_some("error: Namespace matrix: this Argo CD has no argocd-server: omit ui\n")
    }
}

fn containers(workload: &mut Value) -> &mut Vec<Value> {
    let containers = &mut workload["spec"]["template"]["spec"]["containers"];
    containers.as_array_mut().expect("containers")
}

fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Returns true if an object has all fields of another one.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            part.iter().all(|part| whole.iter().any(|item| contains(item, part)))
        }
        (_, Value::Null) => true,
        _ => whole == part,
    }
}

#[tokio::test]
async fn core_installation() -> Result<()> {
    check(StartingPoint::Core).await
}

#[tokio::test]
async fn full_installation() -> Result<()> {
    check(StartingPoint::Full).await
}

#[tokio::test]
async fn resource_of_an_operator() -> Result<()> {
    check(StartingPoint::Operator).await
}

#[tokio::test]
async fn sidecar_written_by_hand() -> Result<()> {
    check(StartingPoint::HandWrittenSidecar).await
}

#[tokio::test]
async fn installed_by_kubectl() -> Result<()> {
    check(StartingPoint::InstalledByKubectl).await
}

/// Adds the features one by one, in both orders, and checks each step.
async fn check(start: StartingPoint) -> Result<()> {
    let installation = installation().await?;
    let hub = &installation.hub;
    hub.create_namespace(NAMESPACE).await?;
    create(&installation, start).await?;
    let before = installation.all()?;
    let base = live(&installation, start)?;
    let order: Vec<Feature> = Feature::all().to_vec();
    for order in [order.clone(), order.into_iter().rev().collect()] {
        let (applied, mut on) = start.installed()?;
        for (is_server_side, object) in &applied {
            let server_side = ["apply", "--server-side", "--field-manager", MANAGER, "-f", "-"];
            let words = if *is_server_side {
                &server_side[..]
            } else {
                &["apply", "-f", "-"]
            };
            hub.kubectl_with_input(words, &object.to_string())?;
        }
        for feature in &order {
            check_step(&installation, start, *feature, &base, &mut on)
                .with_context(|| format!("{start:?}: {feature:?} after {on:?}"))?;
        }
        let names = order.into_iter().map(Feature::name);
        let names: Vec<_> = names.filter(|name| start.refuses(name).is_none()).collect();
        let at_once = installation.run_ok(&["install", "-n", NAMESPACE, "--features", &names.join(",")])?;
        // The Deployment's environment overrides this ConfigMap, whose list of controllers is that of the last run.
        let settings = "configmap/argocd-ocm-cmp-controller configured";
        let effective: Vec<_> = at_once.lines().filter(|line| *line != settings).collect();
        check_second_run(&effective.join("\n")).context("all at once differs from one by one")?;
        installation.run_ok(&["uninstall", "-n", NAMESPACE])?;
        installation
            .until(&before)
            .await
            .with_context(|| format!("{start:?}: after uninstall"))?;
    }
    let namespace = ObjectRef::namespace(NAMESPACE);
    hub.delete_and_wait(&namespace).await
}

/// Installs a feature, and checks what is there.
fn check_step(
    installation: &Installation,
    start: StartingPoint,
    feature: Feature,
    base: &[Value],
    on: &mut BTreeSet<Feature>,
) -> Result<()> {
    let words = ["install", "-n", NAMESPACE, "--features", feature.name()];
    if let Some(error) = start.refuses(feature.name()) {
        let earlier = live(installation, start)?;
        let printed = installation.run_err(&words)?;
        ensure!(printed.starts_with(error), "{printed}");
        ensure!(live(installation, start)? == earlier, "something was written");
        return Ok(());
    }
    installation.run_ok(&words)?;
    on.extend(with_implied([feature]));
    let objects = live(installation, start)?;
    for was in base {
        let same = objects
            .iter()
            .find(|object| name(object) == name(was))
            .context("it was deleted")?;
        for part in ["spec", "data"] {
            ensure!(
                contains(&same[part], &was[part]),
                "{} has lost fields: {:#}",
                name(was),
                same[part]
            );
        }
        ensure!(
            contains(&same["metadata"]["labels"], &was["metadata"]["labels"]),
            "{}",
            name(was)
        );
    }
    check_features(start, on, &objects)?;
    check_second_run(&installation.run_ok(&words)?)?;
    Ok(())
}

/// Checks that a second run has changed nothing.
fn check_second_run(lines: &str) -> Result<()> {
    const KEPT: [&str; 4] = [
        " kept: ",
        " left out: ",
        " still has no policy, ",
        ": the principal is left to its operator: ",
    ];
    let is_unchanged = |line: &str| {
        [" unchanged", " kept"].iter().any(|end| line.ends_with(end)) || KEPT.iter().any(|part| line.contains(part))
    };
    ensure!(lines.lines().all(is_unchanged), "the second run: {lines}");
    Ok(())
}

/// Checks that the features have their parts, and no other workload or container has them.
fn check_features(start: StartingPoint, on: &BTreeSet<Feature>, live: &[Value]) -> Result<()> {
    let resource = live.iter().find(|object| object["kind"] == "ArgoCD");
    let has = |list: &Value, name: &str| list.as_array().into_iter().flatten().any(|item| item["name"] == name);
    let mut with_sidecar = Vec::new();
    let mut with_ui = Vec::new();
    if let Some(resource) = resource {
        let spec = &resource["spec"];
        with_sidecar.extend(has(&spec["repo"]["sidecarContainers"], SIDECAR).then_some("repo-server"));
        with_ui.extend(has(&spec["server"]["volumeMounts"], "argocd-ocm-cmp-ui").then_some("server"));
    }
    let mut controllers = Vec::new();
    for workload in live.iter().filter(|object| object["kind"] == "Deployment") {
        for container in workload["spec"]["template"]["spec"]["containers"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let component = workload["metadata"]["name"].as_str().unwrap_or_default();
            if container["name"] == SIDECAR {
                with_sidecar.push(component);
            }
            if has(&container["volumeMounts"], "argocd-ocm-cmp-ui") {
                ensure!(container["name"] != SIDECAR, "{container:#}");
                with_ui.push(component);
            }
            for variable in container["env"].as_array().into_iter().flatten() {
                if variable["name"] == "ARGOCD_OCM_CMP_CONTROLLERS" {
                    controllers.extend(variable["value"].as_str().unwrap_or_default().split(','));
                }
            }
        }
    }
    let has_sidecar = on.contains(&Feature::PLUGIN) || start == StartingPoint::HandWrittenSidecar;
    ensure!(with_sidecar.len() == usize::from(has_sidecar), "{with_sidecar:?}");
    ensure!(
        with_sidecar.iter().all(|name| name.ends_with("repo-server")),
        "{with_sidecar:?}"
    );
    ensure!(with_ui.len() == usize::from(on.contains(&Feature::UI)), "{with_ui:?}");
    ensure!(
        with_ui
            .iter()
            .all(|name| name.ends_with("server") && !name.ends_with("repo-server")),
        "{with_ui:?}"
    );
    for (feature, controller) in [
        (Feature::PULL, "pull"),
        (Feature::REPORT, "application-set-report"),
        (Feature::CLUSTER_SECRETS, "cluster-secrets"),
        (Feature::GITOPS_CLUSTER, "gitopscluster"),
        (Feature::ARGOCD_AGENT, "argocd-agent"),
    ] {
        // The settings of kubectl are in the ConfigMap until a feature of the controller is installed.
        let is_by_kubectl = controllers.is_empty() && start == StartingPoint::InstalledByKubectl;
        ensure!(
            is_by_kubectl || controllers.contains(&controller) == on.contains(&feature),
            "{controllers:?}"
        );
    }
    Ok(())
}

/// Creates the Argo CD of a starting point.
async fn create(installation: &Installation, start: StartingPoint) -> Result<()> {
    let hub = &installation.hub;
    let mut objects = start.objects()?;
    if start == StartingPoint::Operator {
        let crd = Parts::ensure()?.argocd_operator_crds().join("argoproj.io_argocds.yaml");
        hub.apply_file(&crd, &["--server-side"])?;
        hub.wait_for_crds().await?;
        let resource = hub
            .create(&ObjectRef::namespaced("argoproj.io/v1beta1", "ArgoCD", NAMESPACE, "cd").with(json!({
                "spec": {"extraConfig": {"users.anonymous.enabled": "false"}, "server": {"logLevel": "info"}, "notifications": {"enabled": false}},
            })))
            .await?;
        for object in objects.iter_mut().filter(|object| object["kind"] != "ConfigMap") {
            object["metadata"]["ownerReferences"][0]["uid"] = resource["metadata"]["uid"].clone();
        }
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    if start == StartingPoint::Core {
        hub.kubectl_with_input("apply -f -", &list)?;
    } else {
        hub.kubectl_with_input("apply --server-side -f -", &list)?;
    }
    Ok(())
}

/// Returns Argo CD's objects on the hub.
fn live(installation: &Installation, start: StartingPoint) -> Result<Vec<Value>> {
    let mut kinds = "deployments,statefulsets,configmaps".to_owned();
    if start == StartingPoint::Operator {
        kinds.push_str(",argocds");
    }
    let list = ["get", &kinds, "-n", NAMESPACE, "-o", "json"];
    let answer: Value = serde_json::from_str(&installation.hub.kubectl(&list)?)?;
    let mut items = answer["items"].as_array().cloned().unwrap_or_default();
    for item in &mut items {
        // The API server writes it at any time.
        item["status"] = Value::Null;
    }
    Ok(items)
}
