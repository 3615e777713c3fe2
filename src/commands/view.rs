//! `get`, `events`, `logs`: show delivered objects as they are on their managed cluster, with the token of a user.

use super::{Exit, fail, progress, say, show};
use crate::cli::{ListFormat, LogsArgs, ObjectsArgs, ViewArgs};
use crate::list;
use crate::list::List;
use crate::runtime::runtime;
use crate::view::{EventList, ObjectEntry, ObjectList, ObjectName};
use http::StatusCode;
use jiff::Timestamp;
use kube::Client;
use live::hub_reader::{self, Delivery};
use live::refusal::HttpRefusal;
use live::request::{LiveRequest, LogOptions, ObjectId, View};
use live::sent;
use live::service::{Answer, Service};
use live::tree::Tree;
use live::user_tunnel;
use manifest::problem::{Problems, plain};
use manifest::text::count;
use ocm::application_works::ApplicationName;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::convert::identity;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

/// The maximum number of objects that are read without `KIND/NAME`. A cluster answers some five requests a second.
const OBJECTS_MAX: usize = 100;

pub(super) fn get(args: &ObjectsArgs) -> Result<Exit, Problems> {
    let read = async |view: &Viewer| match &args.object {
        Some(name) => view.object(&view.find(name)?, args.output).await,
        None => view.objects().await,
    };
    print_list("objects", args, read)
}

pub(super) fn events(args: &ObjectsArgs) -> Result<Exit, Problems> {
    let read = async |view: &Viewer| {
        let objects = match &args.object {
            Some(name) => vec![view.find(name)?],
            None => view.first_objects(),
        };
        view.events(&objects).await
    };
    print_list("Events", args, read)
}

/// Prints a list. Fails also if a part of it could not be read.
fn print_list<T: List>(
    what: &str,
    args: &ObjectsArgs,
    read: impl AsyncFnOnce(&Viewer) -> Result<T, String>,
) -> Result<Exit, Problems> {
    let (_, (text, exit)) = with_viewer(&args.view, async |view: &Viewer| {
        let list = read(view).await?;
        Ok((list::format_list(&list, args.output)?, view.exit.get()))
    })?;
    Ok(show(what, &text)?.or(exit))
}

pub(super) fn logs(args: &LogsArgs) -> Result<Exit, Problems> {
    let options = LogOptions {
        pods: args.pods.clone(),
        container: args.container.clone(),
        tail: args.tail,
        since: args
            .since
            .map(|duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX).max(1)),
        previous: args.previous,
        follow: args.follow,
    };
    let read = async |view: &Viewer| {
        view.show(&view.find(&args.object)?, View::Logs(options))
            .await
            .map_err(line)
    };
    let (runtime, answer) = with_viewer(&args.view, read)?;
    let Answer::Logs(mut lines) = answer else {
        unreachable!("the answer has the type of the view")
    };
    let mut exit = Exit::SUCCESS;
    let printed = runtime.block_on(async {
        let mut out = io::stdout();
        while let Some(part) = lines.recv().await {
            match part {
                Ok(text) => out.write_all(&text).and_then(|()| out.flush())?,
                Err(line) => exit = fail(line),
            }
        }
        Ok(())
    });
    Ok(super::written("logs", printed)?.or(exit))
}

fn line(refusal: HttpRefusal) -> String {
    refusal.line
}

/// Connects to the hub and to cluster-proxy, reads, and returns the runtime too, which serves the connections.
fn with_viewer<T>(
    args: &ViewArgs,
    read: impl AsyncFnOnce(&Viewer) -> Result<T, String>,
) -> Result<(tokio::runtime::Runtime, T), String> {
    let runtime = runtime()?;
    let result = progress::shown("reading the managed cluster", || {
        runtime.block_on(async { read(&Viewer::connect(args).await?).await })
    });
    result.map(|value| (runtime, value))
}

/// A user who views what an Application delivers to a managed cluster.
struct Viewer {
    service: Service,
    application: ApplicationName,
    cluster: String,
    works: Vec<Value>,
    objects: Vec<ObjectId>,
    /// The exit code if all else succeeds.
    exit: Cell<Exit>,
    /// True if the cluster has not answered a request in time.
    has_unanswered: Cell<bool>,
}

impl Viewer {
    async fn connect(args: &ViewArgs) -> Result<Self, String> {
        let application = ApplicationName::named(&args.application, &args.argo_cd.namespace)?;
        let mut config = hub::config(&args.hub.connection()).await?;
        let url = args.cluster_proxy.url()?;
        let credentials =
            user_tunnel::token_credentials(config.auth_info.clone(), args.token.clone(), args.send_my_token)?;
        let (hub, _) = hub::client(config.clone(), identity)?;
        // A forwarded connection may be idle.
        config.read_timeout = None;
        let (forwarder, _) = hub::client(config, identity)?;

        let delivery = Delivery::read_application(&hub, &application, None)
            .await
            .map_err(line)?;
        let cluster = match &args.cluster {
            Some(cluster) => cluster.clone(),
            None => only_cluster(&hub, &application, &delivery).await?,
        };
        let works = delivery.works(&hub, &cluster).await.map_err(line)?;
        if works.is_empty() {
            return Err(format!(
                "Application {} has no works on cluster {cluster}: `argocd-ocm-cmp status {}` lists its clusters",
                application.instance, args.application
            ));
        }
        let authority = match &args.cluster_proxy.cluster_proxy_ca {
            Some(file) => read_authority(file)?,
            None => hub_reader::authority(&hub, &application.argo_cd).await.map_err(line)?,
        };
        let tunnel = user_tunnel::connect(&forwarder, url, authority.as_bytes(), credentials);
        let tunnel = tunnel.await.map_err(line)?;
        Ok(Self {
            service: Service::new(hub, tunnel, Duration::MAX),
            application,
            cluster,
            objects: sent::objects(&works),
            works,
            exit: Cell::new(Exit::SUCCESS),
            has_unanswered: Cell::new(false),
        })
    }

    fn find(&self, name: &ObjectName) -> Result<ObjectId, String> {
        let object = name.find(&self.objects).cloned();
        object.map_err(|line| {
            let (application, cluster) = (&self.application.instance, &self.cluster);
            format!("Application {application} on cluster {cluster}: {line}")
        })
    }

    /// Returns the objects that are read without a name, and warns about others.
    fn first_objects(&self) -> Vec<ObjectId> {
        let rest = self.objects.len().saturating_sub(OBJECTS_MAX);
        if rest > 0 {
            say(&format!(
                "warning: {} not read: name an object to read it\n",
                count(rest, "more object")
            ));
        }
        self.objects.iter().take(OBJECTS_MAX).cloned().collect()
    }

    async fn show(&self, object: &ObjectId, view: View) -> Result<Answer, HttpRefusal> {
        let request = LiveRequest {
            application: self.application.clone(),
            project: None,
            user: String::new(),
            cluster: self.cluster.clone(),
            object: object.clone(),
            view,
        };
        let sent = sent::find(&self.works, &request)?;
        self.service.show(&request, sent).await
    }

    /// Returns the live object; `None` if it does not exist.
    async fn live(&self, object: &ObjectId) -> Result<Option<Value>, HttpRefusal> {
        match self.show(object, View::Object).await? {
            Answer::Object(mut answer) => Ok(Some(answer["live"].take()).filter(Value::is_object)),
            _ => Ok(None),
        }
    }

    async fn tree(&self, object: &ObjectId) -> Result<Tree, HttpRefusal> {
        match self.show(object, View::Tree).await? {
            Answer::Tree(tree) => Ok(tree),
            _ => Ok(Tree::default()),
        }
    }

    fn describe_absence(&self, object: &ObjectId) -> String {
        format!("{object} does not exist on cluster {}", self.cluster)
    }

    /// Returns an object, with what is below it if that is printed.
    async fn object(&self, object: &ObjectId, format: ListFormat) -> Result<ObjectList, String> {
        let missing = || self.describe_absence(object);
        let (nodes, json) = if matches!(format, ListFormat::Json | ListFormat::Yaml) {
            let live = self.live(object).await.map_err(line)?;
            (Vec::new(), live.ok_or_else(missing)?)
        } else {
            let tree = self.tree(object).await.map_err(line)?;
            warn_if_truncated(tree.truncated);
            if tree.nodes.is_empty() {
                return Err(missing());
            }
            (tree.nodes, Value::Null)
        };
        Ok(ObjectList {
            objects: vec![ObjectEntry::Tree(nodes)],
            json,
            now: Timestamp::now(),
        })
    }

    async fn objects(&self) -> Result<ObjectList, String> {
        let (mut objects, mut items) = (Vec::new(), Vec::new());
        for object in self.first_objects() {
            match self.live(&object).await {
                Ok(Some(live)) => {
                    objects.push(ObjectEntry::Tree(Tree::new(&live, &[], false).nodes));
                    items.push(live);
                }
                Ok(None) => {
                    self.exit.set(fail(self.describe_absence(&object)));
                    objects.push(ObjectEntry::Absent(object, "Missing"));
                }
                Err(refusal) => {
                    let is_forbidden = refusal.status == StatusCode::FORBIDDEN;
                    self.skip(&object, refusal)?;
                    let state = if is_forbidden { "Forbidden" } else { "Unreadable" };
                    objects.push(ObjectEntry::Absent(object, state));
                }
            }
        }
        Ok(ObjectList {
            objects,
            json: json!({"apiVersion": "v1", "kind": "List", "items": items}),
            now: Timestamp::now(),
        })
    }

    /// Reports an object that cannot be read, and makes the command fail at its end. Returns the line if the others cannot be read either,
    /// or if the cluster has left a second request unanswered: each takes seconds.
    fn skip(&self, what: &impl Display, refusal: HttpRefusal) -> Result<(), String> {
        let is_unanswered = refusal.status == StatusCode::GATEWAY_TIMEOUT;
        if refusal.is_general || is_unanswered && self.has_unanswered.replace(true) {
            return Err(refusal.line);
        }
        self.exit.set(fail(format!("{what}: {}", refusal.line)));
        Ok(())
    }

    async fn events(&self, objects: &[ObjectId]) -> Result<EventList, String> {
        let mut trees: BTreeMap<&str, Tree> = BTreeMap::new();
        for object in objects {
            match self.tree(object).await {
                Ok(tree) => trees.entry(&object.namespace).or_default().nodes.extend(tree.nodes),
                Err(refusal) if objects.len() > 1 => self.skip(object, refusal)?,
                Err(refusal) => return Err(refusal.line),
            }
        }
        let mut all = Vec::new();
        for (namespace, tree) in trees {
            match self.service.events(&self.cluster, namespace, &tree).await {
                Ok(events) => {
                    warn_if_truncated(events.truncated);
                    all.extend(events.events);
                }
                Err(refusal) if objects.len() > 1 => self.skip(&format!("Events of namespace {namespace}"), refusal)?,
                Err(refusal) => return Err(refusal.line),
            }
        }
        all.sort_by(|one, other| one.last.cmp(&other.last));
        Ok(EventList {
            events: all,
            now: Timestamp::now(),
        })
    }
}

fn warn_if_truncated(truncated: bool) {
    if truncated {
        say("warning: there is more than is shown\n");
    }
}

/// Returns the managed cluster of an Application that has one.
async fn only_cluster(hub: &Client, application: &ApplicationName, delivery: &Delivery) -> Result<String, String> {
    let clusters = delivery
        .clusters(hub)
        .await
        .map_err(|refusal| format!("{}: name the managed cluster with --cluster", refusal.line))?;
    let instance = &application.instance;
    let mut names = clusters.into_iter();
    match (names.next(), names.next()) {
        (Some(cluster), None) => Ok(cluster),
        (Some(first), Some(second)) => {
            let names: Vec<_> = [first, second].into_iter().chain(names).collect();
            Err(format!(
                "Application {instance} is on {} clusters: choose one with --cluster: {}",
                names.len(),
                names.join(", ")
            ))
        }
        (None, _) => Err(format!(
            "Application {instance} has no works: `argocd-ocm-cmp status {instance}` shows why"
        )),
    }
}

#[expect(clippy::disallowed_methods, reason = "a file that the user names")]
fn read_authority(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("--cluster-proxy-ca {}: {}", file.display(), plain(&error)))
}
