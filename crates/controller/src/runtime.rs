//! The runtime of all controllers: the workqueue, limits on writes, the writer, leader election, probes and the log.

pub mod action;
pub mod admin;
pub mod lease;
pub mod metrics;
pub mod outbox;
pub mod panics;
pub mod queue;
pub mod readiness;
pub mod slots;
pub mod table;
pub mod telemetry;
pub mod text;
pub mod turns;
pub mod writer;
