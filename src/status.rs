//! `status`: prints the health of an Application on its clusters, work by work and object by object.
//!
//! ```text
//! hub ─▶ works ─▶ ocm::health ─▶ Report ─▶ table, JSON or YAML
//! ```

pub mod gitopscluster;
mod print;
mod table;
#[cfg(test)]
mod tests;

pub use print::StatusList;
pub use table::progress;
pub(crate) use table::{BOLD, END, GREEN, RED, YELLOW, clean};
