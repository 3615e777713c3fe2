//! The watches, one for each kind of object, as one stream of events.

use futures::FutureExt;
use futures::stream::{BoxStream, SelectAll, StreamExt};
use hub_state::Kind;
use jiff::Timestamp;
use kube::api::{Api, ObjectMeta};
use kube::core::Resource;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use kube::{Client, Error};
use primitives::object_ref::ObjectRef;
use primitives::resource;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// The timeout of a watch request, in seconds; the watch then continues from the last resource version.
const WATCH_TIMEOUT: u32 = 110;

/// The time after which a silent connection is closed: longer than a watch request, because there may be no events.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) type KindEvent = (Kind, Result<Event<Received>, watcher::Error>);

pub(crate) struct Watches {
    client: Client,
    argocd: String,
    /// The events; it ends if no kind is watched.
    pub(crate) events: SelectAll<BoxStream<'static, KindEvent>>,
    /// The running watches: dropping a sender ends the watch of its kind.
    running: BTreeMap<Kind, oneshot::Sender<()>>,
}

impl Watches {
    /// Watches these kinds; `argocd` is the namespace of Argo CD.
    pub(crate) fn new(client: &Client, argocd: &str, kinds: &BTreeSet<Kind>) -> Self {
        let mut watches = Self {
            client: client.clone(),
            argocd: argocd.to_owned(),
            events: SelectAll::new(),
            running: BTreeMap::new(),
        };
        for kind in kinds {
            watches.begin(*kind, Duration::ZERO);
        }
        watches
    }

    /// Starts the watch of a kind after a delay, with a list of all objects; a running watch of the kind ends at once.
    pub(crate) fn begin(&mut self, kind: Kind, delay: Duration) {
        let (running, ended) = oneshot::channel();
        self.running.insert(kind, running);
        let resource = kind.resource();
        let client = hub::with_first_list(self.client.clone());
        let api: Api<Received> = if kind.watched().is_of_argocd {
            Api::namespaced_with(client, &self.argocd, &resource)
        } else {
            Api::all_with(client, &resource)
        };
        let config = kind.watch_config(&self.argocd).timeout(WATCH_TIMEOUT);
        let watch = hub::watched(api, config).backoff(WatchBackoff::default());
        let begun = async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            watch
        };
        let events = begun.flatten_stream().take_until(ended);
        self.events.push(events.map(move |event| (kind, event)).boxed());
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.running.keys().copied().collect()
    }
}

/// Returns the error of a request; none if the response does not come from a Kubernetes API.
pub(crate) fn request_error(error: watcher::Error) -> Option<Error> {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => Some(error),
        watcher::Error::WatchError(status) => Some(Error::Api(status)),
        watcher::Error::NoResourceVersion => None,
    }
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
pub(crate) struct Received {
    /// The namespace, name and resource version; all other fields are empty.
    metadata: ObjectMeta,
    /// The time of the last write, as text of the API server.
    written: Option<String>,
    pub(crate) text: Arc<RawValue>,
}

impl Received {
    pub(crate) fn object_ref(&self) -> ObjectRef {
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        ObjectRef {
            namespace: text(&self.metadata.namespace),
            name: text(&self.metadata.name),
        }
    }

    /// Returns the age of the last write, with a precision of one second.
    pub(crate) fn age(&self, now: Timestamp) -> Option<Duration> {
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
