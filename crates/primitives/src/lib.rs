//! Values of any Kubernetes API, for all crates that read or write objects.
//!
//! [`object_ref`] refers to one object, and [`resource`] describes an API resource. [`hash`] derives names that end in a hash,
//! [`time_math`] computes with times of external input, and [`timestamp`] writes them.

pub mod hash;
pub mod object_ref;
pub mod resource;
pub mod time_math;
pub mod timestamp;
