//! Tests of the basic pull model between real Argo CDs: Applications of the hub that the Argo CD of a managed cluster runs.
//!
//! The controller runs with the permissions and settings of the shipped files, and wrote every status of the hub's Applications:
//! the hub's own Argo CD skips them.

mod acm;
mod deletion;
mod delivery;
mod names;
mod quiet;
mod requests;
mod rights;
mod sets;
mod switching;
mod tenancy;
mod trouble;

use crate::controller::{Controller, health};
use crate::stage::{apply, shipped};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testbed::application::{CLUSTER, HUB_NAME, HUB_NAMESPACE, PULL, SKIP_RECONCILE};
use testbed::{
    ArgoCd, Borrowed, GitRepository, Hub, ManagedCluster, ManagedClusterOptions, ObjectRef, Recording, Shared,
};

const REFRESH: &str = "argocd.argoproj.io/refresh";
const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

const APPLICATION: (&str, &str) = ("argoproj.io/v1alpha1", "Application");

/// The label of a test's own objects.
const TEST: &str = "test";

/// The permissions with which ApplicationSets read the Placement of argocd-pull-integration's examples, for the clusters of the
/// pull model here.
const PLACEMENT: &str = "\
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: argocd}
spec: {clusterSet: global}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: app-placement, namespace: argocd}
spec: {predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {pull: 'true'}}}}]}
";

/// A hub of the pull model, and two managed clusters with an Argo CD each.
struct Stage {
    hub: Hub,
    cluster1: ManagedCluster,
    cluster2: ManagedCluster,
    _controller: Controller,
}

/// Returns the stage that the tests here share.
async fn stage() -> Result<Borrowed<Stage>> {
    static STAGE: Shared<Stage> = Shared::new();
    STAGE.borrow(|| Box::pin(set_up())).await
}

async fn set_up() -> Result<Stage> {
    let hub = Hub::start().await?;
    apply(&hub, "deploy/appset_placement.yaml")?;
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

/// Starts the controller as shipped for the pull model and cluster Secrets, with these additional settings.
async fn controller(hub: &Hub, settings: &[(&str, &str)]) -> Result<Controller> {
    let permissions: [&str; 2] = [
        "create manifestworks.work.open-cluster-management.io --all-namespaces",
        "create secrets --namespace=argocd",
    ];
    let files =
        "deploy/report_crd.yaml deploy/deploy_pull.yaml deploy/deploy_report.yaml deploy/deploy_cluster_secrets.yaml";
    let controllers = "application-status,pull,cluster-secrets,application-set-report";
    let settings = [&[("ARGOCD_OCM_CMP_CONTROLLERS", controllers)], settings].concat();
    Controller::start_with(hub, files, &settings, &permissions).await
}

/// Adds a managed cluster with an Argo CD that serves Applications in any namespace, and an agent that is permitted to create
/// them.
async fn add_cluster(hub: &Hub, name: &str) -> Result<ManagedCluster> {
    let environment = [
        // An error is shown at the first refresh, not after three minutes.
        ("ARGOCD_REPO_ERROR_GRACE_PERIOD_SECONDS", "0"),
        ("ARGOCD_APPLICATION_NAMESPACES", "*"),
        // A branch is resolved in Git at every comparison. Otherwise a result is cached for three minutes.
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
    apply(&cluster, "deploy/pull_cluster_rbac.yaml")?;
    permit_all_namespaces(&cluster).await?;
    // Roles are aggregated with a delay, and each failure would double the agent's backoff.
    let may = ["create applications.argoproj.io -n=argocd"];
    cluster
        .wait_for_permissions("open-cluster-management-agent", "klusterlet-work-sa", &may)
        .await?;
    let selected = json!({"metadata": {"labels": {"pull": "true"}}});
    hub.patch(&ObjectRef::managed_cluster(name), &selected).await?;
    Ok(cluster)
}

/// Makes the hub's Argo CD serve Applications of all namespaces but `pull-closed`.
async fn serve_all_namespaces(hub: &Hub) -> Result<()> {
    let parameters = ObjectRef::config_map("argocd", "argocd-cmd-params-cm");
    let all = json!({"data": {"application.namespaces": "/^(?!pull-closed$)/"}});
    hub.patch(&parameters, &all).await.map(drop)
}

/// Permits Applications of all namespaces in the AppProject `default`, which Argo CD creates at its start.
async fn permit_all_namespaces(plane: &testbed::ControlPlane) -> Result<()> {
    let project = ObjectRef::app_project("default");
    plane.wait_for(&project, |_| true).await?;
    plane
        .patch(&project, &json!({"spec": {"sourceNamespaces": ["*"]}}))
        .await
        .map(drop)
}

/// Returns an Application of the hub with automated sync, for `cluster1`, with a finalizer. Its guestbook is in the namespace of
/// its name.
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
            // The only cluster that the hub's Argo CD knows without a Secret. For others it would add a condition.
            "destination": {"server": "https://kubernetes.default.svc", "namespace": name},
            "syncPolicy": {"automated": {"prune": true}, "syncOptions": ["CreateNamespace=true"]},
        },
    })
}

/// Creates an ApplicationSet without Applications, and makes it the owner of this one.
async fn own_by_set(hub: &Hub, application: &mut Value) -> Result<()> {
    let set = ObjectRef::application_set("appset-1").with(json!({
        "spec": {"generators": [], "template": {"metadata": {}, "spec": {"project": "", "destination": {}}}},
    }));
    let uid = hub.create(&set).await?["metadata"]["uid"].take();
    application["metadata"]["ownerReferences"] = json!([{
        "apiVersion": set["apiVersion"], "kind": set["kind"], "name": "appset-1", "uid": uid, "controller": true,
    }]);
    Ok(())
}

/// An Application of the hub with its own repository, which has the guestbook.
struct PulledApplication<'s> {
    stage: &'s Stage,
    git: GitRepository,
    /// The first commit.
    commit: String,
    /// Its name, which is also the namespace of the guestbook.
    name: String,
    object: Value,
}

impl<'s> PulledApplication<'s> {
    /// Returns the Application, to be created.
    fn new(stage: &'s Stage, name: &str) -> Result<Self> {
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

    /// Removes automated sync.
    fn by_hand(mut self) -> Self {
        self.object["spec"]["syncPolicy"]["automated"] = Value::Null;
        self
    }

    async fn create(&self) -> Result<Value> {
        self.stage.hub.create(&self.object).await
    }

    /// Creates it and waits until it is healthy.
    async fn start(self) -> Result<Self> {
        self.create().await?;
        self.runs(&self.commit).await?;
        Ok(self)
    }

    /// Returns the identity of the Application on the hub, and by default on the managed cluster.
    fn application(&self) -> ObjectRef {
        ObjectRef::of(&self.object)
    }

    async fn on_hub(&self) -> Result<Value> {
        self.stage.hub.read(&self.application()).await
    }

    /// Patches the Application of the hub.
    async fn patch(&self, patch: &Value) -> Result<Value> {
        self.stage.hub.patch(&self.application(), patch).await
    }

    /// Waits until the hub shows this commit as synced and healthy.
    async fn runs(&self, commit: &str) -> Result<Value> {
        let hub = &self.stage.hub;
        hub.wait_for(&self.application(), |app| runs(app, commit)).await
    }

    /// Returns the works with the Application.
    async fn works(&self) -> Result<Vec<Value>> {
        works_of(&self.stage.hub, &self.application()).await
    }

    /// Returns the only work with the Application.
    async fn work(&self) -> Result<ObjectRef> {
        let works = self.works().await?;
        ensure!(works.len() == 1, "not one work: {works:#?}");
        Ok(ObjectRef::of(&works[0]))
    }

    /// Returns the Deployment of the guestbook.
    fn guestbook(&self) -> ObjectRef {
        ObjectRef::deployment(&self.name, "guestbook-ui")
    }

    /// Commits a guestbook with this number of replicas.
    fn scale(&self, replicas: u32) -> Result<String> {
        scale(&self.git, replicas)
    }

    /// Records the Applications with the test's label on an API server: those of the hub and of the cluster have it.
    async fn record(&self, plane: &testbed::ControlPlane) -> Result<Recording> {
        let label = format!("{TEST}={}", self.name);
        plane.record(APPLICATION.0, APPLICATION.1, &label).await
    }

    /// Deletes the Application, and waits until it and all its objects are deleted.
    async fn end(self) -> Result<()> {
        let hub = &self.stage.hub;
        hub.delete_and_wait(&self.application()).await
    }
}

/// Returns true if an Application is synced to this commit and healthy.
fn runs(application: &Value, commit: &str) -> bool {
    let status = &application["status"];
    health(application) == "Healthy"
        && status["sync"]["status"] == "Synced"
        && status["sync"]["revision"] == commit
        && status["operationState"]["phase"] == "Succeeded"
        && status["operationState"]["syncResult"]["revision"] == commit
}

/// Commits the guestbook with this number of replicas.
fn scale(git: &GitRepository, replicas: u32) -> Result<String> {
    let manifest = std::fs::read_to_string(shipped("guestbook/deployment.yaml"))?;
    let scaled = manifest.replace("replicas: 1", &format!("replicas: {replicas}"));
    git.commit(&[("guestbook/deployment.yaml", &scaled)])
}

/// Returns the works of the hub that are annotated with this Application.
async fn works_of(hub: &Hub, application: &ObjectRef) -> Result<Vec<Value>> {
    let mut works = hub.works().await?;
    works.retain(|work| {
        let annotations = &work["metadata"]["annotations"];
        annotations[HUB_NAME] == *application.name
            && annotations[HUB_NAMESPACE] == *application.namespace.as_deref().unwrap_or_default()
    });
    Ok(works)
}

/// Waits until the guestbook runs with this number of replicas.
async fn serves(cluster: &ManagedCluster, guestbook: &ObjectRef, replicas: u32) -> Result<Value> {
    let serves = |deployment: &Value| {
        deployment["status"]["availableReplicas"] == replicas && deployment["status"]["replicas"] == replicas
    };
    cluster.wait_for(guestbook, serves).await
}
