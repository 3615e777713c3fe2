//! Recordings of the changes of objects, in order.

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

/// All states of the objects of a kind, beginning with [`ControlPlane::record`]. Ends when it is dropped.
#[derive(Debug)]
pub struct Recording {
    states: Arc<Mutex<Vec<Value>>>,
    task: JoinHandle<()>,
}

impl Recording {
    /// Returns the states so far, of all objects in one sequence: first the existing ones, then each change.
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
        // Wait for the initial list, so that no later change is missed.
        loop {
            let event = events.next().await.context("the watch has ended")??;
            if add_state(&states, event) {
                break;
            }
        }
        let task = tokio::spawn({
            let states = Arc::clone(&states);
            async move {
                while let Some(event) = events.next().await {
                    // The watcher restarts after a failure.
                    if let Ok(event) = event {
                        add_state(&states, event);
                    }
                }
            }
        });
        Ok(Recording { states, task })
    }
}

/// Adds the state of an object, if the event is about an existing one; returns true when the initial list is complete.
fn add_state(states: &Mutex<Vec<Value>>, event: Event<DynamicObject>) -> bool {
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
