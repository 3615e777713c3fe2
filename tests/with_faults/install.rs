//! Tests of `install` and `uninstall` on a real hub with Argo CD's own objects: the hub is the same before and after, and the
//! installation works in between. There is no kubelet: no Pods run for the Deployments.

mod charted;
mod elsewhere;
mod helm;
mod matrix;
mod operated;
mod policy;
mod principal;
mod upgrade;
mod work;

use crate::stage::take_turn;
use anyhow::{Context, Result, ensure};
use hub_state::model::shipped;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testbed::{Arguments, Borrowed, Hub, ObjectRef, Parts, Shared, wait};
use tokio::sync::{Mutex, MutexGuard};

const ALL: &str = "--features=plugin,project,policy,applicationset,argocd-rbac,controller,agent-admission,pull,\
                   argocd-addon,cluster-secrets,report,gitopscluster,argocd-agent,ui,live";

/// The image in our files, which is not published.
const IMAGE: &str = concat!(
    "--image=ghcr.io/argocd-ocm-cmp/argocd-ocm-cmp:",
    env!("CARGO_PKG_VERSION")
);

/// The key of our health check in argocd-cm.
const HEALTH: &str = "resource.customizations.health.work.open-cluster-management.io_ManifestWork";

/// A separate hub, for one test at a time, because an installation affects all of it.
pub(crate) struct Installation {
    pub(crate) hub: Borrowed<CleanHub>,
    /// All objects of the hub when the test got it.
    before: Vec<(String, Value)>,
    _turn: MutexGuard<'static, ()>,
}

/// A hub without an installation.
pub(crate) struct CleanHub {
    hub: Hub,
    names: BTreeSet<String>,
}

impl Deref for CleanHub {
    type Target = Hub;

    fn deref(&self) -> &Hub {
        &self.hub
    }
}

impl CleanHub {
    async fn start() -> Result<Self> {
        let hub = start().await?;
        let names = all(&hub)?.into_iter().map(|(name, _)| name).collect();
        Ok(Self { hub, names })
    }

    /// Returns false if a test that failed has left objects or fields on the hub.
    fn is_clean(&self) -> bool {
        let is_left = |(name, object): &(String, Value)| !self.names.contains(name) || !of_ours(object).is_empty();
        all(&self.hub).is_ok_and(|objects| !objects.iter().any(is_left))
    }
}

/// Returns a hub with an Argo CD that has an argocd-server.
async fn installation() -> Result<Installation> {
    static HUBS: [(Mutex<()>, Shared<CleanHub>); 2] = [const { (Mutex::const_new(()), Shared::new()) }; 2];
    let (turn, hub) = take_turn(&HUBS).await;
    let hub = hub.borrow_if(async |hub| hub.is_clean(), CleanHub::start).await?;
    let before = all(&hub)?;
    Ok(Installation {
        hub,
        before,
        _turn: turn,
    })
}

async fn start() -> Result<Hub> {
    let hub = Hub::start().await?;
    let server = Parts::ensure()?
        .argocd_manifests()
        .join("base/server/argocd-server-deployment.yaml");
    hub.apply_file(&server, &["--server-side", "-n", "argocd"])?;
    hub.declare_managed_cluster("cluster1").await?;
    let authority = live::identity::create("cluster-proxy", Timestamp::now()).map_err(anyhow::Error::msg)?;
    hub.create_namespace("open-cluster-management-addon").await?;
    hub.apply(
        &ObjectRef::secret("open-cluster-management-addon", "proxy-server-ca")
            .with(json!({"data": {"ca.crt": authority["tls.crt"]}})),
    )
    .await?;
    Ok(hub)
}

/// Returns the manifests that `install` prints with these options.
fn printed(form: &str, options: &str) -> Result<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
    let output = command
        .args(["install", "--print", "-o", form, options, IMAGE])
        .output()?;
    Ok(String::from_utf8(output.stdout)?)
}

impl Installation {
    /// Checks that no object was written since it was read.
    fn check_unwritten(&self, before: &[(String, Value)]) -> Result<()> {
        for ((name, was), (_, object)) in before.iter().zip(self.all()?) {
            assert_eq!(version(was), version(&object), "{name} was written");
        }
        Ok(())
    }

    /// Runs the program with these words, as the administrator of the hub.
    /// Installs the image in our files, unless another is named.
    fn run(&self, words: &(impl Arguments + ?Sized)) -> Result<Output> {
        let words = words.words();
        let mut command = Command::new(env!("CARGO_BIN_EXE_argocd-ocm-cmp"));
        if words[0] == "install" && !words.iter().any(|word| word.starts_with("--image")) {
            command.args([words[0], IMAGE]).args(&words[1..]);
        } else {
            command.args(words);
        }
        command.arg("--kubeconfig").arg(self.hub.kubeconfig_path());
        Ok(command.env_clear().output()?)
    }

    /// Returns the output of a successful run.
    fn run_ok(&self, words: &(impl Arguments + ?Sized)) -> Result<String> {
        let output = self.run(words)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success() && errors.is_empty(),
            "{:?}: {errors}",
            words.words()
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Returns the error of a run that changes nothing.
    fn run_err(&self, words: &(impl Arguments + ?Sized)) -> Result<String> {
        let output = self.run(words)?;
        ensure!(
            output.status.code() == Some(1) && output.stdout.is_empty(),
            "{output:?}"
        );
        Ok(String::from_utf8(output.stderr)?)
    }

    /// Deletes the policy, which `uninstall` keeps if it was changed.
    fn without_policy(&self) -> Result<()> {
        let words = "delete configmap argocd-ocm-cmp-policy -n argocd --ignore-not-found";
        self.hub.kubectl(words).map(drop)
    }

    fn all(&self) -> Result<Vec<(String, Value)>> {
        all(&self.hub)
    }

    /// Waits until the hub has exactly the objects that it had when the test got it.
    async fn until_restored(&self) -> Result<()> {
        self.until(&self.before).await
    }

    /// Waits until the hub has exactly these objects.
    async fn until(&self, before: &[(String, Value)]) -> Result<()> {
        let names = |all: &[(String, Value)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let expected = names(before);
        let same = async || (names(&self.all().ok()?) == expected).then_some(());
        let same = wait::eventually("the hub has exactly the earlier objects", wait::DEADLINE, same).await;
        let differs = || {
            let (objects, mut difference) = (self.all().map(|all| names(&all)).unwrap_or_default(), String::new());
            for more in objects.iter().filter(|name| !expected.contains(name)) {
                let _ = write!(difference, "more: {more}; ");
            }
            for less in expected.iter().filter(|name| !objects.contains(name)) {
                let _ = write!(difference, "less: {less}; ");
            }
            difference
        };
        same.with_context(differs)?;
        for ((name, was), (_, object)) in before.iter().zip(self.all()?) {
            assert_eq!(without_history(was), without_history(&object), "{name}");
            assert_eq!(of_ours(was), of_ours(&object), "{name}");
        }
        Ok(())
    }
}

/// Returns all objects of the hub, by kind and name, except those that change by themselves.
fn all(hub: &Hub) -> Result<Vec<(String, Value)>> {
    const ATTEMPTS: usize = 20;
    // For a moment after the deletion of a CRD, the API server still names its kind.
    let was_deleted = |error: &anyhow::Error| {
        let error = error.to_string();
        error.contains("the server doesn't have a resource type")
            || error.contains("the server could not find the requested resource")
    };
    let mut list = listed(hub);
    for _ in 1..ATTEMPTS {
        if !list.as_ref().is_err_and(was_deleted) {
            break;
        }
        list = listed(hub);
    }
    let mut list: Value = serde_json::from_str(&list?)?;
    let items = list["items"].as_array_mut().context("items")?;
    let mut all: Vec<_> = items.iter_mut().map(|item| (name(item), item.take())).collect();
    // The API server renews these Leases.
    all.retain(|(name, _)| !name.starts_with("Lease kube-system/"));
    all.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(all)
}

/// Lists the objects of all kinds, except those that change by themselves.
fn listed(hub: &Hub) -> Result<String> {
    let kinds = hub.kubectl("api-resources --verbs=list -o name")?;
    let excluded = ["events", "componentstatuses", "apiservices", "endpoints"];
    let kinds: Vec<_> = kinds
        .lines()
        .filter(|kind| !excluded.iter().any(|name| kind.split('.').next() == Some(name)))
        .collect();
    let list = ["get", &kinds.join(","), "-A", "-o", "json", "--show-managed-fields"];
    hub.kubectl(&list)
}

fn named<'v>(list: &'v Value, name: &str) -> Option<&'v Value> {
    list.as_array()?.iter().find(|item| item["name"] == name)
}

/// Returns true if a Deployment has the sidecar with a policy, and its init container.
fn has_sidecar(repo_server: &Value) -> bool {
    let pod = &repo_server["spec"]["template"]["spec"];
    let is_policy_mounted = named(&pod["containers"], "argocd-ocm-cmp")
        .is_some_and(|container| named(&container["volumeMounts"], "argocd-ocm-cmp-policy").is_some());
    is_policy_mounted && named(&pod["initContainers"], "argocd-ocm-cmp-tools").is_some()
}

fn name(object: &Value) -> String {
    ObjectRef::of(object).to_string()
}

/// Returns an object without the number and the managers of its changes.
fn without_history(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for key in ["resourceVersion", "generation", "managedFields"] {
        metadata.remove(key);
    }
    object
}

/// Returns those of our field managers that own a part of the object.
fn of_ours(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let managers = entries.filter_map(|entry| entry["manager"].as_str());
    managers
        .filter(|manager| manager.starts_with("argocd-ocm-cmp"))
        .collect()
}

/// Divides the output of a dry run into the lines about objects, and the changes of Argo CD's own objects.
fn divided(output: &str) -> (&str, &str) {
    output.split_at(output.find("--- live: ").unwrap_or(output.len()))
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[tokio::test]
async fn install_is_idempotent_and_uninstall_is_complete() -> Result<()> {
    let installation = installation().await?;
    let before = &installation.before;
    let tried = installation.run_ok(&["install", "--dry-run", ALL])?;
    installation.check_unwritten(before)?;
    let lines = installation.run_ok(&["install", ALL])?;
    let (tried, changes) = divided(&tried);
    for name in "configmap/argocd-cm deployment.apps/argocd-repo-server deployment.apps/argocd-server".split(' ') {
        let header = format!("--- live: {name}\n+++ changed: {name}\n@@ ");
        assert!(changes.contains(&header), "{name}: {changes}");
    }
    assert!(
        changes
            .lines()
            .any(|line| line.starts_with('+') && line.ends_with("name: argocd-ocm-cmp")),
        "{changes}"
    );
    let is_removal = |line: &&str| line.starts_with('-') && !line.starts_with("--- live: ");
    assert_eq!(changes.lines().find(is_removal), None, "{changes}");
    for noise in ["managedFields:", "resourceVersion:", "generation:"] {
        let is_noise = |line: &str| line.trim_start_matches(['+', '-', ' ']).starts_with(noise);
        assert!(!changes.lines().any(is_noise), "{noise} {changes}");
    }
    let would_be = tried.replace(" (dry run)", "");
    assert!(
        tried.contains(" created (dry run)\n") && lines.starts_with(&would_be),
        "{tried}\n{lines}"
    );
    for line in [
        "customresourcedefinition.apiextensions.k8s.io/gitopsclusters.apps.open-cluster-management.io created",
        "configmap/argocd-cm configured",
        "deployment.apps/argocd-repo-server configured",
        "deployment.apps/argocd-server configured",
        "deployment.apps/argocd-ocm-cmp-controller created",
        "appproject.argoproj.io/managed-clusters created",
    ] {
        assert!(lines.lines().any(|printed| printed == line), "{line}: {lines}");
    }
    assert!(!lines.contains("unchanged"), "{lines}");

    let installed = installation.all()?;
    let lines = installation.run_ok(&["install", ALL])?;
    let is_unchanged = |line: &str| {
        [" unchanged", "-policy kept"].iter().any(|end| line.ends_with(end)) || line.contains(": redis.server kept: ")
    };
    assert!(lines.lines().all(is_unchanged), "{lines}");
    installation.check_unwritten(&installed)?;

    let tried = installation.run_ok(&["uninstall", "--dry-run"])?;
    let (tried, changes) = divided(&tried);
    assert!(tried.lines().all(|line| line.ends_with(" (dry run)")), "{tried}");
    assert!(
        changes
            .lines()
            .any(|line| line.starts_with('-') && line.ends_with("name: argocd-ocm-cmp")),
        "{changes}"
    );
    installation.check_unwritten(&installed)?;
    let lines = installation.run_ok(&["uninstall"])?;
    assert_eq!(lines, tried.replace(" (dry run)", ""));
    installation.until_restored().await?;
    assert_eq!(
        installation.run_ok(&["uninstall"])?,
        "argocd-ocm-cmp is not installed in namespace argocd\n"
    );
    Ok(())
}

#[tokio::test]
async fn fields_set_by_others_are_not_overwritten_without_force() -> Result<()> {
    let installation = installation().await?;
    installation.run_ok(&["install"])?;
    let hub = &installation.hub;
    let controller = "deployment argocd-ocm-cmp-controller -n argocd";
    hub.kubectl(&format!("scale {controller} --replicas=5"))?;
    hub.kubectl(&format!("set resources {controller} -c controller --limits=memory=1Gi"))?;
    let set_links = |value: bool| {
        let links = json!({"spec": {"template": {"spec": {"enableServiceLinks": value}}}});
        hub.kubectl(&format!("patch {controller} --patch {links}")).map(drop)
    };
    set_links(true)?;
    let before = installation.all()?;
    let error = installation.run_err(&["install", "--image=example.com/other:1"])?;
    assert_eq!(
        error,
        "error: Deployment argocd/argocd-ocm-cmp-controller: .spec.template.spec.enableServiceLinks is managed by \
         \"kubectl-patch\" with another value: undo that change, or pass --force-conflicts to take it over\n"
    );
    installation.check_unwritten(&before)?;
    set_links(false)?;
    let lines = installation.run_ok(&["install"])?;
    let line = "deployment.apps/argocd-ocm-cmp-controller: resources of container controller kept: for ours, pass --force-conflicts\n";
    assert!(lines.contains(line), "{lines}");
    let path = "jsonpath={.spec.replicas},{.spec.template.spec.containers[0].resources.limits.memory}";
    let get = || hub.kubectl(&format!("get {controller} -o {path}"));
    assert_eq!(get()?, "5,1Gi");
    set_links(true)?;
    let lines = installation.run_ok(&["install", "--force-conflicts"])?;
    assert_eq!(
        lines.lines().filter(|line| line.ends_with(" configured")).count(),
        1,
        "{lines}"
    );
    assert_eq!(get()?, "5,512Mi");
    installation.run_ok(&["uninstall"]).map(drop)
}

#[tokio::test]
async fn install_without_argo_cd_names_the_missing_parts() -> Result<()> {
    let installation = installation().await?;
    let missing = "install Argo CD first, or pass its namespace with --namespace\n";
    assert_eq!(
        installation.run_err(&["install", "-n", "nowhere"])?,
        format!("error: Namespace nowhere does not exist on the hub: {missing}")
    );
    let error = installation.run_err(&["install", "-n", "cluster1", "--features=plugin,ui"])?;
    let missing_object = |what: &str| format!("error: {what} does not exist: {missing}");
    let all = [
        "ConfigMap cluster1/argocd-cm",
        "Deployment cluster1/argocd-repo-server",
        "Deployment cluster1/argocd-server",
    ];
    assert_eq!(error, all.map(missing_object).concat());
    installation.until_restored().await
}

#[test]
fn redis_has_the_version_of_argo_cds_manifests() -> Result<()> {
    let manifests = fs::read_to_string(Parts::ensure()?.argocd_manifests().join("install.yaml"))?;
    let image = format!("image: {}", shipped::REDIS);
    assert!(manifests.lines().any(|line| line.trim() == image), "{image}");
    Ok(())
}

/// Returns an Application, as a user writes it.
fn application(name: &str, project: &str) -> Value {
    ObjectRef::application(name).with(json!({
        "spec": {"project": project, "destination": {}, "source": {"repoURL": "https://example.com/git"}},
    }))
}

fn read_shipped(file: &str) -> Result<String> {
    fs::read_to_string(shipped(file)).with_context(|| file.to_owned())
}
