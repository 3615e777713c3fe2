//! The basic pull model between real Argo CDs: Applications of the hub that the Argo CD of a managed cluster runs.
//!
//! The controller runs with the rights and settings of the shipped files, and whatever is said here of the hub's Applications is
//! what it has written there: the hub's own Argo CD leaves them alone.

mod acm;
mod deletion;
mod delivery;
mod moving;
mod names;
mod quiet;
mod requests;
mod rights;
mod sets;
mod switching;
mod tenancy;
mod trouble;

use crate::controller::{Controller, health};
use crate::stage::shipped;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::{ArgoCd, GitRepository, Hub, ManagedCluster, ManagedClusterOptions, ObjectRef, Recording, wait};
use tokio::sync::OnceCell;

/// The peers' names.
const PULL: &str = "apps.open-cluster-management.io/pull-to-ocm-managed-cluster";
const CLUSTER: &str = "apps.open-cluster-management.io/ocm-managed-cluster";
const CLUSTER_NAMESPACE: &str = "apps.open-cluster-management.io/ocm-managed-cluster-app-namespace";
const HUB_NAMESPACE: &str = "apps.open-cluster-management.io/hub-application-namespace";
const HUB_NAME: &str = "apps.open-cluster-management.io/hub-application-name";

const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";
const REFRESH: &str = "argocd.argoproj.io/refresh";
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

const APPLICATION: (&str, &str) = ("argoproj.io/v1alpha1", "Application");

/// The label by which a test finds what is its own.
const TEST: &str = "test";

/// What lets ApplicationSets ask the Placement of the peers' examples for the clusters that are of the pull model here.
const PLACEMENT: &str = "\
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata:
  name: global
  namespace: argocd
spec:
  clusterSet: global
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: app-placement
  namespace: argocd
spec:
  predicates:
  - requiredClusterSelector:
      labelSelector:
        matchLabels:
          pull: 'true'
";

/// A hub of the pull model, and two managed clusters with an Argo CD each.
struct Stage {
    hub: Hub,
    cluster1: ManagedCluster,
    cluster2: ManagedCluster,
    _controller: Controller,
}

/// The stage that the tests here share, where it can be had. It is started by the first that asks, and ends with the program.
async fn stage() -> Result<Option<&'static Stage>> {
    static STAGE: OnceCell<Stage> = OnceCell::const_new();
    if !testbed::available() {
        return Ok(None);
    }
    STAGE.get_or_try_init(|| Box::pin(set_up())).await.map(Some)
}

async fn set_up() -> Result<Stage> {
    let hub = Hub::start().await?;
    let file = shipped("appset_placement.yaml");
    hub.kubectl(&["apply", "-f", file.to_str().context("a plain path")?])?;
    hub.apply_yaml(PLACEMENT)?;
    serve_all_namespaces(&hub).await?;
    let (cluster1, cluster2, argocd, ocm, controller) = tokio::join!(
        add_cluster(&hub, "cluster1"),
        add_cluster(&hub, "cluster2"),
        hub.start_argocd(ArgoCd::default().with_rolling_sync()),
        hub.start_ocm_controllers(),
        controller(&hub, &[])
    );
    argocd?;
    ocm?;
    permit_all_namespaces(&hub).await?;
    Ok(Stage {
        cluster1: cluster1?,
        cluster2: cluster2?,
        _controller: controller?,
        hub,
    })
}

/// Starts the controller as it is shipped for the pull model and cluster Secrets, with these settings besides.
async fn controller(hub: &Hub, settings: &[(&str, &str)]) -> Result<Controller> {
    let rights: [&[&str]; 2] = [
        &[
            "create",
            "manifestworks.work.open-cluster-management.io",
            "--all-namespaces",
        ],
        &["create", "secrets", "--namespace=argocd"],
    ];
    let files = [
        "report_crd.yaml",
        "deploy_pull.yaml",
        "deploy_report.yaml",
        "deploy_cluster_secrets.yaml",
    ];
    let controllers = "application-status,pull,cluster-secrets,application-set-report";
    let settings = [&[("OCM_CONTROLLERS", controllers)], settings].concat();
    Controller::start_with(hub, &files, &settings, &rights).await
}

/// A managed cluster with an Argo CD that serves Applications in any namespace, and an agent that may bring them.
async fn add_cluster(hub: &Hub, name: &str) -> Result<ManagedCluster> {
    let environment = [
        // An error is shown at the first refresh, not after three minutes.
        ("ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS", "0"),
        ("ARGOCD_APPLICATION_NAMESPACES", "*"),
        // A branch is looked up in Git again at every comparison. Else what was found is good for three minutes.
        ("ARGOCD_RECONCILIATION_TIMEOUT", "5s"),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = ManagedClusterOptions {
        argocd: Some(ArgoCd {
            environment: environment.to_vec(),
            ..ArgoCd::default()
        }),
        ..ManagedClusterOptions::default()
    };
    let cluster = hub.add_managed_cluster(name, options).await?;
    let file = shipped("pull_cluster_rbac.yaml");
    cluster.kubectl(&["apply", "-f", file.to_str().context("a plain path")?])?;
    permit_all_namespaces(&cluster).await?;
    // Roles are aggregated a moment later, and each failure would double the time until the agent tries again.
    let agent = "--as=system:serviceaccount:open-cluster-management-agent:klusterlet-work-sa";
    let question = [
        "auth",
        "can-i",
        "create",
        "applications.argoproj.io",
        "-n=argocd",
        agent,
    ];
    let may = async || cluster.kubectl(&question).ok();
    wait::eventually("the agent may bring Applications", wait::DEADLINE, may).await?;
    let selected = json!({"metadata": {"labels": {"pull": "true"}}});
    hub.patch(&managed_cluster(name), &selected).await?;
    Ok(cluster)
}

/// Has the hub's Argo CD serve Applications of all namespaces but `pull-closed`.
async fn serve_all_namespaces(hub: &Hub) -> Result<()> {
    let parameters = ObjectRef::config_map("argocd", "argocd-cmd-params-cm");
    let all = json!({"data": {"application.namespaces": "/^(?!pull-closed$)/"}});
    hub.patch(&parameters, &all).await.map(drop)
}

/// Permits Applications of all namespaces in the AppProject `default`, which Argo CD makes when it starts.
async fn permit_all_namespaces(plane: &testbed::ControlPlane) -> Result<()> {
    let project = ObjectRef::namespaced("argoproj.io/v1alpha1", "AppProject", "argocd", "default");
    plane.wait_for(&project, |_| true).await?;
    plane
        .patch(&project, &json!({"spec": {"sourceNamespaces": ["*"]}}))
        .await
        .map(drop)
}

fn managed_cluster(name: &str) -> ObjectRef {
    ObjectRef::cluster("cluster.open-cluster-management.io/v1", "ManagedCluster", name)
}

/// An Application of the hub that is synced automatically, for `cluster1`, with a finalizer. Its guestbook goes into the namespace
/// of its name.
fn application(name: &str, git: &GitRepository) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": "argocd",
            "labels": {PULL: "true", TEST: name},
            "annotations": {CLUSTER: "cluster1", SKIP_RECONCILE: "true"},
            "finalizers": [FINALIZER],
        },
        "spec": {
            "project": "default",
            "source": {"repoURL": git.url(), "targetRevision": "main", "path": "guestbook"},
            // The only cluster that the hub's Argo CD knows by itself. Elsewhere it would say so, as a condition.
            "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
            "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"]},
        },
    })
}

/// An Application of the hub with a repository of its own, which has the guestbook.
struct Pulled {
    stage: &'static Stage,
    git: GitRepository,
    /// The commit with which it began.
    commit: String,
    /// Its name, and the namespace into which the guestbook goes.
    name: String,
    object: Value,
}

impl Pulled {
    /// The Application, which is to be created.
    fn new(stage: &'static Stage, name: &str) -> Result<Self> {
        let git = GitRepository::new()?;
        let commit = git.commit_folder(&shipped("guestbook"), "guestbook")?;
        let object = application(name, &git);
        Ok(Self {
            stage,
            git,
            commit,
            name: name.to_owned(),
            object,
        })
    }

    /// The same that waits to be synced.
    fn by_hand(mut self) -> Self {
        self.object["spec"]["syncPolicy"]["automated"] = Value::Null;
        self
    }

    async fn create(&self) -> Result<Value> {
        self.stage.hub.create(&self.object).await
    }

    /// Creates it and waits until it runs.
    async fn start(self) -> Result<Self> {
        self.create().await?;
        self.runs(&self.commit).await?;
        Ok(self)
    }

    /// The Application of the hub, and of the managed cluster where nothing else is said.
    fn application(&self) -> ObjectRef {
        ObjectRef::of(&self.object)
    }

    async fn on_hub(&self) -> Result<Value> {
        self.stage.hub.get(&self.application()).await?.context("it is there")
    }

    /// Changes the Application of the hub.
    async fn patch(&self, patch: &Value) -> Result<Value> {
        self.stage.hub.patch(&self.application(), patch).await
    }

    /// Waits until the hub says that this commit runs well.
    async fn runs(&self, commit: &str) -> Result<Value> {
        let hub = &self.stage.hub;
        hub.wait_for(&self.application(), |app| runs(app, commit)).await
    }

    /// The works that carry it.
    async fn works(&self) -> Result<Vec<Value>> {
        works_of(&self.stage.hub, &self.application()).await
    }

    /// The only work that carries it.
    async fn work(&self) -> Result<ObjectRef> {
        let works = self.works().await?;
        ensure!(works.len() == 1, "not one work: {works:#?}");
        Ok(ObjectRef::of(&works[0]))
    }

    /// The Deployment of the guestbook.
    fn guestbook(&self) -> ObjectRef {
        ObjectRef::deployment(&self.name, "guestbook-ui")
    }

    /// Commits a guestbook with so many replicas.
    fn scale(&self, replicas: u32) -> Result<String> {
        scale(&self.git, replicas)
    }

    /// Records the Applications of that label on an API server: both the hub's and the cluster's have it.
    async fn record(&self, plane: &testbed::ControlPlane) -> Result<Recording> {
        let label = format!("{TEST}={}", self.name);
        plane.record(APPLICATION.0, APPLICATION.1, &label).await
    }

    /// Removes the Application, and waits until it is gone with all that goes with it.
    async fn end(self) -> Result<()> {
        let hub = &self.stage.hub;
        hub.delete(&self.application()).await?;
        hub.wait_gone(&self.application()).await
    }
}

/// Whether an Application says that this commit has been synced and runs well.
fn runs(application: &Value, commit: &str) -> bool {
    let status = &application["status"];
    health(application) == "Healthy"
        && status["sync"]["status"] == "Synced"
        && status["sync"]["revision"] == commit
        && status["operationState"]["phase"] == "Succeeded"
        && status["operationState"]["syncResult"]["revision"] == commit
}

/// Commits the guestbook with so many replicas.
fn scale(git: &GitRepository, replicas: u32) -> Result<String> {
    let manifest = std::fs::read_to_string(shipped("guestbook/deployment.yaml"))?;
    let scaled = manifest.replace("replicas: 1", &format!("replicas: {replicas}"));
    git.commit(&[("guestbook/deployment.yaml", &scaled)])
}

/// The works of the hub that say that they carry this Application.
async fn works_of(hub: &Hub, application: &ObjectRef) -> Result<Vec<Value>> {
    let mut works = hub.list("work.open-cluster-management.io/v1", "ManifestWork").await?;
    works.retain(|work| {
        let annotations = &work["metadata"]["annotations"];
        annotations[HUB_NAME] == *application.name
            && annotations[HUB_NAMESPACE] == *application.namespace.as_deref().unwrap_or_default()
    });
    Ok(works)
}

/// Waits until the guestbook runs with so many replicas.
async fn serves(cluster: &ManagedCluster, guestbook: &ObjectRef, replicas: u32) -> Result<Value> {
    let serves = |it: &Value| it["status"]["availableReplicas"] == replicas && it["status"]["replicas"] == replicas;
    cluster.wait_for(guestbook, serves).await
}
