//! Tests of the examples of argocd-pull-integration: the objects run on the clusters, and their status reaches the hub.

use super::{CLUSTER, PULL, PulledApplication, SKIP_RECONCILE, health, runs, scale, serves, stage, works_of};
use crate::stage::shipped;
use crate::status::printed;
use anyhow::Result;
use serde_json::{Value, json};
use testbed::{GitRepository, ObjectRef, is_applied};

/// Returns an ApplicationSet like those in the examples of argocd-pull-integration, with the repository and the names of the
/// test.
pub(super) fn application_set(name: &str, repository: &str) -> String {
    format!(
        "\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: {name}
  namespace: argocd
spec:
  generators:
  - clusterDecisionResource:
      configMapRef: ocm-placement-generator
      labelSelector:
        matchLabels:
          cluster.open-cluster-management.io/placement: app-placement
      requeueAfterSeconds: 30
  template:
    metadata:
      name: '{{{{name}}}}-{name}'
      labels:
        {PULL}: 'true'
        test: {name}
        cluster: '{{{{name}}}}'
      annotations:
        {CLUSTER}: '{{{{name}}}}'
        {SKIP_RECONCILE}: 'true'
    spec:
      project: default
      source:
        repoURL: {repository}
        targetRevision: main
        path: guestbook
      destination:
        server: '{{{{server}}}}'
        namespace: {name}
      syncPolicy:
        automated:
          prune: true
        syncOptions:
        - CreateNamespace=true
"
    )
}

/// Returns the Application of a set for a cluster.
pub(super) fn application_of(set: &str, cluster: &str) -> ObjectRef {
    ObjectRef::application(&format!("{cluster}-{set}"))
}

pub(super) fn set_named(name: &str) -> ObjectRef {
    ObjectRef::application_set(name)
}

#[tokio::test]
async fn application_set_runs_on_every_cluster_and_follows_commits() -> Result<()> {
    let stage = stage().await?;
    let (hub, cluster1, cluster2) = (&stage.hub, &stage.cluster1, &stage.cluster2);
    let name = "pull-guestbook";
    let git = GitRepository::new()?;
    let first = git.commit_folder(&shipped("guestbook"), "guestbook")?;
    hub.kubectl_with_input("apply -f -", &application_set(name, &git.url()))?;

    let guestbook = ObjectRef::deployment(name, "guestbook-ui");
    let service = ObjectRef::namespaced("v1", "Service", name, "guestbook-ui");
    let mut specs = Vec::new();
    for cluster in [cluster1, cluster2] {
        let application = application_of(name, cluster.name());
        let app = hub.wait_for(&application, |app| runs(app, &first)).await?;
        serves(cluster, &guestbook, 1).await?;
        cluster.wait_for(&service, |_| true).await?;
        for field in ["startedAt", "finishedAt", "message"] {
            assert!(app["status"]["operationState"][field].is_string(), "{field}: {app:#}");
        }
        assert!(app["status"]["health"]["lastTransitionTime"].is_string(), "{app:#}");
        assert!(app["status"]["reconciledAt"].is_string(), "{app:#}");
        // The Application on the cluster is for the cluster itself, and names its set.
        let live = cluster.wait_for(&application, |_| true).await?;
        assert_eq!(
            live["spec"]["destination"],
            json!({"server": "https://kubernetes.default.svc", "namespace": name})
        );
        let set = &live["metadata"]["annotations"]["apps.open-cluster-management.io/hosting-applicationset"];
        assert_eq!(*set, json!(format!("argocd/{name}")));
        let works = works_of(hub, &application).await?;
        assert_eq!(works.len(), 1, "{works:#?}");
        assert_eq!(works[0]["metadata"]["namespace"], cluster.name());
        hub.wait_for(&ObjectRef::of(&works[0]), is_applied).await?;
        specs.push((app["spec"].clone(), app["metadata"]["uid"].clone()));
        let on_cluster = format!("--clusters={}", cluster.name());
        let (_, stdout, stderr) = printed(hub.kubeconfig_path(), &[&on_cluster, "-o", "name"])?;
        let shown = format!("{}/{}", cluster.name(), application.name);
        assert!(stdout.lines().any(|line| line == shown), "{stdout}{stderr}");
    }

    let report = ObjectRef {
        api_version: "apps.open-cluster-management.io/v1alpha1".to_owned(),
        kind: "MulticlusterApplicationSetReport".to_owned(),
        ..set_named(name)
    };
    let counted = |report: &Value| {
        let summary = &report["statuses"]["summary"];
        ["clusters", "healthy", "synced"]
            .iter()
            .all(|what| summary[what] == "2")
    };
    hub.wait_for(&report, counted).await?;

    // The clusters' Argo CDs detect the commit themselves.
    let second = scale(&git, 3)?;
    for (cluster, (spec, uid)) in [cluster1, cluster2].into_iter().zip(specs) {
        serves(cluster, &guestbook, 3).await?;
        let application = application_of(name, cluster.name());
        let app = hub.wait_for(&application, |app| runs(app, &second)).await?;
        assert_eq!((&app["spec"], &app["metadata"]["uid"]), (&spec, &uid));
    }

    hub.delete(&set_named(name)).await?;
    for cluster in [cluster1, cluster2] {
        let application = application_of(name, cluster.name());
        hub.wait_gone(&application).await?;
        cluster.wait_gone(&application).await?;
        cluster.wait_gone(&guestbook).await?;
        assert!(works_of(hub, &application).await?.is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn application_with_several_sources_reports_every_revision() -> Result<()> {
    let stage = stage().await?;
    let mut app = PulledApplication::new(&stage, "pull-several-sources")?;
    let second = GitRepository::new()?;
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}).to_string();
    let of_second = second.commit(&[("settings/settings.json", &config_map)])?;
    let spec = &mut app.object["spec"];
    let first = spec["source"].take();
    spec["sources"] = json!([first, {"repoURL": second.url(), "targetRevision": "main", "path": "settings"}]);
    app.create().await?;
    let revisions = json!([app.commit, of_second]);
    let runs = |app: &Value| {
        let status = &app["status"];
        status["sync"]["revisions"] == revisions && status["sync"]["status"] == "Synced" && health(app) == "Healthy"
    };
    stage.hub.wait_for(&app.application(), runs).await?;
    stage
        .cluster1
        .wait_for(&ObjectRef::config_map(&app.name, "settings"), |_| true)
        .await?;
    app.end().await
}
