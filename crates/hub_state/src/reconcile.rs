//! A controller as a value: what it reconciles, what it needs in the cache, and the functions that decide.

use crate::cache::{Cache, Mapper, Mappers};
use crate::model::{Images, Kind};
use crate::pull;
use jiff::Timestamp;
use primitives::object_ref::ObjectRef;
use runtime::action::Action;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug)]
pub struct Controller {
    /// The name on the command line and in metrics.
    pub name: &'static str,
    /// The description, one line of the help.
    pub about: &'static str,
    /// The kind of objects that it reconciles.
    pub kind: Kind,
    /// The kinds that must be in the cache.
    pub watches: &'static [Watch],
    /// The minimum interval between two writes for the same object.
    pub min_write_interval: Duration,
    /// Computes the writes for an object; none if it is in the desired state.
    pub reconcile: fn(&Cache, &ObjectRef, &Context) -> Option<Action>,
    /// Computes when to reconcile an object again without a change.
    pub requeue_after: fn(&Cache, &ObjectRef, &Context) -> Option<Timestamp>,
}

impl Controller {
    pub fn kinds(&self, settings: &Settings) -> impl Iterator<Item = Kind> {
        let needed = self.watches.iter().filter(|watch| (watch.is_needed)(settings));
        needed.map(|watch| watch.kind)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Watch {
    pub kind: Kind,
    /// Maps a change of an object to the objects to reconcile.
    pub map: Mapper,
    pub is_needed: fn(&Settings) -> bool,
}

impl Watch {
    pub const fn new(kind: Kind, map: Mapper) -> Self {
        Self {
            kind,
            map,
            is_needed: |_| true,
        }
    }

    pub const fn only_if(self, is_needed: fn(&Settings) -> bool) -> Self {
        Self { is_needed, ..self }
    }
}

/// Returns the mappers of these controllers. The parts of a controller, which have the same name, share theirs.
pub fn mappers<'c>(controllers: impl IntoIterator<Item = &'c Controller>) -> Mappers {
    let mut by_name = BTreeMap::new();
    for controller in controllers {
        for watch in controller.watches {
            by_name.insert((watch.kind, controller.name), watch.map);
        }
    }
    let mut all = Mappers::new();
    for ((kind, _), map) in by_name {
        all.entry(kind).or_default().push(map);
    }
    all
}

/// Requests no reconciliation without a change.
pub fn no_requeue(_: &Cache, _: &ObjectRef, _: &Context) -> Option<Timestamp> {
    None
}

#[derive(Clone, Copy, Debug)]
pub struct Context<'m> {
    pub now: Timestamp,
    /// True if Argo CD shows stale state of the Application.
    pub stale: bool,
    /// The time for which the leader still counts as new: until then, the API server may not have answered each of its writes, so
    /// what it would refuse is unknown.
    pub new_leader_for: Option<Duration>,
    pub settings: &'m Settings,
}

#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub argocd: String,
    /// The managed cluster that is the hub itself.
    pub hub_cluster: Option<String>,
    /// True if the controller installs argocd-agent on managed clusters.
    pub agents: bool,
    /// The images that run on managed clusters unless a GitOpsCluster overrides them.
    pub images: Images,
    pub pull: pull::Settings,
}
