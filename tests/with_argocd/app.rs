//! An Application with its own repository and namespaces.

use crate::stage::{Stage, application};
use anyhow::Result;
use serde_json::{Value, json};
use testbed::{GitRepository, Hub, ManagedCluster, ObjectRef, is_applied, is_synced};

/// An Application that delivers the folder of its name, by default to `cluster1`.
pub(crate) struct App<'h> {
    pub(crate) hub: &'h Hub,
    pub(crate) git: GitRepository,
    pub(crate) name: String,
}

impl<'h> App<'h> {
    /// Creates the Application with `settings` of the plugin, each a name and its values, and the files of its folder; its
    /// objects are in the namespace of its name. Returns when Argo CD has synced it.
    pub(crate) async fn start(
        stage: &'h Stage,
        name: &str,
        settings: &[(&str, &[&str])],
        files: &[(&str, &str)],
    ) -> Result<Self> {
        Self::start_on(&stage.hub, name, settings, files, true).await
    }

    /// Creates the Application on any hub, without the cluster of the shipped Application unless `settings` name one.
    pub(crate) async fn start_on(
        hub: &'h Hub,
        name: &str,
        settings: &[(&str, &[&str])],
        files: &[(&str, &str)],
        for_cluster1: bool,
    ) -> Result<Self> {
        let app = Self {
            hub,
            git: GitRepository::new()?,
            name: name.to_owned(),
        };
        let commit = app.write(files)?;
        let mut object = application(name, &app.git)?;
        object["spec"]["destination"]["namespace"] = json!(name);
        let plugin = &mut object["spec"]["source"]["plugin"];
        plugin["parameters"] = parameters(settings);
        if !for_cluster1 {
            plugin["env"] = json!([]);
        }
        hub.create_application(&object).await?;
        app.synced(&commit).await?;
        Ok(app)
    }

    pub(crate) fn application(&self) -> ObjectRef {
        ObjectRef::application(&self.name)
    }

    /// Returns the work for `cluster1` with the ordinary objects.
    pub(crate) fn work(&self) -> ObjectRef {
        ObjectRef::manifest_work("cluster1", &self.name)
    }

    /// Writes files of the folder and waits until Argo CD has synced them.
    pub(crate) async fn commit(&self, files: &[(&str, &str)]) -> Result<()> {
        let commit = self.push(files).await?;
        self.synced(&commit).await
    }

    /// Writes files of the folder, refreshes the Application, and returns the commit.
    pub(crate) async fn push(&self, files: &[(&str, &str)]) -> Result<String> {
        let commit = self.write(files)?;
        self.refresh().await?;
        Ok(commit)
    }

    /// Removes files of the folder and waits until Argo CD has synced that.
    pub(crate) async fn remove(&self, files: &[&str]) -> Result<()> {
        let files: Vec<String> = files.iter().map(|file| format!("{}/{file}", self.name)).collect();
        let commit = self.git.remove(&files.iter().map(String::as_str).collect::<Vec<_>>())?;
        self.refresh().await?;
        self.synced(&commit).await
    }

    /// Replaces the settings of the plugin. Argo CD syncs them with the next commit.
    pub(crate) async fn set(&self, settings: &[(&str, &[&str])]) -> Result<()> {
        let patch = json!({"spec": {"source": {"plugin": {"parameters": parameters(settings)}}}});
        self.hub.patch(&self.application(), &patch).await.map(drop)
    }

    /// Returns the work after the agent has applied its current spec.
    pub(crate) async fn applied(&self) -> Result<Value> {
        self.hub.wait_for(&self.work(), is_applied).await
    }

    /// Makes the agent apply the work again. By itself it does so about every five minutes; that is how it detects changes by
    /// others on the cluster. A change of the work's labels triggers it at once.
    pub(crate) async fn reconcile(&self) -> Result<()> {
        let hub = self.hub;
        let now = hub.read(&self.work()).await?;
        let label = json!({"metadata": {"labels": {"again": now["metadata"]["resourceVersion"]}}});
        hub.patch(&self.work(), &label).await.map(drop)
    }

    /// Deletes the Application, and waits until it and all its objects are deleted.
    pub(crate) async fn end(self) -> Result<()> {
        self.hub.delete_and_wait(&self.application()).await
    }

    pub(crate) fn write(&self, files: &[(&str, &str)]) -> Result<String> {
        let paths: Vec<String> = files.iter().map(|(file, _)| format!("{}/{file}", self.name)).collect();
        let files: Vec<(&str, &str)> = paths
            .iter()
            .map(String::as_str)
            .zip(files.iter().map(|(_, text)| *text))
            .collect();
        self.git.commit(&files)
    }

    async fn refresh(&self) -> Result<()> {
        self.hub.refresh_application(&self.name, "hard").await.map(drop)
    }

    async fn synced(&self, commit: &str) -> Result<()> {
        let of_commit = |app: &Value| is_synced(app) && app["status"]["sync"]["revision"] == commit;
        self.hub.wait_for(&self.application(), of_commit).await.map(drop)
    }
}

/// Creates an Application and its own namespace on `cluster1`, where its objects are, and does not wait for it. `change` completes it.
pub(crate) async fn create(
    stage: &Stage,
    name: &str,
    git: &GitRepository,
    change: impl FnOnce(&mut Value),
) -> Result<()> {
    stage.cluster1.create_namespace(name).await?;
    let mut object = application(name, git)?;
    object["spec"]["destination"]["namespace"] = json!(name);
    change(&mut object);
    stage.hub.create_application(&object).await.map(drop)
}

/// Returns a CRD of a kind whose objects may have any content.
pub(crate) fn crd(group: &str, kind: &str, plural: &str, scope: &str) -> Value {
    ObjectRef::crd(&format!("{plural}.{group}")).with(json!({"spec": {
        "group": group,
        "scope": scope,
        "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
    }}))
}

/// Grants the agent permissions for the objects of these groups, as users of OCM do, and waits until they are effective: otherwise the
/// agent would be denied at first, and back off.
pub(crate) async fn permit_agent(cluster: &ManagedCluster, name: &str, groups: &[&str]) -> Result<()> {
    let role = ObjectRef::cluster_role(name).with(json!({
        "metadata": {"labels": {"open-cluster-management.io/aggregate-to-work": "true"}},
        "rules": [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}],
    }));
    cluster.apply(&role).await?;
    let aggregated = ObjectRef::cluster_role("open-cluster-management:klusterlet-work:aggregate");
    let has_groups = |role: &Value| {
        let rules = role["rules"].to_string();
        groups.iter().all(|group| rules.contains(&format!("{group:?}")))
    };
    cluster.wait_for(&aggregated, has_groups).await.map(drop)
}

/// Lets Pods behind a gate run, by creating a node for them alone.
pub(crate) async fn open_gate(cluster: &ManagedCluster, gate: &str) -> Result<()> {
    let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
    let node = ObjectRef::node(gate).with(json!({
        "metadata": {"labels": {"gate": gate}},
        "spec": {"taints": [{"key": "gate", "value": gate, "effect": "NoSchedule"}]},
        "status": {"allocatable": resources, "capacity": resources},
    }));
    cluster.create(&node).await.map(drop)
}

/// Returns plugin parameters in the form of an Application: lists, which may also contain a single text.
fn parameters(settings: &[(&str, &[&str])]) -> Value {
    let parameter = |(name, values): &(&str, &[&str])| json!({"name": name, "array": values});
    settings.iter().map(parameter).collect()
}
