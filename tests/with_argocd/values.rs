//! Tests of examples/appset_values.yaml: values for clusters and groups of clusters from labels, claims and Placements, with the real
//! ApplicationSet controller and more clusters than one PlacementDecision lists.

use crate::fleet;
use crate::stage::{argocd, shipped_object, shipped_objects};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbed::{GitRepository, Hub, ObjectRef, is_synced, wait};

/// One more than a PlacementDecision lists.
const CLUSTERS: usize = 101;

const CHART: &str = "apiVersion: v2\nname: shop\nversion: 1.0.0\n";

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {region: REGION}
spec:
  replicas: REPLICAS
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: 'example.com/web:1'}]
";

/// A cluster, with its labels and its claim.
struct Cluster {
    name: String,
    region: &'static str,
    replicas: Option<&'static str>,
    platform: &'static str,
}

/// Returns the clusters: each region has both platforms, and each tenth cluster has more replicas.
fn clusters() -> Vec<Cluster> {
    let cluster = |number: usize| Cluster {
        name: format!("shop-{number:03}"),
        region: if number.is_multiple_of(2) { "eu" } else { "us" },
        replicas: number.is_multiple_of(10).then_some("7"),
        platform: if number.is_multiple_of(3) { "AWS" } else { "GCP" },
    };
    (1..=CLUSTERS).map(cluster).collect()
}

/// Declares the clusters, with their Secrets as the controller cluster-secrets writes them.
async fn declare(hub: &Hub, clusters: &[Cluster]) -> Result<()> {
    let mut objects = Vec::new();
    for cluster in clusters {
        let mut labels = json!({"shop": "true", "region": cluster.region});
        if let Some(replicas) = cluster.replicas {
            labels["replicas"] = json!(replicas);
        }
        // Before the ManagedCluster, for which OCM would create it.
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.name}}));
        objects.push(ObjectRef::managed_cluster(&cluster.name).with(json!({"metadata": {"labels": labels}})));
        let secret = shipped_object("examples/cluster_secret.yaml")?.to_string();
        let mut secret: Value = serde_json::from_str(&secret.replace("cluster1", &cluster.name))?;
        let all = secret["metadata"]["labels"].as_object_mut().context("labels")?;
        all.extend(labels.as_object().context("labels")?.clone());
        objects.push(secret);
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    hub.kubectl_with_input("create -f -", &list.to_string())?;
    for cluster in clusters {
        let claims = json!([{"name": "platform.open-cluster-management.io", "value": cluster.platform}]);
        let cluster = ObjectRef::managed_cluster(&cluster.name);
        hub.patch_status(&cluster, &json!({"status": {"clusterClaims": claims}}))
            .await?;
    }
    Ok(())
}

/// Returns the Deployment in a work.
async fn deployment(hub: &Hub, cluster: &str, application: &str) -> Result<Value> {
    let work = ObjectRef::manifest_work(cluster, application);
    let work = hub.read(&work).await?;
    Ok(work["spec"]["workload"]["manifests"][0].clone())
}

/// Checks the replicas and a label of the Deployment.
fn check(deployment: &Value, replicas: &str, label: &str, value: &str) -> Result<()> {
    let (count, labels) = (&deployment["spec"]["replicas"], &deployment["metadata"]["labels"]);
    let is_right = count.as_u64() == replicas.parse().ok() && labels[label] == value;
    ensure!(is_right, "{deployment}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_hundred_clusters_get_values_of_their_labels_claims_and_groups() -> Result<()> {
    // Not the hub of the fleet: so many Applications delay all others.
    let hub = &fleet::hub().await?;
    let mut argocd = argocd(hub, "plugin-for-values").await?;
    argocd.application_sets = true;
    tokio::try_join!(hub.start_argocd(argocd), hub.start_ocm_controllers())?;
    let git = GitRepository::new()?;
    let template = DEPLOYMENT
        .replace("REGION", "'{{ .Values.region }}'")
        .replace("REPLICAS", "{{ .Values.replicas }}");
    let plain = DEPLOYMENT.replace("REGION", "none").replace("REPLICAS", "1");
    git.commit(&[
        ("chart/Chart.yaml", CHART),
        ("chart/templates/web.yaml", &template),
        ("base/kustomization.yaml", "resources: [web.yaml]\n"),
        ("base/web.yaml", &plain),
        ("overlays/aws/kustomization.yaml", "resources: [../../base]\n"),
        (
            "overlays/gcp/kustomization.yaml",
            "resources: [../../base]\nnamePrefix: gcp-\n",
        ),
    ])?;
    let clusters = clusters();
    declare(hub, &clusters).await?;
    for mut object in shipped_objects("examples/appset_values.yaml")? {
        if object["kind"] == "ApplicationSet" {
            object["spec"]["template"]["spec"]["source"]["repoURL"] = json!(git.url());
        }
        hub.apply(&object).await?;
    }
    let mut applications: Vec<String> = vec!["shop-eu".to_owned(), "shop-us".to_owned()];
    for Cluster { name, platform, .. } in &clusters {
        applications.push(format!("shop-{name}"));
        applications.push(format!("shop-{}-{name}", platform.to_lowercase()));
    }
    let client = hub.client().await?;
    for application in &applications {
        let application = ObjectRef::application(application);
        wait::wait_for(&client, &application, wait::DEADLINE_OF_MANY, is_synced).await?;
    }

    for cluster in &clusters {
        let Cluster {
            name,
            region,
            replicas,
            platform,
        } = cluster;
        let by_label = deployment(hub, name, &format!("shop-{name}")).await?;
        check(&by_label, replicas.unwrap_or("1"), "region", region)?;
        let platform = platform.to_lowercase();
        let by_claim = deployment(hub, name, &format!("shop-{platform}-{name}")).await?;
        let (prefixed, replicas) = if platform == "aws" {
            ("web", "3")
        } else {
            ("gcp-web", "2")
        };
        check(&by_claim, replicas, "platform", &platform)?;
        ensure!(by_claim["metadata"]["name"] == prefixed, "{by_claim}");
    }
    for (group, replicas) in [("eu", "2"), ("us", "5")] {
        let members: Vec<_> = clusters.iter().filter(|cluster| cluster.region == group).collect();
        let delivered = async || {
            let works = hub.works().await.ok()?;
            let label = "work.open-cluster-management.io/manifestworkreplicaset";
            let of_group = |work: &&Value| {
                let set = work["metadata"]["labels"][label].as_str();
                set.is_some_and(|set| set.starts_with(&format!("shop.shop-{group}-x")))
            };
            let works: Vec<_> = works.iter().filter(of_group).collect();
            let is_right =
                |work: &&Value| check(&work["spec"]["workload"]["manifests"][0], replicas, "region", group).is_ok();
            (works.len() == members.len() && works.iter().all(is_right)).then_some(())
        };
        wait::eventually(
            "OCM has written the works of the group",
            wait::DEADLINE_OF_MANY,
            delivered,
        )
        .await?;
    }

    Ok(())
}
