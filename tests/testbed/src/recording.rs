//! What happens to objects, in the order in which it happens.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use futures::{Stream, StreamExt};
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::control_plane::ControlPlane;
use crate::wait;

/// Every state of the objects of a kind, from the moment of [`ControlPlane::record`] on. Ends when it is dropped.
#[derive(Debug)]
pub struct Recording {
    states: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Recording {
    /// The states so far, of all the objects in one row: first those that were there, then each change.
    #[must_use]
    pub fn states(&self) -> Vec<Value> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Events = Pin<Box<dyn Stream<Item = watcher::Result<Event<DynamicObject>>> + Send>>;

impl ControlPlane {
    /// Records the objects of a kind with these labels, in all namespaces.
    pub async fn record(&self, api_version: &str, kind: &str, labels: &str) -> Result<Recording> {
        let client = self.client().await?;
        let (resource, _) = wait::resource(&client, api_version, kind).await?;
        let api: Api<DynamicObject> = Api::all_with(client, &resource);
        let mut events: Events = watcher(api, watcher::Config::default().labels(labels)).boxed();
        let states = Arc::default();
        // What changes from now on must not be missed.
        loop {
            let event = events.next().await.context("the watch has ended")??;
            if note(&states, event) {
                break;
            }
        }
        let task = tokio::spawn({
            let states = Arc::clone(&states);
            async move {
                while let Some(event) = events.next().await {
                    // The watcher begins anew after a failure.
                    if let Ok(event) = event {
                        note(&states, event);
                    }
                }
            }
        });
        Ok(Recording { states, task })
    }
}

/// Adds the state of an object, if the event is about one that is there; whether those that were there are all noted.
fn note(states: &Mutex<Vec<Value>>, event: Event<DynamicObject>) -> bool {
    match event {
        Event::Apply(object) | Event::InitApply(object) => {
            let state = serde_json::to_value(object).unwrap_or_default();
            states.lock().unwrap_or_else(PoisonError::into_inner).push(state);
            false
        }
        Event::InitDone => true,
        Event::Init | Event::Delete(_) => false,
    }
}
