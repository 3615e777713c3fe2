//! Fake API servers for the tests of controllers.

#![allow(clippy::arithmetic_side_effects, reason = "a test may panic")]

pub mod api_server;
pub mod leases;
