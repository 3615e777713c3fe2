//! The hub: connects to it and reads works, and what else says how they fare. Nothing is ever written.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod doctor;
mod gitopscluster;
mod pages;

pub use gitopscluster::Asked;
pub(crate) use pages::each;

use crate::cli::HubArgs;
use crate::diff::{ListedWork, Ownership};
use crate::generate::problem::plain;
use crate::status::{Application, Owned};
use crate::tracking::{self, Tracking};
use crate::value::{Map, Value};
use crate::works::{self, GROUP};
use crate::yaml;
use kube::client::{Body, ClientBuilder};
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::params::{GetParams, ListParams};
use kube::core::request::Request;
use kube::{Client, Error};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{self, Runtime};
use tokio::task::JoinSet;
use tower::util::MapRequestLayer;

/// What was found on a hub.
#[derive(Debug, Default)]
pub struct Found {
    /// The JSON of each work.
    pub works: Vec<String>,
    /// What could not be looked for: one line each.
    pub notices: Vec<String>,
}

/// A kind of work.
struct Resource {
    kind: &'static str,
    version: &'static str,
    plural: &'static str,
}

static WORKS: Resource = Resource {
    kind: works::KIND,
    version: "v1",
    plural: "manifestworks",
};

static REPLICA_SETS: Resource = Resource {
    kind: works::SET_KIND,
    version: "v1alpha1",
    plural: "manifestworkreplicasets",
};

/// How many works are listed by one request. Only their metadata is, but Argo CD keeps a copy of a work in an annotation.
pub(crate) const PAGE: u32 = 500;

/// How many requests are under way at a time.
const AT_ONCE: usize = 16;

/// How long the hub may be silent.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Reads the works of an Application.
///
/// # Errors
/// With one plain line, when the hub cannot be reached or does not let us read.
pub fn works(hub: &HubArgs, ownership: &Arc<Ownership>) -> Result<Found, String> {
    runtime()?.block_on(async {
        let hub = Hub::connect(hub).await.map_err(|error| {
            let by_file = ", or compare with a file by --file";
            error.replace(NO_HUB, "no hub to compare with: ") + if error.starts_with(NO_HUB) { by_file } else { "" }
        })?;
        let found = hub.read(ownership).await;
        found.map_err(|error| told(&error, &hub.url))
    })
}

/// How an Application is found, in the beginning and ever after.
#[derive(Debug, Default)]
pub struct Seen {
    /// The JSON of each work.
    pub works: Vec<Arc<str>>,
    /// What could not be looked for: one line each.
    pub notices: Vec<String>,
    /// The managed clusters that the hub does not hear from, where the user may see that.
    pub silent: BTreeSet<String>,
    /// What Argo CD says of a sync that goes on, where the user may see that.
    pub syncing: Option<String>,
}

/// Reads the works of an Application again and again: of those that have not changed only the metadata.
pub struct Reader {
    runtime: Runtime,
    hub: Hub,
    known: HashMap<Place, Arc<str>>,
}

/// A work as it was at a time: its kind, namespace, name and `resourceVersion`.
type Place = (&'static str, String, String, String);

impl Reader {
    /// Gets ready to read. Nothing is asked of the hub yet.
    ///
    /// # Errors
    /// With one plain line, when it is not known where the hub is.
    pub fn connect(args: &HubArgs) -> Result<Self, String> {
        let runtime = runtime()?;
        let hub = runtime.block_on(Hub::connect(args))?;
        Ok(Self {
            runtime,
            hub,
            known: HashMap::new(),
        })
    }

    /// Where the hub is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.hub.url
    }

    /// Reads the works of `application` for `clusters`, or for all where none are named.
    ///
    /// # Errors
    /// With one plain line, when the hub cannot be reached or does not let us read.
    pub fn read(&mut self, application: &Application, clusters: &[String]) -> Result<Seen, String> {
        let Self { runtime, hub, known } = self;
        let seen = runtime.block_on(hub.look(application, clusters, known));
        seen.map_err(|error| {
            let way_out = ": name managed clusters whose works you may read with --cluster";
            let hint = if status(&error) == Some(403) && clusters.is_empty() {
                way_out
            } else {
                ""
            };
            told(&error, &hub.url) + hint
        })
    }

    /// Lets time go by. The connection is looked after meanwhile.
    pub fn pause(&self, time: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }
}

fn runtime() -> Result<Runtime, String> {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no connection to a hub: {error}"))
}

/// Starts what is said where no hub is known.
pub(crate) const NO_HUB: &str = "no hub to read from: ";

/// What becomes of a request before it is sent.
pub(crate) type Asks = fn(http::Request<Body>) -> http::Request<Body>;

/// A client, and where it leads to. Nothing is asked there yet; each request is made what `asks` makes of it.
///
/// # Errors
/// With one plain line, when it cannot be made.
pub(crate) fn client(config: Config, asks: Asks) -> Result<(Client, String), String> {
    let url = config.cluster_url.to_string();
    match ClientBuilder::try_from(config) {
        Ok(client) => Ok((client.with_layer(&MapRequestLayer::new(asks)).build(), url)),
        Err(error) => Err(format!("no connection to {url}: {}", reason(&error))),
    }
}

struct Hub {
    client: Client,
    url: String,
}

impl Hub {
    async fn connect(args: &HubArgs) -> Result<Self, String> {
        let mut config = config(args).await?;
        config.read_timeout = Some(PATIENCE);
        let url = config.cluster_url.to_string();
        match Client::try_from(config) {
            Ok(client) => Ok(Self { client, url }),
            Err(error) => Err(told(&error, &url)),
        }
    }

    async fn read(&self, ownership: &Arc<Ownership>) -> Result<Found, Error> {
        let mut found = Found::default();
        for resource in [&WORKS, &REPLICA_SETS] {
            let wanted = {
                let ownership = Arc::clone(ownership);
                Arc::new(move |metadata: &Map<'_>| ownership.owns(resource.kind, metadata))
            };
            let names = match list(self.client.clone(), resource, None, Arc::clone(&wanted)).await {
                Ok(names) => names,
                // OCM installs both kinds, but the second came later.
                Err(error) if status(&error) == Some(404) && resource.kind != WORKS.kind => continue,
                Err(error) if status(&error) == Some(403) => {
                    found.notices.push(format!(
                        "{} in other namespaces than those of the targets are not looked for: {}",
                        resource.plural,
                        reason(&error)
                    ));
                    let namespaces = ownership.namespaces(resource.kind).iter();
                    let lists = namespaces.map(|namespace| {
                        list(
                            self.client.clone(),
                            resource,
                            Some(namespace.clone()),
                            Arc::clone(&wanted),
                        )
                    });
                    let names: Result<Vec<_>, Error> = together(lists.collect()).await.into_iter().collect();
                    names?.concat()
                }
                Err(error) => return Err(error),
            };
            let works = names
                .into_iter()
                .map(|listed| get(self.client.clone(), resource, (listed.namespace, listed.name)));
            for work in together(works.collect()).await {
                found.works.extend(work?);
            }
        }
        Ok(found)
    }

    /// Looks how an Application fares; `known` are the works as they were when it was looked last.
    async fn look(
        &self,
        application: &Application,
        clusters: &[String],
        known: &mut HashMap<Place, Arc<str>>,
    ) -> Result<Seen, Error> {
        let known_of = self.application(application).await?;
        let listed = listed(&known_of);
        let mut seen = Seen {
            // First: what it has brought when it is done is among the works that are read after that.
            syncing: syncing(&known_of),
            ..Seen::default()
        };
        let tracking = self.tracking(&application.argo_cd).await?;
        let mut sets = Vec::new();
        if clusters.is_empty() {
            let owned = Owned::by(application, &tracking, &listed, &[]);
            let wanted = Arc::new(move |metadata: &Map<'_>| owned.has(REPLICA_SETS.kind, metadata));
            match list(self.client.clone(), &REPLICA_SETS, None, wanted).await {
                Ok(found) => sets = found,
                Err(Error::Api(status)) if status.code == 404 => {}
                Err(Error::Api(status)) if status.code == 403 => {
                    let notice = format!("manifestworkreplicasets are not looked for: {}", status.message);
                    seen.notices.push(notice);
                }
                Err(error) => return Err(error),
            }
        }
        let places: Vec<_> = sets
            .iter()
            .map(|set| (set.namespace.clone(), set.name.clone()))
            .collect();
        let owned = Owned::by(application, &tracking, &listed, &places);
        let wanted = Arc::new(move |metadata: &Map<'_>| owned.has(WORKS.kind, metadata));
        let namespaces: Vec<_> = match clusters {
            [] => vec![None],
            some => some.iter().cloned().map(Some).collect(),
        };
        let lists = namespaces
            .into_iter()
            .map(|namespace| list(self.client.clone(), &WORKS, namespace, Arc::clone(&wanted)));
        let works: Result<Vec<_>, Error> = together(lists.collect()).await.into_iter().collect();
        let listed = sets.into_iter().map(|set| (&REPLICA_SETS, set));
        let listed = listed.chain(works?.concat().into_iter().map(|work| (&WORKS, work)));
        let reads = listed.map(|(resource, work)| {
            let place = (resource.kind, work.namespace, work.name, work.version);
            let same = known.get(&place).map(Arc::clone);
            let client = self.client.clone();
            async move {
                let text = match same {
                    Some(text) => Some(text),
                    None => get(client, resource, (place.1.clone(), place.2.clone()))
                        .await?
                        .map(Arc::from),
                };
                Ok::<_, Error>(text.map(|text| (place, text)))
            }
        });
        let read: Result<Vec<_>, Error> = together(reads.collect()).await.into_iter().collect();
        *known = read?.into_iter().flatten().collect();
        seen.works = known.values().map(Arc::clone).collect();
        if !seen.works.is_empty() {
            seen.silent = self.silent().await?;
        }
        Ok(seen)
    }

    /// How the Argo CD of this namespace marks what it applies; unknown also where we must not read that.
    async fn tracking(&self, namespace: &str) -> Result<Tracking, Error> {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps");
        let Some(answer) = self.granted(path, tracking::CONFIG_MAP).await? else {
            return Ok(Tracking::unknown());
        };
        let Ok(Value::Map(answer)) = yaml::json(&answer) else {
            return Ok(Tracking::unknown());
        };
        let data = answer.get("data").and_then(Value::as_map);
        Ok(Tracking::configured(|key| data?.get(key)?.as_str()))
    }

    /// Reads an Application; returns an empty text also where we must not read it.
    async fn application(&self, application: &Application) -> Result<String, Error> {
        let path = format!(
            "/apis/argoproj.io/v1alpha1/namespaces/{}/applications",
            application.namespace
        );
        Ok(self.granted(path, &application.name).await?.unwrap_or_default())
    }

    /// The JSON of an object; nothing where it is not there, or we must not read it.
    async fn granted(&self, path: String, name: &str) -> Result<Option<String>, Error> {
        let request = Request::new(path).get(name, &GetParams::default());
        match self.client.request_text(request.map_err(Error::BuildRequest)?).await {
            Ok(answer) => Ok(Some(answer)),
            Err(Error::Api(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The managed clusters of which OCM does not know whether they are there; none where we must not read that.
    async fn silent(&self) -> Result<BTreeSet<String>, Error> {
        let mut silent = BTreeSet::new();
        let request = Request::new("/apis/cluster.open-cluster-management.io/v1/managedclusters");
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let answer = request.list(&page).map_err(Error::BuildRequest)?;
            let answer = match self.client.request_text(answer).await {
                Ok(answer) => answer,
                Err(Error::Api(_)) => return Ok(BTreeSet::new()),
                Err(error) => return Err(error),
            };
            let Ok(Value::Map(answer)) = yaml::json(&answer) else {
                return Ok(silent);
            };
            if let Some(Value::List(items)) = answer.get("items") {
                silent.extend(items.iter().filter_map(Value::as_map).filter_map(silent_name));
            }
            match more(&answer) {
                Some(more) => page = page.continue_token(&more),
                None => return Ok(silent),
            }
        }
    }
}

/// Where the hub is, and who we are there, by kubectl's rules: the flags, `KUBECONFIG`, `~/.kube/config`, and in a Pod its
/// ServiceAccount.
///
/// # Errors
/// With one plain line, when no kubeconfig says it.
pub(crate) async fn config(args: &HubArgs) -> Result<Config, String> {
    let options = KubeConfigOptions {
        context: args.context.clone(),
        ..KubeConfigOptions::default()
    };
    let config = if let Some(file) = &args.kubeconfig {
        match Kubeconfig::read_from(file) {
            Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
            Err(error) => Err(error),
        }
    } else {
        match Config::from_kubeconfig(&options).await {
            Err(error) if args.context.is_none() => Config::incluster().map_err(|_| error),
            read => read,
        }
    };
    config.map_err(|error| {
        let reason = match &error {
            KubeconfigError::ReadConfig(error, file) => format!("{}: {}", file.display(), plain(error)),
            KubeconfigError::CurrentContextNotSet => "the kubeconfig has no current context".to_owned(),
            KubeconfigError::LoadContext(name) => format!("the kubeconfig has no context {name}"),
            // Of a file that cannot be parsed, an excerpt follows in more lines.
            other => other.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        format!("{NO_HUB}{reason}: set --kubeconfig or --context")
    })
}

/// Returns what Argo CD says of a sync of an Application, given as JSON, that goes on.
fn syncing(application: &str) -> Option<String> {
    let Ok(Value::Map(application)) = yaml::json(application) else {
        return None;
    };
    let status = application.get("status").and_then(Value::as_map);
    let operation = status.and_then(|status| status.get("operationState")?.as_map());
    let running = operation.filter(|operation| text(operation, "phase").as_deref() == Some("Running"));
    running.map(|operation| text(operation, "message").unwrap_or_default())
}

/// Returns the works that Argo CD has for an Application, given as JSON, from Git: what it would prune may only be marked as if it had
/// been applied.
fn listed(application: &str) -> HashSet<ListedWork> {
    let Ok(Value::Map(application)) = yaml::json(application) else {
        return HashSet::new();
    };
    let resources = application
        .get("status")
        .and_then(|status| status.as_map()?.get("resources"));
    let Some(Value::List(resources)) = resources else {
        return HashSet::new();
    };
    let resources = resources.iter().filter_map(Value::as_map);
    let applied = resources.filter(|it| !matches!(it.get("requiresPruning"), Some(Value::Bool(true))));
    let works = applied.filter(|it| text(it, "group").as_deref() == Some(GROUP));
    works
        .filter_map(|it| Some((text(it, "kind")?, text(it, "namespace")?, text(it, "name")?)))
        .collect()
}

/// The name of a managed cluster of which OCM does not know whether it is there.
fn silent_name(cluster: &Map<'_>) -> Option<String> {
    let Some(Value::List(conditions)) = cluster.get("status")?.as_map()?.get("conditions") else {
        return None;
    };
    let is_silent = |condition: &Map<'_>| {
        let text = |key| condition.get(key).and_then(Value::as_str);
        text("type") == Some("ManagedClusterConditionAvailable") && text("status") == Some("Unknown")
    };
    let is_silent = conditions.iter().filter_map(Value::as_map).any(is_silent);
    let name = text(cluster.get("metadata")?.as_map()?, "name")?;
    is_silent.then_some(name)
}

/// A work, by its metadata.
#[derive(Clone, Debug)]
struct Listed {
    namespace: String,
    name: String,
    version: String,
}

/// The works whose metadata is wanted.
async fn list<F>(
    client: Client,
    resource: &'static Resource,
    namespace: Option<String>,
    wanted: Arc<F>,
) -> Result<Vec<Listed>, Error>
where
    F: Fn(&Map<'_>) -> bool + Send + Sync + 'static,
{
    let request = Request::new(resource.path(namespace.as_deref()));
    let mut names = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let answer = request.list_metadata(&page).map_err(Error::BuildRequest)?;
        let answer = client.request_text(answer).await?;
        let Ok(Value::Map(answer)) = yaml::json(&answer) else {
            return Err(Error::Service("what answers there is not a Kubernetes API".into()));
        };
        if let Some(Value::List(items)) = answer.get("items") {
            let metadata = items.iter().filter_map(|item| item.as_map()?.get("metadata")?.as_map());
            let listed = |metadata: &Map<'_>| {
                Some(Listed {
                    namespace: text(metadata, "namespace")?,
                    name: text(metadata, "name")?,
                    version: text(metadata, "resourceVersion").unwrap_or_default(),
                })
            };
            names.extend(metadata.filter(|metadata| wanted(metadata)).filter_map(listed));
        }
        match more(&answer) {
            Some(more) => page = page.continue_token(&more),
            None => return Ok(names),
        }
    }
}

/// What to ask a list with for what it has left.
fn more(list: &Map<'_>) -> Option<String> {
    let more = text(list.get("metadata")?.as_map()?, "continue")?;
    (!more.is_empty()).then_some(more)
}

fn text(fields: &Map<'_>, key: &str) -> Option<String> {
    fields.get(key)?.as_str().map(str::to_owned)
}

/// The JSON of a work; nothing when it has gone since it was listed.
async fn get(
    client: Client,
    resource: &'static Resource,
    (namespace, name): (String, String),
) -> Result<Option<String>, Error> {
    let request = Request::new(resource.path(Some(&namespace)));
    let request = request.get(&name, &GetParams::default()).map_err(Error::BuildRequest)?;
    match client.request_text(request).await {
        Ok(work) => Ok(Some(work)),
        Err(error) if status(&error) == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Resource {
    fn path(&self, namespace: Option<&str>) -> String {
        let namespace = namespace.map_or(String::new(), |namespace| format!("/namespaces/{namespace}"));
        format!("/apis/{GROUP}/{}{namespace}/{}", self.version, self.plural)
    }
}

/// Does all of it, some at a time, and returns what came of each, in order.
async fn together<T, F>(jobs: Vec<F>) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut jobs = jobs.into_iter().enumerate();
    let mut running = JoinSet::new();
    let mut done = Vec::new();
    loop {
        while running.len() < AT_ONCE
            && let Some((at, job)) = jobs.next()
        {
            running.spawn(async move { (at, job.await) });
        }
        match running.join_next().await {
            Some(ended) => done.push(ended.expect("nobody ends it, and it does not panic")),
            None => break,
        }
    }
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

/// The code by which the API server refuses something.
pub(crate) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}

/// An error of the hub at `url` as one plain line.
fn told(error: &Error, url: &str) -> String {
    let reason = reason(error);
    match status(error) {
        Some(401) => format!("the hub at {url} does not accept the credentials of the kubeconfig: {reason}"),
        Some(403) => format!("the hub at {url} does not let you read works: {reason}"),
        Some(404) => format!(
            "the hub at {url} has no ManifestWorks: install Open Cluster Management, or choose another by --context"
        ),
        Some(code) => format!("the hub at {url} answers with an error: {code} {reason}"),
        None => format!("the hub at {url} cannot be reached: {reason}"),
    }
}

/// What is at the bottom of an error: what is above only says that something below went wrong.
pub(crate) fn reason(error: &Error) -> String {
    if let Error::Api(status) = error {
        return status.message.clone();
    }
    let mut cause: &dyn StdError = error;
    while let Some(below) = cause.source() {
        cause = below;
    }
    match cause.downcast_ref() {
        Some(error) => plain(error),
        None => cause.to_string(),
    }
}
