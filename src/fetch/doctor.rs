//! Reads the state that `doctor` checks. Keeps only the checked fields of works, page by page.

mod read;

use super::application::{FetchedApplication, WorksOfArgoCds};
use super::{Hub, WorkReader, describe_error, to_lookup};
use crate::diagnosis;
use crate::diagnosis::DiagnosedCluster;
use crate::doctor;
use crate::doctor::{HubNode, HubState, HubWork, Lookup, PLUGIN, Permission, ReplicaSet};
use crate::install::{
    AUTHORITY, AUTHORITY_SECRET, CLUSTER_PROXY_NAMESPACE, CMD_PARAMS, CONTROLLER, LIVE, PARAMS, REPO_SERVER, SERVER,
    component_of, live_authority, required_config_maps,
};
use crate::workload::{name, object_ref};
use generate::{confine, health_rules};
use hub::{PAGE, WORK_PAGE, each, explain, in_order, status};
use kube::core::params::{GetParams, ListParams, PostParams};
use kube::core::request::Request;
use kube::core::subresource::LogParams;
use kube::{Client, Error};
use ocm::argocd_agent::ADDON;
use ocm::global_projects::GlobalProjects;
use ocm::resources::{
    ADDONS, APPLICATIONS, CLUSTERS, CONFIG_MAPS, DECISIONS, DEPLOYMENTS, GITOPS_CLUSTERS, LEASES, MANAGEMENTS, NODES,
    PLACEMENTS, PROJECTS, REPORTS, SECRETS, WORK_SETS, WORKS,
};
use ocm::tracking::{CONFIG_MAP, Tracking};
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum length of a log: its end, in lines and in bytes.
const LOG_LINES: i64 = 2000;
const LOG_SIZE: i64 = 4 << 20;

/// The works for Placements and for clusters, and the clusters with the permissions of the view.
type Delivered = (Lookup<Vec<ReplicaSet>>, Lookup<Vec<HubWork>>, BTreeSet<String>);

impl WorkReader {
    /// Reads the state of a hub that `doctor` checks; its Argo CD is in this namespace. A read that is not permitted is part of
    /// the state.
    pub(crate) fn examine(&self, namespace: &str) -> Result<HubState, String> {
        let Self { runtime, hub, .. } = self;
        let hub_state = runtime.block_on(hub.examine(namespace));
        hub_state.map_err(|error| describe_error(&error, &hub.url))
    }
}

/// Returns the Placements of a ManifestWorkReplicaSet that selects no managed cluster.
pub(super) fn empty_placements(set: &str) -> Vec<ObjectRef> {
    let set = serde_json::from_str::<read::ReadWork>(set);
    set.map(|set| set.empty_placements()).unwrap_or_default()
}

/// Returns true if an add-on, as JSON, is available on its managed cluster.
pub(super) fn is_available(addon: &str) -> bool {
    serde_json::from_str(addon).is_ok_and(|addon| read::addon(addon).1)
}

impl Hub {
    async fn examine(&self, namespace: &str) -> Result<HubState, Error> {
        let in_namespace = |api: &str, plural: &str| format!("/{api}/namespaces/{namespace}/{plural}");
        let config_maps = CONFIG_MAPS.path(namespace);
        let config = self.get(&config_maps, CONFIG_MAP).await?;
        let tracking = match config.found() {
            Some(config) => Tracking::configured(|key| config["data"][key].as_str()),
            None => Tracking::unknown(),
        };
        let globals = GlobalProjects::configured(|key| config.text(key));
        let mut state = HubState {
            namespace: namespace.to_owned(),
            config,
            ..HubState::default()
        };
        let of_argo_cd = async {
            state.deployments = self.list(&DEPLOYMENTS.path(namespace)).await?;
            state.stateful_sets = self.list(&in_namespace("apis/apps/v1", "statefulsets")).await?;
            state.pods = self.list(&in_namespace("api/v1", "pods")).await?;
            state.leases = self.list(&LEASES.path(namespace)).await?;
            state.plugin = self.get(&config_maps, PLUGIN).await?;
            state.health_rules = self.get(&config_maps, health_rules::custom::CONFIG_MAP).await?;
            state.settings = self.get(&config_maps, CONTROLLER).await?;
            state.agent_params = self.get(&config_maps, PARAMS).await?;
            state.cmd_params = self.get(&config_maps, CMD_PARAMS).await?;
            let projects = self.list(&PROJECTS.path(namespace)).await?;
            state.projects = projects.map(|projects| read::projects(&projects, &globals));
            Ok(())
        };
        let of_ocm = async {
            let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            state.work_crd = self.get(crds, &format!("{}.{}", WORKS.plural, WORKS.group)).await?;
            let managers = "/apis/operator.open-cluster-management.io/v1/clustermanagers";
            state.cluster_managers = self.list(managers).await?;
            state.management = self.get(&MANAGEMENTS.path(""), ADDON).await?;
            state.addons = self.addons(ADDON).await?;
            let keep = |gitops_cluster| read::other_version(&gitops_cluster);
            state.other_versions = self.list_all(&GITOPS_CLUSTERS, keep).await?;
            state.policies = self.admission("validatingadmissionpolicies").await?;
            state.bindings = self.admission("validatingadmissionpolicybindings").await?;
            state.apis = self.apis().await?;
            Ok(())
        };
        let of_applications = async {
            let mut works = WorksOfArgoCds::default();
            let keep = |application: FetchedApplication| {
                application.add_works(&mut works, namespace);
                application.of_argo_cd(namespace)
            };
            state.applications = self.list_all(&APPLICATIONS, keep).await?;
            state.with_works_of_another = works.pairs();
            Ok(())
        };
        let of_works = async {
            let permitting;
            (state.sets, state.works, permitting) = self.delivered(&tracking, namespace).await?;
            let keep = |placement: Value| unsatisfied(&placement);
            state.unsatisfied_placements = self.list_all(&PLACEMENTS, keep).await?;
            Ok::<_, Error>(permitting)
        };
        let of_clusters = self.managed_clusters();
        let (.., clusters, permitting) = tokio::try_join!(of_argo_cd, of_ocm, of_applications, of_clusters, of_works)?;
        state.clusters = clusters;
        if state.config == Lookup::NotFound {
            state.argocd_namespaces = self.argocd_namespaces().await?;
        }
        state.nodes = self
            .list_all(&NODES, |node: Value| Some(HubNode::from_object(&node)))
            .await?;
        state.missing_mounts = self.missing_mounts(&state, &config_maps).await?;
        if state.has_live() {
            state.live = Some(self.live(namespace, permitting).await?);
        }
        state.unconfined = self.unconfined(&state).await?;
        let permissions = doctor::required_permissions(&state);
        state.permissions = self.permissions(permissions, namespace).await?;
        Ok(state)
    }

    async fn get(&self, path: &str, name: &str) -> Result<Lookup<Value>, Error> {
        let request = Request::new(path).get(name, &GetParams::default());
        let answer = self.client.request(request.map_err(Error::BuildRequest)?).await;
        to_lookup(answer)
    }

    /// Lists all objects of a path.
    async fn list(&self, path: &str) -> Result<Lookup<Vec<Value>>, Error> {
        self.list_reduced(path, ListParams::default(), Some).await
    }

    /// Lists all objects of a path, and keeps a part of each. Without a limit of objects in one response, they may be as large as works.
    async fn list_reduced<T: DeserializeOwned, K, C: Default + Extend<K>>(
        &self,
        path: &str,
        params: ListParams,
        mut keep: impl FnMut(T) -> Option<K>,
    ) -> Result<Lookup<C>, Error> {
        let mut all = C::default();
        let keep = |object: T| all.extend(keep(object));
        let page = params.limit.unwrap_or(WORK_PAGE);
        let read = each(&self.client, path, params.limit(page), keep).await;
        Ok(to_lookup(read)?.map(|()| all))
    }

    /// Lists all objects of a kind, and keeps a part of each.
    async fn list_all<T: DeserializeOwned, K, C: Default + Extend<K>>(
        &self,
        resource: &Resource,
        keep: impl FnMut(T) -> Option<K>,
    ) -> Result<Lookup<C>, Error> {
        self.list_reduced(&resource.path(""), ListParams::default(), keep).await
    }

    /// Lists the admission policies of this program, or their bindings.
    async fn admission(&self, plural: &str) -> Result<Lookup<Vec<Value>>, Error> {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let keep = |object: Value| Some(object).filter(|object| name(object).starts_with(PLUGIN));
        self.list_reduced(&path, ListParams::default(), keep).await
    }

    /// Reads the resources of each used API.
    async fn apis(&self) -> Result<BTreeMap<String, Lookup<BTreeSet<String>>>, Error> {
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
            let served = to_lookup(self.client.list_api_group_resources(&api).await)?;
            let served = served.map(|all| all.resources.into_iter().map(|resource| resource.name).collect());
            apis.insert(api, served);
        }
        Ok(apis)
    }

    pub(super) async fn argocd_namespaces(&self) -> Result<Lookup<Vec<String>>, Error> {
        let named = ListParams::default().fields(&format!("metadata.name={CONFIG_MAP}"));
        let namespace = |value: Value| value["metadata"]["namespace"].as_str().map(str::to_owned);
        self.list_reduced(&CONFIG_MAPS.path(""), named, namespace).await
    }

    pub(super) async fn managed_clusters(&self) -> Result<Lookup<BTreeMap<String, DiagnosedCluster>>, Error> {
        let keep = |cluster| Some(read::cluster(cluster));
        self.list_reduced(&CLUSTERS.path(""), ListParams::default().limit(PAGE), keep)
            .await
    }

    /// Returns the managed clusters with an add-on, and its availability on each.
    async fn addons(&self, name: &str) -> Result<Lookup<BTreeMap<String, bool>>, Error> {
        let named = ListParams::default()
            .limit(PAGE)
            .fields(&format!("metadata.name={name}"));
        let keep = |addon| Some(read::addon(addon));
        self.list_reduced(&ADDONS.path(""), named, keep).await
    }

    /// Returns our ConfigMaps that Argo CD's Deployments mount and that do not exist; see [`HubState::missing_mounts`].
    async fn missing_mounts(&self, state: &HubState, config_maps: &str) -> Result<Vec<(String, String)>, Error> {
        let deployments = state.deployments.items();
        let parts = [REPO_SERVER, SERVER].into_iter();
        let mut missing = Vec::new();
        for workload in parts.filter_map(|part| component_of(deployments, part)) {
            let deployment = name(workload);
            for name in required_config_maps(workload).filter(|name| name.starts_with(PLUGIN)) {
                if self.get(config_maps, name).await? == Lookup::NotFound {
                    missing.push((deployment.to_owned(), name.to_owned()));
                }
            }
        }
        Ok(missing)
    }

    /// Reads the parts of the view into the clusters.
    async fn live(&self, namespace: &str, permitting: BTreeSet<String>) -> Result<doctor::LiveState, Error> {
        let config_maps = CONFIG_MAPS.path(namespace);
        let token = self.get(&SECRETS.path(namespace), LIVE).await?;
        let issued = self
            .get(&SECRETS.path(CLUSTER_PROXY_NAMESPACE), AUTHORITY_SECRET)
            .await?;
        Ok(doctor::LiveState {
            has_token: token.map(|value| value["data"]["token"].as_str().is_some_and(|token| !token.is_empty())),
            certificate: self.get(&config_maps, LIVE).await?,
            authority: self.get(&config_maps, AUTHORITY).await?,
            issued_authority: issued.map(|value| live_authority(&value).unwrap_or_default()),
            rbac: self.get(&config_maps, "argocd-rbac-cm").await?,
            addons: self.addons(super::CLUSTER_PROXY).await?,
            permitting,
        })
    }

    /// Returns the works of Applications: those for a Placement, and those for a cluster; and the clusters to which any work delivers
    /// the permissions of the view.
    async fn delivered(&self, tracking: &Tracking, namespace: &str) -> Result<Delivered, Error> {
        let keep = |set: read::ReadWork| set.set(tracking);
        let sets: Lookup<Vec<ReplicaSet>> = self.list_all(&WORK_SETS, keep).await?;
        // The label with which OCM names the set on its works.
        let labels = sets.items().iter();
        let labels = labels.map(|set| (set.qualified_name.replacen('/', ".", 1), set.application.clone()));
        let labels: BTreeMap<String, Box<str>> = labels.collect();
        let user = live::tunnel::cluster_user(namespace);
        let mut permitting = BTreeSet::new();
        let keep = |work: read::ReadWork| {
            permitting.extend(work.cluster_with_binding(&user));
            work.work(tracking, &labels)
        };
        let works = self.list_all(&WORKS, keep).await?;
        Ok((sets, works, permitting))
    }

    /// Returns the Pods of the repo-server whose log says that tools are not confined, and the resources that these can reach. A
    /// missing log reports nothing.
    async fn unconfined(&self, hub_state: &HubState) -> Result<Lookup<BTreeMap<String, String>>, Error> {
        let pods = hub_state
            .repo_server()
            .and_then(|repo_server| hub_state.pods_of(repo_server))
            .unwrap_or_default();
        let path = format!("/api/v1/namespaces/{}/pods", hub_state.namespace);
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
                    Some(403) => return Ok(Lookup::Refused(explain(&error))),
                    Some(401) | None => return Err(error),
                    Some(_) => {}
                },
            }
        }
        Ok(Lookup::Found(unconfined))
    }

    /// Checks if permissions are granted to ServiceAccounts of this namespace, by SubjectAccessReviews, which write nothing.
    async fn permissions(
        &self,
        permissions: Vec<Permission>,
        namespace: &str,
    ) -> Result<Lookup<Vec<(Permission, bool)>>, Error> {
        let reviews: Vec<_> = permissions
            .iter()
            .map(|permission| permission.review(namespace).to_string())
            .collect();
        let mut reviews = reviews.into_iter();
        let Some(first) = reviews.next() else {
            return Ok(Lookup::NotFound);
        };
        // If the first review is denied, so are all others.
        let mut granted = match to_lookup(is_granted(self.client.clone(), first).await)? {
            Lookup::Found(first) => vec![first],
            refused => return Ok(refused.map(|_| Vec::new())),
        };
        let others = reviews.map(|review| self::is_granted(self.client.clone(), review));
        granted.extend(in_order(others).await?);
        Ok(Lookup::Found(permissions.into_iter().zip(granted).collect()))
    }
}

/// Returns the name of a Placement that selects no managed cluster, with OCM's reason.
fn unsatisfied(placement: &Value) -> Option<(String, String)> {
    Some((object_ref(placement).to_string(), diagnosis::unsatisfied(placement)?))
}

/// Returns true if the requested permission is granted.
async fn is_granted(client: Client, review: String) -> Result<bool, Error> {
    let reviews = Request::new("/apis/authorization.k8s.io/v1/subjectaccessreviews");
    let request = reviews.create(&PostParams::default(), review.into_bytes());
    let answer: Value = client.request(request.map_err(Error::BuildRequest)?).await?;
    Ok(answer["status"]["allowed"] == true)
}
