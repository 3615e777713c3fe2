//! Reads what `doctor` checks. Of works only what is asked of them is kept, page by page.

mod read;

use super::{Hub, Reader, each, reason, status, together, told};
use crate::agent::names::ADDON;
use crate::confine;
use crate::controller::resources::{
    ADDONS, APPLICATIONS, CLUSTERS, CONFIG_MAPS, DECISIONS, DEPLOYMENTS, GITOPS_CLUSTERS, MANAGEMENTS, PROJECTS,
    REPORTS, Resource, WORK_SETS, WORKS,
};
use crate::controller::seen::Place;
use crate::doctor::{self, CONTROLLER, Look, PLUGIN, ReplicaSet, Right, Seen, Work};
use crate::tracking::{CONFIG_MAP, Tracking};
use http::Method;
use kube::core::params::{GetParams, ListParams};
use kube::core::request::Request;
use kube::core::subresource::LogParams;
use kube::{Client, Error};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How many objects are listed by one request: works carry all their manifests.
const PAGE: u32 = 50;

/// How much of a log is read: its end, in lines and in bytes.
const LOG_LINES: i64 = 2000;
const LOG_SIZE: i64 = 4 << 20;

impl Reader {
    /// Reads all that `doctor` checks of a hub, whose Argo CD is in this namespace. What we may not read is said so there.
    ///
    /// # Errors
    /// With one plain line, when the hub cannot be reached or does not know us.
    pub fn examine(&self, namespace: &str) -> Result<Seen, String> {
        let Self { runtime, hub, .. } = self;
        let seen = runtime.block_on(hub.examine(namespace));
        seen.map_err(|error| told(&error, &hub.url))
    }
}

impl Hub {
    async fn examine(&self, namespace: &str) -> Result<Seen, Error> {
        let (here, everywhere) = (Place::new(namespace, ""), Place::new("", ""));
        let in_namespace = |api: &str, plural: &str| format!("/{api}/namespaces/{namespace}/{plural}");
        let config = self.one(&CONFIG_MAPS.path(&here), CONFIG_MAP).await?;
        let tracking = match config.there() {
            Some(config) => Tracking::configured(|key| config["data"][key].as_str()),
            None => Tracking::unknown(),
        };
        let of_argo_cd = async {
            Ok::<_, Error>((
                self.many(&DEPLOYMENTS.path(&here)).await?,
                self.many(&in_namespace("apis/apps/v1", "statefulsets")).await?,
                self.many(&in_namespace("api/v1", "pods")).await?,
                self.many(&in_namespace("apis/coordination.k8s.io/v1", "leases"))
                    .await?,
                self.one(&CONFIG_MAPS.path(&here), PLUGIN).await?,
                self.one(&CONFIG_MAPS.path(&here), CONTROLLER).await?,
                self.projects(&here).await?,
            ))
        };
        let of_ocm = async {
            let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let work_crd = self.one(crds, &format!("{}.{}", WORKS.plural, WORKS.group)).await?;
            let managers = self
                .many("/apis/operator.open-cluster-management.io/v1/clustermanagers")
                .await?;
            let management = self.one(&MANAGEMENTS.path(&everywhere), ADDON).await?;
            Ok::<_, Error>((self.apis().await?, work_crd, managers, management, self.addons().await?))
        };
        let (of_argo_cd, of_ocm, applications, clusters, works) = tokio::try_join!(
            of_argo_cd,
            of_ocm,
            self.applications(namespace),
            self.managed_clusters(),
            self.delivered(&tracking)
        )?;
        let (deployments, stateful_sets, pods, leases, plugin, settings, projects) = of_argo_cd;
        let (apis, work_crd, cluster_managers, management, addons) = of_ocm;
        let (sets, works) = works;
        let elsewhere = match config {
            Look::Absent => self.elsewhere().await?,
            _ => Look::Absent,
        };
        let mut seen = Seen {
            namespace: namespace.to_owned(),
            config,
            elsewhere,
            deployments,
            stateful_sets,
            pods,
            plugin,
            settings,
            leases,
            apis,
            work_crd,
            cluster_managers,
            applications,
            projects,
            clusters,
            works,
            sets,
            management,
            addons,
            unconfined: Look::Absent,
            rights: Look::Absent,
        };
        seen.unconfined = self.unconfined(&seen).await?;
        seen.rights = self.rights(doctor::wanted(&seen), namespace).await?;
        Ok(seen)
    }

    /// An object.
    async fn one(&self, path: &str, name: &str) -> Result<Look<Value>, Error> {
        let request = Request::new(path).get(name, &GetParams::default());
        let answer = self.client.request(request.map_err(Error::BuildRequest)?).await;
        looked(answer)
    }

    /// All objects of a path, as they are.
    async fn many(&self, path: &str) -> Result<Look<Vec<Value>>, Error> {
        self.kept(path, ListParams::default(), Some).await
    }

    /// All objects of a path, made into what is kept of them.
    async fn kept<T: DeserializeOwned, K, C: Default + Extend<K>>(
        &self,
        path: &str,
        params: ListParams,
        keep: impl Fn(T) -> Option<K>,
    ) -> Result<Look<C>, Error> {
        let mut all = C::default();
        let keep = |it: T| all.extend(keep(it));
        let read = each(&self.client, path, params.limit(PAGE), keep).await;
        Ok(looked(read)?.map(|()| all))
    }

    /// What is served of each API that is used.
    async fn apis(&self) -> Result<BTreeMap<String, Look<BTreeSet<String>>>, Error> {
        #[derive(Deserialize)]
        struct Resources {
            resources: Vec<Named>,
        }
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let used: [&Resource; 7] = [
            &WORKS,
            &WORK_SETS,
            &CLUSTERS,
            &DECISIONS,
            &MANAGEMENTS,
            &GITOPS_CLUSTERS,
            &REPORTS,
        ];
        let mut apis = BTreeMap::new();
        for api in used.map(Resource::api_version) {
            let request = http::Request::get(format!("/apis/{api}")).body(Vec::new());
            let request =
                request.map_err(|error| Error::BuildRequest(kube::core::request::Error::BuildRequest(error)))?;
            let served = looked(self.client.request::<Resources>(request).await)?;
            let served = served.map(|all| all.resources.into_iter().map(|it| it.name).collect());
            apis.insert(api, served);
        }
        Ok(apis)
    }

    /// The namespaces that have an Argo CD.
    async fn elsewhere(&self) -> Result<Look<Vec<String>>, Error> {
        let named = ListParams::default().fields(&format!("metadata.name={CONFIG_MAP}"));
        let namespace = |it: Value| it["metadata"]["namespace"].as_str().map(str::to_owned);
        self.kept(&CONFIG_MAPS.path(&Place::new("", "")), named, namespace)
            .await
    }

    async fn applications(&self, namespace: &str) -> Result<Look<Vec<doctor::Application>>, Error> {
        let path = APPLICATIONS.path(&Place::new("", ""));
        self.kept(&path, ListParams::default(), |it: read::Application| {
            it.of_argo_cd(namespace)
        })
        .await
    }

    async fn projects(&self, here: &Place) -> Result<Look<BTreeMap<String, doctor::Project>>, Error> {
        self.kept(&PROJECTS.path(here), ListParams::default(), |it: Value| {
            read::project(&it)
        })
        .await
    }

    async fn managed_clusters(&self) -> Result<Look<BTreeMap<String, doctor::Cluster>>, Error> {
        let path = CLUSTERS.path(&Place::new("", ""));
        self.kept(&path, ListParams::default(), |it| Some(read::cluster(it)))
            .await
    }

    /// The managed clusters with argocd-agent, and whether it is available there.
    async fn addons(&self) -> Result<Look<BTreeMap<String, bool>>, Error> {
        let named = ListParams::default().fields(&format!("metadata.name={ADDON}"));
        self.kept(&ADDONS.path(&Place::new("", "")), named, |it| Some(read::addon(it)))
            .await
    }

    /// The works of Applications: those of a Placement, and those of a cluster.
    async fn delivered(&self, tracking: &Tracking) -> Result<(Look<Vec<ReplicaSet>>, Look<Vec<Work>>), Error> {
        let everywhere = Place::new("", "");
        let all = ListParams::default;
        let sets: Look<Vec<ReplicaSet>> = self
            .kept(&WORK_SETS.path(&everywhere), all(), |it: read::Work| it.set(tracking))
            .await?;
        // As OCM calls the set on the works that it makes of it.
        let labels = sets
            .there()
            .into_iter()
            .flatten()
            .map(|set| set.place.replacen('/', ".", 1));
        let labels: BTreeSet<String> = labels.collect();
        let works = self
            .kept(&WORKS.path(&everywhere), all(), |it: read::Work| {
                it.work(tracking, &labels)
            })
            .await?;
        Ok((sets, works))
    }

    /// The pods of the repo-server whose log says that tools are not confined, and what these can reach. A log that is not there yet
    /// says nothing.
    async fn unconfined(&self, seen: &Seen) -> Result<Look<BTreeMap<String, String>>, Error> {
        let pods = seen.repo_server().and_then(|it| seen.pods_of(it)).unwrap_or_default();
        let path = format!("/api/v1/namespaces/{}/pods", seen.namespace);
        let params = LogParams {
            container: Some(PLUGIN.to_owned()),
            limit_bytes: Some(LOG_SIZE),
            tail_lines: Some(LOG_LINES),
            ..LogParams::default()
        };
        let mut unconfined = BTreeMap::new();
        for pod in pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()) {
            let request = Request::new(&path).logs(pod, &params).map_err(Error::BuildRequest)?;
            match self.client.request_text(request).await {
                Ok(log) => {
                    if let Some(reached) = confine::reached_in_log(&log) {
                        unconfined.insert(pod.to_owned(), reached.to_owned());
                    }
                }
                Err(error) => match status(&error) {
                    Some(403) => return Ok(Look::Refused(reason(&error))),
                    Some(401) | None => return Err(error),
                    Some(_) => {}
                },
            }
        }
        Ok(Look::There(unconfined))
    }

    /// Whether rights are given to ServiceAccounts of this namespace. Nobody is told by that, and nothing is written.
    async fn rights(&self, rights: Vec<Right>, namespace: &str) -> Result<Look<Vec<(Right, bool)>>, Error> {
        let reviews: Vec<_> = rights.iter().map(|right| right.review(namespace).to_string()).collect();
        let mut reviews = reviews.into_iter();
        let Some(first) = reviews.next() else {
            return Ok(Look::Absent);
        };
        // Where this one is refused, all are.
        let mut given = match looked(given(self.client.clone(), first).await)? {
            Look::There(given) => vec![given],
            Look::Absent => return Ok(Look::Absent),
            Look::Refused(why) => return Ok(Look::Refused(why)),
        };
        let others = reviews.map(|review| self::given(self.client.clone(), review));
        for other in together(others.collect()).await {
            given.push(other?);
        }
        Ok(Look::There(rights.into_iter().zip(given).collect()))
    }
}

/// Whether the right is given that is asked for.
async fn given(client: Client, review: String) -> Result<bool, Error> {
    let request = http::Request::builder()
        .method(Method::POST)
        .uri("/apis/authorization.k8s.io/v1/subjectaccessreviews")
        .header("content-type", "application/json")
        .body(review.into_bytes());
    let request = request.map_err(|error| Error::BuildRequest(kube::core::request::Error::BuildRequest(error)))?;
    let answer: Value = client.request(request).await?;
    Ok(answer["status"]["allowed"] == true)
}

/// What an answer means: that something is there, is not, or cannot be looked at. Where nobody answers, it means none of that.
fn looked<T>(answer: Result<T, Error>) -> Result<Look<T>, Error> {
    match answer {
        Ok(it) => Ok(Look::There(it)),
        Err(error) => match status(&error) {
            Some(404) => Ok(Look::Absent),
            // Not us at all.
            Some(401) | None => Err(error),
            // It may also be broken, such as a kind whose versions nobody converts.
            Some(_) => Ok(Look::Refused(reason(&error))),
        },
    }
}
