//! The watches, one for each kind of object, as a stream of changes for the cache.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use futures::FutureExt;
use futures::stream::{BoxStream, SelectAll, StreamExt};
use hub_state::cache::Change;
use hub_state::cache::Update;
use hub_state::model::Kind;
use jiff::Timestamp;
use kube::api::{Api, ObjectMeta};
use kube::core::Resource;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use kube::{Client, Error};
use primitives::object_ref::ObjectRef;
use primitives::resource;
use runtime::invalid_object::InvalidObject;
use runtime::panics::{Panicked, guard};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The timeout of a watch request, in seconds; the watch then continues from the last resource version.
const WATCH_TIMEOUT: u32 = 110;

/// The time after which a silent connection is closed: longer than a watch request, because there may be no events.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// An event of a watch.
pub struct WatchEvent {
    /// The kind of the objects.
    pub kind: Kind,
    /// The object; none for a complete list and a failure.
    pub object_ref: Option<ObjectRef>,
    /// The content of the event.
    pub update: WatchUpdate,
    /// The size of the received JSON, in bytes.
    pub bytes: usize,
}

/// The content of an event.
pub enum WatchUpdate {
    /// An object changed. The age of the change is known for watch events, but not for lists.
    Changed(Change, Option<Duration>),
    /// The list of all objects is complete.
    Synced(Change),
    /// An object cannot be parsed; the cache keeps its last known state.
    Unreadable(InvalidObject),
    /// Reading an object panicked; the cache keeps its last known state.
    Panicked,
    /// The watch failed and is retried; without an error, the response does not come from a Kubernetes API.
    Failed(Option<Error>),
}

/// The watches of all required kinds.
pub struct Watches {
    client: Client,
    /// The namespace of Argo CD.
    argocd: String,
    now: fn() -> Timestamp,
    all: SelectAll<BoxStream<'static, WatchEvent>>,
    /// The running watches: dropping a sender ends the watch of its kind.
    running: BTreeMap<Kind, oneshot::Sender<()>>,
}

impl Watches {
    /// Watches these kinds; `argocd` is the namespace of Argo CD.
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

    /// Starts the watch of a kind after a delay, with a list of all objects; a running watch of the kind ends at once.
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

    /// Returns the watched kinds.
    pub fn kinds(&self) -> Vec<Kind> {
        self.running.keys().copied().collect()
    }

    /// Returns the next event; none if no kind is watched.
    pub async fn next_event(&mut self) -> Option<WatchEvent> {
        self.all.next().await
    }
}

/// Returns the error of a request; none if the response does not come from a Kubernetes API.
fn request_error(error: watcher::Error) -> Option<Error> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => Some(error),
        watcher::Error::WatchError(status) => Some(Error::Api(status)),
        watcher::Error::NoResourceVersion => None,
    }
}

fn watch(kind: Kind, client: &Client, argocd: &str, now: fn() -> Timestamp) -> BoxStream<'static, WatchEvent> {
    let resource = kind.resource();
    let api: Api<Received> = if kind.watched().is_of_argocd {
        Api::namespaced_with(client.clone(), argocd, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let config = kind.watch_config(argocd).timeout(WATCH_TIMEOUT);
    let mut listed = HashSet::new();
    let events = hub::watched(api, config).backoff(WatchBackoff::default());
    let change = move |update: Update<ObjectRef, &str>| kind.change(update, now());
    let read = move |object: &Received| match guard(|| change(Update::Set(object.object_ref(), object.text.get()))) {
        Ok(Ok(change)) => WatchUpdate::Changed(change, None),
        Ok(Err(why)) => WatchUpdate::Unreadable(why),
        Err(Panicked) => WatchUpdate::Panicked,
    };
    let updates = events.filter_map(move |event| {
        let object = match &event {
            Ok(Event::InitApply(object) | Event::Apply(object) | Event::Delete(object)) => Some(object),
            _ => None,
        };
        let (object_ref, bytes) = (
            object.map(Received::object_ref),
            object.map_or(0, |object| object.text.get().len()),
        );
        let update = match event {
            Ok(Event::Init) => {
                listed.clear();
                None
            }
            Ok(Event::InitApply(object)) => {
                listed.extend(object_ref.clone());
                Some(read(&object))
            }
            Ok(Event::InitDone) => {
                let all = Update::Listed(std::mem::take(&mut listed));
                change(all).ok().map(WatchUpdate::Synced)
            }
            Ok(Event::Apply(object)) => Some(match read(&object) {
                WatchUpdate::Changed(change, _) => WatchUpdate::Changed(change, object.age(now())),
                other => other,
            }),
            Ok(Event::Delete(object)) => {
                let change = change(Update::Deleted(object.object_ref())).ok();
                change.map(|change| WatchUpdate::Changed(change, None))
            }
            Err(error) => Some(WatchUpdate::Failed(request_error(error))),
        };
        std::future::ready(update.map(|update| WatchEvent {
            kind,
            object_ref,
            update,
            bytes,
        }))
    });
    updates.boxed()
}

/// The backoff of failed watches. For kube, each new attempt to list is a success that resets the backoff; here only a watch that
/// has lasted resets it, which the timer of the backoff measures.
#[derive(Default)]
struct WatchBackoff(DefaultBackoff);

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {}
}

/// An object as unparsed JSON, which is parsed after its age has been computed.
#[derive(Clone, Debug)]
struct Received {
    /// The namespace, name and resource version; all other fields are empty.
    metadata: ObjectMeta,
    /// The time of the last write, as text of the API server.
    written: Option<String>,
    text: Arc<RawValue>,
}

impl Received {
    fn object_ref(&self) -> ObjectRef {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        ObjectRef {
            namespace: text(&self.metadata.namespace),
            name: text(&self.metadata.name),
        }
    }

    /// Returns the age of the last write, with a precision of one second.
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
        /// The metadata without the contents of `managedFields`, which take longer to parse than all fields used here.
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
            // Such texts sort in the order of time. No managed field records the time of the deletion.
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
    type DynamicType = &'static resource::Resource;
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
    fn age_of_an_object_counts_from_its_last_change() {
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
