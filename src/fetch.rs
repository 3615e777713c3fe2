//! Reads from a hub the state that `diff`, `status`, `gitopscluster status` and `doctor` show. Writes nothing.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod application;
mod doctor;
mod gitopscluster;
mod overview;
mod peers;

pub(crate) use peers::peers;

use crate::cli::HubArgs;
use crate::diagnosis;
use crate::diagnosis::DiagnosedCluster;
use crate::doctor::Lookup;
use crate::runtime::runtime;
use crate::view::kubectl_name;
use controller::LEASE;
use hub::{NO_HUB, PAGE, each, each_metadata, explain, in_order, optional, status};
use jiff::Timestamp;
use kube::core::params::{GetParams, ListParams};
use kube::core::request::Request;
use kube::{Client, Error};
use live::hub_reader::Delivery;
use manifest::value::{Map, Value};
use manifest::yaml;
use ocm::application_works::{ApplicationName, ApplicationWorks};
use ocm::hold::{self, Hold};
use ocm::ownership::{ListedResource, Ownership};
use ocm::resources::{ADDONS, APPLICATIONS, CONFIG_MAPS, LEASES, NAMESPACES, PLACEMENTS, WORK_SETS, WORKS};
use ocm::tracking::{self, Tracking};
use primitives::object_ref::ObjectRef;
use primitives::resource::Resource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::convert::identity;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// OCM's add-on whose tunnel leads to a managed cluster.
const CLUSTER_PROXY: &str = "cluster-proxy";

/// The time limit of completions, for which the shell waits while the user types.
const NAMES_TIMEOUT: Duration = Duration::from_secs(2);

/// The time limit of [`kubernetes_version`].
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the namespaces and names of all objects of a kind for a completion; if that is not permitted, those in `namespace`. Returns
/// none if the hub does not answer within two seconds.
pub(crate) fn names(hub: &HubArgs, resource: &'static Resource, namespace: Option<&str>) -> Vec<(String, String)> {
    let read = async {
        let hub = Hub::connect(hub).await.ok()?;
        let list = async |namespace| list(&hub.client, resource, namespace, &|_| true).await.ok();
        match (list("").await, namespace) {
            (None, Some(namespace)) => list(namespace).await,
            (all, _) => all,
        }
    };
    let listed = in_time(NAMES_TIMEOUT, read).into_iter().flatten();
    listed.map(|listed| (listed.namespace, listed.name)).collect()
}

/// Returns the names of the objects that an Application delivers to a managed cluster, or to all, for a completion; none if the hub does
/// not answer within two seconds.
pub(crate) fn delivered(hub: &HubArgs, application: &ApplicationName, cluster: Option<&str>) -> Vec<String> {
    let read = async {
        let hub = Hub::connect(hub).await.ok()?.client;
        let delivery = Delivery::read_application(&hub, application, None).await.ok()?;
        let clusters = match cluster {
            Some(cluster) => BTreeSet::from([cluster.to_owned()]),
            None => delivery.clusters(&hub).await.ok()?,
        };
        let mut works = Vec::new();
        for cluster in &clusters {
            works.extend(delivery.works(&hub, cluster).await.ok()?);
        }
        Some(live::sent::objects(&works).iter().map(kubectl_name).collect())
    };
    in_time(NAMES_TIMEOUT, read).unwrap_or_default()
}

/// Returns the numbers of the hub's version of Kubernetes, as Argo CD passes them to the plugin; `None` if the hub does not answer in
/// time.
pub(crate) fn kubernetes_version(hub: &HubArgs) -> Option<String> {
    let read = async {
        let answer = Hub::connect(hub).await.ok()?.client.apiserver_version().await.ok()?;
        let numbers = answer.git_version.trim_start_matches('v').split(['-', '+']).next();
        numbers.map(str::to_owned)
    };
    in_time(VERSION_TIMEOUT, read)
}

/// Returns the result of a read; `None` if the hub does not answer in time.
fn in_time<T>(limit: Duration, read: impl Future<Output = Option<T>>) -> Option<T> {
    let limited = async { tokio::time::timeout(limit, read).await };
    runtime().ok()?.block_on(limited).ok()?
}

/// The works on a hub.
#[derive(Debug, Default)]
pub(crate) struct FetchedWorks {
    /// The JSON of each work.
    pub(crate) works: Vec<String>,
    /// The managed clusters, if the user is permitted to read them.
    pub(crate) clusters: Option<BTreeMap<String, DiagnosedCluster>>,
    /// The reads that failed: one line each.
    pub(crate) notices: Vec<String>,
}

/// Reads the works of an Application, and the managed clusters.
pub(crate) fn works(hub: &HubArgs, ownership: &Ownership) -> Result<FetchedWorks, String> {
    runtime()?.block_on(async {
        let hub = Hub::connect(hub).await.map_err(|error| {
            let by_file = ", or compare with a file with --file";
            error.replace(NO_HUB, "no hub to compare with: ") + if error.starts_with(NO_HUB) { by_file } else { "" }
        })?;
        let fetched = hub.list_works(ownership).await;
        fetched.map_err(|error| describe_error(&error, &hub.url))
    })
}

/// The state of an Application, from the first and from later reads.
#[derive(Debug, Default)]
pub(crate) struct ApplicationState {
    /// The JSON of each work.
    pub(crate) works: Vec<Arc<str>>,
    /// The reads that failed: one line each.
    pub(crate) notices: Vec<String>,
    /// The managed clusters, if the user is permitted to read them.
    pub(crate) clusters: Option<BTreeMap<String, DiagnosedCluster>>,
    /// The Placements of its works that select no managed cluster, with OCM's reasons, as far as the user may read them.
    pub(crate) unsatisfied_placements: BTreeMap<String, String>,
    pub(crate) application: Lookup<diagnosis::DiagnosedApplication>,
    /// The holds of managed clusters that have not ended, if the user is permitted to read namespaces.
    pub(crate) holds: Vec<Hold>,
}

/// Reads the works of an Application repeatedly: of unchanged works only the metadata.
pub(crate) struct WorkReader {
    runtime: Runtime,
    hub: Hub,
    /// The time until which the hub must have answered.
    deadline: Option<Instant>,
    /// True if the hub answered the last read, and may answer otherwise soon.
    is_overloaded: bool,
    known: BTreeMap<Version, Arc<str>>,
}

/// A version of a work: its kind, namespace, name and `resourceVersion`.
type Version = (&'static str, String, String, String);

impl WorkReader {
    /// Creates a reader. Sends no request yet.
    pub(crate) fn connect(args: &HubArgs) -> Result<Self, String> {
        let runtime = runtime()?;
        let hub = runtime.block_on(Hub::connect(args))?;
        Ok(Self {
            runtime,
            hub,
            deadline: None,
            is_overloaded: false,
            known: BTreeMap::new(),
        })
    }

    /// Returns true if the hub answered the last read with an error that may be over soon, as while its API server restarts.
    pub(crate) fn is_overloaded(&self) -> bool {
        self.is_overloaded
    }

    /// Limits the time of all reads, in which the client repeats requests that the hub rejects because it is busy.
    pub(crate) fn limit(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Returns the URL of the hub.
    pub(crate) fn url(&self) -> &str {
        &self.hub.url
    }

    /// Reads the works of `application` for `clusters`, or for all clusters if the list is empty.
    pub(crate) fn read_works(
        &mut self,
        application: &ApplicationName,
        clusters: &[String],
    ) -> Result<ApplicationState, String> {
        let Self {
            runtime,
            hub,
            deadline,
            is_overloaded,
            known,
        } = self;
        let state = runtime.block_on(until(*deadline, hub.read_application(application, clusters, known)));
        let code = state.as_ref().and_then(|state| status(state.as_ref().err()?));
        *is_overloaded = code.is_some_and(|code| code == 429 || code >= 500);
        let Some(state) = state else {
            return Err(format!("the hub at {} has not answered in time", hub.url));
        };
        state.unwrap_or_else(|error| {
            let remediation = ": name managed clusters whose works you may read with --clusters";
            let hint = if status(&error) == Some(403) && clusters.is_empty() {
                remediation
            } else {
                ""
            };
            Err(describe_error(&error, &hub.url) + hint)
        })
    }

    /// Returns true if the tunnel of OCM's cluster-proxy to a managed cluster is known to be open.
    pub(crate) fn has_tunnel(&self, cluster: &str) -> bool {
        let read = until(self.deadline, self.hub.get_text(&ADDONS, cluster, CLUSTER_PROXY));
        let lookup = self.runtime.block_on(read).and_then(Result::ok);
        let addon = lookup.as_ref().and_then(Lookup::found);
        addon.is_some_and(|text| doctor::is_available(text))
    }

    /// Waits for a time. The runtime serves the connection meanwhile.
    pub(crate) fn pause(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }
}

/// Returns what is read until the deadline, if there is one.
async fn until<T>(deadline: Option<Instant>, read: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), read).await.ok(),
        None => Some(read.await),
    }
}

struct Hub {
    client: Client,
    url: String,
}

impl Hub {
    async fn connect(args: &HubArgs) -> Result<Self, String> {
        let (client, url) = hub::client(hub::config(&args.connection()).await?, identity)?;
        Ok(Self { client, url })
    }

    async fn list_works(&self, ownership: &Ownership) -> Result<FetchedWorks, Error> {
        let mut fetched = FetchedWorks::default();
        for resource in [&WORKS, &WORK_SETS] {
            let selects = |metadata: &Map<'_>| ownership.owns(resource.kind, metadata);
            let names = match list(&self.client, resource, "", &selects).await {
                Ok(names) => names,
                // OCM installs both kinds, but the second is newer.
                Err(error) if status(&error) == Some(404) && resource.kind != WORKS.kind => continue,
                Err(error) if status(&error) == Some(403) => {
                    fetched.notices.push(format!(
                        "{} outside the namespaces of the targets are not read: {}",
                        resource.plural,
                        explain(&error)
                    ));
                    let namespaces = ownership.namespaces(resource.kind).iter();
                    let lists = namespaces.map(|namespace| list(&self.client, resource, namespace, &selects));
                    in_order(lists).await?.concat()
                }
                Err(error) => return Err(error),
            };
            let works = names
                .into_iter()
                .map(|listed| async move { get(&self.client, resource, &listed.namespace, &listed.name).await });
            fetched.works.extend(in_order(works).await?.into_iter().flatten());
        }
        fetched.clusters = self.clusters().await?;
        Ok(fetched)
    }

    /// Reads the state of an Application; `known` are the works from the last read. Returns one line if there is no Argo CD.
    async fn read_application(
        &self,
        application: &ApplicationName,
        clusters: &[String],
        known: &mut BTreeMap<Version, Arc<str>>,
    ) -> Result<Result<ApplicationState, String>, Error> {
        let Some(tracking) = self.tracking(&application.argo_cd).await? else {
            return Ok(Err(self.no_argo_cd(&application.argo_cd).await?));
        };
        let mut state = ApplicationState::default();
        // Read first: then the works of a completed sync are among the works that are read afterwards.
        let ApplicationName { namespace, name, .. } = application;
        let mut listed = HashSet::new();
        state.application = match request_text(&self.client, &APPLICATIONS, namespace, name).await {
            Ok(text) => {
                let fetched: application::FetchedApplication = serde_json::from_str(&text).map_err(|_| no_api())?;
                listed = fetched.works(&application.argo_cd).map(ListedResource::key).collect();
                Lookup::Found(fetched.reduced())
            }
            Err(error) => match status(&error) {
                Some(404) => Lookup::NotFound,
                Some(403) => Lookup::Refused(explain(&error)),
                // It may be over at the next read. Without the Application, old works look current.
                _ => return Err(error),
            },
        };
        let sets = match clusters {
            [] => {
                let application_works = ApplicationWorks::new(application, &tracking, &listed, &[]);
                self.list_sets(application_works, &mut state.notices).await?
            }
            _ => Vec::new(),
        };
        let listed_sets = listed.iter().filter(|(kind, ..)| *kind == WORK_SETS.kind);
        let listed_sets = listed_sets.map(|(_, namespace, name)| (namespace.clone(), name.clone()));
        let set_names = sets.iter().map(|set| (set.namespace.clone(), set.name.clone()));
        let set_names: Vec<_> = set_names.chain(listed_sets).collect();
        let application_works = ApplicationWorks::new(application, &tracking, &listed, &set_names);
        let selects = |metadata: &Map<'_>| application_works.has(WORKS.kind, metadata);
        let namespaces: Vec<_> = match clusters {
            [] => vec![""],
            some => some.iter().map(String::as_str).collect(),
        };
        let lists = namespaces
            .into_iter()
            .map(|namespace| list(&self.client, &WORKS, namespace, &selects));
        let works = in_order(lists).await?.concat();
        let listed = sets.into_iter().map(|set| (&WORK_SETS, set));
        let listed = listed.chain(works.into_iter().map(|work| (&WORKS, work)));
        self.read_new_works(listed, known).await?;
        state.works = known.values().map(Arc::clone).collect();
        state.clusters = self.clusters().await?;
        let on_hold = ListParams::default().labels(hold::LABEL);
        let keep = |namespace: serde_json::Value| state.holds.extend(Hold::from_namespace(&namespace));
        // A user of an Application need not read namespaces.
        why_forbidden(self.each(&NAMESPACES, "", on_hold, keep).await)?;
        if state.holds.iter().any(|hold| hold.until.is_some()) {
            let policy_time = match self.get_text(&LEASES, &application.argo_cd, LEASE).await? {
                Lookup::Found(text) => hold::policy_time(serde_json::from_str(&text).ok().as_ref()),
                Lookup::NotFound => hold::policy_time(None),
                // A user of an Application need not read it.
                Lookup::Refused(_) => Timestamp::now(),
            };
            state.holds.retain(|hold| !hold.is_over(policy_time));
        }
        let sets = known.iter().filter(|((kind, ..), _)| *kind == WORK_SETS.kind);
        let placements: BTreeSet<_> = sets.flat_map(|(_, text)| doctor::empty_placements(text)).collect();
        for object_ref in placements {
            let ObjectRef { namespace, name } = &object_ref;
            let text = self.get_text(&PLACEMENTS, namespace, name).await?;
            let placement = text.found().and_then(|text| serde_json::from_str(text).ok());
            let why = placement.as_ref().and_then(diagnosis::unsatisfied);
            state
                .unsatisfied_placements
                .extend(why.map(|why| (object_ref.to_string(), why)));
        }
        Ok(Ok(state))
    }

    /// Lists the sets of works of an Application, or adds a notice if we are not permitted to.
    async fn list_sets(
        &self,
        application_works: ApplicationWorks,
        notices: &mut Vec<String>,
    ) -> Result<Vec<Listed>, Error> {
        let selects = |metadata: &Map<'_>| application_works.has(WORK_SETS.kind, metadata);
        match list(&self.client, &WORK_SETS, "", &selects).await {
            Ok(sets) => Ok(sets),
            Err(error) if status(&error) == Some(404) => Ok(Vec::new()),
            Err(error) if status(&error) == Some(403) => {
                notices.push(format!("manifestworkreplicasets are not read: {}", explain(&error)));
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the listed works whose version is not known yet, and forgets those that are not listed.
    async fn read_new_works(
        &self,
        listed: impl Iterator<Item = (&'static Resource, Listed)>,
        known: &mut BTreeMap<Version, Arc<str>>,
    ) -> Result<(), Error> {
        let reads = listed.map(|(resource, work)| {
            let key = (resource.kind, work.namespace, work.name, work.version);
            let same = known.get(&key).map(Arc::clone);
            async move {
                let text = match same {
                    Some(text) => Some(text),
                    None => get(&self.client, resource, &key.1, &key.2).await?.map(Arc::from),
                };
                Ok::<_, Error>(text.map(|text| (key, text)))
            }
        });
        *known = in_order(reads).await?.into_iter().flatten().collect();
        Ok(())
    }

    /// Returns the tracking method of the Argo CD in this namespace, which is unknown if we are not permitted to read it; `None` if
    /// the namespace has no Argo CD.
    async fn tracking(&self, namespace: &str) -> Result<Option<Tracking>, Error> {
        let answer = match self.get_text(&CONFIG_MAPS, namespace, tracking::CONFIG_MAP).await? {
            Lookup::Found(answer) => answer,
            Lookup::NotFound => return Ok(None),
            Lookup::Refused(_) => return Ok(Some(Tracking::unknown())),
        };
        let Ok(Value::Map(answer)) = yaml::json(&answer) else {
            return Ok(Some(Tracking::unknown()));
        };
        let data = answer.get("data").and_then(Value::as_map);
        Ok(Some(Tracking::configured(|key| data?.get(key)?.as_str())))
    }

    /// Returns the error about a namespace without Argo CD.
    async fn no_argo_cd(&self, namespace: &str) -> Result<String, Error> {
        let others = match self.argocd_namespaces().await? {
            Lookup::Found(others) if !others.is_empty() => format!(": {}", others.join(", ")),
            _ => String::new(),
        };
        Ok(format!(
            "namespace {namespace} has no Argo CD: it has no ConfigMap {}: pass the namespace of Argo CD with --namespace{others}",
            tracking::CONFIG_MAP
        ))
    }

    async fn get_text(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Lookup<String>, Error> {
        to_lookup(request_text(&self.client, resource, namespace, name).await)
    }

    /// Passes all objects of a kind in this namespace to `keep`, page by page; an empty namespace means all.
    async fn each<T: DeserializeOwned>(
        &self,
        resource: &Resource,
        namespace: &str,
        params: ListParams,
        keep: impl FnMut(T),
    ) -> Result<(), Error> {
        let page = params.limit.unwrap_or(PAGE);
        let read = each(&self.client, &resource.path(namespace), params.limit(page), keep).await;
        read.map_err(without_serde)
    }

    /// Returns the managed clusters; `None` if we are not permitted to read them.
    async fn clusters(&self) -> Result<Option<BTreeMap<String, DiagnosedCluster>>, Error> {
        match self.managed_clusters().await? {
            Lookup::Found(clusters) => Ok(Some(clusters)),
            Lookup::NotFound | Lookup::Refused(_) => Ok(None),
        }
    }
}

/// Converts an answer: the object exists, does not exist, or cannot be read. Without an answer, it is an error.
fn to_lookup<T>(answer: Result<T, Error>) -> Result<Lookup<T>, Error> {
    match answer {
        Ok(value) => Ok(Lookup::Found(value)),
        Err(error) => match status(&error) {
            Some(404) => Ok(Lookup::NotFound),
            // The hub does not authenticate us.
            Some(401) | None => Err(error),
            // A kind may also be broken, for example by a failing conversion webhook.
            Some(_) => Ok(Lookup::Refused(explain(&error))),
        },
    }
}

/// Returns the reason why the hub does not permit a read; `None` if it does.
fn why_forbidden(answer: Result<(), Error>) -> Result<Option<String>, Error> {
    match answer {
        Ok(()) => Ok(None),
        Err(error) if status(&error) == Some(403) => Ok(Some(explain(&error))),
        Err(error) => Err(error),
    }
}

/// A work or another object, from its metadata.
#[derive(Clone, Debug)]
struct Listed {
    namespace: String,
    name: String,
    version: String,
}

/// Lists the metadata of the selected objects of a namespace; an empty one means all.
async fn list(
    client: &Client,
    resource: &Resource,
    namespace: &str,
    selects: &dyn Fn(&Map<'_>) -> bool,
) -> Result<Vec<Listed>, Error> {
    #[derive(Deserialize)]
    struct ListedObject {
        metadata: Option<Box<RawValue>>,
    }
    let mut all = Vec::new();
    let keep = |object: ListedObject| {
        let text = object.metadata.as_ref().map_or("", |metadata| metadata.get());
        let Ok(Value::Map(metadata)) = yaml::json(text) else {
            return;
        };
        let text = |key| metadata.get(key).and_then(Value::as_str).map(str::to_owned);
        if let Some(name) = text("name").filter(|_| selects(&metadata)) {
            all.push(Listed {
                namespace: text("namespace").unwrap_or_default(),
                name,
                version: text("resourceVersion").unwrap_or_default(),
            });
        }
    };
    let page = ListParams::default().limit(PAGE);
    let read = each_metadata(client, &resource.path(namespace), page, keep).await;
    read.map_err(without_serde)?;
    Ok(all)
}

/// Replaces an error about the form of an answer: API servers answer with JSON.
fn without_serde(error: Error) -> Error {
    match error {
        Error::SerdeError(_) => no_api(),
        other => other,
    }
}

/// Returns the JSON of a work; `None` if it was deleted after the list.
async fn get(client: &Client, resource: &Resource, namespace: &str, name: &str) -> Result<Option<String>, Error> {
    optional(request_text(client, resource, namespace, name).await)
}

/// Reads the JSON of an object.
async fn request_text(client: &Client, resource: &Resource, namespace: &str, name: &str) -> Result<String, Error> {
    let request = Request::new(resource.path(namespace)).get(name, &GetParams::default());
    client.request_text(request.map_err(Error::BuildRequest)?).await
}

fn no_api() -> Error {
    Error::Service("the server is not a Kubernetes API".into())
}

/// Formats an error of the hub at `url` as one line.
pub(crate) fn describe_error(error: &Error, url: &str) -> String {
    let reason = explain(error);
    match status(error) {
        Some(401) => format!("the hub at {url} does not accept the credentials of the kubeconfig: {reason}"),
        Some(403) => format!("the hub at {url} rejects the request: {reason}"),
        Some(404) => format!(
            "the hub at {url} has no ManifestWorks: install Open Cluster Management, or choose another hub with --context"
        ),
        Some(code) => format!("the hub at {url} answers with an error: {code} {reason}"),
        None => format!("the hub at {url} cannot be reached: {reason}"),
    }
}
