//! Fake API servers for the tests of controllers.

pub mod api_server;
pub mod leases;
