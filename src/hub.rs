//! The hub: connects to it and reads works. Nothing is ever written.

use crate::cli::HubArgs;
use crate::diff::Ownership;
use crate::generate::problem::plain;
use crate::value::{Map, Value};
use crate::works::GROUP;
use crate::yaml;
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::core::params::{GetParams, ListParams};
use kube::core::request::Request;
use kube::{Client, Error};
use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime;
use tokio::task::JoinSet;

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
    kind: "ManifestWork",
    version: "v1",
    plural: "manifestworks",
};

static REPLICA_SETS: Resource = Resource {
    kind: "ManifestWorkReplicaSet",
    version: "v1alpha1",
    plural: "manifestworkreplicasets",
};

/// How many works are listed by one request. Only their metadata is, but Argo CD keeps a copy of a work in an annotation.
const PAGE: u32 = 500;

/// How many requests are under way at a time.
const AT_ONCE: usize = 16;

/// How long the hub may be silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads the works of an Application.
///
/// # Errors
/// With one plain line, when the hub cannot be reached or does not let us read.
pub fn works(hub: &HubArgs, ownership: &Arc<Ownership>) -> Result<Found, String> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no connection to a hub: {error}"))?;
    runtime.block_on(async {
        let hub = Hub::connect(hub).await?;
        let found = hub.read(ownership).await;
        found.map_err(|error| told(&error, &hub.url))
    })
}

struct Hub {
    client: Client,
    url: String,
}

impl Hub {
    async fn connect(args: &HubArgs) -> Result<Self, String> {
        let mut config = config(args).await.map_err(|error| {
            let reason = match &error {
                KubeconfigError::ReadConfig(error, file) => format!("{}: {}", file.display(), plain(error)),
                KubeconfigError::CurrentContextNotSet => "the kubeconfig has no current context".to_owned(),
                KubeconfigError::LoadContext(name) => format!("the kubeconfig has no context {name}"),
                // Of a file that cannot be parsed, an excerpt follows in more lines.
                other => other.to_string().lines().next().unwrap_or_default().to_owned(),
            };
            format!("no hub to compare with: {reason}: set --kubeconfig or --context, or compare with a file by --file")
        })?;
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
            let names = match list(self.client.clone(), resource, None, Arc::clone(ownership)).await {
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
                            Arc::clone(ownership),
                        )
                    });
                    let names: Result<Vec<_>, Error> = together(lists.collect()).await.into_iter().collect();
                    names?.concat()
                }
                Err(error) => return Err(error),
            };
            let works = names.into_iter().map(|name| get(self.client.clone(), resource, name));
            for work in together(works.collect()).await {
                found.works.extend(work?);
            }
        }
        Ok(found)
    }
}

/// By kubectl's rules: the flags, `KUBECONFIG`, `~/.kube/config`, and in a Pod its ServiceAccount.
async fn config(args: &HubArgs) -> Result<Config, KubeconfigError> {
    let options = KubeConfigOptions {
        context: args.context.clone(),
        ..KubeConfigOptions::default()
    };
    if let Some(file) = &args.kubeconfig {
        return Config::from_custom_kubeconfig(Kubeconfig::read_from(file)?, &options).await;
    }
    match Config::from_kubeconfig(&options).await {
        Err(error) if args.context.is_none() => Config::incluster().map_err(|_| error),
        read => read,
    }
}

/// The namespaces and names of the works that are the Application's.
async fn list(
    client: Client,
    resource: &'static Resource,
    namespace: Option<String>,
    ownership: Arc<Ownership>,
) -> Result<Vec<(String, String)>, Error> {
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
            let owned = metadata.filter(|metadata| ownership.owns(resource.kind, metadata));
            names.extend(owned.filter_map(|metadata| Some((text(metadata, "namespace")?, text(metadata, "name")?))));
        }
        let more = answer
            .get("metadata")
            .and_then(Value::as_map)
            .and_then(|list| text(list, "continue"));
        match more.filter(|more| !more.is_empty()) {
            Some(more) => page = page.continue_token(&more),
            None => return Ok(names),
        }
    }
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

fn status(error: &Error) -> Option<u16> {
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
fn reason(error: &Error) -> String {
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
