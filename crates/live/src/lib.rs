//! The read-only view into managed clusters: live objects, what they own, Events and logs, through OCM's cluster-proxy.
//!
//! A request names an Application (in headers that argocd-server sets), a cluster and one object. The service finds the object in a
//! work of that Application on that cluster, and builds every path from what the work and the verified owners lead to: no path, verb
//! or selector of the caller reaches a cluster. What a cluster answers is checked, masked and bounded.
//!
//! Pure: [`request`] parses, [`sent`] finds the object in the works, [`mask`] hides the values of Secrets, [`difference`] compares,
//! [`tree`] verifies owners, [`events`] and [`log_text`] prepare what is shown, [`streams`] and
//! [`pace`] limit users, [`limits`] has all limits.
//! Edges: [`hub_reader`] reads the hub, [`tunnel`] the clusters, [`service`] joins both, [`server`] speaks HTTPS with argocd-server
//! under its [`identity`]; [`user_tunnel`] replaces the server for a user of the command line.

mod difference;
pub mod events;
pub mod hub_reader;
pub mod identity;
pub mod limits;
mod log_text;
mod mask;
mod pace;
pub mod refusal;
pub mod request;
pub mod sent;
pub mod server;
pub mod service;
mod streams;
pub mod tree;
pub mod tunnel;
pub mod user_tunnel;
