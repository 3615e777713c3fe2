//! Access to the API server of a hub: connect, list, watch, and describe errors; and connections to a server on a hub.

mod connect;
mod error;
mod first_list;
mod list;
mod object;
mod serve;
mod watch;

pub use connect::{Connection, NO_HUB, RequestHook, client, config, trim_token};
pub use error::{ask_twice, explain, is_unanswered, optional, reason, status};
pub use first_list::with_first_list;
pub use list::{each, each_metadata, in_order};
pub use object::{HubObject, parse_metadata};
pub use serve::{listen, serve};
pub use watch::{as_it_is_now, watched};

use std::time::Duration;

/// The maximum time without a response from an API server before a request fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The maximum number of objects in one response without works, or with only their metadata, which may contain a copy of a work in an
/// annotation of Argo CD.
pub const PAGE: u32 = 500;

/// The maximum number of objects in one response that may contain works: a work may have megabytes.
pub const WORK_PAGE: u32 = 50;
