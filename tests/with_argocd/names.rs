//! Tests of the names of works under a policy: no Application takes over another's work by its name, and running objects stay
//! when a policy is added.

use crate::delivery::works;
use crate::policy::{PROJECT, binding, in_project, make_project};
use crate::stage::{PLUGIN_WITH_POLICY, Stage, run, shipped_object, stage};
use crate::status;
use anyhow::Result;
use ocm::names::WorkName;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use testbed::{GitRepository, ManagedCluster, ObjectRef, application, is_applied, wait};

/// A namespace with a Deployment in wave 0, a hook before it and another wave after it.
const FILES: &[(&str, &str)] = &[
    (
        "web.yaml",
        r"
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers: [{name: web, image: 'web:1'}]
",
    ),
    (
        "settings.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {colour: green}}",
    ),
    (
        "late.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-late, annotations: {argocd.argoproj.io/sync-wave: '5'}}}",
    ),
    (
        "migrate.yaml",
        r"
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, annotations: {argocd.argoproj.io/hook: PreSync}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: migrate, image: 'web:1'}]}
",
    ),
];

const KINDS: [(&str, &str); 5] = [
    ("v1", "ConfigMap"),
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
];

/// Returns the name of an Application's work under a policy.
pub(crate) fn under_policy(application: &str) -> Result<String> {
    Ok(application.parse::<WorkName>()?.under_policy().to_string())
}

/// Commits a change of the ConfigMap in [`FILES`].
fn commit_blue(git: &GitRepository, name: &str) -> Result<()> {
    let blue = FILES[1].1.replace("NAME", name).replace("green", "blue");
    git.commit(&[(&format!("{name}/settings.yaml"), &blue)])?;
    Ok(())
}

/// Waits until the cluster has the change of [`commit_blue`], with the same objects as before, and deletes the Application.
async fn wait_for_change_and_delete(
    Stage { hub, cluster1, .. }: &Stage,
    app: &ObjectRef,
    name: &str,
    namespace: &str,
    uids_before: &BTreeMap<String, String>,
) -> Result<()> {
    let settings = ObjectRef::config_map(namespace, name);
    cluster1.wait_for_value(&settings, "/data/colour", "blue").await?;
    assert_eq!(&uids(cluster1, namespace, name).await?, uids_before);
    hub.delete(app).await?;
    cluster1.wait_gone(&settings).await
}

/// Returns the uid of each object of the Application on the cluster that is not being deleted.
async fn uids(cluster: &ManagedCluster, namespace: &str, name: &str) -> Result<BTreeMap<String, String>> {
    let mut uids = BTreeMap::new();
    for (api_version, kind) in KINDS {
        for object in cluster.list(api_version, kind).await? {
            let metadata = &object["metadata"];
            let called = metadata["name"].as_str().unwrap_or_default();
            if metadata["namespace"] == namespace && called.starts_with(name) && metadata["deletionTimestamp"].is_null()
            {
                let uid = metadata["uid"].as_str().unwrap_or_default();
                uids.insert(format!("{kind} {called}"), uid.to_owned());
            }
        }
    }
    Ok(uids)
}

fn files(name: &str) -> Vec<(String, String)> {
    let file = |(file, text): &(&str, &str)| (format!("{name}/{file}"), text.replace("NAME", name));
    FILES.iter().map(file).collect()
}

fn commit(git: &GitRepository, files: &[(String, String)]) -> Result<String> {
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    git.commit(&files)
}

fn is_healthy(app: &Value) -> bool {
    application::is_healthy(app) && app["status"]["operationState"]["phase"] == "Succeeded"
}

fn with_policy() -> Value {
    json!({"spec": {"source": {"plugin": {"name": PLUGIN_WITH_POLICY}}}})
}

#[tokio::test]
async fn adding_a_policy_renames_works_and_keeps_objects() -> Result<()> {
    let stage = stage().await?;
    let Stage { hub, cluster1, .. } = stage;
    make_project(stage).await?;
    let name = "names-renamed";
    let git = GitRepository::new()?;
    commit(&git, &files(name))?;
    let mut app = in_project(name, &git)?;
    app["spec"]["source"]["plugin"]["name"] = json!("argocd-ocm-cmp");
    hub.create_application(&app).await?;
    let app = ObjectRef::application(name);
    hub.wait_for(&app, is_healthy).await?;
    let before = works(hub, name).await?;
    assert_eq!(before.len(), 3, "{:?}", before.keys());
    assert!(
        before
            .keys()
            .all(|work| work == name || work.starts_with("names-renamed.part-"))
    );
    let uids_before = uids(cluster1, PROJECT, name).await?;
    assert!(uids_before.len() >= 6, "{uids_before:?}");

    hub.patch(&app, &with_policy()).await?;
    let base = under_policy(name)?;
    let renamed: Vec<String> = before.keys().map(|work| work.replacen(name, &base, 1)).collect();
    let both = Cell::new(false);
    wait::eventually("only the works under the policy are left", wait::DEADLINE, async || {
        // No object on the cluster is ever deleted or replaced.
        let now = uids(cluster1, PROJECT, name).await.ok()?;
        assert_eq!(now, uids_before, "while the works are renamed");
        let works = works(hub, name).await.ok()?;
        both.set(both.get() || works.contains_key(name) && works.contains_key(&base));
        works.keys().eq(&renamed).then_some(())
    })
    .await?;
    assert!(both.get(), "the old work stays until the new one exists");
    let app_before = hub.wait_for(&app, is_healthy).await?;
    let synced = &app_before["status"]["operationState"]["syncResult"]["resources"];
    assert_eq!(synced.as_array().map(Vec::len), Some(6));
    for work in works(hub, name).await?.values() {
        assert!(is_applied(work), "{:#}", work["status"]);
    }
    // The agent has released the old works, and the new ones own the objects.
    let what = "no record of an old work is left on the cluster";
    wait::eventually(what, wait::DEADLINE, async || {
        let records = cluster1.list("work.open-cluster-management.io/v1", "AppliedManifestWork");
        let records = records.await.ok()?;
        let mut names = records
            .iter()
            .filter_map(|record| record["spec"]["manifestWorkName"].as_str());
        (!names.any(|work| before.contains_key(work))).then_some(())
    })
    .await?;
    assert_eq!(uids(cluster1, PROJECT, name).await?, uids_before);

    // The Application shows its works, also without the policy.
    let (code, text, _) = status::printed(hub.kubeconfig_path(), &[name])?;
    assert!(code == Some(0) && text.contains("Healthy"), "{text}");
    let words = format!("diff . --name={name} --namespace={PROJECT} --cluster=cluster1 --executor=team-a/deployer");
    let printed = run(&git.path().join(name), Some(hub.kubeconfig_path()), &words)?;
    assert_eq!(printed, (Some(0), String::new(), String::new()));

    // A later commit changes the existing objects.
    commit_blue(&git, name)?;
    hub.refresh_application(name, "hard").await?;
    wait_for_change_and_delete(stage, &app, name, PROJECT, &uids_before).await
}

/// The first sync under a policy fails because the policy's executor lacks a permission that the agent had before.
#[tokio::test]
async fn refused_renamed_works_keep_objects_on_the_cluster() -> Result<()> {
    let stage = stage().await?;
    let Stage { hub, cluster1, .. } = stage;
    make_project(stage).await?;
    let name = "names-refused";
    cluster1.create_namespace(name).await?;
    let mut project = shipped_object("proj.yaml")?;
    project["metadata"]["name"] = json!(name);
    hub.apply(&project).await?;
    let git = GitRepository::new()?;
    commit(&git, &files(name)[..2])?;
    let mut app = in_project(name, &git)?;
    app["spec"]["project"] = json!(name);
    app["spec"]["destination"]["namespace"] = json!(name);
    app["spec"]["source"]["plugin"]["name"] = json!("argocd-ocm-cmp");
    // Argo CD's self-heal syncs only resources that are out of sync, which must not be the old work alone.
    app["spec"]["syncPolicy"] =
        json!({"automated": {"prune": true, "selfHeal": true}, "retry": {"limit": 1, "backoff": {"duration": "1s"}}});
    hub.create_application(&app).await?;
    let app = ObjectRef::application(name);
    hub.wait_for(&app, is_healthy).await?;
    let uids_before = uids(cluster1, name, name).await?;
    hub.patch(&app, &with_policy()).await?;
    let base = under_policy(name)?;
    // After a minute the new work is Degraded, and the sync fails with that before anything is pruned.
    let operation = |app: &Value, phase: &str| app["status"]["operationState"]["phase"] == phase;
    let failed = hub.wait_for(&app, |app| operation(app, "Failed")).await?;
    let message = failed["status"]["operationState"]["syncResult"]["resources"][0]["message"].to_string();
    assert!(message.contains("not allowed to apply the resource"), "{message}");
    for _ in 0..3 {
        let refreshed = hub.refresh_application(name, "hard").await?;
        assert!(
            operation(&refreshed, "Failed"),
            "Argo CD does not retry: {:#}",
            refreshed["status"]
        );
        let both = works(hub, name).await?;
        assert!(both.keys().eq([name, &base]), "{:?}", both.keys());
        assert_eq!(uids(cluster1, name, name).await?, uids_before);
    }

    // The executor gets its permissions, and the next commit completes the change.
    cluster1.apply(&binding(name, "nobody")).await?;
    commit_blue(&git, name)?;
    hub.refresh_application(name, "hard").await?;
    wait::eventually("only the work under the policy is left", wait::DEADLINE, async || {
        assert_eq!(uids(cluster1, name, name).await.ok()?, uids_before);
        works(hub, name).await.ok()?.keys().eq([&base]).then_some(())
    })
    .await?;
    hub.wait_for(&app, is_healthy).await?;
    wait_for_change_and_delete(stage, &app, name, name, &uids_before).await
}

#[tokio::test]
async fn application_cannot_take_over_a_work_by_name() -> Result<()> {
    let stage = stage().await?;
    let Stage { hub, cluster1, .. } = stage;
    make_project(stage).await?;
    let git = GitRepository::new()?;
    let victim = "names-victim";
    let config = |path: &str, name: &str, colour: &str| {
        let text =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"colour": colour}});
        (format!("{path}/config.json"), text.to_string())
    };
    commit(&git, &[config(victim, victim, "green")])?;
    hub.create_application(&in_project(victim, &git)?).await?;
    hub.wait_for(&ObjectRef::application(victim), is_healthy).await?;

    // Works of the controller, of the pull model and of another team.
    let others = ["argocd-agent-ca-mw", "payments-1a2b3"];
    for other in others {
        let held = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{other}-held"), "namespace": PROJECT}});
        let work = ObjectRef::manifest_work("cluster1", other);
        hub.create(&work.with(json!({"spec": {"workload": {"manifests": [held]}}})))
            .await?;
        hub.wait_for(&work, is_applied).await?;
    }
    let of_victim = under_policy(victim)?;
    let targets = [others[0], others[1], &of_victim];
    let mut before = Vec::new();
    for target in targets {
        before.push(desired_state(stage, target).await?);
    }

    for (plugin, in_git) in [(PLUGIN_WITH_POLICY, "a"), ("argocd-ocm-cmp", "b")] {
        for (at, target) in targets.iter().enumerate() {
            let object = format!("names-attack-{in_git}{at}");
            commit(&git, &[config(target, &object, "red")])?;
            let mut attack = in_project(target, &git)?;
            attack["spec"]["source"]["plugin"]["name"] = json!(plugin);
            hub.create_application(&attack).await?;
            let app = ObjectRef::application(target);
            hub.wait_for(&app, is_healthy).await?;
            // The Application delivers with its own work, and the other work is unchanged.
            let config_map = ObjectRef::config_map(PROJECT, &object);
            cluster1.wait_for_value(&config_map, "/data/colour", "red").await?;
            assert_eq!(desired_state(stage, target).await?, before[at], "{target} by {plugin}");
            hub.delete_and_wait(&app).await?;
            cluster1.wait_gone(&config_map).await?;
            assert_eq!(
                desired_state(stage, target).await?,
                before[at],
                "{target} is still there"
            );
        }
    }
    for held in ["argocd-agent-ca-mw-held", "payments-1a2b3-held", victim] {
        let held = ObjectRef::config_map(PROJECT, held);
        assert!(cluster1.get(&held).await?.is_some(), "{held}");
    }
    for other in others {
        hub.delete(&ObjectRef::manifest_work("cluster1", other)).await?;
    }
    hub.delete(&ObjectRef::application(victim)).await
}

/// Returns the desired state of a work: its identity, its `spec` and its annotations.
async fn desired_state(stage: &Stage, work: &str) -> Result<Value> {
    let work = stage.hub.read(&ObjectRef::manifest_work("cluster1", work)).await?;
    let metadata = &work["metadata"];
    Ok(json!([
        metadata["uid"],
        metadata["annotations"],
        metadata["deletionTimestamp"],
        work["spec"]
    ]))
}
