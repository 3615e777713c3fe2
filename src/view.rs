//! `get`, `events`, `logs`: show delivered objects as they are on their managed cluster, as kubectl shows them.

mod object_name;
mod print;

pub use object_name::ObjectName;
pub(crate) use object_name::{full_name, kubectl_name};
pub(crate) use print::{EventList, ObjectEntry, ObjectList};
