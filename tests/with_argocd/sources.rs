//! Tests of kustomizations and charts, from Git to the managed cluster, and of differences between clusters.

use crate::app::{self, permit_agent};
use crate::delivery::{delivered, objects_of, syncs, works};
use crate::stage::{Stage, stage};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use testbed::{GitRepository, ObjectRef, is_true};

/// Creates an Application with a folder of a new repository, whose objects are in the namespace of its name.
async fn start(
    stage: &Stage,
    name: &str,
    folder: &str,
    parameters: Value,
    files: &[(&str, &str)],
) -> Result<(GitRepository, String)> {
    let git = GitRepository::new()?;
    let commit = git.commit(files)?;
    app::create(stage, name, &git, |application| {
        application["spec"]["source"]["path"] = json!(folder);
        application["spec"]["source"]["plugin"]["parameters"] = parameters;
    })
    .await?;
    Ok((git, commit))
}

async fn end(stage: &Stage, name: &str) -> Result<()> {
    let application = ObjectRef::application(name);
    stage.hub.delete_and_wait(&application).await
}

/// Returns the `ConfigMap`s in a namespace of `cluster1` with this name prefix.
async fn config_maps(stage: &Stage, namespace: &str, name: &str) -> Result<Vec<Value>> {
    let mut all = stage.cluster1.list("v1", "ConfigMap").await?;
    all.retain(|object| {
        let metadata = &object["metadata"];
        metadata["namespace"] == namespace && metadata["name"].as_str().is_some_and(|text| text.starts_with(name))
    });
    Ok(all)
}

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: example.com/web:1
        envFrom: [configMapRef: {name: settings}]
";

fn base(colour: &str) -> String {
    format!("resources: [web.yaml]\nconfigMapGenerator: [{{name: settings, literals: [colour={colour}]}}]\n")
}

#[tokio::test]
async fn an_overlay_is_delivered_as_kustomize_renders_it() -> Result<()> {
    let stage = stage().await?;
    let name = "sources-overlay";
    let overlay = "resources: [../../base]\ncomponents: [../../two]\nnamePrefix: eu-\nimages: [{name: example.com/web, newTag: '2'}]\n";
    let component =
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplicas: [{name: web, count: 2}]\n";
    let files = [
        ("shop/base/web.yaml", WEB),
        ("shop/base/kustomization.yaml", &base("green")),
        ("shop/two/kustomization.yaml", component),
        ("shop/overlays/eu/kustomization.yaml", overlay),
    ];
    let (git, commit) = start(stage, name, "shop/overlays/eu", json!([]), &files).await?;
    delivered(&stage.hub, name, &commit).await?;

    let web = ObjectRef::deployment(name, "eu-web");
    let settings = |web: &Value| {
        let container = &web["spec"]["template"]["spec"]["containers"][0];
        container["envFrom"][0]["configMapRef"]["name"]
            .as_str()
            .map(str::to_owned)
    };
    let deployed = stage.cluster1.read(&web).await?;
    assert_eq!(deployed["spec"]["replicas"], 2);
    let image = &deployed["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "example.com/web:2");
    let first = settings(&deployed).context("a ConfigMap")?;
    let only_settings = async |name_in_web: &str, colour: &str| -> Result<()> {
        let objects = config_maps(stage, name, "eu-settings-").await?;
        let found: Vec<_> = objects
            .iter()
            .map(|object| (&object["metadata"]["name"], &object["data"]["colour"]))
            .collect();
        assert_eq!(found, [(&json!(name_in_web), &json!(colour))]);
        Ok(())
    };
    only_settings(&first, "green").await?;

    // Changed content creates another ConfigMap, and the old one is deleted.
    let commit = git.commit(&[("shop/base/kustomization.yaml", &base("blue"))])?;
    delivered(&stage.hub, name, &commit).await?;
    let deployed = stage
        .cluster1
        .wait_for(&web, |web| settings(web).as_ref() != Some(&first))
        .await?;
    stage.cluster1.wait_gone(&ObjectRef::config_map(name, &first)).await?;
    only_settings(&settings(&deployed).context("a ConfigMap")?, "blue").await?;
    end(stage, name).await
}

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.sources.example.com}
spec:
  group: sources.example.com
  names: {kind: Lamp, plural: lamps, singular: lamp, listKind: LampList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const MIGRATE: &str = "apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migrate
  annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: hook-succeeded}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: example.com/migrate:1}]
";

const TEST: &str = "apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-test
  annotations: {helm.sh/hook: test}
spec:
  containers: [{name: test, image: example.com/test:1}]
";

const LAMP: &str = "apiVersion: sources.example.com/v1
kind: Lamp
metadata:
  name: {{ .Release.Name }}
spec:
  colour: {{ .Values.colour }}
  watts: {{ .Values.watts }}
  room: {{ .Values.room | quote }}
  floor: {{ .Values.floor }}
  count: {{ .Values.lamp.count }}
  service: {{ .Release.Service }}
  namespace: {{ .Release.Namespace }}
  kubernetes: {{ .Capabilities.KubeVersion.Version }}
";

#[tokio::test]
async fn a_chart_is_delivered_with_its_crd_and_its_hook() -> Result<()> {
    let stage = stage().await?;
    let name = "sources-chart";
    // By default, the agent has no permission for custom resources.
    permit_agent(&stage.cluster1, name, &["sources.example.com"]).await?;
    // A later source overrides each of these values.
    let parameters = json!([
        {"name": "helm-release-name", "string": "shop"},
        {"name": "helm-value-files", "array": ["values-eu.yaml", "/common.yaml"]},
        {"name": "helm-values", "string": "room: hall\nfloor: 2\nlamp: {count: 1}\n"},
        {"name": "helm-parameters", "map": {"floor": "3", "lamp.count": "7"}},
        {"name": "helm-string-parameters", "map": {"lamp.count": "8"}},
    ]);
    let files = [
        ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 0.1.0\n"),
        (
            "chart/values.yaml",
            "colour: black\nwatts: 1\nroom: none\nfloor: 1\nlamp: {count: 0}\n",
        ),
        ("chart/values-eu.yaml", "colour: green\nwatts: 2\n"),
        ("common.yaml", "watts: 3\nroom: cellar\n"),
        ("chart/crds/lamps.yaml", CRD),
        ("chart/templates/lamp.yaml", LAMP),
        ("chart/templates/migrate.yaml", MIGRATE),
        ("chart/templates/test.yaml", TEST),
        ("chart/templates/web.yaml", WEB),
        ("chart/templates/NOTES.txt", "Have fun.\n"),
    ];
    let (git, commit) = start(stage, name, "chart", parameters, &files).await?;
    let app = delivered(&stage.hub, name, &commit).await?;
    assert_eq!(syncs(&app), 1, "the CRD and the custom resource arrive in one sync");

    let lamp = ObjectRef::namespaced("sources.example.com/v1", "Lamp", name, "shop");
    let live = stage.cluster1.read(&lamp).await?;
    let version: Value = serde_json::from_str(&stage.hub.kubectl("version --output json")?)?;
    let part = |name: &str| version["serverVersion"][name].as_str().context("a version");
    // Argo CD 3.2 passes only the first two numbers of the hub's version, 3.6 all three.
    let kubernetes = if testbed::argocd_version() == "3.2" {
        format!("v{}.{}", part("major")?, part("minor")?)
    } else {
        part("gitVersion")?.to_owned()
    };
    let expected = json!({"colour": "green", "watts": 3, "room": "hall", "floor": 3, "count": 8, "service": "Helm",
        "namespace": name, "kubernetes": kubernetes});
    assert_eq!(live["spec"], expected);
    assert!(stage.cluster1.get(&ObjectRef::deployment(name, "web")).await?.is_some());
    let jobs = || async {
        let mut jobs = stage.cluster1.list("batch/v1", "Job").await?;
        jobs.retain(|job| job["metadata"]["namespace"] == name);
        anyhow::Ok(jobs)
    };
    let ran = jobs().await?;
    assert_eq!(ran.len(), 1);
    assert!(
        ran[0]["metadata"]["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("shop-migrate-"))
    );
    assert!(
        is_true(&ran[0], "Complete"),
        "the hook ran before the other objects were healthy"
    );
    let all: Vec<String> = works(&stage.hub, name).await?.values().flat_map(objects_of).collect();
    assert!(!all.iter().any(|object| object.starts_with("Pod")), "{all:?}");

    // An upgrade: install hooks do not run again, because their content is the same.
    let commit = git.commit(&[("chart/values-eu.yaml", "colour: blue\nwatts: 2\n")])?;
    delivered(&stage.hub, name, &commit).await?;
    stage.cluster1.wait_for_value(&lamp, "/spec/colour", "blue").await?;
    let again = jobs().await?;
    assert_eq!(again.len(), 1);
    assert_eq!(again[0]["metadata"]["uid"], ran[0]["metadata"]["uid"]);
    end(stage, name).await?;
    stage.cluster1.wait_gone(&lamp).await
}
