//! Waits for the results of controllers, by watching, with a deadline.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use futures::StreamExt;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::discovery::{self, Scope};
use kube::runtime::watcher::watch_object;
use serde_json::Value;

use crate::object::ObjectRef;

/// The time limit of a wait: enough for a slow and busy machine, also when Argo CD meets a passing error and looks again only at its next
/// reconciliation, after up to 180 s. It is only reached on failures.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// The time limit of a wait for one of hundreds of objects that controllers process one after the other.
pub const DEADLINE_OF_MANY: Duration = Duration::from_secs(1200);

/// The delay before a retry of a request that the API server rejected, or for a kind that it does not serve yet.
const BACK_OFF: Duration = Duration::from_millis(100);

/// Waits until the object exists and the condition holds for it, and returns this state of it.
pub async fn wait_for(
    client: &Client,
    object: &ObjectRef,
    deadline: Duration,
    mut condition: impl FnMut(&Value) -> bool,
) -> Result<Value> {
    let mut last = None;
    let holds = watch(client, object, |state| {
        let held = state.as_ref().is_some_and(&mut condition);
        last = state;
        held
    });
    let finished = tokio::time::timeout(deadline, holds).await;
    match (finished, last) {
        (Ok(()), Some(object)) => Ok(object),
        (_, Some(last)) => {
            bail!(
                "{object} does not meet the condition after {deadline:?}; last state:\n{}",
                legible(last)?
            )
        }
        (_, None) => bail!("{object} does not exist after {deadline:?}"),
    }
}

/// Waits until the object does not exist.
pub async fn wait_gone(client: &Client, object: &ObjectRef, deadline: Duration) -> Result<()> {
    let mut last = None;
    let gone = watch(client, object, |state| {
        last = state;
        last.is_none()
    });
    if tokio::time::timeout(deadline, gone).await.is_ok() {
        return Ok(());
    }
    bail!(
        "{object} still exists after {deadline:?}:\n{}",
        legible(last.unwrap_or_default())?
    )
}

/// Checks for `duration` that the condition always holds for the object. Fails as soon as it does not.
pub async fn holds_for(
    client: &Client,
    object: &ObjectRef,
    duration: Duration,
    mut condition: impl FnMut(&Value) -> bool,
) -> Result<()> {
    let mut last = None;
    let mut has_state = false;
    let broken = watch(client, object, |state| {
        let held = state.as_ref().is_some_and(&mut condition);
        has_state = true;
        last = state;
        !held
    });
    match tokio::time::timeout(duration, broken).await {
        Err(_) if has_state => Ok(()),
        Err(_) => bail!("{object} could not be watched for {duration:?}"),
        Ok(()) => bail!(
            "{object} does not meet the condition:\n{}",
            legible(last.unwrap_or_default())?
        ),
    }
}

/// Waits until `check` has an answer, for conditions that a watch of one object cannot check.
pub async fn eventually<T>(what: &str, deadline: Duration, check: impl AsyncFn() -> Option<T>) -> Result<T> {
    let answered = async {
        loop {
            if let Some(answer) = check().await {
                return answer;
            }
            tokio::time::sleep(BACK_OFF).await;
        }
    };
    tokio::time::timeout(deadline, answered)
        .await
        .map_err(|_| anyhow!("timed out after {deadline:?} waiting until {what}"))
}

/// Passes every state of the object to `enough`, from the current one on, until it returns true.
async fn watch(client: &Client, object: &ObjectRef, mut enough: impl FnMut(Option<Value>) -> bool) {
    loop {
        // The CRD of the kind may not exist yet; until then there is no such object.
        let Ok(api) = api(client, object).await else {
            if enough(None) {
                return;
            }
            tokio::time::sleep(BACK_OFF).await;
            continue;
        };
        let mut states = pin!(watch_object(api, &object.name));
        while let Some(Ok(state)) = states.next().await {
            if enough(state.and_then(|state| serde_json::to_value(state).ok())) {
                return;
            }
        }
        tokio::time::sleep(BACK_OFF).await;
    }
}

/// Returns the API for an object: discovery gives the plural of its kind.
pub(crate) async fn api(client: &Client, object: &ObjectRef) -> Result<Api<DynamicObject>> {
    let (resource, scope) = resource(client, &object.api_version, &object.kind).await?;
    Ok(match (scope, &object.namespace) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource),
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
    })
}

/// Returns the discovery result for a kind.
pub(crate) async fn resource(client: &Client, api_version: &str, kind: &str) -> Result<(ApiResource, Scope)> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    let (resource, capabilities) = discovery::pinned_kind(client, &kind)
        .await
        .with_context(|| format!("no {} in {api_version}", kind.kind))?;
    Ok((resource, capabilities.scope))
}

/// Formats an object for people: without the managed fields.
fn legible(mut object: Value) -> Result<String> {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    Ok(serde_json::to_string_pretty(&object)?)
}
