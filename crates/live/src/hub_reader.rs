//! Reads from the hub which objects an Application delivers to a cluster.

use crate::refusal::Refusal;
use crate::request::LiveRequest;
use crate::sent::{ListedWorks, SentObject, check_project, find};
use hub::{explain, in_order, status};
use kube::core::params::{GetParams, ListParams};
use kube::core::request::Request;
use kube::{Client, Error};
use ocm::object_ref::ObjectRef;
use ocm::ownership::OF_REPLICA_SET;
use ocm::resources::{APPLICATIONS, CONFIG_MAPS, Resource, WORK_SETS, WORKS};
use ocm::tracking::{CONFIG_MAP, Tracking};
use serde_json::Value;

/// Returns the object of a request, as a work of the Application sends it.
///
/// # Errors
/// Returns an error if the Application, its project or the object in a work does not match, or the hub cannot be read.
pub async fn sent(hub: &Client, request: &LiveRequest) -> Result<SentObject, Refusal> {
    let application = &request.application;
    let (config, found) = futures::try_join!(
        get(hub, &CONFIG_MAPS, &application.argo_cd, CONFIG_MAP.to_owned()),
        get(hub, &APPLICATIONS, &application.namespace, application.name.clone()),
    )
    .map_err(|error| refused(&error))?;
    let Some(found) = found else {
        return Err(Refusal::not_found(format!(
            "Application {} does not exist: reload the page",
            application.instance
        )));
    };
    check_project(request, &found)?;
    // Without the tracking method, the owner of a work is unknown.
    let config = config.ok_or_else(|| {
        Refusal::nonsense(format!(
            "ConfigMap {}/{CONFIG_MAP} does not exist: check --argocd-namespace",
            application.argo_cd
        ))
    })?;
    let tracking = Tracking::configured(|key| config["data"][key].as_str());
    let listed = ListedWorks::of(&found);
    let works = of_cluster(hub, request, &listed, &tracking).await;
    find(&works.map_err(|error| refused(&error))?, request)
}

/// Returns the works of the Application on the cluster.
async fn of_cluster(
    hub: &Client,
    request: &LiveRequest,
    listed: &ListedWorks,
    tracking: &Tracking,
) -> Result<Vec<Value>, Error> {
    let names = listed.for_cluster(&request.cluster).into_iter();
    let reads: Vec<_> = names
        .map(|name| get(hub, &WORKS, &request.cluster, name.to_owned()))
        .collect();
    let mut works: Vec<Value> = in_order(reads).await?.into_iter().flatten().collect();
    works.retain(|work| listed.owns(request, tracking, WORKS.kind, work));
    for (namespace, name) in listed.sets() {
        let set = get(hub, &WORK_SETS, namespace, name.to_owned()).await?;
        if !set.is_some_and(|set| listed.owns(request, tracking, WORK_SETS.kind, &set)) {
            continue;
        }
        let of_set = ListParams::default().labels(&format!("{OF_REPLICA_SET}={namespace}.{name}"));
        let path = WORKS.path(&ObjectRef::new(&request.cluster, ""));
        let list = Request::new(path).list(&of_set).map_err(Error::BuildRequest)?;
        let mut list: Value = hub.request(list).await?;
        if let Value::Array(found) = list["items"].take() {
            works.extend(found);
        }
    }
    Ok(works)
}

async fn get(hub: &Client, resource: &Resource, namespace: &str, name: String) -> Result<Option<Value>, Error> {
    let request = Request::new(resource.path(&ObjectRef::new(namespace, "")));
    let request = request.get(&name, &GetParams::default()).map_err(Error::BuildRequest)?;
    match hub.request(request).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if status(&error) == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

fn refused(error: &Error) -> Refusal {
    Refusal::nonsense(format!("the hub cannot be read: {}", explain(error)))
}
