//! The runtime of the controllers of any API: the workqueue, limits on writes, the writer, leader election,
//! metrics, probes and the log. It knows no kind that a controller reconciles.

#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod action;
pub mod admin;
pub mod fair_queue;
pub mod lease;
pub mod memo;
pub mod metadata;
pub mod metrics;
pub mod outbox;
pub mod panics;
pub mod plan;
pub mod queue;
pub mod readiness;
pub mod signals;
pub mod slots;
pub mod telemetry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod writer;
