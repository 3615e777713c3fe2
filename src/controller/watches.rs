//! The watches: one for each kind of object, told as changes of the index.

use super::index::Change;
use super::metrics::Reason;
use super::seen::{
    self, Application, ApplicationSet, Cluster, Decision, GitOpsCluster, Place, Placement, Work, WorkKind,
};
use crate::cluster_secret::{self, ClusterSecret};
use crate::report::{self, Found};
use crate::tracking::{CONFIG_MAP, Tracking};
use crate::{hub, works};
use futures::stream::{self, BoxStream, StreamExt};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ObjectMeta};
use kube::core::{Resource, Status};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event, watcher};
use kube::{Client, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// How many objects are listed by one request: works carry all their manifests.
const PAGE: u32 = 50;

/// How long a watch lasts before it goes on from where it was, in seconds.
const WATCH: u32 = 110;

/// How long the hub may be silent: longer than a watch lasts, because nothing may happen.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Applications.
    Applications,
    /// ManifestWorks.
    Works,
    /// ManifestWorkReplicaSets, which older OCMs do not have.
    Sets,
    /// ManagedClusters.
    Clusters,
    /// The ConfigMap of Argo CD that says how it tracks.
    Config,
    /// PlacementDecisions.
    Decisions,
    /// AppProjects.
    Projects,
    /// The Secrets by which Argo CD knows clusters.
    Secrets,
    /// ApplicationSets, which an Argo CD may be without.
    ApplicationSets,
    /// The reports of ApplicationSets, where they are installed.
    Reports,
    /// GitOpsClusters, where they are installed.
    GitOpsClusters,
    /// Placements.
    Placements,
    /// The namespace of Argo CD.
    Namespace,
}

impl Kind {
    /// Its resource, as Kubernetes calls it.
    #[must_use]
    pub fn resource(self) -> &'static str {
        match self {
            Self::Applications => "applications",
            Self::Works => "manifestworks",
            Self::Sets => "manifestworkreplicasets",
            Self::Clusters => "managedclusters",
            Self::Config => "configmaps",
            Self::Decisions => "placementdecisions",
            Self::Projects => "appprojects",
            Self::Secrets => "secrets",
            Self::ApplicationSets => "applicationsets",
            Self::Reports => report::PLURAL,
            Self::GitOpsClusters => "gitopsclusters",
            Self::Placements => "placements",
            Self::Namespace => "namespaces",
        }
    }

    /// Whether a hub may do without. OCM installs ManifestWorkReplicaSets since its version 0.8.
    #[must_use]
    pub fn may_be_missing(self) -> bool {
        matches!(
            self,
            Self::Sets | Self::ApplicationSets | Self::Reports | Self::GitOpsClusters
        )
    }
}

/// What a watch says.
#[derive(Debug)]
pub struct Said {
    /// Of which kind.
    pub kind: Kind,
    /// What.
    pub what: What,
}

/// What a watch says of its kind.
#[derive(Debug)]
pub enum What {
    /// Something has changed; how long it has been so is known where the watch has brought it, not a list.
    Changed(Change, Option<Duration>),
    /// All that there is has been told.
    Synced(Change),
    /// An object cannot be understood, and stays as it was.
    Unreadable(Place, String),
    /// It cannot be watched for now, and is tried again.
    Failed(watcher::Error),
}

/// Watches these kinds; `argocd` is Argo CD's namespace.
pub fn all(client: &Client, argocd: &str, kinds: &BTreeSet<Kind>, now: fn() -> Timestamp) -> BoxStream<'static, Said> {
    let everything = watcher::Config::default;
    let cluster_secrets = format!("{}={}", cluster_secret::SECRET_TYPE, cluster_secret::CLUSTER);
    let watches = kinds.iter().map(|kind| match kind {
        Kind::Applications => watch::<Applications>(Api::all(client.clone()), everything(), now),
        Kind::Works => watch::<Works>(Api::all(client.clone()), everything(), now),
        Kind::Sets => watch::<Sets>(Api::all(client.clone()), everything(), now),
        Kind::Clusters => watch::<Clusters>(Api::all(client.clone()), everything(), now),
        Kind::ApplicationSets => watch::<ApplicationSets>(Api::all(client.clone()), everything(), now),
        Kind::Reports => watch::<Reports>(Api::all(client.clone()), everything(), now),
        Kind::Config => watch::<Config>(
            Api::namespaced_with(client.clone(), argocd, &()),
            everything().fields(&format!("metadata.name={CONFIG_MAP}")),
            now,
        ),
        Kind::Decisions => watch::<Decisions>(Api::all(client.clone()), everything(), now),
        Kind::Projects => watch::<Projects>(Api::namespaced_with(client.clone(), argocd, &()), everything(), now),
        Kind::GitOpsClusters => watch::<GitOpsClusters>(Api::all(client.clone()), everything(), now),
        Kind::Placements => watch::<Placements>(Api::all(client.clone()), everything(), now),
        Kind::Namespace => watch::<Namespaces>(
            Api::all(client.clone()),
            everything().fields(&format!("metadata.name={argocd}")),
            now,
        ),
        Kind::Secrets => watch::<Secrets>(
            Api::namespaced_with(client.clone(), argocd, &()),
            everything().labels(&cluster_secrets),
            now,
        ),
    });
    stream::select_all(watches).boxed()
}

/// What the API server answered, or why it did not.
enum Cause<'e> {
    Request(&'e Error),
    Told(&'e Status),
    Nonsense,
}

fn cause(error: &watcher::Error) -> Cause<'_> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => Cause::Request(error),
        watcher::Error::WatchError(status) => Cause::Told(status),
        watcher::Error::NoResourceVersion => Cause::Nonsense,
    }
}

/// Whether the hub does not know the kind.
#[must_use]
pub fn is_not_there(error: &watcher::Error) -> bool {
    matches!(cause(error), Cause::Request(Error::Api(status)) if status.code == 404)
}

/// Why a watch failed, for the metrics.
#[must_use]
pub fn reason(error: &watcher::Error) -> Reason {
    match cause(error) {
        Cause::Request(error) => Reason::of(error),
        Cause::Told(status) => Reason::of_code(status.code),
        Cause::Nonsense => Reason::Other,
    }
}

/// Why a watch failed, for people.
#[must_use]
pub fn told(error: &watcher::Error) -> String {
    match cause(error) {
        Cause::Request(error) => hub::reason(error),
        Cause::Told(status) => status.message.clone(),
        Cause::Nonsense => "what answers there is not a Kubernetes API".to_owned(),
    }
}

fn watch<K: Watched>(api: Api<Object<K>>, config: watcher::Config, now: fn() -> Timestamp) -> BoxStream<'static, Said> {
    let said = |what| Said { kind: K::KIND, what };
    let mut listed = HashSet::new();
    let events = watcher(api, config.page_size(K::PAGE).timeout(WATCH)).backoff(Patient::default());
    let read = move |object: &Object<K>| match K::change(object.place(), Some(object.text.get()), now()) {
        Ok(change) => What::Changed(change, None),
        Err(why) => What::Unreadable(object.place(), why),
    };
    let told = events.filter_map(move |event| {
        let what = match event {
            Ok(Event::Init) => {
                listed.clear();
                None
            }
            Ok(Event::InitApply(object)) => {
                listed.insert(object.place());
                Some(read(&object))
            }
            Ok(Event::InitDone) => Some(What::Synced(K::only(std::mem::take(&mut listed)))),
            Ok(Event::Apply(object)) => Some(match read(&object) {
                What::Changed(change, _) => What::Changed(change, object.age(now())),
                other => other,
            }),
            Ok(Event::Delete(object)) => match K::change(object.place(), None, now()) {
                Ok(change) => Some(What::Changed(change, None)),
                Err(_) => None,
            },
            Err(error) => Some(What::Failed(error)),
        };
        std::future::ready(what.map(said))
    });
    told.boxed()
}

/// How long to wait before a watch that failed is tried again. To kube, each new attempt to list is a success after which it is not
/// waited longer; here it is one only when it has lasted, which its timer tells.
#[derive(Default)]
struct Patient(DefaultBackoff);

impl Iterator for Patient {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for Patient {
    fn reset(&mut self) {}
}

/// A kind that is watched.
trait Watched: Clone + fmt::Debug + Send + Sync + 'static {
    const KIND: Kind;
    const GROUP: &'static str;
    const VERSION: &'static str;
    const NAME: &'static str;
    /// How many are listed by one request.
    const PAGE: u32 = PAGE;

    /// What it means that an object is so, or is gone.
    fn change(place: Place, text: Option<&str>, now: Timestamp) -> Result<Change, String>;

    /// What it means that these objects are all.
    fn only(all: HashSet<Place>) -> Change;
}

#[derive(Clone, Debug)]
struct Applications;

impl Watched for Applications {
    const KIND: Kind = Kind::Applications;
    const GROUP: &'static str = "argoproj.io";
    const VERSION: &'static str = "v1alpha1";
    const NAME: &'static str = "Application";

    fn change(place: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        Ok(Change::Application(place, text.map(Application::read).transpose()?))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyApplications(all)
    }
}

fn work(kind: WorkKind, place: Place, text: Option<&str>, now: Timestamp) -> Result<Change, String> {
    let work = text.map(|text| Work::read(text, now)).transpose()?;
    Ok(Change::Work(kind, place, work.flatten()))
}

#[derive(Clone, Debug)]
struct Works;

impl Watched for Works {
    const KIND: Kind = Kind::Works;
    const GROUP: &'static str = works::GROUP;
    const VERSION: &'static str = "v1";
    const NAME: &'static str = works::KIND;

    fn change(place: Place, text: Option<&str>, now: Timestamp) -> Result<Change, String> {
        work(WorkKind::Work, place, text, now)
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyWorks(WorkKind::Work, all)
    }
}

#[derive(Clone, Debug)]
struct Sets;

impl Watched for Sets {
    const KIND: Kind = Kind::Sets;
    const GROUP: &'static str = works::GROUP;
    const VERSION: &'static str = "v1alpha1";
    const NAME: &'static str = works::SET_KIND;

    fn change(place: Place, text: Option<&str>, now: Timestamp) -> Result<Change, String> {
        work(WorkKind::Set, place, text, now)
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyWorks(WorkKind::Set, all)
    }
}

#[derive(Clone, Debug)]
struct Clusters;

impl Watched for Clusters {
    const KIND: Kind = Kind::Clusters;
    const GROUP: &'static str = "cluster.open-cluster-management.io";
    const VERSION: &'static str = "v1";
    const NAME: &'static str = "ManagedCluster";

    fn change(place: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        Ok(Change::Cluster(place.name, text.map(Cluster::read).transpose()?))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyClusters(names(all))
    }
}

#[derive(Clone, Debug)]
struct Config;

impl Watched for Config {
    const KIND: Kind = Kind::Config;
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const NAME: &'static str = "ConfigMap";

    fn change(_: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        Ok(Change::Tracking(match text {
            Some(text) => seen::tracking(text)?,
            None => Tracking::configured(|_| None),
        }))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::ConfigIsThere(!all.is_empty())
    }
}

#[derive(Clone, Debug)]
struct Decisions;

impl Watched for Decisions {
    const KIND: Kind = Kind::Decisions;
    const GROUP: &'static str = "cluster.open-cluster-management.io";
    const VERSION: &'static str = "v1beta1";
    const NAME: &'static str = "PlacementDecision";

    fn change(place: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        Ok(Change::Decision(place, text.map(Decision::read).transpose()?))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyDecisions(all)
    }
}

#[derive(Clone, Debug)]
struct Placements;

impl Watched for Placements {
    const KIND: Kind = Kind::Placements;
    const GROUP: &'static str = "cluster.open-cluster-management.io";
    const VERSION: &'static str = "v1beta1";
    const NAME: &'static str = "Placement";

    fn change(place: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        Ok(Change::Placement(place, text.map(Placement::read).transpose()?))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyPlacements(all)
    }
}

#[derive(Clone, Debug)]
struct GitOpsClusters;

impl Watched for GitOpsClusters {
    const KIND: Kind = Kind::GitOpsClusters;
    const GROUP: &'static str = "apps.open-cluster-management.io";
    const VERSION: &'static str = "v1beta1";
    const NAME: &'static str = "GitOpsCluster";

    fn change(place: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        let it = text.map(GitOpsCluster::read).transpose()?;
        Ok(Change::GitOpsCluster(place, it))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyGitOpsClusters(all)
    }
}

#[derive(Clone, Debug)]
struct Namespaces;

impl Watched for Namespaces {
    const KIND: Kind = Kind::Namespace;
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const NAME: &'static str = "Namespace";

    fn change(_: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        Ok(Change::Open(text.map_or(Ok(false), seen::is_open)?))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::NamespaceIsThere(!all.is_empty())
    }
}

#[derive(Clone, Debug)]
struct Projects;

impl Watched for Projects {
    const KIND: Kind = Kind::Projects;
    const GROUP: &'static str = "argoproj.io";
    const VERSION: &'static str = "v1alpha1";
    const NAME: &'static str = "AppProject";

    fn change(place: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        Ok(Change::Project(place.name, text.map(seen::project).transpose()?))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyProjects(names(all))
    }
}

#[derive(Clone, Debug)]
struct Secrets;

impl Watched for Secrets {
    const KIND: Kind = Kind::Secrets;
    const GROUP: &'static str = "";
    const VERSION: &'static str = "v1";
    const NAME: &'static str = "Secret";

    fn change(place: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        Ok(Change::Secret(place.name, text.map(ClusterSecret::read).transpose()?))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlySecrets(names(all))
    }
}

/// The names of objects that have no namespace, or all the same.
fn names(all: HashSet<Place>) -> HashSet<Arc<str>> {
    all.into_iter().map(|place| place.name).collect()
}

#[derive(Clone, Debug)]
struct ApplicationSets;

impl Watched for ApplicationSets {
    const KIND: Kind = Kind::ApplicationSets;
    const GROUP: &'static str = "argoproj.io";
    const VERSION: &'static str = "v1alpha1";
    const NAME: &'static str = "ApplicationSet";

    fn change(place: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        let set = text.map(ApplicationSet::read).transpose()?;
        Ok(Change::ApplicationSet(place, set))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyApplicationSets(all)
    }
}

#[derive(Clone, Debug)]
struct Reports;

impl Watched for Reports {
    const KIND: Kind = Kind::Reports;
    const GROUP: &'static str = report::GROUP;
    const VERSION: &'static str = report::VERSION;
    const NAME: &'static str = report::KIND;
    /// Each may have a megabyte.
    const PAGE: u32 = 5;

    fn change(place: Place, text: Option<&str>, _: Timestamp) -> Result<Change, String> {
        Ok(Change::Report(place, text.map(Found::read).transpose()?))
    }

    fn only(all: HashSet<Place>) -> Change {
        Change::OnlyReports(all)
    }
}

/// An object as its JSON, which is read when it is known how late it is.
#[derive(Clone, Debug)]
struct Object<K> {
    /// Its place and version, and nothing else.
    metadata: ObjectMeta,
    /// When somebody wrote it last, as the API server says it.
    written: Option<String>,
    text: Arc<RawValue>,
    kind: PhantomData<K>,
}

impl<K> Object<K> {
    fn place(&self) -> Place {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        Place {
            namespace: text(&self.metadata.namespace),
            name: text(&self.metadata.name),
        }
    }

    /// How long it has been so, to the second.
    fn age(&self, now: Timestamp) -> Option<Duration> {
        let written: Timestamp = self.written.as_ref()?.parse().ok()?;
        Duration::try_from(now.duration_since(written)).ok()
    }
}

impl<'de, K> Deserialize<'de> for Object<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Head {
            metadata: Metadata,
        }
        /// Without the fields that are managed, which take more to read than all else that is of use here.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            name: Option<String>,
            namespace: Option<String>,
            resource_version: Option<String>,
            managed_fields: Option<Vec<Write>>,
        }
        #[derive(Deserialize)]
        struct Write {
            time: Option<String>,
        }
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Head { metadata } = serde_json::from_str(text.get()).map_err(serde::de::Error::custom)?;
        let writes = metadata.managed_fields.into_iter().flatten();
        Ok(Self {
            // Such texts compare as their times do.
            written: writes.filter_map(|write| write.time).max(),
            metadata: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
            text: text.into(),
            kind: PhantomData,
        })
    }
}

impl<K: Watched> Resource for Object<K> {
    type DynamicType = ();
    type Scope = kube::core::DynamicResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        K::NAME.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        K::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        K::VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::KIND.resource().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
