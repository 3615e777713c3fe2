//! The watches: one for each kind of object, told as changes of the index.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod initial;
mod kind;

pub use initial::as_it_is_now;
pub use kind::{Kept, Kind};

use super::index::Change;
use super::metrics::Reason;
use super::panics::{Panicked, guard};
use super::resources;
use super::seen::Place;
use crate::hub;
use futures::FutureExt;
use futures::stream::{BoxStream, SelectAll, StreamExt};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ObjectMeta};
use kube::core::{Resource, Status};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use kube::{Client, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a watch lasts before it goes on from where it was, in seconds.
const WATCH: u32 = 110;

/// How long the hub may be silent: longer than a watch lasts, because nothing may happen.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What a watch says.
#[derive(Debug)]
pub struct Said {
    /// Of which kind.
    pub kind: Kind,
    /// What.
    pub what: What,
    /// How many bytes of JSON that took.
    pub bytes: usize,
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
    /// Reading an object panicked: it stays as it was.
    Panicked(Place),
    /// It cannot be watched for now, and is tried again.
    Failed(watcher::Error),
}

/// The watches of several kinds.
pub struct Watches {
    client: Client,
    /// Argo CD's namespace.
    argocd: String,
    now: fn() -> Timestamp,
    all: SelectAll<BoxStream<'static, Said>>,
    /// Who is dropped ends the watch of its kind.
    running: BTreeMap<Kind, oneshot::Sender<()>>,
}

impl Watches {
    /// Watches these kinds; `argocd` is Argo CD's namespace.
    #[must_use]
    pub fn new(client: &Client, argocd: &str, kinds: &BTreeSet<Kind>, now: fn() -> Timestamp) -> Self {
        let mut watches = Self {
            client: client.clone(),
            argocd: argocd.to_owned(),
            now,
            all: SelectAll::new(),
            running: BTreeMap::new(),
        };
        for kind in kinds {
            watches.begin(*kind, Duration::ZERO);
        }
        watches
    }

    /// Begins the watch of a kind after a delay, with a list of all objects; one that is running ends at once.
    pub fn begin(&mut self, kind: Kind, delay: Duration) {
        let (running, ended) = oneshot::channel();
        self.running.insert(kind, running);
        let watch = watch(kind, &self.client, &self.argocd, self.now);
        let begun = async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            watch
        };
        self.all.push(begun.flatten_stream().take_until(ended).boxed());
    }

    /// What happens next; nothing where no kind is watched.
    pub async fn next(&mut self) -> Option<Said> {
        self.all.next().await
    }
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

/// Returns true if the controller has no right to watch it.
#[must_use]
pub fn is_forbidden(error: &watcher::Error) -> bool {
    reason(error) == Reason::Forbidden
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

fn watch(kind: Kind, client: &Client, argocd: &str, now: fn() -> Timestamp) -> BoxStream<'static, Said> {
    let resource = kind.resource();
    let api: Api<Received> = if kind.is_of_argocd() {
        Api::namespaced_with(client.clone(), argocd, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let config = kind.which(argocd).page_size(kind.page()).timeout(WATCH);
    let mut listed = HashSet::new();
    let events = initial::watched(api, config).backoff(Patient::default());
    let read = move |object: &Received| match guard(|| kind.change(object.place(), Some(object.text.get()), now())) {
        Ok(Ok(change)) => What::Changed(change, None),
        Ok(Err(why)) => What::Unreadable(object.place(), why),
        Err(Panicked) => What::Panicked(object.place()),
    };
    let told = events.filter_map(move |event| {
        let bytes = match &event {
            Ok(Event::InitApply(object) | Event::Apply(object) | Event::Delete(object)) => object.text.get().len(),
            _ => 0,
        };
        let what = match event {
            Ok(Event::Init) => {
                listed.clear();
                None
            }
            Ok(Event::InitApply(object)) => {
                listed.insert(object.place());
                Some(read(&object))
            }
            Ok(Event::InitDone) => Some(What::Synced(kind.only(std::mem::take(&mut listed)))),
            Ok(Event::Apply(object)) => Some(match read(&object) {
                What::Changed(change, _) => What::Changed(change, object.age(now())),
                other => other,
            }),
            Ok(Event::Delete(object)) => match kind.change(object.place(), None, now()) {
                Ok(change) => Some(What::Changed(change, None)),
                Err(_) => None,
            },
            Err(error) => Some(What::Failed(error)),
        };
        std::future::ready(what.map(|what| Said { kind, what, bytes }))
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

/// An object as its JSON, which is read when it is known how late it is.
#[derive(Clone, Debug)]
struct Received {
    /// Its place and version, and nothing else.
    metadata: ObjectMeta,
    /// When somebody wrote it last, as the API server says it.
    written: Option<String>,
    text: Arc<RawValue>,
}

impl Received {
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

impl<'de> Deserialize<'de> for Received {
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
            deletion_timestamp: Option<String>,
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
            // Such texts compare as their times do. That it is to be deleted is written in no managed field.
            written: writes
                .filter_map(|write| write.time)
                .chain(metadata.deletion_timestamp)
                .max(),
            metadata: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
            text: text.into(),
        })
    }
}

impl Resource for Received {
    type DynamicType = &'static resources::Resource;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(resource: &Self::DynamicType) -> Cow<'_, str> {
        resource.kind.into()
    }

    fn group(resource: &Self::DynamicType) -> Cow<'_, str> {
        resource.group.into()
    }

    fn version(resource: &Self::DynamicType) -> Cow<'_, str> {
        resource.version.into()
    }

    fn plural(resource: &Self::DynamicType) -> Cow<'_, str> {
        resource.plural.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_as_old_as_its_last_change() {
        let now: Timestamp = "2026-06-01T12:00:30Z".parse().unwrap();
        let age = |text: &str| {
            let object: Received = serde_json::from_str(text).unwrap();
            object.age(now).map(|age| age.as_secs())
        };
        let managed = r#""managedFields": [{"time": "2026-06-01T12:00:20Z"}, {"time": "2026-05-01T00:00:00Z"}, {}]"#;
        assert_eq!(age(&format!(r#"{{"metadata": {{"name": "a", {managed}}}}}"#)), Some(10));
        let deleted = r#""deletionTimestamp": "2026-06-01T12:00:25Z""#;
        assert_eq!(age(&format!(r#"{{"metadata": {{{managed}, {deleted}}}}}"#)), Some(5));
        assert_eq!(age(r#"{"metadata": {"name": "a"}}"#), None);
    }
}
