//! The state of a hub that its controllers share: the [`cache`] keeps the fields that they need ([`model`]), and maps each change to
//! the objects to reconcile.
//!
//! A controller is a value ([`reconcile::Controller`]): its mappers ([`reconcile::Watch`]) return the objects that a change
//! concerns, and it computes the writes from the cache and the time alone. Each controller is a crate above this one, which knows
//! none of them.
//!
//! [`pull`], [`report`] and [`cluster_secret`] read the objects of the pull model, the reports of ApplicationSets, and Argo CD's
//! cluster Secrets.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod annotations;
pub mod cache;
pub mod cluster_secret;
pub mod condition_types;
pub mod json;
pub mod model;
pub mod pull;
pub mod reconcile;
pub mod report;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use cache::{
    Cache, Change, Changed, PullWorkRef, ReconcileRequest, Refusal, Selection, Update, WorkBefore, owners,
};
pub use model::{
    ACM_HUB, Application, Assignment, Availability, Blocked, CertificateRequest, Cluster, Condition, DesiredAgent,
    Generated, GitOpsCluster, Images, IssuedCertificate, Kind, Labels, Mode, OPEN, Object, PROMOTED, PUSH,
    PlacementDecision, RequestSpec, Requester, SecretKind, TlsSecret, Work, WorkState, have_same_version,
};
pub use reconcile::{Context, Controller, Settings, Watch, mappers, no_requeue};
