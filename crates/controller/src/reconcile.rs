//! A controller as a value: what it reconciles, what it needs in the cache, and the functions that decide.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

use crate::cache::{Cache, ReconcileKind};
use crate::runtime::action::Action;
use crate::watches::Kind;
use jiff::Timestamp;
use ocm::object_ref::ObjectRef;
use std::time::Duration;

/// A controller.
#[derive(Debug)]
pub struct Controller {
    /// The name on the command line and in metrics.
    pub name: &'static str,
    /// The description, one line of the help.
    pub about: &'static str,
    /// The kind of objects that it reconciles.
    pub kind: ReconcileKind,
    /// The kinds that must be in the cache.
    pub requires: &'static [Kind],
    /// The minimum interval between two writes for the same object.
    pub pause: Duration,
    /// Computes the writes for an object; none if it is in the desired state.
    pub reconcile: fn(&Cache, &ObjectRef, &Context) -> Option<Action>,
    /// Computes when to reconcile an object again without a change.
    pub requeue_after: fn(&Cache, &ObjectRef, &Context) -> Option<Timestamp>,
}

/// Requests no reconciliation without a change.
#[must_use]
pub fn never(_: &Cache, _: &ObjectRef, _: &Context) -> Option<Timestamp> {
    None
}

/// The context of a reconciliation.
#[derive(Clone, Copy, Debug)]
pub struct Context<'m> {
    /// The current time.
    pub now: Timestamp,
    /// True if Argo CD shows stale state of the Application.
    pub stale: bool,
    /// The settings of the controllers.
    pub settings: &'m Settings,
}

/// The settings of all controllers.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The namespace of Argo CD.
    pub argocd: String,
    /// True if the controller installs argocd-agent on managed clusters.
    pub agents: bool,
    /// The images that run on managed clusters unless a GitOpsCluster overrides them.
    pub images: crate::argocd_agent::Images,
    /// The settings of the basic pull model.
    pub pull: crate::pull::Settings,
}
