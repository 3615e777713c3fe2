//! The options of the process: the controllers to run and their settings.

use crate::controllers::CONTROLLERS;
use hub::Connection;
use hub_state::{Controller, Kind, Settings};
use jiff::Timestamp;
use runtime::readiness::Readiness;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Instant;

#[derive(Debug)]
pub struct Options {
    pub hub: Connection,
    pub controllers: Vec<&'static Controller>,
    pub settings: Settings,
    /// The namespace of the Lease; none if no other replica writes.
    pub lease_namespace: Option<String>,
    pub identity: String,
    /// The listen address of probes and metrics.
    pub address: SocketAddr,
    /// True if the controller logs writes instead of making them.
    pub dry_run: bool,
    pub concurrent_writes: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    pub time: fn() -> Timestamp,
    /// Returns the monotonic time, which cannot be set.
    pub elapsed: fn() -> Instant,
}

impl Options {
    pub fn needs(&self) -> BTreeSet<Kind> {
        let controllers = self.controllers.iter();
        controllers
            .flat_map(|controller| controller.kinds(&self.settings))
            .collect()
    }

    pub(crate) fn readiness(&self) -> Readiness<Kind> {
        Readiness::new(self.needs().into_iter().map(|kind| (kind, kind.resource().plural)))
    }
}

/// Returns the controllers with these names; `*` selects all.
pub fn named<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Vec<&'static Controller>, String> {
    let mut chosen: Vec<&'static Controller> = Vec::new();
    for name in names {
        let is_named = |controller: &&Controller| name == "*" || controller.name == name;
        let mut all = CONTROLLERS.iter().filter(is_named).peekable();
        if all.peek().is_none() {
            return Err(format!(
                "unknown controller {name:?}: --controllers accepts {} or '*'",
                crate::options::names(CONTROLLERS).join(", ")
            ));
        }
        for controller in all {
            if chosen.iter().all(|other| !std::ptr::eq(*other, controller)) {
                chosen.push(controller);
            }
        }
    }
    Ok(chosen)
}

/// Returns the names of the controllers, each once.
pub fn names<'p>(controllers: impl IntoIterator<Item = &'p Controller>) -> Vec<&'static str> {
    let mut names: Vec<_> = controllers.into_iter().map(|controller| controller.name).collect();
    names.dedup();
    names
}
