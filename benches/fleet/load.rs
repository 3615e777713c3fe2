//! The load on the hub, and checks of its objects.

use super::Size;
use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use std::time::Duration;
use testbed::ObjectRef;

/// The number of concurrent requests of the load: agents do not wait for each other.
const AT_ONCE: usize = 16;

/// The prefix of the namespaces in paths to works.
pub(crate) const WORKS: &str = "/apis/work.open-cluster-management.io/v1";

/// The path of the Applications.
pub(crate) const APPLICATIONS: &str = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications";

const MERGE: &str = "application/merge-patch+json";
const CREATED: &str = "application/json";

/// The client that writes the load.
pub(crate) struct Load {
    client: Client,
    size: Size,
}

impl Load {
    /// Creates the load of this size; it sends nothing yet.
    pub(crate) fn new(client: Client, size: Size) -> Self {
        Self { client, size }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the number of Applications.
    pub(crate) fn applications(&self) -> f64 {
        self.size.0 as f64
    }

    /// Returns the managed cluster of an Application.
    pub(crate) fn cluster(&self, application: usize) -> String {
        format!("cluster-{}", application % self.size.1)
    }

    /// Returns an Application of the basic pull model for its managed cluster, without a spec, of this ApplicationSet.
    pub(crate) fn pulled_application(&self, at: usize, set: &Value) -> Value {
        ObjectRef::application(&format!("application-{at}")).with(json!({
            "metadata": {
                "labels": {"apps.open-cluster-management.io/pull-to-ocm-managed-cluster": "true"},
                "annotations": {
                    "apps.open-cluster-management.io/ocm-managed-cluster": self.cluster(at),
                    "argocd.argoproj.io/skip-reconcile": "true",
                },
                "ownerReferences": [{
                    "apiVersion": "argoproj.io/v1alpha1",
                    "kind": "ApplicationSet",
                    "name": set["metadata"]["name"],
                    "uid": set["metadata"]["uid"],
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
        }))
    }

    /// Installs one of our CRDs, and waits until it is served.
    pub(crate) async fn install(&self, file: &str, name: &str) -> Result<()> {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let crd = std::fs::read(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).context(file.to_owned())?;
        let apply = Request::patch(format!("{path}?fieldManager=fleet"));
        let apply = apply.header("content-type", "application/apply-patch+yaml");
        self.client.request_text(apply.body(crd)?).await?;
        loop {
            let definition: Value = self.client.request(Request::get(&path).body(Vec::new())?).await?;
            let conditions = definition["status"]["conditions"].as_array();
            let is_served = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
            if conditions.is_some_and(|all| all.iter().any(is_served)) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Declares the managed clusters.
    pub(crate) async fn create_clusters(&self) -> Result<()> {
        let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": now()});
        self.each(self.size.1, |at| {
            let name = format!("cluster-{at}");
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let cluster = ObjectRef::managed_cluster(&name)
                .with(json!({"spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 7200}}));
            let conditions = [
                "HubAcceptedManagedCluster",
                "ManagedClusterJoined",
                "ManagedClusterConditionAvailable",
            ];
            let status = json!({"status": {"conditions": conditions.map(condition)}});
            let clusters = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
            vec![
                request("POST", "/api/v1/namespaces", &namespace),
                request("POST", clusters, &cluster),
                request("PATCH", &format!("{clusters}/{name}/status"), &status),
            ]
        })
        .await
    }

    /// Sends the requests for each Application.
    pub(crate) async fn of_each(&self, requests: impl Fn(usize) -> Vec<Request<Vec<u8>>>) -> Result<()> {
        self.each(self.size.0, requests).await
    }

    /// Sends the requests for each of so many objects, several at a time.
    async fn each(&self, all: usize, requests: impl Fn(usize) -> Vec<Request<Vec<u8>>>) -> Result<()> {
        let send = |at| {
            let requests = requests(at);
            async move {
                for request in requests {
                    let what = request.uri().clone();
                    let sent = self.client.request_text(request).await;
                    sent.with_context(|| what.to_string())?;
                }
                Ok(())
            }
        };
        stream::iter(0..all)
            .map(send)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// Lists the objects at a path, and converts each.
    pub(crate) async fn list_objects<T>(&self, path: &str, read: impl Fn(&Value) -> T) -> Result<Vec<T>> {
        let (mut more, mut all) = (String::new(), Vec::new());
        loop {
            let request = Request::get(format!("{path}?limit=500{more}")).body(Vec::new())?;
            let list: Value = self.client.request(request).await?;
            all.extend(list["items"].as_array().context("a list")?.iter().map(&read));
            match list["metadata"]["continue"].as_str() {
                Some(at) if !at.is_empty() => more = format!("&continue={at}"),
                _ => return Ok(all),
            }
        }
    }

    /// Asserts that there are as many objects at a path as Applications, and that the status of each satisfies `has`.
    pub(crate) async fn all_have(&self, path: &str, what: &str, has: impl Fn(&Value) -> bool) -> Result<()> {
        let status = |object: &Value| {
            let status = &object["status"];
            (!has(status)).then(|| status.clone())
        };
        let others = self.list_objects(path, status).await?;
        let have = others.iter().filter(|other| other.is_none()).count();
        ensure!(
            have == self.size.0 && have == others.len(),
            "only {have} of {} have {what:?}; another has {}",
            self.size.0,
            others.into_iter().flatten().next().unwrap_or_default()
        );
        Ok(())
    }
}

/// Returns an ApplicationSet, which only owns its Applications.
pub(crate) fn application_set(name: &str) -> Value {
    ObjectRef::application_set(name).with(json!({"spec": {
        "generators": [{"clusterDecisionResource": {"configMapRef": "ocm-placement-generator", "requeueAfterSeconds": 30}}],
        "template": {
            "metadata": {"name": "{{name}}"},
            "spec": {
                "project": "default",
                "source": {"repoURL": "https://example.com/fleet/applications.git", "targetRevision": "HEAD", "path": "{{name}}"},
                "destination": {"server": "{{server}}"},
            },
        },
    }}))
}

pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(crate) fn request(method: &str, path: &str, body: &Value) -> Request<Vec<u8>> {
    let kind = if method == "PATCH" { MERGE } else { CREATED };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    request.body(body.to_string().into_bytes()).expect("a plain request")
}
