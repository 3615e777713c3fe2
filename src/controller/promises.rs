//! What the controller promises, one file each: what should be written, of what is there. Adding one is a file and a line.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod application_set_report;
mod application_status;
mod argocd_agent;
mod cluster_secrets;
mod gitopscluster;
mod pull;
#[cfg(test)]
mod simulation;

use super::action::Action;
use super::index::{Index, Sort};
use super::seen::Place;
use super::watches::Kind;
use k8s_openapi::jiff::Timestamp;
use std::time::Duration;

/// A promise.
#[derive(Debug)]
pub struct Promise {
    /// What it is called on the command line and in metrics.
    pub name: &'static str,
    /// What it does, in a line of the help.
    pub about: &'static str,
    /// What it looks at.
    pub of: Sort,
    /// What must be known for that.
    pub needs: &'static [Kind],
    /// How long the next write for the same object waits at least.
    pub pause: Duration,
    /// What is to be written for an object; nothing when all is as it should be.
    pub desired: fn(&Index, &Place, &Moment) -> Option<Action>,
    /// When it is to be looked at again though nothing happens.
    pub again: fn(&Index, &Place, &Moment) -> Option<Timestamp>,
}

/// It is looked at when something happens, and only then.
fn never(_: &Index, _: &Place, _: &Moment) -> Option<Timestamp> {
    None
}

/// When something is decided.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'m> {
    /// The time.
    pub now: Timestamp,
    /// Whether Argo CD shows something stale of the Application.
    pub stale: bool,
    /// What was asked for.
    pub settings: &'m Settings,
}

/// What was asked for, of all promises.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The namespace of Argo CD.
    pub argocd: String,
    /// Whether argocd-agent is brought to managed clusters.
    pub agents: bool,
    /// What runs on managed clusters, where a GitOpsCluster does not say otherwise.
    pub images: crate::agent::Images,
    /// How the basic pull model is done.
    pub pull: crate::pull::Settings,
}

/// Every promise. One that is about objects of several kinds is here as often, under the same name.
pub static PROMISES: &[Promise] = &[
    application_status::PROMISE,
    pull::PROMISE,
    cluster_secrets::PROMISE,
    application_set_report::PROMISE,
    gitopscluster::PROMISE,
    gitopscluster::SECRETS,
    gitopscluster::AGENT_SECRETS,
    argocd_agent::HUB,
    argocd_agent::ADDON,
    argocd_agent::WORKS,
    argocd_agent::REQUESTS,
];

/// The name of the promise that is the basic pull model.
pub const PULL: &str = pull::PROMISE.name;

/// The name of the promise that brings argocd-agent to managed clusters.
pub const AGENTS: &str = argocd_agent::HUB.name;
