//! Tests of `install` from ten starting points with every set of features, each in two orders: what was there stays, a second run
//! changes nothing, and `uninstall` gives back the starting point.
//!
//! With all features that they require, the features form 800 different sets, without `agent-admission`, whose objects no other
//! feature has. On a real API server these would take hours, so [`every_set_of_features_adds_up`] tries them on [`Model`]: it selects
//! the objects with the code of `install`, and stores them as server-side apply does for one field manager, whose last document
//! decides. The tests with a hub hold the model to the real API server: from each starting point they add the features one by one, in
//! both orders, and compare each step with the model. So each feature comes before and after each other one.

use super::{Installation, installation, read};
use anyhow::{Context, Result, ensure};
use argocd_ocm_cmp::install::{
    ArgoCd, Feature, InstallOptions, Object, PolicySource, decide, live_policy, named, objects, with_implied,
};
use clap::ValueEnum as _;
use manifest::yaml;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use testbed::{ObjectRef, Parts};

const NAMESPACE: &str = "matrix";

/// The pods' container of the plugin.
const SIDECAR: &str = "argocd-ocm-cmp";

/// The kinds of Argo CD's own manifests that a starting point has.
const KINDS: [&str; 3] = ["ConfigMap", "Deployment", "StatefulSet"];

/// An Argo CD on a hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StartingPoint {
    Core,
    Full,
    HighlyAvailable,
    Chart,
    Operator,
    OpenShift,
    Mesh,
    HandWrittenSidecar,
    InstalledByKubectl,
    InstalledByEarlierVersion,
}

impl StartingPoint {
    /// Returns the objects of Argo CD.
    fn objects(self) -> Result<Vec<Value>> {
        let file = match self {
            Self::Core | Self::InstalledByEarlierVersion => "core-install.yaml",
            Self::HighlyAvailable => "ha/install.yaml",
            _ => "install.yaml",
        };
        let text = fs::read_to_string(Parts::ensure()?.argocd_manifests().join(file))?;
        let mut all = Vec::new();
        for document in yaml::documents(&text) {
            let mut text = String::new();
            manifest::json::write(
                &document.map_err(|error| anyhow::anyhow!("{error:?}"))?.value,
                &mut text,
            )?;
            let mut object: Value = serde_json::from_str(&text)?;
            if KINDS.iter().any(|kind| object["kind"] == *kind) {
                object["metadata"]["namespace"] = NAMESPACE.into();
                self.change(&mut object);
                all.push(object);
            }
        }
        Ok(all)
    }

    /// Makes an object of Argo CD's own manifests one of this starting point.
    fn change(self, object: &mut Value) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(component) = name.strip_prefix("argocd-").filter(|_| object["kind"] != "ConfigMap") else {
            return;
        };
        let program = format!("/usr/local/bin/{name}");
        match self {
            Self::Chart => {
                object["metadata"]["name"] = format!("edge-{name}").into();
                containers(object)[0]["name"] = component.into();
            }
            Self::Operator | Self::OpenShift => {
                let prefix = if self == Self::Operator {
                    "cd"
                } else {
                    "openshift-gitops"
                };
                object["metadata"]["name"] = format!("{prefix}-{component}").into();
                object["metadata"]["labels"] = json!({"app.kubernetes.io/part-of": "argocd"});
                let main = &mut containers(object)[0];
                if main["args"][0] == program.as_str() {
                    main["command"] = json!(["uid_entrypoint.sh", name]);
                    main["args"] = json!(["--loglevel", "info"]);
                }
            }
            Self::Mesh if ["server", "repo-server"].contains(&component) => {
                let proxy =
                    json!({"name": "istio-proxy", "image": "example.com/proxyv2:1", "args": ["proxy", "sidecar"]});
                containers(object).insert(0, proxy);
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
        match (self, feature) {
            (Self::Core | Self::InstalledByEarlierVersion, "ui") => {
                Some("error: Namespace matrix: this Argo CD has no argocd-server: omit ui\n")
            }
            (Self::HighlyAvailable, "argocd-agent") => Some(
                "error: ConfigMap matrix/argocd-cmd-params-cm: redis.server is argocd-redis-ha-haproxy:6379, which the principal",
            ),
            _ => None,
        }
    }
}

fn containers(workload: &mut Value) -> &mut Vec<Value> {
    let containers = &mut workload["spec"]["template"]["spec"]["containers"];
    containers.as_array_mut().expect("containers")
}

/// Argo CD's workloads, and the last applied document of each object.
#[derive(Clone, Debug)]
struct Model {
    base: Vec<Value>,
    documents: BTreeMap<String, Document>,
}

/// A document of `install`. The objects are large, so only those that `install` reads again are kept.
#[derive(Clone, Debug, PartialEq)]
struct Document {
    text: u64,
    value: Option<Value>,
}

/// The documents of sets of features for one Argo CD.
type Known = BTreeMap<(BTreeSet<Feature>, bool), BTreeMap<String, Document>>;

impl Model {
    fn new(objects: &[Value]) -> Self {
        let base = objects.iter().filter(|it| it["kind"] != "ConfigMap");
        Self {
            base: base.cloned().collect(),
            documents: BTreeMap::new(),
        }
    }

    /// Returns the workloads as server-side apply merges them.
    fn workloads(&self) -> Vec<Value> {
        let mut all = self.base.clone();
        for (name, document) in &self.documents {
            let Some(value) = document.value.as_ref().filter(|it| it["kind"] == "Deployment") else {
                continue;
            };
            match all.iter_mut().find(|it| self::name(it) == *name) {
                Some(live) => merge(live, value),
                None => all.push(value.clone()),
            }
        }
        all
    }

    /// Installs features as the command does, which completes the options from the hub.
    fn install(&mut self, features: &BTreeSet<Feature>, known: &mut Known) -> Result<(), Vec<String>> {
        let mut workloads = self.workloads();
        let resource = self.documents.get("ArgoCD cd").and_then(|it| it.value.as_ref());
        if let Some(resource) = resource {
            ArgoCd::among(&workloads).reconcile(&mut workloads, resource);
        }
        let mut options = InstallOptions {
            features: features.clone(),
            ..InstallOptions::everything(NAMESPACE)
        };
        let settings = self.documents.get("ConfigMap argocd-ocm-cmp-controller");
        let settings = settings.and_then(|it| it.value.as_ref());
        let (_, requested) = options.adopt(&workloads, settings)?;
        options.images.tools = options.argo_cd.image.clone().expect("the repo-server has an image");
        let repo_server = live_policy(named(&workloads, &options.argo_cd.repo_server));
        let requested_policy = features.contains(&Feature::Policy).then_some(PolicySource::Sample);
        options.policy = decide(requested_policy, &repo_server, "")
            .map_err(|error| vec![error])?
            .0;
        options.features = with_implied(options.features);
        let mut documents = |options: &InstallOptions| {
            let key = (options.features.clone(), options.policy == PolicySource::None);
            known.entry(key).or_insert_with(|| documents(&objects(options))).clone()
        };
        let all = documents(&options);
        options.features = requested;
        // The principal of argocd-agent works without the pages of Argo CD.
        let has_server = options.argo_cd.why_unknown("server").is_none();
        let server = format!("Deployment {}", options.argo_cd.server);
        for name in documents(&options)
            .into_keys()
            .filter(|name| has_server || *name != server)
        {
            self.documents.insert(name.clone(), all[&name].clone());
        }
        Ok(())
    }
}

fn documents(objects: &[Object]) -> BTreeMap<String, Document> {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let document = |object: &Object| {
        let (mut hasher, text) = (DefaultHasher::new(), object.json());
        text.hash(&mut hasher);
        let is_read = ["ArgoCD", "Deployment"].contains(&object.kind()) || object.name() == "argocd-ocm-cmp-controller";
        let value = is_read.then(|| serde_json::from_str(&text).expect("JSON"));
        let text = hasher.finish();
        (format!("{} {}", object.kind(), object.name()), Document { text, value })
    };
    objects.iter().map(document).collect()
}

fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Merges a document as server-side apply does: the items of lists by their keys.
fn merge(live: &mut Value, document: &Value) {
    match (live, document) {
        (Value::Object(live), Value::Object(document)) => {
            for (key, value) in document {
                merge(live.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(live), Value::Array(document)) => {
            for item in document {
                let key = ["mountPath", "name"].into_iter().find(|key| !item[*key].is_null());
                match live.iter_mut().find(|it| key.is_some_and(|key| it[key] == item[key])) {
                    Some(same) => merge(same, item),
                    None => live.push(item.clone()),
                }
            }
        }
        (live, document) => *live = document.clone(),
    }
}

/// Returns true if an object has all fields of another one.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| contains(whole, part))),
        (Value::Array(whole), Value::Array(part)) => part.iter().all(|part| whole.iter().any(|it| contains(it, part))),
        (_, Value::Null) => true,
        _ => whole == part,
    }
}

/// A feature that only adds objects of its own, so that every set with it is the set without it and these objects.
const INDEPENDENT: Feature = Feature::AgentAdmission;

/// Returns all sets of features that include what they require, without [`INDEPENDENT`].
fn feature_sets() -> Vec<BTreeSet<Feature>> {
    let mut sets = BTreeSet::from([BTreeSet::new()]);
    for feature in Feature::ALL.iter().filter(|it| **it != INDEPENDENT) {
        let more: Vec<_> = sets
            .iter()
            .map(|set| with_implied(set.iter().copied().chain([*feature])))
            .collect();
        sets.extend(more);
    }
    let mut sets: Vec<_> = sets.into_iter().filter(|set| !set.is_empty()).collect();
    sets.sort_by_key(BTreeSet::len);
    sets
}

/// The documents of a set without the list of controllers in the ConfigMap, which the Deployment overrides.
fn effective(model: &Model) -> BTreeMap<String, Document> {
    let mut documents = model.documents.clone();
    documents.remove("ConfigMap argocd-ocm-cmp-controller");
    documents
}

#[test]
fn every_set_of_features_adds_up() -> Result<()> {
    use StartingPoint::{Core, Full, HandWrittenSidecar, Operator};
    if !testbed::available() {
        return Ok(());
    }
    let sets = feature_sets();
    assert_eq!(sets.len(), 799, "the sets of the documentation, without the empty one");
    let objects_of = |features: BTreeSet<Feature>| {
        documents(&objects(&InstallOptions {
            features,
            ..InstallOptions::everything(NAMESPACE)
        }))
    };
    let all = Feature::ALL.iter().copied();
    let mut together = objects_of(all.clone().filter(|it| *it != INDEPENDENT).collect());
    for (name, document) in objects_of([INDEPENDENT].into()) {
        assert_eq!(
            together.insert(name.clone(), document),
            None,
            "{name} has another feature"
        );
    }
    assert_eq!(together, objects_of(all.collect()));
    // The others have only other names, which the tests with a hub try.
    for start in [Core, Full, Operator, HandWrittenSidecar] {
        let mut objects = start.objects()?;
        for object in objects
            .iter_mut()
            .filter(|it| start == Operator && it["kind"] != "ConfigMap")
        {
            object["metadata"]["ownerReferences"] = json!([{"kind": "ArgoCD", "name": "cd"}]);
        }
        let base = Model::new(&objects);
        check_sets(start, &base, &sets)?;
    }
    Ok(())
}

/// Checks that all features of a set at once give the same as one after the other, in both orders.
fn check_sets(start: StartingPoint, base: &Model, sets: &[BTreeSet<Feature>]) -> Result<()> {
    let mut known = Known::new();
    // The last feature of a set is added to the set before it, which was checked before.
    let mut by_order: [BTreeMap<BTreeSet<Feature>, Model>; 2] = Default::default();
    for set in sets {
        let has_ui = set.contains(&Feature::Ui);
        let mut at_once = base.clone();
        if let Err(problems) = at_once.install(set, &mut known) {
            ensure!(
                has_ui && start.refuses("ui").is_some(),
                "{start:?} {set:?}: {problems:?}"
            );
            ensure!(at_once.documents.is_empty(), "nothing is written");
            continue;
        }
        let live = at_once.workloads();
        for (was, is) in base.base.iter().zip(&live) {
            ensure!(contains(is, was), "{start:?} {set:?}: {} has lost fields", name(was));
        }
        let mut again = at_once.clone();
        again.install(set, &mut known).expect("it was installed");
        ensure!(
            again.documents == at_once.documents,
            "{start:?} {set:?}: a second run changes something"
        );
        for (reverse, models) in by_order.iter_mut().enumerate() {
            let (before, last) = last_step(set, reverse == 1);
            let mut model = models.get(&before).unwrap_or(base).clone();
            model
                .install(&BTreeSet::from([last]), &mut known)
                .expect("its set was installed");
            ensure!(
                effective(&model) == effective(&at_once),
                "{start:?} {set:?}: {last:?} after {before:?} differs from all at once"
            );
            models.insert(set.clone(), model);
        }
    }
    Ok(())
}

/// Returns a set without the feature that is added last, and what only that one requires, with that feature. The policy stands for the
/// plugin, which requires it: an existing sidecar gets a policy only where it is named.
fn last_step(set: &BTreeSet<Feature>, reverse: bool) -> (BTreeSet<Feature>, Feature) {
    let mut order: Vec<Feature> = set.iter().copied().filter(|it| *it != Feature::Plugin).collect();
    if reverse {
        order.reverse();
    }
    let mut before = BTreeSet::new();
    let mut last = order[0];
    let mut at_last = BTreeSet::new();
    for feature in order {
        let next = with_implied(before.iter().copied().chain([feature]));
        if next != before {
            (at_last, last) = (before, feature);
        }
        before = next;
    }
    (at_last, last)
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
async fn highly_available_installation() -> Result<()> {
    check(StartingPoint::HighlyAvailable).await
}

#[tokio::test]
async fn names_of_the_chart() -> Result<()> {
    check(StartingPoint::Chart).await
}

#[tokio::test]
async fn resource_of_an_operator() -> Result<()> {
    check(StartingPoint::Operator).await
}

#[tokio::test]
async fn names_of_openshift_gitops() -> Result<()> {
    check(StartingPoint::OpenShift).await
}

#[tokio::test]
async fn first_container_of_a_mesh() -> Result<()> {
    check(StartingPoint::Mesh).await
}

#[tokio::test]
async fn sidecar_written_by_hand() -> Result<()> {
    check(StartingPoint::HandWrittenSidecar).await
}

#[tokio::test]
async fn installed_by_kubectl() -> Result<()> {
    check(StartingPoint::InstalledByKubectl).await
}

#[tokio::test]
async fn installed_by_an_earlier_version() -> Result<()> {
    check(StartingPoint::InstalledByEarlierVersion).await
}

/// Adds the features one by one, in both orders, and checks each step.
async fn check(start: StartingPoint) -> Result<()> {
    let Some(installation) = installation().await? else {
        return Ok(());
    };
    let hub = installation.hub;
    hub.create_namespace(NAMESPACE).await?;
    create(&installation, start).await?;
    let before = installation.all()?;
    let base = live(&installation)?;
    let order: Vec<Feature> = Feature::ALL.to_vec();
    for (is_first, order) in [(true, order.clone()), (false, order.into_iter().rev().collect())] {
        let mut on = installed_before(&installation, start)?;
        let mut model = on.is_empty().then(|| Model::new(&base));
        for feature in order {
            check_step(&installation, start, feature, &base, &mut on, &mut model, is_first)
                .with_context(|| format!("{start:?}: {feature:?} after {on:?}"))?;
        }
        installation.run_ok(&["uninstall", "-n", NAMESPACE])?;
        installation
            .until(&before)
            .await
            .with_context(|| format!("{start:?}: after uninstall"))?;
    }
    let namespace = ObjectRef::namespace(NAMESPACE);
    hub.delete(&namespace).await?;
    hub.wait_gone(&namespace).await
}

/// Installs a feature, and checks what is there.
fn check_step(
    installation: &Installation,
    start: StartingPoint,
    feature: Feature,
    base: &[Value],
    on: &mut BTreeSet<Feature>,
    model: &mut Option<Model>,
    is_run_twice: bool,
) -> Result<()> {
    let value = feature.to_possible_value().context("a name")?;
    let words = ["install", "-n", NAMESPACE, "--features", value.get_name()];
    let earlier = live(installation)?;
    if let Some(error) = start.refuses(value.get_name()) {
        let printed = installation.run_err(&words)?;
        ensure!(printed.starts_with(error), "{printed}");
        ensure!(live(installation)? == earlier, "something was written");
        return Ok(());
    }
    installation.run_ok(&words)?;
    on.extend(with_implied([feature]));
    let is = live(installation)?;
    for was in base {
        let same = is.iter().find(|it| name(it) == name(was)).context("it was deleted")?;
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
    check_features(start, on, &is)?;
    if is_run_twice {
        check_second_run(&installation.run_ok(&words)?)?;
    }
    let Some(model) = model else { return Ok(()) };
    // Their documents are one in the resource of the operator.
    if start != StartingPoint::Operator {
        model
            .install(&BTreeSet::from([feature]), &mut Known::new())
            .map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
        for expected in model.workloads() {
            let found = is
                .iter()
                .find(|it| name(it) == name(&expected))
                .context("no such workload")?;
            ensure!(
                contains(&found["spec"], &expected["spec"]) && names(found) == names(&expected),
                "{} is not as in the model: {:#}\n{:#}",
                name(found),
                found["spec"],
                expected["spec"]
            );
        }
    }
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
    let resource = live.iter().find(|it| it["kind"] == "ArgoCD");
    let has = |list: &Value, name: &str| list.as_array().into_iter().flatten().any(|it| it["name"] == name);
    let mut with_sidecar = Vec::new();
    let mut with_ui = Vec::new();
    if let Some(resource) = resource {
        let spec = &resource["spec"];
        with_sidecar.extend(has(&spec["repo"]["sidecarContainers"], SIDECAR).then_some("repo-server"));
        with_ui.extend(has(&spec["server"]["volumeMounts"], "argocd-ocm-cmp-ui").then_some("server"));
    }
    let mut controllers = Vec::new();
    for workload in live.iter().filter(|it| it["kind"] == "Deployment") {
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
                ensure!(
                    container["name"] != "istio-proxy" && container["name"] != SIDECAR,
                    "{container:#}"
                );
                with_ui.push(component);
            }
            for variable in container["env"].as_array().into_iter().flatten() {
                if variable["name"] == "ARGOCD_OCM_CMP_CONTROLLERS" {
                    controllers.extend(variable["value"].as_str().unwrap_or_default().split(','));
                }
            }
        }
    }
    let has_sidecar = on.contains(&Feature::Plugin) || start == StartingPoint::HandWrittenSidecar;
    ensure!(with_sidecar.len() == usize::from(has_sidecar), "{with_sidecar:?}");
    ensure!(
        with_sidecar.iter().all(|it| it.ends_with("repo-server")),
        "{with_sidecar:?}"
    );
    if start == StartingPoint::InstalledByEarlierVersion && !on.contains(&Feature::Plugin) {
        // What it has added to the wrong workload stays until that workload gets another document.
        ensure!(with_ui == ["argocd-repo-server"], "{with_ui:?}");
        with_ui.clear();
    }
    ensure!(with_ui.len() == usize::from(on.contains(&Feature::Ui)), "{with_ui:?}");
    ensure!(
        with_ui
            .iter()
            .all(|it| it.ends_with("server") && !it.ends_with("repo-server")),
        "{with_ui:?}"
    );
    for (feature, controller) in [
        (Feature::Pull, "pull"),
        (Feature::Report, "application-set-report"),
        (Feature::ClusterSecrets, "cluster-secrets"),
        (Feature::GitOpsCluster, "gitopscluster"),
        (Feature::ArgocdAgent, "argocd-agent"),
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
    let hub = installation.hub;
    let mut objects = start.objects()?;
    if start == StartingPoint::Operator {
        let crd = Parts::ensure()?.argocd_operator_crds().join("argoproj.io_argocds.yaml");
        hub.kubectl(&["apply", "--server-side", "-f", crd.to_str().context("a plain path")?])?;
        hub.wait_for_crds().await?;
        let resource = hub
            .create(&json!({
                "apiVersion": "argoproj.io/v1beta1",
                "kind": "ArgoCD",
                "metadata": {"name": "cd", "namespace": NAMESPACE},
                "spec": {"extraConfig": {"users.anonymous.enabled": "false"}, "server": {"logLevel": "info"}, "notifications": {"enabled": false}},
            }))
            .await?;
        let owner = json!([{
            "apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "name": "cd", "uid": resource["metadata"]["uid"],
        }]);
        for object in &mut objects {
            object["metadata"]["ownerReferences"] = owner.clone();
        }
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    if start == StartingPoint::Core {
        hub.kubectl_with_input(&["apply", "-f", "-"], &list)?;
    } else {
        hub.kubectl_with_input(&["apply", "--server-side", "-f", "-"], &list)?;
    }
    Ok(())
}

/// Installs as kubectl or an earlier version does, if that is the starting point, and returns the features.
fn installed_before(installation: &Installation, start: StartingPoint) -> Result<BTreeSet<Feature>> {
    let hub = installation.hub;
    let additions = ["apply", "--server-side", "--field-manager", "argocd-ocm-cmp", "-f", "-"];
    match start {
        StartingPoint::InstalledByKubectl => {
            for (words, files) in [
                (
                    &["apply", "-f", "-"][..],
                    &[
                        "cm_plugin.yaml",
                        "deploy/deploy_controller.yaml",
                        "deploy/report_crd.yaml",
                        "deploy/deploy_pull.yaml",
                        "deploy/deploy_report.yaml",
                    ][..],
                ),
                (&additions, &["deploy/argocd_cm.yaml", "deploy_cmp.yaml"]),
            ] {
                for file in files {
                    let text = read(file)?.replace("namespace: argocd\n", &format!("namespace: {NAMESPACE}\n"));
                    hub.kubectl_with_input(words, &text)?;
                }
            }
            let mut features = with_implied([Feature::Plugin, Feature::Pull]);
            features.remove(&Feature::Policy);
            Ok(features)
        }
        StartingPoint::InstalledByEarlierVersion => {
            let features = [Feature::Plugin, Feature::Pull];
            let options = |features: &[Feature]| InstallOptions {
                features: features.iter().copied().collect(),
                ..InstallOptions::everything(NAMESPACE)
            };
            // It took the repo-server of a core installation for its server: the second document removed the sidecar.
            let is_wrong = ArgoCd {
                server: "argocd-repo-server".to_owned(),
                server_container: "argocd-repo-server".to_owned(),
                ..ArgoCd::default()
            };
            let mut ui = options(&[Feature::Ui]);
            ui.argo_cd = is_wrong;
            for options in [options(&features), ui] {
                for object in objects(&options) {
                    hub.kubectl_with_input(&additions, &object.json())?;
                }
            }
            Ok(with_implied([Feature::Pull]))
        }
        _ => Ok(BTreeSet::new()),
    }
}

/// Returns Argo CD's objects on the hub.
fn live(installation: &Installation) -> Result<Vec<Value>> {
    let mut kinds = "deployments,statefulsets,configmaps".to_owned();
    if installation.hub.kubectl(&["get", "argocds", "-n", NAMESPACE]).is_ok() {
        kinds.push_str(",argocds");
    }
    let found: Value = serde_json::from_str(
        &installation
            .hub
            .kubectl(&["get", &kinds, "-n", NAMESPACE, "-o", "json"])?,
    )?;
    let mut items = found["items"].as_array().cloned().unwrap_or_default();
    for item in &mut items {
        // The API server writes it at any time.
        item["status"] = Value::Null;
    }
    Ok(items)
}

/// Returns the names in the lists of a Pod, with their lists.
fn names(workload: &Value) -> BTreeSet<String> {
    let pod = &workload["spec"]["template"]["spec"];
    let mut all = BTreeSet::new();
    for list in ["containers", "initContainers", "volumes"] {
        for item in pod[list].as_array().into_iter().flatten() {
            all.insert(format!("{list} {}", item["name"]));
            for part in ["env", "volumeMounts"] {
                let more = item[part].as_array().into_iter().flatten();
                all.extend(more.map(|it| format!("{list} {} {part} {} {}", item["name"], it["name"], it["mountPath"])));
            }
        }
    }
    all
}
