//! Reads from the hub which objects an Application delivers to a cluster.

use crate::refusal::HttpRefusal;
use crate::request::LiveRequest;
use crate::sent::{ListedWorks, SentObject, check_project, find};
use futures::future::try_join_all;
use hub::{HubObject, PAGE, WORK_PAGE, each, each_metadata, explain, in_order, optional};
use kube::core::params::{GetParams, ListParams};
use kube::core::request::Request;
use kube::{Client, Error};
use ocm::application_works::ApplicationName;
use ocm::ownership::OF_REPLICA_SET;
use ocm::resources::{APPLICATIONS, CONFIG_MAPS, WORK_SETS, WORKS};
use ocm::tracking::{CONFIG_MAP, Tracking};
use primitives::resource::Resource;
use serde_json::Value;
use std::collections::BTreeSet;

/// An Application on the hub, with the works that Argo CD lists for it.
#[derive(Debug)]
pub struct Delivery(ListedWorks);

impl Delivery {
    /// Reads an Application; `project` is the project in which argocd-server has checked the user's access, if it has.
    ///
    /// # Errors
    /// Returns an error if the Application does not exist or is in another project, or the hub cannot be read.
    pub async fn read_application(
        hub: &Client,
        application: &ApplicationName,
        project: Option<&str>,
    ) -> Result<Self, HttpRefusal> {
        let (config, application_object) = futures::try_join!(
            get(hub, &CONFIG_MAPS, &application.argo_cd, CONFIG_MAP.to_owned()),
            get(hub, &APPLICATIONS, &application.namespace, application.name.clone()),
        )
        .map_err(|error| refused(&error))?;
        let Some(application_object) = application_object else {
            return Err(HttpRefusal::not_found(format!(
                "Application {} does not exist: check its name",
                application.instance
            )));
        };
        check_project(application, project, &application_object)?;
        // Without the tracking method, the owner of a work is unknown.
        let config = config.ok_or_else(|| {
            HttpRefusal::nonsense(format!(
                "ConfigMap {}/{CONFIG_MAP} does not exist: check --argocd-namespace",
                application.argo_cd
            ))
        })?;
        let tracking = Tracking::configured(|key| config["data"][key].as_str());
        Ok(Self(ListedWorks::from_application(
            application,
            tracking,
            &application_object,
        )))
    }

    /// Returns the managed clusters with works of the Application.
    ///
    /// # Errors
    /// Returns an error if the hub cannot be read.
    pub async fn clusters(&self, hub: &Client) -> Result<BTreeSet<String>, HttpRefusal> {
        self.read_clusters(hub).await.map_err(|error| refused(&error))
    }

    async fn read_clusters(&self, hub: &Client) -> Result<BTreeSet<String>, Error> {
        let mut clusters: BTreeSet<String> = self.0.clusters().map(str::to_owned).collect();
        for (namespace, name) in self.0.sets() {
            if self.has_set(hub, namespace, name).await? {
                let path = WORKS.path("");
                let add = |HubObject(work)| clusters.extend(work["metadata"]["namespace"].as_str().map(str::to_owned));
                each_metadata(hub, &path, of_set(namespace, name).limit(PAGE), add).await?;
            }
        }
        Ok(clusters)
    }

    /// Returns the works of the Application on a managed cluster.
    ///
    /// # Errors
    /// Returns an error if the hub cannot be read.
    pub async fn works(&self, hub: &Client, cluster: &str) -> Result<Vec<Value>, HttpRefusal> {
        self.read_works(hub, cluster).await.map_err(|error| refused(&error))
    }

    async fn read_works(&self, hub: &Client, cluster: &str) -> Result<Vec<Value>, Error> {
        let Self(listed) = self;
        let names = listed.for_cluster(cluster).into_iter();
        let reads: Vec<_> = names.map(|name| get(hub, &WORKS, cluster, name.to_owned())).collect();
        let mut works: Vec<Value> = in_order(reads).await?.into_iter().flatten().collect();
        works.retain(|work| listed.owns(WORKS.kind, work));
        let sets = listed.sets().into_iter();
        let of_sets = sets.map(|(namespace, name)| self.works_of_set(hub, cluster, namespace, name));
        works.extend(try_join_all(of_sets).await?.into_iter().flatten());
        Ok(works)
    }

    /// Returns the works that OCM has created from a set of the Application on a managed cluster.
    async fn works_of_set(
        &self,
        hub: &Client,
        cluster: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<Value>, Error> {
        let mut works = Vec::new();
        if self.has_set(hub, namespace, name).await? {
            let path = WORKS.path(cluster);
            let add = |HubObject(work)| works.push(work);
            each(hub, &path, of_set(namespace, name).limit(WORK_PAGE), add).await?;
        }
        Ok(works)
    }

    /// Returns true if a set exists, and the Application owns it.
    async fn has_set(&self, hub: &Client, namespace: &str, name: &str) -> Result<bool, Error> {
        let set = get(hub, &WORK_SETS, namespace, name.to_owned()).await?;
        Ok(set.is_some_and(|set| self.0.owns(WORK_SETS.kind, &set)))
    }
}

/// Selects the works that OCM has created from a set.
fn of_set(namespace: &str, name: &str) -> ListParams {
    ListParams::default().labels(&format!("{OF_REPLICA_SET}={namespace}.{name}"))
}

/// The ConfigMap in Argo CD's namespace with the certificate authority of cluster-proxy.
pub const AUTHORITY: &str = "argocd-ocm-cmp-cluster-proxy";
/// The key of the certificate authority.
pub const AUTHORITY_KEY: &str = "ca.crt";

/// Reads the certificate authority of cluster-proxy from the namespace of Argo CD.
///
/// # Errors
/// Returns an error if it is not there, or cannot be read.
pub async fn authority(hub: &Client, namespace: &str) -> Result<String, HttpRefusal> {
    let config_map = get(hub, &CONFIG_MAPS, namespace, AUTHORITY.to_owned()).await;
    let config_map = config_map.map_err(|error| refused(&error))?;
    let text = config_map
        .as_ref()
        .and_then(|value| value["data"][AUTHORITY_KEY].as_str());
    text.map(str::to_owned).ok_or_else(|| {
        HttpRefusal::not_found(format!(
            "ConfigMap {namespace}/{AUTHORITY} has no certificate authority of cluster-proxy: create it as docs/live.md describes, or pass \
             --cluster-proxy-ca"
        ))
    })
}

/// Returns the object of a request, as a work of the Application sends it.
///
/// # Errors
/// Returns an error if the Application, its project or the object in a work does not match, or the hub cannot be read.
pub async fn sent(hub: &Client, request: &LiveRequest) -> Result<SentObject, HttpRefusal> {
    let delivery = Delivery::read_application(hub, &request.application, request.project.as_deref()).await?;
    find(&delivery.works(hub, &request.cluster).await?, request)
}

async fn get(hub: &Client, resource: &Resource, namespace: &str, name: String) -> Result<Option<Value>, Error> {
    let request = Request::new(resource.path(namespace));
    let request = request.get(&name, &GetParams::default()).map_err(Error::BuildRequest)?;
    Ok(optional(hub.request(request).await)?.map(|HubObject(object)| object))
}

fn refused(error: &Error) -> HttpRefusal {
    HttpRefusal::nonsense(format!("the hub cannot be read: {}", explain(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use std::convert::Infallible;

    #[tokio::test]
    async fn clusters_of_a_set_are_read_without_the_content_of_its_works() {
        let application = ApplicationName::named("shop", "argocd").expect("a name");
        let set = application.works.set_part("", "fleet/eu", 60);
        let resource = json!({"group": WORKS.group, "kind": WORK_SETS.kind, "namespace": "fleet", "name": set});
        let object = json!({
            "metadata": {"name": "shop", "namespace": "argocd"},
            "spec": {"project": "default"},
            "status": {"resources": [resource]},
        });
        let id = format!("shop:{}/{}:fleet/{set}", WORKS.group, WORK_SETS.kind);
        let metadata = json!({"namespace": "fleet", "name": set, "annotations": {ocm::tracking::TRACKING_ID: id}});
        let hub = tower::service_fn(move |request: Request<Body>| {
            let accepts = request.headers().get("accept").and_then(|value| value.to_str().ok());
            let body = match request.uri().path().rsplit('/').next() {
                Some("argocd-cm") => json!({}),
                Some("shop") => object.clone(),
                Some("manifestworks") if accepts.is_some_and(|text| text.contains("PartialObjectMetadataList")) => {
                    json!({"items": [{"metadata": {"namespace": "eu1", "name": "shop-1"}}]})
                }
                Some("manifestworks") => json!("whole works"),
                _ => json!({"metadata": metadata}),
            };
            async move { Ok::<_, Infallible>(Response::new(Body::from(body.to_string().into_bytes()))) }
        });
        let hub = Client::new(hub, "default");
        let delivery = Delivery::read_application(&hub, &application, None).await;
        let clusters = delivery.expect("an Application").clusters(&hub).await;
        assert_eq!(clusters.expect("a list"), BTreeSet::from(["eu1".to_owned()]));
    }
}
