//! Tests that the health of an Application on the hub follows its objects on the managed cluster.

use crate::stage::{Stage, application, stage};
use anyhow::{Context, Result};
use jiff::Timestamp;
use ocm::health::{self, Clock, HealthStatus};
use serde_json::Value;
use testbed::application::has_health;
use testbed::{GitRepository, ObjectRef, is_synced, is_true};

/// Deploys the folder `name`.
async fn deploy(stage: &Stage, name: &str, git: &GitRepository) -> Result<()> {
    stage.hub.create_application(&application(name, git)?).await.map(drop)
}

/// Waits until the Application at this commit has this health.
async fn wait_for_health(stage: &Stage, name: &str, commit: &str, status: &str) -> Result<Value> {
    let is_shown =
        |app: &Value| app["status"]["sync"]["revision"] == commit && is_synced(app) && has_health(app, status);
    stage.hub.wait_for(&ObjectRef::application(name), is_shown).await
}

/// Waits until the hub evaluates an object to this health, with `words` in its message, and returns the message.
async fn wait_for_object(
    stage: &Stage,
    work: &str,
    (kind, name): (&str, &str),
    health: HealthStatus,
    words: &str,
) -> Result<String> {
    let message = |work: &Value| {
        let work = health::evaluate(&work.to_string(), &Clock::at(Timestamp::now())).ok()?;
        let object = work
            .objects
            .into_iter()
            .find(|object| (&*object.kind, &*object.name) == (kind, name))?;
        (object.health == health && object.message.contains(words)).then_some(object.message)
    };
    let work_ref = ObjectRef::manifest_work("cluster1", work);
    let work = stage.hub.wait_for(&work_ref, |work| message(work).is_some()).await?;
    message(&work).context("no message")
}

/// Returns a Deployment of two replicas, with more fields of its spec and of its Pods' spec.
pub(crate) fn deployment(name: &str, spec: &str, pod: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: 2\n{spec}  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
         spec:\n      containers: [{{name: web, image: nginx}}]\n{pod}"
    )
}

fn pod(name: &str, labels: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{{labels}}}}}\nspec:\n  containers: [{{name: web, image: nginx}}]\n"
    )
}

#[tokio::test]
async fn crashing_pods_are_degraded_with_the_containers_message() -> Result<()> {
    let stage = stage().await?;
    let name = "health-crash";
    let git = GitRepository::new()?;
    let crashes = "'pod-container-running-failed.stage.kwok.x-k8s.io': 'true'";
    let job = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  backoffLimit: 0\n  template:\n    \
         metadata: {{labels: {{{crashes}}}}}\n    spec:\n      restartPolicy: Never\n      containers: [{{name: run, image: busybox}}]\n"
    );
    let broken = git.commit(&[
        (&format!("{name}/pod.yaml"), &pod(name, crashes)),
        (&format!("{name}/job.yaml"), &job),
        (&format!("{name}/web.yaml"), &deployment(name, "", "")),
    ])?;
    deploy(stage, name, &git).await?;
    let failed = HealthStatus::Degraded;
    let of_container = "container web: containerFailed: container failed";
    wait_for_object(stage, name, ("Pod", name), failed, of_container).await?;
    wait_for_object(stage, name, ("Job", name), failed, "BackoffLimitExceeded").await?;
    wait_for_object(stage, name, ("Deployment", name), HealthStatus::Healthy, "").await?;
    wait_for_health(stage, name, &broken, "Degraded").await?;

    // A failed Job stays failed, so new ones replace it.
    let again = format!("{name}-again");
    let fixed = git.commit(&[
        (&format!("{name}/pod.yaml"), &pod(&again, "")),
        (
            &format!("{name}/job.yaml"),
            &job.replace(name, &again).replace(crashes, ""),
        ),
    ])?;
    stage.hub.refresh_application(name, "normal").await?;
    wait_for_health(stage, name, &fixed, "Healthy").await?;
    let job = ObjectRef::namespaced("batch/v1", "Job", "default", &again);
    let job = stage.cluster1.read(&job).await?;
    assert!(is_true(&job, "Complete"), "{:#}", job["status"]);
    stage
        .cluster1
        .wait_gone(&ObjectRef::namespaced("v1", "Pod", "default", name))
        .await?;
    stage.hub.delete(&ObjectRef::application(name)).await
}
