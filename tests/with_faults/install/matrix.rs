//! Tests of `install` from ten starting points with every set of features, each in two orders: what was there stays, a second run
//! changes nothing, and `uninstall` gives back the starting point.
//!
//! With all features that they require, the features form 1,200 different sets, without `agent-admission`, whose objects no other
//! feature has. On a real API server these would take hours, so [`every_set_of_features_adds_up`] tries them on [`Model`]: it selects
//! the objects with the code of `install` and `uninstall`, and stores them as server-side apply does for one field manager, whose
//! last document decides. The tests with a hub hold the model to the real API server: from half of the starting points they add the
//! features one by one, in both orders, compare each step with the model, and uninstall. So each feature comes before and after each
//! other one. The other starting points differ from these in names and containers, which only the model and the unit tests try.

use super::{Installation, installation, read_shipped};
use anyhow::{Context, Result, bail, ensure};
use argocd_ocm_cmp::install::{
    ArgoCd, Feature, InstallOptions, MANAGER, PolicySource, ShippedObject, addition_to, decide, is_ours, live_policy,
    named, objects, with_implied,
};
use clap::ValueEnum as _;
use manifest::problem::Problems;
use manifest::yaml;
use serde_json::{Value, json};
use std::cell::OnceCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::rc::Rc;
use testbed::{ObjectRef, Parts};

const NAMESPACE: &str = "matrix";

/// The pods' container of the plugin.
const SIDECAR: &str = "argocd-ocm-cmp";

/// The label of the program's objects.
const LABEL: &str = "app.kubernetes.io/name";

/// The settings of the controller.
const SETTINGS: &str = "ConfigMap argocd-ocm-cmp-controller";

/// The kinds of Argo CD's own manifests that a starting point has.
const KINDS: [&str; 3] = ["ConfigMap", "Deployment", "StatefulSet"];

/// An object that was applied earlier: by server-side apply with our field manager, or by kubectl alone.
type Applied = (bool, Value);

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
    const ALL: [Self; 10] = [
        Self::Core,
        Self::Full,
        Self::HighlyAvailable,
        Self::Chart,
        Self::Operator,
        Self::OpenShift,
        Self::Mesh,
        Self::HandWrittenSidecar,
        Self::InstalledByKubectl,
        Self::InstalledByEarlierVersion,
    ];

    /// Returns the objects of Argo CD.
    fn objects(self) -> Result<Vec<Value>> {
        let file = match self {
            Self::Core | Self::InstalledByEarlierVersion => "core-install.yaml",
            Self::HighlyAvailable => "ha/install.yaml",
            _ => "install.yaml",
        };
        let mut all = json_documents(&fs::read_to_string(Parts::ensure()?.argocd_manifests().join(file))?)?;
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

    /// Returns the objects that kubectl or an earlier version has applied already, in order, and the features.
    fn installed(self) -> Result<(Vec<Applied>, BTreeSet<Feature>)> {
        let mut applied = Vec::new();
        match self {
            Self::InstalledByKubectl => {
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
                        let text =
                            read_shipped(file)?.replace("namespace: argocd\n", &format!("namespace: {NAMESPACE}\n"));
                        applied.extend(
                            json_documents(&text)?
                                .into_iter()
                                .map(|object| (is_server_side, object)),
                        );
                    }
                }
                let mut features = with_implied([Feature::Plugin, Feature::Pull]);
                features.remove(&Feature::Policy);
                Ok((applied, features))
            }
            Self::InstalledByEarlierVersion => {
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
                for options in [options(&[Feature::Plugin, Feature::Pull]), ui] {
                    for object in objects(&options) {
                        applied.push((true, serde_json::from_str(&object.json())?));
                    }
                }
                Ok((applied, with_implied([Feature::Pull])))
            }
            _ => Ok((applied, BTreeSet::new())),
        }
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
            (Self::Core | Self::InstalledByEarlierVersion, "ui" | "live") => {
                Some("error: Namespace matrix: this Argo CD has no argocd-server: omit ui\n")
            }
            (Self::HighlyAvailable, "argocd-agent") => Some(
                "error: ConfigMap matrix/argocd-cmd-params-cm: redis.server is argocd-redis-ha-haproxy:6379, which the principal",
            ),
            _ => None,
        }
    }
}

fn json_documents(text: &str) -> Result<Vec<Value>> {
    let documents = yaml::documents(text).map(|document| {
        let mut text = String::new();
        manifest::json::write(
            &document.map_err(|error| anyhow::anyhow!("{error:?}"))?.value,
            &mut text,
        )?;
        Ok(serde_json::from_str(&text)?)
    });
    documents.collect()
}

fn containers(workload: &mut Value) -> &mut Vec<Value> {
    let containers = &mut workload["spec"]["template"]["spec"]["containers"];
    containers.as_array_mut().expect("containers")
}

/// Argo CD's workloads, and the last applied document of each object.
#[derive(Clone, Debug)]
struct Model {
    base: Rc<Vec<Value>>,
    documents: Documents,
    workloads: OnceCell<Rc<Vec<Value>>>,
}

/// The documents of `install`, by kind and name.
type Documents = BTreeMap<Rc<str>, Rc<Document>>;

/// A document of `install`. The values of objects are large, so only those that `install` reads again are kept.
#[derive(Debug, PartialEq)]
struct Document {
    text: u64,
    value: Option<Value>,
    owner: Owner,
}

/// The owner of an object, as `uninstall` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// Argo CD: we have added to its object.
    ArgoCd,
    /// This program, by the object's label or text.
    Us,
    Unknown,
}

impl Document {
    fn new(name: &str, label: Option<&str>, text: &str, owner: impl FnOnce() -> Owner) -> Self {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let is_read = |start: &&str| name.starts_with(start);
        let is_read = ["ArgoCD ", "Deployment ", SETTINGS].iter().any(is_read);
        let has_our_label = label.is_some_and(|label| ["argocd-ocm-cmp", "argocd-ocm-cmp-controller"].contains(&label));
        Self {
            text: hasher.finish(),
            value: is_read.then(|| serde_json::from_str(text).expect("JSON")),
            owner: if has_our_label { Owner::Us } else { owner() },
        }
    }
}

/// The documents of sets of features, without and with a policy, for each Argo CD. Thousands of sets have the same few hundred
/// documents: reading each again would take most of the time and memory of the test.
#[derive(Default)]
struct Known {
    sets: BTreeMap<(String, BTreeSet<Feature>, bool), Documents>,
    /// By [`ShippedObject::is_addition`] and their text.
    documents: HashMap<(bool, String), Rc<Document>>,
}

impl Known {
    fn documents(&mut self, options: &InstallOptions) -> Documents {
        let key = (
            format!("{:?}", options.argo_cd),
            options.features.clone(),
            options.policy == PolicySource::None,
        );
        let Self { sets, documents } = self;
        let of_set = sets.entry(key);
        of_set
            .or_insert_with(|| objects(options).iter().map(|it| document(it, documents)).collect())
            .clone()
    }
}

impl Model {
    fn new(objects: &[Value]) -> Self {
        let base = objects.iter().filter(|it| it["kind"] != "ConfigMap");
        Self {
            base: Rc::new(base.cloned().collect()),
            documents: Documents::new(),
            workloads: OnceCell::new(),
        }
    }

    /// Returns the model after these documents were applied.
    fn with(mut self, documents: Documents) -> Self {
        self.workloads = OnceCell::new();
        self.documents.extend(documents);
        self
    }

    /// Returns the workloads as server-side apply merges them.
    fn workloads(&self) -> &Rc<Vec<Value>> {
        self.workloads.get_or_init(|| {
            let mut all = self.base.to_vec();
            for (name, document) in &self.documents {
                let Some(value) = document.value.as_ref().filter(|it| it["kind"] == "Deployment") else {
                    continue;
                };
                match all.iter_mut().find(|it| self::name(it) == **name) {
                    Some(live) => {
                        merge(live, value);
                        live["metadata"]["managedFields"] = json!([{"manager": MANAGER, "operation": "Apply"}]);
                    }
                    None => all.push(value.clone()),
                }
            }
            Rc::new(all)
        })
    }

    /// Installs features as the command does, which completes the options from the hub.
    fn install(&mut self, features: &BTreeSet<Feature>, known: &mut Known) -> Result<(), Problems> {
        let mut workloads = self.workloads().clone();
        let resource = self.documents.get("ArgoCD cd").and_then(|it| it.value.as_ref());
        if let Some(resource) = resource {
            let argo_cd = ArgoCd::among(&workloads);
            let merged: &mut Vec<Value> = Rc::make_mut(&mut workloads);
            argo_cd.reconcile(merged, resource);
        }
        let mut options = InstallOptions {
            features: features.clone(),
            ..InstallOptions::everything(NAMESPACE)
        };
        let settings = self.documents.get(SETTINGS);
        let settings = settings.and_then(|it| it.value.as_ref());
        let (_, requested) = options.adopt(&workloads, settings)?;
        options.images.tools = options.argo_cd.image.clone().expect("the repo-server has an image");
        let repo_server = live_policy(named(&workloads, &options.argo_cd.repo_server));
        let requested_policy = features.contains(&Feature::Policy).then_some(PolicySource::Sample);
        (options.policy, _) = decide(requested_policy, &repo_server, "")?;
        options.features = with_implied(options.features);
        let all = known.documents(&options);
        options.features = requested;
        // The principal of argocd-agent works without the pages of Argo CD.
        let has_server = options.argo_cd.why_unknown("server").is_none();
        let server = format!("Deployment {}", options.argo_cd.server);
        for name in known.documents(&options).into_keys() {
            if has_server || *name != *server {
                let document = all[&name].clone();
                self.documents.insert(name, document);
            }
        }
        self.workloads = OnceCell::new();
        Ok(())
    }

    /// Returns the objects that `uninstall` would leave, because it does not find them.
    fn left_by_uninstall(&self, known: &mut Known) -> Vec<&str> {
        let options = InstallOptions {
            argo_cd: ArgoCd::among(self.workloads()),
            ..InstallOptions::everything(NAMESPACE)
        };
        let ours = known.documents(&options);
        let is_left = |(name, document): &(&Rc<str>, &Rc<Document>)| {
            let live = || self.workloads().iter().find(|it| self::name(it) == ***name);
            match document.owner {
                Owner::ArgoCd => !ours.contains_key(*name) && live().and_then(addition_to).is_none(),
                Owner::Us => false,
                Owner::Unknown => true,
            }
        };
        let left = self.documents.iter().filter(is_left);
        left.map(|(name, _)| &**name).collect()
    }
}

fn document(object: &ShippedObject, known: &mut HashMap<(bool, String), Rc<Document>>) -> (Rc<str>, Rc<Document>) {
    let (name, text) = (format!("{} {}", object.kind(), object.name()), object.json());
    let read = |text: &str| {
        let document = Document::new(&name, object.label(LABEL), text, || {
            if object.is_addition() {
                return Owner::ArgoCd;
            }
            let live = serde_json::from_str(text).expect("JSON");
            if is_ours(object, &live) {
                Owner::Us
            } else {
                Owner::Unknown
            }
        });
        Rc::new(document)
    };
    let entry = known.entry((object.is_addition(), text));
    let document = match entry {
        Entry::Occupied(entry) => entry.get().clone(),
        Entry::Vacant(entry) => {
            let document = read(&entry.key().1);
            entry.insert(document).clone()
        }
    };
    (name.into(), document)
}

/// Returns the documents that kubectl or an earlier version has applied already.
fn applied_documents(applied: &[Applied], argo_cds: &[Value]) -> Documents {
    let document = |(_, object): &Applied| {
        let (name, label) = (name(object), object["metadata"]["labels"][LABEL].as_str());
        let document = Document::new(&name, label, &object.to_string(), || {
            let is_addition = argo_cds.iter().any(|it| self::name(it) == name);
            if is_addition { Owner::ArgoCd } else { Owner::Unknown }
        });
        (name.into(), document.into())
    };
    applied.iter().map(document).collect()
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
    for feature in Feature::value_variants().iter().filter(|it| **it != INDEPENDENT) {
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
fn effective(model: &Model) -> Documents {
    let mut documents = model.documents.clone();
    documents.remove(SETTINGS);
    documents
}

#[test]
fn every_set_of_features_adds_up() -> Result<()> {
    let sets = feature_sets();
    assert_eq!(
        sets.len(),
        1_199,
        "the sets of the documentation, without the empty one"
    );
    let mut known = Known::default();
    let mut objects_of = |features: BTreeSet<Feature>| {
        known.documents(&InstallOptions {
            features,
            ..InstallOptions::everything(NAMESPACE)
        })
    };
    let all = Feature::value_variants().iter().copied();
    let mut together = objects_of(all.clone().filter(|it| *it != INDEPENDENT).collect());
    for (name, document) in objects_of([INDEPENDENT].into()) {
        assert_eq!(
            together.insert(name.clone(), document),
            None,
            "{name} has another feature"
        );
    }
    assert_eq!(together, objects_of(all.collect()));
    for start in StartingPoint::ALL {
        let objects = start.objects()?;
        let (applied, _) = start.installed()?;
        let base = Model::new(&objects).with(applied_documents(&applied, &objects));
        check_sets(start, &base, &sets, &mut known)?;
    }
    Ok(())
}

/// Checks that all features of a set at once give the same as one after the other, in both orders, and that a second run of each
/// changes nothing.
fn check_sets(start: StartingPoint, base: &Model, sets: &[BTreeSet<Feature>], known: &mut Known) -> Result<()> {
    // The last feature of a set is added to the set before it, which was checked before.
    let mut by_order: [BTreeMap<BTreeSet<Feature>, Model>; 2] = Default::default();
    for set in sets {
        let refused = set.iter().find_map(|feature| start.refuses(&feature_name(*feature)));
        let mut at_once = base.clone();
        match (at_once.install(set, known), refused) {
            (Ok(()), None) => {}
            (Err(problems), Some(_)) => {
                ensure!(
                    at_once.documents == base.documents,
                    "{start:?} {set:?}: {problems:?}, but something was written"
                );
                continue;
            }
            // The settings of Argo CD, which the model does not have, are the reason.
            (Ok(()), Some(_)) if start == StartingPoint::HighlyAvailable => continue,
            (result, _) => bail!("{start:?} {set:?}: {result:?}"),
        }
        check_state(base, &at_once, known).with_context(|| format!("{start:?} {set:?}"))?;
        let mut again = at_once.clone();
        again.install(set, known).expect("it was installed");
        ensure!(
            again.documents == at_once.documents,
            "{start:?} {set:?}: a second run changes something"
        );
        for (reverse, models) in by_order.iter_mut().enumerate() {
            let (before, last) = last_step(set, reverse == 1);
            let mut model = models.get(&before).unwrap_or(base).clone();
            let last = BTreeSet::from([last]);
            model.install(&last, known).expect("its set was installed");
            let context = || format!("{start:?} {set:?}: {last:?} after {before:?}");
            if model.documents == at_once.documents {
                model = at_once.clone();
            } else {
                ensure!(
                    effective(&model) == effective(&at_once),
                    "{}: differs from all at once",
                    context()
                );
                check_state(base, &model, known).with_context(context)?;
            }
            let mut again = model.clone();
            again.install(&last, known).expect("it was installed");
            ensure!(
                again.documents == model.documents,
                "{}: a second run changes something",
                context()
            );
            models.insert(set.clone(), model);
        }
    }
    Ok(())
}

/// Checks that what was there is there, and that `uninstall` would remove the rest.
fn check_state(base: &Model, model: &Model, known: &mut Known) -> Result<()> {
    for (was, is) in base.base.iter().zip(model.workloads().iter()) {
        ensure!(contains(is, was), "{} has lost fields", name(was));
    }
    for name in base.documents.keys() {
        ensure!(model.documents.contains_key(name), "{name} is gone");
    }
    let left = model.left_by_uninstall(known);
    ensure!(left.is_empty(), "uninstall leaves {left:?}");
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
    let order: Vec<Feature> = Feature::value_variants().to_vec();
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
        let mut model = Model::new(&base).with(applied_documents(&applied, &base));
        for feature in order {
            check_step(&installation, start, feature, &base, &mut on, &mut model)
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
    model: &mut Model,
) -> Result<()> {
    let feature_name = feature_name(feature);
    let words = ["install", "-n", NAMESPACE, "--features", &feature_name];
    if let Some(error) = start.refuses(&feature_name) {
        let earlier = live(installation, start)?;
        let printed = installation.run_err(&words)?;
        ensure!(printed.starts_with(error), "{printed}");
        ensure!(live(installation, start)? == earlier, "something was written");
        return Ok(());
    }
    installation.run_ok(&words)?;
    on.extend(with_implied([feature]));
    let is = live(installation, start)?;
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
    check_second_run(&installation.run_ok(&words)?)?;
    // Their documents are one in the resource of the operator.
    if start != StartingPoint::Operator {
        model
            .install(&BTreeSet::from([feature]), &mut Known::default())
            .map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
        for expected in model.workloads().iter() {
            let found = is
                .iter()
                .find(|it| name(it) == name(expected))
                .context("no such workload")?;
            ensure!(
                contains(&found["spec"], &expected["spec"]) && names(found) == names(expected),
                "{} is not as in the model: {:#}\n{:#}",
                name(found),
                found["spec"],
                expected["spec"]
            );
        }
    }
    Ok(())
}

fn feature_name(feature: Feature) -> String {
    let value = feature.to_possible_value();
    value.expect("every feature has a name").get_name().to_owned()
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
    let has_sidecar = on.contains(&Feature::Plugin) || start == StartingPoint::HandWrittenSidecar;
    ensure!(with_sidecar.len() == usize::from(has_sidecar), "{with_sidecar:?}");
    ensure!(
        with_sidecar.iter().all(|it| it.ends_with("repo-server")),
        "{with_sidecar:?}"
    );
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
        for object in objects.iter_mut().filter(|it| it["kind"] != "ConfigMap") {
            object["metadata"]["ownerReferences"][0]["uid"] = resource["metadata"]["uid"].clone();
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

/// Returns Argo CD's objects on the hub.
fn live(installation: &Installation, start: StartingPoint) -> Result<Vec<Value>> {
    let mut kinds = "deployments,statefulsets,configmaps".to_owned();
    if start == StartingPoint::Operator {
        kinds.push_str(",argocds");
    }
    let list = ["get", &kinds, "-n", NAMESPACE, "-o", "json"];
    let found: Value = serde_json::from_str(&installation.hub.kubectl(&list)?)?;
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
