//! `get`, `events`, `logs`: show delivered objects as they are on their managed cluster, as kubectl shows them.

mod object_name;
mod print;

pub use object_name::{ObjectName, full_name, kubectl_name};
pub use print::{EventList, ObjectEntry, ObjectList};
