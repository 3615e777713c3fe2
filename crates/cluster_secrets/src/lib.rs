//! The cluster Secret through which Argo CD knows a managed cluster without connecting to it: generators read the cluster's name,
//! server and labels, and the server does not exist. For a cluster with argocd-agent, the server is argocd-agent's resource
//! proxy. A pure function of the cluster's labels and the existing Secrets decides on each Secret.
//!
//! Name, server and type are those of argocd-pull-integration, whose Secrets the controller adopts. Two Secrets for one cluster
//! break ApplicationSets and destinations that name the cluster: if another writer created a Secret, the controller does not add
//! one.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod decide;
pub mod reconcile;
#[cfg(test)]
mod tests;

pub use decide::{RegisteredCluster, SecretUpdate, decide, deletion};
